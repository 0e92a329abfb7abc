/*-------------------------------------------------------------------------
 * ip_delta.c
 *	  Variable-length integers and byte-range deltas.
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/pg_bitutils.h"

#include "ip_delta.h"

/* A hunk costs three bytes: shorter runs of equal bytes are not worth one. */
#define IP_DELTA_MIN_GAP	4

const uint8 *
ip_get_bytes(IpReader *r, uint32 len)
{
	const uint8 *p = r->p;

	if (r->bad || len > (size_t) (r->end - r->p))
	{
		r->bad = true;
		return NULL;
	}
	r->p += len;
	return p;
}

uint8
ip_get_u8(IpReader *r)
{
	const uint8 *p = ip_get_bytes(r, 1);

	return p ? *p : 0;
}

/* fixed-size integers are stored in the machine's byte order, unaligned */
#define IP_GET_FIXED(name, type) \
type \
name(IpReader *r) \
{ \
	type		v = 0; \
	const uint8 *p = ip_get_bytes(r, sizeof(type)); \
	if (p) \
		memcpy(&v, p, sizeof(type)); \
	return v; \
}

IP_GET_FIXED(ip_get_u16, uint16)
IP_GET_FIXED(ip_get_u32, uint32)
IP_GET_FIXED(ip_get_u64, uint64)

uint32
ip_get_varint(IpReader *r)
{
	uint32		v = 0;
	int			shift;

	for (shift = 0; shift < 35; shift += 7)
	{
		uint8		b = ip_get_u8(r);

		v |= (uint32) (b & 0x7F) << shift;
		if ((b & 0x80) == 0)
			return v;
	}
	r->bad = true;
	return 0;
}

void
ip_put_bytes(IpWriter *w, const void *data, uint32 len)
{
	if (w->bad || len > (size_t) (w->end - w->p))
	{
		w->bad = true;
		return;
	}
	memcpy(w->p, data, len);
	w->p += len;
}

void
ip_put_u8(IpWriter *w, uint8 v)
{
	ip_put_bytes(w, &v, sizeof(v));
}

void
ip_put_u16(IpWriter *w, uint16 v)
{
	ip_put_bytes(w, &v, sizeof(v));
}

void
ip_put_u32(IpWriter *w, uint32 v)
{
	ip_put_bytes(w, &v, sizeof(v));
}

void
ip_put_u64(IpWriter *w, uint64 v)
{
	ip_put_bytes(w, &v, sizeof(v));
}

void
ip_put_long_varint(IpWriter *w, uint32 v)
{
	uint8		buf[5];
	int			n = 0;

	while (v >= 0x80)
	{
		buf[n++] = (uint8) (v | 0x80);
		v >>= 7;
	}
	buf[n++] = (uint8) v;
	ip_put_bytes(w, buf, n);
}

int32
ip_get_zigzag(IpReader *r)
{
	uint32		v = ip_get_varint(r);

	return (int32) (v >> 1) ^ -(int32) (v & 1);
}

void
ip_put_zigzag(IpWriter *w, int32 v)
{
	ip_put_varint(w, ((uint32) v << 1) ^ (uint32) (v >> 31));
}

/* In words that are not equal: how many bytes in front are. */
static inline uint32
equal_bytes(uint64 a, uint64 b)
{
#ifdef WORDS_BIGENDIAN
	return (63 - pg_leftmost_one_pos64(a ^ b)) / 8;
#else
	return pg_rightmost_one_pos64(a ^ b) / 8;
#endif
}

/* In words that are not equal: how many bytes up to the last one that is not. */
static inline uint32
bytes_to_last_change(uint32 a, uint32 b)
{
#ifdef WORDS_BIGENDIAN
	return 4 - pg_rightmost_one_pos32(a ^ b) / 8;
#else
	return 1 + pg_leftmost_one_pos32(a ^ b) / 8;
#endif
}

static uint32
common_prefix(const uint8 *a, const uint8 *b, uint32 len)
{
	uint32		i;

	for (i = 0; i + sizeof(uint64) <= len; i += sizeof(uint64))
	{
		uint64		wa;
		uint64		wb;

		memcpy(&wa, a + i, sizeof(wa));
		memcpy(&wb, b + i, sizeof(wb));
		if (wa != wb)
			return i + equal_bytes(wa, wb);
	}
	while (i < len && a[i] == b[i])
		i++;
	return i;
}

