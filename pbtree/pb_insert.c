/*-------------------------------------------------------------------------
 * pb_insert.c
 *	  Insertion of a row's key.
 *-------------------------------------------------------------------------
 */
#include "compat_index.h"

#include "storage/predicate.h"

#include "pb_change.h"
#include "pb_dead.h"
#include "pb_insert.h"
#include "pb_split.h"
#include "pb_stale.h"

/* The maximum growth of an item that gets another TID. */
#define PB_TID_GROWTH	24

/* The result of an attempt. */
typedef enum Placed
{
	IS_PLACED,
	IS_FULL,
	IS_CHANGED					/* the page has changed */
} Placed;

static bool
is_full(Page page, int slot, const uint8 *tail)
{
	uint16		len = 0;

	if (pb_slot_get(page, slot) & PB_SLOT_POSTING)
		memcpy(&len, tail, sizeof(len));
	return (len & 0x7FFF) > PB_MAX_POSTING - PB_TID_GROWTH;
}

/*
 * Add a TID to an item, whose TIDs are at tail.  A wide TID may make a whole
 * list wide.
 */
static Placed
add_tid(Relation rel, Buffer buffer, int slot, const uint8 *tail,
		const ItemPointerData *tid)
{
	Page		page = BufferGetPage(buffer);
	PbChange	c;

	if (pb_page_room(page) < (ItemPointerGetOffsetNumberNoCheck(tid) < 512 ?
							  PB_TID_GROWTH : PB_MAX_TIDS))
		return IS_FULL;
	pb_change_begin(&c, rel, PB_XLOG_INSERT);
	c.simple = true;
	pb_op_add_tid(pb_change_block(&c, buffer, false), slot,
				  pb_item_keep(page, slot, tail), tid);
	pb_change_apply(&c);
	return IS_PLACED;
}

/* Split a full posting list that the TID belongs in the middle of. */
static Placed
halve_posting(Relation rel, PbIndex *index, Buffer buffer, int slot,
			  const PbKey *key, const uint8 *tail, const ItemPointerData *tids,
			  int n)
{
	Page		page = BufferGetPage(buffer);
	int			keep = pb_item_keep(page, slot, tail);
	uint8		second[BLCKSZ];
	int			len;
	int			flags;
	PbChange	c;
	ByteWriter *w;

	Assert(n > 1);
	pb_change_begin(&c, rel, PB_XLOG_INSERT);
	w = pb_change_block(&c, buffer, false);
	pb_op_tids(w, slot, keep, tids, n / 2);
	len = pb_key_put_leaf(index, key, PbPageGetSpecial(page)->prefix_len,
						  second, &flags);
	len += pb_posting_put(second + len, sizeof(second) - len, tids + n / 2,
						  n - n / 2);
	pb_op_insert(w, slot + 1, flags | PB_SLOT_POSTING, second, len);
	if (!pb_change_try(&c))
		return IS_FULL;
	pb_change_apply(&c);
	return IS_CHANGED;
}

/*
 * Split a full list if the TID precedes its last one.  Returns false if it
 * does not.
 */
static bool
goes_between(Relation rel, PbIndex *index, Buffer buffer, int slot,
			 const PbKey *key, const uint8 *tail, Placed *placed)
{
	Page		page = BufferGetPage(buffer);
	ItemPointerData tids[PB_MAX_TIDS];
	int			n;

	if (pb_posting_get(tail, (uint8 *) page + PbPageSpecial(page), tids, &n) ==
		NULL)
		pb_index_corrupt(rel, BufferGetBlockNumber(buffer), slot,
						 "The item's TIDs are damaged.");
	if (ItemPointerCompare(&tids[n - 1],
						   unconstify(ItemPointerData *, &key->tid)) < 0)
		return false;
	*placed = halve_posting(rel, index, buffer, slot, key, tail, tids, n);
	return true;
}

