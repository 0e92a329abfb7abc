/*-------------------------------------------------------------------------
 * pb_gather.h
 *	  Reading and sorting of a new index's rows, by one process or several.
 *-------------------------------------------------------------------------
 */
#ifndef PB_GATHER_H
#define PB_GATHER_H

#include "nodes/execnodes.h"

#include "pb_run.h"

typedef struct PbGather PbGather;

/* Scan the table, with as many workers as the server has chosen (17+). */
extern PbGather *pb_gather_begin(Relation heap, Relation rel, PbIndex *index,
								 IndexInfo *info);

/*
 * The number of rows that the scan has read, and of those that the index gets.
 */
extern void pb_gather_count(const PbGather *gather, double *heap_tuples,
							double *index_tuples);

/* Like pb_sort_next. */
extern bool pb_gather_next(PbGather *gather, PbKey *key,
						   const ItemPointerData **tids, int *n);

/*
 * Get the rows of a unique index that are dead, but not to all snapshots, and
 * need not be unique.  They have no order, and follow the others.
 */
extern bool pb_gather_next_dead(PbGather *gather, PbKey *key,
								const ItemPointerData **tids, int *n);

/* End sorts and merges, and wait until the workers have exited. */
extern void pb_gather_end(PbGather *gather);

/* The entry point of workers. */
extern PGDLLEXPORT void pb_gather_worker(dsm_segment *seg, shm_toc *toc);

#endif							/* PB_GATHER_H */
