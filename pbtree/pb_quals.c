/*-------------------------------------------------------------------------
 * pb_quals.c
 *	  A scan's conditions: ranges of keys, and remaining checks.
 *
 * Leading columns with "=", IS NULL or "= ANY", and what bounds the column
 * behind them, make a range of keys.  Each row of it satisfies them, so they
 * are not checked again.  With "= ANY" there is a range for each combination
 * of elements, in the order of the index.  All other conditions are checked
 * for each row.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/nbtree.h"
#include "catalog/pg_type_d.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "pb_quals.h"

/* The type of a condition's value. */
static Oid
argument_type(const PbQuals *q, const ScanKeyData *key)
{
	return OidIsValid(key->sk_subtype) ?
		key->sk_subtype : q->rel->rd_opcintype[key->sk_attno - 1];
}

/* Returns false if the operator family has none. */
static bool
find_order(PbQuals *q, MemoryContext context, int column, Oid left, Oid right,
		   FmgrInfo *info)
{
	Oid			proc = get_opfamily_proc(q->rel->rd_opfamily[column], left,
										 right, BTORDER_PROC);

	if (OidIsValid(proc))
		fmgr_info_cxt(proc, info, context);
	return OidIsValid(proc);
}

static void
no_order(const PbQuals *q, int column, Oid left, Oid right)
{
	elog(ERROR,
		 "missing support function %d(%u,%u) for attribute %d of index \"%s\"",
		 BTORDER_PROC, left, right, column + 1,
		 RelationGetRelationName(q->rel));
}

/*
 * Find the comparison function for a column's values and a condition's; or
 * NULL.  All are found in advance, because catalogs are not read while a page
 * is locked.
 */
static FmgrInfo *
cross_order(PbQuals *q, const ScanKeyData *key)
{
	int			column = key->sk_attno - 1;
	Oid			type = argument_type(q, key);
	Oid			own = q->rel->rd_opcintype[column];
	MemoryContext context = MemoryContextGetParent(q->context);
	PbCross    *cross;

	if (type == own)
		return index_getprocinfo(q->rel, column + 1, BTORDER_PROC);
	for (int i = 0; i < q->ncross; i++)
	{
		cross = &q->cross[i];
		if (cross->column == column && cross->type == type)
			return cross->found ? &cross->order : NULL;
	}
	if (q->cross == NULL)
		q->cross = MemoryContextAlloc(context, sizeof(PbCross) * q->most_cross);
	Assert(q->ncross < q->most_cross);
	cross = &q->cross[q->ncross++];
	cross->column = column;
	cross->type = type;
	cross->found = find_order(q, context, column, own, type, &cross->order);
	return cross->found ? &cross->order : NULL;
}

static FmgrInfo *
order_of(PbQuals *q, const ScanKeyData *key)
{
	FmgrInfo   *info = cross_order(q, key);

	if (info == NULL)
		no_order(q, key->sk_attno - 1, q->rel->rd_opcintype[key->sk_attno - 1],
				 argument_type(q, key));
	return info;
}

/* Compare two of a condition's values. */
static FmgrInfo *
element_order(PbQuals *q, const ScanKeyData *key)
{
	int			column = key->sk_attno - 1;
	Oid			type = argument_type(q, key);
	FmgrInfo   *info;

	if (type == q->rel->rd_opcintype[column])
		return index_getprocinfo(q->rel, column + 1, BTORDER_PROC);
	info = palloc(sizeof(FmgrInfo));
	if (!find_order(q, q->context, column, type, type, info))
		no_order(q, column, type, type);
	return info;
}

/* ---- arrays ------------------------------------------------------------ */

typedef struct SortContext
{
	FmgrInfo   *order;
	Oid			collation;
	bool		desc;
} SortContext;

static int
compare_elements(const void *a, const void *b, void *arg)
{
	SortContext *c = arg;
	int			cmp = DatumGetInt32(FunctionCall2Coll(c->order, c->collation,
													  *(const Datum *) a,
													  *(const Datum *) b));

	if (c->desc)
		return cmp > 0 ? -1 : cmp < 0;
	return cmp;
}

