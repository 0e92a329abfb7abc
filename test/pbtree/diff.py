#!/usr/bin/env python3
"""Random tables with pbtree indexes: what the indexes answer, and what is really there.

    diff.py --socket FOLDER --seed N [--rounds N] [--workers N]

Each round makes a table with columns of random types and a few pbtree indexes, each with a btree twin (random columns,
orders, INCLUDE, predicates, fillfactor).  Workers change it; meanwhile queries are asked twice in one snapshot, with the
index and with a sequential scan, and the order of the rows is compared with what sorting gives.  In the end the workers
have stopped: pbtree_check looks at each index and each row, and each pbtree index must return the rows in the order in
which its twin does, duplicates too.

With --am inplace most changes are updates, which that access method makes in place and the indexes follow: back and
forth between a few keys, rolled back, and while snapshots that are older look.
"""
import argparse
import random
import sys
import threading

import psycopg2

WORDS = ['', 'a', 'ab', 'abc', 'abd', 'B', 'Zoo', 'zoo', 'é', 'É', 'e', 'straße', 'strasse', 'x y', 'x-y', 'xy', '~', '!']
URL = 'https://www.example.org/a/rather/long/path/which/all/of/them/share/'


def word(r):
    kind = r.random()
    if kind < .4:
        return r.choice(WORDS)
    if kind < .7:
        return r.choice(['prg010203', 'GREATER ', 'x']) + str(r.randrange(200))
    if kind < .9:
        return URL + '%x' % r.randrange(1000)
    if kind < .95:
        return r.choice('abc') * r.randrange(1, 900)
    return ''.join(r.choice('abcdefghijklmnopqrstuvwxyz0123456789') for _ in range(r.randrange(600)))


def number(r):
    return r.choice([r.randrange(-5, 20), r.randrange(-1000, 1000), r.randrange(-2**31, 2**31)])


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


# type: literal of a random value
TYPES = {
    'int4': lambda r: str(number(r)),
    'int8': lambda r: str(r.choice([number(r), r.randrange(-2**63, 2**63)])),
    'int2': lambda r: str(r.randrange(-300, 300)),
    'bool': lambda r: r.choice(['true', 'false']),
    '"char"': lambda r: quoted(r.choice('abcdefgh')),
    'oid': lambda r: str(r.randrange(2**32)),
    'date': lambda r: "date '1995-01-01' + %d" % r.randrange(10000),
    'timestamptz': lambda r: "timestamptz '1995-01-01' + interval '%d s'" % r.choice([r.randrange(10), r.randrange(10**9)]),
    'uuid': lambda r: "md5('%d')::uuid" % r.randrange(5000),
    'text': lambda r: quoted(word(r)),
    'text COLLATE "C"': lambda r: quoted(word(r)),
    'text COLLATE icu_ci': lambda r: quoted(word(r)),
    'text COLLATE "POSIX"': lambda r: quoted(word(r)),
    'varchar(2000)': lambda r: quoted(word(r)),
    'char(12)': lambda r: quoted(word(r)[:10]),
    'name': lambda r: quoted(word(r)[:40]),
    'bytea': lambda r: "'\\x%s'" % ''.join(r.choice(['00', '01', 'ff', '41']) for _ in range(r.randrange(6))),
    'numeric': lambda r: r.choice(['1.0', '1.00', '1', "'NaN'", str(number(r)), '%d.%d' % (number(r), r.randrange(100))]),
    'float8': lambda r: r.choice(["'-0'", '0', "'NaN'", "'Infinity'", str(r.random()), str(number(r))]),
    'interval': lambda r: "interval '%d days %d hours'" % (r.randrange(3), r.randrange(72)),
    'int4[]': lambda r: "'{%s}'" % ','.join(str(r.randrange(5)) for _ in range(r.randrange(4))),
    'int4range': lambda r: 'int4range(%d, %d)' % ((lambda a: (a, a + r.randrange(5)))(r.randrange(50))),
    'inet': lambda r: "'10.%d.%d.%d/%d'" % (r.randrange(3), r.randrange(3), r.randrange(256), r.choice([8, 24, 32])),
    'macaddr': lambda r: "'08:00:2b:01:%02x:%02x'" % (r.randrange(4), r.randrange(256)),
    'mood': lambda r: quoted(r.choice(['sad', 'ok', 'happy', 'late'])),
    'pair': lambda r: 'ROW(%d, %s)::pair' % (r.randrange(10), quoted(r.choice(WORDS))),
    'jsonb': lambda r: "'{\"a\": %d}'" % r.randrange(50),
    'positive': lambda r: str(r.randrange(1, 100)),
}
SETUP = """
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
"""


