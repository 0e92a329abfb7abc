/*-------------------------------------------------------------------------
 * ip_lockset_use.c
 *	  Row locks: which transactions have locked a row, and locking one.
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

/*
 * The set to which we have last added a row, if it was its data page's only
 * live one.
 */
typedef struct LastLock
{
	RelFileNumber number;
	BlockNumber block;
	BlockNumber page;			/* of the set ... */
	XLogRecPtr	lsn;			/* ... right after the row was added */
	int			set;
	TransactionId xid;
	LockTupleMode mode;
} LastLock;

static LastLock last_lock;

/*
 * Up to this number of a data page's sets are moved to another lock page,
 * rather than continued there.
 */
#define MAX_MOVED	8

/* The xid of a set that is nobody's: its place is free. */
#define NO_LOCKER	((IpXid) FirstNormalTransactionId)

/* ---- reading ----------------------------------------------------------- */

bool
ip_lockset_is_live(IpXid xid, bool *mine)
{
	TransactionId xid32 = (TransactionId) xid;

	/*
	 * Check the whole xid first: core takes its low half, and may search for
	 * it where old xids cannot be found.
	 */
	*mine = false;
	if (IpXidIsFrozen(xid) || xid >= ip_xid_next() ||
		xid < ip_xid_full(RecentXmin) || xid < ip_xid_horizon())
		return false;
	*mine = TransactionIdIsCurrentTransactionId(xid32);
	return *mine || TransactionIdIsInProgress(xid32);
}

/* Returns the place of a page in the list, which begins with the metapage. */
static inline uint32
number_of(volatile IpSpecial *special)
{
	return special->kind == IP_PAGE_META ? 0 : special->w.number;
}

/*
 * Returns whether the page is of that kind, and behind the one with the number
 * "before"; a negative number is before all pages.
 */
static inline bool
is_behind(volatile IpSpecial *special, IpPageKind kind, int64 before)
{
	return special->kind == kind && (int64) number_of(special) > before;
}

/*
 * Open the page if it is behind the one with the number "before".  We
 * wait only for such a page, so that processes do not wait for each other in a
 * circle, whatever a damaged link leads to.
 */
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
		if (ip_page_is_ours(page) &&
			is_behind(IpPageGetSpecial(page), kind, before) &&
			ip_lockset_place_problem(page) == NULL)
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

/*
 * Returns the page that follows in the list, locked.  The caller keeps its lock
 * meanwhile, so that the page stays in the list.  Returns InvalidBuffer if
 * there is no page, or it is damaged.
 */
Buffer
ip_lockset_next(Relation rel, Buffer buffer, int mode)
{
	return open_behind(rel, ip_lockset_link(buffer),
					   number_of(IpPageGetSpecial(BufferGetPage(buffer))),
					   mode);
}

/* ---- damage ------------------------------------------------------------ */

/*
 * Returns whether there is damage where lock sets are searched, rather than a
 * page as it can be after its sets were dead and it was freed.  Lock: share.
 */
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
	/* a lock page that one wrong bit makes a free one still has its sets */
	return kind == IP_PAGE_FREE && ph->pd_upper != ph->pd_special;
}

/* ip_lockset_is_damaged for a block that may be the caller's data page. */
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
		(IpPageGetSpecial(page)->kind != IP_PAGE_DATA &&
		 IpPageGetSpecial(page)->kind != IP_PAGE_UNDO);
	if (damaged)
	{
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		damaged = ip_lockset_is_damaged(block, page);
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	}
	ReleaseBuffer(buffer);
	return damaged;
}

/*
 * Returns whether another transaction, of those before the xid, may hold row
 * locks of the table.  It has the table locked then.
 */
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

/*
 * Sets of transactions before "lost" have been lost, unless that is
 * IP_XID_NONE.  Returns whether one of them may be live.
 */
static inline bool
lost_live_set(Relation rel, IpXid lost)
{
	return unlikely(lost != IP_XID_NONE) && lost > ip_xid_full(RecentXmin) &&
		others_may_lock(rel, lost);
}

/*
 * Raise an error: it is not known which transactions have locked rows of the
 * data page.
 */
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
 * Returns whether sets that begin on the page, or before it, may be on the next
 * one.
 */
bool
ip_lockset_is_continued(Page page)
{
	return (IpPageGetSpecial(page)->u.lock.flags & IP_LOCK_CONTINUED) != 0;
}

