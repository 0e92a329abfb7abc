/*-------------------------------------------------------------------------
 * pb_change.c
 *	  Atomic changes of several pages: apply and log.
 *
 * A change is built (pb_change_block, pb_op_*), perhaps tried on copies of the
 * pages (pb_change_try), and applied.  No other change may begin in between.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "pb_change.h"
#include "pb_verify.h"

#define PB_CHANGE_SPACE		(4 * BLCKSZ)

StaticAssertDecl(PB_CHANGE_SPACE <= PG_UINT16_MAX,
				 "a record has room for a block's operations: none fails when pages are changed");

bool		pb_change_rmgr_is_there = false;

static uint8 change_space[PB_CHANGE_SPACE];
static PGAlignedBlock trial[PB_CHANGE_MAX_BLOCKS];
static bool tried;

/* A change that is logged must be possible to redo. */
void
pb_change_require_rmgr(Relation rel)
{
	if (RelationNeedsWAL(rel) && !pb_change_rmgr_is_there)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pbtree indexes of logged tables need pbtree in shared_preload_libraries"),
				 errhint("Add pbtree to shared_preload_libraries in postgresql.conf and restart the server.")));
}

void
pb_change_begin(PbChange *c, Relation rel, uint8 info)
{
	Assert(CritSectionCount == 0);	/* this is a change of its own, I8 */
	Assert((info & XLR_INFO_MASK) == 0 && info != PB_XLOG_REUSE);
	pb_change_require_rmgr(rel);
	c->rel = rel;
	c->info = info;
	c->simple = false;
	c->has_conflict = false;
	page_change_begin(&c->pages, change_space, PB_CHANGE_SPACE);
	tried = false;
}

/* Readers of standbys must not need rows that were deleted before this xid. */
void
pb_change_conflict(PbChange *c, TransactionId xid, bool catalog)
{
	memset(&c->conflict, 0, sizeof(c->conflict));
	c->conflict.locator = CompatLocator(c->rel);
	c->conflict.xid = xid;
	c->conflict.catalog = catalog;
	c->has_conflict = true;
}

#ifdef USE_ASSERT_CHECKING
/* The length of the operations of all blocks, which are complete. */
static uint32
operations_len(const PbChange *c)
{
	uint32		len = 0;

	for (int i = 0; i < c->pages.nblocks; i++)
		len += c->pages.blocks[i].len;
	return len;
}

/*
 * True if the change may be made without a trial.  Only the first block's one
 * operation can fail, and then it has changed nothing: a page that was changed
 * before another one turned out to be damaged cannot be restored (I8).
 */
static bool
may_be_simple(const PbChange *c)
{
	if (c->pages.blocks[0].init ||
		!pb_op_is_simple(c->pages.blocks[0].ops, c->pages.blocks[0].len))
		return false;
	for (int i = 1; i < c->pages.nblocks; i++)
	{
		if (c->pages.blocks[i].init ||
			!pb_op_cannot_fail(c->pages.blocks[i].ops, c->pages.blocks[i].len))
			return false;
	}
	return true;
}
#endif

/*
 * The page is locked, so that its contents cannot change.  A lock for reading
 * suffices here: VACUUM may find that there is nothing to do.
 */
ByteWriter *
pb_change_block(PbChange *c, Buffer buffer, bool init)
{
	Assert(pb_index_is_locked(buffer, PB_READ));
	Assert(!tried);
	return page_change_block(&c->pages, buffer, init);
}

/* Carry out the change on copies of the pages.  Returns false if it fails. */
bool
pb_change_try(PbChange *c)
{
	page_change_end(&c->pages);
	for (int i = 0; i < c->pages.nblocks; i++)
	{
		PageChangeBlock *b = &c->pages.blocks[i];

		memcpy(trial[i].data, BufferGetPage(b->buffer), BLCKSZ);
		if (!pb_op_apply(trial[i].data, b->ops, b->len))
			return false;
	}
	tried = true;
#ifdef USE_ASSERT_CHECKING
	c->tried_len = operations_len(c);
#endif
	return true;
}

#ifdef USE_ASSERT_CHECKING
/*
 * Returns whether to check all keys of the change's pages.  All changes of
 * several pages are checked: these are few, and move links and fences.
 */
static bool
looks_at_keys(const PbChange *c)
{
	static uint64 changes;

	return page_change_is_checked(&changes, 500) || c->pages.nblocks > 1;
}

/*
 * True if the block's page belongs to the tree.  made: blocks that the change
 * makes exist already.
 */
static bool
is_of_tree(const PbChange *c, int i, bool made)
{
	return (made || !c->pages.blocks[i].init) &&
		!(PbPageGetSpecial(BufferGetPage(c->pages.blocks[i].buffer))->flags &
		  (PB_PAGE_META | PB_PAGE_DELETED));
}

/*
 * Check the pages of the change, each by itself and with the others.  Returns
 * a description of the fault, or NULL.
 */
