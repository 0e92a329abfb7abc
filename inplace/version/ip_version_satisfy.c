/*-------------------------------------------------------------------------
 * ip_version_satisfy.c
 *	  The version of a row that a snapshot sees, and conflicts of serializable
 *	  transactions.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/subtrans.h"
#include "access/xact.h"
#include "storage/predicate.h"
#include "utils/snapmgr.h"

#include "ip_undo.h"
#include "ip_version_satisfy.h"
#include "ip_xid.h"

bool
ip_version_change_visible(IpVersion *v, Snapshot snapshot)
{
	Assert(IsMVCCSnapshot(snapshot));
	if (IpXidIsFrozen(v->xid))
		return true;
	if (!TransactionIdPrecedes((TransactionId) v->xid, snapshot->xmin) &&
		TransactionIdIsCurrentTransactionId((TransactionId) v->xid))
		return ip_version_cid(v) < snapshot->curcid;
	return !ip_xid_in_snapshot(v->xid, snapshot) &&
		ip_version_status(v) == IP_STATUS_COMMITTED;
}

/*
 * For serializable transactions: another transaction has written a change that
 * we do not see.
 */
static void
note_conflict_out(IpVersion *v, Snapshot snapshot)
{
	TransactionId xid = (TransactionId) v->xid;

	if (!CheckForSerializableConflictOutNeeded(v->rel, snapshot) ||
		TransactionIdIsCurrentTransactionId(xid) ||
		ip_version_status(v) == IP_STATUS_ABORTED ||
		TransactionIdPrecedes(xid, TransactionXmin))
		return;
	xid = SubTransGetTopmostTransaction(xid);
	if (!TransactionIdPrecedes(xid, TransactionXmin))
		CheckForSerializableConflictOut(v->rel, xid, snapshot);
}

/*
 * Get the TID of v's undo record, which stands for the version; false if it
 * has none.
 */
static bool
version_tid(IpVersion *v, ItemPointer tid)
{
	if (IpXidIsFrozen(v->xid) ||
		(v->state & (IP_ROW_INSERTED | IP_ROW_CHANGED)))
		return false;
	ip_version_tid_below(v->ptr, tid);
	return true;
}

void
ip_version_predicate_lock(IpVersion *v, Snapshot snapshot)
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

	Assert(v->locked && v->steps == 0);
	if (!IsolationIsSerializable())
		return;
	if (!version_tid(v, &tid))
	{
		CheckForSerializableConflictIn(v->rel, &v->tid, block);
		return;
	}
	CheckForSerializableConflictIn(v->rel, &tid,
								   ItemPointerGetBlockNumber(&tid));
	CheckForSerializableConflictIn(v->rel, NULL, block);
}

static IpvResult
satisfy_mvcc(IpVersion *v, Snapshot snapshot)
{
	while (!ip_version_change_visible(v, snapshot))
	{
		IpvResult	result;

		note_conflict_out(v, snapshot);
		if (!CheckForSerializableConflictOutNeeded(v->rel, snapshot))
			ip_version_skip_hidden(v, snapshot);
		result = ip_version_older(v);

		if (result != IPV_OK)
			return result;
		CHECK_FOR_INTERRUPTS();
	}
	return (v->state & IP_ROW_DELETED) ? IPV_NONE : IPV_OK;
}

/* Go to the version that is current for us: committed or our own. */
static IpvResult
satisfy_self(IpVersion *v)
{
	for (;;)
	{
		IpXidStatus status = ip_version_status(v);
		IpvResult	result;

		if (status == IP_STATUS_MINE || status == IP_STATUS_COMMITTED)
			return (v->state & IP_ROW_DELETED) ? IPV_NONE : IPV_OK;
		result = ip_version_older(v);
		if (result != IPV_OK)
			return result;
		CHECK_FOR_INTERRUPTS();
	}
}

/* Report in the snapshot that v's change is running. */
static void
note_running(IpVersion *v, Snapshot snapshot)
{
	bool		inserted = (v->state & IP_ROW_INSERTED) != 0;

	snapshot->xmin = inserted ? (TransactionId) v->xid : InvalidTransactionId;
	snapshot->xmax = inserted ? InvalidTransactionId : (TransactionId) v->xid;
	snapshot->speculativeToken = inserted && (v->hdr & IP_HDR_SPECULATIVE) ?
		v->ptr.block : 0;
	v->pending = inserted ? IP_XID_NONE : v->xid;
}

/*
 * Go to the version that a dirty snapshot sees: changes in progress count, and
 * the snapshot reports them.
 */
