/*-------------------------------------------------------------------------
 * ip_modify.c
 *	  Changing rows: finding the version to change.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "commands/vacuum.h"

#include "ip_change.h"
#include "ip_home.h"
#include "ip_modify.h"
#include "ip_page.h"
#include "ip_prune.h"
#include "ip_rel.h"
#include "ip_restore.h"
#include "ip_version_satisfy.h"
#include "ip_xid.h"

/* ---- finding the version to change --------------------------------------- */

/*
 * Lock the data page of a row that is to be changed; false if it is not a data
 * page.
 */
static bool
lock_page(Relation rel, BlockNumber block, Buffer *buffer)
{
	*buffer = ip_rel_read(rel, block);
	LockBuffer(*buffer, BUFFER_LOCK_EXCLUSIVE);
	return ip_page_kind(rel, block, BufferGetPage(*buffer)) == IP_PAGE_DATA;
}

/*
 * Prune the page thoroughly, if that is necessary before a new xid is written
 * to it.
 */
static bool
renew_base(Relation rel, BlockNumber block, Buffer buffer)
{
	uint64		base =
		ip_data_xid_base(IpPageGetSpecial(BufferGetPage(buffer)));

	if (base != 0 && ip_xid_next() <= base)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("xid base of block %u of relation \"%s\" is in the future",
						block, RelationGetRelationName(rel)),
				 ip_page_check_hint(rel)));
	if (!ip_prune_base_is_old(BufferGetPage(buffer)))
		return true;
	ip_prune_page(rel, buffer, IP_XID_NONE,
				  ip_xid_kept_from(vacuum_freeze_min_age), InvalidBuffer,
				  false, NULL);
	return ip_page_kind(rel, block, BufferGetPage(buffer)) == IP_PAGE_DATA;
}

/*
 * Returns whether this transaction is, or can become, the page's default
 * changer.
 */
static bool
changer_is_free(Page page, TransactionId xid)
{
	const IpSpecial *special = IpPageGetSpecial(page);

	return !TransactionIdIsValid(special->u.data.change_xid) ||
		special->u.data.change_xid == xid || ip_page_changer_is_over(page);
}

/*
 * Returns whether the row has no room for a version block that it will need
 * or, for a deletion, has a version block that keeps the default changer from
 * changing it.
 */
static bool
prune_would_help(IpVersion *v, Page page, TransactionId xid, bool need_room)
{
	if (v->top_state & IP_ROW_VERSION)
		return !need_room && ip_home_enabled &&
			ip_xid_removable(v->rel, v->xid);
	return ip_page_free(page) < IP_VERSION_BLOCK_SZ &&
		(need_room || !changer_is_free(page, xid));
}

IpFound
ip_modify_begin(IpVersion *v, Relation rel, const ItemPointerData *tid,
				TransactionId xid, IpPurpose purpose, Buffer *buffer)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	OffsetNumber off = ItemPointerGetOffsetNumberNoCheck(tid);
	bool		may_prune = purpose != IP_TO_LOCK;

	Assert(ip_page_none_is_locked());
	if (!lock_page(rel, block, buffer) ||
		(purpose != IP_TO_LOCK && !renew_base(rel, block, *buffer)))
		return IPF_NONE;
	for (;;)
	{
		Page		page = BufferGetPage(*buffer);
		IpvResult	result = ip_version_begin(v, rel, block, page, off);

		if (result == IPV_NONE)
			return IPF_NONE;
		if (result == IPV_STALE)
			ip_version_missing(v);
		if (ip_version_status(v) == IP_STATUS_ABORTED)
		{
			if (ip_restore_row(v, *buffer))
				continue;
			UnlockReleaseBuffer(*buffer);
			CHECK_FOR_INTERRUPTS();
			(void) ip_restore_row_far(rel, tid, false);
			if (!lock_page(rel, block, buffer))
				return IPF_NONE;
		}
		else if (!may_prune ||
				 !prune_would_help(v, page, xid, purpose == IP_TO_UPDATE) ||
				 !ip_prune_page_opt(rel, *buffer))
			return IPF_OK;
		else
			may_prune = false;
	}
}

