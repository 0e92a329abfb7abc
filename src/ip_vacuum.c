/*-------------------------------------------------------------------------
 * ip_vacuum.c
 *	  VACUUM of inplace tables.
 *
 *	1. Each page that is not all-visible is pruned: aborted changes are put
 *	   back, version blocks stripped, ended row locks dropped, dead rows become
 *	   dead items, whose TIDs are collected in a tidset.  Then no xid before
 *	   OldestXmin can be anything but committed, so relfrozenxid advances
 *	   without a page being rewritten.
 *	2. Indexes forget the collected TIDs.
 *	3. Only then the dead items may be used again; pages become all-visible,
 *	   empty ones free pages.  1 to 3 repeat if the tidset becomes full.
 *	4. Undo rings give back pages that a long transaction made them take, and
 *	   free pages at the end of the file are cut off.
 *-------------------------------------------------------------------------
 */
#include "ip_compat.h"

#include <math.h>

#include "access/multixact.h"
#include "access/visibilitymap.h"
#include "commands/dbcommands.h"
#include "commands/progress.h"
#include "postmaster/autovacuum.h"
#include "storage/freespace.h"
#include "utils/lsyscache.h"

#include "ip_prune.h"
#include "ip_space.h"
#include "ip_undo.h"
#include "ip_vacuum.h"
#include "ip_wal.h"
#include "ip_xid.h"

/* With fewer pages that have dead items, indexes are left alone for now. */
#define FEW_DEAD_PAGES(nblocks)	((nblocks) * 0.02)
#define FEW_DEAD_BYTES			(32 * 1024 * 1024)

/* How often, in blocks, to look for the wraparound failsafe and make FSM pages. */
#define FAILSAFE_EVERY			((BlockNumber) ((uint64) 4 * 1024 * 1024 * 1024 / BLCKSZ))
#define FSM_EVERY				((BlockNumber) ((uint64) 8 * 1024 * 1024 * 1024 / BLCKSZ))

/* Truncation has to be worth an exclusive lock: so many blocks, or that part of all. */
#define TRUNCATE_MIN			1000
#define TRUNCATE_FRACTION		16
#define TRUNCATE_TRIES			100
#define TRUNCATE_PAUSE			50000L	/* us */
#define TRUNCATE_UNDISTURBED	20.0	/* ms */

/* ---- failsafe ------------------------------------------------------------------------- */

static void
check_failsafe(IpVacuum *v)
{
	Relation	rel = v->rel;

	if (v->failsafe ||
		!vacuum_xid_failsafe_check(rel->rd_rel->relfrozenxid, rel->rd_rel->relminmxid))
		return;
	v->failsafe = true;
	v->do_indexes = v->do_truncate = false;
	ereport(WARNING,
			(errmsg("bypassing nonessential maintenance of table \"%s.%s.%s\" as a failsafe after %d index scans",
					get_database_name(MyDatabaseId),
					get_namespace_name(RelationGetNamespace(rel)),
					RelationGetRelationName(rel), v->n.index_scans),
			 errdetail("The table's relfrozenxid or relminmxid is too far in the past."),
			 errhint("Consider increasing configuration parameter \"maintenance_work_mem\" or \"autovacuum_work_mem\".\n"
					 "You might also need to consider other ways for VACUUM to keep up with the allocation of transaction IDs.")));
	VacuumCostActive = false;
	VacuumCostBalance = 0;
}

/* ---- first pass: pages ------------------------------------------------------------------ */

static void
keep_in_pg_xact(IpVacuum *v, IpXid xid)
{
	if (v->unresolved == IP_XID_NONE || xid < v->unresolved)
		v->unresolved = xid;
}

/*
 * The row is locked, so its aborted changes could not be put back: pg_xact must keep them all.
 * If they are very many, it keeps what it has.
 */
static void
note_unresolved(IpVacuum *v, BlockNumber block, Page page, OffsetNumber off)
{
	static IpVersion version;
	IpvResult	result = ip_version_begin(&version, v->rel, block, page, off);

	while (result == IPV_OK && ip_version_status(&version) == IP_XID_ABORTED)
	{
		keep_in_pg_xact(v, version.xid);
		result = ip_version_older(&version);
	}
	if (result == IPV_FAR)
		keep_in_pg_xact(v, ip_xid_full(v->rel->rd_rel->relfrozenxid));
	if (result == IPV_STALE)
		ip_version_missing(&version);
}

