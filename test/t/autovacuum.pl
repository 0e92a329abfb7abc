# Autovacuum comes when there is something for it to do, not for updates in
# place, and then says what it has done.

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

# Loads are vacuumed by hand, so that no insertion calls autovacuum; and an
# ANALYZE beside a change would report the dead rows of its middle.
my $node = new_cluster(
	'main', conf => qq(
autovacuum_vacuum_insert_threshold = -1
autovacuum_analyze_threshold = 1000000000
track_io_timing = on
shared_buffers = 64MB
max_wal_size = 2GB
));

if ($node->pg_version >= 18)
{
	$node->append_conf('postgresql.conf', 'track_cost_delay_timing = on');
	$node->reload;
}

sql_on(\$node);

my $rows = 20_000;

sub create
{
	my ($table, $am) = @_;
	sql("CREATE TABLE $table (id int PRIMARY KEY, v int, note text) USING $am",
		"CREATE INDEX ON $table (note)",
		"INSERT INTO $table SELECT i, 0, 'note ' || i FROM generate_series(1, $rows) i",
		"VACUUM ANALYZE $table");
	return;
}

sub count_of
{
	my ($table) = @_;
	return sql("SELECT autovacuum_count FROM pg_stat_user_tables WHERE relname = '$table'");
}

sub dead_of
{
	my ($table) = @_;
	return sql("SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = '$table'");
}

