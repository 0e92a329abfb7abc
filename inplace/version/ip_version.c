/*-------------------------------------------------------------------------
 * ip_version.c
 *	  The versions of one row, newest first, and what a snapshot sees.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/xact.h"
#include "utils/memutils.h"

#include "ip_delta.h"
#include "ip_rel.h"
#include "ip_slot.h"
#include "ip_undo.h"
#include "ip_version.h"
#include "ip_xid.h"

void
ip_version_missing(IpVersion *v)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("undo record (%u,%u) of row (%u,%u) of relation \"%s\" is missing",
					v->ptr.block, v->ptr.off,
					ItemPointerGetBlockNumber(&v->tid),
					ItemPointerGetOffsetNumber(&v->tid),
					RelationGetRelationName(v->rel)),
			 ip_page_check_hint(v->rel)));
}

void
ip_version_damaged(IpVersion *v)
{
	v->damaged = true;
	if (!v->soft)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("corrupted version of row (%u,%u) of relation \"%s\"",
						ItemPointerGetBlockNumber(&v->tid),
						ItemPointerGetOffsetNumber(&v->tid),
						RelationGetRelationName(v->rel)),
				 ip_page_check_hint(v->rel)));
}

void
ip_version_target(Relation rel, const ItemPointerData *tid, IpTarget *target)
{
	static uint8 buf[BLCKSZ];
	IpUndoRec	rec;
	IpPtr		ptr;

	OffsetNumber kind =
		ItemPointerGetOffsetNumberNoCheck(tid) & IP_TID_KIND_MASK;

	target->row = *tid;
	target->exact = ip_tid_is_version(tid);
	target->inserted = false;
	target->next_xid = IP_XID_NONE;
	if (!target->exact)
		return;
	ptr.block = ItemPointerGetBlockNumberNoCheck(tid);
	ptr.off = ItemPointerGetOffsetNumberNoCheck(tid) - kind;
	if (kind == IP_TID_INSERTED)
	{
		target->inserted = true;
		ItemPointerSet(&target->row, ptr.block, ptr.off);
		return;
	}
	if (!ip_undo_read(rel, ptr, NULL, IP_XID_NONE, NULL, buf, &rec))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("undo record (%u,%u) of a row version of relation \"%s\" is missing",
						ptr.block, ptr.off, RelationGetRelationName(rel))));
	target->row = rec.row;
	if (kind == IP_TID_ABOVE)
	{
		target->xid = rec.xid;
		target->ptr = ptr;
		return;
	}
	target->xid = rec.prev_xid;
	target->ptr = rec.prev_ptr;
	if (rec.kind == IP_UNDO_UPDATE)
	{
		target->next_xid = rec.xid;
		target->next_ptr = ptr;
	}
}

void
ip_version_tid_below(IpPtr ptr, ItemPointer tid)
{
	ItemPointerSet(tid, ptr.block, ptr.off + IP_TID_BELOW);
}

void
ip_version_tid(const IpVersion *v, ItemPointer tid)
{
	Assert(!IpXidIsFrozen(v->xid) && !(v->state & IP_ROW_DELETED));
	if (v->state & IP_ROW_INSERTED)
		ItemPointerSet(tid, ItemPointerGetBlockNumber(&v->tid),
					   ItemPointerGetOffsetNumber(&v->tid) + IP_TID_INSERTED);
	else
		ItemPointerSet(tid, v->ptr.block, v->ptr.off + IP_TID_ABOVE);
}

bool
ip_version_is_target(IpVersion *v, const IpTarget *target)
{
	if (target->inserted)
		return (v->state & IP_ROW_INSERTED) || IpXidIsFrozen(v->xid);
	return target->exact && v->xid == target->xid &&
		IpPtrEquals(v->ptr, target->ptr);
}

MemoryContext
ip_version_work_begin(void)
{
	static MemoryContext context;

	if (context == NULL)
		context = AllocSetContextCreate(TopMemoryContext, "inplace work",
										ALLOCSET_DEFAULT_SIZES);
	/* its contents are needed until the call ends, and calls do not nest */
	Assert(CurrentMemoryContext != context);
	MemoryContextReset(context);
	return MemoryContextSwitchTo(context);
}