static void
count_row(IpVacuum *v, BlockNumber block, Page page, OffsetNumber off, const IpRow *row)
{
	switch (ip_xid_status_locked(row->xid))
	{
		case IP_XID_ABORTED:
			note_unresolved(v, block, page, off);
			v->n.live += 1;
			break;
		case IP_XID_COMMITTED:
			if (row->state & IP_ROW_DELETED)
				v->n.recently_dead += 1;
			else
				v->n.live += 1;
			break;
		case IP_XID_RUNNING:
		case IP_XID_MINE:
			/* its transaction counts an insertion when it commits */
			if (!(row->state & IP_ROW_INSERTED))
				v->n.live += 1;
			break;
		case IP_XID_FORGOTTEN:
			break;				/* not of a locked page */
	}
}

/* Count the page's rows; the dead items' offsets. */
static int
look_at_page(IpVacuum *v, BlockNumber block, Page page, OffsetNumber *dead)
{
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	int			ndead = 0;
	IpRow		row;

	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		if (ItemIdIsDead(PageGetItemId(page, off)))
			dead[ndead++] = off;
		else if (ip_row_read(v->rel, block, page, off, &row))
			count_row(v, block, page, off, &row);
	}
	return ndead;
}

/* Do all see every row, and has every index entry one? */
static bool
is_all_visible(Page page)
{
	OffsetNumber max = PageGetMaxOffsetNumber(page);

	if (TransactionIdIsValid(IpPageGetSpecial(page)->u.data.default_xid))
		return false;
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		ItemId		lp = PageGetItemId(page, off);

		if (ItemIdIsDead(lp) ||
			(ip_item_is_used(lp) && (!ip_item_is_ours(lp) || ip_item_state(page, lp) != 0)))
			return false;
	}
	return true;
}

/*
 * The page's flag and the map's bits must not say more than is true, nor may the bits say more
 * than the flag: a change of the page clears the bits by the flag.  v->vm is the map's page.
 */
static void
distrust_visible(IpVacuum *v, BlockNumber block, Buffer buffer, bool visible)
{
	Page		page = BufferGetPage(buffer);
	bool		flag = !PageIsNew(page) && PageIsAllVisible(page);
	bool		bits = visibilitymap_get_status(v->rel, block, &v->vm) != 0;

	if (flag && !visible)
	{
		ereport(WARNING,
				(errmsg("page that is not all-visible is marked as all-visible in relation \"%s\" page %u",
						RelationGetRelationName(v->rel), block)));
		PageClearAllVisible(page);
		MarkBufferDirty(buffer);
		flag = false;
	}
	if (bits && !flag)
	{
		ereport(WARNING,
				(errmsg("page is not marked all-visible but visibility map bit is set in relation \"%s\" page %u",
						RelationGetRelationName(v->rel), block)));
		visibilitymap_clear(v->rel, block, v->vm, VISIBILITYMAP_VALID_BITS);
	}
}

/* Set the flag and the bits where they are missing.  The prunes that made the page so have told standbys already. */
static void
set_visible(IpVacuum *v, BlockNumber block, Buffer buffer)
{
	const uint8 both = VISIBILITYMAP_ALL_VISIBLE | VISIBILITYMAP_ALL_FROZEN;
	Page		page = BufferGetPage(buffer);

	if (PageIsAllVisible(page) && visibilitymap_get_status(v->rel, block, &v->vm) == both)
		return;
	PageSetAllVisible(page);
	MarkBufferDirty(buffer);
	visibilitymap_set(v->rel, block, buffer, InvalidXLogRecPtr, v->vm, InvalidTransactionId, both);
}

static void
reconcile_visible(IpVacuum *v, BlockNumber block, Buffer buffer)
{
	bool		visible = is_all_visible(BufferGetPage(buffer));

	distrust_visible(v, block, buffer, visible);
	if (visible)
		set_visible(v, block, buffer);
}

/* No index names these dead items any more; true: the page has become a free one. */
static bool
free_items(IpVacuum *v, Buffer buffer, const OffsetNumber *dead, int ndead)
{
	Page		page = BufferGetPage(buffer);
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	int			nused = 0;
	IpChange	change;

	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
		nused += ItemIdIsUsed(PageGetItemId(page, off)) ? 1 : 0;
	ip_change_begin(&change, v->rel, IP_XLOG_VACUUM, InvalidTransactionId);
	if (nused == ndead)
		ip_op_simple(ip_change_block(&change, buffer, true), IP_OP_INIT_FREE);
	else
		ip_op_unused(ip_change_block(&change, buffer, false), dead, ndead);
	ip_change_apply(&change);
	return nused == ndead;
}

