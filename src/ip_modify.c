/*-------------------------------------------------------------------------
 * ip_modify.c
 *	  Changing rows: finding the version to change, and writing the change.
 *-------------------------------------------------------------------------
 */
#include "ip_compat.h"

#include "ip_insert.h"
#include "ip_logical.h"
#include "ip_modify.h"
#include "ip_prune.h"
#include "ip_space.h"
#include "ip_xid.h"

/* An older version is not worth keeping track of beyond this age. */
#define MAX_PREV_AGE	((IpXid) 1 << 30)

/* The body that the row has before the change. */
static uint8 from_body[BLCKSZ];

/* ---- finding the version to change ------------------------------------------------ */

/* The insertion of the row was rolled back. */
static void
kill_row(IpVersion *v, Buffer buffer)
{
	IpChange	change;

	ip_change_begin(&change, v->rel, IP_XLOG_RESTORE, InvalidTransactionId);
	ip_op_dead(ip_change_block(&change, buffer, false), ItemPointerGetOffsetNumber(&v->tid));
	ip_change_apply(&change);
}

/* Get ready to put back an older version of the row that top stands on, with its lockers. */
static void
begin_restore_locked(IpRowWrite *w, IpVersion *top, const IpLockState *lock, TransactionId xid)
{
	ip_write_same(w, top, IP_XLOG_RESTORE, xid);
	memcpy(from_body, top->body, top->bodylen);
	w->from = from_body;
	w->lock = *lock;
}

/* Put back the version that v stands on; below: what ip_version_skip_aborted said. */
static void
finish_restore_locked(IpRowWrite *w, IpVersion *v, IpvResult below, Buffer buffer)
{
	if (below == IPV_NONE)
	{
		kill_row(v, buffer);
		return;
	}
	if (below != IPV_OK)
		ip_version_missing(v);
	/* what is put back was there before: it fits, or is damaged */
	if (v->bodylen < IP_ROW_MIN_BODY || !ip_write_fits(v, BufferGetPage(buffer), v->bodylen))
		ip_version_damaged(v);
	w->state = v->state & IP_ROW_INSERTED;
	w->hdr = v->hdr;
	w->body = v->body;
	w->bodylen = v->bodylen;
	ip_write_row(v, buffer, w);
}

/* Put back the aborted changes of the row that v stands on; false: there are too many. */
static bool
restore(IpVersion *v, Buffer buffer, TransactionId xid)
{
	IpLockState lock;
	IpvResult	below;
	IpRowWrite	w;

	ip_lock_merge(v, InvalidTransactionId, false, LockTupleKeyShare, &lock);
	if (!lock.any || (v->state & IP_ROW_INSERTED))
		return ip_restore_row(v, buffer);
	begin_restore_locked(&w, v, &lock, xid);
	below = ip_version_skip_aborted(v);
	if (below == IPV_FAR)
		return false;
	finish_restore_locked(&w, v, below, buffer);
	return true;
}

/* The same for too many; no lock may be held.  If the row changes meanwhile, nothing happens. */
static void
restore_far(Relation rel, const ItemPointerData *tid, TransactionId xid)
{
	static IpVersion v;
	static IpVersion top;
	IpLockState lock;
	Buffer		buffer;
	IpvResult	below = ip_version_find_far(&v, rel, tid, false, &buffer);
	IpRowWrite	w;

	if (below == IPV_STALE)
		return;
	if (ip_version_begin(&top, rel, BufferGetBlockNumber(buffer), BufferGetPage(buffer),
						 ItemPointerGetOffsetNumberNoCheck(tid)) != IPV_OK)
		ip_version_missing(&top);
	ip_lock_merge(&top, InvalidTransactionId, false, LockTupleKeyShare, &lock);
	if (lock.any)
	{
		begin_restore_locked(&w, &top, &lock, xid);
		finish_restore_locked(&w, &v, below, buffer);
	}
	else
		ip_restore_found(&top, &v, below, buffer);
	UnlockReleaseBuffer(buffer);
}

/* Lock the data page of a row that is to be changed; false if it is none. */
static bool
lock_page(Relation rel, BlockNumber block, Buffer *buffer)
{
	*buffer = ip_read_buffer(rel, block);
	LockBuffer(*buffer, BUFFER_LOCK_EXCLUSIVE);
	return ip_page_kind(rel, block, BufferGetPage(*buffer)) == IP_PAGE_DATA;
}

