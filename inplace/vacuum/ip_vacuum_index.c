/*-------------------------------------------------------------------------
 * ip_vacuum_index.c
 *	  VACUUM's work on indexes, with parallel workers if it pays.
 *
 * Workers and the leader take indexes from a common counter.  The set of dead
 * TIDs is in dynamic shared memory then; the leader fills it while no worker
 * runs.  Core's own parallel VACUUM is bound to its array of dead TIDs.
 *-------------------------------------------------------------------------
 */
#include "compat_vacuum.h"

#include "access/amapi.h"
#include "access/multixact.h"
#include "access/parallel.h"
#include "access/table.h"
#include "commands/progress.h"
#include "executor/instrument.h"
#include "optimizer/paths.h"
#include "postmaster/autovacuum.h"
#include "storage/bufmgr.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "ip_keys.h"
#include "ip_vacuum_index.h"

#define KEY_SHARED			1
#define KEY_AREA			2
#define KEY_BUFFER_USAGE	3
#define KEY_WAL_USAGE		4
#define KEY_QUERY			5

#define MAX_AREA_SIZE		(1024 * 1024)

typedef struct IndexState
{
	bool		has_stats;
	bool		parallel;		/* a worker may do the current work */
	IndexBulkDeleteResult stats;
	double		stale_removed;	/* stale entries removed, by all scans */
	double		old;			/* left by the last scan */
} IndexState;

/* In shared memory if there are workers. */
typedef struct Shared
{
	Oid			relid;
	int			elevel;
	bool		is_autovacuum;	/* the leader is an autovacuum worker */
	bool		cleanup;		/* else bulk deletion */
	bool		stale_only;		/* no TID is dead: only indexes that follow
								 * updates have entries to lose */
	double		row_count;
	bool		exact;
	int			memory;			/* maintenance_work_mem of each process */
	int			ring;			/* buffers in the ring of each, or 0 */
	CompatCosts costs;			/* as of the last launch */
	dsa_pointer dead;
	pg_atomic_uint32 next;		/* the next index to take */
	pg_atomic_uint32 cost_balance;
	pg_atomic_uint32 active;
	int			nindexes;
	IndexState	indexes[FLEXIBLE_ARRAY_MEMBER];
} Shared;

struct IpVacuumIndexes
{
	Relation   *rels;
	int			nrels;
	Shared	   *shared;
	ParallelContext *pcxt;		/* or NULL */
	dsa_area   *area;
	bool		launched;		/* workers have been launched before */
	int			nplanned[2];	/* for bulk deletion, and for cleanup */
	int			nlaunched[2];
	BufferUsage *buffer_usage;
	WalUsage   *wal_usage;
};

PGDLLEXPORT void ip_vacuum_worker_main(dsm_segment *seg, shm_toc *toc);

/* ---- one index --------------------------------------------------------- */

/* The state of bulk deletion. */
typedef struct Deletion
{
	TidSetLookup dead;
	IndexState *index;
} Deletion;

bool
ip_vacuum_is_dead(ItemPointer tid, void *state)
{
	return tidset_pg_lookup(&((Deletion *) state)->dead, tid);
}

void
ip_vacuum_note_stale(void *state, double removed, double old)
{
	IndexState *index = ((Deletion *) state)->index;

	index->stale_removed += removed;
	index->old = old;
}

/* Returns whether bulk deletion has nothing to find in the index. */
static bool
is_clean(const Shared *shared, Relation index)
{
	return !shared->cleanup && shared->stale_only && !ip_keys_can_follow(index);
}

static void
process_index(Relation table, Relation index, Shared *shared, IndexState *state,
			  TidSet *dead, BufferAccessStrategy strategy)
{
	IndexBulkDeleteResult *stats = state->has_stats ? &state->stats : NULL;
	Deletion	deletion = {.index = state};
	IndexVacuumInfo info = {
		.index = index,.message_level = shared->elevel,.strategy = strategy,
		.num_heap_tuples = shared->row_count,.estimated_count = true
	};

	CompatSetIvHeapRel(&info, table);
	CompatSetIvAutovacuum(&info, shared->is_autovacuum);
	if (is_clean(shared, index))
	{
		compat_progress_index_done();
		return;
	}
	if (shared->cleanup)
	{
		info.estimated_count = !shared->exact;
		stats = index_vacuum_cleanup(&info, stats);
	}
	else
	{
		tidset_lookup_begin(dead, &deletion.dead);
		stats = index_bulk_delete(&info, stats, ip_vacuum_is_dead, &deletion);
	}
	compat_progress_index_done();
	if (stats == NULL || stats == &state->stats)
		return;
	memcpy(&state->stats, stats, sizeof(*stats));
	state->has_stats = true;
	pfree(stats);
}

