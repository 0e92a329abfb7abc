/*-------------------------------------------------------------------------
 * pb_leaf.c
 *	  Reading of all of a leaf's rows that are in a scan's ranges.
 *
 * The page is locked only while it is read.  The pin is kept where VACUUM must
 * not remove rows that the scan returns: where the scan does not read the
 * table's rows (index-only scans), and where it could not distinguish another
 * row with the same TID (snapshots that are not MVCC).
 *-------------------------------------------------------------------------
 */
#include "compat_index.h"

#include "storage/predicate.h"

#include "pb_leaf.h"
#include "pb_search.h"

/* The maximum number of ranges for which a locked page is searched. */
#define MAX_RANGES	1000

/* Skipping this many rows is worthwhile where keys compare as bytes. */
#define WORTHWHILE	8

void
pb_leaf_init(PbLeaf *leaf)
{
	memset(leaf, 0, sizeof(*leaf));
	leaf->buffer = InvalidBuffer;
	leaf->block = PB_NONE;
}

void
pb_leaf_end(PbLeaf *leaf)
{
	void	   *arrays[] = {
		leaf->tids, leaf->slots, leaf->keys_at, leaf->key_space, leaf->killed
	};

	for (int i = 0; i < lengthof(arrays); i++)
	{
		if (arrays[i] != NULL)
			pfree(arrays[i]);
	}
}

/* ---- collecting -------------------------------------------------------- */

static void *
enlarge(void *array, Size size)
{
	return array ? repalloc(array, size) : palloc(size);
}

static void
make_room(PbLeaf *leaf, int n)
{
	if (leaf->n + n <= leaf->room)
		return;
	leaf->room = leaf->room == 0 && n == 1 ? 16 : Max((leaf->n + n) * 2, 512);
	leaf->tids = enlarge(leaf->tids, leaf->room * sizeof(ItemPointerData));
	leaf->slots = enlarge(leaf->slots, leaf->room * sizeof(uint16));
	leaf->keys_at = enlarge(leaf->keys_at, leaf->room * sizeof(int));
}

/* Make room for a tuple or key. */
static char *
key_room(PbLeaf *leaf, int need)
{
	char	   *to;

	need = MAXALIGN(need);
	if (leaf->key_used + need > leaf->key_room)
	{
		leaf->key_room = Max((leaf->key_used + need) * 2, BLCKSZ);
		leaf->key_space = enlarge(leaf->key_space, leaf->key_room);
	}
	to = leaf->key_space + leaf->key_used;
	leaf->key_used += need;
	return to;
}

/* A stored key: whether there is a map, length, map, bytes. */
static void
keep_key(PbLeaf *leaf, const PbIndex *index, const uint8 *map,
		 const uint8 *data, uint16 len)
{
	char	   *to = key_room(leaf, 3 + index->map_len + len);

	to[0] = map != NULL;
	memcpy(to + 1, &len, sizeof(len));
	if (map != NULL)
		memcpy(to + 3, map, index->map_len);
	memcpy(to + 3 + index->map_len, data, len);
}

/*
 * Get the current row's key, if it is kept.  Its columns have not been
 * located.
 */
void
pb_leaf_key(const PbLeaf *leaf, PbIndex *index, PbKey *key)
{
	const char *p = leaf->key_space + (-1 - leaf->keys_at[leaf->at]);
	uint16		len;

	Assert(leaf->at >= 0 && leaf->at < leaf->n && leaf->keys_at[leaf->at] < 0);
	pb_key_begin(key);
	key->natts = index->natts;
	key->has_map = p[0];
	memcpy(&len, p + 1, sizeof(len));
	if (key->has_map)
		memcpy(key->map, p + 3, index->map_len);
	key->data = (uint8 *) p + 3 + index->map_len;
	key->len = len;
}

/*
 * The common properties of all items of a page whose keys have a fixed length.
 */
