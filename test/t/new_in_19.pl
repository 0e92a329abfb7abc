# What PostgreSQL 19 brought, on inplace tables and on their heap twins: the same comes out.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

test_seed();

my $node = new_cluster('main', streaming => 1, conf => "autovacuum = off\nmax_parallel_workers = 8\nhot_standby_feedback = on");
if ($node->pg_version->major < 19)
{
	plan skip_all => 'for PostgreSQL 19';
}

# Some of it was taken back before 19 was released.  The grammar knows a word of what is there.
sub has_word
{
	my ($word) = @_;
	return $node->safe_psql('postgres', "SELECT count(*) FROM pg_get_keywords() WHERE word = '$word'") == 1;
}

# The SQL is run twice, T_ being h_ and i_, AM the access method, and gives the same.
sub same
{
	my ($name, $sql) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my @answers;
	foreach my $am (qw(heap inplace))
	{
		my $prefix = substr($am, 0, 1) . '_';
		my ($status, $stdout, $stderr) = $node->psql('postgres', "SET default_table_access_method = $am; " . ($sql =~ s/\bT_/$prefix/gr =~ s/\bAM\b/$am/gr), on_error_stop => 0);
		push @answers, join("\n", $stdout, $stderr =~ s/\b[hi]_/T_/gr);
	}
	unlike($answers[0], qr/does not exist|syntax error/, "$name: heap has an answer");
	is($answers[1], $answers[0], $name);
	return;
}

# ---- FOR PORTION OF ------------------------------------------------------------------------

SKIP:
{
	skip 'FOR PORTION OF: this server does not have it', 4 if !has_word('portion');
	same('FOR PORTION OF', q(
CREATE TABLE T_p (id int, valid daterange, name text NOT NULL);
CREATE INDEX ON T_p (id);
INSERT INTO T_p SELECT i, daterange(date '2020-01-01' + i, date '2021-01-01' + i), 'name' || i FROM generate_series(1, 200) i;
UPDATE T_p FOR PORTION OF valid FROM '2020-06-01' TO '2020-07-01' SET name = name || '^' WHERE id % 2 = 0;
DELETE FROM T_p FOR PORTION OF valid FROM '2020-09-01' TO '2020-09-10' WHERE id % 3 = 0;
BEGIN; UPDATE T_p FOR PORTION OF valid FROM '2020-03-01' TO NULL SET name = 'gone'; ROLLBACK;
UPDATE T_p FOR PORTION OF valid FROM '2020-02-01' TO '2020-02-02' SET id = -id WHERE id < 20 RETURNING id, valid;
SELECT count(*), md5(string_agg(x::text, ',' ORDER BY x::text)) FROM T_p x));
	$node->safe_psql('postgres', 'CREATE EXTENSION btree_gist');
	same('FOR PORTION OF with a key without overlaps, and triggers', q(
CREATE TABLE T_k (id int, valid daterange, n int, PRIMARY KEY (id, valid WITHOUT OVERLAPS));
CREATE TABLE T_log (at serial, what text);
CREATE OR REPLACE FUNCTION T_logs() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO T_log (what) VALUES (concat_ws(' ', TG_OP, OLD.id, OLD.valid, OLD.n, '->', NEW.id, NEW.valid, NEW.n)); RETURN NULL; END $$;
CREATE TRIGGER logs AFTER INSERT OR UPDATE OR DELETE ON T_k FOR EACH ROW EXECUTE FUNCTION T_logs();
INSERT INTO T_k SELECT i, daterange('2020-01-01', '2021-01-01'), i FROM generate_series(1, 20) i;
UPDATE T_k FOR PORTION OF valid FROM '2020-06-01' TO '2020-07-01' SET n = n + 100 WHERE id < 10;
UPDATE T_k FOR PORTION OF valid FROM '2020-05-01' TO '2020-06-15' SET n = n + 100 WHERE id < 5;
DELETE FROM T_k FOR PORTION OF valid FROM '2020-06-10' TO '2020-12-01' WHERE id % 2 = 0;
SELECT * FROM T_k ORDER BY id, valid;
SELECT what, count(*) FROM T_log GROUP BY what ORDER BY what));
}

