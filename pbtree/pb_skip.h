/*-------------------------------------------------------------------------
 * pb_skip.h
 *	  Skipping of rows that cannot satisfy the conditions.
 *-------------------------------------------------------------------------
 */
#ifndef PB_SKIP_H
#define PB_SKIP_H

#include "pb_quals.h"

typedef enum PbSkipTo
{
	PB_SKIP_NOT,				/* a row with this key may satisfy them */
	PB_SKIP_POS,				/* no row before the position does */
	PB_SKIP_NEXT_COLUMN,		/* no row before the position does, and the
								 * key ends before the deciding column */
	PB_SKIP_END					/* no row in the current range does */
} PbSkipTo;

/* Prepare skipping.  To be called after pb_quals_set; no page is locked. */
extern void pb_skip_set(PbQuals *q);

/*
 * Find the next row that may satisfy the conditions, from the key on.  *pos is
 * valid until the next call.
 */
extern PbSkipTo pb_skip_find(PbQuals *q, const PbKey *key, ScanDirection dir,
							 PbPos **pos);

#endif							/* PB_SKIP_H */
