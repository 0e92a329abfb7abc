/*-------------------------------------------------------------------------
 * wp_page.c
 *	  Full-page images taken apart into header, item pointers, tuples.
 *
 * An item pointer is stored relative to the tuple's place on a page that was
 * filled from its end.  The bytes between tuples, usually zeros, are stored
 * only where one is not zero.  An image without a hole may have bytes between
 * pd_lower and pd_upper; these are a gap too.
 *-------------------------------------------------------------------------
 */
#include "wp_port.h"

#include "wp_page.h"

/* offsets in the page header */
#define PD_LOWER		12
#define PD_UPPER		14
#define PD_SPECIAL		16
#define PD_HEADER		24

/* an item pointer: offset 15 bits, flags 2, length 15 */
#define ITEM_OFF(item)		((item) & 0x7FFF)
#define ITEM_LEN(item)		((item) >> 17)

static bool
bounds_ok(const uint8 *header, WpPageMap *map)
{
	map->lower = wp_get16(header + PD_LOWER);
	map->upper = wp_get16(header + PD_UPPER);
	map->special = wp_get16(header + PD_SPECIAL);
	map->nitems = (map->lower - PD_HEADER) / 4;
	return map->lower >= PD_HEADER && map->lower <= map->upper &&
		map->lower % 4 == 0 && map->upper <= map->special &&
		map->special <= WP_PAGE_SIZE;
}

/*
 * Mark the start of the item's tuple.  Returns false if it is not between
 * upper and special.
 */
static inline bool
mark_tuple(WpPageMap *map, uint32 i, uint32 item)
{
	uint32		off = ITEM_OFF(item);
	uint64		bit = UINT64CONST(1) << (off % 64);

	if (off < map->upper || off + ITEM_LEN(item) > map->special ||
		(map->starts[off / 64] & bit) != 0)
		return false;
	map->starts[off / 64] |= bit;
	map->item_at[off] = i;
	return true;
}

/*
 * Find the next tuple at or behind offset pos; map->special if there is none.
 */
static uint32
next_start(const WpPageMap *map, uint32 pos)
{
	uint32		word = pos / 64;
	uint64		bits;

	if (pos >= map->special)
		return map->special;
	bits = map->starts[word] & (~UINT64CONST(0) << (pos % 64));
	while (bits == 0)
	{
		if (++word >= WP_PAGE_SIZE / 64)
			return map->special;
		bits = map->starts[word];
	}
	return word * 64 + __builtin_ctzll(bits);
}

bool
wp_page_check(const WpBlock *block, WpPageMap *map)
{
	const uint8 *items = block->image + PD_HEADER;
	bool		hole = (block->img_info & WP_IMG_HAS_HOLE) != 0;
	uint32		end;

	if ((block->img_info & WP_IMG_COMPRESSED) != 0 ||
		block->img_len < PD_HEADER || !bounds_ok(block->image, map))
		return false;
	if (hole ? (block->hole_off != map->lower || map->upper == map->lower ||
				block->img_len != WP_PAGE_SIZE - (map->upper - map->lower))
		: (block->hole_off != 0 || block->img_len != WP_PAGE_SIZE))
		return false;
	memset(map->starts, 0, sizeof(map->starts));
	for (uint32 i = 0; i < map->nitems; i++)
	{
		uint32		item = wp_get32(items + 4 * i);

		if (ITEM_LEN(item) > 0 && !mark_tuple(map, i, item))
			return false;
	}
	end = map->upper;
	for (uint32 pos = next_start(map, 0); pos < map->special;
		 pos = next_start(map, pos + 1))
	{
		if (pos < end)
			return false;
		end = pos + ITEM_LEN(wp_get32(items + 4 * map->item_at[pos]));
	}
	return true;
}

static bool
all_zero(const uint8 *p, uint32 n)
{
	uint8		bits = 0;

	while (n-- > 0)
		bits |= *p++;
	return bits == 0;
}

/* A scan of the gaps of a page, from low to high; false at the end. */
typedef struct GapScan
{
	uint32		pos;			/* start of the next gap, or of the tuple
								 * there */
	uint32		len;			/* of the gap found */
	uint32		start;
} GapScan;

static bool
next_gap(const WpPageMap *map, const uint8 *items, GapScan *gap)
{
	while (gap->pos < map->special)
	{
		uint32		tuple = next_start(map, gap->pos);

		gap->start = gap->pos;
		gap->len = tuple - gap->pos;
		gap->pos = tuple;
		if (tuple < map->special)
			gap->pos += ITEM_LEN(wp_get32(items + 4 * map->item_at[tuple]));
		if (gap->len > 0)
			return true;
	}
	return false;
}

