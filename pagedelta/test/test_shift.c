/*-------------------------------------------------------------------------
 * test_shift.c
 *	  Tests of the deltas that know shifts.
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../pagedelta_shift.h"
#include "pagedelta_test.h"

#define MAX_STRING	(2 * PAGEDELTA_MAX_PAGE)

/*
 * A change of this digest means that redo of inplace treats older WAL
 * differently.
 */
#define SAME_DELTAS UINT64_C(0xb1259d6c9102578e)

#define REQUIRE(condition) \
	do { \
		if (!(condition)) \
		{ \
			fprintf(stderr, "%s:%d: %s (round %llu)\n", __FILE__, __LINE__, \
					#condition, (unsigned long long) round_no); \
			abort(); \
		} \
	} while (0)

static uint64_t round_no;

/* The digest of all deltas that were made. */
static uint64_t checksum;

/*
 * Check that the delta's inverse, in exactly the room it needs, restores the
 * old string.
 */
static void
check_inverse(const uint8_t *from, uint32_t fromlen, const uint8_t *to,
			  uint32_t tolen, const uint8_t *delta, uint32_t len)
{
	uint32_t	room = fromlen + 1024;
	uint8_t    *inverse = malloc(room);
	uint8_t    *exact;
	uint8_t    *out = malloc(fromlen + 1);
	uint32_t	used;
	int			inverse_len = pagedelta_shift_invert(from, fromlen, delta, len,
													 inverse, room);

	REQUIRE(inverse_len > 0);
	exact = malloc((size_t) inverse_len);
	REQUIRE(pagedelta_shift_invert(from, fromlen, delta, len, exact,
								   (uint32_t) inverse_len) == inverse_len);
	REQUIRE(memcmp(inverse, exact, (size_t) inverse_len) == 0);
	REQUIRE(pagedelta_shift_invert(from, fromlen, delta, len, inverse,
								   (uint32_t) inverse_len - 1) ==
			PAGEDELTA_NO_ROOM);
	REQUIRE(pagedelta_shift_apply(to, tolen, exact, (uint32_t) inverse_len,
								  &used, out, fromlen) == (int) fromlen);
	REQUIRE(used == (uint32_t) inverse_len && memcmp(out, from, fromlen) == 0);
	REQUIRE(pagedelta_shift_invert(from, fromlen, delta, len - 1, inverse,
								   room) == PAGEDELTA_BAD_DELTA);
	free(inverse);
	free(exact);
	free(out);
}

/*
 * Check that a delta for these strings, in exactly the room it needs, produces
 * the new string.  Returns its length.
 */
static int
check_delta(const uint8_t *from, uint32_t fromlen, const uint8_t *to,
			uint32_t tolen, bool moves)
{
	uint32_t	room = 2 * tolen + 64;
	uint8_t    *delta = malloc(room);
	uint8_t    *exact;
	uint8_t    *out = malloc(tolen + 1);
	uint8_t    *inverse = malloc(fromlen + 1024);
	uint32_t	used;
	int			len = pagedelta_shift_make(from, fromlen, to, tolen, moves,
										   delta, room);

	REQUIRE(len > 0 && (uint32_t) len <= tolen + 16);
	for (int i = 0; i < len; i++)
		checksum = (checksum ^ delta[i]) * UINT64_C(0x100000001B3);
	exact = malloc((size_t) len);
	REQUIRE(pagedelta_shift_make(from, fromlen, to, tolen, moves, exact,
								 (uint32_t) len) == len);
	REQUIRE(memcmp(delta, exact, (size_t) len) == 0);
	REQUIRE(pagedelta_shift_make(from, fromlen, to, tolen, moves, delta,
								 (uint32_t) len - 1) == PAGEDELTA_NO_ROOM);
	REQUIRE(pagedelta_shift_apply(from, fromlen, exact, (uint32_t) len, &used,
								  out, tolen) == (int) tolen);
	REQUIRE(used == (uint32_t) len && memcmp(out, to, tolen) == 0);
	if (tolen > 0)
		REQUIRE(pagedelta_shift_apply(from, fromlen, exact, (uint32_t) len,
									  &used, out,
									  tolen - 1) == PAGEDELTA_NO_ROOM);
	REQUIRE(pagedelta_shift_apply(from, fromlen, exact, (uint32_t) len - 1,
								  &used, out, tolen) < 0);
	check_inverse(from, fromlen, to, tolen, exact, (uint32_t) len);

	/* damage gives an error, or a result of a length within the room */
	for (int i = 0; i < 4; i++)
	{
		exact[test_random((uint32_t) len < 12 || test_random(2) ?
						  (uint32_t) len : 12)] = (uint8_t) test_random(256);
		REQUIRE(pagedelta_shift_apply(from, fromlen, exact, (uint32_t) len,
									  &used, out, tolen) <= (int) tolen);
		REQUIRE(pagedelta_shift_invert(from, fromlen, exact, (uint32_t) len,
									   inverse,
									   fromlen + 1024) <= (int) fromlen + 1024);
	}
	free(inverse);
	free(delta);
	free(exact);
	free(out);
	return len;
}

/*
 * Check that the search for moves does not make the delta longer.  Returns the
 * length with moves.
 */
static int
check_strings(const uint8_t *from, uint32_t fromlen, const uint8_t *to,
			  uint32_t tolen)
{
	int			len = check_delta(from, fromlen, to, tolen, true);

	REQUIRE(len <= check_delta(from, fromlen, to, tolen, false));
	return len;
}

/*
 * Check that an insertion or removal anywhere costs its own bytes and a few
 * more.
 */
static void
test_known_shifts(void)
{
	uint8_t    *a = malloc(PAGE);
	uint8_t    *b = malloc(PAGE + 100);

	for (int at = 0; at <= PAGE; at += 64)
	{
		for (int len = 1; len <= 100; len += 33)
		{
			random_page(a, 24, 24);
			memcpy(b, a, (size_t) at);
			memset(b + at, 0x5A, (size_t) len);
			memcpy(b + at + len, a + at, (size_t) (PAGE - at));
			b[PAGE / 2] ^= 1;
			REQUIRE(check_strings(a, PAGE, b, (uint32_t) (PAGE + len)) <=
					len + 16);
			REQUIRE(check_strings(b, (uint32_t) (PAGE + len), a, PAGE) <= 24);
			/* of the same length: the bytes at the end are lost */
			REQUIRE(check_strings(a, PAGE, b, PAGE) <= len + 64);
		}
	}
	free(a);
	free(b);
}

/* Replace some bytes of a string by others.  Returns its new length. */
static uint32_t
splice(uint8_t *s, uint32_t len, uint32_t max)
{
	uint32_t	at = test_random(len + 1);
	uint32_t	removed = test_random(3) == 0 ? 0 :
		test_random(1U << test_random(8));
	uint32_t	added = test_random(3) == 0 ? removed :
		test_random(1U << test_random(8));

	if (removed > len - at)
		removed = len - at;
	if (added > max - (len - removed))
		added = max - (len - removed);
	memmove(s + at + added, s + at + removed, len - at - removed);
	for (uint32_t i = 0; i < added; i++)
		s[at + i] = (uint8_t) test_random(test_random(2) ? 256 : 3);
	return len - removed + added;
}

static void
test_random_strings(uint64_t rounds)
{
	static uint8_t from[MAX_STRING];
	static uint8_t to[MAX_STRING];

	for (round_no = 0; round_no < rounds; round_no++)
	{
		uint32_t	max = test_random(20) == 0 ? MAX_STRING :
			1 + test_random(2000);
		uint32_t	fromlen = test_random(max);
		uint32_t	tolen = fromlen;
		uint8_t    *a = malloc(fromlen + 1);
		uint8_t    *b;

		for (uint32_t i = 0; i < fromlen; i++)
			from[i] = (uint8_t) test_random(round_no % 2 ? 256 : 4);
		memcpy(to, from, fromlen);
		for (uint32_t n = test_random(6); n > 0; n--)
			tolen = splice(to, tolen, max);
		if (test_random(50) == 0)
			tolen = test_random(tolen + 1);
		b = malloc(tolen + 1);
		memcpy(a, from, fromlen);
		memcpy(b, to, tolen);
		(void) check_strings(a, fromlen, b, tolen);
		free(a);
		free(b);
	}
}

/* Check that deltas are unchanged since WAL was first written. */
static void
test_same_deltas(void)
{
	test_seed = 12345;
	checksum = 0;
	test_random_strings(500);
	printf("checksum of deltas %016llx\n", (unsigned long long) checksum);
	REQUIRE(checksum == SAME_DELTAS);
}

/* Check pages, too, with the eleven changes. */
void
test_shift(uint64_t rounds)
{
	uint8_t    *a = malloc(PAGE);
	uint8_t    *b = malloc(PAGE);

	for (int i = 0; i < nshapes; i++)
	{
		shapes[i].make(a, b);
		printf("%-45s %5d with shifts\n", shapes[i].name,
			   check_strings(a, PAGE, b, PAGE));
	}
	free(a);
	free(b);
	test_known_shifts();
	test_random_strings(rounds);
	test_same_deltas();
	printf("%llu random strings\n", (unsigned long long) rounds);
}
