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
 * not passed the undo record in question by then.  That is as good as having
 * held all the locks.
 *
 * Nothing here believes what it reads.  A page that cannot even be read raises
 * an error in the buffer manager; a subtransaction turns that into a result.
 *-------------------------------------------------------------------------
 */
#include "ip_compat.h"

#include "access/htup_details.h"
#include "access/multixact.h"
#include "access/relation.h"
#include "access/tupmacs.h"
#include "access/visibilitymap.h"
#include "access/xact.h"
#include "funcapi.h"
#include "storage/lwlock.h"
#include "storage/procarray.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "ip_page.h"
#include "ip_row.h"
#include "ip_xid.h"

PG_FUNCTION_INFO_V1(inplace_check);
PGDLLEXPORT Datum inplace_check(PG_FUNCTION_ARGS);

/* A row that changes while it is being checked is checked again, as often as that. */
#define MAX_TRIES		10

/* What is known about a page: its IpPageKind or one of these, and flags */
#define PAGE_NEW		0
#define PAGE_BAD		7
#define PAGE_KIND		0x07
#define PAGE_VERSIONS	0x10	/* has rows with version blocks */
#define PAGE_IN_RING	0x20

/* All flags that there are */
#define HDR_MASK \
	(IP_HDR_NATTS_MASK | IP_HDR_HASNULL | IP_HDR_HASEXTERNAL | IP_HDR_SPECULATIVE)
#define ROW_STATE_MASK \
	(IP_ROW_VERSION | IP_ROW_DEFAULT | IP_ROW_INSERTED | IP_ROW_DELETED | \
	 IP_ROW_LOCKED | IP_ROW_OVERLAID | IP_ROW_MOVED)

typedef struct Check
{
	Relation	rel;
	ReturnSetInfo *rsinfo;
	BufferAccessStrategy strategy;
	Buffer		vm;				/* a page of the visibility map, or invalid */
	BlockNumber nblocks;		/* pages that the first pass has seen */
	uint8	   *pages;			/* of each: PAGE_* */
	IpXid		next;			/* next transaction id, at some time */
	IpXid		horizon;		/* undo of transactions before it may be gone, if they committed */
	char		problem[200];	/* text of the last one, see fail() */
	PGAlignedBlock page;		/* the page that the first pass is at */
	PGAlignedBlock rows;		/* the data page whose rows' undo is being checked */
	PGAlignedBlock again;		/* the same, later */
	uint16		item_at[BLCKSZ];	/* lengths of the page's items, by their start */
} Check;

/* The versions of one row; like IpVersion, but nothing in it raises an error. */
typedef struct Chain
{
	ItemPointerData tid;
	uint16		hdr;
	uint8		state;
	IpXid		xid;
	IpPtr		ptr;
	const uint8 *body;
	uint32		bodylen;
	IpXid		needed_by;		/* the problem is one only while this xid needs undo */
	ItemPointerData forward;	/* where the row has moved, or invalid */
	IpUndoRec	rec;
	int			bodycur;
	uint8		bodybuf[2][BLCKSZ];
	uint8		recbuf[BLCKSZ];
} Chain;

/* ---- results --------------------------------------------------------------------- */

/* Make the text of a problem, maybe out of the one before.  It stays until the next one. */
static const char *fail(Check *c, const char *fmt,...) pg_attribute_printf(2, 3);

static const char *
fail(Check *c, const char *fmt,...)
{
	char		text[sizeof(c->problem)];
	va_list		args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	strlcpy(c->problem, text, sizeof(c->problem));
	return c->problem;
}

/* Report a problem of an item, or (off is 0) of a page; none if it is NULL. */
static void
report(Check *c, BlockNumber block, OffsetNumber off, const char *problem)
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

static bool
in_future(Check *c, IpXid xid)
{
	if (xid >= c->next)
		c->next = U64FromFullTransactionId(ReadNextFullTransactionId());
	return xid >= c->next;
}

/*
 * On a standby our snapshot takes the horizon's place: replay of what removes
 * something that the snapshot needs has to cancel us first.
 */
static void
refresh_horizon(Check *c)
{
	if (!RecoveryInProgress())
		c->horizon = ip_xid_full(GetOldestNonRemovableTransactionId(c->rel));
	else if (ActiveSnapshotSet())
		c->horizon = ip_xid_full(GetActiveSnapshot()->xmin);
	else
		c->horizon = PG_UINT64_MAX;
}

/* Did it commit?  xid is not in the future. */
static bool
did_commit(IpXid xid)
{
	bool		result;

	/* pg_xact must not be truncated between the look at its start and at xid */
	LWLockAcquire(XactTruncationLock, LW_SHARED);
	result = ip_xid_status(xid) == IP_XID_COMMITTED;
	LWLockRelease(XactTruncationLock);
	return result;
}

