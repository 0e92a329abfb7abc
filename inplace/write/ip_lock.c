/*-------------------------------------------------------------------------
 * ip_lock.c
 *	  Locking rows: SELECT ... FOR UPDATE and other modes, ON CONFLICT,
 *	  triggers.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/xact.h"

#include "ip_lock.h"
#include "ip_lockset_use.h"
#include "ip_memo.h"
#include "ip_modify.h"
#include "ip_rel.h"
#include "ip_version_satisfy.h"
#include "ip_xid.h"

typedef struct LockRequest
{
	Relation	rel;
	Snapshot	snapshot;
	CommandId	cid;
	LockTupleMode mode;
	LockWaitPolicy policy;
	uint8		flags;
	TransactionId xid;
	TM_FailureData *tmfd;
	IpTarget	target;			/* row being locked; follows moves */
	ItemPointerData version_tid;	/* TID of the locked version, if core
									 * needs one */
	ItemPointerData forward;	/* the next version of that row, if it was
								 * moved ... */
	IpXid		mover;			/* ... by this one ... */
	bool		forward_done;	/* forward and the versions after it are
								 * locked */
	bool		later_deleted;	/* a later one was deleted, its key never
								 * changed */
	int			forward_failures;	/* number of times that forward was gone */
	bool		have_tuple_lock;
	bool		is_locker;		/* we are a locker of the row that is waited
								 * for */
	bool		is_conflict;	/* for ON CONFLICT */
	bool		see_old;		/* return an older version than the locked
								 * row's newest */
	bool		was_seen;		/* only the version in "seen" is wanted */
	IpSeen		seen;

	bool		look_far;		/* a walk under the page's lock was too long */
	int			far_tries;
	IpFar		far;			/* result of the last walk without the lock */
} LockRequest;

/*
 * A move that is rolled back while we follow it is gone at the next try, and
 * our snapshot keeps other versions.  So this many failures mean damage, and
 * trying ends.
 */
#define MAX_FORWARD_FAILURES	1000

/* ---- far below ----------------------------------------------------------- */

/*
 * ip_version_keys_changed.  If req->look_far gets set, the result is not
 * valid.
 */
static bool
keys_changed(LockRequest *req, IpVersion *v)
{
	bool		changed;

	if (ip_version_keys_changed(v, req->snapshot, &req->far, &changed) ==
		IPV_FAR)
		req->look_far = true;
	return changed;
}

/*
 * Returns whether xid is ip_version_inserter's result.  If req->look_far gets
 * set, the result is not valid.
 */
static bool
is_inserted_by(LockRequest *req, IpVersion *v, IpXid xid)
{
	IpXid		inserter;

	if (ip_version_inserter(v, &req->far, &inserter) == IPV_FAR)
		req->look_far = true;
	return inserter == xid;
}

/*
 * Go to the newest change that is not running: it stays, with the same status,
 * when other transactions go on.  If it is too far below, a running change is
 * used.
 */
static bool
find_ended(IpVersion *v)
{
	for (int n = 0; n < IP_MAX_LOCKED_STEPS / 2 &&
		 !(v->state & IP_ROW_INSERTED) &&
		 ip_version_status(v) == IP_STATUS_RUNNING; n++)
	{
		if (ip_version_older(v) != IPV_OK)
			return false;
	}
	return true;
}

/*
 * Examine versions far below the newest changes of the row at tid.  No buffer
 * lock is held.  Other transactions may change the row as often in the
 * meantime.  The next walk goes only down to where this one began, so that
 * eventually one is short enough.
 */
static void
look_far(LockRequest *req, const ItemPointerData *tid)
{
	IpVersion	version;
	IpVersion  *v = &version;
	IpFar		far = {0};

	Assert(ip_page_none_is_locked());
	CHECK_FOR_INTERRUPTS();
	req->look_far = false;
	if (!ip_version_fetch_newest(v, req->rel, tid))
		return;
	if (find_ended(v))
	{
		far.xid = v->xid;
		far.ptr = v->ptr;
		far.status = ip_version_status(v);
		/* not OK: it is so old that its undo is gone, so it does not matter */
		(void) ip_version_inserter(v, &req->far, &far.inserter);
		far.known = ip_version_keys_changed(v, req->snapshot, &req->far,
											&far.keys_changed) == IPV_OK;
	}
	req->far = far;

	/*
	 * if undo changes under us, the row has changed too, and is examined
	 * again
	 */
	if (!far.known && ++req->far_tries > IP_MAX_STALE)
		ip_version_missing(v);
}

