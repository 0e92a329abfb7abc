/*-------------------------------------------------------------------------
 * ip_page_apply.c
 *	  Applying operations to a page: one function for changes and for redo.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/multixact.h"

#include "ip_delta.h"
#include "ip_items.h"
#include "ip_lockset.h"
#include "ip_map.h"
#include "ip_moves.h"
#include "ip_page_apply.h"
#include "ip_page_check.h"
#include "ip_runs.h"
#include "ip_state.h"
#include "ip_undo_rec.h"
#include "page_change.h"

/* ---- rows ---------------------------------------------------------------- */

/*
 * The bodies that these operations work on; static, for there is no palloc
 * here.
 */
static IpRowBuffers row_buffers;

/* Read a row's undo record that is at home. */
static const char *
read_record(Page page, IpPtr ptr, IpUndoRec *rec)
{
	ItemId		lp;

	if (ptr.off < FirstOffsetNumber || ptr.off > PageGetMaxOffsetNumber(page))
		return "no such undo record";
	lp = PageGetItemId(page, ptr.off);
	if (!ip_item_is_undo(page, lp))
		return "no such undo record";
	return ip_undo_rec_decode(page, ptr.block,
							  (uint8 *) page + ip_item_start(lp),
							  ItemIdGetLength(lp), rec);
}

/*
 * Load the body that the operation's delta starts from into row_buffers; *row
 * is the row that has it.  An overlaid row's first bytes are in "saved" or, if
 * that is NULL, in its undo record, which is then at home.
 */
static const char *
load_base(Page page, OffsetNumber off, IpRowBase base, const uint8 *saved,
		  int into, IpRow *row)
{
	uint8	   *body = row_buffers.body[into];
	const char *problem;
	IpUndoRec	rec;
	uint32		skip;

	if (!ip_row_is_at(page, off))
		return "no such row";
	if ((problem = ip_row_decode(page, off, row)) != NULL)
		return problem;
	if ((row->state & IP_ROW_OVERLAID) ? base == IP_BASE_ROW :
		base == IP_BASE_OVERLAID)
		return "row is not as the operation expects";
	if ((row->state & IP_ROW_OVERLAID) && saved == NULL)
	{
		problem = read_record(page, row->ptr, &rec);
		if (problem == NULL && (saved = rec.saved) == NULL)
			problem = "undo record has not kept the overlaid bytes";
		if (problem != NULL)
			return problem;
	}
	skip = saved ? IP_VERSION_BLOCK_SZ : 0;
	if (saved)
		memcpy(body, saved, IP_VERSION_BLOCK_SZ);
	memcpy(body + skip, row->body, row->bodylen - skip);
	row_buffers.len[into] = row->bodylen;
	return NULL;
}

static const char *
write_row(Page page, OffsetNumber off, uint16 hdr, uint8 state,
		  TransactionId xid, IpPtr ptr, const uint8 *body, uint32 bodylen)
{
	if (bodylen < IP_ROW_MIN_BODY ||
		!ip_items_resize(page, off, ip_item_size(state, bodylen)))
		return "row does not fit";	/* I6 */
	ip_row_write((uint8 *) page + ip_item_start(PageGetItemId(page, off)), hdr,
				 state, xid, ptr, body, bodylen);
	return NULL;
}

/*
 * Write the undo record that IP_OP_HOME makes from the row before the change,
 * whose body is in row_buffers, and the new body.
 */
