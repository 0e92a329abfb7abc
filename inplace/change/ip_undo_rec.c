/*-------------------------------------------------------------------------
 * ip_undo_rec.c
 *	  Undo records: the one writer and the one reader of their bytes.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "pagedelta_shift.h"

#include "ip_undo_rec.h"

/* ---- writing ------------------------------------------------------------- */

static void
put_skip(ByteWriter *t, BlockNumber block, TransactionId xid,
		 const IpUndoSkip *skip)
{
	bytes_put_varint(t, skip->newlen);
	bytes_put_varint(t, skip->index);
	bytes_put_u8(t, skip->n);
	for (int i = 0; i < skip->n; i++)
	{
		bytes_put_zigzag(t, (int32) (skip->ptr[i].block - block));
		bytes_put_varint(t, skip->ptr[i].off);
		bytes_put_zigzag(t, (int32) ((TransactionId) skip->xid[i] - xid));
	}
}

/* Write the record's tail; set in *kind and *flags what the tail has. */
static void
put_tail(ByteWriter *t, BlockNumber block, TransactionId xid,
		 const IpUndoRec *rec, uint8 *kind, uint8 *flags)
{
	*kind = rec->kind;
	*flags = rec->flags;
	if (rec->cid != 0)
	{
		*kind |= IP_KIND_CID;
		bytes_put_varint(t, rec->cid);
	}
	if (!IpXidIsFrozen(rec->prev_xid))
	{
		*flags |= IP_REC_PREV | (rec->prev_inserted ? IP_REC_PREV_INSERTED : 0);
		bytes_put_zigzag(t, (int32) ((TransactionId) rec->prev_xid - xid));
		if (rec->prev_inserted)
			bytes_put_varint(t, rec->prev_ptr.block);
		else
		{
			bytes_put_zigzag(t, (int32) (rec->prev_ptr.block - block));
			bytes_put_varint(t, rec->prev_ptr.off);
		}
	}
	if (rec->saved)
	{
		*flags |= IP_REC_SAVED;
		bytes_put(t, rec->saved, IP_VERSION_BLOCK_SZ);
	}
	if (*flags & IP_REC_HDR)
		bytes_put_u16(t, rec->hdr);
	if (ItemPointerIsValid(&rec->forward))
	{
		*flags |= IP_REC_FORWARD;
		bytes_put_u32(t, ItemPointerGetBlockNumber(&rec->forward));
		bytes_put_u16(t, ItemPointerGetOffsetNumber(&rec->forward));
	}
	if (rec->has_skip)
	{
		*kind |= IP_KIND_SKIP;
		put_skip(t, block, xid, &rec->skip);
	}
	bytes_put(t, rec->delta, rec->deltalen);
}

/* Size of the previous version's xid, block and offset. */
#define MAX_PREV	(5 + 5 + 3)

uint32
ip_undo_rec_space(const IpUndoRec *rec, bool saved)
{
	uint32		size = IP_REC_MAX_START + MAX_PREV + rec->deltalen +
		sizeof(ItemIdData);

	size += rec->cid != 0 ? 5 : 0;
	size += saved ? IP_VERSION_BLOCK_SZ : 0;
	size += rec->flags & IP_REC_HDR ? 2 : 0;
	size += ItemPointerIsValid(&rec->forward) ? 6 : 0;
	size += rec->has_skip ? IP_REC_MAX_SKIP : 0;
	return size;
}