/* Must there be undo for a version that xid made? */
static bool
is_needed(Check *c, IpXid xid)
{
	return !IpXidIsFinal(xid) && (xid >= c->horizon || !did_commit(xid));
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
read_and_copy(Check *c, BlockNumber block, Page copy)
{
	Buffer		buffer = ReadBufferExtended(c->rel, MAIN_FORKNUM, block, RBM_NORMAL, c->strategy);

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	memcpy(copy, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
}

/* Copy a page; why it cannot be read, or NULL. */
static const char *
copy_page(Check *c, BlockNumber block, Page copy)
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
		problem = fail(c, "%s", error->message);
		FreeErrorData(error);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return problem;
}

/* What is wrong with the header of a page that is not new, or NULL */
static const char *
header_problem(Check *c, Page page)
{
	PageHeader	ph = (PageHeader) page;
	IpSpecial  *special = (IpSpecial *) ((char *) page + BLCKSZ - sizeof(IpSpecial));

	if (PageGetPageSize(page) != BLCKSZ || PageGetPageLayoutVersion(page) != PG_PAGE_LAYOUT_VERSION)
		return fail(c, "page size or layout version is wrong: 0x%04X", ph->pd_pagesize_version);
	if (ph->pd_special != BLCKSZ - sizeof(IpSpecial))
		return fail(c, "special space starts at %u", ph->pd_special);
	if (ph->pd_lower < SizeOfPageHeaderData || ph->pd_lower > ph->pd_upper ||
		ph->pd_upper > ph->pd_special)
		return fail(c, "page has lower %u, upper %u, special %u",
					ph->pd_lower, ph->pd_upper, ph->pd_special);
	if (special->magic != IP_PAGE_MAGIC)
		return fail(c, "page has magic number 0x%04X", special->magic);
	if (special->kind < IP_PAGE_META || special->kind > IP_PAGE_FREE)
		return fail(c, "page has unknown kind %u", special->kind);
	if ((ph->pd_flags & ~(special->kind == IP_PAGE_DATA ? PD_ALL_VISIBLE : 0)) != 0 ||
		special->reserved != 0)
		return fail(c, "page has unknown flags 0x%04X, 0x%08X", ph->pd_flags, special->reserved);
	if (special->kind != IP_PAGE_META &&
		(ph->pd_lower - SizeOfPageHeaderData) % sizeof(ItemIdData) != 0)
		return fail(c, "line pointer array ends in the middle of one, at %u", ph->pd_lower);
	return NULL;
}

static int
page_kind(Check *c, BlockNumber block)
{
	return c->pages[block] & PAGE_KIND;
}

/* Is it a sound page of that kind?  The page may be a locked one. */
static bool
page_is(Check *c, Page page, IpPageKind kind)
{
	return !PageIsNew(page) && header_problem(c, page) == NULL &&
		IpPageGetSpecial(page)->kind == kind;
}

/* ---- one page: items -------------------------------------------------------------- */

static const char *
line_pointer_problem(Check *c, Page page, ItemId lp, bool is_undo)
{
	PageHeader	ph = (PageHeader) page;
	uint32		start = ItemIdGetOffset(lp);
	uint32		len = ItemIdGetLength(lp);

	if (lp->lp_flags == LP_REDIRECT)
		return "line pointer is a redirection";
	if (!ItemIdIsNormal(lp))
	{
		if (is_undo)
			return "line pointer of an undo record is dead or unused";
		return start == 0 && len == 0 ? NULL : "dead or unused line pointer has storage";
	}
	if (len == 0)
		return "item is empty";
	if (start < ph->pd_upper || start + len > ph->pd_special)
		return fail(c, "item of %u bytes at %u reaches outside of the page's item space", len, start);
	if (c->item_at[start] != 0)
		return fail(c, "item starts at %u, as another one does", start);
	c->item_at[start] = len;
	return NULL;
}

/* Line pointers are sane, and items fill the item space without gap or overlap. */
static bool
check_items(Check *c, BlockNumber block)
{
	Page		page = c->page.data;
	PageHeader	ph = (PageHeader) page;
	bool		is_undo = page_kind(c, block) == IP_PAGE_UNDO;
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	uint32		pos = ph->pd_upper;
	int			nbad = 0;

	memset(c->item_at, 0, sizeof(c->item_at));
	if (!is_undo && max > IP_MAX_ROWS_PER_PAGE)
		report(c, block, 0, fail(c, "page has %u line pointers", max));
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		const char *problem = line_pointer_problem(c, page, PageGetItemId(page, off), is_undo);

		report(c, block, off, problem);
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
		report(c, block, 0, fail(c, "items do not fill the item space: gap or overlap at %u", pos));
	return true;
}

/* ---- one page: rows ------------------------------------------------------------------ */

/* Length of a varlena value, or 0 if it is damaged or reaches beyond the end */
static uint32
varlena_length(const uint8 *p, const uint8 *end, uint16 hdr)
{
	varattrib_4b header;

	if (p >= end)
		return 0;
	if (VARATT_IS_1B_E(p))
	{
		if (end - p < VARHDRSZ_EXTERNAL || VARTAG_1B_E(p) != VARTAG_ONDISK ||
			!(hdr & IP_HDR_HASEXTERNAL))
			return 0;
		return VARSIZE_EXTERNAL(p);
	}
	if (VARATT_IS_1B(p))
		return VARSIZE_1B(p);
	if (end - p < VARHDRSZ)
		return 0;
	memcpy(&header, p, VARHDRSZ);
	return VARSIZE_4B(&header) < VARHDRSZ ? 0 : VARSIZE_4B(&header);
}

/* The same for a value of any type */
static uint32
value_length(int attlen, const uint8 *p, const uint8 *end, uint16 hdr)
{
	const uint8 *nul;

	if (attlen > 0)
		return attlen;
	if (attlen == -1)
		return varlena_length(p, end, hdr);
	nul = memchr(p, 0, end - p);
	return nul ? nul - p + 1 : 0;
}

/* Its rows may have had columns that were never committed either. */
static bool
has_aborted(IpXid xid)
{
	return !IpXidIsFinal(xid) && ip_xid_status(xid) == IP_XID_ABORTED;
}

/* Does the body consist of values of the table's columns, and zeros? */
static const char *
body_problem(Check *c, uint16 hdr, const uint8 *body, uint32 bodylen)
{
	TupleDesc	desc = RelationGetDescr(c->rel);
	int			natts = hdr & IP_HDR_NATTS_MASK;
	bool		hasnull = (hdr & IP_HDR_HASNULL) != 0;
	const uint8 *p = body;
	const uint8 *end = body + bodylen;

	if (natts > desc->natts)
		return fail(c, "row has %d columns, but its table has %d", natts, desc->natts);
	if (hasnull)
		p += IpBitmapSize(natts);
	if (p > end)
		return "row body ends within its NULL bitmap";
	for (int i = 0; i < natts; i++)
	{
		uint32		len;

		if (hasnull && att_isnull(i, body))
			continue;
		len = value_length(TupleDescAttr(desc, i)->attlen, p, end, hdr);
		if (len == 0 || len > end - p)
			return fail(c, "value of column %d is damaged or reaches beyond the row body", i + 1);
		p += len;
	}
	for (; p < end; p++)
	{
		if (*p != 0)
			return "there is something behind the row's values";
	}
	return NULL;
}

/* Combinations of state bits; state is that on the page, row is decoded. */
static const char *
state_problem(Check *c, uint8 state, const IpRow *row)
{
	bool		has_undo = !(row->state & IP_ROW_INSERTED) || (row->state & IP_ROW_LOCKED);

	if (row->hdr & ~HDR_MASK)
		return fail(c, "row has unknown flags 0x%04X", row->hdr & ~HDR_MASK);
	if (state & ~ROW_STATE_MASK)
		return fail(c, "row has unknown state bits 0x%02X", state);
	if ((state & IP_ROW_INSERTED) && (state & IP_ROW_DELETED))
		return "row is both inserted and deleted";
	if ((state & IP_ROW_MOVED) && !(state & IP_ROW_DELETED))
		return "row is moved, but not deleted";
	if ((row->hdr & IP_HDR_SPECULATIVE) && !(row->state & IP_ROW_INSERTED))
		return "row is a speculative insertion, but not inserted";
	if (in_future(c, row->xid))
		return fail(c, "transaction id " UINT64_FORMAT " of the row is in the future", row->xid);
	if (!(state & IP_ROW_VERSION))
		return NULL;
	if (IpXidIsFinal(row->xid) && !(state & IP_ROW_LOCKED))
		return "row that is visible to all has a version block";
	if (has_undo && (row->ptr.block == IP_META_BLOCK || row->ptr.off == 0))
		return fail(c, "undo pointer (%u,%u) leads to no undo record", row->ptr.block, row->ptr.off);
	if (!has_undo && row->ptr.off != 0)
		return "inserted row has an undo pointer";
	if (!has_undo && (state & IP_ROW_OVERLAID))
		return "overlaid row has no undo record with its first bytes";
	return NULL;
}

/* Decode a row and check what can be checked without undo. */
static const char *
row_problem(Check *c, Page page, OffsetNumber off, IpRow *row)
{
	const char *problem = ip_row_decode(page, off, row);
	uint8		state;

	if (problem)
		return problem;
	state = ((uint8 *) PageGetItem(page, PageGetItemId(page, off)))[sizeof(uint16)];
	problem = state_problem(c, state, row);
	if (problem == NULL && !(state & IP_ROW_OVERLAID) && !has_aborted(row->xid))
		problem = body_problem(c, row->hdr, row->body, row->bodylen);
	return problem;
}

/* A page that is marked all-visible has nothing but plain rows. */
static const char *
all_visible_problem(Check *c, Page page)
{
	OffsetNumber max = PageGetMaxOffsetNumber(page);

	if (TransactionIdIsValid(IpPageGetSpecial(page)->u.data.default_xid))
		return "page is marked all-visible, but has a default inserter";
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		ItemId		lp = PageGetItemId(page, off);

		if (ItemIdIsDead(lp))
			return fail(c, "page is marked all-visible, but item %u is dead", off);
		if (ItemIdIsNormal(lp) && ((uint8 *) PageGetItem(page, lp))[sizeof(uint16)] != 0)
			return fail(c, "page is marked all-visible, but row %u is not", off);
	}
	return NULL;
}

