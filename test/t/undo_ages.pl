# The records of an undo page may be older than each other by any number of transactions that the
# server allows: a snapshot at each VACUUM keeps the page, and a row changes once in 400 million.

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
inplace.debug_undo_at_home = off
autovacuum_freeze_max_age = 2000000000
));

sql_on(\$node);

my $XIDS = 2**32;

# The next transaction id, with its epoch; the server reads the page of pg_xact that has it.
sub jump
{
	my ($xid) = @_;
	$node->stop;
	my $file = sprintf '%s/pg_xact/%04X', $node->data_dir, ($xid % $XIDS) / (32 * 8192 * 4);
	append_to_file($file, "\0" x (32 * 8192)) unless -e $file;
	system_or_bail('pg_resetwal', '-e', int($xid / $XIDS), '-x', $xid % $XIDS, $node->data_dir);
	$node->start;
	return;
}

sub vacuum_all
{
	sql('ALTER DATABASE template0 ALLOW_CONNECTIONS true');
	$node->safe_psql($_, 'VACUUM (FREEZE)') foreach qw(template0 template1 postgres);
	return;
}

sql('CREATE TABLE ages (id int PRIMARY KEY, n int) USING inplace',
	'INSERT INTO ages SELECT i, 0 FROM generate_series(1, 10) i');
my $xid  = sql('SELECT pg_current_xact_id()');
my $span = 0;
foreach my $age (1 .. 7)
{
	$xid += 400_000_000;
	jump($xid);
	my $reader = $node->background_psql('postgres', on_error_stop => 1);
	$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT sum(n) FROM ages');
	sql('UPDATE ages SET n = n + 1 WHERE id = 1');
	my $now = sql('SELECT max(span) FROM (SELECT max(xid::text::bigint) - min(xid::text::bigint) AS span
		FROM generate_series(2, pg_relation_size($$ages$$) / 8192 - 1) b, inplace_undo_records($$ages$$, b) GROUP BY b) s');
	$span = $now if $now > $span;
	vacuum_all();
	is($reader->query_safe('SELECT sum(n) FROM ages'), $age - 1, "age $age: the snapshot sees its version");
	$reader->query_safe('COMMIT');
	$reader->quit;
	is(sql('SELECT count(*) FROM inplace_check($$ages$$)'), '0', "age $age: inplace_check");
}
is(sql('SELECT sum(n) FROM ages'), '7', 'all changes are there');
cmp_ok($span, '>', 1_000_000_000, 'a page had records of very different ages');
# and such pages can be used again
sql(q(DO $$BEGIN FOR i IN 1..3000 LOOP UPDATE ages SET n = n + 1; COMMIT; END LOOP; END$$));
cmp_ok(sql('SELECT pg_relation_size($$ages$$) / 8192'), '<', 12, 'its pages are used again');

# ---- a version so old that undo takes it for one that all see ---------------------------------

# A standby's snapshot, of which nobody here knows, may be older: the record has to say which ones conflict with it.
sub conflict_bytes
{
	my ($update) = @_;
	my $lsn = sql('SELECT pg_current_wal_insert_lsn()');
	sql($update);
	return sql("SELECT main_data_length FROM pg_get_wal_records_info('$lsn', pg_current_wal_insert_lsn())
		WHERE resource_manager = 'inplace' AND record_type = 'UPDATE'");
}

SKIP:
{
	skip 'pg_walinspect is not installed', 3
	  if sql(q(SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_walinspect')) eq '0';
	sql('CREATE EXTENSION pg_walinspect', 'CREATE TABLE old (id int PRIMARY KEY, n int) USING inplace',
		'INSERT INTO old SELECT i, 0 FROM generate_series(1, 10) i');
	vacuum_all();
	sql('UPDATE old SET n = 1 WHERE id = 1');
	is(conflict_bytes('UPDATE old SET n = 2 WHERE id = 1'), 0, 'an update has no conflict horizon');
	jump(sql('SELECT pg_current_xact_id()') + 1_200_000_000);
	is(conflict_bytes('UPDATE old SET n = 3 WHERE id = 1'), 9, 'but one of an old version');
	vacuum_all();
	tables_ok($node, 'an old version', 'old');
}
tables_ok($node, 'in the end', 'ages');
log_ok($node, 'whole run', 0);
$node->stop;
done_testing();
