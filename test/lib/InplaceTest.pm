# What the TAP tests of pg_inplace share: a cluster with the extension loaded,
# a crash that is as hard as one without pulling the plug can be, pgbench in the
# background, and one function that says everything that is wrong with a set of
# tables.
package InplaceTest;

use strict;
use warnings;

use Exporter 'import';
use File::Copy;
use File::Path qw(make_path);
use File::Temp ();
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

our @EXPORT = qw(
  test_seed
  rounds
  random_between
  new_cluster
  new_standby
  sql_on
  sql
  answer
  pages_of
  preload
  install_helpers
  create_flush_relation
  create_heap_code
  build_module
  private_installation
  kill9_all
  random_crash_settings
  checkpoint_sometimes
  crash_and_recover
  change_file
  change_pages
  seal_metapage
  start_pgbench
  finish_pgbench
  tables_ok
  contents
  same_contents
  same_as_heap
  same_pairs
  log_ok
  has_points
  at_point
  server_forgets
);

# ---- seed and size of a run --------------------------------------------------

# Every random decision of a test derives from this one number.  The clients'
# interleaving does not, so a seed repeats the workload, not always the failure.
sub test_seed
{
	my $seed = $ENV{INPLACE_SEED};
	$seed = int(rand(2**31)) if !defined $seed || $seed eq '';
	srand($seed);
	diag("INPLACE_SEED=$seed");
	return $seed;
}

sub rounds
{
	my ($default) = @_;
	my $rounds = $ENV{INPLACE_CRASH_ROUNDS};
	return defined $rounds && $rounds ne '' ? $rounds : $default;
}

sub random_between
{
	my ($low, $high) = @_;
	return $low + rand($high - $low);
}

# ---- statements ----------------------------------------------------------------

my $sql_node;

# Where sql() goes from now on: a reference to the variable that has the cluster.
sub sql_on
{
	($sql_node) = @_;
	return;
}

# The statements' output; they must not fail.
sub sql { return $$sql_node->safe_psql('postgres', join ";\n", @_); }

# What the statements say, errors and warnings too, with SQLSTATEs.
sub answer
{
	my ($out, $err) = ('', '');
	$$sql_node->psql('postgres', "\\set VERBOSITY verbose\n" . join(";\n", @_), stdout => \$out, stderr => \$err);
	return $out . ($out ne '' && $err ne '' ? "\n" : '') . $err;
}

# A table's or an index's pages.
sub pages_of { return sql("SELECT pg_relation_size('$_[0]') / 8192"); }

# The libraries from the next start on.
sub preload
{
	my ($node, $libraries) = @_;
	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$libraries'");
	return;
}

# ---- clusters ------------------------------------------------------------------

# Creates and starts a cluster with the extension in database "postgres".
# Parameters: streaming => 1, conf => 'more lines for postgresql.conf', install_path => see private_installation.
sub new_cluster
{
	my ($name, %params) = @_;

	my $node = PostgreSQL::Test::Cluster->new($name, install_path => $params{install_path});
	# Tests damage pages; checksums, which are the default from 18 on, would find that before inplace does.
	my @init = $node->pg_version >= 18 ? (no_data_checksums => 1) : ();
	$node->init(allows_streaming => $params{streaming}, @init);

	# The SQLSTATE in the log tells an internal error from an expected one.
	$node->append_conf(
		'postgresql.conf', qq(
shared_preload_libraries = 'inplace'
log_line_prefix = '%m [%p] %e %q%a '
log_statement = none
log_min_messages = warning
log_checkpoints = off
log_replication_commands = off
max_connections = 40
shared_buffers = 32MB
synchronous_commit = on
full_page_writes = on
autovacuum_naptime = 1s
deadlock_timeout = 50ms
jit = off
));
	# PostgreSQL::Test::Cluster's default for a lone server is minimal, which
	# leaves WAL out of just what most tests want to replay.
	$node->append_conf('postgresql.conf', 'wal_level = replica')
	  unless $params{streaming};
	$node->append_conf('postgresql.conf', $params{conf})
	  if defined $params{conf};

	create_extension($node);
	return $node;
}

