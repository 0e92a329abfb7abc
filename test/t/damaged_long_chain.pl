# Damage far below a row's newest change: what passes very many aborted changes with the page
# unlocked reports it like what passes a few, and neighbours can be changed all the time.
# And rows that share bytes, each of which is sound.

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
	KIND_OFFSET => 8192 - 4,
	KIND_UNDO   => 3,
};

my $node = new_cluster('main', conf => "autovacuum = off\ninplace.debug_undo_at_home = off\ninplace.debug_heal = off\ninplace.debug_skip_lists = off\nrestart_after_crash = on\n");

sql_on(\$node);

# Rows of 1,020 bytes, seven on a page, the first of which has very many aborted changes.
sub begin_chain
{
	sql('DROP TABLE IF EXISTS chain',
		'CREATE TABLE chain (id int PRIMARY KEY, n int, t text) USING inplace',
		'ALTER TABLE chain ALTER t SET STORAGE PLAIN',
		q(INSERT INTO chain SELECT i, 0, repeat('c', 1010) FROM generate_series(1, 30) i),
		q(DO $$BEGIN
			UPDATE chain SET t = repeat('d', 700) WHERE id = 1;
			FOR i IN 1 .. 600 LOOP UPDATE chain SET n = n + 1 WHERE id = 1; END LOOP;
			ROLLBACK;
		END$$));
	return;
}

# Let the sub change the table's undo page that has the chain's oldest record.
sub damage
{
	my ($change) = @_;
	is(change_pages($node, 'chain',
			sub { my ($page) = @_; return kind_of($page) == KIND_UNDO && $page =~ /c{900}/ ? $change->($page) : undef; }),
		1, 'the record is on one page');
	return;
}

sub kind_of { return unpack 'v', substr $_[0], KIND_OFFSET, 2; }

# A neighbour's updates fill undo pages again and again: they look at the damaged row each time
# they could use a page again.
sub update_neighbour
{
	my ($what) = @_;
	my ($status, undef, $stderr) = $node->psql('postgres',
		'DO $$BEGIN FOR i IN 1 .. 12000 LOOP UPDATE chain SET n = n + 1 WHERE id = 25; COMMIT; END LOOP; END$$');
	my $pages = sql(q(SELECT pg_relation_size('chain') / 8192));

	is("$status$stderr", '0', "$what: a neighbour can be updated");
	cmp_ok($pages, '<', 25, "$what: undo pages are used again");
	note("$what: $pages pages");
	return;
}

# the record is not there any more
begin_chain();
damage(sub { return "\0" x BLCKSZ; });
update_neighbour('missing');
foreach my $what ('VACUUM chain', 'UPDATE chain SET n = n + 1 WHERE id = 1')
{
	my (undef, undef, $stderr) = $node->psql('postgres', $what);
	like($stderr, qr/undo record \(\d+,\d+\) of row \(0,2\) of relation "chain" is missing/, "missing: $what");
}

# The record makes a longer row than ever was: nothing is dropped, so that what is inserted comes
# in addition, and the text's length covers both.
begin_chain();
damage(
	sub {
		my ($page) = @_;
		my $longer = pack 'CCV', 0x80, 0, (1012 + 1014) << 2;

		# two bytes of inserted length, four of the text's; see ip_delta.h
		$page =~ s/\xec\x0f.{4}cc(c{900})/\xe9\x0f$longer$1/s or die 'no such record';
		return $page;
	});
update_neighbour('too long');
my (undef, undef, $stderr) = $node->psql('postgres', 'VACUUM chain');
like($stderr, qr/corrupted version of row \(0,2\) of relation "chain"/, 'too long: VACUUM');

# Two line pointers to one row: VACUUM would change it twice.
sql('CREATE TABLE twice (id int, n int) USING inplace',
	'INSERT INTO twice SELECT i, 0 FROM generate_series(1, 5) i', 'UPDATE twice SET n = 1');
change_pages($node, 'twice', sub { my ($page) = @_; substr($page, 32, 4) = substr($page, 28, 4); return $page; });
(undef, undef, $stderr) = $node->psql('postgres', 'VACUUM twice');
like($stderr, qr/items of block 0 of relation "twice" overlap/, 'one row twice: VACUUM');

# An undo pointer that leads to no record: a change does not copy it into a record of its own.
sql('CREATE TABLE pointer (id int, n int) USING inplace',
	'INSERT INTO pointer SELECT i, 0 FROM generate_series(1, 5) i', 'UPDATE pointer SET n = 7 WHERE id = 1');
my $xid = pack 'V', sql('SELECT xmin FROM pointer WHERE id = 1');
my $row = pack 'VV', 1, 7;
is( change_pages($node, 'pointer',
		sub { my ($page) = @_; return $page =~ s/\x01\Q$xid\E(.{4})..\Q$row\E/\x01$xid$1\x00\x00$row/s ? $page : undef; }),
	1, 'the row is on its page');
(undef, undef, $stderr) = $node->psql('postgres', 'UPDATE pointer SET n = 8 WHERE id = 1');
like($stderr, qr/corrupted version of row \(0,2\) of relation "pointer"/, 'pointer: an update');

unlike(slurp_file($node->logfile), qr/PANIC|TRAP:|terminated by signal/, 'no crash');
$node->stop;
done_testing();
