"""CREATE INDEX: all ways to sort, and with workers (from 17 on)."""
import random
import threading

import psycopg2

from basics import SETTINGS, Failed, connect, expect, no_crash, query, test

MAKE = """CREATE TABLE t AS SELECT CASE WHEN g % 1000 <> 7 THEN g * 7919 % 140009 END a, 'key ' || g * 31 % 140009 b, g % 300 c,
    NULL::text d, CASE WHEN g % 3 > 0 THEN (g % 50)::text END e, md5(g::text)::uuid u, g % 77::numeric n, g FROM generate_series(1, 140000) g"""
ROWS = 140000
BODIES = ['(a)', '(a DESC, c)', '(a DESC NULLS LAST)', '(u)', '(c DESC, a)', '(b)', '(b DESC) INCLUDE (a)', '(c)', '(d, e)', '(e DESC, c)', '(d)',
          '(b COLLATE "C", e)', '(c, u)', '(n, a)', '((a + c)) WHERE c > 10']


def digest(connection):
    """Of all that is in the index i."""
    return query(connection, """SELECT pbtree_check('i', true), pg_relation_size('i'), md5(string_agg(x::text, ' ' ORDER BY b, x.offset)) FROM
        generate_series(1, pg_relation_size('i') / current_setting('block_size')::int - 1) b, pbtree_items('i', b) x""")[0]


def make_index(connection, statement, workers):
    """For so many workers the server has asked."""
    query(connection, 'ALTER TABLE t SET (parallel_workers = %d); SET max_parallel_maintenance_workers = %d' % (workers, workers))
    del connection.notices[:]
    query(connection, 'SET client_min_messages = debug1')
    try:
        query(connection, statement)
    finally:
        query(connection, 'RESET client_min_messages')
    found = [notice.strip() for notice in connection.notices if 'building index "i"' in notice]
    wanted = 'with request for %d parallel workers' % workers if workers else 'serially'
    if not found or not found[0].endswith(wanted):
        raise Failed('%s: %s instead of "%s"' % (statement, found, wanted))


@test
def ways_to_build(tests):
    """CREATE INDEX in each of its ways to sort: few keys, short keys as words, index tuples, and with too little memory for these; workers change nothing."""
    cluster, connection = tests.begin('ways_to_build')
    query(connection, MAKE)
    has_workers = connection.server_version >= 170000
    for memory in ('64MB', '1MB'):
        query(connection, "SET maintenance_work_mem = '%s'" % memory)
        for body in BODIES:
            digests = []
            for workers in (0, 2) if has_workers else (0,):
                make_index(connection, 'CREATE INDEX i ON t USING pbtree ' + body, workers)
                digests.append(digest(connection))
                query(connection, 'DROP INDEX i')
            if digests[0][0] != (ROWS if 'WHERE' not in body else query(connection, 'SELECT count(*) FROM t WHERE c > 10')[0][0]):
                raise Failed('%s, %s: %d rows' % (body, memory, digests[0][0]))
            expect('%s, %s: kinds of indexes' % (body, memory), len(set(digests)), 1)
    no_crash(cluster)
    return '%d indexes%s' % (2 * len(BODIES), ', with and without workers' if has_workers else '')


def fails(connection, statement, error, workers=2):
    try:
        make_index(connection, statement, workers)
    except error:
        return
    raise Failed('%s has not failed' % statement)


