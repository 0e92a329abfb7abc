# A range is summarized while a snapshot still sees an older version of one of its rows; then the snapshot goes, and the
# undo of that version is used again.  Nobody needs it any more, so the summary does without.  The backend is held
# between its copy of the page and its look at the undo.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('main', conf => "autovacuum = off\ninplace.debug_undo_at_home = off\ninplace.debug_heal = off\n");

sql_on(\$node);
if (!has_points())
{
	$node->stop;
	plan skip_all => 'a server without injection points';
}

# a page for each row; the other column is changed, so that this is an update in place on 15, too
sql('CREATE TABLE r (id int, b int, n int, filler text) USING inplace',
	'ALTER TABLE r ALTER filler SET STORAGE PLAIN',
	"INSERT INTO r SELECT i, i, 0, repeat('x', 5000) FROM generate_series(1, 3) i",
	'CREATE INDEX r_b ON r USING brin (b) WITH (pages_per_range = 1)',
	'SELECT brin_desummarize_range(\'r_b\', i) FROM generate_series(0, 20) i');
my $reader = $node->background_psql('postgres', on_error_stop => 1);
my $writer = $node->background_psql('postgres', on_error_stop => 1);
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT n FROM r');
$writer->query_safe('UPDATE r SET n = n + 1 WHERE id = 1');
my $others = 'DO $$BEGIN FOR i IN 1..2000 LOOP UPDATE r SET n = n + 1 WHERE id = 3; COMMIT; END LOOP; END$$';
$writer->query_safe($others);		# its page of undo has no younger xids

my $summarizer = $node->background_psql('postgres', on_error_stop => 0);
my $answer = at_point($summarizer, 'inplace-build-entry', "SET statement_timeout = '60s';\n"
	  . q(SELECT brin_summarize_new_values('r_b') > 0 AS summarized), sub {
	$reader->query_safe('COMMIT');
	$writer->query_safe($others);
	is(sql("SELECT string_agg(kind, ' ' ORDER BY v.n) FROM inplace_versions('r', (SELECT ctid FROM r WHERE id = 1)) v"),
		'update gone', 'the undo of the older version has been used again');
});
like($answer, qr/^t$/m, 'the range is summarized');
$_->quit foreach $summarizer, $writer, $reader;
is(sql('SET enable_seqscan = off', 'SELECT count(*) FROM r WHERE b = 1'), '1', 'the row is found');
tables_ok($node, 'r', 'r');
log_ok($node, 'whole run', 0);
$node->stop;
done_testing();
