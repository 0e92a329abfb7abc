/*-------------------------------------------------------------------------
 * ip_page.c
 *	  Pages: their kinds, items, and free space.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "storage/buf_internals.h"

#include "ip_page.h"
#include "ip_xid.h"

#ifdef USE_ASSERT_CHECKING

bool
ip_page_in_buffers(const void *address)
{
	return (const char *) address >= BufferBlocks &&
		(const char *) address < BufferBlocks + (Size) NBuffers * BLCKSZ;
}

bool
ip_page_is_locked(Page page, bool exclusive)
{
	return !ip_page_in_buffers(page) ||
		compat_buffer_is_locked(((char *) page - BufferBlocks) / BLCKSZ + 1,
								exclusive);
}
#endif

bool
ip_page_is_ours(Page page)
{
	IpSpecial  *special;

	/*
	 * the server does not check either that the array of line pointers begins
	 * before it ends
	 */
	if (PageIsNew(page) ||
		((PageHeader) page)->pd_lower < SizeOfPageHeaderData ||
		(((PageHeader) page)->pd_special != IP_SPECIAL_START &&
		 ((PageHeader) page)->pd_special != IP_DECOY_START))
		return false;
	special = IpPageGetSpecial(page);
	return special->magic == IP_PAGE_MAGIC &&
		special->kind >= IP_PAGE_META && special->kind <= IP_PAGE_LOCK;
}

/*
 * True for a page of heap, which has no special space; false for a damaged
 * page of ours.
 */
static bool
may_be_heap(Page page)
{
	PageHeader	ph = (PageHeader) page;

	return ph->pd_special == BLCKSZ && ph->pd_upper <= BLCKSZ &&
		ph->pd_lower <= ph->pd_upper && ph->pd_lower >= SizeOfPageHeaderData &&
		PageGetPageSize(page) == BLCKSZ;
}

uint32
ip_page_other_version(Page page)
{
	const IpSpecial *special = IpPageGetSpecial(page);

	/* heap's pages have no special space */
	if (PageIsNew(page) || ((PageHeader) page)->pd_special == BLCKSZ ||
		special->magic >> 8 != IP_MAGIC_LETTER ||
		special->magic == IP_PAGE_MAGIC)
		return 0;
	return special->magic & 0xFF;
}

void
ip_page_refuse_version(Relation rel, BlockNumber block, uint32 version)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("block %u of relation \"%s\" has format version %u, but this library knows version %u only",
					block, RelationGetRelationName(rel), version,
					IP_FORMAT_VERSION),
			 errhint("Use the version of the inplace library that wrote the table.")));
}

/* Raise the error about a page that is not ours. */
pg_noreturn static void
refuse_page(Relation rel, BlockNumber block, Page page)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("block %u of relation \"%s\" is not a page of an inplace table",
					block, RelationGetRelationName(rel)),
			 may_be_heap(page) ?
			 errhint("It may be a page of a heap table. If a tool has swapped the table's file with a heap table's, or an extension "
					 "that takes every table for a heap has filled it, "
					 "set the table's pg_class.relam to that of heap, then use ALTER TABLE ... SET ACCESS METHOD.") :
			 0));
}

void
ip_page_refuse_heap(Relation rel, BlockNumber block, Page page)
{
	if (!PageIsNew(page) && !ip_page_is_ours(page) && may_be_heap(page))
		refuse_page(rel, block, page);
}

IpPageKind
ip_page_kind(Relation rel, BlockNumber block, Page page)
{
	Assert(ip_page_is_locked(page, false));
	if (PageIsNew(page))
		return 0;
	if (!ip_page_is_ours(page) && ip_page_other_version(page) != 0)
		ip_page_refuse_version(rel, block, ip_page_other_version(page));
	if (!ip_page_is_ours(page))
		refuse_page(rel, block, page);
	return IpPageGetSpecial(page)->kind;
}

