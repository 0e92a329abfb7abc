/*-------------------------------------------------------------------------
 * pb_space.c
 *	  New pages, and deleted ones that are used again.
 *
 * A scan may be on its way to a deleted page until all transactions of that
 * time have ended: only then is the page used again.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/catalog.h"
#include "storage/indexfsm.h"
#include "utils/snapmgr.h"

#include "pb_change.h"
#include "pb_space.h"

/* I11: can nobody be on the way to the page?  It is new, or deleted for long enough. */
bool
pb_space_is_free(Relation heap, Page page)
{
	uint64		xid;

	if (PageIsNew(page))
		return true;
	if (pb_page_check(page) != NULL || !(PbPageGetSpecial(page)->flags & PB_PAGE_DELETED))
		return false;
	xid = PbPageGetDeleted(page)->safe_xid;
	return GlobalVisCheckRemovableFullXid(heap, FullTransactionIdFromU64(xid));
}

/*
 * Can the page, which is locked, be used again?  Standbys are told, and whether the table is one that logical decoding
 * reads as a catalog: then slots there may need what is behind the page (16+).
 */
static bool
take_page(Relation rel, Relation heap, Page page)
{
	if (!pb_space_is_free(heap, page))
		return false;
	if (!PageIsNew(page) && XLogStandbyInfoActive() && RelationNeedsWAL(rel))
		pb_change_log_reuse(rel, FullTransactionIdFromU64(PbPageGetDeleted(page)->safe_xid),
							heap != NULL && RelationIsAccessibleInLogicalDecoding(heap));
	return true;
}

/* A deleted page, locked for writing, or InvalidBuffer.  The table has been opened by whoever changes the index. */
static Buffer
reuse_page(Relation rel)
{
	Relation	heap = NULL;
	Buffer		buffer = InvalidBuffer;
	BlockNumber block;

	while (BufferIsInvalid(buffer) && (block = GetFreeIndexPage(rel)) != InvalidBlockNumber)
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

/* A page to fill, locked for writing.  It is to be made by PB_OP_IMAGE. */
Buffer
pb_space_get(Relation rel)
{
	Buffer		buffer = reuse_page(rel);

	if (BufferIsInvalid(buffer))
		buffer = pb_index_extend(rel);
	Assert(pb_index_is_locked(buffer, PB_WRITE));
	Assert(PageIsNew(BufferGetPage(buffer)) || (PbPageGetSpecial(BufferGetPage(buffer))->flags & PB_PAGE_DELETED)); /* I11 */
	return buffer;
}