static Size
space_of(BlockNumber block, Page page)
{
	return ip_free_offset(page, InvalidOffsetNumber) <= IP_MAX_ROWS_PER_PAGE ?
		ip_space_free(block, page) : 0;
}

/* What the free space map shall know of the page. */
static Size
vacuum_data_page(IpVacuum *v, BlockNumber block, Buffer buffer, OffsetNumber *dead, int *ndead)
{
	Page		page = BufferGetPage(buffer);
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	int			before = 0;
	bool		freed;

	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
		before += ItemIdIsDead(PageGetItemId(page, off)) ? 1 : 0;
	ip_prune_page(v->rel, buffer, v->horizon);
	*ndead = look_at_page(v, block, page, dead);
	v->n.removed += *ndead - before;
	v->n.data_pages++;
	v->n.dead_item_pages += *ndead > 0 ? 1 : 0;
	v->n.dead_items += *ndead;
	/* before dead items go: they may have been called all-visible */
	reconcile_visible(v, block, buffer);
	if (*ndead > 0 && ip_vacuum_nindexes(v) == 0)
	{
		freed = free_items(v, buffer, dead, *ndead);
		*ndead = 0;
		if (freed)
		{
			ip_note_free_block(&v->free, block);
			return IP_FREE_PAGE_SPACE;
		}
		reconcile_visible(v, block, buffer);
	}
	return space_of(block, page);
}

static void
note_undo_page(IpVacuum *v, BlockNumber block)
{
	if (v->n.undo_seen == v->undo_size)
	{
		v->undo_size = Max(1024, 2 * v->undo_size);
		v->undo = v->undo == NULL ? palloc(v->undo_size * sizeof(BlockNumber)) :
			repalloc_huge(v->undo, v->undo_size * sizeof(BlockNumber));
	}
	v->undo[v->n.undo_seen++] = block;
}

/* *ndead dead items are left for the indexes. */
static void
vacuum_page(IpVacuum *v, BlockNumber block, OffsetNumber *dead, int *ndead)
{
	Buffer		buffer = ReadBufferExtended(v->rel, MAIN_FORKNUM, block, RBM_NORMAL, v->strategy);
	Size		space = 0;

	*ndead = 0;
	v->n.scanned++;
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	switch (ip_page_kind(v->rel, block, BufferGetPage(buffer)))
	{
		case IP_PAGE_DATA:
			space = vacuum_data_page(v, block, buffer, dead, ndead);
			break;
		case IP_PAGE_UNDO:
			note_undo_page(v, block);
			distrust_visible(v, block, buffer, false);
			break;
		case IP_PAGE_META:
			distrust_visible(v, block, buffer, false);
			break;
		default:
			distrust_visible(v, block, buffer, false);
			space = IP_FREE_PAGE_SPACE; /* a free page, or one left empty by a crash */
			ip_note_free_block(&v->free, block);
			break;
	}
	UnlockReleaseBuffer(buffer);
	if (block != IP_META_BLOCK)
		RecordPageWithFreeSpace(v->rel, block, space);
}

/* ---- second pass -------------------------------------------------------------------------- */

/* The dead items of one block that the indexes have forgotten. */
static void
free_page_items(IpVacuum *v, BlockNumber block, const OffsetNumber *dead, int ndead)
{
	Buffer		buffer = ReadBufferExtended(v->rel, MAIN_FORKNUM, block, RBM_NORMAL, v->strategy);
	Size		space = IP_FREE_PAGE_SPACE;

	visibilitymap_pin(v->rel, block, &v->vm);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	if (ip_page_kind(v->rel, block, BufferGetPage(buffer)) != IP_PAGE_DATA)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("block %u of relation \"%s\" had dead rows, but is no data page any more",
						block, RelationGetRelationName(v->rel))));
	if (free_items(v, buffer, dead, ndead))
		ip_note_free_block(&v->free, block);
	else
	{
		reconcile_visible(v, block, buffer);
		space = space_of(block, BufferGetPage(buffer));
	}
	UnlockReleaseBuffer(buffer);
	RecordPageWithFreeSpace(v->rel, block, space);
}

