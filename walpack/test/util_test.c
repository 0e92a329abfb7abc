/*-------------------------------------------------------------------------
 * util_test.c
 *	  Tests of the codec's small parts.
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <zstd.h>

#include "wp_group.h"
#include "wp_model.h"
#include "codec_test.h"

#define ARENA		(16 * 1024 * 1024)

static uint64
hash_of(const char *text, size_t piece)
{
	WpHash		h;
	size_t		len = strlen(text);

	wp_hash_init(&h);
	for (size_t i = 0; i < len; i += piece)
		wp_hash_add(&h, (const uint8 *) text + i, Min(piece, len - i));
	return wp_hash_end(&h);
}

static void
test_hash(void)
{
	const char *longer = "Nobody inspects the spammish repetition, and 32 bytes are a stripe.";

	check(hash_of("", 1) == UINT64CONST(0xEF46DB3751D8E999), "hash of nothing");
	check(hash_of("a", 1) == UINT64CONST(0xD24EC4F1A98C6E5B), "hash of a");
	check(hash_of("abc", 3) == UINT64CONST(0x44BC2CF5AD770999), "hash of abc");
	for (size_t piece = 1; piece < 70; piece++)
		check(hash_of(longer, piece) == hash_of(longer, 1000), "hash in pieces");
}

static void
test_buckets(void)
{
	uint8		last = 0;

	for (uint32 len = 0; len < 0x40000000; len += 1 + len / 64)
	{
		uint8		bucket = wp_bucket(len);

		check(bucket >= last && bucket <= last + 1 && bucket < WP_BUCKETS, "buckets");
		last = bucket;
	}
}

/* Compute CRC-32C bit by bit, as it is defined. */
static uint32
slow_crc(uint32 crc, const uint8 *p, uint32 n)
{
	for (uint32 i = 0; i < n; i++)
	{
		crc ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ (crc & 1 ? 0x82F63B78 : 0);
	}
	return crc;
}

/*
 * Check that every processor gets the server's result, for records that are
 * computed in one piece and in several.
 */
static void
test_crc(void)
{
	static uint8 record[6000];

	for (uint32 len = WP_REC_HEADER; len + 8 <= sizeof(record);
		 len += 1 + below(len < 1700 ? 2 : 97))
	{
		uint8	   *p = record + below(8);
		uint32		crc;

		for (size_t i = 0; i < sizeof(record); i += 8)
			wp_set64(record + i, random64());
		crc = slow_crc(0xFFFFFFFF, p + WP_REC_HEADER, len - WP_REC_HEADER);
		crc = slow_crc(crc, p, WP_REC_CRC) ^ 0xFFFFFFFF;
		check(wp_record_crc(p, len) == crc, "CRC of a record");
	}
}

/* True if the sections decode to these bytes. */
static bool
decodes_to(WpContext *ctx, const WpBuf *sections, const uint8 *expected,
		   uint32 len)
{
	WpReader	readers[WP_SECTIONS];

	for (int i = 0; i < WP_SECTIONS; i++)
	{
		readers[i].p = sections[i].data;
		readers[i].end = sections[i].data + sections[i].used;
	}
	check(wp_arena_reset(ctx, ARENA), "setup");
	if (setjmp(ctx->jump) != 0)
		return false;
	wp_decode_records(ctx, readers, NULL, expected, len);
	return true;
}

/*
 * Check that the comparison of an unpacked chunk, piece by piece, detects
 * every difference.  Only the four bytes of a record's CRC are not compared,
 * as the encoder has checked them.
 */
static void
test_compare(void)
{
	static WpContext ctx;
	static WpBuf sections[WP_SECTIONS + 1];
	uint32		page_size;
	uint32		len = make_wal(&page_size);

	wp_group_init(&ctx);
	ctx.trial = ZSTD_createCCtx();
	check(wp_arena_reset(&ctx, ARENA), "setup");
	check(setjmp(ctx.jump) == 0, ctx.error);
	wp_encode_records(&ctx, wal, len, page_size, sections);
	check(decodes_to(&ctx, sections, wal, len), ctx.error);
	for (int i = 0; i < 100; i++)
	{
		uint8	   *p = wal + below(len - 5);

		for (int j = 0; j < 5; j++)
			p[j] ^= 0x55;
		check(!decodes_to(&ctx, sections, wal, len), "a difference was not noticed");
		for (int j = 0; j < 5; j++)
			p[j] ^= 0x55;
	}
	for (int i = 0; i <= WP_SECTIONS; i++)
		wp_buf_free(&sections[i]);
	wp_arena_free(&ctx);
	ZSTD_freeCCtx(ctx.trial);
}

void
test_util(void)
{
	test_compare();
	test_hash();
	test_buckets();
	test_crc();
}