/* Prune the page thoroughly, if it has to be before a new xid is written to it. */
static bool
renew_base(Relation rel, BlockNumber block, Buffer buffer)
{
	if (!ip_page_base_is_old(BufferGetPage(buffer)))
		return true;
	ip_prune_page(rel, buffer, IP_XID_NONE);
	return ip_page_kind(rel, block, BufferGetPage(buffer)) == IP_PAGE_DATA;
}

IpFound
ip_modify_begin(IpVersion *v, Relation rel, const ItemPointerData *tid, TransactionId xid,
				Buffer *buffer)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	OffsetNumber off = ItemPointerGetOffsetNumberNoCheck(tid);
	bool		pruned = false;

	if (!lock_page(rel, block, buffer) || !renew_base(rel, block, *buffer))
		return IPF_DELETED;
	for (;;)
	{
		Page		page = BufferGetPage(*buffer);
		IpvResult	result = ip_version_begin(v, rel, block, page, off);

		if (result == IPV_NONE)
			return IPF_DELETED;
		if (result == IPV_STALE)
			ip_version_missing(v);
		if (ip_version_status(v) == IP_XID_ABORTED)
		{
			if (restore(v, *buffer, xid))
				continue;
			UnlockReleaseBuffer(*buffer);
			CHECK_FOR_INTERRUPTS();
			restore_far(rel, tid, xid);
			if (!lock_page(rel, block, buffer))
				return IPF_DELETED;
		}
		else if (!pruned && !(v->top_state & IP_ROW_VERSION) &&
				 ip_page_free(page) < IP_VERSION_BLOCK_SZ)
		{
			ip_prune_page_opt(rel, *buffer);
			pruned = true;
		}
		else
			return IPF_OK;
	}
}

IpFound
ip_modify_classify(IpVersion *v, Snapshot snapshot, CommandId cid, const IpTarget *target)
{
	switch (ip_version_status(v))
	{
		case IP_XID_MINE:
			if (ip_version_cid(v) >= cid)
				return (v->state & IP_ROW_INSERTED) ? IPF_INVISIBLE : IPF_SELF;
			return (v->state & IP_ROW_DELETED) ? IPF_INVISIBLE : IPF_OK;
		case IP_XID_RUNNING:
			return (v->state & IP_ROW_INSERTED) ? IPF_INVISIBLE : IPF_RUNNING;
		case IP_XID_COMMITTED:
			if (v->state & IP_ROW_DELETED)
				return (v->state & IP_ROW_MOVED) ? IPF_MOVED : IPF_DELETED;
			if (snapshot && IsMVCCSnapshot(snapshot) &&
				!ip_version_change_visible(v, snapshot) && !ip_version_is_target(v, target))
				return IPF_UPDATED;
			return IPF_OK;
		case IP_XID_ABORTED:
		case IP_XID_FORGOTTEN:
			break;
	}
	return IPF_AGAIN;
}

/* Stands on versions below the one that is asked about. */
static IpVersion below;

IpvResult
ip_modify_below_is_newer(IpVersion *v, Snapshot snapshot, const IpTarget *target, bool *newer)
{
	IpXidStatus status;
	IpvResult	result;

	*newer = false;
	if (snapshot == NULL || !IsMVCCSnapshot(snapshot))
		return IPV_OK;
	ip_version_begin_below(&below, v);
	while ((below.state & IP_ROW_DELETED) ||
		   (status = ip_version_status(&below)) == IP_XID_RUNNING || status == IP_XID_ABORTED)
	{
		CHECK_FOR_INTERRUPTS();
		result = ip_version_older(&below);
		if (result != IPV_OK)	/* none: inserted by the running transaction */
			return result == IPV_NONE ? IPV_OK : result;
	}
	*newer = !ip_version_change_visible(&below, snapshot) && !ip_version_is_target(&below, target);
	return below.forgotten ? IPV_STALE : IPV_OK;
}

IpvResult
ip_modify_keys_changed(IpVersion *v, Snapshot snapshot, bool *changed)
{
	IpvResult	result;

	*changed = false;
	if (snapshot == NULL || !IsMVCCSnapshot(snapshot))
		return IPV_OK;
	ip_version_begin_below(&below, v);
	while (!*changed && !(below.state & IP_ROW_INSERTED) &&
		   !ip_version_change_visible(&below, snapshot))
	{
		CHECK_FOR_INTERRUPTS();
		result = ip_version_load_rec(&below);
		if (result == IPV_OK)
		{
			*changed = (below.rec.flags & IP_REC_KEYS) &&
				ip_version_status(&below) == IP_XID_COMMITTED;
			result = ip_version_older(&below);
		}
		if (result != IPV_OK)	/* none: visible to all */
			return result == IPV_NONE ? IPV_OK : result;
	}
	return IPV_OK;
}