void
ip_undo_rec_put(ByteWriter *w, BlockNumber undo_block, TransactionId xid,
				OffsetNumber row_off, const IpUndoRec *rec)
{
	uint8		tail[BLCKSZ];
	ByteWriter	t = {tail, tail + sizeof(tail), false};
	uint8		kind;
	uint8		flags;

	Assert(rec->kind == IP_UNDO_UPDATE || rec->kind == IP_UNDO_DELETE);
	Assert(TransactionIdIsNormal(xid));
	Assert((rec->deltalen == 0 && !rec->has_skip) ||
		   rec->kind == IP_UNDO_UPDATE);
	Assert(!(rec->flags & IP_REC_HDR) || rec->kind == IP_UNDO_UPDATE);
	Assert(!ItemPointerIsValid(&rec->forward) ||
		   (rec->kind == IP_UNDO_DELETE && !(rec->flags & IP_REC_PARTITION)));
	put_tail(&t, undo_block, xid, rec, &kind, &flags);
	if (t.bad)
		elog(ERROR, "undo record of an inplace table is too long");
	Assert(IP_REC_MAX_START + (t.p - tail) + sizeof(ItemIdData) <=
		   ip_undo_rec_space(rec, rec->saved != NULL));
	ip_op_undo(w, row_off, kind, flags, tail, t.p - tail);
}

void
ip_undo_rec_put_home(ByteWriter *w, BlockNumber block, TransactionId xid,
					 OffsetNumber row_off, const IpUndoRec *rec)
{
	uint8	   *start = w->p;
	uint16		stored;
	uint8		kind;
	uint8		flags;

	Assert(rec->kind == IP_UNDO_UPDATE || rec->kind == IP_UNDO_DELETE);
	Assert(!rec->has_skip && TransactionIdIsNormal(xid));
	bytes_put_u16(w, 0);
	bytes_put_u8(w, IP_STATE_UNDO);
	bytes_put_u32(w, xid);
	bytes_put_varint(w, row_off);
	put_tail(w, block, xid, rec, &kind, &flags);
	if (w->bad)
		return;
	stored = IpRecStore(kind, flags);
	memcpy(start, &stored, sizeof(stored));
}

uint32
ip_undo_rec_start(uint8 *start, const IpSpecial *special, uint8 kind,
				  uint8 flags, TransactionId xid, BlockNumber row_block,
				  OffsetNumber row_off)
{
	ByteWriter	w = {start, start + IP_REC_MAX_START, false};

	bytes_put_u16(&w, IpRecStore(kind, flags));
	bytes_put_zigzag(&w, (int32) (xid - ip_undo_xid_origin(special)));
	bytes_put_varint(&w, row_block);
	bytes_put_varint(&w, row_off);
	Assert(!w.bad);
	return w.p - start;
}

/* ---- reading ------------------------------------------------------------- */

/* Read a skip section; false if it has too many pointers. */
static bool
get_skip(ByteReader *r, BlockNumber block, TransactionId xid, uint64 xid_base,
		 IpUndoSkip *skip)
{
	skip->newlen = bytes_get_varint(r);
	skip->index = bytes_get_varint(r);
	skip->n = bytes_get_u8(r);
	if (skip->n > 2)
		return false;
	for (int i = 0; i < skip->n; i++)
	{
		skip->ptr[i].block = block + (uint32) bytes_get_zigzag(r);
		skip->ptr[i].off = bytes_get_varint(r);
		skip->xid[i] = ip_xid_after(xid_base,
									xid + (uint32) bytes_get_zigzag(r));
	}
	return true;
}

/*
 * Read the record up to the row's saved bytes, and its first word as stored.
 * False if there is no record at home.
 */
