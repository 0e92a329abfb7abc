/*-------------------------------------------------------------------------
 * pb_unlink.c
 *	  Deletion of an empty leaf, and of inner pages that lead to nothing else.
 *
 * One change: the leaf is deleted; its siblings are linked to each other; the
 * right one gets its low fence, if it has one (I1), because it takes over its
 * keys; and in the parent the leaf's downlink leads to the right sibling,
 * whose own downlink is removed.  So both must have the same parent.  The last
 * child of a parent is deleted if it is the only one: then the parent is
 * deleted in the same way in the same change, and so on upwards.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "storage/predicate.h"

#include "pb_change.h"
#include "pb_unlink.h"

/* A page to delete, and its siblings, locked. */
typedef struct Level
{
	Buffer		left;			/* or InvalidBuffer */
	Buffer		page;
	Buffer		right;
} Level;

typedef struct Unlink
{
	int			n;
	Level		levels[PB_UNLINK_LEVELS];	/* from the leaf upwards */
	Buffer		parent;			/* of the last one */
	int			slot;			/* of its downlink */
} Unlink;

static void
release(Buffer buffer)
{
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
}

/*
 * Lock the page that has this one to its right; InvalidBuffer if it is not
 * found.
 */
static Buffer
lock_left(Relation rel, BlockNumber left, BlockNumber block, int level)
{
	Buffer		buffer = pb_index_read(rel, left, PB_WRITE);

	for (int tries = 0; tries < 16; tries++)
	{
		PbSpecial  *special = PbPageGetSpecial(BufferGetPage(buffer));

		if (special->level != level || (special->flags & PB_PAGE_META))
			break;
		if (!(special->flags & PB_PAGE_DELETED) && special->next == block)
			return buffer;
		if (special->next == PB_NONE)
			break;
		buffer = pb_search_right(rel, buffer, PB_WRITE);
	}
	UnlockReleaseBuffer(buffer);
	return InvalidBuffer;
}

/* True for an empty leaf, or an inner page whose only child is deleted. */
static bool
may_go(Page page, BlockNumber left, int level)
{
	PbSpecial  *special = PbPageGetSpecial(page);

	return !(special->flags &
			 (PB_PAGE_DELETED | PB_PAGE_INCOMPLETE | PB_PAGE_META)) &&
		special->level == level &&
		pb_page_nslots(page) == (level == 0 ? 0 : 1) &&
		special->prev == left && special->next != PB_NONE;
}

/*
 * I3: lock from left to right.
 *
 * I10: VACUUM, which has held a cleanup lock on an empty leaf, does not visit
 * it again when it is deleted.  So a leaf that has been pinned since then
 * stays: rows may have been inserted and removed in between, and an index-only
 * scan may have read them.  On a standby, redo waits for such a scan when the
 * rows are removed (I12).
 */
static bool
lock_level(Relation rel, BlockNumber block, Unlink *u)
{
	int			level = u->n++;
	Level	   *l = &u->levels[level];
	BlockNumber left;

	l->left = l->right = InvalidBuffer;
	l->page = pb_index_read(rel, block, PB_READ);
	left = PbPageGetSpecial(BufferGetPage(l->page))->prev;
	UnlockReleaseBuffer(l->page);
	l->page = InvalidBuffer;
	if (left != PB_NONE)
	{
		l->left = lock_left(rel, left, block, level);
		if (BufferIsInvalid(l->left))
			return false;
		left = BufferGetBlockNumber(l->left);
	}
	l->page = pb_index_read(rel, block, PB_WRITE);
	if (!may_go(BufferGetPage(l->page), left, level) ||
		(level == 0 && !IsBufferCleanupOK(l->page)))
		return false;
	l->right = pb_search_next(rel, l->page, PB_WRITE);
	return true;
}

/*
 * I4: the page's low fence leads to its downlink; the left sibling has it,
 * too, even if it is too long for the page.  Locks go from the leaves upwards.
 */
static void
lock_parent(Relation rel, PbIndex *index, Unlink *u)
{
	Buffer		left = u->levels[u->n - 1].left;
	PbPos	   *pos = palloc(sizeof(PbPos));
	PbKey	   *low = palloc(sizeof(PbKey));
	PbBounds	bounds;

	pb_key_begin(low);
	if (BufferIsValid(left) &&
		!pb_key_get_fence(index, pb_page_high(BufferGetPage(left)),
						  PbPageGetSpecial(BufferGetPage(left))->high_len, low))
		pb_index_corrupt(rel, BufferGetBlockNumber(left), -1,
						 "The page's high fence is damaged.");
	pb_pos_from_key(pos, rel, index, low);
	u->parent = pb_search_descend(pos, u->n, PB_WRITE, NULL, &bounds);
	if (BufferIsValid(u->parent))
		u->slot = pb_pos_search(pos, u->parent, &bounds) - 1;
	pb_pos_end(pos);
	pfree(pos);
	pfree(low);
}

/*
 * I4: an only child has its parent's low fence, and their right siblings are
 * parent and first child.
 */
static void
check_levels(Relation rel, const Unlink *u)
{
	const Level *above = &u->levels[u->n - 1];
	const Level *below = above - 1;
	Page		page = BufferGetPage(above->page);
	Page		child;

	if (u->n == 1)
		return;
	child = BufferGetPage(below->page);
	if ((PbPageGetSpecial(page)->low_len > 0 &&
		 PbPageGetSpecial(child)->low_len > 0 &&
		 (PbPageGetSpecial(page)->low_len != PbPageGetSpecial(child)->low_len ||
		  memcmp(pb_page_low(page), pb_page_low(child),
				 PbPageGetSpecial(page)->low_len) != 0)) ||
		pb_item_down(rel, above->right, BufferGetPage(above->right), 0) !=
		BufferGetBlockNumber(below->right))
		pb_index_corrupt(rel, BufferGetBlockNumber(above->page), -1,
						 "The page is not the parent of its only child.");
}

