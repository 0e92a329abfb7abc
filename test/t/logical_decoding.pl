# Logical decoding and replication of inplace tables give what those of heap
# tables give.
#
# Every random statement is made on an inplace table and on its heap twin.  The
# changes that test_decoding shows of both must be the same; two subscribers, all
# of whose tables are inplace or heap, must end with the same rows; a standby
# compares the pages.  Publisher and subscriber crash in between.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceLoad;
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

test_seed();

my $publisher = new_cluster(
	'publisher',
	streaming => 'logical',
	conf      => q(
wal_level = logical
wal_consistency_checking = 'inplace'
logical_decoding_work_mem = '64kB'
max_prepared_transactions = 20
max_wal_size = '1GB'
max_replication_slots = 20
max_wal_senders = 20
));
my $has_test_decoding =
  -e $publisher->config_data('--pkglibdir') . '/test_decoding.so';

# ---- tables ----------------------------------------------------------------------

# a: everything, with a past; f: REPLICA IDENTITY FULL; x: ... USING INDEX;
# n: ... NOTHING; p: partitioned; r: row filter; c: column list.
my @tables = qw(a f x n p r c);

# n's updates are not replicated, so its rows may come twice
sub tables_of
{
	my ($prefix, $am) = @_;
	my $columns = "id int NOT NULL, v int, t text, big text";
	return "
SET default_table_access_method = $am;
CREATE TABLE ${prefix}a ($columns, gone text, PRIMARY KEY (id));
CREATE TABLE ${prefix}f ($columns, gone text, PRIMARY KEY (id));
INSERT INTO ${prefix}a SELECT -i, i, 'old', NULL, repeat('g', i * 900) FROM generate_series(1, 9) i;
INSERT INTO ${prefix}f SELECT -i, i, 'old', NULL, repeat('g', i) FROM generate_series(1, 9) i;
ALTER TABLE ${prefix}a DROP gone, ADD g int GENERATED ALWAYS AS (id * 2) STORED;
ALTER TABLE ${prefix}a ADD m text DEFAULT 'missing';
ALTER TABLE ${prefix}f DROP gone, ADD m text DEFAULT 'missing', REPLICA IDENTITY FULL;
CREATE TABLE ${prefix}x ($columns);
CREATE UNIQUE INDEX ${prefix}x_id ON ${prefix}x (id);
ALTER TABLE ${prefix}x REPLICA IDENTITY USING INDEX ${prefix}x_id;
CREATE TABLE ${prefix}n ($columns);
ALTER TABLE ${prefix}n REPLICA IDENTITY NOTHING;
CREATE TABLE ${prefix}p ($columns, PRIMARY KEY (id, v)) PARTITION BY RANGE (v);
CREATE TABLE ${prefix}p1 PARTITION OF ${prefix}p FOR VALUES FROM (MINVALUE) TO (30);
CREATE TABLE ${prefix}p2 PARTITION OF ${prefix}p FOR VALUES FROM (30) TO (MAXVALUE);
CREATE TABLE ${prefix}r ($columns, PRIMARY KEY (id));
ALTER TABLE ${prefix}r REPLICA IDENTITY FULL;
CREATE TABLE ${prefix}c ($columns, PRIMARY KEY (id));
CREATE INDEX ON ${prefix}a (v);
CREATE INDEX ON ${prefix}f (left(t, 3));
CREATE INDEX ON ${prefix}p (t);
"
	  . join '',
	  map { "ALTER TABLE $prefix$_ ALTER big SET STORAGE EXTERNAL;\n" } @tables,
	  qw(p1 p2);
}

# What is replicated of a table, as a query; %s is h_ or i_.
my %replicated = (
	(map { $_ => "SELECT * FROM %s$_ t" } qw(a f x p)),
	r => 'SELECT * FROM %sr t WHERE v % 2 = 0',
	c => 'SELECT id, t FROM %sc t');

# The same for both twins.
sub for_both
{
	my ($sql) = @_;
	return join '', map { (my $text = $sql) =~ s/\bT_/$_/g; $text } qw(i_ h_);
}

