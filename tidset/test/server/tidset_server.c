/*-------------------------------------------------------------------------
 * tidset_server.c
 *	  tidset in a server, for tests and for comparison with the server's own
 *	  structures.
 *
 * run.sh creates the functions.  From PostgreSQL 17 on the comparison has
 * TidStore, which VACUUM uses there.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "storage/lwlock.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#ifdef COMPAT_HAS_TIDSTORE
#include "access/tidstore.h"

#define RT_PREFIX query_tree
#define RT_SCOPE static
#define RT_DECLARE
#define RT_DEFINE
#define RT_USE_DELETE
#define RT_VALUE_TYPE uint64
#include "lib/radixtree.h"
#endif

#include <time.h>

#include "tidset_int.h"
#include "tidset_pg.h"
#include "tidset_shapes.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT Datum tidset_compare(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum tidset_query(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum tidset_share(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum tidset_attach_and_check(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum tidset_local_check(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum tidset_shared_limit(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(tidset_compare);
PG_FUNCTION_INFO_V1(tidset_query);
PG_FUNCTION_INFO_V1(tidset_share);
PG_FUNCTION_INFO_V1(tidset_attach_and_check);
PG_FUNCTION_INFO_V1(tidset_local_check);
PG_FUNCTION_INFO_V1(tidset_shared_limit);

/* ---- the sorted array, as VACUUM of PostgreSQL 15 has it ---- */

typedef struct TidArray
{
	size_t		n;
	ItemPointerData *tids;
} TidArray;

static int
compare_tids(const void *left, const void *right)
{
	BlockNumber lblock = ItemPointerGetBlockNumber((ItemPointer) left);
	BlockNumber rblock = ItemPointerGetBlockNumber((ItemPointer) right);
	OffsetNumber loff;
	OffsetNumber roff;

	if (lblock != rblock)
		return lblock < rblock ? -1 : 1;
	loff = ItemPointerGetOffsetNumber((ItemPointer) left);
	roff = ItemPointerGetOffsetNumber((ItemPointer) right);
	return loff < roff ? -1 : loff > roff;
}

static uint64
tid_number(const ItemPointerData *tid)
{
	return (uint64) ItemPointerGetBlockNumber(tid) << 16 |
		ItemPointerGetOffsetNumber(tid);
}

/* Look up a TID.  One before the first or behind the last needs no search. */
static pg_noinline bool
array_member(const TidArray *array, ItemPointer tid)
{
	uint64		number = tid_number(tid);

	if (array->n == 0 || number < tid_number(&array->tids[0]) ||
		number > tid_number(&array->tids[array->n - 1]))
		return false;
	return bsearch(tid, array->tids, array->n, sizeof(ItemPointerData),
				   compare_tids) != NULL;
}

static size_t
array_memory(const TidArray *array)
{
	return array->n * sizeof(ItemPointerData);
}

/* ---- the three side by side ---- */

typedef struct Rivals
{
	MemoryContext context;
	TidSet	   *set;
	TidArray	array;
	size_t		tidset_bytes;
	size_t		tidstore_bytes;
#ifdef COMPAT_HAS_TIDSTORE
	TidStore   *store;
#endif
} Rivals;

static size_t
context_bytes(MemoryContext context)
{
	return MemoryContextMemAllocated(context, true);
}

static size_t
fill_array(Rivals *rivals, int shape, bool count_only)
{
	OffsetNumber offsets[SHAPE_MAX];
	size_t		n = 0;

	for (BlockNumber block = 0; block < SHAPE_BLOCKS; block++)
	{
		int			found = shape_offsets(shape, block, offsets);

		for (int i = 0; i < found && !count_only; i++)
			ItemPointerSet(&rivals->array.tids[n + i], block, offsets[i]);
		n += found;
	}
	return n;
}

static void
fill_rivals(Rivals *rivals, int shape)
{
	OffsetNumber offsets[SHAPE_MAX];
	MemoryContext set_context = AllocSetContextCreate(rivals->context, "set", 0,
													  0, 8192);
	size_t		before = context_bytes(set_context);

	rivals->array.n = fill_array(rivals, shape, true);
	rivals->array.tids = MemoryContextAllocHuge(rivals->context,
												array_memory(&rivals->array) +
												1);
	(void) fill_array(rivals, shape, false);
	rivals->set = tidset_pg_create(set_context, 1024 * 1024 * 1024);
#ifdef COMPAT_HAS_TIDSTORE
	rivals->store = TidStoreCreateLocal(1024 * 1024 * 1024, true);
#endif
	for (BlockNumber block = 0; block < SHAPE_BLOCKS; block++)
	{
		int			n = shape_offsets(shape, block, offsets);

		if (n == 0)
			continue;
		if (!tidset_add_block(rivals->set, block, offsets, n))
			elog(ERROR, "tidset is full");
#ifdef COMPAT_HAS_TIDSTORE
		TidStoreSetBlockOffsets(rivals->store, block, offsets, n);
#endif
	}
	tidset_seal(rivals->set);

	/*
	 * the memory that the server allocated, not the size that the set reports
	 */
	rivals->tidset_bytes = context_bytes(set_context) - before;
#ifdef COMPAT_HAS_TIDSTORE
	rivals->tidstore_bytes = TidStoreMemoryUsage(rivals->store);
#endif
}

