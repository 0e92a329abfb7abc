/*-------------------------------------------------------------------------
 * ip_xid.c
 *	  What became of a transaction.
 *-------------------------------------------------------------------------
 */
#include "ip_compat.h"

#include "access/xact.h"
#include "storage/procarray.h"

#include "ip_page.h"
#include "ip_xid.h"

#define DECIDED_CACHE_SIZE	1024	/* power of 2 */

typedef struct DecidedXid
{
	IpXid		xid;
	bool		committed;
} DecidedXid;

static DecidedXid decided[DECIDED_CACHE_SIZE];

IpXid
ip_next_xid(void)
{
	static LocalTransactionId known_for = InvalidLocalTransactionId;
	static IpXid next;

	/*
	 * A transaction cannot live through 2^31 others, so what was true at some
	 * moment of it is good enough to tell epochs.
	 */
	if (known_for != MyProc->lxid || known_for == InvalidLocalTransactionId)
	{
		next = U64FromFullTransactionId(ReadNextFullTransactionId());
		known_for = MyProc->lxid;
	}
	return next;
}

IpXid
ip_xid_full(TransactionId xid)
{
	return ip_xid_near(ip_next_xid(), xid);
}

bool
ip_xid_did_commit(IpXid xid)
{
	DecidedXid *d;

	if (IpXidIsFinal(xid))
		return true;
	d = &decided[xid & (DECIDED_CACHE_SIZE - 1)];
	if (d->xid != xid)
	{
		/*
		 * Before pg_xact is truncated, VACUUM has put back every aborted
		 * change that is older: what is left from then has committed.
		 */
		bool		committed =
			xid < ip_xid_full(TransamVariables->oldestClogXid) ||
			TransactionIdDidCommit((TransactionId) xid);

		/* what is remembered is so for ever; a damaged xid may still be to come */
		if (!committed)
		{
			if (TransactionIdIsInProgress((TransactionId) xid))
				return false;
			committed = TransactionIdDidCommit((TransactionId) xid);
		}
		d->xid = xid;
		d->committed = committed;
	}
	return d->committed;
}

bool
ip_xid_commit_is_flushed(IpXid xid)
{
	return IpXidIsFinal(xid) || xid < ip_xid_full(TransamVariables->oldestClogXid) ||
		!XLogNeedsFlush(TransactionIdGetCommitLSN((TransactionId) xid));
}

void
ip_xid_flush_commit(IpXid xid)
{
	XLogFlush(TransactionIdGetCommitLSN((TransactionId) xid));
}

static bool
known_decided(IpXid xid)
{
	return decided[xid & (DECIDED_CACHE_SIZE - 1)].xid == xid;
}

IpXidStatus
ip_xid_status(IpXid xid)
{
	TransactionId xid32 = (TransactionId) xid;

	if (!IpXidIsFinal(xid) && !known_decided(xid) &&
		xid >= ip_xid_full(TransamVariables->oldestClogXid))
	{
		if (TransactionIdIsCurrentTransactionId(xid32))
			return IP_XID_MINE;
		if (TransactionIdIsInProgress(xid32))
			return IP_XID_RUNNING;
	}
	return ip_xid_did_commit(xid) ? IP_XID_COMMITTED : IP_XID_ABORTED;
}

bool
ip_xid_in_snapshot_past(IpXid xid, Snapshot snapshot)
{
	if (IpXidIsFinal(xid) || xid < ip_xid_full(TransamVariables->oldestClogXid))
		return true;
	return !XidInMVCCSnapshot((TransactionId) xid, snapshot) && ip_xid_did_commit(xid);
}

bool
ip_xid_removable(Relation rel, IpXid xid)
{
	if (IpXidIsFinal(xid))
		return true;
	return GlobalVisTestIsRemovableFullXid(GlobalVisTestFor(rel),
										   FullTransactionIdFromU64(xid));
}
