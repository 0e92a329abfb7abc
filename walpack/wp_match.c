/*-------------------------------------------------------------------------
 * wp_match.c
 *	  Encoder: search for parts of block data that occur earlier in the chunk.
 *
 * A table has the last place of each word of 8 bytes; every STEP bytes a word
 * is entered, so a copy of MIN_COPY bytes has one.  Words are entered when
 * something is searched for: in many loads that is hardly ever.  Records of
 * one kind mostly have their copies at the same distance: that is tried
 * first.  Kinds of records without copies are searched more and more rarely.
 *-------------------------------------------------------------------------
 */
#include "wp_port.h"

#include "wp_format.h"
#include "wp_match.h"

#define STEP			4
#define MIN_COPY		12
#define MAX_BACK		4
#define MIN_DATA		(8 + MIN_COPY)	/* an index entry with such a key */
#define KINDS			256
#define PATIENCE		16		/* searches in vain until some are left out */
#define MAX_PAUSE_LOG	10
#define MIN_PART		64		/* copies of a smaller part of the data may be
								 * by chance */
#define LOOK			32		/* bytes of a copy that are examined */
#define MIN_DISTINCT	11		/* required number of different ones: zstd is
								 * better for names, zeros and numbers */
#define AHEAD			24		/* bytes; within the slack behind the payload */
#define EXTRA			4		/* a copy must get this much longer than the
								 * last one, or keeps its length */

/* Knowledge about the data of one kind of record. */
typedef struct Kind
{
	uint32		key;
	uint32		last;			/* position of the last data, for comparison */
	uint32		last_len;
	uint32		failures;		/* consecutive searches in vain */
	uint32		pause;			/* records until the next search */
	uint32		skip;			/* of the last copy, which was the first of
								 * its data */
	uint32		len;
	uint32		distance;		/* offset from the expected place */
} Kind;

/* Bytes that can be found from the next search on. */
typedef struct Range
{
	uint32		start;
	uint32		len;
	uint32		rel;
} Range;

struct WpMatcher
{
	WpContext  *ctx;
	const uint8 *payload;
	Range	   *ranges;			/* whose words are not in the table yet */
	uint32		nranges;
	uint32		maxranges;
	uint64	   *table;			/* see make_entry */
	int			shift;
	Kind		kinds[KINDS];
};

WpMatcher *
wp_match_begin(WpContext *ctx, const uint8 *payload, uint32 raw_len)
{
	WpMatcher  *m = wp_zalloc(ctx, sizeof(WpMatcher));
	int			bits = 10;

	while (bits < 19 && ((uint32) 32 << bits) < raw_len)
		bits++;
	m->ctx = ctx;
	m->payload = payload;
	m->shift = 64 - bits;
	m->table = wp_zalloc(ctx, sizeof(uint64) << bits);
	return m;
}

static inline uint64
hash_word(uint64 word)
{
	return word * UINT64CONST(0x9E3779B97F4A7C15);
}

/*
 * Prefetch the table's entry for the word at p, because the processor mostly
 * waits for the table.
 */
static inline void
prefetch_place(const WpMatcher *m, const uint8 *p)
{
	__builtin_prefetch(&m->table[hash_word(wp_get64(p)) >> m->shift], 1);
}

/*
 * True if most of the word's bytes are zero, as in numbers, but hardly ever in
 * keys and positions.
 */
static inline bool
is_sparse(uint64 word)
{
	const uint64 low = UINT64CONST(0x0101010101010101);
	uint64		zeros = ((word - low) & ~word) >> 7 & low;

	return (zeros * low) >> 56 > 4;
}

/*
 * Make an entry: the top 16 bits of the hash that do not choose the slot, the
 * relation's 16, the position's 32.
 */
static inline uint64
make_entry(const WpMatcher *m, uint64 hash, uint32 rel, uint32 pos)
{
	return (hash << (64 - m->shift)) >> 48 << 48 |
		(uint64) (rel & 0xFFFF) << 32 | pos;
}

/* Count the equal bytes from a and b on, at most max. */
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

/*
 * True if the previous data has the same bytes at this place; then columns are
 * better than a copy.
 */
static bool
is_column(const WpMatcher *m, const Kind *kind, const uint8 *data, uint32 at,
		  uint32 len)
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

/*
 * True if the bytes have many values, as in keys.  For all others zstd needs
 * less than the eight bytes that describe a copy.
 */
static bool
is_varied(const uint8 *p, uint32 len)
{
	uint64		seen[4] = {0};
	uint32		n = 0;

	for (uint32 i = 0; i < Min(len, LOOK); i++)
	{
		uint64		bit = UINT64CONST(1) << (p[i] % 64);

		n += (seen[p[i] / 64] & bit) == 0;
		seen[p[i] / 64] |= bit;
	}
	return n >= MIN_DISTINCT;
}

/* Try a copy at the place of the kind's last one. */
static bool
expected_copy(const WpMatcher *m, const Kind *kind, uint32 pos,
			  const WpBlock *b, uint32 from, WpCopy *copy)
{
	uint32		source = from + kind->distance;
	uint32		end = kind->skip + kind->len;
	uint32		more;

	if (kind->len == 0 || kind->skip + kind->len > b->data_len ||
		source >= pos || kind->len > pos - source ||
		memcmp(m->payload + source, b->data + kind->skip, kind->len) != 0)
		return false;
	more = same_bytes(m->payload + source + kind->len, b->data + end,
					  Min(b->data_len - end, pos - source - kind->len));
	*copy = (WpCopy)
	{
		kind->skip, kind->len + (more >= EXTRA ? more : 0), source
	};
	Assert(copy->source + copy->len <= pos);
	Assert(copy->skip + copy->len <= b->data_len);
	return true;
}

