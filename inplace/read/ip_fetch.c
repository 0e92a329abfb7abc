/*-------------------------------------------------------------------------
 * ip_fetch.c
 *	  Fetching rows by TID.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "portability/instr_time.h"
#include "storage/predicate.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "ip_dead.h"
#include "ip_fetch.h"
#include "ip_memo.h"
#include "ip_rel.h"
#include "ip_slot.h"
#include "ip_version_satisfy.h"
#include "ip_xid.h"

static IpVersion fetch_v;

/*
 * With SnapshotAny and a TID, core asks for "the" version of a row that it has
 * just scanned, locked or changed.  It gets:
 * - if the TID is a version's, which ip_lock_tuple or a fetch of what our last
 *	 change ended has returned: that version;
 * - if the TID is the row's, right after that fetch: what that update made,
 *	 which the trigger queue wants;
 * - right after ON CONFLICT has met a version: that one;
 * - if we have changed the row in the current command or later: the image
 *	 before these changes, or the inserted one.  But if the command has a
 *	 snapshot that does not see that image, because the command has followed the
 *	 row to it (EvalPlanQual), or because a function that it calls has a newer
 *	 snapshot: what its snapshot sees, unless that is nothing, as the trigger
 *	 queue has a TID of the image;
 * - else what the command's snapshot sees;
 * - else, if it sees nothing, the newest committed version.
 */
static IpvResult
fetch_exact_once(IpVersion *v, Relation rel, const IpTarget *target,
				 IpPtr *ended_by)
{
	IpvResult	result = ip_version_fetch(v, rel, &target->row);

	while (result == IPV_OK &&
		   (!ip_version_is_target(v, target) || (v->state & IP_ROW_DELETED)))
	{
		CHECK_FOR_INTERRUPTS();
		*ended_by = v->ptr;
		result = ip_version_older(v);
	}
	return result;
}

static IpvResult
newest_committed(IpVersion *v, Relation rel, const ItemPointerData *tid)
{
	IpvResult	result = ip_version_fetch(v, rel, tid);

	while (result == IPV_OK && (ip_version_status(v) == IP_STATUS_RUNNING ||
								ip_version_status(v) == IP_STATUS_ABORTED ||
								(v->state & IP_ROW_DELETED)))
	{
		CHECK_FOR_INTERRUPTS();
		result = ip_version_older(v);
	}
	return result;
}

static bool
is_ours(IpVersion *v, CommandId cid)
{
	return ip_version_status(v) == IP_STATUS_MINE && ip_version_cid(v) >= cid;
}

/*
 * Step over our changes of this command or later; but not over our insertion.
 */
static IpvResult
before_ours(IpVersion *v, CommandId cid, IpPtr *ended_by)
{
	IpvResult	result = IPV_OK;

	while (result == IPV_OK && is_ours(v, cid) && !(v->state & IP_ROW_INSERTED))
	{
		CHECK_FOR_INTERRUPTS();
		*ended_by = v->ptr;
		result = ip_version_older(v);
	}
	return result;
}

static IpvResult
fetch_any_once(IpVersion *v, Relation rel, const ItemPointerData *tid,
			   IpPtr *ended_by, TupleTableSlot *slot, bool *frozen)
{
	Snapshot	active = ActiveSnapshotSet() ? GetActiveSnapshot() : NULL;
	IpvResult	result = ip_version_fetch_unless_frozen(v, rel, tid, slot,
														frozen);
	bool		changed;

	if (result != IPV_OK)
		return result;
	if (active == NULL || !IsMVCCSnapshot(active))
		return ip_version_satisfy(v, SnapshotAny);
	result = before_ours(v, active->curcid, ended_by);
	changed = ended_by->block != InvalidBlockNumber;
	if (result != IPV_OK || is_ours(v, active->curcid) ||
		(changed &&
		 (ip_version_change_visible(v, active) || ip_memo_was_blind(v))))
		return result;
	result = ip_version_satisfy(v, active);
	if (result != IPV_NONE)
		return result;
	if (!changed)
		return newest_committed(v, rel, tid);
	result = ip_version_fetch(v, rel, tid);
	return result == IPV_OK ? before_ours(v, active->curcid, ended_by) : result;
}

