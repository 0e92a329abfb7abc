/*-------------------------------------------------------------------------
 * ip_ring.c
 *	  The rings of pages that hold undo records.
 *
 * Each of the metapage's slots has a ring of undo pages in age order, linked
 * by "next"; the page behind the current one is the oldest.  When the current
 * page is full, the oldest is used again if its records are not needed any
 * longer; otherwise the ring grows.  So undo discards itself.
 *
 * A page may be used again when
 *	U1. every xid in it precedes the removal horizon, or has aborted, and
 *	U2. no row depends on its records: no aborted change that was not rolled
 *		back, no overlaid bytes.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "common/hashfn.h"
#include "storage/freespace.h"

#include "ip_change.h"
#include "ip_holder.h"
#include "ip_rel.h"
#include "ip_ring.h"
#include "ip_space.h"
#include "ip_undo.h"
#include "ip_xid.h"

/*
 * Other backends may make a page the current one at this moment, but not this
 * often, nor for this long: from SOME_TRIES on, there is a millisecond between
 * two tries.
 */
#define SOME_TRIES			50
#define MAX_TRIES			1000

/*
 * The metapage learns of a new current page when the ring changes otherwise,
 * and of one in TELL_EVERY, whatever pattern the block numbers have.
 */
#define TELL_EVERY			8
#define is_told(block)		(murmurhash32(block) % TELL_EVERY == 0)

/*
 * Within this number of pages, there is one that the metapage has learnt of,
 * but for one case in millions.
 */
#define TELL_SURELY			(16 * TELL_EVERY)

/*
 * Returns whether all see the page's changes that have not aborted.  *newest
 * becomes the newest of their xids, or IP_XID_NONE.  Readers below an aborted
 * change, which has been rolled back (U2), read the row again if they do not
 * find its record, whatever their snapshots are.
 */
static bool
others_are_old(Relation rel, Page page, BlockNumber block, IpXid *newest)
{
	static uint8 buf[BLCKSZ];
	IpUndoRec	rec;
	bool		found;

	*newest = IP_XID_NONE;
	for (OffsetNumber off = FirstOffsetNumber;
		 off <= PageGetMaxOffsetNumber(page); off++)
	{
		IpPtr		ptr = {block, off};

		if (ip_undo_item(page, ptr, buf, &rec, &found) != NULL)
			return false;
		if (!found || ip_xid_status_locked(rec.xid) == IP_STATUS_ABORTED)
			continue;
		*newest = Max(*newest, Max(rec.xid, rec.prev_xid));
		if (!ip_xid_removable(rel, *newest))
			return false;
	}
	return true;
}

bool
ip_ring_page_is_old(Relation rel, Page page, BlockNumber block, IpXid *newest)
{
	Assert(ip_page_is_locked(page, false));
	Assert(IpPageGetSpecial(page)->kind == IP_PAGE_UNDO);
	*newest = IpPageGetSpecial(page)->u.undo.newest_xid;
	if (ip_xid_removable(rel, *newest))
		return true;

	/*
	 * A caller that has the page's rows cleaned, and comes back, must see
	 * whether they still are clean.  An older xid may have added records to
	 * the current page, but a page that is used again gets a newer xid.
	 */
	return !(IpPageGetSpecial(page)->u.undo.flags & IP_UNDO_CURRENT) &&
		*newest + 1 < ip_xid_next() && others_are_old(rel, page, block, newest);
}

/*
 * Returns whether the record's row must be visited before the record is removed
 * (U2).
 */
static bool
record_is_needed(const IpUndoRec *rec)
{
	return (rec->flags & IP_REC_SAVED) || ip_xid_may_be_on_rows(rec->xid);
}

