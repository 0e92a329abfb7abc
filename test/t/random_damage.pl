# Damaged files: whatever a page contains, a statement either works or fails with
# an error that has a sensible SQLSTATE.  The server never crashes, never hangs,
# and can always drop the table.  (That the data is right cannot be asked for: a
# bit may have flipped inside of a user's value.)
#
# One table is loaded so that it has all kinds of pages, rows and undo records;
# its files are copied into many tables of the same shape while the server is
# stopped, and each copy is damaged in another way.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

test_seed();

my $variants =
  defined $ENV{INPLACE_FLIPS} && $ENV{INPLACE_FLIPS} ne ''
  ? $ENV{INPLACE_FLIPS}
  : 200;

# What the test knows about the format; see docs/internals/on-disk-format.md.
use constant {
	BLCKSZ       => 8192,
	PAGE_HEADER  => 24,
	SPECIAL_SIZE => 24,
	KIND_OFFSET  => 8192 - 4,
	KIND_DATA    => 2,
	KIND_UNDO    => 3,
};

# restart_after_crash: a crash must not end the test before it has said which
# damage causes it.
my $node = new_cluster(
	'main', conf => qq(
autovacuum = off
restart_after_crash = on
max_prepared_transactions = 5
max_locks_per_transaction = 256
lock_timeout = '50ms'
statement_timeout = '300s'
));

# ---- a table that has everything ---------------------------------------------

# The copies come first: their relfrozenxid must not be newer than the rows that
# they are going to get.
$node->safe_psql(
	'postgres', qq(
CREATE TABLE base (id int PRIMARY KEY, grp int, v int, note text) USING inplace;
CREATE INDEX base_grp ON base (grp);
DO \$\$ BEGIN
	FOR i IN 1 .. $variants LOOP
		EXECUTE format('CREATE TABLE copy_%s (LIKE base INCLUDING INDEXES) USING inplace', i);
	END LOOP;
END \$\$;
));

# The first prepared transaction keeps all undo that comes after it.  Text that
# compresses badly keeps pages as full as they look.
$node->safe_psql(
	'postgres', q(
BEGIN; SELECT pg_current_xact_id(); PREPARE TRANSACTION 'old';
INSERT INTO base SELECT i, i % 50, 0, left(md5(i::text), i % 30) FROM generate_series(1, 1500) i;
UPDATE base SET v = 1;
UPDATE base SET v = 2, note = md5(note) WHERE id % 2 = 0;
UPDATE base SET note = note || note || note WHERE id % 10 = 0;
UPDATE base SET note = NULL WHERE id % 11 = 0;
UPDATE base SET grp = grp + 50 WHERE id % 8 = 0;
DELETE FROM base WHERE id % 9 = 0;
BEGIN;
UPDATE base SET v = 3, note = md5(v::text) WHERE id BETWEEN 500 AND 700;
DELETE FROM base WHERE id BETWEEN 701 AND 800;
INSERT INTO base SELECT i, i, i, 'rolled back' FROM generate_series(2001, 2100) i;
ROLLBACK;
BEGIN;
UPDATE base SET v = 4 WHERE id BETWEEN 1 AND 40;
DELETE FROM base WHERE id BETWEEN 41 AND 50;
INSERT INTO base SELECT i, i, i, 'prepared' FROM generate_series(2201, 2220) i;
SELECT FROM base WHERE id BETWEEN 51 AND 60 FOR UPDATE;
PREPARE TRANSACTION 'writer';
BEGIN; SELECT FROM base WHERE id BETWEEN 61 AND 80 FOR SHARE; PREPARE TRANSACTION 'share';
BEGIN; SELECT FROM base WHERE id BETWEEN 61 AND 90 FOR KEY SHARE; PREPARE TRANSACTION 'key share';
UPDATE base SET v = 5 WHERE id BETWEEN 81 AND 90;
INSERT INTO base SELECT i, i % 50, 0, repeat('n', i % 30) FROM generate_series(3000, 3200) i;
VACUUM base;

SET inplace.debug_undo_at_home = off;
CREATE TABLE wild (id int, v int) USING inplace;
INSERT INTO wild SELECT i, 0 FROM generate_series(1, 5) i;
BEGIN; UPDATE wild SET v = 1; PREPARE TRANSACTION 'wild';
));
tables_ok($node, 'before any damage', 'base', 'wild');

