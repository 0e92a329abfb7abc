# Logical replication into inplace tables: initial sync, all kinds of changes with all kinds of
# replica identity, streamed and two-phase transactions, conflicts, row locks of the
# subscriber's own clients, triggers, and crashes.  Each publication has two
# subscribers' tables: an inplace one and a heap one, which says what is right.

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

my $publisher = PostgreSQL::Test::Cluster->new('publisher');
$publisher->init(allows_streaming => 'logical');
$publisher->append_conf('postgresql.conf', "max_prepared_transactions = 10\nlogical_decoding_work_mem = 64kB\nautovacuum = off");
$publisher->start;
my $subscriber = new_cluster(
	'subscriber',
	conf => q(
max_prepared_transactions = 10
max_logical_replication_workers = 8
wal_retrieve_retry_interval = 100ms
));
$subscriber->safe_psql('postgres', 'CREATE DATABASE heap');

my @tables = qw(keyed fullid byindex parts types nokey);
my $schema = q(
CREATE TYPE pair AS (a int, b text);
CREATE TABLE keyed (id int PRIMARY KEY, n int, body text);
CREATE TABLE fullid (id int, n int, body text); ALTER TABLE fullid REPLICA IDENTITY FULL;
CREATE TABLE byindex (id int NOT NULL, n int, body text); CREATE UNIQUE INDEX byindex_id ON byindex (id);
ALTER TABLE byindex REPLICA IDENTITY USING INDEX byindex_id;
CREATE TABLE parts (id int PRIMARY KEY, n int, body text) PARTITION BY RANGE (id);
CREATE TABLE part1 PARTITION OF parts FOR VALUES FROM (0) TO (500);
CREATE TABLE part2 PARTITION OF parts FOR VALUES FROM (500) TO (100000);
CREATE TABLE types (id int PRIMARY KEY, n int, body text, a int[], p pair, j jsonb, t timestamptz, m numeric);
CREATE TABLE nokey (id int, n int, body text);
);
$publisher->safe_psql('postgres', $schema);
# The subscriber has a column and indexes of its own, and columns in another order.
my $subscriber_schema = $schema =~ s/keyed \(id int PRIMARY KEY, n int, body text\)/keyed (own text DEFAULT 'own', body text, id int PRIMARY KEY, n int)/r;
$subscriber->safe_psql('postgres', "SET default_table_access_method = inplace; $subscriber_schema; CREATE INDEX keyed_n ON keyed (n); CREATE INDEX ON byindex (n)");
$subscriber->safe_psql('heap', "$subscriber_schema; CREATE INDEX keyed_n ON keyed (n)");

my $fill = join ' ', map {
	"INSERT INTO $_ (id, n, body) SELECT i, 0, repeat('x', CASE WHEN i % 50 = 0 THEN 9000 ELSE i % 100 END) FROM generate_series(1, 800) i;"
} @tables;
$publisher->safe_psql('postgres', "$fill UPDATE types SET a = ARRAY[id], p = ROW(id, 'p'), j = '{\"a\": [1]}', t = '2020-01-01', m = id / 3.0;
ALTER TABLE types ALTER j SET STORAGE EXTERNAL; ALTER TABLE keyed ALTER body SET STORAGE EXTERNAL;
CREATE PUBLICATION pub FOR ALL TABLES WITH (publish_via_partition_root = true)");
my $connect = $publisher->connstr('postgres') =~ s/'/''/gr;
foreach my $db ('postgres', 'heap')
{
	$subscriber->safe_psql($db, "CREATE SUBSCRIPTION sub_$db CONNECTION '$connect' PUBLICATION pub WITH (streaming = true, two_phase = true)");
}

sub wait_synced
{
	foreach my $db ('postgres', 'heap')
	{
		$subscriber->poll_query_until($db, "SELECT count(*) = 0 FROM pg_subscription_rel WHERE srsubstate <> 'r'") or die;
		$publisher->wait_for_catchup("sub_$db");
	}
	return;
}

# One test: publisher, inplace subscriber and heap subscriber have the same rows.
sub all_same
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	wait_synced();
	my $query = join ' UNION ALL ', map {
		my $columns = $_ eq 'types' ? 'id, n, body, a, p, j, t, m' : 'id, n, body';
		"SELECT '$_', count(*), md5(string_agg(x::text, ',' ORDER BY id, x::text)) FROM (SELECT $columns FROM $_) x"
	} @tables;
	my ($want, $heap, $got) = ($publisher->safe_psql('postgres', $query), $subscriber->safe_psql('heap', $query), $subscriber->safe_psql('postgres', $query));
	is($heap, $want, "$name: heap subscriber");
	return is($got, $want, "$name: inplace subscriber");
}
all_same('initial sync');

