/*-------------------------------------------------------------------------
 * tidset.c
 *	  Sets of TIDs: making them, adding, looking up, iterating.
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>

#include "tidset_int.h"

/* ---- memory of malloc() ---- */

static uint64_t
malloc_alloc(void *arg, size_t size)
{
	(void) arg;
	return (uint64_t) (uintptr_t) malloc(size);
}

static void
malloc_free(void *arg, uint64_t handle)
{
	(void) arg;
	free((void *) (uintptr_t) handle);
}

static void *
malloc_address(void *arg, uint64_t handle)
{
	(void) arg;
	return (void *) (uintptr_t) handle;
}

TidSet *
tidset_create_malloc(uint64_t limit)
{
	/* malloc's own header is before each allocation */
	TidSetAllocator allocator = {
		malloc_alloc, malloc_free, malloc_address, NULL, 16, 0
	};

	return tidset_create(&allocator, &allocator, limit);
}

/* ---- making and freeing ---- */

static TidSet *
make_handle(const TidSetAllocator *local, const TidSetAllocator *shared)
{
	uint64_t	self = local->alloc(local->arg, sizeof(TidSet));
	TidSet	   *set;

	if (self == 0)
		return NULL;
	set = local->address(local->arg, self);
	memset(set, 0, sizeof(*set));
	set->self = self;
	set->local = *local;
	set->shared = *shared;
	return set;
}

static void
free_handle(TidSet *set)
{
	TidSetAllocator local = set->local;

	local.free(local.arg, set->self);
}

TidSet *
tidset_create(const TidSetAllocator *local, const TidSetAllocator *shared,
			  uint64_t limit)
{
	TidSet	   *set = make_handle(local, shared);

	if (set == NULL)
		return NULL;
	set->ctl_handle = shared->alloc(shared->arg,
									ts_grained(shared, sizeof(TsControl)));
	if (set->ctl_handle == 0)
	{
		free_handle(set);
		return NULL;
	}
	set->ctl = shared->address(shared->arg, set->ctl_handle);
	memset(set->ctl, 0, sizeof(*set->ctl));
	set->ctl->limit = limit < TIDSET_MIN_MEMORY ? TIDSET_MIN_MEMORY :
		limit < TIDSET_MAX_MEMORY ? limit : TIDSET_MAX_MEMORY;
	/* the limit leaves room for these */
	(void) ts_account(set, local, sizeof(TidSet));
	(void) ts_account(set, shared, ts_grained(shared, sizeof(TsControl)));
	return set;
}

static void
close_open(TidSet *set)
{
	TsOpen	   *open = set->open;

	if (open == NULL)
		return;
	if (open->far_size > 0)
		ts_give(set, &set->local, open->far_handle,
				open->far_size + TIDSET_PAD);
	ts_give(set, &set->local, set->open_handle, sizeof(TsOpen));
	set->open = NULL;
}

void
tidset_reset(TidSet *set)
{
	close_open(set);
	ts_free_chunks(set);
	set->root = set->height = 0;
	set->ctl->root = set->ctl->height = 0;
	set->ctl->ntids = set->ctl->nblocks = 0;
}

void
tidset_destroy(TidSet *set)
{
	tidset_reset(set);
	set->shared.free(set->shared.arg, set->ctl_handle);
	free_handle(set);
}

void
tidset_seal(TidSet *set)
{
	if (set->open == NULL)
		return;
	ts_open_flush(set);
	close_open(set);
	set->ctl->root = set->root;
	set->ctl->height = set->height;
}

uint64_t
tidset_handle(const TidSet *set)
{
	return set->ctl_handle;
}

TidSet *
tidset_attach(const TidSetAllocator *local, const TidSetAllocator *shared,
			  uint64_t handle)
{
	TidSet	   *set = make_handle(local, shared);

	if (set == NULL)
		return NULL;
	set->ctl_handle = handle;
	set->ctl = shared->address(shared->arg, handle);
	set->root = set->ctl->root;
	set->height = set->ctl->height;
	if (!ts_map_chunks(set))
	{
		free_handle(set);
		return NULL;
	}
	return set;
}

void
tidset_detach(TidSet *set)
{
	set->local.free(set->local.arg, set->pages_handle);
	free_handle(set);
}

/* ---- adding ---- */

/*
 * Put a block's slot into the open leaf, if memory to write the leaf can be
 * reserved.
 */
