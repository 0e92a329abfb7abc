/*-------------------------------------------------------------------------
 * ip_undo_ring.c
 *	  The rings of pages that hold undo records.
 *
 * Each of the metapage's slots has a ring of undo pages in age order, linked
 * by "next"; the page behind the current one is the oldest.  When the current
 * page is full, the oldest is used again if nobody can need its records any
 * more, else the ring grows.  So undo discards itself.
 *
 * A page may be used again when
 *	U1. every xid in it precedes the removal horizon, and
 *	U2. no row depends on its records: no aborted change that was not put back,
 *		no overlaid bytes, no lock on top of an aborted change.
 * ip_undo_prepare establishes U2 by visiting the rows, before the caller locks
 * anything; ip_undo_begin, whose caller holds a data page, only checks it.
 *-------------------------------------------------------------------------
 */
#include "ip_compat.h"

#include "storage/freespace.h"

#include "ip_prune.h"
#include "ip_space.h"
#include "ip_undo.h"
#include "ip_wal.h"
#include "ip_xid.h"

/* Look for the next page when the current one has less than this left. */
#define UNDO_NEARLY_FULL	2048
/* Others may make a page the current one just now, but not that often. */
#define MAX_TRIES			1000
/* A ring grows by as many pages as it has, but by no more than this. */
#define UNDO_MAX_EXTENT		4
/* A page's xids stay within 2^31 of its newest; leave a wide margin. */
#define UNDO_MAX_XID_AGE	((IpXid) 1 << 29)

/* May the page be used again without a look at rows (U1)? */
static bool
page_is_old(Relation rel, Page page)
{
	return ip_xid_removable(rel, IpPageGetSpecial(page)->u.undo.newest_xid);
}

/* Must the record's row be visited before the record goes (U2)? */
static bool
record_is_needed(const IpUndoRec *rec)
{
	if (rec->flags & IP_REC_SAVED)
		return true;
	if (rec->kind == IP_UNDO_LOCK)
		return !ip_xid_did_commit(rec->prev_xid);
	return !ip_xid_did_commit(rec->xid);
}

/* A ring's oldest page, which is to be used again or to be freed. */
typedef struct OldestPage
{
	BlockNumber block;
	IpXid		newest_xid;
	bool		clean;			/* the rows that needed it have been visited */
	const char *problem;		/* with the record at off, which cannot be read; or NULL */
	OffsetNumber off;
	int			ntids;			/* those rows */
	ItemPointerData tids[MaxOffsetNumber];
} OldestPage;

/* Does any row need the page, as far as can be read?  Fills in o. */
static bool
is_needed(Page page, BlockNumber block, OldestPage *o)
{
	IpXid		newest = IpPageGetSpecial(page)->u.undo.newest_xid;
	uint8		buf[BLCKSZ];
	IpUndoRec	rec;
	bool		found;

	if (o->clean && o->block == block && o->newest_xid == newest)
		return false;
	o->block = block;
	o->newest_xid = newest;
	o->clean = false;
	o->problem = NULL;
	o->ntids = 0;
	for (o->off = FirstOffsetNumber; o->off <= PageGetMaxOffsetNumber(page); o->off++)
	{
		IpPtr		ptr = {block, o->off};

		o->problem = ip_undo_item(page, ptr, buf, &rec, &found);
		if (o->problem)
			return true;
		if (found && record_is_needed(&rec))
			o->tids[o->ntids++] = rec.row;
	}
	return o->ntids > 0;
}

/* The current page and number of pages of a slot's ring. */
static IpMetaSlot
read_slot(Relation rel, uint16 slot)
{
	Buffer		buffer = ReadBuffer(rel, IP_META_BLOCK);
	IpMetaSlot	result;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	result = IpPageGetMeta(BufferGetPage(buffer))->slots[slot];
	UnlockReleaseBuffer(buffer);
	return result;
}

/* The same for all slots. */
static void
read_slots(Relation rel, IpMetaSlot *slots)
{
	Buffer		buffer = ReadBuffer(rel, IP_META_BLOCK);

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	memcpy(slots, IpPageGetMeta(BufferGetPage(buffer))->slots, IP_UNDO_SLOTS * sizeof(IpMetaSlot));
	UnlockReleaseBuffer(buffer);
}

