/*-------------------------------------------------------------------------
 * ip_vacuum.c
 *	  VACUUM of inplace tables.
 *
 * Prunes every data page: puts aborted changes back, strips version blocks,
 * makes dead rows dead items, drops ended row locks.  Then no xid older than
 * OldestXmin can be anything but committed, and relfrozenxid advances without
 * a page being rewritten.
 *
 * Dead items keep their item pointers (4 bytes), because indexes still name
 * them.
 *-------------------------------------------------------------------------
 */
#include "ip_compat.h"

#include "access/multixact.h"
#include "access/visibilitymap.h"
#include "commands/progress.h"
#include "storage/freespace.h"

#include "ip_prune.h"
#include "ip_space.h"
#include "ip_vacuum.h"
#include "ip_xid.h"

typedef struct VacuumState
{
	Relation	rel;
	BufferAccessStrategy strategy;
	struct VacuumCutoffs cutoffs;
	IpXid		unresolved;		/* oldest xid that could not be put back, or none */
	double		live;
	double		dead;
	BlockNumber nblocks;
	BlockNumber data_pages;
	BlockNumber undo_pages;
	Buffer		vm;				/* a page of the visibility map */
} VacuumState;

/*
 * Somebody holds a lock on the row, so its aborted changes could not be put
 * back: pg_xact must keep them all.
 */
static void
note_unresolved(VacuumState *state, BlockNumber block, Page page, OffsetNumber off)
{
	static IpVersion v;
	IpvResult	result = ip_version_begin(&v, state->rel, block, page, off);

	while (result == IPV_OK && ip_xid_status(v.xid) == IP_XID_ABORTED)
	{
		if (state->unresolved == IP_XID_NONE || v.xid < state->unresolved)
			state->unresolved = v.xid;
		result = ip_version_older(&v);
	}
	if (result == IPV_STALE)
		ip_version_missing(&v);
}

static void
count_row(VacuumState *state, BlockNumber block, Page page, OffsetNumber off,
		  const IpRow *row)
{
	switch (ip_xid_status(row->xid))
	{
		case IP_XID_ABORTED:
			note_unresolved(state, block, page, off);
			state->live += 1;
			break;
		case IP_XID_COMMITTED:
			if (row->state & IP_ROW_DELETED)
				state->dead += 1;
			else
				state->live += 1;
			break;
		case IP_XID_RUNNING:
		case IP_XID_MINE:
			/* its transaction counts an insertion when it commits */
			if (!(row->state & IP_ROW_INSERTED))
				state->live += 1;
			break;
	}
}

static void
count_page(VacuumState *state, BlockNumber block, Page page)
{
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	IpRow		row;

	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		/* dead items do not count: VACUUM can do nothing about them */
		if (ip_row_read(state->rel, block, page, off, &row))
			count_row(state, block, page, off, &row);
	}
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
			(ItemIdIsNormal(lp) && ((uint8 *) PageGetItem(page, lp))[sizeof(uint16)] != 0))
			return false;
	}
	return true;
}

/* The prune that made the page so has told standbys already. */
static void
set_all_visible(Relation rel, BlockNumber block, Buffer buffer, Buffer vm)
{
	Page		page = BufferGetPage(buffer);

	if (PageIsAllVisible(page) || !is_all_visible(page))
		return;
	PageSetAllVisible(page);
	MarkBufferDirty(buffer);
	visibilitymap_set(rel, block, buffer, InvalidXLogRecPtr, vm, InvalidTransactionId,
					  VISIBILITYMAP_ALL_VISIBLE | VISIBILITYMAP_ALL_FROZEN);
}

static void
vacuum_page(VacuumState *state, BlockNumber block)
{
	Buffer		buffer = ReadBufferExtended(state->rel, MAIN_FORKNUM, block, RBM_NORMAL,
											state->strategy);
	Page		page = BufferGetPage(buffer);
	Size		free = 0;

	visibilitymap_pin(state->rel, block, &state->vm);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	switch (ip_page_kind(state->rel, block, page))
	{
		case IP_PAGE_DATA:
			ip_prune_page(state->rel, buffer, true);
			count_page(state, block, page);
			set_all_visible(state->rel, block, buffer, state->vm);
			if (PageGetMaxOffsetNumber(page) < IP_MAX_ROWS_PER_PAGE)
				free = ip_page_free(page);
			state->data_pages++;
			break;
		case IP_PAGE_UNDO:
			state->undo_pages++;
			break;
		case IP_PAGE_META:
		case IP_PAGE_FREE:
			break;
		default:
			free = IP_MAX_ITEM;	/* left empty by a crash */
			break;
	}
	UnlockReleaseBuffer(buffer);
	RecordPageWithFreeSpace(state->rel, block, free);
}

