/*-------------------------------------------------------------------------
 * pb_run.h
 *	  Sorted runs of a new index's rows, and merging them.
 *-------------------------------------------------------------------------
 */
#ifndef PB_RUN_H
#define PB_RUN_H

#include "storage/sharedfileset.h"

#include "pb_sort.h"

typedef struct PbRun PbRun;

/* Runs by their next keys and TIDs: the first one has the least. */
typedef struct PbMerge
{
	Relation	rel;
	PbIndex    *index;
	int			nruns;
	int			taken;			/* TIDs of the first run's key, not yet passed */
	PbArena		arena;
	PbRun	   *runs[FLEXIBLE_ARRAY_MEMBER];
} PbMerge;

/* Write what the sort, which has been performed, returns to a file of the set. */
extern void pb_run_write(PbSort *sort, PbIndex *index, SharedFileSet *files, const char *name);

/* Up to "most" runs; the merge frees what it is made of, but no sort. */
extern PbMerge *pb_run_merge_begin(Relation rel, PbIndex *index, int most);

/* Add a sort that has been performed. */
extern void pb_run_add_sort(PbMerge *merge, PbSort *sort);

/* Add a file that pb_run_write has made. */
extern void pb_run_add_file(PbMerge *merge, SharedFileSet *files, const char *name);

/* As pb_sort_next. */
extern bool pb_run_next(PbMerge *merge, PbKey *key, const ItemPointerData **tids, int *n);

/* Free the merge and close its files. */
extern void pb_run_merge_end(PbMerge *merge);

#endif							/* PB_RUN_H */
