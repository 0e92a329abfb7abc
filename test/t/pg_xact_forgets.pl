# A backend has copied a row with an aborted change, and let go of its page.  Before it asks what became of
# the transaction, VACUUM puts the row back, and pg_xact is truncated beyond it.  The backend is held there.

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
if (!has_points())
{
	$node->stop;
	plan skip_all => 'a server without injection points';
}

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
	[ 'an index scan', 'inplace-satisfy', 'SELECT n FROM forgets WHERE id = 1', '0', 'SET LOCAL inplace.debug_undo_at_home = off; ' ],
	[ 'a TID scan',    'inplace-satisfy', q(SELECT n FROM forgets WHERE ctid = '(0,2)'), '0' ],
	[ 'a sequential scan', 'inplace-sight',
		'SET enable_indexscan = off; SET enable_seqscan = on; SELECT n FROM forgets WHERE id = 1', '0' ],
	[ 'a bitmap scan', 'inplace-sight',
		'SET enable_indexscan = off; SET enable_bitmapscan = on; SELECT n FROM forgets WHERE id = 1', '0' ],
	[ 'a deletion seen by an index scan', 'inplace-satisfy', 'SELECT n FROM forgets WHERE id = 2', '0' ])
{
	my ($name, $point, $query, $expected, $setting) = @$case;
	$setting //= '';
	sql('DROP TABLE IF EXISTS forgets',
		'CREATE TABLE forgets (id int PRIMARY KEY, n int) USING inplace',
		'INSERT INTO forgets SELECT i, 0 FROM generate_series(1, 10) i',
		"BEGIN; ${setting}UPDATE forgets SET n = 666 WHERE id = 1; DELETE FROM forgets WHERE id = 2; ROLLBACK");
	jump();

	my $reader = $node->background_psql('postgres', on_error_stop => 1);
	$reader->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off');
	$reader->query_safe('SELECT count(*) FROM forgets WHERE id = 3');
	my $answer = at_point($reader, $point, $query, sub {
		vacuum_all();
		ok(!-e sprintf('%s/pg_xact/%04X', $node->data_dir, $next - 1), "$name: pg_xact was truncated");
	});
	is($answer, "$expected\n", "$name: no rolled-back data");
	$reader->quit;
	tables_ok($node, $name, 'forgets');
}
log_ok($node, 'whole run', 0);
$node->stop;
done_testing();
