/*-------------------------------------------------------------------------
 * wp_codec.h
 *	  Chunks of WAL to packed chunks and back.
 *-------------------------------------------------------------------------
 */
#ifndef WP_CODEC_H
#define WP_CODEC_H

#include "wp_format.h"
#include "wp_util.h"

#define WP_DEFAULT_LEVEL	3
#define WP_MAX_LEVEL		19

typedef struct WpCodec WpCodec;

/* Returns NULL if out of memory. */
extern WpCodec *wp_codec_new(int level);
extern void wp_codec_free(WpCodec *codec);

/* The description of the last failure. */
extern const char *wp_codec_error(const WpCodec *codec);

/*
 * The page size of a WAL segment with these first bytes; 0 if they are not
 * those of one, so that its chunks are compressed unparsed.
 */
extern uint32 wp_codec_page_size(const uint8 *start, size_t len);

/*
 * Pack len bytes.  The packed chunk with its header is then in *packed, which
 * stays valid until the next call.  It has been decoded and compared.
 */
extern bool wp_codec_pack(WpCodec *codec, const uint8 *raw, uint32 len,
						  uint32 page_size, const uint8 **packed,
						  size_t *packed_len);

/* Check a chunk's header and get its lengths. */
extern bool wp_codec_header(WpCodec *codec, const WpChunkHeader *header,
							uint32 *raw_len, uint32 *packed_len);

/* Unpack a chunk, whose header wp_codec_header has approved, into raw. */
extern bool wp_codec_unpack(WpCodec *codec, const WpChunkHeader *header,
							const uint8 *packed, uint8 *raw);

#endif							/* WP_CODEC_H */
