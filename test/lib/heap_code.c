/*-------------------------------------------------------------------------
 * heap_code.c
 *	  For tests: calls heap's own functions on any table, as an extension does that takes every
 *	  table for a heap.
 *
 * heap_code(what text, rel regclass, at tid, new record) returns text:
 *
 *	insert, multi_insert, simple_insert, catalog_insert			new
 *	update, simple_update, catalog_update						at, new
 *	inplace_update (until 17), inplace_lock_and_update			at, new
 *	delete, simple_delete, catalog_delete						at
 *	lock_key_share, lock_share, lock_no_key_update, lock_update	at
 *	finish_speculative, abort_speculative						at
 *	fetch, fetch_any, hot_search, latest_tid					at
 *	prune														the block of at
 *	scan, getnext, catalog_scan, index_build					neither
 *
 * Not heap's own, but as an extension calls it that remembers the snapshot before a command:
 *
 *	note_snapshot, forget_snapshot (in the same transaction)	neither
 *	fetch_noted: does the noted snapshot see the version at it?	at
 *	historic_scan: as an output plugin reads a catalog table	neither
 *
 * The answer is the TID of a new tuple, a TM_Result, a number of tuples, or "done".
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/relation.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "executor/executor.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"

#include "compat_heap.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(heap_code);

typedef struct HeapCall
{
	Relation	rel;
	ItemPointerData at;
	HeapTuple	new;			/* a copy that may be changed */
	int			option;			/* of the entry in calls[] */
} HeapCall;

static char *
result_name(TM_Result result)
{
	static const char *const names[] = {
		[TM_Ok] = "ok",
		[TM_Invisible] = "invisible",
		[TM_SelfModified] = "self-modified",
		[TM_Updated] = "updated",
		[TM_Deleted] = "deleted",
		[TM_BeingModified] = "being modified",
		[TM_WouldBlock] = "would block"
	};

	return pstrdup(names[result]);
}

static char *
tid_name(ItemPointer tid)
{
	return psprintf("(%u,%u)", ItemPointerGetBlockNumberNoCheck(tid),
					ItemPointerGetOffsetNumberNoCheck(tid));
}

/* ---- changes --------------------------------------------------------------- */

static char *
call_insert(HeapCall *c)
{
	heap_insert(c->rel, c->new, GetCurrentCommandId(true), 0, NULL);
	return tid_name(&c->new->t_self);
}

static char *
call_multi_insert(HeapCall *c)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(RelationGetDescr(c->rel), &TTSOpsHeapTuple);
	char	   *tid;

	ExecStoreHeapTuple(c->new, slot, false);
	heap_multi_insert(c->rel, &slot, 1, GetCurrentCommandId(true), 0, NULL);
	tid = tid_name(&slot->tts_tid);
	ExecDropSingleTupleTableSlot(slot);
	return tid;
}

static char *
call_simple_insert(HeapCall *c)
{
	simple_heap_insert(c->rel, c->new);
	return tid_name(&c->new->t_self);
}

static char *
call_catalog_insert(HeapCall *c)
{
	CatalogTupleInsert(c->rel, c->new);
	return tid_name(&c->new->t_self);
}

static char *
call_update(HeapCall *c)
{
	TM_FailureData tmfd;
	LockTupleMode mode;
	CompatUpdateIndexes indexes;

	return result_name(compat_heap_update(c->rel, &c->at, c->new, &tmfd, &mode, &indexes));
}

static char *
call_simple_update(HeapCall *c)
{
	CompatUpdateIndexes indexes;

	compat_simple_heap_update(c->rel, &c->at, c->new, &indexes);
	return tid_name(&c->new->t_self);
}

static char *
call_catalog_update(HeapCall *c)
{
	CatalogTupleUpdate(c->rel, &c->at, c->new);
	return tid_name(&c->new->t_self);
}

#ifdef COMPAT_HEAP_OVERWRITES
static char *
call_inplace_update(HeapCall *c)
{
	heap_inplace_update(c->rel, c->new);
	return pstrdup("done");
}
#endif

#ifdef COMPAT_HEAP_LOCKS_AND_OVERWRITES
static void
release_nothing(void *arg)
{
}

/* What is at the line pointer is taken for a tuple, whatever it is. */
static char *
call_inplace_lock_and_update(HeapCall *c)
{
	Buffer		buffer = ReadBuffer(c->rel, ItemPointerGetBlockNumber(&c->at));
	Page		page = BufferGetPage(buffer);
	HeapTupleData old = {.t_self = c->at,.t_tableOid = RelationGetRelid(c->rel)};
	ItemId		lp;
	bool		locked;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	lp = PageGetItemId(page, ItemPointerGetOffsetNumber(&c->at));
	old.t_len = ItemIdGetLength(lp);
	old.t_data = (HeapTupleHeader) PageGetItem(page, lp);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	locked = heap_inplace_lock(c->rel, &old, buffer, release_nothing, NULL);
	if (locked)
		heap_inplace_update_and_unlock(c->rel, &old, c->new, buffer);
	ReleaseBuffer(buffer);
	return pstrdup(locked ? "done" : "busy");
}
#endif

