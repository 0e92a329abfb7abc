/*-------------------------------------------------------------------------
 * tidset_shapes.h
 *	  The sets of dead TIDs that tests and benchmarks use.
 *
 * Nine shapes of a table of 200,000 blocks, and the four queries that were
 * published with the radix tree of PostgreSQL (bench_radix_tree): two on
 * blocks with 30 TIDs each, in 64-bit keys of which each has 64 offsets, two
 * on 10 million random keys.
 *-------------------------------------------------------------------------
 */
#ifndef TIDSET_SHAPES_H
#define TIDSET_SHAPES_H

#include <stdint.h>

#define NSHAPES			9
#define SHAPE_BLOCKS	200000
#define SHAPE_MAX		226		/* offsets of a block */

static const char *const shape_names[NSHAPES] = {
	"every block, 30 random of 60", "every block, 61 of 61",
	"every block, 6 random of 61", "every block, 1 random of 61",
	"10 % of blocks, 1 of 61", "1 % of blocks, 1 of 61",
	"runs of 100 blocks, 1 % of table", "every block, 226 of 226",
	"every block, 10 random of 226"
};

static inline uint64_t
shape_hash(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
	return x ^ (x >> 31);
}

/* n different offsets of 1 .. max, ascending */
static inline int
shape_sample(uint64_t seed, int n, int max, uint16_t *offsets)
{
	int			found = 0;

	for (int o = 1; o <= max && found < n; o++)
	{
		/* the share of offsets still needed among those left */
		seed = shape_hash(seed + 1);
		if (seed % (uint64_t) (max - o + 1) < (uint64_t) (n - found))
			offsets[found++] = (uint16_t) o;
	}
	return found;
}

/* Make the dead offsets of a block; returns their number. */
static inline int
shape_offsets(int shape, uint32_t block, uint16_t *offsets)
{
	uint64_t	seed = shape_hash(block + UINT64_C(0x123456789) *
								  (uint64_t) (shape + 1));

	switch (shape)
	{
		case 0:
			return shape_sample(seed, 30, 60, offsets);
		case 1:
			return shape_sample(seed, 61, 61, offsets);
		case 2:
			return shape_sample(seed, 6, 61, offsets);
		case 3:
			return shape_sample(seed, 1, 61, offsets);
		case 4:
			return seed % 10 == 0 ? shape_sample(seed, 1, 61, offsets) : 0;
		case 5:
			return seed % 100 == 0 ? shape_sample(seed, 1, 61, offsets) : 0;
		case 6:
			return block / 100 % 100 == 37 ?
				shape_sample(seed, 61, 61, offsets) : 0;
		case 7:
			return shape_sample(seed, 226, 226, offsets);
		default:
			return shape_sample(seed, 10, 226, offsets);
	}
}

/* ---- the published queries ---- */

#define NQUERIES	4
#define QUERY_KEYS	10000000

/* xoroshiro128** as PostgreSQL seeds it */
typedef struct QueryRng
{
	uint64_t	s0;
	uint64_t	s1;
} QueryRng;

static inline uint64_t
query_rotate(uint64_t x, int by)
{
	return (x << by) | (x >> (64 - by));
}

static inline QueryRng
query_rng_seed(void)
{
	uint64_t	seed = UINT64_C(0x9E3779B185EBCA87);
	QueryRng	rng;

	rng.s0 = shape_hash(seed += UINT64_C(0x9E3779B97F4A7C15));
	rng.s1 = shape_hash(seed += UINT64_C(0x9E3779B97F4A7C15));
	return rng;
}

static inline uint64_t
query_rng_next(QueryRng *rng)
{
	uint64_t	s0 = rng->s0;
	uint64_t	sx = rng->s1 ^ s0;
	uint64_t	value = query_rotate(s0 * 5, 7) * 9;

	rng->s0 = query_rotate(s0, 24) ^ sx ^ (sx << 16);
	rng->s1 = query_rotate(sx, 37);
	return value;
}

/*
 * Make the keys of a query in its order, some of them several times; returns
 * their number.
 */
static inline uint64_t
query_keys(int query, uint64_t *keys)
{
	static const uint64_t filters[2] = {
		UINT64_C(0x7F07FF00FF), UINT64_C(0xFFFF0000003F)
	};
	QueryRng	rng = query_rng_seed();
	uint64_t	n = 0;

	if (query >= 2)
	{
		for (uint64_t i = 0; i < QUERY_KEYS; i++)
			keys[i] = shape_hash(i) & filters[query - 2];
		return QUERY_KEYS;
	}
	for (uint64_t block = 0; block < (query == 0 ? 1000000 : 2000000); block++)
	{
		/* an offset has 9 bits; the key lacks the lowest 6 of them */
		if (query == 0 || query_rng_next(&rng) >> 63 == 1)
			keys[n++] = block << 3;
	}
	return n;
}

/* Comparison function for qsort. */
static inline int
query_compare_keys(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return x < y ? -1 : x > y;
}

static inline void
query_shuffle(uint64_t *keys, uint64_t n)
{
	for (uint64_t i = n; i > 1; i--)
	{
		uint64_t	j = shape_hash(i) % i;
		uint64_t	key = keys[i - 1];

		keys[i - 1] = keys[j];
		keys[j] = key;
	}
}

#endif							/* TIDSET_SHAPES_H */
