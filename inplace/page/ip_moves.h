/*-------------------------------------------------------------------------
 * ip_moves.h
 *	  A page's list of moves: where its default changer has moved rows to.
 *
 *	  One item for all of them, IP_UNDO_MOVES in ip_format.h.  It comes with the first such row, and goes with
 *	  the default changer.  It may still have rows that were put back one by one, or that got undo records of their own.
 *-------------------------------------------------------------------------
 */
#ifndef IP_MOVES_H
#define IP_MOVES_H

#include "ip_page.h"

/* Room for a list of three runs. */
#define IP_MOVES_ROOM	(sizeof(ItemIdData) + IP_MOVES_HDRSZ + 3 * sizeof(IpMoveRun))

/* Is the item a list?  off is in range; the page may be damaged. */
extern bool ip_moves_is_list(Page page, OffsetNumber off);

/* Where the page's list is, or InvalidOffsetNumber.  The page may be damaged. */
extern OffsetNumber ip_moves_find(Page page);

/* Where the row at off has moved to, and whether that excludes FOR KEY SHARE; false: the page does not say. */
extern bool ip_moves_look_up(Page page, OffsetNumber off, ItemPointerData *forward, bool *keys);

/* What is wrong with the list at off, or NULL. */
extern const char *ip_moves_problem(Page page, OffsetNumber off);

/*
 * Bytes that the page must have free, an item pointer included, for a row to be added to its list at "list", or (InvalidOffsetNumber) to a new one.
 */
extern uint32 ip_moves_space(Page page, OffsetNumber list, OffsetNumber off, const ItemPointerData *forward, bool keys);

/*
 * Add a row to the list, or to a new one if there is none at "list".  Lock: exclusive.  False if that does
 * not fit, or is no list.
 */
extern bool ip_moves_add(Page page, OffsetNumber list, OffsetNumber off, const ItemPointerData *forward, bool keys);

/* The list goes, if there is one.  Lock: exclusive; false if its item cannot. */
extern bool ip_moves_drop(Page page);

#endif							/* IP_MOVES_H */
