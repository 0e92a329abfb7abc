/*-------------------------------------------------------------------------
 * ip_fetch.h
 *	  Fetching rows by TID.
 *-------------------------------------------------------------------------
 */
#ifndef IP_FETCH_H
#define IP_FETCH_H

#include "access/tableam.h"

#include "ip_version.h"

/*
 * Stand on the version of the row at tid that the snapshot sees; never
 * IPV_STALE.  *all_dead (may be NULL): nobody will ever see the row again.
 */
extern IpvResult ip_fetch_satisfy(IpVersion *v, Relation rel, const ItemPointerData *tid,
								  Snapshot snapshot, bool *all_dead);

extern bool ip_fetch_row_version(Relation rel, ItemPointer tid, Snapshot snapshot,
								 TupleTableSlot *slot);
extern bool ip_tuple_satisfies_snapshot(Relation rel, TupleTableSlot *slot, Snapshot snapshot);
extern bool ip_tuple_tid_valid(TableScanDesc scan, ItemPointer tid);
extern void ip_get_latest_tid(TableScanDesc scan, ItemPointer tid);

extern struct IndexFetchTableData *ip_index_fetch_begin(Relation rel);
extern void ip_index_fetch_reset(struct IndexFetchTableData *scan);
extern void ip_index_fetch_end(struct IndexFetchTableData *scan);
extern bool ip_index_fetch_tuple(struct IndexFetchTableData *scan, ItemPointer tid,
								 Snapshot snapshot, TupleTableSlot *slot,
								 bool *call_again, bool *all_dead);
/*
 * For serializable transactions, v being the version that the snapshot sees: lock
 * it against writers.  If one came first, read again; false if there is no
 * version any more.
 */
extern bool ip_fetch_lock_read(IpVersion *v, Snapshot snapshot);

/*
 * Was that row the last one that an index scan fetched, with a dirty snapshot?
 * Forgets it.
 */
extern bool ip_fetch_was_dirty(Relation rel, const ItemPointerData *tid);

/* A version that somebody has seen. */
typedef struct IpSeen
{
	Oid			relid;
	ItemPointerData tid;
	IpXid		xid;
	IpPtr		ptr;
} IpSeen;

/* A sequential scan with a dirty snapshot returns v. */
extern void ip_fetch_note_seen(IpVersion *v);

/* Was that row the last one that such a scan returned?  Then *seen is its version.  Forgets it. */
extern bool ip_fetch_was_seen(Relation rel, const ItemPointerData *tid, IpSeen *seen);

/* Is v, the row's newest version, that one? */
extern bool ip_fetch_is_seen(IpVersion *v, const IpSeen *seen);

#endif							/* IP_FETCH_H */
