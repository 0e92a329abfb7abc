# Large values: what an update writes, the space of old versions, all who may still need these (snapshots, cursors, savepoints,
# prepared transactions, standbys, rewrites, index builds), logical decoding, damage.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

test_seed();
my $primary = new_cluster(
	'primary',
	streaming => 1,
	conf      => q(
autovacuum = off
wal_level = logical
max_prepared_transactions = 4
wal_consistency_checking = 'inplace'
));
my $standby = new_standby($primary, "hot_standby_feedback = off\nmax_standby_streaming_delay = -1");
sql_on(\$primary);

# A document of so many words, and one of bytes that do not compress.
sql(q(CREATE FUNCTION words(seed int, n int) RETURNS text LANGUAGE sql IMMUTABLE AS
	$$ SELECT string_agg('word' || left(md5((g * seed)::text), 3), ' ' ORDER BY g) FROM generate_series(1, n) g $$),
	q(CREATE FUNCTION noise(seed int, n int) RETURNS text LANGUAGE sql IMMUTABLE AS
	$$ SELECT string_agg(md5((g * seed)::text), '' ORDER BY g) FROM generate_series(1, n) g $$));

sub toast_of { return sql("SELECT reltoastrelid::regclass FROM pg_class WHERE oid = '$_[0]'::regclass"); }
sub stats { return sql("SELECT $_[1] FROM inplace_toast_stats('$_[0]')"); }

sub sound
{
	my ($name, @tables) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	foreach my $table (@tables)
	{
		my $toast = toast_of($table);
		is(sql("SELECT * FROM inplace_check('$table') UNION ALL SELECT * FROM inplace_check('$toast')"), '', "$name: values of $table are sound");
	}
	return;
}

# ---- what an update costs ------------------------------------------------------------------

sub wal_of
{
	my ($update) = @_;
	my $before = sql('SELECT pg_current_wal_insert_lsn()');
	sql("SET wal_consistency_checking = ''", $update);
	return sql("SELECT sum(record_bytes) FROM inplace_wal_summary('$before', pg_current_wal_flush_lsn()) WHERE operation IS NULL");
}
sql('CREATE TABLE docs (id int PRIMARY KEY, doc text) USING inplace', 'INSERT INTO docs SELECT i, words(i, 14000) FROM generate_series(1, 40) i',
	'CREATE TABLE docs_heap (id int PRIMARY KEY, doc text) USING heap', 'INSERT INTO docs_heap TABLE docs');
is(sql(q(SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.oid = ) . "'" . toast_of('docs') . "'::regclass"), 'inplace', "the TOAST table's access method");
cmp_ok(stats('docs', 'blocks'), '>', 400, 'values are cut into blocks');
cmp_ok(stats('docs', 'plain_bytes'), '<', 500, 'which are compressed, but very short ones');
is(sql('SELECT count(*) FROM docs JOIN docs_heap USING (id, doc)'), 40, 'values as in heap');
is(sql(q(SELECT count(*) FROM docs d JOIN docs_heap h USING (id), generate_series(1, 120000, 4999) s WHERE substr(d.doc, s, 40) IS DISTINCT FROM substr(h.doc, s, 40))), 0, 'and their parts');

my $blocks = stats('docs', 'blocks');
sql(q(UPDATE docs SET doc = overlay(doc placing 'CHANGED' from 50000 for 7) WHERE id <= 20), q(UPDATE docs_heap SET doc = overlay(doc placing 'CHANGED' from 50000 for 7) WHERE id <= 20));
cmp_ok(stats('docs', 'blocks'), '<', $blocks + 100, 'with a logical WAL level, too, values are cut');