bool
ip_ring_is_needed(Page page, BlockNumber block, IpOldestPage *o)
{
	IpXid		newest = IpPageGetSpecial(page)->u.undo.newest_xid;
	uint8		buf[BLCKSZ];
	IpUndoRec	rec;
	bool		found;

	Assert(ip_page_is_locked(page, false));
	Assert(IpPageGetSpecial(page)->kind == IP_PAGE_UNDO);
	if (o->clean && o->block == block && o->newest_xid == newest)
		return false;
	o->block = block;
	o->newest_xid = newest;
	o->clean = false;
	o->problem = NULL;
	o->ntids = 0;
	for (o->off = FirstOffsetNumber; o->off <= PageGetMaxOffsetNumber(page);
		 o->off++)
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

/*
 * Check without its lock whether a page seems to be in the slot's ring.  If the
 * links of two rings are damaged and lead to each other's current page, which
 * the rings' users have locked, these must not wait for each other.
 */
static bool
seems_of_ring(Relation rel, BlockNumber block, uint16 slot)
{
	volatile IpSpecial *special;
	Buffer		buffer;
	bool		seems;

	if (block == IP_META_BLOCK || block == InvalidBlockNumber)
		return false;
	buffer = ip_rel_read_soft(rel, block, NULL);
	if (BufferIsInvalid(buffer))
		return false;
	special = IpPageGetSpecial(BufferGetPage(buffer));
	seems = special->kind == IP_PAGE_UNDO && special->u.undo.slot == slot;
	ReleaseBuffer(buffer);
	return seems;
}

Buffer
ip_ring_lock_oldest(Relation rel, Buffer current, uint16 slot)
{
	BlockNumber block = IpPageGetSpecial(BufferGetPage(current))->u.undo.next;
	Buffer		oldest;

	Assert(ip_page_is_locked(BufferGetPage(current), true));
	Assert(ip_ring_is_current(BufferGetPage(current), slot));
	if (block == BufferGetBlockNumber(current))
		return current;
	oldest = seems_of_ring(rel, block, slot) ?
		ip_undo_lock_page(rel, block, BUFFER_LOCK_EXCLUSIVE, NULL) :
		InvalidBuffer;
	if (BufferIsValid(oldest))
	{
		if (ip_ring_has(BufferGetPage(oldest), slot))
			return oldest;
		UnlockReleaseBuffer(oldest);
	}
	ip_ring_drop_oldest(rel, current, InvalidBuffer, slot);
	return current;
}

/*
 * Returns where to start the search for the current page.  A metapage that was
 * made again does not know how many pages the ring has.
 */
static IpMetaSlot
from_slot(IpMetaSlot ms)
{
	ms.npages = Max(ms.npages, TELL_SURELY);
	return ms;
}

Buffer
ip_ring_follow_slot(Relation rel, IpMetaSlot ms, uint16 slot)
{
	return ip_ring_follow(rel, from_slot(ms), slot, BUFFER_LOCK_SHARE, NULL);
}

/* Read what the metapage says of a slot's ring. */
static IpMetaSlot
read_slot(Relation rel, uint16 slot)
{
	IpMetaSlot	slots[IP_UNDO_SLOTS];

	Assert(slot < IP_UNDO_SLOTS);
	ip_ring_read_slots(rel, slots);
	return slots[slot];
}

void
ip_ring_read_slots(Relation rel, IpMetaSlot *slots)
{
	Buffer		meta = ip_rel_lock_meta(rel, BUFFER_LOCK_SHARE);

	for (int i = 0; !BufferIsValid(meta) && i < IP_UNDO_SLOTS; i++)
	{
		slots[i].entry = InvalidBlockNumber;
		slots[i].npages = 0;
	}
	if (!BufferIsValid(meta))
		return;
	memcpy(slots, IpPageGetMeta(BufferGetPage(meta))->slots,
		   IP_UNDO_SLOTS * sizeof(IpMetaSlot));
	UnlockReleaseBuffer(meta);
}

bool
ip_ring_has(Page page, uint16 slot)
{
	Assert(ip_page_is_locked(page, false));
	Assert(slot < IP_UNDO_SLOTS);
	/* no record is added to a page with xids that are in the future */
	return ip_page_is_ours(page) &&
		IpPageGetSpecial(page)->kind == IP_PAGE_UNDO &&
		IpPageGetSpecial(page)->u.undo.slot == slot &&
		IpPageGetSpecial(page)->u.undo.newest_xid < ip_xid_next();
}

bool
ip_ring_is_current(Page page, uint16 slot)
{
	return ip_ring_has(page, slot) &&
		(IpPageGetSpecial(page)->u.undo.flags & IP_UNDO_CURRENT);
}

Buffer
ip_ring_follow(Relation rel, IpMetaSlot from, uint16 slot, int mode,
			   bool *waited)
{
	for (uint32 n = 0; n < from.npages && from.entry != InvalidBlockNumber; n++)
	{
		Buffer		buffer = ip_undo_lock_page(rel, from.entry, mode, waited);

		CHECK_FOR_INTERRUPTS();
		if (!BufferIsValid(buffer) ||
			ip_ring_is_current(BufferGetPage(buffer), slot))
			return buffer;
		from.entry = ip_ring_has(BufferGetPage(buffer), slot) ?
			IpPageGetSpecial(BufferGetPage(buffer))->u.undo.next :
			InvalidBlockNumber;
		UnlockReleaseBuffer(buffer);
	}
	return InvalidBuffer;
}

/*
 * A page on the way is damaged: search the current one among the pages that the
 * metapage lists.
 */
static Buffer
search_current(Relation rel, uint16 slot, int mode, bool *waited)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	IpRuns	   *runs = ip_ring_read_runs(rel, nblocks);
	Buffer		buffer = InvalidBuffer;

	for (uint32 i = 0; runs != NULL && i < runs->n && !BufferIsValid(buffer);
		 i++)
	{
		IpMetaSlot	at = {runs->runs[i].first, 1};

		for (; at.entry - runs->runs[i].first < runs->runs[i].n &&
			 !BufferIsValid(buffer); at.entry++)
			buffer = ip_ring_follow(rel, at, slot, mode, waited);
	}
	if (runs != NULL)
		pfree(runs);
	return buffer;
}

