# What stock heap code does when it is let loose on our tables.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('main', conf => 'autovacuum = off');
create_heap_code($node);

# ---- on a heap, the functions do what they are for ---------------------------------------

$node->safe_psql('postgres', q(
CREATE TABLE h (id int PRIMARY KEY, body text) USING heap;
INSERT INTO h SELECT i, 'row ' || i FROM generate_series(1, 20) i));
my @calls = (
	[ 'insert',             undef,    q(ROW(101, 'new')::h),   '(0,21)' ],
	[ 'multi_insert',       undef,    q(ROW(102, 'new')::h),   '(0,22)' ],
	[ 'simple_insert',      undef,    q(ROW(103, 'new')::h),   '(0,23)' ],
	[ 'catalog_insert',     undef,    q(ROW(104, 'new')::h),   '(0,24)' ],
	[ 'update',             '(0,1)',  q(ROW(1, 'newer')::h),   'ok' ],
	[ 'simple_update',      '(0,2)',  q(ROW(2, 'newer')::h),   '(0,26)' ],
	[ 'catalog_update',     '(0,3)',  q(ROW(3, 'newer')::h),   '(0,27)' ],
	[ 'inplace_update',     '(0,4)',  q(ROW(4, 'ROW 4')::h),   'done' ],
	[ 'delete',             '(0,5)',  undef,                   'ok' ],
	[ 'simple_delete',      '(0,6)',  undef,                   'done' ],
	[ 'catalog_delete',     '(0,7)',  undef,                   'done' ],
	[ 'lock_key_share',     '(0,8)',  undef,                   'ok' ],
	[ 'lock_share',         '(0,8)',  undef,                   'ok' ],
	[ 'lock_no_key_update', '(0,8)',  undef,                   'ok' ],
	[ 'lock_update',        '(0,8)',  undef,                   'ok' ],
	[ 'fetch',              '(0,9)',  undef,                   '1' ],
	[ 'fetch',              '(0,5)',  undef,                   '0' ],
	[ 'fetch_any',          '(0,5)',  undef,                   '1' ],
	[ 'hot_search',         '(0,1)',  undef,                   '1' ],
	[ 'latest_tid',         '(0,1)',  undef,                   '(0,25)' ],
	[ 'prune',              '(0,1)',  undef,                   'done' ],
	[ 'scan',               undef,    undef,                   '21' ],
	[ 'getnext',            undef,    undef,                   '21' ],
	[ 'index_build',        undef,    undef,                   '21' ]);

sub call
{
	my ($rel, $what, $tid, $row) = @_;
	return sprintf "SELECT heap_code('%s', '%s', %s, %s)", $what, $rel, $tid ? "'$tid'" : 'NULL', $row // 'NULL';
}

foreach my $c (@calls)
{
	my ($what, $tid, $row, $answer) = @$c;
	is($node->safe_psql('postgres', call('h', $what, $tid, $row)), $answer, "heap: $what");
}

log_ok($node, 'whole run', 0);
$node->stop;
done_testing();
