/*-------------------------------------------------------------------------
 * ip_fetch_index.c
 *	  Fetching rows by the TIDs of an index.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "portability/instr_time.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "ip_dead.h"
#include "ip_fetch.h"
#include "ip_fetch_index.h"
#include "ip_heal.h"
#include "ip_memo.h"
#include "ip_rel.h"
#include "ip_sight.h"
#include "ip_slot.h"
#include "ip_version_satisfy.h"
#include "ip_xid.h"

/*
 * A scan flushes WAL when it has met this number of dead rows whose deletion is
 * not flushed.
 */
#define MAX_UNFLUSHED	32

/*
 * A scan puts pages that are not all-visible in order when it has fetched more
 * rows of such pages than this: it does not pay for a few rows.
 */
#define MAX_UNHEALED	8

static IpVersion fetch_v;

typedef struct IpIndexFetch
{
	IndexFetchTableData base;
	Buffer		buffer;			/* pinned: the last row's page */
	int			unflushed;		/* dead rows whose deletion is not flushed */
	int			unhealed;		/* rows fetched that may be worth healing */
	IpHeals		heals;
	XLogRecPtr	gone_lsn;		/* the last row was removed: see ip_dead_lsn */
	IpXid		deleter;		/* the last row was deleted by this one */
	bool		costly;			/* see ip_heal_is_costly */
	InplaceKeyMatch match;		/* NULL: the index has no stale entries */
	void	   *match_arg;
	const XLogRecPtr *read_at;
	bool		stale;			/* the last row's entry may be stale */
	IpVersion  *below;			/* the last version that a dirty snapshot saw,
								 * if there is one before it; or NULL */
	int			stale_tries;	/* see ip_fetch_before */
	bool		is_scan;		/* not a uniqueness check: core resets a scan
								 * when it begins */
	bool		is_noted;		/* seen is valid */
	IpSeen		seen;
} IpIndexFetch;

IndexFetchTableData *
ip_fetch_begin(Relation rel, uint32 flags)
{
	IpIndexFetch *fetch = palloc(sizeof(IpIndexFetch));

	CompatIndexFetchInit(&fetch->base, rel, flags);
	fetch->buffer = InvalidBuffer;
	fetch->unflushed = 0;
	fetch->unhealed = 0;
	fetch->heals = IP_HEALS_UNKNOWN;
	fetch->match = NULL;
	fetch->below = NULL;
	fetch->is_scan = false;
	fetch->is_noted = false;
	ip_rel_check_format(rel);
	return &fetch->base;
}

void
ip_fetch_expect(IndexFetchTableData *scan, InplaceKeyMatch match, void *arg,
				const XLogRecPtr *read_at)
{
	IpIndexFetch *fetch = (IpIndexFetch *) scan;

	fetch->match = match;
	fetch->match_arg = arg;
	fetch->read_at = read_at;
}

/*
 * Returns whether an entry that leads to this page may be stale.  If it was
 * stale when the index page was read, it was removed after that.  If the page
 * no longer has the flag, the record that cleared it came later still.  Without
 * WAL this cannot be determined.
 */
static bool
may_be_stale(IpIndexFetch *fetch, Page page, Snapshot snapshot)
{
	return (IpPageGetSpecial(page)->keys & IP_KEYS_STALE) ||
		PageGetLSN(page) > *fetch->read_at ||
		snapshot->snapshot_type != SNAPSHOT_MVCC ||
		!RelationNeedsWAL(fetch->base.rel);
}

/*
 * Returns whether the entry has the key of the version in the slot (I23).  With
 * assertions, entries that cannot be stale are examined, too.
 */
static bool
entry_matches(IpIndexFetch *fetch, Snapshot snapshot, TupleTableSlot *slot)
{
	bool		is_lost = false;
	bool		result;

	if (fetch->match == NULL)
		return true;
#ifndef USE_ASSERT_CHECKING
	if (!fetch->stale)
		return true;
#endif
	/* no snapshot keeps the long values of rows that are just not vacuumable */
	result = fetch->match(fetch->match_arg, slot,
						  snapshot->snapshot_type == SNAPSHOT_NON_VACUUMABLE ?
						  &is_lost : NULL);
	if (!result && !is_lost && !fetch->stale)
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("an index entry that is not stale has another key than row (%u,%u) of relation \"%s\"",
						ItemPointerGetBlockNumberNoCheck(&slot->tts_tid),
						ItemPointerGetOffsetNumberNoCheck(&slot->tts_tid),
						RelationGetRelationName(fetch->base.rel))));
	return result;
}

