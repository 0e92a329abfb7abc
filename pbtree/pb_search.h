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

extern Buffer pb_search_descend(PbPos *pos, int level, int lock, PbFinishSplit finish, PbBounds *bounds);
extern Buffer pb_search_move_right(PbPos *pos, Buffer buffer, int lock, PbFinishSplit finish,
								   PbBounds *bounds);
extern void pb_search_count(Relation rel, BlockNumber block, uint32 *steps);
extern Buffer pb_search_next(Relation rel, Buffer buffer, int lock);
extern Buffer pb_search_right(Relation rel, Buffer buffer, int lock);
extern Buffer pb_search_left(Relation rel, Buffer buffer);

#endif							/* PB_SEARCH_H */
