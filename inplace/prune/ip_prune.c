/*-------------------------------------------------------------------------
 * ip_prune.c
 *	  Pruning a page: aborted changes are rolled back, rows that are visible to
 *	  all are frozen, dead rows become dead items, and undo records at home
 *	  that are not needed are removed.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/visibilitymap.h"
#include "commands/vacuum.h"

#include "ip_change.h"
#include "ip_dead.h"
#include "ip_home.h"
#include "ip_map.h"
#include "ip_moves.h"
#include "ip_page.h"
#include "ip_page_check.h"
#include "ip_prune.h"
#include "ip_prune_row.h"
#include "ip_rel.h"
#include "ip_restore.h"
#include "ip_undo.h"
#include "ip_version_satisfy.h"
#include "ip_xid.h"

/* Begin a prune of all rows of a page; prune_page follows. */
static void
begin_page(IpPrune *p, Relation rel, Buffer buffer, bool thorough, bool soft,
		   IpXid horizon, Buffer map)
{
	ip_prune_begin(p, rel, buffer, thorough, horizon);
	p->soft = soft;
	p->map = map;
	ip_row_list(p->page, &p->list);
}

/*
 * Put the operation for frozen rows.  It must precede the removal of undo
 * records at home, which may have their bytes.
 */
static void
put_frozen(IpPrune *p)
{
	if (p->nfrozen > 0)
		ip_op_freeze(p->w, p->frozen, p->nfrozen);
}

/* No index names the rows of a TOAST table, so their items are free at once. */
static void
put_unused(IpPrune *p)
{
	if (p->ndead > 0 && ip_rel_is_toast(p->rel))
		ip_op_unused(p->w, p->dead, p->ndead);
}

/*
 * Clear the default inserter, if it has ended: its rows are visible to all or,
 * if it has aborted, they have just become dead.
 */
static void
prune_default(IpPrune *p, IpXid xid, IpXidStatus status)
{
	if (IpXidIsFrozen(xid))
		return;
	if (status == IP_STATUS_COMMITTED && ip_prune_may_forget(p, xid))
		p->change.conflict = Max(p->change.conflict, xid);
	else if (status != IP_STATUS_ABORTED || p->keeps_inserter)
	{
		p->waits |= status != IP_STATUS_COMMITTED ||
			!ip_prune_is_removable(p, xid);
		p->oldest = Min(p->oldest, xid);
		return;
	}
	ip_op_simple(p->w, IP_OP_CLEAR_DEFAULT);
	p->changed = true;
}

/* Clear the default changer, if no row needs it. */
static void
prune_changer(IpPrune *p)
{
	IpXid		xid = ip_page_default_changer(p->page);

	if (IpXidIsFrozen(xid))
		return;
	if (p->nchanged > 0 && !p->changer_is_over)
	{							/* I21 */
		p->oldest = Min(p->oldest, xid);
		return;
	}
	ip_op_simple(p->w, IP_OP_CLEAR_CHANGER);
	p->nrows += ip_moves_find(p->page) != InvalidOffsetNumber;
	p->changed = true;
}

/* Drop undo records at home that are not needed. */
static void
prune_homes(IpPrune *p)
{
	OffsetNumber offs[IP_MAX_ROWS_PER_PAGE];
	IpXid		oldest = IP_XID_MAX;
	int			n = ip_home_useless(&p->homes, p->rel, p->horizon, offs,
									&p->change.conflict, &oldest);

	p->waits |= oldest != IP_XID_MAX;
	p->oldest = Min(p->oldest, oldest);

	if (n > 0)
		ip_op_drop(p->w, offs, n);	/* I22 */
	p->changed |= n > 0;
	p->nrows += n;
}

