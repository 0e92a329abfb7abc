/*-------------------------------------------------------------------------
 * pb_group.c
 *	  Grouping of rows by key.
 *
 * A hash table of keys with lists of TIDs, for an index whose equal keys are
 * identical.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "common/hashfn.h"
#include "utils/memutils.h"

#include "pb_group.h"

typedef struct Group
{
	uint32		hash;
	uint16		len;
	bool		has_map;
	bool		mixed;			/* TIDs did not arrive in order */
	int			n;
	int			room;
	ItemPointerData *tids;
	ItemPointerData first[2];	/* the list, while it fits here */
	uint8		bytes[FLEXIBLE_ARRAY_MEMBER];	/* map, if any, then key */
} Group;

typedef struct Bucket
{
	uint32		hash;
	uint32		number;			/* the group's and 1, or 0 */
} Bucket;

struct PbGroups
{
	PbIndex    *index;
	MemoryContext context;
	int			n;
	int			room;
	Group	  **groups;
	uint32		nbuckets;		/* a power of two */
	Bucket	   *buckets;
};

#define FIRST_BUCKETS	1024

PbGroups *
pb_group_begin(PbIndex *index)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pbtree groups",
												  ALLOCSET_DEFAULT_SIZES);
	PbGroups   *g = MemoryContextAllocZero(context, sizeof(PbGroups));

	g->index = index;
	g->context = context;
	g->nbuckets = FIRST_BUCKETS;
	g->buckets = MemoryContextAllocZero(context, g->nbuckets * sizeof(Bucket));
	g->room = FIRST_BUCKETS / 2;
	g->groups = MemoryContextAlloc(context, g->room * sizeof(Group *));
	return g;
}

/* Double the table. */
static void
more_buckets(PbGroups *g)
{
	Bucket	   *old = g->buckets;
	uint32		n = g->nbuckets;

	g->nbuckets *= 2;
	g->room = g->nbuckets / 2;
	g->buckets = MemoryContextAllocExtended(g->context,
											g->nbuckets * sizeof(Bucket),
											MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	g->groups = repalloc_huge(g->groups, g->room * sizeof(Group *));
	for (uint32 i = 0; i < n; i++)
	{
		uint32		at = old[i].hash & (g->nbuckets - 1);

		if (old[i].number == 0)
			continue;
		while (g->buckets[at].number != 0)
			at = (at + 1) & (g->nbuckets - 1);
		g->buckets[at] = old[i];
	}
	pfree(old);
}

static bool
is_group(const PbGroups *g, const Group *group, const PbKey *key)
{
	int			map_len = key->has_map ? g->index->map_len : 0;

	return group->len == key->len && group->has_map == key->has_map &&
		memcmp(group->bytes + map_len, key->data, key->len) == 0 &&
		memcmp(group->bytes, key->map, map_len) == 0;
}

static Group *
new_group(PbGroups *g, const PbKey *key, uint32 hash)
{
	int			map_len = key->has_map ? g->index->map_len : 0;
	Group	   *group = MemoryContextAlloc(g->context, offsetof(Group, bytes) +
										   map_len + key->len);

	group->hash = hash;
	group->len = key->len;
	group->has_map = key->has_map;
	group->mixed = false;
	group->n = 0;
	group->room = lengthof(group->first);
	group->tids = group->first;
	memcpy(group->bytes, key->map, map_len);
	memcpy(group->bytes + map_len, key->data, key->len);
	g->groups[g->n++] = group;
	return group;
}

static void
add_tid(PbGroups *g, Group *group, const ItemPointerData *tid)
{
	if (group->n >= group->room)
	{
		Size		size;

		group->room = group->room * 4;
		size = group->room * sizeof(ItemPointerData);
		if (group->tids == group->first)
		{
			group->tids = MemoryContextAlloc(g->context, size);
			memcpy(group->tids, group->first, sizeof(group->first));
		}
		else
			group->tids = repalloc_huge(group->tids, size);
	}
	group->mixed |= group->n > 0 &&
		ItemPointerCompare(&group->tids[group->n - 1],
						   unconstify(ItemPointerData *, tid)) > 0;
	group->tids[group->n++] = *tid;
}

/* Add a row; the key has its TID. */
void
pb_group_add(PbGroups *g, const PbKey *key)
{
	uint32		hash = hash_bytes(key->data, key->len);
	uint32		at;

	Assert(g->index->equalimage && key->natts == g->index->natts);	/* I5 */
	if (g->n >= g->room)
		more_buckets(g);
	at = hash & (g->nbuckets - 1);
	for (;;)
	{
		Bucket	   *b = &g->buckets[at];

		if (b->number == 0)
		{
			add_tid(g, new_group(g, key, hash), &key->tid);
			b->hash = hash;
			b->number = g->n;
			return;
		}
		if (b->hash == hash && is_group(g, g->groups[b->number - 1], key))
		{
			add_tid(g, g->groups[b->number - 1], &key->tid);
			return;
		}
		at = (at + 1) & (g->nbuckets - 1);
	}
}

int
pb_group_count(const PbGroups *g)
{
	return g->n;
}

Size
pb_group_memory(const PbGroups *g)
{
	return MemoryContextMemAllocated(g->context, true);
}

static int
compare_tids(const void *a, const void *b)
{
	return ItemPointerCompare((ItemPointer) a, (ItemPointer) b);
}

#ifdef USE_ASSERT_CHECKING
static bool
tids_ascend(const ItemPointerData *tids, int n)
{
	for (int i = 1; i < n; i++)
	{
		if (compare_tids(&tids[i - 1], &tids[i]) >= 0)
			return false;
	}
	return true;
}
#endif

/* Get a group's key, and its TIDs in order; returns their number. */
int
pb_group_get(PbGroups *g, int i, PbKey *key, const ItemPointerData **tids)
{
	Group	   *group = g->groups[i];
	int			map_len = group->has_map ? g->index->map_len : 0;
	bool		whole PG_USED_FOR_ASSERTS_ONLY;

	pb_key_begin(key);
	key->natts = g->index->natts;
	key->has_map = group->has_map;
	memcpy(key->map, group->bytes, map_len);
	memcpy(key->data, group->bytes + map_len, group->len);
	whole = pb_key_parse(g->index, key, key->natts, group->len);
	Assert(whole && key->len == group->len);
	if (group->mixed)
		qsort(group->tids, group->n, sizeof(ItemPointerData), compare_tids);
	group->mixed = false;
	Assert(tids_ascend(group->tids, group->n));
	*tids = group->tids;
	return group->n;
}

void
pb_group_end(PbGroups *g)
{
	MemoryContextDelete(g->context);
}
