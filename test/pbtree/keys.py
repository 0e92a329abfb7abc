"""Tests of pbtree: indexes of inplace tables, whose entries follow updates in place."""
import os
import random
import subprocess
import sys
import threading
import time

import psycopg2

import diff
from basics import SETTINGS, Failed, connect, connect_to_standby, expect, has_points, no_crash, query, test, wait_for_standby
from races import Point

INPLACE = SETTINGS.replace("'pbtree'", "'inplace,pbtree'", 1).replace("= 'pbtree'", "= 'all'") + "max_prepared_transactions = 20\n"
WAYS = {'index': 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; SET enable_indexscan = on',
        'only': 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = on; SET enable_indexscan = on',
        'bitmap': 'SET enable_seqscan = off; SET enable_bitmapscan = on; SET enable_indexonlyscan = off; SET enable_indexscan = off',
        'seq': 'SET enable_seqscan = on; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; SET enable_indexscan = off'}


def begin(tests, name):
    cluster = tests.cluster(name, INPLACE)
    connection = connect(cluster)
    query(connection, 'CREATE EXTENSION inplace; CREATE EXTENSION pbtree')
    return cluster, connection


def by_all_ways(connection, what, text, wanted):
    for way, settings in WAYS.items():
        query(connection, settings)
        plan = str(query(connection, 'EXPLAIN ' + text))
        if {'index': 'Index Scan', 'only': 'Index Only Scan', 'bitmap': 'Bitmap', 'seq': 'Seq Scan'}[way] not in plan:
            raise Failed(plan)
        expect('%s, %s' % (what, way), sorted(query(connection, text)), wanted)


def make(connection, indexes, rows=300, columns='id int PRIMARY KEY, k int, s text, pad text'):
    query(connection, 'DROP TABLE IF EXISTS t; CREATE TABLE t (%s) USING inplace' % columns)
    query(connection, "INSERT INTO t SELECT g, g, 'key ' || g FROM generate_series(1, %d) g" % rows)
    for index in indexes:
        query(connection, 'CREATE INDEX ON t ' + index)


def stays(connection, change, row=7):
    """Does the update leave the row where it is?"""
    before = query(connection, 'SELECT ctid FROM t WHERE id = %d' % row)
    query(connection, 'UPDATE t SET %s WHERE id = %d' % (change, row))
    return query(connection, 'SELECT ctid FROM t WHERE id = %d' % row) == before


@test
def keys_in_place(tests):
    """Which indexes let an update stay in place, and that it is counted as HOT."""
    cluster, connection = begin(tests, 'keys_in_place')
    cases = [('USING pbtree (k)', True), ('USING pbtree (s, k DESC)', True), ('USING btree (k)', False),
             ('USING pbtree (s) INCLUDE (k)', False), ('USING pbtree (k) WHERE k > 0', False),
             ('USING pbtree ((k + 1))', False), ('USING pbtree ((k::numeric))', False), ('USING hash (k)', False),
             ('USING pbtree (k, pad COLLATE "C")', True)]
    for index, in_place in cases:
        make(connection, [index])
        for change in ('k = k + 1000', 'k = k - 1000', 'k = NULL'):
            expect(index + ', ' + change, stays(connection, change), in_place)
    make(connection, ['USING pbtree (k)', 'USING pbtree (s)', 'USING btree (s)'])
    expect('k', stays(connection, 'k = 1'), True)
    expect('s, which btree has, too', stays(connection, "s = 'x'"), False)
    if connection.server_version >= 160000:
        make(connection, ['USING pbtree (k)', 'USING brin (k)'])
        expect('summarized, too', stays(connection, 'k = 1'), True)
    query(connection, 'DROP TABLE IF EXISTS t; CREATE TABLE t (id int PRIMARY KEY, k numeric, s float8) USING inplace')
    query(connection, 'INSERT INTO t VALUES (7, 1.0, 0); CREATE INDEX ON t USING pbtree (k); CREATE INDEX ON t USING pbtree (s)')
    expect('numeric', stays(connection, 'k = 1.00'), False)
    make(connection, ['USING pbtree (k)'])
    query(connection, 'UPDATE t SET k = -k')
    query(connection, 'SELECT pg_sleep(1); SELECT pg_stat_clear_snapshot()')
    end = time.time() + 60
    while query(connection, "SELECT n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 't'") != [(300,)] and time.time() < end:
        time.sleep(.2)
    expect('HOT', query(connection, "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 't'"), [(300, 300)])
    no_crash(cluster)
    return '%d kinds of index' % len(cases)


