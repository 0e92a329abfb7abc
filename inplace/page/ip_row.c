/*-------------------------------------------------------------------------
 * ip_row.c
 *	  Rows as items of data pages: reading and writing their bytes.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "ip_moves.h"
#include "ip_row.h"

/* Decode what the default changer did; row has the version before it. */
static const char *
decode_changed(Page page, OffsetNumber off, uint8 state, IpRow *row)
{
	const IpSpecial *special = IpPageGetSpecial(page);
	TransactionId xid = special->u.data.change_xid;
	CommandId	cid = special->w.data.change_cid;

	if (!TransactionIdIsValid(xid))
		return "page has no default changer";
	if (!(state & IP_ROW_DELETED))
		return "row was changed by the default changer, but not deleted";
	row->changed.inserter = row->xid;
	row->changed.inserter_cid = row->ptr.block;
	row->state = state & (IP_ROW_CHANGED | IP_ROW_DELETED | IP_ROW_MOVED);
	row->xid = ip_xid_after(ip_data_xid_base(special), xid);
	row->ptr = ip_ptr_cid(cid);
	if ((state & IP_ROW_MOVED) &&
		!ip_moves_look_up(page, off, &row->changed.forward, &row->changed.keys))
		return "row has moved, but its page does not say where to";
	return NULL;
}

const char *
ip_row_decode(Page page, OffsetNumber off, IpRow *row)
{
	ItemId		lp = PageGetItemId(page, off);
	uint32		len = ItemIdGetLength(lp);
	const uint8 *item = (const uint8 *) page + ip_item_start(lp);
	uint16		stored;
	uint8		state;

	Assert(ip_page_is_locked(page, false));
	Assert(OffsetNumberIsValid(off) && off <= PageGetMaxOffsetNumber(page));
	if (!ip_item_is_ours(lp))
		return "item is a heap tuple";
	if (!ip_item_is_inside(page, lp))
		return "item reaches outside of the page's tuple space";
	if (len < IP_ROW_MIN_ITEM)
		return "item is shorter than a row";
	memcpy(&stored, item, sizeof(stored));
	if ((stored & IP_HDR_HEAP_MASK) != IP_HDR_HEAP_BITS)
		return "row header has wrong bits";
	row->hdr = IpHdrLoad(stored);
	row->state = state = item[IP_ROW_STATE];
	row->xid = IP_XID_NONE;
	row->ptr = ip_ptr_cid(0);
	if ((row->hdr & IP_HDR_NATTS_MASK) > MaxHeapAttributeNumber)
		return "row has too many columns";
	if ((state & IP_ROW_MOVED) && !(state & IP_ROW_DELETED))
		return "row has moved, but is not deleted";
	if (state & IP_ROW_VERSION)
		return ip_row_decode_block(page, item, len, row);
	row->body = item + IP_ROW_HDRSZ;
	row->bodylen = len - IP_ROW_HDRSZ;
	if ((state & ~(IP_ROW_DEFAULT | IP_ROW_CHANGED)) != 0 &&
		(!(state & IP_ROW_CHANGED) ||
		 (state & ~(IP_ROW_DEFAULT | IP_ROW_CHANGED | IP_ROW_DELETED |
					IP_ROW_MOVED)) != 0))
		return "row state needs a version block";
	row->state = 0;
	if ((state & IP_ROW_DEFAULT) && !ip_row_decode_default(page, row))
		return "page has no default inserter";
	return (state & IP_ROW_CHANGED) ? decode_changed(page, off, state, row) :
		NULL;
}

bool
ip_row_is_at(Page page, OffsetNumber off)
{
	ItemId		lp;

	if (off < FirstOffsetNumber || off > PageGetMaxOffsetNumber(page))
		return false;
	lp = PageGetItemId(page, off);
	return ip_item_is_used(lp) && !ip_item_is_undo(page, lp);
}

bool
ip_row_is_sound(Page page, OffsetNumber off)
{
	IpRow		row;

	return !ip_row_is_at(page, off) || ip_row_decode(page, off, &row) == NULL;
}

