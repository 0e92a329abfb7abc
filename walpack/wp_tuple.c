/*-------------------------------------------------------------------------
 * wp_tuple.c
 *	  The tuples of a multi-insert record, taken apart into attributes.
 *-------------------------------------------------------------------------
 */
#include "wp_port.h"

#include "wp_tuple.h"

#define HAS_NULLS			0x0001	/* infomask */
#define NATTS_MASK			0x07FF	/* infomask2 */
#define ATTEMPTS			4
#define SAMPLE				64	/* tuples from which a layout is guessed */
#define FEW					8
#define MAX_RUN				12
#define MAX_ALIGN			8
#define PREFETCH			256 /* bytes of texts */
#define MAX_STEPS(natts)	(500 + 8 * (natts)) /* attributes tried before a
												 * guess is abandoned: the
												 * right one mostly takes 2
												 * each */

/* A tuple in a block's data. */
typedef struct Tuple
{
	const uint8 *start;			/* its header */
	const uint8 *data;			/* bitmap and attributes */
	uint32		len;			/* of data */
	uint32		skip;			/* bytes of data in front of the attributes */
	uint32		natts;
	bool		has_nulls;
} Tuple;

/*
 * Get the tuple at offset *pos, which becomes that of the next one.  Returns
 * false if there is no complete tuple.
 */
static bool
next_tuple(const uint8 *data, uint32 len, uint32 *pos, Tuple *t)
{
	*pos += *pos & 1;
	if (*pos > len || len - *pos < WP_TUPLE_HEADER)
		return false;
	t->start = data + *pos;
	t->len = wp_get16(t->start);
	t->natts = wp_get16(t->start + 2) & NATTS_MASK;
	t->has_nulls = (wp_get16(t->start + 4) & HAS_NULLS) != 0;
	t->skip = t->start[6] - WP_TUPLE_FIXED;
	t->data = t->start + WP_TUPLE_HEADER;
	*pos += WP_TUPLE_HEADER;
	if (t->start[6] < WP_TUPLE_FIXED || t->len > len - *pos ||
		t->skip > t->len || (t->has_nulls && t->skip < (t->natts + 7) / 8))
		return false;
	*pos += t->len;
	return true;
}

static inline bool
is_null(const uint8 *bitmap, bool has_nulls, uint32 i)
{
	return has_nulls && (bitmap[i / 8] >> (i % 8) & 1) == 0;
}

/*
 * Skip zeros up to the alignment.  Returns false if there are other bytes, or
 * the end is in between.
 */
static inline bool
skip_padding(const Tuple *t, uint32 *pos, uint32 align)
{
	for (; ((*pos - t->skip) & (align - 1)) != 0; (*pos)++)
		if (*pos >= t->len || t->data[*pos] != 0)
			return false;
	return true;
}

/*
 * Get the value at *pos.  *start is behind the padding; *pos moves behind the
 * value.  Returns false if it does not fit.
 */
static inline bool
next_value(const Tuple *t, uint32 len, uint32 align, uint32 *pos, uint32 *start)
{
	*start = *pos;
	if (len == 0 && *pos < t->len && (t->data[*pos] & 1) != 0)
	{
		len = t->data[*pos] >> 1;
		/* 0 stands for a pointer to an external value */
		if (len == 0)
			return false;
	}
	else if (!skip_padding(t, pos, len == 0 ? 4 : align))
		return false;
	else
	{
		*start = *pos;
		if (len == 0)
		{
			if (t->len - *pos < 4 || (t->data[*pos] & 1) != 0)
				return false;
			len = wp_get32(t->data + *pos) >> 2;
			if (len < 4)
				return false;
		}
	}
	if (t->len - *pos < len)
		return false;
	*pos += len;
	return true;
}

/* ---- the layout ---- */

