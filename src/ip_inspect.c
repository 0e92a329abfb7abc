/*-------------------------------------------------------------------------
 * ip_inspect.c
 *	  SQL functions that show what is in the pages of an inplace table.
 *
 * Each looks at a private copy of one page at a time, so nothing here holds a
 * lock while it decodes, and a damaged page does no more than raise an error
 * or a warning.  The functions are for superusers and pg_stat_scan_tables; row
 * contents are shown only to those who may read the whole table anyway.
 *-------------------------------------------------------------------------
 */
#include "ip_compat.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/pg_lsn.h"
#include "utils/rls.h"

#include "ip_lockers.h"
#include "ip_undo.h"
#include "ip_version.h"
#include "ip_xid.h"

PG_FUNCTION_INFO_V1(inplace_page);
PG_FUNCTION_INFO_V1(inplace_rows);
PG_FUNCTION_INFO_V1(inplace_undo_records);
PG_FUNCTION_INFO_V1(inplace_undo_rings);
PG_FUNCTION_INFO_V1(inplace_versions);

PGDLLEXPORT Datum inplace_page(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum inplace_rows(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum inplace_undo_records(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum inplace_undo_rings(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum inplace_versions(PG_FUNCTION_ARGS);

/* ---- tables and pages ------------------------------------------------------------ */

/* May the caller see all rows of the table? */
static bool
may_read(Relation rel)
{
	Oid			relid = RelationGetRelid(rel);

	return pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) == ACLCHECK_OK &&
		check_enable_rls(relid, InvalidOid, true) != RLS_ENABLED;
}

static BlockNumber
check_block(Relation rel, int64 block)
{
	if (block < 0 || block >= RelationGetNumberOfBlocks(rel))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("block " INT64_FORMAT " is out of range for relation \"%s\"",
						block, RelationGetRelationName(rel))));
	return (BlockNumber) block;
}

/* Copy a page; its kind. */
static IpPageKind
copy_page(Relation rel, BlockNumber block, Page page)
{
	Buffer		buffer = ReadBuffer(rel, block);
	PageHeader	ph = (PageHeader) page;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	memcpy(page, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
	if (!PageIsNew(page) &&
		(ph->pd_lower < SizeOfPageHeaderData || ph->pd_lower > ph->pd_upper ||
		 ph->pd_upper > ph->pd_special || ph->pd_special > BLCKSZ))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("header of block %u of relation \"%s\" is corrupted",
						block, RelationGetRelationName(rel))));
	return ip_page_kind(rel, block, page);
}

/* ---- results ----------------------------------------------------------------------- */

#define MAX_COLUMNS		16

/* A result row, filled in from left to right. */
typedef struct ResultRow
{
	Datum		values[MAX_COLUMNS];
	bool		nulls[MAX_COLUMNS];
	int			n;
} ResultRow;

/* The next column, NULL unless "is" is true. */
static void
put_if(ResultRow *r, bool is, Datum value)
{
	Assert(r->n < MAX_COLUMNS);
	r->values[r->n] = is ? value : (Datum) 0;
	r->nulls[r->n++] = !is;
}

static void
put(ResultRow *r, Datum value)
{
	put_if(r, true, value);
}

static void
put_int(ResultRow *r, int32 value)
{
	put(r, Int32GetDatum(value));
}

static void
put_text(ResultRow *r, const char *text)
{
	put_if(r, text != NULL, text ? CStringGetTextDatum(text) : (Datum) 0);
}

/* A transaction id with its epoch; NULL if it says "visible to all" */
static void
put_xid(ResultRow *r, IpXid xid)
{
	put_if(r, !IpXidIsFinal(xid), Int64GetDatum((int64) xid));
}

static void
put_tid_if(ResultRow *r, bool is, BlockNumber block, OffsetNumber off)
{
	ItemPointer tid = palloc(sizeof(ItemPointerData));

	ItemPointerSet(tid, block, off);
	put_if(r, is, PointerGetDatum(tid));
}

/* An undo pointer is a pointer, or a command id. */
static void
put_ptr_if(ResultRow *r, bool is_undo, bool is_cid, IpPtr ptr)
{
	put_tid_if(r, is_undo, ptr.block, ptr.off);
	put_if(r, is_cid, Int64GetDatum(ptr.block));
}