typedef struct FixedPage
{
	int			prefix;			/* bytes that are not in the item */
	int			heads;
	int			rest;			/* bytes that are; negative: damaged */
	int			upper;
	int			slot_size;
	const uint8 *slots;
	const uint8 *end;
	uint8		key[PB_TUPLE_ROOM];
	PbKey		view;			/* of key */
} FixedPage;

static void
look_at_page(FixedPage *f, const PbIndex *index, const PbTupleShape *shape,
			 Page page)
{
	f->prefix = PbPageGetSpecial(page)->prefix_len;
	f->heads = pb_page_has_heads(page) ? PB_HEAD_LEN : 0;
	f->rest = index->fixed - f->prefix - f->heads;
	f->upper = PbPageUpper(page);
	f->slot_size = pb_page_slot_size(page);
	f->slots = pb_page_slot(page, 0);
	f->end = (uint8 *) page + PbPageSpecial(page);
	if (f->rest < 0 || shape->size == 0)
		return;
	memcpy(f->key, pb_page_prefix(page), f->prefix);
	pb_key_begin(&f->view);
	f->view.data = f->key;
	f->view.natts = f->view.parsed = index->natts;
	for (int i = 0; i < index->natts; i++)
		f->view.off[i + 1] = f->view.off[i] + index->col[i].fixed;
	f->view.len = index->fixed;
}

static void
fill_key(FixedPage *f, const uint8 *slot, const uint8 *item)
{
	if (f->heads > 0)
		memcpy(f->key + f->prefix, slot + sizeof(uint16), PB_HEAD_LEN);
	if (f->rest > 0)
		memcpy(f->key + f->prefix + f->heads, item, f->rest);
}

typedef enum Collected
{
	COLLECTED,
	NOT_FIXED,					/* not a simple item */
	FAILS						/* the row does not satisfy the conditions */
} Collected;

/* Collect an item whose key has a fixed length. */
static Collected
collect_fixed(PbLeaf *leaf, PbQuals *q, Page page, int slot, FixedPage *f,
			  bool tuples)
{
	const uint8 *at = f->slots + slot * f->slot_size;
	uint16		bits = *(uint16 *) at;
	const uint8 *item = (uint8 *) page + (bits & PB_SLOT_OFF);
	int			key_at = tuples ? leaf->key_used : -1 - leaf->key_used;
	int			n = 1;
	const uint8 *p = item + f->rest;

	if ((bits & PB_SLOT_MAP) || (bits & PB_SLOT_OFF) < f->upper || p > f->end)
		return NOT_FIXED;
	if (tuples || leaf->keep || q->nrest > 0)
		fill_key(f, at, item);
	if (q->nrest > 0 && !pb_quals_check(q, &f->view))
		return FAILS;
	p = (bits & PB_SLOT_POSTING) ?
		pb_posting_get(p, f->end, leaf->tids + leaf->n, &n) :
		pb_tid_load(p, f->end, leaf->tids + leaf->n);
	if (p == NULL)
		return NOT_FIXED;
	if (tuples)
		pb_tuple_form_fixed(q->index, leaf->shape, f->key,
							(IndexTuple) key_room(leaf, leaf->shape->size));
	else if (leaf->keep)
		keep_key(leaf, q->index, NULL, f->key, q->index->fixed);
	for (int i = 0; i < n; i++)
	{
		leaf->slots[leaf->n + i] = slot;
		leaf->keys_at[leaf->n + i] = key_at;
	}
	leaf->n += n;
	return COLLECTED;
}

/*
 * The number of rows failing the conditions after which the scan searches for
 * rows to skip.
 */
typedef struct Patience
{
	int			misses;
	int			limit;
} Patience;

#ifdef USE_ASSERT_CHECKING
static bool
conditions_are_core(const PbQuals *q)
{
	bool		are_core = true;

	for (int i = 0; i < q->nrest; i++)
		are_core &= q->rest[i].key->sk_func.fn_oid < FirstNormalObjectId;
	for (int i = 0; i < q->ncross; i++)
		are_core &= q->cross[i].order.fn_oid < FirstNormalObjectId;
	return are_core;
}

