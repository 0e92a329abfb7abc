/*-------------------------------------------------------------------------
 * pb_page.c
 *	  Pages: slots, items, blobs.
 *
 * Functions that change a page return false if the page does not match the
 * caller's assumptions; it may then be unchanged or partly changed.  They
 * never write beyond it.
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/uio.h>

#include "pb_page.h"

void
pb_page_init(Page page, int level, int map_len, int flags)
{
	PbSpecial  *special;

	PageInit(page, BLCKSZ, PB_SPECIAL_SIZE);
	special = PbPageGetSpecial(page);
	special->level = level;
	special->map_len = map_len;
	special->flags = flags;
	special->magic = PB_PAGE_MAGIC;
	/* a byte has room for each */
	Assert(special->level == level && special->map_len == map_len);
}

static bool
blob_is_bad(Page page, int off, int len)
{
	return len != 0 &&
		(off < PbPageUpper(page) || off + len > PbPageSpecial(page));
}

/*
 * Check the page's header and special space.  Returns a description of the
 * fault, or NULL.
 */
const char *
pb_page_check(Page page)
{
	PbSpecial  *s;

	if (PageIsNew(page))
		return "The page is zeroed.";
	if (PbPageSpecial(page) != BLCKSZ - PB_SPECIAL_SIZE ||
		PbPageLower(page) < SizeOfPageHeaderData ||
		PbPageLower(page) > PbPageUpper(page) ||
		PbPageUpper(page) > PbPageSpecial(page))
		return "The page header is damaged.";
	s = PbPageGetSpecial(page);
	if (s->magic != PB_PAGE_MAGIC || (s->flags & ~PB_PAGE_ALL_FLAGS))
		return "The page is not a page of a pbtree index.";
	if (s->flags & (PB_PAGE_META | PB_PAGE_DELETED))
		return NULL;
	if (blob_is_bad(page, s->prefix_off, s->prefix_len) ||
		blob_is_bad(page, s->low_off, s->low_len) ||
		blob_is_bad(page, s->high_off, s->high_len))
		return "A fence or the prefix lies outside of the page.";
	if ((s->next != PB_NONE) != (s->high_len != 0))
		return "The page has a right sibling or a high fence, but not both.";
	if ((PbPageLower(page) - SizeOfPageHeaderData) % pb_page_slot_size(page) !=
		0)
		return "The page's slots are damaged.";
	if (s->level > 0 && pb_page_nslots(page) == 0)
		return "The page is an inner page without items.";
	return NULL;
}

/* Check the slots.  Returns a description of the fault, or NULL. */
const char *
pb_page_check_slots(Page page)
{
	int			n = pb_page_nslots(page);

	for (int i = 0; i < n; i++)
	{
		int			off = pb_slot_get(page, i) & PB_SLOT_OFF;

		if (off < PbPageUpper(page) || off >= PbPageSpecial(page))
			return "A slot points outside of the page's items.";
	}
	return NULL;
}

/* The number of bytes of an item in front of its key. */
int
pb_page_pre_len(Page page, int flags)
{
	return (pb_page_is_leaf(page) ? 0 : PB_PIVOT_LEN) +
		((flags & PB_SLOT_MAP) ? PbPageGetSpecial(page)->map_len : 0);
}

/* The offset at which blobs begin and items end. */
static int
items_end(Page page)
{
	PbSpecial  *s = PbPageGetSpecial(page);
	int			end = PbPageSpecial(page);

	if (s->prefix_len)
		end = Min(end, s->prefix_off);
	if (s->low_len)
		end = Min(end, s->low_off);
	if (s->high_len)
		end = Min(end, s->high_off);
	return end;
}

/* I2: an item ends where the next one, higher up, begins. */
int
pb_page_item_len(Page page, int slot)
{
	int			off = pb_slot_get(page, slot) & PB_SLOT_OFF;
	int			end = items_end(page);
	int			n = pb_page_nslots(page);

	for (int i = 0; i < n; i++)
	{
		int			other = pb_slot_get(page, i) & PB_SLOT_OFF;

		if (other > off && other < end)
			end = other;
	}
	return end - off;
}

