/*-------------------------------------------------------------------------
 * pagedelta.h
 *	  Exact deltas between two images of a page.
 *
 * A delta is a number of fragments, in ascending order:
 *
 *	offset (uint16), length (uint16), bytes
 *
 * in the machine's byte order, not aligned.  It is, byte for byte, what
 * PostgreSQL's generic WAL records have for the same two images.  A run of more
 * than four equal bytes is left out.  The hole of a page is between "lower" and
 * "upper".  Bytes in the new image's hole are left out.  Bytes where only the
 * old image has its hole are always written, because redo does not know what
 * the hole holds.
 *
 * No function allocates memory, reports failure other than by its result, or
 * reads or writes a byte outside of its arguments; so all of them may be used
 * in a critical section.  The only state is the choice of vector instructions,
 * which is made once.  For C and C++; no server dependencies.
 *-------------------------------------------------------------------------
 */
#ifndef PAGEDELTA_H
#define PAGEDELTA_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C"
{
#endif

/* Sizes of pages: multiples of PAGEDELTA_UNIT up to PAGEDELTA_MAX_PAGE. */
#define PAGEDELTA_UNIT		64
#define PAGEDELTA_MAX_PAGE	32768

#define PAGEDELTA_HEADER	4	/* of a fragment */

/*
 * Room for any delta of a page of this size, and for bytes that are written
 * behind its end meanwhile.
 */
#define PAGEDELTA_ROOM(size)	((size) + 2 * PAGEDELTA_HEADER + 24)

/* Results of functions in place of a length. */
typedef enum PageDeltaError
{
	PAGEDELTA_OK = 0,
	PAGEDELTA_BAD_SIZE = -1,	/* not the size of a page */
	PAGEDELTA_BAD_BOUNDS = -2,	/* impossible lower or upper */
	PAGEDELTA_NO_ROOM = -3,		/* the buffer is smaller than needed */
	PAGEDELTA_BAD_DELTA = -4	/* not a delta for a page of this size */
} PageDeltaError;

/* The holes of both images.  An old page that is all zeros has 0 and 0. */
typedef struct PageDeltaBounds
{
	uint32_t	old_lower;
	uint32_t	old_upper;
	uint32_t	new_lower;
	uint32_t	new_upper;
} PageDeltaBounds;

/* A part of a delta that is not in one piece. */
typedef struct PageDeltaPart
{
	const void *data;
	uint32_t	len;
} PageDeltaPart;

/*
 * A fragment shorter than PAGEDELTA_MIN_PART gets no part of its own.  A delta
 * has at most PAGEDELTA_MAX_PARTS parts.
 */
#define PAGEDELTA_MIN_PART	256
#define PAGEDELTA_MAX_PARTS 5

/*
 * Make the delta that turns old_page into new_page.  Returns its length, or a
 * PageDeltaError; then the contents of "delta" are undefined.  room is at
 * least PAGEDELTA_ROOM(size).
 */
extern int	pagedelta_make(const void *old_page, const void *new_page,
						   uint32_t size, const PageDeltaBounds *bounds,
						   void *delta, uint32_t room);

/*
 * Like pagedelta_make, but copies fewer bytes: the bytes of the first long
 * fragments stay in new_page.  parts gets the *nparts pieces of the delta, at
 * most PAGEDELTA_MAX_PARTS.  Returns the length of the whole delta, or a
 * PageDeltaError.
 */
extern int	pagedelta_make_parts(const void *old_page, const void *new_page,
								 uint32_t size, const PageDeltaBounds *bounds,
								 void *delta, uint32_t room,
								 PageDeltaPart *parts, int *nparts);

/* Returns PAGEDELTA_OK if this is a delta for pages of this size. */
extern int	pagedelta_check(const void *delta, uint32_t len, uint32_t size);

/*
 * Apply a delta.  Returns PAGEDELTA_OK, or an error; then the page is
 * unchanged.  The contents of the page's new hole are left to the caller.
 */
extern int	pagedelta_apply(void *page, uint32_t size, const void *delta,
							uint32_t len);

/*
 * Apply the parts that pagedelta_make_parts has just made for this page.
 * Returns the number of bytes copied.
 */
extern uint32_t pagedelta_apply_parts(void *page, const PageDeltaPart *parts,
									  int nparts);

/* True if these bytes are all zeros. */
extern bool pagedelta_zeros(const void *bytes, uint32_t len);

/*
 * The instructions in use: "avx512bw", "avx2", "sse2", "neon", "scalar".  All
 * of them give the same bytes.  pagedelta_use chooses one, for tests.  It
 * returns false if the machine does not have it; NULL restores the best one.
 */
extern const char *pagedelta_instructions(void);
extern bool pagedelta_use(const char *name);

#ifdef __cplusplus
}
#endif

#endif							/* PAGEDELTA_H */