bool
ip_row_read(Relation rel, BlockNumber block, Page page, OffsetNumber off,
			IpRow *row)
{
	const char *problem;

	if (!ip_row_is_at(page, off))
		return false;
	problem = ip_row_decode(page, off, row);
	if (unlikely(problem != NULL))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("corrupted row (%u,%u) of relation \"%s\": %s",
						block, off, RelationGetRelationName(rel), problem),
				 ip_page_check_hint(rel)));
	return true;
}

void
ip_row_list(Page page, IpItemList *list)
{
	OffsetNumber max = Min(PageGetMaxOffsetNumber(page), IP_MAX_ROWS_PER_PAGE);

	list->n = list->ndead = 0;
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		if (ItemIdIsDead(PageGetItemId(page, off)))
			list->ndead++;
		else if (ip_item_is_used(PageGetItemId(page, off)) &&
				 !ip_row_is_frozen(page, off))
			list->off[list->n++] = off;
	}
}

bool
ip_row_read_sound(Page page, OffsetNumber off, uint8 state, IpRow *row)
{
	return ip_row_may_be(page, off, state) &&
		!ip_item_is_undo(page, PageGetItemId(page, off)) &&
		ip_row_decode(page, off, row) == NULL;
}

bool
ip_row_read_changed(Page page, OffsetNumber off, IpRow *row)
{
	return ip_row_read_sound(page, off, IP_ROW_VERSION, row) &&
		ip_row_is_changed(row);
}

bool
ip_row_read_deleted(Relation rel, BlockNumber block, Page page,
					OffsetNumber off, IpRow *row)
{
	return off >= FirstOffsetNumber && off <= PageGetMaxOffsetNumber(page) &&
		ip_row_may_be(page, off, IP_ROW_DELETED) &&
		ip_row_read(rel, block, page, off, row) &&
		(row->state & IP_ROW_DELETED);
}

void
ip_row_write(uint8 *item, uint16 hdr, uint8 state, TransactionId xid, IpPtr ptr,
			 const uint8 *body, uint32 bodylen)
{
	uint16		stored = IpHdrStore(hdr);

	Assert(bodylen >= IP_ROW_MIN_BODY);
	Assert(!(state & IP_ROW_OVERLAID) || (state & IP_ROW_VERSION));
	Assert((state & IP_STATE_UNDO) != IP_STATE_UNDO);	/* I3 */
	memcpy(item, &stored, sizeof(stored));
	item[IP_ROW_STATE] = state;
	item += IP_ROW_HDRSZ;
	if (state & IP_ROW_VERSION)
	{
		memcpy(item + IP_BLOCK_XID, &xid, sizeof(xid));
		memcpy(item + IP_BLOCK_PTR, &ptr.block, sizeof(BlockNumber));
		memcpy(item + IP_BLOCK_PTR_OFF, &ptr.off, sizeof(OffsetNumber));
		item += IP_VERSION_BLOCK_SZ;
	}
	if (state & IP_ROW_OVERLAID)
	{
		body += IP_VERSION_BLOCK_SZ;
		bodylen -= IP_VERSION_BLOCK_SZ;
	}
	memcpy(item, body, bodylen);
}

/*
 * Clear the bits in each row that has all bits of "with".  These items have
 * not been checked: do not write outside of the page.
 */
static void
clear_state(Page page, uint8 with, uint8 bits)
{
	OffsetNumber max = PageGetMaxOffsetNumber(page);

	Assert(ip_page_is_locked(page, true));
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		ItemId		lp = PageGetItemId(page, off);
		uint32		start = ip_item_start(lp);
		uint8	   *state = (uint8 *) page + start + IP_ROW_STATE;

		if (ip_item_is_ours(lp) && start >= ((PageHeader) page)->pd_upper &&
			start + IP_ROW_HDRSZ <= BLCKSZ && *state != IP_STATE_UNDO &&
			(*state & with) == with)
			*state &= ~bits;
	}
}

void
ip_row_clear_default(Page page)
{
	clear_state(page, 0, IP_ROW_DEFAULT);
}

void
ip_row_clear_changed(Page page)
{
	clear_state(page, IP_ROW_CHANGED, IP_ROW_CHANGED | IP_ROW_DELETED |
				IP_ROW_MOVED);
}
