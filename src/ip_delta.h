/*-------------------------------------------------------------------------
 * ip_delta.h
 *	  Variable-length integers and byte-range deltas between two row bodies.
 *
 * A delta is a number of hunks; each says how many bytes of the base to copy,
 * how many to drop and which bytes to put there:
 *
 *	nhunks { copy, (inserted << 1 | (dropped != inserted)), [dropped], bytes }
 *
 * All numbers are varints of 7 bits a byte, low bits first (zigzag: with the
 * sign in the lowest bit).  What the last
 * hunk leaves of the base is copied.  No server dependencies.
 *-------------------------------------------------------------------------
 */
#ifndef IP_DELTA_H
#define IP_DELTA_H

/* A bounded reader: after an overrun "bad" is set and zeros are returned. */
typedef struct IpReader
{
	const uint8 *p;
	const uint8 *end;
	bool		bad;
} IpReader;

/* A bounded writer: after an overrun "bad" is set and nothing is written. */
typedef struct IpWriter
{
	uint8	   *p;
	uint8	   *end;
	bool		bad;
} IpWriter;

extern const uint8 *ip_get_bytes(IpReader *r, uint32 len);
extern uint32 ip_get_varint(IpReader *r);
extern uint8 ip_get_u8(IpReader *r);
extern uint16 ip_get_u16(IpReader *r);
extern uint32 ip_get_u32(IpReader *r);
extern uint64 ip_get_u64(IpReader *r);

extern int32 ip_get_zigzag(IpReader *r);

extern void ip_put_bytes(IpWriter *w, const void *data, uint32 len);
extern void ip_put_long_varint(IpWriter *w, uint32 v);
extern void ip_put_zigzag(IpWriter *w, int32 v);
extern void ip_put_u8(IpWriter *w, uint8 v);
extern void ip_put_u16(IpWriter *w, uint16 v);
extern void ip_put_u32(IpWriter *w, uint32 v);
extern void ip_put_u64(IpWriter *w, uint64 v);

static inline void
ip_put_varint(IpWriter *w, uint32 v)
{
	if (likely(v < 0x80 && !w->bad && w->p < w->end))
		*w->p++ = (uint8) v;
	else
		ip_put_long_varint(w, v);
}

/* Append the delta that makes "to" out of "from". */
extern void ip_delta_make(IpWriter *w, const uint8 *from, uint32 fromlen,
						  const uint8 *to, uint32 tolen);

/*
 * Apply the delta at r (which is advanced behind it) to base.  Returns the
 * result's length, or -1 if the delta does not fit base or cap; out must not
 * overlap base.
 */
extern int	ip_delta_apply(IpReader *r, const uint8 *base, uint32 baselen,
						   uint8 *out, uint32 cap);

#endif							/* IP_DELTA_H */
