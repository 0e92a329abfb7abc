/*-------------------------------------------------------------------------
 * wp_codec.c
 *	  Chunks of WAL to packed chunks and back.
 *-------------------------------------------------------------------------
 */
#include "wp_port.h"

#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "wp_codec.h"
#include "wp_group.h"
#include "wp_model.h"

/*
 * Memory for a chunk: its payload, the rows of its groups with their lengths,
 * its body, and the classes and relations of a small chunk.
 */
#define ARENA_SIZE(raw_len)		((size_t) (raw_len) * 8 + 64 * 1024 * 1024)
#define MAX_BODY(raw_len)		((size_t) (raw_len) * 2 + 1024 * 1024)

/* Columns shorter than this share a block with their neighbours. */
#define MIN_BLOCK				4096

struct WpCodec
{
	WpContext	ctx;
	int			level;
	bool		prefer_records;
	ZSTD_CCtx  *compressor;
	ZSTD_DCtx  *decompressor;
	WpBuf		sections[WP_SECTIONS + 1];
	WpBuf		packed;
	WpBuf		check;			/* what the packed chunk decodes to */
};

WpCodec *
wp_codec_new(int level)
{
	WpCodec    *codec = calloc(1, sizeof(WpCodec));

	if (codec == NULL)
		return NULL;
	codec->level = level;
	codec->compressor = codec->ctx.trial = ZSTD_createCCtx();
	codec->decompressor = ZSTD_createDCtx();
	if (codec->compressor == NULL || codec->decompressor == NULL)
	{
		wp_codec_free(codec);
		return NULL;
	}
	return codec;
}

void
wp_codec_free(WpCodec *codec)
{
	ZSTD_freeCCtx(codec->compressor);
	ZSTD_freeDCtx(codec->decompressor);
	for (int i = 0; i <= WP_SECTIONS; i++)
		wp_buf_free(&codec->sections[i]);
	wp_buf_free(&codec->packed);
	wp_buf_free(&codec->check);
	wp_arena_free(&codec->ctx);
	free(codec);
}

void
wp_codec_prefer_records(WpCodec *codec, bool prefer)
{
	codec->prefer_records = prefer;
}

const char *
wp_codec_error(const WpCodec *codec)
{
	return codec->ctx.error;
}

uint32
wp_codec_page_size(const uint8 *start, size_t len)
{
	uint32		segment_size;
	uint32		page_size;

	if (len < WP_LONG_HEADER || wp_magic_version(wp_get16(start)) == 0 ||
		(wp_get16(start + 2) & WP_XLP_LONG) == 0)
		return 0;
	segment_size = wp_get32(start + 32);
	page_size = wp_get32(start + 36);
	if (page_size < 1024 || page_size > 65536 || (page_size & (page_size - 1)) != 0 ||
		segment_size < page_size || (segment_size & (segment_size - 1)) != 0)
		return 0;
	return page_size;
}

/* ---- pack ---- */

static void
zstd_check(WpCodec *codec, size_t code)
{
	if (ZSTD_isError(code))
		wp_fail(&codec->ctx, "zstd: %s", ZSTD_getErrorName(code));
}

/* Compress n more bytes and end a block, or the frame. */
static void
compress_part(WpCodec *codec, const void *src, size_t n, ZSTD_EndDirective end)
{
	ZSTD_inBuffer in = {src, n, 0};
	WpBuf	   *packed = &codec->packed;
	size_t		left;

	do
	{
		ZSTD_outBuffer out;

		if (packed->cap - packed->used < 4096)
			wp_buf_grow(&codec->ctx, packed, Max(n / 4, 65536));
		out.dst = packed->data + packed->used;
		out.size = packed->cap - packed->used;
		out.pos = 0;
		left = ZSTD_compressStream2(codec->compressor, &out, &in, end);
		zstd_check(codec, left);
		packed->used += out.pos;
	} while (left > 0 || in.pos < in.size);
}

static void
start_chunk(WpCodec *codec)
{
	codec->packed.used = 0;
	wp_buf_add(&codec->ctx, &codec->packed, sizeof(WpChunkHeader));
}

/* The next frame has size bytes of contents. */
static void
start_frame(WpCodec *codec, size_t size)
{
	zstd_check(codec, ZSTD_CCtx_reset(codec->compressor, ZSTD_reset_session_only));
	zstd_check(codec, ZSTD_CCtx_setParameter(codec->compressor, ZSTD_c_compressionLevel, codec->level));
	zstd_check(codec, ZSTD_CCtx_setPledgedSrcSize(codec->compressor, size));
}

/* Columns with different statistics get blocks of their own. */
static void
compress_columns(WpCodec *codec)
{
	const WpBuf *columns = &codec->sections[WP_SEC_COLUMNS];
	const WpBuf *cuts = &codec->sections[WP_CUTS];
	size_t		start = 0;

	for (size_t i = 0; i < cuts->used; i += 4)
	{
		uint32		cut = wp_get32(cuts->data + i);

		if (cut - start >= MIN_BLOCK)
		{
			compress_part(codec, columns->data + start, cut - start, ZSTD_e_flush);
			start = cut;
		}
	}
	compress_part(codec, columns->data + start, columns->used - start, ZSTD_e_flush);
}

