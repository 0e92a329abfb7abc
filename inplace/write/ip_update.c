/*-------------------------------------------------------------------------
 * ip_update.c
 *	  Update and delete.
 *
 * An update is made in place, at the same TID, if it changes no column used by
 * a foreign key or by an index that does not follow (ip_keys.h), no trigger of
 * an insertion of our own can still be queued, and the row has the room.
 * Otherwise the new version gets a TID of its own, and the old one is marked
 * deleted with a link to it, as in heap.
 *
 * AFTER ROW triggers fetch OLD and NEW by TID when they are fired.  After an
 * update in place, OLD's TID is that of its undo record, from which NEW is
 * found too.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/xact.h"
#include "utils/snapmgr.h"

#include "ip_change.h"
#include "ip_delta.h"
#include "ip_holder.h"
#include "ip_keys.h"
#include "ip_lock.h"
#include "ip_logical.h"
#include "ip_memo.h"
#include "ip_modify.h"
#include "ip_op.h"
#include "ip_prune.h"
#include "ip_rel.h"
#include "ip_skip.h"
#include "ip_space.h"
#include "ip_state.h"
#include "ip_toast.h"
#include "ip_toaster.h"
#include "ip_undo_use.h"
#include "ip_update.h"
#include "ip_update_columns.h"
#include "ip_version_satisfy.h"
#include "ip_xid.h"

/*
 * Space that a move on the row's own page takes besides the two bodies and a
 * version block.
 */
#define MOVE_SPACE	(IP_ROW_MIN_ITEM + 2 * sizeof(ItemIdData) + 32)

static uint8 from_body[BLCKSZ]; /* the row's body before the change */

/* ---- what update and delete share ---------------------------------------- */

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
	bool		was_locked;		/* we had locked it before this command's
								 * change */
	bool		has_older;		/* our snapshots may see older versions than
								 * the one that is deleted or moved */
	/* update only */
	TupleTableSlot *slot;
	IpFormed	row;			/* the new row */
	bool		toast;			/* it must be toasted, but has not been */
	bool		toasted;		/* it has been toasted: the mode is known */
	bool		no_logical;		/* decoding must not see it */
	IpColumns	columns;		/* columns that the new row changes */
} ModifyRequest;

/*
 * Find the columns that the new row changes in v.  If toasting stores a row's
 * values in another way, that does not change a key.
 */
static void
update_columns(ModifyRequest *req, IpVersion *v)
{
	ip_update_columns_compare(&req->columns, v, &req->row);
	if (!req->toasted)
		req->mode = req->columns.key_changed ? LockTupleExclusive :
			LockTupleNoKeyExclusive;
}

static TM_Result
failure(IpVersion *v, IpFound found, ModifyRequest *req)
{
	static const TM_Result results[] = {
		[IPF_OK] = TM_BeingModified,[IPF_INVISIBLE] = TM_Invisible,
		[IPF_SELF] = TM_SelfModified,[IPF_RUNNING] = TM_BeingModified,
		[IPF_UPDATED] = TM_Updated,[IPF_MOVED] = TM_Updated,
		[IPF_DELETED] = TM_Deleted,[IPF_NONE] = TM_Deleted
	};

	Assert(found != IPF_AGAIN);
	if (found == IPF_INVISIBLE)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 req->slot ? errmsg("attempted to update invisible tuple") :
				 errmsg("attempted to delete invisible tuple")));
	ip_modify_failure(v, &req->target.row, req->tmfd);
	return results[found];
}

