/*-------------------------------------------------------------------------
 * ip_index.c
 *	  Building indexes on inplace tables.
 *-------------------------------------------------------------------------
 */
#include "ip_compat.h"

#include "access/xact.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "executor/executor.h"
#include "utils/snapmgr.h"

#include "ip_index.h"
#include "ip_fetch.h"
#include "ip_scan.h"
#include "ip_xid.h"

typedef struct BuildState
{
	Relation	table;
	IndexInfo  *info;
	bool		mvcc;			/* concurrent build: only what the snapshot sees */
	bool		anyvisible;
	double		reltuples;
} BuildState;

/* Start again from the row: its undo was recycled after the page was copied. */
static bool
refetch(IpVersion *v)
{
	ItemPointerData tid = v->tid;

	return ip_version_fetch(v, v->rel, &tid) == IPV_OK;
}

/*
 * Go to the version to be indexed under the row's TID; false if there is none.
 * Not concurrent: nobody writes to the table but our own transaction.  A row
 * that others may still see in an older version with other keys makes the index
 * unusable for old snapshots, as a broken HOT chain does in heap.
 */
static bool
version_to_index(BuildState *build, IpVersion *v, bool *alive)
{
	IpXidStatus status;
	bool		deleted;
	int			tries = 0;

	while ((status = ip_xid_status(v->xid)) == IP_XID_ABORTED)
	{
		IpvResult	result = ip_version_older(v);

		if (result == IPV_NONE || (result == IPV_STALE && !refetch(v)))
			return false;
		if (result == IPV_STALE && ++tries > 1000)
			ip_version_missing(v);
	}
	deleted = (v->state & IP_ROW_DELETED) != 0;
	*alive = !deleted;
	if (deleted && status == IP_XID_COMMITTED && ip_xid_removable(v->rel, v->xid))
		return false;
	/* a running inserter is only met by BRIN, which summarizes under a weak lock */
	if (status == IP_XID_RUNNING && !build->anyvisible)
	{
		if (v->state & IP_ROW_INSERTED)
			*alive = false;
		else if (deleted)
			*alive = true;
	}
	if (!deleted && !(v->state & IP_ROW_INSERTED) && !ip_xid_removable(v->rel, v->xid))
		build->info->ii_BrokenHotChain = true;
	if (deleted && ip_version_load_rec(v) == IPV_OK && !IpXidIsFinal(v->rec.prev_xid) &&
		!(v->rec.flags & IP_REC_PREV_INSERTED) && !ip_xid_removable(v->rel, v->rec.prev_xid))
		build->info->ii_BrokenHotChain = true;
	return true;
}

static bool
choose_version(BuildState *build, IpScan *scan, bool *alive)
{
	IpVersion  *v = &scan->v;
	IpvResult	result;

	if (!build->mvcc)
		return version_to_index(build, v, alive);
	*alive = true;
	result = ip_version_satisfy(v, scan->rs_base.rs_snapshot);
	if (result == IPV_STALE)
	{
		ItemPointerData tid = v->tid;

		result = ip_fetch_satisfy(v, v->rel, &tid, scan->rs_base.rs_snapshot, NULL);
	}
	return result == IPV_OK;
}

static void
report_progress(IpScan *scan, BlockNumber *reported)
{
	BlockNumber done = scan->block - scan->start;

	if (scan->rs_base.rs_parallel == NULL && done != *reported)
	{
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE, done);
		*reported = done;
	}
}

static void
build_rows(BuildState *build, IpScan *scan, Relation index, bool progress,
		   IndexBuildCallback callback, void *callback_state)
{
	EState	   *estate = CreateExecutorState();
	ExprContext *econtext = GetPerTupleExprContext(estate);
	TupleTableSlot *slot = table_slot_create(build->table, NULL);
	ExprState  *predicate = ExecPrepareQual(build->info->ii_Predicate, estate);
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	BlockNumber reported = 0;
	bool		alive;

	econtext->ecxt_scantuple = slot;
	while (ip_scan_next_row(scan))
	{
		CHECK_FOR_INTERRUPTS();
		if (progress)
			report_progress(scan, &reported);
		if (!choose_version(build, scan, &alive))
			continue;
		if (alive)
			build->reltuples += 1;
		MemoryContextReset(econtext->ecxt_per_tuple_memory);
		ip_version_to_slot(&scan->v, slot);
		if (predicate != NULL && !ExecQual(predicate, econtext))
			continue;
		FormIndexDatum(build->info, slot, estate, values, isnull);
		callback(index, &slot->tts_tid, values, isnull, alive, callback_state);
	}
	ExecDropSingleTupleTableSlot(slot);
	FreeExecutorState(estate);
	build->info->ii_ExpressionsState = NIL;
	build->info->ii_PredicateState = NULL;
}

double
ip_index_build_range_scan(Relation table, Relation index, IndexInfo *info, bool allow_sync,
						  bool anyvisible, bool progress, BlockNumber start_block,
						  BlockNumber nblocks, IndexBuildCallback callback,
						  void *callback_state, TableScanDesc sscan)
{
	BuildState	build = {.table = table, .info = info, .anyvisible = anyvisible};
	Snapshot	snapshot = NULL;
	IpScan	   *scan;

	if (sscan == NULL)
	{
		if (info->ii_Concurrent)
			snapshot = RegisterSnapshot(GetTransactionSnapshot());
		sscan = table_beginscan_strat(table, snapshot ? snapshot : SnapshotAny, 0, NULL,
									  true, false);
	}
	scan = (IpScan *) sscan;
	build.mvcc = IsMVCCSnapshot(sscan->rs_snapshot);
	if (sscan->rs_parallel == NULL)
		ip_scan_set_range(scan, start_block, nblocks);
	if (progress)
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_TOTAL,
									 sscan->rs_parallel ? scan->nblocks : scan->limit - scan->start);
	build_rows(&build, scan, index, progress, callback, callback_state);
	if (progress && sscan->rs_parallel == NULL)
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE, scan->limit - scan->start);
	table_endscan(sscan);
	if (snapshot)
		UnregisterSnapshot(snapshot);
	return build.reltuples;
}
