/*-------------------------------------------------------------------------
 * ip_body.c
 *	  Forming and deforming of row bodies.
 *
 * A body is the NULL bitmap, if the row has NULLs, and the other values one
 * after another, without padding.  Nothing in it is aligned, so everything
 * here is loaded and stored with memcpy, and by-reference values of a type
 * that needs alignment are copied to aligned memory when they are deformed.
 *
 * Bodies to deform come from pages that may be damaged: no byte behind the
 * body's end is read, and a value that reaches beyond it is an error.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "ip_body.h"
#include "utils/expandeddatum.h"
#include "utils/memutils.h"

/* Smallest buffer that a slot allocates */
#define IP_MIN_BUFFER			256

/* ---- errors: out of line, to keep the loops small ------------------------ */

pg_noreturn static pg_attribute_cold pg_noinline void
report_truncated(int attnum)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("row body ends within column %d", attnum + 1)));
}

pg_noreturn static pg_attribute_cold pg_noinline void
report_bad_varlena(int attnum)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("row body has an invalid length word in column %d",
					attnum + 1)));
}

/* ---- forming ------------------------------------------------------------- */

/*
 * Returns whether a value of "size" bytes with a 4-byte header can get a short
 * header
 */
static inline bool
can_pack(Form_pg_attribute att, Size size)
{
	return att->attstorage != TYPSTORAGE_PLAIN &&
		size - VARHDRSZ + VARHDRSZ_SHORT <= VARATT_SHORT_MAX;
}

/* Size that a varlena value takes in a body */
static inline Size
varlena_size(Form_pg_attribute att, Datum value)
{
	Pointer		ptr = DatumGetPointer(value);
	Size		size;

	if (VARATT_IS_EXTERNAL_EXPANDED(ptr))
		size = EOH_get_flat_size(DatumGetEOHP(value));
	else if (VARATT_IS_4B_U(ptr))
		size = VARSIZE_4B(ptr);
	else
		return VARSIZE_ANY(ptr);

	return can_pack(att, size) ? size - VARHDRSZ + VARHDRSZ_SHORT : size;
}

/* See ip_body.h */
uint32
ip_body_size(TupleDesc desc, const Datum *values, const bool *isnull)
{
	Size		size = 0;
	bool		hasnull = false;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (isnull[i])
			hasnull = true;
		else if (att->attlen > 0)
			size += att->attlen;
		else if (att->attlen == -1)
			size += varlena_size(att, values[i]);
		else
			size += strlen(DatumGetCString(values[i])) + 1;
	}
	if (hasnull)
		size += IpBitmapSize(desc->natts);

	if (size > MaxAllocSize)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("row is too big: size %zu", size)));

	return Max(size, IP_ROW_MIN_BODY);
}

/* Store a by-value datum; returns the address behind it */
static inline uint8 *
put_byval(uint8 *p, int attlen, Datum value)
{
	switch (attlen)
	{
		case sizeof(int32):
			{
				int32		v = DatumGetInt32(value);

				memcpy(p, &v, sizeof(v));
				break;
			}
#if SIZEOF_DATUM == 8
		case sizeof(Datum):
			memcpy(p, &value, sizeof(value));
			break;
#endif
		case sizeof(int16):
			{
				int16		v = DatumGetInt16(value);

				memcpy(p, &v, sizeof(v));
				break;
			}
		case sizeof(char):
			*p = DatumGetUInt8(value);
			break;
		default:
			elog(ERROR, "unsupported by-value length %d", attlen);
	}
	return p + attlen;
}

/* Store a varlena value with a 4-byte header, short if possible */
static uint8 *
put_plain_varlena(uint8 *p, Form_pg_attribute att, Pointer ptr)
{
	Size		size = VARSIZE_4B(ptr);

	if (can_pack(att, size))
	{
		size = size - VARHDRSZ + VARHDRSZ_SHORT;
		SET_VARSIZE_SHORT(p, size);
		memcpy(VARDATA_SHORT(p), VARDATA(ptr), size - VARHDRSZ_SHORT);
	}
	else
		memcpy(p, ptr, size);

	return p + size;
}

