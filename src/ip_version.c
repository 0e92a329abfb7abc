/*-------------------------------------------------------------------------
 * ip_version.c
 *	  The versions of one row, newest first, and what a snapshot sees.
 *-------------------------------------------------------------------------
 */
#include "ip_compat.h"

#include "access/multixact.h"
#include "access/subtrans.h"
#include "access/xact.h"
#include "storage/predicate.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "ip_space.h"
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
					ItemPointerGetBlockNumber(&v->tid), ItemPointerGetOffsetNumber(&v->tid),
					RelationGetRelationName(v->rel)),
			 errhint("Run inplace_check('%s') to find all damage.",
					 RelationGetRelationName(v->rel))));
}

void
ip_version_damaged(IpVersion *v)
{
	v->damaged = true;
	if (!v->soft)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("corrupted version of row (%u,%u) of relation \"%s\"",
						ItemPointerGetBlockNumber(&v->tid), ItemPointerGetOffsetNumber(&v->tid),
						RelationGetRelationName(v->rel)),
				 errhint("Run inplace_check('%s') to find all damage.",
						 RelationGetRelationName(v->rel))));
}

void
ip_version_target(Relation rel, const ItemPointerData *tid, IpTarget *target)
{
	static uint8 buf[BLCKSZ];
	IpUndoRec	rec;
	IpPtr		ptr;

	target->row = *tid;
	target->exact = ip_tid_is_version(tid);
	if (!target->exact)
		return;
	ptr.block = ItemPointerGetBlockNumberNoCheck(tid);
	ptr.off = ItemPointerGetOffsetNumberNoCheck(tid) - IP_VERSION_TID_OFFSET;
	if (!ip_undo_read(rel, ptr, NULL, buf, &rec) || rec.kind != IP_UNDO_LOCK)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("row lock (%u,%u) of relation \"%s\" is missing",
						ptr.block, ptr.off, RelationGetRelationName(rel))));
	target->row = rec.row;
	target->xid = rec.prev_xid;
	target->ptr = rec.prev_ptr;
}

bool
ip_version_is_target(IpVersion *v, const IpTarget *target)
{
	if (!target->exact || v->xid != target->xid)
		return false;
	ip_version_unlock(v);
	return IpPtrEquals(v->ptr, target->ptr);
}

MemoryContext
ip_work_begin(void)
{
	static MemoryContext context;

	if (context == NULL)
		context = AllocSetContextCreate(TopMemoryContext, "inplace work",
										ALLOCSET_DEFAULT_SIZES);
	MemoryContextReset(context);
	return MemoryContextSwitchTo(context);
}

/* An overlaid row's first bytes are in the newest record of its chain. */
static IpvResult
load_overlaid(IpVersion *v, const IpRow *row)
{
	const uint8 *saved = NULL;
	uint8	   *body = v->bodybuf[v->bodycur];

	if (v->state & IP_ROW_LOCKED)
	{
		ip_version_unlock(v);
		if (v->has_lock)
			saved = v->lock.saved;
	}
	else if (ip_version_load_rec(v) == IPV_OK)
		saved = v->rec.saved;
	if (saved == NULL || row->bodylen > BLCKSZ)
		return IPV_STALE;
	memcpy(v->savedbuf, saved, IP_VERSION_BLOCK_SZ);
	v->saved = v->savedbuf;
	memcpy(body, saved, IP_VERSION_BLOCK_SZ);
	memcpy(body + IP_VERSION_BLOCK_SZ, row->body, row->bodylen - IP_VERSION_BLOCK_SZ);
	v->body = body;
	return IPV_OK;
}

static IpvResult
begin(IpVersion *v, Relation rel, BlockNumber block, Page page, OffsetNumber off)
{
	IpRow		row;

	v->damaged = v->forgotten = false;
	if (!ip_row_read(rel, block, page, off, &row))
		return IPV_NONE;
	v->rel = rel;
	ItemPointerSet(&v->tid, block, off);
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
	v->rec_loaded = false;
	v->has_lock = false;
	v->saved = NULL;
	v->bodycur = 0;
	if (row.state & IP_ROW_OVERLAID)
		return load_overlaid(v, &row);
	return IPV_OK;
}