/* The size of the shortest item.  An inner item has no TIDs behind its key. */
static int
least_len(Page page, int flags)
{
	return pb_page_pre_len(page, flags) +
		(pb_page_is_leaf(page) ? PB_TID_MIN_LEN : 0);
}

/* The size of an item.  It includes the head where the page has heads. */
bool
pb_page_insert(Page page, int slot, int flags, const uint8 *item, int len)
{
	int			size = pb_page_slot_size(page);
	int			head = pb_page_has_heads(page) ? PB_HEAD_LEN : 0;
	int			pre = pb_page_pre_len(page, flags);
	uint8	   *at;

	Assert((flags & PB_SLOT_OFF) == 0);
	if (slot > pb_page_nslots(page) || !pb_page_fits(page, len))
		return false;
	if (pb_page_is_first_inner(page, slot))
		head = 0;
	if (len < least_len(page, flags) + head || (head && (flags & PB_SLOT_MAP)))
		return false;
	if (pb_page_room(page) < size + len - head)
		return false;
	PbPageUpper(page) -= len - head;
	memcpy((uint8 *) page + PbPageUpper(page), item, pre);
	memcpy((uint8 *) page + PbPageUpper(page) + pre, item + pre + head,
		   len - pre - head);
	at = pb_page_slot(page, slot);
	memmove(at + size, at, (uint8 *) page + PbPageLower(page) - at);
	PbPageLower(page) += size;
	*(uint16 *) at = PbPageUpper(page) | flags;
	if (size > sizeof(uint16))
	{
		at[2] = head ? item[pre] : 0;
		at[3] = head ? item[pre + 1] : 0;
	}
	if (flags & PB_SLOT_MAP)
		PbPageGetSpecial(page)->flags |= PB_PAGE_MAPS;
	return true;
}

/*
 * Get the sizes of all items.  lens has room for BLCKSZ / 2.  Returns false if
 * slots are damaged.
 */
bool
pb_page_item_lens(Page page, uint16 *lens)
{
	static uint16 owner[BLCKSZ];
	int			n = pb_page_nslots(page);
	int			last = items_end(page);

	memset(owner, 0xFF, sizeof(owner));
	for (int i = 0; i < n; i++)
	{
		int			off = pb_slot_get(page, i) & PB_SLOT_OFF;

		if (off < PbPageUpper(page) || off >= last || owner[off] != 0xFFFF)
			return false;
		owner[off] = i;
	}
	for (int off = last - 1; off >= PbPageUpper(page); off--)
	{
		if (owner[off] != 0xFFFF)
		{
			lens[owner[off]] = last - off;
			last = off;
		}
	}
	return true;
}

#ifdef USE_ASSERT_CHECKING
/*
 * I2: check that the blobs lie one behind the other, the prefix last, and the
 * items in front of them.
 */
static bool
blobs_lie_right(Page page)
{
	PbSpecial  *s = PbPageGetSpecial(page);
	int			end = PbPageSpecial(page);
	uint16		blobs[][2] = {
		{s->prefix_off, s->prefix_len}, {s->low_off, s->low_len},
		{s->high_off, s->high_len}
	};

	for (int i = 0; i < lengthof(blobs); i++)
	{
		if (blobs[i][1] != 0 && blobs[i][0] + blobs[i][1] != end)
			return false;
		end -= blobs[i][1];
	}
	return end == items_end(page);
}

static const char *
links_problem(Page page)
{
	PbSpecial  *s = PbPageGetSpecial(page);

	if (s->next != PB_NONE && s->next == s->prev)
		return "The page's left sibling is also its right sibling.";
	if ((s->flags & PB_PAGE_INCOMPLETE) && s->next == PB_NONE)
		return "The page is incompletely split, but has no right sibling.";
	if (s->low_len > PB_MAX_LOW_FENCE)
		return "The page's low fence is too long.";
	if (s->low_len != 0 &&
		(s->prev == PB_NONE || (pb_page_low(page)[0] & PB_NATTS_MASK) == 0))
		return "The page has a low fence, but no left sibling, or the fence has no column.";
	if (s->high_len != 0 && (pb_page_high(page)[0] & PB_NATTS_MASK) == 0)
		return "The page's high fence has no column.";
	return NULL;
}

