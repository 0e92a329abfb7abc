# What later versions of PostgreSQL have: statements, of which heap says what they do, and reading of several blocks
# at a time.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('main', conf => qq(
autovacuum = off
shared_buffers = 16MB
max_parallel_workers_per_gather = 0
));
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');

# Runs statements for both access methods; T stands for a table's name.  What is printed must be the same.
sub same
{
	my ($from, $name, $sql) = @_;
	my %result;

  SKIP:
	{
		skip "$name: not in this version", 1 if $version < $from;
		foreach my $am ('heap', 'inplace')
		{
			my ($stdout, $stderr);
			$node->psql('postgres', "SET default_table_access_method = $am; SET client_min_messages = warning; $sql",
				stdout => \$stdout, stderr => \$stderr, on_error_stop => 0);
			$node->safe_psql('postgres', 'DROP TABLE IF EXISTS t2, t');
			$result{$am} = "$stdout\n$stderr";
		}
		is($result{inplace}, $result{heap}, $name);
		note($result{heap});
	}
}

same(180000, 'RETURNING OLD and NEW', q{
	CREATE TABLE t (id int PRIMARY KEY, v int, w text);
	INSERT INTO t SELECT i, i, 'w' || i FROM generate_series(1, 5) i RETURNING old.id, new.id;
	UPDATE t SET v = v + 10 WHERE id <= 2 RETURNING old.*, new.*;
	UPDATE t SET id = id + 100 WHERE id = 3 RETURNING old.id, old.v, new.id, new.v, new.v - old.v;
	DELETE FROM t WHERE id = 4 RETURNING old.v, new.v;
	INSERT INTO t VALUES (1, 0, 'x'), (9, 0, 'y') ON CONFLICT (id) DO UPDATE SET v = -t.v, w = excluded.w
		RETURNING old.v, new.v, old.w, new.w;
	MERGE INTO t USING (VALUES (1), (2), (77)) s(id) ON t.id = s.id WHEN MATCHED AND t.id = 1 THEN DELETE
		WHEN MATCHED THEN UPDATE SET v = 0 WHEN NOT MATCHED THEN INSERT VALUES (s.id, 1, 'm')
		RETURNING merge_action(), old.v, new.v;
	TABLE t ORDER BY id});
same(180000, 'virtual generated columns', q{
	CREATE TABLE t (id int PRIMARY KEY, a int, g int GENERATED ALWAYS AS (a * 2) VIRTUAL, s int GENERATED ALWAYS AS (a + 1) STORED, z text);
	INSERT INTO t (id, a, z) SELECT i, i, 'z' FROM generate_series(1, 20) i;
	UPDATE t SET a = a + 1 WHERE g > 30 RETURNING id, g, s;
	ALTER TABLE t ADD COLUMN h int GENERATED ALWAYS AS (a * a) VIRTUAL;
	ALTER TABLE t ALTER COLUMN g SET EXPRESSION AS (a * 3);
	UPDATE t SET z = repeat('z', 50) WHERE h > 100;
	VACUUM FULL t;
	SELECT * FROM t ORDER BY id});
same(180000, 'NOT NULL constraints that are not valid', q{
	CREATE TABLE t (id int PRIMARY KEY, a int);
	INSERT INTO t VALUES (1, NULL), (2, 2);
	ALTER TABLE t ADD CONSTRAINT a_set NOT NULL a NOT VALID;
	INSERT INTO t VALUES (3, NULL);
	UPDATE t SET id = 4 WHERE id = 1;
	ALTER TABLE t VALIDATE CONSTRAINT a_set;
	UPDATE t SET a = 7 WHERE a IS NULL;
	ALTER TABLE t VALIDATE CONSTRAINT a_set;
	TABLE t ORDER BY id});
