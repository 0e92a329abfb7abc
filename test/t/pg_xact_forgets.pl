# A backend has copied a row with an aborted change, and let go of its page.  Before it asks what became of
# the transaction, VACUUM puts the row back, and pg_xact is truncated beyond it.  A debugger holds the backend there.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('main', conf => "autovacuum = off\ninplace.debug_heal = off\n");
my $next = 0;

sql_on(\$node);

# In another segment of pg_xact, so that it can be truncated.
sub jump
{
	$node->stop;
	my $segment = sprintf '%s/pg_xact/%04X', $node->data_dir, ++$next;
	append_to_file($segment, "\0" x (32 * 8192));
	system_or_bail('pg_resetwal', '--next-transaction-id' => $next * 1_048_576 + 1000, $node->data_dir);
	$node->start;
	return;
}

sub vacuum_all
{
	sql('ALTER DATABASE template0 ALLOW_CONNECTIONS true');
	$node->safe_psql($_, 'VACUUM (FREEZE)') foreach qw(template0 template1 postgres);
	return;
}

foreach my $case (
	# of undo at home the locked page tells all
	[ 'an index scan', 'ip_version_satisfy', 'SELECT n FROM forgets WHERE id = 1', '0', 'SET LOCAL inplace.debug_undo_at_home = off; ' ],
	[ 'a TID scan',    'ip_version_satisfy', q(SELECT n FROM forgets WHERE ctid = '(0,2)'), '0' ],
	[ 'a sequential scan', 'ip_sight',
		'SET enable_indexscan = off; SET enable_seqscan = on; SELECT n FROM forgets WHERE id = 1', '0' ],
	[ 'a bitmap scan', 'ip_sight',
		'SET enable_indexscan = off; SET enable_bitmapscan = on; SELECT n FROM forgets WHERE id = 1', '0' ],
	[ 'a deletion seen by an index scan', 'ip_version_satisfy', 'SELECT n FROM forgets WHERE id = 2', '0' ])
{
	my ($name, $where, $query, $expected, $setting) = @$case;
	$setting //= '';
	sql('DROP TABLE IF EXISTS forgets',
		'CREATE TABLE forgets (id int PRIMARY KEY, n int) USING inplace',
		'INSERT INTO forgets SELECT i, 0 FROM generate_series(1, 10) i',
		"BEGIN; ${setting}UPDATE forgets SET n = 666 WHERE id = 1; DELETE FROM forgets WHERE id = 2; ROLLBACK");
	jump();

	my $reader = $node->background_psql('postgres', on_error_stop => 1);
	my $pid = $reader->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT pg_backend_pid()');
	$reader->query_safe('SELECT count(*) FROM forgets WHERE id = 3');
	my $output = '';
	my $hold = hold_backend($pid, $where);
	if (!$hold)
	{
		$reader->quit;
		$node->stop;
		plan skip_all => 'gdb may not attach to a server process';
	}
	$reader->query_until(qr/asked/, "\\echo asked\n$query;\n\\echo the_answer_is_complete\n");
	ok(is_held($hold), "$name: held between the row and pg_xact");
	vacuum_all();
	ok(!-e sprintf('%s/pg_xact/%04X', $node->data_dir, $next - 1), "$name: pg_xact was truncated");
	release_backend($hold);
	my $answer = $reader->query_until(qr/the_answer_is_complete/, '');
	$answer =~ s/\s*the_answer_is_complete\s*//;
	is($answer, $expected, "$name: no rolled-back data");
	$reader->quit;
	tables_ok($node, $name, 'forgets');
}
log_ok($node, 'whole run', 0);
$node->stop;
done_testing();