/* I15: none of these slots satisfies the conditions. */
static bool
none_holds(PbQuals *q, Buffer buffer, int from, int to)
{
	PbItem	   *item;
	bool		none = true;

	if (!pb_pos_order_is_core(q->rel) || !conditions_are_core(q))
		return true;
	item = palloc(sizeof(PbItem));
	for (int slot = from; slot < to; slot++)
	{
		pb_item_get(q->rel, q->index, buffer, BufferGetPage(buffer), slot,
					item);
		none &= !pb_quals_check(q, &item->key);
	}
	pfree(item);
	return none;
}
#endif

/*
 * The number of rows from which on skipping is cheaper than checking: a search
 * compares all columns several times, perhaps each by a function.
 */
static int
worthwhile(const PbPos *pos)
{
	return pos->bytes || pos->coded ? WORTHWHILE :
		2 * WORTHWHILE * Max(pos->natts, 1);
}

/*
 * Find the next slot that may satisfy the conditions, at most "to"; the
 * current slot's key does not.
 */
static int
skip_slots(PbLeaf *leaf, PbQuals *q, Buffer buffer, int slot, int to,
		   const PbKey *key, Patience *patience)
{
	PbPos	   *pos;
	int			next = slot + 1;
	int			enough = WORTHWHILE;

	if (!q->can_skip || ++patience->misses < patience->limit)
		return next;
	patience->misses = 0;
	switch (pb_skip_find(q, key, ForwardScanDirection, &pos))
	{
		case PB_SKIP_NOT:
		case PB_SKIP_NEXT_COLUMN:
			break;
		case PB_SKIP_END:
			next = to;
			break;
		case PB_SKIP_POS:
			next = pb_pos_is_right_of(pos, BufferGetPage(buffer)) ?
				to : Min(pb_pos_search_near(pos, buffer, next), to);
			pb_pos_end(pos);
			enough = worthwhile(pos);
			break;
	}
	patience->limit = next - slot >= enough ? 1 : patience->limit * 2;
	leaf->passed |= slot == 0 && next == pb_page_nslots(BufferGetPage(buffer));
	Assert(none_holds(q, buffer, slot, next));
	return next;
}

/* Collect the items from one slot to another, in ascending order. */
static void
collect(PbLeaf *leaf, IndexScanDesc scan, PbQuals *q, Buffer buffer, int from,
		int to)
{
	Page		page = BufferGetPage(buffer);
	PbItem		item;
	FixedPage	f;
	Patience	patience = {.misses = 0,.limit = 1};
	bool		keep = scan->xs_want_itup || leaf->keep;
	bool		fixed = q->index->fixed > 0 &&
		(leaf->shape->size > 0 || (!keep && q->nrest == 0));

	Assert(from >= 0 && to <= pb_page_nslots(page));
	if (fixed)
	{
		look_at_page(&f, q->index, leaf->shape, page);
		fixed = f.rest >= 0;
	}
	for (int slot = from; slot < to; slot++)
	{
		int			n;
		int			at = leaf->key_used;

		if (scan->ignore_killed_tuples &&
			(pb_slot_get(page, slot) & PB_SLOT_DEAD))
			continue;
		/* no item twice */
		Assert(leaf->n == 0 || leaf->slots[leaf->n - 1] < slot);
		make_room(leaf, (pb_slot_get(page, slot) & PB_SLOT_POSTING) ?
				  PB_MAX_TIDS : 1);
		if (fixed)
		{
			Collected	what = collect_fixed(leaf, q, page, slot, &f,
											 scan->xs_want_itup);

			if (what == FAILS)
				slot = skip_slots(leaf, q, buffer, slot, to, &f.view,
								  &patience) - 1;
			if (what != NOT_FIXED)
				continue;
		}
		pb_item_get(q->rel, q->index, buffer, page, slot, &item);
		if (q->nrest > 0 && !pb_quals_check(q, &item.key))
		{
			slot = skip_slots(leaf, q, buffer, slot, to, &item.key, &patience) -
				1;
			continue;
		}
		n = pb_item_tids(q->rel, buffer, page, slot, &item,
						 leaf->tids + leaf->n);
		if (keep)
			keep_key(leaf, q->index, item.key.has_map ? item.key.map : NULL,
					 item.key.data, item.key.len);
		for (int i = 0; i < n; i++)
		{
			leaf->slots[leaf->n + i] = slot;
			leaf->keys_at[leaf->n + i] = -1 - at;
		}
		leaf->n += n;
	}
}

