/*-------------------------------------------------------------------------
 * pb_unlink.h
 *	  Deletion of an empty leaf, and of inner pages that lead to nothing else.
 *-------------------------------------------------------------------------
 */
#ifndef PB_UNLINK_H
#define PB_UNLINK_H

#include "pb_change.h"
#include "pb_search.h"

/*
 * Delete an empty leaf, and inner pages with no other child; how many pages
 * went, 0 if it cannot be now.  Lock: none.  *next: another leaf that can go.
 */
extern int	pb_unlink_leaf(Relation rel, PbIndex *index, BlockNumber block, uint16 cycle, BlockNumber *blocks,
						   BlockNumber *next);

#endif							/* PB_UNLINK_H */
