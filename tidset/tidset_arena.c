/*-------------------------------------------------------------------------
 * tidset_arena.c
 *	  Memory for nodes: chunks from an allocator, cut into blocks of any
 *	  multiple of 4 bytes.
 *
 * A block comes from the free lists, which are sorted by size, else from the
 * open end: the rest of the newest chunk, or of a large free block.
 * ts_reserve() makes sure that the open end has room, so that allocations after
 * it cannot fail.  When a block is released, it is not joined with its free
 * neighbours.  A sweep through all chunks does that when a large part of the
 * memory is free; it can, because a block has its size in its first bytes.
 *
 * The size of a chunk is about a power of two, from 1 kB to 8 MB, and at most a
 * sixteenth of the existing memory if that is more than 1 kB.  That bounds the
 * slack, too.  The size is a little more than the power, because direct inner
 * nodes and leaves have a little more than 1 and 2 kB.
 *-------------------------------------------------------------------------
 */
#include "tidset_int.h"

#define MIN_CHUNK	1024
#define MAX_CHUNK	(8 * 1024 * 1024)
#define CHUNK_UNITS	(sizeof(TsChunk) / TS_UNIT)

/* ---- accounting ---- */

/*
 * Account for memory before its allocation.  Returns false if it would exceed
 * the limit.
 */
bool
ts_account(TidSet *set, const TidSetAllocator *from, size_t size)
{
	TsControl  *ctl = set->ctl;

	if (ctl->memory + size + from->overhead > ctl->limit)
		return false;
	ctl->memory += size + from->overhead;
	if (ctl->peak < ctl->memory)
		ctl->peak = ctl->memory;
	return true;
}

/* Allocate memory within the limit.  Returns its handle or 0. */
uint64_t
ts_take(TidSet *set, const TidSetAllocator *from, size_t size)
{
	uint64_t	peak = set->ctl->peak;
	uint64_t	handle;

	if (!ts_account(set, from, size))
		return 0;
	handle = from->alloc(from->arg, size);
	if (handle == 0)
	{
		set->ctl->memory -= size + from->overhead;
		set->ctl->peak = peak;
	}
	return handle;
}

void
ts_give(TidSet *set, const TidSetAllocator *to, uint64_t handle, size_t size)
{
	to->free(to->arg, handle);
	set->ctl->memory -= size + to->overhead;
}

/* ---- free blocks ---- */

static int
bin_of(uint32_t units)
{
	if (units < TS_EXACT_BINS)
		return (int) units;
	return TS_EXACT_BINS + (31 - __builtin_clz(units)) - 5;
}

static uint32_t
free_units_of(const uint8_t *block)
{
	return ts_get32(block) >> 8;
}

static void
put_free(TidSet *set, uint32_t ref, uint32_t units)
{
	uint32_t	head = TS_FREE | units << 8;
	int			bin = bin_of(units);
	uint8_t    *block;

	if (units == 0)
		return;
	block = ts_address(set, ref);
	memcpy(block, &head, sizeof(head));
	set->free_units += units;

	/*
	 * the smallest blocks have no room for a link; they stay unused until the
	 * next sweep
	 */
	if (units == 1)
		return;
	memcpy(block + 4, &set->bins[bin], sizeof(uint32_t));
	set->bins[bin] = ref;
	set->nonempty |= UINT64_C(1) << bin;
}

/*
 * Remove the block from its list; "before" is the previous block, or 0 if the
 * block is the first one of the bin.
 */
static uint32_t
unlink_free(TidSet *set, int bin, uint32_t before, uint32_t ref)
{
	uint8_t    *block = ts_address(set, ref);

	if (before == 0)
		set->bins[bin] = ts_get32(block + 4);
	else
		memcpy(ts_address(set, before) + 4, block + 4, sizeof(uint32_t));
	if (set->bins[bin] == 0)
		set->nonempty &= ~(UINT64_C(1) << bin);
	set->free_units -= free_units_of(block);
	return ref;
}

/*
 * Get a free block of at least this number of units, or 0.  The block's own
 * list may have smaller ones, so only a few of its blocks are tried.  All
 * blocks of later lists are large enough.
 */
static uint32_t
take_free(TidSet *set, uint32_t units)
{
	int			bin = bin_of(units);
	uint32_t	before = 0;
	uint32_t	ref = set->bins[bin];
	uint64_t	later;

	for (int tries = 0; ref != 0 && tries < 8; tries++)
	{
		if (free_units_of(ts_address(set, ref)) >= units)
			return unlink_free(set, bin, before, ref);
		before = ref;
		ref = ts_get32(ts_address(set, ref) + 4);
	}
	later = set->nonempty >> (bin + 1);
	if (later == 0)
		return 0;
	bin += 1 + __builtin_ctzll(later);
	return unlink_free(set, bin, 0, set->bins[bin]);
}

