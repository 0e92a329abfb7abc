# Files that are copied: databases made from a template, by both strategies, and
# tables and databases that move to another tablespace, while versions, aborted changes
# and row locks are in the files, old snapshots are held, and writers wait; a standby
# replays it all and checks it.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use InplaceTwin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_cluster(
	'primary',
	streaming => 1,
	conf      => q(
# all but hash: core reads a bucket page that it has only pinned for an image of XLOG_HASH_DELETE, and the CRC fails
wal_consistency_checking = 'heap, heap2, btree, gin, gist, spgist, brin, sequence, generic, inplace'
wal_keep_size = '1GB'
autovacuum = off
max_prepared_transactions = 5
allow_in_place_tablespaces = on
));
create_twin_schemas($primary);
my $standby = new_standby($primary);
$primary->safe_psql('postgres', "CREATE TABLESPACE other LOCATION ''");

# ---- databases -----------------------------------------------------------------

$primary->safe_psql(
	'postgres', q(
CREATE DATABASE origin;
\c origin
CREATE EXTENSION inplace;
CREATE TABLE t (id int PRIMARY KEY, n int, body text) USING inplace;
INSERT INTO t SELECT i, 0, repeat('t', i % 100) FROM generate_series(1, 3000) i;
CREATE TABLE toasted (id int PRIMARY KEY, body text) USING inplace;
ALTER TABLE toasted ALTER body SET STORAGE EXTERNAL;
INSERT INTO toasted SELECT i, repeat(md5(i::text), 100) FROM generate_series(1, 50) i;
CREATE TABLE empty (id int) USING inplace;
CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY) USING inplace;
INSERT INTO unlogged SELECT generate_series(1, 100);
CREATE TABLE elsewhere (id int PRIMARY KEY) USING inplace TABLESPACE other;
INSERT INTO elsewhere SELECT generate_series(1, 500);
UPDATE t SET n = n + 1;
BEGIN; UPDATE t SET n = -1, body = 'aborted'; DELETE FROM toasted; ROLLBACK;
BEGIN; SELECT count(*) FROM (SELECT FROM t WHERE id < 500 FOR UPDATE) l; COMMIT;
DELETE FROM t WHERE id % 10 = 0;
));

# What is in a database, on one of the servers, and whether it is sound.
sub look
{
	my ($node, $db, $with_unlogged) = @_;
	my $unlogged = $with_unlogged ? 'UNION ALL SELECT 4, count(*), sum(id) FROM unlogged' : '';
	return $node->safe_psql(
		$db, qq(
SELECT 1, count(*), sum(hashtextextended(t::text, 0)::numeric) FROM t
UNION ALL SELECT 2, count(*), sum(hashtextextended(t::text, 0)::numeric) FROM toasted t
UNION ALL SELECT 3, count(*), sum(id) FROM elsewhere $unlogged;
SET enable_seqscan = off; SELECT sum(n), max(body) FROM t WHERE id BETWEEN 100 AND 900;
)) . $node->safe_psql($db, 'SELECT * FROM inplace_check_all()');
}

my $expected = look($primary, 'origin', 1);
my $logged   = look($primary, 'origin', 0);
foreach my $strategy ('wal_log', 'file_copy')
{
	my $db = "by_$strategy";
	$primary->safe_psql('postgres', "CREATE DATABASE $db TEMPLATE origin STRATEGY $strategy");
	is(look($primary, $db, 1), $expected, "$strategy: the same on the primary");
	$primary->wait_for_catchup($standby);
	is(look($standby, $db, 0), $logged, "$strategy: the same on the standby");

	# Later changes are replayed onto the copy.
	$primary->safe_psql($db, q(UPDATE t SET n = n + 5, body = 'later' WHERE id % 3 = 0; DELETE FROM toasted WHERE id > 40; VACUUM;));
	my $later = look($primary, $db, 0);
	isnt($later, $logged, "$strategy: the copy has been changed");
	$primary->wait_for_catchup($standby);
	is(look($standby, $db, 0), $later, "$strategy: the standby follows");
	is(look($primary, 'origin', 1), $expected, "$strategy: the template has not changed");
}

