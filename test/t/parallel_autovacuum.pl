# From PostgreSQL 19 on autovacuum has parallel workers for indexes.  Those of inplace tables are seen at work, and tell the indexes, as heap's
# do, that they are autovacuum's: GIN leaves what others add to its pending list meanwhile then.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster(
	'main',
	conf => q(
shared_preload_libraries = 'inplace, pbtree'
max_worker_processes = 16
max_parallel_workers = 8
min_parallel_index_scan_size = 0
log_autovacuum_min_duration = 0
));
if ($node->pg_version->major < 19)
{
	plan skip_all => "autovacuum's parallel workers came with PostgreSQL 19";
}
$node->append_conf('postgresql.conf', 'autovacuum_max_parallel_workers = 4');
$node->restart;
my $library = build_module('noting_btree');
$node->safe_psql(
	'postgres', qq(
CREATE EXTENSION pbtree;
CREATE FUNCTION noting_btree(internal) RETURNS index_am_handler LANGUAGE C AS '$library';
CREATE ACCESS METHOD noting_btree TYPE INDEX HANDLER noting_btree;
CREATE OPERATOR CLASS noting_int4 DEFAULT FOR TYPE int4 USING noting_btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btint4cmp(int4, int4);
));

# The log's lines of a table's indexes, each once, the table's name left out.
sub notes
{
	my ($table, $log) = @_;
	my %lines;
	$lines{$1 =~ s/\b${table}_/T_/r}++ while $log =~ /LOG:  ((?:bulk deletion|cleanup) of "${table}_.*)/g;
	return sort keys %lines;
}
my %notes;
foreach my $am (qw(heap inplace))
{
	my $table = substr($am, 0, 1) . '_work';
	$node->safe_psql(
		'postgres', qq(
CREATE TABLE $table (id int, a int, b int, words tsvector) USING $am WITH (autovacuum_enabled = off, autovacuum_parallel_workers = 2, autovacuum_vacuum_threshold = 10,
	autovacuum_vacuum_scale_factor = 0);
INSERT INTO $table SELECT i, i, -i, to_tsvector('simple', 'word ' || i % 1000) FROM generate_series(1, 20000) i;
CREATE INDEX ${table}_a ON $table USING noting_btree (a);
CREATE INDEX ${table}_b ON $table USING noting_btree (b);
CREATE INDEX ${table}_id ON $table USING noting_btree (id);
CREATE INDEX ${table}_p ON $table USING pbtree (a, b);
CREATE INDEX ${table}_w ON $table USING gin (words);
INSERT INTO $table SELECT i, i, -i, to_tsvector('simple', 'later ' || i % 1000) FROM generate_series(20001, 21000) i;
));
	my $from = -s $node->logfile;
	$node->safe_psql('postgres', "DELETE FROM $table WHERE id % 5 = 0; VACUUM $table");
	my @manual = notes($table, slurp_file($node->logfile, $from));
	ok(@manual > 0, "$am: a session's VACUUM tells its indexes something");
	is(scalar(grep { /is_autovacuum 1/ } @manual), 0, "$am: but not that it is autovacuum's");

	$from = -s $node->logfile;
	$node->safe_psql('postgres', "DELETE FROM $table WHERE id % 3 = 0; ALTER TABLE $table SET (autovacuum_enabled = on)");
	$node->poll_query_until('postgres', "SELECT autovacuum_count > 0 FROM pg_stat_user_tables WHERE relname = '$table'") or die;
	$node->wait_for_log(qr/automatic vacuum of table "postgres.public.$table"/, $from);
	$node->safe_psql('postgres', "ALTER TABLE $table SET (autovacuum_enabled = off)");
	my $log = slurp_file($node->logfile, $from);
	like($log, qr/automatic vacuum of table "postgres.public.$table": .*(?:\n\t.*)*\n\tparallel workers: index vacuum: 2 planned, [12] launched in total/, "$am: autovacuum has had workers");
	my @auto = notes($table, $log);
	like("@auto", qr/bulk deletion of "T_\w+" by a parallel worker: is_autovacuum 1/, "$am: of which one has worked");
	is(scalar(grep { /analyze_only 0/ && !/is_autovacuum 1/ } @auto), 0, "$am: and all say that they are autovacuum's");
	is($node->safe_psql('postgres', "SELECT count(*) FROM (SELECT id FROM $table WHERE words @@ 'later') l"),
		$node->safe_psql('postgres', "SELECT count(*) FROM $table WHERE id > 20000"), "$am: GIN has its rows");
	# who does which index is chance
	my %by_one = map { s/by (a parallel worker|autovacuum)/by one/r => 1 } @auto;
	$notes{$am} = [ sort keys %by_one ];
}
is_deeply($notes{inplace}, $notes{heap}, 'the indexes are told the same');
tables_ok($node, 'after autovacuum', 'i_work');
same_as_heap($node, 'after autovacuum', 'work');
log_ok($node, 'autovacuum', 0);
$node->stop;

done_testing();
