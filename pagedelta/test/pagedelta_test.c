/*-------------------------------------------------------------------------
 * pagedelta_test.c
 *	  Tests outside of a server.
 *
 *	  pagedelta_test [-s seed] [-r rounds] [-p file]
 *
 * Every implementation that the machine supports makes the delta of the
 * definition, and, in a build with CORE, the delta of the server's own
 * function.  -p names a file of page pairs, old and new one after the other.
 * Buffers have exactly the size that is documented as sufficient, so that
 * sanitizers detect a byte too much.
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core_delta.h"
#include "pagedelta_test.h"

#define REQUIRE(condition) \
	do { \
		if (!(condition)) \
		{ \
			fprintf(stderr, "%s:%d: %s (seed %llu, round %llu, %s)\n", \
					__FILE__, __LINE__, #condition, \
					(unsigned long long) first_seed, \
					(unsigned long long) current_round, \
					pagedelta_instructions()); \
			abort(); \
		} \
	} while (0)

static uint64_t first_seed = 1;
static uint64_t current_round;

static const char *const names[] = {"avx512bw", "avx2", "sse2", "neon", "scalar"};

#define NAMES ((int) (sizeof(names) / sizeof(names[0])))

/* ---- one pair ---------------------------------------------------------- */

/*
 * Check that the delta and its parts turn the old page into the new one,
 * except for the hole.
 */
static void
check_apply(const uint8_t *old_page, const uint8_t *new_page, uint32_t size,
			const PageDeltaBounds *b, const uint8_t *delta, uint32_t len,
			const PageDeltaPart *parts, int nparts)
{
	uint8_t    *page = malloc(size);

	memcpy(page, old_page, size);
	REQUIRE(pagedelta_apply(page, size, delta, len) == PAGEDELTA_OK);
	REQUIRE(memcmp(page, new_page, b->new_lower) == 0);
	REQUIRE(memcmp(page + b->new_upper, new_page + b->new_upper,
				   size - b->new_upper) == 0);
	if (parts != NULL)
	{
		uint8_t    *other = malloc(size);

		memcpy(other, old_page, size);
		REQUIRE(pagedelta_apply_parts(other, parts, nparts) <= size);
		REQUIRE(memcmp(page, other, size) == 0);
		free(other);
	}
	free(page);
}

static void
check_parts(const uint8_t *old_page, const uint8_t *new_page, uint32_t size,
			const PageDeltaBounds *b, const uint8_t *delta, int len)
{
	uint8_t    *room = malloc(PAGEDELTA_ROOM(size));
	PageDeltaPart parts[PAGEDELTA_MAX_PARTS];
	int			nparts;
	uint32_t	done = 0;

	REQUIRE(pagedelta_make_parts(old_page, new_page, size, b, room,
								 PAGEDELTA_ROOM(size), parts, &nparts) == len);
	REQUIRE(nparts >= 0 && nparts <= PAGEDELTA_MAX_PARTS);
	for (int i = 0; i < nparts; i++)
	{
		REQUIRE(parts[i].len > 0 && done + parts[i].len <= (uint32_t) len);
		REQUIRE(memcmp(delta + done, parts[i].data, parts[i].len) == 0);
		done += parts[i].len;
	}
	REQUIRE(done == (uint32_t) len);
	check_apply(old_page, new_page, size, b, delta, (uint32_t) len, parts,
				nparts);
	free(room);
}

/* Compare with the server's function.  Returns the length. */
static int
core_delta(const uint8_t *old_page, const uint8_t *new_page, uint32_t size,
		   uint8_t *delta)
{
#ifdef CORE
	if (size == PAGE)
		return core_delta_8k(old_page, new_page, delta);
	if (size == 32768)
		return core_delta_32k(old_page, new_page, delta);
#endif
	(void) old_page, (void) new_page, (void) size, (void) delta;
	return -1;
}

/*
 * Check one pair.  With "thorough", against the model and with parts, too;
 * else only against core, or against the model in a build without core.
 */
