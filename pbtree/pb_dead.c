/*-------------------------------------------------------------------------
 * pb_dead.c
 *	  Deletion of dead rows, outside of VACUUM.
 *
 * Scans mark items of which all rows are dead to all snapshots.  When a page
 * is full, these are deleted, and with them dead rows of other items on the
 * same blocks of the table, which are read for the marked ones in any case.
 * If that does not make room, and the new row is a version of one with the
 * same key, the table is asked for dead versions: bottom-up deletion.
 *
 * The table determines the snapshots with which the deletion conflicts on a
 * standby.  The page is locked for writing, not for cleanup: only VACUUM frees
 * a row's TID, and it visits the page with a cleanup lock before that (I10).
 *-------------------------------------------------------------------------
 */
#include "compat_index.h"

#include "catalog/catalog.h"
#include "storage/procarray.h"

#include "pb_change.h"
#include "pb_dead.h"
#include "pb_stale.h"

/* The minimum gain of bottom-up deletion, as a part of the page. */
#define FREE_SPACE		(BLCKSZ / 16)

/* The approximate size of a TID of a posting list. */
#define TID_SPACE		3

/* TIDs of the page to pass to the table, in order of slots. */
typedef struct Dead
{
	Relation	rel;
	PbIndex    *index;
	Buffer		buffer;
	Page		page;
	int			room;
	ItemPointerData *tids;		/* their index is their id */
	TM_IndexDeleteOp op;
	int			nids;			/* number before the table omits some */
	int			nblocks;		/* blocks of marked rows */
	BlockNumber *blocks;
	PbItem		item;
	ItemPointerData item_tids[PB_MAX_TIDS];
} Dead;

static Dead *
begin(Relation rel, PbIndex *index, Buffer buffer, bool bottomup)
{
	Dead	   *d = palloc(sizeof(Dead));

	/* I14: locked from the examination of the rows to the removal */
	Assert(pb_index_is_locked(buffer, PB_WRITE) &&
		   pb_page_is_leaf(BufferGetPage(buffer)));
	d->rel = rel;
	d->index = index;
	d->buffer = buffer;
	d->page = BufferGetPage(buffer);
	d->room = 512;
	d->tids = palloc(d->room * sizeof(ItemPointerData));
	memset(&d->op, 0, sizeof(d->op));
	d->op.irel = rel;
	d->op.iblknum = BufferGetBlockNumber(buffer);
	d->op.bottomup = bottomup;
	d->op.bottomupfreespace = FREE_SPACE;
	d->op.deltids = palloc(d->room * sizeof(TM_IndexDelete));
	d->op.status = palloc(d->room * sizeof(TM_IndexStatus));
	d->nblocks = 0;
	d->blocks = NULL;
	return d;
}

static void
end(Dead *d)
{
	pfree(d->tids);
	pfree(d->op.deltids);
	pfree(d->op.status);
	if (d->blocks)
		pfree(d->blocks);
	pfree(d);
}

static void
add_tid(Dead *d, int slot, const ItemPointerData *tid, bool known,
		bool promising, int space)
{
	int			id = d->op.ndeltids++;

	if (id >= d->room)
	{
		d->room *= 2;
		d->tids = repalloc(d->tids, d->room * sizeof(ItemPointerData));
		d->op.deltids = repalloc(d->op.deltids,
								 d->room * sizeof(TM_IndexDelete));
		d->op.status = repalloc(d->op.status, d->room * sizeof(TM_IndexStatus));
	}
	d->tids[id] = *tid;
	d->op.deltids[id].tid = *tid;
	d->op.deltids[id].id = id;
	d->op.status[id].idxoffnum = slot + 1;
	d->op.status[id].knowndeletable = known;
	d->op.status[id].promising = promising;
	d->op.status[id].freespace = space;
}

static int
get_tids(Dead *d, int slot)
{
	pb_item_get(d->rel, d->index, d->buffer, d->page, slot, &d->item);
	return pb_item_tids(d->rel, d->buffer, d->page, slot, &d->item,
						d->item_tids);
}

/*
 * Delete rows, by their ids.  Snapshots of standbys that do not see xid are
 * cancelled first.  garbage: marked items may remain.  Returns false if there
 * is no room for the remaining rows.
 */
