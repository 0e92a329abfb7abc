/*-------------------------------------------------------------------------
 * pb_skip.c
 *	  Skipping of rows that cannot satisfy the conditions.
 *
 * Conditions that do not bound a range (those behind a column without "=") are
 * checked for each row.  They also determine where the next row is that may
 * satisfy them: with a condition b = 5 on an index on (a, b), behind (1, 2) at
 * (1, 5), behind (1, 7) at (2, 5) if a is an integer, else behind all rows
 * with a = 1. That depends on the key alone, so a scan remembers only its
 * place.
 *
 * The idea is that of "Efficient Search of Multidimensional B-Trees" (Leslie,
 * Jain, Birdsall, Yaghmai, VLDB 1995).
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/memutils.h"

#include "pb_skip.h"

/* The values that a column may have. */
typedef struct Filter
{
	PbArray    *equal;			/* one of these */
	bool		is_null;
	PbArray    *low;			/* one element: between these, in the order of
								 * the index */
	PbArray    *high;
	bool		not_null;
} Filter;

typedef struct PbSkip
{
	int			n;				/* columns up to the last one with a filter */
	Filter		filter[INDEX_MAX_KEYS];
	PbKey		key;			/* columns of a key, then encodings of the
								 * position's further columns */
	PbPos		pos;
} PbSkip;

static void
add_filter(PbQuals *q, ScanKey key, PbArray *array)
{
	int			column = key->sk_attno - 1;
	Filter	   *f = &q->skip->filter[column];
	PbArray   **bound;

	if (column >= q->index->nkeys)
		return;
	if (!(key->sk_flags & (SK_SEARCHNULL | SK_SEARCHNOTNULL)) && array == NULL)
	{
		array = pb_quals_make_scalar(q, key);
		if (array == NULL)
			return;				/* it is checked for each row */
	}
	q->skip->n = Max(q->skip->n, column + 1);
	if (key->sk_flags & SK_SEARCHNULL)
		f->is_null = true;
	else if (key->sk_flags & SK_SEARCHNOTNULL)
		f->not_null = true;
	else
	{
		f->not_null = true;
		if (key->sk_strategy == BTEqualStrategyNumber)
			bound = &f->equal;
		else
			bound = (key->sk_strategy < BTEqualStrategyNumber) !=
				q->index->col[column].desc ?
				&f->high : &f->low;
		if (*bound == NULL)
			*bound = array;
	}
}

void
pb_skip_set(PbQuals *q)
{
	MemoryContext old;

	if (!q->can_skip)
		return;
	if (q->skip == NULL)
		q->skip = MemoryContextAlloc(MemoryContextGetParent(q->context),
									 sizeof(PbSkip));
	q->skip->n = 0;
	memset(q->skip->filter, 0, q->index->nkeys * sizeof(Filter));
	pb_pos_begin(&q->skip->pos, q->rel, q->index);
	old = MemoryContextSwitchTo(q->context);
	for (int i = 0; i < q->nrest; i++)
		add_filter(q, q->rest[i].key, q->rest[i].array);
	MemoryContextSwitchTo(old);
}

/* ---- the position ------------------------------------------------------ */

/* Begin the position with the key's first columns. */
static void
begin(PbQuals *q, const PbKey *key, int natts)
{
	PbSkip	   *s = q->skip;

	Assert(natts <= key->natts);
	pb_pos_end(&s->pos);
	pb_key_copy(&s->key, key);
	pb_key_truncate(&s->key, natts);
	pb_pos_from_key(&s->pos, q->rel, q->index, &s->key);
}

static void
add(PbQuals *q, ScanKey key, Datum value, bool isnull)
{
	pb_quals_add_column(q, &q->skip->pos, q->skip->key.data, PB_KEY_ROOM, key,
						value, isnull);
}

/* Get the first value of a column between two bounds, in this direction. */
static void
add_bound(PbQuals *q, int column, bool forward)
{
	Filter	   *f = &q->skip->filter[column];
	PbArray    *bound = forward ? f->low : f->high;

	if (bound != NULL)
	{
		add(q, bound->key, bound->elems[0], false);
		q->skip->pos.after = pb_quals_is_strict(bound->key) == forward;
	}
	else if (f->not_null && q->index->col[column].nulls_first == forward)
	{
		add(q, NULL, 0, true);
		q->skip->pos.after = forward;
	}
}

/*
 * Set the columns from this one on to their first possible values in this
 * direction; this one to the i-th of an array.
 */
static void
add_values(PbQuals *q, int column, int i, bool forward)
{
	PbSkip	   *s = q->skip;

	Assert(s->pos.natts == column); /* the columns before it are the key's */
	s->pos.after = !forward;
	for (; column < s->n; column++, i = 0)
	{
		Filter	   *f = &s->filter[column];

		if (f->is_null)
			add(q, NULL, 0, true);
		else if (f->equal != NULL)
			add(q, f->equal->key,
				f->equal->elems[forward ? i : f->equal->n - 1 - i], false);
		else
		{
			add_bound(q, column, forward);
			return;
		}
	}
}

