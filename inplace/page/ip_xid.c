/*-------------------------------------------------------------------------
 * ip_xid.c
 *	  Transaction ids and the status of transactions.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/commit_ts.h"
#include "access/xact.h"
#include "storage/procarray.h"

#include "ip_page.h"
#include "ip_xid.h"

/*
 * Cache of transactions whose status pg_xact has returned.  Neighbours share
 * an entry: rows that were inserted one after another name all of them, and
 * are scanned again and again.
 */
#define NEIGHBOURS			64
#define DECIDED_CACHE_SIZE	4096	/* power of 2 */

typedef struct DecidedXids
{
	uint64		number;			/* number of the group of neighbours */
	uint64		known;			/* one bit for each neighbour */
	uint64		committed;
} DecidedXids;

static DecidedXids decided[DECIDED_CACHE_SIZE];

static inline DecidedXids *
decided_with(IpXid xid)
{
	return &decided[xid / NEIGHBOURS & (DECIDED_CACHE_SIZE - 1)];
}

static inline uint64
decided_bit(IpXid xid)
{
	return UINT64CONST(1) << (xid & (NEIGHBOURS - 1));
}

static void
remember(IpXid xid, bool committed)
{
	DecidedXids *d = decided_with(xid);

	if (d->number != xid / NEIGHBOURS)
	{
		d->number = xid / NEIGHBOURS;
		d->known = d->committed = 0;
	}
	d->known |= decided_bit(xid);
	if (committed)
		d->committed |= decided_bit(xid);
}

/*
 * XidGenLock, which each transaction that gets an xid takes exclusively, would
 * be needed only to read the counter atomically.  The xids of others that the
 * caller knows come from pages that it has locked, or are only compared as
 * near to it.  At the end of an epoch the counter may be read with the low
 * half of the next epoch, which does no harm.
 */
IpXid
ip_xid_next(void)
{
#ifdef PG_HAVE_8BYTE_SINGLE_COPY_ATOMICITY
	return *(volatile uint64 *) &TransamVariables->nextXid.value;
#else
	return U64FromFullTransactionId(ReadNextFullTransactionId());
#endif
}

IpXid
ip_xid_full(TransactionId xid)
{
	return ip_xid_near(ip_xid_next(), xid);
}

IpXid
ip_xid_data_base(IpXid next)
{
	IpXid		base = next > IP_DATA_XIDS_BEFORE ?
		next - IP_DATA_XIDS_BEFORE : 0;

	if (base >> IP_DATA_BASE_SHIFT > PG_UINT16_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("transaction id " UINT64_FORMAT " is too large for inplace tables",
						next)));
	return base >> IP_DATA_BASE_SHIFT << IP_DATA_BASE_SHIFT;
}

IpXid
ip_xid_horizon(void)
{
	return ip_xid_full(TransamVariables->oldestClogXid);
}

/*
 * True if pg_xact may be truncated past xid at any moment.  Truncation keeps
 * what a snapshot of ours needs, unless this is VACUUM, whose snapshot is
 * ignored, or a standby.
 */
static bool
may_be_forgotten(IpXid xid)
{
	TransactionId xmin = MyProc->xmin;

	return !TransactionIdIsValid(xmin) ||
		TransactionIdPrecedes((TransactionId) xid, xmin) ||
		(MyProc->statusFlags &
		 (PROC_IN_VACUUM | PROC_IN_LOGICAL_DECODING)) != 0 ||
		RecoveryInProgress();
}

/* Look up a transaction that has ended in pg_xact, and remember the result. */
static IpXidStatus
look_up(IpXid xid)
{
	bool		lock = may_be_forgotten(xid);
	IpXidStatus status = IP_STATUS_FORGOTTEN;

	Assert(!TransactionIdIsCurrentTransactionId((TransactionId) xid) &&
		   !TransactionIdIsInProgress((TransactionId) xid));	/* I15 */
	if (xid >= ip_xid_next())
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("a row names transaction %llu, which has not begun",
						(unsigned long long) xid),
				 errhint("inplace_check() finds the page that is damaged.")));
	if (lock)
		LWLockAcquire(XactTruncationLock, LW_SHARED);
	if (xid >= ip_xid_horizon())
	{
		status = TransactionIdDidCommit((TransactionId) xid) ?
			IP_STATUS_COMMITTED : IP_STATUS_ABORTED;
		remember(xid, status == IP_STATUS_COMMITTED);
	}
	if (lock)
		LWLockRelease(XactTruncationLock);
	return status;
}

IpXidStatus
ip_xid_status(IpXid xid, IpXid horizon)
{
	TransactionId xid32 = (TransactionId) xid;
	const DecidedXids *d = decided_with(xid);

	if (IpXidIsFrozen(xid) || xid < horizon)
		return IP_STATUS_COMMITTED;
	if (d->number == xid / NEIGHBOURS && (d->known & decided_bit(xid)))
		return (d->committed & decided_bit(xid)) ? IP_STATUS_COMMITTED :
			IP_STATUS_ABORTED;
	if (TransactionIdIsCurrentTransactionId(xid32))
		return IP_STATUS_MINE;
	if (TransactionIdIsInProgress(xid32))
		return IP_STATUS_RUNNING;
	return look_up(xid);
}

IpXidStatus
ip_xid_status_locked(IpXid xid)
{
	IpXidStatus status = ip_xid_status(xid, ip_xid_horizon());

	return status == IP_STATUS_FORGOTTEN ? IP_STATUS_COMMITTED : status;
}

bool
ip_xid_may_be_on_rows(IpXid xid)
{
	return ip_xid_status_locked(xid) != IP_STATUS_COMMITTED;
}

XLogRecPtr
ip_xid_unflushed_commit(IpXid xid)
{
	XLogRecPtr	lsn = InvalidXLogRecPtr;

	LWLockAcquire(XactTruncationLock, LW_SHARED);
	/* the commit of a transaction that is older than pg_xact is on disk */
	if (!IpXidIsFrozen(xid) && xid >= ip_xid_horizon())
		lsn = TransactionIdGetCommitLSN((TransactionId) xid);
	LWLockRelease(XactTruncationLock);
	return lsn != InvalidXLogRecPtr && XLogNeedsFlush(lsn) ? lsn :
		InvalidXLogRecPtr;
}

/*
 * Core compares the low halves, so it may take an xid that is older by 2^31 or
 * more for a later one.  pg_xact's horizon does not matter here: on a standby
 * it may be newer than transactions that the snapshot does not see.
 */
bool
ip_xid_in_snapshot(IpXid xid, Snapshot snapshot)
{
	Assert(IsMVCCSnapshot(snapshot));
	return !IpXidIsFrozen(xid) &&
		XidInMVCCSnapshot((TransactionId) xid, snapshot) &&
		xid >= ip_xid_full(snapshot->xmin);
}

bool
ip_xid_removable(Relation rel, IpXid xid)
{
	if (IpXidIsFrozen(xid))
		return true;
	return CompatIsRemovableFullXid(GlobalVisTestFor(rel),
									FullTransactionIdFromU64(xid));
}

IpXid
ip_xid_kept_from(uint32 age)
{
	IpXid		next = ip_xid_next();

	if (!track_commit_timestamp)
		return IP_XID_MAX;
	return next - Min(next - FirstNormalTransactionId, age);
}