IpvResult
ip_modify_inserter(IpVersion *v, IpXid *inserter)
{
	IpvResult	result = IPV_OK;

	*inserter = IP_XID_NONE;
	ip_version_begin_below(&below, v);
	while (result == IPV_OK && !(below.state & IP_ROW_INSERTED))
	{
		CHECK_FOR_INTERRUPTS();
		result = ip_version_older(&below);
	}
	if (result == IPV_OK)
		*inserter = below.xid;
	return result == IPV_NONE ? IPV_OK : result;
}

void
ip_modify_failure(IpVersion *v, IpFound found, const ItemPointerData *tid, TM_FailureData *tmfd)
{
	tmfd->ctid = *tid;
	tmfd->xmax = (TransactionId) v->xid;
	tmfd->cmax = found == IPF_SELF ? ip_version_cid(v) : InvalidCommandId;
	if ((v->state & IP_ROW_MOVED) && ip_version_load_rec(v) == IPV_OK)
	{
		if (v->rec.flags & IP_REC_PARTITION)
			ItemPointerSetMovedPartitions(&tmfd->ctid);
		else
			tmfd->ctid = v->rec.forward;
	}
}

/* ---- writing ------------------------------------------------------------------------ */

void
ip_write_same(IpRowWrite *w, IpVersion *v, uint8 info, TransactionId xid)
{
	ip_version_unlock(v);
	memset(w, 0, sizeof(*w));
	w->info = info;
	w->xid = xid;
	w->state = v->state & (IP_ROW_INSERTED | IP_ROW_DELETED | IP_ROW_MOVED);
	w->hdr = v->hdr;
	w->body = w->from = v->body;
	w->bodylen = w->fromlen = v->bodylen;
	w->saved = v->saved;
}

/* May the row's version block cover the start of its body? */
static bool
may_overlay(IpVersion *v)
{
	return !(v->top_state & IP_ROW_VERSION) || (v->top_state & IP_ROW_OVERLAID);
}

bool
ip_write_fits(IpVersion *v, Page page, uint32 bodylen)
{
	uint32		have = v->top_itemlen + ip_page_free(page);

	return ip_item_size(IP_ROW_VERSION, bodylen) <= have ||
		(may_overlay(v) && ip_item_size(IP_ROW_VERSION | IP_ROW_OVERLAID, bodylen) <= have);
}

/*
 * Visible to all, so that nobody needs to know who made it: it was so already
 * when its lock record was recycled, or it is so old that no standby's snapshot
 * can be older.
 */
static bool
is_final(IpVersion *v)
{
	return IpXidIsFinal(v->xid) || v->ptr.block == InvalidBlockNumber ||
		(v->xid + MAX_PREV_AGE < ip_next_xid() && !(v->state & IP_ROW_DELETED) &&
		 ip_xid_removable(v->rel, v->xid) && ip_version_status(v) == IP_XID_COMMITTED);
}

/* The version before, for an undo record; nothing if all see it anyway. */
static void
set_prev(IpUndoSpec *spec, IpVersion *v, bool final)
{
	if (final)
		return;
	spec->prev_xid = v->xid;
	spec->prev_inserted = (v->state & IP_ROW_INSERTED) != 0;
	spec->prev_ptr = v->ptr;
}

/* Append the change's record and the lock record; *off is that of the topmost. */
static void
put_undo(IpWriter *ops, IpVersion *v, IpRowWrite *w, bool final, bool overlaid,
		 BlockNumber undo_block, OffsetNumber *off)
{
	const uint8 *saved = overlaid ? w->body : NULL;
	OffsetNumber row_off = ItemPointerGetOffsetNumber(&v->tid);
	IpUndoSpec	lock = {.kind = IP_UNDO_LOCK};

	if (w->has_undo)
	{
		set_prev(&w->undo, v, final || w->cut);
		w->undo.saved = saved;
		ip_undo_put(ops, undo_block, w->xid, row_off, &w->undo);
	}
	if (!w->lock.any)
		return;
	if (w->has_undo)
	{
		lock.prev_xid = ip_xid_full(w->xid);
		lock.prev_ptr.block = undo_block;
		lock.prev_ptr.off = (*off)++;
	}
	else
		set_prev(&lock, v, final);
	lock.flags = w->lock.multi ? IP_REC_MULTI : 0;
	lock.saved = saved;
	lock.locker = w->lock.locker;
	lock.mode = w->lock.mode;
	ip_undo_put(ops, undo_block, w->xid, row_off, &lock);
	ip_op_newest(ops, w->lock.newest);
}

