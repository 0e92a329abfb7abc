/*-------------------------------------------------------------------------
 * ip_decode.c
 *	  Logical decoding: from a WAL record's logical section (ip_logical.h) to
 *	  the changes that output plugins see.
 *
 * The record has everything that is needed.  The table and its descriptor are
 * not used, because they may have changed since the record was written.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "replication/decode.h"
#include "replication/logical.h"
#include "replication/reorderbuffer.h"
#include "replication/snapbuild.h"
#include "utils/memutils.h"

#include "ip_decode.h"
#include "ip_delta.h"
#include "ip_logical.h"
#include "ip_op.h"
#include "ip_value.h"
#include "ip_wal.h"

static const ReorderBufferChangeType change_types[] = {
	[IP_LOGICAL_INSERT] = REORDER_BUFFER_CHANGE_INSERT,
	[IP_LOGICAL_UPDATE] = REORDER_BUFFER_CHANGE_UPDATE,
	[IP_LOGICAL_DELETE] = REORDER_BUFFER_CHANGE_DELETE,
	[IP_LOGICAL_SPEC_INSERT] = REORDER_BUFFER_CHANGE_INTERNAL_SPEC_INSERT,
	[IP_LOGICAL_SPEC_CONFIRM] = REORDER_BUFFER_CHANGE_INTERNAL_SPEC_CONFIRM,
	[IP_LOGICAL_SPEC_ABORT] = REORDER_BUFFER_CHANGE_INTERNAL_SPEC_ABORT,
	[IP_LOGICAL_VALUE] = REORDER_BUFFER_CHANGE_INSERT
};

static void
bad_section(XLogReaderState *record)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("invalid logical section in inplace WAL record at %X/%X",
					LSN_FORMAT_ARGS(record->ReadRecPtr))));
}

/* State of reading a record's section. */
typedef struct Section
{
	XLogReaderState *record;
	ByteReader	r;
	uint8		head;
	RelFileLocator locator;
	IpNewRows  *rows;			/* for insertions: the page operations' rows */
} Section;

/* A heap tuple's NULL bitmap and values. */
typedef struct Image
{
	uint32		natts;
	uint8		flags;
	const uint8 *bytes;
	uint32		len;
} Image;

static void
read_image(Section *s, const uint8 *base, uint32 baselen, Image *image)
{
	uint8	   *bytes;

	image->natts = bytes_get_varint(&s->r);
	image->flags = bytes_get_u8(&s->r);
	image->len = bytes_get_varint(&s->r);
	if (!(image->flags & IP_TUPLE_DELTA))
		image->bytes = bytes_get(&s->r, image->len);
	else
	{
		if (base == NULL || !AllocSizeIsValid(image->len))
			bad_section(s->record);
		image->bytes = bytes = palloc(Max(image->len, 1));
		if (ip_delta_apply(&s->r, base, baselen, bytes,
						   image->len) != image->len)
			bad_section(s->record);
	}
	if (s->r.bad || image->natts > MaxTupleAttributeNumber)
		bad_section(s->record);
}

static void
free_image(Image *image)
{
	if (image->flags & IP_TUPLE_DELTA)
		pfree((void *) image->bytes);
}

/*
 * Make a heap tuple; *data is where len bytes of values go, behind a NULL
 * bitmap of "nulls" bytes.
 */
static CompatChangeTuple *
make_header(ReorderBuffer *rb, uint32 natts, uint16 infomask, uint32 nulls,
			uint32 len, char **data)
{
	uint32		hoff = MAXALIGN(SizeofHeapTupleHeader + nulls);
	CompatChangeTuple *result =
		ReorderBufferAllocTupleBuf(rb, hoff - SizeofHeapTupleHeader + len);
	HeapTuple	tuple = CompatChangeTupleHeap(result);

	tuple->t_len = hoff + len;
	ItemPointerSetInvalid(&tuple->t_self);
	tuple->t_tableOid = InvalidOid;
	memset(tuple->t_data, 0, hoff);
	HeapTupleHeaderSetNatts(tuple->t_data, natts);
	tuple->t_data->t_infomask = infomask;
	tuple->t_data->t_hoff = hoff;
	*data = (char *) tuple->t_data + hoff;
	return result;
}

static CompatChangeTuple *
make_tuple(ReorderBuffer *rb, Section *s, const Image *image)
{
	uint32		nulls = (image->flags & HEAP_HASNULL) ?
		BITMAPLEN(image->natts) : 0;
	CompatChangeTuple *result;
	char	   *data;

	if (image->len < nulls)
		bad_section(s->record);
	result = make_header(rb, image->natts, image->flags & IP_TUPLE_INFOMASK,
						 nulls, image->len - nulls, &data);
	memcpy(CompatChangeTupleHeap(result)->t_data->t_bits, image->bytes, nulls);
	memcpy(data, image->bytes + nulls, image->len - nulls);
	return result;
}

