/*-------------------------------------------------------------------------
 * ip_update.c
 *	  Update and delete.
 *
 * An update is made in place, at the same TID, when no column changes that an
 * index or a foreign key looks at, no trigger will ask for the row's versions
 * by TID afterwards, no foreign key's check of a version of our own can still
 * be queued, and the row has the room.  Otherwise the new version gets
 * a TID of its own, and the old one is marked deleted with a link to it, as in
 * heap.
 *-------------------------------------------------------------------------
 */
#include "ip_compat.h"

#include "access/multixact.h"
#include "access/xact.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"

#include "ip_insert.h"
#include "ip_lock.h"
#include "ip_logical.h"
#include "ip_modify.h"
#include "ip_space.h"
#include "ip_xid.h"

static IpVersion modify_v;

/* The body that the row has before the change. */
static uint8 from_body[BLCKSZ];

/* ---- what update and delete share ----------------------------------------------------- */

typedef struct ModifyRequest
{
	Relation	rel;
	IpTarget	target;
	CommandId	cid;
	Snapshot	snapshot;
	Snapshot	crosscheck;
	bool		wait;
	TM_FailureData *tmfd;
	TransactionId xid;
	LockTupleMode mode;
	bool		have_tuple_lock;
	LockTupleMode tuple_lock_mode;
	bool		is_locker;		/* we hold a row lock */
	bool		was_locked;		/* by us, before this command's change */
	/* update only */
	TupleTableSlot *slot;
	IpFormed	row;			/* the new row */
	bool		toast;			/* it must go through TOAST, and has not */
	Bitmapset  *blocking;		/* changes of these columns cannot be made in place */
	Bitmapset  *key;			/* changes of these exclude FOR KEY SHARE */
	bool		never_in_place;
	bool		is_referencing; /* has foreign keys */
	bool		blocked;		/* for the version that was found: no update in place */
} ModifyRequest;

static void update_columns(ModifyRequest *req, IpVersion *v);

static TM_Result
failure(IpVersion *v, IpFound found, ModifyRequest *req)
{
	static const TM_Result results[] = {
		[IPF_OK] = TM_BeingModified, [IPF_INVISIBLE] = TM_Invisible,
		[IPF_SELF] = TM_SelfModified, [IPF_RUNNING] = TM_BeingModified,
		[IPF_UPDATED] = TM_Updated, [IPF_MOVED] = TM_Updated, [IPF_DELETED] = TM_Deleted
	};

	if (found == IPF_INVISIBLE)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("attempted to %s invisible tuple", req->slot ? "update" : "delete")));
	ip_modify_failure(v, found, &req->target.row, req->tmfd);
	return results[found];
}

/*
 * Find and lock the version to be changed, waiting for others if wanted.  With
 * TM_Ok the buffer is locked and no lock of another transaction conflicts.
 */
