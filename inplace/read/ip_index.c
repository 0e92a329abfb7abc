/*-------------------------------------------------------------------------
 * ip_index.c
 *	  Building indexes on inplace tables.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/xact.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "port/pg_bitutils.h"
#include "storage/procarray.h"
#include "utils/datum.h"
#include "utils/snapmgr.h"
#include "utils/tuplesort.h"

#include "ip_fetch.h"
#include "ip_index.h"
#include "ip_keys.h"
#include "ip_scan.h"
#include "ip_value_read.h"
#include "ip_version_satisfy.h"
#include "ip_xid.h"

typedef struct BuildState
{
	Relation	table;
	IndexInfo  *info;
	bool		mvcc;			/* concurrent build: index only what the
								 * snapshot sees */
	bool		anyvisible;
	bool		follows;		/* the index can follow updates in place */
	bool		all_versions;	/* the row needs entries of all its versions */
	IpXid		horizon;		/* build that is not concurrent: all see the
								 * changes before it */
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
 * Go to the version to be indexed under the row's TID.  Returns false if there
 * is no such version.  In a build that is not concurrent, only our own
 * transaction writes to the table.  A row that others may still see in an older
 * version with other keys makes the index unusable for old snapshots, as a
 * broken HOT chain does in heap.
 */
static bool
version_to_index(BuildState *build, IpVersion *v, bool *alive)
{
	IpXidStatus status;
	IpvResult	result;
	bool		deleted;
	int			tries = 0;

	Assert(!build->mvcc && !IpXidIsFrozen(build->horizon)); /* I18 */
	while ((result = ip_version_skip_aborted(v)) != IPV_OK)
	{
		if (result == IPV_NONE || !refetch(v))
			return false;
		if (++tries > IP_MAX_STALE)
			ip_version_missing(v);
	}
	status = ip_version_status(v);
	deleted = (v->state & IP_ROW_DELETED) != 0;
	*alive = !deleted;
	if (deleted && status == IP_STATUS_COMMITTED && v->xid < build->horizon)
		return false;

	/* only BRIN meets a running inserter: it summarizes under a weak lock */
	if (status == IP_STATUS_RUNNING && !build->anyvisible)
	{
		if (v->state & IP_ROW_INSERTED)
			*alive = false;
		else if (deleted)
			*alive = true;
	}
	if (build->all_versions)
		return true;
	if (!deleted && !(v->state & IP_ROW_INSERTED) && v->xid >= build->horizon)
		build->info->ii_BrokenHotChain = true;
	if (deleted && ip_version_load_rec(v) == IPV_OK &&
		!IpXidIsFrozen(v->rec.prev_xid) &&
		!(v->rec.flags & IP_REC_PREV_INSERTED) &&
		v->rec.prev_xid >= build->horizon)
		build->info->ii_BrokenHotChain = true;
	return true;
}

/*
 * Returns whether updates in place may have changed keys of the page's rows
 * (I23); then the index gets entries of all versions.
 */
static bool
may_be_stale(const BuildState *build, IpScan *scan)
{
	return build->follows && !build->mvcc &&
		(IpPageGetSpecial(scan->copy.data)->keys & IP_KEYS_STALE);
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

		result = ip_version_fetch_satisfy(v, v->rel, &tid,
										  scan->rs_base.rs_snapshot, NULL);
	}
	return result == IPV_OK;
}

/*
 * Go to the next older version of which the row needs an entry; returns false
 * if there is no such version.  Updates in place change columns that only
 * summaries (BRIN) or indexes that follow updates use.  These need the values
 * of all versions that somebody may see, or that a rollback may restore, as
 * summaries are made while others write.
 */
static bool
next_version(BuildState *build, IpVersion *v)
{
	IpXid		top_xid = v->top_xid;
	IpPtr		top_ptr = v->top_ptr;
	bool		committed = ip_version_status(v) == IP_STATUS_COMMITTED;
	bool		alive;

	if (!build->all_versions || (committed && v->xid < build->horizon))
		return false;
	switch (ip_version_older(v))
	{
		case IPV_OK:
			return true;
		case IPV_NONE:
			return false;
		default:

			/*
			 * undo of a committed change was removed because the horizon has
			 * passed it meanwhile ...
			 */
			if (!refetch(v) ||
				(committed && v->top_xid == top_xid &&
				 IpPtrEquals(v->top_ptr, top_ptr)))
				return false;
			/* ... unless the row has changed: then start again */
			return version_to_index(build, v, &alive);
	}
}

