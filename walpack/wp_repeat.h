/*-------------------------------------------------------------------------
 * wp_repeat.h
 *	  Encoder: how much of some bytes repeats in long stretches?
 *-------------------------------------------------------------------------
 */
#ifndef WP_REPEAT_H
#define WP_REPEAT_H

#include "wp_util.h"

/*
 * The part of n bytes, about, that repeats in long stretches what stands at
 * least so far in front of it.
 */
extern double wp_repeats(WpContext *ctx, const uint8 *p, size_t n, size_t distance);

#endif							/* WP_REPEAT_H */
