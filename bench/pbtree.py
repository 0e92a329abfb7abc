#!/usr/bin/env python3
"""btree and pbtree in turns on one server: sizes, processor time, comparisons.

    bench/pbtree.py --socket FOLDER --data FILE.sql [--port N] [--rows N] [--rounds N] [PART ...]

The server has pbtree in shared_preload_libraries; parts: size build insert lookup skip clients descent; and update and accounts, of heap with
btree and of inplace (preloaded, too) with pbtree.  These two need no FILE.sql, and as clients does pgbench on the PATH.  FILE.sql makes the table
land_registry_price_paid_uk (psql variable n: its rows).  Times are the processor time of the backend that does the work,
which others on the machine disturb less than the time that passes.  Prints a line of a Markdown table for each figure.
"""
import argparse
import os
import statistics
import subprocess

import psycopg2

from lib.db import AMS, Database
from lib.workload import TPS, load_accounts, orders, start_pgbench

TABLE = 'land_registry_price_paid_uk'
MISC = """CREATE UNLOGGED TABLE misc WITH (autovacuum_enabled = off) AS
SELECT g::int4 AS i4, g::int8 AS i8, timestamptz '1995-01-01' + random() * interval '9000 days' AS ts, transaction AS u,
    newly_built AS b, property_type::"char" AS c, transfer_date AS d, price::int4 AS p, NULL::text AS nothing, county, city, locality,
    'https://www.example.org/catalogue/products/' || substr(county, 1, 9) || '/' || lower(street) || '/' || g %% 1000 || '.html' AS url
FROM (SELECT row_number() OVER () AS g, * FROM %s) x""" % TABLE
SIZES = [('(county, city, locality)', TABLE, 'county, city, locality', .60),
         ('(district, street, paon, saon)', TABLE, 'district, street, paon, saon', .60),
         ('(postcode, paon)', TABLE, 'postcode, paon', .60), ('text URLs', 'misc', 'url', .60),
         ('int4', 'misc', 'i4', .75), ('int8', 'misc', 'i8', .65), ('uuid', 'misc', 'u', .88), ('timestamptz', 'misc', 'ts', .65)]
TIMES = [('(transaction)', 'u', 1.0), ('(county, city, locality)', 'county, city, locality', .80),
         ('(county COLLATE "en_US", city, locality)', 'county COLLATE "en_US", city, locality', .80),
         ('(always_null, county, city, locality)', 'nothing, county, city, locality', .80),
         ('(bool, "char", date, int4)', 'b, c, d, p', .95)]


# tables by their secondary indexes; the update of one indexed column; bars for TPS, WAL, size
UPDATES = [('an index on abalance', 'aid int PRIMARY KEY, bid int, abalance int, filler char(84)', "g, 1, 0, ''",
            ['abalance'], 'abalance = abalance + :v', (1.4, .6, .5)),
           ('five indexes', 'aid int PRIMARY KEY, a int, b int, c int, d timestamptz, e text, filler char(60)',
            "g, g, g % 1000, g * 7, now() + g * interval '1 s', 'name ' || g % 5000, ''", 'abcde', 'a = :v', (2.0, .35, .5))]