/* Is a block all-visible in the map, but not in its own header? */
static const char *
map_problem(Check *c, BlockNumber block)
{
	Buffer		buffer = ReadBuffer(c->rel, block);
	bool		bad;

	/* both change under the page's lock */
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	bad = !PageIsAllVisible(BufferGetPage(buffer)) &&
		visibilitymap_get_status(c->rel, block, &c->vm) != 0;
	UnlockReleaseBuffer(buffer);
	return bad ? "page is all-visible in the visibility map, but not in its header" : NULL;
}

static void
check_data_page(Check *c, BlockNumber block)
{
	Page		page = c->page.data;
	IpSpecial  *special = IpPageGetSpecial(page);
	uint64		base = special->u.data.xid_base;
	TransactionId xid = special->u.data.default_xid;
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	IpRow		row;

	if (in_future(c, base))
		report(c, block, 0, fail(c, "xid base " UINT64_FORMAT " is in the future", base));
	if (TransactionIdIsValid(xid) &&
		(!TransactionIdIsNormal(xid) || in_future(c, ip_xid_after(base, xid))))
		report(c, block, 0, fail(c, "default inserter has bad transaction id %u", xid));
	if (PageIsAllVisible(page))
		report(c, block, 0, all_visible_problem(c, page));
	else if (visibilitymap_get_status(c->rel, block, &c->vm) != 0)
		report(c, block, 0, map_problem(c, block));
	if (!TransactionIdIsValid(xid) && special->u.data.default_cid != 0)
		report(c, block, 0, "default inserter has a command id, but no transaction id");
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		const char *problem;

		if (!ItemIdIsNormal(PageGetItemId(page, off)))
			continue;
		problem = row_problem(c, page, off, &row);
		report(c, block, off, problem);
		if (problem == NULL && (row.state & IP_ROW_VERSION))
			c->pages[block] |= PAGE_VERSIONS;
	}
}

