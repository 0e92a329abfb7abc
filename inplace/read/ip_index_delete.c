/*-------------------------------------------------------------------------
 * ip_index_delete.c
 *	  Which entries of an index page may be deleted, as their rows are dead.
 *
 * An index access method asks before it splits a page, or when it finds entries
 * that scans have marked.  It holds the page locked exclusively.  We lock one
 * data page at a time, and undo pages below it, all of them in share mode.
 *
 * The result is a conflict horizon: on a standby, snapshots that do not see it
 * must end before the entries are deleted.  It covers the deletions of rows
 * that are still there.  It need not cover
 * - dead items: the record that made the item dead is earlier in the WAL, and
 *	 carries the deleter as its own conflict, in the record's main data, so that
 *	 it is there with a full-page image too.  A backend that takes a snapshot
 *	 after its replay (or starts from a later base backup) sees the deleter as
 *	 committed;
 * - insertions that were rolled back: no snapshot has ever seen such a row.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "port/pg_bitutils.h"

#include "ip_index_delete.h"
#include "ip_rel.h"
#include "ip_version.h"
#include "ip_version_satisfy.h"
#include "ip_xid.h"

/*
 * The limit of data pages that a bottom-up deletion visits: the index page is
 * locked all the time.
 */
#define MAX_BLOCKS		6
/* From this page on, less and less freed space is good enough. */
#define PATIENT_BLOCKS	2
/* The number of a row's aborted changes that are searched for its insertion. */
#define MAX_ABORTED		16

/* The entries of one data page: neighbours in deltids. */
typedef struct BlockGroup
{
	int			first;
	int			ntids;
	int			npromising;
} BlockGroup;

/*
 * Numbers are compared in one instruction: sorting them takes half of the time
 * that sorting TIDs takes.
 */
#define ST_SORT sort_numbers
#define ST_ELEMENT_TYPE uint64
#define ST_COMPARE(a, b) ((*(a) > *(b)) - (*(a) < *(b)))
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

static void
sort_by_tid(TM_IndexDelete *items, int n)
{
	uint64	   *numbers = palloc(n * sizeof(uint64));

	for (int i = 0; i < n; i++)
		numbers[i] =
			(uint64) ItemPointerGetBlockNumberNoCheck(&items[i].tid) << 32 |
			(uint32) ItemPointerGetOffsetNumberNoCheck(&items[i].tid) << 16 |
			(uint16) items[i].id;
	sort_numbers(numbers, n);
	for (int i = 0; i < n; i++)
	{
		ItemPointerSet(&items[i].tid, numbers[i] >> 32,
					   (OffsetNumber) (numbers[i] >> 16));
		items[i].id = (int16) numbers[i];
	}
	pfree(numbers);
}

/* ---- one entry --------------------------------------------------------- */

/*
 * Returns whether the insertion of the row, whose newest change was aborted,
 * was aborted too.  The data page's lock keeps the row's undo, but nothing
 * depends on that here.
 */
static bool
insertion_aborted(Relation rel, BlockNumber block, Page page, OffsetNumber off)
{
	IpVersion	version;
	IpVersion  *v = &version;
	IpvResult	result = ip_version_begin(v, rel, block, page, off);

	for (int steps = 0; result == IPV_OK && steps < MAX_ABORTED; steps++)
	{
		if (ip_version_status(v) != IP_STATUS_ABORTED)
			return false;
		if (v->state & IP_ROW_INSERTED)
			return true;
		result = ip_version_older(v);
	}
	return false;
}

/*
 * Returns whether the entry for the row at off may be deleted.  If that is
 * known already, only the conflict horizon is to be determined: our xid horizon
 * may be older than that of the backend which found the row to be dead.
 */
static bool
is_deletable(Relation rel, BlockNumber block, Page page, OffsetNumber off,
			 bool known, IpXid *horizon)
{
	IpXidStatus status;
	IpRow		row;

	if (!ip_row_read(rel, block, page, off, &row))
		return true;
	status = ip_xid_status_locked(row.xid);
	if (!known &&
		!ip_version_is_dead(rel, row.state, row.xid, ip_xid_horizon()) &&
		!(status == IP_STATUS_ABORTED &&
		  insertion_aborted(rel, block, page, off)))
		return false;
	if ((row.state & IP_ROW_DELETED) && status != IP_STATUS_ABORTED)
		*horizon = Max(*horizon, row.xid);
	return true;
}

/* ---- one data page ----------------------------------------------------- */

static Buffer
lock_data_page(TM_IndexDeleteOp *op, Relation rel, BlockNumber block)
{
	Buffer		buffer = ip_rel_read(rel, block);

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (ip_page_kind(rel, block, BufferGetPage(buffer)) != IP_PAGE_DATA)
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("block %u of index \"%s\" refers to block %u of relation \"%s\", which is not a data page",
						op->iblknum, RelationGetRelationName(op->irel), block,
						RelationGetRelationName(rel))));
	return buffer;
}

