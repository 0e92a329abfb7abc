/*-------------------------------------------------------------------------
 * pb_wal.c
 *	  WAL records: redo, description.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/bufmask.h"

#include "pb_change.h"
#include "pb_wal.h"

static void
redo_conflict(XLogReaderState *record, bool full)
{
	PbConflict	conflict;

	if (!InHotStandby || XLogRecGetDataLen(record) < sizeof(conflict))
		return;
	memcpy(&conflict, XLogRecGetData(record), sizeof(conflict));
	if (full)
		CompatConflict(FullTransactionIdFromU64(conflict.xid), conflict.catalog,
					   conflict.locator);
	else
		CompatConflictXid((TransactionId) conflict.xid, conflict.catalog,
						  conflict.locator);
}

/*
 * I12: true if rows leave the record's first page.  An index-only scan may
 * have read them, and does not fetch them from the table once its page is
 * all-visible.  So redo waits until no scan has the page pinned.  On the
 * primary VACUUM waits, for each leaf; it writes no record for most of them,
 * and rows may have left a page by a split, or by an insertion that removed
 * dead ones, and not by VACUUM.
 */
static bool
removes_rows(uint8 info)
{
	return info == PB_XLOG_VACUUM || info == PB_XLOG_DELETE ||
		info == PB_XLOG_SPLIT;
}

static const char *
redo_ops(Page page, BlockNumber block, const uint8 *ops, uint32 len, void *arg)
{
	return pb_op_apply(page, ops, len) ? NULL :
		"a page of a pbtree index does not match its operations";
}

/*
 * All pages stay locked until all are changed, so that a reader on a standby
 * never sees half of a split.
 */
void
pb_wal_redo(XLogReaderState *record)
{
	Buffer		buffers[PB_CHANGE_MAX_BLOCKS];
	uint8		info = XLogRecGetInfo(record) & ~XLR_INFO_MASK;
	int			max = XLogRecMaxBlockId(record);

	Assert(InRecovery);
	redo_conflict(record, info == PB_XLOG_REUSE);
	Assert((info == PB_XLOG_REUSE) == (max < 0));
	if (max >= PB_CHANGE_MAX_BLOCKS)
		elog(PANIC, "pbtree WAL record has too many blocks");
	for (int id = 0; id <= max; id++)
	{
		bool		cleanup = id == 0 && removes_rows(info);

		buffers[id] = page_change_redo(record, id, cleanup, redo_ops, NULL,
									   NULL);
	}
	for (int id = 0; id <= max; id++)
	{
		if (BufferIsInvalid(buffers[id]))
			continue;
		/* I8: of all, until all are changed */
		Assert(pb_index_is_locked(buffers[id], PB_WRITE));
		UnlockReleaseBuffer(buffers[id]);
	}
}

void
pb_wal_desc(StringInfo buf, XLogReaderState *record)
{
	const char *sep = "";

	if (XLogRecGetDataLen(record) >= sizeof(PbConflict))
	{
		PbConflict	conflict;

		memcpy(&conflict, XLogRecGetData(record), sizeof(conflict));
		appendStringInfo(buf, "conflict xid " UINT64_FORMAT "%s", conflict.xid,
						 conflict.catalog ? " of a catalog table" : "");
		sep = "; ";
	}
	page_change_desc(buf, record, sep, pb_op_desc);
}

const char *
pb_wal_identify(uint8 info)
{
	static const char *const names[] = {
		[PB_XLOG_INSERT >> 4] = "INSERT",[PB_XLOG_SPLIT >> 4] = "SPLIT",
		[PB_XLOG_ROOT >> 4] = "ROOT",[PB_XLOG_VACUUM >> 4] = "VACUUM",
		[PB_XLOG_DELETE >> 4] = "DELETE",[PB_XLOG_UNLINK >> 4] = "UNLINK",
		[PB_XLOG_REUSE >> 4] = "REUSE",[PB_XLOG_META >> 4] = "META",
		[PB_XLOG_REBUILD >> 4] = "REBUILD"
	};
	uint8		i = (info & ~XLR_INFO_MASK) >> 4;

	return i < lengthof(names) ? names[i] : NULL;
}

/* Marks of dead items are not logged. */
void
pb_wal_mask(char *pagedata, BlockNumber block)
{
	Page		page = (Page) pagedata;
	PbSpecial  *special = PbPageGetSpecial(page);

	mask_page_lsn_and_checksum(page);
	mask_page_hint_bits(page);
	mask_unused_space(page);
	special->cycle = 0;
	if (special->flags & (PB_PAGE_META | PB_PAGE_DELETED))
		return;
	special->flags &= ~PB_PAGE_GARBAGE;
	for (int i = 0; i < pb_page_nslots(page); i++)
		*(uint16 *) pb_page_slot(page, i) &= ~PB_SLOT_DEAD;
}
