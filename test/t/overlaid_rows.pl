# Rows whose version block covers their first bytes, which are in an undo record on the same page: it stays as long as they need it.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

test_seed();
my $node = new_cluster('main', streaming => 1, conf => "autovacuum = off\nsynchronous_commit = off\nbgwriter_lru_maxpages = 0\nwal_buffers = 16MB\nwal_consistency_checking = 'inplace'\n");

sql_on(\$node);

# The row's flags, and what kinds of undo records it has on the page.
sub state_of
{
	my ($id) = @_;
	return sql("SELECT concat_ws(': ', nullif((SELECT array_to_string(flags, ' ') FROM inplace_rows('t', 0) WHERE off = $id + 1), ''),
		(SELECT string_agg(kind, ' ') FROM inplace_undo_records('t', 0) WHERE row_tid = ('(0,' || $id + 1 || ')')::tid))");
}

sub flush { return sql('SET synchronous_commit = on', q(SELECT pg_logical_emit_message(true, '', ''))); }

# While the WAL writer is stopped, nobody flushes what commits.
sub signal_walwriter
{
	my ($signal) = @_;
	kill $signal, sql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'");
	return;
}

sub make_table
{
	sql('DROP TABLE IF EXISTS t', 'CREATE TABLE t (id int, n int, s text) USING inplace',
		q(INSERT INTO t SELECT i, 1000 * i, repeat('s', 60) FROM generate_series(1, 60) i), 'VACUUM t', 'CHECKPOINT');
	return;
}

