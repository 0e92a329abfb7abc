/*-------------------------------------------------------------------------
 * pb_search.c
 *	  From the root to a page; from page to page.
 *
 * A page is unlocked before the next one is locked.  So a page may have been
 * split since its parent was read; or it may have been deleted, and its right
 * sibling has taken over its keys.  In both cases the key is further right,
 * which the fences show.  The result of a comparison with the parent's items
 * holds for the child's fences exactly if these are the same bytes (I6).
 *-------------------------------------------------------------------------
 */
#include "compat_index.h"

#include "pb_search.h"

/* The maximum number of times that the metapage is read again. */
#define MAX_ROOT_TRIES	4

/* The maximum size of a fence that is carried down. */
#define MAX_CARRIED		256

/*
 * An item next to the downlink, as the fence that it becomes, perhaps with
 * some more bytes: the length of its key has not been computed.
 */
typedef struct CarriedFence
{
	int			len;			/* 0 if unknown */
	uint8		data[MAX_CARRIED];
} CarriedFence;

/* Results of comparisons on the parent. */
typedef struct Carry
{
	PbBounds	bounds;
	CarriedFence low;
	CarriedFence high;
} Carry;

static void
carry_bytes(CarriedFence *to, const uint8 *p, int len)
{
	len = Min(len, MAX_CARRIED - to->len);

	/*
	 * memcpy of a length with a limit would become a string instruction,
	 * which takes longer to begin than this to end
	 */
	memmove(to->data + to->len, p, len);
	to->len += len;
}

static void
carry_item(PbPos *pos, Page page, int slot, CarriedFence *to)
{
	uint16		bits = pb_slot_get(page, slot);
	const uint8 *p = (uint8 *) page + (bits & PB_SLOT_OFF) + PB_PIVOT_LEN;
	const uint8 *end = (uint8 *) page + PbPageSpecial(page);
	int			map_len = (bits & PB_SLOT_MAP) ? pos->index->map_len : 0;

	to->len = 0;
	if (p + map_len > end)
		return;
	to->data[to->len++] = (p[-1] & (PB_NATTS_MASK | PB_NATTS_TID)) |
		(map_len > 0 ? PB_NATTS_MAP : 0);
	carry_bytes(to, p, map_len);
	carry_bytes(to, pb_page_prefix(page), PbPageGetSpecial(page)->prefix_len);
	if (pb_page_has_heads(page))
		carry_bytes(to, pb_page_slot(page, slot) + sizeof(uint16), PB_HEAD_LEN);
	carry_bytes(to, p + map_len, end - p - map_len);
}

static void
carry_fence(const uint8 *fence, int len, CarriedFence *to)
{
	to->len = 0;
	carry_bytes(to, fence, len);
}

/*
 * Remember the fences of the child in front of "slot", which is visited next.
 */
static void
carry_from(PbPos *pos, Page page, int slot, const PbBounds *bounds,
		   Carry *carry)
{
	PbSpecial  *special = PbPageGetSpecial(page);

	carry->low.len = carry->high.len = 0;
	carry->bounds = *bounds;
	if (pos->bytes)
		return;
	if (slot > 1)
		carry_item(pos, page, slot - 1, &carry->low);
	else
		carry_fence(pb_page_low(page), special->low_len, &carry->low);
	if (slot < pb_page_nslots(page))
		carry_item(pos, page, slot, &carry->high);
	else
		carry_fence(pb_page_high(page), special->high_len, &carry->high);
}

/*
 * True if it is this fence.  A key determines where it ends: one with as many
 * columns and the same map cannot continue behind the fence's end.
 */
static inline bool
is_fence(const CarriedFence *carried, const uint8 *fence, int len)
{
	return len > 0 && len <= carried->len &&
		memcmp(carried->data, fence, len) == 0;
}

/* I6: derive the results that hold on the child. */
static void
carry_to(Page page, const Carry *carry, PbBounds *bounds, bool *high_is_known)
{
	PbSpecial  *special = PbPageGetSpecial(page);

	bounds->lo = bounds->hi = 0;
	if (is_fence(&carry->low, pb_page_low(page), special->low_len))
		bounds->lo = carry->bounds.lo;
	*high_is_known = is_fence(&carry->high, pb_page_high(page),
							  special->high_len);
	if (*high_is_known)
		bounds->hi = carry->bounds.hi;
}

static void
check_kind(Relation rel, Buffer buffer, int level)
{
	PbSpecial  *special = PbPageGetSpecial(BufferGetPage(buffer));

	if ((special->flags & PB_PAGE_META) || special->level != level)
		pb_index_corrupt(rel, BufferGetBlockNumber(buffer), -1,
						 "The page is not on the expected level.");
}

