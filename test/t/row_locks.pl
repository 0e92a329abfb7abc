# Row locks are lock sets in pages of the table: they do not grow, whatever snapshots there are, change no row and no bit
# of the visibility map, end no query on a standby, find room where a page has none, and survive a crash as far as they are
# prepared transactions'.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster(
	'primary',
	streaming => 1,
	conf      => q(
autovacuum = off
max_prepared_transactions = 20
max_connections = 30
wal_consistency_checking = 'inplace'
));
my $standby = new_standby($node, q(
max_standby_streaming_delay = 100ms
hot_standby_feedback = off
));

sql_on(\$node);

sub size { return sql("SELECT pg_relation_size('$_[0]')"); }

my $map = q(SELECT count(*), sum(CASE WHEN all_visible THEN 1 END), sum(CASE WHEN all_frozen THEN 1 END) FROM pg_visibility_map('t'));

# ---- no growth, nothing lost, no conflict ------------------------------------------------

sql('CREATE EXTENSION pg_visibility');
foreach my $am ('heap', 'inplace')
{
	sql("CREATE TABLE parent_$am (id int PRIMARY KEY, t text) USING $am", "INSERT INTO parent_$am SELECT i, 'parent' FROM generate_series(1, 50) i");
}
sql('CREATE TABLE t (id int PRIMARY KEY, n int) USING inplace', 'INSERT INTO t SELECT i, 0 FROM generate_series(1, 5000) i');
sql('VACUUM parent_heap');
sql('VACUUM parent_inplace');
sql('VACUUM t');
my $before = sql($map);
my $holder = $node->background_psql('postgres');
$holder->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
$node->wait_for_catchup($standby);
my $reader = $standby->background_psql('postgres');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');

my $mode = 0;
foreach my $strength ('KEY SHARE', 'SHARE', 'NO KEY UPDATE', 'UPDATE')
{
	my $script = $node->basedir . '/lock' . $mode++ . '.sql';
	append_to_file($script, join('', map { "\\set id random(1, 50)\nSELECT FROM parent_$_ WHERE id = :id FOR $strength;\n" } 'heap', 'inplace'));
	$node->command_ok([ 'pgbench', '-n', '-c', '8', '-t', '300', '-f', $script, 'postgres' ], "locks $strength");
}
cmp_ok(size('parent_inplace'), '<=', size('parent_heap') + 8192, 'locks do not let a table grow under a snapshot');
is(sql(q(SELECT count(*) FROM inplace_locks('parent_inplace') WHERE live)), 0, 'all of them have ended');
is(sql(q(SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'parent_inplace')), 0, 'no dead rows');
is(sql(q(SELECT count(*) FROM inplace_undo_rings('parent_inplace'))), 0, 'no undo');

my $xmins = sql('SELECT min(xmin::text), max(xmin::text) FROM t');
sql("SELECT count(*) FROM (SELECT FROM t FOR $_) x") foreach 'KEY SHARE', 'UPDATE';
is(sql($map), $before, 'the visibility map is what it was');
is(sql('SELECT min(xmin::text), max(xmin::text) FROM t'), $xmins, 'and so are makers of rows');
is(sql(q(SELECT count(*) > 0 FROM inplace_rows('t', 0) WHERE flags <> '{}')), 'f', 'and the rows');
$node->wait_for_catchup($standby);
is($reader->query_safe('SELECT count(*) FROM t'), 5000, 'no query of a standby was cancelled');
is($standby->safe_psql('postgres', q(SELECT sum(confl_snapshot) FROM pg_stat_database_conflicts)), 0, 'nor is there a conflict');
$reader->quit;
$holder->quit;
tables_ok($node, 'locks', 't', 'parent_inplace');

# ---- lock pages come and go --------------------------------------------------------------

$holder = $node->background_psql('postgres');
$holder->query_safe('CREATE TABLE l (id int, s text) USING inplace; ALTER TABLE l ALTER s SET STORAGE plain');
$holder->query_safe(q(INSERT INTO l SELECT i, repeat('l', 4000) FROM generate_series(1, 1000) i));
$holder->query_safe('VACUUM l');
my $data = size('l');
$holder->query_safe('BEGIN; SELECT count(*) FROM (SELECT FROM l FOR UPDATE) x');
cmp_ok(size('l'), '>', $data, 'many pages with locks');
is(sql(q(SELECT count(*), sum(cardinality(rows)) FROM inplace_locks('l') WHERE live)), sql('SELECT count(DISTINCT (ctid::text::point)[0]), 1000 FROM l'), 'a set for each page');
sql('VACUUM l');
is(sql(q(SELECT count(*) FROM (SELECT FROM l FOR KEY SHARE SKIP LOCKED) x)), 0, 'VACUUM leaves live locks alone');
is(sql('SELECT count(*) FROM l'), 1000, 'scans leave lock pages out');
tables_ok($node, 'many locks', 'l');
$holder->query_safe('COMMIT');
$holder->quit;
sql('VACUUM l');
is(sql(q(SELECT count(*) FROM generate_series(0, pg_relation_size('l') / 8192 - 1) b, inplace_page('l', b) p WHERE kind = 'lock')), 0,
	'VACUUM frees lock pages');
