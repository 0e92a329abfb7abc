/*-------------------------------------------------------------------------
 * ip_state.c
 *	  States of a data page's items, and the operations that lead from one to
 *	  another.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "ip_state.h"

IpItemState
ip_state_of(Page page, OffsetNumber off)
{
	ItemId		lp = PageGetItemId(page, off);

	if (!ItemIdIsUsed(lp))
		return IP_ITEM_UNUSED;
	if (ItemIdIsDead(lp))
		return IP_ITEM_DEAD;
	if (!ip_item_is_ours(lp) || !ip_item_is_inside(page, lp))
		return IP_ITEM_DAMAGED;
	switch (ip_item_state(page, lp))
	{
		case IP_STATE_UNDO:
			return IP_ITEM_UNDO;
		case 0:
			return IP_ITEM_FROZEN;
		case IP_ROW_DEFAULT:
			return IP_ITEM_DEFAULT;
		case IP_ROW_CHANGED | IP_ROW_DELETED:
		case IP_ROW_CHANGED | IP_ROW_DELETED | IP_ROW_MOVED:
		case IP_ROW_CHANGED | IP_ROW_DELETED | IP_ROW_DEFAULT:
		case IP_ROW_CHANGED | IP_ROW_DELETED | IP_ROW_MOVED | IP_ROW_DEFAULT:
			return IP_ITEM_CHANGED;
		case IP_ROW_VERSION | IP_ROW_INSERTED:
			return IP_ITEM_INSERTED;
		case IP_ROW_VERSION:
			return IP_ITEM_UPDATED;
		case IP_ROW_VERSION | IP_ROW_DELETED:
		case IP_ROW_VERSION | IP_ROW_DELETED | IP_ROW_MOVED:
			return IP_ITEM_DELETED;
		case IP_ROW_VERSION | IP_ROW_OVERLAID:
		case IP_ROW_VERSION | IP_ROW_OVERLAID | IP_ROW_DELETED:
		case IP_ROW_VERSION | IP_ROW_OVERLAID | IP_ROW_DELETED | IP_ROW_MOVED:
			return IP_ITEM_OVERLAID;
		default:
			return IP_ITEM_DAMAGED;
	}
}

const char *
ip_state_name(IpItemState state)
{
	static const char *const names[] = {
		[IP_ITEM_UNUSED] = "unused",[IP_ITEM_DEAD] = "dead",
		[IP_ITEM_UNDO] = "undo",[IP_ITEM_FROZEN] = "frozen",
		[IP_ITEM_DEFAULT] = "default",[IP_ITEM_CHANGED] = "changed",
		[IP_ITEM_INSERTED] = "inserted",[IP_ITEM_UPDATED] = "updated",
		[IP_ITEM_DELETED] = "deleted",[IP_ITEM_OVERLAID] = "overlaid",
		[IP_ITEM_DAMAGED] = "damaged"
	};

	StaticAssertStmt(lengthof(names) == IP_ITEM_STATES, "each state has a name");
	return names[state];
}

#ifdef USE_ASSERT_CHECKING

#define S(state)	(1 << IP_ITEM_##state)

/* States before a change, and after it or its rollback. */
#define UNCHANGED	(S(FROZEN) | S(DEFAULT))
#define WHOLE		(S(INSERTED) | S(UPDATED))

typedef struct IpArrow
{
	IpOp		op;
	uint16		from;
	uint16		to;
} IpArrow;

static const IpArrow arrows[] = {
	/* new rows; IP_OP_ROW puts single rows */
	{IP_OP_ROWS, S(UNUSED), S(DEFAULT)},
	{IP_OP_FROZEN_ROWS, S(UNUSED), S(FROZEN)},
	{IP_OP_ROW, S(UNUSED), UNCHANGED | S(INSERTED)},

	/*
	 * an update in place or a deletion; its undo record at home; the
	 * confirmation of a speculative insertion
	 */
	{IP_OP_ROW, UNCHANGED, S(UPDATED) | S(DELETED) | S(OVERLAID)},
	{IP_OP_ROW, WHOLE, S(UPDATED) | S(DELETED)},	/* I7 */
	{IP_OP_ROW, S(OVERLAID), S(UPDATED) | S(DELETED) | S(OVERLAID)},
	{IP_OP_ROW, S(UNUSED), S(UNDO)},

	/* a deletion or a move by the default changer; its list of moves */
	{IP_OP_CHANGED, UNCHANGED, S(CHANGED)},
	{IP_OP_MOVED, UNCHANGED, S(CHANGED)},
	{IP_OP_MOVED, S(UNUSED), S(UNDO)},

	/*
	 * rollbacks: of many rows by one step, of one row, of what the default
	 * changer did
	 */
	{IP_OP_RESTORE, S(UPDATED) | S(DELETED) | S(OVERLAID), UNCHANGED},
	{IP_OP_ROW, S(UPDATED) | S(DELETED), UNCHANGED | WHOLE},
	{IP_OP_ROW, S(OVERLAID) | S(CHANGED), UNCHANGED | S(OVERLAID)},
	{IP_OP_CLEAR_CHANGER, S(CHANGED), UNCHANGED},
	{IP_OP_CLEAR_CHANGER, S(UNDO), S(UNUSED)},

	/* rows that are visible to all */
	{IP_OP_FREEZE, WHOLE | S(OVERLAID), S(FROZEN)},
	{IP_OP_CLEAR_DEFAULT, S(DEFAULT), S(FROZEN)},
	{IP_OP_DROP, S(UNDO), S(UNUSED)},

	/* rows that are visible to none; then, their index entries are removed */
	{IP_OP_DEAD, UNCHANGED | WHOLE | S(CHANGED) | S(DELETED) | S(OVERLAID),
	S(DEAD)}, {IP_OP_UNUSED, S(DEAD), S(UNUSED)}
};

void
ip_state_note(Page page, IpItemStates *states)
{
	states->max = Min(PageGetMaxOffsetNumber(page), MaxIndexTuplesPerPage);
	for (OffsetNumber off = FirstOffsetNumber; off <= states->max; off++)
		states->of[off] = ip_state_of(page, off);
}

static bool
may_lead(IpOp op, IpItemState from, IpItemState to)
{
	for (int i = 0; i < lengthof(arrows); i++)
	{
		if (arrows[i].op == op && (arrows[i].from & (1 << from)) &&
			(arrows[i].to & (1 << to)))
			return true;
	}
	return false;
}

bool
ip_state_may_follow(const IpItemStates *before, IpOp op, Page page)
{
	OffsetNumber max = PageGetMaxOffsetNumber(page);

	for (OffsetNumber off = FirstOffsetNumber; off <= Max(max, before->max);
		 off++)
	{
		IpItemState from = off <= before->max ? before->of[off] :
			IP_ITEM_UNUSED;
		IpItemState to = off <= max ? ip_state_of(page, off) : IP_ITEM_UNUSED;

		if (from != to && !may_lead(op, from, to))
			return false;
	}
	return true;
}
#endif