/* ---- one page: the others ---------------------------------------------------------- */

static void
check_undo_page(Check *c, BlockNumber block)
{
	IpSpecial  *special = IpPageGetSpecial(c->page.data);
	IpXid		newest = special->u.undo.newest_xid;

	/* a page that has just begun has the next xid */
	if (newest > 0 && in_future(c, newest - 1))
		report(c, block, 0, fail(c, "newest xid " UINT64_FORMAT " is in the future", newest));
	if (special->u.undo.slot >= IP_UNDO_SLOTS)
		report(c, block, 0, fail(c, "undo page belongs to slot %u", special->u.undo.slot));
	if (special->u.undo.flags & ~IP_UNDO_CURRENT)
		report(c, block, 0, fail(c, "undo page has unknown flags 0x%04X", special->u.undo.flags));
}

static void
check_meta_page(Check *c, BlockNumber block)
{
	Page		page = c->page.data;
	PageHeader	ph = (PageHeader) page;
	IpMeta	   *meta = IpPageGetMeta(page);

	if (block != IP_META_BLOCK)
		report(c, block, 0, "metapage is not the table's first page");
	if (ph->pd_lower != MAXALIGN(SizeOfPageHeaderData) + sizeof(IpMeta) ||
		ph->pd_upper != ph->pd_special)
		report(c, block, 0, fail(c, "metapage has lower %u, upper %u", ph->pd_lower, ph->pd_upper));
	if (meta->magic != IP_META_MAGIC)
		report(c, block, 0, fail(c, "metapage has magic number 0x%08X", meta->magic));
	if (meta->version != IP_FORMAT_VERSION)
		report(c, block, 0, fail(c, "format version is %u", meta->version));
	if (meta->nslots != IP_UNDO_SLOTS || meta->reserved != 0)
		report(c, block, 0, fail(c, "metapage has %u undo slots, reserved field is 0x%08X",
								 meta->nslots, meta->reserved));
}

static void
check_sound_page(Check *c, BlockNumber block)
{
	int			kind = page_kind(c, block);

	if (block == IP_META_BLOCK && kind != IP_PAGE_META)
		report(c, block, 0, "the table's first page is not a metapage");
	if (kind == IP_PAGE_META)
		check_meta_page(c, block);
	else if (kind == IP_PAGE_UNDO)
	{
		check_undo_page(c, block);
		(void) check_items(c, block);
	}
	else if (kind == IP_PAGE_DATA && check_items(c, block))
		check_data_page(c, block);
}

static void
check_page(Check *c, BlockNumber block)
{
	const char *problem = copy_page(c, block, c->page.data);

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
		report(c, block, 0, problem);
		return;
	}
	c->pages[block] = IpPageGetSpecial(c->page.data)->kind;
	check_sound_page(c, block);
}

/* First pass over the pages that it has not seen; false if there are none. */
static bool
check_new_pages(Check *c)
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
		check_page(c, c->nblocks);
		c->nblocks++;
	}
	return true;
}

/* ---- rows and their undo ------------------------------------------------------------- */

/* Copy and decode the record at off of an undo page, which is locked. */
static const char *
record_on_page(BlockNumber block, Page page, OffsetNumber off, uint8 *buf, IpUndoRec *rec)
{
	PageHeader	ph = (PageHeader) page;
	ItemId		lp;
	uint32		start;
	uint32		len;

	if (off < FirstOffsetNumber || off > PageGetMaxOffsetNumber(page))
		return "there is no such record";
	lp = PageGetItemId(page, off);
	start = ItemIdGetOffset(lp);
	len = ItemIdGetLength(lp);
	if (!ItemIdIsNormal(lp) || start < ph->pd_upper || start + len > ph->pd_special)
		return "its item is damaged";
	memcpy(buf, (char *) page + start, len);
	return ip_undo_decode(block, IpPageGetSpecial(page)->u.undo.newest_xid, buf, len, rec);
}

/* Load ch->rec, the record about ch's row at ptr; why it cannot be, or NULL. */
static const char *
load_record(Check *c, Chain *ch, IpPtr ptr)
{
	const char *problem = "there is no undo page";
	Buffer		buffer;

	if (ptr.block >= c->nblocks)
		(void) check_new_pages(c);
	if (ptr.block == IP_META_BLOCK || ptr.block >= c->nblocks)
		return "there is no such page";
	if (page_kind(c, ptr.block) == PAGE_BAD)
		return "the page is damaged";
	buffer = ReadBuffer(c->rel, ptr.block);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (page_is(c, BufferGetPage(buffer), IP_PAGE_UNDO))
		problem = record_on_page(ptr.block, BufferGetPage(buffer), ptr.off, ch->recbuf, &ch->rec);
	UnlockReleaseBuffer(buffer);
	if (problem == NULL && memcmp(&ch->rec.row, &ch->tid, sizeof(ItemPointerData)) != 0)
		problem = "it is about another row";
	return problem;
}

