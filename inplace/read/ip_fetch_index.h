/*-------------------------------------------------------------------------
 * ip_fetch_index.h
 *	  Fetching rows by the TIDs of an index.
 *-------------------------------------------------------------------------
 */
#ifndef IP_FETCH_INDEX_H
#define IP_FETCH_INDEX_H

#include "inplace_keys.h"

#include "ip_version.h"

extern struct IndexFetchTableData *ip_fetch_begin(Relation rel, uint32 flags);
extern void ip_fetch_reset(struct IndexFetchTableData *scan);
extern void ip_fetch_end(struct IndexFetchTableData *scan);

/*
 * The fetch is by way of an index that follows updates in place: see
 * InplaceKeysTable.  v stands on the newest version of a row.
 * ip_fetch_is_current returns whether the current entry, of all entries of that
 * row, is the one that has the version's key.  If the row is dead, and a long
 * key was removed, any entry may have it.
 */
extern void ip_fetch_expect(struct IndexFetchTableData *scan,
							InplaceKeyMatch match, void *arg,
							const XLogRecPtr *read_at);
extern bool ip_fetch_is_current(struct IndexFetchTableData *scan, IpVersion *v,
								bool is_dead, TupleTableSlot *slot);

extern bool ip_fetch_index_tuple(struct IndexFetchTableData *scan,
								 ItemPointer tid, Snapshot snapshot,
								 TupleTableSlot *slot, bool *call_again,
								 bool *all_dead);

#endif							/* IP_FETCH_INDEX_H */
