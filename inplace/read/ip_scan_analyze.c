/*-------------------------------------------------------------------------
 * ip_scan_analyze.c
 *	  ANALYZE's scan.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/snapmgr.h"

#include "ip_fetch.h"
#include "ip_keys.h"
#include "ip_ring.h"
#include "ip_scan.h"
#include "ip_xid.h"

void
ip_scan_analyze_page(TableScanDesc sscan, Buffer buffer)
{
	IpScan	   *scan = (IpScan *) sscan;

	ip_scan_copy_page(scan, buffer);
	scan->off = 0;
}

bool
ip_scan_analyze_undo(TableScanDesc sscan, BlockNumber block)
{
	IpScan	   *scan = (IpScan *) sscan;

	if (!ip_ring_is_undo(scan->undo, block))
		return false;
	ip_scan_pass_undo(scan, block);
	scan->off = 0;
	return true;
}

/*
 * Returns the part of all undo pages that should not be there.  It is
 * determined once for a scan.
 */
static double
undo_excess(IpScan *scan)
{
	Relation	rel = scan->rs_base.rs_rd;
	BlockNumber pages;

	if (!scan->has_excess)
	{
		pages = ip_ring_pages(rel);
		scan->excess = pages == 0 ? 0 :
			ip_undo_beyond(pages, RelationGetNumberOfBlocks(rel)) / pages;
	}
	scan->has_excess = true;
	return scan->excess;
}

/*
 * Count a row as heap counts it; see VACUUM's counts.  Returns true if the row
 * is alive: then the slot has the version to be sampled.
 */
static bool
analyze_row(IpScan *scan, OffsetNumber off, double *liverows, double *deadrows,
			TupleTableSlot *slot)
{
	Relation	rel = scan->rs_base.rs_rd;
	ItemId		lp = PageGetItemId(scan->copy.data, off);
	IpVersion  *v = &scan->v;
	IpvResult	result;

	slot->tts_tableOid = RelationGetRelid(rel);
	if (ip_scan_store_frozen(scan, off, slot))
	{
		*liverows += 1;
		return true;
	}
	if (!ItemIdIsDead(lp) && !ip_row_is_at(scan->copy.data, off))
		return false;
	if (ItemIdIsDead(lp) ||
		ip_scan_sight(scan, off, NULL, 0, SnapshotSelf) == IP_SIGHT_NOTHING)
	{
		*deadrows += 1;
		return false;
	}
	result = ip_version_begin_copy(v, rel, scan->block, scan->copy.data, off,
								   scan->horizon);
	/* its inserter will count it */
	if (result == IPV_OK && (v->state & IP_ROW_INSERTED) &&
		ip_version_status(v) == IP_STATUS_RUNNING)
		return false;
	if (result == IPV_OK)
		result = ip_version_satisfy(v, SnapshotSelf);
	if (result == IPV_STALE)
		result = ip_version_fetch_satisfy(v, rel, &scan->sight.tid,
										  SnapshotSelf, NULL);
	*(result == IPV_OK ? liverows : deadrows) += 1;
	if (result == IPV_OK)
		ip_scan_store_version(scan, v, slot);
	return result == IPV_OK;
}

/*
 * Called at the end of each sampled block.  The entries that updates in place
 * have left in indexes cannot be seen here.  So the number of dead rows is what
 * was found, but at least what statistics say.
 */
static void
count_entries(IpScan *scan, double *deadrows)
{
	Relation	rel = scan->rs_base.rs_rd;

	if (scan->nsampled++ == 0 && ip_keys_followed(rel)->nindexes > 0)
		scan->dead_a_block = ip_rel_dead_rows(rel, NULL) /
			Max(RelationGetNumberOfBlocks(rel), 1);
	scan->dead_found += *deadrows - scan->dead_told;
	scan->dead_told = Max(scan->dead_found,
						  scan->dead_a_block * scan->nsampled);
	*deadrows = scan->dead_told;
}

bool
ip_scan_analyze_next_tuple(TableScanDesc sscan, double *liverows,
						   double *deadrows, TupleTableSlot *slot)
{
	IpScan	   *scan = (IpScan *) sscan;

	/* undo that VACUUM has to free counts as it does for autovacuum */
	if (scan->is_undo)
		*deadrows += IP_UNDO_RECORDS_PER_PAGE * undo_excess(scan);
	scan->is_undo = false;
	ip_scan_reuse_version(scan, slot);
	while (scan->off < scan->max_off)
	{
		if (analyze_row(scan, ++scan->off, liverows, deadrows, slot))
			return true;
	}
	count_entries(scan, deadrows);
	ExecClearTuple(slot);
	return false;
}
