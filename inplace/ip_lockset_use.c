/*-------------------------------------------------------------------------
 * ip_lockset_use.c
 *	  Row locks: who has locked a row, and locking one.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/xact.h"
#include "storage/procarray.h"
#include "utils/snapmgr.h"

#include "ip_change.h"
#include "ip_lockset_use.h"
#include "ip_rel.h"
#include "ip_xid.h"

/* The set that a row was last added to by us, which was its data page's only live one. */
typedef struct LastLock
{
	RelFileNumber number;
	BlockNumber block;
	BlockNumber page;			/* of the set ... */
	XLogRecPtr	lsn;			/* ... right after that */
	int			set;
	TransactionId xid;
	LockTupleMode mode;
} LastLock;

static LastLock last_lock;

/* ---- reading -------------------------------------------------------------------- */

bool
ip_lockset_is_live(IpXid xid, bool *mine)
{
	TransactionId xid32 = (TransactionId) xid;

	/*
	 * the whole xid first: core takes its low half, and may look it up where
	 * old ones are not to be found
	 */
	*mine = false;
	if (IpXidIsFinal(xid) || xid >= ip_xid_next() || xid < ip_xid_full(RecentXmin) || xid < ip_xid_horizon())
		return false;
	*mine = TransactionIdIsCurrentTransactionId(xid32);
	return *mine || TransactionIdIsInProgress(xid32);
}

Buffer
ip_lockset_open(Relation rel, BlockNumber block, int mode)
{
	volatile IpSpecial *special;
	Buffer		buffer;

	if (block == IP_META_BLOCK)
		return ip_rel_lock_meta(rel, mode);
	if (block == IP_DECOY_BLOCK || block == InvalidBlockNumber)
		return InvalidBuffer;
	buffer = ip_rel_read_soft(rel, block);
	if (BufferIsInvalid(buffer))
		return InvalidBuffer;
	special = IpPageGetSpecial(BufferGetPage(buffer));
	if (special->kind == IP_PAGE_LOCK)
	{
		Page		page = BufferGetPage(buffer);

		LockBuffer(buffer, mode);
		if (ip_page_is_ours(page) && IpPageGetSpecial(page)->kind == IP_PAGE_LOCK && ip_lockset_place_problem(page) == NULL)
			return buffer;
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	}
	ReleaseBuffer(buffer);
	return InvalidBuffer;
}

/*
 * After n pages of a list: can it have another one?  No list is longer than the table, unless links are damaged.  What such a list
 * leads to is found on the way.
 */
static bool
may_go_on(Relation rel, BlockNumber n)
{
	return compat_has_block(rel, n);
}

/* The next page in the list, or 0.  No page leads to itself, or to the metapage, which is locked first: that would be damage. */
static BlockNumber
next_of(Buffer buffer)
{
	BlockNumber next = IpPageGetSpecial(BufferGetPage(buffer))->u.lock.next;

	return next == IP_META_BLOCK || next == BufferGetBlockNumber(buffer) ? 0 : next;
}

/* The next page that sets which begin here, or before, may be on; 0: there is none. */
static BlockNumber
continued_on(Page page)
{
	const IpSpecial *special = IpPageGetSpecial(page);

	return (special->u.lock.flags & IP_LOCK_CONTINUED) ? special->u.lock.next : 0;
}

static bool
is_live_set_of(const IpLockSet *set, BlockNumber block, bool *mine)
{
	return set->block == block && set->mode <= LockTupleExclusive && ip_lockset_is_live(set->xid, mine);
}

static void
add_locker(IpLockers *lockers, const IpLockSet *set, bool mine)
{
	/* by powers of 2 */
	if ((lockers->n & (lockers->n - 1)) == 0)
		lockers->list = lockers->list == NULL ? palloc(sizeof(IpLocker)) :
			repalloc(lockers->list, 2 * lockers->n * sizeof(IpLocker));
	lockers->list[lockers->n++] = (IpLocker)
	{
		.xid = set->xid,.mode = (LockTupleMode) set->mode,.mine = mine
	};
}

