# Indexes of every kind are built and rebuilt concurrently while clients insert, update,
# delete, roll back and lock rows; then each index finds what a sequential scan finds.
# Builds that are cancelled or fail leave an invalid index, which can be dropped.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

test_seed();

my $node = new_cluster('main', conf => "max_prepared_transactions = 5\nautovacuum = off");
$node->safe_psql(
	'postgres', q(
CREATE EXTENSION bloom;
CREATE TABLE t (id int PRIMARY KEY, n int, m int, a int[], p point, body text, r int4range) USING inplace;
CREATE FUNCTION fill(int, int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO t SELECT i, i % 97, i % 11, ARRAY[i % 7, i % 13], point(i % 50, i % 31),
		repeat(chr(97 + i % 26), i % 5) || i % 200, int4range(i, i + i % 10 + 1)
	FROM generate_series($1, $2) i ON CONFLICT DO NOTHING $$;
SELECT fill(1, 4000);
CREATE VIEW bad AS SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 't'::regclass AND NOT indisvalid;
));

# Every kind: name, definition, and conditions that a scan of this index can answer.
my @indexes = (
	[ 't_btree',   'USING btree (n)',                 'n = 5',         'n BETWEEN 3 AND 40' ],
	[ 't_two',     'USING btree (m, n DESC)',         'm = 3 AND n > 10' ],
	[ 't_include', 'USING btree (m) INCLUDE (n)',     'm < 4' ],
	[ 't_expr',    'USING btree ((n % 10), lower(body))', 'n % 10 = 4' ],
	[ 't_partial', 'USING btree (body) WHERE n < 20', q(n < 20 AND body > 'c') ],
	[ 't_hash',    'USING hash (body)',               q(body = 'ccc2'), q(body = (SELECT max(body) FROM t)) ],
	[ 't_gin',     'USING gin (a)',                   'a @> ARRAY[3]', 'a && ARRAY[1, 12]' ],
	[ 't_gist',    'USING gist (p)',                  q(p <@ box '(0,0),(20,20)') ],
	[ 't_range',   'USING gist (r)',                  q(r && int4range(100, 2000)) ],
	[ 't_spgist',  'USING spgist (p)',                q(p <@ box '(5,5),(30,15)') ],
	[ 't_brin',    'USING brin (id) WITH (pages_per_range = 2)', 'id > 1000 AND id <= 3000' ],
	[ 't_bloom',   'USING bloom (n, m)',              'n = 7 AND m = 2', 'm = 4' ]);

my @scripts = map { [ $_->[0], $_->[1] ] } (
	[ q(\set id random(1, 4000)
\set n random(0, 96)
UPDATE t SET n = :n WHERE id = :id;), 3 ],
	[ q(\set id random(1, 4000)
\set n random(0, 10)
UPDATE t SET m = :n, body = chr(97 + :n) || 'x', p = point(:n, :n), r = int4range(:n, :n + :id) WHERE id = :id;), 3 ],
	[ q(\set id random(1, 4000)
DELETE FROM t WHERE id = :id;
SELECT fill(:id, :id);), 3 ],
	[ q(\set id random(1, 3900)
BEGIN;
UPDATE t SET n = -1, a = '{99}', body = 'aborted' WHERE id BETWEEN :id AND :id + 20;
DELETE FROM t WHERE id = :id + 30;
ROLLBACK;), 2 ],
	[ q(\set id random(1, 4000)
\set n random(0, 12)
BEGIN;
SELECT id FROM t WHERE id = :id FOR UPDATE;
SAVEPOINT s;
UPDATE t SET a = a || 50, n = 200 WHERE id = :id;
ROLLBACK TO s;
UPDATE t SET a = ARRAY[:n, :n + 1] WHERE id = :id;
COMMIT;), 2 ],
	[ q(\set id random(1, 4000)
UPDATE t SET body = 'moves ' || repeat('long ', :id % 90) WHERE id = :id;
SELECT count(*) FROM t WHERE n = :id % 97;), 1 ]);

my $load = start_pgbench($node, clients => 5, seconds => 600, scripts => \@scripts);

foreach my $index (@indexes)
{
	$node->safe_psql('postgres', "CREATE INDEX CONCURRENTLY $index->[0] ON t $index->[1]");
}
$node->safe_psql('postgres', 'CREATE UNIQUE INDEX CONCURRENTLY t_unique ON t (id, n)');
$node->safe_psql('postgres', "REINDEX INDEX CONCURRENTLY $_->[0]") foreach @indexes[ 0, 5, 6, 7 ];
$node->safe_psql('postgres', 'VACUUM t');
$node->safe_psql('postgres', 'REINDEX TABLE CONCURRENTLY t');
$load->{run}->signal('INT');
eval { $load->{run}->finish };
my $errors = join "\n", grep { /ERROR|FATAL|PANIC|aborted in command/ } split /\n/, slurp_file("$load->{dir}/err");
is($errors, '', 'clients have met no error');
cmp_ok($node->safe_psql('postgres', "SELECT n_tup_upd + n_tup_ins + n_tup_del FROM pg_stat_user_tables WHERE relname = 't'"),
	'>', 500, 'clients were busy');
is($node->safe_psql('postgres', 'TABLE bad'), '', 'all indexes are valid');

# Does a scan by an index find what a sequential scan finds?
sub index_finds_all
{
	my ($name, @indexes_to_check) = @_;
	foreach my $index (@indexes_to_check)
	{
		my ($index_name, undef, @conditions) = @$index;
		my @wrong;
		my $rows = 0;
		foreach my $condition (@conditions)
		{
			my $query = "SELECT count(*), sum(hashtextextended(t::text, 0)::numeric) FROM t WHERE $condition";
			# nothing but this index can be used
			my $answers = $node->safe_psql(
				'postgres', qq(
SET enable_indexscan = off; SET enable_bitmapscan = off; $query; RESET enable_indexscan; RESET enable_bitmapscan;
BEGIN;
DO \$\$DECLARE i text; BEGIN FOR i IN SELECT indexrelid::regclass FROM pg_index
	WHERE indrelid = 't'::regclass AND indexrelid <> '$index_name'::regclass AND NOT indisprimary
	LOOP EXECUTE 'DROP INDEX ' || i; END LOOP; END\$\$;
ALTER TABLE t DROP CONSTRAINT t_pkey;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) $query; $query; ROLLBACK));
			my ($seq) = $answers =~ /\A(.*)$/m;
			my ($found) = $answers =~ /(.*)\z/;
			push @wrong, "$condition: $answers" if $seq ne $found || $answers !~ /on $index_name|using $index_name/;
			$rows += (split /\|/, $seq)[0];
		}
		is(join("\n", @wrong), '', "$name: $index_name finds all rows");
		cmp_ok($rows, '>', 0, "$name: $index_name: there are rows");
	}
	is( $node->safe_psql(
			'postgres', q(
SELECT bt_index_check(indexrelid, true), bt_index_parent_check(indexrelid, true, true)
FROM pg_index JOIN pg_class c ON c.oid = indexrelid
WHERE indrelid = 't'::regclass AND relam = (SELECT oid FROM pg_am WHERE amname = 'btree'))
		) =~ tr/|\n//dr,
		'',
		"$name: amcheck");
	tables_ok($node, $name, 't');
	return;
}
index_finds_all('concurrently built', @indexes);

