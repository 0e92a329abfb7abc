# Damage of lock pages, and of the metapage's lock sets, while transactions that have locked rows are running.  Where it is not known
# who has locked a row, that row can be locked and changed only when no such transaction is running any more; readers do not care.
# VACUUM mends the list of lock pages, and frees pages that have fallen out of it.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use constant {
	BLCKSZ   => 8192,
	PD_UPPER => 14,
	NRUNS    => 8192 + 28,    # of the metapage
	NEXT     => 8192 - 16,    # in the special space of a lock page
	KIND     => 8192 - 4
};

my $node = new_cluster('main', conf => "autovacuum = off\nmax_prepared_transactions = 20\ninplace.debug_undo_at_home = off\n");

sql_on(\$node);

my $lock_pages = q(SELECT b FROM generate_series(0, pg_relation_size('l') / 8192 - 1) b, inplace_page('l', b) p WHERE kind = 'lock' ORDER BY b);

# Who has the row's sets: a statement that wants it at once.
sub lock_of { return answer("SELECT id FROM l WHERE id = $_[0] FOR UPDATE NOWAIT"); }

my $locked  = qr/ERROR:  55P03/;
my $unknown = qr/ERROR:  XX001: row locks of block \d+ of relation "l" have been lost: lock page \d+ is, or was, damaged/;

# Two rows a page.
sub make_table
{
	sql('DROP TABLE IF EXISTS l', 'CREATE TABLE l (id int PRIMARY KEY, s text) USING inplace', 'ALTER TABLE l ALTER s SET STORAGE plain',
		q(INSERT INTO l SELECT i, repeat('l', 3900) FROM generate_series(1, 1000) i));
	sql('VACUUM l');
	return;
}

# Such a table of which a prepared transaction has locked all rows, on the metapage and some lock pages; an id of each of these.
sub locked_table
{
	make_table();
	sql(q(BEGIN; SELECT count(*) FROM (SELECT FROM l FOR UPDATE) x; PREPARE TRANSACTION 'p'));
	my @pages = split /\n/, sql($lock_pages);
	cmp_ok(scalar @pages, '>=', 3, 'lock pages ' . join ' ', @pages);
	my %id = map { $_ => sql("SELECT min(id) FROM l WHERE ctid IN (SELECT format('(%s,%s)', block, off)::tid FROM inplace_locks('l'), unnest(rows) off WHERE page = $_)") } 1, @pages;
	like(lock_of($id{$_}), $locked, "sets on page $_ are known") foreach 1, @pages;
	return (\%id, @pages);
}

# Nothing is left of it when the transaction has ended.
sub ended_ok
{
	my ($how, $id) = @_;
	sql(q(ROLLBACK PREPARED 'p'));
	is(lock_of($id->{$_}), $id->{$_}, "$how: a row with sets on page $_ when nobody is running") foreach sort keys %$id;
	sql(q(UPDATE l SET s = upper(s)));
	sql('VACUUM l') foreach 1 .. 2;
	is(sql($lock_pages), '', "$how: VACUUM frees all lock pages");
	is(sql(q(SELECT count(*), count(DISTINCT s) FROM l)), '1001|2', "$how: all rows are there");
	tables_ok($node, $how, 'l');
	return;
}

sub sound_ok { is(sql(q(SELECT string_agg(c::text, ' ') FROM inplace_check('l') c)), '', "$_[0]: inplace_check"); return; }

# ---- a lock page -----------------------------------------------------------------------------

foreach my $damage ([ 'place of sets', PD_UPPER, "\x01" ], [ 'kind', KIND, "\x04" ], [ 'no page of ours', KIND, "\x77" ])
{
	my ($how, $at, $byte) = @$damage;
	my ($id, @pages) = locked_table();
	my $bad = $pages[1];
	is(change_pages($node, 'l', sub { my ($page, $block) = @_; return undef if $block != $bad; substr($page, $at, 1) = $byte; return $page; }), 1, "$how: damage");
	is(sql('SELECT count(*) FROM l'), 1000, "$how: readers");
	like(lock_of($id->{$bad}), $unknown, "$how: a row whose sets may have been there");
	like(answer("UPDATE l SET s = '' WHERE id = $id->{$bad}"), $unknown, "$how: an update of it");
	like(lock_of($id->{$_}), $locked, "$how: a row with sets on page $_") foreach grep { $_ != $bad } 1, @pages;
	sql(q(INSERT INTO l VALUES (1001, 'new')));
	is(lock_of(1001), 1001, "$how: a new row");
	like(answer('VACUUM l'), qr/WARNING:  XX001: repaired list of lock pages of relation "l" at block $bad: /, "$how: VACUUM mends the list");
	sound_ok($how);
	like(lock_of($id->{$bad}), $unknown, "$how: which does not bring locks back");
	like(lock_of($id->{$_}), $locked, "$how: nor take others away: page $_") foreach grep { $_ != $bad } 1, @pages;
	ended_ok($how, $id);
}

