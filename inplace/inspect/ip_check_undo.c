/*-------------------------------------------------------------------------
 * ip_check_undo.c
 *	  inplace_check(): undo records against their rows, and the rings.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "common/hashfn.h"

#include "ip_check_undo.h"
#include "ip_runs.h"

/*
 * Returns whether the record's row must exist: VACUUM removes no row as long as
 * a snapshot may see an older version.
 */
static bool
row_must_exist(IpCheck *c, const IpUndoRec *rec)
{
	return ip_check_is_needed(c, rec->xid) && !ip_check_may_be_gone(rec->xid) &&
		ip_check_status(rec->xid) != IP_STATUS_ABORTED;
}

static const char *
record_problem(IpCheck *c, const IpUndoRec *rec, const IpSpecial *special)
{
	IpXid		newest = special->u.undo.newest_xid;
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(&rec->row);
	OffsetNumber off = ItemPointerGetOffsetNumberNoCheck(&rec->row);

	if (IpXidIsFrozen(rec->xid) || rec->xid > newest)
		return ip_check_fail(c, "undo record has bad transaction id "
							 UINT64_FORMAT, rec->xid);
	if ((rec->flags & IP_REC_PREV) &&
		(IpXidIsFrozen(rec->prev_xid) || rec->prev_xid > newest))
		return ip_check_fail(c, "undo record has bad previous transaction id "
							 UINT64_FORMAT, rec->prev_xid);
	if (block >= c->nblocks)
		(void) ip_check_new_pages(c);
	else if (ip_check_page_kind(c, block) == PAGE_NEW)
		ip_check_page(c, block);	/* it may be in use since then */
	if (off < FirstOffsetNumber || off > IP_MAX_ROWS_PER_PAGE ||
		(row_must_exist(c, rec) &&
		 (block >= c->nblocks ||
		  (ip_check_page_kind(c, block) != IP_PAGE_DATA &&
		   ip_check_page_kind(c, block) != PAGE_BAD))))
		return ip_check_fail(c, "undo record is about (%u,%u), where no row can be",
							 block, off);
	return NULL;
}

void
ip_check_undo_records(IpCheck *c, BlockNumber block)
{
	Page		page = c->rows.data;
	uint8		buf[BLCKSZ];
	OffsetNumber max;
	IpUndoRec	rec;

	if (ip_check_copy_page(c, block, page) != NULL ||
		!ip_check_page_is(c, page, IP_PAGE_UNDO))
		return;
	max = PageGetMaxOffsetNumber(page);
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		const char *problem;

		if (!ip_item_is_ours(PageGetItemId(page, off)))
			continue;
		/* what is wrong with the record by itself has been reported */
		problem = ip_page_check_record(page, block, off, buf, &rec);
		if (problem == NULL)
			ip_check_report(c, block, off,
							record_problem(c, &rec, IpPageGetSpecial(page)));
	}
}

/* ---- rings ------------------------------------------------------------- */

/*
 * Links of a ring only lead to other pages of the ring, whatever happens
 * meanwhile: pages are inserted between others, and another page becomes the
 * current one.  So a walk needs no lock.  Only the number of pages that it
 * meets, and which of them is the current one, depend on the time.  If two
 * walks have met the same pages in the same state, they have met what was there
 * when the second one began.
 */
#define MAX_WALKS	10

typedef struct Ring
{
	uint16		slot;
	IpMetaSlot	before;			/* the metapage's slot before the walk */
	IpMetaSlot	after;
	XLogRecPtr	lsn;			/* the metapage's LSN before the walk */
	bool		unchanged;
	BlockNumber where;			/* page of the problem */
	uint32		marked;			/* pages that are marked as current */
	uint32		state;			/* hash value of all pages */
} Ring;

static bool
read_ring_slot(IpCheck *c, uint16 slot, IpMetaSlot *ms, XLogRecPtr *lsn)
{
	if (ip_check_copy_page(c, IP_META_BLOCK, c->again.data) != NULL ||
		!ip_check_page_is(c, c->again.data, IP_PAGE_META))
		return false;
	*ms = IpPageGetMeta(c->again.data)->slots[slot];
	*lsn = PageGetLSN(c->again.data);
	return true;
}

