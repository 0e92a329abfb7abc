# Crashes at random moments of a load that does everything else: inserts,
# deletes, moves, savepoints, rollbacks, locks, toasted values, VACUUM.  Each
# transaction makes the same changes to a heap table and to an inplace table;
# after recovery the two must have the same rows.

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

my $node = new_cluster('main', conf => 'max_wal_size = 1GB');
create_twins($node);
my $log_offset = 0;

foreach my $round (1 .. rounds(10))
{
	my $name = "round $round";

	my $settings = random_crash_settings($node);

	# In some rounds an old snapshot keeps all undo, so that the crash comes
	# when rings have grown and chains are long.
	my $reader;
	if (rand() < 0.3)
	{
		$reader = $node->background_psql('postgres');
		$reader->query_safe(
			'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT check_twins()');
	}

	my $load = start_pgbench($node, scripts => [ twin_scripts() ]);

	usleep(random_between(500_000, 2_500_000));
	checkpoint_sometimes($node);
	if ($reader)
	{
		my (undef, $failed) = $reader->query('SELECT check_twins()');
		ok(!$failed, "$name: an old snapshot still sees both twins as they were")
		  or diag($reader->{stderr});
	}

	my $how          = rand() < 0.7 ? 'kill' : 'immediate';
	my $recovery_too = rand() < 0.3;
	note("$name: $settings"
		  . ($reader       ? ', old snapshot'    : '')
		  . ($recovery_too ? ", $how, recovery killed too" : ", $how"));
	crash_and_recover($node, $how, recovery_too => $recovery_too);
	eval { $reader->quit } if $reader;

	my $result = finish_pgbench($load);
	is($result->{errors}, '', "$name: clients saw no error but the crash");

	twins_ok($node, $name);
	tables_ok($node, $name, @twin_tables);
	$log_offset = log_ok($node, $name, $log_offset);
}

$node->stop;
done_testing();
