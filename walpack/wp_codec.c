/*-------------------------------------------------------------------------
 * wp_codec.c
 *	  Packing and unpacking of chunks of WAL.
 *-------------------------------------------------------------------------
 */
#include "wp_port.h"

#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "wp_codec.h"
#include "wp_group.h"
#include "wp_model.h"
#include "wp_plain.h"
#include "wp_repeat.h"

/*
 * The size of the arena.  Eight times the chunk has room for its payload, the
 * rows of its groups with their lengths, and its body.  The constant part has
 * room for classes and relations, of which a small chunk may have many, too.
 */
#define ARENA_SIZE(raw_len)		((size_t) (raw_len) * 8 + 64 * 1024 * 1024)
#define MAX_BODY(raw_len)		((size_t) (raw_len) * 2 + 1024 * 1024)

#define MAX_KEPT				(1024 * 1024)	/* a larger buffer is freed if
												 * it is hardly used */

/* Columns shorter than this share a block with their neighbours. */
#define MIN_BLOCK				4096

/*
 * Short repeats in columns are by chance.  To search for them costs much time,
 * and they gain less than the statistics of single bytes.  So columns of
 * MIN_FRAME bytes or more get a frame of their own, in which zstd searches only
 * for longer repeats.  So do images compressed by lz4, which leaves no short
 * repeats.
 */
#define MIN_FRAME				65536
#define LONG_MIN_MATCH			7
#define MAX_FAST_LEVEL			3	/* at higher levels time matters less */

/*
 * Sizes of zstd's tables for columns that are mostly short: repeats are near,
 * and tables that fit into the cache save a quarter of the time.
 */
#define SHORT_COLUMN			16384	/* bytes */
#define SHORT_HASH_LOG			15
#define SHORT_CHAIN_LOG			14

/*
 * zstd's tables do not reach repeats at the distance FAR in data that it can
 * shrink.  A search for long repeats is worthwhile if they make up FEW_REPEATS
 * of a section of random bytes, or MANY_REPEATS of another section.
 */
#define FAR						(256 * 1024)
#define FEW_REPEATS				(1.0 / 64)
#define MANY_REPEATS			(1.0 / 16)
#define LONG_WINDOW_LOG			24	/* of the largest chunk */

/* The way a section is packed. */
typedef enum How
{
	HOW_SHARED,					/* in a frame with other sections */
	HOW_STORED,					/* unchanged */
	/* in a frame of its own: */
	HOW_COLUMNS,				/* without a search for short repeats */
	HOW_IMAGES,					/* the same, for images compressed by lz4 */
	HOW_REPEATS,				/* with a search for long repeats far away */
	HOW_REPEATS_ONLY			/* the same, where all else is random */
}			How;

struct WpCodec
{
	WpContext	ctx;
	int			level;
	bool		prefer_records;
	ZSTD_CCtx  *compressor;
	ZSTD_DCtx  *decompressor;
	WpBuf		sections[WP_SECTIONS + 1];
	How			how[WP_SECTIONS];
	WpBuf		lengths;		/* of the sections; the body begins with it */
	WpBuf		packed;
};

WpCodec *
wp_codec_new(int level)
{
	WpCodec    *codec = calloc(1, sizeof(WpCodec));

	if (codec == NULL)
		return NULL;
	codec->level = level;
	wp_group_init(&codec->ctx);
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
	wp_buf_free(&codec->lengths);
	wp_buf_free(&codec->packed);
	wp_arena_free(&codec->ctx);
	free(codec);
}

#ifdef WP_CODEC_TEST
#include "test/codec_test.h"

/* see test/codec_test.h */
void
wp_codec_prefer_records(WpCodec *codec, bool prefer)
{
	codec->prefer_records = prefer;
}

uint64
wp_codec_checked(const WpCodec *codec)
{
	return codec->ctx.checked;
}
#endif

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
	if (page_size < 1024 || page_size > 65536 ||
		(page_size & (page_size - 1)) != 0 || segment_size < page_size ||
		(segment_size & (segment_size - 1)) != 0)
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

/* Compress n more bytes.  end says whether they end a block or the frame. */
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

