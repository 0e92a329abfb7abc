# The two workloads that the crash and standby tests share.
#
# "bank": TPC-B on inplace tables, and a journal of transactions that clients
# have seen committed.  "twins": every change is made to an inplace table and, in
# the same transaction, to a heap table, which then says what the inplace table
# must contain, whatever the crash did.
package InplaceLoad;

use strict;
use warnings;

use Exporter 'import';
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(
  @bank_tables
  create_bank
  bank_scripts
  journal_scripts
  bank_ok
  journal_ok
  @twin_tables
  create_twins
  twin_scripts
  twin_check_script
  twins_ok
);

# ---- bank ----------------------------------------------------------------------

our @bank_tables = qw(branch teller account history journal counter);

my $branches = 2;
my $tellers  = 20;
my $accounts = 40_000;

sub create_bank
{
	my ($node) = @_;
	$node->safe_psql(
		'postgres', qq(
CREATE TABLE branch (bid int PRIMARY KEY, balance bigint NOT NULL, filler text) USING inplace;
CREATE TABLE teller (tid int PRIMARY KEY, bid int NOT NULL, balance bigint NOT NULL, filler text) USING inplace;
CREATE TABLE account (aid int PRIMARY KEY, bid int NOT NULL, balance bigint NOT NULL, filler char(60)) USING inplace;
CREATE TABLE history (tid int, bid int, aid int NOT NULL, delta bigint, at timestamp, filler char(22)) USING inplace;
CREATE INDEX ON history (aid);
INSERT INTO branch SELECT i, 0 FROM generate_series(1, $branches) i;
INSERT INTO teller SELECT i, 1 + i % $branches, 0 FROM generate_series(1, $tellers) i;
INSERT INTO account SELECT i, 1 + i % $branches, 0, '' FROM generate_series(1, $accounts) i;

CREATE TABLE journal (round int, client int, n int, PRIMARY KEY (round, client, n)) USING inplace;
CREATE TABLE counter (client int PRIMARY KEY, total bigint NOT NULL) USING inplace;
INSERT INTO counter SELECT i, 0 FROM generate_series(0, 9) i;
));
	return;
}

