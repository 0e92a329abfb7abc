/*-------------------------------------------------------------------------
 * pb_load.c
 *	  Making of a new index's pages from sorted keys.
 *
 * Each level has one page that is being filled; its items are kept in memory
 * until the page is full, because only then its prefix is known.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/nbtree.h"
#include "utils/memutils.h"

#include "pb_load.h"
#include "pb_verify.h"

#define MAX_LEVELS		32
#define MAX_ITEMS		(BLCKSZ / 2)

/* An item of a page that is being filled. */
typedef struct LoadItem
{
	PbKey	   *key;			/* only the used part of it */
	int			flags;			/* PB_SLOT_POSTING */
	int			tail_len;		/* leaf */
	uint8	   *tail;
	BlockNumber down;			/* inner */
} LoadItem;

typedef struct LoadLevel
{
	BlockNumber block;			/* the page */
	BlockNumber prev;
	MemoryContext context;		/* of the items */
	PbPack		pack;
	PbKey	   *low;			/* or NULL */
	int			n;
	int			raw;			/* size of items and slots with complete keys */
	LoadItem	items[MAX_ITEMS];
} LoadLevel;

struct PbLoad
{
	Relation	rel;
	PbIndex    *index;
	PbMeta		meta;
	MemoryContext context;
	int			nlevels;
	LoadLevel  *levels[MAX_LEVELS];
	PbKey		key;			/* of the item whose TIDs are being collected */
	int			ntids;
	int			tids_len;
	ItemPointerData tids[PB_MAX_TIDS];
};

static void load_item(PbLoad *load, int level, const PbKey *key,
					  const LoadItem *item);

PbLoad *
pb_load_begin(Relation rel)
{
	PbLoad	   *load = palloc0(sizeof(PbLoad));

	load->rel = rel;
	load->index = pb_index_get(rel);
	load->context = AllocSetContextCreate(CurrentMemoryContext, "pbtree load",
										  ALLOCSET_DEFAULT_SIZES);
	pb_index_new_meta(rel, &load->meta);
	return load;
}

static BlockNumber
new_block(PbLoad *load)
{
	Buffer		buffer = pb_index_extend(load->rel);
	BlockNumber block = BufferGetBlockNumber(buffer);

	UnlockReleaseBuffer(buffer);
	return block;
}

/*
 * Copy a key into a chunk of its own, without spare room, except for "more"
 * bytes behind it.
 */
static PbKey *
keep_key(MemoryContext context, const PbKey *key, int more)
{
	PbKey	   *copy = MemoryContextAlloc(context, offsetof(PbKey, own) +
										  key->len + 1 + more);

	memcpy(copy, key, offsetof(PbKey, own));
	memcpy(copy->own, key->data, key->len);
	copy->data = copy->own;
	return copy;
}

static void
start_page(PbLoad *load, LoadLevel *l, const PbKey *low)
{
	MemoryContextReset(l->context);
	l->low = low ? keep_key(l->context, low, 0) : NULL;
	l->n = 0;
	l->raw = 0;
	pb_pack_begin(&l->pack);
}

static LoadLevel *
get_level(PbLoad *load, int level)
{
	LoadLevel  *l = load->levels[level];

	Assert(level <= load->nlevels); /* on the level below */
	if (l == NULL)
	{
		if (level >= MAX_LEVELS - 1)
			elog(ERROR, "index \"%s\" is too high",
				 RelationGetRelationName(load->rel));
		l = MemoryContextAllocHuge(load->context, sizeof(LoadLevel));
		l->context = AllocSetContextCreate(load->context, "pbtree page",
										   ALLOCSET_DEFAULT_SIZES);
		l->prev = PB_NONE;
		l->block = new_block(load);
		load->levels[level] = l;
		load->nlevels = level + 1;
		start_page(load, l, NULL);
	}
	return l;
}

/* ---- pages ------------------------------------------------------------- */

static int
fence_len(const PbLoad *load, const PbKey *key)
{
	return key ? 1 + (key->has_map ? load->index->map_len : 0) + key->len +
		(key->has_tid ? PB_PIVOT_TID_LEN : 0) : 0;
}

