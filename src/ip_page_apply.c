/*-------------------------------------------------------------------------
 * ip_page_apply.c
 *	  Applying operations to a page: one function for changes and for redo.
 *-------------------------------------------------------------------------
 */
#include "ip_compat.h"

#include "access/multixact.h"

#include "ip_page.h"

/* The bodies that IP_OP_ROW works on; static, for there is no palloc here. */
static IpRowBuffers row_buffers;

static void
init_page(Page page, IpPageKind kind)
{
	PageInit(page, BLCKSZ, sizeof(IpSpecial));
	IpPageGetSpecial(page)->kind = kind;
	IpPageGetSpecial(page)->magic = IP_PAGE_MAGIC;
}

/* See IpMeta. */
static void
put_decoy(Page page, IpMeta *meta)
{
	HeapTupleHeader tuple = (HeapTupleHeader) (page + IP_DECOY_START);

	ItemIdSetNormal(&meta->decoy, IP_DECOY_START, IP_DECOY_SIZE);
	((PageHeader) page)->pd_upper = IP_DECOY_START;
	HeapTupleHeaderSetXmin(tuple, FrozenTransactionId);
	HeapTupleHeaderSetXmax(tuple, MaxMultiXactId);
	ItemPointerSetInvalid(&tuple->t_ctid);
	tuple->t_infomask = HEAP_XMIN_FROZEN | HEAP_XMAX_IS_MULTI;
	tuple->t_hoff = IP_DECOY_SIZE;
}

static void
init_meta(Page page)
{
	IpMeta	   *meta = IpPageGetMeta(page);

	init_page(page, IP_PAGE_META);
	put_decoy(page, meta);
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
		word -= ip_item_start(&lps[i]) - upper < start - upper ? grow * unit : 0;
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
	/* one that is damaged may have a length, but is free all the same */
	start = ip_item_is_ours(lp) ? ip_item_start(lp) : ph->pd_upper;
	grow = (int) newlen - (ip_item_is_ours(lp) ? (int) ItemIdGetLength(lp) : 0);
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
		ip_item_set(lp, start - grow, newlen);
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
	if (off > PageGetMaxOffsetNumber(page) || !ip_item_is_ours(PageGetItemId(page, off)))
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
	uint16		stored = IpHdrStore(hdr);
	uint8	   *item;

	if (bodylen < IP_ROW_MIN_BODY || !resize_item(page, off, ip_item_size(state, bodylen)))
		return "row does not fit";
	item = (uint8 *) page + ip_item_start(PageGetItemId(page, off));
	memcpy(item, &stored, sizeof(stored));
	item[IP_ROW_STATE] = state;
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
	h->base = how & IP_ROW_BASE_MASK;
	h->xid = ctx->xid;
	h->ptr = (IpPtr) {ctx->undo_block, 0};
	h->saved = NULL;
	if (h->state & IP_ROW_VERSION)
	{
		if (!(how & IP_ROW_OWN_XID))
			h->xid = ip_get_u32(r);
		if (!(how & IP_ROW_OWN_UNDO))
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

	if (how & IP_ROWS_HDR)
		*hdr = ip_get_u16(r);
	if (how & IP_ROWS_DELTA)
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

	ip_put_u16(&w, IpRecStore(kind, flags));
	ip_put_u32(&w, ctx->xid);
	ip_put_varint(&w, ctx->data_block);
	ip_put_varint(&w, row_off);
	len = (w.p - head) + taillen;
	if (r->bad)
		return "operation is too short";
	if (len + sizeof(ItemIdData) > ip_page_free(page))
		return "undo record does not fit";
	ph->pd_upper -= len;
	ip_item_set(PageGetItemId(page, PageGetMaxOffsetNumber(page) + 1), ph->pd_upper, len);
	ph->pd_lower += sizeof(ItemIdData);
	item = (uint8 *) page + ph->pd_upper;
	memcpy(item, head, w.p - head);
	memcpy(item + (w.p - head), tail, taillen);

	problem = ip_undo_decode(ctx->undo_block, ip_undo_xid_base(special), item, len, &rec);
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
		uint32		start = ip_item_start(lp);

		/* nobody has checked these items: do not write outside of the page */
		if (ip_item_is_ours(lp) && start >= ((PageHeader) page)->pd_upper &&
			start + IP_ROW_HDRSZ <= BLCKSZ)
			((uint8 *) page)[start + IP_ROW_STATE] &= ~IP_ROW_DEFAULT;
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
			special->undo_xid_base = (uint32) (special->u.undo.newest_xid -
											   Min(special->u.undo.newest_xid, IP_UNDO_XIDS_BEFORE));
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