/* A page of the slot's ring? */
static bool
is_in_ring(Page page, uint16 slot)
{
	return ip_page_is_ours(page) && IpPageGetSpecial(page)->kind == IP_PAGE_UNDO &&
		IpPageGetSpecial(page)->u.undo.slot == slot;
}

static bool
is_current(Page page, uint16 slot)
{
	return is_in_ring(page, slot) && (IpPageGetSpecial(page)->u.undo.flags & IP_UNDO_CURRENT);
}

/* Can the metapage, or a page of a ring, say that the block is in the ring? */
static bool
is_possible(Relation rel, BlockNumber block)
{
	return block != IP_META_BLOCK && block != InvalidBlockNumber && ip_block_exists(rel, block);
}

/* Let the backend use its own ring again, if it does not. */
static void
use_own_ring(IpRelCache *cache)
{
	if (cache->undo_slot == ip_own_slot())
		return;
	cache->undo_slot = ip_own_slot();
	cache->undo_current = cache->undo_examined = InvalidBlockNumber;
	cache->undo_clean = InvalidBlockNumber;
	cache->undo_free = 0;
	cache->undo_looked = InvalidLocalTransactionId;
}

/*
 * The slot's current undo page, locked, or InvalidBuffer if it has no ring.
 * *block is where it was the last time, and becomes where it is.
 */
static Buffer
lock_current(Relation rel, BlockNumber *block, uint16 slot, int mode)
{
	for (int tries = 0;; tries++)
	{
		Buffer		buffer;

		if (*block == InvalidBlockNumber)
			*block = read_slot(rel, slot).current;
		if (*block == InvalidBlockNumber)
			return InvalidBuffer;
		/* VACUUM may have freed the ring, and cut off its page */
		if (ip_block_exists(rel, *block))
		{
			buffer = ip_read_buffer(rel, *block);
			LockBuffer(buffer, mode);
			if (is_current(BufferGetPage(buffer), slot))
				return buffer;
			UnlockReleaseBuffer(buffer);
		}
		/* others of the slot may make it the current one again just now, but not for long */
		if (tries > MAX_TRIES && read_slot(rel, slot).current == *block)
		{
			use_own_ring(ip_rel_cache(rel));
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("block %u of relation \"%s\" is not the current page of undo slot %u",
							*block, RelationGetRelationName(rel), slot)));
		}
		*block = InvalidBlockNumber;
		CHECK_FOR_INTERRUPTS();
	}
}

/* Set the metapage's slot as the change's last block, and apply. */
static void
finish_ring_change(Relation rel, IpChange *change, Buffer meta, uint16 slot,
				   BlockNumber current, uint32 npages)
{
	ip_op_slot(ip_change_block(change, meta, false), slot, current, npages);
	ip_change_apply(change);
	UnlockReleaseBuffer(meta);
}

static Buffer
lock_meta(Relation rel)
{
	Buffer		meta = ReadBuffer(rel, IP_META_BLOCK);

	LockBuffer(meta, BUFFER_LOCK_EXCLUSIVE);
	return meta;
}

/* Use the oldest page, which is locked, as the current one. */
static void
recycle(Relation rel, Buffer current, Buffer oldest, uint16 slot)
{
	IpSpecial  *old = IpPageGetSpecial(BufferGetPage(oldest));
	Buffer		meta = lock_meta(rel);
	BlockNumber block = BufferGetBlockNumber(oldest);
	IpChange	change;

	ip_change_begin(&change, rel, IP_XLOG_RING, InvalidTransactionId);
	change.conflict = IpXidIsFinal(old->u.undo.newest_xid) ? IP_XID_NONE : old->u.undo.newest_xid;
	ip_op_ring(ip_change_block(&change, current, false), block, 0);
	ip_op_init_undo(ip_change_block(&change, oldest, true), ip_next_xid() - 1, slot,
					IP_UNDO_CURRENT, old->u.undo.next);
	finish_ring_change(rel, &change, meta, slot, block,
					   IpPageGetMeta(BufferGetPage(meta))->slots[slot].npages);
}

/* Up to n pages, free ones or new ones; how many. */
static int
get_pages(Relation rel, Buffer *pages, int n)
{
	int			got = 0;

	while (got < n)
	{
		pages[got] = ip_space_find_free(rel);
		if (!BufferIsValid(pages[got]))
			break;
		got++;
	}
	if (got == 0)
	{
		ip_extend(rel, pages, n);
		got = n;
	}
	return got;
}

