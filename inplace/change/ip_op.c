/*-------------------------------------------------------------------------
 * ip_op.c
 *	  Building page operations.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "ip_delta.h"
#include "ip_op.h"
#include "ip_state.h"
#include "ip_xid.h"

void
ip_op_simple(ByteWriter *w, IpOp op)
{
	Assert(op == IP_OP_INIT_META || op == IP_OP_INIT_FREE ||
		   op == IP_OP_CLEAR_DEFAULT || op == IP_OP_CLEAR_CHANGER ||
		   op == IP_OP_DECOY || op == IP_OP_VISIBLE);
	bytes_put_u8(w, op);
}

void
ip_op_init_data(ByteWriter *w, uint64 xid_base)
{
	Assert((xid_base & ((1 << IP_DATA_BASE_SHIFT) - 1)) == 0);
	bytes_put_u8(w, IP_OP_INIT_DATA);
	bytes_put_u64(w, xid_base);
}

void
ip_op_init_undo(ByteWriter *w, uint64 newest_xid, uint16 slot, uint16 flags,
				BlockNumber next)
{
	Assert(slot < IP_UNDO_SLOTS);
	Assert((flags & ~IP_UNDO_CURRENT) == 0);
	bytes_put_u8(w, IP_OP_INIT_UNDO);
	bytes_put_u64(w, newest_xid);
	bytes_put_u16(w, slot);
	bytes_put_u16(w, flags);
	bytes_put_u32(w, next);
}

void
ip_op_init_lock(ByteWriter *w, uint32 number)
{
	bytes_put_u8(w, IP_OP_INIT_LOCK);
	bytes_put_varint(w, number);
}

void
ip_op_default(ByteWriter *w, CommandId cid)
{
	bytes_put_u8(w, IP_OP_DEFAULT);
	bytes_put_varint(w, cid);
}

void
ip_op_base(ByteWriter *w, uint64 xid_base)
{
	Assert((xid_base & ((1 << IP_DATA_BASE_SHIFT) - 1)) == 0);
	bytes_put_u8(w, IP_OP_BASE);
	bytes_put_u64(w, xid_base);
}

void
ip_op_xid(ByteWriter *w, TransactionId xid)
{
	bytes_put_u8(w, IP_OP_XID);
	bytes_put_u32(w, xid);
}

static void
put_home(ByteWriter *w, const IpHomeOp *home)
{
	bytes_put_u8(w, home->flags);
	if (home->flags & IP_HOME_CID)
		bytes_put_varint(w, home->cid);
	if (home->flags & IP_HOME_FORWARD)
	{
		bytes_put_varint(w, ItemPointerGetBlockNumber(&home->forward));
		bytes_put_varint(w, ItemPointerGetOffsetNumber(&home->forward));
	}
	if (home->flags & IP_HOME_LEN)
		bytes_put_varint(w, home->oldlen);
}

/*
 * Write the delta from the base to the new body.  The caller may know that
 * both are the same, or have the delta from the new body back to the base.
 */
static void
put_delta(ByteWriter *w, const IpRowOp *op)
{
	if (op->body == op->from && op->bodylen == op->fromlen)
		ip_delta_make_none(w);
	else if (op->back != NULL)
		ip_delta_invert(w, op->body, op->bodylen, op->back, op->backlen);
	else
		ip_delta_make(w, op->from, op->fromlen, op->body, op->bodylen);
}

