# REPLICA IDENTITY FULL without a key: from 16 on the subscriber looks for the row in an index.  An index entry may lead
# to a row whose columns have changed in place since, to one that was put back, or to one of several that are equal.
# A heap subscriber says what is right.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

test_seed();

my $publisher = PostgreSQL::Test::Cluster->new('publisher');
$publisher->init(allows_streaming => 'logical');
$publisher->append_conf('postgresql.conf', 'autovacuum = off');
$publisher->start;
my $version = $publisher->safe_psql('postgres', 'SHOW server_version_num');
plan skip_all => 'an index is not used for that before PostgreSQL 16' if $version < 160000;

my $subscriber = new_cluster('subscriber', conf => "autovacuum = off\nwal_retrieve_retry_interval = 100ms\nmax_prepared_transactions = 2");
$subscriber->safe_psql('postgres', 'CREATE DATABASE heap');

# name => [columns, the subscriber's index]
my %tables = (
	plain   => [ 'n int, id int, body text', 'btree (id)' ],
	many    => [ 'n int, id int, body text', 'btree (body)' ],
	two     => [ 'n int, id int, body text', 'btree (n, id)' ],
	nulls   => [ 'n int, id int, body text', 'btree (id)' ],
	toasted => [ 'n int, id int, body text', 'btree (id)' ],
	bare    => [ 'n int, id int, body text', '' ],
	types   => [ 'n int, id numeric, body text, a int[], r int4range', 'btree (id)' ]);
$tables{hashed} = [ 'n int, id int, body text', 'hash (id)' ] if $version >= 170000;

foreach my $table (sort keys %tables)
{
	my ($columns, $index) = @{ $tables{$table} };
	my $other_order = join ', ', reverse split /, /, $columns;
	$publisher->safe_psql('postgres', "CREATE TABLE $table ($columns); ALTER TABLE $table REPLICA IDENTITY FULL");
	foreach my $db ('postgres', 'heap')
	{
		my $am = $db eq 'heap' ? 'heap' : 'inplace';
		# With a fillfactor, rows that grow stay on their page.
		$subscriber->safe_psql($db, "CREATE TABLE $table ($other_order) USING $am WITH (fillfactor = 80)");
		$subscriber->safe_psql($db, "CREATE INDEX ${table}_i ON $table USING $index") if $index;
	}
}
$publisher->safe_psql('postgres', q{
	INSERT INTO plain SELECT 0, i, 'b' || i FROM generate_series(1, 2000) i;
	INSERT INTO bare SELECT 0, i, 'b' || i FROM generate_series(1, 100) i;
	INSERT INTO many SELECT i % 5, i / 20, 'b' || i % 4 FROM generate_series(1, 400) i;
	INSERT INTO two SELECT i % 7, i, 'b' FROM generate_series(1, 1000) i;
	INSERT INTO nulls SELECT nullif(i % 3, 0), nullif(i % 4, 0), nullif('b' || i % 5, 'b0') FROM generate_series(1, 300) i;
	INSERT INTO toasted SELECT 0, i, (SELECT string_agg(md5((i + g)::text), '') FROM generate_series(1, 200) g) FROM generate_series(1, 30) i;
	INSERT INTO types SELECT 0, i / 10.0, 'b', ARRAY[i, NULL], int4range(i, i + 5) FROM generate_series(1, 200) i;
	CREATE PUBLICATION pub FOR ALL TABLES});
$publisher->safe_psql('postgres', q{INSERT INTO hashed SELECT 0, i, 'b' || i FROM generate_series(1, 500) i}) if $tables{hashed};

my $connect = $publisher->connstr('postgres') =~ s/'/''/gr;
$subscriber->safe_psql($_, "CREATE SUBSCRIPTION sub_$_ CONNECTION '$connect' PUBLICATION pub") foreach 'postgres', 'heap';

sub all_same
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	foreach my $db ('postgres', 'heap')
	{
		$subscriber->poll_query_until($db, "SELECT count(*) = 0 FROM pg_subscription_rel WHERE srsubstate <> 'r'") or die;
		$publisher->wait_for_catchup("sub_$db");
	}
	my $query = join ' UNION ALL ', map {
		my $columns = $_ eq 'types' ? 'n, id, body, a, r' : 'n, id, body';
		"SELECT '$_', count(*), md5(string_agg(x::text, ',' ORDER BY x::text)) FROM (SELECT $columns FROM $_) x"
	} sort keys %tables;
	my $want = $publisher->safe_psql('postgres', $query);
	is($subscriber->safe_psql('heap', $query), $want, "$name: heap subscriber");
	is($subscriber->safe_psql('postgres', $query), $want, "$name: inplace subscriber");
	return;
}
all_same('initial sync');

