/*-------------------------------------------------------------------------
 * pb_cost.c
 *	  Costs of an index scan.
 *
 * The estimate is nbtree's, with this index's size and height, so plans are
 * the same as with nbtree.  Up to version 17 the planner knows the height of
 * btree indexes only, and does not account for skipping (pb_skip.c).
 *-------------------------------------------------------------------------
 */
#include "compat_index.h"

#include "access/genam.h"
#include "utils/index_selfuncs.h"

#include "pb_cost.h"
#include "pb_index.h"

void
pb_cost_estimate(PlannerInfo *root, IndexPath *path, double loop_count,
				 Cost *startup, Cost *total, Selectivity *selectivity,
				 double *correlation, double *pages)
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
	btcostestimate(root, path, loop_count, startup, total, selectivity,
				   correlation, pages);
}