/* Take indexes until none is left; a worker takes only those that it may. */
static void
process_indexes(Relation table, Relation *indexes, Shared *shared, TidSet *dead,
				BufferAccessStrategy strategy, bool all)
{
	for (;;)
	{
		uint32		i = pg_atomic_fetch_add_u32(&shared->next, 1);

		if (i >= shared->nindexes)
			break;
		if (shared->indexes[i].parallel || all)
			process_index(table, indexes[i], shared, &shared->indexes[i], dead,
						  strategy);
	}
}

/* ---- workers ----------------------------------------------------------- */

static bool
may_be_parallel(Relation index, const IndexState *state, bool cleanup)
{
	uint8		options = index->rd_indam->amparallelvacuumoptions;

	if (RelationGetNumberOfBlocks(index) < min_parallel_index_scan_size)
		return false;
	if (!cleanup)
		return (options & VACUUM_OPTION_PARALLEL_BULKDEL) != 0;
	return (options & VACUUM_OPTION_PARALLEL_CLEANUP) != 0 ||
		((options & VACUUM_OPTION_PARALLEL_COND_CLEANUP) != 0 &&
		 !state->has_stats);
}

/* Returns the number of workers besides the leader. */
static int
choose_workers(IpVacuum *v)
{
	IpVacuumIndexes *x = v->indexes;
	int			useful = 0;

	if (v->params->nworkers < 0 || x->nrels < 2 || !v->do_indexes)
		return 0;
	if (RelationUsesLocalBuffers(v->rel))
	{
		if (v->params->nworkers > 0)
			ereport(WARNING,
					(errmsg("disabling parallel option of vacuum on \"%s\" --- cannot vacuum temporary tables in parallel",
							RelationGetRelationName(v->rel))));
		return 0;
	}
	if (!IsUnderPostmaster || v->failsafe)
		return 0;
	for (int i = 0; i < x->nrels; i++)
		useful += may_be_parallel(x->rels[i], &x->shared->indexes[i], false) ?
			1 : 0;
	if (v->params->nworkers > 0)
		useful = Min(useful, v->params->nworkers + 1);
	return Min(useful - 1, CompatMaxVacuumWorkers());
}

/* Returns the memory that VACUUM may use, in kB. */
static int
work_memory(void)
{
	return AmAutoVacuumWorkerProcess() && autovacuum_work_mem != -1 ?
		autovacuum_work_mem : maintenance_work_mem;
}

static Size
memory_limit(void)
{
	return (Size) work_memory() * 1024;
}

/* Returns the initial size of the area of dead TIDs, which grows as needed. */
static Size
area_size(void)
{
	return Min(Max(memory_limit(), TIDSET_MIN_MEMORY), MAX_AREA_SIZE);
}

static Size
shared_size(int nindexes)
{
	return offsetof(Shared, indexes) + sizeof(IndexState) * nindexes;
}

static void
init_shared(IpVacuum *v, Shared *shared, int nworkers)
{
	memset(shared, 0, shared_size(v->indexes->nrels));
	shared->relid = RelationGetRelid(v->rel);
	shared->elevel = v->elevel;
	shared->is_autovacuum = AmAutoVacuumWorkerProcess();
	shared->nindexes = v->indexes->nrels;
	shared->row_count = v->rel->rd_rel->reltuples;
	shared->memory = work_memory() / (nworkers + 1);
	shared->ring = CompatRingBuffers(v->strategy);
	pg_atomic_init_u32(&shared->next, 0);
	pg_atomic_init_u32(&shared->cost_balance, 0);
	pg_atomic_init_u32(&shared->active, 0);
}

