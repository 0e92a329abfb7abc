# Tools that copy or read a cluster's files: pg_basebackup and pg_verifybackup, pg_checksums,
# pg_rewind of a primary that went on alone, pg_waldump.

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

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1, extra => ['--data-checksums']);
$node->append_conf(
	'postgresql.conf', q(
shared_preload_libraries = 'inplace'
log_line_prefix = '%m [%p] %e %q%a '
log_min_messages = warning
max_connections = 40
wal_keep_size = '1GB'
max_prepared_transactions = 5
));
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION inplace');
install_helpers($node);
create_twins($node);
$node->safe_psql('postgres', q(CREATE TABLE extra (id int PRIMARY KEY, n int, body text) USING inplace; INSERT INTO extra SELECT i, 0, repeat('e', i % 90) FROM generate_series(1, 3000) i));

# ---- base backups while clients write --------------------------------------------------------

my $load = start_pgbench($node, clients => 4, seconds => 6, scripts => [ twin_scripts() ]);
my $dir = PostgreSQL::Test::Utils::tempdir();
foreach my $format ('plain', 'tar')
{
	$node->command_ok(
		[ 'pg_basebackup', '--pgdata' => "$dir/$format", '--port' => $node->port, '--host' => $node->host, '--format' => $format,
			'--checkpoint' => 'fast', '--wal-method' => 'stream', '--manifest-checksums' => 'SHA256', '--no-sync',
			$format eq 'tar' ? ('--gzip') : () ],
		"pg_basebackup, $format");
}
command_ok([ 'pg_verifybackup', "$dir/plain" ], 'pg_verifybackup');
my $result = finish_pgbench($load);
is($result->{errors}, '', 'load: no errors');
foreach my $format ('plain', 'tar')
{
	my $copy = PostgreSQL::Test::Cluster->new("copy_$format");
	if ($format eq 'tar')
	{
		mkdir "$dir/unpacked", 0700;
		mkdir "$dir/unpacked/pg_wal", 0700;
		system_or_bail('tar', '-xzf', "$dir/tar/base.tar.gz", '-C', "$dir/unpacked");
		system_or_bail('tar', '-xzf', "$dir/tar/pg_wal.tar.gz", '-C', "$dir/unpacked/pg_wal");
	}
	$copy->init(allows_streaming => 1);
	system_or_bail('rm', '-rf', $copy->data_dir);
	system_or_bail('mv', $format eq 'tar' ? "$dir/unpacked" : "$dir/plain", $copy->data_dir);
	$copy->append_conf('postgresql.conf', 'port = ' . $copy->port . "\nunix_socket_directories = '" . $copy->host . "'");
	$copy->start;
	twins_ok($copy, "copy, $format");
	tables_ok($copy, "copy, $format", 'extra');
	log_ok($copy, "copy, $format", 0);
	$copy->stop;
	command_ok([ 'pg_checksums', '--check', '--pgdata' => $copy->data_dir ], "copy, $format: pg_checksums");
}

# ---- pg_rewind ---------------------------------------------------------------------------------

my $standby = new_standby($node);
$node->safe_psql('postgres', "BEGIN; UPDATE extra SET n = 5 WHERE id < 100; PREPARE TRANSACTION 'both'");
$node->wait_for_catchup($standby);
$standby->promote;
# Both go on alone: each changes rows, grows, truncates, vacuums in its own way.
$node->safe_psql(
	'postgres', q(
UPDATE extra SET n = -1, body = 'old primary' WHERE id > 500; DELETE FROM extra WHERE id BETWEEN 100 AND 400; INSERT INTO extra SELECT i, 0, 'gone' FROM generate_series(5001, 9000) i;
BEGIN; UPDATE extra SET n = -2 WHERE id > 1000; ROLLBACK; VACUUM extra; COMMIT PREPARED 'both'; CREATE TABLE gone USING inplace AS SELECT generate_series(1, 1000) AS i;));
$standby->safe_psql(
	'postgres', q(
UPDATE extra SET n = n + 10 WHERE id % 2 = 0 AND id >= 100; BEGIN; DELETE FROM extra WHERE id > 100; ROLLBACK; ROLLBACK PREPARED 'both';
UPDATE extra SET body = 'new primary' WHERE id % 100 = 0; CREATE TABLE new (id int PRIMARY KEY) USING inplace; INSERT INTO new SELECT generate_series(1, 1000); CHECKPOINT;));
$node->stop;
$node->command_ok(
	[ 'pg_rewind', '--target-pgdata' => $node->data_dir, '--source-server' => $standby->connstr('postgres'), '--no-sync' ],
	'pg_rewind');