/* Prune the row at off, and note what stays of it. */
static void
prune_row(IpPrune *p, OffsetNumber off)
{
	IpVersion  *v = &p->row;
	IpPruneAction action;

	if (ip_prune_row_at_once(p, off))
		return;
	switch (p->soft ? ip_version_begin_soft(v, p->rel, p->block, p->page, off) :
			ip_version_begin(v, p->rel, p->block, p->page, off))
	{
		case IPV_OK:
			action = ip_prune_version(p, v);
			p->damaged |= v->damaged;
			if (action != PRUNE_DEAD && action != PRUNE_FREEZE &&
				!IpXidIsFrozen(v->xid))
			{
				/* a row that only kept_from keeps waits for no transaction */
				p->waits |= action != PRUNE_KEEP ||
					!ip_prune_is_removable(p, v->xid);
				p->oldest = Min(p->oldest, v->xid);
			}
			break;
		case IPV_NONE:
			break;
		case IPV_FAR:
		case IPV_STALE:
			if (!p->soft)
				ip_version_missing(v);
			p->damaged = true;
	}
}

/*
 * Returns whether all rows of the page may be visible to all.  The answer is
 * exact if the page is not changed; else IP_OP_VISIBLE and IP_OP_KEYS check
 * again.
 */
static bool
may_be_frozen(IpPrune *p, IpXid next)
{
	bool		may = p->oldest >= next && p->nfar == 0 &&
		(p->changed || p->list.n == 0);

	Assert(p->changed || may == ip_map_is_frozen(p->page) ||
		   PageGetMaxOffsetNumber(p->page) > IP_MAX_ROWS_PER_PAGE);
	return may;
}

/* Returns whether the page may become quiet (I23). */
static bool
may_be_quiet(IpPrune *p, IpXid next)
{
	return p->quiets && IpPageGetSpecial(p->page)->keys == IP_KEYS_STALE &&
		may_be_frozen(p, next);
}

/*
 * Returns whether the page may become all-visible, or its bits in the map be
 * set.
 */
static bool
may_be_visible(IpPrune *p, IpXid next)
{
	const uint8 both = VISIBILITYMAP_ALL_VISIBLE | VISIBILITYMAP_ALL_FROZEN;

	if (BufferIsInvalid(p->map) || IpPageGetSpecial(p->page)->keys != 0 ||
		!may_be_frozen(p, next))
		return false;
	return p->changed || (p->list.ndead == 0 &&
						  (!PageIsAllVisible(p->page) ||
						   visibilitymap_get_status(p->rel, p->block,
													&p->map) != both));
}

/*
 * Write the changes; false if the page is damaged in a way that might make
 * them fail.
 */
static bool
apply_prune(IpPrune *p)
{
	if (!p->changed)
		return true;
	if (PageGetMaxOffsetNumber(p->page) > IP_MAX_ROWS_PER_PAGE ||
		(p->nrows > 1 && !ip_page_may_move_items(p->page)))
		return false;
	p->change.dead_until = ip_dead_until(p->unflushed);
	ip_change_apply(&p->change);
	return true;
}

/*
 * Prune all rows on p->list; p->far gets those for which the page would have
 * to be unlocked.  Nothing is done if p is soft and there is damage.
 */
