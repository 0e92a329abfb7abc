/*-------------------------------------------------------------------------
 * ip_page_check.c
 *	  Checks of a page that need no other page.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "ip_lockset.h"
#include "ip_moves.h"
#include "ip_page_check.h"
#include "ip_runs.h"

/* All valid flags */
#define HDR_MASK \
	(IP_HDR_NATTS_MASK | IP_HDR_HASNULL | IP_HDR_HASEXTERNAL | \
	 IP_HDR_SPECULATIVE)
#define ROW_STATE_MASK \
	(IP_ROW_VERSION | IP_ROW_DEFAULT | IP_ROW_INSERTED | IP_ROW_DELETED | \
	 IP_ROW_OVERLAID | IP_ROW_MOVED | IP_ROW_CHANGED)

static const char *fail(IpPageCheck *c,
						const char *fmt,...) pg_attribute_printf(2, 3);

static const char *
fail(IpPageCheck *c, const char *fmt,...)
{
	va_list		args;

	va_start(args, fmt);
	vsnprintf(c->problem, sizeof(c->problem), fmt, args);
	va_end(args);
	return c->problem;
}

static void
report(IpPageCheck *c, OffsetNumber off, const char *problem)
{
	if (problem != NULL)
		c->report(c->arg, off, problem);
}

/* ---- header and line pointers -------------------------------------------- */

/* Returns what is wrong with the header of a page that is not new, or NULL */
const char *
ip_page_check_header(IpPageCheck *c, Page page)
{
	PageHeader	ph = (PageHeader) page;
	IpSpecial  *special = IpPageGetSpecial(page);
	uint16		flags = special->kind == IP_PAGE_DATA ?
		PD_ALL_VISIBLE | PD_HAS_FREE_LINES : 0;

	if (PageGetPageSize(page) != BLCKSZ ||
		PageGetPageLayoutVersion(page) != PG_PAGE_LAYOUT_VERSION)
		return fail(c, "page size or layout version is wrong: 0x%04X",
					ph->pd_pagesize_version);
	if (ph->pd_special != IP_SPECIAL_START && ph->pd_special != IP_DECOY_START)
		return fail(c, "special space starts at %u", ph->pd_special);
	if (ph->pd_lower < SizeOfPageHeaderData || ph->pd_lower > ph->pd_upper ||
		ph->pd_upper > ph->pd_special)
		return fail(c, "page has lower %u, upper %u, special %u",
					ph->pd_lower, ph->pd_upper, ph->pd_special);
	if (ip_page_other_version(page) != 0)
		return fail(c, "page has format version %u",
					ip_page_other_version(page));
	if (special->magic != IP_PAGE_MAGIC)
		return fail(c, "page has magic number 0x%04X", special->magic);
	if (special->kind < IP_PAGE_META || special->kind > IP_PAGE_LOCK)
		return fail(c, "page has unknown kind %u", special->kind);
	if ((ph->pd_flags & ~flags) != 0)
		return fail(c, "page has unknown flags 0x%04X", ph->pd_flags);
	if ((special->kind == IP_PAGE_META || special->kind == IP_PAGE_FREE) &&
		special->w.number != 0)
		return fail(c, "page has an undo page's xid base, or a lock page's number, 0x%08X",
					special->w.number);
	if (special->keys != 0 &&
		(special->kind != IP_PAGE_DATA || !(special->keys & IP_KEYS_STALE) ||
		 (special->keys & ~(IP_KEYS_STALE | IP_KEYS_QUIET)) != 0))
		return fail(c, "page has unknown key flags 0x%02X", special->keys);
	if (special->kind != IP_PAGE_META &&
		(ph->pd_lower - SizeOfPageHeaderData) % sizeof(ItemIdData) != 0)
		return fail(c, "line pointer array ends in the middle of one, at %u",
					ph->pd_lower);
	return NULL;
}

