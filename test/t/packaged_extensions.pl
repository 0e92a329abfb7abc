# Extensions from Debian's packages, with default_table_access_method = inplace in postgresql.conf: CREATE
# EXTENSION, their main job on inplace tables, DROP EXTENSION.  Those that are not installed are skipped;
# "./run.sh test extensions" installs them.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'takes long; "./run.sh test extensions" runs it' if !$ENV{INPLACE_PACKAGES};
chomp(my $share = `$ENV{PG_CONFIG} --sharedir`);
my $preload = join ', ', grep { -e "$share/extension/$_.control" } qw(pg_cron pglogical pgaudit);
my $node = new_cluster(
	'main',
	streaming => 1,
	conf => join "\n",
	'shared_preload_libraries = ' . ($preload ? "'$preload, inplace'" : "'inplace'"),
	"default_table_access_method = 'inplace'",
	'wal_level = logical',
	'max_worker_processes = 30',
	"cron.database_name = 'postgres'",
	'cron.use_background_workers = on',
	'cron.log_statement = off',
	'track_commit_timestamp = on',
	'autovacuum = off');
# newer minor versions want to know whom to trust
if ($node->safe_psql('postgres', q(SELECT count(*) FROM pg_settings WHERE name = 'output_plugin_libraries')))
{
	$node->append_conf('postgresql.conf', "output_plugin_libraries = 'pgoutput, test_decoding, pglogical_output'");
	$node->reload;
}
my %have = map { $_ => 1 } split /\n/, $node->safe_psql('postgres', 'SELECT name FROM pg_available_extensions');
my $log = 0;

sql_on(\$node);

# An extension's tables that are not heap tables.
my $not_heap = q(SELECT string_agg(c.oid::regclass::text, ', ') FROM pg_class c JOIN pg_am a ON a.oid = c.relam
JOIN pg_depend d ON d.objid = c.oid AND d.classid = 'pg_class'::regclass AND d.deptype = 'e' WHERE c.relkind IN ('r', 'm') AND a.amname <> 'heap');

# A subtest with the extension created; drops it in the end.
sub with_extension
{
	my ($name, $code) = @_;
	if (!$have{$name})
	{
	  SKIP: { skip "$name is not installed", 1; }
		return;
	}
	subtest $name => sub {
		sql("SET client_min_messages = warning; CREATE EXTENSION $name CASCADE");
		is(sql($not_heap), '', 'its tables are heap tables');
		$code->();
		$log = log_ok($node, $name, $log);
		sql("SET client_min_messages = warning; DROP EXTENSION $name CASCADE");
		is(sql("SELECT count(*) FROM pg_extension WHERE extname = '$name'"), 0, 'DROP EXTENSION');
	};
	return;
}

# ---- pg_cron ------------------------------------------------------------------------------------

with_extension(
	'pg_cron',
	sub {
		sql('CREATE TABLE ticks (at timestamptz)');
		sql(q(SELECT cron.schedule('tick', '* * * * *', 'INSERT INTO ticks VALUES (now())')));
		sql(q(SELECT cron.schedule('gone', '0 0 1 1 *', 'SELECT 1')));
		is(sql(q(SELECT cron.unschedule('gone'))), 't', 'unschedule');
		sql(q(SELECT cron.alter_job(jobid, command => 'INSERT INTO ticks VALUES (now()) /* altered */') FROM cron.job));
		is(sql(q(SELECT count(*), min(command) FROM cron.job)), '1|INSERT INTO ticks VALUES (now()) /* altered */', 'alter_job');
		ok($node->poll_query_until('postgres', 'SELECT count(*) > 0 FROM ticks'), 'a job has run');
		ok($node->poll_query_until('postgres', q(SELECT count(*) > 0 FROM cron.job_run_details WHERE status = 'succeeded')), 'its run is recorded');
		is(sql(q(SELECT cron.unschedule(jobid) FROM cron.job)), 't', 'unschedule by id');
		is(sql('SELECT count(*) FROM cron.job'), 0, 'no job is left');
		tables_ok($node, 'pg_cron', 'ticks');
	});

