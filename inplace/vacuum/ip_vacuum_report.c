/*-------------------------------------------------------------------------
 * ip_vacuum_report.c
 *	  VACUUM VERBOSE, and autovacuum's log line.
 *-------------------------------------------------------------------------
 */
#include "compat_vacuum.h"

#include "commands/dbcommands.h"
#include "postmaster/autovacuum.h"
#include "utils/lsyscache.h"
#include "utils/pg_rusage.h"
#include "utils/timestamp.h"

#include "ip_ring.h"
#include "ip_vacuum_report.h"

struct IpVacuumUsage
{
	PGRUsage	rusage;
	TimestampTz start;
	WalUsage	wal;
	BufferUsage buffers;
	PgStat_Counter read_time;
	PgStat_Counter write_time;
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
	return u;
}

static double
percent_of_table(const IpVacuum *v, BlockNumber pages)
{
	double		whole = (double) v->nblocks + v->n.truncated;

	return whole > 0 ? 100.0 * pages / whole : 100.0;
}

static void
report_rows(IpVacuum *v, StringInfo buf, double row_count)
{
	IpVacuumCounts *n = &v->n;

	compat_report_pages(buf, n->truncated, v->nblocks, n->scanned,
						percent_of_table(v, n->scanned));
	appendStringInfo(buf, _("tuples: %lld removed, %lld remain, %lld are dead but not yet removable\n"),
					 (long long) n->removed,
					 (long long) (Max(row_count, 0) + n->recently_dead),
					 (long long) n->recently_dead);
	appendStringInfo(buf,
					 ip_undo_beyond(n->undo_pages - n->undo_freed,
									v->nblocks) > 0 ?
					 _("undo: %u pages, of which %u were freed; view inplace_horizon shows what the others are kept for\n") :
					 _("undo: %u pages, of which %u were freed\n"),
					 n->undo_pages, n->undo_freed);
}

/*
 * The cutoffs are from the beginning of VACUUM: pg_class, and its relcache
 * entry, may have new values since.
 */
static void
report_xids(IpVacuum *v, StringInfo buf)
{
	IpVacuumCounts *n = &v->n;

	appendStringInfo(buf, _("removable cutoff: %u, which was %d XIDs old when operation ended\n"),
					 v->cutoffs.OldestXmin,
					 (int32) (ReadNextTransactionId() - v->cutoffs.OldestXmin));
	if (n->frozenxid_updated)
		appendStringInfo(buf, _("new relfrozenxid: %u, which is %d XIDs ahead of previous value\n"),
						 n->frozenxid,
						 (int32) (n->frozenxid - v->cutoffs.relfrozenxid));
	if (n->minmulti_updated)
		appendStringInfo(buf, _("new relminmxid: %u, which is %d MXIDs ahead of previous value\n"),
						 v->cutoffs.OldestMxact,
						 (int32) (v->cutoffs.OldestMxact -
								  v->cutoffs.relminmxid));
	compat_report_frozen(buf, n->frozen_pages,
						 percent_of_table(v, n->frozen_pages), n->frozen_rows);
	compat_report_map(buf, n->set_visible, n->set_frozen, n->were_visible);
}

static void
report_index_scan(IpVacuum *v, StringInfo buf)
{
	IpVacuumCounts *n = &v->n;
	const char *format = _("%u pages from table (%.2f%% of total) had %lld dead item identifiers removed\n");

	if (v->failsafe ||
		(n->dead_items + n->stale_pages > 0 && n->index_scans == 0 &&
		 ip_vacuum_nindexes(v) > 0))
	{
		appendStringInfoString(buf, v->failsafe ? _("index scan bypassed by failsafe: ") :
							   _("index scan bypassed: "));
		format = _("%u pages from table (%.2f%% of total) have %lld dead item identifiers\n");
	}
	else
		appendStringInfoString(buf, n->index_scans == 0 ? _("index scan not needed: ") :
							   _("index scan needed: "));
	appendStringInfo(buf, format, n->dead_item_pages,
					 percent_of_table(v, n->dead_item_pages),
					 (long long) n->dead_items);
	ip_vacuum_indexes_report(v, buf);
	compat_report_delay(buf);
}

static void
report_usage(const IpVacuum *v, IpVacuumUsage *u, StringInfo buf)
{
	double		seconds = (GetCurrentTimestamp() - u->start) / 1000000.0;
	WalUsage	wal = {0};
	BufferUsage buffers = {0};
	int64		hit;
	int64		miss;
	int64		dirty;
	double		read_rate = 0;
	double		write_rate = 0;

	WalUsageAccumDiff(&wal, &pgWalUsage, &u->wal);
	BufferUsageAccumDiff(&buffers, &pgBufferUsage, &u->buffers);
	hit = buffers.shared_blks_hit + buffers.local_blks_hit;
	miss = buffers.shared_blks_read + buffers.local_blks_read;
	dirty = buffers.shared_blks_dirtied + buffers.local_blks_dirtied;
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
	compat_report_buffers(buf, hit, miss, dirty);
	compat_report_wal(buf, &wal);
	compat_report_memory(buf, v->n.dead_memory, v->n.dead_resets,
						 v->n.dead_limit);
	appendStringInfo(buf, _("system usage: %s"), pg_rusage_show(&u->rusage));
}

static bool
may_report(const VacuumParams *params)
{
	return (params->options & VACOPT_VERBOSE) != 0 ||
		(AmAutoVacuumWorkerProcess() && CompatLogDuration(params) >= 0);
}

void
ip_vacuum_report(IpVacuum *v, IpVacuumUsage *usage, double row_count)
{
	bool		verbose = (v->params->options & VACOPT_VERBOSE) != 0;
	const char *format = _("finished vacuuming \"%s.%s.%s\": index scans: %d\n");
	StringInfoData buf;

	if (!may_report(v->params) ||
		(!verbose &&
		 !TimestampDifferenceExceeds(usage->start, GetCurrentTimestamp(),
									 CompatLogDuration(v->params))))
		return;
	if (!verbose)
		format = v->params->is_wraparound ?
			_("automatic vacuum to prevent wraparound of table \"%s.%s.%s\": index scans: %d\n") :
			_("automatic vacuum of table \"%s.%s.%s\": index scans: %d\n");
	initStringInfo(&buf);
	appendStringInfo(&buf, format, get_database_name(MyDatabaseId),
					 get_namespace_name(RelationGetNamespace(v->rel)),
					 RelationGetRelationName(v->rel), v->n.index_scans);
	report_rows(v, &buf, row_count);
	report_xids(v, &buf);
	report_index_scan(v, &buf);
	report_usage(v, usage, &buf);
	ereport(verbose ? INFO : LOG, (errmsg_internal("%s", buf.data)));
	pfree(buf.data);
}
