/*-------------------------------------------------------------------------
 * pb_check.c
 *	  pbtree_check: verification of an index.
 *
 * The table is locked against writers; on a standby, replay must be paused.
 * The tree is read level by level, from left to right; keys are compared in
 * full, never from a common prefix on.
 *-------------------------------------------------------------------------
 */
#include "compat_index.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlogrecovery.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "commands/defrem.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "pb_inspect.h"
#include "pb_search.h"

PGDLLEXPORT Datum pbtree_check(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(pbtree_check);

typedef struct Check
{
	Relation	rel;
	PbIndex    *index;
	MemoryContext page_context;
	Buffer		parent;			/* pinned: holds the next downlink to this
								 * level, or has none left; InvalidBuffer on
								 * the root's level */
	Page		above;			/* a copy of it */
	int			slot;			/* slot of that downlink */
	BlockNumber prev;
	uint8	   *high;			/* high fence of the page on the left */
	int			high_len;		/* 0 if there is no such page */
	bool		incomplete;		/* the page on the left is incomplete */
	int64		rows;
} Check;

static void
fail(Check *c, BlockNumber block, int slot, const char *problem)
{
	pb_index_corrupt(c->rel, block, slot, problem);
}

/* <0, 0, >0, in full */
static int
compare_keys(Check *c, const PbKey *a, const PbKey *b, bool leaf)
{
	PbPos	   *pos = palloc(sizeof(PbPos));
	int			equal;
	int			cmp;

	pb_pos_from_key(pos, c->rel, c->index, a);
	cmp = pb_pos_compare(pos, b, leaf, 0, &equal);
	pfree(pos);
	return cmp;
}

/* ---- one page ---------------------------------------------------------- */

static void
check_fence(Check *c, BlockNumber block, const uint8 *fence, int len,
			const PbKey *key, int slot, bool low)
{
	PbKey		bound;
	int			cmp;

	if (len == 0)
		return;
	if (!pb_key_get_fence(c->index, fence, len, &bound))
		fail(c, block, -1, "A fence is damaged.");
	cmp = compare_keys(c, key, &bound, false);
	if (low ? cmp < 0 : cmp >= 0)
		fail(c, block, slot,
			 low ?
			 "The item precedes the page's low fence." :
			 "The item does not precede the page's high fence.");
}

/* end: the last item */
static void
check_tids(Check *c, Buffer buffer, int slot, PbItem *item, ItemPointer end)
{
	ItemPointerData *tids = palloc(PB_MAX_TIDS * sizeof(ItemPointerData));
	int			n = pb_item_tids(c->rel, buffer, BufferGetPage(buffer), slot,
								 item, tids);

	if ((n > 1) != ((item->flags & PB_SLOT_POSTING) != 0))
		fail(c, BufferGetBlockNumber(buffer), slot,
			 "The item's number of TIDs is wrong.");
	if (n > 1 && !c->index->equalimage)
		fail(c, BufferGetBlockNumber(buffer), slot,
			 "The item must not have several TIDs.");
	item->key.tid = tids[0];
	item->key.has_tid = true;
	*end = tids[n - 1];
	c->rows += n;
	pfree(tids);
}

static void
check_items(Check *c, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	PbSpecial  *special = PbPageGetSpecial(page);
	BlockNumber block = BufferGetBlockNumber(buffer);
	bool		leaf = pb_page_is_leaf(page);
	PbItem	   *items = palloc(2 * sizeof(PbItem));
	ItemPointerData end;

	for (int slot = 0; slot < pb_page_nslots(page); slot++)
	{
		PbItem	   *item = &items[slot % 2];
		PbItem	   *last = &items[(slot + 1) % 2];

		pb_item_get(c->rel, c->index, buffer, page, slot, item);
		if (item->key.has_map && !(special->flags & PB_PAGE_MAPS))
			fail(c, block, slot,
				 "The item has a map, but the page has no maps.");
		if (leaf)
			check_tids(c, buffer, slot, item, &end);
		if (!leaf && slot == 0)
			continue;
		if (slot > (leaf ? 0 : 1) &&
			compare_keys(c, &item->key, &last->key, leaf) <= 0)
			fail(c, block, slot,
				 "The item does not follow the previous item in the order of keys.");
		check_fence(c, block, pb_page_low(page), special->low_len, &item->key,
					slot, true);
		/* the next key must come behind all its TIDs */
		if (leaf)
			item->key.tid = end;
		check_fence(c, block, pb_page_high(page), special->high_len, &item->key,
					slot, false);
	}
	pfree(items);
}

/* I1: check the fences. */
static void
check_layout(Check *c, Buffer buffer, int level)
{
	Page		page = BufferGetPage(buffer);
	PbSpecial  *special = PbPageGetSpecial(page);
	BlockNumber block = BufferGetBlockNumber(buffer);
	uint16	   *lens = palloc(BLCKSZ);

	if (special->flags & (PB_PAGE_META | PB_PAGE_DELETED))
		fail(c, block, -1,
			 "A link leads to the page, but it is not part of the tree.");
	if (special->level != level)
		fail(c, block, -1, "The page is not on the expected level.");
	if (special->map_len != c->index->map_len)
		fail(c, block, -1,
			 "The page's maps do not have the length of the index's maps.");
	if (!pb_page_item_lens(page, lens))
		fail(c, block, -1, "The page's slots are damaged.");
	if (special->prev != c->prev)
		fail(c, block, -1,
			 "The page's left link does not lead to its left sibling.");
	if (special->low_len != 0 &&
		(special->low_len != c->high_len ||
		 memcmp(pb_page_low(page), c->high, c->high_len) != 0))
		fail(c, block, -1,
			 "The page's low fence is not its left sibling's high fence.");
	pfree(lens);
}

/* ---- levels ------------------------------------------------------------ */

/*
 * Load a page of the level above.  It is a copy, because its lock is not held
 * while the level is read.
 */
static void
take_parent(Check *c, BlockNumber block)
{
	Buffer		buffer = pb_index_read(c->rel, block, PB_READ);
	const char *problem = pb_page_check_slots(BufferGetPage(buffer));

	if (problem)
		fail(c, block, -1, problem);
	memcpy(c->above, BufferGetPage(buffer), BLCKSZ);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	c->parent = buffer;
	c->slot = 0;
}

static void
leave_parent(Check *c)
{
	if (BufferIsValid(c->parent))
		ReleaseBuffer(c->parent);
	c->parent = InvalidBuffer;
}

/* Get the next child of the level above, or PB_NONE.  item: its downlink. */
static BlockNumber
next_child(Check *c, PbItem *item)
{
	while (c->slot >= pb_page_nslots(c->above))
	{
		BlockNumber next = PbPageGetSpecial(c->above)->next;

		if (next == PB_NONE)
			return PB_NONE;
		leave_parent(c);
		take_parent(c, next);
	}
	pb_item_get(c->rel, c->index, c->parent, c->above, c->slot, item);
	return item->down;
}

/* True if the low fence is the downlink's key. */
static bool
has_low_fence(Check *c, const PbItem *item, Page page)
{
	PbSpecial  *special = PbPageGetSpecial(page);
	uint8	   *fence = pb_page_low(c->above);
	int			len = PbPageGetSpecial(c->above)->low_len;

	if (special->low_len == 0)
		return true;
	if (c->slot > 0)
	{
		fence = palloc(BLCKSZ);
		len = pb_key_put_fence(c->index, &item->key, fence);
	}
	return len == special->low_len &&
		memcmp(fence, pb_page_low(page), len) == 0;
}

/*
 * I4: check that the page is the next child of the level above, and that its
 * low fence is the key of its downlink.
 */
static void
check_downlink(Check *c, Buffer buffer)
{
	BlockNumber block = BufferGetBlockNumber(buffer);
	PbItem	   *item = palloc(sizeof(PbItem));
	bool		is_next;

	if (!BufferIsValid(c->parent))
		return;
	is_next = next_child(c, item) == block;
	if (c->incomplete)
	{
		/* the downlink has not been made yet */
		if (is_next)
			fail(c, block, -1,
				 "The page has a downlink, but its left sibling is marked as incompletely split.");
		return;
	}
	if (!is_next)
		fail(c, block, -1, "The page has no downlink.");
	if (!has_low_fence(c, item, BufferGetPage(buffer)))
		fail(c, block, -1,
			 "The page's low fence is not the key of its downlink.");
	c->slot++;
}

/* down: the first page of the next level */
static BlockNumber
check_page(Check *c, BlockNumber block, int level, BlockNumber *down)
{
	Buffer		buffer;
	PbSpecial  *special;
	MemoryContext old = MemoryContextSwitchTo(c->page_context);
	BlockNumber next;

	CHECK_FOR_INTERRUPTS();
	buffer = pb_index_read(c->rel, block, PB_READ);
	special = PbPageGetSpecial(BufferGetPage(buffer));
	next = special->next;
	check_layout(c, buffer, level);
	check_downlink(c, buffer);
	check_items(c, buffer);
	if (level > 0 && c->prev == PB_NONE)
		*down = pb_item_down(c->rel, buffer, BufferGetPage(buffer), 0);
	c->prev = block;
	c->incomplete = (special->flags & PB_PAGE_INCOMPLETE) != 0;
	c->high_len = special->high_len;
	memcpy(c->high, pb_page_high(BufferGetPage(buffer)), special->high_len);
	UnlockReleaseBuffer(buffer);
	MemoryContextSwitchTo(old);
	MemoryContextReset(c->page_context);
	return next;
}

static void
check_level(Check *c, BlockNumber first, int level, BlockNumber *down)
{
	BlockNumber limit = RelationGetNumberOfBlocks(c->rel);
	BlockNumber pages = 0;
	PbItem	   *item = palloc(sizeof(PbItem));

	c->prev = PB_NONE;
	c->high_len = 0;
	c->incomplete = false;
	for (BlockNumber block = first; block != PB_NONE;)
	{
		if (++pages > limit)
			fail(c, block, -1, "Right links from the page form a circle.");
		block = check_page(c, block, level, down);
	}
	if (BufferIsValid(c->parent) && next_child(c, item) != PB_NONE)
		fail(c, item->down, -1,
			 "A downlink leads to the page, but no right link.");
	pfree(item);
	leave_parent(c);
	if (level > 0)
		take_parent(c, first);
}

/* Without a root only deleted and unwritten pages exist. */
static void
check_empty(Check *c)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(c->rel);

	for (BlockNumber block = PB_META_BLOCK + 1; block < nblocks; block++)
	{
		Buffer		buffer = ReadBuffer(c->rel, block);
		Page		page = BufferGetPage(buffer);

		CHECK_FOR_INTERRUPTS();
		LockBuffer(buffer, PB_READ);
		if (!PageIsNew(page))
		{
			pb_index_check_page(c->rel, buffer);
			if (!(PbPageGetSpecial(page)->flags & PB_PAGE_DELETED))
				fail(c, PB_META_BLOCK, -1,
					 "The metapage names no root, but pages of a tree exist.");
		}
		UnlockReleaseBuffer(buffer);
	}
}