# ---- changes ----------------------------------------------------------------------------

foreach my $table (@tables)
{
	my $changes = $table eq 'nokey' ? '' : "
UPDATE $table SET n = n + 1 WHERE id % 3 = 0; UPDATE $table SET body = body || 'longer' WHERE id % 4 = 0; UPDATE $table SET body = left(body, 3) WHERE id % 10 = 1;
UPDATE $table SET body = NULL WHERE id % 31 = 0; DELETE FROM $table WHERE id % 7 = 0;
UPDATE $table SET id = id + 5000 WHERE id % 13 = 0;
BEGIN; UPDATE $table SET n = n + 1, body = 'twice' WHERE id < 10; UPDATE $table SET n = n + 1, body = 'twice more' WHERE id < 10; DELETE FROM $table WHERE id = 5; INSERT INTO $table (id) VALUES (5);
SAVEPOINT s; DELETE FROM $table; ROLLBACK TO s; UPDATE $table SET n = 7 WHERE id = 6; COMMIT;
BEGIN; UPDATE $table SET n = -1; ROLLBACK;";
	$publisher->safe_psql('postgres', "$changes INSERT INTO $table (id, n) VALUES (-1, NULL), (-2, 2);") if $table ne 'parts';
	$publisher->safe_psql('postgres', $changes) if $table eq 'parts';
}
$publisher->safe_psql('postgres', q(UPDATE types SET a[2] = 5, p.b = 'changed', j = j || '{"b": 1}' WHERE id % 2 = 0;
INSERT INTO fullid VALUES (1, 1, 'duplicate'), (1, 1, 'duplicate'), (1, NULL, NULL), (1, NULL, NULL);
UPDATE fullid SET body = 'one of them' WHERE ctid = (SELECT min(ctid) FROM fullid WHERE body = 'duplicate');
DELETE FROM fullid WHERE ctid = (SELECT min(ctid) FROM fullid WHERE id = 1 AND n IS NULL)));
all_same('changes');
is($subscriber->safe_psql('postgres', q(SELECT count(*) FROM keyed WHERE own IS DISTINCT FROM 'own')), '0', "a column of the subscriber's own");

# Big transactions are streamed; one of them is rolled back, with savepoints.
$publisher->safe_psql('postgres', q(
BEGIN; UPDATE keyed SET n = n + 100, body = repeat('s', 100); SAVEPOINT a; UPDATE keyed SET n = n + 1000; DELETE FROM byindex WHERE id % 2 = 0; ROLLBACK TO a;
UPDATE fullid SET n = 1 WHERE id < 100; INSERT INTO keyed SELECT i, i, 'streamed' FROM generate_series(20001, 23000) i; COMMIT;
BEGIN; INSERT INTO keyed SELECT i, i, 'rolled back' FROM generate_series(30001, 33000) i; UPDATE keyed SET n = 0; ROLLBACK;
TRUNCATE nokey; INSERT INTO nokey VALUES (1, 1, 'after truncate'); TRUNCATE parts; INSERT INTO parts VALUES (1, 1, 'a'), (600, 6, 'b'); UPDATE parts SET id = 499 + id / 10, n = 99;
));
all_same('big transactions and truncate');
cmp_ok($publisher->safe_psql('postgres', 'SELECT sum(stream_txns) FROM pg_stat_replication_slots'),
	'>', 0, 'a transaction was streamed');
tables_ok($subscriber, 'changes', qw(keyed fullid byindex part1 part2 types nokey));

# ---- two-phase commit, crash -----------------------------------------------------------------

$publisher->safe_psql('postgres', q(BEGIN; UPDATE keyed SET n = n + 5 WHERE id < 300; DELETE FROM keyed WHERE id BETWEEN 310 AND 320;
UPDATE byindex SET body = 'aborted' WHERE id > 100; INSERT INTO nokey VALUES (2); PREPARE TRANSACTION 'aborted'));
wait_synced();
$publisher->safe_psql('postgres', "ROLLBACK PREPARED 'aborted'");
$publisher->safe_psql('postgres', q(BEGIN; UPDATE keyed SET n = n + 5, body = body || '2pc' WHERE id < 300; DELETE FROM byindex WHERE id > 700; PREPARE TRANSACTION 'kept'));
wait_synced();
is($subscriber->safe_psql('postgres', q(SELECT count(*) FROM pg_prepared_xacts)), '2', 'prepared on the subscriber');
crash_and_recover($subscriber, 'kill');
my ($ret, $out, $err) = $subscriber->psql('postgres', 'SELECT FROM keyed WHERE id = 10 FOR UPDATE NOWAIT');
like($err, qr/could not obtain lock/, 'its locks are there after a crash');
$publisher->safe_psql('postgres', "COMMIT PREPARED 'kept'; UPDATE keyed SET n = n + 1 WHERE id < 300");
all_same('two-phase commit over a crash');

