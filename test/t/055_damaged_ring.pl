# A damaged ring of undo pages stops those who use it, with a clear error, and
# nobody else: other backends do not borrow it, and who had goes back to his own.

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
	PD_SPECIAL   => 16,		# where the page header says where the special space begins
	NEXT_OFFSET  => 8,		# in the special space of an undo page
	SLOT_OFFSET  => 12,
	FLAGS_OFFSET => 14
};

my $node = new_cluster('main', conf => "autovacuum = off\n");
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
		substr($$file, special($file, $block) + NEXT_OFFSET, 4) = pack 'L<', 0;
	});

sub special
{
	my ($file, $block) = @_;
	my $page = $block * BLCKSZ;
	return $page + unpack 'S<', substr $$file, $page + PD_SPECIAL, 2;
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
	unlink $node->data_dir . "/$path";
	append_to_file($node->data_dir . "/$path", $file);
	$node->start;

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
	$node->stop;
}

done_testing();