/*
 * Mark the group's entries that may be deleted.  Returns the space that they
 * take in the index.
 */
static int
visit_group(Relation rel, TM_IndexDeleteOp *op, const BlockGroup *group,
			IpXid *horizon)
{
	TM_IndexDelete *items = op->deltids + group->first;
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(&items[0].tid);
	Buffer		buffer = lock_data_page(op, rel, block);
	Page		page = BufferGetPage(buffer);
	int			space = 0;

	for (int i = 0; i < group->ntids; i++)
	{
		TM_IndexStatus *status = &op->status[items[i].id];
		OffsetNumber off = ItemPointerGetOffsetNumberNoCheck(&items[i].tid);

		Assert(ItemPointerGetBlockNumberNoCheck(&items[i].tid) == block);
		if (!is_deletable(rel, block, page, off, status->knowndeletable,
						  horizon))
			continue;
		status->knowndeletable = true;
		space += status->freespace;
	}
	UnlockReleaseBuffer(buffer);
	return space;
}

/* ---- the order of data pages ------------------------------------------- */

/*
 * Returns the group of entries of one data page that begins with the entry
 * first.
 */
static BlockGroup
next_group(TM_IndexDeleteOp *op, int first)
{
	BlockGroup	group = {.first = first};
	BlockNumber block =
		ItemPointerGetBlockNumberNoCheck(&op->deltids[first].tid);

	Assert(first < op->ndeltids);
	for (int i = first; i < op->ndeltids &&
		 ItemPointerGetBlockNumberNoCheck(&op->deltids[i].tid) == block; i++)
	{
		group.ntids++;
		if (op->status[op->deltids[i].id].promising)
			group.npromising++;
	}
	return group;
}

/*
 * Returns whether it is better to visit a's page than b's.  Small numbers, and
 * small differences, are noise: then the older page is the better one, as dead
 * rows are in old pages.
 */
static bool
is_better(const BlockGroup *a, const BlockGroup *b)
{
	int			promise_a = pg_leftmost_one_pos32(a->npromising | 3);
	int			promise_b = pg_leftmost_one_pos32(b->npromising | 3);

	if (promise_a != promise_b)
		return promise_a > promise_b;
	return pg_leftmost_one_pos32(a->ntids) > pg_leftmost_one_pos32(b->ntids);
}

/* Find the most promising groups, best first.  Returns their number. */
static int
best_groups(TM_IndexDeleteOp *op, BlockGroup *best)
{
	BlockGroup	group;
	int			n = 0;

	for (int first = 0; first < op->ndeltids; first += group.ntids)
	{
		int			i = Min(n, MAX_BLOCKS - 1);

		group = next_group(op, first);
		if (n == MAX_BLOCKS && !is_better(&group, &best[i]))
			continue;
		for (; i > 0 && is_better(&group, &best[i - 1]); i--)
			best[i] = best[i - 1];
		best[i] = group;
		n = Min(n + 1, MAX_BLOCKS);
	}
	return n;
}

/* ---- the two ways to be asked ------------------------------------------ */

/*
 * Some entries are known to be deletable; the others lead to the same data
 * pages.
 */
static void
delete_simple(Relation rel, TM_IndexDeleteOp *op, IpXid *horizon)
{
	BlockGroup	group;

	for (int first = 0; first < op->ndeltids; first += group.ntids)
	{
		group = next_group(op, first);
		(void) visit_group(rel, op, &group, horizon);
	}
}

/* Nothing is known: find enough space, or give up soon. */
static void
delete_bottom_up(Relation rel, TM_IndexDeleteOp *op, IpXid *horizon)
{
	BlockGroup	groups[MAX_BLOCKS];
	int			ngroups = best_groups(op, groups);
	int			wanted = op->bottomupfreespace;
	int			freed = 0;

	for (int i = 0; i < ngroups; i++)
	{
		int			space = visit_group(rel, op, &groups[i], horizon);

		freed += space;

		/*
		 * after a page without a dead row, the next one, which is less
		 * promising, is no better
		 */
		if (space == 0 || freed >= wanted)
			break;
		if (i + 1 >= PATIENT_BLOCKS)
			wanted /= 2;
	}
}

/* Keep only the deletable entries: the caller does not need the others. */
static void
keep_deletable(TM_IndexDeleteOp *op)
{
	int			n = 0;

	for (int i = 0; i < op->ndeltids; i++)
	{
		if (op->status[op->deltids[i].id].knowndeletable)
			op->deltids[n++] = op->deltids[i];
	}
	op->ndeltids = n;
}

TransactionId
ip_index_delete_tuples(Relation rel, TM_IndexDeleteOp *op)
{
	IpXid		horizon = IP_XID_NONE;

	sort_by_tid(op->deltids, op->ndeltids);
	if (op->bottomup)
		delete_bottom_up(rel, op, &horizon);
	else
		delete_simple(rel, op, &horizon);
	keep_deletable(op);
	return (TransactionId) horizon;
}
