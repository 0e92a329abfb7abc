/*-------------------------------------------------------------------------
 * ip_vacuum.c
 *	  VACUUM of inplace tables.
 *
 *	1. Each page that is not all-visible is pruned, by one WAL record: aborted
 *	   changes are rolled back, rows that all see are frozen, dead rows become
 *	   dead items, whose TIDs are collected in a tidset, stale keys become
 *	   quiet, the page all-visible.  Then no xid before OldestXmin can be
 *	   anything but committed, so relfrozenxid advances.
 *	2. Indexes forget the collected TIDs, and entries with keys that their rows
 *	   no longer have.
 *	3. Only then the dead items may be used again, and no key is stale: by
 *	   another record a page.  Empty pages become free.  1 to 3 repeat if the
 *	   tidset becomes full.
 *	4. Undo rings give back pages that a long transaction made them take, and
 *	   free pages at the end of the file are cut off.
 *-------------------------------------------------------------------------
 */
#include "compat_reads.h"

#include <math.h>

#include "access/multixact.h"
#include "access/visibilitymap.h"
#include "commands/dbcommands.h"
#include "commands/progress.h"
#include "postmaster/autovacuum.h"
#include "storage/freespace.h"
#include "utils/lsyscache.h"

#include "ip_change.h"
#include "ip_keys.h"
#include "ip_lockset_use.h"
#include "ip_lockset_vacuum.h"
#include "ip_map.h"
#include "ip_prune.h"
#include "ip_rel.h"
#include "ip_ring.h"
#include "ip_space.h"
#include "ip_undo_shrink.h"
#include "ip_vacuum.h"
#include "ip_vacuum_index.h"
#include "ip_vacuum_report.h"
#include "ip_vacuum_truncate.h"
#include "ip_xid.h"

/*
 * Indexes are not cleaned for now if less than this part of the pages with rows
 * has dead items, and entries of less than this part of the rows are to be
 * removed.
 */
#define FEW						0.02
#define FEW_DEAD_BYTES			(32 * 1024 * 1024)

/*
 * The number of blocks after which to check for the wraparound failsafe, and to
 * update the upper pages of the FSM.
 */
#define FAILSAFE_EVERY \
	((BlockNumber) ((uint64) 4 * 1024 * 1024 * 1024 / BLCKSZ))
#define FSM_EVERY \
	((BlockNumber) ((uint64) 8 * 1024 * 1024 * 1024 / BLCKSZ))

/* ---- visibility map ---------------------------------------------------- */

/*
 * Clear the page's flag and the map's bits, with a warning, where they claim
 * more than is true; v->vm is the map's page.  Nor may the bits claim more than
 * the flag: a change of the page clears the bits by the flag.  is_data: the
 * page is a data page; any other page is not all-visible.  Returns the map's
 * bits as they are then.  Lock: the page, exclusively.
 */
static uint8
distrust_map(IpVacuum *v, BlockNumber block, Buffer buffer, bool is_data)
{
	Page		page = BufferGetPage(buffer);
	bool		flag = !PageIsNew(page) && PageIsAllVisible(page);
	uint8		bits = visibilitymap_get_status(v->rel, block, &v->vm);

	Assert(ip_page_is_locked(page, true) && visibilitymap_pin_ok(block, v->vm));
	if (flag && !(is_data && ip_map_is_visible(page)))
	{
		ereport(WARNING,
				(errmsg("page that is not all-visible is marked as all-visible in relation \"%s\" page %u",
						RelationGetRelationName(v->rel), block)));
		PageClearAllVisible(page);
		MarkBufferDirty(buffer);
		flag = false;
	}
	if (bits != 0 && !flag)
	{
		ereport(WARNING,
				(errmsg("page is not marked all-visible but visibility map bit is set in relation \"%s\" page %u",
						RelationGetRelationName(v->rel), block)));
		CompatMapClear(v->rel, block, v->vm);
		bits = 0;
	}
	return bits;
}

/*
 * VACUUM has finished the data page: count the bits that have been set since
 * they were "before".  Lock: the page, exclusively.
 */
