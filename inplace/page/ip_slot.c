/*-------------------------------------------------------------------------
 * ip_slot.c
 *	  Tuple table slot of inplace tables.
 *
 * A slot has a row body, in its own buffer or borrowed, or only values that
 * the executor put there (ExecStoreVirtualTuple).  Buffers stay with the slot
 * when it is cleared, as the next row will need them again.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/xact.h"
#include "ip_slot.h"
#include "utils/memutils.h"

/* Buffers beyond this size are not kept for the next row */
#define IP_KEEP_BUFFER			(16 * BLCKSZ)

/* Stop borrowing; what the slot refers to is the caller's business */
static inline void
unlink_owner(IpSlot *slot)
{
	if (slot->owner != NULL)
	{
		Assert(slot->owner->borrower == slot);
		slot->owner->borrower = NULL;
		slot->owner = NULL;
	}
}

/* Make the slot hold a row whose values are yet to be deformed */
static inline void
set_body(IpSlot *slot, uint16 hdr, const uint8 *body, uint32 bodylen)
{
	slot->body = body;
	slot->bodylen = bodylen;
	slot->hdr = hdr;
	slot->off = 0;
	slot->scratchused = 0;
	slot->formed = false;
	slot->base.tts_nvalid = 0;
	slot->base.tts_flags &= ~TTS_FLAG_EMPTY;
}

static inline void
set_identity(IpSlot *slot, const ItemPointerData *tid, const IpVersionId *id)
{
	slot->base.tts_tid = *tid;
	slot->has_id = (id != NULL);
	if (id != NULL)
		slot->id = *id;
}

/* Returns whether a value points into the slot's own buffer */
static bool
values_in_buffer(IpSlot *slot, TupleDesc desc, const Datum *values,
				 const bool *isnull)
{
	uintptr_t	start = (uintptr_t) slot->buf;

	for (int i = 0; i < desc->natts; i++)
	{
		if (!isnull[i] && !TupleDescAttr(desc, i)->attbyval &&
			(uintptr_t) DatumGetPointer(values[i]) - start < slot->bufsize)
			return true;
	}
	return false;
}

/* Form a row in the slot's own buffer */
static void
form_in_buffer(IpSlot *slot, TupleDesc desc, const Datum *values,
			   const bool *isnull)
{
	uint32		size = ip_body_size(desc, values, isnull);
	char	   *old = NULL;
	uint16		hdr;

	/*
	 * Values may come from the row that the slot had before: keep it until
	 * the new row is formed.
	 */
	if (values_in_buffer(slot, desc, values, isnull))
	{
		old = slot->buf;
		slot->buf = NULL;
		slot->bufsize = 0;
	}

	ip_body_reserve(slot->base.tts_mcxt, &slot->buf, &slot->bufsize, size);
	hdr = ip_body_form(desc, values, isnull, (uint8 *) slot->buf, size);
	if (old != NULL)
		pfree(old);

	unlink_owner(slot);
	set_body(slot, hdr, (uint8 *) slot->buf, size);
	slot->formed = true;
}

/* Copy a body to the slot's own buffer */
static void
copy_to_buffer(IpSlot *slot, uint16 hdr, const uint8 *body, uint32 bodylen)
{
	Assert((uintptr_t) body - (uintptr_t) slot->buf >= slot->bufsize);

	ip_body_reserve(slot->base.tts_mcxt, &slot->buf, &slot->bufsize,
					bodylen);
	memcpy(slot->buf, body, bodylen);

	unlink_owner(slot);
	set_body(slot, hdr, (uint8 *) slot->buf, bodylen);
}

static void
free_buffer(char **buffer, uint32 *buffersize)
{
	if (*buffer != NULL)
		pfree(*buffer);
	*buffer = NULL;
	*buffersize = 0;
}

/* ---- storing (see ip_row.h) ---------------------------------------------- */

void
ip_slot_store(TupleTableSlot *slot, uint16 hdr, const uint8 *body,
			  uint32 bodylen, const ItemPointerData *tid,
			  const IpVersionId *id)
{
	IpSlot	   *islot = (IpSlot *) slot;

	Assert(SlotIsInplace(slot));

	copy_to_buffer(islot, hdr, body, bodylen);
	set_identity(islot, tid, id);
}

void
ip_slot_borrow(TupleTableSlot *slot, IpSlotOwner *owner, uint16 hdr,
			   const uint8 *body, uint32 bodylen, const ItemPointerData *tid,
			   const IpVersionId *id)
{
	IpSlot	   *islot = (IpSlot *) slot;

	Assert(SlotIsInplace(slot));

	if (unlikely(islot->owner != owner))
	{
		ip_slot_owner_release(owner);
		unlink_owner(islot);
		islot->owner = owner;
		owner->borrower = islot;
	}

	set_body(islot, hdr, body, bodylen);
	set_identity(islot, tid, id);
}

