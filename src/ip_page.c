/*-------------------------------------------------------------------------
 * ip_page.c
 *	  Reading the pages of inplace tables, and putting operations that change them.
 *-------------------------------------------------------------------------
 */
#include "ip_compat.h"

#include "ip_page.h"

/* ---- reading --------------------------------------------------------------- */

bool
ip_page_is_ours(Page page)
{
	IpSpecial  *special;

	if (PageIsNew(page) || PageGetSpecialSize(page) != sizeof(IpSpecial))
		return false;
	special = IpPageGetSpecial(page);
	return special->magic == IP_PAGE_MAGIC &&
		special->kind >= IP_PAGE_META && special->kind <= IP_PAGE_FREE;
}

/* Not a damaged page of ours: heap's pages have no special space. */
static bool
page_may_be_heap(Page page)
{
	PageHeader	ph = (PageHeader) page;

	return ph->pd_special == BLCKSZ && ph->pd_upper <= BLCKSZ && ph->pd_lower <= ph->pd_upper &&
		ph->pd_lower >= SizeOfPageHeaderData && PageGetPageSize(page) == BLCKSZ;
}

IpPageKind
ip_page_kind(Relation rel, BlockNumber block, Page page)
{
	if (PageIsNew(page))
		return 0;
	if (!ip_page_is_ours(page))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("block %u of relation \"%s\" is not a page of an inplace table",
						block, RelationGetRelationName(rel)),
				 page_may_be_heap(page) ?
				 errhint("It may be a page of a heap table. If a tool has swapped the table's file with a heap table's, "
						 "set the table's pg_class.relam to that of heap, then use ALTER TABLE ... SET ACCESS METHOD.") : 0));
	return IpPageGetSpecial(page)->kind;
}

bool
ip_page_items_overlap(Page page)
{
	static uint16 len_at[BLCKSZ];
	PageHeader	ph = (PageHeader) page;
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	int			n = 0;

	memset(len_at, 0, sizeof(len_at));
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		ItemId		lp = PageGetItemId(page, off);
		uint32		start = ip_item_start(lp);
		uint32		len = ItemIdGetLength(lp);

		if (!ip_item_is_ours(lp) || len == 0 || start < ph->pd_upper || start + len > ph->pd_special)
			continue;
		if (len_at[start] != 0)
			return true;
		len_at[start] = len;
		n++;
	}
	/* the walk from item to item does not meet one that begins within another */
	for (uint32 pos = ph->pd_upper; pos < ph->pd_special; pos += Max(len_at[pos], 1))
		n -= len_at[pos] != 0 ? 1 : 0;
	return n != 0;
}

const char *
ip_row_decode(Page page, OffsetNumber off, IpRow *row)
{
	ItemId		lp = PageGetItemId(page, off);
	uint32		start = ip_item_start(lp);
	uint32		len = ItemIdGetLength(lp);
	const uint8 *item = (const uint8 *) page + start;
	PageHeader	ph = (PageHeader) page;
	uint16		stored;

	if (!ip_item_is_ours(lp))
		return "item is a heap tuple";
	if (start < ph->pd_upper || start + len > ph->pd_special)
		return "item reaches outside of the page's tuple space";
	if (len < IP_ROW_MIN_ITEM)
		return "item is shorter than a row";
	memcpy(&stored, item, sizeof(stored));
	if ((stored & IP_HDR_HEAP_MASK) != IP_HDR_HEAP_BITS)
		return "row header has wrong bits";
	row->hdr = IpHdrLoad(stored);
	row->state = item[IP_ROW_STATE];
	row->xid = IP_XID_NONE;
	row->ptr = ip_ptr_cid(0);
	if ((row->hdr & IP_HDR_NATTS_MASK) > MaxHeapAttributeNumber)
		return "row has too many columns";

	if (row->state & IP_ROW_VERSION)
	{
		IpSpecial  *special = IpPageGetSpecial(page);
		TransactionId xid;

		memcpy(&xid, item + 3, sizeof(xid));
		memcpy(&row->ptr.block, item + 7, sizeof(BlockNumber));
		memcpy(&row->ptr.off, item + 11, sizeof(OffsetNumber));
		row->xid = ip_xid_after(special->u.data.xid_base, xid);
		row->body = item + IP_ROW_MIN_ITEM;
		row->bodylen = len - IP_ROW_MIN_ITEM;
		if (!TransactionIdIsValid(xid))
			return "version block without a transaction id";
		if (row->state & IP_ROW_OVERLAID)
			row->bodylen += IP_VERSION_BLOCK_SZ;
		else if (row->bodylen < IP_ROW_MIN_BODY)
			return "row body is too short";
		if (row->state & IP_ROW_DEFAULT)
			return "row has both a version block and the default inserter";
		return NULL;
	}
	row->body = item + IP_ROW_HDRSZ;
	row->bodylen = len - IP_ROW_HDRSZ;
	if (row->state & ~IP_ROW_DEFAULT)
		return "row state needs a version block";
	if (row->state & IP_ROW_DEFAULT)
	{
		IpSpecial  *special = IpPageGetSpecial(page);

		if (!TransactionIdIsValid(special->u.data.default_xid))
			return "page has no default inserter";
		row->state = IP_ROW_INSERTED;
		row->xid = ip_xid_after(special->u.data.xid_base, special->u.data.default_xid);
		row->ptr = ip_ptr_cid(special->u.data.default_cid);
	}
	return NULL;
}