/* Let index access methods do what they do at the end of a VACUUM. */
static void
cleanup_indexes(VacuumState *state, int elevel)
{
	Relation   *indexes;
	int			nindexes;

	vac_open_indexes(state->rel, RowExclusiveLock, &nindexes, &indexes);
	for (int i = 0; i < nindexes; i++)
	{
		IndexVacuumInfo info = {
			.index = indexes[i], .estimated_count = true, .message_level = elevel,
			.num_heap_tuples = state->live, .strategy = state->strategy
		};
		IndexBulkDeleteResult *stats;

		CompatSetIvHeapRel(&info, state->rel);
		stats = index_vacuum_cleanup(&info, NULL);
		if (stats != NULL && !stats->estimated_count)
			CompatVacUpdateRelstats(indexes[i], stats->num_pages, stats->num_index_tuples, 0, 0,
									false, InvalidTransactionId, InvalidMultiXactId,
									NULL, NULL, false);
	}
	vac_close_indexes(nindexes, indexes, NoLock);
}

static void
update_stats(VacuumState *state)
{
	Relation	rel = state->rel;
	TransactionId frozenxid = state->cutoffs.OldestXmin;
	bool		frozenxid_updated;
	bool		minmulti_updated;
	BlockNumber all_visible;

	visibilitymap_count(rel, &all_visible, NULL);
	if (state->unresolved != IP_XID_NONE &&
		TransactionIdPrecedes((TransactionId) state->unresolved, frozenxid))
		frozenxid = (TransactionId) state->unresolved;
	CompatVacUpdateRelstats(rel, state->nblocks, state->live, all_visible, 0,
							rel->rd_rel->relhasindex, frozenxid, state->cutoffs.OldestMxact,
							&frozenxid_updated, &minmulti_updated, false);
	CompatReportVacuum(RelationGetRelid(rel), rel->rd_rel->relisshared,
					   state->live, state->dead, 0);
}

void
ip_relation_vacuum(Relation rel, VacuumParams *params, BufferAccessStrategy bstrategy)
{
	VacuumState state = {.rel = rel, .strategy = bstrategy};
	int			elevel = (params->options & VACOPT_VERBOSE) ? INFO : DEBUG2;

	pgstat_progress_start_command(PROGRESS_COMMAND_VACUUM, RelationGetRelid(rel));
	ip_check_meta(rel);
	vacuum_get_cutoffs(rel, params, &state.cutoffs);
	state.nblocks = RelationGetNumberOfBlocks(rel);
	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE, PROGRESS_VACUUM_PHASE_SCAN_HEAP);
	pgstat_progress_update_param(PROGRESS_VACUUM_TOTAL_HEAP_BLKS, state.nblocks);
	for (BlockNumber block = IP_META_BLOCK + 1; block < state.nblocks; block++)
	{
		compat_vacuum_delay_point(false);
		vacuum_page(&state, block);
		pgstat_progress_update_param(PROGRESS_VACUUM_HEAP_BLKS_SCANNED, block + 1);
	}
	if (BufferIsValid(state.vm))
		ReleaseBuffer(state.vm);
	FreeSpaceMapVacuum(rel);
	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE, PROGRESS_VACUUM_PHASE_INDEX_CLEANUP);
	if (params->index_cleanup != VACOPTVALUE_DISABLED)
		cleanup_indexes(&state, elevel);
	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE, PROGRESS_VACUUM_PHASE_FINAL_CLEANUP);
	update_stats(&state);
	pgstat_progress_end_command();
	ereport(elevel,
			(errmsg("\"%s\": %.0f live and %.0f dead rows in %u data pages, %u undo pages",
					RelationGetRelationName(rel), state.live, state.dead,
					state.data_pages, state.undo_pages)));
}