/* The candidates for an attribute, in the order of the attempts. */
static const struct
{
	uint8		len;
	uint8		align;
}			candidates[] = {
	{0, 4}, {4, 4}, {8, 8}, {1, 1}, {2, 2}, {16, 1},
	{16, 8}, {64, 1}, {8, 4}, {6, 2}, {12, 4}, {32, 8}
};

typedef struct Guess
{
	Tuple		tuples[SAMPLE];
	uint32		n;
	uint32		natts;
	uint32		steps;
	uint32	   *pos;			/* of each tuple at each attribute */
	uint8	   *choice;			/* for each attribute */
	uint32	   *run;			/* attributes of fixed length just in front of
								 * each */
} Guess;

/* True if this candidate fits attribute i of all tuples. */
static bool
candidate_fits(Guess *g, uint32 i, uint32 c)
{
	const uint32 *pos = g->pos + (size_t) i * SAMPLE;
	uint32	   *next = g->pos + (size_t) (i + 1) * SAMPLE;

	for (uint32 k = 0; k < g->n; k++)
	{
		const Tuple *t = &g->tuples[k];
		uint32		start;

		next[k] = pos[k];
		if (!is_null(t->data, t->has_nulls, i) &&
			!next_value(t, candidates[c].len, candidates[c].align, &next[k],
						&start))
			return false;
		if (i + 1 == g->natts && next[k] != t->len)
			return false;
	}
	return true;
}

/*
 * Search depth first for a layout with at most max_run adjacent attributes of
 * fixed length.  A varlena that fits all tuples is hardly ever wrong, but a
 * fixed length fits any bytes, so few in a row are tried before many.
 */
static bool
find_layout(Guess *g, uint32 max_run)
{
	uint32		i = 0;

	g->steps = 0;
	g->choice[0] = 0;
	g->run[0] = 0;
	while (i < g->natts)
	{
		if (g->choice[i] == lengthof(candidates) ||
			(g->choice[i] > 0 && g->run[i] == max_run))
		{
			if (i == 0)
				return false;
			g->choice[--i]++;
		}
		else if (g->steps++ > MAX_STEPS(g->natts))
			return false;
		else if (!candidate_fits(g, i, g->choice[i]))
			g->choice[i]++;
		else if (++i < g->natts)
		{
			g->run[i] = g->choice[i - 1] > 0 ? g->run[i - 1] + 1 : 0;
			g->choice[i] = 0;
		}
	}
	return true;
}

static void
guess_layout(WpContext *ctx, WpTuples *t, const uint8 *data, uint32 len)
{
	size_t		mark = ctx->arena_used;
	Guess	   *g = wp_zalloc(ctx, sizeof(Guess));
	uint32		pos = 0;
	uint8	   *choice;

	while (pos < len && g->n < SAMPLE &&
		   next_tuple(data, len, &pos, &g->tuples[g->n]))
	{
		if (g->n == 0)
			g->natts = g->tuples[0].natts;
		if (g->tuples[g->n].natts == g->natts)
			g->n++;
	}
	if (g->n < FEW || g->natts == 0 || g->natts > WP_MAX_ATTRIBUTES)
	{
		ctx->arena_used = mark;
		return;
	}
	t->attempts++;
	choice = g->choice = wp_alloc(ctx, g->natts);
	g->run = wp_alloc(ctx, g->natts * sizeof(uint32));
	g->pos = wp_alloc(ctx, (size_t) (g->natts + 1) * SAMPLE * sizeof(uint32));
	for (uint32 k = 0; k < g->n; k++)
		g->pos[k] = g->tuples[k].skip;
	for (uint32 run = 1; run <= Min(g->natts, MAX_RUN) && t->natts == 0; run++)
		if (find_layout(g, run))
			t->natts = g->natts;
	if (t->natts == 0)
	{
		ctx->arena_used = mark;
		return;
	}
	/* the guess's memory is not freed, because guesses are few */
	t->atts = wp_zalloc(ctx, t->natts * sizeof(WpAttribute));
	for (uint32 i = 0; i < t->natts; i++)
	{
		uint8	   *row = wp_group_add(ctx, &t->layout, 2);

		t->atts[i].len = row[0] = candidates[choice[i]].len;
		t->atts[i].align = row[1] = candidates[choice[i]].align;
	}
}