# Statements for each table, in which T stands for it.
sub everywhere { my ($sql) = @_; $publisher->safe_psql('postgres', join '; ', map { $sql =~ s/\bT\b/$_/gr } sort keys %tables); return; }

# Columns beside the index, then the indexed ones, forth and back: entries of all ages lead to the rows.
everywhere('UPDATE T SET n = n + 1 WHERE id % 3 = 0');
everywhere(q{UPDATE T SET body = body || 'longer and longer' WHERE id % 5 = 0});
everywhere('UPDATE T SET id = id + 10000 WHERE id % 7 = 0');
everywhere('UPDATE T SET id = id - 10000, n = n + 1 WHERE id > 9999');
everywhere(q{UPDATE T SET body = left(body, 2) WHERE id % 10 = 0});
all_same('updates');

# One of several equal rows, whichever it is; rows that differ in a column beside the index only.
foreach my $table (sort keys %tables)
{
	$publisher->safe_psql('postgres', qq{
		INSERT INTO $table (n, id, body) SELECT 1, 50001, 'equal' FROM generate_series(1, 20);
		INSERT INTO $table (n, id, body) SELECT i, 50002, 'equal but for n' FROM generate_series(1, 20) i;
		UPDATE $table SET n = 2 WHERE ctid IN (SELECT ctid FROM $table WHERE id = 50001 LIMIT 7);
		DELETE FROM $table WHERE ctid IN (SELECT ctid FROM $table WHERE id = 50001 AND n = 1 LIMIT 5);
		UPDATE $table SET body = 'only this one' WHERE id = 50002 AND n = 13;
		DELETE FROM $table WHERE id = 50002 AND n IN (1, 20);
		UPDATE $table SET n = NULL WHERE id = 50002 AND n = 2;
		UPDATE $table SET body = NULL WHERE id = 50002 AND n IS NULL;
		DELETE FROM $table WHERE id = 50002 AND n IS NULL});
}
all_same('equal rows');

# Within a transaction: deleted and back, moved twice, with savepoints that are given up.
foreach my $table (sort keys %tables)
{
	$publisher->safe_psql('postgres', qq{
		BEGIN;
		DELETE FROM $table WHERE id = 50001;
		INSERT INTO $table (n, id, body) VALUES (1, 50001, 'back'), (2, 50001, 'back');
		SAVEPOINT a;
		UPDATE $table SET id = 50003 WHERE id = 50001;
		ROLLBACK TO a;
		UPDATE $table SET id = 50004, n = 5 WHERE id = 50001 AND n = 1;
		UPDATE $table SET n = 6 WHERE id = 50004;
		UPDATE $table SET id = 50001 WHERE id = 50004;
		DELETE FROM $table WHERE id = 50001 AND n = 2;
		COMMIT});
}
all_same('one transaction');

# What the subscriber's own clients leave: changes that are rolled back, and one that the subscription has to wait for.
foreach my $db ('postgres', 'heap')
{
	$subscriber->safe_psql($db, join '; ', map { "BEGIN; UPDATE $_ SET id = id + 70000, n = -1; DELETE FROM $_ WHERE n = -1; ROLLBACK" } sort keys %tables);
}
everywhere('UPDATE T SET n = n + 1 WHERE id % 2 = 0');
all_same('over what was rolled back');
foreach my $end ('ROLLBACK', 'COMMIT')
{
	my %client = map { $_ => $subscriber->background_psql($_) } 'postgres', 'heap';
	$client{$_}->query_safe('BEGIN; UPDATE plain SET id = 80001 WHERE id = 12; DELETE FROM plain WHERE id = 13') foreach keys %client;
	$publisher->safe_psql('postgres', q{UPDATE plain SET n = 4711 WHERE id = 12; DELETE FROM plain WHERE id = 13; UPDATE plain SET n = 4712 WHERE id = 16});
	$subscriber->poll_query_until($_, "SELECT count(*) > 0 FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT granted AND locktype = 'transactionid' AND datname = '$_'") or die
	  foreach keys %client;
	$client{$_}->query_safe($end) foreach keys %client;
	$client{$_}->quit foreach keys %client;
	$publisher->wait_for_catchup("sub_$_") foreach keys %client;
	my $rows = 'SELECT string_agg(format(\'%s %s\', id, n), \', \' ORDER BY id) FROM plain WHERE id IN (12, 13, 16, 80001)';
	is($subscriber->safe_psql('postgres', $rows), $subscriber->safe_psql('heap', $rows), "after a $end of what was waited for: as in heap");
	# The second round begins with the same rows.
	if ($end eq 'ROLLBACK')
	{
		$publisher->safe_psql('postgres', q{INSERT INTO plain VALUES (0, 13, 'b13')});
		all_same('after the ROLLBACK');
	}
}

