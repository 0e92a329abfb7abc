/*-------------------------------------------------------------------------
 * tidset_test.c
 *	  Runs the tests of tidset:  tidset_test [-s seed] [-r rounds] [-f] [test
 *	  ...]
 *
 * The last line has a digest of all sets, which is equal for equal seeds in
 * every build.
 *-------------------------------------------------------------------------
 */
#include "tidset_test.h"

#include <unistd.h>

const char *test_name;
uint64_t	test_seed = 1;
uint64_t	test_digest = UINT64_C(14695981039346656037);

/* ---- the counting allocator ---- */

typedef struct Header
{
	uint64_t	size;
	uint64_t	magic;
} Header;

#define MAGIC	UINT64_C(0x7464736574746573)

static uint64_t
counting_alloc(void *arg, size_t size)
{
	Counter    *counter = arg;
	Header	   *header;

	counter->allocations++;
	if (counter->fail_at != 0 && counter->allocations >= counter->fail_at &&
		(counter->allocations == counter->fail_at ||
		 (counter->fail_every != 0 &&
		  (counter->allocations - counter->fail_at) % counter->fail_every ==
		  0)))
		return 0;
	header = malloc(sizeof(Header) + size);
	CHECK(header != NULL);
	/* callers must not rely on zeros */
	memset(header, 0xA5, sizeof(Header) + size);
	header->size = size;
	header->magic = MAGIC;
	counter->bytes += size + COUNTER_OVERHEAD;
	if (counter->peak < counter->bytes)
		counter->peak = counter->bytes;
	CHECK(counter->limit == 0 || counter->bytes <= counter->limit);
	return (uint64_t) (uintptr_t) (header + 1);
}

static void
counting_free(void *arg, uint64_t handle)
{
	Counter    *counter = arg;
	Header	   *header = (Header *) (uintptr_t) handle - 1;

	CHECK(header->magic == MAGIC);
	header->magic = 0;
	counter->bytes -= header->size + COUNTER_OVERHEAD;
	free(header);
}

static void *
counting_address(void *arg, uint64_t handle)
{
	(void) arg;
	return (void *) (uintptr_t) handle;
}

TidSetAllocator
counting_allocator(Counter *counter)
{
	TidSetAllocator allocator = {
		counting_alloc, counting_free, counting_address, counter,
		COUNTER_OVERHEAD, 0
	};

	return allocator;
}

/* ---- the oracle ---- */

void
oracle_init(Oracle *oracle)
{
	oracle->size = 1024;
	oracle->used = 0;
	oracle->table = calloc(oracle->size, sizeof(uint64_t));
}

void
oracle_clear(Oracle *oracle)
{
	free(oracle->table);
	oracle_init(oracle);
}

void
oracle_free(Oracle *oracle)
{
	free(oracle->table);
}

static uint64_t *
oracle_entry(const Oracle *oracle, uint64_t tid)
{
	uint64_t	i = (tid * UINT64_C(0x9E3779B97F4A7C15)) >> 20;

	for (;; i++)
	{
		uint64_t   *entry = &oracle->table[i & (oracle->size - 1)];

		if (*entry == 0 || *entry == tid)
			return entry;
	}
}

bool
oracle_has(const Oracle *oracle, uint64_t key, uint16_t offset)
{
	return *oracle_entry(oracle, key << 14 | offset) != 0;
}

void
oracle_add(Oracle *oracle, uint64_t key, uint16_t offset)
{
	uint64_t	tid = key << 14 | offset;
	uint64_t   *entry = oracle_entry(oracle, tid);

	oracle->used += *entry == 0;
	*entry = tid;
	if (oracle->used * 2 > oracle->size)
	{
		Oracle		larger = {
			calloc(oracle->size * 4, sizeof(uint64_t)), oracle->size * 4,
			oracle->used
		};

		for (uint64_t i = 0; i < oracle->size; i++)
		{
			if (oracle->table[i] != 0)
				*oracle_entry(&larger, oracle->table[i]) = oracle->table[i];
		}
		free(oracle->table);
		*oracle = larger;
	}
}

static int
compare_tids(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return x < y ? -1 : x > y;
}

uint64_t *
oracle_sorted(const Oracle *oracle)
{
	uint64_t   *tids = malloc((oracle->used + 1) * sizeof(uint64_t));
	uint64_t	n = 0;

	for (uint64_t i = 0; i < oracle->size; i++)
	{
		if (oracle->table[i] != 0)
			tids[n++] = oracle->table[i];
	}
	CHECK(n == oracle->used);
	qsort(tids, n, sizeof(uint64_t), compare_tids);
	return tids;
}

