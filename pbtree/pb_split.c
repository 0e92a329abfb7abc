/*-------------------------------------------------------------------------
 * pb_split.c
 *	  Insertion of items; page splits; updates of parents.
 *
 * A page is split without the item that has no room on it.  The item is
 * inserted afterwards, as on any page.  A split is two changes: the first makes
 * the right sibling, the second inserts the sibling's downlink.  In between the
 * left page is marked as incomplete, and an insertion that reaches it inserts
 * the downlink first.
 *-------------------------------------------------------------------------
 */
#include "compat_index.h"

#include "storage/predicate.h"

#include "pb_change.h"
#include "pb_pack.h"
#include "pb_space.h"
#include "pb_split.h"

/* ---- items ------------------------------------------------------------- */

static int
form_item(PbIndex *index, Page page, const PbKey *key, int skip,
		  BlockNumber down, uint8 *to, int *flags)
{
	int			len;

	if (!pb_page_is_leaf(page))
		return pb_key_put_inner(index, key, skip, down, to, flags);
	len = pb_key_put_leaf(index, key, skip, to, flags);
	return len + pb_tid_put(to + len, &key->tid);
}

/*
 * True if the key begins with the page's prefix, and is compatible with its
 * slots.
 */
static bool
suits_page(PbIndex *index, Page page, const PbKey *key)
{
	PbSpecial  *special = PbPageGetSpecial(page);
	int			prefix = special->prefix_len;

	if (index->bytes && pb_page_nslots(page) == 0)
		return false;
	if (pb_page_has_heads(page) &&
		(key->has_map || key->len < prefix + PB_HEAD_LEN))
		return false;
	return key->len >= prefix &&
		memcmp(key->data, pb_page_prefix(page), prefix) == 0;
}

/* Compute the page's shape with this key in it. */
static void
shape_with(Relation rel, PbIndex *index, Buffer buffer, const PbKey *key,
		   PbShape *shape)
{
	PbPack	   *pack = palloc(sizeof(PbPack));
	int			n = pb_page_nslots(BufferGetPage(buffer));

	pb_pack_begin(pack);
	pb_pack_page(pack, rel, index, buffer, 0, n);
	pb_pack_add(pack, key);
	memset(shape, 0, sizeof(*shape));
	pb_pack_shape(pack, index, shape);

	/*
	 * a rebuild takes the prefix from the existing keys, of which it needs
	 * one
	 */
	if (n == (pb_page_is_leaf(BufferGetPage(buffer)) ? 0 : 1))
		shape->prefix_len = 0;
	shape->n = n;
	pfree(pack);
}

#ifdef USE_ASSERT_CHECKING
/*
 * I4: check that the page is on the level above the child, which was split,
 * and that the item is the downlink of its right sibling.
 */
static bool
completes_split(Page page, Buffer child, BlockNumber down)
{
	PbSpecial  *below;

	if (BufferIsInvalid(child))
		return down == PB_NONE && pb_page_is_leaf(page);
	below = PbPageGetSpecial(BufferGetPage(child));
	return (below->flags & PB_PAGE_INCOMPLETE) && below->next == down &&
		PbPageGetSpecial(page)->level == below->level + 1;
}
#endif

/*
 * Insert a row's key (with its TID), or an inner item, at a slot.  A downlink
 * completes the child's split.  Returns false if there is no room.
 */
bool
pb_split_put(Relation rel, PbIndex *index, Buffer buffer, int slot,
			 const PbKey *key, BlockNumber down, Buffer child)
{
	Page		page = BufferGetPage(buffer);
	uint8		item[BLCKSZ];
	PbChange	c;
	ByteWriter *w;
	int			len;
	int			flags;

	Assert(pb_index_is_locked(buffer, PB_WRITE));
	Assert(slot >= (pb_page_is_leaf(page) ? 0 : 1) &&
		   slot <= pb_page_nslots(page));
	Assert(completes_split(page, child, down));
	if (suits_page(index, page, key))
	{
		len = form_item(index, page, key, PbPageGetSpecial(page)->prefix_len,
						down, item, &flags);
		if (!pb_page_fits(page, len))
			return false;
		pb_change_begin(&c, rel, PB_XLOG_INSERT);
		c.simple = true;
		w = pb_change_block(&c, buffer, false);
		pb_op_insert(w, slot, flags, item, len);
	}
	else
	{
		PbShape		shape;

		shape_with(rel, index, buffer, key, &shape);
		len = form_item(index, page, key, shape.prefix_len, down, item, &flags);
		pb_change_begin(&c, rel, PB_XLOG_REBUILD);
		w = pb_change_block(&c, buffer, false);
		pb_op_rebuild(w, &shape);
		pb_op_insert(w, slot, flags, item, len);
	}
	if (BufferIsValid(child))
		pb_op_flags(pb_change_block(&c, child, false), PB_PAGE_INCOMPLETE, 0);
	if (!c.simple && !pb_change_try(&c))
		return false;
	pb_change_apply(&c);
	return true;
}

