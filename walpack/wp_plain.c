/*-------------------------------------------------------------------------
 * wp_plain.c
 *	  Encoder: a test whether zstd alone would need less than the packed chunk.
 *
 * Compression of the whole chunk would take as long as zstd does.  So all
 * blocks of the chunk are examined cheaply, and sorted by their expected size;
 * then some of them, evenly spread in that order, are compressed with the
 * bytes in front of them as history.  A block is assumed to need at least as
 * much as the smaller one of the samples next to it in that order: that gives
 * a low estimate of the whole.  Then the chunk is compressed from its start,
 * until the output so far and the low estimate of the rest together exceed the
 * packed chunk, which is immediately the case if the packed chunk is much
 * smaller.
 *-------------------------------------------------------------------------
 */
#include "wp_port.h"

#include <stdlib.h>
#include <zstd.h>

#include "wp_format.h"
#include "wp_group.h"
#include "wp_plain.h"

#define BLOCK			(128 * 1024)	/* zstd's own */

#define SAMPLES			8		/* then twice as many, up to MAX_SAMPLES */
#define MAX_SAMPLES		(4 * SAMPLES)
#define HISTORY			(256 * 1024)
#define LONG_HISTORY	(2 * 1024 * 1024)	/* as far as zstd looks back at
											 * level 3 */
#define MIN_BLOCKS		MAX_SAMPLES /* chunks of fewer blocks are compressed
									 * as a whole */
#define MAX_LEVEL		3		/* at higher levels time matters less */
#define MIN_PART		64		/* a packed chunk below this part of the
								 * original is soon exceeded in any case */
#define MIN_SAMPLES		3

/*
 * The low estimate may be too high by the first factor, because a sample's
 * history is short; or its saving may be too low by the second one, which
 * matters for chunks of mostly random bytes, because blocks may differ from
 * their samples.  The second factor is for up to SAMPLES samples; for twice as
 * many, half of its excess over 1 suffices.
 */
#define MARGIN			1.15
#define SAVED_MARGIN	1.5

/*
 * The cheap examination takes one word of 2^WORDS_LOG, chosen by its hash, and
 * one byte of BYTE_STEP.
 */
#define WORDS_LOG		4
#define BYTE_STEP		127
#define TABLE_LOG		15		/* holds what is chosen of LONG_HISTORY */
#define FAR_PART		16		/* if at least this part of the new words
								 * repeats distant ones, history matters */

typedef struct Block
{
	uint16		index;
	bool		far;			/* repeats words farther away than HISTORY */
	double		expected;		/* zstd's expected size, in any unit */
	double		low;			/* at least, when there are samples */
	double		sampled;		/* its size as a sample; 0 if it is not one */
} Block;

typedef struct Plain
{
	WpContext  *ctx;
	ZSTD_CCtx  *zstd;
	const uint8 *raw;
	uint32		len;
	uint8	   *out;
	size_t		out_size;
	uint32		nblocks;		/* whole ones; 0: there is no estimate */
	Block	   *blocks;			/* ordered by expected size */
	double	   *low;			/* of the blocks in the chunk's order */
} Plain;

static size_t
plain_check(Plain *p, size_t code)
{
	if (ZSTD_isError(code))
		wp_fail(p->ctx, "zstd: %s", ZSTD_getErrorName(code));
	return code;
}

/* Compress up to a block more; returns the number of output bytes. */
static size_t
compress_block(Plain *p, uint32 at, uint32 n, ZSTD_EndDirective end)
{
	ZSTD_inBuffer in = {p->raw + at, n, 0};
	size_t		got = 0;
	size_t		left;

	do
	{
		ZSTD_outBuffer out = {p->out, p->out_size, 0};

		left = plain_check(p, ZSTD_compressStream2(p->zstd, &out, &in, end));
		got += out.pos;
	} while (in.pos < in.size || (left > 0 && end != ZSTD_e_continue));
	return got;
}

/*
 * Compute the size of block i, when "history" bytes in front of it are known.
 */
static size_t
sample_block(Plain *p, uint32 i, uint32 history)
{
	uint32		at = i * BLOCK;

	history = Min(history, at);
	plain_check(p, ZSTD_CCtx_reset(p->zstd, ZSTD_reset_session_only));
	plain_check(p,
				ZSTD_CCtx_refPrefix(p->zstd, p->raw + at - history, history));
	return compress_block(p, at, BLOCK, ZSTD_e_flush);
}

/*
 * Compute the expected size of block i from its words that do not occur before
 * it, and from the statistics of its bytes.
 */
static void
look_at_block(const Plain *p, uint64 *table, uint32 i, Block *b)
{
	uint32		count[256] = {0};
	uint32		novel = 0;
	uint32		far = 0;

	for (uint32 at = i * BLOCK; at < (i + 1) * BLOCK; at += 8)
	{
		uint64		word = wp_get64(p->raw + at);
		uint64		hash = word * UINT64CONST(0x9E3779B97F4A7C15);
		uint64	   *entry;
		uint32		distance;

		if ((hash >> (64 - WORDS_LOG)) != 0 || word == 0)
			continue;

		/*
		 * the hash's low half distinguishes words; their places are not in
		 * the cache
		 */
		entry = &table[(hash << WORDS_LOG) >> (64 - TABLE_LOG)];
		distance = at - (uint32) *entry;
		if (*entry >> 32 != (uint32) hash || distance > LONG_HISTORY)
			novel++;
		else if (distance > HISTORY)
			far++;
		*entry = hash << 32 | at;
	}
	for (uint32 at = i * BLOCK; at < (i + 1) * BLOCK; at += BYTE_STEP)
		count[p->raw[at]]++;
	b->index = i;
	b->far = far * FAR_PART > novel;
	b->expected = (novel + 1) * wp_information(count, BLOCK / BYTE_STEP + 1);
	b->sampled = 0;
}