static const char *
inner_item_problem(Page page, int slot)
{
	const uint8 *item = (uint8 *) page +
		(pb_slot_get(page, slot) & PB_SLOT_OFF);
	uint8		natts = item[PB_PIVOT_LEN - 1];
	BlockNumber down;

	memcpy(&down, item, sizeof(down));
	if (down == PB_NONE || down == PbPageGetSpecial(page)->next ||
		down == PbPageGetSpecial(page)->prev)
		return "A downlink does not lead to a child.";
	if (natts & PB_NATTS_MAP)
		return "An inner item has the map flag of a fence.";
	return ((natts & PB_NATTS_MASK) == 0) == (slot == 0) ?
		NULL : "An inner item's number of columns is wrong.";
}

static const char *
item_problem(Page page, int slot, int len)
{
	uint16		bits = pb_slot_get(page, slot);

	if (len < least_len(page, bits))
		return "An item is too short.";
	if ((bits & PB_SLOT_MAP) && !(PbPageGetSpecial(page)->flags & PB_PAGE_MAPS))
		return "An item has a map, but the page has no maps.";
	if ((bits & PB_SLOT_MAP) && pb_page_has_heads(page))
		return "An item has both a map and a head.";
	if (pb_page_is_leaf(page))
		return NULL;
	if (bits & (PB_SLOT_POSTING | PB_SLOT_DEAD))
		return "An inner item has flags of a leaf's item.";
	return inner_item_problem(page, slot);
}

/* Check pages that do not belong to the tree. */
static const char *
contents_problem(Page page)
{
	int			len = (PbPageGetSpecial(page)->flags & PB_PAGE_META) ?
		sizeof(PbMeta) : sizeof(PbDeleted);

	return PbPageLower(page) ==
		(char *) PageGetContents(page) + len - (char *) page ?
		NULL : "The length of the page's contents is wrong.";
}

/*
 * Check a page, as far as possible without knowledge of the columns.  Returns
 * a description of the fault, or NULL.  A change keeps a page in order (I2).
 */
const char *
pb_page_problem(Page page)
{
	static uint16 lens[BLCKSZ / 2];
	const char *problem = pb_page_check(page);
	int			total = 0;

	if (problem != NULL)
		return problem;
	if (PbPageGetSpecial(page)->flags & (PB_PAGE_META | PB_PAGE_DELETED))
		return contents_problem(page);
	if (!blobs_lie_right(page) || !pb_page_item_lens(page, lens))
		return "The page's items or blobs overlap, or leave a gap.";
	problem = links_problem(page);
	for (int i = 0; problem == NULL && i < pb_page_nslots(page); i++)
	{
		problem = item_problem(page, i, lens[i]);
		total += lens[i];
	}
	if (problem == NULL && total != items_end(page) - PbPageUpper(page))
		problem = "The page has a gap in front of its items.";
	return problem;
}
#endif

/* Copy the items of these slots, so that no gap is left. */
static bool
compact(Page page, const uint16 *keep, int n)
{
	static PGAlignedBlock old;
	static uint16 lens[BLCKSZ / 2];
	int			size = pb_page_slot_size(page);
	int			upper = items_end(page);

	if (!pb_page_item_lens(page, lens))
		return false;
	memcpy(old.data, page, BLCKSZ);
	PbPageLower(page) = SizeOfPageHeaderData + n * size;
	for (int i = 0; i < n; i++)
	{
		uint16		slot = pb_slot_get(old.data, keep[i]);

		upper -= lens[keep[i]];
		memcpy((uint8 *) page + upper, old.data + (slot & PB_SLOT_OFF),
			   lens[keep[i]]);
		memcpy(pb_page_slot(page, i), pb_page_slot(old.data, keep[i]), size);
		*(uint16 *) pb_page_slot(page, i) = upper | (slot & ~PB_SLOT_OFF);
	}
	Assert(upper >= PbPageLower(page) && upper >= PbPageUpper(page));
	PbPageUpper(page) = upper;
	return true;
}