/* ---- slot callbacks ------------------------------------------------------ */

static void
ip_slot_init(TupleTableSlot *slot)
{
	/* all zeros is the right state: no body, no buffers, no owner */
}

static void
ip_slot_release(TupleTableSlot *slot)
{
	IpSlot	   *islot = (IpSlot *) slot;

	unlink_owner(islot);
	islot->body = NULL;
	free_buffer(&islot->buf, &islot->bufsize);
	free_buffer(&islot->scratch, &islot->scratchsize);
}

static void
ip_slot_clear(TupleTableSlot *slot)
{
	IpSlot	   *islot = (IpSlot *) slot;

	unlink_owner(islot);
	islot->body = NULL;
	islot->bodylen = 0;
	islot->hdr = 0;
	islot->has_id = false;
	islot->off = 0;
	islot->scratchused = 0;
	if (unlikely(islot->bufsize > IP_KEEP_BUFFER))
		free_buffer(&islot->buf, &islot->bufsize);
	if (unlikely(islot->scratchsize > IP_KEEP_BUFFER))
		free_buffer(&islot->scratch, &islot->scratchsize);

	slot->tts_nvalid = 0;
	slot->tts_flags |= TTS_FLAG_EMPTY;
	ItemPointerSetInvalid(&slot->tts_tid);
}

/*
 * Fill in columns that were added after the row was stored; before 19 core
 * does this.
 */
static pg_noinline void
get_missing_too(IpSlot *slot, int natts)
{
	ip_body_deform_slot(slot, slot->hdr & IP_HDR_NATTS_MASK);
	slot_getmissingattrs(&slot->base, slot->base.tts_nvalid, natts);
	slot->base.tts_nvalid = natts;
}

static void
ip_slot_getsomeattrs(TupleTableSlot *slot, int natts)
{
	IpSlot	   *islot = (IpSlot *) slot;

	Assert(!TTS_EMPTY(slot));

	if (unlikely(islot->body == NULL))
		elog(ERROR, "cannot deform an inplace slot that holds no row");

	/* each ends in a call, so that most rows save no registers */
	if (unlikely(natts > (islot->hdr & IP_HDR_NATTS_MASK)))
		get_missing_too(islot, natts);
	else
		ip_body_deform_slot(islot, natts);
}

/* callers do not request ctid and tableoid here */
static Datum
ip_slot_getsysattr(TupleTableSlot *slot, int attnum, bool *isnull)
{
	IpSlot	   *islot = (IpSlot *) slot;

	Assert(!TTS_EMPTY(slot));

	if (!islot->has_id)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot retrieve a system column in this context")));

	*isnull = false;
	switch (attnum)
	{
		case MinTransactionIdAttributeNumber:
			return TransactionIdGetDatum(islot->id.xmin);
		case MinCommandIdAttributeNumber:
			return CommandIdGetDatum(islot->id.cmin);
		case MaxTransactionIdAttributeNumber:
			return TransactionIdGetDatum(islot->id.xmax);
		case MaxCommandIdAttributeNumber:
			return CommandIdGetDatum(islot->id.cmax);
		default:
			elog(ERROR, "invalid system column number %d", attnum);
			return (Datum) 0;
	}
}

/* Returns whether the current transaction made the row's version */
static bool
pg_attribute_unused()
ip_slot_is_current_xact_tuple(TupleTableSlot *slot)
{
	IpSlot	   *islot = (IpSlot *) slot;

	Assert(!TTS_EMPTY(slot));

	if (!islot->has_id)
		ereport(ERROR,
				errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("cannot tell the transaction of a row in this context"));
	return TransactionIdIsCurrentTransactionId(islot->id.xmin);
}

static void
ip_slot_materialize(TupleTableSlot *slot)
{
	IpSlot	   *islot = (IpSlot *) slot;

	Assert(!TTS_EMPTY(slot));

	/* Both forget the deformed values, which point to the old place. */
	if (islot->body == NULL)
		form_in_buffer(islot, slot->tts_tupleDescriptor,
					   slot->tts_values, slot->tts_isnull);
	else if (islot->body != (uint8 *) islot->buf)
		copy_to_buffer(islot, islot->hdr, islot->body, islot->bodylen);
}

/* See ip_row.h */
void
ip_slot_owner_release(IpSlotOwner *owner)
{
	if (owner->borrower != NULL)
		ip_slot_materialize(&owner->borrower->base);
	Assert(owner->borrower == NULL);
}

/*
 * Returns whether a row stored under one descriptor means the same under the
 * other.  Only its own descriptor knows the values of columns that it does not
 * store.  A row that was formed from values may have TOAST pointers to memory,
 * and only such a row may have them.
 */
