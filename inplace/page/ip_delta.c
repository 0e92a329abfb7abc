/*-------------------------------------------------------------------------
 * ip_delta.c
 *	  Deltas between two row bodies: pagedelta's, on bounded readers and
 *	  writers.
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pagedelta_shift.h"

#include "ip_delta.h"

/*
 * A delta of len bytes has been made at w's position; len is negative if not.
 */
static void
put(ByteWriter *w, int len)
{
	if (len < 0)
		w->bad = true;
	else
		w->p += len;
}

static void
make(ByteWriter *w, const uint8 *from, uint32 fromlen, const uint8 *to,
	 uint32 tolen, bool moves)
{
	put(w, w->bad ? PAGEDELTA_NO_ROOM :
		pagedelta_shift_make(from, fromlen, to, tolen, moves, w->p,
							 w->end - w->p));
}

void
ip_delta_make(ByteWriter *w, const uint8 *from, uint32 fromlen,
			  const uint8 *to, uint32 tolen)
{
	make(w, from, fromlen, to, tolen, true);
}

void
ip_delta_make_quick(ByteWriter *w, const uint8 *from, uint32 fromlen,
					const uint8 *to, uint32 tolen)
{
	make(w, from, fromlen, to, tolen, false);
}

void
ip_delta_make_whole(ByteWriter *w, uint32 fromlen, const uint8 *to,
					uint32 tolen)
{
	put(w, w->bad ? PAGEDELTA_NO_ROOM :
		pagedelta_shift_make_whole(fromlen, to, tolen, w->p, w->end - w->p));
}

void
ip_delta_invert(ByteWriter *w, const uint8 *base, uint32 baselen,
				const uint8 *delta, uint32 deltalen)
{
	put(w, w->bad ? PAGEDELTA_NO_ROOM :
		pagedelta_shift_invert(base, baselen, delta, deltalen, w->p,
							   w->end - w->p));
}

int
ip_delta_apply(ByteReader *r, const uint8 *base, uint32 baselen, uint8 *out,
			   uint32 cap)
{
	uint32		used;
	int			len = PAGEDELTA_BAD_DELTA;

	if (!r->bad)
		len = pagedelta_shift_apply(base, baselen, r->p, r->end - r->p, &used,
									out, cap);
	if (len < 0)
		return -1;
	r->p += used;
	return len;
}
