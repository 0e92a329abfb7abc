# Tables live through the wraparound of transaction ids and of multixact ids
# without being rewritten.  pg_resetwal moves the counters by more than a billion
# at a time, several times round; each era leaves rows that were inserted, changed,
# rolled back, deleted and locked in it, and a twin of each table, in heap, says
# what there must be later.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

test_seed();

# VACUUM comes when this test calls it.
my $node = new_cluster(
	'main', conf => qq(
autovacuum = off
autovacuum_freeze_max_age = 2000000000
autovacuum_multixact_freeze_max_age = 2000000000
max_prepared_transactions = 10
max_wal_size = 1GB
));

sql_on(\$node);

# ---- moving the counters --------------------------------------------------------------

my $XIDS  = 2**32;
my %pages = (
	# ids in a segment file, of 32 pages
	'pg_xact'              => 32 * 8192 * 4,
	'pg_multixact/offsets' => 32 * 8192 / 4,
	'pg_multixact/members' => 32 * 1636);
# an offset has 8 bytes from 19 on and does not wrap around, and a file of members has a longer name
my $long_offsets = $node->pg_version->major >= 19;
$pages{'pg_multixact/offsets'} /= 2 if $long_offsets;

# The server reads the page that has the next id: it must be there.
sub make_segment
{
	my ($folder, $id) = @_;
	my $digits = $long_offsets && $folder =~ /members/ ? 15 : 4;
	my $file = sprintf '%s/%s/%0*X', $node->data_dir, $folder, $digits, $id / $pages{$folder};
	return if -e $file;
	open my $out, '>', $file or die "$file: $!";
	binmode $out;
	print $out "\0" x (32 * 8192);
	close $out or die "$file: $!";
	return;
}

sub control
{
	my ($what) = @_;
	my ($stdout) = run_command([ 'pg_controldata', $node->data_dir ]);
	my ($value) = $stdout =~ /^Latest checkpoint's $what:\s*(\S+)/m;
	die "pg_controldata has no $what" unless defined $value;
	return $value;
}

# To these ids; what is missing stays as it is.  xid has its epoch in it.
sub jump
{
	my (%to) = @_;
	$node->stop;
	my @options;
	if (defined $to{xid})
	{
		make_segment('pg_xact', $to{xid} % $XIDS);
		push @options, '-e', int($to{xid} / $XIDS), '-x', $to{xid} % $XIDS;
	}
	if (defined $to{multi})
	{
		# there is no multixact 0
		$to{multi} = $to{multi} % $XIDS || 1;
		make_segment('pg_multixact/offsets', $to{multi});
		push @options, '-m', "$to{multi}," . control('oldestMultiXid');
	}
	if (defined $to{member})
	{
		make_segment('pg_multixact/members', $to{member});
		push @options, '-O', $to{member};
	}
	command_ok([ 'pg_resetwal', @options, $node->data_dir ], "pg_resetwal @options");
	$node->start;
	return;
}

# ---- tables, and what an era does to them ---------------------------------------------

# "still" is loaded once and never touched; VACUUM leaves "late" alone for one jump;
# "t" is changed in each era; "hot" has few rows that are changed all the time.
foreach my $am ('inplace', 'heap')
{
	my $p = substr($am, 0, 1) . '_';
	sql("CREATE TABLE ${p}still (id int PRIMARY KEY, v int, note text) USING $am",
		"INSERT INTO ${p}still SELECT i, i, 'note ' || i FROM generate_series(1, 3000) i",
		"UPDATE ${p}still SET v = v + 1 WHERE id % 3 = 0",
		"BEGIN; UPDATE ${p}still SET v = 0, note = 'aborted' WHERE id % 4 = 0; DELETE FROM ${p}still WHERE id % 5 = 0; ROLLBACK",
		"DELETE FROM ${p}still WHERE id % 7 = 0",
		"CREATE TABLE ${p}t (id int PRIMARY KEY, v int, era int, note text) USING $am",
		"CREATE INDEX ON ${p}t (era)",
		"CREATE TABLE ${p}late (LIKE ${p}t INCLUDING ALL) USING $am",
		"CREATE TABLE ${p}hot (id int PRIMARY KEY, v int, note text) USING $am",
		"INSERT INTO ${p}hot SELECT i, 0, repeat('h', 90) FROM generate_series(1, 200) i");
}
my @tables = qw(still t late hot);

