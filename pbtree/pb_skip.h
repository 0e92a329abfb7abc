/*-------------------------------------------------------------------------
 * pb_skip.h
 *	  Rows of a range that no row can satisfy the conditions among: passed.
 *-------------------------------------------------------------------------
 */
#ifndef PB_SKIP_H
#define PB_SKIP_H

#include "pb_quals.h"

typedef enum PbSkipTo
{
	PB_SKIP_NOT,				/* a row with this key may satisfy them */
	PB_SKIP_POS,				/* none before the position does */
	PB_SKIP_NEXT_COLUMN,		/* the same, and the key ends in front of the
								 * column that says so */
	PB_SKIP_END					/* none in the current range does */
} PbSkipTo;

/* After pb_quals_set; no page is locked. */
extern void pb_skip_set(PbQuals *q);

/*
 * Where the next row is that may satisfy the conditions, from the key on.
 * *pos holds until the next call.
 */
extern PbSkipTo pb_skip_find(PbQuals *q, const PbKey *key, ScanDirection dir, PbPos **pos);

#endif							/* PB_SKIP_H */
