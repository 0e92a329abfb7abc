# REPACK of PostgreSQL 19: plain on inplace tables; (CONCURRENTLY) is refused for these.  When it runs on a heap table while clients
# change inplace tables of the same database, its decoding meets their WAL, too: the heap must keep its own rows only.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

test_seed();

my $node = new_cluster(
	'main',
	conf => q(
shared_preload_libraries = 'inplace, pbtree'
autovacuum = off
fsync = off
synchronous_commit = off
max_wal_size = 1GB
max_prepared_transactions = 10
));
if ($node->pg_version->major < 19)
{
	plan skip_all => 'REPACK came with PostgreSQL 19';
}
is($node->safe_psql('postgres', 'SHOW wal_level'), 'replica', 'logical decoding is not prepared for');

# ---- plain -------------------------------------------------------------------------------

$node->safe_psql(
	'postgres', q(
CREATE FUNCTION fill(name text, am text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE TABLE %s (id int PRIMARY KEY, a int, t text, gone int) USING %s', name, am);
	EXECUTE format('INSERT INTO %s SELECT i, i * 7919 %% 20011, repeat(''t'', i %% 100), i FROM generate_series(1, 20000) i', name);
	EXECUTE format('ALTER TABLE %s DROP gone, ADD more int DEFAULT 5', name);
	EXECUTE format('UPDATE %s SET t = CASE WHEN id %% 100 = 0 THEN repeat(md5(id::text), 200) ELSE t || ''x'' END WHERE id %% 3 = 0', name);
	EXECUTE format('CREATE INDEX ON %s (a)', name);
	EXECUTE format('DELETE FROM %s WHERE id %% 4 < 3', name);
	EXECUTE format('ALTER TABLE %s ALTER t SET STORAGE EXTERNAL', name);
END $$;
SELECT fill('h_one', 'heap'), fill('i_one', 'inplace');
CREATE TABLE i_parts (id int PRIMARY KEY, a int, t text) PARTITION BY RANGE (id);
CREATE TABLE i_parts1 PARTITION OF i_parts FOR VALUES FROM (0) TO (500) USING inplace;
CREATE TABLE i_parts2 PARTITION OF i_parts FOR VALUES FROM (500) TO (1000) USING inplace;
CREATE TABLE h_parts (id int PRIMARY KEY, a int, t text);
INSERT INTO i_parts SELECT i, -i, 'part' FROM generate_series(0, 999) i;
DELETE FROM i_parts WHERE id % 2 = 0;
CREATE INDEX i_parts_a ON i_parts (a);
INSERT INTO h_parts TABLE i_parts;
));

# REPACK of the table makes it smaller, and changes nothing that a query sees.
sub repack_ok
{
	my ($name, $sql, $table) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $before = $node->safe_psql('postgres', "SELECT pg_table_size('i_$table')");
	my $old_snapshot = $node->background_psql('postgres');
	$old_snapshot->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM h_parts LIMIT 1');
	$node->safe_psql('postgres', $sql);
	same_as_heap($node, $name, $table);
	is($old_snapshot->query_safe("SELECT count(*) FROM (TABLE i_$table EXCEPT ALL TABLE h_$table) d"), '0', "$name: for an older snapshot");
	$old_snapshot->quit;
	tables_ok($node, $name, "i_$table") if $table eq 'one';
	return $before;
}
my $before = repack_ok('REPACK', 'REPACK i_one', 'one');
cmp_ok($node->safe_psql('postgres', q(SELECT pg_table_size('i_one'))), '<', $before * 0.7, 'REPACK gives room back');
repack_ok('REPACK (ANALYZE)', 'REPACK (ANALYZE, VERBOSE) i_one', 'one');
is($node->safe_psql('postgres', q(SELECT reltuples FROM pg_class WHERE relname = 'i_one')), '5000', 'REPACK (ANALYZE) has counted');
repack_ok('REPACK USING INDEX', 'REPACK i_one USING INDEX i_one_a_idx', 'one');
is($node->safe_psql('postgres', q(SELECT count(*) FROM (SELECT a, lag(a) OVER (ORDER BY ctid) AS before FROM i_one) o WHERE a < before)),
	'0', 'in the order of the index');
$node->safe_psql('postgres', 'UPDATE i_one SET a = -a; UPDATE h_one SET a = -a');
repack_ok('VACUUM FULL', 'VACUUM FULL i_one', 'one');
repack_ok('REPACK of partitions', 'REPACK i_parts', 'parts');
repack_ok('REPACK of partitions USING INDEX', 'REPACK i_parts USING INDEX i_parts_a', 'parts');
$node->safe_psql('postgres', 'CREATE EXTENSION pbtree; CREATE INDEX i_one_p ON i_one USING pbtree (a, id)');
repack_ok('REPACK USING INDEX, a pbtree', 'REPACK i_one USING INDEX i_one_p', 'one');
repack_ok('REPACK of all tables that were clustered', 'ALTER TABLE i_one CLUSTER ON i_one_a_idx; REPACK USING INDEX', 'one');

# what is left aborted, locked or prepared comes along
$node->safe_psql(
	'postgres', q(
BEGIN; UPDATE i_one SET a = 0, t = 'rolled back'; DELETE FROM i_one WHERE id % 8 = 0; ROLLBACK;
BEGIN; SELECT FROM i_parts WHERE id = 1 FOR UPDATE; PREPARE TRANSACTION 'locks';
));
repack_ok('REPACK after a rollback', 'REPACK i_one', 'one');
$node->safe_psql('postgres', q(ROLLBACK PREPARED 'locks'));

# ---- concurrently, on an inplace table: refused ------------------------------------------

my ($status, $stdout, $stderr) = $node->psql('postgres', 'REPACK (CONCURRENTLY) i_one');
isnt($status, 0, 'REPACK (CONCURRENTLY) of an inplace table is an error');
like($stderr, qr/ERROR: /, 'and says why');
note($stderr);
same_as_heap($node, 'after the refusal', 'one');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_replication_slots'), '0', 'and leaves no slot');

# ---- concurrently, on a heap table beside inplace load -----------------------------------

# i_same has the columns of the heap table, i_other has others; the shadow gets each of the heap's changes in the same transaction
$node->safe_psql(
	'postgres', q(
CREATE TABLE h_work (id int PRIMARY KEY, n int, t text);
CREATE TABLE h_shadow (LIKE h_work INCLUDING ALL);
INSERT INTO h_work SELECT i, 0, repeat('t', i % 50) FROM generate_series(1, 3000) i;
UPDATE h_work SET t = repeat(md5(id::text), 300) WHERE id % 100 = 0;
INSERT INTO h_shadow TABLE h_work;
CREATE TABLE i_same (id int PRIMARY KEY, n int, t text) USING inplace;
CREATE TABLE h_same (LIKE i_same INCLUDING ALL);
INSERT INTO i_same TABLE h_work; INSERT INTO h_same TABLE h_work;
CREATE TABLE i_other (k text PRIMARY KEY, x point, id bigint) USING inplace;
INSERT INTO i_other SELECT md5(i::text), point(i, i), i FROM generate_series(1, 2000) i;
CREATE UNIQUE INDEX ON i_other (id);
CREATE SEQUENCE new_id START 100000;
));
my $load = start_pgbench(
	$node,
	clients => 8,
	args    => [ '--rate' => 1500 ],
	scripts => [
		[ q(\set id random(1, 3000)
UPDATE i_same SET n = n + 1 WHERE id = :id;
), 4 ],
		[ q(\set id random(1, 3000)
BEGIN;
INSERT INTO i_same VALUES (nextval('new_id'), 1, 'inserted');
UPDATE i_same SET t = t || 'x' WHERE id = :id;
INSERT INTO i_same VALUES (:id, 0, 'again') ON CONFLICT (id) DO UPDATE SET n = -i_same.n;
SAVEPOINT s;
DELETE FROM i_same WHERE id = :id;
ROLLBACK TO s;
COMMIT;
), 2 ],
		[ q(\set id random(1, 2000)
DELETE FROM i_same WHERE id = (SELECT max(id) FROM i_same);
UPDATE i_other SET x = point(:id, 0), k = md5(random()::text) WHERE id = :id;
UPDATE i_same SET t = repeat('T', 5000) WHERE id = :id;
), 2 ],
		# one statement each: it has locked both tables before it waits for a row, of which the shadow's comes first
		[ q(\set id random(1, 3000)
\set d random(1, 1000)
WITH s AS (UPDATE h_shadow SET n = n + :d WHERE id = :id RETURNING id) UPDATE h_work SET n = n + :d FROM s WHERE h_work.id = s.id;
), 2 ],
		[ q(\set id random(3001, 4000)
\set d random(1, 1000)
WITH s AS (INSERT INTO h_shadow VALUES (:id, :d, repeat('new', :d * 3)) ON CONFLICT (id) DO NOTHING RETURNING *) INSERT INTO h_work TABLE s;
), 1 ],
		[ q(\set id random(1, 4000)
WITH s AS (DELETE FROM h_shadow WHERE id = :id RETURNING id) DELETE FROM h_work USING s WHERE h_work.id = s.id;
), 1 ],
	]);
my $repacks = rounds(10) == 10 ? 5 : 20;
my $before_rows = $node->safe_psql('postgres', 'SELECT sum(n_tup_upd + n_tup_ins) FROM pg_stat_user_tables WHERE relname ~ $$^i_$$');
my $failed = 0;
for (1 .. $repacks)
{
	my ($rc, $out, $err) = $node->psql('postgres', 'REPACK (CONCURRENTLY) h_work');
	$failed++ if $rc != 0;
	diag($err) if $rc != 0;
}
$load->{run}->signal('INT');
finish_pgbench($load);
$node->poll_query_until('postgres', q(SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pgbench')) or die;
is($failed, 0, "$repacks times REPACK (CONCURRENTLY) of a heap table");
cmp_ok($node->safe_psql('postgres', 'SELECT sum(n_tup_upd + n_tup_ins) FROM pg_stat_user_tables WHERE relname ~ $$^i_$$'), '>', $before_rows + 100,
	'while inplace tables were written');
is($node->safe_psql('postgres', q(SELECT count(*) FROM (TABLE h_work EXCEPT ALL TABLE h_shadow) d)), '0', 'no row in the heap that is not its own');
is($node->safe_psql('postgres', q(SELECT count(*) FROM (TABLE h_shadow EXCEPT ALL TABLE h_work) d)), '0', 'and none is lost');
tables_ok($node, 'inplace tables of the load', 'i_same', 'i_other');
log_ok($node, 'REPACK', 0);
$node->stop;

done_testing();
