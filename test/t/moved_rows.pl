# Rows that their page's default changer has moved: where to is in the page's list of moves, and there is no undo record.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

test_seed();
my $node = new_cluster('main', streaming => 1, conf => "autovacuum = off\ninplace.debug_heal = off\nmax_prepared_transactions = 5\nwal_consistency_checking = 'inplace'\n");

sql_on(\$node);

my $rows = 400;
my $sums = 'SELECT count(*), sum(id), sum(n), sum(length(s)) FROM t';
my $grow = q(UPDATE t SET s = s || repeat('+', 100));

# Full pages, so that what grows moves to other pages.
sub make_table
{
	my ($more) = @_;
	sql('DROP TABLE IF EXISTS t', 'CREATE TABLE t (id int PRIMARY KEY, n int, s text) USING inplace',
		qq(INSERT INTO t SELECT i, i, repeat('s', 100) FROM generate_series(1, $rows) i), $more // 'SELECT', 'VACUUM t', 'CHECKPOINT');
	return;
}

# How many rows the pages' default changers have moved, how many others have moved, and how many lists there are.
sub moves
{
	return sql(q(WITH pages AS (SELECT b FROM generate_series(0, pg_relation_size('t') / 8192 - 1) b WHERE (inplace_page('t', b)).kind = 'data'),
		rows AS (SELECT flags FROM pages, LATERAL inplace_rows('t', b))
		SELECT count(*) FILTER (WHERE flags @> '{moved,changed}'), count(*) FILTER (WHERE flags @> '{moved,version}'),
			(SELECT count(*) FROM pages, LATERAL inplace_undo_records('t', b) WHERE kind = 'moves') FROM rows));
}

sub lists { return (split /\|/, moves())[2]; }

my @sessions;

sub session
{
	my ($begin) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query($begin);
	push @sessions, $session;
	return $session;
}

sub quit { $_->quit foreach splice @sessions; return; }

# ---- who sees what, commit, VACUUM ----------------------------------------------------------

make_table();
my $old = sql($sums);
my $reader = session("BEGIN ISOLATION LEVEL REPEATABLE READ; $sums");
my $writer = session("BEGIN; $grow");
my ($changed, $others, $lists) = split /\|/, moves();
cmp_ok($changed, '>', $rows / 2, 'most rows are in lists');
is($others, 0, 'none has an undo record');
cmp_ok($lists, '>', 3, 'a list for each page that rows have left');
is(sql(q(SELECT count(*) FROM inplace_undo_rings('t'))), 0, 'there is no ring');
is(sql($sums), $old, 'others do not see it');
like($writer->query($sums), qr/^$rows\|\d+\|\d+\|@{[200 * $rows]}$/, 'the mover does');
tables_ok($node, 'running', 't');
is(sql(q(SELECT count(*) FROM inplace_versions('t', (SELECT ctid FROM t WHERE id = 300)))), 2, 'both versions are known');
$writer->query('COMMIT');
is($reader->query($sums), $old, 'an old snapshot does not see it');
is($reader->query('SELECT sum(length(s)) FROM (SELECT s FROM t WHERE id BETWEEN 100 AND 200 ORDER BY id) x'), 10100, 'nor by the index');
like(sql($sums), qr/\|@{[200 * $rows]}$/, 'new ones do');
sql('VACUUM t');
is(moves(), "$changed|0|$lists", 'VACUUM leaves what the snapshot needs');
is($reader->query($sums), $old, 'which still sees it');
quit();
sql('VACUUM t');
is(moves(), '0|0|0', 'then the lists go, too');
tables_ok($node, 'committed', 't');

# ---- rollback, savepoints, and once more ----------------------------------------------------

make_table();
sql('BEGIN', $grow, 'ROLLBACK');
is(sql($sums), $old, 'rolled back');
is(moves(), "$changed|0|$lists", 'nothing is done for that');
tables_ok($node, 'rolled back', 't');
sql('VACUUM t');
is(moves(), '0|0|0', 'but by VACUUM');
is(sql($sums), $old, 'the rows are what they were');

# A list that is there is emptied by the next default changer, with an unused item in front of it, too.
foreach my $unused (0, 1)
{
	make_table($unused ? 'DELETE FROM t WHERE id % 57 = 0' : undef);
	sql('BEGIN', $grow, 'ROLLBACK', 'BEGIN', 'SAVEPOINT s', $grow, 'ROLLBACK TO s', $grow, 'SAVEPOINT s', 'UPDATE t SET n = -n',
		'ROLLBACK TO s', 'COMMIT');
	is(sql('SELECT count(*), min(length(s)), max(length(s)), min(n) FROM t'), sql('SELECT count(*), 200, 200, 1 FROM t'),
		"rolled back twice, and done again, unused $unused");
	cmp_ok((split /\|/, moves())[0], '>', $rows / 2, 'by default changers');
	tables_ok($node, "done again, unused $unused", 't');
	sql('VACUUM t', 'VACUUM t');
	is(moves(), '0|0|0', 'all can go');
}

# ---- locks on top, and waiters ----------------------------------------------------------------

foreach my $end ('COMMIT', 'ROLLBACK')
{
	make_table();
	$writer = session("BEGIN; $grow");
	my $locker = session('BEGIN; SELECT count(*) FROM (SELECT FROM t WHERE id BETWEEN 300 AND 303 FOR KEY SHARE) x');
	my ($in_lists, $with_records) = split /\|/, moves();
	is($with_records, 0, 'rows that another transaction has locked have no undo records');
	tables_ok($node, 'locked', 't');
	# these wait for the mover, and for the locker
	my $waiter = session('SELECT');
	$waiter->query_until(qr/waits/, "\\echo waits\nUPDATE t SET n = -n WHERE id = 200;\nDELETE FROM t WHERE id = 302;\n\\echo done\n");
	my $later = session('SELECT');
	$later->query_until(qr/waits/, "\\echo waits\nBEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t; UPDATE t SET n = 0 WHERE id = 201;\n\\echo done\n");
	$node->poll_query_until('postgres', q(SELECT count(*) = 2 FROM pg_stat_activity WHERE wait_event_type = 'Lock')) or die;
	$writer->query($end);
	$later->query_until(qr/done/, '');
	like($later->{stderr}, $end eq 'COMMIT' ? qr/could not serialize access due to concurrent update/ : qr/^$/,
		"REPEATABLE READ, $end");
	$later->query('COMMIT');
	$node->poll_query_until('postgres', q(SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock')) or die;
	is(sql('SELECT n FROM t WHERE id = 200'), -200, "the waiter has found the row, $end");
	is(sql('SELECT count(*) FROM t WHERE id = 302'), 1, 'the lock holds');
	$locker->query('COMMIT');
	$waiter->query_until(qr/done/, '');
	is(sql('SELECT count(*), min(length(s)) FROM t'), ($rows - 1) . '|' . ($end eq 'COMMIT' ? 200 : 100), 'and then not');
	tables_ok($node, "after $end", 't');
	quit();
	sql('VACUUM t');
	is(moves(), '0|0|0', "after $end all can go");
}

# A new key keeps FOR KEY SHARE out; and a list has both kinds.
make_table('CREATE INDEX ON t (n)');
$writer = session("BEGIN; MERGE INTO t USING (SELECT generate_series(1, 60) AS i) x ON id = i
	WHEN MATCHED AND id % 3 = 0 THEN UPDATE SET id = id + 1000 WHEN MATCHED AND id % 3 = 1 THEN UPDATE SET n = n + 1 WHEN MATCHED THEN DELETE");
cmp_ok((split /\|/, moves())[0], '>=', 20, 'moved, deleted, and moved with another key');
is(sql('SELECT count(*) FROM (SELECT FROM t WHERE id BETWEEN 1 AND 60 FOR KEY SHARE SKIP LOCKED) x'), 20, 'FOR KEY SHARE skips new keys and deletions');
$writer->query('COMMIT');
is(sql('SELECT count(*), sum(n) FROM t WHERE id < 61'), '20|610', 'the rows that were changed');
tables_ok($node, 'two kinds', 't');
quit();

# ---- a list in the place of a record ----------------------------------------------------------

# A reader by TID has unlocked the page, and is about to look at a record on it, when that goes, and a list takes its item.
sql('CREATE TABLE r (id int PRIMARY KEY, k int, n int, s text) USING inplace', 'ALTER TABLE r ALTER s SET STORAGE plain', 'CREATE INDEX ON r (k)',
	q(INSERT INTO r SELECT i, i, i, repeat('s', 720) FROM generate_series(1, 10) i), 'VACUUM r');
$writer = session('BEGIN; UPDATE r SET n = 0 WHERE id = 10');
my $held = $node->background_psql('postgres', on_error_stop => 0);
my $record = sql(q(SELECT off FROM inplace_undo_records('r', 0)));
my $tid = sql('SELECT ctid FROM r WHERE id = 10');
SKIP:
{
	skip 'a server without injection points', 2 if !has_points();
	$held->query_safe('SET enable_seqscan = off');
	my $answer = at_point($held, 'inplace-satisfy', "SELECT id, n FROM r WHERE ctid = '$tid'", sub {
		$writer->query('ROLLBACK');
		sql('VACUUM r', 'UPDATE r SET k = 100 WHERE id = 1');
		is(sql(q(SELECT off || kind FROM inplace_undo_records('r', 0))), "${record}moves", 'where that was there is a list');
	});
	is($answer, "10|10\n", 'the reader begins anew');
}
$held->quit;
quit();

# ---- two-phase commit, crashes, a standby -----------------------------------------------------

my $standby = new_standby($node);
make_table();
my $on_standby = $standby->background_psql('postgres');
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
$on_standby->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; $sums");
sql('BEGIN', $grow, q(PREPARE TRANSACTION 'p'));
my $key_share = session('BEGIN; SELECT count(*) FROM (SELECT FROM t WHERE id = 300 FOR KEY SHARE) x');
sql(q(SELECT pg_logical_emit_message(true, '', '')));	# which flushes what is before
crash_and_recover($node, 'kill');
quit();
is(sql($sums), $old, 'prepared, and the server killed');
is(moves(), "$changed|0|$lists", 'it is all there');
tables_ok($node, 'prepared', 't');
sql(q(COMMIT PREPARED 'p'));
like(sql($sums), qr/\|@{[200 * $rows]}$/, 'committed');
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is($on_standby->query_safe($sums), $old, 'an old snapshot on a standby does not see it');
$on_standby->query_safe('COMMIT');
$on_standby->quit;
sql(q(INSERT INTO t SELECT i, i, 'new' FROM generate_series(1001, 1100) i), 'BEGIN', $grow, 'ROLLBACK', 'UPDATE t SET n = n + 1 WHERE id < 100', 'BEGIN', $grow);
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is($standby->safe_psql('postgres', $sums), sql($sums), 'a standby has the same');
sql('VACUUM t');
same_contents('rows of both', $node, $standby, 't');
$standby->promote;
$standby->safe_psql('postgres', "VACUUM t; $grow; DELETE FROM t WHERE id % 2 = 0");
tables_ok($standby, 'promoted', 't');
log_ok($node, 'primary', 0);
log_ok($standby, 'standby', 0);
$standby->stop;

# ---- damage ---------------------------------------------------------------------------------------

make_table();
sql($grow);
my $block = sql(q(SELECT min(b) FROM generate_series(2, 5) b, LATERAL inplace_undo_records('t', b) WHERE kind = 'moves'));
my $before = sql("SELECT count(*) FROM t WHERE ctid < '($block,0)'");
my $off = sql(qq(SELECT off FROM inplace_undo_records('t', $block) WHERE kind = 'moves'));
is(change_pages($node, 't', sub {
		my ($page, $at) = @_;
		return undef if $at != $block;
		my $item = (unpack('V', substr $page, 24 + 4 * ($off - 1), 4) & 0x7FFF) + 20;
		substr($page, $item + 3, 2) = pack 'S<', 290;
		return $page;
	}), 1, 'a list begins with another row');
is(sql("SELECT count(*) FROM t WHERE ctid < '($block,0)'"), $before, 'other pages can be read');
my ($status, $stdout, $stderr) = $node->psql('postgres', "SELECT inplace_versions('t', '($block,20)')", extra_params => ['--set=VERBOSITY=verbose']);
like($stderr, qr/ERROR:  XX001: corrupted row \($block,20\) of relation "t": row has moved, but its page does not say where to/, 'an error');
like(sql(q(SELECT string_agg(DISTINCT problem, ' ') FROM inplace_check('t'))), qr/list of moves has a run of impossible rows/, 'inplace_check tells');
($status, $stdout, $stderr) = $node->psql('postgres', 'VACUUM t', extra_params => ['--set=VERBOSITY=verbose']);
like($stderr, qr/ERROR:  XX001: corrupted row/, 'VACUUM stops');

done_testing();
