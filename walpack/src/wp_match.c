/*-------------------------------------------------------------------------
 * wp_match.c
 *	  Encoder: finds parts of block data that stand earlier in the chunk.
 *
 * A table has the last place of each word of 8 bytes; every STEP bytes a word
 * is entered, so a copy of MIN_COPY bytes has one.  Records of one kind mostly
 * have their copies at the same distance: that is tried first.  Kinds of
 * records without copies are searched more and more rarely.
 *-------------------------------------------------------------------------
 */
#include "wp_port.h"

#include "wp_format.h"
#include "wp_match.h"

#define STEP			4
#define MIN_COPY		12
#define MIN_DATA		(8 + MIN_COPY)	/* an index entry with such a key */
#define KINDS			256
#define PATIENCE		16		/* searches in vain until some are left out */
#define MAX_PAUSE_LOG	10
#define EXTRA			4		/* a copy gets this much longer than the last one, or keeps its length */

/* What is known of the data of one kind of record. */
typedef struct Kind
{
	uint32		key;
	uint32		last;			/* position of the last data, for comparison */
	uint32		last_len;
	uint32		failures;		/* searches in vain, one after the other */
	uint32		pause;			/* records until the next search */
	uint32		skip;			/* of the last copy, which was the first of its data */
	uint32		len;
	uint32		distance;		/* from where it was expected */
} Kind;

struct WpMatcher
{
	const uint8 *payload;
	uint32	   *table;			/* position, and 8 bits of the relation above */
	int			shift;
	Kind		kinds[KINDS];
};

StaticAssertDecl(WP_MAX_CHUNK <= 1 << 24, "a position has 24 bits");

WpMatcher *
wp_match_begin(WpContext *ctx, const uint8 *payload, uint32 raw_len)
{
	WpMatcher  *m = wp_zalloc(ctx, sizeof(WpMatcher));
	int			bits = 10;

	while (bits < 19 && ((uint32) 32 << bits) < raw_len)
		bits++;
	m->payload = payload;
	m->shift = 64 - bits;
	m->table = wp_zalloc(ctx, sizeof(uint32) << bits);
	return m;
}

static inline uint32 *
slot_of(WpMatcher *m, const uint8 *p)
{
	return &m->table[(wp_get64(p) * UINT64CONST(0x9E3779B97F4A7C15)) >> m->shift];
}

/* Bytes from a and b on that are the same, at most max. */
static uint32
same_bytes(const uint8 *a, const uint8 *b, uint32 max)
{
	uint32		n = 0;

	while (n + 8 <= max)
	{
		uint64		differ = wp_get64(a + n) ^ wp_get64(b + n);

		if (differ != 0)
			return n + __builtin_ctzll(differ) / 8;
		n += 8;
	}
	while (n < max && a[n] == b[n])
		n++;
	return n;
}

static Kind *
kind_of(WpMatcher *m, const WpRecord *rec, uint32 i, uint32 rel)
{
	uint32		key = rel << 16 | (rec->info & 0xF0) << 8 | rec->rmid;
	Kind	   *kind;

	key ^= (i + 1) << 27;
	kind = &m->kinds[(key * 0x9E3779B1) >> 24];
	if (kind->key != key)
	{
		memset(kind, 0, sizeof(*kind));
		kind->key = key;
	}
	return kind;
}

/* Does the data before have the same bytes there?  Then columns do better than a copy. */
static bool
is_column(const WpMatcher *m, const Kind *kind, const uint8 *data, uint32 at, uint32 len)
{
	const uint8 *last = m->payload + kind->last;
	uint32		same = 0;

	if (at + MIN_COPY > kind->last_len)
		return false;
	len = Min(len, kind->last_len - at);
	for (uint32 i = at; i < at + len; i++)
		same += data[i] == last[i];
	return same * 2 > len;
}