class Failure(Exception):
    pass


class Round:
    """A table, its indexes, and connections that work on it."""

    def __init__(self, connect, r, workers, am='heap'):
        self.connect, self.r, self.nworkers, self.am = connect, r, workers, am
        self.stop = threading.Event()
        self.errors = []
        self.main = connect()
        self.sql = []

    def run(self, connection, text):
        self.sql.append(text)
        with connection.cursor() as cursor:
            cursor.execute(text)
            return cursor.fetchall() if cursor.description else None

    def value(self, r, column):
        return 'NULL' if r.random() < self.nulls[column] else '(%s)::%s' % (
            TYPES[self.types[column]](r), self.types[column].split(' COLLATE')[0])

    def make(self, available, kinds=('', '', '', 'UNLOGGED ')):
        r = self.r
        self.types = [r.choice(available) for _ in range(r.randrange(2, 5))]
        self.nulls = [r.choice([0, 0, .01, .3, 1]) for _ in self.types]
        columns = ', '.join('c%d %s' % (i, t) for i, t in enumerate(self.types))
        kind = r.choice(kinds)
        self.run(self.main, 'DROP TABLE IF EXISTS t')
        self.run(self.main, 'CREATE %sTABLE t (id serial, %s) USING %s' % (kind, columns, self.am))
        # those do not follow updates in place, nor do others of their columns then
        special = 1 if self.am == 'heap' or r.random() < .2 else 0
        self.indexes = []
        if r.random() < .5:
            self.insert(self.main, r, r.randrange(1, 2000))
        for i in range(r.randrange(1, 4)):
            keys = r.sample(range(len(self.types)), r.randrange(1, len(self.types) + 1))
            orders = [r.choice(['', '', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST']) for _ in keys]
            rest = [c for c in range(len(self.types)) if c not in keys]
            include = r.sample(rest, r.randrange(0, len(rest) + 1)) if r.random() < .3 * special else []
            body = '(%s)' % ', '.join('c%d%s' % pair for pair in zip(keys, orders))
            if include:
                body += ' INCLUDE (%s)' % ', '.join('c%d' % c for c in include)
            where = ' WHERE id % 3 <> 0' if r.random() < .15 * special else ''
            fill = r.choice([10, 10, 50, 90, 100])
            self.run(self.main, 'CREATE INDEX i%d ON t USING pbtree %s WITH (fillfactor = %d)%s' % (i, body, fill, where))
            self.indexes.append((keys, orders, include, where, body))
        self.run(self.main, 'ANALYZE t')

    def insert(self, connection, r, n):
        if r.random() < .3:
            same = [self.value(r, c) if r.random() < .6 else None for c in range(len(self.types))]
        else:
            same = [None] * len(self.types)
        while n > 0:
            some = min(n, 200)
            rows = ', '.join('(%s)' % ', '.join(same[c] or self.value(r, c) for c in range(len(self.types)))
                             for _ in range(some))
            self.run(connection, 'INSERT INTO t (%s) VALUES %s' % (', '.join('c%d' % c for c in range(len(self.types))), rows))
            n -= some

    def condition(self, r, columns):
        """On the first of these columns, mostly; some without a condition on the one in front, some with two."""
        parts = []
        chosen = columns[:r.randrange(0, len(columns) + 1)]
        if r.random() < .4:
            chosen = [c for c in columns if r.random() < .5] + [c for c in columns if r.random() < .1]
        for c in chosen:
            kind = r.random()
            value = lambda: self.there(r, c) if r.random() < .3 else '(%s)::%s' % (TYPES[self.types[c]](r), self.types[c].split(' COLLATE')[0])
            if kind < .35:
                parts.append('c%d = %s' % (c, value()))
            elif kind < .6:
                parts.append('c%d %s %s' % (c, r.choice(['<', '<=', '>', '>=']), value()))
            elif kind < .7:
                parts.append('c%d >= %s AND c%d < %s' % (c, value(), c, value()))
            elif kind < .9 and not self.types[c].endswith('[]'):
                op = r.choice(['=', '=', '=', '<', '>='])
                parts.append('c%d %s ANY (ARRAY[%s])' % (c, op, ', '.join(value() for _ in range(r.randrange(1, 12)))))
            else:
                parts.append('c%d IS %sNULL' % (c, r.choice(['', 'NOT '])))
        return ' AND '.join(parts) or 'true'

    def there(self, r, c):
        """A value that some row has."""
        return '(SELECT c%d FROM t WHERE id >= %d ORDER BY id LIMIT 1)' % (c, r.randrange(1, r.choice([10, 3000])))

    def work(self, seed):
        r = random.Random(seed)
        try:
            connection = self.connect()
            while not self.stop.is_set():
                self.change(connection, r)
            connection.close()
        except Exception as error:  # pylint: disable=broad-except
            self.errors.append(error)

    def update(self, connection, r):
        """A few columns, of a few rows, to values that others have, too."""
        columns = r.sample(range(len(self.types)), r.randrange(1, min(3, len(self.types)) + 1))
        low = r.randrange(1, r.choice([10, 500, 5000]))
        change = ', '.join('c%d = %s' % (c, self.value(r, c) if r.random() < .7 else '(SELECT c%d FROM t WHERE id = %d)' % (
            c, r.randrange(1, 10))) for c in columns)
        self.run(connection, 'UPDATE t SET %s WHERE id BETWEEN %d AND %d' % (change, low, low + r.choice([0, 1, 20, 200])))

    def update_in_transaction(self, connection, r):
        self.run(connection, 'BEGIN ISOLATION LEVEL ' + r.choice(['READ COMMITTED', 'REPEATABLE READ']))
        for _ in range(r.randrange(1, 4)):
            self.run(connection, 'SAVEPOINT s')
            self.update(connection, r)
            self.run(connection, r.choice(['ROLLBACK TO s', 'RELEASE s', 'SAVEPOINT q']))
        self.run(connection, r.choice(['ROLLBACK', 'COMMIT', 'COMMIT']))

    def change(self, connection, r):
        kind = r.random()
        try:
            if self.am != 'heap' and r.random() < .6:
                r.choice([self.update, self.update_in_transaction])(connection, r)
            elif kind < .5:
                self.insert(connection, r, r.choice([1, 10, 300]))
            elif kind < .65:
                low = r.randrange(1, 20000)
                self.run(connection, 'DELETE FROM t WHERE id BETWEEN %d AND %d' % (low, low + r.choice([5, 300, 3000])))
            elif kind < .72:
                self.run(connection, 'DELETE FROM t WHERE ' + self.condition(r, r.sample(range(len(self.types)), 1)))
            elif kind < .85:
                low = r.randrange(1, 20000)
                c = r.randrange(len(self.types))
                self.run(connection, 'UPDATE t SET c%d = %s WHERE id BETWEEN %d AND %d' %
                         (c, self.value(r, c), low, low + r.choice([1, 20, 200])))
            elif kind < .92:
                self.run(connection, 'BEGIN')
                self.insert(connection, r, r.choice([5, 100]))
                self.run(connection, r.choice(['ROLLBACK', 'COMMIT']))
            elif kind < .98:
                self.run(connection, 'VACUUM %st' % r.choice(['', '(INDEX_CLEANUP on) ']))
            else:
                self.run(connection, 'REINDEX INDEX %si%d' % (r.choice(['', 'CONCURRENTLY ']), r.randrange(len(self.indexes))))
        except (psycopg2.errors.DeadlockDetected, psycopg2.errors.UndefinedTable,
                psycopg2.errors.SerializationFailure, psycopg2.errors.ObjectInUse):
            self.run(connection, 'ROLLBACK')

    # ---- questions

    def settings(self, connection, way):
        """By index, or not."""
        for name, on in {'indexscan': way == 'index', 'indexonlyscan': way in ('index', 'only'),
                         'bitmapscan': way == 'bitmap', 'seqscan': way == 'seq', 'sort': way == 'seq',
                         'hashagg': True}.items():
            self.run(connection, 'SET LOCAL enable_%s = %s' % (name, 'on' if on else 'off'))

    def ask(self, connection, r):
        keys, orders, include, where, _ = r.choice(self.indexes)
        columns = r.sample(keys + include, len(keys + include))
        way = r.choice(['index', 'index', 'only', 'bitmap'])
        condition = self.condition(r, keys if r.random() < .8 else columns)
        if where:
            condition += ' AND id % 3 <> 0'
        select = ', '.join('c%d::text' % c for c in columns)
        if way != 'only':
            select += ', id'
        order = ''
        if way != 'bitmap' and r.random() < .6:
            flip = r.random() < .5
            n = r.randrange(1, len(keys) + 1)
            order = ' ORDER BY ' + ', '.join('c%d %s' % (c, self.flipped(o) if flip else o)
                                             for c, o in list(zip(keys, orders))[:n])
        self.run(connection, 'BEGIN ISOLATION LEVEL REPEATABLE READ')
        if self.am != 'heap' and r.random() < .3:
            self.run(connection, 'SELECT count(*) FROM t; SELECT pg_sleep(%f)' % (r.random() / 2))
        if way != 'bitmap' and r.random() < .25:
            for name in ('parallel_setup_cost', 'parallel_tuple_cost', 'min_parallel_table_scan_size', 'min_parallel_index_scan_size'):
                self.run(connection, 'SET LOCAL %s = 0' % name)
            self.run(connection, 'SET LOCAL max_parallel_workers_per_gather = 2')
        else:
            self.run(connection, 'SET LOCAL max_parallel_workers_per_gather = 0')
        query = 'SELECT %s FROM t WHERE %s%s' % (select, condition, order)
        self.settings(connection, 'seq')
        expected = self.run(connection, query)
        self.settings(connection, way)
        plan = '\n'.join(row[0] for row in self.run(connection, 'EXPLAIN ' + query))
        found = self.run(connection, query) if r.random() < .8 else self.by_cursor(connection, r, query, len(expected))
        if sorted(map(str, expected)) != sorted(map(str, found)):
            raise Failure('%d rows instead of %d:\n%s\n%s' % (len(found), len(expected), query, plan))
        if order and 'Sort' not in plan:
            self.check_order(connection, condition, keys, n, order, plan)
        if order and r.random() < .3:
            limit = r.randrange(1, 20)
            self.check_limit(connection, query, limit, columns, keys[:n])
        self.run(connection, 'COMMIT')

    def ask_standby(self, connection, r):
        """False: the question is void.  REINDEX CONCURRENTLY waits for the primary's snapshots only.  A standby's older one finds, with btree and
        heap too, the new index without rows that had been deleted when it was made; or the list of indexes of before, and one of them gone."""
        try:
            self.ask(connection, r)
            return True
        except psycopg2.errors.InternalError_ as error:
            if 'could not open relation with OID' not in str(error):
                raise
            return False
        except Failure:
            if not self.run(connection, "SELECT count(*) FROM pg_class WHERE relname ~ '^i[0-9]+$' AND (oid <> relname::regclass OR "
                            'relfilenode <> pg_relation_filenode(relname::regclass))')[0][0]:
                raise
            return False

    def check_order(self, connection, condition, keys, n, order, plan):
        """The keys in the index's order are those in the order in which they are sorted."""
        names = ', '.join('c%d' % c for c in keys[:n])
        query = 'SELECT %s FROM t WHERE %s%s' % (names, condition, order)
        got = self.run(connection, query)
        self.settings(connection, 'seq')
        want = self.run(connection, query)
        if len(got) != len(want):
            raise Failure('other rows: %s\n%s' % (query, plan))
        # values that are equal may look different: so only what differs is looked at, by the server
        for a, b in zip(got, want):
            if str(a) != str(b):
                same = self.run(connection, 'SELECT %s' % ' AND '.join(
                    '(%s::%s IS NOT DISTINCT FROM %s::%s)' % (
                        self.literal(connection, x), self.types[c], self.literal(connection, y), self.types[c])
                    for x, y, c in zip(a, b, keys)))
                if not same[0][0]:
                    raise Failure('other order: %s: %s, %s\n%s' % (query, a, b, plan))

    def literal(self, connection, value):
        with connection.cursor() as cursor:
            return cursor.mogrify('%s', (value,)).decode()

    def check_limit(self, connection, query, limit, columns, keys):
        self.settings(connection, 'index')
        query += ' LIMIT %d' % limit
        got = self.run(connection, query)
        self.settings(connection, 'seq')
        want = self.run(connection, query)
        if len(got) != len(want):
            raise Failure('LIMIT: %s' % query)

    @staticmethod
    def flipped(order):
        return {'': 'DESC', ' DESC': 'ASC', ' NULLS FIRST': 'DESC NULLS LAST', ' DESC NULLS LAST': 'NULLS FIRST'}[order]

    def by_cursor(self, connection, r, query, n):
        """There, part of the way back, and there again."""
        rows = []
        self.run(connection, 'DECLARE c SCROLL CURSOR FOR ' + query)
        while True:
            some = r.randrange(1, n + 2)
            got = self.run(connection, 'FETCH %d FROM c' % some)
            rows += got
            if len(got) < some:
                break
            back = r.randrange(0, min(len(rows), 50) + 1)
            if back and r.random() < .5:
                again = self.run(connection, 'FETCH BACKWARD %d FROM c' % back)
                if back < len(rows) and again != rows[-2:-2 - back:-1]:
                    raise Failure('backwards: %s' % query)
                if back == len(rows):
                    self.run(connection, 'CLOSE c')
                    return self.run(connection, query)
                if len(again) == back:
                    self.run(connection, 'MOVE %d FROM c' % back)
        self.run(connection, 'CLOSE c')
        return rows

    # ---- the end

    def finish(self):
        for i, (keys, orders, include, where, body) in enumerate(self.indexes):
            entries, = self.run(self.main, "SELECT pbtree_check('i%d', true)" % i)
            rows, = self.run(self.main, 'SELECT count(*) FROM t' + where)
            if entries[0] < rows[0]:
                raise Failure('%d entries for %d rows' % (entries[0], rows[0]))
        for i, (keys, orders, include, where, body) in enumerate(self.indexes):
            order = ', '.join('c%d%s' % pair for pair in zip(keys, orders))
            query = 'SELECT id, ctid FROM t%s ORDER BY %s' % (where, order)
            self.run(self.main, 'BEGIN')
            self.settings(self.main, 'index')
            for j in range(len(self.indexes)):
                if j != i:
                    self.run(self.main, 'DROP INDEX i%d' % j)
            got = self.run(self.main, query)
            self.run(self.main, 'DROP INDEX i%d' % i)
            self.run(self.main, 'CREATE INDEX twin ON t USING btree %s%s' % (body, where))
            want = self.run(self.main, query)
            self.run(self.main, 'ROLLBACK')
            if got != want:
                raise Failure('other order than the twin of i%d: %s' % (i, query))

    def play(self, questions):
        threads = [threading.Thread(target=self.work, args=(self.r.random(),)) for _ in range(self.nworkers)]
        for thread in threads:
            thread.start()
        try:
            asker = self.connect()
            for _ in range(questions):
                if self.nworkers == 0:
                    self.change(self.main, self.r)
                self.ask(asker, self.r)
                if self.errors:
                    break
            asker.close()
        finally:
            self.stop.set()
            for thread in threads:
                thread.join()
        if self.errors:
            raise self.errors[0]
        self.run(self.main, 'VACUUM (INDEX_CLEANUP on) t')
        self.finish()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--socket', required=True)
    parser.add_argument('--port', type=int, default=5432)
    parser.add_argument('--database', default='postgres')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--rounds', type=int, default=10)
    parser.add_argument('--workers', type=int, default=2)
    parser.add_argument('--questions', type=int, default=100)
    parser.add_argument('--am', default='heap', help="the table's access method")
    args = parser.parse_args()

    def connect():
        connection = psycopg2.connect(host=args.socket, port=args.port, user='postgres', dbname=args.database)
        connection.autocommit = True
        return connection

    with connect().cursor() as cursor:
        cursor.execute('CREATE EXTENSION IF NOT EXISTS pbtree')
        if args.am != 'heap':
            cursor.execute('CREATE EXTENSION IF NOT EXISTS ' + args.am)
        cursor.execute("SELECT to_regtype('mood') IS NULL")
        if cursor.fetchone()[0]:
            cursor.execute(SETUP)
            cursor.execute("ALTER TYPE mood ADD VALUE 'late' BEFORE 'ok'")
        available = [t for t in TYPES if 'icu' not in t]
        try:
            cursor.execute("CREATE COLLATION IF NOT EXISTS icu_ci "
                           "(provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
            available.append('text COLLATE icu_ci')
        except psycopg2.Error:
            pass
    for number_of_round in range(args.rounds):
        seed = args.seed * 1000 + number_of_round
        r = random.Random(seed)
        this = Round(connect, r, r.choice([0, args.workers]), args.am)
        try:
            this.make(available)
            this.play(args.questions)
        except Exception as error:  # pylint: disable=broad-except
            print('seed %d, round %d: %s' % (args.seed, number_of_round, str(error)[:3000]))
            print('types: %s' % this.types)
            print('indexes: %s' % [index[4] + index[3] for index in this.indexes])
            sys.exit(1)
        this.main.close()
    print('%d rounds, no difference' % args.rounds)


if __name__ == '__main__':
    main()