/* If an item has the key already, add the TID to it. */
static bool
place_in_posting(Relation rel, PbIndex *index, Buffer buffer, int slot,
				 const PbKey *key, Placed *placed)
{
	Page		page = BufferGetPage(buffer);
	const uint8 *tail = slot > 0 ?
		pb_item_match(index, page, slot - 1, key) : NULL;

	if (tail != NULL)
	{
		if (!is_full(page, slot - 1, tail))
		{
			*placed = add_tid(rel, buffer, slot - 1, tail, &key->tid);
			return true;
		}
		if (goes_between(rel, index, buffer, slot - 1, key, tail, placed))
			return true;
	}
	if (slot < pb_page_nslots(page))
	{
		tail = pb_item_match(index, page, slot, key);
		if (tail != NULL && !is_full(page, slot, tail))
		{
			*placed = add_tid(rel, buffer, slot, tail, &key->tid);
			return true;
		}
	}
	return false;
}

static Placed
place(Relation rel, PbIndex *index, Buffer buffer, int slot, const PbKey *key)
{
	Placed		placed;

	if (index->equalimage &&
		place_in_posting(rel, index, buffer, slot, key, &placed))
		return placed;
	return pb_split_put(rel, index, buffer, slot, key, PB_NONE, InvalidBuffer) ?
		IS_PLACED : IS_FULL;
}

/*
 * Get the rightmost leaf, locked for writing, if it is known and the position
 * is behind all of its items.  If another backend has it locked, that is
 * probably a writer, which makes the guess useless; so there is no wait.
 */
static Buffer
try_last(Relation rel, PbIndex *index, PbPos *pos)
{
	Buffer		buffer;
	Page		page;

	if (index->last == PB_NONE)
		return InvalidBuffer;
	buffer = ReadBuffer(rel, index->last);
	if (ConditionalLockBuffer(buffer))
	{
		page = BufferGetPage(buffer);
		pb_index_check_page(rel, buffer);
		if (!(PbPageGetSpecial(page)->flags &
			  (PB_PAGE_META | PB_PAGE_DELETED | PB_PAGE_INCOMPLETE)) &&
			pb_page_is_leaf(page) && pb_page_is_rightmost(page) &&
			pb_page_nslots(page) > 0 &&
			pb_pos_compare_item(pos, buffer, pb_page_nslots(page) - 1) > 0)
			return buffer;
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	}
	ReleaseBuffer(buffer);
	pb_index_set_last(rel, index, PB_NONE);
	return InvalidBuffer;
}

/*
 * Find the leaf that the position is on, locked for writing, and the slot on
 * it.
 */
static Buffer
find_leaf(Relation rel, PbIndex *index, PbPos *pos, int *slot)
{
	PbBounds	bounds;
	Buffer		buffer = try_last(rel, index, pos);

	if (BufferIsValid(buffer))
	{
		*slot = pb_page_nslots(BufferGetPage(buffer));
		return buffer;
	}
	for (;;)
	{
		buffer = pb_search_descend(pos, 0, PB_WRITE, pb_split_finish, &bounds);
		if (BufferIsValid(buffer))
			break;
		pb_split_first_root(rel, index);
	}
	*slot = pb_pos_search(pos, buffer, &bounds);
	return buffer;
}

/*
 * Release a leaf after an insertion.  Remember it if it is the rightmost one.
 */
static void
leave_leaf(Relation rel, PbIndex *index, Buffer buffer, int slot)
{
	Page		page = BufferGetPage(buffer);

	if (index->last == PB_NONE && index->level > 0 &&
		pb_page_is_rightmost(page) && slot >= pb_page_nslots(page) - 1)
		pb_index_set_last(rel, index, BufferGetBlockNumber(buffer));
	UnlockReleaseBuffer(buffer);
}

/*
 * Make room on a full page by a method not tried yet.  Returns false if the
 * page has to be split.
 */
