/*-------------------------------------------------------------------------
 * compat_table.h
 *	  Callbacks of a table access method whose parameters differ between
 *	  PostgreSQL's versions.
 *
 * What the access method has for them gets 19's parameters.
 *-------------------------------------------------------------------------
 */
#ifndef PG_INPLACE_COMPAT_TABLE_H
#define PG_INPLACE_COMPAT_TABLE_H

#include "compat.h"

#include "access/relscan.h"
#include "access/tableam.h"

/* ---- what the access method has ------------------------------------------------------ */

extern IndexFetchTableData *ip_fetch_begin(Relation rel, uint32 flags);
extern TM_Result ip_update_delete(Relation rel, ItemPointer tid, CommandId cid, uint32 options, Snapshot snapshot,
								  Snapshot crosscheck, bool wait, TM_FailureData *tmfd);
extern TM_Result ip_update_tuple(Relation rel, ItemPointer tid, TupleTableSlot *slot, CommandId cid, uint32 options,
								 Snapshot snapshot, Snapshot crosscheck, bool wait, TM_FailureData *tmfd,
								 LockTupleMode *lockmode, CompatUpdateIndexes *update_indexes);
extern void ip_rewrite_for_cluster(Relation old, Relation new, Relation index, bool use_sort, TransactionId oldest_xmin,
								   Snapshot snapshot, TransactionId *xid_cutoff, MultiXactId *multi_cutoff,
								   double *num_tuples, double *tups_vacuumed, double *tups_recently_dead);
extern void ip_vacuum_relation(Relation rel, const VacuumParams *params, BufferAccessStrategy bstrategy);
extern bool ip_scan_analyze_next_tuple(TableScanDesc sscan, double *liverows, double *deadrows, TupleTableSlot *slot);

/* ---- members of TableAmRoutine ------------------------------------------------------- */

#if PG_VERSION_NUM < 190000
extern IndexFetchTableData *compat_index_fetch_begin(Relation rel);
extern TM_Result compat_tuple_delete(Relation rel, ItemPointer tid, CommandId cid, Snapshot snapshot, Snapshot crosscheck,
									 bool wait, TM_FailureData *tmfd, bool changing_part);
extern TM_Result compat_tuple_update(Relation rel, ItemPointer tid, TupleTableSlot *slot, CommandId cid, Snapshot snapshot,
									 Snapshot crosscheck, bool wait, TM_FailureData *tmfd, LockTupleMode *lockmode,
									 CompatUpdateIndexes *update_indexes);
extern void compat_copy_for_cluster(Relation old, Relation new, Relation index, bool use_sort, TransactionId oldest_xmin,
									TransactionId *xid_cutoff, MultiXactId *multi_cutoff, double *num_tuples,
									double *tups_vacuumed, double *tups_recently_dead);
extern void compat_vacuum(Relation rel, VacuumParams *params, BufferAccessStrategy bstrategy);
extern bool compat_scan_analyze_next_tuple(TableScanDesc scan, TransactionId oldest_xmin, double *liverows,
										   double *deadrows, TupleTableSlot *slot);

#define COMPAT_TABLE_METHODS \
	.parallelscan_reinitialize = table_block_parallelscan_reinitialize, \
	.index_fetch_begin = compat_index_fetch_begin, \
	.tuple_delete = compat_tuple_delete, \
	.tuple_update = compat_tuple_update, \
	.relation_copy_for_cluster = compat_copy_for_cluster, \
	.relation_vacuum = compat_vacuum, \
	.scan_analyze_next_tuple = compat_scan_analyze_next_tuple
#else
extern void compat_parallelscan_reinitialize(Relation rel, ParallelTableScanDesc pscan);

#define COMPAT_TABLE_METHODS \
	.parallelscan_reinitialize = compat_parallelscan_reinitialize, \
	.index_fetch_begin = ip_fetch_begin, \
	.tuple_delete = ip_update_delete, \
	.tuple_update = ip_update_tuple, \
	.relation_copy_for_cluster = ip_rewrite_for_cluster, \
	.relation_vacuum = ip_vacuum_relation, \
	.scan_analyze_next_tuple = ip_scan_analyze_next_tuple
#endif

#endif							/* PG_INPLACE_COMPAT_TABLE_H */
