/*-------------------------------------------------------------------------
 * tidset_node.c
 *	  Indexes of nodes, and the tree of inner nodes above the leaves.
 *
 * A node that grows becomes half as large again as it needs to be; with less
 * slack, its former places would take more memory than itself.  Its layout
 * follows from its number of children alone.  It is never changed piecemeal
 * but rewritten, in place if it fits.
 *-------------------------------------------------------------------------
 */
#include "tidset_int.h"

/* direct, with 256 children; no other needs more */
#define LARGEST_INNER	((TS_HEADER + 256 * 4 + 7) & ~7u)

/* ---- indexes ---- */

/* The size of an index with n slots. */
uint32_t
ts_index_size(int index, int n, int slot_size)
{
	return (ts_slots_at(index, n) + (uint32_t) n * (uint32_t) slot_size + 7) &
		~7u;
}

/*
 * Choose the best index for n keys of which this is the last; sets its size
 * with slots.  Direct is fastest, and smallest if keys begin near 0 and have
 * few gaps, as block numbers do.
 */
int
ts_index_for(int n, int last, int slot_size, uint32_t *size)
{
	int			index = n <= TS_MAX_KEYS ? TS_KEYS : TS_RANK;
	uint32_t	direct = ts_index_size(TS_DIRECT, last + 1, slot_size);

	*size = ts_index_size(index, n, slot_size);
	if (direct > *size + *size / 8)
		return index;
	*size = direct;
	return TS_DIRECT;
}

/*
 * Write form, count and index for the n keys that are present.  Returns the
 * address of the slots.  The caller sets the size.
 */
uint8_t *
ts_index_write(uint8_t *node, int form, const uint64_t *present, int n)
{
	uint8_t    *to = node + TS_HEADER;

	TS_ASSERT(n >= 1 && n <= 256);
	node[0] = (uint8_t) form;
	node[1] = (uint8_t) (n - 1);
	if (TS_INDEX(form) == TS_KEYS)
	{
		memset(to, 0, ((uint32_t) n + 3) & ~3u);
		for (int key = ts_next_present(present, 0); key < 256;
			 key = ts_next_present(present, key + 1))
			*to++ = (uint8_t) key;
		TS_ASSERT(to == node + TS_HEADER + n);
	}
	else if (TS_INDEX(form) == TS_RANK)
	{
		int			before = 0;

		for (int i = 0; i < 4; i++)
		{
			/* 256 never precedes a word that has bits */
			to[i] = (uint8_t) before;
			before += tidset_popcount(present[i]);
		}
		memcpy(to + 4, present, 32);
	}
	return node + ts_slots_at(TS_INDEX(form), n);
}

static int
next_direct(const uint8_t *node, int key)
{
	const uint8_t *slots = node + TS_HEADER;
	bool		inner = TS_TYPE(node[0]) == TS_INNER;

	while (key < ts_count(node) &&
		   (inner ? ts_get32(slots + 4 * key) : ts_get64(slots + 8 * key)) == 0)
		key++;
	return key < ts_count(node) ? key : 256;
}

/* Find the first key from this one on that the index has; 256 if none. */
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
			return next_direct(node, key);
	}
}

/* ---- inner nodes ---- */

/* The children of a node while it is changed; missing ones are 0. */
typedef struct Children
{
	uint64_t	present[4];
	uint32_t	refs[256];
	int			n;
	int			last;			/* key */
} Children;

static void
put_child(Children *children, int key, uint32_t ref)
{
	TS_ASSERT(children->refs[key] == 0);
	children->present[key >> 6] |= UINT64_C(1) << (key & 63);
	children->refs[key] = ref;
	children->n++;
	if (children->last < key)
		children->last = key;
}

static void
read_inner(const uint8_t *node, Children *children)
{
	memset(children, 0, sizeof(*children));
	for (int key = ts_index_next(node, 0); key < 256;
		 key = ts_index_next(node, key + 1))
		put_child(children, key, ts_child(node, (uint8_t) key));
}

static void
write_inner(uint8_t *node, int index, uint32_t size, const Children *children)
{
	int			nslots = index == TS_DIRECT ? children->last + 1 : children->n;
	uint8_t    *slots = ts_index_write(node, TS_INNER | index,
									   children->present, nslots);
	uint16_t	units = (uint16_t) (size / 8);

	memcpy(node + 2, &units, sizeof(units));
	if (index == TS_DIRECT)
	{
		memcpy(slots, children->refs, (size_t) nslots * sizeof(uint32_t));
		return;
	}
	for (int key = ts_next_present(children->present, 0); key < 256;
		 key = ts_next_present(children->present, key + 1))
	{
		memcpy(slots, &children->refs[key], sizeof(uint32_t));
		slots += sizeof(uint32_t);
	}
}

