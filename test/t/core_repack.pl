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
CREATE TABLE i_parts2 PARTITION OF i_parts FOR VALUES FROM (500) TO (100000) USING inplace;
CREATE TABLE h_parts (id int PRIMARY KEY, a int, t text);
INSERT INTO i_parts SELECT i, -i, 'part' FROM generate_series(0, 999) i;
DELETE FROM i_parts WHERE id % 2 = 0;
CREATE INDEX i_parts_a ON i_parts (a);
INSERT INTO h_parts TABLE i_parts;
));

# Each pair of tables is changed in the same way.
sub change
{
	my ($table) = @_;
	foreach my $am (qw(h i))
	{
		my $name = "${am}_$table";
		$node->safe_psql(
			'postgres', qq(
UPDATE $name SET a = a + 100000 WHERE id % 5 = 1;
UPDATE $name SET t = t || repeat('grows', 30) WHERE id % 7 = 1;
UPDATE $name SET t = repeat(md5(id::text), 150) WHERE id % 50 = 2;
DELETE FROM $name WHERE id % 11 = 3;
INSERT INTO $name (id, a, t) SELECT max(id) + 1 + i, -i, 'inserted' FROM $name, generate_series(1, 20) i GROUP BY i;
BEGIN; UPDATE $name SET a = 0, t = 'rolled back'; DELETE FROM $name WHERE id % 8 = 0; ROLLBACK;
));
	}
	return;
}

# One test: what a session's snapshot sees of the two tables is the same, by sequential scan and by index.
sub same_for
{
	my ($session, $name, $table) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($one, $other) = ("(SELECT * FROM i_$table WHERE id > -1)", "(SELECT * FROM h_$table WHERE id > -1)");
	my $differ = "SELECT count(*) FROM (($one EXCEPT ALL $other) UNION ALL ($other EXCEPT ALL $one)) d";
	return is($session->query_safe("SET LOCAL enable_seqscan = on; $differ; SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; $differ"), "0\n0", $name);
}

# REPACK of the table changes nothing that a query sees, whether its snapshot is older than what was changed last, or newer.
sub repack_ok
{
	my ($name, $sql, $table) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $hash = "SELECT md5(string_agg(x::text, ',' ORDER BY id)) FROM i_$table x";
	my $old_snapshot = $node->background_psql('postgres');
	my $newer_snapshot = $node->background_psql('postgres');
	my $before = $node->safe_psql('postgres', "SELECT sum(pg_table_size(oid)) FROM pg_class WHERE relname ~ '^i_${table}[0-9]*\$' AND relkind = 'r'");
	my $begin = 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM pg_class LIMIT 0';
	$old_snapshot->query_safe($begin);
	change($table);
	$newer_snapshot->query_safe($begin);
	change($table);
	my $file = $node->safe_psql('postgres', "SELECT array_agg(pg_relation_filenode(oid) ORDER BY oid) FROM pg_class WHERE relname ~ '^i_${table}[0-9]*\$' AND relkind = 'r'");
	$node->safe_psql('postgres', $sql);
	isnt($node->safe_psql('postgres', "SELECT array_agg(pg_relation_filenode(oid) ORDER BY oid) FROM pg_class WHERE relname ~ '^i_${table}[0-9]*\$' AND relkind = 'r'"), $file, "$name: has been done");
	same_as_heap($node, $name, $table);
	same_for($old_snapshot, "$name: for an older snapshot", $table);
	same_for($newer_snapshot, "$name: for one in between", $table);
	my %seen = map { $_ => 1 } $node->safe_psql('postgres', $hash), $old_snapshot->query_safe($hash), $newer_snapshot->query_safe($hash);
	is(scalar(keys %seen), 3, "$name: they see different rows");
	$_->query_safe('COMMIT') foreach $old_snapshot, $newer_snapshot;
	$_->quit foreach $old_snapshot, $newer_snapshot;
	tables_ok($node, $name, $table eq 'one' ? 'i_one' : ('i_parts1', 'i_parts2'));
	return $before;
}
my $before = repack_ok('REPACK', 'REPACK i_one', 'one');
$node->safe_psql('postgres', 'REPACK i_one');
cmp_ok($node->safe_psql('postgres', q(SELECT pg_table_size('i_one'))), '<', $before * 0.8, 'REPACK gives room back');
repack_ok('REPACK (ANALYZE)', 'REPACK (ANALYZE, VERBOSE) i_one', 'one');
is($node->safe_psql('postgres', q(SELECT reltuples = (SELECT count(*) FROM i_one) FROM pg_class WHERE relname = 'i_one')), 't', 'REPACK (ANALYZE) has counted');
cmp_ok($node->safe_psql('postgres', q(SELECT count(*) FROM pg_stats WHERE tablename = 'i_one')), '>', 2, 'and looked at the values');
repack_ok('REPACK USING INDEX', 'REPACK i_one USING INDEX i_one_a_idx', 'one');
my $out_of_order = q(SELECT count(*) FROM (SELECT a, lag(a) OVER (ORDER BY ctid) AS before FROM i_one) o WHERE a < before);
$node->safe_psql('postgres', 'REPACK i_one USING INDEX i_one_a_idx');
is($node->safe_psql('postgres', $out_of_order), '0', 'in the order of the index');
$node->safe_psql('postgres', 'UPDATE i_one SET a = -a; UPDATE h_one SET a = -a');
cmp_ok($node->safe_psql('postgres', $out_of_order), '>', 100, 'which was another before');
repack_ok('VACUUM FULL', 'VACUUM FULL i_one', 'one');
repack_ok('REPACK of partitions', 'REPACK i_parts', 'parts');

