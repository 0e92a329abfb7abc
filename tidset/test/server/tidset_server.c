/*-------------------------------------------------------------------------
 * tidset_server.c
 *	  tidset in a server, for tests and for comparison with the server's own.
 *
 * Functions are made by run.sh.  From PostgreSQL 17 on the comparison has
 * TidStore, which VACUUM uses there.
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

/* 15's macro is empty outside of Windows, but symbols are hidden by default */
#undef PGDLLEXPORT
#define PGDLLEXPORT __attribute__((visibility("default")))

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#if PG_VERSION_NUM >= 170000
#include "access/tidstore.h"
#endif

#include "tidset_pg.h"
#include "tidset_shapes.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT Datum tidset_compare(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum tidset_share(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum tidset_attach_and_check(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum tidset_local_check(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(tidset_compare);
PG_FUNCTION_INFO_V1(tidset_share);
PG_FUNCTION_INFO_V1(tidset_attach_and_check);
PG_FUNCTION_INFO_V1(tidset_local_check);

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
	return (uint64) ItemPointerGetBlockNumber(tid) << 16 | ItemPointerGetOffsetNumber(tid);
}

/* What is before the first or behind the last needs no search. */
static pg_noinline bool
array_member(const TidArray *array, ItemPointer tid)
{
	uint64		number = tid_number(tid);

	if (array->n == 0 || number < tid_number(&array->tids[0]) ||
		number > tid_number(&array->tids[array->n - 1]))
		return false;
	return bsearch(tid, array->tids, array->n, sizeof(ItemPointerData), compare_tids) != NULL;
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
#if PG_VERSION_NUM >= 170000
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
	MemoryContext set_context = AllocSetContextCreate(rivals->context, "set", 0, 0, 8192);
	size_t		before = context_bytes(set_context);

	rivals->array.n = fill_array(rivals, shape, true);
	rivals->array.tids = MemoryContextAllocHuge(rivals->context, array_memory(&rivals->array) + 1);
	(void) fill_array(rivals, shape, false);
	rivals->set = tidset_pg_create(set_context, 1024 * 1024 * 1024);
#if PG_VERSION_NUM >= 170000
	rivals->store = TidStoreCreateLocal(1024 * 1024 * 1024, true);
#endif
	for (BlockNumber block = 0; block < SHAPE_BLOCKS; block++)
	{
		int			n = shape_offsets(shape, block, offsets);

		if (n == 0)
			continue;
		if (!tidset_add_block(rivals->set, block, offsets, n))
			elog(ERROR, "tidset is full");
#if PG_VERSION_NUM >= 170000
		TidStoreSetBlockOffsets(rivals->store, block, offsets, n);
#endif
	}
	tidset_seal(rivals->set);
	/* what the server gave, not what the set says */
	rivals->tidset_bytes = context_bytes(set_context) - before;
#if PG_VERSION_NUM >= 170000
	rivals->tidstore_bytes = TidStoreMemoryUsage(rivals->store);
#endif
}

/* TIDs of an index: all rows, dead or not, in the table's order or in none. */
static ItemPointerData *
make_lookups(int shape, bool random, int n)
{
	ItemPointerData *tids = palloc_extended(n * sizeof(ItemPointerData), MCXT_ALLOC_HUGE);
	uint32		rows = shape >= 7 ? 226 : shape == 0 ? 60 : 61;
	uint64		start = 20000;

	for (uint64 i = 0; i < n; i++)
	{
		uint64		row = random ? shape_hash(i + 77) % ((uint64) SHAPE_BLOCKS * rows) :
			(start * rows + i) % ((uint64) SHAPE_BLOCKS * rows);

		ItemPointerSet(&tids[i], row / rows, 1 + row % rows);
	}
	return tids;
}

static pg_noinline int
look_tidset(Rivals *rivals, ItemPointerData *tids, int n)
{
	int			found = 0;

	for (int i = 0; i < n; i++)
		found += tidset_pg_member(rivals->set, &tids[i]);
	return found;
}

static pg_noinline int
look_tidstore(Rivals *rivals, ItemPointerData *tids, int n)
{
	int			found = 0;

#if PG_VERSION_NUM >= 170000
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

/* In steps of a leaf page's worth of TIDs, as an index access method of ours would. */
static pg_noinline int
look_batch(Rivals *rivals, ItemPointerData *tids, int n)
{
	bool		found[256];
	int			total = 0;

	for (int i = 0; i < n; i += 256)
		total += tidset_member_batch(rivals->set, (TidSetTid *) &tids[i], Min(256, n - i), found);
	return total;
}

typedef int (*LookFunction) (Rivals *rivals, ItemPointerData *tids, int n);

static const LookFunction lookers[] = {look_tidset, look_tidstore, look_array, look_batch};

#define NLOOKERS	4

/*
 * (shape, random, lookups, rounds) -> {TIDs; bytes of tidset, TidStore and array;
 * ns per lookup of these and of tidset's batches}.  The best of the rounds, which take
 * turns.
 */
Datum
tidset_compare(PG_FUNCTION_ARGS)
{
	int			shape = PG_GETARG_INT32(0);
	bool		random = PG_GETARG_BOOL(1);
	int			n = PG_GETARG_INT32(2);
	int			rounds = PG_GETARG_INT32(3);
	Rivals		rivals = {.context = AllocSetContextCreate(CurrentMemoryContext, "rivals",
														   ALLOCSET_DEFAULT_SIZES)};
	double		best[NLOOKERS] = {0};
	int			found[NLOOKERS] = {0};
	ItemPointerData *tids = make_lookups(shape, random, n);
	Datum		result[4 + NLOOKERS];

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
			if (round == 0 || INSTR_TIME_GET_DOUBLE(end) < best[i])
				best[i] = INSTR_TIME_GET_DOUBLE(end);
		}
	}
	for (int i = 2; i < NLOOKERS; i++)
	{
		if (found[i] != found[0])
			elog(ERROR, "found %d, should be %d", found[0], found[i]);
	}
