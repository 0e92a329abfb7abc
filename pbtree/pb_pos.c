/*-------------------------------------------------------------------------
 * pb_pos.c
 *	  Positions in the order of keys, and comparisons with them.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/nbtree.h"

#include "pb_pos.h"

PbCounters	pb_counters;

void
pb_pos_begin(PbPos *pos, Relation rel, PbIndex *index)
{
	pos->rel = rel;
	pos->index = index;
	pos->natts = 0;
	pos->after = false;
	pos->has_tid = false;
	pos->bytes = false;
	pos->coded = false;
	pos->has_map = false;
	pos->data = NULL;
	pos->key = NULL;
	pos->arena = NULL;
}

/*
 * Set the position at the key, or in front of all keys with its columns.  The
 * key must stay valid.
 */
void
pb_pos_from_key(PbPos *pos, Relation rel, PbIndex *index, const PbKey *key)
{
	int			natts = Min(key->natts, index->nkeys);

	Assert(key->parsed >= natts);
	pb_pos_begin(pos, rel, index);
	pos->natts = natts;
	pos->has_tid = key->has_tid;
	pos->tid = key->tid;
	pos->key = key;
	pos->data = key->data;
	pos->bytes = index->bytes && !key->has_map;
	pos->coded = index->equalimage;
	pos->has_map = key->has_map;
	if (key->has_map)
		memcpy(pos->map, key->map, index->map_len);
	memcpy(pos->off, key->off, (natts + 1) * sizeof(key->off[0]));
	for (int i = 0; i < natts; i++)
	{
		PbPosCol   *col = &pos->col[i];
		int			state = pb_key_state(key, i);

		col->isnull = state == PB_COL_NULL;
		col->has_value = false;
		col->has_code = state == PB_COL_PLAIN;
		col->code = key->data + key->off[i];
		col->code_len = key->off[i + 1] - key->off[i];
		col->cmp = NULL;
	}
}

/* Free values that had to be decoded, too. */
void
pb_pos_end(PbPos *pos)
{
	if (pos->arena == NULL)
		return;
	for (int i = 0; i < Min(pos->natts, pos->key->natts); i++)
	{
		if (pos->col[i].has_value)
			pb_codec_free(&pos->index->col[i], pos->col[i].value, pos->arena);
	}
	pfree(pos->arena);
	pos->arena = NULL;
}

static Datum
position_value(PbPos *pos, int i)
{
	PbPosCol   *col = &pos->col[i];

	if (!col->has_value)
	{
		bool		isnull;

		if (pos->arena == NULL)
		{
			pos->arena = palloc(sizeof(PbArena));
			pos->arena->used = 0;
		}
		col->value = pb_key_datum(pos->index, pos->key, i, &isnull, pos->arena);
		col->has_value = true;
	}
	return col->value;
}

static inline FmgrInfo *
order_proc(PbPos *pos, int i)
{
	if (pos->col[i].cmp == NULL)
		pos->col[i].cmp = index_getprocinfo(pos->rel, i + 1, BTORDER_PROC);
	return pos->col[i].cmp;
}

static int
compare_codes(const uint8 *a, int alen, const uint8 *b, int blen)
{
	int			cmp = memcmp(a, b, Min(alen, blen));

	return cmp != 0 ? cmp : alen - blen;
}

