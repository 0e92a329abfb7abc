/*-------------------------------------------------------------------------
 * ip_scan.c
 *	  Scans: sequential, parallel, bitmap, TID range, sample, ANALYZE.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/syncscan.h"
#include "access/tsmapi.h"
#include "access/xact.h"
#include "nodes/execnodes.h"
#include "nodes/tidbitmap.h"
#include "storage/predicate.h"
#include "utils/snapmgr.h"

#include "ip_fetch.h"
#include "ip_memo.h"
#include "ip_rel.h"
#include "ip_ring.h"
#include "ip_salvage.h"
#include "ip_scan.h"
#include "ip_slot.h"
#include "ip_undo.h"
#include "ip_xid.h"

/* ---- pages ------------------------------------------------------------- */

static void
unpin(IpScan *scan)
{
	if (BufferIsValid(scan->pinned))
		ReleaseBuffer(scan->pinned);
	scan->pinned = InvalidBuffer;
}

/* Let the page copy belong to this block; there is nothing in it yet. */
static void
set_block(IpScan *scan, BlockNumber block)
{
	CHECK_FOR_INTERRUPTS();
	unpin(scan);
	ip_slot_owner_release(&scan->owner);
	scan->block = block;
	Assert(scan->owner.borrower == NULL);	/* of the previous copy */
	scan->max_off = 0;
	scan->is_undo = false;
	scan->horizon = ip_xid_horizon();
}

/*
 * Returns whether the scan may put pages in order.  Other snapshots than MVCC
 * ones are used by code that checks or builds something.
 */
static inline bool
may_heal(IpScan *scan)
{
	return scan->rs_base.rs_snapshot != NULL &&
		scan->rs_base.rs_snapshot->snapshot_type == SNAPSHOT_MVCC;
}

void
ip_scan_copy_page(IpScan *scan, Buffer buffer)
{
	Page		copy = scan->copy.data;
	PageHeader	page;
	IpPageKind	kind;
	bool		left_out;

	set_block(scan, BufferGetBlockNumber(buffer));
	if (unlikely(!ip_heal_is_healthy(BufferGetPage(buffer))) && may_heal(scan))
		ip_heal_page(scan->rs_base.rs_rd, buffer, &scan->heals);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = (PageHeader) BufferGetPage(buffer);
	left_out = unlikely(ip_salvage_wanted()) && !PageIsNew((Page) page) &&
		!ip_page_is_ours((Page) page);
	if (left_out)
		kind = 0;
	else
		kind = ip_page_kind(scan->rs_base.rs_rd, scan->block, (Page) page);
	scan->is_undo = kind == IP_PAGE_UNDO;
	if (kind == IP_PAGE_DATA)
	{
		memcpy(copy, page, page->pd_lower);
		memcpy(copy + page->pd_upper, (char *) page + page->pd_upper,
			   BLCKSZ - page->pd_upper);
		scan->max_off = Min(PageGetMaxOffsetNumber(copy), IP_MAX_ROWS_PER_PAGE);
		/* readers do not report a damaged decoy */
		if (scan->block == IP_DECOY_BLOCK && scan->max_off >= FirstOffsetNumber)
			ItemIdSetUnused(PageGetItemId(copy, FirstOffsetNumber));
	}
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	scan->pinned = buffer;
	if (left_out)
		ereport(WARNING,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("block %u of relation \"%s\" is left out: it is not a page of an inplace table",
						scan->block,
						RelationGetRelationName(scan->rs_base.rs_rd))));
	if (kind != IP_PAGE_DATA)
		unpin(scan);
}

void
ip_scan_pass_undo(IpScan *scan, BlockNumber block)
{
	set_block(scan, block);
	scan->is_undo = true;
}

static void
load_page(IpScan *scan, BlockNumber block)
{
	if (block == IP_META_BLOCK)
		set_block(scan, block);
	else if (ip_ring_is_undo(scan->undo, block))
		ip_scan_pass_undo(scan, block);
	else
		ip_scan_copy_page(scan,
						  ReadBufferExtended(scan->rs_base.rs_rd, MAIN_FORKNUM,
											 block, RBM_NORMAL,
											 scan->strategy));
}

