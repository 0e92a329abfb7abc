/*-------------------------------------------------------------------------
 * ip_check_page.c
 *	  inplace_check(): results, reading pages, and the first pass, which checks
 *	  pages by themselves.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/visibilitymap.h"
#include "storage/procarray.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "ip_check_page.h"
#include "ip_lockset.h"
#include "ip_salvage.h"

/* ---- results ----------------------------------------------------------- */

const char *
ip_check_fail(IpCheck *c, const char *fmt,...)
{
	char		text[sizeof(c->problem)];
	va_list		args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	strlcpy(c->problem, text, sizeof(c->problem));
	return c->problem;
}

void
ip_check_report(IpCheck *c, BlockNumber block, OffsetNumber off,
				const char *problem)
{
	Datum		values[3];
	bool		nulls[3] = {false, off == 0, false};

	if (problem == NULL)
		return;
	values[0] = Int64GetDatum(block);
	values[1] = Int32GetDatum(off);
	values[2] = CStringGetTextDatum(problem);
	tuplestore_putvalues(c->rsinfo->setResult, c->rsinfo->setDesc, values,
						 nulls);
	pfree(DatumGetPointer(values[2]));
}

/* ---- transactions ------------------------------------------------------ */

bool
ip_check_in_future(IpCheck *c, IpXid xid)
{
	if (xid >= c->next)
		c->next = U64FromFullTransactionId(ReadNextFullTransactionId());
	return xid >= c->next;
}

/*
 * Find the removal horizon of this moment.  On a standby our snapshot takes its
 * place: replay of what removes something that the snapshot needs has to cancel
 * us first.
 */
void
ip_check_refresh_horizon(IpCheck *c)
{
	if (!RecoveryInProgress())
		c->horizon = ip_xid_full(GetOldestNonRemovableTransactionId(c->rel));
	else if (ActiveSnapshotSet())
		c->horizon = ip_xid_full(GetActiveSnapshot()->xmin);
	else
		c->horizon = PG_UINT64_MAX;
}

IpXidStatus
ip_check_status(IpXid xid)
{
	/*
	 * the page is not locked, but a transaction that pg_xact forgets at this
	 * moment has no aborted change left
	 */
	return ip_xid_status_locked(xid);
}

bool
ip_check_is_needed(IpCheck *c, IpXid xid)
{
	return !IpXidIsFrozen(xid) &&
		(xid >= c->horizon || ip_check_status(xid) != IP_STATUS_COMMITTED);
}

bool
ip_check_may_be_gone(IpXid xid)
{
	return ActiveSnapshotSet() &&
		!ip_xid_in_snapshot(xid, GetActiveSnapshot()) &&
		ip_check_status(xid) == IP_STATUS_COMMITTED;
}

/* ---- reading pages ----------------------------------------------------- */

typedef struct PageToCopy
{
	IpCheck    *c;
	BlockNumber block;
	Page		copy;
} PageToCopy;

