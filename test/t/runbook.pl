# What docs/users/runbook.md says of incidents that other tests do not have: views or the log name the cause, the way out
# that the page gives is one, and the page's sign that it is over comes.  horizon_view has idle transactions, slots, prepared
# transactions and standbys; full_disk, one_damaged_page, damage_that_readers_meet and library_missing have the rest of theirs.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('main', conf => q(
shared_preload_libraries = 'inplace, pbtree'
log_autovacuum_min_duration = 0
));
sql_on(\$node);
sql('CREATE EXTENSION pbtree');

# The page's query that has this text, as a statement without its end.
my $page = slurp_file("$FindBin::RealBin/../../docs/users/runbook.md");

sub query_of_page
{
	my ($text) = @_;
	my @found = grep { index($_, $text) >= 0 } map { split /;\n/ } $page =~ /^```sql\n(.*?)^```$/gms;
	die "the page has not got \"$text\", or more than once" if @found != 1;
	return $found[0];
}

# The columns of the query's row of which this is true.
sub of_query
{
	my ($text, $columns, $where) = @_;
	return sql("SELECT $columns FROM (" . query_of_page($text) . ") q WHERE $where");
}

sub wait_until { return $node->poll_query_until('postgres', "SELECT $_[0]") || die "never: $_[0]"; }

# ---- 7 bloated index ---------------------------------------------------------

sql(q(CREATE TABLE keys (id int PRIMARY KEY, k int, b int) USING inplace WITH (autovacuum_enabled = off)),
	'CREATE INDEX keys_k ON keys USING pbtree (k)',
	'INSERT INTO keys SELECT i, i, i FROM generate_series(1, 10000) i', 'VACUUM ANALYZE keys');
my $small = pages_of('keys_k');
sub entries { return of_query('s.rows AS entries', 'entries, reltuples', "index = 'keys_k'::regclass"); }

my $reader = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $reader->query_safe('SELECT pg_backend_pid()');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM keys');
sql('UPDATE keys SET k = k + 10000') for 1 .. 3;
wait_until(q(n_tup_upd = 30000 FROM pg_stat_user_tables WHERE relname = 'keys'));
is(entries(), '40000|10000', '7: a pbtree index has entries of former keys');
like(answer('VACUUM (VERBOSE, INDEX_CLEANUP on) keys'), qr/index "keys_k": 0 stale entries removed, 30000 still needed/, '7: VACUUM says that they are needed');
# the oldest: autovacuum's ANALYZE may be in the view for a moment
is(of_query('h.holder, h.pid', 'pid, state', 'true LIMIT 1'), "$pid|idle in transaction", '7: the view names the one who does');
like(sql('SELECT remedy FROM inplace_horizon LIMIT 1'), qr/^SELECT pg_terminate_backend\($pid\)$/, '7: with the remedy');
$reader->query_safe('COMMIT');
like(answer('VACUUM (VERBOSE, INDEX_CLEANUP on) keys'), qr/index "keys_k": 30000 stale entries removed, 0 still needed/, '7: afterwards they go');
is(entries(), '10000|10000', '7: an entry for each row');
cmp_ok(of_query('s.rows AS entries', 'deleted_pages', "index = 'keys_k'::regclass"), '>', 0, '7: pages are free');
my $large = pages_of('keys_k');
cmp_ok($large, '>', 2 * $small, '7: but not given back');
sql('VACUUM (INDEX_CLEANUP on) keys');
sql('UPDATE keys SET k = k + 10000');
is(pages_of('keys_k'), $large, '7: the next VACUUM lets them be used again');
sql('VACUUM (INDEX_CLEANUP on) keys');
sql('REINDEX INDEX CONCURRENTLY keys_k');
is(pages_of('keys_k'), $small, '7: REINDEX makes it as small as it was');

