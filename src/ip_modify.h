/*-------------------------------------------------------------------------
 * ip_modify.h
 *	  Changing rows: what update, delete and row locks have in common.
 *-------------------------------------------------------------------------
 */
#ifndef IP_MODIFY_H
#define IP_MODIFY_H

#include "access/tableam.h"
#include "ip_compat.h"

#include "ip_lockers.h"
#include "ip_undo.h"
#include "ip_version.h"

/* What a change by our transaction finds. */
typedef enum IpFound
{
	IPF_OK,						/* the version that we may change */
	IPF_AGAIN,					/* its maker has aborted meanwhile: look again */
	IPF_INVISIBLE,				/* not there yet for this command */
	IPF_SELF,					/* changed by this command, or a later one of ours */
	IPF_RUNNING,				/* being changed by another transaction: v->xid */
	IPF_UPDATED,				/* updated in place; the snapshot does not see it */
	IPF_MOVED,					/* updated to another TID, committed */
	IPF_DELETED					/* deleted, committed; or there is no such row */
} IpFound;

/*
 * Lock the row's page and stand on the row's newest version, which was not
 * rolled back: aborted changes are put back first.  Prunes the page if the row
 * would have no room for a version block.  IPF_OK or IPF_DELETED (no row);
 * *buffer is locked exclusively in both cases.
 */
extern IpFound ip_modify_begin(IpVersion *v, Relation rel, const ItemPointerData *tid,
							   TransactionId xid, Buffer *buffer);

/*
 * How v, a row's newest version, relates to a command.  snapshot may be NULL or
 * not MVCC: then no version is too new.  Nor is the target's, if it is exact.
 */
extern IpFound ip_modify_classify(IpVersion *v, Snapshot snapshot, CommandId cid,
								  const IpTarget *target);

/*
 * Questions about the versions below v, which keeps its place.  IPV_OK: here is the answer;
 * IPV_FAR, IPV_STALE: as for ip_version_older.
 *
 * below_is_newer: v's last change is running, or a delete: is the version that it started from
 * one that the snapshot does not see either?  Then the row was updated before, and the outcome
 * need not be waited for.
 * keys_changed: does v, or a version below it, come from a committed change of the key that the
 * snapshot does not see?
 * inserter: the transaction that inserted v's row; IP_XID_NONE if it does not matter any more.
 */
extern IpvResult ip_modify_below_is_newer(IpVersion *v, Snapshot snapshot,
										  const IpTarget *target, bool *newer);
extern IpvResult ip_modify_keys_changed(IpVersion *v, Snapshot snapshot, bool *changed);
extern IpvResult ip_modify_inserter(IpVersion *v, IpXid *inserter);

/* Fill in what core wants to know about a change that we cannot make. */
extern void ip_modify_failure(IpVersion *v, IpFound found, const ItemPointerData *tid,
							  TM_FailureData *tmfd);

/* A new state of a row. */
typedef struct IpRowWrite
{
	uint8		info;			/* IP_XLOG_* */
	TransactionId xid;			/* ours, unless replay */
	bool		replay;			/* see IpChange */
	bool		has_undo;		/* undo is written, and xid is the new version's maker */
	IpUndoSpec	undo;			/* prev, saved are filled in here */
	IpLockState lock;			/* lockers of the new state */
	uint8		state;			/* INSERTED, DELETED, MOVED */
	uint16		hdr;
	const uint8 *body;
	uint32		bodylen;
	/* the body that the row has now, and its overlaid bytes */
	const uint8 *from;
	uint32		fromlen;
	const uint8 *saved;
	/* update to another TID: the new row, complete but for its version block */
	Buffer		newbuffer;		/* may be the row's own */
	bool		newinit;
	OffsetNumber newoff;
	uint16		newhdr;
	const uint8 *newbody;
	uint32		newbodylen;
	CommandId	cid;
	IpXid		conflict;		/* see IpChange */
	bool		cut;			/* the undo record does not link to what is before v */
	StringInfo	logical;		/* see IpChange */
	/* result */
	IpPtr		top;			/* topmost undo record of the row */
} IpRowWrite;

/* The row keeps its body and state: fill in w from v. */
extern void ip_write_same(IpRowWrite *w, IpVersion *v, uint8 info, TransactionId xid);

/* Can the row's item take a body of this length, with a version block? */
extern bool ip_write_fits(IpVersion *v, Page page, uint32 bodylen);

/*
 * Write it: one atomic change of the data page, the undo page and the new
 * row's page.  v stands on the version before.  Lock: the buffers exclusively,
 * held on return.
 */
extern void ip_write_row(IpVersion *v, Buffer buffer, IpRowWrite *w);

/*
 * Put the lock record that lock describes on top of the row.  version_tid (may
 * be NULL) becomes the locked version's TID.
 */
extern void ip_write_lock(IpVersion *v, Buffer buffer, TransactionId xid,
						  const IpLockState *lock, ItemPointerData *version_tid);

extern TM_Result ip_tuple_delete(Relation rel, ItemPointer tid, CommandId cid,
								 Snapshot snapshot, Snapshot crosscheck, bool wait,
								 TM_FailureData *tmfd, bool changing_part);
extern TM_Result ip_tuple_update(Relation rel, ItemPointer tid, TupleTableSlot *slot,
								 CommandId cid, Snapshot snapshot, Snapshot crosscheck,
								 bool wait, TM_FailureData *tmfd, LockTupleMode *lockmode,
								 CompatUpdateIndexes *update_indexes);

#endif							/* IP_MODIFY_H */