static char *
call_delete(HeapCall *c)
{
	TM_FailureData tmfd;

	return result_name(compat_heap_delete(c->rel, &c->at, &tmfd));
}

static char *
call_simple_delete(HeapCall *c)
{
	simple_heap_delete(c->rel, &c->at);
	return pstrdup("done");
}

static char *
call_catalog_delete(HeapCall *c)
{
	CatalogTupleDelete(c->rel, &c->at);
	return pstrdup("done");
}

static char *
call_lock(HeapCall *c)
{
	HeapTupleData tuple = {.t_self = c->at};
	TM_FailureData tmfd;
	TM_Result	result;
	Buffer		buffer;

	result = heap_lock_tuple(c->rel, &tuple, GetCurrentCommandId(true), c->option, LockWaitBlock,
							 false, &buffer, &tmfd);
	ReleaseBuffer(buffer);
	return result_name(result);
}

static char *
call_finish_speculative(HeapCall *c)
{
	heap_finish_speculative(c->rel, &c->at);
	return pstrdup("done");
}

static char *
call_abort_speculative(HeapCall *c)
{
	heap_abort_speculative(c->rel, &c->at);
	return pstrdup("done");
}

static char *
call_prune(HeapCall *c)
{
	Buffer		buffer = ReadBuffer(c->rel, ItemPointerGetBlockNumberNoCheck(&c->at));

	compat_heap_prune(c->rel, buffer);
	ReleaseBuffer(buffer);
	return pstrdup("done");
}

/* ---- reading --------------------------------------------------------------- */

static char *
call_fetch(HeapCall *c)
{
	HeapTupleData tuple = {.t_self = c->at};
	Buffer		buffer = InvalidBuffer;
	Snapshot	snapshot = c->option ? SnapshotAny : GetActiveSnapshot();
	bool		found = heap_fetch(c->rel, snapshot, &tuple, &buffer, false);

	if (BufferIsValid(buffer))
		ReleaseBuffer(buffer);
	return pstrdup(found ? "1" : "0");
}

static char *
call_hot_search(HeapCall *c)
{
	Buffer		buffer = ReadBuffer(c->rel, ItemPointerGetBlockNumberNoCheck(&c->at));
	HeapTupleData tuple;
	bool		found;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	found = heap_hot_search_buffer(&c->at, c->rel, buffer, GetActiveSnapshot(), &tuple, NULL, true);
	UnlockReleaseBuffer(buffer);
	return pstrdup(found ? "1" : "0");
}

static char *
call_latest_tid(HeapCall *c)
{
	TableScanDesc scan = heap_beginscan(c->rel, GetActiveSnapshot(), 0, NULL, NULL, SO_TYPE_TIDSCAN);

	heap_get_latest_tid(scan, &c->at);
	heap_endscan(scan);
	return tid_name(&c->at);
}

static char *
call_scan(HeapCall *c)
{
	TableScanDesc scan = heap_beginscan(c->rel, GetActiveSnapshot(), 0, NULL, NULL,
										SO_TYPE_SEQSCAN | SO_ALLOW_PAGEMODE);
	TupleTableSlot *slot = MakeSingleTupleTableSlot(RelationGetDescr(c->rel), &TTSOpsBufferHeapTuple);
	int64		n = 0;

	while (heap_getnextslot(scan, ForwardScanDirection, slot))
		n++;
	ExecDropSingleTupleTableSlot(slot);
	heap_endscan(scan);
	return psprintf(INT64_FORMAT, n);
}

/* The scan is begun as the table's access method would, but read as heap's. */
static char *
call_getnext(HeapCall *c)
{
	TableScanDesc scan = compat_beginscan(c->rel, GetActiveSnapshot());
	int64		n = 0;

	while (heap_getnext(scan, ForwardScanDirection) != NULL)
		n++;
	table_endscan(scan);
	return psprintf(INT64_FORMAT, n);
}

static char *
call_catalog_scan(HeapCall *c)
{
	SysScanDesc scan = systable_beginscan(c->rel, InvalidOid, false, GetActiveSnapshot(), 0, NULL);
	int64		n = 0;

	while (HeapTupleIsValid(systable_getnext(scan)))
		n++;
	systable_endscan(scan);
	return psprintf(INT64_FORMAT, n);
}

static void
count_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *state)
{
}

/* What CREATE INDEX would read if the table were heap's: with the columns of its first index. */
static char *
call_index_build(HeapCall *c)
{
	List	   *indexes = RelationGetIndexList(c->rel);
	Relation	index;
	double		n;

	if (indexes == NIL)
		elog(ERROR, "relation \"%s\" has no index", RelationGetRelationName(c->rel));
	index = index_open(linitial_oid(indexes), AccessShareLock);
	n = GetHeapamTableAmRoutine()->index_build_range_scan(c->rel, index, BuildIndexInfo(index), false,
														  false, false, 0, InvalidBlockNumber,
														  count_row, NULL, NULL);
	index_close(index, AccessShareLock);
	return psprintf("%.0f", n);
}