/* True if most bytes of the columns are in short columns. */
static bool
columns_are_short(const WpCodec *codec)
{
	const WpBuf *cuts = &codec->sections[WP_CUTS];
	size_t		total = codec->sections[WP_SEC_COLUMNS].used;
	size_t		in_long = 0;

	for (size_t i = 0; i < cuts->used; i += 4)
	{
		size_t		end = i + 4 < cuts->used ?
			wp_get32(cuts->data + i + 4) : total;
		size_t		len = end - wp_get32(cuts->data + i);

		if (len >= SHORT_COLUMN)
			in_long += len;
	}
	return in_long * 2 < total;
}

/*
 * Start a frame with "size" bytes of contents, which are packed in the given
 * way.
 */
static void
start_frame(WpCodec *codec, How how, size_t size)
{
	bool		small = how == HOW_COLUMNS && columns_are_short(codec);
	bool		only_long = how == HOW_COLUMNS || how == HOW_IMAGES;

	zstd_check(codec,
			   ZSTD_CCtx_reset(codec->compressor, ZSTD_reset_session_only));
	zstd_check(codec,
			   ZSTD_CCtx_setParameter(codec->compressor,
									  ZSTD_c_compressionLevel, codec->level));
	zstd_check(codec, ZSTD_CCtx_setParameter(codec->compressor, ZSTD_c_minMatch,
											 only_long ? LONG_MIN_MATCH : 0));
	zstd_check(codec, ZSTD_CCtx_setParameter(codec->compressor, ZSTD_c_hashLog,
											 small ? SHORT_HASH_LOG : 0));
	zstd_check(codec, ZSTD_CCtx_setParameter(codec->compressor, ZSTD_c_chainLog,
											 small ? SHORT_CHAIN_LOG : 0));
	zstd_check(codec, ZSTD_CCtx_setPledgedSrcSize(codec->compressor, size));
}

/*
 * Compress columns.  Those with different statistics get blocks of their own.
 */
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
			compress_part(codec, columns->data + start, cut - start,
						  ZSTD_e_flush);
			start = cut;
		}
	}
	compress_part(codec, columns->data + start, columns->used - start,
				  ZSTD_e_flush);
}

/*
 * Choose the way to pack a section.  A section of random bytes is stored,
 * unless long stretches repeat.  A section in which long stretches repeat gets
 * a frame with a search for such repeats, because zstd does not find those that
 * are far away.
 */
static How
how_section(WpCodec *codec, int section)
{
	const WpBuf *sec = &codec->sections[section];

	bool		frame = sec->used >= MIN_FRAME &&
		codec->level <= MAX_FAST_LEVEL;

	if (section == WP_SEC_COLUMNS)
		return frame ? HOW_COLUMNS : HOW_SHARED;
	if (section == WP_SEC_STORED ||
		(section == WP_SEC_IMAGES && wp_is_random(sec->data, sec->used)))
		return wp_repeats(&codec->ctx, sec->data, sec->used, 0) >= FEW_REPEATS ?
			HOW_REPEATS_ONLY : HOW_STORED;
	if (section == WP_SEC_IMAGES && frame &&
		codec->ctx.lz4_images > sec->used / 2)
		return HOW_IMAGES;
	if ((section == WP_SEC_TAILS || section == WP_SEC_LITERAL) &&
		wp_repeats(&codec->ctx, sec->data, sec->used, FAR) >= MANY_REPEATS)
		return HOW_REPEATS;
	return HOW_SHARED;
}

/*
 * Set the lengths, and write the stored sections.  Returns the length of what
 * the frames will hold.
 */
