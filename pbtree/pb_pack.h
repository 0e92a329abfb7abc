/*-------------------------------------------------------------------------
 * pb_pack.h
 *	  Choice of the best shape of a page, and of its best split point.
 *-------------------------------------------------------------------------
 */
#ifndef PB_PACK_H
#define PB_PACK_H

#include "pb_pos.h"

/* Statistics of keys, which are added one by one. */
typedef struct PbPack
{
	int			n;				/* keys */
	int			common;			/* length of the common prefix */
	int			min_len;
	bool		maps;
	PbKey		first;
} PbPack;

/* Initialize without keys. */
extern void pb_pack_begin(PbPack *pack);

/* Add a key; the first one is copied. */
extern void pb_pack_add(PbPack *pack, const PbKey *key);

/*
 * Set prefix length, heads and maps that suit the keys; the rest of the shape
 * is the caller's.
 */
extern void pb_pack_shape(const PbPack *pack, PbIndex *index, PbShape *shape);

/*
 * Add n keys of a page from a slot on, but not that of an inner page's first
 * item.  Lock: read.  Error: one is damaged.
 */
extern void pb_pack_page(PbPack *pack, Relation rel, PbIndex *index,
						 Buffer buffer, int from, int n);

/*
 * The number of leading columns of the keys that are equal for the operator
 * classes.  It may call them.
 */
extern int	pb_pack_equal_columns(Relation rel, PbIndex *index, const PbKey *a,
								  const PbKey *b);

/*
 * Truncate a row's key to the shortest one that is behind "last", and not
 * behind the key.
 */
extern void pb_pack_separator(Relation rel, PbIndex *index, const PbKey *last,
							  PbKey *first);

/*
 * The number of items that stay on the left page, at least 1.  Lock: read.  It
 * depends on the existing items, and on the new key only if that is appended.
 */
extern int	pb_pack_split_point(Relation rel, PbIndex *index, Buffer buffer,
								int slot, const PbKey *key);

#endif							/* PB_PACK_H */