# a btree: rows move
sql('CREATE INDEX keys_b ON keys (b)');
$small = pages_of('keys_b');
sql('UPDATE keys SET b = b + 10000') for 1 .. 3;
sql('DELETE FROM keys WHERE id % 10 <> 0', 'VACUUM ANALYZE keys');
my $per_row = "bytes_per_row FROM (@{[query_of_page('AS bytes_per_row')]}) q WHERE index = 'keys_b'::regclass";
my $before = sql("SELECT $per_row");
SKIP:
{
	skip 'no pgstattuple', 2 if !sql(q(SELECT count(*) FROM pg_available_extensions WHERE name = 'pgstattuple'));
	sql('CREATE EXTENSION pgstattuple');
	cmp_ok(sql(q(SELECT avg_leaf_density FROM pgstatindex('keys_b'))), '<', 60, '7: leaves of a btree are nearly empty');
	sql('REINDEX INDEX CONCURRENTLY keys_b');
	cmp_ok(sql(q(SELECT avg_leaf_density FROM pgstatindex('keys_b'))), '>', 80, '7: and full after REINDEX');
}
sql('REINDEX INDEX CONCURRENTLY keys_b');
cmp_ok(sql("SELECT $per_row"), '<', $before / 5, '7: fewer bytes for a row');

# ---- 8 runaway undo ----------------------------------------------------------

sql('CREATE TABLE grows (id int PRIMARY KEY, n int) USING inplace',
	'INSERT INTO grows SELECT i, 0 FROM generate_series(1, 20000) i', 'VACUUM ANALYZE grows');
sub load { sql('UPDATE grows SET n = n + 1') for 1 .. 10; return; }
# what a load needs when nobody has a snapshot, and autovacuum does not make the file smaller meanwhile
sql('ALTER TABLE grows SET (autovacuum_enabled = off)');
load();
my $usual = pages_of('grows');
sql('ALTER TABLE grows RESET (autovacuum_enabled)');
my $log = -s $node->logfile;
$reader->query_safe("SET application_name = 'report'; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM grows");
$reader->{stdin} .= "SELECT pg_sleep(100000);\n\\echo it_ended\n";
$reader->{run}->pump_nb;
wait_until("count(*) = 1 FROM pg_stat_activity WHERE pid = $pid AND wait_event = 'PgSleep'");
load();
my $grown = pages_of('grows');
cmp_ok($grown, '>', 2 * $usual, '8: the table grows under a snapshot');
is(of_query('AS removable', 'relation', 'true LIMIT 1'), 'grows', '8: the query names the table');
is(sql(q(SELECT sum(removable_pages) < sum(pages) / 5 FROM inplace_undo_rings('grows'))), 't', '8: its undo is needed');
is(of_query('h.holder, h.pid', 'holder, pid, name, state, query', 'true LIMIT 1'), "backend|$pid|report|active|SELECT pg_sleep(100000);", '8: the query names the cause');
$node->wait_for_log(qr/automatic vacuum of table "postgres.public.grows".*(?:\n\t.*)*undo: \d+ pages, .*view inplace_horizon shows/, $log);
pass('8: autovacuum refers to the view in the log');
sql("SELECT pg_cancel_backend($pid)");
$reader->query_until(qr/it_ended/, '');
wait_until('count(*) = 0 FROM inplace_horizon');
pass('8: the query has been cancelled, and holds nothing');
# its error is still to be read
$reader->query('ROLLBACK');
$reader->{stderr} = '';
is($reader->query_safe('SELECT pg_backend_pid()'), $pid, '8: its client goes on');
sql('ALTER TABLE grows SET (autovacuum_enabled = off)');
sql('VACUUM grows');
is(sql(q(SELECT coalesce(sum(pages), 0) < 100 FROM inplace_undo_rings('grows'))), 't', '8: VACUUM frees the undo pages');
my $after = pages_of('grows');
my @sizes = map { load(); pages_of('grows') } 1 .. 6;
note("pages: $usual, $grown under a snapshot, $after after VACUUM, @sizes after further loads");
# each of the rings that sessions take needs some pages
cmp_ok($sizes[-1], '<=', 1.25 * ($after > $usual ? $after : $usual), '8: further loads need about as many pages as one did before');

# pg_cancel_backend does nothing to a session that is idle
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM grows');
sql("SELECT pg_cancel_backend($pid)");
is($reader->query_safe('SELECT 1'), 1, '1: an idle session is not cancelled');
is(of_query('h.holder, h.pid', 'pid, state', 'true LIMIT 1'), "$pid|idle in transaction", '1: and still holds undo');
$reader->query_safe('COMMIT');

# ---- 9 VACUUM disabled -------------------------------------------------------

