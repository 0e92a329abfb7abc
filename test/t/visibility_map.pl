# The visibility map: index-only scans on a primary and on its standby while rows of
# all-visible pages change, and after crashes right behind such changes; and
# pg_visibility, whose checks of tuples are for heap only.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $primary = new_cluster(
	'primary',
	streaming => 1,
	conf      => q(
autovacuum = off
wal_keep_size = '1GB'
# all but hash: core reads a bucket page that it has only pinned for an image of XLOG_HASH_DELETE, and the CRC fails
wal_consistency_checking = 'heap, heap2, btree, gin, gist, spgist, brin, sequence, generic, inplace'
));
$primary->safe_psql(
	'postgres', q(
CREATE TABLE vm (id int PRIMARY KEY, n int, t text) USING inplace;
CREATE FUNCTION refill() RETURNS void LANGUAGE sql AS $$
	TRUNCATE vm;
	INSERT INTO vm SELECT i, 0, repeat('v', i % 50) FROM generate_series(1, 1500) i;
$$;
));
my $standby = new_standby($primary, q(
max_standby_streaming_delay = '10ms'
hot_standby_feedback = off
));

my $by_index = q(
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = on;
SELECT count(id), sum(id) FROM vm WHERE id > 0);
my $by_table = q(
SET enable_seqscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;
SELECT count(id), sum(id) FROM vm WHERE id > 0);

# How many rows an index-only scan has to fetch.
sub fetches
{
	my ($node) = @_;
	my $plan = $node->safe_psql('postgres', $by_index =~ s/SELECT/EXPLAIN (ANALYZE, COSTS OFF) SELECT/r);
	my ($fetches) = $plan =~ /Index Only Scan.*Heap Fetches: (\d+)/s;
	return $fetches // "no index-only scan: $plan";
}

