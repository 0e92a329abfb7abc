/*-------------------------------------------------------------------------
 * pagedelta_shift.c
 *	  Deltas that detect shifts.
 *
 * Where the strings differ, a search looks for the next bytes that are equal.
 * It tries three distances between the positions in both strings: that of the
 * bytes before; that of the strings' ends; and any distance, by a table with
 * the position of every STEPth 8-byte word of the base.  A more expensive
 * search follows only if the cheaper one has left much to write.
 *-------------------------------------------------------------------------
 */
#include "pagedelta_int.h"
#include "pagedelta_shift.h"

/* A hunk costs three bytes; shorter runs of equal bytes do not justify one. */
#define MIN_GAP		4

#define MAX_HUNKS	127

/* Deltas of up to this many bytes do not justify a second try, or a table. */
#define SHORT_DELTA 24
#define MIDDLE_DELTA	64

#define STEP		4
#define MIN_TABLE_BITS	6
#define MAX_TABLE_BITS	11
#define NO_PLACE	UINT16_MAX

/*
 * A match from the table must be longer by this number of bytes than the best
 * one that was found before.
 */
#define MIN_MOVE	12

/*
 * A match shorter than this may be by chance.  So the search for a better one
 * goes on for this number of bytes behind its beginning.
 */
#define GOOD_MATCH	32

/*
 * If the existing delta has at most this number of bytes, a second one is
 * written to a spare buffer, else it is only measured first.
 */
#define SPARE	1024

/* The target of the delta.  Without a buffer, bytes are only counted. */
typedef struct Writer
{
	uint8_t    *p;				/* or NULL */
	uint32_t	len;
	uint32_t	room;
} Writer;

/* The strings that are compared, and the progress in them. */
typedef struct Strings
{
	const uint8_t *from;
	uint32_t	fromlen;
	const uint8_t *to;
	uint32_t	tolen;
	uint32_t	from_done;		/* positions behind the last hunk */
	uint32_t	to_done;
	uint32_t	nhunks;
} Strings;

/*
 * The positions of the base's words.  The table has twice as many slots as
 * there are words, up to a limit.
 */
typedef struct Places
{
	int			shift;
	uint16_t	table[1 << MAX_TABLE_BITS];
} Places;

/* ---- bytes ------------------------------------------------------------- */

static inline uint32_t
min32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t
common_prefix(const uint8_t *a, const uint8_t *b, uint32_t len)
{
	uint32_t	i;

	for (i = 0; i + 8 <= len; i += 8)
	{
		uint64_t	differs = pd_word64(a + i) ^ pd_word64(b + i);

		if (differs != 0)
			return i + (uint32_t) __builtin_ctzll(differs) / 8;
	}
	while (i < len && a[i] == b[i])
		i++;
	return i;
}

static uint32_t
common_suffix(const uint8_t *a_end, const uint8_t *b_end, uint32_t len)
{
	uint32_t	i;

	for (i = 0; i + 4 <= len; i += 4)
	{
		uint32_t	differs = pd_word32(a_end - i - 4) ^
			pd_word32(b_end - i - 4);

		if (differs != 0)
			return i + (uint32_t) __builtin_clz(differs) / 8;
	}
	while (i < len && a_end[-1 - (int) i] == b_end[-1 - (int) i])
		i++;
	return i;
}

static void
put_bytes(Writer *w, const uint8_t *bytes, uint32_t len)
{
	if (w->p != NULL && w->room >= w->len && len <= w->room - w->len)
		memcpy(w->p + w->len, bytes, len);
	w->len += len;
}

static inline void
put_varint(Writer *w, uint32_t v)
{
	uint8_t		bytes[5];
	uint32_t	n = 0;

	if (v < 0x80 && w->p != NULL && w->len < w->room)
	{
		w->p[w->len++] = (uint8_t) v;
		return;
	}
	for (; v >= 0x80; v >>= 7)
		bytes[n++] = (uint8_t) (v | 0x80);
	bytes[n++] = (uint8_t) v;
	put_bytes(w, bytes, n);
}

