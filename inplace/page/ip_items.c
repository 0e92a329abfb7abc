/*-------------------------------------------------------------------------
 * ip_items.c
 *	  Resizing a page's items, and moving those below them.
 *
 * Items are contiguous before and after a change.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "ip_items.h"
#include "ip_page.h"

/*
 * Up to this number of gaps are closed one by one.  With more gaps, all items
 * are laid out again.
 */
#define MAX_GAPS	24

typedef struct ItemGap
{
	uint32		start;
	uint32		end;
} ItemGap;

/*
 * Gaps that a change's shrunk items have left, the highest first.  They are
 * closed when the change ends, or when room is needed.
 */
static ItemGap gaps[MAX_GAPS];
static int	ngaps;				/* may exceed MAX_GAPS */

void
ip_items_begin(void)
{
	ngaps = 0;
}

/*
 * A line pointer's offset is a field of a word; *unit is one byte of offset
 * there.
 */
static void
offset_field(uint32 *unit, uint32 *field)
{
	const ItemIdData one = {.lp_off = 1};
	const ItemIdData all = {.lp_off = 0x7FFF};

	StaticAssertStmt(sizeof(ItemIdData) == sizeof(uint32), "an item pointer is a word");
	memcpy(unit, &one, sizeof(*unit));
	memcpy(field, &all, sizeof(*field));
}

#ifdef __GNUC__
/*
 * Several line pointers.  Compilers that have vector types make vector
 * instructions of these.
 */
#define WORDS	4
typedef uint32 ItemWords __attribute__((vector_size(WORDS * sizeof(uint32))));
typedef int32 ItemInts __attribute__((vector_size(WORDS * sizeof(uint32))));

/*
 * move_offsets for as many line pointers as fit into whole vectors; returns
 * their number.  Processors compare signed numbers, so both sides of the
 * comparison are reduced by 2^31.
 */
static inline int
move_words(ItemIdData *lps, int n, uint32 upper, const ItemGap *gap,
		   const int ngap)
{
	ItemWords	fields = {0};
	ItemWords	lows = {0};
	ItemWords	words;
	ItemWords	starts;
	uint32		unit;
	uint32		field;
	int			i;

	offset_field(&unit, &field);
	fields += field;
	lows += (uint32) PG_INT32_MIN - (uint32) (upper - IP_ITEM_BIAS) * unit;
	for (i = 0; i + WORDS <= n; i += WORDS)
	{
		memcpy(&words, &lps[i], sizeof(words));
		starts = (words & fields) + lows;
		for (int j = 0; j < ngap; j++)
		{
			ItemInts	spans = {0};

			spans += (int32) ((uint32) PG_INT32_MIN +
							  (gap[j].start - upper) * unit);
			words += (ItemWords) ((ItemInts) starts < spans) &
				((gap[j].end - gap[j].start) * unit);
		}
		memcpy(&lps[i], &words, sizeof(words));
	}
	return i;
}
#endif

/*
 * Items from upper on move up by the size of the gaps above them; a gap that
 * ends before its start is room that is made.  This is a large part of the
 * cost of an update that makes room, and of its redo.  So it works on whole
 * line pointers, in which an offset is a bit field: neither the old nor the
 * new offset overflows it.
 */
static void
move_offsets(ItemIdData *lps, int n, uint32 upper, const ItemGap *gap, int ngap)
{
	uint32		unit;
	uint32		field;
	uint32		low;
	const ItemGap only = gap[0];	/* lets the compiler keep it in registers */
	int			i = 0;

	Assert(upper >= IP_ITEM_BIAS && upper <= BLCKSZ);
	offset_field(&unit, &field);
	low = (upper - IP_ITEM_BIAS) * unit;
#ifdef __GNUC__
	/* in most cases there is one gap */
	i = ngap == 1 ? move_words(lps, n, upper, &only, 1) :
		move_words(lps, n, upper, gap, ngap);
#endif
	for (; i < n; i++)
	{
		uint32		word;
		uint32		start;

		memcpy(&word, &lps[i], sizeof(word));
		start = (word & field) - low;
		for (int j = 0; j < ngap; j++)
			word += start < (gap[j].start - upper) * unit ?
				(gap[j].end - gap[j].start) * unit : 0;
		memcpy(&lps[i], &word, sizeof(word));
	}
}

/*
 * Move the items below start down by grow bytes to make room, or, if grow is
 * negative, up to close a gap.
 */
static void
move_items(Page page, uint32 start, int grow)
{
	PageHeader	ph = (PageHeader) page;
	uint32		upper = ph->pd_upper;
	ItemGap		gap = {start, start - grow};

	if (grow != 0 && start > upper)
	{
		memmove((char *) page + upper - grow, (char *) page + upper,
				start - upper);
		move_offsets(ph->pd_linp, PageGetMaxOffsetNumber(page), upper, &gap, 1);
	}
	Assert(ph->pd_upper - grow >= ph->pd_lower &&
		   ph->pd_upper - grow <= ph->pd_special);
	ph->pd_upper -= grow;
}

/*
 * Lay out all items one below the other, in the order of their numbers; false
 * if they overlap.
 */
