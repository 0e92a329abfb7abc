/*-------------------------------------------------------------------------
 * pagedelta_shift.h
 *	  Deltas that detect shifts: bytes that moved are not written again.
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
 * First, bytes at the same place are compared, up to the end of the shorter
 * string.  If that makes a long delta, a search for moved bytes follows; the
 * shorter delta is the result.  No memory is allocated; the stack holds some 6
 * kB.
 *
 * The same strings have the same delta on every machine, and in every release,
 * because redo of inplace computes deltas again.  A change of the result is a
 * change of inplace's WAL.
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
 * Make the delta that turns "from" into "to".  Returns its length, or
 * PAGEDELTA_NO_ROOM.  Without moves only bytes at the same place are compared,
 * which takes the least time.
 */
extern int	pagedelta_shift_make(const void *from, uint32_t fromlen,
								 const void *to, uint32_t tolen, bool moves,
								 void *delta, uint32_t room);

/*
 * Make a delta that holds all of "to", and drops all of a string of which only
 * the length matters.  Returns its length, or PAGEDELTA_NO_ROOM.
 */
extern int	pagedelta_shift_make_whole(uint32_t fromlen, const void *to,
									   uint32_t tolen, void *delta,
									   uint32_t room);

/*
 * True if these len bytes are a delta as made by pagedelta_shift_make_whole,
 * for a string of fromlen bytes.
 */
extern bool pagedelta_shift_is_whole(const void *delta, uint32_t len,
									 uint32_t fromlen);

/*
 * Make the inverse of a delta, from its result back to its base, which takes
 * less time than a comparison of both.  Returns its length, or
 * PAGEDELTA_BAD_DELTA or PAGEDELTA_NO_ROOM.  It is not always the delta that
 * pagedelta_shift_make makes.
 */
extern int	pagedelta_shift_invert(const void *base, uint32_t baselen,
								   const void *delta, uint32_t len,
								   void *inverse, uint32_t room);

/*
 * Apply the delta that begins here, within len bytes; *used becomes its
 * length.  Returns the result's length, or PAGEDELTA_BAD_DELTA or
 * PAGEDELTA_NO_ROOM; then the contents of "out" are undefined.  "out" must not
 * overlap the base.
 */
extern int	pagedelta_shift_apply(const void *base, uint32_t baselen,
								  const void *delta, uint32_t len,
								  uint32_t *used, void *out, uint32_t room);

#ifdef __cplusplus
}
#endif

#endif							/* PAGEDELTA_SHIFT_H */