static void
count_visible(IpVacuum *v, BlockNumber block, Buffer buffer, uint8 before)
{
	uint8		bits = visibilitymap_get_status(v->rel, block, &v->vm) &
		~before;

	/* I12 */
	Assert(!PageIsAllVisible(BufferGetPage(buffer)) ==
		   !ip_map_is_visible(BufferGetPage(buffer)));
	Assert(PageIsAllVisible(BufferGetPage(buffer)) || (bits | before) == 0);
	v->n.set_visible += (bits & VISIBILITYMAP_ALL_VISIBLE) ? 1 : 0;
	v->n.set_frozen += (bits & VISIBILITYMAP_ALL_FROZEN) ? 1 : 0;
	v->n.were_visible += bits == VISIBILITYMAP_ALL_FROZEN ? 1 : 0;
}

/* ---- stale index entries ----------------------------------------------- */

/*
 * Bulk deletion determines for each entry whether a version of its row that
 * somebody may need has the entry's key (ip_keys_judge).  This says nothing
 * about the page, where other entries may be made meanwhile.  But if a page has
 * been pruned, and all see all of its rows, each row has one version.  Then the
 * page is quiet, until the next update in place.  Bulk deletion visits all
 * entries of all indexes that follow updates.  So if a page is still quiet
 * afterwards, none of its entries is stale: where this cannot be determined for
 * an entry, the page's quiet flag is cleared.
 *
 * This function notes a data page, which was just pruned, if the index entries
 * of its rows are to be examined.  Lock: exclusive.
 */
static void
note_stale_keys(IpVacuum *v, BlockNumber block, Buffer buffer)
{
	IpSpecial  *special = IpPageGetSpecial(BufferGetPage(buffer));

	if (special->keys == 0)
		return;
	v->n.stale_pages += v->follows ? 1 : 0;
	if (!v->do_indexes || !ip_map_is_frozen(BufferGetPage(buffer)))
		return;
	if (!v->follows)
	{
		/* the indexes that had stale entries have been dropped */
		ip_keys_write(v->rel, buffer, 0, v->vm);
		return;
	}
	/* The prune has set it, unless the horizon moved meanwhile. */
	if (!(special->keys & IP_KEYS_QUIET))
		return;
	/* the table may have grown since, but not by pages that are scanned */
	Assert(block < v->nblocks);
	if (v->quiet == NULL)
		v->quiet = MemoryContextAllocExtended(CurrentMemoryContext,
											  v->nblocks / 8 + 1,
											  MCXT_ALLOC_HUGE |
											  MCXT_ALLOC_ZERO);
	v->quiet[block / 8] |= 1 << block % 8;
}

/*
 * The indexes have been cleaned.  Returns whether the page was noted before
 * that, and has no stale entry.  Lock: exclusive.
 */
static bool
is_clean(IpVacuum *v, BlockNumber block, Page page)
{
	return v->quiet != NULL && block < v->nblocks &&
		(v->quiet[block / 8] & (1 << block % 8)) &&
		(IpPageGetSpecial(page)->keys & IP_KEYS_QUIET);
}

static void
clear_stale_keys_of(IpVacuum *v, BlockNumber block)
{
	Buffer		buffer = ReadBufferExtended(v->rel, MAIN_FORKNUM, block,
											RBM_NORMAL, v->strategy);
	Page		page = BufferGetPage(buffer);

	visibilitymap_pin(v->rel, block, &v->vm);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	if (ip_page_kind(v->rel, block, page) == IP_PAGE_DATA &&
		is_clean(v, block, page))
		ip_keys_write(v->rel, buffer, 0, v->vm);
	UnlockReleaseBuffer(buffer);
}

/*
 * The indexes have been cleaned: clear the flags of the pages noted before
 * that, unless keys have changed since.
 */
static void
clear_stale_keys(IpVacuum *v)
{
	for (BlockNumber i = 0; v->quiet != NULL && i <= v->nblocks / 8; i++)
	{
		for (int bit = 0; v->quiet[i] >> bit != 0; bit++)
		{
			if (!(v->quiet[i] & (1 << bit)))
				continue;
			compat_vacuum_delay_point(false);
			clear_stale_keys_of(v, i * 8 + bit);
		}
		v->quiet[i] = 0;
	}
}

