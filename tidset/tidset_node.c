/*-------------------------------------------------------------------------
 * tidset_node.c
 *	  Indexes of nodes, and the tree of inner nodes above the leaves.
 *
 * A node that grows becomes half as large again as it needs to be: with less, its
 * former places would take more memory than itself.  Its layout follows from its number of children alone.  It is never
 * changed piecemeal but written anew, in place if it fits.
 *-------------------------------------------------------------------------
 */
#include "tidset_int.h"

/* ---- indexes ---- */

int
ts_index_for(int n)
{
	if (n <= TS_MAX_KEYS)
		return TS_KEYS;
	return n < TS_DIRECT_MIN ? TS_RANK : TS_DIRECT;
}

/* Size of an index for n keys with its slots. */
uint32_t
ts_index_size(int n, int slot_size)
{
	int			index = ts_index_for(n);
	uint32_t	nslots = index == TS_DIRECT ? 256 : (uint32_t) n;

	return (ts_slots_at(index, n) + nslots * (uint32_t) slot_size + 7) & ~7u;
}

/*
 * Write form, count and index for the n keys that are present; returns where slots
 * go.  The size is the caller's to set.
 */
uint8_t *
ts_index_write(uint8_t *node, int form, const uint64_t *present, int n)
{
	uint8_t    *to = node + TS_HEADER;

	node[0] = (uint8_t) form;
	node[1] = (uint8_t) (n - 1);
	if (TS_INDEX(form) == TS_KEYS)
	{
		memset(to, 0, ((uint32_t) n + 3) & ~3u);
		for (int key = ts_next_present(present, 0); key < 256; key = ts_next_present(present, key + 1))
			*to++ = (uint8_t) key;
	}
	else if (TS_INDEX(form) == TS_RANK)
	{
		int			before = 0;

		for (int i = 0; i < 4; i++)
		{
			/* 256 never comes before a word that has bits */
			to[i] = (uint8_t) before;
			before += tidset_popcount(present[i]);
		}
		memcpy(to + 4, present, 32);
	}
	return node + ts_slots_at(TS_INDEX(form), n);
}

static bool
direct_slot_used(const uint8_t *node, int key)
{
	if (TS_TYPE(node[0]) == TS_INNER)
		return ts_get32(node + TS_HEADER + 4 * key) != 0;
	return ts_get64(node + TS_HEADER + 8 * key) != 0;
}

/* The first key from this one on that the index has; 256 if none. */
int
ts_index_next(const uint8_t *node, int key)
{
	const uint8_t *keys = node + TS_HEADER;
	uint64_t	present[4];

	switch (TS_INDEX(node[0]))
	{
		case TS_KEYS:
			for (int i = 0; i < ts_count(node); i++)
			{
				if (keys[i] >= key)
					return keys[i];
			}
			return 256;
		case TS_RANK:
			memcpy(present, keys + 4, 32);
			return ts_next_present(present, key);
		default:
			while (key < 256 && !direct_slot_used(node, key))
				key++;
			return key;
	}
}

/* ---- inner nodes ---- */

static uint32_t
node_bytes(const uint8_t *node)
{
	return 8u * ts_get16(node + 2);
}

static void
write_inner(uint8_t *node, const uint64_t *present, int n, const uint32_t *children)
{
	int			index = ts_index_for(n);
	uint8_t    *slots = ts_index_write(node, TS_INNER | index, present, n);

	if (index == TS_DIRECT)
	{
		memset(slots, 0, 256 * sizeof(uint32_t));
		for (int key = ts_next_present(present, 0); key < 256; key = ts_next_present(present, key + 1))
			memcpy(slots + 4 * key, &children[key], sizeof(uint32_t));
		return;
	}
	for (int key = ts_next_present(present, 0); key < 256; key = ts_next_present(present, key + 1))
	{
		memcpy(slots, &children[key], sizeof(uint32_t));
		slots += sizeof(uint32_t);
	}
}

static void
set_node_bytes(uint8_t *node, uint32_t bytes)
{
	uint16_t	units = (uint16_t) (bytes / 8);

	memcpy(node + 2, &units, sizeof(units));
}

/* A node with one child, at a place that has none. */
static bool
make_inner(TidSet *set, uint32_t *place, uint8_t key, uint32_t child)
{
	uint32_t	size = ts_index_size(1, sizeof(uint32_t));
	uint64_t	present[4] = {0};
	uint32_t	children[256];
	uint32_t	ref;

	if (!ts_reserve(set, size))
		return false;
	ref = ts_alloc(set, size);
	present[key >> 6] = UINT64_C(1) << (key & 63);
	children[key] = child;
	write_inner(ts_address(set, ref), present, 1, children);
	set_node_bytes(ts_address(set, ref), size);
	*place = ref;
	return true;
}