static void
estimate(ParallelContext *pcxt, int nindexes)
{
	shm_toc_estimator *e = &pcxt->estimator;

	shm_toc_estimate_chunk(e, shared_size(nindexes));
	shm_toc_estimate_chunk(e, area_size());
	shm_toc_estimate_chunk(e, mul_size(sizeof(BufferUsage), pcxt->nworkers));
	shm_toc_estimate_chunk(e, mul_size(sizeof(WalUsage), pcxt->nworkers));
	shm_toc_estimate_keys(e, 5);
	if (debug_query_string)
		shm_toc_estimate_chunk(e, strlen(debug_query_string) + 1);
}

static void *
allocate(ParallelContext *pcxt, uint64 key, Size size)
{
	void	   *memory = shm_toc_allocate(pcxt->toc, size);

	shm_toc_insert(pcxt->toc, key, memory);
	return memory;
}

/* Prepare for workers, unless there is no shared memory. */
static void
begin_parallel(IpVacuum *v, int nworkers)
{
	IpVacuumIndexes *x = v->indexes;
	ParallelContext *pcxt;
	Shared	   *shared;
	Size		size = area_size();
	char	   *query;

	EnterParallelMode();
	pcxt = CreateParallelContext("inplace", "ip_vacuum_worker_main", nworkers);
	estimate(pcxt, x->nrels);
	InitializeParallelDSM(pcxt);
	if (pcxt->seg == NULL)
	{
		DestroyParallelContext(pcxt);
		ExitParallelMode();
		return;
	}
	shared = allocate(pcxt, KEY_SHARED, shared_size(x->nrels));
	init_shared(v, shared, nworkers);
	pfree(x->shared);
	x->shared = shared;
	x->area = dsa_create_in_place(allocate(pcxt, KEY_AREA, size), size,
								  LWTRANCHE_PARALLEL_QUERY_DSA, pcxt->seg);
	x->buffer_usage = allocate(pcxt, KEY_BUFFER_USAGE,
							   mul_size(sizeof(BufferUsage), nworkers));
	x->wal_usage = allocate(pcxt, KEY_WAL_USAGE,
							mul_size(sizeof(WalUsage), nworkers));
	if (debug_query_string)
	{
		query = allocate(pcxt, KEY_QUERY, strlen(debug_query_string) + 1);
		strcpy(query, debug_query_string);
	}
	x->pcxt = pcxt;
	v->dead = tidset_pg_create_shared(CurrentMemoryContext, x->area,
									  memory_limit());
	if (v->dead)
		shared->dead = tidset_handle(v->dead);
}

void
ip_vacuum_indexes_begin(IpVacuum *v)
{
	IpVacuumIndexes *x = v->indexes = palloc0(sizeof(IpVacuumIndexes));
	int			nworkers;

	/* the index of a TOAST table has no entries */
	if (!ip_rel_is_toast(v->rel))
		vac_open_indexes(v->rel, RowExclusiveLock, &x->nrels, &x->rels);
	for (int i = 0; i < x->nrels; i++)
		v->follows |= ip_keys_can_follow(x->rels[i]);
	x->shared = palloc(shared_size(x->nrels));
	init_shared(v, x->shared, 0);
	nworkers = choose_workers(v);
	if (nworkers > 0)
		begin_parallel(v, nworkers);
	if (x->pcxt == NULL)
		v->dead = tidset_pg_create(CurrentMemoryContext, memory_limit());
	if (v->dead == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"),
				 errdetail("VACUUM could not make a set for dead rows.")));
}

double
ip_vacuum_indexes_old(const IpVacuum *v)
{
	double		old = 0;

	for (int i = 0; i < v->indexes->nrels; i++)
		old = Max(old, v->indexes->shared->indexes[i].old);
	return old;
}

int
ip_vacuum_nindexes(const IpVacuum *v)
{
	return v->indexes->nrels;
}

/* ---- the leader -------------------------------------------------------- */

