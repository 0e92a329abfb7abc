# A row comes to a page that was undo when the apply worker's scan for it began: the worker, which has waited for the
# row's transaction and scans again, finds it there.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('main', conf => "wal_level = logical\nmax_wal_senders = 4\nmax_replication_slots = 4\nautovacuum = off\nwal_retrieve_retry_interval = 100ms\n");
my $row  = q[(SELECT string_agg(md5(i::text), '') FROM generate_series(1, 180) i)];

sub publisher  { return $node->safe_psql('publisher', join ";\n", @_); }
sub subscriber { return $node->safe_psql('postgres',  join ";\n", @_); }

$node->safe_psql('postgres', 'CREATE DATABASE publisher');
publisher('CREATE TABLE t (id int, val text, n int)', 'ALTER TABLE t REPLICA IDENTITY FULL', "INSERT INTO t VALUES (1, $row, 77)",
	'CREATE PUBLICATION p FOR TABLE t');
publisher(q[SELECT pg_create_logical_replication_slot('s', 'pgoutput')]);
subscriber('CREATE TABLE t (id int, val text, n int) USING inplace', 'ALTER TABLE t ALTER val SET STORAGE PLAIN',
	"INSERT INTO t VALUES (1, $row, 77)", 'INSERT INTO t SELECT i, NULL, 0 FROM generate_series(2, 4000) i');
subscriber('UPDATE t SET n = n + 1 WHERE id > 1') for 1 .. 6;
my $connection = $node->connstr('publisher') =~ s/'/''/gr;
$node->safe_psql('postgres', "CREATE SUBSCRIPTION s CONNECTION '$connection' PUBLICATION p WITH (create_slot = false, copy_data = false)");

my %was_undo = map { $_ => 1 } split /\n/,
  subscriber(q[SELECT b FROM generate_series(1, pg_relation_size('t') / 8192 - 1) b, inplace_page('t', b) WHERE kind = 'undo']);
cmp_ok(scalar keys %was_undo, '>', 8, 'there are undo pages');

my $writer = $node->background_psql('postgres');
$writer->query_safe('BEGIN; DELETE FROM t WHERE id = 1');
publisher('UPDATE t SET n = 78 WHERE id = 1');
ok( $node->poll_query_until('postgres',
		q[SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type LIKE 'logical replication%worker' AND wait_event = 'transactionid']),
	'the worker waits');
subscriber('VACUUM (TRUNCATE off) t');
# what fills the pages of rows
$writer->query_safe("INSERT INTO t SELECT 9000 + k, $row, 0 FROM generate_series(1, 3) k");
$writer->query_safe("INSERT INTO t VALUES (1, $row, 77)");
my $block = $writer->query_safe(q[SELECT (ctid::text::point)[0] FROM t WHERE id = 1]);
ok($was_undo{$block}, 'the row comes to what was an undo page') or note("block $block, undo was " . join ' ', sort { $a <=> $b } keys %was_undo);
$writer->query_safe('COMMIT');
$writer->quit;
$node->wait_for_catchup('s');
is(subscriber('SELECT n FROM t WHERE id = 1'), '78', 'and the change is applied to it');
subscriber('ALTER SUBSCRIPTION s DISABLE', 'ALTER SUBSCRIPTION s SET (slot_name = NONE)', 'DROP SUBSCRIPTION s');
tables_ok($node, 'in the end', 't');
log_ok($node, 'whole run', 0);
$node->stop;
done_testing();
