/*-------------------------------------------------------------------------
 * tidset_bench.c
 *	  Bytes per TID and lookups per second outside of a server:
 *
 *		tidset_bench [-n lookups] [-r rounds] [-s shape] [shapes | queries]
 *
 * The sorted array is the one that VACUUM of PostgreSQL 15 and 16 searches
 * with bsearch().  "queries" are the published queries, with their 64-bit keys
 * and values of 62 random bits.  test/server/run.sh measures TidStore.
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../tidset_int.h"
#include "tidset_shapes.h"

static int	nlookups = 5000000;
static int	rounds = 3;
static int	only_shape = -1;

/* CPU time, so that other processes on the machine do not count. */
static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static void *
get_memory(size_t size)
{
	void	   *memory = malloc(size + 1);

	if (memory == NULL)
	{
		fprintf(stderr, "out of memory\n");
		exit(1);
	}
	return memory;
}

static void
must(bool ok)
{
	if (!ok)
	{
		fprintf(stderr, "the set is full\n");
		exit(1);
	}
}

/* ---- the array ---- */

typedef struct TidArray
{
	size_t		n;
	TidSetTid  *tids;
} TidArray;

static uint64_t
tid_number(const TidSetTid *tid)
{
	return (uint64_t) tid->block_hi << 32 | (uint64_t) tid->block_lo << 16 |
		tid->offset;
}

static int
compare_tids(const void *a, const void *b)
{
	uint64_t	x = tid_number(a);
	uint64_t	y = tid_number(b);

	return x < y ? -1 : x > y;
}

static __attribute__((noinline))
bool
array_member(const TidArray *array, const TidSetTid *tid)
{
	uint64_t	number = tid_number(tid);

	if (array->n == 0 || number < tid_number(&array->tids[0]) ||
		number > tid_number(&array->tids[array->n - 1]))
		return false;
	return bsearch(tid, array->tids, array->n, sizeof(TidSetTid),
				   compare_tids) != NULL;
}

static TidSetTid
make_tid(uint64_t block, uint64_t offset)
{
	TidSetTid	tid = {
		(uint16_t) (block >> 16), (uint16_t) block, (uint16_t) offset
	};

	return tid;
}

/* ---- shapes ---- */

static TidArray
make_array(int shape)
{
	TidArray	array = {0, NULL};
	uint16_t	offsets[SHAPE_MAX];

	for (int pass = 0; pass < 2; pass++)
	{
		if (pass == 1)
			array.tids = get_memory(array.n * sizeof(TidSetTid));
		array.n = 0;
		for (uint32_t block = 0; block < SHAPE_BLOCKS; block++)
		{
			int			n = shape_offsets(shape, block, offsets);

			for (int i = 0; i < n && pass == 1; i++)
				array.tids[array.n + (size_t) i] = make_tid(block, offsets[i]);
			array.n += (size_t) n;
		}
	}
	return array;
}

static TidSet *
make_set(int shape, double *seconds)
{
	TidSet	   *set = tidset_create_malloc(UINT64_C(1) << 30);
	uint16_t	offsets[SHAPE_MAX];
	double		start = now();

	for (uint32_t block = 0; block < SHAPE_BLOCKS; block++)
	{
		int			n = shape_offsets(shape, block, offsets);

		must(tidset_add_block(set, block, offsets, n));
	}
	tidset_seal(set);
	/* without the time to compute the offsets */
	*seconds = now() - start;
	start = now();
	for (uint32_t block = 0; block < SHAPE_BLOCKS; block++)
		(void) shape_offsets(shape, block, offsets);
	*seconds -= now() - start;
	return set;
}

static TidSetTid *
make_lookups(int shape, bool random)
{
	TidSetTid  *tids = get_memory((size_t) nlookups * sizeof(TidSetTid));
	uint64_t	rows = shape >= 7 ? 226 : shape == 0 ? 60 : 61;

	for (uint64_t i = 0; i < (uint64_t) nlookups; i++)
	{
		uint64_t	row = (random ? shape_hash(i + 77) : 20000 * rows + i) %
			(SHAPE_BLOCKS * rows);

		tids[i] = make_tid(row / rows, 1 + row % rows);
	}
	return tids;
}

static __attribute__((noinline))
int
look_set(TidSet *set, const TidSetTid *tids)
{
	TidSetLookup lookup;
	int			found = 0;

	tidset_lookup_begin(set, &lookup);
	for (int i = 0; i < nlookups; i++)
		found += tidset_lookup(&lookup,
							   (uint32_t) tids[i].block_hi << 16 |
							   tids[i].block_lo,
							   tids[i].offset);
	return found;
}

static __attribute__((noinline))
int
look_array(const TidArray *array, const TidSetTid *tids)
{
	int			found = 0;

	for (int i = 0; i < nlookups; i++)
		found += array_member(array, &tids[i]);
	return found;
}

/* Print the best of the rounds, in ns per operation. */
static void
time_lookups(TidSet *set, const TidArray *array, const TidSetTid *tids)
{
	double		best_set = 1e9;
	double		best_array = 1e9;

	for (int round = 0; round < rounds; round++)
	{
		double		start = now();
		int			found = look_set(set, tids);
		double		middle = now();
		int			found_array = look_array(array, tids);
		double		end = now();

		if (found != found_array)
		{
			fprintf(stderr, "found %d, should be %d\n", found, found_array);
			exit(1);
		}
		best_set = middle - start < best_set ? middle - start : best_set;
		best_array = end - middle < best_array ? end - middle : best_array;
	}
	printf(" | %6.2f | %7.2f", best_set * 1e9 / nlookups,
		   best_array * 1e9 / nlookups);
}