static int
check_pair(const uint8_t *old_page, const uint8_t *new_page, uint32_t size,
		   bool thorough)
{
	static uint8_t expected[PAGEDELTA_MAX_PAGE + 64];
	PageDeltaBounds b = get_bounds(old_page, new_page);
	int			bounds[4] = {
		(int) b.old_lower, (int) b.old_upper,
		(int) b.new_lower, (int) b.new_upper
	};
	int			len = core_delta(old_page, new_page, size, expected);
	uint8_t    *delta = malloc(PAGEDELTA_ROOM(size));

	if (len < 0 || thorough)
	{
		uint8_t    *model = malloc(PAGEDELTA_MAX_PAGE + 64);
		int			model_len = model_delta(old_page, new_page, (int) size,
											bounds, model);

		REQUIRE(len < 0 || (model_len == len &&
							memcmp(model, expected, (size_t) len) == 0));
		len = model_len;
		memcpy(expected, model, (size_t) len);
		free(model);
	}
	REQUIRE(len <= (int) size + 2 * PAGEDELTA_HEADER);
	for (int i = 0; i < NAMES; i++)
	{
		if (!pagedelta_use(names[i]))
			continue;
		REQUIRE(pagedelta_make(old_page, new_page, size, &b, delta,
							   PAGEDELTA_ROOM(size)) == len);
		REQUIRE(memcmp(delta, expected, (size_t) len) == 0);
		if (thorough)
			check_parts(old_page, new_page, size, &b, delta, len);
	}
	REQUIRE(pagedelta_use(NULL));
	check_apply(old_page, new_page, size, &b, expected, (uint32_t) len, NULL,
				0);
	free(delta);
	return len;
}

/* ---- tests ------------------------------------------------------------- */

static void
test_shapes(void)
{
	uint8_t    *a = malloc(PAGE);
	uint8_t    *b = malloc(PAGE);

	for (int i = 0; i < nshapes; i++)
	{
		int			len;

		shapes[i].make(a, b);
		len = check_pair(a, b, PAGE, true);
		printf("%-45s %5d\n", shapes[i].name, len);
		REQUIRE(shapes[i].delta_len < 0 || len == shapes[i].delta_len);
	}
	free(a);
	free(b);
}

#define SIZE	192				/* size of a small page */

/*
 * Try every beginning and end of fragments and regions of a small page, one by
 * one.
 */
static void
test_edges(void)
{
	uint8_t    *a = calloc(1, SIZE);
	uint8_t    *b = calloc(1, SIZE);
	int			n = 0;

	for (int gap = 0; gap <= 6; gap++)
	{
		for (int at = 16; at + gap + 1 < SIZE; at++)
		{
			static const uint16_t bounds[][4] = {
				{SIZE, SIZE, SIZE, SIZE}, {0, 0, 0, 0},
				{16, 192, 70, 100}, {70, 100, 16, 192},
				{64, 128, 64, 128}, {0, 0, 64, 128},
				{100, 100, 100, 100}, {100, 100, 97, 104},
				{90, 110, 100, 100}, {192, 0, 95, 99},
				{60, 192, 65, 192}, {16, 130, 16, 127}
			};

			for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
			{
				memset(b, 0, SIZE);
				set_bounds(a, bounds[i][0], bounds[i][1]);
				set_bounds(b, bounds[i][2], bounds[i][3]);
				b[at] = 1;
				b[at + gap + 1] = 1;
				(void) check_pair(a, b, SIZE, true);
				n++;
			}
		}
	}
	printf("%d pairs at edges\n", n);
	free(a);
	free(b);
}

