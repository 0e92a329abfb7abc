/*-------------------------------------------------------------------------
 * pagedelta_pg.h
 *	  Generic WAL records, made with pagedelta.
 *
 * The functions do what those of access/generic_xlog.h do, and write the same
 * records (resource manager "Generic").  The server's own code replays them,
 * so crash recovery and standbys do not need this library.  The names and
 * types differ, so that a state of one kind is not taken for the other.
 * pagedelta_generic_xlog.h gives these functions the server's names.
 *
 * The differences: the memory for a record is kept for the next one; of a page
 * whose changes are logged as a delta, only what has changed is copied into
 * the buffer; an image whose lower and upper are impossible is an error in
 * pagedelta_xlog_finish, before anything is changed.  States that an error has
 * left behind are used again after the end of the transaction or
 * subtransaction.
 *-------------------------------------------------------------------------
 */
#ifndef PAGEDELTA_PG_H
#define PAGEDELTA_PG_H

#include "access/generic_xlog.h"

#include "pagedelta.h"

typedef struct PageDeltaXLogState PageDeltaXLogState;

extern PageDeltaXLogState *pagedelta_xlog_start(Relation relation);

/*
 * Register a buffer.  Returns the page's image, which the caller changes;
 * flags are 0 or GENERIC_XLOG_FULL_IMAGE.
 */
extern Page pagedelta_xlog_register(PageDeltaXLogState *state, Buffer buffer,
									int flags);
extern XLogRecPtr pagedelta_xlog_finish(PageDeltaXLogState *state);
extern void pagedelta_xlog_abort(PageDeltaXLogState *state);

/* Counters of this process. */
typedef struct PageDeltaXLogStats
{
	uint64		records;
	uint64		pages;			/* pages whose change was logged */
	uint64		images;			/* of these, pages logged as a whole */
	uint64		copied;			/* bytes copied to images, to deltas, to
								 * buffers */
	uint64		zeros;			/* bytes of images that were zeroed instead */
	uint64		delta;			/* bytes in deltas */
	uint64		states;			/* states allocated */
} PageDeltaXLogStats;

extern const PageDeltaXLogStats *pagedelta_xlog_stats(void);

#endif							/* PAGEDELTA_PG_H */
