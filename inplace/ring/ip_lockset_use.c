/*-------------------------------------------------------------------------
 * ip_lockset_use.c
 *	  Row locks: who has locked a row, and locking one.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/relation.h"
#include "access/xact.h"
#include "access/xloginsert.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "ip_change.h"
#include "ip_lockset_use.h"
#include "ip_rel.h"
#include "ip_space.h"
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

/* The place of a page in the list, which begins with the metapage. */
static inline uint32
number_of(volatile IpSpecial *special)
{
	return special->kind == IP_PAGE_META ? 0 : special->w.number;
}

/* Is the page of that kind, and behind one with the number before, or any if this is negative? */
static inline bool
is_behind(volatile IpSpecial *special, IpPageKind kind, int64 before)
{
	return special->kind == kind && (int64) number_of(special) > before;
}

/* Only a page that is behind is waited for, so that nobody waits for another in a circle, whatever a damaged link leads to. */
static Buffer
open_behind(Relation rel, BlockNumber block, int64 before, int mode)
{
	IpPageKind	kind = block == IP_META_BLOCK ? IP_PAGE_META : IP_PAGE_LOCK;
	Buffer		buffer;
	Page		page;

	if (block == IP_DECOY_BLOCK || block == InvalidBlockNumber)
		return InvalidBuffer;
	buffer = ip_rel_read_soft(rel, block, NULL);
	if (BufferIsInvalid(buffer))
		return InvalidBuffer;
	page = BufferGetPage(buffer);
	if (is_behind(IpPageGetSpecial(page), kind, before))
	{
		LockBuffer(buffer, mode);
		if (ip_page_is_ours(page) && is_behind(IpPageGetSpecial(page), kind, before) && ip_lockset_place_problem(page) == NULL)
			return buffer;
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	}
	ReleaseBuffer(buffer);
	return InvalidBuffer;
}

Buffer
ip_lockset_open(Relation rel, BlockNumber block, int mode)
{
	return open_behind(rel, block, -1, mode);
}

/* What is there, locked; the caller keeps its lock meanwhile, so that the page stays in the list.  InvalidBuffer: nothing, or damage. */
Buffer
ip_lockset_next(Relation rel, Buffer buffer, int mode)
{
	return open_behind(rel, ip_lockset_link(buffer), number_of(IpPageGetSpecial(BufferGetPage(buffer))), mode);
}

/* ---- damage --------------------------------------------------------------------- */

/* Is there damage where lock sets are looked for, or what a page can be when they were dead, and it was freed?  Lock: share. */
bool
ip_lockset_is_damaged(BlockNumber block, Page page)
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
		damaged = ip_lockset_is_damaged(block, page);
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