/* Load an overlaid row's first bytes from the newest record of its chain. */
static IpvResult
load_overlaid(IpVersion *v, const IpRow *row)
{
	const uint8 *saved = NULL;
	uint8	   *body = v->bodybuf[v->bodycur];

	Assert(v->state & IP_ROW_OVERLAID);
	if (ip_version_load_rec(v) == IPV_OK)
		saved = v->rec.saved;
	if (saved == NULL || row->bodylen > BLCKSZ)
		return IPV_STALE;
	memcpy(v->savedbuf, saved, IP_VERSION_BLOCK_SZ);
	v->saved = v->savedbuf;
	ip_row_uncover(row, saved, body);
	v->body = body;
	return IPV_OK;
}

static IpvResult
begin(IpVersion *v, Relation rel, BlockNumber block, Page page,
	  OffsetNumber off)
{
	IpRow		row;

	v->damaged = v->forgotten = false;
	if (!ip_row_read(rel, block, page, off, &row))
		return IPV_NONE;
	v->rel = rel;
	ItemPointerSet(&v->tid, block, off);
	v->page = page;
	v->changed = row.changed;
	v->hdr = row.hdr;
	v->state = v->top_state = row.state;
	v->top_itemlen = ItemIdGetLength(PageGetItemId(page, off));
	v->xid = v->top_xid = row.xid;
	v->ptr = v->top_ptr = row.ptr;
	v->body = row.body;
	v->bodylen = row.bodylen;
	v->end_xid = IP_XID_NONE;
	v->end_cid = 0;
	v->steps = v->mark_at = 0;
	v->mark_xid = IP_XID_NONE;
	v->rec_loaded = false;
	v->lockers_known = false;
	v->saved = NULL;
	v->bodycur = 0;

	/*
	 * I3: without a version block, it is visible to all, or the page's
	 * default inserter or default changer made it
	 */
	Assert((v->state & (IP_ROW_VERSION | IP_ROW_CHANGED)) || v->state == 0 ||
		   v->state == IP_ROW_INSERTED);
	if (row.state & IP_ROW_OVERLAID)
		return load_overlaid(v, &row);
	return IPV_OK;
}

static IpvResult
begin_locked(IpVersion *v, Relation rel, BlockNumber block, Page page,
			 OffsetNumber off, bool soft)
{
	Assert(ip_page_is_locked(page, false));
	v->soft = soft;
	v->limit = IP_MAX_LOCKED_STEPS;
	v->locked = true;
	v->horizon = ip_xid_horizon();
	return begin(v, rel, block, page, off);
}

IpvResult
ip_version_begin(IpVersion *v, Relation rel, BlockNumber block, Page page,
				 OffsetNumber off)
{
	return begin_locked(v, rel, block, page, off, false);
}

IpvResult
ip_version_begin_soft(IpVersion *v, Relation rel, BlockNumber block, Page page,
					  OffsetNumber off)
{
	return begin_locked(v, rel, block, page, off, true);
}

IpvResult
ip_version_begin_copy(IpVersion *v, Relation rel, BlockNumber block, Page copy,
					  OffsetNumber off, IpXid horizon)
{
	Assert(!ip_page_in_buffers(copy));	/* I17 */
	v->soft = false;
	v->limit = PG_UINT64_MAX;
	v->locked = false;
	v->horizon = horizon;
	return begin(v, rel, block, copy, off);
}

void
ip_version_begin_below(IpVersion *below, IpVersion *v)
{
	memcpy(below, v, offsetof(IpVersion, rec_loaded));
	below->body = NULL;
	below->rec_loaded = below->lockers_known = false;
	below->saved = NULL;
}

