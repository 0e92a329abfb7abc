# A queue without synchronous_commit: what was taken from its front a moment ago must not be visited by each scan
# until the WAL writer has come by; and a crash must not make the index forget a row whose deletion it takes back.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('main', conf => qq(
autovacuum = off
synchronous_commit = off
wal_writer_delay = '10s'
));
$node->safe_psql('postgres', q(
CREATE TABLE queue (id int PRIMARY KEY, payload text) USING inplace;
INSERT INTO queue SELECT i, md5(i::text) FROM generate_series(1, 3000) i;
VACUUM queue;
CREATE FUNCTION pages_for_first() RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT json) SELECT * FROM queue ORDER BY id LIMIT 1' INTO plan;
	RETURN (plan->0->'Plan'->>'Shared Hit Blocks')::int + (plan->0->'Plan'->>'Shared Read Blocks')::int;
END$$;
));

# Each row is deleted by a transaction of its own; none of them is flushed.
my $client = $node->background_psql('postgres');
$client->query_safe('DO $$BEGIN FOR i IN 1..2000 LOOP DELETE FROM queue WHERE id = i; COMMIT; END LOOP; END$$');
my @pages = map { $client->query_safe('SELECT pages_for_first()') } 1 .. 3;
note("pages: @pages");
cmp_ok($pages[0], '>', 10, 'the first scan looks at the rows');
cmp_ok($pages[2], '<', 10, 'the third one does not');
is($client->query_safe('SELECT min(id), count(*) FROM queue'), '2001|1000', 'what is left');
$client->quit;

# What was not flushed is lost, and then the index still has it: also if its page was written before.  In one table
# the deleted rows are still there when the index is scanned, in the other the page has been pruned.
$node->safe_psql('postgres', q(
CREATE TABLE pruned (id int PRIMARY KEY, payload text) USING inplace;
INSERT INTO pruned SELECT i, md5(i::text) FROM generate_series(2001, 3000) i;
VACUUM pruned;
));
create_flush_relation($node);
foreach my $table (qw(queue pruned))
{
	$node->safe_psql('postgres', 'CHECKPOINT');
	kill 'STOP', $node->safe_psql('postgres', q(SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'));
	my $script = "DO \$\$BEGIN FOR i IN 2001..2020 LOOP DELETE FROM $table WHERE id = i; COMMIT; END LOOP; END\$\$;\n";
	# so many updates in place that there is no room for their undo; the index's pages stay as they are
	$script .= "DO \$\$BEGIN FOR i IN 1..200 LOOP UPDATE pruned SET payload = md5(i::text) WHERE id = 2030; COMMIT; END LOOP; END\$\$;\n" if $table eq 'pruned';
	$script .= "SELECT id FROM $table ORDER BY id LIMIT 1;\n" x 2;
	$script .= "SELECT 'dead: ' || count(*) FROM generate_series(0, pg_relation_size('$table') / 8192 - 1) block, inplace_rows('$table', block) WHERE state = 'dead';\n";
	my $dead = $node->safe_psql('postgres', $script . "SELECT flush_relation('${table}_pkey')");
	like($dead, qr/^dead: 20$/m, 'their items are dead') if $table eq 'pruned';
	crash_and_recover($node, 'kill');

	my $count = $node->safe_psql('postgres', "SELECT count(*) FROM $table");
	is($count, 1000, "$table: the crash takes deletions back");
	is($node->safe_psql('postgres', "SET enable_seqscan = off; SELECT count(*) FROM $table WHERE id > 0"),
		$count, "$table: the index has all rows after a crash");
	is($node->safe_psql('postgres', "SELECT count(*) FROM inplace_check('$table')"), '0', "$table: inplace_check");
}

done_testing();
