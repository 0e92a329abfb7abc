/*-------------------------------------------------------------------------
 * ip_modify.h
 *	  Changing rows: what update, delete and row locks have in common.
 *-------------------------------------------------------------------------
 */
#ifndef IP_MODIFY_H
#define IP_MODIFY_H

#include "access/tableam.h"
#include "compat.h"

#include "ip_modify_write.h"

/* How a row looks to a change by our transaction. */
typedef enum IpFound
{
	IPF_OK,						/* the version that we may change */
	IPF_AGAIN,					/* its maker has just aborted: try again */
	IPF_INVISIBLE,				/* not yet visible to this command */
	IPF_SELF,					/* changed by this command, or a later one of
								 * ours */
	IPF_RUNNING,				/* being changed by another transaction:
								 * v->xid */
	IPF_UPDATED,				/* updated in place; the snapshot does not see
								 * it */
	IPF_MOVED,					/* updated to another TID, committed */
	IPF_DELETED,				/* deleted, committed */
	IPF_NONE					/* there is no such row */
} IpFound;

typedef enum IpPurpose
{
	IP_TO_LOCK,
	IP_TO_DELETE,
	IP_TO_UPDATE
} IpPurpose;

/*
 * Lock the row's page and stand on the row's newest version, which has not
 * aborted: aborted changes are rolled back first.  For a change, the page may
 * be pruned: for an update, whose row always needs a version block, and for a
 * deletion, which may go without.  IPF_OK or IPF_NONE; *buffer is locked
 * exclusively in both cases.
 */
extern IpFound ip_modify_begin(IpVersion *v, Relation rel,
							   const ItemPointerData *tid, TransactionId xid,
							   IpPurpose purpose, Buffer *buffer);

/*
 * Returns how v, a row's newest version, relates to a command.  snapshot may
 * be NULL or not MVCC; then no version is too new.  Neither is the target's
 * version, if the target is exact.
 */
extern IpFound ip_modify_classify(IpVersion *v, Snapshot snapshot,
								  CommandId cid, const IpTarget *target);

/*
 * Fill in what core needs to know about a change that we cannot make, except
 * cmax.
 */
extern void ip_modify_failure(IpVersion *v, const ItemPointerData *tid,
							  TM_FailureData *tmfd);

/* Raise core's error about a row that it would follow to another partition. */
pg_noreturn extern void ip_modify_moved_to_partition(void);

/*
 * Set cmax, if the result is TM_SelfModified, to our command that ended the
 * version which the snapshot and command cid see; later commands may have
 * changed the row further.  If another transaction has ended that version, so
 * that core has gone on to the row's last version, cmax is the command that
 * made the last version.  The result is TM_Deleted if there is none; an error
 * if it has moved to another partition.  Lock: none.
 */
extern TM_Result ip_modify_self_failure(Relation rel, const IpTarget *target,
										Snapshot snapshot, CommandId cid,
										TM_Result result, TM_FailureData *tmfd);

#endif							/* IP_MODIFY_H */
