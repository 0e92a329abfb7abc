/*-------------------------------------------------------------------------
 * pb_vacuum.c
 *	  VACUUM.
 *
 * Pages are read in the order of the file.  A split may move entries that have
 * not been examined to a page that has been passed.  So both halves carry the
 * cycle id of the running VACUUM (nbtree keeps one for each index), by which
 * VACUUM finds the right half and visits it again.
 *
 * Entries are removed under a cleanup lock.  No scan has the page pinned then,
 * so none is about to fetch a row by a TID that is free after VACUUM.
 *-------------------------------------------------------------------------
 */
#include "compat_index.h"

#include "access/nbtree.h"
#include "catalog/catalog.h"
#include "storage/indexfsm.h"
#include "storage/ipc.h"

#include "pb_change.h"
#include "pb_key.h"
#include "pb_space.h"
#include "pb_split.h"
#include "pb_stale.h"
#include "pb_unlink.h"
#include "pb_vacuum.h"

/*
 * A leaf that has no room after this number of splits, each of which halves it,
 * is damaged: searches for its keys lead elsewhere.
 */
#define MAX_SPLITS		100

typedef struct Vacuum
{
	IndexVacuumInfo *info;
	IndexBulkDeleteResult *stats;
	IndexBulkDeleteCallback callback;	/* NULL if nothing is removed */
	void	   *state;
	Relation	rel;
	PbIndex    *index;
	uint16		cycle;
	PbStale		stale;
	double		nstale;			/* stale entries that were removed */
	double		nold;			/* stale entries that older versions need */
	TransactionId conflict;		/* standbys' snapshots that do not see this
								 * xid may need the rows removed from this
								 * leaf */
} Vacuum;

/*
 * True if the entry is not needed: its row was removed, or no version that a
 * snapshot may see has the key.
 */
static bool
can_go(Vacuum *v, const PbItem *item, ItemPointer tid)
{
	if (v->callback == NULL)
		return false;
	if (v->callback(tid, v->state))
		return true;
	if (!pb_stale_is_suspect(&v->stale, tid) ||
		pb_stale_is_needed(&v->stale, &item->key, tid, &v->conflict))
		return false;
	v->nstale++;
	return true;
}

/* Keep only the TIDs of an item that are needed.  Returns their number. */
static int
filter_tids(Vacuum *v, const PbItem *item, ItemPointerData *tids, int n)
{
	int			kept = 0;

	for (int i = 0; i < n; i++)
	{
		if (!can_go(v, item, &tids[i]))
			tids[kept++] = tids[i];
	}
	return kept;
}

/*
 * Remove entries of a leaf.  Returns the number of those that remain, or -1 if
 * the leaf has no room for them: a posting list that loses its first TID may
 * become longer.
 */
static int
clean_leaf(Vacuum *v, Buffer buffer)
{
	static uint16 dead[BLCKSZ / sizeof(uint16)];
	Relation	heap = v->stale.heap;
	Page		page = BufferGetPage(buffer);
	PbItem	   *item = palloc(sizeof(PbItem));
	ItemPointerData tids[PB_MAX_TIDS];
	int			ndead = 0;
	int			removed = 0;
	int			remain = 0;
	double		nstale = v->nstale;
	PbChange	c;
	ByteWriter *w;

	/* I10 */
	Assert(pb_index_is_locked(buffer,
							  v->callback != NULL ? PB_WRITE : PB_READ) &&
		   pb_page_is_leaf(page));
	v->conflict = InvalidTransactionId;
	pb_change_begin(&c, v->rel, PB_XLOG_VACUUM);
	w = pb_change_block(&c, buffer, false);
	for (int slot = 0; slot < pb_page_nslots(page); slot++)
	{
		int			n;
		int			kept;

		pb_item_get(v->rel, v->index, buffer, page, slot, item);
		n = pb_item_tids(v->rel, buffer, page, slot, item, tids);
		kept = filter_tids(v, item, tids, n);
		remain += kept;
		removed += n - kept;
		if (kept == 0)
			dead[ndead++] = slot;
		else if (kept < n)
			pb_op_tids(w, slot, pb_item_keep(page, slot, item->tail), tids,
					   kept);
	}
	pfree(item);
	if (removed == 0)
		return remain;
	if (ndead > 0)
		pb_op_delete(w, dead, ndead);
	pb_op_flags(w, PB_PAGE_GARBAGE, 0);
	if (TransactionIdIsValid(v->conflict))
		pb_change_conflict(&c, v->conflict,
						   RelationIsAccessibleInLogicalDecoding(heap));
	if (!pb_change_try(&c))
	{
		v->nstale = nstale;
		return -1;
	}
	pb_change_apply(&c);
	v->stats->tuples_removed += removed;
	return remain;
}