# Creates and starts a streaming standby, with these settings.
sub new_standby
{
	my ($primary, $conf) = @_;
	$primary->backup('base');
	my $standby = PostgreSQL::Test::Cluster->new('standby');
	$standby->init_from_backup($primary, 'base', has_streaming => 1);
	$standby->append_conf('postgresql.conf', $conf) if defined $conf;
	$standby->start;
	return $standby;
}

sub create_extension
{
	my ($node) = @_;
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION inplace');
	install_helpers($node);
	return;
}

# flush_relation(regclass), see flush_relation.c.
sub create_flush_relation
{
	my ($node) = @_;
	my $library = build_module('flush_relation');
	$node->safe_psql('postgres',
		"CREATE FUNCTION flush_relation(regclass) RETURNS void LANGUAGE C AS '$library'");
	return;
}

# heap_code(what, regclass, tid, record), see heap_code.c.
sub create_heap_code
{
	my ($node) = @_;
	my $library = build_module('heap_code');
	$node->safe_psql('postgres',
		'CREATE FUNCTION heap_code(what text, rel regclass, at tid DEFAULT NULL, new record DEFAULT NULL) '
		  . "RETURNS text LANGUAGE C AS '$library'");
	return;
}

# Builds one of the C files of this folder; returns the library's path, without its suffix.
sub build_module
{
	my ($name) = @_;
	my $dir = PostgreSQL::Test::Utils::tempdir();
	my $source = __FILE__ =~ s/[^\/]*$//r;

	copy("$source/$name.c", $dir) or die "could not copy $name.c: $!";
	chomp(my $pgxs = `$ENV{PG_CONFIG} --pgxs`);
	system_or_bail('make', '-s', '-C', $dir, '-f', $pgxs, "PGXS=$pgxs", "PG_CONFIG=$ENV{PG_CONFIG}",
		'with_llvm=no', 'COPT=-Werror', "PG_CPPFLAGS=-I$source", "MODULES=$name");
	return "$dir/$name";
}

