/*-------------------------------------------------------------------------
 * ip_prune_row.c
 *	  What a prune of a page does with each of its rows.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/xlog.h"

#include "ip_prune_row.h"
#include "ip_version_satisfy.h"

/* The newest version's body, while v goes to older ones. */
static uint8 from_body[BLCKSZ];

static bool
is_default(IpVersion *v, IpSpecial *special)
{
	return (v->state & IP_ROW_INSERTED) &&
		special->u.data.default_xid == (TransactionId) v->xid &&
		special->u.data.default_cid == (CommandId) v->ptr.block;
}

/*
 * Our removal horizon may be older than another backend's (VACUUM's is), which
 * has found that all see the version v stands on, and has cleared the default
 * inserter or recycled the undo record.  For an overlaid row that matters: the
 * bytes under its version block would be lost.
 */
static bool
is_final_for_others(IpVersion *v, IpSpecial *special, uint8 overlaid)
{
	if (!overlaid || is_default(v, special))
		return false;
	return ip_version_load_rec(v) != IPV_OK || v->rec.saved == NULL;
}

/* The body's length when all see the row: no longer version will be put back, so trailing zeros are dropped. */
static int
frozen_length(IpVersion *v)
{
	int			column;
	int			len = ip_body_measure(RelationGetDescr(v->rel), v->hdr, v->body, v->bodylen, &column);

	if (len < 0)
		ip_version_damaged(v);
	return Max(IP_ROW_MIN_BODY, len);
}

void
ip_prune_set_target(IpPrune *p, IpVersion *v, IpRowOp *op)
{
	IpSpecial  *special = IpPageGetSpecial(p->page);
	uint8		overlaid = v->top_state & IP_ROW_OVERLAID;

	op->hdr = v->hdr;
	op->body = v->body;
	op->bodylen = v->bodylen;
	op->own_xid = false;
	op->undo_off = 0;
	/* what stays overlaid needs its undo record */
	if (((overlaid && !is_default(v, special) ? ip_prune_is_removable(p, v->xid) : ip_prune_may_forget(p, v->xid)) &&
		 ip_version_status(v) == IP_STATUS_COMMITTED) ||
		is_final_for_others(v, special, overlaid))
	{
		p->change.conflict = Max(p->change.conflict, v->xid);
		v->xid = IP_XID_FROZEN;
		op->state = 0;
		op->bodylen = frozen_length(v);
	}
	else if (is_default(v, special))
		op->state = IP_ROW_DEFAULT;
	else
	{
		op->state = v->state | IP_ROW_VERSION | overlaid;
		op->xid = (TransactionId) v->xid;
		op->ptr = v->ptr;
	}
	/* what is put back was there before: it fits, or is damaged */
	if (op->bodylen < IP_ROW_MIN_BODY || ip_item_size(op->state, op->bodylen) > v->top_itemlen)
		ip_version_damaged(v);
}

void
ip_prune_set_base(IpVersion *top, IpRowOp *op)
{
	op->off = ItemPointerGetOffsetNumber(&top->tid);
	op->base = top->saved ? IP_BASE_OVERLAID : IP_BASE_ROW;
	op->saved = top->saved;
	op->saved_at_home = ip_version_saved_at_home(top);
	memcpy(from_body, top->body, top->bodylen);
	op->from = from_body;
	op->fromlen = top->bodylen;
}

IpPruneAction
ip_prune_restore_target(IpPrune *p, IpVersion *v, IpRowOp *op)
{
	ip_prune_set_base(v, op);
	switch (ip_version_skip_aborted(v))
	{
		case IPV_OK:
			ip_prune_set_target(p, v, op);
			return PRUNE_CHANGE;
		case IPV_NONE:
			return PRUNE_DEAD;
		case IPV_FAR:
			return PRUNE_FAR;
		case IPV_STALE:
			break;
	}
	if (!v->soft)
		ip_version_missing(v);
	v->damaged = true;
	return PRUNE_DAMAGED;
}

/* A row that xid has deleted for everybody becomes a dead item. */
static void
note_death(IpPrune *p, IpXid xid)
{
	XLogRecPtr	unflushed;

	Assert(ip_xid_status_locked(xid) == IP_STATUS_COMMITTED && ip_prune_is_removable(p, xid));
	if (xid == p->killer)
		return;
	unflushed = ip_version_deletion_unflushed(p->rel, xid);
	if (unflushed != InvalidXLogRecPtr && !RelationNeedsWAL(p->rel))
	{
		/*
		 * wal_level = minimal, and the file is new, but indexes' may not be:
		 * no record of ours is behind the commit
		 */
		XLogFlush(unflushed);
		unflushed = InvalidXLogRecPtr;
	}
	p->killer = xid;
	p->unflushed = Max(p->unflushed, unflushed);
	p->change.conflict = Max(p->change.conflict, xid);
}

static void
note_frozen(IpPrune *p, OffsetNumber off, IpXid xid, uint32 bodylen)
{
	Assert(ip_xid_status_locked(xid) == IP_STATUS_COMMITTED && ip_prune_is_removable(p, xid));
	p->change.conflict = Max(p->change.conflict, xid);
	p->frozen[p->nfrozen++] = (IpFrozen)
	{
		off, bodylen
	};
	p->changed = true;
	p->nrows++;
}