/*
 * Write a hunk.  It copies the bytes from the end of the last hunk up to "to",
 * which are the same in both strings.
 */
static void
put_hunk(Writer *w, Strings *s, uint32_t to, uint32_t dropped,
		 uint32_t inserted)
{
	uint32_t	copy = to - s->to_done;

	put_varint(w, copy);
	put_varint(w, inserted << 1 | (dropped != inserted));
	if (dropped != inserted)
		put_varint(w, dropped);
	put_bytes(w, s->to + to, inserted);
	s->from_done += copy + dropped;
	s->to_done += copy + inserted;
	s->nhunks++;
}

/* ---- at the same place ------------------------------------------------- */

/*
 * Find the end of the changed bytes that begin at i.  MIN_GAP equal bytes
 * follow, or the end of the strings.
 */
static uint32_t
run_end(const Strings *s, uint32_t i, uint32_t len)
{
	uint32_t	end = i + 1;

	while (end + MIN_GAP <= len)
	{
		uint32_t	differs = pd_word32(s->from + end) ^ pd_word32(s->to + end);

		if (differs == 0)
			return end;
		end += 4 - (uint32_t) __builtin_clz(differs) / 8;
	}
	for (i = end; i < len && i < end + MIN_GAP; i++)
	{
		if (s->from[i] != s->to[i])
			end = i + 1;
	}
	return end;
}

/*
 * Write hunks for bytes that differ at the same place.  If the strings differ
 * in length, the last hunk makes up for that.
 */
static void
compare_places(Writer *w, Strings *s, uint32_t start, uint32_t suffix)
{
	uint32_t	len = min32(s->fromlen, s->tolen) - suffix;

	while (start < len)
	{
		uint32_t	end = s->nhunks == MAX_HUNKS - 1 ? len :
			run_end(s, start, len);

		if (end == len)
			break;
		put_hunk(w, s, start, end - start, end - start);
		start = end + common_prefix(s->from + end, s->to + end, len - end);
	}
	if (start < len || s->fromlen != s->tolen)
		put_hunk(w, s, start, s->fromlen - suffix - start,
				 s->tolen - suffix - start);
}

/* ---- what has moved ---------------------------------------------------- */

static inline uint32_t
slot_of(const Places *places, uint64_t word)
{
	return (uint32_t) ((word * UINT64_C(0x9E3779B97F4A7C15)) >> places->shift);
}

/*
 * Build the table.  It keeps the first position of a word, because a run of
 * equal bytes is best copied from its beginning.
 */
static void
enter_places(Places *places, const uint8_t *from, uint32_t begin, uint32_t end)
{
	int			bits = MIN_TABLE_BITS;

	while (bits < MAX_TABLE_BITS &&
		   (UINT32_C(1) << bits) < (end - begin) / (STEP / 2))
		bits++;
	places->shift = 64 - bits;
	memset(places->table, 0xFF, sizeof(uint16_t) << bits);
	for (uint32_t i = begin; i + 8 <= end; i += STEP)
	{
		uint16_t   *slot = &places->table[slot_of(places, pd_word64(from + i))];

		if (*slot == NO_PLACE)
			*slot = (uint16_t) i;
	}
}

/*
 * A match: len bytes are equal, behind "dropped" bytes of the base and
 * "inserted" bytes of the new string.
 */
typedef struct Match
{
	uint32_t	dropped;
	uint32_t	inserted;
	uint32_t	len;
} Match;

/*
 * The parameters of a search: the strings' ends, and the table, which may be
 * NULL.
 */
typedef struct Search
{
	const Strings *s;
	const Places *places;
	uint32_t	from_end;
	uint32_t	to_end;
} Search;

/*
 * Replace the match if the strings are equal at both places for MIN_GAP bytes
 * more than the match has, or for more.
 */