# ALTER DATABASE SET TABLESPACE copies all files (relations in "other" must not exist in it)
$primary->safe_psql('by_wal_log', 'ALTER TABLE elsewhere SET TABLESPACE pg_default');
my $before = look($primary, 'by_wal_log', 1);
$primary->safe_psql('postgres', 'ALTER DATABASE by_wal_log SET TABLESPACE other');
is(look($primary, 'by_wal_log', 1), $before, 'ALTER DATABASE SET TABLESPACE');
$primary->safe_psql('by_wal_log', 'UPDATE t SET n = n + 1');
$primary->wait_for_catchup($standby);
is( look($standby, 'by_wal_log', 0),
	look($primary, 'by_wal_log', 0),
	'ALTER DATABASE SET TABLESPACE: standby');
$primary->safe_psql('postgres', 'ALTER DATABASE by_wal_log SET TABLESPACE pg_default');
crash_and_recover($primary, 'kill');
is(look($primary, 'by_wal_log', 0), look($standby, 'by_wal_log', 0), 'and back, and a crash');

# ---- tables ----------------------------------------------------------------------

run_both(
	$primary, q(
CREATE TABLE moved (id int PRIMARY KEY, n int, body text);
ALTER TABLE moved ALTER body SET STORAGE EXTERNAL;
CREATE INDEX moved_n ON moved (n);
INSERT INTO moved SELECT i, 0, repeat('m', CASE WHEN i % 50 = 0 THEN 5000 ELSE i % 90 END) FROM generate_series(1, 2000) i;
UPDATE moved SET body = body || '1' WHERE id % 2 = 0;
BEGIN; UPDATE moved SET n = 77, body = 'aborted' WHERE id % 3 = 0; DELETE FROM moved WHERE id % 5 = 0;
INSERT INTO moved SELECT i, 9 FROM generate_series(5001, 6000) i; ROLLBACK;
BEGIN; SAVEPOINT a; UPDATE moved SET body = 'sub' WHERE id < 300; ROLLBACK TO a; SELECT count(*) FROM (SELECT FROM moved FOR SHARE) l; COMMIT;
));

my %old;
my %writer;
my $sums = 'SELECT count(*), sum(n), md5(string_agg(body, NULL ORDER BY id)) FROM moved';
foreach my $schema ('i', 'h')
{
	local $ENV{PGOPTIONS} = twin_options($schema);
	$old{$schema} = $primary->background_psql('postgres');
	# its snapshot is older than the change, its first look at the table is after the move
	$old{$schema}->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class');
}
my $was = $primary->safe_psql('postgres', $sums =~ s/moved/i.moved/r);
run_both($primary, q(UPDATE moved SET n = n + 1, body = 'changed' WHERE id % 4 = 0; DELETE FROM moved WHERE id % 7 = 0; UPDATE moved SET n = n + 1 WHERE id % 4 = 0));

# A row lock of ours, an open subtransaction and an aborted one, then the move, in one transaction,
# for which a writer waits.
my %mover;
foreach my $schema ('i', 'h')
{
	local $ENV{PGOPTIONS} = twin_options($schema);
	$mover{$schema} = $primary->background_psql('postgres');
	$mover{$schema}->query_safe(
		q(BEGIN; SELECT count(*) FROM (SELECT FROM moved WHERE id < 100 FOR UPDATE) l; UPDATE moved SET n = 50 WHERE id = 1;
SAVEPOINT s; UPDATE moved SET n = 60 WHERE id IN (2, 3); ROLLBACK TO s; SAVEPOINT s2; UPDATE moved SET n = 70 WHERE id = 5;
ALTER TABLE moved SET TABLESPACE other; ALTER INDEX moved_n SET TABLESPACE other; UPDATE moved SET n = 51 WHERE id = 6));
	$writer{$schema} = $primary->background_psql('postgres');
	$writer{$schema}->query_until(qr/waiting/, "\\echo waiting\nUPDATE moved SET n = n + 100 WHERE id < 200; \\echo done\n");
}
$primary->poll_query_until('postgres',
	"SELECT count(*) = 2 FROM pg_stat_activity WHERE wait_event_type = 'Lock'") or die;
