/*-------------------------------------------------------------------------
 * noting_btree.c
 *	  For tests, of 19: btree that writes to the server's log what VACUUM tells
 *	  it, and which process calls.  Autovacuum's own process waits until a
 *	  worker has begun with an index of the table: a worker that starts late
 *	  would find nothing to do.
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "access/amapi.h"
#include "access/genam.h"
#include "access/parallel.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "postmaster/autovacuum.h"
#include "storage/fd.h"
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

/* A worker leaves a file in the data directory, which is its mark. */
static void
share_work(const IndexVacuumInfo *info)
{
	char	   *mark = psprintf("noting_btree.%u", RelationGetRelid(info->heaprel));
	FILE	   *file;

	/* not those of a session's VACUUM */
	if (IsParallelWorker() && info->is_autovacuum)
	{
		file = AllocateFile(mark, "w");
		if (file != NULL)
			FreeFile(file);
	}
	else if (AmAutoVacuumWorkerProcess())
	{
		/* A minute at most: the test tells what is missing then. */
		for (int i = 0; i < 6000 && access(mark, F_OK) != 0; i++)
		{
			CHECK_FOR_INTERRUPTS();
			pg_usleep(10000);
		}
	}
	pfree(mark);
}

static IndexBulkDeleteResult *
bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats, IndexBulkDeleteCallback callback, void *state)
{
	note("bulk deletion", info);
	share_work(info);
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
