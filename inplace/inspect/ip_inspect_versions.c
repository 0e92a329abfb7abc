/*-------------------------------------------------------------------------
 * ip_inspect_versions.c
 *	  inplace_versions(): the versions of a row, as an SQL function shows them.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "ip_body.h"
#include "ip_rel.h"
#include "ip_result.h"
#include "ip_salvage.h"
#include "ip_value_read.h"
#include "ip_version.h"
#include "ip_xid.h"

PG_FUNCTION_INFO_V1(inplace_versions);
PGDLLEXPORT Datum inplace_versions(PG_FUNCTION_ARGS);

/*
 * Make the call.  If it raises an error, returns false, with a warning unless
 * quiet.  The call must neither read pages nor hold locks.
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
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg_internal("%s", error->message)));
	}
	PG_END_TRY();
	return result;
}

static void
measure_body(IpVersion *v)
{
	(void) ip_body_length(RelationGetDescr(v->rel), v->hdr, v->body,
						  v->bodylen);
}

static void
apply_undo(IpVersion *v)
{
	(void) ip_version_older(v);
}

/* A TOAST pointer of a table's row, and what is read of its value. */
typedef struct ToBeDescribed
{
	Relation	rel;
	struct varatt_external pointer;
	IpValue		value;
	const char *problem;
} ToBeDescribed;

static void
read_head(void *arg)
{
	ToBeDescribed *d = arg;
	Relation	toast;

	d->problem = "not in the table's TOAST table";
	if (d->pointer.va_toastrelid != d->rel->rd_rel->reltoastrelid)
		return;
	toast = table_open(d->pointer.va_toastrelid, AccessShareLock);
	if (toast->rd_tableam == d->rel->rd_tableam)
		d->problem = ip_value_open(&d->value, toast, d->pointer.va_valueid,
								   d->pointer.va_rawsize - VARHDRSZ, true,
								   NULL) ? NULL : d->value.problem;
	table_close(toast, AccessShareLock);
}

/*
 * Describe a large value.  Its bytes are not read: that of an old version may
 * have been removed.
 */
static char *
describe_value(Relation rel, const struct varlena *pointer)
{
	ToBeDescribed d = {.rel = rel};
	const char *problem;

	VARATT_EXTERNAL_GET_POINTER(d.pointer, pointer);
	problem = ip_salvage_try(read_head, &d);
	if (problem == NULL)
		problem = d.problem;
	if (problem != NULL)
		return psprintf("<TOAST value %u: %s>", d.pointer.va_valueid, problem);
	return psprintf("<TOAST value %u: %u bytes in %u blocks>",
					d.pointer.va_valueid, d.value.head.rawsize,
					Max(d.value.head.nblocks, 1));
}

/* Returns the text of a column's value. */
static char *
value_text(Relation rel, Form_pg_attribute att, Datum value)
{
	Oid			output;
	bool		is_varlena;

	if (att->attlen == -1 && VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(value)))
		return describe_value(rel, (struct varlena *) DatumGetPointer(value));
	getTypeOutputInfo(att->atttypid, &output, &is_varlena);
	return OidOutputFunctionCall(output, value);
}

/* Returns the version as the text of a record: record_out does the quoting. */
static Datum
contents(IpVersion *v)
{
	TupleDesc	desc = RelationGetDescr(v->rel);
	Datum	   *values = palloc(desc->natts * sizeof(Datum));
	bool	   *nulls = palloc(desc->natts * sizeof(bool));
	TupleDesc	text_desc;
	HeapTuple	tuple;
	int			n = 0;

	ip_body_deform(desc, v->hdr, v->body, v->bodylen, desc->natts, false,
				   values, nulls);
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
			values[n] = CStringGetTextDatum(value_text(v->rel, att, values[i]));
		nulls[n++] = nulls[i];
		TupleDescInitEntry(text_desc, n, NameStr(att->attname), TEXTOID, -1, 0);
	}
	CompatFinalizeDesc(text_desc);
	tuple = heap_form_tuple(BlessTupleDesc(text_desc), values, nulls);
	return CStringGetTextDatum(OidOutputFunctionCall(F_RECORD_OUT,
													 HeapTupleGetDatum(tuple)));
}

