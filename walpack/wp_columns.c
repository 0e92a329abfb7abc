/*-------------------------------------------------------------------------
 * wp_columns.c
 *	  Rows of bytes to columns and back.
 *
 * Eight bytes of eight rows are transposed at a time, as words.  A tile of
 * rows is transposed to columns; then the differences of each column are
 * computed, or added up, byte by byte, while it is in the cache.  Rows beyond
 * the last multiple of eight, and groups of fewer, are processed one byte at a
 * time.
 *-------------------------------------------------------------------------
 */
#include "wp_port.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "wp_columns.h"

#define TILE			128		/* rows */
#define WIDTH			8		/* columns */

/* A tile as columns; in front of each is the byte of the row before. */
typedef struct Tile
{
	uint8		bytes[WIDTH][WIDTH + TILE];
} Tile;

static inline uint8 *
tile_column(Tile *t, uint32 c)
{
	return t->bytes[c] + WIDTH;
}

/*
 * Transpose eight words, which are "step" bytes apart: byte i of word j
 * becomes byte j of word i.
 */
#ifdef __SSE2__
static inline void
transpose(const uint8 *in, size_t in_step, uint8 *out, size_t out_step)
{
#define ROW(i)			_mm_loadl_epi64((const __m128i *) (in + (i) * in_step))
#define PUT(i, two) \
	(_mm_storel_epi64((__m128i *) (out + (i) * out_step), two), \
	 _mm_storel_epi64((__m128i *) (out + ((i) + 1) * out_step), \
					  _mm_unpackhi_epi64(two, two)))
	__m128i		r01 = _mm_unpacklo_epi8(ROW(0), ROW(1));
	__m128i		r23 = _mm_unpacklo_epi8(ROW(2), ROW(3));
	__m128i		r45 = _mm_unpacklo_epi8(ROW(4), ROW(5));
	__m128i		r67 = _mm_unpacklo_epi8(ROW(6), ROW(7));
	__m128i		upper_low = _mm_unpacklo_epi16(r01, r23);
	__m128i		upper_high = _mm_unpackhi_epi16(r01, r23);
	__m128i		lower_low = _mm_unpacklo_epi16(r45, r67);
	__m128i		lower_high = _mm_unpackhi_epi16(r45, r67);

	PUT(0, _mm_unpacklo_epi32(upper_low, lower_low));
	PUT(2, _mm_unpackhi_epi32(upper_low, lower_low));
	PUT(4, _mm_unpacklo_epi32(upper_high, lower_high));
	PUT(6, _mm_unpackhi_epi32(upper_high, lower_high));
#undef ROW
#undef PUT
}
#else
/*
 * Exchange the bits of a that are "shift" places above the mask with those of
 * b under the mask.
 */
static inline void
exchange(uint64 *a, uint64 *b, int shift, uint64 mask)
{
	uint64		differ = ((*a >> shift) ^ *b) & mask;

	*a ^= differ << shift;
	*b ^= differ;
}

static inline void
transpose(const uint8 *in, size_t in_step, uint8 *out, size_t out_step)
{
	static const uint64 masks[3] = {
		UINT64CONST(0x00FF00FF00FF00FF), UINT64CONST(0x0000FFFF0000FFFF),
		UINT64CONST(0x00000000FFFFFFFF)
	};
	uint64		w[8];

	for (int i = 0; i < 8; i++)
		w[i] = wp_get64(in + i * in_step);
	for (int log = 0; log < 3; log++)
		for (int i = 0; i < 8; i++)
			if ((i >> log & 1) == 0)
				exchange(&w[i], &w[i + (1 << log)], 8 << log, masks[log]);
	for (int i = 0; i < 8; i++)
		wp_set64(out + i * out_step, w[i]);
}
#endif

/* The differences of eight bytes, each modulo 256. */
static inline uint64
subtract_bytes(uint64 a, uint64 b)
{
	const uint64 top = UINT64CONST(0x8080808080808080);

	return ((a | top) - (b & ~top)) ^ ((a ^ ~b) & top);
}

/* ---- encoder ---- */

/* Store rows first to last - 1 of the column at in, one by one. */
static void
store_bytes(const uint8 *in, uint32 stride, uint32 first, uint32 last,
			uint8 kind, uint8 *col)
{
	uint8		prev = 0;

	if (kind == WP_COL_DELTA && first > 0)
		prev = in[(size_t) (first - 1) * stride];
	for (uint32 i = first; i < last; i++)
	{
		uint8		v = in[(size_t) i * stride];

		col[i] = v - prev;
		if (kind == WP_COL_DELTA)
			prev = v;
	}
}

/*
 * Store a tile of n rows, a multiple of eight.  in is the first row's byte of
 * the first column.
 */
static void
store_tile(const uint8 *in, uint32 stride, uint32 first, uint32 n, uint32 width,
		   const uint8 *kinds, uint8 *const *cols)
{
	Tile		t;

	Assert(n % 8 == 0 && n <= TILE && width <= WIDTH);
	for (uint32 i = 0; i < n; i += 8)
		transpose(in + (size_t) i * stride, stride, tile_column(&t, 0) + i,
				  sizeof(t.bytes[0]));
	for (uint32 c = 0; c < width; c++)
	{
		uint8	   *bytes = tile_column(&t, c);

		if (kinds[c] == WP_COL_CONST)
			continue;
		if (kinds[c] != WP_COL_DELTA)
		{
			memcpy(cols[c] + first, bytes, n);
			continue;
		}
		bytes[-1] = first > 0 ? in[(ptrdiff_t) c - (ptrdiff_t) stride] : 0;
		for (uint32 i = 0; i < n; i += 8)
			wp_set64(cols[c] + first + i,
					 subtract_bytes(wp_get64(bytes + i),
									wp_get64(bytes + i - 1)));
	}
}