static int
compare_expected(const void *a, const void *b)
{
	double		x = ((const Block *) a)->expected;
	double		y = ((const Block *) b)->expected;

	return (x > y) - (x < y);
}

/*
 * Compute a low estimate of the chunk's size from this many samples; by the
 * samples alone, and minus a margin.
 */
static double
estimate(Plain *p, uint32 samples, double *trusted)
{
	double		before = 0;
	double		sum = 0;
	double		saved_margin = 1 +
		(SAVED_MARGIN - 1) * SAMPLES / Max(samples, SAMPLES);
	double		factor;

	for (uint32 i = 0; i < p->nblocks; i++)
	{
		Block	   *b = &p->blocks[i];

		before = b->sampled > 0 ? b->sampled : before;
		b->low = before;
	}
	for (uint32 i = p->nblocks; i-- > 0;)
	{
		Block	   *b = &p->blocks[i];

		if (i + 1 < p->nblocks && b->sampled == 0)
			b->low = Min(b->low, b[1].sampled > 0 ? b[1].sampled : b[1].low);
		sum += b->low;
	}
	sum *= (double) p->len / BLOCK / p->nblocks;
	factor = Max(sum / MARGIN, p->len - (p->len - sum) * saved_margin) / sum;
	for (uint32 i = 0; i < p->nblocks; i++)
		p->low[p->blocks[i].index] = p->blocks[i].low * factor;
	*trusted = sum * factor;
	return sum;
}

/*
 * The place of sample i in the order of the blocks.  Each round has twice as
 * many samples, between the previous ones.
 */
static uint32
sample_place(uint32 i, uint32 nblocks)
{
	/* the most informative samples come first */
	static const uint32 order[SAMPLES] = {0, 4, 6, 2, 1, 3, 5, 7};
	uint32		round = SAMPLES;

	if (i < SAMPLES)
		return order[i] * nblocks / SAMPLES;
	while (i >= 2 * round)
		round *= 2;
	return (2 * (i - round) + 1) * nblocks / (2 * round);
}

/*
 * Take samples until it is certain that zstd needs more than "packed" bytes,
 * or likely that these suffice.
 */
static void
take_samples(Plain *p, size_t packed)
{
	uint64	   *table = wp_zalloc(p->ctx, sizeof(uint64) << TABLE_LOG);
	double		trusted = 0;

	p->nblocks = p->len / BLOCK;
	p->blocks = wp_alloc(p->ctx, p->nblocks * sizeof(Block));
	p->low = wp_alloc(p->ctx, p->nblocks * sizeof(double));
	for (uint32 i = 0; i < p->nblocks; i++)
		look_at_block(p, table, i, &p->blocks[i]);
	qsort(p->blocks, p->nblocks, sizeof(Block), compare_expected);
	for (uint32 i = 0; i < MAX_SAMPLES; i++)
	{
		Block	   *b = &p->blocks[sample_place(i, p->nblocks)];
		uint32		n = i + 1;

		b->sampled = sample_block(p, b->index, b->far ? LONG_HISTORY : HISTORY);
		if (n < MIN_SAMPLES)
			continue;
		/* the margin of a round counts when the round is complete */
		if ((n <= SAMPLES || (n & (n - 1)) == 0) &&
			(estimate(p, n, &trusted) <= packed ? n >= SAMPLES :
			 trusted > packed))
			break;
	}
}

/*
 * The minimum size of the chunk behind its first "done" bytes, if these needed
 * "got" bytes.
 */
static double
rest_at_least(const Plain *p, uint32 done, size_t got)
{
	double		expected = 0;
	double		rest = 0;

	for (uint32 i = 0; i < p->nblocks; i++)
		*(i < done / BLOCK ? &expected : &rest) += p->low[i];
	return got < expected ? rest * got / expected : rest;
}

bool
wp_plain_is_smaller(WpContext *ctx, ZSTD_CCtx *zstd, int level,
					const uint8 *raw, uint32 len, size_t packed)
{
	size_t		got = 0;
	uint32		done;
	Plain		p = {ctx, zstd, raw, len};

	p.out_size = ZSTD_CStreamOutSize();
	p.out = wp_alloc(ctx, p.out_size);
	plain_check(&p, ZSTD_CCtx_reset(zstd, ZSTD_reset_session_and_parameters));
	plain_check(&p,
				ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, level));
	if (level <= MAX_LEVEL && packed > len / MIN_PART &&
		len / BLOCK >= MIN_BLOCKS)
		take_samples(&p, packed);
	plain_check(&p, ZSTD_CCtx_reset(zstd, ZSTD_reset_session_only));
	plain_check(&p, ZSTD_CCtx_setPledgedSrcSize(zstd, len));
	for (done = 0; done < len && got + rest_at_least(&p, done, got) < packed;
		 done += Min(BLOCK, len - done))
		got += compress_block(&p, done, Min(BLOCK, len - done),
							  len - done <= BLOCK ? ZSTD_e_end :
							  ZSTD_e_continue);
	return done == len && got < packed;
}