/* Delete slots, which are in ascending order. */
bool
pb_page_delete(Page page, const uint16 *slots, int n)
{
	static uint16 keep[BLCKSZ];
	int			all = pb_page_nslots(page);
	int			kept = 0;
	int			next = 0;

	for (int i = 0; i < all; i++)
	{
		if (next < n && slots[next] == i)
			next++;
		else
			keep[kept++] = i;
	}
	return next == n && compact(page, keep, kept);
}

#ifdef WORDS_BIGENDIAN
#define SLOT_SHIFT	16
#else
#define SLOT_SHIFT	0
#endif

/*
 * Items at this offset and below it move down by this many bytes; adjust their
 * slots.  The compiler can vectorize the loops: processors can compare signed
 * numbers of a slot's width in that way.
 */
static void
move_slots(Page page, int n, int off, int by)
{
	if (pb_page_has_heads(page))
	{
		int32	   *slots = (int32 *) pb_page_slot(page, 0);
		int32		shifted = (uint32) by << SLOT_SHIFT;

		for (int i = 0; i < n; i++)
			slots[i] -= ((slots[i] >> SLOT_SHIFT) & PB_SLOT_OFF) <= off ?
				shifted : 0;
	}
	else
	{
		int16	   *slots = (int16 *) pb_page_slot(page, 0);
		int16		limit = off;
		int16		less = by;

		for (int i = 0; i < n; i++)
		{
			int16		at = slots[i] & PB_SLOT_OFF;
			int16		change = at <= limit ? less : 0;

			slots[i] -= change;
		}
	}
}

/* Replace bytes of an item, behind its first "at" bytes. */
bool
pb_page_splice(Page page, int slot, int at, int remove, const uint8 *bytes,
			   int len)
{
	int			n = pb_page_nslots(page);
	int			upper = PbPageUpper(page);
	int			shift = len - remove;
	int			off;

	if (slot >= n)
		return false;
	off = pb_slot_get(page, slot) & PB_SLOT_OFF;
	if (off < upper || off + at + remove > PbPageSpecial(page) ||
		shift > pb_page_room(page))
		return false;
#ifdef USE_ASSERT_CHECKING

	/*
	 * damage; the result would not be a page on which the next change can be
	 * checked
	 */
	if (at + remove > pb_page_item_len(page, slot))
		return false;
#endif
	if (shift != 0)
	{
		memmove((uint8 *) page + upper - shift, (uint8 *) page + upper,
				off + at - upper);
		move_slots(page, n, off, shift);
		PbPageUpper(page) -= shift;
	}
	memcpy((uint8 *) page + off + at - shift, bytes, len);
	return true;
}

/* Adjust flags after an item has got a row, or lost some. */
void
pb_page_mark_posting(Page page, int slot, bool posting)
{
	uint16	   *bits = (uint16 *) pb_page_slot(page, slot);

	Assert(pb_page_is_leaf(page));
	*bits &= ~(PB_SLOT_POSTING | PB_SLOT_DEAD);
	if (posting)
		*bits |= PB_SLOT_POSTING;
}

/*
 * Copy an item's key and the rest, in up to three pieces, without the first
 * "skip" bytes.
 */
static int
gather(uint8 *to, int skip, const struct iovec *pieces, int n)
{
	int			len = 0;

	for (int i = 0; i < n; i++)
	{
		int			less = Min(skip, (int) pieces[i].iov_len);

		memcpy(to + len, (uint8 *) pieces[i].iov_base + less,
			   pieces[i].iov_len - less);
		len += pieces[i].iov_len - less;
		skip -= less;
	}
	return len;
}

static bool
put_blob(Page page, uint16 *off, uint16 *len, const uint8 *blob, int blob_len)
{
	*len = 0;
	*off = 0;
	if (blob_len == 0)
		return true;
	if (blob_len > pb_page_room(page))
		return false;
	PbPageUpper(page) -= blob_len;
	memcpy((uint8 *) page + PbPageUpper(page), blob, blob_len);
	*off = PbPageUpper(page);
	*len = blob_len;
	return true;
}