static const char *
derive_record(Page page, const IpRowHead *h, const IpRow *row, int from, int to,
			  ByteWriter *w)
{
	static uint8 delta[BLCKSZ];
	ByteWriter	dw = {delta, delta + sizeof(delta), false};
	const IpHomeOp *home = &h->home;
	uint32		oldlen = (home->flags & IP_HOME_LEN) ? home->oldlen :
		row_buffers.len[from];
	IpUndoRec	rec = {
		.kind = IP_UNDO_UPDATE,.cid = home->cid,.forward = home->forward,
		.saved = (h->state & IP_ROW_OVERLAID) ? row_buffers.body[to] : NULL
	};

	rec.flags |= home->flags & IP_HOME_KEYS ? IP_REC_KEYS : 0;
	rec.flags |= home->flags & IP_HOME_PARTITION ? IP_REC_PARTITION : 0;
	if (home->flags & IP_HOME_PREV_ROW)
	{
		rec.prev_xid = row->xid;
		rec.prev_inserted = (row->state & IP_ROW_INSERTED) != 0;
		rec.prev_ptr = row->ptr;
	}
	if (home->flags & IP_HOME_DELETE)
		rec.kind = IP_UNDO_DELETE;
	else
	{
		if (oldlen > row_buffers.len[from])
			return "row is shorter than the operation expects";
		rec.hdr = row->hdr;
		rec.flags |= row->hdr != h->hdr ? IP_REC_HDR : 0;
		ip_delta_make(&dw, row_buffers.body[to], row_buffers.len[to],
					  row_buffers.body[from], oldlen);
		rec.delta = delta;
		rec.deltalen = dw.p - delta;
	}
	ip_undo_rec_put_home(w, h->ptr.block, h->xid, h->off, &rec);
	return dw.bad || w->bad ? "undo record is too long" : NULL;
}

/* Put an undo record at home. */
static const char *
put_record(Page page, OffsetNumber off, const uint8 *bytes, uint32 len)
{
	if ((off <= PageGetMaxOffsetNumber(page) &&
		 ItemIdIsUsed(PageGetItemId(page, off))) || len < IP_HOME_MIN_SZ ||
		!ip_items_resize(page, off, len))
		return "undo record does not fit";
	memcpy((uint8 *) page + ip_item_start(PageGetItemId(page, off)), bytes,
		   len);
	return NULL;
}

/*
 * Write the row of an operation whose body the forward path still has in
 * memory.
 */
static const char *
write_made(Page page, const IpRowHead *h, ByteReader *r, const IpOpContext *ctx)
{
	const char *problem = write_row(page, h->off, h->hdr, h->state, h->xid,
									h->ptr, ctx->made.body, ctx->made.bodylen);

	r->p = ctx->made.end;
	if (problem != NULL || !h->at_home)
		return problem;
	return put_record(page, h->ptr.off, ctx->home, ctx->homelen);
}

/* IP_OP_ROW: one row, which may make its undo record at home. */
static const char *
apply_row(Page page, ByteReader *r, const IpOpContext *ctx)
{
	static uint8 record[BLCKSZ];
	ByteWriter	rw = {record, record + sizeof(record), false};
	IpRowHead	h;
	IpRow		row;
	const char *problem;
	bool		is_made = r->p == ctx->made.start;
	bool		decode;
	bool		derive;
	int			from = row_buffers.last;
	int			to;
	int			len;

	if (!ip_op_read_row(r, ctx, &h))
		return "operation is too short";
	if (h.base == IP_BASE_NONE)
		return write_row(page, h.off, h.hdr, h.state, h.xid, h.ptr, h.body,
						 h.bodylen);
	decode = !is_made;
#ifdef USE_ASSERT_CHECKING
	decode = true;
#endif
	if (!decode)
		return write_made(page, &h, r, ctx);
	problem = load_base(page, h.other, h.base, h.saved, from, &row);
	if (problem)
		return problem;
	to = 1 - from;
	len = ip_delta_apply(r, row_buffers.body[from], row_buffers.len[from],
						 row_buffers.body[to], BLCKSZ);
	if (len < 0)
		return "delta does not fit";
	row_buffers.len[to] = len;
	row_buffers.last = to;
	Assert(!is_made || (r->p == ctx->made.end && len == ctx->made.bodylen &&
						memcmp(ctx->made.body, row_buffers.body[to],
							   len) == 0));
	derive = h.at_home && ctx->home == NULL;
#ifdef USE_ASSERT_CHECKING
	derive = h.at_home;
#endif
	if (derive)
		problem = derive_record(page, &h, &row, from, to, &rw);
	Assert(!h.at_home || ctx->home == NULL ||
		   (ctx->homelen == rw.p - record &&
			memcmp(ctx->home, record, ctx->homelen) == 0));
	if (problem == NULL)
		problem = write_row(page, h.off, h.hdr, h.state, h.xid, h.ptr,
							row_buffers.body[to], len);
	if (problem != NULL || !h.at_home)
		return problem;
	return ctx->home ? put_record(page, h.ptr.off, ctx->home, ctx->homelen) :
		put_record(page, h.ptr.off, record, rw.p - record);
}

