# Tables that are written anew: LOGGED and UNLOGGED with crashes, the access method changed
# both ways with columns of all types, materialized views, COPY FREEZE; what old
# snapshots see of it; event triggers and DROP of everything.  Heap says what is right.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use InplaceTwin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('main', conf => 'autovacuum = off');
create_twin_schemas($node);

# ---- LOGGED, UNLOGGED --------------------------------------------------------------

run_both(
	$node, q(
CREATE TABLE a (id int PRIMARY KEY, n int, body text);
INSERT INTO a SELECT i, 0, repeat('a', i % 300) FROM generate_series(1, 1000) i;
CREATE UNLOGGED TABLE b (id int PRIMARY KEY, n int, body text);
INSERT INTO b TABLE a;
CREATE INDEX ON a (n);
CREATE TABLE c (LIKE b INCLUDING ALL);
INSERT INTO c TABLE a;
UPDATE a SET n = n + 1; BEGIN; UPDATE a SET n = -1; UPDATE b SET n = -1; ROLLBACK;
UPDATE b SET n = 5, body = repeat('b', 2500) WHERE id % 3 = 0;
CHECKPOINT;
-- this has to be in WAL for the first time
ALTER TABLE b SET LOGGED;
UPDATE b SET n = n + 1 WHERE id % 2 = 0;
ALTER TABLE a SET UNLOGGED;
UPDATE a SET n = n + 10;
BEGIN; ALTER TABLE c SET UNLOGGED; UPDATE c SET n = 77; ROLLBACK;
UPDATE c SET n = 3 WHERE id < 10;
));
same_tables($node, 'logged and unlogged', qw(a b c));
crash_and_recover($node, 'kill');
same_tables($node, 'logged and unlogged, after a crash', qw(a b c));
is($node->safe_psql('postgres', 'SELECT (SELECT count(*) FROM i.a), (SELECT sum(n) FROM i.b), (SELECT sum(n) FROM i.c)'),
	'0|2165|27', 'what became unlogged is empty, what became logged is there');
run_both(
	$node, q(INSERT INTO a SELECT * FROM b; ALTER TABLE a SET LOGGED; UPDATE a SET n = 0 WHERE id < 100;
BEGIN; ALTER TABLE b SET UNLOGGED; ALTER TABLE b SET LOGGED; UPDATE b SET n = 8 WHERE id = 8; COMMIT;
BEGIN; ALTER TABLE c SET UNLOGGED; TRUNCATE c; INSERT INTO c VALUES (1, 1, 'c'); ALTER TABLE c SET LOGGED; UPDATE c SET n = 2; COMMIT));
crash_and_recover($node, 'kill');
same_tables($node, 'logged again, after a crash', qw(a b c));
tables_ok($node, 'logged again', 'i.a', 'i.b', 'i.c');
is($node->safe_psql('postgres', 'SELECT count(*) FROM i.a'), '1000', 'logged again: rows are there');

# ---- all types, access methods -------------------------------------------------------

