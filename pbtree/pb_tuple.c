/*-------------------------------------------------------------------------
 * pb_tuple.c
 *	  Index-only scans' rows, as nbtree would have stored them.
 *
 * A column's encoding is converted directly to the column of a tuple where
 * possible: numbers, and short strings.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/detoast.h"
#include "access/heaptoast.h"
#include "access/htup_details.h"
#include "access/toast_internals.h"
#include "access/tupmacs.h"
#include "catalog/index.h"

#include "pb_tuple.h"

void
pb_tuple_shape(Relation rel, const PbIndex *index, PbTupleShape *shape)
{
	TupleDesc	desc = RelationGetDescr(rel);
	Size		off = IndexInfoFindDataOffset(0);

	shape->size = 0;
	if (index->fixed == 0)
		return;
	for (int i = 0; i < index->natts; i++)
	{
		off = att_align_nominal(off, TupleDescAttr(desc, i)->attalign);
		shape->off[i] = off;
		off += index->col[i].len;
	}
	if (MAXALIGN(off) <= PB_TUPLE_ROOM)
		shape->size = MAXALIGN(off);
}

/* "tuple" has room for shape->size bytes. */
void
pb_tuple_form_fixed(const PbIndex *index, const PbTupleShape *shape,
					const uint8 *key, IndexTuple tuple)
{
	memset(tuple, 0, shape->size);
	tuple->t_info = shape->size;
	for (int i = 0; i < index->natts; i++)
	{
		const PbColumn *col = &index->col[i];

		pb_codec_decode_to(col, key, (char *) tuple + shape->off[i]);
		key += col->fixed;
		Assert(shape->off[i] + col->len <= shape->size);
	}
}

/*
 * Form a tuple of columns that are NULL, strings with short headers, or of
 * fixed width.  Returns 0 if there is another kind of column, or not enough
 * room.
 */
static Size
form_directly(TupleDesc desc, PbIndex *index, const PbKey *key, char *tuple,
			  uint16 mask)
{
	const uint8 *p = key->data;
	Size		at = IndexInfoFindDataOffset(mask);

	memset(tuple, 0, at);
	for (int i = 0; i < index->natts; i++)
	{
		const PbColumn *col = &index->col[i];
		int			state = pb_key_state(key, i);
		int			len = pb_codec_skip(col, state, p, key->data + key->len);
		uint8		kind = PbCodecKind(col->codec);

		if (state == PB_COL_NULL)
			continue;
		if (state != PB_COL_PLAIN || len < 0 ||
			at + len + MAXIMUM_ALIGNOF > PB_TUPLE_ROOM)
			return 0;
		if (mask)
			((uint8 *) (tuple + sizeof(IndexTupleData)))[i / 8] |= 1 << (i % 8);
		if (col->fixed > 0)
		{
			Size		aligned =
				att_align_nominal(at, TupleDescAttr(desc, i)->attalign);

			memset(tuple + at, 0, aligned - at);
			pb_codec_decode_to(col, p, tuple + aligned);
			at = aligned + col->len;
		}
		else
		{
			if ((col->codec != PB_CODEC_TEXT &&
				 col->codec != PB_CODEC_TEXT_C) ||
				col->storage == TYPSTORAGE_PLAIN ||
				len - 1 + VARHDRSZ_SHORT > VARATT_SHORT_MAX ||
				kind != col->codec)
				return 0;
			SET_VARSIZE_SHORT(tuple + at, len - 1 + VARHDRSZ_SHORT);
			memcpy(tuple + at + VARHDRSZ_SHORT, p, len - 1);
			at += len - 1 + VARHDRSZ_SHORT;
		}
		p += len;
	}
	Assert(at <= PB_TUPLE_ROOM);
	return MAXALIGN(at);
}

/*
 * Convert a value to one that core stores in an index tuple unchanged,
 * compressed like its key.
 */
static Datum
pack(Datum value)
{
	void	   *stored = DatumGetPointer(value);
	struct varlena *v = detoast_external_attr(stored);
	Datum		compressed;

	if (VARATT_IS_EXTENDED(v) || VARSIZE(v) - VARHDRSZ <= TOAST_INDEX_TARGET)
		return PointerGetDatum(v);
	compressed = toast_compress_datum(PointerGetDatum(v),
									  TOAST_PGLZ_COMPRESSION);
	return DatumGetPointer(compressed) ? compressed : PointerGetDatum(v);
}

/*
 * Core compresses an index tuple's values according to the column's storage,
 * but keys are compressed according to the type's storage.  A key that fits
 * must fit in a tuple, too.
 */
void
pb_tuple_pack(const PbIndex *index, const Datum *values, const bool *isnull,
			  Datum *packed)
{
	for (int i = 0; i < index->natts; i++)
	{
		const PbColumn *col = &index->col[i];

		if (isnull[i] || !col->compressible ||
			col->storage == TYPSTORAGE_EXTENDED ||
			col->storage == TYPSTORAGE_MAIN)
			packed[i] = values[i];
		else
			packed[i] = pack(values[i]);
	}
}

static IndexTuple
form_from_values(TupleDesc desc, PbIndex *index, PbKey *key, PbArena *arena)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	arena->used = 0;
	(void) pb_key_parse(index, key, key->natts, key->len);
	for (int i = 0; i < key->natts; i++)
		values[i] = pb_key_datum(index, key, i, &isnull[i], arena);
	pb_tuple_pack(index, values, isnull, values);
	return index_form_tuple(desc, values, isnull);
}

/*
 * Form a tuple; the caller sets the TID.  The tuple is in "space", of
 * PB_TUPLE_ROOM bytes, or palloc'd if that is too small.
 */
IndexTuple
pb_tuple_form(Relation rel, PbIndex *index, PbKey *key, PbArena *arena,
			  void *space)
{
	TupleDesc	desc = RelationGetDescr(rel);
	IndexTuple	tuple = space;
	uint16		mask = 0;
	Size		size;

	for (int i = 0; key->has_map && i < index->natts; i++)
	{
		if (pb_key_state(key, i) == PB_COL_NULL)
			mask = INDEX_NULL_MASK;
	}
	size = form_directly(desc, index, key, space, mask);
	if (size == 0)
		return form_from_values(desc, index, key, arena);
	tuple->t_info = size | mask | (index->fixed > 0 ? 0 : INDEX_VAR_MASK);
	return tuple;
}
