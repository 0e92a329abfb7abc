/*-------------------------------------------------------------------------
 * tidset.h
 *	  A set of tuple identifiers: VACUUM's dead TIDs.
 *
 * An adaptive radix tree over block numbers whose leaves hold the offsets of
 * 256 blocks each.  Memory comes through an allocator interface and is
 * addressed by 32-bit references, so the same code works in local and in
 * dynamic shared memory.  Depends on the C library only; tidset_int.h has the
 * layout, README.md the invariants.
 *
 * USAGE
 *	  Fill (tidset_add_block), look up or iterate, tidset_reset, fill again.
 *	  Lookups may also come between additions.  They write nothing to the set:
 *	  any number of threads may look up while no thread changes it.
 *
 * SHARING
 *	  One process creates and fills a set.  After tidset_seal() any number of
 *	  processes may attach to its tidset_handle() and look up; the creator must
 *	  not add to it or reset it until they have detached.  There are no locks
 *	  because no process writes while others read.
 *-------------------------------------------------------------------------
 */
#ifndef TIDSET_H
#define TIDSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C"
{
#endif

/* the largest offset, on a page of 32 kB; the smallest one is 1 */
#define TIDSET_MAX_OFFSET	8192

/* a smaller limit leaves no room for any block */
#define TIDSET_MIN_MEMORY	((uint64_t) 64 * 1024)

/* the largest size that references can address; it bounds higher limits */
#define TIDSET_MAX_MEMORY	((uint64_t) 6 * 1024 * 1024 * 1024)

/*
 * The source of memory.  Processes may exchange handles; in local memory a
 * handle is the address.  alloc returns 0 if there is no memory, else the
 * handle of memory aligned to 8 bytes.
 */
typedef struct TidSetAllocator
{
	uint64_t	(*alloc) (void *arg, size_t size);
	void		(*free) (void *arg, uint64_t handle);
	void	   *(*address) (void *arg, uint64_t handle);
	void	   *arg;
	size_t		overhead;		/* what an allocation costs besides its size */
	size_t		grain;			/* the size of an allocation is a multiple of
								 * this, at least three times it; 0: any size */
} TidSetAllocator;

typedef struct TidSet TidSet;

/* the layout of the server's ItemPointerData */
typedef struct TidSetTid
{
	uint16_t	block_hi;
	uint16_t	block_lo;
	uint16_t	offset;
} TidSetTid;

/*
 * Create a set that takes at most limit bytes from both allocators together.
 * A limit below TIDSET_MIN_MEMORY means TIDSET_MIN_MEMORY.  Returns NULL if
 * there is no memory.  Memory that other processes need comes from "shared",
 * the rest from "local"; they are the same for a local set.
 */
extern TidSet *tidset_create(const TidSetAllocator *local,
							 const TidSetAllocator *shared, uint64_t limit);

/* Create a set in memory of malloc(). */
extern TidSet *tidset_create_malloc(uint64_t limit);

/* Free all memory of the set.  No other process may be attached to it. */
extern void tidset_destroy(TidSet *set);

/* Forget all TIDs and free their memory. */
extern void tidset_reset(TidSet *set);

/*
 * Add offsets, in any order, of a block; existing ones stay.  Blocks in
 * ascending order give the best speed and density.  Returns false, with the
 * contents unchanged, if the limit would be exceeded, there is no memory, or
 * an offset is not in 1 .. TIDSET_MAX_OFFSET.
 */
extern bool tidset_add_block(TidSet *set, uint32_t block,
							 const uint16_t *offsets, int n);

/* True if the TID is in the set. */
extern bool tidset_member(const TidSet *set, uint32_t block, uint16_t offset);

/*
 * State for many lookups.  It remembers the last block, which in the order of
 * an index is mostly the next TID's block, too.  Each thread has its own
 * state.  The set must not change between its beginning and its last use.
 */
typedef struct TidSetLookup
{
	const TidSet *set;
	uint64_t	key;			/* block of the last lookup */
	uint64_t	slot;			/* that block's offsets; 0: none */
	const uint8_t *leaf;		/* NULL if there is none, or it is embedded */
	uint64_t	prefix;			/* prefix of the last leaf */
	uint32_t	embedded;		/* the reference that embeds the leaf, or 0 */
} TidSetLookup;

extern void tidset_lookup_begin(const TidSet *set, TidSetLookup *lookup);
extern bool tidset_lookup(TidSetLookup *lookup, uint32_t block,
						  uint16_t offset);

/*
 * Look up n TIDs, best sorted: found[i] is the result for tids[i].  Returns
 * how many are in the set.
 */
extern int	tidset_member_batch(const TidSet *set, const TidSetTid *tids, int n,
								bool *found);

/* End a run of additions: write the open leaf, and free working memory. */
extern void tidset_seal(TidSet *set);

/* ---- iteration, in order of blocks; the set must not change ---- */

typedef struct TidSetIter
{
	TidSet	   *set;
	const uint8_t *leaf;		/* NULL at the end */
	uint64_t	prefix;			/* the leaf's blocks without their last byte */
	int			next;			/* the next key or pair */
	uint8_t		scratch[40];	/* a leaf that is embedded in a reference */
} TidSetIter;

extern void tidset_iter_begin(TidSet *set, TidSetIter *iter);

/*
 * Get the next block and its offsets in ascending order.  Returns their
 * number; 0 at the end.  If room is too small, returns -1, and the block stays
 * the next one; TIDSET_MAX_OFFSET is always enough.
 */
extern int	tidset_iter_next(TidSetIter *iter, uint32_t *block,
							 uint16_t *offsets, int room);

/* ---- statistics ---- */

extern uint64_t tidset_count(const TidSet *set);	/* TIDs */
extern uint64_t tidset_blocks(const TidSet *set);	/* blocks that have some */
extern uint64_t tidset_memory(const TidSet *set);	/* bytes taken now,
													 * overhead included */
extern uint64_t tidset_memory_peak(const TidSet *set);	/* the maximum so far */
extern uint64_t tidset_limit(const TidSet *set);

typedef struct TidSetStats
{
	/* nodes by number of children: [n - 1]; inner nodes and leaves */
	uint64_t	inner[256];
	uint64_t	leaf[256];
	uint64_t	height;			/* levels of inner nodes */
	/* leaves by form */
	uint64_t	embedded;
	uint64_t	pairs;			/* with or without groups */
	uint64_t	same;
	uint64_t	wide;
	/* bytes */
	uint64_t	node_bytes;		/* in nodes */
	uint64_t	free_bytes;		/* free for nodes */
	uint64_t	chunk_bytes;	/* in chunks */
} TidSetStats;

extern void tidset_stats(TidSet *set, TidSetStats *stats);

/*
 * Check all invariants of the memory structure.  Returns NULL or a description
 * of the fault.
 */
extern const char *tidset_check(TidSet *set);

/* ---- sharing ---- */

extern uint64_t tidset_handle(const TidSet *set);
extern TidSet *tidset_attach(const TidSetAllocator *local,
							 const TidSetAllocator *shared, uint64_t handle);
extern void tidset_detach(TidSet *set);

#ifdef __cplusplus
}
#endif

#endif							/* TIDSET_H */