static int
search_page(PbPos *pos, Buffer buffer)
{
	PbBounds	bounds = {0, 0};

	return pb_pos_search(pos, buffer, &bounds);
}

/* True if a key that precedes the page's keys may come behind the position. */
static bool
is_left_of(PbPos *pos, Page page)
{
	int			equal;

	if (pb_page_is_leftmost(page))
		return false;
	return PbPageGetSpecial(page)->low_len == 0 ||
		pb_pos_compare_fence(pos, pb_page_low(page),
							 PbPageGetSpecial(page)->low_len, 0, &equal) < 0;
}

/*
 * If a range has no rows on the page, pass without examination all ranges
 * before the next item in this direction, or before the sibling's keys.  There
 * are as many ranges as combinations of elements, and the page is locked.
 */
static void
skip_ranges(PbQuals *q, Buffer buffer, int slot, ScanDirection dir)
{
	Page		page = BufferGetPage(buffer);
	PbSpecial  *special = PbPageGetSpecial(page);
	PbItem		item;
	bool		found;

	if (q->narrays == 0)
		return;
	if (slot >= 0 && slot < pb_page_nslots(page))
	{
		pb_item_get(q->rel, q->index, buffer, page, slot, &item);
		found = true;
	}
	else if (ScanDirectionIsForward(dir) ? pb_page_is_rightmost(page) :
			 pb_page_is_leftmost(page))
	{
		pb_quals_skip(q, NULL, dir);
		return;
	}
	else if (ScanDirectionIsForward(dir))
		found = pb_key_get_fence(q->index, pb_page_high(page),
								 special->high_len, &item.key);
	else
		found = pb_key_get_fence(q->index, pb_page_low(page), special->low_len,
								 &item.key);
	if (found)
		pb_quals_skip(q, &item.key, dir);
}

/*
 * The range continues on the sibling.  Find out if rows of it can be skipped
 * there.  A column in front of the deciding one whose values end with the
 * fence does not count, because the next value probably begins there.  Returns
 * false if no further row of the range satisfies the conditions.
 */
static bool
look_beyond(PbLeaf *leaf, PbQuals *q, Page page, ScanDirection dir)
{
	bool		forward = ScanDirectionIsForward(dir);
	PbSide	   *side = &leaf->side[forward ? PB_RIGHT : PB_LEFT];
	const uint8 *fence = forward ? pb_page_high(page) : pb_page_low(page);
	int			len = forward ? PbPageGetSpecial(page)->high_len :
		PbPageGetSpecial(page)->low_len;
	PbKey		key;
	PbPos	   *pos;
	char	   *copy;
	int			equal;
	int			cmp;

	if (!q->can_skip || !pb_key_get_fence(q->index, fence, len, &key))
		return true;
	switch (pb_skip_find(q, &key, dir, &pos))
	{
		case PB_SKIP_NOT:
		case PB_SKIP_NEXT_COLUMN:
			return true;
		case PB_SKIP_END:
			return false;
		case PB_SKIP_POS:
			break;
	}

	/* a position in front of keys equal to the low fence is on this page */
	cmp = pb_pos_compare_fence(pos, fence, len, 0, &equal);
	pb_pos_end(pos);
	if (forward ? cmp <= 0 : cmp >= 0)
		return true;
	copy = key_room(leaf, len);
	memcpy(copy, fence, len);
	side->fence_at = copy - leaf->key_space;
	side->fence_len = len;
	return true;
}

#ifdef USE_ASSERT_CHECKING
/*
 * I15: check that the position is beyond the fence, so that the scan
 * terminates.
 */
