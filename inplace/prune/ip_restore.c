/*-------------------------------------------------------------------------
 * ip_restore.c
 *	  Rolling back aborted changes.
 *
 * A rollback never needs more room than the row has: an update in place leaves
 * the row's item at least as long as it was (I6).
 *
 * After the rollback of a statement that has changed many rows, nearly all of
 * them are alike: one change to undo.  ip_restore_rows is for these; the
 * general method, with ip_version.c, takes five times as long.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "ip_prune.h"
#include "ip_restore.h"
#include "ip_state.h"
#include "ip_undo.h"
#include "ip_version_satisfy.h"
#include "ip_xid.h"

/* ---- one row ------------------------------------------------------------- */

/* The newest version's body, while v goes to older ones. */
static uint8 from_body[BLCKSZ];

/*
 * Returns whether a version by xid, whose pointer is this command id, is the
 * default inserter's.
 */
static bool
is_default(Page page, IpXid xid, bool inserted, CommandId cid)
{
	const IpSpecial *special = IpPageGetSpecial(page);

	return inserted && special->u.data.default_xid == (TransactionId) xid &&
		special->u.data.default_cid == cid;
}

/*
 * Our removal horizon may be older than another backend's, such as VACUUM's.
 * That backend may have found that v's version is visible to all, and have
 * cleared the default inserter or recycled the undo record.  For an overlaid
 * row this matters: the bytes under its version block would be lost.
 */
static bool
is_frozen_for_others(IpVersion *v)
{
	return ip_version_load_rec(v) != IPV_OK || v->rec.saved == NULL;
}

/* Set the operation's base: the row's current version, on which top stands. */
static void
set_base(IpVersion *top, IpRowOp *op)
{
	op->off = ItemPointerGetOffsetNumber(&top->tid);
	op->base = top->saved ? IP_BASE_OVERLAID : IP_BASE_ROW;
	op->saved = top->saved;
	op->saved_at_home = ip_version_saved_at_home(top);
	memcpy(from_body, top->body, top->bodylen);
	op->from = from_body;
	op->fromlen = top->bodylen;
}

/*
 * Set the operation's result: the row's state on the page becomes that of v's
 * version.
 */
static void
set_target(IpPrune *p, IpVersion *v, IpRowOp *op)
{
	bool		by_default = is_default(p->page, v->xid,
										(v->state & IP_ROW_INSERTED) != 0,
										v->ptr.block);
	bool		overlaid = (v->top_state & IP_ROW_OVERLAID) != 0;
	bool		stays_overlaid = overlaid && !by_default;

	op->hdr = v->hdr;
	op->body = v->body;
	op->bodylen = v->bodylen;
	op->own_xid = false;
	op->undo_off = 0;
	/* a row that stays overlaid needs its undo record */
	if (((stays_overlaid ? ip_prune_is_removable(p, v->xid) :
		  ip_prune_may_forget(p, v->xid)) &&
		 ip_version_status(v) == IP_STATUS_COMMITTED) ||
		(stays_overlaid && is_frozen_for_others(v)))
	{
		p->change.conflict = Max(p->change.conflict, v->xid);
		v->xid = IP_XID_FROZEN;
		op->state = ip_state_freeze();
		op->bodylen = ip_prune_frozen_length(v);
	}
	else if (by_default)
		op->state = ip_state_insert_default();
	else
	{
		op->state = ip_state_roll_back(v->state, v->top_state);
		op->xid = (TransactionId) v->xid;
		op->ptr = v->ptr;
	}
	/* the version was on the page before, so it fits or is damaged */
	if (op->bodylen < IP_ROW_MIN_BODY ||
		ip_item_size(op->state, op->bodylen) > v->top_itemlen)
		ip_version_damaged(v);
}

/*
 * Put the operation for a row below whose aborted changes v stands, or whose
 * insertion has aborted (IPV_NONE); op has its base.  Where rows of an aborted
 * insertion stay for a while, the row becomes such a one.
 */
static IpPruneAction
put_below(IpPrune *p, IpVersion *v, IpvResult below, IpRowOp *op)
{
	if (v->damaged)
		return PRUNE_DAMAGED;
	if (below == IPV_NONE &&
		(v->steps == 0 || !ip_prune_keeps_aborted(p, v->xid)))
	{
		ip_prune_put_dead(p, op->off);
		return PRUNE_DEAD;
	}
	set_target(p, v, op);
	if (v->damaged)
		return PRUNE_DAMAGED;
	/* IP_OP_CLEAR_CHANGER undoes the change */
	if ((v->top_state & IP_ROW_CHANGED) && p->changer_is_over)
		return PRUNE_KEEP;
	ip_op_row(p->w, op);
	return PRUNE_RESTORE;
}

