/*-------------------------------------------------------------------------
 * pb_cost.c
 *	  What an index scan costs.
 *
 * nbtree's estimate, with this index's size and height: so plans are those that
 * one gets with nbtree.  Up to version 17 the planner tells the height of btree
 * indexes only.
 *-------------------------------------------------------------------------
 */
#include "compat_index.h"

#include "access/genam.h"
#include "utils/index_selfuncs.h"

#include "pb_cost.h"
#include "pb_index.h"

/*
 * 18's estimate for conditions with a gap in front assumes a search for each
 * value of the column that has none; this access method reads what lies between.
 */
static List *
without_gaps(IndexPath *path)
{
	List	   *kept = NIL;
	int			column = 0;
	ListCell   *cell;

	foreach(cell, path->indexclauses)
	{
		IndexClause *clause = lfirst_node(IndexClause, cell);

		if (clause->indexcol > column + 1 || (kept == NIL && clause->indexcol > 0))
			break;
		column = clause->indexcol;
		kept = lappend(kept, clause);
	}
	return kept;
}

void
pb_cost_estimate(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup, Cost *total,
				 Selectivity *selectivity, double *correlation, double *pages)
{
	IndexOptInfo *info = path->indexinfo;

	if (info->tree_height < 0 && !info->hypothetical)
	{
		Relation	rel = index_open(info->indexoid, NoLock);
		PbIndex    *index = pb_index_get(rel);
		int			level;

		if (pb_index_root(rel, index, &level) != PB_NONE)
			info->tree_height = level;
		pfree(index);
		index_close(rel, NoLock);
	}
	btcostestimate(root, path, loop_count, startup, total, selectivity, correlation, pages);
	if (COMPAT_BTCOST_SKIPS)
	{
		IndexPath	solid = *path;
		Selectivity ignored;

		solid.indexclauses = without_gaps(path);
		if (list_length(solid.indexclauses) < list_length(path->indexclauses))
			btcostestimate(root, &solid, loop_count, startup, total, &ignored, correlation, pages);
	}
}