static void
check_meta(Check *c)
{
	PbMeta		meta;
	PbMeta		expected;

	UnlockReleaseBuffer(pb_index_read_meta(c->rel, PB_READ, &meta));
	pb_index_new_meta(c->rel, &expected);

	/*
	 * since then an operator class may have got a function which says that
	 * equal keys are identical
	 */
	if ((meta.flags & ~expected.flags) ||
		memcmp(meta.codec, expected.codec, sizeof(meta.codec)) != 0)
		fail(c, PB_META_BLOCK, -1,
			 "The columns' encodings are not those of their types.");
}

static void
check_tree(Check *c)
{
	int			level;
	BlockNumber first;

	check_meta(c);
	pb_index_forget_root(c->rel, c->index);
	first = pb_index_root(c->rel, c->index, &level);
	if (first == PB_NONE)
		check_empty(c);
	for (; first != PB_NONE && level >= 0; level--)
	{
		BlockNumber down = PB_NONE;

		check_level(c, first, level, &down);
		first = down;
	}
}

/* ---- the table's rows -------------------------------------------------- */

static bool
has_tid(Check *c, Buffer buffer, int slot, const PbKey *key)
{
	Page		page = BufferGetPage(buffer);
	PbItem	   *item;
	PbKey	   *plain;
	ItemPointerData *tids;
	bool		found = false;
	int			n;

	if (slot < 0 || slot >= pb_page_nslots(page))
		return false;
	item = palloc(sizeof(PbItem));
	plain = palloc(sizeof(PbKey));
	tids = palloc(PB_MAX_TIDS * sizeof(ItemPointerData));
	pb_item_get(c->rel, c->index, buffer, page, slot, item);

	/*
	 * snapshots of a standby do not respect items that the primary has marked
	 * dead
	 */
	n = (item->flags & PB_SLOT_DEAD) && !RecoveryInProgress() ?
		0 : pb_item_tids(c->rel, buffer, page, slot, item, tids);
	pb_key_copy(plain, key);
	plain->has_tid = true;
	item->key.has_tid = true;
	for (int i = 0; i < n && !found; i++)
	{
		item->key.tid = tids[i];
		found = ItemPointerEquals(&tids[i], &plain->tid) &&
			compare_keys(c, plain, &item->key, true) == 0;
	}
	pfree(tids);
	pfree(plain);
	pfree(item);
	return found;
}