# A column for each type that a literal of the list can be cast to, all toast strategies.
run_both(
	$node, q(
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE deep AS (a int, b text, c int[]);
CREATE DOMAIN d_text AS text CHECK (length(VALUE) < 1000);
CREATE DOMAIN d_deep AS deep CHECK ((VALUE).a > 0);
CREATE TABLE types (
	id int PRIMARY KEY, c_bool bool, c_char "char", c_name name, c_int2 int2, c_int8 int8, c_oid oid, c_float4 float4, c_float8 float8,
	c_numeric numeric, c_money money, c_bpchar char(20), c_varchar varchar(50), c_text text, c_bytea bytea,
	c_date date, c_time time, c_timetz timetz, c_timestamp timestamp, c_timestamptz timestamptz, c_interval interval,
	c_uuid uuid, c_json json, c_jsonb jsonb, c_inet inet, c_cidr cidr, c_macaddr macaddr, c_macaddr8 macaddr8,
	c_bit bit(9), c_varbit varbit, c_point point, c_box box, c_path path, c_polygon polygon, c_circle circle, c_lseg lseg, c_line line,
	c_tsvector tsvector, c_tsquery tsquery, c_range int4range, c_nrange numrange, c_tsrange tstzrange, c_multi int4multirange,
	c_array int[], c_array2 text[][], c_deeps deep[], c_mood mood, c_deep deep, c_domain d_text, c_ddeep d_deep, c_domains d_text[],
	c_regclass regclass, c_lsn pg_lsn, c_snapshot pg_snapshot, c_xid8 xid8, c_tid tid, c_null int);
ALTER TABLE types ALTER c_bytea SET STORAGE EXTERNAL, ALTER c_jsonb SET STORAGE MAIN, ALTER c_numeric SET STORAGE PLAIN;
CREATE FUNCTION add_types(int, int) RETURNS void LANGUAGE sql AS $$
INSERT INTO types SELECT i, i % 2 = 0, 'c', 'name' || i, i, i * 10000000000, i, i / 7.0, i / 3.0, i / 11.0, i::money, 'char' || i, 'var' || i,
	repeat('text' || i, i % 40), decode(repeat(md5(i::text), 1 + i % 150), 'hex'),
	'2020-01-01'::date + i, '01:02:03.4'::time, '01:02:03+05', '2021-02-03 04:05:06', '2021-02-03 04:05:06+07', i * '1 hour'::interval,
	md5(i::text)::uuid, json_build_object('k', i), jsonb_build_object('k', repeat('v', i * 13), 'n', i), ('10.0.0.' || i % 255)::inet,
	'10.1.0.0/16', '08:00:2b:01:02:03', '08:00:2b:01:02:03:04:05', (i % 512)::bit(9), (i % 32)::bit(7), point(i, -i), box(point(i, i), point(0, 0)),
	'[(0,0),(1,1)]', '((0,0),(1,1),(2,0))', '<(1,2),3>', '[(0,0),(1,1)]', '{1,2,3}', to_tsvector('english', 'the quick foxes ' || i), 'a & b',
	int4range(i, i * 2), numrange(0, i), tstzrange('2020-01-01', NULL), int4multirange(int4range(1, 2), int4range(5, 5 + i)),
	ARRAY(SELECT generate_series(1, i % 60)), ARRAY[['a', NULL], ['c', 'd' || i]], ARRAY[ROW(i, 'x', '{1,2}')::deep, NULL],
	'ok', ROW(i, repeat('d', i), '{}')::deep, 'domain', ROW(i, 'y', NULL)::deep, ARRAY['q', 'r']::d_text[],
	'pg_class', '16/B374D848', '10:20:10,14,15', i::text::xid8, format('(%s,1)', i)::tid, NULL FROM generate_series($1, $2) i $$;
SELECT add_types(1, 200);
CREATE INDEX t_text ON types (c_text); CREATE INDEX t_hash ON types USING hash (c_uuid); CREATE INDEX t_gin ON types USING gin (c_jsonb);
CREATE INDEX t_gist ON types USING gist (c_range); CREATE INDEX t_sp ON types USING spgist (c_point); CREATE INDEX t_brin ON types USING brin (c_date);
CREATE INDEX t_ts ON types USING gin (c_tsvector); CREATE INDEX t_mood ON types (c_mood, c_numeric) INCLUDE (c_interval) WHERE c_bool;
CREATE UNIQUE INDEX t_deep ON types (id, c_deep);
));
my $types_text = q((SELECT md5(string_agg(t::text, E'\n' ORDER BY id)) FROM %s.types t));
sub types_same
{
	my ($name) = @_;
	is( $node->safe_psql('postgres', 'SELECT ' . sprintf($types_text, 'i') . ' = ' . sprintf($types_text, 'h')),
		't', "$name: all types as in heap");
	return;
}
types_same('inserted');
my $change = q(
UPDATE types SET c_null = id WHERE id % 2 = 0;
UPDATE types SET c_bytea = c_bytea || '\x00', c_bool = NOT c_bool WHERE id % 3 = 0;
UPDATE types SET c_jsonb = c_jsonb || '{"more": [1, 2]}', c_deep.b = 'changed', c_array[3] = NULL, c_array2[1][2] = 'set' WHERE id % 5 = 0;
BEGIN; UPDATE types SET c_text = repeat('aborted', 900), c_multi = '{}', c_domain = NULL, c_bytea = c_bytea || c_bytea;
DELETE FROM types WHERE id % 2 = 0; ROLLBACK;
UPDATE types SET c_date = c_date + 1, c_mood = 'happy', c_text = c_text || 'x' WHERE id % 7 = 0;
);
run_both($node, $change);
types_same('changed');