static void
bench_shapes(void)
{
	printf("| shape | TIDs | bytes/TID | add, ns/block | index order: ns | array | random: ns | array |\n");
	printf("|---|---|---|---|---|---|---|---|\n");
	for (int shape = 0; shape < NSHAPES; shape++)
	{
		double		seconds;
		TidSet	   *set;
		TidArray	array;

		if (only_shape >= 0 && shape != only_shape)
			continue;
		set = make_set(shape, &seconds);
		array = make_array(shape);
		printf("| %s | %llu | %.3f | %.0f", shape_names[shape],
			   (unsigned long long) tidset_count(set),
			   (double) tidset_memory(set) / (double) tidset_count(set),
			   seconds * 1e9 / SHAPE_BLOCKS);
		for (int random = 0; random < 2; random++)
		{
			TidSetTid  *tids = make_lookups(shape, random);

			time_lookups(set, &array, tids);
			free(tids);
		}
		printf(" |\n");
		fflush(stdout);
		free(array.tids);
		tidset_destroy(set);
	}
}

/* ---- the published queries ---- */

/*
 * Make the offsets of a key: 30 rows in the first two queries; in the others,
 * the 62 bits that represent the stored 64-bit value.
 */
static int
key_offsets(int query, uint64_t key, uint16_t *offsets)
{
	uint64_t	value = shape_hash(key);
	int			n = 0;

	for (int o = 1; o <= (query < 2 ? 30 : 62); o++)
	{
		if (query < 2 || (value >> o & 1))
			offsets[n++] = (uint16_t) o;
	}
	/* a value must not be empty */
	if (n == 0)
		offsets[n++] = 1;
	return n;
}

/* Run a query.  The first two queries look up each TID, the others each key. */
static double
search_query(TidSet *set, int query, const uint64_t *keys, uint64_t n,
			 uint64_t *found)
{
	double		start = now();
	TidSetLookup lookup;

	tidset_lookup_begin(set, &lookup);
	*found = 0;
	for (uint64_t i = 0; i < n; i++)
	{
		if (query >= 2)
			*found += ts_lookup(&lookup, keys[i], 17);
		else
			for (uint16_t o = 1; o <= 30; o++)
				*found += ts_lookup(&lookup, keys[i], o);
	}
	return now() - start;
}

static void
bench_query(int query, const uint64_t *keys, const uint64_t *ordered,
			uint64_t n)
{
	TidSet	   *set = tidset_create_malloc(UINT64_C(1) << 30);
	uint16_t	offsets[64];
	double		load = now();
	double		search;
	uint64_t	found;
	uint64_t	again;
	TidSetStats stats;

	for (uint64_t i = 0; i < n; i++)
		must(ts_add(set, ordered[i], offsets,
					key_offsets(query, ordered[i], offsets)));
	tidset_seal(set);
	load = now() - load;
	search = search_query(set, query, keys, n, &found);
	for (int round = 1; round < rounds; round++)
	{
		double		next = search_query(set, query, keys, n, &again);

		search = next < search ? next : search;
	}
	tidset_stats(set, &stats);
	printf("| %d | %llu | %llu | %llu | %llu | %.0f | %.0f |\n", query + 1,
		   (unsigned long long) tidset_blocks(set),
		   (unsigned long long) tidset_memory(set),
		   (unsigned long long) tidset_memory_peak(set),
		   (unsigned long long) stats.node_bytes, load * 1e3, search * 1e3);
	fflush(stdout);
	tidset_destroy(set);
}

static void
bench_queries(void)
{
	uint64_t   *keys = get_memory(QUERY_KEYS * sizeof(uint64_t));
	uint64_t   *ordered = get_memory(QUERY_KEYS * sizeof(uint64_t));

	for (int sorted = 1; sorted >= 0; sorted--)
	{
		printf("%s insertion\n", sorted ? "sorted" : "shuffled");
		printf("| query | keys | bytes | peak | in nodes | load ms | search ms |\n|---|---|---|---|---|---|---|\n");
		for (int query = 0; query < NQUERIES; query++)
		{
			uint64_t	n = query_keys(query, keys);

			memcpy(ordered, keys, n * sizeof(uint64_t));
			if (sorted)
				qsort(ordered, n, sizeof(uint64_t), query_compare_keys);
			else if (query < 2)
				query_shuffle(ordered, n);
			bench_query(query, keys, ordered, n);
		}
	}
	free(keys);
	free(ordered);
}

int
main(int argc, char **argv)
{
	bool		shapes = true;
	bool		queries = true;
	int			option;

	while ((option = getopt(argc, argv, "n:r:s:")) != -1)
	{
		if (option == 'n')
			nlookups = atoi(optarg);
		else if (option == 'r')
			rounds = atoi(optarg);
		else if (option == 's')
			only_shape = atoi(optarg) - 1;
		else
			return 2;
	}
	if (optind < argc)
	{
		shapes = strcmp(argv[optind], "shapes") == 0;
		queries = strcmp(argv[optind], "queries") == 0;
	}
	if (shapes)
		bench_shapes();
	if (queries)
		bench_queries();
	return 0;
}