# The client has changed a column that no index has, so in place, or is about to: what the subscription looks for is the version before, the one that
# the client has made, or one between.  [ the publisher's body; what the client begins with; ends ]
my @waits = (
	[ 'a', "UPDATE T SET body = 'client' ID", 'ROLLBACK', 'COMMIT' ],
	[ 'b', "UPDATE T SET body = 'b' ID", 'ROLLBACK', 'COMMIT' ],
	[ 'a', "UPDATE T SET body = 'client' ID; SAVEPOINT s; DELETE FROM T ID", 'ROLLBACK', 'ROLLBACK TO s; COMMIT', 'COMMIT' ],
	[ 'b', "UPDATE T SET body = 'b' ID; SAVEPOINT s; DELETE FROM T ID", 'ROLLBACK TO s; COMMIT' ],
	[ 'b', "UPDATE T SET body = 'b' ID; SAVEPOINT s; UPDATE T SET body = 'c' ID", 'ROLLBACK', 'ROLLBACK TO s; COMMIT', 'COMMIT' ],
	[ 'b', "UPDATE T SET body = 'b' ID; UPDATE T SET body = 'c' ID; UPDATE T SET body = 'd' ID; SAVEPOINT s; UPDATE T SET body = 'e' ID", 'ROLLBACK TO s; COMMIT' ],
	[ 'b', "UPDATE T SET body = 'c' ID; SAVEPOINT s; UPDATE T SET body = 'd' ID; ROLLBACK TO s; UPDATE T SET body = 'b' ID; SAVEPOINT s; UPDATE T SET body = 'e' ID", 'ROLLBACK TO s; COMMIT' ],
	[ 'a', 'SELECT FROM T ID FOR UPDATE', "UPDATE T SET body = 'client' ID; COMMIT", 'UPDATE T SET n = 5 ID; COMMIT', 'DELETE FROM T ID; COMMIT', 'UPDATE T SET n = 5 ID; ROLLBACK', 'COMMIT' ]);
my $sought = 0;
foreach my $table ('plain', 'bare')
{
	foreach my $wait (@waits)
	{
		my ($published, $begin, @ends) = @$wait;
		foreach my $end (@ends)
		{
			waits_as_heap($table, $published, $begin, $end);
		}
	}
}

sub waits_as_heap
{
	my ($table, $published, $begin, $end) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $id = 90000 + ++$sought;
	my $name = "$table, publisher has $published: $begin; $end";
	s/\bT\b/$table/g, s/\bID\b/WHERE id = $id/g foreach $begin, $end;
	$publisher->safe_psql('postgres', qq{INSERT INTO $table VALUES (0, $id, 'a')});
	$publisher->wait_for_catchup("sub_$_") foreach 'postgres', 'heap';
	my %client = map { $_ => $subscriber->background_psql($_) } 'postgres', 'heap';
	if ($published ne 'a')
	{
		# without the subscription
		$publisher->safe_psql('postgres', qq{ALTER PUBLICATION pub SET (publish = 'insert'); UPDATE $table SET body = '$published' WHERE id = $id; ALTER PUBLICATION pub SET (publish = 'insert, update, delete')});
		$publisher->wait_for_catchup("sub_$_") foreach 'postgres', 'heap';
	}
	$client{$_}->query_safe("BEGIN; $begin") foreach keys %client;
	$publisher->safe_psql('postgres', "UPDATE $table SET n = 1 WHERE id = $id");
	foreach my $db (keys %client)
	{
		ok($subscriber->poll_query_until($db, "SELECT count(*) > 0 FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT granted AND locktype = 'transactionid' AND datname = '$db'"),
			"$db: $name: waits");
	}
	$client{$_}->query_safe($end) foreach keys %client;
	$client{$_}->quit foreach keys %client;
	$publisher->wait_for_catchup("sub_$_") foreach 'postgres', 'heap';
	my $rows = "SELECT format('%s %s', n, body) FROM $table WHERE id = $id";
	is($subscriber->safe_psql('postgres', $rows), $subscriber->safe_psql('heap', $rows), "$name: as in heap");
	$_->safe_psql('postgres', "DELETE FROM $table WHERE id = $id") foreach $publisher, $subscriber;
	$subscriber->safe_psql('heap', "DELETE FROM $table WHERE id = $id");
	return;
}

