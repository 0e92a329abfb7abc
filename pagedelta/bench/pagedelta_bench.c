/*-------------------------------------------------------------------------
 * pagedelta_bench.c
 *	  Nanoseconds per page: the server's own function, words of 8 bytes, and
 *	  each implementation, for eleven changes of a page and for page pairs of
 *	  files.
 *
 *	  pagedelta_bench [-n calls] [-t turns] [file of page pairs ...]
 *
 * The implementations take turns.  The best turn of each counts, because all
 * other activity on a machine makes a turn longer.
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../test/core_delta.h"
#include "../test/pagedelta_test.h"

#define MAX_PAIRS	4096

static uint8_t *pairs;
static int	npairs;
static uint8_t delta[PAGEDELTA_ROOM(PAGE)];
static int	calls = 100;
static int	turns = 400;

typedef long (*Method) (const uint8_t *a, const uint8_t *b);

static long
core(const uint8_t *a, const uint8_t *b)
{
	return core_delta_8k(a, b, NULL);
}

static long
words(const uint8_t *a, const uint8_t *b)
{
	return words_delta(a, b, PAGE, delta);
}

static long
ours(const uint8_t *a, const uint8_t *b)
{
	PageDeltaBounds bounds = get_bounds(a, b);

	return pagedelta_make(a, b, PAGE, &bounds, delta, sizeof(delta));
}

static const struct
{
	const char *name;
	Method		method;
}			methods[] = {
	{"core", core}, {"words", words}, {"avx512bw", ours}, {"avx2", ours},
	{"sse2", ours}, {"neon", ours}, {"scalar", ours}
};

#define METHODS ((int) (sizeof(methods) / sizeof(methods[0])))

static bool
use(int i)
{
	return methods[i].method != ours || pagedelta_use(methods[i].name);
}

/* Nanoseconds per call, and bytes of delta. */
static double
measure(Method method, double *bytes)
{
	struct timespec begin;
	struct timespec end;
	long		sum = 0;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (int i = 0; i < calls; i++)
	{
		const uint8_t *pair = pairs + (size_t) (i % npairs) * 2 * PAGE;

		sum += method(pair, pair + PAGE);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	*bytes = (double) sum / calls;
	return ((double) (end.tv_sec - begin.tv_sec) * 1e9 +
			(double) (end.tv_nsec - begin.tv_nsec)) / calls;
}

/*
 * Print one line.  The logarithms of core/ours and words/ours are added to the
 * sums.
 */
static void
compare(const char *name, double *core_sum, double *words_sum, double *worst)
{
	double		best[METHODS];
	double		bytes[METHODS];

	for (int turn = 0; turn < turns; turn++)
	{
		for (int i = 0; i < METHODS; i++)
		{
			double		ns;

			if (!use(i))
				continue;
			ns = measure(methods[i].method, &bytes[i]);
			if (turn == 0 || ns < best[i])
				best[i] = ns;
		}
	}
	printf("%-45s", name);
	for (int i = 0; i < METHODS; i++)
	{
		if (use(i))
			printf(" %8.0f", best[i]);
		if (use(i) && methods[i].method == ours)
		{
			core_sum[i] += log(best[0] / best[i]);
			words_sum[i] += log(best[1] / best[i]);
			if (best[0] / best[i] < worst[i])
				worst[i] = best[0] / best[i];
		}
	}
	printf(" %9.1f %9.1f\n", bytes[0], bytes[1]);
}

static void
title(const char *first)
{
	printf("%-45s", first);
	for (int i = 0; i < METHODS; i++)
	{
		if (use(i))
			printf(" %8s", methods[i].name);
	}
	printf(" %9s %9s\n", "bytes", "words'");
}

static void
compare_shapes(void)
{
	double		core_sum[METHODS] = {0};
	double		words_sum[METHODS] = {0};
	double		worst[METHODS];

	for (int i = 0; i < METHODS; i++)
		worst[i] = 1e9;
	title("nanoseconds");
	for (int i = 0; i < nshapes; i++)
	{
		npairs = 1;
		shapes[i].make(pairs, pairs + PAGE);
		compare(shapes[i].name, core_sum, words_sum, worst);
	}
	for (int i = 0; i < METHODS; i++)
	{
		if (use(i) && methods[i].method == ours)
			printf("%-10s core / it: geometric mean %.1f, least %.2f; words / it: %.1f\n",
				   methods[i].name, exp(core_sum[i] / nshapes), worst[i],
				   exp(words_sum[i] / nshapes));
	}
}

static void
compare_file(const char *path)
{
	FILE	   *file = fopen(path, "rb");
	double		core_sum[METHODS] = {0};
	double		words_sum[METHODS] = {0};
	double		worst[METHODS] = {0};
	const char *name = strrchr(path, '/');

	if (file == NULL)
	{
		perror(path);
		exit(2);
	}
	npairs = (int) fread(pairs, 2 * PAGE, MAX_PAIRS, file);
	fclose(file);
	if (npairs > 0)
		compare(name != NULL ? name + 1 : path, core_sum, words_sum, worst);
}

int
main(int argc, char **argv)
{
	int			option;

	while ((option = getopt(argc, argv, "n:t:")) != -1)
	{
		if (option == 'n')
			calls = atoi(optarg);
		else if (option == 't')
			turns = atoi(optarg);
		else
			return 2;
	}
	/* images of pages in a server's buffers have this alignment */
	pairs = aligned_alloc(4096, (size_t) MAX_PAIRS * 2 * PAGE);
	compare_shapes();
	for (int i = optind; i < argc; i++)
		compare_file(argv[i]);
	return 0;
}