/* The pages of all rings. */
static uint32
count_pages(Page meta)
{
	uint32		pages = 0;

	for (uint16 slot = 0; slot < IP_UNDO_SLOTS; slot++)
		pages += IpPageGetMeta(meta)->slots[slot].npages;
	return pages;
}

/*
 * Rings that keep growing hold versions that VACUUM will have to remove: count
 * them as dead rows, so that autovacuum comes.
 */
static void
report_growth(Relation rel, uint32 pages, int n)
{
	if (ip_undo_beyond(pages, RelationGetNumberOfBlocks(rel)) > 0)
		pgstat_update_heap_dead_tuples(rel, -n * IP_UNDO_RECORDS_PER_PAGE);
}

/*
 * Put the locked pages between current (invalid: there is no ring yet) and the
 * oldest page; the first of them becomes the current one.  Releases meta, and the
 * pages but the first.
 */
static void
add_pages(Relation rel, Buffer current, Buffer meta, uint16 slot, Buffer *pages, int n)
{
	IpMetaSlot	ms = IpPageGetMeta(BufferGetPage(meta))->slots[slot];
	uint32		total = count_pages(BufferGetPage(meta)) + n;
	BlockNumber last_next;
	IpChange	change;

	last_next = BufferIsValid(current) ?
		IpPageGetSpecial(BufferGetPage(current))->u.undo.next : BufferGetBlockNumber(pages[0]);
	ip_change_begin(&change, rel, IP_XLOG_RING, InvalidTransactionId);
	for (int i = 0; i < n; i++)
		ip_op_init_undo(ip_change_block(&change, pages[i], true),
						i == 0 ? ip_next_xid() - 1 : IP_XID_NONE, slot,
						i == 0 ? IP_UNDO_CURRENT : 0,
						i + 1 < n ? BufferGetBlockNumber(pages[i + 1]) : last_next);
	if (BufferIsValid(current))
		ip_op_ring(ip_change_block(&change, current, false), BufferGetBlockNumber(pages[0]), 0);
	finish_ring_change(rel, &change, meta, slot, BufferGetBlockNumber(pages[0]), ms.npages + n);
	for (int i = 1; i < n; i++)
		UnlockReleaseBuffer(pages[i]);
	report_growth(rel, total, n);
}

/*
 * Make the ring longer, by up to so many pages, or make it; its new current page.  If
 * another backend has made the slot's ring meanwhile, InvalidBuffer.
 */
static Buffer
grow(Relation rel, Buffer current, uint16 slot, uint32 extent)
{
	Buffer		pages[UNDO_MAX_EXTENT];
	Buffer		meta = lock_meta(rel);
	IpMetaSlot	ms = IpPageGetMeta(BufferGetPage(meta))->slots[slot];
	int			n;

	if (!BufferIsValid(current) && ms.current != InvalidBlockNumber)
	{
		UnlockReleaseBuffer(meta);
		return InvalidBuffer;
	}
	n = get_pages(rel, pages, Max(1, Min(ms.npages, extent)));
	add_pages(rel, current, meta, slot, pages, n);
	return pages[0];
}

/* The page behind the current one of the cache's ring, locked. */
static Buffer
lock_oldest(Relation rel, IpRelCache *cache, BlockNumber block)
{
	uint16		slot = cache->undo_slot;
	Buffer		oldest;

	if (is_possible(rel, block))
	{
		oldest = ip_read_buffer(rel, block);
		LockBuffer(oldest, BUFFER_LOCK_EXCLUSIVE);
		if (is_in_ring(BufferGetPage(oldest), slot))
			return oldest;
	}
	use_own_ring(cache);
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("undo ring %u of relation \"%s\" leads to block %u, which is not in it",
					slot, RelationGetRelationName(rel), block)));
}

/* Has ip_undo_prepare made sure that no row needs the page, or is that so anyway? */
static bool
is_clean(IpRelCache *cache, Page page, BlockNumber block)
{
	OldestPage	o;

	o.block = cache->undo_clean;
	o.newest_xid = cache->undo_clean_xid;
	o.clean = true;
	return !is_needed(page, block, &o);
}