/*
 * Report the scan's progress.  In a parallel scan only the leader reports, by
 * its own position: other processes have read their part of the blocks before
 * it.
 */
static void
report_progress(IpScan *scan, BlockNumber *reported)
{
	ParallelBlockTableScanDesc shared =
		(ParallelBlockTableScanDesc) scan->rs_base.rs_parallel;
	BlockNumber first = shared ? shared->phs_startblock : scan->first;

	/* the scan may wrap around */
	BlockNumber done = scan->block - first +
		(scan->block < first ? scan->nblocks : 0);

	if (done != *reported)
	{
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE, done);
		*reported = done;
	}
}

/* What forming index entries needs. */
typedef struct EntryMaker
{
	IndexInfo  *info;
	EState	   *estate;
	ExprContext *econtext;
	ExprState  *predicate;
	TupleTableSlot *slot;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	/*
	 * The entries of a row of which all versions are needed: their number,
	 * their values and NULLs one after the other, and, when there are many
	 * entries, a hash table of their numbers plus 1
	 */
	uint32		nmade;
	MemoryContext made;
	MemoryContext old_values;	/* large values of versions that may be dead */
	Datum	   *made_values;
	bool	   *made_null;
	uint32	   *buckets;
	uint32		nbuckets;		/* 0, or a power of 2 */
} EntryMaker;

/* A row with at least this number of entries gets a hash table. */
#define MANY_ENTRIES	32

static void
begin_entries(EntryMaker *m, Relation table, IndexInfo *info)
{
	m->info = info;
	m->estate = CreateExecutorState();
	m->econtext = GetPerTupleExprContext(m->estate);
	m->slot = table_slot_create(table, NULL);
	m->econtext->ecxt_scantuple = m->slot;
	m->predicate = ExecPrepareQual(info->ii_Predicate, m->estate);
	m->made = AllocSetContextCreate(CurrentMemoryContext,
									"inplace entries of a row",
									ALLOCSET_SMALL_SIZES);
	m->old_values = AllocSetContextCreate(CurrentMemoryContext,
										  "inplace values of a version",
										  ALLOCSET_SMALL_SIZES);
	m->nmade = m->nbuckets = 0;
}

/* Form the entry of the row in the slot; returns false if the row has none. */
static bool
make_entry(EntryMaker *m)
{
	MemoryContextReset(m->econtext->ecxt_per_tuple_memory);
	if (m->predicate != NULL && !ExecQual(m->predicate, m->econtext))
		return false;
	FormIndexDatum(m->info, m->slot, m->estate, m->values, m->isnull);
	return true;
}

/*
 * Read the large values of a version that may be dead to all by now: then they
 * may have been removed, and it needs no entry.  Returns false if so.
 */
static bool
has_values(EntryMaker *m)
{
	TupleDesc	desc = m->slot->tts_tupleDescriptor;
	MemoryContext old;
	bool		found = true;

	MemoryContextReset(m->old_values);
	slot_getallattrs(m->slot);
	old = MemoryContextSwitchTo(m->old_values);
	for (int i = 0; i < desc->natts && found; i++)
	{
		struct varlena *value =
			(struct varlena *) DatumGetPointer(m->slot->tts_values[i]);

		if (TupleDescAttr(desc, i)->attlen != -1 || m->slot->tts_isnull[i] ||
			!VARATT_IS_EXTERNAL_ONDISK(value))
			continue;
		value = ip_value_fetch_soft(value);
		found = value != NULL;
		m->slot->tts_values[i] = PointerGetDatum(value);
	}
	MemoryContextSwitchTo(old);
	return found;
}

static void
forget_entries(EntryMaker *m)
{
	if (m->nmade > 0)
		MemoryContextReset(m->made);
	m->nmade = m->nbuckets = 0;
}

static bool
is_like(EntryMaker *m, TupleDesc desc, uint32 made)
{
	for (int i = 0; i < desc->natts; i++)
	{
		Size		at = (Size) made * desc->natts + i;

		if (m->isnull[i] != m->made_null[at])
			return false;
		if (!m->isnull[i] &&
			!datum_image_eq(m->values[i], m->made_values[at],
							TupleDescAttr(desc, i)->attbyval,
							TupleDescAttr(desc, i)->attlen))
			return false;
	}
	return true;
}

/*
 * Returns the entry's bucket, or a free one.  The values and NULLs are the
 * maker's, or those of an entry that was made before.
 */
