/*-------------------------------------------------------------------------
 * wp_group.c
 *	  Groups of similar byte rows, stored column by column.
 *-------------------------------------------------------------------------
 */
#include "wp_port.h"

#include <math.h>
#include <zstd.h>

#include "wp_columns.h"
#include "wp_group.h"

#define SAMPLE			512		/* rows that decide how a column is stored */
#define SMALL			48		/* with fewer rows a count of repeats decides */
#define FEW				8		/* with fewer rows there are no columns */
#define MANY			4096	/* minimum number of bytes for a test of
								 * randomness */
#define RANDOM_BITS		7.95	/* bits of a byte above which bytes are stored
								 * unchanged */
#define RANDOM_RUN		12		/* fewer adjacent random columns are not
								 * stored: they may be numbers that other
								 * groups repeat */
#define TRY_COLUMNS		16		/* with more columns, and at least TRY_BYTES,
								 * fewer columns are tried */
#define TRY_BYTES		65536
#define TRY_MAX			49152	/* for that a sample is compressed, of at most
								 * TRY_MAX bytes and one in TRY_PART */
#define TRY_PART		16
#define BIT				65536	/* costs are in 1/65536 bit */
#define TABLE_BITS		4		/* bits of a value in a coder's table */

/* Returns the number of bytes that the length of a row is stored in. */
static uint32
length_width(const WpGroup *g)
{
	uint32		range = g->maxlen - g->minlen;

	return range < 256 ? 1 : range < 65536 ? 2 : 4;
}

static void
group_remember_len(WpContext *ctx, WpGroup *g, uint32 len)
{
	if (g->lens == NULL || g->n == g->lencap)
	{
		uint32		cap = Max(64, g->n * 2);
		uint32	   *lens = wp_realloc(ctx, g->lens, g->lencap * sizeof(uint32),
									  cap * sizeof(uint32));

		if (g->lens == NULL)
			for (uint32 i = 0; i < g->n; i++)
				lens[i] = g->minlen;
		g->lens = lens;
		g->lencap = cap;
	}
	g->lens[g->n] = len;
	g->minlen = Min(g->minlen, len);
	g->maxlen = Max(g->maxlen, len);
}

/* Make room for len more bytes, and the slack. */
void
wp_group_reserve(WpContext *ctx, WpGroup *g, uint32 len)
{
	uint32		cap = Max(g->cap, 64);

	if (g->cap - g->used >= len + WP_SLACK)
		return;
	while (cap - g->used < len + WP_SLACK)
		cap *= 2;
	g->data = wp_realloc(ctx, g->data, g->cap, cap);
	g->cap = cap;
}

uint8 *
wp_group_add_slowly(WpContext *ctx, WpGroup *g, uint32 len)
{
	uint8	   *row;

	wp_group_reserve(ctx, g, len);
	if (g->n == 0)
		g->minlen = g->maxlen = len;
	else if (g->lens != NULL || len != g->minlen)
		group_remember_len(ctx, g, len);
	Assert(g->minlen <= len && len <= g->maxlen);
	Assert(g->cap - g->used >= len + WP_SLACK);
	row = g->data + g->used;
	g->used += len;
	g->n++;
	return row;
}

/* ---- encoder ---- */

void
wp_group_init(WpContext *ctx)
{
	double		log = 0;

	ctx->repeat_bits[0] = -TABLE_BITS * BIT;
	for (int i = 1; i < WP_MAX_SAMPLE; i++)
	{
		double		next = (i + 1) * log2(i + 1);

		ctx->repeat_bits[i] = lrint((next - log) * BIT);
		log = next;
	}
}

/*
 * Estimate the costs of a sample of column j, unchanged and as differences.  A
 * cost is the number of bits that an order-0 entropy coder needs, plus about
 * the size of its table.  A coder needs n log n bits for n bytes, minus
 * m log m for each value that occurs m times.
 */
