/*-------------------------------------------------------------------------
 * ip_lockers.h
 *	  The transactions that have locked a row, and waiting for other
 *	  transactions.
 *
 * See ip_lockset.h for where lockers are stored.
 *-------------------------------------------------------------------------
 */
#ifndef IP_LOCKERS_H
#define IP_LOCKERS_H

#include "access/tableam.h"
#include "storage/lmgr.h"

#include "ip_version.h"

/*
 * Unless stated otherwise, v stands on a row's newest version, and its page is
 * locked.
 */

/*
 * Returns a live locker of v, not ours, that conflicts with mode; or invalid.
 */
extern TransactionId ip_lockers_conflict(IpVersion *v, LockTupleMode mode);

/* Returns whether we already hold a lock of at least that mode on v. */
extern bool ip_lockers_held(IpVersion *v, LockTupleMode mode);

extern bool ip_lockers_modes_conflict(LockTupleMode a, LockTupleMode b);

/* Returns whether the current transaction is among v's lockers. */
extern bool ip_lockers_are_ours(IpVersion *v);

/*
 * Add us to the lockers of v's row, which has no conflicting lockers.  Lock:
 * data, its page, exclusively.
 */
extern void ip_lockers_add(IpVersion *v, Buffer data, TransactionId xid,
						   LockTupleMode mode);

/*
 * v's row has moved to off of data: let its lockers, except us, who need no
 * lock there, lock the new row too.  v is as it was before the move.  Lock:
 * v's page, and data, exclusively.
 */
extern void ip_lockers_carry(IpVersion *v, Buffer data, OffsetNumber off);

/*
 * Wait for xid to end, as wait_policy says.  At the first wait, the
 * heavyweight tuple lock that keeps the queue fair is taken
 * (*have_tuple_lock).  A backend that is already a locker does not queue,
 * because those in the queue may be waiting for it.  False if it would block.
 * No buffer lock may be held.
 */
extern bool ip_lockers_wait(Relation rel, const ItemPointerData *tid,
							TransactionId xid, LockTupleMode mode,
							LockWaitPolicy policy, XLTW_Oper oper,
							bool is_locker, bool *have_tuple_lock);

extern void ip_lockers_wait_end(Relation rel, const ItemPointerData *tid,
								LockTupleMode mode, bool have_tuple_lock);

#endif							/* IP_LOCKERS_H */