/* Returns the block that a forward scan reads first, or after another one. */
static BlockNumber
block_after(IpScan *scan, bool started, BlockNumber block)
{
	Relation	rel = scan->rs_base.rs_rd;
	BlockNumber next;

	if (scan->rs_base.rs_parallel != NULL)
	{
		ParallelBlockTableScanDesc pbscan =
			(ParallelBlockTableScanDesc) scan->rs_base.rs_parallel;
		bool		is_range =
			(scan->rs_base.rs_flags & SO_TYPE_TIDRANGESCAN) != 0;

		if (scan->start >= scan->limit)
			return InvalidBlockNumber;
		if (!started)
			CompatParallelStart(rel, scan->worker, pbscan,
								is_range ? scan->start : InvalidBlockNumber,
								is_range ? scan->limit - scan->start :
								InvalidBlockNumber);
		return table_block_parallelscan_nextpage(rel, scan->worker, pbscan);
	}
	if (!started)
		return scan->start < scan->limit ? scan->first : InvalidBlockNumber;
	next = block + 1 < scan->limit ? block + 1 : scan->start;
	if (scan->rs_base.rs_flags & SO_ALLOW_SYNC)
		ss_report_location(rel, next);
	return next == scan->first ? InvalidBlockNumber : next;
}

/*
 * Called for reading ahead.  Leaves out the metapage, and blocks that are known
 * to be undo (I24).
 */
static BlockNumber
next_to_read(void *state, void *per_block)
{
	IpScan	   *scan = state;

	do
	{
		CHECK_FOR_INTERRUPTS();
		scan->ahead = block_after(scan, scan->ahead_started, scan->ahead);
		scan->ahead_started = true;
	} while (scan->ahead == IP_META_BLOCK ||
			 ip_ring_is_undo(scan->undo, scan->ahead));
	return scan->ahead;
}

/* Drop what was read ahead. */
static void
stop_reading(IpScan *scan)
{
	if (scan->reads != NULL)
		compat_reads_reset(scan->reads);
	scan->forward = false;
}

static bool
next_block_forward(IpScan *scan)
{
	Buffer		buffer;

	if (!scan->forward)
	{
		scan->ahead = scan->block;
		scan->ahead_started = scan->started;
		scan->forward = true;
		if (scan->reads == NULL)
			scan->reads = compat_reads_begin(scan->rs_base.rs_rd,
											 COMPAT_READ_SEQUENTIAL,
											 scan->strategy, next_to_read, scan,
											 0);
	}
	buffer = compat_reads_next(scan->reads, NULL);
	if (!BufferIsValid(buffer))
		return false;
	ip_scan_copy_page(scan, buffer);
	scan->off = 0;
	return true;
}

static BlockNumber
block_before(IpScan *scan, BlockNumber block)
{
	return block > scan->start ? block - 1 : scan->limit - 1;
}

static bool
next_block_backward(IpScan *scan)
{
	Assert(scan->rs_base.rs_parallel == NULL);
	if (scan->forward)
		stop_reading(scan);
	if (scan->started ? scan->block == scan->first : scan->start >= scan->limit)
		return false;
	load_page(scan,
			  block_before(scan, scan->started ? scan->block : scan->first));
	scan->off = scan->max_off + 1;
	return true;
}

/* Go to the first or next block in scan direction; returns false at the end. */
static bool
next_block(IpScan *scan, bool forward)
{
	if (!(forward ? next_block_forward(scan) : next_block_backward(scan)))
		return false;
	Assert(scan->block < scan->nblocks);
	scan->started = true;
	return true;
}

/* ---- rows -------------------------------------------------------------- */

void
ip_scan_store_version(IpScan *scan, IpVersion *v, TupleTableSlot *slot)
{
	IpVersionId id;
	bool		is_ours = v->body >= (uint8 *) scan &&
		v->body < (uint8 *) (scan + 1);

	slot->tts_tableOid = RelationGetRelid(scan->rs_base.rs_rd);
	ip_version_id(v, &id);
	if (is_ours)
		ip_slot_borrow(slot, &scan->owner, v->hdr, v->body, v->bodylen, &v->tid,
					   &id);
	else
		ip_slot_store(slot, v->hdr, v->body, v->bodylen, &v->tid, &id);
}