/*
 * IP_OP_ROWS, IP_OP_FROZEN_ROWS: new rows with this state.  The forward path
 * still has the rows in memory, and need not decode them again: that would be
 * a third of the cost of COPY's rows here.
 */
static const char *
apply_rows(Page page, ByteReader *r, uint8 state, const IpFormed *rows)
{
	OffsetNumber off = bytes_get_varint(r);
	int			count = bytes_get_u16(r);
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

		if (decode && !ip_op_read_next(r, &row_buffers, &hdr))
			return "row cannot be read";
		if (rows != NULL)
			row = rows[i];
		else
			row = (IpFormed)
		{
			hdr, row_buffers.body[row_buffers.last],
				row_buffers.len[row_buffers.last]
		};
		Assert(row.hdr == hdr &&
			   row.bodylen == row_buffers.len[row_buffers.last] &&
			   memcmp(row.body, row_buffers.body[row_buffers.last],
					  row.bodylen) == 0);
		problem = write_row(page, off + i, row.hdr, state, InvalidTransactionId,
							no_ptr, row.body, row.bodylen);
		if (problem)
			return problem;
	}
	if (!decode)
		r->p = r->end;
	return NULL;
}

/*
 * Undo a change of the row; *result is the row afterwards.  If the record has
 * no delta, the delta follows in r.
 */
static const char *
undo_change(Page page, OffsetNumber off, const IpUndoRec *rec, ByteReader *r,
			IpRestored *result)
{
	ByteReader	own = {rec->delta, rec->delta + rec->deltalen, false};
	int			from = row_buffers.last;
	IpRow		row;
	const char *problem;
	int			len;

	problem = load_base(page, off, rec->saved ? IP_BASE_OVERLAID : IP_BASE_ROW,
						rec->saved, from, &row);
	if (problem != NULL)
		return problem;
	if (rec->kind == IP_UNDO_UPDATE)
	{
		len = ip_delta_apply(rec->delta ? &own : r, row_buffers.body[from],
							 row_buffers.len[from], row_buffers.body[1 - from],
							 BLCKSZ);
		if (len < 0)
			return "delta does not fit";
		row_buffers.len[1 - from] = len;
		row_buffers.last = from = 1 - from;
	}
	result->hdr = (rec->flags & IP_REC_HDR) ? rec->hdr : row.hdr;
	result->body = row_buffers.body[from];
	result->bodylen = row_buffers.len[from];
	return NULL;
}

/*
 * Read what IP_OP_RESTORE makes of the next row, with a body in row_buffers;
 * on entry *result is the previous row.
 */
static const char *
read_restored(Page page, ByteReader *r, IpRestored *result)
{
	uint8		how = bytes_get_u8(r);
	OffsetNumber off = result->off + bytes_get_varint(r);
	IpUndoRec	rec = {.kind = IP_UNDO_DELETE};
	IpRow		row;
	uint32		len;
	const char *problem = NULL;

	if (!ip_row_is_at(page, off))
		return "no such row";
	if ((problem = ip_row_decode(page, off, &row)) != NULL)
		return problem;
	if (!ip_row_is_changed(&row))
		return "row is not as the operation expects";
	if (how & IP_RESTORE_HOME)
		problem = read_record(page, row.ptr, &rec);
	if (how & IP_RESTORE_HDR)
	{
		rec.flags = IP_REC_HDR;
		rec.hdr = bytes_get_u16(r);
	}
	if (how & IP_RESTORE_SAVED)
		rec.saved = bytes_get(r, IP_VERSION_BLOCK_SZ);
	if (how & IP_RESTORE_DELTA)
		rec.kind = IP_UNDO_UPDATE;
	if (problem == NULL)
		problem = undo_change(page, off, &rec, r, result);
	result->off = off;
	result->state = (how & IP_RESTORE_DEFAULT) ?
		ip_state_insert_default() : ip_state_freeze();
	len = (how & IP_RESTORE_LEN) ? bytes_get_varint(r) : result->bodylen;
	if (problem == NULL && (r->bad || len > result->bodylen))
		problem = "operation does not fit the row";
	result->bodylen = len;
	return problem;
}