/* Returns whether it is a live set of the data page.  A damaged set is lost. */
static bool
is_live_set_of(const IpLockSet *set, BlockNumber block, bool *mine, IpXid *lost)
{
	if (set->block != block || !ip_lockset_is_live(set->xid, mine))
		return false;
	if (set->mode > LockTupleExclusive)
		*lost = PG_UINT64_MAX;
	return set->mode <= LockTupleExclusive;
}

/*
 * Returns the page where sets of a data page begin, locked in share mode, or
 * InvalidBuffer.  *lost: see lost_live_set.
 */
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

/*
 * Returns the next page that may have more sets of the data page, locked in
 * share mode, or InvalidBuffer.  *lost: see lost_live_set.
 */
static Buffer
more_sets(Relation rel, Buffer buffer, IpXid *lost)
{
	Buffer		next;

	if (!ip_lockset_is_continued(BufferGetPage(buffer)))
		return InvalidBuffer;
	next = ip_lockset_next(rel, buffer, BUFFER_LOCK_SHARE);
	*lost = Max(*lost,
				BufferIsValid(next) ?
				IpPageGetSpecial(BufferGetPage(next))->u.lock.lost :
				PG_UINT64_MAX);
	return next;
}

/* As more_sets; the page before is unlocked. */
static Buffer
pass_to_more_sets(Relation rel, Buffer buffer, IpXid *lost)
{
	Buffer		next = more_sets(rel, buffer, lost);

	UnlockReleaseBuffer(buffer);
	return next;
}

/*
 * Returns the number of the data page's first set on the lock page, from i on,
 * or -1.  The page may have many sets, and this is called for each row that is
 * locked.
 */
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
	bool		mine;			/* the last set is ours */
	IpXid		lost;			/* see lost_live_set */
} LiveSets;

static void
begin_live_sets(LiveSets *s, Relation rel, BlockNumber block, Page page)
{
	s->rel = rel;
	s->block = block;
	s->i = 0;
	s->buffer = first_sets(rel, IpPageGetSpecial(page)->u.data.lock_page,
						   &s->lost);
}

/*
 * Returns the next live set, on its page, or NULL after the last one: then
 * nothing is locked.
 */
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
	/* grow by powers of 2 */
	if ((lockers->n & (lockers->n - 1)) == 0)
		lockers->list = lockers->list == NULL ? palloc(sizeof(IpLocker)) :
			repalloc(lockers->list, 2 * lockers->n * sizeof(IpLocker));
	lockers->list[lockers->n++] = (IpLocker)
	{
		.xid = set->xid,.mode = (LockTupleMode) set->mode,.mine = mine
	};
}

void
ip_lockset_read(Relation rel, BlockNumber block, Page page, OffsetNumber off,
				IpLockers *lockers)
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
		for (OffsetNumber off = FirstOffsetNumber; off <= IP_MAX_ROWS_PER_PAGE;
			 off++)
			locked[off] |= IpLockSetHas(set, off);
	}
	if (lost_live_set(rel, sets.lost))
		memset(locked, any = true, (IP_MAX_ROWS_PER_PAGE + 1) * sizeof(bool));
	return any;
}

/* ---- rows that WAL does not know --------------------------------------- */

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
	HASHCTL		ctl = {
		.keysize = sizeof(page),.entrysize = sizeof(page),
		.hcxt = TopTransactionContext
	};

	page.relid = RelationGetRelid(rel);
	page.number = CompatRelNumber(rel);
	page.block = BufferGetBlockNumber(locks);
	if (memcmp(&page, &last_unlogged, sizeof(page)) == 0)
		return;
	if (unlogged == NULL)
		unlogged = hash_create("inplace lock pages to be logged", 64, &ctl,
							   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	hash_search(unlogged, &page, HASH_ENTER, NULL);
	last_unlogged = page;
}

/*
 * Log the lock page as it is.  If VACUUM has freed the page, it has no set of
 * ours: another process has moved that set, with WAL.
 */
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
		/* after ROLLBACK TO, row locks are released with the table's lock */
		if (!CheckRelationOidLockedByMe(page->relid, AccessShareLock, true))
			continue;
		rel = try_relation_open(page->relid, NoLock);
		if (rel == NULL)
			continue;
		/* nor are there row locks in a file that has been dropped since */
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
	else if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT ||
			 event == XACT_EVENT_PREPARE)
	{
		unlogged = NULL;
		last_unlogged.relid = InvalidOid;
	}
}

