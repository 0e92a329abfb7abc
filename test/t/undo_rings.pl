# Rings of undo pages that backends share stay short.  A damaged ring stops no backend that does not use it: other backends
# do not borrow it, and one that had goes back to its own.  Where its links or records are damaged, it goes on without
# them.  Nor does a damaged row stop changes of others, and no damage is taken for a version of a row.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use constant {
	BLCKSZ       => 8192,
	META_BLOCK   => 1,
	HEADER_SIZE  => 24,		# of a page; then come the line pointers
	PD_LOWER     => 12,		# where the page header says where the line pointers end,
	PD_SPECIAL   => 16,		# and where the special space begins
	NEXT_OFFSET  => 8,		# in the special space of an undo page
	SLOT_OFFSET  => 12,
	FLAGS_OFFSET => 14,
	SLOTS_OFFSET => 32		# in the metapage
};

my $node = new_cluster('main', conf => "autovacuum = off\ninplace.debug_heal = off\ninplace.debug_undo_at_home = off\nmax_prepared_transactions = 5\n");
$node->safe_psql(
	'postgres', q(
CREATE TABLE base (id int PRIMARY KEY, n int) USING inplace;
INSERT INTO base SELECT i, 0 FROM generate_series(1, 5000) i;
));

sub rings
{
	return map { [ split /\|/ ] } split /\n/, $node->safe_psql('postgres',
		"SELECT slot, current FROM inplace_undo_rings('base') WHERE pages > 8 ORDER BY 1");
}

my $change = 'UPDATE base SET n = n + 1';
my $newest = "SELECT slot FROM inplace_undo_rings('base') ORDER BY newest_xid DESC NULLS LAST LIMIT 1";

# Two sessions with one ring, of which either does not know what the other has used up.
my @sessions;
my %sharing;
while (!grep { @$_ == 2 } values %sharing)
{
	push @sessions, $node->background_psql('postgres');
	$sessions[-1]->query_safe("$change WHERE id = 1");
	push @{ $sharing{ $node->safe_psql('postgres', $newest) } }, $sessions[-1];
}
my ($slot) = grep { @{ $sharing{$_} } == 2 } keys %sharing;
my $seed = $ENV{INPLACE_SEED} // 1;
note("INPLACE_SEED=$seed");
srand($seed);
$node->safe_psql('postgres', q(
CREATE TABLE wide (id int, f text) USING inplace;
INSERT INTO wide SELECT i, repeat(md5(i::text), 20) FROM generate_series(1, 1000) i));
for (1 .. 200)
{
	my $from = int rand 990;
	my $to   = $from + (1, 1, 3, 10)[ rand 4 ];
	$sharing{$slot}[ rand 2 ]->query_safe(
		"BEGIN; UPDATE wide SET f = reverse(f) WHERE id > $from AND id <= $to; ROLLBACK");
}
cmp_ok($node->safe_psql('postgres', "SELECT max(pages) FROM inplace_undo_rings('wide')"),
	'<=', 6, 'a ring that two sessions share stays short');
$_->quit foreach @sessions;

# So does one of many clients, whose undo is at home mostly: each looks whether the oldest page can be used again in time.
$node->safe_psql(
	'postgres', q(
CREATE TABLE shared (id int PRIMARY KEY, v int, pad text) USING inplace WITH (autovacuum_enabled = off);
ALTER TABLE shared ALTER pad SET STORAGE plain;
INSERT INTO shared SELECT i, 0, repeat(md5(i::text), 9) FROM generate_series(1, 5000) i;
VACUUM shared;
ALTER TABLE shared SET (fillfactor = 50);
INSERT INTO shared SELECT i, 0, repeat(md5(i::text), 9) FROM generate_series(10001, 15000) i;
VACUUM shared));
{
	local $ENV{PGOPTIONS} = '-c inplace.debug_undo_at_home=on';
	my $at_home = "\\set id random(10001, 15000)\nUPDATE shared SET v = v + 1 WHERE id = :id;\n";
	my $aborted = "\\set id random(0, 199)\nBEGIN;\n"
	  . "UPDATE shared SET v = v + 1, pad = repeat(md5(v::text), 9) WHERE id BETWEEN :id * 25 + 1 AND :id * 25 + 3;\nROLLBACK;\n";
	my $result = finish_pgbench(start_pgbench($node, clients => 24, seconds => 5, scripts => [ [ $at_home, 19 ], [ $aborted, 1 ] ]));
	is($result->{errors}, '', "many clients' ring");
	note("$result->{transactions} transactions");
}
cmp_ok($node->safe_psql('postgres', "SELECT sum(pages) FROM inplace_undo_rings('shared')"), '<=', 12, 'it stays short');