/*
 * Make the TIDs of an index: all rows, dead or not, in the table's order or in
 * random order.
 */
static ItemPointerData *
make_lookups(int shape, bool random, int n)
{
	ItemPointerData *tids = palloc_extended(n * sizeof(ItemPointerData),
											MCXT_ALLOC_HUGE);
	uint32		rows = shape >= 7 ? 226 : shape == 0 ? 60 : 61;
	uint64		start = 20000;

	for (uint64 i = 0; i < n; i++)
	{
		uint64		row = random ?
			shape_hash(i + 77) % ((uint64) SHAPE_BLOCKS * rows) :
			(start * rows + i) % ((uint64) SHAPE_BLOCKS * rows);

		ItemPointerSet(&tids[i], row / rows, 1 + row % rows);
	}
	return tids;
}

static pg_noinline int
look_tidset(Rivals *rivals, ItemPointerData *tids, int n)
{
	TidSetLookup lookup;
	int			found = 0;

	tidset_lookup_begin(rivals->set, &lookup);
	for (int i = 0; i < n; i++)
		found += tidset_pg_lookup(&lookup, &tids[i]);
	return found;
}

static pg_noinline int
look_tidstore(Rivals *rivals, ItemPointerData *tids, int n)
{
	int			found = 0;

#ifdef COMPAT_HAS_TIDSTORE
	for (int i = 0; i < n; i++)
		found += TidStoreIsMember(rivals->store, &tids[i]);
#endif
	return found;
}

static pg_noinline int
look_array(Rivals *rivals, ItemPointerData *tids, int n)
{
	int			found = 0;

	for (int i = 0; i < n; i++)
		found += array_member(&rivals->array, &tids[i]);
	return found;
}

/*
 * Look up TIDs in batches of a leaf page's size, as an index access method
 * would.
 */
static pg_noinline int
look_batch(Rivals *rivals, ItemPointerData *tids, int n)
{
	bool		found[256];
	int			total = 0;

	for (int i = 0; i < n; i += 256)
		total += tidset_member_batch(rivals->set, (TidSetTid *) &tids[i],
									 Min(256, n - i), found);
	return total;
}

typedef int (*LookFunction) (Rivals *rivals, ItemPointerData *tids, int n);

static const LookFunction lookers[] = {
	look_tidset, look_tidstore, look_array, look_batch
};

#define NLOOKERS	4
#define MAX_ROUNDS	1000

static int
compare_doubles(const void *left, const void *right)
{
	double		l = *(const double *) left;
	double		r = *(const double *) right;

	return l < r ? -1 : l > r;
}

