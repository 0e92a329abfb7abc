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

/*
 * Runs in the order of their next keys and TIDs; the first one has the least.
 */
typedef struct PbMerge
{
	Relation	rel;
	PbIndex    *index;
	int			nruns;
	int			taken;			/* TIDs returned, but not yet passed */
	PbArena		arena;
	PbRun	   *runs[FLEXIBLE_ARRAY_MEMBER];
} PbMerge;

/* Write the result of a performed sort to a file of the set. */
extern void pb_run_write(PbSort *sort, PbIndex *index, SharedFileSet *files,
						 const char *name);

/*
 * Create a merge of up to "most" runs.  The merge frees its parts, but not the
 * sort.
 */
extern PbMerge *pb_run_merge_begin(Relation rel, PbIndex *index, int most);

/* Add a sort that has been performed. */
extern void pb_run_add_sort(PbMerge *merge, PbSort *sort);

/* Add a file that pb_run_write has made. */
extern void pb_run_add_file(PbMerge *merge, SharedFileSet *files,
							const char *name);

/* Like pb_sort_next. */
extern bool pb_run_next(PbMerge *merge, PbKey *key,
						const ItemPointerData **tids, int *n);

/* Free the merge and close its files. */
extern void pb_run_merge_end(PbMerge *merge);

#endif							/* PB_RUN_H */