/* Go below the lock record.  *saved: the overlaid bytes, if it has them */
static const char *
chain_unlock(Check *c, Chain *ch, const uint8 **saved)
{
	IpPtr		ptr = ch->ptr;
	const char *problem = load_record(c, ch, ptr);
	const IpUndoRec *rec = &ch->rec;

	if (problem == NULL && rec->kind != IP_UNDO_LOCK)
		problem = "it is not a lock";
	if (problem == NULL)
		*saved = rec->saved;
	/* if no version below the lock is needed, the record may have other plans */
	if (!is_needed(c, ch->xid))
	{
		ch->xid = IP_XID_NONE;
		return problem == NULL || !(ch->state & IP_ROW_OVERLAID) ? NULL :
			fail(c, "lock record (%u,%u): %s", ptr.block, ptr.off, problem);
	}
	if (!(ch->state & IP_ROW_OVERLAID))
		ch->needed_by = ch->xid;
	if (problem == NULL &&
		(rec->prev_xid != ch->xid ||
		 ((rec->flags & IP_REC_PREV_INSERTED) != 0) != ((ch->state & IP_ROW_INSERTED) != 0)))
		problem = "it has not kept the row's version block";
	if (problem)
		return fail(c, "lock record (%u,%u): %s", ptr.block, ptr.off, problem);
	ch->ptr = rec->prev_ptr;
	return NULL;
}

/* Load the record of the change that made the version. */
static const char *
chain_load(Check *c, Chain *ch)
{
	const char *problem = load_record(c, ch, ch->ptr);
	const IpUndoRec *rec = &ch->rec;
	bool		deleted = (ch->state & IP_ROW_DELETED) != 0;
	bool		moved = (ch->state & IP_ROW_MOVED) != 0;

	if (problem == NULL && rec->xid != ch->xid)
		problem = "it is another transaction's";
	if (problem == NULL && rec->kind != (deleted ? IP_UNDO_DELETE : IP_UNDO_UPDATE))
		problem = "it is of the wrong kind";
	if (problem == NULL && deleted &&
		moved != ((rec->flags & (IP_REC_FORWARD | IP_REC_PARTITION)) != 0))
		problem = "row and record disagree about where the row has moved";
	return problem == NULL ? NULL :
		fail(c, "undo record (%u,%u) of xid " UINT64_FORMAT ": %s",
			 ch->ptr.block, ch->ptr.off, ch->xid, problem);
}

/* Stand on the newest version. */
static const char *
chain_begin(Check *c, Chain *ch, const IpRow *row)
{
	const uint8 *saved = NULL;
	const char *problem = NULL;
	uint8	   *body = ch->bodybuf[0];

	ch->hdr = row->hdr;
	ch->state = row->state;
	ch->xid = row->xid;
	ch->ptr = row->ptr;
	ch->body = row->body;
	ch->bodylen = row->bodylen;
	ch->bodycur = 0;
	ch->needed_by = IP_XID_NONE;
	ItemPointerSetInvalid(&ch->forward);
	if (row->state & IP_ROW_LOCKED)
		problem = chain_unlock(c, ch, &saved);
	else if (row->state & IP_ROW_OVERLAID)
	{
		problem = chain_load(c, ch);
		saved = ch->rec.saved;
	}
	if (problem || !(row->state & IP_ROW_OVERLAID))
		return problem;
	if (saved == NULL)
		return fail(c, "undo record (%u,%u) has not kept the overlaid bytes",
					row->ptr.block, row->ptr.off);
	memcpy(body, saved, IP_VERSION_BLOCK_SZ);
	memcpy(body + IP_VERSION_BLOCK_SZ, row->body, row->bodylen - IP_VERSION_BLOCK_SZ);
	ch->body = body;
	return body_problem(c, ch->hdr, ch->body, ch->bodylen);
}

/* Go to the next older version. */
static const char *
chain_older(Check *c, Chain *ch)
{
	const IpUndoRec *rec = &ch->rec;
	const char *problem;

	ch->needed_by = ch->xid;
	problem = chain_load(c, ch);
	if (problem)
		return problem;
	if (rec->kind == IP_UNDO_UPDATE)
	{
		IpReader	r = {rec->delta, rec->delta + rec->deltalen, false};
		int			to = 1 - ch->bodycur;
		int			len = ip_delta_apply(&r, ch->body, ch->bodylen, ch->bodybuf[to], BLCKSZ);

		if (len < IP_ROW_MIN_BODY)
			return fail(c, "delta of undo record (%u,%u) does not fit the row",
						ch->ptr.block, ch->ptr.off);
		ch->bodycur = to;
		ch->body = ch->bodybuf[to];
		ch->bodylen = len;
	}
	if (rec->flags & IP_REC_HDR)
		ch->hdr = rec->hdr;
	if (rec->flags & IP_REC_FORWARD)
		ch->forward = rec->forward;
	ch->xid = rec->prev_xid;
	ch->ptr = rec->prev_ptr;
	ch->state = (rec->flags & IP_REC_PREV_INSERTED) ? IP_ROW_INSERTED : 0;
	if (in_future(c, ch->xid))
		return fail(c, "older version has xid " UINT64_FORMAT ", which is in the future", ch->xid);
	if (has_aborted(ch->xid))
		return NULL;
	problem = body_problem(c, ch->hdr, ch->body, ch->bodylen);
	return problem == NULL ? NULL : fail(c, "older version: %s", problem);
}