bool
wp_tuples_check(WpContext *ctx, WpTuples *t, const uint8 *data, uint32 len)
{
	uint32		pos = 0;
	Tuple		tuple;

	if (t->natts == 0 && t->attempts < ATTEMPTS)
		guess_layout(ctx, t, data, len);
	if (t->natts == 0)
		return false;
	while (pos < len)
		if (!next_tuple(data, len, &pos, &tuple))
			return false;
	return true;
}

/* ---- encoder ---- */

/* A value in a tuple's data. */
typedef struct Span
{
	uint32		start;
	uint32		end;
} Span;

/*
 * Find the values of a tuple, except nulls.  Returns false if the layout does
 * not fit.
 */
static bool
split_tuple(const WpTuples *t, const Tuple *tuple, Span *spans)
{
	uint32		pos = tuple->skip;

	if (tuple->natts != t->natts)
		return false;
	for (uint32 i = 0; i < t->natts; i++)
	{
		if (is_null(tuple->data, tuple->has_nulls, i))
			continue;
		if (!next_value(tuple, t->atts[i].len, t->atts[i].align, &pos,
						&spans->start))
			return false;
		spans++->end = pos;
	}
	return pos == tuple->len;
}

static void
put_attributes(WpContext *ctx, WpTuples *t, const Tuple *tuple,
			   const Span *span)
{
	for (uint32 i = 0; i < t->natts; i++)
	{
		WpAttribute *a = &t->atts[i];
		const uint8 *src;
		uint32		head;
		uint32		text;

		if (is_null(tuple->data, tuple->has_nulls, i))
			continue;
		src = tuple->data + span->start;
		head = a->len > 0 ? a->len : (*src & 1) != 0 ? 1 : 4;
		text = span->end - span->start - head;
		span++;
		if (head == 1)
			*wp_group_add(ctx, &a->values, 1) = *src;
		else
			wp_copy_short(wp_group_add(ctx, &a->values, head), src, head);
		if (text > 0)
			wp_copy_short(wp_group_extend(ctx, &a->texts, text), src + head,
						  text);
	}
}

uint32
wp_tuples_put(WpContext *ctx, WpTuples *t, const uint8 *data, uint32 len)
{
	uint32		pos = 0;
	uint32		n = 0;
	const uint8 *end = data;
	Tuple		tuple;
	Span		spans[WP_MAX_ATTRIBUTES];

	while (pos < len && next_tuple(data, len, &pos, &tuple))
	{
		bool		fits = split_tuple(t, &tuple, spans);

		n++;
		if (tuple.start > end)
			*wp_group_add(ctx, &t->padding, 1) = *end;
		end = tuple.data + tuple.len;
		*wp_group_add(ctx, &t->fits, 1) = fits;
		if (!fits)
		{
			memcpy(wp_group_add(ctx, &t->others, WP_TUPLE_HEADER + tuple.len),
				   tuple.start, WP_TUPLE_HEADER + tuple.len);
			continue;
		}
		memcpy(wp_group_add(ctx, &t->headers, WP_TUPLE_HEADER - 2),
			   tuple.start + 2, WP_TUPLE_HEADER - 2);
		wp_copy_short(wp_group_add(ctx, &t->bitmaps, tuple.skip), tuple.data,
					  tuple.skip);
		put_attributes(ctx, t, &tuple, spans);
	}
	return n;
}

