/*-------------------------------------------------------------------------
 * ip_rewrite.c
 *	  CLUSTER and VACUUM FULL: the table's rows go to a new file.
 *
 * A row that all see is copied as such.  Of the others each version that a
 * snapshot may still want becomes a row of its own, with the transaction ids
 * that made and ended it, as if every update had moved the row: undo holds
 * only what ended it, so a version fits wherever it fitted before.  Row locks
 * are left behind: only our own transaction can hold any.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/detoast.h"
#include "access/heapam.h"
#include "access/relscan.h"
#include "commands/progress.h"
#include "executor/executor.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"

#include "ip_change.h"
#include "ip_fetch.h"
#include "ip_fetch_index.h"
#include "ip_insert.h"
#include "ip_modify.h"
#include "ip_rewrite.h"
#include "ip_salvage.h"
#include "ip_scan.h"
#include "ip_state.h"
#include "ip_toast.h"
#include "ip_toaster.h"
#include "ip_xid.h"

/* Rows that all see are written in batches of this size. */
#define BATCH_ROWS	IP_MAX_ROWS_PER_PAGE

/* In a sorted tuple's xmin: the row has versions that are not in the tuple. */
#define XMIN_FETCH	BootstrapTransactionId

/* One version of a row, with what ended it. */
typedef struct Past
{
	IpFormed	row;
	IpXid		xid;			/* the transaction that made the version;
								 * frozen: all see it */
	CommandId	cid;
	IpXid		end_xid;		/* the transaction that ended it, or
								 * IP_XID_NONE */
	CommandId	end_cid;
	uint8		end_flags;		/* IP_REC_KEYS, IP_REC_PARTITION */
	bool		moved;			/* an update has moved the row */
} Past;

typedef struct Rewrite
{
	Relation	old;
	Relation	new;
	TupleTableSlot *slot;		/* a slot of the new table */
	IpXid		horizon;		/* all see changes before it */
	bool		only_read;		/* versions are read, and not written */
	MemoryContext batch_context;
	MemoryContext row_context;
	IpFormed	batch[BATCH_ROWS];
	int			nbatch;
	double		live;			/* versions copied */
	double		recently_dead;
	double		dead;
} Rewrite;

/* ---- writing ----------------------------------------------------------- */

static void
flush_batch(Rewrite *r)
{
	ip_insert_frozen(r->new, r->batch, r->nbatch);
	r->nbatch = 0;
	MemoryContextReset(r->batch_context);
}

/*
 * Form a row of the values in the slot, without those of dropped columns, for a
 * version that xid made; invalid: it is visible to all.
 */
static void
form_row(Rewrite *r, TransactionId xid, CommandId cid, IpFormed *row)
{
	IpValueChange change = {
		.rel = r->new,.xid = xid,.cid = cid,.replay = true,
		.options = TABLE_INSERT_SKIP_FSM | TABLE_INSERT_NO_LOGICAL
	};
	TupleDesc	desc = RelationGetDescr(r->new);

	for (int i = 0; i < desc->natts; i++)
	{
		if (TupleDescAttr(desc, i)->attisdropped)
			r->slot->tts_isnull[i] = true;
	}
	ExecStoreVirtualTuple(r->slot);
	ip_insert_form(&change, r->slot, row);
	ExecClearTuple(r->slot);
}

/* Put the values of the version that v stands on into the slot. */
static void
load_version(Rewrite *r, IpVersion *v)
{
	ExecClearTuple(r->slot);
	ip_body_deform(RelationGetDescr(r->old), v->hdr, v->body, v->bodylen,
				   RelationGetDescr(r->old)->natts, false, r->slot->tts_values,
				   r->slot->tts_isnull);
}

/* Read the slot's values that are in TOAST, as forming the row will do. */
static void
read_external(Rewrite *r)
{
	TupleDesc	desc = RelationGetDescr(r->old);

	for (int i = 0; i < desc->natts; i++)
	{
		Datum		value = r->slot->tts_values[i];

		if (TupleDescAttr(desc, i)->attisdropped ||
			TupleDescAttr(desc, i)->attlen != -1 || r->slot->tts_isnull[i])
			continue;
		if (VARATT_IS_EXTERNAL(DatumGetPointer(value)))
			pfree(detoast_external_attr((struct varlena *)
										DatumGetPointer(value)));
	}
}

