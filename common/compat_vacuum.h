/*-------------------------------------------------------------------------
 * compat_vacuum.h
 *	  Lines of VACUUM's report that differ between PostgreSQL's versions.
 *
 * Each line has the server's wording for heap tables, for programs that read
 * logs.
 *-------------------------------------------------------------------------
 */
#ifndef PG_INPLACE_COMPAT_VACUUM_H
#define PG_INPLACE_COMPAT_VACUUM_H

#include "compat.h"

#include "executor/instrument.h"
#include "utils/backend_status.h"

/*
 * 18 counts separately all-visible pages that were read in order to freeze
 * them.  inplace has no such pages.
 */
static inline void
compat_report_pages(StringInfo buf, BlockNumber removed, BlockNumber remain,
					BlockNumber scanned, double percent)
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
compat_report_frozen(StringInfo buf, BlockNumber pages, double percent,
					 int64 rows)
{
#if PG_VERSION_NUM >= 160000
	appendStringInfo(buf, _("frozen: %u pages from table (%.2f%% of total) had %lld tuples frozen\n"),
					 pages, percent, (long long) rows);
#endif
}

/*
 * Report bits of the visibility map that were set.  were_visible counts pages
 * that were already all-visible and became all-frozen.
 */
static inline void
compat_report_map(StringInfo buf, BlockNumber visible, BlockNumber frozen,
				  BlockNumber were_visible)
{
#if PG_VERSION_NUM >= 180000
	appendStringInfo(buf, _("visibility map: %u pages set all-visible, %u pages set all-frozen (%u were all-visible)\n"),
					 visible, frozen, were_visible);
#endif
}

/*
 * 19 reports how many workers were planned and launched.  Element 0 is for
 * deleting from indexes, in all passes; element 1 is for cleaning them up.
 */
static inline void
compat_report_workers(StringInfo buf, const int *planned, const int *launched)
{
#if PG_VERSION_NUM >= 190000
	if (planned[0] > 0)
		appendStringInfo(buf, _("parallel workers: index vacuum: %d planned, %d launched in total\n"),
						 planned[0], launched[0]);
	if (planned[1] > 0)
		appendStringInfo(buf, _("parallel workers: index cleanup: %d planned, %d launched\n"),
						 planned[1], launched[1]);
#endif
}

/*
 * 19 also reports the memory that dead rows' TIDs have taken; resets is how
 * often it was freed.
 */
static inline void
compat_report_memory(StringInfo buf, Size bytes, int resets, Size limit)
{
#if PG_VERSION_NUM >= 190000
	appendStringInfo(buf, ngettext("memory usage: dead item storage %.2f MB accumulated across %d reset (limit %.2f MB each)\n",
								   "memory usage: dead item storage %.2f MB accumulated across %d resets (limit %.2f MB each)\n",
								   resets),
					 bytes / (1024 * 1024.0), resets, limit / (1024 * 1024.0));
#endif
}

/*
 * Report the progress view's value, which stays after
 * pgstat_progress_end_command.
 */
static inline void
compat_report_delay(StringInfo buf)
{
#if PG_VERSION_NUM >= 180000
	const int64 *params = MyBEEntry->st_progress_param;

	if (track_cost_delay_timing)
		appendStringInfo(buf, _("delay time: %.3f ms\n"),
						 params[PROGRESS_VACUUM_DELAY_TIME] / 1000000.0);
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
#elif PG_VERSION_NUM < 190000
	appendStringInfo(buf,
					 _("WAL usage: %lld records, %lld full page images, %llu bytes, %lld buffers full\n"),
					 (long long) wal->wal_records, (long long) wal->wal_fpi,
					 (unsigned long long) wal->wal_bytes,
					 (long long) wal->wal_buffers_full);
#else
	appendStringInfo(buf,
					 _("WAL usage: %lld records, %lld full page images, %llu bytes, %llu full page image bytes, %lld buffers full\n"),
					 (long long) wal->wal_records, (long long) wal->wal_fpi,
					 (unsigned long long) wal->wal_bytes,
					 (unsigned long long) wal->wal_fpi_bytes,
					 (long long) wal->wal_buffers_full);
#endif
}

#endif							/* PG_INPLACE_COMPAT_VACUUM_H */
