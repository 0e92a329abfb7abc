/*-------------------------------------------------------------------------
 * ip_fetch.h
 *	  Fetching rows by TID.
 *-------------------------------------------------------------------------
 */
#ifndef IP_FETCH_H
#define IP_FETCH_H

#include "inplace_keys.h"

#include "ip_version.h"

/*
 * Stand on the version of the row at tid that the snapshot sees; never
 * IPV_STALE.  *all_dead (may be NULL): nobody will ever see the row again.
 */
extern IpvResult ip_fetch_satisfy(IpVersion *v, Relation rel, const ItemPointerData *tid,
								  Snapshot snapshot, bool *all_dead);

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

extern struct IndexFetchTableData *ip_fetch_begin(Relation rel);
extern void ip_fetch_reset(struct IndexFetchTableData *scan);
extern void ip_fetch_end(struct IndexFetchTableData *scan);

/*
 * The fetch is by way of an index that follows updates in place: see InplaceKeysTable.
 * ip_fetch_is_current: of the entries of v, the newest version of a row, is it this one
 * that has its key?  If the row is dead, and a long key gone, any may have it.
 */
extern void ip_fetch_expect(struct IndexFetchTableData *scan, InplaceKeyMatch match, void *arg,
							const XLogRecPtr *read_at);
extern bool ip_fetch_is_current(struct IndexFetchTableData *scan, IpVersion *v, bool is_dead,
								TupleTableSlot *slot);

extern bool ip_fetch_index_tuple(struct IndexFetchTableData *scan, ItemPointer tid,
								 Snapshot snapshot, TupleTableSlot *slot,
								 bool *call_again, bool *all_dead);

/*
 * For serializable transactions, v being the version that the snapshot sees: lock
 * it against writers.  If one came first, read again; false if there is no
 * version any more.
 */
extern bool ip_fetch_predicate_lock(IpVersion *v, Snapshot snapshot);

#endif							/* IP_FETCH_H */