static uint32
start_body(WpCodec *codec)
{
	WpContext  *ctx = &codec->ctx;
	WpBuf	   *lengths = &codec->lengths;
	WpBodyHeader header;
	size_t		in_frame = 0;
	size_t		stored_len = 0;

	for (int i = 0; i < WP_SECTIONS; i++)
	{
		size_t		len = codec->sections[i].used;
		bool		stored = codec->how[i] == HOW_STORED;

		wp_put_varint(ctx, lengths, len << 1 | stored);
		*(stored ? &stored_len : &in_frame) += len;
	}
	start_chunk(codec);
	wp_set32(header.stored_len, stored_len);
	wp_put_bytes(ctx, &codec->packed, &header, sizeof(header));
	for (int i = 0; i < WP_SECTIONS; i++)
		if (codec->how[i] == HOW_STORED)
		{
			wp_put_bytes(ctx, &codec->packed, codec->sections[i].data,
						 codec->sections[i].used);
			wp_buf_free(&codec->sections[i]);
		}
	return in_frame + lengths->used;
}

/*
 * Compress a section with long repeats in one frame and one call, so that zstd
 * needs no copy of earlier bytes.
 */
static void
compress_repeats(WpCodec *codec, const WpBuf *sec, bool only)
{
	WpBuf	   *packed = &codec->packed;
	size_t		bound = ZSTD_compressBound(sec->used);
	size_t		got;

	start_frame(codec, HOW_SHARED, sec->used);
	if (only)
		zstd_check(codec, ZSTD_CCtx_setParameter(codec->compressor,
												 ZSTD_c_compressionLevel, 1));
	zstd_check(codec,
			   ZSTD_CCtx_setParameter(codec->compressor,
									  ZSTD_c_enableLongDistanceMatching, 1));
	zstd_check(codec,
			   ZSTD_CCtx_setParameter(codec->compressor, ZSTD_c_windowLog,
									  LONG_WINDOW_LOG));
	got = ZSTD_compress2(codec->compressor,
						 wp_buf_add(&codec->ctx, packed, bound), bound,
						 sec->data, sec->used);
	zstd_check(codec,
			   ZSTD_CCtx_setParameter(codec->compressor,
									  ZSTD_c_enableLongDistanceMatching, 0));
	zstd_check(codec,
			   ZSTD_CCtx_setParameter(codec->compressor, ZSTD_c_windowLog, 0));
	zstd_check(codec, got);
	packed->used -= bound - got;
}

/*
 * Compress the bytes of "front" and those sections from first to last - 1 that
 * are not stored, in one frame.
 */
static void
compress_shared(WpCodec *codec, int first, int last, const WpBuf *front)
{
	size_t		size = front->used;

	for (int i = first; i < last; i++)
		size += codec->sections[i].used;
	if (size == 0)
		return;
	start_frame(codec, HOW_SHARED, size);
	compress_part(codec, front->data, front->used, ZSTD_e_continue);
	for (int i = first; i < last; i++)
	{
		const WpBuf *sec = &codec->sections[i];

		if (i == WP_SEC_COLUMNS)
			compress_columns(codec);
		else
			compress_part(codec, sec->data, sec->used,
						  sec->used >= MIN_BLOCK ? ZSTD_e_flush :
						  ZSTD_e_continue);
	}
	compress_part(codec, NULL, 0, ZSTD_e_end);
}

/* Compress a section in a frame of its own. */
static void
compress_alone(WpCodec *codec, int i)
{
	const WpBuf *sec = &codec->sections[i];
	How			how = codec->how[i];

	if (how == HOW_REPEATS || how == HOW_REPEATS_ONLY)
	{
		compress_repeats(codec, sec, how == HOW_REPEATS_ONLY);
		return;
	}
	start_frame(codec, how, sec->used);
	if (how == HOW_COLUMNS)
		compress_columns(codec);
	else
		compress_part(codec, sec->data, sec->used, ZSTD_e_continue);
	compress_part(codec, NULL, 0, ZSTD_e_end);
}

/* Compress the body's sections, after their lengths. */
static void
compress_body(WpCodec *codec)
{
	const WpBuf none = {NULL};
	int			i = 0;

	while (i < WP_SECTIONS)
	{
		int			first = i;

		while (i < WP_SECTIONS && codec->how[i] <= HOW_STORED)
			i++;
		compress_shared(codec, first, i, first == 0 ? &codec->lengths : &none);
		if (i == WP_SECTIONS)
			break;
		compress_alone(codec, i);
		i++;
	}
}

/*
 * Empty the sections.  Memory that the last chunk has hardly used is freed, so
 * that it does not accumulate when the load changes.
 */