static void
free_dead_items(IpVacuum *v)
{
	OffsetNumber dead[MaxOffsetNumber];
	TidSetIter	iter;
	BlockNumber block;
	BlockNumber done = 0;
	int			ndead;

	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE, PROGRESS_VACUUM_PHASE_VACUUM_HEAP);
	tidset_iter_begin(v->dead, &iter);
	while ((ndead = tidset_iter_next(&iter, &block, dead)) > 0)
	{
		compat_vacuum_delay_point(false);
		free_page_items(v, block, dead, ndead);
		pgstat_progress_update_param(PROGRESS_VACUUM_HEAP_BLKS_VACUUMED, ++done);
	}
}

/* Clean indexes and then the dead items that have been collected. */
static void
vacuum_dead_items(IpVacuum *v)
{
	check_failsafe(v);
	if (!v->do_indexes)
		return;
	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE, PROGRESS_VACUUM_PHASE_VACUUM_INDEX);
	ip_vacuum_indexes_delete(v);
	pgstat_progress_update_param(PROGRESS_VACUUM_NUM_INDEX_VACUUMS, ++v->n.index_scans);
	check_failsafe(v);
	free_dead_items(v);
	tidset_reset(v->dead);
	pgstat_progress_update_param(PROGRESS_VACUUM_NUM_DEAD_TUPLES, 0);
}

/* A few dead items are not worth a scan of all indexes. */
static bool
few_dead_items(IpVacuum *v)
{
	return !v->always_indexes && v->n.index_scans == 0 &&
		v->n.dead_item_pages < FEW_DEAD_PAGES(v->nblocks) &&
		tidset_memory(v->dead) < FEW_DEAD_BYTES;
}

/* Remember the page's dead items for the indexes. */
static void
collect(IpVacuum *v, BlockNumber block, const OffsetNumber *dead, int ndead)
{
	if (!v->do_indexes)
		return;
	if (!tidset_add_block(v->dead, block, dead, ndead))
	{
		vacuum_dead_items(v);
		pgstat_progress_update_param(PROGRESS_VACUUM_PHASE, PROGRESS_VACUUM_PHASE_SCAN_HEAP);
		if (v->do_indexes && !tidset_add_block(v->dead, block, dead, ndead))
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("no memory for the dead rows of block %u of relation \"%s\"",
							block, RelationGetRelationName(v->rel))));
	}
	pgstat_progress_update_param(PROGRESS_VACUUM_NUM_DEAD_TUPLES, tidset_count(v->dead));
}

/* All-visible pages have nothing to do, as long as the map is right. */
static bool
may_skip(IpVacuum *v, BlockNumber block)
{
	return !(v->params->options & VACOPT_DISABLE_PAGE_SKIPPING) &&
		visibilitymap_get_status(v->rel, block, &v->vm) ==
		(VISIBILITYMAP_ALL_VISIBLE | VISIBILITYMAP_ALL_FROZEN);
}

static void
scan_pages(IpVacuum *v)
{
	OffsetNumber dead[MaxOffsetNumber];
	BlockNumber next_failsafe = 0;
	BlockNumber next_fsm = FSM_EVERY;
	int			ndead;

	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE, PROGRESS_VACUUM_PHASE_SCAN_HEAP);
	pgstat_progress_update_param(PROGRESS_VACUUM_TOTAL_HEAP_BLKS, v->nblocks);
	pgstat_progress_update_param(PROGRESS_VACUUM_MAX_DEAD_TUPLES, tidset_limit(v->dead) / 6);
	for (BlockNumber block = 0; block < v->nblocks; block++)
	{
		pgstat_progress_update_param(PROGRESS_VACUUM_HEAP_BLKS_SCANNED, block);
		if (may_skip(v, block))
			continue;
		compat_vacuum_delay_point(false);
		if (block >= next_failsafe)
		{
			check_failsafe(v);
			next_failsafe = block + FAILSAFE_EVERY;
		}
		visibilitymap_pin(v->rel, block, &v->vm);
		vacuum_page(v, block, dead, &ndead);
		if (ndead > 0)
			collect(v, block, dead, ndead);
		if (block >= next_fsm)
		{
			FreeSpaceMapVacuumRange(v->rel, next_fsm - FSM_EVERY, block);
			next_fsm = block + FSM_EVERY;
		}
	}
	pgstat_progress_update_param(PROGRESS_VACUUM_HEAP_BLKS_SCANNED, v->nblocks);
}

/* ---- truncation ------------------------------------------------------------------------------ */