# Decoding wants whole values.
$primary->append_conf('postgresql.conf', "wal_level = replica");
$primary->restart;
sql('VACUUM docs');
my $holder = $primary->background_psql('postgres');
$holder->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
my $heap_wal = wal_of(q(UPDATE docs_heap SET doc = overlay(doc placing 'XYZ' from 70000 for 3) WHERE id > 20));
my $wal = wal_of(q(UPDATE docs SET doc = overlay(doc placing 'XYZ' from 70000 for 3) WHERE id > 20));
cmp_ok($wal, '<', $heap_wal / 4, "a change inside costs the change: $wal bytes of WAL, heap $heap_wal");
cmp_ok(stats('docs', 'shared_bytes'), '>', 3 * stats('docs', 'old_bytes'), 'versions share most of their blocks');
$holder->quit;
sql(q(UPDATE docs SET doc = doc || 'tail' WHERE id = 1), q(UPDATE docs_heap SET doc = doc || 'tail' WHERE id = 1));
sql(q(UPDATE docs SET doc = 'head' || doc WHERE id = 2), q(UPDATE docs_heap SET doc = 'head' || doc WHERE id = 2));
sql(q(UPDATE docs SET doc = left(doc, 60000) || right(doc, 50000) WHERE id = 3), q(UPDATE docs_heap SET doc = left(doc, 60000) || right(doc, 50000) WHERE id = 3));
sql(q(UPDATE docs SET doc = doc || doc || doc WHERE id = 4), q(UPDATE docs_heap SET doc = doc || doc || doc WHERE id = 4));
sql(q(UPDATE docs SET doc = right(doc, 200000) WHERE id = 4), q(UPDATE docs_heap SET doc = right(doc, 200000) WHERE id = 4));
my $old = stats('docs', 'old_values');
sql(q(UPDATE docs SET doc = doc || ''), 'UPDATE docs_heap SET doc = doc');
is(stats('docs', 'old_values'), $old, 'a value that an update does not change stays as it is');
is(sql('SELECT count(*) FROM docs JOIN docs_heap USING (id, doc)'), 40, 'values as in heap after changes');
sound('after changes', 'docs');

# ---- the space of old versions ------------------------------------------------------------

