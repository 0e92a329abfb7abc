# Readers put pages in order that nobody changes any more: rows that are overlaid or rolled back, rows that all see, and the bits of
# the visibility map.  Counted in buffers and heap fetches.  Then the record that sets these bits, on a standby and after crashes,
# with and without data checksums.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_cluster(
	'primary',
	streaming => 1,
	conf      => q(
autovacuum = off
wal_log_hints = off
wal_keep_size = '1GB'
wal_consistency_checking = 'heap, heap2, btree, inplace'
));
my $has_map = $primary->safe_psql('postgres', q(SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_visibility'));
$primary->safe_psql('postgres', 'CREATE EXTENSION IF NOT EXISTS pg_visibility') if $has_map;
my $standby = new_standby($primary, q(
max_standby_streaming_delay = '10ms'
hot_standby_feedback = off
));

sql_on(\$primary);

my $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = on';
my $by_table = 'SET enable_indexscan = off; SET enable_bitmapscan = off; SET max_parallel_workers_per_gather = 0';
my $all = 'SELECT count(id), sum(id) FROM t WHERE id > 0';
my $range = 'SELECT count(id), sum(id) FROM t WHERE id BETWEEN 5001 AND 5100';

# Buffers of a sequential scan of all.
sub scan_buffers
{
	my ($node, $query) = @_;
	my $plan = $node->safe_psql('postgres', "$by_table; EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) " . ($query // 'SELECT * FROM t'));
	my ($hit) = $plan =~ /^ *Buffers:.*hit=(\d+)/m;
	my ($read) = $plan =~ /^ *Buffers:.*read=(\d+)/m;
	die "no sequential scan: $plan" if $plan !~ /Seq Scan/;
	return ($hit // 0) + ($read // 0);
}

# Heap fetches and buffers of an index-only scan.
sub index_only
{
	my ($node, $query) = @_;
	my $plan = $node->safe_psql('postgres', "$by_index; EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) $query");
	my ($fetches) = $plan =~ /Index Only Scan.*Heap Fetches: (\d+)/s or die "no index-only scan: $plan";
	my ($hit) = $plan =~ /^ *Buffers:.*hit=(\d+)/m;
	my ($read) = $plan =~ /^ *Buffers:.*read=(\d+)/m;
	return wantarray ? ($fetches, ($hit // 0) + ($read // 0)) : $fetches;
}

# The map on this server, and how many pages in it are all-visible; before a last block of rows, say.
sub map_of
{
	my ($node) = @_;
	return $has_map ? $node->safe_psql('postgres', q(SELECT string_agg(concat(blkno, all_visible, all_frozen), ' ' ORDER BY blkno) FROM pg_visibility_map('t')))
	  : 'pg_visibility is not installed';
}

sub catch_up
{
	sql(q(SELECT pg_logical_emit_message(true, '', '')));
	$primary->wait_for_catchup($standby);
	return;
}

# Pages are full: what does not fit behind their rows goes to rings, and rows are overlaid.
sub make_table
{
	sql('DROP TABLE IF EXISTS t', 'CREATE TABLE t (id int PRIMARY KEY, n int, s text) USING inplace',
		q(INSERT INTO t SELECT i, 0, repeat('s', 40) FROM generate_series(1, 20000) i), 'VACUUM t');
	return;
}

sub same_as_before
{
	my ($before, $name) = @_;
	is(sql("$by_index; $all"), $before, "$name: index-only scan");
	is(sql("$by_table; $all"), $before, "$name: sequential scan");
	tables_ok($primary, $name, 't');
	return;
}

# ---- a snapshot has made rows overlaid -------------------------------------------

make_table();
my $sum = sql($all);
my $before = scan_buffers($primary);
my ($fetches, $range_before) = index_only($primary, $range);
is($fetches, 0, 'an index-only scan after VACUUM fetches no row');

# What has them hold on is a snapshot, one of another database, or a prepared transaction; and who reads first.
sub reads_are_cheap
{
	my ($name, $first) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $session = $primary->background_psql($name =~ /database/ ? 'template1' : 'postgres');
	$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
	$session->query_safe('SELECT pg_current_xact_id()') if $name =~ /database/;
	sql('UPDATE t SET n = n + 1');
	sql('UPDATE t SET n = n + 1');
	my $held = sql("$by_table; SELECT count(n), max(n) FROM t");
	cmp_ok(scan_buffers($primary), '>', 2 * $before, "$name: while it lasts, rows have their first bytes in undo pages");
	$session->query_safe('COMMIT');
	$session->quit;
	if ($first eq 'sequential scan')
	{
		scan_buffers($primary);
	}
	elsif ($first eq 'sample')
	{
		sql('SELECT count(*) FROM t TABLESAMPLE SYSTEM (100)');
	}
	elsif ($first eq 'bitmap scan')
	{
		sql('SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off', 'SELECT count(n) FROM t WHERE id > 0');
	}
	elsif ($first eq 'parallel scan')
	{
		sql('SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0',
			'SELECT count(n) FROM t');
	}
	else
	{
		sql("$by_index; SET enable_indexonlyscan = off", 'SELECT count(n) FROM t WHERE id > 0');
	}
	cmp_ok(scan_buffers($primary), '<=', 1.05 * $before, "$name: after a $first a scan reads pages of rows only");
	($fetches, my $buffers) = index_only($primary, $range);
	is($fetches, 0, "$name: after a $first an index-only scan fetches no row");
	cmp_ok($buffers, '<=', 10, "$name: an index-only scan of 100 rows reads 10 buffers at most");
	is(sql("$by_table; SELECT count(n), max(n) FROM t"), $held, "$name: the rows are what they were");
	same_as_before($sum, "$name, $first");
	return;
}

reads_are_cheap('snapshot', 'sequential scan');
reads_are_cheap('snapshot', 'sample');
reads_are_cheap('snapshot', 'bitmap scan');
reads_are_cheap('snapshot', 'index scan');
reads_are_cheap('transaction of another database', 'parallel scan');

# A few rows by index: their pages only.
{
	my $session = $primary->background_psql('postgres');
	$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
	sql('UPDATE t SET n = n + 1');
	sql('UPDATE t SET n = n + 1');
	$session->query_safe('COMMIT');
	$session->quit;
	my $one = "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) SELECT * FROM t WHERE id = 7000";
	my ($first) = sql("$by_index; $one") =~ /^ *Buffers:.*hit=(\d+)/m;
	my ($second) = sql("$by_index; $one") =~ /^ *Buffers:.*hit=(\d+)/m;
	cmp_ok($second, '<', $first, 'a lookup heals the page of a row for which it had to read an undo page');
	cmp_ok(index_only($primary, $all), '>=', 100, 'and no other');
	is(index_only($primary, $all), 0, 'a scan heals each page whose rows it fetches');
}

# ---- bits come back ----------------------------------------------------------------

sub heals
{
	my ($name, @changes) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	sql($_) foreach @changes;
	cmp_ok(index_only($primary, $range), '>', 0, "$name: rows are fetched after that") if $name !~ /lock/;
	sql($all) if $name =~ /index-only/;
	scan_buffers($primary) if $name =~ /sequential/;
	sql("$by_index; $all") if $name =~ /by index/;
	is(index_only($primary, $all), 0, "$name: no heap fetches");
	same_as_before($sum, $name);
	return;
}

heals('row locks', 'BEGIN; SELECT count(*) FROM (SELECT FROM t FOR KEY SHARE) l; COMMIT');
heals('an update, and a sequential scan', 'UPDATE t SET n = n + 1');
heals('an update, and a scan by index', 'UPDATE t SET n = n + 1');
heals('an update of one row of each page, and a sequential scan', 'UPDATE t SET n = n + 1 WHERE id % 50 = 1');
heals('a rolled back update, and a sequential scan', 'BEGIN; UPDATE t SET n = -1; ROLLBACK');
heals('a rolled back deletion, and a scan by index', 'BEGIN; DELETE FROM t; ROLLBACK');
heals('an update by savepoints, and a sequential scan',
	'BEGIN; SAVEPOINT a; UPDATE t SET n = 1; ROLLBACK TO a; UPDATE t SET n = 2; SAVEPOINT b; UPDATE t SET n = 3 WHERE id % 2 = 0; ROLLBACK TO b; COMMIT');

sql('DROP TABLE t', 'CREATE TABLE t (id int PRIMARY KEY, n int, s text) USING inplace');
sql(q(INSERT INTO t SELECT i, 0, repeat('s', 40) FROM generate_series(1, 20000) i));
heals('never vacuumed, a sequential scan');

# ---- what readers leave alone ---------------------------------------------------------

# Reading says how many of all rows have to be fetched afterwards.
sub fetched_after
{
	my (@reads) = @_;
	sql(@reads);
	return index_only($primary, 'SELECT count(id) FROM t WHERE id > 0');
}

sql('UPDATE t SET n = n + 1');
cmp_ok(fetched_after('BEGIN', 'LOCK t IN ROW SHARE MODE', $by_table, 'SELECT count(n) FROM t', 'COMMIT', 'SELECT 1'),
	'>', 0, 'who has locked the table to change it heals nothing');
scan_buffers($primary);
is(index_only($primary, $all), 0, 'the next reader does');

{
	my $session = $primary->background_psql('postgres');
	$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(n) FROM t');
	sql('UPDATE t SET n = n + 1 WHERE id <= 200');
	scan_buffers($primary) foreach 1, 2;
	cmp_ok(index_only($primary, 'SELECT count(id) FROM t WHERE id <= 200'), '>=', 200, 'what a snapshot may not see is not all-visible');
	my $range_fetches = index_only($primary, $range);
	is($range_fetches, 0, 'other pages are');
	$session->query_safe('COMMIT');
	$session->query_safe('BEGIN; UPDATE t SET n = n + 1 WHERE id = 5050');
	scan_buffers($primary) foreach 1, 2;
	cmp_ok(index_only($primary, $range), '>', 0, 'nor is the page of a row that is being changed');
	$session->query_safe('ROLLBACK');
	$session->query_safe('BEGIN READ ONLY; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; SET enable_indexscan = off; SET enable_bitmapscan = off');
	$session->query_safe('SELECT count(n) FROM t');
	is(index_only($primary, $all), 0, 'a serializable read-only transaction heals');
	$session->query_safe('COMMIT');
	$session->quit;
}

# Dead items stay for VACUUM, and keep their pages' bits away; readers do not come back for them.
sql('DELETE FROM t WHERE id % 1000 = 1');
scan_buffers($primary);
my $from = sql('SELECT pg_current_wal_insert_lsn()');
scan_buffers($primary) foreach 1 .. 3;
# readers of catalogs write WAL, too; the message has all of it flushed
sql("SELECT pg_logical_emit_message(true, '', '')");
is(sql("SELECT coalesce(sum(count), 0) FROM inplace_wal_summary('$from', pg_current_wal_flush_lsn()) WHERE resource_manager = 'inplace'"),
	0, 'a page with dead items is pruned once');
cmp_ok(index_only($primary, $all), '>', 0, 'and is not all-visible');
sql('VACUUM (INDEX_CLEANUP ON) t');
is(index_only($primary, $all), 0, 'until VACUUM');
$sum = sql($all);
same_as_before($sum, 'after VACUUM');

# A table of the transaction's own.
is( sql('CREATE TEMP TABLE own (id int PRIMARY KEY, n int) USING inplace', 'INSERT INTO own SELECT i, 0 FROM generate_series(1, 1000) i',
		'UPDATE own SET n = 1 WHERE id % 3 = 0', 'SET enable_indexscan = off', 'SELECT sum(n) FROM own', 'SELECT sum(n) FROM own'),
	"333\n333", 'a temporary table');

# ---- on a standby -------------------------------------------------------------------

catch_up();
is(map_of($standby), map_of($primary), "the standby's map is the primary's");
{
	my $session = $standby->background_psql('postgres', on_error_stop => 0);
	$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(n) FROM t');
	sql('UPDATE t SET n = n + 1 WHERE id % 500 = 2');
	catch_up();
	is(index_only($standby, 'SELECT count(id) FROM t WHERE id > 0') > 0, 1, 'an update clears bits on the standby');
	$session->query_safe('SELECT count(n) FROM t');
	my $lsn = $standby->safe_psql('postgres', 'SELECT pg_last_wal_replay_lsn()');
	scan_buffers($standby) foreach 1, 2;
	is(index_only($standby, 'SELECT count(id) FROM t WHERE id > 0') > 0, 1, 'a reader on the standby heals nothing');
	# the primary's readers do, which ends a snapshot that does not see the update
	scan_buffers($primary);
	catch_up();
	is($standby->safe_psql('postgres', q(SELECT confl_snapshot FROM pg_stat_database_conflicts WHERE datname = 'postgres')),
		1, 'a snapshot on the standby that does not see the update is cancelled');
	is(index_only($standby, $all), 0, 'no heap fetches on the standby');
	is($standby->safe_psql('postgres', "$by_index; $all"), $sum, 'the rows are right');
	is(map_of($standby), map_of($primary), "the standby's map is the primary's again");
	tables_ok($standby, 'standby', 't');
	$session->quit;
}

# ---- crashes ----------------------------------------------------------------------

# WAL of these operations since then: how many, and bytes of images in their records.
sub operations
{
	my ($from) = @_;
	sql(q(SELECT pg_logical_emit_message(true, '', '')));
	return sql("SELECT coalesce(sum(count) FILTER (WHERE operation = 'all-visible'), 0), coalesce(sum(image_bytes) FILTER (WHERE operation IS NULL), 0)
		FROM inplace_wal_summary('$from', pg_current_wal_flush_lsn()) WHERE resource_manager = 'inplace'");
}

sub survives_crash
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $map = map_of($primary);
	sql(q(SELECT pg_logical_emit_message(true, '', '')));
	$primary->stop('immediate');
	$primary->start;
	is(map_of($primary), $map, "$name: the map after a crash is what it was") if $has_map;
	is(index_only($primary, $all), 0, "$name: no heap fetches after a crash");
	same_as_before($sum, "$name, after a crash");
	return;
}

foreach my $checksums ('without checksums', 'with checksums')
{
	if ($checksums eq 'with checksums')
	{
		$primary->stop;
		command_ok([ 'pg_checksums', '--enable', '--no-sync', '--pgdata', $primary->data_dir ], 'checksums are there');
		$primary->start;
	}
	# rows that have been put as they are: only the bits are missing
	$primary->safe_psql('postgres', q(ALTER SYSTEM SET wal_consistency_checking = ''));
	$primary->reload;
	make_table();
	$sum = sql($all);
	sql('CLUSTER t USING t_pkey');
	sql('CHECKPOINT');
	$from = sql('SELECT pg_current_wal_insert_lsn()');
	sql('VACUUM t');
	my ($n, $bytes) = split /\|/, operations($from);
	cmp_ok($n, '>', 100, "$checksums: VACUUM has set bits");
	cmp_ok($bytes, $checksums eq 'with checksums' ? '>' : '<', 200_000, "$checksums: images of pages of which only a bit changes");
	survives_crash("$checksums, bits only");

	# images of the pages, and none
	foreach my $images ('images', 'no images')
	{
		sql('UPDATE t SET n = n + 1');
		sql('CHECKPOINT') if $images eq 'images';
		scan_buffers($primary);
		survives_crash("$checksums, healed, $images");
	}

	# a change behind it
	sql('UPDATE t SET n = n + 1');
	scan_buffers($primary);
	sql('CHECKPOINT');
	sql('UPDATE t SET n = n + 1 WHERE id % 500 = 2');
	my $map = map_of($primary);
	$primary->stop('immediate');
	$primary->start;
	is(map_of($primary), $map, "$checksums: bits that have been cleared again") if $has_map;
	same_as_before($sum, "$checksums: cleared again");
	scan_buffers($primary);
	is(index_only($primary, $all), 0, "$checksums: and set again");
	$primary->safe_psql('postgres', 'ALTER SYSTEM RESET wal_consistency_checking');
	$primary->reload;
}

# A promoted standby's readers go on.
$standby->stop;
$primary->backup('second');
my $second = PostgreSQL::Test::Cluster->new('second');
$second->init_from_backup($primary, 'second', has_streaming => 1);
$second->start;
sql('UPDATE t SET n = n + 1');
sql(q(SELECT pg_logical_emit_message(true, '', '')));
$primary->wait_for_catchup($second);
$primary->stop('immediate');
$second->promote;
cmp_ok(index_only($second, $range), '>', 0, 'promoted: rows are fetched');
scan_buffers($second);
is(index_only($second, $all), 0, 'promoted: no heap fetches after a scan');
tables_ok($second, 'promoted', 't');

log_ok($_, $_->name) foreach $primary, $standby, $second;
done_testing();