# pg_rewind has copied the other's configuration as well
$node->append_conf('postgresql.conf', 'port = ' . $node->port . "\nunix_socket_directories = '" . $node->host . "'");
$node->append_conf('postgresql.conf', "primary_conninfo = '" . $standby->connstr . " application_name=main'");
$node->set_standby_mode;
$node->start;
$standby->safe_psql('postgres', 'UPDATE extra SET n = n + 1; DELETE FROM extra WHERE id % 50 = 0; VACUUM extra');
$standby->wait_for_catchup('main');
same_contents('rewound', $standby, $node, 'extra', 'new', @twin_tables);
is($node->safe_psql('postgres', q(SELECT count(*), min(n), max(n), count(*) FILTER (WHERE body = 'old primary') FROM extra)), '2940|1|11|0', 'rewound: the old timeline is gone');
tables_ok($node, 'rewound', 'extra', 'new');
tables_ok($standby, 'new primary', 'extra', 'new');

my $file = $standby->data_dir . '/pg_wal/' . $standby->safe_psql('postgres', 'SELECT pg_walfile_name(pg_current_wal_lsn())');
my ($out) = run_command([ 'pg_waldump', $file ]);
cmp_ok(scalar(() = $out =~ /^rmgr: custom164/mg), '>', 10, 'pg_waldump reads our records');

log_ok($standby, 'standby, so far', 0);
# Damaged WAL is not passed over.
my ($start, $segment) = split /\|/, $standby->safe_psql('postgres', q(SELECT pg_switch_wal() + 1000, pg_walfile_name(pg_current_wal_lsn() + 1000)));
my $end = $standby->safe_psql('postgres', q(SELECT pg_logical_emit_message(true, 'x', repeat('x', 1000000)) \gset
	SELECT pg_current_wal_flush_lsn()));
$standby->wait_for_catchup($node);
open my $wal, '+<:raw', $standby->data_dir . "/pg_wal/$segment" or die;
read $wal, my $sound, 500000;
seek $wal, 0, 0;
print $wal "\0" x length $sound;
$wal->flush;
(undef, undef, my $said) = $standby->psql('postgres', "\\set VERBOSITY verbose\nSELECT * FROM inplace_wal_summary('$start', '$end')");
like($said, qr/ERROR:  XX001: could not (find a valid record after|read WAL at)/, 'inplace_wal_summary of damaged WAL');
seek $wal, 0, 0;
print $wal $sound;
close $wal;
my %from = ($standby->name => -s $standby->logfile);

$node->stop;
$standby->stop;
foreach my $server ($node, $standby)
{
	command_ok([ 'pg_checksums', '--check', '--pgdata' => $server->data_dir ], $server->name . ': pg_checksums');
	log_ok($server, $server->name, $from{ $server->name } // 0);
}

# Off and on again: pg_checksums writes every page.
command_ok([ 'pg_checksums', "--$_", '--pgdata' => $standby->data_dir, '--no-sync' ], "pg_checksums --$_") foreach 'disable', 'enable', 'check';
# And it notices a damaged page of ours.
my $path = $standby->data_dir . '/';
$standby->start;
$path .= $standby->safe_psql('postgres', q(SELECT pg_relation_filepath('extra')));
tables_ok($standby, 'checksums enabled again', 'extra', 'new');
$standby->stop;
open my $fh, '+<:raw', $path or die;
seek $fh, 8192 * 3 + 5000, 0;
print $fh 'damage';
close $fh;
command_checks_all([ 'pg_checksums', '--check', '--pgdata' => $standby->data_dir ], 1, [qr/Bad checksums:.*1/], [qr/checksum verification failed.*block 3/], 'pg_checksums finds damage');
$standby->start;
my ($ret, undef, $err) = $standby->psql('postgres', 'SELECT sum(n) FROM extra');
like($err, qr/invalid page in block 3/, 'the server finds it, too');
$standby->stop;
done_testing();
