# A disk that is full again and again while tables and indexes grow: statements fail as heap's do, and nothing else happens.  The
# transactions change inplace tables and heap twins alike.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceLoad;
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

test_seed();

my $full = PostgreSQL::Test::Utils::tempdir('full') . '/disk';
my $library = build_module('full_disk');
# servers are started again after crashes
$ENV{LD_PRELOAD} = "$library.so";
$ENV{FULL_DISK} = $full;
my $node = new_cluster('main', conf => "shared_preload_libraries = 'inplace, pbtree'\nautovacuum = off\nlog_min_messages = fatal");
create_twins($node);
$node->safe_psql('postgres', 'CREATE EXTENSION pbtree; CREATE INDEX i_acc_grp ON i_acc USING pbtree (grp, note); CREATE INDEX i_doc_tags ON i_doc USING pbtree (tags, ver)');

sub fill { append_to_file($full, ''); return; }
sub free { unlink $full or die "could not remove $full: $!"; return; }

# Does it do anything?
fill();
my ($status, undef, $stderr) = $node->psql('postgres', q(INSERT INTO i_doc SELECT i, 0, repeat('x', 500) FROM generate_series(-1000, -1) i));
like($stderr, qr/No space left on device/, 'the disk is full');
free();

# Random transactions, of which some fail.
sub transactions
{
	my ($n) = @_;
	my $sql = '';
	for (1 .. $n)
	{
		my @changes = map {
			sprintf 'SELECT change(%d, %d, %d, %d);', random_between(0, 16), random_between(0, 2600), random_between(10, 2600), random_between(0, 1_000_000)
		} 1 .. random_between(1, 8);
		splice @changes, random_between(0, $#changes), 0, 'SAVEPOINT a;' if @changes > 2;
		push @changes, 'ROLLBACK TO a;' if @changes > 2 && rand() < 0.3;
		my $all = rand() < 0.05 ? "UPDATE i_doc SET body = body || repeat('y', 400); UPDATE h_doc SET body = body || repeat('y', 400);" : '';
		$sql .= join ' ', $all ? 'BEGIN ISOLATION LEVEL REPEATABLE READ;' : 'BEGIN;', @changes, $all, rand() < 0.15 ? "ROLLBACK;\n" : "COMMIT;\n";
		$sql .= "VACUUM i_acc;\nVACUUM i_doc;\n" if rand() < 0.02;
	}
	return $sql;
}

sub all_ok
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	twins_ok($node, $name);
	tables_ok($node, $name, @twin_tables);
	$node->psql('postgres', "SELECT pbtree_check('i_acc_grp', true), pbtree_check('i_doc_tags', true)", stderr => \my $stderr);
	is($stderr, '', "$name: pbtree indexes are sound");
	return;
}

foreach my $round (1 .. rounds(2))
{
	my @runs;
	my $old = $node->background_psql('postgres');
	$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT check_twins()');
	foreach my $client (1 .. 4)
	{
		my $script = PostgreSQL::Test::Utils::tempdir('script') . '/sql';
		append_to_file($script, transactions(150));
		push @runs, { err => "$script.err", run => IPC::Run::start(['psql', '-XqAt', '-d', $node->connstr('postgres'), '-f', $script],
				'<', File::Spec->devnull, '>', File::Spec->devnull, '2>', "$script.err") };
	}
	for (1 .. 10)
	{
		usleep(random_between(20_000, 200_000));
		fill();
		usleep(random_between(20_000, 200_000));
		free();
	}
	my %errors;
	foreach my $run (@runs)
	{
		$run->{run}->finish;
		my $err = slurp_file($run->{err});
		$errors{$1 =~ s/"[^"]*"/"..."/gr =~ s/\d+/N/gr}++ while $err =~ /ERROR:  (.*)/g;
	}
	note("$_: $errors{$_}") foreach sort keys %errors;
	my @bad = grep { !/No space left|current transaction is aborted|savepoint .* does not exist|deadlock detected|could not serialize|lock not available/ } keys %errors;
	is(join(', ', @bad), '', "round $round: no other error");
	cmp_ok(scalar(grep { /No space/ } keys %errors), '>', 0, "round $round: the disk was full");
	my (undef, $failed) = $old->query('SELECT check_twins()');
	ok(!$failed, "round $round: an old snapshot sees both twins as they were") or diag($old->{stderr});
	$old->quit;
	all_ok("round $round");
	if ($round % 2 == 0)
	{
		crash_and_recover($node, 'kill');
		all_ok("round $round: after a crash");
	}
}
log_ok($node, 'server', 0);
done_testing();