/* May sets that begin on the page, or before it, be on the next one? */
bool
ip_lockset_is_continued(Page page)
{
	return (IpPageGetSpecial(page)->u.lock.flags & IP_LOCK_CONTINUED) != 0;
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

/* The page where sets of a data page begin, locked in share mode, or InvalidBuffer.  *lost: see lost_live_set. */
static Buffer
first_sets(Relation rel, BlockNumber block, IpXid *lost)
{
	Buffer		buffer = ip_lockset_open(rel, block, BUFFER_LOCK_SHARE);

	*lost = IP_XID_NONE;
	if (BufferIsValid(buffer))
		*lost = IpPageGetSpecial(BufferGetPage(buffer))->u.lock.lost;
	else if (is_damaged(rel, block))
		*lost = PG_UINT64_MAX;
	return buffer;
}

/* The next page that may have more of them, likewise. */
static Buffer
more_sets(Relation rel, Buffer buffer, IpXid *lost)
{
	Buffer		next;

	if (!ip_lockset_is_continued(BufferGetPage(buffer)))
		return InvalidBuffer;
	next = ip_lockset_next(rel, buffer, BUFFER_LOCK_SHARE);
	*lost = Max(*lost, BufferIsValid(next) ? IpPageGetSpecial(BufferGetPage(next))->u.lock.lost : PG_UINT64_MAX);
	return next;
}

/* The same; the page before is unlocked. */
static Buffer
pass_to_more_sets(Relation rel, Buffer buffer, IpXid *lost)
{
	Buffer		next = more_sets(rel, buffer, lost);

	UnlockReleaseBuffer(buffer);
	return next;
}

/* The data page's first set on the lock page, from number i on, or -1.  It may be one of many, and is asked for with each row that is locked. */
static inline int
next_set_of(Page page, BlockNumber block, int i)
{
	const IpLockSet *end = IpPageLockSet(page, IpPageLockSets(page));

	for (const IpLockSet *set = IpPageLockSet(page, i); set > end; set--)
	{
		if (set->block == block)
			return IpPageLockSet(page, 0) - set;
	}
	return -1;
}

/* A walk over the live sets of a data page. */
typedef struct LiveSets
{
	Relation	rel;
	BlockNumber block;
	Buffer		buffer;			/* the lock page, locked in share mode */
	int			i;				/* the next set on it */
	bool		mine;			/* of the last one */
	IpXid		lost;			/* see lost_live_set */
} LiveSets;

static void
begin_live_sets(LiveSets *s, Relation rel, BlockNumber block, Page page)
{
	s->rel = rel;
	s->block = block;
	s->i = 0;
	s->buffer = first_sets(rel, IpPageGetSpecial(page)->u.data.lock_page, &s->lost);
}

/* The next one, on its page, or NULL: that was the last, and nothing is locked. */
static const IpLockSet *
next_live_set(LiveSets *s)
{
	while (BufferIsValid(s->buffer))
	{
		Page		locks = BufferGetPage(s->buffer);

		while ((s->i = next_set_of(locks, s->block, s->i)) >= 0)
		{
			const IpLockSet *set = IpPageLockSet(locks, s->i++);

			if (is_live_set_of(set, s->block, &s->mine, &s->lost))
				return set;
		}
		s->buffer = pass_to_more_sets(s->rel, s->buffer, &s->lost);
		s->i = 0;
	}
	return NULL;
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
	const IpLockSet *set;
	LiveSets	sets;

	Assert(ip_page_is_locked(page, false));
	lockers->any = false;
	lockers->n = 0;
	lockers->list = NULL;
	begin_live_sets(&sets, rel, block, page);
	while ((set = next_live_set(&sets)) != NULL)
	{
		lockers->any = true;
		if (IpLockSetHas(set, off))
			add_locker(lockers, set, sets.mine);
	}
	if (lost_live_set(rel, sets.lost))
		refuse_lost(rel, block, IpPageGetSpecial(page)->u.data.lock_page);
}

bool
ip_lockset_rows(Relation rel, BlockNumber block, Page page, bool *locked)
{
	bool		any = false;
	const IpLockSet *set;
	LiveSets	sets;

	Assert(ip_page_is_locked(page, true));
	memset(locked, 0, (IP_MAX_ROWS_PER_PAGE + 1) * sizeof(bool));
	begin_live_sets(&sets, rel, block, page);
	while ((set = next_live_set(&sets)) != NULL)
	{
		any = true;
		for (OffsetNumber off = FirstOffsetNumber; off <= IP_MAX_ROWS_PER_PAGE; off++)
			locked[off] |= IpLockSetHas(set, off);
	}
	if (lost_live_set(rel, sets.lost))
		memset(locked, any = true, (IP_MAX_ROWS_PER_PAGE + 1) * sizeof(bool));
	return any;
}

/* ---- rows that WAL does not know -------------------------------------------------- */

/* A lock page where the transaction has added rows to its sets without WAL. */
typedef struct Unlogged
{
	Oid			relid;
	RelFileNumber number;
	BlockNumber block;
} Unlogged;

static HTAB *unlogged;
static Unlogged last_unlogged;

static void
note_unlogged(Relation rel, Buffer locks)
{
	Unlogged	page;
	HASHCTL		ctl = {.keysize = sizeof(page),.entrysize = sizeof(page),.hcxt = TopTransactionContext};

	page.relid = RelationGetRelid(rel);
	page.number = CompatRelNumber(rel);
	page.block = BufferGetBlockNumber(locks);
	if (memcmp(&page, &last_unlogged, sizeof(page)) == 0)
		return;
	if (unlogged == NULL)
		unlogged = hash_create("inplace lock pages to be logged", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	hash_search(unlogged, &page, HASH_ENTER, NULL);
	last_unlogged = page;
}

/* Log the lock page as it is.  One that is none any more, as VACUUM has freed it, has no set of ours: somebody has moved that, with WAL. */
static void
log_page(Relation rel, BlockNumber block)
{
	Buffer		buffer = ip_lockset_open(rel, block, BUFFER_LOCK_EXCLUSIVE);

	if (!BufferIsValid(buffer))
		return;
	START_CRIT_SECTION();
	MarkBufferDirty(buffer);
	log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
}

static void
log_pages(void)
{
	HASH_SEQ_STATUS status;
	Unlogged   *page;

	hash_seq_init(&status, unlogged);
	while ((page = hash_seq_search(&status)) != NULL)
	{
		Relation	rel;

		CHECK_FOR_INTERRUPTS();
		/* after ROLLBACK TO, row locks have gone with the table's */
		if (!CheckRelationOidLockedByMe(page->relid, AccessShareLock, true))
			continue;
		rel = try_relation_open(page->relid, NoLock);
		if (rel == NULL)
			continue;
		/* nor are there any in a file that has been taken away since */
		if (CompatRelNumber(rel) == page->number)
			log_page(rel, page->block);
		relation_close(rel, NoLock);
	}
}

void
ip_lockset_at_end(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_PRE_PREPARE && unlogged != NULL)
		log_pages();
	else if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE)
	{
		unlogged = NULL;
		last_unlogged.relid = InvalidOid;
	}
}

