/*-------------------------------------------------------------------------
 * model_delta.c
 *	  Two other ways to make deltas: byte by byte, as in the definition; and in
 *	  words of 8 bytes, which makes them larger.
 *-------------------------------------------------------------------------
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core_delta.h"

static uint8_t *
put(uint8_t *p, const uint8_t *page, int begin, int end)
{
	uint16_t	header[2] = {(uint16_t) begin, (uint16_t) (end - begin)};

	memcpy(p, header, 4);
	memcpy(p + 4, page + begin, (size_t) (end - begin));
	return p + 4 + (end - begin);
}

/*
 * Write the region's fragments.  A byte belongs to one if it differs, or is
 * unknown in the old page; more than 4 equal bytes end a fragment.
 */
static uint8_t *
model_region(uint8_t *p, const uint8_t *a, const uint8_t *b, int begin, int end,
			 int known_begin, int known_end)
{
	int			first = -1;
	int			last = -1;

	for (int i = begin; i < end; i++)
	{
		if (i >= known_begin && i < known_end && a[i] == b[i])
			continue;
		if (first >= 0 && i - last - 1 > 4)
		{
			p = put(p, b, first, last + 1);
			first = -1;
		}
		if (first < 0)
			first = i;
		last = i;
	}
	return first < 0 ? p : put(p, b, first, last + 1);
}

int
model_delta(const void *old_page, const void *new_page, int size,
			const int *bounds, void *delta)
{
	uint8_t    *p = delta;

	p = model_region(p, old_page, new_page, 0, bounds[2], 0, bounds[0]);
	p = model_region(p, old_page, new_page, bounds[3], size, bounds[1], size);
	return (int) (p - (uint8_t *) delta);
}

/* ---- words ------------------------------------------------------------- */

static bool
same_word(const uint8_t *a, const uint8_t *b)
{
	uint64_t	x;
	uint64_t	y;

	memcpy(&x, a, 8);
	memcpy(&y, b, 8);
	return x == y;
}

/*
 * Write a region in words, from begin, which is a multiple of 8 or the start
 * of unknown bytes.  The last word may be shorter.
 */
static uint8_t *
words_region(uint8_t *p, const uint8_t *a, const uint8_t *b, int begin, int end,
			 int known_begin, int known_end)
{
	int			first = -1;
	int			to = end < known_end ? end : known_end;
	int			i = begin;

	if (known_begin > begin)
	{
		first = begin;
		i = known_begin;
	}
	while (i + 8 <= to)
	{
		while (i + 8 <= to && same_word(a + i, b + i))
		{
			if (first >= 0)
			{
				p = put(p, b, first, i);
				first = -1;
			}
			i += 8;
		}
		while (i + 8 <= to && !same_word(a + i, b + i))
		{
			if (first < 0)
				first = i;
			i += 8;
		}
	}
	if (i < to && memcmp(a + i, b + i, (size_t) (to - i)) != 0 && first < 0)
		first = i;
	else if (i < to && memcmp(a + i, b + i, (size_t) (to - i)) == 0 &&
			 first >= 0)
	{
		p = put(p, b, first, i);
		first = -1;
	}
	if (to < end && first < 0)
		first = to < begin ? begin : to;
	return first >= 0 ? put(p, b, first, end) : p;
}

int
words_delta(const void *old_page, const void *new_page, int size, void *delta)
{
	const uint16_t *a = old_page;
	const uint16_t *b = new_page;
	uint8_t    *p = delta;

	/* pd_lower and pd_upper */
	p = words_region(p, old_page, new_page, 0, b[6], 0, a[6]);
	p = words_region(p, old_page, new_page, b[7], size, a[7], size);
	return (int) (p - (uint8_t *) delta);
}