/* ---- failsafe ---------------------------------------------------------- */

static void
check_failsafe(IpVacuum *v)
{
	Relation	rel = v->rel;

	if (v->failsafe || !CompatFailsafeCheck(&v->cutoffs))
		return;
	v->failsafe = true;
	v->strategy = NULL;			/* all buffers may be used */
	CompatFailsafeBegins();
	compat_progress_failsafe();
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

/* ---- first pass: pages ------------------------------------------------- */

static void
keep_in_pg_xact(IpVacuum *v, IpXid xid)
{
	Assert(!IpXidIsFrozen(xid));
	if (v->unresolved == IP_XID_NONE || xid < v->unresolved)
		v->unresolved = xid;
}

/*
 * The row is locked, so its aborted changes could not be rolled back: pg_xact
 * must keep all of them.  If there are very many, pg_xact keeps all it has.
 */
static void
note_unresolved(IpVacuum *v, BlockNumber block, Page page, OffsetNumber off)
{
	IpVersion	version;
	IpvResult	result = ip_version_begin(&version, v->rel, block, page, off);

	while (result == IPV_OK && ip_version_status(&version) == IP_STATUS_ABORTED)
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
count_row(IpVacuum *v, BlockNumber block, Page page, OffsetNumber off,
		  const IpRow *row)
{
	switch (ip_xid_status_locked(row->xid))
	{
		case IP_STATUS_ABORTED:
			note_unresolved(v, block, page, off);
			/* an aborted insertion that stays for a while */
			if (row->state & IP_ROW_INSERTED)
				v->n.recently_dead += 1;
			else
				v->n.live += 1;
			break;
		case IP_STATUS_COMMITTED:
			if (row->state & IP_ROW_DELETED)
				v->n.recently_dead += 1;
			else
				v->n.live += 1;
			break;
		case IP_STATUS_RUNNING:
		case IP_STATUS_MINE:
			/* its transaction counts an insertion when it commits */
			if (!(row->state & IP_ROW_INSERTED))
				v->n.live += 1;
			break;
		case IP_STATUS_FORGOTTEN:
			break;				/* does not occur while the page is locked */
	}
}

/*
 * Count the page's rows, and collect the offsets of its dead items.  Returns
 * the number of dead items.  before: the items that had a state before the
 * page was pruned; as in heap, rows that no longer have one have been frozen.
 */
static int
look_at_page(IpVacuum *v, BlockNumber block, Page page,
			 const IpItemList *before, OffsetNumber *dead)
{
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	int			ndead = 0;
	int			nfrozen = 0;
	int			next = 0;
	IpRow		row;

	Assert(IpPageGetSpecial(page)->kind == IP_PAGE_DATA);
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		bool		had_state = next < before->n && before->off[next] == off;

		next += had_state ? 1 : 0;
		if (ItemIdIsDead(PageGetItemId(page, off)))
			dead[ndead++] = off;
		else if (ip_row_is_frozen(page, off))
		{
			v->n.live += 1;
			nfrozen += had_state ? 1 : 0;
		}
		else if (ip_row_read(v->rel, block, page, off, &row))
			count_row(v, block, page, off, &row);
	}
	v->n.frozen_rows += nfrozen;
	v->n.frozen_pages += nfrozen > 0 ? 1 : 0;
	v->n.removed += ndead - before->ndead;
	return ndead;
}

/*
 * Omit dead items that are locked: a new row there would be locked from the
 * beginning.  Returns the number of those that remain in dead.
 */
static int
leave_locked(IpVacuum *v, Buffer buffer, OffsetNumber *dead, int ndead)
{
	bool		locked[IP_MAX_ROWS_PER_PAGE + 1];
	int			n = 0;

	if (!ip_lockset_rows(v->rel, BufferGetBlockNumber(buffer),
						 BufferGetPage(buffer), locked))
		return ndead;
	for (int i = 0; i < ndead; i++)
	{
		if (!locked[dead[i]])
			dead[n++] = dead[i];
	}
	return n;
}

/*
 * Make dead items that no index names unused.  Returns true if the page has
 * become a free one, because no other items are left.
 */
static bool
free_items(IpVacuum *v, Buffer buffer, OffsetNumber *dead, int ndead)
{
	Page		page = BufferGetPage(buffer);
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	int			nused = 0;
	IpChange	change;
	ByteWriter *w;

	Assert(ip_vacuum_nindexes(v) == 0 || v->n.index_scans > 0); /* I1 */
	if (ndead > 0)
	{
		ndead = leave_locked(v, buffer, dead, ndead);
		if (ndead == 0)
			return false;
	}
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
		nused += ip_item_is_used(PageGetItemId(page, off)) ||
			ItemIdIsDead(PageGetItemId(page, off)) ? 1 : 0;
	if (ndead == 0 && nused > 0)
		return false;
	ip_change_begin(&change, v->rel, IP_XLOG_VACUUM, InvalidTransactionId);
	/* a change that does not make the page clears its bits in the map */
	w = ip_change_block(&change, buffer,
						nused == ndead && !PageIsAllVisible(page));
	if (nused == ndead)
		ip_op_simple(w, IP_OP_INIT_FREE);
	else
	{
		ip_op_unused(w, dead, ndead);
		if (is_clean(v, BufferGetBlockNumber(buffer), page))
			ip_op_keys(w, 0);
		ip_change_visible(&change, v->vm);
	}
	ip_change_apply(&change);
	return nused == ndead;
}

/*
 * Prune and count a data page.  Returns the space to be recorded in the free
 * space map.
 */
static Size
vacuum_data_page(IpVacuum *v, BlockNumber block, Buffer buffer,
				 OffsetNumber *dead, int *ndead)
{
	Page		page = BufferGetPage(buffer);
	uint8		bits = distrust_map(v, block, buffer, true);
	IpItemList	before;

	v->n.removed += ip_prune_page(v->rel, buffer, v->horizon, v->kept_from,
								  v->vm, v->do_indexes && v->follows, &before);
	*ndead = look_at_page(v, block, page, &before, dead);
	v->n.data_pages++;
	v->n.dead_item_pages += *ndead > 0 ? 1 : 0;
	v->n.dead_items += *ndead;
	note_stale_keys(v, block, buffer);
	/* the prune of a TOAST table's page may have left no items */
	if ((*ndead > 0 || ip_rel_is_toast(v->rel)) && ip_vacuum_nindexes(v) == 0)
	{
		int			n = *ndead;

		*ndead = 0;
		if (free_items(v, buffer, dead, n))
		{
			ip_space_note_free(&v->free, block);
			return IpFreePageSpace(block);
		}
	}
	count_visible(v, block, buffer, bits);
	return ip_space_room(v->rel, block, page, BLCKSZ);
}

/* Note a page of undo, or of locks. */
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

/* Repair the decoy if it is damaged.  Nobody needs what is in its place. */
static void
repair_decoy(IpVacuum *v, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	IpChange	change;

	if (((PageHeader) page)->pd_special != IP_DECOY_START ||
		PageGetMaxOffsetNumber(page) < FirstOffsetNumber ||
		ip_item_is_decoy(PageGetItemId(page, FirstOffsetNumber)))
		return;
	ereport(WARNING,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("rebuilding damaged first item of block %u of relation \"%s\"",
					IP_DECOY_BLOCK, RelationGetRelationName(v->rel))));
	ip_change_begin(&change, v->rel, IP_XLOG_VACUUM, InvalidTransactionId);
	ip_op_simple(ip_change_block(&change, buffer, false), IP_OP_DECOY);
	ip_change_apply(&change);
}