static bool
gaps_zero(const WpPageMap *map, const uint8 *image, uint32 hole_len)
{
	GapScan		gap = {hole_len > 0 ? map->upper : map->lower};

	while (next_gap(map, image + PD_HEADER, &gap))
		if (!all_zero(image + gap.start - hole_len, gap.len))
			return false;
	return true;
}

void
wp_page_write(WpContext *ctx, WpRelation *rel, const WpBlock *block,
			  const WpPageMap *map, WpBuf *gaps)
{
	const uint8 *image = block->image;
	const uint8 *items = image + PD_HEADER;
	uint32		hole_len = WP_PAGE_SIZE - block->img_len;
	uint32		prev = map->special;
	bool		zero = gaps_zero(map, image, hole_len);
	uint8	   *row = wp_group_add(ctx, &rel->headers, WP_PAGE_ROW);

	memcpy(row, image, PD_HEADER);
	row[PD_HEADER] = zero ? 0 : WP_PAGE_GAPS;
	for (uint32 i = 0; i < map->nitems; i++)
	{
		uint32		item = wp_get32(items + 4 * i);
		uint32		off = ITEM_OFF(item);
		uint32		len = ITEM_LEN(item);

		row = wp_group_add(ctx, &rel->items, 4);
		if (len > 0)
		{
			uint32		shift = (prev - ((len + 7) & ~7) - off) & 0x7FFF;

			memcpy(wp_group_add(ctx, &rel->tuples[wp_bucket(len)], len),
				   image + off - hole_len, len);
			prev = off;
			item = (item & ~(uint32) 0x7FFF) | shift;
		}
		wp_set32(row, item);
	}
	memcpy(wp_group_add(ctx, &rel->special, WP_PAGE_SIZE - map->special),
		   image + map->special - hole_len, WP_PAGE_SIZE - map->special);
	if (!zero)
	{
		GapScan		gap = {hole_len > 0 ? map->upper : map->lower};

		while (next_gap(map, items, &gap))
			wp_put_bytes(ctx, gaps, image + gap.start - hole_len, gap.len);
	}
}

/* Read the page's item pointers and tuples into the image. */
static void
read_tuples(WpContext *ctx, WpRelation *rel, WpPageMap *map, uint8 *image,
			uint32 hole_len)
{
	uint8	   *items = image + PD_HEADER;
	uint32		prev = map->special;

	for (uint32 i = 0; i < map->nitems; i++)
	{
		uint32		item = wp_get32(wp_group_take(ctx, &rel->items, 4));
		uint32		len = ITEM_LEN(item);

		if (len > 0)
		{
			uint32		off = (prev - ((len + 7) & ~7) - ITEM_OFF(item)) &
				0x7FFF;

			item = (item & ~(uint32) 0x7FFF) | off;
			if (off < map->upper || off + len > map->special)
				wp_fail(ctx, "a tuple lies outside its page");
			memcpy(image + off - hole_len,
				   wp_group_take(ctx, &rel->tuples[wp_bucket(len)], len), len);
			prev = off;
		}
		wp_set32(items + 4 * i, item);
	}
}

void
wp_page_read(WpContext *ctx, WpRelation *rel, WpBlock *block,
			 WpPageMap *map, uint8 *image, WpReader *gaps)
{
	const uint8 *header = wp_group_take(ctx, &rel->headers, WP_PAGE_ROW);
	uint32		hole_len = 0;

	if (!bounds_ok(header, map))
		wp_fail(ctx, "a page header is wrong");
	if (block->img_info & WP_IMG_HAS_HOLE)
		hole_len = map->upper - map->lower;
	block->img_len = WP_PAGE_SIZE - hole_len;
	block->hole_off = hole_len > 0 ? map->lower : 0;
	memcpy(image, header, PD_HEADER);
	memset(image + map->lower, 0, map->special - map->lower - hole_len);
	read_tuples(ctx, rel, map, image, hole_len);
	memcpy(image + map->special - hole_len,
		   wp_group_take(ctx, &rel->special, WP_PAGE_SIZE - map->special),
		   WP_PAGE_SIZE - map->special);
	if (header[PD_HEADER] & WP_PAGE_GAPS)
	{
		GapScan		gap = {hole_len > 0 ? map->upper : map->lower};

		memset(map->starts, 0, sizeof(map->starts));
		for (uint32 i = 0; i < map->nitems; i++)
		{
			uint32		item = wp_get32(image + PD_HEADER + 4 * i);

			if (ITEM_LEN(item) > 0 && !mark_tuple(map, i, item))
				wp_fail(ctx, "two tuples at one place");
		}
		while (next_gap(map, image + PD_HEADER, &gap))
			memcpy(image + gap.start - hole_len,
				   wp_get_bytes(ctx, gaps, gap.len), gap.len);
	}
}