void
ip_ring_use_own(IpRelCache *cache)
{
	cache->undo_alone = true;
	if (cache->undo_slot != ip_own_slot())
		ip_rel_set_ring(cache, ip_own_slot(), InvalidBlockNumber);
}

/*
 * Set the metapage's slot in the change's last block; further operations on the
 * metapage may follow.
 */
static ByteWriter *
change_slot(IpChange *change, Buffer meta, uint16 slot, BlockNumber entry,
			uint32 npages)
{
	ByteWriter *ops = ip_change_block(change, meta, false);

	Assert(BufferGetBlockNumber(meta) == IP_META_BLOCK);
	ip_op_slot(ops, slot, entry, npages);
	return ops;
}

static void
apply_ring_change(IpChange *change, Buffer meta)
{
	ip_change_apply(change);
	if (BufferIsValid(meta))
		UnlockReleaseBuffer(meta);
}

/*
 * There is no current page at entry or behind it.  From now on the slot has no
 * ring, unless it leads elsewhere meanwhile: then returns false.  The pages
 * stay, for the rows that need them, until ip_undo_shrink_lost frees them.
 */
static bool
abandon(Relation rel, uint16 slot, BlockNumber entry)
{
	Buffer		meta = ip_rel_make_meta(rel);
	BlockNumber now = IpPageGetMeta(BufferGetPage(meta))->slots[slot].entry;
	IpChange	change;

	if (now != entry)
	{
		UnlockReleaseBuffer(meta);
		return now == InvalidBlockNumber;
	}
	ip_change_begin(&change, rel, IP_XLOG_RING, InvalidTransactionId);
	(void) change_slot(&change, meta, slot, InvalidBlockNumber, 0);
	apply_ring_change(&change, meta);
	/* not to the client, which might keep us waiting while we hold locks */
	ereport(LOG_SERVER_ONLY,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("undo ring %u of relation \"%s\" is given up: it has no current page at block %u or behind it",
					slot, RelationGetRelationName(rel), entry),
			 ip_page_check_hint(rel)));
	return true;
}

