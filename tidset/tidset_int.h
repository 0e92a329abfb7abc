/*-------------------------------------------------------------------------
 * tidset_int.h
 *	  Layout of nodes and leaves, and the definitions that the files of tidset
 *	  share.
 *
 * A key is a block number.  It has up to 56 bits here, so that benchmarks of
 * other radix trees can be run on this one.  The bytes before its last one are
 * the prefix, which leads to the leaf; the last byte selects a slot there.
 *
 * Nodes and leaves start with {form, count - 1, size in units of 8 bytes (16
 * bits)}, except for pairs, whose size follows from their count:
 *
 *	index	KEYS	keys in ascending order, filled up to 4 bytes
 *			RANK	4 x number of bits set in the words before, 4 x 64 bits
 *			DIRECT	nothing: the slot's number is the key
 *	INNER	index, 32-bit references; a direct one has them up to its largest
 *			key, which takes the place of the count
 *	WIDE	the same with 64-bit slots (tidset_block.c); then bytes that
 *			slots point to
 *	SAME	index, the one slot that all blocks have
 *	PAIRS	{form, count - 1}, keys, offsets: up to 32 TIDs with offsets < 256
 *	GROUPS	17 x 16 bits: where the pairs of each 16 blocks begin; keys, offsets
 *
 * A reference is a number of 4-byte units, counted through all chunks of
 * memory; 0 is none.  With its highest bit set it is itself a leaf of up to
 * two TIDs with offsets < 128: twice {key 8 bits, offset 7 bits}.
 *-------------------------------------------------------------------------
 */
#ifndef TIDSET_INT_H
#define TIDSET_INT_H

#include "tidset.h"
#include "tidset_simd.h"

#ifdef TIDSET_DEBUG
#include <assert.h>
#define TS_ASSERT(x) assert(x)
#else
#define TS_ASSERT(x) ((void) 0)
#endif

#define TS_LIKELY(x)	__builtin_expect((x) != 0, 1)
#define TS_UNLIKELY(x)	__builtin_expect((x) != 0, 0)

/* index in the lowest two bits */
#define TS_KEYS			0
#define TS_RANK			1
#define TS_DIRECT		2
#define TS_INDEX(form)	((form) & 3)

#define TS_FREE			0		/* then 24 bits: size in 4-byte units; then a
								 * reference to the next free block */
#define TS_PAIRS		1
#define TS_GROUPS		2
#define TS_INNER		4
#define TS_WIDE			8
#define TS_SAME			12
#define TS_TYPE(form)	((form) & ~3)

#define TS_HEADER		4
#define TS_MAX_KEYS		16		/* the number of keys that one vector
								 * comparison can search */
#define TS_MAX_PAIRS	32
#define TS_MAX_GROUPED	1024
#define TS_NGROUPS		16
#define TS_GROUP_KEYS	(TS_HEADER + 2 * (TS_NGROUPS + 1))

#define TS_MAX_HEIGHT	6		/* levels of inner nodes for a key of 56 bits */
#define TS_MAX_KEY		((UINT64_C(1) << 56) - 1)
#define TS_NO_PREFIX	UINT64_MAX
#define TS_NO_KEY		UINT64_MAX

/* references */
#define TS_UNIT			4
#define TS_PAGE_SHIFT	14		/* a page of references is 64 kB */
#define TS_PAGE_UNITS	(1 << TS_PAGE_SHIFT)
#define TS_MAX_PAGES	(1 << (31 - TS_PAGE_SHIFT))
#define TS_EMBEDDED		UINT32_C(0x80000000)
#define TS_SCRATCH		(2 + 4 + TIDSET_PAD)	/* for an embedded leaf as
												 * pairs */

/* free lists: one for each small size, then one for each power of two */
#define TS_EXACT_BINS	32
#define TS_NBINS		(TS_EXACT_BINS + 20)

/* Starts every chunk of memory for nodes; the chunks are a list. */
typedef struct TsChunk
{
	uint64_t	next;			/* handle */
	uint32_t	page;			/* its first page of references */
	uint32_t	units;			/* without the padding at the end */
} TsChunk;

/* The data that attached processes need. */
typedef struct TsControl
{
	uint64_t	chunks;			/* handle of the first chunk */
	uint64_t	ntids;
	uint64_t	nblocks;
	uint64_t	memory;
	uint64_t	peak;
	uint64_t	limit;
	uint32_t	root;
	uint32_t	height;
	uint32_t	npages;
} TsControl;

/*
 * The leaf that is being filled, spread out so that additions are simple.  It
 * is written in its best form when another leaf is needed.  All memory for
 * that is reserved in advance, so that writing cannot fail.
 */
typedef struct TsOpen
{
	uint64_t	prefix;
	uint32_t   *place;			/* the reference to the leaf */
	bool		dirty;
	bool		large;			/* an offset is too large for pairs */
	uint32_t	room;			/* bytes the leaf has now, 0 if there is none */
	uint32_t	nkeys;
	uint32_t	ntids;
	uint32_t	far_live;		/* bytes of far that slots point to */
	uint32_t	far_used;
	uint32_t	far_size;
	uint64_t	far_handle;
	uint8_t    *far;			/* bytes that slots point to */
	uint64_t	present[4];
	uint64_t	slots[256];
} TsOpen;