static TM_Result
modify_find(ModifyRequest *req, IpVersion *v, Buffer *buffer)
{
	int			stale = 0;

	for (;;)
	{
		TransactionId wait_for = InvalidTransactionId;
		bool		newer = false;
		TM_Result	result;
		IpFound		found;

		CHECK_FOR_INTERRUPTS();
		ip_undo_prepare(req->rel);
		found = ip_modify_begin(v, req->rel, &req->target.row, req->xid, buffer);
		if (found == IPF_DELETED)
		{
			req->tmfd->ctid = req->target.row;
			req->tmfd->xmax = InvalidTransactionId;
			req->tmfd->cmax = InvalidCommandId;
			UnlockReleaseBuffer(*buffer);
			return TM_Deleted;
		}
		found = ip_modify_classify(v, req->snapshot, req->cid, &req->target);
		if (found == IPF_AGAIN)
		{
			UnlockReleaseBuffer(*buffer);
			continue;
		}
		if (req->slot)
			update_columns(req, v);
		if (found == IPF_OK && req->crosscheck != InvalidSnapshot &&
			!ip_version_change_visible(v, req->crosscheck))
			found = IPF_UPDATED;
		/* the version that was deleted has committed: it is not far */
		if (found == IPF_DELETED)
			(void) ip_modify_below_is_newer(v, req->snapshot, &req->target, &newer);
		if (newer)
			found = IPF_UPDATED;
		if (found == IPF_RUNNING)
			wait_for = (TransactionId) v->xid;
		else if (found == IPF_OK)
			wait_for = ip_lock_conflict(v, req->mode);
		req->is_locker = ip_lock_is_ours(v);
		if (found == IPF_OK && !TransactionIdIsValid(wait_for))
			return TM_Ok;
		if (!TransactionIdIsValid(wait_for) || (!req->wait && found != IPF_RUNNING))
		{
			result = failure(v, found, req);
			UnlockReleaseBuffer(*buffer);
			return result;
		}
		ip_version_let_go(v);
		UnlockReleaseBuffer(*buffer);
		if (found == IPF_RUNNING)
		{
			if (ip_modify_below_is_newer(v, req->snapshot, &req->target, &newer) == IPV_STALE)
			{
				if (++stale > IP_MAX_STALE)
					ip_version_missing(v);
				continue;
			}
			if (newer || !req->wait)
				return failure(v, newer ? IPF_UPDATED : found, req);
		}
		if (!req->have_tuple_lock)
			req->tuple_lock_mode = req->mode;
		(void) ip_lock_wait(req->rel, &req->target.row, wait_for, req->mode, LockWaitBlock,
							req->slot ? XLTW_Update : XLTW_Delete, req->is_locker,
							&req->have_tuple_lock);
	}
}

static void
modify_end(ModifyRequest *req)
{
	ip_lock_wait_end(req->rel, &req->target.row, req->tuple_lock_mode, req->have_tuple_lock);
}

/* ---- delete ---------------------------------------------------------------------------- */

TM_Result
ip_tuple_delete(Relation rel, ItemPointer tid, CommandId cid, Snapshot snapshot,
				Snapshot crosscheck, bool wait, TM_FailureData *tmfd, bool changing_part)
{
	ModifyRequest req = {
		.rel = rel, .cid = cid, .snapshot = snapshot,
		.crosscheck = crosscheck, .wait = wait, .tmfd = tmfd,
		.xid = GetCurrentTransactionId(), .mode = LockTupleExclusive
	};
	MemoryContext context = ip_work_begin();
	IpVersion  *v = &modify_v;
	HeapTuple	old = NULL;
	IpRowWrite	w;
	Buffer		buffer;
	TM_Result	result;

	MultiXactIdSetOldestMember();
	ip_version_target(rel, tid, &req.target);
	result = modify_find(&req, v, &buffer);
	if (result == TM_Ok)
	{
		ip_version_check_write(v);
		if (v->hdr & IP_HDR_HASEXTERNAL)
			old = ip_heap_tuple(rel, v->hdr, v->body, v->bodylen);
		ip_write_same(&w, v, IP_XLOG_DELETE, req.xid);
		ip_lock_merge(v, req.xid, false, LockTupleExclusive, &w.lock);
		w.has_undo = true;
		w.undo.kind = IP_UNDO_DELETE;
		w.undo.flags = IP_REC_KEYS | (changing_part ? IP_REC_PARTITION : 0);
		w.undo.cid = cid;
		w.state = IP_ROW_DELETED | (changing_part ? IP_ROW_MOVED : 0);
		w.logical = ip_logical_delete(rel, &(IpFormed) {v->hdr, (uint8 *) v->body, v->bodylen});
		ip_write_row(v, buffer, &w);
		UnlockReleaseBuffer(buffer);
		pgstat_count_heap_delete(rel);
		if (old)
			ip_toast_delete(rel, old, false);
	}
	modify_end(&req);
	ip_logical_end();
	MemoryContextSwitchTo(context);
	return result;
}

/* ---- update ---------------------------------------------------------------------------- */

/*
 * Queued AFTER ROW triggers fetch OLD and NEW by TID, so each version needs a
 * TID of its own.  Foreign key triggers only when their columns change.
 */
