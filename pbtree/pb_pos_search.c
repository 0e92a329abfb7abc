/*-------------------------------------------------------------------------
 * pb_pos_search.c
 *	  Binary search on a page.
 *
 * Three ways to compare.  Where the index's keys compare as bytes, and neither
 * the position nor the page has a NULL: by heads and memcmp.  Where equal keys
 * are identical ("coded"): the first different byte determines the column that
 * differs, and the operator class compares only that one.  Else column by
 * column.  Except in the first way, a search remembers how many columns equal
 * those of the items at its two bounds: all keys in between share them, so
 * they are not compared again.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/nbtree.h"

#include "pb_pos.h"

/* ---- by bytes ---------------------------------------------------------- */

static void
not_whole(PbPos *pos, Buffer buffer, int slot)
{
	pb_index_corrupt(pos->rel, BufferGetBlockNumber(buffer), slot,
					 "The item is incomplete.");
}

/*
 * Compare if all columns are equal: the TID, or the number of columns,
 * decides.  The item's part behind the columns is at p.
 */
static int
compare_item_rest(PbPos *pos, Buffer buffer, Page page, int slot,
				  const uint8 *p, int natts, bool has_tid)
{
	ItemPointerData tid;
	bool		leaf = pb_page_is_leaf(page);
	const uint8 *end = (uint8 *) page + PbPageSpecial(page);

	if (pos->has_tid && natts == pos->natts)
	{
		if (leaf && pos->index->natts > pos->index->nkeys)
		{
			PbItem		item;

			/* columns of INCLUDE precede the TIDs */
			pb_item_get(pos->rel, pos->index, buffer, page, slot, &item);
			pb_item_first_tid(pos->rel, buffer, page, slot, &item, &tid);
			has_tid = true;
		}
		else if (leaf)
		{
			if (((pb_slot_get(page, slot) & PB_SLOT_POSTING) ?
				 pb_posting_first(p, end, &tid) :
				 pb_tid_get(p, end, &tid)) == NULL)
				not_whole(pos, buffer, slot);
			has_tid = true;
		}
		else if (has_tid)
		{
			if (end - p < sizeof(tid))
				not_whole(pos, buffer, slot);
			memcpy(&tid, p, sizeof(tid));
		}
	}
	return pb_pos_compare_rest(pos, natts, has_tid, &tid, leaf);
}

static int
compare_item_bytes(PbPos *pos, Buffer buffer, Page page, int slot, int prefix)
{
	uint8	   *at = pb_page_slot(page, slot);
	int			off = *(uint16 *) at & PB_SLOT_OFF;
	const uint8 *mine = pos->data + prefix;
	int			natts = pos->index->nkeys;
	int			rest;
	bool		has_tid = false;
	int			cmp;

	if (!pb_page_is_leaf(page))
	{
		off += PB_PIVOT_LEN;
		if (off > PbPageSpecial(page))
			pb_index_corrupt(pos->rel, BufferGetBlockNumber(buffer), slot,
							 "The item's slot points outside of the page.");
		natts = ((uint8 *) page)[off - 1] & PB_NATTS_MASK;
		has_tid = (((uint8 *) page)[off - 1] & PB_NATTS_TID) != 0;
	}
	rest = pos->off[Min(natts, pos->natts)] - prefix;
	if (pb_page_has_heads(page))
	{
		for (int i = 0; i < PB_HEAD_LEN && rest > 0; i++, mine++, rest--)
		{
			cmp = *mine - at[sizeof(uint16) + i];
			if (cmp != 0)
			{
				pb_counters.heads++;
				return cmp;
			}
		}
	}
	pb_counters.keys++;
	pb_counters.columns++;
	if (rest > 0)
	{
		int			n = Min(rest, PbPageSpecial(page) - off);

		pb_counters.bytes += n;
		if (off < PbPageUpper(page) || n <= 0)
			pb_index_corrupt(pos->rel, BufferGetBlockNumber(buffer), slot,
							 "The item's slot points outside of the page's items.");
		cmp = memcmp(mine, (uint8 *) page + off, n);
		if (cmp != 0)
			return cmp;
		if (n < rest)
			not_whole(pos, buffer, slot);
		off += rest;
	}
	return compare_item_rest(pos, buffer, page, slot, (uint8 *) page + off,
							 natts, has_tid);
}