static bool
lay_out_items(Page page)
{
	static PGAlignedBlock old;
	PageHeader	ph = (PageHeader) page;
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	uint32		start = ph->pd_special;

	memcpy(old.data + ph->pd_upper, page + ph->pd_upper,
		   ph->pd_special - ph->pd_upper);
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		ItemId		lp = PageGetItemId(page, off);
		uint32		len = ItemIdGetLength(lp);

		if (!ip_item_is_ours(lp))
			continue;
		if (start < ph->pd_upper + len || !ip_item_is_inside(page, lp))
			return false;
		start -= len;
		memcpy(page + start, old.data + ip_item_start(lp), len);
		ip_item_set(lp, start, len);
	}
	ph->pd_upper = start;
	return true;
}

/*
 * Close several gaps, moving the items between two gaps only once.  False if
 * the gaps overlap, or are not among the items.
 */
static bool
close_gaps(Page page, int n)
{
	PageHeader	ph = (PageHeader) page;
	uint32		upper = ph->pd_upper;
	uint32		grow = 0;

	for (int i = 0; i < n; i++)
	{
		if (gaps[i].start < upper ||
			gaps[i].end > (i > 0 ? gaps[i - 1].start : ph->pd_special))
			return false;
	}
	move_offsets(ph->pd_linp, PageGetMaxOffsetNumber(page), upper, gaps, n);
	for (int i = 0; i < n; i++)
	{
		uint32		from = i + 1 < n ? gaps[i + 1].end : upper;

		grow += gaps[i].end - gaps[i].start;
		memmove(page + from + grow, page + from, gaps[i].start - from);
	}
	ph->pd_upper = upper + grow;
	return true;
}

bool
ip_items_end(Page page)
{
	int			n = ngaps;

	ngaps = 0;
	if (n > MAX_GAPS)
		return lay_out_items(page);
	if (n > 1)
		return close_gaps(page, n);
	if (n == 1 && gaps[0].start < ((PageHeader) page)->pd_upper)
		return false;
	if (n == 1)
		move_items(page, gaps[0].start,
				   (int) gaps[0].start - (int) gaps[0].end);
	return true;
}

static void
note_gap(uint32 start, uint32 end)
{
	int			i = ngaps++;

	if (i >= MAX_GAPS)
		return;
	for (; i > 0 && gaps[i - 1].start < start; i--)
		gaps[i] = gaps[i - 1];
	gaps[i] = (ItemGap)
	{
		start, end
	};
}

static inline void
place_item(ItemId lp, uint32 start, uint32 len)
{
	if (len > 0)
		ip_item_set(lp, start, len);
	else
		ItemIdSetDead(lp);
}

/*
 * Shrink the item to newlen bytes; it is at least that long.  The items below
 * it are moved when the change ends.
 */
static inline bool
shrink_item(Page page, ItemId lp, uint32 newlen)
{
	PageHeader	ph = (PageHeader) page;
	uint32		start = ip_item_start(lp);
	uint32		len = ItemIdGetLength(lp);

	if (start < ph->pd_upper || start > ph->pd_special)
		return false;
	if (newlen < len && start == ph->pd_upper)
		move_items(page, start, (int) newlen - (int) len);
	else if (newlen < len)
		note_gap(start, start + len - newlen);
	place_item(lp, start + len - newlen, newlen);
	return true;
}

bool
ip_items_resize(Page page, OffsetNumber off, uint32 newlen)
{
	PageHeader	ph = (PageHeader) page;
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	ItemId		lp;
	uint32		start;
	uint32		len = 0;

	if (off < FirstOffsetNumber || off > max + 1 || off > IP_MAX_ROWS_PER_PAGE)
		return false;
	lp = PageGetItemId(page, off);
	if (off <= max && ip_item_is_decoy(lp))
		return false;
	/* a damaged line pointer may have a length, but is free all the same */
	if (off <= max && ip_item_is_ours(lp))
		len = ItemIdGetLength(lp);
	if (newlen <= len && len > 0)
		return shrink_item(page, lp, newlen);
	/* a gap may have the room */
	if (!ip_items_end(page))
		return false;
	if (off == max + 1)
	{
		if (ip_page_free(page) < sizeof(ItemIdData))
			return false;
		ph->pd_lower += sizeof(ItemIdData);
		ItemIdSetUnused(lp);
	}
	start = ip_item_is_ours(lp) ? ip_item_start(lp) : ph->pd_upper;
	if (newlen - len > ip_page_free(page) || start < ph->pd_upper ||
		start > ph->pd_special)
		return false;
	move_items(page, start, newlen - len);
	place_item(lp, start + len - newlen, newlen);
	return true;
}

void
ip_items_trim(Page page)
{
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	bool		some_left = false;

	while (max > 0 && !ItemIdIsUsed(PageGetItemId(page, max)))
		max--;
	((PageHeader) page)->pd_lower = SizeOfPageHeaderData +
		max * sizeof(ItemIdData);
	for (OffsetNumber off = FirstOffsetNumber; off <= max && !some_left; off++)
		some_left = !ItemIdIsUsed(PageGetItemId(page, off));
	if (some_left)
		PageSetHasFreeLinePointers(page);
	else
		PageClearHasFreeLinePointers(page);
}
