/*-------------------------------------------------------------------------
 * tidset_leaf.c
 *	  Leaves: the offsets of up to 256 blocks that share a prefix.
 *
 * A leaf is never changed in parts.  The leaf to which blocks are added is
 * "open": it has a slot for each of its blocks.  When another leaf is needed,
 * or the set is sealed, it is written ("flushed") in its smallest form:
 *
 *	embedded	up to 2 TIDs with offsets < 128, in the reference itself
 *	PAIRS		up to 32 TIDs as (block, offset), 2 bytes each
 *	GROUPS		the same for up to 1024, with a directory of 16 groups
 *	SAME		all blocks have the same offsets: one slot
 *	WIDE		a slot of 8 bytes for each block
 *-------------------------------------------------------------------------
 */
#include "tidset_int.h"

#define EMBEDDED_MAX	127
#define FAR_MIN			256

/* ---- sizes ---- */

static uint32_t
pairs_size(uint32_t ntids)
{
	if (ntids <= TS_MAX_PAIRS)
		return (2 + 2 * ntids + TS_UNIT - 1) & ~(TS_UNIT - 1u);
	return (TS_GROUP_KEYS + 2 * ntids + 7) & ~7u;
}

static uint32_t
wide_size(uint32_t nkeys, int last, uint32_t far)
{
	uint32_t	size;

	(void) ts_index_for((int) nkeys, last, sizeof(uint64_t), &size);
	return (size + far + 7) & ~7u;
}

static bool
pairs_possible(uint32_t ntids, bool large)
{
	return ntids <= TS_MAX_GROUPED && !large;
}

/*
 * The maximum size of a leaf; "far" is the number of bytes that slots point
 * to.
 */
uint32_t
ts_leaf_size(uint32_t nkeys, int last, uint32_t ntids, bool large, uint32_t far)
{
	uint32_t	wide = wide_size(nkeys, last, far);

	if (pairs_possible(ntids, large) && pairs_size(ntids) < wide)
		return pairs_size(ntids);
	return wide;
}

/*
 * The size to reserve.  A leaf that has been written before will probably grow
 * again, so it gets some slack.
 */
uint32_t
ts_open_room(const TsOpen *open, uint32_t size)
{
	return open->room > 0 ? (size + size / 8 + 7) & ~7u : size;
}

/* The size in bytes of a reference's leaf. */
static uint32_t
leaf_bytes(const TidSet *set, uint32_t ref)
{
	if (ref == 0 || (ref & TS_EMBEDDED))
		return 0;
	return TS_UNIT * ts_node_units(ts_address(set, ref));
}

/* ---- embedded leaves ---- */

static uint32_t
fold(const uint8_t *keys, const uint8_t *offsets, uint32_t n)
{
	uint32_t	ref = TS_EMBEDDED | offsets[0] | (uint32_t) keys[0] << 7;

	if (n == 2)
		ref |= (uint32_t) offsets[1] << 15 | (uint32_t) keys[1] << 22;
	return ref;
}

/* Convert an embedded leaf to pairs. */
const uint8_t *
ts_unfold(uint32_t ref, uint8_t *scratch)
{
	int			n = (ref >> 15) & EMBEDDED_MAX ? 2 : 1;

	scratch[0] = TS_PAIRS;
	scratch[1] = (uint8_t) (n - 1);
	scratch[2] = (uint8_t) (ref >> 7);
	scratch[2 + n] = ref & EMBEDDED_MAX;
	if (n == 2)
	{
		scratch[3] = (uint8_t) (ref >> 22);
		scratch[5] = (ref >> 15) & EMBEDDED_MAX;
	}
	return scratch;
}

/* ---- pairs ---- */

static uint32_t
group_start(const uint8_t *leaf, int group)
{
	return ts_get16(leaf + TS_HEADER + 2 * group);
}

/* Get the keys and offsets of a leaf of pairs; returns their number. */
static inline uint32_t
get_pairs(const uint8_t *leaf, const uint8_t **keys, const uint8_t **offsets)
{
	uint32_t	n;

	if (leaf[0] == TS_PAIRS)
	{
		n = (uint32_t) ts_count(leaf);
		*keys = leaf + 2;
	}
	else
	{
		n = group_start(leaf, TS_NGROUPS);
		*keys = leaf + TS_GROUP_KEYS;
	}
	*offsets = *keys + n;
	return n;
}

/*
 * Get the pairs among which the key's are.  Returns their number, and sets the
 * positions of their keys and offsets.
 */