/*
 * Rebuild the page with the best shape for its keys, unless it has that shape.
 * The current shape may be from a time when the page had few keys.  Returns
 * false if nothing is gained.
 */
bool
pb_split_repack(Relation rel, PbIndex *index, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	PbPack	   *pack = palloc(sizeof(PbPack));
	int			n = pb_page_nslots(page);
	PbShape		shape;
	PbChange	c;

	Assert(pb_index_is_locked(buffer, PB_WRITE));
	memset(&shape, 0, sizeof(shape));
	pb_pack_begin(pack);
	pb_pack_page(pack, rel, index, buffer, 0, n);
	/* a single list will be halved; both halves will have the key */
	if (n == 1 && pb_page_is_leaf(page) &&
		(pb_slot_get(page, 0) & PB_SLOT_POSTING))
		pb_pack_page(pack, rel, index, buffer, 0, n);
	pb_pack_shape(pack, index, &shape);
	shape.n = n;
	pfree(pack);
	if (shape.prefix_len <= PbPageGetSpecial(page)->prefix_len &&
		(!shape.heads || pb_page_has_heads(page)))
		return false;
	pb_change_begin(&c, rel, PB_XLOG_REBUILD);
	pb_op_rebuild(pb_change_block(&c, buffer, false), &shape);
	if (!pb_change_try(&c))
		return false;
	pb_change_apply(&c);
	return true;
}

/* ---- splits ------------------------------------------------------------ */

/*
 * Make the key that separates the first k items from the others.  "key" is that
 * of the row for which room is made; it stands for the items of a side that
 * gets none.
 */
static void
find_separator(Relation rel, PbIndex *index, Buffer buffer, int k,
			   const PbKey *key, PbKey *sep)
{
	Page		page = BufferGetPage(buffer);
	PbItem	   *item = palloc(sizeof(PbItem));
	int			n = pb_page_nslots(page);

	if (k < n)
	{
		pb_item_get(rel, index, buffer, page, k, item);
		if (pb_page_is_leaf(page))
			pb_item_first_tid(rel, buffer, page, k, item, &item->key.tid);
		pb_key_copy(sep, &item->key);
	}
	else
		pb_key_copy(sep, key);
	if (pb_page_is_leaf(page))
	{
		if (k > 0)
		{
			pb_item_get(rel, index, buffer, page, k - 1, item);
			key = &item->key;
		}
		pb_pack_separator(rel, index, key, sep);
	}
	pfree(item);
}

static void
side_shape(Relation rel, PbIndex *index, Buffer buffer, int from, int n,
		   bool least, PbShape *shape)
{
	PbPack	   *pack = palloc(sizeof(PbPack));

	memset(shape, 0, sizeof(*shape));
	pb_pack_begin(pack);
	pb_pack_page(pack, rel, index, buffer, from, n);
	if (least && !pb_page_has_heads(BufferGetPage(buffer)))
		pack->min_len = 0;		/* no heads: the prefix is as long as it can
								 * be */
	pb_pack_shape(pack, index, shape);
	shape->from = from;
	shape->n = n;
	pfree(pack);
}

/*
 * A way to split a page: the number of items that remain, and the shapes of
 * the two pages.
 */
typedef struct PbSplit
{
	int			k;
	bool		least;			/* the items take at most the current space */
	PbKey		sep;
	uint8		fence[BLCKSZ];
	PbShape		shapes[2];
	PGAlignedBlock right;		/* the future right sibling */
} PbSplit;

/* Returns false if the right sibling would have too little room. */
static bool
plan_split(Relation rel, PbIndex *index, Buffer buffer, const PbKey *key,
		   uint16 cycle, PbSplit *s)
{
	Page		page = BufferGetPage(buffer);
	Page		right = s->right.data;
	int			n = pb_page_nslots(page);
	int			len;

	Assert(s->k >= 1 && s->k <= n); /* the left page keeps an item */
	find_separator(rel, index, buffer, s->k, key, &s->sep);
	len = pb_key_put_fence(index, &s->sep, s->fence);
	side_shape(rel, index, buffer, 0, s->k, s->least, &s->shapes[0]);
	side_shape(rel, index, buffer, s->k, n - s->k, s->least, &s->shapes[1]);
	s->shapes[0].high = s->fence;
	s->shapes[0].high_len = len;
	s->shapes[1].low = s->fence;
	s->shapes[1].low_len = s->least || len > PB_MAX_LOW_FENCE ? 0 : len;
	memcpy(right, page, BLCKSZ);
	if (!pb_page_rebuild(right, &s->shapes[1]))
		return false;
	PbPageGetSpecial(right)->prev = BufferGetBlockNumber(buffer);
	PbPageGetSpecial(right)->cycle = cycle;
	Assert(!(PbPageGetSpecial(right)->flags & PB_PAGE_INCOMPLETE));
	return true;
}

