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

/* A page to fill, locked for writing.  It is to be made by PB_OP_IMAGE. */
Buffer
pb_space_get(Relation rel, Relation heap)
{
	for (;;)
	{
		BlockNumber block = GetFreeIndexPage(rel);
		Buffer		buffer;
		Page		page;

		if (block == InvalidBlockNumber)
			return pb_index_extend(rel);
		buffer = ReadBuffer(rel, block);
		if (ConditionalLockBuffer(buffer))
		{
			page = BufferGetPage(buffer);
			if (pb_space_is_free(heap, page))
			{
				if (!PageIsNew(page) && XLogStandbyInfoActive() && RelationNeedsWAL(rel))
					pb_change_log_reuse(rel, FullTransactionIdFromU64(PbPageGetDeleted(page)->safe_xid),
										heap != NULL && RelationIsAccessibleInLogicalDecoding(heap));
				return buffer;
			}
			LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		}
		ReleaseBuffer(buffer);
	}
}
