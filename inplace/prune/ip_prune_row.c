/*-------------------------------------------------------------------------
 * ip_prune_row.c
 *	  Pruning single rows of a page.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/xlog.h"

#include "ip_prune_row.h"
#include "ip_rel.h"
#include "ip_restore.h"
#include "ip_version_satisfy.h"

void
ip_prune_begin(IpPrune *p, Relation rel, Buffer buffer, bool thorough,
			   IpXid horizon)
{
	Assert(ip_page_is_locked(BufferGetPage(buffer), true));
	p->rel = rel;
	p->block = BufferGetBlockNumber(buffer);
	p->page = BufferGetPage(buffer);
	p->thorough = thorough;
	p->horizon = horizon;
	p->kept_from = ip_xid_kept_from(vacuum_freeze_min_age);
	p->map = InvalidBuffer;
	p->soft = p->damaged = p->waits = p->quiets = false;
	p->changed = p->changer_is_over = false;
	p->killer = p->inserter = IP_XID_NONE;
	p->keeps_inserter = false;
	p->unflushed = InvalidXLogRecPtr;
	p->nrows = p->nfrozen = p->ndead = p->nfar = p->nchanged = 0;
	p->oldest = ip_xid_next();
	ip_change_begin(&p->change, rel, IP_XLOG_PRUNE, InvalidTransactionId);
	p->w = ip_change_block(&p->change, buffer, false);
}

bool
ip_prune_keeps_aborted(IpPrune *p, IpXid xid)
{
	if (xid == p->inserter)
		return p->keeps_inserter;
	return ip_rel_is_toast(p->rel) && !ip_prune_is_removable(p, xid);
}

int
ip_prune_frozen_length(IpVersion *v)
{
	int			column;
	int			len = ip_body_measure(RelationGetDescr(v->rel), v->hdr, v->body,
									  v->bodylen, &column);

	if (len < 0)
		ip_version_damaged(v);
	return Max(IP_ROW_MIN_BODY, len);
}

/* Note that a row that xid has deleted for all becomes a dead item. */
static void
note_death(IpPrune *p, IpXid xid)
{
	XLogRecPtr	unflushed;

	Assert(ip_xid_status_locked(xid) == IP_STATUS_COMMITTED &&
		   ip_prune_is_removable(p, xid));
	if (xid == p->killer)
		return;
	unflushed = ip_version_deletion_unflushed(p->rel, xid);
	if (unflushed != InvalidXLogRecPtr && !RelationNeedsWAL(p->rel))
	{
		/*
		 * with wal_level = minimal and a new file, no WAL record of ours
		 * follows the commit, but the files of indexes may be older
		 */
		XLogFlush(unflushed);
		unflushed = InvalidXLogRecPtr;
	}
	p->killer = xid;
	p->unflushed = Max(p->unflushed, unflushed);
	p->change.conflict = Max(p->change.conflict, xid);
}

/*
 * Note a row whose newest change, by xid, is visible to all.  saved: its
 * overlaid bytes if these are not at home, or NULL.
 */
static void
note_frozen(IpPrune *p, OffsetNumber off, IpXid xid, uint32 bodylen,
			const uint8 *saved)
{
	IpFrozen   *frozen = &p->frozen[p->nfrozen++];

	Assert(ip_xid_status_locked(xid) == IP_STATUS_COMMITTED &&
		   ip_prune_is_removable(p, xid));
	p->change.conflict = Max(p->change.conflict, xid);
	frozen->off = off;
	frozen->bodylen = bodylen;
	frozen->has_saved = saved != NULL;
	if (saved != NULL)
		memcpy(frozen->saved, saved, IP_VERSION_BLOCK_SZ);
	p->changed = true;
	p->nrows++;
}

/* Freeze the row on whose newest version v stands. */
static IpPruneAction
freeze(IpPrune *p, IpVersion *v)
{
	uint32		bodylen;

	if (!ip_row_may_freeze(v->top_state))
		ip_version_damaged(v);
	bodylen = ip_prune_frozen_length(v);
	if (v->damaged)
		return PRUNE_DAMAGED;
	note_frozen(p, ItemPointerGetOffsetNumber(&v->tid), v->xid,
				bodylen < v->bodylen ? bodylen : 0,
				ip_version_saved_at_home(v) ? NULL : v->saved);
	return PRUNE_FREEZE;
}

