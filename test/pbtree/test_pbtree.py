#!/usr/bin/env python3
"""The tests of pbtree.

    test_pbtree.py --bindir BINDIR --work FOLDER [--seed N] [--full] [--only NAME ...]

Prints a line for each: "ok name remark" or "FAIL name remark".
"""
import argparse
import difflib
import os
import random
import subprocess
import sys
import threading
import time

import psycopg2

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import diff  # noqa: E402
from basics import SETTINGS, TESTS, Failed, Tests, connect, connect_to_standby, expect, no_crash, query, stop_without_checksums, test, wait_for_standby  # noqa: E402
import builds  # noqa: E402,F401
import keys  # noqa: E402,F401
import memory  # noqa: E402,F401
import races  # noqa: E402,F401
import server_suites  # noqa: E402,F401
import stale  # noqa: E402,F401
import structure  # noqa: E402,F401


@test
def sql(tests):
    """test/pbtree/sql/*.sql and what they are to print."""
    cluster = tests.cluster('sql')
    names = sorted(name[:-4] for name in os.listdir(os.path.join(HERE, 'sql')))
    for name in names:
        out = cluster.tool('psql', *cluster.connection(), '-X', '-a', '-q', '-d', 'postgres', '-f',
                           os.path.join(HERE, 'sql', name + '.sql'), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True).stdout.replace(os.path.join(HERE, 'sql') + '/', '')
        out = '\n'.join(line.split('psql:')[-1] if 'psql:' in line else line for line in out.split('\n'))
        if tests.args.accept:
            with open(os.path.join(HERE, 'expected', name + '.out'), 'w', encoding='utf-8') as file:
                file.write(out)
        with open(os.path.join(HERE, 'expected', name + '.out'), encoding='utf-8') as file:
            expected = file.read()
        if out != expected:
            raise Failed('\n' + '\n'.join(difflib.unified_diff(expected.split('\n'), out.split('\n'), lineterm='')))
    no_crash(cluster)
    return '%d files' % len(names)


@test
def preload(tests):
    """Without shared_preload_libraries logged indexes are refused, others work."""
    cluster, connection = tests.begin('preload', "fsync = off\n")
    query(connection, 'CREATE TABLE t AS SELECT generate_series(1, 1000) a')
    try:
        query(connection, 'CREATE INDEX ON t USING pbtree (a)')
        raise Failed('a logged index could be made')
    except psycopg2.errors.ObjectNotInPrerequisiteState as error:
        if 'shared_preload_libraries' not in error.diag.message_hint:
            raise Failed('no hint') from error
    for kind in ('TEMP', 'UNLOGGED'):
        query(connection, 'CREATE %s TABLE u (a int)' % kind)
        query(connection, 'CREATE INDEX ui ON u USING pbtree (a)')
        query(connection, 'INSERT INTO u SELECT g % 100 FROM generate_series(1, 20000) g')
        query(connection, 'DELETE FROM u WHERE a < 50')
        query(connection, 'VACUUM u')
        query(connection, 'SET enable_seqscan = off')
        if query(connection, "SELECT count(*), pbtree_check('ui', true) FROM u WHERE a >= 0")[0] != (10000, 10000):
            raise Failed('%s: wrong rows' % kind)
        if kind == 'TEMP':
            query(connection, 'DROP TABLE u')
    connection.close()
    cluster.stop('immediate')
    cluster.start()
    connection = connect(cluster)
    if query(connection, "SELECT count(*), pbtree_check('ui', true) FROM u") != [(0, 0)]:
        raise Failed('an unlogged index is not empty after a crash')
    return ''