/* A copy that is where the kind's last one was. */
static bool
expected_copy(const WpMatcher *m, const Kind *kind, uint32 pos, const WpBlock *b, uint32 from, WpCopy *copy)
{
	uint32		source = from + kind->distance;
	uint32		end = kind->skip + kind->len;
	uint32		more;

	if (kind->len == 0 || kind->skip + kind->len > b->data_len || source >= pos || kind->len > pos - source ||
		memcmp(m->payload + source, b->data + kind->skip, kind->len) != 0)
		return false;
	more = same_bytes(m->payload + source + kind->len, b->data + end,
					  Min(b->data_len - end, pos - source - kind->len));
	*copy = (WpCopy) {kind->skip, kind->len + (more >= EXTRA ? more : 0), source};
	return true;
}

/* The first copy at or behind offset start of the data. */
static bool
search_copy(WpMatcher *m, const Kind *kind, uint32 pos, const WpBlock *b, uint32 rel, uint32 start,
			WpCopy *copy)
{
	for (uint32 at = start; at + MIN_COPY <= b->data_len; at++)
	{
		const uint8 *target = b->data + at;
		uint32		entry = *slot_of(m, target);
		uint32		source = entry & 0xFFFFFF;
		uint32		len;
		uint32		back = 0;

		if (entry == 0 || entry >> 24 == (rel & 0xFF) || wp_get64(m->payload + source) != wp_get64(target))
			continue;
		len = same_bytes(m->payload + source, target, Min(b->data_len - at, pos - source));
		while (back < at - start && back < STEP && back < source &&
			   m->payload[source - back - 1] == target[-1 - (int) back])
			back++;
		if (len + back < MIN_COPY || is_column(m, kind, b->data, at - back, len + back))
			continue;
		*copy = (WpCopy) {at - back - start, len + back, source - back};
		return true;
	}
	return false;
}

uint32
wp_match_block(WpMatcher *m, uint32 pos, const WpRecord *rec, uint32 i, uint32 rel, uint32 from, WpCopy *copies)
{
	const WpBlock *b = &rec->blocks[i];
	Kind	   *kind;
	uint32		n = 0;
	uint32		done = 0;

	if (b->data_len < MIN_DATA || rec->rmid == WP_RMID_XACT)
		return 0;
	kind = kind_of(m, rec, i, rel);
	if (expected_copy(m, kind, pos, b, from, &copies[0]))
		done = copies[0].skip + copies[0].len, n = 1;
	else if (kind->pause > 0)
		kind->pause--;
	while (n < WP_MAX_COPIES && kind->pause == 0 && search_copy(m, kind, pos, b, rel, done, &copies[n]))
	{
		done += copies[n].skip + copies[n].len;
		n++;
	}
	if (n > 0)
	{
		kind->failures = 0;
		kind->skip = copies[0].skip;
		kind->len = copies[0].len;
		kind->distance = copies[0].source - from;
	}
	else if (kind->pause == 0 && ++kind->failures >= PATIENCE)
		kind->pause = 1 << Min(kind->failures - PATIENCE, MAX_PAUSE_LOG);
	kind->last = b->data - m->payload;
	kind->last_len = b->data_len;
	return n;
}

/* Enter the words from start to end. */
static void
remember_words(WpMatcher *m, const uint8 *start, const uint8 *end, uint32 rel)
{
	uint32		tag = (rel & 0xFF) << 24;

	for (const uint8 *p = start; end - p >= 8; p += STEP)
		*slot_of(m, p) = tag | (uint32) (p - m->payload);
}

void
wp_match_remember(WpMatcher *m, const WpBlock *block, uint32 rel, const WpCopy *copies, uint32 ncopies)
{
	const uint8 *p = block->data;

	for (uint32 i = 0; i < ncopies; i++)
	{
		remember_words(m, p, p + copies[i].skip, rel);
		p += copies[i].skip + copies[i].len;
	}
	remember_words(m, p, block->data + block->data_len, rel);
}
