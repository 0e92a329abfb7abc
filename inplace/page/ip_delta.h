/*-------------------------------------------------------------------------
 * ip_delta.h
 *	  Byte-range deltas between two row bodies.
 *
 * See pagedelta_shift.h, whose deltas they are.  No server dependencies.
 *-------------------------------------------------------------------------
 */
#ifndef IP_DELTA_H
#define IP_DELTA_H

#include "bytes.h"

/*
 * Append the delta that makes "to" out of "from".  The quick function does not
 * search for bytes that have moved; it is for unrelated rows.
 */
extern void ip_delta_make(ByteWriter *w, const uint8 *from, uint32 fromlen,
						  const uint8 *to, uint32 tolen);
extern void ip_delta_make_quick(ByteWriter *w, const uint8 *from,
								uint32 fromlen, const uint8 *to, uint32 tolen);

/* Append the delta of a string that does not change. */
static inline void
ip_delta_make_none(ByteWriter *w)
{
	bytes_put_u8(w, 0);
}

/* Append the delta that leads from a delta's result back to its base. */
extern void ip_delta_invert(ByteWriter *w, const uint8 *base, uint32 baselen,
							const uint8 *delta, uint32 deltalen);

/*
 * Apply the delta at r (which is advanced behind it) to base.  Returns the
 * result's length, or -1 if the delta does not fit base or cap; out must not
 * overlap base.
 */
extern int	ip_delta_apply(ByteReader *r, const uint8 *base, uint32 baselen,
						   uint8 *out, uint32 cap);

/*
 * Append a delta that contains the whole new string.  Of the string that it
 * applies to, only the length matters.
 */
extern void ip_delta_make_whole(ByteWriter *w, uint32 fromlen, const uint8 *to,
								uint32 tolen);

#endif							/* IP_DELTA_H */