class Bench:
    def __init__(self, args):
        self.args = args
        os.environ.update(PGHOST=args.socket, PGPORT=str(args.port), PGUSER='postgres', PGDATABASE='postgres')
        self.connection = psycopg2.connect()
        self.connection.autocommit = True
        self.pid = self.ask('SELECT pg_backend_pid()')

    def ask(self, text):
        with self.connection.cursor() as cursor:
            cursor.execute(text)
            return cursor.fetchone()[0] if cursor.description else None

    def cpu(self):
        with open('/proc/%d/stat' % self.pid, encoding='ascii') as file:
            fields = file.read().rpartition(')')[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

    def timed(self, text):
        before = self.cpu()
        self.ask(text)
        return self.cpu() - before

    def line(self, what, btree, pbtree, bar, form='%.2f s'):
        ratio = pbtree / btree if btree else float('nan')
        print('| %s | %s | %s | %.2f | %s |%s' % (what, form % btree, form % pbtree, ratio, bar,
              ' missed' if (ratio < bar if what.endswith('TPS') else ratio > bar) else ''),
              flush=True)

    def make(self):
        self.ask('CREATE EXTENSION IF NOT EXISTS pbtree')
        if self.ask("SELECT to_regclass('%s') IS NULL" % TABLE):
            subprocess.run(['psql', '-Xq', '-v', 'n=%d' % self.args.rows, '-f', self.args.data], check=True, stdout=subprocess.DEVNULL)
        if self.ask("SELECT to_regclass('misc') IS NULL OR NOT EXISTS (SELECT FROM pg_attribute "
                    "WHERE attrelid = to_regclass('misc') AND attname = 'nothing')"):
            self.ask('DROP TABLE IF EXISTS misc')
            self.ask(MISC)
            self.ask('VACUUM ANALYZE misc')
        self.ask("SET maintenance_work_mem = '1GB'; SET max_parallel_maintenance_workers = 0; SET max_parallel_workers_per_gather = 0")

    def pair(self, measure):
        """The medians of both, in turns."""
        found = {'btree': [], 'pbtree': []}
        for turn in range(self.args.rounds):
            for method in (('btree', 'pbtree'), ('pbtree', 'btree'))[turn % 2]:
                found[method].append(measure(method))
        return statistics.median(found['btree']), statistics.median(found['pbtree'])

    def index(self, method, table, columns, name='bench'):
        self.ask('DROP INDEX IF EXISTS %s' % name)
        return self.timed('CREATE INDEX %s ON %s USING %s (%s)' % (name, table, method, columns))

    def size(self):
        for what, table, columns, bar in SIZES:
            sizes = []
            for method in ('btree', 'pbtree'):
                self.index(method, table, columns)
                sizes.append(self.ask("SELECT pg_relation_size('bench') / 1e6"))
            self.line('size: ' + what, *map(float, sizes), bar, '%.1f MB')

    def build(self):
        for what, columns, bar in TIMES:
            try:
                self.line('REINDEX: ' + what, *self.pair(lambda method: self.index(method, 'misc', columns)), bar)
            except psycopg2.errors.UndefinedObject as error:
                print('left out: REINDEX %s: %s' % (what, str(error).split('\n', maxsplit=1)[0]))

    def insertion(self, method, columns):
        self.ask('DROP TABLE IF EXISTS into_misc')
        self.ask('CREATE UNLOGGED TABLE into_misc (LIKE misc) WITH (autovacuum_enabled = off)')
        self.ask('CREATE INDEX ON into_misc USING %s (%s)' % (method, columns))
        return self.timed('INSERT INTO into_misc SELECT * FROM misc LIMIT %d' % self.args.inserts)

    def insert(self):
        for what, columns, bar in TIMES:
            try:
                self.line('INSERT: ' + what, *self.pair(lambda method: self.insertion(method, columns)), bar)
            except psycopg2.errors.UndefinedObject as error:
                print('left out: INSERT %s: %s' % (what, str(error).split('\n', maxsplit=1)[0]))

    def lookup(self):
        self.ask('SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off')
        loop = "DO $$ DECLARE i int; x bigint; BEGIN FOR i IN 1..%d LOOP %s END LOOP; END $$"
        n = self.args.rows
        cases = [('point lookup, int4', 'i4', 100000, 'SELECT p INTO x FROM misc WHERE i4 = (i * 7919::int8 %% %d)::int4;' % n),
                 ('index-only scan of 100, int4', 'i4', 5000,
                  'SELECT count(i4) INTO x FROM misc WHERE i4 >= i * 500 AND i4 < i * 500 + 100;'),
                 ('range scan of 100, int4', 'i4', 5000, 'SELECT sum(p) INTO x FROM misc WHERE i4 >= i * 500 AND i4 < i * 500 + 100;'),
                 ('range scan of 10,000, int4', 'i4', 50, 'SELECT sum(p) INTO x FROM misc WHERE i4 >= i * 50000 AND i4 < i * 50000 + 10000;'),
                 ('index-only scan of 10,000, int4', 'i4', 50,
                  'SELECT count(i4) INTO x FROM misc WHERE i4 >= i * 50000 AND i4 < i * 50000 + 10000;'),
                 ('point lookup, (district, street, paon, saon)', None, 30000,
                  "SELECT count(*) INTO x FROM %s WHERE district = 'CITY OF WESTMINSTER' AND street = 'X' || i AND paon = '7' AND saon = '';" % TABLE)]
        for what, columns, times, body in cases:
            table, columns = ('misc', columns) if columns else (TABLE, 'district, street, paon, saon')

            def measure(method):
                self.index(method, table, columns)
                self.ask('VACUUM %s' % table)
                statement = loop % (times, body)
                self.ask(statement)
                return self.timed(statement) / times * 1e6
            self.line(what, *self.pair(measure), 1.0, '%.2f us')

    def skip(self):
        """Conditions behind columns without one: btree skips from 18 on.  From few rows of a group to one, where nothing can be skipped."""
        self.ask('SET enable_seqscan = off; SET enable_bitmapscan = off')
        for what, columns, where, times in (
                ('(bool, int4): int4 = ', 'b, i4', 'i4 = %s', 20000), ('(county, int4): int4 = ', 'county, i4', 'i4 = %s', 500),
                ('(county, int4): 5 values', 'county, i4', 'i4 = ANY (ARRAY[%s, 5, 700000, 200001, 10])', 200),
                ('(bool, "char", date): range of 3 dates', 'b, c, d', "d BETWEEN date '1999-01-01' + %s %% 3000 AND date '1999-01-03' + %s %% 3000", 300),
                ('(date, int4): int4 =', 'd, i4', 'i4 = %s', 5), ('(uuid, int4): int4 =', 'u, i4', 'i4 = %s', 3)):
            statement = "DO $$ DECLARE i int; x bigint; BEGIN FOR i IN 1..%d LOOP SELECT count(*) INTO x FROM misc WHERE %s; END LOOP; END $$" % (
                times, where.replace('%s', '(i * 7919)').replace('%%', '%'))

            def measure(method):
                self.index(method, 'misc', columns)
                self.ask('VACUUM misc')
                return self.timed(statement) / times * 1e6
            self.line(what, *self.pair(measure), 1.0, '%.1f us')

    def clients(self):
        """Point lookups by 8 clients; each side keeps its index."""
        for method in ('btree', 'pbtree'):
            self.ask('DROP TABLE IF EXISTS looked_up_%s; CREATE TABLE looked_up_%s AS SELECT i4, p FROM misc' % (method, method))
            self.index(method, 'looked_up_' + method, 'i4', 'looked_up_' + method + '_i4')
            self.ask('VACUUM ANALYZE looked_up_' + method)
        self.line('point lookup, int4, 8 clients: TPS', *self.pair(lambda method: pgbench(
            'heap', ['-f', '-', '-c', '8', '-j', '2', '-T', '5'],
            '\\set i random(1, %d)\nSELECT p FROM public.looked_up_%s WHERE i4 = :i;\n' % (self.args.rows, method))), 1.0, '%.0f')

    def descent(self):
        """Columns compared for a lookup of a whole key, as pbtree_counters tells."""
        self.ask('SET enable_seqscan = off; SET enable_bitmapscan = off')
        for what, columns in (('(county, city, locality)', ('county', 'city', 'locality')), ('(uuid)', ('u',)), ('(int4)', ('i4',))):
            self.index('pbtree', 'misc', ', '.join(columns))
            self.ask('CREATE TEMP TABLE keys AS SELECT %s FROM misc TABLESAMPLE system (0.01) REPEATABLE (1)' % ', '.join(columns))
            self.ask('SELECT pbtree_counters(true)')
            self.ask("DO $$ DECLARE k record; x bigint; BEGIN FOR k IN SELECT * FROM keys LOOP "
                     "SELECT count(*) INTO x FROM (SELECT 1 FROM misc m WHERE %s LIMIT 1) y; END LOOP; END $$" %
                     ' AND '.join('m.%s = k.%s' % (c, c) for c in columns))
            with self.connection.cursor() as cursor:
                cursor.execute('SELECT round(columns::numeric / descents, 1), round(bytes::numeric / descents, 1) FROM pbtree_counters()')
                print('| columns, bytes of keys compared for a lookup, %s | | %s, %s | | |' % ((what,) + cursor.fetchone()))
            self.ask('DROP TABLE keys')

    def update(self):
        """Heap with btree, inplace with pbtree: clients update random rows of a table."""
        def load(db, am, method):
            db.use(am)
            db.execute('DROP TABLE IF EXISTS updated')
            db.execute('CREATE TABLE updated (%s)' % columns)
            db.execute('INSERT INTO updated SELECT %s FROM generate_series(1, %d) g' % (values, self.args.rows))
            for column in indexes:
                db.execute('CREATE INDEX ON updated USING %s (%s)' % (method, column))
            db.execute('VACUUM ANALYZE updated')

        for what, columns, values, indexes, change, bars in UPDATES:
            script = '\\set aid random(1, %d)\n\\set v random(1, %d)\nUPDATE updated SET %s WHERE aid = :aid;\n' % (
                self.args.rows, self.args.rows, change)
            self.updates('UPDATE, ' + what, load, 'updated', ['-f', '-'], script, bars)

    def accounts(self):
        """pgbench's own transactions, all of its indexes btrees, and one more on abalance, which is a pbtree with inplace."""
        def load(db, am, method):
            load_accounts(db, am, max(1, self.args.rows // 100000))
            db.execute('CREATE INDEX ON pgbench_accounts USING %s (abalance)' % method)

        for what in ('simple-update', 'tpcb-like'):
            self.updates('pgbench %s with an index on abalance' % what, load, 'pgbench_accounts', ['-b', what], None, (1.4, .6, .5))

    def updates(self, what, load, table, options, script, bars):
        """What pgbench does to tables of both sides that load has made, in turns: TPS, WAL, size at the end."""
        self.ask('CREATE EXTENSION IF NOT EXISTS inplace; CREATE EXTENSION IF NOT EXISTS pbtree')
        clients = self.args.clients
        each = self.args.inserts // 5 // clients
        options = [*options, '-c', str(clients), '-j', str(clients), '-t', str(each)]
        db = Database()
        tps, wal, size = {}, {}, {}
        for am, method in zip(AMS, ('btree', 'pbtree')):
            load(db, am, method)
            tps[am], wal[am] = [], []
        db.execute('CHECKPOINT')
        for order in orders(self.args.rounds):
            for am in order:
                db.use(am)
                db.autovacuum_only(am)
                begin = db.wal_position()
                tps[am].append(pgbench(am, options, script))
                db.wait_for_autovacuum()
                wal[am].append((db.wal_position() - begin) / (each * clients))
                size[am] = db.full_size(table) / 1e6
        db.close()
        for name, found, form, bar in (('TPS', tps, '%.0f', bars[0]), ('WAL of one', wal, '%.0f B', bars[1])):
            self.line('%s: %s' % (what, name), *(statistics.median(found[am]) for am in AMS), bar, form)
        self.line('%s: size of table and indexes' % what, *(float(size[am]) for am in AMS), bars[2], '%.1f MB')


def pgbench(schema, options, script=None):
    """Its TPS on the schema's tables; a script is its standard input."""
    process = start_pgbench(schema, '-n', '-M', 'prepared', *options, stdin=subprocess.PIPE)
    output = process.communicate(script)[0]
    if process.returncode:
        raise RuntimeError('pgbench failed:\n' + output)
    return float(TPS.search(output)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--socket', required=True)
    parser.add_argument('--port', type=int, default=5432)
    parser.add_argument('--data', help='needed by all parts but update and accounts')
    parser.add_argument('--rows', type=int, default=3000000)
    parser.add_argument('--inserts', type=int, default=500000)
    parser.add_argument('--clients', type=int, default=2, help='of the parts update and accounts (%(default)s)')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('parts', nargs='*', default=['size', 'build', 'insert', 'lookup', 'skip', 'clients', 'descent'])
    args = parser.parse_args()
    bench = Bench(args)
    if set(args.parts) - {'update', 'accounts'}:
        bench.make()
    print('| what | btree | pbtree | ratio | bar |\n|---|---|---|---|---|')
    for part in args.parts:
        getattr(bench, part)()


if __name__ == '__main__':
    main()