static void
prune_page(IpPrune *p)
{
	IpXid		next = p->oldest;
	IpXid		inserter = ip_page_default_inserter(p->page);
	IpXidStatus inserter_status = ip_xid_status_locked(inserter);
	int			nrestored = 0;

	Assert(IpPageGetSpecial(p->page)->kind == IP_PAGE_DATA);

	/*
	 * The inserter's status was read before its rows are examined.  So its
	 * rows are kept if it aborts in between.  Unless it has aborted, a row
	 * without a version block needs no look: it stays as it is, or
	 * IP_OP_CLEAR_DEFAULT freezes it.
	 */
	ip_home_note(&p->homes, p->block, p->page, &p->list);
	p->changer_is_over = ip_page_changer_is_over(p->page);
	if (inserter_status == IP_STATUS_ABORTED)
	{
		p->keeps_inserter = ip_prune_keeps_aborted(p, inserter);
		p->inserter = inserter;
	}
	p->nrows = ip_restore_rows(p);
	p->changed = p->nrows > 0;
	for (int i = 0; i < p->list.n; i++)
	{
		OffsetNumber off = p->list.off[i];

		if (nrestored < p->change.nrestored &&
			p->change.restored[nrestored].off == off)
			nrestored++;
		else if (inserter_status == IP_STATUS_ABORTED ||
				 ip_row_may_be(p->page, off, IP_ROW_VERSION | IP_ROW_CHANGED))
			prune_row(p, off);
	}
	if (p->damaged)
		return;
	put_frozen(p);
	prune_changer(p);
	prune_homes(p);
	prune_default(p, inserter, inserter_status);
	put_unused(p);
	if (p->thorough && p->nfar == 0 && p->oldest + IP_DATA_XIDS_BEFORE > next &&
		ip_xid_data_base(next) > ip_data_xid_base(IpPageGetSpecial(p->page)))
	{
		ip_op_base(p->w, ip_xid_data_base(next));
		p->changed = true;
	}
	if (may_be_quiet(p, next))
	{
		ip_op_keys(p->w, IP_KEYS_STALE | IP_KEYS_QUIET);
		p->changed = true;
	}
	if (may_be_visible(p, next))
	{
		ip_change_visible(&p->change, p->map);
		p->changed = true;
	}
	p->damaged = !apply_prune(p);
	if (p->damaged && !p->soft)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("items of block %u of relation \"%s\" overlap, reach outside of it, or are too many",
						p->block, RelationGetRelationName(p->rel)),
				 errhint("Run inplace_check('%s') to find all damage.",
						 RelationGetRelationName(p->rel))));
	if (!p->damaged)
		ip_prune_set_hint(p->page, p->waits);
}

int
ip_prune_page(Relation rel, Buffer buffer, IpXid horizon, IpXid kept_from,
			  Buffer map, bool quiets, IpItemList *before)
{
	IpPrune		p;
	int			nunused = 0;

	/* a third pass is needed only if many more changes have aborted */
	do
	{
		begin_page(&p, rel, buffer, true, false, horizon, map);
		if (before != NULL)
			*before = p.list;
		before = NULL;			/* of the first pass */
		p.kept_from = kept_from;
		p.quiets = quiets;
		prune_page(&p);
		nunused += ip_rel_is_toast(rel) ? p.ndead : 0;
		if (p.nfar == 0)
			return nunused;
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		(void) ip_restore_far_rows(&p, false);
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	} while (ip_page_kind(rel, p.block, p.page) == IP_PAGE_DATA);
	return nunused;
}

bool
ip_prune_for_base(Relation rel, Buffer buffer)
{
	IpPrune		p;

	begin_page(&p, rel, buffer, true, true, IP_XID_NONE, InvalidBuffer);
	prune_page(&p);
	return p.nfar == 0 && !p.damaged;
}

/*
 * Returns whether the page's special space or a row names a transaction that
 * has not begun.  The status of such a transaction must not be looked up.  The
 * xids of records have been checked already.
 */
static bool
names_future(IpPrune *p)
{
	IpXid		next = ip_xid_next();
	bool		found = ip_page_default_inserter(p->page) >= next ||
		ip_page_default_changer(p->page) >= next;

	for (int i = 0; i < p->list.n && !found; i++)
	{
		IpRow		row;

		found = ip_row_read_sound(p->page, p->list.off[i], IP_ROW_VERSION,
								  &row) && row.xid >= next;
	}
	return found;
}

/*
 * Damage to one row must not prevent reads or changes of others, so it causes
 * no error, but nothing is done.
 */
static bool
prune_softly(IpPrune *p, Relation rel, Buffer buffer, Buffer map)
{
	begin_page(p, rel, buffer, false, true, IP_XID_NONE, map);
	if (PageGetMaxOffsetNumber(p->page) > IP_MAX_ROWS_PER_PAGE ||
		!ip_undo_rows_are_sound(p->block, p->page, &p->list) || names_future(p))
		return false;
	prune_page(p);
	return !p->damaged;
}

bool
ip_prune_page_opt(Relation rel, Buffer buffer)
{
	IpPrune		p;

	return !ip_prune_is_useless(rel, BufferGetPage(buffer)) &&
		prune_softly(&p, rel, buffer, InvalidBuffer) && p.changed;
}

