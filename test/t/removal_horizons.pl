# What may go when, where the moments are hard to meet: a VACUUM whose removal horizon
# is older than everybody else's, a horizon that goes back, relfrozenxid and pg_xact while a row lock keeps
# an aborted change from being put back, and undo pages with row locks of more
# than one transaction.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_cluster(
	'main', conf => q(
autovacuum = off
inplace.debug_heal = off
inplace.debug_undo_at_home = off
max_prepared_transactions = 5
));

sub session { return $node->background_psql('postgres') }

# ---- VACUUM with a stale horizon, and rows without room for a version block ----

# VACUUM takes its horizon when it begins; then, long before it gets to the page,
# the snapshot that held the horizon back goes, and another backend finds the
# page's inserter visible to all, and forgets it.  What VACUUM puts back must
# not refer to it any more.
#
# Behind the first 64 pages, rows are inserted without room for version blocks.  Eight
# of these leave 16 free bytes on their page: an update that needs 10 more leaves
# none for a version block, but is not preceded by a prune.
$node->safe_psql(
	'postgres', q(
CREATE TABLE stale (id int, t text) USING inplace;
INSERT INTO stale SELECT i, repeat('s', 1001) FROM generate_series(1, 64 * 7) i;
));
my $holder = session();
$holder->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM stale');
$node->safe_psql('postgres',
	q(INSERT INTO stale SELECT i, repeat('s', 1001) FROM generate_series(1001, 1160) i));
my $block = $node->safe_psql(
	'postgres', q(
SELECT max(p.block)
FROM generate_series(65, pg_relation_size('stale') / 8192 - 1) p(block),
	inplace_page('stale', p.block)
WHERE kind = 'data' AND items = 8 AND free = 16));
my $where = "ctid = '($block,1)'";

my $writer = session();
$writer->query_safe("BEGIN; UPDATE stale SET t = t || 'ten bytes.' WHERE $where");
is( $node->safe_psql(
		'postgres',
		"SELECT 'overlaid' = ANY (flags) FROM inplace_rows('stale', $block) WHERE off = 1"),
	't',
	"stale horizon: the version block covers the row's first bytes");

my $vacuum = session();
$vacuum->query_safe('SET vacuum_cost_delay = 30; SET vacuum_cost_limit = 1');
$vacuum->query_until(qr/began/, "\\echo began\nVACUUM stale;\n\\echo ended\n");
$node->poll_query_until('postgres',
	'SELECT heap_blks_scanned > 0 FROM pg_stat_progress_vacuum')
  or die 'VACUUM does not begin';

$holder->query_safe('COMMIT');
$holder->quit;
$node->safe_psql('postgres',
	"UPDATE stale SET t = repeat('u', 1001) WHERE ctid = '($block,2)'");
is( $node->safe_psql(
		'postgres',
		"SELECT coalesce(default_xid::text, '0') FROM inplace_page('stale', $block)"),
	'0',
	"stale horizon: the page's inserter is forgotten");
$writer->query_safe('ROLLBACK');
$writer->quit;
cmp_ok(
	$node->safe_psql(
		'postgres',
		'SELECT coalesce(max(heap_blks_scanned), 1000000) FROM pg_stat_progress_vacuum'),
	'<', $block,
	'stale horizon: VACUUM is not there yet');
$vacuum->query_until(qr/ended/, '');
$vacuum->quit;

is( $node->safe_psql('postgres', "SELECT t = repeat('s', 1001) FROM stale WHERE $where"),
	't',
	'stale horizon: the row is what it was');
is( $node->safe_psql(
		'postgres', 'SELECT count(DISTINCT id), sum(length(t)) FROM stale'),
	'608|608608',
	'stale horizon: so are the others');
tables_ok($node, 'stale horizon', 'stale');

# ---- a horizon that goes back ------------------------------------------------------