/*
 * All pages of a change are pinned, in redo, too, and a standby may have as
 * few buffers as this server.
 */
static int
max_levels(void)
{
	return Min(PB_UNLINK_LEVELS, Max(NBuffers / 16, 4));
}

/*
 * Lock all pages that change.  Returns false if the deletion is not possible
 * now.
 */
static bool
lock_pages(Relation rel, PbIndex *index, BlockNumber block, Unlink *u)
{
	while (lock_level(rel, block, u))
	{
		Level	   *l = &u->levels[u->n - 1];
		Page		parent;

		check_levels(rel, u);
		lock_parent(rel, index, u);
		if (BufferIsInvalid(u->parent))
			return false;
		parent = BufferGetPage(u->parent);
		if (pb_item_down(rel, u->parent, parent, u->slot) !=
			BufferGetBlockNumber(l->page))
			return false;
		if (u->slot + 1 < pb_page_nslots(parent))
			return pb_item_down(rel, u->parent, parent, u->slot + 1) ==
				BufferGetBlockNumber(l->right);
		if (u->slot > 0 || pb_page_is_rightmost(parent) || u->n >= max_levels())
			return false;

		/* the parent is deleted, too; its left sibling is locked first */
		block = BufferGetBlockNumber(u->parent);
		UnlockReleaseBuffer(u->parent);
		u->parent = InvalidBuffer;
	}
	return false;
}

/* Add the changes of a page and its siblings. */
static void
change_level(PbChange *c, const Level *l)
{
	Page		page = BufferGetPage(l->page);
	PbSpecial  *special = PbPageGetSpecial(page);
	PbSpecial  *right = PbPageGetSpecial(BufferGetPage(l->right));
	PbShape		shape = {0};
	ByteWriter *w;

	/* I1: links lead past the page in both directions */
	Assert(BufferIsValid(l->left) ==
		   !pb_page_is_leftmost(page));
	shape.n = pb_page_nslots(BufferGetPage(l->right));
	shape.prefix_len = shape.n > (special->level > 0 ? 1 : 0) ?
		right->prefix_len : 0;
	shape.heads = (right->flags & PB_PAGE_HEADS) != 0;
	shape.maps = (right->flags & PB_PAGE_MAPS) != 0;
	shape.low = special->low_len > 0 ? pb_page_low(page) : (uint8 *) page;
	shape.low_len = special->low_len;
	w = pb_change_block(c, l->page, false);
	pb_op_free(w, U64FromFullTransactionId(ReadNextFullTransactionId()));
	w = pb_change_block(c, l->right, false);
	pb_op_rebuild(w, &shape);
	pb_op_prev(w, special->prev);
	if (BufferIsValid(l->left))
		pb_op_next(pb_change_block(c, l->left, false),
				   BufferGetBlockNumber(l->right),
				   PbPageGetSpecial(BufferGetPage(l->left))->cycle);
}

/* Returns false if a right sibling has no room for the longer fence. */
static bool
unlink_locked(Relation rel, Unlink *u)
{
	uint16		next_slot = u->slot + 1;
	PbChange	c;
	ByteWriter *w;

	Assert(PbPageGetSpecial(BufferGetPage(u->parent))->level == u->n);
	Assert(next_slot < pb_page_nslots(BufferGetPage(u->parent)));	/* I4 */
	pb_change_begin(&c, rel, PB_XLOG_UNLINK);
	for (int i = 0; i < u->n; i++)
		change_level(&c, &u->levels[i]);
	w = pb_change_block(&c, u->parent, false);
	pb_op_downlink(w, u->slot, BufferGetBlockNumber(u->levels[u->n - 1].right));
	pb_op_delete(w, &next_slot, 1);
	if (!pb_change_try(&c))
		return false;
	PredicateLockPageCombine(rel, BufferGetBlockNumber(u->levels[0].page),
							 BufferGetBlockNumber(u->levels[0].right));
	pb_change_apply(&c);
	return true;
}

/*
 * Delete a leaf, if it is still empty and can be deleted, and inner pages.
 * Returns the number of deleted pages; "blocks" lists them.  "next" becomes
 * the right sibling, if that is now its parent's only child, and empty, so
 * that it can be deleted as well.  A leaf that was split since VACUUM of that
 * cycle began stays, because VACUUM must still visit the pages behind it
 * (I10).
 */
int
pb_unlink_leaf(Relation rel, PbIndex *index, BlockNumber block, uint16 cycle,
			   BlockNumber *blocks, BlockNumber *next)
{
	Unlink		u = {.n = 0,.parent = InvalidBuffer};
	bool		done = lock_pages(rel, index, block, &u) &&
		unlink_locked(rel, &u);

	*next = PB_NONE;
	for (int i = 0; done && i < u.n; i++)
		blocks[i] = BufferGetBlockNumber(u.levels[i].page);
	if (done && pb_page_nslots(BufferGetPage(u.levels[0].right)) == 0 &&
		(cycle == 0 ||
		 PbPageGetSpecial(BufferGetPage(u.levels[0].right))->cycle != cycle) &&
		(u.n > 1 || pb_page_nslots(BufferGetPage(u.parent)) == 1))
		*next = BufferGetBlockNumber(u.levels[0].right);
	release(u.parent);
	for (int i = u.n - 1; i >= 0; i--)
	{
		release(u.levels[i].right);
		release(u.levels[i].page);
		release(u.levels[i].left);
	}
	return done ? u.n : 0;
}