void
ip_prune_page_heal(Relation rel, Buffer buffer, Buffer map)
{
	Page		page = BufferGetPage(buffer);
	IpPrune		p;

	/* VACUUM passes over all-visible pages, and must find the room there */
	if (ip_rel_is_toast(rel))
		map = InvalidBuffer;
	/* another backend may have pruned the page before us */
	if (!PageIsNew(page) && ip_page_is_ours(page) &&
		IpPageGetSpecial(page)->kind == IP_PAGE_DATA &&
		!ip_prune_is_useless(rel, page) && !prune_softly(&p, rel, buffer, map))
		ip_prune_put_off(page);
}

/*
 * Returns whether undo_block has the first bytes of a version that may be the
 * row's newest one, now or after a rollback.  That is v, or an older version if
 * v's transaction has not committed.  The row stays overlaid, or is rolled back
 * to an overlaid state.
 */
static bool
needs_saved_bytes(IpVersion *v, BlockNumber undo_block)
{
	IpXidStatus status;
	IpvResult	result = IPV_OK;

	do
	{
		if (!(v->state & IP_ROW_INSERTED) && v->ptr.block == undo_block)
			return true;
		status = ip_version_status(v);
		if (status != IP_STATUS_COMMITTED)
			result = ip_version_older(v);
	} while (status != IP_STATUS_COMMITTED && result == IPV_OK);
	return result == IPV_FAR;	/* unknown, so assume it */
}

/* Prune one row so that it does not need the undo page. */
static IpNeed
prune_for_undo(IpPrune *p, OffsetNumber off, BlockNumber undo_block)
{
	IpVersion  *v = &p->row;
	IpPruneAction action;

	if (!ip_row_is_sound(p->page, off))
		return IP_NEED_BAD;
	if (ip_prune_row_at_once(p, off))
		return IP_NEED_NONE;
	switch (ip_version_begin_soft(v, p->rel, p->block, p->page, off))
	{
		case IPV_OK:
			break;
		case IPV_NONE:
			return IP_NEED_NONE;
		case IPV_FAR:
		case IPV_STALE:
			return IP_NEED_BAD;
	}
	/* the status of a transaction that has not begun must not be looked up */
	if (v->xid >= ip_xid_next())
		return IP_NEED_BAD;
	action = ip_prune_version(p, v);
	if (v->damaged)
		return IP_NEED_BAD;
	if (action == PRUNE_DAMAGED || action == PRUNE_FAR)
		return IP_NEED_NOW;
	if ((action == PRUNE_KEEP ||
		 (action == PRUNE_RESTORE && !IpXidIsFrozen(v->xid))) &&
		(v->top_state & IP_ROW_OVERLAID) && needs_saved_bytes(v, undo_block))
		return IP_NEED_NOW;
	return v->damaged ? IP_NEED_BAD : IP_NEED_NONE;
}

/*
 * Do ip_prune_rows under one lock of the page, which leaves out the rows in
 * p->far.
 */