# Only "i" changes its access method, there and back.
my $queries = q(
SET enable_seqscan = off;
SELECT count(*) FROM types WHERE c_text > 'text5'; SELECT id FROM types WHERE c_uuid = md5('17')::uuid;
SELECT count(*) FROM types WHERE c_jsonb @> '{"more": [1]}'; SELECT count(*) FROM types WHERE c_range && int4range(10, 20);
SELECT count(*) FROM types WHERE c_point <@ box '(0,-50),(100,0)'; SELECT count(*) FROM types WHERE c_date > '2020-03-01';
SELECT count(*) FROM types WHERE c_tsvector @@ 'fox'; SELECT sum(c_numeric) FROM types WHERE c_bool AND c_mood = 'happy';
SELECT id FROM types WHERE id = 10 AND c_deep = ROW(10, 'changed', '{}')::deep; INSERT INTO types SELECT * FROM types WHERE id = 5;
);
# a snapshot from before, whose first look at the table is after
my $reader = $node->background_psql('postgres');
foreach my $method ('heap', 'inplace')
{
	$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class');
	$node->safe_psql('postgres', "SET search_path = i; DELETE FROM types WHERE id = 1; SELECT add_types(1, 1); ALTER TABLE types SET ACCESS METHOD $method");
	$node->safe_psql('postgres', 'SET search_path = h; DELETE FROM types WHERE id = 1; SELECT add_types(1, 1); ALTER TABLE types ALTER c_null TYPE bigint, ALTER c_null TYPE int')
	  if $method eq 'inplace';
	$node->safe_psql('postgres', 'SET search_path = h; ALTER TABLE types ALTER c_null TYPE bigint')
	  if $method eq 'heap';
	is($reader->query_safe('SELECT count(*) FROM i.types'), $reader->query_safe('SELECT count(*) FROM h.types'),
		"SET ACCESS METHOD $method: an old snapshot sees as much as of heap's rewrites");
	$reader->query_safe('COMMIT');
	is($node->safe_psql('postgres', q(SELECT amname FROM pg_am a JOIN pg_class c ON relam = a.oid WHERE c.oid = 'i.types'::regclass)),
		$method, "SET ACCESS METHOD $method");
	types_same("SET ACCESS METHOD $method");
	same_answer($node, "SET ACCESS METHOD $method: queries by index", $queries, qr/ERROR:  duplicate key/);
	run_both($node, $change);
	types_same("SET ACCESS METHOD $method, then changed");
	$node->safe_psql('postgres', "SET search_path = i; BEGIN; ALTER TABLE types SET ACCESS METHOD heap; ALTER TABLE types SET ACCESS METHOD inplace; UPDATE types SET c_null = 0; SAVEPOINT s; ALTER TABLE types SET ACCESS METHOD heap; ROLLBACK TO s; DELETE FROM types; ROLLBACK");
	crash_and_recover($node, 'kill');
	$reader = $node->background_psql('postgres');
	types_same("SET ACCESS METHOD $method, after a crash");
	tables_ok($node, "SET ACCESS METHOD $method", 'i.types');
}
$reader->quit;

# ---- materialized views ----------------------------------------------------------------

run_both(
	$node, q(
CREATE MATERIALIZED VIEW mv AS SELECT id, n, body FROM a WHERE n < 50;
CREATE UNIQUE INDEX mv_id ON mv (id); CREATE INDEX mv_n ON mv (n);
UPDATE a SET n = n + 1 WHERE id % 10 = 0; DELETE FROM a WHERE id % 10 = 1; INSERT INTO a SELECT i, 1, 'new' FROM generate_series(2001, 2100) i;
));
my %reader;
foreach my $schema ('i', 'h')
{
	local $ENV{PGOPTIONS} = twin_options($schema);
	$reader{$schema} = $node->background_psql('postgres');
	$reader{$schema}->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT sum(n) FROM mv');
}
my $was = $reader{h}->query_safe('SELECT count(*), sum(n), sum(length(body)) FROM mv');
for my $round (1 .. 3)
{
	run_both($node, "REFRESH MATERIALIZED VIEW CONCURRENTLY mv; UPDATE a SET n = $round, body = body || $round WHERE id % 4 = $round; DELETE FROM a WHERE id % 30 = $round");
	same_tables($node, "REFRESH CONCURRENTLY, $round", 'mv');
}
is($reader{$_}->query_safe('SELECT count(*), sum(n), sum(length(body)) FROM mv'), $was, "REFRESH CONCURRENTLY: an old snapshot of $_")
  foreach 'i', 'h';
isnt($node->safe_psql('postgres', 'SELECT count(*), sum(n), sum(length(body)) FROM i.mv'), $was, 'others see the change');
$_->query_safe('COMMIT'), $_->quit foreach values %reader;
run_both($node, 'REFRESH MATERIALIZED VIEW mv; REFRESH MATERIALIZED VIEW CONCURRENTLY mv');
same_tables($node, 'REFRESH', 'mv');
tables_ok($node, 'REFRESH', 'i.mv');
same_answer($node, 'REFRESH CONCURRENTLY, errors',
	q(CREATE MATERIALIZED VIEW twice AS SELECT n FROM a; REFRESH MATERIALIZED VIEW CONCURRENTLY twice;
CREATE TABLE d (n int); INSERT INTO d VALUES (1), (2); CREATE MATERIALIZED VIEW dup AS TABLE d;
CREATE UNIQUE INDEX ON dup (n); INSERT INTO d VALUES (1); REFRESH MATERIALIZED VIEW CONCURRENTLY dup; TABLE dup;),
	qr/new data for materialized view "dup" contains duplicate rows/);