void
ip_version_fork(IpVersion *below, IpVersion *v)
{
	ip_version_begin_below(below, v);
	below->body = v->body;
	below->bodycur = 0;
	ip_version_own_body(below);
}

bool
ip_version_is_newest(const IpVersion *v, Page page)
{
	IpRow		row;

	return ip_row_read(v->rel, ItemPointerGetBlockNumber(&v->tid), page,
					   ItemPointerGetOffsetNumber(&v->tid), &row) &&
		row.state == v->top_state && row.xid == v->top_xid &&
		IpPtrEquals(row.ptr, v->top_ptr);
}

void
ip_version_let_go(IpVersion *v)
{
	Assert(v->locked);
	ip_version_own_body(v);
	v->page = NULL;
	v->limit = PG_UINT64_MAX;
	v->locked = false;
}

void
ip_version_own_body(IpVersion *v)
{
	Assert(v->body != NULL);
	if (v->body != v->bodybuf[v->bodycur])
	{
		memcpy(v->bodybuf[v->bodycur], v->body, v->bodylen);
		v->body = v->bodybuf[v->bodycur];
	}
}

bool
ip_version_fetch_newest(IpVersion *v, Relation rel, const ItemPointerData *tid)
{
	for (int tries = 0; tries < IP_MAX_STALE; tries++)
	{
		IpvResult	result = ip_version_fetch(v, rel, tid);

		if (result != IPV_STALE)
			return result == IPV_OK;
		CHECK_FOR_INTERRUPTS();
	}
	ip_version_missing(v);
}

bool
ip_version_store_frozen(Relation rel, BlockNumber block, Page page,
						OffsetNumber off, TupleTableSlot *slot)
{
	static const IpVersionId frozen_id = {.xmin = FrozenTransactionId};
	const uint8 *item;
	ItemPointerData tid;
	uint16		stored;
	ItemId		lp;

	Assert(ip_page_is_locked(page, false));
	if (off < FirstOffsetNumber || off > PageGetMaxOffsetNumber(page) ||
		!ip_row_is_frozen(page, off))
		return false;
	lp = PageGetItemId(page, off);
	item = (const uint8 *) page + ip_item_start(lp);
	memcpy(&stored, item, sizeof(stored));
	ItemPointerSet(&tid, block, off);
	ip_slot_store(slot, IpHdrLoad(stored), item + IP_ROW_HDRSZ,
				  ItemIdGetLength(lp) - IP_ROW_HDRSZ, &tid, &frozen_id);
	slot->tts_tableOid = RelationGetRelid(rel);
	return true;
}

/*
 * Fetch the row into the slot, if there is one and the row is frozen; else
 * begin with v there.
 */
static IpvResult
fetch(IpVersion *v, Relation rel, const ItemPointerData *tid, bool soft,
	  TupleTableSlot *slot, bool *frozen)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	OffsetNumber off = ItemPointerGetOffsetNumberNoCheck(tid);
	Buffer		buffer = ip_rel_read(rel, block);
	Page		page = BufferGetPage(buffer);
	IpvResult	result = IPV_NONE;

	v->damaged = v->forgotten = false;
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (ip_page_kind(rel, block, page) == IP_PAGE_DATA)
	{
		if (slot != NULL)
			*frozen = ip_version_store_frozen(rel, block, page, off, slot);
		if (slot == NULL || !*frozen)
			result = begin_locked(v, rel, block, page, off, soft);
	}
	if (result == IPV_OK)
		ip_version_let_go(v);
	UnlockReleaseBuffer(buffer);
	return result;
}

IpvResult
ip_version_fetch(IpVersion *v, Relation rel, const ItemPointerData *tid)
{
	return fetch(v, rel, tid, false, NULL, NULL);
}

