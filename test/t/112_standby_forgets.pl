# A standby's snapshot does not see a transaction that all on the primary see.  A row lock there keeps the
# change in its row, so VACUUM removes nothing, and no conflict is replayed; but pg_xact is truncated
# beyond the transaction.  That it is forgotten does not mean that this snapshot sees it.

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
inplace.debug_heal = off
autovacuum = off
wal_keep_size = '1GB'
));

sub sql { return $primary->safe_psql('postgres', join ";\n", @_); }

sub vacuum_all
{
	$primary->safe_psql($_, 'VACUUM (FREEZE)') foreach qw(template0 template1 postgres);
	return;
}

# Shortly before the end of the second segment of pg_xact.
my $IDS = 1_048_576;
my $segment = 'pg_xact/0001';
$primary->stop;
append_to_file($primary->data_dir . "/$segment", "\0" x (32 * 8192));
system_or_bail('pg_resetwal', '--next-transaction-id' => 2 * $IDS - 100, $primary->data_dir);
$primary->start;

# "updated" is so full that its undo is in a ring; in "inserted" somebody is the page's default inserter.
sql('CREATE TABLE updated (id int PRIMARY KEY, f text) USING inplace',
	'ALTER TABLE updated ALTER f SET STORAGE plain',
	q(INSERT INTO updated SELECT i, repeat('a', 1900) FROM generate_series(1, 4) i),
	'CREATE TABLE inserted (id int PRIMARY KEY) USING inplace',
	'ALTER DATABASE template0 ALLOW_CONNECTIONS true');
vacuum_all();
sql('INSERT INTO inserted VALUES (1)');

my $standby = new_standby($primary, q(
max_standby_streaming_delay = 10ms
hot_standby_feedback = off
));
my @scans = (
	[ 'index scans', 'SET enable_seqscan = off; SET enable_bitmapscan = off' ],
	[ 'bitmap scans', 'SET enable_bitmapscan = on; SET enable_indexscan = off' ],
	[ 'sequential scans', 'SET enable_seqscan = on; SET enable_bitmapscan = off' ]);
my $query = q(SELECT (SELECT string_agg(left(f, 1), '' ORDER BY id) FROM updated WHERE id > 0),
	(SELECT count(f) FROM updated WHERE id = 1), (SELECT count(*) FROM inserted WHERE id > 0));
my $reader = $standby->background_psql('postgres', on_error_stop => 1);
$primary->wait_for_catchup($standby);
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
is($reader->query_safe($query), 'aaaa|1|1', 'the snapshot');

# The changes, in this segment; the lock, in the next one, while a snapshot keeps the pages from being pruned before.
my $holder = $primary->background_psql('postgres', on_error_stop => 1);
$holder->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
sql('BEGIN', q(UPDATE updated SET f = repeat('b', 1900) WHERE id = 1), 'INSERT INTO inserted VALUES (2)', 'COMMIT');
1 while sql('SELECT pg_current_xact_id()') < 2 * $IDS;
my $locker = $primary->background_psql('postgres', on_error_stop => 1);
$locker->query_safe('BEGIN; SELECT FROM updated WHERE id = 1 FOR KEY SHARE; SELECT FROM inserted WHERE id = 2 FOR KEY SHARE');
$holder->query_safe('COMMIT');
vacuum_all();
$primary->wait_for_catchup($standby);
ok(!-e $_->data_dir . "/$segment", 'pg_xact is truncated: ' . $_->name) foreach $primary, $standby;
is(sql($query), 'baaa|1|2', 'the primary sees the changes');
foreach my $scan (@scans)
{
	$reader->query_safe($scan->[1]);
	is($reader->query_safe($query), 'aaaa|1|1', "$scan->[0]: the snapshot sees what it saw");
}
$reader->query_safe('COMMIT');
is($reader->query_safe($query), 'baaa|1|2', 'the next one sees the changes');
$locker->query_safe('COMMIT');
$_->quit foreach $reader, $locker, $holder;
same_contents('same rows', $primary, $standby, 'updated', 'inserted');
tables_ok($primary, 'primary', 'updated', 'inserted');
tables_ok($standby, 'standby', 'updated', 'inserted');
log_ok($primary, 'primary', 0);
log_ok($standby, 'standby', 0);
$standby->stop;
$primary->stop;
done_testing();
