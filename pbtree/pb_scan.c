/*-------------------------------------------------------------------------
 * pb_scan.c
 *	  Scans.
 *-------------------------------------------------------------------------
 */
#include "compat_index.h"

#include "access/xact.h"
#include "storage/predicate.h"
#include "utils/memutils.h"

#include "pb_dead.h"
#include "pb_leaf.h"
#include "pb_parallel.h"
#include "pb_scan.h"
#include "pb_search.h"
#include "pb_stale.h"

typedef struct PbScan
{
	PbIndex    *index;
	PbQuals		quals;
	PbLeaf		leaf;			/* the page that the scan is on */
	PbLeaf		mark;			/* the page with the mark, if that is another
								 * one */
	int			mark_at;		/* the marked row on the current page; -2 if
								 * elsewhere */
	uint32		steps;			/* steps from page to page in one direction,
								 * since the last jump */
	ScanDirection way;
	int			near;			/* what the last leap set walk to; 0 if it did
								 * not lead to a sibling */
	int			walk;			/* number of steps before the next leap, as
								 * leaps have led to siblings */
	MemoryContext row;			/* memory of an xs_itup that is long */
	bool		row_is_used;
	char	   *tuple;			/* memory of a short xs_itup, unless the leaf
								 * has it */
	PbTupleShape shape;
	MemoryContext check;		/* memory of the rows' keys, if entries may be
								 * stale */
	int			nread;			/* entries of this page that were returned */
	int			nstale;			/* number of these whose rows have other keys */
} PbScan;

#define NOT_MARKED	(-2)
#define MAX_WALK	63

/*
 * A scan checks a whole page if it has read at least MIN_STALE of its entries
 * in vain, and at least one in STALE_PART of those that it has read.
 */
#define MIN_STALE	8
#define STALE_PART	8

IndexScanDesc
pb_scan_begin(Relation rel, int nkeys, int norderbys)
{
	IndexScanDesc scan = RelationGetIndexScan(rel, nkeys, norderbys);
	PbScan	   *so = palloc(sizeof(PbScan));

	Assert(norderbys == 0);
	so->index = pb_index_get(rel);
	pb_quals_begin(&so->quals, rel, so->index);
	so->steps = 0;
	so->way = NoMovementScanDirection;
	so->near = so->walk = 0;
	so->row = NULL;
	so->row_is_used = false;
	pb_tuple_shape(rel, so->index, &so->shape);
	pb_leaf_init(&so->leaf);
	pb_leaf_init(&so->mark);
	so->leaf.shape = so->mark.shape = &so->shape;
	so->mark_at = NOT_MARKED;
	so->check = NULL;
	so->nread = so->nstale = 0;
	scan->xs_itupdesc = RelationGetDescr(rel);
	scan->opaque = so;
	return scan;
}

static bool
row_has_key(IndexScanDesc scan, TupleTableSlot *slot, bool *is_lost)
{
	PbScan	   *so = scan->opaque;
	MemoryContext old = MemoryContextSwitchTo(so->check);
	IndexTuple	tuple = pb_leaf_tuple(&so->leaf);
	char		space[PB_TUPLE_ROOM] pg_attribute_aligned(MAXIMUM_ALIGNOF);
	PbKey		mine;
	PbKey		key;
	bool		formed = pb_stale_form(scan->indexRelation, so->index, slot,
									   &mine, is_lost);

	MemoryContextSwitchTo(old);
	MemoryContextReset(so->check);
	if (!formed)
		return false;
	if (tuple == NULL)
	{
		pb_leaf_key(&so->leaf, so->index, &key);
		return pb_key_is_identical(&key, &mine);
	}
	if (mine.has_map)
		return false;
	pb_tuple_form_fixed(so->index, &so->shape, mine.data, (IndexTuple) space);
	return memcmp(space, tuple, so->shape.size) == 0;
}

/* True if the row in the slot has the current entry's key (I14). */
static bool
has_key(void *arg, TupleTableSlot *slot, bool *is_lost)
{
	IndexScanDesc scan = arg;
	PbScan	   *so = scan->opaque;
	bool		result = row_has_key(scan, slot, is_lost);

	so->nstale += result ? 0 : 1;
	return result;
}

/*
 * Prepare an index scan of an inplace table for stale entries.  The table is
 * not known before the first restart.
 */
static void
expect_stale(IndexScanDesc scan)
{
	PbScan	   *so = scan->opaque;

	if (scan->heapRelation == NULL || so->check != NULL ||
		!pb_stale_applies(scan->indexRelation, so->index, scan->heapRelation))
		return;
	so->check = AllocSetContextCreate(GetMemoryChunkContext(so), "pbtree check",
									  ALLOCSET_SMALL_SIZES);
	so->leaf.keep = so->mark.keep = true;
	inplace_keys_table()->expect(scan->xs_heapfetch, has_key, scan,
								 &so->leaf.lsn);
}

