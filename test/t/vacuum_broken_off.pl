# VACUUM that is broken off, at any moment: cancelled, timed out, its backend
# terminated, the server killed.  What it leaves is sound, and the next VACUUM
# goes on from there.  Each table has a heap twin that says what its rows are.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

test_seed();

my $node = new_cluster(
	'main', conf => qq(
autovacuum = off
max_wal_size = 1GB
max_worker_processes = 12
min_parallel_index_scan_size = 0
));

my $rows = 20_000;

# ---- tables -------------------------------------------------------------------------

foreach my $table ('i_t', 'h_t')
{
	my $am = $table eq 'i_t' ? 'inplace' : 'heap';
	$node->safe_psql(
		'postgres', qq(
CREATE TABLE $table (id int PRIMARY KEY, v int NOT NULL, words int[], note text) USING $am;
CREATE INDEX ON $table (v);
CREATE INDEX ON $table USING gin (words);
CREATE INDEX ON $table USING hash (note);));
}

# The same change to both, found by values that both have; an aborted one before it.
# Some rows are deleted, some come back, some move, some change in place.
sub change
{
	my ($seed) = @_;
	my $sql = '';
	foreach my $table ('i_t', 'h_t')
	{
		$sql .= qq(
BEGIN;
DELETE FROM $table WHERE id % 7 = $seed % 7;
UPDATE $table SET v = v + 1000, note = repeat('aborted', 5) WHERE id % 5 = $seed % 5;
INSERT INTO $table SELECT i, i, ARRAY[i], 'aborted' FROM generate_series($rows * 2, $rows * 2 + 3000) i;
ROLLBACK;
DELETE FROM $table WHERE id % 4 = $seed % 4;
INSERT INTO $table SELECT i, i % 100, ARRAY[i % 50, $seed], 'note ' || i % 1000
FROM generate_series(1, $rows) i WHERE i % 4 = ($seed + 1) % 4 ON CONFLICT DO NOTHING;
UPDATE $table SET v = ($seed + id) % 200 WHERE id % 6 = $seed % 6;
UPDATE $table SET note = left(repeat('note $seed ', 20), id % 180) WHERE id % 3 = $seed % 3;
);
	}
	$node->safe_psql('postgres', $sql);
	return;
}

# By the indexes that tables_ok does not know.
sub indexes_ok
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my @answers;
	foreach my $on ('on', 'off')
	{
		push @answers, $node->safe_psql(
			'postgres', qq(
SET enable_seqscan = @{[ $on eq 'on' ? 'off' : 'on' ]};
SET enable_bitmapscan = $on;
SET enable_indexscan = $on;
SELECT w, (SELECT count(*) FROM i_t WHERE words @> ARRAY[w]) FROM generate_series(0, 50) w;
SELECT n, (SELECT count(*) FROM i_t WHERE note = 'note ' || n) FROM generate_series(0, 999, 13) n;));
	}
	is($answers[0], $answers[1], "$name: GIN and hash index");
	return;
}

sub all_ok
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	same_as_heap($node, $name, 't');
	tables_ok($node, $name, 'i_t');
	indexes_ok($name);
	return;
}

sub dead_items
{
	return $node->safe_psql('postgres',
		"SELECT count(*) FROM generate_series(0, pg_relation_size('i_t') / 8192 - 1) b,
		 inplace_rows('i_t', b) WHERE state = 'dead'");
}

# Everything that can be cleaned is, by one more VACUUM.
sub vacuum_ok
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) i_t');
	all_ok("$name, vacuumed");
	is(dead_items(), 0, "$name: the next VACUUM leaves no dead item");
	return;
}

sub phase_of
{
	my ($pid) = @_;
	return $node->safe_psql('postgres', "SELECT phase FROM pg_stat_progress_vacuum WHERE pid = $pid");
}

# Slow enough to be met in the middle, at random costs; in any of its ways.
sub vacuum_sql
{
	my ($delay) = @_;
	my @ways = (
		'VACUUM i_t', 'VACUUM (PARALLEL 2) i_t', 'VACUUM (INDEX_CLEANUP ON, PARALLEL 0) i_t',
		'VACUUM (DISABLE_PAGE_SKIPPING, FREEZE) i_t', 'VACUUM (ANALYZE) i_t');
	my $limit = int random_between(20, 400);
	return "SET vacuum_cost_delay = '${delay}ms'; SET vacuum_cost_limit = $limit; SET vacuum_cost_page_miss = 2;"
	  . " SET vacuum_cost_page_dirty = 2; $ways[rand @ways];";
}

