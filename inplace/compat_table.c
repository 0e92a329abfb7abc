/*-------------------------------------------------------------------------
 * compat_table.c
 *	  Callbacks of the table access method whose parameters differ between
 *	  PostgreSQL's versions.
 *-------------------------------------------------------------------------
 */
#include "compat_table.h"

#if PG_VERSION_NUM >= 170000
#include "storage/read_stream.h"
#endif

#include "ip_fetch_index.h"
#include "ip_rewrite.h"
#include "ip_scan.h"
#include "ip_update.h"
#include "ip_vacuum.h"

/* ---- changes, VACUUM ----------------------------------------------------- */

#if PG_VERSION_NUM < 190000

IndexFetchTableData *
compat_index_fetch_begin(Relation rel)
{
	return ip_fetch_begin(rel, 0);
}

TM_Result
compat_tuple_delete(Relation rel, ItemPointer tid, CommandId cid,
					Snapshot snapshot, Snapshot crosscheck, bool wait,
					TM_FailureData *tmfd, bool changing_part)
{
	return ip_update_delete(rel, tid, cid,
							changing_part ? TABLE_DELETE_CHANGING_PARTITION : 0,
							snapshot, crosscheck, wait, tmfd);
}

TM_Result
compat_tuple_update(Relation rel, ItemPointer tid, TupleTableSlot *slot,
					CommandId cid, Snapshot snapshot, Snapshot crosscheck,
					bool wait, TM_FailureData *tmfd, LockTupleMode *lockmode,
					CompatUpdateIndexes *update_indexes)
{
	return ip_update_tuple(rel, tid, slot, cid, 0, snapshot, crosscheck, wait,
						   tmfd, lockmode, update_indexes);
}

void
compat_copy_for_cluster(Relation old, Relation new, Relation index,
						bool use_sort, TransactionId oldest_xmin,
						TransactionId *xid_cutoff, MultiXactId *multi_cutoff,
						double *num_tuples,
						double *tups_vacuumed, double *tups_recently_dead)
{
	ip_rewrite_for_cluster(old, new, index, use_sort, oldest_xmin, NULL,
						   xid_cutoff, multi_cutoff, num_tuples, tups_vacuumed,
						   tups_recently_dead);
}

void
compat_vacuum(Relation rel, VacuumParams *params,
			  BufferAccessStrategy bstrategy)
{
	ip_vacuum_relation(rel, params, bstrategy);
}

bool
compat_scan_analyze_next_tuple(TableScanDesc scan, TransactionId oldest_xmin,
							   double *liverows, double *deadrows,
							   TupleTableSlot *slot)
{
	return ip_scan_analyze_next_tuple(scan, liverows, deadrows, slot);
}

#else

/*
 * Core keeps the blocks of a TID range, although a scan that starts again may
 * have another range.
 */
void
compat_parallelscan_reinitialize(Relation rel, ParallelTableScanDesc pscan)
{
	ParallelBlockTableScanDesc pbscan = (ParallelBlockTableScanDesc) pscan;

	table_block_parallelscan_reinitialize(rel, pscan);
	if (pbscan->phs_numblock == InvalidBlockNumber)
		return;
	pbscan->phs_startblock = InvalidBlockNumber;
	pbscan->phs_numblock = InvalidBlockNumber;
}

#endif

/* ---- ANALYZE ------------------------------------------------------------- */

#if PG_VERSION_NUM < 170000

bool
compat_scan_analyze_next_block(TableScanDesc scan, BlockNumber block,
							   BufferAccessStrategy strategy)
{
	if (!ip_scan_analyze_undo(scan, block))
		ip_scan_analyze_page(scan, ReadBufferExtended(scan->rs_rd, MAIN_FORKNUM,
													  block, RBM_NORMAL,
													  strategy));
	return true;
}

#else

bool
compat_scan_analyze_next_block(TableScanDesc scan, ReadStream *stream)
{
	Buffer		buffer = read_stream_next_buffer(stream, NULL);

	if (!BufferIsValid(buffer))
		return false;
	ip_scan_analyze_page(scan, buffer);
	return true;
}

#endif

/* ---- bitmaps ------------------------------------------------------------- */

#if PG_VERSION_NUM < 180000

bool
compat_scan_bitmap_next_block(TableScanDesc scan, TBMIterateResult *tbmres)
{
	if (tbmres->blockno >= ip_scan_bitmap_nblocks(scan))
		return false;
	ip_scan_bitmap_page(scan, ReadBufferExtended(scan->rs_rd, MAIN_FORKNUM,
												 tbmres->blockno, RBM_NORMAL,
												 NULL),
						tbmres->offsets, tbmres->ntuples);
	return true;
}

bool
compat_scan_bitmap_next_tuple(TableScanDesc scan, TBMIterateResult *tbmres,
							  TupleTableSlot *slot)
{
	return ip_scan_bitmap_row(scan, slot);
}

#else

static BlockNumber
bitmap_next_block(void *state, void *per_block)
{
	TableScanDesc scan = state;
	TBMIterateResult *tbmres = per_block;
	BlockNumber nblocks = ip_scan_bitmap_nblocks(scan);

	do
	{
		CHECK_FOR_INTERRUPTS();
		if (!tbm_iterate(&scan->st.rs_tbmiterator, tbmres))
			return InvalidBlockNumber;
	} while (tbmres->blockno >= nblocks);
	return tbmres->blockno;
}

/*
 * The executor sets the bitmap's iterator after the scan has begun, so its
 * reads begin here.
 */
bool
compat_scan_bitmap_next_tuple(TableScanDesc scan, TupleTableSlot *slot,
							  bool *recheck, uint64 *lossy_pages,
							  uint64 *exact_pages)
{
	CompatReads **reads = ip_scan_bitmap_reads(scan);

	if (*reads == NULL)
		*reads = compat_reads_begin(scan->rs_rd, COMPAT_READ_BITMAP,
									NULL, bitmap_next_block, scan,
									sizeof(TBMIterateResult));
	while (!ip_scan_bitmap_row(scan, slot))
	{
		OffsetNumber offsets[TBM_MAX_TUPLES_PER_PAGE];
		void	   *per_block;
		Buffer		buffer = compat_reads_next(*reads, &per_block);
		TBMIterateResult *tbmres = per_block;
		int			noffsets = -1;

		if (!BufferIsValid(buffer))
			return false;
		if (!tbmres->lossy)
			noffsets = tbm_extract_page_tuple(tbmres, offsets,
											  TBM_MAX_TUPLES_PER_PAGE);
		*recheck = tbmres->recheck;
		*(tbmres->lossy ? lossy_pages : exact_pages) += 1;
		ip_scan_bitmap_page(scan, buffer, offsets, noffsets);
	}
	return true;
}

#endif