/* The size of the page's contents, without the high fence. */
static int
page_bytes(const PbLoad *load, const LoadLevel *l)
{
	PbShape		shape;
	int			low = fence_len(load, l->low);

	pb_pack_shape(&l->pack, load->index, &shape);
	return SizeOfPageHeaderData + PB_SPECIAL_SIZE + l->raw -
		l->pack.n * shape.prefix_len + shape.prefix_len +
		(low > PB_MAX_LOW_FENCE ? 0 : low);
}

static int
raw_bytes(const PbLoad *load, const LoadItem *item, bool leaf)
{
	const PbKey *key = item->key;

	return sizeof(uint16) + (leaf ? item->tail_len : PB_PIVOT_LEN) +
		(key->has_map ? load->index->map_len : 0) + key->len +
		(!leaf && key->has_tid ? PB_PIVOT_TID_LEN : 0);
}

static void
hold_item(PbLoad *load, LoadLevel *l, bool leaf, const LoadItem *item)
{
	bool		has_key = leaf || l->n > 0;

	Assert(l->n < MAX_ITEMS);
	l->items[l->n] = *item;
	l->n++;
	l->raw += has_key ? raw_bytes(load, item, leaf) :
		PB_PIVOT_LEN + sizeof(uint16);
	if (has_key)
		pb_pack_add(&l->pack, item->key);
}

static void
fill_page(PbLoad *load, LoadLevel *l, int level, int n, const PbKey *high,
		  BlockNumber next, Page page)
{
	PbShape		shape;
	uint8		fences[2][PB_KEY_ROOM];
	uint8		item[BLCKSZ];
	PbPack	   *pack = &l->pack;
	PbSpecial  *special;

	if (n < l->n)
	{
		pb_pack_begin(pack);
		for (int i = level > 0 ? 1 : 0; i < n; i++)
			pb_pack_add(pack, l->items[i].key);
	}
	memset(&shape, 0, sizeof(shape));
	pb_pack_shape(pack, load->index, &shape);
	shape.low_len = l->low ?
		pb_key_put_fence(load->index, l->low, fences[0]) : 0;
	shape.low = fences[0];
	if (shape.low_len > PB_MAX_LOW_FENCE)
		shape.low_len = 0;
	shape.high_len = high ? pb_key_put_fence(load->index, high, fences[1]) : 0;
	shape.high = fences[1];
	pb_page_init(page, level, load->index->map_len, 0);
	special = PbPageGetSpecial(page);
	special->prev = l->prev;
	special->next = next;
	if (!pb_page_start(page, &shape, pack->n > 0 ? pack->first.data : NULL))
		elog(ERROR, "no room for fences in index \"%s\"",
			 RelationGetRelationName(load->rel));
	for (int i = 0; i < n; i++)
	{
		LoadItem   *it = &l->items[i];
		int			flags;
		int			len;

		if (level > 0)
		{
			PbKey		none;

			pb_key_begin(&none);
			len = pb_key_put_inner(load->index, i == 0 ? &none : it->key,
								   i == 0 ? 0 : shape.prefix_len, it->down,
								   item, &flags);
		}
		else
		{
			len = pb_key_put_leaf(load->index, it->key, shape.prefix_len, item,
								  &flags);
			memcpy(item + len, it->tail, it->tail_len);
			len += it->tail_len;
		}
		if (!pb_page_insert(page, i, flags | it->flags, item, len))
			elog(ERROR, "no room for an item in index \"%s\"",
				 RelationGetRelationName(load->rel));
	}
}

static void
write_page(PbLoad *load, BlockNumber block, Page image)
{
	Buffer		buffer = ReadBufferExtended(load->rel, MAIN_FORKNUM, block,
											RBM_ZERO_AND_LOCK, NULL);

	/* I1, I2 */
	Assert(pb_page_problem(image) == NULL &&
		   pb_verify_page(load->rel, load->index, image) == NULL);
	START_CRIT_SECTION();
	memcpy(BufferGetPage(buffer), image, BLCKSZ);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(load->rel))
		log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
}