static void
test_bad_arguments(void)
{
	static uint8_t a[PAGE + 64];
	static uint8_t b[PAGE + 64];
	static uint8_t delta[PAGEDELTA_ROOM(PAGE)];
	PageDeltaBounds good = {24, PAGE, 24, PAGE};
	static const struct
	{
		PageDeltaBounds bounds;
		uint32_t	size;
		uint32_t	room;
		int			result;
	}			cases[] = {
		{{24, PAGE, 24, PAGE}, 0, PAGEDELTA_ROOM(PAGE), PAGEDELTA_BAD_SIZE},
		{{24, PAGE, 24, PAGE}, PAGE + 1, PAGEDELTA_ROOM(PAGE),
		PAGEDELTA_BAD_SIZE},
		{{24, PAGE, 24, PAGE}, 65536, PAGEDELTA_ROOM(PAGE),
		PAGEDELTA_BAD_SIZE},
		{{PAGE + 1, PAGE, 24, PAGE}, PAGE, PAGEDELTA_ROOM(PAGE),
		PAGEDELTA_BAD_BOUNDS},
		{{24, PAGE + 1, 24, PAGE}, PAGE, PAGEDELTA_ROOM(PAGE),
		PAGEDELTA_BAD_BOUNDS},
		{{24, PAGE, 25, 24}, PAGE, PAGEDELTA_ROOM(PAGE),
		PAGEDELTA_BAD_BOUNDS},
		{{24, PAGE, 24, PAGE + 1}, PAGE, PAGEDELTA_ROOM(PAGE),
		PAGEDELTA_BAD_BOUNDS},
		{{24, PAGE, UINT32_MAX, UINT32_MAX}, PAGE, PAGEDELTA_ROOM(PAGE),
		PAGEDELTA_BAD_BOUNDS},
		{{24, PAGE, 24, PAGE}, PAGE, PAGEDELTA_ROOM(PAGE) - 1,
		PAGEDELTA_NO_ROOM},
		{{PAGE, 0, 0, 0}, PAGE, PAGEDELTA_ROOM(PAGE), 0}
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		REQUIRE(pagedelta_make(a, b, cases[i].size, &cases[i].bounds, delta,
							   cases[i].room) == cases[i].result);
	for (size_t i = 0; i < sizeof(delta); i++)
		REQUIRE(delta[i] == 0);
	REQUIRE(pagedelta_make(a, b, PAGE, &good, delta, sizeof(delta)) == 0);
	REQUIRE(!pagedelta_use("abacus"));
	REQUIRE(pagedelta_check(delta, 0, PAGE) == PAGEDELTA_OK);
	REQUIRE(pagedelta_check(delta, 0, 100) == PAGEDELTA_BAD_SIZE);
}

/*
 * Holes of all lengths to two strides and more, at all alignments of a word;
 * then one byte in them, anywhere.
 */
static void
test_zeros(void)
{
	static uint8_t bytes[700];

	for (int i = 0; i < NAMES; i++)
	{
		if (!pagedelta_use(names[i]))
			continue;
		for (uint32_t len = 0; len <= 600; len++)
		{
			uint8_t    *p = bytes + 8 + len % 8;

			/* bytes beside the range do not matter */
			p[-1] = p[len] = 1;
			REQUIRE(pagedelta_zeros(p, len));
			for (uint32_t at = 0; at < len; at += 1 + len / 64)
			{
				p[at] = 0x80;
				REQUIRE(!pagedelta_zeros(p, len));
				p[at] = 0;
			}
			p[-1] = p[len] = 0;
		}
	}
	REQUIRE(pagedelta_use(NULL));
}

static void
test_bad_deltas(void)
{
	static const struct
	{
		uint16_t	words[8];
		uint32_t	len;
		int			result;
	}			cases[] = {
		{{0, 4, 1, 1}, 8, PAGEDELTA_OK},
		{{188, 4, 1, 1}, 8, PAGEDELTA_OK},
		{{0, 4, 1, 1, 4, 4, 1, 1}, 16, PAGEDELTA_OK},
		{{0, 0}, 4, PAGEDELTA_BAD_DELTA},	/* empty */
		{{0, 4, 1, 1}, 7, PAGEDELTA_BAD_DELTA}, /* cut off */
		{{0, 4, 1, 1}, 3, PAGEDELTA_BAD_DELTA},
		{{189, 4, 1, 1}, 8, PAGEDELTA_BAD_DELTA},	/* past the end */
		{{65535, 4, 1, 1}, 8, PAGEDELTA_BAD_DELTA},
		{{0, 65535, 1, 1}, 8, PAGEDELTA_BAD_DELTA},
		{{0, 4, 1, 1, 3, 4, 1, 1}, 16, PAGEDELTA_BAD_DELTA},	/* overlap */
		{{8, 4, 1, 1, 0, 4, 1, 1}, 16, PAGEDELTA_BAD_DELTA} /* backwards */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		uint8_t    *page = calloc(1, 192);
		uint8_t    *delta = malloc(cases[i].len);

		memcpy(delta, cases[i].words, cases[i].len);
		REQUIRE(pagedelta_apply(page, 192, delta, cases[i].len) ==
				cases[i].result);
		for (int j = 0; cases[i].result != PAGEDELTA_OK && j < 192; j++)
			REQUIRE(page[j] == 0);
		free(page);
		free(delta);
	}
}

/*
 * Apply a delta with some bytes changed.  It is refused without effect, or is
 * a delta for this page.
 */
static void
damage(const uint8_t *old_page, uint32_t size, const PageDeltaBounds *b,
	   const uint8_t *new_page)
{
	uint8_t    *delta = malloc(PAGEDELTA_ROOM(size));
	int			len = pagedelta_make(old_page, new_page, size, b, delta,
									 PAGEDELTA_ROOM(size));
	uint8_t    *copy;
	uint8_t    *page = malloc(size);

	REQUIRE(len >= 0);
	if (len > 0 && test_random(2))
		len = (int) test_random((uint32_t) len);
	copy = malloc((size_t) len + 1);
	memcpy(copy + 1, delta, (size_t) len);
	for (uint32_t n = test_random(4); n > 0 && len > 0; n--)
	{
		uint32_t	range = (uint32_t) len < 16 || test_random(2) ?
			(uint32_t) len : 16;

		copy[1 + test_random(range)] = (uint8_t) test_random(256);
	}
	memcpy(page, old_page, size);
	if (pagedelta_apply(page, size, copy + 1, (uint32_t) len) != PAGEDELTA_OK)
		REQUIRE(memcmp(page, old_page, size) == 0);
	free(delta);
	free(copy);
	free(page);
}

static uint32_t
random_size(uint64_t round)
{
	if (round % 16 == 0)
		return 32768;
	if (round % 16 == 1)
		return PAGEDELTA_UNIT * (1 + test_random(512));
	return PAGE;
}

/* Change a page many times; each page is the base of the next. */
static void
test_random_pairs(uint64_t rounds)
{
	static uint8_t last[PAGEDELTA_MAX_PAGE];
	uint64_t	fragments = 0;

	random_page(last, 100, 4000);
	for (current_round = 0; current_round < rounds; current_round++)
	{
		uint32_t	size = random_size(current_round);
		uint8_t    *a = malloc(size);
		uint8_t    *b = malloc(size);

		memcpy(a, last, size);
		if (((uint16_t *) a)[7] > size ||
			((uint16_t *) a)[6] > ((uint16_t *) a)[7])
			set_bounds(a, 24, size);
		memcpy(b, a, size);
		change_page(b, size);
		if (current_round % 64 == 0)
			set_bounds(a, test_random(size + 1), test_random(size + 1));
		fragments += check_pair(a, b, size, current_round % 32 == 0) > 0;
		if (current_round % 8 == 0)
		{
			PageDeltaBounds bounds = get_bounds(a, b);

			damage(a, size, &bounds, b);
		}
		memcpy(last, b, size);
		free(a);
		free(b);
		/* pages that have all become equal test nothing */
		if (current_round % 256 == 255)
			random_page(last, test_random(2000), 2000 + test_random(6000));
	}
	printf("%llu random pairs, %llu of them differ\n",
		   (unsigned long long) rounds, (unsigned long long) fragments);
}

static void
test_file(const char *path)
{
	FILE	   *file = fopen(path, "rb");
	uint8_t    *pair = malloc(2 * PAGE);

	if (file == NULL)
	{
		perror(path);
		exit(2);
	}
	for (current_round = 0; fread(pair, 2 * PAGE, 1, file) == 1;
		 current_round++)
		(void) check_pair(pair, pair + PAGE, PAGE, true);
	fclose(file);
	free(pair);
	printf("%llu pairs of %s\n", (unsigned long long) current_round, path);
}

int
main(int argc, char **argv)
{
	uint64_t	rounds = 20000;
	int			option;

	while ((option = getopt(argc, argv, "s:r:p:")) != -1)
	{
		if (option == 's')
			first_seed = strtoull(optarg, NULL, 10);
		else if (option == 'r')
			rounds = strtoull(optarg, NULL, 10);
		else if (option == 'p')
			test_file(optarg);
		else
			return 2;
	}
	test_seed = first_seed * UINT64_C(0x9E3779B97F4A7C15) | 1;
	printf("%s\n", pagedelta_instructions());
	test_shapes();
	test_zeros();
	test_edges();
	test_bad_arguments();
	test_bad_deltas();
	test_random_pairs(rounds);
	test_shift(rounds / 10);
	return 0;
}
