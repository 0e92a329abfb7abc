# Thousands of subtransactions: savepoints deep in each other and one after the other, exception
# loops; and prepared transactions with row locks that outlive a restart and a
# promotion.  Heap says what is right.

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
max_prepared_transactions = 20
autovacuum = off
wal_keep_size = '1GB'
max_stack_depth = '7MB'
));
create_twin_schemas($primary);
my $standby = new_standby($primary);

# ---- savepoints ----------------------------------------------------------------------------

run_both(
	$primary, q(
CREATE TABLE s (id int PRIMARY KEY, n int, body text); CREATE INDEX s_n ON s (n);
INSERT INTO s SELECT i, 0, repeat('s', i % 60) FROM generate_series(1, 300) i;
CREATE TABLE log (id int, n int);
));

# A script with 2000 savepoints in each other; rows are changed at every level, and a part of
# the levels is released or rolled back in the end.
sub deep
{
	my ($levels, $end) = @_;
	my $sql = 'BEGIN;';
	foreach my $level (1 .. $levels)
	{
		my $id = 1 + $level * 7 % 300;
		$sql .= "SAVEPOINT s$level;\n";
		my $kind = $level % 5;
		$sql .= "UPDATE s SET n = n + 1 WHERE id = $id;\n"                                  if $kind == 0;
		$sql .= "UPDATE s SET body = body || 'x', n = -n WHERE id = $id;\n"                 if $kind == 1;
		$sql .= "DELETE FROM s WHERE id = $id; INSERT INTO s VALUES ($id, $level, 'new');\n" if $kind == 2;
		$sql .= "UPDATE s SET body = left(body, 5) WHERE id = 1;\n"                         if $kind == 3;
		$sql .= "SELECT id FROM s WHERE id = $id FOR UPDATE;\n"                             if $kind == 4;
	}
	# in one message: thousands of round trips take their time on a busy machine
	return "$sql SELECT count(*), sum(n), sum(length(body)) FROM s;\n$end;" =~ s/;(?!\z)/\\;/gr;
}
foreach my $end (
	'COMMIT', 'ROLLBACK',
	'RELEASE s1000; SELECT sum(n) FROM s; COMMIT',
	'RELEASE s1500; ROLLBACK TO s1000; SELECT sum(n), sum(length(body)) FROM s; UPDATE s SET body = body || 1; RELEASE s10; COMMIT',
	'ROLLBACK TO s1999; ROLLBACK TO s1500; ROLLBACK TO s2; SELECT sum(n) FROM s; ROLLBACK TO s1; COMMIT')
{
	same_answer($primary, "2000 deep, $end", deep(2000, $end), qr/^300\|/m);
	same_tables($primary, "2000 deep, $end", 's');
}
tables_ok($primary, 'deep savepoints', 'i.s');

# One after the other, all on the same rows, released and rolled back alternately, while a reader's
# snapshot is from before, and another session waits for one of the rows.
run_both($primary, 'VACUUM s');
my $snapshot = $primary->background_psql('postgres');
my $sums = 'SELECT count(*), sum(n), sum(length(body)) FROM i.s';
my $was = $primary->safe_psql('postgres', $sums);
$snapshot->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; $sums");
my $loop = q(
DO $$
DECLARE r int;
BEGIN
	FOR i IN 1 .. 2000 LOOP
		BEGIN
			UPDATE s SET n = n + 1, body = left(body || i, 80) WHERE id = 1 + i % 20;
			BEGIN
				UPDATE s SET n = -1 WHERE id = 1 + i % 20;
				INSERT INTO s VALUES (CASE WHEN i % 3 = 0 THEN 1 ELSE 10000 + i END, i, 'e');
				IF i % 4 = 0 THEN DELETE FROM s WHERE id = 100 + i % 50; r := 1 / (i % 8); END IF;
			EXCEPTION
				WHEN unique_violation THEN INSERT INTO log VALUES (i, 1);
				WHEN division_by_zero THEN UPDATE s SET n = n + 1 WHERE id = 2;
			END;
			IF i % 5 = 0 THEN RAISE 'no'; END IF;
		EXCEPTION WHEN raise_exception THEN
			INSERT INTO log VALUES (i, 2);
		END;
	END LOOP;
END $$;
SELECT count(*), sum(n), sum(length(body)) FROM s; SELECT count(*), sum(id * n) FROM log;
);
same_answer($primary, 'exception loop', $loop, qr/^\d+\|\d+/m);
same_tables($primary, 'exception loop', 's', 'log');
is($snapshot->query_safe($sums), $was, 'exception loop: an old snapshot sees what it saw');
same_answer($primary, 'exception loop rolled back', "BEGIN; $loop ROLLBACK; SELECT sum(n) FROM s;");
same_tables($primary, 'exception loop rolled back', 's', 'log');
is($snapshot->query_safe($sums), $was, 'rolled back: an old snapshot sees what it saw');
$snapshot->query_safe('COMMIT');
tables_ok($primary, 'exception loops', 'i.s', 'i.log');