/* Results of trying to lock the later versions of a row. */
typedef enum Forward
{
	FORWARD_LOCKED,
	FORWARD_WAIT,				/* wait until *wait_for has ended */
	FORWARD_GONE,				/* rolled back under us: try again */
	FORWARD_FAR,				/* look_far is needed first */
	FORWARD_CHANGED				/* their key is another one */
} Forward;

/*
 * Returns whether v, a later version of the row, comes from changes that do
 * not change the key.
 */
static Forward
later_key_is_unchanged(LockRequest *req, IpVersion *v, TransactionId *wait_for)
{
	IpXidStatus status = ip_version_status(v);
	bool		changed;

	if (status == IP_STATUS_ABORTED)
		return FORWARD_GONE;	/* rolled back since v was read: try again */
	changed = keys_changed(req, v);
	if (req->look_far)
		return FORWARD_FAR;
	if (changed)
		return FORWARD_CHANGED;
	if ((v->state & IP_ROW_INSERTED) ||
		(status != IP_STATUS_RUNNING && !(v->state & IP_ROW_DELETED)))
		return FORWARD_LOCKED;
	if (ip_version_load_rec(v) == IPV_OK &&
		!(v->rec.flags & (IP_REC_KEYS | IP_REC_PARTITION)))
		return FORWARD_LOCKED;
	if (status != IP_STATUS_RUNNING)
		return FORWARD_CHANGED;
	*wait_for = (TransactionId) v->xid;
	return FORWARD_WAIT;
}

/*
 * Lock the later version at *tid, which *mover has put there, of a row that
 * was moved without a change of its key.  *tid becomes that of the next
 * version, if there is one; the version at *tid then needs its lock too, as
 * long as a rollback may make it current again.
 */
static Forward
lock_later(LockRequest *req, ItemPointer tid, IpXid *mover,
		   TransactionId *wait_for)
{
	IpVersion	version;
	IpVersion  *v = &version;
	Forward		result = FORWARD_GONE;
	bool		deleted;
	bool		key_updated;
	Buffer		buffer;

	req->look_far = false;

	/* a move may have been rolled back, and another row may have its place */
	if (ip_modify_begin(v, req->rel, tid, req->xid, IP_TO_LOCK, &buffer) ==
		IPF_OK)
	{
		if (is_inserted_by(req, v, *mover))
			result = later_key_is_unchanged(req, v, wait_for);
		if (req->look_far)
		{
			UnlockReleaseBuffer(buffer);
			return FORWARD_FAR;
		}
	}
	ItemPointerSetInvalid(tid);
	if (result == FORWARD_LOCKED)
	{
		*wait_for = ip_lockers_conflict(v, req->mode);
		if (TransactionIdIsValid(*wait_for))
			result = FORWARD_WAIT;
	}
	if (result == FORWARD_LOCKED && (v->state & IP_ROW_DELETED))
	{
		*tid = v->rec.forward;
		*mover = v->xid;
	}
	if (result == FORWARD_LOCKED && !ip_lockers_held(v, req->mode) &&
		!((v->state & IP_ROW_DELETED) &&
		  ip_version_status(v) == IP_STATUS_COMMITTED))
		ip_lockers_add(v, buffer, req->xid, req->mode);
	deleted = result == FORWARD_CHANGED && (v->state & IP_ROW_DELETED) &&
		!(v->state & IP_ROW_MOVED);
	if (deleted)
		ip_version_let_go(v);
	UnlockReleaseBuffer(buffer);
	if (deleted)
	{
		/* as in heap, it matters whether its key was updated before */
		if (ip_version_below_is_newer(v, req->snapshot, &req->target, req->mode,
									  &key_updated) == IPV_STALE)
			return FORWARD_GONE;
		req->later_deleted = !key_updated;
	}
	return result;
}

/* Lock all later versions, from req->forward on.  No buffer lock is held. */
static Forward
lock_forward(LockRequest *req, TransactionId *wait_for)
{
	ItemPointerData tid = req->forward;
	IpXid		mover = req->mover;
	Forward		result = FORWARD_LOCKED;

	Assert(ip_page_none_is_locked());
	*wait_for = InvalidTransactionId;
	req->later_deleted = false;
	while (result == FORWARD_LOCKED && ItemPointerIsValid(&tid))
	{
		CHECK_FOR_INTERRUPTS();
		result = lock_later(req, &tid, &mover, wait_for);
		if (result == FORWARD_FAR)
		{
			look_far(req, &tid);
			result = FORWARD_LOCKED;
		}
	}
	return result;
}

