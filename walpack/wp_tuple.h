/*-------------------------------------------------------------------------
 * wp_tuple.h
 *	  The tuples of a multi-insert record, as COPY writes them, taken apart into
 *	  attributes.
 *
 * WAL does not say which attributes a table has.  The encoder guesses: a
 * layout, for each attribute either varlena or a length and an alignment, that
 * takes tuples apart without remainder.  It need not be the true one; tuples
 * that it does not fit are stored whole.
 *
 *		the block's data:  tuple, tuple, ..., each at a multiple of 2; the
 *						   server leaves garbage in the padding
 *		a tuple:		   data length u16 | infomask2 u16 | infomask u16
 *						   | hoff u8 | null bitmap and padding | attributes
 */
#ifndef WP_TUPLE_H
#define WP_TUPLE_H

#include "wp_group.h"

#define WP_MAX_ATTRIBUTES	1664	/* a server's limit */
#define WP_TUPLE_HEADER		7
#define WP_TUPLE_FIXED		23	/* of hoff: what is not in the data */

/* An attribute of the layout; a varlena has length 0. */
typedef struct WpAttribute
{
	uint8		len;
	uint8		align;
	WpGroup		values;			/* or the headers of varlenas */
	WpGroup		texts;			/* one row: all bytes behind these headers */

	/*
	 * decoder: next positions in them, and their ends; and lengths of the
	 * headers, if these vary; or all of them have one byte
	 */
	const uint8 *value;
	const uint8 *value_end;
	const uint8 *text;
	const uint8 *text_end;
	const uint32 *head;
	bool		all_short;
} WpAttribute;

typedef struct WpTuples
{
	uint32		natts;			/* 0 if there is no layout */
	WpAttribute *atts;
	uint32		attempts;		/* encoder: to guess the layout */
	WpGroup		layout;			/* length and alignment of each attribute */
	WpGroup		padding;		/* the byte in front of a tuple, where there
								 * is one */
	WpGroup		fits;			/* a byte for each tuple: 1 if it was taken
								 * apart */
	WpGroup		headers;		/* infomask2, infomask, hoff of those taken
								 * apart */
	WpGroup		bitmaps;		/* bytes in front of the attributes */
	WpGroup		others;			/* the tuples that were not taken apart, from
								 * their data length on */
} WpTuples;

/*
 * Encoder: true if the data can be split into tuples.  Guesses the relation's
 * layout, if there is none yet.
 */
extern bool wp_tuples_check(WpContext *ctx, WpTuples *t, const uint8 *data,
							uint32 len);

/*
 * Encoder: add data that wp_tuples_check approved, with WP_SLACK behind it, to
 * the groups; returns the number of tuples.
 */
extern uint32 wp_tuples_put(WpContext *ctx, WpTuples *t, const uint8 *data,
							uint32 len);

/* Encoder, decoder: write the groups to the sections, and read them. */
extern void wp_tuples_write(WpContext *ctx, WpTuples *t, WpBuf *sections);
extern void wp_tuples_read(WpContext *ctx, WpTuples *t, WpReader *sections,
						   size_t *budget);

/*
 * Decoder: make the data of n tuples, at most max bytes, behind which is
 * WP_SLACK; returns its length.
 */
extern uint32 wp_tuples_take(WpContext *ctx, WpTuples *t, uint32 n, uint8 *data,
							 uint32 max);

#endif							/* WP_TUPLE_H */