void
wp_tuples_write(WpContext *ctx, WpTuples *t, WpBuf *sections)
{
	wp_group_write(ctx, &t->layout, sections);
	if (t->natts == 0)
		return;
	wp_group_write(ctx, &t->padding, sections);
	wp_group_write(ctx, &t->fits, sections);
	wp_group_write(ctx, &t->headers, sections);
	wp_group_write(ctx, &t->bitmaps, sections);
	wp_group_write(ctx, &t->others, sections);
	for (uint32 i = 0; i < t->natts; i++)
	{
		wp_group_write(ctx, &t->atts[i].values, sections);
		if (t->atts[i].len == 0)
			wp_group_write(ctx, &t->atts[i].texts, sections);
	}
}

/* ---- decoder ---- */

/* Check in advance what otherwise each value would check. */
static void
start_values(WpContext *ctx, WpAttribute *a)
{
	const WpGroup *values = &a->values;

	if (a->len > 0 && values->n > 0 &&
		(values->minlen != a->len || values->maxlen != a->len))
		wp_fail(ctx, "an attribute has %u bytes instead of %u", values->minlen,
				a->len);
	if (a->texts.n > 1)
		wp_fail(ctx, "texts in several rows");
	a->value = values->data;
	a->value_end = values->data + values->used;
	a->head = values->lens;
	a->all_short = a->len == 0 && values->minlen == 1 && values->maxlen == 1;
	/* a readable place, where all are empty */
	a->text = a->texts.n > 0 ? a->texts.data : values->data;
	a->text_end = a->text + a->texts.used;
}

void
wp_tuples_read(WpContext *ctx, WpTuples *t, WpReader *sections, size_t *budget)
{
	wp_group_read(ctx, &t->layout, sections, budget);
	t->natts = t->layout.n;
	if (t->natts == 0)
		return;
	if (t->natts > WP_MAX_ATTRIBUTES)
		wp_fail(ctx, "too many attributes");
	t->atts = wp_zalloc(ctx, t->natts * sizeof(WpAttribute));
	wp_group_read(ctx, &t->padding, sections, budget);
	wp_group_read(ctx, &t->fits, sections, budget);
	wp_group_read(ctx, &t->headers, sections, budget);
	wp_group_read(ctx, &t->bitmaps, sections, budget);
	wp_group_read(ctx, &t->others, sections, budget);
	for (uint32 i = 0; i < t->natts; i++)
	{
		WpAttribute *a = &t->atts[i];
		const uint8 *row = wp_group_take(ctx, &t->layout, 2);

		a->len = row[0];
		a->align = row[1];
		if (a->align == 0 || a->align > MAX_ALIGN ||
			(a->align & (a->align - 1)) != 0)
			wp_fail(ctx, "an attribute's alignment is not 1, 2, 4 or 8");
		wp_group_read(ctx, &a->values, sections, budget);
		if (a->len == 0)
			wp_group_read(ctx, &a->texts, sections, budget);
		start_values(ctx, a);
	}
}

/* The place where a tuple is written; behind the end is WP_SLACK. */
typedef struct Output
{
	uint8	   *p;
	uint8	   *end;
} Output;

static inline uint8 *
output_room(WpContext *ctx, Output *out, uint32 n)
{
	uint8	   *p = out->p;

	if ((size_t) (out->end - p) < n)
		wp_fail(ctx, "block data is too long");
	out->p += n;
	return p;
}

/*
 * Write padding.  Alignment takes less than MAX_ALIGN bytes; that many can be
 * written in any case.
 */
static inline void
zero_padding(uint8 *p)
{
	memset(p, 0, MAX_ALIGN);
}

/*
 * Write the next value of an attribute of fixed length; the attributes begin
 * at start.
 */
static inline void
take_fixed(WpContext *ctx, WpAttribute *a, const uint8 *start, Output *out)
{
	uint32		pad = -(uint32) (out->p - start) & (a->align - 1);
	uint8	   *p = output_room(ctx, out, pad + a->len);

	if (a->value == a->value_end)
		wp_fail(ctx, "more values used than stored");
	zero_padding(p);
	wp_copy_short(p + pad, a->value, a->len);
	a->value += a->len;
}