static inline int
pairs_for(const uint8_t *leaf, uint8_t key, const uint8_t **keys,
		  const uint8_t **offsets)
{
	uint32_t	from;
	uint32_t	to;

	if (leaf[0] == TS_PAIRS)
	{
		*keys = leaf + 2;
		*offsets = *keys + ts_count(leaf);
		return ts_count(leaf);
	}
	from = group_start(leaf, key / 16);
	to = group_start(leaf, key / 16 + 1);
	*keys = leaf + TS_GROUP_KEYS + from;
	*offsets = *keys + group_start(leaf, TS_NGROUPS);
	return (int) (to - from);
}

/* Compare the first n bytes, at most 32.  Returns a bit for each equal one. */
static inline uint32_t
match32(const uint8_t *bytes, int n, uint8_t byte)
{
	uint32_t	mask = tidset_match16(bytes, byte) |
		tidset_match16(bytes + 16, byte) << 16;

	return n < 32 ? mask & ((1u << n) - 1) : mask;
}

/*
 * Make the slot of a block with any number of offsets.  Returns false if only a
 * far slot could have them.
 */
static bool
slot_of_pairs(const uint8_t *keys, const uint8_t *offsets, int left,
			  uint8_t key, uint64_t *slot)
{
	uint8_t		first[TS_LIST_MAX];
	uint64_t	bitmap = 0;
	int			n = 0;
	bool		small = true;

	for (; left > 0; left -= 32, keys += 32, offsets += 32)
	{
		for (uint32_t mask = match32(keys, left, key); mask != 0;
			 mask &= mask - 1)
		{
			uint8_t		offset = offsets[__builtin_ctz(mask)];

			if (n < TS_LIST_MAX)
				first[n] = offset;
			n++;
			small &= offset <= TS_SMALL_MAX;
			bitmap |= UINT64_C(2) << (offset & 63);
		}
	}
	*slot = small ? bitmap :
		ts_slot_list(first, n <= TS_LIST_MAX ? n : TS_LIST_MAX);
	return small || n <= TS_LIST_MAX;
}

/*
 * Get the offsets of the key's block as a slot that is not far; 0 if there are
 * none.  Returns false if only a far slot could have them.
 */
bool
ts_pairs_slot(const uint8_t *leaf, uint8_t key, uint64_t *slot)
{
	const uint8_t *keys;
	const uint8_t *offsets;
	int			n = pairs_for(leaf, key, &keys, &offsets);
	uint32_t	mask;

	if (n > 32)
		return slot_of_pairs(keys, offsets, n, key, slot);
	mask = match32(keys, n, key);
	*slot = 0;
	if (mask == 0)
		return true;
	if ((mask & (mask - 1)) != 0)
		return slot_of_pairs(keys, offsets, n, key, slot);
	offsets += __builtin_ctz(mask);
	*slot = *offsets <= TS_SMALL_MAX ? UINT64_C(2) << *offsets :
		ts_slot_list(offsets, 1);
	return true;
}

bool
ts_pairs_member(const uint8_t *leaf, uint8_t key, uint16_t offset)
{
	const uint8_t *keys;
	const uint8_t *offsets;
	int			left = pairs_for(leaf, key, &keys, &offsets);

	if (offset > UINT8_MAX)
		return false;
	for (; left > 0; left -= 32, keys += 32, offsets += 32)
	{
		if (match32(keys, left, key) & match32(offsets, left, (uint8_t) offset))
			return true;
	}
	return false;
}

/* List all TIDs of the open leaf as pairs. */
static void
list_pairs(const TsOpen *open, uint8_t *keys, uint8_t *offsets)
{
	uint16_t	some[TS_MAX_GROUPED];

	for (int key = ts_next_present(open->present, 0); key < 256;
		 key = ts_next_present(open->present, key + 1))
	{
		int			n = ts_slot_offsets(open->slots[key], open->far, some);

		for (int i = 0; i < n; i++)
		{
			*keys++ = (uint8_t) key;
			*offsets++ = (uint8_t) some[i];
		}
	}
}

static void
write_pairs(uint8_t *leaf, const TsOpen *open)
{
	TS_ASSERT(open->ntids <= TS_MAX_PAIRS && !open->large);
	leaf[0] = TS_PAIRS;
	leaf[1] = (uint8_t) (open->ntids - 1);
	list_pairs(open, leaf + 2, leaf + 2 + open->ntids);
}

