# A server that does not preload the library, and a table whose format this
# version does not know: a clear error with a hint, and no harm to the data.
#
# A table of an access method whose library is not loaded cannot be opened, so it
# cannot be dropped either: with the library in shared_preload_libraries again,
# everything works as before.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

test_seed();

# Runs SQL; returns what it says on stderr.
sub errors_of
{
	my ($node, $sql) = @_;
	my $stderr;
	$node->psql(
		'postgres', "\\set VERBOSITY verbose\n$sql",
		stderr        => \$stderr,
		on_error_stop => 0);
	return $stderr;
}

# ---- never preloaded ------------------------------------------------------------

my $node = PostgreSQL::Test::Cluster->new('without');
$node->init;
$node->append_conf('postgresql.conf', 'log_statement = none');
$node->start;

my $stderr = errors_of($node, 'CREATE EXTENSION inplace;');
like($stderr, qr/ERROR:  55000:/, 'CREATE EXTENSION without preload fails');
like(
	$stderr,
	qr/HINT: .*shared_preload_libraries/,
	'CREATE EXTENSION without preload: hint');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_extension WHERE extname = \'inplace\''),
	'0', 'CREATE EXTENSION without preload leaves nothing behind');
like(
	errors_of($node, "LOAD 'inplace'"),
	qr/HINT: .*shared_preload_libraries/,
	'LOAD without preload: hint');
$node->stop;

# ---- preloaded once, then no more -----------------------------------------------

$node = new_cluster('main');
$node->safe_psql(
	'postgres', q(
CREATE TABLE t (id int PRIMARY KEY, v int) USING inplace;
INSERT INTO t SELECT i, i FROM generate_series(1, 1000) i;
UPDATE t SET v = v + 1;
CREATE TABLE other (id int PRIMARY KEY, v int) USING heap;
INSERT INTO other TABLE t;
));
my $before = contents($node, 't', 'id', 'seq');

$node->stop;
preload($node, '');
$node->start;
foreach my $sql (
	'SELECT count(*) FROM t;',
	'INSERT INTO t VALUES (0, 0);',
	'UPDATE t SET v = 0;',
	'DELETE FROM t;',
	'VACUUM t;',
	'CREATE TABLE new (id int) USING inplace;',
	'ALTER TABLE t ADD COLUMN w int;',
	'TRUNCATE t;')
{
	$stderr = errors_of($node, $sql);
	like($stderr, qr/ERROR:  55000:/, "without preload: $sql fails");
	like($stderr, qr/HINT: .*shared_preload_libraries/,
		"without preload: $sql has a hint");
}
is($node->safe_psql('postgres', 'SELECT count(*) FROM other'),
	'1000', 'without preload: other tables can be used');
note('without preload, DROP TABLE says: ' . errors_of($node, 'BEGIN; DROP TABLE t; ROLLBACK;'));
log_ok($node, 'without preload', 0);

$node->stop;
preload($node, 'inplace');
$node->start;
is(contents($node, 't', 'id', 'seq'),
	$before, 'preloaded again: all rows are there');
tables_ok($node, 'preloaded again', 't');

# ---- crash, and recovery without the library ------------------------------------

$node->safe_psql('postgres', 'UPDATE t SET v = v + 1 WHERE id <= 500');
$before = contents($node, 't', 'id', 'seq');
kill9_all($node);
preload($node, '');
my $log_offset = -s $node->logfile;
is($node->start(fail_ok => 1), 0, 'recovery without preload does not start');
like(
	slurp_file($node->logfile, $log_offset),
	qr/HINT: .*shared_preload_libraries/,
	'recovery without preload: hint in the log');
preload($node, 'inplace');
$log_offset = -s $node->logfile;
$node->start;
is(contents($node, 't', 'id', 'seq'),
	$before, 'recovery with preload: all rows are there');
tables_ok($node, 'recovery with preload', 't');

