/*-------------------------------------------------------------------------
 * pb_gather.h
 *	  A new index's rows, read from the table and sorted, by one process or several.
 *-------------------------------------------------------------------------
 */
#ifndef PB_GATHER_H
#define PB_GATHER_H

#include "nodes/execnodes.h"

#include "pb_run.h"

typedef struct PbGather PbGather;

/* Scans the table.  As many workers take part as the server has found useful (17+). */
extern PbGather *pb_gather_begin(Relation heap, Relation rel, PbIndex *index, IndexInfo *info);

/* How many rows the scan has read, and how many the index gets. */
extern void pb_gather_count(const PbGather *gather, double *heap_tuples, double *index_tuples);

/* As pb_sort_next. */
extern bool pb_gather_next(PbGather *gather, PbKey *key, const ItemPointerData **tids, int *n);

/* Rows of a unique index that are dead, but not to all, and need not be unique: in no order.  After the others. */
extern bool pb_gather_next_dead(PbGather *gather, PbKey *key, const ItemPointerData **tids, int *n);

/* End sorts and merges, and wait for the workers' end. */
extern void pb_gather_end(PbGather *gather);

/* The workers' entry. */
extern PGDLLEXPORT void pb_gather_worker(dsm_segment *seg, shm_toc *toc);

#endif							/* PB_GATHER_H */
