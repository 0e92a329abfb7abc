# Index entries of dead rows that go when an index page is full: on a standby, who
# may still need them is cancelled, or replay waits; who cannot is left alone.
# And under a random load no index loses an entry of a row that lives.

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

my $primary = new_cluster(
	'primary',
	streaming => 1,
	conf      => qq(
autovacuum = off
wal_keep_size = '1GB'
));

my $standby = new_standby($primary, 'hot_standby_feedback = off');

# What the primary wrote from $start on: how many records delete index entries with
# a conflict, how many without, and how many prune or restore rows (pg_waldump
# does not know their names).
sub records_since
{
	my ($start) = @_;
	my $end = $primary->lsn('insert');
	my ($waldump, $stderr) = run_command(
		[
			'pg_waldump', '-p', $primary->data_dir . '/pg_wal',
			'-s', $start, '-e', $end
		]);
	my $horizon = qr/(?:latestRemovedXid|snapshotConflictHorizon):?/;	# 16 has another name for it
	my @deletions = grep { /rmgr: Btree .*desc: DELETE .*$horizon/ } split /\n/, $waldump;
	my @conflicting = grep { !/$horizon 0\b/ } @deletions;

	return scalar(@conflicting), @deletions - @conflicting,
	  scalar(grep { /rmgr: custom.*desc: UNKNOWN \((60|70)\)/ } split /\n/, $waldump);
}

# The wide index fills a page after some ten versions of a row.  The table's own
# pages stay nearly empty and its undo on one page, so that nothing else than the
# index's records conflicts with a snapshot.
sub create_table
{
	my ($name) = @_;
	$primary->safe_psql(
		'postgres', qq(
CREATE TABLE $name (id int, a int) USING inplace;
CREATE INDEX ${name}_a ON $name (a);
CREATE INDEX ${name}_wide ON $name (repeat(md5(id::text), 15));
INSERT INTO $name VALUES (1, 0), (2, 0);
));
	return;
}

sub query_of
{
	my ($name) = @_;
	return 'SET enable_seqscan = off; SET enable_bitmapscan = off; '
	  . "SELECT id, a FROM $name WHERE repeat(md5(id::text), 15) = repeat(md5('1'), 15)";
}

sub start_reader
{
	my ($name) = @_;
	my $reader = $standby->background_psql('postgres');

	$primary->wait_for_catchup($standby);
	$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
	is($reader->query_safe(query_of($name)), '1|0', "$name: first look");
	return $reader;
}

sub set_delay
{
	my ($delay) = @_;
	$standby->append_conf('postgresql.conf',
		"max_standby_streaming_delay = '$delay'");
	$standby->reload;
	return;
}

sub move_row
{
	my ($name, $end) = @_;
	$primary->safe_psql('postgres',
		"BEGIN; UPDATE $name SET a = a + 1 WHERE id = 1; $end") foreach 1 .. 60;
	return;
}

# ---- entries that a snapshot on the standby needs ------------------------------

set_delay('10ms');
create_table('cancel');
my $log_offset = -s $standby->logfile;
my $reader     = start_reader('cancel');
my $start      = $primary->lsn('insert');
move_row('cancel', 'COMMIT');
my ($conflicting, $harmless, $others) = records_since($start);
cmp_ok($conflicting, '>', 0, 'entries of deleted rows go, with a conflict');
is($others, 0, 'and no rows are pruned');
$primary->wait_for_catchup($standby);
# An idle session is not only cancelled but disconnected.
eval { $reader->query(query_of('cancel')) };
like(slurp_file($standby->logfile, $log_offset),
	qr/due to conflict with recovery/, 'reader is cancelled');
eval { $reader->quit };
is($standby->safe_psql('postgres', query_of('cancel')),
	'1|60', 'a new reader sees the newest row');

set_delay('-1');
create_table('wait');
$reader = start_reader('wait');
move_row('wait', 'COMMIT');
# Replay gets there, or waits.
my $until = time + 3;
usleep(100_000)
  until time > $until
  || $standby->safe_psql('postgres',
	"SELECT pg_last_wal_replay_lsn() >= '" . $primary->lsn('insert') . "'") eq 't';
