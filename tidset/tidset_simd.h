/*-------------------------------------------------------------------------
 * tidset_simd.h
 *	  The one vector operation: which of 16 bytes are equal to a byte?
 *
 * All searches are built on it, so the scalar twin (TIDSET_SCALAR, or a
 * machine without SSE2) makes the same structure by construction.  Both read
 * all 16 bytes: the caller masks off what is beyond the end of an array, and
 * memory goes on for TIDSET_PAD bytes behind the last node: a search for two
 * vectors' worth may begin at its last byte.
 *-------------------------------------------------------------------------
 */
#ifndef TIDSET_SIMD_H
#define TIDSET_SIMD_H

#include <stdint.h>
#include <string.h>

#define TIDSET_PAD	32

#if defined(__SSE2__) && !defined(TIDSET_SCALAR)
#include <emmintrin.h>

static inline uint32_t
tidset_match16(const uint8_t *p, uint8_t value)
{
	__m128i		bytes = _mm_loadu_si128((const __m128i *) p);
	__m128i		equal = _mm_cmpeq_epi8(bytes, _mm_set1_epi8((char) value));

	return (uint32_t) _mm_movemask_epi8(equal);
}
#else
static inline uint32_t
tidset_match16(const uint8_t *p, uint8_t value)
{
	uint32_t	mask = 0;

	for (int i = 0; i < 16; i++)
		mask |= (uint32_t) (p[i] == value) << i;
	return mask;
}
#endif

/*
 * The number of bits set.  The built-in function is not used, because it is a
 * call without -mpopcnt.
 */
static inline int
tidset_popcount(uint64_t x)
{
	x -= (x >> 1) & UINT64_C(0x5555555555555555);
	x = (x & UINT64_C(0x3333333333333333)) +
		((x >> 2) & UINT64_C(0x3333333333333333));
	x = (x + (x >> 4)) & UINT64_C(0x0F0F0F0F0F0F0F0F);
	return (int) ((x * UINT64_C(0x0101010101010101)) >> 56);
}

/* The lowest set bit among the first n bits (n > 0) of the mask, or -1. */
static inline int
tidset_first_of(uint32_t mask, int n)
{
	mask &= UINT32_MAX >> (32 - n);
	return mask ? __builtin_ctz(mask) : -1;
}

#endif							/* TIDSET_SIMD_H */
