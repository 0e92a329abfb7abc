/*-------------------------------------------------------------------------
 * pb_handler.c
 *	  Entry points of the access method; loading of the library.
 *-------------------------------------------------------------------------
 */
#include "compat_index.h"

#include "access/nbtree.h"
#include "access/reloptions.h"
#include "fmgr.h"
#include "nodes/execnodes.h"

#include "pb_build.h"
#include "pb_change.h"
#include "pb_cost.h"
#include "pb_insert.h"
#include "pb_parallel.h"
#include "pb_scan.h"
#include "pb_stale.h"
#include "pb_vacuum.h"
#include "pb_wal.h"

COMPAT_MODULE_MAGIC("pbtree");

PGDLLEXPORT void _PG_init(void);
PGDLLEXPORT Datum pbtree_handler(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(pbtree_handler);

static relopt_kind options_kind;

static bool pb_handler_insert(Relation rel, Datum *values, bool *isnull,
							  ItemPointer tid, Relation heap,
							  IndexUniqueCheck check, bool unchanged,
							  IndexInfo *info);
static void pb_handler_add(Relation rel, Datum *values, bool *isnull,
						   ItemPointer tid, Relation heap);

static InplaceKeysIndex keys = {
	.insert = pb_handler_insert,
	.add = pb_handler_add
};

static const RmgrData pb_rmgr = {
	.rm_name = "pbtree",
	.rm_redo = pb_wal_redo,
	.rm_desc = pb_wal_desc,
	.rm_identify = pb_wal_identify,
	.rm_mask = pb_wal_mask,
};

/*
 * Load the library.  Without the resource manager only temporary and unlogged
 * tables can have indexes, because these need no WAL.
 */
void
_PG_init(void)
{
	options_kind = add_reloption_kind();
	add_int_reloption(options_kind, "fillfactor",
					  "Packs index pages only to this percentage",
					  PB_DEFAULT_FILLFACTOR, PB_MIN_FILLFACTOR, 100,
					  ShareUpdateExclusiveLock);
	add_bool_reloption(options_kind, "deduplicate_items", "Has no effect: equal keys that are identical always share an entry",
					   true, ShareUpdateExclusiveLock);
	pb_stale_init(&keys);
	if (process_shared_preload_libraries_in_progress)
	{
		CompatRegisterCustomRmgr(PB_RMGR_ID, &pb_rmgr);
		pb_change_rmgr_is_there = true;
	}
}

static bytea *
pb_options(Datum options, bool validate)
{
	static const relopt_parse_elt table[] = {
		{"fillfactor", RELOPT_TYPE_INT, offsetof(PbOptions, fillfactor)},
		{"deduplicate_items", RELOPT_TYPE_BOOL,
		offsetof(PbOptions, deduplicate_items)}
	};

	return (bytea *) build_reloptions(options, validate, options_kind,
									  sizeof(PbOptions), table,
									  lengthof(table));
}

/* Copy the index's description, once for all of a statement's rows. */
static PbIndex *
statement_index(Relation rel, IndexInfo *info)
{
	MemoryContext old;

	if (info == NULL)
		return pb_index_get(rel);
	if (info->ii_AmCache == NULL)
	{
		old = MemoryContextSwitchTo(info->ii_Context);
		info->ii_AmCache = pb_index_get(rel);
		MemoryContextSwitchTo(old);
	}
	return info->ii_AmCache;
}

static bool
pb_handler_insert(Relation rel, Datum *values, bool *isnull, ItemPointer tid,
				  Relation heap, IndexUniqueCheck check, bool unchanged,
				  IndexInfo *info)
{
	PbIndex    *index = statement_index(rel, info);
	PbKey		key;

	pb_key_form(rel, index, values, isnull, &key);
	key.has_tid = true;
	key.tid = *tid;
	if (check != UNIQUE_CHECK_NO && pb_unique_applies(rel, index, isnull))
	{
		PbUnique	unique = {
			.rel = rel,
			.heap = heap,
			.index = index,
			.check = check,
			.values = values,
			.isnull = isnull,
			.tid = *tid
		};

		return pb_insert_unique(&unique, &key, unchanged);
	}
	pb_insert_key(rel, heap, index, &key, unchanged);
	return true;
}

/* Insert after an update in place: the row may have had the key before. */
static void
pb_handler_add(Relation rel, Datum *values, bool *isnull, ItemPointer tid,
			   Relation heap)
{
	PbIndex    *index = pb_index_get(rel);
	PbKey		key;

	Assert(pb_stale_can_follow(rel, index));
	pb_key_form(rel, index, values, isnull, &key);
	key.has_tid = true;
	key.tid = *tid;
	pb_insert_again(rel, heap, index, &key);
	pfree(index);
}

/*
 * A standby's scan may have read an entry that has become stale.  Replay of
 * VACUUM's record, which makes the table's page all-visible, does not wait for
 * it.
 */
static bool
pb_can_return(Relation rel, int column)
{
	PbIndex    *index;
	bool		result;

	if (!RecoveryInProgress())
		return true;
	index = pb_index_get(rel);
	result = !pb_stale_applies(rel, index, NULL);
	pfree(index);
	return result;
}

static bool
pb_property(Oid index, int column, IndexAMProperty property, const char *name,
			bool *result, bool *isnull)
{
	if (property != AMPROP_RETURNABLE || column == 0)
		return false;
	*result = true;
	return true;
}

/*
 * VACUUM and ANALYZE do not lock the page for the root's level, which is an
 * estimate.
 */
pg_attribute_unused() static int
pb_tree_height(Relation rel)
{
	PbIndex    *index = pb_index_get(rel);
	int			level;
	BlockNumber root = pb_index_root(rel, index, &level);

	pfree(index);
	return root == PB_NONE ? 0 : level;
}

static const IndexAmRoutine methods = {
	.type = T_IndexAmRoutine,
	.amstrategies = BTMaxStrategyNumber,
	.amsupport = BTNProcs,
	.amoptsprocnum = BTOPTIONS_PROC,
	.amcanorder = true,
	.amcanbackward = true,
	.amcanunique = true,		/* before 18 pb_build raises an error with a
								 * hint */
	.amcanmulticol = true,
	.amoptionalkey = true,
	.amsearcharray = true,
	.amsearchnulls = true,
	.amclusterable = true,
	.ampredlocks = true,
	.amcaninclude = true,
	.amcanparallel = true,
	.amparallelvacuumoptions =
	VACUUM_OPTION_PARALLEL_BULKDEL | VACUUM_OPTION_PARALLEL_COND_CLEANUP,
	.amkeytype = InvalidOid,
	COMPAT_BUILDS_IN_PARALLEL
	COMPAT_ORDERED_INDEX_AM(pb_tree_height)
	.ambuild = pb_build,
	.ambuildempty = pb_build_empty,
	.aminsert = pb_handler_insert,
	.ambulkdelete = pb_vacuum_delete,
	.amvacuumcleanup = pb_vacuum_cleanup,
	.amcanreturn = pb_can_return,
	.amcostestimate = pb_cost_estimate,
	.amoptions = pb_options,
	.amproperty = pb_property,
	.ambuildphasename = btbuildphasename,
	.amvalidate = btvalidate,
	.ambeginscan = pb_scan_begin,
	.amrescan = pb_scan_restart,
	.amgettuple = pb_scan_next,
	.amgetbitmap = pb_scan_bitmap,
	.amendscan = pb_scan_end,
	.amestimateparallelscan = pb_parallel_size,
	.aminitparallelscan = pb_parallel_init,
	.amparallelrescan = pb_parallel_restart,
	.ammarkpos = pb_scan_mark,
	.amrestrpos = pb_scan_return
};

Datum
pbtree_handler(PG_FUNCTION_ARGS)
{
	COMPAT_RETURN_INDEX_AM(&methods);
}
