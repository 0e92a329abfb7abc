/*-------------------------------------------------------------------------
 * ip_check_value.c
 *	  inplace_check(): large values; inplace_toast_stats().
 *
 * All that the caller's snapshot sees is checked: each TOAST pointer must lead
 * to a sound value, and each row of the TOAST table must belong to a value.
 * Nothing that the snapshot sees is removed meanwhile.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/detoast.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/toast_compression.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "ip_check_value.h"
#include "ip_rel.h"
#include "ip_result.h"
#include "ip_salvage.h"
#include "ip_scan.h"
#include "ip_value_read.h"

PG_FUNCTION_INFO_V1(inplace_toast_stats);
PGDLLEXPORT Datum inplace_toast_stats(PG_FUNCTION_ARGS);

typedef struct ValueCheck
{
	IpCheck    *c;
	Relation	toast;
	IpValueRows rows;			/* rows of sound values */
	bool		complete;		/* all values are sound */
	MemoryContext context;
} ValueCheck;

static void
begin_rows(IpValueRows *rows)
{
	rows->n = 0;
	rows->size = 1024;
	rows->address = palloc(rows->size * sizeof(uint32));
}

static void
sort_rows(IpValueRows *rows)
{
	qsort(rows->address, rows->n, sizeof(uint32), oid_cmp);
}

static bool
has_row(const IpValueRows *rows, uint32 address)
{
	return bsearch(&address, rows->address, rows->n, sizeof(uint32),
				   oid_cmp) != NULL;
}

/* Check the value of a column of a row. */
static void
check_value(ValueCheck *check, ItemPointer tid, AttrNumber attnum,
			const struct varlena *pointer)
{
	MemoryContext old = MemoryContextSwitchTo(check->context);
	struct varatt_external external;
	IpValue		value;
	bool		ok;

	VARATT_EXTERNAL_GET_POINTER(external, pointer);
	value.problem = "it is in another TOAST table, or compressed as a whole";
	value.bad_row = external.va_valueid;
	ok = external.va_toastrelid == RelationGetRelid(check->toast) &&
		!VARATT_EXTERNAL_IS_COMPRESSED(external) &&
		ip_value_open(&value, check->toast, external.va_valueid,
					  external.va_rawsize - VARHDRSZ, true, &check->rows);
	for (uint32 i = 0; ok && i < Max(value.head.nblocks, 1); i++)
		ok = ip_value_block(&value, i) != NULL;
	if (!ok)
	{
		check->complete = false;
		ip_check_report(check->c, ItemPointerGetBlockNumber(tid),
						ItemPointerGetOffsetNumber(tid),
						ip_check_fail(check->c, "TOAST value %u of column %d: row (%u,%u): %s",
									  external.va_valueid, attnum,
									  IpValueAddressBlock(value.bad_row),
									  IpValueAddressOffset(value.bad_row),
									  value.problem));
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(check->context);
}

/* Check the values of all rows. */
static void
check_table(void *arg)
{
	ValueCheck *check = arg;
	Relation	rel = check->c->rel;
	TupleDesc	desc = RelationGetDescr(rel);
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	TableScanDesc scan = table_beginscan_strat(rel, GetActiveSnapshot(), 0,
											   NULL, true, false);

	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		CHECK_FOR_INTERRUPTS();
		slot_getallattrs(slot);
		for (int i = 0; i < desc->natts; i++)
		{
			struct varlena *value =
				(struct varlena *) DatumGetPointer(slot->tts_values[i]);

			/* a dropped column's values are there until the row changes */
			if (TupleDescAttr(desc, i)->attlen == -1 && !slot->tts_isnull[i] &&
				VARATT_IS_EXTERNAL_ONDISK(value))
				check_value(check, &slot->tts_tid, i + 1, value);
		}
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
}

/* Look for rows of the TOAST table that no value has. */
static void
check_owners(void *arg)
{
	ValueCheck *check = arg;
	TupleTableSlot *slot = table_slot_create(check->toast, NULL);
	TableScanDesc scan = table_beginscan_strat(check->toast,
											   GetActiveSnapshot(), 0, NULL,
											   true, false);

	sort_rows(&check->rows);
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		BlockNumber block = ItemPointerGetBlockNumber(&slot->tts_tid);
		OffsetNumber off = ItemPointerGetOffsetNumber(&slot->tts_tid);

		CHECK_FOR_INTERRUPTS();
		if (off <= IP_VALUE_MAX_OFFSET &&
			has_row(&check->rows, IpValueAddress(block, off)))
			continue;
		ip_check_report(check->c, block, off,
						ip_check_fail(check->c, "row (%u,%u) of the TOAST table belongs to no value",
									  block, off));
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
}

void
ip_check_values(IpCheck *c)
{
	ValueCheck	check = {.c = c,.complete = true};

	if (!OidIsValid(c->rel->rd_rel->reltoastrelid) || !ActiveSnapshotSet())
		return;
	check.toast = table_open(c->rel->rd_rel->reltoastrelid, AccessShareLock);
	check.context = AllocSetContextCreate(CurrentMemoryContext, "inplace check of a value",
										  ALLOCSET_DEFAULT_SIZES);
	begin_rows(&check.rows);
	/* damage of pages is found otherwise */
	if (check.toast->rd_tableam == c->rel->rd_tableam &&
		ip_salvage_try(check_table, &check) == NULL && check.complete)
		(void) ip_salvage_try(check_owners, &check);
	pfree(check.rows.address);
	MemoryContextDelete(check.context);
	table_close(check.toast, AccessShareLock);
}

/* ---- inplace_toast_stats() ----------------------------------------------- */

typedef struct ValueStats
{
	int64		values;
	int64		blocks;			/* in heads, too */
	int64		raw;
	int64		stored;
	int64		plain;
	int64		pglz;
	int64		lz4;
	int64		old_values;
	int64		old;			/* bytes that only old values have */
	int64		shared;			/* bytes that old values have, too */
} ValueStats;

/* The head on which v stands; it cannot go, as nothing prunes meanwhile. */
static void
count_value(ValueStats *stats, Relation toast, uint32 id, bool is_old,
			IpValueRows *seen, const IpValueRows *current)
{
	IpValue		value;
	IpValueImage image;

	if (!ip_value_open(&value, toast, id, 0, true, NULL))
		return;
	if (is_old)
		stats->old_values++;
	else
	{
		stats->values++;
		stats->raw += value.head.rawsize;
	}
	for (uint32 i = 0; i < Max(value.head.nblocks, 1); i++)
	{
		uint32		address = value.blocks == NULL ? id :
			value.blocks[i].address;
		uint32		info;

		CHECK_FOR_INTERRUPTS();
		if (!ip_value_image(&value, i, &image))
			continue;
		if (is_old)
		{
			if (has_row(current, address))
				stats->shared += image.len;
			else
				stats->old += image.len;
			continue;
		}
		ip_value_note_row(seen, address);
		stats->blocks++;
		stats->stored += image.len;
		if (!image.compressed)
			stats->plain += image.len;
		else
		{
			memcpy(&info, image.bytes, sizeof(info));
			if (info >> VARLENA_EXTSIZE_BITS == TOAST_LZ4_COMPRESSION_ID)
				stats->lz4 += image.len;
			else
				stats->pglz += image.len;
		}
	}
}

/* Count the values that are current, or those that are not. */
static void
count_values(ValueStats *stats, Relation toast, bool old, IpValueRows *current)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "inplace toast stats",
												  ALLOCSET_DEFAULT_SIZES);
	IpScan	   *scan = (IpScan *) table_beginscan_strat(toast, SnapshotAny, 0,
														NULL, true, false);

	while (ip_scan_next_row(scan))
	{
		IpVersion  *v = &scan->v;
		MemoryContext caller;
		IpValueRow	row;
		bool		is_old;

		CHECK_FOR_INTERRUPTS();
		if (ip_value_read_row(v->hdr, v->body, v->bodylen, &row) != NULL ||
			(row.kind & IP_VALUE_KIND_MASK) != IP_VALUE_HEAD)
			continue;
		is_old = ip_version_status(v) == IP_STATUS_ABORTED ?
			!(v->state & IP_ROW_DELETED) : (v->state & IP_ROW_DELETED) != 0;
		if (is_old != old)
			continue;
		caller = MemoryContextSwitchTo(context);
		count_value(stats, toast,
					IpValueAddress(ItemPointerGetBlockNumber(&v->tid),
								   ItemPointerGetOffsetNumber(&v->tid)),
					is_old, current, current);
		MemoryContextSwitchTo(caller);
		MemoryContextReset(context);
	}
	table_endscan(&scan->rs_base);
	MemoryContextDelete(context);
}