# ---- random statements ------------------------------------------------------------

my $next_id  = 1000;                                         # never used yet
my $copy_dir = PostgreSQL::Test::Utils::tempdir('copy');
my $ncopies  = 0;

sub pick { return $_[ rand @_ ] }

# Well below what is toasted, or well above: the limits differ a little.
sub some_text { return pick('NULL', "repeat('t', " . int(rand(300)) . ')', "'short'") }
sub some_big { return pick('NULL', "repeat(md5('" . rand() . "'), " . int(100 + rand(200)) . ')') }

sub some_row
{
	my ($id) = @_;
	return "$id, " . int(rand(60)) . ', ' . some_text() . ', ' . some_big();
}

sub copy_file
{
	my $file = "$copy_dir/" . ++$ncopies;
	my $rows = pick(1, 5, 200);
	append_to_file($file,
		join '', map { $next_id++ . "\t$_\t" . ('c' x ($_ % 50)) . "\t" .
			($_ % 20 == 0 ? 'B' x 3000 : '\N') . "\n" } 1 .. $rows);
	return $file;
}

# One statement; T_ stands for i_ and h_.
sub statement
{
	my ($t, $prepared) = @_;
	# p's key has v too: its ids are unique because they are always new
	my $id    = $t eq 'p' ? 1000 + int(rand($next_id - 1000)) : int(rand(400));
	my $new   = $t eq 'p' ? $next_id += 30 : $id;
	my $range = "id BETWEEN $id AND $id + " . int(rand(30));
	my $in    = "INSERT INTO T_$t (id, v, t, big)";
	my $key   = $t =~ /[pn]/ ? '' : '(id)';
	my $no_v  = $t eq 'p' ? 't = NULL' : 'v = T_' . $t . '.v + 1, big = NULL';

	return pick(
		"$in VALUES (" . some_row($next_id++) . ')',
		"$in VALUES (" . some_row($new) . ') ON CONFLICT DO NOTHING',
		"$in SELECT i, i % 60, 'many', NULL FROM generate_series($new + 1, $new + 20) i"
		  . ' ON CONFLICT DO NOTHING',
		$key eq '' ? "DELETE FROM T_$t WHERE id = $id"
		: "$in VALUES (" . some_row($id) . ") ON CONFLICT $key DO UPDATE SET t = excluded.t, $no_v",
		"UPDATE T_$t SET t = " . some_text() . " WHERE id = $id",
		"UPDATE T_$t SET t = t || 'x' WHERE $range",
		"UPDATE T_$t SET v = " . int(rand(60)) . " WHERE $range",
		"UPDATE T_$t SET v = v WHERE $range",
		"UPDATE T_$t SET big = " . some_big() . " WHERE $range",
		"UPDATE T_$t SET id = " . $next_id++ . " WHERE id = (SELECT min(id) FROM T_$t WHERE id > $id)",
		"DELETE FROM T_$t WHERE id = $id",
		"DELETE FROM T_$t WHERE $range",
		"SELECT count(*) FROM (SELECT FROM T_$t WHERE $range FOR "
		  . pick('UPDATE', 'SHARE', 'KEY SHARE') . ') l',
		"MERGE INTO T_$t t USING (SELECT $id AS id) s ON t.id = s.id"
		  . ' WHEN MATCHED THEN UPDATE SET t = NULL'
		  . " WHEN NOT MATCHED THEN INSERT (id, v, t) VALUES (s.id, 1, 'merged')",
		"COPY T_$t (id, v, t, big) FROM '" . copy_file() . "'",
		rand() < 0.8 ? "DELETE FROM T_$t WHERE id = $id"
		: $t eq 'p' ? "TRUNCATE T_$t"
		: "TRUNCATE T_$t; COPY T_$t (id, v, t, big) FROM '" . copy_file() . "' (FREEZE)");
}

# The changes of a statement come in any order, but between two of these.
my $nmarks = 0;