/*
 * Advance the position's last value to the next one, in this direction:
 * encodings of fixed width that sort as bytes are numbers.  Returns false,
 * without a change, if it is the last one, or not of that kind.
 */
static bool
take_neighbour(PbQuals *q, int column, bool forward)
{
	const PbColumn *col = &q->index->col[column];
	PbSkip	   *s = q->skip;
	uint8	   *p = s->key.data + s->key.off[column];

	if (!PbCodecIsOrdered(col->codec) || col->fixed == 0 ||
		pb_key_state(&s->key, column) != PB_COL_PLAIN)
		return false;
	for (int i = col->fixed - 1; i >= 0; i--)
	{
		p[i] += forward ? 1 : -1;
		if (p[i] != (forward ? 0 : 0xff))
			return true;
	}
	memset(p, forward ? 0xff : 0, col->fixed);
	return false;
}

/* ---- which one --------------------------------------------------------- */

typedef enum Where
{
	HERE,						/* the column's value is a possible one */
	AHEAD,						/* such a value follows, in this direction */
	PASSED						/* none follows */
} Where;

/*
 * True if the key's column, which is not NULL, is on the wrong side of the
 * bound.
 */
static bool
is_outside(PbQuals *q, const PbArray *bound, const PbKey *key, bool low)
{
	bool		is_below;
	bool		equal;

	if (bound == NULL)
		return false;
	is_below = pb_quals_count_elements(q, bound, key, true, &equal) == 0;
	return equal ? pb_quals_is_strict(bound->key) : is_below == low;
}

/* Find the next element of an array. */
static Where
look(PbQuals *q, const PbKey *key, int column, bool forward, int *element)
{
	Filter	   *f = &q->skip->filter[column];
	bool		isnull = pb_key_state(key, column) == PB_COL_NULL;
	bool		nulls_ahead = q->index->col[column].nulls_first != forward;
	bool		equal;

	if (f->is_null)
		return isnull ? HERE : nulls_ahead ? AHEAD : PASSED;
	if (isnull && f->not_null)
		return nulls_ahead ? PASSED : AHEAD;
	if (f->equal != NULL)
	{
		*element = pb_quals_count_elements(q, f->equal, key, forward, &equal);
		return equal ? HERE : *element < f->equal->n ? AHEAD : PASSED;
	}
	if (isnull)
		return HERE;
	if (is_outside(q, f->low, key, true))
		return forward ? AHEAD : PASSED;
	if (is_outside(q, f->high, key, false))
		return forward ? PASSED : AHEAD;
	return HERE;
}

/*
 * Set the position behind the key's columns in front of this one: no further
 * row with them can satisfy the conditions.
 */
static PbSkipTo
leave_prefix(PbQuals *q, const PbKey *key, int column, bool forward)
{
	PbSkip	   *s = q->skip;

	while (--column >= q->nequal)
	{
		Filter	   *f = &s->filter[column];
		bool		equal;
		int			element;

		if (f->is_null)
			continue;
		if (f->equal != NULL)
		{
			element =
				pb_quals_count_elements(q, f->equal, key, forward, &equal) + 1;
			if (element >= f->equal->n)
				continue;
			begin(q, key, column);
			add_values(q, column, element, forward);
			return PB_SKIP_POS;
		}
		begin(q, key, column + 1);
		if (take_neighbour(q, column, forward))
			add_values(q, column + 1, 0, forward);
		else
			s->pos.after = forward;
		return PB_SKIP_POS;
	}
	return PB_SKIP_END;
}

/*
 * Find the next row that may satisfy the conditions, in this direction, from
 * the key on.  The key is a row's, or a fence in front of the next rows.  The
 * position is valid until the next call.
 */
PbSkipTo
pb_skip_find(PbQuals *q, const PbKey *key, ScanDirection dir, PbPos **pos)
{
	bool		forward = ScanDirectionIsForward(dir);

	if (!q->can_skip)
		return PB_SKIP_NOT;
	*pos = &q->skip->pos;
	for (int column = 0; column < q->skip->n; column++)
	{
		int			element = 0;

		if (column >= key->natts)
		{
			if (!forward)
				return PB_SKIP_NOT;
			begin(q, key, column);
			add_values(q, column, 0, forward);
			return q->skip->pos.natts > column ?
				PB_SKIP_NEXT_COLUMN : PB_SKIP_NOT;
		}
		switch (look(q, key, column, forward, &element))
		{
			case HERE:
				break;
			case PASSED:
				return leave_prefix(q, key, column, forward);
			case AHEAD:
				begin(q, key, column);
				add_values(q, column, element, forward);
				return PB_SKIP_POS;
		}
	}
	return PB_SKIP_NOT;
}