/*
 * Make room on a locked leaf by a split, and release it.  VACUUM visits the
 * right half later, as that of any leaf that is split meanwhile.  The leaf may
 * have no downlink yet.  So it is reached by a search for its middle key, which
 * completes splits on its way, as an insertion does.  If other backends have
 * split or emptied the leaf in between, it has room.
 */
static void
split_leaf(Vacuum *v, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	BlockNumber block = BufferGetBlockNumber(buffer);
	int			slot = pb_page_nslots(page) / 2;
	PbItem	   *item = palloc(sizeof(PbItem));
	PbPos	   *pos = palloc(sizeof(PbPos));
	PbBounds	bounds;
	int			n;

	Assert(pb_index_is_locked(buffer, PB_WRITE));
	if (slot == 0)
		pb_index_corrupt(v->rel, block, 0,
						 "The item's TIDs do not fit on a page.");
	pb_item_get(v->rel, v->index, buffer, page, slot, item);
	pb_item_first_tid(v->rel, buffer, page, slot, item, &item->key.tid);
	item->key.has_tid = true;
	UnlockReleaseBuffer(buffer);
	pb_pos_from_key(pos, v->rel, v->index, &item->key);
	buffer = pb_search_descend(pos, 0, PB_WRITE, pb_split_finish, &bounds);
	if (BufferIsInvalid(buffer))
		pb_index_corrupt(v->rel, block, slot,
						 "A search does not find the item.");
	n = pb_page_nslots(BufferGetPage(buffer));
	if (BufferGetBlockNumber(buffer) == block && n > 1)
	{
		/* nothing is inserted, so the split is at an existing item */
		slot = Min(pb_pos_search(pos, buffer, &bounds), n - 1);
		pb_split_page(v->rel, v->index, buffer, slot, &item->key);
	}
	else
		UnlockReleaseBuffer(buffer);
	pb_pos_end(pos);
	pfree(pos);
	pfree(item);
}

/*
 * Delete an empty leaf.  Returns true if *block has become another leaf that
 * can be deleted now.  Deleted pages behind "passed" are not counted here, but
 * when they are visited.
 */
static bool
unlink_leaf(Vacuum *v, BlockNumber *block, BlockNumber passed)
{
	BlockNumber blocks[PB_UNLINK_LEVELS];
	BlockNumber next;
	int			n;

	Assert(*block <= passed);	/* I10 */
	CompatInjectionPoint("pbtree-unlink");
	n = pb_unlink_leaf(v->rel, v->index, *block, v->cycle, blocks, &next);
	for (int i = 0; i < n; i++)
		v->stats->pages_deleted += blocks[i] <= passed;
	v->stats->pages_newly_deleted += n;
	*block = next;

	/* only a page that has been visited; others are visited later (I10) */
	return next != PB_NONE && next <= passed;
}

/*
 * Remove entries of a leaf that is locked for reading.  The result is that of
 * clean_leaf.  If anything may be removed, the leaf gets a cleanup lock (I10).
 * So does an empty leaf: it may be deleted next, and no VACUUM would wait for
 * its scans after that.
 */
