/*-------------------------------------------------------------------------
 * ip_page_apply_row.c
 *	  Applying the operations that put, change, roll back and freeze rows.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "ip_delta.h"
#include "ip_items.h"
#include "ip_page_apply_row.h"
#include "ip_state.h"
#include "ip_undo_rec.h"

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

const char *
ip_page_apply_row(Page page, ByteReader *r, const IpOpContext *ctx)
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
 * The forward path still has the rows in memory, and need not decode them
 * again, which would be a third of the cost of COPY's rows here.
 */
const char *
ip_page_apply_rows(Page page, ByteReader *r, uint8 state, const IpFormed *rows)
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

/* The forward path still has the resulting rows in memory. */
const char *
ip_page_apply_restore(Page page, ByteReader *r, const IpOpContext *ctx)
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

const char *
ip_page_apply_freeze(Page page, BlockNumber block, ByteReader *r)
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