static const char *
line_pointer_problem(IpPageCheck *c, Page page, ItemId lp, bool is_undo)
{
	uint32		start = ip_item_start(lp);
	uint32		len = ItemIdGetLength(lp);

	if (lp == PageGetItemId(page, FirstOffsetNumber) &&
		((PageHeader) page)->pd_special == IP_DECOY_START)
		return ip_item_is_decoy(lp) ? NULL : "item is not the page's decoy";
	if (ItemIdIsNormal(lp))
		return "item is a heap tuple";
	if (!ip_item_is_ours(lp))
	{
		if (is_undo)
			return "line pointer of an undo record is dead or unused";
		return lp->lp_off == 0 && (len == 0 || ItemIdIsDead(lp)) ? NULL : "dead or unused line pointer has storage";
	}
	if (len == 0)
		return "item is empty";
	if (!ip_item_is_inside(page, lp))
		return fail(c, "item of %u bytes at %u reaches outside of the page's item space",
					len, start);
	return NULL;
}

/*
 * Check that line pointers are sane, and that items fill the item space
 * without gap or overlap.
 */
static bool
check_items(IpPageCheck *c, Page page, bool is_undo)
{
	PageHeader	ph = (PageHeader) page;
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	uint32		total = 0;
	int			nbad = 0;

	if (!is_undo && max > IP_MAX_ROWS_PER_PAGE)
		report(c, 0, fail(c, "page has %u line pointers", max));
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		ItemId		lp = PageGetItemId(page, off);
		const char *problem = line_pointer_problem(c, page, lp, is_undo);

		report(c, off, problem);
		nbad += problem != NULL;
		total += ip_item_is_ours(lp) ? ItemIdGetLength(lp) : 0;
	}
	if (nbad > 0)
		return false;
	if (total != ph->pd_special - ph->pd_upper || ip_page_items_overlap(page))
		report(c, 0, fail(c, "items of %u bytes do not fill the item space of %u bytes: gap or overlap",
						  total, ph->pd_special - ph->pd_upper));
	return true;
}

/* ---- rows ---------------------------------------------------------------- */

/*
 * Check combinations of state bits.  "state" is that on the page; row is
 * decoded.
 */
static const char *
state_problem(IpPageCheck *c, uint8 state, const IpRow *row)
{
	bool		has_undo = !(row->state & IP_ROW_INSERTED);

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
	if (!(state & IP_ROW_VERSION))
		return NULL;			/* ip_row_decode has checked rows of the
								 * changer */
	if (IpXidIsFrozen(row->xid))
		return "row that is visible to all has a version block";
	if (has_undo && (row->ptr.block == IP_META_BLOCK || row->ptr.off == 0))
		return fail(c, "undo pointer (%u,%u) leads to no undo record",
					row->ptr.block, row->ptr.off);
	if (!has_undo && row->ptr.off != 0)
		return "inserted row has an undo pointer";
	if (!has_undo && (state & IP_ROW_OVERLAID))
		return "overlaid row has no undo record with its first bytes";
	return NULL;
}

const char *
ip_page_check_row(IpPageCheck *c, Page page, OffsetNumber off, IpRow *row)
{
	const char *problem = ip_row_decode(page, off, row);

	return problem ? problem :
		state_problem(c, ip_item_state(page, PageGetItemId(page, off)), row);
}

/* Check that a page that is marked all-visible has only frozen rows. */
static const char *
all_visible_problem(IpPageCheck *c, Page page)
{
	OffsetNumber max = PageGetMaxOffsetNumber(page);

	if (TransactionIdIsValid(IpPageGetSpecial(page)->u.data.default_xid))
		return "page is marked all-visible, but has a default inserter";
	if (TransactionIdIsValid(IpPageGetSpecial(page)->u.data.change_xid))
		return "page is marked all-visible, but has a default changer";
	if (IpPageGetSpecial(page)->keys != 0)
		return "page is marked all-visible, but index entries may be stale";
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		ItemId		lp = PageGetItemId(page, off);

		if (ItemIdIsDead(lp))
			return fail(c, "page is marked all-visible, but item %u is dead",
						off);
		if (ip_item_is_ours(lp) && ip_item_state(page, lp) != 0)
			return fail(c, "page is marked all-visible, but row %u is not",
						off);
	}
	return NULL;
}

