/*-------------------------------------------------------------------------
 * test_shapes.c
 *	  Ceilings for the bytes per TID, and the published counts of nodes.
 *-------------------------------------------------------------------------
 */
#include "tidset_test.h"
#include "../bench/tidset_shapes.h"

/*
 * The ceiling is half of TidStore's size in PostgreSQL 17, 6 bytes, or all of
 * TidStore's size: see docs/figures/tidset.md.
 */
static const double ceilings[NSHAPES] = {
	0.40, 0.20, 2.02, 4.11, 6.0, 6.0, 0.30, 0.10, 2.34
};

void
test_shapes(void)
{
	for (int shape = 0; shape < NSHAPES; shape++)
	{
		Counter		counter = {0};
		TidSetAllocator allocator = counting_allocator(&counter);
		TidSet	   *set = tidset_create(&allocator, &allocator, 1 << 26);
		uint64_t	ntids = 0;
		uint16_t	offsets[SHAPE_MAX];

		for (uint32_t block = 0; block < SHAPE_BLOCKS; block++)
		{
			int			n = shape_offsets(shape, block, offsets);

			CHECK(tidset_add_block(set, block, offsets, n));
			ntids += (uint64_t) n;
		}
		tidset_seal(set);
		CHECK(tidset_count(set) == ntids);
		CHECK(tidset_memory(set) == counter.bytes);
		CHECK(counter.bytes < ceilings[shape] * (double) ntids);
		for (uint32_t block = 0; block < SHAPE_BLOCKS; block += 101)
		{
			int			n = shape_offsets(shape, block, offsets);
			int			at = 0;

			for (uint16_t o = 0; o < 300; o++)
			{
				bool		has = at < n && offsets[at] == o;

				at += has;
				CHECK(tidset_member(set, block, o) == has);
			}
		}
		CHECK_SET(set);
		digest_set(set);
		tidset_destroy(set);
	}
}

/* Nodes of up to 1, 4, 15, 32, 61, 128 and 256 children. */
#define NCLASSES	7
static const int class_sizes[NCLASSES] = {1, 4, 15, 32, 61, 128, 256};

static const struct
{
	uint64_t	nkeys;
	uint64_t	height;			/* counts of the published tree, in which
								 * leaves are a level */
	uint64_t	nodes[NCLASSES];
}			published[NQUERIES] = {
	{1000000, 2, {0, 0, 0, 31251, 0, 1, 122}},
	{999654, 2, {0, 1, 26951, 35548, 1, 0, 245}},
	{9291812, 4, {262144, 0, 138, 79465, 182665, 5, 1024}},
	{3807650, 5, {196608, 0, 0, 0, 61747, 3789, 257}},
};

static void
count_classes(const TidSetStats *stats, uint64_t *nodes)
{
	int			class = 0;

	memset(nodes, 0, NCLASSES * sizeof(uint64_t));
	for (int n = 1; n <= 256; n++)
	{
		if (n > class_sizes[class])
			class++;
		nodes[class] += stats->inner[n - 1] + stats->leaf[n - 1];
	}
}

static void
check_query(int query, uint64_t *keys)
{
	uint64_t	n = query_keys(query, keys);
	TidSet	   *set = tidset_create_malloc(UINT64_C(1) << 30);
	uint64_t	nodes[NCLASSES];
	TidSetStats stats;

	for (uint64_t i = 0; i < n; i++)
	{
		uint16_t	offset = (uint16_t) (1 + keys[i] % 61);

		CHECK(ts_add(set, keys[i], &offset, 1));
	}
	CHECK(tidset_blocks(set) == published[query].nkeys);
	tidset_stats(set, &stats);
	CHECK(stats.height == published[query].height);
	count_classes(&stats, nodes);
	for (int class = 0; class < NCLASSES; class++)
		CHECK(nodes[class] == published[query].nodes[class]);
	for (uint64_t i = 0; i < n; i += 17)
		CHECK(ts_member(set, keys[i], (uint16_t) (1 + keys[i] % 61)));
	CHECK_SET(set);
	digest_set(set);
	tidset_destroy(set);
}

/* Make keys in the order of the queries; the last two queries are random. */
void
test_thread(bool full)
{
	uint64_t   *keys = malloc(QUERY_KEYS * sizeof(uint64_t));

	for (int query = 0; query < (full ? NQUERIES : 2); query++)
		check_query(query, keys);
	free(keys);
}