/*
 * IP_OP_RESTORE: roll back the rows' last changes.  The forward path still has
 * the resulting rows in memory.
 */
static const char *
apply_restore(Page page, ByteReader *r, const IpOpContext *ctx)
{
	uint32		len = bytes_get_u16(r);
	const uint8 *bytes = bytes_get(r, len);
	ByteReader	rows = {bytes, bytes + len, r->bad};
	IpRestored	row = {0};
	IpPtr		no_ptr = {0, 0};
	bool		derive = ctx->restored == NULL;
	const char *problem;

#ifdef USE_ASSERT_CHECKING
	derive = true;
#endif
	for (int i = 0; derive ? rows.p < rows.end : i < ctx->nrestored; i++)
	{
		if (derive && (problem = read_restored(page, &rows, &row)) != NULL)
			return problem;
		Assert(ctx->restored == NULL ||
			   (i < ctx->nrestored &&
				row.off == ctx->restored[i].off &&
				row.hdr == ctx->restored[i].hdr &&
				row.state == ctx->restored[i].state &&
				row.bodylen == ctx->restored[i].bodylen &&
				memcmp(row.body, ctx->restored[i].body, row.bodylen) == 0));
		if (ctx->restored != NULL)
			row = ctx->restored[i];
		problem = write_row(page, row.off, row.hdr, row.state,
							InvalidTransactionId, no_ptr, row.body,
							row.bodylen);
		if (problem != NULL)
			return problem;
	}
	return NULL;
}

/* IP_OP_FREEZE: freeze rows whose newest versions are visible to all. */
static const char *
apply_freeze(Page page, BlockNumber block, ByteReader *r)
{
	int			into = row_buffers.last;
	OffsetNumber off = InvalidOffsetNumber;
	IpPtr		no_ptr = {0, 0};

	for (uint32 n = bytes_get_varint(r); n > 0 && !r->bad; n--)
	{
		uint32		step = bytes_get_varint(r);
		uint32		cut = (step & IP_FREEZE_LEN) ? bytes_get_varint(r) :
			PG_UINT32_MAX;
		const uint8 *saved = (step & IP_FREEZE_SAVED) ?
			bytes_get(r, IP_VERSION_BLOCK_SZ) : NULL;
		IpRow		row;
		uint32		len;
		const char *problem;

		off += step >> IP_FREEZE_BITS;
		if (r->bad)
			break;
		problem = load_base(page, off, saved ? IP_BASE_OVERLAID : IP_BASE_OTHER,
							saved, into, &row);
		if (problem != NULL)
			return problem;
		len = (step & IP_FREEZE_LEN) ? cut : row.bodylen;
		if (!ip_row_may_freeze(row.state) || len > row.bodylen ||
			((row.state & IP_ROW_OVERLAID) && saved == NULL &&
			 row.ptr.block != block))
			return "row is not as the operation expects";
		problem = write_row(page, off, row.hdr, ip_state_freeze(),
							InvalidTransactionId, no_ptr,
							row_buffers.body[into], len);
		if (problem != NULL)
			return problem;
	}
	return NULL;
}

/* ---- pages and items ----------------------------------------------------- */

/* See IP_DECOY_BLOCK. */
static void
put_decoy(Page page)
{
	HeapTupleHeader tuple = (HeapTupleHeader) (page + IP_DECOY_START);

	memset(tuple, 0, IP_DECOY_SIZE);
	ItemIdSetNormal(PageGetItemId(page, FirstOffsetNumber), IP_DECOY_START,
					IP_DECOY_LENGTH);
	HeapTupleHeaderSetXmin(tuple, FrozenTransactionId);
	HeapTupleHeaderSetXmax(tuple, MaxMultiXactId);
	ItemPointerSet(&tuple->t_ctid, IP_DECOY_BLOCK, FirstOffsetNumber);
	tuple->t_infomask = HEAP_XMIN_FROZEN | HEAP_XMAX_IS_MULTI;

	/*
	 * makes heap_get_root_tuples read xmax, before it takes the rows' items
	 * for the starts of chains, which would lead out of the page
	 */
	tuple->t_infomask2 = HEAP_HOT_UPDATED;
	tuple->t_hoff = IP_DECOY_SIZE;
}

