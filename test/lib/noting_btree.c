/*-------------------------------------------------------------------------
 * noting_btree.c
 *	  For tests, of 19: btree that writes to the server's log what VACUUM tells it, and who calls.  Autovacuum itself is slow, so
 *	  that its workers have something to do.
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "access/parallel.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "postmaster/autovacuum.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(noting_btree);

static const IndexAmRoutine *btree;

static void
note(const char *what, IndexVacuumInfo *info)
{
	ereport(LOG,
			(errmsg("%s of \"%s\" by %s: is_autovacuum %d, analyze_only %d", what, RelationGetRelationName(info->index),
					IsParallelWorker() ? "a parallel worker" : AmAutoVacuumWorkerProcess() ? "autovacuum" : "a session",
					info->is_autovacuum, info->analyze_only)));
}

static IndexBulkDeleteResult *
bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats, IndexBulkDeleteCallback callback, void *state)
{
	note("bulk deletion", info);
	if (AmAutoVacuumWorkerProcess())
		pg_usleep(500000);
	return btree->ambulkdelete(info, stats, callback, state);
}

static IndexBulkDeleteResult *
clean_up(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	note("cleanup", info);
	return btree->amvacuumcleanup(info, stats);
}

Datum
noting_btree(PG_FUNCTION_ARGS)
{
	static IndexAmRoutine routine;

	btree = GetIndexAmRoutine(F_BTHANDLER);
	routine = *btree;
	routine.ambulkdelete = bulk_delete;
	routine.amvacuumcleanup = clean_up;
	PG_RETURN_POINTER(&routine);
}