static void
check_row(Relation rel, ItemPointer tid, Datum *values, bool *isnull,
		  bool alive, void *state)
{
	Check	   *c = state;
	MemoryContext old = MemoryContextSwitchTo(c->page_context);
	PbKey	   *key = palloc(sizeof(PbKey));
	PbPos	   *pos = palloc(sizeof(PbPos));
	PbBounds	bounds;
	Buffer		buffer;
	bool		found = false;

	pb_key_form(rel, c->index, values, isnull, key);
	key->tid = *tid;
	key->has_tid = true;
	pb_pos_from_key(pos, rel, c->index, key);
	buffer = pb_search_descend(pos, 0, PB_READ, NULL, &bounds);
	if (BufferIsValid(buffer))
	{
		int			slot = pb_pos_search(pos, buffer, &bounds);

		found = has_tid(c, buffer, slot, key) ||
			has_tid(c, buffer, slot - 1, key);
		UnlockReleaseBuffer(buffer);
	}
	if (!found)
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("index \"%s\" lacks an entry for row (%u,%u) of the table",
						RelationGetRelationName(rel),
						ItemPointerGetBlockNumber(tid),
						ItemPointerGetOffsetNumber(tid)),
				 errhint("Please REINDEX it.")));
	MemoryContextSwitchTo(old);
	MemoryContextReset(c->page_context);
}