/* Check I8, for a record at home */
static const char *
saved_problem(Page page, BlockNumber block, OffsetNumber off, const IpRow *row)
{
	uint8		buf[BLCKSZ];
	IpUndoRec	rec;

	if (!ip_row_bytes_at_home(row->state, row->ptr, block))
		return NULL;
	if (row->ptr.off > PageGetMaxOffsetNumber(page) ||
		!ip_item_is_undo(page, PageGetItemId(page, row->ptr.off)) ||
		ip_page_check_record(page, block, row->ptr.off, buf, &rec) != NULL ||
		rec.saved == NULL ||
		rec.xid != row->xid ||
		ItemPointerGetOffsetNumberNoCheck(&rec.row) != off)
		return "overlaid row has no undo record with its first bytes";
	return NULL;
}

static const char *
data_item_problem(IpPageCheck *c, Page page, BlockNumber block,
				  OffsetNumber off)
{
	uint8		buf[BLCKSZ];
	const char *problem;
	IpUndoRec	rec;
	IpRow		row;

	if (ip_moves_is_list(page, off))
		return ip_moves_problem(page, off);
	if (ip_item_is_undo(page, PageGetItemId(page, off)))
		return ip_page_check_record(page, block, off, buf, &rec);
	problem = ip_page_check_row(c, page, off, &row);
	return problem ? problem : saved_problem(page, block, off, &row);
}

static void
check_data_page(IpPageCheck *c, Page page, BlockNumber block)
{
	IpSpecial  *special = IpPageGetSpecial(page);
	TransactionId xid = special->u.data.default_xid;
	TransactionId changer = special->u.data.change_xid;
	OffsetNumber max = PageGetMaxOffsetNumber(page);

	if (TransactionIdIsValid(changer) ? !TransactionIdIsNormal(changer) :
		special->w.data.change_cid != 0)
		report(c, 0,
			   fail(c, "default changer has bad transaction id %u, command %u",
					changer, special->w.data.change_cid));
	if (TransactionIdIsValid(xid) && !TransactionIdIsNormal(xid))
		report(c, 0, fail(c, "default inserter has bad transaction id %u",
						  xid));
	if (!TransactionIdIsValid(xid) && special->u.data.default_cid != 0)
		report(c, 0, "default inserter has a command id, but no transaction id");
	if (PageIsAllVisible(page))
		report(c, 0, all_visible_problem(c, page));
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		ItemId		lp = PageGetItemId(page, off);

		if (ip_item_is_ours(lp))
			report(c, off, data_item_problem(c, page, block, off));
	}
}

/* ---- undo pages ---------------------------------------------------------- */

/* Check that the kind of a record allows its flags */
static const char *
record_flags_problem(const IpUndoRec *rec)
{
	uint8		flags = rec->flags;

	if ((flags & IP_REC_PREV_INSERTED) && !(flags & IP_REC_PREV))
		return "undo record marks the previous version as inserted, but has no transaction for it";
	if ((flags & IP_REC_PREV) &&
		((flags & IP_REC_PREV_INSERTED) != 0) != (rec->prev_ptr.off == 0))
		return "undo record's pointer to the version before is of the wrong kind";
	if (rec->kind != IP_UNDO_DELETE &&
		(flags & (IP_REC_FORWARD | IP_REC_PARTITION)))
		return "undo record says where the row moved, but not that it did";
	if ((flags & IP_REC_FORWARD) && (flags & IP_REC_PARTITION))
		return "undo record says that the row moved to two places";
	if (rec->kind != IP_UNDO_UPDATE &&
		((flags & IP_REC_HDR) || rec->deltalen > 0))
		return "undo record has an older body, but does not need it";
	return NULL;
}

const char *
ip_page_check_record(Page page, BlockNumber block, OffsetNumber off, uint8 *buf,
					 IpUndoRec *rec)
{
	const char *problem;
	ItemId		lp;
	uint32		len;

	if (off < FirstOffsetNumber || off > PageGetMaxOffsetNumber(page))
		return "there is no such record";
	lp = PageGetItemId(page, off);
	len = ItemIdGetLength(lp);
	if (!ip_item_is_ours(lp) || !ip_item_is_inside(page, lp))
		return "its item is damaged";
	memcpy(buf, (char *) page + ip_item_start(lp), len);
	problem = ip_undo_rec_decode(page, block, buf, len, rec);
	return problem ? problem : record_flags_problem(rec);
}

