# Heap as the oracle: the same statements run in two schemas, "i" where tables are
# inplace tables and "h" where they are heaps, and must give the same answers,
# errors included.
package InplaceTwin;

use strict;
use warnings;

use Exporter 'import';
use InplaceTest qw(same_pairs);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(
  create_twin_schemas
  twin_options
  run_both
  same_answer
  same_tables
);

sub create_twin_schemas
{
	my ($node, $db) = @_;
	$node->safe_psql($db // 'postgres', 'CREATE SCHEMA i; CREATE SCHEMA h');
	return;
}

# What makes a session one of schema "i" or "h": a value for PGOPTIONS.
sub twin_options
{
	my ($schema) = @_;
	return "-c search_path=$schema,public -c default_table_access_method="
	  . ($schema eq 'i' ? 'inplace' : 'heap');
}

# Runs statements in both schemas.  They must succeed.
sub run_both
{
	my ($node, $sql, $db) = @_;
	foreach my $schema ('i', 'h')
	{
		local $ENV{PGOPTIONS} = twin_options($schema);
		$node->safe_psql($db // 'postgres', $sql);
	}
	return;
}

# One test: statements say the same in both schemas, on stdout and stderr, but for the
# schema's name.  With "pattern", that must also match.  Returns what "i" said.
sub same_answer
{
	my ($node, $name, $sql, $pattern) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my %said;
	foreach my $schema ('i', 'h')
	{
		my ($stdout, $stderr);
		local $ENV{PGOPTIONS} = twin_options($schema);
		$node->psql(
			'postgres', "\\set VERBOSITY default\n$sql",
			stdout        => \$stdout,
			stderr        => \$stderr,
			on_error_stop => 0);
		$said{$schema} = "$stdout\n$stderr" =~ s/\b$schema\.//gr;
	}
	is($said{i}, $said{h}, "$name: as heap says");
	like($said{i}, $pattern, "$name: what was to be tested happened")
	  if defined $pattern;
	return $said{i};
}

# One test: tables have the same rows in both schemas.
sub same_tables
{
	my ($node, $name, @tables) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return same_pairs($node, $name, map { [ "i.$_", "h.$_" ] } @tables);
}

1;
