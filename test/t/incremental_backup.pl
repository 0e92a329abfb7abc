# Incremental backups: the WAL summarizer knows which blocks have changed by what WAL records name, so each change of
# an inplace table must name all that it changes.  Backups are made while nothing happens and under load, on top of
# one another; what pg_combinebackup makes of them must be the primary's tables.
#
# Each backup is on top of the one before, and nothing else makes a checkpoint: then there is one WAL summary between two backups.
# Core merges several in any order, and forgets blocks of a table, also of a heap, that was cut off in one and grew in the next.

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

plan skip_all => 'there are no incremental backups before PostgreSQL 17'
  if `$ENV{PG_CONFIG} --version` =~ /^PostgreSQL 1[56]\D/;
test_seed();

my $primary = new_cluster(
	'primary',
	streaming => 1,
	conf      => q(
summarize_wal = on
autovacuum = off
# changed pages are to be named even where no image of them is logged
full_page_writes = off
max_prepared_transactions = 5
wal_keep_size = 1GB
max_wal_size = 10GB
checkpoint_timeout = 1h
));
create_twins($primary);
$primary->safe_psql('postgres', q(
	CREATE TABLE big (id int PRIMARY KEY, n int, body text) USING inplace;
	INSERT INTO big SELECT i, 0, repeat('x', 80) FROM generate_series(1, 20000) i;
	CREATE TABLE shrinks (LIKE big) USING inplace;
	INSERT INTO shrinks TABLE big;
	CREATE TABLE rings (id int PRIMARY KEY, n int, body text) USING inplace;
	INSERT INTO rings TABLE big;
	CREATE TABLE rewritten (LIKE big) USING inplace;
	INSERT INTO rewritten TABLE big;
	CREATE TABLE truncated (LIKE big) USING inplace;
	INSERT INTO truncated TABLE big;
	CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY, n int) USING inplace;
	INSERT INTO unlogged SELECT i, i FROM generate_series(1, 5000) i;
	VACUUM; CHECKPOINT));
my @tables = (@twin_tables, qw(big shrinks rings rewritten truncated));

# A backup on top of another one.
sub incremental
{
	my ($name, $prior) = @_;
	$primary->backup($name, backup_options => [ '--incremental' => $primary->backup_dir . "/$prior/backup_manifest" ]);
	return;
}

# A server made of these backups, oldest first, which then follows the primary.
my $copies = 0;
sub combined_ok
{
	my ($name, @backups) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $last = pop @backups;
	my $copy = PostgreSQL::Test::Cluster->new('copy' . ++$copies);
	$copy->init_from_backup($primary, $last, combine_with_prior => [@backups], has_streaming => 1);
	$copy->start;
	# for the checks of indexes
	$primary->wait_for_catchup($copy);
	same_contents("$name: same rows", $primary, $copy, @tables);
	$copy->promote;
	tables_ok($copy, $name, @tables);
	twins_ok($copy, $name);
	is($copy->safe_psql('postgres', 'SELECT count(*) FROM unlogged'), 0, "$name: an unlogged table is empty");
	# it goes on: what was not copied would be missed by now
	$copy->safe_psql('postgres', "UPDATE big SET n = n + 1; DELETE FROM rings WHERE id % 2 = 0; VACUUM big, rings");
	tables_ok($copy, "$name: and goes on", qw(big rings));
	log_ok($copy, $name, 0);
	$copy->stop;
	return;
}

$primary->backup('full');

# One page of a table: little more than that is in the backup.
$primary->safe_psql('postgres', 'UPDATE big SET n = 1 WHERE id BETWEEN 9000 AND 9002');
incremental('little', 'full');
my ($path, $pages) = split /\|/, $primary->safe_psql('postgres', q(
	SELECT pg_relation_filepath('big'), pg_relation_size('big') / 8192));
my $file = $primary->backup_dir . '/little/' . $path =~ s/([^\/]+)$/INCREMENTAL.$1/r;
ok(-e $file, 'a table is backed up incrementally');
cmp_ok(-s $file, '<', 10 * 8192, "a few of its $pages pages");
combined_ok('a few rows', qw(full little));

# Everything that makes, frees, moves and cuts off pages, and changes that are not over.
my $old = $primary->background_psql('postgres');
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM rings');
$primary->safe_psql('postgres', "UPDATE rings SET n = n + 1, body = body || 'y' WHERE id % 3 <> 0") for 1 .. 3;
$primary->safe_psql('postgres', q(
	BEGIN; UPDATE big SET n = -1, body = left(body, 20) WHERE id < 3000; DELETE FROM rings WHERE id < 1000; ROLLBACK;
	DELETE FROM shrinks WHERE id > 2000;
	VACUUM shrinks;
	DELETE FROM big WHERE id % 50 = 0;
	VACUUM big;
	VACUUM FULL rewritten;
	UPDATE rewritten SET body = 'rewritten' WHERE id < 100;
	TRUNCATE truncated;
	INSERT INTO truncated SELECT i, i, 'new' FROM generate_series(1, 3000) i;
	BEGIN; SELECT count(*) FROM (SELECT FROM big WHERE id BETWEEN 5000 AND 6000 FOR UPDATE) l; UPDATE big SET n = 7 WHERE id = 5500; PREPARE TRANSACTION 'p'));
incremental('much', 'little');
$primary->safe_psql('postgres', q(COMMIT PREPARED 'p'));
combined_ok('pages that come and go', qw(full little much));

# What the old snapshot needed goes; files end where they ended before and grow again.
$old->quit;
$primary->safe_psql('postgres', q(
	VACUUM rings; VACUUM rings;
	INSERT INTO shrinks SELECT i, i, repeat('again', 20) FROM generate_series(30001, 45000) i;
	DELETE FROM truncated; VACUUM truncated;
	INSERT INTO truncated SELECT i, i, 'newer' FROM generate_series(1, 2000) i));
incremental('less', 'much');
combined_ok('pages that were given back', qw(full little much less));

# Under load, each on top of the one before.
my $load = start_pgbench($primary, scripts => [ twin_scripts() ], clients => 4, args => [ '--max-tries=100' ]);
my @chain = qw(full little much less);
foreach my $n (1 .. 2)
{
	usleep(random_between(500_000, 2_500_000));
	incremental("load$n", $chain[-1]);
	push @chain, "load$n";
}
$load->{run}->signal('INT');
my $result = finish_pgbench($load);
is($result->{errors}, '', 'the load has no errors');
combined_ok('under load', @chain);
log_ok($primary, 'primary', 0);

done_testing();
