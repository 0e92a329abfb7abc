/*-------------------------------------------------------------------------
 * compat_table.c
 *	  Callbacks of a table access method whose parameters differ between
 *	  PostgreSQL's versions.
 *-------------------------------------------------------------------------
 */
#include "compat_table.h"

#if PG_VERSION_NUM < 190000

IndexFetchTableData *
compat_index_fetch_begin(Relation rel)
{
	return ip_fetch_begin(rel, 0);
}

TM_Result
compat_tuple_delete(Relation rel, ItemPointer tid, CommandId cid, Snapshot snapshot, Snapshot crosscheck,
					bool wait, TM_FailureData *tmfd, bool changing_part)
{
	return ip_update_delete(rel, tid, cid, changing_part ? TABLE_DELETE_CHANGING_PARTITION : 0, snapshot, crosscheck,
							wait, tmfd);
}

TM_Result
compat_tuple_update(Relation rel, ItemPointer tid, TupleTableSlot *slot, CommandId cid, Snapshot snapshot,
					Snapshot crosscheck, bool wait, TM_FailureData *tmfd, LockTupleMode *lockmode,
					CompatUpdateIndexes *update_indexes)
{
	return ip_update_tuple(rel, tid, slot, cid, 0, snapshot, crosscheck, wait, tmfd, lockmode, update_indexes);
}

void
compat_copy_for_cluster(Relation old, Relation new, Relation index, bool use_sort, TransactionId oldest_xmin,
						TransactionId *xid_cutoff, MultiXactId *multi_cutoff, double *num_tuples,
						double *tups_vacuumed, double *tups_recently_dead)
{
	ip_rewrite_for_cluster(old, new, index, use_sort, oldest_xmin, NULL, xid_cutoff, multi_cutoff, num_tuples,
						   tups_vacuumed, tups_recently_dead);
}

void
compat_vacuum(Relation rel, VacuumParams *params, BufferAccessStrategy bstrategy)
{
	ip_vacuum_relation(rel, params, bstrategy);
}

bool
compat_scan_analyze_next_tuple(TableScanDesc scan, TransactionId oldest_xmin, double *liverows, double *deadrows,
							   TupleTableSlot *slot)
{
	return ip_scan_analyze_next_tuple(scan, liverows, deadrows, slot);
}

#else

/* Core keeps the blocks of a TID range, though a scan that begins again may have another range. */
void
compat_parallelscan_reinitialize(Relation rel, ParallelTableScanDesc pscan)
{
	ParallelBlockTableScanDesc pbscan = (ParallelBlockTableScanDesc) pscan;

	table_block_parallelscan_reinitialize(rel, pscan);
	if (pbscan->phs_numblock == InvalidBlockNumber)
		return;
	pbscan->phs_startblock = InvalidBlockNumber;
	pbscan->phs_numblock = InvalidBlockNumber;
}

#endif
