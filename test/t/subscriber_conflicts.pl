# With track_commit_timestamp rows keep the xids of those who made them as long as heap's rows do, so that a
# subscription counts the same conflicts.  Each table has a heap twin, which says what is right.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

test_seed();

my $subscriber = new_cluster(
	'subscriber',
	conf => q(
track_commit_timestamp = on
wal_level = logical
max_logical_replication_workers = 8
wal_retrieve_retry_interval = 100ms
));

# ---- xids stay ----------------------------------------------------------------------------

sql_on(\$subscriber);

# Each row's maker, in the order of the transactions: the same for both twins.
sub makers
{
	my ($table) = @_;
	return sql("SELECT string_agg(id || ':' || r, ' ' ORDER BY id) FROM (SELECT id, dense_rank() OVER (ORDER BY pg_xact_commit_timestamp(xmin)) AS r FROM $table) x");
}

for my $am ('heap', 'inplace')
{
	sql("CREATE TABLE t_$am (id int PRIMARY KEY, n int) USING $am");
	sql("INSERT INTO t_$am SELECT i, 0 FROM generate_series(1, 40) i");
	sql("UPDATE t_$am SET n = 1 WHERE id = $_") foreach 1 .. 10;
	sql("INSERT INTO t_$am SELECT i, 0 FROM generate_series(41, 60) i");
	sql("BEGIN; UPDATE t_$am SET n = 9; ROLLBACK");
	sql("SELECT count(*) FROM t_$am; UPDATE t_$am SET n = 2 WHERE id = 11");
}
is(makers('t_inplace'), makers('t_heap'), 'rows name those who made them');
is(sql('SELECT count(DISTINCT xmin::text) FROM t_inplace'), 13, 'each of them');
my $before = sql('SELECT array_agg(xmin ORDER BY id) FROM t_inplace');
is(sql('SELECT array_agg(xmin ORDER BY id) FROM (SELECT id, xmin FROM t_inplace FOR UPDATE) x'), $before, 'a row lock tells them');
sql('VACUUM t_heap');
sql('VACUUM t_inplace');
is(sql('SELECT array_agg(xmin ORDER BY id) FROM t_inplace'), $before, 'VACUUM leaves them');
is(makers('t_inplace'), makers('t_heap'), 'as heap\'s does');
is(sql(q(SELECT max(age(t.xmin)) <= age(relfrozenxid) FROM t_inplace t, pg_class c WHERE relname = 't_inplace' GROUP BY relfrozenxid)),
	't', 'relfrozenxid does not pass them');
sql("UPDATE t_inplace SET n = 3 WHERE id = 60; BEGIN; DELETE FROM t_inplace; ROLLBACK; VACUUM t_inplace");
is(sql('SELECT array_agg(xmin ORDER BY id) FROM t_inplace WHERE id < 60'),
	sql("SELECT trim_array('$before'::xid[], 1)"), 'nor does a rollback take them away');
is(sql(q(SELECT count(*) FROM inplace_check('t_inplace'))), 0, 'the table is sound');
sql('VACUUM FREEZE t_inplace');
is(sql('SELECT array_agg(DISTINCT xmin::text) FROM t_inplace'), '{2}', 'VACUUM FREEZE forgets them');
ok(sql(q(SELECT age(relfrozenxid) < 100 FROM pg_class WHERE relname = 't_inplace')) eq 't', 'and relfrozenxid follows');
$subscriber->adjust_conf('postgresql.conf', 'track_commit_timestamp', 'off');
$subscriber->restart;
sql('UPDATE t_inplace SET n = 4');
sql('VACUUM t_inplace');
is(sql('SELECT array_agg(DISTINCT xmin::text) FROM t_inplace'), '{2}', 'without track_commit_timestamp no xid stays');
$subscriber->adjust_conf('postgresql.conf', 'track_commit_timestamp', 'on');
$subscriber->restart;

# ---- conflicts --------------------------------------------------------------------------------

if ($subscriber->pg_version < 18)
{
	$subscriber->stop;
	done_testing();
	exit;
}
my $publisher = PostgreSQL::Test::Cluster->new('publisher');
$publisher->init(allows_streaming => 'logical');
$publisher->append_conf('postgresql.conf', 'autovacuum = off');
$publisher->start;
my $table = 'CREATE TABLE c (id int PRIMARY KEY, n int, u int UNIQUE)';
$publisher->safe_psql('postgres', "$table; INSERT INTO c SELECT i, 0, i FROM generate_series(1, 100) i; CREATE PUBLICATION pub FOR TABLE c");
my $connect = $publisher->connstr('postgres') =~ s/'/''/gr;
my @ams = qw(inplace heap);