/* ---- adding a row ------------------------------------------------------ */

/* Returns the number of the set of xid in that mode, or -1. */
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

/*
 * Returns whether readers would have to assume that sets which are added to the
 * page may be lost.
 */
static bool
has_lost_some(Relation rel, Buffer buffer)
{
	Buffer		next;

	if (IpPageGetSpecial(BufferGetPage(buffer))->u.lock.lost >
		ip_xid_full(RecentXmin))
		return true;
	if (!ip_lockset_is_continued(BufferGetPage(buffer)))
		return false;
	next = ip_lockset_next(rel, buffer, BUFFER_LOCK_SHARE);
	if (!BufferIsValid(next))
		return true;
	UnlockReleaseBuffer(next);
	return false;
}

/* Returns the place for another set of the data page, or -1. */
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
	 * Use a dead set of that data page: while an old transaction is running,
	 * each of them is examined whenever a row there is locked.
	 */
	while ((i = next_set_of(page, block, i + 1)) >= 0)
	{
		if (!ip_lockset_is_live(IpPageLockSet(page, i)->xid, &mine))
			return i;
	}
	/* it is cheap to find what ended long ago */
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
 * Add the row to a set of ours, without WAL and without a critical section, as
 * one bit changes.  A crash ends the locker, and its sets, unless the
 * transaction is prepared, which logs them.
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
	/* as with a hint, only checksums on disk could be affected */
	if (RelationNeedsWAL(rel))
		MarkBufferDirtyHint(locks, true);
	else
		MarkBufferDirty(locks);
}

/*
 * Add the row, which has moved, to another transaction's set: that transaction
 * may have been prepared.
 */
static void
add_row_for(Relation rel, Buffer locks, int i, OffsetNumber off,
			const IpLockSet *set)
{
	IpChange	change;

	if (IpLockSetHas(set, off))
		return;
	ip_change_begin(&change, rel, IP_XLOG_LOCK, InvalidTransactionId);
	ip_op_lock(ip_change_block(&change, locks, false), i, off, false,
			   set->block, set->mode, set->xid);
	ip_change_apply(&change);
}

/* Make a set with the row, number i of the lock page. */
static void
write_set(Relation rel, Buffer locks, int i, Buffer data, OffsetNumber off,
		  IpXid xid, LockTupleMode mode, bool any)
{
	BlockNumber block = BufferGetBlockNumber(data);
	BlockNumber page = BufferGetBlockNumber(locks);
	IpChange	change;

	ip_change_begin(&change, rel, IP_XLOG_LOCK, InvalidTransactionId);
	ip_op_lock(ip_change_block(&change, locks, false), i, off, true, block,
			   mode, xid);
	if (!any && IpPageGetSpecial(BufferGetPage(data))->u.data.lock_page != page)
		ip_op_lock_page(ip_change_block(&change, data, false), page);
	ip_change_apply(&change);
	last_lock.page = 0;
	if (RelationNeedsWAL(rel) && !any)
		last_lock = (LastLock)
	{
		.number = CompatRelNumber(rel),.block = block,.page = page,
			.lsn = PageGetLSN(BufferGetPage(locks)),
			.set = i,.xid = (TransactionId) xid,.mode = mode
	};
}

/*
 * From now on, sets that begin on the page, or before it, may be on the next
 * one.
 */
static void
continue_page(Relation rel, Buffer buffer)
{
	const IpSpecial *special = IpPageGetSpecial(BufferGetPage(buffer));
	IpChange	change;

	if (special->u.lock.flags & IP_LOCK_CONTINUED)
		return;
	ip_change_begin(&change, rel, IP_XLOG_LOCK, InvalidTransactionId);
	ip_op_ring(ip_change_block(&change, buffer, false), special->u.lock.next,
			   IP_LOCK_CONTINUED);
	ip_change_apply(&change);
}

/*
 * Returns the page from which to search for a place for a set: where the data
 * page's live sets begin, or, if it has none, where there was a place the last
 * time.  If a page has been freed since its sets were read, none of them is
 * live any longer.
 */
