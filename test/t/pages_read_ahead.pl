# A scan has pages that it reads ahead pinned before they are there.  An update of its rows that wants a place on such a page, or undo from it,
# leaves no pin behind.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('main', conf => "autovacuum = off\nfsync = off\nshared_buffers = 16MB\n");
if ($node->pg_version->major < 18 || $node->safe_psql('postgres', q(SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_buffercache')) == 0)
{
	plan skip_all => 'needs pg_buffercache_evict_relation() of PostgreSQL 18';
}
foreach my $am (qw(heap inplace))
{
	my $table = substr($am, 0, 1) . '_ahead';
	$node->safe_psql('postgres', "CREATE TABLE $table (id int, n int, body text) USING $am; INSERT INTO $table SELECT i, 0, repeat('x', 300) FROM generate_series(1, 5000) i");
}
$node->safe_psql('postgres', 'CREATE EXTENSION pg_buffercache');

# Rows grow and move to pages further on, which have been emptied.
my $warnings = '';
for my $round (1 .. rounds(10) * 4)
{
	my $from = 1 + ($round * 700) % 4000;
	my @sql = ("UPDATE T SET body = repeat('y', 300 + $round % 500) WHERE id % 3 = $round % 3", "DELETE FROM T WHERE id BETWEEN $from AND $from + 300", 'VACUUM (TRUNCATE off) T',
		"INSERT INTO T SELECT i, $round, repeat('z', 250) FROM generate_series($from, $from + 300) i", "SELECT sum(n) FROM T");
	foreach my $table (qw(h_ahead i_ahead))
	{
		my (undef, undef, $stderr) = $node->psql('postgres', join(";\n", map { ("SELECT FROM pg_buffercache_evict_relation('$table')", s/\bT\b/$table/gr) } @sql), on_error_stop => 0);
		$warnings .= $stderr if $table =~ /^i/;
	}
}
is($warnings, '', 'no warning');
same_as_heap($node, 'rows', 'ahead');
tables_ok($node, 'rows', 'i_ahead');
log_ok($node, 'log', 0);
$node->stop;

done_testing();