/* Results of one try. */
typedef enum LockTry
{
	TRY_DONE,					/* *result says how */
	TRY_REPEAT,
	TRY_WAIT					/* for *wait_for */
} LockTry;

/*
 * FOR KEY SHARE ignores changes that do not change the key: it locks the
 * version that the snapshot sees, and all later ones.  Returns whether that is
 * possible; *forward: the later versions, from req->forward on, must be locked
 * first.
 */
static bool
key_is_unchanged(LockRequest *req, IpVersion *v, IpFound found, bool *forward)
{
	if (req->mode != LockTupleKeyShare || (v->state & IP_ROW_INSERTED) ||
		ip_version_load_rec(v) != IPV_OK ||
		(v->rec.flags & (IP_REC_KEYS | IP_REC_PARTITION)) ||
		keys_changed(req, v) || req->look_far)
		return false;

	/*
	 * as in heap, a request that followed a change of the key to this row
	 * goes on to the last version
	 */
	if (found != IPF_UPDATED && req->tmfd->traversed)
		return false;
	if (v->state & IP_ROW_MOVED)
	{
		if (!ItemPointerIsValid(&req->forward) ||
			!ItemPointerEquals(&req->forward, &v->rec.forward) ||
			req->mover != v->xid)
		{
			req->forward = v->rec.forward;
			req->mover = v->xid;
			req->forward_done = false;
			req->forward_failures = 0;
		}
		if (req->forward_failures >= MAX_FORWARD_FAILURES)
			return false;
		*forward = !req->forward_done;
	}
	req->see_old = true;
	return true;
}

/*
 * Decide what to do with v's version; its page is locked.  TRY_DONE with
 * TM_Ok: lock it.
 */
static LockTry
try_version(LockRequest *req, IpVersion *v, IpFound found, TM_Result *result,
			TransactionId *wait_for, bool *forward)
{
	bool		follow = (req->flags & TUPLE_LOCK_FLAG_FIND_LAST_VERSION) != 0;

	*result = TM_Ok;
	req->see_old = false;
	if (req->was_seen && (found == IPF_OK || found == IPF_UPDATED) &&
		!ip_memo_is_seen(v, &req->seen))
	{
		*result = TM_Updated;
		return TRY_DONE;
	}
	/* a version that was seen is wanted itself, whatever the snapshot sees */
	if ((found == IPF_RUNNING || found == IPF_MOVED ||
		 (found == IPF_UPDATED && !req->was_seen)) &&
		key_is_unchanged(req, v, found, forward))
	{
		if (*forward)
			return TRY_REPEAT;
		found = IPF_OK;
	}
	if (req->look_far)
		return TRY_REPEAT;
	switch (found)
	{
		case IPF_OK:
			break;
		case IPF_AGAIN:
			return TRY_REPEAT;
		case IPF_INVISIBLE:
			*result = TM_Invisible;
			return TRY_DONE;
		case IPF_SELF:

			/*
			 * if ON CONFLICT finds a row of this command, core expects
			 * TM_Invisible
			 */
			*result = req->is_conflict && !(v->state & IP_ROW_DELETED) ?
				TM_Invisible : TM_SelfModified;
			return TRY_DONE;
		case IPF_DELETED:
		case IPF_NONE:
			*result = TM_Deleted;
			return TRY_DONE;
		case IPF_MOVED:
			*result = req->later_deleted ? TM_Deleted : TM_Updated;
			if (!follow)
				return TRY_DONE;
			if (ip_version_load_rec(v) != IPV_OK)
			{
				*result = TM_Deleted;
				return TRY_DONE;
			}
			if (v->rec.flags & IP_REC_PARTITION)
				ip_modify_moved_to_partition();
			req->tmfd->traversed = true;
			req->target.row = v->rec.forward;
			req->target.exact = false;
			return TRY_REPEAT;
		case IPF_UPDATED:
			if (follow)
				req->tmfd->traversed = true;
			else if (IsolationUsesXactSnapshot())
			{
				*result = TM_Updated;
				return TRY_DONE;
			}
			break;
		case IPF_RUNNING:
			*wait_for = (TransactionId) v->xid;
			return TRY_WAIT;
	}
	*wait_for = ip_lockers_conflict(v, req->mode);
	return TransactionIdIsValid(*wait_for) ? TRY_WAIT : TRY_DONE;
}

/*
 * Lock v's version.  A caller that changes rows (LockRows does not) will call
 * again for a version that its snapshot does not see, so name the version.
 */