# BRIN's summaries, made and dropped again by hand.
$node->safe_psql('postgres', q(SELECT brin_desummarize_range('t_brin', 3)));
$node->safe_psql('postgres', q(SELECT fill(5001, 6000); SELECT brin_summarize_new_values('t_brin')));
index_finds_all('brin', $indexes[10]);

# ---- builds that end badly ---------------------------------------------------------------

my $holder = $node->background_psql('postgres');
foreach my $case (
	[ 'cancelled CREATE',  'CREATE INDEX CONCURRENTLY bad1 ON t (body, n)',  'bad1',            "pg_cancel_backend" ],
	[ 'terminated CREATE', 'CREATE INDEX CONCURRENTLY bad2 ON t USING gin (a)', 'bad2',         "pg_terminate_backend" ],
	[ 'cancelled REINDEX', 'REINDEX INDEX CONCURRENTLY t_btree',             't_btree_ccnew',   "pg_cancel_backend" ])
{
	my ($name, $sql, $left, $how) = @$case;
	$holder->query_safe('BEGIN; UPDATE t SET m = m WHERE id = 1');
	my ($out, $err) = ('', '');
	my $builder = IPC::Run::start [ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', $sql ], '<', \'', '>', \$out, '2>', \$err;
	$node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE query = '$sql' AND wait_event_type = 'Lock'") or die;
	$node->safe_psql('postgres', "SELECT $how(pid) FROM pg_stat_activity WHERE query = '$sql'");
	$builder->finish;
	like($err, qr/canceling statement|terminating connection/, "$name: has ended");
	is($node->safe_psql('postgres', 'TABLE bad'), $left, "$name: leaves an invalid index");
	$holder->query_safe('COMMIT');
	# it is either maintained or not, but it harms nobody
	$node->safe_psql('postgres', q(UPDATE t SET body = 'after', n = n + 1 WHERE id < 50; DELETE FROM t WHERE id BETWEEN 20 AND 25; VACUUM t; SELECT fill(20, 25)));
	tables_ok($node, "$name: table with an invalid index", 't');
	$node->safe_psql('postgres', "DROP INDEX CONCURRENTLY $left");
}
$holder->quit;

my ($ret, $stdout, $stderr) = $node->psql('postgres', 'CREATE UNIQUE INDEX CONCURRENTLY bad3 ON t (m)');
like($stderr, qr/could not create unique index "bad3"/, 'duplicates');
is($node->safe_psql('postgres', 'TABLE bad'), 'bad3', 'duplicates: an invalid index is left');
# It may be made valid when there are no duplicates any more.
$node->safe_psql('postgres', 'DELETE FROM t WHERE id NOT IN (SELECT min(id) FROM t GROUP BY m)');
$node->safe_psql('postgres', 'REINDEX INDEX CONCURRENTLY bad3');
is($node->safe_psql('postgres', 'TABLE bad'), '', 'duplicates gone: the index becomes valid');
($ret, $stdout, $stderr) = $node->psql('postgres', 'INSERT INTO t (id, m) SELECT -1, min(m) FROM t');
like($stderr, qr/duplicate key value violates unique constraint "bad3"/, 'and is enforced');
$node->safe_psql('postgres', 'DROP INDEX CONCURRENTLY bad3');
$node->safe_psql('postgres', 'SELECT fill(1, 4000)');
index_finds_all('in the end', @indexes);

log_ok($node, 'whole run', 0);
$node->stop;
done_testing();
