# A subscription of PostgreSQL 19 that retains dead rows (retain_dead_tuples) looks, when an update finds no row, for one that was
# deleted: among all versions of a table, in slots that it takes for heap's.  Of an inplace table it finds none: the conflict is
# reported as a missing row.  The apply worker lives, and goes on.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $publisher = PostgreSQL::Test::Cluster->new('publisher');
$publisher->init(allows_streaming => 'logical');
$publisher->append_conf('postgresql.conf', 'autovacuum = off');
$publisher->start;
if ($publisher->pg_version->major < 19)
{
	plan skip_all => 'subscriptions retain dead rows from PostgreSQL 19 on';
}
my $subscriber = new_cluster(
	'subscriber',
	streaming => 'logical',
	conf      => q(
track_commit_timestamp = on
autovacuum = off
wal_retrieve_retry_interval = 100ms
));

# by primary key, by an index that is no key, and by sequential scan; heap tables beside them say what core does
my @kinds = qw(key full seq);
my @tables = map { my $am = $_; map { "${am}_$_" } @kinds } qw(h i);
foreach my $node ($publisher, $subscriber)
{
	foreach my $table (@tables)
	{
		my ($am, $kind) = $table =~ /^(.)_(.*)/;
		$am = $am eq 'i' && $node == $subscriber ? 'inplace' : 'heap';
		my $key = $kind eq 'key' ? 'PRIMARY KEY' : '';
		$node->safe_psql('postgres', "CREATE TABLE $table (id int $key, n int, t text) USING $am");
		$node->safe_psql('postgres', "ALTER TABLE $table REPLICA IDENTITY FULL") if $kind ne 'key';
		$node->safe_psql('postgres', "CREATE INDEX ON $table (id)") if $kind eq 'full';
	}
}
$publisher->safe_psql('postgres', "INSERT INTO $_ SELECT i, 0, 'text' FROM generate_series(1, 100) i") foreach @tables;
$publisher->safe_psql('postgres', 'CREATE PUBLICATION pub FOR ALL TABLES');
my $connect = $publisher->connstr('postgres') =~ s/'/''/gr;
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION sub CONNECTION '$connect' PUBLICATION pub WITH (retain_dead_tuples = true)");
$subscriber->wait_for_subscription_sync($publisher, 'sub');
$subscriber->poll_query_until('postgres', q(SELECT count(*) = 1 FROM pg_replication_slots WHERE slot_name = 'pg_conflict_detection' AND xmin IS NOT NULL))
  or die 'no slot that retains rows';
is($subscriber->safe_psql('postgres', q(SELECT holder, remedy FROM inplace_horizon WHERE name = 'pg_conflict_detection')),
	'replication slot|let the subscriptions with retain_dead_tuples catch up', 'the view has the slot, and a remedy');
my $worker = q(SELECT pid FROM pg_stat_subscription WHERE subname = 'sub' AND worker_type = 'apply');
my $pid    = $subscriber->safe_psql('postgres', $worker);

# Rows with a past, deleted on the subscriber, are updated on the publisher.
my %found;
foreach my $table (@tables)
{
	my $offset = -s $subscriber->logfile;
	$subscriber->safe_psql('postgres', "UPDATE $table SET n = 1 WHERE id < 50");
	# the deletion is retained for transactions that had begun before it
	my $updating = $publisher->background_psql('postgres');
	$updating->query_safe("BEGIN; UPDATE $table SET t = 'updated' WHERE id = 7");
	$subscriber->safe_psql('postgres', "DELETE FROM $table WHERE id = 7");
	$updating->query_safe('COMMIT');
	$updating->quit;
	$subscriber->wait_for_log(qr/conflict detected on relation "public.$table": conflict=update_\w+/, $offset);
	my ($conflict) = slurp_file($subscriber->logfile, $offset) =~ /"public.$table": conflict=(\w+)/;
	# core sometimes lets go of a row early
	$found{$conflict}++ if $table =~ /^h/;
	is($conflict, 'update_missing', "$table: the conflict of a deleted row") if $table =~ /^i/;
	$publisher->wait_for_catchup('sub');
	is($subscriber->safe_psql('postgres', "SELECT count(*) FROM $table WHERE id = 7"), '0', "$table: it stays deleted");

	# as one that never was
	$offset = -s $subscriber->logfile;
	$publisher->safe_psql('postgres', "SET session_replication_role = replica; INSERT INTO $table VALUES (500, 0, 'new')");
	$publisher->wait_for_catchup('sub');
	$subscriber->safe_psql('postgres', "DELETE FROM $table WHERE id = 500");
	$publisher->safe_psql('postgres', "DELETE FROM $table WHERE id = 500");
	$subscriber->wait_for_log(qr/conflict detected on relation "public.$table": conflict=delete_missing/, $offset);
}

ok($found{update_deleted}, "heaps: conflicts of deleted rows");

# What comes later is applied, by the same worker.
$publisher->safe_psql('postgres', "UPDATE $_ SET n = 5 WHERE id > 60; DELETE FROM $_ WHERE id = 99; INSERT INTO $_ VALUES (600, 6, 'later')") foreach @tables;
$publisher->wait_for_catchup('sub');
is($subscriber->safe_psql('postgres', "SELECT count(*), sum(n) FROM $_"), '99|249', "$_: later changes") foreach @tables;
foreach my $kind (@kinds)
{
	same_as_heap($subscriber, $kind, $kind);
}
is($subscriber->safe_psql('postgres', $worker), $pid, 'the apply worker is the same');

# Other scans of the subscriber see what they always see.
is($subscriber->safe_psql('postgres', "SELECT count(*) FROM inplace_check('i_$_')"), '0', "i_$_ is sound") foreach @kinds;
log_ok($subscriber, 'subscriber', 0);
done_testing();