/*
 * Carry out the split.  Returns false if the left page would have too little
 * room.
 */
static bool
begin_split(Relation rel, Buffer buffer, Buffer right, Buffer far_right,
			PbSplit *s, PbChange *c)
{
	ByteWriter *w;

	/* I1: the right sibling's left link changes, too */
	Assert(BufferIsValid(far_right) ==
		   !pb_page_is_rightmost(BufferGetPage(buffer)));
	pb_change_begin(c, rel, PB_XLOG_SPLIT);
	w = pb_change_block(c, buffer, false);
	pb_op_rebuild(w, &s->shapes[0]);
	pb_op_next(w, BufferGetBlockNumber(right),
			   PbPageGetSpecial(s->right.data)->cycle);
	pb_op_flags(w, 0, PB_PAGE_INCOMPLETE);
	pb_op_image(pb_change_block(c, right, true), s->right.data);
	if (BufferIsValid(far_right))
		pb_op_prev(pb_change_block(c, far_right, false),
				   BufferGetBlockNumber(right));
	return pb_change_try(c);
}

/*
 * Choose the next way to split, after one without enough room: other split
 * points, those near the middle first; then these again with pages that are as
 * compact as the current one.  One of these is always possible: one item
 * remains, and the others take at most their current space.
 */
static bool
next_split(int n, int *tries, PbSplit *s)
{
	while (*tries < 4 * n)
	{
		int			at = *tries % (2 * n);

		s->least = *tries >= 2 * n;
		s->k = n / 2 + (at % 2 == 0 ? at / 2 : -(at + 1) / 2);
		(*tries)++;
		if (s->k >= 1 && s->k < n)
			return true;
	}
	return false;
}

/*
 * Split a locked page, which has no room for the key at that slot, and release
 * it.  The caller then inserts the key by another search.
 */
void
pb_split_page(Relation rel, PbIndex *index, Buffer buffer, int slot,
			  const PbKey *key)
{
	Page		page = BufferGetPage(buffer);
	PbSplit    *s = palloc(sizeof(PbSplit));
	PbChange	c;
	Buffer		right;
	Buffer		far_right = InvalidBuffer;
	uint16		cycle;
	int			tries = 0;

	Assert(pb_index_is_locked(buffer, PB_WRITE));
	Assert(slot >= 0 && slot <= pb_page_nslots(page));
	pb_change_require_rmgr(rel);
	s->k = pb_pack_split_point(rel, index, buffer, slot, key);
	s->least = false;
	right = pb_space_get(rel);

	/*
	 * The page is locked already.  A VACUUM that has begun before that may
	 * have passed the block of the right half, and must return to it.
	 */
	cycle = _bt_vacuum_cycleid(rel);
	if (!pb_page_is_rightmost(page))
		far_right = pb_search_next(rel, buffer, PB_WRITE);
	while (!plan_split(rel, index, buffer, key, cycle, s) ||
		   !begin_split(rel, buffer, right, far_right, s, &c))
	{
		if (!next_split(pb_page_nslots(page), &tries, s))
			pb_index_corrupt(rel, BufferGetBlockNumber(buffer), -1,
							 "The page cannot be split.");
	}
	pb_change_apply(&c);
	if (pb_page_is_leaf(page))
		PredicateLockPageSplit(rel, BufferGetBlockNumber(buffer),
							   BufferGetBlockNumber(right));
	if (BufferIsValid(far_right))
		UnlockReleaseBuffer(far_right);
	UnlockReleaseBuffer(right);
	CompatInjectionPoint("pbtree-split");
	pb_split_finish(rel, buffer);
	pfree(s);
}

/* ---- parents ----------------------------------------------------------- */

/* Make a new root above the two halves of the old one. */
static void
new_root(Relation rel, PbIndex *index, Buffer left, Buffer meta_buffer,
		 PbMeta *meta, const PbKey *sep)
{
	Buffer		root = pb_space_get(rel);
	PGAlignedBlock image;
	uint8	   *item = palloc(BLCKSZ);
	PbKey	   *none = palloc(sizeof(PbKey));
	int			flags;
	int			len;
	PbChange	c;
	bool		ok;

	Assert(pb_page_is_leftmost(BufferGetPage(left)) &&
		   pb_index_is_locked(meta_buffer, PB_WRITE));
	pb_page_init(image.data, meta->level + 1, index->map_len, 0);
	pb_key_begin(none);
	len = pb_key_put_inner(index, none, 0, BufferGetBlockNumber(left), item,
						   &flags);
	ok = pb_page_insert(image.data, 0, flags, item, len);
	len = pb_key_put_inner(index, sep, 0,
						   PbPageGetSpecial(BufferGetPage(left))->next, item,
						   &flags);
	ok &= pb_page_insert(image.data, 1, flags, item, len);
	if (!ok)
		elog(ERROR, "no room in a new root of index \"%s\"",
			 RelationGetRelationName(rel));
	meta->root = BufferGetBlockNumber(root);
	meta->level++;
	pb_change_begin(&c, rel, PB_XLOG_ROOT);
	pb_op_image(pb_change_block(&c, root, true), image.data);
	pb_op_meta(pb_change_block(&c, meta_buffer, false), meta);
	pb_op_flags(pb_change_block(&c, left, false), PB_PAGE_INCOMPLETE, 0);
	pb_change_apply(&c);
	pb_index_forget_root(rel, index);
	UnlockReleaseBuffer(root);
	pfree(item);
	pfree(none);
}