/*
 * Vacuum a page.  It keeps *ndead dead items, which the indexes must forget
 * first.
 */
static void
vacuum_page(IpVacuum *v, BlockNumber block, Buffer buffer, OffsetNumber *dead,
			int *ndead)
{
	IpPageKind	kind;
	Size		space = 0;

	*ndead = 0;
	v->n.scanned++;
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	kind = ip_page_kind(v->rel, block, BufferGetPage(buffer));
	if (block == IP_DECOY_BLOCK &&
		(kind == IP_PAGE_DATA || kind == IP_PAGE_FREE))
		repair_decoy(v, buffer);
	if (kind == IP_PAGE_DATA)
		space = vacuum_data_page(v, block, buffer, dead, ndead);
	else
		(void) distrust_map(v, block, buffer, false);
	if (kind == IP_PAGE_UNDO || kind == IP_PAGE_LOCK)
		note_undo_page(v, block);
	else if (kind != IP_PAGE_DATA && kind != IP_PAGE_META)
	{
		/* a free page, or one left empty by a crash */
		space = IpFreePageSpace(block);
		if (block != IP_META_BLOCK)
			ip_space_note_free(&v->free, block);
	}
	UnlockReleaseBuffer(buffer);
	if (block != IP_META_BLOCK)
		ip_space_record(v->rel, block, space);
}

