# What rolled-back changes leave, on their rows' pages and in rings, goes whatever snapshots are held; and no
# snapshot, here or on a standby, reads a wrong row meanwhile.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use IPC::Run;
use Test::More;

test_seed();

my $node = new_cluster('main', streaming => 1, conf => "autovacuum = off\nfsync = off\nwal_consistency_checking = 'inplace'\n");
my $standby = new_standby($node, "max_standby_streaming_delay = 0\n");

sql_on(\$node);

# ---- no growth ------------------------------------------------------------------------------

# undo at home, in rings, and of savepoints; rows that are updated again, and others
foreach my $home ('on', 'off')
{
	sql('DROP TABLE IF EXISTS rolled', 'CREATE TABLE rolled (id int PRIMARY KEY, n int, v text) USING inplace',
		"INSERT INTO rolled SELECT i, 0, repeat('x', 80) FROM generate_series(1, 2000) i", 'VACUUM rolled');
	$node->wait_for_catchup($standby);
	my $holder = $node->background_psql('postgres');
	$holder->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM rolled');
	my $far_holder = $standby->background_psql('postgres');
	$far_holder->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM rolled');
	my $before = pages_of('rolled');
	my $update = 'UPDATE rolled SET n = n + 1 WHERE id = 1 +';
	sql("SET inplace.debug_undo_at_home = $home",
		map { "BEGIN; $update $_ * 7919 % 2000; UPDATE rolled SET v = 'y' WHERE id = 1 + $_ % 20; ROLLBACK" } 1 .. 6000);
	cmp_ok(pages_of('rolled'), '<=', $before + 20, "undo at home $home: rolled-back transactions leave nothing");
	sql("SET inplace.debug_undo_at_home = $home",
		map { "BEGIN; SAVEPOINT s; $update $_ * 7919 % 2000; ROLLBACK TO s; $update $_ * 7 % 500; ROLLBACK TO s; COMMIT" } 1 .. 4000);
	cmp_ok(pages_of('rolled'), '<=', $before + 20, "undo at home $home: nor do savepoints");
	is($holder->query_safe('SELECT count(*), sum(n), sum(length(v)) FROM rolled'), '2000|0|160000', 'the snapshot sees what it saw');
	$node->wait_for_catchup($standby);
	is($far_holder->query_safe('SELECT count(*), sum(n), sum(length(v)) FROM rolled'), '2000|0|160000', 'so does one of a standby');
	$holder->quit;
	$far_holder->quit;
	is(sql('SELECT count(*), sum(n) FROM rolled'), '2000|0', 'and a new one');
	tables_ok($node, "undo at home $home", 'rolled');
}
is($standby->safe_psql('postgres', 'SELECT sum(confl_snapshot) FROM pg_stat_database_conflicts'), 0, 'no query of the standby was cancelled');

$standby->append_conf('postgresql.conf', 'max_standby_streaming_delay = -1');
$standby->reload;

# ---- rolled back while VACUUM is on its way ---------------------------------------------------

# VACUUM has looked at all rows, and comes to the rings when a change of all rows, which it did not see, has been rolled back.
SKIP:
{
	skip 'a server without injection points', 2 if !has_points();
	sql('DROP TABLE IF EXISTS late', 'CREATE TABLE late (id int PRIMARY KEY, n int, v text) USING inplace',
		"INSERT INTO late SELECT i, 0, repeat('x', 80) FROM generate_series(1, 2000) i", 'VACUUM late');
	my $holder = $node->background_psql('postgres');
	$holder->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM late');
	sql('BEGIN', 'UPDATE late SET n = n + 1', 'ROLLBACK');
	my $vacuum = $node->background_psql('postgres', wait => 1);
	at_point($vacuum, 'inplace-undo-rings', 'VACUUM late', sub {
		sql('BEGIN', 'UPDATE late SET n = n + 1', 'ROLLBACK', 'SELECT pg_current_xact_id(), pg_current_xact_id()', 'SELECT pg_current_xact_id()') for 1 .. 3;
	});
	$vacuum->quit;
	is(sql('SELECT count(*), sum(n) FROM late'), '2000|0', 'no row has lost what it was');
	$holder->quit;
	tables_ok($node, 'after a late rollback', 'late');
}

# ---- no wrong row ---------------------------------------------------------------------------

# Sums never change: clients move units from row to row, and roll half of it back; readers' snapshots last long.
sql('CREATE TABLE moved (id int PRIMARY KEY, n int, v text) USING inplace',
	"INSERT INTO moved SELECT i, 100, repeat('x', 60) FROM generate_series(1, 200) i");
my $dir = PostgreSQL::Test::Utils::tempdir('scripts');
append_to_file("$dir/write.sql", q(
\set a random(1, 200)
\set b random(1, 200)
\set how random(1, 4)
SET inplace.debug_undo_at_home = off;
BEGIN;
UPDATE moved SET n = n - 1 WHERE id = least(:a, :b);
SAVEPOINT s;
UPDATE moved SET n = n + 7, v = repeat('z', :a) WHERE id = greatest(:a, :b);
ROLLBACK TO s;
UPDATE moved SET n = n + 1 WHERE id = greatest(:a, :b);
\if :how == 1
COMMIT;
\else
ROLLBACK;
\endif
));
append_to_file("$dir/read.sql", q(
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT 1 / (count(*) = 200 AND sum(n) = 20000)::int FROM moved;
SELECT pg_sleep(0.05);
SELECT 1 / (count(*) = 200 AND sum(n) = 20000)::int FROM moved;
SELECT 1 / (count(*) = 200 AND sum(n) = 20000)::int FROM (SELECT (SELECT n FROM moved WHERE id = i) FROM generate_series(1, 200) i) x;
COMMIT;
));
my @writers = ('pgbench', '-n', '-c', 3, '-t', 8000, '-f', "$dir/write.sql", $node->connstr('postgres'));
my $out = '';
my $writers = IPC::Run::start(\@writers, '>', \$out, '2>&1');
my $rounds = 0;
do
{
	$node->command_ok([ 'pgbench', '-n', '-c', 2, '-t', 10, '-f', "$dir/read.sql", $node->connstr('postgres') ], 'readers see no wrong sum');
	$standby->command_ok([ 'psql', '-X', '-q', '-d', $standby->connstr('postgres'), '-v', 'ON_ERROR_STOP=1', '-c', 'SET max_parallel_workers_per_gather = 0',
		'-c', 'SELECT 1 / (count(*) = 200 AND sum(n) = 20000)::int FROM moved' ], 'nor does the standby');
	$writers->pump_nb;
} while ($writers->pumpable && ++$rounds < 200);
$writers->finish;
unlike($out, qr/ERROR|FATAL|PANIC/, 'writers had no error');
is(sql('SELECT count(*), sum(n) FROM moved'), '200|20000', 'nothing is lost');
tables_ok($node, 'in the end', 'moved');
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', 'SELECT count(*), sum(n) FROM moved'), '200|20000', 'nor on the standby');
log_ok($node, 'whole run', 0);
$standby->stop;
$node->stop;
done_testing();