foreach my $schema ('i', 'h')
{
	$mover{$schema}->query_safe('COMMIT');
	$writer{$schema}->query_until(qr/done/, '');
	$_->quit foreach $mover{$schema}, $writer{$schema};
}
same_tables($primary, 'SET TABLESPACE with a waiting writer', 'moved');
is($primary->safe_psql('postgres', 'SELECT n FROM i.moved WHERE id IN (1, 2, 5, 6) ORDER BY id'),
	"150\n100\n170\n151", 'SET TABLESPACE: changes of before and after it');
is($old{i}->query_safe($sums), $was, 'a snapshot of before sees what it saw');
is($old{h}->query_safe($sums), $was, 'as in heap');
$old{$_}->query_safe('COMMIT'), $old{$_}->quit foreach 'i', 'h';
tables_ok($primary, 'SET TABLESPACE', 'i.moved');
$primary->wait_for_catchup($standby);
same_tables($standby, 'SET TABLESPACE, standby', 'moved');
same_contents('SET TABLESPACE, standby', $primary, $standby, 'i.moved');
tables_ok($standby, 'SET TABLESPACE, standby', 'i.moved');

# Rolled back: nothing has happened; prepared: the same, or the changes before and after the
# move, also after a crash.  Without an index: core leaves entries of a rolled back copy
# in the indexes, which have not moved.
run_both(
	$primary, q(
CREATE TABLE bare (id int, n int) TABLESPACE other;
INSERT INTO bare SELECT i, 0 FROM generate_series(1, 2000) i;
BEGIN; UPDATE bare SET n = 1; ALTER TABLE bare SET TABLESPACE pg_default; UPDATE bare SET n = 2 WHERE id > 3; ROLLBACK));
same_tables($primary, 'SET TABLESPACE rolled back', 'bare');
foreach my $end ('ROLLBACK', 'COMMIT')
{
	$primary->safe_psql(
		'postgres', qq(SET search_path = $_; BEGIN; UPDATE bare SET n = n + 1000 WHERE id % 2 = 0;
ALTER TABLE bare SET TABLESPACE pg_default; UPDATE bare SET n = n + 1000 WHERE id % 3 = 0; PREPARE TRANSACTION '$_'))
	  foreach 'i', 'h';
	crash_and_recover($primary, 'kill');
	$primary->safe_psql('postgres', "$end PREPARED '$_'") foreach 'i', 'h';
	same_tables($primary, "SET TABLESPACE prepared, $end", 'bare');
	tables_ok($primary, "SET TABLESPACE prepared, $end", 'i.bare');
	is( $primary->safe_psql('postgres', 'SELECT max(n) FROM i.bare'),
		$end eq 'COMMIT' ? 2000 : 0,
		"SET TABLESPACE prepared, $end: changes of before and after");
}

# All tables of a tablespace at once, and unlogged ones.
run_both(
	$primary, q(CREATE UNLOGGED TABLE fast (id int PRIMARY KEY, n int); INSERT INTO fast SELECT i, i FROM generate_series(1, 1000) i;
UPDATE fast SET n = 0; ALTER TABLE fast SET TABLESPACE other; UPDATE fast SET n = n + id));
$primary->safe_psql('postgres', 'ALTER TABLE ALL IN TABLESPACE other SET TABLESPACE pg_default');
same_tables($primary, 'all in a tablespace', 'fast', 'moved');
crash_and_recover($primary, 'kill');
same_tables($primary, 'all in a tablespace, after a crash', 'fast', 'moved');
is($primary->safe_psql('postgres', 'SELECT count(*) FROM i.fast'), '0', 'a moved unlogged table is emptied by a crash');
run_both($primary, 'INSERT INTO fast VALUES (1, 1)');
tables_ok($primary, 'all in a tablespace', 'i.fast', 'i.moved');

$primary->wait_for_catchup($standby);
same_contents('standby in the end', $primary, $standby, 'i.moved');
is(look($standby, 'by_file_copy', 0), look($primary, 'by_file_copy', 0), 'copied database on the standby in the end');
$primary->safe_psql('postgres', 'DROP DATABASE by_file_copy; DROP DATABASE by_wal_log');
$primary->wait_for_catchup($standby);
log_ok($primary, 'primary', 0);
log_ok($standby, 'standby', 0);
$standby->stop;
$primary->stop;
done_testing();
