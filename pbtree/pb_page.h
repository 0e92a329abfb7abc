/*-------------------------------------------------------------------------
 * pb_page.h
 *	  Pages: slots, items, blobs.
 *
 * These functions do not interpret keys, and they neither lock nor log.
 *-------------------------------------------------------------------------
 */
#ifndef PB_PAGE_H
#define PB_PAGE_H

#include "port/pg_bitutils.h"

#include "pb_format.h"

#define PbPageLower(page)		(((PageHeader) (page))->pd_lower)
#define PbPageUpper(page)		(((PageHeader) (page))->pd_upper)
#define PbPageSpecial(page)		(((PageHeader) (page))->pd_special)

static inline bool
pb_page_has_heads(Page page)
{
	return (PbPageGetSpecial(page)->flags & PB_PAGE_HEADS) != 0;
}

static inline int
pb_page_slot_size(Page page)
{
	return pb_page_has_heads(page) ? sizeof(uint16) + PB_HEAD_LEN :
		sizeof(uint16);
}

static inline int
pb_page_nslots(Page page)
{
	return (PbPageLower(page) - SizeOfPageHeaderData) / pb_page_slot_size(page);
}

static inline int
pb_page_room(Page page)
{
	return PbPageUpper(page) - PbPageLower(page);
}

static inline uint8 *
pb_page_slot(Page page, int slot)
{
	return (uint8 *) page + SizeOfPageHeaderData +
		slot * pb_page_slot_size(page);
}

static inline uint16
pb_slot_get(Page page, int slot)
{
	Assert(slot >= 0 && slot < pb_page_nslots(page));
	return *(uint16 *) pb_page_slot(page, slot);
}

static inline bool
pb_page_is_leaf(Page page)
{
	return PbPageGetSpecial(page)->level == 0;
}

/* True if a page has room for this many item bytes and another slot. */
static inline bool
pb_page_fits(Page page, int len)
{
	return pb_page_room(page) >= len + (int) sizeof(uint16);
}

/*
 * True for an inner page's first item, which has no key: it stands for all
 * keys that precede the others.
 */
static inline bool
pb_page_is_first_inner(Page page, int slot)
{
	return slot == 0 && !pb_page_is_leaf(page);
}

/* The length of the common prefix of n bytes each. */
static inline int
pb_common_bytes(const uint8 *a, const uint8 *b, int n)
{
	int			i = 0;

#ifndef WORDS_BIGENDIAN
	for (; i + (int) sizeof(uint64) <= n; i += sizeof(uint64))
	{
		uint64		x;
		uint64		y;

		memcpy(&x, a + i, sizeof(x));
		memcpy(&y, b + i, sizeof(y));
		if (x != y)
			return i + pg_rightmost_one_pos64(x ^ y) / 8;
	}
#endif
	while (i < n && a[i] == b[i])
		i++;
	return i;
}

/* Blobs. */
#define pb_page_prefix(page) \
	((uint8 *) (page) + PbPageGetSpecial(page)->prefix_off)
#define pb_page_low(page) ((uint8 *) (page) + PbPageGetSpecial(page)->low_off)
#define pb_page_high(page) ((uint8 *) (page) + PbPageGetSpecial(page)->high_off)

static inline bool
pb_page_is_rightmost(Page page)
{
	return PbPageGetSpecial(page)->next == PB_NONE;
}

static inline bool
pb_page_is_leftmost(Page page)
{
	return PbPageGetSpecial(page)->prev == PB_NONE;
}

/* The contents of a rebuilt page. */
typedef struct PbShape
{
	int			from;			/* slots that remain */
	int			n;
	int			prefix_len;
	bool		heads;
	bool		maps;
	const uint8 *low;			/* new fences, or NULL if unchanged */
	int			low_len;
	const uint8 *high;
	int			high_len;
} PbShape;

/* Initialize an empty page without siblings and fences. */
extern void pb_page_init(Page page, int level, int map_len, int flags);

/*
 * Check header and special space.  Returns a description of the fault, or
 * NULL.  The page may contain any bytes; slots are not checked.
 */
extern const char *pb_page_check(Page page);

/*
 * Check the slots.  Returns a description of the fault, or NULL.
 * pb_page_check must have found none.
 */
extern const char *pb_page_check_slots(Page page);
#ifdef USE_ASSERT_CHECKING
/*
 * Check the page, as far as possible without knowledge of its columns.
 * Returns a description of the fault, or NULL.  The page may contain any
 * bytes.
 */
extern const char *pb_page_problem(Page page);
#endif
/* Bytes of an item in front of its key. */
extern int	pb_page_pre_len(Page page, int flags);

/* The size of an item.  The slots must be in order. */
extern int	pb_page_item_len(Page page, int slot);

/*
 * Get the sizes of all items.  Returns false if slots are damaged.  lens has
 * room for BLCKSZ / 2.
 */
extern bool pb_page_item_lens(Page page, uint16 *lens);

/*
 * Insert an item in front of a slot.  Returns false without a change if it
 * does not fit or suit.
 */
extern bool pb_page_insert(Page page, int slot, int flags, const uint8 *item,
						   int len);

/*
 * Delete slots, in ascending order.  Returns false without a change if they do
 * not exist.
 */
extern bool pb_page_delete(Page page, const uint16 *slots, int n);

/*
 * Replace bytes of an item.  Returns false without a change if there is no
 * room.
 */
extern bool pb_page_splice(Page page, int slot, int at, int remove,
						   const uint8 *bytes, int len);

/* Mark that a leaf's item has one TID or more, and is not dead. */
extern void pb_page_mark_posting(Page page, int slot, bool posting);

/*
 * Write prefix and fences of an empty page.  Returns false if there is no
 * room.
 */
extern bool pb_page_start(Page page, const PbShape *shape, const uint8 *prefix);

/*
 * Rebuild the page with another shape.  Returns false if there is no room;
 * then the page is undefined.
 */
extern bool pb_page_rebuild(Page page, const PbShape *shape);

#endif							/* PB_PAGE_H */
