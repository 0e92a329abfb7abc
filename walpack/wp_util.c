/*-------------------------------------------------------------------------
 * wp_util.c
 *	  Errors, growing buffers, bounded readers, the hash.
 *-------------------------------------------------------------------------
 */
#include "wp_port.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "wp_util.h"

#define HUGE_PAGE			(2 * 1024 * 1024)

/* Under AddressSanitizer, unallocated memory in the arena is poisoned. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define FENCE(p, size)		ASAN_POISON_MEMORY_REGION(p, size)
#define UNFENCE(p, size)	ASAN_UNPOISON_MEMORY_REGION(p, size)
#define FENCE_SIZE			16
#else
#define FENCE(p, size)		((void) 0)
#define UNFENCE(p, size)	((void) 0)
#define FENCE_SIZE			0
#endif

void
wp_fail(WpContext *ctx, const char *fmt,...)
{
	va_list		args;

	va_start(args, fmt);
	vsnprintf(ctx->error, sizeof(ctx->error), fmt, args);
	va_end(args);
	longjmp(ctx->jump, 1);
}

void
wp_short(WpContext *ctx)
{
	wp_fail(ctx, "data ends too early");
}

bool
wp_arena_reset(WpContext *ctx, size_t size)
{
	void	   *arena;

	ctx->arena_used = 0;
	memset(ctx->given_back, 0, sizeof(ctx->given_back));
	if (size > ctx->arena_size)
	{
		wp_arena_free(ctx);
		size = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
		if (posix_memalign(&arena, HUGE_PAGE, size) != 0)
			return false;
		ctx->arena = arena;
		ctx->arena_size = size;
#ifdef MADV_HUGEPAGE

		/*
		 * tables and columns are accessed all over it; without huge pages it
		 * is only slower
		 */
		(void) madvise(ctx->arena, size, MADV_HUGEPAGE);
#endif
	}
	FENCE(ctx->arena, ctx->arena_size);
	return true;
}

void
wp_arena_free(WpContext *ctx)
{
	UNFENCE(ctx->arena, ctx->arena_size);
	free(ctx->arena);
	ctx->arena = NULL;
	ctx->arena_size = 0;
}

void *
wp_alloc(WpContext *ctx, size_t size)
{
	void	   *p = ctx->arena + ctx->arena_used;
	size_t		step = ((size + 15) & ~(size_t) 15) + FENCE_SIZE;

	Assert(ctx->arena_used <= ctx->arena_size);
	if (step > ctx->arena_size - ctx->arena_used)
		wp_fail(ctx, "more memory needed than allowed");
	ctx->arena_used += step;
	UNFENCE(p, size);
	return p;
}

/* Get a block of at least this size, if one was released. */
static void *
take_back(WpContext *ctx, size_t size)
{
	int			log = 64 - __builtin_clzll(Max(size, 2) - 1);
	void	   *block;

	if (log >= WP_BLOCK_LOGS || ctx->given_back[log] == NULL)
		return wp_alloc(ctx, size);
	block = ctx->given_back[log];
	UNFENCE(block, size);
	UNFENCE(block, sizeof(void *));
	memcpy(&ctx->given_back[log], block, sizeof(void *));
	return block;
}

static void
give_back(WpContext *ctx, void *block, size_t size)
{
	int			log = 63 - __builtin_clzll(size | 1);

	if (size < sizeof(void *) || log >= WP_BLOCK_LOGS)
		return;
	memcpy(block, &ctx->given_back[log], sizeof(void *));
	ctx->given_back[log] = block;
	FENCE(block, size);
}

void *
wp_realloc(WpContext *ctx, void *old, size_t used, size_t size)
{
	uint8	   *top = ctx->arena + ctx->arena_used;
	void	   *p;

	Assert(used <= size);
	Assert(old == NULL || ((uint8 *) old >= ctx->arena &&
						   (uint8 *) old + used <= top));
	if (old != NULL &&
		(uint8 *) old + ((used + 15) & ~(size_t) 15) + FENCE_SIZE == top)
	{
		ctx->arena_used = (uint8 *) old - ctx->arena;
		return wp_alloc(ctx, size);
	}
	p = take_back(ctx, size);
	if (old != NULL)
	{
		memcpy(p, old, used);
		give_back(ctx, old, used);
	}
	return p;
}