/* Compare the position's column with the key's: <0, 0, >0 */
int
pb_pos_compare_column(PbPos *pos, const PbKey *key, int i)
{
	PbArena		arena;
	const PbColumn *col = &pos->index->col[i];
	PbPosCol   *mine = &pos->col[i];
	int			state = pb_key_state(key, i);
	const uint8 *p = key->data + key->off[i];
	int			len = key->off[i + 1] - key->off[i];
	int			cmp;
	Datum		value;

	Assert(i < pos->natts && i < key->parsed);
	pb_counters.columns++;
	pb_counters.bytes += len;
	if (mine->isnull || state == PB_COL_NULL)
	{
		if (mine->isnull && state == PB_COL_NULL)
			return 0;
		return pb_pos_compare_null(col, mine->isnull);
	}
	if (mine->has_code && state == PB_COL_PLAIN)
	{
		if (PbCodecIsOrdered(col->codec))
			return compare_codes(mine->code, mine->code_len, p, len);
		if (col->codec == PB_CODEC_TEXT)
			return pb_pos_compare_text(col, mine->code, mine->code_len - 1, p,
									   len - 1);
	}
	arena.used = 0;
	value = pb_codec_decode(col, state, p, len, &arena);
	cmp = DatumGetInt32(FunctionCall2Coll(order_proc(pos, i), col->collation,
										  value, position_value(pos, i)));
	pb_codec_free(col, value, &arena);
	if (col->desc)
		return cmp;
	return cmp > 0 ? -1 : cmp < 0;
}

/* Compare if all columns that both have are equal. */
int
pb_pos_compare_rest(const PbPos *pos, int natts, bool has_tid,
					const ItemPointerData *tid, bool leaf)
{
	natts = Min(natts, pos->index->nkeys);
	if (pos->natts > natts)
		return 1;
	if (pos->has_tid)
		return has_tid ?
			ItemPointerCompare(unconstify(ItemPointerData *, &pos->tid),
							   unconstify(ItemPointerData *, tid)) : 1;
	if (pos->after)
		return 1;
	return leaf || has_tid || natts > pos->natts ? -1 : 0;
}

/*
 * Compare the position with a key, whose first "start" columns are known to be
 * equal.  "equal" becomes the number of equal columns.  A leaf's key has a
 * TID.
 */
int
pb_pos_compare(PbPos *pos, const PbKey *key, bool leaf, int start, int *equal)
{
	int			natts = Min(pos->natts, key->natts);

	Assert(start >= 0 && start <= pos->natts);
	pb_counters.keys++;
	for (int i = start; i < natts; i++)
	{
		int			cmp = pb_pos_compare_column(pos, key, i);

		if (cmp != 0)
		{
			*equal = i;
			return cmp;
		}
	}
	*equal = natts;
	return pb_pos_compare_rest(pos, key->natts, key->has_tid, &key->tid, leaf);
}

static void
damaged_fence(PbPos *pos)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" has a damaged fence",
					RelationGetRelationName(pos->rel)),
			 errhint("Please REINDEX it.")));
}

/*
 * Compare as bytes.  Returns false if the columns are equal, so that they do
 * not decide.
 */
static bool
compare_fence_bytes(PbPos *pos, const uint8 *fence, int len, int *cmp)
{
	int			natts = Min(fence[0] & PB_NATTS_MASK, pos->natts);
	int			n = Min(pos->off[natts], len - 1);

	pb_counters.keys++;
	pb_counters.columns++;
	pb_counters.bytes += n;
	*cmp = memcmp(pos->data, fence + 1, n);
	return *cmp != 0;
}

int
pb_pos_compare_fence(PbPos *pos, const uint8 *fence, int len, int start,
					 int *equal)
{
	PbKey		key;
	int			cmp;

	if (len < 1)
		damaged_fence(pos);
	if (pos->bytes && !(fence[0] & PB_NATTS_MAP) &&
		compare_fence_bytes(pos, fence, len, &cmp))
	{
		*equal = 0;
		return cmp;
	}
	if (!pb_key_get_fence(pos->index, fence, len, &key))
		damaged_fence(pos);
	return pb_pos_compare(pos, &key, false, start, equal);
}

bool
pb_pos_is_right_of(PbPos *pos, Page page)
{
	int			equal;

	return !pb_page_is_rightmost(page) &&
		pb_pos_compare_fence(pos, pb_page_high(page),
							 PbPageGetSpecial(page)->high_len, 0,
							 &equal) > 0;
}
