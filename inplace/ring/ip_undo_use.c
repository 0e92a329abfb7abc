/*-------------------------------------------------------------------------
 * ip_undo_use.c
 *	  Getting room for undo records.
 *
 * ip_undo_use_prepare establishes U2 (see ip_ring.c) for a ring's oldest page
 * by visiting the rows, before the caller locks anything.  ip_undo_use_begin,
 * whose caller holds a data page, only checks it.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "ip_home.h"
#include "ip_rel.h"
#include "ip_space.h"
#include "ip_undo.h"
#include "ip_undo_use.h"
#include "ip_xid.h"

/* Prepare the next page when the current one has less than this left. */
#define UNDO_NEARLY_FULL	2048

/* A backend that has waited this often for another's ring makes its own. */
#define UNDO_MAX_WAITS		8

/*
 * Remember that the oldest page cannot be cleaned.  Then advance() removes it
 * from the ring.
 */
static void
remember_bad(IpRelCache *cache, const IpOldestPage *o)
{
	cache->undo_bad = o->block;
	cache->undo_bad_xid = o->newest_xid;
}

static bool
is_bad(const IpRelCache *cache, const IpOldestPage *o)
{
	return o->block == cache->undo_bad && o->newest_xid == cache->undo_bad_xid;
}

/*
 * Make the locked oldest page, which is old, the current one; newest is from
 * ip_ring_page_is_old.  Returns false if that is not possible.
 */
static bool
use_oldest(Relation rel, IpRelCache *cache, Buffer current, Buffer oldest,
		   uint16 slot, IpXid newest)
{
	BlockNumber block = BufferGetBlockNumber(oldest);
	IpOldestPage o;

	/* ip_undo_use_prepare may have cleaned it */
	o.block = cache->undo_clean;
	o.newest_xid = cache->undo_clean_xid;
	o.clean = true;
	if (!ip_ring_is_needed(BufferGetPage(oldest), block, &o))
	{
		ip_ring_recycle(rel, current, oldest, slot, newest);
		return true;
	}
	if (o.problem || is_bad(cache, &o))
		ip_ring_drop_oldest(rel, current, oldest, slot);
	return false;
}

/* Returns the next current page, locked; releases current. */
static Buffer
advance(Relation rel, IpRelCache *cache, Buffer current, uint16 slot)
{
	Buffer		oldest = ip_ring_lock_oldest(rel, current, slot);
	Buffer		result = InvalidBuffer;
	IpXid		newest;
	uint32		extent = IP_UNDO_MAX_EXTENT;

	if (oldest != current)
	{
		if (ip_ring_page_is_old(rel, BufferGetPage(oldest),
								BufferGetBlockNumber(oldest), &newest))
		{
			/* a page that is needed can be cleaned by ip_undo_use_prepare */
			if (use_oldest(rel, cache, current, oldest, slot, newest))
				result = oldest;
			extent = 1;
		}
		if (!BufferIsValid(result))
			UnlockReleaseBuffer(oldest);
	}
	cache->undo_clean = InvalidBlockNumber;
	if (!BufferIsValid(result))
		result = ip_ring_grow(rel, current, slot, extent);
	UnlockReleaseBuffer(current);
	cache->undo_current = BufferGetBlockNumber(result);
	return result;
}

/*
 * Returns the number of free bytes; 0 if the page's xids have become too old to
 * add new ones.
 */
static uint32
undo_free(Page page)
{
	uint64		base = ip_undo_xid_base(IpPageGetSpecial(page));

	return ip_xid_next() > base + IP_UNDO_XIDS ? 0 : ip_page_free(page);
}

/* Returns whether the oldest page is to be examined now. */
static bool
needs_oldest(const IpRelCache *cache)
{
	if (cache->undo_current != InvalidBlockNumber &&
		cache->undo_examined == cache->undo_current)
		return false;			/* it has been examined */
	return cache->undo_free < Max(UNDO_NEARLY_FULL, cache->undo_largest);
}

/*
 * Fill in o for a page of the slot that is not locked.  Returns false if the
 * page is not old, does not exist, or is damaged.
 */
static bool
examine_oldest(Relation rel, uint16 slot, BlockNumber block, IpOldestPage *o)
{
	Buffer		oldest = ip_undo_lock_page(rel, block, BUFFER_LOCK_SHARE, NULL);
	Page		page;
	IpXid		newest;
	bool		old;

	if (!BufferIsValid(oldest))
		return false;
	page = BufferGetPage(oldest);
	old = ip_ring_has(page, slot) &&
		ip_ring_page_is_old(rel, page, block, &newest);
	if (old)
		(void) ip_ring_is_needed(page, block, o);
	UnlockReleaseBuffer(oldest);
	return old && o->problem == NULL;
}

/*
 * Returns the oldest page's block, unless that is the current one, and what is
 * free on the current one.
 */
static BlockNumber
look_at_current(Buffer current, uint32 *free)
{
	BlockNumber block = IpPageGetSpecial(BufferGetPage(current))->u.undo.next;

	*free = undo_free(BufferGetPage(current));
	return block != BufferGetBlockNumber(current) ? block : InvalidBlockNumber;
}