/* Visit the page at r->where; sets *next to the page that follows. */
static const char *
ring_page_problem(IpCheck *c, Ring *r, BlockNumber *next)
{
	Page		page = c->again.data;
	IpSpecial	special;

	if (r->where >= c->nblocks)
		(void) ip_check_new_pages(c);
	if (r->where >= c->nblocks || ip_check_page_kind(c, r->where) == PAGE_BAD ||
		ip_check_copy_page(c, r->where, page) != NULL ||
		!ip_check_page_is(c, page, IP_PAGE_UNDO))
		return ip_check_fail(c, "undo ring %u leads to a page that is not an undo page",
							 r->slot);
	special = *IpPageGetSpecial(page);
	if (special.u.undo.slot != r->slot)
		return ip_check_fail(c, "undo ring %u leads to a page of ring %u",
							 r->slot, special.u.undo.slot);
	if (special.u.undo.flags & IP_UNDO_CURRENT)
		r->marked++;
	/* a backend that appends a record changes pd_lower */
	r->state = hash_combine(r->state,
							hash_bytes((unsigned char *) page,
									   SizeOfPageHeaderData));
	r->state = hash_combine(r->state,
							hash_bytes((unsigned char *) &special,
									   sizeof(special)));
	c->pages[r->where] |= PAGE_IN_RING;
	*next = special.u.undo.next;
	return NULL;
}

/* Read the metapage again. */
static bool
ring_is_unchanged(IpCheck *c, Ring *r)
{
	XLogRecPtr	lsn;

	r->unchanged = read_ring_slot(c, r->slot, &r->after, &lsn) &&
		lsn == r->lsn && memcmp(&r->after, &r->before, sizeof(IpMetaSlot)) == 0;
	return r->unchanged;
}

static const char *
walk_ring(IpCheck *c, Ring *r)
{
	BlockNumber first = r->before.entry;
	BlockNumber next = first;
	uint32		n = 0;

	r->where = IP_META_BLOCK;
	r->marked = r->state = 0;
	if ((first == InvalidBlockNumber) != (r->before.npages == 0))
		return ip_check_fail(c, "undo slot %u has %u pages, and begins at block %u",
							 r->slot, r->before.npages, first);
	if (first == InvalidBlockNumber)
		return NULL;
	if (r->before.npages > RelationGetNumberOfBlocks(c->rel))
		return ip_check_fail(c, "undo slot %u has %u pages, more than the relation",
							 r->slot, r->before.npages);
	do
	{
		const char *problem;

		CHECK_FOR_INTERRUPTS();
		r->where = next;
		problem = ring_page_problem(c, r, &next);
		if (problem)
			return problem;
		if (++n > r->before.npages &&
			(ring_is_unchanged(c, r) || n > r->after.npages))
			return ip_check_fail(c, "undo ring %u does not close after %u pages",
								 r->slot, n);
	} while (next != first);
	if (n < r->before.npages)
		return ip_check_fail(c, "undo ring %u closes after %u pages instead of %u",
							 r->slot, n, r->before.npages);
	return NULL;
}

static const char *
ring_problem(IpCheck *c, Ring *r)
{
	for (int walks = 0; walks < MAX_WALKS; walks++)
	{
		uint32		state = r->state;
		const char *problem = walk_ring(c, r);

		if (problem || r->before.npages == 0 || r->marked == 1)
			return problem;
		r->where = r->before.entry;
		if (walks > 0 && r->state == state)
			return ip_check_fail(c, "undo ring %u has %u pages that are marked as current",
								 r->slot, r->marked);
		/* otherwise a writer is changing the ring */
		if (!read_ring_slot(c, r->slot, &r->before, &r->lsn))
			return NULL;
	}
	return NULL;
}

/*
 * Report undo pages that existed before the walks of the rings, and are in no
 * ring.
 */
static void
check_lost_pages(IpCheck *c, BlockNumber nblocks, const bool *ring_ok)
{
	for (BlockNumber block = 0; block < nblocks; block++)
	{
		uint16		slot;

		if (ip_check_page_kind(c, block) != IP_PAGE_UNDO ||
			(c->pages[block] & PAGE_IN_RING) ||
			ip_check_copy_page(c, block, c->again.data) != NULL ||
			!ip_check_page_is(c, c->again.data, IP_PAGE_UNDO))
			continue;
		slot = IpPageGetSpecial(c->again.data)->u.undo.slot;
		if (slot < IP_UNDO_SLOTS && ring_ok[slot])
			ip_check_report(c, block, 0,
							ip_check_fail(c, "undo page is not in ring %u",
										  slot));
	}
}