bool
ip_page_meta_is_idle(Page page)
{
	const IpMeta *meta = IpPageGetMeta(page);
	bool		idle = meta->nruns == 0 &&
		IpPageGetSpecial(page)->u.lock.next == 0;

	for (int i = 0; i < IP_UNDO_SLOTS; i++)
		idle &= meta->slots[i].entry == InvalidBlockNumber;
	return idle;
}

bool
ip_page_items_overlap(Page page)
{
	static uint16 len_at[BLCKSZ];
	PageHeader	ph = (PageHeader) page;
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	int			n = 0;

	Assert(ip_page_is_locked(page, false));
	memset(len_at, 0, sizeof(len_at));
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		ItemId		lp = PageGetItemId(page, off);
		uint32		start = ip_item_start(lp);
		uint32		len = ItemIdGetLength(lp);

		if (!ip_item_is_ours(lp) || len == 0 || !ip_item_is_inside(page, lp))
			continue;
		if (len_at[start] != 0)
			return true;
		len_at[start] = len;
		n++;
	}

	/* the walk from item to item misses an item that begins within another */
	for (uint32 pos = ph->pd_upper; pos < ph->pd_special;
		 pos += Max(len_at[pos], 1))
		n -= len_at[pos] != 0 ? 1 : 0;
	return n != 0;
}

/*
 * Returns whether the items lie one below the other in the order of their
 * numbers, as on most pages.
 */
static bool
items_are_in_order(Page page)
{
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	uint32		end = ((PageHeader) page)->pd_special;

	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		ItemId		lp = PageGetItemId(page, off);

		if (!ip_item_is_ours(lp))
			continue;
		if (ItemIdGetLength(lp) == 0 ||
			ip_item_start(lp) + ItemIdGetLength(lp) != end)
			return false;
		end = ip_item_start(lp);
	}
	return end == ((PageHeader) page)->pd_upper;
}

bool
ip_page_may_move_items(Page page)
{
	OffsetNumber max = PageGetMaxOffsetNumber(page);

	if (items_are_in_order(page))
		return true;
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		ItemId		lp = PageGetItemId(page, off);

		if (ip_item_is_ours(lp) &&
			(ItemIdGetLength(lp) == 0 || !ip_item_is_inside(page, lp)))
			return false;
	}
	return !ip_page_items_overlap(page);
}

OffsetNumber
ip_page_free_offset(Page page, OffsetNumber after)
{
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	bool		all = after == InvalidOffsetNumber;

	Assert(ip_page_is_locked(page, true));
	Assert(after <= IP_MAX_ROWS_PER_PAGE);	/* I1 */
	/* no row may use the decoy's place, even if the decoy is damaged */
	if (all && ((PageHeader) page)->pd_special == IP_DECOY_START)
		after = FirstOffsetNumber;
	if (PageHasFreeLinePointers(page))
	{
		for (OffsetNumber off = after + 1; off <= max; off++)
		{
			if (!ItemIdIsUsed(PageGetItemId(page, off)))
				return off;
		}
		/* this is a hint, so that the search need not be repeated */
		if (all)
			PageClearHasFreeLinePointers(page);
	}
	return Max(after, max) + 1;
}

/* ---- default inserter and default changer -------------------------------- */

static IpXid
with_epoch(const IpSpecial *special, TransactionId xid)
{
	return TransactionIdIsValid(xid) ?
		ip_xid_after(ip_data_xid_base(special), xid) : IP_XID_NONE;
}

IpXid
ip_page_default_inserter(Page page)
{
	const IpSpecial *special = IpPageGetSpecial(page);

	return with_epoch(special, special->u.data.default_xid);
}

IpXid
ip_page_default_changer(Page page)
{
	const IpSpecial *special = IpPageGetSpecial(page);

	return with_epoch(special, special->u.data.change_xid);
}

bool
ip_page_changer_is_over(Page page)
{
	IpXid		xid = ip_page_default_changer(page);

	return !IpXidIsFrozen(xid) &&
		ip_xid_status_locked(xid) == IP_STATUS_ABORTED;
}
