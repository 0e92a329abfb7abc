/*-------------------------------------------------------------------------
 * bytes.h
 *	  Bounded readers and writers of bytes.
 *
 *	  Integers of a fixed size are in the machine's byte order, not aligned.  A
 *	  varint has 7 bits a byte, low bits first; zigzag is a varint with the
 *	  sign in the lowest bit.  No server dependencies.
 *-------------------------------------------------------------------------
 */
#ifndef PG_INPLACE_BYTES_H
#define PG_INPLACE_BYTES_H

/* A bounded reader: after an overrun "bad" is set and zeros are returned. */
typedef struct ByteReader
{
	const uint8 *p;
	const uint8 *end;
	bool		bad;
} ByteReader;

/* A bounded writer: after an overrun "bad" is set and nothing is written. */
typedef struct ByteWriter
{
	uint8	   *p;
	uint8	   *end;
	bool		bad;
} ByteWriter;

extern uint32 bytes_get_long_varint(ByteReader *r);
extern void bytes_put_long_varint(ByteWriter *w, uint32 v);

static inline const uint8 *
bytes_get(ByteReader *r, uint32 len)
{
	const uint8 *p = r->p;

	if (unlikely(r->bad || len > (size_t) (r->end - r->p)))
	{
		r->bad = true;
		return NULL;
	}
	r->p += len;
	return p;
}

static inline void
bytes_put(ByteWriter *w, const void *data, uint32 len)
{
	if (unlikely(w->bad || len > (size_t) (w->end - w->p)))
	{
		w->bad = true;
		return;
	}
	/* C wants a pointer to copy from even where there are no bytes */
	if (len > 0)
		memcpy(w->p, data, len);
	w->p += len;
}

#define BYTES_FIXED(name, type) \
static inline type \
bytes_get_##name(ByteReader *r) \
{ \
	type		v = 0; \
	const uint8 *p = bytes_get(r, sizeof(type)); \
	if (p) \
		memcpy(&v, p, sizeof(type)); \
	return v; \
} \
static inline void \
bytes_put_##name(ByteWriter *w, type v) \
{ \
	bytes_put(w, &v, sizeof(v)); \
}

BYTES_FIXED(u8, uint8)
BYTES_FIXED(u16, uint16)
BYTES_FIXED(u32, uint32)
BYTES_FIXED(u64, uint64)

static inline uint32
bytes_get_varint(ByteReader *r)
{
	if (likely(!r->bad && r->p < r->end && *r->p < 0x80))
		return *r->p++;
	return bytes_get_long_varint(r);
}

static inline void
bytes_put_varint(ByteWriter *w, uint32 v)
{
	if (likely(v < 0x80 && !w->bad && w->p < w->end))
		*w->p++ = (uint8) v;
	else
		bytes_put_long_varint(w, v);
}

static inline int32
bytes_get_zigzag(ByteReader *r)
{
	uint32		v = bytes_get_varint(r);

	return (int32) (v >> 1) ^ -(int32) (v & 1);
}

static inline void
bytes_put_zigzag(ByteWriter *w, int32 v)
{
	bytes_put_varint(w, ((uint32) v << 1) ^ (uint32) (v >> 31));
}

#endif							/* PG_INPLACE_BYTES_H */
