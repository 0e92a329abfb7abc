# A row with very many aborted changes, under a row lock: while a backend that is to put them back holds no
# lock on the page, another one does so, moves the row, and commits.  The first one is held there.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('main', conf => "autovacuum = off\ninplace.debug_skip_lists = off\ninplace.debug_heal = off\n");

sql_on(\$node);
if (!has_points())
{
	$node->stop;
	plan skip_all => 'a server without injection points';
}

# before and after it has looked for what is below the aborted changes
my @points = ('inplace-far', 'inplace-far-found');
foreach my $case (map { my $point = $_; map { [ $point, @$_ ] }
	[ 'moved',   'UPDATE r SET k = k + 1 WHERE id = 1', '1|1|100' ],
	[ 'changed', 'UPDATE r SET n = n + 1000 WHERE id = 1', '1|0|1100' ],
	[ 'VACUUM',  'VACUUM r', '1|0|100' ] } @points)
{
	my ($point, $name, $other, $expected) = @$case;
	$name = "$point, $name";
	sql('DROP TABLE IF EXISTS r',
		'CREATE TABLE r (id int PRIMARY KEY, k int, n int) USING inplace',
		'CREATE INDEX ON r (k)',
		'INSERT INTO r SELECT i, 0, 0 FROM generate_series(1, 5) i');
	my $locker = $node->background_psql('postgres', on_error_stop => 1);
	$locker->query_safe('BEGIN; SELECT id FROM r WHERE id = 1 FOR KEY SHARE');
	sql('DO $$BEGIN FOR i IN 1..500 LOOP UPDATE r SET n = n + 1 WHERE id = 1; END LOOP; ROLLBACK; END$$');

	my $writer = $node->background_psql('postgres', on_error_stop => 1);
	at_point($writer, $point, 'UPDATE r SET n = n + 100 WHERE id = 1', sub { sql($other) });
	$locker->query_safe('COMMIT');
	$_->quit foreach $writer, $locker;
	is(sql('SELECT id, k, n FROM r WHERE id = 1'), $expected, "$name: one row, with both changes");
	tables_ok($node, $name, 'r');
}
log_ok($node, 'whole run', 0);
$node->stop;
done_testing();