IpvResult
ip_version_begin(IpVersion *v, Relation rel, BlockNumber block, Page page, OffsetNumber off)
{
	v->soft = false;
	v->limit = IP_MAX_LOCKED_STEPS;
	v->locked = true;
	v->horizon = ip_xid_horizon();
	return begin(v, rel, block, page, off);
}

IpvResult
ip_version_begin_soft(IpVersion *v, Relation rel, BlockNumber block, Page page, OffsetNumber off)
{
	v->soft = true;
	v->limit = IP_MAX_LOCKED_STEPS;
	v->locked = true;
	v->horizon = ip_xid_horizon();
	return begin(v, rel, block, page, off);
}

IpvResult
ip_version_begin_copy(IpVersion *v, Relation rel, BlockNumber block, Page copy,
					  OffsetNumber off, IpXid horizon)
{
	v->soft = false;
	v->limit = PG_UINT64_MAX;
	v->locked = false;
	v->horizon = horizon;
	return begin(v, rel, block, copy, off);
}

void
ip_version_begin_below(IpVersion *below, IpVersion *v)
{
	ip_version_unlock(v);
	memcpy(below, v, offsetof(IpVersion, rec_loaded));
	below->body = NULL;
	below->rec_loaded = below->has_lock = false;
	below->saved = NULL;
}

bool
ip_version_is_newest(const IpVersion *v, Page page)
{
	IpRow		row;

	return ip_row_read(v->rel, ItemPointerGetBlockNumber(&v->tid), page,
					   ItemPointerGetOffsetNumber(&v->tid), &row) &&
		row.state == v->top_state && row.xid == v->top_xid && IpPtrEquals(row.ptr, v->top_ptr);
}

void
ip_version_let_go(IpVersion *v)
{
	ip_version_own_body(v);
	v->limit = PG_UINT64_MAX;
	v->locked = false;
}

void
ip_version_own_body(IpVersion *v)
{
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

static IpvResult
fetch(IpVersion *v, Relation rel, const ItemPointerData *tid, bool soft)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	OffsetNumber off = ItemPointerGetOffsetNumberNoCheck(tid);
	Buffer		buffer = ip_read_buffer(rel, block);
	Page		page = BufferGetPage(buffer);
	IpvResult	result = IPV_NONE;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (ip_page_kind(rel, block, page) == IP_PAGE_DATA)
		result = soft ? ip_version_begin_soft(v, rel, block, page, off) :
			ip_version_begin(v, rel, block, page, off);
	if (result == IPV_OK)
		ip_version_let_go(v);
	UnlockReleaseBuffer(buffer);
	return result;
}

IpvResult
ip_version_fetch(IpVersion *v, Relation rel, const ItemPointerData *tid)
{
	return fetch(v, rel, tid, false);
}

/* Read the record at v->ptr; false if it is not there. */
static bool
read_undo(IpVersion *v, uint8 *buf, IpUndoRec *rec)
{
	const char *problem;
	bool		found;

	if (!v->soft)
		return ip_undo_read(v->rel, v->ptr, &v->tid, buf, rec);
	found = ip_undo_find(v->rel, v->ptr, &v->tid, buf, rec, &problem);
	v->damaged |= problem != NULL;
	return found;
}

/* Is the lock in v->lock possible?  Whoever is not soft gets an error when he looks at the lockers. */
static bool
lock_is_sound(IpVersion *v)
{
	uint32		locker = v->lock.locker;

	if (!v->soft)
		return true;
	if (v->lock.flags & IP_REC_MULTI)
		v->damaged |= !MultiXactIdIsValid(locker) || !MultiXactIdPrecedes(locker, ReadNextMultiXactId());
	else
		v->damaged |= !TransactionIdIsNormal(locker) ||
			!TransactionIdPrecedes(locker, ReadNextTransactionId());
	return !v->damaged;
}