/*
 * Store a row that everybody sees.  Most rows of a scan are such rows, and no
 * decision is necessary for them.
 */
static inline void
store_frozen(IpScan *scan, OffsetNumber off, const uint8 *item, uint32 len,
			 uint16 hdr, TupleTableSlot *slot)
{
	static const IpVersionId frozen_id = {.xmin = FrozenTransactionId};
	ItemPointerData tid;

	ItemPointerSet(&tid, scan->block, off);
	ip_slot_borrow(slot, &scan->owner, hdr, item + IP_ROW_HDRSZ,
				   len - IP_ROW_HDRSZ, &tid, &frozen_id);
}

/* Store the version that was found on the page. */
static void
store_sight(IpScan *scan, const IpSight *s, TupleTableSlot *slot)
{
	IpVersionId id;

	ip_sight_id(s, &id);
	ip_slot_borrow(slot, &scan->owner, s->row.hdr, s->row.body, s->row.bodylen,
				   &s->tid, &id);
	ip_memo_forget_seen(s->rel, &s->tid);
}

IpSightOf
ip_scan_sight(IpScan *scan, OffsetNumber off, const uint8 *item, uint16 hdr,
			  Snapshot snapshot)
{
	IpSight    *s = &scan->sight;

	s->snapshot = snapshot;
	s->horizon = scan->horizon;
	ItemPointerSet(&s->tid, scan->block, off);
	s->item = item;
	s->hdr = hdr;
	return ip_sight(s);
}

bool
ip_scan_store_frozen(IpScan *scan, OffsetNumber off, TupleTableSlot *slot)
{
	ItemId		lp = PageGetItemId(scan->copy.data, off);
	uint16		hdr = 0;
	const uint8 *item = ip_row_sound_item(scan->copy.data, lp, &hdr);

	if (item == NULL || item[IP_ROW_STATE] != 0)
		return false;
	store_frozen(scan, off, item, ItemIdGetLength(lp), hdr, slot);
	return true;
}

/* Store the version that scan->v stands on. */
static void
store_found(IpScan *scan, TupleTableSlot *slot)
{
	IpVersion  *v = &scan->v;
	IpSeen		seen;

	ip_scan_store_version(scan, v, slot);
	if (scan->rs_base.rs_snapshot->snapshot_type != SNAPSHOT_DIRTY)
	{
		ip_memo_forget_seen(scan->rs_base.rs_rd, &v->tid);
		return;
	}
	scan->has_before = ip_version_has_before(v);
	seen = ip_memo_seen(v, false);
	ip_memo_note_seen(&seen);
}

/* Store what the snapshot sees of the row at off, if anything. */
static bool
store_row(IpScan *scan, OffsetNumber off, TupleTableSlot *slot)
{
	Relation	rel = scan->rs_base.rs_rd;
	Snapshot	snapshot = scan->rs_base.rs_snapshot;
	ItemId		lp = PageGetItemId(scan->copy.data, off);
	uint32		len = ItemIdGetLength(lp);
	uint16		hdr = 0;
	const uint8 *item = ip_row_sound_item(scan->copy.data, lp, &hdr);
	IpVersion  *v = &scan->v;
	IpvResult	result;

	Assert(OffsetNumberIsValid(off) && off <= scan->max_off);
	slot->tts_tableOid = RelationGetRelid(rel);
	if (likely(item != NULL && item[IP_ROW_STATE] == 0 &&
			   snapshot->snapshot_type != SNAPSHOT_DIRTY))
	{
		store_frozen(scan, off, item, len, hdr, slot);
		return true;
	}
	/* a page of few rows that change often has many records */
	if (!ip_item_is_used(lp) || ip_item_is_undo(scan->copy.data, lp))
		return false;
	ip_scan_reuse_version(scan, slot);
	switch (ip_scan_sight(scan, off, item, hdr, snapshot))
	{
		case IP_SIGHT_NEWEST:
		case IP_SIGHT_PREVIOUS:
			store_sight(scan, &scan->sight, slot);
			return true;
		case IP_SIGHT_NOTHING:
			return false;
		case IP_SIGHT_WALK:
			break;
	}
	result = ip_version_begin_copy(v, rel, scan->block, scan->copy.data, off,
								   scan->horizon);
	if (result == IPV_OK)
		result = ip_version_satisfy(v, snapshot);
	if (result == IPV_STALE)
	{
		/* the page has changed since it was copied */
		result = ip_version_fetch_satisfy(v, rel, &scan->sight.tid, snapshot,
										  NULL);
	}
	if (result != IPV_OK)
		return false;
	store_found(scan, slot);
	scan->stale_tries = 0;
	return true;
}

