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
 * If the locked version is not the one that the snapshot sees, *tid becomes a
 * TID of the locked version (see IpTarget), so that the caller's retry finds
 * it.
 */
extern TM_Result ip_lock_tuple(Relation rel, ItemPointer tid, Snapshot snapshot,
							   TupleTableSlot *slot, CommandId cid,
							   LockTupleMode mode, LockWaitPolicy wait_policy,
							   uint8 flags,
							   TM_FailureData *tmfd);

#endif							/* IP_LOCK_H */
