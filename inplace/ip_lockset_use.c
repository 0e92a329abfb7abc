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
#include "ip_page_check.h"
#include "ip_rel.h"
#include "ip_runs.h"
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

/* So many sets of a data page are moved to another lock page, rather than continued there. */
#define MAX_MOVED	8

/* Nobody's lock: the set's place is free. */
#define NO_LOCKER	((IpXid) FirstNormalTransactionId)

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
	IpPageKind	kind = block == IP_META_BLOCK ? IP_PAGE_META : IP_PAGE_LOCK;
	volatile IpSpecial *special;
	Buffer		buffer;

	if (block == IP_DECOY_BLOCK || block == InvalidBlockNumber)
		return InvalidBuffer;
	buffer = ip_rel_read_soft(rel, block, NULL);
	if (BufferIsInvalid(buffer))
		return InvalidBuffer;
	special = IpPageGetSpecial(BufferGetPage(buffer));
	if (special->kind == kind)
	{
		Page		page = BufferGetPage(buffer);

		LockBuffer(buffer, mode);
		if (ip_page_is_ours(page) && IpPageGetSpecial(page)->kind == kind && ip_lockset_place_problem(page) == NULL)
			return buffer;
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	}
	ReleaseBuffer(buffer);
	return InvalidBuffer;
}

/* ---- damage --------------------------------------------------------------------- */

/* Is there damage where lock sets are looked for, or what a page can be when they were dead, and it was freed?  Lock: share. */
static bool
is_damaged_page(BlockNumber block, Page page)
{
	PageHeader	ph = (PageHeader) page;
	IpPageKind	kind = ip_page_is_ours(page) ? IpPageGetSpecial(page)->kind : 0;

	if (PageIsNew(page))
		return false;
	if (kind == (block == IP_META_BLOCK ? IP_PAGE_META : IP_PAGE_LOCK))
		return ip_lockset_place_problem(page) != NULL;
	if (block == IP_META_BLOCK || kind == 0 || kind == IP_PAGE_META)
		return true;
	/* what one bit makes of a lock page has its sets */
	return kind == IP_PAGE_FREE && ph->pd_upper != ph->pd_special;
}

/* The same, of a block that may be the caller's data page. */
static bool
is_damaged(Relation rel, BlockNumber block)
{
	Buffer		buffer;
	Page		page;
	bool		damaged;

	if (block == IP_DECOY_BLOCK || !compat_has_block(rel, block))
		return false;
	buffer = ip_rel_read_soft(rel, block, NULL);
	if (BufferIsInvalid(buffer))
		return true;
	page = BufferGetPage(buffer);
	damaged = block == IP_META_BLOCK || !ip_page_is_ours(page) ||
		(IpPageGetSpecial(page)->kind != IP_PAGE_DATA && IpPageGetSpecial(page)->kind != IP_PAGE_UNDO);
	if (damaged)
	{
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		damaged = is_damaged_page(block, page);
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	}
	ReleaseBuffer(buffer);
	return damaged;
}

/* May another transaction, of those before xid, hold row locks of the table?  It has the table locked then. */
static bool
others_may_lock(Relation rel, IpXid before)
{
	LockRelId  *id = &rel->rd_lockInfo.lockRelId;
	VirtualTransactionId *holders;
	bool		may = false;
	LOCKTAG		tag;

	Assert(!RecoveryInProgress());
	SET_LOCKTAG_RELATION(tag, id->dbId, id->relId);
	holders = GetLockConflicts(&tag, ExclusiveLock, NULL);
	for (int i = 0; VirtualTransactionIdIsValid(holders[i]) && !may; i++)
	{
		TransactionId xid = compat_vxid_xid(holders[i], &may);

		may |= TransactionIdIsNormal(xid) && ip_xid_full(xid) < before;
	}
	pfree(holders);
	return may;
}

/* Sets of transactions before lost have been lost, or IP_XID_NONE: may one be live? */
static inline bool
lost_live_set(Relation rel, IpXid lost)
{
	return unlikely(lost != IP_XID_NONE) && lost > ip_xid_full(RecentXmin) && others_may_lock(rel, lost);
}