typedef struct RowToStore
{
	IpScan	   *scan;
	OffsetNumber off;
	TupleTableSlot *slot;
	bool		found;
} RowToStore;

static void
store_whole_row(void *arg)
{
	RowToStore *row = arg;

	row->found = store_row(row->scan, row->off, row->slot);
	if (row->found)
		slot_getallattrs(row->slot);
}

static void
warn_of_row(IpScan *scan, OffsetNumber off, const char *problem)
{
	ereport(WARNING,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("row (%u,%u) of relation \"%s\" is left out: %s",
					scan->block, off,
					RelationGetRelationName(scan->rs_base.rs_rd), problem)));
}

/* Call the function for the row.  If the row is damaged, it is left out. */
static bool
try_row(IpScan *scan, OffsetNumber off, TupleTableSlot *slot,
		void (*store) (void *row))
{
	RowToStore	row = {scan, off, slot, false};
	char	   *problem = ip_salvage_try(store, &row);

	if (problem == NULL)
		return row.found;
	warn_of_row(scan, off, problem);
	pfree(problem);
	ExecClearTuple(slot);
	return false;
}

/* store_row, which leaves out damaged rows if that is wanted. */
static bool
store_or_leave_out(IpScan *scan, OffsetNumber off, TupleTableSlot *slot)
{
	return likely(!ip_salvage_wanted()) ? store_row(scan, off, slot) :
		try_row(scan, off, slot, store_whole_row);
}

/*
 * A dirty snapshot has got the version that scan->v stands on.  Store the
 * version before it.
 */
static bool
store_before(IpScan *scan, TupleTableSlot *slot)
{
	scan->has_before = false;
	ip_scan_reuse_version(scan, slot);
	if (ip_fetch_before(&scan->v, scan->rs_base.rs_snapshot,
						&scan->stale_tries) != IPV_OK)
		return false;
	store_found(scan, slot);
	return true;
}

static void
reset_position(IpScan *scan)
{
	stop_reading(scan);
	unpin(scan);
	scan->started = false;
	scan->has_before = false;
	scan->block = InvalidBlockNumber;
	scan->max_off = 0;
	scan->off = 0;
	scan->nwanted = scan->next_wanted = 0;
	scan->known.seen = scan->known.unseen = IP_XID_NONE;
	scan->heals = IP_HEALS_UNKNOWN;
}

/*
 * Scans of a large table join scans that are under way.  A rescan starts where
 * the scan first did, so that a cursor's rows keep their order.
 */
static void
set_sync(IpScan *scan, bool rescan)
{
	bool		sync = synchronize_seqscans &&
		(scan->rs_base.rs_flags & SO_ALLOW_SYNC) &&
		scan->nblocks > NBuffers / 4 &&
		!RelationUsesLocalBuffers(scan->rs_base.rs_rd) &&
		scan->rs_base.rs_parallel == NULL;

	if (!rescan)
		scan->first = sync ?
			ss_get_location(scan->rs_base.rs_rd, scan->nblocks) : 0;
	if (!sync)
		scan->rs_base.rs_flags &= ~SO_ALLOW_SYNC;
}

/* Reads keep the strategy that they began with. */
static void
end_reading(IpScan *scan)
{
	if (scan->reads != NULL)
		compat_reads_end(scan->reads);
	scan->reads = NULL;
}

