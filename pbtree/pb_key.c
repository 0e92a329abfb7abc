/*-------------------------------------------------------------------------
 * pb_key.c
 *	  Keys: of rows, of items, of fences.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "pb_key.h"

/*
 * Number of key bytes that are copied in any case; longer keys need another
 * copy.
 */
#define CHUNK		64

/* ---- keys of rows ------------------------------------------------------ */

static inline void
set_state(PbKey *key, PbIndex *index, int i, int state)
{
	Assert(i < index->natts && pb_key_state(key, i) == PB_COL_PLAIN);
	if (!key->has_map)
		memset(key->map, 0, index->map_len);
	key->has_map = true;
	key->map[i / 4] |= state << (i % 4 * 2);
}

void
pb_key_set_null(PbKey *key, PbIndex *index, int i)
{
	set_state(key, index, i, PB_COL_NULL);
}

static void
too_long(Relation rel)
{
	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("index row size exceeds pbtree maximum %d for index \"%s\"",
					PB_MAX_KEY, RelationGetRelationName(rel)),
			 errhint("Values larger than 1/3 of a buffer page cannot be indexed.\n"
					 "Consider a function index of an MD5 hash of the value, "
					 "or use full text indexing."),
			 errtableconstraint(rel, RelationGetRelationName(rel))));
}

#ifdef USE_ASSERT_CHECKING
/*
 * Every encoding determines where it ends, so columns are found again at their
 * places.
 */
static bool
ends_are_told(PbIndex *index, const PbKey *key)
{
	for (int i = 0; i < key->natts; i++)
	{
		if (pb_codec_skip(&index->col[i], pb_key_state(key, i),
						  key->data + key->off[i], key->data + key->len) !=
			key->off[i + 1] - key->off[i])
			return false;
	}
	return true;
}
#endif

/*
 * Form the key of a row; the caller sets the TID.  Returns false if it is too
 * long.
 */
bool
pb_key_try_form(PbIndex *index, const Datum *values, const bool *isnull,
				PbKey *key)
{
	pb_key_begin(key);
	key->natts = index->natts;
	for (int i = 0; i < index->natts; i++)
	{
		bool		packed;
		int			len;

		key->off[i] = key->len;
		if (isnull[i])
		{
			set_state(key, index, i, PB_COL_NULL);
			continue;
		}
		len = pb_codec_encode(&index->col[i], values[i], key->data + key->len,
							  PB_MAX_KEY - key->len, &packed);
		if (len < 0)
			return false;
		if (packed)
			set_state(key, index, i, PB_COL_PACKED);
		key->len += len;
	}
	key->off[index->natts] = key->len;
	key->parsed = index->natts;
	Assert(key->len <= PB_MAX_KEY && ends_are_told(index, key));
	return true;
}

void
pb_key_form(Relation rel, PbIndex *index, const Datum *values,
			const bool *isnull, PbKey *key)
{
	if (!pb_key_try_form(index, values, isnull, key))
		too_long(rel);
}

/*
 * Find the columns in key->data, which has avail bytes.  Returns false if they
 * end too early.
 */
bool
pb_key_parse(PbIndex *index, PbKey *key, int natts, int avail)
{
	Assert(natts <= index->natts);
	for (int i = key->parsed; i < natts; i++)
	{
		int			len = pb_codec_skip(&index->col[i], pb_key_state(key, i),
										key->data + key->off[i],
										key->data + avail);

		if (len < 0)
			return false;
		key->off[i + 1] = key->off[i] + len;
		key->parsed = i + 1;
	}
	key->len = key->off[natts];
	return true;
}

Datum
pb_key_datum(PbIndex *index, const PbKey *key, int i, bool *isnull,
			 PbArena *arena)
{
	int			state = pb_key_state(key, i);

	Assert(i < key->parsed);
	*isnull = state == PB_COL_NULL;
	if (*isnull)
		return (Datum) 0;
	return pb_codec_decode(&index->col[i], state, key->data + key->off[i],
						   key->off[i + 1] - key->off[i], arena);
}