static void
write_groups(uint8_t *leaf, const TsOpen *open)
{
	uint8_t    *keys = leaf + TS_GROUP_KEYS;
	uint16_t	at = 0;

	TS_ASSERT(open->ntids <= TS_MAX_GROUPED && !open->large);
	leaf[0] = TS_GROUPS;
	leaf[1] = 0;
	list_pairs(open, keys, keys + open->ntids);
	for (int group = 0; group <= TS_NGROUPS; group++)
	{
		while (at < open->ntids && keys[at] / 16 < group)
			at++;
		memcpy(leaf + TS_HEADER + 2 * group, &at, sizeof(at));
	}
	TS_ASSERT(at == open->ntids);
}

/* ---- slots ---- */

static bool
all_same(const TsOpen *open)
{
	int			first = ts_next_present(open->present, 0);
	uint64_t	slot = open->slots[first];

	if (TS_SLOT_TAG(slot) == TS_SLOT_FAR)
		return false;
	for (int key = first; key < 256;
		 key = ts_next_present(open->present, key + 1))
	{
		if (open->slots[key] != slot)
			return false;
	}
	return true;
}

static int
same_index(uint32_t nkeys)
{
	return nkeys <= TS_MAX_KEYS ? TS_KEYS : TS_RANK;
}

static uint32_t
same_size(uint32_t nkeys)
{
	uint32_t	slots_at = ts_slots_at(same_index(nkeys), (int) nkeys);

	return (slots_at + sizeof(uint64_t) + 7) & ~7u;
}

static void
write_same(uint8_t *leaf, const TsOpen *open)
{
	uint8_t    *slot = ts_index_write(leaf, TS_SAME | same_index(open->nkeys),
									  open->present, (int) open->nkeys);

	TS_ASSERT(all_same(open));
	memcpy(slot, &open->slots[ts_next_present(open->present, 0)],
		   sizeof(uint64_t));
}

static void
write_wide(uint8_t *leaf, const TsOpen *open)
{
	int			last = ts_last_present(open->present);
	uint32_t	size;
	int			index = ts_index_for((int) open->nkeys, last, sizeof(uint64_t),
									 &size);
	int			nslots = index == TS_DIRECT ? last + 1 : (int) open->nkeys;
	uint8_t    *slots = ts_index_write(leaf, TS_WIDE | index, open->present,
									   nslots);
	uint8_t    *far = slots + (uint32_t) nslots * sizeof(uint64_t);
	int			i = 0;

	if (index == TS_DIRECT)
		memset(slots, 0, (uint32_t) nslots * sizeof(uint64_t));
	for (int key = ts_next_present(open->present, 0); key < 256;
		 key = ts_next_present(open->present, key + 1))
	{
		uint64_t	slot = open->slots[key];
		uint32_t	len = ts_slot_far_len(slot);

		if (len > 0)
		{
			memcpy(far, open->far + ts_slot_far_pos(slot), len);
			slot = ts_slot_moved(slot, (uint32_t) (far - leaf));
			far += len;
		}
		memcpy(slots + sizeof(uint64_t) * (index == TS_DIRECT ? key : i++),
			   &slot, sizeof(slot));
	}
	TS_ASSERT(index == TS_DIRECT || i == nslots);
	TS_ASSERT(far == slots + (uint32_t) nslots * sizeof(uint64_t) +
			  open->far_live);
}

/* ---- flushing the open leaf ---- */

static bool
try_embed(TsOpen *open)
{
	uint8_t		keys[2];
	uint8_t		offsets[2];

	if (open->ntids > 2 || open->large)
		return false;
	list_pairs(open, keys, offsets);
	if (offsets[0] > EMBEDDED_MAX ||
		(open->ntids == 2 && offsets[1] > EMBEDDED_MAX))
		return false;
	*open->place = fold(keys, offsets, open->ntids);
	return true;
}

/* Choose the smallest form; sets its size. */
static int
choose_form(const TsOpen *open, uint32_t *size)
{
	int			form = TS_WIDE;

	*size = wide_size(open->nkeys, ts_last_present(open->present),
					  open->far_live);
	if (pairs_possible(open->ntids, open->large) &&
		pairs_size(open->ntids) < *size)
	{
		*size = pairs_size(open->ntids);
		form = open->ntids <= TS_MAX_PAIRS ? TS_PAIRS : TS_GROUPS;
	}
	if (same_size(open->nkeys) < *size && all_same(open))
	{
		*size = same_size(open->nkeys);
		form = TS_SAME;
	}
	return form;
}