static inline void
try_match(const Search *search, uint32_t from, uint32_t to, uint32_t from_at,
		  uint32_t to_at, Match *match)
{
	const Strings *s = search->s;
	uint32_t	len;

	if (from_at + MIN_GAP > search->from_end ||
		to_at + MIN_GAP > search->to_end ||
		pd_word32(s->from + from_at) != pd_word32(s->to + to_at))
		return;
	len = common_prefix(s->from + from_at, s->to + to_at,
						min32(search->from_end - from_at,
							  search->to_end - to_at));
	if (len >= match->len + MIN_GAP)
		*match = (Match)
	{
		from_at - from, to_at - to, len
	};
}

/*
 * Try the positions in the base that the table has for the word of the new
 * string at to + k.  The match may begin a little earlier.
 */
static inline void
try_place(const Search *search, uint32_t from, uint32_t to, uint32_t k,
		  Match *match)
{
	const Strings *s = search->s;
	uint64_t	word;
	uint32_t	at;
	uint32_t	back = 0;
	uint32_t	len;

	if (to + k + 8 > search->to_end)
		return;
	word = pd_word64(s->to + to + k);
	at = search->places->table[slot_of(search->places, word)];
	if (at == NO_PLACE || at < from || at + 8 > search->from_end ||
		pd_word64(s->from + at) != word)
		return;
	while (back < k && back < at - from &&
		   s->from[at - back - 1] == s->to[to + k - back - 1])
		back++;
	len = back +
		common_prefix(s->from + at, s->to + to + k,
					  min32(search->from_end - at, search->to_end - to - k));
	if (len >= match->len + MIN_MOVE)
		*match = (Match)
	{
		at - back - from, k - back, len
	};
}

/*
 * Find a match behind "from" and "to", where the strings differ.  Returns
 * false if the strings have no equal bytes within the next max bytes.
 */
static bool
find_match(const Search *search, uint32_t from, uint32_t to, uint32_t max,
		   Match *match)
{
	const uint8_t *a = search->s->from + from;
	const uint8_t *b = search->s->to + to;
	const uint8_t *a_end = search->s->from + search->from_end;
	uint32_t	rest = search->to_end - to;
	uint32_t	old_rest = search->from_end - from;

	/*
	 * Positions of the new string to try: at any distance up to end, at the
	 * same distance up to same_end, and at the distance of the ends from
	 * last_begin on.
	 */
	uint32_t	end = rest < MIN_GAP ? 0 : min32(max, rest - MIN_GAP) + 1;
	uint32_t	same_end = old_rest < MIN_GAP ? 0 :
		min32(end, old_rest - MIN_GAP + 1);
	uint32_t	last_begin = rest == old_rest ? UINT32_MAX :
		rest > old_rest ? rest - old_rest : 0;

	*match = (Match)
	{
		0
	};
	for (uint32_t k = 0; k < end; k++)
	{
		uint32_t	word = pd_word32(b + k);

		if (k < same_end && pd_word32(a + k) == word)
			try_match(search, from, to, from + k, to + k, match);
		if (k >= last_begin && pd_word32(a_end - rest + k) == word)
			try_match(search, from, to, search->from_end - rest + k, to + k,
					  match);
		if (search->places != NULL)
			try_place(search, from, to, k, match);
		if (match->len >= GOOD_MATCH)
			break;
		if (match->len > 0)
			end = min32(end, match->inserted + GOOD_MATCH);
	}
	return match->len > 0;
}

/*
 * Write hunks for moved bytes.  The search stops when the delta reaches the
 * limit; then w->len is at least that.
 */
