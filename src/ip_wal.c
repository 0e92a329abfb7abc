/*-------------------------------------------------------------------------
 * ip_wal.c
 *	  Atomic changes of several pages: apply, log, redo, describe.
 *
 * A record's block data are the page operations of ip_page.c.  Its main data, if
 * any, are a byte of flags (IP_MAIN_*) and what they say: a conflicting
 * transaction id, a bit for each block that was all-visible before, and what
 * logical decoding needs, which redo does not look at.
 *-------------------------------------------------------------------------
 */
#include "ip_compat.h"

#include "access/bufmask.h"
#include "access/visibilitymap.h"

#include "ip_decode.h"
#include "ip_wal.h"

/* Operations of one change.  A page's worth of rows, twice, and some more. */
#define IP_CHANGE_SPACE		(4 * BLCKSZ)

/* Main data: what follows the flags, in this order. */
#define IP_MAIN_CONFLICT	0x01	/* xid with its epoch (8) */
#define IP_MAIN_VISIBLE		0x02	/* bits (2) */
#define IP_MAIN_LOGICAL		0x04	/* logical section: the rest */

/* Flags and all that has a fixed size. */
#define IP_MAIN_MAX_HEAD	(1 + sizeof(IpXid) + sizeof(uint16))

static uint8 change_space[IP_CHANGE_SPACE];

void
ip_change_begin(IpChange *c, Relation rel, uint8 info, TransactionId xid)
{
	c->rel = rel;
	c->info = info;
	c->xid = xid;
	c->conflict = IP_XID_NONE;
	c->replay = false;
	c->logical = NULL;
	c->logical_rows = false;
	c->rows = NULL;
	c->nblocks = 0;
	c->w.p = change_space;
	c->w.end = change_space + IP_CHANGE_SPACE;
	c->w.bad = false;
}

static void
end_block(IpChange *c)
{
	if (c->nblocks > 0)
	{
		IpChangeBlock *b = &c->blocks[c->nblocks - 1];

		b->len = c->w.p - b->ops;
	}
	if (c->w.bad)
		elog(ERROR, "operations of an inplace table's change are too long");
}

IpWriter *
ip_change_block(IpChange *c, Buffer buffer, bool init)
{
	IpChangeBlock *b;

	Assert(c->nblocks < IP_CHANGE_MAX_BLOCKS);
	end_block(c);
	b = &c->blocks[c->nblocks++];
	b->buffer = buffer;
	b->init = init;
	b->vm = InvalidBuffer;
	b->ops = c->w.p;
	if (c->replay)
		ip_op_xid(&c->w, c->xid);
	return &c->w;
}

/* Pin the visibility map's pages for blocks that are all-visible; a bit for each. */
static uint16
find_visible(IpChange *c)
{
	uint16		visible = 0;

	StaticAssertStmt(IP_CHANGE_MAX_BLOCKS <= 16, "a bit for each block");
	for (int i = 0; i < c->nblocks; i++)
	{
		IpChangeBlock *b = &c->blocks[i];

		if (!b->init && PageIsAllVisible(BufferGetPage(b->buffer)))
		{
			visibilitymap_pin(c->rel, BufferGetBlockNumber(b->buffer), &b->vm);
			visible |= 1 << i;
		}
	}
	return visible;
}

static void
clear_visible(IpChange *c)
{
	for (int i = 0; i < c->nblocks; i++)
	{
		IpChangeBlock *b = &c->blocks[i];

		if (BufferIsInvalid(b->vm))
			continue;
		PageClearAllVisible(BufferGetPage(b->buffer));
		visibilitymap_clear(c->rel, BufferGetBlockNumber(b->buffer), b->vm,
							VISIBILITYMAP_VALID_BITS);
	}
}

static void
release_visible(IpChange *c)
{
	for (int i = 0; i < c->nblocks; i++)
	{
		if (BufferIsValid(c->blocks[i].vm))
			ReleaseBuffer(c->blocks[i].vm);
	}
}

/* Register the main data; head, of IP_MAIN_MAX_HEAD bytes, must last until the insertion. */
static void
register_main_data(IpChange *c, uint16 visible, uint8 *head)
{
	IpWriter	w = {head + 1, head + IP_MAIN_MAX_HEAD, false};
	uint8		flags = 0;

	if (c->conflict >= FirstNormalTransactionId)
	{
		flags |= IP_MAIN_CONFLICT;
		ip_put_u64(&w, c->conflict);
	}
	if (visible != 0)
	{
		flags |= IP_MAIN_VISIBLE;
		ip_put_u16(&w, visible);
	}
	if (c->logical != NULL)
		flags |= IP_MAIN_LOGICAL;
	if (flags == 0)
		return;
	head[0] = flags;
	CompatXLogRegisterData(head, w.p - head);
	if (c->logical != NULL)
	{
		CompatXLogRegisterData(c->logical->data, c->logical->len);
		XLogSetRecordFlags(XLOG_INCLUDE_ORIGIN);
	}
}