/*
 * Find and lock the version to be changed, waiting for others if requested.
 * With TM_Ok the buffer is locked and no lock of another transaction
 * conflicts.
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
		ip_undo_use_prepare(req->rel);
		found = ip_modify_begin(v, req->rel, &req->target.row, req->xid,
								req->slot != NULL ? IP_TO_UPDATE : IP_TO_DELETE,
								buffer);
		if (found == IPF_NONE)
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
		/* the version that was deleted has committed, so it is not far */
		if (found == IPF_DELETED)
			(void) ip_version_below_is_newer(v, req->snapshot, &req->target,
											 LockTupleExclusive, &newer);
		if (newer)
			found = IPF_UPDATED;
		if (found == IPF_RUNNING)
			wait_for = (TransactionId) v->xid;
		else if (found == IPF_OK)
			wait_for = ip_lockers_conflict(v, req->mode);
		req->is_locker = ip_lockers_are_ours(v);
		if (found == IPF_OK && !TransactionIdIsValid(wait_for))
			return TM_Ok;
		if (!TransactionIdIsValid(wait_for) ||
			(!req->wait && found != IPF_RUNNING))
		{
			result = failure(v, found, req);
			UnlockReleaseBuffer(*buffer);
			return result;
		}
		ip_version_let_go(v);
		UnlockReleaseBuffer(*buffer);
		if (found == IPF_RUNNING)
		{
			if (ip_version_below_is_newer(v, req->snapshot, &req->target,
										  LockTupleExclusive, &newer) ==
				IPV_STALE)
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
		(void) ip_lockers_wait(req->rel, &req->target.row, wait_for, req->mode,
							   LockWaitBlock,
							   req->slot ? XLTW_Update : XLTW_Delete,
							   req->is_locker ||
							   ip_version_status(v) == IP_STATUS_MINE,
							   &req->have_tuple_lock);
	}
}

static TM_Result
modify_end(ModifyRequest *req, TM_Result result)
{
	ip_lockers_wait_end(req->rel, &req->target.row, req->tuple_lock_mode,
						req->have_tuple_lock);
	/* a ring may have grown while the row's page was locked */
	ip_holder_log(req->rel);
	return ip_modify_self_failure(req->rel, &req->target, req->snapshot,
								  req->cid, result, req->tmfd);
}

/* See req->has_older. */
static bool
has_older(const IpVersion *v)
{
	return !(v->state & IP_ROW_INSERTED) && !IpXidIsFrozen(v->xid) &&
		!TransactionIdPrecedes((TransactionId) v->xid, TransactionXmin);
}

/*
 * Note that the version has been changed.  fetches: see
 * ip_memo_note_asked_for.
 */
static void
modify_note(const ModifyRequest *req, int fetches)
{
	ip_memo_forget_seen(req->rel, &req->target.row);
	if (req->snapshot == InvalidSnapshot || !IsMVCCSnapshot(req->snapshot))
		ip_memo_note_blind(req->rel, &req->target.row, req->xid, req->cid);
	if (fetches != 0 && (req->target.exact || req->has_older))
		ip_memo_note_asked_for(req->rel, &req->target.row, req->xid, req->cid,
							   fetches);
}

/* ---- delete -------------------------------------------------------------- */

/*
 * Returns how often the trigger queue fetches the deleted version.  See
 * ip_memo_note_asked_for.
 */
static int
fetches_of_deleted(const TriggerDesc *desc, bool changing_part)
{
	if (desc == NULL)
		return 0;

	/*
	 * transition tables and RETURNING fetch it before and after events of two
	 * kinds
	 */
	if (changing_part)
		return desc->trig_delete_after_row || desc->trig_update_after_row ?
			IP_MEMO_ALWAYS : 0;
	return desc->trig_delete_after_row;
}

TM_Result
ip_update_delete(Relation rel, ItemPointer tid, CommandId cid, uint32 options,
				 Snapshot snapshot, Snapshot crosscheck, bool wait,
				 TM_FailureData *tmfd)
{
	bool		changing_part =
		(options & TABLE_DELETE_CHANGING_PARTITION) != 0;
	ModifyRequest req = {
		.rel = rel,.cid = cid,.snapshot = snapshot,
		.crosscheck = crosscheck,.wait = wait,.tmfd = tmfd,
		.xid = GetCurrentTransactionId(),.mode = LockTupleExclusive
	};
	MemoryContext context = ip_version_work_begin();
	IpVersion	version;
	IpVersion  *v = &version;
	HeapTuple	old = NULL;
	IpFormed	deleted;
	IpRowWrite	w;
	Buffer		buffer;
	TM_Result	result;

	ip_version_target(rel, tid, &req.target);
	result = modify_find(&req, v, &buffer);
	if (result == TM_Ok)
	{
		ip_version_check_write(v);
		req.has_older = has_older(v);
		if (v->hdr & IP_HDR_HASEXTERNAL)
			old = ip_toast_heap_tuple(rel, v->hdr, v->body, v->bodylen);
		ip_modify_same(&w, v, IP_XLOG_DELETE, req.xid);
		w.undo.kind = IP_UNDO_DELETE;
		w.undo.flags = IP_REC_KEYS | (changing_part ? IP_REC_PARTITION : 0);
		w.undo.cid = cid;
		w.state = ip_state_delete(changing_part);
		deleted.hdr = v->hdr;
		deleted.body = unconstify(uint8 *, v->body);
		deleted.bodylen = v->bodylen;
		if (!(options & TABLE_DELETE_NO_LOGICAL))
			w.logical = ip_logical_delete(rel, &deleted);
		ip_modify_write(v, buffer, &w);
		UnlockReleaseBuffer(buffer);
		pgstat_count_heap_delete(rel);
		if (old)
		{
			IpValueChange change = {.rel = rel,.xid = req.xid,.cid = cid};

			ip_toaster_delete(&change, old);
		}
	}
	result = modify_end(&req, result);
	ip_logical_end();
	MemoryContextSwitchTo(context);
	if (result == TM_Ok)
		modify_note(&req, fetches_of_deleted(rel->trigdesc, changing_part));
	return result;
}

