# Values of all sizes and kinds: TOAST in, out and unchanged, compressed by both methods, all storage
# strategies, composites, domains, arrays, ranges, rows of 1,600 columns; changed in
# place, moved, rolled back, read by old snapshots.  Heap says what is right.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use InplaceTwin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('main', conf => 'autovacuum = off');
create_twin_schemas($node);
my $lz4 = $node->psql('postgres', "SET default_toast_compression = 'lz4'") == 0;

# ---- TOAST ---------------------------------------------------------------------------------

# Text that compresses well, badly, and a bit; "size" is its length.
run_both(
	$node, q(
CREATE FUNCTION make(seed int, size int, kind int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT left(CASE kind % 3 WHEN 0 THEN repeat(chr(97 + seed % 26), size)
		WHEN 1 THEN (SELECT string_agg(md5((seed * 7919 + i)::text), '') FROM generate_series(0, size / 32) i)
		ELSE (SELECT string_agg(md5((seed + i)::text) || repeat('-', 40), '') FROM generate_series(0, size / 72) i) END, size) $$;
));
my @sizes = '{0, 1, 100, 126, 127, 500, 1990, 2020, 2040, 2500, 6000, 8100, 8190, 9000, 30000, 90000}';
my @columns;
foreach my $storage (qw(PLAIN MAIN EXTERNAL EXTENDED))
{
	foreach my $compression ('pglz', $lz4 ? 'lz4' : ())
	{
		my $table = lc "t_${storage}_$compression";
		my $limit = $storage eq 'PLAIN' ? 3000 : 1_000_000;
		run_both(
			$node, qq(
CREATE TABLE $table (id int PRIMARY KEY, n int, a text COMPRESSION $compression, b text COMPRESSION $compression, c bytea COMPRESSION $compression);
ALTER TABLE $table ALTER a SET STORAGE $storage, ALTER b SET STORAGE $storage, ALTER c SET STORAGE $storage;
CREATE INDEX ${table}_n ON $table (n); CREATE INDEX ON $table (left(a, 10));
INSERT INTO $table SELECT row_number() OVER (), 0, make(k, s, k), CASE WHEN k = 1 THEN NULL ELSE 'b' END, convert_to(make(k, least(s, 3000) / 2, k + 1), 'UTF8')
	FROM unnest('@sizes'::int[]) s, generate_series(0, 2) k WHERE s < $limit;
));
		push @columns, [ $table, $storage ];
	}
}
my @toasted = map { $_->[0] } @columns;
sub stored_ok
{
	my ($name) = @_;
	same_tables($node, $name, @toasted);
	is( $node->safe_psql(
			'postgres',
			join ' UNION ALL ', map {
				"SELECT i.id FROM i.$_ i FULL JOIN h.$_ h USING (id)
WHERE octet_length(i.a) IS DISTINCT FROM octet_length(h.a) OR md5(i.a) <> md5(h.a) OR substr(i.a, 1500, 40) <> substr(h.a, 1500, 40) OR i.c <> h.c OR i.c IS NULL <> (h.c IS NULL)"
			} @toasted),
		'', "$name: values and slices of them");
	tables_ok($node, $name, map { "i.$_" } @toasted);
	return;
}
stored_ok('inserted');
is($node->safe_psql('postgres', "SELECT DISTINCT pg_column_compression(a) FROM i.t_extended_$_ WHERE pg_column_compression(a) IS NOT NULL"), $_, "$_ is used")
  foreach 'pglz', $lz4 ? 'lz4' : ();

# The value that is out of line is not written again when another column changes.
my $values = q(SELECT count(DISTINCT chunk_id), min(chunk_id), max(chunk_id) FROM pg_toast.pg_toast_%s);
my $toast = sprintf $values, $node->safe_psql('postgres', "SELECT 'i.t_external_pglz'::regclass::oid");
my $chunks = $node->safe_psql('postgres', $toast);
run_both($node, join ' ', map { "UPDATE $_ SET n = n + 1; UPDATE $_ SET n = n + 1, b = b || 'x' WHERE id % 2 = 0;" } @toasted);
is($node->safe_psql('postgres', $toast), $chunks, 'unchanged values stay where they are');
stored_ok('others changed');

my $reader = $node->background_psql('postgres');
# parallel workers may take the tables in another order
my $old = join(' UNION ALL ', map { "SELECT '$_', count(*), md5(string_agg(x::text, ',' ORDER BY id)) FROM i.$_ x" } @toasted) . ' ORDER BY 1';
my $was = $node->safe_psql('postgres', $old);
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class');
my @changes = (
	[ 'in and out', q(UPDATE T SET a = make(id, 2500 + id, id) WHERE length(a) < 130; UPDATE T SET a = left(a, 10) WHERE length(a) > 2000 AND id % 2 = 0;) ],
	[ 'swapped', q(UPDATE T SET a = b, b = a WHERE id % 3 = 0; UPDATE T SET b = NULL WHERE id % 9 = 0;) ],
	[ 'to NULL and back', q(UPDATE T SET a = NULL WHERE id % 5 = 0; UPDATE T SET a = make(id, 2900, id) WHERE id % 5 = 0;) ],
	[ 'rolled back', q(BEGIN; UPDATE T SET a = make(id + 1, 2700, id + 1), c = NULL; DELETE FROM T WHERE id % 2 = 0; UPDATE T SET a = 'short'; ROLLBACK; UPDATE T SET n = n + 1;) ],
	[ 'savepoints', q(BEGIN; SAVEPOINT a; UPDATE T SET a = make(id, 2600, 1); SAVEPOINT b; UPDATE T SET a = upper(a), n = n + 1 WHERE id % 2 = 0; ROLLBACK TO b; UPDATE T SET b = 'kept' WHERE id % 4 = 0; RELEASE a;
SAVEPOINT c; DELETE FROM T; ROLLBACK TO c; COMMIT;) ],
	[ 'key changed', q(UPDATE T SET id = id + 1000, n = -n WHERE id % 4 = 1; DELETE FROM T WHERE id % 11 = 0; INSERT INTO T SELECT id + 5000, n, a, b, c FROM T WHERE id % 3 = 0;) ],
	[ 'from other tables', q(UPDATE T SET a = o.a FROM t_extended_pglz o WHERE o.id = T.id + 1000; INSERT INTO T TABLE T ON CONFLICT (id) DO UPDATE SET b = left(EXCLUDED.a, 50), c = NULL;) ]);
foreach my $change (@changes)
{
	my ($name, $sql) = @$change;
	run_both(
		$node, join "\n", map { my $table = $_->[0]; $sql =~ s/\bT\b/$table/gr }
		  grep { $_->[1] ne 'PLAIN' || $name !~ /other tables|swapped/ } @columns);
	stored_ok($name);
}
is($reader->query_safe($old), $was, 'an old snapshot sees the values of before');
$reader->query_safe('COMMIT');
$reader->quit;
run_both($node, join ' ', map { "VACUUM $_; UPDATE $_ SET n = 0, b = a WHERE id % 13 = 0;" } @toasted[2 .. $#toasted]);
$node->safe_psql('postgres', "VACUUM FULL i.$_") foreach @toasted[2, 3];
crash_and_recover($node, 'kill');
stored_ok('after VACUUM and a crash');
same_answer($node, 'too big', q(
CREATE TABLE plain (id int, a text); ALTER TABLE plain ALTER a SET STORAGE PLAIN; INSERT INTO plain VALUES (1, 'small'), (2, repeat('x', 7000));
UPDATE plain SET a = repeat('y', 8000) WHERE id = 1; SELECT id, length(a) FROM plain ORDER BY 1;));
my ($ret, undef, $err) = $node->psql('postgres', q(\set VERBOSITY verbose
UPDATE i.plain SET a = repeat('y', 9000)));
like($err, qr/ERROR:  54000: row is too big: size \d+, maximum size \d+/, 'too big for a page');

# ---- types of types -------------------------------------------------------------------------

same_answer(
	$node, 'composites, domains, arrays, ranges', q(
CREATE TYPE c AS (a int, b text, d int[]); CREATE DOMAIN pos AS int CHECK (VALUE > 0); CREATE DOMAIN dc AS c CHECK ((VALUE).a > 0); CREATE TYPE r AS RANGE (subtype = float8);
CREATE TABLE v (id int PRIMARY KEY, c c, cs c[], dc dc, p pos, ps pos[], r r, m int8multirange, aa int[][], big c);
INSERT INTO v SELECT i, ROW(i, repeat('c', i), ARRAY[i])::c, ARRAY[ROW(i, NULL, '{}')::c, NULL], ROW(i, 'd', NULL)::c, i, ARRAY[i, i], r(i, i + 0.5), int8multirange(int8range(i, i + 1), int8range(i * 3, NULL)), ARRAY[[i, 2], [3, NULL]],
	ROW(i, repeat(md5(i::text), 300), NULL)::c FROM generate_series(1, 50) i;
UPDATE v SET c.b = 'new', c.d[3] = 9, cs[5] = (1, 'x', '{7}')::c WHERE id % 2 = 0; UPDATE v SET cs[1].b = 'deep', cs[1].d[2] = 4 WHERE id % 3 = 0;
UPDATE v SET dc.a = -1 WHERE id = 3; UPDATE v SET p = 0; UPDATE v SET ps[2] = NULL, ps[1] = -5 WHERE id = 4; UPDATE v SET dc.a = 77, ps[2] = NULL WHERE id = 4;
UPDATE v SET r = r + r(1, 60) WHERE id = 1; UPDATE v SET m = m - int8multirange(int8range(4, 9)), aa[2][1] = id, aa[3][1] = 0 WHERE id < 3; UPDATE v SET m = m - int8multirange(int8range(4, 9)), aa[2][1] = id WHERE id > 3;
UPDATE v SET big.a = -(big).a WHERE id % 2 = 1; UPDATE v SET big = NULL, c = NULL WHERE id = 9; BEGIN; UPDATE v SET big.b = 'gone', cs = NULL; ROLLBACK; UPDATE v SET c = big WHERE id = 10;
SELECT id, c, cs, dc, p, ps, r, m, aa, (big).a, md5((big).b) FROM v ORDER BY id;
ALTER TYPE c ADD ATTRIBUTE e int; UPDATE v SET c.e = 5 WHERE id = 11; ALTER TYPE c DROP ATTRIBUTE d; SELECT id, c, cs FROM v WHERE id IN (10, 11, 12) ORDER BY 1;
CREATE TABLE whole (id int, w v); INSERT INTO whole SELECT id, v FROM v; UPDATE whole SET w.p = 1000; SELECT id, (w).p, (w).c, md5(w::text) FROM whole ORDER BY 1;
),
	qr/value for domain pos violates check constraint/);
tables_ok($node, 'composites', 'i.v', 'i.whole');

# ---- 1,600 columns --------------------------------------------------------------------------

my $definition = join ', ', map { "c$_ " . ('int', 'bool', 'text', 'int2')[ $_ % 4 ] } 1 .. 1599;
my $ints = join ', ', map { $_ % 4 ? 'NULL' : "i + $_" } 1 .. 1599;
my $all = join ', ', map { ("$_", 'true', "'t'", 'i')[ $_ % 4 ] } 1 .. 1599;
run_both(
	$node, qq(
CREATE TABLE wide (id int PRIMARY KEY, $definition);
INSERT INTO wide SELECT i, $ints FROM generate_series(1, 20) i;
INSERT INTO wide SELECT i, $all FROM generate_series(21, 40) i;
INSERT INTO wide SELECT i FROM generate_series(41, 60) i;
));
same_tables($node, '1,600 columns', 'wide');
foreach my $sql (
	'UPDATE wide SET c1599 = 5 WHERE id % 2 = 0',
	'UPDATE wide SET c1 = NOT c1, c800 = id, c1598 = c2 WHERE id % 3 = 0',
	'UPDATE wide SET c4 = NULL, c1596 = NULL WHERE id % 5 = 0',
	'BEGIN; UPDATE wide SET c8 = 1, c10 = repeat(\'r\', 100), c1400 = 7; SAVEPOINT s; DELETE FROM wide; ROLLBACK',
	'UPDATE wide SET ' . join(', ', map { "c$_ = NULL" } 400 .. 1500),
	'UPDATE wide SET ' . join(', ', map { 'c' . 4 * $_ . " = $_" } 1 .. 399),
	'ALTER TABLE wide DROP COLUMN c5, ALTER c9 TYPE text, DROP COLUMN c1500',
	'UPDATE wide SET c9 = repeat(md5(id::text), 200), c1599 = 1; VACUUM FULL wide')
{
	run_both($node, $sql);
	same_tables($node, substr($sql, 0, 45), 'wide');
}
same_answer($node, 'one column more', 'CREATE TABLE more (LIKE wide); ALTER TABLE wide ADD COLUMN one_more int; CREATE TABLE wider AS SELECT w.*, 1 AS x, 2 AS y, 3 AS z FROM wide w; SELECT count(*), sum(z) FROM wider;',
	qr/tables can have at most 1600 columns/);
tables_ok($node, '1,600 columns', 'i.wide');
log_ok($node, 'whole run', 0);
$node->stop;
done_testing();
