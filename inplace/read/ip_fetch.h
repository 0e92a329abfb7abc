/*-------------------------------------------------------------------------
 * ip_fetch.h
 *	  Fetching rows by TID.
 *-------------------------------------------------------------------------
 */
#ifndef IP_FETCH_H
#define IP_FETCH_H

#include "ip_version.h"

/*
 * v stands on what a dirty snapshot sees, and has a version before it (ip_version_has_before).  Go there; or to the newest one, if undo
 * has changed meanwhile: the row's versions are then all to be looked at again.  *tries counts that, for one row.  Errors: data_corrupted.
 */
extern IpvResult ip_fetch_before(IpVersion *v, Snapshot snapshot, int *tries);

extern bool ip_fetch_row_version(Relation rel, ItemPointer tid, Snapshot snapshot,
								 TupleTableSlot *slot);
extern bool ip_fetch_satisfies_snapshot(Relation rel, TupleTableSlot *slot, Snapshot snapshot);
extern bool ip_fetch_tid_valid(TableScanDesc scan, ItemPointer tid);
extern void ip_fetch_latest_tid(TableScanDesc scan, ItemPointer tid);

/*
 * For serializable transactions, v being the version that the snapshot sees: lock
 * it against writers.  If one came first, read again; false if there is no
 * version any more.
 */
extern bool ip_fetch_predicate_lock(IpVersion *v, Snapshot snapshot);

#endif							/* IP_FETCH_H */
