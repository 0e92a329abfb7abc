/*-------------------------------------------------------------------------
 * ip_xid.h
 *	  What became of a transaction.
 *
 * Rows carry no hint bits: a backend-local cache of decided transactions does
 * their job without dirtying pages.
 *
 * pg_xact does not know transactions that are older than its horizon.  What a
 * page still names of them has committed: VACUUM puts aborted changes back before
 * relfrozenxid passes them.  But that is true of the page only.  A backend that
 * has copied a row, and then lets go of the page, must not conclude it from a
 * horizon that has moved since: the change may have been put back meanwhile.  So
 * the questions here name the horizon of a moment at which the page was locked,
 * or of one before that: ip_xid_horizon().
 *-------------------------------------------------------------------------
 */
#ifndef IP_XID_H
#define IP_XID_H

#include "utils/relcache.h"
#include "utils/snapshot.h"

#include "ip_format.h"

typedef enum IpXidStatus
{
	IP_STATUS_MINE,				/* the current transaction, or a live
								 * subtransaction of it */
	IP_STATUS_RUNNING,
	IP_STATUS_COMMITTED,
	IP_STATUS_ABORTED,
	IP_STATUS_FORGOTTEN			/* by pg_xact, since the page was looked at:
								 * do that again */
} IpXidStatus;

/*
 * The next transaction id; it may be higher by now.  Not to be kept: a transaction that has no xid and no snapshot
 * may live through more than 2^31 others.
 */
extern IpXid ip_xid_next(void);

/* A recent transaction id with its epoch. */
extern IpXid ip_xid_full(TransactionId xid);

/* The xid base of a data page that is made, or gets another one, when that is the next xid.  Error: no such page can have it. */
extern IpXid ip_xid_data_base(IpXid next);

/* The oldest transaction id that pg_xact knows now. */
extern IpXid ip_xid_horizon(void);

/*
 * What became of xid, which a page named when pg_xact's horizon was this or a later
 * one.
 */
extern IpXidStatus ip_xid_status(IpXid xid, IpXid horizon);

/*
 * The same for a page that has been locked since, so that no change of it was put back: what
 * pg_xact has forgotten meanwhile has committed.  Never IP_STATUS_FORGOTTEN.
 */
extern IpXidStatus ip_xid_status_locked(IpXid xid);

/* Did xid abort, so that some row may still have to be put back? */
extern bool ip_xid_may_be_on_rows(IpXid xid);

/* The transaction did commit: a WAL position behind that, up to which WAL is to be flushed, or invalid if the commit is on disk. */
extern XLogRecPtr ip_xid_unflushed_commit(IpXid xid);

/*
 * Had the other transaction not ended yet when the MVCC snapshot was taken?  To be asked before ip_xid_status: on a standby
 * pg_xact may have forgotten such a one.
 */
extern bool ip_xid_in_snapshot(IpXid xid, Snapshot snapshot);

/* Does every snapshot that can read rel see that xid has ended? */
extern bool ip_xid_removable(Relation rel, IpXid xid);

/*
 * Rows keep the xids from this one on, which is so old, as heap's rows do, though all see what these have made.
 * Without track_commit_timestamp nobody asks for them, and no xid is kept.
 */
extern IpXid ip_xid_kept_from(uint32 age);

#endif							/* IP_XID_H */
