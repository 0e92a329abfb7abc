/*-------------------------------------------------------------------------
 * pb_search.h
 *	  From the root to a page; from page to page.
 *-------------------------------------------------------------------------
 */
#ifndef PB_SEARCH_H
#define PB_SEARCH_H

#include "pb_pos.h"

/* Completes a split; the page is locked for writing, and released by it. */
typedef void (*PbFinishSplit) (Relation rel, Buffer buffer);

/*
 * Descend to the page of a level that the position is on.  Lock on return: as
 * requested; no other is held in between.  InvalidBuffer if the tree is empty,
 * or lower.  finish: incomplete splits on the way are completed.
 */
extern Buffer pb_search_descend(PbPos *pos, int level, int lock,
								PbFinishSplit finish, PbBounds *bounds);

/*
 * Move from a page to the one that the position is on, which is itself or to
 * the right.  Lock: as requested, on that one alone.
 */
extern Buffer pb_search_move_right(PbPos *pos, Buffer buffer, int lock,
								   PbFinishSplit finish, PbBounds *bounds);

/*
 * Count a step.  Error: there were more steps than pages, so links form a
 * circle.
 */
extern void pb_search_count(Relation rel, BlockNumber block, uint32 *steps);

/*
 * Lock the right sibling as requested; the page stays locked (I3).  Error: it
 * does not link back.
 */
extern Buffer pb_search_next(Relation rel, Buffer buffer, int lock);

/*
 * Move to the right sibling.  The page is unlocked first.  Error: the sibling
 * is of another level.
 */
extern Buffer pb_search_right(Relation rel, Buffer buffer, int lock);

/*
 * Move to the left sibling, locked for reading.  The page is unlocked first.
 * InvalidBuffer if there is none.
 */
extern Buffer pb_search_left(Relation rel, Buffer buffer);

#endif							/* PB_SEARCH_H */
