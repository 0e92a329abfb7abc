# Extensions that know nothing of this access method: they work, or fail with an error that says
# why; none crashes the server or changes a table behind its back.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use InplaceTwin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('main', conf => "autovacuum = off\nmax_prepared_transactions = 5");
create_twin_schemas($node);
my @extensions = qw(pg_visibility pageinspect pgstattuple pgrowlocks pg_prewarm pg_freespacemap pg_buffercache
  pg_surgery pg_walinspect postgres_fdw dblink file_fdw tablefunc tsm_system_rows hstore lo);
my %have = map { $_ => 1 } split /\n/,
  $node->safe_psql('postgres', 'SELECT name FROM pg_available_extensions');
my @missing = grep { !$have{$_} } @extensions;
if (@missing)
{
	$node->stop;
	plan skip_all => "not installed: @missing";
}
$node->safe_psql('postgres', "CREATE EXTENSION $_") foreach @extensions;

run_both(
	$node, q(
CREATE TABLE t (id int PRIMARY KEY, n int, body text);
INSERT INTO t SELECT i, 0, repeat('t', i % 200) FROM generate_series(1, 3000) i;
ALTER TABLE t ALTER body SET STORAGE EXTERNAL;
CREATE INDEX t_n ON t (n);
UPDATE t SET n = n + 1 WHERE id % 2 = 0;
DELETE FROM t WHERE id % 10 = 0;
BEGIN; UPDATE t SET body = 'aborted'; ROLLBACK;
VACUUM t;
UPDATE t SET n = 5, body = body || 'more' WHERE id % 7 = 0;
BEGIN; SELECT count(*) FROM (SELECT FROM t WHERE id < 100 FOR SHARE) l; COMMIT;
));
my $rows = contents($node, 'i.t', 'id', 'seq');

# One test: a statement on i.t fails with this error, and not as an internal error.
sub refused
{
	my ($name, $sql, $pattern) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $stderr;
	$node->psql('postgres', "\\set VERBOSITY verbose\n$sql", stderr => \$stderr, on_error_stop => 0);
	like($stderr, qr/ERROR:  (?!XX)\w{5}: .*$pattern/, "$name is refused");
	return;
}
sub answer_is
{
	my ($name, $sql, $expected) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($node->safe_psql('postgres', $sql), $expected, $name);
	return;
}

# ---- those that look at pages ----------------------------------------------------------

my $blocks = $node->safe_psql('postgres', "SELECT pg_relation_size('i.t') / 8192");
answer_is('pg_visibility_map', "SELECT count(*) FROM pg_visibility_map('i.t')", $blocks);
answer_is('pg_visibility', "SELECT count(*) FROM pg_visibility('i.t')", $blocks);
answer_is('pg_visibility_map_summary',
	q(SELECT all_visible = (SELECT count(*) FROM pg_visibility_map('i.t') WHERE all_visible) FROM pg_visibility_map_summary('i.t')), 't');
refused('pg_check_visible', "SELECT * FROM pg_check_visible('i.t')", 'inplace');
refused('pg_check_frozen', "SELECT * FROM pg_check_frozen('i.t')", 'inplace');
$node->safe_psql('postgres', "SELECT pg_truncate_visibility_map('i.t')");
answer_is('pg_truncate_visibility_map', q(SELECT * FROM pg_visibility_map_summary('i.t')), '0|0');
$node->safe_psql('postgres', 'VACUUM i.t');
cmp_ok($node->safe_psql('postgres', "SELECT all_visible FROM pg_visibility_map_summary('i.t')"),
	'>', 0, 'VACUUM makes the map again');
tables_ok($node, 'after pg_visibility', 'i.t');