static bool
needs_version_tids(Relation rel, bool *is_referencing)
{
	TriggerDesc *desc = rel->trigdesc;

	*is_referencing = false;
	for (int i = 0; desc && i < desc->numtriggers; i++)
	{
		Trigger    *trigger = &desc->triggers[i];

		if (!TRIGGER_FOR_AFTER(trigger->tgtype) || !TRIGGER_FOR_ROW(trigger->tgtype))
			continue;
		switch (RI_FKey_trigger_type(trigger->tgfoid))
		{
			case RI_TRIGGER_NONE:
				/* deferrable unique constraints: queued only after index insertions */
				if (trigger->tgfoid != F_UNIQUE_KEY_RECHECK)
					return true;
				break;
			case RI_TRIGGER_FK:
				*is_referencing = true;
				break;
			case RI_TRIGGER_PK:
				break;			/* referenced columns have a unique index */
		}
	}
	return false;
}

static void
blocking_columns(ModifyRequest *req)
{
	ListCell   *lc;

	req->never_in_place = needs_version_tids(req->rel, &req->is_referencing);
	req->blocking = RelationGetIndexAttrBitmap(req->rel, INDEX_ATTR_BITMAP_HOT_BLOCKING);
	req->key = RelationGetIndexAttrBitmap(req->rel, INDEX_ATTR_BITMAP_KEY);
	if (!req->is_referencing)
		return;
	foreach(lc, RelationGetFKeyList(req->rel))
	{
		ForeignKeyCacheInfo *fk = lfirst(lc);

		for (int i = 0; i < fk->nkeys; i++)
			req->blocking = bms_add_member(req->blocking,
										   fk->conkey[i] - FirstLowInvalidHeapAttributeNumber);
	}
}

static bool
column_changed(TupleDesc desc, int attno, const Datum *olds, const bool *old_null,
			   const Datum *news, const bool *new_null)
{
	Form_pg_attribute att;

	/* whole-row references, and system columns */
	if (attno <= 0)
		return attno != TableOidAttributeNumber;
	attno--;
	if (old_null[attno] || new_null[attno])
		return old_null[attno] != new_null[attno];
	att = TupleDescAttr(desc, attno);
	return !datumIsEqual(olds[attno], news[attno], att->attbyval, att->attlen);
}

/*
 * Which columns of interest differ between v and the new row?  Sets the row
 * lock's mode, and whether an update in place is out of the question.
 */
static void
update_columns(ModifyRequest *req, IpVersion *v)
{
	TupleDesc	desc = RelationGetDescr(req->rel);
	Datum	   *values;
	bool	   *isnull;
	int			i = -1;

	req->mode = LockTupleNoKeyExclusive;
	/* a foreign key's check of a version that we made may still be queued */
	req->blocked = req->never_in_place ||
		(req->is_referencing && ip_version_status(v) == IP_XID_MINE);
	if (req->blocking == NULL)
		return;
	values = palloc(2 * desc->natts * sizeof(Datum));
	isnull = palloc(2 * desc->natts * sizeof(bool));
	ip_body_deform(desc, v->hdr, v->body, v->bodylen, values, isnull);
	ip_body_deform(desc, req->row.hdr, req->row.body, req->row.bodylen,
				   values + desc->natts, isnull + desc->natts);
	while ((i = bms_next_member(req->blocking, i)) >= 0)
	{
		if (column_changed(desc, i + FirstLowInvalidHeapAttributeNumber, values, isnull,
						   values + desc->natts, isnull + desc->natts))
		{
			req->blocked = true;
			if (bms_is_member(i, req->key))
				req->mode = LockTupleExclusive;
		}
	}
	pfree(values);
	pfree(isnull);
}

/* The new row behind TOAST; the old one is locked meanwhile, but not its page. */
static void
update_toast(ModifyRequest *req, IpVersion *v, Buffer buffer)
{
	HeapTuple	old = ip_heap_tuple(req->rel, v->hdr, v->body, v->bodylen);
	IpLockState lock;

	if (!ip_lock_held(v, req->mode))
	{
		ip_lock_merge(v, req->xid, true, req->mode, &lock);
		ip_write_lock(v, buffer, req->xid, &lock, NULL);
	}
	UnlockReleaseBuffer(buffer);
	pfree(req->row.body);
	ip_form_toasted(req->rel, req->slot, old, 0, &req->row);
	heap_freetuple(old);
	req->toast = false;
}