/* Add the row in the slot to the batch. */
static void
batch_row(Rewrite *r)
{
	MemoryContext context = MemoryContextSwitchTo(r->batch_context);

	Assert(r->nbatch < BATCH_ROWS);
	form_row(r, InvalidTransactionId, 0, &r->batch[r->nbatch++]);
	MemoryContextSwitchTo(context);
	if (r->nbatch == BATCH_ROWS)
		flush_batch(r);
}

/*
 * End the row at tid as the version was ended; next is where the row was moved,
 * if it is valid.
 */
static void
end_version(Rewrite *r, ItemPointer tid, const Past *past,
			const ItemPointerData *next)
{
	IpVersion	v;
	Buffer		buffer = ReadBuffer(r->new, ItemPointerGetBlockNumber(tid));
	IpRowWrite	w;

	Assert(!IpXidIsFrozen(past->end_xid));
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	if (ip_version_begin(&v, r->new, ItemPointerGetBlockNumber(tid),
						 BufferGetPage(buffer),
						 ItemPointerGetOffsetNumber(tid)) != IPV_OK)
		elog(ERROR, "could not find the row just inserted");
	ip_modify_same(&w, &v, IP_XLOG_DELETE, (TransactionId) past->end_xid);
	w.replay = true;
	w.undo.kind = IP_UNDO_DELETE;
	w.undo.flags = past->end_flags;
	w.undo.cid = past->end_cid;
	w.state = ip_state_delete(past->moved);
	if (past->moved)
	{
		if (ItemPointerIsValid(next))
			w.undo.forward = *next;
		else
			w.undo.flags |= IP_REC_PARTITION;	/* no version to be found */
	}
	ip_modify_write(&v, buffer, &w);
	UnlockReleaseBuffer(buffer);
	if (past->row.hdr & IP_HDR_HASEXTERNAL)
	{
		IpValueChange change = {
			.rel = r->new,.xid = (TransactionId) past->end_xid,
			.cid = past->end_cid,.replay = true
		};

		ip_toaster_delete(&change,
						  ip_toast_heap_tuple(r->new, past->row.hdr,
											  past->row.body,
											  past->row.bodylen));
	}
}

/* ---- a row's past ------------------------------------------------------ */

/*
 * Returns whether all see the change that made v's state.  Another backend's
 * horizon may be newer than ours: then the change's undo may have been removed.
 */
static bool
is_frozen(Rewrite *r, IpVersion *v)
{
	Assert(!IpXidIsFrozen(r->horizon)); /* I18 */
	if (IpXidIsFrozen(v->xid))
		return true;
	if (ip_version_status(v) != IP_STATUS_COMMITTED)
		return false;
	return v->xid < r->horizon ||
		(!(v->state & IP_ROW_INSERTED) && ip_version_load_rec(v) != IPV_OK);
}

/* Go below aborted changes.  Returns false if the insertion was aborted. */
static bool
skip_aborted(IpVersion *v)
{
	IpvResult	result = ip_version_skip_aborted(v);

	/* the table is locked: no change can be rolled back meanwhile */
	if (result != IPV_OK && result != IPV_NONE)
		ip_version_missing(v);
	return result == IPV_OK;
}

/*
 * Report damage if the transaction of v's state seems to run: the table is
 * locked, so no other transaction can be running in it.
 */
static void
refuse_future(Rewrite *r, IpVersion *v)
{
	if (ip_version_status(v) == IP_STATUS_RUNNING)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("transaction id " UINT64_FORMAT " of row (%u,%u) of relation \"%s\" is in the future",
						v->xid, ItemPointerGetBlockNumber(&v->tid),
						ItemPointerGetOffsetNumber(&v->tid),
						RelationGetRelationName(r->old)),
				 ip_page_check_hint(r->old)));
}

/* Note how the change that v stands on ended the version below. */
static void
note_end(Rewrite *r, IpVersion *v, Past *past)
{
	refuse_future(r, v);
	if (ip_version_load_rec(v) != IPV_OK)
		ip_version_missing(v);
	past->end_xid = v->xid;
	past->end_cid = v->rec.cid;
	past->end_flags = v->rec.flags & (IP_REC_KEYS | IP_REC_PARTITION);
	past->moved = v->rec.kind == IP_UNDO_UPDATE ||
		(v->state & IP_ROW_MOVED) != 0;
}

