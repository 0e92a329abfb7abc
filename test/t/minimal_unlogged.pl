# Tables whose changes are not, or not all, in WAL: wal_level = minimal, unlogged
# and temporary tables.
#
# Every statement runs on an inplace table i_X and on a heap table h_X; heap says
# what must be there after the crash.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

test_seed();

my $node = new_cluster(
	'main', conf => qq(
wal_level = minimal
max_wal_senders = 0
));

my $data = PostgreSQL::Test::Utils::tempdir() . '/data';
append_to_file($data, join '', map { "$_\tline $_ of the file\n" } 1 .. 5000);

# Runs statements for both access methods; T_ stands for the prefix of a table's
# name, AM for the access method.
sub run_both
{
	my ($sql) = @_;
	foreach ([ 'i_', 'inplace' ], [ 'h_', 'heap' ])
	{
		my ($prefix, $am) = @$_;
		my $text = $sql;
		$text =~ s/\bT_/$prefix/g;
		$text =~ s/\bAM\b/$am/g;
		$node->safe_psql('postgres', $text);
	}
	return;
}

# ---- wal_level = minimal ------------------------------------------------------

my @tables = qw(copied changed truncated not_truncated truncated_twice
  created_as view rewritten moved moved_back savepoint big);

# At commit a new relation below wal_skip_threshold is written to WAL as a whole,
# a larger one is flushed and synced.
foreach my $threshold ('1GB', '0')
{
	my $name = "wal_skip_threshold = $threshold";
	$node->append_conf('postgresql.conf', "wal_skip_threshold = '$threshold'");
	$node->restart;

	run_both(
		qq(
BEGIN;
CREATE TABLE T_copied (id int PRIMARY KEY, body text) USING AM;
COPY T_copied FROM '$data';
COMMIT;

BEGIN;
CREATE TABLE T_changed (id int PRIMARY KEY, body text) USING AM;
COPY T_changed FROM '$data';
UPDATE T_changed SET body = body || id WHERE id % 2 = 0;
UPDATE T_changed SET id = -id WHERE id % 7 = 0;
DELETE FROM T_changed WHERE id % 3 = 0;
CREATE INDEX ON T_changed (body);
INSERT INTO T_changed VALUES (100000, repeat('long', 10000));
COMMIT;
UPDATE T_changed SET body = 'after' WHERE id % 10 = 1;

CREATE TABLE T_truncated (id int PRIMARY KEY, body text) USING AM;
INSERT INTO T_truncated SELECT i, 'old' FROM generate_series(1, 1000) i;
BEGIN;
TRUNCATE T_truncated;
COPY T_truncated FROM '$data';
COMMIT;

CREATE TABLE T_not_truncated (id int PRIMARY KEY, body text) USING AM;
INSERT INTO T_not_truncated SELECT i, 'old' FROM generate_series(1, 1000) i;
BEGIN;
UPDATE T_not_truncated SET body = 'not committed';
TRUNCATE T_not_truncated;
COPY T_not_truncated FROM '$data';
ROLLBACK;

BEGIN;
CREATE TABLE T_truncated_twice (id int PRIMARY KEY, body text) USING AM;
INSERT INTO T_truncated_twice VALUES (1, 'first');
TRUNCATE T_truncated_twice;
COPY T_truncated_twice FROM '$data';
TRUNCATE T_truncated_twice;
INSERT INTO T_truncated_twice VALUES (2, 'second');
COMMIT;

CREATE TABLE T_created_as USING AM AS SELECT * FROM T_changed WHERE id > 1000;
CREATE MATERIALIZED VIEW T_view USING AM AS SELECT * FROM T_changed WHERE id < 1000;
REFRESH MATERIALIZED VIEW T_view;

CREATE TABLE T_rewritten (id int PRIMARY KEY, body text) USING AM;
COPY T_rewritten FROM '$data';
UPDATE T_rewritten SET body = 'x' WHERE id < 10;
BEGIN;
ALTER TABLE T_rewritten ALTER COLUMN id TYPE bigint;
UPDATE T_rewritten SET body = 'y' WHERE id < 5;
COMMIT;

-- from the other access method
CREATE TABLE T_moved (id int PRIMARY KEY, body text) USING heap;
COPY T_moved FROM '$data';
ALTER TABLE T_moved SET ACCESS METHOD AM;

CREATE TABLE T_moved_back (id int PRIMARY KEY, body text) USING AM;
COPY T_moved_back FROM '$data';
DELETE FROM T_moved_back WHERE id < 2000;
BEGIN;
ALTER TABLE T_moved_back SET ACCESS METHOD heap;
UPDATE T_moved_back SET body = body || id WHERE id % 3 = 0;
ALTER TABLE T_moved_back SET ACCESS METHOD AM;
UPDATE T_moved_back SET body = body || id WHERE id % 5 = 0;
COMMIT;

BEGIN;
CREATE TABLE T_savepoint (id int PRIMARY KEY, body text) USING AM;
INSERT INTO T_savepoint SELECT i, 'base' FROM generate_series(1, 1000) i;
SAVEPOINT a;
UPDATE T_savepoint SET body = 'changed';
TRUNCATE T_savepoint;
COPY T_savepoint FROM '$data';
ROLLBACK TO a;
UPDATE T_savepoint SET body = 'kept' WHERE id % 2 = 0;
SAVEPOINT b;
DELETE FROM T_savepoint WHERE id % 3 = 0;
ROLLBACK TO b;
INSERT INTO T_savepoint SELECT i, 'more' FROM generate_series(1001, 1500) i;
COMMIT;

-- larger than shared buffers would hold if it were not written out
BEGIN;
CREATE TABLE T_big (id int, body text) USING AM;
INSERT INTO T_big SELECT i, repeat('big', 100) FROM generate_series(1, 150000) i;
CREATE INDEX ON T_big (id);
COMMIT;

BEGIN;
CREATE TABLE T_never (id int PRIMARY KEY, body text) USING AM;
COPY T_never FROM '$data';
UPDATE T_never SET body = 'never';
ROLLBACK;
BEGIN;
CREATE TABLE T_never_savepoint (id int) USING AM;
SAVEPOINT a;
INSERT INTO T_never_savepoint SELECT generate_series(1, 1000);
DROP TABLE T_never_savepoint;
COMMIT;
));
	same_as_heap($node, "$name, before the crash", @tables);

	crash_and_recover($node, 'kill');
	same_as_heap($node, "$name, after the crash", @tables);
	tables_ok($node, $name, map { "i_$_" } @tables);
	is( $node->safe_psql(
			'postgres',
			"SELECT count(*) FROM pg_class WHERE relname ~ 'never'"),
		'0',
		"$name: a rolled back table is gone");

	# The tables can be changed, and survive one more crash.
	run_both(join '',
		map { "UPDATE T_$_ SET body = body || '+' WHERE id % 4 = 0;" }
		grep { $_ ne 'view' } @tables);
	crash_and_recover($node, 'immediate');
	same_as_heap($node, "$name, changed and crashed again", @tables);

	run_both(
		join '', map { $_ eq 'view' ? '' : "DROP TABLE T_$_ CASCADE;" } @tables
	);
}

