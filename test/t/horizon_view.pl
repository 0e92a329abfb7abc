# View inplace_horizon names each holder of undo, and the remedy that it gives lets the undo go.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster(
	'main',
	streaming => 1,
	conf => q(
autovacuum = off
wal_level = logical
inplace.debug_undo_at_home = off
inplace.log_undo_size = 800kB
max_prepared_transactions = 5
));
sql_on(\$node);
sql(
	'CREATE TABLE t (id int PRIMARY KEY, n int) USING inplace',
	'INSERT INTO t SELECT i, 0 FROM generate_series(1, 20000) i',
	'CREATE ROLE nobody');
$node->safe_psql('postgres', 'CREATE DATABASE other');

# Updates all rows so often that the rings are beyond what VACUUM leaves them; the lines that VACUUM (VERBOSE) writes.
sub load_and_vacuum
{
	sql('UPDATE t SET n = n + 1') for (1 .. 5);
	my ($out, $err) = ('', '');
	$node->psql('postgres', 'VACUUM (VERBOSE) t', stdout => \$out, stderr => \$err);
	return $err;
}

sub pages { return sql("SELECT coalesce(sum(pages - removable_pages), 0) FROM inplace_undo_rings('t')"); }

sub holders { return sql("SELECT string_agg(holder || ' ' || coalesce(name, ''), ', ' ORDER BY xids DESC) FROM inplace_horizon"); }

# The view's only holder is this one, and VACUUM refers to the view; then the remedy is carried out.
sub held_by
{
	my ($what, $columns, $wanted, $logged, $cure) = @_;
	my $from = -s $node->logfile;
	$node->poll_query_until('postgres', 'SELECT count(*) > 0 FROM inplace_horizon') or die;
	my $lines = load_and_vacuum();
	like($lines, qr/undo: \d+ pages, of which \d+ were freed; view inplace_horizon shows what the others are kept for$/m,
		"$what: VACUUM refers to the view");
	cmp_ok(pages(), '>', 100, "$what: undo is held");
	my $log = slurp_file($node->logfile, $from);
	like($log, qr/LOG:  undo of relation "t" has grown to 8\d\d kB\n.*DETAIL:  $logged keeps? undo of transaction \d+ and of later ones\./,
		"$what: the log names it");
	my @times = $log =~ /LOG:  undo of relation/g;
	cmp_ok(scalar(@times), '<', 6, "$what: once for each doubling");
	is(sql("SELECT $columns FROM inplace_horizon"), $wanted, "$what: the view names it, alone");
	is(sql('SELECT count(*) FROM inplace_horizon WHERE xids < 5 OR since > now()'), 0, "$what: and how old it is");
	$cure->(sql('SELECT remedy FROM inplace_horizon'));
	$node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM inplace_horizon') or die "$what: " . holders();
	unlike(load_and_vacuum(), qr/inplace_horizon/, "$what: VACUUM has nothing to say afterwards");
	cmp_ok(pages(), '<', 100, "$what: the undo is gone");
	return;
}

is(sql('SELECT count(*) FROM inplace_horizon'), 0, 'nobody holds anything');

# ---- backends ------------------------------------------------------------------

# an older snapshot of another database, which holds nothing
my $foreign = $node->background_psql('other', on_error_stop => 0);
$foreign->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class');
sql('SELECT pg_current_xact_id()');
my $reader = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $reader->query_safe('SELECT pg_backend_pid()');
$reader->query_safe("SET application_name = 'reader'; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t");
# the view shows 80 characters
my $long = '-' x 71;
$reader->query_safe("SELECT '$long' -- a comment");
held_by(
	'a snapshot',
	'holder, pid, name, database, usename = current_user, state, query, since <= now()',
	"backend|$pid|reader|postgres|t|idle in transaction|SELECT '$long'|t",
	"Process $pid",
	sub { is($_[0], "SELECT pg_terminate_backend($pid)", 'a snapshot: its remedy'); sql($_[0]); });
$reader->{run}->finish if $reader->{run};
$foreign->query_safe('COMMIT');

# a writer, which has an xid and no snapshot
my $writer = $node->background_psql('postgres', on_error_stop => 0);
$pid = $writer->query_safe('SELECT pg_backend_pid()');
$writer->query_safe("SET application_name = 'writer'; BEGIN; CREATE TABLE u (a int)");
held_by(
	'a writer',
	'holder, pid, name, database, since <= now()',
	"backend|$pid|writer|postgres|t",
	"Process $pid",
	sub { sql($_[0]); });