static int
launch_workers(IpVacuum *v)
{
	IpVacuumIndexes *x = v->indexes;
	Shared	   *shared = x->shared;
	int			useful = 0;

	if (x->pcxt == NULL || v->failsafe)
		return 0;
	for (int i = 0; i < x->nrels; i++)
	{
		shared->indexes[i].parallel = !is_clean(shared, x->rels[i]) &&
			may_be_parallel(x->rels[i], &shared->indexes[i], shared->cleanup);
		useful += shared->indexes[i].parallel ? 1 : 0;
	}
	if (useful < 2)
		return 0;
	if (x->launched)
		ReinitializeParallelDSM(x->pcxt);
	x->launched = true;
	CompatGetCosts(&shared->costs);
	pg_atomic_write_u32(&shared->cost_balance, VacuumCostBalance);
	pg_atomic_write_u32(&shared->active, 0);
	ReinitializeParallelWorkers(x->pcxt, Min(useful - 1, x->pcxt->nworkers));
	LaunchParallelWorkers(x->pcxt);
	x->nplanned[shared->cleanup] += x->pcxt->nworkers_to_launch;
	x->nlaunched[shared->cleanup] += x->pcxt->nworkers_launched;
	if (x->pcxt->nworkers_launched > 0)
	{
		VacuumCostBalance = VacuumCostBalanceLocal = 0;
		VacuumSharedCostBalance = &shared->cost_balance;
		VacuumActiveNWorkers = &shared->active;
	}
	ereport(v->elevel,
			(errmsg_plural("launched %d parallel vacuum worker for index %s (planned: %d)",
						   "launched %d parallel vacuum workers for index %s (planned: %d)",
						   x->pcxt->nworkers_launched,
						   x->pcxt->nworkers_launched,
						   shared->cleanup ? "cleanup" : "vacuuming",
						   x->pcxt->nworkers_to_launch)));
	return x->pcxt->nworkers_launched;
}

static void
end_workers(IpVacuumIndexes *x)
{
	WaitForParallelWorkersToFinish(x->pcxt);
	for (int i = 0; i < x->pcxt->nworkers_launched; i++)
		InstrAccumParallelQuery(&x->buffer_usage[i], &x->wal_usage[i]);
	if (VacuumSharedCostBalance)
	{
		VacuumCostBalance = pg_atomic_read_u32(VacuumSharedCostBalance);
		VacuumSharedCostBalance = NULL;
		VacuumActiveNWorkers = NULL;
	}
}

/*
 * Do the current work on all indexes.  Workers take indexes that they may
 * process; the leader takes part in that, and processes the other indexes
 * afterwards.
 */
static void
run(IpVacuum *v)
{
	IpVacuumIndexes *x = v->indexes;
	Shared	   *shared = x->shared;
	bool		parallel;

	Assert(v->dead != NULL);
	tidset_seal(v->dead);
	compat_progress_indexes(x->nrels);
	pg_atomic_write_u32(&shared->next, 0);
	parallel = launch_workers(v) > 0;
	if (VacuumActiveNWorkers)
		pg_atomic_add_fetch_u32(VacuumActiveNWorkers, 1);
	process_indexes(v->rel, x->rels, shared, v->dead, v->strategy, !parallel);
	if (!parallel)
		return;
	if (VacuumActiveNWorkers)
		pg_atomic_sub_fetch_u32(VacuumActiveNWorkers, 1);
	end_workers(x);
	for (int i = 0; i < x->nrels; i++)
	{
		if (!shared->indexes[i].parallel)
			process_index(v->rel, x->rels[i], shared, &shared->indexes[i],
						  v->dead, v->strategy);
	}
}

void
ip_vacuum_indexes_delete(IpVacuum *v)
{
	v->indexes->shared->cleanup = false;
	v->indexes->shared->stale_only = tidset_count(v->dead) == 0;
	run(v);
	compat_progress_indexes(0);
}

void
ip_vacuum_indexes_cleanup(IpVacuum *v, double row_count, bool exact)
{
	Shared	   *shared = v->indexes->shared;

	shared->cleanup = true;
	shared->row_count = row_count;
	shared->exact = exact;
	run(v);
	compat_progress_indexes(0);
}