foreach my $am (@ams)
{
	$subscriber->safe_psql('postgres', "CREATE DATABASE d_$am");
	$subscriber->safe_psql("d_$am", ($am eq 'inplace' ? 'CREATE EXTENSION inplace;' : '') . "$table USING $am");
	$subscriber->safe_psql("d_$am", "CREATE SUBSCRIPTION sub_$am CONNECTION '$connect' PUBLICATION pub WITH (disable_on_error = true)");
}
foreach my $am (@ams)
{
	$subscriber->poll_query_until("d_$am", "SELECT count(*) = 0 FROM pg_subscription_rel WHERE srsubstate <> 'r'") or die;
	$publisher->wait_for_catchup("sub_$am");

	# what the subscriber's own clients do, each in a transaction of its own, and what comes by the way
	$subscriber->safe_psql("d_$am", "UPDATE c SET n = 1 WHERE id = $_") foreach 1 .. 20;
	$subscriber->safe_psql("d_$am", 'DELETE FROM c WHERE id BETWEEN 30 AND 49');
	$subscriber->safe_psql("d_$am", 'INSERT INTO c SELECT i, 0, i FROM generate_series(201, 210) i');
	$subscriber->safe_psql("d_$am", 'SELECT count(*) FROM c');
	$subscriber->safe_psql("d_$am", 'VACUUM c');
}

# What both subscriptions have counted, of each kind.
sub counted
{
	my ($am) = @_;
	return $subscriber->safe_psql('postgres', "SELECT confl_insert_exists, confl_update_origin_differs, confl_update_exists, confl_update_missing,
		confl_delete_origin_differs, confl_delete_missing, confl_multiple_unique_conflicts FROM pg_stat_subscription_stats WHERE subname = 'sub_$am'");
}

$publisher->safe_psql('postgres', "UPDATE c SET n = 2 WHERE id = $_") foreach 1 .. 10;
$publisher->safe_psql('postgres', 'DELETE FROM c WHERE id BETWEEN 11 AND 17');
$publisher->safe_psql('postgres', 'UPDATE c SET n = 2 WHERE id BETWEEN 30 AND 34; DELETE FROM c WHERE id BETWEEN 40 AND 42; UPDATE c SET n = 5 WHERE id = 60');
$publisher->wait_for_catchup("sub_$_") foreach @ams;
$subscriber->poll_query_until('postgres', "SELECT confl_delete_missing > 0 FROM pg_stat_subscription_stats WHERE subname = 'sub_$_'") or die foreach @ams;
is(counted('heap'), '0|11|0|5|7|3|0', 'heap: what another origin has made is a conflict');
is(counted('inplace'), counted('heap'), 'inplace counts the same');

# Those that stop apply: the subscription is disabled, and skips the transaction.
foreach my $sql ('INSERT INTO c VALUES (201, 7, 301)', 'UPDATE c SET id = 202 WHERE id = 61', 'INSERT INTO c VALUES (203, 7, 204)')
{
	$publisher->safe_psql('postgres', $sql);
	foreach my $am (@ams)
	{
		$subscriber->poll_query_until('postgres', "SELECT NOT subenabled FROM pg_subscription WHERE subname = 'sub_$am'") or die;
		my ($lsn) = (slurp_file($subscriber->logfile) =~ /.*finished at ([0-9A-F\/]+)/s) or die;
		$subscriber->safe_psql("d_$am", "ALTER SUBSCRIPTION sub_$am SKIP (lsn = '$lsn'); ALTER SUBSCRIPTION sub_$am ENABLE");
		$publisher->wait_for_catchup("sub_$am");
	}
}
is(counted('heap'), '1|12|1|5|7|3|1', 'heap: unique keys are conflicts');
is(counted('inplace'), counted('heap'), 'inplace counts the same');
is($subscriber->safe_psql('d_inplace', 'SELECT * FROM c ORDER BY id'), $subscriber->safe_psql('d_heap', 'SELECT * FROM c ORDER BY id'),
	'and has the same rows');
is($subscriber->safe_psql('d_inplace', q(SELECT count(*) FROM inplace_check('c'))), 0, 'the table is sound');

$subscriber->stop;
$publisher->stop;
done_testing();