void
pb_key_copy(PbKey *to, const PbKey *from)
{
	Assert(from->len >= 0 && from->len <= PB_KEY_ROOM);
	memcpy(to, from, offsetof(PbKey, own));
	to->data = to->own;
	memcpy(to->own, from->data, from->len);
}

/* Keep the first columns only. */
void
pb_key_truncate(PbKey *key, int natts)
{
	bool		map = false;

	Assert(natts <= key->parsed);
	key->natts = natts;
	key->parsed = natts;
	key->len = key->off[natts];
	key->has_tid = false;
	if (!key->has_map)
		return;
	for (int i = 0; i < PB_MAX_MAP * 4; i++)
	{
		if (i >= natts && i / 4 < PB_MAX_MAP)
			key->map[i / 4] &= ~(3 << (i % 4 * 2));
		else if (pb_key_state(key, i) != PB_COL_PLAIN)
			map = true;
	}
	key->has_map = map;
}

/* The length of the common prefix of both. */
int
pb_key_common(const PbKey *a, const PbKey *b)
{
	return pb_common_bytes(a->data, b->data, Min(a->len, b->len));
}

/*
 * True if the bytes are the same; TIDs are not compared.  I5: only where equal
 * keys are identical does that decide whether they are equal.
 */
bool
pb_key_is_identical(const PbKey *a, const PbKey *b)
{
	return a->natts == b->natts && a->has_map == b->has_map &&
		a->len == b->len && memcmp(a->data, b->data, a->len) == 0 &&
		(!a->has_map || memcmp(a->map, b->map, (a->natts * 2 + 7) / 8) == 0);
}

/* ---- fences, items: writing -------------------------------------------- */

static int
put_map(PbIndex *index, const PbKey *key, uint8 *to)
{
	if (!key->has_map)
		return 0;
	memcpy(to, key->map, index->map_len);
	return index->map_len;
}

static int
put_tid(const PbKey *key, uint8 *to)
{
	if (!key->has_tid)
		return 0;
	memcpy(to, &key->tid, sizeof(key->tid));
	return sizeof(key->tid);
}

int
pb_key_put_fence(PbIndex *index, const PbKey *key, uint8 *to)
{
	int			len = 1;

	Assert(key->natts <= index->nkeys && key->len == key->off[key->natts]);
	to[0] = key->natts | (key->has_map ? PB_NATTS_MAP : 0) |
		(key->has_tid ? PB_NATTS_TID : 0);
	len += put_map(index, key, to + len);
	memcpy(to + len, key->data, key->len);
	len += key->len;
	return len + put_tid(key, to + len);
}

/* Read a fence.  Returns false if that is not a fence. */
bool
pb_key_get_fence(PbIndex *index, const uint8 *p, int len, PbKey *key)
{
	const uint8 *end = p + len;
	uint8		natts;

	pb_key_begin(key);
	if (len < 1)
		return false;
	natts = *p++;
	key->natts = natts & PB_NATTS_MASK;
	key->has_tid = (natts & PB_NATTS_TID) != 0;
	key->has_map = (natts & PB_NATTS_MAP) != 0;
	if (key->natts > index->nkeys || (key->has_map && end - p < index->map_len))
		return false;
	if (key->has_map)
	{
		memcpy(key->map, p, index->map_len);
		p += index->map_len;
	}
	if (key->has_tid)
	{
		end -= sizeof(key->tid);
		if (end < p)
			return false;
		memcpy(&key->tid, end, sizeof(key->tid));
	}
	key->data = unconstify(uint8 *, p);
	return pb_key_parse(index, key, key->natts, end - p) && key->len == end - p;
}

/*
 * Write a leaf's item up to its TIDs, without the key's first "skip" bytes.
 * Returns its length.
 */
int
pb_key_put_leaf(PbIndex *index, const PbKey *key, int skip, uint8 *to,
				int *flags)
{
	int			len = put_map(index, key, to);

	Assert(key->natts == index->natts && skip >= 0 && skip <= key->len);
	*flags = key->has_map ? PB_SLOT_MAP : 0;
	memcpy(to + len, key->data + skip, key->len - skip);
	return len + key->len - skip;
}