# ---- unlogged tables ----------------------------------------------------------

my @unlogged = qw(unlogged to_logged to_unlogged);

run_both(
	q(
CREATE UNLOGGED TABLE T_unlogged (id int PRIMARY KEY, body text) USING AM;
CREATE INDEX ON T_unlogged (body);
INSERT INTO T_unlogged SELECT i, 'row ' || i FROM generate_series(1, 5000) i;
UPDATE T_unlogged SET body = body || body WHERE id % 3 = 0;
DELETE FROM T_unlogged WHERE id % 5 = 0;

CREATE UNLOGGED TABLE T_to_logged (id int PRIMARY KEY, body text) USING AM;
INSERT INTO T_to_logged SELECT i, 'row ' || i FROM generate_series(1, 5000) i;
UPDATE T_to_logged SET body = body || body WHERE id % 3 = 0;

CREATE TABLE T_to_unlogged (id int PRIMARY KEY, body text) USING AM;
INSERT INTO T_to_unlogged SELECT i, 'row ' || i FROM generate_series(1, 5000) i;
));
$node->restart;
same_as_heap($node, 'unlogged, after a clean restart', @unlogged);

run_both(
	q(
ALTER TABLE T_to_logged SET LOGGED;
ALTER TABLE T_to_unlogged SET UNLOGGED;
UPDATE T_to_logged SET body = 'logged' WHERE id % 4 = 0;
UPDATE T_to_unlogged SET body = 'unlogged' WHERE id % 4 = 0;
));
crash_and_recover($node, 'kill');
is( $node->safe_psql(
		'postgres',
		'SELECT (SELECT count(*) FROM i_unlogged), (SELECT count(*) FROM i_to_unlogged), (SELECT count(*) FROM i_to_logged)'
	),
	'0|0|5000',
	'unlogged tables are empty after a crash, the logged one is not');
same_as_heap($node, 'unlogged, after a crash', @unlogged);
tables_ok($node, 'unlogged, after a crash', map { "i_$_" } @unlogged);