static inline int
load_head(const uint8 *head)
{
	return head[0] << 8 | head[1];
}

/*
 * No encoding is a prefix of another one.  So heads that differ decide, also
 * where an inner item has fewer columns than the position.
 */
static int
search_bytes(PbPos *pos, Buffer buffer, Page page)
{
	bool		inner = !pb_page_is_leaf(page);
	int			low = inner ? 1 : 0;
	int			high = pb_page_nslots(page);
	int			prefix = PbPageGetSpecial(page)->prefix_len;
	int			cmp = memcmp(pos->data, pb_page_prefix(page),
							 Min(prefix, pos->off[pos->natts]));
	bool		heads = pb_page_has_heads(page) &&
		pos->off[pos->natts] >= prefix + PB_HEAD_LEN;
	int			mine = heads ? load_head(pos->data + prefix) : 0;

	if (prefix > 0)
	{
		pb_counters.columns++;
		pb_counters.bytes += prefix;
	}
	if (cmp != 0)
		return cmp < 0 ? low : high;
	while (low < high)
	{
		int			mid = (low + high) / 2;

		cmp = heads ?
			mine - load_head(pb_page_slot(page, mid) + sizeof(uint16)) : 0;
		if (cmp != 0)
			pb_counters.heads++;
		else
			cmp = compare_item_bytes(pos, buffer, page, mid, prefix);
		if (cmp > 0 || (inner && cmp == 0))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* ---- column by column -------------------------------------------------- */

/*
 * Compare with the columns that are in the page's prefix.  Their number is
 * added to start.
 */
static int
compare_prefix(PbPos *pos, Page page, int *start)
{
	PbSpecial  *special = PbPageGetSpecial(page);
	PbKey		key;

	pb_key_begin(&key);
	key.data = pb_page_prefix(page);
	key.natts = pos->natts;
	if (special->prefix_len == 0 || (special->flags & PB_PAGE_MAPS))
		return 0;
	(void) pb_key_parse(pos->index, &key, pos->natts, special->prefix_len);
	for (int i = *start; i < key.parsed; i++)
	{
		int			cmp = pb_pos_compare_column(pos, &key, i);

		if (cmp != 0)
			return cmp;
		*start = i + 1;
	}
	return 0;
}

static int
compare_item(PbPos *pos, Buffer buffer, Page page, int slot, int start,
			 int *equal)
{
	PbItem		item;
	bool		leaf = pb_page_is_leaf(page);

	pb_item_get(pos->rel, pos->index, buffer, page, slot, &item);
	if (leaf && pos->has_tid)
	{
		pb_item_first_tid(pos->rel, buffer, page, slot, &item, &item.key.tid);
		item.key.has_tid = true;
	}
	if (start > item.key.natts)
		pb_index_corrupt(pos->rel, BufferGetBlockNumber(buffer), slot,
						 "The item has too few columns.");
	return pb_pos_compare(pos, &item.key, leaf, start, equal);
}

/* ---- coded ------------------------------------------------------------- */

/* An item, with the data that a comparison needs. */
typedef struct CodedItem
{
	int			natts;
	bool		has_tid;
	bool		has_map;
	const uint8 *map;
	const uint8 *p;				/* the key's suffix */
	const uint8 *end;
} CodedItem;

static void
get_coded(PbPos *pos, Buffer buffer, Page page, int slot, CodedItem *item)
{
	uint16		bits = pb_slot_get(page, slot);
	uint8	   *p = (uint8 *) page + (bits & PB_SLOT_OFF);

	item->natts = pos->index->nkeys;
	item->has_tid = false;
	item->has_map = (bits & PB_SLOT_MAP) != 0;
	item->end = (uint8 *) page + PbPageSpecial(page);
	if ((bits & PB_SLOT_OFF) < PbPageUpper(page) ||
		p + pb_page_pre_len(page, bits) > item->end)
		pb_index_corrupt(pos->rel, BufferGetBlockNumber(buffer), slot,
						 "The item's slot points outside of the page's items.");
	if (!pb_page_is_leaf(page))
	{
		p += PB_PIVOT_LEN;
		item->natts = p[-1] & PB_NATTS_MASK;
		item->has_tid = (p[-1] & PB_NATTS_TID) != 0;
	}
	item->map = p;
	item->p = p + (item->has_map ? pos->index->map_len : 0);
}

static inline int
map_state(const uint8 *map, bool has_map, int i)
{
	return has_map ? (map[i / 4] >> (i % 4 * 2)) & 3 : PB_COL_PLAIN;
}

/* Find the first of n columns whose states differ, or n. */
static int
states_differ(const PbPos *pos, const CodedItem *item, int n)
{
	if (!pos->has_map && !item->has_map)
		return n;
	for (int i = 0; i < n; i++)
	{
		if (map_state(pos->map, pos->has_map, i) !=
			map_state(item->map, item->has_map, i))
			return i;
	}
	return n;
}

/*
 * Get a text column's bytes in one piece, without the 0.  The first ones may
 * be in the page's prefix.
 */
static const uint8 *
text_of(PbPos *pos, Buffer buffer, Page page, int slot, const CodedItem *item,
		int from, uint8 *space, int *len)
{
	int			prefix = PbPageGetSpecial(page)->prefix_len;
	int			front = Max(prefix - from, 0);
	const uint8 *p = from > prefix ? item->p + (from - prefix) : item->p;
	const uint8 *zero = p < item->end ? memchr(p, 0, item->end - p) : NULL;

	if (front > 0)
	{
		const uint8 *in_prefix = pb_page_prefix(page) + from;
		const uint8 *ends = memchr(in_prefix, 0, front);

		if (ends != NULL)
		{
			*len = ends - in_prefix;
			return in_prefix;
		}
		if (zero == NULL || front + (zero - p) > BLCKSZ)
			not_whole(pos, buffer, slot);
		memcpy(space, in_prefix, front);
		memcpy(space + front, p, zero - p);
		*len = front + (zero - p);
		return space;
	}
	if (zero == NULL)
		not_whole(pos, buffer, slot);
	*len = zero - p;
	return p;
}

/* Compare column i, which is the first one that differs, at byte c. */
static int
compare_coded_column(PbPos *pos, Buffer buffer, Page page, int slot,
					 const CodedItem *item, int i, int c)
{
	const PbColumn *col = &pos->index->col[i];
	PbPosCol   *mine = &pos->col[i];
	int			prefix = PbPageGetSpecial(page)->prefix_len;
	int			equal;

	if (mine->has_code && PbCodecIsOrdered(col->codec))
		return pos->data[c] -
			(c < prefix ? pb_page_prefix(page)[c] : item->p[c - prefix]);
	if (mine->has_code && col->codec == PB_CODEC_TEXT)
	{
		uint8		space[BLCKSZ];
		int			len;
		const uint8 *text = text_of(pos, buffer, page, slot, item, pos->off[i],
									space, &len);

		pb_counters.bytes += len;
		return pb_pos_compare_text(col, mine->code, mine->code_len - 1, text,
								   len);
	}
	return compare_item(pos, buffer, page, slot, i, &equal);
}

/*
 * Like compare_item.  "common" is the number of bytes that the position shares
 * with the page's prefix.  Pages with heads have no such items.
 */
static int
compare_item_coded(PbPos *pos, Buffer buffer, Page page, int slot, int common,
				   int start, int *equal)
{
	CodedItem	item;
	int			prefix = PbPageGetSpecial(page)->prefix_len;
	int			natts;
	int			n;
	int			i;
	int			c = common;

	get_coded(pos, buffer, page, slot, &item);
	if (start > item.natts)
		pb_index_corrupt(pos->rel, BufferGetBlockNumber(buffer), slot,
						 "The item has too few columns.");
	natts = Min(item.natts, pos->natts);
	i = states_differ(pos, &item, natts);
	n = pos->off[i];
	if (common == prefix && n > prefix)
	{
		int			from = Max(prefix, pos->off[Min(start, i)]);
		int			rest = Min(n - prefix, item.end - item.p);

		c = from - prefix < rest ?
			from + pb_common_bytes(pos->data + from,
								   item.p + (from - prefix),
								   prefix + rest - from) : from;
		if (c == prefix + rest && c < n)
			not_whole(pos, buffer, slot);
	}
	pb_counters.keys++;
	if (c >= n && i < natts)
	{
		bool		isnull = map_state(pos->map, pos->has_map, i) ==
			PB_COL_NULL;

		/* one compressed, the other one not: they may be equal all the same */
		if (!isnull && map_state(item.map, item.has_map, i) != PB_COL_NULL)
			return compare_item(pos, buffer, page, slot, start, equal);
		*equal = i;
		pb_counters.columns += Max(i - start, 0) + 1;
		return pb_pos_compare_null(&pos->index->col[i], isnull);
	}
	if (c >= n)
	{
		*equal = natts;
		pb_counters.columns += Max(natts - start, 0);
		return compare_item_rest(pos, buffer, page, slot,
								 item.p + Max(n - prefix, 0), item.natts,
								 item.has_tid);
	}
	for (i = start; pos->off[i + 1] <= c; i++);
	*equal = i;
	pb_counters.columns += i - start + 1;
	return compare_coded_column(pos, buffer, page, slot, &item, i, c);
}

static inline bool
is_coded(const PbPos *pos, Page page)
{
	return pos->coded && !pb_page_has_heads(page);
}

static inline int
common_with_prefix(const PbPos *pos, Page page)
{
	return pb_common_bytes(pos->data, pb_page_prefix(page),
						   Min(PbPageGetSpecial(page)->prefix_len,
							   pos->off[pos->natts]));
}

static int
search_columns(PbPos *pos, Buffer buffer, Page page, PbBounds *bounds)
{
	bool		inner = !pb_page_is_leaf(page);
	bool		coded = is_coded(pos, page);
	int			common = coded ? common_with_prefix(pos, page) : 0;
	int			low = inner ? 1 : 0;
	int			high = pb_page_nslots(page);
	int			start = Min(bounds->lo, bounds->hi);
	int			cmp = high > low && !coded ?
		compare_prefix(pos, page, &start) : 0;
	int			lo = Max(bounds->lo, start);
	int			hi = Max(bounds->hi, start);

	if (cmp != 0)
	{
		*(cmp < 0 ? &bounds->hi : &bounds->lo) = start;
		return cmp < 0 ? low : high;
	}
	while (low < high)
	{
		int			mid = (low + high) / 2;
		int			equal;

		cmp = coded ? compare_item_coded(pos, buffer, page, mid, common,
										 Min(lo, hi), &equal) :
			compare_item(pos, buffer, page, mid, Min(lo, hi), &equal);
		if (cmp > 0 || (inner && cmp == 0))
		{
			low = mid + 1;
			bounds->lo = lo = equal;
		}
		else
		{
			high = mid;
			bounds->hi = hi = equal;
		}
	}
	return low;
}

#ifdef USE_ASSERT_CHECKING
bool
pb_pos_order_is_core(Relation rel)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(rel); i++)
	{
		if (index_getprocid(rel, i + 1, BTORDER_PROC) >= FirstNormalObjectId ||
			TupleDescAttr(RelationGetDescr(rel), i)->atttypid >=
			FirstNormalObjectId)
			return false;
	}
	return true;
}