/*
 * Write a page of the first n items.  "high" is NULL for the level's last
 * page.
 */
static void
finish_page(PbLoad *load, int level, int n, const PbKey *high)
{
	LoadLevel  *l = load->levels[level];
	PGAlignedBlock page;
	LoadItem	item = {0};
	BlockNumber block = l->block;
	PbKey	   *low = NULL;

	l->block = high ? new_block(load) : PB_NONE;
	fill_page(load, l, level, n, high, l->block, page.data);
	write_page(load, block, page.data);
	l->prev = block;
	item.down = block;
	if (high != NULL || load->levels[level + 1] != NULL)
	{
		low = l->low ? l->low : palloc(sizeof(PbKey));
		if (l->low == NULL)
			pb_key_begin(low);
		load_item(load, level + 1, low, &item);
	}
	else
	{
		load->meta.root = block;
		load->meta.level = level;
	}
}

/*
 * Make the separator between the first k items and the next; key is that of
 * the item behind the last one.
 */
static void
find_separator(PbLoad *load, LoadLevel *l, int level, int k, const PbKey *key,
			   PbKey *sep)
{
	pb_key_copy(sep, k < l->n ? l->items[k].key : key);
	if (level == 0)
		pb_pack_separator(load->rel, load->index, l->items[k - 1].key, sep);
}

/* Start a new page, before the key's item is added. */
static void
close_page(PbLoad *load, int level, const PbKey *key)
{
	LoadLevel  *l = load->levels[level];
	PbKey	   *sep = palloc(sizeof(PbKey));
	int			k = l->n;
	int			moved;
	LoadItem	rest[2];

	find_separator(load, l, level, k, key, sep);
	if (page_bytes(load, l) + fence_len(load, sep) > BLCKSZ)
	{
		/* the last item moves, to make room for the fence */
		k--;
		Assert(k > 0);
		find_separator(load, l, level, k, key, sep);
	}
	moved = l->n - k;
	Assert(moved <= lengthof(rest));
	for (int i = 0; i < moved; i++)
	{
		rest[i] = l->items[k + i];
		rest[i].key = keep_key(CurrentMemoryContext, rest[i].key, 0);
		if (rest[i].tail)
			rest[i].tail = memcpy(palloc(rest[i].tail_len), rest[i].tail,
								  rest[i].tail_len);
	}
	finish_page(load, level, k, sep);
	start_page(load, l, sep);
	for (int i = 0; i < moved; i++)
		load_item(load, level, rest[i].key, &rest[i]);
	pfree(sep);
}

/* True if the page with this item would exceed the fill factor. */
static bool
is_too_full(PbLoad *load, LoadLevel *l, int level, const LoadItem *item)
{
	int			fill = level == 0 ?
		pb_index_fillfactor(load->rel) : BTREE_NONLEAF_FILLFACTOR;
	int			raw = l->raw;
	int			n = l->pack.n;
	int			common = l->pack.common;
	int			min_len = l->pack.min_len;
	bool		maps = l->pack.maps;
	int			bytes;

	/* the fence behind it may be as long as the item's key */
	if (n > 0)
	{
		l->pack.common = Min(common, pb_key_common(&l->pack.first, item->key));
		l->pack.min_len = Min(min_len, item->key->len);
		l->pack.maps |= item->key->has_map;
		l->pack.n++;
	}
	l->raw += raw_bytes(load, item, level == 0);
	bytes = page_bytes(load, l) + fence_len(load, item->key) + PB_PIVOT_TID_LEN;
	l->raw = raw;
	l->pack.n = n;
	l->pack.common = common;
	l->pack.min_len = min_len;
	l->pack.maps = maps;
	return bytes > BLCKSZ || (l->n >= 2 && bytes > BLCKSZ / 100 * fill);
}

