/*-------------------------------------------------------------------------
 * ip_toaster.c
 *	  Making rows fit a page: large values are compressed, or moved to the
 *	  TOAST table.
 *
 * Columns are treated in the order in which heap treats them, and by storage
 * parameters as there.  But a value in the TOAST table is compressed block by
 * block (ip_value.h).  So a long value is compressed as a whole only if a
 * sample of it says that it may then stay in the row.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/detoast.h"
#include "access/heaptoast.h"
#include "access/toast_compression.h"
#include "access/toast_helper.h"
#include "utils/memutils.h"

#include "ip_page.h"
#include "ip_toast.h"
#include "ip_toaster.h"
#include "ip_value.h"

/* A longer value is compressed only if this number of its bytes is, well. */
#define SAMPLE		2048

typedef struct Toaster
{
	const IpValueChange *change;
	TupleDesc	desc;
	uint32		target;			/* longest body that is wanted */
	bool		has_table;
	ToastTupleContext ttc;
} Toaster;

static bool
is_too_long(Toaster *t)
{
	return ip_body_size(t->desc, t->ttc.ttc_values, t->ttc.ttc_isnull) >
		t->target;
}

/*
 * Returns whether compressing the whole of a value of that size may make it
 * short enough.  start: its first bytes, at least.
 */
static bool
is_worth_compressing(Toaster *t, int i, const struct varlena *start,
					 uint32 size)
{
	uint32		sample = Min(VARSIZE_ANY_EXHDR(start), SAMPLE);
	uint32		len;

	if (!t->has_table || size <= 4 * t->target)
		return true;
	return ip_value_compress(VARDATA_ANY(start), sample,
							 TupleDescAttr(t->desc, i)->attcompression,
							 &len) != NULL &&
		(uint64) len * size / sample <= t->target;
}

/* The method of compression for a value in the TOAST table, or none. */
static char
method_of(Form_pg_attribute att)
{
	if (att->attstorage == TYPSTORAGE_EXTERNAL)
		return InvalidCompressionMethod;
	return CompressionMethodIsValid(att->attcompression) ?
		att->attcompression : default_toast_compression;
}

/*
 * Returns whether a value that a TOAST pointer leads to goes to the TOAST table
 * for certain, as compress_or_externalize will decide.
 */
static bool
will_be_external(Toaster *t, int i, struct varlena *pointer)
{
	struct varatt_external external;
	uint32		size;

	VARATT_EXTERNAL_GET_POINTER(external, pointer);
	size = external.va_rawsize - VARHDRSZ;
	if (VARATT_EXTERNAL_IS_COMPRESSED(external))
		return false;			/* it is heap's */
	switch (TupleDescAttr(t->desc, i)->attstorage)
	{
		case TYPSTORAGE_EXTERNAL:
			return size > t->target;
		case TYPSTORAGE_EXTENDED:
			return size > 4 * t->target &&
				!is_worth_compressing(t, i,
									  detoast_attr_slice(pointer, 0, SAMPLE),
									  size);
		default:
			return false;
	}
}

/*
 * Copy a new row's values from another TOAST table block by block, without
 * decompressing them.  They are NULL until put_copies has put them back.
 */
static struct varlena **
make_copies(Toaster *t)
{
	struct varlena **copies = palloc0(sizeof(*copies) * t->desc->natts);

	for (int i = 0; i < t->desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(t->desc, i);
		struct varlena *value;

		if (t->ttc.ttc_isnull[i] || att->attlen != -1)
			continue;
		value = (struct varlena *) DatumGetPointer(t->ttc.ttc_values[i]);
		if (VARATT_IS_EXTERNAL_ONDISK(value) && will_be_external(t, i, value))
			copies[i] = ip_value_copy(t->change, value, method_of(att));
		t->ttc.ttc_isnull[i] = copies[i] != NULL;
	}
	return copies;
}

static void
put_copies(Toaster *t, struct varlena **copies)
{
	for (int i = 0; i < t->desc->natts; i++)
	{
		if (copies[i] == NULL)
			continue;
		t->ttc.ttc_values[i] = PointerGetDatum(copies[i]);
		t->ttc.ttc_isnull[i] = false;
	}
}

static void
externalize(Toaster *t, int i)
{
	ToastAttrInfo *attr = &t->ttc.ttc_attr[i];
	struct varlena *value =
		(struct varlena *) DatumGetPointer(t->ttc.ttc_values[i]);
	bool		has_old = (attr->tai_colflags & TOASTCOL_NEEDS_DELETE_OLD) != 0;

	if (VARATT_IS_COMPRESSED(value))
		value = detoast_attr(value);
	value = ip_value_save(t->change, value,
						  method_of(TupleDescAttr(t->desc, i)),
						  has_old ? (struct varlena *)
						  DatumGetPointer(t->ttc.ttc_oldvalues[i]) : NULL);
	t->ttc.ttc_values[i] = PointerGetDatum(value);
	attr->tai_colflags &= ~TOASTCOL_NEEDS_DELETE_OLD;
	attr->tai_colflags |= TOASTCOL_IGNORE;
}