/* v stands on the version that past is to describe. */
static void
note_version(Rewrite *r, IpVersion *v, Past *past)
{
	past->xid = IP_XID_NONE;
	past->cid = 0;
	if (!is_frozen(r, v))
	{
		refuse_future(r, v);
		past->xid = v->xid;
		if (v->state & IP_ROW_INSERTED)
			past->cid = (CommandId) v->ptr.block;
		else if (ip_version_load_rec(v) == IPV_OK)
			past->cid = v->rec.cid;
		else
			ip_version_missing(v);
	}
	load_version(r, v);
	if (r->only_read)
		read_external(r);
	else
		form_row(r, (TransactionId) past->xid, past->cid, &past->row);
}

/* Copy the versions from v, which is not aborted, to the oldest that counts. */
static void
copy_versions(Rewrite *r, IpVersion *v)
{
	ItemPointerData next;

	ItemPointerSetInvalid(&next);
	/* the static operations of a change are free */
	Assert(r->only_read || r->nbatch == 0);
	for (bool newest = true;; newest = false)
	{
		Past		past = {.end_xid = IP_XID_NONE};
		ItemPointerData tid;
		bool		oldest;

		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(r->row_context);
		if (!newest || (v->state & IP_ROW_DELETED))
		{
			note_end(r, v, &past);
			if (ip_version_older(v) != IPV_OK)
				ip_version_missing(v);
			if (!skip_aborted(v))
				ereport(ERROR,
						(errcode(ERRCODE_DATA_CORRUPTED),
						 errmsg("row (%u,%u) of relation \"%s\" was changed after its insertion aborted",
								ItemPointerGetBlockNumber(&v->tid),
								ItemPointerGetOffsetNumber(&v->tid),
								RelationGetRelationName(r->old)),
						 ip_page_check_hint(r->old)));
		}
		note_version(r, v, &past);
		oldest = IpXidIsFrozen(past.xid) || (v->state & IP_ROW_INSERTED);
		if (r->only_read)
		{
			if (oldest)
				return;
			continue;
		}
		ip_insert_as(r->new, &past.row, (TransactionId) past.xid, past.cid,
					 &tid);
		if (past.end_xid != IP_XID_NONE)
		{
			end_version(r, &tid, &past, &next);
			r->recently_dead += 1;
		}
		r->live += 1;
		if (oldest)
			return;
		next = tid;
	}
}

typedef enum RowFate
{
	ROW_DEAD,					/* no snapshot will see it again */
	ROW_PLAIN,					/* all see this version */
	ROW_VERSIONS				/* older versions, or what ended it, matter */
} RowFate;

/*
 * Go to the newest version that was not rolled back, and determine what is to
 * be done with the row.
 */
static RowFate
row_fate(Rewrite *r, IpVersion *v)
{
	if (!skip_aborted(v))
		return ROW_DEAD;
	if (!is_frozen(r, v))
		return ROW_VERSIONS;
	return (v->state & IP_ROW_DELETED) ? ROW_DEAD : ROW_PLAIN;
}

typedef struct RowToRead
{
	Rewrite    *r;
	ItemPointerData tid;
} RowToRead;

static void
read_row(void *arg)
{
	IpVersion	fetched;
	IpVersion  *v = &fetched;
	const RowToRead *row = arg;

	if (!ip_version_fetch_newest(v, row->r->old, &row->tid))
		return;
	v->locked = true;			/* as the table is */
	switch (row_fate(row->r, v))
	{
		case ROW_DEAD:
			break;
		case ROW_PLAIN:
			load_version(row->r, v);
			read_external(row->r);
			break;
		case ROW_VERSIONS:
			copy_versions(row->r, v);
			break;
	}
}

/*
 * Returns whether all versions that are to be copied can be read.  This must be
 * known before anything of the row is written.
 */
static bool
is_readable(Rewrite *r, const ItemPointerData *tid)
{
	RowToRead	row = {r, *tid};
	char	   *problem;

	if (likely(!ip_salvage_wanted()))
		return true;
	r->only_read = true;
	problem = ip_salvage_try(read_row, &row);
	r->only_read = false;
	if (problem == NULL)
		return true;
	ereport(WARNING,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("row (%u,%u) of relation \"%s\" is left out: %s",
					ItemPointerGetBlockNumber(tid),
					ItemPointerGetOffsetNumber(tid),
					RelationGetRelationName(r->old), problem)));
	pfree(problem);
	return false;
}