/* Not worth to be pushed through zstd? */
static bool
is_stored(const WpCodec *codec, int section)
{
	const WpBuf *sec = &codec->sections[section];

	return section == WP_SEC_STORED || (section == WP_SEC_IMAGES && wp_is_random(sec->data, sec->used));
}

/* The lengths, and what is stored; returns the frame's contents' length. */
static uint32
start_body(WpCodec *codec, WpBuf *lengths)
{
	WpContext  *ctx = &codec->ctx;
	WpBodyHeader header;
	size_t		in_frame = 0;
	size_t		stored_len = 0;
	bool		stored[WP_SECTIONS];

	for (int i = 0; i < WP_SECTIONS; i++)
	{
		size_t		len = codec->sections[i].used;

		stored[i] = is_stored(codec, i);
		wp_put_varint(ctx, lengths, len << 1 | stored[i]);
		*(stored[i] ? &stored_len : &in_frame) += len;
	}
	start_chunk(codec);
	wp_set32(header.stored_len, stored_len);
	wp_put_bytes(ctx, &codec->packed, &header, sizeof(header));
	for (int i = 0; i < WP_SECTIONS; i++)
		if (stored[i])
		{
			wp_put_bytes(ctx, &codec->packed, codec->sections[i].data, codec->sections[i].used);
			codec->sections[i].used = 0;
		}
	return in_frame + lengths->used;
}

/* Returns the length of the body. */
static uint32
pack_records(WpCodec *codec, const uint8 *raw, uint32 len, uint32 page_size)
{
	WpBuf		lengths = {NULL};
	size_t		total;

	for (int i = 0; i <= WP_SECTIONS; i++)
		codec->sections[i].used = 0;
	wp_encode_records(&codec->ctx, raw, len, page_size, codec->sections);
	total = start_body(codec, &lengths);
	start_frame(codec, total);
	compress_part(codec, lengths.data, lengths.used, ZSTD_e_continue);
	wp_buf_free(&lengths);
	for (int i = 0; i < WP_SECTIONS; i++)
	{
		if (i == WP_SEC_COLUMNS)
			compress_columns(codec);
		else
			compress_part(codec, codec->sections[i].data, codec->sections[i].used,
						  codec->sections[i].used >= MIN_BLOCK ? ZSTD_e_flush : ZSTD_e_continue);
	}
	compress_part(codec, NULL, 0, ZSTD_e_end);
	return total;
}

/* Compress the chunk by zstd alone; 0 if that needs more than room bytes, which is noticed as soon as it does. */
static size_t
compress_plain(WpCodec *codec, uint8 *dst, size_t room, const uint8 *raw, uint32 len)
{
	size_t		got;

	start_frame(codec, len);
	got = ZSTD_compress2(codec->compressor, dst, room, raw, len);
	if (ZSTD_getErrorCode(got) == ZSTD_error_dstSize_tooSmall)
		return 0;
	zstd_check(codec, got);
	return got;
}

static void
pack_as(WpCodec *codec, WpChunkKind kind, const uint8 *raw, uint32 len, uint32 page_size)
{
	WpChunkHeader *header;
	uint32		body_len = len;

	if (kind == WP_CHUNK_RECORDS)
		body_len = pack_records(codec, raw, len, page_size);
	else
	{
		start_chunk(codec);
		wp_put_bytes(&codec->ctx, &codec->packed, raw, len);
		if (kind == WP_CHUNK_ZSTD)
		{
			size_t		got = compress_plain(codec, codec->packed.data + sizeof(WpChunkHeader), len, raw, len);

			if (got > 0)
				codec->packed.used = sizeof(WpChunkHeader) + got;
		}
	}
	header = (WpChunkHeader *) codec->packed.data;
	memset(header, 0, sizeof(*header));
	header->kind = kind;
	wp_set32(header->raw_len, len);
	wp_set32(header->packed_len, codec->packed.used - sizeof(WpChunkHeader));
	wp_set32(header->body_len, body_len);
}

/* Would zstd alone need less than the packed chunk?  The better that is packed, the sooner this is known. */
static bool
plain_is_smaller(WpCodec *codec, const uint8 *raw, uint32 len)
{
	size_t		room = codec->packed.used - sizeof(WpChunkHeader) - 1;

	if (setjmp(codec->ctx.jump) != 0)
		return false;
	codec->check.used = 0;
	return compress_plain(codec, wp_buf_add(&codec->ctx, &codec->check, room), room, raw, len) > 0;
}