static Buffer
first_page(Relation rel, Page data, bool *any)
{
	BlockNumber block = *any ? IpPageGetSpecial(data)->u.data.lock_page :
		ip_rel_cache(rel)->lock_page;
	Buffer		buffer = ip_lockset_open(rel, block, BUFFER_LOCK_EXCLUSIVE);

	if (BufferIsValid(buffer))
		return buffer;
	*any = false;
	return ip_rel_make_meta(rel);
}

/* ---- moving a data page's sets ----------------------------------------- */

typedef struct Moved
{
	int			n;
	int			at[MAX_MOVED + 1];	/* places on the old page, or on the new
									 * one */
	IpLockSet	set[MAX_MOVED + 1];
}			Moved;

/* Returns whether the set has rows, as each has, but for damage. */
static bool
has_rows(const IpLockSet *set)
{
	OffsetNumber off = FirstOffsetNumber;

	while (off <= IP_MAX_ROWS_PER_PAGE && !IpLockSetHas(set, off))
		off++;
	return off <= IP_MAX_ROWS_PER_PAGE;
}

/*
 * Find the data page's live sets on the page, which has no room for another.
 * Returns false if there are too many, or some may be on the next page, or if
 * none is live any longer.
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

/*
 * Find places for n more sets.  Returns false if the page does not have them.
 */
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
		if (i >= nsets ||
			!ip_lockset_is_live(IpPageLockSet(page, i)->xid, &mine))
			at[found++] = i;
	}
	return found == n;
}

static void
put_set(ByteWriter *ops, int at, const IpLockSet *set)
{
	bool		fresh = true;

	for (OffsetNumber off = FirstOffsetNumber; off <= IP_MAX_ROWS_PER_PAGE;
		 off++)
	{
		if (!IpLockSetHas(set, off))
			continue;
		ip_op_lock(ops, at, off, fresh, set->block, set->mode, set->xid);
		fresh = false;
	}
}

/* Write the data page's sets to the lock page, where they begin from now on. */
static void
write_moved(Relation rel, Buffer locks, Buffer data, const Moved * moved,
			const int *at)
{
	IpChange	change;
	ByteWriter *ops;

	ip_change_begin(&change, rel, IP_XLOG_LOCK, InvalidTransactionId);
	ops = ip_change_block(&change, locks, false);
	for (int i = 0; i < moved->n; i++)
		put_set(ops, at[i], &moved->set[i]);
	ip_op_lock_page(ip_change_block(&change, data, false),
					BufferGetBlockNumber(locks));
	ip_change_apply(&change);
	last_lock.page = 0;
}

/*
 * Free the old places of the moved sets.  It would do no harm if they stayed,
 * as what they say is true.
 */
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

		/* if the set's transaction has ended, another set may be there */
		if (moved->at[i] >= IpPageLockSets(BufferGetPage(buffer)) ||
			memcmp(IpPageLockSet(BufferGetPage(buffer), moved->at[i]), set,
				   sizeof(IpLockSet)) != 0)
			continue;
		ip_op_lock(ops, moved->at[i], FirstOffsetNumber, true, set->block,
				   set->mode, NO_LOCKER);
		any = true;
	}
	if (any)
		ip_change_apply(&change);
	UnlockReleaseBuffer(buffer);
}

/*
 * Move the sets, and add one for the row, to a page that has room for all.  If
 * only the new set were put on another page, each search of the data page's
 * locks would pass all pages between: if two transactions lock a whole table,
 * all lock pages.  Returns false as try_add does.
 */
static bool
try_move(Relation rel, Buffer data, BlockNumber from, Moved * moved,
		 const IpLockSet *set, BlockNumber *last)
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

/* ---- any set ----------------------------------------------------------- */

/*
 * Add the row to a set.  Returns false if no page from the first one on has
 * room for another set; then *last is the last page.
 */
static bool
try_add(Relation rel, Buffer data, OffsetNumber off, IpXid xid,
		LockTupleMode mode, bool any, BlockNumber *last)
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
				add_row_for(rel, buffer, set, off,
							IpPageLockSet(BufferGetPage(buffer), set));
			/* the place of others' sets is no hint */
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