int
pb_key_put_inner(PbIndex *index, const PbKey *key, int skip, BlockNumber down,
				 uint8 *to, int *flags)
{
	int			len = PB_PIVOT_LEN;

	Assert(key->natts <= index->nkeys && skip >= 0 && skip <= key->len &&
		   down != PB_NONE);
	memcpy(to, &down, sizeof(down));
	to[PB_PIVOT_LEN - 1] = key->natts | (key->has_tid ? PB_NATTS_TID : 0);
	*flags = key->has_map ? PB_SLOT_MAP : 0;
	len += put_map(index, key, to + len);
	memcpy(to + len, key->data + skip, key->len - skip);
	len += key->len - skip;
	return len + put_tid(key, to + len);
}

/* ---- items: reading ---------------------------------------------------- */

/*
 * Find the item, which must have at least "least" bytes on the page.  Returns
 * NULL, or a description of the fault.
 */
static inline const char *
find_item(Page page, int slot, int len, const uint8 **p)
{
	int			off;

	if (slot >= pb_page_nslots(page))
		return "The item does not exist.";
	off = pb_slot_get(page, slot) & PB_SLOT_OFF;
	if (off < PbPageUpper(page) || off + len > PbPageSpecial(page))
		return "The item's slot points outside of the page's items.";
	*p = (uint8 *) page + off;
	return NULL;
}

/*
 * Copy the key into one piece, with the item's bytes behind it.  Returns their
 * address.
 */
static const uint8 *
assemble(PbIndex *index, Page page, int slot, const uint8 *p, PbKey *key)
{
	PbSpecial  *special = PbPageGetSpecial(page);
	int			avail = (uint8 *) page + PbPageSpecial(page) - p;
	int			n = special->prefix_len;
	int			front;
	int			chunk = Min(CHUNK, avail);

	memcpy(key->own, pb_page_prefix(page), n);
	if (pb_page_has_heads(page))
	{
		memcpy(key->own + n, pb_page_slot(page, slot) + sizeof(uint16),
			   PB_HEAD_LEN);
		n += PB_HEAD_LEN;
	}
	front = n;
	for (;;)
	{
		int			room = Min(chunk, (int) sizeof(key->own) - front);

		/* a length that is known is copied without a loop */
		if (room == CHUNK)
			memcpy(key->own + front, p, CHUNK);
		else
			memcpy(key->own + front, p, room);
		if (pb_key_parse(index, key, key->natts, front + room))
			break;
		if (room < chunk || chunk == avail)
			return NULL;
		chunk = avail;
	}
	return key->len >= front ? p + key->len - front : NULL;
}

/* Read the item.  Returns NULL, or a description of the fault. */
static inline const char *
get_item(PbIndex *index, Page page, int slot, PbItem *item)
{
	bool		leaf = pb_page_is_leaf(page);
	const uint8 *p;
	const char *problem = find_item(page, slot, leaf ? 1 : PB_PIVOT_LEN, &p);
	PbKey	   *key = &item->key;
	const uint8 *end = (uint8 *) page + PbPageSpecial(page);

	if (problem != NULL)
		return problem;
	pb_key_begin(key);
	item->flags = pb_slot_get(page, slot) & ~PB_SLOT_OFF;
	key->natts = index->natts;
	if (!leaf)
	{
		memcpy(&item->down, p, sizeof(item->down));
		key->natts = p[PB_PIVOT_LEN - 1] & PB_NATTS_MASK;
		key->has_tid = (p[PB_PIVOT_LEN - 1] & PB_NATTS_TID) != 0;
		p += PB_PIVOT_LEN;
		if (key->natts > index->nkeys || (slot == 0) != (key->natts == 0))
			return "The item's number of columns is wrong.";
		if (slot == 0)
			return NULL;
	}
	if (item->flags & PB_SLOT_MAP)
	{
		key->has_map = true;
		if (end - p < index->map_len)
			return "The item's map is incomplete.";
		memcpy(key->map, p, index->map_len);
		p += index->map_len;
	}
	p = assemble(index, page, slot, p, key);
	if (p == NULL || (key->has_tid && end - p < sizeof(key->tid)))
		return "The item's key is incomplete.";
	item->tail = p;
	if (key->has_tid)
		memcpy(&key->tid, p, sizeof(key->tid));
	return NULL;
}