sql("CREATE TABLE $_ (id int PRIMARY KEY, t text) USING inplace") for 'without', 'with_it';
sql('ALTER TABLE without SET (autovacuum_enabled = off, toast.autovacuum_enabled = no)');
sql("INSERT INTO $_ SELECT i, 'x' FROM generate_series(1, 10000) i", "VACUUM ANALYZE $_") for 'without', 'with_it';
my $young = sql(q(SELECT age(relfrozenxid) FROM pg_class WHERE relname = 'without'));
sql('DO $$ BEGIN FOR i IN 1 .. 1000 LOOP INSERT INTO without VALUES (-i); COMMIT; END LOOP; END $$');
sql("DELETE FROM $_ WHERE id % 2 = 0") for 'without', 'with_it';
wait_until(q(n_dead_tup = 5500 FROM pg_stat_user_tables WHERE relname = 'without'));
wait_until(q(autovacuum_count > 0 AND n_dead_tup = 0 FROM pg_stat_user_tables WHERE relname = 'with_it'));
my $disabled = q('autovacuum_enabled' AND NOT);
is(of_query($disabled, 'n_dead_tup, last_autovacuum', q("table" = 'without'::regclass AND NOT is_toast)), '5500|', '9: dead rows stay where autovacuum is off');
cmp_ok(of_query($disabled, 'age', q("table" = 'without'::regclass AND NOT is_toast)), '>', $young + 1000, '9: the age grows');
is(of_query($disabled, 'count(*)', q("table" = 'without'::regclass AND is_toast)), 1, '9: the TOAST table is named, too');
is(of_query($disabled, 'count(*)', q("table" = 'with_it'::regclass)), 0, '9: other tables are not');
sql('ALTER TABLE without RESET (autovacuum_enabled, toast.autovacuum_enabled)');
wait_until(q(autovacuum_count > 0 AND n_dead_tup = 0 FROM pg_stat_user_tables WHERE relname = 'without'));
is(of_query($disabled, 'count(*)', q("table" = 'without'::regclass)), 0, '9: switched on again, autovacuum comes');
sql('VACUUM without');
cmp_ok(sql(q(SELECT age(relfrozenxid) FROM pg_class WHERE relname = 'without')), '<', 100, '9: the age is small');
$reader->quit;
log_ok($node, 'incidents 7 to 9', 0);

# ---- 6 damaged page ----------------------------------------------------------

# The message of the server names the file, and all rows of other pages are saved.
sql('CREATE TABLE damaged (id int PRIMARY KEY, n int) USING inplace', 'INSERT INTO damaged SELECT i, 0 FROM generate_series(1, 2000) i', 'VACUUM damaged');
my ($in_page, $other) = split /\|/, sql(q(SELECT count(*) FILTER (WHERE b = 3), min(id) FILTER (WHERE b = 2)
	FROM (SELECT id, (ctid::text::point)[0] AS b FROM damaged) d));
# where the line pointers end
change_pages($node, 'damaged', sub { my ($bytes, $block) = @_; substr($bytes, 12, 2) = "\xff\xff"; return $block == 3 ? $bytes : undef; });
my ($file) = answer('SELECT count(*) FROM damaged') =~ /ERROR:  XX001: invalid page in block 3 of relation "?base\/\d+\/(\d+)/;
is(sql("SELECT pg_filenode_relation(0, $file)"), 'damaged', '6: the table of the file');
like(sql(q(SELECT block, problem FROM inplace_check('damaged'))), qr/^3\|invalid page/, '6: inplace_check names the block');
is(sql("SET enable_seqscan = off; SELECT count(*) FROM damaged WHERE id = $other"), 1, '6: a row of another page is read by key');
unlike(answer('VACUUM damaged'), qr/ERROR/, '6: VACUUM passes over an all-frozen page');
like(answer('SET zero_damaged_pages = on', 'VACUUM FULL damaged'), qr/WARNING:  XX001/, '6: VACUUM FULL warns of what it leaves out');
is(sql('SELECT count(*) FROM damaged'), 2000 - $in_page, '6: and saves all other rows');
is(sql(q(SELECT count(*) FROM inplace_check('damaged'))), 0, '6: inplace_check returns no row');