/*
 * Try to prepare the update in place: the new body, as long as the versions
 * that a rollback may put back, and the undo delta (in "delta").
 */
static bool
prepare_in_place(ModifyRequest *req, IpVersion *v, Buffer buffer, IpRowWrite *w, uint8 *delta)
{
	IpWriter	dw = {delta, delta + IP_MAX_UNDO_REC - IP_UNDO_SPACE(0) - IP_REC_MAX_HEAD, false};
	uint32		floor = v->bodylen;
	uint8	   *body;

	/* zeros behind the old values stay as long as somebody may look below them */
	if (ip_xid_removable(v->rel, v->xid))
		floor = Max(IP_ROW_MIN_BODY,
					ip_body_length(RelationGetDescr(v->rel), v->hdr, v->body, v->bodylen));
	if (floor < v->bodylen)
	{
		/* older versions were longer: nobody may go there any more, not even on a standby */
		w->cut = true;
		w->conflict = v->xid;
	}
	w->bodylen = Max(req->row.bodylen, floor);
	if (!ip_write_fits(v, BufferGetPage(buffer), w->bodylen))
		return false;
	body = palloc0(w->bodylen);
	memcpy(body, req->row.body, req->row.bodylen);
	w->body = body;
	w->hdr = req->row.hdr;
	w->state = 0;
	ip_delta_make(&dw, body, w->bodylen, v->body, floor);
	w->undo.kind = IP_UNDO_UPDATE;
	w->undo.hdr = v->hdr;
	w->undo.hdr_differs = v->hdr != w->hdr;
	w->undo.delta = delta;
	w->undo.deltalen = dw.p - delta;
	return !dw.bad;
}

/* Find a place for the new version, on the row's own page if it has room. */
static void
prepare_move(ModifyRequest *req, IpVersion *v, Buffer buffer, IpRowWrite *w)
{
	Page		page = BufferGetPage(buffer);
	Size		size = Min(IP_ROW_MIN_ITEM + req->row.bodylen, IP_MAX_ITEM) + sizeof(ItemIdData);
	uint32		have = v->top_itemlen + ip_page_free(page);

	w->info = IP_XLOG_MOVE;
	w->state = IP_ROW_DELETED | IP_ROW_MOVED;
	w->newhdr = req->row.hdr;
	w->newbody = req->row.body;
	w->newbodylen = req->row.bodylen;
	w->newinit = false;
	if (have >= ip_item_size(IP_ROW_VERSION, v->bodylen) + size +
		ip_space_reserve(BufferGetBlockNumber(buffer), page) &&
		ip_free_offset(page, InvalidOffsetNumber) <= IP_MAX_ROWS_PER_PAGE)
		w->newbuffer = buffer;
	else
		w->newbuffer = ip_space_find(req->rel, size, 0, NULL, true, buffer, &w->newinit);
	w->newoff = w->newinit ? FirstOffsetNumber :
		ip_free_offset(BufferGetPage(w->newbuffer), InvalidOffsetNumber);
	w->undo.kind = IP_UNDO_DELETE;
	ItemPointerSet(&w->undo.forward, BufferGetBlockNumber(w->newbuffer), w->newoff);
}

/* The row's lockers must find their locks on the new version too. */
static void
carry_locks(ModifyRequest *req, IpRowWrite *w)
{
	IpVersion  *v = &modify_v;
	BlockNumber block = BufferGetBlockNumber(w->newbuffer);

	if (ip_version_begin(v, req->rel, block, BufferGetPage(w->newbuffer), w->newoff) != IPV_OK)
		elog(ERROR, "could not find the row just inserted");
	ip_write_lock(v, w->newbuffer, req->xid, &w->lock, NULL);
}

