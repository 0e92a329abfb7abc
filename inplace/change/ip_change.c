/*-------------------------------------------------------------------------
 * ip_change.c
 *	  Atomic changes of several pages: apply and log.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/visibilitymap.h"

#include "ip_change.h"
#include "ip_map.h"
#include "ip_page_apply.h"
#include "ip_xid.h"

/*
 * Space for the operations of one change: twice the rows of a page, and some
 * more.
 */
#define IP_CHANGE_SPACE		(4 * BLCKSZ)

static uint8 change_space[IP_CHANGE_SPACE];

void
ip_change_begin(IpChange *c, Relation rel, uint8 info, TransactionId xid)
{
	Assert(CritSectionCount == 0);
	Assert((info & XLR_INFO_MASK) == 0);
	c->rel = rel;
	c->info = info;
	c->xid = xid;
	c->conflict = c->named = IP_XID_NONE;
	c->replay = false;
	c->logical = NULL;
	c->logical_rows = false;
	c->rows = NULL;
	c->home = NULL;
	c->homelen = 0;
	c->restored = NULL;
	c->nrestored = 0;
	c->made.start = NULL;
	c->dead_until = 0;
	c->map = InvalidBuffer;
	page_change_begin(&c->pages, change_space, IP_CHANGE_SPACE);
}

ByteWriter *
ip_change_block(IpChange *c, Buffer buffer, bool init)
{
	ByteWriter *w;

	Assert(c->pages.nblocks < IP_CHANGE_MAX_BLOCKS);
	Assert(ip_page_is_locked(BufferGetPage(buffer), true)); /* I10 */
	w = page_change_block(&c->pages, buffer, init);
	if (c->replay)
		ip_op_xid(w, c->xid);
	return w;
}

void
ip_change_lost(IpChange *c)
{
	c->named = ip_xid_next() - 1;
	ip_op_lost(&c->pages.w, c->named + 1);
}

void
ip_change_visible(IpChange *c, Buffer map)
{
	Assert(c->pages.nblocks == 1 && BufferIsValid(map));
	ip_op_simple(&c->pages.w, IP_OP_VISIBLE);
	c->map = map;
}

bool
ip_change_is_hint(const uint8 *ops, uint32 len)
{
	return len == 1 && ops[0] == IP_OP_VISIBLE && !XLogHintBitIsNeeded();
}

/*
 * Pin the visibility map's pages for blocks that are all-visible.  Returns a
 * bit for each of these blocks.
 */
static uint16
find_visible(IpChange *c)
{
	uint16		visible = 0;

	StaticAssertStmt(IP_CHANGE_MAX_BLOCKS <= 16, "a bit for each block");
	for (int i = 0; i < c->pages.nblocks; i++)
	{
		PageChangeBlock *b = &c->pages.blocks[i];

		c->vm[i] = InvalidBuffer;
		if (!b->init && c->info != IP_XLOG_LOCK &&
			PageIsAllVisible(BufferGetPage(b->buffer)))
		{
			visibilitymap_pin(c->rel, BufferGetBlockNumber(b->buffer),
							  &c->vm[i]);
			visible |= 1 << i;
		}
	}
	return visible;
}

static void
clear_visible(IpChange *c)
{
	for (int i = 0; i < c->pages.nblocks; i++)
	{
		PageChangeBlock *b = &c->pages.blocks[i];

		if (BufferIsInvalid(c->vm[i]))
			continue;
		PageClearAllVisible(BufferGetPage(b->buffer));
		CompatMapClear(c->rel, BufferGetBlockNumber(b->buffer), c->vm[i]);
	}
}

static void
release_visible(IpChange *c)
{
	for (int i = 0; i < c->pages.nblocks; i++)
	{
		if (BufferIsValid(c->vm[i]))
			ReleaseBuffer(c->vm[i]);
	}
}

/*
 * Register the main data; head, of IP_MAIN_MAX_HEAD bytes, must last until the
 * insertion.
 */