sub mark
{
	return sprintf "SELECT pg_logical_emit_message(true, 'next', '%d');\n", ++$nmarks;
}

sub statements
{
	my ($n) = @_;
	return join '', map { for_both(statement(pick(@tables)) . ";\n") . mark() } 1 .. $n;
}

my $nprepared = 0;

sub transaction
{
	my $sql = "BEGIN;\n" . mark() . statements(1 + rand(3));
	if (rand() < 0.4)
	{
		$sql .= "SAVEPOINT a;\n" . statements(1 + rand(2));
		$sql .= "SAVEPOINT b;\n" . statements(1) . pick("RELEASE b;\n", "ROLLBACK TO b;\n")
		  if rand() < 0.5;
		$sql .= pick("RELEASE a;\n", "ROLLBACK TO a;\n") . statements(1);
	}
	return "$sql ROLLBACK;\n" if rand() < 0.15;
	return "$sql COMMIT;\n"   if rand() < 0.9;
	my $gid = 'p' . ++$nprepared;
	return "$sql PREPARE TRANSACTION '$gid';\n"
	  . pick("COMMIT PREPARED '$gid';\n", "ROLLBACK PREPARED '$gid';\n");
}

# None of these is a change.
sub maintenance
{
	my $t = pick(@tables);
	return for_both(
		pick(
			"VACUUM T_$t;\n",
			$t eq 'p' ? "VACUUM FULL T_p1;\n" : "VACUUM FULL T_$t;\n",
			$t eq 'p' ? "CLUSTER T_p1 USING T_p1_pkey;\n"
			: $t eq 'a' ? "CLUSTER T_a USING T_a_pkey;\n" : "REINDEX TABLE T_$t;\n",
			$t =~ /[pr]/ ? "ANALYZE T_$t;\n"
			: "ALTER TABLE T_$t ALTER v TYPE bigint; ALTER TABLE T_$t ALTER v TYPE int;\n"));
}

sub run_some
{
	my ($n) = @_;
	foreach (1 .. $n)
	{
		my $sql = rand() < 0.06 ? maintenance() : transaction();
		my ($out, $err);
		my $status = $publisher->psql('postgres', $sql, stderr => \$err, on_error_stop => 1);
		is($err, '', 'statements ran') or diag($sql) if $status != 0;
	}
	return;
}

# ---- the publisher ---------------------------------------------------------------

create_twins($publisher);
$publisher->safe_psql('postgres',
	tables_of('i_', 'inplace') . tables_of('h_', 'heap') . q(
ALTER TABLE i_bulk REPLICA IDENTITY FULL;
ALTER TABLE h_bulk REPLICA IDENTITY FULL;
CREATE PUBLICATION changes FOR TABLE i_a, h_a, i_f, h_f, i_x, h_x, i_p, h_p,
	i_r WHERE (v % 2 = 0), h_r WHERE (v % 2 = 0), i_c (id, t), h_c (id, t),
	i_acc, h_acc, i_doc, h_doc;
CREATE PUBLICATION insertions FOR TABLE i_n, h_n WITH (publish = 'insert');
));
my @slots = $has_test_decoding ? qw(plain twophase) : ();
$publisher->safe_psql('postgres',
	"SELECT pg_create_logical_replication_slot('$_', 'test_decoding', false, "
	  . ($_ eq 'twophase' ? 'true' : 'false') . ')')
  foreach @slots;

my $standby = new_standby($publisher);

run_some(20);

# ---- subscribers -----------------------------------------------------------------

my $subscriber = new_cluster(
	'subscriber',
	streaming => 1,
	conf      => q(
max_prepared_transactions = 40
max_logical_replication_workers = 12
max_replication_slots = 20
max_worker_processes = 20
wal_retrieve_retry_interval = '200ms'
));
my %options = (
	heap    => 'streaming = on, two_phase = true',
	inplace => 'streaming = off');
my @subscriptions = map { ("changes_$_", "insertions_$_") } sort keys %options;

