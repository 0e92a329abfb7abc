/*-------------------------------------------------------------------------
 * pb_codec.c
 *	  Encodings of a column's values in a key.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/detoast.h"
#include "access/heaptoast.h"
#include "access/nbtree.h"
#include "access/toast_internals.h"
#include "port/pg_bswap.h"
#include "utils/fmgroids.h"

#include "compat_index.h"
#include "pb_codec.h"

/*
 * Choose the codec that a comparison function allows, for values of this
 * width.
 */
static const struct
{
	Oid			cmp;
	int16		len;
	uint8		codec;
}			codecs[] = {
	{F_BTBOOLCMP, 1, PB_CODEC_BOOL},
	{F_BTCHARCMP, 1, PB_CODEC_CHAR},
	{F_BTINT2CMP, 2, PB_CODEC_INT2},
	{F_BTINT4CMP, 4, PB_CODEC_INT4},
	{F_DATE_CMP, 4, PB_CODEC_INT4},
	{F_BTINT8CMP, 8, PB_CODEC_INT8},
	{F_TIMESTAMP_CMP, 8, PB_CODEC_INT8},
	{F_TIMESTAMPTZ_CMP, 8, PB_CODEC_INT8},
	{F_TIME_CMP, 8, PB_CODEC_INT8},
	{F_CASH_CMP, 8, PB_CODEC_INT8},
	{F_BTOIDCMP, 4, PB_CODEC_UINT4},
	{F_XID8CMP, 8, PB_CODEC_UINT8},
	{F_PG_LSN_CMP, 8, PB_CODEC_UINT8},
	{F_UUID_CMP, 16, PB_CODEC_BYTES},
	{F_MACADDR_CMP, 6, PB_CODEC_BYTES},
	{F_MACADDR8_CMP, 8, PB_CODEC_BYTES},
	{F_BTTEXTCMP, -1, PB_CODEC_TEXT},
	{F_BTTEXT_PATTERN_CMP, -1, PB_CODEC_TEXT_C},
	{F_BTNAMECMP, NAMEDATALEN, PB_CODEC_NAME},
	{F_BYTEACMP, -1, PB_CODEC_BYTEA}
};

/* Choose the codec of a column, counted from 0, of a new index. */
uint8
pb_codec_choose(Relation rel, int column)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), column);
	uint8		codec = 0;

	if (column < IndexRelationGetNumberOfKeyAttributes(rel))
	{
		Oid			cmp = index_getprocid(rel, column + 1, BTORDER_PROC);

		for (int i = 0; i < lengthof(codecs); i++)
		{
			if (codecs[i].cmp == cmp && codecs[i].len == att->attlen)
				codec = codecs[i].codec;
		}
		if (codec == PB_CODEC_TEXT &&
			CompatCollationIsC(rel->rd_indcollation[column]))
			codec = PB_CODEC_TEXT_C;
		if (codec == PB_CODEC_NAME &&
			CompatCollationIsC(rel->rd_indcollation[column]))
			codec = PB_CODEC_NAME_C;
		if (PbCodecIsOrdered(codec) &&
			(rel->rd_indoption[column] & INDOPTION_DESC))
			codec |= PB_CODEC_INVERTED;
	}
	if (codec != 0)
		return codec;
	return att->attlen > 0 ? PB_CODEC_RAW :
		att->attlen == -1 ? PB_CODEC_VARLENA : PB_CODEC_CSTRING;
}

/* The size of all of its values, or 0. */
int
pb_codec_width(uint8 codec, int16 len)
{
	switch (PbCodecKind(codec))
	{
		case PB_CODEC_VARLENA:
		case PB_CODEC_CSTRING:
		case PB_CODEC_TEXT:
		case PB_CODEC_NAME:
		case PB_CODEC_TEXT_C:
		case PB_CODEC_NAME_C:
		case PB_CODEC_BYTEA:
			return 0;
		default:
			return len;
	}
}

static int
put_terminated(const char *data, int len, uint8 *to, int room)
{
	if (len + 1 > room)
		return -1;
	memcpy(to, data, len);
	to[len] = 0;
	return len + 1;
}

static int
put_counted(const char *data, int len, uint8 *to, int room)
{
	int			n = 0;
	uint32		v = len;

	if (len + 3 > room)
		return -1;
	for (; v > 0x7F; v >>= 7)
		to[n++] = (v & 0x7F) | 0x80;
	to[n++] = v;
	memcpy(to + n, data, len);
	return n + len;
}