/* All columns that are left are NULL. */
static void
emit(ReturnSetInfo *rsinfo, ResultRow *r)
{
	while (r->n < rsinfo->setDesc->natts)
		put_if(r, false, (Datum) 0);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, r->values, r->nulls);
}

typedef struct FlagName
{
	uint32		flag;
	const char *name;
} FlagName;

static void
put_flags(ResultRow *r, const FlagName *names, int n, uint32 flags)
{
	Datum	   *elems = palloc(n * sizeof(Datum));
	int			nelems = 0;

	for (int i = 0; i < n; i++)
	{
		if (flags & names[i].flag)
			elems[nelems++] = CStringGetTextDatum(names[i].name);
	}
	put(r, PointerGetDatum(construct_array(elems, nelems, TEXTOID, -1, false, TYPALIGN_INT)));
}

static const char *const mode_names[] = {
	[LockTupleKeyShare] = "key share",
	[LockTupleShare] = "share",
	[LockTupleNoKeyExclusive] = "no key update",
	[LockTupleExclusive] = "update"
};

/* ---- inplace_page ---------------------------------------------------------------- */

static void
put_special(ResultRow *r, IpPageKind kind, Page page)
{
	bool		is_data = kind == IP_PAGE_DATA;
	bool		is_undo = kind == IP_PAGE_UNDO;
	bool		has_default;
	IpSpecial	special = {0};

	if (kind != 0)
		memcpy(&special, IpPageGetSpecial(page), sizeof(special));
	has_default = is_data && TransactionIdIsValid(special.u.data.default_xid);
	put_if(r, is_data, Int64GetDatum((int64) special.u.data.xid_base));
	put_if(r, has_default, TransactionIdGetDatum(special.u.data.default_xid));
	put_if(r, has_default, Int64GetDatum(special.u.data.default_cid));
	put_xid(r, is_undo ? special.u.undo.newest_xid : IP_XID_NONE);
	put_if(r, is_undo, Int32GetDatum(special.u.undo.slot));
	put_if(r, is_undo, Int64GetDatum(special.u.undo.next));
	put_if(r, is_undo, BoolGetDatum((special.u.undo.flags & IP_UNDO_CURRENT) != 0));
}

Datum
inplace_page(PG_FUNCTION_ARGS)
{
	static const char *const kinds[] = {"new", "meta", "data", "undo", "free"};
	Relation	rel = ip_open_to_inspect(PG_GETARG_OID(0));
	PGAlignedBlock page;
	PageHeader	ph = (PageHeader) page.data;
	IpPageKind	kind;
	TupleDesc	desc;
	ResultRow	r = {.n = 0};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	kind = copy_page(rel, check_block(rel, PG_GETARG_INT64(1)), page.data);
	put_text(&r, kinds[kind]);
	put(&r, LSNGetDatum(PageGetLSN(page.data)));
	put_int(&r, ph->pd_lower);
	put_int(&r, ph->pd_upper);
	put_int(&r, ph->pd_special);
	put_int(&r, kind == 0 ? 0 : ip_page_free(page.data));
	put_int(&r, kind == IP_PAGE_DATA || kind == IP_PAGE_UNDO ?
			PageGetMaxOffsetNumber(page.data) : 0);
	put_special(&r, kind, page.data);
	relation_close(rel, AccessShareLock);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), r.values, r.nulls)));
}

/* ---- inplace_rows ------------------------------------------------------------------ */

/* hdr's flags are above the bits of the state */
#define HDR_SHIFT	8

static const FlagName row_flags[] = {
	{IP_ROW_VERSION, "version"},
	{IP_ROW_DEFAULT, "default"},
	{IP_ROW_INSERTED, "inserted"},
	{IP_ROW_DELETED, "deleted"},
	{IP_ROW_LOCKED, "locked"},
	{IP_ROW_OVERLAID, "overlaid"},
	{IP_ROW_MOVED, "moved"},
	{IP_HDR_HASNULL << HDR_SHIFT, "hasnull"},
	{IP_HDR_HASEXTERNAL << HDR_SHIFT, "hasexternal"},
	{IP_HDR_SPECULATIVE << HDR_SHIFT, "speculative"}
};

static Datum
bytea_datum(const uint8 *data, uint32 len)
{
	bytea	   *result = palloc(VARHDRSZ + len);

	SET_VARSIZE(result, VARHDRSZ + len);
	memcpy(VARDATA(result), data, len);
	return PointerGetDatum(result);
}