/* The next current page, locked; releases current. */
static Buffer
advance(Relation rel, IpRelCache *cache, Buffer current, uint16 slot)
{
	BlockNumber next = IpPageGetSpecial(BufferGetPage(current))->u.undo.next;
	Buffer		result = InvalidBuffer;
	uint32		extent = UNDO_MAX_EXTENT;

	if (next != BufferGetBlockNumber(current))
	{
		Buffer		oldest = lock_oldest(rel, cache, next);
		bool		old = page_is_old(rel, BufferGetPage(oldest));

		if (old && is_clean(cache, BufferGetPage(oldest), next))
		{
			recycle(rel, current, oldest, slot);
			result = oldest;
		}
		else
		{
			/* ip_undo_prepare can clean it the next time */
			if (old)
				extent = 1;
			UnlockReleaseBuffer(oldest);
		}
	}
	cache->undo_clean = InvalidBlockNumber;
	if (!BufferIsValid(result))
		result = grow(rel, current, slot, extent);
	UnlockReleaseBuffer(current);
	cache->undo_current = BufferGetBlockNumber(result);
	return result;
}

/* Free bytes; none if the page's xids have become too old to add new ones. */
static uint32
undo_free(Page page)
{
	IpXid		newest = IpPageGetSpecial(page)->u.undo.newest_xid;

	return newest + UNDO_MAX_XID_AGE < ip_next_xid() ? 0 : ip_page_free(page);
}

/* Is it time to look at the oldest page? */
static bool
needs_oldest(const IpRelCache *cache)
{
	if (cache->undo_current != InvalidBlockNumber && cache->undo_examined == cache->undo_current)
		return false;			/* we have */
	return cache->undo_free < Max(UNDO_NEARLY_FULL, cache->undo_largest);
}

/* Fill in o for a page of the slot that is not locked; false if it is not old, not there, or damaged. */
static bool
examine_oldest(Relation rel, uint16 slot, BlockNumber block, OldestPage *o)
{
	Buffer		oldest;
	Page		page;
	bool		old;

	if (!is_possible(rel, block))
		return false;
	oldest = ip_read_buffer(rel, block);
	page = BufferGetPage(oldest);
	LockBuffer(oldest, BUFFER_LOCK_SHARE);
	old = is_in_ring(page, slot) && page_is_old(rel, page);
	if (old)
		(void) is_needed(page, block, o);
	UnlockReleaseBuffer(oldest);
	return old && o->problem == NULL;
}

/* How many of the first of tids are on one page, in order of their offsets. */
static int
same_page(const ItemPointerData *tids, int ntids)
{
	int			n = 1;

	while (n < ntids &&
		   ItemPointerGetBlockNumber(&tids[n]) == ItemPointerGetBlockNumber(tids) &&
		   ItemPointerGetOffsetNumber(&tids[n]) > ItemPointerGetOffsetNumber(&tids[n - 1]))
		n++;
	return n;
}

/* Clean rows that need an undo page; do none of them need it any more? */
static bool
clean_rows(Relation rel, const ItemPointerData *tids, int ntids, BlockNumber block)
{
	bool		clean = true;
	int			n;

	for (int i = 0; i < ntids; i += n)
	{
		n = same_page(&tids[i], ntids - i);
		clean &= ip_prune_rows(rel, &tids[i], n, block);
	}
	return clean;
}

/* The oldest page's block, unless that is the current one; what is free on the current one. */
static BlockNumber
look_at_current(Buffer current, uint32 *free)
{
	BlockNumber block = IpPageGetSpecial(BufferGetPage(current))->u.undo.next;

	*free = undo_free(BufferGetPage(current));
	return block != BufferGetBlockNumber(current) ? block : InvalidBlockNumber;
}

/* Is the ring's oldest page old, and does no row need it any more?  Then cache is set to that. */
static bool
prepare_oldest(Relation rel, IpRelCache *cache, uint16 slot, BlockNumber block)
{
	OldestPage	o;

	o.clean = false;
	if (!examine_oldest(rel, slot, block, &o) || !clean_rows(rel, o.tids, o.ntids, block))
		return false;
	cache->undo_clean = block;
	cache->undo_clean_xid = o.newest_xid;
	return true;
}