#if PG_VERSION_NUM >= 170000
	if (found[1] != found[0])
		elog(ERROR, "found %d, TidStore %d", found[0], found[1]);
	TidStoreDestroy(rivals.store);
#endif
	result[0] = Float8GetDatum(rivals.array.n);
	result[1] = Float8GetDatum(rivals.tidset_bytes);
	result[2] = Float8GetDatum(rivals.tidstore_bytes);
	result[3] = Float8GetDatum(array_memory(&rivals.array));
	for (int i = 0; i < NLOOKERS; i++)
		result[4 + i] = Float8GetDatum(best[i] * 1e9 / n);
	tidset_pg_destroy(rivals.set);
	MemoryContextDelete(rivals.context);
	PG_RETURN_ARRAYTYPE_P(construct_array(result, 4 + NLOOKERS, FLOAT8OID, sizeof(float8),
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

/* Every offset up to 300 of every 7th block, dead or not. */
static void
check_lookups(TidSet *set, int shape)
{
	OffsetNumber offsets[SHAPE_MAX];

	for (BlockNumber block = 0; block < SHAPE_BLOCKS; block += 7)
	{
		int			n = shape_offsets(shape, block, offsets);
		int			at = 0;

		for (OffsetNumber off = 1; off <= 300; off++)
		{
			ItemPointerData tid;
			bool		expected = at < n && offsets[at] == off;

			ItemPointerSet(&tid, block, off);
			if (tidset_pg_member(set, &tid) != expected)
				elog(ERROR, "wrong answer for (%u,%u)", block, off);
			at += expected;
		}
	}
}

/* shape -> true; errors if anything is wrong with a local set, also with its memory */
Datum
tidset_local_check(PG_FUNCTION_ARGS)
{
	int			shape = PG_GETARG_INT32(0);
	MemoryContext parent = AllocSetContextCreate(CurrentMemoryContext, "test", ALLOCSET_SMALL_SIZES);
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
	/* the context itself, and what it keeps for small allocations */
	if (given > tidset_memory(set) + 8192 || tidset_memory(set) > given + 8192)
		elog(ERROR, "memory is %zu, not %zu", given, (size_t) tidset_memory(set));
	tidset_reset(set);
	fill_and_seal(set, (shape + 1) % NSHAPES);
	check_lookups(set, (shape + 1) % NSHAPES);
	tidset_pg_destroy(set);
	if (context_bytes(parent) != before)
		elog(ERROR, "memory was not given back");
	MemoryContextDelete(parent);
	PG_RETURN_BOOL(true);
}

/* A set that other sessions may look at as long as this one lives: {area, set}. */
Datum
tidset_share(PG_FUNCTION_ARGS)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	dsa_area   *area = dsa_create(LWLockNewTrancheId());
	TidSet	   *set;
	Datum		result[2];

	dsa_pin_mapping(area);
	set = tidset_pg_create_shared(TopMemoryContext, area, 64 * 1024 * 1024);
	/* as if there had been an index pass before */
	fill_and_seal(set, (PG_GETARG_INT32(0) + 1) % NSHAPES);
	tidset_reset(set);
	fill_and_seal(set, PG_GETARG_INT32(0));
	check_lookups(set, PG_GETARG_INT32(0));
	MemoryContextSwitchTo(old);
	result[0] = Int64GetDatum((int64) dsa_get_handle(area));
	result[1] = Int64GetDatum((int64) tidset_handle(set));
	PG_RETURN_ARRAYTYPE_P(construct_array(result, 2, INT8OID, sizeof(int64), FLOAT8PASSBYVAL,
										  TYPALIGN_DOUBLE));
}

/* (area, set, shape) -> number of TIDs; errors if a lookup gives the wrong answer */
Datum
tidset_attach_and_check(PG_FUNCTION_ARGS)
{
	dsa_area   *area = dsa_attach((dsa_handle) PG_GETARG_INT64(0));
	TidSet	   *set = tidset_pg_attach(CurrentMemoryContext, area, (dsa_pointer) PG_GETARG_INT64(1));
	int64		count;

	check_lookups(set, PG_GETARG_INT32(2));
	count = (int64) tidset_count(set);
	tidset_detach(set);
	dsa_detach(area);
	PG_RETURN_INT64(count);
}