/* ---- update -------------------------------------------------------------- */

/*
 * Toast the new row.  In the meantime the old row is locked, but not its page.
 */
static void
update_toast(ModifyRequest *req, IpVersion *v, Buffer buffer)
{
	HeapTuple	old = ip_toast_heap_tuple(req->rel, v->hdr, v->body,
										  v->bodylen);
	IpValueChange change = {
		.rel = req->rel,.xid = req->xid,.cid = req->cid,
		.options = req->no_logical ? TABLE_INSERT_NO_LOGICAL : 0
	};

	if (!ip_lockers_held(v, req->mode))
		ip_lockers_add(v, buffer, req->xid, req->mode);
	UnlockReleaseBuffer(buffer);
	ip_toaster_form(&change, req->slot, old, &req->row);
	heap_freetuple(old);
	req->toast = false;
}

/*
 * Try to prepare the update in place: the new body, which is at least as long
 * as versions that a rollback may make current again, and the undo delta (in
 * "delta").
 */
static bool
prepare_in_place(ModifyRequest *req, IpVersion *v, Buffer buffer, IpRowWrite *w,
				 uint8 *delta)
{
	ByteWriter	dw = {
		delta, delta + IP_MAX_UNDO_REC - IP_UNDO_SPACE(0) - IP_REC_MAX_HEAD,
		false
	};
	uint32		floor = v->bodylen;

	/*
	 * zeros behind the old values stay as long as older versions may be read
	 */
	if (ip_body_may_be_padded(v->body, v->bodylen) &&
		ip_xid_removable(v->rel, v->xid))
		floor = Max(IP_ROW_MIN_BODY,
					ip_body_length(RelationGetDescr(v->rel), v->hdr, v->body,
								   v->bodylen));
	if (floor < v->bodylen)
	{
		/*
		 * older versions were longer: they must not be reached any more, not
		 * even on a standby
		 */
		w->cut = true;
		w->conflict = v->xid;
	}
	w->oldlen = floor;
	w->bodylen = Max(req->row.bodylen, floor);
	if (!ip_modify_may_grow(v, BufferGetPage(buffer), w->bodylen))
		return false;
	w->body = req->row.body;
	if (req->row.bodylen < floor)
		w->body = memcpy(palloc0(floor), req->row.body, req->row.bodylen);
	w->hdr = req->row.hdr;
	w->state = ip_state_update();
	w->keys = req->columns.changed != 0;
	Assert(w->cut || w->bodylen >= v->bodylen); /* I6 */
	w->undo.has_skip = !w->cut &&
		ip_skip_make(v, req->xid, req->cid, w->bodylen, &w->undo.skip);
	if (w->undo.has_skip)
		ip_delta_make_whole(&dw, w->bodylen, v->body, floor);
	else
		ip_delta_make(&dw, w->body, w->bodylen, v->body, floor);
	w->undo.kind = IP_UNDO_UPDATE;
	w->undo.hdr = v->hdr;
	w->undo.flags |= v->hdr != w->hdr || w->undo.has_skip ? IP_REC_HDR : 0;
	w->undo.delta = delta;
	w->undo.deltalen = dw.p - delta;
	return !dw.bad;
}

