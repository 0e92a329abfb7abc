/*-------------------------------------------------------------------------
 * ip_lock.h
 *	  Locking rows.
 *-------------------------------------------------------------------------
 */
#ifndef IP_LOCK_H
#define IP_LOCK_H

#include "access/tableam.h"

#include "ip_lockers.h"

/*
 * Did the transaction's last call of ip_tuple_lock lock this row for command cid?
 * Rows of our own need no lock, but core's xmax tells that they were locked.
 */
extern bool ip_lock_was_taken(Relation rel, const ItemPointerData *tid, CommandId cid);

/*
 * If the locked version is not the one that the snapshot sees, *tid becomes a
 * TID of that version (see IpTarget), so that the caller's retry finds it.
 */
extern TM_Result ip_tuple_lock(Relation rel, ItemPointer tid, Snapshot snapshot,
							   TupleTableSlot *slot, CommandId cid, LockTupleMode mode,
							   LockWaitPolicy wait_policy, uint8 flags,
							   TM_FailureData *tmfd);

#endif							/* IP_LOCK_H */