/*
 * Returns the current page of another slot's ring, which is not locked, and, as
 * look_at_current does, its oldest page and free space.  Returns
 * InvalidBlockNumber if the current page is not found: this backend does not
 * report damage of such a ring.
 */
static BlockNumber
look_at_other(Relation rel, uint16 slot, IpMetaSlot ms, BlockNumber *oldest,
			  uint32 *free)
{
	Buffer		buffer = ip_ring_follow_slot(rel, ms, slot);
	BlockNumber current;

	if (!BufferIsValid(buffer))
		return InvalidBlockNumber;
	current = BufferGetBlockNumber(buffer);
	*oldest = look_at_current(buffer, free);
	UnlockReleaseBuffer(buffer);
	return current;
}

/*
 * Note what the current page, which the transaction reads for the first time,
 * says about the ring and its records.
 */
static void
learn_from_current(IpRelCache *cache, Page page)
{
	OffsetNumber max = PageGetMaxOffsetNumber(page);

	/* fewer records than before: others have used the whole ring since */
	if (max < cache->undo_count)
		cache->undo_examined = InvalidBlockNumber;
	/* a new connection does not know yet how large records are here */
	if (cache->undo_largest == 0)
	{
		for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
		{
			ItemId		lp = PageGetItemId(page, off);

			cache->undo_largest = Max(cache->undo_largest,
									  IP_UNDO_SPACE(ItemIdGetLength(lp)));
		}
	}
	cache->undo_count = max;
}

/*
 * Returns whether the ring's oldest page is old, and no row needs it any
 * longer.  Then this is noted in the cache.
 */
static bool
prepare_oldest(Relation rel, IpRelCache *cache, uint16 slot, BlockNumber block)
{
	IpOldestPage o;
	IpNeed		need;

	o.clean = false;
	if (!examine_oldest(rel, slot, block, &o) || is_bad(cache, &o))
		return false;
	need = ip_undo_use_clean_rows(rel, &o);
	/* damage of another ring, which we only try, concerns its users */
	if (need == IP_NEED_BAD && slot == cache->undo_slot)
		remember_bad(cache, &o);
	if (need != IP_NEED_NONE)
		return false;
	cache->undo_clean = block;
	cache->undo_clean_xid = o.newest_xid;
	return true;
}

/*
 * Use the slot's ring, which is another backend's, if its oldest page can be
 * used again.
 */
static bool
try_ring(Relation rel, IpRelCache *cache, uint16 slot, IpMetaSlot ms)
{
	BlockNumber oldest;
	uint32		free;
	BlockNumber current = look_at_other(rel, slot, ms, &oldest, &free);

	if (current == InvalidBlockNumber ||
		!prepare_oldest(rel, cache, slot, oldest))
		return false;
	cache->undo_slot = slot;
	cache->undo_current = cache->undo_examined = current;
	cache->undo_count = 0;
	cache->undo_free = free;
	return true;
}

/*
 * The cache's ring would have to grow.  If it is long already, use another long
 * ring that need not grow, or else our own.
 */
static void
change_ring(Relation rel, IpRelCache *cache)
{
	uint32		limit = IP_UNDO_TOLERATED(RelationGetNumberOfBlocks(rel));
	uint16		was = cache->undo_slot;
	IpMetaSlot	slots[IP_UNDO_SLOTS];

	ip_ring_read_slots(rel, slots);

	/* a ring within the limit may grow, but not another's if we have our own */
	if (!cache->undo_alone && slots[was].npages <= limit)
		return;
	ip_ring_use_own(cache);
	for (int i = 0; i < IP_UNDO_SLOTS && slots[was].npages > limit; i++)
	{
		uint16		slot = (ip_own_slot() + i) % IP_UNDO_SLOTS;

		if (slot != was && slots[slot].npages > limit &&
			try_ring(rel, cache, slot, slots[slot]))
			return;
	}
}

/*
 * Find the ring to write to: our own, else another one that exists, unless we
 * have had to wait for such rings.  Returns false if there is none.
 */
static bool
find_ring(Relation rel, IpRelCache *cache)
{
	IpMetaSlot	slots[IP_UNDO_SLOTS];
	bool		shares = !cache->undo_alone && ip_home_enabled;
	BlockNumber oldest;
	uint32		free;

	ip_ring_read_slots(rel, slots);
	for (int i = 0; i < (shares ? IP_UNDO_SLOTS : 1); i++)
	{
		uint16		slot = (ip_own_slot() + i) % IP_UNDO_SLOTS;

		BlockNumber current = slots[slot].entry;

		if (current != InvalidBlockNumber && slot != ip_own_slot())
			current = look_at_other(rel, slot, slots[slot], &oldest, &free);
		if (current == InvalidBlockNumber)
			continue;
		ip_rel_set_ring(cache, slot, current);
		return true;
	}
	return false;
}