static bool
lock_for_truncation(IpVacuum *v)
{
	for (int tries = 0; tries < TRUNCATE_TRIES; tries++)
	{
		CHECK_FOR_INTERRUPTS();
		if (ConditionalLockRelation(v->rel, AccessExclusiveLock))
			return true;
		pg_usleep(TRUNCATE_PAUSE);
	}
	ereport(v->elevel,
			(errmsg("\"%s\": stopping truncate due to conflicting lock request",
					RelationGetRelationName(v->rel))));
	return false;
}

/* Does somebody wait for the table, which we have locked since then?  Not while that is short. */
static bool
others_wait(IpVacuum *v, instr_time since)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, since);
	return INSTR_TIME_GET_MILLISEC(now) >= TRUNCATE_UNDISTURBED &&
		LockHasWaitersRelation(v->rel, AccessExclusiveLock);
}

/*
 * The file consists of free pages from this block on.  With waited, the table is
 * locked against all others: stops and sets *waited when one of them waits.
 */
static BlockNumber
first_of_free_tail(IpVacuum *v, bool *waited)
{
	BlockNumber block = v->nblocks;
	instr_time	start;

	INSTR_TIME_SET_CURRENT(start);

	while (block > IP_META_BLOCK + 1)
	{
		Buffer		buffer;
		int			kind;

		CHECK_FOR_INTERRUPTS();
		if (waited && block % 32 == 0 && others_wait(v, start))
		{
			*waited = true;
			break;
		}
		buffer = ReadBufferExtended(v->rel, MAIN_FORKNUM, block - 1, RBM_NORMAL, v->strategy);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		kind = ip_page_kind(v->rel, block - 1, BufferGetPage(buffer));
		if (kind == IP_PAGE_DATA && PageGetMaxOffsetNumber(BufferGetPage(buffer)) == 0)
			kind = IP_PAGE_FREE;
		UnlockReleaseBuffer(buffer);
		if (kind != IP_PAGE_FREE && kind != 0)
			break;
		block--;
	}
	return block;
}

/*
 * Cut off what is free, or as much as there was time for before somebody waited
 * for the table; true if more may be possible.
 */
static bool
truncate_some(IpVacuum *v)
{
	bool		waited = false;
	BlockNumber block;

	if (!lock_for_truncation(v))
		return false;
	block = RelationGetNumberOfBlocks(v->rel) == v->nblocks ?
		first_of_free_tail(v, &waited) : v->nblocks;
	waited = waited && block < v->nblocks;
	if (block < v->nblocks)
	{
		RelationTruncate(v->rel, block);
		v->n.truncated += v->nblocks - block;
		ereport(v->elevel,
				(errmsg("table \"%s\": truncated %u to %u pages",
						RelationGetRelationName(v->rel), v->nblocks, block)));
		v->nblocks = block;
	}
	UnlockRelation(v->rel, AccessExclusiveLock);
	return waited;
}

static void
truncate_tail(IpVacuum *v)
{
	BlockNumber possible;

	v->nblocks = RelationGetNumberOfBlocks(v->rel);
	if (!v->do_truncate || old_snapshot_threshold >= 0)
		return;
	possible = v->nblocks - first_of_free_tail(v, NULL);
	if (possible == 0 || (possible < TRUNCATE_MIN && possible < v->nblocks / TRUNCATE_FRACTION))
		return;
	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE, PROGRESS_VACUUM_PHASE_TRUNCATE);
	while (truncate_some(v))
		;
}

/* ---- all of it -------------------------------------------------------------------------------- */

/* Versions in undo pages that should not be there count as dead rows. */
static double
excess_versions(IpVacuum *v)
{
	double		excess = ip_undo_beyond(ip_undo_pages(v->rel), v->nblocks);

	/* what rings left behind when they moved is for the next VACUUM */
	if (v->rings_moved && excess == 0)
		excess = ip_undo_beyond(v->n.undo_freed, v->nblocks);
	return excess * IP_UNDO_RECORDS_PER_PAGE;
}

static void
update_stats(IpVacuum *v, double row_count, TransactionId *frozenxid, bool *frozenxid_updated)
{
	Relation	rel = v->rel;
	bool		minmulti_updated;
	BlockNumber all_visible;

	*frozenxid = v->cutoffs.OldestXmin;
	if (v->unresolved != IP_XID_NONE &&
		TransactionIdPrecedes((TransactionId) v->unresolved, *frozenxid))
		*frozenxid = (TransactionId) v->unresolved;
	visibilitymap_count(rel, &all_visible, NULL);
	CompatVacUpdateRelstats(rel, v->nblocks, row_count, Min(all_visible, v->nblocks), 0,
							rel->rd_rel->relhasindex, *frozenxid, v->cutoffs.OldestMxact,
							frozenxid_updated, &minmulti_updated, false);
	CompatReportVacuum(RelationGetRelid(rel), rel->rd_rel->relisshared, Max(row_count, 0),
					   v->n.recently_dead + excess_versions(v), 0);
}