/* Copy an item from one page to another, which may have another prefix. */
static bool
copy_item(Page from, int slot, int len, Page to)
{
	static uint8 item[2 * BLCKSZ];
	uint16		bits = pb_slot_get(from, slot);
	uint8	   *old = (uint8 *) from + (bits & PB_SLOT_OFF);
	int			flags = bits & ~PB_SLOT_OFF;
	int			pre = pb_page_pre_len(from, flags);
	int			head = pb_page_has_heads(from) ? PB_HEAD_LEN : 0;
	int			at = pb_page_nslots(to);
	struct iovec pieces[3] = {
		{pb_page_prefix(from), PbPageGetSpecial(from)->prefix_len},
		{pb_page_slot(from, slot) + sizeof(uint16), head},
		{old + pre, len - pre}
	};

	if (len < pre)
		return false;
	memcpy(item, old, pre);
	if (pb_page_is_first_inner(from, slot) || pb_page_is_first_inner(to, at))
	{
		item[PB_PIVOT_LEN - 1] = 0;
		return pb_page_is_first_inner(to, at) &&
			pb_page_insert(to, at, 0, item, PB_PIVOT_LEN);
	}
	len = pre + gather(item + pre, PbPageGetSpecial(to)->prefix_len, pieces, 3);
	return pb_page_insert(to, at, flags, item, len);
}

/* Copy the first bytes of an item's key. */
static bool
key_begin(Page page, int slot, uint8 *to, int want)
{
	uint16		bits = pb_slot_get(page, slot);
	uint8	   *item = (uint8 *) page + (bits & PB_SLOT_OFF) +
		pb_page_pre_len(page, bits);
	int			n = Min(want, PbPageGetSpecial(page)->prefix_len);

	memcpy(to, pb_page_prefix(page), n);
	if (pb_page_has_heads(page))
	{
		for (int i = 0; i < PB_HEAD_LEN && n < want; i++)
			to[n++] = pb_page_slot(page, slot)[sizeof(uint16) + i];
	}
	if (item + (want - n) > (uint8 *) page + PbPageSpecial(page))
		return false;
	memcpy(to + n, item, want - n);
	return true;
}

/* Write the blobs of an empty page. */
bool
pb_page_start(Page page, const PbShape *shape, const uint8 *prefix)
{
	PbSpecial  *s = PbPageGetSpecial(page);

	PbPageLower(page) = SizeOfPageHeaderData;
	PbPageUpper(page) = PbPageSpecial(page);
	s->flags &= ~(PB_PAGE_HEADS | PB_PAGE_MAPS);
	s->flags |= (shape->heads ? PB_PAGE_HEADS : 0) |
		(shape->maps ? PB_PAGE_MAPS : 0);
	return put_blob(page, &s->prefix_off, &s->prefix_len, prefix,
					shape->prefix_len) &&
		put_blob(page, &s->low_off, &s->low_len, shape->low,
				 shape->low_len) &&
		put_blob(page, &s->high_off, &s->high_len, shape->high,
				 shape->high_len);
}

/*
 * Rebuild the page with another shape.  The first remaining item of an inner
 * page loses its key.
 */
bool
pb_page_rebuild(Page page, const PbShape *shape)
{
	static PGAlignedBlock old;
	static uint8 prefix[BLCKSZ];
	static uint16 lens[BLCKSZ / 2];
	PbSpecial  *was;
	PbShape		new = *shape;
	int			inner = pb_page_is_leaf(page) ? 0 : 1;

	memcpy(old.data, page, BLCKSZ);
	was = PbPageGetSpecial(old.data);
	if (shape->from + shape->n > pb_page_nslots(old.data) ||
		shape->prefix_len >= BLCKSZ || !pb_page_item_lens(page, lens))
		return false;
	if (shape->prefix_len > 0 &&
		(shape->n <= inner ||
		 !key_begin(old.data, shape->from + inner, prefix, shape->prefix_len)))
		return false;
	if (new.low == NULL)
	{
		new.low = pb_page_low(old.data);
		new.low_len = was->low_len;
	}
	if (new.high == NULL)
	{
		new.high = pb_page_high(old.data);
		new.high_len = was->high_len;
	}
	if (!pb_page_start(page, &new, prefix))
		return false;
	for (int i = shape->from; i < shape->from + shape->n; i++)
	{
		if (!copy_item(old.data, i, lens[i], page))
			return false;
	}
	return true;
}