/* What is behind a normal item pointer. */
static void
put_row(ResultRow *r, Page page, ItemId lp, const IpRow *row, bool show_data)
{
	uint8		state = ip_item_state(page, lp);
	bool		is_cid = (row->state & (IP_ROW_INSERTED | IP_ROW_LOCKED)) == IP_ROW_INSERTED;
	uint32		stored = row->bodylen;

	if (state & IP_ROW_OVERLAID)
		stored -= IP_VERSION_BLOCK_SZ;
	put_int(r, row->hdr & IP_HDR_NATTS_MASK);
	put_flags(r, row_flags, lengthof(row_flags),
			  state | ((uint32) (row->hdr & ~IP_HDR_NATTS_MASK) << HDR_SHIFT));
	put_xid(r, row->xid);
	/* a speculative row has its token there */
	put_ptr_if(r, (state & IP_ROW_VERSION) && !is_cid,
			   is_cid && !(row->hdr & IP_HDR_SPECULATIVE), row->ptr);
	put_int(r, row->bodylen);
	put_if(r, show_data, show_data ? bytea_datum(row->body, stored) : (Datum) 0);
}

static void
emit_row(ReturnSetInfo *rsinfo, BlockNumber block, Page page, OffsetNumber off, bool show_data)
{
	static const char *const lp_states[] = {
		[LP_UNUSED] = "unused", [LP_NORMAL] = "heap", [LP_REDIRECT] = "normal", [LP_DEAD] = "dead"
	};
	ItemId		lp = PageGetItemId(page, off);
	ResultRow	r = {.n = 0};
	IpRow		row;
	const char *problem;

	put_int(&r, off);
	put_text(&r, lp_states[lp->lp_flags]);
	put_int(&r, ItemIdGetLength(lp));
	if (ip_item_is_used(lp))
	{
		problem = ip_row_decode(page, off, &row);
		if (problem)
			ereport(WARNING,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("row (%u,%u) is corrupted: %s", block, off, problem)));
		else
			put_row(&r, page, lp, &row, show_data);
	}
	emit(rsinfo, &r);
}

Datum
inplace_rows(PG_FUNCTION_ARGS)
{
	Relation	rel = ip_open_to_inspect(PG_GETARG_OID(0));
	BlockNumber block = check_block(rel, PG_GETARG_INT64(1));
	bool		show_data = may_read(rel);
	PGAlignedBlock page;

	InitMaterializedSRF(fcinfo, 0);
	if (copy_page(rel, block, page.data) == IP_PAGE_DATA)
	{
		OffsetNumber max = PageGetMaxOffsetNumber(page.data);

		for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
			emit_row((ReturnSetInfo *) fcinfo->resultinfo, block, page.data, off, show_data);
	}
	relation_close(rel, AccessShareLock);
	return (Datum) 0;
}

/* ---- inplace_undo_records -------------------------------------------------------- */

static const FlagName record_flags[] = {
	{IP_REC_PREV, "prev"},
	{IP_REC_PREV_INSERTED, "prev_inserted"},
	{IP_REC_SAVED, "saved"},
	{IP_REC_HDR, "hdr"},
	{IP_REC_FORWARD, "forward"},
	{IP_REC_KEYS, "keys"},
	{IP_REC_MULTI, "multi"},
	{IP_REC_PARTITION, "partition"}
};

static void
put_record(ResultRow *r, const IpUndoRec *rec)
{
	static const char *const kinds[] = {
		[IP_UNDO_LOCK] = "lock", [IP_UNDO_UPDATE] = "update", [IP_UNDO_DELETE] = "delete"
	};
	bool		has_prev = (rec->flags & IP_REC_PREV) != 0;
	bool		prev_inserted = (rec->flags & IP_REC_PREV_INSERTED) != 0;
	bool		is_lock = rec->kind == IP_UNDO_LOCK;

	put_text(r, kinds[rec->kind]);
	put_flags(r, record_flags, lengthof(record_flags), rec->flags);
	put_xid(r, rec->xid);
	put_tid_if(r, true, ItemPointerGetBlockNumberNoCheck(&rec->row),
			   ItemPointerGetOffsetNumberNoCheck(&rec->row));
	put(r, Int64GetDatum(rec->cid));
	put_xid(r, rec->prev_xid);
	put_ptr_if(r, has_prev && !prev_inserted, has_prev && prev_inserted, rec->prev_ptr);
	put_tid_if(r, (rec->flags & IP_REC_FORWARD) != 0,
			   ItemPointerGetBlockNumberNoCheck(&rec->forward),
			   ItemPointerGetOffsetNumberNoCheck(&rec->forward));
	put_if(r, is_lock, TransactionIdGetDatum(is_lock ? rec->locker : 0));
	put_text(r, is_lock ? mode_names[rec->mode] : NULL);
	put_int(r, rec->deltalen);
}