# The newest xid on a ring's pages may be one of a transaction that has logged nothing: after a crash it is none that is still to come.
{
	my ($writer, $other) = map { $node->background_psql('postgres') } 1 .. 2;
	$node->safe_psql('postgres', 'CREATE TABLE crashed USING inplace AS SELECT i AS id, 0 AS n FROM generate_series(1, 1000) i; CHECKPOINT');
	$other->query_safe('CREATE TEMP TABLE x (i int)');
	$writer->query_safe('BEGIN; SELECT pg_current_xact_id()');
	$other->query_safe(join ";\n", 'BEGIN', map { "SAVEPOINT s$_; INSERT INTO x VALUES ($_)" } 1 .. 30);
	$writer->query_safe('UPDATE crashed SET n = 1; COMMIT');
	$node->stop('immediate');
	$node->start;
	tables_ok($node, "xids that have logged nothing, and a crash", 'crashed');
	is($node->safe_psql('postgres', 'UPDATE crashed SET n = n + 1; SELECT sum(n) FROM crashed'), 2000, 'and the ring is used');
	$_->quit foreach $writer, $other;
}

# Long rings of several slots, by sessions side by side while a snapshot is held.
my $reader = $node->background_psql('postgres');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM base');
my @writers = map { $node->background_psql('postgres') } 1 .. 4;
$_->query_safe($change) foreach @writers;
$_->quit foreach @writers;
$reader->quit;
my @rings = rings();
cmp_ok(scalar @rings, '>=', 3, 'several slots have long rings');

# Each kind of damage: to a copy of the table, in all rings but one.
my %damages = (
	'current page is not marked as such' => sub {
		my ($file, $block) = @_;
		substr($$file, special($file, $block) + FLAGS_OFFSET, 2) = pack 'S<', 0;
	},
	'oldest page is of another slot' => sub {
		my ($file, $block) = @_;
		my $next = unpack 'L<', substr $$file, special($file, $block) + NEXT_OFFSET, 4;
		substr($$file, special($file, $next) + SLOT_OFFSET, 2) = pack 'S<', 15;
	},
	'oldest page is beyond the end' => sub {
		my ($file, $block) = @_;
		substr($$file, special($file, $block) + NEXT_OFFSET, 4) = pack 'L<', 100_000;
	},
	'oldest page is the metapage' => sub {
		my ($file, $block) = @_;
		substr($$file, special($file, $block) + NEXT_OFFSET, 4) = pack 'L<', META_BLOCK;
	},
	'record of the oldest page that has one is damaged' => sub {
		my ($file, $block) = @_;
		substr($$file, item($file, oldest_record($file, $block), 1), 1) = chr 0x7f;
	},
	'oldest page with a record, which is damaged, leads to itself' => sub {
		my ($file, $block) = @_;
		$block = oldest_record($file, $block);
		substr($$file, item($file, $block, 1), 1) = chr 0x7f;
		substr($$file, special($file, $block) + NEXT_OFFSET, 4) = pack 'L<', $block;
	},
	'oldest page is a data page' => sub {
		my ($file, $block) = @_;
		substr($$file, special($file, $block) + NEXT_OFFSET, 4) = pack 'L<', 0;
	},
	'slot leads to the oldest page, and that beyond the end' => sub {
		my ($file, $block) = @_;
		my $oldest = lead_to_oldest($file, $block);
		substr($$file, special($file, $oldest) + NEXT_OFFSET, 4) = pack 'L<', 100_000;
	},
	'two pages are marked as current' => sub {
		my ($file, $block) = @_;
		my $next = unpack 'L<', substr $$file, special($file, $block) + NEXT_OFFSET, 4;
		substr($$file, special($file, $next) + FLAGS_OFFSET, 2) = pack 'S<', 1;
	},
	'current page leads to another ring\'s' => sub {
		my ($file, $block) = @_;
		my ($other) = grep { $_->[1] != $block } @rings;
		substr($$file, special($file, $block) + NEXT_OFFSET, 4) = pack 'L<', $other->[1];
	},
	'oldest page leads into another ring' => sub {
		my ($file, $block) = @_;
		my ($other) = grep { $_->[1] != $block } @rings;
		my $next = unpack 'L<', substr $$file, special($file, $block) + NEXT_OFFSET, 4;
		substr($$file, special($file, $next) + NEXT_OFFSET, 4) = pack 'L<', $other->[1];
	});