# ---- damage -------------------------------------------------------------------

sub files_of
{
	my ($table) = @_;
	return split /\n/, $node->safe_psql(
		'postgres', qq(
SELECT pg_relation_filepath('$table')
UNION ALL
(SELECT pg_relation_filepath(indexrelid) FROM pg_index WHERE indrelid = '$table'::regclass ORDER BY indkey[0])));
}

my $data_dir = $node->data_dir;
my @base_files = map { "$data_dir/$_" } files_of('base');
my ($wild_file) = map { "$data_dir/$_" } files_of('wild');
my %copy_files;
foreach my $row (
	split /\n/,
	$node->safe_psql(
		'postgres', q(
SELECT relname, pg_relation_filepath(c.oid), string_agg(pg_relation_filepath(indexrelid), ',' ORDER BY indkey[0])
FROM pg_class c JOIN pg_index ON indrelid = c.oid WHERE relname ~ '^copy_\d+$' GROUP BY c.oid, relname)))
{
	my ($table, $file, $indexes) = split /\|/, $row;
	$copy_files{$table} = [ map { "$data_dir/$_" } $file, split /,/, $indexes ];
}

$node->stop;

my %base_forks;
my $main = slurp_file($base_files[0]);
my $pages = length($main) / BLCKSZ;
my %pages_of_kind;
push @{ $pages_of_kind{ kind_of($_) } }, $_ foreach 0 .. $pages - 1;
note("$pages pages, of each kind: "
	  . join ', ', map { "$_: " . @{ $pages_of_kind{$_} } }
	  sort keys %pages_of_kind);

sub kind_of
{
	my ($block) = @_;
	return unpack 'S<', substr($main, $block * BLCKSZ + KIND_OFFSET, 2);
}

sub pick { return $_[ int rand @_ ] }