/* Nobody knows who has locked rows of the data page. */
static void
refuse_lost(Relation rel, BlockNumber block, BlockNumber page)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("row locks of block %u of relation \"%s\" have been lost: lock page %u is, or was, damaged",
					block, RelationGetRelationName(rel), page),
			 errdetail("A transaction that may have locked rows there is running."),
			 errhint("VACUUM the table, and try again when that transaction has ended.")));
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

/* Is it a live set of the data page?  One that is damaged is lost. */
static bool
is_live_set_of(const IpLockSet *set, BlockNumber block, bool *mine, IpXid *lost)
{
	if (set->block != block || !ip_lockset_is_live(set->xid, mine))
		return false;
	if (set->mode > LockTupleExclusive)
		*lost = PG_UINT64_MAX;
	return set->mode <= LockTupleExclusive;
}

/* A page that has sets of a data page, after so many others, locked in share mode; or InvalidBuffer.  *lost: see lost_live_set. */
static Buffer
open_sets(Relation rel, BlockNumber block, BlockNumber pages, IpXid *lost)
{
	bool		endless = !may_go_on(rel, pages);
	Buffer		buffer = endless ? InvalidBuffer : ip_lockset_open(rel, block, BUFFER_LOCK_SHARE);

	if (BufferIsValid(buffer))
		*lost = Max(*lost, IpPageGetSpecial(BufferGetPage(buffer))->u.lock.lost);
	else if (endless || is_damaged(rel, block))
		*lost = PG_UINT64_MAX;
	return buffer;
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
	IpXid		lost = IP_XID_NONE;

	Assert(ip_page_is_locked(page, false));
	lockers->any = false;
	lockers->n = 0;
	lockers->list = NULL;
	for (BlockNumber pages = 0; next != 0; pages++)
	{
		Buffer		buffer = open_sets(rel, next, pages, &lost);
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

			if (!is_live_set_of(set, block, &mine, &lost))
				continue;
			lockers->any = true;
			if (IpLockSetHas(set, off))
				add_locker(lockers, set, mine);
		}
		next = continued_on(locks);
		UnlockReleaseBuffer(buffer);
	}
	if (lost_live_set(rel, lost))
		refuse_lost(rel, block, IpPageGetSpecial(page)->lock_page);
}

bool
ip_lockset_rows(Relation rel, BlockNumber block, Page page, bool *locked)
{
	BlockNumber next = IpPageGetSpecial(page)->lock_page;
	IpXid		lost = IP_XID_NONE;
	bool		any = false;

	Assert(ip_page_is_locked(page, true));
	memset(locked, 0, (IP_MAX_ROWS_PER_PAGE + 1) * sizeof(bool));
	for (BlockNumber pages = 0; next != 0; pages++)
	{
		Buffer		buffer = open_sets(rel, next, pages, &lost);
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

			if (!is_live_set_of(set, block, &mine, &lost))
				continue;
			any = true;
			for (OffsetNumber off = FirstOffsetNumber; off <= IP_MAX_ROWS_PER_PAGE; off++)
				locked[off] |= IpLockSetHas(set, off);
		}
		next = continued_on(locks);
		UnlockReleaseBuffer(buffer);
	}
	if (lost_live_set(rel, lost))
		memset(locked, any = true, (IP_MAX_ROWS_PER_PAGE + 1) * sizeof(bool));
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

	/* of those that come here nobody is to think that they may be lost */
	if (IpPageGetSpecial(page)->u.lock.lost > oldest)
		return -1;
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
			 errhint("VACUUM mends the list.")));
}

/* ---- moving a data page's sets --------------------------------------------------- */

typedef struct Moved
{
	int			n;
	int			at[MAX_MOVED + 1];	/* on the old page, or the new one */
	IpLockSet	set[MAX_MOVED + 1];
}			Moved;

/*
 * The data page's live sets on the page, which has no room for another.  False: they are too many, or may be on the next page, too; or there are
 * none by now.
 */
static bool
find_sets_to_move(Page page, BlockNumber block, Moved * moved)
{
	int			n = IpPageLockSets(page);
	IpXid		lost = IP_XID_NONE;
	bool		mine;

	moved->n = 0;
	if (continued_on(page) != 0)
		return false;
	for (int i = 0; i < n; i++)
	{
		const IpLockSet *set = IpPageLockSet(page, i);

		if (!is_live_set_of(set, block, &mine, &lost))
			continue;
		if (moved->n == MAX_MOVED)
			return false;
		moved->at[moved->n] = i;
		moved->set[moved->n++] = *set;
	}
	return moved->n > 0 && lost == IP_XID_NONE;
}

