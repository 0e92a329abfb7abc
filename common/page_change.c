/*-------------------------------------------------------------------------
 * page_change.c
 *	  Changes of pages that are lists of operations.
 *-------------------------------------------------------------------------
 */
#include "page_change.h"

#include "access/xloginsert.h"
#include "access/xlogutils.h"
#include "storage/bufmgr.h"

void
page_change_begin(PageChange *c, uint8 *space, uint32 size)
{
	Assert(CritSectionCount == 0);
	c->nblocks = 0;
	c->w.p = space;
	c->w.end = space + size;
	c->w.bad = false;
}

void
page_change_end(PageChange *c)
{
	if (c->nblocks > 0)
	{
		PageChangeBlock *b = &c->blocks[c->nblocks - 1];

		b->len = c->w.p - b->ops;
	}
	if (c->w.bad)
		elog(ERROR, "operations of a change are too long");
}

#ifdef USE_ASSERT_CHECKING
static bool
has_buffer(const PageChange *c, Buffer buffer)
{
	for (int i = 0; i < c->nblocks; i++)
	{
		if (c->blocks[i].buffer == buffer)
			return true;
	}
	return false;
}
#endif

ByteWriter *
page_change_block(PageChange *c, Buffer buffer, bool init)
{
	PageChangeBlock *b;

	Assert(c->nblocks < PAGE_CHANGE_MAX_BLOCKS && !has_buffer(c, buffer));
	page_change_end(c);
	b = &c->blocks[c->nblocks++];
	b->buffer = buffer;
	b->init = init;
	b->ops = c->w.p;
	return &c->w;
}

void
page_change_register(const PageChange *c, int i, uint8 flags)
{
	const PageChangeBlock *b = &c->blocks[i];

	if (b->init)
		flags |= REGBUF_WILL_INIT;
	XLogRegisterBuffer(i, b->buffer, REGBUF_STANDARD | flags);
	CompatXLogRegisterBufData(i, b->ops, b->len);
}

Buffer
page_change_redo(XLogReaderState *record, int id, bool cleanup,
				 PageChangeApply apply, void *arg,
				 bool (*is_hint) (const uint8 *ops, uint32 len))
{
	uint8		flags = XLogRecGetBlock(record, id)->flags;
	bool		init = (flags & BKPBLOCK_WILL_INIT) != 0;
	Buffer		buffer;
	BlockNumber block;
	const char *problem;
	const uint8 *ops;
	Size		len;

	Assert(!(init && cleanup));
	if (XLogReadBufferForRedoExtended(record, id,
									  init ? RBM_ZERO_AND_LOCK : RBM_NORMAL,
									  cleanup, &buffer) != BLK_NEEDS_REDO)
		return buffer;
	block = BufferGetBlockNumber(buffer);
	ops = (const uint8 *) XLogRecGetBlockData(record, id, &len);
	problem = apply(BufferGetPage(buffer), block, ops, len, arg);
	if (problem != NULL)
		elog(PANIC, "could not redo change of block %u: %s", block, problem);
	if (is_hint == NULL || !is_hint(ops, len))
		PageSetLSN(BufferGetPage(buffer), record->EndRecPtr);
	MarkBufferDirty(buffer);
	return buffer;
}

void
page_change_desc(StringInfo buf, XLogReaderState *record, const char *sep,
				 PageChangeDesc desc)
{
	for (int id = 0; id <= XLogRecMaxBlockId(record); id++)
	{
		Size		len;
		char	   *ops = XLogRecGetBlockData(record, id, &len);

		if (ops == NULL || len == 0)
			continue;
		appendStringInfo(buf, "%sblk %d: ", sep, id);
		desc(buf, (const uint8 *) ops, len);
		sep = "; ";
	}
}
