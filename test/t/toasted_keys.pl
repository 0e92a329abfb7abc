# A row with an entry in a pbtree index is deleted and its long key removed from the TOAST table, while a backend that does not hold it
# there looks at the entry: VACUUM, and the planner, when it asks for a column's last value.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('main', conf => "shared_preload_libraries = 'inplace, pbtree'\nautovacuum = off");

sql_on(\$node);

sql('CREATE EXTENSION pbtree', 'CREATE TABLE t (id int PRIMARY KEY, s text, filler text) USING inplace',
	'ALTER TABLE t ALTER s SET STORAGE external, ALTER filler SET STORAGE plain', 'CREATE INDEX i ON t USING pbtree (s)',
	q(INSERT INTO t SELECT g, lpad(g::text, 4, '0') || repeat(md5(g::text), 30), repeat('f', 1500) FROM generate_series(1, 100) g),
	q(UPDATE t SET s = s || 'y'), 'ANALYZE t');
my $toast = sql(q(SELECT reltoastrelid::regclass FROM pg_class WHERE oid = 't'::regclass));

# The planner's snapshot is younger than the deletion, and what it knows of all snapshots' horizon is older.
my $old = $node->background_psql('postgres', on_error_stop => 0);
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
sql('DELETE FROM t WHERE id > 95');
my $planner = $node->background_psql('postgres', on_error_stop => 0);
my $explain = q(EXPLAIN (COSTS off) SELECT * FROM t WHERE s > 'zzz');
$planner->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; $explain");
$old->quit;
sql("VACUUM $toast");
like($planner->query($explain), qr/Scan/, 'the planner finds a last value');
is($planner->{stderr}, '', 'without an error');
$planner->quit;

my $vacuum = $node->background_psql('postgres', on_error_stop => 0);
SKIP:
{
	skip 'a server without injection points', 1 if !has_points();
	at_point($vacuum, 'pbtree-stale-key', 'VACUUM (INDEX_CLEANUP on) t', sub { sql('DELETE FROM t WHERE id <= 90', "VACUUM $toast") });
	is($vacuum->{stderr}, '', 'VACUUM of deleted rows whose keys are gone');
}
$vacuum->quit;
sql('DELETE FROM t WHERE id <= 90');	# without points
is(sql(q(SET enable_seqscan = off; SELECT count(id) FROM t WHERE s > '0')), 5, 'what is left');
sql('VACUUM t');
is(sql(q(SELECT pbtree_check('i', true))), 5, 'its entries');
is(sql(q(SELECT * FROM inplace_check('t'))), '', 'the table is sound');

# CLUSTER, which reads the index, meets dead rows, too.
sql(q(UPDATE t SET s = s || 'z'), 'DELETE FROM t WHERE id > 93', "VACUUM $toast");
is($node->psql('postgres', 'CLUSTER t USING i', stderr => \my $stderr), 0, 'CLUSTER of deleted rows whose keys are gone');
is($stderr, '', 'without an error');
is(sql('SELECT count(s) FROM t'), 3, 'what is left');
log_ok($node, 'server', 0);
done_testing();