static void
take_lock(LockRequest *req, IpVersion *v, Buffer buffer)
{
	bool		unseen = !req->see_old && req->snapshot &&
		IsMVCCSnapshot(req->snapshot) &&
		!(req->flags & TUPLE_LOCK_FLAG_LOCK_UPDATE_IN_PROGRESS) &&
		!ip_version_change_visible(v, req->snapshot);

	Assert(v->locked && v->steps == 0);
	ip_version_own_body(v);
	if (unseen)
		ip_version_tid(v, &req->version_tid);
	if (!ip_lockers_held(v, req->mode))
		ip_lockers_add(v, buffer, req->xid, req->mode);
}

/*
 * v's change is running, or was a delete, and its page is unlocked.  If the
 * snapshot does not see the version below it either, the row was updated
 * first: that is the result, and there is no need to wait.
 */
static LockTry
updated_before(LockRequest *req, IpVersion *v, LockTry try, TM_Result *result)
{
	bool		newer;
	IpvResult	found = ip_version_below_is_newer(v, req->snapshot,
												  &req->target, req->mode,
												  &newer);

	if (found == IPV_STALE && ++req->far_tries > IP_MAX_STALE)
		ip_version_missing(v);
	if (found == IPV_STALE)
		return TRY_REPEAT;
	if (!newer)
		return try;
	*result = TM_Updated;
	return TRY_DONE;
}

static TM_Result
lock_once(LockRequest *req, IpVersion *v, LockTry *try, TransactionId *wait_for,
		  bool *forward)
{
	TM_Result	result = TM_Deleted;
	ItemPointerData tid = req->target.row;
	IpFound		found;
	Buffer		buffer;

	req->look_far = false;
	found = ip_modify_begin(v, req->rel, &tid, req->xid, IP_TO_LOCK, &buffer);
	if (found == IPF_OK)
		found = ip_modify_classify(v, req->snapshot, req->cid, &req->target);
	else
		v->body = NULL;
	*forward = false;
	*try = try_version(req, v, found, &result, wait_for, forward);
	/* a row of our own has waiters only for its version before ours */
	req->is_locker = *try == TRY_WAIT &&
		(ip_version_status(v) == IP_STATUS_MINE || ip_lockers_are_ours(v));
	if (*try == TRY_DONE && result == TM_Ok)
		take_lock(req, v, buffer);
	else if (*try == TRY_DONE && v->body != NULL)
		ip_modify_failure(v, &tid, req->tmfd);
	if (v->body != NULL)
		ip_version_let_go(v);
	UnlockReleaseBuffer(buffer);
	if (req->look_far)
		look_far(req, &tid);
	else if (v->body != NULL &&
			 (*try == TRY_WAIT ? found == IPF_RUNNING : result == TM_Deleted) &&
			 IsolationUsesXactSnapshot() &&
			 !(req->flags & TUPLE_LOCK_FLAG_FIND_LAST_VERSION))
	{
		*try = updated_before(req, v, *try, &result);
		if (*try == TRY_DONE)
			ip_modify_failure(v, &tid, req->tmfd);
	}
	return result;
}

/* Store the locked row in the slot for the caller. */
static void
result_slot(LockRequest *req, IpVersion *v, TM_Result result,
			TupleTableSlot *slot)
{
	IpvResult	found = IPV_OK;

	ExecClearTuple(slot);
	if (v->body == NULL)
		return;

	/*
	 * the snapshot sees no version of a row that was reached only by
	 * following moves
	 */
	if (result == TM_Ok && req->see_old)
	{
		bool		self = req->snapshot == NULL ||
			!IsMVCCSnapshot(req->snapshot) ||
			req->tmfd->traversed || req->was_seen;

		found = ip_version_fetch_satisfy(v, req->rel, &req->target.row,
										 self ? SnapshotSelf : req->snapshot,
										 NULL);

		/*
		 * moved since we locked it: the version before the move is the one
		 * that we locked
		 */
		if (found == IPV_NONE && self)
			found = ip_version_fetch_satisfy(v, req->rel, &req->target.row,
											 SnapshotAny, NULL);
		Assert(found == IPV_OK);
	}
	if (found == IPV_OK)
		ip_version_to_slot(v, slot);
}

/*
 * Lock the later versions once.  Returns what to do next: wait for *wait_for,
 * or try the first version again.
 */