sub check
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	same_as_heap($node, $name, @tables);
	tables_ok($node, $name, map { "i_$_" } @tables);
	return;
}

# Each of these leaves its rows in the state that it names.
sub live
{
	my ($era) = @_;
	foreach my $p ('i_', 'h_')
	{
		foreach my $table ("${p}t", "${p}late")
		{
			my $base = $era * 1000;
			sql("INSERT INTO $table SELECT i, 0, $era, 'new ' || i FROM generate_series($base, $base + 999) i",
				"UPDATE $table SET v = v + 1 WHERE id % 11 = $era % 11",
				"UPDATE $table SET v = v + 1, note = left(repeat('longer ', 20), id % 140) WHERE id % 13 = $era % 13",
				"UPDATE $table SET era = era WHERE id % 17 = $era % 17",
				"UPDATE $table SET era = $era WHERE id % 19 = $era % 19",
				"DELETE FROM $table WHERE id % 23 = $era % 23",
				# rolled back, some of it in savepoints, over all that is older
				"BEGIN; UPDATE $table SET v = -1 WHERE id % 5 = $era % 5; DELETE FROM $table WHERE id % 6 = $era % 6;
				 INSERT INTO $table SELECT i, -1, -1, 'aborted' FROM generate_series(10000000, 10000300) i; ROLLBACK",
				"BEGIN; SAVEPOINT a; UPDATE $table SET v = -2, note = 'aborted' WHERE id % 7 = $era % 7; ROLLBACK TO a;
				 SAVEPOINT b; UPDATE $table SET v = v + 5 WHERE id % 29 = $era % 29; RELEASE b; COMMIT",
				# row locks that have ended
				"SELECT count(*) FROM (SELECT FROM $table WHERE id % 8 = $era % 8 FOR UPDATE) l",
				"BEGIN; SELECT count(*) FROM (SELECT FROM $table WHERE id % 9 = $era % 9 FOR SHARE) l; ROLLBACK");
		}
		sql(map { "UPDATE ${p}hot SET v = v + 1, note = left(repeat('$_', 120), (id * 7 + $_) % 110)" } 1 .. 5);
	}
	share_rows($_) foreach ('i_t', 'i_late', 'h_t');
	return;
}

# Multixacts: two sessions lock the same rows, and one of them then changes some.
my @sessions;
sub share_rows
{
	my ($table) = @_;
	@sessions = map { $node->background_psql('postgres', on_error_stop => 1) } 1 .. 2;
	$_->query_safe("BEGIN; SELECT count(*) FROM (SELECT FROM $table WHERE id % 31 = 0 FOR KEY SHARE) l")
	  foreach @sessions;
	$sessions[1]->query_safe("UPDATE $table SET v = v + 0 WHERE id % 62 = 0");
	$sessions[0]->query_safe('COMMIT');
	$sessions[1]->query_safe(rand() < 0.5 ? 'COMMIT' : 'ROLLBACK');
	$_->quit foreach @sessions;
	return;
}

# Of all databases, so that the counters may go on.
sub vacuum_all
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	sql('ALTER DATABASE template0 ALLOW_CONNECTIONS true');
	$node->command_ok([ 'vacuumdb', '--all', '--freeze', '--quiet' ], "$name: VACUUM of all databases");
	sql('ALTER DATABASE template0 ALLOW_CONNECTIONS false');
	is(sql('SELECT count(*) FROM pg_database WHERE age(datfrozenxid) > 1000 OR mxid_age(datminmxid) > 1000'),
		'0', "$name: all databases are young");
	return;
}