static bool
body_fits(IpSlot *src, TupleDesc dstdesc)
{
	TupleDesc	srcdesc = src->base.tts_tupleDescriptor;

	if (src->formed && (src->hdr & IP_HDR_HASEXTERNAL))
		return false;
	return srcdesc == dstdesc ||
		(srcdesc->natts == dstdesc->natts &&
		 (src->hdr & IP_HDR_NATTS_MASK) == dstdesc->natts);
}

static void
ip_slot_copyslot(TupleTableSlot *dstslot, TupleTableSlot *srcslot)
{
	IpSlot	   *dst = (IpSlot *) dstslot;
	IpSlot	   *src = SlotIsInplace(srcslot) ? (IpSlot *) srcslot : NULL;
	TupleDesc	desc = dstslot->tts_tupleDescriptor;

	Assert(srcslot->tts_tupleDescriptor->natts <= desc->natts);

	if (src != NULL && src->body != NULL && body_fits(src, desc))
		copy_to_buffer(dst, src->hdr, src->body, src->bodylen);
	else
	{
		if (srcslot->tts_tupleDescriptor->natts < desc->natts)
			desc = srcslot->tts_tupleDescriptor;
		slot_getallattrs(srcslot);
		form_in_buffer(dst, desc, srcslot->tts_values, srcslot->tts_isnull);
	}

	set_identity(dst, &srcslot->tts_tid,
				 src != NULL && src->has_id ? &src->id : NULL);
	dstslot->tts_tableOid = srcslot->tts_tableOid;
}

static HeapTuple
ip_slot_copy_heap_tuple(TupleTableSlot *slot)
{
	IpSlot	   *islot = (IpSlot *) slot;
	HeapTuple	tuple;

	Assert(!TTS_EMPTY(slot));

	slot_getallattrs(slot);
	tuple = heap_form_tuple(slot->tts_tupleDescriptor,
							slot->tts_values, slot->tts_isnull);
	tuple->t_self = slot->tts_tid;
	tuple->t_tableOid = slot->tts_tableOid;

	if (islot->has_id)
	{
		HeapTupleHeader header = tuple->t_data;

		/*
		 * The tuple was formed as a composite datum, with the type where a
		 * stored tuple has its xids.  Recent minor releases also mark datums
		 * in t_infomask and t_ctid, and check a marked one's type.
		 */
		header->t_infomask &= ~HEAP_XACT_MASK;
		header->t_ctid = slot->tts_tid;

		HeapTupleHeaderSetXmin(header, islot->id.xmin);
		HeapTupleHeaderSetXmax(header, islot->id.xmax);
		HeapTupleHeaderSetCmin(header, islot->id.cmin);
		if (!TransactionIdIsValid(islot->id.xmax))
			header->t_infomask |= HEAP_XMAX_INVALID;
	}
	return tuple;
}

static MinimalTuple
ip_slot_copy_minimal_tuple(TupleTableSlot *slot COMPAT_EXTRA_PARAMETER)
{
	Assert(!TTS_EMPTY(slot));

	slot_getallattrs(slot);
	return CompatFormMinimalTuple(slot->tts_tupleDescriptor,
								  slot->tts_values, slot->tts_isnull, extra);
}

const TupleTableSlotOps ip_slot_ops = {
	.base_slot_size = sizeof(IpSlot),
	.init = ip_slot_init,
	.release = ip_slot_release,
	.clear = ip_slot_clear,
	.getsomeattrs = ip_slot_getsomeattrs,
	.getsysattr = ip_slot_getsysattr,
	COMPAT_SLOT_IS_CURRENT_XACT_TUPLE(ip_slot_is_current_xact_tuple)
	.materialize = ip_slot_materialize,
	.copyslot = ip_slot_copyslot,

	/* The slot has no heap or minimal tuple to give away, only copies. */
	.get_heap_tuple = NULL,
	.get_minimal_tuple = NULL,
	.copy_heap_tuple = ip_slot_copy_heap_tuple,
	.copy_minimal_tuple = ip_slot_copy_minimal_tuple
};

void
ip_slot_set_written(TupleTableSlot *slot, Relation rel, BlockNumber block,
					OffsetNumber off, TransactionId xid, CommandId cid,
					TransactionId xmax)
{
	ItemPointerSet(&slot->tts_tid, block, off);
	slot->tts_tableOid = RelationGetRelid(rel);
	if (SlotIsInplace(slot))
	{
		IpSlot	   *ipslot = (IpSlot *) slot;

		ipslot->has_id = true;
		ipslot->id.xmin = xid;
		ipslot->id.cmin = ipslot->id.cmax = cid;
		ipslot->id.xmax = xmax;
		ipslot->id.ptr = ip_ptr_cid(cid);
	}
}