Buffer
ip_ring_lock_current(Relation rel, BlockNumber *block, uint16 slot, int mode,
					 bool *waited)
{
	for (int tries = 0;; tries++)
	{
		/*
		 * The current page is near to where it was the last time; otherwise
		 * the metapage knows better.
		 */
		IpMetaSlot	from = {*block, TELL_EVERY};
		Buffer		buffer;

		if (*block == InvalidBlockNumber)
			from = from_slot(read_slot(rel, slot));
		if (from.entry == InvalidBlockNumber)
			return InvalidBuffer;

		/*
		 * VACUUM may have freed the ring; its page may have been cut off, or
		 * be the data page that our caller holds.
		 */
		buffer = ip_ring_follow(rel, from, slot, mode, waited);

		/*
		 * Other backends of the slot may make the next page the current one
		 * at this moment, but not for long.
		 */
		if (!BufferIsValid(buffer) && tries > MAX_TRIES)
			buffer = search_current(rel, slot, mode, waited);
		if (BufferIsValid(buffer))
		{
			*block = BufferGetBlockNumber(buffer);
			return buffer;
		}
		*block = InvalidBlockNumber;
		if (tries > MAX_TRIES && abandon(rel, slot, from.entry))
			return InvalidBuffer;
		if (tries >= SOME_TRIES)
			pg_usleep(1000);
		CHECK_FOR_INTERRUPTS();
	}
}

void
ip_ring_recycle(Relation rel, Buffer current, Buffer oldest, uint16 slot,
				IpXid newest)
{
	IpSpecial  *old = IpPageGetSpecial(BufferGetPage(oldest));
	Buffer		meta = InvalidBuffer;
	BlockNumber block = BufferGetBlockNumber(oldest);
	IpChange	change;

	/* I9: the order of the ring; the caller has checked U1 and U2 */
	Assert(ip_ring_is_current(BufferGetPage(current), slot) &&
		   oldest != current);
	Assert(ip_ring_has(BufferGetPage(oldest), slot));
	Assert(IpPageGetSpecial(BufferGetPage(current))->u.undo.next == block);
	if (is_told(block))
		meta = ip_rel_lock_meta(rel, BUFFER_LOCK_EXCLUSIVE);
	ip_change_begin(&change, rel, IP_XLOG_RING, InvalidTransactionId);
	change.conflict = newest;
	change.named = ip_xid_next() - 1;
	ip_op_ring(ip_change_block(&change, current, false), block, 0);
	ip_op_init_undo(ip_change_block(&change, oldest, true), change.named, slot,
					IP_UNDO_CURRENT, old->u.undo.next);
	if (BufferIsValid(meta))
	{
		IpMetaSlot	ms = IpPageGetMeta(BufferGetPage(meta))->slots[slot];

		(void) change_slot(&change, meta, slot, block, ms.npages);
	}
	apply_ring_change(&change, meta);
}

/* Get up to n pages, either free ones or new ones.  Returns their number. */
static int
get_pages(Relation rel, Buffer *pages, int n)
{
	uint32		extended;
	int			got = 0;

	while (got < n)
	{
		pages[got] = ip_space_find_free(rel);
		if (!BufferIsValid(pages[got]))
			break;
		got++;
	}
	if (got > 0)
		return got;
	while (got < n)
		pages[got++] = ip_rel_extend(rel, NULL, 1, &extended);
	return got;
}

/* Returns the number of pages of all rings. */
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
 * these as dead rows, so that autovacuum starts.
 */