static bool
is_beyond(PbQuals *q, PbPos *pos, const uint8 *fence, int len,
		  ScanDirection dir)
{
	PbCounters	counters = pb_counters;
	int			equal;
	int			cmp;

	if (!pb_pos_order_is_core(q->rel) || !conditions_are_core(q))
		return true;
	cmp = pb_pos_compare_fence(pos, fence, len, 0, &equal);
	pb_counters = counters;
	return ScanDirectionIsForward(dir) ? cmp > 0 : cmp < 0;
}
#endif

/*
 * Get the position from which the scan continues beyond the page, in this
 * direction; NULL if on its sibling.
 */
PbPos *
pb_leaf_target(const PbLeaf *leaf, PbQuals *q, ScanDirection dir)
{
	const PbSide *side =
		&leaf->side[ScanDirectionIsForward(dir) ? PB_RIGHT : PB_LEFT];
	PbKey		key;
	PbPos	   *pos;

	if (side->fence_len == 0)
		return NULL;
	if (!pb_key_get_fence(q->index, (uint8 *) leaf->key_space + side->fence_at,
						  side->fence_len, &key) ||
		pb_skip_find(q, &key, dir, &pos) != PB_SKIP_POS)
		return NULL;
	Assert(is_beyond(q, pos, (uint8 *) leaf->key_space + side->fence_at,
					 side->fence_len, dir));
	return pos;
}

/*
 * Collect ranges from the slot on, up to one that continues behind the page,
 * or is on another page.
 */
static void
collect_forward(PbLeaf *leaf, IndexScanDesc scan, PbQuals *q, Buffer buffer,
				int slot)
{
	Page		page = BufferGetPage(buffer);

	for (int n = 1;; n++)
	{
		bool		more = pb_pos_is_right_of(&q->to, page);
		int			end = more || q->to.natts == 0 ? pb_page_nslots(page)
			: pb_pos_search_near(&q->to, buffer, slot);

		collect(leaf, scan, q, buffer, slot, end);
		if (more)
			more = look_beyond(leaf, q, page, ForwardScanDirection);
		leaf->side[PB_RIGHT].more = more;
		if (!more && end <= slot)
			skip_ranges(q, buffer, end, ForwardScanDirection);
		pb_quals_save(q, leaf->side[PB_RIGHT].elements);
		if (more || n >= MAX_RANGES || !pb_quals_next(q, ForwardScanDirection))
			return;
		if (pb_pos_is_right_of(&q->from, page))
			return;
		slot = Max(end, search_page(&q->from, buffer));
	}
}

/*
 * Collect ranges up to the slot.  They are collected backwards, and then
 * reversed.
 */
static void
collect_backward(PbLeaf *leaf, IndexScanDesc scan, PbQuals *q, Buffer buffer,
				 int slot)
{
	Page		page = BufferGetPage(buffer);
	uint16		ranges[2][BLCKSZ / 2];
	int			n = 0;

	for (int looked = 1;; looked++)
	{
		int			begin = search_page(&q->from, buffer);
		bool		more = begin == 0 && is_left_of(&q->from, page);

		if (begin < slot)
		{
			ranges[0][n] = begin;
			ranges[1][n++] = slot;
		}
		if (more)
			more = look_beyond(leaf, q, page, BackwardScanDirection);
		leaf->side[PB_LEFT].more = more;
		if (!more && begin >= slot)
			skip_ranges(q, buffer, slot - 1, BackwardScanDirection);
		pb_quals_save(q, leaf->side[PB_LEFT].elements);
		if (more || looked >= MAX_RANGES ||
			!pb_quals_next(q, BackwardScanDirection))
			break;
		if (is_left_of(&q->to, page))
			break;
		slot = Min(begin, search_page(&q->to, buffer));
	}
	while (n-- > 0)
		collect(leaf, scan, q, buffer, ranges[0][n], ranges[1][n]);
}

/*
 * Read a locked page, and unlock it.  Forwards from the slot on, backwards up
 * to it.  "entered": the range continues from the sibling.
 */