static PbArray *
make_array(PbQuals *q, ScanKey key)
{
	int			column = key->sk_attno - 1;
	ArrayType  *value = DatumGetArrayTypeP(key->sk_argument);
	PbArray    *array = palloc0(sizeof(PbArray));
	int16		len;
	bool		byval;
	char		align;
	Datum	   *elems;
	bool	   *nulls;
	int			n;
	SortContext context;

	get_typlenbyvalalign(ARR_ELEMTYPE(value), &len, &byval, &align);
	deconstruct_array(value, ARR_ELEMTYPE(value), len, byval, align, &elems,
					  &nulls, &n);
	array->key = key;
	array->elems = elems;
	for (int i = 0; i < n; i++)
	{
		if (!nulls[i])
			elems[array->n++] = elems[i];
	}
	array->match = order_of(q, key);
	context.order = element_order(q, key);
	context.collation = key->sk_collation;
	context.desc = q->index->col[column].desc;
	n = array->n;
	qsort_arg(elems, n, sizeof(Datum), compare_elements, &context);
	array->n = Min(n, 1);
	for (int i = 1; i < n; i++)
	{
		if (compare_elements(&elems[i], &elems[array->n - 1], &context) != 0)
			elems[array->n++] = elems[i];
	}
	return array;
}

/*
 * Treat a condition with one value as an array.  Returns NULL if there is no
 * function to compare that value.
 */
PbArray *
pb_quals_make_scalar(PbQuals *q, ScanKey key)
{
	FmgrInfo   *match = cross_order(q, key);
	PbArray    *array;

	if (match == NULL)
		return NULL;
	array = palloc0(sizeof(PbArray));
	array->key = key;
	array->n = 1;
	array->elems = &key->sk_argument;
	array->match = match;
	return array;
}

/* Of an inequality with ANY only one element matters. */
static ScanKey
extreme_element(PbQuals *q, ScanKey key)
{
	PbArray    *array = make_array(q, key);
	ScanKey		scalar = palloc(sizeof(ScanKeyData));
	bool		less = key->sk_strategy < BTEqualStrategyNumber;

	if (array->n == 0)
	{
		q->impossible = true;
		return NULL;
	}
	*scalar = *key;
	scalar->sk_flags &= ~SK_SEARCHARRAY;
	scalar->sk_argument =
		array->elems[less != q->index->col[key->sk_attno - 1].desc ?
					 array->n - 1 : 0];
	return scalar;
}

/* ---- which condition is for what --------------------------------------- */

static void
add_rest(PbQuals *q, ScanKey key, PbArray *array)
{
	q->rest[q->nrest].key = key;
	q->rest[q->nrest++].array = array;
	q->can_skip |= key->sk_attno <= q->index->nkeys;
	q->impossible |= array != NULL && array->n == 0;
}

static bool
is_equality(const ScanKeyData *key)
{
	return (key->sk_flags & SK_SEARCHNULL) ||
		(!(key->sk_flags & SK_SEARCHNOTNULL) &&
		 key->sk_strategy == BTEqualStrategyNumber);
}

/* True if a condition on the column behind the fixed ones bounds the range. */
static bool
take_bound(PbQuals *q, ScanKey key)
{
	bool		less = key->sk_strategy < BTEqualStrategyNumber;
	ScanKey    *bound = less != q->index->col[q->nequal].desc ? &q->high :
		&q->low;

	if (key->sk_flags & SK_SEARCHNOTNULL)
	{
		q->not_null = true;
		return true;
	}
	q->not_null = true;
	if (*bound != NULL)
		return false;
	*bound = key;
	return true;
}

static bool
take_equality(PbQuals *q, int column, ScanKey key)
{
	PbEqual    *e = &q->equal[column];

	if (q->nequal > column)
		return false;
	e->key = key;
	e->array = NULL;
	q->nequal = column + 1;
	if (!(key->sk_flags & SK_SEARCHARRAY))
		return true;
	e->array = make_array(q, key);
	q->impossible |= e->array->n == 0;
	q->arrays[q->narrays++] = e->array;
	return true;
}

static void
sort_out(PbQuals *q, ScanKey *keys, int n)
{
	for (int column = 0; column < q->index->nkeys; column++)
	{
		bool		leading = q->nequal == column;

		for (int i = 0; leading && i < n; i++)
		{
			if (keys[i] && keys[i]->sk_attno == column + 1 &&
				is_equality(keys[i]) && take_equality(q, column, keys[i]))
				keys[i] = NULL;
		}
		for (int i = 0; leading && i < n && q->nequal == column; i++)
		{
			if (keys[i] && keys[i]->sk_attno == column + 1 &&
				!is_equality(keys[i]) && take_bound(q, keys[i]))
				keys[i] = NULL;
		}
	}
	for (int i = 0; i < n; i++)
	{
		if (keys[i])
			add_rest(q, keys[i],
					 (keys[i]->sk_flags & SK_SEARCHARRAY) ?
					 make_array(q, keys[i]) : NULL);
	}
}

