/*-------------------------------------------------------------------------
 * ip_decode.c
 *	  Logical decoding: from a WAL record's logical section (ip_logical.h) to
 *	  the changes that output plugins see.
 *
 * All is in the section.  Neither the table nor its descriptor is looked at,
 * as what they are now may not be what they were then.
 *-------------------------------------------------------------------------
 */
#include "ip_compat.h"

#include "access/htup_details.h"
#include "replication/decode.h"
#include "replication/logical.h"
#include "replication/reorderbuffer.h"
#include "replication/snapbuild.h"

#include "ip_decode.h"
#include "ip_logical.h"

static const ReorderBufferChangeType change_types[] = {
	[IP_LOGICAL_INSERT] = REORDER_BUFFER_CHANGE_INSERT,
	[IP_LOGICAL_UPDATE] = REORDER_BUFFER_CHANGE_UPDATE,
	[IP_LOGICAL_DELETE] = REORDER_BUFFER_CHANGE_DELETE,
	[IP_LOGICAL_SPEC_INSERT] = REORDER_BUFFER_CHANGE_INTERNAL_SPEC_INSERT,
	[IP_LOGICAL_SPEC_CONFIRM] = REORDER_BUFFER_CHANGE_INTERNAL_SPEC_CONFIRM,
	[IP_LOGICAL_SPEC_ABORT] = REORDER_BUFFER_CHANGE_INTERNAL_SPEC_ABORT
};

static void
bad_section(XLogReaderState *record)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("invalid logical section in inplace WAL record at %X/%X",
					LSN_FORMAT_ARGS(record->ReadRecPtr))));
}

/* The next tuple of the section. */
static CompatChangeTuple *
read_tuple(ReorderBuffer *rb, XLogReaderState *record, IpReader *r)
{
	uint32		natts = ip_get_varint(r);
	uint8		infomask = ip_get_u8(r);
	uint32		len = ip_get_varint(r);
	uint32		nulls = (infomask & HEAP_HASNULL) ? BITMAPLEN(natts) : 0;
	uint32		hoff = MAXALIGN(SizeofHeapTupleHeader + nulls);
	const uint8 *bits = ip_get_bytes(r, nulls);
	const uint8 *data = ip_get_bytes(r, len);
	CompatChangeTuple *result;
	HeapTuple	tuple;

	if (r->bad || natts > MaxTupleAttributeNumber)
		bad_section(record);
	result = ReorderBufferGetTupleBuf(rb, hoff - SizeofHeapTupleHeader + len);
	tuple = CompatChangeTupleHeap(result);
	tuple->t_len = hoff + len;
	ItemPointerSetInvalid(&tuple->t_self);
	tuple->t_tableOid = InvalidOid;
	memset(tuple->t_data, 0, hoff);
	HeapTupleHeaderSetNatts(tuple->t_data, natts);
	tuple->t_data->t_infomask = infomask;
	tuple->t_data->t_hoff = hoff;
	memcpy(tuple->t_data->t_bits, bits, nulls);
	memcpy((char *) tuple->t_data + hoff, data, len);
	return result;
}

/* Queue one change of the section; false if that was the last. */
static bool
queue_change(LogicalDecodingContext *ctx, XLogRecordBuffer *buf, uint8 head,
			 const RelFileLocator *locator, IpReader *r)
{
	ReorderBuffer *rb = ctx->reorder;
	uint8		action = head & IP_LOGICAL_ACTION_MASK;
	ReorderBufferChange *change;
	bool		last;

	if (action < IP_LOGICAL_INSERT || action >= lengthof(change_types))
		bad_section(buf->record);
	change = ReorderBufferGetChange(rb);
	change->action = change_types[action];
	change->origin_id = XLogRecGetOrigin(buf->record);
	CompatChangeLocator(change) = *locator;
	if (head & IP_LOGICAL_OLD)
		change->data.tp.oldtuple = read_tuple(rb, buf->record, r);
	if (action == IP_LOGICAL_INSERT || action == IP_LOGICAL_UPDATE ||
		action == IP_LOGICAL_SPEC_INSERT)
		change->data.tp.newtuple = read_tuple(rb, buf->record, r);
	last = r->p == r->end;
	/* rows that were toasted together need their TOAST chunks until the last */
	change->data.tp.clear_toast_afterwards = last && !(head & IP_LOGICAL_MORE);
	ReorderBufferQueueChange(rb, XLogRecGetXid(buf->record), buf->origptr, change, false);
	return !last;
}

void
ip_decode(LogicalDecodingContext *ctx, XLogRecordBuffer *buf)
{
	TransactionId xid = XLogRecGetXid(buf->record);
	RelFileLocator locator;
	IpMainData	data;
	IpReader	r;
	uint8		head;

	ReorderBufferProcessXid(ctx->reorder, xid, buf->origptr);
	ip_wal_main_data(buf->record, &data);
	/* the base snapshot is also built when nothing else is wanted */
	if (data.logical == NULL ||
		SnapBuildCurrentState(ctx->snapshot_builder) < SNAPBUILD_FULL_SNAPSHOT ||
		!SnapBuildProcessChange(ctx->snapshot_builder, xid, buf->origptr) ||
		ctx->fast_forward)
		return;
	XLogRecGetBlockTag(buf->record, IP_REF_DATA, &locator, NULL, NULL);
	if (CompatLocatorDatabase(locator) != ctx->slot->data.database)
		return;
	if (ctx->callbacks.filter_by_origin_cb != NULL &&
		filter_by_origin_cb_wrapper(ctx, XLogRecGetOrigin(buf->record)))
		return;
	r = (IpReader) {data.logical, data.logical + data.logical_len, false};
	head = ip_get_u8(&r);
	while (queue_change(ctx, buf, head, &locator, &r))
		;
}
