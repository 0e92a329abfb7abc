/*-------------------------------------------------------------------------
 * test_pages.c
 *	  Changes of pages: eleven of known kinds, and random ones.
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "pagedelta_test.h"

uint64_t	test_seed = 1;

/* Line pointers and tuples of a half-full page, and of a full page. */
#define LOWER		824
#define UPPER		4200
#define FULL_LOWER	4024
#define FULL_UPPER	4040

void
random_page(uint8_t *page, uint32_t lower, uint32_t upper)
{
	for (int i = 0; i < PAGE; i++)
		page[i] = (uint8_t) test_random(256);
	memset(page, 0, 24);
	set_bounds(page, lower, upper);
	memset(page + lower, 0, upper - lower);
}

/* ---- the shapes -------------------------------------------------------- */

static void
full_page(uint8_t *a, uint8_t *b)
{
	random_page(a, FULL_LOWER, FULL_UPPER);
	memcpy(b, a, PAGE);
}

static void
half_page(uint8_t *a, uint8_t *b)
{
	random_page(a, LOWER, UPPER);
	memcpy(b, a, PAGE);
}

static void
one_byte(uint8_t *a, uint8_t *b)
{
	full_page(a, b);
	b[6001] ^= 1;
}

static void
two_fields(uint8_t *a, uint8_t *b)
{
	full_page(a, b);
	for (int i = 0; i < 4; i++)
	{
		b[6000 + i] ^= 1;
		b[7000 + i] ^= 1;
	}
}

static void
append(uint8_t *a, uint8_t *b)
{
	half_page(a, b);
	set_bounds(b, LOWER + 4, UPPER - 32);
	for (int i = 0; i < 4; i++)
		b[LOWER + i] = (uint8_t) (i + 1);
	for (int i = 0; i < 32; i++)
		b[UPPER - 32 + i] = (uint8_t) (i + 1);
}

static void
insert_pointer(uint8_t *a, uint8_t *b)
{
	append(a, b);
	for (int i = 24; i < LOWER; i += 4)
	{
		a[i] = (uint8_t) (i / 4);
		a[i + 1] = (uint8_t) (i / 8);
	}
	memcpy(b + 24, a + 24, LOWER - 24);
	memmove(b + LOWER - 400 + 4, b + LOWER - 400, 400);
	memset(b + LOWER - 400, 0xAA, 4);
}

static void
move_tuples(uint8_t *a, uint8_t *b)
{
	full_page(a, b);
	memmove(b + 4500, a + 4500 + 32, 3000);
}

static void
packed_list(uint8_t *a, uint8_t *b)
{
	full_page(a, b);
	set_bounds(a, FULL_LOWER - 16, FULL_LOWER);
	set_bounds(b, FULL_LOWER - 16, FULL_LOWER);
	memmove(b + FULL_LOWER + 6, a + FULL_LOWER, 4000);
	memset(b + FULL_LOWER, 0x55, 6);
}

static void
every_nth(uint8_t *a, uint8_t *b, int n)
{
	full_page(a, b);
	for (int i = 24; i < PAGE; i += n)
		b[i] ^= 0xFF;
}

static void
all_bytes(uint8_t *a, uint8_t *b)
{
	every_nth(a, b, 1);
}

static void
every_second(uint8_t *a, uint8_t *b)
{
	every_nth(a, b, 2);
}

static void
most_fragments(uint8_t *a, uint8_t *b)
{
	every_nth(a, b, 6);
}

static void
one_in_16(uint8_t *a, uint8_t *b)
{
	every_nth(a, b, 16);
}

const Shape shapes[] = {
	{"nothing", 0, full_page},
	{"1 byte", 5, one_byte},
	{"two fields of 4 bytes", 16, two_fields},
	{"line pointer and tuple of 32 bytes appended", 4 + 3 + 4 + 4 + 4 + 32,
	append},
	{"line pointer inserted, 100 shifted", -1, insert_pointer},
	{"3 kB moved by 32 bytes", -1, move_tuples},
	{"6 bytes into a packed list, 4 kB shifted", -1, packed_list},
	{"all bytes", -1, all_bytes},
	{"every second byte", -1, every_second},
	{"1 byte, 5 equal ones", -1, most_fragments},
	{"1 byte in 16", -1, one_in_16},
};
const int	nshapes = sizeof(shapes) / sizeof(shapes[0]);

/* ---- random changes ---------------------------------------------------- */

/* Return one of few values, so that bytes are often equal by chance. */
static void
scribble(uint8_t *page, uint32_t at, uint32_t len, uint32_t values)
{
	for (uint32_t i = 0; i < len; i++)
		page[at + i] = (uint8_t) test_random(values);
}

static uint32_t
random_len(uint32_t max)
{
	uint32_t	len = 1 + test_random(1U << test_random(13));

	return len < max ? len : max;
}

static void
move_bytes(uint8_t *page, uint32_t size)
{
	uint32_t	len = random_len(size / 2);
	uint32_t	from = test_random(size - len + 1);
	uint32_t	to = test_random(2) ?
		test_random(size - len + 1) :
		(from + 1 + test_random(40)) % (size - len + 1);

	memmove(page + to, page + from, len);
}

static void
comb(uint8_t *page, uint32_t size)
{
	uint32_t	step = 1 + test_random(20);
	uint32_t	from = test_random(size);
	uint32_t	to = from + random_len(size - from);

	for (uint32_t i = from; i < to; i += step)
		page[i] ^= (uint8_t) (1 + test_random(3));
}

static void
change_bounds(uint8_t *page, uint32_t size)
{
	uint16_t	lower = ((uint16_t *) page)[6];
	uint16_t	upper = ((uint16_t *) page)[7];

	if (test_random(4) == 0)
	{
		lower = (uint16_t) test_random(size + 1);
		upper = (uint16_t) (lower + test_random(size - lower + 1));
	}
	else
	{
		lower = (uint16_t) (lower + 4 * test_random(3));
		upper = (uint16_t) (upper - 8 * test_random(9));
	}
	if (lower > upper || upper > size)
		lower = upper = (uint16_t) (size / 2);
	set_bounds(page, lower, upper);
}

void
change_page(uint8_t *page, uint32_t size)
{
	PageDeltaBounds b = get_bounds(page, page);

	for (int n = (int) test_random(6); n >= 0; n--)
	{
		uint32_t	at = test_random(size);
		uint32_t	len = random_len(size - at);

		switch (test_random(8))
		{
			case 0:
				scribble(page, at, len, 2 + test_random(3));
				break;
			case 1:
			case 2:
				scribble(page, at, len < 32 ? len : 32, 256);
				break;
			case 3:
				move_bytes(page, size);
				break;
			case 4:
				comb(page, size);
				break;
			default:
				page[at] ^= 1;
				break;
		}
	}
	/* the earlier contents may have been overwritten */
	set_bounds(page, b.new_lower, b.new_upper);
	if (test_random(3) == 0)
		change_bounds(page, size);
}