static void
column_costs(const WpContext *ctx, const uint8 *rows, uint32 stride, uint32 n,
			 uint32 j, int32 *raw_cost, int32 *delta_cost)
{
	uint16		raw[256] = {0};
	uint16		delta[256] = {0};

	/* the sample has at most 9 runs of 64 rows, from all over the group */
	uint32		step = n > SAMPLE ? n / (SAMPLE / 64) : 64;
	uint32		total = 0;
	int32		all = 0;

	*raw_cost = *delta_cost = 0;
	for (uint32 start = 1; start < n; start += step)
	{
		uint32		end = Min(n, start + 64);
		const uint8 *p = rows + (size_t) start * stride + j;
		uint8		prev = *(p - stride);

		for (uint32 i = start; i < end; i++, p += stride)
		{
			uint8		v = *p;

			*raw_cost -= ctx->repeat_bits[raw[v]++];
			*delta_cost -= ctx->repeat_bits[delta[(uint8) (v - prev)]++];
			prev = v;
		}
		total += end - start;
	}
	Assert(total <= WP_MAX_SAMPLE);
	if (total > 0)
		all = lrint(total * (log2(total) + 0.02) * BIT);
	*raw_cost += all;
	*delta_cost += all;
}

double
wp_information(const uint32 *count, uint32 total)
{
	double		bits = 0;

	for (int i = 0; i < 256; i++)
		if (count[i] > 0)
			bits += count[i] * (log2(total) - log2(count[i]));
	return bits / total;
}

/* Returns whether zstd cannot shrink column j. */
static bool
random_column(const uint8 *rows, uint32 stride, uint32 n, uint32 j)
{
	uint32		count[256] = {0};

	for (uint32 i = 0; i < n; i++)
		count[rows[(size_t) i * stride + j]]++;
	return wp_information(count, n) > RANDOM_BITS;
}

bool
wp_is_random(const uint8 *p, size_t n)
{
	uint32		count[256] = {0};
	size_t		step = 1 + n / TRY_BYTES;
	uint32		total = 0;

	if (n < MANY)
		return false;
	for (size_t i = 0; i < n; i += step, total++)
		count[p[i]]++;
	return wp_information(count, total) > RANDOM_BITS;
}

/*
 * Choose the smaller of raw and delta for column j.  Sets *random if zstd
 * cannot shrink either.
 */
static WpColumn
choose_column(const WpContext *ctx, const uint8 *rows, uint32 stride, uint32 n,
			  uint32 j, bool *random)
{
	int32		raw;
	int32		delta;
	uint32		same = 0;

	if (n >= SMALL)
	{
		column_costs(ctx, rows, stride, n, j, &raw, &delta);
		/* the cost of a small sample of random bytes exceeds its size */
		*random = n >= MANY &&
			Min(raw, delta) >= 8 * BIT * (int32) Min(n, SAMPLE) &&
			random_column(rows, stride, n, j);
		return delta < raw ? WP_COL_DELTA : WP_COL_RAW;
	}
	for (uint32 i = 1; i < n; i++)
		same += rows[(size_t) i * stride + j] ==
			rows[(size_t) (i - 1) * stride + j];
	return same * 4 > n ? WP_COL_DELTA : WP_COL_RAW;
}

int64
wp_group_cost(const WpContext *ctx, const WpGroup *g)
{
	int64		cost = 0;

	for (uint32 j = 0; j < g->minlen; j++)
	{
		int32		raw;
		int32		delta;

		column_costs(ctx, g->data, g->minlen, g->n, j, &raw, &delta);
		cost += Min(raw, delta);
	}
	return cost;
}

/* Find the columns that are not constant. */
static void
find_changing(const uint8 *rows, uint32 stride, uint32 n, uint32 ncols,
			  uint8 *changing)
{
	/* eight columns at a time; WP_SLACK bytes follow the last row */
	for (uint32 j = 0; j < ncols; j += 8)
	{
		const uint8 *row = rows + j;
		uint64		first = wp_get64(row);
		uint64		differ = 0;
		uint8		bytes[8];

		for (uint32 i = 1; i < n; i++)
		{
			row += stride;
			differ |= wp_get64(row) ^ first;
		}
		wp_set64(bytes, differ);
		memcpy(changing + j, bytes, Min(ncols - j, 8));
	}
}

/* Choose the kind of each column. */
static void
choose_kinds(const WpContext *ctx, const uint8 *rows, uint32 stride, uint32 n,
			 uint32 ncols, uint8 *kinds)
{
	uint32		run = 0;

	find_changing(rows, stride, n, ncols, kinds);
	for (uint32 j = 0; j <= ncols; j++)
	{
		bool		random = false;

		if (j < ncols)
			kinds[j] = kinds[j] == 0 ?
				WP_COL_CONST : choose_column(ctx, rows, stride, n, j, &random);
		if (!random && run >= RANDOM_RUN)
			memset(kinds + j - run, WP_COL_STORED, run);
		run = random ? run + 1 : 0;
	}
}