static void
check_undo_page(IpPageCheck *c, Page page, BlockNumber block)
{
	IpSpecial  *special = IpPageGetSpecial(page);
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	uint8		buf[BLCKSZ];
	IpUndoRec	rec;

	if (special->u.undo.slot >= IP_UNDO_SLOTS)
		report(c, 0,
			   fail(c, "undo page belongs to slot %u", special->u.undo.slot));
	if (special->u.undo.flags & ~IP_UNDO_CURRENT)
		report(c, 0, fail(c, "undo page has unknown flags 0x%04X",
						  special->u.undo.flags));
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
		report(c, off, ip_page_check_record(page, block, off, buf, &rec));
}

/* ---- the metapage -------------------------------------------------------- */

static void
check_meta_page(IpPageCheck *c, Page page, BlockNumber block)
{
	PageHeader	ph = (PageHeader) page;
	IpMeta	   *meta = IpPageGetMeta(page);

	if (block != IP_META_BLOCK)
		report(c, 0, fail(c, "metapage is not in block %u", IP_META_BLOCK));
	if (ph->pd_lower !=
		(char *) &meta->runs[ip_runs_count(page)] - (char *) page ||
		ph->pd_special != IP_SPECIAL_START)
		report(c, 0, fail(c, "metapage has lower %u, upper %u", ph->pd_lower,
						  ph->pd_upper));
	report(c, 0, ip_runs_problem(page));
	report(c, 0, ip_lockset_problem(page));
}

/* ---- any page ------------------------------------------------------------ */

bool
ip_page_check(IpPageCheck *c, Page page, BlockNumber block)
{
	IpPageKind	kind = IpPageGetSpecial(page)->kind;

	if ((((PageHeader) page)->pd_special == IP_DECOY_START) !=
		(block == IP_DECOY_BLOCK))
	{
		report(c, 0, block == IP_DECOY_BLOCK ? "page has no decoy" : "page has a decoy");
		return false;
	}
	switch (kind)
	{
		case IP_PAGE_META:
			check_meta_page(c, page, block);
			break;
		case IP_PAGE_DATA:
			if (!check_items(c, page, false))
				return false;
			check_data_page(c, page, block);
			break;
		case IP_PAGE_UNDO:
			if (!check_items(c, page, true))
				return false;
			check_undo_page(c, page, block);
			break;
		case IP_PAGE_LOCK:
			if (((PageHeader) page)->pd_lower != SizeOfPageHeaderData)
				report(c, 0, "lock page has line pointers");
			report(c, 0, ip_lockset_problem(page));
			break;
		case IP_PAGE_FREE:
			if (PageGetMaxOffsetNumber(page) >= IpFirstOffset(block))
				report(c, 0, "free page has items");
			(void) check_items(c, page, false);
			break;
	}
	if (block == IP_META_BLOCK && kind != IP_PAGE_META)
		report(c, 0, "page is in the metapage's place");
	if (block == IP_DECOY_BLOCK &&
		(kind == IP_PAGE_UNDO || kind == IP_PAGE_LOCK))
		report(c, 0, "page of undo, or of locks, is in the place of rows");
	return true;
}

static void
note_first(void *arg, OffsetNumber off, const char *problem)
{
	char	   *text = arg;

	if (text[0] == '\0')
		snprintf(text, IP_PAGE_PROBLEM + 20, "item %u: %s", off, problem);
}

const char *
ip_page_problem(Page page, BlockNumber block)
{
	static char text[IP_PAGE_PROBLEM + 20];
	IpPageCheck c = {.report = note_first,.arg = text};
	const char *problem;

	if (PageIsNew(page))
		return NULL;
	text[0] = '\0';
	problem = ip_page_check_header(&c, page);
	if (problem)
		note_first(text, 0, problem);
	else
		(void) ip_page_check(&c, page, block);
	return text[0] != '\0' ? text : NULL;
}

bool
ip_page_has_sound_locks(Page page)
{
	IpPageCheck c;

	return !PageIsNew(page) && ip_page_check_header(&c, page) == NULL &&
		IpPageGetSpecial(page)->kind == IP_PAGE_META &&
		ip_lockset_problem(page) == NULL;
}