@test
def builds_with_workers(tests):
    """Workers that cannot be had, fail, find keys twice, meet dead rows that an old snapshot needs; concurrent builds."""
    cluster, connection = tests.begin('builds_with_workers')
    if connection.server_version < 170000:
        return 'skipped: before 17 core asks for workers for btree only'
    query(connection, MAKE)
    query(connection, 'SET max_parallel_workers = 0')
    make_index(connection, 'CREATE INDEX i ON t USING pbtree (b)', 2)
    expect('without workers', digest(connection)[0], ROWS)
    query(connection, 'RESET max_parallel_workers; DROP INDEX i')
    for row in (1, ROWS // 2, ROWS):
        fails(connection, 'CREATE INDEX i ON t USING pbtree ((1 / (g - %d)))' % row, psycopg2.errors.DivisionByZero)
    for concurrently in ('', 'CONCURRENTLY'):
        make_index(connection, 'CREATE INDEX %s i ON t USING pbtree (b, a)' % concurrently, 3)
        expect(concurrently, digest(connection)[0], ROWS)
        if concurrently:
            query(connection, 'REINDEX INDEX CONCURRENTLY i')       # builds another one, with another name
        else:
            make_index(connection, 'REINDEX INDEX i', 2)
        expect('REINDEX ' + concurrently, digest(connection)[0], ROWS)
        query(connection, 'DROP INDEX i')
    query(connection, "BEGIN; SET LOCAL statement_timeout = '30ms'")
    try:
        query(connection, 'CREATE INDEX i ON t USING pbtree (n, b)')
        raise Failed('it was not cancelled')
    except psycopg2.errors.QueryCanceled:
        query(connection, 'ROLLBACK')
    if connection.server_version >= 180000:
        unique_builds(cluster, connection)
    expect('temporary files', query(connection, 'SELECT count(*) FROM pg_ls_tmpdir()'), [(0,)])
    no_crash(cluster)
    return ''


def unique_builds(cluster, connection):
    query(connection, 'UPDATE t SET u = (SELECT u FROM t WHERE g = 1) WHERE g = %d' % ROWS)
    query(connection, 'VACUUM t')
    fails(connection, 'CREATE UNIQUE INDEX i ON t USING pbtree (u)', psycopg2.errors.UniqueViolation)
    query(connection, 'DELETE FROM t WHERE g = %d' % ROWS)
    query(connection, 'VACUUM t')
    make_index(connection, 'CREATE UNIQUE INDEX i ON t USING pbtree (u)', 3)
    expect('unique', digest(connection)[0], ROWS - 1)
    query(connection, 'DROP INDEX i; ALTER TABLE t ADD pad text; CREATE INDEX other ON t (pad)')
    old = connect(cluster)
    query(old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL enable_seqscan = off')
    before = query(old, "SELECT count(*), sum(c), count(pad) FROM t WHERE g > 0")
    query(connection, "UPDATE t SET pad = 'new', c = c + 1; DELETE FROM t WHERE g = 77; INSERT INTO t (g) VALUES (77)")
    make_index(connection, 'CREATE UNIQUE INDEX i ON t USING pbtree (g)', 3)
    expect('with dead rows', digest(connection)[0], 2 * (ROWS - 1) + 1)
    expect('an old snapshot', query(old, "SELECT count(*), sum(c), count(pad) FROM t WHERE g > 0"), before)
    query(old, 'COMMIT')
    old.close()


def change_rows(cluster, seed, stop, failures):
    """Until told to stop: random changes, some of them by prepared transactions, some rolled back."""
    r = random.Random(seed)
    connection = connect(cluster)
    number = 0
    while not stop.is_set():
        number += 1
        name = 'p%d_%d' % (seed, number)
        change = r.choice(['INSERT INTO w SELECT {k}, g, {s} FROM generate_series(1, {n}) g', 'UPDATE w SET k = {k} WHERE g = {n}',
                           'UPDATE w SET s = {s} WHERE k = {k}', 'DELETE FROM w WHERE k = {k} AND g < {n}'])
        change = change.format(k=r.randrange(300), n=r.randrange(1, 30), s="'s%d'" % r.randrange(1000))
        end = r.choice(['COMMIT', 'COMMIT', 'ROLLBACK', "PREPARE TRANSACTION '%s'" % name])
        try:
            query(connection, 'BEGIN; ' + change)
            query(connection, end)
            if end.startswith('PREPARE'):
                query(connection, "%s PREPARED '%s'" % (r.choice(['COMMIT', 'ROLLBACK']), name))
        except psycopg2.errors.DeadlockDetected:
            query(connection, 'ROLLBACK')
        except psycopg2.Error as error:
            failures.append(str(error))
            return
    connection.close()


@test
def builds_among_changes(tests):
    """CREATE and REINDEX INDEX CONCURRENTLY while others insert, update and delete, also in prepared transactions: no row is missing in the index."""
    settings = SETTINGS.replace("'pbtree'", "'inplace,pbtree'", 1) + 'max_prepared_transactions = 20\n'
    cluster, connection = tests.begin('builds_among_changes', settings)
    query(connection, 'CREATE EXTENSION inplace')
    rounds = 12 if tests.args.full else 3
    for am in ('heap', 'inplace'):
        query(connection, 'DROP TABLE IF EXISTS w; CREATE TABLE w (k int, g int, s text) USING %s WITH (parallel_workers = 1)' % am)
        query(connection, "INSERT INTO w SELECT g % 300, g, 's' || g FROM generate_series(1, 3000) g")
        stop, failures = threading.Event(), []
        threads = [threading.Thread(target=change_rows, args=(cluster, tests.args.seed * 10 + i, stop, failures)) for i in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(rounds):
                for body in ('(k)', '(s, k) WITH (fillfactor = 30)', '((k + g))', '(g) WHERE k < 100'):
                    query(connection, 'CREATE INDEX CONCURRENTLY i ON w USING pbtree ' + body)
                    query(connection, "SELECT pbtree_check('i', true)")
                    query(connection, 'REINDEX INDEX CONCURRENTLY i')
                    query(connection, "SELECT pbtree_check('i', true)")
                    query(connection, 'DROP INDEX i')
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        expect(am, failures, [])
    no_crash(cluster)
    return '%d builds' % (rounds * 16)


@test
def build_progress(tests):
    """pg_stat_progress_create_index tells how far the scan of a table is, of an inplace table as of heap, alone and with workers."""
    settings = SETTINGS.replace("'pbtree'", "'inplace,pbtree'", 1)
    cluster, connection = tests.begin('build_progress', settings)
    query(connection, 'CREATE EXTENSION inplace')
    query(connection, """CREATE FUNCTION slow(int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS
        'BEGIN IF $1 % 40 = 0 THEN PERFORM pg_sleep(.001); END IF; RETURN $1; END'""")
    watcher = connect(cluster)
    for table in ('heap', 'inplace'):
        query(connection, 'DROP TABLE IF EXISTS t; CREATE TABLE t USING %s AS SELECT g, repeat(chr(65), 200) s FROM generate_series(1, 20000) g' % table)
        for method in ('btree', 'pbtree'):
            for workers in (0, 1):
                query(connection, 'ALTER TABLE t SET (parallel_workers = %d); SET max_parallel_maintenance_workers = %d' % (workers, workers))
                thread = threading.Thread(target=query, args=(connection, 'CREATE INDEX i ON t USING %s (slow(g))' % method))
                thread.start()
                seen = set()
                while thread.is_alive():
                    seen.update(query(watcher, 'SELECT blocks_done, blocks_total FROM pg_stat_progress_create_index WHERE blocks_total > 0'))
                thread.join()
                query(connection, 'DROP INDEX i')
                blocks = query(connection, "SELECT pg_relation_size('t') / current_setting('block_size')::int")[0][0]
                if len({done for done, total in seen if 0 < done < total == blocks}) < 5:
                    raise Failed('%s, %s, %d workers: of %d blocks %s' % (table, method, workers, blocks, sorted(seen)[:20]))
    no_crash(cluster)
    return ''
