# pg_repack gives a table the file of a copy: refused where the copy has another access method, before
# anything has changed, and otherwise it works.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

test_seed();

my $node = new_cluster('main');
my $refusal = qr/ERROR:  (0A000: )?pg_repack would give table "\w+" a file of another access method/;
$node->safe_psql(
	'postgres', q(
CREATE TABLE i_t (id int PRIMARY KEY, n int NOT NULL, body text) USING inplace;
CREATE TABLE h_t (id int PRIMARY KEY, n int NOT NULL, body text) USING heap;
CREATE TABLE i_parted (id int PRIMARY KEY, n int) PARTITION BY RANGE (id);
CREATE TABLE i_part1 PARTITION OF i_parted FOR VALUES FROM (0) TO (1000) USING inplace;
CREATE TABLE i_part2 PARTITION OF i_parted FOR VALUES FROM (1000) TO (9999) USING inplace;
INSERT INTO i_t SELECT i, 100, repeat('body ' || i, 1 + i % 1000 / 900 * 500) FROM generate_series(1, 5000) i;
ALTER TABLE i_t ADD COLUMN dropped int DEFAULT 5; ALTER TABLE i_t DROP COLUMN dropped; ALTER TABLE i_t ADD COLUMN added int DEFAULT 7;
INSERT INTO h_t SELECT i, 100, 'body' FROM generate_series(1, 1000) i;
INSERT INTO i_parted SELECT i, 0 FROM generate_series(1, 2000) i;
UPDATE i_parted SET n = id WHERE id % 3 = 0;
CREATE INDEX i_t_n ON i_t (n)));

# ---- what pg_repack does, without it ---------------------------------------------------------

