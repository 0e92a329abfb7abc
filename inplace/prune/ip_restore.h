/*-------------------------------------------------------------------------
 * ip_restore.h
 *	  Rolling back aborted changes: the version before them becomes the row's
 *	  newest version on its page.
 *
 *	  ROLLBACK changes no page.  An aborted change stays in its row until the
 *	  next writer of the row, a prune of the page, or recycling of its undo
 *	  page calls these functions.
 *-------------------------------------------------------------------------
 */
#ifndef IP_RESTORE_H
#define IP_RESTORE_H

#include "ip_prune_row.h"

/*
 * Put the operation that rolls back all rows on p's list for which that takes
 * one step: the newest change has aborted, and the version before is visible
 * to all or the default inserter's.  Other rows, and damaged ones, are left
 * out.  Returns the number of rows; p->change.restored has them in the order
 * of their offsets, until the next call.  Lock: the page exclusively; undo
 * pages for a moment.
 */
extern int	ip_restore_rows(IpPrune *p);

/*
 * Put the operation that rolls back the row on whose newest version v stands,
 * and whose newest change has aborted.  v goes to the newest version that was
 * not rolled back, and op is the operation that was put.  Returns
 * PRUNE_RESTORE, PRUNE_DEAD (an aborted insertion), PRUNE_FAR or PRUNE_DAMAGED
 * (nothing was put).  Locks: as for ip_restore_rows.
 */
extern IpPruneAction ip_restore_version(IpPrune *p, IpVersion *v, IpRowOp *op);

/*
 * Roll back the row on whose newest version v stands, and whose newest change
 * has aborted.  False if there are too many aborted changes (IPV_FAR).
 * Afterwards, v has to begin again.  Lock: the buffer exclusively, held on
 * return.
 */
extern bool ip_restore_row(IpVersion *v, Buffer buffer);

/*
 * Roll back a row with too many aborted changes.  If the row changes in the
 * meantime, nothing happens.  False if it is damaged, which is an error unless
 * soft.  No lock is held.
 */
extern bool ip_restore_row_far(Relation rel, const ItemPointerData *tid,
							   bool soft);

/* ip_restore_row_far for all rows in p->far; the page has been unlocked. */
extern bool ip_restore_far_rows(const IpPrune *p, bool soft);

#endif							/* IP_RESTORE_H */
