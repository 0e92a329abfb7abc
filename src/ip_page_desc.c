/*-------------------------------------------------------------------------
 * ip_page_desc.c
 *	  Operations in words, for pg_walinspect and the server's own messages.
 *
 * pg_waldump cannot load resource managers.
 *-------------------------------------------------------------------------
 */
#include "ip_compat.h"

#include "ip_page.h"

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
		if (!(how & IP_ROW_OWN_XID))
			(void) ip_get_u32(r);
		if (!(how & IP_ROW_OWN_UNDO))
			(void) ip_get_varint(r);
		(void) ip_get_varint(r);
	}
	if ((how & IP_ROW_BASE_MASK) == IP_BASE_OVERLAID)
		(void) ip_get_bytes(r, IP_VERSION_BLOCK_SZ);
	start = r->p;
	skip_delta(r);
	appendStringInfo(buf, "%s %u natts %u state 0x%02X delta %d bytes",
					 bases[how & IP_ROW_BASE_MASK], off, hdr & IP_HDR_NATTS_MASK, state,
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

		if (how & IP_ROWS_HDR)
			(void) ip_get_u16(r);
		if (how & IP_ROWS_DELTA)
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