/* Where n more sets can be; false: not here. */
static bool
find_rooms(Page page, int n, int *at)
{
	int			nsets = IpPageLockSets(page);
	int			found = 0;
	bool		mine;

	/* as for find_room */
	if (IpPageGetSpecial(page)->u.lock.lost > ip_xid_full(RecentXmin))
		return false;
	for (int i = 0; i < ip_lockset_max(page) && found < n; i++)
	{
		if (i >= nsets || !ip_lockset_is_live(IpPageLockSet(page, i)->xid, &mine))
			at[found++] = i;
	}
	return found == n;
}

static void
put_set(ByteWriter *ops, int at, const IpLockSet *set)
{
	bool		fresh = true;

	for (OffsetNumber off = FirstOffsetNumber; off <= IP_MAX_ROWS_PER_PAGE; off++)
	{
		if (!IpLockSetHas(set, off))
			continue;
		ip_op_lock(ops, at, off, fresh, set->block, set->mode, set->xid);
		fresh = false;
	}
}

/* The data page's sets begin here from now on. */
static void
write_moved(Relation rel, Buffer locks, Buffer data, const Moved * moved, const int *at)
{
	IpChange	change;
	ByteWriter *ops;

	ip_change_begin(&change, rel, IP_XLOG_LOCK, InvalidTransactionId);
	ops = ip_change_block(&change, locks, false);
	for (int i = 0; i < moved->n; i++)
		put_set(ops, at[i], &moved->set[i]);
	ip_op_lock_page(ip_change_block(&change, data, false), BufferGetBlockNumber(locks));
	ip_change_apply(&change);
	last_lock.page = 0;
}

/* Their old places are free.  Not that anybody would mind if they were not: they say what is true. */
static void
clear_moved(Relation rel, BlockNumber from, const Moved * moved)
{
	Buffer		buffer = ip_lockset_open(rel, from, BUFFER_LOCK_EXCLUSIVE);
	IpChange	change;
	ByteWriter *ops;
	bool		any = false;

	if (!BufferIsValid(buffer))
		return;
	ip_change_begin(&change, rel, IP_XLOG_LOCK, InvalidTransactionId);
	ops = ip_change_block(&change, buffer, false);
	for (int i = 0; i < moved->n; i++)
	{
		const IpLockSet *set = &moved->set[i];

		/* others have their sets there if it has ended */
		if (moved->at[i] >= IpPageLockSets(BufferGetPage(buffer)) ||
			memcmp(IpPageLockSet(BufferGetPage(buffer), moved->at[i]), set, sizeof(IpLockSet)) != 0)
			continue;
		ip_op_lock(ops, moved->at[i], FirstOffsetNumber, true, set->block, set->mode, NO_LOCKER);
		any = true;
	}
	if (any)
		ip_change_apply(&change);
	UnlockReleaseBuffer(buffer);
}

/*
 * Move the sets, and put one for the row beside them, to a page that has room for all.  If it were put on another page alone, each look
 * at the data page's locks would go by all pages between: as many as there are, if two lock a whole table.  False: as with try_add.
 */
static bool
try_move(Relation rel, Buffer data, BlockNumber from, Moved * moved, const IpLockSet *set, BlockNumber *last)
{
	bool		any = false;
	Buffer		buffer = first_page(rel, BufferGetPage(data), &any);

	for (BlockNumber pages = 0;; pages++)
	{
		int			at[MAX_MOVED + 1];
		Buffer		next;

		*last = BufferGetBlockNumber(buffer);
		if (*last != from && find_rooms(BufferGetPage(buffer), moved->n + 1, at))
		{
			moved->set[moved->n++] = *set;
			write_moved(rel, buffer, data, moved, at);
			moved->n--;
			UnlockReleaseBuffer(buffer);
			ip_rel_cache(rel)->lock_page = *last;
			clear_moved(rel, from, moved);
			return true;
		}
		if (!may_go_on(rel, pages))
			refuse_endless_list(rel);
		next = ip_lockset_open(rel, next_of(buffer), BUFFER_LOCK_EXCLUSIVE);
		UnlockReleaseBuffer(buffer);
		if (!BufferIsValid(next))
			return false;
		buffer = next;
	}
}

