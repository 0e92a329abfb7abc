/*-------------------------------------------------------------------------
 * pb_tids.c
 *	  An item's TIDs, packed.
 *
 * One TID: the first byte's two high bits tell the length, 3, 4, 5 or 7 bytes;
 * the rest, high byte first, is the block times 512 plus the offset, or with 7
 * bytes the block times 65536 plus the offset.
 *
 * A posting list: length in bytes of what follows (2 bytes), the first TID as
 * above, then for each further one the distance from the one before as a
 * varint: of block times 512 plus offset where all offsets are below 512, else
 * (the length's high bit) of block times 65536 plus offset.
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/pg_bswap.h"

#include "pb_tids.h"

#define WIDE	0x8000

static inline uint64
tid_number(const ItemPointerData *tid, bool wide)
{
	return ((uint64) ItemPointerGetBlockNumberNoCheck(tid) << (wide ? 16 : 9)) |
		ItemPointerGetOffsetNumberNoCheck(tid);
}

static inline void
number_tid(uint64 n, bool wide, ItemPointer tid)
{
	ItemPointerSet(tid, (BlockNumber) (n >> (wide ? 16 : 9)),
				   n & (wide ? 0xFFFF : 0x1FF));
}

#ifdef USE_ASSERT_CHECKING
static bool
is_tid(const uint8 *p, int len, const ItemPointerData *tid)
{
	ItemPointerData got;

	return pb_tid_get(p, p + len, &got) == p + len &&
		ItemPointerEquals(&got, unconstify(ItemPointerData *, tid));
}
#endif

int
pb_tid_put(uint8 *to, const ItemPointerData *tid)
{
	bool		wide = ItemPointerGetOffsetNumberNoCheck(tid) >= 512;
	uint64		n = tid_number(tid, wide);
	int			len = wide || n >> 38 ? 7 : n >> 30 ? 5 : n >> 22 ? 4 : 3;
	static const uint8 code[] = {[3] = 0x00,[4] = 0x40,[5] = 0x80,[7] = 0xC0};

	if (len == 7)
		n = tid_number(tid, true);
	for (int i = len - 1; i >= 0; i--)
	{
		to[i] = (uint8) n;
		n >>= 8;
	}
	to[0] |= code[len];
	Assert(is_tid(to, len, tid));
	return len;
}

/*
 * Returns the address behind the TID, or NULL if it does not end before "end"
 * or is not a TID.
 */
const uint8 *
pb_tid_get(const uint8 *p, const uint8 *end, ItemPointer tid)
{
	static const uint8 lengths[] = {3, 4, 5, 7};
	int			len;
	uint64		n;

	if (p >= end)
		return NULL;
	len = lengths[*p >> 6];
	if (end - p < len)
		return NULL;
	n = *p & 0x3F;
	for (int i = 1; i < len; i++)
		n = n << 8 | p[i];
	number_tid(n, len == 7, tid);
	if (!OffsetNumberIsValid(ItemPointerGetOffsetNumberNoCheck(tid)) ||
		(len == 7 && n >> 48))
		return NULL;
	return p + len;
}

static inline bool
put_distance(uint8 **p, uint8 *end, uint64 v)
{
	do
	{
		if (*p >= end)
			return false;
		*(*p)++ = (v & 0x7F) | (v > 0x7F ? 0x80 : 0);
		v >>= 7;
	} while (v);
	return true;
}

/* Read the varint at p.  Returns the address behind it, or NULL. */
static inline const uint8 *
get_distance(const uint8 *p, const uint8 *end, uint64 *d)
{
	int			shift = 0;

	*d = 0;
	for (;;)
	{
		uint8		b;

		if (p >= end || shift > 49)
			return NULL;
		b = *p++;
		*d |= (uint64) (b & 0x7F) << shift;
		if (!(b & 0x80))
			return p;
		shift += 7;
	}
}

/* The size of a TID in a list behind another one. */
int
pb_posting_distance(const ItemPointerData *a, const ItemPointerData *b)
{
	bool		wide = ItemPointerGetOffsetNumberNoCheck(a) >= 512 ||
		ItemPointerGetOffsetNumberNoCheck(b) >= 512;
	uint64		d = tid_number(b, wide) - tid_number(a, wide);
	int			len = 1;

	Assert(tid_number(b, wide) > tid_number(a, wide));
	for (; d > 0x7F; d >>= 7)
		len++;
	return len;
}

