/*-------------------------------------------------------------------------
 * ip_undo_shrink.h
 *	  VACUUM of undo pages.
 *-------------------------------------------------------------------------
 */
#ifndef IP_UNDO_SHRINK_H
#define IP_UNDO_SHRINK_H

#include "ip_space.h"

/*
 * VACUUM: take pages out of the rings if all their xids precede limit and no
 * row needs them.  Returns the number of pages.  limit is a removal horizon
 * from before the caller pruned all rows.  Rings that remain move to the lowest
 * free blocks (*moved).  No buffer lock may be held.
 */
extern BlockNumber ip_undo_shrink_rings(Relation rel, IpXid limit,
										IpFreeBlocks *lowest, bool *moved);

/*
 * VACUUM: free undo pages that are in no ring because of damage, if their
 * records can be read, all their xids precede limit, and no row needs them.
 * Returns the number of pages.  pages: all undo pages that VACUUM has met, and
 * not freed since.  limit: see ip_undo_shrink_rings.  No buffer lock may be
 * held.
 */
extern BlockNumber ip_undo_shrink_lost(Relation rel, IpXid limit,
									   const BlockNumber *pages,
									   BlockNumber npages,
									   IpFreeBlocks *lowest);

#endif							/* IP_UNDO_SHRINK_H */