# The snapshot of others is older than an open transaction with more subtransactions than are
# in shared memory (64): they look them up in pg_subtrans, also on the standby.
my $many = $primary->background_psql('postgres');
$many->query_safe('BEGIN; SET search_path = i');
$many->query_safe('DO $$BEGIN FOR i IN 1 .. 300 LOOP BEGIN UPDATE s SET n = 555 WHERE id = i; IF i % 2 = 0 THEN RAISE EXCEPTION \'no\'; END IF; EXCEPTION WHEN raise_exception THEN NULL; END; END LOOP; END$$');
is($primary->safe_psql('postgres', 'SELECT count(*) FROM i.s WHERE n = 555'), '0', 'open subtransactions are not seen');
my ($ret, $out, $err) = $primary->psql('postgres', 'SELECT FROM i.s WHERE id = 1 FOR UPDATE NOWAIT');
like($err, qr/could not obtain lock/, 'nor can their rows be locked');
is($primary->safe_psql('postgres', 'SELECT count(*) FROM (SELECT FROM i.s WHERE id IN (2, 4, 200) FOR UPDATE NOWAIT) l'), '3', 'those of aborted ones can be');
$primary->wait_for_catchup($standby);
is($standby->safe_psql('postgres', 'SELECT count(*) FROM i.s WHERE n = 555'), '0', 'open subtransactions are not seen on the standby');
$many->query_safe('COMMIT');
is($primary->safe_psql('postgres', 'SELECT count(*) FROM i.s WHERE n = 555'), '150', 'and are when they are committed');
$primary->wait_for_catchup($standby);
is($standby->safe_psql('postgres', 'SELECT count(*) FROM i.s WHERE n = 555'), '150', 'so on the standby');
$_->quit foreach $many, $snapshot;
same_contents('standby', $primary, $standby, 'i.s', 'i.log');

# ---- two-phase commit --------------------------------------------------------------------------

run_both($primary, 'CREATE TABLE p (id int PRIMARY KEY, n int, body text); INSERT INTO p SELECT i, 0, i FROM generate_series(1, 100) i; VACUUM p');
my $shared_twice = server_forgets($primary) ? 41 : 31;
# Not: a row that one of them has changed twice, where heap waits in spite of NOWAIT.
my %prepared = (
	locks => 'SELECT FROM p WHERE id <= 10 FOR UPDATE; SELECT FROM p WHERE id BETWEEN 11 AND 20 FOR NO KEY UPDATE',
	shared => 'SELECT FROM p WHERE id BETWEEN 21 AND 40 FOR SHARE',
	shared2 => "SELECT FROM p WHERE id BETWEEN $shared_twice AND 50 FOR KEY SHARE",
	changes => 'UPDATE p SET n = 1, body = repeat(body, 20) WHERE id BETWEEN 51 AND 60; DELETE FROM p WHERE id BETWEEN 61 AND 65; INSERT INTO p VALUES (101, 1, 1)',
	subs => 'SAVEPOINT a; UPDATE p SET n = 2 WHERE id BETWEEN 66 AND 75; SAVEPOINT b; UPDATE p SET n = 3 WHERE id BETWEEN 70 AND 80; ROLLBACK TO b; DELETE FROM p WHERE id = 76; RELEASE a',
	locked_then_changed => 'SELECT FROM p WHERE id BETWEEN 81 AND 90 FOR UPDATE; UPDATE p SET n = 9 WHERE id BETWEEN 83 AND 85; SAVEPOINT a; SELECT FROM p WHERE id BETWEEN 91 AND 95 FOR UPDATE; ROLLBACK TO a');
