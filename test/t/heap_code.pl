# What stock heap code does when it is let loose on our tables.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('main', conf => 'autovacuum = off');
create_heap_code($node);

# Which functions there are, and what heap_update looks at first, depends on the minor release, too.
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');
my $major   = int($version / 10000);

# Is this a release from so many on, in its major version?  The newest majors have it from the beginning.
sub since { my (%minor) = @_; return $version % 10000 >= ($minor{$major} // 0); }
my %lacks = (
	inplace_update          => $major >= 18,
	inplace_lock_and_update => !since(15 => 9, 16 => 5, 17 => 1));
my $asks_normal = since(15 => 11, 16 => 7, 17 => 3);

# ---- on a heap, the functions do what they are for ---------------------------------------

$node->safe_psql('postgres', q(
CREATE TABLE h (id int PRIMARY KEY, body text) USING heap;
INSERT INTO h SELECT i, 'row ' || i FROM generate_series(1, 20) i));
my @calls = (
	[ 'insert',             undef,    q(ROW(101, 'new')::h),   '(0,21)' ],
	[ 'multi_insert',       undef,    q(ROW(102, 'new')::h),   '(0,22)' ],
	[ 'simple_insert',      undef,    q(ROW(103, 'new')::h),   '(0,23)' ],
	[ 'catalog_insert',     undef,    q(ROW(104, 'new')::h),   '(0,24)' ],
	[ 'update',             '(0,1)',  q(ROW(1, 'newer')::h),   'ok' ],
	[ 'simple_update',      '(0,2)',  q(ROW(2, 'newer')::h),   '(0,26)' ],
	[ 'catalog_update',     '(0,3)',  q(ROW(3, 'newer')::h),   '(0,27)' ],
	[ 'inplace_update',     '(0,4)',  q(ROW(4, 'ROW 4')::h),   'done' ],
	[ 'inplace_lock_and_update', '(0,10)', q(ROW(10, 'ROW 10')::h), 'done' ],
	[ 'delete',             '(0,5)',  undef,                   'ok' ],
	[ 'simple_delete',      '(0,6)',  undef,                   'done' ],
	[ 'catalog_delete',     '(0,7)',  undef,                   'done' ],
	[ 'lock_key_share',     '(0,8)',  undef,                   'ok' ],
	[ 'lock_share',         '(0,8)',  undef,                   'ok' ],
	[ 'lock_no_key_update', '(0,8)',  undef,                   'ok' ],
	[ 'lock_update',        '(0,8)',  undef,                   'ok' ],
	[ 'fetch',              '(0,9)',  undef,                   '1' ],
	[ 'fetch',              '(0,5)',  undef,                   '0' ],
	[ 'fetch_any',          '(0,5)',  undef,                   '1' ],
	[ 'hot_search',         '(0,1)',  undef,                   '1' ],
	[ 'latest_tid',         '(0,1)',  undef,                   '(0,25)' ],
	[ 'prune',              '(0,1)',  undef,                   'done' ],
	[ 'scan',               undef,    undef,                   '21' ],
	[ 'getnext',            undef,    undef,                   '21' ],
	[ 'catalog_scan',       undef,    undef,                   '21' ],
	[ 'index_build',        undef,    undef,                   '21' ]);

sub call
{
	my ($rel, $what, $tid, $row) = @_;
	return sprintf "SELECT heap_code('%s', '%s', %s, %s)", $what, $rel, $tid ? "'$tid'" : 'NULL', $row // 'NULL';
}

foreach my $c (@calls)
{
	my ($what, $tid, $row, $answer) = @$c;
	if ($lacks{$what})
	{
		my (undef, undef, $stderr) = $node->psql('postgres', call('h', $what, $tid, $row));
		like($stderr, qr/ERROR:  no function "$what"/, "heap: $what is not there");
		next;
	}
	is($node->safe_psql('postgres', call('h', $what, $tid, $row)), $answer, "heap: $what");
}

is($node->safe_psql('postgres', q(SELECT string_agg(body, ',' ORDER BY id) FROM h WHERE body ~ '^ROW')),
	join(',', (map { $lacks{$_->[0]} ? () : $_->[1] } [ inplace_update => 'ROW 4' ], [ inplace_lock_and_update => 'ROW 10' ])),
	'heap: rows that were overwritten');

# ---- on an inplace table, what would change a row fails before it writes --------------------

# Core's assertions say that a line pointer is a tuple's; production servers do not ask.
my $asserts = $node->safe_psql('postgres', 'SHOW debug_assertions') eq 'on';
$node->safe_psql('postgres', q(
CREATE TABLE i (id int PRIMARY KEY, body text) USING inplace;
INSERT INTO i SELECT i, 'row ' || i FROM generate_series(1, 400) i;
UPDATE i SET body = body || ', changed' WHERE id % 3 = 0;
BEGIN; UPDATE i SET body = 'aborted' WHERE id % 5 = 0; ROLLBACK;
DELETE FROM i WHERE id % 7 = 0));
my $rows = $node->safe_psql('postgres', 'SELECT id, body FROM i ORDER BY id');
# [function, new row, what happens; at each of the first rows of block 0, of which the first item is the decoy]
my $not_updated = $asks_normal ? qr/ERROR:  tuple concurrently deleted/ : qr/ERROR:  attempted to update invisible tuple/;
my @refused = (
	[ 'update',             q(ROW(1, 'heap')::i), $asks_normal ? qr/^deleted$/ : $not_updated ],
	[ 'simple_update',      q(ROW(1, 'heap')::i), $not_updated ],
	[ 'catalog_update',     q(ROW(1, 'heap')::i), $not_updated ],
	[ 'inplace_update',     q(ROW(1, 'row 1')::i), qr/ERROR:  invalid lp/ ],
	[ 'inplace_lock_and_update', q(ROW(1, 'row 1')::i), qr/ERROR:  attempted to overwrite invisible tuple/ ],
	[ 'delete',             undef, qr/ERROR:  attempted to delete invisible tuple/ ],
	[ 'simple_delete',      undef, qr/ERROR:  attempted to delete invisible tuple/ ],
	[ 'catalog_delete',     undef, qr/ERROR:  attempted to delete invisible tuple/ ],
	[ 'lock_key_share',     undef, qr/^invisible$/ ],
	[ 'lock_update',        undef, qr/^invisible$/ ],
	[ 'finish_speculative', undef, qr/ERROR:  invalid lp/ ],
	[ 'abort_speculative',  undef, qr/ERROR:  / ],
	[ 'fetch',              undef, qr/^0$/ ],
	[ 'fetch_any',          undef, qr/^0$/ ],
	[ 'hot_search',         undef, qr/^0$/ ],
	[ 'latest_tid',         undef, qr/^\(0,\d+\)$/ ],
	[ 'prune',              undef, qr/^done$/ ]);
foreach my $c (@refused)
{
	my ($what, $row, $answer) = @$c;
	next if $lacks{$what} || $asserts && $what =~ /^(update|delete|simple_|catalog_|inplace_|lock_|abort_)/;
	my %answers;
	foreach my $off (2 .. 21)
	{
		my ($ret, $stdout, $stderr) = $node->psql('postgres', call('i', $what, "(0,$off)", $row));
		$answers{ $ret == 0 ? $stdout : $stderr } = $off;
	}
	is(join('', grep { $_ !~ $answer } keys %answers), '', "inplace: $what");
	is($node->safe_psql('postgres', 'SELECT id, body FROM i ORDER BY id'), $rows, "inplace: $what changes nothing");
}
# undo records are no tuples either
my $undo = $node->safe_psql('postgres', q(SELECT min(b) FROM generate_series(1, pg_relation_size('i') / 8192 - 1) b,
	inplace_page('i', b) WHERE kind = 'undo'));
foreach my $c (grep { !$asserts && $_->[0] =~ /^(update|delete|lock_update|fetch)$/ } @refused)
{
	my ($what, $row, $answer) = @$c;
	my %answers;
	foreach my $off (1 .. 100)
	{
		my ($ret, $stdout, $stderr) = $node->psql('postgres', call('i', $what, "($undo,$off)", $row));
		$answers{ $ret == 0 ? $stdout : $stderr } = $off;
	}
	is(join('', grep { $_ !~ $answer } keys %answers), '', "inplace: $what at undo records");
}
my (undef, undef, $refused) = $node->psql('postgres', call('i', 'scan'));
like($refused, qr/ERROR:  MultiXactId 4294967295 does no longer exist/, 'inplace: scan');
(undef, undef, $refused) = $node->psql('postgres', call('i', 'getnext'));
like($refused, qr/ERROR:  only heap AM is supported/, 'inplace: getnext');
is($node->safe_psql('postgres', call('i', 'catalog_scan')), scalar(() = $rows =~ /^/gm), 'inplace: catalog_scan') if !$asserts;
tables_ok($node, 'all that was refused', 'i');
$node->safe_psql('postgres', 'UPDATE i SET body = body || 1; VACUUM i');
tables_ok($node, 'all that was refused, then changes', 'i');

# ---- the whole file under heap's access method ----------------------------------------------

$node->safe_psql('postgres', q(
CREATE TABLE k (id int, body text) USING inplace;
INSERT INTO k SELECT i, 'row ' || i FROM generate_series(1, 1000) i));
# heap's CREATE INDEX follows the chains of a page that has a tuple: it must not get to items of rows, whose "chains" lead anywhere
is($node->safe_psql('postgres', q(CHECKPOINT;
	SELECT get_byte(pg_read_binary_file(pg_relation_filepath('k'), 8144 + 19, 1), 0) & 64)), '64', 'the decoy is the begin of a chain');
my $set_am = q(UPDATE pg_class SET relam = (SELECT oid FROM pg_am WHERE amname = '%s') WHERE relname = 'k');
$node->safe_psql('postgres', sprintf $set_am, 'heap');
foreach my $statement ('SELECT count(*) FROM k', 'VACUUM k', 'VACUUM (FREEZE) k', 'VACUUM FULL k', 'ANALYZE k',
	'UPDATE k SET id = 0', 'DELETE FROM k', 'CREATE INDEX ON k (id)')
{
	my (undef, undef, $stderr) = $node->psql('postgres', $statement);
	like($stderr, qr/ERROR:  MultiXactId 4294967295 does no longer exist/, "under heap: $statement");
}
$node->safe_psql('postgres', sprintf $set_am, 'inplace');
is($node->safe_psql('postgres', 'SELECT count(*), sum(id) FROM k'), '1000|500500', 'and back: nothing is lost');
tables_ok($node, 'and back', 'k');

# ---- an insertion cannot be refused; what it leaves behind is found -------------------------

foreach my $what ('insert', 'multi_insert', 'simple_insert')
{
	$node->safe_psql('postgres', 'DROP TABLE IF EXISTS j; CREATE TABLE j (id int, body text) USING inplace;
		INSERT INTO j SELECT i, $$row $$ || i FROM generate_series(1, 10) i');
	my $at = $node->safe_psql('postgres', call('j', $what, undef, q(ROW(101, 'heap')::j)));
	my (undef, undef, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT count(*) FROM j");
	like($stderr, qr/ERROR:  XX001: .*relation "j"/, "inplace: $what at $at: a scan stops at the tuple");
	is($node->safe_psql('postgres', q(SELECT body FROM j WHERE ctid = '(0,4)')), 'row 3',
		"inplace: $what: other rows can be read");
	isnt($node->safe_psql('postgres', 'SELECT count(*) FROM inplace_check($$j$$)'), '0',
		"inplace: $what: inplace_check finds it");
}

# ---- an older snapshot is asked for versions that a query has seen -------------------------------

# As pg_ivm asks, for what a table was before the command.  A TID of the query is the version that the query saw, as in heap.
foreach my $am ('heap', 'inplace')
{
	$node->safe_psql('postgres', "DROP TABLE IF EXISTS n; CREATE TABLE n (id int PRIMARY KEY, v int, k int) USING $am;
		CREATE INDEX ON n (k); INSERT INTO n SELECT i, 0, i FROM generate_series(1, 12) i; UPDATE n SET v = 1 WHERE id = 12");
	my $writer = $node->background_psql('postgres');
	$writer->query_safe($_) foreach 'BEGIN', 'UPDATE n SET v = 1 WHERE id IN (9, 10)', 'DELETE FROM n WHERE id = 11';
	my $asker = $node->background_psql('postgres');
	$asker->query_safe($_) foreach 'BEGIN', 'UPDATE n SET v = 2 WHERE id IN (1, 2)', 'DELETE FROM n WHERE id = 3',
	  'UPDATE n SET v = 2 WHERE id = 8', call('n', 'note_snapshot'), 'UPDATE n SET v = 3 WHERE id IN (2, 4)',
	  'UPDATE n SET k = -k WHERE id = 5', 'DELETE FROM n WHERE id = 6', 'INSERT INTO n VALUES (13, 0, 13)', 'SAVEPOINT s',
	  'UPDATE n SET v = 4 WHERE id = 7', 'ROLLBACK TO s', 'UPDATE n SET v = 5 WHERE id = 8';
	my $ask = "SELECT id, v, heap_code('fetch_noted', tableoid, ctid) FROM n ORDER BY id";
	my %seen = (1 => '2|seen', 2 => '3|not seen', 4 => '3|not seen', 5 => '0|not seen', 8 => '5|not seen', 12 => '1|seen',
		13 => '0|not seen', map { $_ => '0|seen' } 7, 9, 10, 11);
	my $expected = sub { join "\n", map { "$_|$seen{$_}" } sort { $a <=> $b } keys %seen };
	is($asker->query_safe($ask), $expected->(), "$am: an older snapshot, another transaction runs");
	$writer->query_safe('COMMIT');
	$seen{9} = $seen{10} = '1|not seen';
	delete $seen{11};
	is($asker->query_safe($ask), $expected->(), "$am: the other transaction has committed");
	$asker->query_safe($_) foreach call('n', 'forget_snapshot'), 'COMMIT';
	# amcheck asks a newer one whether rows are there at all
	$asker->query_safe($_) foreach 'BEGIN', 'DECLARE c CURSOR FOR ' . $ask;
	$writer->query_safe('UPDATE n SET v = 6 WHERE id = 12');
	$asker->query_safe(call('n', 'note_snapshot'));
	like($asker->query_safe('FETCH ALL FROM c'), qr/^12\|1\|seen$/m, 'inplace: a newer snapshot sees the row') if $am eq 'inplace';
	$asker->query_safe($_) foreach call('n', 'forget_snapshot'), 'COMMIT';
	$_->quit foreach $writer, $asker;
}

# ---- a snapshot of logical decoding ------------------------------------------------------------

$node->safe_psql('postgres', 'CREATE TABLE historic (id int, v int) USING inplace; INSERT INTO historic SELECT i, i FROM generate_series(1, 10) i; UPDATE historic SET v = 0');
my (undef, undef, $historic) = $node->psql('postgres', call('historic', 'historic_scan'));
like($historic, qr/ERROR:  inplace table "historic" cannot be read during logical decoding/, 'a historic snapshot is refused');

my $log = slurp_file($node->logfile);
unlike($log, qr/PANIC|TRAP:|terminated by signal/, 'no crash');
$node->stop;
done_testing();
