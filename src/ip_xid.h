/*-------------------------------------------------------------------------
 * ip_xid.h
 *	  What became of a transaction.
 *
 * Rows carry no hint bits: a backend-local cache of decided transactions does
 * their job without dirtying pages.
 *-------------------------------------------------------------------------
 */
#ifndef IP_XID_H
#define IP_XID_H

#include "utils/relcache.h"
#include "utils/snapshot.h"

#include "ip_format.h"

typedef enum IpXidStatus
{
	IP_XID_MINE,				/* the current transaction, or a live subtransaction of it */
	IP_XID_RUNNING,
	IP_XID_COMMITTED,
	IP_XID_ABORTED
} IpXidStatus;

/* Visible to everybody for ever: no transaction id, or the frozen one. */
#define IpXidIsFinal(xid) ((xid) < FirstNormalTransactionId)

/* The next transaction id, as of some moment of the current transaction. */
extern IpXid ip_next_xid(void);

/* A recent transaction id with its epoch. */
extern IpXid ip_xid_full(TransactionId xid);

extern IpXidStatus ip_xid_status(IpXid xid);

/* Did this transaction commit?  It must not be running any more. */
extern bool ip_xid_did_commit(IpXid xid);

/* Is the commit on disk?  The transaction did commit. */
extern bool ip_xid_commit_is_flushed(IpXid xid);

/* See to it that it is. */
extern void ip_xid_flush_commit(IpXid xid);

/* Does an MVCC snapshot see another transaction's changes? */
extern bool ip_xid_in_snapshot_past(IpXid xid, Snapshot snapshot);

/* Does every snapshot that can read rel see that xid has ended? */
extern bool ip_xid_removable(Relation rel, IpXid xid);

#endif							/* IP_XID_H */