bool
ip_fetch_is_current(IndexFetchTableData *scan, IpVersion *v, bool is_dead,
					TupleTableSlot *slot)
{
	IpIndexFetch *fetch = (IpIndexFetch *) scan;
	bool		is_lost = false;

	if (fetch->match == NULL)
		return true;
	ip_version_to_slot(v, slot);
	return fetch->match(fetch->match_arg, slot, is_dead ? &is_lost : NULL) ||
		is_lost;
}

static void
unpin(IpIndexFetch *fetch)
{
	if (BufferIsValid(fetch->buffer))
		ReleaseBuffer(fetch->buffer);
	fetch->buffer = InvalidBuffer;
}

void
ip_fetch_reset(IndexFetchTableData *scan)
{
	IpIndexFetch *fetch = (IpIndexFetch *) scan;

	unpin(fetch);
	fetch->is_scan = true;
	/* the scan is at its end: its caller did not want the last row */
	if (fetch->is_noted)
		ip_memo_note_seen(NULL);
	fetch->is_noted = false;
}

void
ip_fetch_end(IndexFetchTableData *scan)
{
	IpIndexFetch *fetch = (IpIndexFetch *) scan;

	unpin(fetch);
	if (fetch->is_noted)
		ip_memo_note_seen_at_end(&fetch->seen);
	if (fetch->below != NULL)
		pfree(fetch->below);
	pfree(fetch);
}

/*
 * There is no row.  Returns the LSN up to which WAL must be flushed before an
 * index may remember that.
 */
static XLogRecPtr
gone_lsn(Relation rel, Buffer buffer, OffsetNumber off)
{
	Page		page = BufferGetPage(buffer);
	ItemId		lp = PageGetItemId(page, off);

	if (off > PageGetMaxOffsetNumber(page) || !ItemIdIsDead(lp) ||
		lp->lp_len == 0 || !RelationIsPermanent(rel))
		return InvalidXLogRecPtr;
	return ip_dead_lsn(lp, BufferGetLSNAtomic(buffer));
}

/* Store the version that was found on the locked page. */
static void
store_sight(const IpSight *s, TupleTableSlot *slot)
{
	IpVersionId id;

	ip_sight_id(s, &id);
	ip_slot_store(slot, s->row.hdr, s->row.body, s->row.bodylen, &s->tid, &id);
	slot->tts_tableOid = RelationGetRelid(s->rel);
}

/*
 * Set fetch->costly if, because of the row's newest change, it pays to put the
 * page in order.
 */
static void
note_costly(IpIndexFetch *fetch, uint8 state, IpXid xid, IpPtr ptr)
{
	fetch->costly = !ip_heal_is_healthy(BufferGetPage(fetch->buffer)) &&
		ip_heal_is_costly(fetch->base.rel, BufferGetBlockNumber(fetch->buffer),
						  state, xid, ptr);
}

/* What a fetch has found. */
typedef enum Found
{
	FOUND_STORED,				/* the version is in the slot */
	FOUND_VERSION,				/* the row: v stands on its newest version */
	FOUND_DELETED,				/* the snapshot sees a deletion, by
								 * fetch->deleter */
	FOUND_GONE,					/* there is no row: fetch->gone_lsn is set */
	FOUND_STALE					/* the row must be read again */
} Found;

/*
 * The page is locked, and may have the row, which is not frozen; see
 * fetch_pinned.
 */
static pg_noinline Found
find_row(IpIndexFetch *fetch, IpVersion *v, ItemPointer tid, Snapshot snapshot,
		 TupleTableSlot *slot)
{
	static uint8 space[BLCKSZ];
	Relation	rel = fetch->base.rel;
	BlockNumber block = ItemPointerGetBlockNumber(tid);
	OffsetNumber off = ItemPointerGetOffsetNumber(tid);
	Page		page = BufferGetPage(fetch->buffer);
	IpKnownXids known = {IP_XID_NONE, IP_XID_NONE};
	IpSight		s = {
		.rel = rel,.page = page,.snapshot = snapshot,.horizon = v->horizon,
		.known = &known,.space = space,.tid = *tid
	};

	if (!ip_row_is_at(page, off))
	{
		fetch->gone_lsn = gone_lsn(rel, fetch->buffer, off);
		return FOUND_GONE;
	}
	s.item = ip_row_sound_item(page, PageGetItemId(page, off), &s.hdr);
	switch (ip_sight(&s))
	{
		case IP_SIGHT_NEWEST:
			note_costly(fetch, s.row.state, s.row.xid, s.row.ptr);
			store_sight(&s, slot);
			return FOUND_STORED;
		case IP_SIGHT_PREVIOUS:
			/* it is at home, so reading it is not costly */
			store_sight(&s, slot);
			return FOUND_STORED;
		case IP_SIGHT_NOTHING:
			fetch->deleter = s.row.xid;
			if (s.row.state & IP_ROW_DELETED)
				return FOUND_DELETED;
			break;
		case IP_SIGHT_WALK:
			break;
	}
	if (ip_version_begin(v, rel, block, page, off) != IPV_OK)
		return FOUND_STALE;
	note_costly(fetch, v->top_state, v->top_xid, v->top_ptr);
	ip_version_let_go(v);
	return FOUND_VERSION;
}