same(180000, 'WITHOUT OVERLAPS and PERIOD', q{
	CREATE EXTENSION IF NOT EXISTS btree_gist;
	CREATE TABLE t (id int, valid daterange, v int, PRIMARY KEY (id, valid WITHOUT OVERLAPS));
	CREATE TABLE t2 (id int, tid int, valid daterange, FOREIGN KEY (tid, PERIOD valid) REFERENCES t (id, PERIOD valid));
	INSERT INTO t VALUES (1, '[2020-01-01,2021-01-01)', 1), (1, '[2021-01-01,2022-01-01)', 2), (2, '[2020-01-01,)', 3);
	INSERT INTO t VALUES (1, '[2020-06-01,2020-07-01)', 4);
	INSERT INTO t2 VALUES (1, 1, '[2020-06-01,2021-06-01)'), (2, 2, '[2030-01-01,2031-01-01)');
	INSERT INTO t2 VALUES (3, 1, '[2021-06-01,2022-06-01)');
	UPDATE t SET v = v + 1;
	UPDATE t SET valid = '[2020-01-01,2020-07-01)' WHERE v = 2;
	DELETE FROM t WHERE v = 3;
	DELETE FROM t2 WHERE id = 1;
	DELETE FROM t WHERE v = 3;
	INSERT INTO t VALUES (1, '[2021-02-01,2021-03-01)', 9) ON CONFLICT DO NOTHING;
	TABLE t ORDER BY id, valid; TABLE t2 ORDER BY id});
