/*-------------------------------------------------------------------------
 * pb_sort.c
 *	  Sorting of a new index's rows.
 *
 * Three ways.  Where equal keys are identical, rows are put together by key as
 * they come (pb_group.c), and keys are sorted: if there are many rows for a
 * key, that is all.  Where keys are short, of fixed width, and compare as
 * bytes, they are sorted as such, with their TIDs, in words.  Else, or if
 * memory does not suffice for one of these, the rows are index tuples in
 * core's sort.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_am_d.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"

#include "pb_group.h"
#include "pb_sort.h"
#include "pb_tuple.h"

/* The number of rows after which it is decided whether keys repeat. */
#define ROWS_TO_DECIDE		65536

/* The minimum number of rows for a key that justifies grouping. */
#define ROWS_FOR_A_KEY		4

/*
 * The maximum number of rows for a key: the number is an int, and a list's
 * room grows fourfold.
 */
#define MAX_ROWS_IN_GROUPS	(INT_MAX / 8)

#define TID_LEN				6

/* A key with its TID: for each column a NULL mark and its bytes. */
typedef struct Word3
{
	uint64		w[3];
} Word3;

struct PbSort
{
	Relation	heap;
	Relation	rel;
	PbIndex    *index;
	int			memory;			/* kB */
	MemoryContext row;
	Tuplesortstate *tuples;		/* or NULL */
	PbGroups   *groups;			/* or NULL */
	int64		nrows;
	Word3	   *words;			/* or NULL */
	int64		nwords;
	int64		room;
	int64		at;				/* next result */
	ItemPointerData tid;		/* of the current row */
	PbKey		key;
};

#define ST_SORT				sort_words
#define ST_ELEMENT_TYPE		Word3
#define ST_COMPARE(a, b)	compare_words(a, b)
#define ST_SCOPE			static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DEFINE

static inline int
compare_words(const Word3 *a, const Word3 *b)
{
	for (int i = 0; i < 3; i++)
	{
		if (a->w[i] != b->w[i])
			return a->w[i] < b->w[i] ? -1 : 1;
	}
	return 0;
}

#include "lib/sort_template.h"

/*
 * Before version 18 only the access method btree can sort index tuples.  The
 * order is the same, so the sort gets a relation that claims to be a btree.
 */
static Relation
disguise(Relation rel)
{
	Relation	copy = palloc(sizeof(RelationData));

	*copy = *rel;
	copy->rd_rel = palloc(CLASS_TUPLE_SIZE);
	memcpy(copy->rd_rel, rel->rd_rel, CLASS_TUPLE_SIZE);
	copy->rd_rel->relam = BTREE_AM_OID;
	return copy;
}

static void
begin_tuples(PbSort *sort)
{
	sort->tuples = tuplesort_begin_index_btree(sort->heap, disguise(sort->rel),
											   false, false, sort->memory, NULL,
											   TUPLESORT_NONE);
}

PbSort *
pb_sort_begin(Relation heap, Relation rel, PbIndex *index, int memory)
{
	PbSort	   *sort = palloc0(sizeof(PbSort));

	sort->heap = heap;
	sort->rel = rel;
	sort->index = index;
	sort->memory = memory;
	sort->row = AllocSetContextCreate(CurrentMemoryContext, "pbtree row",
									  ALLOCSET_DEFAULT_SIZES);
	if (index->equalimage)
		sort->groups = pb_group_begin(index);
	else
		begin_tuples(sort);
	return sort;
}

/* ---- keys as words ----------------------------------------------------- */

static bool
fit_words(const PbIndex *index)
{
	return index->bytes && index->natts == index->nkeys && index->fixed > 0 &&
		index->fixed + index->natts + TID_LEN <= (int) sizeof(Word3);
}