/*
 * Pack TIDs, in order.  Returns the length in bytes, or 0 if there is not
 * enough room.
 */
int
pb_posting_put(uint8 *to, int room, const ItemPointerData *tids, int n)
{
	uint8	   *p = to + 2;
	uint8	   *end = to + room;
	bool		wide = false;
	uint64		last;
	uint16		len;

	Assert(n > 1);
	if (room < 2 + PB_TID_MAX_LEN)
		return 0;
	for (int i = 0; i < n; i++)
		wide |= ItemPointerGetOffsetNumberNoCheck(&tids[i]) >= 512;
	p += pb_tid_put(p, &tids[0]);
	last = tid_number(&tids[0], wide);
	for (int i = 1; i < n; i++)
	{
		uint64		v = tid_number(&tids[i], wide);

		Assert(v > last);
		if (!put_distance(&p, end, v - last))
			return 0;
		last = v;
	}
	len = (p - to - 2) | (wide ? WIDE : 0);
	memcpy(to, &len, 2);
	return p - to;
}

/* Find the list's TIDs, or NULL. */
static const uint8 *
posting_bounds(const uint8 *p, const uint8 **end, bool *wide)
{
	uint16		len;

	if (*end - p < 2)
		return NULL;
	memcpy(&len, p, 2);
	*wide = (len & WIDE) != 0;
	len &= ~WIDE;
	p += 2;
	if (len > *end - p || len > PB_MAX_TIDS)
		return NULL;
	*end = p + len;
	return p;
}

/* Returns the address behind an item's TIDs, or NULL. */
const uint8 *
pb_tids_end(const uint8 *p, const uint8 *end, bool posting)
{
	ItemPointerData tid;
	bool		wide;

	if (p >= end)
		return NULL;
	if (!posting)
		return pb_tid_get(p, end, &tid);
	return posting_bounds(p, &end, &wide) ? end : NULL;
}

const uint8 *
pb_posting_first(const uint8 *p, const uint8 *end, ItemPointer tid)
{
	bool		wide;

	p = posting_bounds(p, &end, &wide);
	return p ? pb_tid_get(p, end, tid) : NULL;
}

/*
 * Unpack a list; tids has room for PB_MAX_TIDS.  Returns the address behind
 * the list, or NULL if it is damaged.
 */
const uint8 *
pb_posting_get(const uint8 *p, const uint8 *end, ItemPointer tids, int *n)
{
	bool		wide;
	uint64		v;
	int			i = 0;

	p = posting_bounds(p, &end, &wide);
	if (p == NULL || (p = pb_tid_get(p, end, &tids[i++])) == NULL)
		return NULL;
	v = tid_number(&tids[0], wide);
	while (p < end)
	{
		uint64		d;

		p = get_distance(p, end, &d);
		if (p == NULL)
			return NULL;
		v += d;
		if (d == 0 || v >> (wide ? 48 : 41))
			return NULL;
		number_tid(v, wide, &tids[i]);
		if (!OffsetNumberIsValid(ItemPointerGetOffsetNumberNoCheck(&tids[i])))
			return NULL;
		i++;
	}
	*n = i;
	return p;
}

#define EACH_BYTE	UINT64CONST(0x0101010101010101)
#define EVEN_BYTES	UINT64CONST(0x00FF00FF00FF00FF)

static inline uint64
add_lanes(uint64 lanes, uint64 bytes)
{
	return lanes + (bytes & EVEN_BYTES) + ((bytes >> 8) & EVEN_BYTES);
}

static inline uint64
sum_lanes(uint64 lanes)
{
	return (lanes & 0xFFFF) + ((lanes >> 16) & 0xFFFF) +
		((lanes >> 32) & 0xFFFF) + (lanes >> 48);
}

/*
 * Sum up eight bytes of varints at once.  A byte's level is the number of
 * bytes of its varint in front of it.  Its weight is 128 to the power of its
 * level.
 */
typedef struct Summing
{
	uint64		lanes[4];		/* sums of bytes of level i or more */
	uint64		on;				/* the last byte, if its varint continues */
	uint64		level[4];		/* ... its level is i or more */
	uint64		too_high;
} Summing;

