# pg_dump and pg_restore in all formats: tables keep their access method, also in a
# server whose default is another one, or lose it if asked to; the rows are the same.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster(
	'main', conf => q(
autovacuum = off
default_table_access_method = inplace
));
$node->safe_psql(
	'postgres', q(
CREATE DATABASE source;
ALTER DATABASE source SET default_table_access_method = heap;
));
# Versions of all kinds, which a dump must not show: only the last committed one.
$node->safe_psql(
	'source', q(
CREATE EXTENSION inplace;
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TABLE plain (id int PRIMARY KEY, p pair, d positive, a text[], r int4range) USING inplace;
INSERT INTO plain SELECT i, ROW(i, 'x' || i)::pair, i, ARRAY['a', NULL, i::text], int4range(i, 2 * i)
	FROM generate_series(1, 3000) i;
CREATE TABLE as_heap (id int PRIMARY KEY, t text) USING heap;
INSERT INTO as_heap SELECT i, 'heap' FROM generate_series(1, 100) i;
CREATE TABLE big (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, t text,
	up text GENERATED ALWAYS AS (upper(left(t, 10))) STORED) USING inplace;
INSERT INTO big (t) SELECT repeat(md5(i::text), 1 + i * 7) FROM generate_series(1, 150) i;
CREATE TABLE child (id int REFERENCES plain, n int) USING inplace;
INSERT INTO child SELECT i, i FROM generate_series(1, 1000) i;
CREATE INDEX child_n ON child (n) WHERE n > 5;
CREATE TABLE parts (id int, v int) PARTITION BY RANGE (id);
CREATE TABLE part1 PARTITION OF parts FOR VALUES FROM (0) TO (50) USING inplace;
CREATE TABLE part2 PARTITION OF parts FOR VALUES FROM (50) TO (101) USING heap;
INSERT INTO parts SELECT i, 0 FROM generate_series(1, 100) i;
CREATE UNLOGGED TABLE fast (id int) USING inplace;
INSERT INTO fast SELECT generate_series(1, 10);
CREATE MATERIALIZED VIEW view USING inplace AS SELECT id, n + 1 AS n FROM child;
CREATE FUNCTION count_up() RETURNS trigger LANGUAGE plpgsql AS
	$$BEGIN NEW.n := NEW.n + 1; RETURN NEW; END$$;
CREATE TRIGGER up BEFORE UPDATE ON child FOR EACH ROW EXECUTE FUNCTION count_up();
UPDATE plain SET a = a || 'more'::text WHERE id % 3 = 0;
UPDATE child SET n = n * 2 WHERE id % 2 = 0;
UPDATE parts SET id = 101 - id WHERE id < 10;
DELETE FROM child WHERE id % 7 = 0;
BEGIN; UPDATE plain SET d = 9999; DELETE FROM big; INSERT INTO child VALUES (1, 0); ROLLBACK;
ALTER TABLE plain ADD COLUMN later int DEFAULT 42, DROP COLUMN r;
REFRESH MATERIALIZED VIEW view;
));

# Which tables have which access method; same rows?
my $methods_query = q(
SELECT relname, amname, relpersistence FROM pg_class c JOIN pg_am a ON a.oid = relam
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'm') ORDER BY 1);
my @tables = qw(plain as_heap big child parts part1 part2 fast view);
my $rows_query = join ' UNION ALL ', map {
	"SELECT '$_', count(*), sum(hashtextextended(t::text, 0)::numeric) FROM $_ t"
} @tables;
my $methods = $node->safe_psql('source', $methods_query);
my $rows    = $node->safe_psql('source', $rows_query);
like($methods, qr/^big\|inplace.*^part2\|heap.*^view\|inplace/ms, 'tables of both kinds');

# A dump while a writer changes everything: pg_dump's snapshot is from before.
my $writer = $node->background_psql('source');
$writer->query_safe('BEGIN; UPDATE plain SET d = d + 1; DELETE FROM child; UPDATE big SET t = 1; DELETE FROM parts;');

my $dir = PostgreSQL::Test::Utils::tempdir();
foreach my $dump (
	[ 'plain', '--format=plain' ],
	[ 'inserts', '--format=plain', '--rows-per-insert=50' ],
	[ 'custom', '--format=custom' ],
	[ 'directory', '--format=directory', '--jobs=3' ])
{
	my ($name, @options) = @$dump;
	$node->command_ok(
		[ 'pg_dump', '--dbname' => 'source', '--port' => $node->port, '--host' => $node->host,
			'--file' => "$dir/$name", @options ],
		"dump: $name");
}
$writer->query_safe('COMMIT');
$writer->quit;