# ---- cancel, timeout, terminate ------------------------------------------------------

change(0);
change(1);
$node->safe_psql('postgres', 'VACUUM i_t; VACUUM h_t');

my %met;
foreach my $round (1 .. rounds(9))
{
	my $how  = ('cancel', 'statement_timeout', 'terminate')[ $round % 3 ];
	my $name = "round $round, $how";
	change($round + 1);

	my $vacuum = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $vacuum->query_safe('SELECT pg_backend_pid()');
	$vacuum->query_safe("SET application_name = 'victim'");
	my $sql = vacuum_sql(5);
	my $timeout = int random_between(5, 300);
	$sql =~ s/(VACUUM)/SET statement_timeout = $timeout; $1/ if $how eq 'statement_timeout';
	$vacuum->{stdin} .= "$sql\n";
	$vacuum->{run}->pump_nb;
	my $phase = '';
	for (my $tries = 0; $phase eq '' && $tries < 50; $tries++)
	{
		usleep(5_000);
		$phase = phase_of($pid);
	}
	usleep(random_between(0, 300_000));
	$phase = phase_of($pid) if $how ne 'statement_timeout';
	$met{ $phase || 'none' }++;
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)")    if $how eq 'cancel';
	$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)") if $how eq 'terminate';
	$node->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid AND state = 'active'")
	  or die 'VACUUM did not end';
	note("$name: in phase '$phase'");
	eval { $vacuum->quit };
	# no worker goes on without its leader
	ok( $node->poll_query_until(
			'postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'parallel worker'"),
		"$name: no worker is left");

	all_ok($name);
	$round % 2 ? vacuum_ok($name) : change($round + 100);
	all_ok("$name, changed") if $round % 2 == 0;
}
my $broken = () = slurp_file($node->logfile) =~
  /canceling statement due to (?:user request|statement timeout)|FATAL:  terminating connection due to administrator/g;
cmp_ok($broken, '>=', rounds(9) / 3, 'VACUUM was broken off, not only waited for');
note('met in phases: ' . join ', ', map { "$_: $met{$_}" } sort keys %met);
vacuum_ok('after all cancels');
my $log_offset = log_ok($node, 'cancelled VACUUMs', 0);

# ---- killed under load ----------------------------------------------------------------

