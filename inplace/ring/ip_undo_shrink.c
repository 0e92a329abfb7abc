/*-------------------------------------------------------------------------
 * ip_undo_shrink.c
 *	  VACUUM's part: rings that are longer than they need be become shorter.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "storage/freespace.h"

#include "ip_change.h"
#include "ip_ring.h"
#include "ip_space.h"
#include "ip_undo.h"
#include "ip_undo_shrink.h"
#include "ip_undo_use.h"
#include "ip_xid.h"

typedef enum Tried
{
	TRIED_FREED,
	TRIED_DROPPED,				/* the page is damaged */
	TRIED_KEPT					/* o->ntids, if not 0, is the number of rows
								 * that need the page */
} Tried;

/*
 * Free the slot's oldest page if all its xids precede limit and no row needs
 * it.
 */
static Tried
try_free_oldest(Relation rel, uint16 slot, IpXid limit, IpOldestPage *o)
{
	BlockNumber at = InvalidBlockNumber;
	Buffer		current = ip_ring_lock_current(rel, &at, slot,
											   BUFFER_LOCK_EXCLUSIVE, NULL);
	Tried		result = TRIED_KEPT;
	Buffer		oldest;
	BlockNumber block;
	IpXid		newest;
	Page		page;

	o->ntids = 0;
	o->problem = NULL;
	if (!BufferIsValid(current))
		return TRIED_KEPT;
	oldest = ip_ring_lock_oldest(rel, current, slot);
	block = BufferGetBlockNumber(oldest);
	page = BufferGetPage(oldest);

	/*
	 * the page that was cleaned may be another one, perhaps with the same
	 * newest xid
	 */
	o->clean &= o->block == block;
	o->block = block;
	if (ip_ring_page_is_old(rel, page, block, &newest) && newest < limit)
	{
		if (!ip_ring_is_needed(page, block, o))
		{
			ip_ring_free_oldest(rel, current, oldest, slot, newest);
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

/* Free what can be freed of one ring.  Returns the number of pages. */
static BlockNumber
shrink_ring(Relation rel, uint16 slot, IpXid limit, IpFreeBlocks *lowest)
{
	IpOldestPage o = {.block = InvalidBlockNumber};
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
			ip_space_record(rel, o.block, IpFreePageSpace(o.block));
			ip_space_note_free(lowest, o.block);
			freed++;
			continue;
		}
		if (o.ntids == 0)
			return freed;
		o.clean = ip_undo_use_clean_rows(rel, &o) == IP_NEED_NONE;
		if (!o.clean)
			return freed;
	}
}

/*
 * Let new records be written to the free block "to", if it is before the
 * current page.
 */
static bool
move_ring(Relation rel, uint16 slot, BlockNumber to)
{
	BlockNumber at = InvalidBlockNumber;
	Buffer		current = ip_ring_lock_current(rel, &at, slot,
											   BUFFER_LOCK_EXCLUSIVE, NULL);
	bool		moved = false;
	Buffer		page;

	if (!BufferIsValid(current))
		return false;
	if (to < BufferGetBlockNumber(current))
	{
		page = ip_space_try_free(rel, to);
		if (BufferIsValid(page))
		{
			ip_ring_add_pages(rel, current, ip_rel_make_meta(rel), slot, &page,
							  1, false);
			UnlockReleaseBuffer(page);
			moved = true;
		}
	}
	UnlockReleaseBuffer(current);
	return moved;
}

/* ---- pages in no ring -------------------------------------------------- */

/*
 * Mark the ring's pages in the bitmap.  Returns false if the ring cannot be
 * followed.  Only VACUUM takes sound pages out of a ring, so a lock is needed
 * only as long as it takes to read a link.
 */
static bool
mark_ring(Relation rel, uint16 slot, BlockNumber first, uint8 *in_ring,
		  BlockNumber nblocks)
{
	BlockNumber block = first;

	if (first == InvalidBlockNumber)
		return true;
	do
	{
		Buffer		buffer = block < nblocks ?
			ip_undo_lock_page(rel, block, BUFFER_LOCK_SHARE, NULL) :
			InvalidBuffer;
		bool		found;

		CHECK_FOR_INTERRUPTS();
		if (!BufferIsValid(buffer))
			return false;
		found = ip_ring_has(BufferGetPage(buffer), slot) &&
			!(in_ring[block / 8] & (1 << (block % 8)));
		in_ring[block / 8] |= 1 << (block % 8);
		if (found)
			block = IpPageGetSpecial(BufferGetPage(buffer))->u.undo.next;
		UnlockReleaseBuffer(buffer);
		if (!found)
			return false;
	} while (block != first);
	return true;
}

/*
 * Returns whether the undo page, which is in no ring, may be free, as far as
 * its own fields tell.  Its ring must be one of these slots.
 */
static bool
may_reclaim(Relation rel, Page page, BlockNumber block, uint32 slots,
			IpXid limit, IpXid *newest)
{
	IpSpecial  *special;

	if (!ip_page_is_ours(page))
		return false;
	special = IpPageGetSpecial(page);
	return special->kind == IP_PAGE_UNDO &&
		special->u.undo.slot < IP_UNDO_SLOTS &&
		(slots & (1 << special->u.undo.slot)) &&
		ip_ring_page_is_old(rel, page, block, newest) && *newest < limit;
}

static void
free_undo_page(Relation rel, Buffer buffer, IpXid newest)
{
	Buffer		meta = ip_rel_make_meta(rel);
	IpChange	change;

	ip_change_begin(&change, rel, IP_XLOG_RING, InvalidTransactionId);
	change.conflict = newest;
	ip_op_simple(ip_change_block(&change, buffer, true), IP_OP_INIT_FREE);
	ip_op_undo_pages(ip_change_block(&change, meta, false),
					 BufferGetBlockNumber(buffer), 0);
	ip_change_apply(&change);
	UnlockReleaseBuffer(meta);
}

/* Free an undo page that is in no ring of these slots, if that can be done. */
static bool
reclaim_page(Relation rel, BlockNumber block, uint32 slots, IpXid limit)
{
	IpOldestPage o = {.block = InvalidBlockNumber};

	for (;;)
	{
		Buffer		buffer = ip_undo_lock_page(rel, block,
											   BUFFER_LOCK_EXCLUSIVE, NULL);
		IpXid		newest;
		bool		possible;
		bool		needed = false;

		if (!BufferIsValid(buffer))
			return false;
		possible = may_reclaim(rel, BufferGetPage(buffer), block, slots, limit,
							   &newest);
		if (possible)
			needed = ip_ring_is_needed(BufferGetPage(buffer), block, &o);
		if (possible && !needed)
			free_undo_page(rel, buffer, newest);
		UnlockReleaseBuffer(buffer);
		if (!possible || !needed)
			return possible;
		/* rows need the page, perhaps not for long; or it cannot be read */
		if (o.problem || ip_undo_use_clean_rows(rel, &o) != IP_NEED_NONE)
			return false;
		o.clean = true;
	}
}

BlockNumber
ip_undo_shrink_lost(Relation rel, IpXid limit, const BlockNumber *pages,
					BlockNumber npages, IpFreeBlocks *lowest)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	BlockNumber reclaimed = 0;
	uint32		whole = 0;
	IpMetaSlot	slots[IP_UNDO_SLOTS];
	uint8	   *in_ring;

	Assert(ip_page_none_is_locked());
	if (npages <= ip_ring_pages(rel))
		return 0;				/* all pages are in the rings */
	in_ring = MemoryContextAllocExtended(CurrentMemoryContext, nblocks / 8 + 1,
										 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	ip_ring_read_slots(rel, slots);
	for (uint16 slot = 0; slot < IP_UNDO_SLOTS; slot++)
	{
		if (mark_ring(rel, slot, slots[slot].entry, in_ring, nblocks))
			whole |= 1 << slot;
	}
	for (BlockNumber i = 0; i < npages; i++)
	{
		BlockNumber block = pages[i];

		compat_vacuum_delay_point(false);
		if ((in_ring[block / 8] & (1 << (block % 8))) ||
			!reclaim_page(rel, block, whole, limit))
			continue;
		ip_space_record(rel, block, IpFreePageSpace(block));
		ip_space_note_free(lowest, block);
		reclaimed++;
	}
	pfree(in_ring);
	return reclaimed;
}

BlockNumber
ip_undo_shrink_rings(Relation rel, IpXid limit, IpFreeBlocks *lowest,
					 bool *moved)
{
	BlockNumber freed = 0;
	int			next = 0;

	Assert(ip_page_none_is_locked());
	Assert(!IpXidIsFrozen(limit));
	*moved = false;
	CompatInjectionPoint("inplace-undo-rings");
	for (uint16 slot = 0; slot < IP_UNDO_SLOTS; slot++)
		freed += shrink_ring(rel, slot, limit, lowest);

	/*
	 * move rings that are still in use to the front, so that the file can
	 * become shorter
	 */
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
