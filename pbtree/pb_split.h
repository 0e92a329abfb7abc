/*-------------------------------------------------------------------------
 * pb_split.h
 *	  Insertion of items; page splits; updates of parents.
 *-------------------------------------------------------------------------
 */
#ifndef PB_SPLIT_H
#define PB_SPLIT_H

#include "pb_search.h"

/*
 * Insert an item in front of a slot.  Returns false if there is no room.  down
 * and child belong to the page that was split; the insertion completes its
 * split.  Locks: write, both, kept.
 */
extern bool pb_split_put(Relation rel, PbIndex *index, Buffer buffer, int slot,
						 const PbKey *key, BlockNumber down, Buffer child);

/*
 * Rebuild the page with the best shape for its keys.  Returns false if it has
 * that already.  Lock: write, kept.
 */
extern bool pb_split_repack(Relation rel, PbIndex *index, Buffer buffer);

/*
 * Split a page that has no room for the key.  Lock: write, released.  Error:
 * the page is damaged.
 */
extern void pb_split_page(Relation rel, PbIndex *index, Buffer buffer, int slot,
						  const PbKey *key);

/*
 * Insert the downlink that a split has left out.  Lock: write, released;
 * parents are locked in between.
 */
extern void pb_split_finish(Relation rel, Buffer buffer);

/*
 * Make the root of an empty index, unless it has one already.  Lock: none on a
 * page.
 */
extern void pb_split_first_root(Relation rel, PbIndex *index);

#endif							/* PB_SPLIT_H */