/*
 * A lock record that is gone was not needed any more: its lockers have ended,
 * and the version under it is visible to all.  Another one of the row may have
 * come in its place; it is about a later version.
 */
void
ip_version_unlock(IpVersion *v)
{
	if (!(v->state & IP_ROW_LOCKED))
		return;
	v->state &= ~IP_ROW_LOCKED;
	v->has_lock = read_undo(v, v->lockbuf, &v->lock) &&
		v->lock.kind == IP_UNDO_LOCK &&
		(v->lock.prev_xid == v->xid ||
		 (IpXidIsFinal(v->lock.prev_xid) && IpXidIsFinal(v->xid))) && lock_is_sound(v);
	if (v->has_lock)
		v->ptr = v->lock.prev_ptr;
	else
		v->ptr.block = InvalidBlockNumber;
}

IpXidStatus
ip_version_status(IpVersion *v)
{
	IpXidStatus status = ip_xid_status(v->xid, v->horizon);

	if (likely(status != IP_XID_FORGOTTEN))
		return status;
	if (v->locked)
	{
		v->horizon = ip_xid_horizon();
		return IP_XID_COMMITTED;
	}
	v->forgotten = true;
	return IP_XID_ABORTED;
}

IpvResult
ip_version_load_rec(IpVersion *v)
{
	if (v->forgotten)
		return IPV_STALE;
	if (v->rec_loaded)
		return IPV_OK;
	if (IpXidIsFinal(v->xid) || (v->state & IP_ROW_INSERTED))
		return IPV_NONE;
	ip_version_unlock(v);
	if (v->ptr.block == InvalidBlockNumber)
		return IPV_STALE;
	if (!read_undo(v, v->recbuf, &v->rec) ||
		v->rec.kind == IP_UNDO_LOCK || v->rec.xid != v->xid)
		return IPV_STALE;
	v->rec_loaded = true;
	return IPV_OK;
}

/*
 * Count a step.  A chain may have any length, but must not lead back to where it was: by
 * Brent's algorithm, the versions with numbers 1, 2, 4, ... are remembered, each until the next,
 * and none that follows is the same.  (That xids do not increase is no such test: after a
 * subtransaction, its parent's smaller xid may come on top.)
 */
