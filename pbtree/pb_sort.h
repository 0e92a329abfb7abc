/*-------------------------------------------------------------------------
 * pb_sort.h
 *	  Sorting of a new index's rows.
 *-------------------------------------------------------------------------
 */
#ifndef PB_SORT_H
#define PB_SORT_H

#include "pb_key.h"

typedef struct PbSort PbSort;

/* Begin a sort with this much memory (kB). */
extern PbSort *pb_sort_begin(Relation heap, Relation rel, PbIndex *index,
							 int memory);

/* Add a row.  Error: its key is too long. */
extern void pb_sort_add(PbSort *sort, ItemPointer tid, Datum *values,
						bool *isnull);

/* Sort the rows that were added. */
extern void pb_sort_perform(PbSort *sort);

/* Get the next key, with TIDs, in order.  Returns false if there is none. */
extern bool pb_sort_next(PbSort *sort, PbKey *key, const ItemPointerData **tids,
						 int *n);

/* Free the memory and files. */
extern void pb_sort_end(PbSort *sort);

#endif							/* PB_SORT_H */