# One test: these statements, in a transaction that is rolled back, fail like this, or not at all.
sub fails
{
	my ($name, $sql, $pattern) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $err;
	$node->psql('postgres', "\\set VERBOSITY verbose\nBEGIN; $sql; ROLLBACK", stderr => \$err, on_error_stop => 0);
	like($err, $pattern // qr/^$/, $name);
	return;
}

my $library = build_module('flush_relation');
$node->safe_psql(
	'postgres', qq(
CREATE SCHEMA repack;
CREATE FUNCTION repack.repack_swap(oid) RETURNS void LANGUAGE C STRICT AS '$library', 'flush_relation';
CREATE FUNCTION copy(rel regclass, settings text DEFAULT '') RETURNS void LANGUAGE plpgsql AS \$\$
BEGIN EXECUTE format('CREATE TABLE repack.table_%s %s AS SELECT * FROM %s WITH NO DATA', rel::oid, settings, rel); END\$\$;
CREATE FUNCTION make_like(rel regclass, am text) RETURNS void LANGUAGE plpgsql AS \$\$
BEGIN EXECUTE format('CREATE TABLE repack.table_%s (LIKE %s) USING %I', rel::oid, rel, am); END\$\$));
my $default = 'SET default_table_access_method =';
fails('copy: inplace, default heap', "$default heap; SELECT copy('i_t')", $refusal);
fails('copy: heap, default inplace', "$default inplace; SELECT copy('h_t')", $refusal);
fails('copy: USING', "SELECT copy('i_t', 'USING heap')", $refusal);
fails('copy: inplace', "$default inplace; SELECT copy('i_t')");
fails('copy: heap', "$default heap; SELECT copy('h_t')");
fails('copy: USING inplace', "SELECT copy('i_t', 'USING inplace')");
fails('copy: by the extended protocol', "$default heap; PREPARE p AS SELECT copy(\$1); EXECUTE p('i_t')", $refusal);
fails('a table of another name', "$default heap; CREATE TABLE repack.table_1x AS SELECT 1; CREATE TABLE repack.log_1 AS SELECT 1; CREATE TABLE repack.table_4000000000 AS SELECT 1");
fails('a table of another schema', "$default heap; DO \$\$BEGIN EXECUTE format('CREATE TABLE public.table_%s AS SELECT 1', 'i_t'::regclass::oid); END\$\$");
fails('another access method, but not ours', "CREATE ACCESS METHOD heap2 TYPE TABLE HANDLER heap_tableam_handler; SELECT copy('h_t', 'USING heap2'); SELECT repack.repack_swap('h_t'::regclass)");
fails('swap: inplace with heap', "SELECT make_like('i_t', 'heap'); SELECT repack.repack_swap('i_t'::regclass)", $refusal);
fails('swap: heap with inplace', "SELECT make_like('h_t', 'inplace'); SELECT repack.repack_swap('h_t'::regclass)", $refusal);
fails('swap: inplace', "SELECT make_like('i_t', 'inplace'); SELECT repack.repack_swap('i_t'::regclass)");
fails('swap: heap', "SELECT make_like('h_t', 'heap'); SELECT repack.repack_swap('h_t'::regclass)");
fails('swap: no copy', "SELECT repack.repack_swap('i_t'::regclass)");
fails('the hint', "$default heap; SELECT copy('i_t')", qr/HINT:  Run pg_repack with PGOPTIONS="-c default_table_access_method=inplace", or use VACUUM FULL/);
$node->safe_psql('postgres', 'DROP SCHEMA repack CASCADE');

# ---- a file of another access method -----------------------------------------------------------

log_ok($node, 'refused', 0);
# As such a tool would leave it: every access to a heap's file is refused, and it can be got back.
$node->safe_psql('postgres', 'CREATE TABLE swapped (id int PRIMARY KEY, n int) USING heap; INSERT INTO swapped SELECT i, i FROM generate_series(1, 1000) i');
my $relam = q(UPDATE pg_class SET relam = (SELECT oid FROM pg_am WHERE amname = '%s') WHERE oid = 'swapped'::regclass);
$node->safe_psql('postgres', sprintf $relam, 'inplace');
my $before = slurp_file($node->data_dir . '/' . $node->safe_psql('postgres', "CHECKPOINT; SELECT pg_relation_filepath('swapped')"));
foreach my $sql ('SELECT count(*) FROM swapped', 'SET enable_seqscan = off; SELECT * FROM swapped WHERE id = 5', 'INSERT INTO swapped VALUES (2000, 1)',
	'UPDATE swapped SET n = 1', 'SET LOCAL enable_seqscan = off; DELETE FROM swapped WHERE id = 7', 'SELECT * FROM swapped FOR UPDATE', 'VACUUM swapped',
	'VACUUM FULL swapped', 'CREATE INDEX ON swapped (n)', 'ANALYZE swapped', 'ALTER TABLE swapped SET ACCESS METHOD heap',
	q(SELECT * FROM swapped WHERE ctid = '(0,1)'), 'SELECT * FROM swapped TABLESAMPLE SYSTEM (100)', q(COPY swapped FROM PROGRAM 'echo 5000 1' (DELIMITER ' ')))
{
	my $err;
	$node->psql('postgres', "\\set VERBOSITY verbose\n$sql", stderr => \$err, on_error_stop => 0);
	like($err, qr/ERROR:  XX001: block \d+ of relation "swapped" is not .*inplace table\n(.*\n)*HINT:  .*pg_class\.relam/, "a heap's file: $sql");
}
like($node->safe_psql('postgres', "SELECT inplace_check('swapped')"), qr/^\(0,,"special space starts at 8192"\)/, "a heap's file: inplace_check");
$node->safe_psql('postgres', 'CHECKPOINT');
ok($before eq slurp_file($node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('swapped')")), 'the file has not changed');
$node->safe_psql('postgres', sprintf $relam, 'heap');
$node->safe_psql('postgres', 'ALTER TABLE swapped SET ACCESS METHOD inplace');
is($node->safe_psql('postgres', 'SELECT count(*), sum(n) FROM swapped'), '1000|500500', 'got back');
tables_ok($node, 'got back', 'swapped', 'i_t', 'i_part1');

my $log = length slurp_file($node->logfile);

# ---- pg_repack ------------------------------------------------------------------------------------

SKIP:
{
	skip 'pg_repack is not installed', 1
	  if !$node->safe_psql('postgres', q(SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_repack'))
	  || system('pg_repack --version >/dev/null 2>&1') != 0;
	repack_tests();
}

sub repack
{
	my ($am, @args) = @_;
	local $ENV{PGOPTIONS} = "-c default_table_access_method=$am";
	my ($out, $err);
	my $good = IPC::Run::run [ 'pg_repack', '--host', $node->host, '--port', $node->port, '--dbname', 'postgres', '--wait-timeout', '5', @args ], '>', \$out, '2>', \$err;
	note($out, $err);
	return ($good, $err);
}

# What it would change, or leave behind.
sub state_of
{
	my ($table) = @_;
	return $node->safe_psql('postgres', qq(SELECT relfilenode, amname, reltoastrelid FROM pg_class JOIN pg_am a ON a.oid = relam WHERE pg_class.oid = '$table'::regclass;
SELECT count(*) FROM pg_trigger WHERE tgrelid = '$table'::regclass AND NOT tgisinternal;
SELECT count(*) FROM pg_class WHERE relnamespace = 'repack'::regnamespace AND relkind = 'r'));
}

sub repack_tests
{
	$node->safe_psql('postgres', 'CREATE EXTENSION pg_repack');
	foreach my $pair ([ 'i_t', 'heap', 'id' ], [ 'h_t', 'inplace', 'id' ])
	{
		my ($table, $am, $key) = @$pair;
		my ($before, $rows) = (state_of($table), contents($node, $table, $key, 'seq'));
		my ($good, $err) = repack($am, '--table', $table);
		like($err, $refusal, "pg_repack of $table, default $am");
		is(state_of($table), $before, "pg_repack of $table, default $am: nothing has changed");
		is(contents($node, $table, $key, 'seq'), $rows, "pg_repack of $table, default $am: the rows are there");
	}
	tables_ok($node, 'refused', 'i_t', 'h_t');

	# Clients go on; they move amounts between rows, and replace other rows.
	$node->safe_psql('postgres', 'UPDATE i_t SET n = 100');
	my $load = start_pgbench($node, clients => 6, seconds => 8, args => [ '--max-tries=100' ],
		scripts => [ [ <<'SQL', 5 ], [ <<'SQL', 1 ] ]);
\set a random(1, 2500)
\set b random(1, 2500)
BEGIN;
UPDATE i_t SET n = n - 1, body = body || 'x' WHERE id = least(:a, :b);
UPDATE i_t SET n = n + 1 WHERE id = greatest(:a, :b);
COMMIT;
SQL
\set a random(2501, 5000)
WITH d AS (DELETE FROM i_t WHERE id = :a RETURNING *) INSERT INTO i_t SELECT id + 10000, n, body, added FROM d;
WITH d AS (DELETE FROM i_t WHERE id = :a + 10000 RETURNING *) INSERT INTO i_t SELECT id - 10000, n, body, added FROM d;
BEGIN; UPDATE i_t SET n = -1 WHERE id BETWEEN :a AND :a + 5; ROLLBACK;
SQL
	my $file = $node->safe_psql('postgres', "SELECT pg_relation_filenode('i_t')");
	foreach my $round (1 .. 3)
	{
		my ($good, $err) = repack('inplace', '--table', 'i_t', $round == 2 ? ('--order-by', 'n') : $round == 3 ? '--no-order' : ());
		ok($good, "pg_repack under load, round $round") or diag($err);
		unlike($err, qr/ERROR/, "pg_repack under load, round $round: no errors");
		my $new = $node->safe_psql('postgres', "SELECT pg_relation_filenode('i_t')");
		isnt($new, $file, "pg_repack under load, round $round: another file");
		$file = $new;
	}
	is(finish_pgbench($load)->{errors}, '', 'load: no errors');
	is($node->safe_psql('postgres', 'SELECT count(*), sum(n), count(DISTINCT id % 10000), min(added) FROM i_t'), '5000|500000|5000|7', 'nothing is lost, nothing is there twice');
	like(state_of('i_t'), qr/^\d+\|inplace\|\d+\n0\n0$/, 'still an inplace table, and nothing is left behind');
	tables_ok($node, 'after pg_repack', 'i_t');

	my ($good, $err) = repack('heap', '--table', 'i_t', '--only-indexes');
	ok($good, 'pg_repack --only-indexes, default heap') or diag($err);
	my $rows = $node->safe_psql('postgres', 'SELECT count(*), sum(n) FROM i_parted');
	($good, $err) = repack('inplace', '--parent-table', 'i_parted');
	ok($good, 'pg_repack of partitions') or diag($err);
	is($node->safe_psql('postgres', 'SELECT count(*), sum(n) FROM i_parted'), $rows, 'pg_repack of partitions: same rows');
	tables_ok($node, 'after all', 'i_t', 'h_t', 'i_part1', 'i_part2');
	return;
}

log_ok($node, 'pg_repack', $log);
$node->stop;
done_testing();
