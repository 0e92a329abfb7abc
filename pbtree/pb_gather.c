/*-------------------------------------------------------------------------
 * pb_gather.c
 *	  Reading and sorting of a new index's rows, by one process or several.
 *
 * Workers and the leader share the scan of the table.  Each sorts the rows
 * that it has read.  Workers write them to temporary files, and exit.  The
 * leader merges.
 *-------------------------------------------------------------------------
 */
#include "compat_index.h"

#include "access/nbtree.h"
#include "access/parallel.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "tcop/tcopprot.h"
#include "utils/snapmgr.h"

#include "pb_gather.h"

/* Keys in the shared memory's table of contents. */
#define KEY_SHARED		UINT64CONST(1)
#define KEY_QUERY		UINT64CONST(2)
#define KEY_SCAN		UINT64CONST(3)
#define KEY_WAL_USAGE	UINT64CONST(4)
#define KEY_BUFFERS		UINT64CONST(5)

/* The counts of rows that a process has read. */
typedef struct Part
{
	double		heap_tuples;
	double		index_tuples;
	bool		has_dead;
	bool		broken_chains;	/* IndexInfo.ii_BrokenHotChain */
} Part;

typedef struct Shared
{
	Oid			heap;
	Oid			rel;
	uint64		query_id;
	bool		concurrent;
	int			memory;			/* for each process, in kB */
	SharedFileSet files;
	Part		parts[FLEXIBLE_ARRAY_MEMBER];	/* of workers that have
												 * finished */
} Shared;

struct PbGather
{
	Relation	heap;
	Relation	rel;
	PbIndex    *index;
	bool		unique;
	int			memory;
	PbSort	   *sort;
	PbSort	   *dead;			/* or NULL */
	Part		part;			/* of this process, and finally of all
								 * workers, too */

	/* of the leader */
	PbMerge    *merge;			/* or NULL: no worker took part */
	PbMerge    *dead_merge;
	ParallelContext *context;
	Shared	   *shared;
	Snapshot	snapshot;
	WalUsage   *wal;
	BufferUsage *buffers;
};

/* ---- one process's part ------------------------------------------------ */

static void
take_row(Relation rel, ItemPointer tid, Datum *values, bool *isnull, bool alive,
		 void *state)
{
	PbGather   *gather = state;

	if (gather->unique && !alive && gather->dead == NULL)
		gather->dead = pb_sort_begin(gather->heap, gather->rel, gather->index,
									 Min(gather->memory, work_mem));
	pb_sort_add(gather->unique && !alive ? gather->dead : gather->sort, tid,
				values, isnull);
	gather->part.index_tuples++;
}

/* scan: a parallel one, or NULL */
static void
scan_and_sort(PbGather *gather, IndexInfo *info, bool leader,
			  TableScanDesc scan)
{
	gather->sort = pb_sort_begin(gather->heap, gather->rel, gather->index,
								 gather->memory);
	gather->part.heap_tuples = table_index_build_scan(gather->heap, gather->rel,
													  info, true, leader,
													  take_row, gather, scan);
	gather->part.broken_chains = info->ii_BrokenHotChain;
	gather->part.has_dead = gather->dead != NULL;
	if (leader)
		pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE,
									 PROGRESS_BTREE_PHASE_PERFORMSORT_1);
	pb_sort_perform(gather->sort);
	if (gather->dead)
		pb_sort_perform(gather->dead);
}

static void
file_name(char *name, int worker, bool dead)
{
	snprintf(name, MAXPGPATH, "%d%s", worker, dead ? ".dead" : "");
}

/* ---- workers ----------------------------------------------------------- */

static void
write_runs(PbGather *gather, Shared *shared)
{
	char		name[MAXPGPATH];

	file_name(name, ParallelWorkerNumber, false);
	pb_run_write(gather->sort, gather->index, &shared->files, name);
	if (gather->dead)
	{
		file_name(name, ParallelWorkerNumber, true);
		pb_run_write(gather->dead, gather->index, &shared->files, name);
	}
}