static void
report_growth(Relation rel, uint32 pages, int n)
{
	if (ip_undo_beyond(pages, RelationGetNumberOfBlocks(rel)) > 0)
		pgstat_update_heap_dead_tuples(rel, -n * IP_UNDO_RECORDS_PER_PAGE);
}

/*
 * Note in the metapage's list that the pages are undo pages now, neighbours
 * together.
 */
static void
put_pages(ByteWriter *meta, const Buffer *pages, int n)
{
	for (int i = 0, len; i < n; i += len)
	{
		BlockNumber first = BufferGetBlockNumber(pages[i]);

		len = 1;
		while (i + len < n &&
			   BufferGetBlockNumber(pages[i + len]) == first + len)
			len++;
		ip_op_undo_pages(meta, first, len);
	}
}

uint32
ip_ring_add_pages(Relation rel, Buffer current, Buffer meta, uint16 slot,
				  Buffer *pages, int n, bool ahead)
{
	IpMetaSlot	ms = IpPageGetMeta(BufferGetPage(meta))->slots[slot];
	uint32		total = count_pages(BufferGetPage(meta)) + n;
	BlockNumber first = BufferGetBlockNumber(pages[0]);
	BlockNumber last_next;
	IpChange	change;

	Assert(n > 0 && n <= IP_UNDO_MAX_EXTENT);
	Assert(!ahead || BufferIsValid(current));
	Assert(!BufferIsValid(current) ||
		   ip_ring_is_current(BufferGetPage(current), slot));
	last_next = BufferIsValid(current) ?
		IpPageGetSpecial(BufferGetPage(current))->u.undo.next : first;
	ip_change_begin(&change, rel, IP_XLOG_RING, InvalidTransactionId);
	if (!ahead)
		change.named = ip_xid_next() - 1;
	for (int i = 0; i < n; i++)
		ip_op_init_undo(ip_change_block(&change, pages[i], true),
						i == 0 ? change.named : IP_XID_NONE, slot,
						i == 0 && !ahead ? IP_UNDO_CURRENT : 0,
						i + 1 < n ? BufferGetBlockNumber(pages[i + 1]) :
						last_next);
	if (BufferIsValid(current))
		ip_op_ring(ip_change_block(&change, current, false), first,
				   ahead ? IP_UNDO_CURRENT : 0);
	put_pages(change_slot(&change, meta, slot,
						  ahead ? BufferGetBlockNumber(current) : first,
						  ms.npages + n), pages, n);
	apply_ring_change(&change, meta);
	for (int i = 1; i < n; i++)
		UnlockReleaseBuffer(pages[i]);
	report_growth(rel, total, n);
	return total;
}

Buffer
ip_ring_grow(Relation rel, Buffer current, uint16 slot, uint32 extent)
{
	Buffer		pages[IP_UNDO_MAX_EXTENT];
	Buffer		meta = ip_rel_make_meta(rel);
	IpMetaSlot	ms = IpPageGetMeta(BufferGetPage(meta))->slots[slot];
	int			n;

	if (!BufferIsValid(current) && ms.entry != InvalidBlockNumber)
	{
		UnlockReleaseBuffer(meta);
		return InvalidBuffer;
	}
	Assert(extent > 0 && extent <= lengthof(pages));
	n = get_pages(rel, pages, Max(1, Min(ms.npages, extent)));
	ip_holder_note(rel, ip_ring_add_pages(rel, current, meta, slot, pages, n,
										  false), n);
	return pages[0];
}

/*
 * Returns whether the current page still leads to "oldest", and the ring must
 * grow when it is full.
 */
