/*-------------------------------------------------------------------------
 * tidset_block.c
 *	  The offsets of one block as a slot of 64 bits.
 *
 * The lowest two bits are the form.  The other fields follow from bit 2 up:
 *
 *	BITMAP	bit o + 1 is set for offset o, 1 .. 62
 *	RUN		14 bits first, 14 bits last offset of a run without gaps
 *	LIST	2 bits count - 1, up to four times 14 bits
 *	FAR		2 bits kind, 20 bits position of bytes in the leaf, 14 bits
 *			count of offsets, 11 bits base, 11 bits length.  The bytes are
 *			offsets of one byte or two, or a bitmap, whose first byte has the
 *			offsets from 8 * base on.  Only a bitmap has base and length.
 *
 * A set of offsets has exactly one slot, so equal blocks have equal slots
 * unless they are far.
 *-------------------------------------------------------------------------
 */
#include "tidset_int.h"

#define OFFSET_BITS		14
#define OFFSET_MASK		((1u << OFFSET_BITS) - 1)

#define FAR_BYTES		0
#define FAR_WORDS		1
#define FAR_BITS		2

#define FAR_POS_SHIFT	4
#define FAR_POS_MASK	((UINT64_C(1) << 20) - 1)
#define FAR_COUNT_SHIFT 24
#define FAR_BASE_SHIFT	38
#define FAR_LEN_SHIFT	49
#define FAR_BYTES_MASK	((1u << 11) - 1)

/* ---- sets of offsets ---- */

void
ts_bits_clear(TsBits *bits)
{
	bits->nwords = 0;
}

void
ts_bits_add(TsBits *bits, uint16_t offset)
{
	int			word = offset >> 6;

	TS_ASSERT(offset >= 1 && offset <= TIDSET_MAX_OFFSET);
	while (bits->nwords <= word)
		bits->words[bits->nwords++] = 0;
	bits->words[word] |= UINT64_C(1) << (offset & 63);
}

static int
bits_count(const TsBits *bits)
{
	int			count = 0;

	for (int i = 0; i < bits->nwords; i++)
		count += tidset_popcount(bits->words[i]);
	return count;
}

static int
bits_first(const TsBits *bits)
{
	int			i = 0;

	while (bits->words[i] == 0)
		i++;
	return 64 * i + __builtin_ctzll(bits->words[i]);
}

/* Get the largest offset; the last word is never zero. */
static int
bits_last(const TsBits *bits)
{
	return 64 * bits->nwords - 1 -
		__builtin_clzll(bits->words[bits->nwords - 1]);
}

/* List all offsets in ascending order; returns their number. */
static int
bits_offsets(const TsBits *bits, uint16_t *offsets)
{
	int			n = 0;

	for (int i = 0; i < bits->nwords; i++)
	{
		for (uint64_t word = bits->words[i]; word != 0; word &= word - 1)
			offsets[n++] = (uint16_t) (64 * i + __builtin_ctzll(word));
	}
	return n;
}

static uint8_t
bits_byte(const TsBits *bits, int i)
{
	return (uint8_t) (bits->words[i / 8] >> (8 * (i % 8)));
}

/* ---- parts of slots ---- */

static int
run_first(uint64_t slot)
{
	return (slot >> 2) & OFFSET_MASK;
}

static int
run_last(uint64_t slot)
{
	return (slot >> (2 + OFFSET_BITS)) & OFFSET_MASK;
}

static int
list_count(uint64_t slot)
{
	return (int) ((slot >> 2) & 3) + 1;
}

static uint16_t
list_offset(uint64_t slot, int i)
{
	return (slot >> (4 + OFFSET_BITS * i)) & OFFSET_MASK;
}

static int
far_kind(uint64_t slot)
{
	return (slot >> 2) & 3;
}

static int
far_count(uint64_t slot)
{
	return (slot >> FAR_COUNT_SHIFT) & OFFSET_MASK;
}

static uint32_t
far_base(uint64_t slot)
{
	return (slot >> FAR_BASE_SHIFT) & FAR_BYTES_MASK;
}

uint32_t
ts_slot_far_pos(uint64_t slot)
{
	return (uint32_t) ((slot >> FAR_POS_SHIFT) & FAR_POS_MASK);
}

