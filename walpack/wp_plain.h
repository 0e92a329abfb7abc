/*-------------------------------------------------------------------------
 * wp_plain.h
 *	  Encoder: a test whether zstd alone would need less than the packed chunk.
 *-------------------------------------------------------------------------
 */
#ifndef WP_PLAIN_H
#define WP_PLAIN_H

#include "wp_util.h"

/*
 * True if zstd alone, at this level, would need less than this many bytes.
 * Fails by wp_fail.
 */
extern bool wp_plain_is_smaller(WpContext *ctx, struct ZSTD_CCtx_s *zstd,
								int level, const uint8 *raw, uint32 len,
								size_t packed);

#endif							/* WP_PLAIN_H */
