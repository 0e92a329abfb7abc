/*-------------------------------------------------------------------------
 * ip_moves.h
 *	  A page's list of moves: where its default changer has moved rows to.
 *
 *	  The list is one item, IP_UNDO_MOVES in ip_format.h.  It is added with the
 *	  first such row and removed with the default changer.  It may still name
 *	  rows that were rolled back one by one, or that got undo records of their
 *	  own.
 *-------------------------------------------------------------------------
 */
#ifndef IP_MOVES_H
#define IP_MOVES_H

#include "ip_page.h"

/* Room for a list of three runs. */
#define IP_MOVES_ROOM \
	(sizeof(ItemIdData) + IP_MOVES_HDRSZ + 3 * sizeof(IpMoveRun))

/*
 * Returns whether the item is a list.  off is in range; the page may be
 * damaged.
 */
extern bool ip_moves_is_list(Page page, OffsetNumber off);

/*
 * Returns the offset of the page's list, or InvalidOffsetNumber.  The page may
 * be damaged.
 */
extern OffsetNumber ip_moves_find(Page page);

/*
 * Get where the row at off has moved to, and whether the move excludes FOR KEY
 * SHARE; false if the page does not say.
 */
extern bool ip_moves_look_up(Page page, OffsetNumber off,
							 ItemPointerData *forward, bool *keys);

/* Returns what is wrong with the list at off, or NULL. */
extern const char *ip_moves_problem(Page page, OffsetNumber off);

/*
 * Free bytes, including a line pointer, that the page must have for a row to
 * be added to its list at "list", or to a new list if that is
 * InvalidOffsetNumber.
 */
extern uint32 ip_moves_space(Page page, OffsetNumber list, OffsetNumber off,
							 const ItemPointerData *forward, bool keys);

/*
 * Add a row to the list, or to a new list if there is none at "list".  Lock:
 * exclusive.  False if it does not fit, or the item is not a list.
 */
extern bool ip_moves_add(Page page, OffsetNumber list, OffsetNumber off,
						 const ItemPointerData *forward, bool keys);

/*
 * Remove the list, if there is one.  Lock: exclusive.  False if its item
 * cannot be removed.
 */
extern bool ip_moves_drop(Page page);

#endif							/* IP_MOVES_H */
