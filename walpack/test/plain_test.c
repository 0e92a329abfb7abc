/*-------------------------------------------------------------------------
 * plain_test.c
 *	  Tests of the estimate of what zstd alone needs.
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <zstd.h>

#include "wp_codec.h"
#include "wp_plain.h"
#include "codec_test.h"

#define PLAIN_SIZE		(8 * 1024 * 1024)	/* large enough for the estimate */

/* Make random bytes.  The first "repeated" ones repeat bytes at a distance. */
static void
fill_random(uint8 *p, size_t len, size_t repeated, size_t period)
{
	for (size_t i = 0; i < len; i += 8)
	{
		uint64		v = random64();

		memcpy(p + i, &v, 8);
	}
	for (size_t i = period; i < repeated; i++)
		p[i] = p[i - period];
}

/*
 * Check that a chunk is detected for which zstd alone needs a little less than
 * the packed chunk.
 */
static void
check_plain(const uint8 *p, size_t len, const char *what)
{
	static uint8 out[PLAIN_SIZE + PLAIN_SIZE / 8];
	WpContext	ctx = {0};
	ZSTD_CCtx  *zstd = ZSTD_createCCtx();
	size_t		size = ZSTD_compress(out, sizeof(out), p, len,
									 WP_DEFAULT_LEVEL);

	check(!ZSTD_isError(size) && wp_arena_reset(&ctx, 1024 * 1024), "setup");
	check(setjmp(ctx.jump) == 0, ctx.error);
	check(wp_plain_is_smaller(&ctx, zstd, WP_DEFAULT_LEVEL, p, len,
							  size + size / 100),
		  what);
	check(!wp_plain_is_smaller(&ctx, zstd, WP_DEFAULT_LEVEL, p, len,
							   size - size / 100),
		  what);
	wp_arena_free(&ctx);
	ZSTD_freeCCtx(zstd);
}

void
test_plain(void)
{
	static uint8 p[PLAIN_SIZE];
	static const uint32 kilobytes[] = {300, 600, 1000, 1500};

	for (int i = 0; i < lengthof(kilobytes); i++)
	{
		fill_random(p, PLAIN_SIZE, PLAIN_SIZE, kilobytes[i] * 1024);
		check_plain(p, PLAIN_SIZE, "random bytes that repeat");

		/*
		 * a limit: at larger distances samples do not find repeats in only
		 * one half
		 */
		if (i == lengthof(kilobytes) - 1)
			break;
		fill_random(p, PLAIN_SIZE, PLAIN_SIZE / 2, kilobytes[i] * 1024);
		check_plain(p, PLAIN_SIZE, "random bytes, of which the first half repeats");
	}
	for (uint32 piece = 64 * 1024; piece <= PLAIN_SIZE / 2; piece *= 2)
	{
		fill_random(p, PLAIN_SIZE, 0, 0);
		for (size_t i = 0; i < PLAIN_SIZE; i += 2 * piece)
			memset(p + i, 0, piece);
		check_plain(p, PLAIN_SIZE, "random bytes and zeros");
	}
	for (size_t i = 0; i < PLAIN_SIZE; i++)
		p[i] = "0123456789abcdef"[below(16)];
	check_plain(p, PLAIN_SIZE, "hexadecimal text");
	for (size_t i = 0; i < PLAIN_SIZE / 2; i++)
		p[i] = i / 64 * 7 + i % 16;
	check_plain(p, PLAIN_SIZE, "text behind numbers");
}
