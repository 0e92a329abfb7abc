/*-------------------------------------------------------------------------
 * ip_check.c
 *	  inplace_check(): everything that is wrong with the pages of a table.
 *
 * The first pass looks at each page by itself, then come rows against their
 * undo, undo records against their rows, and the rings.
 *
 * All of it works on private copies: no lock is held while something is
 * decoded, and none while another one is taken, so the order in which writers
 * or redo lock pages does not matter.  What concerns several pages is checked
 * optimistically instead: a problem counts only if the row (or the metapage)
 * is unchanged after the other pages were read, and if the removal horizon has
 * not passed the undo record in question by then, ours or that of another
 * backend.  That is as good as having held all the locks.
 *
 * Nothing believes what it reads.  A page that cannot even be read raises
 * an error in the buffer manager; a subtransaction turns that into a result.
 *-------------------------------------------------------------------------
 */
#include "ip_compat.h"

#include "access/relation.h"
#include "access/xact.h"
#include "storage/lwlock.h"
#include "storage/procarray.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "ip_check.h"
#include "ip_space.h"

PG_FUNCTION_INFO_V1(inplace_check);
PGDLLEXPORT Datum inplace_check(PG_FUNCTION_ARGS);

/* ---- results --------------------------------------------------------------------- */

const char *
ipc_fail(IpCheck *c, const char *fmt,...)
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
ipc_report(IpCheck *c, BlockNumber block, OffsetNumber off, const char *problem)
{
	Datum		values[3];
	bool		nulls[3] = {false, off == 0, false};

	if (problem == NULL)
		return;
	values[0] = Int64GetDatum(block);
	values[1] = Int32GetDatum(off);
	values[2] = CStringGetTextDatum(problem);
	tuplestore_putvalues(c->rsinfo->setResult, c->rsinfo->setDesc, values, nulls);
	pfree(DatumGetPointer(values[2]));
}

/* ---- transactions ---------------------------------------------------------------- */

bool
ipc_in_future(IpCheck *c, IpXid xid)
{
	if (xid >= c->next)
		c->next = U64FromFullTransactionId(ReadNextFullTransactionId());
	return xid >= c->next;
}

/*
 * On a standby our snapshot takes the horizon's place: replay of what removes
 * something that the snapshot needs has to cancel us first.
 */
void
ipc_refresh_horizon(IpCheck *c)
{
	if (!RecoveryInProgress())
		c->horizon = ip_xid_full(GetOldestNonRemovableTransactionId(c->rel));
	else if (ActiveSnapshotSet())
		c->horizon = ip_xid_full(GetActiveSnapshot()->xmin);
	else
		c->horizon = PG_UINT64_MAX;
}

IpXidStatus
ipc_status(IpXid xid)
{
	/* the page is not locked, but what pg_xact forgets just now has no aborted change left */
	return ip_xid_status_locked(xid);
}

bool
ipc_is_needed(IpCheck *c, IpXid xid)
{
	return !IpXidIsFinal(xid) && (xid >= c->horizon || ipc_status(xid) != IP_XID_COMMITTED);
}

bool
ipc_may_be_gone(IpXid xid)
{
	return ActiveSnapshotSet() && !ip_xid_in_snapshot(xid, GetActiveSnapshot(), ip_xid_horizon()) &&
		ipc_status(xid) == IP_XID_COMMITTED;
}

/* ---- reading pages ----------------------------------------------------------------- */

/* Is the error about the page, and not about us? */
static bool
is_damage(const ErrorData *error)
{
	return error->sqlerrcode == ERRCODE_DATA_CORRUPTED ||
		ERRCODE_TO_CATEGORY(error->sqlerrcode) == ERRCODE_SYSTEM_ERROR;
}

static void
read_and_copy(IpCheck *c, BlockNumber block, Page copy)
{
	Buffer		buffer = ReadBufferExtended(c->rel, MAIN_FORKNUM, block, RBM_NORMAL, c->strategy);

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	memcpy(copy, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
}

const char *
ipc_copy_page(IpCheck *c, BlockNumber block, Page copy)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	const char *volatile problem = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		read_and_copy(c, block, copy);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		if (!is_damage(error))
			ReThrowError(error);
		problem = ipc_fail(c, "%s", error->message);
		FreeErrorData(error);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return problem;
}

