/*-------------------------------------------------------------------------
 * pagedelta_shift.h
 *	  Deltas that know shifts: what moved is not written again.
 *
 * For records of one's own, and for any two byte strings: pages, or rows of
 * different lengths.  A delta is a number of hunks; each says how many bytes
 * of the base to copy, how many to drop, and which bytes to put there:
 *
 *	nhunks { copy, (inserted << 1 | (dropped != inserted)), [dropped], bytes }
 *
 * nhunks is a byte below 128, the other numbers are varints.  What the last
 * hunk leaves of the base is copied.  An insertion in the middle of an array
 * is one hunk that drops nothing.
 *
 * At first bytes at the same place are compared, as far as the shorter string
 * goes.  Where that makes a long delta, what has moved is looked for; the
 * shorter delta is the result.  Nothing is allocated; there are some 6 kB on
 * the stack.
 *
 * The same strings have the same delta on every machine, and in every release:
 * redo of inplace makes deltas anew.  A change of what is made is a change of
 * its WAL.
 *-------------------------------------------------------------------------
 */
#ifndef PAGEDELTA_SHIFT_H
#define PAGEDELTA_SHIFT_H

#include "pagedelta.h"

#ifdef __cplusplus
extern "C"
{
#endif

/*
 * The delta that makes "to" out of "from": its length, or PAGEDELTA_NO_ROOM.
 * Without moves only bytes at the same place are compared, which takes the
 * least time.
 */
extern int	pagedelta_shift_make(const void *from, uint32_t fromlen, const void *to, uint32_t tolen, bool moves,
								 void *delta, uint32_t room);

/*
 * A delta that has all of "to", and drops all of a string of which no more
 * than the length counts: its length, or PAGEDELTA_NO_ROOM.
 */
extern int	pagedelta_shift_make_whole(uint32_t fromlen, const void *to, uint32_t tolen, void *delta, uint32_t room);

/* Are these len bytes such a delta, to a string of fromlen bytes? */
extern bool pagedelta_shift_is_whole(const void *delta, uint32_t len, uint32_t fromlen);

/*
 * The delta that leads back from what a delta has made to its base, which
 * takes less time than to compare them: its length, or PAGEDELTA_BAD_DELTA or
 * PAGEDELTA_NO_ROOM.  It is not always the one that pagedelta_shift_make
 * makes.
 */
extern int	pagedelta_shift_invert(const void *base, uint32_t baselen, const void *delta, uint32_t len,
								   void *inverse, uint32_t room);

/*
 * Apply the delta that begins here, in len bytes; *used is how many of them it
 * has.  Returns the result's length, or PAGEDELTA_BAD_DELTA or
 * PAGEDELTA_NO_ROOM, and then out's contents are not defined.  out must not
 * overlap the base.
 */
extern int	pagedelta_shift_apply(const void *base, uint32_t baselen, const void *delta, uint32_t len,
								  uint32_t *used, void *out, uint32_t room);

#ifdef __cplusplus
}
#endif

#endif							/* PAGEDELTA_SHIFT_H */