@test
def old_root(tests):
    """A session that knows a root which others have split since then searches no more pages than one that does not."""
    cluster, writer = tests.begin('old_root')
    reader = connect(cluster)
    query(writer, 'CREATE TABLE t (a int)')
    query(writer, 'CREATE INDEX i ON t USING pbtree (a)')
    query(writer, 'INSERT INTO t VALUES (0)')
    query(reader, 'SET enable_seqscan = off; SET enable_bitmapscan = off')
    if query(reader, 'SELECT a FROM t WHERE a = 0') != [(0,)]:
        raise Failed('a row is missing')
    query(writer, 'INSERT INTO t SELECT g * 7919 % 200003 FROM generate_series(1, 100000) g')
    query(writer, 'VACUUM t')
    query(reader, 'SELECT pbtree_counters(true)')
    if query(reader, 'SELECT a FROM t WHERE a = 7919') != [(7919,)]:
        raise Failed('a row is missing')
    keys = query(reader, 'SELECT keys FROM pbtree_counters()')[0][0]
    if keys > 40:
        raise Failed('%d keys were compared for one row' % keys)
    no_crash(cluster)
    return '%d keys' % keys


def blocks(connection, text):
    """How many the index scan reads, its rows, and whether the index has all conditions."""
    plan = query(connection, 'EXPLAIN (ANALYZE, BUFFERS, FORMAT json) ' + text)[0][0][0]['Plan']
    while not plan['Node Type'].startswith('Index'):
        plan, = plan['Plans']
    return plan['Shared Hit Blocks'] + plan['Shared Read Blocks'], plan['Actual Rows'], 'Filter' not in plan


@test
def skips(tests):
    """Conditions behind a column without one: a scan reads only pages that can have such rows, and finds what a sequential scan finds."""
    cluster, connection = tests.begin('skips')
    query(connection, "CREATE TABLE t AS SELECT nullif(g % 30, 7) n, 'group ' || g % 30 s, g % 30 * 1.5 x, nullif(g / 30, 9) b FROM generate_series(1, 60000) g")
    query(connection, 'SET max_parallel_workers_per_gather = 0; SET enable_bitmapscan = off; SET enable_sort = off')
    query(connection, 'VACUUM ANALYZE t')
    most = 0
    for columns, back in (('n, b', 'n DESC, b DESC'), ('n DESC, b', 'n, b DESC'), ('n NULLS FIRST, b DESC', 'n DESC NULLS LAST, b'),
                          ('s, b', 's DESC, b DESC'), ('x DESC, b DESC', 'x, b'), ('n, b, x', 'n DESC, b DESC, x DESC')):
        query(connection, 'DROP INDEX IF EXISTS i; CREATE INDEX i ON t USING pbtree (%s) WITH (fillfactor = 10)' % columns)
        pages, = query(connection, "SELECT leaf_pages FROM pbtree_stats('i')")[0]
        for condition in ('b = 1000', 'b = ANY (ARRAY[-5, 1000, 1001, 99999])', 'b > 1998', 'b < 1', 'b IS NULL', 'b >= 500 AND b < 502',
                          'b > 500 AND b = 1000', 'b > 1900 AND b > 1998', 'b = ANY (ARRAY[3, 5]) AND b = ANY (ARRAY[4, 6])', 'b < 9 AND b = ANY (ARRAY[NULL, (SELECT NULL::int)])', 'x < 5 AND b = 1000'):
            for order in (columns, back):
                text = 'SELECT * FROM t WHERE %s ORDER BY %s' % (condition, order)
                query(connection, 'SET enable_seqscan = off')
                found = query(connection, text)
                # the table's pages of these rows are among the blocks
                read, rows, whole = blocks(connection, text)
                query(connection, 'SET enable_seqscan = on')
                expect(text, sorted(found, key=str), sorted(query(connection, text.partition(' ORDER')[0]), key=str))
                expect(text, len(found), rows)
                if whole:
                    most = max(most, (read - rows) / pages)
    # catalogs are not read while a page is locked: that wait could not be cancelled
    query(connection, "CREATE TABLE u AS SELECT g / 10 a, date '2020-01-01' + g % 10 d FROM generate_series(1, 5000) g; CREATE INDEX j ON u USING pbtree (a, d)")
    query(connection, "SET statement_timeout = '1s'; SET enable_seqscan = off")
    expect('dates', query(connection, "SELECT count(*) FROM u WHERE d = date '2020-01-05'"), [(500,)])
    other = connect(cluster)
    query(other, 'BEGIN; LOCK pg_amproc IN ACCESS EXCLUSIVE MODE')
    release = threading.Timer(30, query, (other, 'ROLLBACK'))
    release.start()
    expect_error(connection, "SELECT count(*) FROM u WHERE d = timestamp '2020-01-05'", 'timeout')
    if not release.is_alive():
        raise Failed('the scan could not be cancelled')
    release.cancel()
    query(other, 'ROLLBACK')
    expect('timestamps', query(connection, "SELECT count(*) FROM u WHERE d = timestamp '2020-01-05'"), [(500,)])
    # each of 31 groups has 20 pages or more
    if most > .4:
        raise Failed('%.2f of all leaves' % most)
    no_crash(cluster)
    return 'at most %.2f of all leaves' % most


