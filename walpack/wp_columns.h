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
 * Encoder: the first ncols bytes of n rows, each stride bytes behind the one
 * before, to columns.  kinds has a WpColumn for each, cols where it goes;
 * constant ones go nowhere.  Behind the last row WP_SLACK bytes can be read.
 */
extern void wp_columns_store(const uint8 *rows, uint32 stride, uint32 n, uint32 ncols, const uint8 *kinds,
							 uint8 *const *cols);

/*
 * Decoder: the reverse.  A constant column's value is where its bytes would
 * be.
 */
extern void wp_columns_load(uint8 *rows, uint32 stride, uint32 n, uint32 ncols, const uint8 *kinds,
							const uint8 *const *cols);

#endif							/* WP_COLUMNS_H */