/* Check all versions that somebody may want to see, or put back. */
static const char *
chain_problem(Check *c, Chain *ch, const IpRow *row)
{
	const char *problem = chain_begin(c, ch, row);
	IpPtr		mark = {InvalidBlockNumber, 0};
	uint64		n = 0;

	if (problem == NULL && (ch->hdr & IP_HDR_SPECULATIVE) && !IpXidIsFinal(ch->xid) &&
		did_commit(ch->xid))
		return "speculative insertion was never confirmed";
	while (problem == NULL && !(ch->state & IP_ROW_INSERTED) && is_needed(c, ch->xid))
	{
		CHECK_FOR_INTERRUPTS();
		if (IpPtrEquals(ch->ptr, mark))
			return "the row's undo records form a circle";
		if ((n & (n - 1)) == 0)
			mark = ch->ptr;
		n++;
		problem = chain_older(c, ch);
	}
	return problem;
}

/* Where an update has moved the row there must be a row, or have been one. */
static const char *
forward_problem(Check *c, const ItemPointerData *tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	OffsetNumber off = ItemPointerGetOffsetNumberNoCheck(tid);
	bool		ok = false;
	Buffer		buffer;

	if (block >= c->nblocks)
		(void) check_new_pages(c);
	if (block < c->nblocks && page_kind(c, block) == PAGE_BAD)
		return NULL;
	if (block < c->nblocks)
	{
		buffer = ReadBuffer(c->rel, block);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		ok = page_is(c, BufferGetPage(buffer), IP_PAGE_DATA) &&
			off >= FirstOffsetNumber && off <= PageGetMaxOffsetNumber(BufferGetPage(buffer));
		UnlockReleaseBuffer(buffer);
	}
	return ok ? NULL : fail(c, "row has moved to (%u,%u), where no row is", block, off);
}

/* Is the row's item the same on both copies, and does it mean the same? */
static bool
row_is_unchanged(Check *c, OffsetNumber off)
{
	ItemId		lp = PageGetItemId(c->rows.data, off);
	ItemId		lp2 = PageGetItemId(c->again.data, off);

	return page_is(c, c->again.data, IP_PAGE_DATA) &&
		off <= PageGetMaxOffsetNumber(c->again.data) && ItemIdIsNormal(lp2) &&
		ItemIdGetLength(lp) == ItemIdGetLength(lp2) &&
		ItemIdGetOffset(lp2) + ItemIdGetLength(lp2) <= BLCKSZ &&
		memcmp(PageGetItem(c->rows.data, lp), PageGetItem(c->again.data, lp2),
			   ItemIdGetLength(lp)) == 0 &&
		memcmp(IpPageGetSpecial(c->rows.data), IpPageGetSpecial(c->again.data),
			   sizeof(IpSpecial)) == 0;
}

/* May the row's record be missing, or be another one? */
static bool
may_lack_undo(Check *c, const IpRow *row)
{
	if (!(row->state & IP_ROW_VERSION))
		return true;
	if (row->state & (IP_ROW_OVERLAID | IP_ROW_LOCKED) || (row->hdr & IP_HDR_SPECULATIVE))
		return false;
	return (row->state & IP_ROW_INSERTED) || !is_needed(c, row->xid);
}

/*
 * Check the undo of the row at off of c->rows.  False if the page has changed
 * meanwhile: it has been copied again, and the row is to be checked again.
 */
static bool
check_row_undo(Check *c, Chain *ch, BlockNumber block, OffsetNumber off)
{
	char		text[sizeof(c->problem)];
	const char *problem;
	IpRow		row;

	if (off > PageGetMaxOffsetNumber(c->rows.data) ||
		!ItemIdIsNormal(PageGetItemId(c->rows.data, off)) ||
		row_problem(c, c->rows.data, off, &row) != NULL || may_lack_undo(c, &row))
		return true;
	ItemPointerSet(&ch->tid, block, off);
	problem = chain_problem(c, ch, &row);
	if (problem == NULL)
	{
		if (ItemPointerIsValid(&ch->forward))
			report(c, block, off, forward_problem(c, &ch->forward));
		return true;
	}
	strlcpy(text, problem, sizeof(text));
	if (copy_page(c, block, c->again.data) != NULL)
		return true;
	if (!row_is_unchanged(c, off))
	{
		if (!page_is(c, c->again.data, IP_PAGE_DATA))
			return true;
		memcpy(c->rows.data, c->again.data, BLCKSZ);
		return false;
	}
	refresh_horizon(c);
	if (IpXidIsFinal(ch->needed_by) || is_needed(c, ch->needed_by))
		report(c, block, off, text);
	return true;
}

static void
check_undo_of_rows(Check *c, Chain *ch, BlockNumber block)
{
	OffsetNumber max;

	if (copy_page(c, block, c->rows.data) != NULL || !page_is(c, c->rows.data, IP_PAGE_DATA))
		return;
	max = PageGetMaxOffsetNumber(c->rows.data);
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		int			tries = 0;

		while (!check_row_undo(c, ch, block, off) && ++tries < MAX_TRIES)
			CHECK_FOR_INTERRUPTS();
	}
}

/* ---- undo records ---------------------------------------------------------------------- */