static XLogRecPtr
log_change(IpChange *c, uint16 visible)
{
	uint8		head[IP_MAIN_MAX_HEAD];

	XLogBeginInsert();
	register_main_data(c, visible, head);
	for (int i = 0; i < c->nblocks; i++)
	{
		IpChangeBlock *b = &c->blocks[i];

		uint8		flags = REGBUF_STANDARD | (b->init ? REGBUF_WILL_INIT : 0);

		if (c->logical_rows && i == IP_REF_DATA)
			flags |= REGBUF_KEEP_DATA;
		XLogRegisterBuffer(i, b->buffer, flags);
		CompatXLogRegisterBufData(i, b->ops, b->len);
	}
	return XLogInsert(IP_RMGR_ID, c->info);
}

void
ip_change_apply(IpChange *c)
{
	IpOpContext ctx;
	bool		wal = RelationNeedsWAL(c->rel);
	uint16		visible;

	end_block(c);
	Assert(c->rows == NULL || c->nblocks == 1);
	Assert(c->replay || c->xid == InvalidTransactionId || c->xid == GetCurrentTransactionIdIfAny());
	if (wal && c->nblocks > XLR_NORMAL_MAX_BLOCK_ID + 1)
		XLogEnsureRecordSpace(c->nblocks - 1, 2 * c->nblocks + 3);
	visible = find_visible(c);
	ctx.xid = c->xid;
	ctx.rows = c->rows;
	ctx.data_block = BufferGetBlockNumber(c->blocks[IP_REF_DATA].buffer);
	ctx.undo_block = c->nblocks > IP_REF_UNDO ?
		BufferGetBlockNumber(c->blocks[IP_REF_UNDO].buffer) : InvalidBlockNumber;

	START_CRIT_SECTION();
	for (int i = 0; i < c->nblocks; i++)
	{
		IpChangeBlock *b = &c->blocks[i];
		const char *problem;

		MarkBufferDirty(b->buffer);
		problem = ip_page_apply(BufferGetPage(b->buffer), b->ops, b->len, &ctx);
		if (unlikely(problem != NULL))
			elog(PANIC, "could not change block %u of relation \"%s\": %s",
				 BufferGetBlockNumber(b->buffer), RelationGetRelationName(c->rel), problem);
	}
	if (visible != 0)
		clear_visible(c);
	if (wal)
	{
		XLogRecPtr	lsn = log_change(c, visible);

		for (int i = 0; i < c->nblocks; i++)
			PageSetLSN(BufferGetPage(c->blocks[i].buffer), lsn);
	}
	END_CRIT_SECTION();
	if (visible != 0)
		release_visible(c);
}

/* ---- redo -------------------------------------------------------------------- */

void
ip_wal_main_data(XLogReaderState *record, IpMainData *data)
{
	uint32		len = XLogRecGetDataLen(record);
	IpReader	r;
	uint8		flags;

	memset(data, 0, sizeof(*data));
	if (len == 0)
		return;
	r.p = (uint8 *) XLogRecGetData(record);
	r.end = r.p + len;
	r.bad = false;
	flags = ip_get_u8(&r);
	if (flags & IP_MAIN_CONFLICT)
		data->conflict = ip_get_u64(&r);
	if (flags & IP_MAIN_VISIBLE)
		data->visible = ip_get_u16(&r);
	if (flags & IP_MAIN_LOGICAL)
	{
		data->logical = r.p;
		data->logical_len = r.end - r.p;
	}
	if (r.bad)
		elog(ERROR, "invalid main data in inplace WAL record at %X/%X",
			 LSN_FORMAT_ARGS(record->ReadRecPtr));
}

static void
redo_conflict(XLogReaderState *record, IpXid conflict)
{
	RelFileLocator locator;

	if (!InHotStandby || conflict == IP_XID_NONE)
		return;
	XLogRecGetBlockTag(record, 0, &locator, NULL, NULL);
	CompatConflict(FullTransactionIdFromU64(conflict), false, locator);
}

/* The visibility map's own page may be older than the data page. */
static void
redo_clear_visible(XLogReaderState *record, int id)
{
	RelFileLocator locator;
	BlockNumber block;
	Relation	rel;
	Buffer		vm = InvalidBuffer;

	XLogRecGetBlockTag(record, id, &locator, NULL, &block);
	rel = CreateFakeRelcacheEntry(locator);
	visibilitymap_pin(rel, block, &vm);
	visibilitymap_clear(rel, block, vm, VISIBILITYMAP_VALID_BITS);
	ReleaseBuffer(vm);
	FreeFakeRelcacheEntry(rel);
}

