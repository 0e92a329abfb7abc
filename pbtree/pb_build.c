/*-------------------------------------------------------------------------
 * pb_build.c
 *	  CREATE INDEX.
 *-------------------------------------------------------------------------
 */
#include "compat_index.h"

#include "access/nbtree.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "pb_build.h"
#include "pb_change.h"
#include "pb_gather.h"
#include "pb_insert.h"
#include "pb_load.h"

typedef struct Build
{
	Relation	heap;
	Relation	rel;
	PbIndex    *index;
	PbGather   *gather;
	bool		unique;
} Build;

/* A context for the memory of one key, which is reset before the next one. */
static MemoryContext
make_key_context(void)
{
	return AllocSetContextCreate(CurrentMemoryContext, "pbtree key",
								 ALLOCSET_DEFAULT_SIZES);
}

/*
 * Check that of keys in order none is a duplicate, apart from those with NULL.
 */
static void
check_unique(Build *build, PbKey *last, const PbKey *key, int n)
{
	bool		isnull[INDEX_MAX_KEYS];

	for (int i = 0; i < build->index->nkeys; i++)
		isnull[i] = pb_key_state(key, i) == PB_COL_NULL;
	if (!pb_unique_applies(build->rel, build->index, isnull))
		return;
	if (n > 1 || (last->natts > 0 &&
				  pb_pack_equal_columns(build->rel, build->index, last, key) >=
				  build->index->nkeys))
		pb_unique_report_build(build->heap, build->rel, build->index, key);
	pb_key_copy(last, key);
}

static void
load_sorted(Build *build)
{
	PbLoad	   *load = pb_load_begin(build->rel);
	PbKey	   *key = palloc(sizeof(PbKey));
	PbKey	   *last = palloc(sizeof(PbKey));
	const ItemPointerData *tids;
	int			n;
	int64		done = 0;
	MemoryContext context = make_key_context();
	MemoryContext old = MemoryContextSwitchTo(context);

	pb_key_begin(last);
	while (pb_gather_next(build->gather, key, &tids, &n))
	{
		if (build->unique)
			check_unique(build, last, key, n);
		pb_load_add(load, key, tids, n);
		done += n;
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, done);
		MemoryContextReset(context);
		CHECK_FOR_INTERRUPTS();
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	pb_load_end(load);
	pfree(key);
	pfree(last);
}

/* Insert dead rows, which old snapshots may need; they need not be unique. */
static void
insert_dead(Build *build)
{
	PbKey	   *key = palloc(sizeof(PbKey));
	const ItemPointerData *tids;
	int			n;
	MemoryContext context = make_key_context();
	MemoryContext old = MemoryContextSwitchTo(context);

	while (pb_gather_next_dead(build->gather, key, &tids, &n))
	{
		for (int i = 0; i < n; i++)
		{
			key->tid = tids[i];
			key->has_tid = true;
			pb_insert_key(build->rel, build->heap, build->index, key, false);
		}
		MemoryContextReset(context);
		CHECK_FOR_INTERRUPTS();
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	pfree(key);
}

/* Make the metapage, block 0; its contents are written last. */
static void
begin_file(Relation rel)
{
	PbMeta		meta;
	Buffer		buffer;

	if (RelationGetNumberOfBlocks(rel) != 0)
		elog(ERROR, "index \"%s\" already contains data",
			 RelationGetRelationName(rel));
	pb_index_new_meta(rel, &meta);
	buffer = pb_index_extend(rel);
	START_CRIT_SECTION();
	pb_load_write_meta(rel, buffer, &meta);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(rel))
		log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
}

/*
 * Refuse operator classes of patterns with nondeterministic collations, as
 * core does for btree: their order is that of bytes, but their equality the
 * collation's.
 */
static void
refuse_patterns(Relation rel)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(rel); i++)
	{
		Oid			proc = index_getprocid(rel, i + 1, BTORDER_PROC);

		if ((proc == F_BTTEXT_PATTERN_CMP || proc == F_BTBPCHAR_PATTERN_CMP) &&
			OidIsValid(rel->rd_indcollation[i]) &&
			!get_collation_isdeterministic(rel->rd_indcollation[i]))
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("nondeterministic collations are not supported for operator class \"%s\"",
							proc == F_BTTEXT_PATTERN_CMP ?
							"text_pattern_ops" : "bpchar_pattern_ops")));
	}
}

IndexBuildResult *
pb_build(Relation heap, Relation rel, IndexInfo *info)
{
	Build		build = {.heap = heap,.rel = rel,.unique = info->ii_Unique};
	IndexBuildResult *result = palloc(sizeof(IndexBuildResult));

	if (info->ii_Unique && !COMPAT_UNIQUE_INDEXES)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("access method \"pbtree\" does not support unique indexes before PostgreSQL 18"),
				 errhint("Use a unique index of access method \"btree\".")));
	pb_change_require_rmgr(rel);
	refuse_patterns(rel);
	begin_file(rel);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE,
								 PROGRESS_BTREE_PHASE_INDEXBUILD_TABLESCAN);
	build.index = pb_index_get(rel);
	build.gather = pb_gather_begin(heap, rel, build.index, info);
	pb_gather_count(build.gather, &result->heap_tuples, &result->index_tuples);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL,
								 (int64) result->index_tuples);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE,
								 PROGRESS_BTREE_PHASE_LEAF_LOAD);
	load_sorted(&build);
	insert_dead(&build);
	pb_gather_end(build.gather);
	pfree(build.index);
	return result;
}

/* Build the initial fork of an unlogged index. */
void
pb_build_empty(Relation rel)
{
	PbMeta		meta;
	Buffer		buffer;

	pb_index_new_meta(rel, &meta);
	buffer = ReadBufferExtended(rel, INIT_FORKNUM, P_NEW, RBM_NORMAL, NULL);
	LockBuffer(buffer, PB_WRITE);
	START_CRIT_SECTION();
	pb_load_write_meta(rel, buffer, &meta);
	MarkBufferDirty(buffer);
	log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
}
