# VACUUM's options and what it tells of its work: counts, skipped pages, index
# cycles, workers, truncation, undo, cost delay, progress, cancellation by locks.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

test_seed();

# No autovacuum: each VACUUM here is to find all that the statements before it left.
my $node = new_cluster(
	'main', conf => qq(
autovacuum = off
max_wal_size = 4GB
shared_buffers = 64MB
max_worker_processes = 12
max_parallel_maintenance_workers = 4
));

# ---- VACUUM VERBOSE, taken apart ------------------------------------------------

# Runs VACUUM (VERBOSE, options) with some settings; returns a hash of its numbers,
# with the whole text as {text} and the seconds it took as {seconds}.
sub vacuum
{
	my ($options, $table, %settings) = @_;
	my $set = join '', map { "SET $_ = '$settings{$_}';\n" } sort keys %settings;
	my $list = join ', ', grep { $_ ne '' } 'VERBOSE', $options;
	my ($stdout, $text);
	my $start = time;
	my $status = $node->psql(
		'postgres', "${set}VACUUM ($list) $table;",
		stdout => \$stdout, stderr => \$text);
	die "VACUUM ($list) $table failed: $text" if $status != 0;
	note($text);

	my %found = (text => $text, seconds => time - $start);
	# the table's own part comes before its TOAST table's
	my ($report) =
	  $text =~ /(finished vacuuming "postgres\.\w+\.$table".*?system usage: [^\n]*)/s;
	return \%found unless defined $report;
	($found{index_scans}) = $report =~ /index scans: (\d+)/;
	@found{qw(truncated remain scanned)} =
	  $report =~ /pages: (\d+) removed, (\d+) remain, (\d+) scanned/;
	@found{qw(removed live recently)} = $report =~
	  /tuples: (\d+) removed, (\d+) remain, (\d+) are dead but not yet removable/;
	@found{qw(undo undo_freed)} = $report =~ /undo: (\d+) pages, of which (\d+) were freed/;
	($found{indexes}) = $report =~ /index scan (needed|not needed|bypassed)/;
	@found{qw(dead_item_pages dead_items)} =
	  $report =~ /(\d+) pages from table \([\d.]+% of total\) ha(?:d|ve) (\d+) dead item identifiers/;
	@found{qw(frozen_pages frozen)} = $report =~ /frozen: (\d+) pages from table \([\d.]+% of total\) had (\d+) tuples frozen/;
	@found{qw(set_visible set_frozen were_visible)} =
	  $report =~ /visibility map: (\d+) pages set all-visible, (\d+) pages set all-frozen \((\d+) were all-visible\)/;
	return \%found;
}

sql_on(\$node);