# Let the metapage's slot lead to the oldest page of the ring with that current page; which it is.
sub lead_to_oldest
{
	my ($file, $block) = @_;
	my ($next, $slot) = unpack 'L<S<', substr $$file, special($file, $block) + NEXT_OFFSET, 6;
	substr($$file, META_BLOCK * BLCKSZ + SLOTS_OFFSET + 8 * $slot, 4) = pack 'L<', $next;
	seal_metapage($file);
	return $next;
}

# The oldest page of the ring that has records.
sub oldest_record
{
	my ($file, $block) = @_;
	do
	{
		$block = unpack 'L<', substr $$file, special($file, $block) + NEXT_OFFSET, 4;
	} until unpack('S<', substr $$file, $block * BLCKSZ + PD_LOWER, 2) > HEADER_SIZE;
	return $block;
}

sub special
{
	my ($file, $block) = @_;
	my $page = $block * BLCKSZ;
	return $page + unpack 'S<', substr $$file, $page + PD_SPECIAL, 2;
}

# Where the item starts in the file.
sub item
{
	my ($file, $block, $off) = @_;
	my $page = $block * BLCKSZ;
	# an item begins 20 bytes behind its line pointer's offset
	return $page + 20 + (0x7fff & unpack 'L<', substr $$file, $page + HEADER_SIZE + 4 * ($off - 1), 4);
}

# Start the server with these contents of a file.
sub start_with
{
	my ($file, $contents) = @_;
	unlink $node->data_dir . "/$file";
	append_to_file($node->data_dir . "/$file", $contents);
	$node->start;
	return;
}

# The first session after a start always has the same slot.
$node->restart;
my $sound = $node->safe_psql('postgres', "$change WHERE id = 1; $newest");
note("slots with long rings: @{[map { $_->[0] } @rings]}; the first session's: $sound");

my $path = $node->safe_psql('postgres', "SELECT pg_relation_filepath('base')");
$node->stop;
my $main = slurp_file($node->data_dir . "/$path");

foreach my $damage (sort keys %damages)
{
	my $file = $main;
	$damages{$damage}->(\$file, $_->[1]) foreach grep { $_->[0] != $sound } @rings;
	start_with($path, $file);

	my $writer = $node->background_psql('postgres', on_error_stop => 0);
	$writer->query_safe("$change WHERE id = 1");
	my $holder = $node->background_psql('postgres');
	$holder->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM base');
	# its own ring cannot be used again: it asks for others
	$writer->query($change) foreach 1 .. 2;
	is($writer->{stderr}, '', "$damage: others are not stopped");
	$writer->query_safe("$change WHERE id = 1");
	$writer->quit;
	$holder->quit;

	my ($status, $stdout) =
	  $node->psql('postgres', "SELECT count(*) > 0 FROM inplace_check('base')");
	is($status, 0, "$damage: inplace_check() can be used");
	is($stdout, 't', "$damage: inplace_check() finds it");
	if ($damage !~ /^current/)
	{
		my $wal = $node->lsn('insert');
		is($node->psql('postgres', 'VACUUM base'), 0, "$damage: VACUUM gets by");
		cmp_ok($node->safe_psql('postgres', "SELECT pg_current_wal_insert_lsn() - '$wal'"),
			'<', 10_000_000, "$damage: and ends");
		my @all = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 16;
		$_->query($change) foreach @all;
		is(join('', map { $_->{stderr} } @all), '', "$damage: nobody is stopped any more");
		$_->quit foreach @all;
		# what a ring has lost comes back, unless it cannot be read
		$node->safe_psql('postgres', 'VACUUM base') foreach 1 .. 3;
		my $lost = $node->safe_psql('postgres', q(
			SELECT count(*) FROM inplace_check('base') WHERE problem LIKE 'undo page is not in ring%'));
		is($lost, '0', "$damage: VACUUM finds the pages that are in no ring") if $damage !~ /record/;
	}
	$node->stop;
}

# A slot that leads to the oldest page of its ring leads to the current one all the same.
{
	my $file = $main;
	lead_to_oldest(\$file, $_->[1]) foreach @rings;
	start_with($path, $file);
	# the visibility map is that of a later file
	my $check = "SELECT * FROM inplace_check('base') WHERE problem !~ 'visibility map'";
	is($node->safe_psql('postgres', $check), '', 'slots may lead to any page of their rings');
	is_deeply([ rings() ], \@rings, 'inplace_undo_rings() finds the current pages');
	my @all = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 16;
	$_->query("$change WHERE id = 1") foreach @all;
	is(join('', map { $_->{stderr} } @all), '', 'and so do writers');
	$_->quit foreach @all;
	is($node->safe_psql('postgres', $check), '', 'the rings are whole afterwards');
	$node->stop;
}