# So many changes of another row that the page has to be pruned.
sub prune_page
{
	my ($synchronous_commit) = @_;
	sql('SET enable_seqscan = off', 'SET synchronous_commit = ' . ($synchronous_commit // 'off'), 'DO $$BEGIN FOR i IN 1 .. 200 LOOP UPDATE t SET n = n + 1 WHERE ctid = $x$(0,41)$x$; COMMIT; END LOOP; END$$');
	return;
}

my $deleted;

# Another transaction keeps the page's default changer busy meanwhile, so that the row gets a version block.
sub delete_with_record
{
	my $changer = $node->background_psql('postgres');
	$changer->query_safe('BEGIN; DELETE FROM t WHERE id = 60');
	sql('DELETE FROM t WHERE id = 1');
	$deleted = sql('SELECT pg_current_wal_insert_lsn()');
	$changer->query_safe('ROLLBACK');
	$changer->quit;
	is(state_of(1), "version deleted overlaid: delete", 'a deleted row, its first bytes in its record');
	return;
}

# ---- a deletion that all see, but that a crash may take back -------------------------------

make_table();
signal_walwriter('STOP');
delete_with_record();
prune_page();
is(sql("SELECT greatest(pg_current_wal_flush_lsn(), pg_current_wal_lsn()) < '$deleted'"), 't', 'the deletion is not on disk');
is(state_of(1), '', 'pruned: row and record have gone');
is(sql("SELECT state, len FROM inplace_rows('t', 0) WHERE off = 2"), 'dead|0', 'its item is dead');
tables_ok($node, 'not flushed', 't');
is(sql('SELECT count(*), min(id) FROM t'), '59|2', 'it is deleted');
signal_walwriter('CONT');

# What the crash takes back: the row has all of its bytes again.
make_table();
signal_walwriter('STOP');
delete_with_record();
prune_page();
is(sql("SELECT greatest(pg_current_wal_flush_lsn(), pg_current_wal_lsn()) < '$deleted'"), 't', 'the deletion is not on disk');
crash_and_recover($node, 'kill');
tables_ok($node, 'after a crash', 't');
is(sql('SELECT id, n, s = repeat($$s$$, 60) FROM t WHERE id = 1'), '1|1000|t', 'the row is what it was');

# Flushed, it goes.
make_table();
delete_with_record();
prune_page('on');
is(state_of(1), '', 'flushed: pruned');
tables_ok($node, 'flushed', 't');

# ---- a snapshot and a lock that hold on ----------------------------------------------------

make_table();
my $reader = $node->background_psql('postgres');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
sql('UPDATE t SET id = -id WHERE id < 4');
is(state_of(2), "version overlaid: update", 'an updated row');
my $locker = $node->background_psql('postgres');
$locker->query_safe('BEGIN; SELECT * FROM t WHERE id = -2 FOR KEY SHARE');
sql('VACUUM t');
is(state_of(1), "version overlaid: update", 'the snapshot needs the record');
is($reader->query_safe('SELECT string_agg(id::text, $$ $$ ORDER BY id) FROM t WHERE id < 5'), '1 2 3 4', 'and sees what it did');
is(sql('SELECT string_agg(id::text, $$ $$ ORDER BY id) FROM t WHERE id < 5'), '-3 -2 -1 4', 'others see the change');
tables_ok($node, 'a snapshot', 't');
$reader->query_safe('COMMIT');
sql('VACUUM t');
is(state_of(1), '', 'without it, the row is plain');
is(state_of(2), '', 'and so is the locked one');
is(sql('SELECT string_agg(id::text, $$ $$ ORDER BY id) FROM t WHERE id < 5'), '-3 -2 -1 4', 'all is as it was');
tables_ok($node, 'a lock', 't');
$locker->query_safe('COMMIT');
$_->quit foreach $reader, $locker;
sql('VACUUM t');
is(sql(q(SELECT count(*) FROM inplace_rows('t', 0) WHERE flags <> '{}')), 0, 'after VACUUM all rows are plain');

# ---- records that do not have the bytes go ---------------------------------------------------

make_table();
foreach my $n (1 .. 5) { sql("BEGIN; UPDATE t SET id = -1 WHERE id = 1; ROLLBACK"); }
$locker = $node->background_psql('postgres');
$locker->query_safe('BEGIN; UPDATE t SET id = -1 WHERE id = 1');
is(state_of(1), 'version overlaid: update update update update update update', 'rolled back five times, and changed once more');
prune_page();
is(state_of(1), 'version overlaid: update', 'one record is left');
$locker->query_safe('ROLLBACK');
$locker->quit;
is(sql('SELECT id, n FROM t WHERE n = 1000'), '1|1000', 'the row is what it was');
tables_ok($node, 'rolled back', 't');

log_ok($node, 'primary, so far', 0);

# ---- damage of one record does not stop changes of other rows --------------------------------

make_table();
sql('UPDATE t SET id = -id WHERE id = 1');
my $off = sql(q(SELECT off FROM inplace_undo_records('t', 0) WHERE row_tid = '(0,2)'));
is(change_pages($node, 't', sub {
		my ($page, $block) = @_;
		return undef if $block != 0;
		my $item = (unpack('V', substr $page, 24 + 4 * ($off - 1), 4) & 0x7FFF) + 20;
		substr($page, $item + 3, 4) = pack 'V', unpack('V', substr $page, $item + 3, 4) - 1;
		return $page;
	}), 1, 'a record has another xid');
prune_page();
is(sql('SET enable_seqscan = off', 'SELECT n FROM t WHERE ctid = $$(0,41)$$'), 40200, 'another row is changed');
cmp_ok(sql(q(SELECT sum(records) FROM inplace_undo_rings('t'))), '>', 10, 'its undo is elsewhere');
like(sql(q(SELECT string_agg(problem, ' ') FROM inplace_check('t'))), qr/overlaid row has no undo record with its first bytes/,
	'inplace_check tells');
my ($status, $stdout, $stderr) = $node->psql('postgres', 'SELECT * FROM t');
like($stderr, qr/ERROR:  undo record \(0,$off\) of row \(0,2\) of relation "t" is missing/, 'the row cannot be read');

# A scan takes the short way to such a row: not to one in a state that there is none of, and not by a record that says nonsense of what was before.
foreach my $damage ([ 'the state of a row that was inserted, too', 2 ], [ 'a previous version that there is none of', 0 ])
{
	my ($what, $is_row) = @$damage;
	# the first bytes, 4 and zeros, are a pointer to what a transaction of the future has done, and its cid
	sql('DROP TABLE t', 'CREATE TABLE t (id bigint, n bigint, pad char(60)) USING inplace WITH (autovacuum_enabled = off)',
		q(INSERT INTO t SELECT 4, i, '' FROM generate_series(1, 50) i), 'VACUUM t', 'UPDATE t SET n = -n WHERE n = 1');
	is(state_of(1), 'version overlaid: update', 'a row with a record at home');
	$off = sql(q(SELECT off FROM inplace_undo_records('t', 0) WHERE row_tid = '(0,2)'));
	change_pages($node, 't', sub {
			my ($page, $block) = @_;
			return undef if $block != 0;
			my $line = $is_row ? 2 : $off;
			my $item = (unpack('V', substr $page, 24 + 4 * ($line - 1), 4) & 0x7FFF) + 20;
			# IP_ROW_INSERTED; IP_REC_PREV
			substr($page, $item + $is_row, 1) = chr(ord(substr $page, $item + $is_row, 1) | ($is_row ? 0x04 : 0x10));
			return $page;
		});
	($status, $stdout, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT id, n FROM t");
	like($stderr, qr/ERROR:  XX001: .*\(0,(2|$off)\)/, "a scan meets $what");
}
my $log = -s $node->logfile;

# ---- a full page: locks, and rollbacks, on top of a row whose record is at home --------------

sub free_bytes { return sql(q(SELECT free FROM inplace_page('t', 0))); }

my $ids = 'SELECT string_agg(id::text, $$ $$ ORDER BY abs(id)) FROM t WHERE abs(id) < 5';
foreach my $hold (0, 1)
{
	make_table();
	my $holder = $node->background_psql('postgres');
	$holder->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
	sql('UPDATE t SET id = -id WHERE id < 4');
	prune_page();
	sql(q(SET enable_seqscan = off), q(UPDATE t SET s = s || 'x' WHERE ctid = '(0,51)')) while free_bytes() >= 10;
	is(state_of(1), 'version overlaid: update', 'a full page');
	is($holder->query_safe($ids), '1 2 3 4', 'its old snapshot');
	$holder->query_safe('COMMIT') if !$hold;
	# the page is not pruned any more before it has to be
	my $top = $node->background_psql('postgres');
	$top->query_safe('BEGIN; SELECT * FROM t WHERE id = -2 FOR KEY SHARE; UPDATE t SET id = 10 * id WHERE id = -3; SAVEPOINT s; UPDATE t SET id = 30 WHERE id = -30');
	like(state_of(2), $hold ? qr/^version overlaid: update$/ : qr/^(version overlaid: update)?$/, "a lock on top, held $hold");
	is(sql($ids), '-1 -2 -3 4', 'what others see');
	tables_ok($node, "a full page, held $hold", 't');
	sql('VACUUM t');
	is(sql($ids), '-1 -2 -3 4', 'what others see after VACUUM');
	tables_ok($node, "a full page after VACUUM, held $hold", 't');
	$top->query_safe('ROLLBACK');
	sql('VACUUM t');
	like(state_of(3), $hold ? qr/^version overlaid: update$/ : qr/^$/, "rolled back, held $hold");
	is(sql($ids), '-1 -2 -3 4', 'what others see after the rollback');
	is($holder->query_safe($ids), $hold ? '1 2 3 4' : '-1 -2 -3 4', 'what the holder sees');
	tables_ok($node, "a full page after the rollback, held $hold", 't');
	$_->quit foreach $holder, $top;
}

# ---- a standby, and replay of each kind of change of such rows -----------------------------

my $standby = new_standby($node);
make_table();
sql('CREATE INDEX ON t (n)');
sql('BEGIN', 'UPDATE t SET s = upper(s) WHERE id = 40', 'UPDATE t SET n = n + 1 WHERE id = 40', 'COMMIT');
sql('UPDATE t SET s = upper(s) WHERE id < 30', 'BEGIN', 'UPDATE t SET id = id + 100 WHERE id < 10', 'SAVEPOINT s',
	'UPDATE t SET s = $$x$$ || s WHERE id > 105', 'DELETE FROM t WHERE id = 103', 'UPDATE t SET n = n + 1 WHERE id = 104',
	'ROLLBACK TO s', 'UPDATE t SET n = n + 1 WHERE id = 104', 'DELETE FROM t WHERE id = 105', 'COMMIT',
	'BEGIN', 'UPDATE t SET id = 0', 'ROLLBACK', 'UPDATE t SET s = lower(s) WHERE id BETWEEN 20 AND 25');
my $all = 'SELECT md5(string_agg(t::text, $$ $$ ORDER BY id)) FROM t';
my $contents = sql($all);
flush();
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', $all), $contents, 'a standby reads such rows');
prune_page();
sql('VACUUM t');
$contents = sql($all);
flush();
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', $all), $contents, 'and what becomes of them');
tables_ok($node, 'in the end', 't');
$standby->promote;
is($standby->safe_psql('postgres', $all), $contents, 'after promotion');
tables_ok($standby, 'after promotion', 't');
log_ok($node, 'primary', $log);
log_ok($standby, 'standby', 0);
done_testing();