static void
write_columns(WpContext *ctx, const uint8 *rows, uint32 stride, uint32 n,
			  uint32 ncols, WpBuf *sections)
{
	uint8	   *kinds = wp_buf_add(ctx, &sections[WP_SEC_KINDS], ncols);
	uint8	  **cols = wp_alloc(ctx, ncols * sizeof(uint8 *));
	size_t		columns = sections[WP_SEC_COLUMNS].used;
	size_t		stored = sections[WP_SEC_STORED].used;

	choose_kinds(ctx, rows, stride, n, ncols, kinds);
	for (uint32 j = 0; j < ncols; j++)
	{
		WpBuf	   *sec = &sections[WP_SEC_COLUMNS];

		if (kinds[j] == WP_COL_CONST)
		{
			wp_put_u8(ctx, &sections[WP_SEC_CONSTANTS], rows[j]);
			continue;
		}
		if (kinds[j] == WP_COL_STORED)
			sec = &sections[WP_SEC_STORED];
		else
			wp_set32(wp_buf_add(ctx, &sections[WP_CUTS], 4), sec->used);
		wp_buf_add(ctx, sec, n);
	}
	/* the sections have all of their memory now, so addresses stay */
	for (uint32 j = 0; j < ncols; j++)
	{
		bool		is_stored = kinds[j] == WP_COL_STORED;
		size_t	   *at = is_stored ? &stored : &columns;

		cols[j] = NULL;
		if (kinds[j] == WP_COL_CONST)
			continue;
		cols[j] = sections[is_stored ? WP_SEC_STORED : WP_SEC_COLUMNS].data +
			*at;
		*at += n;
	}
	Assert(columns == sections[WP_SEC_COLUMNS].used &&
		   stored == sections[WP_SEC_STORED].used);
	wp_columns_store(rows, stride, n, ncols, kinds, cols);
}

/* Write the lengths of rows, if they vary. */
static void
write_lengths(WpContext *ctx, const WpGroup *g, WpBuf *sections)
{
	uint32		width = length_width(g);
	uint8	   *lens = wp_buf_add(ctx, &sections[WP_SEC_LENGTHS],
								  (size_t) width * g->n);

	for (uint32 i = 0; i < g->n; i++)
	{
		Assert(g->minlen <= g->lens[i] && g->lens[i] <= g->maxlen);
		for (uint32 b = 0; b < width; b++)
			lens[(size_t) b * g->n + i] = (g->lens[i] - g->minlen) >> (8 * b);
	}
}

/*
 * Write the tails of rows, which follow their first ncols bytes.  Returns the
 * rows without them.
 */
static uint8 *
write_tails(WpContext *ctx, const WpGroup *g, uint32 ncols, WpBuf *sec)
{
	uint8	   *heads = wp_alloc(ctx, (size_t) ncols * g->n + WP_SLACK);
	uint8	   *tail = wp_buf_add(ctx, sec, g->used - (size_t) ncols * g->n);
	const uint8 *row = g->data;

	for (uint32 i = 0; i < g->n; i++)
	{
		uint32		len = g->lens ? g->lens[i] : g->minlen;

		memcpy(heads + (size_t) i * ncols, row, ncols);
		memcpy(tail, row + ncols, len - ncols);
		tail += len - ncols;
		row += len;
	}
	Assert(row == g->data + g->used && tail == sec->data + sec->used);
	return heads;
}

/*
 * Returns whether zstd cannot shrink the tails.  The sample has some of many
 * rows, and some bytes of long rows.
 */
static bool
random_tails(const WpGroup *g, uint32 ncols)
{
	size_t		size = g->used - (size_t) ncols * g->n;
	uint32		step = 1 + size / TRY_BYTES;
	uint32		next = 0;
	uint32		count[256] = {0};
	uint32		total = 0;
	const uint8 *row = g->data;

	if (size < MANY)
		return false;
	for (uint32 i = 0; i < g->n; i++)
	{
		uint32		len = g->lens ? g->lens[i] : g->minlen;

		if (i == next)
		{
			uint32		byte_step = 1 + len / TRY_BYTES;

			for (uint32 j = ncols; j < len; j += byte_step, total++)
				count[row[j]]++;
			next += step;
		}
		row += len;
	}
	return total >= MANY && wp_information(count, total) > RANDOM_BITS;
}