/* Enter the words of the ranges remembered since the last search. */
static void
enter_words(WpMatcher *m)
{
	for (uint32 i = 0; i < m->nranges; i++)
	{
		const Range *r = &m->ranges[i];

		for (uint32 at = r->start; at + 8 <= r->start + r->len; at += STEP)
		{
			uint64		word = wp_get64(m->payload + at);
			uint64		hash = hash_word(word);

			prefetch_place(m, m->payload + at + AHEAD);
			if (!is_sparse(word))
				m->table[hash >> m->shift] = make_entry(m, hash, r->rel, at);
		}
	}
	m->nranges = 0;
}

/* Find the first copy at or behind offset start of the data. */
static bool
search_copy(WpMatcher *m, const Kind *kind, uint32 pos, const WpBlock *b,
			uint32 rel, uint32 start, WpCopy *copy)
{
	/* an index entry rarely has more words than that */
	for (uint32 at = start; at + MIN_COPY <= Min(b->data_len, start + AHEAD);
		 at++)
		prefetch_place(m, b->data + at);
	enter_words(m);
	for (uint32 at = start; at + MIN_COPY <= b->data_len; at++)
	{
		const uint8 *target = b->data + at;
		uint64		word = wp_get64(target);
		uint64		hash = hash_word(word);
		uint64		entry;
		uint64		differs;
		uint32		source;
		uint32		len;
		uint32		back = 0;

		prefetch_place(m, target + AHEAD);
		if (is_sparse(word))
			continue;
		entry = m->table[hash >> m->shift];
		differs = entry ^ make_entry(m, hash, rel, 0);
		source = (uint32) entry;

		/*
		 * usually another word, so its place need not be read; or the same
		 * relation
		 */
		if (differs >> 48 != 0 || differs >> 32 == 0 || entry == 0 ||
			wp_get64(m->payload + source) != word)
			continue;
		len = same_bytes(m->payload + source, target,
						 Min(b->data_len - at, pos - source));
		while (back < at - start && back < MAX_BACK && back < source &&
			   m->payload[source - back - 1] == target[-1 - (int) back])
			back++;
		if (!is_varied(target - back, len + back))
		{
			at += Min(len, LOOK) - 1;
			continue;
		}
		if (len + back < MIN_COPY ||
			is_column(m, kind, b->data, at - back, len + back))
			continue;
		*copy = (WpCopy)
		{
			at - back - start, len + back, source - back
		};
		Assert(copy->source + copy->len <= pos);
		Assert(start + copy->skip + copy->len <= b->data_len);
		return true;
	}
	return false;
}

uint32
wp_match_block(WpMatcher *m, uint32 pos, const WpRecord *rec, uint32 i,
			   uint32 rel, uint32 from, WpCopy *copies)
{
	const WpBlock *b = &rec->blocks[i];
	Kind	   *kind;
	uint32		n = 0;
	uint32		done = 0;
	uint32		copied = 0;

	if (b->data_len < MIN_DATA || rec->rmid == WP_RMID_XACT)
		return 0;
	kind = kind_of(m, rec, i, rel);
	if (expected_copy(m, kind, pos, b, from, &copies[0]))
	{
		done = copies[0].skip + copies[0].len;
		copied = copies[0].len;
		n = 1;
	}
	else if (kind->pause > 0)
		kind->pause--;
	while (n < WP_MAX_COPIES && kind->pause == 0 &&
		   search_copy(m, kind, pos, b, rel, done, &copies[n]))
	{
		done += copies[n].skip + copies[n].len;
		copied += copies[n].len;
		n++;
	}
	if (n > 0)
	{
		kind->skip = copies[0].skip;
		kind->len = copies[0].len;
		kind->distance = copies[0].source - from;
	}
	if (n > 0 && copied * MIN_PART >= b->data_len)
		kind->failures = 0;
	else if (kind->pause == 0 && ++kind->failures >= PATIENCE)
		kind->pause = 1 << Min(kind->failures - PATIENCE, MAX_PAUSE_LOG);
	kind->last = b->data - m->payload;
	kind->last_len = b->data_len;
	return n;
}

/* Remember bytes that can be found from the next search on. */
static void
remember_range(WpMatcher *m, const uint8 *start, const uint8 *end, uint32 rel)
{
	if (end - start < 8)
		return;
	if (m->nranges == m->maxranges)
	{
		uint32		max = Max(256, m->maxranges * 2);

		m->ranges = wp_realloc(m->ctx, m->ranges, m->maxranges * sizeof(Range),
							   max * sizeof(Range));
		m->maxranges = max;
	}
	m->ranges[m->nranges++] = (Range)
	{
		start - m->payload, end - start, rel
	};
}

void
wp_match_remember(WpMatcher *m, const WpBlock *block, uint32 rel,
				  const WpCopy *copies, uint32 ncopies)
{
	const uint8 *p = block->data;

	for (uint32 i = 0; i < ncopies; i++)
	{
		remember_range(m, p, p + copies[i].skip, rel);
		p += copies[i].skip + copies[i].len;
	}
	Assert(p <= block->data + block->data_len);
	remember_range(m, p, block->data + block->data_len, rel);
}