/* ---- second pass ------------------------------------------------------- */

typedef struct DeadBlocks
{
	TidSetIter	iter;
	OffsetNumber dead[MaxOffsetNumber];
} DeadBlocks;

/* Returns the next block to read ahead. */
static BlockNumber
next_with_dead(void *state, void *per_block)
{
	DeadBlocks *ahead = state;
	BlockNumber block;

	return tidset_iter_next(&ahead->iter, &block, ahead->dead,
							lengthof(ahead->dead)) > 0 ?
		block : InvalidBlockNumber;
}

/*
 * Make the dead items of one block, which the indexes have forgotten, unused.
 * Releases the buffer.
 */
static void
free_page_items(IpVacuum *v, BlockNumber block, Buffer buffer,
				OffsetNumber *dead, int ndead)
{
	Size		space = IpFreePageSpace(block);
	uint8		bits;

	Assert(BufferGetBlockNumber(buffer) == block);
	visibilitymap_pin(v->rel, block, &v->vm);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	if (ip_page_kind(v->rel, block, BufferGetPage(buffer)) != IP_PAGE_DATA)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("block %u of relation \"%s\" had dead rows, but is no longer a data page",
						block, RelationGetRelationName(v->rel))));
	bits = visibilitymap_get_status(v->rel, block, &v->vm);
	if (free_items(v, buffer, dead, ndead))
		ip_space_note_free(&v->free, block);
	else
	{
		count_visible(v, block, buffer, bits);
		space = ip_space_room(v->rel, block, BufferGetPage(buffer), BLCKSZ);
	}
	UnlockReleaseBuffer(buffer);
	ip_space_record(v->rel, block, space);
}

/*
 * Make all collected dead items unused.  There are two iterations over the same
 * blocks: one for what is read ahead, and one for what is used.
 */
static void
free_dead_items(IpVacuum *v)
{
	OffsetNumber dead[MaxOffsetNumber];
	DeadBlocks *ahead = palloc(sizeof(DeadBlocks));
	CompatReads *reads;
	TidSetIter	iter;
	BlockNumber block;
	BlockNumber done = 0;
	int			ndead;

	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE,
								 PROGRESS_VACUUM_PHASE_VACUUM_HEAP);
	tidset_iter_begin(v->dead, &ahead->iter);
	tidset_iter_begin(v->dead, &iter);
	reads = compat_reads_begin(v->rel, COMPAT_READ_CLEANUP, v->strategy,
							   next_with_dead, ahead, 0);
	while ((ndead = tidset_iter_next(&iter, &block, dead, lengthof(dead))) > 0)
	{
		compat_vacuum_delay_point(false);
		free_page_items(v, block, compat_reads_next(reads, NULL), dead, ndead);
		pgstat_progress_update_param(PROGRESS_VACUUM_HEAP_BLKS_VACUUMED,
									 ++done);
	}
	compat_reads_end(reads);
	pfree(ahead);
}

/* Clean the indexes, and then the dead items that have been collected. */
static void
vacuum_dead_items(IpVacuum *v)
{
	check_failsafe(v);
	if (!v->do_indexes)
		return;
	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE,
								 PROGRESS_VACUUM_PHASE_VACUUM_INDEX);
	ip_vacuum_indexes_delete(v);
	pgstat_progress_update_param(PROGRESS_VACUUM_NUM_INDEX_VACUUMS,
								 ++v->n.index_scans);
	check_failsafe(v);
	free_dead_items(v);
	clear_stale_keys(v);
	v->n.dead_memory += tidset_memory(v->dead);
	v->n.dead_resets++;
	tidset_reset(v->dead);
	compat_progress_dead(0, 0);
}

