# Tables of extensions are heap tables, whatever default_table_access_method is, unless the
# extension's script says otherwise.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %control = map { $_ => "relocatable = true\n" } qw(ext_first ext_tables ext_broken ext_trusted ext_says);
$control{ext_tables}  .= "default_version = '1.0'\nrequires = 'ext_first'\n";
$control{ext_trusted} .= "default_version = '1.0'\ntrusted = true\nsuperuser = true\n";
$control{$_} .= "default_version = '1.0'\n" foreach qw(ext_first ext_broken ext_says);

my $install = private_installation(
	(map { ("$_.control" => $control{$_}) } keys %control),
	'ext_first--1.0.sql' => 'CREATE TABLE first (x int)',
	# the first statement is a function's call, and a table is the first thing that the function makes
	'ext_tables--1.0.sql' => q(
CREATE FUNCTION make(name text) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$BEGIN EXECUTE format('CREATE TABLE %I (x int)', name); END$$;
SELECT make('by_function');
CREATE TABLE plain (x int PRIMARY KEY, body text);
CREATE UNLOGGED TABLE unlogged (x int);
CREATE TABLE empty ();
CREATE TABLE liked (LIKE plain INCLUDING ALL);
CREATE TABLE selected AS SELECT generate_series(1, 10) AS x;
SELECT x INTO selected_into FROM selected;
CREATE MATERIALIZED VIEW materialized AS SELECT * FROM selected;
CREATE TABLE parted (x int) PARTITION BY RANGE (x);
CREATE TABLE part PARTITION OF parted FOR VALUES FROM (0) TO (10);
CREATE TABLE inherited () INHERITS (plain);
SELECT set_config(name, 'on', true) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query'); -- until 15, since 16
CREATE TABLE in_parallel AS SELECT count(*) FROM selected;
DO $$BEGIN CREATE TABLE in_block (x int); RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN CREATE TABLE after_abort (x int); END$$;
CREATE TABLE says_heap (x int) USING heap;
CREATE TABLE says_inplace (x int) USING inplace),
	'ext_tables--1.0--1.1.sql' => 'CREATE TABLE updated1 (x int)',
	'ext_tables--1.1--1.2.sql' => 'CREATE TABLE updated2 (x int); CREATE TABLE updated2_says_inplace (x int) USING inplace',
	'ext_tables--1.2--1.3.sql' => q(SET LOCAL default_table_access_method = 'inplace'; CREATE TABLE updated3_says_inplace (x int)),
	'ext_tables--1.3--1.4.sql' => 'CREATE TABLE updated4 (x int); SELECT 1/0',
	'ext_broken--1.0.sql' => 'CREATE TABLE before (x int); SELECT 1/0',
	'ext_trusted--1.0.sql' => 'CREATE TABLE trusted (x int)',
	'ext_says--1.0.sql' => q(
SELECT set_config('default_table_access_method', 'inplace', true);
CREATE TABLE script_says_inplace (x int);
RESET default_table_access_method;
CREATE TABLE reset_says_inplace (x int);
CREATE TABLE says_heap (x int) USING heap));

my $node = new_cluster('main', install_path => $install, conf => "default_table_access_method = 'inplace'\nautovacuum = off");
$node->safe_psql('postgres', 'CREATE ROLE other LOGIN; CREATE ROLE someone LOGIN; GRANT CREATE ON DATABASE postgres TO someone');

# The tables whose access method is not what their names say, in one schema.
my $wrong = q(SELECT string_agg(relname || ' is ' || amname, ', ' ORDER BY 1) FROM pg_class c JOIN pg_am a ON a.oid = relam
WHERE relnamespace = 's'::regnamespace AND relkind IN ('r', 'm')
AND amname <> CASE WHEN relname ~ '(says_inplace|users)$' THEN 'inplace' ELSE 'heap' END);
my $count = q(SELECT count(*) FROM pg_class WHERE relnamespace = 's'::regnamespace AND relkind IN ('r', 'm'));
my $create = 'CREATE SCHEMA s; SET search_path = s, public';