# A backend that changes the very data page that its ring leads to does not wait for itself.
{
	my $file = $main;
	substr($file, special(\$file, $_->[1]) + NEXT_OFFSET, 4) = pack 'L<', 0 foreach @rings;
	start_with($path, $file);
	my @all = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 16;
	foreach my $one (@all)
	{
		$one->query("UPDATE base SET n = n + 1 WHERE ctid < '(1,0)'") foreach 1 .. 3;
	}
	is(join('', map { $_->{stderr} } @all), '', 'rings lead to the data page that is changed');
	$_->quit foreach @all;
	$node->stop;
}

# The rows that an undo page's records are about may be gone, and their page be an undo page itself, with more items than a data page has.
start_with($path, $main);
my $log_size = -s $node->logfile;
$node->safe_psql('postgres', q(
CREATE TABLE reused (id int, b bool) USING inplace;
INSERT INTO reused SELECT i, false FROM generate_series(1, 3000) i));
my $snapshot = $node->background_psql('postgres');
my $writer   = $node->background_psql('postgres');
$snapshot->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM reused');
$writer->query_safe(
	'BEGIN; INSERT INTO reused SELECT -i, false FROM generate_series(1, 3000) i; UPDATE reused SET b = true WHERE id < 0; ROLLBACK');
my $end_of_rows = $node->safe_psql('postgres', q(SELECT 1 + max((ctid::text::point)[0]) FROM reused));
$writer->query_safe('VACUUM reused');
$writer->query_safe('UPDATE reused SET b = NOT b') for 1 .. 8;
cmp_ok($node->safe_psql('postgres', qq(
SELECT max((SELECT count(*) FROM inplace_undo_records('reused', b))) FROM generate_series($end_of_rows, pg_relation_size('reused') / 8192 - 1) b)),
	'>', 291, 'an undo page with more records than a page has rows');
$snapshot->quit;
my $pages = $node->safe_psql('postgres', q(SELECT sum(pages) FROM inplace_undo_rings('reused')));
$writer->query_safe('UPDATE reused SET b = NOT b') for 1 .. 16;
is($node->safe_psql('postgres', q(SELECT sum(pages) FROM inplace_undo_rings('reused'))), $pages, 'all are used again');
tables_ok($node, 'rows that are gone', 'reused');
log_ok($node, 'rows that are gone', $log_size);
$writer->quit;
$node->stop;

# A row with an aborted change is in the way of using its undo page again: damage of the row, or of the record.
start_with($path, $main);
my ($status, $facts) = $node->psql('postgres', q(
CREATE TABLE d (id int, n int, t text) USING inplace;
INSERT INTO d SELECT i, 0, 'before' FROM generate_series(1, 5000) i;
BEGIN;
UPDATE d SET n = n + 1, t = 'XXX' WHERE id = 1;
ROLLBACK;
SELECT pg_relation_filepath('d'), ctid, current FROM d, inplace_undo_rings('d') WHERE id = 1 AND current > 0;));
is($status, 0, 'an aborted change');
my ($damaged, $block, $off, $undo) = $facts =~ /^(.*)\|\((\d+),(\d+)\)\|(\d+)$/;
$node->stop;
my $original = slurp_file($node->data_dir . "/$damaged");

# Where in the row, or in the record (kind, flags, xid in one byte, row's TID), and what comes there.
my $row = item(\$original, $block, $off);
my $record = item(\$original, $undo, 1);
# its last hunk: number of hunks, bytes to copy, bytes to put, n, t with its length
my $text = index($original, 'before', $record) - 1;
is(unpack('H*', substr $original, $text - 7, 8), '010416000000000f', 'the record has the old values');
my %replacements = (
	'value in a delta reaches beyond the row' => [ $text,        "\x7f" ],
	'row has too many columns'                => [ $row,         "\xff\x1e" ],
	'row points to a record that is not there' => [ $row + 11,    pack('S<', 99) ],
	'row points to its own page'              => [ $row + 7,     pack('L<', $block) ],
	'record of an unknown kind'               => [ $record,      "\x7f" ],
	'record of a transaction to come'         => [ $record + 2,  "\xfe\xff\x7f" ],
	'record about a row of the metapage'      => [ $record + 3,  chr META_BLOCK ],
	'record without length'                   => [ $undo * BLCKSZ + HEADER_SIZE + 2, "\x00\x00" ],
	'delta for a longer row'                  => [ $text - 6,    "\x7f\x7f" ]);

