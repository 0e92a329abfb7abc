/*-------------------------------------------------------------------------
 * ip_logical.c
 *	  Making the section of a WAL record that logical decoding reads.
 *
 * As in heap, the table's replica identity decides what is logged of the old
 * row: nothing, its key (for an update only if the key changes), or all of it.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/heaptoast.h"
#include "access/htup_details.h"
#include "catalog/catalog.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "ip_delta.h"
#include "ip_logical.h"
#include "ip_toast.h"

/* A whole WAL record, of which the section is a part, must stay below 1 GB. */
#define MAX_SECTION		((Size) 1000 * 1024 * 1024)

/* Memory for the section that is being made and for making it. */
static MemoryContext logical_context;

StringInfo
ip_logical_begin(Relation rel, IpLogicalAction action)
{
	MemoryContext old;
	StringInfo	section;

	if (!RelationIsLogicallyLogged(rel))
		return NULL;

	/*
	 * decoding would read an old state of it, but nothing keeps old versions
	 * for that
	 */
	if (RelationIsUsedAsCatalogTable(rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("inplace table \"%s\" cannot be used as a catalog table",
						RelationGetRelationName(rel)),
				 errhint("Reset its storage parameter user_catalog_table.")));
	if (logical_context == NULL)
		logical_context = AllocSetContextCreate(TopMemoryContext, "inplace logical section",
												ALLOCSET_DEFAULT_SIZES);
	MemoryContextReset(logical_context);
	old = MemoryContextSwitchTo(logical_context);
	section = makeStringInfo();
	MemoryContextSwitchTo(old);
	appendStringInfoChar(section, action);
	return section;
}

void
ip_logical_end(void)
{
	if (logical_context)
		MemoryContextReset(logical_context);
}

/* ---- tuples -------------------------------------------------------------- */

/* A heap tuple's NULL bitmap and values, in one piece. */
typedef struct Image
{
	uint8	   *bytes;
	uint32		len;
	uint32		nulls;			/* length of the bitmap */
} Image;

static void
make_image(HeapTuple tuple, Image *image)
{
	HeapTupleHeader header = tuple->t_data;

	image->nulls = HeapTupleHasNulls(tuple) ?
		BITMAPLEN(HeapTupleHeaderGetNatts(header)) : 0;
	image->len = image->nulls + tuple->t_len - header->t_hoff;
	image->bytes = palloc(Max(image->len, 1));
	memcpy(image->bytes, header->t_bits, image->nulls);
	memcpy(image->bytes + image->nulls, (char *) header + header->t_hoff,
		   image->len - image->nulls);
}

/*
 * Add what decoding needs to make the tuple again, which excludes xids and
 * TIDs.  "delta" makes the tuple's image; it is added instead of the image if
 * it is shorter.
 */
static void
add_tuple(StringInfo section, HeapTuple tuple, const Image *image,
		  const ByteWriter *delta, const uint8 *delta_start)
{
	uint8		flags = tuple->t_data->t_infomask & IP_TUPLE_INFOMASK;
	uint8		head[16];
	ByteWriter	w = {head, head + sizeof(head), false};

	if (section->len + (Size) image->len > MAX_SECTION)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("row is too big for logical replication: size %u",
						image->len)));
	if (!delta->bad)
		flags |= IP_TUPLE_DELTA;
	bytes_put_varint(&w, HeapTupleHeaderGetNatts(tuple->t_data));
	bytes_put_u8(&w, flags);
	bytes_put_varint(&w, image->len);
	Assert(!w.bad);
	appendBinaryStringInfo(section, (char *) head, w.p - head);
	if (!delta->bad)
		appendBinaryStringInfo(section, (char *) delta_start,
							   delta->p - delta_start);
	else
		appendBinaryStringInfo(section, (char *) image->bytes, image->len);
}

/*
 * Find where the values of a heap tuple have padding before them; returns the
 * number of gaps.
 */
static uint32
find_padding(TupleDesc desc, HeapTuple tuple, uint32 *at, uint32 *size)
{
	char	   *data = (char *) tuple->t_data + tuple->t_data->t_hoff;
	uint32		n = 0;
	uint32		off = 0;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		uint32		next;

		if (HeapTupleHasNulls(tuple) && att_isnull(i, tuple->t_data->t_bits))
			continue;
		next = att_align_pointer(off, att->attalign, att->attlen, data + off);
		if (next > off)
		{
			at[n] = off;
			size[n++] = next - off;
		}
		off = att_addlength_pointer(next, att->attlen, data + next);
	}
	return n;
}

