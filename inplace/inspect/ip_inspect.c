/*-------------------------------------------------------------------------
 * ip_inspect.c
 *	  SQL functions that show what is in the pages of an inplace table.
 *
 * Each function decodes a private copy of one page at a time, so it holds no
 * lock meanwhile, and a damaged page can only cause an error or a warning.  The
 * functions are for superusers and pg_stat_scan_tables; row contents are shown
 * only to users that may read the whole table anyway.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

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

#include "ip_lockset_use.h"
#include "ip_moves.h"
#include "ip_page.h"
#include "ip_page_check.h"
#include "ip_rel.h"
#include "ip_result.h"
#include "ip_state.h"
#include "ip_undo.h"
#include "ip_value.h"
#include "ip_version.h"
#include "ip_xid.h"

PG_FUNCTION_INFO_V1(inplace_page);
PG_FUNCTION_INFO_V1(inplace_rows);
PG_FUNCTION_INFO_V1(inplace_undo_records);
PG_FUNCTION_INFO_V1(inplace_undo_rings);
PG_FUNCTION_INFO_V1(inplace_locks);

PGDLLEXPORT Datum inplace_page(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum inplace_rows(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum inplace_undo_records(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum inplace_undo_rings(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum inplace_locks(PG_FUNCTION_ARGS);

/* ---- tables and pages -------------------------------------------------- */

/* Copy a page.  Returns its kind. */
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

/* ---- inplace_page ------------------------------------------------------ */

static void
put_special(IpResult *r, IpPageKind kind, Page page)
{
	bool		is_data = kind == IP_PAGE_DATA;
	bool		is_undo = kind == IP_PAGE_UNDO;
	bool		has_default;
	bool		has_next;
	IpSpecial	special = {0};

	if (kind != 0)
		memcpy(&special, IpPageGetSpecial(page), sizeof(special));
	has_default = is_data && TransactionIdIsValid(special.u.data.default_xid);
	has_next = is_undo ||
		((kind == IP_PAGE_LOCK || kind == IP_PAGE_META) &&
		 special.u.lock.next != 0);
	ip_result_put_if(r, is_data,
					 Int64GetDatum((int64) ip_data_xid_base(&special)));
	ip_result_put_if(r, has_default,
					 TransactionIdGetDatum(special.u.data.default_xid));
	ip_result_put_if(r, has_default, Int64GetDatum(special.u.data.default_cid));
	ip_result_put_xid(r, is_undo ? special.u.undo.newest_xid : IP_XID_NONE);
	ip_result_put_if(r, is_undo, Int32GetDatum(special.u.undo.slot));
	ip_result_put_if(r, has_next,
					 Int64GetDatum(is_undo ? special.u.undo.next :
								   special.u.lock.next));
	ip_result_put_if(r, is_undo,
					 BoolGetDatum((special.u.undo.flags & IP_UNDO_CURRENT) !=
								  0));
	ip_result_put_if(r, is_data && special.u.data.lock_page != 0,
					 Int64GetDatum(special.u.data.lock_page));
}

Datum
inplace_page(PG_FUNCTION_ARGS)
{
	static const char *const kinds[] = {"new", "meta", "data", "undo", "free", "lock"};
	Relation	rel = ip_rel_open_to_inspect(PG_GETARG_OID(0));
	PGAlignedBlock page;
	PageHeader	ph = (PageHeader) page.data;
	IpPageKind	kind;
	TupleDesc	desc;
	IpResult	r = {.n = 0};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	kind = copy_page(rel, ip_result_check_block(rel, PG_GETARG_INT64(1)),
					 page.data);
	ip_result_put_text(&r, kinds[kind]);
	ip_result_put(&r, LSNGetDatum(PageGetLSN(page.data)));
	ip_result_put_int(&r, ph->pd_lower);
	ip_result_put_int(&r, ph->pd_upper);
	ip_result_put_int(&r, ph->pd_special);
	ip_result_put_int(&r, kind == 0 ? 0 : ip_page_free(page.data));
	ip_result_put_int(&r, kind == IP_PAGE_DATA || kind == IP_PAGE_UNDO ?
					  PageGetMaxOffsetNumber(page.data) : 0);
	put_special(&r, kind, page.data);
	relation_close(rel, AccessShareLock);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc),
													  r.values, r.nulls)));
}