static LockTry
lock_forward_once(LockRequest *req, TransactionId *wait_for)
{
	switch (lock_forward(req, wait_for))
	{
		case FORWARD_LOCKED:
			req->forward_done = true;
			break;
		case FORWARD_GONE:
			req->forward_failures++;
			break;
		case FORWARD_CHANGED:
			req->forward_failures = MAX_FORWARD_FAILURES;
			break;
		case FORWARD_FAR:		/* lock_forward has called look_far */
			break;
		case FORWARD_WAIT:
			req->is_locker = true;	/* as in heap, do not use the row's queue */
			return TRY_WAIT;
	}
	return TRY_REPEAT;
}

static TM_Result
lock_row(LockRequest *req, IpVersion *v)
{
	TransactionId wait_for = InvalidTransactionId;
	ItemPointerData queued = req->target.row;
	bool		forward;
	TM_Result	result;
	LockTry		try;

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		result = lock_once(req, v, &try, &wait_for, &forward);
		if (try == TRY_DONE)
			break;
		if (!ItemPointerEquals(&queued, &req->target.row))
		{
			ip_lockers_wait_end(req->rel, &queued, req->mode,
								req->have_tuple_lock);
			req->have_tuple_lock = false;
			queued = req->target.row;
		}
		if (try == TRY_REPEAT && forward)
			try = lock_forward_once(req, &wait_for);
		if (try == TRY_WAIT &&
			!ip_lockers_wait(req->rel, &queued, wait_for, req->mode,
							 req->policy, XLTW_Lock, req->is_locker,
							 &req->have_tuple_lock))
		{
			result = TM_WouldBlock;
			v->body = NULL;
			break;
		}
		if (try == TRY_WAIT)
			req->forward_failures = 0;
	}
	ip_lockers_wait_end(req->rel, &queued, req->mode, req->have_tuple_lock);
	return result;
}

/*
 * Lock a row quickly in a statement that locks rows one after another.  If the
 * row is on the page of the previous one, is visible to all and is not locked,
 * then what was found out about the page holds for it too.
 */
static bool
lock_next(const LockRequest *req, TupleTableSlot *slot)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(&req->target.row);
	OffsetNumber off = ItemPointerGetOffsetNumberNoCheck(&req->target.row);
	Buffer		buffer;
	Page		page;
	bool		done;

	if (req->target.exact || req->was_seen || req->is_conflict ||
		!ip_memo_locked_beside(req->rel, &req->target.row, req->xid, req->cid))
		return false;
	CHECK_FOR_INTERRUPTS();
	ExecClearTuple(slot);
	buffer = ip_rel_read(req->rel, block);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	page = BufferGetPage(buffer);
	done = ip_page_kind(req->rel, block, page) == IP_PAGE_DATA &&
		ip_version_store_frozen(req->rel, block, page, off, slot) &&
		ip_lockset_add_alike(req->rel, buffer, off, req->xid, req->mode);
	UnlockReleaseBuffer(buffer);
	return done;
}

TM_Result
ip_lock_tuple(Relation rel, ItemPointer tid, Snapshot snapshot,
			  TupleTableSlot *slot, CommandId cid, LockTupleMode mode,
			  LockWaitPolicy wait_policy,
			  uint8 flags, TM_FailureData *tmfd)
{
	LockRequest req = {
		.rel = rel,.snapshot = snapshot,.cid = cid,.mode = mode,
		.policy = wait_policy,.flags = flags,.tmfd = tmfd
	};
	MemoryContext old = ip_version_work_begin();
	TM_Result	result = TM_Ok;
	IpVersion	v;
	bool		done;

	Assert(mode <= LockTupleExclusive && ip_page_none_is_locked());
	tmfd->traversed = false;

	/*
	 * ON CONFLICT and logical replication lock the version that they have
	 * just found with a dirty snapshot: to them, as in heap, a TID means one
	 * version.
	 */
	req.was_seen = flags == 0 && ip_memo_was_seen(rel, tid, &req.seen);
	req.is_conflict = req.was_seen && req.seen.by_index;
	req.xid = GetCurrentTransactionId();
	ip_version_target(rel, tid, &req.target);
	ItemPointerSetInvalid(&req.forward);
	ItemPointerSetInvalid(&req.version_tid);
	done = lock_next(&req, slot);
	if (!done)
		result = lock_row(&req, &v);
	result = ip_modify_self_failure(rel, &req.target, snapshot, cid, result,
									tmfd);
	*tid = ItemPointerIsValid(&req.version_tid) ? req.version_tid :
		req.target.row;
	if (result == TM_Ok)
	{
		tmfd->ctid = *tid;
		ip_memo_note_locked(rel, &req.target.row, req.xid, cid);
	}
	if (!done)
		result_slot(&req, &v, result, slot);
	MemoryContextSwitchTo(old);
	return result;
}
