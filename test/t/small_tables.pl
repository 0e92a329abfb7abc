# Tables of one page, and how they grow: no metapage, no free space map, and both when they are wanted.  What a crash leaves
# between the extension of the file and the first record about the new block; many backends at the second block at once.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

use constant BLCKSZ => 8192;

test_seed();
my $node = new_cluster('main', streaming => 1, conf => "autovacuum = off\nmax_prepared_transactions = 5\n");

sql_on(\$node);
sub kinds
{
	return sql("SELECT string_agg(kind, ' ' ORDER BY b) FROM generate_series(0, pg_relation_size('$_[0]') / 8192 - 1) b, inplace_page('$_[0]', b)");
}

# As many updates as it takes to fill the only page of ten rows, while somebody may still see the versions before.
sub fill_page
{
	my ($table) = @_;
	my $reader = $node->background_psql('postgres');
	$reader->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM $table");
	sql("DO \$\$BEGIN FOR i IN 1 .. 60 LOOP UPDATE $table SET n = n + 1; COMMIT; END LOOP; END\$\$");
	return $reader;
}

# ---- one page ----------------------------------------------------------------------------

foreach my $am ('heap', 'inplace')
{
	sql("CREATE TABLE $am (id int PRIMARY KEY, n int) USING $am",
		"INSERT INTO $am SELECT i, 0 FROM generate_series(1, 10) i",
		"DO \$\$BEGIN FOR i IN 1 .. 100 LOOP UPDATE $am SET n = n + 1 WHERE id = 1 + i % 10; COMMIT; END LOOP; END\$\$");
}
is(kinds('inplace'), 'data', 'ten rows: one page');
is(sql("SELECT pg_table_size('inplace')"), BLCKSZ, 'ten rows: no other fork');
cmp_ok(sql("SELECT pg_table_size('inplace')"), '<=', sql("SELECT pg_table_size('heap')"), 'ten rows: no larger than heap');
sql('VACUUM inplace', 'VACUUM heap');
is(kinds('inplace'), 'data', 'after VACUUM: one page');
is(sql("SELECT pg_relation_size('inplace', 'fsm')"), 0, 'after VACUUM: no free space map');
cmp_ok(sql("SELECT pg_table_size('inplace')"), '<=', sql("SELECT pg_table_size('heap')"), 'after VACUUM: no larger than heap');
is(sql(q(SELECT min(ctid) FROM inplace)), '(0,2)', 'the first item is the decoy');
is(sql(q(SELECT count(*) FROM inplace WHERE ctid IN ('(0,1)', '(1,1)', '(2,1)'))), 0, 'no rows are elsewhere');
is(sql(q(SELECT count(*) FROM inplace WHERE ctid >= '(0,1)'), q(SELECT count(*) FROM inplace WHERE ctid >= '(1,0)')), "10\n0", 'TID range');
is(sql('SELECT count(*) FROM inplace TABLESAMPLE system (100)', 'SELECT count(*) FROM inplace TABLESAMPLE bernoulli (100)'), "10\n10", 'TABLESAMPLE');
is(sql('BEGIN', 'DECLARE c SCROLL CURSOR FOR SELECT id FROM inplace', 'MOVE FORWARD ALL IN c', 'FETCH BACKWARD 1 IN c', 'COMMIT') =~ /^\d+$/m, 1, 'backwards');
sql('ANALYZE inplace');
is(sql("SELECT relpages, reltuples FROM pg_class WHERE relname = 'inplace'"), '1|10', 'ANALYZE');
sql('CREATE TABLE as_select USING inplace AS SELECT i AS id, 0 AS n FROM generate_series(1, 10) i',
	'CREATE TEMP TABLE temp (id int, n int) USING inplace',
	'INSERT INTO temp SELECT i, 0 FROM generate_series(1, 10) i',
	'UPDATE temp SET n = 1', 'VACUUM temp',
	q(SELECT 1 / (pg_relation_size('temp') = 8192)::int),
	'VACUUM FULL inplace', 'CLUSTER inplace USING inplace_pkey');
is(pages_of($_), 1, "$_: one page") foreach 'as_select', 'inplace';
tables_ok($node, 'one page', 'inplace', 'as_select');

# ---- the first ring ----------------------------------------------------------------------