foreach my $damage (sort keys %replacements)
{
	my ($at, $bytes) = @{ $replacements{$damage} };
	my $file = $original;
	substr($file, $at, length $bytes) = $bytes;
	start_with($damaged, $file);

	# one of them has the ring with the aborted change
	my @others = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 16;
	foreach my $other ((@others) x 6)
	{
		$other->query("UPDATE d SET n = n + 1 WHERE ctid > '(12,0)'");
	}
	is(join('', grep { /ERROR/ } map { $_->{stderr} } @others), '', "$damage: changes of other rows are not stopped");
	$_->quit foreach @others;
	is($node->safe_psql('postgres', "SELECT DISTINCT n FROM d WHERE ctid > '(12,0)'"), '96', "$damage: they are there");
	cmp_ok($node->safe_psql('postgres', "SELECT max(pages) FROM inplace_undo_rings('d')"),
		'<=', 24, "$damage: rings do not grow for ever");
	is($node->safe_psql('postgres', "SELECT count(*) > 0 FROM inplace_check('d')"),
		't', "$damage: inplace_check() finds it");
	$node->stop;
}

# Damage must not become part of a row for ever, nor bring down the server when somebody holds a lock on the row.
start_with($damaged, $original);
my $facts2 = $node->safe_psql('postgres', q(
DROP TABLE d;
CREATE TABLE d (id int, t text) USING inplace;
ALTER TABLE d ALTER t SET STORAGE plain;
INSERT INTO d SELECT i, 'bbbbbbbb' FROM generate_series(1, 50) i;
BEGIN;
UPDATE d SET t = repeat('X', 1000) WHERE id = 1;
PREPARE TRANSACTION 'update';
BEGIN;
SELECT FROM d WHERE id = 1 FOR KEY SHARE;
PREPARE TRANSACTION 'lock';
ROLLBACK PREPARED 'update';
SELECT pg_relation_filepath('d'), max(current) FROM inplace_undo_rings('d');));
my ($locked, $records) = $facts2 =~ /^(.*)\|(\d+)$/;
$node->stop;
$original = slurp_file($node->data_dir . "/$locked");
$record   = item(\$original, $records, 1);
# its hunk: bytes to copy, to put, to drop; t's length
$text     = index($original, 'bbbbbbbb', $record) - 4;
is(unpack('H*', substr $original, $text - 4, 8), '0419ec0730000000', 'the record has the old value');
# behind kind, flags; xid as the difference to the page's, the row's TID
is(unpack('H*', substr $original, $record + 2, 4), '00000201', 'and the xid of who inserted it');
%replacements = (
	'version shorter than any row'                => [ $text - 4,   "\x00\x19\xf0\x07\x01" ],
	'delta that ends before its record'           => [ $text - 3,   "\x17" ],
	'version of a transaction that is to come'    => [ $record + 5, "\x7e" ]);
foreach my $damage (sort keys %replacements)
{
	my ($at, $bytes) = @{ $replacements{$damage} };
	my $file = $original;
	substr($file, $at, length $bytes) = $bytes;
	start_with($locked, $file);
	my $expected = qr/^psql:<stdin>:1: ERROR:  (corrupted (version|undo record)|row body ends|undo record .* does not fit its row)/;
	foreach my $statement ('UPDATE d SET id = 1 WHERE id = 1', 'DELETE FROM d WHERE id = 1',
		'SELECT FROM d WHERE id = 1 FOR SHARE', 'SELECT count(*) FROM d')
	{
		# these need not look at t; a deletion waits for the lock
		next if $damage =~ /shorter/ && $statement =~ /^DELETE|SHARE/;
		my ($failed, undef, $stderr) = $node->psql('postgres', $statement);
		like($stderr, $expected, "$damage: $statement");
	}
	# an error too, but not where the lock tells it to leave the row alone
	$node->psql('postgres', 'VACUUM d');
	like($node->safe_psql('postgres', q(SELECT state FROM inplace_rows('d', 0) WHERE off = 2)),
		qr/^(updated|overlaid|frozen)$/, "$damage: after VACUUM the row is still there");
	$node->stop;
}

done_testing();