# A transaction in another database holds nothing back while no snapshot is taken in this
# one; the first snapshot is then as old as that transaction, and older than what is gone.
$node->safe_psql('postgres', 'CREATE DATABASE other');
my $other = $node->background_psql('other');
$other->query_safe('BEGIN; SELECT pg_current_xact_id()');
$node->safe_psql(
	'postgres', q(
CREATE TABLE back (id int PRIMARY KEY, t text) USING inplace;
INSERT INTO back SELECT i, repeat('b', 1001) FROM generate_series(1, 100) i));
my $deleter = session();
$deleter->query_safe($_)
  foreach ('UPDATE back SET id = id + 1000 WHERE id % 10 = 1', 'DELETE FROM back WHERE id BETWEEN 2 AND 99');
# its undo page stays, with what the deletes left there
$deleter->query_safe('BEGIN; UPDATE back SET t = NULL WHERE id = 100');
$node->safe_psql('postgres', 'VACUUM back');
$deleter->query_safe('COMMIT');
$deleter->quit;
cmp_ok($node->safe_psql('postgres', q(SELECT count(*) FROM generate_series(1, pg_relation_size('back') / 8192 - 1) b,
	inplace_page('back', b) WHERE kind = 'free')), '>', 5, 'horizon goes back: pages of rows are free');
cmp_ok(
	$node->safe_psql('postgres', 'SELECT pg_snapshot_xmin(pg_current_snapshot())'),
	'<',
	$node->safe_psql('postgres', q(SELECT max(xid) FROM generate_series(1, pg_relation_size('back') / 8192 - 1) b,
	inplace_undo_records('back', b))),
	'horizon goes back: behind those who deleted them');
tables_ok($node, 'horizon goes back', 'back');
$other->query_safe('ROLLBACK');
$other->quit;
$node->safe_psql('postgres', 'DROP DATABASE other');

# ---- undo pages with locks of several transactions --------------------------

# A lock record that is written by an old transaction may name a newer one, which
# still holds its lock when all undo of the old one has become removable.
$node->safe_psql(
	'postgres', q(
CREATE TABLE shared (id int, n int) USING inplace;
INSERT INTO shared SELECT i, 0 FROM generate_series(1, 2000) i;
));
my ($old, $new) = (session(), session());
# an undo page's newest xid begins with the next one of that moment
my $old_xid =
  $old->query_safe('BEGIN; UPDATE shared SET n = 1 WHERE id = 10; SELECT pg_current_xact_id()');
my $new_xid = $new->query_safe('BEGIN; SELECT pg_current_xact_id()');
cmp_ok($new_xid, '>', $old_xid, 'an older transaction and a newer one');
$new->query_safe('SELECT n FROM shared WHERE id = 1 FOR SHARE');
$old->query_safe('SELECT n FROM shared WHERE id = 1 FOR SHARE');
# the lock record's page has nothing else but records of the old transaction
$old->query_safe('UPDATE shared SET n = 1 WHERE id > 10');
$old->query_safe('COMMIT');
# go round the ring
$old->query_safe(
	'DO $$BEGIN FOR i IN 1 .. 3000 LOOP UPDATE shared SET n = n + 1 WHERE id = 11 + i % 100; COMMIT; END LOOP; END$$'
);
my $stderr;
$node->psql(
	'postgres',
	q(SET lock_timeout = '200ms'; UPDATE shared SET n = -1 WHERE id = 1),
	stderr => \$stderr);
like($stderr, qr/canceling statement due to lock timeout/,
	'the lock of the newer transaction is still there');
$new->query_safe('UPDATE shared SET n = 7 WHERE id = 1; COMMIT');
$_->quit foreach $old, $new;
is($node->safe_psql('postgres', 'SELECT n FROM shared WHERE id = 1'),
	'7', 'its holder could change the row');
tables_ok($node, 'shared locks', 'shared');

# ---- an index, built by a backend whose removal horizon is old ----------------------