foreach my $round (1, 2)
{
	my $reader = fill_page('inplace');
	like(kinds('inplace'), qr/^data meta undo( undo)*$/, "first ring, round $round");
	is(sql("SELECT count(*) FROM inplace_undo_rings('inplace')"), 1, "first ring, round $round: there is one");
	is($reader->query_safe('SELECT sum(n) FROM inplace'), $round == 1 ? 100 : 700, "first ring, round $round: an old snapshot");
	sql('VACUUM inplace');
	like(kinds('inplace'), qr/^data meta undo/, "first ring, round $round: VACUUM keeps what somebody needs");
	is(sql("SELECT pg_relation_size('inplace', 'fsm')"), 0, "first ring, round $round: no free space map");
	tables_ok($node, "first ring, round $round", 'inplace');
	$reader->quit;
	sql('VACUUM inplace');
	sql('VACUUM inplace') if kinds('inplace') ne 'data';
	is(kinds('inplace'), 'data', "first ring, round $round: VACUUM cuts off undo pages and the metapage");
	is(sql('SELECT count(*), sum(n) FROM inplace'), '10|' . (100 + 600 * $round), "first ring, round $round: the rows");
}
sql('DELETE FROM inplace', 'VACUUM inplace');
is(pages_of('inplace'), 0, 'no row is left');
sql('INSERT INTO inplace SELECT i, 0 FROM generate_series(1, 10) i');
is(kinds('inplace'), 'data', 'one page again');
sql('INSERT INTO inplace SELECT i, 0 FROM generate_series(11, 400) i');
is(kinds('inplace'), 'data new data', 'more rows: the block of the metapage is left out');
sql('VACUUM inplace', 'DELETE FROM inplace WHERE ctid > $$(1,0)$$', 'VACUUM inplace');
is(kinds('inplace'), 'data', 'the second page is cut off, and the block before');

# The largest row there can be has no room in block 0.
sql('CREATE TABLE large (id int, t text) USING inplace', 'ALTER TABLE large ALTER t SET STORAGE plain',
	q(INSERT INTO large VALUES (1, repeat('x', 8120))));
is(kinds('large'), 'free new data', 'a row that is too large for block 0');
sql(q(INSERT INTO large VALUES (2, 'small')));
is(kinds('large'), 'data new data', 'which a smaller one takes');
sql(q(TRUNCATE large), q(INSERT INTO large VALUES (1, repeat('x', 8100))), q(UPDATE large SET t = t || repeat('y', 20)));
is(sql('SELECT length(t), ctid FROM large'), '8120|(2,1)', 'a row that becomes too large for block 0');
tables_ok($node, 'large rows', 'large', 'inplace');

# ---- what a crash leaves -------------------------------------------------------------------

foreach my $case (
	[ 'VACUUM', sub { sql('VACUUM inplace'); }, 'data' ],
	[ 'ring',   sub { fill_page('inplace')->quit; }, 'data meta undo' ],
	[ 'rows',   sub { sql('INSERT INTO inplace SELECT i, 0 FROM generate_series(1001, 1600) i'); }, 'data new data' ])
{
	my ($name, $do, $kinds) = @$case;
	sql('TRUNCATE inplace', 'INSERT INTO inplace SELECT i, 0 FROM generate_series(1, 10) i');
	change_file($node, 'inplace', sub { ${ $_[0] } .= "\0" x BLCKSZ; });
	is(kinds('inplace'), 'data new', "crash after extension, $name: the state");
	tables_ok($node, "crash after extension, $name", 'inplace');
	$do->();
	like(kinds('inplace'), qr/^$kinds( |$)/, "crash after extension, $name: what becomes of it");
	is(sql('SELECT count(*) FROM inplace WHERE id <= 10'), 10, "crash after extension, $name: rows");
	tables_ok($node, "crash after extension, then $name", 'inplace');
}
# Everything is new: block 0, and, when others went on, the second, too.
foreach my $n (1 .. 3)
{
	sql('TRUNCATE inplace', 'INSERT INTO inplace VALUES (1, 1)');
	change_file($node, 'inplace', sub { ${ $_[0] } = "\0" x ($n * BLCKSZ); });
	sql('REINDEX TABLE inplace');
	tables_ok($node, "$n new blocks", 'inplace');
	sql('INSERT INTO inplace SELECT i, 0 FROM generate_series(1, 10) i', 'UPDATE inplace SET n = 1', 'VACUUM inplace');
	is(sql('SELECT count(*), sum(n) FROM inplace'), '10|10', "$n new blocks: they are used");
	tables_ok($node, "$n new blocks, used", 'inplace');
}

# Unlogged tables: an empty init fork.
sql('CREATE UNLOGGED TABLE u (id int, n int) USING inplace', 'INSERT INTO u SELECT i, 0 FROM generate_series(1, 10) i', 'CHECKPOINT');
is(sql("SELECT pg_relation_size('u', 'init')"), 0, 'unlogged: empty init fork');
fill_page('u')->quit;
crash_and_recover($node, 'kill');
is(pages_of('u'), 0, 'unlogged: empty after a crash');
sql('INSERT INTO u SELECT i, 0 FROM generate_series(1, 10) i', 'ALTER TABLE u SET LOGGED');
is(pages_of('u'), 1, 'SET LOGGED: one page');
crash_and_recover($node, 'kill');
is(sql('SELECT count(*) FROM u'), 10, 'SET LOGGED: after a crash');
sql('ALTER TABLE u SET UNLOGGED', 'UPDATE u SET n = 1');
tables_ok($node, 'unlogged', 'u');