static int
put_escaped(const uint8 *data, int len, uint8 *to, int room)
{
	int			n = 0;

	for (int i = 0; i < len; i++)
	{
		if (n + 4 > room)
			return -1;
		to[n++] = data[i];
		if (data[i] == 0)
			to[n++] = 1;
	}
	if (n + 2 > room)
		return -1;
	to[n++] = 0;
	to[n++] = 0;
	return n;
}

static int
put_big_endian(uint64 v, int len, uint8 *to, int room)
{
	if (len > room)
		return -1;
	for (int i = len - 1; i >= 0; i--, v >>= 8)
		to[i] = (uint8) v;
	return len;
}

/*
 * Encode a varlena.  Long ones are compressed, as in nbtree, and then
 * "packed".  Equal values have equal bytes, whatever the column's storage and
 * compression are at the time.
 */
static int
encode_varlena(const PbColumn *col, Datum value, uint8 *to, int room,
			   bool *packed)
{
	void	   *stored = DatumGetPointer(value);
	struct varlena *v = pg_detoast_datum_packed(stored);
	char	   *data = VARDATA_ANY(v);
	int			len = VARSIZE_ANY_EXHDR(v);
	int			result;

	if (packed != NULL && len > TOAST_INDEX_TARGET && !VARATT_IS_SHORT(v) &&
		col->compressible)
	{
		Datum		compressed = toast_compress_datum(PointerGetDatum(v),
													  TOAST_PGLZ_COMPRESSION);

		if (DatumGetPointer(compressed) != NULL)
		{
			*packed = true;
			result = put_counted(DatumGetPointer(compressed),
								 VARSIZE(DatumGetPointer(compressed)), to,
								 room);
			pfree(DatumGetPointer(compressed));
			if ((Pointer) v != DatumGetPointer(value))
				pfree(v);
			return result;
		}
	}
	switch (PbCodecKind(col->codec))
	{
		case PB_CODEC_TEXT:
		case PB_CODEC_TEXT_C:
			result = put_terminated(data, len, to, room);
			break;
		case PB_CODEC_BYTEA:
			result = put_escaped((uint8 *) data, len, to, room);
			break;
		default:
			result = put_counted(data, len, to, room);
			break;
	}
	if ((Pointer) v != DatumGetPointer(value))
		pfree(v);
	return result;
}

static int
encode_plain(const PbColumn *col, Datum value, uint8 *to, int room,
			 bool *packed)
{
	Datum		aligned;

	switch (PbCodecKind(col->codec))
	{
		case PB_CODEC_VARLENA:
		case PB_CODEC_TEXT:
		case PB_CODEC_TEXT_C:
		case PB_CODEC_BYTEA:
			return encode_varlena(col, value, to, room, packed);
		case PB_CODEC_CSTRING:
			return put_terminated(DatumGetCString(value),
								  strlen(DatumGetCString(value)), to, room);
		case PB_CODEC_NAME:
		case PB_CODEC_NAME_C:
			return put_terminated(NameStr(*DatumGetName(value)),
								  strnlen(NameStr(*DatumGetName(value)),
										  NAMEDATALEN - 1),
								  to, room);
		case PB_CODEC_BOOL:
			return put_big_endian(DatumGetBool(value), 1, to, room);
		case PB_CODEC_CHAR:
			return put_big_endian((uint8) DatumGetChar(value), 1, to, room);
		case PB_CODEC_INT2:
			return put_big_endian((uint16) DatumGetInt16(value) ^ 0x8000, 2, to,
								  room);
		case PB_CODEC_INT4:
			return put_big_endian((uint32) DatumGetInt32(value) ^ 0x80000000, 4,
								  to, room);
		case PB_CODEC_INT8:
			return put_big_endian((uint64) DatumGetInt64(value) ^
								  UINT64CONST(0x8000000000000000),
								  8, to, room);
		case PB_CODEC_UINT4:
			return put_big_endian(DatumGetUInt32(value), 4, to, room);
		case PB_CODEC_UINT8:
			return put_big_endian(DatumGetUInt64(value), 8, to, room);
		default:
			break;
	}
	Assert(PbCodecKind(col->codec) == PB_CODEC_RAW ||
		   PbCodecKind(col->codec) == PB_CODEC_BYTES);
	if (col->len > room)
		return -1;
	if (col->byval)
	{
		/* keys are not aligned */
		store_att_byval(&aligned, value, col->len);
		memcpy(to, &aligned, col->len);
	}
	else
		memcpy(to, DatumGetPointer(value), col->len);
	return col->len;
}