/*
 * Write the delta from a row's body, which has no padding, to the image, which
 * differs only by padding.
 */
static void
put_padding(ByteWriter *w, TupleDesc desc, HeapTuple tuple, const Image *image,
			uint32 bodylen)
{
	static const uint8 zeros[MAXIMUM_ALIGNOF];
	uint32	   *at = palloc(2 * sizeof(uint32) * (desc->natts + 1));
	uint32	   *size = at + desc->natts + 1;
	uint32		n = find_padding(desc, tuple, at, size);
	uint32		made = 0;		/* of the image, */
	uint32		used = 0;		/* of the body */
	uint32		total = image->len;

	for (uint32 i = 0; i < n; i++)
		total -= size[i];
	bytes_put_varint(w, bodylen > total ? n + 1 : n);
	for (uint32 i = 0; i < n; i++)
	{
		uint32		copy = image->nulls + at[i] - made;

		bytes_put_varint(w, copy);
		bytes_put_varint(w, size[i] << 1 | 1);
		bytes_put_varint(w, 0);
		bytes_put(w, zeros, size[i]);
		made += copy + size[i];
		used += copy;
	}
	if (bodylen > total)
	{
		bytes_put_varint(w, total - used);
		bytes_put_varint(w, 1);
		bytes_put_varint(w, bodylen - total);
	}
	pfree(at);
}

/* Add an inserted row; the page operations have its body. */
static void
add_new_row(StringInfo section, Relation rel, HeapTuple tuple,
			const IpFormed *row)
{
	Image		image;
	uint8	   *delta;
	uint8	   *made;
	ByteWriter	w;
	ByteReader	r;

	make_image(tuple, &image);
	delta = palloc(2 * image.len + 1);
	made = delta + image.len;
	w = (ByteWriter)
	{
		delta, delta + image.len, false
	};
	put_padding(&w, RelationGetDescr(rel), tuple, &image, row->bodylen);
	r = (ByteReader)
	{
		delta, w.p, false
	};
	if (ip_delta_apply(&r, row->body, row->bodylen, made,
					   image.len) != image.len ||
		memcmp(made, image.bytes, image.len) != 0)
		w.bad = true;
	add_tuple(section, tuple, &image, &w, delta);
	pfree(delta);
	pfree(image.bytes);
}

/* Add a tuple as it is, or as a delta to base, if there is one. */
static void
add_row(StringInfo section, HeapTuple tuple, HeapTuple base)
{
	ByteWriter	w = {NULL, NULL, true};
	uint8	   *delta = NULL;
	Image		image;
	Image		from;

	make_image(tuple, &image);
	if (base)
	{
		make_image(base, &from);
		delta = palloc(image.len);
		w = (ByteWriter)
		{
			delta, delta + image.len, false
		};
		ip_delta_make(&w, from.bytes, from.len, image.bytes, image.len);
	}
	add_tuple(section, tuple, &image, &w, delta);
}

static HeapTuple
row_tuple(Relation rel, const IpFormed *row)
{
	return ip_toast_heap_tuple(rel, row->hdr, row->body, row->bodylen);
}

/*
 * Replace TOAST pointers in the tuple by the values, which are about to be
 * deleted.
 */
static HeapTuple
flatten(Relation rel, HeapTuple tuple)
{
	return HeapTupleHasExternal(tuple) ?
		toast_flatten_tuple(tuple, RelationGetDescr(rel)) : tuple;
}

/* ---- the old row --------------------------------------------------------- */

/*
 * Returns whether the old row's key cannot be taken from the new row.  This is
 * also so if a key value is in the TOAST table, because decoding does not see
 * values there that an update keeps.
 */
