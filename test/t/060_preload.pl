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

sub preload
{
	my ($libraries) = @_;
	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$libraries'");
	return;
}

$node->stop;
preload('');
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
preload('inplace');
$node->start;
is(contents($node, 't', 'id', 'seq'),
	$before, 'preloaded again: all rows are there');
tables_ok($node, 'preloaded again', 't');

# ---- crash, and recovery without the library ------------------------------------

$node->safe_psql('postgres', 'UPDATE t SET v = v + 1 WHERE id <= 500');
$before = contents($node, 't', 'id', 'seq');
kill9_all($node);
preload('');
my $log_offset = -s $node->logfile;
is($node->start(fail_ok => 1), 0, 'recovery without preload does not start');
like(
	slurp_file($node->logfile, $log_offset),
	qr/HINT: .*shared_preload_libraries/,
	'recovery without preload: hint in the log');
preload('inplace');
$log_offset = -s $node->logfile;
$node->start;
is(contents($node, 't', 'id', 'seq'),
	$before, 'recovery with preload: all rows are there');
tables_ok($node, 'recovery with preload', 't');

# ---- unknown format -------------------------------------------------------------

# Metapage: the version is the second word behind the page header.
my $version_at = 24 + 4;
my $file = $node->data_dir . '/'
  . $node->safe_psql('postgres', "SELECT pg_relation_filepath('t')");
my $version = patch_file($version_at, pack 'L<', 99);
is(unpack('L<', $version), 6, 'the test knows where the version is');

# Puts bytes into the table's file while the server is stopped, returns the ones
# that were there.
sub patch_file
{
	my ($position, $bytes) = @_;
	my $old;
	$node->stop;
	open my $fh, '+<:raw', $file or die "$file: $!";
	seek $fh, $position, 0;
	read $fh, $old, length $bytes;
	seek $fh, $position, 0;
	print $fh $bytes;
	close $fh or die "$file: $!";
	$node->start;
	return $old;
}

foreach my $sql (
	'SELECT count(*) FROM t;',
	'SELECT * FROM t WHERE id = 3;',
	'INSERT INTO t VALUES (0, 0);',
	'UPDATE t SET v = 0;',
	'VACUUM t;')
{
	$stderr = errors_of($node, $sql);
	like($stderr, qr/ERROR:  \w{5}: .*(version|format)/,
		"unknown version: $sql fails");
	unlike($stderr, qr/XX000/, "unknown version: $sql fails with a SQLSTATE of its own");
	note($stderr);
}
is($node->safe_psql('postgres', 'SELECT count(*) FROM other'),
	'1000', 'unknown version: other tables can be used');
is(errors_of($node, 'BEGIN; DROP TABLE t; ROLLBACK; BEGIN; TRUNCATE t; INSERT INTO t VALUES (1, 1); ROLLBACK;'),
	'', 'unknown version: the table can be dropped and truncated');

patch_file($version_at, $version);
is(contents($node, 't', 'id', 'seq'),
	$before, 'known version again: all rows are there');
tables_ok($node, 'known version again', 't');

log_ok($node, 'unknown version', $log_offset);
$node->stop;
done_testing();
