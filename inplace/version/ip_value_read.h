/*-------------------------------------------------------------------------
 * ip_value_read.h
 *	  Reading large values (ip_value.h).
 *
 * Rows of a TOAST table are read whatever their transactions are: whoever sees
 * a row with a TOAST pointer sees the value.  No lock on a page of the TOAST
 * table may be held; locks on pages of the main table may.
 *-------------------------------------------------------------------------
 */
#ifndef IP_VALUE_READ_H
#define IP_VALUE_READ_H

#include "utils/rel.h"

#include "ip_value.h"

/* Addresses of rows. */
typedef struct IpValueRows
{
	uint32	   *address;
	Size		n;
	Size		size;
} IpValueRows;

extern void ip_value_note_row(IpValueRows *rows, uint32 address);

/* A value whose head has been read. */
typedef struct IpValue
{
	Relation	rel;			/* TOAST table */
	uint32		id;
	bool		soft;			/* what is missing or damaged is no error, but
								 * noted: */
	const char *problem;
	uint32		bad_row;
	IpValueRows *rows;			/* gets the rows that are read, or NULL */
	IpValueHead head;
	IpValueBlock *blocks;		/* head.nblocks of them; NULL: none */
	const char *image;			/* if there are none */
	uint32		image_len;
	bool		compressed;		/* the image */
} IpValue;

/*
 * Read a value's head; rawsize is its length, as the TOAST pointer says, or 0
 * if that is not known.  Memory is palloc'd.  Returns false if there is no such
 * value and it is soft.  Errors: data_corrupted.
 */
extern bool ip_value_open(IpValue *value, Relation toast, uint32 id,
						  uint32 rawsize, bool soft, IpValueRows *rows);

/*
 * Returns the raw bytes of block number i, or of the image, whose number is 0;
 * NULL if they cannot be read and the value is soft.
 */
extern const char *ip_value_block(IpValue *value, uint32 i);

/* The image of a block as it is stored. */
typedef struct IpValueImage
{
	const char *bytes;
	uint32		len;
	bool		compressed;
	uint32		address;		/* of its last row */
} IpValueImage;

/* Read the image of block number i, like ip_value_block. */
extern bool ip_value_image(IpValue *value, uint32 i, IpValueImage *image);

/*
 * Read length bytes from offset on.  Returns false if they cannot be read and
 * the value is soft.
 */
extern bool ip_value_read(IpValue *value, uint32 offset, uint32 length,
						  char *to);

/* The table access method's relation_fetch_toast_slice. */
extern void ip_value_fetch_slice(Relation toast, Oid id, int32 attrsize,
								 int32 offset, int32 length,
								 struct varlena *result);

/*
 * Returns the value of a TOAST pointer, palloc'd; NULL if there is no such
 * value, because the version that has the pointer is dead to all.  The TOAST
 * table is locked meanwhile.
 */
extern struct varlena *ip_value_fetch_soft(const struct varlena *pointer);

#endif							/* IP_VALUE_READ_H */
