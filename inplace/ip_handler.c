/*-------------------------------------------------------------------------
 * ip_handler.c
 *	  The table access method's entry points.
 *-------------------------------------------------------------------------
 */
#include "compat_table.h"

#include "access/heapam.h"
#include "access/multixact.h"
#include "catalog/index.h"
#include "catalog/storage_xlog.h"
#include "utils/snapmgr.h"

#include "ip_fetch.h"
#include "ip_fetch_index.h"
#include "ip_guard.h"
#include "ip_handler.h"
#include "ip_index.h"
#include "ip_index_delete.h"
#include "ip_insert.h"
#include "ip_keys.h"
#include "ip_lock.h"
#include "ip_rel.h"
#include "ip_rewrite.h"
#include "ip_scan.h"
#include "ip_slot.h"
#include "ip_toast.h"
#include "ip_update.h"
#include "ip_vacuum.h"
#include "ip_vacuum_index.h"
#include "ip_value_read.h"

PG_FUNCTION_INFO_V1(inplace_tableam_handler);
PGDLLEXPORT Datum inplace_tableam_handler(PG_FUNCTION_ARGS);

static const TupleTableSlotOps *
ip_slot_callbacks(Relation rel)
{
	ip_guard_slot(rel);
	return &ip_slot_ops;
}

/* ---- storage ------------------------------------------------------------- */

/*
 * An empty table has no blocks, and an unlogged one's init fork has none
 * either.
 */
static void
ip_set_new_filelocator(Relation rel, const RelFileLocator *locator,
					   char persistence, TransactionId *freezeXid,
					   MultiXactId *minmulti)
{
	SMgrRelation srel;

	*freezeXid = RecentXmin;
	*minmulti = GetOldestMultiXactId();
	srel = RelationCreateStorage(*locator, persistence, true);
	if (persistence == RELPERSISTENCE_UNLOGGED)
	{
		smgrcreate(srel, INIT_FORKNUM, false);
		log_smgrcreate(locator, INIT_FORKNUM);
		smgrimmedsync(srel, INIT_FORKNUM);
	}
	smgrclose(srel);
}

static void
ip_nontransactional_truncate(Relation rel)
{
	if (rel->rd_amcache != NULL)
		pfree(rel->rd_amcache);
	rel->rd_amcache = NULL;
	RelationTruncate(rel, 0);
}

/* Everything is in the relation's own forks, by block number: copy them. */
static void
ip_copy_data(Relation rel, const RelFileLocator *locator)
{
	char		persistence = rel->rd_rel->relpersistence;
	SMgrRelation dst;

	FlushRelationBuffers(rel);
	dst = RelationCreateStorage(*locator, persistence, true);
	RelationCopyStorage(RelationGetSmgr(rel), dst, MAIN_FORKNUM, persistence);
	for (ForkNumber fork = MAIN_FORKNUM + 1; fork <= MAX_FORKNUM; fork++)
	{
		if (!smgrexists(RelationGetSmgr(rel), fork))
			continue;
		smgrcreate(dst, fork, false);
		if (RelationIsPermanent(rel) ||
			(persistence == RELPERSISTENCE_UNLOGGED && fork == INIT_FORKNUM))
			log_smgrcreate(locator, fork);
		RelationCopyStorage(RelationGetSmgr(rel), dst, fork, persistence);
	}
	RelationDropStorage(rel);
	smgrclose(dst);
}

/* ---- sizes --------------------------------------------------------------- */

/* Without statistics, core estimates at least this number of pages. */
#define ESTIMATE_MIN_PAGES	10

static Oid
ip_toast_am(Relation rel)
{
	return rel->rd_rel->relam;
}

/*
 * Subtract pages of undo and locks, and the metapage, which have no rows and
 * are not read.  Core has estimated the same density of rows for all pages.
 * This is right for pages that relpages counts, as the density includes them,
 * but not for pages added since.
 */
