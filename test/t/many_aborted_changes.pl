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
use Time::HiRes qw(usleep);

my $changes = rounds(10) > 10 ? 1_000_000 : 500_000;
my $node    = new_cluster('main', conf => "autovacuum = off\nmax_wal_size = 4GB\ninplace.debug_skip_lists = off\n");

sql_on(\$node);

sub begin_chain
{
	sql('DROP TABLE IF EXISTS chain',
		'CREATE TABLE chain (id int PRIMARY KEY, n int, t text) USING inplace',
		q(INSERT INTO chain SELECT i, 0, repeat('c', 20) FROM generate_series(1, 20) i),
		"DO \$\$BEGIN FOR i IN 1..$changes LOOP UPDATE chain SET n = n + 1 WHERE id = 1; END LOOP; ROLLBACK; END\$\$");
	return;
}

# The other session does this while a loop in this one's backend reads a neighbour: the longest read's share of that
# time, and what there is to say of it.
sub longest_read
{
	my ($what) = @_;
	my $reader = $node->background_psql('postgres', on_error_stop => 0);
	my $worker = $node->background_psql('postgres', on_error_stop => 0);

	# a scan of the table, which has few pages beside undo, would look at the chain
	$reader->query_safe('SET enable_seqscan = off');
	$worker->query_safe('SELECT pg_advisory_lock(1), pg_advisory_lock(2)');
	$reader->query_until(qr/began/, <<'SQL');
\echo began
DO $$
DECLARE
	start timestamptz;
	before timestamptz;
	longest interval := '0';
	reads int := 0;
BEGIN
	PERFORM pg_advisory_lock(2);
	start := clock_timestamp();
	before := start;
	WHILE NOT pg_try_advisory_lock(1) LOOP
		COMMIT;
		IF (SELECT n FROM chain WHERE id = 2) <> 0 THEN
			RAISE 'the neighbour is another one';
		END IF;
		longest := greatest(longest, clock_timestamp() - before);
		before := clock_timestamp();
		reads := reads + 1;
	END LOOP;
	PERFORM set_config('test.reads', format('%s %s %s', reads, extract(epoch FROM longest) * 1000,
		extract(epoch FROM before - start) * 1000), false);
END$$;
SQL
	$worker->query_safe("SELECT pg_advisory_unlock(2);\n$what;\nSELECT pg_advisory_unlock(1)");
	my ($reads, $longest, $total) = split ' ', $reader->query_safe('SHOW test.reads');
	$worker->quit;
	$reader->quit;
	return ($reads ? $longest / $total : 1, sprintf '%d reads in %.1f ms, the longest took %.1f ms', $reads, $total, $longest);
}

# A read that waits until all is put back takes most of that time.  One that waits for a processor may, too, but not each
# time that this is tried.
sub neighbours_ok
{
	my ($name, $what, $begin) = @_;
	my ($share, $note);

	foreach my $attempt (1 .. 10)
	{
		$begin->();
		($share, $note) = longest_read($what);
		note("$name, $changes changes: $note");
		last if $share < 0.2;
	}
	cmp_ok($share, '<', 0.2, "$name: neighbours are read meanwhile");
	return;
}

foreach my $what (
	'UPDATE chain SET n = n + 7 WHERE id = 1',
	'VACUUM chain',
	q(BEGIN; SELECT FROM chain WHERE id = 1 FOR UPDATE; COMMIT))
{
	neighbours_ok($what, $what, \&begin_chain);
	tables_ok($node, $what, 'chain');
}

# a running transaction's chain, which another one has to look below
begin_chain();
my $writer = $node->background_psql('postgres');
$writer->query_safe("BEGIN; DO \$\$BEGIN FOR i IN 1..$changes LOOP UPDATE chain SET n = n + 1 WHERE id = 1; END LOOP; END\$\$");
neighbours_ok(
	'a writer looks below a running transaction',
	q(DO $$BEGIN
		SET LOCAL lock_timeout = 1;
		UPDATE chain SET n = n + 1 WHERE id = 1;
		RAISE 'it has not waited';
	EXCEPTION WHEN lock_not_available THEN NULL;
	END$$), sub { });
$writer->query_safe('ROLLBACK');
$writer->quit;

# ---- a row that keeps changing ------------------------------------------------------------

# A backend that reads or locks it looks at so many versions that it has changed again meanwhile.
sql('DROP TABLE chain', 'CREATE TABLE chain (id int PRIMARY KEY, n int, t text) USING inplace', q(INSERT INTO chain VALUES (1, 0, 'c')), 'CREATE TABLE referring (id int REFERENCES chain)');
# what is below the change that the snapshot sees has gone
sql('UPDATE chain SET n = n');
my $older = $node->background_psql('postgres');
$older->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
sql('UPDATE chain SET n = n', 'VACUUM chain');
my $serializable = $node->background_psql('postgres');
$serializable->query_safe('BEGIN ISOLATION LEVEL SERIALIZABLE; SET enable_seqscan = off; SELECT 1');
my $changer = $node->background_psql('postgres');
$changer->query_until(qr/began/, "\\echo began\nDO \$\$BEGIN FOR i IN 1..100000000 LOOP UPDATE chain SET n = n + 1 WHERE id = 1; COMMIT; END LOOP; END\$\$;\n");
usleep(4_000_000);
$older->query_safe('INSERT INTO referring VALUES (1)');
is($serializable->query_safe('SELECT n FROM chain WHERE id = 1'), '0', 'SERIALIZABLE reads the old version');
sql('INSERT INTO referring VALUES (1)');
is(sql(q(SELECT count(*) FROM pg_stat_activity WHERE query ~ '^DO' AND state = 'active')), '1', 'a foreign key was checked, and a row read, while it went on');
sql(q(SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ~ '^DO'));
$_->query_safe('COMMIT') foreach $older, $serializable;
$_->quit foreach $older, $serializable;
sql('DROP TABLE referring');

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