static void
start_scan(IpScan *scan, bool rescan)
{
	Relation	rel = scan->rs_base.rs_rd;

	scan->nblocks = scan->rs_base.rs_parallel == NULL ?
		RelationGetNumberOfBlocks(rel) :
		((ParallelBlockTableScanDesc) scan->rs_base.rs_parallel)->phs_nblocks;
	scan->start = 0;
	scan->limit = scan->nblocks;
	reset_position(scan);
	set_sync(scan, rescan);
	if (!RelationUsesLocalBuffers(rel) && scan->nblocks > NBuffers / 4 &&
		(scan->rs_base.rs_flags & SO_ALLOW_STRAT))
	{
		if (scan->strategy == NULL)
		{
			end_reading(scan);
			scan->strategy = GetAccessStrategy(BAS_BULKREAD);
		}
	}
	else if (scan->strategy != NULL)
	{
		end_reading(scan);
		FreeAccessStrategy(scan->strategy);
		scan->strategy = NULL;
	}
	if (scan->rs_base.rs_flags & SO_TYPE_SEQSCAN)
		pgstat_count_heap_scan(rel);
}

/*
 * Returns whether the scan may pass over pages of undo without reading them
 * (I24).  A dirty snapshot sees rows that are inserted while the scan runs, and
 * its user scans again to find them.  A bitmap names only pages with rows.
 */
static bool
may_pass_undo(IpScan *scan)
{
	Snapshot	snapshot = scan->rs_base.rs_snapshot;

	return !(scan->rs_base.rs_flags & SO_TYPE_BITMAPSCAN) &&
		(snapshot == NULL || IsMVCCSnapshot(snapshot) ||
		 snapshot->snapshot_type == SNAPSHOT_ANY);
}

TableScanDesc
ip_scan_begin(Relation rel, Snapshot snapshot, int nkeys,
			  struct ScanKeyData *key, ParallelTableScanDesc pscan,
			  uint32 flags)
{
	IpScan	   *scan;

	RelationIncrementReferenceCount(rel);
	ip_rel_check_format(rel);
	scan = palloc(sizeof(IpScan));
	memset(scan, 0, offsetof(IpScan, v));
	scan->rs_base.rs_rd = rel;
	scan->rs_base.rs_snapshot = snapshot;
	scan->rs_base.rs_nkeys = nkeys;
	scan->rs_base.rs_flags = flags;
	scan->rs_base.rs_parallel = pscan;
	scan->sight.rel = rel;
	scan->sight.page = scan->copy.data;
	scan->sight.is_copy = true;
	scan->sight.known = &scan->known;
	scan->sight.space = scan->v.bodybuf[0];
	if (pscan != NULL)
		scan->worker = palloc(sizeof(ParallelBlockTableScanWorkerData));

	/*
	 * a serializable transaction locks the whole table; fetches by TID lock
	 * what they read
	 */
	if (flags & (SO_TYPE_SEQSCAN | SO_TYPE_SAMPLESCAN))
		PredicateLockRelation(rel, snapshot);
	start_scan(scan, false);
	if (may_pass_undo(scan))
		scan->undo = ip_ring_read_runs(rel, scan->nblocks);
	return &scan->rs_base;
}

void
ip_scan_end(TableScanDesc sscan)
{
	IpScan	   *scan = (IpScan *) sscan;

	ip_slot_owner_release(&scan->owner);
	unpin(scan);
	end_reading(scan);
	RelationDecrementReferenceCount(sscan->rs_rd);
	if (scan->strategy != NULL)
		FreeAccessStrategy(scan->strategy);
	if (scan->worker != NULL)
		pfree(scan->worker);
	if (scan->undo != NULL)
		pfree(scan->undo);
	if (sscan->rs_flags & SO_TEMP_SNAPSHOT)
		UnregisterSnapshot(sscan->rs_snapshot);
	pfree(scan);
}

void
ip_scan_rescan(TableScanDesc sscan, struct ScanKeyData *key, bool set_params,
			   bool allow_strat, bool allow_sync, bool allow_pagemode)
{
	IpScan	   *scan = (IpScan *) sscan;

	if (set_params)
	{
		sscan->rs_flags &= ~(SO_ALLOW_STRAT | SO_ALLOW_SYNC);
		sscan->rs_flags |= (allow_strat ? SO_ALLOW_STRAT : 0) |
			(allow_sync ? SO_ALLOW_SYNC : 0);
	}
	ip_slot_owner_release(&scan->owner);
	start_scan(scan, true);
}

