/*-------------------------------------------------------------------------
 * ip_wal.c
 *	  WAL records: reading, redo, description.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/bufmask.h"
#include "access/visibilitymap.h"
#include "storage/freespace.h"

#include "ip_lockset.h"
#include "ip_map.h"
#include "ip_page_apply.h"
#include "ip_page_desc.h"
#include "ip_wal.h"

void
ip_wal_main_data(XLogReaderState *record, IpMainData *data)
{
	uint32		len = XLogRecGetDataLen(record);
	ByteReader	r;
	uint8		flags;

	memset(data, 0, sizeof(*data));
	if (len == 0)
		return;
	r.p = (uint8 *) XLogRecGetData(record);
	r.end = r.p + len;
	r.bad = false;
	flags = bytes_get_u8(&r);
	if (flags & IP_MAIN_CONFLICT)
		data->conflict = bytes_get_u64(&r);
	if (flags & IP_MAIN_VISIBLE)
		data->visible = bytes_get_u16(&r);
	if (flags & IP_MAIN_NAMED)
		data->named = bytes_get_u64(&r);
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

/*
 * After a crash no page may name an xid that is yet to be assigned.  So
 * advance the next xid, as if the named transaction had written WAL now: a
 * standby's pg_subtrans must have a place for it.
 */
static void
redo_named(TransactionId named)
{
	if (!TransactionIdIsNormal(named))
		return;
	AdvanceNextFullTransactionIdPastXid(named);
	if (standbyState >= STANDBY_INITIALIZED)
		RecordKnownAssignedTransactionIds(named);
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
	CompatMapClear(rel, block, vm);
	ReleaseBuffer(vm);
	FreeFakeRelcacheEntry(rel);
}

/* What redo of a block's operations needs. */
typedef struct Redo
{
	IpOpContext ctx;
	bool		visible;		/* the page is no longer all-visible */
} Redo;

static const char *
redo_ops(Page page, BlockNumber block, const uint8 *ops, uint32 len, void *arg)
{
	Redo	   *redo = arg;

	if (redo->visible)
		PageClearAllVisible(page);
	return ip_page_apply(page, block, ops, len, &redo->ctx);
}

/* visible: see IP_MAIN_VISIBLE. */
static Buffer
redo_block(XLogReaderState *record, int id, Redo *redo, uint16 visible)
{
	redo->visible = (visible & (1 << id)) != 0;
	if (redo->visible)
		redo_clear_visible(record, id);
	return page_change_redo(record, id, false, redo_ops, redo,
							ip_change_is_hint);
}

/*
 * Redo the page of the visibility map in which the bits of block, reference 0,
 * are set.  A later record that clears bits does so whatever the LSNs of the
 * data page and the map's page are.
 */