static bool
make_room(Relation rel, Relation heap, PbIndex *index, Buffer buffer,
		  bool unchanged, int *tried)
{
	while (*tried < 3)
	{
		switch ((*tried)++)
		{
			case 0:
				if (pb_dead_remove_marked(rel, heap, index, buffer))
					return true;
				break;
			case 1:
				if (unchanged &&
					pb_dead_remove_versions(rel, heap, index, buffer))
					return true;
				break;
			case 2:
				return pb_split_repack(rel, index, buffer);
		}
	}
	return false;
}

#ifdef USE_ASSERT_CHECKING
/*
 * True if a key may be inserted on the leaf.  Its split must be complete,
 * because the next split would overwrite the mark.
 */
static bool
may_take_key(Buffer buffer, int slot)
{
	Page		page = BufferGetPage(buffer);

	return pb_index_is_locked(buffer, PB_WRITE) && pb_page_is_leaf(page) &&
		slot <= pb_page_nslots(page) &&
		!(PbPageGetSpecial(page)->flags &
		  (PB_PAGE_META | PB_PAGE_DELETED | PB_PAGE_INCOMPLETE));
}
#endif

/*
 * Insert a key on a leaf, which is locked for writing and is released.  Returns
 * false if the caller must descend again: the leaf was split, or it was
 * unlocked for a search for stale entries.  *cleaned is set by that search,
 * which happens once for an insertion.
 */
static bool
put_key(Relation rel, Relation heap, PbIndex *index, Buffer buffer, PbPos *pos,
		int slot, const PbKey *key, bool unchanged, bool *cleaned)
{
	int			tried = 0;

	CheckForSerializableConflictIn(rel, NULL, BufferGetBlockNumber(buffer));
	for (;;)
	{
		Placed		placed;
		PbBounds	bounds = {0, 0};

		Assert(may_take_key(buffer, slot));
		placed = place(rel, index, buffer, slot, key);
		if (placed == IS_PLACED)
		{
			leave_leaf(rel, index, buffer, slot);
			return true;
		}
		if (placed == IS_FULL && !*cleaned &&
			pb_stale_applies(rel, index, heap))
		{
			*cleaned = true;
			LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
			pb_dead_remove_stale(rel, heap, index, buffer);
			ReleaseBuffer(buffer);
			return false;
		}
		if (placed == IS_FULL &&
			!make_room(rel, heap, index, buffer, unchanged, &tried))
		{
			pb_split_page(rel, index, buffer, slot, key);
			return false;
		}
		CompatInjectionPoint("pbtree-room");
		slot = pb_pos_search(pos, buffer, &bounds);
	}
}

void
pb_insert_key(Relation rel, Relation heap, PbIndex *index, const PbKey *key,
			  bool unchanged)
{
	PbPos		pos;
	Buffer		buffer;
	int			slot;
	bool		cleaned = false;

	Assert(key->natts == index->natts && key->has_tid);
	pb_pos_from_key(&pos, rel, index, key);
	do
	{
		buffer = find_leaf(rel, index, &pos, &slot);
	} while (!put_key(rel, heap, index, buffer, &pos, slot, key, unchanged,
					  &cleaned));
	pb_pos_end(&pos);
}

/*
 * True if the entry exists.  It can be at the slot that is its place, or in the
 * posting list in front of that.
 */
static bool
is_there(Relation rel, PbIndex *index, Buffer buffer, int slot,
		 const PbKey *key)
{
	Page		page = BufferGetPage(buffer);
	ItemPointerData tids[PB_MAX_TIDS];

	for (int at = Max(slot - 1, 0); at <= slot && at < pb_page_nslots(page);
		 at++)
	{
		const uint8 *tail = pb_item_match(index, page, at, key);
		PbItem		item;
		int			n;

		if (tail == NULL)
			continue;
		item.flags = pb_slot_get(page, at);
		item.tail = tail;
		n = pb_item_tids(rel, buffer, page, at, &item, tids);
		for (int i = 0; i < n; i++)
		{
			if (ItemPointerEquals(&tids[i],
								  unconstify(ItemPointerData *, &key->tid)))
				return true;
		}
	}
	return false;
}

