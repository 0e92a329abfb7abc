# Readers on a standby while the rows that they read are changed: replay and readers lock
# pages in the same order, and a row that becomes shorter does not lose versions
# that a standby's snapshot sees.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $primary = new_cluster(
	'primary',
	streaming => 1,
	conf      => q(
inplace.debug_heal = off
autovacuum = off
inplace.debug_undo_at_home = off
wal_keep_size = '1GB'
));
my $standby = new_standby($primary, q(
max_standby_streaming_delay = -1
hot_standby_feedback = off
));

# Has the standby replayed everything within this time?  (wait_for_catchup would wait
# for minutes.)
sub catches_up
{
	my ($seconds) = @_;
	# a commit that writes takes what came before to the standby
	$primary->safe_psql('postgres', q(SELECT pg_logical_emit_message(true, '', '')));
	my $lsn = $primary->lsn('write');
	my $end = time + $seconds;
	my $done;
	do
	{
		usleep(50_000);
		$done = $standby->safe_psql('postgres',
			"SELECT pg_last_wal_replay_lsn() >= '$lsn'") eq 't';
	} until $done || time > $end;
	return $done;
}

# ---- lock order ----------------------------------------------------------------

# A reader who looks a row up by index holds its page's lock while it reads the bytes
# under the row's version block from the undo page.  Replay of an update that
# moves a row has three pages: the old row's, undo, and the new row's.  So
# here rows move onto the page of a row whose version block covers its first bytes,
# and their undo goes to the page that has those.
#
# (Block 0, which has a decoy, gets a shorter row.)  Rows are packed behind the first 64 pages, without room for version blocks: eight to
# a page, with 32 free bytes.  A delete takes 10 of them, and an update that
# needs 15 more leaves none for a version block.  Then the deleted row's space is
# about all that there is.
$primary->safe_psql(
	'postgres', q(
CREATE TABLE moves (id int PRIMARY KEY, k int, t text) USING inplace;
ALTER TABLE moves ALTER t SET STORAGE plain;
CREATE INDEX moves_k ON moves (k);
INSERT INTO moves SELECT i, 0, repeat('m', CASE WHEN i = 1 THEN 8060 ELSE 8090 END) FROM generate_series(1, 64) i;
INSERT INTO moves SELECT i, 0, 'small' FROM generate_series(2001, 3000) i;
INSERT INTO moves SELECT i, 0, repeat('m', 995) FROM generate_series(1001, 1100) i;
DO $$BEGIN
	FOR i IN 1101 .. 1110 LOOP
		EXIT WHEN (SELECT free < 1030
			FROM inplace_page('moves', pg_relation_size('moves') / 8192 - 1));
		INSERT INTO moves VALUES (i, 0, repeat('m', 995));
	END LOOP;
END$$;
));
my ($block, $first) = split /\|/,
  $primary->safe_psql(
	'postgres', q(
SELECT block, (SELECT min(id) FROM moves WHERE ctid = format('(%s,1)', block)::tid)
FROM (SELECT min(p.block) AS block
	FROM generate_series(66, pg_relation_size('moves') / 8192 - 1) p(block),
		inplace_page('moves', p.block)
	WHERE kind = 'data' AND items = 8 AND free = 32) b));
$primary->safe_psql('postgres', "DELETE FROM moves WHERE ctid = '($block,8)'");

my $holder = $primary->background_psql('postgres');
$holder->query_safe(
	'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM moves');
my $writer = $primary->background_psql('postgres');
$writer->query_safe(
	"UPDATE moves SET t = t || 'fifteen bytes..' WHERE id = $first");
# makes the deleted row's space free, and known
$writer->query_safe("UPDATE moves SET t = upper(t) WHERE ctid = '($block,2)'");
$writer->query_safe('VACUUM moves');
is( $primary->safe_psql(
		'postgres',
		"SELECT 'overlaid' = ANY (flags) FROM inplace_rows('moves', $block) WHERE off = 1"),
	't',
	'the version block covers the first bytes of a row');
ok(catches_up(300), 'standby is there');