/*
 * Compute the compressed size of rows first to last - 1, with ncols of their
 * bytes as columns.
 */
static size_t
trial_size(WpContext *ctx, const WpGroup *g, const uint8 *row, uint32 first,
		   uint32 last, uint32 ncols, uint8 *in, uint8 *out, size_t size)
{
	uint32		n = last - first;
	uint8	   *tail = in + (size_t) n * ncols;
	size_t		got;

	for (uint32 i = 0; i < n; i++)
	{
		uint32		len = g->lens ? g->lens[first + i] : g->minlen;

		for (uint32 j = 0; j < ncols; j++)
			in[(size_t) j * n + i] = row[j];
		memcpy(tail, row + ncols, len - ncols);
		tail += len - ncols;
		row += len;
	}
	Assert(tail == in + size);
	got = ZSTD_compressCCtx(ctx->trial, out, ZSTD_compressBound(size), in,
							tail - in, 1);
	if (ZSTD_isError(got))
		wp_fail(ctx, "zstd: %s", ZSTD_getErrorName(got));
	return got;
}

/*
 * Choose how many of the rows' bytes become columns.  Fewer are better if rows
 * are texts, or repeat parts of each other at other offsets.  Several numbers
 * are tried by compressing a run of rows from the middle.
 */
static uint32
choose_ncols(WpContext *ctx, const WpGroup *g)
{
	static const uint32 numbers[] = {64, 24, 8, 0};
	uint32		ncols = g->minlen;
	uint32		best = ncols;
	uint32		first = 0;
	uint32		last;
	size_t		size = 0;
	size_t		best_size;
	const uint8 *row = g->data;
	uint8	   *in;
	uint8	   *out;

	if (g->n < FEW)
		return 0;
	if (ncols <= TRY_COLUMNS || g->used < TRY_BYTES)
		return ncols;
	for (; (size_t) (row - g->data) < g->used / 2; first++)
		row += g->lens ? g->lens[first] : g->minlen;
	for (last = first; last < g->n && size < Min(TRY_MAX, g->used / TRY_PART);
		 last++)
		size += g->lens ? g->lens[last] : g->minlen;
	in = wp_alloc(ctx, size);
	out = wp_alloc(ctx, ZSTD_compressBound(size));
	best_size = trial_size(ctx, g, row, first, last, ncols, in, out, size);
	for (int i = 0; i < lengthof(numbers); i++)
		if (numbers[i] < ncols)
		{
			size_t		got = trial_size(ctx, g, row, first, last, numbers[i],
										 in, out, size);

			/* fewer columns are faster, so they may cost a hundredth */
			if (got < best_size + best_size / 100)
			{
				best_size = Min(got, best_size);
				best = numbers[i];
			}
		}
	return best;
}

void
wp_group_write(WpContext *ctx, WpGroup *g, WpBuf *sections)
{
	WpBuf	   *desc = &sections[WP_SEC_GROUPS];
	size_t		mark = ctx->arena_used;
	const uint8 *heads = g->data;
	uint32		ncols;

	wp_put_varint(ctx, desc, g->n);
	if (g->n == 0)
		return;
	ncols = choose_ncols(ctx, g);
	Assert(ncols <= g->minlen && g->minlen <= g->maxlen);
	if (g->lens != NULL)
		g->flags |= WP_GROUP_VARLEN;
	if (random_tails(g, ncols))
		g->flags |= WP_GROUP_STORED;
	wp_put_varint(ctx, desc, g->flags);
	wp_put_varint(ctx, desc, g->minlen);
	wp_put_varint(ctx, desc, ncols);
	if (g->lens != NULL)
	{
		wp_put_varint(ctx, desc, g->maxlen);
		write_lengths(ctx, g, sections);
	}
	if (ncols < g->maxlen)
		heads =
			write_tails(ctx, g, ncols,
						&sections[g->flags & WP_GROUP_STORED ? WP_SEC_STORED :
								  WP_SEC_TAILS]);
	write_columns(ctx, heads, ncols, g->n, ncols, sections);
	ctx->arena_used = mark;
}

/* ---- decoder ---- */

