# Rows that all see lose their version blocks: VACUUM logs a byte or two for each, not the row.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

test_seed();
my $node = new_cluster('main', streaming => 1, conf => "autovacuum = off\ninplace.debug_heal = off\nsynchronous_commit = off\nwal_consistency_checking = 'inplace'\n");
my $standby = new_standby($node, "hot_standby_feedback = off\n");

sql_on(\$node);
sub flush { return sql('SET synchronous_commit = on', q(SELECT pg_logical_emit_message(true, '', ''))); }

my $rows_with_state = q(SELECT count(*) FROM generate_series(0, pg_relation_size('t') / 8192 - 1) b, inplace_rows('t', b) WHERE flags && '{version,locked}');

# The standby, which replays the record, has what the primary has, and it has what the heap has.
sub same_everywhere
{
	my ($when) = @_;
	my $rows = 'SELECT count(*), md5(string_agg(t::text, $$ $$ ORDER BY id)) FROM ';
	tables_ok($node, $when, 't');
	is(sql($rows . 't'), sql($rows . 'h t'), "$when: the rows are right");
	flush();
	$node->wait_for_catchup($standby);
	is($standby->safe_psql('postgres', $rows . 't'), sql($rows . 't'), "$when: on the standby, too");
	return;
}

sub make_tables
{
	my ($changes) = @_;
	sql('DROP TABLE IF EXISTS t, h', 'CREATE TABLE t (id int, n int, s text, late text) USING inplace', 'CREATE TABLE h (LIKE t) USING heap',
		q(INSERT INTO t SELECT i, i, repeat('s', 20) FROM generate_series(1, 20) i), 'INSERT INTO h TABLE t', 'VACUUM t');
	sql(q(DO $$BEGIN FOR i IN 21 .. 100 LOOP INSERT INTO t VALUES (i, i, 'alone'); INSERT INTO h VALUES (i, i, 'alone'); COMMIT; END LOOP; END$$));
	foreach my $change (@$changes) { sql($change =~ s/TABLE/t/r, $change =~ s/TABLE/h/r); }
	return;
}

# ---- what was inserted by a transaction each, and changed in place, longer and shorter ------

my @changes = (
	'UPDATE TABLE SET n = -n WHERE id <= 10',
	q(UPDATE TABLE SET s = repeat('l', 40), late = 'late' WHERE id % 7 = 0),
	q(UPDATE TABLE SET s = 's', late = NULL WHERE id % 7 = 0),
	'UPDATE TABLE SET s = NULL WHERE id BETWEEN 5 AND 30',
	'DELETE FROM TABLE WHERE id % 10 = 0');
make_tables(\@changes);
sql('VACUUM t');
is(sql($rows_with_state), 0, 'after VACUUM no row has one');
same_everywhere('after VACUUM');
is(sql(q(SELECT count(*) FROM inplace_rows('t', 0) WHERE body_len > 10 AND get_byte(data, body_len - 1) = 0)), 0, 'no row ends with zeros');

# ---- what it logs -----------------------------------------------------------------------------

SKIP:
{
	skip 'pg_walinspect is not installed', 4
	  if sql(q(SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_walinspect')) eq '0';
	sql('CREATE EXTENSION pg_walinspect', q(ALTER SYSTEM SET wal_consistency_checking = ''), 'SELECT pg_reload_conf()');
	foreach my $changed ([], ['UPDATE TABLE SET n = n + 1 WHERE id <= 20'])
	{
		make_tables($changed);
		sql('CHECKPOINT', 'SELECT count(*) FROM t');
		sql("INSERT INTO t VALUES (0, 0, 'the page has its image')", "INSERT INTO h VALUES (0, 0, 'the page has its image')");
		my $begin = sql('SELECT pg_current_wal_insert_lsn()');
		sql('VACUUM t');
		flush();
		my $records = "FROM pg_get_wal_records_info('$begin', pg_current_wal_flush_lsn()) WHERE resource_manager = 'inplace' AND description ~ 'freeze rows'";
		is(sql("SELECT count(*) $records"), 1, 'one record for the page');
		cmp_ok(sql("SELECT sum(record_length - fpi_length) $records"), '<', 240, 'of a byte or two a row');
	}
	same_everywhere('without images');
}

# ---- what not all see stays; a lock leaves no state -------------------------------------------------

make_tables([]);
my $reader = $node->background_psql('postgres');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
sql('UPDATE t SET n = 0 WHERE id = 1', 'UPDATE h SET n = 0 WHERE id = 1');
sql("INSERT INTO t VALUES (101, 0, 'new')", "INSERT INTO h VALUES (101, 0, 'new')");
my $locker = $node->background_psql('postgres');
$locker->query_safe('BEGIN; SELECT * FROM t WHERE id = 21 FOR UPDATE');
sql('VACUUM t');
is(sql(q(SELECT string_agg(off::text, ' ' ORDER BY off) FROM inplace_rows('t', 0) WHERE flags && '{version}')), '2 103', 'these have a state; a locked row has none');
is($reader->query_safe('SELECT count(*), sum(n) FROM t'), '100|5050', 'the snapshot sees what it did');
same_everywhere('a snapshot and a lock');
$_->query_safe('COMMIT') foreach $reader, $locker;
$_->quit foreach $reader, $locker;
sql('VACUUM t');
is(sql($rows_with_state), 0, 'after VACUUM no row has one');
crash_and_recover($node, 'kill');
same_everywhere('after a crash');
log_ok($node, 'primary', 0);
log_ok($standby, 'standby', 0);
$standby->stop;
$node->stop;
done_testing();
