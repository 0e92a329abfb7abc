/*-------------------------------------------------------------------------
 * pb_cost.h
 *	  Costs of an index scan.
 *-------------------------------------------------------------------------
 */
#ifndef PB_COST_H
#define PB_COST_H

#include "nodes/pathnodes.h"

/* Compute btree's estimate with this index's height.  Lock: none on a page. */
extern void pb_cost_estimate(PlannerInfo *root, IndexPath *path,
							 double loop_count, Cost *startup, Cost *total,
							 Selectivity *selectivity, double *correlation,
							 double *pages);

#endif							/* PB_COST_H */