# fetches the row all the time
my $reader = $standby->background_psql('postgres');
$reader->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_memoize = off');
$reader->query_until(
	qr/began/, qq(\\echo began
SELECT count(t) FROM (SELECT generate_series(0, 1500000) g OFFSET 0) s,
	LATERAL (SELECT t FROM moves WHERE id = $first + g / 100000000 OFFSET 0) m;
\\echo ended
));
usleep(200_000);
$writer->query_safe('DO $$BEGIN
	FOR i IN 2001 .. 2100 LOOP
		UPDATE moves SET k = i WHERE id = i;
		COMMIT;
		PERFORM pg_sleep(0.005);
	END LOOP;
END$$');
cmp_ok(
	$primary->safe_psql(
		'postgres',
		"SELECT count(*) FROM moves WHERE k > 0 AND ctid >= '($block,1)' AND ctid < '(@{[$block + 1]},1)'"
	),
	'>', 10,
	'rows have moved onto its page');
my $alive = catches_up(300);
ok($alive, 'replay and a reader do not wait for each other');
if (!$alive)
{
	$standby->stop('immediate');
	$primary->stop('immediate');
	done_testing();
	exit;
}
like($reader->query_until(qr/ended/, ''), qr/^1500001$/m, 'the reader has found its row');
$_->query_safe('COMMIT') foreach $holder;
$_->quit foreach $holder, $writer, $reader;

# ---- a row becomes shorter ---------------------------------------------------------

# The zeros behind an updated row, which keep room for the version before, go with a
# later update, when nobody on the primary can see that version; but a standby's
# snapshot may.  It must be cancelled then, or see what it saw.
my $long = 'x' x 50;
foreach my $delay ('10ms', '-1')
{
	$standby->append_conf('postgresql.conf',
		"max_standby_streaming_delay = '$delay'");
	$standby->restart;
	foreach my $changes (
		[ 'shorter', "UPDATE f SET note = 'yy'", "UPDATE f SET note = 'z'" ],
		[ 'shorter, then pruned', "UPDATE f SET note = 'yy'", 'VACUUM f' ],
		[ 'same length', "UPDATE f SET note = repeat('y', 50)", "UPDATE f SET note = repeat('z', 50)" ],
		[ 'NULL', 'UPDATE f SET note = NULL', 'UPDATE f SET note = NULL' ],
		[ 'deleted', "UPDATE f SET note = 'yy'", 'DELETE FROM f', 'VACUUM f' ])
	{
		my ($name, @changes) = @$changes;
		$name = "$name, delay $delay";
		$primary->safe_psql(
			'postgres', "
DROP TABLE IF EXISTS f;
CREATE TABLE f (id int PRIMARY KEY, note text) USING inplace;
INSERT INTO f VALUES (1, '$long');");
		$primary->safe_psql('postgres', 'VACUUM f');
		catches_up(300) or die 'standby lags behind';

		my $log_offset = -s $standby->logfile;
		my $query = 'SELECT id, note FROM f';
		my $session = $standby->background_psql('postgres');
		$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
		is($session->query_safe($query), "1|$long", "$name: first look");
		$primary->safe_psql('postgres', $_) foreach @changes;
		# with delay -1 replay may wait for the session
		catches_up($delay eq '-1' ? 1 : 300);
		# an idle session is not only cancelled but disconnected
		my $answer = eval { $session->query($query) } // '';
		my $cancelled = slurp_file($standby->logfile, $log_offset) =~
		  /due to conflict with recovery/;
		if ($cancelled)
		{
			is($delay, '10ms', "$name: cancelled");
		}
		else
		{
			is($answer, "1|$long", "$name: the same again");
		}
		eval { $session->quit };
		$primary->wait_for_catchup($standby);
	}
}
same_contents('same rows', $primary, $standby, 'f', 'moves');
tables_ok($standby, 'standby', 'f', 'moves');
tables_ok($primary, 'primary', 'f', 'moves');
log_ok($standby, 'standby', 0);

$standby->stop;
$primary->stop;
done_testing();