# ---- the metapage ----------------------------------------------------------------------------

{
	my ($id, @pages) = locked_table();
	change_pages($node, 'l', sub { my ($page, $block) = @_; return undef if $block != 1; substr($page, KIND, 1) = "\x77"; return $page; });
	my $log = -s $node->logfile;
	is(sql('SELECT count(*) FROM l'), 1000, 'metapage: readers');
	like(lock_of($id->{1}), $unknown, 'metapage: a row with sets there');
	# on a page of its own
	sql(q(INSERT INTO l VALUES (1001, repeat('new', 2600))), q(UPDATE l SET s = upper(s) WHERE id = 1001));
	like(slurp_file($node->logfile, $log), qr/rebuilding metapage of relation "l": /, 'metapage: an update makes it anew');
	like(lock_of($id->{1}), $unknown, 'metapage: its sets are lost');
	like(lock_of($id->{$_}), $locked, "metapage: others are not: page $_") foreach @pages;
	is(lock_of(1001), 1001, 'metapage: a new row is locked');
	is(lock_of(1001), 1001, 'metapage: and again');
	sql('VACUUM l');
	like(lock_of($id->{$_}), $locked, "metapage: nor by VACUUM: page $_") foreach @pages;
	ended_ok('metapage', $id);
}

# Only its list of undo pages is damaged.
{
	my ($id, @pages) = locked_table();
	change_file($node, 'l', sub { my ($bytes) = @_; substr($$bytes, NRUNS, 1) ^= "\x01"; });
	like(lock_of($id->{$_}), $locked, "list of undo pages: locks are known: page $_") foreach 1, @pages;
	like(answer('VACUUM l'), qr/WARNING:  XX001: rebuilding damaged metapage of relation "l": /, 'list of undo pages: VACUUM');
	like(lock_of($id->{$_}), $locked, "list of undo pages: and afterwards: page $_") foreach 1, @pages;
	sql(q(INSERT INTO l VALUES (1001, 'new')));
	sound_ok('list of undo pages');
	ended_ok('list of undo pages', $id);
}

# ---- links -----------------------------------------------------------------------------------

foreach my $to ('back', 'itself', 'the metapage', 'nowhere')
{
	my ($id, @pages) = locked_table();
	my %link = (back => $pages[0], itself => $pages[-1], 'the metapage' => 1, nowhere => 1_000_000);
	change_pages($node, 'l', sub { my ($page, $block) = @_; return undef if $block != $pages[-1]; substr($page, NEXT, 4) = pack 'L<', $link{$to}; return $page; });
	like(lock_of($id->{$_}), $locked, "link to $to: locks are known: page $_") foreach 1, @pages;
	sql(q(INSERT INTO l VALUES (1001, 'new')));
	like(answer('VACUUM l'), qr/WARNING:  XX001: repaired list of lock pages of relation "l" at block $link{$to}: list of lock pages leads nowhere/,
		"link to $to: VACUUM");
	sound_ok("link to $to");
	like(lock_of($id->{$_}), $locked, "link to $to: and afterwards: page $_") foreach 1, @pages;
	ended_ok("link to $to", $id);
}

# ---- sets that go on behind the damage -------------------------------------------------------