static inline uint64
next_level(Summing *s, int i, uint64 level, uint64 on, uint64 w)
{
	uint64		mine = i == 1 ? on : on & ((level << 8) | s->level[i - 1]);

	s->lanes[i] = add_lanes(s->lanes[i], w & (mine * 0x7F));
	return mine;
}

static inline void
sum_word(Summing *s, const uint8 *p, int n)
{
	uint64		w = 0;
	uint64		on;
	uint64		one;
	uint64		two;
	uint64		three;

	memcpy(&w, p, n);
#ifdef WORDS_BIGENDIAN
	w = pg_bswap64(w);
#endif
	on = (w >> 7) & EACH_BYTE;
	w &= 0x7F * EACH_BYTE;
	s->lanes[0] = add_lanes(s->lanes[0], w);
	one = next_level(s, 1, 0, (on << 8) | s->on, w);
	s->on = on >> 56;
	two = next_level(s, 2, one, one, w);
	three = next_level(s, 3, two, one, w);
	s->too_high |= one & ((three << 8) | s->level[3]);
	s->level[1] = one >> 56;
	s->level[2] = two >> 56;
	s->level[3] = three >> 56;
}

/*
 * Sum up a list's distances.  Returns false if one is too long, or the list
 * ends inside one.
 */
static bool
sum_distances(const uint8 *p, const uint8 *end, uint64 *sum)
{
	Summing		s = {0};

	if (p < end && (end[-1] & 0x80))
		return false;
	for (; end - p >= (int) sizeof(uint64); p += sizeof(uint64))
		sum_word(&s, p, sizeof(uint64));
	if (p < end)
		sum_word(&s, p, end - p);
	*sum = sum_lanes(s.lanes[0]) +
		127 * (sum_lanes(s.lanes[1]) +
			   128 * (sum_lanes(s.lanes[2]) + 128 * sum_lanes(s.lanes[3])));
	return s.too_high == 0;
}

/*
 * Find the place of a number in a list.  The first distance is at p, counted
 * from v.  v becomes the number in front of the place, next the one behind it,
 * or 0.  Returns NULL if the list is damaged.
 */
static const uint8 *
find_place(const uint8 *p, const uint8 *end, uint64 new, uint64 *v,
		   uint64 *next)
{
	uint64		d;

	*next = 0;
	if (sum_distances(p, end, &d) && *v + d < new)
	{
		*v += d;
		return end;
	}
	while (p < end)
	{
		const uint8 *behind = get_distance(p, end, &d);

		if (behind == NULL)
			return NULL;
		if (*v + d >= new)
		{
			*next = *v + d;
			return p;
		}
		*v += d;
		p = behind;
	}
	return p;
}

/*
 * Add a TID to a list that has an earlier one, and numbers wide enough.
 * Returns false if that is not the case, or the list has the TID already, or
 * is damaged.
 */
bool
pb_posting_add(const uint8 *p, const uint8 *end, const ItemPointerData *tid,
			   PbTidEdit *edit)
{
	const uint8 *begin = p;
	const uint8 *behind;
	bool		wide;
	ItemPointerData first;
	uint64		new;
	uint64		v;
	uint64		next;
	uint64		d;
	uint8	   *to = edit->bytes;
	uint16		len;

	p = posting_bounds(p, &end, &wide);
	if (p == NULL || (!wide && ItemPointerGetOffsetNumberNoCheck(tid) >= 512))
		return false;
	behind = pb_tid_get(p, end, &first);
	if (behind == NULL)
		return false;
	new = tid_number(tid, wide);
	v = tid_number(&first, wide);
	if (v >= new)
		return false;
	p = find_place(behind, end, new, &v, &next);
	if (p == NULL || next == new)
		return false;
	edit->at = p - begin;
	edit->remove = p < end ? get_distance(p, end, &d) - p : 0;
	(void) put_distance(&to, edit->bytes + sizeof(edit->bytes), new - v);
	if (p < end)
		(void) put_distance(&to, edit->bytes + sizeof(edit->bytes), next - new);
	Assert(to <= edit->bytes + sizeof(edit->bytes) && new > v &&
		   (p == end || next > new));
	edit->len = to - edit->bytes;
	len = end - begin - 2 + edit->len - edit->remove;
	edit->list_len = len | (wide ? WIDE : 0);
	return true;
}