/*
 * Use the slot's ring, if its oldest page can be used again.  The ring is somebody
 * else's: where it is damaged, that is not for us to report, and a current page that
 * is another one by now is not worth waiting for.
 */
static bool
try_ring(Relation rel, IpRelCache *cache, uint16 slot, BlockNumber current)
{
	BlockNumber oldest = InvalidBlockNumber;
	uint32		free;
	Buffer		buffer;

	if (!is_possible(rel, current))
		return false;
	buffer = ip_read_buffer(rel, current);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (is_current(BufferGetPage(buffer), slot))
		oldest = look_at_current(buffer, &free);
	UnlockReleaseBuffer(buffer);
	if (!prepare_oldest(rel, cache, slot, oldest))
		return false;
	cache->undo_slot = slot;
	cache->undo_current = cache->undo_examined = current;
	cache->undo_free = free;
	return true;
}

/*
 * The cache's ring would have to grow.  If it is long already, use another long one
 * that need not grow, or else our own.
 */
static void
change_ring(Relation rel, IpRelCache *cache)
{
	uint32		limit = IP_UNDO_TOLERATED(RelationGetNumberOfBlocks(rel));
	uint16		was = cache->undo_slot;
	IpMetaSlot	slots[IP_UNDO_SLOTS];

	read_slots(rel, slots);
	use_own_ring(cache);
	for (int i = 0; i < IP_UNDO_SLOTS && slots[was].npages > limit; i++)
	{
		uint16		slot = (ip_own_slot() + i) % IP_UNDO_SLOTS;

		if (slot != was && slots[slot].npages > limit &&
			try_ring(rel, cache, slot, slots[slot].current))
			return;
	}
}

void
ip_undo_prepare(Relation rel)
{
	IpRelCache *cache = ip_rel_cache(rel);
	uint16		slot = cache->undo_slot;
	BlockNumber oldest;
	Buffer		current;

	/*
	 * The oldest page is prepared once for each current page, before ip_undo_begin needs
	 * it; how full the current one is, others may have changed between our transactions.
	 */
	if (cache->undo_looked == CompatMyLocalXid && !needs_oldest(cache))
		return;
	cache->undo_looked = CompatMyLocalXid;
	current = lock_current(rel, &cache->undo_current, slot, BUFFER_LOCK_SHARE);
	if (!BufferIsValid(current))
		return;
	oldest = look_at_current(current, &cache->undo_free);
	UnlockReleaseBuffer(current);
	if (oldest == InvalidBlockNumber || !needs_oldest(cache))
		return;
	/* not old: a snapshot is held, probably for longer; advance() will look again */
	cache->undo_examined = cache->undo_current;
	if (!prepare_oldest(rel, cache, slot, oldest))
		change_ring(rel, cache);
}

Buffer
ip_undo_begin(Relation rel, uint32 size, OffsetNumber *off)
{
	IpRelCache *cache = ip_rel_cache(rel);
	uint16		slot = cache->undo_slot;
	BlockNumber expected = cache->undo_current;
	uint32		free;
	Buffer		buffer;

	do
	{
		buffer = lock_current(rel, &cache->undo_current, slot, BUFFER_LOCK_EXCLUSIVE);
		if (!BufferIsValid(buffer))
			buffer = grow(rel, InvalidBuffer, slot, 1);
	} while (!BufferIsValid(buffer));
	cache->undo_current = BufferGetBlockNumber(buffer);
	free = undo_free(BufferGetPage(buffer));
	if (cache->undo_current != expected || free < cache->undo_free)
		cache->undo_looked = InvalidLocalTransactionId;
	if (free < size)
	{
		buffer = advance(rel, cache, buffer, slot);
		free = undo_free(BufferGetPage(buffer));
	}
	Assert(free >= size);
	cache->undo_free = free - size;
	cache->undo_largest = Max(cache->undo_largest, size);
	*off = PageGetMaxOffsetNumber(BufferGetPage(buffer)) + 1;
	return buffer;
}

/* ---- shrinking -------------------------------------------------------------------- */

