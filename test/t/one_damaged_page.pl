# One damaged page hurts its own rows only.  A bit is flipped in a page of each kind: in each byte of its header and of its
# special space, and at random places; with data checksums, where the server refuses to read the page, and without.  The rows
# of other pages can be read by key, by a scan, by COPY and by VACUUM FULL, and can be changed; new rows can be inserted.
# A scan that reads the damaged page, or a row that needs it, wants zero_damaged_pages for that, as in heap.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use List::Util qw(shuffle);
use Test::More;

test_seed();

use constant {
	BLCKSZ       => 8192,
	PAGE_HEADER  => 24,
	SPECIAL_SIZE => 24,
	KIND_OFFSET  => 8192 - 4
};
my @kinds = (undef, 'metapage', 'data page', 'undo page', 'free page', 'lock page');

# INPLACE_FLIPS: so many random places for each kind of page, and then each byte of the header and the special space, too
my $random = $ENV{INPLACE_FLIPS} || 6;
my $some   = $ENV{INPLACE_FLIPS} ? 48 : 12;

# The places, for each kind of page, and one for block 0, which has the decoy.
my @header  = (0 .. PAGE_HEADER - 1);
my @special = (BLCKSZ - SPECIAL_SIZE .. BLCKSZ - 1);
my @flips;
foreach my $kind (0 .. 5)
{
	push @flips, [ $kind, $_ ] foreach (shuffle(@header, @special))[ 0 .. $some - 1 ];
	push @flips, [ $kind, PAGE_HEADER + int rand(BLCKSZ - PAGE_HEADER - SPECIAL_SIZE) ] foreach 1 .. $random;
	push @flips, [ $kind, PAGE_HEADER + int rand 200 ] foreach 1 .. $random;
}
push @flips, [ 0, PAGE_HEADER + $_ ] foreach 0 .. 3;
push @flips, [ 0, BLCKSZ - 2 * SPECIAL_SIZE + int rand SPECIAL_SIZE ] foreach 1 .. $random;

my ($node, $copies, @base_files, %copy_files, @damage);
$copies = @flips;