# VACUUM removes what the index led to.
$subscriber->safe_psql($_, 'DELETE FROM plain WHERE id IN (12, 13, 80001); VACUUM') foreach 'postgres', 'heap';
$publisher->safe_psql('postgres', 'DELETE FROM plain WHERE id IN (12, 13, 80001)');
everywhere('UPDATE T SET id = id + 1 WHERE id % 11 = 0');
everywhere('DELETE FROM T WHERE id % 4 = 0');
all_same('in the end');

foreach my $table (grep { $tables{$_}[1] } sort keys %tables)
{
	cmp_ok($subscriber->safe_psql('postgres', "SELECT pg_stat_get_numscans('${table}_i'::regclass)"),
		'>', 50, "the index of $table was used");
}
tables_ok($subscriber, 'subscriber', sort keys %tables);

# A client's change comes between the look at the row and its lock, and the subscription's snapshot is newer than that.  The subscription
# waits there because the client has locked the TOAST table, which it needs to compare a long value.
my $long = q{(SELECT string_agg(md5(g::text), '') FROM generate_series(1, 200) g)};
foreach my $isolation ('read committed', 'repeatable read')
{
	my %got;
	foreach my $db ('postgres', 'heap')
	{
		$subscriber->safe_psql($db, "ALTER SUBSCRIPTION sub_$db DISABLE; ALTER DATABASE $db SET default_transaction_isolation = '$isolation'");
		$subscriber->poll_query_until($db, "SELECT count(*) = 0 FROM pg_stat_subscription WHERE subname = 'sub_$db' AND pid IS NOT NULL");
		$subscriber->safe_psql($db, "ALTER SUBSCRIPTION sub_$db ENABLE");
	}
	$publisher->safe_psql('postgres', "INSERT INTO toasted VALUES (0, 95000, $long), (0, 95001, $long)");
	$publisher->wait_for_catchup("sub_$_") foreach 'postgres', 'heap';
	foreach my $db ('postgres', 'heap')
	{
		my $id = $db eq 'heap' ? 95000 : 95001;
		my $toast = $subscriber->safe_psql($db, q{SELECT t.relname FROM pg_class t JOIN pg_class c ON t.oid = c.reltoastrelid WHERE c.oid = 'toasted'::regclass});
		my $client = $subscriber->background_psql($db);
		$client->query_safe("SET allow_system_table_mods = on; BEGIN; ALTER TABLE pg_toast.$toast RENAME TO locked; ALTER TABLE pg_toast.locked RENAME TO $toast");
		$publisher->safe_psql('postgres', "UPDATE toasted SET n = 1 WHERE id = $id");
		ok($subscriber->poll_query_until($db, "SELECT count(*) = 1 FROM pg_locks WHERE NOT granted AND relation = 'pg_toast.$toast'::regclass"), "$isolation, $db: the subscription waits");
		$client->query_safe("UPDATE toasted SET body = 'client' WHERE id = $id; COMMIT");
		$client->quit;
		$publisher->wait_for_catchup("sub_$db");
		$got{$db} = $subscriber->safe_psql($db, "SELECT n, body FROM toasted WHERE id = $id");
	}
	is($got{postgres}, $got{heap}, "$isolation: a change after the look: as in heap");
	$_->safe_psql('postgres', 'DELETE FROM toasted WHERE id >= 95000') foreach $publisher, $subscriber;
	$subscriber->safe_psql('heap', 'DELETE FROM toasted WHERE id >= 95000');
}
log_ok($subscriber, 'subscriber', 0);

# Undo that is gone is an error, not a reason to look for ever.  The running change has its record on an undo page.  The subscription does
# not look at the table that takes the damaged one's place.
foreach my $table ('plain', 'bare')
{
	$publisher->safe_psql('postgres', qq{INSERT INTO $table VALUES (0, 96000, 'a')});
	$publisher->wait_for_catchup('sub_postgres');
	$subscriber->safe_psql('postgres', "SET inplace.debug_undo_at_home = off; BEGIN; UPDATE $table SET body = 'client' WHERE id = 96000; PREPARE TRANSACTION '$table'");
	my $slot = $subscriber->safe_psql('postgres', "SELECT max(current) FROM inplace_undo_rings('$table')");
	my $offset = -s $subscriber->logfile;
	is(change_pages($subscriber, $table, sub { my ($page, $block) = @_; return $block == $slot ? "\0" x 8192 : undef; }), 1, "$table: an undo page is gone");
	$publisher->safe_psql('postgres', "UPDATE $table SET n = 1 WHERE id = 96000");
	$subscriber->wait_for_log(qr/undo record .* is missing/, $offset);
	ok(1, "$table: apply gives up");
	$subscriber->safe_psql('postgres', "ROLLBACK PREPARED '$table'; DROP TABLE $table; CREATE TABLE $table (n int, id int, body text)");
}

done_testing();
