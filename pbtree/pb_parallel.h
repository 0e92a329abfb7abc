/*-------------------------------------------------------------------------
 * pb_parallel.h
 *	  The position of a scan that several processes share.
 *-------------------------------------------------------------------------
 */
#ifndef PB_PARALLEL_H
#define PB_PARALLEL_H

#include "compat_index.h"

/* The place from which the next page is found. */
typedef struct PbPlace
{
	bool		start;			/* no page has been read yet */
	bool		more;			/* the range continues on the page's sibling */
	BlockNumber block;			/* the page that was read last */
	BlockNumber next;			/* its right sibling */
	int			elements[INDEX_MAX_KEYS];	/* of arrays: the range */
} PbPlace;

/* The size of the shared memory. */
extern Size pb_parallel_size(COMPAT_ESTIMATE_PARALLEL_PARAMETERS);

/* Begin a scan, in shared memory that no worker knows yet. */
extern void pb_parallel_init(void *target);

/* Restart the scan.  No other process may be in it. */
extern void pb_parallel_restart(IndexScanDesc scan);

/*
 * Wait for the place from which to continue.  If the result is true, no other
 * process continues until the scan is released.  Returns false if the scan is
 * over.
 */
extern bool pb_parallel_seize(IndexScanDesc scan, PbPlace *place);

/*
 * Let the next process continue from this place.  The scan must have been
 * seized.
 */
extern void pb_parallel_release(IndexScanDesc scan, const PbPlace *place);

/* End the scan, for all processes.  The scan must have been seized. */
extern void pb_parallel_end(IndexScanDesc scan);

#endif							/* PB_PARALLEL_H */
