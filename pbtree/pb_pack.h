/*-------------------------------------------------------------------------
 * pb_pack.h
 *	  How a page's items are best stored; where it is best split.
 *-------------------------------------------------------------------------
 */
#ifndef PB_PACK_H
#define PB_PACK_H

#include "pb_pos.h"

/* What is learned of keys one by one. */
typedef struct PbPack
{
	int			n;				/* keys */
	int			common;			/* bytes that all begin with */
	int			min_len;
	bool		maps;
	PbKey		first;
} PbPack;

/* No keys yet. */
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
extern void pb_pack_page(PbPack *pack, Relation rel, PbIndex *index, Buffer buffer, int from, int n);

/*
 * How many leading columns of the keys are equal, as the operator classes see
 * it.  It may call them.
 */
extern int	pb_pack_equal_columns(Relation rel, PbIndex *index, const PbKey *a, const PbKey *b);

/* Turn a row's key into the shortest one behind last that is not behind it. */
extern void pb_pack_separator(Relation rel, PbIndex *index, const PbKey *last, PbKey *first);

/*
 * How many items stay on the left page, 1 at least.  Lock: read.  It looks at
 * what is there, not at the key but for appended ones.
 */
extern int	pb_pack_split_point(Relation rel, PbIndex *index, Buffer buffer, int slot, const PbKey *key);

#endif							/* PB_PACK_H */
