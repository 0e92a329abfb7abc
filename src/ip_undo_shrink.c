/*-------------------------------------------------------------------------
 * ip_undo_shrink.c
 *	  VACUUM's part: rings that are longer than they need be become shorter.
 *-------------------------------------------------------------------------
 */
#include "ip_compat.h"

#include "storage/freespace.h"

#include "ip_space.h"
#include "ip_undo.h"
#include "ip_undo_ring.h"
#include "ip_xid.h"

typedef enum Tried
{
	TRIED_FREED,
	TRIED_DROPPED,				/* something of it is damaged */
	TRIED_KEPT					/* o->ntids, if it is not 0, are rows that need it */
} Tried;

/* Free the slot's oldest page if all its xids precede limit and no row needs it. */
static Tried
try_free_oldest(Relation rel, uint16 slot, IpXid limit, IpOldestPage *o)
{
	BlockNumber at = InvalidBlockNumber;
	Buffer		current = ip_ring_lock_current(rel, &at, slot, BUFFER_LOCK_EXCLUSIVE);
	Tried		result = TRIED_KEPT;
	Buffer		oldest;
	BlockNumber block;
	Page		page;

	o->ntids = 0;
	o->problem = NULL;
	if (!BufferIsValid(current))
		return TRIED_KEPT;
	oldest = ip_ring_lock_oldest(rel, current, slot);
	block = BufferGetBlockNumber(oldest);
	page = BufferGetPage(oldest);
	o->block = block;
	if (IpPageGetSpecial(page)->u.undo.newest_xid < limit && ip_ring_page_is_old(rel, page))
	{
		if (!ip_ring_is_needed(page, block, o))
		{
			ip_ring_free_oldest(rel, current, oldest, slot);
			result = TRIED_FREED;
		}
		else if (o->problem)
		{
			o->ntids = 0;
			if (oldest != current)
			{
				ip_ring_drop_oldest(rel, current, oldest, slot);
				result = TRIED_DROPPED;
			}
		}
	}
	if (oldest != current)
		UnlockReleaseBuffer(oldest);
	UnlockReleaseBuffer(current);
	return result;
}

/* Free what can be freed of one ring; how many pages. */
static BlockNumber
shrink_ring(Relation rel, uint16 slot, IpXid limit, IpFreeBlocks *lowest)
{
	IpOldestPage	o = {.block = InvalidBlockNumber};
	BlockNumber freed = 0;

	for (;;)
	{
		Tried		tried;

		compat_vacuum_delay_point(false);
		tried = try_free_oldest(rel, slot, limit, &o);
		if (tried == TRIED_DROPPED)
			continue;
		if (tried == TRIED_FREED)
		{
			RecordPageWithFreeSpace(rel, o.block, IP_FREE_PAGE_SPACE);
			ip_note_free_block(lowest, o.block);
			freed++;
			continue;
		}
		if (o.ntids == 0)
			return freed;
		o.clean = ip_ring_clean_rows(rel, &o) == IP_NEED_NONE;
		if (!o.clean)
			return freed;
	}
}

/* New records go to the free block "to", if it is before the current page. */
static bool
move_ring(Relation rel, uint16 slot, BlockNumber to)
{
	BlockNumber at = InvalidBlockNumber;
	Buffer		current = ip_ring_lock_current(rel, &at, slot, BUFFER_LOCK_EXCLUSIVE);
	bool		moved = false;
	Buffer		page;

	if (!BufferIsValid(current))
		return false;
	if (to < BufferGetBlockNumber(current))
	{
		page = ip_space_try_free(rel, to);
		if (BufferIsValid(page))
		{
			ip_ring_add_pages(rel, current, ip_ring_lock_meta(rel), slot, &page, 1);
			UnlockReleaseBuffer(page);
			moved = true;
		}
	}
	UnlockReleaseBuffer(current);
	return moved;
}

BlockNumber
ip_undo_shrink(Relation rel, IpXid limit, IpFreeBlocks *lowest, bool *moved)
{
	BlockNumber freed = 0;
	int			next = 0;

	*moved = false;
	ip_check_meta(rel);
	if (rel->rd_amcache == NULL)
		return 0;				/* nobody has written to the table yet */
	for (uint16 slot = 0; slot < IP_UNDO_SLOTS; slot++)
		freed += shrink_ring(rel, slot, limit, lowest);
	/* rings that still are in use go to the front, so that the file can become shorter */
	for (uint16 slot = 0; slot < IP_UNDO_SLOTS && next < lowest->n; slot++)
	{
		if (move_ring(rel, slot, lowest->blocks[next]))
		{
			*moved = true;
			next++;
		}
	}
	return freed;
}