/* Make the page, locked exclusively, the lock page behind "before". */
ByteWriter *
ip_lockset_init_page(IpChange *change, Buffer buffer, Buffer before)
{
	ByteWriter *ops = ip_change_block(change, buffer, true);

	ip_op_init_lock(ops,
					number_of(IpPageGetSpecial(BufferGetPage(before))) + 1);
	return ops;
}

/*
 * Add a page to the list behind its last one.  If that has a link, the link is
 * damaged: the new page takes it over, and VACUUM repairs it.  Sets that were
 * continued behind the last page are lost.
 */
static void
append_page(Relation rel, BlockNumber last)
{
	Buffer		meta = ip_rel_make_meta(rel);
	Buffer		prev = last == IP_META_BLOCK ? meta :
		ip_lockset_open(rel, last, BUFFER_LOCK_EXCLUSIVE);
	Buffer		next = BufferIsValid(prev) ?
		ip_lockset_next(rel, prev, BUFFER_LOCK_SHARE) : InvalidBuffer;
	uint32		extended;
	BlockNumber link;
	IpChange	change;
	ByteWriter *ops;
	Buffer		page;

	/* otherwise VACUUM has freed it, or another process has appended a page */
	if (BufferIsValid(prev) && !BufferIsValid(next))
	{
		if (number_of(IpPageGetSpecial(BufferGetPage(prev))) == PG_UINT32_MAX)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("too many lock pages have been added to relation \"%s\"",
							RelationGetRelationName(rel)),
					 errhint("VACUUM the table when no transaction that has locked rows of it is running.")));
		page = ip_space_find_free(rel);
		if (!BufferIsValid(page))
			page = ip_rel_extend(rel, NULL, 1, &extended);
		ip_change_begin(&change, rel, IP_XLOG_LOCK, InvalidTransactionId);
		ops = ip_lockset_init_page(&change, page, prev);
		link = ip_lockset_link(prev);
		/* the damaged link may have led to this very page */
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

void
ip_lockset_add(Relation rel, Buffer data, OffsetNumber off, IpXid xid,
			   LockTupleMode mode, bool any)
{
	BlockNumber last;

	Assert(ip_page_is_locked(BufferGetPage(data), true));	/* I5 */
	Assert(off >= FirstOffsetNumber && off <= IP_MAX_ROWS_PER_PAGE);
	CompatInjectionPoint("inplace-add-lock");
	while (!try_add(rel, data, off, xid, mode, any, &last))
		append_page(rel, last);
}

bool
ip_lockset_add_alike(Relation rel, Buffer data, OffsetNumber off,
					 TransactionId xid, LockTupleMode mode)
{
	LastLock   *l = &last_lock;
	Buffer		buffer;
	bool		same;

	Assert(ip_page_is_locked(BufferGetPage(data), true));
	if (l->page == 0 || l->xid != xid || l->mode != mode ||
		l->block != BufferGetBlockNumber(data) ||
		l->number != CompatRelNumber(rel) ||
		IpPageGetSpecial(BufferGetPage(data))->u.data.lock_page != l->page)
		return false;
	buffer = ip_lockset_open(rel, l->page, BUFFER_LOCK_EXCLUSIVE);
	if (!BufferIsValid(buffer))
		return false;
	same = PageGetLSN(BufferGetPage(buffer)) == l->lsn &&
		!ip_lockset_is_continued(BufferGetPage(buffer));
	if (same)
	{
		add_row(rel, buffer, l->set, off);
		/* a page image may have been written to WAL */
		l->lsn = PageGetLSN(BufferGetPage(buffer));
	}
	UnlockReleaseBuffer(buffer);
	return same;
}

/* ---- freeing ----------------------------------------------------------- */

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
 * Live sets may also be on the pages on which the page's sets are continued.  A
 * process that adds one there has passed this page, which is locked
 * exclusively, so it is ahead of us.
 */
bool
ip_lockset_is_in_use(Relation rel, Buffer buffer)
{
	bool		used = has_live_set(BufferGetPage(buffer));
	IpXid		lost = IP_XID_NONE;

	for (Buffer at = used ? InvalidBuffer : more_sets(rel, buffer, &lost);
		 BufferIsValid(at); at = pass_to_more_sets(rel, at, &lost))
		used |= has_live_set(BufferGetPage(at));
	/* behind a damaged link sets count as live as long as any can be */
	return used ||
		(lost == PG_UINT64_MAX && others_may_lock(rel, ip_xid_next()));
}