/*
 * The version v, which a fetch by tid has found, may need a TID of its own for
 * the trigger queue.  Such a TID names the record that has ended the version.
 * That is a record of ours, which stays until our transaction ends.  The record
 * by which tid names a version may belong to another transaction, and be
 * removed earlier.  With the row's TID the queue would get what the snapshot
 * that is active then sees, which may be older than our changes.
 */
static void
set_queue_tid(IpVersion *v, const ItemPointerData *tid, IpPtr ended_by,
			  bool is_new, TupleTableSlot *slot)
{
	if (ended_by.block == InvalidBlockNumber)
		return;
	if (!ip_memo_was_updated(v) && (is_new || !ip_memo_is_asked_for(v)))
		return;
	if (OffsetNumberIsValid(ended_by.off))
		ip_version_tid_below(ended_by, &slot->tts_tid);
	else
	{
		/*
		 * the deletion of a row that all see as inserted: a row that was
		 * changed before is not deleted without a record
		 */
		Assert(ip_tid_is_version(tid));
		slot->tts_tid = *tid;
	}
}

/* Go to the version that a dirty snapshot has met. */
static IpvResult
fetch_seen(IpVersion *v, Relation rel, const ItemPointerData *tid,
		   const IpSeen *seen)
{
	IpvResult	result = ip_version_fetch(v, rel, tid);

	while (result == IPV_OK && !ip_memo_is_seen(v, seen))
	{
		CHECK_FOR_INTERRUPTS();
		result = ip_version_older(v);
	}
	return result;
}

/*
 * ON CONFLICT DO SELECT of 19 gets the version that the arbiter index has just
 * led to, though the command's snapshot may be older, or the command itself may
 * have made the version.  The trigger queue may ask for a row that ON CONFLICT
 * DO NOTHING has met.  But by the row's TID the queue asks only for what is_new
 * tells, or for what we have inserted, and never for a version that we make on
 * top of that (may_be_queued).
 */
static bool
fetch_conflicting(IpVersion *v, Relation rel, const ItemPointerData *tid,
				  TupleTableSlot *slot)
{
	IpSeen		seen;
	IpvResult	result;
	int			tries = 0;

	if (!COMPAT_HAS_DO_SELECT)
	{
		ip_memo_forget_seen(rel, tid);
		return false;
	}
	if (!ip_memo_was_seen(rel, tid, &seen))
		return false;
	do
	{
		CHECK_FOR_INTERRUPTS();
		result = fetch_seen(v, rel, tid, &seen);
	} while (result == IPV_STALE && ++tries < IP_MAX_STALE);
	if (result != IPV_OK || (v->state & IP_ROW_DELETED))
		return false;
	if (ip_version_status(v) == IP_STATUS_MINE)
		(void) ip_version_cid(v);
	else if (ip_version_status(v) != IP_STATUS_COMMITTED)
		return false;
	ip_version_to_slot(v, slot);
	return true;
}

/*
 * Fetch for SnapshotAny.  A fetch of what our last change ended is noted: the
 * trigger queue asks for NEW next.
 */
static bool
fetch_any(IpVersion *v, Relation rel, ItemPointer tid, TupleTableSlot *slot)
{
	IpTarget	target;
	IpPtr		ended_by;
	bool		frozen = false;
	bool		is_new = ip_memo_was_ended(rel, tid, &target);
	IpvResult	result;
	int			tries = 0;

	if (!is_new)
	{
		if (fetch_conflicting(v, rel, tid, slot))
			return true;
		ip_version_target(rel, tid, &target);
	}
	do
	{
		CHECK_FOR_INTERRUPTS();
		ended_by.block = InvalidBlockNumber;
		result = target.exact ? fetch_exact_once(v, rel, &target, &ended_by) :
			fetch_any_once(v, rel, tid, &ended_by, slot, &frozen);
	} while (result == IPV_STALE && ++tries < IP_MAX_STALE);
	if (frozen)
	{
		ip_memo_note_ended(rel, &target);
		return true;
	}
	if (result != IPV_OK)
		return false;
	/* a foreign key's check will compare the command, too */
	if (ip_version_status(v) == IP_STATUS_MINE)
		(void) ip_version_cid(v);
	ip_version_to_slot(v, slot);
	set_queue_tid(v, tid, ended_by, is_new, slot);
	ip_memo_note_ended(rel, &target);
	return true;
}