# ---- pgaudit --------------------------------------------------------------------------------------

with_extension(
	'pgaudit',
	sub {
		sql("SET pgaudit.log = 'write, ddl'; CREATE TABLE audited (id int PRIMARY KEY, n int)");
		sql("SET pgaudit.log = 'write, ddl'; INSERT INTO audited VALUES (1, 1), (2, 2); UPDATE audited SET n = 3 WHERE id = 1; DELETE FROM audited WHERE id = 2; SELECT * FROM audited");
		sql("CREATE ROLE auditor; SET pgaudit.role = auditor; GRANT SELECT (n) ON audited TO auditor; SELECT n FROM audited; SELECT id FROM audited");
		my @lines = map { (split /AUDIT: /)[1] } grep { /AUDIT: / } split /\n/, slurp_file($node->logfile, $log);
		is(scalar(grep { /SESSION,.*,(CREATE TABLE|INSERT|UPDATE|DELETE),/ } @lines), 4, 'session audit');
		is(scalar(grep { /OBJECT,.*READ,SELECT/ } @lines), 1, 'object audit');
		sql('DROP OWNED BY auditor; DROP ROLE auditor');
	});

# ---- pg_partman -----------------------------------------------------------------------------------

with_extension(
	'pg_partman',
	sub {
		sql(q(CREATE TABLE public.measures (at timestamptz NOT NULL, id int, v int, PRIMARY KEY (at, id)) PARTITION BY RANGE (at);
CREATE TABLE public.keys (id int NOT NULL, v int) PARTITION BY RANGE (id)));
		sql(q(SELECT create_parent('public.measures', 'at', 'native', 'daily', p_premake := 3, p_start_partition := (now() - interval '2 days')::text);
SELECT create_parent('public.keys', 'id', 'native', '100', p_premake := 2);
INSERT INTO measures SELECT now() + i * interval '1 hour', i, i FROM generate_series(-40, 60) i;
INSERT INTO keys SELECT i, i FROM generate_series(0, 5000, 7) i));
		is(sql(q(SELECT DISTINCT amname FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid JOIN pg_am a ON a.oid = relam WHERE relkind = 'r')), 'inplace', 'partitions are inplace tables');
		cmp_ok(sql('SELECT count(*) FROM keys_default'), '>', 100, 'rows in the default partition');
		sql(q(CALL partition_data_proc('public.keys')));
		sql('VACUUM ANALYZE keys; SELECT run_maintenance()');
		is(sql('SELECT count(*) FROM keys_default'), 0, 'the default partition is emptied');
		is(sql('SELECT count(*), sum(id) FROM keys'), sql('SELECT count(*), sum(i) FROM generate_series(0, 5000, 7) i'), 'no row is lost');
		sql(q(UPDATE keys SET v = v + 1; UPDATE keys SET id = id + 100 WHERE id < 50; UPDATE part_config SET retention = '2000', retention_keep_table = false WHERE parent_table = 'public.keys'; CALL run_maintenance_proc()));
		is(sql('SELECT count(*) FROM keys WHERE id < 2000'), 0, 'retention');
		is(sql(q(SELECT partition_count > 0 FROM (SELECT count(*) AS partition_count FROM show_partitions('public.measures')) s)), 't', 'show_partitions');
		sql(q(CREATE TABLE public.keys_target (id int, v int); CALL undo_partition_proc('public.keys', p_target_table := 'public.keys_target', p_keep_table := false)));
		is(sql('SELECT count(*) > 100, min(id) >= 2000 FROM keys_target'), 't|t', 'undo_partition');
		tables_ok($node, 'pg_partman', 'keys_target', split /\n/, sql(q(SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'measures'::regclass)));
	});

# ---- PostGIS ----------------------------------------------------------------------------------------

