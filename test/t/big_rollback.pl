# Rollbacks of big changes: the rows are as before by every access path, the undo
# that they have left is used again, and a crash in the middle of a big change is
# just one more rollback.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

test_seed();

my $rows = 300_000;

# No autovacuum: undo has to be used again without anybody's help.
my $node = new_cluster(
	'main', conf => qq(
autovacuum = off
max_wal_size = '4GB'
shared_buffers = 64MB
));

$node->safe_psql(
	'postgres', qq(
CREATE TABLE big (id int PRIMARY KEY, v int NOT NULL, note text) USING inplace;
INSERT INTO big SELECT i, i % 1000, 'note ' || i FROM generate_series(1, $rows) i;
));

sub big_size
{
	return $node->safe_psql('postgres', "SELECT pg_relation_size('big')");
}

# One test: the rows are the given ones, by both ways to find them.
sub unchanged
{
	my ($expected, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(contents($node, 'big', 'id', 'seq'), $expected, "$name, by seq scan");
	is(contents($node, 'big', 'id', 'index'),
		$expected, "$name, by index scan");
	return;
}

my $before = contents($node, 'big', 'id', 'seq');
my $change = 'UPDATE big SET v = v + 1, note = note || v';

# ---- rollback, as seen by the session itself, by others, and afterwards ------

my $writer = $node->background_psql('postgres', on_error_stop => 1);
$writer->query_safe("BEGIN; $change");
unchanged($before, 'others do not see a big update that is not committed');
my $start = time;
$writer->query_safe('ROLLBACK');
note(sprintf 'ROLLBACK of %d updates: %.3f s', $rows, time - $start);
unchanged($before, 'rows are as before a rolled back update');

$writer->query_safe('BEGIN; DELETE FROM big');
$writer->query_safe(
	"INSERT INTO big SELECT i, 0, 'new' FROM generate_series(1, 1000) i");
unchanged($before, 'others do not see a big delete that is not committed');
$writer->query_safe('ROLLBACK');
unchanged($before, 'rows are as before a rolled back delete');

$writer->query_safe(
	"BEGIN; UPDATE big SET id = id + 1000000 WHERE id % 5 = 0; ROLLBACK");
$writer->quit;
unchanged($before, 'rows are as before a rolled back change of keys');
tables_ok($node, 'after rollbacks', 'big');

# ---- savepoints ---------------------------------------------------------------

$node->safe_psql('postgres', 'CREATE TABLE h_big AS TABLE big');
foreach my $table ('big', 'h_big')
{
	$node->safe_psql(
		'postgres', qq(
BEGIN;
UPDATE $table SET v = v + 1 WHERE id % 2 = 0;
SAVEPOINT a;
UPDATE $table SET v = 0, note = note || note;
ROLLBACK TO a;
SAVEPOINT b;
UPDATE $table SET v = v + 2 WHERE id % 3 = 0;
SAVEPOINT c;
DELETE FROM $table WHERE id % 2 = 1;
ROLLBACK TO c;
RELEASE b;
DELETE FROM $table WHERE id % 1000 = 0;
COMMIT;
));
}
is( $node->safe_psql(
		'postgres', 'TABLE big EXCEPT ALL TABLE h_big;
TABLE h_big EXCEPT ALL TABLE big;'),
	'',
	'savepoints: same rows as in heap');
$before = contents($node, 'big', 'id', 'seq');
unchanged($before, 'savepoints');

# ---- undo is used again ---------------------------------------------------------

# The first cycles make the undo that one big change needs; from then on there is
# enough of it.
my @sizes;
foreach my $cycle (1 .. 6)
{
	$node->safe_psql('postgres', "BEGIN; UPDATE big SET v = v + 1; ROLLBACK");
	$node->safe_psql('postgres', 'UPDATE big SET v = v + 1');
	push @sizes, big_size();
}
note("size after each cycle: @sizes");
cmp_ok($sizes[-1], '<', $sizes[2] * 1.1, 'undo is used again')
  or diag("sizes: @sizes");
$node->safe_psql('postgres', 'VACUUM big');
cmp_ok(big_size(), '<=', $sizes[-1], 'VACUUM does not make the table larger');
$before = contents($node, 'big', 'id', 'seq');
tables_ok($node, 'after cycles', 'big');

# ---- crash in the middle --------------------------------------------------------

foreach my $round (1 .. 3)
{
	my $victim = $node->background_psql('postgres');
	$victim->{stdin} .= "$change;\n";
	$victim->{run}->pump_nb;
	usleep(random_between(200_000, 1_000_000));
	if (rand() < 0.5)
	{
		$node->safe_psql('postgres', 'CHECKPOINT');
		usleep(random_between(0, 200_000));
	}
	crash_and_recover($node, 'kill', recovery_too => rand() < 0.3);
	eval { $victim->quit };

	# The update may have been faster than the crash.
	my $now = contents($node, 'big', 'id', 'seq');
	if ($node->safe_psql(
			'postgres', q(SELECT note ~ '\d{2,}$' FROM big WHERE id = 1)) eq 't')
	{
		note("round $round: the update was committed");
		$before = $now;
	}
	unchanged($before, "crash $round: rows are as before the update");
	tables_ok($node, "crash $round", 'big');
	$node->safe_psql('postgres',
		"UPDATE big SET note = 'note' WHERE id BETWEEN 1000 * $round AND 1000 * $round + 50000"
	);
	$before = contents($node, 'big', 'id', 'seq');
}
log_ok($node, 'whole run', 0);
$node->stop;
done_testing();