void
ip_vacuum_indexes_end(IpVacuum *v)
{
	IpVacuumIndexes *x = v->indexes;
	Shared	   *copy = palloc(shared_size(x->nrels));

	Assert(x->shared->nindexes == x->nrels);
	memcpy(copy, x->shared, shared_size(x->nrels));
	if (x->pcxt != NULL)
	{
		tidset_pg_destroy(v->dead);
		v->dead = NULL;
		dsa_detach(x->area);
		DestroyParallelContext(x->pcxt);
		ExitParallelMode();
		x->pcxt = NULL;
	}
	x->shared = copy;
	/* only now, as parallel mode forbids changes of pg_class */
	for (int i = 0; i < x->nrels; i++)
	{
		IndexBulkDeleteResult *stats = &copy->indexes[i].stats;

		if (copy->indexes[i].has_stats && !stats->estimated_count)
			CompatVacUpdateRelstats(x->rels[i], stats->num_pages,
									stats->num_index_tuples, 0, 0, false,
									InvalidTransactionId, InvalidMultiXactId,
									NULL, NULL, false);
	}
}

void
ip_vacuum_indexes_close(IpVacuum *v)
{
	vac_close_indexes(v->indexes->nrels, v->indexes->rels, NoLock);
}

void
ip_vacuum_indexes_report(IpVacuum *v, StringInfo buf)
{
	IpVacuumIndexes *x = v->indexes;

	compat_report_workers(buf, x->nplanned, x->nlaunched);
	for (int i = 0; i < x->nrels; i++)
	{
		IndexState *state = &x->shared->indexes[i];
		IndexBulkDeleteResult *stats = &state->stats;

		if (!state->has_stats)
			continue;
		appendStringInfo(buf,
						 _("index \"%s\": pages: %u in total, %u newly deleted, %u currently deleted, %u reusable\n"),
						 RelationGetRelationName(x->rels[i]), stats->num_pages,
						 stats->pages_newly_deleted, stats->pages_deleted,
						 stats->pages_free);
		if (v->n.index_scans > 0 && ip_keys_can_follow(x->rels[i]))
			appendStringInfo(buf, _("index \"%s\": %.0f stale entries removed, %.0f still needed\n"),
							 RelationGetRelationName(x->rels[i]),
							 state->stale_removed, state->old);
	}
}

/* ---- a worker ---------------------------------------------------------- */

static void
worker_cost_setup(Shared *shared)
{
	CompatTakeCosts(&shared->costs);
	VacuumCostBalance = 0;
	VacuumCostBalanceLocal = 0;
	VacuumSharedCostBalance = &shared->cost_balance;
	VacuumActiveNWorkers = &shared->active;
}

void
ip_vacuum_worker_main(dsm_segment *seg, shm_toc *toc)
{
	Shared	   *shared = shm_toc_lookup(toc, KEY_SHARED, false);
	BufferUsage *buffer_usage = shm_toc_lookup(toc, KEY_BUFFER_USAGE, false);
	WalUsage   *wal_usage = shm_toc_lookup(toc, KEY_WAL_USAGE, false);
	dsa_area   *area = dsa_attach_in_place(shm_toc_lookup(toc, KEY_AREA, false),
										   seg);
	BufferAccessStrategy strategy = CompatVacuumRing(shared->ring);
	Relation	table;
	Relation   *indexes;
	int			nindexes;
	TidSet	   *dead;

	debug_query_string = shm_toc_lookup(toc, KEY_QUERY, true);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);
	/* the leader has ShareUpdateExclusiveLock, which a group shares */
	table = table_open(shared->relid, ShareUpdateExclusiveLock);
	vac_open_indexes(table, RowExclusiveLock, &nindexes, &indexes);
	Assert(nindexes == shared->nindexes);
	maintenance_work_mem = shared->memory;
	worker_cost_setup(shared);
	dead = tidset_pg_attach(CurrentMemoryContext, area, shared->dead);
	if (dead == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));

	InstrStartParallelQuery();
	pg_atomic_add_fetch_u32(VacuumActiveNWorkers, 1);
	process_indexes(table, indexes, shared, dead, strategy, false);
	pg_atomic_sub_fetch_u32(VacuumActiveNWorkers, 1);
	CompatReportWorkerDelay();
	InstrEndParallelQuery(&buffer_usage[ParallelWorkerNumber],
						  &wal_usage[ParallelWorkerNumber]);

	tidset_detach(dead);
	dsa_detach(area);
	vac_close_indexes(nindexes, indexes, RowExclusiveLock);
	table_close(table, ShareUpdateExclusiveLock);
	FreeAccessStrategy(strategy);
}
