# What comes across damage on its way to something else: redo, rings whose metapage was made anew, writers that look for a
# page, a prune of other rows, VACUUM FULL.  None hides it, takes what is damaged for what is gone, or fails for it.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use constant {
	BLCKSZ      => 8192,
	HEADER_SIZE => 24,
	PRUNE_XID   => 20,    # pd_prune_xid
	NRUNS       => 28     # in the metapage
};

my $node = new_cluster('main', conf => q(
autovacuum = off
full_page_writes = off
max_prepared_transactions = 5
inplace.debug_undo_at_home = off
));

sql_on(\$node);

sub path { return $node->data_dir . '/' . sql("SELECT pg_relation_filepath('$_[0]')"); }

# Change bytes of the file where it is.
sub change_bytes
{
	my ($file, $at, $change) = @_;
	open my $f, '+<:raw', $file or die "$file: $!";
	sysseek $f, $at, 0 or die $!;
	sysread $f, my $bytes, 4;
	sysseek $f, $at, 0 or die $!;
	syswrite $f, $change->($bytes);
	close $f or die $!;
	return;
}

sub flip { my ($file, $at) = @_; return change_bytes($file, $at, sub { $_[0] ^ "\1" }); }

sub log_since { my ($size) = @_; return slurp_file($node->logfile, $size); }

# A long ring of undo pages; a session that has it.
sub long_ring
{
	my ($table) = @_;
	sql("CREATE TABLE $table (id int PRIMARY KEY, n int) USING inplace", "INSERT INTO $table SELECT i, 0 FROM generate_series(1, 4000) i");
	my $holder = $node->background_psql('postgres');
	my $writer = $node->background_psql('postgres');
	$holder->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM $table");
	$writer->query_safe("UPDATE $table SET n = n + 1") foreach 1 .. 10;
	$holder->quit;
	$writer->query_safe("UPDATE $table SET n = n + 1");
	return $writer;
}

# ---- redo ----------------------------------------------------------------------------------

# A damaged metapage stays one when redo changes it.
{
	my $writer = long_ring('redone');
	my $file = path('redone');
	sql('CHECKPOINT');
	# longer, so the metapage is told
	my $holder = $node->background_psql('postgres');
	$holder->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM redone');
	$writer->query_safe('UPDATE redone SET n = n + 1') foreach 1 .. 5;
	kill9_all($node);
	flip($file, BLCKSZ + NRUNS + 4 + 4);
	$_->quit foreach $holder, $writer;
	$node->start;
	like(sql(q(SELECT problem FROM inplace_check('redone') WHERE block = 1)), qr/wrong checksum of its own/, 'redo leaves a damaged metapage damaged');
	is(sql('SELECT count(*), min(n), max(n) FROM redone'), '4000|16|16', 'and rows are what they were');
	like(answer('VACUUM redone'), qr/WARNING:  XX001: rebuilding damaged metapage of relation "redone": metapage has a wrong checksum/,
		'VACUUM sees it');
}

# ---- a metapage that was made anew ---------------------------------------------------------

# A ring whose metapage was made anew goes on.
SKIP:
{
	skip 'no pg_buffercache_evict', 3 if $node->pg_version < 17;
	sql('CREATE EXTENSION pg_buffercache');
	my $writer = long_ring('anew');
	sql('CHECKPOINT');
	flip(path('anew'), BLCKSZ + NRUNS);
	sql(q(SELECT pg_buffercache_evict(bufferid) FROM pg_buffercache
		WHERE relfilenode = pg_relation_filenode('anew') AND relforknumber = 0 AND relblocknumber = 1));
	my $log = -s $node->logfile;
	sql('BEGIN', 'SELECT FROM anew WHERE id = 1 FOR UPDATE', 'COMMIT');
	like(log_since($log), qr/rebuilding metapage of relation "anew": /, 'a row lock makes the metapage anew');
	my $pages = sql(q(SELECT pg_relation_size('anew') / 8192));
	$writer->query_safe('UPDATE anew SET n = n + 1') foreach 1 .. 6;
	# relation caches are built anew, while the current page is near what the metapage tells, or not
	foreach my $target (50 .. 99)
	{
		sql("ALTER TABLE anew ALTER n SET STATISTICS $target");
		$writer->query_safe('UPDATE anew SET n = n + 1 WHERE id <= 1000');
	}
	unlike(log_since($log), qr/is given up/, 'the ring is found, and not given up');
	is(sql(q(SELECT pg_relation_size('anew') / 8192)), $pages, 'and goes on with its pages');
	$writer->quit;
}