uint32_t
ts_node_units(const uint8_t *node)
{
	switch (node[0])
	{
		case TS_FREE:
			return free_units_of(node);
		case TS_PAIRS:
			return (2 + 2 * ts_count(node) + TS_UNIT - 1) / TS_UNIT;
		default:
			return 2 * ts_get16(node + 2);
	}
}

static void
sweep_chunk(TidSet *set, const TsChunk *chunk)
{
	uint32_t	first = chunk->page << TS_PAGE_SHIFT;
	uint32_t	limit = first + chunk->units;
	uint32_t	free_from = 0;
	uint32_t	ref = first + CHUNK_UNITS;

	while (ref < limit)
	{
		bool		open_end = ref == set->end && set->end < set->end_limit;
		const uint8_t *node = ts_address(set, ref);

		if (!open_end && node[0] == TS_FREE)
		{
			if (free_from == 0)
				free_from = ref;
			ref += free_units_of(node);
			continue;
		}
		if (free_from != 0)
			put_free(set, free_from, ref - free_from);
		free_from = 0;
		ref = open_end ? set->end_limit : ref + ts_node_units(node);
	}
	if (free_from != 0)
		put_free(set, free_from, limit - free_from);
}

static void *
address_of(const TidSetAllocator *allocator, uint64_t handle)
{
	return allocator->address(allocator->arg, handle);
}

/* Rebuild the free lists with neighbours joined. */
static void
sweep(TidSet *set)
{
	uint64_t	handle = set->ctl->chunks;

	memset(set->bins, 0, sizeof(set->bins));
	set->nonempty = 0;
	set->free_units = 0;
	set->freed_units = 0;
	while (handle != 0)
	{
		TsChunk    *chunk = address_of(&set->shared, handle);

		sweep_chunk(set, chunk);
		handle = chunk->next;
	}
}

/* ---- chunks ---- */

/* Make room for npages pages in the table of addresses. */
static bool
grow_pages(TidSet *set, uint32_t npages)
{
	uint32_t	max = set->max_pages;
	uint64_t	handle;
	uintptr_t  *pages;

	if (npages <= max)
		return true;
	if (npages > TS_MAX_PAGES)
		return false;
	while (max < npages)
		max = max < 12 ? 12 : max + max / 2;
	handle = ts_take(set, &set->local, max * sizeof(uintptr_t));
	if (handle == 0)
		return false;
	pages = address_of(&set->local, handle);
	if (set->max_pages > 0)
	{
		memcpy(pages, set->pages, set->max_pages * sizeof(uintptr_t));
		ts_give(set, &set->local, set->pages_handle,
				set->max_pages * sizeof(uintptr_t));
	}
	set->pages = pages;
	set->pages_handle = handle;
	set->max_pages = max;
	return true;
}

static uint32_t
pages_of(uint32_t units)
{
	return (units + TS_PAGE_UNITS - 1) / TS_PAGE_UNITS;
}

/*
 * Enter a chunk in the table of pages.  It has the chunk's address minus the
 * bytes of its first reference, so that ts_address only adds.
 */
static void
map_chunk(TidSet *set, const TsChunk *chunk)
{
	uintptr_t	base = (uintptr_t) chunk -
		((uintptr_t) chunk->page << TS_PAGE_SHIFT) * TS_UNIT;

	for (uint32_t i = 0; i < pages_of(chunk->units); i++)
		set->pages[chunk->page + i] = base;
}

static size_t
chunk_bytes(const TsChunk *chunk)
{
	return (size_t) chunk->units * TS_UNIT + TIDSET_PAD;
}

/*
 * The size of a chunk for a power of two.  It has room for the largest inner
 * node, or for some of the largest leaves that are common.
 */
static size_t
chunk_size(size_t power)
{
	return power + power / 256 + 128;
}

/* The size of the next chunk; at least need bytes. */
static size_t
next_chunk_size(const TidSet *set, size_t need)
{
	uint64_t	wanted = set->total_units * TS_UNIT / 16;
	size_t		size = MIN_CHUNK;

	while (size < MAX_CHUNK && 2 * size <= wanted)
		size *= 2;
	while (chunk_size(size) < need)
		size *= 2;
	return ts_grained(&set->shared, chunk_size(size));
}