# A dump whose jobs share one snapshot, taken before the commit above, would be the
# same; one from after is not: so the comparisons below can fail.
isnt($node->safe_psql('source', $rows_query), $rows, 'the writer has changed rows');

# ---- restore -------------------------------------------------------------------

# A server that has nothing but the library.
my $other = PostgreSQL::Test::Cluster->new('other');
$other->init;
$other->append_conf(
	'postgresql.conf', q(
shared_preload_libraries = 'inplace'
default_table_access_method = heap
log_line_prefix = '%m [%p] %e %q%a '
));
$other->start;

# Restores a dump into a new database of a node.
sub restore
{
	my ($where, $db, $dump, @options) = @_;
	$where->safe_psql('postgres', "CREATE DATABASE $db TEMPLATE template0");
	my @connect = ('--dbname' => $db, '--port' => $where->port, '--host' => $where->host);
	if ($dump eq 'plain' || $dump eq 'inserts')
	{
		$where->command_ok(
			[ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', @connect, '-f', "$dir/$dump" ],
			"restore: $db");
	}
	else
	{
		$where->command_ok([ 'pg_restore', '--exit-on-error', @connect, @options, "$dir/$dump" ],
			"restore: $db");
	}
	return;
}

sub sound
{
	my ($where, $db) = @_;
	is($where->safe_psql($db, 'SELECT * FROM inplace_check_all()'), '', "$db: sound");
	return;
}

foreach my $restore (
	[ $node,  'custom',    '--jobs=3' ],
	[ $other, 'custom' ],
	[ $other, 'plain' ],
	[ $other, 'inserts' ],
	[ $other, 'directory', '--jobs=2' ])
{
	my ($where, $dump, @options) = @$restore;
	my $db = $where->name . "_$dump";
	restore($where, $db, $dump, @options);
	is($where->safe_psql($db, $methods_query), $methods, "$db: access methods");
	is($where->safe_psql($db, $rows_query), $rows, "$db: rows");
	sound($where, $db);
}

# Restored tables work: identity, generated column, trigger, foreign key.
my ($stdout, $stderr);
$other->psql(
	'other_directory', q(
INSERT INTO big (t) VALUES ('after') RETURNING id, up;
UPDATE child SET n = 0 WHERE id = 1 RETURNING n;
DELETE FROM plain WHERE id = 1;
), stdout => \$stdout, stderr => \$stderr, on_error_stop => 0);
is($stdout, "151|AFTER\n1", 'restored tables have their sequence and trigger');
like($stderr, qr/violates foreign key constraint "child_id_fkey"/, 'and foreign key');

# ---- without the access method ---------------------------------------------------

# Version 15 has no --no-table-access-method; its SET lines are the only place.
my $text = slurp_file("$dir/plain");
like($text, qr/^SET default_table_access_method = inplace;$/m, 'inplace');
like($text, qr/^SET default_table_access_method = heap;$/m, 'heap');
$text =~ s/^SET default_table_access_method.*$//mg;
append_to_file("$dir/as_default", $text);
$other->safe_psql('postgres', 'CREATE DATABASE as_default TEMPLATE template0');
$other->command_ok(
	[ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '--dbname' => 'as_default', '--port' => $other->port,
		'--host' => $other->host, '-f', "$dir/as_default" ],
	'restore without access methods');
unlike($other->safe_psql('as_default', $methods_query), qr/inplace/, 'all tables are heaps then');
is($other->safe_psql('as_default', $rows_query), $rows, 'with the same rows');

# A data-only dump goes into tables of the other access method.
$node->command_ok(
	[ 'pg_dump', '--dbname' => 'main_custom', '--port' => $node->port, '--host' => $node->host,
		'--format=custom', '--data-only', '--disable-triggers', '--file' => "$dir/data" ],
	'dump: data only');
$other->safe_psql('as_default', 'TRUNCATE plain, as_heap, big, child, parts, fast; ALTER TABLE plain SET ACCESS METHOD inplace');
$other->command_ok(
	[ 'pg_restore', '--exit-on-error', '--disable-triggers', '--dbname' => 'as_default', '--port' => $other->port,
		'--host' => $other->host, "$dir/data" ],
	'restore: data only');
is($other->safe_psql('as_default', $rows_query), $rows, 'data only: same rows');
sound($other, 'as_default');

log_ok($node, 'dumps', 0);
log_ok($other, 'restores', 0);
$node->stop;
$other->stop;
done_testing();