static uint32 *
entry_bucket(EntryMaker *m, TupleDesc desc, const Datum *values,
			 const bool *isnull)
{
	uint32		hash = 0;

	for (int i = 0; i < desc->natts; i++)
		hash = hash_combine(hash,
							isnull[i] ? 0 :
							datum_image_hash(values[i],
											 TupleDescAttr(desc, i)->attbyval,
											 TupleDescAttr(desc, i)->attlen));
	for (uint32 i = hash;; i++)
	{
		uint32	   *bucket = &m->buckets[i & (m->nbuckets - 1)];

		if (*bucket == 0 ||
			(values == m->values && is_like(m, desc, *bucket - 1)))
			return bucket;
	}
}

/*
 * Put the made entries, all of them different, into a hash table that is at
 * most half full.
 */
static void
hash_entries(EntryMaker *m, TupleDesc desc)
{
	m->nbuckets = pg_nextpower2_32(4 * m->nmade);
	m->buckets = MemoryContextAllocExtended(m->made,
											m->nbuckets * sizeof(uint32),
											MCXT_ALLOC_ZERO | MCXT_ALLOC_HUGE);
	for (uint32 i = 0; i < m->nmade; i++)
	{
		Size		at = (Size) i * desc->natts;

		*entry_bucket(m, desc, &m->made_values[at], &m->made_null[at]) = i + 1;
	}
}

/*
 * Returns whether the entry has been made for a newer version of the row.  If
 * not, and there is a hash table, the entry is added to it.
 */
static bool
is_made(EntryMaker *m, TupleDesc desc)
{
	uint32	   *bucket;

	if (m->nmade < MANY_ENTRIES)
	{
		for (uint32 i = 0; i < m->nmade; i++)
		{
			if (is_like(m, desc, i))
				return true;
		}
		return false;
	}
	if (m->nbuckets < 2 * m->nmade + 2)
		hash_entries(m, desc);
	bucket = entry_bucket(m, desc, m->values, m->isnull);
	if (*bucket != 0)
		return true;
	*bucket = m->nmade + 1;
	return false;
}

/*
 * Returns whether no newer version of the row has the entry.  Then the entry is
 * kept.
 */
static bool
is_new_entry(EntryMaker *m, TupleDesc desc)
{
	MemoryContext old;
	Size		at = (Size) m->nmade * desc->natts;

	if (is_made(m, desc))
		return false;
	old = MemoryContextSwitchTo(m->made);
	if (m->nmade == 0)
	{
		m->made_values = palloc(desc->natts * sizeof(Datum));
		m->made_null = palloc(desc->natts * sizeof(bool));
	}
	else if ((m->nmade & (m->nmade - 1)) == 0)
	{
		m->made_values = repalloc_huge(m->made_values, 2 * at * sizeof(Datum));
		m->made_null = repalloc_huge(m->made_null, 2 * at * sizeof(bool));
	}
	for (int i = 0; i < desc->natts; i++)
	{
		m->made_null[at + i] = m->isnull[i];
		if (!m->isnull[i])
			m->made_values[at + i] = datumCopy(m->values[i],
											   TupleDescAttr(desc, i)->attbyval,
											   TupleDescAttr(desc, i)->attlen);
	}
	MemoryContextSwitchTo(old);
	m->nmade++;
	return true;
}

static void
end_entries(EntryMaker *m)
{
	MemoryContextDelete(m->made);
	MemoryContextDelete(m->old_values);
	ExecDropSingleTupleTableSlot(m->slot);
	FreeExecutorState(m->estate);
	/* they pointed into the executor state */
	m->info->ii_ExpressionsState = NIL;
	m->info->ii_PredicateState = NULL;
}

static void
build_rows(BuildState *build, IpScan *scan, Relation index, bool progress,
		   IndexBuildCallback callback, void *callback_state)
{
	BlockNumber reported = 0;
	EntryMaker	m;
	bool		alive;

	begin_entries(&m, build->table, build->info);
	while (ip_scan_next_row(scan))
	{
		CHECK_FOR_INTERRUPTS();
		if (progress)
			report_progress(scan, &reported);
		build->all_versions = build->anyvisible || may_be_stale(build, scan);
		if (!choose_version(build, scan, &alive))
			continue;
		if (alive)
			build->reltuples += 1;
		forget_entries(&m);
		do
		{
			CHECK_FOR_INTERRUPTS();
			CompatInjectionPoint("inplace-build-entry");
			ip_version_to_slot(&scan->v, m.slot);
			/* BRIN's summaries are made while rows come and go */
			if (((alive && scan->v.steps == 0 && !build->anyvisible) ||
				 has_values(&m)) && make_entry(&m) &&
				(!build->all_versions || !build->follows ||
				 is_new_entry(&m, RelationGetDescr(index))))
				callback(index, &m.slot->tts_tid, m.values, m.isnull, alive,
						 callback_state);
		} while (next_version(build, &scan->v));
	}
	end_entries(&m);
}