/* If the page is the root, make a new root above it.  Returns true then. */
static bool
finish_root(Relation rel, PbIndex *index, Buffer left, const PbKey *sep)
{
	PbMeta		meta;
	Buffer		buffer;
	bool		is_root;

	if (!pb_page_is_leftmost(BufferGetPage(left)))
		return false;
	buffer = pb_index_read_meta(rel, PB_WRITE, &meta);
	is_root = meta.root == BufferGetBlockNumber(left);
	if (is_root)
		new_root(rel, index, left, buffer, &meta, sep);
	UnlockReleaseBuffer(buffer);
	return is_root;
}

/*
 * Complete the split of a page, which is locked for writing and is released:
 * insert the downlink for its right sibling.
 */
void
pb_split_finish(Relation rel, Buffer buffer)
{
	PbIndex    *index = pb_index_get(rel);
	Page		page = BufferGetPage(buffer);
	PbSpecial  *special = PbPageGetSpecial(page);
	PbKey	   *sep = palloc(sizeof(PbKey));
	PbKey		fence;
	PbPos	   *pos = palloc(sizeof(PbPos));

	Assert((special->flags & PB_PAGE_INCOMPLETE) &&
		   pb_index_is_locked(buffer, PB_WRITE));
	pb_change_require_rmgr(rel);
	if (!pb_key_get_fence(index, pb_page_high(page), special->high_len, &fence))
		pb_index_corrupt(rel, BufferGetBlockNumber(buffer), -1,
						 "The page's high fence is damaged.");
	pb_key_copy(sep, &fence);
	pb_pos_from_key(pos, rel, index, sep);

	/*
	 * The remembered root may have been deleted, and its block reused for a
	 * leaf to the left, which must not be locked now (I3).  The root that the
	 * metapage names is not reused before this transaction ends.
	 */
	pb_index_forget_root(rel, index);
	while (!finish_root(rel, index, buffer, sep))
	{
		PbBounds	bounds;
		Buffer		parent = pb_search_descend(pos, special->level + 1,
											   PB_WRITE, pb_split_finish,
											   &bounds);
		int			slot;

		if (BufferIsInvalid(parent))
			pb_index_corrupt(rel, BufferGetBlockNumber(buffer), -1,
							 "The page has no parent.");
		slot = pb_pos_search(pos, parent, &bounds);

		/* I4: a page's low fence is the key of its downlink */
		if (pb_item_down(rel, parent, BufferGetPage(parent), slot - 1) !=
			BufferGetBlockNumber(buffer))
			pb_index_corrupt(rel, BufferGetBlockNumber(parent), slot - 1,
							 "The item's downlink does not lead to the page that was split.");
		if (pb_split_put(rel, index, parent, slot, sep, special->next, buffer))
		{
			UnlockReleaseBuffer(parent);
			break;
		}
		pb_split_page(rel, index, parent, slot, sep);
	}
	UnlockReleaseBuffer(buffer);
	pb_pos_end(pos);
	pfree(sep);
	pfree(pos);
	pfree(index);
}

/* Make the root of an empty index, if it has none yet. */
void
pb_split_first_root(Relation rel, PbIndex *index)
{
	PbMeta		meta;
	Buffer		buffer = pb_index_read_meta(rel, PB_WRITE, &meta);

	if (meta.root == PB_NONE)
	{
		Buffer		root = pb_space_get(rel);
		PGAlignedBlock image;
		PbChange	c;

		pb_page_init(image.data, 0, index->map_len, 0);
		meta.root = BufferGetBlockNumber(root);
		meta.level = 0;
		pb_change_begin(&c, rel, PB_XLOG_ROOT);
		pb_op_image(pb_change_block(&c, root, true), image.data);
		pb_op_meta(pb_change_block(&c, buffer, false), &meta);
		pb_change_apply(&c);
		UnlockReleaseBuffer(root);
	}
	UnlockReleaseBuffer(buffer);
	pb_index_forget_root(rel, index);
}