static bool
add_chunk(TidSet *set, uint32_t need_units)
{
	size_t		need = (need_units + CHUNK_UNITS) * TS_UNIT + TIDSET_PAD;
	size_t		size = next_chunk_size(set, need);
	TsChunk    *chunk;
	uint64_t	handle;

	need = ts_grained(&set->shared, (need + 7) & ~(size_t) 7);
	if (!grow_pages(set, set->ctl->npages + pages_of(size / TS_UNIT)))
		return false;
	handle = ts_take(set, &set->shared, size);
	/* near the limit, halve the size until it fits, but not below the need */
	while (handle == 0 && size > need)
	{
		size = ts_grained(&set->shared,
						  (size / 2 > need ? size / 2 : need) & ~(size_t) 7);
		handle = ts_take(set, &set->shared, size);
	}
	if (handle == 0)
		return false;
	chunk = address_of(&set->shared, handle);
	chunk->next = 0;
	chunk->page = set->ctl->npages;
	chunk->units = (uint32_t) ((size - TIDSET_PAD) / TS_UNIT);
	memset((uint8_t *) chunk + size - TIDSET_PAD, 0, TIDSET_PAD);
	if (set->last_chunk)
		set->last_chunk->next = handle;
	else
		set->ctl->chunks = handle;
	set->last_chunk = chunk;
	set->ctl->npages += pages_of(chunk->units);
	map_chunk(set, chunk);
	set->total_units += chunk->units;
	put_free(set, set->end, set->end_limit - set->end);
	set->end = (chunk->page << TS_PAGE_SHIFT) + CHUNK_UNITS;
	set->end_limit = (chunk->page << TS_PAGE_SHIFT) + chunk->units;
	return true;
}

/* Make a free block of at least this number of units the open end. */
static bool
reopen(TidSet *set, uint32_t units)
{
	uint32_t	ref = take_free(set, units);

	if (ref == 0)
		return false;
	put_free(set, set->end, set->end_limit - set->end);
	set->end = ref;
	set->end_limit = ref + free_units_of(ts_address(set, ref));
	return true;
}

static uint32_t
units_of(uint32_t bytes)
{
	return (bytes + TS_UNIT - 1) / TS_UNIT;
}

/*
 * Make sure that blocks of this number of bytes in total can be allocated.
 * Returns false if the set is full.
 */
bool
ts_reserve(TidSet *set, uint32_t bytes)
{
	uint32_t	units = units_of(bytes);

	if (set->end_limit - set->end >= units || reopen(set, units))
		return true;
	if (set->free_units > set->total_units / 4 &&
		set->freed_units > set->total_units / 8)
	{
		sweep(set);
		if (reopen(set, units))
			return true;
	}
	if (add_chunk(set, units))
		return true;
	if (set->freed_units == 0)
		return false;
	sweep(set);
	return reopen(set, units);
}

/* Allocate a block of memory that was reserved. */
uint32_t
ts_alloc(TidSet *set, uint32_t bytes)
{
	uint32_t	units = units_of(bytes);
	uint32_t	ref = take_free(set, units);

	if (ref != 0)
	{
		uint32_t	had = free_units_of(ts_address(set, ref));

		put_free(set, ref + units, had - units);
		return ref;
	}
	TS_ASSERT(set->end_limit - set->end >= units);
	ref = set->end;
	set->end += units;
	return ref;
}

void
ts_release(TidSet *set, uint32_t ref, uint32_t bytes)
{
	uint32_t	units = units_of(bytes);

	TS_ASSERT(ref != 0 && (ref & TS_EMBEDDED) == 0);
	set->freed_units += units;
	put_free(set, ref, units);
}

/* Enter the addresses of all chunks of a set that another process made. */
bool
ts_map_chunks(TidSet *set)
{
	uint64_t	handle = set->ctl->chunks;

	set->max_pages = set->ctl->npages > 0 ? set->ctl->npages : 1;
	set->pages_handle = set->local.alloc(set->local.arg,
										 set->max_pages * sizeof(uintptr_t));
	if (set->pages_handle == 0)
		return false;
	set->pages = address_of(&set->local, set->pages_handle);
	while (handle != 0)
	{
		TsChunk    *chunk = address_of(&set->shared, handle);

		map_chunk(set, chunk);
		handle = chunk->next;
	}
	return true;
}

void
ts_free_chunks(TidSet *set)
{
	uint64_t	handle = set->ctl->chunks;

	while (handle != 0)
	{
		TsChunk    *chunk = address_of(&set->shared, handle);
		uint64_t	next = chunk->next;

		ts_give(set, &set->shared, handle, chunk_bytes(chunk));
		handle = next;
	}
	if (set->max_pages > 0)
		ts_give(set, &set->local, set->pages_handle,
				set->max_pages * sizeof(uintptr_t));
	memset(set->bins, 0, sizeof(set->bins));
	set->nonempty = 0;
	set->ctl->chunks = 0;
	set->ctl->npages = 0;
	set->last_chunk = NULL;
	set->max_pages = 0;
	set->pages = NULL;
	set->end = set->end_limit = 0;
	set->total_units = set->free_units = set->freed_units = 0;
}