run_both(
	q(
INSERT INTO T_unlogged SELECT i, 'again ' || i FROM generate_series(1, 3000) i;
UPDATE T_unlogged SET body = body || body WHERE id % 2 = 0;
BEGIN;
UPDATE T_unlogged SET body = 'no';
DELETE FROM T_unlogged WHERE id % 2 = 1;
ROLLBACK;
VACUUM T_unlogged;
INSERT INTO T_to_unlogged VALUES (1, 'one');
));
same_as_heap($node, 'unlogged, used after a crash', @unlogged);
tables_ok($node, 'unlogged, used after a crash', map { "i_$_" } @unlogged);
crash_and_recover($node, 'immediate');
same_as_heap($node, 'unlogged, after another crash', @unlogged);

# ---- a new file, and an index that stays ------------------------------------------

# A deletion that is committed, but not flushed, in a file that is not logged: the index must not remember it.
create_flush_relation($node);
$node->safe_psql('postgres', qq(
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE elsewhere LOCATION '';
CREATE TABLE i_elsewhere (id int PRIMARY KEY, n int, body text) USING inplace;
INSERT INTO i_elsewhere SELECT i, 0, md5(i::text) FROM generate_series(1, 60) i;
VACUUM i_elsewhere;
CHECKPOINT;
));
kill 'STOP', $node->safe_psql('postgres', q(SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'));
my $found = $node->safe_psql('postgres', q(
SET synchronous_commit = off;
SET enable_seqscan = off;
BEGIN;
DELETE FROM i_elsewhere WHERE id = 1;
SELECT flush_relation('i_elsewhere');
COMMIT;
BEGIN;
ALTER TABLE i_elsewhere SET TABLESPACE elsewhere;
DO $$BEGIN FOR i IN 1..300 LOOP UPDATE i_elsewhere SET n = n + 1 WHERE id = 41; END LOOP; END$$;
SELECT state FROM inplace_rows('i_elsewhere', 0) WHERE off = 2;
SELECT count(*) FROM i_elsewhere WHERE id = 1;
SELECT count(*) FROM i_elsewhere WHERE id = 1;
SELECT flush_relation('i_elsewhere_pkey');
));
like($found, qr/^dead$/m, 'a new file: the row has gone');
crash_and_recover($node, 'kill');
is($node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM i_elsewhere WHERE id = 1'),
	$node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM i_elsewhere WHERE id = 1'), 'after a crash the index knows what the table has');
tables_ok($node, 'a new file, after a crash', 'i_elsewhere');

# ---- temporary tables -----------------------------------------------------------

# They live in one session's local buffers, here far too few.
my $differences = $node->safe_psql(
	'postgres', join '',
	"SET temp_buffers = '800kB';\n",
	(
		map {
			my ($prefix, $am) = @$_;
			(
				my $sql = q(
CREATE TEMP TABLE T_temp (id int PRIMARY KEY, grp int, body text) USING AM;
CREATE INDEX ON T_temp (grp);
INSERT INTO T_temp SELECT i, i % 100, repeat('temp', 20) FROM generate_series(1, 40000) i;
UPDATE T_temp SET body = 'short' WHERE id % 2 = 0;
UPDATE T_temp SET body = repeat('longer', 50), grp = grp + 1 WHERE id % 3 = 0;
BEGIN;
UPDATE T_temp SET body = 'gone';
DELETE FROM T_temp WHERE id % 2 = 0;
INSERT INTO T_temp SELECT i, 0, 'gone' FROM generate_series(40001, 50000) i;
ROLLBACK;
BEGIN;
DELETE FROM T_temp WHERE id % 10 = 0;
SAVEPOINT a;
UPDATE T_temp SET grp = 0;
ROLLBACK TO a;
COMMIT;
VACUUM T_temp;
INSERT INTO T_temp SELECT i, 5, repeat('very long', 5000) FROM generate_series(60001, 60020) i;
CREATE TEMP TABLE T_emptied (id int, body text) USING AM ON COMMIT DELETE ROWS;
BEGIN;
INSERT INTO T_emptied SELECT i, 'x' FROM generate_series(1, 2000) i;
UPDATE T_emptied SET body = 'y';
COMMIT;
INSERT INTO T_emptied VALUES (1, 'x');
)) =~ s/\bT_/$prefix/g;
			$sql =~ s/\bAM\b/$am/g;
			$sql
		} ([ 'i_', 'inplace' ], [ 'h_', 'heap' ])),
	q(
SELECT 'only in inplace', * FROM (TABLE i_temp EXCEPT ALL TABLE h_temp) d;
SELECT 'only in heap', * FROM (TABLE h_temp EXCEPT ALL TABLE i_temp) d;
SELECT 'not emptied', * FROM i_emptied;
SELECT it.problems('i_temp');
));
is($differences, '', 'temporary table larger than its buffers');

log_ok($node, 'whole run', 0);
$node->stop;
done_testing();