tables_ok($node, 'no locks', 'l');

# Between the look at a page's lockers and the next lock, the locker ends, and VACUUM frees the lock page.  It reads no page that all see.
$holder = $node->background_psql('postgres');
$holder->query_safe('BEGIN; SELECT count(*) FROM (SELECT FROM l FOR KEY SHARE) x');
my $block = sql(q(SELECT block FROM inplace_locks('l') ORDER BY page DESC LIMIT 1));
my $next = $node->background_psql('postgres');
SKIP:
{
	skip 'a server without injection points', 3 if !has_points();
	at_point($next, 'inplace-add-lock', "BEGIN; SELECT id FROM l WHERE ctid = '($block,1)' FOR SHARE", sub {
		$holder->query_safe('COMMIT');
		sql('VACUUM l');
		is(sql(q(SELECT DISTINCT page FROM inplace_locks('l'))), 1, 'the lock page is free');
	});
	is($node->psql('postgres', "SELECT FROM l WHERE ctid = '($block,1)' FOR UPDATE NOWAIT"), 3, 'the row is locked all the same');
	tables_ok($node, 'a lock page freed', 'l');
}
$_->quit foreach $holder, $next;

# VACUUM frees a lock page, which others use again at the end of the list, while VACUUM is still on its way there.
my @sharers = map { $node->background_psql('postgres') } 1 .. 2;
$_->query_safe('BEGIN; SELECT count(*) FROM (SELECT FROM l FOR KEY SHARE) x') foreach @sharers;
$_->quit foreach @sharers;
sql('VACUUM l');
my ($ends, $stays, $vacuum) = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 3;
$ends->query_safe('BEGIN; SELECT count(*) FROM (SELECT FROM l WHERE id <= 600 FOR UPDATE) x');
my $ended = $ends->query_safe('SELECT pg_current_xact_id()');
$stays->query_safe('BEGIN; SELECT count(*) FROM (SELECT FROM l WHERE id > 600 FOR UPDATE) x');
my $freed = sql("SELECT page FROM inplace_locks('l') WHERE page > 1 GROUP BY page HAVING bool_and(live AND locker = $ended)");
like($freed, qr/^\d+$/, 'a lock page that will be free');
$ends->query_safe('COMMIT');
SKIP:
{
	skip 'a server without injection points', 3 if !has_points();
	at_point($vacuum, 'inplace-lock-page-freed', 'VACUUM l', sub {
		my $is_used = "SELECT kind = 'lock' FROM inplace_page('l', $freed)";
		for (my $n = 0; $n < 20 && sql($is_used) eq 'f'; $n++)
		{
			push @sharers, $node->background_psql('postgres');
			$sharers[-1]->query_safe('BEGIN; SELECT count(*) FROM (SELECT FROM l FOR KEY SHARE SKIP LOCKED) x');
		}
		is(sql($is_used), 't', 'the page is used again');
	});
	unlike($vacuum->{stderr}, qr/WARNING/, 'VACUUM does not take it for a loop');
	is(sql('SELECT count(*) FROM (SELECT FROM l FOR UPDATE SKIP LOCKED) x'), 0, 'all locks are there');
}
$_->quit foreach $ends, $stays, $vacuum, @sharers[ 2 .. $#sharers ];
sql('VACUUM l');
tables_ok($node, 'a lock page used again', 'l');

# Several lock all rows: the locks of a data page stay on one lock page, so that nobody has to look at more.
my @all = map { $node->background_psql('postgres') } 1 .. 3;
$_->query_safe('BEGIN; SELECT count(*) FROM (SELECT FROM l FOR KEY SHARE) x') foreach @all;
my $live_sets = q(SELECT count(DISTINCT (block, locker)), sum(cardinality(rows)) FROM inplace_locks('l') WHERE live);
is(sql($live_sets), sql('SELECT 3 * count(DISTINCT (ctid::text::point)[0]), 3000 FROM l'), 'all of their locks are there');
is(sql(q(SELECT count(*) FROM (SELECT FROM inplace_locks('l') WHERE live GROUP BY block HAVING count(DISTINCT page) > 1) x)), 0,
	'those of a data page together');
sql('VACUUM l');
$_->query_safe('COMMIT') foreach @all[0, 2];
is(sql(q(SELECT count(*) FROM (SELECT FROM l FOR UPDATE SKIP LOCKED) x)), 0, 'each locker keeps the others out');
tables_ok($node, 'several lockers', 'l');
$all[1]->query_safe('COMMIT');
is(sql(q(SELECT count(*) FROM (SELECT FROM l FOR UPDATE SKIP LOCKED) x)), 1000, 'until it ends');

# Too many lockers to be moved, and a page without room for another: it is continued.
sql('VACUUM l');
my ($id, $other) = split /\|/, sql(q(SELECT min(id), max(id) FROM l GROUP BY (ctid::text::point)[0] HAVING count(*) = 2 ORDER BY 1 LIMIT 1));
sql("BEGIN; SELECT id FROM l WHERE id = $id FOR KEY SHARE; PREPARE TRANSACTION 'q$_'") foreach 1 .. 10;
$all[0]->query_safe("BEGIN; SELECT count(*) FROM (SELECT FROM l WHERE id NOT IN ($id, $other) FOR UPDATE) x");
$all[1]->query_safe("BEGIN; SELECT id FROM l WHERE id = $id FOR KEY SHARE");
is(sql("SELECT count(DISTINCT page), count(*) FROM inplace_locks('l') WHERE live AND block = (SELECT (ctid::text::point)[0] FROM l WHERE id = $id)"), '2|11', 'locks on two pages');
$all[0]->query_safe('COMMIT');
sql("COMMIT PREPARED 'q$_'") foreach 1 .. 10;
sql('VACUUM l');
is($node->psql('postgres', "SELECT FROM l WHERE id = $id FOR UPDATE NOWAIT"), 3, 'the last one is seen');
is($node->psql('postgres', "SELECT FROM l WHERE id = $other FOR UPDATE NOWAIT"), 0, 'as one of its row');
$all[1]->query_safe('COMMIT');
is($node->psql('postgres', "SELECT FROM l WHERE id = $id FOR UPDATE NOWAIT"), 0, 'it has ended');
tables_ok($node, 'locks on two pages', 'l');
$_->quit foreach @all;

# ---- many lockers of one row; full pages -------------------------------------------------

sql('CREATE TABLE f (id int, s text) USING inplace', 'ALTER TABLE f ALTER s SET STORAGE plain',
	q(INSERT INTO f SELECT i, repeat('f', 8000) FROM generate_series(1, 3) i));
sql(q(UPDATE f SET s = s || 'f' WHERE id = 2)) while sql(q(SELECT free > 0 FROM inplace_page('f', (SELECT (ctid::text::point)[0]::int FROM f WHERE id = 2)))) eq 't'
  && sql('SELECT max(length(s)) FROM f') < 8130;
$holder = $node->background_psql('postgres');
$holder->query_safe("BEGIN; SAVEPOINT s$_; SELECT id FROM f WHERE id = 2 FOR KEY SHARE; PREPARE TRANSACTION 'p$_'") foreach 1 .. 3;
$holder->query_safe('BEGIN; ' . join(' ', map { "SELECT id FROM f WHERE id = 2 FOR KEY SHARE; SAVEPOINT s$_; SELECT id FROM f WHERE id = 2 FOR SHARE; ROLLBACK TO s$_;" } 1 .. 300));
is(sql(q(SELECT count(*) FROM inplace_locks('f') WHERE live)), 4, 'lockers of a row of a full page');
is($node->psql('postgres', 'SELECT FROM f WHERE id = 2 FOR UPDATE NOWAIT'), 3, 'FOR UPDATE has to wait');
is($node->psql('postgres', 'SELECT FROM f WHERE id = 2 FOR NO KEY UPDATE NOWAIT'), 0, 'and another does not');
$holder->query_safe('ROLLBACK');
tables_ok($node, 'a full page', 'f');

# ---- prepared transactions ---------------------------------------------------------------

# A row is added to a set that is there without WAL; who prepares logs the sets.  Of 1,000 rows 400 are not locked.
my $free = q(SELECT count(*) FROM (SELECT FROM many FOR UPDATE SKIP LOCKED) x);
my $lock = sub { return "SELECT count(*) FROM (SELECT FROM many WHERE id % $_[0] = 0 FOR UPDATE) x;" };
sql('CREATE TABLE many (id int) USING inplace', 'INSERT INTO many SELECT generate_series(1, 1000)', 'VACUUM many', 'CHECKPOINT');
my $lsn = sql('SELECT pg_current_wal_insert_lsn()');
sql('BEGIN; ' . $lock->(1) . 'COMMIT');
my $logged = q(SELECT coalesce(sum(count), 0) FROM inplace_wal_summary('%s', pg_current_wal_flush_lsn()) WHERE record_type = 'LOCK' AND operation IS NULL);
is(sql(sprintf($logged, $lsn)), sql('SELECT count(DISTINCT (ctid::text::point)[0]) FROM many'), 'one record for the rows of a page');
sql('BEGIN; ' . $lock->(2) . 'SAVEPOINT a;' . $lock->(3) . 'ROLLBACK TO a; SAVEPOINT b;' . $lock->(5) . q(RELEASE b; PREPARE TRANSACTION 'many'));
is(sql($free), 400, 'rows that a prepared transaction has not locked');
# Rows that move under locks of a prepared transaction come to its sets.
my $moved = 'SELECT count(*) FROM (SELECT FROM moving FOR UPDATE SKIP LOCKED) x';
sql('CREATE TABLE moving (id int, v text) USING inplace', "INSERT INTO moving SELECT i, '' FROM generate_series(1, 300) i", 'VACUUM moving',
	q(BEGIN; SELECT count(*) FROM (SELECT FROM moving WHERE id <= 40 FOR KEY SHARE) x; PREPARE TRANSACTION 'moving'),
	q(UPDATE moving SET v = repeat('z', 2000) WHERE id <= 40));
is(sql($moved), 260, 'rows that have moved under a prepared transaction are locked');
# Locks that went with a savepoint concern PREPARE no more, nor does what has come over the table since.
sql('CREATE TABLE taken (id int) USING inplace', 'INSERT INTO taken SELECT generate_series(1, 100)');
my $prepares = $node->background_psql('postgres', on_error_stop => 0);
$prepares->query_safe('BEGIN; SELECT FROM f WHERE id = 1 FOR KEY SHARE; SAVEPOINT a; SELECT count(*) FROM (SELECT FROM taken FOR UPDATE) x;'
	. 'ROLLBACK TO a; SET lock_timeout = 100');
$holder->query_safe('BEGIN; LOCK TABLE taken');
$prepares->query_safe(q(PREPARE TRANSACTION 'other'));
$holder->query_safe('ROLLBACK');
$prepares->query_safe(q(ROLLBACK PREPARED 'other'));
$prepares->quit;
# and all others by one that does not prepare
$holder->query_safe("BEGIN; $free");
is(sql($free), 0, 'all rows are locked');

crash_and_recover($node, 'kill');
is(sql($free), 400, 'the same rows after a crash');
is(sql($moved), 260, 'and those that have moved');
is($node->psql('postgres', 'SELECT FROM f WHERE id = 2 FOR UPDATE NOWAIT'), 3, 'prepared locks survive a crash');
sql("COMMIT PREPARED 'p$_'") foreach 1, 2;
is($node->psql('postgres', 'SELECT FROM f WHERE id = 2 FOR UPDATE NOWAIT'), 3, 'each of them');
$node->wait_for_catchup($standby);
$node->stop;
$standby->promote;
is($standby->psql('postgres', 'SELECT FROM f WHERE id = 2 FOR UPDATE NOWAIT'), 3, 'and a promotion');
is($standby->safe_psql('postgres', $free), 400, 'the same rows after a promotion');
is($standby->safe_psql('postgres', $moved), 260, 'and those that have moved');
$standby->safe_psql('postgres', q(ROLLBACK PREPARED 'moving'));
$standby->safe_psql('postgres', q(COMMIT PREPARED 'many'));
is($standby->safe_psql('postgres', $free), 1000, 'until that transaction ends');
$standby->safe_psql('postgres', q(COMMIT PREPARED 'p3'));
is($standby->psql('postgres', 'SELECT FROM f WHERE id = 2 FOR UPDATE NOWAIT'), 0, 'until they end');
tables_ok($standby, 'promoted', 't', 'l', 'f', 'many', 'moving', 'parent_inplace');
log_ok($node);
log_ok($standby);
done_testing();
