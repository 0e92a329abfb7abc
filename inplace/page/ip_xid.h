/*-------------------------------------------------------------------------
 * ip_xid.h
 *	  Transaction ids and the status of transactions.
 *
 * Rows carry no hint bits: a backend-local cache of decided transactions does
 * their job without dirtying pages.
 *
 * pg_xact does not know transactions that are older than its horizon.  Those
 * that a page still names have committed: VACUUM rolls aborted changes back
 * before relfrozenxid passes them.  But this is true of the page only.  A
 * backend that has copied a row and then unlocked the page must not conclude
 * it from a horizon that has moved since: the change may have been rolled back
 * in the meantime.  So the functions here take the horizon of a moment at
 * which the page was locked, or of an earlier one: ip_xid_horizon().
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
	IP_STATUS_FORGOTTEN			/* pg_xact was truncated past it after the
								 * page was read: read that again */
} IpXidStatus;

/*
 * The next transaction id; others may be assigned at any time.  Do not keep
 * it: a transaction that has no xid and no snapshot may last for more than
 * 2^31 others.
 */
extern IpXid ip_xid_next(void);

/* A recent transaction id with its epoch. */
extern IpXid ip_xid_full(TransactionId xid);

/*
 * The xid base of a data page that is made, or gets another base, when "next"
 * is the next xid.  Errors: next is too high for any data page.
 */
extern IpXid ip_xid_data_base(IpXid next);

/* The oldest transaction id that pg_xact now knows. */
extern IpXid ip_xid_horizon(void);

/*
 * The status of xid, which a page named when pg_xact's horizon was this one or
 * a later one.
 */
extern IpXidStatus ip_xid_status(IpXid xid, IpXid horizon);

/*
 * The status of xid, named by a page that has been locked since it was read,
 * so that no change of it was rolled back: an xid that is now older than
 * pg_xact has committed.  Never IP_STATUS_FORGOTTEN.
 */
extern IpXidStatus ip_xid_status_locked(IpXid xid);

/*
 * Returns whether xid aborted, so that rows may still have to be rolled back.
 */
extern bool ip_xid_may_be_on_rows(IpXid xid);

/*
 * For a transaction that committed: the WAL position behind its commit, up to
 * which WAL must be flushed, or invalid if the commit is on disk.
 */
extern XLogRecPtr ip_xid_unflushed_commit(IpXid xid);

/*
 * Returns whether the transaction, not our own, had not ended when the MVCC
 * snapshot was taken.  Call this before ip_xid_status: on a standby, pg_xact
 * may no longer have such a transaction.
 */
extern bool ip_xid_in_snapshot(IpXid xid, Snapshot snapshot);

/* Returns whether every snapshot that can read rel sees xid as ended. */
extern bool ip_xid_removable(Relation rel, IpXid xid);

/*
 * The oldest xid that rows keep; it is "age" transactions old.  Like heap's
 * rows, rows keep xids although their changes are visible to all.  Without
 * track_commit_timestamp the xids are not needed, and none is kept.
 */
extern IpXid ip_xid_kept_from(uint32 age);

#endif							/* IP_XID_H */
