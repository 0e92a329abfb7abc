/*-------------------------------------------------------------------------
 * tidset_check.c
 *	  Statistics, and a check of all invariants.
 *
 * Both walk the whole tree and all memory; they are for tests and benchmarks.
 *-------------------------------------------------------------------------
 */
#include "tidset_int.h"

typedef struct Walk
{
	TidSet	   *set;
	TidSetStats *stats;
	const char *problem;
	uint64_t	used_units;		/* units of reachable nodes */
	uint64_t	ntids;
	uint64_t	nblocks;
} Walk;

static void
complain(Walk *walk, const char *problem)
{
	if (walk->problem == NULL)
		walk->problem = problem;
}

/* The form of a leaf, for the statistics. */
static void
count_form(Walk *walk, uint32_t ref, const uint8_t *leaf)
{
	if (ref & TS_EMBEDDED)
		walk->stats->embedded++;
	else if (leaf[0] < TS_INNER)
		walk->stats->pairs++;
	else if (TS_TYPE(leaf[0]) == TS_SAME)
		walk->stats->same++;
	else
		walk->stats->wide++;
}

static void
walk_leaf(Walk *walk, uint32_t ref)
{
	uint8_t		scratch[TS_SCRATCH] = {0};
	uint16_t	offsets[TIDSET_MAX_OFFSET];
	const uint8_t *leaf = ref & TS_EMBEDDED ? ts_unfold(ref, scratch) :
		ts_address(walk->set, ref);
	int			next = 0;
	int			nkeys = 0;
	int			last_key = -1;
	uint8_t		key;
	int			n;

	if (!(ref & TS_EMBEDDED))
		walk->used_units += ts_node_units(leaf);
	while ((n = ts_leaf_next(leaf, &next, &key, offsets, TIDSET_MAX_OFFSET)) >
		   0)
	{
		if (key <= last_key)
			complain(walk, "blocks of a leaf are not in order");
		for (int i = 1; i < n; i++)
		{
			if (offsets[i] <= offsets[i - 1])
				complain(walk, "offsets are not in order");
		}
		last_key = key;
		nkeys++;
		walk->ntids += (uint64_t) n;
	}
	if (nkeys == 0)
	{
		complain(walk, "empty leaf");
		return;
	}
	if (leaf[0] >= TS_INNER &&
		ts_count(leaf) !=
		(TS_INDEX(leaf[0]) == TS_DIRECT ? last_key + 1 : nkeys))
		complain(walk, "wrong number of blocks in a leaf");
	walk->nblocks += (uint64_t) nkeys;
	walk->stats->leaf[nkeys - 1]++;
	count_form(walk, ref, leaf);
}

static void
walk_tree(Walk *walk, uint32_t ref, int level)
{
	const uint8_t *node;
	int			nchildren = 0;

	if (ref == 0)
		return;
	if (level == 0)
	{
		walk_leaf(walk, ref);
		return;
	}
	node = ts_address(walk->set, ref);
	if (TS_TYPE(node[0]) != TS_INNER)
	{
		complain(walk, "not an inner node");
		return;
	}
	walk->used_units += ts_node_units(node);
	if (8u * ts_get16(node + 2) <
		ts_index_size(TS_INDEX(node[0]), ts_count(node), sizeof(uint32_t)))
		complain(walk, "inner node is too small");
	for (int key = ts_index_next(node, 0); key < 256;
		 key = ts_index_next(node, key + 1))
	{
		uint32_t	child = ts_child(node, (uint8_t) key);

		nchildren += child != 0;
		walk_tree(walk, child, level - 1);
	}
	if (nchildren > 0)
		walk->stats->inner[nchildren - 1]++;
}

/*
 * Check that every unit of every chunk is in a node, in a free block, or in
 * the open end.
 */
static void
walk_chunks(Walk *walk)
{
	TidSet	   *set = walk->set;
	uint64_t	used = 0;
	uint64_t	unused = 0;
	uint64_t	handle = set->ctl->chunks;

	while (handle != 0)
	{
		const TsChunk *chunk = set->shared.address(set->shared.arg, handle);
		uint32_t	ref = (chunk->page << TS_PAGE_SHIFT) +
			sizeof(TsChunk) / TS_UNIT;
		uint32_t	limit = (chunk->page << TS_PAGE_SHIFT) + chunk->units;

		walk->stats->chunk_bytes += (uint64_t) chunk->units * TS_UNIT +
			TIDSET_PAD;
		while (ref < limit)
		{
			bool		open_end = ref == set->end && set->end < set->end_limit;
			uint32_t	units = open_end ? set->end_limit - set->end :
				ts_node_units(ts_address(set, ref));

			if (units == 0)
			{
				complain(walk, "block of no size");
				return;
			}
			if (open_end || ts_address(set, ref)[0] == TS_FREE)
				unused += units;
			else
				used += units;
			ref += units;
		}
		if (ref != limit)
			complain(walk, "blocks do not fill their chunk");
		handle = chunk->next;
	}
	if (used != walk->used_units)
		complain(walk, "memory is lost, or used twice");
	if (unused != set->free_units + (set->end_limit - set->end))
		complain(walk, "wrong count of free memory");
	walk->stats->node_bytes = used * TS_UNIT;
	walk->stats->free_bytes = unused * TS_UNIT;
}

static const char *
walk_all(TidSet *set, TidSetStats *stats)
{
	Walk		walk = {.set = set,.stats = stats};

	tidset_seal(set);
	memset(stats, 0, sizeof(*stats));
	stats->height = set->height;
	walk_tree(&walk, set->root, (int) set->height);
	walk_chunks(&walk);
	if (walk.ntids != set->ctl->ntids)
		complain(&walk, "wrong count of TIDs");
	if (walk.nblocks != set->ctl->nblocks)
		complain(&walk, "wrong count of blocks");
	if (set->ctl->memory > set->ctl->limit || set->ctl->peak > set->ctl->limit)
		complain(&walk, "limit passed");
	return walk.problem;
}

void
tidset_stats(TidSet *set, TidSetStats *stats)
{
	(void) walk_all(set, stats);
}

const char *
tidset_check(TidSet *set)
{
	TidSetStats stats;

	return walk_all(set, &stats);
}