static void
emit_record(ReturnSetInfo *rsinfo, BlockNumber block, Page page, OffsetNumber off)
{
	PageHeader	ph = (PageHeader) page;
	ItemId		lp = PageGetItemId(page, off);
	uint32		start = ip_item_start(lp);
	uint32		len = ItemIdGetLength(lp);
	const char *problem;
	ResultRow	r = {.n = 0};
	IpUndoRec	rec;

	put_int(&r, off);
	if (!ip_item_is_ours(lp) || start < ph->pd_upper || start + len > ph->pd_special)
		problem = "item reaches outside of the page's item space";
	else
		problem = ip_undo_decode(block, ip_undo_xid_base(IpPageGetSpecial(page)),
								 (uint8 *) page + start, len, &rec);
	if (problem)
		ereport(WARNING,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("undo record (%u,%u) is corrupted: %s", block, off, problem)));
	else
		put_record(&r, &rec);
	emit(rsinfo, &r);
}

Datum
inplace_undo_records(PG_FUNCTION_ARGS)
{
	Relation	rel = ip_open_to_inspect(PG_GETARG_OID(0));
	BlockNumber block = check_block(rel, PG_GETARG_INT64(1));
	PGAlignedBlock page;

	InitMaterializedSRF(fcinfo, 0);
	if (copy_page(rel, block, page.data) == IP_PAGE_UNDO)
	{
		OffsetNumber max = PageGetMaxOffsetNumber(page.data);

		for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
			emit_record((ReturnSetInfo *) fcinfo->resultinfo, block, page.data, off);
	}
	relation_close(rel, AccessShareLock);
	return (Datum) 0;
}

/* ---- inplace_undo_rings ------------------------------------------------------------ */

typedef struct RingStats
{
	uint32		pages;
	int64		records;
	int64		bytes;
	IpXid		newest;
	IpXid		oldest_page;
	int64		removable;
} RingStats;

/* Add a page; the next one, or InvalidBlockNumber if this one is not the slot's. */
static BlockNumber
add_ring_page(Relation rel, BlockNumber block, uint16 slot, RingStats *stats)
{
	PGAlignedBlock page;
	PageHeader	ph = (PageHeader) page.data;
	IpSpecial	special;

	if (block == IP_META_BLOCK || block >= RelationGetNumberOfBlocks(rel) ||
		copy_page(rel, block, page.data) != IP_PAGE_UNDO)
		return InvalidBlockNumber;
	special = *IpPageGetSpecial(page.data);
	if (special.u.undo.slot != slot)
		return InvalidBlockNumber;
	stats->pages++;
	stats->records += PageGetMaxOffsetNumber(page.data);
	stats->bytes += ph->pd_special - ph->pd_upper;
	stats->newest = Max(stats->newest, special.u.undo.newest_xid);
	/* the page behind the current one, or the current one if it is alone */
	if (stats->pages <= 2)
		stats->oldest_page = special.u.undo.newest_xid;
	if (!(special.u.undo.flags & IP_UNDO_CURRENT) &&
		ip_xid_removable(rel, special.u.undo.newest_xid))
		stats->removable++;
	return special.u.undo.next;
}

/* Pages that are added meanwhile may be counted or not. */
static void
emit_ring(ReturnSetInfo *rsinfo, Relation rel, uint16 slot, const IpMetaSlot *ms)
{
	BlockNumber block = ms->current;
	RingStats	stats = {0};
	ResultRow	r = {.n = 0};

	do
	{
		CHECK_FOR_INTERRUPTS();
		block = add_ring_page(rel, block, slot, &stats);
	} while (block != InvalidBlockNumber && block != ms->current && stats.pages < ms->npages);
	if (block == InvalidBlockNumber || block != ms->current)
		ereport(DEBUG1,
				(errmsg("ring %u of relation \"%s\" has changed, or is damaged",
						slot, RelationGetRelationName(rel))));
	put_int(&r, slot);
	put(&r, Int64GetDatum(ms->current));
	put(&r, Int64GetDatum(stats.pages));
	put(&r, Int64GetDatum(stats.records));
	put(&r, Int64GetDatum(stats.bytes));
	put_xid(&r, stats.newest);
	put_xid(&r, stats.oldest_page);
	put(&r, Int64GetDatum(stats.removable));
	emit(rsinfo, &r);
}

