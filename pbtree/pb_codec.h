/*-------------------------------------------------------------------------
 * pb_codec.h
 *	  Encodings of a column's values in a key.
 *
 * Every encoding determines where it ends.  Those from PB_CODEC_BOOL on are
 * ordered: compared as bytes they sort as the operator class sorts, and equal
 * values are identical.
 *-------------------------------------------------------------------------
 */
#ifndef PB_CODEC_H
#define PB_CODEC_H

#include "utils/rel.h"

#include "pb_format.h"

typedef enum PbCodec
{
	PB_CODEC_RAW = 1,			/* fixed width: the value's bytes */
	PB_CODEC_VARLENA,			/* length as a varint, the bytes */
	PB_CODEC_CSTRING,			/* the bytes, 0 */
	PB_CODEC_TEXT,				/* text: the bytes, 0 */
	PB_CODEC_NAME,				/* name: the bytes, 0 */
	PB_CODEC_BOOL = 16,			/* 1 byte */
	PB_CODEC_CHAR,				/* 1 byte */
	PB_CODEC_INT2,				/* high byte first, sign bit inverted */
	PB_CODEC_INT4,
	PB_CODEC_INT8,
	PB_CODEC_UINT4,				/* high byte first */
	PB_CODEC_UINT8,
	PB_CODEC_BYTES,				/* fixed width: the value's bytes */
	PB_CODEC_TEXT_C,			/* text in byte order: the bytes, 0 */
	PB_CODEC_NAME_C,			/* name in byte order: the bytes, 0 */
	PB_CODEC_BYTEA,				/* the bytes, 0 as 0 1; 0 0 */
	PB_CODEC_LAST = PB_CODEC_BYTEA
} PbCodec;

#define PB_CODEC_INVERTED		0x80	/* ordered, for DESC: all bits
										 * inverted */
#define PbCodecKind(codec)		((codec) & ~PB_CODEC_INVERTED)
#define PbCodecIsOrdered(codec) (PbCodecKind(codec) >= PB_CODEC_BOOL)

typedef struct PbColumn
{
	uint8		codec;
	bool		desc;
	bool		nulls_first;
	bool		byval;
	int16		len;			/* attlen */
	char		storage;
	bool		compressible;
	int16		fixed;			/* size of each encoding, or 0 if it varies */
	Oid			collation;
} PbColumn;

/* Space for values of one key.  Larger values are palloc'd. */
typedef struct PbArena
{
	Size		used;
	union
	{
		char		data[2 * BLCKSZ];
		double		force_align;
	}			u;
} PbArena;

/*
 * Free a value that pb_codec_decode has made.  It is palloc'd if it was
 * compressed, or did not fit.
 */
static inline void
pb_codec_free(const PbColumn *col, Datum value, const PbArena *arena)
{
	char	   *p = DatumGetPointer(value);

	if (!col->byval &&
		(p < arena->u.data || p >= arena->u.data + sizeof(arena->u.data)))
		pfree(p);
}

/*
 * Choose the codec of a column: an ordered one if the operator class sorts as
 * bytes do.  It reads catalogs.
 */
extern uint8 pb_codec_choose(Relation rel, int column);

/* The size of a codec's encodings, or 0 if it varies. */
extern int	pb_codec_width(uint8 codec, int16 len);

/*
 * Write a value's encoding.  Returns its length, or -1 if it does not fit into
 * room.  *packed is set if it was compressed; NULL forbids that.
 */
extern int	pb_codec_encode(const PbColumn *col, Datum value, uint8 *to,
							int room, bool *packed);

/*
 * Get the length of the encoding at p, or -1 if it does not end before "end".
 * The bytes may be damaged.
 */
extern int	pb_codec_skip(const PbColumn *col, int state, const uint8 *p,
						  const uint8 *end);

/*
 * Write the value of a fixed-width column as in a tuple.  p must be a whole
 * encoding.
 */
extern void pb_codec_decode_to(const PbColumn *col, const uint8 *p, char *to);

/*
 * Decode a whole encoding.  The value is in the arena, or palloc'd;
 * pb_codec_free frees it.
 */
extern Datum pb_codec_decode(const PbColumn *col, int state, const uint8 *p,
							 int len, PbArena *arena);

#endif							/* PB_CODEC_H */