/* The number of bytes that the slot points to; 0 if it is not far. */
uint32_t
ts_slot_far_len(uint64_t slot)
{
	if (TS_SLOT_TAG(slot) != TS_SLOT_FAR)
		return 0;
	switch (far_kind(slot))
	{
		case FAR_BYTES:
			return (uint32_t) far_count(slot);
		case FAR_WORDS:
			return 2 * (uint32_t) far_count(slot);
		default:
			return (slot >> FAR_LEN_SHIFT) & FAR_BYTES_MASK;
	}
}

/* Change a far slot so that its bytes are at another position. */
uint64_t
ts_slot_moved(uint64_t slot, uint32_t pos)
{
	slot &= ~(FAR_POS_MASK << FAR_POS_SHIFT);
	return slot | (uint64_t) pos << FAR_POS_SHIFT;
}

/* ---- encoding ---- */

static uint64_t
encode_list(const TsBits *bits)
{
	uint16_t	offsets[TS_LIST_MAX];
	int			n = bits_offsets(bits, offsets);
	uint64_t	slot = TS_SLOT_LIST | (uint64_t) (n - 1) << 2;

	for (int i = 0; i < n; i++)
		slot |= (uint64_t) offsets[i] << (4 + OFFSET_BITS * i);
	return slot;
}

/*
 * Make the slot of up to 4 offsets of one byte, some of them too large for a
 * bitmap.
 */
uint64_t
ts_slot_list(const uint8_t *offsets, int n)
{
	uint64_t	slot = TS_SLOT_LIST | (uint64_t) (n - 1) << 2;

	for (int i = 0; i < n; i++)
		slot |= (uint64_t) offsets[i] << (4 + OFFSET_BITS * i);
	return slot;
}

static uint64_t
encode_far_bits(const TsBits *bits, int count, int first, int last,
				uint8_t *far)
{
	int			base = first / 8;
	int			len = last / 8 - base + 1;

	for (int i = 0; i < len; i++)
		far[i] = bits_byte(bits, base + i);
	return TS_SLOT_FAR | FAR_BITS << 2 | (uint64_t) count << FAR_COUNT_SHIFT |
		(uint64_t) base << FAR_BASE_SHIFT | (uint64_t) len << FAR_LEN_SHIFT;
}

/*
 * Make a list of offsets.  It has at most 512 of two bytes, because a longer
 * list is not smaller than the bitmap.
 */
static uint64_t
encode_far_list(const TsBits *bits, int kind, uint8_t *far)
{
	uint16_t	offsets[TS_FAR_MAX / 2 + 1];
	int			n = bits_offsets(bits, offsets);

	for (int i = 0; i < n; i++)
	{
		if (kind == FAR_BYTES)
			far[i] = (uint8_t) offsets[i];
		else
			memcpy(far + 2 * i, &offsets[i], sizeof(uint16_t));
	}
	return TS_SLOT_FAR | (uint64_t) kind << 2 | (uint64_t) n << FAR_COUNT_SHIFT;
}

/*
 * Make the slot for a set that is not empty.  The bytes of a far slot, at most
 * TS_FAR_MAX, are written to "far"; the slot's position is 0 then.
 */
uint64_t
ts_slot_encode(const TsBits *bits, uint8_t *far, uint32_t *far_len)
{
	int			first;
	int			last = bits_last(bits);
	int			count;
	int			kind;
	uint64_t	slot;

	*far_len = 0;
	if (last <= TS_SMALL_MAX)
		return bits->words[0] << 1;
	first = bits_first(bits);
	count = bits_count(bits);
	if (count == last - first + 1)
		return TS_SLOT_RUN | (uint64_t) first << 2 |
			(uint64_t) last << (2 + OFFSET_BITS);
	if (count <= TS_LIST_MAX)
		return encode_list(bits);
	kind = last <= UINT8_MAX ? FAR_BYTES : FAR_WORDS;
	if ((kind == FAR_BYTES ? count : 2 * count) < last / 8 - first / 8 + 1)
		slot = encode_far_list(bits, kind, far);
	else
		slot = encode_far_bits(bits, count, first, last, far);
	*far_len = ts_slot_far_len(slot);
	return slot;
}

/* ---- decoding; positions of far slots count from base ---- */

int
ts_slot_count(uint64_t slot)
{
	switch (TS_SLOT_TAG(slot))
	{
		case TS_SLOT_BITMAP:
			return tidset_popcount(slot);
		case TS_SLOT_RUN:
			return run_last(slot) - run_first(slot) + 1;
		case TS_SLOT_LIST:
			return list_count(slot);
		default:
			return far_count(slot);
	}
}