/* Store any varlena value; returns the address behind it */
static uint8 *
put_varlena(uint8 *p, Form_pg_attribute att, Datum value, uint16 *hdr)
{
	Pointer		ptr = DatumGetPointer(value);
	Size		size;

	if (VARATT_IS_EXTERNAL_EXPANDED(ptr))
	{
		ExpandedObjectHeader *eoh = DatumGetEOHP(value);
		Pointer		flat;

		/* flatten methods write aligned words, but p is not aligned */
		size = EOH_get_flat_size(eoh);
		flat = palloc(size);
		EOH_flatten_into(eoh, flat, size);
		p = put_plain_varlena(p, att, flat);
		pfree(flat);
		return p;
	}

	if (VARATT_IS_4B_U(ptr))
		return put_plain_varlena(p, att, ptr);

	if (VARATT_IS_EXTERNAL(ptr))
		*hdr |= IP_HDR_HASEXTERNAL;
	size = VARSIZE_ANY(ptr);
	memcpy(p, ptr, size);
	return p + size;
}

/* See ip_body.h.  "size" is ip_body_size's result; returns the row's hdr. */
uint16
ip_body_form(TupleDesc desc, const Datum *values, const bool *isnull,
			 uint8 *body, uint32 size)
{
	int			natts = desc->natts;
	uint16		hdr = natts;
	uint8	   *p = body;

	if (memchr(isnull, true, natts) != NULL)
	{
		hdr |= IP_HDR_HASNULL;
		memset(body, 0, IpBitmapSize(natts));
		p += IpBitmapSize(natts);
	}

	for (int i = 0; i < natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (isnull[i])
			continue;
		if (hdr & IP_HDR_HASNULL)
			body[i >> 3] |= 1 << (i & 7);

		if (att->attbyval)
			p = put_byval(p, att->attlen, values[i]);
		else if (att->attlen == -1)
			p = put_varlena(p, att, values[i], &hdr);
		else
		{
			Pointer		ptr = DatumGetPointer(values[i]);
			Size		len = att->attlen > 0 ? (Size) att->attlen :
				strlen(ptr) + 1;

			memcpy(p, ptr, len);
			p += len;
		}
	}

	Assert(p <= body + size);
	memset(p, 0, body + size - p);
	return hdr;
}

/* ---- lengths of stored values -------------------------------------------- */

/* Address of the first value, behind the NULL bitmap */
static inline const uint8 *
first_value(uint16 hdr, const uint8 *body, uint32 bodylen)
{
	uint32		size;

	if ((hdr & IP_HDR_HASNULL) == 0)
		return body;

	size = IpBitmapSize(hdr & IP_HDR_NATTS_MASK);
	if (unlikely(size > bodylen))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("row body ends within its NULL bitmap")));
	return body + size;
}

/*
 * Returns whether the slot's row may have this TOAST pointer.  A pointer to
 * memory is valid only if the row was formed from values: one from a damaged
 * page would be followed anywhere.  A row never has a pointer to an expanded
 * object.
 */
static bool
may_be_external(const IpSlot *slot, const uint8 *p)
{
	if (VARTAG_1B_E(p) == VARTAG_ONDISK)
		return (slot->hdr & IP_HDR_HASEXTERNAL) != 0;
	return VARTAG_1B_E(p) == VARTAG_INDIRECT && slot->formed;
}

/* Length of a varlena value that is neither short nor cut off */
static pg_noinline uint32
long_varlena_length(const IpSlot *slot, const uint8 *p, const uint8 *end,
					int attnum)
{
	uint32		len;

	if (p >= end)
		report_truncated(attnum);

	if (VARATT_IS_1B_E(p))
	{
		if (end - p < (ptrdiff_t) VARHDRSZ_EXTERNAL)
			report_truncated(attnum);
		if (!may_be_external(slot, p))
			report_bad_varlena(attnum);
		len = VARSIZE_EXTERNAL(p);
	}
	else if (VARATT_IS_1B(p))
		len = VARSIZE_1B(p);
	else
	{
		varattrib_4b header;

		if (end - p < VARHDRSZ)
			report_truncated(attnum);
		memcpy(&header, p, VARHDRSZ);
		len = VARSIZE_4B(&header);
		if (len < (VARATT_IS_4B_C(p) ? VARHDRSZ_COMPRESSED : VARHDRSZ))
			report_bad_varlena(attnum);
	}

	if (len > end - p)
		report_truncated(attnum);
	return len;
}

/* Length of a varlena value, which lies before "end" */
static inline uint32
varlena_length(const IpSlot *slot, const uint8 *p, const uint8 *end, int attnum)
{
	if (likely(p < end && VARATT_IS_1B(p) && VARSIZE_1B(p) <= end - p &&
			   !VARATT_IS_1B_E(p)))
		return VARSIZE_1B(p);
	return long_varlena_length(slot, p, end, attnum);
}

/*
 * Length of a value of fixed length, or of a cstring, which lies before "end"
 */