/* What to do with the row whose newest version v stands on. */
static IpPruneAction
row_action(IpPrune *p, IpVersion *v, IpRowOp *op)
{
	IpXidStatus status;

	if (!(v->top_state & (IP_ROW_VERSION | IP_ROW_CHANGED)) && !(v->state & IP_ROW_INSERTED))
		return PRUNE_KEEP;
	status = ip_version_status(v);
	if (status == IP_STATUS_MINE || status == IP_STATUS_RUNNING)
		return PRUNE_KEEP;
	if (status == IP_STATUS_ABORTED)
		return ip_prune_restore_target(p, v, op);

	if (ip_prune_is_removable(p, v->xid))
	{
		if (v->state & IP_ROW_DELETED)
		{
			note_death(p, v->xid);
			return PRUNE_DEAD;
		}
		if (!(v->top_state & (IP_ROW_VERSION | IP_ROW_CHANGED)))
			return PRUNE_KEEP;	/* IP_OP_CLEAR_DEFAULT does it */
		if (!(v->top_state & IP_ROW_OVERLAID) && !ip_prune_may_forget(p, v->xid))
			return PRUNE_KEEP;
		if (ip_row_may_freeze(v->top_state, v->top_ptr, p->block))
		{
			op->bodylen = frozen_length(v);
			return PRUNE_FREEZE;
		}
		ip_prune_set_base(v, op);
		ip_prune_set_target(p, v, op);
		return PRUNE_CHANGE;
	}
	return PRUNE_KEEP;
}

IpPruneAction
ip_prune_version(IpPrune *p, IpVersion *v)
{
	IpRowOp		op = {0};
	IpPruneAction action = row_action(p, v, &op);

	if (v->damaged)
		action = PRUNE_DAMAGED;
	/* IP_OP_CLEAR_CHANGER does it */
	if (action == PRUNE_CHANGE && (v->top_state & IP_ROW_CHANGED) && p->changer_is_over)
		action = PRUNE_KEEP;
	if (action == PRUNE_FREEZE)
	{
		note_frozen(p, ItemPointerGetOffsetNumber(&v->tid), v->xid, op.bodylen < v->bodylen ? op.bodylen : 0);
		return action;
	}
	if (action != PRUNE_CHANGE && action != PRUNE_DEAD && (v->top_state & IP_ROW_CHANGED))
		p->nchanged++;
	if (action == PRUNE_CHANGE)
		ip_home_keep_bytes(&p->homes, p->block, op.state, op.ptr);
	else if (action != PRUNE_DEAD)
		ip_home_keep_bytes(&p->homes, p->block, v->top_state, v->top_ptr);
	if (action == PRUNE_DAMAGED || action == PRUNE_FAR)
		p->homes.keep[ItemPointerGetOffsetNumber(&v->tid)] = true;
	if (action == PRUNE_DEAD)
		ip_op_dead(p->w, ItemPointerGetOffsetNumber(&v->tid));
	else if (action == PRUNE_CHANGE)
		ip_op_row(p->w, &op);
	else if (action == PRUNE_FAR && p->nfar < IP_MAX_ROWS_PER_PAGE)
		p->far[p->nfar++] = ItemPointerGetOffsetNumber(&v->tid);
	if (action == PRUNE_DEAD || action == PRUNE_CHANGE)
	{
		p->changed = true;
		p->nrows++;
	}
	return action;
}

/* Is the row deleted for everybody?  What such a row was does not matter: its undo is not read. */
static bool
is_deleted(IpPrune *p, OffsetNumber off, IpRow *row)
{
	return ip_row_read_deleted(p->rel, p->block, p->page, off, row) &&
		ip_prune_is_removable(p, row->xid) && ip_xid_status_locked(row->xid) == IP_STATUS_COMMITTED;
}

/* Put the operation for such a row. */
static void
prune_deleted(IpPrune *p, OffsetNumber off, const IpRow *row)
{
	note_death(p, row->xid);
	ip_op_dead(p->w, off);
	p->changed = true;
	p->nrows++;
}

/*
 * Do all see the row's insertion, and has nothing happened to it since?  Such a row has no zeros to drop: its body is looked at no more
 * than that of a plain row.
 */
static bool
is_inserted(IpPrune *p, OffsetNumber off, IpRow *row)
{
	return off >= FirstOffsetNumber && off <= PageGetMaxOffsetNumber(p->page) &&
		ip_row_read_sound(p->page, off, IP_ROW_INSERTED, row) &&
		row->state == (IP_ROW_VERSION | IP_ROW_INSERTED) && ip_prune_may_forget(p, row->xid) &&
		ip_xid_status_locked(row->xid) == IP_STATUS_COMMITTED;
}

bool
ip_prune_row_at_once(IpPrune *p, OffsetNumber off)
{
	IpRow		row;

	if (is_deleted(p, off, &row))
		prune_deleted(p, off, &row);
	else if (is_inserted(p, off, &row))
		note_frozen(p, off, row.xid, 0);
	else
		return false;
	return true;
}
