# With old_snapshot_threshold (15, 16) VACUUM's cutoff may be newer than what a running transaction sees.  Heap answers
# "snapshot too old" then.  A row that changed in place has no such way out, so what the snapshot sees stays, and a change that
# it does not see is not overwritten.
#
# The least threshold that has an effect is a minute, so this waits for some, and runs with more than 10 crash rounds only.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('probe');
plan skip_all => 'old_snapshot_threshold is gone' if $node->pg_version >= 17;
plan skip_all => 'takes minutes (--full)' if rounds(10) <= 10;

$node = new_cluster('main', conf => "autovacuum = off\nold_snapshot_threshold = 1\n");
foreach my $am ('inplace', 'heap')
{
	$node->safe_psql('postgres', qq(
CREATE TABLE of_$am (id int PRIMARY KEY, n int) USING $am;
INSERT INTO of_$am SELECT i, 1 FROM generate_series(1, 900) i;
VACUUM of_$am;));
}
$node->safe_psql('postgres', 'CREATE TABLE other (id int)');

my @readers = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 3;
$_->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM other') foreach @readers;
my $xid = $node->safe_psql('postgres', "SELECT txid_snapshot_xmax(txid_current_snapshot())");
foreach my $table ('of_inplace', 'of_heap')
{
	$node->safe_psql('postgres', "UPDATE $table SET n = n + 1");
	$node->safe_psql('postgres', "DELETE FROM $table WHERE id > 800");
}

# Until heap's answer says that the cutoff has passed the snapshots.
my $answer = '';
foreach (1 .. 60)
{
	sleep 5;
	# the cutoff advances by what other transactions do
	$node->safe_psql('postgres', 'INSERT INTO other VALUES (1)') foreach 1 .. 3;
	$node->safe_psql('postgres', "VACUUM $_") foreach 'of_inplace', 'of_heap';
	$answer = $readers[0]->query('SELECT count(*), sum(n) FROM of_heap') . $readers[0]->{stderr};
	last if $answer !~ /^900\|900/;
}
like($answer, qr/snapshot too old/, 'heap says that the snapshot is too old');
is($readers[1]->query('SELECT count(*), sum(n) FROM of_inplace'), '900|900', 'an old snapshot sees what it saw');
$readers[1]->query('UPDATE of_inplace SET n = n + 100 WHERE id = 3');
like($readers[1]->{stderr}, qr/could not serialize access/, 'it cannot overwrite what it does not see');

# VACUUM FULL has a cutoff of its own.
$node->safe_psql('postgres', 'VACUUM FULL of_inplace');
is($node->safe_psql('postgres', "SELECT age(relfrozenxid) >= age('$xid'::xid) FROM pg_class WHERE relname = 'of_inplace'"), 't',
	'VACUUM FULL: relfrozenxid is not newer than the xids that are kept');
is($readers[2]->query('SELECT count(*), sum(n) FROM of_inplace'), '900|900', 'VACUUM FULL: an old snapshot sees what it saw');
$_->quit foreach @readers;
is($node->safe_psql('postgres', 'SELECT count(*), sum(n) FROM of_inplace'), '800|1600', 'the newest versions');
tables_ok($node, 'afterwards', 'of_inplace');
done_testing();
