/*-------------------------------------------------------------------------
 * pb_space.c
 *	  New pages, and reuse of deleted ones.
 *
 * A scan may be on its way to a deleted page until all transactions of that
 * time have ended.  Only then is the page reused.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/catalog.h"
#include "storage/indexfsm.h"
#include "utils/snapmgr.h"

#include "pb_change.h"
#include "pb_space.h"

/*
 * I11: true if no scan can be on the way to the page, because it is new, or
 * was deleted long enough ago.
 */
bool
pb_space_is_free(Relation heap, Page page)
{
	uint64		xid;

	if (PageIsNew(page))
		return true;
	if (pb_page_check(page) != NULL ||
		!(PbPageGetSpecial(page)->flags & PB_PAGE_DELETED))
		return false;
	xid = PbPageGetDeleted(page)->safe_xid;
	return GlobalVisCheckRemovableFullXid(heap, FullTransactionIdFromU64(xid));
}

/*
 * True if the locked page can be reused.  Standbys are told so, and whether
 * logical decoding reads the table as a catalog: then replication slots there
 * may need the deleted data (16+).
 */
static bool
take_page(Relation rel, Relation heap, Page page)
{
	if (!pb_space_is_free(heap, page))
		return false;
	if (!PageIsNew(page) && XLogStandbyInfoActive() && RelationNeedsWAL(rel))
	{
		uint64		xid = PbPageGetDeleted(page)->safe_xid;
		bool		catalog = heap != NULL &&
			RelationIsAccessibleInLogicalDecoding(heap);

		pb_change_log_reuse(rel, FullTransactionIdFromU64(xid), catalog);
	}
	return true;
}

/*
 * Get a deleted page, locked for writing, or InvalidBuffer.  The caller, which
 * changes the index, has opened the table.
 */
static Buffer
reuse_page(Relation rel)
{
	Relation	heap = NULL;
	Buffer		buffer = InvalidBuffer;
	BlockNumber block;

	while (BufferIsInvalid(buffer) &&
		   (block = GetFreeIndexPage(rel)) != InvalidBlockNumber)
	{
		if (heap == NULL)
			heap = RelationIdGetRelation(rel->rd_index->indrelid);
		buffer = ReadBuffer(rel, block);
		if (ConditionalLockBuffer(buffer))
		{
			if (take_page(rel, heap, BufferGetPage(buffer)))
				break;
			LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		}
		ReleaseBuffer(buffer);
		buffer = InvalidBuffer;
	}
	if (heap != NULL)
		RelationClose(heap);
	return buffer;
}

/* Get a page to fill, locked for writing.  PB_OP_IMAGE makes its contents. */
Buffer
pb_space_get(Relation rel)
{
	Buffer		buffer = reuse_page(rel);

	if (BufferIsInvalid(buffer))
		buffer = pb_index_extend(rel);
	Assert(pb_index_is_locked(buffer, PB_WRITE));
	/* I11 */
	Assert(PageIsNew(BufferGetPage(buffer)) ||
		   (PbPageGetSpecial(BufferGetPage(buffer))->flags &
			PB_PAGE_DELETED));
	return buffer;
}