static void
clear_sections(WpCodec *codec)
{
	for (int i = 0; i <= WP_SECTIONS; i++)
	{
		WpBuf	   *sec = &codec->sections[i];

		if (sec->cap > MAX_KEPT && sec->used < sec->cap / 4)
			wp_buf_free(sec);
		sec->used = 0;
	}
}

/*
 * Encode records into the sections, and pack these.  Returns the length of the
 * body.
 */
static uint32
pack_records(WpCodec *codec, const uint8 *raw, uint32 len, uint32 page_size)
{
	WpBuf	   *lengths = &codec->lengths;
	size_t		total;

	clear_sections(codec);
	lengths->used = 0;
	wp_encode_records(&codec->ctx, raw, len, page_size, codec->sections);
	for (int i = 0; i < WP_SECTIONS; i++)
		codec->how[i] = how_section(codec, i);
	total = start_body(codec);
	compress_body(codec);
	return total;
}

/* Compress the chunk by zstd alone.  Returns 0 if room is too small. */
static size_t
compress_plain(WpCodec *codec, uint8 *dst, size_t room, const uint8 *raw,
			   uint32 len)
{
	size_t		got;

	start_frame(codec, HOW_SHARED, len);
	got = ZSTD_compress2(codec->compressor, dst, room, raw, len);
	if (ZSTD_getErrorCode(got) == ZSTD_error_dstSize_tooSmall)
		return 0;
	zstd_check(codec, got);
	return got;
}

static void
pack_as(WpCodec *codec, WpChunkKind kind, const uint8 *raw, uint32 len,
		uint32 page_size)
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
			size_t		got = compress_plain(codec,
											 codec->packed.data +
											 sizeof(WpChunkHeader),
											 len, raw, len);

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

/* Returns whether zstd alone needs less than the packed chunk. */
static bool
plain_is_smaller(WpCodec *codec, const uint8 *raw, uint32 len)
{
	if (!wp_arena_reset(&codec->ctx, ARENA_SIZE(len)) ||
		setjmp(codec->ctx.jump) != 0)
		return false;
	return wp_plain_is_smaller(&codec->ctx, codec->compressor, codec->level,
							   raw, len,
							   codec->packed.used - sizeof(WpChunkHeader));
}

/* ---- unpack ---- */

bool
wp_codec_header(WpCodec *codec, const WpChunkHeader *header, uint32 *raw_len,
				uint32 *packed_len)
{
	uint32		body_len = wp_get32(header->body_len);
	uint8		reserved = header->reserved[0] | header->reserved[1] |
		header->reserved[2];

	*raw_len = wp_get32(header->raw_len);
	*packed_len = wp_get32(header->packed_len);
	if (header->kind >= WP_CHUNK_STORED && header->kind <= WP_CHUNK_RECORDS &&
		reserved == 0 && *raw_len > 0 && *raw_len <= WP_MAX_CHUNK &&
		*packed_len <= *raw_len &&
		(header->kind == WP_CHUNK_RECORDS ? body_len <= MAX_BODY(*raw_len) :
		 body_len == *raw_len) &&
		(header->kind != WP_CHUNK_STORED || *packed_len == *raw_len))
		return true;
	strlcpy(codec->ctx.error, "damaged chunk header", sizeof(codec->ctx.error));
	return false;
}

static void
decompress(WpCodec *codec, uint8 *dst, size_t len, const uint8 *src,
		   size_t src_len)
{
	size_t		got = ZSTD_decompressDCtx(codec->decompressor, dst, len, src,
										  src_len);

	zstd_check(codec, got);
	if (got != len)
		wp_fail(&codec->ctx, "a frame is too short");
}