/*
 * Get memory for a leaf of this form and size.  Its old place is used again if
 * it is large enough, and at most twice as large; for pairs, whose size follows
 * from their count, it must have the same size.  Sets size to the actual size.
 */
static uint32_t
leaf_memory(TidSet *set, int form, uint32_t *size)
{
	TsOpen	   *open = set->open;
	uint32_t	old = *open->place;
	uint32_t	ref;

	if (form == TS_PAIRS ? open->room == *size :
		(open->room >= *size && open->room / 2 <= *size && open->room % 8 == 0))
	{
		*size = open->room;
		return old;
	}
	if (form != TS_PAIRS)
		*size = ts_open_room(open, *size);
	ref = ts_alloc(set, *size);
	if (open->room > 0)
		ts_release(set, old, open->room);
	return ref;
}

static void
write_leaf(uint8_t *leaf, int form, uint32_t size, const TsOpen *open)
{
	uint16_t	units = (uint16_t) (size / 8);

	if (form == TS_PAIRS)
	{
		write_pairs(leaf, open);
		return;
	}
	if (form == TS_GROUPS)
		write_groups(leaf, open);
	else if (form == TS_SAME)
		write_same(leaf, open);
	else
		write_wide(leaf, open);
	memcpy(leaf + 2, &units, sizeof(units));
}

/* Write the open leaf to its place; the memory was reserved. */
void
ts_open_flush(TidSet *set)
{
	TsOpen	   *open = set->open;
	uint32_t	size;
	int			form;

	if (open == NULL || !open->dirty)
		return;
	open->dirty = false;
	if (try_embed(open))
	{
		/*
		 * TIDs are only added, so a leaf that had memory has more TIDs than
		 * fit here
		 */
		TS_ASSERT(open->room == 0);
		return;
	}
	form = choose_form(open, &size);
	*open->place = leaf_memory(set, form, &size);
	write_leaf(ts_address(set, *open->place), form, size, open);
	open->room = size;
}

/* ---- opening a leaf ---- */

/*
 * Make room for more bytes that slots point to.  Those that are in use move to
 * new memory.
 */
bool
ts_open_far(TidSet *set, uint32_t more)
{
	TsOpen	   *open = set->open;
	uint32_t	size = FAR_MIN;
	uint32_t	used = 0;
	uint64_t	handle;
	uint8_t    *far;

	if (open->far_size - open->far_used >= more)
		return true;
	while (size < 2 * (open->far_live + more))
		size *= 2;
	handle = ts_take(set, &set->local, size + TIDSET_PAD);
	if (handle == 0)
		return false;
	far = set->local.address(set->local.arg, handle);
	for (int key = ts_next_present(open->present, 0); key < 256;
		 key = ts_next_present(open->present, key + 1))
	{
		uint64_t	slot = open->slots[key];
		uint32_t	len = ts_slot_far_len(slot);

		if (len == 0)
			continue;
		memcpy(far + used, open->far + ts_slot_far_pos(slot), len);
		open->slots[key] = ts_slot_moved(slot, used);
		used += len;
	}
	if (open->far_size > 0)
		ts_give(set, &set->local, open->far_handle,
				open->far_size + TIDSET_PAD);
	open->far = far;
	open->far_handle = handle;
	open->far_size = size;
	open->far_used = used;
	return true;
}

/*
 * Set the block's slot and, if the slot is far, its bytes.  ts_open_far must
 * have made room for these.
 */
void
ts_open_put(TsOpen *open, uint8_t key, uint64_t slot, const uint8_t *far,
			uint32_t len)
{
	uint64_t	bit = UINT64_C(1) << (key & 63);

	if (open->present[key >> 6] & bit)
	{
		open->ntids -= (uint32_t) ts_slot_count(open->slots[key]);
		open->far_live -= ts_slot_far_len(open->slots[key]);
	}
	else
	{
		open->present[key >> 6] |= bit;
		open->nkeys++;
	}
	if (len > 0)
	{
		memcpy(open->far + open->far_used, far, len);
		slot = ts_slot_moved(slot, open->far_used);
		open->far_used += len;
		open->far_live += len;
	}
	open->slots[key] = slot;
	open->ntids += (uint32_t) ts_slot_count(slot);
	if (ts_slot_max(slot, open->far) > UINT8_MAX)
		open->large = true;
}