Datum
inplace_undo_rings(PG_FUNCTION_ARGS)
{
	Relation	rel = ip_open_to_inspect(PG_GETARG_OID(0));
	PGAlignedBlock page;
	IpPageKind	kind = 0;

	InitMaterializedSRF(fcinfo, 0);
	if (RelationGetNumberOfBlocks(rel) > 0)
		kind = copy_page(rel, IP_META_BLOCK, page.data);
	if (kind != 0 && kind != IP_PAGE_META)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("block %u of relation \"%s\" is not a metapage",
						IP_META_BLOCK, RelationGetRelationName(rel))));
	for (uint16 slot = 0; kind == IP_PAGE_META && slot < IP_UNDO_SLOTS; slot++)
	{
		const IpMetaSlot *ms = &IpPageGetMeta(page.data)->slots[slot];

		if (ms->current != InvalidBlockNumber)
			emit_ring((ReturnSetInfo *) fcinfo->resultinfo, rel, slot, ms);
	}
	relation_close(rel, AccessShareLock);
	return (Datum) 0;
}

/* ---- inplace_versions -------------------------------------------------------------- */

/*
 * Errors of a call that neither reads pages nor holds locks become false, with
 * a warning unless quiet.
 */
static bool
try_version(IpVersion *v, void (*call) (IpVersion *v), bool quiet)
{
	MemoryContext context = CurrentMemoryContext;
	volatile bool result = false;

	PG_TRY();
	{
		call(v);
		result = true;
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		ereport(quiet ? DEBUG1 : WARNING,
				(errcode(ERRCODE_DATA_CORRUPTED), errmsg_internal("%s", error->message)));
	}
	PG_END_TRY();
	return result;
}

static void
measure_body(IpVersion *v)
{
	(void) ip_body_length(RelationGetDescr(v->rel), v->hdr, v->body, v->bodylen);
}

static void
apply_undo(IpVersion *v)
{
	(void) ip_version_older(v);
}

/*
 * Text of a column's value.  TOAST pointers are not followed: an old version's
 * may lead nowhere any more.
 */
static char *
value_text(Form_pg_attribute att, Datum value)
{
	Oid			output;
	bool		is_varlena;

	if (att->attlen == -1 && VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(value)))
	{
		struct varatt_external toast;

		memcpy(&toast, VARDATA_EXTERNAL(DatumGetPointer(value)), sizeof(toast));
		return psprintf("<TOAST value %u>", toast.va_valueid);
	}
	getTypeOutputInfo(att->atttypid, &output, &is_varlena);
	return OidOutputFunctionCall(output, value);
}

/* The version as the text of a record: record_out does the quoting. */
static Datum
contents(IpVersion *v)
{
	TupleDesc	desc = RelationGetDescr(v->rel);
	Datum	   *values = palloc(desc->natts * sizeof(Datum));
	bool	   *nulls = palloc(desc->natts * sizeof(bool));
	TupleDesc	text_desc;
	HeapTuple	tuple;
	int			n = 0;

	ip_body_deform(desc, v->hdr, v->body, v->bodylen, values, nulls);
	for (int i = 0; i < desc->natts; i++)
	{
		if (!TupleDescAttr(desc, i)->attisdropped)
			n++;
	}
	text_desc = CreateTemplateTupleDesc(n);
	n = 0;
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped)
			continue;
		if (!nulls[i])
			values[n] = CStringGetTextDatum(value_text(att, values[i]));
		nulls[n++] = nulls[i];
		TupleDescInitEntry(text_desc, n, NameStr(att->attname), TEXTOID, -1, 0);
	}
	tuple = heap_form_tuple(BlessTupleDesc(text_desc), values, nulls);
	return CStringGetTextDatum(OidOutputFunctionCall(F_RECORD_OUT, HeapTupleGetDatum(tuple)));
}

