/*-------------------------------------------------------------------------
 * ip_lockers.c
 *	  The transactions that have locked a row, and waiting for other transactions.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/multixact.h"
#include "access/subtrans.h"
#include "access/xact.h"
#include "storage/procarray.h"

#include "ip_lockers.h"
#include "ip_xid.h"

static const LOCKMODE heavy_mode[] = {
	[LockTupleKeyShare] = AccessShareLock,
	[LockTupleShare] = RowShareLock,
	[LockTupleNoKeyExclusive] = ExclusiveLock,
	[LockTupleExclusive] = AccessExclusiveLock
};

static const MultiXactStatus multi_status[] = {
	[LockTupleKeyShare] = MultiXactStatusForKeyShare,
	[LockTupleShare] = MultiXactStatusForShare,
	[LockTupleNoKeyExclusive] = MultiXactStatusForNoKeyUpdate,
	[LockTupleExclusive] = MultiXactStatusForUpdate
};

bool
ip_lockers_modes_conflict(LockTupleMode a, LockTupleMode b)
{
	Assert(a <= LockTupleExclusive && b <= LockTupleExclusive);
	return DoLockModesConflict(heavy_mode[a], heavy_mode[b]);
}

static LockTupleMode
mode_of_status(MultiXactStatus status)
{
	for (int mode = LockTupleKeyShare; mode <= LockTupleExclusive; mode++)
	{
		if (multi_status[mode] == status)
			return (LockTupleMode) mode;
	}
	return LockTupleExclusive;
}

/* Fill in the locker if its transaction is still running. */
static bool
live_locker(TransactionId xid, LockTupleMode mode, IpLocker *locker)
{
	locker->xid = xid;
	locker->mode = mode;
	locker->mine = TransactionIdIsCurrentTransactionId(xid);
	return locker->mine || TransactionIdIsInProgress(xid);
}

int
ip_lockers_members(const IpUndoRec *lock, IpLocker **lockers)
{
	MultiXactMember *members;
	int			nmembers;
	int			n = 0;

	Assert(lock->kind == IP_UNDO_LOCK);
	if (!(lock->flags & IP_REC_MULTI))
	{
		*lockers = palloc(sizeof(IpLocker));
		return live_locker(lock->locker, lock->mode, *lockers) ? 1 : 0;
	}
	nmembers = GetMultiXactIdMembers(lock->locker, &members, false, true);
	*lockers = palloc(sizeof(IpLocker) * Max(nmembers, 1));
	for (int i = 0; i < nmembers; i++)
	{
		if (live_locker(members[i].xid, mode_of_status(members[i].status), *lockers + n))
			n++;
	}
	if (nmembers > 0)
		pfree(members);
	return n;
}

bool
ip_lockers_are_live(const IpUndoRec *lock)
{
	IpLocker   *lockers;
	int			n = ip_lockers_members(lock, &lockers);

	pfree(lockers);
	return n > 0;
}

static int
version_lockers(IpVersion *v, IpLocker **lockers)
{
	*lockers = NULL;
	ip_version_skip_lock(v);
	return v->has_lock ? ip_lockers_members(&v->lock, lockers) : 0;
}

static void
make_lock_state(const IpLocker *lockers, int n, IpLockState *state)
{
	MultiXactMember *members = palloc(sizeof(MultiXactMember) * Max(n, 1));

	state->any = n > 0;
	state->multi = n > 1;
	state->mode = LockTupleKeyShare;
	state->newest = IP_XID_NONE;
	for (int i = 0; i < n; i++)
	{
		state->mode = Max(state->mode, lockers[i].mode);
		state->newest = Max(state->newest, ip_xid_full(lockers[i].xid));
		members[i].xid = lockers[i].xid;
		members[i].status = multi_status[lockers[i].mode];
	}
	Assert(n == 0 || !IpXidIsFinal(state->newest)); /* I9 */
	if (n > 1)
		state->locker = MultiXactIdCreateFromMembers(n, members);
	else if (n == 1)
		state->locker = lockers[0].xid;
	pfree(members);
}

void
ip_lockers_merge(IpVersion *v, TransactionId xid, bool add, LockTupleMode mode,
				 IpLockState *state)
{
	IpLocker   *old;
	IpLocker   *lockers;
	int			nold;
	int			n = 0;

	Assert(!add || TransactionIdIsNormal(xid));
	memset(state, 0, sizeof(*state));
	nold = version_lockers(v, &old);
	/* mostly there is no other locker */
	if (nold == 0 && add)
		*state = (IpLockState)
	{
		.any = true,.mode = mode,.newest = ip_xid_full(xid),.locker = xid
	};
	if (nold == 0)
		return;
	lockers = palloc(sizeof(IpLocker) * (nold + 1));
	for (int i = 0; i < nold; i++)
	{
		if (old[i].xid != xid)
			lockers[n++] = old[i];
		else if (old[i].mode > mode)
		{
			mode = old[i].mode;
			add = true;
		}
	}
	if (add)
	{
		lockers[n].xid = xid;
		lockers[n].mode = mode;
		lockers[n++].mine = true;
	}
	make_lock_state(lockers, n, state);
	pfree(lockers);
	if (old)
		pfree(old);
}

