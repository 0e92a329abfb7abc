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
#include "compat.h"

#include "access/xlog.h"

#include "ip_change.h"
#include "ip_dead.h"
#include "ip_default.h"
#include "ip_home.h"
#include "ip_lockers.h"
#include "ip_moves.h"
#include "ip_prune.h"
#include "ip_prune_hint.h"
#include "ip_rel.h"
#include "ip_restore.h"
#include "ip_undo.h"
#include "ip_version_satisfy.h"
#include "ip_xid.h"

#define NEW_BASE_AGE	((IpXid) 1 << 31)

typedef enum PruneAction
{
	PRUNE_KEEP,
	PRUNE_BLOCKED,				/* aborted, but somebody holds a lock on the
								 * row, or damaged */
	PRUNE_FAR,					/* aborted, but by too many changes */
	PRUNE_DEAD,
	PRUNE_CHANGE
} PruneAction;

/* A prune of one page, which is locked. */
typedef struct Prune
{
	Relation	rel;
	BlockNumber block;
	Page		page;
	bool		thorough;
	IpXid		horizon;		/* what precedes it is removable */
	IpChange	change;
	ByteWriter *w;
	bool		changed;
	int			nrows;			/* rows that are changed */
	IpXid		killer;			/* that deleted the last row that goes */
	XLogRecPtr	unflushed;		/* where the deletions of rows that go are in
								 * the WAL, or invalid: on disk (I16) */
	IpXid		oldest;			/* of the xids that stay */
	int			nfar;			/* rows whose aborted changes are too many */
	OffsetNumber far[IP_MAX_ROWS_PER_PAGE];
	bool		changer_is_over;	/* the page's, before rows are looked at */
	int			nchanged;		/* rows that stay changed by it */
	int			nblocked;		/* rows of the default inserter that stay,
								 * though it has aborted */
	IpHomes		homes;
} Prune;

/* The row being looked at. */
static IpVersion row_v;

/* The newest version's body, while v goes to older ones. */
static uint8 from_body[BLCKSZ];

static void
begin_prune(Prune *p, Relation rel, Buffer buffer, bool thorough, IpXid horizon)
{
	Assert(ip_page_is_locked(BufferGetPage(buffer), true));
	p->rel = rel;
	p->block = BufferGetBlockNumber(buffer);
	p->page = BufferGetPage(buffer);
	p->thorough = thorough;
	p->horizon = horizon;
	p->changed = p->changer_is_over = false;
	p->killer = IP_XID_NONE;
	p->unflushed = InvalidXLogRecPtr;
	p->nrows = p->nfar = p->nchanged = p->nblocked = 0;
	p->oldest = ip_xid_next();
	ip_change_begin(&p->change, rel, IP_XLOG_PRUNE, InvalidTransactionId);
	p->w = ip_change_block(&p->change, buffer, false);
}