static const char *
status_text(const IpVersion *v)
{
	static const char *const names[] = {
		[IP_STATUS_MINE] = "mine",[IP_STATUS_RUNNING] = "running",
		[IP_STATUS_COMMITTED] = "committed",[IP_STATUS_ABORTED] = "aborted",
		[IP_STATUS_FORGOTTEN] = "forgotten"
	};

	return IpXidIsFrozen(v->xid) ? "all" :
		names[ip_xid_status(v->xid, v->horizon)];
}

static const char *
kind_text(IpVersion *v)
{
	if (v->state & IP_ROW_INSERTED)
		return "insert";
	if (v->state & IP_ROW_DELETED)
		return "delete";
	return IpXidIsFrozen(v->xid) ? "base" : "update";
}

/* Emit a version's row.  v->rec is loaded, if there is a record. */
static void
emit_version(ReturnSetInfo *rsinfo, IpVersion *v, int n, bool show_contents)
{
	bool		inserted = (v->state & IP_ROW_INSERTED) != 0;
	bool		has_rec = v->rec_loaded;
	bool		has_cid;
	IpResult	r = {.n = 0};

	has_cid = has_rec || (inserted && !(v->hdr & IP_HDR_SPECULATIVE));
	ip_result_put_int(&r, n);
	ip_result_put_xid(&r, v->xid);
	ip_result_put_text(&r, status_text(v));
	ip_result_put_text(&r, kind_text(v));
	ip_result_put_if(&r, has_cid,
					 Int64GetDatum(has_rec ? v->rec.cid : v->ptr.block));
	ip_result_put_tid_if(&r, has_rec, v->ptr.block, v->ptr.off);
	ip_result_put_int(&r, v->bodylen);
	show_contents = show_contents && try_version(v, measure_body, false);
	ip_result_put_if(&r, show_contents,
					 show_contents ? contents(v) : (Datum) 0);
	ip_result_emit(rsinfo, &r);
}

static void
emit_gone(ReturnSetInfo *rsinfo, int n)
{
	IpResult	r = {.n = 0};

	ip_result_put_int(&r, n);
	ip_result_put_text(&r, NULL);
	ip_result_put_text(&r, NULL);
	ip_result_put_text(&r, "gone");
	ip_result_emit(rsinfo, &r);
}

/*
 * Go to the version before.  Undo below a version that everybody sees is not
 * kept carefully: what does not fit there is no damage, but has been removed.
 */
static IpvResult
previous_version(IpVersion *v, IpvResult has_rec)
{
	bool		unneeded = ip_xid_removable(v->rel, v->xid) &&
		ip_version_status(v) == IP_STATUS_COMMITTED;

	if (has_rec != IPV_OK || !unneeded)
		return has_rec != IPV_OK ? has_rec : ip_version_older(v);
	if (!try_version(v, apply_undo, true) ||
		!try_version(v, measure_body, true))
		return IPV_STALE;
	return IPV_OK;
}

static void
emit_versions(ReturnSetInfo *rsinfo, Relation rel, ItemPointer tid)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "inplace version",
												  ALLOCSET_DEFAULT_SIZES);
	bool		show_contents = ip_result_may_show(rel);
	IpVersion  *v = palloc(sizeof(IpVersion));
	IpvResult	result = ip_version_fetch(v, rel, tid);
	int			n = 1;

	while (result == IPV_OK)
	{
		MemoryContext old = MemoryContextSwitchTo(context);
		IpvResult	has_rec;

		CHECK_FOR_INTERRUPTS();
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
	Relation	rel = ip_rel_open_to_inspect(PG_GETARG_OID(0));
	ItemPointer tid = (ItemPointer) PG_GETARG_POINTER(1);
	BlockNumber block;

	CompatInitMaterializedSRF(fcinfo);
	block = ip_result_check_block(rel, ItemPointerGetBlockNumberNoCheck(tid));
	if (block != IP_META_BLOCK)
		emit_versions((ReturnSetInfo *) fcinfo->resultinfo, rel, tid);
	relation_close(rel, AccessShareLock);
	return (Datum) 0;
}