/* Move to the right sibling, which cannot vanish while this page is locked. */
Buffer
pb_search_right(Relation rel, Buffer buffer, int lock)
{
	PbSpecial  *special = PbPageGetSpecial(BufferGetPage(buffer));
	BlockNumber next = special->next;
	int			level = special->level;

	Assert(pb_index_is_locked(buffer, PB_READ));
	if (next == BufferGetBlockNumber(buffer))
		pb_index_corrupt(rel, next, -1, "The page is its own sibling.");
	UnlockReleaseBuffer(buffer);
	CHECK_FOR_INTERRUPTS();
	buffer = pb_index_read(rel, next, lock);
	check_kind(rel, buffer, level);
	return buffer;
}

/* Lock the right sibling, too; so its left link leads here. */
Buffer
pb_search_next(Relation rel, Buffer buffer, int lock)
{
	PbSpecial  *special = PbPageGetSpecial(BufferGetPage(buffer));
	Buffer		next = pb_index_read(rel, special->next, lock);
	PbSpecial  *right = PbPageGetSpecial(BufferGetPage(next));

	Assert(pb_index_is_locked(buffer, PB_READ));	/* I3: from left to right */
	check_kind(rel, next, special->level);
	if (right->prev != BufferGetBlockNumber(buffer) ||
		(right->flags & PB_PAGE_DELETED))
		pb_index_corrupt(rel, BufferGetBlockNumber(next), -1,
						 "The page's left link does not lead to its left sibling.");
	return next;
}

/* Count a step of a search or scan, which never visits a page twice. */
void
pb_search_count(Relation rel, BlockNumber block, uint32 *steps)
{
	if (++*steps % 256 == 0 && *steps > RelationGetNumberOfBlocks(rel))
		pb_index_corrupt(rel, block, -1,
						 "Links form a circle, or comparisons contradict each other.");
}

/*
 * Move right to the page that the position is on, which is this one or further
 * right.  With "finish", incomplete splits are completed first.
 */
Buffer
pb_search_move_right(PbPos *pos, Buffer buffer, int lock, PbFinishSplit finish,
					 PbBounds *bounds)
{
	uint32		steps = 0;

	Assert(pb_index_is_locked(buffer, lock));
	for (;;)
	{
		Page		page = BufferGetPage(buffer);
		PbSpecial  *special = PbPageGetSpecial(page);

		if (special->flags & PB_PAGE_DELETED)
		{
			if (special->next == PB_NONE)
				pb_index_corrupt(pos->rel, BufferGetBlockNumber(buffer), -1,
								 "The page is deleted, and has no right sibling.");
		}
		else if (finish && (special->flags & PB_PAGE_INCOMPLETE))
		{
			BlockNumber block = BufferGetBlockNumber(buffer);

			if (lock != PB_WRITE)
			{
				LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
				LockBuffer(buffer, PB_WRITE);
			}
			if (special->flags & PB_PAGE_INCOMPLETE)
				finish(pos->rel, buffer);
			else
				UnlockReleaseBuffer(buffer);
			buffer = pb_index_read(pos->rel, block, lock);
			continue;
		}
		else if (special->next == PB_NONE)
			return buffer;
		else if (pb_pos_compare_fence(pos, pb_page_high(page),
									  special->high_len, 0, &bounds->hi) < 0)
			return buffer;
		pb_search_count(pos->rel, BufferGetBlockNumber(buffer), &steps);
		bounds->lo = bounds->hi = 0;
		buffer = pb_search_right(pos->rel, buffer, lock);
	}
}

/*
 * Lock the root.  The remembered one may have been split since then, or be
 * another page now.  It is valid if it is alone on its level.
 */
static Buffer
read_root(PbPos *pos, int level, int lock, int *at)
{
	for (int tries = 0;; tries++)
	{
		BlockNumber block = pb_index_root(pos->rel, pos->index, at);

		if (block == PB_NONE)
			return InvalidBuffer;
		if (*at >= level)
		{
			Buffer		buffer = pb_index_read(pos->rel, block,
											   *at == level ? lock : PB_READ);
			PbSpecial  *special = PbPageGetSpecial(BufferGetPage(buffer));

			/* the metapage's root may have been split since */
			if (special->prev == PB_NONE &&
				(tries > 0 || special->next == PB_NONE) &&
				special->level == *at &&
				!(special->flags & (PB_PAGE_DELETED | PB_PAGE_META)))
				return buffer;
			UnlockReleaseBuffer(buffer);
			if (tries >= MAX_ROOT_TRIES)
				pb_index_corrupt(pos->rel, block, -1,
								 "The page is the root, but has a left sibling or another level.");
		}
		else if (tries > 0)
			return InvalidBuffer;
		pb_index_forget_root(pos->rel, pos->index);
	}
}

#ifdef USE_ASSERT_CHECKING
/*
 * Check that the page is locked and belongs to the tree, and that the position
 * is in front of its high fence (I1), even if that was not compared with it
 * (I6).
 */