static bool
will_grow(Relation rel, Buffer current, uint16 slot, BlockNumber oldest)
{
	Buffer		buffer;
	IpXid		newest;
	bool		old;

	if (IpPageGetSpecial(BufferGetPage(current))->u.undo.next != oldest ||
		!seems_of_ring(rel, oldest, slot))
		return false;
	buffer = ip_undo_lock_page(rel, oldest, BUFFER_LOCK_SHARE, NULL);
	if (!BufferIsValid(buffer))
		return false;
	/* damage is repaired when the page is to be used */
	old = !ip_ring_has(BufferGetPage(buffer), slot) ||
		ip_ring_page_is_old(rel, BufferGetPage(buffer), oldest, &newest);
	UnlockReleaseBuffer(buffer);
	return !old;
}

/*
 * Returns the page, locked in this mode, if the ring must still grow behind it;
 * otherwise InvalidBuffer.
 */
static Buffer
lock_if_will_grow(Relation rel, BlockNumber at, uint16 slot, BlockNumber oldest,
				  int mode)
{
	Buffer		current = ip_undo_lock_page(rel, at, mode, NULL);

	if (BufferIsValid(current) &&
		!(ip_ring_is_current(BufferGetPage(current), slot) &&
		  will_grow(rel, current, slot, oldest)))
	{
		UnlockReleaseBuffer(current);
		return InvalidBuffer;
	}
	return current;
}

/*
 * Another backend was first: any backend may use the pages, and a search of the
 * free space map from its root finds them.
 */
static void
give_pages_back(Relation rel, Buffer *pages, int n)
{
	for (int i = 0; i < n; i++)
	{
		BlockNumber block = BufferGetBlockNumber(pages[i]);

		UnlockReleaseBuffer(pages[i]);
		ip_space_record(rel, block, IpFreePageSpace(block));
		FreeSpaceMapVacuumRange(rel, block, block + 1);
	}
}

void
ip_ring_grow_ahead(Relation rel, BlockNumber at, uint16 slot,
				   BlockNumber oldest)
{
	Buffer		pages[IP_UNDO_MAX_EXTENT];
	Buffer		current = lock_if_will_grow(rel, at, slot, oldest,
											BUFFER_LOCK_SHARE);
	int			n;

	Assert(at != oldest);
	if (!BufferIsValid(current))
		return;
	UnlockReleaseBuffer(current);
	n = get_pages(rel, pages,
				  Min(read_slot(rel, slot).npages, IP_UNDO_MAX_EXTENT));
	current = lock_if_will_grow(rel, at, slot, oldest, BUFFER_LOCK_EXCLUSIVE);
	if (n > 0 && BufferIsValid(current))
	{
		ip_holder_note(rel, ip_ring_add_pages(rel, current,
											  ip_rel_make_meta(rel), slot,
											  pages, n, true), n);
		UnlockReleaseBuffer(pages[0]);
	}
	else
		give_pages_back(rel, pages, n);
	if (BufferIsValid(current))
		UnlockReleaseBuffer(current);
	ip_holder_log(rel);
}

void
ip_ring_free_oldest(Relation rel, Buffer current, Buffer oldest, uint16 slot,
					IpXid newest)
{
	IpSpecial  *old = IpPageGetSpecial(BufferGetPage(oldest));
	Buffer		meta = ip_rel_make_meta(rel);
	IpMetaSlot	ms = IpPageGetMeta(BufferGetPage(meta))->slots[slot];
	IpChange	change;
	ByteWriter *ops;

	Assert(ip_ring_is_current(BufferGetPage(current), slot));	/* I9 */
	ip_change_begin(&change, rel, IP_XLOG_RING, InvalidTransactionId);
	change.conflict = newest;
	ms.entry = current == oldest ? InvalidBlockNumber :
		BufferGetBlockNumber(current);
	if (current != oldest)
		ip_op_ring(ip_change_block(&change, current, false), old->u.undo.next,
				   IP_UNDO_CURRENT);
	ip_op_simple(ip_change_block(&change, oldest, true), IP_OP_INIT_FREE);
	/* a damaged number must not wrap around */
	ops = change_slot(&change, meta, slot, ms.entry,
					  current == oldest ? 0 : Max(ms.npages, 2) - 1);
	ip_op_undo_pages(ops, BufferGetBlockNumber(oldest), 0);
	apply_ring_change(&change, meta);
}