/* Copy the row whose newest version v stands on. */
static void
copy_row(Rewrite *r, IpVersion *v)
{
	MemoryContext context = MemoryContextSwitchTo(r->row_context);

	MemoryContextReset(r->row_context);
	v->locked = true;			/* as the table is */
	switch (row_fate(r, v))
	{
		case ROW_DEAD:
			r->dead += 1;
			break;
		case ROW_PLAIN:
			load_version(r, v);
			batch_row(r);
			r->live += 1;
			break;
		case ROW_VERSIONS:
			flush_batch(r);
			copy_versions(r, v);
			break;
	}
	MemoryContextSwitchTo(context);
}

/* ---- orders ------------------------------------------------------------ */

static void
report_blocks(IpScan *scan)
{
	pgstat_progress_update_param(PROGRESS_REPACK_HEAP_BLKS_SCANNED,
								 scan->block + 1);
}

static void
report_written(double scanned, double written)
{
	const int	index[] = {
		PROGRESS_REPACK_HEAP_TUPLES_SCANNED,
		PROGRESS_REPACK_HEAP_TUPLES_INSERTED
	};
	int64		values[2] = {scanned, written};

	pgstat_progress_update_multi_param(2, index, values);
}

static IpScan *
begin_scan(Rewrite *r)
{
	IpScan	   *scan = (IpScan *) table_beginscan_strat(r->old, SnapshotAny, 0,
														NULL, true, false);

	pgstat_progress_update_param(PROGRESS_REPACK_PHASE,
								 PROGRESS_REPACK_PHASE_SEQ_SCAN_HEAP);
	pgstat_progress_update_param(PROGRESS_REPACK_TOTAL_HEAP_BLKS,
								 scan->nblocks);
	return scan;
}

static void
end_scan(IpScan *scan)
{
	pgstat_progress_update_param(PROGRESS_REPACK_HEAP_BLKS_SCANNED,
								 scan->nblocks);
	table_endscan(&scan->rs_base);
}

static void
copy_in_file_order(Rewrite *r)
{
	IpScan	   *scan = begin_scan(r);

	while (ip_scan_next_row(scan))
	{
		CHECK_FOR_INTERRUPTS();
		if (is_readable(r, &scan->v.tid))
			copy_row(r, &scan->v);
		report_blocks(scan);
		report_written(r->live, r->live);
	}
	end_scan(scan);
}

/* Copy the row at tid, which is fetched from the old file. */
static void
copy_fetched(Rewrite *r, ItemPointer tid)
{
	IpVersion	fetched;

	if (ip_version_fetch_newest(&fetched, r->old, tid))
		copy_row(r, &fetched);
}

/*
 * Copy the row that an index scan has found.  If the index has several entries
 * for the row, it is copied only once.
 */
static void
copy_indexed(Rewrite *r, IndexScanDesc scan, TupleTableSlot *slot)
{
	IpVersion	fetched;

	if (!is_readable(r, &scan->xs_heaptid) ||
		!ip_version_fetch_newest(&fetched, r->old, &scan->xs_heaptid))
		return;
	fetched.locked = true;		/* as the table is */
	if (ip_fetch_is_current(scan->xs_heapfetch, &fetched,
							row_fate(r, &fetched) == ROW_DEAD, slot))
		copy_row(r, &fetched);
}

static void
copy_in_index_order(Rewrite *r, Relation index)
{
	const int	phase_index[] = {
		PROGRESS_REPACK_PHASE,
		PROGRESS_REPACK_INDEX_RELID
	};
	int64		phase[] = {
		PROGRESS_REPACK_PHASE_INDEX_SCAN_HEAP,
		RelationGetRelid(index)
	};
	IndexScanDesc scan = CompatIndexBeginScan(r->old, index, SnapshotAny, 0, 0);
	TupleTableSlot *slot = table_slot_create(r->old, NULL);

	pgstat_progress_update_multi_param(2, phase_index, phase);
	index_rescan(scan, NULL, 0, NULL, 0);
	while (index_getnext_tid(scan, ForwardScanDirection) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (scan->xs_recheck)
			elog(ERROR, "CLUSTER does not support lossy index conditions");
		copy_indexed(r, scan, slot);
		report_written(r->live, r->live);
	}
	ExecDropSingleTupleTableSlot(slot);
	index_endscan(scan);
}

/*
 * Add the row to the sort.  If several of its versions are to be copied, only
 * the sort key of its tuple counts.
 */
