/*-------------------------------------------------------------------------
 * pb_pack.c
 *	  Choice of the best shape of a page, and of its best split point.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "pb_pack.h"

void
pb_pack_begin(PbPack *pack)
{
	pack->n = 0;
	pack->maps = false;
}

void
pb_pack_add(PbPack *pack, const PbKey *key)
{
	pack->maps |= key->has_map;
	if (pack->n++ == 0)
	{
		pb_key_copy(&pack->first, key);
		pack->common = pack->min_len = key->len;
		return;
	}
	pack->common = Min(pack->common, pb_key_common(&pack->first, key));
	pack->min_len = Min(pack->min_len, key->len);
}

/* The longest prefix that leaves each key a head, if heads are possible. */
void
pb_pack_shape(const PbPack *pack, PbIndex *index, PbShape *shape)
{
	shape->prefix_len = pack->n > 1 ? pack->common : 0;
	shape->maps = pack->maps;
	shape->heads = index->bytes && !pack->maps && pack->n > 0 &&
		pack->min_len >= PB_HEAD_LEN;
	if (shape->heads)
		shape->prefix_len = Min(shape->prefix_len, pack->min_len - PB_HEAD_LEN);
}

/* Add keys of a page. */
void
pb_pack_page(PbPack *pack, Relation rel, PbIndex *index, Buffer buffer,
			 int from, int n)
{
	Page		page = BufferGetPage(buffer);
	PbItem		item;

	for (int i = from; i < from + n; i++)
	{
		/*
		 * the first item of an inner page, or of one that is made from this,
		 * has no key
		 */
		if (!pb_page_is_leaf(page) && (i == 0 || i == from))
			continue;
		pb_item_get(rel, index, buffer, page, i, &item);
		pb_pack_add(pack, &item.key);
	}
}

/* The number of leading columns that are equal for the operator classes. */
int
pb_pack_equal_columns(Relation rel, PbIndex *index, const PbKey *a,
					  const PbKey *b)
{
	PbPos	   *pos;
	int			equal = 0;

	if (index->equalimage)
	{
		while (equal < index->nkeys &&
			   pb_key_state(a, equal) == pb_key_state(b, equal) &&
			   a->off[equal + 1] == b->off[equal + 1] &&
			   memcmp(a->data + a->off[equal], b->data + a->off[equal],
					  a->off[equal + 1] - a->off[equal]) == 0)
			equal++;
		return equal;
	}
	pos = palloc(sizeof(PbPos));
	pb_pos_from_key(pos, rel, index, a);
	(void) pb_pos_compare(pos, b, true, 0, &equal);
	pb_pos_end(pos);
	pfree(pos);
	return equal;
}

#ifdef USE_ASSERT_CHECKING
/*
 * I1: check that the separator comes behind the last item of the page on the
 * left.
 */
static bool
separates(Relation rel, PbIndex *index, const PbKey *last, const PbKey *sep)
{
	PbPos		pos;
	int			equal;
	int			cmp;

	if (!pb_pos_order_is_core(rel))
		return true;
	pb_pos_from_key(&pos, rel, index, last);
	cmp = pb_pos_compare(&pos, sep, false, 0, &equal);
	pb_pos_end(&pos);
	return cmp < 0 || (sep->has_tid && equal >= index->nkeys);
}
#endif

/*
 * Truncate a row's key, whose TID is set, to the shortest one that is greater
 * than the previous one.
 */
void
pb_pack_separator(Relation rel, PbIndex *index, const PbKey *last, PbKey *first)
{
	int			equal = pb_pack_equal_columns(rel, index, last, first);
	ItemPointerData tid = first->tid;

	pb_key_truncate(first, Min(equal + 1, index->nkeys));
	if (equal >= index->nkeys)
	{
		first->tid = tid;
		first->has_tid = true;
	}
	Assert(separates(rel, index, last, first));
}

/* ---- where to split ---------------------------------------------------- */

/* The length of the separator in front of this item. */
static int
separator_len(PbIndex *index, const PbItem *last, const PbItem *first)
{
	int			common = pb_key_common(&last->key, &first->key);

	for (int i = 0; i < index->nkeys; i++)
	{
		if (first->key.off[i + 1] > common ||
			pb_key_state(&last->key, i) != pb_key_state(&first->key, i))
			return first->key.off[i + 1];
	}
	return first->key.len + PB_PIVOT_TID_LEN;
}