IpvResult
ip_fetch_before(IpVersion *v, Snapshot snapshot, int *tries)
{
	Relation	rel = v->rel;
	ItemPointerData tid = v->tid;
	IpvResult	result = ip_version_satisfy_before(v, snapshot);

	if (result != IPV_STALE)
		return result;
	if (++*tries > IP_MAX_STALE)
		ip_version_missing(v);
	return ip_version_fetch_satisfy(v, rel, &tid, snapshot, NULL);
}

/*
 * Returns whether the row's newest version is another one than when v began
 * there.
 */
static bool
has_changed(IpVersion *v)
{
	IpVersion	now;
	IpvResult	result = ip_version_fetch(&now, v->rel, &v->tid);

	return result != IPV_OK || now.top_state != v->top_state ||
		now.top_xid != v->top_xid || !IpPtrEquals(now.top_ptr, v->top_ptr);
}

/*
 * A writer between our read of the row and our lock did not see the lock, nor
 * did we see its change.  So read the row again once the lock is held.  Once is
 * enough, as all later writers see the lock.
 */
bool
ip_fetch_predicate_lock(IpVersion *v, Snapshot snapshot)
{
	ItemPointerData tid = v->tid;

	if (!IsolationIsSerializable() || !IsMVCCSnapshot(snapshot))
		return true;
	ip_version_predicate_lock(v, snapshot);
	if (!has_changed(v))
		return true;
	if (ip_version_fetch_satisfy(v, v->rel, &tid, snapshot, NULL) != IPV_OK)
		return false;

	/*
	 * the version has a lock of its own if a change has given it an undo
	 * record
	 */
	ip_version_predicate_lock(v, snapshot);
	return true;
}

/*
 * Let v stand on the version that the snapshot sees.  Core's TID scans pass the
 * active snapshot.  Other code may pass an older one, with a TID that a query
 * under the active snapshot has returned: pg_ivm asks in this way whether a row
 * was there before the command.  In heap such a TID names that query's version,
 * which the older snapshot does not see once the row was updated.  So the older
 * snapshot must see that version's change here, too.
 */
static bool
fetch_mvcc(IpVersion *v, Relation rel, ItemPointer tid, Snapshot snapshot)
{
	Snapshot	active = ActiveSnapshotSet() ? GetActiveSnapshot() : snapshot;

	if (active != snapshot && active->snapshot_type == SNAPSHOT_MVCC &&
		snapshot->snapshot_type == SNAPSHOT_MVCC &&
		ip_version_fetch_satisfy(v, rel, tid, active, NULL) == IPV_OK &&
		!ip_version_change_visible(v, snapshot))
		return false;
	return ip_version_fetch_satisfy(v, rel, tid, snapshot, NULL) == IPV_OK;
}

bool
ip_fetch_row_version(Relation rel, ItemPointer tid, Snapshot snapshot,
					 TupleTableSlot *slot)
{
	IpVersion  *v = &fetch_v;
	bool		found;

	ExecClearTuple(slot);
	if (snapshot->snapshot_type == SNAPSHOT_ANY)
		return fetch_any(v, rel, tid, slot);
	ip_memo_forget_seen(rel, tid);
	found = fetch_mvcc(v, rel, tid, snapshot);
	if (found && (found = ip_fetch_predicate_lock(v, snapshot)))
		ip_version_to_slot(v, slot);
	return found;
}

/*
 * Returns whether the version in the slot is the one that the snapshot sees.
 * For an MVCC snapshot (ON CONFLICT asks) it must also be the newest committed
 * one: in heap, a newer one would be the conflicting tuple.
 */