static void
register_main_data(IpChange *c, uint16 visible, uint8 *head)
{
	ByteWriter	w = {head + 1, head + IP_MAIN_MAX_HEAD, false};
	uint8		flags = 0;

	if (c->conflict >= FirstNormalTransactionId)
	{
		flags |= IP_MAIN_CONFLICT;
		bytes_put_u64(&w, c->conflict);
	}
	if (visible != 0)
	{
		flags |= IP_MAIN_VISIBLE;
		bytes_put_u16(&w, visible);
	}
	if (c->named != IP_XID_NONE)
	{
		flags |= IP_MAIN_NAMED;
		bytes_put_u64(&w, c->named);
	}
	if (c->logical != NULL)
		flags |= IP_MAIN_LOGICAL;
	Assert(!w.bad);
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

/*
 * Collect the map's pages whose bits are cleared, each once; returns their
 * number.
 */
static int
visible_pages(const IpChange *c, Buffer *pages)
{
	int			n = 0;

	for (int i = 0; i < c->pages.nblocks; i++)
	{
		Buffer		vm = c->vm[i];
		int			same = 0;

		while (same < n && pages[same] != vm)
			same++;
		if (BufferIsValid(vm) && same == n)
			pages[n++] = vm;
	}
	return n;
}

/*
 * Register these pages after the blocks: from 17 on an incremental backup
 * copies the pages that records name.  Redo clears the bits by block number.
 */
static void
register_visible(const IpChange *c, const Buffer *pages, int n)
{
	for (int i = 0; i < n; i++)
		XLogRegisterBuffer(c->pages.nblocks + i, pages[i],
						   REGBUF_NO_IMAGE | REGBUF_NO_CHANGE);
}

/*
 * Register the map's page in which bits are set.  Unlike the pages whose bits
 * are cleared, the record changes it.
 */
static void
register_map(const IpChange *c)
{
	static const uint8 op = IP_OP_VISIBLE;

	/* the map's pages do not have the standard layout */
	XLogRegisterBuffer(c->pages.nblocks, c->map, 0);
	CompatXLogRegisterBufData(c->pages.nblocks, &op, 1);
}

static XLogRecPtr
log_change(IpChange *c, uint16 visible, bool set)
{
	uint8		head[IP_MAIN_MAX_HEAD];
	Buffer		vm[IP_CHANGE_MAX_BLOCKS];
	int			nvm = visible != 0 && !set ? visible_pages(c, vm) : 0;
	bool		images = wal_consistency_checking[IP_RMGR_ID];
	XLogRecPtr	lsn;

	XLogBeginInsert();
	register_main_data(c, visible, head);
	for (int i = 0; i < c->pages.nblocks; i++)
	{
		const PageChangeBlock *b = &c->pages.blocks[i];
		uint8		flags = 0;

		if (ip_change_is_hint(b->ops, b->len))
			flags |= REGBUF_NO_IMAGE;
		if (c->logical_rows && i == IP_REF_DATA)
			flags |= REGBUF_KEEP_DATA;
		page_change_register(&c->pages, i, flags);
	}
	if (set)
		register_map(c);
	else
		register_visible(c, vm, nvm);

	/*
	 * other backends change the map's pages, which must not change while
	 * images of them are taken
	 */
	for (int i = 0; images && i < nvm; i++)
		LockBuffer(vm[i], BUFFER_LOCK_SHARE);
	lsn = XLogInsert(IP_RMGR_ID, c->info);
	for (int i = 0; images && i < nvm; i++)
		LockBuffer(vm[i], BUFFER_LOCK_UNLOCK);
	return lsn;
}

/*
 * Mark the page as all-visible, and set its bits in the map; the map's page
 * stays locked.
 */
static void
set_map(IpChange *c)
{
	LockBuffer(c->map, BUFFER_LOCK_EXCLUSIVE);
	ip_map_set(BufferGetPage(c->map),
			   BufferGetBlockNumber(c->pages.blocks[0].buffer));
	MarkBufferDirty(c->map);
}

/* Write the change's WAL record, and set the pages' LSNs. */
static void
write_wal(IpChange *c, uint16 visible, bool set)
{
	XLogRecPtr	lsn = log_change(c, visible, set);

	for (int i = 0; i < c->pages.nblocks; i++)
	{
		if (!ip_change_is_hint(c->pages.blocks[i].ops, c->pages.blocks[i].len))
			PageSetLSN(BufferGetPage(c->pages.blocks[i].buffer), lsn);
	}
	if (set)
		PageSetLSN(BufferGetPage(c->map), lsn);
}

void
ip_change_apply(IpChange *c)
{
	IpOpContext ctx;
	bool		wal = RelationNeedsWAL(c->rel);
	bool		set;
	uint16		visible;
	int			nrefs;			/* at most */

	page_change_end(&c->pages);
	Assert(c->rows == NULL || c->pages.nblocks == 1);
	Assert(c->dead_until == 0 || wal);	/* I16 */
	Assert(c->pages.nblocks > 0 &&
		   (c->pages.nblocks == 1 || BufferIsInvalid(c->map)));
	Assert(!c->logical_rows || c->logical != NULL);
	Assert(c->replay || c->xid == InvalidTransactionId ||
		   c->xid == GetCurrentTransactionIdIfAny());
	visible = find_visible(c);
	nrefs = c->pages.nblocks + (visible != 0 ? c->pages.nblocks : 0);
	if (wal && nrefs > XLR_NORMAL_MAX_BLOCK_ID + 1)
		XLogEnsureRecordSpace(nrefs - 1, 2 * c->pages.nblocks + 3);
	ctx.xid = c->xid;
	ctx.rows = c->rows;
	ctx.home = c->home;
	ctx.homelen = c->homelen;
	ctx.restored = c->restored;
	ctx.nrestored = c->nrestored;
	ctx.made = c->made;
	ctx.dead_until = c->dead_until;
	ctx.data_block = BufferGetBlockNumber(c->pages.blocks[IP_REF_DATA].buffer);
	ctx.undo_block = c->pages.nblocks > IP_REF_UNDO ?
		BufferGetBlockNumber(c->pages.blocks[IP_REF_UNDO].buffer) :
		InvalidBlockNumber;

	START_CRIT_SECTION();
	if (visible != 0)
		clear_visible(c);
	for (int i = 0; i < c->pages.nblocks; i++)
	{
		PageChangeBlock *b = &c->pages.blocks[i];
		const char *problem;

		Assert(ip_page_is_locked(BufferGetPage(b->buffer), true));	/* I10 */
		MarkBufferDirty(b->buffer);
		problem = ip_page_apply(BufferGetPage(b->buffer),
								BufferGetBlockNumber(b->buffer), b->ops, b->len,
								&ctx);
		if (unlikely(problem != NULL))
			elog(PANIC, "could not change block %u of relation \"%s\": %s",
				 BufferGetBlockNumber(b->buffer),
				 RelationGetRelationName(c->rel), problem);
		/* I10, I12 */
		Assert(c->info == IP_XLOG_LOCK || BufferIsValid(c->map) ||
			   !PageIsAllVisible(BufferGetPage(b->buffer)));
	}
	set = BufferIsValid(c->map) &&
		PageIsAllVisible(BufferGetPage(c->pages.blocks[0].buffer));
	if (set)
		set_map(c);
	if (wal)
		write_wal(c, visible, set);
	if (set)
		LockBuffer(c->map, BUFFER_LOCK_UNLOCK);
	END_CRIT_SECTION();
	if (visible != 0)
		release_visible(c);
}
