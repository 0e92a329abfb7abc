/*-------------------------------------------------------------------------
 * pb_parallel.h
 *	  Where a scan is that several processes share.
 *-------------------------------------------------------------------------
 */
#ifndef PB_PARALLEL_H
#define PB_PARALLEL_H

#include "compat_index.h"

/* From where the next page is looked for. */
typedef struct PbPlace
{
	bool		start;			/* no page has been read yet */
	bool		more;			/* the range goes on, on the page's sibling */
	BlockNumber block;			/* the page that was read last */
	BlockNumber next;			/* its right sibling */
	int			elements[INDEX_MAX_KEYS];	/* of arrays: the range */
} PbPlace;

/* Bytes of shared memory. */
extern Size pb_parallel_size(COMPAT_ESTIMATE_PARALLEL_PARAMETERS);

/* Begin a scan, in shared memory that the leader alone knows yet. */
extern void pb_parallel_init(void *target);

/* Begin the scan anew.  No other process may be in it. */
extern void pb_parallel_restart(IndexScanDesc scan);

/*
 * Wait for the place from which to read on; true: no other process goes on
 * until it is released.  False: the scan is over.
 */
extern bool pb_parallel_seize(IndexScanDesc scan, PbPlace *place);

/* Let the next process go on from this place.  It must have been seized. */
extern void pb_parallel_release(IndexScanDesc scan, const PbPlace *place);

/* End the scan, for all processes.  It must have been seized. */
extern void pb_parallel_end(IndexScanDesc scan);

#endif							/* PB_PARALLEL_H */