void
pb_item_get(Relation rel, PbIndex *index, Buffer buffer, Page page, int slot,
			PbItem *item)
{
	const char *problem = get_item(index, page, slot, item);

	if (unlikely(problem != NULL))
		pb_index_corrupt(rel, BufferGetBlockNumber(buffer), slot, problem);
}

#ifdef USE_ASSERT_CHECKING
const char *
pb_item_problem(PbIndex *index, Page page, int slot, PbItem *item)
{
	return get_item(index, page, slot, item);
}
#endif

/*
 * Find the TIDs of a leaf's item with exactly this key, or NULL.  An encoding
 * determines where it ends, so an item that begins with the key's bytes has no
 * longer key.
 */
const uint8 *
pb_item_match(PbIndex *index, Page page, int slot, const PbKey *key)
{
	PbSpecial  *special = PbPageGetSpecial(page);
	const uint8 *at = pb_page_slot(page, slot);
	uint16		bits = pb_slot_get(page, slot);
	const uint8 *p = (uint8 *) page + (bits & PB_SLOT_OFF);
	const uint8 *mine = key->data + special->prefix_len;
	int			rest = key->len - special->prefix_len;
	int			map_len = key->has_map ? index->map_len : 0;

	Assert(pb_page_is_leaf(page) && key->natts == index->natts);
	if (((bits & PB_SLOT_MAP) != 0) != key->has_map || rest < 0)
		return NULL;
	if (pb_page_has_heads(page))
	{
		if (rest < PB_HEAD_LEN ||
			memcmp(mine, at + sizeof(uint16), PB_HEAD_LEN) != 0)
			return NULL;
		mine += PB_HEAD_LEN;
		rest -= PB_HEAD_LEN;
	}
	if (p + map_len + rest > (uint8 *) page + PbPageSpecial(page) ||
		memcmp(p + map_len, mine, rest) != 0 ||
		memcmp(p, key->map, map_len) != 0 ||
		memcmp(key->data, pb_page_prefix(page), special->prefix_len) != 0)
		return NULL;
	return p + map_len + rest;
}

/* Get a leaf item's TIDs, at most PB_MAX_TIDS. */
int
pb_item_tids(Relation rel, Buffer buffer, Page page, int slot,
			 const PbItem *item, ItemPointer tids)
{
	const uint8 *end = (uint8 *) page + PbPageSpecial(page);
	int			n = 1;

	Assert(pb_page_is_leaf(page));
	if (((item->flags & PB_SLOT_POSTING) ?
		 pb_posting_get(item->tail, end, tids, &n) :
		 pb_tid_get(item->tail, end, tids)) == NULL)
		pb_index_corrupt(rel, BufferGetBlockNumber(buffer), slot,
						 "The item's TIDs are damaged.");
	return n;
}

void
pb_item_first_tid(Relation rel, Buffer buffer, Page page, int slot,
				  const PbItem *item, ItemPointer tid)
{
	const uint8 *end = (uint8 *) page + PbPageSpecial(page);

	Assert(pb_page_is_leaf(page));
	if (((item->flags & PB_SLOT_POSTING) ?
		 pb_posting_first(item->tail, end, tid) :
		 pb_tid_get(item->tail, end, tid)) == NULL)
		pb_index_corrupt(rel, BufferGetBlockNumber(buffer), slot,
						 "The item's TIDs are damaged.");
}

BlockNumber
pb_item_down(Relation rel, Buffer buffer, Page page, int slot)
{
	const uint8 *p = NULL;
	const char *problem = find_item(page, slot, PB_PIVOT_LEN, &p);
	BlockNumber block;

	Assert(!pb_page_is_leaf(page));
	if (problem != NULL)
		pb_index_corrupt(rel, BufferGetBlockNumber(buffer), slot, problem);
	memcpy(&block, p, sizeof(block));
	return block;
}

/*
 * The number of bytes of a leaf's item on the page in front of its TIDs, which
 * are at tail.
 */
int
pb_item_keep(Page page, int slot, const uint8 *tail)
{
	return tail - ((uint8 *) page + (pb_slot_get(page, slot) & PB_SLOT_OFF));
}
