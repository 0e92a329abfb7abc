/*-------------------------------------------------------------------------
 * ip_heal.c
 *	  Pruning by readers of the pages that they read.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/visibilitymap.h"
#include "access/xlog.h"
#include "storage/lmgr.h"

#include "ip_heal.h"
#include "ip_prune.h"

bool		ip_heal_enabled = true;

/*
 * Returns whether this backend may prune as a reader.  On a standby, only the
 * primary prunes.  A backend that has locked the table to change it, or its
 * rows, is not a reader: an UPDATE would log a prune before each of its
 * changes, and clear the bits again.
 */
static bool
may_heal(Relation rel, IpHeals *heals)
{
	if (*heals == IP_HEALS_UNKNOWN)
		*heals = ip_heal_enabled && !RecoveryInProgress() &&
			!CheckRelationLockedByMe(rel, RowShareLock, true) ?
			IP_HEALS_YES : IP_HEALS_NO;
	return *heals == IP_HEALS_YES;
}

/*
 * Rows move on the page, but no reader keeps pointers into it without its
 * lock.  If another backend has that lock, it either does more for the page
 * than we would, or reads it; then the next reader may prune.
 */
void
ip_heal_page(Relation rel, Buffer buffer, IpHeals *heals)
{
	Buffer		map = InvalidBuffer;

	/*
	 * a scan checks once whether it may prune, but for each row whether that
	 * is worthwhile
	 */
	if (!may_heal(rel, heals) || !ip_prune_is_worth(rel, BufferGetPage(buffer)))
		return;
	/* this may read or make the map's page */
	visibilitymap_pin(rel, BufferGetBlockNumber(buffer), &map);
	if (ConditionalLockBuffer(buffer))
	{
		ip_prune_page_heal(rel, buffer, map);
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	}
	ReleaseBuffer(map);
}

bool
ip_heal_is_costly(Relation rel, BlockNumber block, uint8 state, IpXid xid,
				  IpPtr ptr)
{
	return (state & (IP_ROW_VERSION | IP_ROW_INSERTED)) == IP_ROW_VERSION &&
		ptr.block != block && ip_xid_removable(rel, xid);
}
