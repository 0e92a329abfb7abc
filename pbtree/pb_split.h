/*-------------------------------------------------------------------------
 * pb_split.h
 *	  Items into pages; pages that are split; their parents.
 *-------------------------------------------------------------------------
 */
#ifndef PB_SPLIT_H
#define PB_SPLIT_H

#include "pb_search.h"

extern bool pb_split_put(Relation rel, PbIndex *index, Buffer buffer, int slot,
						 const PbKey *key, BlockNumber down, Buffer child);
extern bool pb_split_repack(Relation rel, PbIndex *index, Buffer buffer);
extern void pb_split_page(Relation rel, PbIndex *index, Buffer buffer, int slot, const PbKey *key);
extern void pb_split_finish(Relation rel, Buffer buffer);
extern void pb_split_first_root(Relation rel, PbIndex *index);

#endif							/* PB_SPLIT_H */
