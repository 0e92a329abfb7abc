/*-------------------------------------------------------------------------
 * compat_reads.h
 *	  Reading the blocks that a scan wants.
 *
 * From 17 on blocks are read by a read stream: several at a time, and ahead of
 * their use; from 18 on asynchronously.  Before, one by one.
 *-------------------------------------------------------------------------
 */
#ifndef PG_INPLACE_COMPAT_READS_H
#define PG_INPLACE_COMPAT_READS_H

#include "compat.h"

#include "storage/bufmgr.h"

typedef struct CompatReads CompatReads;

/*
 * Returns the next block to read, or InvalidBlockNumber; per_block is memory
 * that accompanies the block.  It may be called before the blocks returned so
 * far are used.  The state is a palloc'd chunk; the CompatReads is allocated
 * in the same context.
 */
typedef BlockNumber (*CompatNextBlock) (void *state, void *per_block);

typedef enum CompatReadKind
{
	COMPAT_READ_SEQUENTIAL,
	COMPAT_READ_BITMAP,
	COMPAT_READ_MAINTENANCE,	/* its next_block may do I/O of its own */
	COMPAT_READ_CLEANUP			/* maintenance whose next_block does no I/O */
} CompatReadKind;

extern CompatReads *compat_reads_begin(Relation rel, CompatReadKind kind,
									   BufferAccessStrategy strategy,
									   CompatNextBlock next_block, void *state,
									   Size per_block_size);

/*
 * Return the next block, pinned for the caller.  *per_block is valid until the
 * next call; the argument may be NULL.
 */
extern Buffer compat_reads_next(CompatReads *reads, void **per_block);

/*
 * Discard what was read ahead.  Reading continues with another call of
 * next_block.
 */
extern void compat_reads_reset(CompatReads *reads);
extern void compat_reads_end(CompatReads *reads);

#endif							/* PG_INPLACE_COMPAT_READS_H */