/* A horizon of VACUUM's, taken at its start, counts beside the current one. */
static bool
is_removable(Prune *p, IpXid xid)
{
	return xid < p->horizon || ip_xid_removable(p->rel, xid);
}

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
set_target(Prune *p, IpVersion *v, IpRowOp *op)
{
	IpSpecial  *special = IpPageGetSpecial(p->page);
	uint8		overlaid = v->top_state & IP_ROW_OVERLAID;
	int			column;
	int			len;

	op->hdr = v->hdr;
	op->body = v->body;
	op->bodylen = v->bodylen;
	op->own_xid = false;
	op->undo_off = 0;
	if ((is_removable(p, v->xid) && ip_version_status(v) == IP_STATUS_COMMITTED) ||
		is_final_for_others(v, special, overlaid))
	{
		p->change.conflict = Max(p->change.conflict, v->xid);
		op->state = 0;
		/* no longer version will be put back: trailing zeros are dropped */
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

/* The row is changed from what it is, the version top stands on. */
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

/* Go to the newest version that was not rolled back. */
static PruneAction
restore_target(Prune *p, IpVersion *v, IpRowOp *op)
{
	set_base(v, op);
	switch (ip_version_skip_aborted(v))
	{
		case IPV_OK:
			set_target(p, v, op);
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
	return PRUNE_BLOCKED;
}

/* A row that xid has deleted for everybody becomes a dead item. */
static void
note_death(Prune *p, IpXid xid)
{
	XLogRecPtr	unflushed;

	Assert(ip_xid_status_locked(xid) == IP_STATUS_COMMITTED && is_removable(p, xid));
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

/* What to do with the row whose newest version v stands on. */
static PruneAction
row_action(Prune *p, IpVersion *v, IpRowOp *op)
{
	bool		locked = (v->top_state & IP_ROW_LOCKED) != 0;
	bool		live_lock;
	IpXidStatus status;

	if (!(v->top_state & (IP_ROW_VERSION | IP_ROW_CHANGED)) && !(v->state & IP_ROW_INSERTED))
		return PRUNE_KEEP;
	status = ip_version_status(v);
	if (status == IP_STATUS_MINE || status == IP_STATUS_RUNNING)
		return PRUNE_KEEP;
	ip_version_skip_lock(v);
	live_lock = v->has_lock && ip_lockers_are_live(&v->lock);
	if (status == IP_STATUS_ABORTED)
		return live_lock ? PRUNE_BLOCKED : restore_target(p, v, op);

	if (is_removable(p, v->xid))
	{
		if (v->state & IP_ROW_DELETED)
		{
			note_death(p, v->xid);
			return PRUNE_DEAD;
		}
		if (!(v->top_state & (IP_ROW_VERSION | IP_ROW_CHANGED)))
			return PRUNE_KEEP;	/* IP_OP_CLEAR_DEFAULT does it */
		if (!live_lock)
		{
			set_base(v, op);
			set_target(p, v, op);
			return PRUNE_CHANGE;
		}
	}
	else if (locked && p->thorough && v->has_lock && !live_lock)
	{
		set_base(v, op);
		set_target(p, v, op);
		return PRUNE_CHANGE;
	}
	return PRUNE_KEEP;
}

/* Put the operation for one row, if there is anything to do. */
static PruneAction
prune_one(Prune *p, IpVersion *v)
{
	IpRowOp		op = {0};
	PruneAction action = row_action(p, v, &op);

	if (v->damaged)
		action = PRUNE_BLOCKED;
	/* IP_OP_CLEAR_CHANGER does it */
	if (action == PRUNE_CHANGE && (v->top_state & IP_ROW_CHANGED) && p->changer_is_over)
		action = PRUNE_KEEP;
	if (action != PRUNE_CHANGE && action != PRUNE_DEAD && (v->top_state & IP_ROW_CHANGED))
		p->nchanged++;
	if (action == PRUNE_BLOCKED && !(v->top_state & IP_ROW_VERSION))
		p->nblocked++;
	if (action == PRUNE_CHANGE)
		ip_home_keep_bytes(&p->homes, p->block, op.state, op.ptr);
	else if (action != PRUNE_DEAD)
		ip_home_keep_bytes(&p->homes, p->block, v->top_state, v->top_ptr);
	if (action == PRUNE_BLOCKED || action == PRUNE_FAR)
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
is_deleted(Prune *p, OffsetNumber off, IpRow *row)
{
	return ip_row_read_deleted(p->rel, p->block, p->page, off, row) &&
		is_removable(p, row->xid) && ip_xid_status_locked(row->xid) == IP_STATUS_COMMITTED;
}

/* Put the operation for such a row. */
static void
prune_deleted(Prune *p, OffsetNumber off, const IpRow *row)
{
	note_death(p, row->xid);
	ip_op_dead(p->w, off);
	p->changed = true;
	p->nrows++;
}

/*
 * The default inserter's rows need it no more, if it has ended: they are
 * visible to all, or (it has aborted) they have become dead just before.
 */
static void
prune_default(Prune *p, IpXid xid, IpXidStatus status)
{
	if (IpXidIsFinal(xid))
		return;
	if (status == IP_STATUS_COMMITTED && is_removable(p, xid))
		p->change.conflict = Max(p->change.conflict, xid);
	else if (status != IP_STATUS_ABORTED || p->nblocked > 0)
	{
		p->oldest = Min(p->oldest, xid);
		return;
	}
	ip_op_simple(p->w, IP_OP_CLEAR_DEFAULT);
	p->changed = true;
}

/* Likewise the default changer. */
static void
prune_changer(Prune *p)
{
	IpXid		xid = ip_default_changer(p->page);

	if (IpXidIsFinal(xid))
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

/* Drop undo records at home that nobody needs. */
static void
prune_homes(Prune *p)
{
	OffsetNumber offs[IP_MAX_ROWS_PER_PAGE];
	int			n = ip_home_useless(&p->homes, p->rel, p->horizon, offs, &p->change.conflict,
									&p->oldest);

	if (n > 0)
		ip_op_drop(p->w, offs, n);	/* I22 */
	p->changed |= n > 0;
	p->nrows += n;
}

/* Clean the row at off, and note what stays of it. */
static void
prune_row(Prune *p, OffsetNumber off)
{
	IpVersion  *v = &row_v;
	PruneAction action;
	IpRow		row;

	if (is_deleted(p, off, &row))
	{
		prune_deleted(p, off, &row);
		return;
	}
	switch (ip_version_begin(v, p->rel, p->block, p->page, off))
	{
		case IPV_OK:
			action = prune_one(p, v);
			if (action != PRUNE_DEAD && !IpXidIsFinal(v->xid) &&
				!(action == PRUNE_CHANGE && is_removable(p, v->xid)))
				p->oldest = Min(p->oldest, v->xid);
			break;
		case IPV_NONE:
			break;
		case IPV_FAR:
		case IPV_STALE:
			ip_version_missing(v);
	}
}

/* Write the changes; false if the page is so damaged that they might fail. */
static bool
apply_prune(Prune *p)
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

/* Clean all rows; p->far has those for which the page would have to be unlocked. */
static void
prune_page(Prune *p)
{
	OffsetNumber max = Min(PageGetMaxOffsetNumber(p->page), IP_MAX_ROWS_PER_PAGE);
	IpXid		next = p->oldest;
	IpXid		inserter = ip_default_inserter(p->page);
	IpXidStatus inserter_status = ip_xid_status_locked(inserter);
	int			nrestored = 0;

	Assert(IpPageGetSpecial(p->page)->kind == IP_PAGE_DATA);

	/*
	 * The inserter's status is what it was before we look at rows: if it
	 * aborts while we do, they have been kept.  Unless it has aborted, a row
	 * that is its own, and nobody else's, stays, or IP_OP_CLEAR_DEFAULT does
	 * what is to be done.
	 */
	ip_home_note(&p->homes, p->block, p->page);
	p->changer_is_over = ip_default_changer_is_over(p->page);
	p->nrows = ip_restore_rows(p->rel, p->block, p->page, p->horizon, &p->change);
	p->changed = p->nrows > 0;
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		if (nrestored < p->change.nrestored && p->change.restored[nrestored].off == off)
			nrestored++;
		else if (inserter_status == IP_STATUS_ABORTED || ip_row_may_be(p->page, off, IP_ROW_VERSION | IP_ROW_CHANGED))
			prune_row(p, off);
	}
	prune_changer(p);
	prune_homes(p);
	prune_default(p, inserter, inserter_status);
	if (p->thorough && p->nfar == 0 && p->oldest + NEW_BASE_AGE > next &&
		next > ip_data_xid_base(IpPageGetSpecial(p->page)) + NEW_BASE_AGE + NEW_BASE_AGE / 2)
	{
		ip_op_base(p->w, IpDataBase(next - NEW_BASE_AGE));
		p->changed = true;
	}
	if (!apply_prune(p))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("items of block %u of relation \"%s\" overlap, reach outside of it, or are too many",
						p->block, RelationGetRelationName(p->rel)),
				 errhint("Run inplace_check('%s') to find all damage.",
						 RelationGetRelationName(p->rel))));
	ip_prune_set_hint(p->page);
}

/* Put back a row with very many aborted changes; no lock is held.  False: that was damaged. */
static bool
restore_far(Relation rel, const ItemPointerData *tid, bool soft)
{
	static IpVersion far_v;
	IpVersion  *top = &row_v;
	Buffer		buffer;
	IpvResult	below = ip_version_find_far(&far_v, rel, tid, soft, &buffer);

	if (below == IPV_STALE)
		return !far_v.damaged;
	if (ip_version_begin(top, rel, BufferGetBlockNumber(buffer), BufferGetPage(buffer),
						 ItemPointerGetOffsetNumber(tid)) == IPV_OK)
	{
		ip_version_skip_lock(top);
		/* the locker's next change does it */
		if (!top->has_lock || !ip_lockers_are_live(&top->lock))
			ip_prune_restore_found(top, &far_v, below, buffer);
	}
	UnlockReleaseBuffer(buffer);
	return !far_v.damaged;
}

/* Put back all such rows of p, which has been unlocked.  False: one was damaged. */
static bool
restore_far_rows(const Prune *p, bool soft)
{
	ItemPointerData tid;

	for (int i = 0; i < p->nfar; i++)
	{
		CHECK_FOR_INTERRUPTS();
		ItemPointerSet(&tid, p->block, p->far[i]);
		if (!restore_far(p->rel, &tid, soft))
			return false;
	}
	return true;
}

void
ip_prune_page(Relation rel, Buffer buffer, IpXid horizon)
{
	Prune		p;

	/* once more at most, unless others roll back as many changes again */
	do
	{
		begin_prune(&p, rel, buffer, true, horizon);
		prune_page(&p);
		if (p.nfar == 0)
			return;
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		(void) restore_far_rows(&p, false);
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	} while (ip_page_kind(rel, p.block, p.page) == IP_PAGE_DATA);
}

bool
ip_prune_for_base(Relation rel, Buffer buffer)
{
	Prune		p;

	begin_prune(&p, rel, buffer, true, IP_XID_NONE);
	prune_page(&p);
	return p.nfar == 0;
}

bool
ip_prune_page_opt(Relation rel, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	Prune		p;

	if (ip_prune_is_useless(rel, page))
		return false;
	/* damage of one row is not to stop changes of others */
	if (!ip_undo_rows_are_sound(BufferGetBlockNumber(buffer), page))
		return false;
	begin_prune(&p, rel, buffer, false, IP_XID_NONE);
	prune_page(&p);
	return p.changed;
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
	IpvResult	result = IPV_OK;

	ip_version_skip_lock(v);
	do
	{
		if (!(v->state & IP_ROW_INSERTED) && v->ptr.block == undo_block)
			return true;
		status = ip_version_status(v);
		if (status != IP_STATUS_COMMITTED)
			result = ip_version_older(v);
	} while (status != IP_STATUS_COMMITTED && result == IPV_OK);
	return result == IPV_FAR;	/* perhaps */
}

/* Clean one row so that it does not need the undo page. */
static IpNeed
prune_for_undo(Prune *p, OffsetNumber off, BlockNumber undo_block)
{
	IpVersion  *v = &row_v;
	PruneAction action;
	IpRow		row;

	if (!ip_row_is_sound(p->page, off))
		return IP_NEED_BAD;
	if (is_deleted(p, off, &row))
	{
		prune_deleted(p, off, &row);
		return IP_NEED_NONE;
	}
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
	action = prune_one(p, v);
	if (v->damaged)
		return IP_NEED_BAD;
	if (action == PRUNE_BLOCKED || action == PRUNE_FAR)
		return IP_NEED_NOW;
	return action == PRUNE_KEEP && (v->top_state & IP_ROW_OVERLAID) &&
		needs_saved_bytes(v, undo_block) ? IP_NEED_NOW : IP_NEED_NONE;
}

/* ip_prune_rows, but for rows in p->far: the page is locked meanwhile. */
static IpNeed
prune_rows(Prune *p, Relation rel, const ItemPointerData *tids, int ntids, BlockNumber undo_block)
{
	Buffer		buffer = ip_rel_read(rel, ItemPointerGetBlockNumber(tids));
	Page		page = BufferGetPage(buffer);
	IpNeed		need = IP_NEED_NONE;

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	begin_prune(p, rel, buffer, true, IP_XID_NONE);
	if (ip_page_is_ours(page) && IpPageGetSpecial(page)->kind == IP_PAGE_DATA)
	{
		for (int i = 0; i < ntids; i++)
		{
			OffsetNumber off = ItemPointerGetOffsetNumber(&tids[i]);
			IpNeed		of_row = prune_for_undo(p, off, undo_block);

			/* each row once: its operation is about the row as it is */
			Assert(ItemPointerGetBlockNumber(&tids[i]) == p->block);
			Assert(i == 0 || off > ItemPointerGetOffsetNumber(&tids[i - 1]));
			need = Max(need, of_row);
		}
		if (!apply_prune(p))
			need = IP_NEED_BAD;
	}
	else if (!ip_page_is_ours(page) && !PageIsNew(page))
		need = IP_NEED_BAD;
	UnlockReleaseBuffer(buffer);
	return need;
}

IpNeed
ip_prune_rows(Relation rel, const ItemPointerData *tids, int ntids, BlockNumber undo_block)
{
	BlockNumber block = ItemPointerGetBlockNumber(tids);
	IpNeed		need;
	Prune		p;

	Assert(ntids > 0 && ip_page_none_is_locked());
	if (block == IP_META_BLOCK)
		return IP_NEED_BAD;
	if (!compat_has_block(rel, block))
		return IP_NEED_NONE;
	need = prune_rows(&p, rel, tids, ntids, undo_block);
	if (need == IP_NEED_BAD || p.nfar == 0)
		return need;
	if (!restore_far_rows(&p, true))
		return IP_NEED_BAD;
	return prune_rows(&p, rel, tids, ntids, undo_block);
}

static void
apply_restore(Prune *p, PruneAction action, IpRowOp *op)
{
	Assert(action == PRUNE_DEAD || action == PRUNE_CHANGE);
	if (action == PRUNE_DEAD)
		ip_op_dead(p->w, op->off);
	else
		ip_op_row(p->w, op);
	ip_change_apply(&p->change);
}

bool
ip_prune_restore(IpVersion *v, Buffer buffer)
{
	IpRowOp		op = {0};
	PruneAction action;
	Prune		p;

	Assert(v->locked && !v->soft && v->steps == 0);
	Assert(ip_version_status(v) == IP_STATUS_ABORTED);
	ip_version_skip_lock(v);
	begin_prune(&p, v->rel, buffer, false, IP_XID_NONE);
	p.change.info = IP_XLOG_RESTORE;
	action = restore_target(&p, v, &op);
	if (action == PRUNE_FAR)
		return false;
	apply_restore(&p, action, &op);
	return true;
}

void
ip_prune_restore_found(IpVersion *top, IpVersion *v, IpvResult below, Buffer buffer)
{
	IpRowOp		op = {0};
	Prune		p;

	Assert(below == IPV_OK || below == IPV_NONE);
	Assert(top->steps == 0 && v->steps > 0);
	begin_prune(&p, v->rel, buffer, false, IP_XID_NONE);
	p.change.info = IP_XLOG_RESTORE;
	set_base(top, &op);
	if (below == IPV_OK)
		set_target(&p, v, &op);
	if (v->damaged)
		return;
	apply_restore(&p, below == IPV_OK ? PRUNE_CHANGE : PRUNE_DEAD, &op);
}