/*
 * Encode a value.  Returns the length, or -1 if there is not enough room.
 * "packed" is set if the value was compressed; with NULL it is never
 * compressed.
 */
int
pb_codec_encode(const PbColumn *col, Datum value, uint8 *to, int room,
				bool *packed)
{
	bool		compressed = false;
	int			len = encode_plain(col, value, to, room,
								   packed ? &compressed : NULL);

	if (packed)
		*packed = compressed;
	if ((col->codec & PB_CODEC_INVERTED) && !compressed)
	{
		for (int i = 0; i < len; i++)
			to[i] = ~to[i];
	}
	return len;
}

static int
skip_counted(const uint8 *p, const uint8 *end)
{
	uint32		len = 0;
	int			n = 0;

	do
	{
		if (p + n >= end || n == 3)
			return -1;
		len |= (uint32) (p[n] & 0x7F) << (7 * n);
	} while (p[n++] & 0x80);
	return len <= end - p - n ? n + len : -1;
}

/*
 * Get the length of the encoding at p, or -1 if it does not end before "end".
 */
int
pb_codec_skip(const PbColumn *col, int state, const uint8 *p, const uint8 *end)
{
	uint8		zero = (col->codec & PB_CODEC_INVERTED) ? 0xFF : 0;

	if (state == PB_COL_NULL)
		return 0;
	if (state == PB_COL_PACKED)
		return skip_counted(p, end);
	if (col->fixed > 0)
		return end - p >= col->fixed ? col->fixed : -1;
	if (PbCodecKind(col->codec) == PB_CODEC_VARLENA)
		return skip_counted(p, end);
	for (const uint8 *q = p; q < end; q++)
	{
		q = memchr(q, zero, end - q);
		if (q == NULL)
			return -1;
		if (PbCodecKind(col->codec) != PB_CODEC_BYTEA)
			return q + 1 - p;
		if (++q < end && *q == zero)
			return q + 1 - p;
	}
	return -1;
}

static void *
arena_get(PbArena *arena, Size size)
{
	void	   *result = arena->u.data + arena->used;

	if (size > sizeof(arena->u.data) - arena->used)
		return palloc(size);
	arena->used = Min(arena->used + MAXALIGN(size), sizeof(arena->u.data));
	return result;
}

static uint64
get_big_endian(const uint8 *p, int len, uint8 invert)
{
	uint64		v = 0;

	if (len == sizeof(uint32))
	{
		uint32		word;

		memcpy(&word, p, sizeof(word));
		return pg_ntoh32(word) ^ (invert ? PG_UINT32_MAX : 0);
	}
	if (len == sizeof(uint64))
	{
		memcpy(&v, p, sizeof(v));
		return pg_ntoh64(v) ^ (invert ? PG_UINT64_MAX : 0);
	}
	for (int i = 0; i < len; i++)
		v = v << 8 | (uint8) (p[i] ^ invert);
	return v;
}

static Datum
decode_varlena(const uint8 *data, int len, uint8 invert, PbArena *arena)
{
	struct varlena *v = arena_get(arena, VARHDRSZ + len);
	uint8	   *to = (uint8 *) VARDATA(v);

	SET_VARSIZE(v, VARHDRSZ + len);
	if (!invert)
		memcpy(to, data, len);
	else
	{
		for (int i = 0; i < len; i++)
			to[i] = ~data[i];
	}
	return PointerGetDatum(v);
}

static Datum
decode_bytea(const uint8 *p, int len, uint8 invert, PbArena *arena)
{
	struct varlena *v = arena_get(arena, VARHDRSZ + len);
	uint8	   *to = (uint8 *) VARDATA(v);
	int			n = 0;

	for (int i = 0; i < len - 2; i++)
	{
		to[n++] = p[i] ^ invert;
		if (to[n - 1] == 0)
			i++;
	}
	SET_VARSIZE(v, VARHDRSZ + n);
	return PointerGetDatum(v);
}