static bool
load_pairs(TidSet *set, const uint8_t *leaf)
{
	uint16_t	offsets[256];
	uint8_t		far[TS_FAR_MAX];
	uint8_t		key;
	uint32_t	len;
	int			next = 0;
	int			n;

	while ((n = ts_leaf_next(leaf, &next, &key, offsets, TIDSET_MAX_OFFSET)) >
		   0)
	{
		TsBits		bits;
		uint64_t	slot;

		ts_bits_clear(&bits);
		for (int i = 0; i < n; i++)
			ts_bits_add(&bits, offsets[i]);
		slot = ts_slot_encode(&bits, far, &len);
		if (len > 0 && !ts_open_far(set, len))
			return false;
		ts_open_put(set->open, key, slot, far, len);
	}
	return true;
}

static uint64_t
slot_at(const uint8_t *leaf, int i)
{
	const uint8_t *slots = leaf +
		ts_slots_at(TS_INDEX(leaf[0]), ts_count(leaf));

	return ts_get64(slots + (TS_TYPE(leaf[0]) == TS_SAME ? 0 : 8 * i));
}

static bool
load_slots(TidSet *set, const uint8_t *leaf)
{
	for (int key = ts_index_next(leaf, 0); key < 256;
		 key = ts_index_next(leaf, key + 1))
	{
		uint64_t	slot = slot_at(leaf, ts_find(leaf, (uint8_t) key));
		uint32_t	len = ts_slot_far_len(slot);

		if (len > 0 && !ts_open_far(set, len))
			return false;
		ts_open_put(set->open, (uint8_t) key, slot,
					len > 0 ? leaf + ts_slot_far_pos(slot) : NULL, len);
	}
	return true;
}

static bool
ensure_open(TidSet *set)
{
	if (set->open == NULL)
	{
		set->open_handle = ts_take(set, &set->local, sizeof(TsOpen));
		if (set->open_handle == 0)
			return false;
		set->open = set->local.address(set->local.arg, set->open_handle);
		set->open->far_size = 0;
		set->open->far_used = 0;
		set->open->far = NULL;
	}
	return true;
}

/*
 * Open the prefix's leaf, empty or with its contents.  Returns false if there
 * is no memory.
 */
bool
ts_open_load(TidSet *set, uint64_t prefix)
{
	uint8_t		scratch[TS_SCRATCH];
	TsOpen	   *open;
	const uint8_t *leaf;
	uint32_t	ref;

	ts_open_flush(set);
	if (!ensure_open(set))
		return false;
	open = set->open;
	open->prefix = TS_NO_PREFIX;
	open->dirty = open->large = false;
	open->nkeys = open->ntids = open->far_live = open->far_used = 0;
	memset(open->present, 0, sizeof(open->present));
	open->place = ts_place(set, prefix);
	if (open->place == NULL)
		return false;
	ref = *open->place;
	open->room = leaf_bytes(set, ref);
	if (ref != 0)
	{
		memset(scratch, 0, sizeof(scratch));
		leaf = ref & TS_EMBEDDED ? ts_unfold(ref, scratch) :
			ts_address(set, ref);
		if (!(leaf[0] < TS_INNER ? load_pairs(set, leaf) :
			  load_slots(set, leaf)))
			return false;
	}
	open->prefix = prefix;
	return true;
}

/* ---- iteration ---- */

static int
next_pairs(const uint8_t *leaf, int *next, uint8_t *key, uint16_t *offsets,
		   int room)
{
	const uint8_t *keys;
	const uint8_t *offs;
	int			npairs = (int) get_pairs(leaf, &keys, &offs);
	int			n = 0;

	if (*next >= npairs)
		return 0;
	*key = keys[*next];
	while (*next + n < npairs && keys[*next + n] == *key)
	{
		if (n == room)
			return -1;
		offsets[n] = offs[*next + n];
		n++;
	}
	*next += n;
	return n;
}

/*
 * Get the leaf's next block, and its offsets.  Returns their number, 0 at the
 * end, or -1 if room is too small.
 */
int
ts_leaf_next(const uint8_t *leaf, int *next, uint8_t *key, uint16_t *offsets,
			 int room)
{
	uint64_t	slot;
	int			found;

	if (leaf[0] < TS_INNER)
		return next_pairs(leaf, next, key, offsets, room);
	found = ts_index_next(leaf, *next);
	if (found == 256)
		return 0;
	*key = (uint8_t) found;
	slot = slot_at(leaf, ts_find(leaf, *key));
	if (ts_slot_count(slot) > room)
		return -1;
	*next = found + 1;
	return ts_slot_offsets(slot, leaf, offsets);
}