void
pb_quals_begin(PbQuals *q, Relation rel, PbIndex *index)
{
	q->rel = rel;
	q->index = index;
	q->context = AllocSetContextCreate(CurrentMemoryContext,
									   "pbtree conditions",
									   ALLOCSET_SMALL_SIZES);
	q->skip = NULL;
	q->ncross = 0;
	q->cross = NULL;
}

void
pb_quals_end(PbQuals *q)
{
	MemoryContextDelete(q->context);
	if (q->skip != NULL)
		pfree(q->skip);
	if (q->cross != NULL)
		pfree(q->cross);
}

/* Set the conditions of a new or restarted scan. */
void
pb_quals_set(PbQuals *q, IndexScanDesc scan)
{
	MemoryContext old;
	ScanKey    *keys;

	MemoryContextReset(q->context);
	old = MemoryContextSwitchTo(q->context);
	q->impossible = false;
	q->nequal = 0;
	q->narrays = 0;
	q->has_range = false;
	q->low = q->high = NULL;
	q->not_null = false;
	q->nrest = 0;
	q->can_skip = false;
	q->most_cross = scan->numberOfKeys;
	q->rest = palloc(sizeof(*q->rest) * (scan->numberOfKeys + 1));
	keys = palloc(sizeof(ScanKey) * (scan->numberOfKeys + 1));
	for (int i = 0; i < scan->numberOfKeys; i++)
	{
		ScanKey		key = &scan->keyData[i];

		keys[i] = key;
		if ((key->sk_flags & SK_ISNULL) &&
			!(key->sk_flags & (SK_SEARCHNULL | SK_SEARCHNOTNULL)))
			q->impossible = true;
		else if (key->sk_flags & SK_ROW_HEADER)
			elog(ERROR, "pbtree indexes do not support row comparisons");
		else if ((key->sk_flags & SK_SEARCHARRAY) &&
				 key->sk_strategy != BTEqualStrategyNumber)
			keys[i] = extreme_element(q, key);
	}
	if (!q->impossible)
		sort_out(q, keys, scan->numberOfKeys);
	MemoryContextSwitchTo(old);
}

/* ---- ranges ------------------------------------------------------------ */

/*
 * Convert a value of another integer type to the column's type, if it is in
 * range.
 */
static bool
convert_integer(const PbColumn *column, Oid type, Datum *value)
{
	int64		v;

	switch (PbCodecKind(column->codec))
	{
		case PB_CODEC_INT2:
		case PB_CODEC_INT4:
		case PB_CODEC_INT8:
			break;
		default:
			return false;
	}
	switch (type)
	{
		case INT2OID:
			v = DatumGetInt16(*value);
			break;
		case INT4OID:
			v = DatumGetInt32(*value);
			break;
		case INT8OID:
			v = DatumGetInt64(*value);
			break;
		default:
			return false;
	}
	if (column->len == sizeof(int64))
		*value = Int64GetDatum(v);
	else if (column->len == sizeof(int32) && v >= PG_INT32_MIN &&
			 v <= PG_INT32_MAX)
		*value = Int32GetDatum((int32) v);
	else if (column->len == sizeof(int16) && v >= PG_INT16_MIN &&
			 v <= PG_INT16_MAX)
		*value = Int16GetDatum((int16) v);
	else
		return false;
	return true;
}

/*
 * Append a column to the position: a value, or NULL if there is no key.
 * "room" is the space for all columns' encodings.
 */
void
pb_quals_add_column(PbQuals *q, PbPos *pos, uint8 *space, int room, ScanKey key,
					Datum value, bool isnull)
{
	int			i = pos->natts;
	PbPosCol   *col = &pos->col[i];
	const PbColumn *column = &q->index->col[i];
	bool		same_type;
	int			len;

	Assert(i < q->index->nkeys && (key == NULL || key->sk_attno == i + 1));
	pos->natts++;
	col->isnull = isnull;
	col->has_value = !isnull;
	col->has_code = false;
	pos->off[i + 1] = pos->off[i];
	if (isnull)
	{
		pos->bytes = false;
		if (!pos->has_map)
			memset(pos->map, 0, sizeof(pos->map));
		pos->has_map = true;
		pos->map[i / 4] |= PB_COL_NULL << (i % 4 * 2);
		return;
	}
	same_type = argument_type(q, key) == q->rel->rd_opcintype[i] ||
		convert_integer(column, argument_type(q, key), &value);
	col->value = value;
	col->cmp = same_type ? NULL : order_of(q, key);
	if ((PbCodecIsOrdered(column->codec) || column->codec == PB_CODEC_TEXT) &&
		same_type)
	{
		len = pb_codec_encode(column, value, space + pos->off[i],
							  room - pos->off[i], NULL);
		if (len >= 0)
		{
			col->has_code = true;
			col->code = space + pos->off[i];
			col->code_len = len;
			pos->off[i + 1] = pos->off[i] + len;
		}
	}
	pos->bytes &= col->has_code;
	pos->coded &= col->has_code;
}

