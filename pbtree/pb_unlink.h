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
 * Delete an empty leaf, and inner pages with no other child.  Returns the
 * number of deleted pages, 0 if it is not possible now.  Lock: none.  *next:
 * another leaf that can be deleted.
 */
extern int	pb_unlink_leaf(Relation rel, PbIndex *index, BlockNumber block,
						   uint16 cycle, BlockNumber *blocks,
						   BlockNumber *next);

#endif							/* PB_UNLINK_H */
