# Crashes at random moments of a TPC-B load: nothing confirmed is lost, nothing
# is there by half, and the tables are sound.  One cluster goes through all
# rounds, so that damage which one crash leaves is found by a later round.

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
create_bank($node);
my $log_offset = 0;

foreach my $round (1 .. rounds(10))
{
	my $name = "round $round";

	my $settings = random_crash_settings($node);

	my $bank    = start_pgbench($node, scripts => [bank_scripts()]);
	my $journal = start_pgbench(
		$node,
		clients => 4,
		scripts => [journal_scripts()],
		log     => 1,
		args    => [ '-D', "round=$round", '-D', 'n=0' ]);

	usleep(random_between(300_000, 1_500_000));
	checkpoint_sometimes($node);

	my $how          = rand() < 0.7 ? 'kill' : 'immediate';
	my $recovery_too = rand() < 0.3;
	note("$name: $settings"
		  . ", $how"
		  . ($recovery_too ? ', recovery killed too' : ''));
	crash_and_recover($node, $how, recovery_too => $recovery_too);

	my $bank_result    = finish_pgbench($bank);
	my $journal_result = finish_pgbench($journal);
	is($bank_result->{errors} . $journal_result->{errors},
		'', "$name: clients saw no error but the crash");

	bank_ok($node, $name);
	journal_ok($node, $name, $round, $journal_result->{confirmed});
	tables_ok($node, $name, @bank_tables);
	$log_offset = log_ok($node, $name, $log_offset);
}

$node->stop;
done_testing();