static void
read_columns(WpContext *ctx, uint8 *rows, uint32 stride, uint32 n, uint32 ncols,
			 WpReader *sections)
{
	const uint8 *kinds = wp_get_bytes(ctx, &sections[WP_SEC_KINDS], ncols);
	const uint8 **cols = wp_alloc(ctx, ncols * sizeof(uint8 *));

	for (uint32 j = 0; j < ncols; j++)
	{
		if (kinds[j] > WP_COL_STORED)
			wp_fail(ctx, "unknown kind of column");
		if (kinds[j] == WP_COL_CONST)
			cols[j] = wp_get_bytes(ctx, &sections[WP_SEC_CONSTANTS], 1);
		else
			cols[j] = wp_get_bytes(ctx,
								   &sections[kinds[j] == WP_COL_STORED ?
											 WP_SEC_STORED : WP_SEC_COLUMNS],
								   n);
	}
	wp_columns_load(rows, stride, n, ncols, kinds, cols);
}

/* Read the lengths of rows, if they vary; returns their sum. */
static size_t
read_lengths(WpContext *ctx, WpGroup *g, WpReader *sections)
{
	uint32		width = length_width(g);
	const uint8 *lens = wp_get_bytes(ctx, &sections[WP_SEC_LENGTHS],
									 (size_t) width * g->n);
	size_t		total = 0;

	g->lens = wp_alloc(ctx, (size_t) g->n * sizeof(uint32));
	for (uint32 i = 0; i < g->n; i++)
	{
		uint32		len = 0;

		for (uint32 b = 0; b < width; b++)
			len |= (uint32) lens[(size_t) b * g->n + i] << (8 * b);
		if (len > g->maxlen - g->minlen)
			wp_fail(ctx, "a row is longer than its group allows");
		g->lens[i] = g->minlen + len;
		total += g->lens[i];
	}
	return total;
}

/* Restore rows from columns and tails. */
static void
read_rows(WpContext *ctx, WpGroup *g, uint32 ncols, WpReader *sections)
{
	uint8	   *heads = wp_alloc(ctx, (size_t) ncols * g->n + WP_SLACK);
	int			sec = g->flags & WP_GROUP_STORED ? WP_SEC_STORED : WP_SEC_TAILS;
	const uint8 *tail = wp_get_bytes(ctx, &sections[sec],
									 g->used - (size_t) ncols * g->n);
	const uint8 *head = heads;
	uint8	   *row = g->data;

	read_columns(ctx, heads, ncols, g->n, ncols, sections);
	for (uint32 i = 0; i < g->n; i++)
	{
		uint32		len = g->lens ? g->lens[i] : g->minlen;

		wp_copy_short(row, head, ncols);
		memcpy(row + ncols, tail, len - ncols);
		head += ncols;
		tail += len - ncols;
		row += len;
	}
	Assert(row == g->data + g->used);
}

void
wp_group_read(WpContext *ctx, WpGroup *g, WpReader *sections, size_t *budget)
{
	WpReader   *desc = &sections[WP_SEC_GROUPS];
	uint32		ncols;
	size_t		size;

	g->n = wp_get_limited(ctx, desc, *budget);
	if (g->n == 0)
		return;
	g->flags = wp_get_limited(ctx, desc, WP_GROUP_FLAGS);
	g->minlen = g->maxlen = wp_get_limited(ctx, desc, *budget);
	ncols = wp_get_limited(ctx, desc, g->minlen);
	size = (size_t) g->minlen * g->n;
	if (g->flags & WP_GROUP_VARLEN)
	{
		g->maxlen = wp_get_limited(ctx, desc, *budget);
		if (g->maxlen < g->minlen)
			wp_fail(ctx, "a group's lengths are reversed");
		size = read_lengths(ctx, g, sections);
	}
	if (size + g->n > *budget)
		wp_fail(ctx, "groups are too big");
	*budget -= size + g->n;
	g->used = size;
	if (ncols == 0 && g->maxlen > 0 && (g->flags & WP_GROUP_STORED) == 0)
		g->data = unconstify(uint8 *,
							 wp_get_bytes(ctx, &sections[WP_SEC_TAILS], size));
	else
	{
		g->data = wp_alloc(ctx, size + WP_SLACK);
		if (ncols == g->maxlen)
			read_columns(ctx, g->data, ncols, g->n, ncols, sections);
		else
			read_rows(ctx, g, ncols, sections);
	}
	g->cursor = g->data;
}