/* ---- adding a row --------------------------------------------------------------- */

/* The set of xid in that mode, or -1. */
static int
find_set(Page page, BlockNumber block, IpXid xid, LockTupleMode mode)
{
	int			i = -1;

	while ((i = next_set_of(page, block, i + 1)) >= 0)
	{
		const IpLockSet *set = IpPageLockSet(page, i);

		if (set->xid == xid && set->mode == mode)
			return i;
	}
	return -1;
}

/* Of sets that come to the page, would somebody think that they may be lost? */
static bool
has_lost_some(Relation rel, Buffer buffer)
{
	Buffer		next;

	if (IpPageGetSpecial(BufferGetPage(buffer))->u.lock.lost > ip_xid_full(RecentXmin))
		return true;
	if (!ip_lockset_is_continued(BufferGetPage(buffer)))
		return false;
	next = ip_lockset_next(rel, buffer, BUFFER_LOCK_SHARE);
	if (!BufferIsValid(next))
		return true;
	UnlockReleaseBuffer(next);
	return false;
}

/* Where another set of the data page can be, or -1. */
static int
find_room(Relation rel, Buffer buffer, BlockNumber block)
{
	Page		page = BufferGetPage(buffer);
	IpXid		oldest = ip_xid_full(RecentXmin);
	int			n = IpPageLockSets(page);
	int			i = -1;
	bool		mine;

	if (has_lost_some(rel, buffer))
		return -1;

	/*
	 * a dead one of that page: while an old transaction is running, each is
	 * asked for with each lock of a row there
	 */
	while ((i = next_set_of(page, block, i + 1)) >= 0)
	{
		if (!ip_lockset_is_live(IpPageLockSet(page, i)->xid, &mine))
			return i;
	}
	/* what ended long ago is soon found out */
	for (i = 0; i < n; i++)
	{
		if (IpPageLockSet(page, i)->xid < oldest)
			return i;
	}
	if (n < ip_lockset_max(page))
		return n;
	for (i = 0; i < n; i++)
	{
		if (!ip_lockset_is_live(IpPageLockSet(page, i)->xid, &mine))
			return i;
	}
	return -1;
}

/*
 * Add the row to a set of ours: no WAL, and no critical section, as one bit changes.  A crash ends the locker, and its sets, unless it
 * is prepared, which logs them.
 */
static void
add_row(Relation rel, Buffer locks, int i, OffsetNumber off)
{
	IpLockSet  *set = IpPageLockSet(BufferGetPage(locks), i);

	if (IpLockSetHas(set, off))
		return;
	if (RelationNeedsWAL(rel))
		note_unlogged(rel, locks);
	set->rows[(off - 1) / 8] |= 1 << ((off - 1) % 8);
	/* as with a hint, checksums are the only thing on disk that it could hurt */
	if (RelationNeedsWAL(rel))
		MarkBufferDirtyHint(locks, true);
	else
		MarkBufferDirty(locks);
}

/* Add the row, which has moved, to another transaction's set: that may have been prepared. */
static void
add_row_for(Relation rel, Buffer locks, int i, OffsetNumber off, const IpLockSet *set)
{
	IpChange	change;

	if (IpLockSetHas(set, off))
		return;
	ip_change_begin(&change, rel, IP_XLOG_LOCK, InvalidTransactionId);
	ip_op_lock(ip_change_block(&change, locks, false), i, off, false, set->block, set->mode, set->xid);
	ip_change_apply(&change);
}