void
ip_lockset_read(Relation rel, BlockNumber block, Page page, OffsetNumber off, IpLockers *lockers)
{
	BlockNumber next = IpPageGetSpecial(page)->lock_page;

	Assert(ip_page_is_locked(page, false));
	lockers->any = false;
	lockers->n = 0;
	lockers->list = NULL;
	for (BlockNumber pages = 0; next != 0 && may_go_on(rel, pages); pages++)
	{
		Buffer		buffer = ip_lockset_open(rel, next, BUFFER_LOCK_SHARE);
		Page		locks;
		int			n;

		/* it has been freed: the sets were dead; or is damaged */
		if (!BufferIsValid(buffer))
			break;
		locks = BufferGetPage(buffer);
		n = IpPageLockSets(locks);
		for (int i = 0; i < n; i++)
		{
			const IpLockSet *set = IpPageLockSet(locks, i);
			bool		mine;

			if (!is_live_set_of(set, block, &mine))
				continue;
			lockers->any = true;
			if (IpLockSetHas(set, off))
				add_locker(lockers, set, mine);
		}
		next = continued_on(locks);
		UnlockReleaseBuffer(buffer);
	}
}

bool
ip_lockset_rows(Relation rel, BlockNumber block, Page page, bool *locked)
{
	BlockNumber next = IpPageGetSpecial(page)->lock_page;
	bool		any = false;

	Assert(ip_page_is_locked(page, true));
	memset(locked, 0, (IP_MAX_ROWS_PER_PAGE + 1) * sizeof(bool));
	for (BlockNumber pages = 0; next != 0 && may_go_on(rel, pages); pages++)
	{
		Buffer		buffer = ip_lockset_open(rel, next, BUFFER_LOCK_SHARE);
		Page		locks;
		int			n;

		if (!BufferIsValid(buffer))
			break;
		locks = BufferGetPage(buffer);
		n = IpPageLockSets(locks);
		for (int i = 0; i < n; i++)
		{
			const IpLockSet *set = IpPageLockSet(locks, i);
			bool		mine;

			if (!is_live_set_of(set, block, &mine))
				continue;
			any = true;
			for (OffsetNumber off = FirstOffsetNumber; off <= IP_MAX_ROWS_PER_PAGE; off++)
				locked[off] |= IpLockSetHas(set, off);
		}
		next = continued_on(locks);
		UnlockReleaseBuffer(buffer);
	}
	return any;
}

/* ---- adding a row --------------------------------------------------------------- */

/* The set of xid in that mode, or -1. */
static int
find_set(Page page, BlockNumber block, IpXid xid, LockTupleMode mode)
{
	int			n = IpPageLockSets(page);

	for (int i = 0; i < n; i++)
	{
		const IpLockSet *set = IpPageLockSet(page, i);

		if (set->block == block && set->xid == xid && set->mode == mode)
			return i;
	}
	return -1;
}

/* Where another set can be, or -1. */
static int
find_room(Page page)
{
	IpXid		oldest = ip_xid_full(RecentXmin);
	int			n = IpPageLockSets(page);
	bool		mine;

	/* what ended long ago is soon found out */
	for (int i = 0; i < n; i++)
	{
		if (IpPageLockSet(page, i)->xid < oldest)
			return i;
	}
	if (n < ip_lockset_max(page))
		return n;
	for (int i = 0; i < n; i++)
	{
		if (!ip_lockset_is_live(IpPageLockSet(page, i)->xid, &mine))
			return i;
	}
	return -1;
}

/* Add the row to set number i of the lock page, which is that set, or (fresh) becomes it. */
static void
write_set(Relation rel, Buffer locks, int i, bool fresh, Buffer data, OffsetNumber off, IpXid xid, LockTupleMode mode,
		  bool any)
{
	BlockNumber block = BufferGetBlockNumber(data);
	BlockNumber page = BufferGetBlockNumber(locks);
	bool		alone;
	IpChange	change;

	if (!fresh && IpLockSetHas(IpPageLockSet(BufferGetPage(locks), i), off))
		return;
	alone = !any || (!fresh && last_lock.page == page && last_lock.set == i && last_lock.block == block &&
					 last_lock.number == CompatRelNumber(rel) && last_lock.lsn == PageGetLSN(BufferGetPage(locks)));
	ip_change_begin(&change, rel, IP_XLOG_LOCK, InvalidTransactionId);
	ip_op_lock(ip_change_block(&change, locks, false), i, off, fresh, block, mode, xid);
	if (!any && IpPageGetSpecial(BufferGetPage(data))->lock_page != page)
		ip_op_lock_page(ip_change_block(&change, data, false), page);
	ip_change_apply(&change);
	last_lock.page = 0;
	if (RelationNeedsWAL(rel) && alone)
		last_lock = (LastLock)
	{
		.number = CompatRelNumber(rel),.block = block,.page = page,.lsn = PageGetLSN(BufferGetPage(locks)),
			.set = i,.xid = (TransactionId) xid,.mode = mode
	};
}