@test
def keys_stale_batch(tests):
    """A scan has read an entry that is stale; VACUUM removes it, and forgets that there was one."""
    cluster, connection = begin(tests, 'keys_stale_batch')
    for way in ('index', 'only', 'index of a parameter'):
        make(connection, ['USING pbtree (k)'])
        query(connection, 'UPDATE t SET k = 200000 + k WHERE id BETWEEN 100 AND 200; UPDATE t SET k = 100 WHERE id = 150')
        wanted = query(connection, 'SELECT k FROM t ORDER BY k')
        reader = connect(cluster)
        query(reader, WAYS[way.split()[0]] + '; BEGIN ISOLATION LEVEL REPEATABLE READ')
        query(reader, 'DECLARE c CURSOR FOR SELECT k FROM t WHERE k > 0 ORDER BY k')
        rows = query(reader, 'FETCH 10 FROM c')
        query(connection, 'SET lock_timeout = 0')
        vacuum = threading.Thread(target=lambda: query(connect(cluster), 'VACUUM (INDEX_CLEANUP on) t'))
        vacuum.start()
        vacuum.join(1 if way == 'only' else None)
        rows += query(reader, 'FETCH ALL FROM c')
        query(reader, 'COMMIT')
        vacuum.join()
        expect(way, rows, wanted)
        expect('stale entries', query(connection, "SELECT pbtree_check('t_k_idx', true)"), [(300,)])
        plan = query(reader, WAYS['only'] + '; EXPLAIN (ANALYZE, TIMING off, COSTS off) SELECT k FROM t WHERE k > 0')
        expect('rows looked at after VACUUM', [row[0].strip() for row in plan if 'Heap Fetches' in row[0]], ['Heap Fetches: 0'])
        reader.close()
    no_crash(cluster)
    return ''