IpRowMade
ip_op_row(ByteWriter *w, const IpRowOp *op)
{
	IpRowMade	made = {w->p + 1, NULL, op->body, op->bodylen};
	uint8		how = op->base;

	Assert(OffsetNumberIsValid(op->off));
	Assert(op->bodylen >= IP_ROW_MIN_BODY);
	Assert((op->base == IP_BASE_OVERLAID) == (op->saved != NULL));
	Assert(!op->saved_at_home || op->saved != NULL);
	Assert((op->base == IP_BASE_NONE) == (op->from == NULL));
	Assert(op->home_off == 0 || (op->own_xid && op->undo_off == 0));
	Assert(op->home_off == 0 || op->base == IP_BASE_ROW ||
		   op->base == IP_BASE_OVERLAID);
	Assert(!(op->state & IP_ROW_OVERLAID) || (op->state & IP_ROW_VERSION));
	Assert(!op->own_xid || (op->state & IP_ROW_VERSION));
	if (op->own_xid)
		how |= IP_OP_OWN_XID;
	if (op->undo_off != 0)
		how |= IP_OP_OWN_UNDO;
	if (op->home_off != 0)
		how |= IP_OP_HOME;
	if (op->saved_at_home)
		how |= IP_OP_SAVED_AT_HOME;
	bytes_put_u8(w, IP_OP_ROW);
	bytes_put_varint(w, op->off);
	bytes_put_u16(w, op->hdr);
	bytes_put_u8(w, op->state);
	bytes_put_u8(w, how);
	if (op->state & IP_ROW_VERSION)
	{
		if (!op->own_xid)
			bytes_put_u32(w, op->xid);
		if (op->home_off != 0)
			bytes_put_varint(w, op->home_off);
		else if (op->undo_off != 0)
			bytes_put_varint(w, op->undo_off);
		else
		{
			bytes_put_varint(w, op->ptr.block);
			bytes_put_varint(w, op->ptr.off);
		}
	}
	if (op->base == IP_BASE_OVERLAID && !op->saved_at_home)
		bytes_put(w, op->saved, IP_VERSION_BLOCK_SZ);
	if (op->base == IP_BASE_OTHER)
		bytes_put_varint(w, op->other);
	if (op->home_off != 0)
		put_home(w, &op->home);
	if (op->base == IP_BASE_NONE)
	{
		bytes_put_varint(w, op->bodylen);
		bytes_put(w, op->body, op->bodylen);
	}
	else
		put_delta(w, op);
	made.end = w->p;
	return made;
}

uint8 *
ip_op_rows_begin(ByteWriter *w, OffsetNumber off, bool frozen)
{
	uint8	   *count_at;

	Assert(OffsetNumberIsValid(off) && off <= IP_MAX_ROWS_PER_PAGE);	/* I1 */
	bytes_put_u8(w, frozen ? IP_OP_FROZEN_ROWS : IP_OP_ROWS);
	bytes_put_varint(w, off);
	count_at = w->p;
	bytes_put_u16(w, 0);
	return count_at;
}

void
ip_op_rows_add(ByteWriter *w, uint16 hdr, const uint8 *body, uint32 bodylen,
			   uint16 prev_hdr, const uint8 *prev, uint32 prevlen)
{
	uint8		how = (prev == NULL || hdr != prev_hdr) ? IP_ROWS_HDR : 0;
	uint8	   *start = w->p;

	Assert(bodylen >= IP_ROW_MIN_BODY);
	if (prev != NULL)
	{
		bytes_put_u8(w, how | IP_ROWS_DELTA);
		if (how & IP_ROWS_HDR)
			bytes_put_u16(w, hdr);
		ip_delta_make_quick(w, prev, prevlen, body, bodylen);
		if (!w->bad && w->p - start < bodylen + 2)
			return;
		w->p = start;
	}
	bytes_put_u8(w, how);
	if (how & IP_ROWS_HDR)
		bytes_put_u16(w, hdr);
	bytes_put_varint(w, bodylen);
	bytes_put(w, body, bodylen);
}

void
ip_op_rows_end(ByteWriter *w, uint8 *begin, uint16 count)
{
	Assert(count > 0 && count <= IP_MAX_ROWS_PER_PAGE);
	if (!w->bad)
		memcpy(begin, &count, sizeof(count));
}