# One test: these numbers of VERBOSE's are so.
sub vacuum_is
{
	my ($found, $name, %expected) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my @wrong = grep { ($found->{$_} // 'missing') ne $expected{$_} } sort keys %expected;
	ok(!@wrong, $name)
	  or diag(map { "$_: " . ($found->{$_} // 'missing') . ", expected $expected{$_}\n" } @wrong);
	return;
}

# What the server says from a version on about so many rows of so many pages: that they name no transaction any more,
# and that the pages have become all-visible.
sub frozen
{
	my ($pages, $rows, $visible) = @_;
	return (
		frozen_pages => $node->pg_version >= 16 ? $pages : 'missing',
		frozen       => $node->pg_version >= 16 ? $rows  : 'missing',
		map { $_ => $node->pg_version >= 18 ? $_ eq 'were_visible' ? 0 : $visible : 'missing' }
		  qw(set_visible set_frozen were_visible));
}

# ---- what is scanned, what is found ---------------------------------------------

sql('CREATE TABLE t (id int PRIMARY KEY, v int, note text) USING inplace',
	"INSERT INTO t SELECT i, i % 100, 'note ' || i FROM generate_series(1, 50000) i");
my $all   = pages_of('t');
my $found = vacuum('', 't');
vacuum_is($found, 'the first VACUUM looks at all pages',
	scanned => $all, live => 50000, removed => 0, indexes => 'not needed', index_scans => 0,
	frozen($all - 1, 50000, $all - 1));

$found = vacuum('', 't');
cmp_ok($found->{scanned}, '<=', 1, 'the second one skips all-visible pages');
is(sql("SELECT relallvisible > 0 AND relallvisible >= relpages - 1 FROM pg_class WHERE relname = 't'"),
	't', 'relallvisible');
$found = vacuum('DISABLE_PAGE_SKIPPING', 't');
vacuum_is($found, 'DISABLE_PAGE_SKIPPING looks at all', scanned => $all, live => 50000, frozen(0, 0, 0));

sql('UPDATE t SET v = v + 1 WHERE id = 700');
$found = vacuum('', 't');
ok($found->{scanned} >= 2 && $found->{scanned} <= 10,
	'after an update of one row: its page, the metapage and undo')
  or diag("scanned: $found->{scanned}");
vacuum_is($found, 'an update in place leaves no dead row', removed => 0, frozen(1, 1, 1));
my $estimate = sql("SELECT reltuples FROM pg_class WHERE relname = 't'");
ok($estimate > 49000 && $estimate < 51000, 'reltuples from a part of the pages')
  or diag("reltuples: $estimate");

# ---- a table that only readers have visited before -----------------------------------

sql('CREATE TABLE fresh (id int) USING inplace', 'INSERT INTO fresh SELECT generate_series(1, 1000)');
sql('SELECT count(*) FROM fresh');
$found = vacuum('', 'fresh');
vacuum_is($found, 'a first VACUUM counts the rows of all-visible pages', scanned => pages_of('fresh'), live => 1000);
is(sql(q(SELECT reltuples || ' ' || pg_stat_get_live_tuples(oid) FROM pg_class WHERE relname = 'fresh')), '1000 1000', 'and so says the table');

# ... or that has grown since its last VACUUM, by pages that only readers have visited since
sql('INSERT INTO fresh SELECT generate_series(1, 20000)') for 1 .. 2;
sql('SELECT count(*) FROM fresh') for 1 .. 2;
vacuum('', 'fresh');
my $grown = sql("SELECT reltuples FROM pg_class WHERE relname = 'fresh'");
ok($grown > 40500 && $grown < 41500, 'VACUUM counts the rows of pages that are new')
  or diag("reltuples: $grown");
sql('CREATE TABLE filled (id int) USING inplace', 'VACUUM filled', 'INSERT INTO filled SELECT generate_series(1, 20000)');
sql('SELECT count(*) FROM filled') for 1 .. 2;
vacuum('', 'filled');
is(sql(q(SELECT reltuples || ' ' || pg_stat_get_live_tuples(oid) FROM pg_class WHERE relname = 'filled')), '20000 20000', 'so it does in a table that was empty');

# ---- the bypass -------------------------------------------------------------------

sub dead_items
{
	my ($table) = @_;
	return sql(
		"SELECT count(*) FROM generate_series(0, pg_relation_size('$table') / 8192 - 1) b,
		 inplace_rows('$table', b) WHERE state = 'dead'");
}

sql('DELETE FROM t WHERE id BETWEEN 100 AND 199');
$found = vacuum('', 't');
vacuum_is($found, 'few dead rows: no index scan',
	removed => 100, indexes => 'bypassed', index_scans => 0, dead_items => 100, frozen(0, 0, 0));
is(dead_items('t'), 100, 'few dead rows: items stay dead');
$found = vacuum('INDEX_CLEANUP ON', 't');
vacuum_is($found, 'INDEX_CLEANUP ON: index scan', indexes => 'needed', index_scans => 1, removed => 0,
	dead_items => 100, frozen(0, 0, $found->{dead_item_pages}));
is(dead_items('t'), 0, 'INDEX_CLEANUP ON: no dead item stays');

sql('DELETE FROM t WHERE id % 10 = 3');
my $deleted = 5000 - 10;
$found = vacuum('INDEX_CLEANUP OFF', 't');
vacuum_is($found, 'INDEX_CLEANUP OFF', index_scans => 0, indexes => 'bypassed', removed => $deleted);
is(dead_items('t'), $deleted, 'INDEX_CLEANUP OFF: items stay dead');
$found = vacuum('', 't');
vacuum_is($found, 'many dead rows: index scan', index_scans => 1, indexes => 'needed', removed => 0,
	dead_items => $deleted);
is(dead_items('t'), 0, 'many dead rows: no dead item stays');
tables_ok($node, 'after index cleanup', 't');

# ---- snapshots --------------------------------------------------------------------

my $reader = $node->background_psql('postgres', on_error_stop => 1);
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
sql('DELETE FROM t WHERE id % 10 = 4');
my $gone = 50000 - 100 - $deleted - sql('SELECT count(*) FROM t');
$found = vacuum('', 't');
vacuum_is($found, 'rows that a snapshot sees stay', removed => 0, recently => $gone, index_scans => 0);
is($reader->query_safe('SELECT count(*) FROM t'), 50000 - 100 - $deleted, 'and it sees them');
$reader->query_safe('COMMIT');
$found = vacuum('', 't');
vacuum_is($found, 'and go afterwards', removed => $gone, recently => 0, index_scans => 1);

# ---- undo ---------------------------------------------------------------------------

my $before = pages_of('t');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT sum(v) FROM t');
my $sum = $reader->query_safe('SELECT sum(v) FROM t');
sql(map { 'UPDATE t SET v = v + 1' } 1 .. 4);
my $grown = pages_of('t');
cmp_ok($grown, '>', $before * 1.5, 'a held snapshot makes undo grow');
$found = vacuum('', 't');
cmp_ok($found->{undo_freed}, '<', $found->{undo} / 10, 'undo that a snapshot needs stays');
is($reader->query_safe('SELECT sum(v) FROM t'), $sum, 'the snapshot still reads through it');
$reader->query_safe('COMMIT');
my $undo = $found->{undo};
$found = vacuum('', 't');
cmp_ok($found->{undo_freed}, '>=', $undo * 0.9, 'it is freed when the snapshot is gone');
cmp_ok(pages_of('t'), '<=', $before * 1.1, 'and the file as small as before') or diag("before $before, grown $grown");
tables_ok($node, 'after shrinking', 't');

# The same when the undo is that of a big transaction that was rolled back.
sql('BEGIN; UPDATE t SET v = v + 1; UPDATE t SET v = v + 1; ROLLBACK');
cmp_ok(pages_of('t'), '>', $before * 1.3, 'a big transaction makes undo grow');
vacuum('', 't');
vacuum('', 't');
cmp_ok(pages_of('t'), '<=', $before * 1.1, 'VACUUM gives it back after a rollback');
is(sql('SELECT sum(v) FROM t'), $sum + 4 * sql('SELECT count(*) FROM t'), 'with the rows as they were');
tables_ok($node, 'after a rollback', 't');

# ---- several index cycles -----------------------------------------------------------

# 8 million rows, of each page some 30 dead ones anywhere: more than 1 MB.
sql('CREATE TABLE many (id int) USING inplace', q(COPY many FROM PROGRAM 'seq 1 8000000'),
	'CREATE INDEX many_a ON many (id) WHERE id % 20 = 0', 'CREATE INDEX many_b ON many (id) WHERE id % 25 = 0');
foreach my $options ('PARALLEL 0', 'PARALLEL 2')
{
	my $n = sql("WITH d AS (DELETE FROM many WHERE hashint4(id) % 10 = "
		  . ($options eq 'PARALLEL 0' ? 0 : 5) . ' RETURNING 1) SELECT count(*) FROM d');
	$found = vacuum($options, 'many', maintenance_work_mem => '1MB');
	cmp_ok($found->{index_scans}, '>=', 2, "$options: several index scans with 1 MB");
	vacuum_is($found, "$options: all dead rows in several cycles", removed => $n, dead_items => $n);
	like($found->{text}, qr/launched [12] parallel vacuum workers? for index vacuuming \(planned: [12]\)/,
		'workers in several cycles')
	  if $options eq 'PARALLEL 2';
	tables_ok($node, "$options, several cycles", 'many');
}
is(sql(q(SELECT count(*) FROM many WHERE id % 20 = 0)),
	sql(q(SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off;
		SELECT count(*) FROM many WHERE id % 20 = 0)), 'partial index after several cycles');
sql('DROP TABLE many');

# ---- workers --------------------------------------------------------------------------

sql('CREATE TABLE p (a int, b int, c int, d text) USING inplace',
	q(INSERT INTO p SELECT i, i * 7, i % 1000, 'd' || i FROM generate_series(1, 60000) i),
	'CREATE INDEX ON p (a)', 'CREATE INDEX ON p (b)', 'CREATE INDEX ON p (c)',
	'CREATE INDEX ON p USING hash (a)', 'CREATE INDEX ON p USING gin ((ARRAY[c, b % 10]))');
my $part = 0;
sub vacuum_part
{
	my ($options, %settings) = @_;
	sql("DELETE FROM p WHERE a % 20 = $part");
	$part++;
	return vacuum($options, 'p', %settings);
}
$found = vacuum_part('PARALLEL 2', min_parallel_index_scan_size => 0);
like($found->{text}, qr/launched 2 parallel vacuum workers for index vacuuming \(planned: 2\)/, 'PARALLEL 2: 2 workers');
vacuum_is($found, 'PARALLEL 2: rows', removed => 3000, index_scans => 1);
$found = vacuum_part('', min_parallel_index_scan_size => 0);
like($found->{text}, qr/launched 4 parallel vacuum workers for index vacuuming \(planned: 4\)/, 'as many as there are');
$found = vacuum_part('', min_parallel_index_scan_size => 0, max_parallel_maintenance_workers => 1);
like($found->{text}, qr/launched 1 parallel vacuum worker\w* for index vacuuming \(planned: 1\)/,
	'max_parallel_maintenance_workers');
$found = vacuum_part('PARALLEL 0', min_parallel_index_scan_size => 0);
unlike($found->{text}, qr/launched/, 'PARALLEL 0: none');
$found = vacuum_part('PARALLEL 4', min_parallel_index_scan_size => '1GB');
unlike($found->{text}, qr/launched/, 'none for small indexes');
$found = vacuum_part('PARALLEL 2', min_parallel_index_scan_size => 0, vacuum_cost_delay => '1ms');
like($found->{text}, qr/launched 2 parallel/, 'workers that share a cost balance');
$found = vacuum_part('PARALLEL 2, INDEX_CLEANUP OFF', min_parallel_index_scan_size => 0);
unlike($found->{text}, qr/launched/, 'INDEX_CLEANUP OFF: none');
$found = vacuum('PARALLEL 2', 'p', min_parallel_index_scan_size => 0);
tables_ok($node, 'parallel VACUUM', 'p');
is(sql('SET enable_seqscan = off; SELECT count(*) FROM p WHERE ARRAY[c, b % 10] @> ARRAY[5]'),
	sql('SELECT count(*) FROM p WHERE ARRAY[c, b % 10] @> ARRAY[5]'), 'GIN index after parallel VACUUM');

my (undef, undef, $warning) = $node->psql(
	'postgres', q(
CREATE TEMP TABLE tmp (a int, b int) USING inplace;
CREATE INDEX ON tmp (a);
CREATE INDEX ON tmp (b);
INSERT INTO tmp SELECT i, i FROM generate_series(1, 3000) i;
DELETE FROM tmp WHERE a % 2 = 0;
SET min_parallel_index_scan_size = 0;
VACUUM (PARALLEL 2, VERBOSE) tmp;));
like($warning, qr/WARNING:  disabling parallel option of vacuum on "tmp" --- cannot vacuum temporary tables in parallel/,
	'temporary table: warning');
like($warning, qr/tuples: 1500 removed/, 'temporary table: VACUUM all the same');
unlike($warning, qr/launched/, 'temporary table: no worker');

# ---- truncation -------------------------------------------------------------------------

sql('CREATE TABLE tail (id int PRIMARY KEY, note text) USING inplace',
	q(INSERT INTO tail SELECT i, repeat('x', 100) FROM generate_series(1, 60000) i));
vacuum('', 'tail');
$before = pages_of('tail');
sql('DELETE FROM tail WHERE id > 30000');
$found = vacuum('TRUNCATE OFF', 'tail');
vacuum_is($found, 'TRUNCATE OFF', truncated => 0, removed => 30000);
cmp_ok(pages_of('tail'), '>=', $before, 'TRUNCATE OFF: as large as before');

# A reader's lock is in the way: VACUUM waits for a while, then does without.
$reader->query_safe('BEGIN; SELECT FROM tail LIMIT 1');
$found = vacuum('TRUNCATE ON', 'tail');
vacuum_is($found, 'a reader prevents truncation', truncated => 0);
like($found->{text}, qr/"tail": stopping truncate due to conflicting lock request/, 'and VERBOSE says so');
cmp_ok($found->{seconds}, '>', 4, 'after some tries');
$reader->query_safe('COMMIT');
$found = vacuum('', 'tail');
cmp_ok($found->{truncated}, '>', $before * 0.4, 'without a reader the tail is cut off');
like($found->{text}, qr/table "tail": truncated \d+ to \d+ pages/, 'and VERBOSE says so');
cmp_ok(pages_of('tail'), '<', $before * 0.65, 'the file is shorter');
tables_ok($node, 'after truncation', 'tail');

# Somebody who waits for VACUUM's lock does not wait for long, and reads on.
sql('DELETE FROM tail WHERE id > 100');
my $bench = start_pgbench($node, clients => 2, seconds => 2,
	scripts => [ [ "SELECT count(*) FROM tail WHERE id < 200;\n", 1 ] ]);
foreach (1 .. 3)
{
	vacuum('', 'tail');
	sql('INSERT INTO tail SELECT i, repeat(\'x\', 100) FROM generate_series(1000, 20000) i',
		'DELETE FROM tail WHERE id >= 1000');
}
my $result = finish_pgbench($bench);
is($result->{errors}, '', 'readers during truncation see no error');
vacuum('', 'tail');
vacuum('', 'tail');
is(sql('SELECT count(*) FROM tail'), 100, 'rows before the tail');
tables_ok($node, 'readers during truncation', 'tail');

# ---- locks ----------------------------------------------------------------------------------

$reader->query_safe('BEGIN; LOCK TABLE p IN SHARE MODE');
$found = vacuum('SKIP_LOCKED', 'p');
like($found->{text}, qr/WARNING:  skipping vacuum of "p" --- lock not available/, 'SKIP_LOCKED');
ok(!defined $found->{scanned}, 'SKIP_LOCKED does nothing');
$reader->query_safe('COMMIT');
$found = vacuum('SKIP_LOCKED', 'p');
ok(defined $found->{scanned}, 'SKIP_LOCKED without a lock');

# A row lock of somebody else over an aborted change: VACUUM goes on without it, and
# relfrozenxid does not pass the aborted xid.
sql('CREATE TABLE locked (id int PRIMARY KEY, v int) USING inplace', 'INSERT INTO locked VALUES (1, 1), (2, 2)');
sql('BEGIN; UPDATE locked SET v = 100; ROLLBACK');
$reader->query_safe('BEGIN; SELECT FROM locked WHERE id = 1 FOR KEY SHARE');
vacuum('', 'locked');
is(sql('SELECT sum(v) FROM locked'), 3, 'VACUUM beside a row lock');
$reader->query_safe('COMMIT');
vacuum('', 'locked');
is(sql('SELECT sum(v) FROM locked'), 3, 'VACUUM after a row lock');
tables_ok($node, 'row locks', 'locked');

# ---- cost delay -------------------------------------------------------------------------------

# 100 ms for every 50 pages, which are all in memory.
sql('CREATE TABLE slow (id int PRIMARY KEY, v int, note text) USING inplace',
	q(INSERT INTO slow SELECT i, 0, repeat('s', 100) FROM generate_series(1, 30000) i));
vacuum('', 'slow');
my @slowly = (vacuum_cost_delay => '100ms', vacuum_cost_limit => 50, vacuum_cost_page_hit => 1,
	vacuum_cost_page_miss => 1, vacuum_cost_page_dirty => 1);
$found = vacuum('DISABLE_PAGE_SKIPPING', 'slow', @slowly);
my $least = 0.1 * ($found->{scanned} / 50 - 1);
cmp_ok($found->{seconds}, '>', $least, 'cost delay');

# ---- progress -----------------------------------------------------------------------------------

# 17 has other names
my $dead_columns = $node->pg_version >= 17 ? 'max_dead_tuple_bytes, num_dead_item_ids' : 'max_dead_tuples, num_dead_tuples';

my (%phases, @scanned, %last);
# Runs VACUUM of the table "slow" with these settings, and follows it.
sub watch_vacuum
{
	my @settings = @_;
	my $vacuum = $node->background_psql('postgres');
	$vacuum->query_safe("SET $settings[2 * $_] = '$settings[2 * $_ + 1]'") foreach 0 .. $#settings / 2;
	$vacuum->query_until(qr/began/, "\\echo began\nVACUUM slow;\n\\echo ended\n");
	(@scanned, %phases, %last) = ();
	for (my $idle = 0; !(%phases && $idle > 5) && $idle < 500;)
	{
		my $line = sql('SELECT phase, heap_blks_total, heap_blks_scanned, heap_blks_vacuumed, index_vacuum_count, '
			  . "$dead_columns FROM pg_stat_progress_vacuum WHERE relid = 'slow'::regclass");
		usleep(20_000);
		$idle = $line eq '' ? $idle + 1 : 0;
		next if $line eq '';
		my ($phase, @numbers) = split /\|/, $line;
		$phases{$phase}++;
		push @scanned, $numbers[1];
		foreach my $i (0 .. 5)
		{
			$last{$i} = $numbers[$i] if !defined $last{$i} || $numbers[$i] > $last{$i};
		}
	}
	$vacuum->query_until(qr/ended/, '');
	$vacuum->quit;
	return;
}

# A machine that is busy may not see each phase: then slower.
foreach my $limit (50, 5, 2)
{
	sql('TRUNCATE slow', q(INSERT INTO slow SELECT i, 0, repeat('s', 100) FROM generate_series(1, 30000) i),
		'DELETE FROM slow WHERE id % 3 = 0');
	watch_vacuum(@slowly, vacuum_cost_limit => $limit);
	last if keys %phases >= 3;
}
note(join ', ', map { "$_: $phases{$_}" } sort keys %phases);
foreach my $phase ('scanning heap', 'vacuuming indexes', 'vacuuming heap')
{
	ok($phases{$phase}, "pg_stat_progress_vacuum: $phase");
}
is("@scanned", join(' ', sort { $a <=> $b } @scanned), 'heap_blks_scanned goes up');
is($last{0}, $found->{scanned} + $last{0} - $found->{scanned}, 'heap_blks_total');
cmp_ok($last{0}, '>=', $found->{scanned}, 'heap_blks_total is all of the table');
is($last{1}, $last{0}, 'heap_blks_scanned reaches it');
cmp_ok($last{2}, '>', 0, 'heap_blks_vacuumed');
is($last{3}, 1, 'index_vacuum_count');
cmp_ok($last{4}, '>', 100_000, 'max_dead_tuples');
is($last{5}, 10000, 'num_dead_tuples');
tables_ok($node, 'slow VACUUM', 'slow');

# ---- statistics --------------------------------------------------------------------------------

is(sql(q(SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'p')), 0, 'n_dead_tup after VACUUM');
my $relfrozenxid = sql(q(SELECT relfrozenxid::text::bigint FROM pg_class WHERE relname = 'slow'));
sql('SELECT txid_current()', 'VACUUM slow');
cmp_ok(sql(q(SELECT relfrozenxid::text::bigint FROM pg_class WHERE relname = 'slow')), '>', $relfrozenxid,
	'relfrozenxid goes on with every VACUUM');
my $wal = sql("SELECT pg_current_wal_insert_lsn()");
vacuum('FREEZE', 'slow');
cmp_ok(sql("SELECT pg_current_wal_insert_lsn() - '$wal'::pg_lsn"), '<', 20_000, 'FREEZE rewrites nothing');

$reader->quit;
log_ok($node, 'whole run', 0);
$node->stop;
done_testing();