void
ip_scan_set_range(IpScan *scan, BlockNumber start, BlockNumber nblocks)
{
	Assert(!(scan->rs_base.rs_flags & SO_ALLOW_SYNC));
	scan->start = scan->first = Min(start, scan->nblocks);
	scan->limit = nblocks == InvalidBlockNumber ? scan->nblocks :
		Min(scan->nblocks, (uint64) start + nblocks);
}

/* Step to the next item in the direction; false at the end of the scan. */
static pg_attribute_always_inline bool
next_item(IpScan *scan, bool forward)
{
	for (;;)
	{
		/* before the first page both are zero */
		if (likely(forward ? scan->off < scan->max_off :
				   scan->off > FirstOffsetNumber))
		{
			scan->off += forward ? 1 : -1;
			return true;
		}
		if (!next_block(scan, forward))
			return false;
	}
}

bool
ip_scan_getnextslot(TableScanDesc sscan, ScanDirection direction,
					TupleTableSlot *slot)
{
	IpScan	   *scan = (IpScan *) sscan;
	bool		forward = !ScanDirectionIsBackward(direction);

	if (CompatLooksForDeleted(sscan->rs_snapshot))
	{
		ExecClearTuple(slot);
		return false;
	}
	while (scan->has_before || next_item(scan, forward))
	{
		if (scan->has_before ? store_before(scan, slot) :
			store_or_leave_out(scan, scan->off, slot))
		{
			pgstat_count_heap_getnext(sscan->rs_rd);
			return true;
		}
	}
	/* at the end: the next call in the other direction starts from there */
	ip_slot_owner_release(&scan->owner);
	reset_position(scan);
	ExecClearTuple(slot);
	return false;
}

/*
 * Let scan->v stand on the newest version of the row at scan->off.  Returns
 * false if there is no row.
 */
static bool
begin_row(IpScan *scan)
{
	Relation	rel = scan->rs_base.rs_rd;
	ItemPointerData tid;

	switch (ip_version_begin_copy(&scan->v, rel, scan->block, scan->copy.data,
								  scan->off, scan->horizon))
	{
		case IPV_OK:
			return true;
		case IPV_NONE:
			break;
		case IPV_FAR:			/* not from a copy */
		case IPV_STALE:
			ItemPointerSet(&tid, scan->block, scan->off);
			return ip_version_fetch_newest(&scan->v, rel, &tid);
	}
	return false;
}

static void
begin_found_row(void *arg)
{
	RowToStore *row = arg;

	row->found = begin_row(row->scan);
}

bool
ip_scan_next_row(IpScan *scan)
{
	while (next_item(scan, true))
	{
		RowToStore	row = {scan, scan->off, NULL, false};
		char	   *problem;

		if (likely(!ip_salvage_wanted()))
		{
			if (begin_row(scan))
				return true;
			continue;
		}
		problem = ip_salvage_try(begin_found_row, &row);
		if (problem != NULL)
		{
			warn_of_row(scan, scan->off, problem);
			pfree(problem);
		}
		else if (row.found)
			return true;
	}
	return false;
}

/* ---- TID range --------------------------------------------------------- */

void
ip_scan_set_tidrange(TableScanDesc sscan, ItemPointer mintid,
					 ItemPointer maxtid)
{
	IpScan	   *scan = (IpScan *) sscan;

	CompatScanMinTid(sscan) = *mintid;
	CompatScanMaxTid(sscan) = *maxtid;
	scan->start = scan->limit = 0;
	if (ItemPointerCompare(mintid, maxtid) <= 0)
	{
		scan->start = Min(ItemPointerGetBlockNumberNoCheck(mintid),
						  scan->nblocks);
		scan->limit = Min((uint64) ItemPointerGetBlockNumberNoCheck(maxtid) + 1,
						  scan->nblocks);
	}
	scan->first = scan->start;
	reset_position(scan);
}

bool
ip_scan_getnextslot_tidrange(TableScanDesc sscan, ScanDirection direction,
							 TupleTableSlot *slot)
{
	while (ip_scan_getnextslot(sscan, direction, slot))
	{
		if (ItemPointerCompare(&slot->tts_tid, &CompatScanMinTid(sscan)) >= 0 &&
			ItemPointerCompare(&slot->tts_tid, &CompatScanMaxTid(sscan)) <= 0)
			return true;
	}
	return false;
}