/*
 * Find the row at tid, and store what the snapshot sees of it if the page alone
 * determines that.  The page stays pinned for the next row.  The index scan may
 * have read the TID a while ago, and the row may have been dead already.  Then
 * its page may be free meanwhile, or have another use.
 */
static Found
fetch_pinned(IpIndexFetch *fetch, IpVersion *v, ItemPointer tid,
			 Snapshot snapshot, TupleTableSlot *slot)
{
	Relation	rel = fetch->base.rel;
	BlockNumber block = ItemPointerGetBlockNumber(tid);
	OffsetNumber off = ItemPointerGetOffsetNumberNoCheck(tid);
	Found		found = FOUND_GONE;
	Page		page;

	fetch->costly = false;
	fetch->gone_lsn = InvalidXLogRecPtr;
	if (!BufferIsValid(fetch->buffer) ||
		BufferGetBlockNumber(fetch->buffer) != block)
	{
		unpin(fetch);
		fetch->buffer = ip_rel_read(rel, block);
		__builtin_prefetch(PageGetItemId(BufferGetPage(fetch->buffer), off));
	}
	page = BufferGetPage(fetch->buffer);
	Assert(BufferGetBlockNumber(fetch->buffer) == block);
	LockBuffer(fetch->buffer, BUFFER_LOCK_SHARE);
	v->horizon = ip_xid_horizon();
	if (ip_page_kind(rel, block, page) == IP_PAGE_DATA)
	{
		fetch->stale = fetch->match != NULL &&
			may_be_stale(fetch, page, snapshot);
		if (snapshot->snapshot_type == SNAPSHOT_MVCC &&
			!IsolationIsSerializable() &&
			ip_version_store_frozen(rel, block, page, off, slot))
			found = FOUND_STORED;
		else
			found = find_row(fetch, v, tid, snapshot, slot);
	}
	LockBuffer(fetch->buffer, BUFFER_LOCK_UNLOCK);
	return found;
}

/*
 * Without synchronous_commit, all scans of a queue would visit what was deleted
 * since the WAL writer's last flush.  So flush it, unless that takes more than
 * a tenth of our time.
 */
static bool
flush_deletions(IpIndexFetch *fetch, XLogRecPtr lsn)
{
	static int64 not_before;
	instr_time	begin;
	instr_time	end;

	/* a damaged page's LSN may be beyond all WAL */
	if (++fetch->unflushed < MAX_UNFLUSHED || RecoveryInProgress() ||
		lsn > GetXLogInsertRecPtr())
		return false;
	INSTR_TIME_SET_CURRENT(begin);
	if (INSTR_TIME_GET_MICROSEC(begin) < not_before)
		return false;
	XLogFlush(lsn);
	fetch->unflushed = 0;
	INSTR_TIME_SET_CURRENT(end);
	not_before = INSTR_TIME_GET_MICROSEC(end) +
		9 * (INSTR_TIME_GET_MICROSEC(end) - INSTR_TIME_GET_MICROSEC(begin));
	return true;
}

/*
 * Returns whether the index may remember, without WAL, that a row is dead whose
 * deletion is in the WAL before lsn (I16).  A scan with an MVCC snapshot holds
 * no lock on the index.
 */
static bool
is_durable(IpIndexFetch *fetch, Snapshot snapshot, XLogRecPtr lsn)
{
	return lsn == InvalidXLogRecPtr || !XLogNeedsFlush(lsn) ||
		(snapshot->snapshot_type == SNAPSHOT_MVCC &&
		 flush_deletions(fetch, lsn));
}