void
ip_op_dead(ByteWriter *w, OffsetNumber off)
{
	Assert(OffsetNumberIsValid(off));
	bytes_put_u8(w, IP_OP_DEAD);
	bytes_put_varint(w, off);
}

void
ip_op_changer(ByteWriter *w, CommandId change_cid)
{
	bytes_put_u8(w, IP_OP_CHANGER);
	bytes_put_varint(w, change_cid);
}

void
ip_op_changed(ByteWriter *w, OffsetNumber off)
{
	Assert(OffsetNumberIsValid(off));
	bytes_put_u8(w, IP_OP_CHANGED);
	bytes_put_varint(w, off);
}

void
ip_op_moved(ByteWriter *w, OffsetNumber off, OffsetNumber list,
			const ItemPointerData *forward, bool keys)
{
	Assert(OffsetNumberIsValid(off) && OffsetNumberIsValid(list) &&
		   off != list);
	bytes_put_u8(w, IP_OP_MOVED);
	bytes_put_varint(w, off);
	bytes_put_varint(w, list);
	bytes_put_u8(w, keys);
	bytes_put_varint(w, ItemPointerGetBlockNumber(forward));
	bytes_put_varint(w, ItemPointerGetOffsetNumber(forward));
}

static void
put_offsets(ByteWriter *w, IpOp op, const OffsetNumber *offs, int n)
{
	Assert(n > 0);
	bytes_put_u8(w, op);
	bytes_put_varint(w, n);
	for (int i = 0; i < n; i++)
	{
		Assert(i == 0 || offs[i] > offs[i - 1]);
		bytes_put_varint(w, offs[i]);
	}
}

void
ip_op_unused(ByteWriter *w, const OffsetNumber *offs, int n)
{
	put_offsets(w, IP_OP_UNUSED, offs, n);
}

void
ip_op_drop(ByteWriter *w, const OffsetNumber *offs, int n)
{
	put_offsets(w, IP_OP_DROP, offs, n);
}

void
ip_op_freeze(ByteWriter *w, const IpFrozen *rows, int n)
{
	OffsetNumber off = InvalidOffsetNumber;

	Assert(n > 0);
	bytes_put_u8(w, IP_OP_FREEZE);
	bytes_put_varint(w, n);
	for (int i = 0; i < n; i++)
	{
		uint8		flags;

		Assert(rows[i].off > off);
		flags = (rows[i].bodylen > 0 ? IP_FREEZE_LEN : 0) |
			(rows[i].has_saved ? IP_FREEZE_SAVED : 0);
		bytes_put_varint(w, (uint32) (rows[i].off - off) << IP_FREEZE_BITS |
						 flags);
		if (rows[i].bodylen > 0)
			bytes_put_varint(w, rows[i].bodylen);
		if (rows[i].has_saved)
			bytes_put(w, rows[i].saved, IP_VERSION_BLOCK_SZ);
		off = rows[i].off;
	}
}

void
ip_op_keys(ByteWriter *w, uint8 keys)
{
	Assert(keys == 0 || keys == IP_KEYS_STALE ||
		   keys == (IP_KEYS_STALE | IP_KEYS_QUIET));
	bytes_put_u8(w, IP_OP_KEYS);
	bytes_put_u8(w, keys);
}

uint8 *
ip_op_restore_begin(ByteWriter *w)
{
	uint8	   *begin;

	bytes_put_u8(w, IP_OP_RESTORE);
	begin = w->p;
	bytes_put_u16(w, 0);
	return begin;
}