/*
 * Write a varlena, where all have headers of one byte.  The processor can't
 * predict whether it is empty, and how long it is, so no branch depends on
 * that.
 */
static inline void
take_short(WpContext *ctx, WpAttribute *a, Output *out)
{
	uint32		len;
	uint8	   *p;

	if (a->value == a->value_end)
		wp_fail(ctx, "more values used than stored");
	len = *a->value >> 1;
	if (len == 0 || len > a->text_end - a->text + 1)
		wp_fail(ctx, "an attribute has a wrong length");
	p = output_room(ctx, out, len);
	*p = *a->value++;
	__builtin_prefetch(a->text + PREFETCH);
	wp_copy_short(p + 1, a->text, len - 1);
	a->text += len - 1;
}

static inline void
take_varlena(WpContext *ctx, WpAttribute *a, const uint8 *start, Output *out)
{
	uint32		head;
	uint32		pad = 0;
	uint32		len;
	uint8	   *p;

	if (a->value == a->value_end)
		wp_fail(ctx, "more values used than stored");
	head = a->head ? *a->head++ : a->values.minlen;
	if (head == 1)
		len = *a->value >> 1;
	else if (head == 4)
	{
		pad = -(uint32) (out->p - start) & 3;
		len = wp_get32(a->value) >> 2;
	}
	else
		len = 0;
	if (len < head || len - head > a->text_end - a->text || len > PG_UINT16_MAX)
		wp_fail(ctx, "an attribute has a wrong length");
	p = output_room(ctx, out, pad + len);
	zero_padding(p);
	memcpy(p + pad, a->value, 4);
	a->value += head;
	if (len == head)
		return;
	/* there are too many texts for the processor to prefetch each by itself */
	__builtin_prefetch(a->text + PREFETCH);
	wp_copy_short(p + pad + head, a->text, len - head);
	a->text += len - head;
}

static void
take_tuple(WpContext *ctx, WpTuples *t, Output *out)
{
	uint8	   *start = output_room(ctx, out, WP_TUPLE_HEADER);
	uint8	   *data = out->p;
	const uint8 *bitmap;
	uint32		skip;
	bool		has_nulls;

	memcpy(start + 2, wp_group_take(ctx, &t->headers, WP_TUPLE_HEADER - 2),
		   WP_TUPLE_HEADER - 2);
	has_nulls = (wp_get16(start + 4) & HAS_NULLS) != 0;
	bitmap = wp_group_next(ctx, &t->bitmaps, &skip);
	if (has_nulls && skip < (t->natts + 7) / 8)
		wp_fail(ctx, "a null bitmap is too short");
	wp_copy_short(output_room(ctx, out, skip), bitmap, skip);
	for (uint32 i = 0; i < t->natts; i++)
	{
		if (is_null(bitmap, has_nulls, i))
			continue;
		if (t->atts[i].len > 0)
			take_fixed(ctx, &t->atts[i], data + skip, out);
		else if (t->atts[i].all_short)
			take_short(ctx, &t->atts[i], out);
		else
			take_varlena(ctx, &t->atts[i], data + skip, out);
	}
	wp_set16(start, out->p - data);
}

uint32
wp_tuples_take(WpContext *ctx, WpTuples *t, uint32 n, uint8 *data, uint32 max)
{
	Output		out = {data, data + max};

	while (n-- > 0)
	{
		uint32		len;
		const uint8 *whole;

		if (((out.p - data) & 1) != 0)
			*output_room(ctx, &out, 1) = *wp_group_take(ctx, &t->padding, 1);
		if (*wp_group_take(ctx, &t->fits, 1) != 0)
			take_tuple(ctx, t, &out);
		else
		{
			whole = wp_group_next(ctx, &t->others, &len);
			memcpy(output_room(ctx, &out, len), whole, len);
		}
	}
	return out.p - data;
}