/*
 * I7: check that in complete comparisons the item in front of the slot
 * precedes the position, and the one at the slot does not.
 */
static bool
slot_is_right(PbPos *pos, Buffer buffer, Page page, int slot)
{
	PbCounters	counters = pb_counters;
	bool		inner = !pb_page_is_leaf(page);
	bool		right = true;
	int			equal;
	int			cmp;

	if (!pb_pos_order_is_core(pos->rel))
		return true;
	if (slot > (inner ? 1 : 0))
	{
		cmp = compare_item(pos, buffer, page, slot - 1, 0, &equal);
		right &= cmp > 0 || (inner && cmp == 0);
	}
	if (slot < pb_page_nslots(page))
	{
		cmp = compare_item(pos, buffer, page, slot, 0, &equal);
		right &= cmp < 0 || (!inner && cmp == 0);
	}
	pb_counters = counters;
	return right;
}
#endif

/*
 * Search a page.  Leaf: returns the first item that does not precede the
 * position.  Inner page: the first item behind it, so that the child in front
 * of that one is to be visited.  "bounds" is initially the result of
 * comparisons with the page's fences.
 */
int
pb_pos_search(PbPos *pos, Buffer buffer, PbBounds *bounds)
{
	Page		page = BufferGetPage(buffer);
	int			slot;

	Assert(pb_index_is_locked(buffer, PB_READ));
	Assert(bounds->lo <= pos->natts && bounds->hi <= pos->natts);	/* I6 */
	if (pos->bytes && !(PbPageGetSpecial(page)->flags & PB_PAGE_MAPS))
		slot = search_bytes(pos, buffer, page);
	else
		slot = search_columns(pos, buffer, page, bounds);
	/* on an inner page the child is that in front of the slot */
	Assert(slot >= (pb_page_is_leaf(page) ? 0 : 1) &&
		   slot <= pb_page_nslots(page));
#ifdef USE_ASSERT_CHECKING
	if (!slot_is_right(pos, buffer, page, slot))
		pb_index_corrupt(pos->rel, BufferGetBlockNumber(buffer), slot,
						 "A complete comparison contradicts a comparison of parts.");
#endif
	return slot;
}