# ---- a prune of other rows -----------------------------------------------------------------

# Two items share their bytes: other rows of the page are changed all the same.
{
	sql('SET inplace.debug_undo_at_home = on', 'CREATE TABLE shared (id int PRIMARY KEY, n int, t text) USING inplace',
		'ALTER TABLE shared ALTER t SET STORAGE plain', q(INSERT INTO shared SELECT i, 0, repeat('s', 100) FROM generate_series(1, 60) i));
	sql('UPDATE shared SET n = 1 WHERE id > 10');
	change_file($node, 'shared', sub {
		my ($bytes) = @_;
		substr($$bytes, HEADER_SIZE + 4 * 5, 4) = substr $$bytes, HEADER_SIZE + 4 * 4, 4;
		substr($$bytes, PRUNE_XID, 4) = pack 'L<', 0;
	});
	like(sql(q(SELECT string_agg(problem, ',') FROM inplace_check('shared'))), qr/gap or overlap/, 'items overlap');
	is(sql(q(SELECT count(*) > 0, bool_and((block, problem) IN (SELECT block, problem FROM inplace_check('shared'))) FROM inplace_check_all() WHERE relation = 'shared'::regclass)),
		't|t', 'inplace_check_all finds the same');
	is(answer('SET enable_seqscan = off', q(UPDATE shared SET n = n + 1, t = t || repeat('x', 200) WHERE id BETWEEN 20 AND 25)), '',
		'rows of a page with items that overlap are changed');
	is(sql('SELECT count(*) FROM shared WHERE length(t) = 300'), 6, 'and are what they should be');
}

# ---- VACUUM FULL ---------------------------------------------------------------------------

# A value of which a row is lost: the row of the table is left out.
{
	sql('CREATE TABLE toasted (id int, t text) USING inplace', 'ALTER TABLE toasted ALTER t SET STORAGE external',
		q(INSERT INTO toasted SELECT i, repeat(i::text, 3000) FROM generate_series(11, 30) i), 'UPDATE toasted SET id = id WHERE id = 12');
	my $toast = sql(q(SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 'toasted'));
	my $block = sql("SELECT (ctid::text::point)[0]::int FROM $toast ORDER BY chunk_id LIMIT 1");
	change_pages($node, $toast, sub { my ($page, $b) = @_; return $b == $block ? "\0" x BLCKSZ : undef; });
	like(answer('VACUUM FULL toasted'), qr/ERROR:  XX001: could not read TOAST value/, 'a value in TOAST is lost');
	my $said = answer('SET zero_damaged_pages = on', 'VACUUM FULL toasted');
	like($said, qr/WARNING:  XX001: row \(0,\d+\) of relation "toasted" is left out: could not read TOAST value/, 'VACUUM FULL leaves out its row');
	unlike($said, qr/ERROR/, 'and ends well');
	my $left = sql('SELECT count(*) FROM toasted');
	cmp_ok($left, '>', 0, "$left rows are left");
	cmp_ok($left, '<', 20, 'but not all');
	is(sql('SELECT count(*) FROM toasted WHERE t IS DISTINCT FROM repeat(id::text, 3000)'), 0, 'and their values');
}

# A serializable transaction's bitmap scan leaves out a damaged row, too.
{
	sql('CREATE TABLE mapped (id int PRIMARY KEY, n int) USING inplace', 'INSERT INTO mapped SELECT i, 0 FROM generate_series(1, 100) i');
	change_file($node, 'mapped', sub {
		my ($bytes) = @_;
		# its line pointer leads out of the page
		substr($$bytes, HEADER_SIZE + 4 * 7, 4) = pack 'L<', unpack('L<', substr $$bytes, HEADER_SIZE + 4 * 7, 4) | 0x7fff;
	});
	my @scan = ('SET enable_seqscan = off', 'SET enable_indexscan = off', 'SET enable_indexonlyscan = off', 'SELECT count(n) FROM mapped WHERE id > 0');
	like(answer('BEGIN ISOLATION LEVEL SERIALIZABLE', @scan), qr/ERROR:  XX001/, 'a damaged row stops a bitmap scan');
	like(answer('SET zero_damaged_pages = on', 'BEGIN ISOLATION LEVEL SERIALIZABLE', @scan),
		qr/^99\n.*WARNING:  XX001: row \(0,8\) of relation "mapped" is left out/s, 'or is left out');
}

