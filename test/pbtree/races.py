"""Tests of pbtree: what sessions do to each other, and standbys to their readers."""
import os
import random
import struct
import threading
import time

import psycopg2

from basics import (CONTENT, PIN, Failed, build_force, connect, expect, has_points, no_crash, query, replayed, stop_without_checksums, test,
                    wait_for_standby)


def index_only_cursor(connection, first=10):
    """A cursor that has returned the first rows, and has the index's page pinned."""
    query(connection, 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexscan = off')
    query(connection, 'BEGIN ISOLATION LEVEL REPEATABLE READ')
    plan = str(query(connection, 'EXPLAIN SELECT a FROM t WHERE a > 0 ORDER BY a'))
    if 'Index Only Scan' not in plan:
        raise Failed(plan)
    query(connection, 'DECLARE c CURSOR FOR SELECT a FROM t WHERE a > 0 ORDER BY a')
    return query(connection, 'FETCH %d FROM c' % first)


def by_vacuum(connection, _):
    query(connection, 'DELETE FROM t WHERE a > 5900')
    return lambda: query(connection, 'VACUUM t')


def by_split(connection, writer):
    """The rows are on another page when VACUUM removes them."""
    query(connection, 'DELETE FROM t WHERE a > 5900')

    def act():
        size = query(connection, "SELECT pg_relation_size('i')")
        query(writer, 'BEGIN; INSERT INTO t SELECT g * 10 + 1 FROM generate_series(1, 600) g')
        if size == query(connection, "SELECT pg_relation_size('i')"):
            raise Failed('the page has not been split')
        query(connection, 'VACUUM t')
    return act


def by_marks(connection, writer):
    """An insertion removes rows that a scan has found dead; VACUUM does not find them any more."""
    query(connection, 'DELETE FROM t WHERE a > 4000')

    def act():
        query(connection, 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off')
        for _ in range(2):
            query(connection, 'SELECT a FROM t WHERE a > 0')
        query(writer, 'BEGIN')
        items, before, new = 600, 0, 1
        while items > before:
            query(writer, 'INSERT INTO t VALUES (%d)' % new)
            before, new = items, new + 4
            items, right = query(connection, "SELECT items, next FROM pbtree_page('i', 1)")[0]
        if right != 0:
            raise Failed('the page has been split')
        query(connection, 'VACUUM t')
    return act


@test
def standby_pins(tests):
    """A standby's index-only scan has read a page: dead rows of it do not become visible because the table's page is all-visible."""
    cluster, connection = tests.begin('pins')
    replica = tests.standby(cluster, 'pins_standby', 'max_standby_streaming_delay = -1\nlog_recovery_conflict_waits = on\n')
    writer = connect(cluster)
    for prepare in (by_vacuum, by_split, by_marks):
        # the dead rows are on a page of the table that gets no new ones, and new ones are not visible to all
        query(connection, 'DROP TABLE IF EXISTS t; CREATE TABLE t AS SELECT 6010 - g * 10 a FROM generate_series(1, 600) g')
        query(connection, 'CREATE INDEX i ON t USING pbtree (a) WITH (fillfactor = 100)')
        query(connection, 'VACUUM ANALYZE t')
        act = prepare(connection, writer)
        wait_for_standby(connection, replica)
        reader = connect(replica)
        expected = query(connection, 'SELECT a FROM t ORDER BY a')
        rows = index_only_cursor(reader)
        act()
        end = time.time() + 3
        while time.time() < end and not replayed(connection, replica):
            time.sleep(.1)
        rows += query(reader, 'FETCH ALL FROM c')
        query(reader, 'COMMIT')
        query(writer, 'ROLLBACK')
        reader.close()
        if rows != expected:
            raise Failed('%s: %d rows instead of %d' % (prepare.__name__, len(rows), len(expected)))
        wait_for_standby(connection, replica)
    no_crash(cluster)
    no_crash(replica)
    return ''


class Point:
    """A place where a session is to wait, or to fail; only that one."""

    def __init__(self, cluster, name, action='wait'):
        self.cluster, self.name = cluster, name
        self.connection = connect(cluster)
        query(self.connection, "SELECT injection_points_set_local()")
        query(self.connection, "SELECT injection_points_attach('%s', '%s')" % (name, action))
        self.other = connect(cluster)

    def waits(self):
        return query(self.other, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = '%s'" % self.name)[0][0] > 0

    def wait(self):
        """Until the session, in a thread of its own, is there."""
        end = time.time() + 100
        while not self.waits():
            if time.time() > end:
                raise Failed('nobody comes to ' + self.name)
            time.sleep(.01)

    def wake(self):
        query(self.other, "SELECT injection_points_detach('%s')" % self.name)
        query(self.other, "SELECT injection_points_wakeup('%s')" % self.name)

    def run(self, text, meanwhile):
        """The statement, and what is done while it waits; its rows, and whether it waited."""
        rows, errors = [], []

        def work():
            try:
                rows.extend(query(self.connection, text) or [])
            except psycopg2.Error as error:
                errors.append(error)
        thread = threading.Thread(target=work)
        thread.start()
        waited = False
        while thread.is_alive() and not waited:
            waited = self.waits()
            time.sleep(.01)
        meanwhile()
        if waited:
            self.wake()
        thread.join()
        if errors:
            raise errors[0]
        return rows, waited


@test
def empty(tests):
    """SERIALIZABLE: an index gets its first row while a scan finds it empty; that is a conflict as it is with other rows."""
    cluster, connection = tests.begin('empty')
    if not has_points(cluster):
        return 'a server without injection points'
    query(connection, "CREATE TABLE t (a int); CREATE TABLE u (a int)")
    query(connection, 'CREATE INDEX i ON t USING pbtree (a)')
    point = Point(cluster, 'pbtree-empty')
    query(point.connection, 'SET enable_seqscan = off; SET enable_bitmapscan = off; BEGIN ISOLATION LEVEL SERIALIZABLE; INSERT INTO u VALUES (1)')
    query(connection, 'BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT * FROM u')
    rows, waited = point.run('SELECT * FROM t WHERE a = 1', lambda: query(connection, 'INSERT INTO t VALUES (1)'))
    if not waited or rows:
        raise Failed('it did not wait, or found %s' % rows)
    try:
        query(connection, 'COMMIT')
        query(point.connection, 'COMMIT')
        raise Failed('both could commit')
    except psycopg2.errors.SerializationFailure:
        pass
    no_crash(cluster)
    return ''


# keys in the order of the numbers, so long that there are four levels
LONG = "lpad(%s::text, 6, '0') || md5(%s::text) || md5('a' || %s) || md5('b' || %s) || md5('c' || %s) || md5('d' || %s)"


def meet(cluster, connection, name, condition, what, key, columns='b'):
    """A reader that waits at a point, while there are splits, deletions of pages, or both; did it wait?"""
    query(connection, 'DROP TABLE IF EXISTS t; CREATE TABLE t AS SELECT g a, %s b FROM generate_series(1, 5000) g' % key.replace('%s', 'g'))
    query(connection, 'CREATE INDEX i ON t USING pbtree (%s) WITH (fillfactor = 10)' % columns)
    query(connection, 'DELETE FROM t WHERE a BETWEEN 1000 AND 4000')
    point = Point(cluster, name)
    query(point.connection, 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off')
    query(point.connection, 'BEGIN ISOLATION LEVEL REPEATABLE READ')
    text = 'SELECT a FROM t WHERE ' + condition
    expected = query(connection, text)

    def meanwhile():
        if what != 'splits':
            query(connection, 'VACUUM t')
        if what != 'deletions':
            query(connection, 'INSERT INTO t SELECT g, %s FROM (SELECT g %% 5000 g FROM generate_series(1, 60000, 7) g) g' % key.replace('%s', 'g'))
        if what == 'both':
            query(connection, 'DELETE FROM t WHERE a BETWEEN 1000 AND 4000')
            query(connection, 'VACUUM t')
            query(connection, 'INSERT INTO t SELECT g, %s FROM generate_series(1, 5000) g' % key.replace('%s', 'g'))
    rows, waited = point.run(text, meanwhile)
    if rows != expected:
        raise Failed('%s, %s, %s: %d rows instead of %d' % (name, text, what, len(rows), len(expected)))
    query(point.connection, 'COMMIT')
    point.connection.close()
    point.other.close()
    query(connection, "SELECT pbtree_check('i', true)")
    return waited


@test
def between(tests):
    """A reader is between two pages, from parent to child or from sibling to sibling, while they are split or deleted."""
    cluster, connection = tests.begin('between')
    if not has_points(cluster):
        return 'a server without injection points'
    waits = 0
    for key in ('%s', LONG):
        literal = '%d' if key == '%s' else "'%06d'"
        up, down = 'b >= %s ORDER BY b' % literal, 'b <= %s ORDER BY b DESC' % literal
        for name, conditions in (('pbtree-to-child', (up, down)), ('pbtree-to-sibling', (up, down)), ('pbtree-to-left', (down,))):
            for start in (990, 1500, 3999, 4010) if key == '%s' else (1500,):
                for condition in conditions:
                    for what in ('splits', 'deletions', 'both')[key != '%s':]:
                        waits += meet(cluster, connection, name, condition % start, what, key)
    # the reader skips most of the rows of each group, so that it comes from page to page through the root
    for order in ('mod(a, 5), b', 'mod(a, 5) DESC, b DESC'):
        for name in ('pbtree-to-child', 'pbtree-to-sibling'):
            for what in ('splits', 'deletions', 'both'):
                waits += meet(cluster, connection, name, 'b BETWEEN 950 AND 1100 ORDER BY ' + order, what, '%s', 'mod(a, 5), b')
    no_crash(cluster)
    return '%d waits' % waits


@test
def deletion(tests):
    """VACUUM deletes empty leaves, and inner pages that lead to nothing else; a standby and a crash come to the same."""
    cluster, connection = tests.begin('deletion')
    replica = tests.standby(cluster, 'deletion_standby', '')
    query(connection, 'CREATE TABLE t AS SELECT g, %s b FROM generate_series(1, 6000) g' % LONG.replace('%s', 'g'))
    query(connection, 'CREATE INDEX i ON t USING pbtree (b) WITH (fillfactor = 10)')
    pages = []
    for text in ('DELETE FROM t WHERE g %% 600 <> 0', 'DELETE FROM t', 'INSERT INTO t SELECT g, %s b FROM generate_series(1, 6000) g' % LONG.replace('%s', 'g')):
        query(connection, text.replace('%%', '%'))
        query(connection, 'VACUUM t')
        query(connection, "SELECT pbtree_check('i', true)")
        pages.append(query(connection, "SELECT leaf_pages, inner_pages FROM pbtree_stats('i')")[0])
        wait_for_standby(connection, replica)
        reader = connect(replica)
        query(reader, 'SET enable_seqscan = off; SET enable_bitmapscan = off')
        for order in ('', ' DESC'):
            if query(reader, "SELECT g FROM t WHERE b > '' ORDER BY b" + order) != query(connection, 'SELECT g FROM t ORDER BY g' + order):
                raise Failed('the standby has other rows')
        reader.close()
    if pages[0][0] > 40 or pages[0][1] > 40 or pages[1][0] != 1 or pages[1][1] > 4:
        raise Failed('pages remain: %s' % pages)
    connection.close()
    cluster.stop('immediate')
    cluster.start()
    query(connect(cluster), "SELECT pbtree_check('i', true)")
    no_crash(cluster)
    no_crash(replica)
    return 'leaves, inner pages: %s' % pages


def unique_error(connection):
    """Before 18 there are no unique pbtree indexes; is that said?"""
    try:
        query(connection, 'CREATE UNIQUE INDEX i ON t USING pbtree (a)')
    except psycopg2.errors.FeatureNotSupported as error:
        if not error.diag.message_hint or '18' not in str(error):
            raise Failed('no hint: %s' % error) from error
        return 'refused before 18'
    raise Failed('a unique index could be made')


def insert_some(cluster, seed, end, errors):
    """Keys that other sessions insert too, in all ways; a violation is no error."""
    r = random.Random(seed)
    try:
        connection = connect(cluster)
        while time.time() < end:
            key, many = r.randrange(300), r.randrange(2, 30)
            text = r.choice(['INSERT INTO t VALUES (%d, %d)', 'INSERT INTO t VALUES (%d, %d)', 'UPDATE t SET b = b + 1 WHERE a = %d AND b < %d',
                             'INSERT INTO t VALUES (%d, %d) ON CONFLICT (a) DO UPDATE SET b = t.b + 1', 'DELETE FROM t WHERE a = %d AND b <> %d',
                             'INSERT INTO t VALUES (%d, %d) ON CONFLICT DO NOTHING', 'UPDATE t SET a = %d WHERE a = %d']) % (key, many)
            if r.random() < .2:
                text = 'INSERT INTO t SELECT g, %d FROM generate_series(%d, %d) g ON CONFLICT DO NOTHING' % (many, key, key + many)
            try:
                if r.random() < .3:
                    query(connection, 'BEGIN ISOLATION LEVEL ' + r.choice(['READ COMMITTED', 'SERIALIZABLE']))
                    query(connection, text)
                    query(connection, 'INSERT INTO t VALUES (%d, %d)' % (r.randrange(300), many))
                    query(connection, r.choice(['COMMIT', 'COMMIT', 'ROLLBACK']))
                else:
                    query(connection, text)
                if r.random() < .01:
                    query(connection, 'VACUUM t')
            except (psycopg2.errors.UniqueViolation, psycopg2.errors.DeadlockDetected, psycopg2.errors.SerializationFailure,
                    psycopg2.errors.CardinalityViolation):
                query(connection, 'ROLLBACK')
    except Exception as error:  # pylint: disable=broad-except
        errors.append(error)


@test
def unique(tests):
    """Sessions insert the same keys at the same time: each key is there once, and a btree twin agrees with what is refused."""
    cluster, connection = tests.begin('unique')
    query(connection, 'CREATE TABLE t (a int, b int)')
    if connection.server_version < 180000:
        return unique_error(connection)
    seconds = 60 if tests.args.full else 15
    for number, (method, options) in enumerate((('pbtree', '(a) WITH (fillfactor = 10)'), ('pbtree', '((a::numeric)) INCLUDE (b) WITH (fillfactor = 10)'),
                                                ('pbtree', "((repeat('x', 900) || a))"))):
        query(connection, 'TRUNCATE t; DROP INDEX IF EXISTS i, j')
        query(connection, 'CREATE UNIQUE INDEX i ON t USING %s %s' % (method, options))
        # ON CONFLICT (a) needs one on a; the first to see a violation is the older one
        query(connection, 'CREATE UNIQUE INDEX j ON t USING %s (a)' % ('btree' if number else 'pbtree'))
        errors, end = [], time.time() + seconds
        threads = [threading.Thread(target=insert_some, args=(cluster, tests.args.seed * 100 + number * 10 + i, end, errors)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        rows, keys = query(connection, 'SELECT count(*), count(DISTINCT a) FROM t')[0]
        if rows != keys or rows == 0:
            raise Failed('%s: %d rows with %d keys' % (options, rows, keys))
        query(connection, "SELECT pbtree_check('i', true)")
        query(connection, 'REINDEX INDEX CONCURRENTLY i')
        query(connection, "SELECT pbtree_check('i', true)")
    unique_statements(connection)
    unique_dead(cluster, connection)
    no_crash(cluster)
    return ''


def unique_dead(cluster, connection):
    """CREATE INDEX: rows that are dead, but not to an old snapshot, have the keys of others; they are in the index, and that snapshot finds them."""
    for kind in ('int', 'numeric', 'text'):
        query(connection, "DROP TABLE IF EXISTS d; CREATE TABLE d AS SELECT g::%s a, repeat('x', 3000) b FROM generate_series(1, 500) g" % kind)
        query(connection, 'ALTER TABLE d ALTER b SET STORAGE PLAIN; CREATE INDEX other ON d (b)')
        old = connect(cluster)
        query(old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL enable_seqscan = off')
        before = query(old, "SELECT count(*), sum(length(b)) FROM d WHERE a >= '1'")
        query(connection, "UPDATE d SET b = 'y'; DELETE FROM d WHERE a = '77'; INSERT INTO d VALUES ('77', 'z')")
        query(connection, 'CREATE UNIQUE INDEX di ON d USING pbtree (a)')
        entries = query(connection, "SELECT pbtree_check('di', true)")[0][0]
        if entries < 1000 or query(old, "SELECT count(*), sum(length(b)) FROM d WHERE a >= '1'") != before:
            raise Failed('%d entries' % entries)
        query(old, 'COMMIT')
        old.close()


def unique_statements(connection):
    """Pairs of tables, one with btree, one with pbtree: the same statements have the same end."""
    statements = ['INSERT INTO %s VALUES (1, NULL), (2, NULL), (NULL, NULL), (NULL, 7)', 'INSERT INTO %s VALUES (1, 5)', 'INSERT INTO %s VALUES (NULL, NULL)',
                  'UPDATE %s SET a = 1 WHERE a = 2', 'INSERT INTO %s SELECT g, g FROM generate_series(3, 5000) g',
                  'UPDATE %s SET a = a + 10000', 'UPDATE %s SET a = a + 1', 'UPDATE %s SET a = a - 1', 'INSERT INTO %s VALUES (10001, 9)',
                  'BEGIN; DELETE FROM %s WHERE a = 10001; INSERT INTO {0} VALUES (10001, 9); ROLLBACK', 'INSERT INTO %s VALUES (10001, 9)',
                  'DELETE FROM %s WHERE a = 10001', 'INSERT INTO %s VALUES (10001, 9)', 'INSERT INTO %s VALUES (10001, 9)',
                  'CREATE UNIQUE INDEX ON %s USING {1} (b)', 'CREATE UNIQUE INDEX ON %s USING {1} (b) NULLS NOT DISTINCT',
                  'DELETE FROM %s WHERE b IS NULL', 'CREATE UNIQUE INDEX CONCURRENTLY ON %s USING {1} (b) NULLS NOT DISTINCT', 'INSERT INTO %s VALUES (-1, NULL)',
                  'INSERT INTO %s VALUES (-2, NULL)', 'INSERT INTO %s VALUES (-2, NULL) ON CONFLICT (b) DO NOTHING', 'CREATE UNIQUE INDEX ON %s USING {1} ((b %% 10))',
                  'CREATE UNIQUE INDEX CONCURRENTLY ON %s USING {1} ((b %% 10))', 'CREATE TABLE f_%s (a int REFERENCES %s (a)); INSERT INTO f_%s VALUES (10001)',
                  'DELETE FROM %s WHERE a = 10001', "ALTER TABLE %s REPLICA IDENTITY USING INDEX {2}"]
    for options in ('(a)', '(a) NULLS NOT DISTINCT', '(a DESC NULLS FIRST) INCLUDE (b)'):
        ends = {}
        for method in ('btree', 'pbtree'):
            name = 'by_' + method
            query(connection, 'DROP TABLE IF EXISTS f_%s, %s; CREATE TABLE %s (a int, b int)' % (name, name, name))
            query(connection, 'CREATE UNIQUE INDEX %s_i ON %s USING %s %s' % (name, name, method, options))
            for number, text in enumerate(statements):
                try:
                    query(connection, text.replace('%s', name).replace('%%', '%').format(name, method, name + '_i'))
                    end = 'done'
                except psycopg2.Error as error:
                    query(connection, 'ROLLBACK')
                    # a build may find another one of several duplicates
                    detail = '' if 'create' in str(error) else error.diag.message_detail
                    end = '%s %s %s' % (error.pgcode, str(error).split('"', maxsplit=1)[0], detail)
                ends[method, number] = end.replace(name, '')
            ends[method, 'rows'] = query(connection, 'SELECT * FROM %s ORDER BY 1, 2' % name)
            ends[method, 'index'] = query(connection, 'SELECT count(*) FROM pg_class WHERE oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = \'%s\'::regclass AND indisvalid)' % name)
        for key, end in ends.items():
            if end != ends['btree', key[1]]:
                raise Failed('%s, %s: %s, %s' % (options, statements[key[1]] if isinstance(key[1], int) else key[1], end, ends['btree', key[1]]))


def far_rows(tests, name):
    """A cluster with functions for index entries of rows in tables of any size, and an index."""
    folder = os.path.join(tests.args.work, 'force_' + name)
    cluster, connection = tests.begin(name)
    build_force(os.path.join(tests.args.bindir, 'pg_config'), folder)
    for name, kind in (('fake_insert(regclass, int, bigint, int) RETURNS void', 'fake_insert'), ('fake_vacuum(regclass, bigint) RETURNS bigint', 'fake_vacuum')):
        query(connection, "CREATE FUNCTION %s LANGUAGE c STRICT AS '%s', '%s'" % (name, os.path.join(folder, 'fake_rows'), kind))
    query(connection, 'CREATE TABLE t (a int)')
    query(connection, 'CREATE INDEX i ON t USING pbtree (a) WITH (fillfactor = 100)')
    return cluster, connection


@test
def far_blocks(tests):
    """A list whose first row goes may become longer: that of a block behind 2^29, in a table of 4 TB.  VACUUM finds room for it."""
    cluster, connection = far_rows(tests, 'far_blocks')
    last, keys = 2**29 - 1, 3000
    query(connection, "SELECT fake_insert('i', g, b, o) FROM generate_series(1, %d) g, (VALUES (%d, 511), (%d, 1), (%d, 2)) v (b, o)" % (keys, last, last + 1, last + 1))
    removed = query(connection, "SELECT fake_vacuum('i', %d)" % last)[0][0]
    entries = query(connection, "SELECT pbtree_check('i')")[0][0]
    if (removed, entries) != (keys, 2 * keys):
        raise Failed('%d entries were removed, %d remain' % (removed, entries))
    no_crash(cluster)
    return ''


@test
def far_incomplete(tests):
    """VACUUM makes room on a leaf that has no downlink yet: a crash came between the split of its left sibling and the downlink."""
    cluster, connection = far_rows(tests, 'far_incomplete')
    last, number = 2**29 - 1, 0

    def insert(rows):
        query(connection, "SELECT fake_insert('i', %d, b, o) FROM (VALUES %s) v (b, o)" % (number, rows))
        return number + 1
    # the root, block 3, is above a leaf of single rows, and one that is full of lists that grow
    while query(connection, "SELECT pg_relation_size('i') / 8192")[0][0] < 4:
        number = insert('(7, 7)')
    while query(connection, "SELECT free FROM pbtree_page('i', 2)")[0][0] > 60:
        number = insert('(%d, 511), (%d, 1), (%d, 2)' % (last, last + 1, last + 1))
    entries, lists = query(connection, "SELECT pbtree_check('i'), count(*) FILTER (WHERE cardinality(tids) = 3) FROM pbtree_items('i', 2)")[0]
    name = os.path.join(cluster.data, query(connection, "SELECT pg_relation_filepath('i')")[0][0])
    connection.close()
    stop_without_checksums(cluster)
    with open(name, 'r+b') as file:
        image = bytearray(file.read())
        root = memoryview(image)[3 * 8192:]
        lower, upper, first = struct.unpack_from('=HHxxxxxxxxH', root, 12)
        if lower != 28 or len(image) != 4 * 8192:
            raise Failed('not two leaves, or their root has heads')
        # the last downlink goes, and the left leaf's flags say so
        struct.pack_into('=HH', root, 12, lower - 2, first & 0x1FFF)
        image[8192 + 8160 + 20] |= 4
        file.seek(0)
        file.write(image)
    cluster.start()
    connection = connect(cluster)
    if 'incomplete' not in str(query(connection, "SELECT flags FROM pbtree_page('i', 1)")):
        raise Failed('the split is complete')
    removed = query(connection, "SELECT fake_vacuum('i', %d)" % last)[0][0]
    expect('entries', (removed, query(connection, "SELECT pbtree_check('i')")[0][0]), (lists, entries - lists))
    expect('pages', query(connection, "SELECT leaf_pages FROM pbtree_stats('i')"), [(3,)])
    no_crash(cluster)
    return '%d lists' % lists


def wait_until(connection, condition):
    end = time.time() + 100
    while not query(connection, 'SELECT ' + condition)[0][0]:
        if time.time() > end:
            raise Failed('never: ' + condition)
        time.sleep(.01)


def in_thread(connection, text):
    """The statement, and the rows that it will give."""
    rows = []
    thread = threading.Thread(target=lambda: rows.extend(query(connection, text) or []), daemon=True)
    thread.start()
    return thread, rows


def fill_leaf(connection, writer, block, low, high):
    """Rows of a transaction that is not over, so many that the leaf, which was empty, is full of them."""
    free, key, pages = 8192, low, query(connection, "SELECT pg_relation_size('i')")
    query(writer, 'BEGIN')
    while free >= 24:
        step = max(1, free // 20)
        query(writer, 'INSERT INTO t SELECT generate_series(%d, %d)' % (key, key + step - 1))
        key += step
        free = query(connection, "SELECT free FROM pbtree_page('i', %d)" % block)[0][0]
    if key > high or pages != query(connection, "SELECT pg_relation_size('i')"):
        raise Failed('the leaf is not full, or has been split')


def empty_leaf(connection, cluster, key):
    """An insertion removes the leaf's rows, which are dead, and fails before its own is there."""
    query(connection, 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off')
    for _ in range(2):
        query(connection, 'SELECT a FROM t WHERE a >= %d' % key)
    writer = Point(cluster, 'pbtree-room', 'error')
    try:
        query(writer.connection, 'INSERT INTO t VALUES (%d)' % key)
        raise Failed('there was room')
    except psycopg2.errors.InternalError_:
        pass


@test
def pinned_leaf(tests):
    """VACUUM does not delete an empty leaf that an index-only scan has pinned: the scan has read rows that came and went since VACUUM was there."""
    cluster, connection = tests.begin('pinned_leaf')
    if not has_points(cluster):
        return 'a server without injection points'
    query(connection, 'CREATE TABLE t (a int); INSERT INTO t SELECT generate_series(1, 9000)')
    query(connection, 'CREATE INDEX i ON t USING pbtree (a) WITH (fillfactor = 100)')
    query(connection, 'VACUUM t')
    block = 2
    low, high = query(connection, "SELECT min(key[1]::int), max(key[1]::int) FROM pbtree_items('i', %d)" % block)[0]
    query(connection, 'DELETE FROM t WHERE a BETWEEN %d AND %d' % (low, high))
    vacuum, reader = Point(cluster, 'pbtree-unlink'), Point(cluster, 'pbtree-leaf')
    first, _ = in_thread(vacuum.connection, 'VACUUM (INDEX_CLEANUP on) t')
    vacuum.wait()
    writer = connect(cluster)
    fill_leaf(connection, writer, block, low, high)
    query(reader.connection, 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexscan = off')
    scan, rows = in_thread(reader.connection, 'SELECT a FROM t WHERE a BETWEEN %d AND %d' % (low, high))
    reader.wait()
    query(writer, 'ROLLBACK')
    empty_leaf(connection, cluster, low)
    expect('items', query(connection, "SELECT items FROM pbtree_page('i', %d)" % block), [(0,)])
    vacuum.wake()
    first.join()
    # the next one waits for the scan; if it did not, the pages of rows that the scan has read would become all-visible
    second, _ = in_thread(writer, 'VACUUM (INDEX_CLEANUP on, TRUNCATE off) t')
    while second.is_alive() and query(connection, 'SELECT wait_event IN %s FROM pg_stat_activity WHERE pid = %d' % (PIN, writer.get_backend_pid())) != [(True,)]:
        time.sleep(.01)
    reader.wake()
    scan.join()
    second.join()
    expect('rows', rows, [])
    query(connection, "SELECT pbtree_check('i', true)")
    no_crash(cluster)
    return ''


def rows_of(first, last):
    """Long keys in the order of the numbers."""
    key = LONG.replace('%s', 'g')
    return 'SELECT g, %s FROM generate_series(%d, %d) g' % (key, first, last)


def vacuum_cancelled(cluster, connection):
    """VACUUM, cancelled when it is done with index i, and waits for a page of the other one: nobody hears of what it has done."""
    query(connection, 'SELECT txid_current()')
    reader, vacuum, errors = connect(cluster), connect(cluster), []
    query(reader, 'SET enable_seqscan = off; SET enable_bitmapscan = off; BEGIN')
    query(reader, 'DECLARE c CURSOR FOR SELECT a FROM t WHERE a > 0 ORDER BY a')
    query(reader, 'FETCH 1 FROM c')

    def work():
        try:
            query(vacuum, 'VACUUM (INDEX_CLEANUP on, TRUNCATE off) t')
        except psycopg2.errors.QueryCanceled as error:
            errors.append(error)
    thread = threading.Thread(target=work)
    thread.start()
    end, seen = time.time() + 100, 0
    # not for the checkpointer's pin of a moment
    while seen < 10:
        seen = seen + 1 if query(connection, "SELECT count(*) FROM pg_stat_activity WHERE wait_event IN %s" % PIN) == [(1,)] else 0
        if time.time() > end or not thread.is_alive():
            raise Failed('VACUUM does not wait')
        time.sleep(.01)
    query(connection, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event IN %s" % PIN)
    thread.join()
    expect('cancelled', len(errors), 1)
    for session in (reader, vacuum):
        session.close()


@test
def reused_root(tests):
    """The root that a session remembers is by now the leaf left of the one that it splits, and another session has that, and wants this one."""
    cluster, connection = tests.begin('reused_root')
    if not has_points(cluster):
        return 'a server without injection points'
    query(connection, 'CREATE TABLE t (a int, b text COLLATE "C"); CREATE INDEX i ON t USING pbtree (b); CREATE INDEX j ON t (a)')
    query(connection, 'INSERT INTO t ' + rows_of(1, 100))
    query(connection, 'INSERT INTO t ' + rows_of(900000, 900200))

    def page(where, what='n'):
        return query(connection, "SELECT %s FROM generate_series(1, pg_relation_size('i') / 8192 - 1) n, pbtree_page('i', n) WHERE %s" % (what, where))[0][0]
    root, leaf = page('level = 1'), page('level = 0 AND next = 0')
    point = Point(cluster, 'pbtree-split')
    # it remembers the root, and the last leaf
    query(point.connection, 'INSERT INTO t ' + rows_of(900201, 900201))
    expect('the last leaf', page('level = 0 AND next = 0'), leaf)
    # there is a new root; then nothing is left of what the old one led to, and it is free
    last = 100
    while query(connection, "SELECT height FROM pbtree_stats('i')")[0][0] < 3:
        query(connection, 'INSERT INTO t ' + rows_of(last + 1, last + 2000))
        last += 2000
    query(connection, 'DELETE FROM t WHERE a <= %d' % last)
    for _ in range(2):
        vacuum_cancelled(cluster, connection)
    expect('the old root', page('n = %d' % root, 'flags::text'), '{deleted}')
    # the key between the last leaf and the one to the left: what comes in front of it is split off there, in the end into the old root
    fence = page('n = %d' % leaf, "convert_from(substr(low, 2, 6), 'SQL_ASCII')").rstrip('\0')
    text = "INSERT INTO t SELECT 1000000 + g, '%s' || 'z' || %s FROM generate_series(%%d, %%d) g" % (str(int(fence) - 1), LONG.replace('%s', 'g'))
    rows = 0
    while page('n = %d' % leaf, 'prev') != root:
        rows += 1
        query(connection, text % (rows, rows))
        if rows > 5000:
            raise Failed('the old root is not used again')
    other = connect(cluster)
    thread = threading.Thread(target=lambda: query(other, text % (rows + 1, rows + 200)), daemon=True)

    def meanwhile():
        thread.start()
        end = time.time() + 100
        while query(connection, "SELECT count(*) FROM pg_stat_activity WHERE wait_event IN %s" % CONTENT) != [(1,)]:
            if time.time() > end:
                raise Failed('nobody waits for the last leaf')
            time.sleep(.01)
    first = threading.Thread(target=lambda: waited.append(point.run('INSERT INTO t ' + rows_of(900202, 900300), meanwhile)[1]), daemon=True)
    waited = []
    first.start()
    for session in first, thread:
        session.join(100)
        if session.is_alive():
            raise Failed('two insertions wait for each other')
    expect('it waited', waited, [True])
    query(connection, "SELECT pbtree_check('i', true)")
    no_crash(cluster)
    return '%d rows' % rows