void
pb_leaf_read(PbLeaf *leaf, IndexScanDesc scan, PbQuals *q, Buffer buffer,
			 int slot, ScanDirection dir, bool entered)
{
	bool		forward = ScanDirectionIsForward(dir);
	PbSide	   *behind = &leaf->side[forward ? PB_LEFT : PB_RIGHT];

	Assert(pb_index_is_locked(buffer, PB_READ) &&
		   pb_page_is_leaf(BufferGetPage(buffer)));
	Assert(slot >= 0 && slot <= pb_page_nslots(BufferGetPage(buffer)));
	/* the previous page must have been left, with its pin and its marks */
	Assert(BufferIsInvalid(leaf->buffer) && leaf->block == PB_NONE);
	PredicateLockPage(q->rel, BufferGetBlockNumber(buffer), scan->xs_snapshot);
	CompatTestForOldSnapshot(scan->xs_snapshot, q->rel, BufferGetPage(buffer));
	leaf->buffer = buffer;
	leaf->block = BufferGetBlockNumber(buffer);
	leaf->next = PbPageGetSpecial(BufferGetPage(buffer))->next;
	leaf->passed = false;
	leaf->n = 0;
	leaf->key_used = 0;
	leaf->nkilled = 0;
	leaf->side[PB_LEFT].fence_len = leaf->side[PB_RIGHT].fence_len = 0;
	behind->more = entered;
	pb_quals_save(q, behind->elements);
	if (forward)
		collect_forward(leaf, scan, q, buffer, slot);
	else
		collect_backward(leaf, scan, q, buffer, slot);
	leaf->at = forward ? -1 : leaf->n;
	leaf->lsn = BufferGetLSNAtomic(buffer);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	if (scan->xs_snapshot != NULL && IsMVCCSnapshot(scan->xs_snapshot) &&
		RelationNeedsWAL(q->rel) && !scan->xs_want_itup)
	{
		ReleaseBuffer(buffer);
		leaf->buffer = InvalidBuffer;
	}
	CompatInjectionPoint("pbtree-leaf");
}

/* ---- dead rows --------------------------------------------------------- */

/* Remember that the current row is dead to all snapshots. */
void
pb_leaf_kill(PbLeaf *leaf)
{
	/* a scan may return to a row repeatedly */
	if (leaf->at < 0 || leaf->at >= leaf->n || leaf->nkilled >= leaf->n)
		return;
	if (leaf->nkilled >= leaf->killed_room)
	{
		leaf->killed_room = Max(leaf->killed_room * 2, 64);
		leaf->killed = enlarge(leaf->killed, leaf->killed_room * sizeof(int));
	}
	leaf->killed[leaf->nkilled++] = leaf->at;
}

static int
compare_ints(const void *a, const void *b)
{
	return *(const int *) a - *(const int *) b;
}

static int
compare_tids(const void *a, const void *b)
{
	return ItemPointerCompare((ItemPointer) a, (ItemPointer) b);
}

/* List the TIDs of killed rows, sorted. */
static ItemPointerData *
killed_tids(const PbLeaf *leaf)
{
	ItemPointerData *killed = palloc(leaf->nkilled * sizeof(ItemPointerData));

	for (int i = 0; i < leaf->nkilled; i++)
		killed[i] = leaf->tids[leaf->killed[i]];
	qsort(killed, leaf->nkilled, sizeof(ItemPointerData), compare_tids);
	return killed;
}

/*
 * True if each of the item's rows was killed.  I9: compared by TID, since
 * slots may have moved.
 */
static bool
all_are_killed(const ItemPointerData *killed, int nkilled,
			   const ItemPointerData *tids, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (bsearch(&tids[i], killed, nkilled, sizeof(ItemPointerData),
					compare_tids) == NULL)
			return false;
	}
	return true;
}

/*
 * Mark the items of killed rows, if the page is unchanged since it was read,
 * or its rows cannot have been removed.
 */