#ifdef USE_ASSERT_CHECKING
/* Check I2 for a change that is about to be written in place. */
static bool
may_stay(const ModifyRequest *req, const IpRowWrite *w)
{
	IpFormed	from = {
		.hdr = w->undo.hdr,.body = unconstify(uint8 *, w->from),
		.bodylen = w->fromlen
	};
	IpFormed	to = {
		.hdr = w->hdr,.body = unconstify(uint8 *, w->body),
		.bodylen = w->bodylen
	};

	return ip_update_columns_may_stay(&req->columns, &from, &to);
}
#endif

/* Find a place for the new version, on the row's own page if it has room. */
static void
prepare_move(ModifyRequest *req, IpVersion *v, Buffer buffer, IpRowWrite *w)
{
	Page		page = BufferGetPage(buffer);
	Size		size = Min(IP_ROW_MIN_ITEM + req->row.bodylen, IP_MAX_ITEM) +
		sizeof(ItemIdData);
	Size		wanted = ip_item_size(IP_ROW_VERSION, v->bodylen) + size;
	uint32		have = v->top_itemlen + ip_page_free(page);

	w->info = IP_XLOG_MOVE;
	w->state = ip_state_delete(true);
	w->moved.row = req->row;
	w->moved.init = false;
	if (have >= wanted + ip_space_reserve(BufferGetBlockNumber(buffer),
										  page, wanted) &&
		ip_page_free_offset(page, InvalidOffsetNumber) <= IP_MAX_ROWS_PER_PAGE)
		w->moved.buffer = buffer;
	else
		w->moved.buffer = ip_space_find(req->rel, size, 0, NULL, true, buffer,
										&w->moved.init);
	w->moved.off = ip_op_put_offset(w->moved.buffer, w->moved.init);
	w->undo.kind = IP_UNDO_DELETE;
	ItemPointerSet(&w->undo.forward, BufferGetBlockNumber(w->moved.buffer),
				   w->moved.off);
}

/* Prepare what an update writes both in place and when it moves the row. */
static void
update_common(ModifyRequest *req, IpVersion *v, IpRowWrite *w)
{
	ip_modify_same(w, v, IP_XLOG_UPDATE, req->xid);
	w->cid = w->undo.cid = req->cid;
	w->from = w->body = from_body;
	if (req->mode == LockTupleExclusive)
		w->undo.flags = IP_REC_KEYS;
}

/* Prepare an update in place, or a move; returns whether it is in place. */
static bool
update_prepare(ModifyRequest *req, IpVersion *v, Buffer buffer, IpRowWrite *w,
			   uint8 *delta)
{
	update_common(req, v, w);
	if (!req->columns.blocked && prepare_in_place(req, v, buffer, w, delta))
		return true;
	update_common(req, v, w);
	return false;
}

/*
 * Returns whether room for the new version or for undo at home is missing, and
 * a prune of the page could make it.
 */
static bool
lacks_room(ModifyRequest *req, IpVersion *v, Buffer buffer, IpRowWrite *w,
		   bool in_place)
{
	Page		page = BufferGetPage(buffer);

	if (PageIsAllVisible(page))
		return false;			/* and there is nothing to prune */
	if (in_place)
		return ip_modify_lacks_home(v, buffer, w);
	return v->top_itemlen + ip_page_free(page) <
		ip_item_size(IP_ROW_VERSION, v->bodylen) + req->row.bodylen +
		MOVE_SPACE;
}

/* Write the new version; returns whether it is in place. */
static bool
update_write(ModifyRequest *req, IpVersion *v, Buffer buffer)
{
	uint8		delta[BLCKSZ];
	TransactionId xmax = req->was_locked ? req->xid : InvalidTransactionId;
	IpFormed	old;
	IpRowWrite	w;
	StringInfo	logical;
	Buffer		to = buffer;
	OffsetNumber off = ItemPointerGetOffsetNumber(&v->tid);
	bool		in_place;

	/*
	 * as in heap, an update under our own FOR UPDATE excludes what FOR UPDATE
	 * excludes
	 */
	if (ip_lockers_held(v, LockTupleExclusive))
		req->mode = LockTupleExclusive;
	memcpy(from_body, v->body, v->bodylen);
	old.hdr = v->hdr;
	old.body = from_body;
	old.bodylen = v->bodylen;
	logical = req->no_logical ? NULL :
		ip_logical_update(req->rel, &old, &req->row);
	in_place = update_prepare(req, v, buffer, &w, delta);
	if (lacks_room(req, v, buffer, &w, in_place) &&
		ip_prune_page_opt(req->rel, buffer))
	{
		/* the row has not changed, but may have fewer old versions */
		if (ip_version_begin(v, req->rel, BufferGetBlockNumber(buffer),
							 BufferGetPage(buffer), off) != IPV_OK)
			ip_version_missing(v);
		memcpy(from_body, v->body, v->bodylen);
		in_place = update_prepare(req, v, buffer, &w, delta);
	}
	if (!in_place)
	{
		req->has_older = has_older(v);
		prepare_move(req, v, buffer, &w);
		to = w.moved.buffer;
		off = w.moved.off;
	}
	Assert(!in_place || may_stay(req, &w));
	w.logical = logical;
	if (!in_place)
		(void) ip_lockers_are_ours(v);	/* read the lockers before v changes */
	ip_modify_write(v, buffer, &w);
	ip_slot_set_written(req->slot, req->rel, BufferGetBlockNumber(to), off,
						req->xid, req->cid, xmax);
	if (!in_place)
		ip_lockers_carry(v, to, off);	/* I19 */
	if (to != buffer)
		UnlockReleaseBuffer(to);
	return in_place;
}