static void
find_moves(Writer *w, Strings *s, uint32_t start, uint32_t suffix,
		   const Places *places, uint32_t limit)
{
	Search		search = {s, places, s->fromlen - suffix, s->tolen - suffix};
	uint32_t	from = start;
	uint32_t	to = start;

	while ((from < search.from_end || to < search.to_end) && w->len < limit)
	{
		uint32_t	same = common_prefix(s->from + from, s->to + to,
										 min32(search.from_end - from,
											   search.to_end - to));
		Match		match;

		from += same;
		to += same;
		if (from == search.from_end && to == search.to_end)
			break;
		if (s->nhunks == MAX_HUNKS - 1 ||
			!find_match(&search, from, to, limit - w->len, &match))
		{
			put_hunk(w, s, to, search.from_end - from, search.to_end - to);
			break;
		}
		put_hunk(w, s, to, match.dropped, match.inserted);
		from = s->from_done;
		to = s->to_done;
	}
}

/* ---- making, applying -------------------------------------------------- */

/* The number of hunks precedes them. */
static void
put_count(Writer *w, const Strings *s)
{
	if (w->p != NULL && w->room > 0)
		w->p[0] = (uint8_t) s->nhunks;
}

/*
 * Replace the delta in w if one with moves is shorter.  If that does not fit
 * into the spare buffer, its length is computed before it is written.
 */
static void
improve(Writer *w, const Strings *strings, uint32_t start, uint32_t suffix,
		const Places *places)
{
	uint8_t		spare[SPARE];
	bool		fits = w->len <= SPARE;
	Strings		s = *strings;
	Writer		other = {fits ? spare : NULL, 1, fits ? SPARE : 0};

	find_moves(&other, &s, start, suffix, places, w->len);
	if (other.len >= w->len)
		return;
	if (fits)
	{
		put_count(&other, &s);
		w->len = 0;
		put_bytes(w, spare, other.len);
		return;
	}
	s = *strings;
	w->len = 1;
	find_moves(w, &s, start, suffix, places, UINT32_MAX);
	put_count(w, &s);
}

int
pagedelta_shift_make(const void *from, uint32_t fromlen, const void *to,
					 uint32_t tolen, bool moves, void *delta, uint32_t room)
{
	const Strings strings = {from, fromlen, to, tolen, 0, 0, 0};
	Strings		s = strings;
	Writer		w = {delta, 1, room};
	uint32_t	shorter = min32(fromlen, tolen);
	uint32_t	start = common_prefix(from, to, shorter);
	uint32_t	suffix = 0;

	if (fromlen != tolen)
		suffix = common_suffix(s.from + fromlen, s.to + tolen, shorter - start);
	compare_places(&w, &s, start, suffix);
	put_count(&w, &s);
	/* nothing can match if the base has too few bytes behind the prefix */
	moves = moves && fromlen >= start + MIN_MOVE;
	if (moves && w.len > SHORT_DELTA && fromlen != tolen)
		improve(&w, &strings, start, suffix, NULL);
	if (moves && w.len > MIDDLE_DELTA && fromlen < NO_PLACE)
	{
		Places		places;

		if (fromlen == tolen)
			suffix = common_suffix(s.from + fromlen, s.to + tolen,
								   shorter - start);
		enter_places(&places, s.from, start, fromlen - suffix);
		improve(&w, &strings, start, suffix, &places);
	}
	return w.len <= room ? (int) w.len : PAGEDELTA_NO_ROOM;
}

int
pagedelta_shift_make_whole(uint32_t fromlen, const void *to, uint32_t tolen,
						   void *delta, uint32_t room)
{
	Strings		s = {NULL, fromlen, to, tolen, 0, 0, 0};
	Writer		w = {delta, 1, room};

	put_hunk(&w, &s, 0, fromlen, tolen);
	put_count(&w, &s);
	return w.len <= room ? (int) w.len : PAGEDELTA_NO_ROOM;
}

/* Read a number at *p, before end.  Returns false if there is none. */
static inline bool
get_varint(const uint8_t **p, const uint8_t *end, uint32_t *v)
{
	if (*p < end && **p < 0x80)
	{
		*v = *(*p)++;
		return true;
	}
	*v = 0;
	for (int shift = 0; shift < 35 && *p < end; shift += 7)
	{
		uint8_t		byte = *(*p)++;

		*v |= (uint32_t) (byte & 0x7F) << shift;
		if (byte < 0x80)
			return true;
	}
	return false;
}

