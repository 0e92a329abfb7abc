#!/usr/bin/env python3
"""pg_upgrade of a cluster with inplace tables, from one major version to another, in each of its modes.

    upgrade.py --old BINDIR --new BINDIR --work FOLDER [--rows N]

The old cluster is left with all that a shutdown can leave in undo: aborted changes that nothing has put back yet, also
of a transaction that a crash ended, and of prepared ones; rows locked by several transactions; moved and deleted rows; a
large undo.  Each table has a heap twin that the same statements have made.  After the upgrade the tables must have
their old contents, by every way to read them, and those of their twins; inplace_check must find nothing; and
further work, VACUUM included, must keep that so.  Prints a line for each mode, and the number of failures.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from throwaway import Cluster, server_user  # noqa: E402

SETTINGS = """
shared_preload_libraries = 'inplace'
fsync = off
autovacuum = off
max_prepared_transactions = 10
default_statistics_target = 10
"""

TABLES = """
CREATE EXTENSION inplace;
CREATE EXTENSION amcheck;
CREATE TABLE i_rows (id int PRIMARY KEY, k int, n int, t text, big text) USING inplace;
CREATE TABLE i_parts (id int, n int) PARTITION BY RANGE (id);
CREATE TABLE i_parts_1 PARTITION OF i_parts FOR VALUES FROM (0) TO (500) USING inplace;
CREATE TABLE i_parts_2 PARTITION OF i_parts FOR VALUES FROM (500) TO (1000) USING inplace;
CREATE TABLE i_empty (a int) USING inplace;
CREATE UNLOGGED TABLE i_unlogged (id int PRIMARY KEY, n int) USING inplace;
CREATE TABLE i_late (id int, a text DEFAULT 'a') USING inplace;
CREATE TABLE h_rows (LIKE i_rows INCLUDING ALL) USING heap;
CREATE TABLE h_parts (id int, n int) USING heap;
CREATE TABLE h_empty (a int) USING heap;
CREATE UNLOGGED TABLE h_unlogged (LIKE i_unlogged INCLUDING ALL) USING heap;
CREATE TABLE h_late (id int, a text DEFAULT 'a') USING heap;
CREATE INDEX i_rows_k ON i_rows (k);
CREATE INDEX h_rows_k ON h_rows (k);
CREATE INDEX i_rows_n ON i_rows USING brin (n);
"""

# Made on both twins; $ is i or h.
STATEMENTS = """
INSERT INTO $_rows SELECT i, i % 97, 0, repeat(md5(i::text), i % 5), CASE WHEN i % 50 = 0 THEN
  (SELECT string_agg(md5((i * j)::text), '') FROM generate_series(1, 400) j) END FROM generate_series(1, ROWS) i;
INSERT INTO $_parts SELECT i, i FROM generate_series(0, 999) i;
INSERT INTO $_unlogged SELECT i, i FROM generate_series(1, 1000) i;
INSERT INTO $_late SELECT i FROM generate_series(1, 1000) i;
ALTER TABLE $_late ADD b int DEFAULT 7, DROP COLUMN a;
UPDATE $_late SET b = id WHERE id % 2 = 0;
UPDATE $_rows SET n = n + 1;
UPDATE $_rows SET n = n + 1, t = t || 'x' WHERE id % 3 = 0;
BEGIN; UPDATE $_rows SET n = -1, t = 'aborted' WHERE id % 2 = 0; DELETE FROM $_rows WHERE id % 7 = 0;
  INSERT INTO $_rows SELECT i, i, -1, 'aborted', NULL FROM generate_series(ROWS + 1, ROWS + 500) i; ROLLBACK;
BEGIN; UPDATE $_rows SET n = n + 10 WHERE id % 5 = 0; SAVEPOINT s; UPDATE $_rows SET n = -2 WHERE id % 5 < 2;
  ROLLBACK TO s; UPDATE $_rows SET n = n + 100 WHERE id % 11 = 0; COMMIT;