# ---- COPY FREEZE -------------------------------------------------------------------------

my $data = PostgreSQL::Test::Utils::tempdir() . '/data';
append_to_file($data, join '', map { "$_\tline $_\n" } 1 .. 2000);
append_to_file("$data.bad", join '', map { "$_\tline $_\n" } 1 .. 1000, 'no number');
same_answer(
	$node, 'COPY FREEZE', qq(
CREATE TABLE f (id int PRIMARY KEY, t text);
COPY f FROM '$data' (FREEZE);
BEGIN; SELECT count(*) FROM f; TRUNCATE f; COPY f FROM '$data' (FREEZE); SELECT count(*) FROM f; ROLLBACK; SELECT count(*) FROM f;
BEGIN; TRUNCATE f; COPY f FROM '$data' (FREEZE); UPDATE f SET t = 'updated' WHERE id < 3; DELETE FROM f WHERE id = 4; COMMIT;
SELECT count(*), min(t), max(t) FROM f;
BEGIN; TRUNCATE f; SAVEPOINT s; COPY f FROM '$data' (FREEZE); COMMIT;
BEGIN; SAVEPOINT s; TRUNCATE f; RELEASE s; COPY f FROM '$data' (FREEZE); COMMIT;
BEGIN; TRUNCATE f; DECLARE c CURSOR FOR SELECT * FROM f; FETCH c; COPY f FROM '$data' (FREEZE); COMMIT;
BEGIN; CREATE TABLE g (id int, t text); COPY g FROM '$data.bad' (FREEZE); COMMIT;
BEGIN; TRUNCATE f; SAVEPOINT s; TRUNCATE f; COPY f FROM '$data' (FREEZE); ROLLBACK TO s; COMMIT; SELECT count(*) FROM f;
BEGIN; TRUNCATE f; COPY f FROM '$data' (FREEZE); SAVEPOINT s; INSERT INTO f VALUES (0, 'zero'); ROLLBACK TO s; COMMIT; SELECT count(*) FROM f;
CREATE TABLE p (id int, t text) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p DEFAULT;
BEGIN; TRUNCATE p; COPY p FROM '$data' (FREEZE); COMMIT; COPY p1 FROM '$data' (FREEZE);
BEGIN; TRUNCATE p1; COPY p1 FROM '$data' (FREEZE); INSERT INTO p1 VALUES (1, 'more'); COMMIT; SELECT count(*) FROM p;
),
	qr/cannot perform COPY FREEZE because the table was not created or truncated in the current subtransaction.*cannot perform COPY FREEZE on a partitioned table/s);
same_tables($node, 'COPY FREEZE', 'f', 'p1');
tables_ok($node, 'COPY FREEZE', 'i.f');
# Frozen rows are seen by snapshots older than their inserter.
$reader = $node->background_psql('postgres');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class');
run_both($node, "BEGIN; TRUNCATE f; COPY f FROM '$data' (FREEZE); COMMIT; BEGIN; TRUNCATE p1; COPY p1 FROM '$data'; COMMIT");
is($reader->query_safe("SELECT (SELECT count(*) FROM $_.f), (SELECT count(*) FROM $_.p1)"),
	'2000|0', "COPY FREEZE: an older snapshot of $_ sees frozen rows only")
  foreach 'i', 'h';
$reader->quit;

# ---- event triggers, DROP ----------------------------------------------------------------