void
ip_op_restore_add(ByteWriter *w, uint8 how, OffsetNumber prev_off,
				  OffsetNumber off, uint16 hdr, const uint8 *saved,
				  const uint8 *delta, uint32 deltalen, uint32 bodylen)
{
	Assert(off > prev_off && off <= IP_MAX_ROWS_PER_PAGE);
	Assert(!(how & IP_RESTORE_HOME) ||
		   !(how & (IP_RESTORE_HDR | IP_RESTORE_SAVED | IP_RESTORE_DELTA)));
	bytes_put_u8(w, how);
	bytes_put_varint(w, off - prev_off);
	if (how & IP_RESTORE_HDR)
		bytes_put_u16(w, hdr);
	if (how & IP_RESTORE_SAVED)
		bytes_put(w, saved, IP_VERSION_BLOCK_SZ);
	if (how & IP_RESTORE_DELTA)
		bytes_put(w, delta, deltalen);
	if (how & IP_RESTORE_LEN)
		bytes_put_varint(w, bodylen);
}

void
ip_op_restore_end(ByteWriter *w, uint8 *begin)
{
	uint32		len = w->p - begin - sizeof(uint16);
	uint16		stored = len;

	w->bad |= len > PG_UINT16_MAX;
	if (!w->bad)
		memcpy(begin, &stored, sizeof(stored));
}

void
ip_op_undo(ByteWriter *w, OffsetNumber row_off, uint8 kind, uint8 flags,
		   const uint8 *tail, uint32 taillen)
{
	Assert(OffsetNumberIsValid(row_off) && taillen < BLCKSZ);
	bytes_put_u8(w, IP_OP_UNDO);
	bytes_put_varint(w, row_off);
	bytes_put_u8(w, kind);
	bytes_put_u8(w, flags);
	bytes_put_varint(w, taillen);
	bytes_put(w, tail, taillen);
}

void
ip_op_lock(ByteWriter *w, int set, OffsetNumber off, bool fresh,
		   BlockNumber block, uint8 mode, IpXid xid)
{
	Assert(set >= 0 && OffsetNumberIsValid(off));
	bytes_put_u8(w, IP_OP_LOCK);
	bytes_put_varint(w, set);
	bytes_put_varint(w, off);
	bytes_put_u8(w, fresh);
	if (!fresh)
		return;
	bytes_put_varint(w, block);
	bytes_put_u8(w, mode);
	bytes_put_u64(w, xid);
}

void
ip_op_lock_page(ByteWriter *w, BlockNumber block)
{
	bytes_put_u8(w, IP_OP_LOCK_PAGE);
	bytes_put_varint(w, block);
}

void
ip_op_lost(ByteWriter *w, IpXid xid)
{
	bytes_put_u8(w, IP_OP_LOST);
	bytes_put_u64(w, xid);
}

void
ip_op_ring(ByteWriter *w, BlockNumber next, uint16 flags)
{
	Assert((flags & ~(IP_UNDO_CURRENT | IP_LOCK_CONTINUED)) == 0);
	bytes_put_u8(w, IP_OP_RING);
	bytes_put_u32(w, next);
	bytes_put_u16(w, flags);
}

void
ip_op_slot(ByteWriter *w, uint16 slot, BlockNumber current, uint32 npages)
{
	Assert(slot < IP_UNDO_SLOTS);
	Assert(current != InvalidBlockNumber || npages == 0);
	bytes_put_u8(w, IP_OP_SLOT);
	bytes_put_u16(w, slot);
	bytes_put_u32(w, current);
	bytes_put_u32(w, npages);
}

void
ip_op_undo_pages(ByteWriter *w, BlockNumber first, uint32 n)
{
	Assert(first != IP_META_BLOCK && first != InvalidBlockNumber);
	bytes_put_u8(w, IP_OP_UNDO_PAGES);
	bytes_put_u32(w, first);
	bytes_put_u32(w, n);
}

/* ---- reading operations with rows ---------------------------------------- */

static void
read_home(ByteReader *r, IpHomeOp *home)
{
	memset(home, 0, sizeof(*home));
	home->flags = bytes_get_u8(r);
	if (home->flags & IP_HOME_CID)
		home->cid = bytes_get_varint(r);
	if (home->flags & IP_HOME_FORWARD)
	{
		BlockNumber block = bytes_get_varint(r);

		ItemPointerSet(&home->forward, block, bytes_get_varint(r));
	}
	if (home->flags & IP_HOME_LEN)
		home->oldlen = bytes_get_varint(r);
}

