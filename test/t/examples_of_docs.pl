# The examples of README.md and docs/users: the blocks of a page that are marked as SQL run, in their order, in a
# database of their own.  A block that cannot run there has a comment before it that says why: <!-- not run: reason -->

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $root = "$FindBin::RealBin/../..";

# The blocks of a page that are to run, each as its first line's number and its text.
sub examples_of
{
	my ($text) = @_;
	my (@blocks, $block, $reason);
	my $number = 0;

	for my $line (split /\n/, $text)
	{
		$number++;
		if (defined $block)
		{
			if ($line =~ /^```\s*$/)
			{
				push @blocks, $block unless defined $reason;
				($block, $reason) = ();
			}
			else
			{
				$block->{text} .= "$line\n";
			}
		}
		elsif ($line =~ /^```sql\s*$/) { $block = { line => $number + 1, text => '' }; }
		elsif ($line =~ /^<!-- not run: \S.* -->$/) { $reason = $line; }
		elsif ($line ne '') { undef $reason; }
	}
	die "a block does not end" if defined $block;
	return @blocks;
}

# Runs blocks in a new database; returns the line of the block that fails and the error, or nothing.
my $databases = 0;

sub run_examples
{
	my ($node, @blocks) = @_;
	my $database = 'examples_' . ++$databases;
	my ($out, $err);

	$node->safe_psql('postgres', "CREATE DATABASE $database TEMPLATE template0");
	my $status = $node->psql($database, join('', map { "\\echo at line $_->{line}\n$_->{text}" } @blocks),
		stdout => \$out, stderr => \$err, on_error_stop => 1);
	return if $status == 0;
	my ($line) = $out =~ /.*^at line (\d+)$/ms;
	return "block at line $line: $err";
}

my $node = new_cluster('examples', conf => "shared_preload_libraries = 'inplace,pbtree'");

# What the test itself does with a page.
my $page = "Text\n```sql\nSELECT 1;\n```\n    SELECT 1/0;\n<!-- not run: needs a second server -->\n\n```sql\nSELECT 1/0;\n```\n"
  . "```sh\nfalse\n```\n```sql\nSELECT 2;\n```\n";
is_deeply([ map { "$_->{line}: $_->{text}" } examples_of($page) ], [ "3: SELECT 1;\n", "15: SELECT 2;\n" ], 'blocks of a page');
is(run_examples($node, examples_of($page)), undef, 'a page of which all runs');
like(run_examples($node, examples_of($page =~ s/SELECT 2/SELECT 2\/0/r)), qr/^block at line 15: .*division by zero/s, 'one of which a block fails');

# Each page that has examples; README.md and some of docs/users do.
my @pages = ("$root/README.md", sort glob "$root/docs/users/*.md");
my $with_examples = 0;
for my $path (@pages)
{
	my @blocks = examples_of(slurp_file($path)) or next;
	my $name = $path =~ s/^\Q$root\E\///r;
	$with_examples++;
	is(run_examples($node, @blocks), undef, "$name: " . @blocks . ' blocks');
}
ok(-e $pages[0] && $with_examples > 1, "$with_examples pages have examples");

$node->stop;
done_testing();
