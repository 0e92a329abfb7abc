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
	IpRuns	   *undo;			/* what of them is undo, as far as known; or
								 * NULL */
	BlockNumber start;			/* first block of the range to scan */
	BlockNumber limit;			/* behind the last one */
	BlockNumber first;			/* the scan begins here, and goes round */
	CompatReads *reads;			/* NULL before the first */
	bool		forward;		/* reads go on forward from block: the last
								 * that they got is ahead */
	bool		ahead_started;	/* ahead is valid */
	BlockNumber ahead;
	bool		started;		/* block is valid */
	BlockNumber block;			/* page in the copy, or InvalidBlockNumber */
	Buffer		pinned;			/* if it has rows: changing them will be
								 * cheaper */
	OffsetNumber max_off;		/* 0: not a data page */
	bool		is_undo;		/* but one of undo */
	IpXid		horizon;		/* of pg_xact, before the page was copied */
	IpKnownXids known;
	IpHeals		heals;			/* may it put pages in order? */
	OffsetNumber off;			/* last returned; 0 or max_off + 1 at the ends */
	bool		has_before;		/* a dirty snapshot's: see
								 * ip_version_has_before */
	int			stale_tries;	/* and ip_fetch_before */
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
								   struct ScanKeyData *key, ParallelTableScanDesc pscan,
								   uint32 flags);
extern void ip_scan_end(TableScanDesc sscan);
extern void ip_scan_rescan(TableScanDesc sscan, struct ScanKeyData *key, bool set_params,
						   bool allow_strat, bool allow_sync, bool allow_pagemode);
extern bool ip_scan_getnextslot(TableScanDesc sscan, ScanDirection direction,
								TupleTableSlot *slot);
extern void ip_scan_set_tidrange(TableScanDesc sscan, ItemPointer mintid, ItemPointer maxtid);
extern bool ip_scan_getnextslot_tidrange(TableScanDesc sscan, ScanDirection direction,
										 TupleTableSlot *slot);
extern bool ip_scan_sample_next_block(TableScanDesc sscan, struct SampleScanState *state);
extern bool ip_scan_sample_next_tuple(TableScanDesc sscan, struct SampleScanState *state,
									  TupleTableSlot *slot);
extern bool ip_scan_analyze_next_tuple(TableScanDesc sscan, double *liverows, double *deadrows,
									   TupleTableSlot *slot);

/* For the callbacks that differ between versions (compat_table.c): the scan gets a pin of the buffer, and gives it back. */
extern void ip_scan_analyze_page(TableScanDesc scan, Buffer buffer);

/* Is the block known not to have rows?  Then that has been done, without reading it. */
extern bool ip_scan_analyze_undo(TableScanDesc scan, BlockNumber block);

/* The page's rows at so many offsets are wanted, or all of them if noffsets is negative. */
extern void ip_scan_bitmap_page(TableScanDesc scan, Buffer buffer, const OffsetNumber *offsets,
								int noffsets);

/* The next of these rows that the scan's snapshot sees. */
extern bool ip_scan_bitmap_row(TableScanDesc scan, TupleTableSlot *slot);

/* The number of blocks to be scanned, and where the scan keeps its reads; they may be NULL. */
extern BlockNumber ip_scan_bitmap_nblocks(TableScanDesc scan);
extern CompatReads **ip_scan_bitmap_reads(TableScanDesc scan);

/* ---- the rows of a page ------------------------------------------------------------------ */

/*
 * Copy the buffer's page; max_off is 0 if it holds no rows, and then the buffer is released.  Else it stays pinned: what is
 * done next to the rows, in this statement, pins it again, and that is quickly done.
 */
extern void ip_scan_copy_page(IpScan *scan, Buffer buffer);

/* The same for a page of undo, which is not read. */
extern void ip_scan_pass_undo(IpScan *scan, BlockNumber block);

/* Store a row that everybody sees; false: it may not be one. */
extern bool ip_scan_store_plain(IpScan *scan, OffsetNumber off, TupleTableSlot *slot);

/*
 * What the snapshot sees of the row at off of the page copy, as far as that
 * tells; its body may be scan->v's (ip_scan_reuse_version).  known is about
 * rs_snapshot: another snapshot may not be an MVCC one.
 */
extern IpSightOf ip_scan_sight(IpScan *scan, OffsetNumber off, Snapshot snapshot, IpSight *s);

/* scan->v is about to stand on another row; a slot other than the one that will have it may have borrowed the body. */
static inline void
ip_scan_reuse_version(IpScan *scan, TupleTableSlot *slot)
{
	if (scan->owner.borrower != NULL && &scan->owner.borrower->base != slot)
		ip_slot_owner_release(&scan->owner);
}

/* Store the version that scan->v stands on; its body, there or in the page copy, is lent. */
extern void ip_scan_store_version(IpScan *scan, IpVersion *v, TupleTableSlot *slot);

/* Restrict the scan to nblocks blocks from start on. */
extern void ip_scan_set_range(IpScan *scan, BlockNumber start, BlockNumber nblocks);

/*
 * The next row of any state (dead items are skipped), without a decision on
 * visibility: scan->v stands on its newest version.  For index builds.
 */
extern bool ip_scan_next_row(IpScan *scan);

#endif							/* IP_SCAN_H */