void
ip_undo_use_prepare(Relation rel)
{
	IpRelCache *cache;
	BlockNumber oldest;
	Buffer		current;
	uint16		slot;

	Assert(ip_page_none_is_locked());
	ip_rel_check_format(rel);
	cache = ip_rel_cache(rel);

	/*
	 * The oldest page is prepared once for each current page, before
	 * ip_undo_use_begin needs it.  Between our transactions, others may have
	 * changed how full the current one is.  A slot without a ring is examined
	 * once in a transaction: the transaction's undo may all be at home.
	 */
	if (cache->undo_looked == CompatMyLocalXid &&
		(cache->undo_current == InvalidBlockNumber || !needs_oldest(cache)))
		return;
	if (cache->undo_waits >= UNDO_MAX_WAITS)
	{
		ip_ring_use_own(cache);
		cache->undo_waits = 0;
	}
	if (cache->undo_current == InvalidBlockNumber)
		(void) find_ring(rel, cache);
	cache->undo_looked = CompatMyLocalXid;
	if (cache->undo_current == InvalidBlockNumber)
		return;
	current = ip_ring_lock_current(rel, &cache->undo_current, cache->undo_slot,
								   BUFFER_LOCK_SHARE, NULL);
	if (!BufferIsValid(current))
		return;
	oldest = look_at_current(current, &cache->undo_free);
	learn_from_current(cache, BufferGetPage(current));
	UnlockReleaseBuffer(current);
	if (oldest == InvalidBlockNumber || !needs_oldest(cache))
		return;

	/*
	 * If the page is not old, a snapshot is held, probably for some time.  So
	 * one look is enough here; advance() looks again.
	 */
	cache->undo_examined = cache->undo_current;
	if (prepare_oldest(rel, cache, cache->undo_slot, oldest))
		return;
	slot = cache->undo_slot;
	change_ring(rel, cache);
	if (cache->undo_slot == slot && cache->undo_current != InvalidBlockNumber)
		ip_ring_grow_ahead(rel, cache->undo_current, slot, oldest);
}

/*
 * Returns the current page of the ring to write to, locked.  Creates a ring if
 * there is none.
 */
static Buffer
lock_current(Relation rel, IpRelCache *cache)
{
	Buffer		buffer;
	bool		waited = false;

	for (;;)
	{
		if (cache->undo_current != InvalidBlockNumber || find_ring(rel, cache))
			buffer = ip_ring_lock_current(rel, &cache->undo_current,
										  cache->undo_slot,
										  BUFFER_LOCK_EXCLUSIVE, &waited);
		else
		{
			ip_ring_use_own(cache);
			buffer = ip_ring_grow(rel, InvalidBuffer, cache->undo_slot, 1);
		}
		if (BufferIsValid(buffer))
			break;
	}
	cache->undo_current = BufferGetBlockNumber(buffer);
	if (waited && cache->undo_slot != ip_own_slot() &&
		++cache->undo_waits == UNDO_MAX_WAITS)
		cache->undo_looked = InvalidLocalTransactionId;
	return buffer;
}

Buffer
ip_undo_use_begin(Relation rel, uint32 size, OffsetNumber *off)
{
	IpRelCache *cache = ip_rel_cache(rel);
	BlockNumber expected = cache->undo_current;
	Buffer		buffer = lock_current(rel, cache);
	uint32		free = undo_free(BufferGetPage(buffer));

	if (cache->undo_current != expected || free < cache->undo_free)
		cache->undo_looked = InvalidLocalTransactionId;
	if (free < size)
	{
		buffer = advance(rel, cache, buffer, cache->undo_slot);
		free = undo_free(BufferGetPage(buffer));
	}
	Assert(free >= size);
	Assert(ip_ring_is_current(BufferGetPage(buffer), cache->undo_slot));
	Assert(ip_page_is_locked(BufferGetPage(buffer), true));
	cache->undo_free = free - size;
	cache->undo_largest = Max(cache->undo_largest, size);
	*off = PageGetMaxOffsetNumber(BufferGetPage(buffer)) + 1;
	return buffer;
}

/*
 * Returns how many of the first tids are on one page, in order of their
 * offsets.
 */
static int
same_page(const ItemPointerData *tids, int ntids)
{
	int			n = 1;

	Assert(ntids > 0);
	while (n < ntids &&
		   ItemPointerGetBlockNumber(&tids[n]) ==
		   ItemPointerGetBlockNumber(tids) &&
		   ItemPointerGetOffsetNumber(&tids[n]) >
		   ItemPointerGetOffsetNumber(&tids[n - 1]))
		n++;
	return n;
}

IpNeed
ip_undo_use_clean_rows(Relation rel, const IpOldestPage *o)
{
	IpNeed		need = IP_NEED_NONE;
	int			n;

	Assert(ip_page_none_is_locked());
	for (int i = 0; i < o->ntids; i += n)
	{
		IpNeed		of_page;

		n = same_page(&o->tids[i], o->ntids - i);
		of_page = ip_prune_rows(rel, &o->tids[i], n, o->block);
		need = Max(need, of_page);
	}
	return need;
}