# ---- many at once ------------------------------------------------------------------------------

# Each new table is filled by all clients, which meet at its second block, its first ring and its metapage.
my $tables = 40;
my $standby = new_standby($node);
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = -1\n");
sql(map { "CREATE TABLE m$_ (id int, n int, t text) USING inplace" } 1 .. $tables);
foreach my $round (1 .. rounds(3))
{
	# one row that all change, and some that the client adds; every second client has undo in rings
	my $load = start_pgbench($node, clients => 8, seconds => 6, args => ['--max-tries=50'],
		scripts => [ [ <<"SQL", 1 ], [ <<"SQL", 1 ] ]);
\\set table random(1, $tables)
INSERT INTO m:table SELECT i, 0, repeat('x', 20) FROM generate_series(1, 10) i;
UPDATE m:table SET n = n + 1 WHERE id = 3;
SQL
\\set table random(1, $tables)
SET inplace.debug_undo_at_home = off;
BEGIN;
UPDATE m:table SET n = n + 1, t = t || 'y' WHERE id = 5;
DELETE FROM m:table WHERE id = 7;
ROLLBACK;
INSERT INTO m:table SELECT i, 0, repeat('y', 20) FROM generate_series(1, 10) i;
TRUNCATE m:table;
INSERT INTO m:table SELECT i, 0, 'first' FROM generate_series(1, 10) i;
SQL
	usleep(random_between(1_000_000, 4_000_000));
	crash_and_recover($node, 'kill');
	finish_pgbench($load);
	tables_ok($node, "many at once, round $round", map { "m$_" } 1 .. $tables);
	is(sql(join ' UNION ALL ', map { "(SELECT 'm$_', kind FROM inplace_page('m$_', 1) WHERE kind NOT IN ('new', 'meta'))" }
				grep { pages_of("m$_") > 1 } 1 .. $tables), '', "many at once, round $round: block 1");
	is(sql(join ' UNION ALL ', map { "(SELECT 'm$_' FROM m$_ HAVING count(*) % 10 <> 0)" } 1 .. $tables), '',
		"many at once, round $round: all rows of each insertion");
}
$node->wait_for_catchup($standby);
same_contents('standby', $node, $standby, map { "m$_" } 1 .. $tables);
is($standby->safe_psql('postgres', join ' UNION ALL ', map { "SELECT problem FROM inplace_check('m$_')" } 1 .. $tables), '', 'standby: sound');
# A reader there, of a table that gets its metapage meanwhile.
my $there = $standby->background_psql('postgres');
sql('TRUNCATE inplace', 'INSERT INTO inplace SELECT i, 0 FROM generate_series(1, 10) i');
$node->wait_for_catchup($standby);
$there->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT sum(n) FROM inplace');
my $holder = fill_page('inplace');
$node->wait_for_catchup($standby);
is($there->query_safe('SELECT count(*), sum(n) FROM inplace'), '10|0', 'standby: a reader');
$there->quit;
$holder->quit;
$standby->stop;

# ---- damage ------------------------------------------------------------------------------------