/* What is wrong with the header of a page that is not new, or NULL */
static const char *
header_problem(IpCheck *c, Page page)
{
	PageHeader	ph = (PageHeader) page;
	IpSpecial  *special = (IpSpecial *) ((char *) page + BLCKSZ - sizeof(IpSpecial));
	uint16		flags = special->kind == IP_PAGE_DATA ? PD_ALL_VISIBLE | PD_HAS_FREE_LINES : 0;

	if (PageGetPageSize(page) != BLCKSZ || PageGetPageLayoutVersion(page) != PG_PAGE_LAYOUT_VERSION)
		return ipc_fail(c, "page size or layout version is wrong: 0x%04X", ph->pd_pagesize_version);
	if (ph->pd_special != BLCKSZ - sizeof(IpSpecial))
		return ipc_fail(c, "special space starts at %u", ph->pd_special);
	if (ph->pd_lower < SizeOfPageHeaderData || ph->pd_lower > ph->pd_upper ||
		ph->pd_upper > ph->pd_special)
		return ipc_fail(c, "page has lower %u, upper %u, special %u",
					ph->pd_lower, ph->pd_upper, ph->pd_special);
	if (special->magic != IP_PAGE_MAGIC)
		return ipc_fail(c, "page has magic number 0x%04X", special->magic);
	if (special->kind < IP_PAGE_META || special->kind > IP_PAGE_FREE)
		return ipc_fail(c, "page has unknown kind %u", special->kind);
	if ((ph->pd_flags & ~flags) != 0)
		return ipc_fail(c, "page has unknown flags 0x%04X", ph->pd_flags);
	if (special->kind != IP_PAGE_UNDO && special->undo_xid_base != 0)
		return ipc_fail(c, "page has an undo page's xid base, 0x%08X", special->undo_xid_base);
	if (special->kind != IP_PAGE_META &&
		(ph->pd_lower - SizeOfPageHeaderData) % sizeof(ItemIdData) != 0)
		return ipc_fail(c, "line pointer array ends in the middle of one, at %u", ph->pd_lower);
	return NULL;
}

int
ipc_page_kind(IpCheck *c, BlockNumber block)
{
	return c->pages[block] & PAGE_KIND;
}

bool
ipc_page_is(IpCheck *c, Page page, IpPageKind kind)
{
	return !PageIsNew(page) && header_problem(c, page) == NULL &&
		IpPageGetSpecial(page)->kind == kind;
}

/* ---- one page: items -------------------------------------------------------------- */

static const char *
line_pointer_problem(IpCheck *c, Page page, ItemId lp, bool is_undo)
{
	PageHeader	ph = (PageHeader) page;
	uint32		start = ip_item_start(lp);
	uint32		len = ItemIdGetLength(lp);

	if (ItemIdIsNormal(lp))
		return "item is a heap tuple";
	if (!ip_item_is_ours(lp))
	{
		if (is_undo)
			return "line pointer of an undo record is dead or unused";
		return lp->lp_off == 0 && len == 0 ? NULL : "dead or unused line pointer has storage";
	}
	if (len == 0)
		return "item is empty";
	if (start < ph->pd_upper || start + len > ph->pd_special)
		return ipc_fail(c, "item of %u bytes at %u reaches outside of the page's item space", len, start);
	if (c->item_at[start] != 0)
		return ipc_fail(c, "item starts at %u, as another one does", start);
	c->item_at[start] = len;
	return NULL;
}

/* Line pointers are sane, and items fill the item space without gap or overlap. */
static bool
check_items(IpCheck *c, BlockNumber block)
{
	Page		page = c->page.data;
	PageHeader	ph = (PageHeader) page;
	bool		is_undo = ipc_page_kind(c, block) == IP_PAGE_UNDO;
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	uint32		pos = ph->pd_upper;
	int			nbad = 0;

	memset(c->item_at, 0, sizeof(c->item_at));
	if (!is_undo && max > IP_MAX_ROWS_PER_PAGE)
		ipc_report(c, block, 0, ipc_fail(c, "page has %u line pointers", max));
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		const char *problem = line_pointer_problem(c, page, PageGetItemId(page, off), is_undo);

		ipc_report(c, block, off, problem);
		nbad += problem != NULL;
	}
	if (nbad > 0)
		return false;
	while (pos < ph->pd_special && c->item_at[pos] != 0)
	{
		uint32		len = c->item_at[pos];

		c->item_at[pos] = 0;
		pos += len;
	}
	/* an item that was not on the way starts within another one */
	for (uint32 i = ph->pd_upper; i < ph->pd_special; i++)
		nbad += c->item_at[i] != 0;
	if (pos != ph->pd_special || nbad > 0)
		ipc_report(c, block, 0, ipc_fail(c, "items do not fill the item space: gap or overlap at %u", pos));
	return true;
}

/* ---- one page: the others ---------------------------------------------------------- */

