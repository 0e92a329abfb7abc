/*-------------------------------------------------------------------------
 * ip_restore.h
 *	  Putting back a page's aborted changes in one pass.
 *-------------------------------------------------------------------------
 */
#ifndef IP_RESTORE_H
#define IP_RESTORE_H

#include "ip_change.h"

/*
 * Put the operation that puts back all rows on the list, which is the data page's, of which that takes one step: the newest change is one that has
 * aborted, of a row without locks, and the version before is visible to all, or the default inserter's.  Other rows, and
 * damaged ones, are left out.  Their number; c->restored has them, in the order of their offsets, until the next
 * call.  horizon: what precedes it is removable, beside what is so now.  kept_from: see ip_xid_kept_from.  Lock: the page exclusively; undo pages for a
 * moment.
 */
extern int	ip_restore_rows(Relation rel, BlockNumber block, Page page, const IpItemList *list, IpXid horizon, IpXid kept_from,
							IpChange *c);

#endif							/* IP_RESTORE_H */
