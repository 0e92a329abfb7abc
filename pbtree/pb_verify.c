/*-------------------------------------------------------------------------
 * pb_verify.c
 *	  Check of the invariants of keys, fences, and links, for asserts.
 *
 * Damage is reported as a fault, and never raises an error.  pbtree_check
 * checks a whole index, these functions the pages of one change.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "pb_verify.h"

#ifdef USE_ASSERT_CHECKING

typedef struct Verify
{
	Relation	rel;
	PbIndex    *index;
	Page		page;
	bool		leaf;
	bool		compares;		/* keys can be compared */
	uint16		lens[BLCKSZ / 2];
	PbItem		items[2];		/* keys of this slot, and of the previous one
								 * with its last TID */
	PbKey		bound;
	ItemPointerData tids[PB_MAX_TIDS];
} Verify;

/* <0, 0, >0 */
static int
compare_keys(Verify *v, const PbKey *a, const PbKey *b, bool leaf)
{
	PbPos		pos;
	int			equal;
	int			cmp;

	pb_pos_from_key(&pos, v->rel, v->index, a);
	cmp = pb_pos_compare(&pos, b, leaf, 0, &equal);
	pb_pos_end(&pos);
	return cmp;
}

/* Check a leaf's item and its TIDs; the key gets the first one. */
static const char *
tids_problem(Verify *v, PbItem *item, const uint8 *end, int *n)
{
	bool		posting = (item->flags & PB_SLOT_POSTING) != 0;
	const uint8 *behind;

	*n = 1;
	behind = posting ? pb_posting_get(item->tail, end, v->tids, n) :
		pb_tid_get(item->tail, end, v->tids);
	if (behind != end)
		return "An item does not end where its TIDs end.";
	if (posting != (*n > 1))
		return "An item's number of TIDs is wrong.";
	if (posting && !v->index->equalimage)
		return "An item has several TIDs, but equal keys may differ.";
	item->key.tid = v->tids[0];
	item->key.has_tid = true;
	return NULL;
}

/* I2: check that an item ends with its key and its TIDs. */
static const char *
item_problem(Verify *v, int slot, PbItem *item, int *ntids)
{
	const uint8 *end = (uint8 *) v->page +
		(pb_slot_get(v->page, slot) & PB_SLOT_OFF) +
		v->lens[slot];
	const char *problem = pb_item_problem(v->index, v->page, slot, item);

	if (problem != NULL)
		return problem;
	if (v->leaf)
		return tids_problem(v, item, end, ntids);
	if (slot == 0)
		return v->lens[slot] == PB_PIVOT_LEN ?
			NULL : "The first item of the inner page has a key.";
	return item->tail + (item->key.has_tid ? PB_PIVOT_TID_LEN : 0) == end ?
		NULL : "An inner item does not end with its key.";
}

/* I1: check an item; "last" selects its last TID instead of its first one. */
static const char *
fence_problem(Verify *v, const PbKey *key, bool last)
{
	PbSpecial  *s = PbPageGetSpecial(v->page);
	const uint8 *fence = last ? pb_page_high(v->page) : pb_page_low(v->page);
	int			len = last ? s->high_len : s->low_len;
	int			cmp;

	if (len == 0)
		return NULL;
	if (!pb_key_get_fence(v->index, fence, len, &v->bound))
		return "A fence is damaged.";
	if (!v->compares || key == NULL)
		return NULL;
	cmp = compare_keys(v, key, &v->bound, false);
	if (last ? cmp >= 0 : cmp < 0)
		return last ?
			"An item does not precede the page's high fence." :
			"An item precedes the page's low fence.";
	return NULL;
}

static const char *
slot_problem(Verify *v, int slot)
{
	PbItem	   *item = &v->items[slot % 2];
	PbItem	   *before = &v->items[(slot + 1) % 2];
	int			first = v->leaf ? 0 : 1;
	int			ntids = 1;
	const char *problem = item_problem(v, slot, item, &ntids);

	if (problem != NULL || slot < first)
		return problem;
	if (v->compares && slot > first &&
		compare_keys(v, &item->key, &before->key, v->leaf) <= 0)
		return "An item does not follow the previous item in the order of keys.";
	if (slot == first)
		problem = fence_problem(v, &item->key, false);
	if (v->leaf)
		item->key.tid = v->tids[ntids - 1];
	if (problem == NULL && slot == pb_page_nslots(v->page) - 1)
		problem = fence_problem(v, &item->key, true);
	return problem;
}