void
check_same(TidSet *set, const Oracle *oracle)
{
	static uint16_t offsets[TIDSET_MAX_OFFSET];
	uint64_t   *tids = oracle_sorted(oracle);
	uint64_t	at = 0;
	uint64_t	blocks = 0;
	uint64_t	key;
	TidSetIter	iter;
	int			n;

	CHECK(tidset_count(set) == oracle->used);
	tidset_iter_begin(set, &iter);
	while ((n = ts_iter_next(&iter, &key, offsets, TIDSET_MAX_OFFSET)) > 0)
	{
		blocks++;
		for (int i = 0; i < n; i++)
		{
			CHECK(at < oracle->used);
			CHECK(tids[at++] == (key << 14 | offsets[i]));
			CHECK(ts_member(set, key, offsets[i]));
		}
	}
	CHECK(at == oracle->used);
	CHECK(tidset_blocks(set) == blocks);
	free(tids);
}

/* ---- random offsets ---- */

static int
some_offsets(Rng *rng, uint16_t *offsets, int n, int max)
{
	for (int i = 0; i < n; i++)
		offsets[i] = (uint16_t) (1 + rng_below(rng, (uint32_t) max));
	return n;
}

static int
run_offsets(uint16_t *offsets, int first, int last)
{
	for (int o = first; o <= last; o++)
		offsets[o - first] = (uint16_t) o;
	return last - first + 1;
}

int
random_offsets(Rng *rng, int manner, uint16_t *offsets)
{
	static const uint16_t edges[] = {
		1, 61, 62, 63, 64, 65, 126, 127, 128, 129, 254, 255, 256, 257,
		291, 2047, 2048, 8191, TIDSET_MAX_OFFSET
	};
	int			first;

	switch (manner)
	{
		case 0:
			return some_offsets(rng, offsets, 1, 291);
		case 1:
			return some_offsets(rng, offsets, 1 + (int) rng_below(rng, 4), 127);
		case 2:
			return some_offsets(rng, offsets, 1 + (int) rng_below(rng, 60), 62);
		case 3:
			return some_offsets(rng, offsets, 1 + (int) rng_below(rng, 200),
								291);
		case 4:
			return some_offsets(rng, offsets, 1 + (int) rng_below(rng, 12),
								TIDSET_MAX_OFFSET);
		case 5:
			first = 1 + (int) rng_below(rng, 300);
			return run_offsets(offsets, first,
							   first + (int) rng_below(rng, 300));
		case 6:
			for (int i = 0; i < 3; i++)
				offsets[i] =
					edges[rng_below(rng, sizeof(edges) / sizeof(edges[0]))];
			return 3;
		case 7:
			return run_offsets(offsets, 1, 61);
		default:
			return some_offsets(rng, offsets, 1 + (int) rng_below(rng, 3000),
								TIDSET_MAX_OFFSET);
	}
}

/* ---- the digest ---- */

static void
digest_number(uint64_t number)
{
	test_digest = (test_digest ^ number) * UINT64_C(1099511628211);
}

/* Add a set's contents and structure to the digest. */
void
digest_set(TidSet *set)
{
	static uint16_t offsets[TIDSET_MAX_OFFSET];
	TidSetStats stats;
	TidSetIter	iter;
	uint64_t	key;
	int			n;

	tidset_iter_begin(set, &iter);
	while ((n = ts_iter_next(&iter, &key, offsets, TIDSET_MAX_OFFSET)) > 0)
	{
		digest_number(key);
		for (int i = 0; i < n; i++)
			digest_number(offsets[i]);
	}
	tidset_stats(set, &stats);
	for (size_t i = 0; i < sizeof(stats) / sizeof(uint64_t); i++)
		digest_number(((uint64_t *) &stats)[i]);
	digest_number(tidset_memory(set));
}

/* ---- running them ---- */

static int	rounds = 40;
static bool full;

static void
run_model(void)
{
	test_model(rounds);
}

static void
run_thread(void)
{
	test_thread(full);
}

static const struct
{
	const char *name;
	void		(*run) (void);
}			tests[] = {
	{"slots", test_slots}, {"edges", test_edges}, {"model", run_model},
	{"limit", test_limit}, {"out_of_memory", test_out_of_memory},
	{"shapes", test_shapes}, {"thread", run_thread}, {"shared", test_shared},
};

static bool
wanted(const char *name, char **names, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return n == 0;
}

int
main(int argc, char **argv)
{
	int			option;
	int			nrun = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((option = getopt(argc, argv, "s:r:f")) != -1)
	{
		if (option == 's')
			test_seed = strtoull(optarg, NULL, 0);
		else if (option == 'r')
			rounds = atoi(optarg);
		else if (option == 'f')
			full = true;
		else
			return 2;
	}
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
	{
		if (!wanted(tests[i].name, argv + optind, argc - optind))
			continue;
		test_name = tests[i].name;
		tests[i].run();
		printf("ok %s\n", test_name);
		nrun++;
	}
	if (nrun == 0)
		return 2;
	printf("digest %016llx (seed %llu)\n", (unsigned long long) test_digest,
		   (unsigned long long) test_seed);
	return 0;
}