# ---- pages that the server refuses to read -------------------------------------------------

sql('CREATE TABLE copied (id int) USING inplace', 'INSERT INTO copied SELECT generate_series(1, 1000)',
	'CREATE TABLE unread (id int PRIMARY KEY, n int) USING inplace', 'INSERT INTO unread SELECT i, 0 FROM generate_series(1, 300) i', 'UPDATE unread SET n = 1');

# A page with rows that a prepared transaction has changed, some of them once more in a subtransaction that was rolled back.  In a table that
# is not small a page has no room for a version block of each row.
sql('CREATE TABLE prepared (id int PRIMARY KEY, n int, t text) USING inplace', 'ALTER TABLE prepared ALTER t SET STORAGE plain',
	q(INSERT INTO prepared SELECT i, 0, repeat('p', 100) FROM generate_series(1, 8000) i));
my $block = sql('SELECT max((ctid::text::point)[0]::int) - 5 FROM prepared');
my $of_block = "ctid >= '($block,0)' AND ctid < '(@{[$block + 1]},0)'";
my ($first, $last) = split /\|/, sql("SELECT min(id), max(id) FROM prepared WHERE $of_block");
my $even  = $first + $first % 2;
my $other = $node->background_psql('postgres');
$other->query_safe("BEGIN; UPDATE prepared SET n = 1 WHERE id % 2 = 0 AND $of_block; UPDATE prepared SET n = 1 WHERE id % 2 = 0 AND ctid < '(40,0)'");
my $undo = sql(qq(SELECT b FROM generate_series(0, pg_relation_size('prepared') / 8192 - 1) b, inplace_undo_records('prepared', b) r
	WHERE row_tid = (SELECT ctid FROM prepared WHERE id = $even)));
$other->query_safe(qq(SAVEPOINT s; UPDATE prepared SET n = 2 WHERE id % 2 = 0 AND $of_block; ROLLBACK TO s; PREPARE TRANSACTION 'p'));
$other->quit;
# what is under a version block is in the record of the prepared transaction, too
my $overlaid = sql(qq(SELECT min(id) FROM prepared WHERE ctid = ANY (ARRAY(SELECT format('($block,%s)', off)::tid FROM inplace_rows('prepared', $block)
	WHERE 'overlaid' = ANY (flags)))));
ok($overlaid, 'rows are overlaid');
is(sql(qq(SELECT count(*) FROM inplace_rows('prepared', $block) WHERE (undo::text::point)[0] = $undo)), 0, 'the newest records are on another page');

my %files = map { $_ => path($_) } 'copied', 'unread', 'prepared';
$node->stop;
change_bytes($files{prepared}, $block * BLCKSZ + PRUNE_XID, sub { "\0\0\0\0" });
command_ok([ 'pg_checksums', '--enable', '--pgdata', $node->data_dir ], 'checksums are there');
flip($files{copied}, (-s $files{copied}) - 100);
flip($files{unread}, BLCKSZ + 100);
flip($files{prepared}, $undo * BLCKSZ + 4000);
$node->start;

is(answer(q(COPY copied FROM PROGRAM 'seq 1001 1100')), '', 'COPY passes over a page that cannot be read');
is(answer('SET zero_damaged_pages = on', 'SELECT count(*) FROM copied WHERE id > 1000') =~ /^100$/m, 1, 'and its rows are there');

my $log = -s $node->logfile;
is(answer('UPDATE unread SET n = 2'), '', 'a writer makes a metapage anew that cannot be read');
like(log_since($log), qr/XX001.*rebuilding metapage of relation "unread": it cannot be read/, 'and the log says so');

my $by_key = "SET enable_seqscan = off; SELECT n FROM prepared WHERE id = $overlaid";
like(answer($by_key), qr/^psql\S* ERROR:  XX001/m, 'the version before the change cannot be read');
is(answer('SET enable_seqscan = off', qq(UPDATE prepared SET n = 5, t = t || repeat('x', 50) WHERE id IN (@{[join ', ', map { $even + 1 + 2 * $_ } 1 .. 10]}))), '',
	'other rows of the page are changed');
like(answer($by_key), qr/^psql\S* ERROR:  XX001/m, 'which makes no change visible that has not been committed');
sql(q(COMMIT PREPARED 'p'));
is(answer($by_key), 1, 'until it is');

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP:/, 'no crash of its own');
done_testing();
