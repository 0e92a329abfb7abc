/*-------------------------------------------------------------------------
 * ip_version_satisfy.h
 *	  The version of a row that a snapshot sees, and conflicts of serializable
 *	  transactions.
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
 * Of a row that a running transaction has changed in place, a dirty snapshot
 * sees all versions that the transaction made, the newest first
 * (ip_version_satisfy), and the one before them.  As with heap, a backend that
 * looks for one of these must wait.  Returns whether there is such a version
 * before v, which a dirty snapshot sees.  If so, ip_version_satisfy_before
 * goes there.
 */
static inline bool
ip_version_has_before(const IpVersion *v)
{
	return v->pending != IP_XID_NONE;
}

extern IpvResult ip_version_satisfy_before(IpVersion *v, Snapshot snapshot);

/*
 * For serializable transactions: we have read version v, or are about to
 * replace it, which is the row's newest (page: locked).  A version is locked
 * by its row's TID and, if it has an undo record, by that record's TID.  It is
 * checked by the latter alone as long as it has one: a reader of an older
 * version does not conflict with a writer that replaces v.
 */
extern void ip_version_predicate_lock(IpVersion *v, Snapshot snapshot);
extern void ip_version_check_write(IpVersion *v);

/* Returns whether an MVCC snapshot sees the change that made v's state. */
extern bool ip_version_change_visible(IpVersion *v, Snapshot snapshot);

/*
 * Returns whether the row is dead to all.  state and xid are those of the row
 * on its page, and horizon is as for ip_xid_status.
 */
extern bool ip_version_is_dead(Relation rel, uint8 state, IpXid xid,
							   IpXid horizon);

/*
 * Returns the position up to which WAL must be flushed so that no crash can
 * undo the deletion of a dead row by xid; invalid if no crash can.
 */
extern XLogRecPtr ip_version_deletion_unflushed(Relation rel, IpXid xid);

/*
 * Returns whether a row's deletion by xid alone hides it from the snapshot,
 * whatever its versions.  Sets the results of a dirty snapshot.  horizon as
 * for ip_xid_status.
 */
extern bool ip_version_deletion_hides(IpXid xid, Snapshot snapshot,
									  IpXid horizon);

/*
 * Stand on the version of the row at tid that the snapshot sees; never
 * IPV_STALE.  *all_dead (may be NULL): no transaction will ever see the row
 * again.
 */
extern IpvResult ip_version_fetch_satisfy(IpVersion *v, Relation rel,
										  const ItemPointerData *tid,
										  Snapshot snapshot, bool *all_dead);

/*
 * What is known about a change that may meanwhile be far below the row's
 * newest one, as the page was unlocked.  As long as the change exists and has
 * that status, the versions below it stay, and so these answers remain valid.
 */
typedef struct IpFar
{
	bool		known;
	IpXidStatus status;
	IpXid		xid;
	IpPtr		ptr;
	bool		keys_changed;	/* results of the functions below, for this
								 * change */
	IpXid		inserter;
} IpFar;

/*
 * Functions about the versions below v, which keeps its place.  IPV_OK: the
 * result is set; IPV_FAR, IPV_STALE: as for ip_version_older.
 *
 * below_is_newer: v's last change is running, or is a delete.  The result is
 * whether the snapshot does not see the version that it started from either.
 * Then the row was updated before, and the caller need not wait for the
 * outcome.  For LockTupleKeyShare only updates of the key count.
 * keys_changed: whether v, or a version below it, comes from a committed
 * change of the key that the snapshot does not see.  inserter: the transaction
 * that inserted v's row; IP_XID_NONE if it no longer matters.  far, or NULL:
 * the walk ends at that change.
 */
extern IpvResult ip_version_below_is_newer(IpVersion *v, Snapshot snapshot,
										   const IpTarget *target,
										   LockTupleMode mode, bool *newer);
extern IpvResult ip_version_keys_changed(IpVersion *v, Snapshot snapshot,
										 const IpFar *far, bool *changed);
extern IpvResult ip_version_inserter(IpVersion *v, const IpFar *far,
									 IpXid *inserter);

#endif							/* IP_VERSION_SATISFY_H */