static IpvResult
satisfy_dirty(IpVersion *v, Snapshot snapshot)
{
	snapshot->xmin = snapshot->xmax = InvalidTransactionId;
	snapshot->speculativeToken = 0;
	v->pending = IP_XID_NONE;
	for (;;)
	{
		IpXidStatus status = ip_version_status(v);
		IpvResult	result;

		if (status == IP_STATUS_RUNNING)
		{
			note_running(v, snapshot);
			return (v->state & IP_ROW_DELETED) ?
				ip_version_satisfy_before(v, snapshot) : IPV_OK;
		}
		if (status != IP_STATUS_ABORTED)
			return (v->state & IP_ROW_DELETED) ? IPV_NONE : IPV_OK;
		result = ip_version_older(v);
		if (result != IPV_OK)
			return result;
		CHECK_FOR_INTERRUPTS();
	}
}

IpvResult
ip_version_satisfy_before(IpVersion *v, Snapshot snapshot)
{
	Assert(v->pending != IP_XID_NONE);
	for (;;)
	{
		IpvResult	result = ip_version_older(v);
		IpXidStatus status;

		if (result != IPV_OK)
			return result;
		status = ip_version_status(v);
		if (status == IP_STATUS_RUNNING)
		{
			note_running(v, snapshot);
			return IPV_OK;
		}
		if (status != IP_STATUS_ABORTED)
		{
			/*
			 * that transaction may have ended meanwhile; the caller finds out
			 * by waiting for it
			 */
			snapshot->xmin = InvalidTransactionId;
			snapshot->xmax = (TransactionId) v->pending;
			v->pending = IP_XID_NONE;
			return IPV_OK;
		}
		CHECK_FOR_INTERRUPTS();
	}
}

/* Go to the newest version that was not rolled back, including deleted rows. */
static IpvResult
satisfy_any(IpVersion *v)
{
	IpvResult	result = ip_version_skip_aborted(v);
	IpXidStatus status;

	if (result != IPV_OK || !(v->state & IP_ROW_DELETED))
		return result;
	status = ip_version_status(v);
	result = ip_version_older(v);

	/* the undo of a committed delete is gone when the row is dead to all */
	return (result == IPV_STALE && status == IP_STATUS_COMMITTED) ? IPV_NONE :
		result;
}

bool
ip_version_is_dead(Relation rel, uint8 state, IpXid xid, IpXid horizon)
{
	IpXidStatus status = ip_xid_status(xid, horizon);

	if (state & IP_ROW_DELETED)
		return status == IP_STATUS_COMMITTED && ip_xid_removable(rel, xid);
	return (state & IP_ROW_INSERTED) && status == IP_STATUS_ABORTED;
}

XLogRecPtr
ip_version_deletion_unflushed(Relation rel, IpXid xid)
{
	return RelationIsPermanent(rel) ? ip_xid_unflushed_commit(xid) :
		InvalidXLogRecPtr;
}

static bool
removable_for(Snapshot snapshot, IpXid xid)
{
	return IpXidIsFrozen(xid) ||
		CompatIsRemovableFullXid(snapshot->vistest,
								 FullTransactionIdFromU64(xid));
}

/* Go to a version that some transaction may still see. */
static IpvResult
satisfy_non_vacuumable(IpVersion *v, Snapshot snapshot)
{
	if (v->state & IP_ROW_DELETED)
	{
		if (ip_version_status(v) == IP_STATUS_COMMITTED &&
			removable_for(snapshot, v->xid))
			return IPV_NONE;
	}
	return satisfy_any(v);
}