answer_is('page_header', "SELECT count(*) FROM generate_series(0, $blocks - 1) b, page_header(get_raw_page('i.t', b::int)) WHERE pagesize = 8192", $blocks);
# On any of our pages: an error, or what does not depend on what the page is; and the server lives.
my $looked = $node->safe_psql(
	'postgres', q(
CREATE TABLE looked (function text, answer text) USING heap;
DO $$
DECLARE f text; b int;
BEGIN
	FOREACH f IN ARRAY '{"heap_page_items(p)", "heap_page_item_attrs(p, ''i.t'')", "heap_page_item_attrs(p, ''i.t'', true)",
		"fsm_page_contents(p)", "bt_page_items(p)", "bt_metap(''i.t'')", "gin_metapage_info(p)", "gin_page_opaque_info(p)", "gin_leafpage_items(p)",
		"hash_page_type(p)", "hash_page_items(p)", "hash_metapage_info(p)", "brin_page_type(p)", "brin_page_items(p, ''i.t_n'')", "brin_metapage_info(p)",
		"gist_page_opaque_info(p)", "gist_page_items_bytea(p)", "page_checksum(p, 1)"}'::text[] LOOP
		FOR b IN 0 .. pg_relation_size('i.t') / 8192 - 1 LOOP
			BEGIN
				EXECUTE format('INSERT INTO looked SELECT %L, ''rows'' FROM (SELECT count(x::text) FROM (SELECT get_raw_page(''i.t'', %s) AS p) q, LATERAL %s x) y', f, b, f);
			EXCEPTION WHEN OTHERS THEN
				INSERT INTO looked VALUES (f, SQLERRM);
			END;
		END LOOP;
	END LOOP;
END $$;
SELECT count(*), count(DISTINCT function) FROM looked));
is($looked, 18 * $blocks . '|18', 'pageinspect on our pages');
answer_is('what takes any page', q(SELECT DISTINCT function FROM looked WHERE answer = 'rows' ORDER BY 1),
	"fsm_page_contents(p)\npage_checksum(p, 1)");
answer_is('heap_page_items, also as heap_page_item_attrs calls it', q(SELECT answer, count(*) FROM looked WHERE function LIKE 'heap%' GROUP BY 1),
	'heap_page_items cannot read a page of an inplace table|' . 3 * $blocks);
refused('heap_page_items', "SELECT * FROM heap_page_items(get_raw_page('i.t', 1))", 'inplace');
refused('heap_page_item_attrs', "SELECT * FROM heap_page_item_attrs(get_raw_page('i.t', 0), 'i.t')", 'inplace');
refused('tuple_data_split', q(SELECT tuple_data_split('i.t'::regclass, ''::bytea, 0, 0, NULL)), 'heap AM');
refused('heap_page_items of half a page', "SELECT * FROM heap_page_items(substr(get_raw_page('i.t', 1), 1, 10))", '(input page too small|invalid page size)');
answer_is('heap_page_items of a heap', "SELECT count(*) > 10 FROM heap_page_items(get_raw_page('h.t', 0))", 't');
answer_is('heap_page_item_attrs of a heap', "SELECT count(*) > 10 FROM heap_page_item_attrs(get_raw_page('h.t', 0), 'h.t')", 't');
answer_is('heap_page_items of NULL', 'SELECT count(*) FROM heap_page_items(NULL)', 0);
# more than once in a statement, of either kind
answer_is('heap_page_items of some pages', "SELECT count(*) > 100 FROM generate_series(0, 9) b, heap_page_items(get_raw_page('h.t', b))", 't');
refused('heap_page_items of heap and ours', "SELECT * FROM unnest('{h.t,i.t}'::text[]) t, heap_page_items(get_raw_page(t, 1))", 'inplace');
cmp_ok($node->safe_psql('postgres', "SELECT count(*) FROM pg_freespace('i.t') WHERE avail > 0"), '>', 0, 'pg_freespacemap');