static const char *
pages_problem(const PbChange *c, bool made)
{
	const char *problem = NULL;
	int			n = c->pages.nblocks;

	for (int i = 0; problem == NULL && i < n; i++)
	{
		Page		page = BufferGetPage(c->pages.blocks[i].buffer);

		if (made || !c->pages.blocks[i].init)
			problem = pb_page_problem(page);
		if (problem == NULL && is_of_tree(c, i, made))
			problem = pb_verify_page(c->rel, c->index, page);
	}
	for (int i = 0; problem == NULL && i < n * n; i++)
	{
		Buffer		a = c->pages.blocks[i / n].buffer;
		Buffer		b = c->pages.blocks[i % n].buffer;

		if (a != b && is_of_tree(c, i / n, made) && is_of_tree(c, i % n, made))
			problem = pb_verify_pair(c->index,
									 BufferGetPage(a), BufferGetBlockNumber(a),
									 BufferGetPage(b), BufferGetBlockNumber(b));
	}
	return problem;
}

/*
 * Check before the change, whose effect on damaged pages is undefined.  The
 * cached description of the index must not be read again, because the metapage
 * may be among the locked pages.
 */
static void
look_before(PbChange *c)
{
	/* I3 */
	for (int i = 0; i < c->pages.nblocks; i++)
		Assert(pb_index_is_locked(c->pages.blocks[i].buffer, PB_WRITE));
	c->index = c->rel->rd_amcache != NULL && looks_at_keys(c) ?
		pb_index_get(c->rel) : NULL;
	if (c->index != NULL && pages_problem(c, false) != NULL)
	{
		pfree(c->index);
		c->index = NULL;
	}
}

/* I1, I2, I4: pages that were in order still are. */
static void
look_after(PbChange *c)
{
	Buffer		first = c->pages.blocks[0].buffer;
	const char *problem;

	if (c->index == NULL)
		return;
	problem = pages_problem(c, true);
	if (problem != NULL)
		ereport(LOG,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg_internal("change 0x%02X of index \"%s\" leaves a damaged page, block %u or one of %d others",
								 c->info, RelationGetRelationName(c->rel),
								 BufferGetBlockNumber(first),
								 c->pages.nblocks - 1),
				 errdetail_internal("%s", problem)));
	Assert(problem == NULL);
	pfree(c->index);
}
#endif

static XLogRecPtr
log_change(PbChange *c)
{
	XLogBeginInsert();
	if (c->has_conflict)
		CompatXLogRegisterData(&c->conflict, sizeof(c->conflict));
	for (int i = 0; i < c->pages.nblocks; i++)
		page_change_register(&c->pages, i, 0);
	return XLogInsert(PB_RMGR_ID, c->info);
}

/*
 * I8: one critical section, one record, one function that changes pages.  A
 * simple change's first operation leaves the page unchanged if it fails; the
 * others do not fail.
 */
void
pb_change_apply(PbChange *c)
{
	page_change_end(&c->pages);
	Assert(c->pages.nblocks > 0);
	Assert(!c->simple || may_be_simple(c)); /* I8 */
	Assert(!tried || c->tried_len == operations_len(c));
#ifdef USE_ASSERT_CHECKING
	look_before(c);
#endif
	if (!c->simple && !tried && !pb_change_try(c))
		pb_index_corrupt(c->rel,
						 BufferGetBlockNumber(c->pages.blocks[0].buffer), -1,
						 "The page does not match the change.");
	if (c->pages.nblocks > XLR_NORMAL_MAX_BLOCK_ID + 1)
		XLogEnsureRecordSpace(c->pages.nblocks - 1, c->pages.nblocks + 1);
	START_CRIT_SECTION();
	for (int i = 0; i < c->pages.nblocks; i++)
	{
		PageChangeBlock *b = &c->pages.blocks[i];
		Page		page = BufferGetPage(b->buffer);

		if (!c->simple)
			memcpy(page, trial[i].data, BLCKSZ);
		else if (!pb_op_apply(page, b->ops, b->len))
		{
			if (i > 0)
				elog(PANIC, "could not change block %u of index \"%s\"",
					 BufferGetBlockNumber(b->buffer),
					 RelationGetRelationName(c->rel));
			END_CRIT_SECTION();
			pb_index_corrupt(c->rel, BufferGetBlockNumber(b->buffer), -1,
							 "An item or row cannot be added, or exists already.");
		}
		MarkBufferDirty(b->buffer);
	}
	if (RelationNeedsWAL(c->rel))
	{
		XLogRecPtr	lsn = log_change(c);

		for (int i = 0; i < c->pages.nblocks; i++)
			PageSetLSN(BufferGetPage(c->pages.blocks[i].buffer), lsn);
	}
	END_CRIT_SECTION();
#ifdef USE_ASSERT_CHECKING
	look_after(c);
#endif
}

/* Log that a deleted page is about to be reused. */
void
pb_change_log_reuse(Relation rel, FullTransactionId xid, bool catalog)
{
	PbConflict	conflict;

	memset(&conflict, 0, sizeof(conflict));
	conflict.locator = CompatLocator(rel);
	conflict.xid = U64FromFullTransactionId(xid);
	conflict.catalog = catalog;
	XLogBeginInsert();
	CompatXLogRegisterData(&conflict, sizeof(conflict));
	XLogInsert(PB_RMGR_ID, PB_XLOG_REUSE);
}