struct TidSet
{
	/* for lookups: */
	uintptr_t  *pages;			/* address = this + bytes of the reference */
	uint32_t	root;
	uint32_t	height;
	TsOpen	   *open;			/* NULL if sealed */

	/* memory */
	TsControl  *ctl;
	uint64_t	ctl_handle;
	TidSetAllocator local;
	TidSetAllocator shared;
	uint64_t	self;			/* handles of local memory */
	uint64_t	pages_handle;
	uint64_t	open_handle;
	uint32_t	max_pages;
	TsChunk    *last_chunk;
	uint64_t	total_units;	/* in all chunks */
	uint64_t	free_units;		/* in free blocks, without the open end */
	uint64_t	freed_units;	/* freed since the last sweep */
	uint32_t	end;			/* the open end: memory is taken from here */
	uint32_t	end_limit;
	uint64_t	nonempty;		/* a bit for each bin that has blocks */
	uint32_t	bins[TS_NBINS];
};

/* ---- access to nodes ---- */

static inline uint8_t *
ts_address(const TidSet *set, uint32_t ref)
{
	return (uint8_t *) (set->pages[ref >> TS_PAGE_SHIFT] +
						(uintptr_t) ref * TS_UNIT);
}

static inline uint16_t
ts_get16(const uint8_t *p)
{
	uint16_t	v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t
ts_get32(const uint8_t *p)
{
	uint32_t	v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t
ts_get64(const uint8_t *p)
{
	uint64_t	v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline int
ts_count(const uint8_t *node)
{
	return node[1] + 1;
}

/* The position where an index ends, and slots begin. */
static inline uint32_t
ts_slots_at(int index, int n)
{
	switch (index)
	{
		case TS_KEYS:
			return TS_HEADER + (((uint32_t) n + 3) & ~3u);
		case TS_RANK:
			return TS_HEADER + 4 + 32;
		default:
			return TS_HEADER;
	}
}

static inline int
ts_find_keys(const uint8_t *node, uint8_t key)
{
	uint32_t	mask = tidset_match16(node + TS_HEADER, key) &
		((1u << ts_count(node)) - 1);

	return mask ? __builtin_ctz(mask) : -1;
}

static inline int
ts_find_rank(const uint8_t *node, uint8_t key)
{
	uint64_t	word = ts_get64(node + TS_HEADER + 4 + 8 * (key >> 6));
	uint64_t	bit = UINT64_C(1) << (key & 63);

	if (!(word & bit))
		return -1;
	return node[TS_HEADER + (key >> 6)] + tidset_popcount(word & (bit - 1));
}

/*
 * Find the number of the key's slot, or -1.  In a direct index the slot may be
 * empty.
 */
static inline int
ts_find(const uint8_t *node, uint8_t key)
{
	switch (TS_INDEX(node[0]))
	{
		case TS_KEYS:
			return ts_find_keys(node, key);
		case TS_RANK:
			return ts_find_rank(node, key);
		default:
			return key;
	}
}

/* Get the reference that an inner node has for the key; 0 if none. */
static inline uint32_t
ts_child(const uint8_t *node, uint8_t key)
{
	int			i;

	if (TS_LIKELY(node[0] == (TS_INNER | TS_DIRECT)))
		return key <= node[1] ? ts_get32(node + TS_HEADER + 4 * key) : 0;
	i = ts_find(node, key);
	if (i < 0)
		return 0;
	return ts_get32(node + ts_slots_at(TS_INDEX(node[0]), ts_count(node)) +
					4 * i);
}

/* ---- tidset_arena.c: memory for nodes ---- */

/* Round the size of an allocation up to the allocator's grain. */
static inline size_t
ts_grained(const TidSetAllocator *from, size_t size)
{
	if (from->grain == 0)
		return size;
	size = (size + from->grain - 1) / from->grain * from->grain;
	return size < 3 * from->grain ? 3 * from->grain : size;
}

extern bool ts_account(TidSet *set, const TidSetAllocator *from, size_t size);
extern uint64_t ts_take(TidSet *set, const TidSetAllocator *from, size_t size);
extern void ts_give(TidSet *set, const TidSetAllocator *to, uint64_t handle,
					size_t size);
extern bool ts_reserve(TidSet *set, uint32_t bytes);
extern uint32_t ts_alloc(TidSet *set, uint32_t bytes);
extern void ts_release(TidSet *set, uint32_t ref, uint32_t bytes);
extern uint32_t ts_node_units(const uint8_t *node);
extern bool ts_map_chunks(TidSet *set);
extern void ts_free_chunks(TidSet *set);

/* ---- tidset_block.c: the offsets of one block as a slot ---- */

/* The offsets of one block.  Bit o of the words stands for offset o. */
#define TS_BITS_WORDS	(TIDSET_MAX_OFFSET / 64 + 1)

typedef struct TsBits
{
	int			nwords;			/* words in use */
	uint64_t	words[TS_BITS_WORDS];
} TsBits;

#define TS_SLOT_BITMAP	0		/* bit o + 1: offset o (1 .. 62) */
#define TS_SLOT_RUN		1		/* 14 bits first, 14 bits last */
#define TS_SLOT_LIST	2		/* 2 bits count - 1, up to 4 x 14 bits */
#define TS_SLOT_FAR		3		/* see tidset_block.c */
#define TS_SLOT_TAG(s)	((int) ((s) & 3))
#define TS_SMALL_MAX	62		/* offsets that a bitmap in the slot can have */
#define TS_LIST_MAX		4

/* the longest far part */
#define TS_FAR_MAX		(TIDSET_MAX_OFFSET / 8 + 1)

extern void ts_bits_clear(TsBits *bits);
extern void ts_bits_add(TsBits *bits, uint16_t offset);
extern void ts_bits_add_slot(TsBits *bits, uint64_t slot, const uint8_t *base);
extern uint64_t ts_slot_list(const uint8_t *offsets, int n);
extern uint64_t ts_slot_encode(const TsBits *bits, uint8_t *far,
							   uint32_t *far_len);
extern uint64_t ts_slot_moved(uint64_t slot, uint32_t pos);
extern uint32_t ts_slot_far_pos(uint64_t slot);
extern uint32_t ts_slot_far_len(uint64_t slot);
extern int	ts_slot_count(uint64_t slot);
extern int	ts_slot_max(uint64_t slot, const uint8_t *base);
extern int	ts_slot_offsets(uint64_t slot, const uint8_t *base,
							uint16_t *offsets);
extern bool ts_slot_member_slow(uint64_t slot, const uint8_t *base,
								uint16_t offset);

static inline bool
ts_slot_member(uint64_t slot, const uint8_t *base, uint16_t offset)
{
	if (TS_LIKELY(TS_SLOT_TAG(slot) == TS_SLOT_BITMAP))
	{
		/*
		 * The tag, bits 0 and 1, is zero.  Bit 1 would stand for offset 0,
		 * which no block has.
		 */
		return offset <= TS_SMALL_MAX && ((slot >> 1 >> offset) & 1);
	}
	return ts_slot_member_slow(slot, base, offset);
}

/* ---- tidset_node.c: indexes and inner nodes ---- */

extern int	ts_index_for(int n, int last, int slot_size, uint32_t *size);
extern uint8_t *ts_index_write(uint8_t *node, int form, const uint64_t *present,
							   int n);
extern int	ts_index_next(const uint8_t *node, int key);
extern uint32_t ts_index_size(int index, int n, int slot_size);
extern uint32_t *ts_place(TidSet *set, uint64_t prefix);
extern uint32_t ts_next_leaf(const TidSet *set, uint64_t *prefix);

/* The largest key that is present; there must be one. */
static inline int
ts_last_present(const uint64_t *present)
{
	int			word = 3;

	while (present[word] == 0)
		word--;
	return 64 * word + 63 - __builtin_clzll(present[word]);
}

static inline int
ts_next_present(const uint64_t *present, int key)
{
	for (; key < 256; key = (key | 63) + 1)
	{
		uint64_t	word = present[key >> 6] >> (key & 63);

		if (word)
			return key + __builtin_ctzll(word);
	}
	return 256;
}

/* ---- tidset_leaf.c ---- */

extern uint32_t ts_leaf_size(uint32_t nkeys, int last, uint32_t ntids,
							 bool large, uint32_t far);
extern uint32_t ts_open_room(const TsOpen *open, uint32_t size);
extern void ts_open_put(TsOpen *open, uint8_t key, uint64_t slot,
						const uint8_t *far, uint32_t len);
extern bool ts_open_load(TidSet *set, uint64_t prefix);
extern void ts_open_flush(TidSet *set);
extern bool ts_open_far(TidSet *set, uint32_t more);
extern const uint8_t *ts_unfold(uint32_t ref, uint8_t *scratch);
extern bool ts_pairs_slot(const uint8_t *leaf, uint8_t key, uint64_t *slot);
extern bool ts_pairs_member(const uint8_t *leaf, uint8_t key, uint16_t offset);
extern int	ts_leaf_next(const uint8_t *leaf, int *next, uint8_t *key,
						 uint16_t *offsets, int room);

/* ---- tidset.c, with keys of up to 56 bits ---- */

extern bool ts_add(TidSet *set, uint64_t key, const uint16_t *offsets, int n);
extern bool ts_lookup(TidSetLookup *lookup, uint64_t key, uint16_t offset);
extern bool ts_member(const TidSet *set, uint64_t key, uint16_t offset);
extern int	ts_iter_next(TidSetIter *iter, uint64_t *key, uint16_t *offsets,
						 int room);

#endif							/* TIDSET_INT_H */