static int
look_and_clean(Vacuum *v, Buffer buffer)
{
	if (v->callback || pb_page_nslots(BufferGetPage(buffer)) == 0)
	{
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		if (v->stale.table != NULL)
			(void) pb_stale_look(&v->stale, buffer, false);
		CompatInjectionPoint("pbtree-vacuum-leaf");
		LockBufferForCleanup(buffer);
	}
	return clean_leaf(v, buffer);
}

/*
 * Process a leaf, which is locked for reading and is released.  Returns its
 * right sibling if VACUUM must return to that.
 */
static BlockNumber
vacuum_leaf(Vacuum *v, Buffer buffer, BlockNumber passed, bool count)
{
	PbSpecial  *special;
	BlockNumber block = BufferGetBlockNumber(buffer);
	BlockNumber again = PB_NONE;
	bool		empty;
	int			remain;
	int			tries = 0;

	Assert(pb_index_is_locked(buffer, PB_READ));
	/* after a split, entries that have moved to the right are counted there */
	while ((remain = look_and_clean(v, buffer)) < 0)
	{
		if (++tries > MAX_SPLITS)
			pb_index_corrupt(v->rel, block, -1,
							 "Splits of the page make no room.");
		split_leaf(v, buffer);
		CHECK_FOR_INTERRUPTS();
		buffer = ReadBufferExtended(v->rel, MAIN_FORKNUM, block, RBM_NORMAL,
									v->info->strategy);
		LockBuffer(buffer, PB_READ);
		pb_index_check_page(v->rel, buffer);
	}
	special = PbPageGetSpecial(BufferGetPage(buffer));
	if (count)
	{
		v->stats->num_index_tuples += remain;
		v->nold += v->stale.nold;
	}
	if (v->cycle != 0 && special->cycle == v->cycle &&
		special->next != PB_NONE && special->next < passed)
		again = special->next;
	empty = pb_page_nslots(BufferGetPage(buffer)) == 0 &&
		special->next != PB_NONE;
	UnlockReleaseBuffer(buffer);
	while (empty)
		empty = unlink_leaf(v, &block, passed);
	return again;
}

static void
vacuum_page(Vacuum *v, BlockNumber block)
{
	BlockNumber visit = block;
	uint32		steps = 0;

	while (visit != PB_NONE)
	{
		Buffer		buffer;
		Page		page;
		bool		unused;

		compat_vacuum_delay_point(false);
		buffer = ReadBufferExtended(v->rel, MAIN_FORKNUM, visit, RBM_NORMAL,
									v->info->strategy);
		LockBuffer(buffer, PB_READ);
		page = BufferGetPage(buffer);
		if (!PageIsNew(page))
			pb_index_check_page(v->rel, buffer);
		unused = PageIsNew(page) ||
			(PbPageGetSpecial(page)->flags & PB_PAGE_DELETED);
		if (unused && visit == block)
		{
			bool		is_free = pb_space_is_free(CompatIvHeapRel(v->info),
												   page);

			UnlockReleaseBuffer(buffer);
			v->stats->pages_deleted++;
			if (is_free)
			{
				RecordFreeIndexPage(v->rel, visit);
				v->stats->pages_free++;
			}
			return;
		}
		if (unused || !pb_page_is_leaf(page) ||
			(PbPageGetSpecial(page)->flags & PB_PAGE_META) ||
			(visit != block && PbPageGetSpecial(page)->cycle != v->cycle))
		{
			UnlockReleaseBuffer(buffer);
			return;
		}
		visit = vacuum_leaf(v, buffer, block, visit == block);
		if (++steps > block)
			pb_index_corrupt(v->rel, block, -1,
							 "Right links from the page form a circle.");
	}
}