/*
 * Make nodes with one child each, from this place down to the child, by the
 * last bytes of the prefix.  They are adjacent in memory, since lookups need
 * all of them.
 */
static bool
make_path(TidSet *set, uint32_t *place, uint64_t prefix, int levels,
		  uint32_t child)
{
	uint32_t	total = 0;
	uint32_t	size;
	uint32_t	ref;

	for (int level = 0; level < levels; level++)
	{
		(void) ts_index_for(1, (uint8_t) (prefix >> (8 * level)),
							sizeof(uint32_t), &size);
		total += size;
	}
	if (!ts_reserve(set, total))
		return false;
	ref = ts_alloc(set, total);
	*place = ref;
	for (int level = levels - 1; level >= 0; level--)
	{
		uint8_t		key = (uint8_t) (prefix >> (8 * level));
		int			index = ts_index_for(1, key, sizeof(uint32_t), &size);
		uint32_t	next = ref + size / TS_UNIT;
		Children	children = {.n = 0};

		put_child(&children, key, level > 0 ? next : child);
		write_inner(ts_address(set, ref), index, size, &children);
		ref = next;
	}
	return true;
}

/* Give the node at this place an empty child; it may move. */
static bool
add_child(TidSet *set, uint32_t *place, uint8_t key)
{
	uint32_t	had = 8u * ts_get16(ts_address(set, *place) + 2);
	uint32_t	ref = *place;
	Children	children;
	uint32_t	need;
	int			index;

	read_inner(ts_address(set, ref), &children);
	put_child(&children, key, 0);
	index = ts_index_for(children.n, children.last, sizeof(uint32_t), &need);
	if (need > had)
	{
		need = (need + need / 2 + 7) & ~7u;
		if (need > LARGEST_INNER)
			need = LARGEST_INNER;
		if (!ts_reserve(set, need))
			return false;
		ref = ts_alloc(set, need);
		ts_release(set, *place, had);
		had = need;
	}
	write_inner(ts_address(set, ref), index, had, &children);
	*place = ref;
	return true;
}

/* The address of the node's reference for the key; NULL if there is none. */
static uint32_t *
child_place(uint8_t *node, uint8_t key)
{
	uint32_t   *refs = (uint32_t *) (node + ts_slots_at(TS_INDEX(node[0]),
														ts_count(node)));
	int			i = ts_find(node, key);

	return i < 0 || i >= ts_count(node) ? NULL : refs + i;
}

static bool
grow_height(TidSet *set, uint64_t prefix)
{
	while (prefix >> (8 * set->height) != 0)
	{
		if (set->root != 0 && !make_path(set, &set->root, 0, 1, set->root))
			return false;
		set->height++;
	}
	return true;
}

/*
 * The address of the reference to the prefix's leaf; the path to it is made if
 * needed.  The address is valid until the next call.  NULL if there is no
 * memory; an empty part of a path does no harm.
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
		uint32_t   *child;

		if (*place == 0 && !make_path(set, place, prefix, level + 1, 0))
			return NULL;
		child = child_place(ts_address(set, *place), key);
		if (child == NULL)
		{
			if (!add_child(set, place, key))
				return NULL;
			child = child_place(ts_address(set, *place), key);
		}
		place = child;
	}
	return place;
}

/*
 * Find the first leaf below a node; with "bounded", the first whose prefix is
 * at least *prefix.
 */
static uint32_t
next_below(const TidSet *set, uint32_t ref, int level, bool bounded,
		   uint64_t *prefix)
{
	const uint8_t *node;
	int			from;

	if (ref == 0 || level == 0)
		return ref;
	level--;
	node = ts_address(set, ref);
	from = bounded ? (uint8_t) (*prefix >> (8 * level)) : 0;
	for (int key = ts_index_next(node, from); key < 256;
		 key = ts_index_next(node, key + 1))
	{
		uint64_t	low = (UINT64_C(1) << (8 * level)) - 1;
		bool		on_path = bounded && key == from;
		uint32_t	leaf;

		if (!on_path)
			*prefix &= ~low;
		*prefix &= ~(UINT64_C(255) << (8 * level));
		*prefix |= (uint64_t) key << (8 * level);
		leaf = next_below(set, ts_child(node, (uint8_t) key), level, on_path,
						  prefix);
		if (leaf != 0)
			return leaf;
	}
	return 0;
}

/*
 * Find the first leaf with at least this prefix, or 0; *prefix becomes the
 * leaf's.
 */
uint32_t
ts_next_leaf(const TidSet *set, uint64_t *prefix)
{
	if (*prefix >> (8 * set->height) != 0)
		return 0;
	return next_below(set, set->root, (int) set->height, true, prefix);
}