/* Make the tuple that heap would have inserted into a TOAST table. */
static CompatChangeTuple *
make_chunk(ReorderBuffer *rb, Section *s)
{
	uint32		id = bytes_get_varint(&s->r);
	uint32		block = bytes_get_varint(&s->r);
	uint32		bodylen;
	const uint8 *body = ip_op_new_rows_next(s->rows, &bodylen);
	CompatChangeTuple *result;
	const char *raw;
	IpValueRow	row;
	IpValueHead head;
	uint32		rawlen;
	char	   *to;

	if (s->r.bad || body == NULL ||
		ip_value_read_row(IP_VALUE_NATTS, body, bodylen, &row) != NULL)
		bad_section(s->record);
	if ((row.kind & IP_VALUE_KIND_MASK) == IP_VALUE_HEAD)
	{
		if (ip_value_read_head(row.data, row.len, &head) != NULL)
			bad_section(s->record);
		row.data += sizeof(IpValueHead);
		row.len -= sizeof(IpValueHead);
	}
	rawlen = ip_value_image_length(&row);
	raw = ip_value_expand(row.data, row.len,
						  (row.kind & IP_VALUE_COMPRESSED) != 0, rawlen);
	if (raw == NULL)
		bad_section(s->record);
	result = make_header(rb, IP_VALUE_NATTS, HEAP_HASVARWIDTH, 0,
						 2 * sizeof(uint32) + VARHDRSZ + rawlen, &to);
	memcpy(to, &id, sizeof(uint32));
	memcpy(to + sizeof(uint32), &block, sizeof(uint32));
	to += 2 * sizeof(uint32);
	SET_VARSIZE(to, VARHDRSZ + rawlen);
	memcpy(to + VARHDRSZ, raw, rawlen);
	if (raw != row.data)
		pfree(unconstify(char *, raw) - VARHDRSZ);
	return result;
}

/* Read the tuples of the next change. */
static void
read_tuples(ReorderBuffer *rb, Section *s, uint8 action,
			ReorderBufferChange *change)
{
	const uint8 *base = NULL;
	uint32		baselen = 0;
	Image		new = {0};
	Image		old;

	if (action == IP_LOGICAL_VALUE)
	{
		change->data.tp.newtuple = make_chunk(rb, s);
		return;
	}
	if (action == IP_LOGICAL_INSERT || action == IP_LOGICAL_SPEC_INSERT)
	{
		base = ip_op_new_rows_next(s->rows, &baselen);
		if (base == NULL)
			bad_section(s->record);
	}
	if (base != NULL || action == IP_LOGICAL_UPDATE)
	{
		read_image(s, base, baselen, &new);
		change->data.tp.newtuple = make_tuple(rb, s, &new);
	}
	if (s->head & IP_LOGICAL_OLD)
	{
		read_image(s, new.bytes, new.len, &old);
		change->data.tp.oldtuple = make_tuple(rb, s, &old);
		free_image(&old);
	}
	free_image(&new);
}

/* Queue one change of the section; false if that was the last. */
static bool
queue_change(LogicalDecodingContext *ctx, XLogRecordBuffer *buf, Section *s)
{
	ReorderBuffer *rb = ctx->reorder;
	uint8		action = s->head & IP_LOGICAL_ACTION_MASK;
	ReorderBufferChange *change;
	bool		last;

	if (action < IP_LOGICAL_INSERT || action >= lengthof(change_types))
		bad_section(s->record);
	change = ReorderBufferAllocChange(rb);
	change->action = change_types[action];
	change->origin_id = XLogRecGetOrigin(s->record);
	CompatChangeLocator(change) = s->locator;
	read_tuples(rb, s, action, change);
	last = s->r.p == s->r.end;
	if (!last && action != IP_LOGICAL_INSERT)
		bad_section(s->record);

	/*
	 * rows that were toasted together need their TOAST chunks until the last
	 * row
	 */
	change->data.tp.clear_toast_afterwards = last &&
		!(s->head & IP_LOGICAL_MORE);
	ReorderBufferQueueChange(rb, XLogRecGetXid(s->record), buf->origptr, change,
							 action == IP_LOGICAL_VALUE);
	return !last;
}

static void
queue_changes(LogicalDecodingContext *ctx, XLogRecordBuffer *buf, Section *s,
			  const IpMainData *data)
{
	static IpNewRows rows;
	Size		len;
	char	   *ops = XLogRecGetBlockData(s->record, IP_REF_DATA, &len);

	if (ops == NULL)
		len = 0;				/* an update, and the page is in the record */
	ip_op_new_rows_begin(&rows, (uint8 *) ops, len);
	s->rows = &rows;
	s->r = (ByteReader)
	{
		data->logical, data->logical + data->logical_len, false
	};
	s->head = bytes_get_u8(&s->r);
	while (queue_change(ctx, buf, s))
		;
}

void
ip_decode(LogicalDecodingContext *ctx, XLogRecordBuffer *buf)
{
	TransactionId xid = XLogRecGetXid(buf->record);
	Section		s = {.record = buf->record};
	IpMainData	data;

	ReorderBufferProcessXid(ctx->reorder, xid, buf->origptr);
	ip_wal_main_data(buf->record, &data);
	/* the base snapshot is built even if the record is not decoded */
	if (data.logical == NULL ||
		SnapBuildCurrentState(ctx->snapshot_builder) <
		SNAPBUILD_FULL_SNAPSHOT ||
		!SnapBuildProcessChange(ctx->snapshot_builder, xid, buf->origptr) ||
		ctx->fast_forward)
		return;
	XLogRecGetBlockTag(buf->record, IP_REF_DATA, &s.locator, NULL, NULL);
	if (CompatLocatorDatabase(s.locator) != ctx->slot->data.database ||
		CompatRepackDrops(buf))
		return;
	if (ctx->callbacks.filter_by_origin_cb != NULL &&
		filter_by_origin_cb_wrapper(ctx, XLogRecGetOrigin(buf->record)))
		return;
	queue_changes(ctx, buf, &s, &data);
}
