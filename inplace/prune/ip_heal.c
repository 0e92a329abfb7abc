/*-------------------------------------------------------------------------
 * ip_heal.c
 *	  Readers put the pages in order that they meet.
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
 * A standby's pages are the primary's work.  Who has locked the table to change it, or its rows, does not read to have it in order:
 * an UPDATE would log a prune before each of its changes, and clear the bits again.
 */
static bool
may_heal(Relation rel, IpHeals *heals)
{
	if (*heals == IP_HEALS_UNKNOWN)
		*heals = ip_heal_enabled && !RecoveryInProgress() && !CheckRelationLockedByMe(rel, RowShareLock, true) ? IP_HEALS_YES : IP_HEALS_NO;
	return *heals == IP_HEALS_YES;
}

/*
 * Rows move on the page, but no reader keeps pointers into it without its lock.  Whoever has that lock does more for the page than we
 * would, or reads it: then the next reader may do this.
 */
void
ip_heal_page(Relation rel, Buffer buffer, IpHeals *heals)
{
	Buffer		map = InvalidBuffer;

	/* a scan asks once whether it may, but at each row if it is worth it */
	if (!may_heal(rel, heals) || !ip_prune_is_worth(rel, BufferGetPage(buffer)))
		return;
	/* this may read the map's page, or make it */
	visibilitymap_pin(rel, BufferGetBlockNumber(buffer), &map);
	if (ConditionalLockBuffer(buffer))
	{
		ip_prune_page_heal(rel, buffer, map);
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	}
	ReleaseBuffer(map);
}

bool
ip_heal_is_costly(Relation rel, BlockNumber block, uint8 state, IpXid xid, IpPtr ptr)
{
	return (state & (IP_ROW_VERSION | IP_ROW_INSERTED)) == IP_ROW_VERSION && ptr.block != block && ip_xid_removable(rel, xid);
}
