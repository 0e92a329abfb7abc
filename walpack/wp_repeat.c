/*-------------------------------------------------------------------------
 * wp_repeat.c
 *	  Encoder: an estimate of long repeats in some bytes.
 *
 * A table has the last place of each word of 8 bytes at a multiple of GRID.
 * All words of a stretch of GRID bytes are looked up, so one of them is there
 * if the stretch, and as much behind it, has been there before, wherever that
 * was.  Every PROBE bytes there is such a stretch: that takes a few percent of
 * the time that zstd would.
 *-------------------------------------------------------------------------
 */
#include "wp_port.h"

#include "wp_repeat.h"

#define GRID			64
#define PROBE			4096
#define TABLE_LOG		17
#define MIN_SAME		64		/* number of bytes that must be equal */
#define MIN_SIZE		65536

static inline uint32
slot_of(const uint8 *p)
{
	return (wp_get64(p) * UINT64CONST(0x9E3779B97F4A7C15)) >> (64 - TABLE_LOG);
}

/*
 * True if one of the words of the stretch at "at" occurs far enough in front
 * of it, followed by the same bytes.
 */
static bool
probe(const uint8 *p, const uint32 *table, size_t at, size_t distance)
{
	for (size_t i = at; i < at + GRID; i++)
	{
		size_t		place = table[slot_of(p + i)];

		if (place > 0 && i - place >= distance &&
			memcmp(p + i, p + place, MIN_SAME) == 0)
			return true;
	}
	return false;
}

double
wp_repeats(WpContext *ctx, const uint8 *p, size_t n, size_t distance)
{
	size_t		mark = ctx->arena_used;
	uint32	   *table;
	size_t		found = 0;

	if (n < MIN_SIZE)
		return 0;
	table = wp_zalloc(ctx, sizeof(uint32) << TABLE_LOG);
	for (size_t at = 0; at + GRID + MIN_SAME <= n; at += GRID)
	{
		if (at % PROBE == 0 && probe(p, table, at, distance))
			found++;
		table[slot_of(p + at)] = at;
	}
	ctx->arena_used = mark;
	return (double) found / (n / PROBE);
}