# ---- ON CONFLICT DO SELECT --------------------------------------------------------------------

same('ON CONFLICT DO SELECT', q(
CREATE TABLE T_c (id int PRIMARY KEY, n int, t text);
INSERT INTO T_c SELECT i, i, repeat('t', 3000) FROM generate_series(1, 10) i;
UPDATE T_c SET n = n + 10 WHERE id % 2 = 0;
INSERT INTO T_c SELECT i, -1, 'new' FROM generate_series(5, 15) i ON CONFLICT (id) DO SELECT RETURNING id, n, length(t);
INSERT INTO T_c SELECT i, -1, 'new' FROM generate_series(1, 3) i ON CONFLICT (id) DO SELECT FOR UPDATE RETURNING id, n, length(t);
INSERT INTO T_c VALUES (1, 5, 'x'), (20, 5, 'x') ON CONFLICT (id) DO SELECT WHERE T_c.n > excluded.n RETURNING *;
BEGIN; UPDATE T_c SET n = 77 WHERE id = 4; INSERT INTO T_c VALUES (4, 0, '') ON CONFLICT (id) DO SELECT RETURNING id, n;
SAVEPOINT s; UPDATE T_c SET n = 78 WHERE id = 4; ROLLBACK TO s; INSERT INTO T_c VALUES (4, 0, '') ON CONFLICT (id) DO SELECT FOR SHARE RETURNING id, n; COMMIT;
INSERT INTO T_c VALUES (30, 1, 'one'), (30, 2, 'two') ON CONFLICT (id) DO SELECT RETURNING *;
INSERT INTO T_c VALUES (31, 1, 'one'), (31, 2, 'two') ON CONFLICT (id) DO SELECT FOR UPDATE RETURNING *;
WITH u AS (UPDATE T_c SET n = 99 WHERE id = 5 RETURNING n) INSERT INTO T_c SELECT 6, n FROM u ON CONFLICT (id) DO SELECT RETURNING id, n;
SELECT id, n, length(t) FROM T_c ORDER BY id));