/* Decode a whole encoding.  pb_codec_skip has checked its length. */
static Datum
decode_counted(int state, const uint8 *p, int len, PbArena *arena)
{
	int			n = 0;
	struct varlena *v;

	while (p[n++] & 0x80);
	if (state != PB_COL_PACKED)
		return decode_varlena(p + n, len - n, 0, arena);
	v = arena_get(arena, len - n);
	memcpy(v, p + n, len - n);
	if (len - n < VARHDRSZ_COMPRESSED || !VARATT_IS_COMPRESSED(v) ||
		VARSIZE(v) != len - n)
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("a compressed value of a pbtree index is damaged")));
	return PointerGetDatum(detoast_attr(v));
}

static Datum
decode_fixed(const PbColumn *col, const uint8 *p, uint8 invert, PbArena *arena)
{
	char	   *to = arena_get(arena, col->len);

	for (int i = 0; i < col->len; i++)
		to[i] = p[i] ^ invert;
	return col->byval ? fetch_att(to, true, col->len) : PointerGetDatum(to);
}

/* Write a column of fixed width as in a tuple. */
void
pb_codec_decode_to(const PbColumn *col, const uint8 *p, char *to)
{
	uint8		invert = (col->codec & PB_CODEC_INVERTED) ? 0xFF : 0;
	int			kind = PbCodecKind(col->codec);
	uint64		sign = 0;

	if (kind == PB_CODEC_INT2 || kind == PB_CODEC_INT4 || kind == PB_CODEC_INT8)
		sign = UINT64CONST(1) << (col->len * 8 - 1);
	switch (kind)
	{
		case PB_CODEC_INT2:
		case PB_CODEC_INT4:
		case PB_CODEC_INT8:
		case PB_CODEC_UINT4:
		case PB_CODEC_UINT8:
			{
				uint64		v = get_big_endian(p, col->len, invert) ^ sign;
				uint32		four = (uint32) v;
				uint16		two = (uint16) v;

				if (col->len == sizeof(v))
					memcpy(to, &v, sizeof(v));
				else if (col->len == sizeof(four))
					memcpy(to, &four, sizeof(four));
				else
					memcpy(to, &two, sizeof(two));
				break;
			}
		default:
			for (int i = 0; i < col->len; i++)
				to[i] = p[i] ^ invert;
			break;
	}
}

Datum
pb_codec_decode(const PbColumn *col, int state, const uint8 *p, int len,
				PbArena *arena)
{
	uint8		invert = (col->codec & PB_CODEC_INVERTED) ? 0xFF : 0;

	if (state == PB_COL_PACKED)
		return decode_counted(state, p, len, arena);
	switch (PbCodecKind(col->codec))
	{
		case PB_CODEC_VARLENA:
			return decode_counted(state, p, len, arena);
		case PB_CODEC_TEXT:
		case PB_CODEC_TEXT_C:
			return decode_varlena(p, len - 1, invert, arena);
		case PB_CODEC_BYTEA:
			return decode_bytea(p, len, invert, arena);
		case PB_CODEC_CSTRING:
			return CStringGetDatum(memcpy(arena_get(arena, len), p, len));
		case PB_CODEC_NAME:
		case PB_CODEC_NAME_C:
			{
				char	   *name = memset(arena_get(arena, NAMEDATALEN), 0,
										  NAMEDATALEN);

				for (int i = 0; i < Min(len - 1, NAMEDATALEN - 1); i++)
					name[i] = p[i] ^ invert;
				return PointerGetDatum(name);
			}
		case PB_CODEC_BOOL:
			return BoolGetDatum(get_big_endian(p, 1, invert) != 0);
		case PB_CODEC_CHAR:
			return CharGetDatum((char) get_big_endian(p, 1, invert));
		case PB_CODEC_INT2:
			return Int16GetDatum((int16) (get_big_endian(p, 2, invert) ^
										  0x8000));
		case PB_CODEC_INT4:
			return Int32GetDatum((int32) (get_big_endian(p, 4, invert) ^
										  0x80000000));
		case PB_CODEC_INT8:
			return Int64GetDatum((int64) (get_big_endian(p, 8, invert) ^
										  UINT64CONST(0x8000000000000000)));
		case PB_CODEC_UINT4:
			return UInt32GetDatum((uint32) get_big_endian(p, 4, invert));
		case PB_CODEC_UINT8:
			return UInt64GetDatum(get_big_endian(p, 8, invert));
		default:
			return decode_fixed(col, p, invert, arena);
	}
}
