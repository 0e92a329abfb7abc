/*-------------------------------------------------------------------------
 * compat_scan.c
 *	  Reading the blocks that a scan wants, and the scan callbacks of a table
 *	  access method that differ between PostgreSQL's versions.
 *-------------------------------------------------------------------------
 */
#include "compat_scan.h"

#if PG_VERSION_NUM >= 170000
#include "storage/read_stream.h"
#endif
#include "utils/memutils.h"

/* ---- reads --------------------------------------------------------------------------- */

struct CompatReads
{
	CompatNextBlock next_block;
	void	   *state;
#if PG_VERSION_NUM >= 170000
	ReadStream *stream;
#else
	Relation	rel;
	BufferAccessStrategy strategy;
	void	   *per_block;
#endif
};

#if PG_VERSION_NUM >= 170000

#if PG_VERSION_NUM < 180000
#define READ_STREAM_USE_BATCHING 0
#endif

static const int stream_flags[] = {
	[COMPAT_READ_SEQUENTIAL] = READ_STREAM_SEQUENTIAL | READ_STREAM_USE_BATCHING,
	[COMPAT_READ_BITMAP] = READ_STREAM_DEFAULT | READ_STREAM_USE_BATCHING,
	[COMPAT_READ_MAINTENANCE] = READ_STREAM_MAINTENANCE,
	[COMPAT_READ_CLEANUP] = READ_STREAM_MAINTENANCE | READ_STREAM_USE_BATCHING
};

static BlockNumber
stream_next_block(ReadStream *stream, void *arg, void *per_block)
{
	CompatReads *reads = arg;

	return reads->next_block(reads->state, per_block);
}

CompatReads *
compat_reads_begin(Relation rel, CompatReadKind kind, BufferAccessStrategy strategy,
				   CompatNextBlock next_block, void *state, Size per_block_size)
{
	MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(state));
	CompatReads *reads = palloc(sizeof(CompatReads));

	reads->next_block = next_block;
	reads->state = state;
	reads->stream = read_stream_begin_relation(stream_flags[kind], strategy, rel, MAIN_FORKNUM,
											   stream_next_block, reads, per_block_size);
	MemoryContextSwitchTo(old);
	return reads;
}

Buffer
compat_reads_next(CompatReads *reads, void **per_block)
{
	return read_stream_next_buffer(reads->stream, per_block);
}

void
compat_reads_reset(CompatReads *reads)
{
	read_stream_reset(reads->stream);
}

void
compat_reads_end(CompatReads *reads)
{
	read_stream_end(reads->stream);
	pfree(reads);
}

#else

CompatReads *
compat_reads_begin(Relation rel, CompatReadKind kind, BufferAccessStrategy strategy,
				   CompatNextBlock next_block, void *state, Size per_block_size)
{
	MemoryContext context = GetMemoryChunkContext(state);
	CompatReads *reads = MemoryContextAlloc(context, sizeof(CompatReads));

	reads->next_block = next_block;
	reads->state = state;
	reads->rel = rel;
	reads->strategy = strategy;
	reads->per_block = per_block_size > 0 ? MemoryContextAlloc(context, per_block_size) : NULL;
	return reads;
}

Buffer
compat_reads_next(CompatReads *reads, void **per_block)
{
	BlockNumber block = reads->next_block(reads->state, reads->per_block);

	if (per_block != NULL)
		*per_block = reads->per_block;
	if (block == InvalidBlockNumber)
		return InvalidBuffer;
	return ReadBufferExtended(reads->rel, MAIN_FORKNUM, block, RBM_NORMAL, reads->strategy);
}

void
compat_reads_reset(CompatReads *reads)
{
}

void
compat_reads_end(CompatReads *reads)
{
	if (reads->per_block != NULL)
		pfree(reads->per_block);
	pfree(reads);
}

#endif

/* ---- ANALYZE ------------------------------------------------------------------------- */

#if PG_VERSION_NUM < 170000

bool
compat_scan_analyze_next_block(TableScanDesc scan, BlockNumber block, BufferAccessStrategy strategy)
{
	if (!ip_scan_analyze_undo(scan, block))
		ip_scan_analyze_page(scan, ReadBufferExtended(scan->rs_rd, MAIN_FORKNUM, block, RBM_NORMAL,
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

/* ---- bitmaps ------------------------------------------------------------------------- */

#if PG_VERSION_NUM < 180000

bool
compat_scan_bitmap_next_block(TableScanDesc scan, TBMIterateResult *tbmres)
{
	if (tbmres->blockno >= ip_scan_bitmap_nblocks(scan))
		return false;
	ip_scan_bitmap_page(scan, ReadBufferExtended(scan->rs_rd, MAIN_FORKNUM, tbmres->blockno,
												 RBM_NORMAL, NULL),
						tbmres->offsets, tbmres->ntuples);
	return true;
}

bool
compat_scan_bitmap_next_tuple(TableScanDesc scan, TBMIterateResult *tbmres, TupleTableSlot *slot)
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

/* The executor sets the bitmap's iterator when the scan has begun: its reads begin here. */
bool
compat_scan_bitmap_next_tuple(TableScanDesc scan, TupleTableSlot *slot, bool *recheck,
							  uint64 *lossy_pages, uint64 *exact_pages)
{
	CompatReads **reads = ip_scan_bitmap_reads(scan);

	if (*reads == NULL)
		*reads = compat_reads_begin(scan->rs_rd, COMPAT_READ_BITMAP, NULL, bitmap_next_block, scan,
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
			noffsets = tbm_extract_page_tuple(tbmres, offsets, TBM_MAX_TUPLES_PER_PAGE);
		*recheck = tbmres->recheck;
		*(tbmres->lossy ? lossy_pages : exact_pages) += 1;
		ip_scan_bitmap_page(scan, buffer, offsets, noffsets);
	}
	return true;
}

#endif
