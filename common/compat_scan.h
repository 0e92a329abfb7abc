/*-------------------------------------------------------------------------
 * compat_scan.h
 *	  Reading the blocks that a scan wants, and the scan callbacks of a table
 *	  access method that differ between PostgreSQL's versions.
 *
 * From 17 on blocks are read by a read stream: several at a time, and ahead of
 * their use; from 18 on asynchronously.  Before, one by one.
 *-------------------------------------------------------------------------
 */
#ifndef PG_INPLACE_COMPAT_SCAN_H
#define PG_INPLACE_COMPAT_SCAN_H

#include "compat.h"

#include "access/relscan.h"
#include "nodes/tidbitmap.h"

/* ---- reads --------------------------------------------------------------------------- */

typedef struct CompatReads CompatReads;

/*
 * The next block to be read, or InvalidBlockNumber; per_block is memory that
 * goes with it.  May be asked before the blocks named so far are used.  The
 * state is a chunk of memory; reads live where that does.
 */
typedef BlockNumber (*CompatNextBlock) (void *state, void *per_block);

typedef enum CompatReadKind
{
	COMPAT_READ_SEQUENTIAL,
	COMPAT_READ_BITMAP,
	COMPAT_READ_MAINTENANCE,	/* next_block may do I/O of its own */
	COMPAT_READ_CLEANUP			/* maintenance where it does none */
} CompatReadKind;

extern CompatReads *compat_reads_begin(Relation rel, CompatReadKind kind,
									   BufferAccessStrategy strategy, CompatNextBlock next_block,
									   void *state, Size per_block_size);

/* The next block, pinned for the caller; per_block (or NULL) is valid until the next call. */
extern Buffer compat_reads_next(CompatReads *reads, void **per_block);

/* Forget what was read ahead: the next block is asked for anew. */
extern void compat_reads_reset(CompatReads *reads);
extern void compat_reads_end(CompatReads *reads);

/* ---- callbacks ----------------------------------------------------------------------- */

/* What the access method does for those below; it gets a pin of the buffer, and gives it back. */
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

#if PG_VERSION_NUM < 170000
extern bool compat_scan_analyze_next_block(TableScanDesc scan, BlockNumber block,
										   BufferAccessStrategy strategy);
#else
extern bool compat_scan_analyze_next_block(TableScanDesc scan, ReadStream *stream);
#endif

/* members of TableAmRoutine */
#if PG_VERSION_NUM < 180000
extern bool compat_scan_bitmap_next_block(TableScanDesc scan, TBMIterateResult *tbmres);
extern bool compat_scan_bitmap_next_tuple(TableScanDesc scan, TBMIterateResult *tbmres,
										  TupleTableSlot *slot);

#define COMPAT_SCAN_BITMAP_METHODS \
	.scan_bitmap_next_block = compat_scan_bitmap_next_block, \
	.scan_bitmap_next_tuple = compat_scan_bitmap_next_tuple
#else
extern bool compat_scan_bitmap_next_tuple(TableScanDesc scan, TupleTableSlot *slot, bool *recheck,
										  uint64 *lossy_pages, uint64 *exact_pages);

#define COMPAT_SCAN_BITMAP_METHODS \
	.scan_bitmap_next_tuple = compat_scan_bitmap_next_tuple
#endif

#endif							/* PG_INPLACE_COMPAT_SCAN_H */