static void
init_page(Page page, BlockNumber block, IpPageKind kind)
{
	bool		decoy = block == IP_DECOY_BLOCK;

	PageInit(page, BLCKSZ, sizeof(IpSpecial) + (decoy ? IP_DECOY_SIZE : 0));
	ip_items_begin();
	IpPageGetSpecial(page)->kind = kind;
	IpPageGetSpecial(page)->magic = IP_PAGE_MAGIC;
	if (decoy)
	{
		((PageHeader) page)->pd_lower += sizeof(ItemIdData);
		put_decoy(page);
	}
}

/*
 * Initialise a metapage.  If it was one before, it keeps its lock sets if
 * these are sound.
 */
static void
init_meta(Page page, BlockNumber block)
{
	IpMeta	   *meta = IpPageGetMeta(page);

	if (!ip_page_has_sound_locks(page))
		init_page(page, block, IP_PAGE_META);
	meta->nruns = 0;
	for (int i = 0; i < IP_UNDO_SLOTS; i++)
	{
		meta->slots[i].entry = InvalidBlockNumber;
		meta->slots[i].npages = 0;
	}
	((PageHeader) page)->pd_lower = (char *) meta->runs - (char *) page;
}

static void
raise_newest(IpSpecial *special, IpXid xid)
{
	special->u.undo.newest_xid = Max(special->u.undo.newest_xid, xid);
}

static const char *
apply_undo(Page page, ByteReader *r, const IpOpContext *ctx)
{
	PageHeader	ph = (PageHeader) page;
	IpSpecial  *special = IpPageGetSpecial(page);
	OffsetNumber row_off = bytes_get_varint(r);
	uint8		kind = bytes_get_u8(r);
	uint8		flags = bytes_get_u8(r);
	uint32		taillen = bytes_get_varint(r);
	const uint8 *tail = bytes_get(r, taillen);
	uint8		head[IP_REC_MAX_START];
	uint32		headlen;
	uint32		len;
	uint8	   *item;
	IpUndoRec	rec;
	const char *problem;
	bool		decode = (flags & IP_REC_PREV) || (kind & IP_KIND_SKIP);

	headlen = ip_undo_rec_start(head, special, kind, flags, ctx->xid,
								ctx->data_block, row_off);
	len = headlen + taillen;
	if (r->bad)
		return "operation is too short";
	if (len + sizeof(ItemIdData) > ip_page_free(page))
		return "undo record does not fit";
	ph->pd_upper -= len;
	ip_item_set(PageGetItemId(page, PageGetMaxOffsetNumber(page) + 1),
				ph->pd_upper, len);
	ph->pd_lower += sizeof(ItemIdData);
	item = (uint8 *) page + ph->pd_upper;
	memcpy(item, head, headlen);
	memcpy(item + headlen, tail, taillen);

	/* many records have only the xid of their change */
	raise_newest(special, ip_xid_after(ip_undo_xid_base(special), ctx->xid));
#ifdef USE_ASSERT_CHECKING
	decode = true;
#endif
	if (!decode)
		return NULL;
	problem = ip_undo_rec_decode(page, ctx->undo_block, item, len, &rec);
	if (problem)
		return problem;
	raise_newest(special, rec.prev_xid);
	for (int i = 0; rec.has_skip && i < rec.skip.n; i++)
		raise_newest(special, rec.skip.xid[i]);
	return NULL;
}

static const char *
apply_dead(Page page, ByteReader *r, const IpOpContext *ctx)
{
	OffsetNumber off = bytes_get_varint(r);

	if (!ip_items_resize(page, off, 0))
		return "no such row";
	PageGetItemId(page, off)->lp_len = ctx->dead_until;
	return NULL;
}

static const char *
apply_unused(Page page, ByteReader *r)
{
	OffsetNumber max = PageGetMaxOffsetNumber(page);

	for (uint32 n = bytes_get_varint(r); n > 0 && !r->bad; n--)
	{
		OffsetNumber off = bytes_get_varint(r);

		if (off < FirstOffsetNumber || off > max ||
			!ItemIdIsDead(PageGetItemId(page, off)))
			return "item is not dead";
		ItemIdSetUnused(PageGetItemId(page, off));
	}
	ip_items_trim(page);
	return NULL;
}