static inline uint32
other_length(int attlen, const uint8 *p, const uint8 *end, int attnum)
{
	if (likely(attlen > 0))
	{
		if (unlikely(attlen > end - p))
			report_truncated(attnum);
		return attlen;
	}
	else
	{
		const uint8 *nul = memchr(p, 0, end - p);

		if (nul == NULL)
			report_truncated(attnum);
		return nul - p + 1;
	}
}

/* Length of a varlena value that is not a short one; 0 if it is damaged */
static pg_noinline uint32
measure_varlena(const uint8 *p, const uint8 *end, uint16 hdr)
{
	uint32		header;

	if (p >= end)
		return 0;
	if (VARATT_IS_1B_E(p))
	{
		if (end - p < (ptrdiff_t) VARHDRSZ_EXTERNAL ||
			VARTAG_1B_E(p) != VARTAG_ONDISK || !(hdr & IP_HDR_HASEXTERNAL))
			return 0;
		return VARSIZE_EXTERNAL(p);
	}
	if (VARATT_IS_1B(p))
		return VARSIZE_1B(p);
	if (end - p < VARHDRSZ)
		return 0;
	memcpy(&header, p, VARHDRSZ);
	if (VARSIZE_4B(&header) <
		(VARATT_IS_4B_C(p) ? VARHDRSZ_COMPRESSED : VARHDRSZ))
		return 0;
	return VARSIZE_4B(&header);
}

/* Length of a value of any type; 0 if it is damaged */
static inline uint32
measure_value(int attlen, const uint8 *p, const uint8 *end, uint16 hdr)
{
	const uint8 *nul;

	if (attlen > 0)
		return attlen;
	if (attlen == -1)
		return likely(p < end && VARATT_IS_1B(p) && !VARATT_IS_1B_E(p)) ?
			VARSIZE_1B(p) : measure_varlena(p, end, hdr);
	nul = memchr(p, 0, end - p);
	return nul ? nul - p + 1 : 0;
}

int
ip_body_measure(TupleDesc desc, uint16 hdr, const uint8 *body, uint32 bodylen,
				int *column)
{
	int			natts = hdr & IP_HDR_NATTS_MASK;
	bool		hasnull = (hdr & IP_HDR_HASNULL) != 0;
	const uint8 *end = body + bodylen;
	const uint8 *p = body;

	*column = 0;
	if (hasnull)
		p += IpBitmapSize(natts);
	if (natts > desc->natts || p > end)
		return -1;
	for (int i = 0; i < natts; i++)
	{
		uint32		len;

		if (hasnull && att_isnull(i, body))
			continue;
		len = measure_value(TupleDescAttr(desc, i)->attlen, p, end, hdr);
		if (unlikely(len == 0 || len > end - p))
		{
			*column = i + 1;
			return -1;
		}
		p += len;
	}
	return p - body;
}

uint32
ip_body_length(TupleDesc desc, uint16 hdr, const uint8 *body, uint32 bodylen)
{
	int			column;
	int			len = ip_body_measure(desc, hdr, body, bodylen, &column);

	if (len >= 0)
		return len;
	if ((hdr & IP_HDR_NATTS_MASK) > desc->natts)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("row has %d columns, but its table has %d",
						hdr & IP_HDR_NATTS_MASK, desc->natts)));
	(void) first_value(hdr, body, bodylen);
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("value of column %d is damaged or reaches beyond the row body",
					column)));
}

/* ---- deforming ----------------------------------------------------------- */

/* See ip_body.h */
void
ip_body_reserve(MemoryContext context, char **buffer, uint32 *buffersize,
				uint32 size)
{
	Size		newsize = IP_MIN_BUFFER;

	if (likely(size <= *buffersize))
		return;

	if (*buffer != NULL)
	{
		pfree(*buffer);
		*buffer = NULL;
		*buffersize = 0;
	}
	while (newsize < size)
		newsize <<= 1;
	*buffer = MemoryContextAllocHuge(context, newsize);
	*buffersize = newsize;
}

/*
 * memcpy, without a call for the usual lengths of fixed by-reference types
 * (interval, point, timetz): two words, which overlap if len is less than 16.
 */
static inline void
copy_value(char *dst, const uint8 *src, uint32 len)
{
	if (len >= sizeof(uint64) && len <= 2 * sizeof(uint64))
	{
		uint64		first;
		uint64		last;

		memcpy(&first, src, sizeof(first));
		memcpy(&last, src + len - sizeof(last), sizeof(last));
		memcpy(dst, &first, sizeof(first));
		memcpy(dst + len - sizeof(last), &last, sizeof(last));
	}
	else
		memcpy(dst, src, len);
}

