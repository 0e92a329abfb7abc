/*-------------------------------------------------------------------------
 * tidset_test.h
 *	  Definitions for the tests of tidset: checks, random numbers, a counting
 *	  allocator, and the oracle.
 *-------------------------------------------------------------------------
 */
#ifndef TIDSET_TEST_H
#define TIDSET_TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tidset.h"
#include "../tidset_int.h"

extern const char *test_name;
extern uint64_t test_seed;

/* A failed check ends the program; it prints how to repeat the run. */
#define CHECK(x) \
	do { \
		if (!(x)) \
		{ \
			printf("FAIL %s: %s:%d: %s (seed %llu)\n", test_name, \
				   __FILE__, __LINE__, #x, (unsigned long long) test_seed); \
			exit(1); \
		} \
	} while (0)

#define CHECK_SET(set) \
	do { \
		const char *problem_ = tidset_check(set); \
		if (problem_ != NULL) \
			printf("%s\n", problem_); \
		CHECK(problem_ == NULL); \
	} while (0)

/* ---- random numbers (splitmix64) ---- */

typedef struct Rng
{
	uint64_t	state;
} Rng;

static inline uint64_t
rng_next(Rng *rng)
{
	uint64_t	z = (rng->state += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

/* 0 .. n - 1 */
static inline uint32_t
rng_below(Rng *rng, uint32_t n)
{
	return (uint32_t) (((rng_next(rng) >> 32) * n) >> 32);
}

/* ---- an allocator that counts and can be told to fail ---- */

typedef struct Counter
{
	uint64_t	bytes;			/* allocated now, with overhead */
	uint64_t	peak;
	uint64_t	limit;			/* exceeding it is a failure; 0: none */
	uint64_t	allocations;
	uint64_t	fail_at;		/* number of the allocation that fails; 0:
								 * none */
	uint64_t	fail_every;		/* thereafter every n-th fails, too; 0: none */
} Counter;

#define COUNTER_OVERHEAD	16

extern TidSetAllocator counting_allocator(Counter *counter);

/* ---- the oracle: a hash table of TIDs ---- */

typedef struct Oracle
{
	uint64_t   *table;			/* key << 14 | offset; 0: empty */
	uint64_t	size;			/* a power of two */
	uint64_t	used;
} Oracle;

extern void oracle_init(Oracle *oracle);
extern void oracle_clear(Oracle *oracle);
extern void oracle_free(Oracle *oracle);
extern bool oracle_has(const Oracle *oracle, uint64_t key, uint16_t offset);
extern void oracle_add(Oracle *oracle, uint64_t key, uint16_t offset);
extern uint64_t *oracle_sorted(const Oracle *oracle);

/*
 * Check that the set has exactly the oracle's TIDs, by iteration in order, and
 * by a lookup of each.
 */
extern void check_same(TidSet *set, const Oracle *oracle);

/*
 * Make a random set of offsets with the given distribution; returns their
 * number.
 */
#define OFFSET_MANNERS	9
extern int	random_offsets(Rng *rng, int manner, uint16_t *offsets);

/* ---- the tests ---- */

extern void test_slots(void);
extern void test_edges(void);
extern void test_model(int rounds);
extern void test_limit(void);
extern void test_out_of_memory(void);
extern void test_shapes(void);
extern void test_thread(bool full);
extern void test_shared(void);

/* Digest of the sets' contents and structure, for comparison of builds. */
extern uint64_t test_digest;
extern void digest_set(TidSet *set);

#endif							/* TIDSET_TEST_H */