static void
add_words(PbSort *sort, const PbKey *key)
{
	uint8		bytes[sizeof(Word3)] = {0};
	uint8	   *to = bytes;
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(&key->tid);
	OffsetNumber offset = ItemPointerGetOffsetNumberNoCheck(&key->tid);
	Word3	   *words;

	if (sort->nwords >= sort->room)
	{
		sort->room = Max(sort->room * 2, 1024);
		sort->words = sort->words ? repalloc_huge(sort->words,
												  sort->room * sizeof(Word3)) :
			palloc(sort->room * sizeof(Word3));
	}
	for (int i = 0; i < key->natts; i++)
	{
		const PbColumn *col = &sort->index->col[i];
		bool		isnull = pb_key_state(key, i) == PB_COL_NULL;

		*to++ = !isnull ? 1 : col->nulls_first ? 0 : 2;
		if (!isnull)
			memcpy(to, key->data + key->off[i], col->fixed);
		to += col->fixed;
	}
	for (int i = 24; i >= 0; i -= 8)
		*to++ = (uint8) (block >> i);
	*to++ = (uint8) (offset >> 8);
	*to++ = (uint8) offset;
	Assert(to <= bytes + sizeof(bytes));
	words = &sort->words[sort->nwords++];
	for (int i = 0; i < 3; i++)
	{
		uint64		w;

		memcpy(&w, bytes + i * sizeof(w), sizeof(w));
		words->w[i] = pg_ntoh64(w);
	}
}

static void
get_words(PbSort *sort, const Word3 *words, PbKey *key)
{
	uint8		bytes[sizeof(Word3)];
	const uint8 *p = bytes;

	for (int i = 0; i < 3; i++)
	{
		uint64		w = pg_hton64(words->w[i]);

		memcpy(bytes + i * sizeof(w), &w, sizeof(w));
	}
	pb_key_begin(key);
	key->natts = sort->index->natts;
	for (int i = 0; i < key->natts; i++)
	{
		int			len = sort->index->col[i].fixed;

		key->off[i] = key->len;
		if (*p++ != 1)
			pb_key_set_null(key, sort->index, i);
		else
		{
			memcpy(key->data + key->len, p, len);
			key->len += len;
		}
		p += len;
	}
	key->off[key->natts] = key->len;
	key->parsed = key->natts;
	ItemPointerSet(&key->tid,
				   (BlockNumber) p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3],
				   p[4] << 8 | p[5]);
}

/* ---- index tuples ------------------------------------------------------ */

static void
put_tuple(PbSort *sort, const Datum *values, bool *isnull,
		  const ItemPointerData *tid)
{
	Datum		packed[INDEX_MAX_KEYS];

	pb_tuple_pack(sort->index, values, isnull, packed);
	tuplesort_putindextuplevalues(sort->tuples, sort->rel,
								  unconstify(ItemPointerData *, tid), packed,
								  isnull);
}

static void
add_tuple(PbSort *sort, const PbKey *key, const ItemPointerData *tid)
{
	PbArena		arena;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	MemoryContext old = MemoryContextSwitchTo(sort->row);

	arena.used = 0;
	for (int i = 0; i < key->natts; i++)
		values[i] = pb_key_datum(sort->index, key, i, &isnull[i], &arena);
	put_tuple(sort, values, isnull, tid);
	MemoryContextSwitchTo(old);
	MemoryContextReset(sort->row);
}

static void
words_to_tuples(PbSort *sort)
{
	begin_tuples(sort);
	for (int64 i = 0; i < sort->nwords; i++)
	{
		get_words(sort, &sort->words[i], &sort->key);
		add_tuple(sort, &sort->key, &sort->key.tid);
	}
	if (sort->words)
		pfree(sort->words);
	sort->words = NULL;
	sort->nwords = 0;
}

/* Switch to another way of sorting if keys have too few or too many rows. */
static void
give_up_groups(PbSort *sort)
{
	bool		words = fit_words(sort->index) &&
		pb_group_memory(sort->groups) < (Size) sort->memory * 1024 / 2;

	if (!words)
		begin_tuples(sort);
	for (int i = 0; i < pb_group_count(sort->groups); i++)
	{
		const ItemPointerData *tids;
		int			n = pb_group_get(sort->groups, i, &sort->key, &tids);

		for (int j = 0; j < n; j++)
		{
			sort->key.tid = tids[j];
			if (words)
				add_words(sort, &sort->key);
			else
				add_tuple(sort, &sort->key, &tids[j]);
		}
	}
	pb_group_end(sort->groups);
	sort->groups = NULL;
}