void
pb_gather_worker(dsm_segment *seg, shm_toc *toc)
{
	Shared	   *shared = shm_toc_lookup(toc, KEY_SHARED, false);
	WalUsage   *wal = shm_toc_lookup(toc, KEY_WAL_USAGE, false);
	BufferUsage *buffers = shm_toc_lookup(toc, KEY_BUFFERS, false);
	LOCKMODE	heap_lock = shared->concurrent ?
		ShareUpdateExclusiveLock : ShareLock;
	LOCKMODE	index_lock = shared->concurrent ?
		RowExclusiveLock : AccessExclusiveLock;
	PbGather	gather = {.memory = shared->memory};
	IndexInfo  *info;

	debug_query_string = shm_toc_lookup(toc, KEY_QUERY, true);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);
	pgstat_report_query_id(shared->query_id, false);
	/* the leader holds these locks, which do not conflict within its group */
	gather.heap = table_open(shared->heap, heap_lock);
	gather.rel = index_open(shared->rel, index_lock);
	gather.index = pb_index_get(gather.rel);
	SharedFileSetAttach(&shared->files, seg);
	InstrStartParallelQuery();
	info = BuildIndexInfo(gather.rel);
	info->ii_Concurrent = shared->concurrent;
	gather.unique = info->ii_Unique;
	scan_and_sort(&gather, info, false,
				  CompatBeginParallelScan(gather.heap,
										  shm_toc_lookup(toc, KEY_SCAN,
														 false)));
	write_runs(&gather, shared);
	pb_sort_end(gather.sort);
	if (gather.dead)
		pb_sort_end(gather.dead);
	shared->parts[ParallelWorkerNumber] = gather.part;
	InstrEndParallelQuery(&buffers[ParallelWorkerNumber],
						  &wal[ParallelWorkerNumber]);
	index_close(gather.rel, index_lock);
	table_close(gather.heap, heap_lock);
}

/* ---- the leader -------------------------------------------------------- */

static void
end_workers(PbGather *gather)
{
	WaitForParallelWorkersToFinish(gather->context);
	for (int i = 0; i < gather->context->nworkers_launched; i++)
		InstrAccumParallelQuery(&gather->buffers[i], &gather->wal[i]);
	if (IsMVCCSnapshot(gather->snapshot))
		UnregisterSnapshot(gather->snapshot);
	DestroyParallelContext(gather->context);
	gather->context = NULL;
	ExitParallelMode();
}

/* Allocate shared memory.  Returns false if there is none. */
static bool
begin_shared(PbGather *gather)
{
	shm_toc_estimator *e = &gather->context->estimator;
	int			n = gather->context->nworkers;

	shm_toc_estimate_chunk(e, offsetof(Shared, parts) + n * sizeof(Part));
	shm_toc_estimate_chunk(e, table_parallelscan_estimate(gather->heap,
														  gather->snapshot));
	shm_toc_estimate_chunk(e, n * sizeof(WalUsage));
	shm_toc_estimate_chunk(e, n * sizeof(BufferUsage));
	shm_toc_estimate_chunk(e, debug_query_string ?
						   strlen(debug_query_string) + 1 : 0);
	shm_toc_estimate_keys(e, 5);
	InitializeParallelDSM(gather->context);
	return gather->context->seg != NULL;
}

static void *
add_shared(PbGather *gather, uint64 key, Size size)
{
	void	   *p = shm_toc_allocate(gather->context->toc, size);

	shm_toc_insert(gather->context->toc, key, p);
	return p;
}

static void
fill_shared(PbGather *gather, bool concurrent)
{
	int			n = gather->context->nworkers;
	Shared	   *shared = add_shared(gather, KEY_SHARED,
									offsetof(Shared, parts) + n * sizeof(Part));
	ParallelTableScanDesc scan;

	shared->heap = RelationGetRelid(gather->heap);
	shared->rel = RelationGetRelid(gather->rel);
	shared->query_id = pgstat_get_my_query_id();
	shared->concurrent = concurrent;
	shared->memory = maintenance_work_mem / (n + 1);
	SharedFileSetInit(&shared->files, gather->context->seg);
	gather->shared = shared;
	scan = add_shared(gather, KEY_SCAN,
					  table_parallelscan_estimate(gather->heap,
												  gather->snapshot));
	table_parallelscan_initialize(gather->heap, scan, gather->snapshot);
	gather->wal = add_shared(gather, KEY_WAL_USAGE, n * sizeof(WalUsage));
	gather->buffers = add_shared(gather, KEY_BUFFERS, n * sizeof(BufferUsage));
	if (debug_query_string)
		strcpy(add_shared(gather, KEY_QUERY, strlen(debug_query_string) + 1),
			   debug_query_string);
}

