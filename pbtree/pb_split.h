/*-------------------------------------------------------------------------
 * pb_split.h
 *	  Items into pages; pages that are split; their parents.
 *-------------------------------------------------------------------------
 */
#ifndef PB_SPLIT_H
#define PB_SPLIT_H

#include "pb_search.h"

/*
 * Insert an item in front of a slot; false if there is no room.  down and
 * child: of the page that was split, which is complete then.  Locks: write,
 * both, kept.
 */
extern bool pb_split_put(Relation rel, PbIndex *index, Buffer buffer, int slot,
						 const PbKey *key, BlockNumber down, Buffer child);

/*
 * Give the page the shape that suits its keys best; false if it has that.
 * Lock: write, kept.
 */
extern bool pb_split_repack(Relation rel, PbIndex *index, Buffer buffer);

/*
 * Split a page that has no room for the key.  Lock: write, released.  Error:
 * the page is damaged.
 */
extern void pb_split_page(Relation rel, PbIndex *index, Buffer buffer, int slot, const PbKey *key);

/*
 * Insert the downlink that a split has left out.  Lock: write, released;
 * parents are locked meanwhile.
 */
extern void pb_split_finish(Relation rel, Buffer buffer);

/*
 * Give an empty index a root, unless it has one by now.  Lock: none of a page.
 */
extern void pb_split_first_root(Relation rel, PbIndex *index);

#endif							/* PB_SPLIT_H */