IpvResult
ip_version_fetch_unless_frozen(IpVersion *v, Relation rel,
							   const ItemPointerData *tid, TupleTableSlot *slot,
							   bool *frozen)
{
	*frozen = false;
	return fetch(v, rel, tid, false, slot, frozen);
}

/* Read the record at v->ptr, of a change by xid; false if it is not there. */
static bool
read_undo(IpVersion *v, IpXid xid, uint8 *buf, IpUndoRec *rec)
{
	const char *problem;
	bool		found;

	if (!v->soft)
		return ip_undo_read(v->rel, v->ptr, &v->tid, xid, v->page, buf, rec);
	found = ip_undo_find(v->rel, v->ptr, &v->tid, xid, v->page, true, buf, rec,
						 &problem);
	v->damaged |= problem != NULL;
	return found;
}

IpXidStatus
ip_version_status(IpVersion *v)
{
	IpXidStatus status;

	if (IpXidIsFrozen(v->xid))
		return IP_STATUS_COMMITTED;
	status = ip_xid_status(v->xid, v->horizon);
	if (likely(status != IP_STATUS_FORGOTTEN))
		return status;
	if (v->locked)
	{
		v->horizon = ip_xid_horizon();
		Assert(v->xid < v->horizon);	/* I14 */
		return IP_STATUS_COMMITTED;
	}
	v->forgotten = true;
	return IP_STATUS_ABORTED;
}

IpvResult
ip_version_load_rec(IpVersion *v)
{
	if (v->forgotten)
		return IPV_STALE;
	if (v->rec_loaded)
	{
		Assert(v->rec.xid == v->xid);
		return IPV_OK;
	}
	if (IpXidIsFrozen(v->xid) || (v->state & IP_ROW_INSERTED))
		return IPV_NONE;
	if (v->state & IP_ROW_CHANGED)
	{
		Assert(v->state & IP_ROW_DELETED);
		v->rec = (IpUndoRec)
		{
			.kind = IP_UNDO_DELETE,.xid = v->xid,.row = v->tid,
				.cid = v->ptr.block,
				.flags = !(v->state & IP_ROW_MOVED) || v->changed.keys ?
				IP_REC_KEYS : 0,
				.prev_xid = v->changed.inserter,
				.prev_ptr = ip_ptr_cid(v->changed.inserter_cid)
		};
		if (!IpXidIsFrozen(v->rec.prev_xid))
		{
			v->rec.flags |= IP_REC_PREV | IP_REC_PREV_INSERTED;
			v->rec.prev_inserted = true;
		}
		if (v->state & IP_ROW_MOVED)
		{
			v->rec.flags |= IP_REC_FORWARD;
			v->rec.forward = v->changed.forward;
		}
		v->rec_loaded = true;
		return IPV_OK;
	}
	if (!read_undo(v, v->xid, v->recbuf, &v->rec) || v->rec.xid != v->xid)
		return IPV_STALE;
	v->rec_loaded = true;
	return IPV_OK;
}

bool
ip_version_skip(IpVersion *v, int which)
{
	static const uint8 zeros[BLCKSZ];
	IpUndoSkip	skip = v->rec.skip;
	IpXid		xid = v->xid;
	IpPtr		ptr = v->ptr;
	uint8		state = v->state;

	Assert(v->rec_loaded && v->rec.has_skip && which < skip.n);
	v->xid = skip.xid[which];
	v->ptr = skip.ptr[which];
	v->state = IP_ROW_VERSION;
	v->rec_loaded = false;
	if (ip_version_load_rec(v) == IPV_OK && v->rec.has_skip &&
		v->rec.skip.index < skip.index && v->rec.skip.newlen <= BLCKSZ)
	{
		if (v->body != NULL)
		{
			v->body = zeros;
			v->bodylen = v->rec.skip.newlen;
		}
		return true;
	}
	v->xid = xid;
	v->ptr = ptr;
	v->state = state;
	v->rec_loaded = false;
	return false;
}

