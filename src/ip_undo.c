/*-------------------------------------------------------------------------
 * ip_undo.c
 *	  Undo records: reading and writing one.
 *-------------------------------------------------------------------------
 */
#include "ip_compat.h"

#include "ip_space.h"
#include "ip_undo.h"
#include "ip_xid.h"

/* No xid of a record is newer than its page says. */
static bool
xids_are_old(const IpUndoRec *rec, IpXid newest)
{
	return !IpXidIsFinal(rec->xid) && rec->xid <= newest &&
		(!(rec->flags & IP_REC_PREV) || (!IpXidIsFinal(rec->prev_xid) && rec->prev_xid <= newest));
}

const char *
ip_undo_item(Page page, IpPtr ptr, uint8 *buf, IpUndoRec *rec, bool *found)
{
	PageHeader	ph = (PageHeader) page;
	IpXid		newest = IpPageGetSpecial(page)->u.undo.newest_xid;
	const char *problem;
	ItemId		lp;
	uint32		len;

	*found = false;
	if (ptr.off < FirstOffsetNumber || ptr.off > PageGetMaxOffsetNumber(page))
		return NULL;
	lp = PageGetItemId(page, ptr.off);
	len = ItemIdGetLength(lp);
	if (!ip_item_is_ours(lp) || ip_item_start(lp) < ph->pd_upper ||
		ip_item_start(lp) + len > ph->pd_special)
		return "item reaches outside of the page's item space";
	memcpy(buf, page + ip_item_start(lp), len);
	*found = true;
	problem = ip_undo_decode(ptr.block, ip_undo_xid_base(IpPageGetSpecial(page)), buf, len, rec);
	/* nobody must ask what became of a transaction that is still to come */
	return problem == NULL && !xids_are_old(rec, newest) ? "bad transaction id" : problem;
}

Buffer
ip_undo_lock(Relation rel, BlockNumber block, int mode)
{
	volatile IpSpecial *special;
	Buffer		buffer;
	uint16		kind;

	/* VACUUM may have cut off the page, as it may have been recycled */
	if (block == IP_META_BLOCK || block == InvalidBlockNumber || !ip_block_exists(rel, block))
		return InvalidBuffer;
	buffer = ip_read_buffer(rel, block);
	special = (IpSpecial *) (BufferGetPage(buffer) + BLCKSZ - sizeof(IpSpecial));
	kind = special->kind;
	/* a standby waits for a page that replay is restoring: nobody holds another one there */
	if (kind == IP_PAGE_DATA || kind == IP_PAGE_FREE || (kind == 0 && !RecoveryInProgress()))
	{
		ReleaseBuffer(buffer);
		return InvalidBuffer;
	}
	LockBuffer(buffer, mode);
	return buffer;
}

bool
ip_undo_find(Relation rel, IpPtr ptr, const ItemPointerData *row, uint8 *buf, IpUndoRec *rec,
			 const char **problem)
{
	bool		found = false;
	Buffer		buffer = ip_undo_lock(rel, ptr.block, BUFFER_LOCK_SHARE);
	Page		page;

	*problem = NULL;
	if (!BufferIsValid(buffer))
		return false;
	page = BufferGetPage(buffer);
	if (!PageIsNew(page) && !ip_page_is_ours(page))
		*problem = "its page is not of an inplace table";
	else if (!PageIsNew(page) && IpPageGetSpecial(page)->kind == IP_PAGE_UNDO)
		*problem = ip_undo_item(page, ptr, buf, rec, &found);
	UnlockReleaseBuffer(buffer);
	return found && *problem == NULL &&
		(row == NULL || ItemPointerEquals(&rec->row, unconstify(ItemPointerData *, row)));
}

bool
ip_undo_read(Relation rel, IpPtr ptr, const ItemPointerData *row, uint8 *buf, IpUndoRec *rec)
{
	const char *problem;
	bool		found = ip_undo_find(rel, ptr, row, buf, rec, &problem);

	if (problem)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("corrupted undo record (%u,%u) of relation \"%s\": %s",
						ptr.block, ptr.off, RelationGetRelationName(rel), problem),
				 errhint("Run inplace_check('%s') to find all damage.",
						 RelationGetRelationName(rel))));
	return found;
}

void
ip_undo_put(IpWriter *w, BlockNumber undo_block, TransactionId xid, OffsetNumber row_off,
			const IpUndoSpec *spec)
{
	uint8		tail[BLCKSZ];
	IpWriter	t = {tail, tail + sizeof(tail), false};
	uint8		kind = spec->kind;
	uint8		flags = spec->flags;

	if (spec->cid != 0)
	{
		kind |= IP_KIND_CID;
		ip_put_varint(&t, spec->cid);
	}
	if (!IpXidIsFinal(spec->prev_xid))
	{
		flags |= IP_REC_PREV | (spec->prev_inserted ? IP_REC_PREV_INSERTED : 0);
		ip_put_zigzag(&t, (int32) ((TransactionId) spec->prev_xid - xid));
		if (spec->prev_inserted)
			ip_put_varint(&t, spec->prev_ptr.block);
		else
		{
			ip_put_zigzag(&t, (int32) (spec->prev_ptr.block - undo_block));
			ip_put_varint(&t, spec->prev_ptr.off);
		}
	}
	if (spec->saved)
	{
		flags |= IP_REC_SAVED;
		ip_put_bytes(&t, spec->saved, IP_VERSION_BLOCK_SZ);
	}
	if (spec->hdr_differs)
	{
		flags |= IP_REC_HDR;
		ip_put_u16(&t, spec->hdr);
	}
	if (ItemPointerIsValid(&spec->forward))
	{
		flags |= IP_REC_FORWARD;
		ip_put_u32(&t, ItemPointerGetBlockNumber(&spec->forward));
		ip_put_u16(&t, ItemPointerGetOffsetNumber(&spec->forward));
	}
	if (spec->kind == IP_UNDO_LOCK)
	{
		ip_put_u32(&t, spec->locker);
		ip_put_u8(&t, spec->mode);
	}
	ip_put_bytes(&t, spec->delta, spec->deltalen);
	if (t.bad)
		elog(ERROR, "undo record of an inplace table is too long");
	ip_op_undo(w, row_off, kind, flags, tail, t.p - tail);
}