static int
far_offsets(uint64_t slot, const uint8_t *bytes, uint16_t *offsets)
{
	int			count = far_count(slot);
	uint32_t	base = far_base(slot);
	int			n = 0;

	switch (far_kind(slot))
	{
		case FAR_BYTES:
			for (n = 0; n < count; n++)
				offsets[n] = bytes[n];
			break;
		case FAR_WORDS:
			memcpy(offsets, bytes, 2 * (size_t) count);
			n = count;
			break;
		default:
			for (uint32_t i = 0; i < 8 * ts_slot_far_len(slot); i++)
			{
				if ((bytes[i / 8] >> (i % 8)) & 1)
					offsets[n++] = (uint16_t) (8 * base + i);
			}
			break;
	}
	return n;
}

/* List all offsets in ascending order; returns their number. */
int
ts_slot_offsets(uint64_t slot, const uint8_t *base, uint16_t *offsets)
{
	int			n = 0;

	switch (TS_SLOT_TAG(slot))
	{
		case TS_SLOT_BITMAP:
			for (uint64_t word = slot >> 1; word != 0; word &= word - 1)
				offsets[n++] = (uint16_t) __builtin_ctzll(word);
			return n;
		case TS_SLOT_RUN:
			for (int o = run_first(slot); o <= run_last(slot); o++)
				offsets[n++] = (uint16_t) o;
			return n;
		case TS_SLOT_LIST:
			for (n = 0; n < list_count(slot); n++)
				offsets[n] = list_offset(slot, n);
			return n;
		default:
			return far_offsets(slot, base + ts_slot_far_pos(slot), offsets);
	}
}

void
ts_bits_add_slot(TsBits *bits, uint64_t slot, const uint8_t *base)
{
	uint16_t	offsets[TIDSET_MAX_OFFSET];
	int			n;

	if (TS_SLOT_TAG(slot) == TS_SLOT_BITMAP && bits->nwords == 0)
	{
		bits->words[0] = slot >> 1;
		bits->nwords = 1;
		return;
	}
	n = ts_slot_offsets(slot, base, offsets);
	for (int i = 0; i < n; i++)
		ts_bits_add(bits, offsets[i]);
}

/* The largest offset. */
int
ts_slot_max(uint64_t slot, const uint8_t *base)
{
	const uint8_t *bytes;
	uint32_t	len;

	switch (TS_SLOT_TAG(slot))
	{
		case TS_SLOT_BITMAP:
			return 62 - __builtin_clzll(slot);
		case TS_SLOT_RUN:
			return run_last(slot);
		case TS_SLOT_LIST:
			return list_offset(slot, list_count(slot) - 1);
		default:
			break;
	}
	bytes = base + ts_slot_far_pos(slot);
	len = ts_slot_far_len(slot);
	if (far_kind(slot) == FAR_BYTES)
		return bytes[len - 1];
	if (far_kind(slot) == FAR_WORDS)
		return ts_get16(bytes + len - 2);
	return (int) (8 * (far_base(slot) + len) - 1) -
		(__builtin_clz(bytes[len - 1]) - 24);
}

static bool
far_member(uint64_t slot, const uint8_t *bytes, uint16_t offset)
{
	int			count = far_count(slot);
	uint32_t	byte = (uint32_t) offset / 8 - far_base(slot);

	switch (far_kind(slot))
	{
		case FAR_BYTES:
			if (offset > UINT8_MAX)
				return false;
			for (int i = 0; i < count; i += 16)
			{
				uint32_t	mask = tidset_match16(bytes + i, (uint8_t) offset);

				if (tidset_first_of(mask, count - i < 16 ? count - i : 16) >= 0)
					return true;
			}
			return false;
		case FAR_WORDS:
			for (int i = 0; i < count; i++)
			{
				if (ts_get16(bytes + 2 * i) == offset)
					return true;
			}
			return false;
		default:
			/* an offset before the base wraps around to a large byte number */
			return byte < ts_slot_far_len(slot) &&
				((bytes[byte] >> (offset % 8)) & 1);
	}
}

/* Test slots that are not a bitmap. */
bool
ts_slot_member_slow(uint64_t slot, const uint8_t *base, uint16_t offset)
{
	switch (TS_SLOT_TAG(slot))
	{
		case TS_SLOT_RUN:
			return offset >= run_first(slot) && offset <= run_last(slot);
		case TS_SLOT_LIST:
			for (int i = 0; i < list_count(slot); i++)
			{
				if (list_offset(slot, i) == offset)
					return true;
			}
			return false;
		default:
			return far_member(slot, base + ts_slot_far_pos(slot), offset);
	}
}
