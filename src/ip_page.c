/*-------------------------------------------------------------------------
 * ip_page.c
 *	  Reading and changing the pages of inplace tables.
 *-------------------------------------------------------------------------
 */
#include "ip_compat.h"

#include "ip_page.h"

/* IP_OP_ROW: how the version block is given */
#define ROW_BASE_MASK	0x03
#define ROW_OWN_XID		0x04
#define ROW_OWN_UNDO	0x08

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

IpPageKind
ip_page_kind(Relation rel, BlockNumber block, Page page)
{
	if (PageIsNew(page))
		return 0;
	if (!ip_page_is_ours(page))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("block %u of relation \"%s\" is not a page of an inplace table",
						block, RelationGetRelationName(rel))));
	return IpPageGetSpecial(page)->kind;
}

const char *
ip_row_decode(Page page, OffsetNumber off, IpRow *row)
{
	ItemId		lp = PageGetItemId(page, off);
	uint32		start = ItemIdGetOffset(lp);
	uint32		len = ItemIdGetLength(lp);
	const uint8 *item = (const uint8 *) page + start;
	PageHeader	ph = (PageHeader) page;

	if (start < ph->pd_upper || start + len > ph->pd_special)
		return "item reaches outside of the page's tuple space";
	if (len < IP_ROW_MIN_ITEM)
		return "item is shorter than a row";
	memcpy(&row->hdr, item, sizeof(uint16));
	row->state = item[2];
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
		!ItemIdIsNormal(PageGetItemId(page, off)))
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
ip_undo_decode(BlockNumber block, uint64 newest_xid, const uint8 *item, uint32 len,
			   IpUndoRec *rec)
{
	IpReader	r = {item, item + len, false};
	BlockNumber row_block;
	TransactionId xid;
	uint8		kind;

	kind = ip_get_u8(&r);
	rec->kind = kind & IP_KIND_MASK;
	rec->flags = ip_get_u8(&r);
	xid = ip_get_u32(&r);
	rec->xid = ip_xid_near(newest_xid, xid);
	row_block = ip_get_varint(&r);
	ItemPointerSet(&rec->row, row_block, ip_get_varint(&r));
	rec->cid = (kind & IP_KIND_CID) ? ip_get_varint(&r) : 0;
	rec->prev_xid = IP_XID_NONE;
	rec->prev_ptr = ip_ptr_cid(0);
	rec->saved = NULL;
	if (rec->flags & IP_REC_PREV)
	{
		rec->prev_xid = ip_xid_near(newest_xid, xid + (uint32) ip_get_zigzag(&r));
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
		how |= ROW_OWN_XID;
	if (op->undo_off != 0)
		how |= ROW_OWN_UNDO;
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

/* IP_OP_ROWS: how a row is given */
#define ROWS_HDR	0x01		/* its hdr follows, else it is that of the row before */
#define ROWS_DELTA	0x02		/* delta to the row before, else length and bytes */

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
	uint8		how = (prev == NULL || hdr != prev_hdr) ? ROWS_HDR : 0;
	uint8	   *start = w->p;

	if (prev != NULL)
	{
		ip_put_u8(w, how | ROWS_DELTA);
		if (how & ROWS_HDR)
			ip_put_u16(w, hdr);
		ip_delta_make(w, prev, prevlen, body, bodylen);
		if (!w->bad && w->p - start < bodylen + 2)
			return;
		w->p = start;
	}
	ip_put_u8(w, how);
	if (how & ROWS_HDR)
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

/* ---- applying ------------------------------------------------------------------ */

/* The bodies that IP_OP_ROW works on; static, for there is no palloc here. */
static IpRowBuffers row_buffers;

static void
init_page(Page page, IpPageKind kind)
{
	PageInit(page, BLCKSZ, sizeof(IpSpecial));
	IpPageGetSpecial(page)->kind = kind;
	IpPageGetSpecial(page)->magic = IP_PAGE_MAGIC;
}

static void
init_meta(Page page)
{
	IpMeta	   *meta = IpPageGetMeta(page);

	init_page(page, IP_PAGE_META);
	meta->magic = IP_META_MAGIC;
	meta->version = IP_FORMAT_VERSION;
	meta->nslots = IP_UNDO_SLOTS;
	meta->reserved = 0;
	for (int i = 0; i < IP_UNDO_SLOTS; i++)
	{
		meta->slots[i].current = InvalidBlockNumber;
		meta->slots[i].npages = 0;
	}
	((PageHeader) page)->pd_lower = (char *) (meta + 1) - (char *) page;
}

/*
 * Items from upper to start have moved by -grow.  This is much of what an update in place
 * costs, so it works on whole item pointers: neither offset leaves its 15 bits.
 */
static void
move_offsets(ItemIdData *lps, int n, uint32 upper, uint32 start, int grow)
{
	const ItemIdData one = {.lp_off = 1};
	uint32		unit;
	uint32		word;

	memcpy(&unit, &one, sizeof(unit));
	for (int i = 0; i < n; i++)
	{
		memcpy(&word, &lps[i], sizeof(word));
		word -= lps[i].lp_off - upper < start - upper ? grow * unit : 0;
		memcpy(&lps[i], &word, sizeof(word));
	}
}

/*
 * Give the item newlen bytes, moving the items below it; its contents are
 * undefined afterwards.  off may be the maximum + 1.  False if it does not fit.
 */
static bool
resize_item(Page page, OffsetNumber off, uint32 newlen)
{
	PageHeader	ph = (PageHeader) page;
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	ItemId		lp;
	uint32		start;
	int			grow;

	if (off < FirstOffsetNumber || off > max + 1 || off > IP_MAX_ROWS_PER_PAGE)
		return false;
	lp = PageGetItemId(page, off);
	if (off == max + 1)
	{
		if (ip_page_free(page) < sizeof(ItemIdData))
			return false;
		ph->pd_lower += sizeof(ItemIdData);
		ItemIdSetUnused(lp);
	}
	start = ItemIdHasStorage(lp) ? ItemIdGetOffset(lp) : ph->pd_upper;
	grow = (int) newlen - (int) ItemIdGetLength(lp);
	if (grow > (int) ip_page_free(page) || start < ph->pd_upper || start > ph->pd_special)
		return false;

	if (grow != 0 && start > ph->pd_upper)
	{
		memmove((char *) page + ph->pd_upper - grow, (char *) page + ph->pd_upper,
				start - ph->pd_upper);
		move_offsets(ph->pd_linp, max, ph->pd_upper, start, grow);
	}
	ph->pd_upper -= grow;
	if (newlen > 0)
		ItemIdSetNormal(lp, start - grow, newlen);
	else
		ItemIdSetDead(lp);
	return true;
}

/* The body that the operation's delta starts from, into row_buffers. */
static const char *
load_base(Page page, OffsetNumber off, IpRowBase base, const uint8 *saved, int into)
{
	uint8	   *body = row_buffers.body[into];
	IpRow		row;
	const char *problem;
	uint32		skip;

	if (base == IP_BASE_NONE)
	{
		row_buffers.len[into] = 0;
		return NULL;
	}
	if (off > PageGetMaxOffsetNumber(page) || !ItemIdIsNormal(PageGetItemId(page, off)))
		return "no such row";
	if ((problem = ip_row_decode(page, off, &row)) != NULL)
		return problem;
	if ((base == IP_BASE_OVERLAID) != ((row.state & IP_ROW_OVERLAID) != 0))
		return "row is not as the operation expects";
	skip = saved ? IP_VERSION_BLOCK_SZ : 0;
	if (saved)
		memcpy(body, saved, IP_VERSION_BLOCK_SZ);
	memcpy(body + skip, row.body, row.bodylen - skip);
	row_buffers.len[into] = row.bodylen;
	return NULL;
}

static const char *
write_row(Page page, OffsetNumber off, uint16 hdr, uint8 state, TransactionId xid,
		  IpPtr ptr, const uint8 *body, uint32 bodylen)
{
	uint8	   *item;

	if (bodylen < IP_ROW_MIN_BODY || !resize_item(page, off, ip_item_size(state, bodylen)))
		return "row does not fit";
	item = (uint8 *) PageGetItem(page, PageGetItemId(page, off));
	memcpy(item, &hdr, sizeof(hdr));
	item[2] = state;
	item += IP_ROW_HDRSZ;
	if (state & IP_ROW_VERSION)
	{
		memcpy(item, &xid, sizeof(xid));
		memcpy(item + 4, &ptr.block, sizeof(BlockNumber));
		memcpy(item + 8, &ptr.off, sizeof(OffsetNumber));
		item += IP_VERSION_BLOCK_SZ;
	}
	if (state & IP_ROW_OVERLAID)
	{
		body += IP_VERSION_BLOCK_SZ;
		bodylen -= IP_VERSION_BLOCK_SZ;
	}
	memcpy(item, body, bodylen);
	return NULL;
}

/* What IP_OP_ROW says before its delta. */
typedef struct RowHead
{
	OffsetNumber off;
	uint16		hdr;
	uint8		state;
	IpRowBase	base;
	TransactionId xid;
	IpPtr		ptr;
	const uint8 *saved;
} RowHead;

static bool
read_row_head(IpReader *r, const IpOpContext *ctx, RowHead *h)
{
	uint8		how;

	h->off = ip_get_varint(r);
	h->hdr = ip_get_u16(r);
	h->state = ip_get_u8(r);
	how = ip_get_u8(r);
	h->base = how & ROW_BASE_MASK;
	h->xid = ctx->xid;
	h->ptr = (IpPtr) {ctx->undo_block, 0};
	h->saved = NULL;
	if (h->state & IP_ROW_VERSION)
	{
		if (!(how & ROW_OWN_XID))
			h->xid = ip_get_u32(r);
		if (!(how & ROW_OWN_UNDO))
			h->ptr.block = ip_get_varint(r);
		h->ptr.off = ip_get_varint(r);
	}
	if (h->base == IP_BASE_OVERLAID)
		h->saved = ip_get_bytes(r, IP_VERSION_BLOCK_SZ);
	return !r->bad;
}

static const char *
apply_row(Page page, IpReader *r, const IpOpContext *ctx)
{
	RowHead		h;
	const char *problem;
	int			from = row_buffers.last;
	int			to;
	int			len;

	if (!read_row_head(r, ctx, &h))
		return "operation is too short";
	problem = load_base(page, h.off, h.base, h.saved, from);
	if (problem)
		return problem;
	to = 1 - from;
	len = ip_delta_apply(r, row_buffers.body[from], row_buffers.len[from],
						 row_buffers.body[to], BLCKSZ);
	if (len < 0)
		return "delta does not fit";
	row_buffers.len[to] = len;
	row_buffers.last = to;
	return write_row(page, h.off, h.hdr, h.state, h.xid, h.ptr, row_buffers.body[to], len);
}

/* The next row of IP_OP_ROWS into b, which has the one before. */
static bool
read_next_row(IpReader *r, IpRowBuffers *b, uint16 *hdr)
{
	uint8		how = ip_get_u8(r);
	int			to = 1 - b->last;
	const uint8 *bytes;
	int			len;

	if (how & ROWS_HDR)
		*hdr = ip_get_u16(r);
	if (how & ROWS_DELTA)
		len = ip_delta_apply(r, b->body[b->last], b->len[b->last], b->body[to], BLCKSZ);
	else
	{
		len = ip_get_varint(r);
		bytes = len <= BLCKSZ ? ip_get_bytes(r, len) : NULL;
		if (bytes == NULL)
			return false;
		memcpy(b->body[to], bytes, len);
	}
	if (len < 0 || r->bad)
		return false;
	b->len[to] = len;
	b->last = to;
	return true;
}

/*
 * Who has just made the operation still has its rows, and need not decode them again:
 * that is a third of what COPY's rows cost here.
 */
static const char *
apply_rows(Page page, IpReader *r, uint8 state, const IpFormed *rows)
{
	OffsetNumber off = ip_get_varint(r);
	int			count = ip_get_u16(r);
	bool		decode = rows == NULL;
	uint16		hdr = 0;
	IpPtr		no_ptr = {0, 0};

#ifdef USE_ASSERT_CHECKING
	decode = true;
#endif
	row_buffers.len[row_buffers.last] = 0;
	for (int i = 0; i < count; i++)
	{
		IpFormed	row;
		const char *problem;

		if (decode && !read_next_row(r, &row_buffers, &hdr))
			return "row cannot be read";
		if (rows != NULL)
			row = rows[i];
		else
			row = (IpFormed) {hdr, row_buffers.body[row_buffers.last], row_buffers.len[row_buffers.last]};
		Assert(row.hdr == hdr && row.bodylen == row_buffers.len[row_buffers.last] &&
			   memcmp(row.body, row_buffers.body[row_buffers.last], row.bodylen) == 0);
		problem = write_row(page, off + i, row.hdr, state, InvalidTransactionId, no_ptr,
							row.body, row.bodylen);
		if (problem)
			return problem;
	}
	if (!decode)
		r->p = r->end;
	return NULL;
}

static const char *
apply_undo(Page page, IpReader *r, const IpOpContext *ctx)
{
	PageHeader	ph = (PageHeader) page;
	IpSpecial  *special = IpPageGetSpecial(page);
	OffsetNumber row_off = ip_get_varint(r);
	uint8		kind = ip_get_u8(r);
	uint8		flags = ip_get_u8(r);
	uint32		taillen = ip_get_varint(r);
	const uint8 *tail = ip_get_bytes(r, taillen);
	uint8		head[IP_REC_FIXED_SZ + 8];
	IpWriter	w = {head, head + sizeof(head), false};
	uint32		len;
	uint8	   *item;
	IpUndoRec	rec;
	const char *problem;

	ip_put_u8(&w, kind);
	ip_put_u8(&w, flags);
	ip_put_u32(&w, ctx->xid);
	ip_put_varint(&w, ctx->data_block);
	ip_put_varint(&w, row_off);
	len = (w.p - head) + taillen;
	if (r->bad)
		return "operation is too short";
	if (len + sizeof(ItemIdData) > ip_page_free(page))
		return "undo record does not fit";
	ph->pd_upper -= len;
	ItemIdSetNormal(PageGetItemId(page, PageGetMaxOffsetNumber(page) + 1), ph->pd_upper, len);
	ph->pd_lower += sizeof(ItemIdData);
	item = (uint8 *) page + ph->pd_upper;
	memcpy(item, head, w.p - head);
	memcpy(item + (w.p - head), tail, taillen);

	problem = ip_undo_decode(ctx->undo_block, special->u.undo.newest_xid, item, len, &rec);
	if (problem)
		return problem;
	special->u.undo.newest_xid = Max(special->u.undo.newest_xid,
									 Max(rec.xid, rec.prev_xid));
	return NULL;
}

static const char *
apply_clear_default(Page page)
{
	IpSpecial  *special = IpPageGetSpecial(page);
	OffsetNumber max = PageGetMaxOffsetNumber(page);

	special->u.data.default_xid = InvalidTransactionId;
	special->u.data.default_cid = 0;
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		ItemId		lp = PageGetItemId(page, off);
		uint32		start = ItemIdGetOffset(lp);

		/* nobody has checked these items: do not write outside of the page */
		if (ItemIdIsNormal(lp) && start >= ((PageHeader) page)->pd_upper &&
			start + IP_ROW_HDRSZ <= BLCKSZ)
			((uint8 *) page)[start + 2] &= ~IP_ROW_DEFAULT;
	}
	return NULL;
}

/* Item pointers at the end of the array go, others are marked unused. */
static const char *
apply_unused(Page page, IpReader *r)
{
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	bool		some_left = false;

	for (uint32 n = ip_get_varint(r); n > 0 && !r->bad; n--)
	{
		OffsetNumber off = ip_get_varint(r);

		if (off < FirstOffsetNumber || off > max || !ItemIdIsDead(PageGetItemId(page, off)))
			return "item is not dead";
		ItemIdSetUnused(PageGetItemId(page, off));
	}
	while (max > 0 && !ItemIdIsUsed(PageGetItemId(page, max)))
		max--;
	((PageHeader) page)->pd_lower = SizeOfPageHeaderData + max * sizeof(ItemIdData);
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
		some_left |= !ItemIdIsUsed(PageGetItemId(page, off));
	if (some_left)
		PageSetHasFreeLinePointers(page);
	else
		PageClearHasFreeLinePointers(page);
	return NULL;
}

static const char *
apply_op(Page page, IpOp op, IpReader *r, IpOpContext *ctx)
{
	IpSpecial  *special = PageIsNew(page) ? NULL : IpPageGetSpecial(page);

	switch (op)
	{
		case IP_OP_INIT_META:
			init_meta(page);
			return NULL;
		case IP_OP_INIT_DATA:
			init_page(page, IP_PAGE_DATA);
			IpPageGetSpecial(page)->u.data.xid_base = ip_get_u64(r);
			return NULL;
		case IP_OP_INIT_UNDO:
			init_page(page, IP_PAGE_UNDO);
			special = IpPageGetSpecial(page);
			special->u.undo.newest_xid = ip_get_u64(r);
			special->u.undo.slot = ip_get_u16(r);
			special->u.undo.flags = ip_get_u16(r);
			special->u.undo.next = ip_get_u32(r);
			return NULL;
		case IP_OP_DEFAULT:
			special->u.data.default_xid = ctx->xid;
			special->u.data.default_cid = ip_get_varint(r);
			return NULL;
		case IP_OP_CLEAR_DEFAULT:
			return apply_clear_default(page);
		case IP_OP_BASE:
			special->u.data.xid_base = ip_get_u64(r);
			return NULL;
		case IP_OP_ROW:
			return apply_row(page, r, ctx);
		case IP_OP_ROWS:
			return apply_rows(page, r, IP_ROW_DEFAULT, ctx->rows);
		case IP_OP_FINAL_ROWS:
			return apply_rows(page, r, 0, ctx->rows);
		case IP_OP_UNUSED:
			return apply_unused(page, r);
		case IP_OP_INIT_FREE:
			init_page(page, IP_PAGE_FREE);
			return NULL;
		case IP_OP_XID:
			ctx->xid = ip_get_u32(r);
			return NULL;
		case IP_OP_DEAD:
			return resize_item(page, ip_get_varint(r), 0) ? NULL : "no such row";
		case IP_OP_UNDO:
			return apply_undo(page, r, ctx);
		case IP_OP_NEWEST:
			{
				uint64		xid = ip_get_u64(r);

				special->u.undo.newest_xid = Max(special->u.undo.newest_xid, xid);
				return NULL;
			}
		case IP_OP_RING:
			special->u.undo.next = ip_get_u32(r);
			special->u.undo.flags = ip_get_u16(r);
			return NULL;
		case IP_OP_SLOT:
			{
				uint16		slot = ip_get_u16(r);
				IpMetaSlot *ms = &IpPageGetMeta(page)->slots[slot % IP_UNDO_SLOTS];

				ms->current = ip_get_u32(r);
				ms->npages = ip_get_u32(r);
				return NULL;
			}
	}
	return "unknown operation";
}

const char *
ip_page_apply(Page page, const uint8 *ops, uint32 len, const IpOpContext *ctx)
{
	IpReader	r = {ops, ops + len, false};
	IpOpContext context = *ctx;

	while (r.p < r.end)
	{
		IpOp		op = ip_get_u8(&r);
		const char *problem = apply_op(page, op, &r, &context);

		if (problem == NULL && r.bad)
			problem = "operation is too short";
		if (problem)
			return problem;
	}
	return NULL;
}

/* ---- new rows ---------------------------------------------------------------- */

void
ip_new_rows_begin(IpNewRows *n, const uint8 *ops, uint32 len)
{
	n->ops = (IpReader) {ops, ops + len, false};
	n->left = 0;
	n->buffers.last = 0;
}

/* Go to the next row; false if the operations have no more, or are others. */
static bool
find_new_row(IpNewRows *n, bool *alone)
{
	static const IpOpContext ctx = {InvalidTransactionId, InvalidBlockNumber, InvalidBlockNumber, NULL};
	RowHead		h;

	*alone = false;
	while (n->left == 0)
	{
		if (n->ops.bad || n->ops.p >= n->ops.end)
			return false;
		n->buffers.len[n->buffers.last] = 0;
		switch (ip_get_u8(&n->ops))
		{
			case IP_OP_INIT_DATA:
			case IP_OP_BASE:
				(void) ip_get_u64(&n->ops);
				break;
			case IP_OP_DEFAULT:
				(void) ip_get_varint(&n->ops);
				break;
			case IP_OP_ROW:
				*alone = true;
				return read_row_head(&n->ops, &ctx, &h) && h.base == IP_BASE_NONE;
			case IP_OP_ROWS:
			case IP_OP_FINAL_ROWS:
				(void) ip_get_varint(&n->ops);
				n->left = ip_get_u16(&n->ops);
				break;
			default:
				return false;
		}
	}
	n->left--;
	return true;
}

const uint8 *
ip_new_rows_next(IpNewRows *n, uint32 *len)
{
	IpRowBuffers *b = &n->buffers;
	bool		alone;
	uint16		hdr = 0;

	if (!find_new_row(n, &alone))
		return NULL;
	if (alone)
	{
		int			delta = ip_delta_apply(&n->ops, b->body[b->last], 0,
										   b->body[1 - b->last], BLCKSZ);

		if (delta < 0)
			return NULL;
		b->last = 1 - b->last;
		b->len[b->last] = delta;
	}
	else if (!read_next_row(&n->ops, b, &hdr))
		return NULL;
	*len = b->len[b->last];
	return b->body[b->last];
}

/* ---- describing ------------------------------------------------------------------ */

static void
skip_delta(IpReader *r)
{
	uint32		nhunks = ip_get_varint(r);

	for (; nhunks > 0 && !r->bad; nhunks--)
	{
		uint32		ins;

		(void) ip_get_varint(r);
		ins = ip_get_varint(r);
		if (ins & 1)
			(void) ip_get_varint(r);
		(void) ip_get_bytes(r, ins >> 1);
	}
}

static void
desc_row(StringInfo buf, IpReader *r)
{
	static const char *const bases[] = {"put row", "change row", "change overlaid row", "?"};
	uint32		off = ip_get_varint(r);
	uint16		hdr = ip_get_u16(r);
	uint8		state = ip_get_u8(r);
	uint8		how = ip_get_u8(r);
	const uint8 *start;

	if (state & IP_ROW_VERSION)
	{
		if (!(how & ROW_OWN_XID))
			(void) ip_get_u32(r);
		if (!(how & ROW_OWN_UNDO))
			(void) ip_get_varint(r);
		(void) ip_get_varint(r);
	}
	if ((how & ROW_BASE_MASK) == IP_BASE_OVERLAID)
		(void) ip_get_bytes(r, IP_VERSION_BLOCK_SZ);
	start = r->p;
	skip_delta(r);
	appendStringInfo(buf, "%s %u natts %u state 0x%02X delta %d bytes",
					 bases[how & ROW_BASE_MASK], off, hdr & IP_HDR_NATTS_MASK, state,
					 (int) (r->p - start));
}

static void
desc_unused(StringInfo buf, IpReader *r)
{
	uint32		n = ip_get_varint(r);

	appendStringInfoString(buf, "unused items");
	for (; n > 0 && !r->bad; n--)
		appendStringInfo(buf, " %u", ip_get_varint(r));
}

static void
desc_rows(StringInfo buf, IpReader *r)
{
	uint32		off = ip_get_varint(r);
	uint16		count = ip_get_u16(r);

	appendStringInfo(buf, "put %u rows from %u on", count, off);
	for (; count > 0 && !r->bad; count--)
	{
		uint8		how = ip_get_u8(r);

		if (how & ROWS_HDR)
			(void) ip_get_u16(r);
		if (how & ROWS_DELTA)
			skip_delta(r);
		else
			(void) ip_get_bytes(r, ip_get_varint(r));
	}
}

static void
desc_undo(StringInfo buf, IpReader *r)
{
	static const char *const kinds[] = {"?", "lock", "update", "delete"};
	uint32		off = ip_get_varint(r);
	uint8		kind = ip_get_u8(r);
	uint32		taillen;

	kind &= IP_KIND_MASK;
	(void) ip_get_u8(r);
	taillen = ip_get_varint(r);
	(void) ip_get_bytes(r, taillen);
	appendStringInfo(buf, "undo %s of row %u, %u bytes",
					 kinds[kind <= IP_UNDO_DELETE ? kind : 0], off, taillen);
}

static void
desc_op(StringInfo buf, IpOp op, IpReader *r)
{
	uint64		xid;
	uint32		a,
				b,
				c;

	switch (op)
	{
		case IP_OP_INIT_META:
			appendStringInfoString(buf, "init metapage");
			break;
		case IP_OP_INIT_DATA:
			appendStringInfo(buf, "init data page, xid base " UINT64_FORMAT, ip_get_u64(r));
			break;
		case IP_OP_INIT_UNDO:
			xid = ip_get_u64(r);
			a = ip_get_u16(r);
			b = ip_get_u16(r);
			c = ip_get_u32(r);
			appendStringInfo(buf, "init undo page, newest xid " UINT64_FORMAT
							 " slot %u flags %u next %u", xid, a, b, c);
			break;
		case IP_OP_DEFAULT:
			appendStringInfo(buf, "default inserter, cid %u", ip_get_varint(r));
			break;
		case IP_OP_CLEAR_DEFAULT:
			appendStringInfoString(buf, "clear default inserter");
			break;
		case IP_OP_BASE:
			appendStringInfo(buf, "xid base " UINT64_FORMAT, ip_get_u64(r));
			break;
		case IP_OP_ROW:
			desc_row(buf, r);
			break;
		case IP_OP_ROWS:
		case IP_OP_FINAL_ROWS:
			desc_rows(buf, r);
			break;
		case IP_OP_UNUSED:
			desc_unused(buf, r);
			break;
		case IP_OP_INIT_FREE:
			appendStringInfoString(buf, "free page");
			break;
		case IP_OP_XID:
			appendStringInfo(buf, "xid %u", ip_get_u32(r));
			break;
		case IP_OP_DEAD:
			appendStringInfo(buf, "row %u dead", ip_get_varint(r));
			break;
		case IP_OP_UNDO:
			desc_undo(buf, r);
			break;
		case IP_OP_NEWEST:
			appendStringInfo(buf, "newest xid " UINT64_FORMAT, ip_get_u64(r));
			break;
		case IP_OP_RING:
			a = ip_get_u32(r);
			b = ip_get_u16(r);
			appendStringInfo(buf, "ring next %u flags %u", a, b);
			break;
		case IP_OP_SLOT:
			a = ip_get_u16(r);
			b = ip_get_u32(r);
			c = ip_get_u32(r);
			appendStringInfo(buf, "slot %u current %u pages %u", a, b, c);
			break;
		default:
			appendStringInfo(buf, "unknown operation %d", op);
			r->bad = true;
			break;
	}
}

void
ip_page_desc(StringInfo buf, const uint8 *ops, uint32 len)
{
	IpReader	r = {ops, ops + len, false};
	const char *sep = "";

	while (r.p < r.end && !r.bad)
	{
		appendStringInfoString(buf, sep);
		desc_op(buf, ip_get_u8(&r), &r);
		sep = "; ";
	}
}