/*
 * Returns whether xid, which is not ours, has aborted or, if there is a
 * snapshot, is not seen by it.
 */
static bool
is_hidden(IpVersion *v, IpXid xid, Snapshot snapshot)
{
	if (IpXidIsFrozen(xid) ||
		TransactionIdIsCurrentTransactionId((TransactionId) xid))
		return false;
	return (snapshot != NULL && ip_xid_in_snapshot(xid, snapshot)) ||
		ip_xid_status(xid, v->horizon) == IP_STATUS_ABORTED;
}

void
ip_version_skip_hidden(IpVersion *v, Snapshot snapshot)
{
	while (ip_version_load_rec(v) == IPV_OK && v->rec.has_skip &&
		   v->steps < v->limit)
	{
		IpXidStatus status = ip_version_status(v);
		int			which = v->rec.skip.n - 1;

		if (status == IP_STATUS_MINE || v->forgotten)
			return;
		while (which >= 0 &&
			   !is_hidden(v, v->rec.skip.xid[which],
						  status == IP_STATUS_ABORTED ? NULL : snapshot))
			which--;
		if (which < 0 || !ip_version_skip(v, which))
			return;
		v->steps++;
		if (!v->locked)
			CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Count a step.  A chain may have any length, but must not contain a cycle.
 * By Brent's algorithm, the versions with numbers 1, 2, 4, ... are remembered,
 * each until the next, and no later version may be equal.  (Testing that xids
 * do not increase would be wrong: after a subtransaction, its parent's smaller
 * xid may come on top.)
 */
static bool
note_step(IpVersion *v)
{
	if (v->xid == v->mark_xid && IpPtrEquals(v->ptr, v->mark_ptr))
	{
		if (!v->soft)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("version chain of row (%u,%u) of relation \"%s\" does not end",
							ItemPointerGetBlockNumber(&v->tid),
							ItemPointerGetOffsetNumber(&v->tid),
							RelationGetRelationName(v->rel)),
					 ip_page_check_hint(v->rel)));
		v->damaged = true;
		return false;
	}
	if (v->steps >= v->mark_at)
	{
		v->mark_xid = v->xid;
		v->mark_ptr = v->ptr;
		v->mark_at = v->mark_at == 0 ? 1 : 2 * v->mark_at;
	}
	v->steps++;
	return true;
}

IpvResult
ip_version_older(IpVersion *v)
{
	IpvResult	result = ip_version_load_rec(v);

	if (result != IPV_OK)
		return result;
	if (v->steps >= v->limit)
		return IPV_FAR;
	/* I17: the page is not locked, or the limit holds */
	Assert(v->limit == IP_MAX_LOCKED_STEPS || !ip_page_in_buffers(v->body));
	if (!note_step(v))
		return IPV_STALE;
	if (v->rec.kind == IP_UNDO_UPDATE && v->body != NULL)
	{
		ByteReader	r = {v->rec.delta, v->rec.delta + v->rec.deltalen, false};
		int			to = 1 - v->bodycur;
		int			len = ip_delta_apply(&r, v->body, v->bodylen,
										 v->bodybuf[to], BLCKSZ);

		if (r.p != r.end)
			len = -1;
		if (len < 0 && v->soft)
		{
			v->damaged = true;
			return IPV_STALE;
		}
		if (len < 0)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("undo record (%u,%u) of relation \"%s\" does not fit its row (%u,%u)",
							v->ptr.block, v->ptr.off,
							RelationGetRelationName(v->rel),
							ItemPointerGetBlockNumber(&v->tid),
							ItemPointerGetOffsetNumber(&v->tid))));
		v->bodycur = to;
		v->body = v->bodybuf[to];
		v->bodylen = len;
	}
	if (v->rec.flags & IP_REC_HDR)
		v->hdr = v->rec.hdr;
	v->end_xid = v->xid;
	v->end_cid = v->rec.cid;
	v->xid = v->rec.prev_xid;
	v->ptr = v->rec.prev_ptr;
	v->state = IpXidIsFrozen(v->xid) ? 0 : IP_ROW_VERSION;
	if (v->rec.flags & IP_REC_PREV_INSERTED)
		v->state |= IP_ROW_INSERTED;
	v->rec_loaded = false;
	return IPV_OK;
}