# A copy of the server's installation to which extensions can be added; returns its install_path (see
# PostgreSQL::Test::Cluster).  Parameters: names and contents of files in its folder "extension".
sub private_installation
{
	my (%files) = @_;
	my ($bin, $lib, $share) = map { chomp(my $dir = `$ENV{PG_CONFIG} --$_`); $dir } qw(bindir pkglibdir sharedir);
	my $root = PostgreSQL::Test::Utils::tempdir();

	# The server finds the other folders from where its program lies, if they lie to each other as they did.
	my $common = $bin;
	$common =~ s/[^\/]+\/?$// until "$lib/" =~ /^\Q$common\E/ && "$share/" =~ /^\Q$common\E/;
	my ($new_bin, $new_lib, $new_share) = map { "$root/" . substr($_, length $common) } $bin, $lib, $share;
	make_path($_ =~ s/[^\/]+$//r) foreach $new_bin, $new_lib;
	make_path("$new_share/extension");
	system_or_bail('cp', '-R', $bin, $new_bin);
	symlink($lib, $new_lib) or die "could not link $new_lib: $!" if !-e $new_lib;
	foreach my $from (glob("$share/*"), glob("$share/extension/*"))
	{
		my $to = $new_share . substr($from, length $share);
		symlink($from, $to) or die "could not link $to: $!" if !-e $to;
	}
	append_to_file("$new_share/extension/$_", $files{$_}) foreach keys %files;
	return $new_bin =~ s/\/bin$//r;
}

# Has the server got amcheck?  It is in contrib, so perhaps not.
sub has_amcheck
{
	my ($node) = @_;
	return $node->safe_psql('postgres',
		"SELECT count(*) FROM pg_available_extensions WHERE name = 'amcheck'");
}

# SQL functions that look at tables in every way; see tables_ok and contents.
sub install_helpers
{
	my ($node) = @_;

	my $index_check = '';
	if (has_amcheck($node))
	{
		$node->safe_psql('postgres', 'CREATE EXTENSION amcheck');
		$index_check =
		  'PERFORM bt_index_check(i.indexrelid, heapallindexed => true);';
	}

	$node->safe_psql(
		'postgres', qq{
CREATE SCHEMA it;

-- The rows whose "col" is not null, read by one kind of scan, as a count and an
-- order-independent hash.  Refuses to answer from any other kind of scan.
CREATE FUNCTION it.contents(rel regclass, col name, how text) RETURNS text
LANGUAGE plpgsql AS \$\$
DECLARE
	query text := format('SELECT count(*) || '' rows, hash '' || '
		'coalesce(sum(hashtextextended(t::text, 0)::numeric), 0) '
		'FROM %s t WHERE %I IS NOT NULL', rel, col);
	node text := CASE how
		WHEN 'seq' THEN 'Seq Scan on'
		WHEN 'parallel' THEN 'Parallel Seq Scan on'
		WHEN 'index' THEN 'Index Scan using'
		WHEN 'indexonly' THEN 'Index Only Scan using'
		WHEN 'bitmap' THEN 'Bitmap Heap Scan on' END;
	line text;
	plan text := '';
	low text;
	result text;
BEGIN
	-- From 17 on the planner knows that a column that is NOT NULL is so, and then looks for no index.
	IF current_setting('server_version_num')::int >= 170000 AND how <> 'seq' AND how <> 'parallel' AND
		EXISTS (SELECT FROM pg_attribute WHERE attrelid = rel AND attname = col AND attnotnull) THEN
		EXECUTE format('SELECT quote_literal(%1\$I::text) || ''::'' || pg_typeof(%1\$I) FROM %2\$s ORDER BY %1\$I LIMIT 1',
			col, rel) INTO low;
		IF low IS NULL THEN
			RETURN '0 rows, hash 0';
		END IF;
		query := replace(query, 'IS NOT NULL', '>= ' || low);
	END IF;
	IF how = 'indexonly' THEN
		query := replace(query, 't::text', format('%I::text', col));
	END IF;
	PERFORM set_config('enable_seqscan', (how IN ('seq', 'parallel'))::text, true),
		set_config('enable_indexscan', (how IN ('index', 'indexonly'))::text, true),
		set_config('enable_indexonlyscan', (how = 'indexonly')::text, true),
		set_config('enable_bitmapscan', (how = 'bitmap')::text, true),
		set_config('max_parallel_workers_per_gather', CASE how WHEN 'parallel' THEN '2' ELSE '0' END, true),
		set_config('min_parallel_table_scan_size', '0', true),
		set_config('parallel_setup_cost', '0', true),
		set_config('parallel_tuple_cost', '0', true),
		-- makes even one row worth a worker
		set_config('cpu_tuple_cost', '100', true);
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		plan := plan || line || E'\\n';
	END LOOP;
	-- Nothing makes the planner start a worker for an empty table.
	IF position(node IN plan) = 0 AND how <> 'parallel' THEN
		RAISE EXCEPTION 'no "%" of % by % in the plan: %', node, rel, col, plan;
	END IF;
	EXECUTE query INTO result;
	RETURN result;
END \$\$;

-- The same by seq scan and by every index: what must be equal on two servers.
CREATE FUNCTION it.all_contents(rel regclass) RETURNS SETOF text
LANGUAGE sql AS \$\$
SELECT format('%s by %s, %s: %s', rel, attname, how, it.contents(rel, attname, how))
FROM (
	SELECT attname FROM pg_attribute WHERE attrelid = rel AND attnum = 1
	UNION
	SELECT attname FROM pg_index x
		JOIN pg_class ic ON ic.oid = x.indexrelid
		JOIN pg_am am ON am.oid = ic.relam AND amname = 'btree'
		JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = x.indkey[0]
	WHERE x.indrelid = rel AND x.indisvalid AND x.indpred IS NULL) AS cols,
	unnest('{seq,index,bitmap}'::text[]) how
WHERE how = 'seq' OR EXISTS (
	SELECT FROM pg_index x
		JOIN pg_class ic ON ic.oid = x.indexrelid
		JOIN pg_am am ON am.oid = ic.relam AND amname = 'btree'
		JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = x.indkey[0]
	WHERE x.indrelid = rel AND x.indisvalid AND x.indpred IS NULL
		AND a.attname = cols.attname)
ORDER BY 1 \$\$;

-- One row for everything that is wrong with a table or its indexes.
CREATE FUNCTION it.problems(rel regclass) RETURNS SETOF text
LANGUAGE plpgsql AS \$\$
DECLARE
	i record;
	how text;
	expected text;
	found text;
BEGIN
	RETURN QUERY SELECT format('%s: inplace_check: %s', rel, c)
		FROM inplace_check(rel) c
		WHERE (SELECT amname FROM pg_class JOIN pg_am a ON a.oid = relam
			   WHERE pg_class.oid = rel) = 'inplace';
	FOR i IN SELECT x.indexrelid, attname, attnotnull
		FROM pg_index x
			JOIN pg_class ic ON ic.oid = x.indexrelid
			JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = x.indkey[0]
		WHERE x.indrelid = rel AND x.indisvalid AND x.indpred IS NULL
			AND ic.relam = (SELECT oid FROM pg_am WHERE amname = 'btree')
	LOOP
		$index_check
		expected := it.contents(rel, i.attname, 'seq');
		FOREACH how IN ARRAY '{parallel,index,bitmap}'::text[] LOOP
			CONTINUE WHEN how = 'parallel' AND
				(SELECT relpersistence = 't' FROM pg_class WHERE oid = rel);
			found := it.contents(rel, i.attname, how);
			IF found <> expected THEN
				RETURN NEXT format('%s: seq scan finds %s, %s scan by %I finds %s',
					rel, expected, how, i.attname, found);
			END IF;
		END LOOP;
	END LOOP;
END \$\$;
});
	return;
}

# ---- crashes -------------------------------------------------------------------

# True while the process exists and is more than a zombie that nobody has
# collected yet.
sub is_running
{
	my ($pid) = @_;
	my $state = `ps -o stat= -p $pid`;
	return $state =~ /^\s*[^Z\s]/;
}

# Kills the postmaster and all its children at once, so that no process has a
# chance to write anything more.
sub kill9_all
{
	my ($node) = @_;
	my $postmaster = $node->{_pid};
	die 'server is not running' unless defined $postmaster;

	# A stopped postmaster cannot start a child that the list would miss.
	kill 'STOP', $postmaster;
	my @pids = ($postmaster);
	foreach (`ps -A -o pid= -o ppid=`)
	{
		my ($pid, $parent) = split;
		push @pids, $pid if $parent == $postmaster;
	}
	kill 'KILL', @pids;

	for (my $tries = 0; grep { is_running($_) } @pids; $tries++)
	{
		die "processes survive SIGKILL: @pids" if $tries > 15_000;
		usleep(20_000);
	}

	# With an init process that is slow to collect zombies, the old postmaster's
	# pid is still in use, and the next one would refuse to start.
	unlink $node->data_dir . '/postmaster.pid',
	  $node->host . '/.s.PGSQL.' . $node->port . '.lock';
	$node->{_pid} = undef;
	print "# killed @pids\n";
	return;
}

# Restarts with other settings, of which replay depends; returns words for them.
sub random_crash_settings
{
	my ($node) = @_;

	# Few buffers: pages are written out, half of a transaction's changes with
	# them, long before it ends.  Many: replay has to redo nearly everything.
	my $few_buffers = rand() < 0.5;
	$node->adjust_conf('postgresql.conf', 'shared_buffers', $few_buffers ? '2MB' : '64MB');

	# A killed process tears no page, so replay may as well make every change
	# itself instead of being given images.
	my $images = rand() < 0.7 ? 'on' : 'off';
	$node->adjust_conf('postgresql.conf', 'full_page_writes', $images);
	$node->restart;
	return ($few_buffers ? 'few' : 'many') . " buffers, page images $images";
}

# A checkpoint in the middle of a load lets replay start from pages in any state.
sub checkpoint_sometimes
{
	my ($node) = @_;
	return if rand() >= 0.6;
	$node->safe_psql('postgres', 'CHECKPOINT');
	usleep(random_between(0, 1_000_000));
	return;
}

# Crashes the server in the given way ('kill' or 'immediate') and starts it
# again; with recovery_too, recovery itself is killed once before.
sub crash_and_recover
{
	my ($node, $how, %params) = @_;

	if ($how eq 'kill')
	{
		kill9_all($node);
	}
	else
	{
		$node->stop('immediate');
	}

	if ($params{recovery_too})
	{
		# pg_ctl -W returns when the postmaster is launched, in recovery.
		system_log('pg_ctl', '-W', '-D', $node->data_dir, '-l', $node->logfile,
			'-o', '--cluster-name=' . $node->name, 'start');
		my $pidfile = $node->data_dir . '/postmaster.pid';
		usleep(10_000) until -s $pidfile;
		usleep(random_between(20_000, 300_000));
		# Not there any more if recovery failed: then the start below tells.
		if (-s $pidfile)
		{
			($node->{_pid}) = split /\n/, slurp_file($pidfile);
			kill9_all($node);
		}
	}

	$node->start;
	return;
}

# ---- load ----------------------------------------------------------------------

# Starts pgbench in the background.  Parameters:
#   scripts => [[$text, $weight], ...]   clients => N   seconds => N
#   log => 1 to keep the list of confirmed transactions
#   args => [more arguments]
sub start_pgbench
{
	my ($node, %params) = @_;

	# Not removed before the end: a failed run needs it.
	my $dir = PostgreSQL::Test::Utils::tempdir('pgbench');
	my @cmd = (
		'pgbench', '--no-vacuum',
		'--random-seed' => int(rand(2**31)),
		'--client'      => $params{clients} // 8,
		'--jobs'        => 1,
		'--time'        => $params{seconds} // 600,
		'--host'        => $node->host,
		'--port'        => $node->port,
		@{ $params{args} // [] });

	my $n = 0;
	foreach my $script (@{ $params{scripts} })
	{
		my ($text, $weight) = @$script;
		my $file = "$dir/script" . $n++;
		append_to_file($file, $text);
		push @cmd, '--file' => "$file\@$weight";
	}
	push @cmd, '--log', '--log-prefix' => "$dir/log" if $params{log};
	push @cmd, 'postgres';

	print '# starting ' . join(' ', @cmd) . "\n";
	my $run = IPC::Run::start \@cmd, '<', File::Spec->devnull,
	  '>', "$dir/out", '2>', "$dir/err";
	return { run => $run, dir => $dir };
}

# Waits for a pgbench.  Returns a hash with
#   status        exit status (2 if clients lost their connection)
#   errors        what it said on stderr, without what a crash makes it say
#   transactions  how many it ran
#   retried       how many failed on a serialization error or a deadlock
#   confirmed     hash from client number to number of confirmed transactions
sub finish_pgbench
{
	my ($bench) = @_;
	my $dir = $bench->{dir};

	$bench->{run}->finish;
	my %result = (status => $bench->{run}->result || 0, confirmed => {});

	my $err = slurp_file("$dir/err");
	print $err, slurp_file("$dir/out");
	$result{errors} = join "\n", grep { !expected_pgbench_noise($_) }
	  split /\n/, $err;
	$result{errors} .= "\n" if $result{errors} ne '';

	($result{transactions}) =
	  slurp_file("$dir/out") =~ /transactions actually processed: (\d+)/;
	($result{retried}) =
	  slurp_file("$dir/out") =~ /number of failed transactions: (\d+)/;

	foreach my $log (glob "$dir/log.*")
	{
		foreach (split /\n/, slurp_file($log))
		{
			my ($client, undef, $outcome) = split / /;
			$result{confirmed}{$client}++ if $outcome =~ /^\d/;
		}
	}
	return \%result;
}

# What pgbench prints when the server goes away below it, or replay on a standby disconnects it.
my $crash_noise = join '|', (
	'DETAIL:  User (query might have needed|was holding a relation lock)',
	'aborted while receiving the transaction status',
	'perhaps the backend died while processing',
	'could not read result',
	'Run was aborted',
	'server closed the connection',
	'server terminated abnormally',
	'before or while processing',
	'could not (send|receive) data',
	'connection to server',
	'Is the server running',
	'terminating connection',
	'the database system is shutting down',
	'server sent signal to stop',
	'roll back the current transaction and exit',
	'possibly corrupted shared memory',
	'In a moment you should',
	'immediate shutdown',
	'postmaster exited during');

sub expected_pgbench_noise
{
	my ($line) = @_;
	return $line =~ /^pgbench \(|setting random seed|^\s*$|$crash_noise/;
}

# ---- checks --------------------------------------------------------------------

# One test: every scan of every table finds the same rows, the table's structure
# and all its indexes are sound.
sub tables_ok
{
	my ($node, $name, @tables) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my $sql = join ' UNION ALL ',
	  map { "SELECT it.problems('$_')" } @tables;
	my ($stdout, $stderr);
	my $status =
	  $node->psql('postgres', $sql, stdout => \$stdout, stderr => \$stderr);
	my $good = ok($status == 0 && $stdout eq '' && $stderr eq '',
		"$name: tables are sound");
	diag($stdout, "\n", $stderr) unless $good;
	return $good;
}

# Contents of a table as a short string, by one kind of scan.
sub contents
{
	my ($node, $table, $column, $how) = @_;
	return $node->safe_psql('postgres',
		"SELECT it.contents('$table', '$column', '$how')");
}

# One test: both servers have the same rows in the tables, by every access path.
sub same_contents
{
	my ($name, $one, $other, @tables) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my $sql = join ' UNION ALL ',
	  map { "SELECT it.all_contents('$_')" } @tables;
	return is($other->safe_psql('postgres', $sql),
		$one->safe_psql('postgres', $sql), $name);
}

# One test: an inplace table i_X and its heap twin h_X have the same rows.
sub same_as_heap
{
	my ($node, $name, @tables) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return same_pairs($node, $name, map { [ "i_$_", "h_$_" ] } @tables);
}

# One test: the two tables of each pair have the same rows.
sub same_pairs
{
	my ($node, $name, @pairs) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my $only = sub {
		my ($where, $one, $other) = @_;
		return "(SELECT '$one', 'only in $where', left(d::text, 200) FROM (TABLE $one EXCEPT ALL TABLE $other) d LIMIT 5)";
	};
	my $sql = join ' UNION ALL ', map { $only->('inplace', @$_), $only->('heap', reverse @$_) } @pairs;
	return is($node->safe_psql('postgres', $sql), '', "$name: same rows as in heap");
}

# One test: the server's log, from an offset on, has no crash, no corruption and
# no internal error.  Returns the offset for the next call.
sub log_ok
{
	my ($node, $name, $offset) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my $log = slurp_file($node->logfile, $offset);
	# The leader of a parallel command that finds, while it aborts, that the postmaster was killed ends in
	# its transaction; core asserts that it does not.
	$log =~ s/(FATAL:  postmaster exited during a parallel transaction\n)TRAP: .*\bpgstat\.c".*\n/$1/g;
	my @bad = grep {
		/PANIC|TRAP:|terminated by signal|inconsistent page found|\] XX\d\d\d /
	} split /\n/, $log;
	is(scalar(@bad), 0, "$name: no crash or internal error in the server's log");
	diag(join "\n", @bad[ 0 .. ($#bad > 20 ? 20 : $#bad) ]) if @bad;
	return $offset + length $log;
}

# ---- sessions that wait at injection points --------------------------------------

# Whether the server of sql() was made with injection points: CompatInjectionPoint in common/compat.h.
sub has_points
{
	return 0 if !sql(q(SELECT count(*) FROM pg_available_extensions WHERE name = 'injection_points'));
	sql('CREATE EXTENSION IF NOT EXISTS injection_points');
	return 1;
}

# The statements in a session of sql()'s server, which waits at the point, the first time that it comes there, while the code runs.
# Returns their output; ends the test if they do not come there.
sub at_point
{
	my ($session, $point, $statements, $meanwhile) = @_;

	$session->query_safe("SELECT injection_points_set_local(); SELECT injection_points_attach('$point', 'wait')");
	$session->{stdin} .= "$statements;\n\\echo it_ended\n";
	for (my $end = time + 60; sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = '$point'") == 0; usleep(10_000))
	{
		$session->{run}->pump_nb;
		die "the session ended without coming to $point: $session->{stdout}$session->{stderr}" if $session->{stdout} =~ /it_ended/;
		die "the session does not come to $point within 60 s" if time > $end;
	}
	$meanwhile->();
	sql("SELECT injection_points_detach('$point')", "SELECT injection_points_wakeup('$point')");
	return $session->query_until(qr/it_ended/, '') =~ s/^it_ended\n//mr;
}

# ---- damage --------------------------------------------------------------------

# Restarts the server with the table's file as the sub makes it, which is given a reference to its contents.
sub change_file
{
	my ($node, $table, $change) = @_;
	my $path = $node->safe_psql('postgres', "SELECT pg_relation_filepath('$table')");
	my $file = $node->data_dir . "/$path";

	$node->stop;
	my $bytes = slurp_file($file);
	$change->(\$bytes);
	open my $out, '>:raw', $file or die "$file: $!";
	print $out $bytes;
	close $out or die "$file: $!";
	$node->start;
	return;
}

# The metapage's own checksum in a table's contents is made right: CRC-32C of the list's length, the slots, and the list.
sub seal_metapage
{
	my ($bytes) = @_;
	my $page = 8192;
	my ($n)  = unpack 'L<', substr $$bytes, $page + 28, 4;
	my $crc  = 0xFFFFFFFF;
	foreach my $byte (unpack 'C*', substr $$bytes, $page + 28, 4 + 128 + 8 * $n)
	{
		$crc ^= $byte;
		$crc = ($crc >> 1) ^ ($crc & 1 ? 0x82F63B78 : 0) foreach 1 .. 8;
	}
	substr($$bytes, $page + 24, 4) = pack 'L<', $crc ^ 0xFFFFFFFF;
	return;
}

# The same, page by page: the sub is given a page and its block's number, and returns it changed, or undef; how many it
# has changed.
sub change_pages
{
	my ($node, $table, $change) = @_;
	my $changed = 0;

	change_file(
		$node, $table,
		sub {
			my ($bytes) = @_;
			foreach my $block (0 .. length($$bytes) / 8192 - 1)
			{
				my $page = $change->(substr($$bytes, $block * 8192, 8192), $block);
				next if !defined $page;
				substr($$bytes, $block * 8192, 8192) = $page;
				$changed++;
			}
		});
	return $changed;
}

# ---- servers -------------------------------------------------------------------

# 17.6 forgets that prepared transactions share a lock, of heap's rows, too.
sub server_forgets
{
	my ($node) = @_;
	$node->safe_psql(
		'postgres', q(
CREATE TABLE shared_heap (id int) USING heap;
INSERT INTO shared_heap VALUES (1);
BEGIN; SELECT FROM shared_heap FOR SHARE; PREPARE TRANSACTION 'one';
BEGIN; SELECT FROM shared_heap FOR SHARE; PREPARE TRANSACTION 'two';
));
	my $status = $node->psql('postgres', 'SELECT FROM shared_heap FOR UPDATE NOWAIT');
	$node->safe_psql('postgres', "ROLLBACK PREPARED 'one'; ROLLBACK PREPARED 'two'; DROP TABLE shared_heap");
	note("this server forgets shared locks of prepared transactions") if $status == 0;
	return $status == 0;
}

1;