@test
def bottom_up(tests):
    """Updates of another indexed column leave an index as small as btree's, without VACUUM; a snapshot of before finds its rows."""
    cluster, connection = tests.begin('bottom_up')
    old = connect(cluster)
    sizes = {}
    for method in ('btree', 'pbtree'):
        query(connection, "CREATE TABLE %s AS SELECT g id, g %% 100 few, 0 n, 'key ' || g t FROM generate_series(1, 5000) g" % method)
        for column in ('id', 'few', 't', 'n'):
            query(connection, 'CREATE INDEX %s_%s ON %s USING %s (%s)' % (method, column, method, method, column))
        for i in range(40):
            if i == 30:
                query(old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL enable_seqscan = off')
                before = query(old, 'SELECT sum(n) FROM %s' % method)
            query(connection, 'UPDATE %s SET n = n + 1' % method)
            if i in (20, 36):
                sizes[method, i] = [query(connection, "SELECT pg_relation_size('%s_%s')" % (method, column))[0][0] for column in ('id', 'few', 't')]
        if before != query(old, 'SELECT sum(n) FROM %s WHERE id > 0' % method):
            raise Failed('%s: an old snapshot does not find its rows' % method)
        query(old, 'COMMIT')
    for column in ('id', 'few', 't', 'n'):
        if query(connection, "SELECT count(*) FROM pbtree WHERE %s IS NOT NULL" % column) != [(5000,)]:
            raise Failed('wrong rows')
        query(connection, "SELECT pbtree_check('pbtree_%s', true)" % column)
    for b, p in zip(sizes['btree', 20], sizes['pbtree', 20]):
        if p > b:
            raise Failed('sizes: %s' % sizes)
    no_crash(cluster)
    return 'bytes: %s, %s' % (sizes['btree', 20], sizes['pbtree', 20])


@test
def parallel(tests):
    """Processes that share an index scan return each row once: ranges, arrays, backwards, index-only, restarted."""
    cluster, connection = tests.begin('parallel')
    query(connection, "CREATE TABLE t AS SELECT g * 7919 % 30011 a, g % 10 b, 'text ' || g c FROM generate_series(1, 30000) g")
    query(connection, 'CREATE INDEX i ON t USING pbtree (b, a) WITH (fillfactor = 20)')
    query(connection, 'VACUUM ANALYZE t')
    queries = ['SELECT count(*), sum(a), sum(length(c)) FROM t WHERE b >= 3 AND b < 8', 'SELECT count(*), sum(a) FROM t WHERE b >= 0',
               'SELECT count(*), sum(a), max(c) FROM t WHERE b = ANY (ARRAY[1, 5, 9, 9, 77]) AND a > 20000',
               'SELECT count(*), sum(a) FROM t WHERE b = ANY (ARRAY[1, 2]) AND a = ANY (ARRAY[%s])' % ', '.join(map(str, range(1, 30000, 70))),
               'SELECT b, a, c FROM t WHERE b > 2 ORDER BY b DESC, a DESC',
               'SELECT count(*), sum(x.n) FROM (VALUES (1), (4)) v (k), LATERAL (SELECT count(c) n FROM t WHERE b >= v.k) x']
    for name in ('parallel_setup_cost', 'parallel_tuple_cost', 'min_parallel_table_scan_size', 'min_parallel_index_scan_size'):
        query(connection, 'SET %s = 0' % name)
    plans = 0
    for text in queries:
        found = []
        for on in ('off', 'on'):
            query(connection, 'SET enable_seqscan = %s; SET enable_bitmapscan = off; SET enable_indexscan = %s' % ('off' if on == 'on' else 'on', on))
            query(connection, 'SET enable_indexonlyscan = %s; SET max_parallel_workers_per_gather = %d' % (on, 2 if on == 'on' else 0))
            plans += 'Parallel Index' in str(query(connection, 'EXPLAIN ' + text))
            found.append(query(connection, text))
        if found[0] != found[1]:
            raise Failed('%s: %s' % (text, str(found)[:500]))
    if plans < 3:
        raise Failed('%d parallel index scans' % plans)
    no_crash(cluster)
    return '%d of %d queries' % (plans, len(queries))


@test
def check_rights(tests):
    """pbtree_check runs an index's functions as the table's owner, and says what it cannot check."""
    cluster, connection = tests.begin('check_rights')
    query(connection, "CREATE ROLE mallory; GRANT CREATE ON SCHEMA public TO mallory; SET ROLE mallory")
    query(connection, "CREATE FUNCTION f(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN $1; END'")
    query(connection, 'CREATE TABLE t (a int); INSERT INTO t SELECT generate_series(1, 100); CREATE INDEX i ON t USING pbtree (f(a))')
    query(connection, "CREATE OR REPLACE FUNCTION f(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS "
          "$$BEGIN IF current_user <> 'mallory' THEN RAISE 'as %', current_user; END IF; RETURN $1; END$$")
    query(connection, 'RESET ROLE')
    expect('checked', query(connection, "SELECT pbtree_check('i', true), current_user"), [(100, query(connection, 'SELECT session_user')[0][0])])
    query(connection, 'DROP TABLE t; CREATE TABLE t (a int, b int); INSERT INTO t SELECT g, g FROM generate_series(1, 100) g')
    other = connect(cluster)
    query(other, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1')
    query(connection, 'UPDATE t SET a = -a WHERE a = 7; CREATE INDEX i ON t USING pbtree (a)')
    expect_error(other, "SELECT pbtree_check('i', true)", 'cannot be checked using transaction snapshot')
    query(other, 'ROLLBACK')
    expect('later', query(other, "SELECT pbtree_check('i', true)"), [(100,)])
    query(connection, 'BEGIN; UPDATE t SET a = a')
    query(other, "SET statement_timeout = '500ms'")
    expect_error(other, 'CREATE INDEX CONCURRENTLY j ON t USING pbtree (b)', 'timeout')
    query(connection, 'ROLLBACK')
    expect_error(other, "SELECT pbtree_check('j', true)", 'not valid')
    query(connection, 'CREATE TABLE u AS SELECT generate_series(1, 300000) a; CREATE INDEX k ON u USING pbtree (a)')
    query(connection, "SET statement_timeout = '5ms'")
    for rows in ('false', 'true'):
        expect_error(connection, "SELECT pbtree_check('k', %s)" % rows, 'timeout')
    no_crash(cluster)
    return ''


def expect_error(connection, text, what):
    try:
        query(connection, text)
    except psycopg2.Error as error:
        if what not in str(error):
            raise Failed('%s: %s' % (text, error)) from error
        return
    raise Failed('%s: no error' % text)


@test
def external(tests):
    """Long values of columns that are not to be compressed: what an insertion accepts the index can be made of, and returns."""
    cluster, connection = tests.begin('external')
    texts = ["repeat('x', 20000 + g) || g", "repeat('short', g % 40)", "CASE WHEN g % 7 > 0 THEN repeat(md5(g::text), 200 + g % 100) END"]
    for when in 'before', 'after':
        query(connection, 'DROP TABLE IF EXISTS t; CREATE TABLE t (a text, b int)')
        if when == 'before':
            query(connection, 'ALTER TABLE t ALTER a SET STORAGE external')
        query(connection, 'CREATE INDEX i ON t USING pbtree (a, b)')
        for text in texts:
            query(connection, 'INSERT INTO t SELECT %s, g FROM generate_series(1, 300) g' % text)
        query(connection, 'ALTER TABLE t ALTER a SET STORAGE external')
        query(connection, 'VACUUM ANALYZE t')
        by_table = query(connection, 'SET enable_seqscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_sort = on; SELECT md5(a), b FROM t ORDER BY a, b')
        query(connection, 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexscan = on; SET enable_indexonlyscan = on; SET enable_sort = off')
        for step in ('inserted', 'REINDEX INDEX i', "SET maintenance_work_mem = '1MB'; REINDEX INDEX i", 'DROP INDEX i; CREATE INDEX i ON t USING pbtree (a DESC) INCLUDE (b)'):
            if step != 'inserted':
                query(connection, step)
                query(connection, 'VACUUM t')
            order = 'a, b' if 'DESC' not in step else 'a'
            plan = str(query(connection, 'EXPLAIN SELECT a, b FROM t ORDER BY ' + order))
            if 'Index Only Scan' not in plan:
                raise Failed(plan)
            expect(step, sorted(map(str, query(connection, 'SELECT md5(a), b FROM (SELECT a, b FROM t ORDER BY %s) x' % order))), sorted(map(str, by_table)))
            query(connection, "SELECT pbtree_check('i', true)")
    no_crash(cluster)
    return ''


@test
def differences(tests):
    """diff.py, in a cluster of its own each."""
    seeds = 6 if tests.args.full else 2
    rounds = 30 if tests.args.full else 6
    cluster = tests.cluster('diff')
    for seed in range(tests.args.seed, tests.args.seed + seeds):
        run = subprocess.run([sys.executable, '-B', os.path.join(HERE, 'diff.py'), '--socket', cluster.socket, '--seed', str(seed),
                              '--rounds', str(rounds)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             check=False)
        if run.returncode:
            raise Failed('\n' + run.stdout)
    no_crash(cluster)
    return 'seeds %d to %d, %d rounds each' % (tests.args.seed, tests.args.seed + seeds - 1, rounds)


def start_load(cluster, seed, workers, *kinds):
    """A diff.py table under random changes, by threads that end with the connection."""
    r = random.Random(seed)
    this = diff.Round(lambda: connect(cluster), r, workers)
    this.make([name for name in diff.TYPES if 'icu' not in name], *kinds)
    threads = [threading.Thread(target=this.work, args=(r.random(),)) for _ in range(workers)]
    for thread in threads:
        thread.start()
    return this, threads


def make_types(cluster):
    with connect(cluster).cursor() as cursor:
        cursor.execute('CREATE EXTENSION pbtree')
        cursor.execute(diff.SETUP)
        cursor.execute("ALTER TYPE mood ADD VALUE 'late' BEFORE 'ok'")


@test
def crash(tests):
    """Changes, kill, recovery, and each index and row is looked at."""
    rounds = 40 if tests.args.full else 6
    cluster = tests.cluster('crash', SETTINGS + "checkpoint_timeout = 30s\n")
    make_types(cluster)
    for i in range(rounds):
        seed = tests.args.seed * 1000 + i
        this, threads = start_load(cluster, seed, 3)
        time.sleep(2 + 3 * random.Random(seed).random())
        cluster.stop('immediate')
        for thread in threads:
            thread.join()
        cluster.start()
        this.main = connect(cluster)
        logged = query(this.main, "SELECT relpersistence FROM pg_class WHERE relname = 't'")[0][0] == 'p'
        for j in range(len(this.indexes)):
            valid = query(this.main, "SELECT indisvalid FROM pg_index WHERE indexrelid = 'i%d'::regclass" % j)[0][0]
            if valid:
                query(this.main, "SELECT pbtree_check('i%d', true)" % j)
        if logged:
            this.change(this.main, this.r)
            this.finish()
        this.main.close()
    no_crash(cluster)
    return '%d rounds' % rounds


@test
def standby(tests):
    """A standby's answers by index and without, while the primary changes everything; each page that is redone is compared."""
    rounds = 10 if tests.args.full else 2
    cluster = tests.cluster('primary')
    make_types(cluster)
    replica = tests.standby(cluster, 'standby', 'max_standby_streaming_delay = 200ms\n')
    asked = 0
    for i in range(rounds):
        this, threads = start_load(cluster, tests.args.seed * 1000 + i, 2, [''])
        reader = connect_to_standby(replica)
        end = time.time() + 20
        while time.time() < end:
            try:
                if this.ask_standby(reader, this.r):
                    asked += 1
                else:
                    reader = connect_to_standby(replica)
            except (psycopg2.errors.SerializationFailure, psycopg2.OperationalError, psycopg2.errors.UndefinedColumn,
                    psycopg2.errors.lookup('42P01')):
                # a conflict with recovery, or the table of the round before, or none yet
                reader = connect_to_standby(replica)
        this.stop.set()
        for thread in threads:
            thread.join()
        if this.errors:
            raise this.errors[0]
        wait_for_standby(this.main, replica)
        for j in range(len(this.indexes)):
            this.main.cursor().execute("SELECT pbtree_check('i%d', true)" % j)
    no_crash(cluster)
    no_crash(replica)
    if asked == 0:
        raise Failed('no question was asked')
    return '%d questions' % asked


def damaged_index(tests, name):
    """A stopped cluster with indexes to damage, and their files with what is in them."""
    cluster, connection = tests.begin(name, "fsync = off\nautovacuum = off\nshared_preload_libraries = 'pbtree'\nrestart_after_crash = off\n")
    query(connection, "CREATE TABLE t AS SELECT g % 500 a, 'x' || g % 700 b FROM generate_series(1, 20000) g")
    query(connection, 'CREATE INDEX i ON t USING pbtree (a, b) WITH (fillfactor = 30)')
    query(connection, 'CREATE INDEX j ON t USING pbtree (a) WITH (fillfactor = 30)')
    query(connection, 'CHECKPOINT')
    files = [os.path.join(cluster.data, query(connection, "SELECT pg_relation_filepath('%s')" % name)[0][0]) for name in 'ij']
    connection.close()
    stop_without_checksums(cluster)
    originals = []
    for name in files:
        with open(name, 'rb') as file:
            originals.append(file.read())
    return cluster, files, originals


def write_image(name, image):
    with open(name, 'r+b') as file:
        file.truncate(len(image))
        file.write(image)


@test
def damage(tests):
    """Bytes of an index's file are changed: errors, no crash, no endless loop."""
    rounds = 300 if tests.args.full else 40
    cluster, files, originals = damaged_index(tests, 'damage')
    r = random.Random(tests.args.seed)
    errors = 0
    for _ in range(rounds):
        which = r.randrange(2)
        images = [bytearray(image) for image in originals]
        for _ in range(r.choice([1, 1, 3, 20])):
            block = r.randrange(len(images[which]) // 8192)
            place = r.choice([r.randrange(8192), r.randrange(24), 8160 + r.randrange(28), 24 + r.randrange(200)])
            images[which][block * 8192 + place] = r.randrange(256)
        for name, image in zip(files, images):
            write_image(name, image)
        cluster.start()
        errors += try_statements(cluster, r, 'ij'[which])
        cluster.stop('immediate' if r.random() < .1 else 'fast')
    no_crash(cluster)
    return '%d rounds, %d errors' % (rounds, errors)


@test
def links(tests):
    """Links of leaves, and downlinks, lead to wrong pages, in circles too: errors, no crash, no endless loop."""
    rounds = 200 if tests.args.full else 12
    cluster, files, originals = damaged_index(tests, 'links')
    r = random.Random(tests.args.seed)
    errors = 0
    blocks = len(originals[0]) // 8192
    for i in range(rounds):
        image = bytearray(originals[0])
        for _ in range(r.choice([1, 1, 2])):
            block, other = r.randrange(1, blocks), r.choice([0, r.randrange(1, blocks), 0, blocks + 7, 7864337])
            if other == 0 and r.random() < .8:
                other = max(block - r.randrange(4), 1)
            if image[block * 8192 + 8160 + 24] > 0 and r.random() < .8:
                lower = int.from_bytes(image[block * 8192 + 12:block * 8192 + 14], sys.byteorder)
                slots = range(block * 8192 + 24, block * 8192 + lower, 4 if image[block * 8192 + 8180] & 8 else 2)
                at = block * 8192 + (int.from_bytes(image[(s := r.choice(slots)):s + 2], sys.byteorder) & 0x1FFF)
            else:
                at = block * 8192 + 8160 + 4 * (i % 2)
                other = block if r.random() < .2 else other
            image[at:at + 4] = other.to_bytes(4, sys.byteorder)
        write_image(files[0], image)
        cluster.start()
        errors += try_statements(cluster, r, 'i')
        cluster.stop('immediate')
    no_crash(cluster)
    return '%d rounds, %d errors' % (rounds, errors)


def try_statements(cluster, r, index):
    """On a damaged index; how many of them end with an error."""
    errors = 0
    connection = connect(cluster)
    for text in ("SELECT pbtree_check('%s', true)" % index, 'SELECT count(b) FROM t WHERE a > 0 AND a < 480',
                 'SELECT a FROM t WHERE a >= 0 ORDER BY a DESC', 'SELECT a FROM t WHERE a >= 0 ORDER BY a DESC, b DESC', 'SELECT a, b FROM t WHERE a = 77', 'VACUUM t',
                 "INSERT INTO t SELECT g % 500, 'x' || g FROM generate_series(1, 300) g",
                 'DELETE FROM t WHERE a = %d' % r.randrange(500)):
        try:
            query(connection, "SET enable_seqscan = off; SET statement_timeout = '100s'")
            query(connection, text)
        except psycopg2.errors.QueryCanceled as error:
            raise Failed('does not end: %s' % text) from error
        except psycopg2.OperationalError as error:
            no_crash(cluster)
            raise Failed(str(error)) from error
        except (psycopg2.Error, UnicodeDecodeError):
            errors += 1
    connection.close()
    return errors


# only with --full, or if they are named
LONG = ('regress', 'isolation')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--bindir', required=True)
    parser.add_argument('--work', required=True)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--full', action='store_true')
    parser.add_argument('--accept', action='store_true', help='what is printed is what is expected')
    parser.add_argument('--source', help="PostgreSQL's unpacked source, for its own suites")
    parser.add_argument('--keep', help="a folder that keeps btree's outputs of these suites")
    parser.add_argument('--suggest', help='a folder for what the allow-list lacks')
    parser.add_argument('--only', action='append', choices=TESTS)
    args = parser.parse_args()
    os.makedirs(args.work, exist_ok=True)
    failed = 0
    for name, function in TESTS.items():
        if name not in args.only if args.only else name in LONG and not args.full:
            continue
        tests = Tests(args)
        begun = time.monotonic()
        try:
            remark = function(tests)
            print('ok %s %.0f s  %s' % (name, time.monotonic() - begun, remark), flush=True)
        except Exception as error:  # pylint: disable=broad-except
            failed += 1
            print('FAIL %s seed %d: %s: %s' % (name, args.seed, type(error).__name__, error), flush=True)
        finally:
            tests.stop()
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