static void
read_and_copy(void *arg)
{
	const PageToCopy *p = arg;
	Buffer		buffer = ReadBufferExtended(p->c->rel, MAIN_FORKNUM, p->block,
											RBM_NORMAL, p->c->strategy);

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	memcpy(p->copy, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
}

const char *
ip_check_copy_page(IpCheck *c, BlockNumber block, Page copy)
{
	PageToCopy	p = {c, block, copy};
	char	   *problem = ip_salvage_try(read_and_copy, &p);

	return problem ? ip_check_fail(c, "%s", problem) : NULL;
}

int
ip_check_page_kind(IpCheck *c, BlockNumber block)
{
	return c->pages[block] & PAGE_KIND;
}

bool
ip_check_page_is(IpCheck *c, Page page, IpPageKind kind)
{
	return !PageIsNew(page) &&
		ip_page_check_header(&c->of_page, page) == NULL &&
		IpPageGetSpecial(page)->kind == kind;
}

/* ---- one page ---------------------------------------------------------- */

bool
ip_check_has_aborted(IpXid xid)
{
	return !IpXidIsFrozen(xid) && ip_check_status(xid) == IP_STATUS_ABORTED;
}

const char *
ip_check_body(IpCheck *c, uint16 hdr, const uint8 *body, uint32 bodylen)
{
	TupleDesc	desc = RelationGetDescr(c->rel);
	int			natts = hdr & IP_HDR_NATTS_MASK;
	int			column;
	int			len = ip_body_measure(desc, hdr, body, bodylen, &column);

	if (natts > desc->natts)
		return ip_check_fail(c, "row has %d columns, but its table has %d",
							 natts, desc->natts);
	if (len < 0 && column == 0)
		return "row body ends within its NULL bitmap";
	if (len < 0)
		return ip_check_fail(c, "value of column %d is damaged or reaches beyond the row body",
							 column);
	for (const uint8 *p = body + len; p < body + bodylen; p++)
	{
		if (*p != 0)
			return "row has bytes after its last value";
	}
	return NULL;
}

/*
 * Returns what is wrong with a row that is sound by itself, as far as that
 * takes knowledge of the table or of transactions.
 */
static const char *
row_problem(IpCheck *c, const IpRow *row)
{
	if (ip_check_in_future(c, row->xid))
		return ip_check_fail(c, "transaction id " UINT64_FORMAT " of the row is in the future",
							 row->xid);
	if ((row->state & IP_ROW_OVERLAID) || ip_check_has_aborted(row->xid))
		return NULL;
	return ip_check_body(c, row->hdr, row->body, row->bodylen);
}

const char *
ip_check_row(IpCheck *c, Page page, OffsetNumber off, IpRow *row)
{
	const char *problem = ip_page_check_row(&c->of_page, page, off, row);

	return problem ? problem : row_problem(c, row);
}

/*
 * Returns a problem if the block is all-visible in the map, but not in its own
 * header.
 */
static const char *
map_problem(IpCheck *c, BlockNumber block)
{
	Buffer		buffer = ReadBuffer(c->rel, block);
	bool		bad;

	/* both change under the page's lock */
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	bad = !PageIsAllVisible(BufferGetPage(buffer)) &&
		visibilitymap_get_status(c->rel, block, &c->vm) != 0;
	UnlockReleaseBuffer(buffer);
	return bad ?
		"page is all-visible in the visibility map, but not in its header" :
		NULL;
}

/* Returns what is wrong with the transactions of an undo record at home. */
static const char *
home_problem(IpCheck *c, BlockNumber block, OffsetNumber off)
{
	uint8		buf[BLCKSZ];
	IpUndoRec	rec;

	if (ip_page_check_record(c->page.data, block, off, buf, &rec) != NULL)
		return NULL;
	return ip_check_in_future(c, rec.xid) ||
		ip_check_in_future(c, rec.prev_xid) ?
		"transaction id of the undo record is in the future" : NULL;
}

/*
 * Check a data page, and its rows, as far as that takes knowledge of the table
 * or of transactions.
 */
static void
check_data_page(IpCheck *c, BlockNumber block)
{
	Page		page = c->page.data;
	IpSpecial  *special = IpPageGetSpecial(page);
	uint64		base = ip_data_xid_base(special);
	TransactionId xid = special->u.data.default_xid;
	TransactionId changer = special->u.data.change_xid;
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	IpRow		row;

	if (ip_check_in_future(c, base))
		ip_check_report(c, block, 0,
						ip_check_fail(c, "xid base " UINT64_FORMAT
									  " is in the future", base));
	if (TransactionIdIsNormal(changer) &&
		ip_check_in_future(c, ip_xid_after(base, changer)))
		ip_check_report(c, block, 0,
						ip_check_fail(c, "default changer's transaction id %u is in the future",
									  changer));
	if (TransactionIdIsNormal(xid) &&
		ip_check_in_future(c, ip_xid_after(base, xid)))
		ip_check_report(c, block, 0,
						ip_check_fail(c, "default inserter has bad transaction id %u",
									  xid));
	if (!PageIsAllVisible(page) &&
		visibilitymap_get_status(c->rel, block, &c->vm) != 0)
		ip_check_report(c, block, 0, map_problem(c, block));
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		/* what can be seen without the table has been reported */
		if (ip_item_is_undo(page, PageGetItemId(page, off)))
			ip_check_report(c, block, off, home_problem(c, block, off));
		if (!ip_row_is_at(page, off) ||
			!ip_item_is_ours(PageGetItemId(page, off)) ||
			ip_page_check_row(&c->of_page, page, off, &row) != NULL)
			continue;
		ip_check_report(c, block, off, row_problem(c, &row));
		if (row.state & IP_ROW_VERSION)
			c->pages[block] |= PAGE_VERSIONS;
	}
}