bool
ip_row_read(Relation rel, BlockNumber block, Page page, OffsetNumber off, IpRow *row)
{
	const char *problem;

	if (off < FirstOffsetNumber || off > PageGetMaxOffsetNumber(page) ||
		!ip_item_is_used(PageGetItemId(page, off)))
		return false;
	problem = ip_row_decode(page, off, row);
	if (unlikely(problem != NULL))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("corrupted row (%u,%u) of relation \"%s\": %s",
						block, off, RelationGetRelationName(rel), problem),
				 errhint("Run inplace_check('%s') to find all damage.",
						 RelationGetRelationName(rel))));
	return true;
}

bool
ip_row_read_deleted(Relation rel, BlockNumber block, Page page, OffsetNumber off, IpRow *row)
{
	return off >= FirstOffsetNumber && off <= PageGetMaxOffsetNumber(page) &&
		ip_row_may_be(page, off, IP_ROW_DELETED) &&
		ip_row_read(rel, block, page, off, row) && (row->state & IP_ROW_DELETED);
}

const char *
ip_undo_decode(BlockNumber block, uint64 xid_base, const uint8 *item, uint32 len,
			   IpUndoRec *rec)
{
	IpReader	r = {item, item + len, false};
	BlockNumber row_block;
	TransactionId xid;
	uint16		stored = ip_get_u16(&r);
	uint8		kind = IpRecLoadKind(stored);

	rec->kind = kind & IP_KIND_MASK;
	rec->flags = IpRecLoadFlags(stored);
	xid = ip_get_u32(&r);
	rec->xid = ip_xid_after(xid_base, xid);
	row_block = ip_get_varint(&r);
	ItemPointerSet(&rec->row, row_block, ip_get_varint(&r));
	rec->cid = (kind & IP_KIND_CID) ? ip_get_varint(&r) : 0;
	rec->prev_xid = IP_XID_NONE;
	rec->prev_ptr = ip_ptr_cid(0);
	rec->saved = NULL;
	if (rec->flags & IP_REC_PREV)
	{
		rec->prev_xid = ip_xid_after(xid_base, xid + (uint32) ip_get_zigzag(&r));
		if (rec->flags & IP_REC_PREV_INSERTED)
			rec->prev_ptr = ip_ptr_cid(ip_get_varint(&r));
		else
		{
			rec->prev_ptr.block = block + (uint32) ip_get_zigzag(&r);
			rec->prev_ptr.off = ip_get_varint(&r);
		}
	}
	if (rec->flags & IP_REC_SAVED)
		rec->saved = ip_get_bytes(&r, IP_VERSION_BLOCK_SZ);
	if (rec->flags & IP_REC_HDR)
		rec->hdr = ip_get_u16(&r);
	ItemPointerSetInvalid(&rec->forward);
	if (rec->flags & IP_REC_FORWARD)
	{
		row_block = ip_get_u32(&r);
		ItemPointerSet(&rec->forward, row_block, ip_get_u16(&r));
	}
	if (rec->kind == IP_UNDO_LOCK)
	{
		rec->locker = ip_get_u32(&r);
		rec->mode = ip_get_u8(&r);
		if (rec->mode > LockTupleExclusive)
			return "unknown row lock mode";
	}
	rec->delta = r.p;
	rec->deltalen = r.end - r.p;
	if (r.bad)
		return "undo record is too short";
	if ((stored & IP_HDR_HEAP_MASK) != IP_HDR_HEAP_BITS)
		return "undo record has wrong bits";
	if (!ItemPointerIsValid(&rec->row))
		return "undo record names no row";
	if (rec->kind < IP_UNDO_LOCK || rec->kind > IP_UNDO_DELETE)
		return "unknown kind of undo record";
	return NULL;
}

/* ---- building operations ----------------------------------------------------- */

void
ip_op_simple(IpWriter *w, IpOp op)
{
	ip_put_u8(w, op);
}

void
ip_op_init_data(IpWriter *w, uint64 xid_base)
{
	ip_put_u8(w, IP_OP_INIT_DATA);
	ip_put_u64(w, xid_base);
}

void
ip_op_init_undo(IpWriter *w, uint64 newest_xid, uint16 slot, uint16 flags, BlockNumber next)
{
	ip_put_u8(w, IP_OP_INIT_UNDO);
	ip_put_u64(w, newest_xid);
	ip_put_u16(w, slot);
	ip_put_u16(w, flags);
	ip_put_u32(w, next);
}

void
ip_op_default(IpWriter *w, CommandId cid)
{
	ip_put_u8(w, IP_OP_DEFAULT);
	ip_put_varint(w, cid);
}