static bool
key_is_needed(Relation rel, Bitmapset *key, HeapTuple old, HeapTuple new)
{
	TupleDesc	desc = RelationGetDescr(rel);
	int			i = -1;

	while ((i = bms_next_member(key, i)) >= 0)
	{
		int			attno = i + FirstLowInvalidHeapAttributeNumber;
		Form_pg_attribute att = TupleDescAttr(desc, attno - 1);
		bool		old_null;
		bool		new_null;
		Datum		o = heap_getattr(old, attno, desc, &old_null);
		Datum		n = heap_getattr(new, attno, desc, &new_null);

		if (old_null != new_null)
			return true;
		if (!old_null && (!datumIsEqual(o, n, att->attbyval, att->attlen) ||
						  (att->attlen == -1 &&
						   VARATT_IS_EXTERNAL(DatumGetPointer(o)))))
			return true;
	}
	return false;
}

/* Make a tuple with the key's columns only; the others are NULL. */
static HeapTuple
key_tuple(Relation rel, Bitmapset *key, HeapTuple tuple)
{
	TupleDesc	desc = RelationGetDescr(rel);
	Datum	   *values = palloc(sizeof(Datum) * desc->natts);
	bool	   *isnull = palloc(sizeof(bool) * desc->natts);

	heap_deform_tuple(tuple, desc, values, isnull);
	for (int i = 0; i < desc->natts; i++)
	{
		if (!bms_is_member(i + 1 - FirstLowInvalidHeapAttributeNumber, key))
			isnull[i] = true;
	}
	return heap_form_tuple(desc, values, isnull);
}

/*
 * Add what identifies the old row, if anything; new is NULL if it was deleted.
 */
static void
add_old(StringInfo section, Relation rel, HeapTuple old, HeapTuple new)
{
	HeapTuple	tuple = old;

	if (rel->rd_rel->relreplident == REPLICA_IDENTITY_NOTHING)
		return;
	if (rel->rd_rel->relreplident != REPLICA_IDENTITY_FULL)
	{
		Bitmapset  *key =
			RelationGetIndexAttrBitmap(rel, INDEX_ATTR_BITMAP_IDENTITY_KEY);

		if (bms_is_empty(key) || (new && !key_is_needed(rel, key, old, new)))
			return;
		tuple = key_tuple(rel, key, old);
	}
	section->data[0] |= IP_LOGICAL_OLD;
	add_row(section, flatten(rel, tuple), new);
}

/* ---- sections ------------------------------------------------------------ */

StringInfo
ip_logical_insert(Relation rel, IpLogicalAction action, const IpFormed *rows,
				  int nrows, bool more)
{
	StringInfo	section = ip_logical_begin(rel, action);
	MemoryContext context;

	if (section == NULL)
		return NULL;
	context = MemoryContextSwitchTo(logical_context);
	if (more)
		section->data[0] |= IP_LOGICAL_MORE;
	for (int i = 0; i < nrows; i++)
	{
		HeapTuple	tuple = row_tuple(rel, &rows[i]);

		add_new_row(section, rel, tuple, &rows[i]);
		heap_freetuple(tuple);
	}
	MemoryContextSwitchTo(context);
	return section;
}

StringInfo
ip_logical_update(Relation rel, const IpFormed *old, const IpFormed *row)
{
	StringInfo	section = ip_logical_begin(rel, IP_LOGICAL_UPDATE);
	MemoryContext context;
	HeapTuple	new;

	if (section == NULL)
		return NULL;
	context = MemoryContextSwitchTo(logical_context);
	new = row_tuple(rel, row);
	add_row(section, new, NULL);
	add_old(section, rel, row_tuple(rel, old), new);
	MemoryContextSwitchTo(context);
	return section;
}

StringInfo
ip_logical_delete(Relation rel, const IpFormed *old)
{
	StringInfo	section = ip_logical_begin(rel, IP_LOGICAL_DELETE);
	MemoryContext context;

	if (section == NULL)
		return NULL;
	context = MemoryContextSwitchTo(logical_context);
	add_old(section, rel, row_tuple(rel, old), NULL);
	MemoryContextSwitchTo(context);
	return section;
}

StringInfo
ip_logical_value(Relation toast, uint32 id, uint32 block)
{
	StringInfo	section = ip_logical_begin(toast, IP_LOGICAL_VALUE);
	uint8		bytes[10];		/* two varints */
	ByteWriter	w = {bytes, bytes + sizeof(bytes), false};

	Assert(section != NULL);
	bytes_put_varint(&w, id);
	bytes_put_varint(&w, block);
	Assert(!w.bad);
	appendBinaryStringInfo(section, (char *) bytes, w.p - bytes);
	return section;
}