/*
 * Scanned rows, and those of the skipped pages, all of which have data: as dense
 * as the table was.
 */
static double
estimate_rows(IpVacuum *v)
{
	Form_pg_class form = v->rel->rd_rel;
	BlockNumber others = v->n.scanned - v->n.data_pages;
	BlockNumber skipped = v->nblocks - v->n.scanned;
	BlockNumber old_pages = Max(skipped, (BlockNumber) form->relpages > others ?
								form->relpages - others : 0);

	if (skipped == 0)
		return v->n.live;
	if (form->reltuples >= 0 && form->relpages > 0)
		return floor(v->n.live + form->reltuples / old_pages * skipped + 0.5);
	return v->n.data_pages > 0 ? v->n.live / v->n.data_pages * (v->n.data_pages + skipped) : -1;
}

/* Returns an estimate of the table's live rows. */
static double
vacuum_table(IpVacuum *v)
{
	double		row_count;
	bool		skipped;

	v->nblocks = RelationGetNumberOfBlocks(v->rel);
	check_failsafe(v);
	ip_vacuum_indexes_begin(v);
	scan_pages(v);
	skipped = v->n.scanned < v->nblocks;
	row_count = estimate_rows(v);
	if (tidset_count(v->dead) > 0 && !few_dead_items(v))
		vacuum_dead_items(v);
	if (BufferIsValid(v->vm))
		ReleaseBuffer(v->vm);
	v->vm = InvalidBuffer;
	v->n.undo_freed = ip_undo_reclaim(v->rel, v->horizon, v->undo, v->n.undo_seen, &v->free);
	v->n.undo_freed += ip_undo_shrink(v->rel, v->horizon, &v->free, &v->rings_moved);
	v->n.undo_pages = ip_undo_pages(v->rel) + v->n.undo_freed;
	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE, PROGRESS_VACUUM_PHASE_INDEX_CLEANUP);
	if (v->params->index_cleanup != VACOPTVALUE_DISABLED && !v->failsafe)
		ip_vacuum_indexes_cleanup(v, row_count, !skipped);
	ip_vacuum_indexes_end(v);
	FreeSpaceMapVacuum(v->rel);
	truncate_tail(v);
	return row_count;
}

void
ip_relation_vacuum(Relation rel, VacuumParams *params, BufferAccessStrategy bstrategy)
{
	IpVacuum   *v = palloc0(sizeof(IpVacuum));
	IpVacuumUsage *usage = ip_vacuum_usage_begin();
	TransactionId frozenxid;
	double		row_count;
	bool		frozenxid_updated;

	v->rel = rel;
	v->params = params;
	v->strategy = bstrategy;
	v->elevel = (params->options & VACOPT_VERBOSE) ? INFO : DEBUG2;
	v->vm = InvalidBuffer;
	v->do_indexes = params->index_cleanup != VACOPTVALUE_DISABLED;
	v->always_indexes = params->index_cleanup == VACOPTVALUE_ENABLED;
	v->do_truncate = params->truncate != VACOPTVALUE_DISABLED;
	pgstat_progress_start_command(PROGRESS_COMMAND_VACUUM, RelationGetRelid(rel));
	if (params->options & VACOPT_VERBOSE)
		ereport(INFO,
				(errmsg("vacuuming \"%s.%s.%s\"", get_database_name(MyDatabaseId),
						get_namespace_name(RelationGetNamespace(rel)),
						RelationGetRelationName(rel))));
	ip_check_meta(rel);
	vacuum_get_cutoffs(rel, params, &v->cutoffs);
	v->horizon = ip_xid_full(v->cutoffs.OldestXmin);
	row_count = vacuum_table(v);
	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE, PROGRESS_VACUUM_PHASE_FINAL_CLEANUP);
	update_stats(v, row_count, &frozenxid, &frozenxid_updated);
	pgstat_progress_end_command();
	ip_vacuum_report(v, usage, row_count, frozenxid, frozenxid_updated);
	ip_vacuum_indexes_close(v);
	if (v->dead)
		tidset_pg_destroy(v->dead);
}
