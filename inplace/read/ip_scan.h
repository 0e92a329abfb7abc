/*-------------------------------------------------------------------------
 * ip_scan.h
 *	  Scans: sequential, parallel, bitmap, TID range, sample, ANALYZE.
 *
 * Pages change in place, so a scan copies each page under its share lock and
 * works on the copy: slots borrow rows from it (see IpSlotOwner).
 *-------------------------------------------------------------------------
 */
#ifndef IP_SCAN_H
#define IP_SCAN_H

#include "access/relscan.h"
#include "access/tableam.h"

#include "compat_reads.h"
#include "ip_heal.h"
#include "ip_ring.h"
#include "ip_sight.h"
#include "ip_slot.h"
#include "ip_version_satisfy.h"

typedef struct IpScan
{
	TableScanDescData rs_base;
	IpSlotOwner owner;			/* lends rows of the page copy */
	BufferAccessStrategy strategy;
	ParallelBlockTableScanWorkerData *worker;	/* parallel scan */
	BlockNumber nblocks;		/* when the scan began */
	IpRuns	   *undo;			/* blocks of undo, as far as known; or NULL */
	BlockNumber start;			/* first block of the range to scan */
	BlockNumber limit;			/* the block after the last one */
	BlockNumber first;			/* the scan begins here, and wraps around */
	CompatReads *reads;			/* NULL before the first */
	bool		forward;		/* reads go on forward from block: the last
								 * block that they got is ahead */
	bool		ahead_started;	/* ahead is valid */
	BlockNumber ahead;
	bool		started;		/* block is valid */
	BlockNumber block;			/* page in the copy, or InvalidBlockNumber */
	Buffer		pinned;			/* if the page has rows: changing them will be
								 * cheaper */
	OffsetNumber max_off;		/* 0 if it is not a data page */
	bool		is_undo;		/* a page of undo */
	IpXid		horizon;		/* of pg_xact, before the page was copied */
	IpKnownXids known;
	IpSight		sight;			/* of the copy's rows; see ip_scan_sight */
	IpHeals		heals;			/* whether it may put pages in order */
	OffsetNumber off;			/* last returned; 0 or max_off + 1 at ends */
	bool		has_before;		/* of a dirty snapshot: see
								 * ip_version_has_before */
	int			stale_tries;	/* see ip_fetch_before */
	bool		has_excess;		/* ANALYZE: excess is known */
	double		excess;			/* see undo_excess */
	double		dead_a_block;	/* ANALYZE: see count_entries */
	double		dead_found;
	double		dead_told;
	BlockNumber nsampled;
	/* bitmap and sample scans: the page's rows to return */
	int			next_wanted;
	int			nwanted;
	OffsetNumber wanted[MaxHeapTuplesPerPage];
	IpVersion	v;
	PGAlignedBlock copy;
} IpScan;

extern TableScanDesc ip_scan_begin(Relation rel, Snapshot snapshot, int nkeys,
								   struct ScanKeyData *key,
								   ParallelTableScanDesc pscan, uint32 flags);
extern void ip_scan_end(TableScanDesc sscan);
extern void ip_scan_rescan(TableScanDesc sscan, struct ScanKeyData *key,
						   bool set_params, bool allow_strat, bool allow_sync,
						   bool allow_pagemode);
extern bool ip_scan_getnextslot(TableScanDesc sscan, ScanDirection direction,
								TupleTableSlot *slot);
extern void ip_scan_set_tidrange(TableScanDesc sscan, ItemPointer mintid,
								 ItemPointer maxtid);
extern bool ip_scan_getnextslot_tidrange(TableScanDesc sscan,
										 ScanDirection direction,
										 TupleTableSlot *slot);
extern bool ip_scan_sample_next_block(TableScanDesc sscan,
									  struct SampleScanState *state);
extern bool ip_scan_sample_next_tuple(TableScanDesc sscan,
									  struct SampleScanState *state,
									  TupleTableSlot *slot);
extern bool ip_scan_analyze_next_tuple(TableScanDesc sscan, double *liverows,
									   double *deadrows, TupleTableSlot *slot);

/*
 * For the callbacks that differ between versions (compat_table.c).  The scan
 * takes over the pin of the buffer, and releases it.
 */
extern void ip_scan_analyze_page(TableScanDesc scan, Buffer buffer);

/*
 * Returns whether the block is known not to have rows.  If so, it counts as
 * scanned, without being read.
 */
extern bool ip_scan_analyze_undo(TableScanDesc scan, BlockNumber block);

/*
 * Request the page's rows at these offsets, or all of them if noffsets is
 * negative.
 */
extern void ip_scan_bitmap_page(TableScanDesc scan, Buffer buffer,
								const OffsetNumber *offsets, int noffsets);

/* Store the next of these rows that the scan's snapshot sees. */
extern bool ip_scan_bitmap_row(TableScanDesc scan, TupleTableSlot *slot);

/*
 * Return the number of blocks to be scanned, and the place where the scan keeps
 * its reads, which may be NULL.
 */
extern BlockNumber ip_scan_bitmap_nblocks(TableScanDesc scan);
extern CompatReads **ip_scan_bitmap_reads(TableScanDesc scan);

/* ---- the rows of a page ------------------------------------------------ */

/*
 * Copy the buffer's page.  If it holds no rows, max_off is 0, and the buffer is
 * released.  Otherwise the page stays pinned: what this statement does next to
 * the rows pins it again, which is cheaper then.
 */
extern void ip_scan_copy_page(IpScan *scan, Buffer buffer);

/*
 * Pass a page of undo, without reading it, as ip_scan_copy_page does for a page
 * without rows.
 */
extern void ip_scan_pass_undo(IpScan *scan, BlockNumber block);

/*
 * Store a row that everybody sees; returns false if it may not be such a row.
 */
extern bool ip_scan_store_frozen(IpScan *scan, OffsetNumber off,
								 TupleTableSlot *slot);

/*
 * Find what the snapshot sees of the row at off of the page copy, as far as the
 * page determines that; the result is in scan->sight.  Its body may be in
 * scan->v (ip_scan_reuse_version).  For item and hdr see ip_row_sound_item.
 * scan->known is about rs_snapshot: another snapshot may not be an MVCC one.
 */
extern IpSightOf ip_scan_sight(IpScan *scan, OffsetNumber off,
							   const uint8 *item, uint16 hdr,
							   Snapshot snapshot);

/*
 * Call this before scan->v stands on another row: a slot other than the one
 * that will get that row may have borrowed the body.
 */
static inline void
ip_scan_reuse_version(IpScan *scan, TupleTableSlot *slot)
{
	if (scan->owner.borrower != NULL && &scan->owner.borrower->base != slot)
		ip_slot_owner_release(&scan->owner);
}

/*
 * Store the version that v, which is scan->v, stands on.  Its body, in v or in
 * the page copy, is lent to the slot.
 */
extern void ip_scan_store_version(IpScan *scan, IpVersion *v,
								  TupleTableSlot *slot);

/* Restrict the scan to nblocks blocks from start on. */
extern void ip_scan_set_range(IpScan *scan, BlockNumber start,
							  BlockNumber nblocks);

/*
 * Go to the next row of any state, without a decision on visibility; dead items
 * are skipped.  scan->v stands on the row's newest version.  For index builds.
 */
extern bool ip_scan_next_row(IpScan *scan);

#endif							/* IP_SCAN_H */