static bool
all_constant(const uint8 *kinds, uint32 width)
{
	for (uint32 c = 0; c < width; c++)
		if (kinds[c] != WP_COL_CONST)
			return false;
	return true;
}

void
wp_columns_store(const uint8 *rows, uint32 stride, uint32 n, uint32 ncols,
				 const uint8 *kinds, uint8 *const *cols)
{
	uint32		even = n / 8 * 8;

	Assert(ncols <= stride);
	for (uint32 first = 0; first < even; first += TILE)
		for (uint32 j = 0; j < ncols; j += WIDTH)
		{
			uint32		width = Min(WIDTH, ncols - j);

			if (!all_constant(kinds + j, width))
				store_tile(rows + (size_t) first * stride + j, stride, first,
						   Min(TILE, even - first), width, kinds + j, cols + j);
		}
	for (uint32 j = 0; j < ncols && even < n; j++)
		if (kinds[j] != WP_COL_CONST)
			store_bytes(rows + j, stride, even, n, kinds[j], cols[j]);
}

/* ---- decoder ---- */

/* Load rows first to last - 1 of the column at out, one by one. */
static void
load_bytes(uint8 *out, uint32 stride, uint32 first, uint32 last, uint8 kind,
		   const uint8 *col)
{
	uint8		v = 0;

	if (kind == WP_COL_DELTA && first > 0)
		v = out[(size_t) (first - 1) * stride];
	for (uint32 i = first; i < last; i++)
	{
		v = (kind == WP_COL_DELTA ? v : 0) +
			(kind == WP_COL_CONST ? *col : col[i]);
		out[(size_t) i * stride] = v;
	}
}

/* Write the first n bytes of the word, at most eight. */
static inline void
put_word(uint8 *p, uint64 w, uint32 n)
{
	if (n >= 8)
	{
		wp_set64(p, w);
		return;
	}
	if (n & 4)
	{
		wp_set32(p, (uint32) w);
		p += 4;
		w >>= 32;
	}
	if (n & 2)
	{
		wp_set16(p, (uint16) w);
		p += 2;
		w >>= 16;
	}
	if (n & 1)
		*p = (uint8) w;
}

/* Load a column of a tile of n rows.  last is the byte of the previous row. */
static inline void
load_column(uint8 *bytes, uint32 first, uint32 n, uint8 kind, const uint8 *col,
			uint8 last)
{
	if (kind == WP_COL_CONST)
		memset(bytes, *col, n);
	else if (kind != WP_COL_DELTA)
		memcpy(bytes, col + first, n);
	else
		for (uint32 i = 0; i < n; i++)
			bytes[i] = last += col[first + i];
}

/*
 * Load a tile of n rows, a multiple of eight.  out is the first row's byte of
 * the first column.
 */
static void
load_tile(uint8 *out, uint32 stride, uint32 first, uint32 n, uint32 width,
		  const uint8 *kinds, const uint8 *const *cols)
{
	Tile		t;

	Assert(n % 8 == 0 && n <= TILE && width <= WIDTH);
	for (uint32 c = 0; c < width; c++)
		load_column(tile_column(&t, c), first, n, kinds[c], cols[c],
					first > 0 ? out[(ptrdiff_t) c - (ptrdiff_t) stride] : 0);
	/* columns that a narrow tile lacks are never used */
	for (uint32 c = width; c < WIDTH; c++)
		memset(tile_column(&t, c), 0, n);
	for (uint32 i = 0; i < n; i += 8)
	{
		uint8	   *row = out + (size_t) i * stride;
		uint8		words[8][WIDTH];

		if (width == WIDTH)
		{
			transpose(tile_column(&t, 0) + i, sizeof(t.bytes[0]), row, stride);
			continue;
		}
		transpose(tile_column(&t, 0) + i, sizeof(t.bytes[0]), words[0], WIDTH);
		for (int r = 0; r < 8; r++)
			put_word(row + (size_t) r * stride, wp_get64(words[r]), width);
	}
}

void
wp_columns_load(uint8 *rows, uint32 stride, uint32 n, uint32 ncols,
				const uint8 *kinds, const uint8 *const *cols)
{
	uint32		even = n / 8 * 8;

	Assert(ncols <= stride);
	if (ncols == 1 && stride == 1 && kinds[0] != WP_COL_CONST &&
		kinds[0] != WP_COL_DELTA)
	{
		memcpy(rows, cols[0], n);
		return;
	}
	for (uint32 first = 0; first < even; first += TILE)
		for (uint32 j = 0; j < ncols; j += WIDTH)
			load_tile(rows + (size_t) first * stride + j, stride, first,
					  Min(TILE, even - first), Min(WIDTH, ncols - j), kinds + j,
					  cols + j);
	for (uint32 j = 0; j < ncols && even < n; j++)
		load_bytes(rows + j, stride, even, n, kinds[j], cols[j]);
}