static void
put_row(IpWriter *ops, IpVersion *v, IpRowWrite *w, bool final, bool overlaid,
		OffsetNumber undo_off)
{
	IpRowOp		op = {
		.off = ItemPointerGetOffsetNumber(&v->tid), .hdr = w->hdr,
		.state = w->state | IP_ROW_VERSION,
		.own_xid = w->has_undo,
		.xid = final ? FrozenTransactionId : (TransactionId) v->xid,
		.undo_off = undo_off,
		.base = w->saved ? IP_BASE_OVERLAID : IP_BASE_ROW, .saved = w->saved,
		.from = w->from, .fromlen = w->fromlen, .body = w->body, .bodylen = w->bodylen
	};

	if (overlaid)
		op.state |= IP_ROW_OVERLAID;
	if (w->lock.any)
		op.state |= IP_ROW_LOCKED;
	ip_op_row(ops, &op);
}

void
ip_write_row(IpVersion *v, Buffer buffer, IpRowWrite *w)
{
	Page		page = BufferGetPage(buffer);
	uint32		have = v->top_itemlen + ip_page_free(page);
	IpFormed	newrow = {w->newhdr, (uint8 *) w->newbody, w->newbodylen};
	uint32		undo_size = 0;
	OffsetNumber undo_off;
	OffsetNumber top_off;
	BlockNumber undo_block;
	Buffer		undo;
	IpChange	change;
	IpWriter   *ops;
	IpInserter	inserter;
	bool		overlaid;
	bool		final;			/* once for row and undo: the horizon moves */

	Assert(w->has_undo || w->lock.any);
	ip_version_unlock(v);
	final = is_final(v);
	if (w->newbuffer == buffer)
		have -= IP_ROW_MIN_ITEM + w->newbodylen + sizeof(ItemIdData);
	overlaid = ip_item_size(IP_ROW_VERSION, w->bodylen) > have;
	Assert(!overlaid || may_overlay(v));
	if (w->has_undo)
		undo_size += IP_UNDO_SPACE(w->undo.deltalen);
	if (w->lock.any)
		undo_size += IP_UNDO_SPACE(0);
	undo = ip_undo_begin(v->rel, undo_size, &undo_off);
	undo_block = BufferGetBlockNumber(undo);

	top_off = undo_off + (w->has_undo && w->lock.any ? 1 : 0);
	ip_change_begin(&change, v->rel, w->info, w->xid);
	change.conflict = w->conflict;
	change.replay = w->replay;
	change.logical = w->logical;
	ops = ip_change_block(&change, buffer, false);
	put_row(ops, v, w, final, overlaid, top_off);
	if (w->newbuffer == buffer)
	{
		inserter = ip_put_inserter(ops, page, false, w->xid, w->cid);
		ip_put_new_row(ops, inserter, w->newoff, &newrow, w->cid);
	}
	ops = ip_change_block(&change, undo, false);
	put_undo(ops, v, w, final, overlaid, undo_block, &undo_off);
	if (BufferIsValid(w->newbuffer) && w->newbuffer != buffer)
	{
		ops = ip_change_block(&change, w->newbuffer, w->newinit);
		inserter = ip_put_inserter(ops, BufferGetPage(w->newbuffer), w->newinit, w->xid, w->cid);
		ip_put_new_row(ops, inserter, w->newoff, &newrow, w->cid);
	}
	ip_change_apply(&change);
	UnlockReleaseBuffer(undo);
	w->top.block = undo_block;
	w->top.off = top_off;
}

void
ip_write_lock(IpVersion *v, Buffer buffer, TransactionId xid, const IpLockState *lock,
			  ItemPointerData *version_tid)
{
	IpRowWrite	w;

	ip_write_same(&w, v, IP_XLOG_LOCK, xid);
	w.lock = *lock;
	ip_write_row(v, buffer, &w);
	if (version_tid)
		ItemPointerSet(version_tid, w.top.block, w.top.off + IP_VERSION_TID_OFFSET);
}