static const char *
apply_drop(Page page, ByteReader *r)
{
	OffsetNumber max = PageGetMaxOffsetNumber(page);

	for (uint32 n = bytes_get_varint(r); n > 0 && !r->bad; n--)
	{
		OffsetNumber off = bytes_get_varint(r);
		ItemId		lp;

		if (off < FirstOffsetNumber || off > max)
			return "no such undo record";
		lp = PageGetItemId(page, off);
		if (!ip_item_is_undo(page, lp) || !ip_items_resize(page, off, 0))
			return "no such undo record";
		ItemIdSetUnused(lp);
	}
	ip_items_trim(page);
	return NULL;
}

static void
set_changer(IpSpecial *special, TransactionId xid, CommandId cid)
{
	special->u.data.change_xid = xid;
	special->w.data.change_cid = cid;
}

/* Clear the default changer.  Its list of moves is removed first. */
static const char *
clear_changer(Page page, IpSpecial *special)
{
	if (!ip_moves_drop(page))
		return "list of moves cannot be removed";
	set_changer(special, InvalidTransactionId, 0);
	ip_row_clear_changed(page);
	return NULL;
}

static bool
put_move(Page page, OffsetNumber off, ByteReader *r)
{
	OffsetNumber list = bytes_get_varint(r);
	bool		keys = bytes_get_u8(r) != 0;
	BlockNumber block = bytes_get_varint(r);
	ItemPointerData forward;

	ItemPointerSet(&forward, block, bytes_get_varint(r));
	return ip_moves_add(page, list, off, &forward, keys);
}

/*
 * Apply a deletion or move, by the default changer, of a row without a version
 * block.
 */
static const char *
apply_changed(Page page, ByteReader *r, bool moved)
{
	OffsetNumber off = bytes_get_varint(r);
	ItemId		lp = PageGetItemId(page, off);
	uint8	   *item;

	if (off < FirstOffsetNumber || off > PageGetMaxOffsetNumber(page) ||
		!ip_item_is_ours(lp) || !ip_item_is_inside(page, lp))
		return "no such row";
	item = (uint8 *) page + ip_item_start(lp);
	/* an undo record at home has that bit too */
	if (item[IP_ROW_STATE] & IP_ROW_VERSION)
		return "row is not as the operation expects";
	item[IP_ROW_STATE] = ip_state_change(item[IP_ROW_STATE], moved);
	return !moved || put_move(page, off, r) ? NULL : "list of moves does not fit";
}

static void
set_default(IpSpecial *special, TransactionId xid, CommandId cid)
{
	special->u.data.default_xid = xid;
	special->u.data.default_cid = cid;
}

static void
init_data(Page page, BlockNumber block, ByteReader *r)
{
	init_page(page, block, IP_PAGE_DATA);
	IpPageGetSpecial(page)->w.data.xid_base =
		bytes_get_u64(r) >> IP_DATA_BASE_SHIFT;
	((PageHeader) page)->pd_prune_xid = ip_hint_of(FrozenTransactionId);
}

static void
init_undo(Page page, BlockNumber block, ByteReader *r)
{
	IpSpecial  *special;

	init_page(page, block, IP_PAGE_UNDO);
	special = IpPageGetSpecial(page);
	special->u.undo.newest_xid = bytes_get_u64(r);
	special->w.undo_base =
		(uint32) (special->u.undo.newest_xid - IP_UNDO_XIDS_BEFORE);
	special->u.undo.slot = bytes_get_u16(r);
	special->u.undo.flags = bytes_get_u16(r);
	special->u.undo.next = bytes_get_u32(r);
}

static void
apply_ring(IpSpecial *special, ByteReader *r)
{
	special->u.undo.next = bytes_get_u32(r);
	special->u.undo.flags = bytes_get_u16(r);
}