# A cluster with base, which has pages of all kinds, and with tables that are to become its copies.
sub make_tables
{
	my ($how) = @_;
$node = new_cluster($how, conf => "autovacuum = off\nmax_prepared_transactions = 12\nmax_locks_per_transaction = 1024\nstatement_timeout = '300s'\n");
my $copies = @flips;
$node->safe_psql('postgres', qq(
CREATE TABLE base (id int PRIMARY KEY, n int, note text) USING inplace;
ALTER TABLE base ALTER note SET STORAGE plain;
DO \$\$ BEGIN
	FOR i IN 1 .. $copies LOOP
		EXECUTE format('CREATE TABLE copy_%s (LIKE base INCLUDING ALL) USING inplace', i);
	END LOOP;
END \$\$;));

# Pages of all kinds.  The writer in another session has some rows overlaid, and changes that were rolled back.
my $holder = $node->background_psql('postgres');
$node->safe_psql('postgres', q(INSERT INTO base SELECT i, 0, repeat(md5(i::text), 4) FROM generate_series(1, 2000) i;
DELETE FROM base WHERE id BETWEEN 400 AND 1600;
VACUUM base;));
$holder->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM base');
$node->safe_psql('postgres', q(
SET inplace.debug_undo_at_home = off;
UPDATE base SET n = 1 WHERE id % 3 = 0;
BEGIN; UPDATE base SET n = 2, note = upper(note) WHERE id % 20 = 1; ROLLBACK;
SET inplace.debug_undo_at_home = on;
UPDATE base SET n = 3 WHERE id % 7 = 0));
$holder->quit;
$node->safe_psql('postgres', q(
BEGIN; UPDATE base SET n = 4, note = upper(note) WHERE id % 20 = 2; ROLLBACK;));

# All rows are locked, by some who do not mind their changes; the locks of a data page are on several pages.
$node->safe_psql('postgres', "BEGIN; SELECT count(*) FROM (SELECT FROM base FOR KEY SHARE) x; PREPARE TRANSACTION 'locks_$_'") foreach 1 .. 12;
tables_ok($node, 'before any damage', 'base');

# What a row depends on: its own page, and that of its undo record; not the page that its locks are on.
$node->safe_psql('postgres', q(
CREATE TABLE facts USING heap AS
SELECT id, n, note, ARRAY[block, coalesce(undo_block, block)] AS blocks
FROM (SELECT base.*, (base.ctid::text::point)[0]::int AS block, (base.ctid::text::point)[1]::int AS off FROM base) b,
	LATERAL (SELECT (undo::text::point)[0]::int AS undo_block FROM inplace_rows('base', b.block) r WHERE r.off = b.off) r;

-- How many rows of other pages are not as they were, by key; or cannot be changed.
CREATE FUNCTION by_key(copy regclass, damaged int, changes bool, locks text DEFAULT '') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	f record;
	was record;
	bad int := 0;
	example text := '';
	statement text := format(CASE WHEN changes THEN 'UPDATE %s SET n = n + 1 WHERE id = $1 RETURNING n - 1 AS n, note'
		ELSE 'SELECT n, note FROM %s WHERE id = $1' || locks END, copy);
BEGIN
	FOR f IN SELECT * FROM facts WHERE damaged <> ALL (blocks) LOOP
		BEGIN
			EXECUTE statement INTO was USING f.id;
			IF (was.n, was.note) IS DISTINCT FROM (f.n, f.note) THEN
				bad := bad + 1;
				example := format('; row %s', f.id);
			END IF;
		EXCEPTION WHEN OTHERS THEN
			bad := bad + 1;
			example := format('; row %s: %s', f.id, sqlerrm);
		END;
	END LOOP;
	RETURN bad || example;
END $$;

-- The same by a scan, after they have been changed.
CREATE FUNCTION by_scan(copy regclass, damaged int) RETURNS text LANGUAGE plpgsql
SET enable_seqscan = on SET enable_indexscan = off SET enable_bitmapscan = off SET enable_indexonlyscan = off AS $$
DECLARE
	bad int;
BEGIN
	EXECUTE format('SELECT count(*) FROM facts f LEFT JOIN %s c USING (id)
		WHERE $1 <> ALL (f.blocks) AND (c.n, c.note) IS DISTINCT FROM (f.n + 1, f.note)', copy) INTO bad USING damaged;
	RETURN bad;
EXCEPTION WHEN OTHERS THEN
	RETURN sqlerrm;
END $$));

	return;
}

sub files_of
{
	my ($table) = @_;
	return map { $node->data_dir . "/$_" } split /\n/, $node->safe_psql('postgres', qq(
SELECT pg_relation_filepath('$table')
UNION ALL SELECT pg_relation_filepath(indexrelid) FROM pg_index WHERE indrelid = '$table'::regclass));
}

# Where each copy is to be damaged.
sub choose_damage
{
	my $main = slurp_file($base_files[0]);
	my %pages_of_kind;
	foreach my $block (1 .. length($main) / BLCKSZ - 1)
	{
		push @{ $pages_of_kind{ unpack 'C', substr $main, $block * BLCKSZ + KIND_OFFSET, 1 } }, $block;
	}
	note(join ', ', map { "$kinds[$_]: " . scalar @{ $pages_of_kind{$_} } } sort keys %pages_of_kind);
	ok(!(grep { !$pages_of_kind{$_} } 1 .. 5), 'there are pages of all kinds');
	@damage = ();
	foreach my $flip (@flips)
	{
		my ($kind, $at) = @$flip;
		my $block = $kind == 0 ? 0 : $pages_of_kind{$kind}[ rand @{ $pages_of_kind{$kind} } ];
		# COPY FROM refuses what is no text any more
		my $in_row = ($kind == 0 || $kind == 2 || $kind == 3) && $at >= PAGE_HEADER && $at < BLCKSZ - SPECIAL_SIZE;
		push @damage, { kind => $kinds[$kind] // 'block 0', block => $block, at => $at, bit => int rand($in_row ? 7 : 8) };
	}
	return;
}

# Give each copy the contents of base, with its damage.
sub damage_copies
{
	my @contents;
	foreach my $i (0 .. $#base_files)
	{
		$contents[$i]{$_} = slurp_file("$base_files[$i]$_") foreach grep { -e "$base_files[$i]$_" } '', '_fsm', '_vm';
	}
	foreach my $n (1 .. $copies)
	{
		my $d = $damage[ $n - 1 ];
		foreach my $i (0 .. $#base_files)
		{
			foreach my $fork ('', '_fsm', '_vm')
			{
				my $file  = "$copy_files{$n}[$i]$fork";
				my $bytes = $contents[$i]{$fork};
				unlink $file;
				next unless defined $bytes;
				substr($bytes, $d->{block} * BLCKSZ + $d->{at}, 1) ^= chr(1 << $d->{bit}) if $i == 0 && $fork eq '';
				append_to_file($file, $bytes);
			}
		}
	}
	return;
}

# The tests of all copies; what has failed of each kind of test is told at its end.
sub check_copies
{
	my ($how) = @_;
	my %failed;
	my $log_size = -s $node->logfile;

	foreach my $n (1 .. $copies)
	{
		my $d       = $damage[ $n - 1 ];
		my $copy    = "copy_$n";
		# a scan reads these, and rows need those of undo
		my $is_read = $d->{kind} !~ /^(metapage|lock page)$/;
		my $sound   = $d->{kind} eq 'lock page' ? "SELECT 'sound after VACUUM', count(*) FROM inplace_check('$copy');" : '';
		my $at_home = $n % 2 ? 'on' : 'off';
		my $where   = "$d->{kind} $d->{block}, byte $d->{at}, bit $d->{bit}";
		my ($status, $stdout, $stderr) = $node->psql('postgres', qq(
SET enable_seqscan = off; SET enable_bitmapscan = off; SET inplace.debug_undo_at_home = $at_home;
SELECT 'keys', by_key('$copy', $d->{block}, false);
SELECT 'locks', by_key('$copy', $d->{block}, false, ' FOR NO KEY UPDATE');
SELECT 'changes', by_key('$copy', $d->{block}, true);
INSERT INTO $copy SELECT i, 0, repeat('new', 40) FROM generate_series(10001, 10020) i RETURNING 'inserted', 0;
SELECT 'inserted', count(*) - 20 FROM $copy WHERE id > 10000;
@{[ $is_read ? '' : "SELECT 'scan', by_scan('$copy', $d->{block}); VACUUM $copy; $sound" ]}
SET zero_damaged_pages = on;
SELECT 'scan that leaves out damage', by_scan('$copy', $d->{block});
CREATE TEMP TABLE got (LIKE base);
COPY (SELECT * FROM $copy) TO '@{[ $node->data_dir ]}/copy.out';
COPY got FROM '@{[ $node->data_dir ]}/copy.out';
SELECT 'copy', by_scan('got', $d->{block});
ALTER TABLE $copy DROP CONSTRAINT ${copy}_pkey;
VACUUM FULL $copy;
SELECT 'full', by_scan('$copy', $d->{block});
SELECT 'checked', count(*) FROM inplace_check('$copy');
SELECT 'done', 0));
		my %got;
		foreach my $line (split /\n/, $stdout)
		{
			next unless $line =~ /^([^|]+)\|(.*)$/;
			$failed{$1}{$where} = $2 if $2 ne '0';
			$got{$1} = 1;
		}
		$failed{done}{$where} = $stderr unless $got{done};
	}
	foreach my $what ('keys', 'locks', 'changes', 'inserted', 'scan', 'sound after VACUUM', 'scan that leaves out damage', 'copy', 'full', 'checked', 'done')
	{
		my $bad  = $failed{$what} // {};
		my @some = sort keys %$bad;
		is(scalar @some, 0, "$how: $what");
		splice @some, 6 if @some > 6;
		diag("$_: $bad->{$_}") foreach @some;
	}
	unlike(slurp_file($node->logfile, $log_size), qr/PANIC|TRAP:|was terminated by signal/, "$how: no crash");
	return;
}

foreach my $how ('plain', 'checksums')
{
	make_tables($how);
	@base_files = files_of('base');
	%copy_files = map { $_ => [ files_of("copy_$_") ] } 1 .. $copies;
	$node->stop;
	command_ok([ 'pg_checksums', '--enable', '--pgdata', $node->data_dir ], 'checksums are there') if $how eq 'checksums';
	choose_damage();
	damage_copies();
	$node->start;
	check_copies($how);
	$node->stop;
}
done_testing();