/* Decode records to raw, or, if that is NULL, compare them with expected. */
static void
unpack_records(WpCodec *codec, const uint8 *packed, uint32 packed_len,
			   uint32 body_len, uint8 *raw, const uint8 *expected,
			   uint32 raw_len)
{
	WpContext  *ctx = &codec->ctx;
	uint8	   *body = wp_alloc(ctx, body_len + WP_SLACK);
	WpReader	frame = {body, body + body_len};
	WpReader	stored = {packed, packed + packed_len};
	WpReader	sections[WP_SECTIONS];
	uint64		lengths[WP_SECTIONS];
	const uint8 *header = wp_get_bytes(ctx, &stored, sizeof(WpBodyHeader));
	uint32		stored_len = wp_get32(header);

	packed = wp_get_bytes(ctx, &stored, stored_len) + stored_len;
	stored.p -= stored_len;
	decompress(codec, body, body_len, packed, stored.end - packed);
	stored.end = packed;
	for (int i = 0; i < WP_SECTIONS; i++)
		lengths[i] = wp_get_varint(ctx, &frame);
	for (int i = 0; i < WP_SECTIONS; i++)
	{
		sections[i].p = wp_get_bytes(ctx, lengths[i] & 1 ? &stored : &frame,
									 lengths[i] >> 1);
		sections[i].end = sections[i].p + (lengths[i] >> 1);
	}
	wp_decode_records(ctx, sections, raw, expected, raw_len);
}

/*
 * Unpack a chunk without records to raw, or, if that is NULL, compare it with
 * expected.
 */
static bool
unpack_plain(WpCodec *codec, const WpChunkHeader *header, const uint8 *packed,
			 uint8 *raw, const uint8 *expected)
{
	uint32		raw_len = wp_get32(header->raw_len);
	uint8	   *back = raw != NULL ? raw : wp_alloc(&codec->ctx, raw_len);

	if (header->kind == WP_CHUNK_ZSTD)
		decompress(codec, back, raw_len, packed, wp_get32(header->packed_len));
	else
		memcpy(back, packed, raw_len);
	return raw != NULL || memcmp(back, expected, raw_len) == 0;
}

static bool
unpack(WpCodec *codec, const WpChunkHeader *header, const uint8 *packed,
	   uint8 *raw, const uint8 *expected)
{
	uint32		raw_len = wp_get32(header->raw_len);

	strlcpy(codec->ctx.error, "out of memory", sizeof(codec->ctx.error));
	if (!wp_arena_reset(&codec->ctx, ARENA_SIZE(raw_len)))
		return false;
	if (setjmp(codec->ctx.jump) != 0)
		return false;
	if (header->kind != WP_CHUNK_RECORDS)
		return unpack_plain(codec, header, packed, raw, expected);
	unpack_records(codec, packed, wp_get32(header->packed_len),
				   wp_get32(header->body_len), raw, expected, raw_len);
	return true;
}

bool
wp_codec_unpack(WpCodec *codec, const WpChunkHeader *header,
				const uint8 *packed, uint8 *raw)
{
	return unpack(codec, header, packed, raw, NULL);
}

/* ---- packing, and checking the result ---- */

/*
 * Pack the chunk as this kind, decode it and compare.  Returns false if the
 * result is wrong or not smaller, so another kind must be tried.
 */
static bool
try_pack(WpCodec *codec, WpChunkKind kind, const uint8 *raw, uint32 len,
		 uint32 page_size)
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
	return wp_codec_header(codec, &header, &raw_len, &packed_len) &&
		raw_len == len &&
		unpack(codec, &header, codec->packed.data + sizeof(header), NULL,
			   raw);
}

bool
wp_codec_pack(WpCodec *codec, const uint8 *raw, uint32 len, uint32 page_size,
			  const uint8 **packed, size_t *packed_len)
{
	strlcpy(codec->ctx.error, "out of memory", sizeof(codec->ctx.error));
	if (!(page_size > 0 && len % page_size == 0 &&
		  wp_magic_version(wp_get16(raw)) != 0 &&
		  try_pack(codec, WP_CHUNK_RECORDS, raw, len, page_size) &&
		  (codec->prefer_records || !plain_is_smaller(codec, raw, len))) &&
		!try_pack(codec, WP_CHUNK_ZSTD, raw, len, page_size) &&
		!try_pack(codec, WP_CHUNK_STORED, raw, len, page_size))
		return false;
	*packed = codec->packed.data;
	*packed_len = codec->packed.used;
	return true;
}