static const char *
status_text(const IpVersion *v)
{
	static const char *const names[] = {
		[IP_XID_MINE] = "mine", [IP_XID_RUNNING] = "running",
		[IP_XID_COMMITTED] = "committed", [IP_XID_ABORTED] = "aborted",
		[IP_XID_FORGOTTEN] = "forgotten"
	};

	return IpXidIsFinal(v->xid) ? "all" : names[ip_xid_status(v->xid, v->horizon)];
}

static const char *
kind_text(IpVersion *v)
{
	if (v->state & IP_ROW_INSERTED)
		return "insert";
	if (v->state & IP_ROW_DELETED)
		return "delete";
	return IpXidIsFinal(v->xid) ? "base" : "update";
}

/* v->rec is loaded, if there is one. */
static void
emit_version(ReturnSetInfo *rsinfo, IpVersion *v, int n, bool show_contents)
{
	bool		inserted = (v->state & IP_ROW_INSERTED) != 0;
	bool		has_rec = v->rec_loaded;
	bool		has_cid;
	bool		has_lock;
	ResultRow	r = {.n = 0};

	has_cid = has_rec || (inserted && !(v->hdr & IP_HDR_SPECULATIVE) &&
						  v->ptr.block != InvalidBlockNumber);
	has_lock = n == 1 && v->has_lock;
	put_int(&r, n);
	put_xid(&r, v->xid);
	put_text(&r, status_text(v));
	put_text(&r, kind_text(v));
	put_if(&r, has_cid, Int64GetDatum(has_rec ? v->rec.cid : v->ptr.block));
	put_tid_if(&r, has_rec, v->ptr.block, v->ptr.off);
	put_if(&r, has_lock, TransactionIdGetDatum(has_lock ? v->lock.locker : 0));
	put_text(&r, has_lock ? mode_names[v->lock.mode] : NULL);
	put_int(&r, v->bodylen);
	show_contents = show_contents && try_version(v, measure_body, false);
	put_if(&r, show_contents, show_contents ? contents(v) : (Datum) 0);
	emit(rsinfo, &r);
}

static void
emit_gone(ReturnSetInfo *rsinfo, int n)
{
	ResultRow	r = {.n = 0};

	put_int(&r, n);
	put_text(&r, NULL);
	put_text(&r, NULL);
	put_text(&r, "gone");
	emit(rsinfo, &r);
}

/*
 * Go to the version before.  Below one that everybody sees undo is not kept
 * carefully: what does not fit there is no damage, but gone.
 */
static IpvResult
previous_version(IpVersion *v, IpvResult has_rec)
{
	bool		unneeded = ip_xid_removable(v->rel, v->xid) &&
		ip_version_status(v) == IP_XID_COMMITTED;

	if (has_rec != IPV_OK || !unneeded)
		return has_rec != IPV_OK ? has_rec : ip_version_older(v);
	if (!try_version(v, apply_undo, true) || !try_version(v, measure_body, true))
		return IPV_STALE;
	return IPV_OK;
}

static void
emit_versions(ReturnSetInfo *rsinfo, Relation rel, ItemPointer tid)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "inplace version",
												  ALLOCSET_DEFAULT_SIZES);
	bool		show_contents = may_read(rel);
	IpVersion  *v = palloc(sizeof(IpVersion));
	IpvResult	result = ip_version_fetch(v, rel, tid);
	int			n = 1;

	while (result == IPV_OK)
	{
		MemoryContext old = MemoryContextSwitchTo(context);
		IpvResult	has_rec;

		CHECK_FOR_INTERRUPTS();
		ip_version_unlock(v);
		has_rec = ip_version_load_rec(v);
		emit_version(rsinfo, v, n++, show_contents);
		result = previous_version(v, has_rec);
		MemoryContextSwitchTo(old);
		MemoryContextReset(context);
	}
	if (result == IPV_STALE)
		emit_gone(rsinfo, n);
}

Datum
inplace_versions(PG_FUNCTION_ARGS)
{
	Relation	rel = ip_open_to_inspect(PG_GETARG_OID(0));
	ItemPointer tid = (ItemPointer) PG_GETARG_POINTER(1);

	InitMaterializedSRF(fcinfo, 0);
	if (check_block(rel, ItemPointerGetBlockNumberNoCheck(tid)) != IP_META_BLOCK)
		emit_versions((ReturnSetInfo *) fcinfo->resultinfo, rel, tid);
	relation_close(rel, AccessShareLock);
	return (Datum) 0;
}