/* Pack, decode and compare; false if that is not possible this way. */
static bool
try_pack(WpCodec *codec, WpChunkKind kind, const uint8 *raw, uint32 len, uint32 page_size)
{
	uint32		raw_len;
	uint32		packed_len;
	WpChunkHeader header;

	if (!wp_arena_reset(&codec->ctx, ARENA_SIZE(len)))
		return false;
	if (setjmp(codec->ctx.jump) != 0)
		return false;
	pack_as(codec, kind, raw, len, page_size);
	if (kind != WP_CHUNK_STORED && codec->packed.used >= len)
		return false;
	memcpy(&header, codec->packed.data, sizeof(header));
	codec->check.used = 0;
	wp_buf_add(&codec->ctx, &codec->check, len);
	return wp_codec_header(codec, &header, &raw_len, &packed_len) && raw_len == len &&
		wp_codec_unpack(codec, &header, codec->packed.data + sizeof(header), codec->check.data) &&
		memcmp(codec->check.data, raw, len) == 0;
}

bool
wp_codec_pack(WpCodec *codec, const uint8 *raw, uint32 len, uint32 page_size,
			  const uint8 **packed, size_t *packed_len)
{
	strlcpy(codec->ctx.error, "out of memory", sizeof(codec->ctx.error));
	if (!(page_size > 0 && len % page_size == 0 && wp_magic_version(wp_get16(raw)) != 0 &&
		  try_pack(codec, WP_CHUNK_RECORDS, raw, len, page_size) &&
		  (codec->prefer_records || !plain_is_smaller(codec, raw, len))) &&
		!try_pack(codec, WP_CHUNK_ZSTD, raw, len, page_size) &&
		!try_pack(codec, WP_CHUNK_STORED, raw, len, page_size))
		return false;
	*packed = codec->packed.data;
	*packed_len = codec->packed.used;
	return true;
}

/* ---- unpack ---- */

bool
wp_codec_header(WpCodec *codec, const WpChunkHeader *header, uint32 *raw_len, uint32 *packed_len)
{
	uint32		body_len = wp_get32(header->body_len);
	uint8		reserved = header->reserved[0] | header->reserved[1] | header->reserved[2];

	*raw_len = wp_get32(header->raw_len);
	*packed_len = wp_get32(header->packed_len);
	if (header->kind >= WP_CHUNK_STORED && header->kind <= WP_CHUNK_RECORDS && reserved == 0 &&
		*raw_len > 0 && *raw_len <= WP_MAX_CHUNK && *packed_len <= *raw_len &&
		(header->kind == WP_CHUNK_RECORDS ? body_len <= MAX_BODY(*raw_len) : body_len == *raw_len) &&
		(header->kind != WP_CHUNK_STORED || *packed_len == *raw_len))
		return true;
	strlcpy(codec->ctx.error, "damaged chunk header", sizeof(codec->ctx.error));
	return false;
}

static void
decompress(WpCodec *codec, uint8 *dst, size_t len, const uint8 *src, size_t src_len)
{
	size_t		got = ZSTD_decompressDCtx(codec->decompressor, dst, len, src, src_len);

	zstd_check(codec, got);
	if (got != len)
		wp_fail(&codec->ctx, "a frame is too short");
}

static void
unpack_records(WpCodec *codec, const uint8 *packed, uint32 packed_len, uint32 body_len,
			   uint8 *raw, uint32 raw_len)
{
	WpContext  *ctx = &codec->ctx;
	uint8	   *body = wp_alloc(ctx, body_len);
	WpReader	frame = {body, body + body_len};
	WpReader	stored = {packed, packed + packed_len};
	WpReader	sections[WP_SECTIONS];
	uint64		lengths[WP_SECTIONS];
	uint32		stored_len = wp_get32(wp_get_bytes(ctx, &stored, sizeof(WpBodyHeader)));

	packed = wp_get_bytes(ctx, &stored, stored_len) + stored_len;
	stored.p -= stored_len;
	decompress(codec, body, body_len, packed, stored.end - packed);
	stored.end = packed;
	for (int i = 0; i < WP_SECTIONS; i++)
		lengths[i] = wp_get_varint(ctx, &frame);
	for (int i = 0; i < WP_SECTIONS; i++)
	{
		sections[i].p = wp_get_bytes(ctx, lengths[i] & 1 ? &stored : &frame, lengths[i] >> 1);
		sections[i].end = sections[i].p + (lengths[i] >> 1);
	}
	wp_decode_records(ctx, sections, raw, raw_len);
}

bool
wp_codec_unpack(WpCodec *codec, const WpChunkHeader *header, const uint8 *packed, uint8 *raw)
{
	uint32		raw_len = wp_get32(header->raw_len);
	uint32		packed_len = wp_get32(header->packed_len);

	strlcpy(codec->ctx.error, "out of memory", sizeof(codec->ctx.error));
	if (!wp_arena_reset(&codec->ctx, ARENA_SIZE(raw_len)))
		return false;
	if (setjmp(codec->ctx.jump) != 0)
		return false;
	if (header->kind == WP_CHUNK_STORED)
		memcpy(raw, packed, raw_len);
	else if (header->kind == WP_CHUNK_ZSTD)
		decompress(codec, raw, raw_len, packed, packed_len);
	else
		unpack_records(codec, packed, packed_len, wp_get32(header->body_len), raw, raw_len);
	return true;
}