static void
redo_map(XLogReaderState *record, int id, BlockNumber block)
{
	Buffer		buffer;

	if (XLogReadBufferForRedoExtended(record, id, RBM_ZERO_ON_ERROR, false,
									  &buffer) == BLK_NEEDS_REDO)
	{
		Page		map = BufferGetPage(buffer);

		if (PageIsNew(map))
			PageInit(map, BLCKSZ, 0);
		ip_map_set(map, block);
		PageSetLSN(map, record->EndRecPtr);
		MarkBufferDirty(buffer);
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
}

/*
 * Returns whether the record changes the block, a page of the visibility map.
 * The record only names the pages of the map in which it clears bits.
 */
static bool
sets_map(XLogReaderState *record, int id)
{
	return XLogRecGetBlock(record, id)->has_data ||
		XLogRecBlockImageApply(record, id);
}

/*
 * VACUUM skips all-visible pages, so it does not record their space in the
 * free space map.  Without this, that map would still be as in the base backup
 * after a promotion.
 */
static void
redo_space(XLogReaderState *record, Size space)
{
	RelFileLocator locator;
	BlockNumber block;

	XLogRecGetBlockTag(record, IP_REF_DATA, &locator, NULL, &block);
	XLogRecordPageWithFreeSpace(locator, block, space);
}

/*
 * Returns the last of the blocks; references to pages of the visibility map
 * follow them.
 */
static int
last_block(XLogReaderState *record)
{
	int			id = XLogRecMaxBlockId(record);

	while (XLogRecGetBlock(record, id)->forknum != MAIN_FORKNUM)
		id--;
	Assert(id >= 0);
	return id;
}

/*
 * All pages stay locked until all are changed: a reader on a standby that sees
 * a row's undo pointer must find the undo record.
 */
void
ip_wal_redo(XLogReaderState *record)
{
	Buffer		buffers[XLR_MAX_BLOCK_ID + 1];
	int			max = last_block(record);
	bool		set = max < XLogRecMaxBlockId(record) &&
		sets_map(record, max + 1);
	Size		space = 0;
	bool		tells;
	IpMainData	data;
	Redo		redo =
	{{XLogRecGetXid(record), InvalidBlockNumber, InvalidBlockNumber}};

	Assert(InRecovery);
	ip_wal_main_data(record, &data);
	redo_conflict(record, data.conflict);
	redo_named((TransactionId) data.named);
	XLogRecGetBlockTag(record, IP_REF_DATA, NULL, NULL, &redo.ctx.data_block);
	if (max >= IP_REF_UNDO)
		XLogRecGetBlockTag(record, IP_REF_UNDO, NULL, NULL,
						   &redo.ctx.undo_block);

	/*
	 * Data pages come before the undo page: the order in which readers lock
	 * them.  A ring's record has no data page.
	 */
	for (int id = 0; id <= max; id++)
	{
		if (id != IP_REF_UNDO)
			buffers[id] = redo_block(record, id, &redo, data.visible);
	}
	if (max >= IP_REF_UNDO)
		buffers[IP_REF_UNDO] = redo_block(record, IP_REF_UNDO, &redo,
										  data.visible);
	if (set)
		redo_map(record, max + 1, redo.ctx.data_block);
	tells = set && BufferIsValid(buffers[IP_REF_DATA]);
	if (tells)
		space = PageGetFreeSpace(BufferGetPage(buffers[IP_REF_DATA]));
	for (int id = 0; id <= max; id++)
	{
		if (BufferIsValid(buffers[id]))
			UnlockReleaseBuffer(buffers[id]);
	}
	if (tells)
		redo_space(record, space);
}

void
ip_wal_desc(StringInfo buf, XLogReaderState *record)
{
	const char *sep = "";
	IpMainData	data;

	ip_wal_main_data(record, &data);
	if (data.logical)
	{
		appendStringInfo(buf, "logical: %u bytes", data.logical_len);
		sep = "; ";
	}
	page_change_desc(buf, record, sep, ip_page_desc);
}

const char *
ip_wal_identify(uint8 info)
{
	static const char *const names[] = {
		[IP_XLOG_INSERT >> 4] = "INSERT",[IP_XLOG_MULTI_INSERT >> 4] = "MULTI_INSERT",
		[IP_XLOG_UPDATE >> 4] = "UPDATE",[IP_XLOG_MOVE >> 4] = "MOVE",
		[IP_XLOG_DELETE >> 4] = "DELETE",[IP_XLOG_LOCK >> 4] = "LOCK",
		[IP_XLOG_PRUNE >> 4] = "PRUNE",[IP_XLOG_RESTORE >> 4] = "RESTORE",
		[IP_XLOG_RING >> 4] = "RING",[IP_XLOG_INIT >> 4] = "INIT",
		[IP_XLOG_SPECULATIVE >> 4] = "SPECULATIVE",[IP_XLOG_VACUUM >> 4] = "VACUUM",
		[IP_XLOG_SAVE_VALUE >> 4] = "SAVE_VALUE",
		[IP_XLOG_DELETE_VALUE >> 4] = "DELETE_VALUE"
	};
	uint8		i = (info & ~XLR_INFO_MASK) >> 4;

	return i < lengthof(names) ? names[i] : NULL;
}

/*
 * Mask what dead items say about WAL, because it is not replayed (ip_dead.h).
 */
static void
mask_dead_items(Page page)
{
	OffsetNumber max = ip_page_is_ours(page) &&
		IpPageGetSpecial(page)->kind == IP_PAGE_DATA ?
		PageGetMaxOffsetNumber(page) : 0;

	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		if (ItemIdIsDead(PageGetItemId(page, off)))
			PageGetItemId(page, off)->lp_len = 0;
	}
}

/*
 * Mask the rows of lock sets: rows that were added later are logged only if
 * the locker is prepared.
 */
static void
mask_locked_rows(Page page)
{
	int			n = ip_lockset_is_page(page) &&
		ip_lockset_place_problem(page) == NULL ? IpPageLockSets(page) : 0;

	for (int i = 0; i < n; i++)
		memset(IpPageLockSet(page, i)->rows, 0,
			   sizeof(IpPageLockSet(page, i)->rows));
}

void
ip_wal_mask(char *pagedata, BlockNumber block)
{
	mask_page_lsn_and_checksum((Page) pagedata);
	mask_page_hint_bits((Page) pagedata);
	mask_unused_space((Page) pagedata);
	mask_dead_items((Page) pagedata);
	mask_locked_rows((Page) pagedata);
}
