/*-------------------------------------------------------------------------
 * compat_table.h
 *	  Callbacks of the table access method whose parameters differ between
 *	  PostgreSQL's versions.
 *
 * The modules below implement them with 19's parameters.
 *-------------------------------------------------------------------------
 */
#ifndef PG_INPLACE_COMPAT_TABLE_H
#define PG_INPLACE_COMPAT_TABLE_H

#include "compat.h"

#include "access/relscan.h"
#include "access/tableam.h"
#include "nodes/tidbitmap.h"

/* ---- members of TableAmRoutine ------------------------------------------- */

#if PG_VERSION_NUM < 190000
extern IndexFetchTableData *compat_index_fetch_begin(Relation rel);
extern TM_Result compat_tuple_delete(Relation rel, ItemPointer tid,
									 CommandId cid, Snapshot snapshot,
									 Snapshot crosscheck, bool wait,
									 TM_FailureData *tmfd, bool changing_part);
extern TM_Result compat_tuple_update(Relation rel, ItemPointer tid,
									 TupleTableSlot *slot, CommandId cid,
									 Snapshot snapshot, Snapshot crosscheck,
									 bool wait, TM_FailureData *tmfd,
									 LockTupleMode *lockmode,
									 CompatUpdateIndexes *update_indexes);
extern void compat_copy_for_cluster(Relation old, Relation new, Relation index,
									bool use_sort, TransactionId oldest_xmin,
									TransactionId *xid_cutoff,
									MultiXactId *multi_cutoff,
									double *num_tuples,
									double *tups_vacuumed,
									double *tups_recently_dead);
extern void compat_vacuum(Relation rel, VacuumParams *params,
						  BufferAccessStrategy bstrategy);
extern bool compat_scan_analyze_next_tuple(TableScanDesc scan,
										   TransactionId oldest_xmin,
										   double *liverows, double *deadrows,
										   TupleTableSlot *slot);

#define COMPAT_TABLE_METHODS \
	.parallelscan_reinitialize = table_block_parallelscan_reinitialize, \
	.index_fetch_begin = compat_index_fetch_begin, \
	.tuple_delete = compat_tuple_delete, \
	.tuple_update = compat_tuple_update, \
	.relation_copy_for_cluster = compat_copy_for_cluster, \
	.relation_vacuum = compat_vacuum, \
	.scan_analyze_next_tuple = compat_scan_analyze_next_tuple
#else
extern void compat_parallelscan_reinitialize(Relation rel,
											 ParallelTableScanDesc pscan);

#define COMPAT_TABLE_METHODS \
	.parallelscan_reinitialize = compat_parallelscan_reinitialize, \
	.index_fetch_begin = ip_fetch_begin, \
	.tuple_delete = ip_update_delete, \
	.tuple_update = ip_update_tuple, \
	.relation_copy_for_cluster = ip_rewrite_for_cluster, \
	.relation_vacuum = ip_vacuum_relation, \
	.scan_analyze_next_tuple = ip_scan_analyze_next_tuple
#endif

/* ---- scans --------------------------------------------------------------- */

#if PG_VERSION_NUM < 170000
extern bool compat_scan_analyze_next_block(TableScanDesc scan,
										   BlockNumber block,
										   BufferAccessStrategy strategy);
#else
extern bool compat_scan_analyze_next_block(TableScanDesc scan,
										   ReadStream *stream);
#endif

#if PG_VERSION_NUM < 180000
extern bool compat_scan_bitmap_next_block(TableScanDesc scan,
										  TBMIterateResult *tbmres);
extern bool compat_scan_bitmap_next_tuple(TableScanDesc scan,
										  TBMIterateResult *tbmres,
										  TupleTableSlot *slot);

#define COMPAT_SCAN_BITMAP_METHODS \
	.scan_bitmap_next_block = compat_scan_bitmap_next_block, \
	.scan_bitmap_next_tuple = compat_scan_bitmap_next_tuple
#else
extern bool compat_scan_bitmap_next_tuple(TableScanDesc scan,
										  TupleTableSlot *slot,
										  bool *recheck, uint64 *lossy_pages,
										  uint64 *exact_pages);

#define COMPAT_SCAN_BITMAP_METHODS \
	.scan_bitmap_next_tuple = compat_scan_bitmap_next_tuple
#endif

#endif							/* PG_INPLACE_COMPAT_TABLE_H */