static void
check_undo_page(IpCheck *c, BlockNumber block)
{
	IpSpecial  *special = IpPageGetSpecial(c->page.data);
	IpXid		newest = special->u.undo.newest_xid;

	/* a page that has just begun has the next xid */
	if (newest > 0 && ipc_in_future(c, newest - 1))
		ipc_report(c, block, 0, ipc_fail(c, "newest xid " UINT64_FORMAT " is in the future", newest));
	if (special->u.undo.slot >= IP_UNDO_SLOTS)
		ipc_report(c, block, 0, ipc_fail(c, "undo page belongs to slot %u", special->u.undo.slot));
	if (special->u.undo.flags & ~IP_UNDO_CURRENT)
		ipc_report(c, block, 0, ipc_fail(c, "undo page has unknown flags 0x%04X", special->u.undo.flags));
}

static void
check_meta_page(IpCheck *c, BlockNumber block)
{
	Page		page = c->page.data;
	PageHeader	ph = (PageHeader) page;
	IpMeta	   *meta = IpPageGetMeta(page);

	if (block != IP_META_BLOCK)
		ipc_report(c, block, 0, "metapage is not the table's first page");
	if (ph->pd_lower != MAXALIGN(SizeOfPageHeaderData) + sizeof(IpMeta) ||
		ph->pd_upper != IP_DECOY_START)
		ipc_report(c, block, 0, ipc_fail(c, "metapage has lower %u, upper %u", ph->pd_lower, ph->pd_upper));
	if (!ip_item_is_decoy(&meta->decoy))
		ipc_report(c, block, 0, "metapage does not begin with the line pointer of its decoy");
	if (meta->version != IP_FORMAT_VERSION)
		ipc_report(c, block, 0, ipc_fail(c, "format version is %u", meta->version));
	if (meta->nslots != IP_UNDO_SLOTS || meta->reserved != 0)
		ipc_report(c, block, 0, ipc_fail(c, "metapage has %u undo slots, reserved field is 0x%08X",
								 meta->nslots, meta->reserved));
}

static void
check_sound_page(IpCheck *c, BlockNumber block)
{
	int			kind = ipc_page_kind(c, block);

	if (block == IP_META_BLOCK && kind != IP_PAGE_META)
		ipc_report(c, block, 0, "the table's first page is not a metapage");
	if (kind == IP_PAGE_META)
		check_meta_page(c, block);
	else if (kind == IP_PAGE_UNDO)
	{
		check_undo_page(c, block);
		(void) check_items(c, block);
	}
	else if (kind == IP_PAGE_DATA && check_items(c, block))
		ipc_check_data_page(c, block);
}

void
ipc_check_page(IpCheck *c, BlockNumber block)
{
	const char *problem = ipc_copy_page(c, block, c->page.data);

	if (problem == NULL && PageIsNew(c->page.data))
	{
		c->pages[block] = PAGE_NEW;	/* left by a crash; will be used */
		return;
	}
	if (problem == NULL)
		problem = header_problem(c, c->page.data);
	if (problem)
	{
		c->pages[block] = PAGE_BAD;
		ipc_report(c, block, 0, problem);
		return;
	}
	c->pages[block] = IpPageGetSpecial(c->page.data)->kind;
	check_sound_page(c, block);
}

bool
ipc_check_new_pages(IpCheck *c)
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
		ipc_check_page(c, c->nblocks);
		c->nblocks++;
	}
	return true;
}

/* ---- the function ------------------------------------------------------------------------ */

Datum
inplace_check(PG_FUNCTION_ARGS)
{
	IpCheck    *c = palloc0(sizeof(IpCheck));
	BlockNumber nblocks;

	c->rel = ip_open_to_inspect(PG_GETARG_OID(0));
	InitMaterializedSRF(fcinfo, 0);
	c->rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	c->strategy = GetAccessStrategy(BAS_BULKREAD);
	ipc_refresh_horizon(c);

	(void) ipc_check_new_pages(c);
	nblocks = c->nblocks;
	for (BlockNumber block = 0; block < nblocks; block++)
	{
		CHECK_FOR_INTERRUPTS();
		if (c->pages[block] & PAGE_VERSIONS)
			ipc_check_undo_of_rows(c, block);
		else if (ipc_page_kind(c, block) == IP_PAGE_UNDO)
			ipc_check_records(c, block);
	}
	ipc_check_rings(c);

	if (BufferIsValid(c->vm))
		ReleaseBuffer(c->vm);
	FreeAccessStrategy(c->strategy);
	relation_close(c->rel, AccessShareLock);
	return (Datum) 0;
}
