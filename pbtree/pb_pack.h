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

extern void pb_pack_begin(PbPack *pack);
extern void pb_pack_add(PbPack *pack, const PbKey *key);
extern void pb_pack_shape(const PbPack *pack, PbIndex *index, PbShape *shape);
extern void pb_pack_page(PbPack *pack, Relation rel, PbIndex *index, Buffer buffer, int from, int n);

extern int	pb_pack_equal_columns(Relation rel, PbIndex *index, const PbKey *a, const PbKey *b);
extern void pb_pack_separator(Relation rel, PbIndex *index, const PbKey *last, PbKey *first);
extern int	pb_pack_split_point(Relation rel, PbIndex *index, Buffer buffer, int slot, const PbKey *key);

#endif							/* PB_PACK_H */
