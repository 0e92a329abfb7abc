/*-------------------------------------------------------------------------
 * ip_moves.c
 *	  A page's list of moves: where its default changer has moved rows to.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "ip_items.h"
#include "ip_moves.h"

/* More runs than fit on a page. */
#define MAX_RUNS	(BLCKSZ / sizeof(IpMoveRun))

bool
ip_moves_is_list(Page page, OffsetNumber off)
{
	ItemId		lp = PageGetItemId(page, off);
	const uint8 *item = (const uint8 *) page + ip_item_start(lp);
	uint16		stored;

	if (!ip_item_is_ours(lp) || !ip_item_is_inside(page, lp) ||
		ItemIdGetLength(lp) < IP_MOVES_HDRSZ ||
		item[IP_ROW_STATE] != IP_STATE_UNDO)
		return false;
	memcpy(&stored, item, sizeof(stored));
	return IpRecLoadKind(stored) == IP_UNDO_MOVES;
}

/* True if the page has a default changer, which the list belongs to. */
static bool
may_have_list(Page page)
{
	return TransactionIdIsValid(IpPageGetSpecial(page)->u.data.change_xid);
}

/*
 * Search at the offset where the last list was found, then from the end,
 * because most pages had their rows before the list.
 */
OffsetNumber
ip_moves_find(Page page)
{
	static OffsetNumber known = FirstOffsetNumber;
	OffsetNumber off = PageGetMaxOffsetNumber(page);

	if (!may_have_list(page))
		return InvalidOffsetNumber;
	if (known <= off && ip_moves_is_list(page, known))
		return known;
	while (off >= FirstOffsetNumber && !ip_moves_is_list(page, off))
		off--;
	if (off >= FirstOffsetNumber)
		known = off;
	return off;
}

static int
count_runs(Page page, OffsetNumber list)
{
	return (ItemIdGetLength(PageGetItemId(page, list)) - IP_MOVES_HDRSZ) /
		sizeof(IpMoveRun);
}

static uint8 *
run_at(Page page, OffsetNumber list, int i)
{
	return (uint8 *) page + ip_item_start(PageGetItemId(page, list)) +
		IP_MOVES_HDRSZ + i * sizeof(IpMoveRun);
}

static IpMoveRun
get_run(Page page, OffsetNumber list, int i)
{
	IpMoveRun	run;

	memcpy(&run, run_at(page, list, i), sizeof(run));
	return run;
}

bool
ip_moves_look_up(Page page, OffsetNumber off, ItemPointerData *forward,
				 bool *keys)
{
	OffsetNumber list = ip_moves_find(page);

	Assert(ip_page_is_locked(page, false));
	if (list == InvalidOffsetNumber)
		return false;
	for (int i = count_runs(page, list) - 1; i >= 0; i--)
	{
		IpMoveRun	run = get_run(page, list, i);
		OffsetNumber first = run.first & ~IP_MOVE_KEYS;
		uint32		to = ItemPointerGetOffsetNumberNoCheck(&run.to) +
			(off - first);

		if (off < first || off - first >= run.n || to > IP_MAX_ROWS_PER_PAGE)
			continue;
		ItemPointerSet(forward, ItemPointerGetBlockNumberNoCheck(&run.to), to);
		*keys = (run.first & IP_MOVE_KEYS) != 0;
		return true;
	}
	return false;
}