TM_Result
ip_update_tuple(Relation rel, ItemPointer tid, TupleTableSlot *slot,
				CommandId cid, uint32 options, Snapshot snapshot,
				Snapshot crosscheck, bool wait, TM_FailureData *tmfd,
				LockTupleMode *lockmode, CompatUpdateIndexes *update_indexes)
{
	ModifyRequest req = {
		.rel = rel,.cid = cid,.snapshot = snapshot,
		.crosscheck = crosscheck,.wait = wait,.tmfd = tmfd,
		.xid = GetCurrentTransactionId(),.slot = slot,
		.no_logical = (options & TABLE_UPDATE_NO_LOGICAL) != 0
	};
	MemoryContext context = ip_version_work_begin();
	IpVersion	version;
	IpVersion  *v = &version;
	BlockNumber block;
	bool		in_place = false;
	bool		has_queue = rel->trigdesc &&
		rel->trigdesc->trig_update_after_row;
	Buffer		buffer;
	TM_Result	result;

	ip_version_target(rel, tid, &req.target);
	ip_update_columns_init(&req.columns, rel);
	if (!ip_toast_take_formed(rel, slot, &req.row))
	{
		req.toast = ip_toast_needed(rel, slot);
		ip_toast_form(rel, slot, !req.toast, &req.row);
	}
	result = modify_find(&req, v, &buffer);
	*lockmode = req.mode;
	req.was_locked = req.is_locker ||
		ip_memo_was_locked(rel, &req.target.row, cid);
	if (result == TM_Ok && (req.toast || (v->hdr & IP_HDR_HASEXTERNAL)))
	{
		update_toast(&req, v, buffer);
		req.toasted = true;
		result = modify_find(&req, v, &buffer);
		if (result != TM_Ok)
			elog(ERROR, "row (%u,%u) of relation \"%s\" changed although it is locked",
				 ItemPointerGetBlockNumber(&req.target.row),
				 ItemPointerGetOffsetNumber(&req.target.row),
				 RelationGetRelationName(rel));
	}
	if (result == TM_Ok)
	{
		ip_version_check_write(v);
		in_place = update_write(&req, v, buffer);
		block = BufferGetBlockNumber(buffer);
		UnlockReleaseBuffer(buffer);
		CompatCountUpdate(rel, in_place,
						  ItemPointerGetBlockNumber(&slot->tts_tid) != block);
		*update_indexes = COMPAT_TU_ALL;
		if (in_place)
		{
			/*
			 * core counts a dead row, which is right if an entry becomes
			 * stale
			 */
			if (req.columns.changed == 0)
				pgstat_update_heap_dead_tuples(rel, 1);
			*update_indexes = req.columns.summarize ? COMPAT_TU_SUMMARIZING :
				COMPAT_TU_NONE;
		}
	}
	result = modify_end(&req, result);
	ip_logical_end();
	MemoryContextSwitchTo(context);
	if (result == TM_Ok)
		modify_note(&req, has_queue && !in_place);
	if (in_place && req.columns.changed != 0)
		ip_keys_insert(rel, req.columns.followed.indexes, req.columns.changed,
					   slot);
	/* must be last: functions of operator classes may have made any calls */
	if (in_place && has_queue)
		ip_memo_note_updated(rel, &slot->tts_tid, cid);
	return result;
}