static void
apply_slot(IpMeta *meta, ByteReader *r)
{
	uint16		slot = bytes_get_u16(r);
	IpMetaSlot *ms = &meta->slots[slot % IP_UNDO_SLOTS];

	ms->entry = bytes_get_u32(r);
	ms->npages = bytes_get_u32(r);
}

static void
apply_undo_pages(Page page, ByteReader *r)
{
	BlockNumber first = bytes_get_u32(r);

	ip_runs_set(page, first, bytes_get_u32(r));
}

/* I23: the state after a prune is known only when it has been applied. */
static void
apply_keys(Page page, IpSpecial *special, uint8 keys)
{
	if ((keys & IP_KEYS_QUIET) && !ip_map_is_frozen(page))
		keys &= ~IP_KEYS_QUIET;
	special->keys = keys;
}

static void
apply_visible(Page page)
{
	if (!ip_map_is_visible(page))
		return;
	PageSetAllVisible(page);
	((PageHeader) page)->pd_prune_xid = InvalidTransactionId;
}

static const char *
apply_lock_op(Page page, BlockNumber block, IpOp op, ByteReader *r)
{
	if (op == IP_OP_LOCK)
		return ip_lockset_apply(page, r);
	if (op == IP_OP_INIT_LOCK)
	{
		init_page(page, block, IP_PAGE_LOCK);
		IpPageGetSpecial(page)->w.number = bytes_get_varint(r);
	}
	else if (op == IP_OP_LOCK_PAGE)
		IpPageGetSpecial(page)->u.data.lock_page = bytes_get_varint(r);
	else
		IpPageGetSpecial(page)->u.lock.lost = bytes_get_u64(r);
	return NULL;
}

static const char *
apply_op(Page page, BlockNumber block, IpOp op, ByteReader *r, IpOpContext *ctx)
{
	IpSpecial  *special = PageIsNew(page) ? NULL : IpPageGetSpecial(page);

	switch (op)
	{
		case IP_OP_INIT_META:
			init_meta(page, block);
			return NULL;
		case IP_OP_INIT_DATA:
			init_data(page, block, r);
			return NULL;
		case IP_OP_INIT_UNDO:
			init_undo(page, block, r);
			return NULL;
		case IP_OP_DEFAULT:
			set_default(special, ctx->xid, bytes_get_varint(r));
			return NULL;
		case IP_OP_CLEAR_DEFAULT:
			set_default(special, InvalidTransactionId, 0);
			ip_row_clear_default(page);
			return NULL;
		case IP_OP_CHANGER:
			set_changer(special, ctx->xid, bytes_get_varint(r));
			return NULL;
		case IP_OP_CLEAR_CHANGER:
			return clear_changer(page, special);
		case IP_OP_CHANGED:
		case IP_OP_MOVED:
			return apply_changed(page, r, op == IP_OP_MOVED);
		case IP_OP_DROP:
			return apply_drop(page, r);
		case IP_OP_RESTORE:
			return apply_restore(page, r, ctx);
		case IP_OP_FREEZE:
			return apply_freeze(page, block, r);
		case IP_OP_KEYS:
			apply_keys(page, special, bytes_get_u8(r));
			return NULL;
		case IP_OP_BASE:
			special->w.data.xid_base = bytes_get_u64(r) >> IP_DATA_BASE_SHIFT;
			return NULL;
		case IP_OP_ROW:
			return apply_row(page, r, ctx);
		case IP_OP_ROWS:
		case IP_OP_FROZEN_ROWS:
			return apply_rows(page, r,
							  op == IP_OP_ROWS ?
							  ip_state_insert_default() :
							  ip_state_freeze(),
							  ctx->rows);
		case IP_OP_UNUSED:
			return apply_unused(page, r);
		case IP_OP_DECOY:
			put_decoy(page);
			return NULL;
		case IP_OP_XID:
			ctx->xid = bytes_get_u32(r);
			return NULL;
		case IP_OP_DEAD:
			return apply_dead(page, r, ctx);
		case IP_OP_UNDO:
			return apply_undo(page, r, ctx);
		case IP_OP_INIT_FREE:
			init_page(page, block, IP_PAGE_FREE);
			return NULL;
		case IP_OP_INIT_LOCK:
		case IP_OP_LOCK:
		case IP_OP_LOCK_PAGE:
		case IP_OP_LOST:
			return apply_lock_op(page, block, op, r);
		case IP_OP_VISIBLE:
			apply_visible(page);
			return NULL;
		case IP_OP_RING:
			apply_ring(special, r);
			return NULL;
		case IP_OP_SLOT:
			apply_slot(IpPageGetMeta(page), r);
			return NULL;
		case IP_OP_UNDO_PAGES:
			apply_undo_pages(page, r);
			return NULL;
	}
	return "unknown operation";
}