foreach my $am (sort keys %options)
{
	my $to   = "sub_$am";
	my $from = $publisher->connstr . ' dbname=postgres';
	$subscriber->safe_psql('postgres', "CREATE DATABASE $to");
	$subscriber->safe_psql($to, 'CREATE EXTENSION inplace');
	$subscriber->safe_psql(
		$to,
		tables_of('i_', $am) . tables_of('h_', $am) . join '',
		map { "
TRUNCATE ${_}a, ${_}f;
-- rows are looked up by a sequential scan
ALTER TABLE ${_}f DROP CONSTRAINT ${_}f_pkey;
CREATE TABLE ${_}acc (id int PRIMARY KEY, bal bigint NOT NULL, grp int NOT NULL, note text);
CREATE INDEX ON ${_}acc (grp);
CREATE TABLE ${_}doc (id int PRIMARY KEY, ver int, body text, tags text[]);
" } qw(i_ h_));
	# Updates of n are not replicated: its twins have to be copied at the same time.
	$subscriber->safe_psql($to,
		"CREATE SUBSCRIPTION insertions_$am CONNECTION '$from' PUBLICATION insertions");
	$subscriber->wait_for_subscription_sync($publisher, "insertions_$am", $to);
	$subscriber->safe_psql($to,
		"CREATE SUBSCRIPTION changes_$am CONNECTION '$from' PUBLICATION changes WITH ($options{$am})");
}
# Changes while the tables are copied.
run_some(10);
$subscriber->wait_for_subscription_sync($publisher, "changes_$_", "sub_$_")
  foreach sort keys %options;

# Rows of a query as a short string.
sub rows_of
{
	my ($node, $database, $query) = @_;
	return $node->safe_psql($database,
		"SELECT count(*) || ' ' || coalesce(sum(hashtextextended(q::text, 0)::numeric), 0) FROM ($query) q");
}

sub same_everywhere
{
	my ($name) = @_;
	$publisher->wait_for_catchup($_) foreach @subscriptions;
	my %want = (
		%replicated,
		map { $_ => "SELECT * FROM %s$_ t" } qw(acc doc));
	foreach my $table (sort keys %want)
	{
		my $query = sub { my $q = $want{$table}; $q =~ s/%s/$_[0]/; return $q };
		my $good  = rows_of($publisher, 'postgres', $query->('h_'));
		my @found = (rows_of($publisher, 'postgres', $query->('i_')),
			map {
				my $database = $_;
				map { rows_of($subscriber, $database, $query->($_)) } qw(h_ i_)
			} qw(sub_heap sub_inplace));
		is("@found", join(' ', ($good) x 5), "$name: table $table is the same everywhere");
	}
	is( rows_of($subscriber, $_, 'SELECT * FROM i_n'),
		rows_of($subscriber, $_, 'SELECT * FROM h_n'),
		"$name: $_ has the same insertions")
	  foreach qw(sub_heap sub_inplace);
	return;
}

run_some(60);
same_everywhere('first');

# ---- special cases ---------------------------------------------------------------

# A speculative insertion that fails after it was made: another session's row
# comes between the look for a conflict and the insertion into the index.
$publisher->safe_psql(
	'postgres', q(
CREATE FUNCTION it.pause(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	n int := nullif(current_setting('it.calls', true), '')::int;
BEGIN
	IF n IS NOT NULL THEN
		PERFORM set_config('it.calls', (n + 1)::text, false),
			pg_advisory_lock_shared(n), pg_advisory_unlock_shared(n);
	END IF;
	RETURN k;
END $$;
CREATE TABLE i_spec (id int PRIMARY KEY, k int, big text) USING inplace;
CREATE TABLE h_spec (id int PRIMARY KEY, k int, big text) USING heap;
CREATE UNIQUE INDEX ON i_spec (it.pause(k));
CREATE UNIQUE INDEX ON h_spec (it.pause(k));
ALTER TABLE i_spec ALTER big SET STORAGE EXTERNAL;
ALTER TABLE h_spec ALTER big SET STORAGE EXTERNAL;
));
my $holder = $publisher->background_psql('postgres', on_error_stop => 1);
my $k      = 0;
foreach my $action ('DO NOTHING', '(it.pause(k)) DO UPDATE SET big = excluded.big')
{
	foreach my $big ("'small'", "repeat('big', 2000)")
	{
		$k++;
		foreach my $table (qw(i_spec h_spec))
		{
			my $late = $publisher->background_psql('postgres', on_error_stop => 1);
			$holder->query_safe('SELECT pg_advisory_lock(2)');
			$late->query_until(
				qr/start/, "SET it.calls = 1;
BEGIN;
SELECT pg_logical_emit_message(true, 'next', 'spec');
\\echo start
INSERT INTO $table VALUES ($k, $k, $big) ON CONFLICT $action;
RESET it.calls;
INSERT INTO $table VALUES ($k + 200, $k + 200, $big) ON CONFLICT DO NOTHING;
COMMIT;
");
			$publisher->poll_query_until('postgres',
				"SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
			  or die 'nobody waits';
			$publisher->safe_psql('postgres', "INSERT INTO $table VALUES ($k + 100, $k, 'first')");
			$holder->query_safe('SELECT pg_advisory_unlock(2)');
			$late->quit;
		}
	}
}
$holder->quit;
is( $publisher->safe_psql('postgres', 'SELECT id, k, length(big) FROM i_spec ORDER BY 1'),
	$publisher->safe_psql('postgres', 'SELECT id, k, length(big) FROM h_spec ORDER BY 1'),
	'failed speculative insertions');

# Another origin's changes can be told from our own.
$publisher->safe_psql(
	'postgres', "
SELECT pg_replication_origin_create('elsewhere');
SELECT pg_replication_origin_session_setup('elsewhere');
BEGIN;
" . for_both("INSERT INTO T_a (id, t) VALUES (-100, 'from elsewhere');
COPY T_a (id, v, t, big) FROM '" . copy_file() . "';
UPDATE T_a SET t = 'also from elsewhere' WHERE id = -100;
DELETE FROM T_a WHERE id = -100;
INSERT INTO T_a (id, t) VALUES (-101, 'upsert from elsewhere') ON CONFLICT DO NOTHING;
") . "SELECT pg_replication_origin_session_reset();
" . for_both("INSERT INTO T_a (id, t) VALUES (-102, 'from here');\n") . "COMMIT;");

# Rows of many types, with every alignment and NULLs anywhere; also very short ones.
my @wide = (
	[ 'bool',     'i % 3 = 0' ],
	[ 'smallint', 'i' ],
	[ 'bigint',   'i' ],
	[ '"char"',   "'c'" ],
	[ 'text',     "repeat('t', i % 200)" ],
	[ 'float8',   'i' ],
	[ 'numeric',  'i * 1000.25' ],
	[ 'point',    'point(i, i)' ],
	[ 'uuid',     'md5(i::text)::uuid' ],
	[ 'name',     "'name' || i" ],
	[ 'interval', "interval '1 s' * i" ],
	[ 'int[]',    'ARRAY[i, i + 1]' ],
	[ 'int',      'i' ],
	[ 'varchar',  "repeat('v', i % 7)" ]);
$publisher->safe_psql('postgres', join '', map {
	my $table = $_;
	"CREATE TABLE $table (" . join(', ', map { "c$_ $wide[$_][0]" } 0 .. $#wide) . ") USING "
	  . ($table =~ /^i/ ? 'inplace' : 'heap') . ";\nALTER TABLE $table REPLICA IDENTITY FULL;\n"
} qw(i_w h_w));
my $values = join ', ',
  map { "CASE WHEN i * 37 & " . (1 << $_) . " <> 0 THEN ($wide[$_][1])::$wide[$_][0] END" } 0 .. $#wide;
$publisher->safe_psql('postgres', "BEGIN;\n" . mark() . join(mark(), map { for_both($_) } (
	"INSERT INTO T_w SELECT $values FROM generate_series(0, 600) i;\n",
	"COPY (SELECT $values FROM generate_series(601, 1200) i) TO '$copy_dir/T_w';\nCOPY T_w FROM '$copy_dir/T_w';\n",
	"INSERT INTO T_w DEFAULT VALUES;\nINSERT INTO T_w (c0) VALUES (true);\n",
	"INSERT INTO T_w SELECT $values FROM generate_series(1201, 1800) i ON CONFLICT DO NOTHING;\n",
	"UPDATE T_w SET c1 = c1 + 1;\n",
	"UPDATE T_w SET c4 = c4 || 'longer', c2 = NULL WHERE c0;\n",
	"DELETE FROM T_w WHERE c0 OR c4 IS NULL;\n")) . "COMMIT;\n");

# Big transactions, which are streamed before they end, or spilled to disk.
foreach my $end ('COMMIT', 'ROLLBACK', 'COMMIT')
{
	my $first = $next_id;
	$next_id += 3000;
	$publisher->safe_psql('postgres', 'BEGIN;' . for_both("
INSERT INTO T_a (id, v, t, big) SELECT i, 1, repeat('s', 50),
	CASE WHEN i % 50 = 0 THEN repeat('stream', 1000) END FROM generate_series($first, $first + 2000) i;
SAVEPOINT a;
UPDATE T_a SET t = t || 'x' WHERE id >= $first;
ROLLBACK TO a;
UPDATE T_a SET big = big || '!' WHERE id >= $first;
SAVEPOINT b;
INSERT INTO T_a (id, v, big) SELECT i, 2, repeat('spec', 1000) FROM generate_series($first, $first + 2100) i
	ON CONFLICT DO NOTHING;
UPDATE T_a SET v = v + 1, id = -id WHERE id >= $first AND id % 3 = 0;
DELETE FROM T_a WHERE id >= $first AND id % 10 = 1;
") . "$end;");
}

run_some(20);
same_everywhere('after special cases');

# ---- crashes ---------------------------------------------------------------------

my $load = start_pgbench($publisher, clients => 4, seconds => 4, scripts => [ twin_scripts() ]);
sleep 2;
crash_and_recover($subscriber, 'kill');
sleep 1;
crash_and_recover($publisher, 'kill');
is(finish_pgbench($load)->{errors}, '', 'load ran until the crash');
run_some(30);
$load = start_pgbench($publisher, clients => 4, seconds => 2, scripts => [ twin_scripts() ]);
is(finish_pgbench($load)->{errors}, '', 'load ran after the crash');
same_everywhere('after crashes');

# ---- what test_decoding says -------------------------------------------------------

# Compares the lines between two marks, sorted; where to start reading next.
sub differences
{
	my ($lines, $seen) = @_;
	# core ends the decoding of a prepared transaction, somewhere, when it sees that it was rolled back
	my %rolled_back = map { /^ROLLBACK PREPARED '([^']+)'/ ? ($1 => 1) : () } @$lines;
	my %part = (i => [], h => []);
	my @found;
	my $end = sub {
		my ($i, $h) = map { join "\n", sort @{ $part{$_} } } qw(i h);
		push @found, substr("inplace: $i\nheap:    $h", 0, 2000) if $i ne $h;
		%part = (i => [], h => []);
	};
	foreach (@$lines)
	{
		# one TRUNCATE of both twins
		next if /^table public\.i_\w+, public\.h_/;
		if (/^table public\.([ih])_/)
		{
			my $twin = $1;
			s/\b[ih]_/T_/g;
			push @{ $part{$twin} }, $_;
			$seen->{$1}++ if /: ([A-Z]+):/;
		}
		else
		{
			%part = (i => [], h => []) if /^PREPARE TRANSACTION '([^']+)'/ && $rolled_back{$1};
			$end->();
		}
	}
	$end->();
	return @found;
}

foreach my $slot (@slots)
{
	foreach my $local (0, 1)
	{
		my @lines = split /\n/, $publisher->safe_psql('postgres',
			"SELECT data FROM pg_logical_slot_peek_changes('$slot', NULL, NULL, 'include-xids', '0', 'only-local', '$local')"
			  . " WHERE data !~ '^table public.[ih]_(doc|spec)'");
		my %seen;
		my @found = differences(\@lines, \%seen);
		is(scalar(@found), 0, "test_decoding, slot $slot, only-local $local: the same of inplace and heap")
		  or diag(join "\n", @found[ 0 .. ($#found > 4 ? 4 : $#found) ]);
		note(join ', ', map { "$_: $seen{$_}" } sort keys %seen);
		is(join(' ', sort keys %seen), 'DELETE INSERT TRUNCATE UPDATE', 'all kinds of changes were seen');
		is(scalar(grep { /from elsewhere/ } @lines), $local ? 0 : 6, 'changes of another origin');
		is(scalar(grep { /from here/ } @lines), 2, 'changes of the same transaction without origin');
	}
}
if (@slots)
{
	my %spec = map {
		my $out = $publisher->safe_psql('postgres',
			"SELECT data FROM pg_logical_slot_peek_changes('plain', NULL, NULL, 'include-xids', '0')"
			  . " WHERE data ~ '^table public.${_}_spec'");
		$out =~ s/\b${_}_/T_/g;
		$_ => $out
	} qw(i h);
	is($spec{i}, $spec{h}, 'test_decoding: speculative insertions');
	like($spec{i}, qr/INSERT: id\[integer\]:101 /, 'test_decoding: the insertion that won');
	unlike($spec{i}, qr/INSERT: id\[integer\]:[1-4] /, 'test_decoding: not those that were killed');

	my %stream = map {
		my $slot = $_;
		$slot => $publisher->safe_psql('postgres',
			"SELECT count(*), count(*) FILTER (WHERE data ~ 'streaming change')
			 FROM pg_logical_slot_peek_changes('$slot', NULL, NULL, 'include-xids', '0', 'stream-changes', '1')")
	} @slots;
	like($stream{plain}, qr/\|[1-9]/, 'test_decoding: transactions are streamed');
}

# A table that decoding itself would have to read cannot be ours.
my ($out, $err);
$publisher->psql('postgres', q(
CREATE TABLE catalog (id int) USING inplace WITH (user_catalog_table = true);
INSERT INTO catalog VALUES (1);
), stderr => \$err);
like($err, qr/inplace table "catalog" cannot be used as a catalog table/, 'user_catalog_table is refused');

# The row's identity is looked up while its page is locked, which may throw away what the backend knows of the relation: that must not be looked
# up on the page.  Servers without assertions cannot be made to forget.
SKIP:
{
	my $name = 'a relation that is forgotten while its first page is locked';
	skip $name, 1 if $publisher->safe_psql('postgres', 'SHOW debug_assertions') ne 'on';
	$publisher->safe_psql('postgres', q(
CREATE TABLE forgotten (id int PRIMARY KEY, n int) USING inplace;
INSERT INTO forgotten SELECT i, 0 FROM generate_series(1, 3) i));
	my $reader = $publisher->background_psql('postgres');
	$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM forgotten');
	$publisher->safe_psql('postgres', q(
SET inplace.debug_undo_at_home = off;
UPDATE forgotten SET n = 1;
SET debug_discard_caches = 1;
DELETE FROM forgotten WHERE id = 1));
	is($reader->query_safe('SELECT sum(n) FROM forgotten'), '0', $name);
	$reader->quit;
	$publisher->safe_psql('postgres', 'DROP TABLE forgotten');
}

# ---- the end ---------------------------------------------------------------------

my @inplace = map { "i_$_" } qw(a f x n p1 p2 r c spec);
$publisher->wait_for_catchup($standby);
same_contents('standby has the same rows', $publisher, $standby,
	map { "i_$_" } qw(a f x n p1 p2 r c));
tables_ok($publisher, 'publisher', @inplace, @twin_tables);
twins_ok($publisher, 'publisher');
log_ok($publisher,  'publisher',  0);
log_ok($standby,    'standby',    0);
log_ok($subscriber, 'subscriber', 0);

done_testing();