with_extension(
	'postgis',
	sub {
		sql(q(CREATE TABLE places (id int PRIMARY KEY, name text, at geometry(Point, 4326), area geometry, g geography(Point));
INSERT INTO places SELECT i, 'p' || i, ST_SetSRID(ST_MakePoint(i % 100, i / 100), 4326), ST_Buffer(ST_MakePoint(i % 100, i / 100), 0.4, i % 40 + 1), ST_MakePoint(i % 100, i / 100) FROM generate_series(0, 4999) i;
CREATE INDEX places_at ON places USING gist (at); CREATE INDEX places_sp ON places USING spgist (area); CREATE INDEX places_brin ON places USING brin (at); CREATE INDEX places_g ON places USING gist (g);
UPDATE places SET at = ST_Translate(at, 0, 50) WHERE id % 10 = 0; UPDATE places SET name = name || '!' WHERE id % 3 = 0; DELETE FROM places WHERE id % 7 = 0; VACUUM ANALYZE places;
CREATE TABLE h_places (LIKE places) USING heap; INSERT INTO h_places TABLE places; ANALYZE h_places));
		foreach my $condition (q(at && ST_MakeEnvelope(10, 10, 30, 80, 4326)), 'ST_Intersects(area, ST_MakeEnvelope(5.5, 5.5, 20.5, 9.9))', q(ST_DWithin(g, 'POINT(20 20)'::geography, 300000)))
		{
			my $query = "SELECT count(*), sum(id), md5(string_agg(name, ',' ORDER BY id)) FROM %s WHERE $condition";
			is(sql('SET enable_seqscan = off; ' . sprintf $query, 'places'), sql(sprintf $query, 'h_places'), "as heap: $condition");
		}
		is(sql('SET enable_seqscan = off; SELECT array_agg(id) FROM (SELECT id FROM places ORDER BY at <-> ST_SetSRID(ST_MakePoint(33.3, 11.2), 4326) LIMIT 5) s'),
			sql('SELECT array_agg(id) FROM (SELECT id FROM h_places ORDER BY at <-> ST_SetSRID(ST_MakePoint(33.3, 11.2), 4326) LIMIT 5) s'), 'nearest neighbours');
		is(sql(q(SELECT ST_AsText(ST_EstimatedExtent('places', 'at')) IS NOT NULL)), 't', 'statistics');
		is(sql(q(SELECT count(*) FROM geometry_columns WHERE f_table_name = 'places')), 2, 'geometry_columns');
		is(sql('INSERT INTO spatial_ref_sys (srid, auth_name) VALUES (900000, $$test$$); SELECT count(*) FROM spatial_ref_sys WHERE srid = 900000'), 1, 'spatial_ref_sys');
		tables_ok($node, 'postgis', 'places');
	});
with_extension($_, sub { }) foreach qw(postgis_raster postgis_topology postgis_tiger_geocoder address_standardizer_data_us);

# ---- rum, pgvector ------------------------------------------------------------------------------------

# Index access methods: the index finds what a heap's rows say.
sub index_finds
{
	my ($query) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(sql('SET enable_seqscan = off; SET enable_sort = off; ' . sprintf $query, 'docs'), sql(sprintf $query, 'h_docs'), sprintf $query, 'docs');
}