IpvResult
ip_version_satisfy(IpVersion *v, Snapshot snapshot)
{
	Assert(v->body != NULL);
	CompatInjectionPoint("inplace-satisfy");
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

/* Returns whether the change is current for us: committed or our own. */
static bool
is_current(IpXid xid, IpXid horizon)
{
	IpXidStatus status = ip_xid_status(xid, horizon);

	return status == IP_STATUS_COMMITTED || status == IP_STATUS_MINE;
}

bool
ip_version_deletion_hides(IpXid xid, Snapshot snapshot, IpXid horizon)
{
	switch (snapshot->snapshot_type)
	{
		case SNAPSHOT_MVCC:
			return !ip_xid_in_snapshot(xid, snapshot) &&
				ip_xid_status(xid, horizon) == IP_STATUS_COMMITTED;
		case SNAPSHOT_SELF:
			return is_current(xid, horizon);
		case SNAPSHOT_DIRTY:
			snapshot->xmin = snapshot->xmax = InvalidTransactionId;
			snapshot->speculativeToken = 0;
			return is_current(xid, horizon);
		case SNAPSHOT_NON_VACUUMABLE:
			return ip_xid_status(xid, horizon) == IP_STATUS_COMMITTED &&
				removable_for(snapshot, xid);
		default:
			return false;
	}
}

IpvResult
ip_version_fetch_satisfy(IpVersion *v, Relation rel, const ItemPointerData *tid,
						 Snapshot snapshot, bool *all_dead)
{
	IpvResult	result;

	for (int tries = 0; tries < IP_MAX_STALE; tries++)
	{
		CHECK_FOR_INTERRUPTS();
		result = ip_version_fetch(v, rel, tid);
		if (result == IPV_OK)
		{
			result = ip_version_satisfy(v, snapshot);
			if (result == IPV_NONE && all_dead)
			{
				/* the newest version says whether the row is dead to all */
				result = ip_version_fetch(v, rel, tid);
				*all_dead = result == IPV_OK &&
					ip_version_is_dead(rel, v->state, v->xid, v->horizon) &&
					(!(v->state & IP_ROW_DELETED) ||
					 ip_version_deletion_unflushed(rel, v->xid) ==
					 InvalidXLogRecPtr);
				return IPV_NONE;
			}
		}
		if (result != IPV_STALE)
			return result;
	}
	v->rel = rel;
	v->tid = *tid;
	ip_version_missing(v);
	return IPV_NONE;			/* not reached */
}

/* ---- the versions below one ---------------------------------------------- */

static bool
is_far(const IpFar *far, IpVersion *v)
{
	return far != NULL && far->known && v->xid == far->xid &&
		IpPtrEquals(v->ptr, far->ptr) && ip_version_status(v) == far->status;
}

/* ip_version_keys_changed, from the version of "below" on. */
static IpvResult
keys_changed_below(IpVersion *below, Snapshot snapshot, const IpFar *far,
				   bool *changed)
{
	IpvResult	result;

	*changed = false;
	while (!*changed && !(below->state & IP_ROW_INSERTED) &&
		   !ip_version_change_visible(below, snapshot))
	{
		CHECK_FOR_INTERRUPTS();
		if (is_far(far, below))
		{
			*changed = far->keys_changed;
			return IPV_OK;
		}
		result = ip_version_load_rec(below);
		if (result == IPV_OK)
		{
			*changed = (below->rec.flags & IP_REC_KEYS) &&
				ip_version_status(below) == IP_STATUS_COMMITTED;
			result = ip_version_older(below);
		}
		if (result != IPV_OK)	/* no older version: visible to all */
			return result == IPV_NONE ? IPV_OK : result;
	}
	return IPV_OK;
}

IpvResult
ip_version_keys_changed(IpVersion *v, Snapshot snapshot, const IpFar *far,
						bool *changed)
{
	IpVersion	below;

	*changed = false;
	if (snapshot == NULL || !IsMVCCSnapshot(snapshot))
		return IPV_OK;
	ip_version_begin_below(&below, v);
	return keys_changed_below(&below, snapshot, far, changed);
}

IpvResult
ip_version_below_is_newer(IpVersion *v, Snapshot snapshot,
						  const IpTarget *target, LockTupleMode mode,
						  bool *newer)
{
	IpVersion	below;
	IpXidStatus status;
	IpvResult	result;

	*newer = false;
	if (snapshot == NULL || !IsMVCCSnapshot(snapshot))
		return IPV_OK;
	ip_version_begin_below(&below, v);
	while ((below.state & IP_ROW_DELETED) ||
		   (status = ip_version_status(&below)) == IP_STATUS_RUNNING ||
		   status == IP_STATUS_ABORTED)
	{
		CHECK_FOR_INTERRUPTS();
		result = ip_version_older(&below);
		if (result != IPV_OK)	/* no older version: the running transaction
								 * inserted it */
			return result == IPV_NONE ? IPV_OK : result;
	}
	if (mode == LockTupleKeyShare)
		return keys_changed_below(&below, snapshot, NULL, newer);
	*newer = !ip_version_change_visible(&below, snapshot) &&
		!ip_version_is_target(&below, target);
	return below.forgotten ? IPV_STALE : IPV_OK;
}

IpvResult
ip_version_inserter(IpVersion *v, const IpFar *far, IpXid *inserter)
{
	IpVersion	below;
	IpvResult	result = IPV_OK;

	*inserter = IP_XID_NONE;
	ip_version_begin_below(&below, v);
	while (result == IPV_OK && !(below.state & IP_ROW_INSERTED))
	{
		CHECK_FOR_INTERRUPTS();
		if (is_far(far, &below))
		{
			*inserter = far->inserter;
			return IPV_OK;
		}
		result = ip_version_older(&below);
	}
	if (result == IPV_OK)
		*inserter = below.xid;
	return result == IPV_NONE ? IPV_OK : result;
}