static pg_attribute_always_inline bool
get_start(ByteReader *r, const IpSpecial *special, BlockNumber block,
		  uint16 *stored, IpUndoRec *rec)
{
	bool		home = special->kind == IP_PAGE_DATA;
	uint64		xid_base = home ? ip_data_xid_base(special) :
		ip_undo_xid_base(special);
	BlockNumber row_block;
	TransactionId xid;
	uint8		kind;

	*stored = bytes_get_u16(r);
	kind = IpRecLoadKind(*stored);
	rec->kind = kind & IP_KIND_MASK;
	rec->flags = IpRecLoadFlags(*stored);
	if (home && bytes_get_u8(r) != IP_STATE_UNDO)
		return false;
	xid = home ? bytes_get_u32(r) :
		ip_undo_xid_origin(special) + (uint32) bytes_get_zigzag(r);
	rec->xid = ip_xid_after(xid_base, xid);
	row_block = home ? block : bytes_get_varint(r);
	ItemPointerSet(&rec->row, row_block, bytes_get_varint(r));
	rec->cid = (kind & IP_KIND_CID) ? bytes_get_varint(r) : 0;
	rec->has_skip = (kind & IP_KIND_SKIP) != 0;
	rec->prev_xid = IP_XID_NONE;
	rec->prev_ptr = ip_ptr_cid(0);
	rec->saved = NULL;
	rec->prev_inserted = false;
	if (rec->flags & IP_REC_PREV)
	{
		rec->prev_xid = ip_xid_after(xid_base,
									 xid + (uint32) bytes_get_zigzag(r));
		rec->prev_inserted = (rec->flags & IP_REC_PREV_INSERTED) != 0;
		if (rec->prev_inserted)
			rec->prev_ptr = ip_ptr_cid(bytes_get_varint(r));
		else
		{
			rec->prev_ptr.block = block + (uint32) bytes_get_zigzag(r);
			rec->prev_ptr.off = bytes_get_varint(r);
		}
	}
	if (rec->flags & IP_REC_SAVED)
		rec->saved = bytes_get(r, IP_VERSION_BLOCK_SZ);
	return true;
}

const char *
ip_undo_rec_decode(Page page, BlockNumber block, const uint8 *item, uint32 len,
				   IpUndoRec *rec)
{
	const IpSpecial *special = IpPageGetSpecial(page);
	bool		home = special->kind == IP_PAGE_DATA;
	ByteReader	r = {item, item + len, false};
	BlockNumber forward;
	uint16		stored;

	if (!get_start(&r, special, block, &stored, rec))
		return "item is not an undo record";
	if (rec->flags & IP_REC_HDR)
		rec->hdr = bytes_get_u16(&r);
	ItemPointerSetInvalid(&rec->forward);
	if (rec->flags & IP_REC_FORWARD)
	{
		forward = bytes_get_u32(&r);
		ItemPointerSet(&rec->forward, forward, bytes_get_u16(&r));
	}
	if (rec->has_skip &&
		(home || rec->kind != IP_UNDO_UPDATE || !(rec->flags & IP_REC_HDR) ||
		 !get_skip(&r, block, (TransactionId) rec->xid,
				   home ? ip_data_xid_base(special) : ip_undo_xid_base(special),
				   &rec->skip)))
		return "undo record has a damaged skip section";
	rec->delta = r.p;
	rec->deltalen = r.end - r.p;
	if (r.bad)
		return "undo record is too short";
	if (rec->has_skip &&
		!pagedelta_shift_is_whole(rec->delta, rec->deltalen, rec->skip.newlen))
		return "undo record of a skip list does not have a whole body";
	if ((stored & IP_HDR_HEAP_MASK) != IP_HDR_HEAP_BITS)
		return "undo record has wrong bits";
	if (!ItemPointerIsValid(&rec->row))
		return "undo record names no row";
	if (rec->kind != IP_UNDO_UPDATE && rec->kind != IP_UNDO_DELETE)
		return "unknown kind of undo record";
	return NULL;
}

bool
ip_undo_rec_decode_saved(Page page, BlockNumber block, const uint8 *item,
						 uint32 len, IpUndoRec *rec)
{
	const IpSpecial *special = IpPageGetSpecial(page);
	ByteReader	r = {item, item + len, false};
	uint16		stored;
	bool		found = get_start(&r, special, block, &stored, rec) &&
		!r.bad && rec->saved != NULL && rec->kind == IP_UNDO_UPDATE &&
		(stored & IP_HDR_HEAP_MASK) == IP_HDR_HEAP_BITS &&
		!(rec->has_skip && special->kind == IP_PAGE_DATA);

	rec->has_skip = false;
	return found;
}