with_extension(
	'rum',
	sub {
		sql(q(CREATE TABLE docs (id int PRIMARY KEY, body tsvector, at timestamp);
INSERT INTO docs SELECT i, to_tsvector('simple', 'word' || i % 10 || ' other' || i % 37 || ' ' || repeat('more ', i % 5)), '2020-01-01'::timestamp + i * interval '1 minute' FROM generate_series(1, 3000) i;
CREATE INDEX docs_rum ON docs USING rum (body rum_tsvector_addon_ops, at) WITH (attach = 'at', to = 'body');
UPDATE docs SET body = body || to_tsvector('simple', 'changed') WHERE id % 11 = 0; DELETE FROM docs WHERE id % 13 = 0; BEGIN; UPDATE docs SET body = ''; ROLLBACK; VACUUM docs;
CREATE TABLE h_docs (LIKE docs) USING heap; INSERT INTO h_docs TABLE docs));
		index_finds(q(SELECT count(*), sum(id) FROM %s WHERE body @@ 'word3 & other5'::tsquery));
		index_finds(q(SELECT count(*), sum(id) FROM %s WHERE body @@ 'changed'::tsquery));
		index_finds(q(SELECT array_agg(id) FROM (SELECT id FROM %s WHERE body @@ 'word7'::tsquery ORDER BY at <=> '2020-01-02'::timestamp LIMIT 8) s));
		tables_ok($node, 'rum', 'docs');
		sql('DROP TABLE docs, h_docs');
	});

with_extension(
	'vector',
	sub {
		sql(q(CREATE TABLE docs (id int PRIMARY KEY, v vector(3));
INSERT INTO docs SELECT i, ARRAY[sin(i), cos(i * 1.3), sin(i * 0.7)]::vector FROM generate_series(1, 2000) i;
CREATE INDEX docs_hnsw ON docs USING hnsw (v vector_l2_ops); CREATE INDEX docs_ivf ON docs USING ivfflat (v vector_cosine_ops) WITH (lists = 5);
UPDATE docs SET v = ARRAY[5, id, 1]::vector WHERE id % 10 = 0; DELETE FROM docs WHERE id % 7 = 0; BEGIN; UPDATE docs SET v = '[0,0,0]'; ROLLBACK; VACUUM docs;
CREATE TABLE h_docs (LIKE docs) USING heap; INSERT INTO h_docs TABLE docs));
		index_finds(q(SELECT array_agg(id) FROM (SELECT id FROM %s ORDER BY v <-> '[5,1002,1]' LIMIT 5) s));
		index_finds(q(SET ivfflat.probes = 5; SELECT array_agg(id) FROM (SELECT id FROM %s ORDER BY v <=> '[1,0.2,0.3]' LIMIT 5) s));
		tables_ok($node, 'pgvector', 'docs');
		sql('DROP TABLE docs, h_docs');
	});

# ---- pglogical ------------------------------------------------------------------------------------------