refused('pgstattuple',        "SELECT * FROM pgstattuple('i.t')",        '"t" \(heap\) is not supported|only heap AM|not supported');
refused('pgstattuple_approx', "SELECT * FROM pgstattuple_approx('i.t')", 'heap AM|not supported|wrong kind');
cmp_ok($node->safe_psql('postgres', "SELECT tuple_count FROM pgstattuple('i.t_pkey')") // 0, '>=', 2700, 'pgstattuple of an index');
is($node->safe_psql('postgres', "SELECT leaf_fragmentation IS NOT NULL FROM pgstatindex('i.t_pkey')"), 't', 'pgstatindex');
refused('pgrowlocks',      "SELECT * FROM pgrowlocks('i.t')",      'heap AM');
refused('verify_heapam',   "SELECT * FROM verify_heapam('i.t')",   'heap AM');
refused('heap_force_kill', "SELECT heap_force_kill('i.t', ARRAY['(1,1)']::tid[])", 'heap AM');
refused('heap_force_freeze', "SELECT heap_force_freeze('i.t', ARRAY['(1,1)']::tid[])", 'heap AM');
answer_is('bt_index_check', "SELECT bt_index_check(i, true), bt_index_parent_check(i, true, true) FROM unnest('{i.t_pkey,i.t_n}'::regclass[]) i", "|\n|");
# pg_amcheck skips our tables; the query of docs/users/operations.md does not.
$node->command_ok([ 'pg_amcheck', '--port' => $node->port, '--host' => $node->host, 'postgres' ], 'pg_amcheck');
$node->command_fails_like([ 'pg_amcheck', '--port' => $node->port, '--host' => $node->host, '--table' => 'i.t', 'postgres' ],
	qr/no heap tables to check matching "i\.t"/, 'pg_amcheck of an inplace table');
my $all = q(FROM pg_class c JOIN pg_am a ON a.oid = c.relam, LATERAL inplace_check(c.oid) k
WHERE a.amname = 'inplace' AND (c.relpersistence <> 't' OR c.relnamespace = pg_my_temp_schema()));
answer_is('inplace_check of all tables', "SELECT c.oid::regclass AS relation, k.* $all", '');
answer_is("pg_prewarm $_", "SELECT pg_prewarm('i.t', '$_')", $blocks) foreach qw(buffer read prefetch);
answer_is('pg_prewarm of the map', "SELECT pg_prewarm('i.t', 'buffer', 'vm') > 0", 't');
answer_is('pg_buffercache', "SELECT count(DISTINCT relblocknumber) FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('i.t') AND relforknumber = 0", $blocks);
is(contents($node, 'i.t', 'id', 'seq'), $rows, 'all that has not changed the table');

# ---- WAL -------------------------------------------------------------------------------

my $start = $node->lsn('insert');
run_both(
	$node, q(
INSERT INTO t VALUES (0, 0, 'wal'); UPDATE t SET n = 9 WHERE id = 1; UPDATE t SET body = repeat('wal', 100) WHERE id = 2;
DELETE FROM t WHERE id = 3; SELECT FROM t WHERE id = 4 FOR UPDATE; BEGIN; UPDATE t SET n = 8 WHERE id < 100; ROLLBACK; VACUUM t;
CREATE TABLE wal AS SELECT 1 AS x));
my $end = $node->lsn('insert');
my $records = $node->safe_psql('postgres', "SELECT record_type, description, block_ref FROM pg_get_wal_records_info('$start', '$end') WHERE resource_manager = 'inplace' OR resource_manager LIKE 'custom%'");
cmp_ok(scalar(split /\n/, $records), '>', 5, 'pg_walinspect shows our records');
unlike($records, qr/^UNKNOWN|^\|/m, 'each has a type');
is(scalar(grep { (split /\|/)[1] eq '' } split /\n/, $records), 0, 'each has a description') or diag($records);
answer_is('pg_get_wal_stats', "SELECT sum(count) > 5 FROM pg_get_wal_stats('$start', '$end') WHERE \"resource_manager/record_type\" ~ 'inplace|custom'", 't');
my $file = $node->safe_psql('postgres', "SELECT pg_walfile_name('$start')");
my ($out, $err) = run_command([ 'pg_waldump', '--start' => $start, '--end' => $end, '--path' => $node->data_dir . '/pg_wal' ]);
like($out, qr/^rmgr: custom164 .*rel \d+/m, 'pg_waldump reads them');
($out, $err) = run_command([ 'pg_waldump', '--stats=record', '--start' => $start, '--end' => $end, '--path' => $node->data_dir . '/pg_wal' ]);
like($out, qr/^custom164/m, 'pg_waldump --stats');

# ---- foreign data ----------------------------------------------------------------------

my $connect = sprintf("host '%s', port '%s', dbname 'postgres'", $node->host, $node->port);
my $string  = $node->connstr('postgres') =~ s/'/''/gr;
$node->safe_psql(
	'postgres', qq(
CREATE SERVER self_i FOREIGN DATA WRAPPER postgres_fdw OPTIONS ($connect, batch_size '50');
CREATE SERVER self_h FOREIGN DATA WRAPPER postgres_fdw OPTIONS ($connect, batch_size '50');
CREATE USER MAPPING FOR CURRENT_USER SERVER self_i; CREATE USER MAPPING FOR CURRENT_USER SERVER self_h;
CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;));
run_both(
	$node, qq(
CREATE TABLE r (id int PRIMARY KEY, n int, body text); CREATE TABLE loc (id int PRIMARY KEY, n int);
INSERT INTO loc SELECT i, i % 5 FROM generate_series(1, 400) i;
DO \$\$BEGIN EXECUTE format('CREATE FOREIGN TABLE f (id int, n int, body text) SERVER self_%s OPTIONS (schema_name %L, table_name %L)', current_schema, current_schema, 'r'); END\$\$;
));
my $direct = same_answer(
	$node, 'postgres_fdw', q(
INSERT INTO f SELECT i, 0, 'foreign ' || i FROM generate_series(1, 500) i;
EXPLAIN (VERBOSE, COSTS OFF) UPDATE f SET n = n + 1 WHERE id <= 250; UPDATE f SET n = n + 1 WHERE id <= 250;
EXPLAIN (VERBOSE, COSTS OFF) UPDATE f SET n = f.n + loc.n FROM loc WHERE loc.id = f.id AND loc.n = (random() * 0 + 2)::int;
WITH u AS (UPDATE f SET n = f.n + loc.n FROM loc WHERE loc.id = f.id AND loc.n = (random() * 0 + 2)::int RETURNING f.id, f.n) SELECT * FROM u ORDER BY 1;
WITH d AS (DELETE FROM f WHERE id % 9 = 0 RETURNING id) SELECT * FROM d ORDER BY 1; DELETE FROM f USING loc WHERE f.id = loc.id AND loc.n = 4 AND random() < 2;
SELECT count(*), sum(n) FROM f; SELECT f.*, loc.n FROM f JOIN loc USING (id) WHERE f.n > 2 ORDER BY 1 LIMIT 5;
BEGIN; SELECT id FROM f WHERE id = 1 FOR UPDATE; UPDATE f SET body = 'locked' WHERE id = 1; SAVEPOINT s; UPDATE f SET body = 'sub', n = (random() * 0)::int WHERE id < 5; ROLLBACK TO s; COMMIT;
BEGIN; DELETE FROM f; INSERT INTO f VALUES (1000, 1); ROLLBACK;
INSERT INTO f VALUES (1, 1); INSERT INTO f VALUES (1, 1) ON CONFLICT DO NOTHING RETURNING id;
WITH d AS (DELETE FROM f WHERE id BETWEEN 300 AND 320 RETURNING *) INSERT INTO loc SELECT id + 10000, n FROM d;
UPDATE loc SET n = f.n FROM f WHERE f.id = loc.id; MERGE INTO loc USING f ON f.id = loc.id WHEN MATCHED AND f.n > 1 THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (f.id, f.n);
COPY f FROM stdin;
2001	1	copied
2002	2	copied
\.
SELECT count(*) FROM f WHERE body = 'copied'; TRUNCATE f; SELECT count(*) FROM f; INSERT INTO f SELECT id, n, 'back' FROM loc;),
	qr/Remote SQL: UPDATE .*\n(.*\n)*.*ctid.*duplicate key/s);
same_tables($node, 'postgres_fdw', 'r', 'loc');
tables_ok($node, 'postgres_fdw', 'i.r', 'i.loc');
run_both(
	$node, q(CREATE TABLE parts (id int, n int) PARTITION BY RANGE (id); CREATE TABLE part1 PARTITION OF parts FOR VALUES FROM (0) TO (100); CREATE TABLE part2_store (id int, n int);
DO $$BEGIN EXECUTE format('CREATE FOREIGN TABLE part2 PARTITION OF parts FOR VALUES FROM (100) TO (1000) SERVER self_%s OPTIONS (schema_name %L, table_name %L)', current_schema, current_schema, 'part2_store'); END$$;
INSERT INTO parts SELECT i, 0 FROM generate_series(1, 200) i; UPDATE parts SET id = id + 100 WHERE id < 50; UPDATE parts SET n = n + 1));
same_tables($node, 'foreign partition', 'part1', 'part2_store');

same_answer(
	$node, 'dblink', qq(
SELECT dblink_exec('$string', format('UPDATE %s.t SET n = -1 WHERE id < 10', current_schema));
SELECT * FROM dblink('$string', format('SELECT id, n FROM %s.t WHERE id < 12 ORDER BY 1', current_schema)) AS d(id int, n int);
SELECT dblink_connect('c', '$string'); SELECT dblink_exec('c', 'BEGIN'); SELECT dblink_exec('c', format('DELETE FROM %s.t WHERE id < 20', current_schema));
SELECT count(*) FROM t; SELECT dblink_open('c', 'cur', format('SELECT id FROM %s.t ORDER BY id', current_schema)); SELECT * FROM dblink_fetch('c', 'cur', 2) AS d(id int);
SELECT dblink_exec('c', 'ROLLBACK'); SELECT dblink_disconnect('c'); SELECT count(*), sum(n) FROM t;
SELECT dblink_build_sql_update('t', '1', 1, ARRAY['11'], ARRAY['12']);), qr/UPDATE \d+/);

my $data = PostgreSQL::Test::Utils::tempdir() . '/data';
append_to_file($data, join '', map { "$_\t" . $_ % 3 . "\tline $_\n" } 5001 .. 6000);
run_both(
	$node, qq(CREATE FOREIGN TABLE file (id int, n int, body text) SERVER files OPTIONS (filename '$data');
INSERT INTO t TABLE file; UPDATE t SET body = file.body || '!' FROM file WHERE file.id = t.id AND file.n = 1; COPY t FROM '$data' WHERE id < 0));
same_tables($node, 'file_fdw', 't');

same_answer($node, 'tablefunc', q(
CREATE TABLE tree (id text, parent text, v int); INSERT INTO tree VALUES ('a', NULL, 1), ('b', 'a', 2), ('c', 'b', 3), ('d', 'a', 4); UPDATE tree SET v = v * 10;
SELECT * FROM connectby('tree', 'id', 'parent', 'a', 0, '~') AS c(id text, parent text, level int, branch text);
SELECT * FROM crosstab('SELECT id, v % 3, v FROM tree ORDER BY 1, 2') AS c(id text, one int, two int);), qr/a~b~c/);
answer_is('tsm_system_rows', 'SELECT count(*), count(DISTINCT id) FROM i.t TABLESAMPLE system_rows(100)', '100|100');
same_answer($node, 'hstore, lo', q(
CREATE TABLE hs (id int PRIMARY KEY, h hstore, o lo); CREATE TRIGGER o BEFORE UPDATE OR DELETE ON hs FOR EACH ROW EXECUTE FUNCTION lo_manage(o);
INSERT INTO hs SELECT i, hstore('k', i::text), lo_create(0) FROM generate_series(1, 20) i; CREATE INDEX ON hs USING gin (h);
UPDATE hs SET h = h || 'x=>1' WHERE id < 5; UPDATE hs SET o = NULL WHERE id = 1; DELETE FROM hs WHERE id > 10;
SET enable_seqscan = off; SELECT count(*) FROM hs WHERE h ? 'x'; SELECT count(*) FROM pg_largeobject_metadata WHERE oid IN (SELECT o FROM hs);), qr/^4$/m);

tables_ok($node, 'in the end', 'i.t', 'i.r', 'i.part1', 'i.part2_store', 'i.hs');
log_ok($node, 'whole run', 0);
$node->stop;
done_testing();
