/*-------------------------------------------------------------------------
 * wp_columns.h
 *	  Rows of bytes to columns and back.
 *-------------------------------------------------------------------------
 */
#ifndef WP_COLUMNS_H
#define WP_COLUMNS_H

#include "wp_format.h"
#include "wp_util.h"

/*
 * Encoder: store the first ncols bytes of n rows, which are stride bytes
 * apart, as columns.  kinds has a WpColumn for each, cols its destination;
 * constant columns have none.  WP_SLACK bytes behind the last row are
 * readable.
 */
extern void wp_columns_store(const uint8 *rows, uint32 stride, uint32 n,
							 uint32 ncols, const uint8 *kinds,
							 uint8 *const *cols);

/*
 * Decoder: the inverse.  A constant column's value is at the place of its
 * bytes.
 */
extern void wp_columns_load(uint8 *rows, uint32 stride, uint32 n, uint32 ncols,
							const uint8 *kinds, const uint8 *const *cols);

#endif							/* WP_COLUMNS_H */