/*
 * Returns whether the operation changes data that the metapage's checksum
 * covers, and the checksum was right.  Replay may find a damaged page, which
 * must not look sound afterwards.
 */
static bool
changes_sealed(Page page, IpOp op)
{
	return op == IP_OP_INIT_META ||
		((op == IP_OP_SLOT || op == IP_OP_UNDO_PAGES) &&
		 ip_runs_problem(page) == NULL);
}

/*
 * Note that xid has changed the data page: once it is removable, there may be
 * something to prune.
 */
static void
note_change(Page page, TransactionId xid)
{
	PageHeader	ph = (PageHeader) page;

	if (TransactionIdIsValid(xid) &&
		IpPageGetSpecial(page)->kind == IP_PAGE_DATA &&
		(ph->pd_prune_xid == InvalidTransactionId ||
		 ph->pd_prune_xid == ip_hint_of(FrozenTransactionId)))
		ph->pd_prune_xid = ip_hint_of(xid);
}

#ifdef USE_ASSERT_CHECKING
/*
 * apply_op, with a check, if the page was sound, that the operation is one of
 * the arrows between its items' states (I25).
 */
static const char *
apply_watched(Page page, BlockNumber block, IpOp op, ByteReader *r,
			  IpOpContext *ctx)
{
	static IpItemStates before;
	bool		is_data = !PageIsNew(page) &&
		IpPageGetSpecial(page)->kind == IP_PAGE_DATA && op != IP_OP_INIT_FREE;
	const char *problem;

	if (is_data)
		ip_state_note(page, &before);
	problem = apply_op(page, block, op, r, ctx);
	if (problem == NULL && is_data && !ip_state_may_follow(&before, op, page))
		problem = "an item's state cannot follow from the one before";
	return problem;
}
#endif

/* watched: in a build with assertions, the page was sound and is checked. */
static const char *
apply_ops(Page page, BlockNumber block, const uint8 *ops, uint32 len,
		  IpOpContext *ctx, bool watched)
{
	ByteReader	r = {ops, ops + len, false};
	TransactionId xid = ctx->xid;
	bool		seals = false;

	ip_items_begin();
	while (r.p < r.end)
	{
		IpOp		op = bytes_get_u8(&r);
		const char *problem;

		seals = seals || changes_sealed(page, op);
#ifdef USE_ASSERT_CHECKING
		problem = watched ? apply_watched(page, block, op, &r, ctx) :
			apply_op(page, block, op, &r, ctx);
#else
		problem = apply_op(page, block, op, &r, ctx);
#endif
		if (problem == NULL && r.bad)
			problem = "operation is too short";
		if (problem)
			return problem;
	}
	note_change(page, ctx->xid);
	/* IP_OP_XID is valid for this block only */
	ctx->xid = xid;
	if (seals)
		ip_runs_seal(page);
	return ip_items_end(page) ? NULL : "items overlap";
}

const char *
ip_page_apply(Page page, BlockNumber block, const uint8 *ops, uint32 len,
			  IpOpContext *ctx)
{
#ifdef USE_ASSERT_CHECKING
	static uint64 changes;
	bool		was_sound = page_change_is_checked(&changes, 2000) &&
		ip_page_problem(page, block) == NULL;
	const char *problem;

	Assert(CritSectionCount > 0 || InRecovery); /* I11 */
	Assert(ip_page_is_locked(page, true));	/* I10 */
	problem = apply_ops(page, block, ops, len, ctx, was_sound);
	/* I20; the result of changing a damaged page is undefined */
	if (problem == NULL && was_sound)
		problem = ip_page_problem(page, block);
	return problem;
#else
	return apply_ops(page, block, ops, len, ctx, false);
#endif
}
