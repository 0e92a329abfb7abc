# Prepared transactions: their changes and their row locks survive restarts and
# crashes, and they can be committed or rolled back afterwards.
#
# Each case has its own pair of tables, inplace and heap, that one transaction
# changes in the same way.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

test_seed();

my $node = new_cluster('main', conf => 'max_prepared_transactions = 40');

my $note = "left(repeat('new', id), id % 50)";

# What the transactions do to T_x.
my @actions = (
	"UPDATE T_x SET v = v + 1 WHERE id BETWEEN 1 AND 10;
UPDATE T_x SET v = v + 1, note = $note WHERE id BETWEEN 5 AND 10;
UPDATE T_x SET id = id + 1000 WHERE id = 3;
DELETE FROM T_x WHERE id BETWEEN 11 AND 20;
INSERT INTO T_x SELECT i, i, 'new' FROM generate_series(101, 110) i;
DELETE FROM T_x WHERE id = 105;
SAVEPOINT a;
UPDATE T_x SET v = 0, id = -id WHERE id BETWEEN 35 AND 45;
DELETE FROM T_x WHERE id = 46;
ROLLBACK TO a;
SAVEPOINT b;
UPDATE T_x SET v = -v WHERE id BETWEEN 21 AND 25;
RELEASE b;
SELECT FROM T_x WHERE id = 30 FOR UPDATE;
SELECT FROM T_x WHERE id = 31 FOR NO KEY UPDATE;
SELECT FROM T_x WHERE id = 32 FOR SHARE;
SELECT FROM T_x WHERE id = 33 FOR KEY SHARE;
",
	# Everything: pages full of it, more than one undo page.
	"UPDATE T_x SET note = note || $note, v = v * 2 WHERE id <= 800;
UPDATE T_x SET v = v + 1 WHERE id <= 800;
");

# What others cannot do while the first transaction is prepared: [statement, ok?].
my @locks = (
	[ 'SELECT FROM T_x WHERE id = 1 FOR UPDATE NOWAIT',         0 ],
	[ 'SELECT FROM T_x WHERE id = 1 FOR KEY SHARE NOWAIT',      1 ],
	[ 'SELECT FROM T_x WHERE id = 3 FOR KEY SHARE NOWAIT',      0 ],
	[ 'SELECT FROM T_x WHERE id = 11 FOR KEY SHARE NOWAIT',     0 ],
	[ 'SELECT FROM T_x WHERE id = 22 FOR SHARE NOWAIT',         0 ],
	[ 'SELECT FROM T_x WHERE id = 30 FOR KEY SHARE NOWAIT',     0 ],
	[ 'SELECT FROM T_x WHERE id = 31 FOR KEY SHARE NOWAIT',     1 ],
	[ 'SELECT FROM T_x WHERE id = 31 FOR SHARE NOWAIT',         0 ],
	[ 'SELECT FROM T_x WHERE id = 32 FOR SHARE NOWAIT',         1 ],
	[ 'SELECT FROM T_x WHERE id = 32 FOR NO KEY UPDATE NOWAIT', 0 ],
	[ 'SELECT FROM T_x WHERE id = 33 FOR NO KEY UPDATE NOWAIT', 1 ],
	[ 'SELECT FROM T_x WHERE id = 33 FOR UPDATE NOWAIT',        0 ],
	[ 'SELECT FROM T_x WHERE id = 40 FOR UPDATE NOWAIT',        1 ],
	[ 'SELECT FROM T_x WHERE id = 46 FOR UPDATE NOWAIT',        1 ],
	[ 'SELECT FROM T_x WHERE id = 50 FOR UPDATE NOWAIT',        1 ],
	[ 'UPDATE T_x SET v = 7 WHERE id = 2',                      0 ],
	[ 'DELETE FROM T_x WHERE id = 12',                          0 ],
	[ 'INSERT INTO T_x VALUES (101, 0, NULL)',                  0 ]);

sub for_both
{
	my ($sql, $table) = @_;
	return join '', map { (my $text = $sql) =~ s/\bT_x\b/$_$table/g; $text }
	  qw(i_ h_);
}

# There heap's locks are not to be looked at.
my $forgets = server_forgets($node);

# One test: the locks are as they should be, on both tables.
sub locks_ok
{
	my ($table, $name) = @_;
	my @wrong;
	foreach my $lock (@locks)
	{
		my ($sql, $expected) = @$lock;
		foreach my $prefix ($forgets ? 'i_' : qw(h_ i_))
		{
			(my $text = $sql) =~ s/\bT_x\b/$prefix$table/g;
			my $stderr;
			my $status = $node->psql(
				'postgres', "SET lock_timeout = '50ms'; BEGIN; $text; ROLLBACK;",
				stderr        => \$stderr,
				on_error_stop => 1);
			push @wrong, "$text: $stderr"
			  if $expected ? $status != 0 : $stderr !~ /could not obtain lock|lock timeout/;
		}
	}
	is(scalar(@wrong), 0, "$name: row locks are there, and no others")
	  or diag(join "\n", @wrong);
	return;
}

my %restarts = (
	nothing   => sub { },
	restart   => sub { $node->restart },
	kill      => sub { crash_and_recover($node, 'kill') },
	immediate => sub { crash_and_recover($node, 'immediate') },
	# Prepared transactions then come from files, not from WAL.
	checkpoint => sub {
		$node->safe_psql('postgres', 'CHECKPOINT');
		crash_and_recover($node, 'kill');
	});

# All pairs of tables are made, then prepared, then the server restarts once for
# each way, and a part of the transactions is finished after each.
my @cases;
foreach my $restart (sort keys %restarts)
{
	foreach my $end ('COMMIT', 'ROLLBACK')
	{
		foreach my $action (0, 1)
		{
			push @cases,
			  {
				table   => lc("${restart}_${end}_$action"),
				restart => $restart,
				end     => $end,
				action  => $action
			  };
		}
	}
}

foreach my $case (@cases)
{
	my $table = $case->{table};
	foreach ([ 'i_', 'inplace' ], [ 'h_', 'heap' ])
	{
		my ($prefix, $am) = @$_;
		$node->safe_psql(
			'postgres', "
CREATE TABLE $prefix$table (id int PRIMARY KEY, v int, note text) USING $am;
CREATE INDEX ON $prefix$table (v);
INSERT INTO $prefix$table SELECT i, i, 'old' FROM generate_series(1, 100) i;
INSERT INTO $prefix$table SELECT i, i, 'old' FROM generate_series(200, 800) i;
CREATE TABLE before_$prefix$table AS TABLE $prefix$table;");
	}
	$node->safe_psql('postgres',
			'BEGIN;'
		  . for_both($actions[ $case->{action} ], $table)
		  . "PREPARE TRANSACTION '$table'");
}

foreach my $restart (sort keys %restarts)
{
	$restarts{$restart}->();

	foreach my $case (grep { $_->{restart} eq $restart } @cases)
	{
		my ($table, $end) = @$case{qw(table end)};
		my $name = "$restart, $end of " . ('few', 'many')[ $case->{action} ];

		is( $node->safe_psql(
				'postgres',
				"TABLE i_$table EXCEPT ALL TABLE before_i_$table;
				 TABLE before_i_$table EXCEPT ALL TABLE i_$table;"),
			'',
			"$name: nothing to be seen of a prepared transaction");
		tables_ok($node, "$name, prepared", "i_$table");
		locks_ok($table, $name) if $case->{action} == 0;

		$node->safe_psql('postgres', "$end PREPARED '$table'");
		same_as_heap($node, $name, $table);
		is( $node->safe_psql(
				'postgres',
				"SELECT count(*) = (SELECT count(*) FROM h_$table) FROM
				 (SELECT FROM i_$table FOR UPDATE NOWAIT) l"),
			't',
			"$name: all locks are gone");

		# Others can change everything now.
		$node->safe_psql(
			'postgres',
			for_both(
				"UPDATE T_x SET v = v + 1, note = 'after' WHERE id % 2 = 0;
				 DELETE FROM T_x WHERE id % 7 = 0;", $table));
	}
}

crash_and_recover($node, 'kill');
same_as_heap($node, 'after the last crash', map { $_->{table} } @cases);
tables_ok($node, 'after the last crash', map { "i_$_->{table}" } @cases);

# Several prepared transactions share one row's lock, so it is a multixact.
$node->safe_psql(
	'postgres', q(
CREATE TABLE shared (id int PRIMARY KEY, v int) USING inplace;
INSERT INTO shared SELECT i, 0 FROM generate_series(1, 50) i;
BEGIN; SELECT FROM shared FOR KEY SHARE; PREPARE TRANSACTION 'key share';
BEGIN; SELECT FROM shared WHERE id <= 30 FOR SHARE; PREPARE TRANSACTION 'share';
BEGIN; UPDATE shared SET v = 1 WHERE id > 30; PREPARE TRANSACTION 'update';
));
crash_and_recover($node, 'kill');

# May somebody get this lock on this row?
sub lockable
{
	my ($id, $mode) = @_;
	return $node->psql('postgres',
		"SELECT FROM shared WHERE id = $id FOR $mode NOWAIT") == 0;
}
ok(lockable(1, 'SHARE'),           'share lock beside shared locks');
ok($forgets || !lockable(1, 'NO KEY UPDATE'),  'no key update lock beside a share lock');
ok(lockable(40, 'KEY SHARE'),      'key share lock beside an update');
ok(!lockable(40, 'SHARE'),         'no share lock beside an update');
$node->safe_psql('postgres', "COMMIT PREPARED 'share'");
ok(lockable(1, 'NO KEY UPDATE'), 'no key update lock when the share lock is gone');
ok($forgets || !lockable(1, 'UPDATE'), 'no update lock beside a key share lock');
$node->restart;
ok($forgets || !lockable(1, 'UPDATE'), 'the same after a restart');
$node->safe_psql('postgres',
	"ROLLBACK PREPARED 'key share'; ROLLBACK PREPARED 'update'");
ok(lockable(1, 'UPDATE') && lockable(40, 'UPDATE'),
	'all locks are gone in the end');
is($node->safe_psql('postgres', 'SELECT sum(v), count(*) FROM shared'),
	'0|50', 'rolled back update beside locks');
tables_ok($node, 'shared locks', 'shared');

log_ok($node, 'whole run', 0);
$node->stop;
done_testing();