IpFound
ip_modify_classify(IpVersion *v, Snapshot snapshot, CommandId cid,
				   const IpTarget *target)
{
	Assert(v->locked && v->steps == 0);
	/* most rows */
	if (IpXidIsFrozen(v->xid) && !(v->state & IP_ROW_DELETED))
		return IPF_OK;
	switch (ip_version_status(v))
	{
		case IP_STATUS_MINE:
			if (ip_version_cid(v) >= cid)
				return (v->state & IP_ROW_INSERTED) ? IPF_INVISIBLE : IPF_SELF;
			return (v->state & IP_ROW_DELETED) ? IPF_INVISIBLE : IPF_OK;
		case IP_STATUS_RUNNING:
			return (v->state & IP_ROW_INSERTED) ? IPF_INVISIBLE : IPF_RUNNING;
		case IP_STATUS_COMMITTED:
			if (v->state & IP_ROW_DELETED)
				return (v->state & IP_ROW_MOVED) ? IPF_MOVED : IPF_DELETED;
			if (snapshot && IsMVCCSnapshot(snapshot) &&
				!ip_version_change_visible(v, snapshot) &&
				!ip_version_is_target(v, target))
				return IPF_UPDATED;
			return IPF_OK;
		case IP_STATUS_ABORTED:
		case IP_STATUS_FORGOTTEN:
			break;
	}
	return IPF_AGAIN;
}

void
ip_modify_failure(IpVersion *v, const ItemPointerData *tid,
				  TM_FailureData *tmfd)
{
	tmfd->ctid = *tid;
	tmfd->xmax = (TransactionId) v->xid;
	tmfd->cmax = InvalidCommandId;
	if ((v->state & IP_ROW_MOVED) && ip_version_load_rec(v) == IPV_OK)
	{
		if (v->rec.flags & IP_REC_PARTITION)
			ItemPointerSetMovedPartitions(&tmfd->ctid);
		else
			tmfd->ctid = v->rec.forward;
	}
}

void
ip_modify_moved_to_partition(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("tuple to be locked was already moved to another partition due to concurrent update")));
}

/*
 * Find our command that ended the version which snapshot and cid see.
 * *is_last: another transaction has ended that version, and the row's last
 * change counts.  IPV_STALE: undo has changed under us.
 */
static IpvResult
ending_command(IpVersion *v, const IpTarget *target, Snapshot snapshot,
			   CommandId cid, CommandId *ending, bool *is_last)
{
	IpvResult	result = IPV_OK;

	*is_last = false;
	for (; result == IPV_OK; result = ip_version_older(v))
	{
		IpXidStatus status = ip_version_status(v);
		CommandId	by;

		CHECK_FOR_INTERRUPTS();
		/* a subtransaction of ours */
		if (status == IP_STATUS_ABORTED)
			continue;
		if (status != IP_STATUS_MINE)
		{
			*is_last = snapshot && IsMVCCSnapshot(snapshot) &&
				!ip_version_change_visible(v, snapshot) &&
				!ip_version_is_target(v, target);
			return IPV_OK;
		}
		by = ip_version_cid(v);
		if (by < cid)
			return IPV_OK;
		*ending = by;
	}
	return result == IPV_NONE ? IPV_OK : result;
}

/*
 * Get our command that made the row's last version, wherever that has moved
 * to; false if it is deleted.
 */
static bool
last_command(IpVersion *v, Relation rel, ItemPointerData tid, CommandId *last)
{
	while (ip_version_fetch_newest(v, rel, &tid) &&
		   ip_version_skip_aborted(v) == IPV_OK &&
		   ip_version_status(v) == IP_STATUS_MINE)
	{
		CHECK_FOR_INTERRUPTS();
		*last = ip_version_cid(v);
		if (!(v->state & IP_ROW_MOVED))
			return !(v->state & IP_ROW_DELETED);
		if (ip_version_load_rec(v) != IPV_OK)
			return true;
		if (v->rec.flags & IP_REC_PARTITION)
			ip_modify_moved_to_partition();
		tid = v->rec.forward;
	}
	return true;
}

TM_Result
ip_modify_self_failure(Relation rel, const IpTarget *target, Snapshot snapshot,
					   CommandId cid, TM_Result result, TM_FailureData *tmfd)
{
	IpVersion	ended;
	IpVersion  *v = &ended;
	int			stale = 0;
	bool		is_last = false;

	if (result != TM_SelfModified)
		return result;
	while (ip_version_fetch_newest(v, rel, &target->row))
	{
		if (ending_command(v, target, snapshot, cid, &tmfd->cmax, &is_last) !=
			IPV_STALE)
			break;
		if (++stale > IP_MAX_STALE)
			ip_version_missing(v);
	}
	return is_last && !last_command(v, rel, target->row, &tmfd->cmax) ?
		TM_Deleted : TM_SelfModified;
}