static void
check_undo_page(IpCheck *c, BlockNumber block)
{
	IpXid		newest = IpPageGetSpecial(c->page.data)->u.undo.newest_xid;

	/* a page that has just begun has the next xid */
	if (newest > 0 && ip_check_in_future(c, newest - 1))
		ip_check_report(c, block, 0,
						ip_check_fail(c, "newest xid " UINT64_FORMAT " is in the future",
									  newest));
}

/* Check the transactions of lock sets. */
static void
check_lock_sets(IpCheck *c, BlockNumber block)
{
	Page		page = c->page.data;

	if (ip_lockset_problem(page) != NULL)
		return;					/* reported before */
	for (int i = 0; i < IpPageLockSets(page); i++)
	{
		IpXid		xid = IpPageLockSet(page, i)->xid;

		if (ip_check_in_future(c, xid))
			ip_check_report(c, block, 0,
							ip_check_fail(c, "transaction id " UINT64_FORMAT " of lock set %d is in the future",
										  xid, i));
	}
}

static void
report_of_page(void *arg, OffsetNumber off, const char *problem)
{
	IpCheck    *c = arg;

	ip_check_report(c, c->block, off, problem);
}

static void
check_sound_page(IpCheck *c, BlockNumber block)
{
	bool		has_items;

	c->block = block;
	c->of_page.report = report_of_page;
	c->of_page.arg = c;
	has_items = ip_page_check(&c->of_page, c->page.data, block);
	if (ip_check_page_kind(c, block) == IP_PAGE_UNDO)
		check_undo_page(c, block);
	else if (ip_check_page_kind(c, block) == IP_PAGE_DATA && has_items)
		check_data_page(c, block);
	else if (ip_check_page_kind(c, block) == IP_PAGE_LOCK ||
			 ip_check_page_kind(c, block) == IP_PAGE_META)
		check_lock_sets(c, block);
}

void
ip_check_page(IpCheck *c, BlockNumber block)
{
	const char *problem = ip_check_copy_page(c, block, c->page.data);

	if (problem == NULL && PageIsNew(c->page.data))
	{
		c->pages[block] = PAGE_NEW; /* left by a crash; will be used */
		return;
	}
	if (problem == NULL)
		problem = ip_page_check_header(&c->of_page, c->page.data);
	if (problem)
	{
		c->pages[block] = PAGE_BAD;
		ip_check_report(c, block, 0, problem);
		return;
	}
	c->pages[block] = IpPageGetSpecial(c->page.data)->kind;
	check_sound_page(c, block);
}

bool
ip_check_new_pages(IpCheck *c)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(c->rel);

	if (nblocks <= c->nblocks)
		return false;
	if (c->pages == NULL)
		c->pages = MemoryContextAllocHuge(CurrentMemoryContext, nblocks);
	else
		c->pages = repalloc_huge(c->pages, nblocks);
	while (c->nblocks < nblocks)
	{
		CHECK_FOR_INTERRUPTS();
		ip_check_page(c, c->nblocks);
		c->nblocks++;
	}
	return true;
}