static Buffer
redo_block(XLogReaderState *record, int id, const IpOpContext *ctx, bool visible)
{
	bool		init = (XLogRecGetBlock(record, id)->flags & BKPBLOCK_WILL_INIT) != 0;
	Buffer		buffer;
	const char *problem;
	char	   *ops;
	Size		len;

	if (visible)
		redo_clear_visible(record, id);
	if (XLogReadBufferForRedoExtended(record, id, init ? RBM_ZERO_AND_LOCK : RBM_NORMAL,
									  false, &buffer) != BLK_NEEDS_REDO)
		return buffer;
	ops = XLogRecGetBlockData(record, id, &len);
	problem = ip_page_apply(BufferGetPage(buffer), (uint8 *) ops, len, ctx);
	if (problem)
		elog(PANIC, "could not redo change of block %u: %s",
			 BufferGetBlockNumber(buffer), problem);
	if (visible)
		PageClearAllVisible(BufferGetPage(buffer));
	PageSetLSN(BufferGetPage(buffer), record->EndRecPtr);
	MarkBufferDirty(buffer);
	return buffer;
}

/*
 * All pages stay locked until all are changed: a reader on a standby who sees
 * a row's undo pointer must find the undo record.
 */
static void
ip_redo(XLogReaderState *record)
{
	Buffer		buffers[XLR_MAX_BLOCK_ID + 1];
	int			max = XLogRecMaxBlockId(record);
	IpMainData	data;
	IpOpContext ctx = {XLogRecGetXid(record), InvalidBlockNumber, InvalidBlockNumber, NULL};

	ip_wal_main_data(record, &data);
	redo_conflict(record, data.conflict);
	if (XLogRecHasBlockRef(record, IP_REF_DATA))
		XLogRecGetBlockTag(record, IP_REF_DATA, NULL, NULL, &ctx.data_block);
	if (XLogRecHasBlockRef(record, IP_REF_UNDO))
		XLogRecGetBlockTag(record, IP_REF_UNDO, NULL, NULL, &ctx.undo_block);
	/*
	 * Data pages come before the undo page: the order in which readers lock
	 * them.  A ring's record has no data page.
	 */
	for (int id = 0; id <= max; id++)
	{
		if (id != IP_REF_UNDO)
			buffers[id] = redo_block(record, id, &ctx, data.visible & (1 << id));
	}
	if (max >= IP_REF_UNDO)
		buffers[IP_REF_UNDO] = redo_block(record, IP_REF_UNDO, &ctx,
											data.visible & (1 << IP_REF_UNDO));
	for (int id = 0; id <= max; id++)
	{
		if (BufferIsValid(buffers[id]))
			UnlockReleaseBuffer(buffers[id]);
	}
}

static void
ip_desc(StringInfo buf, XLogReaderState *record)
{
	int			max = XLogRecMaxBlockId(record);
	const char *sep = "";
	IpMainData	data;

	ip_wal_main_data(record, &data);
	if (data.logical)
	{
		appendStringInfo(buf, "logical: %u bytes", data.logical_len);
		sep = "; ";
	}
	for (int id = 0; id <= max; id++)
	{
		Size		len;
		char	   *ops = XLogRecGetBlockData(record, id, &len);

		if (ops == NULL || len == 0)
			continue;
		appendStringInfo(buf, "%sblk %d: ", sep, id);
		ip_page_desc(buf, (uint8 *) ops, len);
		sep = "; ";
	}
}

static const char *
ip_identify(uint8 info)
{
	static const char *const names[] = {
		"INSERT", "MULTI_INSERT", "UPDATE", "MOVE", "DELETE", "LOCK",
		"PRUNE", "RESTORE", "RING", "INIT", "SPECULATIVE", "VACUUM"
	};
	uint8		i = (info & ~XLR_INFO_MASK) >> 4;

	return i < lengthof(names) ? names[i] : NULL;
}

static void
ip_mask(char *pagedata, BlockNumber block)
{
	mask_page_lsn_and_checksum((Page) pagedata);
	mask_page_hint_bits((Page) pagedata);
	mask_unused_space((Page) pagedata);
}

static const RmgrData ip_rmgr = {
	.rm_name = "inplace",
	.rm_redo = ip_redo,
	.rm_desc = ip_desc,
	.rm_identify = ip_identify,
	.rm_mask = ip_mask,
	.rm_decode = ip_decode,
};

void
ip_wal_register(void)
{
	CompatRegisterCustomRmgr(IP_RMGR_ID, &ip_rmgr);
}