TransactionId
ip_lockers_conflict(IpVersion *v, LockTupleMode mode)
{
	TransactionId xid = InvalidTransactionId;
	IpLocker   *lockers;
	int			n;

	/* most rows */
	if (!(v->top_state & IP_ROW_LOCKED))
		return InvalidTransactionId;
	n = version_lockers(v, &lockers);
	for (int i = 0; i < n && !TransactionIdIsValid(xid); i++)
	{
		if (!lockers[i].mine && ip_lockers_modes_conflict(lockers[i].mode, mode))
			xid = lockers[i].xid;
	}
	if (lockers)
		pfree(lockers);
	return xid;
}

/* Do we hold a lock of at least that mode in v's lock record? */
static bool
have_lock(IpVersion *v, LockTupleMode mode)
{
	IpLocker   *lockers;
	bool		held = false;
	int			n = version_lockers(v, &lockers);

	for (int i = 0; i < n; i++)
		held |= lockers[i].mine && lockers[i].mode >= mode;
	if (lockers)
		pfree(lockers);
	return held;
}

bool
ip_lockers_are_ours(IpVersion *v)
{
	return have_lock(v, LockTupleKeyShare);
}

bool
ip_lockers_held(IpVersion *v, LockTupleMode mode)
{
	/*
	 * What we inserted others can only reach for FOR KEY SHARE (we may have
	 * moved the row there); what this very subtransaction updated stays
	 * locked as long as the lock would.
	 */
	if (mode <= LockTupleNoKeyExclusive && ip_version_status(v) == IP_STATUS_MINE &&
		((v->state & IP_ROW_INSERTED) ||
		 (TransactionId) v->xid == GetCurrentTransactionIdIfAny()))
		return true;
	return have_lock(v, mode);
}

/* ---- waiting ------------------------------------------------------------------- */

static void
not_available(Relation rel)
{
	ereport(ERROR,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 errmsg("could not obtain lock on row in relation \"%s\"",
					RelationGetRelationName(rel))));
}

typedef struct WaitContext
{
	Relation	rel;
	ItemPointerData tid;
	XLTW_Oper	oper;
} WaitContext;

/* As core says it of a heap's rows. */
static void
wait_context(void *arg)
{
	WaitContext *w = arg;
	BlockNumber block = ItemPointerGetBlockNumber(&w->tid);
	OffsetNumber off = ItemPointerGetOffsetNumber(&w->tid);
	const char *name = RelationGetRelationName(w->rel);

	if (w->oper == XLTW_Lock)
		errcontext("while locking tuple (%u,%u) in relation \"%s\"", block, off, name);
	else if (w->oper == XLTW_Update)
		errcontext("while updating tuple (%u,%u) in relation \"%s\"", block, off, name);
	else
		errcontext("while deleting tuple (%u,%u) in relation \"%s\"", block, off, name);
}

/*
 * Until what xid did is settled: it has ended, or been rolled back.  A subtransaction that was released is settled with its parent,
 * which may be rolled back long before the whole transaction ends; XactLockTableWait waits for that.
 */
static void
wait_until_settled(TransactionId xid)
{
	LOCKTAG		tag;

	for (;;)
	{
		TransactionId parent;

		SET_LOCKTAG_TRANSACTION(tag, xid);
		(void) LockAcquire(&tag, ShareLock, false, false);
		LockRelease(&tag, ShareLock, false);
		if (!TransactionIdIsInProgress(xid))
			return;
		parent = SubTransGetParent(xid);
		CHECK_FOR_INTERRUPTS();
		if (TransactionIdIsValid(parent))
			xid = parent;
		else
			pg_usleep(1000);	/* it is about to take, or has given up, its
								 * lock */
	}
}

static void
wait_for(Relation rel, const ItemPointerData *tid, TransactionId xid, XLTW_Oper oper)
{
	WaitContext context = {rel, *tid, oper};
	ErrorContextCallback callback = {error_context_stack, wait_context, &context};

	error_context_stack = &callback;
	wait_until_settled(xid);
	error_context_stack = callback.previous;
}

bool
ip_lockers_wait(Relation rel, const ItemPointerData *tid, TransactionId xid,
				LockTupleMode mode, LockWaitPolicy policy, XLTW_Oper oper,
				bool is_locker, bool *have_tuple_lock)
{
	ItemPointer lock_tid = unconstify(ItemPointerData *, tid);

	Assert(ip_page_none_is_locked());
	Assert(TransactionIdIsNormal(xid));
	if (policy == LockWaitBlock)
	{
		if (!*have_tuple_lock && !is_locker)
		{
			LockTuple(rel, lock_tid, heavy_mode[mode]);
			*have_tuple_lock = true;
		}
		wait_for(rel, tid, xid, oper);
		return true;
	}
	if (!*have_tuple_lock && !is_locker)
		*have_tuple_lock = CompatCondLockTuple(rel, lock_tid, heavy_mode[mode],
											   policy == LockWaitError);
	if ((*have_tuple_lock || is_locker) && CompatCondXactWait(xid, policy == LockWaitError))
		return true;
	if (policy == LockWaitError)
		not_available(rel);
	return false;
}

void
ip_lockers_wait_end(Relation rel, const ItemPointerData *tid, LockTupleMode mode,
					bool have_tuple_lock)
{
	if (have_tuple_lock)
		UnlockTuple(rel, unconstify(ItemPointerData *, tid), heavy_mode[mode]);
}