static bool
delete_rows(Dead *d, Relation heap, const bool *gone, TransactionId xid,
			bool garbage)
{
	static uint16 slots[BLCKSZ / sizeof(uint16)];
	int			n = d->nids;
	int			nslots = 0;
	ByteWriter *w;
	PbChange	c;

	pb_change_begin(&c, d->rel, PB_XLOG_DELETE);
	pb_change_conflict(&c, xid, RelationIsAccessibleInLogicalDecoding(heap));
	w = pb_change_block(&c, d->buffer, false);
	for (int id = 0; id < n;)
	{
		int			slot = d->op.status[id].idxoffnum - 1;
		int			kept = 0;
		int			all;
		int			before PG_USED_FOR_ASSERTS_ONLY = id;

		if (!(pb_slot_get(d->page, slot) & PB_SLOT_POSTING))
		{
			if (gone[id++])
				slots[nslots++] = slot;
			continue;
		}

		/*
		 * the table was asked about all TIDs of an item, or about some, in
		 * their order
		 */
		all = get_tids(d, slot);
		for (int i = 0; i < all; i++)
		{
			if (id < n && d->op.status[id].idxoffnum == slot + 1 &&
				ItemPointerEquals(&d->tids[id], &d->item_tids[i]))
			{
				if (gone[id++])
					continue;
			}
			d->item_tids[kept++] = d->item_tids[i];
		}
		/* the item has TIDs that the table was asked about */
		Assert(id > before);
		if (kept == 0)
			slots[nslots++] = slot;
		else if (kept < all)
			pb_op_tids(w, slot, pb_item_keep(d->page, slot, d->item.tail),
					   d->item_tids, kept);
	}
	if (nslots > 0)
		pb_op_delete(w, slots, nslots);
	if (!garbage)
		pb_op_flags(w, PB_PAGE_GARBAGE, 0);

	/* a list that loses its first TID may become longer */
	if (!pb_change_try(&c))
		return false;
	pb_change_apply(&c);
	return true;
}

/*
 * Delete the rows that the table declares deletable.  Returns true if there
 * are any.
 */
static bool
delete_dead(Dead *d, Relation heap)
{
	TransactionId xid;
	bool	   *gone = palloc0(d->op.ndeltids * sizeof(bool));
	bool		done = false;

	d->nids = d->op.ndeltids;
	xid = table_index_delete_tuples(heap, &d->op);
	for (int i = 0; i < d->op.ndeltids; i++)
	{
		int			id = d->op.deltids[i].id;

		gone[id] = d->op.status[id].knowndeletable;
		done |= gone[id];
	}
	done = done && delete_rows(d, heap, gone, xid, false);
	pfree(gone);
	return done;
}

/* ---- marked items ------------------------------------------------------ */

static int
compare_blocks(const void *a, const void *b)
{
	BlockNumber x = *(const BlockNumber *) a;
	BlockNumber y = *(const BlockNumber *) b;

	return x < y ? -1 : x > y;
}

/* List the table's blocks with rows of marked items. */
static void
find_blocks(Dead *d)
{
	int			room = 0;

	for (int slot = 0; slot < pb_page_nslots(d->page); slot++)
	{
		int			n;

		if (!(pb_slot_get(d->page, slot) & PB_SLOT_DEAD))
			continue;
		n = get_tids(d, slot);
		if (d->nblocks + n > room)
		{
			room = (d->nblocks + n) * 2;
			d->blocks = d->blocks ?
				repalloc(d->blocks, room * sizeof(BlockNumber)) :
				palloc(room * sizeof(BlockNumber));
		}
		for (int i = 0; i < n; i++)
			d->blocks[d->nblocks++] =
				ItemPointerGetBlockNumber(&d->item_tids[i]);
	}
	if (d->nblocks > 0)
		qsort(d->blocks, d->nblocks, sizeof(BlockNumber), compare_blocks);
}

/* Returns true if the page has fewer rows now. */
bool
pb_dead_remove_marked(Relation rel, Relation heap, PbIndex *index,
					  Buffer buffer)
{
	Dead	   *d;
	bool		done = false;

	if (!(PbPageGetSpecial(BufferGetPage(buffer))->flags & PB_PAGE_GARBAGE))
		return false;
	d = begin(rel, index, buffer, false);
	find_blocks(d);
	for (int slot = 0; d->nblocks > 0 && slot < pb_page_nslots(d->page); slot++)
	{
		bool		marked = (pb_slot_get(d->page, slot) & PB_SLOT_DEAD) != 0;
		int			n = get_tids(d, slot);

		for (int i = 0; i < n; i++)
		{
			BlockNumber block = ItemPointerGetBlockNumber(&d->item_tids[i]);

			if (marked || bsearch(&block, d->blocks, d->nblocks, sizeof(block),
								  compare_blocks))
				add_tid(d, slot, &d->item_tids[i], marked, false, 0);
		}
	}
	if (d->op.ndeltids > 0)
		done = delete_dead(d, heap);
	end(d);
	return done;
}

/* ---- bottom-up --------------------------------------------------------- */