/* ---- all ways ---------------------------------------------------------- */

static bool
groups_pay(PbSort *sort)
{
	int64		n = sort->nrows;

	if (n > MAX_ROWS_IN_GROUPS)
		return false;
	if (n % 1024 == 0 &&
		pb_group_memory(sort->groups) > (Size) sort->memory * 1024)
		return false;
	return n < ROWS_TO_DECIDE || (n & (n - 1)) != 0 ||
		pb_group_count(sort->groups) < n / ROWS_FOR_A_KEY;
}

void
pb_sort_add(PbSort *sort, ItemPointer tid, Datum *values, bool *isnull)
{
	MemoryContext old;

	sort->nrows++;
	old = MemoryContextSwitchTo(sort->row);
	if (sort->tuples != NULL)
		put_tuple(sort, values, isnull, tid);
	else
		pb_key_form(sort->rel, sort->index, values, isnull, &sort->key);
	MemoryContextSwitchTo(old);
	if (sort->nrows % 64 == 0)
		MemoryContextReset(sort->row);
	if (sort->tuples != NULL)
		return;
	sort->key.tid = *tid;
	if (sort->groups != NULL)
	{
		pb_group_add(sort->groups, &sort->key);
		if (!groups_pay(sort))
			give_up_groups(sort);
	}
	else
	{
		add_words(sort, &sort->key);
		if (sort->nwords == sort->room &&
			sort->room * 2 * sizeof(Word3) > (Size) sort->memory * 1024)
			words_to_tuples(sort);
	}
}

/* Encode a group's number as a TID that is sorted with its key. */
#define GROUPS_PER_BLOCK	32768

void
pb_sort_perform(PbSort *sort)
{
	if (sort->groups != NULL)
	{
		begin_tuples(sort);
		for (int i = 0; i < pb_group_count(sort->groups); i++)
		{
			const ItemPointerData *tids;
			ItemPointerData number;

			(void) pb_group_get(sort->groups, i, &sort->key, &tids);
			ItemPointerSet(&number, i / GROUPS_PER_BLOCK,
						   i % GROUPS_PER_BLOCK + 1);
			add_tuple(sort, &sort->key, &number);
		}
	}
	if (sort->tuples != NULL)
		tuplesort_performsort(sort->tuples);
	else if (sort->nwords > 0)
		sort_words(sort->words, sort->nwords);
	sort->at = 0;
}

/*
 * Get the next key, and its TIDs, or some of them.  Returns false after the
 * last one.
 */
bool
pb_sort_next(PbSort *sort, PbKey *key, const ItemPointerData **tids, int *n)
{
	IndexTuple	tuple;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	MemoryContext old;

	*n = 1;
	if (sort->tuples == NULL)
	{
		if (sort->at >= sort->nwords)
			return false;
		get_words(sort, &sort->words[sort->at++], key);
		*tids = &key->tid;
		return true;
	}
	tuple = tuplesort_getindextuple(sort->tuples, true);
	if (tuple == NULL)
		return false;
	if (sort->groups != NULL)
	{
		int			number = ItemPointerGetBlockNumber(&tuple->t_tid) *
			GROUPS_PER_BLOCK +
			ItemPointerGetOffsetNumber(&tuple->t_tid) - 1;

		*n = pb_group_get(sort->groups, number, key, tids);
		key->tid = (*tids)[0];
		return true;
	}
	old = MemoryContextSwitchTo(sort->row);
	index_deform_tuple(tuple, RelationGetDescr(sort->rel), values, isnull);
	pb_key_form(sort->rel, sort->index, values, isnull, key);
	MemoryContextSwitchTo(old);
	MemoryContextReset(sort->row);
	sort->tid = key->tid = tuple->t_tid;
	*tids = &sort->tid;
	return true;
}

void
pb_sort_end(PbSort *sort)
{
	if (sort->tuples != NULL)
		tuplesort_end(sort->tuples);
	if (sort->groups != NULL)
		pb_group_end(sort->groups);
	if (sort->words != NULL)
		pfree(sort->words);
	MemoryContextDelete(sort->row);
	pfree(sort);
}
