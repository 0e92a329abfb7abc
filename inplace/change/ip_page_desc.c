/*-------------------------------------------------------------------------
 * ip_page_desc.c
 *	  Text descriptions of operations, for pg_walinspect and the server's
 *	  messages.
 *
 * pg_waldump cannot load resource managers.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "ip_op.h"
#include "ip_page_desc.h"

static void
skip_delta(ByteReader *r)
{
	uint32		nhunks = bytes_get_varint(r);

	for (; nhunks > 0 && !r->bad; nhunks--)
	{
		uint32		ins;

		(void) bytes_get_varint(r);
		ins = bytes_get_varint(r);
		if (ins & 1)
			(void) bytes_get_varint(r);
		(void) bytes_get(r, ins >> 1);
	}
}

static void
desc_row(StringInfo buf, ByteReader *r)
{
	static const char *const bases[] = {
		"put row", "change row", "change overlaid row", "put"
	};
	static const IpOpContext ctx = {
		InvalidTransactionId, InvalidBlockNumber, InvalidBlockNumber
	};
	const uint8 *start;
	IpRowHead	h;

	r->bad |= !ip_op_read_row(r, &ctx, &h);
	if (r->bad)
		return;
	appendStringInfo(buf, "%s %u", bases[h.base], h.off);
	if (h.base == IP_BASE_OVERLAID && h.saved == NULL)
		appendStringInfoString(buf, " by its undo record");
	if (h.base == IP_BASE_OTHER)
		appendStringInfo(buf, " like row %u", h.other);
	start = r->p;
	if (h.base != IP_BASE_NONE)
		skip_delta(r);
	appendStringInfo(buf, " natts %u state 0x%02X %s %d bytes",
					 h.hdr & IP_HDR_NATTS_MASK, h.state,
					 h.base == IP_BASE_NONE ? "body" : "delta",
					 h.base == IP_BASE_NONE ? (int) h.bodylen :
					 (int) (r->p - start));
	if (h.at_home)
		appendStringInfo(buf, " undo at home %u", h.ptr.off);
}

static void
desc_offsets(StringInfo buf, ByteReader *r, const char *what)
{
	uint32		n = bytes_get_varint(r);

	appendStringInfoString(buf, what);
	for (; n > 0 && !r->bad; n--)
		appendStringInfo(buf, " %u", bytes_get_varint(r));
}

static void
desc_rows(StringInfo buf, ByteReader *r)
{
	uint32		off = bytes_get_varint(r);
	uint16		count = bytes_get_u16(r);

	appendStringInfo(buf, "put %u rows from %u on", count, off);
	for (; count > 0 && !r->bad; count--)
	{
		uint8		how = bytes_get_u8(r);

		if (how & IP_ROWS_HDR)
			(void) bytes_get_u16(r);
		if (how & IP_ROWS_DELTA)
			skip_delta(r);
		else
			(void) bytes_get(r, bytes_get_varint(r));
	}
}

static void
desc_restore(StringInfo buf, ByteReader *r)
{
	uint32		len = bytes_get_u16(r);
	const uint8 *bytes = bytes_get(r, len);
	ByteReader	rows = {bytes, bytes + len, r->bad};
	uint32		off = 0;

	appendStringInfoString(buf, "roll back rows");
	while (!rows.bad && rows.p < rows.end)
	{
		uint8		how = bytes_get_u8(&rows);

		off += bytes_get_varint(&rows);
		if (how & IP_RESTORE_HDR)
			(void) bytes_get_u16(&rows);
		if (how & IP_RESTORE_SAVED)
			(void) bytes_get(&rows, IP_VERSION_BLOCK_SZ);
		if (how & IP_RESTORE_DELTA)
			skip_delta(&rows);
		if (how & IP_RESTORE_LEN)
			(void) bytes_get_varint(&rows);
		appendStringInfo(buf, " %u%s", off, (how & IP_RESTORE_HOME) ? "h" : "");
	}
	r->bad |= rows.bad;
}

static void
desc_freeze(StringInfo buf, ByteReader *r)
{
	uint32		n = bytes_get_varint(r);
	uint32		off = 0;

	appendStringInfoString(buf, "freeze rows");
	for (; n > 0 && !r->bad; n--)
	{
		uint32		step = bytes_get_varint(r);

		off += step >> IP_FREEZE_BITS;
		if (step & IP_FREEZE_LEN)
			(void) bytes_get_varint(r);
		if (step & IP_FREEZE_SAVED)
			(void) bytes_get(r, IP_VERSION_BLOCK_SZ);
		appendStringInfo(buf, " %u", off);
	}
}

static void
desc_undo(StringInfo buf, ByteReader *r)
{
	static const char *const kinds[] = {"?", "?", "update", "delete"};
	uint32		off = bytes_get_varint(r);
	uint8		kind = bytes_get_u8(r);
	uint8		flags = bytes_get_u8(r);
	uint32		taillen;

	kind &= IP_KIND_MASK;
	taillen = bytes_get_varint(r);
	(void) bytes_get(r, taillen);
	appendStringInfo(buf, "undo %s of row %u, flags 0x%02X, %u bytes",
					 kinds[kind <= IP_UNDO_DELETE ? kind : 0], off, flags,
					 taillen);
}

static void
desc_init_undo(StringInfo buf, ByteReader *r)
{
	uint64		newest = bytes_get_u64(r);
	uint16		slot = bytes_get_u16(r);
	uint16		flags = bytes_get_u16(r);

	appendStringInfo(buf, "init undo page, newest xid " UINT64_FORMAT " slot %u flags %u next %u",
					 newest, slot, flags, bytes_get_u32(r));
}

static void
desc_slot(StringInfo buf, ByteReader *r)
{
	uint16		slot = bytes_get_u16(r);
	BlockNumber entry = bytes_get_u32(r);

	appendStringInfo(buf, "slot %u entry %u pages %u", slot, entry,
					 bytes_get_u32(r));
}

static void
desc_ring(StringInfo buf, ByteReader *r)
{
	BlockNumber next = bytes_get_u32(r);

	appendStringInfo(buf, "ring next %u flags %u", next, bytes_get_u16(r));
}

static void
desc_undo_pages(StringInfo buf, ByteReader *r)
{
	BlockNumber first = bytes_get_u32(r);

	appendStringInfo(buf, "undo pages from %u on: %u", first, bytes_get_u32(r));
}

static void
desc_meta(StringInfo buf, ByteReader *r, IpOp op)
{
	if (op == IP_OP_SLOT)
		desc_slot(buf, r);
	else
		desc_undo_pages(buf, r);
}

static void
desc_lock(StringInfo buf, ByteReader *r, IpOp op)
{
	OffsetNumber off;
	uint32		set;

	if (op == IP_OP_LOST)
	{
		appendStringInfo(buf, "sets before xid " UINT64_FORMAT " lost",
						 bytes_get_u64(r));
		return;
	}
	set = bytes_get_varint(r);
	if (op == IP_OP_LOCK_PAGE)
	{
		appendStringInfo(buf, "lock page %u", set);
		return;
	}
	off = bytes_get_varint(r);
	appendStringInfo(buf, "lock row %u in set %u", off, set);
	if (bytes_get_u8(r) != 0)
	{
		BlockNumber block = bytes_get_varint(r);
		uint8		mode = bytes_get_u8(r);

		appendStringInfo(buf, ", of block %u, mode %u, xid " UINT64_FORMAT,
						 block, mode, bytes_get_u64(r));
	}
}

static void
desc_moved(StringInfo buf, ByteReader *r)
{
	OffsetNumber off = bytes_get_varint(r);
	OffsetNumber list = bytes_get_varint(r);
	bool		keys = bytes_get_u8(r) != 0;
	BlockNumber block = bytes_get_varint(r);

	appendStringInfo(buf, "move row %u to (%u,%u)%s, list %u", off, block,
					 (OffsetNumber) bytes_get_varint(r), keys ? ", keys" : "",
					 list);
}

static void
desc_op(StringInfo buf, IpOp op, ByteReader *r)
{
	switch (op)
	{
		case IP_OP_INIT_META:
		case IP_OP_CLEAR_DEFAULT:
		case IP_OP_CLEAR_CHANGER:
		case IP_OP_DECOY:
		case IP_OP_VISIBLE:
		case IP_OP_INIT_FREE:
			appendStringInfoString(buf, ip_page_desc_name(op));
			return;
		case IP_OP_INIT_LOCK:
			appendStringInfo(buf, "init lock page, number %u",
							 (uint32) bytes_get_varint(r));
			return;
		case IP_OP_INIT_DATA:
			appendStringInfo(buf, "init data page, xid base " UINT64_FORMAT,
							 bytes_get_u64(r));
			return;
		case IP_OP_INIT_UNDO:
			desc_init_undo(buf, r);
			return;
		case IP_OP_DEFAULT:
			appendStringInfo(buf, "default inserter, cid %u",
							 bytes_get_varint(r));
			return;
		case IP_OP_CHANGER:
			appendStringInfo(buf, "default deleter, cid %u",
							 bytes_get_varint(r));
			return;
		case IP_OP_CHANGED:
			appendStringInfo(buf, "delete row %u", bytes_get_varint(r));
			return;
		case IP_OP_MOVED:
			desc_moved(buf, r);
			return;
		case IP_OP_DROP:
			desc_offsets(buf, r, "drop undo records");
			return;
		case IP_OP_RESTORE:
			desc_restore(buf, r);
			return;
		case IP_OP_FREEZE:
			desc_freeze(buf, r);
			return;
		case IP_OP_KEYS:
			appendStringInfo(buf, "changed keys %u", bytes_get_u8(r));
			return;
		case IP_OP_BASE:
			appendStringInfo(buf, "xid base " UINT64_FORMAT, bytes_get_u64(r));
			return;
		case IP_OP_ROW:
			desc_row(buf, r);
			return;
		case IP_OP_ROWS:
		case IP_OP_FROZEN_ROWS:
			desc_rows(buf, r);
			return;
		case IP_OP_UNUSED:
			desc_offsets(buf, r, "unused items");
			return;
		case IP_OP_XID:
			appendStringInfo(buf, "xid %u", bytes_get_u32(r));
			return;
		case IP_OP_DEAD:
			appendStringInfo(buf, "row %u dead", bytes_get_varint(r));
			return;
		case IP_OP_UNDO:
			desc_undo(buf, r);
			return;
		case IP_OP_LOCK:
		case IP_OP_LOCK_PAGE:
		case IP_OP_LOST:
			desc_lock(buf, r, op);
			return;
		case IP_OP_RING:
			desc_ring(buf, r);
			return;
		case IP_OP_SLOT:
		case IP_OP_UNDO_PAGES:
			desc_meta(buf, r, op);
			return;
	}
	appendStringInfo(buf, "unknown operation %d", op);
	r->bad = true;
}

IpOp
ip_page_desc_next(StringInfo buf, ByteReader *r)
{
	IpOp		op = bytes_get_u8(r);

	desc_op(buf, op, r);
	return op;
}

const char *
ip_page_desc_name(IpOp op)
{
	static const char *const names[] = {
		[IP_OP_INIT_META] = "init metapage",
		[IP_OP_INIT_DATA] = "init data page",
		[IP_OP_INIT_UNDO] = "init undo page",
		[IP_OP_DEFAULT] = "default inserter",
		[IP_OP_CLEAR_DEFAULT] = "clear default inserter",
		[IP_OP_BASE] = "xid base",[IP_OP_ROW] = "row",[IP_OP_DEAD] = "dead",
		[IP_OP_UNDO] = "undo",[IP_OP_INIT_LOCK] = "init lock page",
		[IP_OP_RING] = "ring",[IP_OP_SLOT] = "slot",[IP_OP_ROWS] = "rows",
		[IP_OP_FROZEN_ROWS] = "frozen rows",[IP_OP_XID] = "xid",
		[IP_OP_UNUSED] = "unused",[IP_OP_INIT_FREE] = "init free page",
		[IP_OP_CHANGER] = "default changer",
		[IP_OP_CLEAR_CHANGER] = "clear default changer",
		[IP_OP_CHANGED] = "changed",[IP_OP_DROP] = "drop",
		[IP_OP_RESTORE] = "restore",[IP_OP_FREEZE] = "freeze",
		[IP_OP_KEYS] = "changed keys",[IP_OP_UNDO_PAGES] = "undo pages",
		[IP_OP_MOVED] = "moved",[IP_OP_DECOY] = "decoy",[IP_OP_LOCK] = "lock",
		[IP_OP_LOCK_PAGE] = "lock page",[IP_OP_LOST] = "lost",
		[IP_OP_VISIBLE] = "all-visible"
	};

	return op > 0 && op < lengthof(names) && names[op] ? names[op] : "unknown";
}

void
ip_page_desc(StringInfo buf, const uint8 *ops, uint32 len)
{
	ByteReader	r = {ops, ops + len, false};
	const char *sep = "";

	while (r.p < r.end && !r.bad)
	{
		appendStringInfoString(buf, sep);
		(void) ip_page_desc_next(buf, &r);
		sep = "; ";
	}
}
