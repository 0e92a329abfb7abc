/*-------------------------------------------------------------------------
 * wp_repeat.h
 *	  Encoder: an estimate of long repeats in some bytes.
 *-------------------------------------------------------------------------
 */
#ifndef WP_REPEAT_H
#define WP_REPEAT_H

#include "wp_util.h"

/*
 * The approximate part of n bytes that repeats, in long stretches, bytes at
 * least "distance" in front of it.
 */
extern double wp_repeats(WpContext *ctx, const uint8 *p, size_t n,
						 size_t distance);

#endif							/* WP_REPEAT_H */
