/*-------------------------------------------------------------------------
 * ip_lockers.c
 *	  The transactions that have locked a row, and waiting for other
 *	  transactions.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/subtrans.h"
#include "access/xact.h"
#include "storage/procarray.h"

#include "ip_lockers.h"
#include "ip_lockset_use.h"
#include "ip_xid.h"

static const LOCKMODE heavy_mode[] = {
	[LockTupleKeyShare] = AccessShareLock,
	[LockTupleShare] = RowShareLock,
	[LockTupleNoKeyExclusive] = ExclusiveLock,
	[LockTupleExclusive] = AccessExclusiveLock
};

bool
ip_lockers_modes_conflict(LockTupleMode a, LockTupleMode b)
{
	Assert(a <= LockTupleExclusive && b <= LockTupleExclusive);
	return DoLockModesConflict(heavy_mode[a], heavy_mode[b]);
}

/* Returns the lockers of the row on whose newest version v stands. */
static const IpLockers *
lockers(IpVersion *v)
{
	Assert(v->locked && v->steps == 0);
	if (!v->lockers_known)
		ip_lockset_read(v->rel, ItemPointerGetBlockNumber(&v->tid), v->page,
						ItemPointerGetOffsetNumber(&v->tid), &v->lockers);
	v->lockers_known = true;
	return &v->lockers;
}

TransactionId
ip_lockers_conflict(IpVersion *v, LockTupleMode mode)
{
	const IpLockers *l = lockers(v);

	for (int i = 0; i < l->n; i++)
	{
		if (!l->list[i].mine &&
			ip_lockers_modes_conflict(l->list[i].mode, mode))
			return (TransactionId) l->list[i].xid;
	}
	return InvalidTransactionId;
}

/*
 * Returns whether the current transaction is a locker, in at least that mode.
 */
static bool
have_lock(IpVersion *v, LockTupleMode mode)
{
	const IpLockers *l = lockers(v);

	for (int i = 0; i < l->n; i++)
	{
		if (l->list[i].mine && l->list[i].mode >= mode)
			return true;
	}
	return false;
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
	 * Others can reach a row that we inserted only for FOR KEY SHARE (we may
	 * have moved the row there).  A row that this same subtransaction updated
	 * stays locked as long as the lock would.
	 */
	if (mode <= LockTupleNoKeyExclusive &&
		ip_version_status(v) == IP_STATUS_MINE &&
		((v->state & IP_ROW_INSERTED) ||
		 (TransactionId) v->xid == GetCurrentTransactionIdIfAny()))
		return true;
	return have_lock(v, mode);
}

void
ip_lockers_add(IpVersion *v, Buffer data, TransactionId xid, LockTupleMode mode)
{
	bool		any = lockers(v)->any;

	Assert(v->page == BufferGetPage(data));
	ip_lockset_add(v->rel, data, ItemPointerGetOffsetNumber(&v->tid),
				   ip_xid_full(xid), mode, any);
	v->lockers_known = false;
}

void
ip_lockers_carry(IpVersion *v, Buffer data, OffsetNumber off)
{
	const IpLockers *l = lockers(v);
	IpLockers	there;

	if (l->n == 0)
		return;
	ip_lockset_read(v->rel, BufferGetBlockNumber(data), BufferGetPage(data),
					off, &there);
	for (int i = 0; i < l->n; i++)
	{
		if (l->list[i].mine)
			continue;
		ip_lockset_add(v->rel, data, off, l->list[i].xid, l->list[i].mode,
					   there.any);
		there.any = true;
	}
}

/* ---- waiting ------------------------------------------------------------- */

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

/* The same error context as core's for rows of heap. */
static void
wait_context(void *arg)
{
	WaitContext *w = arg;
	BlockNumber block = ItemPointerGetBlockNumber(&w->tid);
	OffsetNumber off = ItemPointerGetOffsetNumber(&w->tid);
	const char *name = RelationGetRelationName(w->rel);

	if (w->oper == XLTW_Lock)
		errcontext("while locking tuple (%u,%u) in relation \"%s\"", block, off,
				   name);
	else if (w->oper == XLTW_Update)
		errcontext("while updating tuple (%u,%u) in relation \"%s\"", block,
				   off, name);
	else
		errcontext("while deleting tuple (%u,%u) in relation \"%s\"", block,
				   off, name);
}

/*
 * Wait until xid has ended or has been rolled back.  A subtransaction that was
 * released ends with its parent, which may be rolled back long before the
 * whole transaction ends; XactLockTableWait would wait for the latter.
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
			pg_usleep(1000);	/* it is about to take its lock, or has
								 * released it */
	}
}

static void
wait_for(Relation rel, const ItemPointerData *tid, TransactionId xid,
		 XLTW_Oper oper)
{
	WaitContext context = {rel, *tid, oper};
	ErrorContextCallback callback = {
		error_context_stack, wait_context, &context
	};

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
	if ((*have_tuple_lock || is_locker) &&
		CompatCondXactWait(xid, policy == LockWaitError))
		return true;
	if (policy == LockWaitError)
		not_available(rel);
	return false;
}

void
ip_lockers_wait_end(Relation rel, const ItemPointerData *tid,
					LockTupleMode mode, bool have_tuple_lock)
{
	if (have_tuple_lock)
		UnlockTuple(rel, unconstify(ItemPointerData *, tid), heavy_mode[mode]);
}