/*
 * Leave the page.  If many of its entries were read in vain, remove them for
 * later scans.
 */
static void
leave_leaf(IndexScanDesc scan)
{
	PbScan	   *so = scan->opaque;
	BlockNumber block = so->leaf.block;

	pb_leaf_leave(&so->leaf, so->index, scan);
	if (block != PB_NONE && so->nstale >= MIN_STALE &&
		so->nstale * STALE_PART >= so->nread && !RecoveryInProgress())
	{
		Buffer		buffer = ReadBuffer(scan->indexRelation, block);

		pb_dead_remove_stale_of_scan(scan->indexRelation, scan->heapRelation,
									 so->index, buffer);
		ReleaseBuffer(buffer);
	}
	so->nread = so->nstale = 0;
}

void
pb_scan_restart(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys,
				int norderbys)
{
	PbScan	   *so = scan->opaque;

	leave_leaf(scan);
	pb_leaf_leave(&so->mark, so->index, scan);
	so->mark_at = NOT_MARKED;
	so->steps = 0;
	if (keys && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
	pb_quals_set(&so->quals, scan);
	pb_skip_set(&so->quals);
	expect_stale(scan);
	if (scan->xs_want_itup && so->row == NULL)
	{
		so->tuple = MemoryContextAlloc(GetMemoryChunkContext(so),
									   PB_TUPLE_ROOM);
		so->row = AllocSetContextCreate(GetMemoryChunkContext(so), "pbtree row",
										ALLOCSET_SMALL_SIZES);
	}
}

void
pb_scan_end(IndexScanDesc scan)
{
	PbScan	   *so = scan->opaque;

	leave_leaf(scan);
	pb_leaf_leave(&so->mark, so->index, scan);
	pb_leaf_end(&so->leaf);
	pb_leaf_end(&so->mark);
	pb_quals_end(&so->quals);
	if (so->check)
		MemoryContextDelete(so->check);
	pfree(so->index);
	if (so->row)
	{
		MemoryContextDelete(so->row);
		pfree(so->tuple);
	}
	pfree(so);
}

/* ---- from page to page ------------------------------------------------- */

/*
 * Move to the page that a position leads to.  entered: the scan comes from
 * another page of the same range, so the range goes on in the other direction.
 * Returns false if the index is empty.
 */
static bool
enter(IndexScanDesc scan, PbPos *pos, ScanDirection dir, bool entered)
{
	PbScan	   *so = scan->opaque;
	PbBounds	bounds;
	Buffer		buffer;

	CHECK_FOR_INTERRUPTS();
	pgstat_count_index_scan(scan->indexRelation);
	CompatCountSearch(scan);

	buffer = pb_search_descend(pos, 0, PB_READ, NULL, &bounds);
	if (BufferIsInvalid(buffer))
	{
		CompatInjectionPoint("pbtree-empty");
		PredicateLockRelation(scan->indexRelation, scan->xs_snapshot);

		/* an insertion before that lock has not noticed the conflict */
		if (IsolationIsSerializable())
			buffer = pb_search_descend(pos, 0, PB_READ, NULL, &bounds);
	}
	if (BufferIsInvalid(buffer))
		return false;
	pb_leaf_read(&so->leaf, scan, &so->quals, buffer,
				 pb_pos_search(pos, buffer, &bounds), dir, entered);
	return true;
}

/* Move to the page on which the current range begins, in this direction. */
static bool
enter_range(IndexScanDesc scan, ScanDirection dir)
{
	PbScan	   *so = scan->opaque;

	so->steps = 0;
	return enter(scan,
				 ScanDirectionIsForward(dir) ? &so->quals.from : &so->quals.to,
				 dir, false);
}

/* Move to another page, in this direction. */
static void
leave(IndexScanDesc scan, ScanDirection dir, BlockNumber block)
{
	PbScan	   *so = scan->opaque;

	if (dir != so->way)
		so->steps = 0;
	so->way = dir;
	pb_search_count(scan->indexRelation, block, &so->steps);
	leave_leaf(scan);
	CompatInjectionPoint("pbtree-to-sibling");
	CHECK_FOR_INTERRUPTS();
}

/*
 * Leap to a page by a search from the root, over rows that do not satisfy the
 * conditions.  A leap counts as a step.
 */
static bool
leap(IndexScanDesc scan, PbPos *pos, ScanDirection dir)
{
	PbScan	   *so = scan->opaque;
	bool		forward = ScanDirectionIsForward(dir);
	BlockNumber from = so->leaf.block;
	BlockNumber next = so->leaf.next;
	bool		found;

	leave(scan, dir, from);
	found = enter(scan, pos, dir, true);
	pb_pos_end(pos);
	if (found && (forward ? so->leaf.block == next : so->leaf.next == from))
		so->walk = so->near = Min(so->near * 2 + 1, MAX_WALK);
	else
		so->near = 0;
	return found;
}

/* Move to a page's sibling.  Returns false if there is none. */
static bool
step(IndexScanDesc scan, ScanDirection dir, BlockNumber block, BlockNumber next)
{
	PbScan	   *so = scan->opaque;
	Relation	rel = scan->indexRelation;
	Buffer		buffer;
	Page		page;

	Assert(ScanDirectionIsBackward(dir) || next != PB_NONE);
	leave(scan, dir, block);
	if (ScanDirectionIsForward(dir))
	{
		if (next == block)
			pb_index_corrupt(rel, block, -1, "The page is its own sibling.");
		buffer = pb_index_read(rel, next, PB_READ);
		while (PbPageGetSpecial(BufferGetPage(buffer))->flags & PB_PAGE_DELETED)
		{
			if (pb_page_is_rightmost(BufferGetPage(buffer)))
				pb_index_corrupt(rel, BufferGetBlockNumber(buffer), -1,
								 "The page is deleted, and has no right sibling.");
			buffer = pb_search_right(rel, buffer, PB_READ);
		}
	}
	else
	{
		buffer = pb_search_left(rel, pb_index_read(rel, block, PB_READ));
		if (BufferIsInvalid(buffer))
			return false;
	}
	page = BufferGetPage(buffer);
	if (!pb_page_is_leaf(page) ||
		(PbPageGetSpecial(page)->flags & PB_PAGE_META))
		pb_index_corrupt(rel, BufferGetBlockNumber(buffer), -1,
						 "The page is not a leaf.");
	pb_leaf_read(&so->leaf, scan, &so->quals, buffer,
				 ScanDirectionIsForward(dir) ? 0 : pb_page_nslots(page), dir,
				 true);
	return true;
}

/*
 * Move to the page where the range continues.  A leap costs more than a step,
 * and is worthwhile only if it passes over pages.
 */
static bool
go_on(IndexScanDesc scan, ScanDirection dir)
{
	PbScan	   *so = scan->opaque;
	PbPos	   *target = so->walk > 0 ? NULL :
		pb_leaf_target(&so->leaf, &so->quals, dir);

	if (target != NULL)
		return leap(scan, target, dir);
	if (!step(scan, dir, so->leaf.block, so->leaf.next))
		return false;
	so->walk -= so->walk > 0;
	if (so->leaf.passed)
		so->walk = so->near = 0;
	return true;
}

/* Save the page that is left, if the marked row is on it. */
static void
take_mark_along(PbScan *so, IndexScanDesc scan)
{
	if (so->mark_at == NOT_MARKED)
		return;
	pb_leaf_leave(&so->mark, so->index, scan);
	pb_leaf_copy(&so->mark, &so->leaf);
	so->mark.at = so->mark_at;
	so->mark_at = NOT_MARKED;
}

/*
 * Move to the next page that is in a range; it may have no rows.  Returns
 * false if that was the last one.
 */
static bool
next_page(IndexScanDesc scan, ScanDirection dir)
{
	PbScan	   *so = scan->opaque;
	PbSide	   *side =
		&so->leaf.side[ScanDirectionIsForward(dir) ? PB_RIGHT : PB_LEFT];

	take_mark_along(so, scan);
	pb_quals_restore(&so->quals, side->elements);
	if (side->more)
	{
		if (go_on(scan, dir))
			return true;
	}
	else
		leave_leaf(scan);
	return pb_quals_next(&so->quals, dir) && enter_range(scan, dir);
}

/*
 * Move to the next page, or to the first one, in a scan that other processes
 * share.
 */
static bool
next_shared_page(IndexScanDesc scan, ScanDirection dir)
{
	PbScan	   *so = scan->opaque;
	PbSide	   *side =
		&so->leaf.side[ScanDirectionIsForward(dir) ? PB_RIGHT : PB_LEFT];
	PbPlace		place;
	PbPos	   *target;
	bool		found;

	leave_leaf(scan);
	if (!pb_parallel_seize(scan, &place))
		return false;
	if (place.start)
	{
		pb_quals_first(&so->quals, dir);
		found = enter_range(scan, dir);
	}
	else
	{
		pb_quals_restore(&so->quals, place.elements);
		found = (place.more && step(scan, dir, place.block, place.next)) ||
			(pb_quals_next(&so->quals, dir) && enter_range(scan, dir));
	}

	/*
	 * Leap before another process takes over: it cannot leap from the fence,
	 * which is in this process's memory.
	 */
	while (found && so->leaf.n == 0 && side->more &&
		   (target = pb_leaf_target(&so->leaf, &so->quals, dir)) != NULL)
		found = leap(scan, target, dir);
	if (!found)
	{
		pb_parallel_end(scan);
		return false;
	}
	place.start = false;
	place.more = side->more;
	place.block = so->leaf.block;
	place.next = so->leaf.next;
	memcpy(place.elements, side->elements, sizeof(place.elements));
	pb_parallel_release(scan, &place);
	return true;
}

/* Move to the next row. */
static bool
advance(IndexScanDesc scan, ScanDirection dir)
{
	PbScan	   *so = scan->opaque;
	int			by = ScanDirectionIsForward(dir) ? 1 : -1;

	if (so->leaf.block == PB_NONE)
	{
		if (so->quals.impossible)
			return false;
		if (scan->parallel_scan != NULL)
		{
			if (!next_shared_page(scan, dir))
				return false;
		}
		else
		{
			pb_quals_first(&so->quals, dir);
			if (!enter_range(scan, dir))
				return false;
		}
	}
	for (;;)
	{
		so->leaf.at += by;
		if (so->leaf.at >= 0 && so->leaf.at < so->leaf.n)
			return true;
		if (scan->parallel_scan != NULL ? !next_shared_page(scan, dir) :
			!next_page(scan, dir))
			return false;
	}
}

/* Form an index-only scan's row, as nbtree would have stored it. */
static void
form_tuple(IndexScanDesc scan)
{
	PbScan	   *so = scan->opaque;
	MemoryContext old;
	PbKey		key;
	PbArena		arena;

	if (so->row_is_used)
		MemoryContextReset(so->row);
	old = MemoryContextSwitchTo(so->row);
	pb_leaf_key(&so->leaf, so->index, &key);
	scan->xs_itup = pb_tuple_form(scan->indexRelation, so->index, &key, &arena,
								  so->tuple);
	so->row_is_used = (char *) scan->xs_itup != so->tuple;
	MemoryContextSwitchTo(old);
}

bool
pb_scan_next(IndexScanDesc scan, ScanDirection dir)
{
	PbScan	   *so = scan->opaque;

	scan->xs_recheck = false;
	if (scan->kill_prior_tuple && so->leaf.block != PB_NONE)
		pb_leaf_kill(&so->leaf);
	if (!advance(scan, dir))
		return false;
	Assert(so->leaf.at >= 0 && so->leaf.at < so->leaf.n);
	so->nread++;
	scan->xs_heaptid = so->leaf.tids[so->leaf.at];
	if (scan->xs_want_itup)
	{
		scan->xs_itup = pb_leaf_tuple(&so->leaf);
		if (scan->xs_itup == NULL)
			form_tuple(scan);
	}
	return true;
}

int64
pb_scan_bitmap(IndexScanDesc scan, TIDBitmap *bitmap)
{
	PbScan	   *so = scan->opaque;
	int64		n = 0;
	bool		recheck = pb_stale_applies(scan->indexRelation, so->index,
										   NULL);

	if (so->quals.impossible)
		return 0;
	pb_quals_first(&so->quals, ForwardScanDirection);
	if (!enter_range(scan, ForwardScanDirection))
		return 0;
	do
	{
		tbm_add_tuples(bitmap, so->leaf.tids, so->leaf.n, recheck);
		n += so->leaf.n;
	} while (next_page(scan, ForwardScanDirection));
	return n;
}

/* ---- marks ------------------------------------------------------------- */

void
pb_scan_mark(IndexScanDesc scan)
{
	PbScan	   *so = scan->opaque;

	pb_leaf_leave(&so->mark, so->index, scan);
	so->mark_at = so->leaf.block != PB_NONE ? so->leaf.at : NOT_MARKED;
}

/* Return to the marked row, from which the scan continues. */
void
pb_scan_return(IndexScanDesc scan)
{
	PbScan	   *so = scan->opaque;

	so->steps = 0;
	if (so->mark_at != NOT_MARKED)
	{
		so->leaf.at = so->mark_at;
		return;
	}
	leave_leaf(scan);
	if (so->mark.block != PB_NONE)
	{
		pb_leaf_copy(&so->leaf, &so->mark);
		so->mark_at = so->leaf.at;
		pb_leaf_leave(&so->mark, so->index, scan);
	}
}
