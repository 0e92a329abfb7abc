/*-------------------------------------------------------------------------
 * pagedelta_test.h
 *	  Definitions for tests and benchmark: page changes, random numbers.
 *-------------------------------------------------------------------------
 */
#ifndef PAGEDELTA_TEST_H
#define PAGEDELTA_TEST_H

#include <stdbool.h>
#include <stdint.h>

#include "../pagedelta.h"

#define PAGE	8192

/* The page changes that the benchmark measures and the tests check. */
typedef struct Shape
{
	const char *name;
	int			delta_len;		/* -1 if it depends on the contents */
	void		(*make) (uint8_t *old_page, uint8_t *new_page);
} Shape;

extern const Shape shapes[];
extern const int nshapes;

extern uint64_t test_seed;

static inline uint32_t
test_random(uint32_t below)
{
	test_seed ^= test_seed << 13;
	test_seed ^= test_seed >> 7;
	test_seed ^= test_seed << 17;
	return (uint32_t) ((test_seed >> 16) % below);
}

/* lower and upper in a page's header */
static inline void
set_bounds(uint8_t *page, uint32_t lower, uint32_t upper)
{
	((uint16_t *) page)[6] = (uint16_t) lower;
	((uint16_t *) page)[7] = (uint16_t) upper;
}

static inline PageDeltaBounds
get_bounds(const uint8_t *old_page, const uint8_t *new_page)
{
	const uint16_t *a = (const uint16_t *) old_page;
	const uint16_t *b = (const uint16_t *) new_page;

	return (PageDeltaBounds)
	{
		a[6], a[7], b[6], b[7]
	};
}

/* Make a page of random bytes with a header. */
extern void random_page(uint8_t *page, uint32_t lower, uint32_t upper);

/* Change a page of this size at random, including its bounds. */
extern void change_page(uint8_t *page, uint32_t size);

extern void test_shift(uint64_t rounds);

#endif							/* PAGEDELTA_TEST_H */
