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

/* The resource manager; https://wiki.postgresql.org/wiki/CustomWALResourceManagers */
#define PB_RMGR_ID				165

/* Kinds of records; they say what a change is for, redo does the same for all but one. */
#define PB_XLOG_INSERT			0x00
#define PB_XLOG_SPLIT			0x10
#define PB_XLOG_ROOT			0x20
#define PB_XLOG_VACUUM			0x30
#define PB_XLOG_DELETE			0x40	/* of dead items, outside of VACUUM */
#define PB_XLOG_UNLINK			0x50	/* of a page */
#define PB_XLOG_REUSE			0x60	/* of a page; no blocks, PbReuse */
#define PB_XLOG_META			0x70
#define PB_XLOG_REBUILD			0x80

/* Main data: which rows' deletion standbys must not need any more. */
typedef struct PbConflict
{
	RelFileLocator locator;
	uint64		xid;			/* full for PB_XLOG_REUSE, else without epoch */
	bool		catalog;
} PbConflict;

/* Levels of which pages are deleted at once; each has a page and its siblings, the last one a parent. */
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
	bool		simple;			/* known to fit: no trial is needed */
	bool		has_conflict;
	PbConflict	conflict;
	int			nblocks;
	PbChangeBlock blocks[PB_CHANGE_MAX_BLOCKS];
	ByteWriter	w;
#ifdef USE_ASSERT_CHECKING
	PbIndex    *index;			/* pages are looked at; or NULL */
	uint32		tried_len;		/* of operations */
#endif
} PbChange;

/* Records can be redone: the library was preloaded. */
extern bool pb_change_rmgr_is_there;

/*
 * Error: the index is logged, and the library was not preloaded, so that
 * nobody could redo a change.
 */
extern void pb_change_require_rmgr(Relation rel);

/*
 * Begin a change, of a kind PB_XLOG_*.  No other one may begin, and no user
 * code run, until pb_change_apply.
 */
extern void pb_change_begin(PbChange *c, Relation rel, uint8 info);

/* Tell standbys to cancel snapshots that may need what the change removes. */
extern void pb_change_conflict(PbChange *c, TransactionId xid, bool catalog);

/*
 * Add a page; operations for it go to the result.  Lock: the page, held until
 * pb_change_apply has returned.  init: it is made by PB_OP_IMAGE.
 */
extern ByteWriter *pb_change_block(PbChange *c, Buffer buffer, bool init);

/*
 * Carry the change out on copies; false if a page has no room, or is not what
 * the change was made for.  Locks: write.  No page changes.
 */
extern bool pb_change_try(PbChange *c);

/*
 * Change and log all pages, in one critical section.  Locks: write, kept.
 * Error: the pages are damaged, and as they were.
 */
extern void pb_change_apply(PbChange *c);

/*
 * Log that a page that was deleted at xid is used again, before it is.
 * Standbys cancel snapshots that may lead there.
 */
extern void pb_change_log_reuse(Relation rel, FullTransactionId xid, bool catalog);

#endif							/* PB_CHANGE_H */