# Rows come and go and change in a table of each client's own part, while two more
# clients do nothing but VACUUM, and a snapshot is held for half a second now and
# then.  A client does the same to heap, in the same transaction.
my $load = '\set base :client_id * 1000
\set lo random(1, 900)
\set n random(1, 100)
\set end random(0, 4)
\set v random(0, 1000)
BEGIN;
DELETE FROM i_t WHERE id BETWEEN 100000 + :base + :lo AND 100000 + :base + :lo + :n;
INSERT INTO i_t SELECT i, :v, ARRAY[i % 50, :n], \'note \' || i % 1000 FROM generate_series(100000 + :base + :lo, 100000 + :base + :lo + :n / 2) i;
UPDATE i_t SET note = left(repeat(\'new \', 40), :v % 150) WHERE id BETWEEN 100000 + :base AND 100000 + :base + :n;
UPDATE i_t SET v = :v WHERE id BETWEEN 100000 + :base + 300 AND 100000 + :base + 320;
DELETE FROM h_t WHERE id BETWEEN 100000 + :base + :lo AND 100000 + :base + :lo + :n;
INSERT INTO h_t SELECT i, :v, ARRAY[i % 50, :n], \'note \' || i % 1000 FROM generate_series(100000 + :base + :lo, 100000 + :base + :lo + :n / 2) i;
UPDATE h_t SET note = left(repeat(\'new \', 40), :v % 150) WHERE id BETWEEN 100000 + :base AND 100000 + :base + :n;
UPDATE h_t SET v = :v WHERE id BETWEEN 100000 + :base + 300 AND 100000 + :base + 320;
\if :end = 0
ROLLBACK;
\else
COMMIT;
\endif
';
my $reader = 'BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*), sum(id) FROM i_t \gset a_
SELECT pg_sleep(0.5);
SET LOCAL enable_seqscan = off;
SELECT 1 / (count(*) = :a_count AND sum(id) = :a_sum)::int FROM i_t WHERE id > 0;
COMMIT;
';
my @vacuums = (
	[ "VACUUM i_t;\n", 4 ], [ "VACUUM (PARALLEL 2, INDEX_CLEANUP ON) i_t;\n", 2 ], [ "VACUUM (INDEX_CLEANUP OFF) i_t;\n", 1 ],
	[ "VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) i_t;\n", 1 ]);

foreach my $round (1 .. rounds(4))
{
	my $name = "kill $round";
	my $few_buffers = rand() < 0.5;
	$node->adjust_conf('postgresql.conf', 'shared_buffers', $few_buffers ? '2MB' : '64MB');
	$node->adjust_conf('postgresql.conf', 'full_page_writes', rand() < 0.7 ? 'on' : 'off');
	$node->restart;

	# enough for the first VACUUM, so that it is at work when the server dies
	change($round);
	my @benches = (
		start_pgbench($node, clients => 4, scripts => [ [ $load, 1 ] ]),
		start_pgbench($node, clients => 1, scripts => [ [ $reader, 1 ] ]),
		start_pgbench($node, clients => 1, scripts => \@vacuums));
	usleep(random_between(200_000, 2_000_000));
	if (rand() < 0.6)
	{
		$node->safe_psql('postgres', 'CHECKPOINT');
		usleep(random_between(0, 700_000));
	}
	crash_and_recover($node, rand() < 0.7 ? 'kill' : 'immediate', recovery_too => rand() < 0.3);
	is(finish_pgbench($_)->{errors}, '', "$name: clients saw no error but the crash") foreach @benches;
	all_ok($name);
	vacuum_ok($name) if rand() < 0.5;
	$log_offset = log_ok($node, $name, $log_offset);
}
vacuum_ok('in the end');

# A VACUUM that was killed between its passes has left dead items, which only the
# next one may free; a kill right after it must not lose that.
$node->safe_psql('postgres', 'CHECKPOINT');
change(7);
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP OFF) i_t');
my $dead = dead_items();
cmp_ok($dead, '>', 1000, 'dead items before a crash');
# VACUUM's transaction has no xid, so its end flushes nothing
$node->safe_psql('postgres', 'SELECT pg_switch_wal()');
crash_and_recover($node, 'kill');
is(dead_items(), $dead, 'and after it');
vacuum_ok('dead items from before a crash');
crash_and_recover($node, 'kill');
is(dead_items(), 0, 'their end survives the next crash');
all_ok('after the last crash');
log_ok($node, 'whole run', 0);

# A VACUUM that got to where an aborted move led, but not to the row itself: another row comes there, and
# a cursor's row is still its own.
$node->safe_psql('postgres', q(
CREATE TABLE moved (id int, body text) USING inplace WITH (autovacuum_enabled = off);
ALTER TABLE moved ALTER body SET STORAGE plain;
INSERT INTO moved SELECT i, repeat('a', 1120) FROM generate_series(1, 320) i;
VACUUM moved;
DELETE FROM moved WHERE id IN (10, 11);
VACUUM moved;
));
my $cursor = $node->background_psql('postgres');
$cursor->query_safe('BEGIN; DECLARE c CURSOR FOR SELECT id FROM moved WHERE id = 300; FETCH c');
my ($to) = $node->safe_psql('postgres',
	q(BEGIN; UPDATE moved SET body = repeat('b', 1400) WHERE id = 300 RETURNING ctid; ROLLBACK)) =~ /^\((\d+),/;
cmp_ok($to, '<', 10, 'the aborted move led to the front');
$node->psql('postgres', q(
SET vacuum_cost_delay = 50;
SET vacuum_cost_limit = 1;
SET statement_timeout = 1000;
VACUUM (DISABLE_PAGE_SKIPPING) moved));
note('another row comes to ', $node->safe_psql('postgres',
	q(INSERT INTO moved VALUES (7777, repeat('c', 1400)) RETURNING ctid)), ", the move led to page $to");
$cursor->query_safe('UPDATE moved SET id = -id WHERE CURRENT OF c; COMMIT');
$cursor->quit;
is($node->safe_psql('postgres', 'SELECT min(id), max(id) FROM moved'), '-300|7777', 'a cursor changes its own row');
$node->stop;
done_testing();