static void
sort_row(Rewrite *r, Tuplesortstate *sort, IpVersion *v)
{
	MemoryContext context = MemoryContextSwitchTo(r->row_context);
	HeapTuple	tuple;
	RowFate		fate;

	MemoryContextReset(r->row_context);
	v->locked = true;			/* as the table is */
	fate = row_fate(r, v);
	if (fate == ROW_DEAD)
		r->dead += 1;
	else
	{
		tuple = ip_toast_heap_tuple(r->old, v->hdr, v->body, v->bodylen);
		tuple->t_data->t_infomask &= ~HEAP_XACT_MASK;
		HeapTupleHeaderSetXmin(tuple->t_data,
							   fate == ROW_PLAIN ? FrozenTransactionId :
							   XMIN_FETCH);
		tuple->t_self = v->tid;
		tuplesort_putheaptuple(sort, tuple);
	}
	MemoryContextSwitchTo(context);
}

static void
copy_sorted(Rewrite *r, HeapTuple tuple)
{
	if (HeapTupleHeaderGetRawXmin(tuple->t_data) == XMIN_FETCH)
	{
		copy_fetched(r, &tuple->t_self);
		return;
	}
	ExecClearTuple(r->slot);
	heap_deform_tuple(tuple, RelationGetDescr(r->old), r->slot->tts_values,
					  r->slot->tts_isnull);
	batch_row(r);
	r->live += 1;
}

static void
copy_by_sort(Rewrite *r, Relation index)
{
	Tuplesortstate *sort = tuplesort_begin_cluster(RelationGetDescr(r->old),
												   index, maintenance_work_mem,
												   NULL, TUPLESORT_NONE);
	IpScan	   *scan = begin_scan(r);
	double		scanned = 0;
	HeapTuple	tuple;

	while (ip_scan_next_row(scan))
	{
		CHECK_FOR_INTERRUPTS();
		if (is_readable(r, &scan->v.tid))
			sort_row(r, sort, &scan->v);
		report_blocks(scan);
		report_written(++scanned, 0);
	}
	end_scan(scan);
	pgstat_progress_update_param(PROGRESS_REPACK_PHASE,
								 PROGRESS_REPACK_PHASE_SORT_TUPLES);
	tuplesort_performsort(sort);
	pgstat_progress_update_param(PROGRESS_REPACK_PHASE,
								 PROGRESS_REPACK_PHASE_WRITE_NEW_HEAP);
	while ((tuple = tuplesort_getheaptuple(sort, true)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		copy_sorted(r, tuple);
		report_written(scanned, r->live);
	}
	tuplesort_end(sort);
}

void
ip_rewrite_for_cluster(Relation old, Relation new, Relation index,
					   bool use_sort, TransactionId oldest_xmin,
					   Snapshot snapshot, TransactionId *xid_cutoff,
					   MultiXactId *multi_cutoff, double *num_tuples,
					   double *tups_vacuumed, double *tups_recently_dead)
{
	Rewrite    *r = palloc0(sizeof(Rewrite));
	TransactionId horizon = CompatHorizon(old, oldest_xmin);

	if (snapshot != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot repack inplace table \"%s\" concurrently",
						RelationGetRelationName(old)),
				 errhint("Use REPACK without CONCURRENTLY.")));
	if (old->rd_rel->relkind == RELKIND_TOASTVALUE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot rewrite the TOAST table of an inplace table by itself"),
				 errdetail("Rows of the table have the addresses of its rows."),
				 errhint("Rewrite the table.")));
	r->old = old;
	r->new = new;
	r->horizon = ip_xid_full(horizon);
	/* the new relfrozenxid: xids from the horizon on are kept */
	if (TransactionIdPrecedes(horizon, *xid_cutoff))
		*xid_cutoff = horizon;
	r->slot = table_slot_create(new, NULL);
	r->batch_context = AllocSetContextCreate(CurrentMemoryContext, "inplace rewrite batch",
											 ALLOCSET_DEFAULT_SIZES);
	r->row_context = AllocSetContextCreate(CurrentMemoryContext, "inplace rewrite row",
										   ALLOCSET_DEFAULT_SIZES);
	if (index == NULL)
		copy_in_file_order(r);
	else if (use_sort)
		copy_by_sort(r, index);
	else
		copy_in_index_order(r, index);
	flush_batch(r);
	ExecDropSingleTupleTableSlot(r->slot);
	MemoryContextDelete(r->row_context);
	MemoryContextDelete(r->batch_context);
	*num_tuples = r->live;
	*tups_vacuumed = r->dead;
	*tups_recently_dead = r->recently_dead;
	pfree(r);
}
