/*-------------------------------------------------------------------------
 * ip_lockers.h
 *	  The transactions that have locked a row, and waiting for other transactions.
 *
 * See ip_lockset.h for where they are.
 *-------------------------------------------------------------------------
 */
#ifndef IP_LOCKERS_H
#define IP_LOCKERS_H

#include "access/tableam.h"
#include "storage/lmgr.h"

#include "ip_version.h"

/* v stands on a row's newest version, with its page locked, as far as nothing else is said. */

/* A live locker of v, not ours, that conflicts with mode; or invalid. */
extern TransactionId ip_lockers_conflict(IpVersion *v, LockTupleMode mode);

/* Do we hold a lock of at least that mode on v already? */
extern bool ip_lockers_held(IpVersion *v, LockTupleMode mode);

extern bool ip_lockers_modes_conflict(LockTupleMode a, LockTupleMode b);

/* Is the current transaction among v's lockers? */
extern bool ip_lockers_are_ours(IpVersion *v);

/* We lock v's row.  It has no conflicting lockers.  Lock: data, its page, exclusively. */
extern void ip_lockers_add(IpVersion *v, Buffer data, TransactionId xid, LockTupleMode mode);

/*
 * v's row has moved to off of data: its lockers but ourselves, who do not mind that, lock that one, too.  v is as it was before.  Lock: v's page, and
 * data, exclusively.
 */
extern void ip_lockers_carry(IpVersion *v, Buffer data, OffsetNumber off);

/*
 * Wait for xid to end, as wait_policy says; *have_tuple_lock: the heavyweight
 * tuple lock that keeps the queue fair is taken at the first wait.  A
 * backend that is a locker already does not queue: those in the queue may be waiting for it.
 * False: would block.  No buffer lock may be held.
 */
extern bool ip_lockers_wait(Relation rel, const ItemPointerData *tid, TransactionId xid,
							LockTupleMode mode, LockWaitPolicy policy, XLTW_Oper oper,
							bool is_locker, bool *have_tuple_lock);

extern void ip_lockers_wait_end(Relation rel, const ItemPointerData *tid,
								LockTupleMode mode, bool have_tuple_lock);

#endif							/* IP_LOCKERS_H */