# ---- locks and clients of the subscriber ---------------------------------------------------

# Apply waits for a row lock of a client, and then applies to what the client has made of the row; so say triggers.
$subscriber->safe_psql('postgres', q(CREATE TABLE told (what text);
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO public.told VALUES (concat_ws(' ', TG_OP, OLD.own, NEW.own, NEW.n - OLD.n, NEW.body)); RETURN NULL; END $$;
CREATE TRIGGER tell AFTER UPDATE OR DELETE ON keyed FOR EACH ROW EXECUTE FUNCTION tell(); ALTER TABLE keyed ENABLE ALWAYS TRIGGER tell));
my $client = $subscriber->background_psql('postgres');
foreach my $case ([ 'lock', 'SELECT FROM keyed WHERE id = 11 FOR UPDATE', 'COMMIT' ],
	[ 'update', q(UPDATE keyed SET own = 'client' WHERE id = 11), 'COMMIT' ],
	[ 'rolled back update', q(UPDATE keyed SET own = 'nobody', n = -5 WHERE id = 11), 'ROLLBACK' ],
	[ 'rolled back delete', 'DELETE FROM keyed WHERE id = 11', 'ROLLBACK' ],
	[ 'update, then delete', q(UPDATE keyed SET own = 'client' WHERE id = 19), 'COMMIT', 'DELETE FROM keyed WHERE id = 19' ])
{
	my ($name, $sql, $end, $remote) = @$case;
	$client->query_safe("BEGIN; $sql");
	$publisher->safe_psql('postgres', $remote // "UPDATE keyed SET n = n + 1, body = '$name' WHERE id = 11");
	$subscriber->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type LIKE 'logical replication%worker' AND wait_event_type = 'Lock'")
	  or die;
	$client->query_safe($end);
	all_same("apply waits: $name");
}
is($subscriber->safe_psql('postgres', 'SELECT own FROM keyed WHERE id = 11'), 'client', "the client's change has been kept");
is( $subscriber->safe_psql('postgres', q(SELECT string_agg(left(what, 60), '; ' ORDER BY what) FROM told WHERE what NOT LIKE 'UPDATE own client%')),
	'DELETE client; UPDATE client client 1 rolled back delete; UPDATE client client 1 rolled back update; UPDATE client client 1 update; UPDATE own own 1 lock',
	'what triggers were told');
$subscriber->safe_psql('postgres', 'DROP TRIGGER tell ON keyed');

# Without a key, a row that has become another one while apply waits is not the row that apply looks for.
$publisher->safe_psql('postgres', q(INSERT INTO fullid VALUES (50001, 0, 'full'), (50002, 0, 'full'), (50003, 0, 'full')));
wait_synced();
foreach my $case ([ 'DELETE FROM fullid WHERE id = 50001', 'UPDATE fullid SET n = 777 WHERE id = 50001', 'COMMIT' ],
	[ 'UPDATE fullid SET n = 3 WHERE id = 50002', q(UPDATE fullid SET id = 50042, body = 'another' WHERE id = 50002), 'COMMIT' ],
	[ 'UPDATE fullid SET n = 3 WHERE id = 50003', 'UPDATE fullid SET n = 4 WHERE id = 50003', 'ROLLBACK' ])
{
	my ($remote, $local, $end) = @$case;
	my ($id) = $remote =~ /id = (\d+)/;
	$client->query_safe("BEGIN; SELECT FROM fullid WHERE id = $id FOR UPDATE");
	$publisher->safe_psql('postgres', $remote);
	$subscriber->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type LIKE 'logical replication%worker' AND wait_event_type = 'Lock'")
	  or die;
	$client->query_safe("$local; $end");
	wait_synced();
}
is($subscriber->safe_psql('postgres', "SELECT string_agg(f::text, ' ' ORDER BY id) FROM fullid f WHERE id BETWEEN 50001 AND 50050"),
	'(50001,777,full) (50003,3,full) (50042,0,another)', "rows that have become others are left alone");
$subscriber->safe_psql('postgres', 'DELETE FROM fullid WHERE id IN (50001, 50042)');
$publisher->safe_psql('postgres', 'DELETE FROM fullid WHERE id = 50002');
all_same('rows that have become others');

# A row that is not there is skipped, also when it is deleted while apply waits for it.
$client->query_safe('BEGIN; DELETE FROM keyed WHERE id = 12');
$publisher->safe_psql('postgres', 'UPDATE keyed SET n = n + 1 WHERE id IN (12, 16); DELETE FROM keyed WHERE id = 17');
$subscriber->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type LIKE 'logical replication%worker' AND wait_event_type = 'Lock'") or die;
$client->query_safe('COMMIT');
$client->quit;
wait_synced();
is($subscriber->safe_psql('postgres', 'SELECT string_agg(id::text, NULL) FROM keyed WHERE id IN (12, 16, 17)'), '16', 'missing rows are skipped');
$publisher->safe_psql('postgres', 'DELETE FROM keyed WHERE id = 12');
all_same('missing rows');

# A conflict stops apply until somebody removes the row; nothing is applied by half.
$subscriber->safe_psql('postgres', q(INSERT INTO keyed VALUES ('conflict', NULL, 90001, 0)));
my $offset = -s $subscriber->logfile;
$publisher->safe_psql('postgres', q(BEGIN; UPDATE keyed SET n = 4242 WHERE id = 15; INSERT INTO keyed VALUES (90001, 1, 'conflict'); COMMIT));
$subscriber->wait_for_log(qr/duplicate key value violates unique constraint "keyed_pkey"|conflict=insert_exists/, $offset);
isnt($subscriber->safe_psql('postgres', 'SELECT n FROM keyed WHERE id = 15'), '4242', 'conflict: nothing is applied');
$subscriber->safe_psql('postgres', 'DELETE FROM keyed WHERE id = 90001');
all_same('after a conflict');

# Triggers of the subscriber.
foreach my $db ('postgres', 'heap')
{
	$subscriber->safe_psql($db, q(
CREATE TABLE seen (what text, old text, new text);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO public.seen VALUES (TG_WHEN || TG_OP, OLD.n, NEW.n);
	IF TG_WHEN = 'BEFORE' AND TG_OP <> 'DELETE' THEN NEW.own := 'trigger'; END IF; RETURN coalesce(NEW, OLD); END$$;
CREATE TRIGGER a AFTER INSERT OR UPDATE OR DELETE ON keyed FOR EACH ROW EXECUTE FUNCTION see();
CREATE TRIGGER b BEFORE INSERT OR UPDATE OR DELETE ON keyed FOR EACH ROW EXECUTE FUNCTION see();
ALTER TABLE keyed ENABLE ALWAYS TRIGGER a, ENABLE ALWAYS TRIGGER b));
}
$publisher->safe_psql('postgres', q(UPDATE keyed SET n = n + 1 WHERE id < 40; BEGIN; UPDATE keyed SET n = 1 WHERE id = 15; UPDATE keyed SET n = 2 WHERE id = 15; COMMIT; DELETE FROM keyed WHERE id < 20; INSERT INTO keyed VALUES (1, 1, 'new')));
all_same('triggers');
my $seen = q(SELECT what, old, new, count(*) FROM seen GROUP BY 1, 2, 3 ORDER BY 1, 2, 3);
is($subscriber->safe_psql('postgres', $seen), $subscriber->safe_psql('heap', $seen), 'triggers have seen the same');
cmp_ok($subscriber->safe_psql('postgres', 'SELECT count(*) FROM seen'), '>', 40, 'triggers were called');
is($subscriber->safe_psql('postgres', q(SELECT own FROM keyed WHERE id = 25)), 'trigger', 'a trigger has changed the row');

# ---- load, with crashes of the subscriber and kills of the worker ---------------------------------

my $load = start_pgbench(
	$publisher,
	clients => 3,
	seconds => 6,
	scripts => [
		[ "\\set id random(21, 800)\nUPDATE keyed SET n = n + 1, body = repeat('l', :id % 50) WHERE id = :id;", 4 ],
		[ "\\set id random(21, 800)\nBEGIN;\nUPDATE fullid SET n = :id WHERE id = :id;\nUPDATE byindex SET n = n + 1 WHERE id = :id;\nCOMMIT;", 1 ],
		[ "\\set id random(21, 800)\nBEGIN;\nDELETE FROM types WHERE id = :id;\nINSERT INTO types (id, n) VALUES (:id, 1) ON CONFLICT DO NOTHING;\nCOMMIT;", 2 ] ]);
foreach my $round (1 .. 3)
{
	usleep(1_000_000);
	$subscriber->safe_psql('postgres', q(SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type LIKE 'logical replication%worker' AND datname = 'postgres'));
	usleep(500_000);
	crash_and_recover($subscriber, 'kill') if $round == 2;
}
my $result = finish_pgbench($load);
is($result->{errors}, '', 'load: no errors');
cmp_ok($result->{transactions}, '>', 100, 'load: clients were busy');
all_same('load');
tables_ok($subscriber, 'in the end', qw(keyed fullid byindex part1 part2 types nokey));

log_ok($subscriber, 'whole run', 0);
$subscriber->safe_psql($_, "DROP SUBSCRIPTION sub_$_") foreach 'postgres', 'heap';
$subscriber->stop;
$publisher->stop;
done_testing();