IpPruneAction
ip_restore_version(IpPrune *p, IpVersion *v, IpRowOp *op)
{
	IpvResult	below;

	Assert(ip_version_status(v) == IP_STATUS_ABORTED && v->steps == 0);
	set_base(v, op);
	below = ip_version_skip_aborted(v);
	if (below == IPV_FAR)
		return PRUNE_FAR;
	if (below == IPV_STALE)
	{
		if (!v->soft)
			ip_version_missing(v);
		v->damaged = true;
	}
	return put_below(p, v, below, op);
}

/* Begin the change of one row. */
static void
begin_row(IpPrune *p, Relation rel, Buffer buffer)
{
	ip_prune_begin(p, rel, buffer, false, IP_XID_NONE);
	p->change.info = IP_XLOG_RESTORE;
}

static void
apply_row(IpPrune *p)
{
	ip_change_apply(&p->change);
	ip_prune_at_once(p->page);
}

bool
ip_restore_row(IpVersion *v, Buffer buffer)
{
	IpRowOp		op = {0};
	IpPruneAction action;
	IpPrune		p;

	Assert(v->locked && !v->soft);
	begin_row(&p, v->rel, buffer);
	action = ip_restore_version(&p, v, &op);
	if (action == PRUNE_FAR)
		return false;
	Assert(action == PRUNE_DEAD || action == PRUNE_RESTORE);
	apply_row(&p);
	return true;
}

bool
ip_restore_row_far(Relation rel, const ItemPointerData *tid, bool soft)
{
	IpVersion	far_v;
	IpVersion	top;
	IpRowOp		op = {0};
	IpPrune		p;
	Buffer		buffer;
	IpvResult	below = ip_version_find_far(&far_v, rel, tid, soft, &buffer);

	if (below == IPV_STALE)
		return !far_v.damaged;
	Assert((below == IPV_OK || below == IPV_NONE) && far_v.steps > 0);
	if (ip_version_begin(&top, rel, BufferGetBlockNumber(buffer),
						 BufferGetPage(buffer),
						 ItemPointerGetOffsetNumber(tid)) == IPV_OK)
	{
		begin_row(&p, rel, buffer);
		set_base(&top, &op);
		if (put_below(&p, &far_v, below, &op) != PRUNE_DAMAGED)
			apply_row(&p);
	}
	UnlockReleaseBuffer(buffer);
	return !far_v.damaged;
}

bool
ip_restore_far_rows(const IpPrune *p, bool soft)
{
	ItemPointerData tid;

	for (int i = 0; i < p->nfar; i++)
	{
		CHECK_FOR_INTERRUPTS();
		ItemPointerSet(&tid, p->block, p->far[i]);
		if (!ip_restore_row_far(p->rel, &tid, soft))
			return false;
	}
	return true;
}

/* ---- rows that take one step --------------------------------------------- */

/*
 * Number of a page's rows that are tried to find out whether the others are
 * worthwhile
 */
#define LOOKS	8

/* Rollback of a page's rows. */
typedef struct Restore
{
	IpPrune    *p;
	IpXid		aborted;		/* an xid that has aborted; or IP_XID_NONE */
	IpXid		removable;		/* an xid that is visible to all; or
								 * IP_XID_NONE */
	uint32		used;			/* bytes used in bodies */
	int			n;
} Restore;

/* The resulting rows, for the forward path. */
static IpRestored rows[IP_MAX_ROWS_PER_PAGE];
static uint8 bodies[BLCKSZ];

static bool
has_aborted(Restore *r, IpXid xid)
{
	if (xid != r->aborted && ip_xid_status_locked(xid) == IP_STATUS_ABORTED)
		r->aborted = xid;
	return xid == r->aborted;
}

/*
 * Returns whether xid's changes are visible to all, and rows need no longer
 * name it.
 */
static bool
all_see(Restore *r, IpXid xid)
{
	if (xid != r->removable && !IpXidIsFrozen(xid) && xid < r->p->kept_from &&
		ip_xid_status_locked(xid) == IP_STATUS_COMMITTED &&
		ip_prune_is_removable(r->p, xid))
	{
		r->removable = xid;
		r->p->change.conflict = Max(r->p->change.conflict, xid);
	}
	return IpXidIsFrozen(xid) || xid == r->removable;
}