Datum
inplace_toast_stats(PG_FUNCTION_ARGS)
{
	Relation	rel = ip_rel_open_to_inspect(PG_GETARG_OID(0));
	ValueStats	stats = {0};
	IpResult	r = {0};
	Relation	toast;
	IpValueRows current;

	CompatInitMaterializedSRF(fcinfo);
	if (OidIsValid(rel->rd_rel->reltoastrelid))
	{
		toast = table_open(rel->rd_rel->reltoastrelid, AccessShareLock);
		if (toast->rd_tableam == rel->rd_tableam)
		{
			begin_rows(&current);
			count_values(&stats, toast, false, &current);
			sort_rows(&current);
			count_values(&stats, toast, true, &current);
		}
		table_close(toast, AccessShareLock);
	}
	ip_result_put(&r, Int64GetDatum(stats.values));
	ip_result_put(&r, Int64GetDatum(stats.blocks));
	ip_result_put(&r, Int64GetDatum(stats.raw));
	ip_result_put(&r, Int64GetDatum(stats.stored));
	ip_result_put(&r, Int64GetDatum(stats.plain));
	ip_result_put(&r, Int64GetDatum(stats.pglz));
	ip_result_put(&r, Int64GetDatum(stats.lz4));
	ip_result_put(&r, Int64GetDatum(stats.shared));
	ip_result_put(&r, Int64GetDatum(stats.old_values));
	ip_result_put(&r, Int64GetDatum(stats.old));
	ip_result_emit((ReturnSetInfo *) fcinfo->resultinfo, &r);
	relation_close(rel, AccessShareLock);
	return (Datum) 0;
}