repack_ok('REPACK of partitions USING INDEX', 'REPACK i_parts USING INDEX i_parts_a', 'parts');
repack_ok('REPACK (ANALYZE) of one partition, and then the other', 'REPACK (ANALYZE) i_parts1; REPACK (ANALYZE) i_parts2', 'parts');
$node->safe_psql('postgres', 'CREATE EXTENSION pbtree; CREATE INDEX i_one_p ON i_one USING pbtree (a, id)');
repack_ok('REPACK USING INDEX, a pbtree', 'REPACK i_one USING INDEX i_one_p', 'one');
repack_ok('REPACK of all tables that were clustered', 'ALTER TABLE i_one CLUSTER ON i_one_a_idx; REPACK USING INDEX', 'one');

# ---- locks and prepared changes of the table ---------------------------------------------

# In the transaction that does it: what it has changed and locked before goes the way of the transaction.
foreach my $end (qw(ROLLBACK COMMIT))
{
	$node->safe_psql('postgres', join('', map { "BEGIN; UPDATE $_ SET a = a + 7 WHERE id % 3 = 0; SELECT count(*) FROM (SELECT FROM $_ WHERE id % 4 = 0 FOR UPDATE) l;
SAVEPOINT s; DELETE FROM $_ WHERE id % 6 = 0; ROLLBACK TO s; " . (/^i/ ? "REPACK $_; " : '') . "UPDATE $_ SET t = 'after' WHERE id % 9 = 0; $end;" } 'h_one', 'i_one'));
	same_as_heap($node, "changed before and after REPACK, $end", 'one');
	tables_ok($node, "changed before and after REPACK, $end", 'i_one');
}

# Others' are waited for.  Those of ended transactions are gone afterwards.
sub waits
{
	my ($what, $end) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($status, undef, $error) = $node->psql('postgres', "SET lock_timeout = '200ms'; REPACK i_one");
	like($error, qr/ERROR:  canceling statement due to lock timeout/, "REPACK waits for $what");
	my $repack = $node->background_psql('postgres');
	my $pid = $repack->query_safe('SELECT pg_backend_pid()');
	$repack->query_until(qr/begins/, "\\echo begins\nREPACK i_one;\n");
	$node->poll_query_until('postgres', "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $pid") or die;
	$end->();
	is($repack->query_safe('SELECT 1'), '1', "and goes on after its end, $what");
	$repack->quit;
	same_as_heap($node, $what, 'one');
	tables_ok($node, $what, 'i_one');
	is($node->safe_psql('postgres', q(SELECT count(*) FROM inplace_locks('i_one'))), '0', "no lock is left, $what");
	is($node->safe_psql('postgres', q(SELECT count(*) > 1000 FROM (SELECT FROM i_one FOR UPDATE NOWAIT) l)), 't', "all rows can be locked, $what");
	return;
}
my $locker = $node->background_psql('postgres');
$locker->query_safe('BEGIN; SELECT count(*) FROM (SELECT FROM i_one WHERE id % 3 = 0 FOR UPDATE) l');
waits("a session's row locks", sub { $locker->query_safe('ROLLBACK') });
$locker->query_safe('BEGIN; UPDATE i_one SET a = -1 WHERE id % 3 = 0; SELECT count(*) FROM (SELECT FROM i_one WHERE id % 3 = 1 FOR SHARE) l');
waits("a session's changes that are rolled back", sub { $locker->query_safe('ROLLBACK') });
$locker->quit;
$node->safe_psql('postgres', q(BEGIN; SELECT FROM i_one WHERE id % 4 = 1 FOR UPDATE; PREPARE TRANSACTION 'locks'));
waits('prepared row locks', sub { $node->safe_psql('postgres', q(COMMIT PREPARED 'locks')) });
foreach my $end ('ROLLBACK', 'COMMIT')
{
	my @changes = ('UPDATE T SET a = a - 3 WHERE id % 4 = 3', q(UPDATE T SET t = 'prepared and longer than before' WHERE id % 8 = 7), 'DELETE FROM T WHERE id % 16 = 11');
	$node->safe_psql('postgres', join('; ', 'BEGIN', (map { s/\bT\b/i_one/r } @changes), q(PREPARE TRANSACTION 'changes')));
	waits("prepared changes, $end", sub {
		$node->safe_psql('postgres', "$end PREPARED 'changes'");
		$node->safe_psql('postgres', join('; ', map { s/\bT\b/h_one/r } @changes)) if $end eq 'COMMIT';
	});
}

# ---- concurrently, on an inplace table: refused ------------------------------------------

my $table_of = q(SELECT pg_relation_filenode('i_one'));
my $file = $node->safe_psql('postgres', $table_of);
foreach my $sql ('REPACK (CONCURRENTLY) i_one', 'REPACK (ANALYZE, CONCURRENTLY on) i_one USING INDEX i_one_pkey')
{
	my ($status, undef, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql");
	isnt($status, 0, "$sql of an inplace table is an error");
	is($stderr =~ s/^psql:<stdin>:\d+: |^LOCATION:.*\n?//mgr =~ s/\n$//r, 'ERROR:  0A000: cannot execute REPACK (CONCURRENTLY) on relation "i_one"
DETAIL:  This operation is only supported for the "heap" access method.
HINT:  Use REPACK without CONCURRENTLY, which locks the table, or VACUUM.', 'which says why, and what to do instead');
}
is($node->safe_psql('postgres', $table_of), $file, 'the table has its file');
$node->safe_psql('postgres', 'REPACK (CONCURRENTLY off) i_one');
isnt($node->safe_psql('postgres', $table_of), $file, 'and another one without CONCURRENTLY');
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
my $failed = 0;
my ($idle, $unlike) = (0, 0);
my $written = q(SELECT sum(n_tup_upd + n_tup_ins) FROM pg_stat_user_tables WHERE relname ~ $$^i_(same|other)$$);
my $differ = q(SELECT count(*) FROM ((TABLE h_work EXCEPT ALL TABLE h_shadow) UNION ALL (TABLE h_shadow EXCEPT ALL TABLE h_work)) d);
for my $round (1 .. $repacks)
{
	my $writes = $node->safe_psql('postgres', $written);
	my ($rc, $out, $err) = $node->psql('postgres', 'REPACK (CONCURRENTLY) h_work' . ($round % 2 ? '' : ' USING INDEX h_work_pkey'));
	# statistics come late
	$node->poll_query_until('postgres', "SELECT ($written) > $writes", 't') or $idle++;
	$unlike++ if $node->safe_psql('postgres', $differ) != 0;
	$failed++ if $rc != 0;
	diag($err) if $rc != 0;
}
$load->{run}->signal('INT');
finish_pgbench($load);
$node->poll_query_until('postgres', q(SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pgbench')) or die;
is($failed, 0, "$repacks times REPACK (CONCURRENTLY) of a heap table");
is($idle, 0, 'while inplace tables were written, each time');
is($unlike, 0, 'after each the heap and its shadow have the same rows');
is($node->safe_psql('postgres', q(SELECT count(*) FROM (TABLE h_work EXCEPT ALL TABLE h_shadow) d)), '0', 'no row in the heap that is not its own');
is($node->safe_psql('postgres', q(SELECT count(*) FROM (TABLE h_shadow EXCEPT ALL TABLE h_work) d)), '0', 'and none is lost');
tables_ok($node, 'inplace tables of the load', 'i_same', 'i_other');
log_ok($node, 'REPACK', 0);
$node->stop;

done_testing();