/* ---- inplace_rows ------------------------------------------------------ */

/* hdr's flags are above the bits of the state */
#define HDR_SHIFT	8
#define VALUE_SHIFT	24

static const IpFlagName row_flags[] = {
	{IP_ROW_VERSION, "version"},
	{IP_ROW_DEFAULT, "default"},
	{IP_ROW_INSERTED, "inserted"},
	{IP_ROW_DELETED, "deleted"},
	{IP_ROW_OVERLAID, "overlaid"},
	{IP_ROW_MOVED, "moved"},
	{IP_ROW_CHANGED, "changed"},
	{IP_HDR_HASNULL << HDR_SHIFT, "hasnull"},
	{IP_HDR_HASEXTERNAL << HDR_SHIFT, "hasexternal"},
	{IP_HDR_SPECULATIVE << HDR_SHIFT, "speculative"},
	/* of a TOAST table's rows */
	{1 << (VALUE_SHIFT + IP_VALUE_HEAD), "head"},
	{1 << (VALUE_SHIFT + IP_VALUE_BLOCK), "block"},
	{1 << (VALUE_SHIFT + IP_VALUE_MORE), "more"},
	{IP_VALUE_COMPRESSED << VALUE_SHIFT, "compressed"}
};

/* Returns the flags of a TOAST table's row. */
static uint32
value_flags(const IpRow *row)
{
	IpValueRow	value;
	uint8		kind;

	if (ip_value_read_row(row->hdr, row->body, row->bodylen, &value) != NULL)
		return 0;
	kind = value.kind & IP_VALUE_KIND_MASK;
	return ((kind <= IP_VALUE_MORE ? 1 << kind : 0) |
			(value.kind & IP_VALUE_COMPRESSED)) << VALUE_SHIFT;
}

static Datum
bytea_datum(const uint8 *data, uint32 len)
{
	bytea	   *result = palloc(VARHDRSZ + len);

	SET_VARSIZE(result, VARHDRSZ + len);
	memcpy(VARDATA(result), data, len);
	return PointerGetDatum(result);
}

/* Put the columns of a row that a normal line pointer leads to. */
static void
put_row(IpResult *r, Relation rel, Page page, ItemId lp, const IpRow *row,
		bool show_data)
{
	uint8		state = ip_item_state(page, lp);
	bool		is_cid = (row->state & IP_ROW_INSERTED) != 0;
	uint32		flags = state |
		(row->hdr & ~IP_HDR_NATTS_MASK) << HDR_SHIFT;
	uint32		stored = row->bodylen;

	if (state & IP_ROW_OVERLAID)
		stored -= IP_VERSION_BLOCK_SZ;
	else if (rel->rd_rel->relkind == RELKIND_TOASTVALUE)
		flags |= value_flags(row);
	ip_result_put_int(r, row->hdr & IP_HDR_NATTS_MASK);
	ip_result_put_flags(r, row_flags, lengthof(row_flags), flags);
	ip_result_put_xid(r, row->xid);
	/* a speculative row has its token instead of a command id */
	ip_result_put_ptr_if(r, (state & IP_ROW_VERSION) && !is_cid,
						 is_cid && !(row->hdr & IP_HDR_SPECULATIVE), row->ptr);
	ip_result_put_int(r, row->bodylen);
	ip_result_put_if(r, show_data,
					 show_data ? bytea_datum(row->body, stored) : (Datum) 0);
}