static void
compress_or_externalize(Toaster *t)
{
	int			i;

	while (is_too_long(t) &&
		   (i = toast_tuple_find_biggest_attribute(&t->ttc, true, false)) >= 0)
	{
		ToastAttrInfo *attr = &t->ttc.ttc_attr[i];
		struct varlena *value =
			(struct varlena *) DatumGetPointer(t->ttc.ttc_values[i]);

		if (TupleDescAttr(t->desc, i)->attstorage == TYPSTORAGE_EXTENDED &&
			is_worth_compressing(t, i, value, VARSIZE_ANY_EXHDR(value)))
			toast_tuple_try_compression(&t->ttc, i);
		else
			attr->tai_colflags |= TOASTCOL_INCOMPRESSIBLE;
		/* then the row's other values may stay as they are */
		if (attr->tai_size > t->target && t->has_table)
			externalize(t, i);
	}
	while (is_too_long(t) && t->has_table &&
		   (i = toast_tuple_find_biggest_attribute(&t->ttc, false, false)) >= 0)
		externalize(t, i);
	/* columns with storage MAIN */
	while (is_too_long(t) &&
		   (i = toast_tuple_find_biggest_attribute(&t->ttc, true, true)) >= 0)
		toast_tuple_try_compression(&t->ttc, i);
	t->target = TOAST_TUPLE_TARGET_MAIN - MAXALIGN(SizeofHeapTupleHeader);
	while (is_too_long(t) && t->has_table &&
		   (i = toast_tuple_find_biggest_attribute(&t->ttc, false, true)) >= 0)
		externalize(t, i);
}

void
ip_toaster_form(const IpValueChange *change, TupleTableSlot *slot,
				HeapTuple old, IpFormed *row)
{
	/* for values that nobody else frees */
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "inplace toaster",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	Relation	rel = change->rel;
	TupleDesc	desc = RelationGetDescr(rel);
	Size		n = Max(desc->natts, 1);
	struct varlena **copies = NULL;
	Toaster		t = {
		.change = change,.desc = desc,
		.target = RelationGetToastTupleTarget(rel, TOAST_TUPLE_TARGET) -
		MAXALIGN(SizeofHeapTupleHeader),
		.has_table = OidIsValid(rel->rd_rel->reltoastrelid),
		.ttc = {
			.ttc_rel = rel,
			.ttc_values = palloc(sizeof(Datum) * n),
			.ttc_isnull = palloc(sizeof(bool) * n),
			.ttc_attr = palloc(sizeof(ToastAttrInfo) * n)
		}
	};

	Assert(ip_page_none_is_locked());
	slot_getallattrs(slot);
	memcpy(t.ttc.ttc_values, slot->tts_values, sizeof(Datum) * desc->natts);
	memcpy(t.ttc.ttc_isnull, slot->tts_isnull, sizeof(bool) * desc->natts);
	if (old != NULL)
	{
		t.ttc.ttc_oldvalues = palloc(sizeof(Datum) * n);
		t.ttc.ttc_oldisnull = palloc(sizeof(bool) * n);
		heap_deform_tuple(old, desc, t.ttc.ttc_oldvalues, t.ttc.ttc_oldisnull);
	}
	if (old == NULL && t.has_table)
		copies = make_copies(&t);
	toast_tuple_init(&t.ttc);
	if (copies != NULL)
		put_copies(&t, copies);
	compress_or_externalize(&t);
	MemoryContextSwitchTo(caller);
	ip_toast_form_values(rel, t.ttc.ttc_values, t.ttc.ttc_isnull, true, row);
	MemoryContextSwitchTo(context);
	for (int i = 0; i < desc->natts; i++)
	{
		if (t.ttc.ttc_attr[i].tai_colflags & TOASTCOL_NEEDS_DELETE_OLD)
			ip_value_delete(change, (struct varlena *)
							DatumGetPointer(t.ttc.ttc_oldvalues[i]));
	}
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
}

void
ip_toaster_delete(const IpValueChange *change, HeapTuple old)
{
	TupleDesc	desc = RelationGetDescr(change->rel);
	Datum	   *values;
	bool	   *isnull;

	Assert(ip_page_none_is_locked());
	if (!HeapTupleHasExternal(old))
		return;
	values = palloc(sizeof(Datum) * desc->natts);
	isnull = palloc(sizeof(bool) * desc->natts);
	heap_deform_tuple(old, desc, values, isnull);
	for (int i = 0; i < desc->natts; i++)
	{
		if (TupleDescAttr(desc, i)->attlen == -1 && !isnull[i] &&
			VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(values[i])))
			ip_value_delete(change,
							(struct varlena *) DatumGetPointer(values[i]));
	}
}
