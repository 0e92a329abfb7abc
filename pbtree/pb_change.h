/*-------------------------------------------------------------------------
 * pb_change.h
 *	  Atomic changes of several pages: apply and log.
 *-------------------------------------------------------------------------
 */
#ifndef PB_CHANGE_H
#define PB_CHANGE_H

#include "compat.h"

#include "access/transam.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "pb_index.h"
#include "pb_op.h"

/*
 * The resource manager;
 * https://wiki.postgresql.org/wiki/CustomWALResourceManagers
 */
#define PB_RMGR_ID				165

/*
 * Kinds of records.  They tell the purpose of a change; redo treats all but
 * one in the same way.
 */
#define PB_XLOG_INSERT			0x00
#define PB_XLOG_SPLIT			0x10
#define PB_XLOG_ROOT			0x20
#define PB_XLOG_VACUUM			0x30
#define PB_XLOG_DELETE			0x40	/* of dead items, outside of VACUUM */
#define PB_XLOG_UNLINK			0x50	/* of a page */
#define PB_XLOG_REUSE			0x60	/* of a page; no blocks, PbReuse */
#define PB_XLOG_META			0x70
#define PB_XLOG_REBUILD			0x80

/* Main data: standbys must not need rows deleted before this xid. */
typedef struct PbConflict
{
	RelFileLocator locator;
	uint64		xid;			/* full for PB_XLOG_REUSE, else without epoch */
	bool		catalog;
} PbConflict;

/*
 * Number of levels of which pages are deleted in one change.  Each has a page
 * and its siblings, the last one a parent.
 */
#define PB_UNLINK_LEVELS		10
#define PB_CHANGE_MAX_BLOCKS	(3 * PB_UNLINK_LEVELS + 1)

typedef struct PbChangeBlock
{
	Buffer		buffer;
	bool		init;
	uint8	   *ops;
	uint32		len;
} PbChangeBlock;

typedef struct PbChange
{
	Relation	rel;
	uint8		info;
	bool		simple;			/* the change is known to fit, so no trial is
								 * needed */
	bool		has_conflict;
	PbConflict	conflict;
	int			nblocks;
	PbChangeBlock blocks[PB_CHANGE_MAX_BLOCKS];
	ByteWriter	w;
#ifdef USE_ASSERT_CHECKING
	PbIndex    *index;			/* for the check of pages; or NULL */
	uint32		tried_len;		/* length of the operations that were tried */
#endif
} PbChange;

/* True if records can be redone because the library was preloaded. */
extern bool pb_change_rmgr_is_there;

/*
 * Check that changes can be redone.  Error: the index is logged, and the
 * library was not preloaded.
 */
extern void pb_change_require_rmgr(Relation rel);

/*
 * Begin a change, of a kind PB_XLOG_*.  No other change may begin, and no user
 * code may run, until pb_change_apply.
 */
extern void pb_change_begin(PbChange *c, Relation rel, uint8 info);

/*
 * Tell standbys to cancel snapshots that may need rows that the change
 * removes.
 */
extern void pb_change_conflict(PbChange *c, TransactionId xid, bool catalog);

/*
 * Add a page.  The caller appends operations for it to the result.  Lock: the
 * page, held until pb_change_apply has returned.  init: the page is made by
 * PB_OP_IMAGE.
 */
extern ByteWriter *pb_change_block(PbChange *c, Buffer buffer, bool init);

/*
 * Carry out the change on copies.  Returns false if a page has no room, or
 * does not match the change.  Locks: write.  No page changes.
 */
extern bool pb_change_try(PbChange *c);

/*
 * Change and log all pages, in one critical section.  Locks: write, kept.
 * Error: the pages are damaged; they are unchanged.
 */
extern void pb_change_apply(PbChange *c);

/*
 * Log that a page that was deleted at xid is reused; to be called before the
 * reuse.  Standbys cancel snapshots that may lead to it.
 */
extern void pb_change_log_reuse(Relation rel, FullTransactionId xid,
								bool catalog);

#endif							/* PB_CHANGE_H */