# ---- round and round --------------------------------------------------------------------

# Where to go in each epoch: [xid, multixact, member, whether VACUUM comes after it].
# Without VACUUM two jumps together must stay below 2^31.
my @stops = (
	[ 900_000_000,          700_000_000,   1_000_000_000, 0 ],
	[ 1_800_000_000,        1_400_000_000, 2_000_000_000, 1 ],
	[ 3_500_000_000,        2_800_000_000, 3_000_000_000, 1 ],
	# just before the wrap, which then comes while the server runs
	[ $XIDS - 400,          $XIDS - 8,     $XIDS - 200,   1 ]);
my $epochs = rounds(0) > 10 ? 4 : 2;
my $era    = 1;

live($era++);
check('at first');
vacuum_all('at first');

foreach my $epoch (0 .. $epochs - 1)
{
	foreach my $stop (@stops)
	{
		my ($xid, $multi, $member, $vacuum) = @$stop;
		my $name = "epoch $epoch, xid $xid";
		jump(xid => $epoch * $XIDS + $xid, multi => $multi, member => $member + ($long_offsets ? $epoch * $XIDS : 0));
		is(sql('SELECT txid_current() / 4294967296'), $epoch, "$name: epoch");
		check("$name: after the jump");

		# a snapshot from before the wrap, if it comes now
		my $reader = $node->background_psql('postgres', on_error_stop => 1);
		my $query = 'SELECT (SELECT sum(v) FROM i_hot), (SELECT count(*) FROM i_t), (SELECT sum(v) FROM i_late)';
		$reader->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; $query");
		my $seen = $reader->query_safe($query);
		live($era++);
		if ($xid > $XIDS - 1000)
		{
			share_rows('i_hot') foreach (1 .. 15);
			sql(map { "UPDATE ${_}hot SET v = v + 1 WHERE id <= 100" } ('i_', 'h_')) foreach (1 .. 200);
			is(sql('SELECT txid_current() / 4294967296'), $epoch + 1, "$name: wraps while the server runs");
		}
		is($reader->query_safe($query), $seen, "$name: a snapshot sees its rows");
		sql('VACUUM i_hot', 'VACUUM i_t');
		is($reader->query_safe($query), $seen, "$name: also after VACUUM");
		$reader->query_safe('COMMIT');
		$reader->quit;
		check("$name: changed");

		if (rand() < 0.5)
		{
			crash_and_recover($node, 'kill');
			check("$name: after a crash");
		}
		next unless $vacuum;
		my $image = sql('SELECT md5(string_agg(r::text, $$,$$)) FROM generate_series(1, 5) b, inplace_rows($$i_still$$, b) r');
		vacuum_all($name);
		check("$name: vacuumed");
		is( sql('SELECT md5(string_agg(r::text, $$,$$)) FROM generate_series(1, 5) b, inplace_rows($$i_still$$, b) r'),
			$image, "$name: VACUUM has not rewritten old rows")
		  if $epoch > 0;
	}
}
is(sql('SELECT count(DISTINCT era) > 4 FROM i_t'), 't', 'rows of many eras are there');

# ---- prepared transactions stay open across a jump ----------------------------------------