sub bank_scripts
{
	return [
		"\\set aid random(1, $accounts)
\\set bid random(1, $branches)
\\set tid random(1, $tellers)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE account SET balance = balance + :delta WHERE aid = :aid;
SELECT balance FROM account WHERE aid = :aid;
UPDATE teller SET balance = balance + :delta WHERE tid = :tid;
UPDATE branch SET balance = balance + :delta WHERE bid = :bid;
INSERT INTO history VALUES (:tid, :bid, :aid, :delta, now());
COMMIT;
", 1 ];
}

# Needs -D round=N -D n=0.  A client's n counts its transactions of this run, as
# pgbench's log does.
sub journal_scripts
{
	return [ '\set n :n + 1
BEGIN;
INSERT INTO journal VALUES (:round, :client_id, :n);
UPDATE counter SET total = total + 1 WHERE client = :client_id;
COMMIT;
', 1 ];
}

sub bank_ok
{
	my ($node, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my $sums = $node->safe_psql(
		'postgres', qq(
SELECT (SELECT sum(balance) FROM account), (SELECT sum(balance) FROM teller),
	(SELECT sum(balance) FROM branch), (SELECT coalesce(sum(delta), 0) FROM history)));
	my ($first, @others) = split /\|/, $sums;
	ok((!grep { $_ ne $first } @others), "$name: all balances agree")
	  or diag("account, teller, branch, history: $sums");

	is( $node->safe_psql(
			'postgres',
			'SELECT count(*), count(DISTINCT aid) FROM account'),
		"$accounts|$accounts",
		"$name: no account lost or doubled");

	# Per account, which a sum over all of them could hide.
	is( $node->safe_psql(
			'postgres', qq(
SELECT count(*) FROM account a LEFT JOIN
	(SELECT aid, sum(delta) AS delta FROM history GROUP BY aid) h USING (aid)
WHERE a.balance <> coalesce(h.delta, 0))),
		'0',
		"$name: each account has the sum of its history");
	return;
}

# No confirmed transaction is lost, none is there by half.
sub journal_ok
{
	my ($node, $name, $round, $confirmed) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my %found = map { (split /\|/)[ 0, 1 ] } split /\n/,
	  $node->safe_psql('postgres',
		"SELECT client, max(n) FROM journal WHERE round = $round GROUP BY client"
	  );
	# A client may have died between the server's commit and its own log line.
	my @lost = grep {
		my $there = $found{$_} // 0;
		$there != $confirmed->{$_} && $there != $confirmed->{$_} + 1
	} keys %$confirmed;
	is(scalar(@lost), 0, "$name: every confirmed transaction is there, no other");
	diag("client $_: $confirmed->{$_} confirmed, last one found: "
		  . ($found{$_} // 'none'))
	  foreach @lost;

	my $gaps = $node->safe_psql(
		'postgres', q(
SELECT format('round %s client %s: %s rows up to %s', round, client, count(*), max(n))
FROM journal GROUP BY round, client HAVING count(*) <> max(n)));
	is($gaps, '', "$name: journal has no gap");

	my $halves = $node->safe_psql(
		'postgres', q(
SELECT format('client %s: counter %s, journal %s', client, total, count(n))
FROM counter LEFT JOIN journal USING (client)
GROUP BY client, total HAVING total <> count(n)));
	is($halves, '', "$name: no transaction is there by half");
	return;
}

# ---- twins ---------------------------------------------------------------------

our @twin_tables = qw(i_acc i_doc i_bulk);

my $twin_rows = 1500;

# What COPY reads, once create_twins has made it.
my $bulk_file;

sub create_twins
{
	my ($node) = @_;

	$bulk_file = PostgreSQL::Test::Utils::tempdir('bulk') . '/rows';
	append_to_file($bulk_file,
		join '', map { "$_\t" . 'b' x ($_ % 60) . "\n" } 1 .. 300);
	$node->safe_psql(
		'postgres', qq{
-- acc: small rows, changed in every way.  Rows 0 to 9 are never deleted: they
-- take the balance of deleted ones, so that the sum is constant.
CREATE TABLE i_acc (id int PRIMARY KEY, bal bigint NOT NULL, grp int NOT NULL, note text) USING inplace;
CREATE INDEX ON i_acc (grp);
CREATE INDEX ON i_acc (left(note, 5)) WHERE bal > 1000;
CREATE TABLE h_acc (LIKE i_acc INCLUDING ALL) USING heap;
INSERT INTO i_acc SELECT i, 1000, i % 20, repeat('n', i % 50) FROM generate_series(0, $twin_rows - 1) i;
INSERT INTO h_acc TABLE i_acc;

-- doc: rows from empty to toasted.
CREATE TABLE i_doc (id int PRIMARY KEY, ver int, body text, tags text[]) USING inplace;
CREATE TABLE h_doc (LIKE i_doc INCLUDING ALL) USING heap;

-- bulk: rows that come and go by the hundred.
CREATE TABLE i_bulk (id int, body text, batch int NOT NULL DEFAULT pg_backend_pid() % 7) USING inplace;
CREATE INDEX ON i_bulk (id);
CREATE TABLE h_bulk (LIKE i_bulk INCLUDING ALL) USING heap;

CREATE SEQUENCE doc_id;

-- n * 32 bytes that do not compress
CREATE FUNCTION noise(seed int, n int) RETURNS text LANGUAGE sql AS
\$\$ SELECT coalesce(string_agg(md5(seed || '.' || g), ''), '') FROM generate_series(1, n) g \$\$;

CREATE FUNCTION changed(body text, r int) RETURNS text LANGUAGE sql AS
\$\$ SELECT CASE r % 5 WHEN 0 THEN left(body, 90000 - r % 3) WHEN 1 THEN substr(body, r % 700)
	WHEN 2 THEN overlay(body placing r::text from 1 + r % (1 + length(body)))
	ELSE body || noise(r, r % 300) END \$\$;

CREATE FUNCTION same_rows(what text, i bigint, h bigint) RETURNS void LANGUAGE plpgsql AS
\$\$ BEGIN
	IF i <> h THEN
		RAISE EXCEPTION 'twins differ: % changed % inplace rows, % heap rows', what, i, h;
	END IF;
END \$\$;

-- What must hold in every snapshot, on the primary and on a standby.
CREATE FUNCTION check_twins() RETURNS void LANGUAGE plpgsql AS
\$\$
DECLARE
	n bigint;
	what text;
	total numeric;
BEGIN
	SELECT sum(bal) INTO total FROM i_acc;
	IF total <> $twin_rows * 1000 THEN
		RAISE EXCEPTION 'twins differ: wrong sum %', total;
	END IF;
	FOREACH what IN ARRAY ARRAY['acc', 'doc', 'bulk'] LOOP
		EXECUTE format('SELECT count(*) FROM ((TABLE i_%1\$s EXCEPT ALL TABLE h_%1\$s) UNION ALL (TABLE h_%1\$s EXCEPT ALL TABLE i_%1\$s)) d',
			what) INTO n;
		IF n <> 0 THEN
			RAISE EXCEPTION 'twins differ: % in % rows', what, n;
		END IF;
	END LOOP;
END \$\$;

-- One step of a transaction: the same change to both twins.
--
-- Always the inplace row first: its lock then keeps others from the heap row, and
-- the heap table gets the change for exactly the rows that the inplace table
-- found, also at READ COMMITTED, where each statement has its own snapshot.
CREATE FUNCTION change(op int, k int, k2 int, r int) RETURNS void LANGUAGE plpgsql AS
\$\$
DECLARE
	ids int[];
	balances numeric;
	new_note text := substr(noise(r, 8), 1, r % 250);
	new_body text := CASE WHEN r % 3 = 0 THEN repeat(noise(r, 1), r % 40)
		ELSE noise(r, r % 130) END;
	n bigint;
BEGIN
	CASE op
	WHEN 0, 1 THEN				-- transfer
		IF r % 2 = 0 THEN
			PERFORM FROM i_acc WHERE id IN (k, k2) ORDER BY id FOR UPDATE;
		ELSE
			PERFORM FROM i_acc WHERE id IN (k, k2) ORDER BY id FOR NO KEY UPDATE;
		END IF;
		GET DIAGNOSTICS n = ROW_COUNT;
		IF n = 2 THEN
			UPDATE i_acc SET bal = bal - r WHERE id = k;
			UPDATE i_acc SET bal = bal + r WHERE id = k2;
			UPDATE h_acc SET bal = bal - r WHERE id = k;
			UPDATE h_acc SET bal = bal + r WHERE id = k2;
		END IF;
	WHEN 2 THEN					-- text that grows and shrinks
		UPDATE i_acc SET note = new_note WHERE id = k;
		IF FOUND THEN
			UPDATE h_acc SET note = new_note WHERE id = k;
			PERFORM same_rows('note', 1, FOUND::int);
		END IF;
	WHEN 3 THEN					-- indexed column
		UPDATE i_acc SET grp = r % 20 WHERE id = k;
		IF FOUND THEN
			UPDATE h_acc SET grp = r % 20 WHERE id = k;
			PERFORM same_rows('grp', 1, FOUND::int);
		END IF;
	WHEN 4 THEN					-- a range of rows
		WITH changed AS (
			UPDATE i_acc SET note = note || r, bal = bal
			WHERE id BETWEEN k AND k + r % 60 RETURNING id)
		SELECT array_agg(id) INTO ids FROM changed;
		UPDATE h_acc SET note = note || r, bal = bal WHERE id = ANY (ids);
		GET DIAGNOSTICS n = ROW_COUNT;
		PERFORM same_rows('range', coalesce(cardinality(ids), 0), n);
	WHEN 5 THEN					-- insert, perhaps onto a row that is there
		INSERT INTO i_acc VALUES (k, 0, k % 20, new_note) ON CONFLICT DO NOTHING;
		IF FOUND THEN
			INSERT INTO h_acc VALUES (k, 0, k % 20, new_note);
		END IF;
	WHEN 6 THEN					-- the same with an error and a subtransaction
		BEGIN
			INSERT INTO i_acc VALUES (k, 0, k % 20, new_note);
			INSERT INTO h_acc VALUES (k, 0, k % 20, new_note);
		EXCEPTION WHEN unique_violation THEN
			UPDATE i_acc SET note = NULL WHERE id = k;
			IF FOUND THEN
				UPDATE h_acc SET note = NULL WHERE id = k;
				PERFORM same_rows('null', 1, FOUND::int);
			END IF;
		END;
	WHEN 7 THEN					-- upsert
		INSERT INTO i_acc VALUES (k, 0, 7, new_note)
			ON CONFLICT (id) DO UPDATE SET note = excluded.note;
		INSERT INTO h_acc VALUES (k, 0, 7, new_note)
			ON CONFLICT (id) DO UPDATE SET note = excluded.note;
	WHEN 8 THEN					-- delete some, keep their money
		WITH gone AS (
			DELETE FROM i_acc WHERE id BETWEEN greatest(k, 10) AND k + r % 12
			RETURNING id, bal)
		SELECT array_agg(id), sum(bal) INTO ids, balances FROM gone;
		IF ids IS NOT NULL THEN
			DELETE FROM h_acc WHERE id = ANY (ids);
			GET DIAGNOSTICS n = ROW_COUNT;
			PERFORM same_rows('delete', cardinality(ids), n);
			UPDATE i_acc SET bal = bal + balances WHERE id = k % 10;
			UPDATE h_acc SET bal = bal + balances WHERE id = k % 10;
		END IF;
	WHEN 9 THEN					-- another key
		BEGIN
			UPDATE i_acc SET id = k2 WHERE id = k AND k >= 10;
			IF FOUND THEN
				UPDATE h_acc SET id = k2 WHERE id = k;
				PERFORM same_rows('key', 1, FOUND::int);
			END IF;
		EXCEPTION WHEN unique_violation THEN
			NULL;
		END;
	WHEN 10 THEN				-- locks
		BEGIN
			CASE r % 5
			WHEN 0 THEN PERFORM FROM i_acc WHERE id BETWEEN k AND k + 5 FOR KEY SHARE;
			WHEN 1 THEN PERFORM FROM i_acc WHERE id BETWEEN k AND k + 5 FOR SHARE;
			WHEN 2 THEN PERFORM FROM i_acc WHERE id BETWEEN k AND k + 5 FOR UPDATE SKIP LOCKED;
			WHEN 3 THEN PERFORM FROM i_acc WHERE id BETWEEN k AND k + 5 FOR UPDATE NOWAIT;
			ELSE PERFORM FROM i_acc WHERE grp = r % 20 FOR SHARE SKIP LOCKED;
			END CASE;
		EXCEPTION WHEN lock_not_available THEN
			NULL;
		END;
	WHEN 11, 12 THEN			-- documents
		n := nextval('doc_id');
		INSERT INTO i_doc VALUES (n, 0, new_body, '{}');
		INSERT INTO h_doc VALUES (n, 0, new_body, '{}');
	WHEN 13, 14 THEN
		UPDATE i_doc SET ver = ver + 1, body = new_body WHERE id = k2;
		IF FOUND THEN
			UPDATE h_doc SET ver = ver + 1, body = new_body WHERE id = k2;
			PERFORM same_rows('body', 1, FOUND::int);
		END IF;
	WHEN 15 THEN				-- a change beside a toasted value
		UPDATE i_doc SET tags = tags || r::text WHERE id = k2;
		IF FOUND THEN
			UPDATE h_doc SET tags = tags || r::text WHERE id = k2;
			PERFORM same_rows('tags', 1, FOUND::int);
		END IF;
	WHEN 16 THEN
		DELETE FROM i_doc WHERE id = k2;
		IF FOUND THEN
			DELETE FROM h_doc WHERE id = k2;
			PERFORM same_rows('doc delete', 1, FOUND::int);
		END IF;
	WHEN 17, 18 THEN			-- a change inside a toasted value
		UPDATE i_doc SET body = changed(body, r) WHERE id = k2;
		IF FOUND THEN
			UPDATE h_doc SET body = changed(body, r) WHERE id = k2;
			PERFORM same_rows('inside', 1, FOUND::int);
		END IF;
	END CASE;
END \$\$;
});
	return;
}

my $last_op = 18;

# Transactions of one to three changes; some at REPEATABLE READ, some with a
# savepoint that is rolled back or released, some rolled back at the end.
sub twin_scripts
{
	my $n      = $twin_rows * 1.3;
	my $change = "\\set op random(0, $last_op)
\\set k random(0, $n)
\\set k2 random(10, $n)
\\set r random(0, 1000000)
SELECT change(:op, :k, :k2, :r);
";
	my $transaction = "\\set isolation random(0, 2)
\\set savepoint random(0, 3)
\\set end random(0, 5)
\\if :isolation = 0
BEGIN ISOLATION LEVEL REPEATABLE READ;
\\else
BEGIN;
\\endif
$change
\\if :savepoint > 0
SAVEPOINT a;
$change
\\if :savepoint = 1
SAVEPOINT b;
$change
ROLLBACK TO a;
\\elif :savepoint = 2
ROLLBACK TO a;
\\else
RELEASE a;
\\endif
$change
\\endif
\\if :end = 0
ROLLBACK;
\\else
COMMIT;
\\endif
";
	# One at a time: all rows of a batch, found by two statements with their own
	# snapshots, have to be the same in both tables.
	my $bulk = "\\set what random(0, 9)
\\set end random(0, 3)
BEGIN;
SELECT pg_advisory_xact_lock(1);
\\if :what = 0
TRUNCATE i_bulk, h_bulk;
\\elif :what < 4
UPDATE i_bulk SET body = body || id WHERE batch = pg_backend_pid() % 7;
UPDATE h_bulk SET body = body || id WHERE batch = pg_backend_pid() % 7;
\\else
DELETE FROM i_bulk WHERE batch = pg_backend_pid() % 7;
DELETE FROM h_bulk WHERE batch = pg_backend_pid() % 7;
\\endif
COPY i_bulk (id, body) FROM '$bulk_file';
COPY h_bulk (id, body) FROM '$bulk_file';
\\if :end = 0
ROLLBACK;
\\else
COMMIT;
\\endif
";
	my $index = 'BEGIN;
SELECT pg_advisory_xact_lock(2);
CREATE INDEX not_for_long ON i_acc (note);
DROP INDEX not_for_long;
COMMIT;
';
	return ([ $transaction, 200 ], [ $change, 100 ], twin_check_script(),
		[ $bulk, 10 ], [ $index, 1 ],
		map { [ "VACUUM $_;\n", 1 ] } @twin_tables);
}

sub twin_check_script
{
	return [ "SELECT check_twins();\n", 8 ];
}

# Both ways, and as seen by every index.
sub twins_ok
{
	my ($node, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my $stderr;
	$node->psql('postgres', 'SELECT check_twins()', stderr => \$stderr);
	is($stderr, '', "$name: inplace and heap twins have the same rows");
	return;
}

1;