const char *
ip_moves_problem(Page page, OffsetNumber off)
{
	const uint8 *item = (const uint8 *) page +
		ip_item_start(PageGetItemId(page, off));
	uint32		len = ItemIdGetLength(PageGetItemId(page, off));
	uint16		stored;

	memcpy(&stored, item, sizeof(stored));
	if (stored != IpRecStore(IP_UNDO_MOVES, 0))
		return "list of moves has wrong bits";
	if (len <= IP_MOVES_HDRSZ ||
		(len - IP_MOVES_HDRSZ) % sizeof(IpMoveRun) != 0)
		return "list of moves has a wrong length";
	if (!may_have_list(page))
		return "page has a list of moves, but no default changer that moves rows";
	if (ip_moves_find(page) != off)
		return "page has two lists of moves";
	for (int i = count_runs(page, off) - 1; i >= 0; i--)
	{
		IpMoveRun	run = get_run(page, off, i);
		uint32		first = run.first & ~IP_MOVE_KEYS;
		uint32		to = ItemPointerGetOffsetNumberNoCheck(&run.to);

		if (run.n == 0 ||
			first == 0 || first + run.n > IP_MAX_ROWS_PER_PAGE + 1 ||
			to == 0 || to + run.n > IP_MAX_ROWS_PER_PAGE + 1 ||
			ItemPointerGetBlockNumberNoCheck(&run.to) == IP_META_BLOCK)
			return "list of moves has a run of impossible rows";
	}
	return NULL;
}

/*
 * Returns whether the row continues the list's last run, both by its own
 * offset and by the place that it moves to.
 */
static bool
extends_run(Page page, OffsetNumber list, OffsetNumber off,
			const ItemPointerData *forward, bool keys, IpMoveRun *run)
{
	int			n = count_runs(page, list);

	if (n == 0)
		return false;
	*run = get_run(page, list, n - 1);
	return (run->first & ~IP_MOVE_KEYS) + run->n == off &&
		((run->first & IP_MOVE_KEYS) != 0) == keys &&
		ItemPointerGetBlockNumberNoCheck(&run->to) ==
		ItemPointerGetBlockNumberNoCheck(forward) &&
		ItemPointerGetOffsetNumberNoCheck(&run->to) + run->n ==
		ItemPointerGetOffsetNumberNoCheck(forward);
}

uint32
ip_moves_space(Page page, OffsetNumber list, OffsetNumber off,
			   const ItemPointerData *forward, bool keys)
{
	IpMoveRun	run;

	if (list == InvalidOffsetNumber)
		return sizeof(ItemIdData) + IP_MOVES_HDRSZ + sizeof(IpMoveRun);
	return extends_run(page, list, off, forward, keys, &run) ? 0 :
		sizeof(IpMoveRun);
}

bool
ip_moves_add(Page page, OffsetNumber list, OffsetNumber off,
			 const ItemPointerData *forward, bool keys)
{
	static uint8 runs[MAX_RUNS * sizeof(IpMoveRun)];
	const uint16 stored = IpRecStore(IP_UNDO_MOVES, 0);
	uint16		first = off | (keys ? IP_MOVE_KEYS : 0);
	IpMoveRun	run = {.first = first,.n = 1,.to = *forward};
	IpMoveRun	last;
	uint8	   *item;
	int			n = 0;

	Assert(ip_page_is_locked(page, true));
	if (list <= PageGetMaxOffsetNumber(page) &&
		ip_item_is_ours(PageGetItemId(page, list)))
	{
		if (!ip_moves_is_list(page, list))
			return false;
		n = count_runs(page, list);
		if (extends_run(page, list, off, forward, keys, &last))
		{
			last.n++;
			memcpy(run_at(page, list, n - 1), &last, sizeof(last));
			return true;
		}
		memcpy(runs, run_at(page, list, 0), n * sizeof(IpMoveRun));
	}
	if (!ip_items_resize(page, list,
						 IP_MOVES_HDRSZ + (n + 1) * sizeof(IpMoveRun)))
		return false;
	item = (uint8 *) page + ip_item_start(PageGetItemId(page, list));
	memcpy(item, &stored, sizeof(stored));
	item[IP_ROW_STATE] = IP_STATE_UNDO;
	memcpy(item + IP_MOVES_HDRSZ, runs, n * sizeof(IpMoveRun));
	memcpy(item + IP_MOVES_HDRSZ + n * sizeof(IpMoveRun), &run, sizeof(run));
	return true;
}

bool
ip_moves_drop(Page page)
{
	OffsetNumber list = ip_moves_find(page);

	if (list == InvalidOffsetNumber)
		return true;
	if (!ip_items_resize(page, list, 0))
		return false;
	ItemIdSetUnused(PageGetItemId(page, list));
	ip_items_trim(page);
	return true;
}