static bool
note_step(IpVersion *v)
{
	if (v->steps > 0 && v->xid == v->mark_xid && IpPtrEquals(v->ptr, v->mark_ptr))
	{
		if (!v->soft)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("version chain of row (%u,%u) of relation \"%s\" does not end",
							ItemPointerGetBlockNumber(&v->tid),
							ItemPointerGetOffsetNumber(&v->tid),
							RelationGetRelationName(v->rel)),
					 errhint("Run inplace_check('%s') to find all damage.",
							 RelationGetRelationName(v->rel))));
		v->damaged = true;
		return false;
	}
	if (v->steps == v->mark_at)
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
	if (!note_step(v))
		return IPV_STALE;
	if (v->rec.kind == IP_UNDO_UPDATE && v->body != NULL)
	{
		IpReader	r = {v->rec.delta, v->rec.delta + v->rec.deltalen, false};
		int			to = 1 - v->bodycur;
		int			len = ip_delta_apply(&r, v->body, v->bodylen, v->bodybuf[to], BLCKSZ);

		if (len < 0 && v->soft)
		{
			v->damaged = true;
			return IPV_STALE;
		}
		if (len < 0)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("undo record (%u,%u) of relation \"%s\" does not fit its row (%u,%u)",
							v->ptr.block, v->ptr.off, RelationGetRelationName(v->rel),
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
	v->state = IpXidIsFinal(v->xid) ? 0 : IP_ROW_VERSION;
	if (v->rec.flags & IP_REC_PREV_INSERTED)
		v->state |= IP_ROW_INSERTED;
	v->rec_loaded = false;
	return IPV_OK;
}

IpvResult
ip_version_skip_aborted(IpVersion *v)
{
	while (ip_version_status(v) == IP_XID_ABORTED)
	{
		IpvResult	result;

		if ((v->state & IP_ROW_INSERTED) && !v->forgotten)
			return IPV_NONE;
		result = ip_version_older(v);
		if (result != IPV_OK)
			return result;
		CHECK_FOR_INTERRUPTS();
	}
	return IPV_OK;
}

IpvResult
ip_version_find_far(IpVersion *v, Relation rel, const ItemPointerData *tid, bool soft,
					Buffer *buffer)
{
	IpvResult	result = fetch(v, rel, tid, soft);
	bool		same;

	/* a change that is not aborted has come meanwhile: there is nothing to pass */
	if (result != IPV_OK || ip_version_status(v) != IP_XID_ABORTED)
		return IPV_STALE;
	result = ip_version_skip_aborted(v);
	*buffer = ip_read_buffer(rel, ItemPointerGetBlockNumberNoCheck(tid));
	LockBuffer(*buffer, BUFFER_LOCK_EXCLUSIVE);
	same = ip_page_kind(rel, BufferGetBlockNumber(*buffer), BufferGetPage(*buffer)) == IP_PAGE_DATA &&
		ip_version_is_newest(v, BufferGetPage(*buffer));
	v->locked = same;
	if (same && result != IPV_STALE)
		return result;
	UnlockReleaseBuffer(*buffer);
	/* the row needs undo that is not there? */
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
	if (v->state & IP_ROW_INSERTED)
	{
		/* a speculative row is not visible to anything of its own yet */
		if (v->hdr & IP_HDR_SPECULATIVE)
			return InvalidCommandId;
		ip_version_unlock(v);
		if (v->ptr.block == InvalidBlockNumber)
			ip_version_missing(v);
		return (CommandId) v->ptr.block;
	}
	/* our own records cannot be gone */
	if (ip_version_load_rec(v) != IPV_OK)
		ip_version_missing(v);
	return v->rec.cid;
}

bool
ip_version_change_visible(IpVersion *v, Snapshot snapshot)
{
	if (IpXidIsFinal(v->xid))
		return true;
	if (!TransactionIdPrecedes((TransactionId) v->xid, snapshot->xmin) &&
		TransactionIdIsCurrentTransactionId((TransactionId) v->xid))
		return ip_version_cid(v) < snapshot->curcid;
	return !ip_xid_in_snapshot(v->xid, snapshot, v->horizon) &&
		ip_version_status(v) == IP_XID_COMMITTED;
}

/* Serializable transactions: somebody has written what we do not see. */
static void
note_conflict_out(IpVersion *v, Snapshot snapshot)
{
	TransactionId xid = (TransactionId) v->xid;

	if (!CheckForSerializableConflictOutNeeded(v->rel, snapshot) ||
		TransactionIdIsCurrentTransactionId(xid) ||
		ip_version_status(v) == IP_XID_ABORTED ||
		TransactionIdPrecedes(xid, TransactionXmin))
		return;
	xid = SubTransGetTopmostTransaction(xid);
	if (!TransactionIdPrecedes(xid, TransactionXmin))
		CheckForSerializableConflictOut(v->rel, xid, snapshot);
}

/* The TID of v's undo record, which stands for the version; false if it has none. */
static bool
version_tid(IpVersion *v, ItemPointer tid)
{
	if (IpXidIsFinal(v->xid) || (v->state & IP_ROW_INSERTED))
		return false;
	ip_version_unlock(v);
	if (v->ptr.block == InvalidBlockNumber)
		return false;
	ItemPointerSet(tid, v->ptr.block, v->ptr.off + IP_VERSION_TID_OFFSET);
	return true;
}

void
ip_version_lock_read(IpVersion *v, Snapshot snapshot)
{
	ItemPointerData tid;

	PredicateLockTID(v->rel, &v->tid, snapshot, (TransactionId) v->xid);
	if (version_tid(v, &tid))
		PredicateLockTID(v->rel, &tid, snapshot, (TransactionId) v->xid);
}

void
ip_version_check_write(IpVersion *v)
{
	BlockNumber block = ItemPointerGetBlockNumber(&v->tid);
	ItemPointerData tid;

	if (!IsolationIsSerializable())
		return;
	if (!version_tid(v, &tid))
	{
		CheckForSerializableConflictIn(v->rel, &v->tid, block);
		return;
	}
	CheckForSerializableConflictIn(v->rel, &tid, ItemPointerGetBlockNumber(&tid));
	CheckForSerializableConflictIn(v->rel, NULL, block);
}

static IpvResult
satisfy_mvcc(IpVersion *v, Snapshot snapshot)
{
	while (!ip_version_change_visible(v, snapshot))
	{
		IpvResult	result;

		note_conflict_out(v, snapshot);
		result = ip_version_older(v);

		if (result != IPV_OK)
			return result;
		CHECK_FOR_INTERRUPTS();
	}
	return (v->state & IP_ROW_DELETED) ? IPV_NONE : IPV_OK;
}

/* The version that is current for us: committed or our own. */
static IpvResult
satisfy_self(IpVersion *v)
{
	for (;;)
	{
		IpXidStatus status = ip_version_status(v);
		IpvResult	result;

		if (status == IP_XID_MINE || status == IP_XID_COMMITTED)
			return (v->state & IP_ROW_DELETED) ? IPV_NONE : IPV_OK;
		result = ip_version_older(v);
		if (result != IPV_OK)
			return result;
		CHECK_FOR_INTERRUPTS();
	}
}

/* The same, but changes in progress count, and the snapshot reports them. */
static IpvResult
satisfy_dirty(IpVersion *v, Snapshot snapshot)
{
	snapshot->xmin = snapshot->xmax = InvalidTransactionId;
	snapshot->speculativeToken = 0;
	for (;;)
	{
		IpXidStatus status = ip_version_status(v);
		IpvResult	result;

		if (status == IP_XID_RUNNING)
		{
			if (!(v->state & IP_ROW_INSERTED))
				snapshot->xmax = (TransactionId) v->xid;
			else
			{
				snapshot->xmin = (TransactionId) v->xid;
				if (v->hdr & IP_HDR_SPECULATIVE)
					snapshot->speculativeToken = v->ptr.block;
			}
			return (v->state & IP_ROW_DELETED) ? ip_version_older(v) : IPV_OK;
		}
		if (status != IP_XID_ABORTED)
			return (v->state & IP_ROW_DELETED) ? IPV_NONE : IPV_OK;
		result = ip_version_older(v);
		if (result != IPV_OK)
			return result;
		CHECK_FOR_INTERRUPTS();
	}
}

/* What was not rolled back, deleted rows included. */
static IpvResult
satisfy_any(IpVersion *v)
{
	IpvResult	result = ip_version_skip_aborted(v);
	IpXidStatus status;

	if (result != IPV_OK || !(v->state & IP_ROW_DELETED))
		return result;
	status = ip_version_status(v);
	result = ip_version_older(v);
	/* the undo of a committed delete is gone when the row is dead to everybody */
	return (result == IPV_STALE && status == IP_XID_COMMITTED) ? IPV_NONE : result;
}

bool
ip_state_is_dead(Relation rel, uint8 state, IpXid xid, IpXid horizon)
{
	IpXidStatus status = ip_xid_status(xid, horizon);

	if (state & IP_ROW_DELETED)
		return status == IP_XID_COMMITTED && ip_xid_removable(rel, xid);
	return (state & IP_ROW_INSERTED) && status == IP_XID_ABORTED;
}

bool
ip_deletion_is_durable(Relation rel, IpXid xid)
{
	return !RelationIsPermanent(rel) || ip_xid_commit_is_flushed(xid);
}

static bool
removable_for(Snapshot snapshot, IpXid xid)
{
	return IpXidIsFinal(xid) ||
		GlobalVisTestIsRemovableFullXid(snapshot->vistest, FullTransactionIdFromU64(xid));
}

/* What somebody may still see. */
static IpvResult
satisfy_non_vacuumable(IpVersion *v, Snapshot snapshot)
{
	if (v->state & IP_ROW_DELETED)
	{
		if (ip_version_status(v) == IP_XID_COMMITTED && removable_for(snapshot, v->xid))
			return IPV_NONE;
	}
	return satisfy_any(v);
}

IpvResult
ip_version_satisfy(IpVersion *v, Snapshot snapshot)
{
	switch (snapshot->snapshot_type)
	{
		case SNAPSHOT_MVCC:
			return satisfy_mvcc(v, snapshot);
		case SNAPSHOT_SELF:
			return satisfy_self(v);
		case SNAPSHOT_DIRTY:
			return satisfy_dirty(v, snapshot);
		case SNAPSHOT_ANY:
		case SNAPSHOT_TOAST:
			return satisfy_any(v);
		case SNAPSHOT_NON_VACUUMABLE:
			return satisfy_non_vacuumable(v, snapshot);
		case SNAPSHOT_HISTORIC_MVCC:
			break;
	}
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("inplace table \"%s\" cannot be read during logical decoding",
					RelationGetRelationName(v->rel))));
	return IPV_NONE;			/* not reached */
}