# Two tests: an index-only scan finds what a sequential one does, and the map agrees with
# the pages.
sub map_ok
{
	my ($node, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	$name .= ', ' . $node->name;
	is( $node->safe_psql('postgres', $by_index),
		$node->safe_psql('postgres', $by_table),
		"$name: index-only scan and sequential scan agree");
	tables_ok($node, $name, 'vm');
	return;
}

# VACUUM; a commit that writes takes its last records to the standby, too.
sub vacuum
{
	$primary->safe_psql('postgres', 'VACUUM vm');
	$primary->safe_psql('postgres', q(SELECT pg_logical_emit_message(true, '', '')));
	$primary->wait_for_catchup($standby);
	return;
}

# Make all pages all-visible.
sub refill
{
	$primary->safe_psql('postgres', 'SELECT refill()');
	vacuum();
	foreach ($primary, $standby)
	{
		my $fetches = fetches($_);
		die 'not all pages are all-visible on ' . $_->name . ": $fetches" if $fetches ne '0';
	}
	return;
}

my @changes = (
	[ 'update in place' => 'UPDATE vm SET n = n + 1 WHERE id % 100 = 1' ],
	[ 'longer rows' => q(UPDATE vm SET t = repeat('long', 50) WHERE id % 500 = 2) ],
	[ 'other keys' => 'UPDATE vm SET id = id + 10000 WHERE id < 10000 AND id % 200 = 3' ],
	[ 'delete' => 'DELETE FROM vm WHERE id % 200 = 4' ],
	[ 'insert' => 'INSERT INTO vm SELECT i FROM generate_series(20001, 20100) i ON CONFLICT DO NOTHING' ],
	[ 'row locks' => 'BEGIN; SELECT count(*) FROM (SELECT FROM vm WHERE id % 100 = 5 FOR UPDATE) l; COMMIT' ],
	[ 'update rolled back' => 'BEGIN; UPDATE vm SET n = -1 WHERE id % 100 = 6; ROLLBACK' ],
	[ 'other keys rolled back' => 'BEGIN; UPDATE vm SET id = -id WHERE id % 100 = 7; ROLLBACK' ],
	[ 'delete rolled back' => 'BEGIN; DELETE FROM vm WHERE id % 100 = 8; ROLLBACK' ],
	[ 'insert rolled back' => 'BEGIN; INSERT INTO vm SELECT i FROM generate_series(60001, 60100) i; ROLLBACK' ],
	[ 'savepoint rolled back' =>
		'BEGIN; UPDATE vm SET n = 0 WHERE id % 300 = 9; SAVEPOINT s; DELETE FROM vm WHERE id % 100 = 9; ROLLBACK TO s; COMMIT' ]);

# ---- one change after the other --------------------------------------------------

foreach my $change (@changes)
{
	my ($name, $sql) = @$change;
	refill();

	# an open transaction first: nobody else sees its change
	if ($sql !~ /BEGIN/)
	{
		my $before  = $primary->safe_psql('postgres', $by_index);
		my $session = $primary->background_psql('postgres');
		$session->query_safe("BEGIN; $sql");
		is($primary->safe_psql('postgres', $by_index),
			$before, "$name: not seen before it commits");
		$primary->wait_for_catchup($standby);
		is($standby->safe_psql('postgres', $by_index),
			$before, "$name: not on the standby");
		$session->query_safe('ROLLBACK');
		$session->quit;
		refill();
	}
	$primary->safe_psql('postgres', $sql);
	$primary->wait_for_catchup($standby);
	map_ok($_, $name) foreach $primary, $standby;
	vacuum();
	map_ok($_, "$name, VACUUM") foreach $primary, $standby;
}

# ---- snapshots of a standby, and pages that become all-visible ----------------------

# What is all-visible on the primary is not for an older snapshot of the standby, which
# has to be cancelled or to see what it saw.
foreach my $delay ('10ms', '-1')
{
	$standby->append_conf('postgresql.conf',
		"max_standby_streaming_delay = '$delay'");
	$standby->restart;
	foreach my $change (
		[ 'insert' => 'INSERT INTO vm SELECT max(id) + i FROM vm, generate_series(1, 20) i GROUP BY i' ],
		[ 'other keys' => 'UPDATE vm SET id = id + 100000 WHERE id % 100 = 5' ],
		[ 'delete' => 'DELETE FROM vm WHERE id % 100 = 6' ])
	{
		my ($name, $sql) = @$change;
		$name = "$name, delay $delay";
		refill();
		my $log_offset = -s $standby->logfile;
		my $reader     = $standby->background_psql('postgres');
		$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
		my $before = $reader->query_safe($by_table);
		$primary->safe_psql('postgres', $sql);
		if ($delay eq '-1')
		{
			$primary->safe_psql('postgres', $_)
			  foreach 'VACUUM vm', q(SELECT pg_logical_emit_message(true, '', ''));
			usleep(1_000_000);    # replay gets there, or waits
		}
		else
		{
			vacuum();
		}
		my $answer = eval { $reader->query($by_index) } // '';
		if (slurp_file($standby->logfile, $log_offset) =~
			/due to conflict with recovery/)
		{
			is($delay, '10ms', "$name: the standby's snapshot is cancelled");
		}
		else
		{
			is($answer, $before, "$name: the standby's snapshot sees what it saw");
		}
		eval { $reader->quit };
		$primary->wait_for_catchup($standby);
		map_ok($standby, $name);
	}
}

# ---- crashes ------------------------------------------------------------------------

# The map is on disk before the change, which has to clear it again in redo; then
# the page comes from a page image, or not.
sub crash
{
	my ($name, $prepare, $before_crash) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	refill();
	$primary->safe_psql('postgres', $_) foreach @$prepare;
	my $session = $primary->background_psql('postgres');
	my $expected = $before_crash->($session);
	$primary->stop('immediate');
	eval { $session->quit };
	$primary->start;
	is($primary->safe_psql('postgres', 'SELECT count(*), sum(id), sum(n) FROM vm'),
		$expected, "$name: rows after the crash") if defined $expected;
	map_ok($primary, $name);
	$primary->wait_for_catchup($standby);
	map_ok($standby, $name);
	return;
}

foreach my $images ('on', 'off')
{
	my @some = $images eq 'on' ? @changes[ 0, 2, 8 ] : @changes;
	$primary->append_conf('postgresql.conf', "full_page_writes = $images");
	$primary->restart;
	foreach my $change (@some)
	{
		my ($name, $sql) = @$change;
		crash("$name, crash, page images $images", ['CHECKPOINT'], sub {
			$primary->safe_psql('postgres', $sql);
			return $primary->safe_psql('postgres', 'SELECT count(*), sum(id), sum(n) FROM vm');
		});
	}
	crash("running, crash, page images $images", ['CHECKPOINT'], sub {
		my ($session) = @_;
		my $rows = $primary->safe_psql('postgres', 'SELECT count(*), sum(id), sum(n) FROM vm');
		$session->query_safe('BEGIN; UPDATE vm SET n = -1 WHERE id % 10 = 0; DELETE FROM vm WHERE id % 10 = 1');
		$session->query_safe('UPDATE vm SET id = -id WHERE id % 10 = 2; INSERT INTO vm SELECT i FROM generate_series(70001, 70100) i');
		# what commits takes all that to disk
		$primary->safe_psql('postgres', 'CREATE TABLE flush(); DROP TABLE flush');
		return $rows;
	});
	crash("VACUUM, crash, page images $images", [ 'UPDATE vm SET n = n + 1 WHERE id % 7 = 0', 'CHECKPOINT' ], sub {
		$primary->safe_psql('postgres', 'VACUUM vm');
		$primary->safe_psql('postgres', 'UPDATE vm SET n = n + 1 WHERE id % 1000 = 0');
		return $primary->safe_psql('postgres', 'SELECT count(*), sum(id), sum(n) FROM vm');
	});
}

# ---- pg_visibility ----------------------------------------------------------------

SKIP:
{
	skip 'pg_visibility is not installed', 8
	  if $primary->safe_psql('postgres',
		"SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_visibility'") eq '0';

	$primary->safe_psql(
		'postgres', q(
CREATE SCHEMA elsewhere;
CREATE EXTENSION pg_visibility SCHEMA elsewhere;
CREATE TABLE in_heap (id int PRIMARY KEY) USING heap;
INSERT INTO in_heap SELECT generate_series(1, 1000);
CREATE FUNCTION in_plpgsql(t regclass) RETURNS bigint LANGUAGE plpgsql AS
	'BEGIN RETURN (SELECT count(*) FROM elsewhere.pg_check_visible(t)); END';
));
	$primary->safe_psql('postgres', 'VACUUM (FREEZE) in_heap');
	refill();
	foreach my $function (
		'elsewhere.pg_check_visible', 'elsewhere.pg_check_frozen', 'in_plpgsql')
	{
		my $stderr;
		my $name = $function =~ s/elsewhere\.//r =~ s/in_plpgsql/pg_check_visible/r;
		$primary->psql(
			'postgres',
			"\\set VERBOSITY verbose\nSELECT $function('vm')",
			stderr => \$stderr);
		like($stderr, qr/ERROR:  42809: $name cannot read inplace table "vm".*inplace_check/s,
			"$function refuses an inplace table");
		is( $primary->safe_psql('postgres',
				"SELECT count(*) FROM $function('in_heap') f WHERE f::text <> '0'"),
			'0', "$function reads a heap");
	}
	is( $primary->safe_psql(
			'postgres',
			'SELECT count(*) FROM elsewhere.pg_visibility(\'vm\') WHERE all_visible <> pd_all_visible'
		),
		'0',
		'pg_visibility sees the same in the map and on the pages');
	is( $primary->safe_psql(
			'postgres',
			q(SELECT all_visible > 5 FROM elsewhere.pg_visibility_map_summary('vm'))),
		't',
		'pg_visibility_map_summary counts');
}

log_ok($standby, 'standby', 0);
$standby->stop;

# ---- a map and pages that do not agree ------------------------------------------------

# Sets the page's flags in the file.
sub set_flags
{
	my ($block, $flags) = @_;
	my $path = $primary->data_dir . '/' . $primary->safe_psql('postgres', q(SELECT pg_relation_filepath('vm')));

	$primary->stop;
	open my $file, '+<', $path or die "$path: $!";
	binmode $file;
	seek $file, $block * 8192 + 10, 0;
	print $file pack('S', $flags);
	close $file or die "$path: $!";
	$primary->start;
	return;
}

sub vacuum_warns
{
	my ($pattern, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	foreach my $times (1, 2)
	{
		my (undef, undef, $stderr) = $primary->psql('postgres', 'VACUUM (DISABLE_PAGE_SKIPPING) vm');
		like($stderr, $times == 1 ? $pattern : qr/^$/, "$name: VACUUM warns once, $times");
	}
	map_ok($primary, $name);
	return;
}

$primary->append_conf('postgresql.conf', 'max_prepared_transactions = 2');
$primary->safe_psql('postgres', $_) foreach 'SELECT refill()', 'VACUUM vm';
set_flags(0, 0);
# without the flag, the change does not clear the map's bit
$primary->safe_psql('postgres', 'DELETE FROM vm WHERE id = 1');
vacuum_warns(qr/^[^\n]*WARNING:  page is not marked all-visible but visibility map bit is set in relation "vm" page 0$/,
	'flag lost');

$primary->safe_psql('postgres', q(BEGIN; UPDATE vm SET n = 7 WHERE id = 2; PREPARE TRANSACTION 'changed'));
set_flags(0, 4);
vacuum_warns(qr/^[^\n]*WARNING:  page that is not all-visible is marked as all-visible in relation "vm" page 0$/,
	'flag without reason');
$primary->safe_psql('postgres', q(COMMIT PREPARED 'changed'));
$primary->safe_psql('postgres', 'VACUUM vm');
map_ok($primary, 'in the end');

SKIP:
{
	skip 'pg_visibility is not installed', 1
	  if $primary->safe_psql('postgres', "SELECT count(*) FROM pg_extension WHERE extname = 'pg_visibility'") eq '0';
	my $summary = q(SELECT elsewhere.pg_visibility_map_summary('vm'));
	my $before = $primary->safe_psql('postgres', $summary);
	$primary->safe_psql('postgres', q(SELECT elsewhere.pg_truncate_visibility_map('vm')));
	$primary->safe_psql('postgres', 'VACUUM vm');
	is($primary->safe_psql('postgres', $summary), $before, 'VACUUM makes a map that was lost again');
}

# With wal_consistency_checking a record has an image of the map's page, which others change at the same time.
$primary->safe_psql('postgres', q(
CREATE TABLE many (id int PRIMARY KEY, n int) USING inplace WITH (fillfactor = 20, autovacuum_enabled = off);
INSERT INTO many SELECT i, 0 FROM generate_series(1, 20000) i;
));
my $from = $primary->safe_psql('postgres', 'SELECT pg_current_wal_lsn()');
foreach my $round (1 .. 3)
{
	$primary->safe_psql('postgres', 'VACUUM many');
	$primary->pgbench('--no-vacuum --client=6 --transactions=600', 0, [qr{processed: 3600/3600}], [], "map under load $round",
		{ "100_many$round" => "\\set id random(1, 20000)\nUPDATE many SET n = n + 1 WHERE id = :id;\n" });
}
my $to = $primary->safe_psql('postgres', 'SELECT pg_current_wal_flush_lsn()');
my ($dump, $complaint) = run_command([ 'pg_waldump', '--quiet', '-p', $primary->data_dir . '/pg_wal', '-s', $from, '-e', $to ]);
is($complaint, '', 'all records have the right checksum');

log_ok($primary, 'primary', 0);
$primary->stop;
done_testing();