static bool
is_reached(PbPos *pos, Buffer buffer, int lock, bool finished)
{
	PbCounters	counters = pb_counters;
	Page		page = BufferGetPage(buffer);
	PbSpecial  *special = PbPageGetSpecial(page);
	int			equal;
	bool		is_before;

	if (!pb_index_is_locked(buffer, lock) ||
		(special->flags & (PB_PAGE_DELETED | PB_PAGE_META)) ||
		(finished && (special->flags & PB_PAGE_INCOMPLETE)))
		return false;
	if (pb_page_is_rightmost(page) || !pb_pos_order_is_core(pos->rel))
		return true;
	is_before = pb_pos_compare_fence(pos, pb_page_high(page), special->high_len,
									 0, &equal) < 0;
	pb_counters = counters;
	return is_before;
}
#endif

/*
 * Find the page of this level that the position is on, locked.  InvalidBuffer
 * if the index is empty, or not that high.
 */
Buffer
pb_search_descend(PbPos *pos, int level, int lock, PbFinishSplit finish,
				  PbBounds *bounds)
{
	Carry		carry;
	int			at;
	Buffer		buffer = read_root(pos, level, lock, &at);

	pb_counters.descents++;
	carry.low.len = carry.high.len = 0;
	if (BufferIsInvalid(buffer))
		return InvalidBuffer;
	for (;; at--)
	{
		int			mode = at == level ? lock : PB_READ;
		Page		page;
		bool		high_is_known;
		BlockNumber block;
		int			slot;

		check_kind(pos->rel, buffer, at);
		carry_to(BufferGetPage(buffer), &carry, bounds, &high_is_known);
		if (!high_is_known ||
			(finish && (PbPageGetSpecial(BufferGetPage(buffer))->flags &
						PB_PAGE_INCOMPLETE)))
			buffer = pb_search_move_right(pos, buffer, mode, finish, bounds);
		Assert(is_reached(pos, buffer, mode, finish != NULL));
		if (at == level)
			return buffer;
		page = BufferGetPage(buffer);
		slot = pb_pos_search(pos, buffer, bounds);
		block = pb_item_down(pos->rel, buffer, page, slot - 1);
		carry_from(pos, page, slot, bounds, &carry);
		if (block == BufferGetBlockNumber(buffer))
			pb_index_corrupt(pos->rel, block, slot - 1,
							 "The item's downlink leads to its own page.");
		UnlockReleaseBuffer(buffer);
		CompatInjectionPoint("pbtree-to-child");
		buffer = pb_index_read(pos->rel, block,
							   at - 1 == level ? lock : PB_READ);
	}
}

/*
 * Move to the left sibling: the page whose right sibling is this one when it
 * is locked.  In between, this page may be split or deleted, and its left
 * sibling may be split.  InvalidBuffer if there is none.
 */
Buffer
pb_search_left(Relation rel, Buffer buffer)
{
	uint32		steps = 0;

	Assert(pb_index_is_locked(buffer, PB_READ));
	for (;;)
	{
		Page		page = BufferGetPage(buffer);
		BlockNumber me = BufferGetBlockNumber(buffer);
		BlockNumber left = PbPageGetSpecial(page)->prev;
		int			level = PbPageGetSpecial(page)->level;

		if (left == PB_NONE || left == me)
		{
			UnlockReleaseBuffer(buffer);
			if (left == me)
				pb_index_corrupt(rel, me, -1, "The page is its own sibling.");
			return InvalidBuffer;
		}
		UnlockReleaseBuffer(buffer);
		CompatInjectionPoint("pbtree-to-left");
		CHECK_FOR_INTERRUPTS();
		buffer = pb_index_read(rel, left, PB_READ);
		check_kind(rel, buffer, level);
		for (int tries = 0; tries < 4; tries++)
		{
			page = BufferGetPage(buffer);
			if (!(PbPageGetSpecial(page)->flags & PB_PAGE_DELETED) &&
				PbPageGetSpecial(page)->next == me)
				return buffer;
			if (pb_page_is_rightmost(page))
				break;
			buffer = pb_search_right(rel, buffer, PB_READ);
		}
		UnlockReleaseBuffer(buffer);
		pb_search_count(rel, me, &steps);

		/*
		 * if this page was deleted, continue from the one that took over its
		 * keys
		 */
		buffer = pb_index_read(rel, me, PB_READ);
		while (PbPageGetSpecial(BufferGetPage(buffer))->flags & PB_PAGE_DELETED)
		{
			if (pb_page_is_rightmost(BufferGetPage(buffer)))
				pb_index_corrupt(rel, BufferGetBlockNumber(buffer), -1,
								 "The page is deleted, and has no right sibling.");
			buffer = pb_search_right(rel, buffer, PB_READ);
		}
	}
}