/* What the kind of a record allows */
static const char *
record_flags_problem(const IpUndoRec *rec)
{
	uint8		flags = rec->flags;

	if ((flags & IP_REC_PREV_INSERTED) && !(flags & IP_REC_PREV))
		return "undo record says who inserted the row, but not when";
	if ((flags & IP_REC_PREV) && ((flags & IP_REC_PREV_INSERTED) != 0) != (rec->prev_ptr.off == 0))
		return "undo record's pointer to the version before is of the wrong kind";
	if (rec->kind != IP_UNDO_LOCK && (flags & IP_REC_MULTI))
		return "undo record of a change has a MultiXactId";
	if (rec->kind == IP_UNDO_LOCK && (flags & IP_REC_KEYS))
		return "lock record has a change's flags";
	if (rec->kind != IP_UNDO_DELETE && (flags & (IP_REC_FORWARD | IP_REC_PARTITION)))
		return "undo record says where the row moved, but not that it did";
	if ((flags & IP_REC_FORWARD) && (flags & IP_REC_PARTITION))
		return "undo record says that the row moved to two places";
	if (rec->kind != IP_UNDO_UPDATE && ((flags & IP_REC_HDR) || rec->deltalen > 0))
		return "undo record has an older body, but does not need it";
	return NULL;
}

static const char *
record_problem(Check *c, const IpUndoRec *rec, IpXid newest)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(&rec->row);
	OffsetNumber off = ItemPointerGetOffsetNumberNoCheck(&rec->row);

	if (IpXidIsFinal(rec->xid) || rec->xid > newest)
		return fail(c, "undo record has bad transaction id " UINT64_FORMAT, rec->xid);
	if ((rec->flags & IP_REC_PREV) && (IpXidIsFinal(rec->prev_xid) || rec->prev_xid > newest))
		return fail(c, "undo record has bad previous transaction id " UINT64_FORMAT, rec->prev_xid);
	if (rec->kind == IP_UNDO_LOCK && !(rec->flags & IP_REC_MULTI) &&
		(!TransactionIdIsNormal(rec->locker) || in_future(c, ip_xid_near(newest, rec->locker))))
		return fail(c, "lock record has bad locker %u", rec->locker);
	if (rec->kind == IP_UNDO_LOCK && (rec->flags & IP_REC_MULTI) &&
		(!MultiXactIdIsValid(rec->locker) ||
		 !MultiXactIdPrecedes(rec->locker, ReadNextMultiXactId())))
		return fail(c, "lock record has bad MultiXactId %u", rec->locker);
	if (block >= c->nblocks)
		(void) check_new_pages(c);
	else if (page_kind(c, block) == PAGE_NEW)
		check_page(c, block);	/* in use since then? */
	if (block >= c->nblocks || off < FirstOffsetNumber || off > IP_MAX_ROWS_PER_PAGE ||
		(page_kind(c, block) != IP_PAGE_DATA && page_kind(c, block) != PAGE_BAD))
		return fail(c, "undo record is about (%u,%u), where no row can be", block, off);
	return record_flags_problem(rec);
}

static void
check_records(Check *c, BlockNumber block)
{
	Page		page = c->rows.data;
	uint8		buf[BLCKSZ];
	OffsetNumber max;
	IpUndoRec	rec;

	if (copy_page(c, block, page) != NULL || !page_is(c, page, IP_PAGE_UNDO))
		return;
	max = PageGetMaxOffsetNumber(page);
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		const char *problem;

		if (!ItemIdIsNormal(PageGetItemId(page, off)))
			continue;
		problem = record_on_page(block, page, off, buf, &rec);
		if (problem == NULL)
			problem = record_problem(c, &rec, IpPageGetSpecial(page)->u.undo.newest_xid);
		report(c, block, off, problem);
	}
}

/* ---- rings ------------------------------------------------------------------------------- */

/*
 * Links of a ring never lead anywhere but to other pages of the ring, whatever
 * happens meanwhile: pages are put between others, and the current one moves
 * on.  So a walk needs no lock; only how many pages it meets, and which of them
 * is the current one, depends on the time.
 */
typedef struct Ring
{
	uint16		slot;
	IpMetaSlot	before;			/* the metapage's slot before the walk */
	IpMetaSlot	after;
	XLogRecPtr	lsn;			/* and its LSN */
	bool		unchanged;
	BlockNumber where;			/* page of the problem */
	BlockNumber other_current;	/* page that is marked as current, but is not */
	bool		first_is_current;
} Ring;

static bool
read_ring_slot(Check *c, uint16 slot, IpMetaSlot *ms, XLogRecPtr *lsn)
{
	if (copy_page(c, IP_META_BLOCK, c->again.data) != NULL ||
		!page_is(c, c->again.data, IP_PAGE_META))
		return false;
	*ms = IpPageGetMeta(c->again.data)->slots[slot];
	*lsn = PageGetLSN(c->again.data);
	return true;
}

/* Visit the page at r->where; *next is the next one. */
static const char *
ring_page_problem(Check *c, Ring *r, bool first, BlockNumber *next)
{
	Page		page = c->again.data;
	IpSpecial	special;
	bool		current;

	if (r->where >= c->nblocks)
		(void) check_new_pages(c);
	if (r->where >= c->nblocks || page_kind(c, r->where) == PAGE_BAD ||
		copy_page(c, r->where, page) != NULL || !page_is(c, page, IP_PAGE_UNDO))
		return fail(c, "undo ring %u leads to a page that is not an undo page", r->slot);
	special = *IpPageGetSpecial(page);
	if (special.u.undo.slot != r->slot)
		return fail(c, "undo ring %u leads to a page of ring %u", r->slot, special.u.undo.slot);
	current = (special.u.undo.flags & IP_UNDO_CURRENT) != 0;
	if (first)
		r->first_is_current = current;
	else if (current)
		r->other_current = r->where;
	c->pages[r->where] |= PAGE_IN_RING;
	*next = special.u.undo.next;
	return NULL;
}