my $forgets = server_forgets($node);
# The server makes room for the status of all ids from the oldest open one on, hence a short jump.
foreach my $p ('i_', 'h_')
{
	sql("BEGIN; UPDATE ${p}t SET v = 7777 WHERE id % 3 = 1; DELETE FROM ${p}t WHERE id % 3 = 2;
		 SELECT count(*) FROM (SELECT FROM ${p}hot WHERE id <= 50 FOR UPDATE) l; PREPARE TRANSACTION '${p}yes'",
		"BEGIN; UPDATE ${p}late SET v = 7777 WHERE id % 3 = 1; DELETE FROM ${p}late WHERE id % 3 = 2;
		 SELECT count(*) FROM (SELECT FROM ${p}hot WHERE id > 50 FOR KEY SHARE) l; PREPARE TRANSACTION '${p}no'",
		"BEGIN; SELECT count(*) FROM (SELECT FROM ${p}hot WHERE id > 150 FOR KEY SHARE) l; PREPARE TRANSACTION '${p}shared'");
}
my $next = sql('SELECT txid_current()');
jump(xid => $next + 40_000_000, multi => control('NextMultiXactId') + 1_000_000);
check('beside prepared transactions');
sql('VACUUM i_t', 'VACUUM i_late', 'VACUUM i_hot');
check('beside prepared transactions, vacuumed');
my (undef, undef, $refused) = $node->psql('postgres', 'SELECT FROM i_hot WHERE id = 20 FOR UPDATE NOWAIT');
like($refused, qr/could not obtain lock/, 'their row locks hold');
(undef, undef, $refused) = $node->psql('postgres', 'SELECT FROM i_hot WHERE id = 180 FOR UPDATE NOWAIT');
ok($forgets || $refused =~ /could not obtain lock/, 'shared ones too');
is($node->psql('postgres', 'SELECT FROM i_hot WHERE id = 180 FOR NO KEY UPDATE NOWAIT'), 0, 'but keep nobody else away');
foreach my $p ('i_', 'h_')
{
	sql("COMMIT PREPARED '${p}yes'", "ROLLBACK PREPARED '${p}no'", "COMMIT PREPARED '${p}shared'");
}
check('prepared transactions ended');
live($era++);
check('after that');
vacuum_all('after that');

# ---- the failsafe ---------------------------------------------------------------------------

# A prepared transaction keeps relfrozenxid old, so that it does not matter whether
# a worker against wraparound has been there before: each VACUUM is in danger.
sub dead_items
{
	my ($table) = @_;
	return sql("SELECT count(*) FROM generate_series(0, pg_relation_size('$table') / 8192 - 1) b,
		 inplace_rows('$table', b) WHERE state = 'dead'");
}
$node->append_conf('postgresql.conf', "autovacuum_freeze_max_age = 100000\nvacuum_failsafe_age = 0");
$next = sql('SELECT txid_current()');
sql('CREATE TABLE i_failsafe (id int PRIMARY KEY, v int) USING inplace',
	'INSERT INTO i_failsafe SELECT i, i FROM generate_series(1, 5000) i', 'DELETE FROM i_failsafe WHERE id % 2 = 0',
	q(BEGIN; SELECT txid_current(); PREPARE TRANSACTION 'old'));
jump(xid => $next + 2_000_000);
my (undef, undef, $verbose) = $node->psql('postgres', 'VACUUM (VERBOSE) i_failsafe');
like($verbose,
	qr/WARNING:  bypassing nonessential maintenance of table "postgres\.public\.i_failsafe" as a failsafe after 0 index scans/,
	'the failsafe warns');
like($verbose, qr/index scan bypassed by failsafe/, 'and VERBOSE says so');
is(dead_items('i_failsafe'), 2500, 'dead items stay');
sql(q(COMMIT PREPARED 'old'));
# a worker against wraparound may have a snapshot from before
my $young = 'f';
for (my $tries = 0; $young ne 't' && $tries < 100; $tries++)
{
	sql('VACUUM i_failsafe');
	$young = sql("SELECT age(relfrozenxid) < 1000 FROM pg_class WHERE relname = 'i_failsafe'");
}
is($young, 't', 'relfrozenxid is young');
sql('VACUUM (INDEX_CLEANUP ON) i_failsafe');
is(dead_items('i_failsafe'), 0, 'the next VACUUM cleans the index');
tables_ok($node, 'after the failsafe', 'i_failsafe');
vacuum_all('in the end');
check('in the end');

log_ok($node, 'whole run', 0);
$node->stop;
done_testing();