static void
emit_row(ReturnSetInfo *rsinfo, Relation rel, BlockNumber block, Page page,
		 OffsetNumber off, bool show_data)
{
	ItemId		lp = PageGetItemId(page, off);
	IpResult	r = {.n = 0};
	IpRow		row;
	const char *problem;

	ip_result_put_int(&r, off);
	ip_result_put_text(&r, ip_state_name(ip_state_of(page, off)));
	ip_result_put_int(&r, ItemIdIsDead(lp) ? 0 : ItemIdGetLength(lp));
	if (ip_row_is_at(page, off))
	{
		problem = ip_row_decode(page, off, &row);
		if (problem)
			ereport(WARNING,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("row (%u,%u) is corrupted: %s", block, off,
							problem)));
		else
			put_row(&r, rel, page, lp, &row, show_data);
	}
	ip_result_emit(rsinfo, &r);
}

Datum
inplace_rows(PG_FUNCTION_ARGS)
{
	Relation	rel = ip_rel_open_to_inspect(PG_GETARG_OID(0));
	BlockNumber block = ip_result_check_block(rel, PG_GETARG_INT64(1));
	bool		show_data = ip_result_may_show(rel);
	PGAlignedBlock page;

	CompatInitMaterializedSRF(fcinfo);
	if (copy_page(rel, block, page.data) == IP_PAGE_DATA)
	{
		OffsetNumber max = PageGetMaxOffsetNumber(page.data);

		for (OffsetNumber off = IpFirstOffset(block); off <= max; off++)
			emit_row((ReturnSetInfo *) fcinfo->resultinfo, rel, block,
					 page.data, off, show_data);
	}
	relation_close(rel, AccessShareLock);
	return (Datum) 0;
}

/* ---- inplace_undo_records ---------------------------------------------- */

/*
 * A flag that is not in the record's flags byte: the record is part of the skip
 * list.
 */
#define RECORD_SKIP		0x100

static const IpFlagName record_flags[] = {
	{IP_REC_PREV, "prev"},
	{IP_REC_PREV_INSERTED, "prev_inserted"},
	{IP_REC_SAVED, "saved"},
	{IP_REC_HDR, "hdr"},
	{IP_REC_FORWARD, "forward"},
	{IP_REC_KEYS, "keys"},
	{IP_REC_PARTITION, "partition"},
	{RECORD_SKIP, "skip"}
};

static void
put_record(IpResult *r, const IpUndoRec *rec)
{
	static const char *const kinds[] = {
		[IP_UNDO_UPDATE] = "update",[IP_UNDO_DELETE] = "delete",
		[IP_UNDO_MOVES] = "moves"
	};
	bool		has_prev = (rec->flags & IP_REC_PREV) != 0;
	bool		prev_inserted = (rec->flags & IP_REC_PREV_INSERTED) != 0;

	ip_result_put_text(r, kinds[rec->kind]);
	ip_result_put_flags(r, record_flags, lengthof(record_flags),
						rec->flags | (rec->has_skip ? RECORD_SKIP : 0));
	ip_result_put_xid(r, rec->xid);
	ip_result_put_tid_if(r, ItemPointerIsValid(&rec->row),
						 ItemPointerGetBlockNumberNoCheck(&rec->row),
						 ItemPointerGetOffsetNumberNoCheck(&rec->row));
	ip_result_put(r, Int64GetDatum(rec->cid));
	ip_result_put_xid(r, rec->prev_xid);
	ip_result_put_ptr_if(r, has_prev && !prev_inserted,
						 has_prev && prev_inserted, rec->prev_ptr);
	ip_result_put_tid_if(r, (rec->flags & IP_REC_FORWARD) != 0,
						 ItemPointerGetBlockNumberNoCheck(&rec->forward),
						 ItemPointerGetOffsetNumberNoCheck(&rec->forward));
	ip_result_put_int(r, rec->deltalen);
}

