/*-------------------------------------------------------------------------
 * wp_plain.h
 *	  Encoder: would zstd alone need less than the packed chunk?
 *-------------------------------------------------------------------------
 */
#ifndef WP_PLAIN_H
#define WP_PLAIN_H

#include "wp_util.h"

/*
 * Would zstd alone, at this level, need less than so many bytes?  Fails by
 * wp_fail.
 */
extern bool wp_plain_is_smaller(WpContext *ctx, struct ZSTD_CCtx_s *zstd, int level, const uint8 *raw,
								uint32 len, size_t packed);

#endif							/* WP_PLAIN_H */