/*
 * Returns the number of rows that have entries to be removed.  Statistics count
 * dead rows and stale entries alike, and what VACUUM does not remove it reports
 * to them again, so small numbers of both kinds add up.  At least one entry of
 * each flagged page is stale; if statistics have been lost, one entry of each
 * of its rows may be.  Returns 0 if none is stale: then dead items are judged
 * by their pages alone, as in heap.
 */
static double
entries_to_go(const IpVacuum *v)
{
	double		least = v->n.stale_pages;

	if (v->n.stale_pages == 0)
		return 0;
	if (!v->vacuumed_before)
		least *= Max(v->n.live / v->n.data_pages, 1);
	return Max(v->dead_before - v->n.recently_dead, least);
}

/*
 * Returns whether there are so few dead items and stale entries that a scan of
 * all indexes does not pay.  An autovacuum that was started because of
 * statistics must not pass over them: it would be started again and again.
 */
static bool
few_dead_items(IpVacuum *v, double row_count)
{
	if (AmAutoVacuumWorkerProcess() &&
		entries_to_go(v) >= autovacuum_vac_thresh)
		return false;
	return !v->always_indexes && v->n.index_scans == 0 &&
		v->n.dead_item_pages < FEW * (v->nblocks - v->n.undo_seen) &&
		entries_to_go(v) < FEW * Max(row_count, 1) &&
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
		pgstat_progress_update_param(PROGRESS_VACUUM_PHASE,
									 PROGRESS_VACUUM_PHASE_SCAN_HEAP);
		if (v->do_indexes && !tidset_add_block(v->dead, block, dead, ndead))
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("no memory for the dead rows of block %u of relation \"%s\"",
							block, RelationGetRelationName(v->rel))));
	}
	compat_progress_dead(tidset_memory(v->dead), tidset_count(v->dead));
}

/*
 * Returns whether the page need not be read.  All-visible pages need no work,
 * as long as the map is right.  But readers may have made pages all-visible
 * whose rows have never been counted: those of a table's first VACUUM, and
 * those by which the table has grown since the last one.
 */
static bool
may_skip(IpVacuum *v, BlockNumber block)
{
	Form_pg_class form = v->rel->rd_rel;

	return !(v->params->options & VACOPT_DISABLE_PAGE_SKIPPING) &&
		form->reltuples >= 0 && block < (BlockNumber) form->relpages &&
		visibilitymap_get_status(v->rel, block, &v->ahead_vm) ==
		(VISIBILITYMAP_ALL_VISIBLE | VISIBILITYMAP_ALL_FROZEN);
}

/*
 * Returns whether the block is a page of undo, which VACUUM treats later with
 * the rings.
 */
static bool
is_known_undo(IpVacuum *v, BlockNumber block)
{
	return !(v->params->options & VACOPT_DISABLE_PAGE_SKIPPING) &&
		ip_ring_is_undo(v->runs, block);
}

static BlockNumber
next_to_scan(void *state, void *per_block)
{
	IpVacuum   *v = state;

	for (; v->ahead < v->nblocks; v->ahead++)
	{
		CHECK_FOR_INTERRUPTS();
		if (is_known_undo(v, v->ahead))
		{
			v->n.scanned++;
			note_undo_page(v, v->ahead);
			/* after a crash the free space map may be out of date */
			ip_space_record(v->rel, v->ahead, 0);
		}
		else if (!may_skip(v, v->ahead))
			return v->ahead++;
	}
	return InvalidBlockNumber;
}

