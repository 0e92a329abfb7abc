/*-------------------------------------------------------------------------
 * ip_vacuum_report.c
 *	  VACUUM VERBOSE, and autovacuum's log line.
 *-------------------------------------------------------------------------
 */
#include "ip_compat.h"

#include "commands/dbcommands.h"
#include "executor/instrument.h"
#include "postmaster/autovacuum.h"
#include "utils/lsyscache.h"
#include "utils/pg_rusage.h"
#include "utils/timestamp.h"

#include "ip_vacuum.h"

struct IpVacuumUsage
{
	PGRUsage	rusage;
	TimestampTz start;
	WalUsage	wal;
	BufferUsage buffers;
	PgStat_Counter read_time;
	PgStat_Counter write_time;
	int64		page_hit;
	int64		page_miss;
	int64		page_dirty;
};

IpVacuumUsage *
ip_vacuum_usage_begin(void)
{
	IpVacuumUsage *u = palloc0(sizeof(IpVacuumUsage));

	pg_rusage_init(&u->rusage);
	u->start = GetCurrentTimestamp();
	u->wal = pgWalUsage;
	u->buffers = pgBufferUsage;
	u->read_time = pgStatBlockReadTime;
	u->write_time = pgStatBlockWriteTime;
	u->page_hit = VacuumPageHit;
	u->page_miss = VacuumPageMiss;
	u->page_dirty = VacuumPageDirty;
	return u;
}

static double
percent(double part, double whole)
{
	return whole > 0 ? 100.0 * part / whole : 100.0;
}

static void
report_rows(IpVacuum *v, StringInfo buf, double row_count, TransactionId frozenxid, bool frozenxid_updated)
{
	IpVacuumCounts *n = &v->n;

	appendStringInfo(buf, _("pages: %u removed, %u remain, %u scanned (%.2f%% of total)\n"),
					 n->truncated, v->nblocks, n->scanned,
					 percent(n->scanned, v->nblocks + n->truncated));
	appendStringInfo(buf, _("tuples: %lld removed, %lld remain, %lld are dead but not yet removable\n"),
					 (long long) n->removed, (long long) (Max(row_count, 0) + n->recently_dead),
					 (long long) n->recently_dead);
	appendStringInfo(buf, _("undo: %u pages, of which %u were freed\n"), n->undo_pages, n->undo_freed);
	appendStringInfo(buf, _("removable cutoff: %u, which was %d XIDs old when operation ended\n"),
					 v->cutoffs.OldestXmin,
					 (int32) (ReadNextTransactionId() - v->cutoffs.OldestXmin));
	if (frozenxid_updated)
		appendStringInfo(buf, _("new relfrozenxid: %u, which is %d XIDs ahead of previous value\n"),
						 frozenxid, (int32) (frozenxid - v->rel->rd_rel->relfrozenxid));
}

static void
report_index_scan(IpVacuum *v, StringInfo buf)
{
	IpVacuumCounts *n = &v->n;

	if (v->failsafe)
		appendStringInfoString(buf, _("index scan bypassed by failsafe: "));
	else if (n->dead_items > 0 && n->index_scans == 0 && ip_vacuum_nindexes(v) > 0)
		appendStringInfoString(buf, _("index scan bypassed: "));
	else if (n->index_scans == 0)
		appendStringInfoString(buf, _("index scan not needed: "));
	else
		appendStringInfoString(buf, _("index scan needed: "));
	appendStringInfo(buf, _("%u pages from table (%.2f%% of total) had %lld dead item identifiers\n"),
					 n->dead_item_pages, percent(n->dead_item_pages, v->nblocks + n->truncated),
					 (long long) n->dead_items);
	ip_vacuum_indexes_report(v, buf);
}

static void
report_usage(IpVacuumUsage *u, StringInfo buf)
{
	double		seconds = (GetCurrentTimestamp() - u->start) / 1000000.0;
	WalUsage	wal = {0};
	int64		miss = VacuumPageMiss - u->page_miss;
	int64		dirty = VacuumPageDirty - u->page_dirty;
	double		read_rate = 0;
	double		write_rate = 0;

	WalUsageAccumDiff(&wal, &pgWalUsage, &u->wal);
	if (seconds > 0)
	{
		read_rate = (double) BLCKSZ * miss / (1024 * 1024) / seconds;
		write_rate = (double) BLCKSZ * dirty / (1024 * 1024) / seconds;
	}
	if (track_io_timing)
		appendStringInfo(buf, _("I/O timings: read: %.3f ms, write: %.3f ms\n"),
						 (pgStatBlockReadTime - u->read_time) / 1000.0,
						 (pgStatBlockWriteTime - u->write_time) / 1000.0);
	appendStringInfo(buf, _("avg read rate: %.3f MB/s, avg write rate: %.3f MB/s\n"),
					 read_rate, write_rate);
	appendStringInfo(buf, _("buffer usage: %lld hits, %lld misses, %lld dirtied\n"),
					 (long long) (VacuumPageHit - u->page_hit), (long long) miss, (long long) dirty);
	appendStringInfo(buf, _("WAL usage: %lld records, %lld full page images, %llu bytes\n"),
					 (long long) wal.wal_records, (long long) wal.wal_fpi,
					 (unsigned long long) wal.wal_bytes);
	appendStringInfo(buf, _("system usage: %s"), pg_rusage_show(&u->rusage));
}

void
ip_vacuum_report(IpVacuum *v, IpVacuumUsage *usage, double row_count,
				 TransactionId frozenxid, bool frozenxid_updated)
{
	bool		verbose = (v->params->options & VACOPT_VERBOSE) != 0;
	const char *format = _("finished vacuuming \"%s.%s.%s\": index scans: %d\n");
	StringInfoData buf;

	if (!verbose &&
		(!IsAutoVacuumWorkerProcess() || v->params->log_min_duration < 0 ||
		 !TimestampDifferenceExceeds(usage->start, GetCurrentTimestamp(),
									 v->params->log_min_duration)))
		return;
	if (!verbose)
		format = v->params->is_wraparound ?
			_("automatic vacuum to prevent wraparound of table \"%s.%s.%s\": index scans: %d\n") :
			_("automatic vacuum of table \"%s.%s.%s\": index scans: %d\n");
	initStringInfo(&buf);
	appendStringInfo(&buf, format, get_database_name(MyDatabaseId),
					 get_namespace_name(RelationGetNamespace(v->rel)),
					 RelationGetRelationName(v->rel), v->n.index_scans);
	report_rows(v, &buf, row_count, frozenxid, frozenxid_updated);
	report_index_scan(v, &buf);
	report_usage(usage, &buf);
	ereport(verbose ? INFO : LOG, (errmsg_internal("%s", buf.data)));
	pfree(buf.data);
}