/* Launch workers.  Returns false if none are available. */
static bool
launch_workers(PbGather *gather, IndexInfo *info)
{
	EnterParallelMode();
	gather->context = CreateParallelContext("pbtree", "pb_gather_worker",
											info->ii_ParallelWorkers);
	gather->snapshot = info->ii_Concurrent ?
		RegisterSnapshot(GetTransactionSnapshot()) : SnapshotAny;
	if (begin_shared(gather))
	{
		fill_shared(gather, info->ii_Concurrent);
		LaunchParallelWorkers(gather->context);
	}
	if (gather->context->nworkers_launched > 0)
		return true;
	end_workers(gather);
	return false;
}

/* Add the results of the workers, which have ended, to this process's own. */
static void
begin_merge(PbGather *gather, IndexInfo *info)
{
	int			n = gather->context->nworkers_launched;
	char		name[MAXPGPATH];

	gather->merge = pb_run_merge_begin(gather->rel, gather->index, n + 1);
	gather->dead_merge = pb_run_merge_begin(gather->rel, gather->index, n + 1);
	pb_run_add_sort(gather->merge, gather->sort);
	if (gather->dead)
		pb_run_add_sort(gather->dead_merge, gather->dead);
	for (int i = 0; i < n; i++)
	{
		const Part *part = &gather->shared->parts[i];

		gather->part.heap_tuples += part->heap_tuples;
		gather->part.index_tuples += part->index_tuples;
		info->ii_BrokenHotChain |= part->broken_chains;
		file_name(name, i, false);
		pb_run_add_file(gather->merge, &gather->shared->files, name);
		file_name(name, i, true);
		if (part->has_dead)
			pb_run_add_file(gather->dead_merge, &gather->shared->files, name);
	}
}

PbGather *
pb_gather_begin(Relation heap, Relation rel, PbIndex *index, IndexInfo *info)
{
	PbGather   *gather = palloc0(sizeof(PbGather));

	gather->heap = heap;
	gather->rel = rel;
	gather->index = index;
	gather->unique = info->ii_Unique;
	gather->memory = maintenance_work_mem;
	if (info->ii_ParallelWorkers > 0 && launch_workers(gather, info))
	{
		ParallelTableScanDesc scan;

		gather->memory /= gather->context->nworkers_launched + 1;
		scan = shm_toc_lookup(gather->context->toc, KEY_SCAN, false);
		scan_and_sort(gather, info, true, CompatBeginParallelScan(heap, scan));
		WaitForParallelWorkersToFinish(gather->context);
		begin_merge(gather, info);
	}
	else
		scan_and_sort(gather, info, true, NULL);
	return gather;
}

void
pb_gather_count(const PbGather *gather, double *heap_tuples,
				double *index_tuples)
{
	*heap_tuples = gather->part.heap_tuples;
	*index_tuples = gather->part.index_tuples;
}

bool
pb_gather_next(PbGather *gather, PbKey *key, const ItemPointerData **tids,
			   int *n)
{
	return gather->merge ? pb_run_next(gather->merge, key, tids, n) :
		pb_sort_next(gather->sort, key, tids, n);
}

bool
pb_gather_next_dead(PbGather *gather, PbKey *key, const ItemPointerData **tids,
					int *n)
{
	if (gather->dead_merge)
		return pb_run_next(gather->dead_merge, key, tids, n);
	return gather->dead && pb_sort_next(gather->dead, key, tids, n);
}

void
pb_gather_end(PbGather *gather)
{
	if (gather->merge)
	{
		pb_run_merge_end(gather->merge);
		pb_run_merge_end(gather->dead_merge);
		end_workers(gather);
	}
	pb_sort_end(gather->sort);
	if (gather->dead)
		pb_sort_end(gather->dead);
	pfree(gather);
}