# Rows that the same command has changed, has inserted, or a function that it calls: what comes is the version that the index led to.
# Triggers that are queued get the versions that they always get.
same('ON CONFLICT DO SELECT of what the command has changed', q(
CREATE TABLE T_s (id int PRIMARY KEY, n int, k int, t text);
INSERT INTO T_s SELECT i, i, i, 'before' FROM generate_series(1, 20) i; CREATE INDEX ON T_s (k);
\echo in place
WITH u AS (UPDATE T_s SET n = 99 WHERE id = 5 RETURNING n) INSERT INTO T_s SELECT 5, n, 0 FROM u ON CONFLICT (id) DO SELECT RETURNING id, n, k, t;
\echo moved
WITH u AS (UPDATE T_s SET k = 99 WHERE id = 6 RETURNING k) INSERT INTO T_s SELECT 6, 0, k FROM u ON CONFLICT (id) DO SELECT RETURNING id, n, k, t;
\echo lock
WITH u AS (UPDATE T_s SET n = 98 WHERE id = 7 RETURNING n) INSERT INTO T_s SELECT 7, n, 0 FROM u ON CONFLICT (id) DO SELECT FOR UPDATE RETURNING id, n, k, t;
\echo where
WITH u AS (UPDATE T_s SET n = 97 WHERE id = 8 RETURNING n) INSERT INTO T_s SELECT 8, n, 0 FROM u ON CONFLICT (id) DO SELECT WHERE T_s.n = excluded.n RETURNING id, n, k, t;
\echo inserted
WITH u AS (INSERT INTO T_s VALUES (41, 1, 1, 'new') RETURNING id) INSERT INTO T_s SELECT id, 5, 5 FROM u ON CONFLICT (id) DO SELECT RETURNING id, n, k, t;
\echo upserted
WITH u AS (INSERT INTO T_s VALUES (9, 1, 1, 'new') ON CONFLICT (id) DO UPDATE SET n = -1 RETURNING id) INSERT INTO T_s SELECT id, 5, 5 FROM u ON CONFLICT (id) DO SELECT RETURNING id, n, k, t;
\echo merged
WITH u AS (MERGE INTO T_s USING (SELECT 10 AS x) s ON id = x WHEN MATCHED THEN UPDATE SET t = 'merged' RETURNING id) INSERT INTO T_s SELECT id, 5, 5 FROM u ON CONFLICT (id) DO SELECT RETURNING id, n, k, t;
\echo deleted
WITH u AS (DELETE FROM T_s WHERE id = 11 RETURNING id) INSERT INTO T_s SELECT id, 5, 5 FROM u ON CONFLICT (id) DO SELECT RETURNING id, n, k, t;
\echo functions
CREATE OR REPLACE FUNCTION T_f(i int, v int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN UPDATE T_s SET n = v WHERE id = i; RETURN i; END $$;
CREATE OR REPLACE FUNCTION T_g(i int, v int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN UPDATE T_s SET n = v WHERE id = i; BEGIN UPDATE T_s SET n = v + 1 WHERE id = i; RAISE 'x'; EXCEPTION WHEN raise_exception THEN NULL; END; RETURN i; END $$;
INSERT INTO T_s SELECT T_f(12, 500), 0, 0 ON CONFLICT (id) DO SELECT RETURNING id, n, k, t;
INSERT INTO T_s SELECT T_g(12, 600), 0, 0 ON CONFLICT (id) DO SELECT RETURNING id, n, k, t;
BEGIN; UPDATE T_s SET n = 1000 WHERE id = 12; INSERT INTO T_s SELECT T_f(12, 700), 0, 0 ON CONFLICT (id) DO SELECT RETURNING id, n, k, t;
INSERT INTO T_s SELECT T_f(12, 701), 0, 0 FROM generate_series(1, 3) ON CONFLICT (id) DO SELECT RETURNING id, n, k, t; 
INSERT INTO T_s SELECT T_f(12, 800 + g), 0, 0 FROM generate_series(1, 3) g ON CONFLICT (id) DO SELECT RETURNING id, n, k, t; COMMIT;
BEGIN ISOLATION LEVEL REPEATABLE READ; INSERT INTO T_s SELECT T_f(12, 900), 0, 0 ON CONFLICT (id) DO SELECT RETURNING id, n, k, t;
WITH u AS (UPDATE T_s SET n = 99 WHERE id = 5 RETURNING n) INSERT INTO T_s SELECT 5, n, 0 FROM u ON CONFLICT (id) DO SELECT RETURNING id, n, k, t; COMMIT;
\echo triggers
CREATE TABLE T_l (at serial, what text);
CREATE OR REPLACE FUNCTION T_logs() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO T_l (what) VALUES (concat_ws(' ', TG_OP, OLD.id, OLD.n, OLD.k, OLD.t, '->', NEW.id, NEW.n, NEW.k, NEW.t)); RETURN NULL; END $$;
CREATE TRIGGER logs AFTER INSERT OR UPDATE OR DELETE ON T_s FOR EACH ROW EXECUTE FUNCTION T_logs();
WITH u AS (UPDATE T_s SET n = 199 WHERE id = 5 RETURNING n) INSERT INTO T_s SELECT 5, n, 0 FROM u ON CONFLICT (id) DO SELECT RETURNING id, n, k, t;
WITH u AS (UPDATE T_s SET n = 198 WHERE id = 5 RETURNING n) INSERT INTO T_s SELECT 5, n, 0 FROM u ON CONFLICT (id) DO NOTHING RETURNING id, n, k, t;
WITH u AS (UPDATE T_s SET k = 198 WHERE id = 5 RETURNING n) INSERT INTO T_s SELECT 5, n, 0 FROM u ON CONFLICT (id) DO NOTHING RETURNING id, n, k, t;
WITH u AS (UPDATE T_s SET k = 197 WHERE id = 5 RETURNING n) INSERT INTO T_s SELECT 5, n, 0 FROM u ON CONFLICT (id) DO SELECT RETURNING id, n, k, t;
WITH u AS (UPDATE T_s SET k = 196 WHERE id = 5 RETURNING T_f(5, -7) AS n) INSERT INTO T_s SELECT 5, n, 0 FROM u ON CONFLICT (id) DO NOTHING RETURNING id, n, k, t;
WITH u AS (UPDATE T_s SET k = 195 WHERE id = 5 RETURNING T_f(5, -8) AS n) INSERT INTO T_s SELECT 5, n, 0 FROM u ON CONFLICT (id) DO SELECT RETURNING id, n, k, t;
WITH u AS (UPDATE T_s SET n = 194 WHERE id = 5 RETURNING T_f(5, -9) AS n) INSERT INTO T_s SELECT 5, n, 0 FROM u ON CONFLICT (id) DO NOTHING RETURNING id, n, k, t;
WITH u AS (UPDATE T_s SET n = 193 WHERE id = 5 RETURNING T_f(5, -10) AS n) INSERT INTO T_s SELECT 5, n, 0 FROM u ON CONFLICT (id) DO SELECT RETURNING id, n, k, t;
WITH u AS (INSERT INTO T_s VALUES (50, 1, 1) RETURNING T_f(50, -11) AS n) INSERT INTO T_s SELECT 50, n, 0 FROM u ON CONFLICT (id) DO NOTHING RETURNING id, n, k, t;
WITH u AS (INSERT INTO T_s VALUES (51, 1, 1) RETURNING T_f(51, -12) AS n) INSERT INTO T_s SELECT 51, n, 0 FROM u ON CONFLICT (id) DO SELECT RETURNING id, n, k, t;
WITH u AS (UPDATE T_s SET n = 192 WHERE id = 5 RETURNING n), i AS (INSERT INTO T_s SELECT 5, n, 0 FROM u ON CONFLICT (id) DO NOTHING) MERGE INTO T_s USING (VALUES (13)) v(x) ON id = x WHEN MATCHED THEN DELETE;
INSERT INTO T_s VALUES (5, 0, 0), (60, 0, 0), (60, 1, 1), (5, 1, 1) ON CONFLICT (id) DO SELECT RETURNING id, n, k, t;
SELECT what, count(*) FROM T_l GROUP BY what ORDER BY min(at);
SELECT * FROM T_s ORDER BY id;));

# The row changes after the command's snapshot was taken, and before it is met: what comes is what the index led to.
sub conflict_with_later_change
{
	my ($isolation, $change, $clause) = @_;
	my @answers;
	foreach my $am (qw(heap inplace))
	{
		$node->safe_psql('postgres', "DROP TABLE IF EXISTS later; CREATE TABLE later (id int PRIMARY KEY, n int, t text) USING $am;
INSERT INTO later SELECT i, i, 'before' FROM generate_series(1, 10) i; CREATE INDEX ON later (t)");
		my $holder = $node->background_psql('postgres');
		$holder->query_safe('SELECT pg_advisory_lock(1)');
		my $session = $node->background_psql('postgres', on_error_stop => 0);
		$session->query_safe("BEGIN ISOLATION LEVEL $isolation; SELECT 1");
		$session->{timeout}->start(900) if ref $session->{timeout};
		my $pid = $session->query_safe('SELECT pg_backend_pid()');
		$session->query_until(qr/started/, "\\echo started
WITH w AS MATERIALIZED (SELECT 3 AS id, pg_advisory_lock(1) IS NULL AS waited)
INSERT INTO later SELECT id, 0, 'new' FROM w ON CONFLICT (id) DO SELECT $clause RETURNING id, n, t;
SELECT pg_advisory_unlock(1);
\\echo done
");
		$node->poll_query_until('postgres', "SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = $pid") or die;
		$node->safe_psql('postgres', $change);
		$holder->query_safe('SELECT pg_advisory_unlock(1)');
		my $answer = $session->query_until(qr/done/, '');
		$answer .= $session->{stderr};
		$session->query('ROLLBACK');
		push @answers, $answer =~ s/psql:<stdin>:\d+: //gr;
		$session->quit;
		$holder->quit;
	}
	like($answers[0], qr/\d\|\d|ERROR/, "$isolation, $change, $clause: heap has an answer");
	return is($answers[1], $answers[0], "$isolation, $change, $clause: as on heap");
}
foreach my $isolation ('READ COMMITTED', 'REPEATABLE READ')
{
	foreach my $change ('UPDATE later SET n = 33 WHERE id = 3', q(UPDATE later SET t = 'moved' WHERE id = 3),
		'UPDATE later SET n = 34 WHERE id = 3; UPDATE later SET n = 35 WHERE id = 3', 'BEGIN; UPDATE later SET n = 36 WHERE id = 3; ROLLBACK',
		q(DELETE FROM later WHERE id = 3; INSERT INTO later VALUES (3, 37, 'again')), 'DELETE FROM later WHERE id = 3')
	{
		conflict_with_later_change($isolation, $change, $_)
		  foreach '', 'FOR UPDATE', 'FOR NO KEY UPDATE', 'FOR SHARE', 'FOR KEY SHARE';
	}
}

# ---- partitions ---------------------------------------------------------------------------------

SKIP:
{
	skip 'MERGE and SPLIT PARTITION: this server does not have it', 4 if !has_word('split');
	same('MERGE and SPLIT PARTITION', q(
CREATE TABLE T_parts (id int, t text, PRIMARY KEY (id)) PARTITION BY RANGE (id) USING AM;
CREATE TABLE T_parts1 PARTITION OF T_parts FOR VALUES FROM (0) TO (100);
CREATE TABLE T_parts2 PARTITION OF T_parts FOR VALUES FROM (100) TO (200);
INSERT INTO T_parts SELECT i, repeat('t', i * 20) FROM generate_series(0, 199) i;
UPDATE T_parts SET t = 'u' WHERE id % 3 = 0;
DELETE FROM T_parts WHERE id % 7 = 0;
ALTER TABLE T_parts MERGE PARTITIONS (T_parts1, T_parts2) INTO T_parts12;
SELECT count(*), md5(string_agg(x::text, ',' ORDER BY id)) FROM T_parts12 x;
ALTER TABLE T_parts SPLIT PARTITION T_parts12 INTO (PARTITION T_parts3 FOR VALUES FROM (0) TO (50), PARTITION T_parts4 FOR VALUES FROM (50) TO (200));
SELECT count(*), md5(string_agg(x::text, ',' ORDER BY id)) FROM T_parts3 x;
SELECT count(*), md5(string_agg(x::text, ',' ORDER BY id)) FROM T_parts4 x;
INSERT INTO T_parts VALUES (7, 'again') ON CONFLICT DO NOTHING;
UPDATE T_parts SET id = id + 1 WHERE id = 48));
	is($node->safe_psql('postgres', q(SELECT string_agg(relname || ' ' || amname, ', ' ORDER BY relname) FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relname ~ '^i_parts[0-9]+$')),
		'i_parts3 inplace, i_parts4 inplace', 'new partitions are inplace tables');
	tables_ok($node, 'partitions', 'i_parts3', 'i_parts4');
}

# ---- parallel scans of TID ranges ------------------------------------------------------------------

$node->safe_psql('postgres', q(
CREATE TABLE ranged (id int, t text) USING inplace;
INSERT INTO ranged SELECT i, repeat('x', 200) FROM generate_series(1, 60000) i;
UPDATE ranged SET t = 'y' WHERE id % 5 = 0;
DELETE FROM ranged WHERE id % 11 = 0;
ANALYZE ranged));
my $parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 3;';
my $alone = 'SET max_parallel_workers_per_gather = 0; SET enable_tidscan = off;';
foreach my $range (q(ctid >= '(100,0)' AND ctid < '(200,0)'), q(ctid > '(1500,5)'), q(ctid < '(3,7)'), q(ctid > '(99999,0)'), q(ctid > '(20,0)' AND ctid < '(10,0)'),
	q(ctid >= '(100,3)' AND ctid <= '(100,3)'))
{
	my $query = "SELECT count(*), sum(id::bigint), min(ctid), max(ctid) FROM ranged WHERE $range";
	my $plan = $node->safe_psql('postgres', "$parallel EXPLAIN (COSTS OFF) $query");
	note($plan);
	is($node->safe_psql('postgres', "$parallel $query"), $node->safe_psql('postgres', "$alone $query"), "rows of $range");
	is($node->safe_psql('postgres', "$parallel SET enable_memoize = off; SELECT sum(c) FROM generate_series(1, 3) g, LATERAL (SELECT count(*) + g * 0 AS c FROM ranged WHERE $range AND g > 0) l"),
		3 * $node->safe_psql('postgres', "$alone SELECT count(*) FROM ranged WHERE $range"), "again and again: $range");
}
# Scanned again with another range.  (19~rc1 reads the first one's blocks of a heap table.)
$node->safe_psql('postgres', q(CREATE TABLE bounds (g int, low tid, high tid);
INSERT INTO bounds VALUES (1, '(100,0)', '(200,0)'), (2, '(900,0)', '(1000,0)'), (3, '(0,0)', '(10,0)'), (4, '(10,0)', '(5,0)'), (5, '(0,0)', '(9999,0)'), (6, '(300,0)', '(310,0)')));
my $ranges = q(SELECT g, (SELECT concat_ws(' ', count(*), sum(id), min(ctid), max(ctid)) FROM ranged
WHERE ctid >= (SELECT low FROM bounds b WHERE b.g = a.g) AND ctid < (SELECT high FROM bounds b WHERE b.g = a.g)) FROM bounds a ORDER BY g);
like($node->safe_psql('postgres', "$parallel EXPLAIN (COSTS OFF) $ranges"), qr/Parallel Tid Range Scan on ranged/, 'other ranges are scanned in parallel');
foreach my $leader (qw(on off))
{
	is($node->safe_psql('postgres', "$parallel SET parallel_leader_participation = $leader; $ranges"), $node->safe_psql('postgres', "$alone $ranges"),
		"one range after another, leader $leader");
}
my $explained = $node->safe_psql('postgres', "$parallel EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*) FROM ranged WHERE ctid >= '(100,0)' AND ctid < '(200,0)'");
like($explained, qr/Parallel Tid Range Scan on ranged/, 'the range is scanned in parallel');
my ($read) = $explained =~ /Parallel Tid Range Scan.*?Buffers: shared ([^\n]*)/s;
my $blocks = 0;
$blocks += $1 while ($read // '') =~ /(?:hit|read)=(\d+)/g;
cmp_ok($blocks, '>=', 100, "all blocks of the range: $blocks");
cmp_ok($blocks, '<', 500, 'and not the whole table');

# ---- VACUUM's report ----------------------------------------------------------------------------------

$node->safe_psql('postgres', q(CREATE TABLE reported (id int PRIMARY KEY, a int, t text) USING inplace; INSERT INTO reported SELECT i, i, repeat('x', 100) FROM generate_series(1, 30000) i;
CREATE INDEX ON reported (a); DELETE FROM reported WHERE id % 2 = 0));
my (undef, undef, $report) = $node->psql('postgres', 'SET min_parallel_index_scan_size = 0; VACUUM (VERBOSE, PARALLEL 1) reported');
like($report, qr/memory usage: dead item storage \d+\.\d\d MB accumulated across 1 reset \(limit \d+\.\d\d MB each\)/, 'memory for dead rows');
like($report, qr/parallel workers: index vacuum: 1 planned, [01] launched in total/, 'workers');
like($report, qr/WAL usage: \d+ records, \d+ full page images, \d+ bytes, \d+ full page image bytes, \d+ buffers full/, 'WAL');

# It tells why it runs, and autovacuum's workers keep to its costs.
my $other = $node->background_psql('postgres', on_error_stop => 0);
$node->safe_psql('postgres', 'DELETE FROM reported WHERE id % 3 = 0');
$other->query_until(qr/begins/, "\\echo begins\nSET vacuum_cost_delay = '100ms'; SET vacuum_cost_limit = 1;\nVACUUM reported;\n\\echo ended\n");
$node->poll_query_until('postgres', q(SELECT started_by || ' ' || mode FROM pg_stat_progress_vacuum WHERE relid = 'reported'::regclass), 'manual normal')
  or fail('VACUUM is not seen');
pass('progress of VACUUM');
$node->safe_psql('postgres', q(SELECT pg_cancel_backend(pid) FROM pg_stat_progress_vacuum));
$other->quit;

# ---- standbys: read what one has written --------------------------------------------------------------

my $standby = new_standby($node, "wal_receiver_status_interval = 1s");
my @own = map { "${_}_own" } qw(h i);
$node->safe_psql('postgres', "CREATE TABLE h_own (id int PRIMARY KEY, n int, t text); CREATE TABLE i_own (id int PRIMARY KEY, n int, t text) USING inplace; "
	  . join(' ', map { "INSERT INTO $_ SELECT i, 0, 'text' FROM generate_series(1, 1000) i; CREATE INDEX ON $_ (n);" } @own));

# What all of the statements change is there, whatever way it is read.
sub reads_own
{
	my ($name, $mode, @sql) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $lsn = $node->safe_psql('postgres', join('; ', (map { my $sql = $_; map { $sql =~ s/\bT\b/$_/gr } @own } @sql), 'SELECT pg_current_wal_insert_lsn()'));
	my $rows = 'SELECT md5(string_agg(x::text, $$,$$ ORDER BY id)) FROM %s x WHERE id > 0 AND n > -1000';
	my %wanted = map { $_ => 1 } map { $node->safe_psql('postgres', sprintf($rows, $_)) } @own;
	is(scalar(keys %wanted), 1, "$name: the primary has the same rows in both tables");
	my ($hash) = keys %wanted;
	my $query = join('; ', map { my $table = $_; map { "$_; " . sprintf($rows, $table) } 'SET enable_seqscan = on', 'SET enable_seqscan = off', 'SET enable_bitmapscan = off', 'RESET ALL' } @own);
	is($standby->safe_psql('postgres', "WAIT FOR LSN '$lsn' WITH (MODE '$mode', TIMEOUT '600s'); $query"), join("\n", 'success', ($hash) x 8), "$name: they are read there");
	return $lsn;
}
for my $n (1 .. 10)
{
	reads_own("$n: in place",    'standby_replay', "UPDATE T SET t = 'text $n' WHERE id % 10 = $n % 10");
	reads_own("$n: moved",       'standby_replay', "UPDATE T SET n = $n WHERE id % 7 = $n % 7", "UPDATE T SET t = repeat('$n', $n * 100) WHERE id % 50 = $n");
	reads_own("$n: rolled back", 'standby_replay', "BEGIN; UPDATE T SET t = 'never', n = -$n WHERE id % 3 = 0; ROLLBACK");
	reads_own("$n: deleted and inserted", 'standby_replay', "DELETE FROM T WHERE id % 97 = $n", "INSERT INTO T VALUES (1000 + $n, $n, 'new')");
	reads_own("$n: vacuumed", 'standby_replay', 'VACUUM T') if $n % 5 == 0;
}

# A wait that is in vain says so; what has been flushed there is not yet replayed.
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
$standby->poll_query_until('postgres', q(SELECT pg_get_wal_replay_pause_state() = 'paused')) or die;
my $old = $standby->safe_psql('postgres', 'SELECT sum(n) FROM i_own');
my $lsn = $node->safe_psql('postgres', 'UPDATE i_own SET n = n + 1; UPDATE h_own SET n = n + 1; SELECT pg_current_wal_insert_lsn()');
is($standby->safe_psql('postgres', "WAIT FOR LSN '$lsn' WITH (MODE 'standby_flush', TIMEOUT '600s')"), 'success', 'it is flushed there');
my (undef, $waited) = $standby->psql('postgres', "WAIT FOR LSN '$lsn' WITH (MODE 'standby_replay', TIMEOUT '100ms', NO_THROW)");
is($waited, 'timeout', 'and not replayed while replay pauses');
is($standby->safe_psql('postgres', 'SELECT sum(n) FROM i_own'), $old, 'so the rows are those of before');
my $waiter = $standby->background_psql('postgres');
$waiter->query_until(qr/begins/, "\\echo begins\nWAIT FOR LSN '$lsn' WITH (MODE 'standby_replay', TIMEOUT '600s');\nSELECT sum(n) - $old, count(*) FROM i_own;\n");
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
my $count = $node->safe_psql('postgres', 'SELECT count(*) FROM i_own');
like($waiter->query_safe('SELECT 1'), qr/success\n$count\|$count\n1/, 'one that waits reads them as soon as replay goes on');
$waiter->quit;
same_contents('standby', $node, $standby, 'i_own');

# ---- checksums, switched on under load ------------------------------------------------------------------

my $has_checksums = $node->safe_psql('postgres', q(SELECT count(*) FROM pg_proc WHERE proname = 'pg_enable_data_checksums'));
SKIP:
{
	skip 'checksums cannot be switched on while this server runs', 1 if !$has_checksums;
	is($node->safe_psql('postgres', 'SHOW data_checksums'), 'off', 'no checksums at first');
	$node->safe_psql('postgres', q(
CREATE TABLE i_sum (id int PRIMARY KEY, n int, t text) USING inplace; CREATE TABLE h_sum (id int PRIMARY KEY, n int, t text);
INSERT INTO i_sum SELECT i, 0, repeat('s', i % 200) FROM generate_series(1, 20000) i; INSERT INTO h_sum TABLE i_sum;
CREATE INDEX ON i_sum (n)));
	my $load = start_pgbench($node, clients => 4, scripts => [ [ q(\set id random(1, 20000)
UPDATE i_sum SET n = n + 1 WHERE id = :id;
), 3 ], [ q(\set id random(1, 20000)
BEGIN; UPDATE i_sum SET t = 'shorter' WHERE id = :id; DELETE FROM i_sum WHERE id = :id; ROLLBACK;
), 1 ] ]);
	$node->safe_psql('postgres', 'SELECT pg_enable_data_checksums()');
	$node->poll_query_until('postgres', 'SHOW data_checksums', 'on') or fail('checksums are not on');
	$load->{run}->signal('INT');
	finish_pgbench($load);
	tables_ok($node, 'with checksums', 'i_sum');
	$node->safe_psql('postgres', 'ALTER TABLE i_sum DROP n; ALTER TABLE h_sum DROP n');
	same_as_heap($node, 'rows are what they were', 'sum');
	$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
	$standby->poll_query_until('postgres', 'SHOW data_checksums', 'on') or fail('the standby has none');
	same_contents('standby with checksums', $node, $standby, 'i_sum', 'i_own');
}
$standby->stop;
crash_and_recover($node, 'immediate');
tables_ok($node, 'after a crash', 'i_own', $has_checksums ? 'i_sum' : ());
log_ok($node, 'all of it', 0);
$node->stop;
command_ok([ 'pg_checksums', '--check', '-D', $node->data_dir ], 'pg_checksums finds no fault') if $has_checksums;

done_testing();