$writer->{run}->finish if $writer->{run};

# a transaction of another database, which has an xid: snapshots here are as old, but VACUUM takes none
$pid = $foreign->query_safe('SELECT pg_backend_pid()');
$foreign->query_safe("SET application_name = 'foreign'; BEGIN; SELECT pg_current_xact_id()");
my $from = -s $node->logfile;
load_and_vacuum();
like(slurp_file($node->logfile, $from), qr/LOG:  undo of relation "t" has grown to 8\d\d kB\n.*DETAIL:  Process $pid keeps/,
	'a writer of another database: the log names it');
is(sql('SELECT holder, pid, name, database, remedy FROM inplace_horizon'), "backend|$pid|foreign|other|SELECT pg_terminate_backend($pid)",
	'a writer of another database: the view names it');
$foreign->query_safe('COMMIT');
load_and_vacuum();
cmp_ok(pages(), '<', 100, 'a writer of another database: the undo is gone');

# ---- tables of one session -----------------------------------------------------

# Others' snapshots do not see them.  The first page that is added to a ring is found while a row's page is locked.
$reader = $node->background_psql('postgres');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
foreach my $own ([ 'temporary', 'CREATE TEMP TABLE', 'BEGIN' ], [ 'new', 'BEGIN; CREATE TABLE', 'SAVEPOINT s' ])
{
	my ($name, $create, $begin) = @$own;
	$from = -s $node->logfile;
	$pid = sql(q(SET inplace.log_undo_size = '8kB'), "$create $name (id int PRIMARY KEY, n int) USING inplace",
		"INSERT INTO $name SELECT i, 0 FROM generate_series(1, 1000) i", $begin, ("UPDATE $name SET n = n + 1") x 5,
		'SELECT pg_backend_pid()', 'COMMIT');
	my @lines = slurp_file($node->logfile, $from) =~ /LOG:  undo of relation "$name" has grown to (\d+ kB\n(?:.*(?:DETAIL|HINT): .*\n)*)/g;
	is(scalar(grep { !/^.*\n.*DETAIL:  Process $pid keeps undo of transaction \d+ and of later ones\.\n$/ } @lines),
		0, "a $name table: the log names its own session") or diag(@lines);
	like($lines[0] // '', qr/^16 kB/, "a $name table: growth that comes with a row's page locked is logged, too");
	like($lines[1] // '', qr/^32 kB/, "a $name table: and only once");
}
$reader->query_safe('COMMIT');
$reader->quit;

# ---- VACUUM --------------------------------------------------------------------

# VACUUM's own snapshot holds nothing
my $vacuum = $node->background_psql('postgres', on_error_stop => 0);
$vacuum->query_until(qr/began/, "SET vacuum_cost_delay = 100; SET vacuum_cost_limit = 1;\n\\echo began\nVACUUM t;\n\\echo ended\n");
$node->poll_query_until('postgres', 'SELECT count(*) > 0 FROM pg_stat_progress_vacuum') or die;
is(sql('SELECT count(*) FROM inplace_horizon'), 0, 'VACUUM: not in the view');
sql('SELECT pg_cancel_backend(pid) FROM pg_stat_progress_vacuum');
$node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_stat_progress_vacuum') or die;
$vacuum->quit;

# nor do those of its parallel workers
sql('CREATE TABLE v (a int, b text, c text) USING inplace',
	q(INSERT INTO v SELECT i, md5(i::text), md5((-i)::text) FROM generate_series(1, 5000) i),
	map({ "CREATE INDEX ON v ($_)" } qw(a b c)), 'DELETE FROM v WHERE a % 2 = 0');
$vacuum = $node->background_psql('postgres', on_error_stop => 0);
$vacuum->query_until(qr/began/, "SET min_parallel_index_scan_size = 0; SET vacuum_cost_delay = 20; SET vacuum_cost_limit = 1;\n"
	  . "\\echo began\nVACUUM (PARALLEL 2) v;\n\\echo ended\n");
my $workers = q(FROM pg_stat_activity WHERE backend_type = 'parallel worker' AND backend_xmin IS NOT NULL);
$node->poll_query_until('postgres', "SELECT count(*) > 0 $workers") or die;
is(sql("SELECT (SELECT count(*) > 0 $workers), (SELECT count(*) FROM inplace_horizon)"), 't|0', 'VACUUM: nor are its workers in the view');
sql('SELECT pg_cancel_backend(pid) FROM pg_stat_progress_vacuum');
$node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_stat_progress_vacuum') or die;
$vacuum->quit;

# ---- prepared transactions -----------------------------------------------------

sql("BEGIN; INSERT INTO t VALUES (0, 0); PREPARE TRANSACTION 'it''s'");
held_by(
	'a prepared transaction',
	'holder, pid, name, database, usename = current_user, state, query',
	"prepared transaction||it's|postgres|t||",
	'A prepared transaction',
	sub { is($_[0], "COMMIT PREPARED 'it''s'", 'a prepared transaction: its remedy'); sql($_[0]); });

# ---- standbys ------------------------------------------------------------------

my $standby = new_standby($node, "hot_standby_feedback = on\nwal_receiver_status_interval = 1\nmax_standby_streaming_delay = -1\n");
$node->wait_for_catchup($standby);
$reader = $standby->background_psql('postgres');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
held_by(
	"a standby's query",
	"holder, pid = (SELECT pid FROM pg_stat_replication), name, database, remedy",
	'standby|t|standby||end the oldest query of the standby',
	'Process ' . sql('SELECT pid FROM pg_stat_replication'),
	sub {
		is(sql('SET ROLE nobody', 'SELECT holder, remedy FROM inplace_horizon'),
			'standby|end the oldest query of the standby', "a standby's query: a role without privileges sees the same");
		$reader->query_safe('COMMIT');
		# a standby reports snapshots of all databases to its primary
		my $other = $standby->background_psql('other');
		$other->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class');
		is($standby->safe_psql('postgres', 'SELECT holder, database FROM inplace_horizon'),
			'backend|other', "a standby's query: the standby's view shows that of another database, too");
		$other->quit;
		$standby->stop;
	});
$reader->quit;

sql("SELECT pg_create_physical_replication_slot('kept')");
$standby->append_conf('postgresql.conf', "primary_slot_name = 'kept'");
$standby->start;
$node->wait_for_catchup($standby);
$reader = $standby->background_psql('postgres');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
$node->poll_query_until('postgres', 'SELECT xmin IS NOT NULL FROM pg_replication_slots') or die;
$reader->quit;
$standby->stop('immediate');
$node->poll_query_until('postgres', 'SELECT NOT active FROM pg_replication_slots') or die;
held_by(
	'a slot that nobody uses',
	'holder, pid, name, database',
	'slot of a standby||kept|',
	'A replication slot',
	sub { is($_[0], "SELECT pg_drop_replication_slot('kept')", 'a slot: its remedy'); sql($_[0]); });

# ---- everybody may look --------------------------------------------------------

$reader = $node->background_psql('postgres');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
is(sql('SET ROLE nobody', 'SELECT holder, database, state, query, remedy FROM inplace_horizon'),
	'unknown|postgres||<insufficient privilege>|', 'a role without privileges sees the holder, and no remedy');
$reader->quit;

# ---- logical slots -------------------------------------------------------------

# None has an xmin, but for one of 19: their catalog_xmin stands for it.
my $view = sql(q(SELECT pg_get_viewdef('pg_replication_slots'))) =~ s/\bl\.xmin\b/coalesce(l.xmin, l.catalog_xmin) AS xmin/r;
sql('SET allow_system_table_mods = on', "CREATE OR REPLACE VIEW pg_catalog.pg_replication_slots AS $view");
my $consumer = $node->background_psql('postgres');
$consumer->query_safe(q(SELECT pg_create_logical_replication_slot('used', 'pgoutput', temporary => true)));
sql(q(SELECT pg_create_logical_replication_slot('forgotten', 'pgoutput')));
# 19 keeps this name for its own
sql(q(SELECT pg_create_logical_replication_slot('pg_conflict_detection', 'pgoutput'))) if $node->pg_version < 19;
is(sql(q(SELECT name, remedy FROM inplace_horizon WHERE holder = 'replication slot' AND name <> 'pg_conflict_detection' ORDER BY name)),
	"forgotten|SELECT pg_drop_replication_slot('forgotten')\nused|let the slot's consumer catch up", 'logical slots: their remedies');
is(sql(q(SELECT remedy FROM inplace_horizon WHERE name = 'pg_conflict_detection')),
	'let the subscriptions with retain_dead_tuples catch up', "logical slots: that of 19's own") if $node->pg_version < 19;
sql(q(SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active));
$consumer->quit;

log_ok($node, 'horizon', 0);
$node->stop;

done_testing();