static void
vacuum_pages(Vacuum *v)
{
	bool		lock = !RELATION_IS_LOCAL(v->rel);
	BlockNumber block = PB_META_BLOCK + 1;
	BlockNumber n;

	v->stats->num_index_tuples = 0;
	v->stats->pages_deleted = 0;
	v->stats->pages_free = 0;
	for (;;)
	{
		if (lock)
			LockRelationForExtension(v->rel, ExclusiveLock);
		n = RelationGetNumberOfBlocks(v->rel);
		if (lock)
			UnlockRelationForExtension(v->rel, ExclusiveLock);
		if (v->info->report_progress)
			pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_TOTAL, n);
		if (block >= n)
			break;
		for (; block < n; block++)
		{
			vacuum_page(v, block);
			if (v->info->report_progress)
				pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE, block);
		}
	}
	v->stats->num_pages = n;
	if (v->stats->pages_free > 0)
		IndexFreeSpaceMapVacuum(v->rel);
}

static void
vacuum_index(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
			 IndexBulkDeleteCallback callback, void *state, uint16 cycle)
{
	Vacuum		v = {
		info, stats, callback, state, info->index, pb_index_get(info->index),
		cycle
	};

	/* other callbacks only collect the existing rows */
	if (callback != NULL && inplace_keys_table() != NULL &&
		callback == inplace_keys_table()->vacuum)
		pb_stale_begin(&v.stale, v.rel, v.index, NULL);

	CompatInjectionPoint("pbtree-vacuum");

	/*
	 * The remembered root may have been deleted, and its block reused even
	 * for a page that is locked when a search for its parent begins.  The
	 * root that is read again now can be deleted only by this VACUUM, which
	 * then searches from a newer one.
	 */
	pb_index_forget_root(v.rel, v.index);
	vacuum_pages(&v);
	if (v.stale.table != NULL)
		v.stale.table->vacuumed(state, v.nstale, v.nold);
	pb_stale_end(&v.stale);
	pfree(v.index);
}

/*
 * Remove entries, with a cycle id.  The id is in shared memory, so an error
 * must remove it, too.
 */
static void
delete_rows(IndexVacuumInfo *info, IndexBulkDeleteResult *result,
			IndexBulkDeleteCallback callback, void *state)
{
	Relation	rel = info->index;

	PG_ENSURE_ERROR_CLEANUP(_bt_end_vacuum_callback, PointerGetDatum(rel));
	{
		vacuum_index(info, result, callback, state, _bt_start_vacuum(rel));
	}
	PG_END_ENSURE_ERROR_CLEANUP(_bt_end_vacuum_callback, PointerGetDatum(rel));
	_bt_end_vacuum(rel);
}

IndexBulkDeleteResult *
pb_vacuum_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
				 IndexBulkDeleteCallback callback, void *state)
{
	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));
	delete_rows(info, stats, callback, state);
	return stats;
}

/*
 * Note in the metapage how many deleted pages cannot be reused yet.  If there
 * are many, the next VACUUM scans the index even if no row is dead.
 */
static void
note_deleted(Relation rel, uint32 deleted)
{
	PbMeta		meta;
	Buffer		buffer = pb_index_read_meta(rel, PB_WRITE, &meta);

	if (meta.deleted != deleted)
	{
		PbChange	c;

		meta.deleted = deleted;
		pb_change_begin(&c, rel, PB_XLOG_META);
		pb_op_meta(pb_change_block(&c, buffer, false), &meta);
		pb_change_apply(&c);
	}
	UnlockReleaseBuffer(buffer);
}

IndexBulkDeleteResult *
pb_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	if (info->analyze_only)
		return stats;
	if (stats == NULL)
	{
		PbMeta		meta;

		UnlockReleaseBuffer(pb_index_read_meta(info->index, PB_READ, &meta));
		if (meta.deleted <= RelationGetNumberOfBlocks(info->index) / 20)
			return NULL;
		stats = palloc0(sizeof(IndexBulkDeleteResult));
		vacuum_index(info, stats, NULL, NULL, 0);
		stats->estimated_count = true;
	}
	note_deleted(info->index, stats->pages_deleted - stats->pages_free);
	if (!info->estimated_count &&
		stats->num_index_tuples > info->num_heap_tuples)
		stats->num_index_tuples = info->num_heap_tuples;
	return stats;
}