# ---- settings, name and version -------------------------------------------------

like(errors_of($node, 'SET inplace.typo = 1'), qr/ERROR:  42602: invalid configuration parameter name "inplace.typo"/, 'no setting is made by a typo');
is($node->safe_psql('postgres', q(SELECT module_name, version FROM pg_get_loaded_modules() WHERE file_name ~ '^inplace')), 'inplace|1.0.0',
	'the library tells its name and version')
  if $node->pg_version >= 18;

# ---- unknown format -------------------------------------------------------------

# The magic number, at the end of each page, is the letter I and the version.
my $version_at = 8192 - 2;
my $file = $node->data_dir . '/'
  . $node->safe_psql('postgres', "SELECT pg_relation_filepath('t')");

# Changes the table's file while the server is stopped; returns what was in it.
sub change_file
{
	my ($change) = @_;
	$node->stop;
	my $old = slurp_file($file);
	my $new = $old;
	$change->(\$new);
	open my $fh, '>:raw', $file or die "$file: $!";
	print $fh $new;
	close $fh or die "$file: $!";
	$node->start;
	return $old;
}

my $sound = change_file(
	sub {
		my ($pages) = @_;
		for (my $at = $version_at; $at < length $$pages; $at += 8192)
		{
			substr($$pages, $at, 2) = pack 'S<', 0x4900 + 99 if substr($$pages, $at + 1, 1) eq 'I';
		}
	});
is(unpack('S<', substr $sound, $version_at, 2), 0x4901, 'the test knows where the version is');

# All statements are refused, and nothing is written.
sub refused_ok
{
	my ($name, $number) = @_;
	$node->safe_psql('postgres', 'CHECKPOINT');
	my $contents = slurp_file($file);
	foreach my $sql (
		'SELECT count(*) FROM t;',
		'SELECT * FROM t WHERE id = 3;',
		q(SELECT * FROM t WHERE ctid = '(2,5)';),
		'INSERT INTO t VALUES (0, 0);',
		q(COPY t FROM PROGRAM 'echo 5000 1' (DELIMITER ' ');),
		'UPDATE t SET v = 0;',
		'SELECT * FROM t FOR UPDATE;',
		'VACUUM t;',
		'ANALYZE t;',
		'VACUUM FULL t;',
		'CREATE INDEX ON t (v);',
		q(SELECT * FROM inplace_undo_rings('t');),
		q(SELECT * FROM inplace_rows('t', 0);))
	{
		$stderr = errors_of($node, $sql);
		like($stderr, qr/ERROR:  0A000: block \d+ of relation "t" has format version $number, but this library knows version 1 only\nHINT:  Use/,
			"$name: $sql fails");
	}
	$node->safe_psql('postgres', 'CHECKPOINT');
	ok($contents eq slurp_file($file), "$name: nothing is written");
	return;
}
refused_ok('unknown version', 99);
like($node->safe_psql('postgres', q(SELECT inplace_check('t'))), qr/^\(0,,"page has format version 99"\)/, 'unknown version: inplace_check');
is($node->safe_psql('postgres', 'SELECT count(*) FROM other'),
	'1000', 'unknown version: other tables can be used');
is(errors_of($node, 'BEGIN; DROP TABLE t; ROLLBACK; BEGIN; TRUNCATE t; INSERT INTO t VALUES (1, 1); ROLLBACK;'),
	'', 'unknown version: the table can be dropped and truncated');

# A bulk insertion, or a crash, has left many new pages at the end.
change_file(sub { ${ $_[0] } .= "\0" x (8192 * 20) });
refused_ok('unknown version, new pages at the end', 99);

change_file(sub { ${ $_[0] } = $sound });
is(contents($node, 't', 'id', 'seq'),
	$before, 'known version again: all rows are there');
tables_ok($node, 'known version again', 't');

log_ok($node, 'unknown version', $log_offset);
$node->stop;
done_testing();