void
ip_ring_drop_oldest(Relation rel, Buffer current, Buffer oldest, uint16 slot)
{
	Buffer		meta = ip_rel_make_meta(rel);
	IpMetaSlot	ms = IpPageGetMeta(BufferGetPage(meta))->slots[slot];
	BlockNumber next = InvalidBlockNumber;
	IpChange	change;

	Assert(ip_ring_is_current(BufferGetPage(current), slot) &&
		   oldest != current);
	if (BufferIsValid(oldest))
		next = IpPageGetSpecial(BufferGetPage(oldest))->u.undo.next;
	if (!BufferIsValid(oldest) || next == BufferGetBlockNumber(oldest) ||
		ms.npages <= 2)
	{
		next = BufferGetBlockNumber(current);
		ms.npages = 2;
	}
	ip_change_begin(&change, rel, IP_XLOG_RING, InvalidTransactionId);
	ip_op_ring(ip_change_block(&change, current, false), next, IP_UNDO_CURRENT);
	(void) change_slot(&change, meta, slot, BufferGetBlockNumber(current),
					   ms.npages - 1);
	apply_ring_change(&change, meta);
	/* not to the client, which might keep us waiting while we hold locks */
	ereport(LOG_SERVER_ONLY,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 BufferIsValid(oldest) ?
			 errmsg("undo page %u of relation \"%s\" cannot be reused because of damage",
					BufferGetBlockNumber(oldest),
					RelationGetRelationName(rel)) :
			 errmsg("restarting undo ring %u of relation \"%s\" because of a damaged link",
					slot, RelationGetRelationName(rel)),
			 ip_page_check_hint(rel)));
}

BlockNumber
ip_ring_pages(Relation rel)
{
	Buffer		meta;
	BlockNumber pages;

	ip_rel_check_format(rel);
	meta = ip_rel_lock_meta(rel, BUFFER_LOCK_SHARE);
	if (!BufferIsValid(meta))
		return 0;
	pages = count_pages(BufferGetPage(meta));
	UnlockReleaseBuffer(meta);
	return pages;
}

BlockNumber
ip_ring_pages_without_rows(Relation rel)
{
	Buffer		meta;
	BlockNumber pages = 0;

	ip_rel_check_format(rel);
	meta = ip_rel_lock_meta(rel, BUFFER_LOCK_SHARE);
	if (!BufferIsValid(meta))
		return 0;
	for (uint32 i = 0; i < ip_runs_count(BufferGetPage(meta)); i++)
		pages += IpPageGetMeta(BufferGetPage(meta))->runs[i].n;
	/* pages may be missing in the list */
	pages = Max(pages, count_pages(BufferGetPage(meta)));
	UnlockReleaseBuffer(meta);
	return pages;
}

IpRuns *
ip_ring_read_runs(Relation rel, BlockNumber nblocks)
{
	static IpUndoRun found[IP_MAX_UNDO_RUNS];
	IpRuns	   *runs;
	Buffer		meta;
	Page		page;
	uint32		n;

	if (nblocks <= IP_FEW_BLOCKS)
		return NULL;
	meta = ip_rel_lock_meta(rel, BUFFER_LOCK_SHARE);
	if (!BufferIsValid(meta))
		return NULL;
	page = BufferGetPage(meta);
	n = ip_runs_count(page);
	memcpy(found, IpPageGetMeta(page)->runs, n * sizeof(IpUndoRun));
	UnlockReleaseBuffer(meta);
	if (n == 0)
		return NULL;
	runs = palloc(offsetof(IpRuns, runs) + n * sizeof(IpUndoRun));
	runs->n = n;
	memcpy(runs->runs, found, n * sizeof(IpUndoRun));
	return runs;
}