is($reader->query_safe(query_of('wait')),
	'1|0', 'a reader for which replay waits sees the old row by the index');
$reader->query_safe('COMMIT');
$reader->quit;
$primary->wait_for_catchup($standby);
is($standby->safe_psql('postgres', query_of('wait')),
	'1|60', 'and later the new one');

# ---- entries that nobody has ever needed ------------------------------------------

set_delay('10ms');
create_table('aborted');
$log_offset = -s $standby->logfile;
$reader     = start_reader('aborted');
$start      = $primary->lsn('insert');
move_row('aborted', 'ROLLBACK');
($conflicting, $harmless, $others) = records_since($start);
cmp_ok($harmless, '>', 0, 'entries of rolled back rows go, without a conflict');
is($conflicting, 0, 'none of them with one');
$primary->wait_for_catchup($standby);
is($reader->query_safe(query_of('aborted')),
	'1|0', 'a reader is not cancelled by entries of rolled back rows');
unlike(slurp_file($standby->logfile, $log_offset),
	qr/due to conflict with recovery/, 'no conflict');
$reader->query_safe('COMMIT');
$reader->quit;

# ---- a random load -----------------------------------------------------------------

$primary->safe_psql(
	'postgres', q(
CREATE TABLE loaded (id int PRIMARY KEY, a int, b int, t text) USING inplace;
CREATE INDEX loaded_a ON loaded (a);
CREATE INDEX loaded_b ON loaded (b);
CREATE INDEX loaded_t ON loaded (t, b);
CREATE INDEX loaded_hash ON loaded USING hash (a);
INSERT INTO loaded SELECT i, i, i % 20, 'text ' || i % 50 FROM generate_series(1, 500) i;
));
my $load = start_pgbench(
	$primary,
	clients => 4,
	seconds => 6,
	args    => ['--max-tries=100'],
	scripts => [
		[ '\set id random(1, 500)
\set by random(1, 1000)
UPDATE loaded SET a = a + :by WHERE id = :id;
', 6 ],
		[ '\set id random(1, 500)
BEGIN;
UPDATE loaded SET a = a + 1, b = b + 1 WHERE id BETWEEN :id AND :id + 3;
SAVEPOINT s;
UPDATE loaded SET a = -a, t = NULL WHERE id = :id;
ROLLBACK TO s;
UPDATE loaded SET t = t || 1 WHERE id = :id AND length(t) < 30;
COMMIT;
', 2 ],
		[ '\set id random(1, 500)
BEGIN;
UPDATE loaded SET a = a + 1 WHERE id = :id;
DELETE FROM loaded WHERE id = :id + 1;
ROLLBACK;
', 1 ],
		[ '\set id random(1, 500)
DELETE FROM loaded WHERE id = :id;
INSERT INTO loaded VALUES (:id, :id, :id % 20, \'again\') ON CONFLICT DO NOTHING;
', 2 ],
		[ 'BEGIN ISOLATION LEVEL REPEATABLE READ;
SET LOCAL enable_seqscan = off;
SELECT count(*), sum(a) FROM loaded WHERE a > 0;
SELECT pg_sleep(0.05);
SELECT count(*), sum(a) FROM loaded WHERE b >= 0;
COMMIT;
', 1 ]
	]);
my $result = finish_pgbench($load);
is($result->{errors} . $result->{status}, '0', 'load ran');
note("$result->{transactions} transactions");
tables_ok($primary, 'primary', qw(cancel wait aborted loaded));
cmp_ok(
	$primary->safe_psql('postgres', "SELECT pg_relation_size('loaded_pkey') / 8192"),
	'<', 50, 'the primary key stays small');
$primary->wait_for_catchup($standby);
tables_ok($standby, 'standby', qw(cancel wait aborted loaded));
same_contents('standby has the same rows by every access path',
	$primary, $standby, qw(cancel wait aborted loaded));
log_ok($primary, 'primary', 0);
log_ok($standby, 'standby', 0);

done_testing();