/*
 * Returns whether the metapage says that the block is a page of undo, or of
 * locks, and the page itself says that it is not.  The metapage must not change
 * meanwhile.
 */
static bool
is_wrongly_undo(IpCheck *c, BlockNumber block)
{
	Page		page = c->again.data;
	XLogRecPtr	lsn = InvalidXLogRecPtr;
	bool		is_undo = false;

	for (int look = 0; look < 2; look++)
	{
		if (ip_check_copy_page(c, IP_META_BLOCK, page) != NULL ||
			!ip_check_page_is(c, page, IP_PAGE_META) ||
			(look == 1 && PageGetLSN(page) != lsn) ||
			!ip_runs_have(IpPageGetMeta(page)->runs, ip_runs_count(page),
						  block))
			return false;
		lsn = PageGetLSN(page);
		if (look == 0 && block < RelationGetNumberOfBlocks(c->rel))
			is_undo = ip_check_copy_page(c, block, page) == NULL &&
				(ip_check_page_is(c, page, IP_PAGE_UNDO) ||
				 ip_check_page_is(c, page, IP_PAGE_LOCK));
	}
	return !is_undo;
}

/* Check the metapage's list of undo pages: scans do not read these. */
static void
check_runs(IpCheck *c)
{
	static IpUndoRun runs[IP_MAX_UNDO_RUNS];
	Page		meta = c->again.data;
	BlockNumber nblocks = RelationGetNumberOfBlocks(c->rel);
	uint32		n;

	if (ip_check_copy_page(c, IP_META_BLOCK, meta) != NULL ||
		!ip_check_page_is(c, meta, IP_PAGE_META) ||
		ip_runs_problem(meta) != NULL)
		return;
	n = ip_runs_count(meta);
	memcpy(runs, IpPageGetMeta(meta)->runs, n * sizeof(IpUndoRun));
	for (uint32 i = 0; i < n; i++)
	{
		if (runs[i].first + runs[i].n > nblocks &&
			is_wrongly_undo(c, runs[i].first + runs[i].n - 1))
			ip_check_report(c, IP_META_BLOCK, 0,
							ip_check_fail(c, "undo pages from %u on are beyond the table's end",
										  runs[i].first));
		for (BlockNumber block = runs[i].first;
			 block < Min(nblocks, runs[i].first + runs[i].n); block++)
		{
			CHECK_FOR_INTERRUPTS();
			if ((block >= c->nblocks ||
				 (ip_check_page_kind(c, block) != IP_PAGE_UNDO &&
				  ip_check_page_kind(c, block) != IP_PAGE_LOCK)) &&
				is_wrongly_undo(c, block))
				ip_check_report(c, block, 0, "metapage takes the page for one of undo");
		}
	}
}

void
ip_check_undo_rings(IpCheck *c)
{
	BlockNumber nblocks = c->nblocks;
	bool		ring_ok[IP_UNDO_SLOTS] = {false};
	bool		used = false;

	if (nblocks <= IP_META_BLOCK)
		return;
	for (BlockNumber block = 0; block < nblocks; block++)
		used |= ip_check_page_kind(c, block) == IP_PAGE_UNDO;
	/* the metapage is made before the first page of undo */
	if (used && ip_check_copy_page(c, IP_META_BLOCK, c->again.data) == NULL &&
		PageIsNew(c->again.data))
		ip_check_report(c, IP_META_BLOCK, 0, "table has pages of undo, but no metapage");
	for (uint16 slot = 0; slot < IP_UNDO_SLOTS; slot++)
	{
		Ring		r = {.slot = slot};
		const char *problem;

		if (!read_ring_slot(c, slot, &r.before, &r.lsn))
			return;
		problem = ring_problem(c, &r);
		ip_check_report(c, r.where, 0, problem);
		ring_ok[slot] = problem == NULL;
	}
	check_lost_pages(c, nblocks, ring_ok);
	check_runs(c);
}
