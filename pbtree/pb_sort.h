/*-------------------------------------------------------------------------
 * pb_sort.h
 *	  A new index's rows, in order.
 *-------------------------------------------------------------------------
 */
#ifndef PB_SORT_H
#define PB_SORT_H

#include "pb_key.h"

typedef struct PbSort PbSort;

/* With so much memory (kB). */
extern PbSort *pb_sort_begin(Relation heap, Relation rel, PbIndex *index, int memory);
extern void pb_sort_add(PbSort *sort, ItemPointer tid, Datum *values, bool *isnull);
extern void pb_sort_perform(PbSort *sort);
extern bool pb_sort_next(PbSort *sort, PbKey *key, const ItemPointerData **tids, int *n);
extern void pb_sort_end(PbSort *sort);

#endif							/* PB_SORT_H */