bool
pagedelta_shift_is_whole(const void *delta, uint32_t len, uint32_t fromlen)
{
	const uint8_t *p = delta;
	const uint8_t *end = p + len;
	uint32_t	nhunks;
	uint32_t	copy;
	uint32_t	ins;
	uint32_t	drop;

	if (!get_varint(&p, end, &nhunks) || !get_varint(&p, end, &copy) ||
		!get_varint(&p, end, &ins))
		return false;
	drop = ins >> 1;
	if ((ins & 1) && !get_varint(&p, end, &drop))
		return false;
	return nhunks == 1 && copy == 0 && drop == fromlen &&
		ins >> 1 == (size_t) (end - p);
}

/*
 * Read a hunk without the bytes that it inserts, which follow.  Returns false
 * if the hunk is damaged, or does not match what the base has left.
 */
static inline bool
get_hunk(const uint8_t **p, const uint8_t *end, uint32_t left, uint32_t *copy,
		 uint32_t *drop, uint32_t *ins)
{
	if (!get_varint(p, end, copy) || !get_varint(p, end, ins))
		return false;
	*drop = *ins >> 1;
	if ((*ins & 1) && !get_varint(p, end, drop))
		return false;
	*ins >>= 1;
	return *ins <= (size_t) (end - *p) && *copy <= left &&
		*drop <= left - *copy;
}

int
pagedelta_shift_invert(const void *base, uint32_t baselen, const void *delta,
					   uint32_t len, void *inverse, uint32_t room)
{
	const uint8_t *p = delta;
	const uint8_t *end = p + len;
	const uint8_t *from = base;
	Writer		w = {inverse, 0, room};
	uint32_t	nhunks;

	if (!get_varint(&p, end, &nhunks))
		return PAGEDELTA_BAD_DELTA;
	put_varint(&w, nhunks);
	for (; nhunks > 0; nhunks--)
	{
		uint32_t	copy;
		uint32_t	ins;
		uint32_t	drop;

		if (!get_hunk(&p, end, baselen, &copy, &drop, &ins))
			return PAGEDELTA_BAD_DELTA;
		put_varint(&w, copy);
		put_varint(&w, drop << 1 | (drop != ins));
		if (drop != ins)
			put_varint(&w, ins);
		put_bytes(&w, from + copy, drop);
		p += ins;
		from += copy + drop;
		baselen -= copy + drop;
	}
	return w.len <= room ? (int) w.len : PAGEDELTA_NO_ROOM;
}

int
pagedelta_shift_apply(const void *base, uint32_t baselen, const void *delta,
					  uint32_t len, uint32_t *used, void *out, uint32_t room)
{
	const uint8_t *p = delta;
	const uint8_t *end = p + len;
	const uint8_t *from = base;
	uint8_t    *to = out;
	uint32_t	pos = 0;
	uint32_t	done = 0;
	uint32_t	nhunks;

	if (!get_varint(&p, end, &nhunks))
		return PAGEDELTA_BAD_DELTA;
	for (; nhunks > 0; nhunks--)
	{
		uint32_t	copy;
		uint32_t	ins;
		uint32_t	drop;

		if (!get_hunk(&p, end, baselen - pos, &copy, &drop, &ins))
			return PAGEDELTA_BAD_DELTA;
		if (copy > room - done || ins > room - done - copy)
			return PAGEDELTA_NO_ROOM;
		memcpy(to + done, from + pos, copy);
		memcpy(to + done + copy, p, ins);
		p += ins;
		done += copy + ins;
		pos += copy + drop;
	}
	if (baselen - pos > room - done)
		return PAGEDELTA_NO_ROOM;
	memcpy(to + done, from + pos, baselen - pos);
	*used = (uint32_t) (p - (const uint8_t *) delta);
	return (int) (done + baselen - pos);
}