bool
ip_op_read_row(ByteReader *r, const IpOpContext *ctx, IpRowHead *h)
{
	uint8		how;

	h->off = bytes_get_varint(r);
	h->hdr = bytes_get_u16(r);
	h->state = bytes_get_u8(r);
	how = bytes_get_u8(r);
	h->base = how & IP_OP_BASE_MASK;
	h->xid = ctx->xid;
	h->ptr = (IpPtr)
	{
		ctx->undo_block, 0
	};
	h->saved = NULL;
	h->at_home = (how & IP_OP_HOME) != 0;
	if (h->at_home)
		h->ptr.block = ctx->data_block;
	if (h->state & IP_ROW_VERSION)
	{
		if (!(how & IP_OP_OWN_XID))
			h->xid = bytes_get_u32(r);
		if (!(how & (IP_OP_OWN_UNDO | IP_OP_HOME)))
			h->ptr.block = bytes_get_varint(r);
		h->ptr.off = bytes_get_varint(r);
	}
	if (h->base == IP_BASE_OVERLAID && !(how & IP_OP_SAVED_AT_HOME))
		h->saved = bytes_get(r, IP_VERSION_BLOCK_SZ);
	h->other = h->base == IP_BASE_OTHER ? bytes_get_varint(r) : h->off;
	if (h->at_home)
		read_home(r, &h->home);
	h->body = NULL;
	if (h->base == IP_BASE_NONE)
	{
		h->bodylen = bytes_get_varint(r);
		h->body = bytes_get(r, h->bodylen);
	}
	return !r->bad;
}

