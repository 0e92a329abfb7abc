# A streaming standby that compares every page it replays with the primary's
# (wal_consistency_checking), answers queries correctly all the while, survives a
# crash of its own, has the same rows in the end, and can take over.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceLoad;
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

test_seed();

# "all" is looked up before the library is loaded, so it does not mean this
# extension's resource manager; its name does.
my $primary = new_cluster(
	'primary',
	streaming => 1,
	conf      => qq(
# all but hash: core reads a bucket page that it has only pinned for an image of XLOG_HASH_DELETE, and the CRC fails
wal_consistency_checking = 'heap, heap2, btree, gin, gist, spgist, brin, sequence, generic, inplace'
wal_keep_size = '4GB'
max_wal_size = '1GB'
max_prepared_transactions = 5
));
create_twins($primary);

# At first replay waits for queries, so that they last through the load.  Not for ever: it may hold a table's
# lock, because of a TRUNCATE or a VACUUM, and wait for queries that wait for that lock.
my $standby = new_standby($primary, qq(
max_standby_streaming_delay = '3s'
hot_standby_feedback = off
));

# A snapshot on the standby never sees a transaction by half.  One message each ("\;"): replay cancels a query that
# is in its way, but disconnects a session that is idle in its transaction, and pgbench would lose the client.
my @standby_checks = (
	twin_check_script(),
	map {
		[ "BEGIN ISOLATION LEVEL REPEATABLE READ \\;
SELECT check_twins() \\;
SELECT pg_sleep($_) \\;
SELECT check_twins() \\;
COMMIT;
", 1 ]
	} (0.02, 0.3));

my $load = start_pgbench(
	$primary,
	clients => 6,
	seconds => 8,
	scripts => [ twin_scripts() ]);
my $queries = start_pgbench(
	$standby,
	clients => 2,
	seconds => 4,
	scripts => \@standby_checks);

# ---- everything that is not a row at a time ---------------------------------

my $data = PostgreSQL::Test::Utils::tempdir() . '/data';
append_to_file($data,
	join '', map { "$_\t7\t{$_,1,2}\trow number $_\n" } 1 .. 20000);

$primary->safe_psql(
	'postgres', qq(
CREATE TABLE bulk (id int NOT NULL, grp int, tags int[], body text) USING inplace;
COPY bulk FROM '$data';
CREATE UNIQUE INDEX bulk_id ON bulk (id);
CREATE INDEX bulk_hash ON bulk USING hash (grp);
CREATE INDEX bulk_gin ON bulk USING gin (tags);
CREATE INDEX bulk_brin ON bulk USING brin (id);
CREATE INDEX bulk_body ON bulk (body);
DELETE FROM bulk WHERE id % 3 = 0;
VACUUM bulk;
UPDATE bulk SET grp = id, body = repeat('x', id % 400) WHERE id % 2 = 0;
INSERT INTO bulk SELECT i, i, NULL, NULL FROM generate_series(30001, 34000) i;
VACUUM ANALYZE bulk;
REINDEX TABLE bulk;

CREATE TABLE emptied (id int PRIMARY KEY, body text) USING inplace;
INSERT INTO emptied SELECT i, repeat('e', 100) FROM generate_series(1, 5000) i;
TRUNCATE emptied;
INSERT INTO emptied SELECT i, repeat('f', i) FROM generate_series(1, 500) i;

-- a table that vacuum makes shorter
CREATE TABLE shrunk (id int PRIMARY KEY, body text) USING inplace;
INSERT INTO shrunk SELECT i, repeat('s', 200) FROM generate_series(1, 5000) i;
DELETE FROM shrunk WHERE id > 100;
VACUUM shrunk;

CREATE TABLE rewritten (id int PRIMARY KEY, body text) USING inplace;
INSERT INTO rewritten SELECT i, 'r' || i FROM generate_series(1, 5000) i;
UPDATE rewritten SET body = body || body;
ALTER TABLE rewritten ALTER COLUMN body TYPE varchar(50), ADD COLUMN r float DEFAULT random();
ALTER TABLE rewritten SET ACCESS METHOD heap;
ALTER TABLE rewritten SET ACCESS METHOD inplace;
CREATE TABLE copied USING inplace AS SELECT * FROM rewritten;

CREATE TABLE toasted (id int PRIMARY KEY, body text) USING inplace;
ALTER TABLE toasted ALTER body SET STORAGE EXTERNAL;
INSERT INTO toasted SELECT i, repeat(md5(i::text), 200) FROM generate_series(1, 200) i;
UPDATE toasted SET body = body || 'more' WHERE id % 2 = 0;
DELETE FROM toasted WHERE id % 5 = 0;

CREATE TABLE rolled_back (id int PRIMARY KEY, v int, body text) USING inplace;
INSERT INTO rolled_back SELECT i, 0, 'text' FROM generate_series(1, 20000) i;
BEGIN;
UPDATE rolled_back SET v = v + 1, body = body || id;
DELETE FROM rolled_back WHERE id % 2 = 0;
INSERT INTO rolled_back SELECT i, 0, 'new' FROM generate_series(20001, 30000) i;
ROLLBACK;
BEGIN;
UPDATE rolled_back SET v = 1 WHERE id % 10 = 0;
SAVEPOINT a;
UPDATE rolled_back SET v = 2, id = -id WHERE id % 5 = 0;
ROLLBACK TO a;
COMMIT;
));

# Two transactions on one row: the lock has to be a multixact.
$primary->safe_psql(
	'postgres', q(
CREATE TABLE locked (id int PRIMARY KEY, v int) USING inplace;
INSERT INTO locked SELECT i, 0 FROM generate_series(1, 200) i;
CREATE TABLE referring (id int REFERENCES locked) USING inplace;
));
my @lockers =
  map { $primary->background_psql('postgres', on_error_stop => 1) } 1 .. 3;
$lockers[0]->query_safe(
	'BEGIN; SELECT count(*) FROM (SELECT FROM locked FOR KEY SHARE) l;');
$lockers[1]->query_safe(
	'BEGIN; SELECT count(*) FROM (SELECT FROM locked FOR SHARE) l;');
$lockers[1]->query_safe('COMMIT;');
$lockers[1]->query_safe('BEGIN; UPDATE locked SET v = v + 1 WHERE id % 2 = 0;');
$lockers[2]
  ->query_safe('BEGIN; INSERT INTO referring SELECT id FROM locked;');
$lockers[0]->query_safe('COMMIT;');
$lockers[1]->query_safe('ROLLBACK;');
$lockers[2]->query_safe('COMMIT;');
$_->quit foreach @lockers;

# ---- a crash of the standby, with the load still going ----------------------

my $result = finish_pgbench($queries);
is($result->{errors}, '', 'queries on the standby saw consistent data');
cmp_ok($result->{transactions}, '>', 0, 'and not all of them were cancelled');
note("$result->{retried} were cancelled, $result->{transactions} ran");
# Now replay cancels queries that are in its way.  Those that it lets run must
# still be right.
$standby->append_conf('postgresql.conf',
	"max_standby_streaming_delay = '10ms'\n" .
	# after the crash replay reads local files first
	"max_standby_archive_delay = '10ms'");
crash_and_recover($standby, 'kill');
$queries = start_pgbench(
	$standby,
	clients => 2,
	seconds => 3,
	scripts => \@standby_checks);
$result = finish_pgbench($queries);
is($result->{errors},
	'', 'queries on the standby saw consistent data after its crash');
cmp_ok($result->{transactions}, '>', 0, 'and not all of them were cancelled');
note("$result->{retried} were cancelled, $result->{transactions} ran");

$result = finish_pgbench($load);
is($result->{errors} . $result->{status}, '0', 'load on the primary ran');

# ---- undo that a standby's snapshot needs is used again ---------------------

$primary->safe_psql(
	'postgres', q(
CREATE TABLE hot (id int PRIMARY KEY, v int) USING inplace;
INSERT INTO hot SELECT i, 0 FROM generate_series(1, 2000) i;
));
$primary->wait_for_catchup($standby);

# The first reader is cancelled by replay; the second one, for which replay waits,
# sees the rows as they were.
foreach my $delay ('10ms', '-1')
{
	$standby->append_conf('postgresql.conf',
		"max_standby_streaming_delay = '$delay'");
	$standby->restart;

	my $log_offset = -s $standby->logfile;
	my $reader     = $standby->background_psql('postgres');
	my $check       = 'SELECT count(*), count(DISTINCT v) FROM hot';
	$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
	is($reader->query_safe($check), '2000|1', "delay $delay: first look");
	$primary->safe_psql('postgres', 'UPDATE hot SET v = v + 1') foreach 1 .. 30;

	if ($delay eq '-1')
	{
		# Replay gets there, or waits.
		my $end = time + 3;
		usleep(100_000)
		  until time > $end
		  || $standby->safe_psql('postgres',
			"SELECT pg_last_wal_replay_lsn() >= '"
			  . $primary->lsn('insert') . "'") eq 't';
		is($reader->query_safe($check),
			'2000|1', "delay $delay: the same rows again");
		$reader->query_safe('COMMIT');
		$reader->quit;
	}
	else
	{
		$primary->wait_for_catchup($standby);
		# An idle session is not only cancelled but disconnected.
		eval { $reader->query($check) };
		like(slurp_file($standby->logfile, $log_offset),
			qr/due to conflict with recovery/, "delay $delay: reader is cancelled");
		eval { $reader->quit };
	}
}

# ---- the end ----------------------------------------------------------------

# In doubt when the standby takes over.
$primary->safe_psql(
	'postgres', q(
CREATE TABLE prepared (id int PRIMARY KEY, v int) USING inplace;
INSERT INTO prepared SELECT i, 0 FROM generate_series(1, 100) i;
BEGIN; UPDATE prepared SET v = 1 WHERE id <= 50; PREPARE TRANSACTION 'one';
BEGIN; DELETE FROM prepared WHERE id > 50; PREPARE TRANSACTION 'two';
));

# Was there anything to compare pages with?
my ($rmgr, $segment) = split /\|/, $primary->safe_psql(
	'postgres', q(
SELECT rm_id, pg_walfile_name(pg_current_wal_lsn() - 20000000)
FROM pg_get_wal_resource_managers() WHERE rm_name = 'inplace'));
my $wal = $primary->data_dir . '/pg_wal';
my ($records) = run_command([ 'pg_waldump', '--bkp-details', '--limit=20000', "$wal/$segment" ]);
my @ours = grep { /^rmgr: custom0*$rmgr\b/ } split /^(?=rmgr:)/m, $records;
cmp_ok(scalar(grep { /for WAL verification/ } @ours), '>', 0,
	'WAL has page images to compare with');

my @tables = (
	@twin_tables,
	qw(bulk emptied shrunk rewritten copied toasted rolled_back locked referring prepared));

$primary->wait_for_catchup($standby);
same_contents('standby has the same rows by every access path',
	$primary, $standby, @tables);
tables_ok($primary, 'primary', @tables);
tables_ok($standby, 'standby', @tables);
twins_ok($standby, 'standby');
log_ok($primary, 'primary', 0);
log_ok($standby, 'standby', 0);

$primary->stop;
$standby->promote;
my $promoted = start_pgbench(
	$standby,
	clients => 6,
	seconds => 3,
	scripts => [ twin_scripts() ]);
$standby->safe_psql('postgres',
	"COMMIT PREPARED 'one'; ROLLBACK PREPARED 'two'");
is( $standby->safe_psql(
		'postgres', 'SELECT count(*), sum(v) FROM prepared'),
	'100|50',
	'transactions prepared on the primary are finished on the promoted standby'
);
$standby->safe_psql(
	'postgres', 'UPDATE bulk SET grp = grp + 1;
UPDATE rolled_back SET v = v + 1, body = body || body;
UPDATE locked SET v = v + 1; DELETE FROM referring;
DELETE FROM toasted WHERE id % 2 = 1;
VACUUM;');
$result = finish_pgbench($promoted);
is($result->{errors} . $result->{status},
	'0', 'load on the promoted standby ran');
twins_ok($standby, 'promoted');
tables_ok($standby, 'promoted', @tables);
log_ok($standby, 'promoted', 0);

done_testing();
