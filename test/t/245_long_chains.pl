# A row with very many aborted changes: its neighbours can be read while they are put back,
# and whatever puts them back can be cancelled.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $changes = rounds(10) > 10 ? 1_000_000 : 200_000;
my $node    = new_cluster('main', conf => "autovacuum = off\nmax_wal_size = 4GB\ninplace.debug_skip_lists = off\n");

sub sql { return $node->safe_psql('postgres', join ";\n", @_); }

sub begin_chain
{
	sql('DROP TABLE IF EXISTS chain',
		'CREATE TABLE chain (id int PRIMARY KEY, n int, t text) USING inplace',
		q(INSERT INTO chain SELECT i, 0, repeat('c', 20) FROM generate_series(1, 20) i),
		"DO \$\$BEGIN FOR i IN 1..$changes LOOP UPDATE chain SET n = n + 1 WHERE id = 1; END LOOP; ROLLBACK; END\$\$");
	return;
}

# How many times a neighbour is read while the other session does this, and how long that took at most (ms).
sub reads_during
{
	my ($what) = @_;
	my $reader = $node->background_psql('postgres', on_error_stop => 0);
	my $worker = $node->background_psql('postgres', on_error_stop => 0);
	my ($reads, $longest) = (0, 0);

	# a scan of the table, which has few pages beside undo, would look at the chain
	$reader->query_safe("SET enable_seqscan = off; SET statement_timeout = '100ms'");
	$reader->query_safe('SELECT n FROM chain WHERE id = 2');
	$worker->query_until(qr/began/, "\\echo began\n$what;\n\\echo it_ended\n");
	while ($worker->{stdout} !~ /it_ended/)
	{
		my $start = time;
		last if $reader->query('SELECT n FROM chain WHERE id = 2') ne '0';
		my $took = 1000 * (time - $start);
		$longest = $took if $took > $longest;
		$reads++;
		$worker->{run}->pump_nb;
	}
	$worker->quit;
	$reader->quit;
	return ($reads, $longest);
}

foreach my $what (
	'UPDATE chain SET n = n + 7 WHERE id = 1',
	'VACUUM chain',
	q(BEGIN; SELECT FROM chain WHERE id = 1 FOR UPDATE; COMMIT))
{
	begin_chain();
	my ($reads, $longest) = reads_during($what);
	cmp_ok($reads, '>', 10, "$what: neighbours are read meanwhile");
	note(sprintf '%d changes, %s: %d reads, the longest took %.1f ms', $changes, $what, $reads, $longest);
	tables_ok($node, $what, 'chain');
}

# a running transaction's chain, which another one has to look below
begin_chain();
my $writer = $node->background_psql('postgres');
$writer->query_safe("BEGIN; DO \$\$BEGIN FOR i IN 1..$changes LOOP UPDATE chain SET n = n + 1 WHERE id = 1; END LOOP; END\$\$");
my ($reads) = reads_during(q(SET lock_timeout = 1; UPDATE chain SET n = n + 1 WHERE id = 1; SELECT 1));
cmp_ok($reads, '>', 10, 'neighbours are read while a writer looks below a running transaction');
$writer->query_safe('ROLLBACK');
$writer->quit;

# cancelled, and nothing is lost
begin_chain();
foreach my $what ('UPDATE chain SET n = n + 1 WHERE id = 1', 'VACUUM chain', 'SELECT sum(n) FROM chain')
{
	my (undef, undef, $stderr) = $node->psql('postgres', "SET statement_timeout = '5ms'; $what");
	like($stderr, qr/canceling statement due to statement timeout/, "$what can be cancelled");
}
is(sql('SELECT sum(n) FROM chain'), '0', 'and the row is what it was');
tables_ok($node, 'cancelled', 'chain');
log_ok($node, 'whole run', 0);
$node->stop;
done_testing();