# A page of this kind, or any if there is none.
sub block_of_kind
{
	my ($kind) = @_;
	return pick(@{ $pages_of_kind{$kind} // [ 0 .. $pages - 1 ] });
}

# Offsets of all items on a page.
sub items
{
	my ($block) = @_;
	my $page = substr($main, $block * BLCKSZ, BLCKSZ);
	my $lower = unpack 'S<', substr($page, 12, 2);
	# an item begins 20 bytes behind its line pointer's offset
	return map { ($_ & 0x7FFF) + 20 }
	  grep { ($_ >> 15 & 3) == 2 } unpack 'L<*',
	  substr($page, PAGE_HEADER, $lower - PAGE_HEADER);
}

# A byte within the first $length bytes of a random item.
sub position_in_item
{
	my ($kind, $length) = @_;
	my $block = block_of_kind($kind);
	my @items = items($block);
	return $block * BLCKSZ + int rand BLCKSZ unless @items;
	return $block * BLCKSZ + pick(@items) + int rand $length;
}

# Where to damage.  Each returns a position in the file.
my %places = (
	'header' => sub { int(rand $pages) * BLCKSZ + int rand PAGE_HEADER },
	'line pointer' => sub {
		my $block = block_of_kind(pick(KIND_DATA, KIND_UNDO));
		my @items = items($block);
		return $block * BLCKSZ + PAGE_HEADER + int rand(4 * (@items || 1));
	},
	'special space' =>
	  sub { (1 + int rand $pages) * BLCKSZ - 1 - int rand SPECIAL_SIZE },
	'row header'  => sub { position_in_item(KIND_DATA, 13) },
	'row'         => sub { position_in_item(KIND_DATA, 40) },
	'undo header' => sub { position_in_item(KIND_UNDO, 28) },
	'undo'        => sub { position_in_item(KIND_UNDO, 50) },
	'metapage'    => sub { BLCKSZ + PAGE_HEADER + int rand 160 },
	'decoy'       => sub { pick(PAGE_HEADER + int rand 4, BLCKSZ - 2 * SPECIAL_SIZE + int rand SPECIAL_SIZE) },
	'anywhere'    => sub { int rand length $main });

# How to damage what is there.
my %ways = (
	'bit'    => sub { $_[0] ^ chr(1 << int rand 8) },
	'byte'   => sub { chr int rand 256 },
	'zero'   => sub { "\0" x (1 + int rand 8) },
	'ones'   => sub { "\xff" x (1 + int rand 8) },
	'random' => sub { join '', map { chr int rand 256 } 1 .. 1 + int rand 16 });

# Damage of whole pages.  Each changes the file's contents and says what it did.
my %page_damage = (
	'zeroed page' => sub {
		my ($file, $block) = @_;
		substr($$file, $block * BLCKSZ, BLCKSZ) = "\0" x BLCKSZ;
		return "block $block";
	},
	'random page contents' => sub {
		my ($file, $block) = @_;
		substr($$file, $block * BLCKSZ + PAGE_HEADER, BLCKSZ - PAGE_HEADER - SPECIAL_SIZE)
		  = join '', map { chr int rand 256 } 1 .. BLCKSZ - PAGE_HEADER - SPECIAL_SIZE;
		return "block $block";
	},
	'lost write' => sub {
		my ($file, $block) = @_;
		my $from = int rand $pages;
		substr($$file, $block * BLCKSZ, BLCKSZ) =
		  substr($main, $from * BLCKSZ, BLCKSZ);
		return "block $block has the contents of block $from";
	},
	'torn page' => sub {
		my ($file, $block) = @_;
		my $from = int rand $pages;
		substr($$file, $block * BLCKSZ + 4096, 4096) =
		  substr($main, $from * BLCKSZ + 4096, 4096);
		return "second half of block $block is that of block $from";
	},
	'other kind' => sub {
		my ($file, $block) = @_;
		my $kind = int rand 6;
		substr($$file, $block * BLCKSZ + KIND_OFFSET, 2) = pack 'S<', $kind;
		return "block $block is said to be of kind $kind";
	},
	'truncated' => sub {
		my ($file, $block) = @_;
		my $length = $block * BLCKSZ + pick(0, 0, 512, 4096);
		$$file = substr $$file, 0, $length;
		return "to $length bytes";
	},
	'longer' => sub {
		my ($file, $block) = @_;
		$$file .= substr $main, $block * BLCKSZ, BLCKSZ;
		return "block $block appended";
	});

# Damages the contents of a file in a random way; returns a description.
sub damage
{
	my ($file) = @_;

	if (rand() < 0.2)
	{
		my $name = pick(sort keys %page_damage);
		return "$name: " . $page_damage{$name}->($file, int rand $pages);
	}

	my $place = pick(sort keys %places);
	my $way   = pick(sort keys %ways);
	my @done;
	# Once as a rule: more changes at once hide each other.
	foreach (1 .. pick(1, 1, 1, 4))
	{
		my $position = $places{$place}->();
		my $new = $ways{$way}->(substr $$file, $position, 1);
		$new = substr $new, 0, length($$file) - $position;
		my $old = substr $$file, $position, length $new;
		substr($$file, $position, length $new) = $new;
		push @done,
		  sprintf('block %d byte %d: %s to %s',
			$position / BLCKSZ, $position % BLCKSZ,
			unpack('H*', $old), unpack('H*', $new));
	}
	return "$way in $place: " . join ', ', @done;
}

my %damages;
foreach my $variant (1 .. $variants)
{
	my $table = "copy_$variant";
	my @files = @{ $copy_files{$table} };
	foreach my $i (0 .. $#files)
	{
		foreach my $fork ('', '_fsm', '_vm')
		{
			# The copy's own, empty, forks are of no use.
			unlink "$files[$i]$fork";
			next unless -e "$base_files[$i]$fork";
			$base_forks{"$i$fork"} //= slurp_file("$base_files[$i]$fork");
			my $contents = $base_forks{"$i$fork"};
			$damages{$table} = damage(\$contents) if $i == 0 && $fork eq '';
			append_to_file("$files[$i]$fork", $contents);
		}
	}
}

# Undo pointers that lead out of the table: to the block behind its end, to a
# segment that is not there, and as far as can be.  The first item is the decoy.
my $wild = slurp_file($wild_file);
my %wild_blocks = (
	2 => length($wild) / BLCKSZ,
	3 => 200_000,
	4 => 0xFFFFFFFE);
foreach my $id (keys %wild_blocks)
{
	my ($lp) = unpack 'L<', substr($wild, PAGE_HEADER + 4 * $id, 4);
	substr($wild, ($lp & 0x7FFF) + 20 + 7, 4) = pack 'L<', $wild_blocks{$id};
}
unlink $wild_file;
append_to_file($wild_file, $wild);

$node->start;
tables_ok($node, 'the undamaged one', 'base');

foreach my $id (1 .. 5)
{
	my ($stdout, $stderr);
	$node->psql(
		'postgres', "\\set VERBOSITY verbose\nSELECT v FROM wild WHERE ctid = '(0," . ($id + 1) . ")'",
		stdout => \$stdout,
		stderr => \$stderr);
	if (my $block = $wild_blocks{$id})
	{
		like($stderr,
			qr/ERROR:  XX001: undo record \($block,$id\) of row \(0,@{[$id + 1]}\) of relation "wild" is missing/,
			"undo pointer to block $block");
	}
	else
	{
		is($stdout . $stderr, '0', "row $id beside damaged ones");
	}
}
is( $node->safe_psql(
		'postgres', "SELECT string_agg(c.off::text, ',' ORDER BY c.off) FROM inplace_check('wild') c"),
	'3,4,5',
	'inplace_check finds them');

# ---- probes --------------------------------------------------------------------

# The extension's own functions that look at a table, at a page or at a row of one.
my $inspection = $node->safe_psql(
	'postgres', q{
SELECT coalesce(string_agg(format('SELECT count(f::text) FROM %s%s(:''t''%s) f;',
	CASE WHEN pronargs = 2 THEN 'generate_series(0, pg_relation_size(:''t'') / 8192 - 1) b, ' END,
	p.oid::regproc,
	CASE WHEN pronargs = 2 AND (proargtypes::oid[])[1] = 'tid'::regtype
		THEN ', format(''(%s,%s)'', b, 1 + b % 7)::tid'
		WHEN pronargs = 2 THEN format(', b::%s', (proargtypes::oid[])[1]::regtype) END), E'\n'), '')
FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
	JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
WHERE extname = 'inplace' AND (proargtypes::oid[])[0] = 'regclass'::regtype AND pronargs <= 2
});
note("inspection functions:\n$inspection");

my $probes = qq(
$inspection
SELECT count(t::text) FROM :t t;
SET enable_seqscan = off;
SELECT count(t::text) FROM :t t WHERE id > 0;
SET enable_indexscan = off;
SELECT count(t::text) FROM :t t WHERE grp > 0;
RESET enable_seqscan;
RESET enable_indexscan;
SELECT count(t::text) FROM :t t WHERE ctid >= '(0,1)';
SELECT count(t::text) FROM :t t WHERE ctid = ANY (ARRAY(SELECT format('(%s,%s)', b, o)::tid FROM generate_series(0, 20) b, generate_series(1, 20) o));
SELECT count(t::text) FROM :t t TABLESAMPLE SYSTEM (50);
SELECT count(t::text) FROM :t t TABLESAMPLE BERNOULLI (50);
BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(t::text) FROM :t t; COMMIT;
BEGIN; SELECT count(*) FROM (SELECT FROM :t FOR KEY SHARE SKIP LOCKED) l; ROLLBACK;
BEGIN; SELECT count(*) FROM (SELECT FROM :t WHERE id > 100 FOR UPDATE) l; ROLLBACK;
BEGIN; UPDATE :t SET v = v + 1 WHERE id > 100; ROLLBACK;
BEGIN; UPDATE :t SET note = repeat('x', 300) WHERE id % 3 = 0 AND id > 100; ROLLBACK;
BEGIN; UPDATE :t SET grp = grp + 1 WHERE id % 3 = 0 AND id > 100; ROLLBACK;
BEGIN; DELETE FROM :t WHERE id % 3 = 1 AND id > 100; ROLLBACK;
SELECT count(t::text) FROM :t t;
INSERT INTO :t SELECT i, i, i, 'new' FROM generate_series(10000, 10300) i;
INSERT INTO :t SELECT id, 1, 1, 'upsert' FROM :t WHERE id % 4 = 0 AND id > 100 ON CONFLICT (id) DO UPDATE SET note = excluded.note;
UPDATE :t SET v = v + 1 WHERE id BETWEEN 100 AND 600;
UPDATE :t SET v = v + 1 WHERE id BETWEEN 600 AND 1500;
UPDATE :t SET v = v + 1 WHERE id < 100;
DELETE FROM :t WHERE id % 5 = 1 AND id > 100;
CREATE INDEX ON :t (v);
ANALYZE :t;
VACUUM :t;
VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) :t;
SELECT count(t::text) FROM :t t;
CHECKPOINT;
VACUUM FULL :t;
SELECT count(t::text) FROM :t t;
);

# Statements that must work whatever the pages contain.
my $rescue = 'TRUNCATE :t; INSERT INTO :t VALUES (1, 1, 1, NULL); DROP TABLE :t;';

my (%states, %messages, @failures);

# Is an error one that nobody can be expected to understand?  Core reports some
# damage, of MultiXactIds for instance, as an internal error; that it cannot be
# blamed on the access method shows in the name of the source file.
sub is_nonsense
{
	my ($state, $source) = @_;
	return 1 if $state eq '57014';    # a hang that the timeout has ended
	return 1 if $source eq 'md.c';    # names a file instead of a table
	return $state eq 'XX000' && $source =~ /^ip_/;
}

# Runs all probes on a table; returns what psql says on stderr, and whether it had
# to be ended.
sub probe
{
	my ($table) = @_;

	# Each statement is announced on stderr, where its error will be.
	my $number = 0;
	my $script = "\\set VERBOSITY verbose\n\\set t $table\n";
	$script .= '\warn ' . $number++ . " $_\n$_\n"
	  foreach grep { /\S/ } split /\n/, $probes;
	$script .= "ROLLBACK;\n\\warn rescue\n$rescue\n";

	# psql's own timeout is for a hang that statement_timeout does not end.
	my ($stderr, $timed_out);
	$node->psql(
		'postgres', $script,
		stderr        => \$stderr,
		on_error_stop => 0,
		timeout       => $PostgreSQL::Test::Utils::timeout_default,
		timed_out     => \$timed_out);
	return ($stderr, $timed_out);
}

# The first thing in psql's stderr that must not be; undef if there is none.
# Counts errors by the way.
sub find_failure
{
	my ($stderr, $timed_out) = @_;
	my ($statement, $state, $message);
	foreach (split /\n/, $stderr)
	{
		if (/^(\d+ .*|rescue)$/)
		{
			$statement = $1;
		}
		elsif (/server closed the connection|connection to server was lost/)
		{
			return "$statement\n  $_";
		}
		elsif (/ERROR:\s+(\w{5}): (.*)/)
		{
			($state, $message) = ($1, $2);
		}
		elsif (/^LOCATION:\s+(.*), (.*):\d+/)
		{
			my ($function, $source) = ($1, $2);
			# statements that only follow a failed one
			next if !defined $state || $state eq '25P02';
			$states{$state}++;
			$messages{ "$state $message" =~ s/\d+/N/gr =~ s/copy_N|"[^"]*"/X/gr }++;
			return "$statement\n  $state $message ($function, $source)"
			  if $statement eq 'rescue' || is_nonsense($state, $source);
			$state = undef;
		}
	}
	return $timed_out ? "$statement\n  hangs, cannot be interrupted" : undef;
}

foreach my $variant (1 .. $variants)
{
	my $table      = "copy_$variant";
	my $log_offset = -s $node->logfile;

	my ($stderr, $timed_out) = probe($table);
	my $failure = find_failure($stderr, $timed_out);
	if ($timed_out)
	{
		kill 'KILL', split /\n/, $node->safe_psql('postgres',
			"SELECT pid FROM pg_stat_activity WHERE query ~ '$table\\M' AND pid <> pg_backend_pid()");
	}

	my $log = slurp_file($node->logfile, $log_offset);
	if ($log =~ /(.*(?:terminated by signal|PANIC|TRAP).*)/)
	{
		my $crash = $1;
		$node->poll_query_until('postgres', 'SELECT true')
		  or BAIL_OUT('server does not come back');

		# An all-zero page is what a crash may leave when it extends a table, so
		# it is used for new rows, and their TIDs may be in an index already.
		# nbtree's Asserts notice that, its code does not mind.
		if ($crash =~ /TRAP.*File: "[^"]*\bnbt\w+\.c"/)
		{
			note("$table: $damages{$table}: $crash");
			next;
		}
		$failure = ($failure // '') . "\n  $crash";
	}
	push @failures, "$table: $damages{$table}\n  $failure" if defined $failure;
}

note('errors: ' . join ', ', map { "$_: $states{$_}" } sort keys %states);
note("$messages{$_} x $_")
  foreach sort { $messages{$b} <=> $messages{$a} } keys %messages;

is(scalar(@failures), 0,
	"$variants damaged tables: no crash, no hang, no obscure error");
diag($_) foreach @failures[ 0 .. ($#failures > 40 ? 40 : $#failures) ];

# Nobody else is hurt.
$node->safe_psql('postgres', 'CHECKPOINT');
tables_ok($node, 'after all', 'base');
$node->safe_psql('postgres',
	"ROLLBACK PREPARED '$_'") foreach 'old', 'writer', 'share', 'key share', 'wild';
tables_ok($node, 'after all, prepared transactions gone', 'base');
$node->restart;
tables_ok($node, 'after a restart', 'base');

# One item pointer that reaches outside of its page: VACUUM, which moves the page's items, says so.  A metapage that
# names a data page as a ring's current page: backends of other slots go on.
$node->safe_psql('postgres', q(
CREATE TABLE pointer (id int, s text) USING inplace WITH (autovacuum_enabled = off);
CREATE TABLE slot (id int, s text) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO pointer SELECT i, repeat('a', 100) FROM generate_series(1, 20) i;
INSERT INTO slot SELECT i, repeat('a', 100) FROM generate_series(1, 20) i;
SET inplace.debug_undo_at_home = off;
UPDATE slot SET s = s WHERE id = 20;
));
$node->safe_psql('postgres', 'VACUUM pointer');
$node->safe_psql('postgres', 'DELETE FROM pointer WHERE id IN (5, 9)');
my %file = map { $_ => $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('$_')") } qw(pointer slot);
$node->stop;
patch($file{pointer}, PAGE_HEADER + 4, sub { pack 'V', unpack('V', $_[0]) + (8 << 17) });
patch($file{slot}, BLCKSZ + PAGE_HEADER + 8 + 8 * 5, sub { pack 'VV', 0, 3 });
$node->start;
my $offset = -s $node->logfile;
my (undef, undef, $complaint) = $node->psql('postgres', 'VACUUM pointer');
like($complaint, qr/ERROR:  (items of block 0 of relation "pointer" overlap, reach outside of it, or are too many|corrupted row)/,
	'VACUUM of a page with an item that reaches outside');
# sessions at the same time have different slots
my @sessions = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 4;
my $row = 0;
my @changed = grep { $row++; $_->query("UPDATE slot SET s = s WHERE id = $row RETURNING id") =~ /\A$row\b/ } @sessions;
$_->quit foreach @sessions;
cmp_ok(scalar(@changed), '>=', 3, 'a damaged ring of one slot');
unlike(slurp_file($node->logfile, $offset), qr/PANIC|TRAP|terminated by signal/, 'neither ends the server');

# An undo record whose delta ends before the record does: it is not to be put back, nor to get into WAL.
$node->safe_psql('postgres', q(
SET inplace.debug_undo_at_home = off;
CREATE TABLE ends_early (id int, s text) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO ends_early SELECT i, 'OLDOLDOLDOLD' FROM generate_series(1, 3) i;
BEGIN;
UPDATE ends_early SET s = 'NEWNEWNEWNEW';
ROLLBACK;
));
$file{ends_early} = $node->data_dir . '/' . $node->safe_psql('postgres', q(SELECT pg_relation_filepath('ends_early')));
$node->stop;
my $length = index(slurp_file($file{ends_early}), "\x18OLDOLDOLDOLD");
cmp_ok($length, '>', 0, 'the record of a delta that inserts 12 bytes');
patch($file{ends_early}, $length, sub { "\x16" . substr $_[0], 1 });
$node->start;
$offset = -s $node->logfile;
(undef, undef, $complaint) = $node->psql('postgres', 'VACUUM ends_early');
like($complaint, qr/ERROR:  undo record \(\d+,\d+\) of relation "ends_early" does not fit its row/, 'VACUUM of a delta that ends early');
(undef, undef, $complaint) = $node->psql('postgres', 'SELECT * FROM ends_early');
like($complaint, qr/ERROR:  undo record .* does not fit its row/, 'a scan of it');
isnt($node->safe_psql('postgres', q(SELECT count(*) FROM inplace_check('ends_early'))), '0', 'inplace_check of it');
unlike(slurp_file($node->logfile, $offset), qr/PANIC|TRAP|terminated by signal/, 'that does not end the server');

# A metapage that takes a data page for undo, so that scans leave it out.
$node->safe_psql('postgres', q(
SET inplace.debug_undo_at_home = off;
CREATE TABLE hidden (id int, s text) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO hidden SELECT i, 'a row' FROM generate_series(1, 300) i;
UPDATE hidden SET s = 'changed' WHERE id < 3;
));
is($node->safe_psql('postgres', q(SELECT count(*) FROM inplace_check('hidden'))), '0', 'before the metapage is damaged');
$file{hidden} = $node->data_dir . '/' . $node->safe_psql('postgres', q(SELECT pg_relation_filepath('hidden')));
$node->stop;
patch($file{hidden}, BLCKSZ + PAGE_HEADER + 8 + 8 * 16, sub { is($_[0], pack('VV', 3, 1), 'the undo page is listed'); pack 'VV', 2, 2 });
$node->start;
is($node->safe_psql('postgres', q(SELECT block, problem FROM inplace_check('hidden'))),
	'1|metapage has a wrong checksum of its own', 'inplace_check of it');
is($node->safe_psql('postgres', 'SELECT count(*) FROM hidden'), '300', 'a scan does not go by it');
change_file($node, 'hidden', sub { seal_metapage($_[0]) });
is($node->safe_psql('postgres', q(SELECT block, problem FROM inplace_check('hidden'))),
	'2|metapage takes the page for one of undo', 'inplace_check of one with the right checksum');

# Rows that are said to come from a transaction of the future.
$node->safe_psql('postgres', q(
CREATE TABLE future (id int, s text) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO future SELECT i, 'a row' FROM generate_series(1, 300) i;
));
$file{future} = $node->data_dir . '/' . $node->safe_psql('postgres', q(SELECT pg_relation_filepath('future')));
$node->stop;
patch($file{future}, BLCKSZ - SPECIAL_SIZE + 16, sub { my ($base, $rest) = unpack 'va6', $_[0]; pack 'va6', $base + 1, $rest });
$node->start;
(undef, undef, $complaint) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT count(*) FROM future");
like($complaint, qr/XX001: a row names transaction \d+, which has not begun/, 'a scan of rows from the future');
isnt($node->safe_psql('postgres', q(SELECT count(*) FROM inplace_check('future'))), '0', 'inplace_check of it');

# A damaged row that all saw is in the way of a prune: other rows change all the same, and nothing of the damaged one is lost.
foreach my $length (5, 4111)
{
	$node->safe_psql('postgres', q(
CREATE TABLE plain (id int PRIMARY KEY, v int, pad text) USING inplace WITH (autovacuum_enabled = off);
ALTER TABLE plain ALTER pad SET STORAGE plain;
INSERT INTO plain SELECT i, 0, repeat(md5(i::text), 3) FROM generate_series(1, 500) i;
VACUUM plain));
	my $base = $node->safe_psql('postgres', "SELECT min(id) FROM plain WHERE ctid >= '(2,0)'");
	my $rows = sub { "WHERE id BETWEEN $base + $_[0] AND $base + $_[1]" };
	$node->safe_psql('postgres', qq(
DELETE FROM plain @{[ $rows->(10, 14) ]};
UPDATE plain SET v = v + 1 @{[ $rows->(15, 30) ]};
BEGIN;
UPDATE plain SET v = v + 1 @{[ $rows->(31, 40) ]};
ROLLBACK));
	my ($start, $row);
	change_pages($node, 'plain', sub {
		my ($page, $block) = @_;
		return if $block != 2;
		my ($lp) = unpack 'L<', substr($page, PAGE_HEADER + 4 * 4, 4);
		$start = ($lp & 0x7FFF) + 20;
		$row = substr $page, $start, $lp >> 17;
		substr($page, PAGE_HEADER + 4 * 4, 4) = pack 'L<', ($lp & 0x1FFFF) | $length << 17;
		return $page;
	});
	foreach (1, 2)
	{
		foreach my $change ("pad = repeat(md5('x'), 6) " . $rows->(50, 55), 'v = v + 1 ' . $rows->(20, 25), 'v = v + 1 ' . $rows->(42, 58))
		{
			(undef, undef, $complaint) = $node->psql('postgres', "UPDATE plain SET $change");
			is($complaint, '', "item of $length bytes: UPDATE plain SET $change");
		}
	}
	change_pages($node, 'plain', sub {
		my ($page, $block) = @_;
		is(unpack('H*', substr $page, $start, length $row), unpack('H*', $row), "item of $length bytes: the row's bytes are where they were") if $block == 2;
		return;
	});
	$node->safe_psql('postgres', 'DROP TABLE plain');
}

# Values that look like TOAST pointers, to memory and to disk.
$node->safe_psql('postgres', q(
CREATE TABLE pointers (id int, s text) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO pointers SELECT i, repeat('x', 30) FROM generate_series(1, 3) i;
VACUUM pointers;
));
foreach my $tag ("\x01", "\x02", "\x03", "\x12")
{
	is(change_pages($node, 'pointers', sub { my ($page) = @_; return $page =~ s/(?:\x3fx|\x01[\x01-\x03])(?=x{29})/\x01$tag/g ? $page : undef }), 1, 'damaged');
	foreach my $sql ('SELECT s FROM pointers', 'SELECT length(s) FROM pointers', 'UPDATE pointers SET id = id + 1',
		'CREATE TABLE copy AS TABLE pointers', 'CREATE INDEX ON pointers (s)', 'ALTER TABLE pointers ALTER id TYPE bigint')
	{
		(undef, undef, $complaint) = $node->psql('postgres', "\\set VERBOSITY sqlstate\n$sql");
		like($complaint, qr/^(?:psql:\S+ )?ERROR:  XX001$/, sprintf '%s, tag %d', $sql, ord $tag);
	}
}

$node->stop;
done_testing();

# Eight bytes of a file, at most, become what change makes of them.
sub patch
{
	my ($path, $position, $change) = @_;
	open my $fh, '+<:raw', $path or die "$path: $!";
	seek $fh, $position, 0;
	read $fh, my $bytes, 8;
	my $new = $change->($bytes);
	seek $fh, $position, 0;
	print $fh $new;
	close $fh or die "$path: $!";
	return;
}