static uint32
common_suffix(const uint8 *a_end, const uint8 *b_end, uint32 len)
{
	uint32		i;

	for (i = 0; i + sizeof(uint32) <= len; i += sizeof(uint32))
	{
		uint32		wa;
		uint32		wb;

		memcpy(&wa, a_end - i - sizeof(wa), sizeof(wa));
		memcpy(&wb, b_end - i - sizeof(wb), sizeof(wb));
		if (wa != wb)
			return i + sizeof(wa) - bytes_to_last_change(wa, wb);
	}
	while (i < len && a_end[-1 - (int) i] == b_end[-1 - (int) i])
		i++;
	return i;
}

static void
put_hunk(IpWriter *w, uint32 copy, uint32 dropped, const uint8 *bytes, uint32 inserted)
{
	ip_put_varint(w, copy);
	ip_put_varint(w, inserted << 1 | (dropped != inserted));
	if (dropped != inserted)
		ip_put_varint(w, dropped);
	ip_put_bytes(w, bytes, inserted);
}

/* End of the changed bytes that start at i: IP_DELTA_MIN_GAP equal ones follow. */
static uint32
hunk_end(const uint8 *a, const uint8 *b, uint32 i, uint32 len)
{
	uint32		end = i + 1;

	StaticAssertStmt(IP_DELTA_MIN_GAP == sizeof(uint32), "a gap is a word");
	while (end + IP_DELTA_MIN_GAP <= len)
	{
		uint32		wa;
		uint32		wb;

		memcpy(&wa, a + end, sizeof(wa));
		memcpy(&wb, b + end, sizeof(wb));
		if (wa == wb)
			return end;
		end += bytes_to_last_change(wa, wb);
	}
	for (i = end; i < len && i < end + IP_DELTA_MIN_GAP; i++)
	{
		if (a[i] != b[i])
			end = i + 1;
	}
	return end;
}

/*
 * Hunks for the bytes that differ at the same place, up to the end that both have in
 * common; where the lengths differ, the last hunk makes up for it.
 */
void
ip_delta_make(IpWriter *w, const uint8 *from, uint32 fromlen,
			  const uint8 *to, uint32 tolen)
{
	uint32		shorter = Min(fromlen, tolen);
	uint32		start = common_prefix(from, to, shorter);
	uint32		suffix = fromlen == tolen ? 0 :
		common_suffix(from + fromlen, to + tolen, shorter - start);
	uint32		len = shorter - suffix;
	uint32		done = 0;
	uint32		nhunks = 0;
	uint8	   *count_at = w->p;

	/* one byte for the number of hunks: the 127th takes all the rest */
	ip_put_u8(w, 0);
	while (start < len)
	{
		uint32		end = nhunks == 126 ? len : hunk_end(from, to, start, len);

		if (end == len)
			break;
		put_hunk(w, start - done, end - start, to + start, end - start);
		nhunks++;
		done = end;
		start = done + common_prefix(from + done, to + done, len - done);
	}
	if (start < len || fromlen != tolen)
	{
		put_hunk(w, start - done, fromlen - suffix - start, to + start, tolen - suffix - start);
		nhunks++;
	}
	if (!w->bad)
		*count_at = (uint8) nhunks;
}

int
ip_delta_apply(IpReader *r, const uint8 *base, uint32 baselen, uint8 *out, uint32 cap)
{
	uint32		nhunks = ip_get_varint(r);
	uint32		pos = 0;
	uint32		len = 0;

	for (; nhunks > 0 && !r->bad; nhunks--)
	{
		uint32		copy = ip_get_varint(r);
		uint32		ins = ip_get_varint(r);
		uint32		drop = (ins & 1) ? ip_get_varint(r) : ins >> 1;
		const uint8 *bytes;

		ins >>= 1;
		bytes = ip_get_bytes(r, ins);
		if (r->bad || copy > baselen - pos || drop > baselen - pos - copy ||
			copy > cap - len || ins > cap - len - copy)
			return -1;
		memcpy(out + len, base + pos, copy);
		memcpy(out + len + copy, bytes, ins);
		len += copy + ins;
		pos += copy + drop;
	}
	if (r->bad || baselen - pos > cap - len)
		return -1;
	memcpy(out + len, base + pos, baselen - pos);
	return (int) (len + baselen - pos);
}
