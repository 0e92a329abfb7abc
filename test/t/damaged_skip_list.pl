# Damaged records of a skip list: who has to read them says so, and a writer, who only looks for the list's newest one, begins
# another list.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use constant {
	KIND_OFFSET => 8192 - 4,
	KIND_UNDO   => 3,
	ITEM_BIAS   => 20,
	IS_UPDATE   => 2,
	HAS_SKIP    => 0x40,
};

my $node = new_cluster('main',
	conf => "autovacuum = off\ninplace.debug_undo_at_home = off\ninplace.debug_heal = off\nrestart_after_crash = on\nmax_prepared_transactions = 1\n");

sql_on(\$node);

sub skips
{
	return sql(q(SELECT count(*) FROM generate_series(1, pg_relation_size('chain') / 8192 - 1) block,
		LATERAL inplace_undo_records('chain', block) u WHERE 'skip' = ANY (u.flags)));
}

# The last byte of each record that is part of a list is not there any more.
sub damage
{
	my $found = 0;
	change_pages(
		$node, 'chain',
		sub {
			my ($page) = @_;
			return if unpack('v', substr($page, KIND_OFFSET, 2)) != KIND_UNDO;
			my $lower = unpack 'v', substr($page, 12, 2);
			for (my $lp = 24; $lp < $lower; $lp += 4)
			{
				my $word = unpack 'V', substr($page, $lp, 4);
				my $kind = ord substr($page, ($word & 0x7FFF) + ITEM_BIAS, 1);
				next if ($kind & 0x0F) != IS_UPDATE || !($kind & HAS_SKIP);
				substr($page, $lp, 4) = pack 'V', $word - (1 << 17);
				$found++;
			}
			return $page;
		});
	return $found;
}

sub fails
{
	my ($what, $name) = @_;
	my (undef, undef, $stderr) = $node->psql('postgres', $what);
	like($stderr, qr/corrupted undo record \(\d+,\d+\) of relation "chain": undo record of a skip list does not have a whole body/, $name);
	return;
}

# what a transaction has changed many times, and has rolled back
sql('CREATE TABLE chain (id int PRIMARY KEY, n int) USING inplace', 'INSERT INTO chain SELECT i, 0 FROM generate_series(1, 20) i',
	'DO $$BEGIN FOR i IN 1 .. 600 LOOP UPDATE chain SET n = n + 1 WHERE id = 1; END LOOP; ROLLBACK; END$$');
is(sql('SELECT sum(n) FROM chain'), '0', 'the old version is found');
my $skips = skips();
cmp_ok($skips, '>', 5, 'there is a list');
is(damage(), $skips, 'its records are damaged');
fails('SELECT sum(n) FROM chain', 'aborted: a scan');
fails('SELECT n FROM chain WHERE id = 1', 'aborted: a fetch');
fails('UPDATE chain SET n = 2 WHERE id = 1', 'aborted: an update');
sql('UPDATE chain SET n = 2 WHERE id = 2');
is(sql('SELECT n FROM chain WHERE id = 2'), '2', 'aborted: a neighbour');
sql('DROP TABLE chain');

# what transactions have changed that another one, which is prepared, does not see
sql('CREATE TABLE other (id int)', 'CREATE TABLE chain (id int PRIMARY KEY, n int) USING inplace',
	'INSERT INTO chain SELECT i, 0 FROM generate_series(1, 20) i');
sql(q(BEGIN; INSERT INTO other VALUES (1); PREPARE TRANSACTION 'old'));
my $many = 'DO $$BEGIN FOR i IN 1 .. 1500 LOOP UPDATE chain SET n = n + 1 WHERE id = 1; COMMIT; END LOOP; END$$';
sql($many);
$skips = skips();
cmp_ok($skips, '>', 10, 'there is a list of committed changes');
is(damage(), $skips, 'its records are damaged');
sql($many);
is(sql('SELECT n FROM chain WHERE id = 1'), '3000', 'committed: updates go on');
my $undamaged = sql(q(SELECT count(*) FROM inplace_check('chain')));
cmp_ok($undamaged, '>', 0, 'committed: the damage is found');
sql(q(ROLLBACK PREPARED 'old'), 'VACUUM chain');
is(sql('SELECT sum(n) FROM chain'), '3000', 'committed: after the old transaction');

unlike(slurp_file($node->logfile), qr/PANIC|TRAP:|terminated by signal/, 'no crash');
$node->stop;
done_testing();
