/*-------------------------------------------------------------------------
 * ip_version_satisfy.h
 *	  Which version of a row a snapshot sees, and what serializable transactions conflict with.
 *-------------------------------------------------------------------------
 */
#ifndef IP_VERSION_SATISFY_H
#define IP_VERSION_SATISFY_H

#include "ip_version.h"

/*
 * Go to the version that the snapshot sees (any kind of snapshot; sets the
 * results of a dirty one).  After IPV_OK, v->xid is the version's maker.
 */
extern IpvResult ip_version_satisfy(IpVersion *v, Snapshot snapshot);

/*
 * A dirty snapshot sees, of a row that a running transaction has changed in place, all versions that it made, the newest first
 * (ip_version_satisfy), and the one before them: a backend that looks for one of them has to wait, as heap's versions say.  Has v, which a
 * dirty snapshot sees, such a one before it?  Then ip_version_satisfy_before goes there.
 */
static inline bool
ip_version_has_before(const IpVersion *v)
{
	return v->pending != IP_XID_NONE;
}

extern IpvResult ip_version_satisfy_before(IpVersion *v, Snapshot snapshot);

/*
 * Serializable transactions: we have read version v, or are about to replace it,
 * the row's newest (page: locked).  A version is locked by its row's TID and, if it
 * has one, that of its undo record, and checked by the latter alone as long as it
 * has it: a reader of an older version does not conflict with a writer that replaces v.
 */
extern void ip_version_predicate_lock(IpVersion *v, Snapshot snapshot);
extern void ip_version_check_write(IpVersion *v);

/* Does an MVCC snapshot see the change that made v's state? */
extern bool ip_version_change_visible(IpVersion *v, Snapshot snapshot);

/*
 * Is the row dead to everybody for ever?  state and xid are those of the row on its page, and
 * horizon is as for ip_xid_status.
 */
extern bool ip_version_is_dead(Relation rel, uint8 state, IpXid xid, IpXid horizon);

/*
 * A position up to which WAL has to be flushed before no crash can take back the deletion of such a row by xid; invalid if none can.
 */
extern XLogRecPtr ip_version_deletion_unflushed(Relation rel, IpXid xid);

/*
 * Does a row's deletion by xid alone hide it from the snapshot, whatever it
 * was?  Sets the results of a dirty snapshot.  horizon as for ip_xid_status.
 */
extern bool ip_version_deletion_hides(IpXid xid, Snapshot snapshot, IpXid horizon);

/*
 * Stand on the version of the row at tid that the snapshot sees; never
 * IPV_STALE.  *all_dead (may be NULL): nobody will ever see the row again.
 */
extern IpvResult ip_version_fetch_satisfy(IpVersion *v, Relation rel, const ItemPointerData *tid,
										  Snapshot snapshot, bool *all_dead);

/*
 * What is known of a change that may be far below the row's newest one by now, with the page unlocked: as long as the change is there, and
 * of that status, what is below it stays, and so do the answers.
 */
typedef struct IpFar
{
	bool		known;
	IpXidStatus status;
	IpXid		xid;
	IpPtr		ptr;
	bool		keys_changed;	/* answers to the questions below, of this
								 * change */
	IpXid		inserter;
} IpFar;

/*
 * Questions about the versions below v, which keeps its place.  IPV_OK: here is the answer;
 * IPV_FAR, IPV_STALE: as for ip_version_older.
 *
 * below_is_newer: v's last change is running, or a delete: is the version that it started from
 * one that the snapshot does not see either?  Then the row was updated before, and the outcome
 * need not be waited for.  For LockTupleKeyShare only updates of the key count.
 * keys_changed: does v, or a version below it, come from a committed change of the key that the
 * snapshot does not see?
 * inserter: the transaction that inserted v's row; IP_XID_NONE if it does not matter any more.
 * far, or NULL: the walk ends at that change.
 */
extern IpvResult ip_version_below_is_newer(IpVersion *v, Snapshot snapshot,
										   const IpTarget *target, LockTupleMode mode, bool *newer);
extern IpvResult ip_version_keys_changed(IpVersion *v, Snapshot snapshot, const IpFar *far, bool *changed);
extern IpvResult ip_version_inserter(IpVersion *v, const IpFar *far, IpXid *inserter);

#endif							/* IP_VERSION_SATISFY_H */