static void
emit_record(ReturnSetInfo *rsinfo, BlockNumber block, Page page,
			OffsetNumber off)
{
	const char *problem;
	IpResult	r = {.n = 0};
	uint8		buf[BLCKSZ];
	IpUndoRec	rec;

	ip_result_put_int(&r, off);
	if (IpPageGetSpecial(page)->kind == IP_PAGE_DATA &&
		ip_moves_is_list(page, off))
	{
		rec = (IpUndoRec)
		{
			.kind = IP_UNDO_MOVES,.xid = ip_page_default_changer(page),
				.cid = IpPageGetSpecial(page)->w.data.change_cid
		};
		problem = ip_moves_problem(page, off);
	}
	else
		problem = ip_page_check_record(page, block, off, buf, &rec);
	if (problem)
		ereport(WARNING,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("undo record (%u,%u) is corrupted: %s", block, off,
						problem)));
	else
		put_record(&r, &rec);
	ip_result_emit(rsinfo, &r);
}

Datum
inplace_undo_records(PG_FUNCTION_ARGS)
{
	Relation	rel = ip_rel_open_to_inspect(PG_GETARG_OID(0));
	BlockNumber block = ip_result_check_block(rel, PG_GETARG_INT64(1));
	PGAlignedBlock page;
	IpPageKind	kind;

	CompatInitMaterializedSRF(fcinfo);
	kind = copy_page(rel, block, page.data);
	if (kind == IP_PAGE_UNDO || kind == IP_PAGE_DATA)
	{
		OffsetNumber max = PageGetMaxOffsetNumber(page.data);

		for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
		{
			if (kind == IP_PAGE_UNDO ||
				ip_item_is_undo(page.data, PageGetItemId(page.data, off)))
				emit_record((ReturnSetInfo *) fcinfo->resultinfo, block,
							page.data, off);
		}
	}
	relation_close(rel, AccessShareLock);
	return (Datum) 0;
}

/* ---- inplace_undo_rings ------------------------------------------------ */

typedef struct RingStats
{
	uint32		pages;
	int64		records;
	int64		bytes;
	IpXid		newest;
	IpXid		oldest_page;	/* newest xid of the page behind the current
								 * one, or of the current one if it is alone */
	int64		removable;
	BlockNumber current;
	IpXid		first;			/* newest xid of the first page */
	bool		was_current;	/* the last page was the current one */
} RingStats;

/*
 * Add a page.  Returns the next one, or InvalidBlockNumber if this one is not
 * the slot's.
 */
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
	if (stats->pages == 1)
		stats->first = special.u.undo.newest_xid;
	if (stats->was_current)
		stats->oldest_page = special.u.undo.newest_xid;
	stats->was_current = (special.u.undo.flags & IP_UNDO_CURRENT) != 0;
	if (stats->was_current)
		stats->current = block;
	else if (ip_xid_removable(rel, special.u.undo.newest_xid))
		stats->removable++;
	return special.u.undo.next;
}

/* Emit a ring's row.  Pages that are added meanwhile may be counted or not. */
static void
emit_ring(ReturnSetInfo *rsinfo, Relation rel, uint16 slot,
		  const IpMetaSlot *ms)
{
	BlockNumber block = ms->entry;
	BlockNumber npages = Min(ms->npages, RelationGetNumberOfBlocks(rel));
	RingStats	stats = {.current = ms->entry};
	IpResult	r = {.n = 0};

	do
	{
		CHECK_FOR_INTERRUPTS();
		block = add_ring_page(rel, block, slot, &stats);
	} while (block != InvalidBlockNumber && block != ms->entry &&
			 stats.pages < npages);
	if (stats.was_current)
		stats.oldest_page = stats.first;
	if (block == InvalidBlockNumber || block != ms->entry)
		ereport(DEBUG1,
				(errmsg("ring %u of relation \"%s\" has changed, or is damaged",
						slot, RelationGetRelationName(rel))));
	ip_result_put_int(&r, slot);
	ip_result_put(&r, Int64GetDatum(stats.current));
	ip_result_put(&r, Int64GetDatum(stats.pages));
	ip_result_put(&r, Int64GetDatum(stats.records));
	ip_result_put(&r, Int64GetDatum(stats.bytes));
	ip_result_put_xid(&r, stats.newest);
	ip_result_put_xid(&r, stats.oldest_page);
	ip_result_put(&r, Int64GetDatum(stats.removable));
	ip_result_emit(rsinfo, &r);
}