static void
scan_pages(IpVacuum *v)
{
	OffsetNumber dead[MaxOffsetNumber];
	BlockNumber next_failsafe = 0;
	BlockNumber next_fsm = FSM_EVERY;
	CompatReads *reads = compat_reads_begin(v->rel, COMPAT_READ_MAINTENANCE,
											v->strategy, next_to_scan, v, 0);
	Buffer		buffer;
	int			ndead;

	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE,
								 PROGRESS_VACUUM_PHASE_SCAN_HEAP);
	pgstat_progress_update_param(PROGRESS_VACUUM_TOTAL_HEAP_BLKS, v->nblocks);
	compat_progress_dead_limit(tidset_limit(v->dead));
	while ((buffer = compat_reads_next(reads, NULL)) != InvalidBuffer)
	{
		BlockNumber block = BufferGetBlockNumber(buffer);

		pgstat_progress_update_param(PROGRESS_VACUUM_HEAP_BLKS_SCANNED, block);
		compat_vacuum_delay_point(false);
		if (block >= next_failsafe)
		{
			check_failsafe(v);
			next_failsafe = block + FAILSAFE_EVERY;
		}
		visibilitymap_pin(v->rel, block, &v->vm);
		vacuum_page(v, block, buffer, dead, &ndead);
		if (ndead > 0)
			collect(v, block, dead, ndead);
		if (block >= next_fsm)
		{
			FreeSpaceMapVacuumRange(v->rel, next_fsm - FSM_EVERY, block);
			next_fsm = block + FSM_EVERY;
		}
	}
	compat_reads_end(reads);
	if (BufferIsValid(v->ahead_vm))
		ReleaseBuffer(v->ahead_vm);
	pgstat_progress_update_param(PROGRESS_VACUUM_HEAP_BLKS_SCANNED, v->nblocks);
}

/* ---- all of it --------------------------------------------------------- */

/*
 * Returns the number of versions in undo pages that should not be there.  They
 * count as dead rows.
 */
static double
excess_versions(IpVacuum *v)
{
	double		excess = ip_undo_beyond(ip_ring_pages(v->rel), v->nblocks);

	/* what rings have left behind when they moved is for the next VACUUM */
	if (v->rings_moved && excess == 0)
		excess = ip_undo_beyond(v->n.undo_freed, v->nblocks);
	return excess * IP_UNDO_RECORDS_PER_PAGE;
}

/*
 * Returns the number of entries that have to be removed later.  They count as
 * dead rows, too: otherwise autovacuum would not come when the snapshot that
 * needs them ends.
 */
static double
old_entries(IpVacuum *v)
{
	if (v->n.index_scans > 0)
		return ip_vacuum_indexes_old(v);

	/*
	 * where the indexes may not be cleaned, autovacuum must not be started
	 * for that
	 */
	return v->do_indexes ? entries_to_go(v) : 0;
}

static void
update_stats(IpVacuum *v, double row_count)
{
	Relation	rel = v->rel;
	TransactionId frozenxid = (TransactionId) Min(v->horizon, v->kept_from);
	BlockNumber all_visible;
	BlockNumber all_frozen;

	if (v->unresolved != IP_XID_NONE &&
		TransactionIdPrecedes((TransactionId) v->unresolved, frozenxid))
		frozenxid = (TransactionId) v->unresolved;
	/* I14 */
	Assert(TransactionIdPrecedesOrEquals(frozenxid, v->cutoffs.OldestXmin));
	v->n.frozenxid = frozenxid;
	visibilitymap_count(rel, &all_visible, &all_frozen);
	CompatVacUpdateRelstats(rel, v->nblocks, row_count,
							Min(all_visible, v->nblocks),
							Min(all_frozen, v->nblocks),
							rel->rd_rel->relhasindex, frozenxid,
							v->cutoffs.OldestMxact, &v->n.frozenxid_updated,
							&v->n.minmulti_updated, false);
	CompatReportVacuum(rel, Max(row_count, 0),
					   v->n.recently_dead + excess_versions(v) + old_entries(v),
					   v->start);
	/* the report includes what this session has not sent */
	if (pgstat_should_count_relation(rel))
		CompatPendingDead(rel) = 0;
}