# Of the first page's sets, more than can be moved, all are on the metapage but for the last one, which is on the last lock page.
sub continued_table
{
	make_table();
	sql("BEGIN; SELECT FROM l WHERE id = 1 FOR KEY SHARE; PREPARE TRANSACTION 'k$_'") foreach 1 .. 9;
	sql(q(BEGIN; SELECT count(*) FROM (SELECT FROM l FOR KEY SHARE) x; PREPARE TRANSACTION 'p'));
	sql(q(BEGIN; SELECT FROM l WHERE id = 1 FOR NO KEY UPDATE; PREPARE TRANSACTION 'last'));
	my @pages = split /\n/, sql($lock_pages);
	is(sql(q(SELECT string_agg(page || ' ' || n, ', ' ORDER BY page) FROM (SELECT page, count(*) AS n FROM inplace_locks('l')
		WHERE block = (SELECT (ctid::text::point)[0]::int FROM l WHERE id = 1) GROUP BY page) x)), "1 10, $pages[-1] 1", 'sets of the first page');
	return @pages;
}

sub forget_others { sql("ROLLBACK PREPARED '$_'") foreach 'p', map { "k$_" } 1 .. 9; return; }

foreach my $how ('a page behind it', 'its link')
{
	my @pages = continued_table();
	my ($bad, $at, $bytes) = $how eq 'its link' ? (1, NEXT, pack 'L<', 1) : ($pages[0], KIND, "\x77");
	change_pages($node, 'l', sub { my ($page, $block) = @_; return undef if $block != $bad; substr($page, $at, length $bytes) = $bytes; return $page; });
	like(lock_of(1), $unknown, "continued, $how: a row whose set may be lost");
	sql(q(INSERT INTO l VALUES (1001, repeat('new', 2600))));
	is(lock_of(1001), 1001, "continued, $how: a set on a new page of the list");
	unlike(answer(q(BEGIN; SELECT id FROM l WHERE id = 1001 FOR UPDATE; UPDATE l SET s = 'x' WHERE id = 1001; COMMIT)), qr/ERROR/,
		"continued, $how: who has locked such a row is not told that the lock may be lost");
	forget_others();
	like(lock_of(1), $unknown, "continued, $how: which does not make the lost one forgotten");
	like(answer('VACUUM l'), qr/WARNING:  XX001: repaired list of lock pages of relation "l" at block/, "continued, $how: VACUUM") if $bad != 1;
	like(lock_of(1), $unknown, "continued, $how: nor does VACUUM");
	sql(q(ROLLBACK PREPARED 'last'));
	is(lock_of(1), 1, "continued, $how: nobody has locked it any more");
	sql('VACUUM l') foreach 1 .. 2;
	is(sql($lock_pages), '', "continued, $how: VACUUM frees all lock pages");
	sound_ok("continued, $how");
}

# Pages behind the damaged one fall out of the list: one that still leads to another, and has a set that is live, or is not known to be dead, keeps
# that one.  Afterwards rows whose sets were there are locked, whoever else is running.
{
	my @pages = continued_table();
	change_pages($node, 'l', sub { my ($page, $block) = @_; return undef if $block != $pages[0]; substr($page, KIND, 1) = "\x77"; return $page; });
	forget_others();
	like(answer('VACUUM l'), qr/WARNING:  XX001: repaired list of lock pages of relation "l" at block/, 'pages behind: VACUUM');
	sql(q(ROLLBACK PREPARED 'last'));
	sql(q(BEGIN; UPDATE l SET s = '' WHERE id = 900; PREPARE TRANSACTION 'later'));
	is(lock_of($_), $_, "pages behind: row $_") foreach map { 100 * $_ + 1 } 1 .. 8;
	sql('VACUUM l') foreach 1 .. 2;
	is(sql($lock_pages), '', 'pages behind: VACUUM frees them');
	sound_ok('pages behind');
	sql(q(ROLLBACK PREPARED 'later'));
}

# A page that is in the list no more, and whose link is wrong, too.
{
	my @pages = continued_table();
	change_pages($node, 'l', sub {
		my ($page, $block) = @_;
		if ($block == 1) { substr($page, KIND, 1) = "\x77"; }
		elsif ($block == $pages[0]) { substr($page, NEXT, 4) = pack 'L<', $block; }
		else { return undef; }
		return $page;
	});
	forget_others();
	sql(q(ROLLBACK PREPARED 'last'));
	sql('VACUUM l') foreach 1 .. 2;
	is(sql($lock_pages), '', 'stray that leads to itself: VACUUM frees all lock pages');
	sound_ok('stray that leads to itself');
}

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP:/, 'no crash of its own');
done_testing();
