/*-------------------------------------------------------------------------
 * ip_put.c
 *	  Operations that put a new row on a page.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "ip_put.h"
#include "ip_xid.h"

void
ip_put_init(ByteWriter *w)
{
	ip_op_init_data(w, ip_xid_data_base(ip_xid_next()));
}

OffsetNumber
ip_put_offset(Buffer buffer, bool init)
{
	return init ? IpFirstOffset(BufferGetBlockNumber(buffer)) :
		ip_page_free_offset(BufferGetPage(buffer), InvalidOffsetNumber);
}

IpInserter
ip_put_inserter(ByteWriter *w, Page page, bool init, TransactionId xid, CommandId cid)
{
	IpSpecial  *special;

	Assert(init || ip_page_is_locked(page, true));
	if (init)
		ip_put_init(w);
	if (!TransactionIdIsValid(xid))
		return IP_INSERTER_NONE;
	if (!init)
	{
		special = IpPageGetSpecial(page);
		if (special->u.data.default_xid == xid && special->u.data.default_cid == cid)
			return IP_INSERTER_DEFAULT;
		if (TransactionIdIsValid(special->u.data.default_xid))
			return IP_INSERTER_OWN;
	}
	ip_op_default(w, cid);
	return IP_INSERTER_DEFAULT;
}

void
ip_put_row(ByteWriter *w, IpInserter inserter, OffsetNumber off, const IpFormed *row,
		   CommandId cid, OffsetNumber other, const uint8 *from, uint32 fromlen)
{
	IpRowOp		op = {
		.off = off,.hdr = row->hdr,.body = row->body,.bodylen = row->bodylen,
		.base = OffsetNumberIsValid(other) ? IP_BASE_OTHER : IP_BASE_NONE,
		.other = other,.from = from,.fromlen = fromlen
	};

	Assert(OffsetNumberIsValid(off) && off <= IP_MAX_ROWS_PER_PAGE);	/* I1 */
	if (inserter == IP_INSERTER_DEFAULT)
		op.state = IP_ROW_DEFAULT;
	else if (inserter == IP_INSERTER_OWN)
	{
		op.state = IP_ROW_VERSION | IP_ROW_INSERTED;
		op.own_xid = true;
		op.ptr = ip_ptr_cid(cid);
	}
	ip_op_row(w, &op);
}