/*
 * Items are in order, so it suffices to compare the first one with the low
 * fence, and the last one with the high fence.
 */
const char *
pb_verify_page(Relation rel, PbIndex *index, Page page)
{
	PbCounters	counters = pb_counters;
	Verify	   *v = palloc(sizeof(Verify));
	const char *problem = NULL;

	v->rel = rel;
	v->index = index;
	v->page = page;
	v->leaf = pb_page_is_leaf(page);
	v->compares = pb_pos_order_is_core(rel);
	if (PbPageGetSpecial(page)->map_len != index->map_len)
		problem = "The page's maps do not have the length of the index's maps.";
	else if (!pb_page_item_lens(page, v->lens))
		problem = "The page's slots are damaged.";
	for (int slot = 0; problem == NULL && slot < pb_page_nslots(page); slot++)
		problem = slot_problem(v, slot);
	if (problem == NULL)
		problem = fence_problem(v, NULL, false);
	if (problem == NULL)
		problem = fence_problem(v, NULL, true);
	pfree(v);
	pb_counters = counters;
	return problem;
}

/* ---- two pages --------------------------------------------------------- */

static bool
is_same(const uint8 *a, int a_len, const uint8 *b, int b_len)
{
	return a_len == b_len && memcmp(a, b, a_len) == 0;
}

static const char *
sibling_problem(Page left, BlockNumber left_block, Page right)
{
	PbSpecial  *l = PbPageGetSpecial(left);
	PbSpecial  *r = PbPageGetSpecial(right);

	if (r->prev != left_block)
		return "The page's left link does not lead to its left sibling.";
	if (r->low_len != 0 && !is_same(pb_page_low(right), r->low_len,
									pb_page_high(left), l->high_len))
		return "The page's low fence is not its left sibling's high fence.";
	return NULL;
}

/* True if the bytes are the fence made of the key of an inner page's item. */
static bool
is_pivot(PbIndex *index, Page parent, int slot, const uint8 *fence, int len)
{
	PbItem	   *item = palloc(sizeof(PbItem));
	uint8		bytes[BLCKSZ];
	bool		same;

	same = pb_item_problem(index, parent, slot, item) == NULL &&
		is_same(bytes, pb_key_put_fence(index, &item->key, bytes), fence, len);
	pfree(item);
	return same;
}

static BlockNumber
downlink(Page page, int slot)
{
	BlockNumber block;

	memcpy(&block, (uint8 *) page + (pb_slot_get(page, slot) & PB_SLOT_OFF),
		   sizeof(block));
	return block;
}

/* I4: check a child, and, where its split is complete, its right sibling. */
static const char *
child_problem(PbIndex *index, Page parent, Page child, BlockNumber block)
{
	PbSpecial  *s = PbPageGetSpecial(child);
	PbSpecial  *above = PbPageGetSpecial(parent);
	int			n = pb_page_nslots(parent);
	int			slot = 0;

	while (slot < n && downlink(parent, slot) != block)
		slot++;
	if (slot == n)
		return NULL;
	if (s->low_len != 0 && slot > 0 &&
		!is_pivot(index, parent, slot, pb_page_low(child), s->low_len))
		return "The page's low fence is not the key of its downlink.";
	if (s->low_len != 0 && slot == 0 && above->low_len != 0 &&
		!is_same(pb_page_low(child), s->low_len, pb_page_low(parent),
				 above->low_len))
		return "The page's low fence is not its parent's.";
	if (s->flags & PB_PAGE_INCOMPLETE)
		return NULL;
	if (slot + 1 < n)
	{
		if (downlink(parent, slot + 1) != s->next)
			return "The next downlink does not lead to the page's right sibling.";
		return is_pivot(index, parent, slot + 1, pb_page_high(child),
						s->high_len) ?
			NULL : "The page's high fence is not the key of the next downlink.";
	}
	return is_same(pb_page_high(child), s->high_len, pb_page_high(parent),
				   above->high_len) ?
		NULL : "The page's high fence is not its parent's.";
}

const char *
pb_verify_pair(PbIndex *index, Page a, BlockNumber a_block, Page b,
			   BlockNumber b_block)
{
	PbSpecial  *s = PbPageGetSpecial(a);

	if (s->level == PbPageGetSpecial(b)->level)
		return s->next == b_block ? sibling_problem(a, a_block, b) : NULL;
	return s->level == PbPageGetSpecial(b)->level + 1 ?
		child_problem(index, a, b, b_block) : NULL;
}

#endif