/*
 * Get the row's stored state after its change has been undone.  False if it
 * would need a version block, or be dead because the default inserter has not
 * committed.
 */
static bool
state_before(Restore *r, const IpUndoRec *rec, uint8 *state)
{
	*state = ip_state_freeze();
	if (all_see(r, rec->prev_xid))
		return true;
	*state = ip_state_insert_default();
	return is_default(r->p->page, rec->prev_xid, rec->prev_inserted,
					  rec->prev_ptr.block) &&
		ip_xid_status_locked(rec->prev_xid) == IP_STATUS_COMMITTED;
}

/* Put the row's part of the operation. */
static void
put_row(Restore *r, const IpRestored *row, const IpUndoRec *rec, bool home,
		bool cut)
{
	uint8		how = row->state == IP_ROW_DEFAULT ? IP_RESTORE_DEFAULT : 0;

	if (home)
		how |= IP_RESTORE_HOME;
	else
	{
		how |= (rec->flags & IP_REC_HDR) ? IP_RESTORE_HDR : 0;
		how |= rec->saved ? IP_RESTORE_SAVED : 0;
		how |= rec->kind == IP_UNDO_UPDATE ? IP_RESTORE_DELTA : 0;
	}
	how |= cut ? IP_RESTORE_LEN : 0;
	ip_op_restore_add(r->p->w, how, r->n > 0 ? rows[r->n - 1].off : 0,
					  row->off, rec->hdr, rec->saved, rec->delta, rec->deltalen,
					  row->bodylen);
}

/* Read the row at off, if its last change has aborted. */
static bool
read_aborted(Restore *r, OffsetNumber off, IpRow *row)
{
	return ip_row_read_changed(r->p->page, off, row) &&
		has_aborted(r, row->xid);
}

/* Try some rows: returns whether there are rows that can be rolled back. */
static bool
is_likely(Restore *r, const IpItemList *list)
{
	IpRow		row;

	for (int i = 0; i < list->n; i += list->n / LOOKS + 1)
	{
		if (read_aborted(r, list->off[i], &row))
			return true;
	}
	return false;
}

/* Roll back the row at off, if it is one of those. */
static void
restore_row(Restore *r, OffsetNumber off)
{
	static uint8 buf[BLCKSZ];
	IpRestored *result = &rows[r->n];
	ItemPointerData tid;
	IpUndoRec	rec;
	IpRow		row;
	int			column;
	int			len;
	int			whole;

	if (!read_aborted(r, off, &row))
		return;
	ItemPointerSet(&tid, r->p->block, off);
	if (!ip_undo_peek(r->p->rel, row.ptr, &tid, row.xid, r->p->page,
					  buf, &rec) || rec.prev_xid >= ip_xid_next() ||
		!state_before(r, &rec, &result->state))
		return;
	whole = len = ip_undo_body(&row, &rec, bodies + r->used,
							   sizeof(bodies) - r->used);
	result->off = off;
	result->hdr = (rec.flags & IP_REC_HDR) ? rec.hdr : row.hdr;
	result->body = bodies + r->used;
	/* no longer version will become current again: drop trailing zeros */
	if (len >= 0 && result->state == 0 &&
		ip_body_may_be_padded(result->body, len))
		len = ip_body_measure(RelationGetDescr(r->p->rel), result->hdr,
							  result->body, len, &column);
	if (len < 0)
		return;
	result->bodylen = Min(whole, Max(IP_ROW_MIN_BODY, len));
	if (result->bodylen < IP_ROW_MIN_BODY ||
		ip_item_size(result->state, result->bodylen) >
		ItemIdGetLength(PageGetItemId(r->p->page, off)))
		return;
	put_row(r, result, &rec, row.ptr.block == r->p->block,
			result->bodylen < whole);
	r->used += result->bodylen;
	r->n++;
}

int
ip_restore_rows(IpPrune *p)
{
	Restore		r = {p, IP_XID_NONE, IP_XID_NONE};
	IpXid		conflict = p->change.conflict;
	uint8	   *start = p->w->p;
	uint8	   *begin;

	Assert(ip_page_is_locked(p->page, true));
	if (!is_likely(&r, &p->list))
		return 0;
	begin = ip_op_restore_begin(p->w);
	for (int i = 0; i < p->list.n; i++)
		restore_row(&r, p->list.off[i]);
	ip_op_restore_end(p->w, begin);
	if (r.n == 0)
	{
		p->w->p = start;
		p->change.conflict = conflict;
		return 0;
	}
	p->change.restored = rows;
	p->change.nrestored = r.n;
	return r.n;
}