static inline void
add_column(PbQuals *q, PbPos *pos, uint8 *space, ScanKey key, Datum value,
		   bool isnull)
{
	pb_quals_add_column(q, pos, space, PB_QUALS_SPACE, key, value, isnull);
}

static void
begin_position(PbQuals *q, PbPos *pos, uint8 *space)
{
	pb_pos_begin(pos, q->rel, q->index);
	pos->bytes = q->index->bytes;
	pos->coded = q->index->equalimage;
	pos->data = space;
	pos->off[0] = 0;
	for (int i = 0; i < q->nequal; i++)
	{
		PbEqual    *e = &q->equal[i];
		bool		isnull = (e->key->sk_flags & SK_SEARCHNULL) != 0;

		add_column(q, pos, space, e->key,
				   e->array ? e->array->elems[e->array->current] :
				   e->key->sk_argument,
				   isnull);
	}
}

static void
set_range(PbQuals *q)
{
	MemoryContext old = MemoryContextSwitchTo(q->context);
	const PbColumn *column = &q->index->col[q->nequal];
	PbPos	   *from = &q->from;
	PbPos	   *to = &q->to;

	q->has_range = true;
	begin_position(q, from, q->space[0]);
	begin_position(q, to, q->space[1]);
	from->after = false;
	to->after = true;
	if (q->low)
	{
		add_column(q, from, q->space[0], q->low, q->low->sk_argument, false);
		from->after = pb_quals_is_strict(q->low);
	}
	else if (q->not_null && column->nulls_first)
	{
		add_column(q, from, NULL, NULL, 0, true);
		from->after = true;
	}
	if (q->high)
	{
		add_column(q, to, q->space[1], q->high, q->high->sk_argument, false);
		to->after = !pb_quals_is_strict(q->high);
	}
	else if (q->not_null && !column->nulls_first)
	{
		add_column(q, to, NULL, NULL, 0, true);
		to->after = false;
	}
	MemoryContextSwitchTo(old);
}

/* Move to the first range in this direction. */
void
pb_quals_first(PbQuals *q, ScanDirection dir)
{
	Assert(!q->impossible);		/* otherwise an array may have no element */
	for (int i = 0; i < q->narrays; i++)
		q->arrays[i]->current = ScanDirectionIsForward(dir) ?
			0 : q->arrays[i]->n - 1;
	set_range(q);
}

bool
pb_quals_next(PbQuals *q, ScanDirection dir)
{
	for (int i = q->narrays - 1; i >= 0; i--)
	{
		PbArray    *a = q->arrays[i];

		if (ScanDirectionIsForward(dir) ? a->current + 1 < a->n :
			a->current > 0)
		{
			a->current += ScanDirectionIsForward(dir) ? 1 : -1;
			set_range(q);
			return true;
		}
		a->current = ScanDirectionIsForward(dir) ? 0 : a->n - 1;
	}
	/* the range is still the last one, but the elements are not */
	q->has_range = false;
	return false;
}

/* Compare an element with a key's column, in the order of the index. */
static int
compare_element(const PbQuals *q, const PbArray *array, int i, Datum value,
				bool isnull)
{
	const PbColumn *col = &q->index->col[array->key->sk_attno - 1];
	int			cmp;

	if (isnull)
		return col->nulls_first ? 1 : -1;
	cmp = DatumGetInt32(FunctionCall2Coll(array->match,
										  array->key->sk_collation, value,
										  array->elems[i]));
	if (col->desc)
		return cmp;
	return cmp > 0 ? -1 : cmp < 0;
}

/*
 * Count the elements before a key's column, in this direction.  Also returns
 * whether the column equals the next element.
 */
int
pb_quals_count_elements(PbQuals *q, const PbArray *array, const PbKey *key,
						bool forward, bool *equal)
{
	int			column = array->key->sk_attno - 1;
	PbArena		arena;
	bool		isnull;
	Datum		value;
	int			low = 0;
	int			high = array->n;

	arena.used = 0;
	*equal = false;
	value = pb_key_datum(q->index, key, column, &isnull, &arena);
	while (low < high)
	{
		int			mid = (low + high) / 2;
		int			cmp = compare_element(q, array,
										  forward ? mid : array->n - 1 - mid,
										  value, isnull);

		*equal |= cmp == 0;
		if (cmp != 0 && (cmp < 0) == forward)
			low = mid + 1;
		else
			high = mid;
	}
	if (!isnull)
		pb_codec_free(&q->index->col[column], value, &arena);
	return low;
}

