/*-------------------------------------------------------------------------
 * ip_prune.c
 *	  Putting back aborted changes, and dropping what nobody needs any more.
 *
 * ROLLBACK does nothing; an aborted change stays in the row until the next
 * writer of the row, a prune of the page, or the end of its undo page's life
 * puts the version before back.  That never needs more room than the row has:
 * an update in place leaves the row's item at least as long as it was.
 *-------------------------------------------------------------------------
 */
#include "ip_compat.h"

#include "ip_lock.h"
#include "ip_prune.h"
#include "ip_space.h"
#include "ip_wal.h"
#include "ip_xid.h"

#define MAX_BASE_AGE	(((IpXid) 1 << 32) - ((IpXid) 1 << 28))
#define NEW_BASE_AGE	((IpXid) 1 << 31)

/* A page with deletions that are not flushed is not worth another look for so many transactions. */
#define FLUSH_XIDS		32

typedef enum PruneAction
{
	PRUNE_KEEP,
	PRUNE_BLOCKED,				/* aborted, but somebody holds a lock on the row, or damaged */
	PRUNE_DEAD,
	PRUNE_CHANGE
} PruneAction;

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

/* The row's state on the page becomes that of the version v stands on. */
static void
set_target(IpVersion *v, Page page, IpXid *conflict, IpRowOp *op)
{
	IpSpecial  *special = IpPageGetSpecial(page);
	uint8		overlaid = v->top_state & IP_ROW_OVERLAID;
	int			column;
	int			len;

	op->hdr = v->hdr;
	op->body = v->body;
	op->bodylen = v->bodylen;
	op->own_xid = false;
	op->undo_off = 0;
	if ((ip_xid_removable(v->rel, v->xid) && ip_xid_did_commit(v->xid)) ||
		is_final_for_others(v, special, overlaid))
	{
		*conflict = Max(*conflict, v->xid);
		op->state = 0;
		/* nobody will put back a longer version: zeros behind the values go */
		len = ip_body_measure(RelationGetDescr(v->rel), v->hdr, v->body, v->bodylen, &column);
		if (len < 0)
			ip_version_damaged(v);
		op->bodylen = Max(IP_ROW_MIN_BODY, len);
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

static void
set_base(IpVersion *v, IpRowOp *op)
{
	op->off = ItemPointerGetOffsetNumber(&v->tid);
	op->base = v->saved ? IP_BASE_OVERLAID : IP_BASE_ROW;
	op->saved = v->saved;
	memcpy(from_body, v->body, v->bodylen);
	op->from = from_body;
	op->fromlen = v->bodylen;
}

/* Go to the newest version that was not rolled back. */
static PruneAction
restore_target(IpVersion *v, Page page, IpXid *conflict, IpRowOp *op)
{
	set_base(v, op);
	do
	{
		if (v->state & IP_ROW_INSERTED)
			return PRUNE_DEAD;
		if (ip_version_older(v) != IPV_OK)
		{
			if (!v->soft)
				ip_version_missing(v);
			v->damaged = true;
			return PRUNE_BLOCKED;
		}
	} while (ip_xid_status(v->xid) == IP_XID_ABORTED);
	set_target(v, page, conflict, op);
	return PRUNE_CHANGE;
}

/* May a row that xid has deleted for everybody become a dead item?  If flush is set, what is in its way is flushed. */
static bool
may_die(Relation rel, IpXid xid, bool flush)
{
	if (ip_deletion_is_durable(rel, xid))
		return true;
	if (flush)
		ip_xid_flush_commit(xid);
	return flush;
}

/* What to do with the row whose newest version v stands on. */
static PruneAction
row_action(IpVersion *v, Page page, bool thorough, IpXid *conflict, IpRowOp *op)
{
	bool		locked = (v->top_state & IP_ROW_LOCKED) != 0;
	bool		live_lock;
	IpXidStatus status;

	if (!(v->top_state & IP_ROW_VERSION) && !(v->state & IP_ROW_INSERTED))
		return PRUNE_KEEP;
	status = ip_xid_status(v->xid);
	if (status == IP_XID_MINE || status == IP_XID_RUNNING)
		return PRUNE_KEEP;
	ip_version_unlock(v);
	live_lock = v->has_lock && ip_lock_is_live(&v->lock);
	if (status == IP_XID_ABORTED)
		return live_lock ? PRUNE_BLOCKED : restore_target(v, page, conflict, op);

	if (ip_xid_removable(v->rel, v->xid))
	{
		if (v->state & IP_ROW_DELETED)
		{
			if (!may_die(v->rel, v->xid, thorough))
				return PRUNE_KEEP;
			*conflict = Max(*conflict, v->xid);
			return PRUNE_DEAD;
		}
		if (!(v->top_state & IP_ROW_VERSION))
			return PRUNE_KEEP;	/* IP_OP_CLEAR_DEFAULT does it */
		if (!live_lock)
		{
			set_base(v, op);
			set_target(v, page, conflict, op);
			return PRUNE_CHANGE;
		}
	}
	else if (locked && thorough && v->has_lock && !live_lock)
	{
		set_base(v, op);
		set_target(v, page, conflict, op);
		return PRUNE_CHANGE;
	}
	return PRUNE_KEEP;
}

/* Put the operation for one row; false if there is nothing to do. */
static bool
prune_one(IpVersion *v, Page page, bool thorough, IpWriter *w, IpXid *conflict,
		  PruneAction *action)
{
	IpRowOp		op = {0};

	*action = row_action(v, page, thorough, conflict, &op);
	if (v->damaged)
		*action = PRUNE_BLOCKED;
	if (*action == PRUNE_DEAD)
		ip_op_dead(w, ItemPointerGetOffsetNumber(&v->tid));
	else if (*action == PRUNE_CHANGE)
		ip_op_row(w, &op);
	else
		return false;
	return true;
}

/* Is the row deleted for everybody?  What such a row was is nobody's concern: its undo is not read. */
static bool
is_deleted(Relation rel, BlockNumber block, Page page, OffsetNumber off, IpRow *row)
{
	return ip_row_read_deleted(rel, block, page, off, row) &&
		ip_state_is_dead(rel, row->state, row->xid);
}

/* Put the operation for such a row; false if its deletion has to be flushed before. */
static bool
prune_deleted(Relation rel, OffsetNumber off, const IpRow *row, bool thorough, IpWriter *w,
			  IpXid *conflict)
{
	if (!may_die(rel, row->xid, thorough))
		return false;
	*conflict = Max(*conflict, row->xid);
	ip_op_dead(w, off);
	return true;
}

static IpXid
default_inserter(Page page)
{
	IpSpecial  *special = IpPageGetSpecial(page);

	return TransactionIdIsValid(special->u.data.default_xid) ?
		ip_xid_after(special->u.data.xid_base, special->u.data.default_xid) : IP_XID_NONE;
}

/*
 * The default inserter's rows need it no more, if it has ended: they are
 * visible to all, or (it has aborted) they have become dead just before.
 */
static bool
prune_default(Relation rel, IpXid xid, IpXidStatus status, IpWriter *w, IpXid *conflict)
{
	if (IpXidIsFinal(xid))
		return false;
	if (status == IP_XID_COMMITTED && ip_xid_removable(rel, xid))
		*conflict = Max(*conflict, xid);
	else if (status != IP_XID_ABORTED)
		return false;
	ip_op_simple(w, IP_OP_CLEAR_DEFAULT);
	return true;
}

bool
ip_page_base_is_old(Page page)
{
	return ip_next_xid() > IpPageGetSpecial(page)->u.data.xid_base + MAX_BASE_AGE;
}

void
ip_prune_page(Relation rel, Buffer buffer, bool thorough)
{
	static IpVersion v;
	Page		page = BufferGetPage(buffer);
	BlockNumber block = BufferGetBlockNumber(buffer);
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	IpXid		next = ip_next_xid();
	IpXid		conflict = IP_XID_NONE;
	IpXid		oldest = next;	/* of those that stay */
	IpXid		inserter = default_inserter(page);
	IpXidStatus inserter_status = ip_xid_status(inserter);
	bool		changed = false;
	bool		unflushed = false;
	PruneAction action;
	IpChange	change;
	IpWriter   *w;
	IpRow		row;

	/*
	 * The inserter's status is what it was before we look at rows: if it aborts
	 * while we do, some of them have been kept.
	 */
	ip_change_begin(&change, rel, IP_XLOG_PRUNE, InvalidTransactionId);
	w = ip_change_block(&change, buffer, false);
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		if (IpXidIsFinal(inserter) && !ip_row_may_be(page, off, IP_ROW_VERSION))
			continue;
		if (is_deleted(rel, block, page, off, &row))
		{
			if (prune_deleted(rel, off, &row, thorough, w, &conflict))
				changed = true;
			else
			{
				unflushed = true;
				oldest = Min(oldest, row.xid);
			}
			continue;
		}
		switch (ip_version_begin(&v, rel, block, page, off))
		{
			case IPV_OK:
				changed |= prune_one(&v, page, thorough, w, &conflict, &action);
				if (action != PRUNE_DEAD && !IpXidIsFinal(v.xid) &&
					!(action == PRUNE_CHANGE && ip_xid_removable(rel, v.xid)))
					oldest = Min(oldest, v.xid);
				break;
			case IPV_NONE:
				break;
			case IPV_STALE:
				ip_version_missing(&v);
		}
	}
	changed |= prune_default(rel, inserter, inserter_status, w, &conflict);
	if (thorough && oldest + NEW_BASE_AGE > next &&
		next > IpPageGetSpecial(page)->u.data.xid_base + NEW_BASE_AGE + NEW_BASE_AGE / 2)
	{
		ip_op_base(w, next - NEW_BASE_AGE);
		changed = true;
	}
	if (changed)
	{
		change.conflict = conflict;
		ip_change_apply(&change);
	}
	((PageHeader) page)->pd_prune_xid = (TransactionId) next + (unflushed ? FLUSH_XIDS : 0);
}

void
ip_prune_page_opt(Relation rel, Buffer buffer)
{
	TransactionId hint = ((PageHeader) BufferGetPage(buffer))->pd_prune_xid;

	/* nothing that was written before the last prune can have become removable? */
	if (TransactionIdIsValid(hint) && !ip_xid_removable(rel, ip_xid_full(hint)))
		return;
	ip_prune_page(rel, buffer, false);
}

/*
 * A row that stays overlaid: could a rollback, or the end of a lock, make a
 * version current again whose first bytes are in undo_block?  One that has been
 * rolled back since we found it running could.
 */
static bool
needs_saved_bytes(IpVersion *v, BlockNumber undo_block)
{
	IpXidStatus status;

	ip_version_unlock(v);
	do
	{
		if (!(v->state & IP_ROW_INSERTED) && v->ptr.block == undo_block)
			return true;
		status = ip_xid_status(v->xid);
	} while (status != IP_XID_COMMITTED && ip_version_older(v) == IPV_OK);
	return false;
}

/* Is the item not a row, or a sound one?  Who only wants to use an undo page again need not hear of others. */
static bool
is_sound(Page page, OffsetNumber off)
{
	IpRow		row;

	return off < FirstOffsetNumber || off > PageGetMaxOffsetNumber(page) ||
		!ItemIdIsNormal(PageGetItemId(page, off)) || ip_row_decode(page, off, &row) == NULL;
}

/* ip_prune_rows, with the page locked. */
static IpNeed
prune_rows(Relation rel, Buffer buffer, const ItemPointerData *tids, int ntids,
		   BlockNumber undo_block)
{
	static IpVersion v;
	BlockNumber block = BufferGetBlockNumber(buffer);
	Page		page = BufferGetPage(buffer);
	bool		changed = false;
	IpNeed		need = IP_NEED_NONE;
	PruneAction action;
	IpChange	change;
	IpWriter   *w;
	IpRow		row;

	ip_change_begin(&change, rel, IP_XLOG_PRUNE, InvalidTransactionId);
	w = ip_change_block(&change, buffer, false);
	for (int i = 0; i < ntids; i++)
	{
		OffsetNumber off = ItemPointerGetOffsetNumber(&tids[i]);

		if (!is_sound(page, off))
			need = IP_NEED_BAD;
		else if (is_deleted(rel, block, page, off, &row))
			changed |= prune_deleted(rel, off, &row, true, w, &change.conflict);
		else
		{
			IpvResult	result = ip_version_begin_soft(&v, rel, block, page, off);

			if (result == IPV_STALE)
				need = IP_NEED_BAD;
			if (result != IPV_OK)
				continue;
			changed |= prune_one(&v, page, true, w, &change.conflict, &action);
			if (action == PRUNE_BLOCKED ||
				(action == PRUNE_KEEP && (v.top_state & IP_ROW_OVERLAID) &&
				 needs_saved_bytes(&v, undo_block)))
				need = Max(need, IP_NEED_NOW);
			if (v.damaged)
				need = IP_NEED_BAD;
		}
	}
	if (changed)
		ip_change_apply(&change);
	return need;
}

IpNeed
ip_prune_rows(Relation rel, const ItemPointerData *tids, int ntids, BlockNumber undo_block)
{
	BlockNumber block = ItemPointerGetBlockNumber(tids);
	IpNeed		need = IP_NEED_NONE;
	Buffer		buffer;
	Page		page;

	if (block == IP_META_BLOCK)
		return IP_NEED_BAD;
	if (!ip_block_exists(rel, block))
		return IP_NEED_NONE;
	buffer = ip_read_buffer(rel, block);
	page = BufferGetPage(buffer);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	if (ip_page_is_ours(page) && IpPageGetSpecial(page)->kind == IP_PAGE_DATA)
		need = prune_rows(rel, buffer, tids, ntids, undo_block);
	else if (!ip_page_is_ours(page) && !PageIsNew(page))
		need = IP_NEED_BAD;
	UnlockReleaseBuffer(buffer);
	return need;
}

void
ip_restore_row(IpVersion *v, Buffer buffer)
{
	IpRowOp		op = {0};
	IpChange	change;
	IpWriter   *w;
	Page		page = BufferGetPage(buffer);

	ip_version_unlock(v);
	ip_change_begin(&change, v->rel, IP_XLOG_RESTORE, InvalidTransactionId);
	w = ip_change_block(&change, buffer, false);
	if (restore_target(v, page, &change.conflict, &op) == PRUNE_DEAD)
		ip_op_dead(w, ItemPointerGetOffsetNumber(&v->tid));
	else
		ip_op_row(w, &op);
	ip_change_apply(&change);
}