/* Make a set of the row, number i of the lock page. */
static void
write_set(Relation rel, Buffer locks, int i, Buffer data, OffsetNumber off, IpXid xid, LockTupleMode mode, bool any)
{
	BlockNumber block = BufferGetBlockNumber(data);
	BlockNumber page = BufferGetBlockNumber(locks);
	IpChange	change;

	ip_change_begin(&change, rel, IP_XLOG_LOCK, InvalidTransactionId);
	ip_op_lock(ip_change_block(&change, locks, false), i, off, true, block, mode, xid);
	if (!any && IpPageGetSpecial(BufferGetPage(data))->u.data.lock_page != page)
		ip_op_lock_page(ip_change_block(&change, data, false), page);
	ip_change_apply(&change);
	last_lock.page = 0;
	if (RelationNeedsWAL(rel) && !any)
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
	Buffer		buffer = ip_lockset_open(rel, *any ? IpPageGetSpecial(data)->u.data.lock_page : ip_rel_cache(rel)->lock_page,
										 BUFFER_LOCK_EXCLUSIVE);

	if (BufferIsValid(buffer))
		return buffer;
	*any = false;
	return ip_rel_make_meta(rel);
}

/* ---- moving a data page's sets --------------------------------------------------- */

typedef struct Moved
{
	int			n;
	int			at[MAX_MOVED + 1];	/* on the old page, or the new one */
	IpLockSet	set[MAX_MOVED + 1];
}			Moved;

/* Each set has, but for damage. */
static bool
has_rows(const IpLockSet *set)
{
	OffsetNumber off = FirstOffsetNumber;

	while (off <= IP_MAX_ROWS_PER_PAGE && !IpLockSetHas(set, off))
		off++;
	return off <= IP_MAX_ROWS_PER_PAGE;
}

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
	if (ip_lockset_is_continued(page))
		return false;
	for (int i = 0; i < n; i++)
	{
		const IpLockSet *set = IpPageLockSet(page, i);

		if (!is_live_set_of(set, block, &mine, &lost) || !has_rows(set))
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
find_rooms(Relation rel, Buffer buffer, int n, int *at)
{
	Page		page = BufferGetPage(buffer);
	int			nsets = IpPageLockSets(page);
	int			found = 0;
	bool		mine;

	if (has_lost_some(rel, buffer))
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

	for (;;)
	{
		int			at[MAX_MOVED + 1];
		Buffer		next;

		*last = BufferGetBlockNumber(buffer);
		if (*last != from && find_rooms(rel, buffer, moved->n + 1, at))
		{
			moved->set[moved->n++] = *set;
			write_moved(rel, buffer, data, moved, at);
			moved->n--;
			UnlockReleaseBuffer(buffer);
			ip_rel_cache(rel)->lock_page = *last;
			clear_moved(rel, from, moved);
			return true;
		}
		next = ip_lockset_next(rel, buffer, BUFFER_LOCK_EXCLUSIVE);
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
	bool		first = true;
	Moved		moved;

	for (;; first = false)
	{
		Page		page = BufferGetPage(buffer);
		int			set = any ? find_set(page, block, xid, mode) : -1;
		bool		fresh = set < 0;
		Buffer		next;

		if (fresh)
			set = find_room(rel, buffer, block);
		if (set >= 0)
		{
			if (fresh)
				write_set(rel, buffer, set, data, off, xid, mode, any);
			else if (TransactionIdIsCurrentTransactionId((TransactionId) xid))
				add_row(rel, buffer, set, off);
			else
				add_row_for(rel, buffer, set, off, IpPageLockSet(BufferGetPage(buffer), set));
			/* where others' sets are is no hint */
			if (!any)
				ip_rel_cache(rel)->lock_page = BufferGetBlockNumber(buffer);
			UnlockReleaseBuffer(buffer);
			return true;
		}
		*last = BufferGetBlockNumber(buffer);
		if (any && first && find_sets_to_move(page, block, &moved))
		{
			IpLockSet	another = {.xid = xid,.block = block,.mode = mode};

			another.rows[(off - 1) / 8] |= 1 << ((off - 1) % 8);
			UnlockReleaseBuffer(buffer);
			return try_move(rel, data, *last, &moved, &another, last);
		}
		next = ip_lockset_next(rel, buffer, BUFFER_LOCK_EXCLUSIVE);
		if (BufferIsValid(next) && any)
			continue_page(rel, buffer);
		UnlockReleaseBuffer(buffer);
		if (!BufferIsValid(next))
			return false;
		buffer = next;
	}
}

/* Make the page, locked exclusively, the one behind before. */
ByteWriter *
ip_lockset_init_page(IpChange *change, Buffer buffer, Buffer before)
{
	ByteWriter *ops = ip_change_block(change, buffer, true);

	ip_op_init_lock(ops, number_of(IpPageGetSpecial(BufferGetPage(before))) + 1);
	return ops;
}

/*
 * Add a page to the list behind its last one, whose link, if there is one, is damaged: the new page takes it over, and VACUUM
 * mends it.  Sets that the last one was continued with are lost.
 */
static void
append_page(Relation rel, BlockNumber last)
{
	Buffer		meta = ip_rel_make_meta(rel);
	Buffer		prev = last == IP_META_BLOCK ? meta : ip_lockset_open(rel, last, BUFFER_LOCK_EXCLUSIVE);
	Buffer		next = BufferIsValid(prev) ? ip_lockset_next(rel, prev, BUFFER_LOCK_SHARE) : InvalidBuffer;
	uint32		extended;
	BlockNumber link;
	IpChange	change;
	ByteWriter *ops;
	Buffer		page;

	/* else VACUUM has freed it, or somebody else has appended a page */
	if (BufferIsValid(prev) && !BufferIsValid(next))
	{
		if (number_of(IpPageGetSpecial(BufferGetPage(prev))) == PG_UINT32_MAX)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("too many lock pages have been added to relation \"%s\"", RelationGetRelationName(rel)),
					 errhint("VACUUM the table when no transaction that has locked rows of it is running.")));
		page = ip_space_find_free(rel);
		if (!BufferIsValid(page))
			page = ip_rel_extend(rel, NULL, 1, &extended);
		ip_change_begin(&change, rel, IP_XLOG_LOCK, InvalidTransactionId);
		ops = ip_lockset_init_page(&change, page, prev);
		link = ip_lockset_link(prev);
		/* which may have led to this very page */
		if (link != 0 && link != BufferGetBlockNumber(page))
			ip_op_ring(ops, link, 0);
		ops = ip_change_block(&change, meta, false);
		ip_op_undo_pages(ops, BufferGetBlockNumber(page), 1);
		if (prev != meta)
			ops = ip_change_block(&change, prev, false);
		ip_op_ring(ops, BufferGetBlockNumber(page), 0);
		if (ip_lockset_is_continued(BufferGetPage(prev)))
			ip_change_lost(&change);
		ip_change_apply(&change);
		UnlockReleaseBuffer(page);
	}
	if (BufferIsValid(next))
		UnlockReleaseBuffer(next);
	if (BufferIsValid(prev) && prev != meta)
		UnlockReleaseBuffer(prev);
	UnlockReleaseBuffer(meta);
}