bool
ip_op_read_next(ByteReader *r, IpRowBuffers *b, uint16 *hdr)
{
	uint8		how = bytes_get_u8(r);
	int			to = 1 - b->last;
	const uint8 *bytes;
	int			len;

	if (how & IP_ROWS_HDR)
		*hdr = bytes_get_u16(r);
	if (how & IP_ROWS_DELTA)
		len = ip_delta_apply(r, b->body[b->last], b->len[b->last], b->body[to],
							 BLCKSZ);
	else
	{
		len = bytes_get_varint(r);
		bytes = len <= BLCKSZ ? bytes_get(r, len) : NULL;
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

/* ---- new rows ------------------------------------------------------------ */

void
ip_op_new_rows_begin(IpNewRows *n, const uint8 *ops, uint32 len)
{
	n->ops = (ByteReader)
	{
		ops, ops + len, false
	};
	n->left = 0;
	n->buffers.last = 0;
}

/*
 * Advance to the next row; false if there are no more rows, or the operations
 * are of another kind.  alone->body is set if the row is the only one of its
 * operation.
 */
static bool
find_new_row(IpNewRows *n, IpRowHead *alone)
{
	static const IpOpContext ctx = {
		InvalidTransactionId, InvalidBlockNumber, InvalidBlockNumber
	};

	alone->body = NULL;
	while (n->left == 0)
	{
		if (n->ops.bad || n->ops.p >= n->ops.end)
			return false;
		n->buffers.len[n->buffers.last] = 0;
		switch ((IpOp) bytes_get_u8(&n->ops))
		{
			case IP_OP_INIT_DATA:
			case IP_OP_BASE:
			case IP_OP_LOST:
				(void) bytes_get_u64(&n->ops);
				break;
			case IP_OP_DEFAULT:
			case IP_OP_LOCK_PAGE:
				(void) bytes_get_varint(&n->ops);
				break;
			case IP_OP_ROW:
				return ip_op_read_row(&n->ops, &ctx, alone) &&
					alone->body != NULL;
			case IP_OP_ROWS:
			case IP_OP_FROZEN_ROWS:
				(void) bytes_get_varint(&n->ops);
				n->left = bytes_get_u16(&n->ops);
				break;
			case IP_OP_XID:
				(void) bytes_get_u32(&n->ops);
				break;
			case IP_OP_KEYS:
				(void) bytes_get_u8(&n->ops);
				break;
			case IP_OP_CLEAR_DEFAULT:
			case IP_OP_CLEAR_CHANGER:
				break;
			case IP_OP_CHANGER:
			case IP_OP_CHANGED:
			case IP_OP_MOVED:
			case IP_OP_DROP:
			case IP_OP_RESTORE:
			case IP_OP_FREEZE:
			case IP_OP_INIT_META:
			case IP_OP_INIT_UNDO:
			case IP_OP_DEAD:
			case IP_OP_UNDO:
			case IP_OP_INIT_LOCK:
			case IP_OP_LOCK:
			case IP_OP_RING:
			case IP_OP_SLOT:
			case IP_OP_UNDO_PAGES:
			case IP_OP_DECOY:
			case IP_OP_VISIBLE:
			case IP_OP_UNUSED:
			case IP_OP_INIT_FREE:
				return false;	/* no record whose new rows are decoded has
								 * these */
		}
	}
	n->left--;
	return true;
}

const uint8 *
ip_op_new_rows_next(IpNewRows *n, uint32 *len)
{
	IpRowBuffers *b = &n->buffers;
	IpRowHead	alone;
	uint16		hdr = 0;

	if (!find_new_row(n, &alone))
		return NULL;
	if (alone.body != NULL)
	{
		*len = alone.bodylen;
		return alone.body;
	}
	if (!ip_op_read_next(&n->ops, b, &hdr))
		return NULL;
	*len = b->len[b->last];
	return b->body[b->last];
}

/* ---- operations that put a new row on a page ----------------------------- */

void
ip_op_put_init(ByteWriter *w)
{
	ip_op_init_data(w, ip_xid_data_base(ip_xid_next()));
}

OffsetNumber
ip_op_put_offset(Buffer buffer, bool init)
{
	return init ? IpFirstOffset(BufferGetBlockNumber(buffer)) :
		ip_page_free_offset(BufferGetPage(buffer), InvalidOffsetNumber);
}

IpInserter
ip_op_put_inserter(ByteWriter *w, Page page, bool init, TransactionId xid,
				   CommandId cid)
{
	IpSpecial  *special;

	Assert(init || ip_page_is_locked(page, true));
	if (init)
		ip_op_put_init(w);
	if (!TransactionIdIsValid(xid))
		return IP_INSERTER_NONE;
	if (!init)
	{
		special = IpPageGetSpecial(page);
		if (special->u.data.default_xid == xid &&
			special->u.data.default_cid == cid)
			return IP_INSERTER_DEFAULT;
		if (TransactionIdIsValid(special->u.data.default_xid))
			return IP_INSERTER_OWN;
	}
	ip_op_default(w, cid);
	return IP_INSERTER_DEFAULT;
}

void
ip_op_put_row(ByteWriter *w, IpInserter inserter, OffsetNumber off,
			  const IpFormed *row, CommandId cid, OffsetNumber other,
			  const uint8 *from, uint32 fromlen)
{
	IpRowOp		op = {
		.off = off,.hdr = row->hdr,.body = row->body,.bodylen = row->bodylen,
		.base = OffsetNumberIsValid(other) ? IP_BASE_OTHER : IP_BASE_NONE,
		.other = other,.from = from,.fromlen = fromlen
	};

	Assert(OffsetNumberIsValid(off) && off <= IP_MAX_ROWS_PER_PAGE);	/* I1 */
	if (inserter == IP_INSERTER_DEFAULT)
		op.state = ip_state_insert_default();
	else if (inserter == IP_INSERTER_OWN)
	{
		op.state = ip_state_insert();
		op.own_xid = true;
		op.ptr = ip_ptr_cid(cid);
	}
	ip_op_row(w, &op);
}