# Between two databases.  The subscriber's table is a heap: pglogical applies with heap's functions.
with_extension(
	'pglogical',
	sub {
		my $dsn = $node->connstr('postgres') =~ s/'/''/gr;
		sql(q(CREATE TABLE replicated (id int PRIMARY KEY, n int, body text); INSERT INTO replicated SELECT i, 0, 'row ' || i FROM generate_series(1, 500) i;
CREATE TABLE refused (id int PRIMARY KEY, n int)));
		sql("SELECT pglogical.create_node('provider', '$dsn')");
		sql(q(SELECT pglogical.replication_set_add_table('default', t) FROM unnest('{replicated,refused}'::regclass[]) t));
		sql('CREATE DATABASE sub');
		my $sub_dsn = $node->connstr('sub') =~ s/'/''/gr;
		$node->safe_psql('sub', q(CREATE EXTENSION inplace; CREATE EXTENSION pglogical; CREATE TABLE replicated (id int PRIMARY KEY, n int, body text) USING heap));
		is($node->safe_psql('sub', $not_heap), '', 'its tables are heap tables on the subscriber');
		$node->safe_psql('sub', "SELECT pglogical.create_node('subscriber', '$sub_dsn')");
		$node->safe_psql('sub', "CREATE TABLE refused (id int PRIMARY KEY, n int) USING inplace; SELECT pglogical.create_subscription('s', '$dsn')");
		ok($node->poll_query_until('sub', 'SELECT count(*) = 500 FROM replicated'), 'initial copy');
		sql(q(INSERT INTO replicated VALUES (1000, 1, 'new'); UPDATE replicated SET n = id WHERE id % 5 = 0; DELETE FROM replicated WHERE id % 7 = 0;
BEGIN; UPDATE replicated SET body = 'no'; ROLLBACK; UPDATE replicated SET body = repeat('long', 2000) WHERE id = 11));
		my $sum = q(SELECT count(*), sum(n), md5(string_agg(body, ',' ORDER BY id)) FROM replicated);
		ok($node->poll_query_until('sub', $sum, sql($sum)), 'changes');

		my (undef, undef, $err) = $node->psql('postgres', q(SELECT * FROM pglogical.table_data_filtered(NULL::replicated, 'replicated', ARRAY['default'])));
		like($err, qr/only heap AM is supported/, 'the initial copy of a row filter is refused');

		# an inplace table there: refused, and nothing is changed nor does a process crash
		my $offset = length slurp_file($node->logfile);
		sql('INSERT INTO refused VALUES (1, 1); UPDATE refused SET n = 2; DELETE FROM refused');
		ok($node->wait_for_log(qr/ERROR: .*pglogical cannot apply changes to inplace table "refused"/, $offset), 'a subscriber that is an inplace table is refused');
		is($node->safe_psql('sub', 'SELECT count(*) FROM refused; SELECT count(*) FROM inplace_check($$refused$$)'), "0\n0", 'it is not changed');
		$node->safe_psql('sub', 'ALTER TABLE refused SET ACCESS METHOD heap');
		sql(q(INSERT INTO replicated VALUES (2000, 1, 'after')));
		ok($node->poll_query_until('sub', $sum, sql($sum)), 'goes on when it is a heap');
		$node->safe_psql('sub', q(SELECT pglogical.drop_subscription('s'); SELECT pglogical.drop_node('subscriber'); DROP EXTENSION pglogical));
		sql(q(SELECT pglogical.drop_node('provider')));
		tables_ok($node, 'pglogical', 'replicated', 'refused');
	});

# ---- pg_dirtyread ---------------------------------------------------------------------------------------

with_extension(
	'pg_dirtyread',
	sub {
		sql('CREATE TABLE dirty (id int PRIMARY KEY, n int); INSERT INTO dirty VALUES (1, 1), (2, 2); DELETE FROM dirty WHERE id = 1');
		my (undef, undef, $err) = $node->psql('postgres', q(SELECT * FROM pg_dirtyread('dirty') AS t(id int, n int)));
		like($err, qr/ERROR:  only heap AM is supported/, 'refuses inplace tables');
	});

# ---- more that have tables of their own ---------------------------------------------------------------------

with_extension('pgq', sub {
		sql(q(SELECT pgq.create_queue('q'); SELECT pgq.register_consumer('q', 'c'); SELECT pgq.insert_event('q', 'kind', 'data ' || i) FROM generate_series(1, 50) i));
		sql(q(SELECT pgq.force_tick('q')));
		sql(q(SELECT pgq.ticker('q')));
		my $batch = sql(q(SELECT pgq.next_batch('q', 'c')));
		is(sql("SELECT count(*) FROM pgq.get_batch_events($batch)"), 50, 'a batch');
		is(sql("SELECT pgq.finish_batch($batch)"), 1, 'finished');
		sql(q(SELECT pgq.maint_rotate_tables_step1('q'); SELECT pgq.unregister_consumer('q', 'c'); SELECT pgq.drop_queue('q')));
	});
with_extension('periods', sub {
		sql(q(CREATE TABLE versioned (id int PRIMARY KEY, n int);
SELECT periods.add_system_time_period('versioned'); SELECT periods.add_system_versioning('versioned'); INSERT INTO versioned VALUES (1, 1)));
		sql('UPDATE versioned SET n = 2');
		sql('DELETE FROM versioned');
		is(sql('SELECT count(*), min(n), max(n) FROM versioned_history'), '2|1|2', 'history');
		sql('DROP TABLE versioned CASCADE');
	});
with_extension($_, sub { }) foreach qw(repmgr orafce hll hypopg);

$node->stop;
done_testing();
