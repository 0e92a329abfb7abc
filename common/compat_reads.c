/*-------------------------------------------------------------------------
 * compat_reads.c
 *	  Reading the blocks that a scan wants.
 *-------------------------------------------------------------------------
 */
#include "compat_reads.h"

#if PG_VERSION_NUM >= 170000
#include "storage/read_stream.h"
#endif
#include "utils/memutils.h"

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
	[COMPAT_READ_SEQUENTIAL] =
	READ_STREAM_SEQUENTIAL | READ_STREAM_USE_BATCHING,
	[COMPAT_READ_BITMAP] =
	READ_STREAM_DEFAULT | READ_STREAM_USE_BATCHING,
	[COMPAT_READ_MAINTENANCE] =
	READ_STREAM_MAINTENANCE,
	[COMPAT_READ_CLEANUP] =
	READ_STREAM_MAINTENANCE | READ_STREAM_USE_BATCHING
};

static BlockNumber
stream_next_block(ReadStream *stream, void *arg, void *per_block)
{
	CompatReads *reads = arg;

	return reads->next_block(reads->state, per_block);
}

CompatReads *
compat_reads_begin(Relation rel, CompatReadKind kind,
				   BufferAccessStrategy strategy, CompatNextBlock next_block,
				   void *state, Size per_block_size)
{
	MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(state));
	CompatReads *reads = palloc(sizeof(CompatReads));

	reads->next_block = next_block;
	reads->state = state;
	reads->stream = read_stream_begin_relation(stream_flags[kind], strategy,
											   rel, MAIN_FORKNUM,
											   stream_next_block, reads,
											   per_block_size);
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
compat_reads_begin(Relation rel, CompatReadKind kind,
				   BufferAccessStrategy strategy, CompatNextBlock next_block,
				   void *state, Size per_block_size)
{
	MemoryContext context = GetMemoryChunkContext(state);
	CompatReads *reads = MemoryContextAlloc(context, sizeof(CompatReads));

	reads->next_block = next_block;
	reads->state = state;
	reads->rel = rel;
	reads->strategy = strategy;
	reads->per_block = per_block_size > 0 ?
		MemoryContextAlloc(context, per_block_size) : NULL;
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
	return ReadBufferExtended(reads->rel, MAIN_FORKNUM, block, RBM_NORMAL,
							  reads->strategy);
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
