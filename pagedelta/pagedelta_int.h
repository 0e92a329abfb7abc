/*-------------------------------------------------------------------------
 * pagedelta_int.h
 *	  What the implementations share: writing fragments, closing gaps.
 *
 * All of this is inlined into each implementation, so that it is compiled for
 * its instructions.
 *-------------------------------------------------------------------------
 */
#ifndef PAGEDELTA_INT_H
#define PAGEDELTA_INT_H

#include <stddef.h>
#include <string.h>

#include "pagedelta.h"

#ifdef PAGEDELTA_DEBUG
#include <assert.h>
#define PD_ASSERT(condition)	assert(condition)
#else
#define PD_ASSERT(condition)	((void) 0)
#endif

#define PD_INLINE static inline __attribute__((always_inline))

/*
 * This many equal bytes do not end a fragment, because the header of a new
 * fragment would be as long.
 */
#define PD_MAX_GAP	4

/* A position from which no fragment can continue. */
#define PD_NOWHERE	(-PAGEDELTA_MAX_PAGE)

/* Copies of up to this many bytes are made with one move. */
#define PD_MOVE		16

/* The writer's task and position. */
typedef struct PdJob
{
	const uint8_t *old_page;
	const uint8_t *new_page;
	int			size;
	uint8_t    *p;				/* end of what is written */
	uint8_t    *begin;			/* of the part that is being written */
	PageDeltaPart *parts;		/* NULL: all in one piece */
	int			nparts;
} PdJob;

typedef void (*PdMaker) (PdJob *job, const PageDeltaBounds *bounds);

/* A region of the new image, and the part of it that the old image has, too. */
typedef struct PdRegion
{
	int			begin;
	int			end;
	int			known_begin;
	int			known_end;
} PdRegion;

/*
 * Read a word in little-endian order, whatever the machine's order is: the
 * first byte is the lowest.
 */
PD_INLINE uint64_t
pd_word64(const uint8_t *p)
{
	uint64_t	word;

	memcpy(&word, p, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	return word;
}

PD_INLINE uint32_t
pd_word32(const uint8_t *p)
{
	uint32_t	word;

	memcpy(&word, p, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap32(word);
#endif
	return word;
}

/*
 * Set a bit for each byte that differs, and for each byte of which one of the
 * next PD_MAX_GAP bytes differs.
 */
PD_INLINE uint64_t
pd_spread(uint64_t mask)
{
	uint64_t	out = mask | mask >> 1;

	return out | out >> 2 | mask >> 4;
}

/*
 * Close gaps of up to PD_MAX_GAP zeros between ones.  The spread mask has
 * zeros where longer gaps begin.
 */
PD_INLINE uint64_t
pd_close_gaps(uint64_t mask, uint64_t spread)
{
	uint64_t	gaps = ~spread;

	gaps |= gaps << 1;
	gaps |= gaps << 2;
	gaps |= ~spread << 4;
	return ~gaps & (UINT64_MAX << __builtin_ctzll(mask));
}

/*
 * End the part that is being written.  The next part is a fragment's bytes in
 * place.
 */
PD_INLINE void
pd_refer(PdJob *job, int begin, int len)
{
	job->parts[job->nparts++] = (PageDeltaPart)
	{
		job->begin, (uint32_t) (job->p - job->begin)
	};
	job->parts[job->nparts++] = (PageDeltaPart)
	{
		job->new_page + begin, (uint32_t) len
	};
	job->begin = job->p;
}

PD_INLINE void
pd_put_fragment(PdJob *job, int begin, int end)
{
	int			len = end - begin;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	uint32_t	header = (uint32_t) begin | (uint32_t) len << 16;
#else
	uint32_t	header = (uint32_t) begin << 16 | (uint32_t) len;
#endif

	PD_ASSERT(begin >= 0 && begin < end && end <= job->size);
	memcpy(job->p, &header, sizeof(header));
	job->p += sizeof(header);
	if (len <= PD_MOVE && begin <= job->size - PD_MOVE)
		memcpy(job->p, job->new_page + begin, PD_MOVE);
	else if (job->parts != NULL && len >= PAGEDELTA_MIN_PART &&
			 job->nparts + 2 < PAGEDELTA_MAX_PARTS)
	{
		pd_refer(job, begin, len);
		return;
	}
	else
		memcpy(job->p, job->new_page + begin, (size_t) len);
	job->p += len;
}

#endif							/* PAGEDELTA_INT_H */