@test
def keys_settled(tests):
    """A page that VACUUM has settled is so no more after an update in place of a column that has no index yet."""
    cluster, connection = begin(tests, 'keys_settled')
    old = connect(cluster)
    for change in ('UPDATE t SET b = -1 WHERE id <= 100', 'BEGIN; UPDATE t SET b = -1 WHERE id <= 100; ROLLBACK'):
        query(connection, 'DROP TABLE IF EXISTS t; CREATE TABLE t (id int PRIMARY KEY, a int, b int) USING inplace')
        query(connection, 'INSERT INTO t SELECT g, g, g FROM generate_series(1, 100000) g; CREATE INDEX ON t USING pbtree (a)')
        query(connection, 'VACUUM t')
        query(connection, 'UPDATE t SET a = -a WHERE id <= 100 OR id BETWEEN 5001 AND 5100')
        # of so few pages it does not look at indexes, and they stay settled
        query(connection, 'VACUUM t')
        query(old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1')
        for statement in change.split('; '):
            query(connection, statement)
        reader = connection if 'ROLLBACK' in change else old
        query(connection, 'CREATE INDEX ON t USING pbtree (b)')
        if reader == connection:
            query(old, 'COMMIT')
        for step in range(2):
            query(reader, WAYS['index'])
            expect('%s, %d' % (change, step), query(reader, 'SELECT count(*) FROM t WHERE b BETWEEN 1 AND 100 AND id <= 100'), [(100,)])
            if step == 0 and reader == connection:
                query(connection, 'UPDATE t SET b = id % 100 + 1 WHERE id BETWEEN 50001 AND 51200')
            elif step == 0:
                query(connection, 'VACUUM (INDEX_CLEANUP on) t')
        query(old, 'ROLLBACK')
    expect('inplace_check', query(connection, "SELECT * FROM inplace_check('t')"), [])
    no_crash(cluster)
    return ''


@test
def keys_vacuum_records(tests):
    """VACUUM logs two records for a page with dead rows and stale keys: before the indexes forget them, and after."""
    cluster, connection = begin(tests, 'keys_vacuum_records')
    query(connection, 'CREATE EXTENSION pg_walinspect; SET synchronous_commit = on')
    make(connection, ['USING pbtree (k)'], 3000)
    query(connection, 'VACUUM t')
    query(connection, 'UPDATE t SET k = k + 10000 WHERE id % 3 = 0')
    query(connection, 'DELETE FROM t WHERE id % 5 = 0')
    begun = query(connection, 'SELECT pg_current_wal_insert_lsn()')[0][0]
    query(connection, 'VACUUM (INDEX_CLEANUP ON) t')
    data = "generate_series(0, pg_relation_size('t') / 8192 - 1) b, inplace_page('t', b) WHERE kind = 'data'"
    records = """(SELECT block::int, count(*) AS n FROM pg_get_wal_records_info('%s', pg_current_wal_flush_lsn()),
        substring(block_ref FROM 'rel \\d+/\\d+/' || pg_relation_filenode('t') || ' (?:fork main )?blk (\\d+)') AS block
        WHERE resource_manager = 'inplace' GROUP BY block)""" % begun
    pages = query(connection, 'SELECT count(*) FROM ' + data)[0][0]
    expect('pages that were cleaned, and the most records', query(connection,
           'SELECT count(*), max(n) FROM %s AS r WHERE block IN (SELECT b FROM %s)' % (records, data)), [(pages, 2)])
    expect('all-visible pages', query(connection, "SELECT relallvisible FROM pg_class WHERE relname = 't'"), [(pages,)])
    no_crash(cluster)
    return '%d pages' % pages


@test
def keys_many_versions(tests):
    """An index that is made has one entry for each key of a row's many versions: of rows with a few, and with many."""
    cluster, connection = begin(tests, 'keys_many_versions')
    make(connection, ['USING pbtree (k)', 'USING pbtree (s, k)'], rows=10)
    old = connect(cluster)
    query(old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1')
    for row, updates, keys in (2, 4000, 1500), (3, 70, 33), (4, 60, 31):
        query(connection, "DO $$BEGIN FOR i IN 1 .. %d LOOP UPDATE t SET k = 1000000 + i * 7 %% %d, s = nullif('key ' || i * 7 %% %d %% 5, 'key 3') WHERE id = %d; "
              'COMMIT; END LOOP; END$$' % (updates, keys, keys, row))
    for name in ('t_k_idx', 't_s_k_idx'):
        query(connection, 'REINDEX INDEX ' + name)
        expect(name, query(connection, "SELECT rows FROM pbtree_stats('%s')" % name), [(10 + 1500 + 33 + 31,)])
        query(connection, "SELECT pbtree_check('%s', true)" % name)
    for reader, keys in (old, [2, 3, 4]), (connection, [1000000 + 28000 % 1500, 1000000 + 490 % 33, 1000000 + 420 % 31]):
        query(reader, WAYS['index'])
        for row, key in zip((2, 3, 4), keys):
            expect('row %d' % row, query(reader, 'SELECT id FROM t WHERE k = %d AND id = %d' % (key, row)), [(row,)])
        expect('all', query(reader, 'SELECT count(*) FROM t WHERE k > 0'), [(10,)])
    query(old, 'COMMIT')
    no_crash(cluster)
    return ''


@test
def keys_old_snapshot(tests):
    """A snapshot finds the keys that it sees, whatever becomes of them and of the index, with and without workers."""
    cluster, connection = begin(tests, 'keys_old_snapshot')
    events = ['UPDATE t SET k = k + 1000', 'UPDATE t SET k = k - 1000', 'UPDATE t SET k = id % 10', 'VACUUM (INDEX_CLEANUP on) t',
              'REINDEX TABLE t', "BEGIN; UPDATE t SET k = -id, s = 'rolled back'; ROLLBACK", 'VACUUM t', 'REINDEX TABLE t',
              'CREATE INDEX later ON t USING pbtree (k, id)', 'UPDATE t SET k = id', 'DELETE FROM t WHERE id > 290', 'VACUUM (INDEX_CLEANUP on) t',
              'REINDEX TABLE t', "UPDATE t SET k = 5 WHERE id = 5; UPDATE t SET pad = repeat('long ', 300)", 'CLUSTER t USING t_k_idx', 'VACUUM FULL t',
              'UPDATE t SET k = k + 1']
    for workers in (0, 2) if connection.server_version >= 170000 else (0,):
        make(connection, ['USING pbtree (k)', 'USING pbtree (s, k)'])
        query(connection, 'ALTER TABLE t SET (parallel_workers = %d)' % workers)
        keys_through(cluster, connection, events)
    no_crash(cluster)
    return '%d events' % len(events)


def keys_through(cluster, connection, events):
    snapshots = []
    for done, event in enumerate(events, 1):
        reader = connect(cluster)
        query(reader, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1')
        snapshots.append((reader, query(connection, 'SELECT k, id FROM t WHERE k > -400 ORDER BY 1, 2'), event))
        for statement in event.split('; '):
            query(connection, statement)
        now = query(connection, 'SELECT k, id FROM t WHERE k > -400 ORDER BY 1, 2')
        expect('rows after ' + event, len(now), 290 if 'DELETE' in str(events[:done]) else 300)
        for reader, wanted, then in snapshots + [(connection, now, 'now')]:
            # which releases the table
            query(reader, 'SAVEPOINT s' if then != 'now' else 'BEGIN')
            for way in ('index', 'bitmap', 'seq'):
                query(reader, WAYS[way])
                expect('%s: snapshot before %s, %s' % (event, then, way), sorted(query(reader, 'SELECT k, id FROM t WHERE k > -400')), wanted)
            query(reader, WAYS['only'])
            expect('%s: snapshot before %s, only' % (event, then), query(reader, 'SELECT k FROM t WHERE k > -400 ORDER BY k'), [row[:1] for row in wanted])
            query(reader, WAYS['index'])
            expect('%s: snapshot before %s, one key' % (event, then), sorted(query(reader, 'SELECT k, id FROM t WHERE k = 5')),
                   [row for row in wanted if row[0] == 5])
            query(reader, 'ROLLBACK TO s' if then != 'now' else 'COMMIT')
        expect('check', query(connection, "SELECT count(pbtree_check(indexrelid, true)) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
                              "JOIN pg_am a ON a.oid = c.relam WHERE amname = 'pbtree'")[0][0], 3 if 'later' in str(events[:done]) else 2)
        expect('inplace_check', query(connection, "SELECT * FROM inplace_check('t')"), [])
    for reader, _, _ in snapshots:
        query(reader, 'COMMIT')
    query(connection, 'VACUUM (INDEX_CLEANUP on) t')
    expect('entries', query(connection, "SELECT pbtree_check('t_k_idx', true)"), [(290,)])
    by_all_ways(connection, 'at last', 'SELECT k FROM t WHERE k > -400', sorted(query(connection, 'SELECT k FROM t')))


@test
def keys_into_lists(tests):
    """TIDs that come between those of a full leaf's last list: the leaf is not split inside of the list."""
    cluster, connection = begin(tests, 'keys_into_lists')
    make(connection, ['USING pbtree (k)'], rows=20000)
    query(connection, 'UPDATE t SET k = CASE WHEN id <= 18000 THEN 1 ELSE 9 END')
    # the last one first, so that all others go into a list that ends with it
    query(connection, 'UPDATE t SET k = 0 WHERE id = 18000')
    query(connection, 'UPDATE t SET k = 0 WHERE k = 1')
    query(connection, "SELECT pbtree_check('t_k_idx', true)")
    query(connection, 'UPDATE t SET k = 5 WHERE k = 0 AND id % 3 = 0')
    query(connection, 'UPDATE t SET k = 0 WHERE k = 5')
    query(connection, "SELECT pbtree_check('t_k_idx', true)")
    for way in ('index', 'only', 'bitmap', 'seq'):
        query(connection, WAYS[way])
        expect(way, query(connection, 'SELECT count(*) FROM t WHERE k = 0'), [(18000,)])
    no_crash(cluster)
    return ''


@test
def keys_no_growth(tests):
    """Keys change again and again, without VACUUM: full leaves lose their stale entries, the table does not grow."""
    cluster, connection = begin(tests, 'keys_no_growth')
    make(connection, ['USING pbtree (k)'], rows=20000)
    query(connection, 'CREATE TABLE h USING heap AS SELECT * FROM t; CREATE INDEX ON h (k); CREATE INDEX ON h (id)')
    r = random.Random(tests.args.seed)
    sizes = "SELECT pg_relation_size('t_k_idx'), pg_relation_size('h_k_idx'), pg_relation_size('t'), pg_relation_size('h')"
    before = query(connection, sizes)[0]
    for _ in range(40):
        change = 'k = k + %d WHERE id %% 4 = %d' % (r.randrange(1, 20000), r.randrange(4))
        for table in 'th':
            query(connection, 'UPDATE %s SET %s' % (table, change))
    after = query(connection, sizes)[0]
    entries = query(connection, "SELECT pbtree_check('t_k_idx', true)")[0][0]
    if after[0] > .5 * after[1] or after[2] > 1.5 * before[2]:
        raise Failed('indexes and tables grew from %s to %s, %d entries' % (before, after, entries))
    query(connection, 'VACUUM (INDEX_CLEANUP on) t')
    expect('entries', query(connection, "SELECT pbtree_check('t_k_idx', true)"), [(20000,)])
    no_crash(cluster)
    return 'bytes of pbtree, btree, inplace, heap: %s, %s' % (before, after)


@test
def keys_long(tests):
    """Long keys that are stored compressed in different ways are the same key."""
    cluster, connection = begin(tests, 'keys_long')
    make(connection, ['USING pbtree (s)'], columns='id int PRIMARY KEY, k int, s text')
    long, other = "repeat('long ', 300)", "repeat('other ', 300)"
    query(connection, 'UPDATE t SET s = %s WHERE id <= 5' % long)
    for change in ('ALTER TABLE t ALTER s SET STORAGE external', 'ALTER TABLE t ALTER s SET STORAGE main',
                   'ALTER TABLE t ALTER s SET STORAGE extended', 'SET default_toast_compression = lz4', 'ALTER TABLE t ALTER s SET COMPRESSION lz4',
                   'ALTER TABLE t ALTER s SET COMPRESSION pglz'):
        try:
            query(connection, change)
        except psycopg2.errors.FeatureNotSupported:     # a server without lz4
            continue
        for value in (other, long):
            query(connection, 'UPDATE t SET s = %s WHERE id <= 5' % value)
            query(connection, WAYS['index'])
            expect(change, query(connection, 'SELECT id FROM t WHERE s = %s ORDER BY id' % value), [(i,) for i in range(1, 6)])
            expect(change, query(connection, 'SELECT count(*) FROM t WHERE s > %s' % "''"), [(300,)])
    query(connection, 'VACUUM (INDEX_CLEANUP on) t')
    expect('entries', query(connection, "SELECT pbtree_check('t_s_idx', true)"), [(300,)])
    no_crash(cluster)
    return ''


def make_toasted(connection, rows):
    """A table whose keys are in its TOAST table, and have changed in place; that table's name."""
    make(connection, [], rows=rows)
    query(connection, "ALTER TABLE t ALTER s SET STORAGE external; CREATE INDEX ON t USING pbtree (s)")
    query(connection, "UPDATE t SET s = lpad(id::text, 4, '0') || repeat(md5(id::text), 75)")
    expect('in place', stays(connection, "s = s || 'x'"), True)
    query(connection, "UPDATE t SET s = s || 'y'")
    return query(connection, "SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 't'")[0][0]


@test
def keys_toasted(tests):
    """Nobody waits for a lock of the TOAST table while a leaf is locked: its holder could never get at that leaf."""
    cluster, connection = begin(tests, 'keys_toasted')
    writer = connect(cluster)
    query(connection, WAYS['index'])
    for statement in ("INSERT INTO t SELECT g, 1, lpad((g % 40)::text, 4, '0') || 'short ' || g FROM generate_series(1001, 3000) g", 'VACUUM (INDEX_CLEANUP on) t'):
        toast = make_toasted(connection, 40)
        query(connection, 'BEGIN; REINDEX TABLE ' + toast)
        errors = []
        thread = threading.Thread(target=run_noting, args=(writer, statement, errors), daemon=True)
        thread.start()
        thread.join(2)
        reader = threading.Thread(target=run_noting, args=(connection, "SELECT count(id) FROM t WHERE s > '0'", errors), daemon=True)
        reader.start()
        reader.join(30)
        if reader.is_alive():
            raise Failed('%s: the holder of the lock waits for its waiter' % statement)
        query(connection, 'COMMIT')
        thread.join(30)
        expect('errors', errors, [])
        if thread.is_alive():
            raise Failed('%s does not end' % statement)
        query(connection, "SELECT pbtree_check('t_s_idx', true)")
    expect('entries', query(connection, "SELECT pbtree_check('t_s_idx', true)"), [(40,)])
    no_crash(cluster)
    return ''


@test
def keys_toasted_dead(tests):
    """VACUUM meets entries of rows that were deleted, or inserted in vain, since it has looked at their page, and whose long values are gone."""
    cluster, connection = begin(tests, 'keys_toasted_dead')
    if not has_points(cluster):
        return 'a server without injection points'
    toast = make_toasted(connection, 200)
    point = Point(cluster, 'pbtree-vacuum')

    def meanwhile():
        query(connection, 'DELETE FROM t WHERE id BETWEEN 11 AND 60')
        query(connection, "BEGIN; INSERT INTO t SELECT g + 1000, 1, repeat(md5(g::text), 75) FROM generate_series(1, 60) g; ROLLBACK")
        query(connection, 'VACUUM ' + toast)
    _, waited = point.run('VACUUM (INDEX_CLEANUP on) t', meanwhile)
    expect('VACUUM waited', waited, True)
    query(connection, WAYS['index'])
    expect('rows', query(connection, "SELECT count(id) FROM t WHERE s > '0'"), [(150,)])
    query(connection, 'VACUUM (INDEX_CLEANUP on) t')
    expect('entries', query(connection, "SELECT pbtree_check('t_s_idx', true)"), [(150,)])
    expect('inplace_check', query(connection, "SELECT * FROM inplace_check('t')"), [])
    no_crash(cluster)
    return ''


def run_noting(connection, text, errors):
    try:
        query(connection, text)
    except psycopg2.Error as error:
        errors.append(error)


@test
def keys_too_long(tests):
    """A version of before the index has a key that would be too long: that is no matter of whoever looks for stale entries."""
    cluster, connection = begin(tests, 'keys_too_long')
    query(connection, 'CREATE TABLE t (id int PRIMARY KEY, s text) USING inplace; ALTER TABLE t ALTER s SET STORAGE plain')
    query(connection, "INSERT INTO t SELECT g, (SELECT string_agg(md5(n::text), '') FROM generate_series(1, 150) n) FROM generate_series(1, 200) g")
    old = connect(cluster)
    query(old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1')
    query(connection, "UPDATE t SET s = 'a' || id; CREATE INDEX ON t USING pbtree (s)")
    for text in ('BEGIN', "UPDATE t SET s = 'x' || id", 'ROLLBACK', "INSERT INTO t SELECT g, 'x' || g FROM generate_series(1001, 3000) g"):
        query(connection, text)
    expect('long versions', query(old, 'SELECT count(*), min(length(s)) FROM t'), [(200, 4800)])
    query(connection, "SELECT pbtree_check('t_s_idx', true)")
    no_crash(cluster)
    return ''


@test
def keys_differences(tests):
    """Random tables of inplace under random changes: each index finds what a sequential scan finds."""
    cluster, connection = begin(tests, 'keys_differences')
    query(connection, diff.SETUP)
    query(connection, "ALTER TYPE mood ADD VALUE 'late' BEFORE 'ok'")
    rounds = 40 if tests.args.full else 8
    for i in range(rounds):
        r = random.Random(tests.args.seed * 1000 + i)
        this = diff.Round(lambda: connect(cluster), r, r.choice([0, 2, 3]), 'inplace')
        try:
            this.make([name for name in diff.TYPES if 'icu' not in name])
            this.play(60)
        except Exception as error:
            raise Failed('round %d: types %s, indexes %s: %s' % (i, this.types, this.indexes, error)) from error
        this.main.close()
    no_crash(cluster)
    return '%d rounds' % rounds


def start_load(cluster, seed, workers):
    r = random.Random(seed)
    this = diff.Round(lambda: connect(cluster), r, workers, 'inplace')
    this.make([name for name in diff.TYPES if 'icu' not in name], [''])
    threads = [threading.Thread(target=this.work, args=(r.random(),)) for _ in range(workers)]
    for thread in threads:
        thread.start()
    return this, threads


def check(this):
    query(this.main, 'SELECT 1')
    for j in range(len(this.indexes)):
        valid = query(this.main, "SELECT indisvalid FROM pg_index WHERE indexrelid = 'i%d'::regclass" % j)[0][0]
        if valid:
            query(this.main, "SELECT pbtree_check('i%d', true)" % j)
    expect('inplace_check', query(this.main, "SELECT * FROM inplace_check('t')"), [])


@test
def keys_crash(tests):
    """Changes, kill, recovery; then each row is found under its key, and under no other."""
    rounds = 30 if tests.args.full else 4
    cluster, connection = begin(tests, 'keys_crash')
    query(connection, diff.SETUP)
    query(connection, "ALTER TYPE mood ADD VALUE 'late' BEFORE 'ok'")
    connection.close()
    for i in range(rounds):
        seed = tests.args.seed * 1000 + i
        this, threads = start_load(cluster, seed, 3)
        time.sleep(2 + 3 * random.Random(seed).random())
        cluster.stop('immediate')
        for thread in threads:
            thread.join()
        cluster.start()
        this.main = connect(cluster)
        check(this)
        for _ in range(10):
            this.ask(this.main, this.r)
        this.change(this.main, this.r)
        query(this.main, 'VACUUM (INDEX_CLEANUP on) t')
        this.finish()
        this.main.close()
    no_crash(cluster)
    return '%d rounds' % rounds


@test
def keys_standby(tests):
    """A standby's answers by index and without, while the primary changes keys; it makes no index-only scans of such indexes."""
    rounds = 8 if tests.args.full else 2
    cluster, connection = begin(tests, 'keys_standby')
    query(connection, diff.SETUP)
    query(connection, "ALTER TYPE mood ADD VALUE 'late' BEFORE 'ok'")
    replica = tests.standby(cluster, 'keys_replica', 'max_standby_streaming_delay = 200ms\n')
    asked = 0
    for i in range(rounds):
        this, threads = start_load(cluster, tests.args.seed * 1000 + i, 2)
        reader = connect_to_standby(replica)
        end = time.time() + 20
        while time.time() < end:
            try:
                if this.ask_standby(reader, this.r):
                    asked += 1
                else:
                    reader = connect_to_standby(replica)
            except (psycopg2.errors.SerializationFailure, psycopg2.OperationalError, psycopg2.errors.UndefinedColumn,
                    psycopg2.errors.lookup('42P01'), psycopg2.InterfaceError):
                reader = connect_to_standby(replica)
        this.stop.set()
        for thread in threads:
            thread.join()
        if this.errors:
            raise this.errors[0]
        wait_for_standby(this.main, replica)
        check(this)
    make(connection, ['USING pbtree (k)'])
    query(connection, 'VACUUM ANALYZE t')
    wait_for_standby(connection, replica)
    reader = connect(replica)
    # the primary's readers may end queries of a standby, for they put pages in order
    query(reader, 'ALTER SYSTEM SET max_standby_streaming_delay = -1')
    query(reader, 'SELECT pg_reload_conf()')
    query(reader, WAYS['only'])
    if 'Only' in str(query(reader, 'EXPLAIN SELECT k FROM t WHERE k > 5')) or \
            'Only' not in str(query(connection, WAYS['only'] + '; EXPLAIN SELECT k FROM t WHERE k > 5')):
        raise Failed('index-only scans')
    checks = "SELECT pbtree_check(i.indexrelid, true) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam " \
        "WHERE amname = 'pbtree' ORDER BY 1"
    try:
        query(reader, checks)
        raise Failed('a check while WAL is replayed')
    except psycopg2.errors.ObjectNotInPrerequisiteState:
        pass
    query(reader, 'SELECT pg_wal_replay_pause()')
    while query(reader, 'SELECT pg_get_wal_replay_pause_state()') != [('paused',)]:
        time.sleep(.1)
    expect("the standby's entries", query(reader, checks), query(connection, checks))
    query(reader, 'SELECT pg_wal_replay_resume()')
    no_crash(cluster)
    no_crash(replica)
    if asked == 0:
        raise Failed('no question was asked')
    return '%d questions' % asked


@test
def keys_twins(tests):
    """The tester of inplace against heap, with pbtree in place of btree on the side of inplace: random statements have the same results."""
    cluster, _ = begin(tests, 'keys_twins')
    statements = 200000 if tests.args.full else 20000
    command = [sys.executable, '-B', os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'diff', 'diff.py'), '--pbtree',
               '--socket', cluster.socket, '--port', str(cluster.port), '--seed', str(tests.args.seed), '--statements', str(statements)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True)
    if done.returncode != 0:
        raise Failed(done.stdout[-3000:])
    no_crash(cluster)
    return '%d statements' % statements