static void
load_item(PbLoad *load, int level, const PbKey *key, const LoadItem *item)
{
	LoadLevel  *l = get_level(load, level);
	LoadItem	kept = *item;

	kept.key = unconstify(PbKey *, key);
	if (l->n > 0 && is_too_full(load, l, level, &kept))
		close_page(load, level, key);
	kept.key = keep_key(l->context, key, kept.tail_len);
	if (kept.tail)
		kept.tail = memcpy(kept.key->own + key->len, item->tail, kept.tail_len);
	hold_item(load, l, level == 0, &kept);
}

/* ---- rows -------------------------------------------------------------- */

static void
flush_tids(PbLoad *load)
{
	LoadItem	item = {0};
	uint8		tail[BLCKSZ];

	if (load->ntids == 0)
		return;
	item.tail = tail;
	if (load->ntids > 1)
	{
		item.flags = PB_SLOT_POSTING;
		item.tail_len = pb_posting_put(tail, sizeof(tail), load->tids,
									   load->ntids);
	}
	else
		item.tail_len = pb_tid_put(tail, &load->tids[0]);
	/* readers take a longer list for damaged */
	Assert(item.tail_len > 0 && item.tail_len <= PB_MAX_TIDS);
	load->key.tid = load->tids[0];
	load_item(load, 0, &load->key, &item);
	load->ntids = 0;
}

#ifdef USE_ASSERT_CHECKING
/* True if rows with this key and TID come behind the last one. */
static bool
comes_behind(PbLoad *load, const PbKey *key, const ItemPointerData *tid)
{
	PbPos		pos;
	PbKey	   *next;
	bool		has_tid = load->key.has_tid;
	int			equal;
	int			cmp;

	if (load->ntids == 0 || !pb_pos_order_is_core(load->rel))
		return true;
	next = palloc(sizeof(PbKey));
	pb_key_copy(next, key);
	next->tid = *tid;
	next->has_tid = true;
	pb_pos_from_key(&pos, load->rel, load->index, next);
	load->key.tid = load->tids[load->ntids - 1];
	load->key.has_tid = true;
	cmp = pb_pos_compare(&pos, &load->key, true, 0, &equal);
	load->key.has_tid = has_tid;
	pb_pos_end(&pos);
	pfree(next);
	return cmp > 0;
}
#endif

/* Add the key of the next rows, and their TIDs. */
void
pb_load_add(PbLoad *load, const PbKey *key, const ItemPointerData *tids, int n)
{
	bool		same = load->ntids > 0 && load->index->equalimage &&
		pb_key_is_identical(&load->key, key);

	Assert(n > 0 && comes_behind(load, key, &tids[0]));
	for (int i = 0; i < n; i++)
	{
		if (same && load->ntids < PB_MAX_TIDS &&
			load->tids_len < PB_MAX_POSTING - PB_TID_MAX_LEN * 2)
			load->tids_len += pb_posting_distance(&load->tids[load->ntids - 1],
												  &tids[i]);
		else
		{
			flush_tids(load);
			if (!same)
				pb_key_copy(&load->key, key);
			same = load->index->equalimage;
			load->tids_len = 2 + PB_TID_MAX_LEN;
		}
		load->tids[load->ntids++] = tids[i];
	}
}

void
pb_load_write_meta(Relation rel, Buffer buffer, const PbMeta *meta)
{
	Page		page = BufferGetPage(buffer);

	pb_page_init(page, 0, 0, PB_PAGE_META);
	memcpy(PbPageGetMeta(page), meta, sizeof(PbMeta));
	PbPageLower(page) = (char *) PbPageGetMeta(page) + sizeof(PbMeta) -
		(char *) page;
}

void
pb_load_end(PbLoad *load)
{
	Buffer		buffer;

	flush_tids(load);
	for (int i = 0; i < load->nlevels; i++)
		finish_page(load, i, load->levels[i]->n, NULL);
	Assert((load->nlevels == 0) == (load->meta.root == PB_NONE));
	buffer = ReadBuffer(load->rel, PB_META_BLOCK);
	LockBuffer(buffer, PB_WRITE);
	START_CRIT_SECTION();
	pb_load_write_meta(load->rel, buffer, &load->meta);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(load->rel))
		log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
	pb_index_forget_root(load->rel, load->index);
	MemoryContextDelete(load->context);
	pfree(load);
}