/*
 * Put the operation, if one is needed, for the row on whose newest version v
 * stands; op: the state to which it is rolled back.
 */
static IpPruneAction
put_version(IpPrune *p, IpVersion *v, IpRowOp *op)
{
	IpXidStatus status;

	if (!(v->top_state & (IP_ROW_VERSION | IP_ROW_CHANGED)) &&
		!(v->state & IP_ROW_INSERTED))
		return PRUNE_KEEP;
	status = ip_version_status(v);
	if (status == IP_STATUS_MINE || status == IP_STATUS_RUNNING)
		return PRUNE_KEEP;
	if (status == IP_STATUS_ABORTED)
	{
		if ((v->state & IP_ROW_INSERTED) && ip_prune_keeps_aborted(p, v->xid))
			return PRUNE_KEEP;
		return ip_restore_version(p, v, op);
	}
	if (!ip_prune_is_removable(p, v->xid))
		return PRUNE_KEEP;
	if (v->state & IP_ROW_DELETED)
	{
		note_death(p, v->xid);
		ip_prune_put_dead(p, ItemPointerGetOffsetNumber(&v->tid));
		return PRUNE_DEAD;
	}
	/* IP_OP_CLEAR_DEFAULT freezes rows without a version block */
	if (!(v->top_state & (IP_ROW_VERSION | IP_ROW_CHANGED)) ||
		(!(v->top_state & IP_ROW_OVERLAID) && !ip_prune_may_forget(p, v->xid)))
		return PRUNE_KEEP;
	return freeze(p, v);
}

IpPruneAction
ip_prune_version(IpPrune *p, IpVersion *v)
{
	OffsetNumber off = ItemPointerGetOffsetNumber(&v->tid);
	IpRowOp		op = {0};
	IpPruneAction action = put_version(p, v, &op);

	if (v->damaged)
		action = PRUNE_DAMAGED;
	/* note_frozen did the rest */
	if (action == PRUNE_FREEZE)
		return action;
	if (action == PRUNE_RESTORE)
		ip_home_keep_bytes(&p->homes, p->block, op.state, op.ptr);
	if (action == PRUNE_RESTORE || action == PRUNE_DEAD)
	{
		p->changed = true;
		p->nrows++;
		return action;
	}
	if (action == PRUNE_FAR && p->nfar < IP_MAX_ROWS_PER_PAGE)
		p->far[p->nfar++] = off;
	if (action == PRUNE_FAR || action == PRUNE_DAMAGED)
		p->homes.keep[off] = true;
	/* the row stays as it is */
	if (v->top_state & IP_ROW_CHANGED)
		p->nchanged++;
	ip_home_keep_bytes(&p->homes, p->block, v->top_state, v->top_ptr);
	return action;
}

/*
 * Returns whether the row is deleted for all.  Older versions of such a row do
 * not matter, so its undo is not read.
 */
static bool
is_deleted(IpPrune *p, OffsetNumber off, IpRow *row)
{
	return ip_row_read_deleted(p->rel, p->block, p->page, off, row) &&
		ip_prune_is_removable(p, row->xid) &&
		ip_xid_status_locked(row->xid) == IP_STATUS_COMMITTED;
}

/* Put the operation for a row that is deleted for all. */
static void
prune_deleted(IpPrune *p, OffsetNumber off, const IpRow *row)
{
	note_death(p, row->xid);
	ip_prune_put_dead(p, off);
	p->changed = true;
	p->nrows++;
}

/*
 * Returns whether the row's insertion is visible to all, and it has not been
 * changed since.  Such a row has no zeros to drop, so its body need not be
 * examined.
 */
static bool
is_inserted(IpPrune *p, OffsetNumber off, IpRow *row)
{
	return off >= FirstOffsetNumber && off <= PageGetMaxOffsetNumber(p->page) &&
		ip_row_read_sound(p->page, off, IP_ROW_INSERTED, row) &&
		row->state == (IP_ROW_VERSION | IP_ROW_INSERTED) &&
		ip_prune_may_forget(p, row->xid) &&
		ip_xid_status_locked(row->xid) == IP_STATUS_COMMITTED;
}

bool
ip_prune_row_at_once(IpPrune *p, OffsetNumber off)
{
	IpRow		row;

	if (is_deleted(p, off, &row))
		prune_deleted(p, off, &row);
	else if (is_inserted(p, off, &row))
		note_frozen(p, off, row.xid, 0, NULL);
	else
		return false;
	return true;
}
