# ALTER EXTENSION inplace UPDATE: from each version that was ever released, the catalogs are afterwards what a fresh
# CREATE EXTENSION makes.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# A release adds its version here; there must be a way from each of these to the default version.
my @released = ('1.0');

# All members of the extension, with all that the catalogs say of them.
my $members = q{
SELECT pg_describe_object(d.classid, d.objid, d.objsubid), obj_description(d.objid, d.classid::regclass::text::name),
	pg_get_functiondef(p.oid), p.proacl, a.amtype, a.amhandler, t.typname, i.privtype, i.initprivs
FROM pg_depend d
LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
LEFT JOIN pg_am a ON d.classid = 'pg_am'::regclass AND a.oid = d.objid
LEFT JOIN pg_type t ON d.classid = 'pg_type'::regclass AND t.oid = d.objid
LEFT JOIN pg_init_privs i ON i.classoid = d.classid AND i.objoid = d.objid AND i.objsubid = d.objsubid
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
	AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'inplace')
ORDER BY 1};

sub read_script
{
	my ($name) = @_;
	chomp(my $share = `$ENV{PG_CONFIG} --sharedir`);
	return slurp_file("$share/extension/$name");
}

# members_after(node, version): of a new database in which this version was made and updated to the default one.
my $databases = 0;

sub members_after
{
	my ($node, $version) = @_;
	my $database = 'update_' . $databases++;

	$node->safe_psql('postgres', "CREATE DATABASE $database TEMPLATE template0");
	$node->safe_psql($database, 'CREATE EXTENSION inplace' . (defined $version ? " VERSION '$version'" : ''));
	$node->safe_psql($database, 'ALTER EXTENSION inplace UPDATE') if defined $version;
	return $node->safe_psql($database, $members);
}

# ---- the versions there are

my $node = new_cluster('released');
my $default = $node->safe_psql('postgres',
	"SELECT default_version FROM pg_available_extensions WHERE name = 'inplace'");
my $fresh = members_after($node, undef);
cmp_ok(scalar(split /\n/, $fresh), '>', 7, 'a fresh extension has members');
like($fresh, qr/^access method inplace\|/m, 'the access method is among them');
ok((grep { $_ eq $default } @released), "the default version $default is in the list of released ones");

my %known = map { $_ => 1 } @released, split /\n/, $node->safe_psql('postgres',
	"SELECT version FROM pg_available_extension_versions WHERE name = 'inplace'");
foreach my $version (sort keys %known)
{
	my $path = $version eq $default ? $default : $node->safe_psql('postgres',
		"SELECT path FROM pg_extension_update_paths('inplace') WHERE source = '$version' AND target = '$default'");
	isnt($path, '', "there is a way from $version to $default");
	is(members_after($node, $version), $fresh, "$version updated is what a fresh $default is");
}
$node->stop;

# ---- does this test see a difference?  Two older versions are invented: an update that does all, and one that does not

my $script = read_script("inplace--$default.sql");
my ($grant) = $script =~ /^(GRANT EXECUTE ON FUNCTION inplace_check.*;)$/m;
my $older = $script =~ s/^\Q$grant\E$//mr;
my $path = private_installation(
	'inplace--0.1.sql' => $older, "inplace--0.1--$default.sql" => $grant,
	'inplace--0.2.sql' => $older, "inplace--0.2--$default.sql" => "-- the GRANT is forgotten\n");
$node = new_cluster('invented', install_path => $path);
$fresh = members_after($node, undef);
is(members_after($node, '0.1'), $fresh, 'a whole update leaves no difference');
isnt(members_after($node, '0.2'), $fresh, 'a forgotten GRANT is a difference');
$node->stop;

done_testing();