/* Sets that begin on the page, or before it, may be on the next one from now on. */
static void
continue_page(Relation rel, Buffer buffer)
{
	const IpSpecial *special = IpPageGetSpecial(BufferGetPage(buffer));
	IpChange	change;

	if (special->u.lock.flags & IP_LOCK_CONTINUED)
		return;
	ip_change_begin(&change, rel, IP_XLOG_LOCK, InvalidTransactionId);
	ip_op_ring(ip_change_block(&change, buffer, false), special->u.lock.next, IP_LOCK_CONTINUED);
	ip_change_apply(&change);
}

/*
 * Where to look for a set's place: where the data page's live sets begin, or, if it has none, where there was one the last time.  A page that
 * has been freed since they were read had none that is live still.
 */
static Buffer
first_page(Relation rel, Page data, bool *any)
{
	Buffer		buffer = ip_lockset_open(rel, *any ? IpPageGetSpecial(data)->lock_page : ip_rel_cache(rel)->lock_page,
										 BUFFER_LOCK_EXCLUSIVE);

	if (BufferIsValid(buffer))
		return buffer;
	*any = false;
	return ip_rel_make_meta(rel);
}

static void
refuse_endless_list(Relation rel)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("list of lock pages of relation \"%s\" has no end", RelationGetRelationName(rel)),
			 errhint("VACUUM FULL makes the table anew.")));
}

/* Add the row to a set; false: no page from the first one on has room for another.  *last: the last of them. */
static bool
try_add(Relation rel, Buffer data, OffsetNumber off, IpXid xid, LockTupleMode mode, bool any, BlockNumber *last)
{
	BlockNumber block = BufferGetBlockNumber(data);
	Buffer		buffer = first_page(rel, BufferGetPage(data), &any);

	for (BlockNumber pages = 0;; pages++)
	{
		Page		page = BufferGetPage(buffer);
		int			set = any ? find_set(page, block, xid, mode) : -1;
		bool		fresh = set < 0;
		Buffer		next;

		if (fresh)
			set = find_room(page);
		if (set >= 0)
		{
			write_set(rel, buffer, set, fresh, data, off, xid, mode, any);
			ip_rel_cache(rel)->lock_page = BufferGetBlockNumber(buffer);
			UnlockReleaseBuffer(buffer);
			return true;
		}
		*last = BufferGetBlockNumber(buffer);
		if (!may_go_on(rel, pages))
			refuse_endless_list(rel);
		/* with this one locked, the next one stays in the list */
		next = ip_lockset_open(rel, next_of(buffer), BUFFER_LOCK_EXCLUSIVE);
		if (BufferIsValid(next) && any)
			continue_page(rel, buffer);
		UnlockReleaseBuffer(buffer);
		if (!BufferIsValid(next))
			return false;
		buffer = next;
	}
}

/* Add a page to the list behind its last one, or (damage) behind one that leads to none. */
static void
append_page(Relation rel, BlockNumber last)
{
	Buffer		meta = ip_rel_make_meta(rel);
	Buffer		prev = last == IP_META_BLOCK ? meta : ip_lockset_open(rel, last, BUFFER_LOCK_EXCLUSIVE);
	Buffer		next = BufferIsValid(prev) ?
		ip_lockset_open(rel, next_of(prev), BUFFER_LOCK_SHARE) : InvalidBuffer;
	uint32		extended;
	IpChange	change;
	ByteWriter *ops;
	Buffer		page;

	if (BufferIsValid(next))
		UnlockReleaseBuffer(next);
	/* else VACUUM has freed it, or somebody else has appended a page */
	if (BufferIsValid(prev) && !BufferIsValid(next))
	{
		page = ip_space_find_free(rel);
		if (!BufferIsValid(page))
			page = ip_rel_extend(rel, NULL, 1, &extended);
		ip_change_begin(&change, rel, IP_XLOG_LOCK, InvalidTransactionId);
		ip_op_simple(ip_change_block(&change, page, true), IP_OP_INIT_LOCK);
		ops = ip_change_block(&change, meta, false);
		ip_op_undo_pages(ops, BufferGetBlockNumber(page), 1);
		if (prev != meta)
			ops = ip_change_block(&change, prev, false);
		ip_op_ring(ops, BufferGetBlockNumber(page), 0);
		ip_change_apply(&change);
		UnlockReleaseBuffer(page);
	}
	if (BufferIsValid(prev) && prev != meta)
		UnlockReleaseBuffer(prev);
	UnlockReleaseBuffer(meta);
}