void
pb_insert_again(Relation rel, Relation heap, PbIndex *index, const PbKey *key)
{
	PbPos		pos;
	Buffer		buffer;
	int			slot;
	bool		cleaned = false;

	pb_pos_from_key(&pos, rel, index, key);
	do
	{
		buffer = find_leaf(rel, index, &pos, &slot);
		if (is_there(rel, index, buffer, slot, key))
		{
			CheckForSerializableConflictIn(rel, NULL,
										   BufferGetBlockNumber(buffer));
			UnlockReleaseBuffer(buffer);
			break;
		}
	} while (!put_key(rel, heap, index, buffer, &pos, slot, key, false,
					  &cleaned));
	pb_pos_end(&pos);
}

/* ---- unique indexes ---------------------------------------------------- */

/*
 * Find the leaf that the position is on, which is "first" or to the right of
 * it, and lock it for writing.  "first" stays locked.
 */
static Buffer
go_right(Relation rel, PbPos *pos, Buffer first)
{
	Buffer		buffer = first;
	int			equal;

	Assert(pb_index_is_locked(first, PB_WRITE));	/* I13 */
	while (!pb_page_is_rightmost(BufferGetPage(buffer)))
	{
		PbSpecial  *special = PbPageGetSpecial(BufferGetPage(buffer));
		Buffer		next;

		if (pb_pos_compare_fence(pos, pb_page_high(BufferGetPage(buffer)),
								 special->high_len, 0, &equal) < 0)
			break;
		next = pb_search_next(rel, buffer, PB_WRITE);
		while (PbPageGetSpecial(BufferGetPage(next))->flags &
			   PB_PAGE_INCOMPLETE)
		{
			pb_split_finish(rel, next);
			next = pb_search_next(rel, buffer, PB_WRITE);
		}
		if (buffer != first)
			UnlockReleaseBuffer(buffer);
		buffer = next;
	}
	return buffer;
}

/*
 * Like pb_insert_key, if the key is unique.  With UNIQUE_CHECK_EXISTING the row
 * was inserted before, and is only checked.  From the check to the insertion
 * the first leaf that the key can be on stays locked (I13).  Returns false if
 * the key may not be unique.
 */
bool
pb_insert_unique(PbUnique *u, const PbKey *key, bool unchanged)
{
	PbPos		pos;
	PbPos		first;
	bool		done = false;
	bool		cleaned = false;	/* stays false: a unique index has no
									 * stale entries */
	PbVerdict	verdict = PB_UNIQUE;

	pb_pos_from_key(&pos, u->rel, u->index, key);
	first = pos;
	first.has_tid = false;
	first.after = false;
	while (!done)
	{
		int			slot;
		Buffer		leaf = find_leaf(u->rel, u->index, &first, &slot);
		Buffer		buffer;
		PbBounds	bounds = {0, 0};

		verdict = pb_unique_check(u, leaf, &first, slot);
		if (verdict == PB_WAIT || u->check == UNIQUE_CHECK_EXISTING)
		{
			UnlockReleaseBuffer(leaf);
			done = verdict != PB_WAIT;
			if (!done)
				pb_unique_wait(u);
			continue;
		}
		buffer = go_right(u->rel, &pos, leaf);

		Assert(pb_index_is_locked(leaf, PB_WRITE)); /* I13 */

		/*
		 * The key and its TID may belong to another leaf even if no row has
		 * the key: a fence may be the key of a removed row.
		 */
		if (buffer != leaf || u->nequal > 0)
			slot = pb_pos_search(&pos, buffer, &bounds);
		done = put_key(u->rel, u->heap, u->index, buffer, &pos, slot, key,
					   unchanged || u->nequal > 0, &cleaned);
		if (buffer != leaf)
			UnlockReleaseBuffer(leaf);
	}
	pb_pos_end(&pos);
	pb_pos_end(&first);
	return verdict == PB_UNIQUE;
}
