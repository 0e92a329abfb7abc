/*-------------------------------------------------------------------------
 * ip_state.h
 *	  States of a data page's items, and the operations that lead from one to
 *	  another.
 *
 *	  The bits are in ip_format.h; this is the only place that defines what
 *	  they mean together.  inplace_rows shows the names, README.md draws the
 *	  arrows, and builds with assertions check that each operation is one of
 *	  them (I25).
 *-------------------------------------------------------------------------
 */
#ifndef IP_STATE_H
#define IP_STATE_H

#include "ip_op.h"

typedef enum IpItemState
{
	IP_ITEM_UNUSED,				/* no item */
	IP_ITEM_DEAD,				/* a dead row's line pointer: indexes may have
								 * entries */
	IP_ITEM_UNDO,				/* an undo record, or the list of moves */
	/* rows */
	IP_ITEM_FROZEN,				/* no version block: visible to all */
	IP_ITEM_DEFAULT,			/* no version block: the default inserter's */
	IP_ITEM_CHANGED,			/* no version block: deleted or moved by the
								 * default changer */
	IP_ITEM_INSERTED,			/* a version block: inserted */
	IP_ITEM_UPDATED,			/* a version block: updated in place */
	IP_ITEM_DELETED,			/* a version block: deleted or moved */
	IP_ITEM_OVERLAID,			/* a version block on the tuple data's first
								 * bytes: updated in place or deleted */
	IP_ITEM_DAMAGED				/* damaged, or a heap tuple */
} IpItemState;

#define IP_ITEM_STATES	(IP_ITEM_DAMAGED + 1)

/*
 * Returns the state of the item at off, which is in range.  Any page; lock:
 * share.
 */
extern IpItemState ip_state_of(Page page, OffsetNumber off);

extern const char *ip_state_name(IpItemState state);

/*
 * The bits that a change writes: a function for each arrow to a row's state.
 * What leads from a state of all rows of a page, ip_row_clear_default() and
 * ip_row_clear_changed() write.
 */
static inline uint8
ip_state_insert(void)
{
	return IP_ROW_VERSION | IP_ROW_INSERTED;
}

/* The page's default inserter inserts the row. */
static inline uint8
ip_state_insert_default(void)
{
	return IP_ROW_DEFAULT;
}

static inline uint8
ip_state_update(void)
{
	return IP_ROW_VERSION;
}

static inline uint8
ip_state_delete(bool moved)
{
	return IP_ROW_VERSION | IP_ROW_DELETED | (moved ? IP_ROW_MOVED : 0);
}

/* The version block of the update or deletion covers tuple data. */
static inline uint8
ip_state_overlay(uint8 state)
{
	return state | IP_ROW_OVERLAID;
}

/* The page's default changer deletes or moves the row, which is "before". */
static inline uint8
ip_state_change(uint8 before, bool moved)
{
	return (before & IP_ROW_DEFAULT) | IP_ROW_CHANGED | IP_ROW_DELETED |
		(moved ? IP_ROW_MOVED : 0);
}

/*
 * Rolled back to a version that needs its version block; "older" is that
 * version's state, and "before" the row's.
 */
static inline uint8
ip_state_roll_back(uint8 older, uint8 before)
{
	return IP_ROW_VERSION | (older & IP_ROW_INSERTED) |
		(before & IP_ROW_OVERLAID);
}

static inline uint8
ip_state_freeze(void)
{
	return 0;
}

#ifdef USE_ASSERT_CHECKING

/* The states of all items of a data page. */
typedef struct IpItemStates
{
	OffsetNumber max;
	uint8		of[MaxIndexTuplesPerPage + 1];
} IpItemStates;

extern void ip_state_note(Page page, IpItemStates *states);

/*
 * Returns whether the operation may have led from these states to those that
 * the page's items have now.
 */
extern bool ip_state_may_follow(const IpItemStates *before, IpOp op, Page page);
#endif

#endif							/* IP_STATE_H */