/* Not inlined: a test stops processes here. */
pg_noinline void
ip_lockset_add(Relation rel, Buffer data, OffsetNumber off, IpXid xid, LockTupleMode mode, bool any)
{
	BlockNumber last;

	Assert(ip_page_is_locked(BufferGetPage(data), true));	/* I5 */
	Assert(off >= FirstOffsetNumber && off <= IP_MAX_ROWS_PER_PAGE);
	while (!try_add(rel, data, off, xid, mode, any, &last))
		append_page(rel, last);
}

bool
ip_lockset_add_alike(Relation rel, Buffer data, OffsetNumber off, TransactionId xid, LockTupleMode mode)
{
	LastLock   *l = &last_lock;
	Buffer		buffer;
	bool		same;

	Assert(ip_page_is_locked(BufferGetPage(data), true));
	if (l->page == 0 || l->xid != xid || l->mode != mode || l->block != BufferGetBlockNumber(data) ||
		l->number != CompatRelNumber(rel) || IpPageGetSpecial(BufferGetPage(data))->lock_page != l->page)
		return false;
	buffer = ip_lockset_open(rel, l->page, BUFFER_LOCK_EXCLUSIVE);
	if (!BufferIsValid(buffer))
		return false;
	same = PageGetLSN(BufferGetPage(buffer)) == l->lsn && continued_on(BufferGetPage(buffer)) == 0;
	if (same)
		write_set(rel, buffer, l->set, false, data, off, ip_xid_full(xid), mode, true);
	UnlockReleaseBuffer(buffer);
	return same;
}

/* ---- VACUUM ---------------------------------------------------------------------- */

static bool
has_live_set(Page page)
{
	int			n = IpPageLockSets(page);
	bool		mine;

	for (int i = 0; i < n; i++)
	{
		if (ip_lockset_is_live(IpPageLockSet(page, i)->xid, &mine))
			return true;
	}
	return false;
}

/* Take the page out of the list behind prev, which may be the metapage. */
static void
free_page(Relation rel, Buffer meta, Buffer prev, Buffer buffer)
{
	IpChange	change;
	ByteWriter *ops;

	ip_change_begin(&change, rel, IP_XLOG_LOCK, InvalidTransactionId);
	ops = ip_change_block(&change, meta, false);
	ip_op_undo_pages(ops, BufferGetBlockNumber(buffer), 0);
	if (prev != meta)
		ops = ip_change_block(&change, prev, false);
	ip_op_ring(ops, IpPageGetSpecial(BufferGetPage(buffer))->u.lock.next, 0);
	ip_op_simple(ip_change_block(&change, buffer, true), IP_OP_INIT_FREE);
	ip_change_apply(&change);
}

/* Look at the page behind *prev, and free it, or go on to it; false: there is none. */
static bool
vacuum_next(Relation rel, BlockNumber *prev, BlockNumber *freed)
{
	Buffer		meta = ip_rel_lock_meta(rel, BUFFER_LOCK_EXCLUSIVE);
	Buffer		before;
	Buffer		buffer = InvalidBuffer;
	BlockNumber block = 0;

	*freed = 0;
	if (!BufferIsValid(meta))
		return false;
	before = *prev == IP_META_BLOCK ? meta : ip_lockset_open(rel, *prev, BUFFER_LOCK_EXCLUSIVE);
	if (BufferIsValid(before))
	{
		block = next_of(before);
		buffer = ip_lockset_open(rel, block, BUFFER_LOCK_EXCLUSIVE);
	}
	if (BufferIsValid(buffer))
	{
		if (!(IpPageGetSpecial(BufferGetPage(buffer))->u.lock.flags & IP_LOCK_CONTINUED) &&
			!has_live_set(BufferGetPage(buffer)))
		{
			free_page(rel, meta, before, buffer);
			*freed = block;
		}
		else
			*prev = block;
		UnlockReleaseBuffer(buffer);
	}
	if (BufferIsValid(before) && before != meta)
		UnlockReleaseBuffer(before);
	UnlockReleaseBuffer(meta);
	return BufferIsValid(buffer);
}

BlockNumber
ip_lockset_vacuum(Relation rel, IpFreeBlocks *lowest)
{
	BlockNumber prev = IP_META_BLOCK;
	BlockNumber n = 0;
	BlockNumber freed;

	Assert(ip_page_none_is_locked());
	for (BlockNumber pages = 0; may_go_on(rel, pages) && vacuum_next(rel, &prev, &freed); pages++)
	{
		compat_vacuum_delay_point(false);
		if (freed == 0)
			continue;
		ip_space_record(rel, freed, IpFreePageSpace(freed));
		ip_space_note_free(lowest, freed);
		n++;
	}
	return n;
}