/*
 * By-reference value at p, at an address that suits its type.
 *
 * Copies go to the slot's scratch buffer.  Values point into that buffer, so
 * before the row's first copy it gets the size for all copies that the row can
 * ever need.
 */
static inline Datum
byref_value(IpSlot *slot, char attalign, const uint8 *p, uint32 len)
{
	char	   *copy;

	if (attalign == TYPALIGN_CHAR ||
		att_align_nominal((uintptr_t) p, attalign) == (uintptr_t) p)
		return PointerGetDatum(p);

	if (slot->scratchused == 0)
		ip_body_reserve(slot->base.tts_mcxt,
						&slot->scratch, &slot->scratchsize,
						slot->bodylen + MAXIMUM_ALIGNOF *
						(slot->hdr & IP_HDR_NATTS_MASK));

	/* can be true only if deforming the row failed before */
	if (unlikely(len > slot->scratchsize - slot->scratchused))
		elog(ERROR, "no room for values of the row");

	copy = slot->scratch + slot->scratchused;
	copy_value(copy, p, len);
	slot->scratchused += MAXALIGN(len);
	return PointerGetDatum(copy);
}

/* By-value datum at p */
static inline Datum
byval_value(int attlen, const uint8 *p)
{
	switch (attlen)
	{
		case sizeof(int32):
			{
				int32		v;

				memcpy(&v, p, sizeof(v));
				return Int32GetDatum(v);
			}
#if SIZEOF_DATUM == 8
		case sizeof(Datum):
			{
				Datum		v;

				memcpy(&v, p, sizeof(v));
				return v;
			}
#endif
		case sizeof(int16):
			{
				int16		v;

				memcpy(&v, p, sizeof(v));
				return Int16GetDatum(v);
			}
		case sizeof(char):
			return CharGetDatum(*(const char *) p);
		default:
			elog(ERROR, "unsupported by-value length %d", attlen);
			return (Datum) 0;
	}
}

/*
 * Loop of ip_body_deform_slot.  "hasnull" is a constant where this is inlined,
 * so that rows without NULLs do not test for them.
 */
static pg_attribute_always_inline void
deform_columns(IpSlot *slot, const uint8 *p, int natts, const bool hasnull)
{
	TupleDesc	desc = slot->base.tts_tupleDescriptor;
	Datum	   *values = slot->base.tts_values;
	bool	   *isnull = slot->base.tts_isnull;
	const uint8 *body = slot->body;
	const uint8 *end = body + slot->bodylen;

	for (int i = slot->base.tts_nvalid; i < natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		uint32		len;

		if (hasnull && att_isnull(i, body))
		{
			values[i] = (Datum) 0;
			isnull[i] = true;
			continue;
		}

		isnull[i] = false;
		if (att->attlen == -1)
		{
			len = varlena_length(slot, p, end, i);
			values[i] = VARATT_IS_1B(p) ? PointerGetDatum(p) :
				byref_value(slot, att->attalign, p, len);
		}
		else
		{
			len = other_length(att->attlen, p, end, i);
			values[i] = att->attbyval ? byval_value(att->attlen, p) :
				byref_value(slot, att->attalign, p, len);
		}
		p += len;
	}

	slot->base.tts_nvalid = natts;
	slot->off = p - body;
}

/* See ip_body.h */
void
ip_body_deform_slot(IpSlot *slot, int natts)
{
	const uint8 *p;

	natts = Min(natts, slot->hdr & IP_HDR_NATTS_MASK);
	if (natts <= slot->base.tts_nvalid)
		return;

	if (slot->base.tts_nvalid == 0)
		p = first_value(slot->hdr, slot->body, slot->bodylen);
	else
		p = slot->body + slot->off;

	if (slot->hdr & IP_HDR_HASNULL)
		deform_columns(slot, p, natts, true);
	else
		deform_columns(slot, p, natts, false);
}

/* See ip_body.h */
void
ip_body_deform(TupleDesc desc, uint16 hdr, const uint8 *body, uint32 bodylen,
			   int natts, bool formed, Datum *values, bool *isnull)
{
	IpSlot		slot = {
		.base = {
			.tts_tupleDescriptor = desc,
			.tts_values = values,
			.tts_isnull = isnull,
			.tts_mcxt = CurrentMemoryContext
		},
		.body = body,
		.bodylen = bodylen,
		.hdr = hdr,
		.formed = formed
	};

	/* the slot is gone at return, but its scratch buffer lives on */
	ip_body_deform_slot(&slot, natts);

	for (int i = slot.base.tts_nvalid; i < natts; i++)
		values[i] = getmissingattr(desc, i + 1, &isnull[i]);
}