IpvResult
ip_version_skip_aborted(IpVersion *v)
{
	while (ip_version_status(v) == IP_STATUS_ABORTED)
	{
		IpvResult	result;

		if ((v->state & IP_ROW_INSERTED) && !v->forgotten)
			return IPV_NONE;
		ip_version_skip_hidden(v, NULL);
		result = ip_version_older(v);
		if (result != IPV_OK)
			return result;
		CHECK_FOR_INTERRUPTS();
	}
	return IPV_OK;
}

IpvResult
ip_version_find_far(IpVersion *v, Relation rel, const ItemPointerData *tid,
					bool soft, Buffer *buffer)
{
	IpvResult	result;
	bool		same;

	Assert(ip_page_none_is_locked());
	CompatInjectionPoint("inplace-far");
	result = fetch(v, rel, tid, soft, NULL, NULL);

	/*
	 * a change that has not aborted has been made in the meantime: there is
	 * nothing to pass
	 */
	if (result != IPV_OK || ip_version_status(v) != IP_STATUS_ABORTED)
		return IPV_STALE;
	result = ip_version_skip_aborted(v);
	CompatInjectionPoint("inplace-far-found");
	*buffer = ip_rel_read(rel, ItemPointerGetBlockNumberNoCheck(tid));
	LockBuffer(*buffer, BUFFER_LOCK_EXCLUSIVE);
	same = ip_page_kind(rel, BufferGetBlockNumber(*buffer),
						BufferGetPage(*buffer)) == IP_PAGE_DATA &&
		ip_version_is_newest(v, BufferGetPage(*buffer));
	v->locked = same;
	v->page = same ? BufferGetPage(*buffer) : NULL;
	if (same && result != IPV_STALE)
		return result;
	UnlockReleaseBuffer(*buffer);
	/* unless undo that the row needs is missing */
	if (same && !v->forgotten)
	{
		if (!v->soft)
			ip_version_missing(v);
		v->damaged = true;
	}
	return IPV_STALE;
}

CommandId
ip_version_cid(IpVersion *v)
{
	Assert(ip_version_status(v) == IP_STATUS_MINE);
	if (v->state & IP_ROW_INSERTED)
	{
		/* a speculative row is not yet visible to its own transaction */
		if (v->hdr & IP_HDR_SPECULATIVE)
			return InvalidCommandId;
		return (CommandId) v->ptr.block;
	}
	/* records of our own changes cannot be gone */
	if (ip_version_load_rec(v) != IPV_OK)
		ip_version_missing(v);
	return v->rec.cid;
}

void
ip_version_id(IpVersion *v, IpVersionId *id)
{
	id->xmin = IpXidIsFrozen(v->xid) ? FrozenTransactionId :
		(TransactionId) v->xid;
	id->cmin = 0;
	if (v->state & IP_ROW_INSERTED)
		id->cmin = (CommandId) v->ptr.block;
	else if (v->rec_loaded)
		id->cmin = v->rec.cid;
	id->ptr = v->ptr;
	id->xmax = (TransactionId) v->end_xid;
	id->cmax = v->end_xid != IP_XID_NONE ? v->end_cid : id->cmin;
}

void
ip_version_to_slot(IpVersion *v, TupleTableSlot *slot)
{
	IpVersionId id;

	Assert(v->body != NULL);
	ip_version_id(v, &id);
	ip_slot_store(slot, v->hdr, v->body, v->bodylen, &v->tid, &id);
	slot->tts_tableOid = RelationGetRelid(v->rel);
}