static double
median(const double *values, int n)
{
	double		sorted[MAX_ROUNDS];

	memcpy(sorted, values, n * sizeof(double));
	qsort(sorted, n, sizeof(double), compare_doubles);
	return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

/*
 * The median of the ratio of the second's time to the first's, round by round.
 * Both run within seconds, so they have the same caches.
 */
static double
median_ratio(const double *first, const double *second, int n)
{
	double		ratios[MAX_ROUNDS];

	for (int i = 0; i < n; i++)
		ratios[i] = second[i] / first[i];
	return median(ratios, n);
}

/*
 * (shape, random, lookups, rounds) -> {TIDs; bytes of tidset, TidStore and
 * array; ns per lookup of these and of tidset's batches; times of TidStore and
 * array relative to tidset}.  The results are medians of the rounds, which
 * take turns.
 */
Datum
tidset_compare(PG_FUNCTION_ARGS)
{
	int			shape = PG_GETARG_INT32(0);
	bool		random = PG_GETARG_BOOL(1);
	int			n = PG_GETARG_INT32(2);
	int			rounds = PG_GETARG_INT32(3);
	Rivals		rivals = {
		.context = AllocSetContextCreate(CurrentMemoryContext, "rivals",
										 ALLOCSET_DEFAULT_SIZES)};
	double		took[NLOOKERS][MAX_ROUNDS];
	int			found[NLOOKERS] = {0};
	ItemPointerData *tids = make_lookups(shape, random, n);
	Datum		result[4 + NLOOKERS + 2];

	if (rounds < 1 || rounds > MAX_ROUNDS)
		elog(ERROR, "rounds must be between 1 and %d", MAX_ROUNDS);
	fill_rivals(&rivals, shape);
	for (int round = 0; round < rounds; round++)
	{
		for (int i = 0; i < NLOOKERS; i++)
		{
			instr_time	start;
			instr_time	end;

			CHECK_FOR_INTERRUPTS();
			INSTR_TIME_SET_CURRENT(start);
			found[i] = lookers[i] (&rivals, tids, n);
			INSTR_TIME_SET_CURRENT(end);
			INSTR_TIME_SUBTRACT(end, start);
			took[i][round] = INSTR_TIME_GET_DOUBLE(end) * 1e9 / n;
		}
	}
	for (int i = 2; i < NLOOKERS; i++)
	{
		if (found[i] != found[0])
			elog(ERROR, "found %d, should be %d", found[0], found[i]);
	}
#ifdef COMPAT_HAS_TIDSTORE
	if (found[1] != found[0])
		elog(ERROR, "found %d, TidStore %d", found[0], found[1]);
	TidStoreDestroy(rivals.store);
#endif
	result[0] = Float8GetDatum(rivals.array.n);
	result[1] = Float8GetDatum(rivals.tidset_bytes);
	result[2] = Float8GetDatum(rivals.tidstore_bytes);
	result[3] = Float8GetDatum(array_memory(&rivals.array));
	for (int i = 0; i < NLOOKERS; i++)
		result[4 + i] = Float8GetDatum(median(took[i], rounds));
	for (int i = 1; i <= 2; i++)
	{
		double		ratio = median_ratio(took[0], took[i], rounds);

		result[3 + NLOOKERS + i] = Float8GetDatum(ratio);
	}
	tidset_pg_destroy(rivals.set);
	MemoryContextDelete(rivals.context);
	PG_RETURN_ARRAYTYPE_P(construct_array(result, 4 + NLOOKERS + 2, FLOAT8OID,
										  sizeof(float8), FLOAT8PASSBYVAL,
										  TYPALIGN_DOUBLE));
}

/* ---- the published queries, compared with the server's radix tree ---- */

/* The processor's time, so that others on the machine do not count. */
static double
cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

/*
 * Make a key's 64-bit value: 30 rows, or random bits, of which tidset can
 * store 62.
 */
static uint64
query_value(int query, uint64 key)
{
	return query < 2 ? UINT64CONST(0x7FFFFFFE) :
		(shape_hash(key) & UINT64CONST(0x7FFFFFFFFFFFFFFE)) | 2;
}

static void
add_value(TidSet *set, uint64 key, uint64 value)
{
	uint16		offsets[64];
	int			n = 0;

	for (; value != 0; value &= value - 1)
		offsets[n++] = __builtin_ctzll(value);
	if (!ts_add(set, key, offsets, n))
		elog(ERROR, "tidset is full");
}

/*
 * Run a query.  The first two queries look up each row, the others each key
 * once.
 */
static pg_noinline uint64
search_tidset(TidSet *set, int query, const uint64 *keys, uint64 n)
{
	TidSetLookup lookup;
	uint64		found = 0;

	tidset_lookup_begin(set, &lookup);
	for (uint64 i = 0; i < n; i++)
	{
		if (query >= 2)
			found += ts_lookup(&lookup, keys[i], 17);
		else
			for (int off = 1; off <= 30; off++)
				found += ts_lookup(&lookup, keys[i], off);
	}
	return found;
}

#ifdef COMPAT_HAS_TIDSTORE
static pg_noinline uint64
search_tree(query_tree_radix_tree *tree, int query, const uint64 *keys,
			uint64 n)
{
	uint64		found = 0;

	for (uint64 i = 0; i < n; i++)
	{
		if (query >= 2)
			found += *query_tree_find(tree, keys[i]) >> 17 & 1;
		else
			for (int off = 1; off <= 30; off++)
				found += *query_tree_find(tree, keys[i]) >> off & 1;
	}
	return found;
}
#endif

/*
 * (query 0 .. 3, sorted, rounds) -> {bytes of tidset and of the server's radix
 * tree, ms to search them, ms to load them, time of the tree's search relative
 * to tidset's}.  Searches take turns; the results are medians of the rounds.
 */
Datum
tidset_query(PG_FUNCTION_ARGS)
{
	int			query = PG_GETARG_INT32(0);
	uint64	   *keys = palloc_extended(2 * QUERY_KEYS * sizeof(uint64),
									   MCXT_ALLOC_HUGE);
	uint64	   *ordered = keys + QUERY_KEYS;
	uint64		n = query_keys(query, keys);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "set",
												  0, 0, 8192);
	size_t		before = context_bytes(context);
	TidSet	   *set = tidset_pg_create(context, 1024 * 1024 * 1024);
	double		measures[7] = {0};
	double		took[2][MAX_ROUNDS] = {0};
	int			rounds = PG_GETARG_INT32(2);
	Datum		result[7];

	if (rounds < 1 || rounds > MAX_ROUNDS)
		elog(ERROR, "rounds must be between 1 and %d", MAX_ROUNDS);
	memcpy(ordered, keys, n * sizeof(uint64));
	if (PG_GETARG_BOOL(1))
		qsort(ordered, n, sizeof(uint64), query_compare_keys);
	else if (query < 2)
		query_shuffle(ordered, n);
	measures[4] -= cpu_ms();
	for (uint64 i = 0; i < n; i++)
		add_value(set, ordered[i], query_value(query, ordered[i]));
	tidset_seal(set);
	measures[4] += cpu_ms();
	measures[0] = context_bytes(context) - before;
	{
		uint64		found = 0;
#ifdef COMPAT_HAS_TIDSTORE
		MemoryContext tree_context =
			AllocSetContextCreate(CurrentMemoryContext, "tree",
								  ALLOCSET_SMALL_SIZES);
		query_tree_radix_tree *tree = query_tree_create(tree_context);

		measures[5] -= cpu_ms();
		for (uint64 i = 0; i < n; i++)
		{
			uint64		value = query_value(query, ordered[i]);

			query_tree_set(tree, ordered[i], &value);
		}
		measures[5] += cpu_ms();
		measures[1] = query_tree_memory_usage(tree);
#endif
		for (int round = 0; round < rounds; round++)
		{
			double		start = cpu_ms();
			double		end;

			found = search_tidset(set, query, keys, n);
			end = cpu_ms();
			took[0][round] = end - start;
			CHECK_FOR_INTERRUPTS();
#ifdef COMPAT_HAS_TIDSTORE
			start = cpu_ms();
			if (search_tree(tree, query, keys, n) != found)
				elog(ERROR, "the radix tree found something else");
			end = cpu_ms();
			took[1][round] = end - start;
#endif
		}
	}
	measures[2] = median(took[0], rounds);
	measures[3] = median(took[1], rounds);
	measures[6] = median_ratio(took[0], took[1], rounds);
	for (int i = 0; i < 7; i++)
		result[i] = Float8GetDatum(measures[i]);
	PG_RETURN_ARRAYTYPE_P(construct_array(result, 7, FLOAT8OID, sizeof(float8),
										  FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

/* ---- tests ---- */

static void
fill_and_seal(TidSet *set, int shape)
{
	OffsetNumber offsets[SHAPE_MAX];

	for (BlockNumber block = 0; block < SHAPE_BLOCKS; block++)
	{
		int			n = shape_offsets(shape, block, offsets);

		if (!tidset_add_block(set, block, offsets, n))
			elog(ERROR, "tidset is full");
	}
	tidset_seal(set);
}

/* Check every offset up to 300 of every 7th block, dead or not. */
static void
check_lookups(TidSet *set, int shape)
{
	OffsetNumber offsets[SHAPE_MAX];
	TidSetLookup lookup;

	tidset_lookup_begin(set, &lookup);
	for (BlockNumber block = 0; block < SHAPE_BLOCKS; block += 7)
	{
		int			n = shape_offsets(shape, block, offsets);
		int			at = 0;

		for (OffsetNumber off = 1; off <= 300; off++)
		{
			ItemPointerData tid;
			bool		expected = at < n && offsets[at] == off;

			ItemPointerSet(&tid, block, off);
			if (tidset_pg_lookup(&lookup, &tid) != expected)
				elog(ERROR, "wrong answer for (%u,%u)", block, off);
			at += expected;
		}
	}
}

/*
 * An allowance for the context itself, and for the memory that it keeps for
 * small allocations.  With assertions each allocation has a sentinel.
 */
#ifdef MEMORY_CONTEXT_CHECKING
#define SLACK	16384
#else
#define SLACK	8192
#endif

/* shape -> true; raises an error if a local set or its memory use is wrong */
Datum
tidset_local_check(PG_FUNCTION_ARGS)
{
	int			shape = PG_GETARG_INT32(0);
	MemoryContext parent = AllocSetContextCreate(CurrentMemoryContext, "test",
												 ALLOCSET_SMALL_SIZES);
	size_t		before = context_bytes(parent);
	TidSet	   *set = tidset_pg_create(parent, 64 * 1024 * 1024);
	size_t		given;
	const char *problem;

	fill_and_seal(set, shape);
	check_lookups(set, shape);
	problem = tidset_check(set);
	if (problem)
		elog(ERROR, "%s", problem);
	given = context_bytes(parent) - before;
	if (given > tidset_memory(set) + SLACK ||
		tidset_memory(set) > given + SLACK)
		elog(ERROR, "memory is %zu, not %zu", given,
			 (size_t) tidset_memory(set));
	tidset_reset(set);
	fill_and_seal(set, (shape + 1) % NSHAPES);
	check_lookups(set, (shape + 1) % NSHAPES);
	tidset_pg_destroy(set);
	if (context_bytes(parent) != before)
		elog(ERROR, "memory was not given back");
	MemoryContextDelete(parent);
	PG_RETURN_BOOL(true);
}

/*
 * Make a set that other sessions may read while this session lives: {area,
 * set}.
 */
Datum
tidset_share(PG_FUNCTION_ARGS)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	dsa_area   *area = dsa_create(CompatNewTranche("tidset"));
	TidSet	   *set;
	Datum		result[2];

	dsa_pin_mapping(area);
	set = tidset_pg_create_shared(TopMemoryContext, area, 64 * 1024 * 1024);
	/* as after an earlier index pass */
	fill_and_seal(set, (PG_GETARG_INT32(0) + 1) % NSHAPES);
	tidset_reset(set);
	fill_and_seal(set, PG_GETARG_INT32(0));
	check_lookups(set, PG_GETARG_INT32(0));
	MemoryContextSwitchTo(old);
	result[0] = Int64GetDatum((int64) dsa_get_handle(area));
	result[1] = Int64GetDatum((int64) tidset_handle(set));
	PG_RETURN_ARRAYTYPE_P(construct_array(result, 2, INT8OID, sizeof(int64),
										  FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

/*
 * (area, set, shape) -> number of TIDs; raises an error if a lookup returns a
 * wrong result
 */
Datum
tidset_attach_and_check(PG_FUNCTION_ARGS)
{
	dsa_area   *area = dsa_attach((dsa_handle) PG_GETARG_INT64(0));
	TidSet	   *set = tidset_pg_attach(CurrentMemoryContext, area,
									   (dsa_pointer) PG_GETARG_INT64(1));
	int64		count;

	check_lookups(set, PG_GETARG_INT32(2));
	count = (int64) tidset_count(set);
	tidset_detach(set);
	dsa_detach(area);
	PG_RETURN_INT64(count);
}

/*
 * Fill a set in an area, as in a parallel VACUUM, until it is full: {memory of
 * the area then (0 before version 17, which reports it), memory that the set
 * counts, its blocks}.
 */
Datum
tidset_shared_limit(PG_FUNCTION_ARGS)
{
	Size		limit = (Size) PG_GETARG_INT64(0);
	Size		size = Min(limit, 1024 * 1024);
	void	   *place = palloc(size);
	dsa_area   *area = dsa_create_in_place(place, size,
										   CompatNewTranche("tidset"), NULL);
	TidSet	   *set = tidset_pg_create_shared(CurrentMemoryContext, area,
											  limit);
	BlockNumber block = 0;
	Datum		result[3];

	for (;; block++)
	{
		/* 20 of 200, at other places in each block */
		OffsetNumber offsets[20];

		for (int i = 0; i < 20; i++)
			offsets[i] = 1 + 10 * i + (block * (2654435761u + i) >> 13) % 10;
		if (!tidset_add_block(set, block, offsets, 20))
			break;
	}
#ifdef COMPAT_HAS_TIDSTORE
	result[0] = Int64GetDatum((int64) dsa_get_total_size(area));
#else
	result[0] = Int64GetDatum(0);
#endif
	result[1] = Int64GetDatum((int64) tidset_memory(set));
	result[2] = Int64GetDatum((int64) block);
	tidset_pg_destroy(set);
	dsa_detach(area);
	dsa_release_in_place(place);
	PG_RETURN_ARRAYTYPE_P(construct_array(result, 3, INT8OID, sizeof(int64),
										  FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}
