/*-------------------------------------------------------------------------
 * ip_fetch.h
 *	  Fetching rows by TID.
 *-------------------------------------------------------------------------
 */
#ifndef IP_FETCH_H
#define IP_FETCH_H

#include "ip_version.h"

/*
 * v stands on what a dirty snapshot sees, and has a version before it
 * (ip_version_has_before).  Go to that version.  If undo has changed meanwhile,
 * go to the newest version: then the caller must examine all of the row's
 * versions again.  *tries counts that, for one row.  Errors: data_corrupted.
 */
extern IpvResult ip_fetch_before(IpVersion *v, Snapshot snapshot, int *tries);

extern bool ip_fetch_row_version(Relation rel, ItemPointer tid,
								 Snapshot snapshot, TupleTableSlot *slot);
extern bool ip_fetch_satisfies_snapshot(Relation rel, TupleTableSlot *slot,
										Snapshot snapshot);
extern bool ip_fetch_tid_valid(TableScanDesc scan, ItemPointer tid);
extern void ip_fetch_latest_tid(TableScanDesc scan, ItemPointer tid);

/*
 * For serializable transactions: lock the version that the snapshot sees, on
 * which v stands, against writers.  If a writer came first, read the row again.
 * Returns false if the snapshot no longer sees a version.
 */
extern bool ip_fetch_predicate_lock(IpVersion *v, Snapshot snapshot);

#endif							/* IP_FETCH_H */
