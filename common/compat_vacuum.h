/*-------------------------------------------------------------------------
 * compat_vacuum.h
 *	  Lines of VACUUM's report that differ between PostgreSQL's versions.
 *
 * Each has the words that the server has for heap tables, for programs that read logs.
 *-------------------------------------------------------------------------
 */
#ifndef PG_INPLACE_COMPAT_VACUUM_H
#define PG_INPLACE_COMPAT_VACUUM_H

#include "compat.h"

#include "executor/instrument.h"
#include "utils/backend_status.h"

/* 18 tells all-visible pages apart that were read in order to freeze them: we have none. */
static inline void
compat_report_pages(StringInfo buf, BlockNumber removed, BlockNumber remain, BlockNumber scanned,
					double percent)
{
#if PG_VERSION_NUM < 180000
	appendStringInfo(buf, _("pages: %u removed, %u remain, %u scanned (%.2f%% of total)\n"),
					 removed, remain, scanned, percent);
#else
	appendStringInfo(buf, _("pages: %u removed, %u remain, %u scanned (%.2f%% of total), %u eagerly scanned\n"),
					 removed, remain, scanned, percent, 0);
#endif
}

static inline void
compat_report_frozen(StringInfo buf, BlockNumber pages, double percent, int64 rows)
{
#if PG_VERSION_NUM >= 160000
	appendStringInfo(buf, _("frozen: %u pages from table (%.2f%% of total) had %lld tuples frozen\n"),
					 pages, percent, (long long) rows);
#endif
}

/* Bits of the visibility map that have been set; were_visible: pages that are only all-frozen newly. */
static inline void
compat_report_map(StringInfo buf, BlockNumber visible, BlockNumber frozen, BlockNumber were_visible)
{
#if PG_VERSION_NUM >= 180000
	appendStringInfo(buf, _("visibility map: %u pages set all-visible, %u pages set all-frozen (%u were all-visible)\n"),
					 visible, frozen, were_visible);
#endif
}

/* The progress view's value, which stays after pgstat_progress_end_command. */
static inline void
compat_report_delay(StringInfo buf)
{
#if PG_VERSION_NUM >= 180000
	if (track_cost_delay_timing)
		appendStringInfo(buf, _("delay time: %.3f ms\n"),
						 MyBEEntry->st_progress_param[PROGRESS_VACUUM_DELAY_TIME] / 1000000.0);
#endif
}

static inline void
compat_report_buffers(StringInfo buf, int64 hit, int64 miss, int64 dirty)
{
#if PG_VERSION_NUM < 180000
	appendStringInfo(buf, _("buffer usage: %lld hits, %lld misses, %lld dirtied\n"),
					 (long long) hit, (long long) miss, (long long) dirty);
#else
	appendStringInfo(buf, _("buffer usage: %lld hits, %lld reads, %lld dirtied\n"),
					 (long long) hit, (long long) miss, (long long) dirty);
#endif
}

static inline void
compat_report_wal(StringInfo buf, const WalUsage *wal)
{
#if PG_VERSION_NUM < 180000
	appendStringInfo(buf, _("WAL usage: %lld records, %lld full page images, %llu bytes\n"),
					 (long long) wal->wal_records, (long long) wal->wal_fpi,
					 (unsigned long long) wal->wal_bytes);
#else
	appendStringInfo(buf, _("WAL usage: %lld records, %lld full page images, %llu bytes, %lld buffers full\n"),
					 (long long) wal->wal_records, (long long) wal->wal_fpi,
					 (unsigned long long) wal->wal_bytes, (long long) wal->wal_buffers_full);
#endif
}

#endif							/* PG_INPLACE_COMPAT_VACUUM_H */