/* Does the row's deletion by xid hide it from the snapshot? */
static bool
deletion_hides(IpXid xid, Snapshot snapshot, IpXid horizon)
{
	switch (snapshot->snapshot_type)
	{
		case SNAPSHOT_MVCC:
			return !ip_xid_in_snapshot(xid, snapshot, horizon) &&
				ip_xid_status(xid, horizon) == IP_XID_COMMITTED;
		case SNAPSHOT_SELF:
			return ip_xid_status(xid, horizon) == IP_XID_COMMITTED;
		case SNAPSHOT_DIRTY:
			snapshot->xmin = snapshot->xmax = InvalidTransactionId;
			snapshot->speculativeToken = 0;
			return ip_xid_status(xid, horizon) == IP_XID_COMMITTED;
		case SNAPSHOT_NON_VACUUMABLE:
			return ip_xid_status(xid, horizon) == IP_XID_COMMITTED && removable_for(snapshot, xid);
		default:
			return false;
	}
}

IpXid
ip_version_deleter(Relation rel, BlockNumber block, Page page, OffsetNumber off,
				   Snapshot snapshot, IpXid horizon)
{
	IpRow		row;

	return ip_row_read_deleted(rel, block, page, off, &row) &&
		deletion_hides(row.xid, snapshot, horizon) ? row.xid : IP_XID_NONE;
}

void
ip_version_id(IpVersion *v, IpVersionId *id)
{
	id->xmin = IpXidIsFinal(v->xid) ? FrozenTransactionId : (TransactionId) v->xid;
	id->cmin = 0;
	if ((v->state & (IP_ROW_INSERTED | IP_ROW_LOCKED)) == IP_ROW_INSERTED)
		id->cmin = (CommandId) v->ptr.block;
	else if (v->rec_loaded)
		id->cmin = v->rec.cid;
	id->ptr = v->ptr;
	id->xmax = (TransactionId) v->end_xid;
	id->cmax = v->end_xid != IP_XID_NONE ? v->end_cid : id->cmin;
	if (v->end_xid == IP_XID_NONE && v->has_lock)
		id->xmax = v->lock.locker;
}

void
ip_version_to_slot(IpVersion *v, TupleTableSlot *slot)
{
	IpVersionId id;

	ip_version_id(v, &id);
	ip_slot_store(slot, v->hdr, v->body, v->bodylen, &v->tid, &id);
	slot->tts_tableOid = RelationGetRelid(v->rel);
}