# One test: autovacuum comes to the table, and leaves no dead row.
sub comes_ok
{
	my ($table, $before, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $came = $node->poll_query_until('postgres',
		"SELECT autovacuum_count > $before AND n_dead_tup < 100 FROM pg_stat_user_tables WHERE relname = '$table'");
	ok($came, "$name: autovacuum comes")
	  or diag('count ' . count_of($table) . ', dead ' . dead_of($table));
	return;
}

# One test: in so many seconds it does not come more often than that.
sub stays_away_ok
{
	my ($table, $most, $seconds, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $before = count_of($table);
	usleep($seconds * 1_000_000);
	my $times = count_of($table) - $before;
	cmp_ok($times, '<=', $most, $name) or diag('n_dead_tup: ' . dead_of($table));
	return;
}

# ---- when it comes ------------------------------------------------------------------

create('deleted', 'inplace');
sql('DELETE FROM deleted WHERE id % 2 = 0');
comes_ok('deleted', 0, 'deletes');
is(sql("SELECT count(*) FROM generate_series(0, pg_relation_size('deleted') / 8192 - 1) b,
	inplace_rows('deleted', b) WHERE state = 'dead'"), 0, 'deletes: no dead item is left');

create('moved', 'inplace');
sql("UPDATE moved SET note = 'other ' || id WHERE id % 2 = 0");
comes_ok('moved', 0, 'updates of an indexed column');

create('aborted', 'inplace');
sql("BEGIN; INSERT INTO aborted SELECT i, 0, 'aborted' FROM generate_series($rows + 1, 2 * $rows) i; ROLLBACK");
comes_ok('aborted', 0, 'inserts that were rolled back');

create('inserted', 'inplace');
sql('ALTER TABLE inserted SET (autovacuum_vacuum_insert_threshold = 1000)',
	"INSERT INTO inserted SELECT i, 0, 'new' FROM generate_series($rows + 1, 2 * $rows) i");
ok( $node->poll_query_until(
		'postgres', "SELECT autovacuum_count > 0 FROM pg_stat_user_tables WHERE relname = 'inserted'"),
	'inserts: autovacuum comes where it should');
ok( $node->poll_query_until('postgres',
		"SELECT relallvisible >= relpages - 2 FROM pg_class WHERE relname = 'inserted'"),
	'inserts: pages become all-visible');

foreach my $table (qw(deleted moved aborted inserted))
{
	stays_away_ok($table, 0, $table eq 'deleted' ? 4 : 0.1, "$table: it does not come again for nothing");
}
tables_ok($node, 'after autovacuum', qw(deleted moved aborted inserted));

# ---- when it does not ----------------------------------------------------------------

create('in_place', 'inplace');
my $updates;
do
{
	my $bench = start_pgbench(
		$node,
		clients => 4,
		seconds => 8,
		scripts => [ [ "\\set id random(1, $rows)
UPDATE in_place SET v = v + 1 WHERE id = :id;
UPDATE in_place SET v = v + 1 WHERE id BETWEEN :id AND :id + 20;\n", 1 ] ]);
	stays_away_ok('in_place', 1, 7, 'updates in place do not call autovacuum');
	is(finish_pgbench($bench)->{errors}, '', 'updates in place: no error');
	$updates = sql("SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'in_place'");
} while ($updates < 5000);
cmp_ok(dead_of('in_place'), '<', $updates / 20, 'updates in place are no dead rows');
cmp_ok(dead_of('in_place'), '<', $rows / 5, 'and too few to call autovacuum');
foreach (1 .. 10)
{
	sql('UPDATE in_place SET v = v + 1');
}
stays_away_ok('in_place', 2, 4, 'updates of all rows, one after the other');
sql('BEGIN; UPDATE in_place SET v = 0; ROLLBACK') foreach (1 .. 3);
sql('SELECT count(*) FROM (SELECT FROM in_place FOR UPDATE) l');
stays_away_ok('in_place', 2, 4, 'rolled back ones, and row locks');
sql('UPDATE in_place SET v = v + 1', 'ANALYZE in_place');
cmp_ok(dead_of('in_place'), '<', $rows / 5, 'ANALYZE counts no versions as dead rows');
sql('ALTER TABLE in_place SET (autovacuum_enabled = off)', 'DELETE FROM in_place WHERE id % 4 = 0', 'ANALYZE in_place');
cmp_ok(abs(dead_of('in_place') - $rows / 4), '<', $rows / 100, 'ANALYZE counts deleted rows');

# ---- after a long snapshot -------------------------------------------------------------

create('grown', 'inplace');
sql('ALTER TABLE grown SET (log_autovacuum_min_duration = 0)');
sql('UPDATE grown SET v = v + 1') foreach (1 .. 3);
my $before = pages_of('grown');
my $reader = $node->background_psql('postgres', on_error_stop => 1);
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT sum(v) FROM grown');
my $grown = $before;
for (my $tries = 0; $tries < 20 && $grown <= $before * 1.3; $tries++)
{
	finish_pgbench(start_pgbench(
		$node,
		clients => 4,
		seconds => 10,
		scripts => [ [ "\\set id random(1, $rows)
UPDATE grown SET v = v + 1 WHERE id BETWEEN :id AND :id + 50;\n", 1 ] ]));
	$grown = pages_of('grown');
}
cmp_ok($grown, '>', $before * 1.3, 'undo grows while a snapshot is held');
is($reader->query_safe('SELECT sum(v) FROM grown'), 3 * $rows, 'the snapshot sees what it saw');
$reader->query_safe('COMMIT');
my $visits = count_of('grown');
ok( $node->poll_query_until(
		'postgres', "SELECT pg_relation_size('grown') / 8192 <= $before * 1.1"),
	'autovacuum gives the undo back when the snapshot is gone');
# The first moves rings to the front; one may have begun with the snapshot.
cmp_ok(count_of('grown') - $visits, '<=', 3, 'and soon');
note("pages: $before before, $grown with a snapshot, " . pages_of('grown') . ' after it');
stays_away_ok('grown', 2, 5, 'then it stays away');
tables_ok($node, 'after a long snapshot', 'grown', 'in_place');

# ---- its log line ---------------------------------------------------------------------------

# Everything that heap's says.
my %lines;
foreach my $am ('heap', 'inplace')
{
	create("logged_$am", $am);
	my $offset = -s $node->logfile;
	sql("ALTER TABLE logged_$am SET (log_autovacuum_min_duration = 0)", "DELETE FROM logged_$am WHERE id % 3 = 0");
	comes_ok("logged_$am", 0, "log line of $am");
	($lines{$am}) = slurp_file($node->logfile, $offset) =~
	  /LOG:  (automatic vacuum of table "postgres\.public\.logged_$am": index scans: 1\n(?:\t[^\n]*\n)*)/;
	$lines{$am} //= '';
	note($lines{$am});
	like($lines{$am}, qr/tuples: 6666 removed, 13334 remain, 0 are dead but not yet removable/,
		"log line of $am: rows");
}
# A line without its numbers and names.
sub shape { my ($line) = @_; return $line =~ s/"[^"]*"/NAME/gr =~ s/-?\d+(\.\d+)?/N/gr; }
my %shapes = map { shape($_) => 1 } split /\n/, $lines{inplace};
my @heap = grep { /^\t/ } split /\n/, $lines{heap};
cmp_ok(scalar(@heap), '>', 8, "heap's log line has many parts") or diag($lines{heap});
foreach my $line (@heap)
{
	my ($kind) = $line =~ /^\t([a-zA-Z\/ ]+)/;
	ok($shapes{ shape($line) }, "log line: $kind") or diag($line);
}
like($lines{inplace}, qr/\tnew relfrozenxid: \d+, which is [1-9]\d* XIDs ahead of previous value\n/, 'log line: relfrozenxid');
is(() = $lines{inplace} =~ /^\tindex "/gm, 2, 'log line: both indexes');
like($lines{inplace}, qr/^\tundo: \d+ pages, of which \d+ were freed/m, 'log line: undo');

my $offset = -s $node->logfile;
create('quiet', 'inplace');
sql('ALTER TABLE quiet SET (log_autovacuum_min_duration = 1000000)', 'DELETE FROM quiet WHERE id % 3 = 0');
comes_ok('quiet', 0, 'log_autovacuum_min_duration');
unlike(slurp_file($node->logfile, $offset), qr/automatic vacuum of table "postgres\.public\.quiet"/,
	'a short one is not logged');

# ---- who wants a lock goes first ----------------------------------------------------------------

create('wanted', 'inplace');
sql("INSERT INTO wanted SELECT i, 0, repeat('w', 300) FROM generate_series($rows + 1, 3 * $rows) i", 'VACUUM wanted');
$offset = -s $node->logfile;
my $count = count_of('wanted');
sql('ALTER TABLE wanted SET (autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 50, log_autovacuum_min_duration = 0)',
	'DELETE FROM wanted WHERE id % 2 = 0');
ok( $node->poll_query_until(
		'postgres', "SELECT count(*) > 0 FROM pg_stat_progress_vacuum WHERE relid = 'wanted'::regclass"),
	'a slow autovacuum');
sql('BEGIN; LOCK TABLE wanted IN ACCESS EXCLUSIVE MODE; COMMIT');
like(slurp_file($node->logfile, $offset), qr/canceling autovacuum task/, 'is cancelled for a lock that another session wants');
tables_ok($node, 'cancelled autovacuum', 'wanted');
sql('ALTER TABLE wanted RESET (autovacuum_vacuum_cost_delay, autovacuum_vacuum_cost_limit)');
comes_ok('wanted', $count, 'it comes again');
is(sql('SELECT count(*) FROM wanted'), 3 * $rows / 2, 'rows after that');
tables_ok($node, 'in the end', qw(wanted quiet logged_inplace));

$reader->quit;
log_ok($node, 'whole run', 0);
$node->stop;
done_testing();
