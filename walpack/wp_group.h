/*-------------------------------------------------------------------------
 * wp_group.h
 *	  Groups of similar byte rows, stored column by column.
 *
 * The encoder appends rows to a group in the order of the WAL; at the end the
 * group is written to the body's sections: the first bytes that all rows have
 * become columns, each constant, as it is, or as differences to the row
 * before; the rest of longer rows follows row by row.  The decoder restores
 * the whole group and then hands out its rows in order.
 *-------------------------------------------------------------------------
 */
#ifndef WP_GROUP_H
#define WP_GROUP_H

#include "wp_format.h"
#include "wp_util.h"

typedef struct WpGroup
{
	uint8	   *data;			/* the rows, one after the other */
	uint32		used;
	uint32		cap;
	uint32		n;				/* rows */
	uint32		next;			/* decoder: row to hand out */
	uint32		minlen;
	uint32		maxlen;
	uint32	   *lens;			/* while NULL all rows have minlen bytes */
	uint32		lencap;
	uint32		flags;			/* WP_GROUP_... */
	const uint8 *cursor;		/* decoder: start of row next */
} WpGroup;

extern uint8 *wp_group_add_slowly(WpContext *ctx, WpGroup *g, uint32 len);
extern void wp_group_reserve(WpContext *ctx, WpGroup *g, uint32 len);

/* Room for a new row of len bytes; WP_SLACK bytes can be written. */
static inline uint8 *
wp_group_add(WpContext *ctx, WpGroup *g, uint32 len)
{
	if (g->lens != NULL || len != g->minlen || g->n == 0 ||
		g->cap - g->used < len + WP_SLACK)
		return wp_group_add_slowly(ctx, g, len);
	Assert(g->used == g->n * g->minlen);
	g->used += len;
	g->n++;
	return g->data + g->used - len;
}

/* Room for len bytes more of the only row; WP_SLACK bytes can be written. */
static inline uint8 *
wp_group_extend(WpContext *ctx, WpGroup *g, uint32 len)
{
	Assert(g->n <= 1 && g->lens == NULL);
	if (g->cap - g->used < len + WP_SLACK)
		wp_group_reserve(ctx, g, len);
	g->used += len;
	g->n = 1;
	g->minlen = g->maxlen = g->used;
	return g->data + g->used - len;
}

/*
 * Encoder: bits of information of a byte, regardless of its neighbours, from
 * the frequencies of values.
 */
extern double wp_information(const uint32 *count, uint32 total);

/*
 * Encoder: true if zstd cannot shrink these bytes, as far as their frequencies
 * tell.
 */
extern bool wp_is_random(const uint8 *p, size_t n);

/* Encoder: to be called once for each context. */
extern void wp_group_init(WpContext *ctx);

/* Encoder: the approximate size of the group, for comparison. */
extern int64 wp_group_cost(const WpContext *ctx, const WpGroup *g);

/* Encoder: append the group to the sections. */
extern void wp_group_write(WpContext *ctx, WpGroup *g, WpBuf *sections);

/*
 * Decoder: read the group that wp_group_write wrote.  Its rows are deducted
 * from *budget bytes.
 */
extern void wp_group_read(WpContext *ctx, WpGroup *g, WpReader *sections,
						  size_t *budget);

/* Decoder: get the next row and its length. */
static inline const uint8 *
wp_group_next(WpContext *ctx, WpGroup *g, uint32 *len)
{
	const uint8 *row = g->cursor;

	if (g->next >= g->n)
		wp_fail(ctx, "more rows used than stored");
	*len = g->lens ? g->lens[g->next] : g->minlen;
	g->next++;
	g->cursor += *len;
	Assert(g->cursor <= g->data + g->used);
	return row;
}

/* Decoder: get the next row, whose length is known. */
static inline const uint8 *
wp_group_take(WpContext *ctx, WpGroup *g, uint32 len)
{
	uint32		got;
	const uint8 *row = wp_group_next(ctx, g, &got);

	if (got != len)
		wp_fail(ctx, "a row has %u bytes instead of %u", got, len);
	return row;
}

/*
 * Rows of similar length share a group: one for each multiple of 8 up to 128,
 * then two for each power of two.
 */
static inline uint8
wp_bucket(uint32 len)
{
	int			log = 0;

	if (len <= 128)
		return (len + 7) / 8;
	while ((len >> log) > 3)
		log++;
	return 17 + 2 * (log - 6) + ((len >> log) & 1);
}

#endif							/* WP_GROUP_H */