double
ip_index_build_range_scan(Relation table, Relation index, IndexInfo *info,
						  bool allow_sync, bool anyvisible, bool progress,
						  BlockNumber start_block, BlockNumber nblocks,
						  IndexBuildCallback callback, void *callback_state,
						  TableScanDesc sscan)
{
	BuildState	build = {
		.table = table,.info = info,.anyvisible = anyvisible,
		.follows = ip_keys_can_follow(index)
	};
	Snapshot	snapshot = NULL;
	IpScan	   *scan;

	/* the index of a TOAST table has no entries */
	if (ip_rel_is_toast(table))
	{
		if (sscan != NULL)
			table_endscan(sscan);
		return Max(table->rd_rel->reltuples, 0);
	}
	if (sscan == NULL)
	{
		if (info->ii_Concurrent)
			snapshot = RegisterSnapshot(GetTransactionSnapshot());
		sscan = table_beginscan_strat(table, snapshot ? snapshot : SnapshotAny,
									  0, NULL, true, allow_sync);
	}
	scan = (IpScan *) sscan;
	build.mvcc = IsMVCCSnapshot(sscan->rs_snapshot);

	if (!build.mvcc)
		build.horizon = ip_xid_full(GetOldestNonRemovableTransactionId(table));
	if (sscan->rs_parallel == NULL && !allow_sync)
		ip_scan_set_range(scan, start_block, nblocks);
	if (progress)
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_TOTAL,
									 scan->limit - scan->start);
	build_rows(&build, scan, index, progress, callback, callback_state);
	if (progress)
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE,
									 scan->limit - scan->start);
	table_endscan(sscan);
	if (snapshot)
		UnregisterSnapshot(snapshot);
	return build.reltuples;
}

/* ---- CREATE INDEX CONCURRENTLY ----------------------------------------- */

/* The TIDs that the index has, in order. */
typedef struct IndexedTids
{
	Tuplesortstate *sort;
	bool		at_end;
	bool		has_tid;
	ItemPointerData tid;
} IndexedTids;

/*
 * Returns whether the TID is in the index.  The caller asks for TIDs in order.
 */
static bool
is_indexed(IndexedTids *in, ItemPointer tid)
{
	while (!in->at_end &&
		   (!in->has_tid || ItemPointerCompare(&in->tid, tid) < 0))
	{
		Datum		value;
		bool		isnull;

		in->at_end = !CompatSortGetInt64(in->sort, &value, &isnull);
		in->has_tid = !in->at_end;
		if (in->has_tid)
			itemptr_decode(&in->tid, DatumGetInt64(value));
	}
	return in->has_tid && ItemPointerEquals(&in->tid, tid);
}

/*
 * The second pass of a concurrent build inserts rows that the snapshot sees and
 * that the first pass missed.  From the first pass on nobody has changed the
 * index's columns in place, so every version that we see has the keys of the
 * newest one.
 */
void
ip_index_validate_scan(Relation table, Relation index, IndexInfo *info,
					   Snapshot snapshot, ValidateIndexState *state)
{
	IndexedTids in = {.sort = state->tuplesort};
	TableScanDesc scan;
	BlockNumber reported = 0;
	EntryMaker	m;

	if (ip_rel_is_toast(table))
		return;
	scan = table_beginscan_strat(table, snapshot, 0, NULL, true, false);
	begin_entries(&m, table, info);
	pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_TOTAL,
								 ((IpScan *) scan)->nblocks);
	while (table_scan_getnextslot(scan, ForwardScanDirection, m.slot))
	{
		CHECK_FOR_INTERRUPTS();
		state->htups += 1;
		report_progress((IpScan *) scan, &reported);
		if (is_indexed(&in, &m.slot->tts_tid) || !make_entry(&m))
			continue;
		index_insert(index, m.values, m.isnull, &m.slot->tts_tid, table,
					 info->ii_Unique ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO,
					 false, info);
		state->tups_inserted += 1;
	}
	table_endscan(scan);
	end_entries(&m);
}