static Snapshot noted;

static char *
call_note_snapshot(HeapCall *c)
{
	noted = RegisterSnapshotOnOwner(GetActiveSnapshot(), TopTransactionResourceOwner);
	return "done";
}

static char *
call_forget_snapshot(HeapCall *c)
{
	UnregisterSnapshotFromOwner(noted, TopTransactionResourceOwner);
	return "done";
}

static char *
call_fetch_noted(HeapCall *c)
{
	TupleTableSlot *slot = table_slot_create(c->rel, NULL);
	bool		found = table_tuple_fetch_row_version(c->rel, &c->at, noted, slot);

	ExecDropSingleTupleTableSlot(slot);
	return found ? "seen" : "not seen";
}

static char *
call_historic_scan(HeapCall *c)
{
	SnapshotData snapshot = *GetActiveSnapshot();
	TupleTableSlot *slot = table_slot_create(c->rel, NULL);
	TableScanDesc scan;
	int64		n = 0;

	snapshot.snapshot_type = SNAPSHOT_HISTORIC_MVCC;
	scan = compat_beginscan(c->rel, &snapshot);
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
		n++;
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	return psprintf(INT64_FORMAT, n);
}

static const struct
{
	const char *name;
	char	   *(*call) (HeapCall *c);
	bool		at;
	bool		new;
	int			option;
}			calls[] = {
	{"insert", call_insert, false, true},
	{"multi_insert", call_multi_insert, false, true},
	{"simple_insert", call_simple_insert, false, true},
	{"catalog_insert", call_catalog_insert, false, true},
	{"update", call_update, true, true},
	{"simple_update", call_simple_update, true, true},
	{"catalog_update", call_catalog_update, true, true},
#ifdef COMPAT_HEAP_OVERWRITES
	{"inplace_update", call_inplace_update, true, true},
#endif
#ifdef COMPAT_HEAP_LOCKS_AND_OVERWRITES
	{"inplace_lock_and_update", call_inplace_lock_and_update, true, true},
#endif
	{"delete", call_delete, true, false},
	{"simple_delete", call_simple_delete, true, false},
	{"catalog_delete", call_catalog_delete, true, false},
	{"lock_key_share", call_lock, true, false, LockTupleKeyShare},
	{"lock_share", call_lock, true, false, LockTupleShare},
	{"lock_no_key_update", call_lock, true, false, LockTupleNoKeyExclusive},
	{"lock_update", call_lock, true, false, LockTupleExclusive},
	{"finish_speculative", call_finish_speculative, true, false},
	{"abort_speculative", call_abort_speculative, true, false},
	{"prune", call_prune, true, false},
	{"fetch", call_fetch, true, false, 0},
	{"fetch_any", call_fetch, true, false, 1},
	{"hot_search", call_hot_search, true, false},
	{"latest_tid", call_latest_tid, true, false},
	{"scan", call_scan, false, false},
	{"getnext", call_getnext, false, false},
	{"catalog_scan", call_catalog_scan, false, false},
	{"index_build", call_index_build, false, false},
	{"note_snapshot", call_note_snapshot, false, false},
	{"forget_snapshot", call_forget_snapshot, false, false},
	{"fetch_noted", call_fetch_noted, true, false},
	{"historic_scan", call_historic_scan, false, false}
};

/* The composite value as a tuple of the table. */
static HeapTuple
copy_row(HeapTupleHeader row, ItemPointer at)
{
	HeapTupleData tuple;
	HeapTuple	copy;

	tuple.t_len = HeapTupleHeaderGetDatumLength(row);
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_tableOid = InvalidOid;
	tuple.t_data = row;
	copy = heap_copytuple(&tuple);
	copy->t_self = *at;
	return copy;
}

Datum
heap_code(PG_FUNCTION_ARGS)
{
	char	   *what = text_to_cstring(PG_GETARG_TEXT_PP(0));
	HeapCall	c = {0};
	char	   *answer = NULL;

	ItemPointerSetInvalid(&c.at);
	if (!PG_ARGISNULL(2))
		c.at = *(ItemPointer) PG_GETARG_POINTER(2);
	if (!PG_ARGISNULL(3))
		c.new = copy_row(PG_GETARG_HEAPTUPLEHEADER(3), &c.at);
	c.rel = relation_open(PG_GETARG_OID(1), RowExclusiveLock);
	for (int i = 0; i < lengthof(calls); i++)
	{
		if (strcmp(calls[i].name, what) != 0)
			continue;
		if ((calls[i].at && PG_ARGISNULL(2)) || (calls[i].new && PG_ARGISNULL(3)))
			elog(ERROR, "\"%s\" needs more arguments", what);
		c.option = calls[i].option;
		answer = calls[i].call(&c);
	}
	if (answer == NULL)
		elog(ERROR, "no function \"%s\"", what);
	relation_close(c.rel, NoLock);
	PG_RETURN_TEXT_P(cstring_to_text(answer));
}