/* Take the oldest page, which is locked and may be the current one, out of the ring. */
static void
free_oldest(Relation rel, Buffer current, Buffer oldest, uint16 slot)
{
	IpSpecial  *old = IpPageGetSpecial(BufferGetPage(oldest));
	Buffer		meta = lock_meta(rel);
	IpMetaSlot	ms = IpPageGetMeta(BufferGetPage(meta))->slots[slot];
	IpChange	change;

	ip_change_begin(&change, rel, IP_XLOG_RING, InvalidTransactionId);
	change.conflict = IpXidIsFinal(old->u.undo.newest_xid) ? IP_XID_NONE : old->u.undo.newest_xid;
	if (current == oldest)
		ms.current = InvalidBlockNumber;
	else
		ip_op_ring(ip_change_block(&change, current, false), old->u.undo.next, IP_UNDO_CURRENT);
	ip_op_simple(ip_change_block(&change, oldest, true), IP_OP_INIT_FREE);
	finish_ring_change(rel, &change, meta, slot, ms.current, ms.npages - 1);
}

/*
 * Free the slot's oldest page if all its xids precede limit and no row needs it;
 * false if not.  Then o->ntids, if it is not 0, are rows that need it.
 */
static bool
try_free_oldest(Relation rel, uint16 slot, IpXid limit, OldestPage *o)
{
	BlockNumber at = InvalidBlockNumber;
	Buffer		current = lock_current(rel, &at, slot, BUFFER_LOCK_EXCLUSIVE);
	Buffer		oldest = current;
	bool		freed;
	BlockNumber block;
	Page		page;

	o->ntids = 0;
	o->problem = NULL;
	if (!BufferIsValid(current))
		return false;
	block = IpPageGetSpecial(BufferGetPage(current))->u.undo.next;
	if (block != BufferGetBlockNumber(current))
	{
		oldest = ip_read_buffer(rel, block);
		LockBuffer(oldest, BUFFER_LOCK_EXCLUSIVE);
	}
	page = BufferGetPage(oldest);
	freed = ip_page_kind(rel, block, page) == IP_PAGE_UNDO &&
		IpPageGetSpecial(page)->u.undo.newest_xid < limit && page_is_old(rel, page) &&
		!is_needed(page, block, o);
	o->block = block;
	if (o->problem)
		ip_undo_corrupted(rel, (IpPtr) {block, o->off}, o->problem);
	if (freed)
		free_oldest(rel, current, oldest, slot);
	if (oldest != current)
		UnlockReleaseBuffer(oldest);
	UnlockReleaseBuffer(current);
	return freed;
}

/* Free what can be freed of one ring; how many pages. */
static BlockNumber
shrink_ring(Relation rel, uint16 slot, IpXid limit, IpFreeBlocks *lowest)
{
	OldestPage	o = {.block = InvalidBlockNumber};
	BlockNumber freed = 0;

	for (;;)
	{
		compat_vacuum_delay_point(false);
		if (try_free_oldest(rel, slot, limit, &o))
		{
			RecordPageWithFreeSpace(rel, o.block, IP_FREE_PAGE_SPACE);
			ip_note_free_block(lowest, o.block);
			freed++;
			continue;
		}
		if (o.ntids == 0)
			return freed;
		o.clean = clean_rows(rel, o.tids, o.ntids, o.block);
		if (!o.clean)
			return freed;
	}
}

/* New records go to the free block "to", if it is before the current page. */
static bool
move_ring(Relation rel, uint16 slot, BlockNumber to)
{
	BlockNumber at = InvalidBlockNumber;
	Buffer		current = lock_current(rel, &at, slot, BUFFER_LOCK_EXCLUSIVE);
	bool		moved = false;
	Buffer		page;

	if (!BufferIsValid(current))
		return false;
	if (to < BufferGetBlockNumber(current))
	{
		page = ip_space_try_free(rel, to);
		if (BufferIsValid(page))
		{
			add_pages(rel, current, lock_meta(rel), slot, &page, 1);
			UnlockReleaseBuffer(page);
			moved = true;
		}
	}
	UnlockReleaseBuffer(current);
	return moved;
}

BlockNumber
ip_undo_pages(Relation rel)
{
	Buffer		meta;
	BlockNumber pages;

	ip_check_meta(rel);
	if (rel->rd_amcache == NULL)
		return 0;				/* nobody has written to the table yet */
	meta = ReadBuffer(rel, IP_META_BLOCK);
	LockBuffer(meta, BUFFER_LOCK_SHARE);
	pages = count_pages(BufferGetPage(meta));
	UnlockReleaseBuffer(meta);
	return pages;
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
