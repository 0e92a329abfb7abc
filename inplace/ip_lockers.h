/*-------------------------------------------------------------------------
 * ip_lockers.h
 *	  The transactions that have locked a row, and waiting for other transactions.
 *
 * A row lock is an undo record on top of the row's chain, with the locker's xid
 * and mode, or a MultiXactId when there are several lockers.  There is at most
 * one such record in a chain; the next lock or change of the row takes the
 * live lockers over into a record of its own.
 *-------------------------------------------------------------------------
 */
#ifndef IP_LOCKERS_H
#define IP_LOCKERS_H

#include "access/tableam.h"
#include "storage/lmgr.h"

#include "ip_version.h"

typedef struct IpLocker
{
	TransactionId xid;
	LockTupleMode mode;
	bool		mine;			/* current transaction or a subtransaction of
								 * it */
} IpLocker;

/* A lock record's contents: what to write, or nothing if !any. */
typedef struct IpLockState
{
	bool		any;
	bool		multi;
	uint32		locker;			/* xid or MultiXactId */
	LockTupleMode mode;			/* strongest */
	IpXid		newest;			/* newest member */
} IpLockState;

/* Live lockers of a lock record, palloc'd; their number. */
extern int	ip_lockers_members(const IpUndoRec *lock, IpLocker **lockers);

/* Has a lock record a live locker? */
extern bool ip_lockers_are_live(const IpUndoRec *lock);

/*
 * What remains of v's lock after a change by xid, which excludes others like a
 * lock in that mode (with add: and is such a lock).  xid's own locks that are
 * not stronger are not kept.
 */
extern void ip_lockers_merge(IpVersion *v, TransactionId xid, bool add, LockTupleMode mode,
							 IpLockState *state);

/* A live locker of v, not ours, that conflicts with mode; or invalid. */
extern TransactionId ip_lockers_conflict(IpVersion *v, LockTupleMode mode);

/* Do we hold a lock of at least that mode on v already? */
extern bool ip_lockers_held(IpVersion *v, LockTupleMode mode);

extern bool ip_lockers_modes_conflict(LockTupleMode a, LockTupleMode b);

/* Is the current transaction among v's lockers? */
extern bool ip_lockers_are_ours(IpVersion *v);

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
