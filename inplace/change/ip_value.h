/*-------------------------------------------------------------------------
 * ip_value.h
 *	  Format of large values, version 1: the rows of a TOAST table.
 *
 * The TOAST table of an inplace table is an inplace table, with the columns
 * that core gives it.  Its index has no entries.  A value is a head and, if
 * that does not have all of its bytes, blocks:
 *
 *	  row:	chunk_id (4)  chunk_seq (4)	 chunk_data (bytea)
 *			|			  |				 |
 *			|			  |				 kind (1): IpValueKind
 *			|			  |				 head: IpValueHead, the image or the
 *			|			  |				 list of blocks
 *			|			  |				 block: image
 *			|			  address of the row that continues these bytes, or 0
 *			the row's own address
 *
 *	  IpValueHead:	rawsize (4)	 nblocks (4)  cut (4)
 *	  list:			for each block its address (4) and raw length (2)
 *	  image:		the bytes themselves or, with IP_VALUE_COMPRESSED, what
 *					follows the length word of core's compressed values: raw
 *					length and method (4), and the compressed bytes
 *
 * A head or a block that is longer than the room on a page is continued in
 * other rows.  The head's address is the value's id in its TOAST pointer.  The
 * pointer says that the value is not compressed, so core asks for any part of
 * it.
 *
 * Values are cut into blocks by their content (ip_value_cut), so that most
 * blocks of a changed value are those of the old one.  The versions of a
 * column's value share blocks; rows do not.  Rows of a TOAST table are only
 * inserted and deleted.  The transaction that stores a new version of the value
 * deletes the old head, and the blocks that the new version does not have.  So
 * a block is there as long as a snapshot may see a version that has it.
 *-------------------------------------------------------------------------
 */
#ifndef IP_VALUE_H
#define IP_VALUE_H

#include "compat.h"

#include "ip_body.h"

/*
 * The address of a row: block and offset.  Rows of a TOAST table have low
 * offsets only, so that an address is a value's id.  0 is no address: item 1 of
 * block 0 is the decoy.
 */
#define IP_VALUE_OFFSET_BITS	5
#define IP_VALUE_MAX_OFFSET		(1 << IP_VALUE_OFFSET_BITS)
#define IP_VALUE_MAX_BLOCK		(PG_UINT32_MAX >> IP_VALUE_OFFSET_BITS)

#define IpValueAddress(block, off) \
	((uint32) (block) << IP_VALUE_OFFSET_BITS | ((off) - 1))
#define IpValueAddressBlock(address)	((address) >> IP_VALUE_OFFSET_BITS)
#define IpValueAddressOffset(address) \
	((OffsetNumber) (((address) & (IP_VALUE_MAX_OFFSET - 1)) + 1))

/* The kind of a row, and a flag. */
typedef enum IpValueKind
{
	IP_VALUE_HEAD = 1,
	IP_VALUE_BLOCK = 2,			/* the first row of a block */
	IP_VALUE_MORE = 3			/* continues a head or a block */
} IpValueKind;

#define IP_VALUE_KIND_MASK		0x0F
#define IP_VALUE_COMPRESSED		0x10	/* the image, which begins in this
										 * row, is compressed */

typedef struct IpValueHead
{
	uint32		rawsize;		/* length of the value */
	uint32		nblocks;		/* 0: the image follows; never 1 */
	uint32		cut;			/* the value was cut with this parameter */
} IpValueHead;

StaticAssertDecl(sizeof(IpValueHead) == 12, "a head begins with 12 bytes");

/* An entry of the list of blocks, in memory. */
typedef struct IpValueBlock
{
	uint32		address;
	uint32		rawlen;
} IpValueBlock;

/* ... and on the page. */
#define IP_VALUE_ENTRY_SZ		(sizeof(uint32) + sizeof(uint16))

/* A row's bytes before those of the value: columns, VARHDRSZ and kind. */
#define IP_VALUE_ROW_OVERHEAD	(2 * sizeof(uint32) + VARHDRSZ + 1)
#define IP_VALUE_NATTS			3

/* One row of a value. */
typedef struct IpValueRow
{
	uint32		address;
	uint32		next;			/* address of the row that continues it, or 0 */
	uint8		kind;
	const char *data;			/* not aligned */
	uint32		len;
} IpValueRow;

/* Read a row's body.  Returns what is wrong with it, or NULL. */
extern const char *ip_value_read_row(uint16 hdr, const uint8 *body,
									 uint32 bodylen, IpValueRow *row);

/* Make a row's body, of IP_VALUE_ROW_OVERHEAD + row->len bytes. */
extern void ip_value_form_row(const IpValueRow *row, IpFormed *formed);

/*
 * Check a head's first bytes.  Returns what is wrong, or NULL; *head is
 * aligned.
 */
extern const char *ip_value_read_head(const char *data, uint32 len,
									  IpValueHead *head);
extern void ip_value_read_entry(const char *data, IpValueBlock *block);
extern void ip_value_put_entry(char *data, const IpValueBlock *block);

/*
 * Returns the image's raw bytes, of which there must be rawlen; NULL if it is
 * damaged.  The result is the image itself, or VARHDRSZ bytes into what is
 * palloc'd.
 */
extern const char *ip_value_expand(const char *image, uint32 len,
								   bool compressed, uint32 rawlen);

/* Returns the raw length of the image that is all of the row's data. */
extern uint32 ip_value_image_length(const IpValueRow *row);

/*
 * Compress the bytes, if that makes them shorter: the image, palloc'd, and its
 * length; else NULL.
 */
extern char *ip_value_compress(const char *raw, uint32 rawlen, char method,
							   uint32 *len);

/* ---- cutting ------------------------------------------------------------- */

/*
 * The parameter of ip_value_cut: log2 of the shortest length of a block.  On
 * average a block is half as long again, but at most three times.  The last
 * block may be shorter.
 */
#define IP_VALUE_MIN_CUT		11
#define IP_VALUE_MAX_CUT		14

#define IpValueMinBlock(cut)	((uint32) 1 << (cut))
#define IpValueMaxBlock(cut)	((uint32) 3 << (cut))

StaticAssertDecl(IpValueMaxBlock(IP_VALUE_MAX_CUT) <= PG_UINT16_MAX, "a block's length has 16 bits");

/*
 * Returns the parameter for a value of that size.  old: that of the version
 * before, or 0; it is kept unless it is far off, because with another one no
 * block could be shared.
 */
extern uint32 ip_value_cut_of(uint32 rawsize, uint32 old);

/*
 * Returns the length of the block that begins at p.  It depends on the bytes of
 * the block only, or on the value's end.
 */
extern uint32 ip_value_cut(const char *p, uint32 left, uint32 cut);

#endif							/* IP_VALUE_H */
