/*-------------------------------------------------------------------------
 * ip_holder.c
 *	  The server's log on undo that keeps growing, and what keeps it.
 *
 * View inplace_horizon shows the same for all snapshots and transactions, but
 * only to those who look at the right time.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/transam.h"
#include "access/twophase.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/procarray.h"

#include "ip_holder.h"
#include "ip_page.h"
#include "ip_rel.h"

int			ip_holder_log_size = 1024 * 1024 / (BLCKSZ / 1024);

/* What keeps undo of this transaction, and of later ones. */
typedef struct Holder
{
	TransactionId xid;			/* invalid: nothing does */
	bool		is_slot;
	int			pid;			/* 0: a prepared transaction */
} Holder;

/*
 * Returns whether the structure is a process's or a prepared transaction's that
 * has not ended: its xids stay when it has.  Lock: ProcArrayLock.
 */
static bool
is_in_use(const PGPROC *proc, bool prepared)
{
	if (prepared)
		return ProcGlobal->xids[proc->pgxactoff] == proc->xid;
	return proc->pid != 0 && BackendPidGetProcWithLock(proc->pid) == proc;
}

/*
 * Returns the oldest transaction whose undo the process keeps, or an invalid
 * one, as when horizons are computed.  Snapshots of other databases see none
 * of our tables; but their running transactions make our snapshots old.
 */
static TransactionId
kept_by(const PGPROC *proc)
{
	if (proc->statusFlags & (PROC_IN_VACUUM | PROC_IN_LOGICAL_DECODING))
		return InvalidTransactionId;
	if (proc->databaseId == MyDatabaseId ||
		(proc->statusFlags & PROC_AFFECTS_ALL_HORIZONS))
		return TransactionIdOlder(proc->xid, proc->xmin);
	return proc->xid;
}

/*
 * Find the oldest holder.  A running transaction makes all snapshots that are
 * taken meanwhile as old as it is: it goes before them.
 */
static Holder
oldest_holder(void)
{
	Holder		holder = {InvalidTransactionId};
	TransactionId slots;
	TransactionId catalog;

	LWLockAcquire(ProcArrayLock, LW_SHARED);
	/* allProcCount leaves out prepared transactions, which are behind it */
	for (uint32 i = 0; i < ProcGlobal->allProcCount + max_prepared_xacts; i++)
	{
		PGPROC	   *proc = &ProcGlobal->allProcs[i];
		bool		prepared = i >= ProcGlobal->allProcCount;
		TransactionId xid = kept_by(proc);

		if (TransactionIdIsValid(xid) &&
			TransactionIdOlder(holder.xid, xid) == xid &&
			(holder.xid != xid || proc->xid == xid) &&
			is_in_use(proc, prepared))
		{
			holder.xid = xid;
			holder.pid = prepared ? 0 : proc->pid;
		}
	}
	LWLockRelease(ProcArrayLock);
	ProcArrayGetReplicationSlotXmin(&slots, &catalog);
	holder.is_slot = TransactionIdIsValid(slots) && slots != holder.xid &&
		TransactionIdOlder(holder.xid, slots) == slots;
	if (holder.is_slot)
		holder.xid = slots;
	return holder;
}

static Holder
ourselves(void)
{
	Holder		holder = {.xid = MyProc->xid,.pid = MyProcPid};

	return holder;
}

/* The number of times that the setting is to be doubled for so many pages. */
static int
level_of(uint32 pages)
{
	int			level = 0;

	for (uint32 size = Max(ip_holder_log_size, 1); pages > size; pages /= 2)
		level++;
	return level;
}

void
ip_holder_note(Relation rel, uint32 pages, uint32 grown)
{
	if (ip_holder_log_size >= 0 && grown <= pages &&
		level_of(pages) != level_of(pages - grown))
		ip_rel_cache(rel)->undo_to_log = pages;
}

void
ip_holder_log(Relation rel)
{
	IpRelCache *cache = ip_rel_cache(rel);
	uint32		pages = cache->undo_to_log;
	bool		local = RELATION_IS_LOCAL(rel);
	Holder		holder;

	Assert(ip_page_none_is_locked());
	if (pages == 0)
		return;
	cache->undo_to_log = 0;
	/* nobody else sees a table that is our own */
	holder = local ? ourselves() : oldest_holder();
	ereport(LOG,
			(errmsg("undo of relation \"%s\" has grown to %llu kB",
					RelationGetRelationName(rel),
					(unsigned long long) pages * (BLCKSZ / 1024)),
			 !TransactionIdIsValid(holder.xid) ? 0 :
			 holder.is_slot ? errdetail("A replication slot keeps undo of transaction %u and of later ones.",
										holder.xid) :
			 holder.pid == 0 ? errdetail("A prepared transaction keeps undo of transaction %u and of later ones.",
										 holder.xid) :
			 errdetail("Process %d keeps undo of transaction %u and of later ones.",
					   holder.pid, holder.xid),
			 local ? 0 :
			 errhint("View inplace_horizon shows what keeps undo, and the remedy.")));
}
