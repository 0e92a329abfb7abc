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

#endif							/* PG_INPLACE_COMPAT_READS_H */