$node->safe_psql(
	'postgres', q(
CREATE FUNCTION say() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE o record; BEGIN
	IF tg_event = 'table_rewrite' THEN
		RAISE NOTICE 'rewrite % reason %', pg_event_trigger_table_rewrite_oid()::regclass::text, pg_event_trigger_table_rewrite_reason();
	ELSIF tg_event = 'sql_drop' THEN
		FOR o IN SELECT * FROM pg_event_trigger_dropped_objects() LOOP
			RAISE NOTICE 'drop % %', o.object_type, regexp_replace(o.object_identity, '\m[ih]\.|pg_toast\S+|\d+', '', 'g');
		END LOOP;
	ELSE
		RAISE NOTICE '% %', tg_event, tg_tag;
	END IF;
END$$;
CREATE EVENT TRIGGER on_rewrite ON table_rewrite EXECUTE FUNCTION say();
CREATE EVENT TRIGGER on_drop ON sql_drop EXECUTE FUNCTION say();
CREATE EVENT TRIGGER on_end ON ddl_command_end EXECUTE FUNCTION say();
));
same_answer(
	$node, 'event triggers', q(
CREATE TABLE e (id int PRIMARY KEY, n int, t text CONSTRAINT t_check CHECK (t <> ''));
INSERT INTO e SELECT i, i, 'e' FROM generate_series(1, 10) i;
ALTER TABLE e ADD v int DEFAULT 3; ALTER TABLE e ADD w float DEFAULT random(); ALTER TABLE e ALTER n TYPE bigint; ALTER TABLE e SET UNLOGGED;
ALTER TABLE e SET LOGGED; ALTER TABLE e DROP COLUMN w; ALTER TABLE e DROP CONSTRAINT t_check; CLUSTER e USING e_pkey; VACUUM FULL e;
CREATE TABLE kept AS SELECT * FROM e; DROP TABLE kept; TRUNCATE e; DROP INDEX IF EXISTS none; CREATE INDEX e_n ON e (n); DROP INDEX e_n;
BEGIN; DROP TABLE e; ROLLBACK; SELECT count(*) FROM e; DROP TABLE e CASCADE;),
	qr/rewrite e reason 4.*drop table column e.w.*drop index e_n.*drop table e$/ms);
like(
	errors_of($node, 'ALTER TABLE i.a SET ACCESS METHOD heap; ALTER TABLE i.a SET ACCESS METHOD inplace;'),
	qr/rewrite i\.a reason 8.*rewrite i\.a reason 8/s, 'event trigger: SET ACCESS METHOD');

# CLUSTER that sorts takes no memory for each row.
$node->safe_psql('postgres', q(
CREATE TABLE i.wide (id int PRIMARY KEY, pad int2, b text) USING inplace;
INSERT INTO i.wide SELECT i, 1, repeat(md5(i::text), 30) FROM generate_series(1, 60000) i;
CREATE INDEX wide_b ON i.wide (b);
));
my @peaks = split /\n/, $node->safe_psql('postgres', q(
SET maintenance_work_mem = '1MB';
SET enable_indexscan = off;
VACUUM FULL i.wide;
SELECT substring(pg_read_file('/proc/self/status') FROM 'VmHWM:\s*(\d+)');
CLUSTER i.wide USING wide_b;
SELECT substring(pg_read_file('/proc/self/status') FROM 'VmHWM:\s*(\d+)');
));
cmp_ok($peaks[1] - $peaks[0], '<', 30_000, "CLUSTER that sorts: $peaks[1] kB after $peaks[0]");
is($node->safe_psql('postgres', q(SELECT count(*) FROM (SELECT b < lag(b) OVER (ORDER BY ctid) AS less FROM i.wide) x WHERE less)), '0', 'it has sorted');
$node->safe_psql('postgres', 'DROP TABLE i.wide');

# What statements say on stderr.
sub errors_of
{
	my ($where, $sql) = @_;
	my $stderr;
	$where->psql('postgres', $sql, stderr => \$stderr);
	return $stderr;
}

$node->safe_psql('postgres', 'DROP EVENT TRIGGER on_end; DROP EVENT TRIGGER on_drop');
like(errors_of($node, 'DROP EXTENSION inplace'),
	qr/cannot drop extension inplace because other objects depend on it.*table i\.a depends on access method inplace/s, 'DROP EXTENSION is refused');
$node->safe_psql('postgres', 'DROP TABLE i.types CASCADE; DROP SCHEMA i CASCADE');
is($node->safe_psql('postgres', q(SELECT count(*) FROM pg_class WHERE relam = (SELECT oid FROM pg_am WHERE amname = 'inplace'))), '0', 'DROP SCHEMA CASCADE');
$node->safe_psql('postgres', 'CREATE TABLE public.t (id int) USING inplace; DROP EXTENSION inplace CASCADE');
is($node->safe_psql('postgres', q(SELECT count(*) FROM pg_class WHERE relname = 't' OR relname = 'inplace')), '0', 'DROP EXTENSION CASCADE drops the tables');
$node->safe_psql('postgres', 'CREATE EXTENSION inplace; CREATE TABLE public.t (id int) USING inplace; INSERT INTO t VALUES (1); DROP TABLE t');
crash_and_recover($node, 'kill');
log_ok($node, 'whole run', 0);
$node->stop;
done_testing();
