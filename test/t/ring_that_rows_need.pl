# A ring whose oldest page is old, but needed by rows that are locked, grows by what it uses: no page is made in vain.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('main', conf => "autovacuum = off\nfsync = off\n");

sql_on(\$node);

sub pages
{
	my ($kind) = @_;
	return sql("SELECT count(*) FROM generate_series(0, pg_relation_size('h') / 8192 - 1) b, inplace_page('h', b) WHERE kind = '$kind'");
}

sql('CREATE TABLE h (id int PRIMARY KEY, a int, b int) USING inplace', 'CREATE INDEX ON h (b)',
	'INSERT INTO h SELECT i, 0, 0 FROM generate_series(1, 1000) i');
my $reader = $node->background_psql('postgres');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM h');
sql('UPDATE h SET a = a + 1 WHERE id <= 700') for 1 .. 2;
my $locker = $node->background_psql('postgres');
$locker->query_safe('BEGIN; SELECT count(*) FROM (SELECT FROM h WHERE id <= 700 FOR SHARE) x');
$reader->quit;
sql('INSERT INTO h SELECT i, 0, 0 FROM generate_series(2001, 4000) i');
my ($undo, $new) = (pages('undo'), pages('new'));
sql('DO $$BEGIN FOR i IN 1 .. 8000 LOOP UPDATE h SET a = a + 1 WHERE id = 2001 + i * 7919 % 2000; COMMIT; END LOOP; END$$');
cmp_ok(pages('undo'), '>', $undo, 'the ring has grown');
is(pages('new'), $new, 'and no page is left over');
$locker->quit;
tables_ok($node, 'in the end', 'h');
log_ok($node, 'whole run', 0);
$node->stop;
done_testing();