Datum
inplace_undo_rings(PG_FUNCTION_ARGS)
{
	Relation	rel = ip_rel_open_to_inspect(PG_GETARG_OID(0));
	PGAlignedBlock page;
	IpPageKind	kind = 0;

	CompatInitMaterializedSRF(fcinfo);
	ip_rel_check_format(rel);
	if (RelationGetNumberOfBlocks(rel) > IP_META_BLOCK)
		kind = copy_page(rel, IP_META_BLOCK, page.data);
	if (kind != 0 && kind != IP_PAGE_META)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("block %u of relation \"%s\" is not a metapage",
						IP_META_BLOCK, RelationGetRelationName(rel))));
	for (uint16 slot = 0; kind == IP_PAGE_META && slot < IP_UNDO_SLOTS; slot++)
	{
		const IpMetaSlot *ms = &IpPageGetMeta(page.data)->slots[slot];

		if (ms->entry != InvalidBlockNumber)
			emit_ring((ReturnSetInfo *) fcinfo->resultinfo, rel, slot, ms);
	}
	relation_close(rel, AccessShareLock);
	return (Datum) 0;
}

/* ---- inplace_locks ----------------------------------------------------- */

static void
emit_set(ReturnSetInfo *rsinfo, BlockNumber page, int i, const IpLockSet *set)
{
	Datum		rows[IP_MAX_ROWS_PER_PAGE];
	int			n = 0;
	IpResult	r = {.n = 0};
	bool		mine;

	for (OffsetNumber off = FirstOffsetNumber; off <= IP_MAX_ROWS_PER_PAGE;
		 off++)
	{
		if (IpLockSetHas(set, off))
			rows[n++] = Int32GetDatum(off);
	}
	ip_result_put(&r, Int64GetDatum(page));
	ip_result_put_int(&r, i);
	ip_result_put_xid(&r, set->xid);
	ip_result_put_text(&r,
					   set->mode <= LockTupleExclusive ?
					   ip_result_mode_names[set->mode] : NULL);
	ip_result_put(&r, BoolGetDatum(ip_lockset_is_live(set->xid, &mine)));
	ip_result_put(&r, Int64GetDatum(set->block));
	ip_result_put(&r,
				  PointerGetDatum(construct_array(rows, n, INT4OID,
												  sizeof(int32), true,
												  TYPALIGN_INT)));
	ip_result_emit(rsinfo, &r);
}

Datum
inplace_locks(PG_FUNCTION_ARGS)
{
	Relation	rel = ip_rel_open_to_inspect(PG_GETARG_OID(0));
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	BlockNumber block = IP_META_BLOCK;
	PGAlignedBlock page;

	CompatInitMaterializedSRF(fcinfo);
	ip_rel_check_format(rel);
	/* pages that are added or freed meanwhile are shown or not */
	for (BlockNumber n = 0; n < nblocks && block != 0 && block < nblocks; n++)
	{
		IpPageKind	kind = copy_page(rel, block, page.data);
		const char *problem;

		CHECK_FOR_INTERRUPTS();
		if (kind != IP_PAGE_META && kind != IP_PAGE_LOCK)
			break;
		problem = ip_lockset_problem(page.data);
		if (problem)
			ereport(WARNING,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("lock sets on block %u are corrupted: %s", block,
							problem)));
		for (int i = 0; problem == NULL && i < IpPageLockSets(page.data); i++)
			emit_set((ReturnSetInfo *) fcinfo->resultinfo, block, i,
					 IpPageLockSet(page.data, i));
		block = IpPageGetSpecial(page.data)->u.lock.next;
	}
	relation_close(rel, AccessShareLock);
	return (Datum) 0;
}