/* Rows that share a key are promising, because versions of one row do. */
bool
pb_dead_remove_versions(Relation rel, Relation heap, PbIndex *index,
						Buffer buffer)
{
	static uint16 lens[BLCKSZ / 2];
	Dead	   *d = begin(rel, index, buffer, true);
	PbKey	   *last = palloc(sizeof(PbKey));
	int			before = 0;		/* ids before those of the last item */
	bool		done = false;

	if (!pb_page_item_lens(d->page, lens))
		pb_index_corrupt(rel, BufferGetBlockNumber(buffer), -1,
						 "The page's slots are damaged.");
	pb_key_begin(last);
	for (int slot = 0; slot < pb_page_nslots(d->page); slot++)
	{
		int			n = get_tids(d, slot);
		bool		same = slot > 0 && pb_key_is_identical(last, &d->item.key);

		for (int id = before; same && id < d->op.ndeltids; id++)
			d->op.status[id].promising = true;
		before = d->op.ndeltids;
		for (int i = 0; i < n; i++)
			add_tid(d, slot, &d->item_tids[i], false, same || n > 1,
					n > 1 ? TID_SPACE : lens[slot] + (int) sizeof(uint16));
		pb_key_copy(last, &d->item.key);
	}
	if (d->op.ndeltids > 0)
		done = delete_dead(d, heap);
	pfree(last);
	end(d);
	return done;
}

/* ---- stale entries ----------------------------------------------------- */

/*
 * Examine the suspects again.  The stale ones are entered in gone[], and *xid
 * becomes the newest xid that they conflict with.  Returns their number.
 */
static int
find_stale(Dead *d, PbStale *stale, bool *gone, TransactionId *xid)
{
	int			ngone = 0;

	for (int slot = 0; slot < pb_page_nslots(d->page); slot++)
	{
		int			n = get_tids(d, slot);

		for (int i = 0; i < n; i++)
		{
			int			id = d->op.ndeltids;

			if (!pb_stale_is_suspect(stale, &d->item_tids[i]))
				continue;
			/* damage: items that overlap */
			if (id >= PB_MAX_PAGE_TIDS)
				pb_index_corrupt(d->rel, BufferGetBlockNumber(d->buffer), slot,
								 "The page has more rows than it can hold.");
			add_tid(d, slot, &d->item_tids[i], false, false, 0);
			gone[id] = !pb_stale_is_needed(stale, &d->item.key,
										   &d->item_tids[i], xid);
			ngone += gone[id] ? 1 : 0;
		}
	}
	return ngone;
}

static void
remove_stale(Relation rel, Relation heap, PbIndex *index, Buffer buffer,
			 PbStale *stale)
{
	Dead	   *d = begin(rel, index, buffer, true);
	bool	   *gone = palloc0(sizeof(bool) * PB_MAX_PAGE_TIDS);
	TransactionId xid = InvalidTransactionId;
	int			ngone = find_stale(d, stale, gone, &xid);

	d->nids = d->op.ndeltids;
	if (ngone > 0 && delete_rows(d, heap, gone, xid, true))
		inplace_keys_table()->removed(heap, ngone);
	pfree(gone);
	end(d);
}

/* Returns false if too few are stale for a removal. */
static bool
try_remove_stale(Relation rel, Relation heap, PbIndex *index, Buffer buffer,
				 bool wait)
{
	PbStale		stale;
	bool		found;

	pb_stale_begin(&stale, rel, index, heap);
	found = pb_stale_look(&stale, buffer, true) > 0;
	if (found)
	{
		CompatInjectionPoint("pbtree-second-look");
		if (wait)
			LockBuffer(buffer, PB_WRITE);
		if (wait || ConditionalLockBuffer(buffer))
		{
			if (pb_stale_is_leaf(BufferGetPage(buffer)))
				remove_stale(rel, heap, index, buffer, &stale);
			LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		}
	}
	pb_stale_end(&stale);
	return found;
}

/*
 * Delete entries with keys that their rows had before updates in place, if a
 * sample has many.  The leaf is pinned, and not locked.
 */
void
pb_dead_remove_stale(Relation rel, Relation heap, PbIndex *index, Buffer buffer)
{
	(void) try_remove_stale(rel, heap, index, buffer, true);
}

/*
 * While a snapshot is held, no further entries can be removed.  So the leaf's
 * header has the horizon at which a scan has searched in vain, for all scans.
 * Entries that were rolled back in the meantime also wait.  The hint is not
 * logged, and does not make the page dirty, because it does not justify a
 * write.
 */
void
pb_dead_remove_stale_of_scan(Relation rel, Relation heap, PbIndex *index,
							 Buffer buffer)
{
	TransactionId horizon = GetOldestNonRemovableTransactionId(heap);
	PageHeader	header = (PageHeader) BufferGetPage(buffer);

	if (header->pd_prune_xid == horizon ||
		try_remove_stale(rel, heap, index, buffer, false))
		return;
	LockBuffer(buffer, PB_READ);
	if (CompatBeginHint(buffer))
		header->pd_prune_xid = horizon;
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
}