/* What an update writes wherever the new version goes. */
static void
update_common(ModifyRequest *req, IpVersion *v, IpRowWrite *w, const IpLockState *lock)
{
	ip_write_same(w, v, IP_XLOG_UPDATE, req->xid);
	w->lock = *lock;
	w->has_undo = true;
	w->cid = w->undo.cid = req->cid;
	w->from = w->body = from_body;
	/* as in heap, an update under our own FOR UPDATE excludes what that excludes */
	if (req->mode == LockTupleExclusive || ip_lock_held(v, LockTupleExclusive))
		w->undo.flags = IP_REC_KEYS;
}

/* Write the new version; true: in place. */
static bool
update_write(ModifyRequest *req, IpVersion *v, Buffer buffer)
{
	uint8		delta[BLCKSZ];
	TransactionId xmax = req->was_locked ? req->xid : InvalidTransactionId;
	IpLockState lock;
	IpRowWrite	w;
	StringInfo	logical;
	bool		in_place;

	ip_lock_merge(v, req->xid, false, req->mode, &lock);
	memcpy(from_body, v->body, v->bodylen);
	logical = ip_logical_update(req->rel, &(IpFormed) {v->hdr, from_body, v->bodylen}, &req->row);
	update_common(req, v, &w, &lock);
	in_place = !req->blocked && prepare_in_place(req, v, buffer, &w, delta);
	if (!in_place)
	{
		update_common(req, v, &w, &lock);
		prepare_move(req, v, buffer, &w);
	}
	w.logical = logical;
	ip_write_row(v, buffer, &w);
	if (in_place)
		ip_slot_set_written(req->slot, req->rel, ItemPointerGetBlockNumber(&v->tid),
							ItemPointerGetOffsetNumber(&v->tid), req->xid, req->cid, xmax);
	else
	{
		ip_slot_set_written(req->slot, req->rel, BufferGetBlockNumber(w.newbuffer), w.newoff,
							req->xid, req->cid, xmax);
		if (w.lock.any)
			carry_locks(req, &w);
		if (w.newbuffer != buffer)
			UnlockReleaseBuffer(w.newbuffer);
	}
	return in_place;
}

TM_Result
ip_tuple_update(Relation rel, ItemPointer tid, TupleTableSlot *slot, CommandId cid,
				Snapshot snapshot, Snapshot crosscheck, bool wait, TM_FailureData *tmfd,
				LockTupleMode *lockmode, CompatUpdateIndexes *update_indexes)
{
	ModifyRequest req = {
		.rel = rel, .cid = cid, .snapshot = snapshot,
		.crosscheck = crosscheck, .wait = wait, .tmfd = tmfd,
		.xid = GetCurrentTransactionId(), .slot = slot
	};
	MemoryContext context = ip_work_begin();
	IpVersion  *v = &modify_v;
	bool		in_place;
	Buffer		buffer;
	TM_Result	result;

	MultiXactIdSetOldestMember();	/* others may make our lock a shared one */
	ip_version_target(rel, tid, &req.target);
	blocking_columns(&req);
	req.toast = ip_toast_needed(rel, slot);
	ip_form(rel, slot, !req.toast, &req.row);
	result = modify_find(&req, v, &buffer);
	*lockmode = req.mode;
	req.was_locked = req.is_locker || ip_lock_was_taken(rel, &req.target.row, cid);
	if (result == TM_Ok && (req.toast || (v->hdr & IP_HDR_HASEXTERNAL)))
	{
		update_toast(&req, v, buffer);
		result = modify_find(&req, v, &buffer);
		if (result != TM_Ok)
			elog(ERROR, "row (%u,%u) of relation \"%s\" changed although it is locked",
				 ItemPointerGetBlockNumber(&req.target.row),
				 ItemPointerGetOffsetNumber(&req.target.row), RelationGetRelationName(rel));
	}
	if (result == TM_Ok)
	{
		ip_version_check_write(v);
		in_place = update_write(&req, v, buffer);
		UnlockReleaseBuffer(buffer);
		CompatCountUpdate(rel, in_place, false);
		if (in_place)
			pgstat_update_heap_dead_tuples(rel, 1);
		*update_indexes = in_place ? COMPAT_TU_NONE : COMPAT_TU_ALL;
	}
	modify_end(&req);
	ip_logical_end();
	MemoryContextSwitchTo(context);
	return result;
}