void
ip_op_base(IpWriter *w, uint64 xid_base)
{
	ip_put_u8(w, IP_OP_BASE);
	ip_put_u64(w, xid_base);
}

void
ip_op_xid(IpWriter *w, TransactionId xid)
{
	ip_put_u8(w, IP_OP_XID);
	ip_put_u32(w, xid);
}

void
ip_op_row(IpWriter *w, const IpRowOp *op)
{
	uint8		how = op->base;

	if (op->own_xid)
		how |= IP_ROW_OWN_XID;
	if (op->undo_off != 0)
		how |= IP_ROW_OWN_UNDO;
	ip_put_u8(w, IP_OP_ROW);
	ip_put_varint(w, op->off);
	ip_put_u16(w, op->hdr);
	ip_put_u8(w, op->state);
	ip_put_u8(w, how);
	if (op->state & IP_ROW_VERSION)
	{
		if (!op->own_xid)
			ip_put_u32(w, op->xid);
		if (op->undo_off != 0)
			ip_put_varint(w, op->undo_off);
		else
		{
			ip_put_varint(w, op->ptr.block);
			ip_put_varint(w, op->ptr.off);
		}
	}
	if (op->base == IP_BASE_OVERLAID)
		ip_put_bytes(w, op->saved, IP_VERSION_BLOCK_SZ);
	ip_delta_make(w, op->from, op->fromlen, op->body, op->bodylen);
}

uint8 *
ip_op_rows_begin(IpWriter *w, OffsetNumber off, bool final)
{
	uint8	   *count_at;

	ip_put_u8(w, final ? IP_OP_FINAL_ROWS : IP_OP_ROWS);
	ip_put_varint(w, off);
	count_at = w->p;
	ip_put_u16(w, 0);
	return count_at;
}

void
ip_op_rows_add(IpWriter *w, uint16 hdr, const uint8 *body, uint32 bodylen,
			   uint16 prev_hdr, const uint8 *prev, uint32 prevlen)
{
	uint8		how = (prev == NULL || hdr != prev_hdr) ? IP_ROWS_HDR : 0;
	uint8	   *start = w->p;

	if (prev != NULL)
	{
		ip_put_u8(w, how | IP_ROWS_DELTA);
		if (how & IP_ROWS_HDR)
			ip_put_u16(w, hdr);
		ip_delta_make(w, prev, prevlen, body, bodylen);
		if (!w->bad && w->p - start < bodylen + 2)
			return;
		w->p = start;
	}
	ip_put_u8(w, how);
	if (how & IP_ROWS_HDR)
		ip_put_u16(w, hdr);
	ip_put_varint(w, bodylen);
	ip_put_bytes(w, body, bodylen);
}

void
ip_op_rows_end(IpWriter *w, uint8 *begin, uint16 count)
{
	if (!w->bad)
		memcpy(begin, &count, sizeof(count));
}

void
ip_op_dead(IpWriter *w, OffsetNumber off)
{
	ip_put_u8(w, IP_OP_DEAD);
	ip_put_varint(w, off);
}

void
ip_op_unused(IpWriter *w, const OffsetNumber *offs, int n)
{
	ip_put_u8(w, IP_OP_UNUSED);
	ip_put_varint(w, n);
	for (int i = 0; i < n; i++)
		ip_put_varint(w, offs[i]);
}

void
ip_op_undo(IpWriter *w, OffsetNumber row_off, uint8 kind, uint8 flags,
		   const uint8 *tail, uint32 taillen)
{
	ip_put_u8(w, IP_OP_UNDO);
	ip_put_varint(w, row_off);
	ip_put_u8(w, kind);
	ip_put_u8(w, flags);
	ip_put_varint(w, taillen);
	ip_put_bytes(w, tail, taillen);
}

void
ip_op_newest(IpWriter *w, uint64 newest_xid)
{
	ip_put_u8(w, IP_OP_NEWEST);
	ip_put_u64(w, newest_xid);
}

void
ip_op_ring(IpWriter *w, BlockNumber next, uint16 flags)
{
	ip_put_u8(w, IP_OP_RING);
	ip_put_u32(w, next);
	ip_put_u16(w, flags);
}

void
ip_op_slot(IpWriter *w, uint16 slot, BlockNumber current, uint32 npages)
{
	ip_put_u8(w, IP_OP_SLOT);
	ip_put_u16(w, slot);
	ip_put_u32(w, current);
	ip_put_u32(w, npages);
}

OffsetNumber
ip_free_offset(Page page, OffsetNumber after)
{
	OffsetNumber max = PageGetMaxOffsetNumber(page);

	if (PageHasFreeLinePointers(page))
	{
		for (OffsetNumber off = after + 1; off <= max; off++)
		{
			if (!ItemIdIsUsed(PageGetItemId(page, off)))
				return off;
		}
		/* a hint: no need to look again */
		if (after == InvalidOffsetNumber)
			PageClearHasFreeLinePointers(page);
	}
	return Max(after, max) + 1;
}