static void
mark_killed(PbLeaf *leaf, PbIndex *index, Relation rel, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	PbItem	   *item = palloc(sizeof(PbItem));
	ItemPointerData *tids = palloc(sizeof(ItemPointerData) * PB_MAX_TIDS);
	ItemPointerData *killed = killed_tids(leaf);
	bool		marked = false;
	int			last = -1;

	Assert(pb_index_is_locked(buffer, PB_READ));
	qsort(leaf->killed, leaf->nkilled, sizeof(int), compare_ints);
	for (int i = 0; i < leaf->nkilled; i++)
	{
		int			slot = leaf->slots[leaf->killed[i]];

		/* where a pin was kept, items may have been inserted since */
		if (slot == last || slot >= pb_page_nslots(page))
			continue;
		last = slot;
		if (pb_slot_get(page, slot) & PB_SLOT_DEAD)
			continue;
		pb_item_get(rel, index, buffer, page, slot, item);
		if (all_are_killed(killed, leaf->nkilled, tids,
						   pb_item_tids(rel, buffer, page, slot, item, tids)))
		{
			if (!marked && !CompatBeginHint(buffer))
				break;
			*(uint16 *) pb_page_slot(page, slot) |= PB_SLOT_DEAD;
			marked = true;
		}
	}
	if (marked)
	{
		PbPageGetSpecial(page)->flags |= PB_PAGE_GARBAGE;
		CompatEndHint(buffer);
	}
	pfree(item);
	pfree(tids);
	pfree(killed);
}

/* Leave the page: mark killed items, and release the pin. */
void
pb_leaf_leave(PbLeaf *leaf, PbIndex *index, IndexScanDesc scan)
{
	Relation	rel = scan->indexRelation;
	bool		pinned = BufferIsValid(leaf->buffer);

	if (leaf->block == PB_NONE)
		return;
	if (leaf->nkilled > 0)
	{
		Buffer		buffer = pinned ? leaf->buffer :
			ReadBuffer(rel, leaf->block);

		LockBuffer(buffer, PB_READ);
		if ((pinned || BufferGetLSNAtomic(buffer) == leaf->lsn) &&
			pb_page_check(BufferGetPage(buffer)) == NULL &&
			!(PbPageGetSpecial(BufferGetPage(buffer))->flags &
			  (PB_PAGE_DELETED | PB_PAGE_META)))
			mark_killed(leaf, index, rel, buffer);
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		if (!pinned)
			ReleaseBuffer(buffer);
		leaf->nkilled = 0;
	}
	if (pinned)
		ReleaseBuffer(leaf->buffer);
	leaf->buffer = InvalidBuffer;
	leaf->block = PB_NONE;
}

/* Copy with a pin of its own.  Killed rows stay with the original. */
void
pb_leaf_copy(PbLeaf *to, const PbLeaf *from)
{
	PbLeaf		had = *to;

	/* a pin would be lost */
	Assert(BufferIsInvalid(had.buffer) && had.block == PB_NONE);
	*to = *from;
	to->room = had.room;
	to->tids = had.tids;
	to->slots = had.slots;
	to->keys_at = had.keys_at;
	to->key_room = had.key_room;
	to->key_space = had.key_space;
	to->key_used = 0;
	to->nkilled = 0;
	to->killed_room = had.killed_room;
	to->killed = had.killed;
	to->n = 0;
	make_room(to, from->n);
	to->n = from->n;
	memcpy(to->tids, from->tids, from->n * sizeof(ItemPointerData));
	memcpy(to->slots, from->slots, from->n * sizeof(uint16));
	memcpy(to->keys_at, from->keys_at, from->n * sizeof(int));
	if (from->key_used > to->key_room)
	{
		to->key_room = from->key_used;
		to->key_space = enlarge(to->key_space, to->key_room);
	}
	if (from->key_used > 0)
		memcpy(to->key_space, from->key_space, from->key_used);
	to->key_used = from->key_used;
	if (BufferIsValid(to->buffer))
		IncrBufferRefCount(to->buffer);
}