static bool
put_block(TidSet *set, uint8_t key, uint64_t slot, const uint8_t *far,
		  uint32_t far_len)
{
	TsOpen	   *open = set->open;
	bool		had = (open->present[key >> 6] >> (key & 63)) & 1;
	uint32_t	nkeys = open->nkeys + !had;
	uint32_t	ntids = open->ntids + (uint32_t) ts_slot_count(slot);
	uint32_t	far_live = open->far_live + far_len;
	uint32_t	before = open->ntids;
	int			last = open->nkeys > 0 ? ts_last_present(open->present) : 0;
	bool		large;

	if (far_len > 0 && !ts_open_far(set, far_len))
		return false;
	if (last < key)
		last = key;
	if (had)
	{
		ntids -= (uint32_t) ts_slot_count(open->slots[key]);
		far_live -= ts_slot_far_len(open->slots[key]);
	}
	/* the slot's position is 0 because its bytes are in "far" */
	large = open->large || ts_slot_max(slot, far) > UINT8_MAX;
	if (!ts_reserve(set, ts_open_room(open, ts_leaf_size(nkeys, last, ntids,
														 large, far_live))))
		return false;
	ts_open_put(open, key, slot, far, far_len);
	open->dirty = true;
	set->ctl->ntids += open->ntids - before;
	set->ctl->nblocks += !had;
	return true;
}

bool
ts_add(TidSet *set, uint64_t key, const uint16_t *offsets, int n)
{
	uint8_t		low = (uint8_t) key;
	uint8_t		far[TS_FAR_MAX];
	uint32_t	far_len;
	uint64_t	slot;
	TsOpen	   *open;
	TsBits		bits;

	TS_ASSERT(key <= TS_MAX_KEY);
	if (n <= 0)
		return true;
	for (int i = 0; i < n; i++)
	{
		if (offsets[i] < 1 || offsets[i] > TIDSET_MAX_OFFSET)
			return false;
	}
	if ((set->open == NULL || set->open->prefix != key >> 8) &&
		!ts_open_load(set, key >> 8))
		return false;
	open = set->open;
	ts_bits_clear(&bits);
	if ((open->present[low >> 6] >> (low & 63)) & 1)
		ts_bits_add_slot(&bits, open->slots[low], open->far);
	for (int i = 0; i < n; i++)
		ts_bits_add(&bits, offsets[i]);
	slot = ts_slot_encode(&bits, far, &far_len);
	return put_block(set, low, slot, far, far_len);
}

bool
tidset_add_block(TidSet *set, uint32_t block, const uint16_t *offsets, int n)
{
	return ts_add(set, block, offsets, n);
}

/* ---- looking up ---- */

/*
 * Move the lookup to the prefix's leaf.  Its leaf is NULL if the leaf is
 * embedded, or does not exist.
 */
static inline const uint8_t *
find_leaf(TidSetLookup *lookup, uint64_t prefix)
{
	const TidSet *set = lookup->set;
	const uint8_t *leaf = NULL;
	uint32_t	ref = set->root;
	int			shift = 8 * (int) set->height;

	if (TS_UNLIKELY(prefix >> shift != 0))
		ref = 0;
	while (shift > 0 && ref != 0)
	{
		shift -= 8;
		ref = ts_child(ts_address(set, ref), (uint8_t) (prefix >> shift));
	}
	lookup->prefix = prefix;
	lookup->embedded = 0;
	if (TS_UNLIKELY(ref & TS_EMBEDDED))
		lookup->embedded = ref;
	else if (ref != 0)
		leaf = ts_address(set, ref);
	lookup->leaf = leaf;
	return leaf;
}

/* Get the offsets of a block in an embedded leaf; none if ref is 0. */
static inline uint64_t
embedded_slot(uint32_t ref, uint8_t key)
{
	uint8_t		offsets[2];
	int			n = 0;

	if ((ref & 0x7F) != 0 && (uint8_t) (ref >> 7) == key)
		offsets[n++] = ref & 0x7F;
	if (((ref >> 15) & 0x7F) != 0 && (uint8_t) (ref >> 22) == key)
		offsets[n++] = (ref >> 15) & 0x7F;
	return n == 0 ? 0 : ts_slot_list(offsets, n);
}

static inline uint64_t
leaf_slot(const uint8_t *leaf, uint8_t key)
{
	int			form = leaf[0];
	const uint8_t *slots;
	int			i;

	if (TS_LIKELY(form == (TS_WIDE | TS_DIRECT)))
		return key <= leaf[1] ? ts_get64(leaf + TS_HEADER + 8 * key) : 0;
	i = ts_find(leaf, key);
	if (i < 0)
		return 0;
	slots = leaf + ts_slots_at(TS_INDEX(form), ts_count(leaf));
	return ts_get64(slots + (form >= TS_SAME ? 0 : 8 * i));
}

/*
 * Look up in a leaf that is pairs, embedded, or missing.  This is a separate
 * function, so that the path below saves no registers for it.
 */
static __attribute__((noinline))
bool
look_in_pairs(TidSetLookup *lookup, uint64_t key, uint16_t offset)
{
	const uint8_t *leaf = lookup->leaf;
	uint64_t	slot;

	if (leaf == NULL)
		slot = embedded_slot(lookup->embedded, (uint8_t) key);
	else if (!ts_pairs_slot(leaf, (uint8_t) key, &slot))
	{
		lookup->key = TS_NO_KEY;
		return ts_pairs_member(leaf, (uint8_t) key, offset);
	}
	lookup->key = key;
	lookup->slot = slot;
	return ts_slot_member(slot, leaf, offset);
}