/*
 * Find the last combination of elements that comes before the key, in this
 * direction: for each array, the number of elements before its own.
 */
static bool
find_before(PbQuals *q, const PbKey *key, bool forward, int *at)
{
	int			n = 0;
	bool		equal = true;
	bool		before = false;

	for (int i = 0; equal && i < Min(q->nequal, key->natts); i++)
	{
		if (q->equal[i].array != NULL)
			at[n++] = pb_quals_count_elements(q, q->equal[i].array, key,
											  forward, &equal);
		else
		{
			int			cmp = pb_pos_compare_column(&q->from, key, i);

			equal = cmp == 0;
			before = !equal && (cmp < 0) == forward;
		}
	}
	if (!before)
	{
		while (n > 0 && at[n - 1] == 0)
			n--;
		if (n == 0)
			return false;
		at[n - 1]--;
	}
	for (; n < q->narrays; n++)
		at[n] = q->arrays[n]->n - 1;
	return true;
}

/*
 * Pass ranges that end before this key, in this direction: the index has no
 * keys between the current range and the key.  NULL: it has no further keys at
 * all.  So pb_quals_next moves to the first range that is not before the key.
 */
void
pb_quals_skip(PbQuals *q, const PbKey *key, ScanDirection dir)
{
	bool		forward = ScanDirectionIsForward(dir);
	int			at[INDEX_MAX_KEYS];
	int			further = 0;

	if (key != NULL && !find_before(q, key, forward, at))
		return;
	for (int i = 0; i < q->narrays; i++)
	{
		PbArray    *a = q->arrays[i];

		if (key == NULL)
			at[i] = a->n - 1;
		if (!forward)
			at[i] = a->n - 1 - at[i];
		if (further == 0)
			further = forward ? at[i] - a->current : a->current - at[i];
	}
	if (further <= 0)
		return;
	for (int i = 0; i < q->narrays; i++)
		q->arrays[i]->current = at[i];
	q->has_range = false;
}

void
pb_quals_save(const PbQuals *q, int *elements)
{
	for (int i = 0; i < q->narrays; i++)
		elements[i] = q->arrays[i]->current;
}

void
pb_quals_restore(PbQuals *q, const int *elements)
{
	bool		changed = !q->has_range;

	for (int i = 0; i < q->narrays; i++)
	{
		Assert(elements[i] >= 0 && elements[i] < q->arrays[i]->n);
		changed |= q->arrays[i]->current != elements[i];
		q->arrays[i]->current = elements[i];
	}
	if (changed)
		set_range(q);
}

/* ---- what is checked for each row -------------------------------------- */

static bool
is_element(PbQuals *q, const PbArray *array, Datum value)
{
	int			column = array->key->sk_attno - 1;
	Oid			collation = array->key->sk_collation;
	int			low = 0;
	int			high = array->n;

	while (low < high)
	{
		int			mid = (low + high) / 2;
		int			cmp = DatumGetInt32(FunctionCall2Coll(array->match,
														  collation, value,
														  array->elems[mid]));

		if (cmp == 0)
			return true;
		if ((cmp > 0) != q->index->col[column].desc)
			low = mid + 1;
		else
			high = mid;
	}
	return false;
}

bool
pb_quals_check(PbQuals *q, const PbKey *key)
{
	PbArena		arena;
	bool		holds = true;

	for (int i = 0; i < q->nrest && holds; i++)
	{
		ScanKey		k = q->rest[i].key;
		bool		isnull = pb_key_state(key, k->sk_attno - 1) == PB_COL_NULL;
		Datum		value;

		if (k->sk_flags & (SK_SEARCHNULL | SK_SEARCHNOTNULL))
			holds = isnull == ((k->sk_flags & SK_SEARCHNULL) != 0);
		else if (isnull)
			holds = false;
		else
		{
			arena.used = 0;
			value = pb_key_datum(q->index, key, k->sk_attno - 1, &isnull,
								 &arena);
			holds = q->rest[i].array ?
				is_element(q, q->rest[i].array, value) :
				DatumGetBool(FunctionCall2Coll(&k->sk_func,
											   k->sk_collation, value,
											   k->sk_argument));
			pb_codec_free(&q->index->col[k->sk_attno - 1], value, &arena);
		}
	}
	return holds;
}