/* Spread a node that is not direct; returns the number of children. */
static int
read_inner(const uint8_t *node, uint64_t *present, uint32_t *children)
{
	const uint8_t *slots = node + ts_slots_at(TS_INDEX(node[0]), ts_count(node));

	memset(present, 0, 4 * sizeof(uint64_t));
	for (int key = ts_index_next(node, 0); key < 256; key = ts_index_next(node, key + 1))
	{
		present[key >> 6] |= UINT64_C(1) << (key & 63);
		children[key] = ts_get32(slots);
		slots += sizeof(uint32_t);
	}
	return ts_count(node);
}

/* Give the node at this place an empty child; it may move. */
static bool
add_child(TidSet *set, uint32_t *place, uint8_t key)
{
	uint8_t    *node = ts_address(set, *place);
	uint32_t	had = node_bytes(node);
	uint64_t	present[4];
	uint32_t	children[256];
	int			n = read_inner(node, present, children) + 1;
	uint32_t	need = ts_index_size(n, sizeof(uint32_t));
	uint32_t	ref = *place;

	present[key >> 6] |= UINT64_C(1) << (key & 63);
	children[key] = 0;
	if (need > had)
	{
		if (ts_index_for(n) != TS_DIRECT)
			need = (need + need / 2 + 7) & ~7u;
		if (!ts_reserve(set, need))
			return false;
		ref = ts_alloc(set, need);
		ts_release(set, *place, had);
		had = need;
	}
	node = ts_address(set, ref);
	write_inner(node, present, n, children);
	set_node_bytes(node, had);
	*place = ref;
	return true;
}

/* Where the node has its reference for the key; NULL if nowhere. */
static uint32_t *
child_place(uint8_t *node, uint8_t key)
{
	int			i = ts_find(node, key);

	if (i < 0)
		return NULL;
	return (uint32_t *) (node + ts_slots_at(TS_INDEX(node[0]), ts_count(node))) + i;
}

static bool
grow_height(TidSet *set, uint64_t prefix)
{
	while (prefix >> (8 * set->height) != 0)
	{
		if (set->root != 0 && !make_inner(set, &set->root, 0, set->root))
			return false;
		set->height++;
	}
	return true;
}

/*
 * Where the reference to the prefix's leaf is, or is to be put: the path to it is
 * made.  Remains valid until the next call.  NULL if there is no memory;
 * an empty part of a path does no harm.
 */
uint32_t *
ts_place(TidSet *set, uint64_t prefix)
{
	uint32_t   *place = &set->root;

	if (!grow_height(set, prefix))
		return NULL;
	for (int level = (int) set->height - 1; level >= 0; level--)
	{
		uint8_t		key = (uint8_t) (prefix >> (8 * level));
		uint32_t   *child = NULL;

		if (*place == 0)
		{
			if (!make_inner(set, place, key, 0))
				return NULL;
		}
		else
			child = child_place(ts_address(set, *place), key);
		if (child == NULL)
		{
			if (child_place(ts_address(set, *place), key) == NULL && !add_child(set, place, key))
				return NULL;
			child = child_place(ts_address(set, *place), key);
		}
		place = child;
	}
	return place;
}

/* The first leaf below a node whose prefix is at least *prefix, where "bounded". */
static uint32_t
next_below(const TidSet *set, uint32_t ref, int level, bool bounded, uint64_t *prefix)
{
	const uint8_t *node;
	int			from;

	if (ref == 0 || level == 0)
		return ref;
	level--;
	node = ts_address(set, ref);
	from = bounded ? (uint8_t) (*prefix >> (8 * level)) : 0;
	for (int key = ts_index_next(node, from); key < 256; key = ts_index_next(node, key + 1))
	{
		uint64_t	low = (UINT64_C(1) << (8 * level)) - 1;
		bool		on_path = bounded && key == from;
		uint32_t	leaf;

		if (!on_path)
			*prefix &= ~low;
		*prefix &= ~(UINT64_C(255) << (8 * level));
		*prefix |= (uint64_t) key << (8 * level);
		leaf = next_below(set, ts_child(node, (uint8_t) key), level, on_path, prefix);
		if (leaf != 0)
			return leaf;
	}
	return 0;
}

/* The first leaf with at least this prefix, which becomes the leaf's; or 0. */
uint32_t
ts_next_leaf(const TidSet *set, uint64_t *prefix)
{
	if (*prefix >> (8 * set->height) != 0)
		return 0;
	return next_below(set, set->root, (int) set->height, true, prefix);
}
