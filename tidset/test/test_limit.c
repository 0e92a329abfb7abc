/*-------------------------------------------------------------------------
 * test_limit.c
 *	  The bound on memory, and allocations that fail.
 *-------------------------------------------------------------------------
 */
#include "tidset_test.h"

/* Return block numbers of one kind of table after another. */
static uint64_t
next_key(Rng *rng, int order, uint64_t last)
{
	switch (order)
	{
		case 0:
			return last + 1;
		case 1:
			return last + 1 + rng_below(rng, 500);
		default:
			return rng_below(rng, 200000);
	}
}

/*
 * Add until the set is full, and continue: every refusal must leave the set
 * unchanged.  The allocator itself checks that the limit is never exceeded.
 */
static void
fill(uint64_t limit, int order, int manner)
{
	Rng			rng = {test_seed + limit};
	Counter		counter = {.limit = limit};
	TidSetAllocator allocator = counting_allocator(&counter);
	TidSet	   *set = tidset_create(&allocator, &allocator, limit);
	Oracle		oracle;
	uint64_t	key = 0;
	int			refused = 0;
	uint64_t	base = counter.bytes;

	CHECK(set != NULL && tidset_limit(set) == limit);
	oracle_init(&oracle);
	while (refused < 20)
	{
		uint16_t	offsets[TIDSET_MAX_OFFSET];
		int			n = random_offsets(&rng, manner, offsets);
		uint64_t	count = tidset_count(set);
		uint64_t	blocks = tidset_blocks(set);

		key = next_key(&rng, order, key);
		if (ts_add(set, key, offsets, n))
		{
			for (int i = 0; i < n; i++)
				oracle_add(&oracle, key, offsets[i]);
			continue;
		}
		CHECK(tidset_count(set) == count && tidset_blocks(set) == blocks);
		if (refused % 5 == 0)
		{
			check_same(set, &oracle);
			CHECK_SET(set);
		}
		refused++;
	}
	CHECK(tidset_memory(set) == counter.bytes && counter.bytes <= limit);
	/* most of the memory was used; a leaf and a chunk may not fit at the end */
	CHECK(counter.peak > limit / 2);
	digest_set(set);
	tidset_reset(set);
	CHECK(counter.bytes == base);
	tidset_destroy(set);
	CHECK(counter.bytes == 0);
	oracle_free(&oracle);
}

void
test_limit(void)
{
	for (int order = 0; order < 3; order++)
	{
		for (int manner = 0; manner < OFFSET_MANNERS - 1; manner++)
		{
			/* equal blocks take almost no memory */
			if (manner == 7 && order != 1)
				continue;
			fill(64 * 1024, order, manner);
			if (manner != 7 && manner != 5)
				fill(150 * 1024 + 1234, order, manner);
		}
	}
}

/*
 * Repeat the additions with the fail_at-th allocation failing.  Returns false
 * if there are fewer allocations.
 */
static bool
add_with_failure(uint64_t fail_at, uint64_t fail_every, int manner)
{
	Rng			rng = {test_seed};
	Counter		counter = {.fail_at = fail_at,.fail_every = fail_every};
	TidSetAllocator allocator = counting_allocator(&counter);
	TidSet	   *set = tidset_create(&allocator, &allocator, 1 << 24);
	Oracle		oracle;
	bool		reached;

	if (set == NULL)
	{
		CHECK(counter.bytes == 0);
		return true;
	}
	oracle_init(&oracle);
	for (int i = 0; i < 600; i++)
	{
		uint16_t	offsets[TIDSET_MAX_OFFSET];
		uint64_t	key = i % 3 ? (uint64_t) i * 3 : rng_below(&rng, 1u << 20);
		int			n = random_offsets(&rng, manner, offsets);

		if (ts_add(set, key, offsets, n))
		{
			for (int o = 0; o < n; o++)
				oracle_add(&oracle, key, offsets[o]);
		}
		CHECK(tidset_memory(set) == counter.bytes);
		if (i % 97 == 0)
			CHECK(!ts_member(set, 3000000, 1));
	}
	check_same(set, &oracle);
	CHECK_SET(set);
	CHECK(tidset_memory_peak(set) >= counter.bytes);
	reached = counter.allocations >= fail_at;
	tidset_destroy(set);
	CHECK(counter.bytes == 0);
	oracle_free(&oracle);
	return reached;
}

void
test_out_of_memory(void)
{
	for (int manner = 0; manner < OFFSET_MANNERS; manner++)
	{
		uint64_t	fail_at = 1;
		int			failures = 0;

		/* fail each allocation in turn, until there are no further ones */
		while (add_with_failure(fail_at, 0, manner))
		{
			failures++;
			fail_at += 1 + fail_at / 4;
		}
		CHECK(failures > 5);
		CHECK(add_with_failure(3, 2, manner));
		CHECK(add_with_failure(5, 1, manner));
	}
}
