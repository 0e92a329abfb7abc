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
#include "pb_index.h"

#define PB_CHANGE_SPACE		(4 * BLCKSZ)

bool		pb_change_rmgr_is_there = false;

static uint8 change_space[PB_CHANGE_SPACE];
static PGAlignedBlock trial[PB_CHANGE_MAX_BLOCKS];
static bool tried;

/* A change that is logged must be one that can be redone. */
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
	Assert(CritSectionCount == 0);
	pb_change_require_rmgr(rel);
	c->rel = rel;
	c->info = info;
	c->simple = false;
	c->has_conflict = false;
	c->nblocks = 0;
	c->w.p = change_space;
	c->w.end = change_space + PB_CHANGE_SPACE;
	c->w.bad = false;
	tried = false;
}

/* Readers of standbys must be done with what was deleted before this xid. */
void
pb_change_conflict(PbChange *c, TransactionId xid, bool catalog)
{
	memset(&c->conflict, 0, sizeof(c->conflict));
	c->conflict.locator = CompatLocator(c->rel);
	c->conflict.xid = xid;
	c->conflict.catalog = catalog;
	c->has_conflict = true;
}

static void
end_block(PbChange *c)
{
	if (c->nblocks > 0)
	{
		PbChangeBlock *b = &c->blocks[c->nblocks - 1];

		b->len = c->w.p - b->ops;
	}
	if (c->w.bad)
		elog(ERROR, "operations of a pbtree index's change are too long");
}

ByteWriter *
pb_change_block(PbChange *c, Buffer buffer, bool init)
{
	PbChangeBlock *b;

	Assert(c->nblocks < PB_CHANGE_MAX_BLOCKS);
	end_block(c);
	b = &c->blocks[c->nblocks++];
	b->buffer = buffer;
	b->init = init;
	b->ops = c->w.p;
	return &c->w;
}

/* Carry the change out on copies of the pages; can it be done? */
bool
pb_change_try(PbChange *c)
{
	end_block(c);
	for (int i = 0; i < c->nblocks; i++)
	{
		PbChangeBlock *b = &c->blocks[i];

		memcpy(trial[i].data, BufferGetPage(b->buffer), BLCKSZ);
		if (!pb_op_apply(trial[i].data, b->ops, b->len))
			return false;
	}
	tried = true;
	return true;
}

static XLogRecPtr
log_change(PbChange *c)
{
	XLogBeginInsert();
	if (c->has_conflict)
		CompatXLogRegisterData(&c->conflict, sizeof(c->conflict));
	for (int i = 0; i < c->nblocks; i++)
	{
		PbChangeBlock *b = &c->blocks[i];

		XLogRegisterBuffer(i, b->buffer, (b->init ? REGBUF_WILL_INIT : 0) | REGBUF_STANDARD);
		CompatXLogRegisterBufData(i, b->ops, b->len);
	}
	return XLogInsert(PB_RMGR_ID, c->info);
}

/*
 * I8: one critical section, one record, one function that changes pages.  A
 * simple change's first operation, if it fails, leaves the page as it was; the
 * others do not fail.
 */
void
pb_change_apply(PbChange *c)
{
	end_block(c);
	if (!c->simple && !tried && !pb_change_try(c))
		pb_index_corrupt(c->rel, BufferGetBlockNumber(c->blocks[0].buffer), -1,
						 "it is not what the change was made for");
	if (c->nblocks > XLR_NORMAL_MAX_BLOCK_ID + 1)
		XLogEnsureRecordSpace(c->nblocks - 1, c->nblocks + 1);
	START_CRIT_SECTION();
	for (int i = 0; i < c->nblocks; i++)
	{
		PbChangeBlock *b = &c->blocks[i];
		Page		page = BufferGetPage(b->buffer);

		if (!c->simple)
			memcpy(page, trial[i].data, BLCKSZ);
		else if (!pb_op_apply(page, b->ops, b->len))
		{
			if (i > 0)
				elog(PANIC, "could not change block %u of index \"%s\"",
					 BufferGetBlockNumber(b->buffer), RelationGetRelationName(c->rel));
			END_CRIT_SECTION();
			pb_index_corrupt(c->rel, BufferGetBlockNumber(b->buffer), -1, "an item or row cannot be added, or is there already");
		}
		MarkBufferDirty(b->buffer);
	}
	if (RelationNeedsWAL(c->rel))
	{
		XLogRecPtr	lsn = log_change(c);

		for (int i = 0; i < c->nblocks; i++)
			PageSetLSN(BufferGetPage(c->blocks[i].buffer), lsn);
	}
	END_CRIT_SECTION();
}

/* A deleted page is about to be used again. */
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