/* Look at the metapage again. */
static bool
ring_is_unchanged(Check *c, Ring *r)
{
	XLogRecPtr	lsn;

	r->unchanged = read_ring_slot(c, r->slot, &r->after, &lsn) && lsn == r->lsn &&
		memcmp(&r->after, &r->before, sizeof(IpMetaSlot)) == 0;
	return r->unchanged;
}

static const char *
ring_problem(Check *c, Ring *r)
{
	BlockNumber first = r->before.current;
	BlockNumber next = first;
	uint32		n = 0;

	r->where = IP_META_BLOCK;
	if ((first == InvalidBlockNumber) != (r->before.npages == 0))
		return fail(c, "undo slot %u has %u pages, and block %u is its current one",
					r->slot, r->before.npages, first);
	if (first == InvalidBlockNumber)
		return NULL;
	do
	{
		const char *problem;

		CHECK_FOR_INTERRUPTS();
		r->where = next;
		problem = ring_page_problem(c, r, n == 0, &next);
		if (problem)
			return problem;
		if (++n > r->before.npages && (ring_is_unchanged(c, r) || n > r->after.npages))
			return fail(c, "undo ring %u does not close after %u pages", r->slot, n);
	} while (next != first);
	if (n < r->before.npages)
		return fail(c, "undo ring %u closes after %u pages instead of %u",
					r->slot, n, r->before.npages);
	if (!r->first_is_current && ring_is_unchanged(c, r))
		return fail(c, "current page of undo ring %u is not marked so", r->slot);
	r->where = r->other_current;
	if (r->other_current != InvalidBlockNumber && ring_is_unchanged(c, r))
		return fail(c, "page of undo ring %u is marked as current, but block %u is", r->slot, first);
	return NULL;
}

/* Undo pages that were there before the rings were walked must be in one. */
static void
check_lost_pages(Check *c, BlockNumber nblocks, const bool *ring_ok)
{
	for (BlockNumber block = 0; block < nblocks; block++)
	{
		uint16		slot;

		if (page_kind(c, block) != IP_PAGE_UNDO || (c->pages[block] & PAGE_IN_RING) ||
			copy_page(c, block, c->again.data) != NULL ||
			!page_is(c, c->again.data, IP_PAGE_UNDO))
			continue;
		slot = IpPageGetSpecial(c->again.data)->u.undo.slot;
		if (slot < IP_UNDO_SLOTS && ring_ok[slot])
			report(c, block, 0, fail(c, "undo page is not in ring %u", slot));
	}
}

static void
check_rings(Check *c)
{
	BlockNumber nblocks = c->nblocks;
	bool		ring_ok[IP_UNDO_SLOTS] = {false};
	bool		used = false;

	for (BlockNumber block = 0; block < nblocks; block++)
		used |= page_kind(c, block) != PAGE_NEW;
	if (used && page_kind(c, IP_META_BLOCK) == PAGE_NEW)
		report(c, IP_META_BLOCK, 0, "table has no metapage");
	for (uint16 slot = 0; nblocks > 0 && slot < IP_UNDO_SLOTS; slot++)
	{
		Ring		r = {.slot = slot, .other_current = InvalidBlockNumber};
		const char *problem;

		if (!read_ring_slot(c, slot, &r.before, &r.lsn))
			return;
		problem = ring_problem(c, &r);
		report(c, r.where, 0, problem);
		ring_ok[slot] = problem == NULL;
	}
	check_lost_pages(c, nblocks, ring_ok);
}

/* ---- the function ------------------------------------------------------------------------ */

static Relation
open_inplace(Oid relid)
{
	Relation	rel = relation_open(relid, AccessShareLock);

	if (rel->rd_tableam == NULL || table_slot_callbacks(rel) != &IpSlotOps)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not an inplace table", RelationGetRelationName(rel))));
	if (RELATION_IS_OTHER_TEMP(rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary tables of other sessions")));
	if (RecoveryInProgress() && !RelationIsPermanent(rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary or unlogged relations during recovery")));
	return rel;
}

Datum
inplace_check(PG_FUNCTION_ARGS)
{
	Check	   *c = palloc0(sizeof(Check));
	Chain	   *ch = palloc(sizeof(Chain));
	BlockNumber nblocks;

	c->rel = open_inplace(PG_GETARG_OID(0));
	InitMaterializedSRF(fcinfo, 0);
	c->rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	c->strategy = GetAccessStrategy(BAS_BULKREAD);
	refresh_horizon(c);

	(void) check_new_pages(c);
	nblocks = c->nblocks;
	for (BlockNumber block = 0; block < nblocks; block++)
	{
		CHECK_FOR_INTERRUPTS();
		if (c->pages[block] & PAGE_VERSIONS)
			check_undo_of_rows(c, ch, block);
		else if (page_kind(c, block) == IP_PAGE_UNDO)
			check_records(c, block);
	}
	check_rings(c);

	if (BufferIsValid(c->vm))
		ReleaseBuffer(c->vm);
	FreeAccessStrategy(c->strategy);
	relation_close(c->rel, AccessShareLock);
	return (Datum) 0;
}