same(170000, 'MERGE with RETURNING and NOT MATCHED BY SOURCE', q{
	CREATE TABLE t (id int PRIMARY KEY, v int);
	INSERT INTO t SELECT i, i FROM generate_series(1, 6) i;
	MERGE INTO t USING (VALUES (1), (2), (10)) s(id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = -1
		WHEN NOT MATCHED BY SOURCE AND t.id > 4 THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 0
		WHEN NOT MATCHED THEN INSERT VALUES (s.id, 99) RETURNING merge_action(), t.*;
	TABLE t ORDER BY id});
same(170000, 'COPY that goes on after errors', q{
	CREATE TABLE t (id int, v int);
	COPY t FROM PROGRAM 'printf "1\t2\nx\t3\n4\t5\n"' WITH (ON_ERROR ignore);
	TABLE t ORDER BY id});
same(160000, 'updates counted by kind', q{
	CREATE TABLE t (id int PRIMARY KEY, v int) WITH (fillfactor = 50);
	INSERT INTO t SELECT i, i FROM generate_series(1, 50) i;
	BEGIN; UPDATE t SET v = v + 1; SELECT n_tup_upd, n_tup_hot_upd, n_tup_newpage_upd FROM pg_stat_xact_user_tables WHERE relname = 't'; COMMIT});

# ---- reading several blocks at a time -------------------------------------------------

# 18 counts reads and bytes of reads: fewer reads than blocks if blocks were read together.
my $rows = 120000;
$node->safe_psql('postgres', qq{
	CREATE TABLE big (id int, a int, t text) USING inplace;
	INSERT INTO big SELECT i, i / 100, repeat('x', 100) FROM generate_series(1, $rows) i;
	CREATE INDEX big_a ON big (a);
	VACUUM big; CHECKPOINT});

sub reads_together
{
	my ($name, $sql, $wanted) = @_;
  SKIP:
	{
		# an empty cache: all is read
		$node->restart;
		$node->safe_psql('postgres', "SELECT pg_stat_reset_shared('io')") if $version >= 160000;
		my $result = $node->safe_psql('postgres', $sql);
		is($result, $wanted, "$name: result") if defined $wanted;
		skip "$name: reads are not counted so before 18", 1 if $version < 180000;
		# the session tells when it ends, which may be later
		my $all_told = q{SELECT sum(read_bytes) / 8192 > 1000 FROM pg_stat_io
			WHERE backend_type = 'client backend' AND object = 'relation'};
		$node->poll_query_until('postgres', $all_told) or diag("$name: few blocks were read");
		my ($reads, $blocks) = split /\|/, $node->safe_psql('postgres', q{
			SELECT sum(reads), sum(read_bytes) / 8192 FROM pg_stat_io
			WHERE backend_type = 'client backend' AND object = 'relation'});
		cmp_ok($reads * 2, '<', $blocks, "$name: $reads reads of $blocks blocks");
	}
}

reads_together('sequential scan', 'SELECT count(*), sum(id::bigint) FROM big', "$rows|" . ($rows * ($rows + 1) / 2));
reads_together('bitmap scan', q{SET enable_seqscan = off; SET enable_indexscan = off;
	SELECT count(*), min(id), max(id) FROM big WHERE a BETWEEN 100 AND 899}, '80000|10000|89999');
reads_together('lossy bitmap', q{SET enable_seqscan = off; SET enable_indexscan = off; SET work_mem = '64kB';
	SELECT count(*), min(id), max(id) FROM big WHERE a BETWEEN 100 AND 899}, '80000|10000|89999');
reads_together('VACUUM', 'VACUUM (DISABLE_PAGE_SKIPPING) big');
reads_together('ANALYZE', 'ANALYZE big');

# a cursor in both directions, from where it is
is($node->safe_psql('postgres', q{BEGIN; DECLARE c SCROLL CURSOR FOR SELECT id FROM big; MOVE 60000 IN c; FETCH 1 FROM c;
	MOVE BACKWARD 30000 IN c; FETCH BACKWARD 1 FROM c; MOVE 50000 IN c; FETCH 1 FROM c; MOVE ALL IN c;
	FETCH BACKWARD 1 FROM c; MOVE BACKWARD ALL IN c; FETCH 1 FROM c; COMMIT}),
	"60001\n30000\n80001\n$rows\n1", 'cursor');

# of a scan that is begun again and again
is($node->safe_psql('postgres', q{SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off;
	SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_memoize = off;
	SELECT sum(n) FROM generate_series(1, 20) g, LATERAL (SELECT count(*) AS n FROM big WHERE id % 1000 = g) s}),
	20 * $rows / 1000, 'rescans');
is($node->safe_psql('postgres', q{SET enable_seqscan = off; SET enable_indexscan = off; SET enable_memoize = off;
	SELECT sum(n) FROM generate_series(1, 20) g, LATERAL (SELECT count(*) AS n FROM big WHERE a = g) s}),
	2000, 'rescans of bitmaps');
is($node->safe_psql('postgres', q{SET min_parallel_table_scan_size = 0; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
	SET max_parallel_workers_per_gather = 2; SELECT count(*), count(DISTINCT id) FROM big}),
	"$rows|$rows", 'parallel scan');
$node->safe_psql('postgres', 'DELETE FROM big WHERE id % 2 = 0; CHECKPOINT');
reads_together('VACUUM of deleted rows, twice over the table', 'VACUUM big');
is($node->safe_psql('postgres', q{SELECT count(*), sum(id::bigint) FROM big}), join('|', $rows / 2, $rows * $rows / 4), 'what is left');
is($node->safe_psql('postgres', q{SELECT count(*) FROM inplace_check('big')}), '0', 'check');

# ---- VACUUM's workers -----------------------------------------------------------------

# They sleep as the leader does, and take no more buffers than VACUUM was allowed.
$node->safe_psql('postgres', q{
	CREATE TABLE workers (id int PRIMARY KEY, a int, t text) USING inplace;
	INSERT INTO workers SELECT i, -i, 't' || i FROM generate_series(1, 40000) i;
	CREATE INDEX ON workers (a); CREATE INDEX ON workers (t);
	DELETE FROM workers WHERE id % 3 = 0});
my $settings = 'SET min_parallel_index_scan_size = 0; SET max_parallel_maintenance_workers = 2';
my $vacuum = $node->background_psql('postgres');
my $pid = $vacuum->query_safe('SELECT pg_backend_pid()');
$vacuum->query_safe("$settings; SET vacuum_cost_delay = 15; SET vacuum_cost_limit = 20");
$vacuum->query_until(qr/begun/, "\\echo begun\nVACUUM (PARALLEL 2) workers;\n");
my $slept = 0;
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_progress_vacuum WHERE pid = $pid") or die;
while (!$slept && $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_progress_vacuum WHERE pid = $pid") != 0)
{
	$slept = $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE leader_pid = $pid AND wait_event = 'VacuumDelay'");
}
cmp_ok($slept, '>', 0, 'a worker of VACUUM sleeps');
$vacuum->quit;
SKIP:
{
	skip 'no limit for buffers before 16', 1 if $version < 160000;
	$node->safe_psql('postgres', q{DELETE FROM workers WHERE id % 3 = 1});
	$node->safe_psql('postgres', "SELECT pg_stat_reset_shared('io'); $settings; VACUUM (PARALLEL 2, BUFFER_USAGE_LIMIT 0) workers");
	my $workers = $node->safe_psql('postgres', q{
		SELECT coalesce(sum(hits) FILTER (WHERE context = 'vacuum'), 0), sum(hits) FILTER (WHERE context = 'normal') > 100
		FROM pg_stat_io WHERE backend_type = 'background worker' AND object = 'relation'});
	is($workers, '0|t', 'workers have no ring if VACUUM has none');
}
is($node->safe_psql('postgres', q{SELECT count(*) FROM inplace_check('workers')}), '0', 'check');

# ---- bulk insertion -------------------------------------------------------------------

# It writes its own pages out instead of everybody's, and leaves few empty pages behind.
$node->safe_psql('postgres', qq{
	CREATE TABLE one_by_one (id int, a int, t text) USING inplace;
	INSERT INTO one_by_one SELECT i, i, repeat('x', 100) FROM generate_series(1, $rows) i;
	COPY one_by_one TO '} . $node->basedir . q{/rows'});
my $pages = $node->safe_psql('postgres', q{SELECT pg_relation_size('one_by_one') / 8192});

my $more;

sub in_its_ring
{
	my ($table, $sql) = @_;
	my $reset = $version >= 160000 ? q{SELECT pg_stat_reset_shared('io');} : '';
	$node->safe_psql('postgres', "$reset $sql");
  SKIP:
	{
		skip "$table: extensions are not counted before 16", 1 if $version < 160000;
		my $extends = $node->safe_psql('postgres', q{
			SELECT sum(extends) FILTER (WHERE context = 'normal') < 30, sum(extends) FILTER (WHERE context = 'bulkwrite') > 100
			FROM pg_stat_io WHERE backend_type = 'client backend' AND object = 'relation'});
		is($extends, 't|t', "$table: extended within the ring");
	}
	$more = $node->safe_psql('postgres', "SELECT pg_relation_size('$table') / 8192 - $pages");
	cmp_ok($more, '<=', 20, "$table: $more pages more than $pages");
	is($node->safe_psql('postgres', "SELECT count(*) FROM (TABLE $table EXCEPT TABLE one_by_one) d"), '0', "$table: rows");
	is($node->safe_psql('postgres', "SELECT count(*) FROM inplace_check('$table')"), '0', "$table: check");
}
my $file = $node->basedir . '/rows';
$node->safe_psql('postgres', 'CREATE TABLE copied (id int, a int, t text) USING inplace');
in_its_ring('copied', "COPY copied FROM '$file'");
in_its_ring('at_once', "BEGIN; CREATE TABLE at_once (id int, a int, t text) USING inplace; COPY at_once FROM '$file'; COMMIT");
in_its_ring('selected', 'CREATE TABLE selected USING inplace AS TABLE one_by_one');

# many at once, who share what each of them makes
$node->safe_psql('postgres', 'CREATE TABLE shared (id int, a int, t text) USING inplace; CREATE INDEX ON shared (id)');
my @clients = map { $node->background_psql('postgres') } 1 .. 4;
$_->query_until(qr/begun/, "\\echo begun\nCOPY shared FROM '$file';\n") foreach @clients;
$_->quit foreach @clients;
$more = $node->safe_psql('postgres', "SELECT pg_relation_size('shared') / 8192 - 4 * $pages");
cmp_ok($more, '<=', 100, "shared: $more pages more");
is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id) FROM shared'), join('|', 4 * $rows, $rows), 'shared: rows');
is($node->safe_psql('postgres', "SELECT count(*) FROM inplace_check('shared')"), '0', 'shared: check');

done_testing();
