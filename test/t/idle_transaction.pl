# A transaction that has neither a transaction id nor a snapshot holds nothing back.  So while it is idle others may use up more
# ids than two of them can be apart.  Then it reads and writes.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster(
	'main', conf => qq(
autovacuum = off
autovacuum_freeze_max_age = 2000000000
));

sql_on(\$node);

my $library = build_module('set_next_xid');
sql("CREATE FUNCTION set_next_xid(xid8) RETURNS void LANGUAGE C AS '$library'",
	'ALTER DATABASE template0 ALLOW_CONNECTIONS true');

# So many transactions, or some less: then the first of a page of pg_xact comes.
my $xid = 0;
sub use_up
{
	my ($n) = @_;
	$xid += int($n / 32768) * 32768;
	sql("SELECT set_next_xid('$xid'), pg_current_xact_id()");
	return;
}

sub vacuum_all
{
	$node->safe_psql($_, 'VACUUM (FREEZE)') foreach qw(template0 template1 postgres);
	return;
}

sub use_up_billions
{
	my ($n) = @_;
	foreach (1 .. $n)
	{
		use_up(1e9);
		vacuum_all();
	}
	return;
}

my @scans = qw(seqscan indexscan bitmapscan);
sub only
{
	my ($scan) = @_;
	return map { "SET enable_$_ = " . ($_ eq $scan ? 'on' : 'off') } @scans;
}

use_up_billions(3);
sql(map { ("CREATE TABLE $_ (id int PRIMARY KEY, n int) USING inplace") } qw(changed filled locked));
sql('INSERT INTO changed SELECT i, 0 FROM generate_series(1, 10) i', 'INSERT INTO locked SELECT i, 0 FROM generate_series(1, 10) i');
my $idle = $node->background_psql('postgres', on_error_stop => 1);
my $query = 'SELECT count(*), sum(n) FROM changed WHERE id > 0';
$idle->query_safe('BEGIN');
is($idle->query_safe($query), '10|0', 'at first');
use_up_billions(3);
cmp_ok(sql('SELECT pg_current_xact_id()'), '>', 5_900_000_000, 'three billions of transactions later');

my $writer = $node->background_psql('postgres', on_error_stop => 1);
$writer->query_safe('BEGIN; UPDATE changed SET n = 1; SELECT FROM locked WHERE id = 1 FOR KEY SHARE');
foreach my $scan (@scans)
{
	$idle->query_safe($_) foreach only($scan);
	is($idle->query_safe($query), '10|0', "$scan: the version before a change");
}
$idle->query_safe('INSERT INTO filled SELECT i, 0 FROM generate_series(1, 1000) i');
is(sql('SELECT count(*) FROM filled'), 0, 'nobody sees what it inserts');
$idle->query_safe('UPDATE locked SET n = n + 1');
is(sql('SELECT count(*), sum(n) FROM locked'), '10|0', 'or updates, beside a lock');
$writer->query_safe('COMMIT');
is($idle->query_safe($query), '10|10', 'it sees the change');
$idle->query_safe('UPDATE changed SET n = n + 1');
is($idle->query_safe($query), '10|20', 'and changes that');
is(sql($query), '10|10', 'which nobody sees');
$idle->query_safe('COMMIT');
is(sql($query), '10|20', 'before it commits');
is(sql('SELECT count(*) FROM filled'), 1000, 'the rows are there');
$_->quit foreach $idle, $writer;
tables_ok($node, 'in the end', 'changed', 'filled', 'locked');
sql('VACUUM');
tables_ok($node, 'after VACUUM', 'changed', 'filled', 'locked');

log_ok($node, 'whole run', 0);
$node->stop;
done_testing();