bool
ip_fetch_satisfies_snapshot(Relation rel, TupleTableSlot *slot,
							Snapshot snapshot)
{
	IpVersion  *v = &fetch_v;
	IpSlot	   *ipslot = (IpSlot *) slot;
	IpVersionId id;

	Assert(SlotIsInplace(slot) && ipslot->has_id);
	if (ip_version_fetch_satisfy(v, rel, &slot->tts_tid, snapshot,
								 NULL) != IPV_OK)
		return false;
	if (IsMVCCSnapshot(snapshot) && !IpXidIsFrozen(v->end_xid) &&
		ip_xid_status(v->end_xid, v->horizon) == IP_STATUS_COMMITTED)
		return false;
	if (ip_version_status(v) == IP_STATUS_MINE)
		(void) ip_version_cid(v);
	ip_version_id(v, &id);

	/*
	 * if a version block has been removed, nobody can have changed the row
	 * since
	 */
	if (id.xmin == FrozenTransactionId ||
		ipslot->id.xmin == FrozenTransactionId)
		return id.xmin == ipslot->id.xmin ||
			ip_xid_removable(rel, ip_xid_full(ipslot->id.xmin));
	return id.xmin == ipslot->id.xmin &&
		(!TransactionIdIsCurrentTransactionId(id.xmin) ||
		 id.cmin == ipslot->id.cmin);
}

bool
ip_fetch_tid_valid(TableScanDesc scan, ItemPointer tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);

	return ItemPointerIsValid(tid) && block != IP_META_BLOCK &&
		block < RelationGetNumberOfBlocks(scan->rs_rd);
}

/*
 * Returns the transaction that has moved the row at "at", and sets *next to the
 * place it was moved to.  Returns IP_XID_NONE if the row was not moved, or the
 * move was rolled back.
 */
static IpXid
moved_to(IpVersion *v, Relation rel, const ItemPointerData *at,
		 ItemPointer next)
{
	IpXid		before = IP_XID_NONE;
	IpXidStatus status;

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (!ip_version_fetch_newest(v, rel, at) || !(v->state & IP_ROW_MOVED))
			return IP_XID_NONE;
		status = ip_version_status(v);
		if (ip_version_load_rec(v) == IPV_OK)
			break;

		/*
		 * the move was just rolled back, or is so old that nobody can look
		 * for the next version
		 */
		if (v->top_xid == before)
			return IP_XID_NONE;
		before = v->top_xid;
	}
	if (status == IP_STATUS_ABORTED || status == IP_STATUS_RUNNING ||
		(v->rec.flags & IP_REC_PARTITION))
		return IP_XID_NONE;
	*next = v->rec.forward;
	return v->xid;
}

/* Returns whether that transaction has inserted the row at "at". */
static bool
is_inserted_by(IpVersion *v, Relation rel, const ItemPointerData *at, IpXid xid)
{
	IpXid		before = IP_XID_NONE;
	IpXid		inserter;

	while (ip_version_fetch_newest(v, rel, at))
	{
		CHECK_FOR_INTERRUPTS();
		if (ip_version_inserter(v, NULL, &inserter) == IPV_OK)
			return inserter == xid;

		/*
		 * the insertion was just rolled back, or is so old that its undo has
		 * been removed
		 */
		if (v->top_xid == before)
			return false;
		before = v->top_xid;
	}
	return false;
}

void
ip_fetch_latest_tid(TableScanDesc scan, ItemPointer tid)
{
	Relation	rel = scan->rs_rd;
	IpVersion  *v = &fetch_v;
	ItemPointerData at = *tid;
	IpXid		mover;

	/* follow moves up to the last version that the snapshot sees */
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (ip_version_fetch_satisfy(v, rel, &at, scan->rs_snapshot,
									 NULL) == IPV_OK)
			*tid = at;
		mover = moved_to(v, rel, &at, &at);
		/* another row may have come to where the move led */
		if (mover == IP_XID_NONE || !is_inserted_by(v, rel, &at, mover))
			return;
	}
}