/* ---- any set --------------------------------------------------------------------- */

/* Add the row to a set; false: no page from the first one on has room for another.  *last: the last of them. */
static bool
try_add(Relation rel, Buffer data, OffsetNumber off, IpXid xid, LockTupleMode mode, bool any, BlockNumber *last)
{
	BlockNumber block = BufferGetBlockNumber(data);
	Buffer		buffer = first_page(rel, BufferGetPage(data), &any);
	Moved		moved;

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
			/* where others' sets are is no hint */
			if (!any)
				ip_rel_cache(rel)->lock_page = BufferGetBlockNumber(buffer);
			UnlockReleaseBuffer(buffer);
			return true;
		}
		*last = BufferGetBlockNumber(buffer);
		if (any && pages == 0 && find_sets_to_move(page, block, &moved))
		{
			IpLockSet	another = {.xid = xid,.block = block,.mode = mode};

			another.rows[(off - 1) / 8] |= 1 << ((off - 1) % 8);
			UnlockReleaseBuffer(buffer);
			return try_move(rel, data, *last, &moved, &another, last);
		}
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
	BlockNumber damaged = 0;
	uint32		extended;
	IpChange	change;
	ByteWriter *ops;
	Buffer		page;

	if (BufferIsValid(next))
		UnlockReleaseBuffer(next);
	/* VACUUM will find it */
	else if (BufferIsValid(prev) && is_damaged(rel, next_of(prev)))
		damaged = next_of(prev);
	/* else VACUUM has freed it, or somebody else has appended a page */
	if (BufferIsValid(prev) && !BufferIsValid(next))
	{
		page = ip_space_find_free(rel);
		if (!BufferIsValid(page))
			page = ip_rel_extend(rel, NULL, 1, &extended);
		ip_change_begin(&change, rel, IP_XLOG_LOCK, InvalidTransactionId);
		ops = ip_change_block(&change, page, true);
		ip_op_simple(ops, IP_OP_INIT_LOCK);
		if (damaged != 0)
			ip_op_ring(ops, damaged, 0);
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

/* What VACUUM does with the list of lock pages. */
typedef struct LockList
{
	Relation	rel;
	IpFreeBlocks *lowest;		/* free blocks */
	BlockNumber nblocks;
	uint8	   *seen;			/* a bit for each block: in the list */
	BlockNumber n;				/* so many */
	const char *problem;		/* with the page ... */
	BlockNumber bad;			/* ... that was just looked at, or NULL */
} LockList;

static bool
has_live_set(Page page)
{
	int			n = IpPageLockSets(page);
	bool		mine;

	if (IpPageGetSpecial(page)->u.lock.lost > ip_xid_full(RecentXmin))
		return true;
	for (int i = 0; i < n; i++)
	{
		if (ip_lockset_is_live(IpPageLockSet(page, i)->xid, &mine))
			return true;
	}
	return false;
}

static bool
is_seen(const LockList *l, BlockNumber block)
{
	return block < l->nblocks && (l->seen[block / 8] & (1 << (block % 8)));
}

/*
 * May sets be live that begin on the page, or before it?  They may be on the pages that it is continued on.  Whoever adds one there has come by this page,
 * which is locked exclusively, so who has passed it is ahead of us.  No link leads back, unless it is damaged.
 */
static bool
is_in_use(LockList *l, Buffer buffer)
{
	BlockNumber next = continued_on(BufferGetPage(buffer));
	bool		used = has_live_set(BufferGetPage(buffer));

	for (BlockNumber pages = 0; next != 0 && !used; pages++)
	{
		IpXid		lost = IP_XID_NONE;
		Buffer		behind;

		if (next == IP_META_BLOCK || next == BufferGetBlockNumber(buffer) || is_seen(l, next))
			return true;
		behind = open_sets(l->rel, next, pages, &lost);
		used = lost == PG_UINT64_MAX;
		if (!BufferIsValid(behind))
			break;
		used |= has_live_set(BufferGetPage(behind));
		next = continued_on(BufferGetPage(behind));
		UnlockReleaseBuffer(behind);
	}
	return used;
}

/* The page becomes free; if it is in the list, it leaves it behind prev, which may be the metapage. */
static void
free_page(Relation rel, Buffer meta, Buffer prev, Buffer buffer)
{
	IpChange	change;
	ByteWriter *ops;

	ip_change_begin(&change, rel, IP_XLOG_LOCK, InvalidTransactionId);
	ops = ip_change_block(&change, meta, false);
	ip_op_undo_pages(ops, BufferGetBlockNumber(buffer), 0);
	if (BufferIsValid(prev))
	{
		if (prev != meta)
			ops = ip_change_block(&change, prev, false);
		ip_op_ring(ops, IpPageGetSpecial(BufferGetPage(buffer))->u.lock.next, 0);
	}
	ip_op_simple(ip_change_block(&change, buffer, true), IP_OP_INIT_FREE);
	ip_change_apply(&change);
}

/* The list ends at the page in the buffer; sets that it was continued with are lost. */
static void
end_list(Relation rel, Buffer buffer)
{
	bool		continued = continued_on(BufferGetPage(buffer)) != 0;
	IpChange	change;
	ByteWriter *ops;

	ip_change_begin(&change, rel, IP_XLOG_LOCK, InvalidTransactionId);
	ops = ip_change_block(&change, buffer, false);
	ip_op_ring(ops, 0, 0);
	if (continued)
		ip_op_lost(ops, ip_xid_next());
	ip_change_apply(&change);
}

/* The damaged page is made anew, and is the list's last one.  buffer: it, locked, or InvalidBuffer. */
static void
renew_page(Relation rel, BlockNumber block, Buffer buffer)
{
	bool		locked = BufferIsValid(buffer);
	IpChange	change;
	ByteWriter *ops;

	if (!locked)
	{
		buffer = ip_rel_read_soft(rel, block, NULL);
		if (BufferIsValid(buffer))
			LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
		else
			buffer = ReadBufferExtended(rel, MAIN_FORKNUM, block, RBM_ZERO_AND_LOCK, NULL);
	}
	ip_change_begin(&change, rel, IP_XLOG_LOCK, InvalidTransactionId);
	ops = ip_change_block(&change, buffer, true);
	ip_op_simple(ops, IP_OP_INIT_LOCK);
	ip_op_lost(ops, ip_xid_next());
	ip_change_apply(&change);
	if (!locked)
		UnlockReleaseBuffer(buffer);
}

/* Is the block in the list?  Lock: the metapage exclusively, so that it does not change. */
static bool
is_in_list(LockList *l, Buffer meta, BlockNumber block)
{
	BlockNumber at = next_of(meta);

	for (BlockNumber pages = 0; at != 0 && at != block && may_go_on(l->rel, pages); pages++)
	{
		Buffer		buffer = ip_lockset_open(l->rel, at, BUFFER_LOCK_SHARE);

		if (!BufferIsValid(buffer))
			return false;
		at = next_of(buffer);
		UnlockReleaseBuffer(buffer);
	}
	return at != 0;
}

/* Note that the block is in the list; false: it has been there, or is newer than the walk. */
static bool
note_seen(LockList *l, BlockNumber block)
{
	if (block >= l->nblocks || is_seen(l, block))
		return false;
	l->seen[block / 8] |= 1 << (block % 8);
	return true;
}

/*
 * What is behind "before", locked exclusively, or InvalidBuffer: nothing.  Damage is mended.  A page that a page of the list leads to, and that the
 * metapage lists, was a lock page, whatever it is now.
 */
static Buffer
look_behind(LockList *l, Buffer meta, Buffer before)
{
	BlockNumber block = IpPageGetSpecial(BufferGetPage(before))->u.lock.next;
	Page		page = BufferGetPage(meta);
	Buffer		buffer;

	if (block == 0 || (block >= l->nblocks && compat_has_block(l->rel, block)))
		return InvalidBuffer;
	l->bad = block;
	if (block != next_of(before) || !note_seen(l, block))
	{
		l->problem = "list of lock pages leads nowhere, or back to itself";
		end_list(l->rel, before);
		return InvalidBuffer;
	}
	buffer = ip_lockset_open(l->rel, block, BUFFER_LOCK_EXCLUSIVE);
	if (BufferIsValid(buffer))
		l->problem = ip_page_problem(BufferGetPage(buffer), block);
	else if (is_damaged(l->rel, block))
		l->problem = "lock page cannot be read, or is none";
	l->n += BufferIsValid(buffer) || l->problem != NULL;
	if (l->problem == NULL)
		return buffer;
	if (BufferIsValid(buffer) || ip_runs_have(IpPageGetMeta(page)->runs, ip_runs_count(page), block))
		renew_page(l->rel, block, buffer);
	else
		end_list(l->rel, before);
	return buffer;
}

/* Look at the page behind *prev, and free it, or go on to it; false: there is none. */
static bool
vacuum_next(LockList *l, BlockNumber *prev, BlockNumber *freed)
{
	Relation	rel = l->rel;
	Buffer		meta = ip_rel_lock_meta(rel, BUFFER_LOCK_EXCLUSIVE);
	Buffer		before;
	Buffer		buffer = InvalidBuffer;

	*freed = 0;
	l->problem = NULL;
	if (!BufferIsValid(meta))
		return false;
	before = *prev == IP_META_BLOCK ? meta : ip_lockset_open(rel, *prev, BUFFER_LOCK_EXCLUSIVE);
	if (BufferIsValid(before))
		buffer = look_behind(l, meta, before);
	if (BufferIsValid(buffer))
	{
		if (!is_in_use(l, buffer))
		{
			*freed = BufferGetBlockNumber(buffer);
			free_page(rel, meta, before, buffer);
		}
		else
			*prev = BufferGetBlockNumber(buffer);
		UnlockReleaseBuffer(buffer);
	}
	if (BufferIsValid(before) && before != meta)
		UnlockReleaseBuffer(before);
	UnlockReleaseBuffer(meta);
	return BufferIsValid(buffer);
}

/* Free a lock page that is not in the list, because a page before it, or the metapage, was damaged. */
static bool
free_stray(LockList *l, BlockNumber block)
{
	Buffer		meta = ip_rel_lock_meta(l->rel, BUFFER_LOCK_EXCLUSIVE);
	Buffer		buffer = InvalidBuffer;
	bool		free = false;

	if (!BufferIsValid(meta))
		return false;
	if (!is_in_list(l, meta, block))
		buffer = ip_lockset_open(l->rel, block, BUFFER_LOCK_EXCLUSIVE);
	if (BufferIsValid(buffer))
	{
		free = !is_in_use(l, buffer);
		if (free)
			free_page(l->rel, meta, InvalidBuffer, buffer);
		UnlockReleaseBuffer(buffer);
	}
	UnlockReleaseBuffer(meta);
	return free;
}

static void
note_freed(LockList *l, BlockNumber block)
{
	ip_space_record(l->rel, block, IpFreePageSpace(block));
	ip_space_note_free(l->lowest, block);
}

/* What VACUUM knows of undo pages and lock pages is more than what is in rings and in the list. */
static void
free_strays(LockList *l, const BlockNumber *pages, BlockNumber npages)
{
	for (BlockNumber i = 0; i < npages; i++)
	{
		Buffer		buffer;

		compat_vacuum_delay_point(false);
		if (pages[i] == IP_META_BLOCK || pages[i] >= l->nblocks || is_seen(l, pages[i]))
			continue;
		buffer = ip_lockset_open(l->rel, pages[i], BUFFER_LOCK_SHARE);
		if (!BufferIsValid(buffer))
			continue;
		UnlockReleaseBuffer(buffer);
		if (free_stray(l, pages[i]))
			note_freed(l, pages[i]);
	}
}

void
ip_lockset_vacuum(Relation rel, const BlockNumber *pages, BlockNumber npages, BlockNumber nundo, IpFreeBlocks *lowest)
{
	LockList	l = {.rel = rel,.lowest = lowest,.nblocks = RelationGetNumberOfBlocks(rel)};
	BlockNumber prev = IP_META_BLOCK;
	BlockNumber freed;
	bool		more;

	Assert(ip_page_none_is_locked());
	if (l.nblocks <= IP_META_BLOCK)
		return;
	l.seen = MemoryContextAllocExtended(CurrentMemoryContext, l.nblocks / 8 + 1, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	do
	{
		compat_vacuum_delay_point(false);
		more = vacuum_next(&l, &prev, &freed);
		if (l.problem)
			ereport(WARNING,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("list of lock pages of relation \"%s\" is mended at block %u: %s",
							RelationGetRelationName(rel), l.bad, l.problem)));
		if (freed != 0)
			note_freed(&l, freed);
	} while (more);
	if (npages > nundo + l.n)
		free_strays(&l, pages, npages);
	pfree(l.seen);
}