{
	my $before = pages_of(toast_of('docs'));
	sql(map { sprintf q(UPDATE docs SET doc = overlay(doc placing '%05d' from %d for 5)), $_, 1000 + $_ * 2300 } 1 .. 40);
	my $after = pages_of(toast_of('docs'));
	cmp_ok($after, '<', 1.6 * $before, "updates use the space of old versions without VACUUM: $before, then $after pages");
	sound('after many changes', 'docs');
	sql('DELETE FROM docs WHERE id > 5', 'VACUUM docs');
	my $least = pages_of(toast_of('docs'));
	cmp_ok($least, '<=', $after, "VACUUM cuts off what is free at the end: $least");
	sql('INSERT INTO docs SELECT i, words(i, 14000) FROM generate_series(6, 30) i');
	my $full = pages_of(toast_of('docs'));
	cmp_ok($full, '<=', 1.05 * $after, "free pages are used again: $full");
	sql('DELETE FROM docs WHERE id > 5');
	sql('VACUUM docs') for 1 .. 2;
	cmp_ok(sql("SELECT sum(avail) / 8192 FROM pg_freespace('" . toast_of('docs') . "')"), '>', 0.6 * pages_of(toast_of('docs')), 'and VACUUM finds all of them')
	  if sql(q(SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_freespacemap')) && sql('CREATE EXTENSION pg_freespacemap', 'SELECT 1');
	sound('after VACUUM', 'docs');
}

# ---- who needs an old version --------------------------------------------------------------

sql('CREATE TABLE v (id int PRIMARY KEY, doc text) USING inplace', 'INSERT INTO v SELECT i, noise(i, 3000) FROM generate_series(1, 8) i');
my $sum = q(SELECT sum(hashtextextended(doc, id)) FROM v);
my $first = sql($sum);
{
	my $late = $primary->background_psql('postgres');
	$late->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
	my $reader = $primary->background_psql('postgres');
	$reader->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; $sum");
	$reader->query_safe('DECLARE c CURSOR FOR SELECT sum(hashtextextended(doc, id)) OVER (), id FROM v; DECLARE h CURSOR FOR SELECT doc FROM v WHERE id = 1');
	my $last = sql(q(UPDATE v SET doc = overlay(doc placing 'abc' from 40000 for 3)), q(UPDATE v SET doc = 'again' || doc), q(DELETE FROM v WHERE id = 7), 'VACUUM v', $sum);
	is($reader->query_safe($sum), $first, 'an old snapshot sees old values');
	is((split /\|/, $reader->query_safe('FETCH 1 FROM c'))[0], $first, 'a cursor, too');

	$reader->query_safe('COMMIT');
	$reader->quit;

	# each version becomes a row, with values of its own
	sql('VACUUM FULL v');
	sound('old versions in a new file', 'v');
	is($late->query_safe($sum), $first, 'old versions after VACUUM FULL');
	sql('CREATE INDEX v_doc ON v (md5(doc), left(doc, 100))');
	is($late->query_safe($sum), $first, 'after CREATE INDEX');
	is(sql($sum), $last, 'and the newest versions');
	$late->query_safe('COMMIT');
	$late->quit;
	sql('VACUUM v', 'VACUUM v');
	is(stats('v', 'old_values'), 0, 'old values of the new file are gone');
	sound('in the new file', 'v');
	is(sql($sum), $last, 'the others are not');
}
{
	my $before = sql($sum);
	sql(q(BEGIN; SAVEPOINT a; UPDATE v SET doc = doc || 'lost'; SAVEPOINT b; UPDATE v SET doc = left(doc, 50000); ROLLBACK TO b; UPDATE v SET doc = doc || 'lost, too'; ROLLBACK TO a; UPDATE v SET doc = doc || '' ; COMMIT));
	is(sql($sum), $before, 'savepoints: blocks that are shared with a version that was rolled back stay');
	sql(q(BEGIN; UPDATE v SET doc = 'two' || doc; PREPARE TRANSACTION 'p'), 'VACUUM v');
	is(sql($sum), $before, 'prepared: the old version');
	sql(q(ROLLBACK PREPARED 'p'), q(BEGIN; UPDATE v SET doc = doc || 'end'; UPDATE v SET doc = left(doc, length(doc) - 3); PREPARE TRANSACTION 'p'));
	$primary->restart;
	sql(q(COMMIT PREPARED 'p'), 'VACUUM v');
	is(sql($sum), $before, 'prepared and committed');
	sound('after savepoints and two-phase commit', 'v');
}

# A variable has the address of a value whose subtransaction was rolled back.
is( sql(q(DO $$ DECLARE d text; BEGIN
	BEGIN
		UPDATE v SET doc = noise(77, 2500) WHERE id = 1;
		SELECT doc INTO d FROM v WHERE id = 1;
		RAISE 'undone' USING errcode = 'P0001';
	EXCEPTION WHEN SQLSTATE 'P0001' THEN NULL;
	END;
	FOR i IN 2 .. 6 LOOP UPDATE v SET doc = noise(100 + i, 2500) WHERE id = i; END LOOP;
	IF d IS DISTINCT FROM noise(77, 2500) THEN RAISE 'the value has been replaced'; END IF;
END $$)),
	'', 'a value of a subtransaction that was rolled back stays as long as the transaction');

# The value has been deleted in that subtransaction, too.  The page is pruned, because rows that were deleted before can go.
{
	sql('CREATE TABLE undone (id int, doc text) USING inplace', 'ALTER TABLE undone ALTER doc SET STORAGE external',
		q(CREATE FUNCTION undone(n int) RETURNS text LANGUAGE plpgsql AS $$ DECLARE d text; BEGIN
			BEGIN
				INSERT INTO undone VALUES (1001, noise(1001, n));
				SELECT doc INTO d FROM undone WHERE id = 1001;
				DELETE FROM undone WHERE id = 1001;
				RAISE 'undone' USING errcode = 'P0001';
			EXCEPTION WHEN SQLSTATE 'P0001' THEN NULL;
			END;
			INSERT INTO undone SELECT i, noise(i, n) FROM generate_series(1002, 1006) i;
			RETURN d;
		END $$));
	my $wrong = 0;
	foreach my $i (0 .. 11)
	{
		my $n = 64 + $i % 4;
		my $rows = 8 + $i % 3;
		sql('TRUNCATE undone', "INSERT INTO undone SELECT i, noise(i, $n) FROM generate_series(1, $rows) i", "DELETE FROM undone WHERE id = $rows");
		$wrong++ if sql("SELECT undone($n) = noise(1001, $n)") ne 't';
	}
	is($wrong, 0, 'one that was deleted in that subtransaction, too');
	sound('after rollbacks', 'undone');
}

# Deleted rows that a snapshot still needs do not hide the room that they will make.
{
	sql('CREATE TABLE busy (id int PRIMARY KEY, doc text) USING inplace', 'INSERT INTO busy SELECT i, noise(i, 600) FROM generate_series(1, 20) i');
	my ($reader, $pages);
	my $writer = $primary->background_psql('postgres');
	foreach my $round (1 .. 40)
	{
		my $next = $primary->background_psql('postgres');
		$next->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
		$reader->quit if $reader;
		$reader = $next;
		$writer->query_safe("UPDATE busy SET doc = noise($_ + $round, 600) WHERE id = $_") for 1 .. 20;
		$pages = pages_of(toast_of('busy')) if $round == 10;
	}
	$reader->quit;
	$writer->quit;
	my $last = pages_of(toast_of('busy'));
	cmp_ok($last, '<', 2 * $pages, "with a horizon that is always behind: $pages pages, then $last");
}

# From row to row, to a trigger, to a temporary table, to a holdable cursor.
sql('CREATE TABLE old_docs (id int, doc text) USING inplace',
	q(CREATE FUNCTION keep_old() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO old_docs VALUES (OLD.id, OLD.doc); RETURN NULL; END $$),
	q(CREATE FUNCTION keep_all() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO old_docs SELECT -id, doc FROM gone; RETURN NULL; END $$),
	'CREATE TRIGGER keep AFTER UPDATE OR DELETE ON v FOR EACH ROW EXECUTE FUNCTION keep_old()',
	'CREATE TRIGGER all_of_them AFTER DELETE ON v REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION keep_all()');
$first = sql($sum);
is( sql('CREATE TABLE was AS SELECT * FROM v', q(UPDATE v SET doc = left(doc, 30000) || id), 'SELECT count(*) FROM old_docs JOIN was USING (id, doc)'),
	7, "an AFTER trigger's OLD");
is(sql(q(BEGIN; DECLARE h CURSOR WITH HOLD FOR SELECT md5(string_agg(doc, '' ORDER BY id)) FROM v; COMMIT; DELETE FROM v), 'VACUUM v', 'FETCH 1 FROM h') =~ s/.*\n//sr,
	sql(q(SELECT md5(string_agg(doc, '' ORDER BY id)) FROM (SELECT id, left(doc, 30000) || id AS doc FROM was) d)), 'a holdable cursor');
is(sql('SELECT count(*) FROM old_docs d JOIN was w ON -d.id = w.id AND d.doc = left(w.doc, 30000) || w.id'), 7, 'a transition table');
sql('INSERT INTO v SELECT id, doc FROM was', 'UPDATE v SET doc = (SELECT o.doc FROM v o WHERE o.id = 1)');
is(sql('SELECT count(DISTINCT doc) FROM v'), 1, 'from row to row');
sound('copies', 'v', 'old_docs');

# Copies have the blocks as they are stored, but those are compressed that the column wants compressed.
sql("CREATE TABLE $_ (id int, doc text) USING inplace") foreach qw(packed plain packed_copy plain_copy);
sql("ALTER TABLE $_ ALTER doc SET STORAGE external") foreach qw(plain packed_copy);
sql("INSERT INTO $_ SELECT i, words(i, 4000) FROM generate_series(1, 5) i") foreach qw(packed plain);
sql(q(UPDATE packed SET doc = doc || doc), q(UPDATE plain SET doc = doc || doc), 'INSERT INTO packed_copy TABLE packed', 'INSERT INTO plain_copy TABLE plain');
my $content = sql('SELECT md5(string_agg(doc, $$$$ ORDER BY id)) FROM packed');
is(sql("SELECT md5(string_agg(doc, \$\$\$\$ ORDER BY id)) FROM $_"), $content, "$_: its values") foreach qw(plain packed_copy plain_copy);
my $stored = 'live_values, blocks, raw_bytes, stored_bytes, plain_bytes';
is(stats('packed_copy', $stored), stats('packed', $stored), 'compressed blocks are copied as they are stored');
is(stats('plain', 'plain_bytes = stored_bytes'), 't', 'blocks that are not compressed');
cmp_ok(stats('plain_copy', 'stored_bytes'), '<', 0.6 * stats('plain', 'stored_bytes'), 'are compressed if the column says so');
{
	my @before = map { stats($_, $stored) } qw(packed plain);
	sql('ALTER TABLE plain ALTER doc SET STORAGE extended', 'VACUUM FULL plain', 'VACUUM FULL packed', 'CREATE INDEX packed_id ON packed (id DESC)', 'CLUSTER packed USING packed_id');
	is(stats('packed', $stored), $before[0], 'VACUUM FULL and CLUSTER copy, too');
	isnt(stats('plain', $stored), $before[1], 'and compress');
	is(sql("SELECT md5(string_agg(doc, \$\$\$\$ ORDER BY id)) FROM $_"), $content, "$_ after it: its values") foreach qw(plain packed);
}
sound('copies of blocks', qw(packed plain packed_copy plain_copy));

# Values that fit the row by now go back to it.
sql('CREATE TABLE back (id int, doc text) USING inplace', 'ALTER TABLE back ALTER doc SET STORAGE external', q(INSERT INTO back SELECT i, repeat('abcdefgh', 2000) FROM generate_series(1, 10) i),
	'CREATE TABLE back_copy (id int, doc text) USING inplace', 'INSERT INTO back_copy TABLE back', 'CREATE TABLE short (id int, doc text) USING inplace', 'INSERT INTO short SELECT i, noise(i, 140) FROM generate_series(1, 10) i');
is(join(' ', map { stats($_, 'live_values') } qw(back back_copy short)), '10 0 10', 'a copy that can be compressed stays in the row');
sql('ALTER TABLE back ALTER doc SET STORAGE extended', 'VACUUM FULL back', 'ALTER TABLE short SET (toast_tuple_target = 8000)', 'VACUUM FULL short');
is(join(' ', map { stats($_, 'live_values') } qw(back short)), '0 0', 'VACUUM FULL brings values back to the row');
is(sql(q(SELECT count(*) FROM back b JOIN back_copy c USING (id, doc) JOIN short s USING (id) WHERE b.doc = repeat('abcdefgh', 2000) AND s.doc = noise(id, 140))), 10, 'as they were');

# ---- standby ---------------------------------------------------------------------------------

{
	$primary->wait_for_catchup($standby);
	my $reader = $standby->background_psql('postgres');
	$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
	my $seen = $reader->query_safe($sum);
	sql(q(UPDATE v SET doc = noise(id, 3000)));
	$primary->wait_for_catchup($standby);
	is($reader->query_safe($sum), $seen, 'standby: an old snapshot sees old values');
	sql('VACUUM v', q(UPDATE v SET doc = noise(id + 50, 3000)), 'VACUUM v');
	is($reader->query_safe($sum), $seen, 'standby: redo of their removal waits for it');
	$reader->query_safe('COMMIT');
	$reader->quit;
	$primary->wait_for_catchup($standby);
	same_contents('standby: all values', $primary, $standby, 'v', 'docs', 'old_docs');
}

# ---- kinds of tables and ways to write ----------------------------------------------------

sql('CREATE UNLOGGED TABLE u (id int, doc text) USING inplace', 'INSERT INTO u SELECT i, words(i, 9000) FROM generate_series(1, 5) i',
	q(UPDATE u SET doc = doc || 'x'));
is( sql('CREATE TEMP TABLE t (id int, doc text) USING inplace', 'INSERT INTO t SELECT i, words(i, 9000) FROM generate_series(1, 5) i', q(UPDATE t SET doc = overlay(doc placing 'x' from 9000 for 1)),
		q(DELETE FROM t WHERE id = 2), 'VACUUM t', q(SELECT count(*), bool_and(doc = overlay(words(id, 9000) placing 'x' from 9000 for 1)), (SELECT count(*) FROM inplace_check('t')) FROM t)),
	'4|t|0', 'a temporary table');
my $file = PostgreSQL::Test::Utils::tempdir() . '/copied';
is( sql("COPY v TO '$file'", 'BEGIN', 'CREATE TABLE f (id int, doc text) USING inplace', "COPY f FROM '$file' (FREEZE)", 'COMMIT', q(SELECT count(*), (SELECT sum(hashtextextended(doc, id)) FROM v) = sum(hashtextextended(doc, id)) FROM f)),
	'7|t', 'COPY FREEZE');
like(answer("VACUUM FULL " . toast_of('v')), qr/ERROR:  0A000: cannot rewrite the TOAST table of an inplace table/, 'a TOAST table is not rewritten by itself');
sql('REINDEX TABLE ' . toast_of('v'), 'REINDEX TABLE CONCURRENTLY v');
sql('CREATE TABLE many (id int, c1 text, c2 text, c3 text, c4 text, c5 text, c6 text) USING inplace WITH (toast_tuple_target = 128)',
	(map { "ALTER TABLE many ALTER c$_ SET STORAGE external" } 1 .. 6),
	q(INSERT INTO many SELECT i, noise(i, 3), noise(i, 4), noise(i, 5), noise(i, 6), noise(i, 7), noise(i, 8) FROM generate_series(1, 500) i),
	q(UPDATE many SET c2 = c3, c3 = c2, c4 = NULL WHERE id % 2 = 0));
is(sql('SELECT count(*) FROM many WHERE (c1, c2, c3) IS DISTINCT FROM (noise(id, 3), noise(id, CASE id % 2 WHEN 0 THEN 5 ELSE 4 END), noise(id, CASE id % 2 WHEN 0 THEN 4 ELSE 5 END))'), 0, 'many small values');
sound('many small values', 'many', 'u', 'f');

# A dropped column's values belong to their rows until these change.
sql(q(CREATE TABLE dropped (id int, doc text, other text) USING inplace), 'INSERT INTO dropped SELECT i, noise(i, 1000), noise(-i, 1000) FROM generate_series(1, 4) i', 'ALTER TABLE dropped DROP COLUMN doc');
sound('dropped column', 'dropped');
sql('UPDATE dropped SET id = -id WHERE id > 2');
is(sql('SELECT live_values FROM inplace_toast_stats(\'dropped\')'), 6, 'and go with the next change');
sound('dropped column', 'dropped');

# Readers of a TOAST table leave it to VACUUM to find its room.
sql(q(CREATE TABLE read_toast (id int, doc text) USING inplace), 'INSERT INTO read_toast SELECT i, noise(i, 2000) FROM generate_series(1, 20) i', 'INSERT INTO read_toast SELECT 21, noise(21, 2000)', 'VACUUM read_toast',
	'DELETE FROM read_toast WHERE id <= 20');
sql('SELECT count(*) FROM ' . toast_of('read_toast')) for 1 .. 2;
sql('VACUUM read_toast');
{
	my $before = pages_of(toast_of('read_toast'));
	sql('INSERT INTO read_toast SELECT i, noise(i, 2000) FROM generate_series(1, 20) i');
	is(pages_of(toast_of('read_toast')), $before, 'room of pages that a reader has pruned');
}

# The statement finds a TOAST table of another kind: one that an earlier version has made.
{
	sql('CREATE TABLE older (id int, doc text) USING inplace', 'CREATE TABLE of_heap (doc text) USING heap', q(UPDATE pg_class SET reltoastrelid = (SELECT reltoastrelid FROM pg_class WHERE relname = 'of_heap') WHERE relname = 'older'));
	like(answer(q(INSERT INTO older VALUES (1, noise(1, 1000)))), qr/ERROR:  0A000: TOAST table of relation "older" is not an inplace table.*HINT/s, 'a TOAST table of before is refused');
	is(stats('older', 'live_values'), 0, 'and not looked into');
	sql(q(UPDATE pg_class SET reltoastrelid = 0 WHERE relname = 'older'), 'DROP TABLE older');
	# a pointer that leads elsewhere
	my $toast = sql(q(SELECT reltoastrelid FROM pg_class WHERE relname = 'packed'));
	like(sql(q(SELECT contents FROM packed p, inplace_versions('packed', p.ctid) LIMIT 1)), qr/<TOAST value \d+: \d+ bytes in \d+ blocks>/, 'a value is described');
	sql(q(UPDATE pg_class SET reltoastrelid = 0 WHERE relname = 'packed'));
	like(sql(q(SELECT contents FROM packed p, inplace_versions('packed', p.ctid) LIMIT 1)), qr/<TOAST value \d+: not in the table's TOAST table>/, 'one that is elsewhere is not looked at');
	sql("UPDATE pg_class SET reltoastrelid = $toast WHERE relname = 'packed'");
}

# A list of one block, which no value has.
{
	sql('CREATE TABLE one_block (id int, doc text) USING inplace', 'ALTER TABLE one_block ALTER doc SET STORAGE external', 'INSERT INTO one_block VALUES (1, noise(1, 400))',
		'CREATE TABLE of_one_block (id int, doc text) USING inplace', 'ALTER TABLE of_one_block ALTER doc SET STORAGE external');
	my ($n, $size) = (stats('one_block', 'blocks'), 400 * 32);
	my $changed = 0;
	change_file($primary, toast_of('one_block'), sub {
		my ($bytes) = @_;
		my $at = index $$bytes, pack('L<L<L<', $size, $n, 11);
		return if $at < 0;
		substr($$bytes, $at + 4, 4) = pack 'L<', 1;
		substr($$bytes, $at + 16, 2) = pack 'S<', $size;
		substr($$bytes, $at - 5, 4) = pack 'L<', unpack('L<', substr $$bytes, $at - 5, 4) - 4 * 6 * ($n - 1);
		$changed = 1;
	});
	ok($changed, "a head of $n blocks is changed");
	like(answer($_), qr/ERROR:  XX001: could not read TOAST value \d+ of relation "\w+": number of blocks is wrong/, "$_: an error")
	  foreach 'SELECT length(doc || $$$$) FROM one_block', 'INSERT INTO of_one_block TABLE one_block', 'VACUUM FULL one_block';
	like(sql(q(SELECT contents FROM one_block o, inplace_versions('one_block', o.ctid))), qr/<TOAST value \d+: number of blocks is wrong>/, 'inplace_versions says it, too');
	isnt(sql(q(SELECT count(*) FROM inplace_check('one_block'))), 0, 'and inplace_check');
}

# ---- logical decoding -----------------------------------------------------------------------

SKIP:
{
	skip 'no test_decoding', 1 if !sql(q(SELECT count(*) FROM pg_ls_dir((SELECT setting FROM pg_config WHERE name = 'PKGLIBDIR')) f WHERE f = 'test_decoding.so'));
	$primary->append_conf('postgresql.conf', 'wal_level = logical');
	$primary->restart;
	foreach my $am ('heap', 'inplace')
	{
		sql("CREATE TABLE decoded_$am (id int PRIMARY KEY, doc text, other text) USING $am", "ALTER TABLE decoded_$am ALTER other SET STORAGE external");
	}
	sql(q(SELECT pg_create_logical_replication_slot('s', 'test_decoding')));
	my %seen;
	foreach my $am ('heap', 'inplace')
	{
		my $t = "decoded_$am";
		sql(q(BEGIN), "INSERT INTO $t SELECT i, words(i, 9000), noise(i, 2000) FROM generate_series(1, 4) i", "UPDATE $t SET doc = overlay(doc placing 'x' from 9000 for 1)",
			'SAVEPOINT a', "UPDATE $t SET doc = 'no'", 'ROLLBACK TO a', "UPDATE $t SET id = id + 10", 'COMMIT', "UPDATE $t SET other = other || 'end' WHERE id = 12",
			"INSERT INTO $t VALUES (13, words(1, 5000), NULL) ON CONFLICT (id) DO UPDATE SET doc = excluded.doc", "ALTER TABLE $t REPLICA IDENTITY FULL",
			"UPDATE $t SET doc = left(doc, 20000) WHERE id = 11", "DELETE FROM $t WHERE id = 14");
		$seen{$am} = sql(q(SELECT data FROM pg_logical_slot_get_changes('s', NULL, NULL, 'skip-empty-xacts', '1', 'include-xids', '0'))) =~ s/decoded_$am/decoded/gr;
	}
	is($seen{inplace}, $seen{heap}, 'decoding gives what it gives for heap');
	# two tables get their first large values in one transaction, at the same addresses
	sql('CREATE TABLE one (id int PRIMARY KEY) USING inplace', 'CREATE TABLE two (id int PRIMARY KEY) USING inplace', 'INSERT INTO one SELECT generate_series(1, 3)', 'INSERT INTO two SELECT generate_series(1, 3)');
	sql('BEGIN', q(ALTER TABLE one ADD COLUMN d text DEFAULT noise((random() * 1000)::int, 1000)), q(ALTER TABLE two ADD COLUMN d text DEFAULT noise((random() * 1000)::int, 1000)),
		'INSERT INTO two VALUES (4, noise(4, 1000))', 'COMMIT');
	is(sql(q(SELECT count(*) FROM pg_logical_slot_get_changes('s', NULL, NULL, 'skip-empty-xacts', '1', 'include-xids', '0') c WHERE data LIKE 'table public.two: INSERT: id[integer]:4%')), 1,
		'decoding of two tables that are rewritten');
	cmp_ok(length $seen{inplace}, '>', 500_000, 'and these are whole values');
	sql(q(SELECT pg_drop_replication_slot('s')));
	sound('decoded', 'decoded_inplace');
}

# ---- crash and damage ------------------------------------------------------------------------

sql('CHECKPOINT', q(UPDATE v SET doc = doc || 'before the crash'));
$first = sql($sum);
$primary->stop('immediate');
$primary->start;
is(sql($sum), $first, 'after a crash');
is(sql('SELECT count(*) FROM u'), 0, 'the unlogged table is empty');
sql('INSERT INTO u SELECT i, words(i, 9000) FROM generate_series(1, 5) i');
sound('after a crash', 'v', 'docs', 'u');

# Bytes anywhere: a damaged value is an error that names it, or wrong bytes, which nothing tells from right ones.
{
	sql('CREATE TABLE bad (id int PRIMARY KEY, doc text) USING inplace', 'INSERT INTO bad SELECT i, words(i, 3000) FROM generate_series(1, 30) i', 'UPDATE bad SET id = id', 'VACUUM bad');
	my ($errors, $others) = (0, 0);
	foreach my $round (1 .. rounds(6))
	{
		change_file($primary, toast_of('bad'), sub {
			my ($bytes) = @_;
			foreach (1 .. 12)
			{
				my $at = random_between(0, length($$bytes) - 1);
				substr($$bytes, $at, 1) = chr random_between(0, 255);
			}
		});
		my $said = answer(q(DO $$ DECLARE n int; BEGIN FOR i IN 1 .. 30 LOOP
			BEGIN
				SELECT length(doc) + length(substr(doc, 9000, 100)) INTO n FROM bad WHERE id = i;
			EXCEPTION WHEN data_corrupted OR internal_error THEN RAISE NOTICE '% %', SQLSTATE, SQLERRM;
			END;
			BEGIN
				UPDATE bad SET doc = overlay(doc placing 'y' from 100 for 1) WHERE id = i;
			EXCEPTION WHEN data_corrupted OR internal_error THEN
				RAISE NOTICE '% %', SQLSTATE, SQLERRM;
				UPDATE bad SET doc = words(i, 3000) WHERE id = i;
			END;
		END LOOP; END $$));
		$errors++ while $said =~ /could not read TOAST value \d+ of relation/g;
		$others++ while $said =~ /^ERROR/mg;
		sql(q(SELECT count(*) FROM inplace_check('bad')));
	}
	cmp_ok($errors, '>', 0, "damage of a value is an error that names it: $errors");
	is($others, 0, 'and a new value can always take its place') or diag(answer(q(SELECT * FROM inplace_check('bad'))));
	is($primary->psql('postgres', 'SELECT 1'), 0, 'the server goes on');
}
done_testing();