void *
wp_zalloc(WpContext *ctx, size_t size)
{
	return memset(wp_alloc(ctx, size), 0, size);
}

void
wp_buf_grow(WpContext *ctx, WpBuf *buf, size_t more)
{
	size_t		cap = buf->cap ? buf->cap * 2 : 64;
	uint8	   *data;

	while (cap - buf->used < more)
		cap *= 2;
	data = realloc(buf->data, cap);
	if (data == NULL)
		wp_fail(ctx, "out of memory");
	buf->data = data;
	buf->cap = cap;
}

void
wp_buf_free(WpBuf *buf)
{
	free(buf->data);
	memset(buf, 0, sizeof(*buf));
}

void
wp_put_varint(WpContext *ctx, WpBuf *buf, uint64 v)
{
	while (v >= 0x80)
	{
		wp_put_u8(ctx, buf, (uint8) v | 0x80);
		v >>= 7;
	}
	wp_put_u8(ctx, buf, (uint8) v);
}

uint64
wp_get_varint(WpContext *ctx, WpReader *r)
{
	uint64		v = 0;

	for (int shift = 0; shift < 64; shift += 7)
	{
		uint8		b = wp_get_u8(ctx, r);

		v |= (uint64) (b & 0x7F) << shift;
		if ((b & 0x80) == 0)
			return v;
	}
	wp_fail(ctx, "number too long");
}

uint32
wp_get_limited(WpContext *ctx, WpReader *r, uint64 max)
{
	uint64		v = wp_get_varint(ctx, r);

	if (v > max || v > PG_UINT32_MAX)
		wp_fail(ctx, "number out of range");
	return (uint32) v;
}

/* ---- XXH64, as its public specification describes it ---- */

#define P1 UINT64CONST(0x9E3779B185EBCA87)
#define P2 UINT64CONST(0xC2B2AE3D27D4EB4F)
#define P3 UINT64CONST(0x165667B19E3779F9)
#define P4 UINT64CONST(0x85EBCA77C2B2AE63)
#define P5 UINT64CONST(0x27D4EB2F165667C5)

static inline uint64
rotate(uint64 v, int n)
{
	return (v << n) | (v >> (64 - n));
}

static inline uint64
hash_round(uint64 lane, uint64 word)
{
	return rotate(lane + word * P2, 31) * P1;
}

static inline void
hash_stripe(uint64 *lane, const uint8 *p)
{
	for (int i = 0; i < 4; i++)
		lane[i] = hash_round(lane[i], wp_get64(p + 8 * i));
}

void
wp_hash_init(WpHash *h)
{
	h->lane[0] = P1 + P2;
	h->lane[1] = P2;
	h->lane[2] = 0;
	h->lane[3] = 0 - P1;
	h->total = 0;
}

void
wp_hash_add(WpHash *h, const uint8 *p, size_t n)
{
	size_t		kept = h->total % 32;

	h->total += n;
	if (kept > 0)
	{
		size_t		fill = Min(n, 32 - kept);

		memcpy(h->rest + kept, p, fill);
		p += fill;
		n -= fill;
		if (kept + fill < 32)
			return;
		hash_stripe(h->lane, h->rest);
	}
	for (; n >= 32; p += 32, n -= 32)
		hash_stripe(h->lane, p);
	if (n > 0)
		memcpy(h->rest, p, n);
}

uint64
wp_hash_end(const WpHash *h)
{
	const uint8 *p = h->rest;
	size_t		n = h->total % 32;
	uint64		v = P5;

	if (h->total >= 32)
	{
		v = rotate(h->lane[0], 1) + rotate(h->lane[1], 7) +
			rotate(h->lane[2], 12) + rotate(h->lane[3], 18);
		for (int i = 0; i < 4; i++)
			v = (v ^ hash_round(0, h->lane[i])) * P1 + P4;
	}
	v += h->total;
	for (; n >= 8; p += 8, n -= 8)
		v = rotate(v ^ hash_round(0, wp_get64(p)), 27) * P1 + P4;
	for (; n >= 4; p += 4, n -= 4)
		v = rotate(v ^ wp_get32(p) * P1, 23) * P2 + P3;
	for (; n > 0; p++, n--)
		v = rotate(v ^ *p * P5, 11) * P1;
	v = (v ^ (v >> 33)) * P2;
	v = (v ^ (v >> 29)) * P3;
	return v ^ (v >> 32);
}