/* Compare with one item of a leaf, in the appropriate way. */
int
pb_pos_compare_item(PbPos *pos, Buffer buffer, int slot)
{
	Page		page = BufferGetPage(buffer);
	int			prefix = PbPageGetSpecial(page)->prefix_len;
	int			equal;

	Assert(pb_index_is_locked(buffer, PB_READ) && pb_page_is_leaf(page));
	if (pos->bytes && !(PbPageGetSpecial(page)->flags & PB_PAGE_MAPS))
	{
		int			cmp = memcmp(pos->data, pb_page_prefix(page),
								 Min(prefix, pos->off[pos->natts]));

		return cmp != 0 ? cmp :
			compare_item_bytes(pos, buffer, page, slot, prefix);
	}
	if (is_coded(pos, page))
		return compare_item_coded(pos, buffer, page, slot,
								  common_with_prefix(pos, page), 0, &equal);
	return compare_item(pos, buffer, page, slot, 0, &equal);
}

/*
 * Like pb_pos_search, on a leaf, but from this slot on: the result is probably
 * close behind it.
 */
int
pb_pos_search_near(PbPos *pos, Buffer buffer, int slot)
{
	Page		page = BufferGetPage(buffer);
	int			low = slot;
	int			high = pb_page_nslots(page);

	Assert(slot <= high && pb_index_is_locked(buffer, PB_READ) &&
		   pb_page_is_leaf(page));
	for (int step = 0; low + step < high; step = step * 2 + 1)
	{
		if (pb_pos_compare_item(pos, buffer, low + step) > 0)
			low += step + 1;
		else
			high = low + step;
	}
	while (low < high)
	{
		int			mid = (low + high) / 2;

		if (pb_pos_compare_item(pos, buffer, mid) > 0)
			low = mid + 1;
		else
			high = mid;
	}
	Assert(low == slot || slot_is_right(pos, buffer, page, low));
	return low;
}