UPDATE $_rows SET k = k + 1 WHERE id % 13 = 0;
BEGIN; UPDATE $_rows SET k = -1 WHERE id % 17 = 0; ROLLBACK;
DELETE FROM $_rows WHERE id % 19 = 0;
UPDATE $_rows SET big = repeat(big, 2) WHERE id % 100 = 0;
UPDATE $_parts SET id = 999 - id WHERE id % 2 = 0;
UPDATE $_unlogged SET n = n + 1;
BEGIN; UPDATE $_rows SET n = n + 1000 WHERE id % 23 = 0; PREPARE TRANSACTION '$_c';
BEGIN; UPDATE $_rows SET n = -3 WHERE id % 29 = 0 AND id % 23 <> 0; DELETE FROM $_parts WHERE id < 50; PREPARE TRANSACTION '$_r';
COMMIT PREPARED '$_c';
ROLLBACK PREPARED '$_r';
"""

# What a crash ends: the other session commits, so that the unfinished work is in WAL.
UNFINISHED = "BEGIN; UPDATE i_rows SET n = -4, t = repeat('crash', 10) WHERE id % 3 = 1; " \
    "DELETE FROM i_parts; INSERT INTO i_rows VALUES (0, 0, -4, 'crash', NULL);"

# After the upgrade, on both twins.
MORE = """
UPDATE $_rows SET n = n + 1 WHERE id % 2 = 0;
BEGIN; UPDATE $_rows SET n = -5; DELETE FROM $_parts; ROLLBACK;
UPDATE $_rows SET k = k + 1 WHERE id % 31 = 0;
INSERT INTO $_rows SELECT i, i % 97, 0, 'new', NULL FROM generate_series(ROWS + 1, ROWS + 1000) i;
DELETE FROM $_rows WHERE id % 37 = 0;
UPDATE $_unlogged SET n = n - 5;
INSERT INTO $_empty SELECT 1 FROM generate_series(1, 10);
UPDATE $_late SET b = b + 1;
"""

CONTENTS = ['rows ORDER BY id', 'parts ORDER BY id, n', 'empty', 'unlogged ORDER BY id', 'late ORDER BY id']


class Failure(Exception):
    pass


class Test:
    def __init__(self, options):
        self.options, self.rows = options, str(options.rows)
        self.base = os.path.join(options.work, 'old')
        self.socket = os.path.join(options.work, 'socket')

    def cluster(self, bindir, data):
        made = Cluster(bindir, data, self.socket, data + '.log')
        made.create(SETTINGS, ['-k'])
        return made

    def sql(self, cluster, text):
        done = cluster.tool('psql', *cluster.connection(), '-d', 'postgres', '-qAtX', '-v', 'ON_ERROR_STOP=1', '-f', '-',
                            stdin=None, input=text, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failure(done.stderr.strip())
        return done.stdout

    def both(self, cluster, statements):
        for twin in 'hi':
            self.sql(cluster, statements.replace('$', twin).replace('ROWS', self.rows))

    def contents(self, cluster, twin, settings=''):
        queries = ["SELECT '%s', count(*), md5(string_agg(r::text, ',')) FROM (SELECT * FROM %s_%s) r;"
                   % (what.split()[0], twin, what) for what in CONTENTS]
        return self.sql(cluster, settings + '\n'.join(queries))

    def check(self, cluster, where):
        """The twins are equal, by sequential, index and bitmap scans; no damage.  Returns the contents."""
        heap = self.contents(cluster, 'h')
        for scan in ('', 'SET enable_seqscan = off; SET enable_bitmapscan = off;',
                     'SET enable_seqscan = off; SET enable_indexscan = off;'):
            if self.contents(cluster, 'i', scan) != heap:
                raise Failure('%s: the tables differ from their heap twins (%s)' % (where, scan))
        damage = self.sql(cluster, "SELECT c.relname, p.* FROM pg_class c, inplace_check(c.oid) p "
                                   "WHERE c.relam = (SELECT oid FROM pg_am WHERE amname = 'inplace')")
        if damage:
            raise Failure('%s: inplace_check finds damage:\n%s' % (where, damage))
        self.sql(cluster, "SELECT bt_index_check(c.oid, true) FROM pg_class c JOIN pg_index i ON indexrelid = c.oid "
                          "JOIN pg_am a ON a.oid = c.relam WHERE amname = 'btree' AND c.relname ~ '^i_'")
        return heap

    def prepare(self):
        """The old cluster, shut down; returns its contents."""
        old = self.cluster(self.options.old, self.base).start()
        try:
            self.sql(old, TABLES)
            self.both(old, STATEMENTS)
            self.sql(old, "SELECT count(*) FROM (SELECT * FROM i_rows WHERE id % 41 = 0 FOR SHARE) s;")
            self.crash_in_transaction(old)
            self.drop_unknown_options(old)
            contents = self.check(old, 'before the upgrade')
            records = self.sql(old, "SELECT sum(pages) FROM inplace_undo_rings('i_rows')")
            print('old cluster: %s undo pages of i_rows' % records.strip(), flush=True)
        finally:
            if old.running():
                old.stop()
        return contents

    def drop_unknown_options(self, old):
        """Minor releases from 15.20 on keep a version of each column in attoptions.  A new server that was released
        before them cannot restore that, whatever the tables are; so it must not be there."""
        with open(os.path.join(self.options.new, 'pg_dump'), 'rb') as pg_dump:
            if b'pg_attver' in pg_dump.read():
                return
        if self.sql(old, "UPDATE pg_attribute SET attoptions = NULL WHERE attoptions::text ~ 'pg_attver' RETURNING 1"):
            print('old cluster: without versions of columns, which the new server does not know', flush=True)

    def crash_in_transaction(self, old):
        session = subprocess.Popen(
            [os.path.join(old.bindir, 'psql'), *old.connection(), '-d', 'postgres', '-qAtX'], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, env=old.env, cwd=old.socket, **server_user())
        session.stdin.write(UNFINISHED + "\n\\echo done\n")
        session.stdin.flush()
        if session.stdout.readline().strip() != 'done':
            raise Failure('the unfinished transaction did not begin')
        self.sql(old, 'CREATE TABLE flushed (); CHECKPOINT;')
        old.stop('immediate')
        session.stdin.close()
        session.wait()
        old.start()

    @staticmethod
    def named_log(output):
        """The end of the file that pg_upgrade names as the place of its error."""
        named = re.search(r'"(/[^"]*\.log)"', output)
        if not named or not os.path.exists(named.group(1)):
            return ''
        with open(named.group(1), encoding='utf-8', errors='replace') as log:
            return 'Its log:\n' + ''.join(log.readlines()[-30:])

    def upgrade(self, mode, contents):
        old_data, new_data = (os.path.join(self.options.work, '%s_%s' % (mode, which)) for which in ('old', 'new'))
        subprocess.run(['cp', '-a', self.base, old_data], check=True)
        new = self.cluster(self.options.new, new_data)
        done = new.tool('pg_upgrade', '--old-bindir', self.options.old, '--new-bindir', self.options.new,
                        '--old-datadir', old_data, '--new-datadir', new_data, '--username', 'postgres',
                        *([] if mode == 'copy' else ['--' + mode]), '--socketdir', self.socket,
                        capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failure('pg_upgrade --%s failed:\n%s%s%s' % (mode, done.stdout, done.stderr, self.named_log(done.stdout)))
        new.start()
        try:
            if self.check(new, 'after the upgrade') != contents:
                raise Failure('the contents have changed')
            self.both(new, MORE)
            self.check(new, 'after more work')
            self.sql(new, 'VACUUM FREEZE')
            self.check(new, 'after VACUUM')
            self.sql(new, 'VACUUM FULL i_rows')
            self.check(new, 'after VACUUM FULL')
            bad = re.findall(r'.*(?:PANIC|TRAP).*', new.log())
            if bad:
                raise Failure(bad[0])
        finally:
            new.stop()
        for folder in (old_data, new_data):
            shutil.rmtree(folder)

    def modes(self):
        help_text = subprocess.run([os.path.join(self.options.new, 'pg_upgrade'), '--help'], check=True,
                                   capture_output=True, text=True).stdout
        return [mode for mode in ('copy', 'link', 'swap') if mode == 'copy' or '--' + mode in help_text]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--old', required=True)
    parser.add_argument('--new', required=True)
    parser.add_argument('--work', required=True)
    parser.add_argument('--rows', type=int, default=20000)
    test = Test(parser.parse_args())
    os.makedirs(test.socket, exist_ok=True)
    failures = 0
    contents = test.prepare()
    old = subprocess.run([os.path.join(test.options.old, 'postgres'), '--version'], check=True, capture_output=True, text=True).stdout.strip()
    for mode in test.modes():
        try:
            test.upgrade(mode, contents)
            print('ok   %s  from %s' % (mode, old), flush=True)
        except (Failure, subprocess.SubprocessError, OSError) as failure:
            failures += 1
            print('FAIL %s  %s' % (mode, failure), flush=True)
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