/* Choose the split point near k with the shortest separator. */
static int
best_near(Relation rel, PbIndex *index, Buffer buffer, int k, int n)
{
	Page		page = BufferGetPage(buffer);
	int			window = Min(n / 16, 16);
	int			from = Max(1, k - window);
	int			to = Min(n - 1, k + window);
	int			best = k;
	int			best_len = INT_MAX;
	PbItem		items[2];

	pb_item_get(rel, index, buffer, page, from - 1, &items[(from - 1) % 2]);
	for (int i = from; i <= to; i++)
	{
		PbItem	   *item = &items[i % 2];
		int			len;

		pb_item_get(rel, index, buffer, page, i, item);
		len = pb_page_is_leaf(page) ?
			separator_len(index, &items[(i - 1) % 2], item) : item->key.len;
		if (len < best_len || (len == best_len && abs(i - k) < abs(best - k)))
		{
			best = i;
			best_len = len;
		}
	}
	return best;
}

static bool
is_single_value(Relation rel, PbIndex *index, Buffer buffer, int n)
{
	Page		page = BufferGetPage(buffer);
	PbItem	   *items = palloc(2 * sizeof(PbItem));
	bool		result;

	pb_item_get(rel, index, buffer, page, 0, &items[0]);
	pb_item_get(rel, index, buffer, page, n - 1, &items[1]);
	result = pb_key_is_identical(&items[0].key, &items[1].key);
	pfree(items);
	return result;
}

/*
 * True if the row's key is behind all rows of the leaf's last item.  If it
 * belongs between two TIDs of a list, the list must not remain on the left
 * page alone: the key would be the high fence, and searches would not find the
 * TIDs behind it.
 */
static bool
is_behind_list(Relation rel, PbIndex *index, Buffer buffer, int n,
			   const PbKey *key)
{
	Page		page = BufferGetPage(buffer);
	ItemPointerData tids[PB_MAX_TIDS];
	PbItem	   *item = palloc(sizeof(PbItem));
	bool		result;
	int			ntids;

	pb_item_get(rel, index, buffer, page, n - 1, item);
	ntids = pb_item_tids(rel, buffer, page, n - 1, item, tids);
	result = !pb_key_is_identical(&item->key, key) ||
		ItemPointerCompare(&tids[ntids - 1],
						   unconstify(ItemPointerData *, &key->tid)) < 0;
	pfree(item);
	return result;
}

/*
 * The number of items that remain on the page when it is split for a key to
 * insert at this slot.  All of them, or none, only if there is no other way;
 * then the new one will be alone on its page.
 */
int
pb_pack_split_point(Relation rel, PbIndex *index, Buffer buffer, int slot,
					const PbKey *key)
{
	static uint16 lens[BLCKSZ / 2];
	Page		page = BufferGetPage(buffer);
	bool		leaf = pb_page_is_leaf(page);
	int			n = pb_page_nslots(page);
	int			total = 0;
	int			target;
	int			k;

	if (!pb_page_item_lens(page, lens))
		pb_index_corrupt(rel, BufferGetBlockNumber(buffer), -1,
						 "The page's slots are damaged.");
	if (leaf && slot == n && n > 0 &&
		!is_behind_list(rel, index, buffer, n, key))
	{
		/* pb_split_repack has made room for two lists of one key */
		if (n < 2)
			pb_index_corrupt(rel, BufferGetBlockNumber(buffer), 0,
							 "The item's TIDs do not fit on a page.");
		slot = n - 1;
	}
	if (leaf && (n < 2 || (slot == n && !pb_page_is_rightmost(page) &&
						   is_single_value(rel, index, buffer, n))))
		return slot == 0 ? 0 : n;
	for (int i = 0; i < n; i++)
		total += lens[i];
	target = total / 2;
	if (slot == n)
		target = total / 100 *
			(!pb_page_is_rightmost(page) ? 90 :
			 leaf ? pb_index_fillfactor(rel) : 70);
	for (k = 0; k < n - 1 && target > 0; k++)
		target -= lens[k];
	k = Max(k, 1);
	return n > 8 ? best_near(rel, index, buffer, k, n) : k;
}