/* ---- bitmap ------------------------------------------------------------ */

BlockNumber
ip_scan_bitmap_nblocks(TableScanDesc sscan)
{
	return ((IpScan *) sscan)->nblocks;
}

CompatReads **
ip_scan_bitmap_reads(TableScanDesc sscan)
{
	return &((IpScan *) sscan)->reads;
}

void
ip_scan_bitmap_page(TableScanDesc sscan, Buffer buffer,
					const OffsetNumber *offsets, int noffsets)
{
	IpScan	   *scan = (IpScan *) sscan;

	Assert(noffsets <= (int) lengthof(scan->wanted));
	scan->nwanted = scan->next_wanted = 0;
	ip_scan_copy_page(scan, buffer);
	if (noffsets < 0)
	{
		for (OffsetNumber off = FirstOffsetNumber; off <= scan->max_off; off++)
			scan->wanted[scan->nwanted++] = off;
	}
	for (int i = 0; i < noffsets; i++)
	{
		if (offsets[i] <= scan->max_off)
			scan->wanted[scan->nwanted++] = offsets[i];
	}
}

/* Fetch the row at off.  A serializable transaction locks what it reads. */
static bool
fetch_row(IpScan *scan, OffsetNumber off, TupleTableSlot *slot)
{
	ItemPointerData tid;

	ItemPointerSet(&tid, scan->block, off);
	return ip_fetch_row_version(scan->rs_base.rs_rd, &tid,
								scan->rs_base.rs_snapshot, slot);
}

static void
fetch_whole_row(void *arg)
{
	RowToStore *row = arg;

	row->found = fetch_row(row->scan, row->off, row->slot);
	if (row->found)
		slot_getallattrs(row->slot);
}

static bool
fetch_or_leave_out(IpScan *scan, OffsetNumber off, TupleTableSlot *slot)
{
	return likely(!ip_salvage_wanted()) ? fetch_row(scan, off, slot) :
		try_row(scan, off, slot, fetch_whole_row);
}

bool
ip_scan_bitmap_row(TableScanDesc sscan, TupleTableSlot *slot)
{
	IpScan	   *scan = (IpScan *) sscan;

	while (scan->next_wanted < scan->nwanted)
	{
		OffsetNumber off = scan->wanted[scan->next_wanted++];

		if (IsolationIsSerializable() ? fetch_or_leave_out(scan, off, slot) :
			store_or_leave_out(scan, off, slot))
		{
			pgstat_count_heap_fetch(sscan->rs_rd);
			return true;
		}
	}
	ExecClearTuple(slot);
	return false;
}

/* ---- TABLESAMPLE ------------------------------------------------------- */

bool
ip_scan_sample_next_block(TableScanDesc sscan, SampleScanState *state)
{
	IpScan	   *scan = (IpScan *) sscan;
	TsmRoutine *tsm = state->tsmroutine;
	BlockNumber block;

	if (scan->nblocks == 0)
		return false;
	if (tsm->NextSampleBlock)
		block = tsm->NextSampleBlock(state, scan->nblocks);
	else
		block = scan->started ? scan->block + 1 : 0;
	if (block == InvalidBlockNumber || block >= scan->nblocks)
	{
		reset_position(scan);
		return false;
	}
	scan->started = true;
	load_page(scan, block);
	return true;
}

bool
ip_scan_sample_next_tuple(TableScanDesc sscan, SampleScanState *state,
						  TupleTableSlot *slot)
{
	IpScan	   *scan = (IpScan *) sscan;

	for (;;)
	{
		OffsetNumber off = state->tsmroutine->NextSampleTuple(state,
															  scan->block,
															  scan->max_off);

		if (!OffsetNumberIsValid(off))
			break;
		if (off <= scan->max_off && store_or_leave_out(scan, off, slot))
		{
			pgstat_count_heap_getnext(sscan->rs_rd);
			return true;
		}
	}
	ExecClearTuple(slot);
	return false;
}
