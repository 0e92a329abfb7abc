/*-------------------------------------------------------------------------
 * pb_cost.h
 *	  What an index scan costs.
 *-------------------------------------------------------------------------
 */
#ifndef PB_COST_H
#define PB_COST_H

#include "nodes/pathnodes.h"

/* What btree's estimate is, with this index's height.  Lock: none of a page. */
extern void pb_cost_estimate(PlannerInfo *root, IndexPath *path, double loop_count,
							 Cost *startup, Cost *total, Selectivity *selectivity,
							 double *correlation, double *pages);

#endif							/* PB_COST_H */