sub prepare_all
{
	foreach my $schema ('i', 'h')
	{
		$primary->safe_psql('postgres', "SET search_path = $schema; BEGIN; $prepared{$_}; PREPARE TRANSACTION '$schema $_'") foreach sort keys %prepared;
	}
	return;
}
# For each row: in which modes can it be locked now, and can it be deleted?
my $lockable = q(
CREATE FUNCTION pg_temp.lockable(OUT id int, OUT modes text) RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE mode text;
BEGIN
	FOR id IN SELECT p.id FROM p ORDER BY 1 LOOP
		modes := '';
		FOREACH mode IN ARRAY '{KEY SHARE,SHARE,NO KEY UPDATE,UPDATE}'::text[] LOOP
			BEGIN
				EXECUTE format('SELECT FROM p WHERE id = %s FOR %s NOWAIT', id, mode);
				modes := modes || mode || ' ';
				RAISE EXCEPTION 'no' USING ERRCODE = 'QQQQQ';
			EXCEPTION WHEN lock_not_available THEN NULL; WHEN SQLSTATE 'QQQQQ' THEN NULL;
			END;
		END LOOP;
		RETURN NEXT;
	END LOOP;
END$$;
SELECT modes, string_agg(id::text, ',') FROM pg_temp.lockable() GROUP BY 1 ORDER BY 1;);
prepare_all();
my $locks = same_answer($primary, 'prepared: locks', $lockable, qr/^KEY SHARE SHARE NO KEY UPDATE \|41/m);
$primary->restart;
is(same_answer($primary, 'prepared: locks after a restart', $lockable), $locks, 'prepared: the same after a restart');
crash_and_recover($primary, 'kill');
is(same_answer($primary, 'prepared: locks after a crash', $lockable), $locks, 'prepared: the same after a crash');
run_both($primary, 'VACUUM p; VACUUM FREEZE s');

# The standby takes over.
$primary->wait_for_catchup($standby);
$primary->stop('immediate');
$standby->promote;
is(same_answer($standby, 'prepared: locks after a promotion', $lockable), $locks, 'prepared: the same after a promotion');
same_tables($standby, 'prepared, after a promotion', 'p', 'log');
foreach my $schema ('i', 'h')
{
	$standby->safe_psql('postgres', join ' ', map { (/s$/ ? 'COMMIT' : 'ROLLBACK') . " PREPARED '$schema $_';" } sort keys %prepared);
}
same_tables($standby, 'prepared, in the end', 'p');
same_answer($standby, 'prepared: all locks are gone', $lockable, qr/\A(KEY SHARE SHARE NO KEY UPDATE UPDATE \|[\d,]+)\s*\z/);
is($standby->safe_psql('postgres', 'SELECT count(*), sum(n) FROM i.p'), '95|31', 'prepared: some were committed');
run_both($standby, 'UPDATE p SET n = n + 1, body = body || 1; DELETE FROM p WHERE id % 2 = 0; VACUUM p');
same_tables($standby, 'prepared, changed later', 'p');
tables_ok($standby, 'in the end', 'i.p', 'i.s', 'i.log');
log_ok($primary, 'primary', 0);
log_ok($standby, 'standby', 0);
$standby->stop;
done_testing();