/*
 * Returns the number of scanned rows plus an estimate for the skipped pages:
 * all of them have data, and are taken to be as dense as the table was.
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
	return v->n.data_pages > 0 ?
		v->n.live / v->n.data_pages * (v->n.data_pages + skipped) : -1;
}

/* Returns an estimate of the table's live rows. */
static double
vacuum_table(IpVacuum *v)
{
	double		row_count;
	bool		skipped;

	v->nblocks = RelationGetNumberOfBlocks(v->rel);
	ip_rel_repair_meta(v->rel);
	v->runs = ip_ring_read_runs(v->rel, v->nblocks);
	check_failsafe(v);
	ip_vacuum_indexes_begin(v);
	scan_pages(v);
	skipped = v->n.scanned < v->nblocks;
	row_count = estimate_rows(v);
	if ((tidset_count(v->dead) > 0 || v->n.stale_pages > 0) &&
		!few_dead_items(v, row_count))
		vacuum_dead_items(v);
	v->n.dead_limit = tidset_limit(v->dead);
	if (tidset_count(v->dead) > 0)
		v->n.dead_memory += tidset_memory(v->dead);
	if (BufferIsValid(v->vm))
		ReleaseBuffer(v->vm);
	v->vm = InvalidBuffer;
	Assert(v->horizon == ip_xid_full(v->cutoffs.OldestXmin));	/* I13, I18 */
	v->n.undo_freed = ip_undo_shrink_lost(v->rel, v->horizon, v->undo,
										  v->n.undo_seen, &v->free);
	v->n.undo_freed += ip_undo_shrink_rings(v->rel, v->horizon, &v->free,
											&v->rings_moved);
	v->n.undo_pages = ip_ring_pages(v->rel) + v->n.undo_freed;
	ip_lockset_vacuum(v->rel, v->undo, v->n.undo_seen, v->n.undo_pages,
					  &v->free);
	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE,
								 PROGRESS_VACUUM_PHASE_INDEX_CLEANUP);
	if (v->params->index_cleanup != VACOPTVALUE_DISABLED && !v->failsafe)
		ip_vacuum_indexes_cleanup(v, row_count, !skipped);
	ip_vacuum_indexes_end(v);
	FreeSpaceMapVacuum(v->rel);
	ip_vacuum_truncate(v);
	return row_count;
}

void
ip_vacuum_relation(Relation rel, const VacuumParams *params,
				   BufferAccessStrategy bstrategy)
{
	IpVacuum   *v = palloc0(sizeof(IpVacuum));
	IpVacuumUsage *usage = ip_vacuum_usage_begin();
	double		row_count;

	v->rel = rel;
	v->params = params;
	v->strategy = bstrategy;
	v->elevel = (params->options & VACOPT_VERBOSE) ? INFO : DEBUG2;
	v->start = GetCurrentTimestamp();
	v->vm = v->ahead_vm = InvalidBuffer;
	v->do_indexes = params->index_cleanup != VACOPTVALUE_DISABLED;
	v->always_indexes = params->index_cleanup == VACOPTVALUE_ENABLED;
	v->do_truncate = params->truncate != VACOPTVALUE_DISABLED;
	pgstat_progress_start_command(PROGRESS_COMMAND_VACUUM,
								  RelationGetRelid(rel));
	compat_progress_began(params->is_wraparound);
	if (params->options & VACOPT_VERBOSE)
		ereport(INFO,
				(errmsg("vacuuming \"%s.%s.%s\"",
						get_database_name(MyDatabaseId),
						get_namespace_name(RelationGetNamespace(rel)),
						RelationGetRelationName(rel))));
	ip_rel_check_format(rel);
	v->dead_before = ip_rel_dead_rows(rel, &v->vacuumed_before);
	/* a session sends its counts once a second */
	if (pgstat_should_count_relation(rel))
		v->dead_before += CompatPendingDead(rel);
	compat_vacuum_cutoffs(rel, params, &v->cutoffs);
	v->horizon = ip_xid_full(v->cutoffs.OldestXmin);
	v->kept_from = ip_xid_kept_from((TransactionId) ip_xid_next() -
									v->cutoffs.FreezeLimit);
	Assert(v->n.scanned == 0);	/* I13 */
	row_count = vacuum_table(v);
	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE,
								 PROGRESS_VACUUM_PHASE_FINAL_CLEANUP);
	update_stats(v, row_count);
	pgstat_progress_end_command();
	ip_vacuum_report(v, usage, row_count);
	ip_vacuum_indexes_close(v);
	if (v->dead)
		tidset_pg_destroy(v->dead);
}