static IpNeed
prune_rows(IpPrune *p, Relation rel, const ItemPointerData *tids, int ntids,
		   BlockNumber undo_block)
{
	Buffer		buffer = ip_rel_read_soft(rel, ItemPointerGetBlockNumber(tids),
										  NULL);
	IpNeed		need = IP_NEED_NONE;
	Page		page;

	p->nfar = 0;
	if (BufferIsInvalid(buffer))
		return IP_NEED_BAD;
	page = BufferGetPage(buffer);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	ip_prune_begin(p, rel, buffer, true, IP_XID_NONE);

	/*
	 * The rows may be gone, and the page may now be an undo page, with more
	 * items than a data page has.  If the page is not a sound page of another
	 * kind, its kind may be damaged, and the rows may still be there.
	 */
	if (!ip_page_is_ours(page))
		need = PageIsNew(page) ? IP_NEED_NONE : IP_NEED_BAD;
	else if (IpPageGetSpecial(page)->kind != IP_PAGE_DATA)
		need = ip_page_problem(page, p->block) == NULL ? IP_NEED_NONE :
			IP_NEED_BAD;
	else if (PageGetMaxOffsetNumber(page) > IP_MAX_ROWS_PER_PAGE)
		need = IP_NEED_BAD;
	else
	{
		for (int i = 0; i < ntids; i++)
		{
			OffsetNumber off = ItemPointerGetOffsetNumber(&tids[i]);
			IpNeed		of_row = prune_for_undo(p, off, undo_block);

			/*
			 * A row is pruned only once, because an operation is made for the
			 * row's state on the page.
			 */
			Assert(ItemPointerGetBlockNumber(&tids[i]) == p->block);
			Assert(i == 0 || off > ItemPointerGetOffsetNumber(&tids[i - 1]));
			need = Max(need, of_row);
		}
		put_frozen(p);
		put_unused(p);
		if (!apply_prune(p))
			need = IP_NEED_BAD;
	}
	UnlockReleaseBuffer(buffer);
	return need;
}

IpNeed
ip_prune_rows(Relation rel, const ItemPointerData *tids, int ntids,
			  BlockNumber undo_block)
{
	BlockNumber block = ItemPointerGetBlockNumber(tids);
	IpNeed		need;
	IpPrune		p;

	Assert(ntids > 0 && ip_page_none_is_locked());
	if (block == IP_META_BLOCK)
		return IP_NEED_BAD;
	if (!compat_has_block(rel, block))
		return IP_NEED_NONE;
	need = prune_rows(&p, rel, tids, ntids, undo_block);
	if (need == IP_NEED_BAD || p.nfar == 0)
		return need;
	if (!ip_restore_far_rows(&p, true))
		return IP_NEED_BAD;
	return prune_rows(&p, rel, tids, ntids, undo_block);
}

/* ---- whether a prune is worthwhile --------------------------------------- */

/*
 * The age of a page's xid base from which on the base is renewed.  The xids of
 * a page must be less than 2^32 newer than the base.
 */
#define MAX_BASE_AGE	(((IpXid) 1 << 32) - ((IpXid) 1 << 28))

void
ip_prune_put_off(Page page)
{
	TransactionId own = GetTopTransactionIdIfAny();

	Assert(ip_page_is_locked(page, true));
	((PageHeader) page)->pd_prune_xid =
		ip_hint_of(TransactionIdIsValid(own) ? own :
				   (TransactionId) ip_xid_next());
}

void
ip_prune_set_hint(Page page, bool waits)
{
	if (!waits || ip_map_is_frozen(page))
		((PageHeader) page)->pd_prune_xid = InvalidTransactionId;
	else
		ip_prune_put_off(page);
}

void
ip_prune_at_once(Page page)
{
	/* not FrozenTransactionId: the next change would replace that hint */
	((PageHeader) page)->pd_prune_xid = ip_hint_of(BootstrapTransactionId);
}

bool
ip_prune_is_worth(Relation rel, Page page)
{
	TransactionId stored = ((PageHeader) page)->pd_prune_xid;
	TransactionId own = GetTopTransactionIdIfAny();
	IpXid		hint;

	if (stored == InvalidTransactionId)
		return false;
	hint = ip_xid_after(ip_data_xid_base(IpPageGetSpecial(page)),
						stored - IP_HINT_OFFSET);

	/*
	 * an xid that is not older than our own cannot be removable; this test
	 * needs no snapshots
	 */
	return (!TransactionIdIsValid(own) || hint < ip_xid_full(own)) &&
		ip_xid_removable(rel, hint);
}

bool
ip_prune_is_useless(Relation rel, Page page)
{
	Assert(ip_page_is_locked(page, true));
	/* frozen rows only (I12) */
	return PageIsAllVisible(page) || !ip_prune_is_worth(rel, page);
}

bool
ip_prune_base_is_old(Page page)
{
	return ip_xid_next() >
		ip_data_xid_base(IpPageGetSpecial(page)) + MAX_BASE_AGE;
}