/* Look up in the leaf that is being filled, which has its own far bytes. */
static __attribute__((noinline))
bool
look_in_open(TidSetLookup *lookup, uint64_t key, uint16_t offset)
{
	const TsOpen *open = lookup->set->open;
	uint8_t		low = (uint8_t) key;

	lookup->prefix = TS_NO_PREFIX;
	lookup->leaf = open->far;
	lookup->key = key;
	lookup->slot = (open->present[low >> 6] >> (low & 63)) & 1 ?
		open->slots[low] : 0;
	return ts_slot_member(lookup->slot, lookup->leaf, offset);
}

/*
 * Look up in a block other than the previous one.  With random TIDs this waits
 * for memory; the fewer instructions it has, the sooner the processor begins
 * with the next lookup.
 */
static __attribute__((noinline))
bool
look_elsewhere(TidSetLookup *lookup, uint64_t key, uint16_t offset)
{
	const TsOpen *open = lookup->set->open;
	const uint8_t *leaf;
	uint64_t	slot;

	if (TS_UNLIKELY(open != NULL) && open->prefix == key >> 8)
		return look_in_open(lookup, key, offset);
	leaf = lookup->prefix == key >> 8 ? lookup->leaf :
		find_leaf(lookup, key >> 8);
	if (leaf == NULL || leaf[0] < TS_INNER)
		return look_in_pairs(lookup, key, offset);
	slot = leaf_slot(leaf, (uint8_t) key);
	lookup->key = key;
	lookup->slot = slot;
	return ts_slot_member(slot, leaf, offset);
}

void
tidset_lookup_begin(const TidSet *set, TidSetLookup *lookup)
{
	lookup->set = set;
	lookup->key = TS_NO_KEY;
	lookup->prefix = TS_NO_PREFIX;
}

bool
ts_lookup(TidSetLookup *lookup, uint64_t key, uint16_t offset)
{
	if (lookup->key == key)
		return ts_slot_member(lookup->slot, lookup->leaf, offset);
	return look_elsewhere(lookup, key, offset);
}

bool
tidset_lookup(TidSetLookup *lookup, uint32_t block, uint16_t offset)
{
	return ts_lookup(lookup, block, offset);
}

bool
ts_member(const TidSet *set, uint64_t key, uint16_t offset)
{
	TidSetLookup lookup;

	tidset_lookup_begin(set, &lookup);
	return look_elsewhere(&lookup, key, offset);
}

bool
tidset_member(const TidSet *set, uint32_t block, uint16_t offset)
{
	return ts_member(set, block, offset);
}

int
tidset_member_batch(const TidSet *set, const TidSetTid *tids, int n,
					bool *found)
{
	TidSetLookup lookup;
	int			nfound = 0;

	tidset_lookup_begin(set, &lookup);
	for (int i = 0; i < n; i++)
	{
		uint32_t	block = (uint32_t) tids[i].block_hi << 16 |
			tids[i].block_lo;

		found[i] = ts_lookup(&lookup, block, tids[i].offset);
		nfound += found[i];
	}
	return nfound;
}

/* ---- iteration ---- */

static void
iter_leaf(TidSetIter *iter)
{
	uint32_t	ref = ts_next_leaf(iter->set, &iter->prefix);

	iter->next = 0;
	if (ref == 0)
		iter->leaf = NULL;
	else if (ref & TS_EMBEDDED)
		iter->leaf = ts_unfold(ref, iter->scratch);
	else
		iter->leaf = ts_address(iter->set, ref);
}

void
tidset_iter_begin(TidSet *set, TidSetIter *iter)
{
	_Static_assert(sizeof(iter->scratch) >= TS_SCRATCH, "room for an embedded leaf");
	tidset_seal(set);
	memset(iter, 0, sizeof(*iter));
	iter->set = set;
	iter_leaf(iter);
}

int
ts_iter_next(TidSetIter *iter, uint64_t *key, uint16_t *offsets, int room)
{
	while (iter->leaf != NULL)
	{
		uint8_t		low;
		int			n = ts_leaf_next(iter->leaf, &iter->next, &low, offsets,
									 room);

		if (n != 0)
		{
			*key = iter->prefix << 8 | low;
			return n;
		}
		iter->prefix++;
		iter_leaf(iter);
	}
	return 0;
}

int
tidset_iter_next(TidSetIter *iter, uint32_t *block, uint16_t *offsets, int room)
{
	uint64_t	key;
	int			n = ts_iter_next(iter, &key, offsets, room);

	if (n != 0)
		*block = (uint32_t) key;
	return n;
}

/* ---- what there is ---- */

uint64_t
tidset_count(const TidSet *set)
{
	return set->ctl->ntids;
}

uint64_t
tidset_blocks(const TidSet *set)
{
	return set->ctl->nblocks;
}

uint64_t
tidset_memory(const TidSet *set)
{
	return set->ctl->memory;
}

uint64_t
tidset_memory_peak(const TidSet *set)
{
	return set->ctl->peak;
}

uint64_t
tidset_limit(const TidSet *set)
{
	return set->ctl->limit;
}
