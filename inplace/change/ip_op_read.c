/*-------------------------------------------------------------------------
 * ip_op_read.c
 *	  Reading page operations with rows.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "ip_delta.h"
#include "ip_op_read.h"

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
		len = ip_delta_apply(r, b->body[b->last], b->len[b->last], b->body[to], BLCKSZ);
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

/* ---- new rows ---------------------------------------------------------------- */

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

/* Go to the next row; false if the operations have no more, or are others.  alone->body: if it is alone in its operation. */
static bool
find_new_row(IpNewRows *n, IpRowHead *alone)
{
	static const IpOpContext ctx = {InvalidTransactionId, InvalidBlockNumber, InvalidBlockNumber};

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
				return ip_op_read_row(&n->ops, &ctx, alone) && alone->body != NULL;
			case IP_OP_ROWS:
			case IP_OP_FINAL_ROWS:
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
				return false;	/* no record with new rows to be decoded has
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