# ---- 10 library missing ------------------------------------------------------

# pbtree: reads work, changes fail.
$node->stop;
preload($node, 'inplace');
$node->start;
is(sql('SET enable_seqscan = off; SELECT count(*) FROM keys WHERE k > 0'), 1000, '10: without pbtree preloaded its indexes are read');
like(answer('UPDATE keys SET k = 1'), qr/ERROR:  55000: pbtree indexes of logged tables need pbtree in shared_preload_libraries\nHINT/, '10: and not changed');
$node->stop;
preload($node, 'inplace, pbtree');
$node->start;
sql('UPDATE keys SET k = k + 1');
$node->stop('immediate');
preload($node, 'inplace');
$log = -s $node->logfile;
is($node->start(fail_ok => 1), 0, '10: no recovery without pbtree');
like(slurp_file($node->logfile, $log), qr/FATAL: .*resource manager with ID 165 not registered\n.*HINT: .*shared_preload_libraries/, '10: the log says which');
preload($node, 'inplace, pbtree');
$node->start;
cmp_ok(sql(q(SELECT pbtree_check('keys_k', true))), '>=', 1000, '10: with it all is there');
$node->stop;

# Not installed.
my $path = private_installation();
chomp(my $lib = `$ENV{PG_CONFIG} --pkglibdir`);
my ($link) = grep { -l && readlink eq $lib } glob("$path/* $path/*/* $path/*/*/*") or die "$path has no link to $lib";
unlink $link or die "$link: $!";
mkdir $link or die "$link: $!";
foreach my $from (glob("$lib/*"))
{
	symlink($from, $link . substr($from, length $lib)) or die "$from: $!" if $from !~ /\/inplace\.\w+$/;
}
my $installed = $node->{_install_path};
$node->{_install_path} = $path;
$log = -s $node->logfile;
is($node->start(fail_ok => 1), 0, '10: no start without the file');
like(slurp_file($node->logfile, $log), qr/FATAL: .*could not access file "inplace": No such file or directory/, '10: the log says so');
preload($node, '');
$node->start;
like(answer('SELECT count(*) FROM grows'), qr/ERROR:  58P01: could not access file "(\$libdir\/)?inplace": No such file or directory/, '10: neither installed nor preloaded');
like(sql('SELECT count(*) FROM inplace_horizon'), qr/^\d+$/, '10: views can be read');
$node->stop;
$node->{_install_path} = $installed;
preload($node, 'inplace, pbtree');
$node->start;
is(sql('SELECT count(*) FROM grows'), 20000, '10: installed again, all rows are there');
is(sql(q(SELECT count(*) FROM inplace_check('grows'))), 0, '10: and sound');
$node->stop;

# ---- 5 full disk -------------------------------------------------------------

my $full = PostgreSQL::Test::Utils::tempdir('full') . '/disk';
$ENV{FULL_DISK} = $full;
{
	local $ENV{LD_PRELOAD} = build_module('full_disk') . '.so';
	$node->start;
}
$reader = $node->background_psql('postgres');
# it has not locked the table, for which VACUUM FULL would wait
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
load();
append_to_file($full, '');
my $said = '';
for (1 .. 200)
{
	$said = answer('UPDATE grows SET n = n + 1');
	last if $said =~ /ERROR/;
}
like($said, qr/ERROR:  53100: could not extend file "base\/\d+\/\d+(_\w+)?.*No space left on device/, '5: an update fails on a full disk');
is(sql('SELECT count(*), min(n) = max(n) FROM grows'), '20000|t', '5: and has changed nothing');
is(of_query('AS table_size', 'relation', 'true LIMIT 1'), 'grows', '5: the largest table is named');
$grown = pages_of('grows');
like(answer('VACUUM FULL grows'), qr/ERROR:  53100/, '5: VACUUM FULL needs room');
$reader->query_safe('COMMIT');
unlike(answer('VACUUM grows'), qr/ERROR/, '5: VACUUM needs none');
cmp_ok(pages_of('grows'), '<', $grown / 2, '5: and makes the file smaller, though the disk is full');
unlink $full or die "$full: $!";
sql('UPDATE grows SET n = n + 1');
tables_ok($node, '5: with room again', 'grows');
$reader->quit;
$node->stop;
done_testing();