# One test: after these statements, which make so many tables.
sub tables_are
{
	my ($name, $sql, $tables, %params) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($out, $err);
	$node->psql(
		'postgres', "BEGIN; $create; $sql; CREATE TABLE users (x int); SHOW default_table_access_method; SHOW inplace.in_extension_script; $wrong; $count; ROLLBACK",
		stdout => \$out, stderr => \$err, on_error_stop => 0, extra_params => $params{extra} // []);
	is($out, join("\n", $params{default} // 'inplace', 'off', $params{wrong} // '', $tables + 1), $name);
	like($err, $params{error} // qr/^$/, "$name: messages");
	return;
}

tables_are('postgresql.conf', 'CREATE EXTENSION ext_tables CASCADE', 15, error => qr/^psql:.*NOTICE:  installing required extension "ext_first"$/);
tables_are('SET', 'SET default_table_access_method = inplace; CREATE EXTENSION ext_first; CREATE EXTENSION ext_tables', 15);
tables_are('SET LOCAL', 'SET LOCAL default_table_access_method = inplace; CREATE EXTENSION ext_first', 1);
tables_are('default heap', 'CREATE TABLE users2 (x int) USING inplace; DROP TABLE users2; SET LOCAL default_table_access_method = heap; CREATE EXTENSION ext_first; SET default_table_access_method = inplace', 1);
tables_are('two in a transaction', 'CREATE EXTENSION ext_first; CREATE TABLE a_users (x int); CREATE EXTENSION ext_trusted', 3);
tables_are('a script that says otherwise', 'CREATE EXTENSION ext_says', 3);
tables_are('in a function', q(DO $$BEGIN CREATE EXTENSION ext_first; CREATE TABLE a_users (x int); CREATE EXTENSION ext_trusted; END$$), 3);
tables_are('ALTER EXTENSION UPDATE, two scripts', q(CREATE EXTENSION ext_first; CREATE EXTENSION ext_tables; CREATE TABLE a_users (x int); ALTER EXTENSION ext_tables UPDATE TO '1.2'), 19);
tables_are('CREATE EXTENSION with updates', q(CREATE EXTENSION ext_first; CREATE EXTENSION ext_tables VERSION '1.2'), 18);
tables_are('an update that says otherwise', q(CREATE EXTENSION ext_first; CREATE EXTENSION ext_tables VERSION '1.2'; ALTER EXTENSION ext_tables UPDATE TO '1.3'), 19);
tables_are('a script that fails', 'SAVEPOINT a; CREATE EXTENSION ext_broken; ROLLBACK TO a; CREATE EXTENSION ext_first', 1, error => qr/ERROR:  division by zero/);
tables_are('an update that fails',
	q(CREATE EXTENSION ext_first; CREATE EXTENSION ext_tables VERSION '1.3'; SAVEPOINT a; ALTER EXTENSION ext_tables UPDATE TO '1.4'; ROLLBACK TO a; CREATE TABLE a_users (x int)),
	20, error => qr/ERROR:  division by zero/);
tables_are('a failure that is caught', q(DO $$BEGIN CREATE EXTENSION ext_broken; EXCEPTION WHEN division_by_zero THEN CREATE TABLE a_users (x int); END$$), 1);
tables_are('another name of inplace',
	'CREATE ACCESS METHOD other_inplace TYPE TABLE HANDLER inplace_tableam_handler; SET LOCAL default_table_access_method = other_inplace; CREATE EXTENSION ext_first; SET LOCAL default_table_access_method = inplace', 1);
tables_are('another access method',
	'CREATE ACCESS METHOD other_heap TYPE TABLE HANDLER heap_tableam_handler; SET LOCAL default_table_access_method = other_heap; CREATE EXTENSION ext_first; SET LOCAL default_table_access_method = inplace', 1, wrong => 'first is other_heap');

$node->append_conf('postgresql.conf', "default_table_access_method = 'heap'");
$node->reload;
foreach my $setting ('ALTER DATABASE postgres', 'ALTER ROLE other', 'ALTER ROLE other IN DATABASE postgres')
{
	$node->safe_psql('postgres', "$setting SET default_table_access_method = inplace; ALTER ROLE other SUPERUSER");
	tables_are($setting, 'CREATE EXTENSION ext_first', 1, extra => [ '-U', 'other' ]);
	$node->safe_psql('postgres', "$setting RESET default_table_access_method");
}
{
	local $ENV{PGOPTIONS} = '-c default_table_access_method=inplace';
	tables_are('PGOPTIONS', 'CREATE EXTENSION ext_first', 1);
	tables_are('a trusted extension of an ordinary user', 'CREATE EXTENSION ext_trusted', 1, extra => [ '-U', 'someone' ]);
}

# ---- outside of a transaction block, for good, and in a database that does not have the extension ---------------

$node->append_conf('postgresql.conf', "default_table_access_method = 'inplace'");
$node->reload;
$node->safe_psql('postgres', $create);
$node->safe_psql('postgres', "SET search_path = s; CREATE EXTENSION ext_first");
$node->safe_psql('postgres', "SET search_path = s; CREATE EXTENSION ext_tables");
$node->safe_psql('postgres', "SET search_path = s; ALTER EXTENSION ext_tables UPDATE TO '1.3'");
is($node->safe_psql('postgres', "SET search_path = s; $wrong; $count"), "\n19", 'committed');
is($node->safe_psql('postgres', 'DROP EXTENSION ext_tables, ext_first; ' . $count), 0, 'DROP EXTENSION');
$node->safe_psql('postgres', 'CREATE DATABASE without');
$node->safe_psql('without', "SET default_table_access_method = heap; DROP EXTENSION IF EXISTS inplace");
my (undef, undef, $err) = $node->psql('without', 'CREATE EXTENSION ext_first');
like($err, qr/access method "inplace" does not exist/, 'a default that does not exist is an error as ever');
$node->safe_psql('without', 'CREATE EXTENSION inplace; CREATE EXTENSION ext_first');
is($node->safe_psql('without', q(SELECT amname FROM pg_class JOIN pg_am a ON a.oid = relam WHERE relname = 'first')), 'heap', 'inplace is created first');
(undef, undef, $err) = $node->psql('postgres', 'SET inplace.in_extension_script = on');
like($err, qr/cannot be changed/, 'the mark cannot be set');

log_ok($node, 'whole run', 0);
$node->stop;
done_testing();
