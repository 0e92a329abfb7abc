/*-------------------------------------------------------------------------
 * wp_util.h
 *	  Definitions for all parts of the codec: errors, growing buffers, bounded
 *	  readers, little-endian integers, the hash.
 *
 * The codec is built for servers and for frontend programs; it uses no
 * facility of either.  An error inside it jumps to the entry point of
 * wp_codec.c, which frees what was allocated and returns false.
 *-------------------------------------------------------------------------
 */
#ifndef WP_UTIL_H
#define WP_UTIL_H

#include <setjmp.h>
#include <string.h>

/* new in version 18 */
#ifndef pg_noreturn
#define pg_noreturn __attribute__((noreturn))
#endif

#define WP_ERROR_SIZE	256
#define WP_MAX_SAMPLE	576		/* rows whose bytes are counted to choose how
								 * a column is stored */

#define WP_BLOCK_LOGS	32

/* The target of errors, and memory that is freed as a whole. */
typedef struct WpContext
{
	jmp_buf		jump;
	char		error[WP_ERROR_SIZE];
	uint8	   *arena;
	size_t		arena_size;
	size_t		arena_used;
	void	   *given_back[WP_BLOCK_LOGS];	/* by wp_realloc: a list for each
											 * power of two that blocks hold */
	struct ZSTD_CCtx_s *trial;	/* encoder: to compress samples with */
	uint64		checked;		/* encoder: bytes of possible records whose
								 * CRC was computed */
	size_t		lz4_images;		/* encoder: bytes of opaque images that lz4
								 * compressed */
	int32		repeat_bits[WP_MAX_SAMPLE]; /* encoder: saving of a byte that
											 * has occurred this often */
} WpContext;

pg_noreturn extern void wp_fail(WpContext *ctx, const char *fmt,...)
			pg_attribute_printf(2, 3);

/* Memory from the arena, not cleared and cleared. */
extern void *wp_alloc(WpContext *ctx, size_t size);
extern void *wp_zalloc(WpContext *ctx, size_t size);

/*
 * Get a bigger place for the contents at old, in place if no allocation came
 * after it.  Sizes that are powers of two waste nothing.
 */
extern void *wp_realloc(WpContext *ctx, void *old, size_t used, size_t size);

/*
 * Empty the arena and make it at least this big.  Returns false if there is no
 * memory.
 */
extern bool wp_arena_reset(WpContext *ctx, size_t size);
extern void wp_arena_free(WpContext *ctx);

/*
 * Copy n bytes, mostly few, as whole words: the call of memcpy() would take
 * most of the time.  WP_SLACK bytes can be read at src and written at dst,
 * whatever n is.
 */
#define WP_SLACK		32

static inline void
wp_copy_short(uint8 *dst, const uint8 *src, size_t n)
{
	if (n <= WP_SLACK)
	{
		uint64		a,
					b,
					c,
					d;

		memcpy(&a, src, 8);
		memcpy(&b, src + 8, 8);
		memcpy(&c, src + 16, 8);
		memcpy(&d, src + 24, 8);
		memcpy(dst, &a, 8);
		memcpy(dst + 8, &b, 8);
		memcpy(dst + 16, &c, 8);
		memcpy(dst + 24, &d, 8);
	}
	else
		memcpy(dst, src, n);
}

/* ---- growing buffers; the owner frees them ---- */

typedef struct WpBuf
{
	uint8	   *data;
	size_t		used;
	size_t		cap;
} WpBuf;

extern void wp_buf_grow(WpContext *ctx, WpBuf *buf, size_t more);
extern void wp_buf_free(WpBuf *buf);

/* Make room for n more bytes, which become part of the buffer. */
static inline uint8 *
wp_buf_add(WpContext *ctx, WpBuf *buf, size_t n)
{
	uint8	   *p;

	if (buf->cap - buf->used < n || buf->data == NULL)
		wp_buf_grow(ctx, buf, n);
	p = buf->data + buf->used;
	buf->used += n;
	return p;
}

static inline void
wp_put_bytes(WpContext *ctx, WpBuf *buf, const void *src, size_t n)
{
	if (n > 0)
		memcpy(wp_buf_add(ctx, buf, n), src, n);
}

static inline void
wp_put_u8(WpContext *ctx, WpBuf *buf, uint8 v)
{
	*wp_buf_add(ctx, buf, 1) = v;
}

extern void wp_put_varint(WpContext *ctx, WpBuf *buf, uint64 v);

/* ---- bounded readers ---- */

typedef struct WpReader
{
	const uint8 *p;
	const uint8 *end;
} WpReader;

pg_noreturn extern void wp_short(WpContext *ctx);

static inline const uint8 *
wp_get_bytes(WpContext *ctx, WpReader *r, size_t n)
{
	const uint8 *p = r->p;

	if ((size_t) (r->end - p) < n)
		wp_short(ctx);
	r->p += n;
	return p;
}

static inline uint8
wp_get_u8(WpContext *ctx, WpReader *r)
{
	return *wp_get_bytes(ctx, r, 1);
}

extern uint64 wp_get_varint(WpContext *ctx, WpReader *r);

/* Read a number that must not exceed max. */
extern uint32 wp_get_limited(WpContext *ctx, WpReader *r, uint64 max);

/* ---- unaligned little-endian integers ---- */

#ifdef WORDS_BIGENDIAN
#define WP_LE(bits, v) __builtin_bswap##bits(v)
#else
#define WP_LE(bits, v) (v)
#endif

#define WP_INT(bits) \
static inline uint##bits \
wp_get##bits(const uint8 *p) \
{ \
	uint##bits	v; \
\
	memcpy(&v, p, sizeof(v)); \
	return WP_LE(bits, v); \
} \
static inline void \
wp_set##bits(uint8 *p, uint##bits v) \
{ \
	v = WP_LE(bits, v); \
	memcpy(p, &v, sizeof(v)); \
}

WP_INT(16)
WP_INT(32)
WP_INT(64)

/* ---- XXH64 with seed 0, in pieces ---- */

typedef struct WpHash
{
	uint64		lane[4];
	uint64		total;
	uint8		rest[32];
} WpHash;

extern void wp_hash_init(WpHash *h);
extern void wp_hash_add(WpHash *h, const uint8 *p, size_t n);
extern uint64 wp_hash_end(const WpHash *h);

#endif							/* WP_UTIL_H */