static void
leave_out_undo(Relation rel, BlockNumber *pages, double *tuples,
			   double *allvisfrac)
{
	BlockNumber known = rel->rd_rel->relpages;
	BlockNumber rings = *pages > ESTIMATE_MIN_PAGES ?
		ip_ring_pages_without_rows(rel) : 0;
	BlockNumber undo = rings + 1;
	BlockNumber fresh;

	if (rings == 0 || undo >= *pages)
		return;
	fresh = Min(undo, *pages - Min(known, *pages));
	*tuples *= (double) (*pages - fresh) / *pages;
	*allvisfrac = Min(1.0, *allvisfrac * *pages / (*pages - undo));
	*pages -= undo;
}

static void
ip_estimate_size(Relation rel, int32 *attr_widths, BlockNumber *pages,
				 double *tuples, double *allvisfrac)
{
	table_block_relation_estimate_size(rel, attr_widths, pages, tuples,
									   allvisfrac,
									   IP_ROW_HDRSZ + sizeof(ItemIdData),
									   BLCKSZ - SizeOfPageHeaderData -
									   sizeof(IpSpecial));

	leave_out_undo(rel, pages, tuples, allvisfrac);

	/*
	 * without statistics, the estimate for narrow rows would exceed what a
	 * page can hold
	 */
	*tuples = Min(*tuples, (double) *pages * IP_MAX_ROWS_PER_PAGE);
}

const TableAmRoutine ip_handler_methods = {
	.type = T_TableAmRoutine,

	.slot_callbacks = ip_slot_callbacks,

	.scan_begin = ip_scan_begin,
	.scan_end = ip_scan_end,
	.scan_rescan = ip_scan_rescan,
	.scan_getnextslot = ip_scan_getnextslot,
	.scan_set_tidrange = ip_scan_set_tidrange,
	.scan_getnextslot_tidrange = ip_scan_getnextslot_tidrange,

	.parallelscan_estimate = table_block_parallelscan_estimate,
	.parallelscan_initialize = table_block_parallelscan_initialize,

	.index_fetch_reset = ip_fetch_reset,
	.index_fetch_end = ip_fetch_end,
	.index_fetch_tuple = ip_fetch_index_tuple,

	.tuple_fetch_row_version = ip_fetch_row_version,
	.tuple_tid_valid = ip_fetch_tid_valid,
	.tuple_get_latest_tid = ip_fetch_latest_tid,
	.tuple_satisfies_snapshot = ip_fetch_satisfies_snapshot,
	.index_delete_tuples = ip_index_delete_tuples,

	.tuple_insert = ip_insert_tuple,
	.tuple_insert_speculative = ip_insert_speculative,
	.tuple_complete_speculative = ip_insert_complete_speculative,
	.multi_insert = ip_insert_multi,
	.tuple_lock = ip_lock_tuple,

	.relation_set_new_filelocator = ip_set_new_filelocator,
	.relation_nontransactional_truncate = ip_nontransactional_truncate,
	.relation_copy_data = ip_copy_data,
	.scan_analyze_next_block = compat_scan_analyze_next_block,
	.index_build_range_scan = ip_index_build_range_scan,
	.index_validate_scan = ip_index_validate_scan,

	.relation_size = table_block_relation_size,
	.relation_needs_toast_table = ip_toast_needs_table,
	.relation_toast_am = ip_toast_am,
	.relation_fetch_toast_slice = ip_value_fetch_slice,

	.relation_estimate_size = ip_estimate_size,

	COMPAT_TABLE_METHODS,
	COMPAT_SCAN_BITMAP_METHODS,
	.scan_sample_next_block = ip_scan_sample_next_block,
	.scan_sample_next_tuple = ip_scan_sample_next_tuple
};

const InplaceKeysTable ip_handler_keys = {
	.am = &ip_handler_methods,
	.expect = ip_fetch_expect,
	.judge = ip_keys_judge,
	.value = ip_value_fetch_soft,
	.removed = ip_keys_removed,
	.vacuum = ip_vacuum_is_dead,
	.vacuumed = ip_vacuum_note_stale
};

Datum
inplace_tableam_handler(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(&ip_handler_methods);
}