COMPAT_STOP void
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
		l->number != CompatRelNumber(rel) || IpPageGetSpecial(BufferGetPage(data))->u.data.lock_page != l->page)
		return false;
	buffer = ip_lockset_open(rel, l->page, BUFFER_LOCK_EXCLUSIVE);
	if (!BufferIsValid(buffer))
		return false;
	same = PageGetLSN(BufferGetPage(buffer)) == l->lsn && !ip_lockset_is_continued(BufferGetPage(buffer));
	if (same)
	{
		add_row(rel, buffer, l->set, off);
		/* the page may have been saved in WAL */
		l->lsn = PageGetLSN(BufferGetPage(buffer));
	}
	UnlockReleaseBuffer(buffer);
	return same;
}

/* ---- freeing ---------------------------------------------------------------------- */

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

/*
 * They may be on the pages that it is continued on.  Whoever adds one there has come by this page,
 * which is locked exclusively, so who has passed it is ahead of us.
 */
bool
ip_lockset_is_in_use(Relation rel, Buffer buffer)
{
	bool		used = has_live_set(BufferGetPage(buffer));
	IpXid		lost = IP_XID_NONE;

	for (Buffer at = used ? InvalidBuffer : more_sets(rel, buffer, &lost); BufferIsValid(at); at = pass_to_more_sets(rel, at, &lost))
		used |= has_live_set(BufferGetPage(at));
	/* behind a damaged link sets are live as long as any can be */
	return used || (lost == PG_UINT64_MAX && others_may_lock(rel, ip_xid_next()));
}