# A transaction that only has an id keeps RecentXmin where it is; so the backend does not look for
# a newer horizon by itself, when the snapshot that was older has gone.
$node->safe_psql(
	'postgres', q(
CREATE TABLE toasted (id int PRIMARY KEY, t text) USING inplace;
ALTER TABLE toasted ALTER t SET STORAGE external;
INSERT INTO toasted SELECT i, repeat(md5(i::text), 200) FROM generate_series(1, 20) i));
my ($first, $reader, $last, $builder) = map { session() } 1 .. 4;
$first->query_safe('BEGIN; SELECT pg_current_xact_id()');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM toasted');
$first->query_safe('COMMIT');
$node->safe_psql('postgres', 'DELETE FROM toasted WHERE id > 10');
$last->query_safe('BEGIN; SELECT pg_current_xact_id()');
# finds the deleted rows, and asks for a horizon
$builder->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM toasted WHERE id > 0');
$reader->query_safe('COMMIT');
$node->safe_psql(
	'postgres', q(
SELECT format('VACUUM %s', reltoastrelid::regclass) FROM pg_class WHERE relname = 'toasted' \gexec
));
is( $node->safe_psql('postgres', q(
SELECT pg_relation_size(reltoastrelid) < 100000 FROM pg_class WHERE relname = 'toasted')),
	't', 'index build: the values of deleted rows are gone');
my (undef, $failed) = $builder->query('CREATE INDEX toasted_md5 ON toasted (md5(t))');
is( $node->safe_psql('postgres', q(SELECT count(*) FROM pg_index WHERE indrelid = 'toasted'::regclass AND indisvalid)),
	'2', 'index build: a backend with an old horizon builds the index');
$_->query('COMMIT') foreach $last;
$_->quit foreach $first, $reader, $last, $builder;
tables_ok($node, 'index build', 'toasted');

# ---- an aborted change under a row lock, and pg_xact ------------------------------

# The change belongs to the first segment of pg_xact, the lock to the second one.
$node->safe_psql(
	'postgres', q(
CREATE TABLE kept (id int PRIMARY KEY, n int) USING inplace;
INSERT INTO kept SELECT i, 0 FROM generate_series(1, 10) i;
BEGIN;
UPDATE kept SET n = 1;
SAVEPOINT s;
UPDATE kept SET n = 2;
PREPARE TRANSACTION 'changes';
CREATE TABLE meanwhile (id int) USING inplace;
));
my $xid = $node->safe_psql('postgres',
	q(SELECT transaction FROM pg_prepared_xacts WHERE gid = 'changes'));
$node->stop;
my $data_dir = $node->data_dir;
append_to_file("$data_dir/pg_xact/0001", "\0" x (32 * 8192));
system_or_bail('pg_resetwal', '--next-transaction-id' => 1_100_000, $data_dir);
$node->start;

my $locker = session();
$locker->query_safe('BEGIN; SELECT n FROM kept WHERE id = 5 FOR KEY SHARE');
$node->safe_psql('postgres', q(ROLLBACK PREPARED 'changes'));

# VACUUM of all databases, so that pg_xact is truncated if it may be.
sub vacuum_all
{
	$node->safe_psql('postgres',
		'ALTER DATABASE template0 ALLOW_CONNECTIONS true');
	$node->safe_psql($_, 'VACUUM (FREEZE)')
	  foreach qw(template0 template1 postgres);
	return;
}

sub kept_ok
{
	my ($name) = @_;
	is($node->safe_psql('postgres', 'SELECT count(*), sum(n) FROM kept'),
		'10|0', "$name: the rows are what they were");
	tables_ok($node, $name, 'kept');
	return;
}

vacuum_all();
ok(!-e "$data_dir/pg_xact/0000", 'pg_xact loses its first segment, though a row is locked');
kept_ok('row is locked');
$node->stop('immediate');
$node->start;
kept_ok('after a crash');
$node->safe_psql('postgres', 'UPDATE kept SET n = n + 1');
is($node->safe_psql('postgres', 'SELECT count(*), sum(n) FROM kept'),
	'10|10', 'rows can be changed');
tables_ok($node, 'at the end', 'kept');

$node->stop;
done_testing();
