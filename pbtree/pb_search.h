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
 * asked; none other is held meanwhile.  InvalidBuffer: the tree is empty, or
 * lower.  finish: splits on the way are completed.
 */
extern Buffer pb_search_descend(PbPos *pos, int level, int lock, PbFinishSplit finish, PbBounds *bounds);

/*
 * From a page to the one to its right, or itself, that the position is on.
 * Lock: as asked, of that one alone.
 */
extern Buffer pb_search_move_right(PbPos *pos, Buffer buffer, int lock, PbFinishSplit finish,
								   PbBounds *bounds);

/* Count a step.  Error: there were more than pages, so links make a circle. */
extern void pb_search_count(Relation rel, BlockNumber block, uint32 *steps);

/*
 * The right sibling, locked as asked; the page stays locked (I3).  Error: it
 * does not link back.
 */
extern Buffer pb_search_next(Relation rel, Buffer buffer, int lock);

/*
 * To the right sibling: the page is unlocked first.  Error: that one is of
 * another level.
 */
extern Buffer pb_search_right(Relation rel, Buffer buffer, int lock);

/*
 * To the left sibling, locked for reading: the page is unlocked first.
 * InvalidBuffer: there is none.
 */
extern Buffer pb_search_left(Relation rel, Buffer buffer);

#endif							/* PB_SEARCH_H */