static bool
deleted_is_all_dead(IpIndexFetch *fetch, Snapshot snapshot, IpXid deleter,
					IpXid horizon)
{
	Relation	rel = fetch->base.rel;

	return ip_version_is_dead(rel, IP_ROW_DELETED, deleter, horizon) &&
		is_durable(fetch, snapshot,
				   ip_version_deletion_unflushed(rel, deleter));
}

/*
 * Put the page in order if that pays.  Called when a row of it has been
 * fetched.
 */
static void
heal_opt(IpIndexFetch *fetch, Snapshot snapshot)
{
	if (unlikely(!ip_heal_is_healthy(BufferGetPage(fetch->buffer))) &&
		snapshot->snapshot_type == SNAPSHOT_MVCC &&
		(++fetch->unhealed > MAX_UNHEALED || fetch->costly))
		ip_heal_page(fetch->base.rel, fetch->buffer, &fetch->heals);
}

/* Store what the snapshot sees of the row in the slot, if anything. */
static bool
store_visible(IpIndexFetch *fetch, ItemPointer tid, Snapshot snapshot,
			  TupleTableSlot *slot, bool *all_dead)
{
	IpVersion  *v = &fetch_v;
	IpvResult	result = IPV_STALE;

	switch (fetch_pinned(fetch, v, tid, snapshot, slot))
	{
		case FOUND_STORED:
			heal_opt(fetch, snapshot);
			return true;
		case FOUND_DELETED:
			if (all_dead)
				*all_dead = deleted_is_all_dead(fetch, snapshot, fetch->deleter,
												v->horizon);
			return false;
		case FOUND_GONE:
			if (all_dead)
				*all_dead = is_durable(fetch, snapshot, fetch->gone_lsn);
			return false;
		case FOUND_VERSION:
			result = ip_version_satisfy(v, snapshot);
			break;
		case FOUND_STALE:
			break;
	}

	/*
	 * if the snapshot sees nothing, determine whether the row is dead; if
	 * undo was recycled meanwhile, start again
	 */
	if (result == IPV_STALE || (result == IPV_NONE && all_dead))
		result = ip_version_fetch_satisfy(v, fetch->base.rel, tid, snapshot,
										  all_dead);
	if (result != IPV_OK || !ip_fetch_predicate_lock(v, snapshot))
		return false;
	ip_version_to_slot(v, slot);
	heal_opt(fetch, snapshot);
	return true;
}

/*
 * Store what the snapshot sees of the row before the version that the fetch has
 * returned last, if anything.
 */
static bool
store_before(IpIndexFetch *fetch, Snapshot snapshot, TupleTableSlot *slot)
{
	if (ip_fetch_before(fetch->below, snapshot, &fetch->stale_tries) != IPV_OK)
		return false;
	ip_version_to_slot(fetch->below, slot);
	return true;
}

/*
 * Keep a copy of fetch_v, which belongs to the caller only until the next call:
 * other fetches use it between the calls.
 */
static void
keep_version(IpIndexFetch *fetch)
{
	if (fetch->below == NULL)
		fetch->below = MemoryContextAlloc(GetMemoryChunkContext(fetch),
										  sizeof(IpVersion));
	ip_version_fork(fetch->below, &fetch_v);
	fetch->stale_tries = 0;
}

bool
ip_fetch_index_tuple(IndexFetchTableData *scan, ItemPointer tid,
					 Snapshot snapshot, TupleTableSlot *slot, bool *call_again,
					 bool *all_dead)
{
	IpIndexFetch *fetch = (IpIndexFetch *) scan;
	bool		is_dirty = snapshot->snapshot_type == SNAPSHOT_DIRTY;
	bool		again = *call_again;

	*call_again = false;
	if (all_dead)
		*all_dead = false;
	for (; !CompatLooksForDeleted(snapshot); again = true)
	{
		bool		has_before = false;

		if (again ? !store_before(fetch, snapshot, slot) :
			!store_visible(fetch, tid, snapshot, slot, all_dead))
			break;
		if (is_dirty)
		{
			IpVersion  *v = again ? fetch->below : &fetch_v;

			fetch->seen = ip_memo_seen(v, true);
			has_before = ip_version_has_before(v);
			if (has_before && !again)
				keep_version(fetch);
		}
		if (entry_matches(fetch, snapshot, slot))
		{
			*call_again = has_before;
			fetch->is_noted = is_dirty && fetch->is_scan;
			if (fetch->is_noted)
				ip_memo_note_seen(&fetch->seen);
			else
				ip_memo_forget_seen(scan->rel, tid);
			return true;
		}
		if (!has_before)
			break;
	}
	ExecClearTuple(slot);
	return false;
}