static void
check_rows(Check *c, Relation heap)
{
	IndexInfo  *info = BuildIndexInfo(c->rel);
	Snapshot	snapshot = RegisterSnapshot(GetTransactionSnapshot());
	HeapTuple	tuple = c->rel->rd_indextuple;
	TableScanDesc scan;

	/*
	 * an older snapshot may see versions for which the index correctly has no
	 * entries
	 */
	if (IsolationUsesXactSnapshot() &&
		c->rel->rd_index->indcheckxmin &&
		!TransactionIdPrecedes(HeapTupleHeaderGetXmin(tuple->t_data),
							   snapshot->xmin))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("index \"%s\" cannot be checked using transaction snapshot",
						RelationGetRelationName(c->rel)),
				 errhint("Run the check in a transaction that begins later.")));
	scan = table_beginscan_strat(heap, snapshot, 0, NULL, true, true);

	/* so that the scan uses the snapshot */
	info->ii_Concurrent = true;
	info->ii_Unique = false;
	table_index_build_scan(heap, c->rel, info, true, false, check_row, c, scan);
	UnregisterSnapshot(snapshot);
}

static void
check_index(Check *c, Relation heap, bool rows)
{
	MemoryContext context;

	if (!c->rel->rd_index->indisvalid)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot check index \"%s\"",
						RelationGetRelationName(c->rel)),
				 errdetail("Index is not valid.")));
	context = AllocSetContextCreate(CurrentMemoryContext, "pbtree check",
									ALLOCSET_DEFAULT_SIZES);
	c->above = MemoryContextAlloc(context, BLCKSZ);
	c->high = MemoryContextAlloc(context, BLCKSZ);
	c->page_context = AllocSetContextCreate(context, "pbtree check page",
											ALLOCSET_DEFAULT_SIZES);
	c->index = pb_index_get(c->rel);
	check_tree(c);
	if (rows)
		check_rows(c, heap);
	MemoryContextDelete(context);
}

/*
 * Choose the lock.  No process may change the tree during the check: neither
 * writers nor replay, which takes no locks on tables.
 */
static LOCKMODE
check_lock(void)
{
	if (!RecoveryInProgress())
		return ShareLock;
	if (GetRecoveryPauseState() != RECOVERY_PAUSED)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot check a pbtree index while WAL is replayed"),
				 errhint("Pause replay with pg_wal_replay_pause(), and resume it after the check.")));
	return AccessShareLock;
}

/*
 * Comparison functions, index expressions and predicates belong to the owner.
 * They run with the rights of the table's owner, as in amcheck.
 */
Datum
pbtree_check(PG_FUNCTION_ARGS)
{
	Oid			oid = PG_GETARG_OID(0);
	Oid			heap_oid = IndexGetRelation(oid, true);
	Oid			user;
	int			security;
	int			nest_level;
	LOCKMODE	lock = check_lock();
	Relation	heap;
	Check		c = {0};

	if (!OidIsValid(heap_oid))
		pb_inspect_wrong_kind(oid);
	heap = table_open(heap_oid, lock);
	GetUserIdAndSecContext(&user, &security);
	SetUserIdAndSecContext(heap->rd_rel->relowner,
						   security | SECURITY_RESTRICTED_OPERATION);
	nest_level = NewGUCNestLevel();
	CompatRestrictSearchPath();
	c.rel = pb_inspect_open(oid, lock);
	if (IndexGetRelation(oid, false) != heap_oid)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("could not open parent table of index \"%s\"",
						RelationGetRelationName(c.rel))));
	check_index(&c, heap, PG_GETARG_BOOL(1));
	AtEOXact_GUC(false, nest_level);
	SetUserIdAndSecContext(user, security);
	index_close(c.rel, lock);
	table_close(heap, lock);
	PG_RETURN_INT64(c.rows);
}