sub complaint
{
	my ($statement) = @_;
	my (undef, undef, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\n$statement");
	return $stderr;
}

like(kinds('inplace'), qr/^data meta undo/, 'before damage');
my $sound;
change_file($node, 'inplace', sub { $sound = ${ $_[0] }; substr(${ $_[0] }, BLCKSZ, BLCKSZ) = substr $sound, 0, BLCKSZ; });
is(sql('SELECT count(*) FROM inplace'), 10, 'block 1 is a page of rows: it is not read');
like(sql(q(SELECT string_agg(block || ' ' || problem, ', ') FROM inplace_check('inplace'))), qr/1 page (has a decoy|is in the metapage's place)/,
	'block 1 is a page of rows: inplace_check');
is(complaint('BEGIN; SET LOCAL inplace.debug_undo_at_home = off; UPDATE inplace SET n = 0; ROLLBACK'), '',
	'block 1 is a page of rows: an UPDATE makes the metapage anew');
change_file($node, 'inplace', sub { ${ $_[0] } = $sound; substr(${ $_[0] }, BLCKSZ, BLCKSZ) = substr $sound, 0, BLCKSZ; });
like(complaint('VACUUM inplace'), qr/WARNING:  XX001: rebuilding damaged metapage of relation "inplace": it is not a metapage/,
	'block 1 is a page of rows: VACUUM makes the metapage anew, and says so');
sql('VACUUM inplace') foreach 1 .. 2;
tables_ok($node, 'block 1 is a page of rows: afterwards', 'inplace');

change_file($node, 'inplace', sub { ${ $_[0] } = $sound; substr(${ $_[0] }, BLCKSZ, BLCKSZ) = "\0" x BLCKSZ; });
is(sql('SELECT count(*), sum(n) FROM inplace'), '10|600', 'the metapage is gone: rows');
like(sql(q(SELECT string_agg(block || ' ' || problem, ', ') FROM inplace_check('inplace'))), qr/1 table has pages of undo, but no metapage/,
	'the metapage is gone: inplace_check');
sql('SET inplace.debug_undo_at_home = off', 'UPDATE inplace SET n = n + 1');
like(kinds('inplace'), qr/^data meta undo/, 'the metapage is gone: who wants a ring makes it');
# the visibility map is that of a later file
sql('VACUUM (DISABLE_PAGE_SKIPPING) inplace') foreach 1 .. 3;
tables_ok($node, 'the metapage is gone: VACUUM finds its pages', 'inplace');
is(sql('SELECT count(*), sum(n) FROM inplace'), '10|610', 'the metapage is gone: rows after all');

sql('TRUNCATE inplace', 'INSERT INTO inplace SELECT i, 0 FROM generate_series(1, 10) i');
change_file($node, 'inplace', sub { substr(${ $_[0] }, 24, 4) = pack 'L<', 0; });
like(sql(q(SELECT string_agg(block || ' ' || off || ' ' || problem, ', ') FROM inplace_check('inplace'))), qr/^0 1 item is not the page's decoy$/,
	'no decoy: inplace_check');
is(sql('SELECT count(*) FROM inplace'), 10, 'no decoy: rows can be read');
change_file($node, 'inplace', sub { substr(${ $_[0] }, 24, 4) = pack 'L<', 0xFFFFFFFF; });
is(sql('SELECT count(*) FROM inplace'), 10, 'damaged decoy: rows can be read');
sql('INSERT INTO inplace VALUES (11, 0)');
like(complaint('VACUUM inplace'), qr/WARNING:  XX001: rebuilding damaged first item of block 0 of relation "inplace"/,
	'damaged decoy: VACUUM makes it anew, and says so');
tables_ok($node, 'damaged decoy: afterwards', 'inplace');
is(sql('SELECT count(*) FROM inplace'), 11, 'damaged decoy: all rows are there');

# An undo page that is all zeros is not taken for a new page: scans of larger tables leave it out.
# Nor is it cut off, to come again as a new page.
foreach my $before ('SELECT 1', 'VACUUM inplace')
{
	sql('TRUNCATE inplace', 'INSERT INTO inplace SELECT i, 0 FROM generate_series(1, 10) i');
	my $holder = fill_page('inplace');
	sql(q(DO $$BEGIN FOR i IN 1 .. 1000 LOOP UPDATE inplace SET n = n + 1; COMMIT; END LOOP; END$$));
	$holder->quit;
	my $last = pages_of('inplace') - 1;
	cmp_ok($last, '>', 10, 'a long ring');
	is(change_pages($node, 'inplace', sub { my ($page, $block) = @_; return $block == $last ? "\0" x BLCKSZ : undef; }), 1,
		'an undo page is all zeros');
	sql($before, q(INSERT INTO inplace SELECT i, 0 FROM generate_series(11, 20000) i));
	cmp_ok(pages_of('inplace'), '>', $last + 1, 'the table has grown since');
	is(sql('SELECT count(*) FROM inplace'), 20000, "a zeroed undo page, $before: all rows are read");
}

# ---- rows that move --------------------------------------------------------------------------

# Line pointers of rows that have moved, and undo records at home, need no room for a version block: pages take as many rows as before.
$node->safe_psql('postgres', q(
CREATE TABLE moving_h (id int PRIMARY KEY, k int, v text) USING heap WITH (autovacuum_enabled = off);
CREATE TABLE moving_i (id int PRIMARY KEY, k int, v text) USING inplace WITH (autovacuum_enabled = off);
CREATE INDEX ON moving_h (k);
CREATE INDEX ON moving_i (k);
INSERT INTO moving_h SELECT i, i, 'value ' || i FROM generate_series(1, 2000) i;
INSERT INTO moving_i SELECT * FROM moving_h;
));
foreach my $round (1 .. 2)
{
	$node->safe_psql('postgres', "DO \$\$ BEGIN FOR r IN 1 .. 4000 LOOP
		UPDATE moving_$_ SET k = k + 5000 WHERE id = hashint4(r) & 1023; COMMIT; END LOOP; END \$\$;") foreach qw(h i);
	$node->safe_psql('postgres', "VACUUM moving_$_") foreach qw(h i);
}
is($node->safe_psql('postgres', q(SELECT pg_relation_size('moving_i') < 1.8 * pg_relation_size('moving_h'))), 't',
	'a table whose rows move is not much larger than heap\'s');

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP:/, 'no crash of its own');
done_testing();
