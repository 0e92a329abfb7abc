"""Tests of pbtree: entries that updates in place have left behind go while the table is being changed."""
import os
import struct
import threading
import time

import psycopg2

from basics import Failed, build_force, connect, expect, has_points, no_crash, query, stop_without_checksums, test
from keys import WAYS, begin, by_all_ways, make, make_toasted
from races import Point

ROWS = 20000
ENTRIES = "SELECT rows FROM pbtree_stats('%s')"
CHECK = "SELECT pbtree_check('%s', true)"

# what one transaction does to a row, and what has to be there before
LOADS = {
    'rising': ['UPDATE t SET k = nextval(\'up\') WHERE id = %(id)d'],
    'falling': ['UPDATE t SET k = nextval(\'down\') WHERE id = %(id)d'],
    'random': ['UPDATE t SET k = %(random)d WHERE id = %(id)d'],
    'toggling': ['UPDATE t SET k = -k WHERE id = %(id)d'],
    'half of it rolled back': ['BEGIN', 'UPDATE t SET k = nextval(\'up\') WHERE id = %(id)d', '%(end)s'],
    'savepoints': ['BEGIN', 'SAVEPOINT s', 'UPDATE t SET k = nextval(\'up\') WHERE id = %(id)d', 'ROLLBACK TO s',
                   'UPDATE t SET k = nextval(\'down\') WHERE id = %(id)d', 'COMMIT']}


def prepare(connection, rows=ROWS):
    make(connection, ['USING pbtree (k)'], rows=rows)
    query(connection, 'DROP SEQUENCE IF EXISTS up, down; CREATE SEQUENCE up START %d CACHE 32; CREATE SEQUENCE down INCREMENT -1 CACHE 32' % (rows + 1))
    query(connection, 'VACUUM ANALYZE t')


class Load:
    """Sessions that change rows, until they are told to stop; done counts their updates."""

    def __init__(self, cluster, statements, seed, rows=ROWS, sessions=2):
        self.end, self.done, self.errors = threading.Event(), 0, []
        self.threads = [threading.Thread(target=self.work, args=(connect(cluster), statements, seed * 7919 + i, rows)) for i in range(sessions)]
        for thread in self.threads:
            thread.start()

    def work(self, connection, statements, n, rows):
        try:
            while not self.end.is_set():
                n = n * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
                values = {'id': (n >> 33) % rows + 1, 'random': (n >> 20) % 1000000, 'end': 'COMMIT' if n >> 40 & 1 else 'ROLLBACK'}
                for statement in statements:
                    query(connection, statement % values)
                self.done += 1
        except Exception as error:  # pylint: disable=broad-except
            self.errors.append(error)

    def wait_for(self, done):
        while self.done < done and not self.errors:
            time.sleep(.01)

    def stop(self):
        self.end.set()
        for thread in self.threads:
            thread.join()
        if self.errors:
            raise self.errors[0]


def finish(cluster, connection, rows=ROWS):
    """What every test ends with: nothing was lost, nothing is there twice, and what is stale goes."""
    query(connection, CHECK % 't_k_idx')
    by_all_ways(connection, 'keys', 'SELECT k FROM t WHERE k > -100000000', sorted(query(connection, 'SELECT k FROM t')))
    query(connection, 'VACUUM (INDEX_CLEANUP on) t')
    expect('entries at last', query(connection, CHECK % 't_k_idx'), [(rows,)])
    expect('inplace_check', query(connection, "SELECT * FROM inplace_check('t')"), [])
    no_crash(cluster)


@test
def keys_vacuum_not_plain(tests):
    """VACUUM removes stale entries of pages on which another row is being changed."""
    cluster, connection = begin(tests, 'keys_vacuum_not_plain')
    make(connection, ['USING pbtree (k)'], rows=2000)
    for _ in range(3):
        query(connection, 'UPDATE t SET k = k + 10000')
    query(connection, 'BEGIN; UPDATE t SET k = k + 10000; ROLLBACK')
    writer = connect(cluster)
    for change, more in ("pad = 'x'", 0), ('k = -k', 100):
        query(writer, 'BEGIN; UPDATE t SET %s WHERE id %% 20 = 0' % change)
        query(connection, 'VACUUM (INDEX_CLEANUP on) t')
        expect('entries, ' + change, query(connection, ENTRIES % 't_k_idx'), [(2000 + more,)])
        query(writer, 'COMMIT')
    finish(cluster, connection, 2000)
    return ''


@test
def keys_vacuum_under_load(tests):
    """Rows are updated all the time: after each VACUUM there are few more entries than rows, whatever keys come."""
    cluster, connection = begin(tests, 'keys_vacuum_under_load')
    most = {}
    for name, statements in LOADS.items():
        prepare(connection)
        load = Load(cluster, statements, tests.args.seed)
        try:
            for vacuums in range(1, 4):
                load.wait_for(4000 * vacuums)
                before = load.done
                query(connection, 'VACUUM (INDEX_CLEANUP on) t')
                entries = query(connection, ENTRIES % 't_k_idx')[0][0]
                # an update leaves two entries, where a savepoint is rolled back, before VACUUM or behind it
                most[name] = max(most.get(name, 0), entries)
                if entries > ROWS * 1.1 + 2 * (load.done - before):
                    raise Failed('%s: %d entries after %d updates, of which %d since VACUUM' % (name, entries, load.done, load.done - before))
        finally:
            load.stop()
        finish(cluster, connection)
    return 'at most %s' % ', '.join('%s %d' % one for one in most.items())


def dead(connection):
    query(connection, 'SELECT pg_stat_clear_snapshot()')
    return query(connection, "SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 't'")[0][0]


def settle(connection, least):
    """Until statistics have come that say so, at least; sessions send theirs when they are idle, or end."""
    end = time.time() + 100
    while dead(connection) < least and time.time() < end:
        time.sleep(.05)
    return dead(connection)


def once(cluster, *statements):
    """By a session of its own, whose statistics are there when it has ended."""
    session = connect(cluster)
    for statement in statements:
        query(session, statement)
    session.close()


@test
def keys_dead_rows(tests):
    """n_dead_tup counts updates that leave entries behind, committed or not, and is less when these have gone; ANALYZE leaves it."""
    cluster, connection = begin(tests, 'keys_dead_rows')
    prepare(connection)

    def counts(what, stale):
        # some more where undo has grown, which VACUUM gives back; fewer where inserts have found full leaves
        entries = query(connection, ENTRIES % 't_k_idx')[0][0] - ROWS
        expect('%s: %d entries' % (what, entries), min(stale, 1) <= entries <= stale, True)
        found = settle(connection, entries)
        expect('%s: %d for %d entries' % (what, found, entries), entries - 100 <= found < entries + 5000, True)

    def update(*statements):
        """5,000 rows, 500 in a transaction."""
        once(cluster, *[part % {'rows': 'id BETWEEN %d AND %d' % (first, first + 499)} for first in range(5001, 10001, 500) for part in statements])
    update('UPDATE t SET s = upper(s) WHERE %(rows)s')
    counts('other columns', 0)
    update('UPDATE t SET k = -k WHERE %(rows)s')
    counts('updates', 5000)
    update('BEGIN', 'UPDATE t SET k = k - 30000 WHERE %(rows)s', 'ROLLBACK')
    counts('updates that are rolled back', 10000)
    update('BEGIN', 'SAVEPOINT s', 'UPDATE t SET k = k - 30000 WHERE %(rows)s', 'ROLLBACK TO s', 'UPDATE t SET k = k - 60000 WHERE %(rows)s', 'COMMIT')
    counts('savepoints', 20000)
    query(connection, 'ANALYZE t')
    counts('ANALYZE', 20000)
    rows = query(connection, "SELECT n_live_tup FROM pg_stat_user_tables WHERE relname = 't'")[0][0]
    expect('live rows', abs(rows - ROWS) < ROWS / 10, True)
    query(connection, 'VACUUM t')
    expect('entries', query(connection, CHECK % 't_k_idx'), [(ROWS,)])
    expect('after VACUUM', dead(connection), 0)
    finish(cluster, connection)
    return ''


@test
def keys_few_add_up(tests):
    """VACUUM passes over few stale entries, again and again, until together they are not few any more."""
    cluster, connection = begin(tests, 'keys_few_add_up')
    prepare(connection)
    for cycle in range(5):
        # 0.6 percent of the rows, which are on few pages; 2 are not few
        once(cluster, 'UPDATE t SET k = k + %d WHERE id <= 120' % ROWS)
        settle(connection, 120 * (cycle + 1 if cycle < 4 else 1))
        query(connection, 'VACUUM t')
        expect('entries after VACUUM %d' % (cycle + 1), query(connection, ENTRIES % 't_k_idx'), [(ROWS + 120 * ((cycle + 1) % 4),)])
    finish(cluster, connection)
    return ''


@test
def keys_not_sent(tests):
    """VACUUM knows what its own session has changed since it last sent statistics, and what it has seen to is not sent later."""
    cluster, connection = begin(tests, 'keys_not_sent')
    prepare(connection)
    for cycle in range(5):
        query(connection, 'UPDATE t SET k = k + %d WHERE id <= %d' % (ROWS, ROWS * .03))
        query(connection, 'VACUUM t')
        expect('entries after VACUUM %d' % (cycle + 1), query(connection, ENTRIES % 't_k_idx'), [(ROWS,)])
    query(connection, 'SELECT pg_stat_force_next_flush()')
    expect('dead rows', dead(connection), 0)
    finish(cluster, connection)
    return ''


@test
def keys_few_of_both(tests):
    """Few dead rows and few stale entries add up, though VACUUM finds the dead ones that it has passed over before again."""
    cluster, connection = begin(tests, 'keys_few_of_both')
    prepare(connection)
    for cycle in range(4):
        # 0.6 percent together; the dead ones are on a page
        first = 40 * cycle + 1
        once(cluster, 'DELETE FROM t WHERE id BETWEEN %d AND %d' % (first, first + 39), 'UPDATE t SET k = k + %d WHERE id BETWEEN 10001 AND 10080' % ROWS)
        settle(connection, 120 * (cycle + 1))
        query(connection, 'VACUUM t')
        wanted = ROWS + 80 * (cycle + 1) if cycle < 3 else ROWS - 160
        expect('entries after VACUUM %d' % (cycle + 1), query(connection, ENTRIES % 't_k_idx'), [(wanted,)])
    finish(cluster, connection, ROWS - 160)
    return ''


@test
def keys_statistics_lost(tests):
    """Statistics were lost: VACUUM goes by pages that may have stale entries, and passes these over only if they are few."""
    cluster, connection = begin(tests, 'keys_statistics_lost')

    def crash():
        cluster.stop('immediate')
        cluster.start()
        return connect(cluster)

    def reset():
        query(connection, "SELECT pg_stat_force_next_flush(); SELECT pg_stat_reset_single_table_counters('t'::regclass)")
        return connection
    for lose in crash, reset:
        for rows, stay in ('id % 100 = 0', False), ('id <= 100', True):
            prepare(connection)
            once(cluster, 'UPDATE t SET k = k + %d WHERE %s' % (ROWS, rows))
            settle(connection, 1)
            entries = query(connection, ENTRIES % 't_k_idx')[0][0]
            expect('stale entries: a few, but on many pages', 0 < entries - ROWS < ROWS / 50, True)
            connection = lose()
            expect('dead rows', dead(connection), 0)
            query(connection, 'VACUUM t')
            expect('%s, %s: entries' % (lose.__name__, rows), query(connection, ENTRIES % 't_k_idx'), [(entries if stay else ROWS,)])
            expect('%s, %s: dead rows' % (lose.__name__, rows), dead(connection) > 0, stay)
    finish(cluster, connection)
    return ''


@test
def keys_lost_chunks(tests):
    """It cannot be told whether an entry is stale, as its row's long value is damaged: the entry stays, and so does what the page says of it."""
    cluster, connection = begin(tests, 'keys_lost_chunks')
    toast = make_toasted(connection, 40)
    name = os.path.join(cluster.data, query(connection, "SELECT pg_relation_filepath('%s')" % toast)[0][0])
    connection.close()
    stop_without_checksums(cluster)
    with open(name, 'r+b') as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        file.write(bytes(size))
    cluster.start()
    connection = connect(cluster)
    visible = "SELECT relallvisible > 0 FROM pg_class WHERE relname = 't'"
    for _ in range(2):
        query(connection, 'VACUUM (INDEX_CLEANUP on, PROCESS_TOAST off) t')
        expect('entries', query(connection, ENTRIES % 't_s_idx')[0][0] > 80, True)
        expect('pages are all-visible', query(connection, visible), [(False,)])
    query(connection, WAYS['index'])
    try:
        expect('rows by an old key', query(connection, "SELECT id FROM t WHERE s = '0003' || repeat(md5('3'), 75)"), [])
    except psycopg2.Error as error:
        expect('error', 'could not read TOAST value' in str(error), True)
    query(connection, "UPDATE t SET s = 'new ' || id")
    query(connection, 'VACUUM (INDEX_CLEANUP on, PROCESS_TOAST off) t')
    expect('entries', query(connection, CHECK % 't_s_idx'), [(40,)])
    expect('pages are all-visible', query(connection, visible), [(True,)])
    expect('inplace_check', query(connection, "SELECT * FROM inplace_check('t')"), [])
    no_crash(cluster)
    return ''


def overlap(page):
    """Let a leaf have its first posting list a hundred times more; no leaf, or one without room or without such a list, stays."""
    lower, upper = struct.unpack_from('=HH', page, 12)
    flags, _, level = struct.unpack_from('=HHB', page, len(page) - 32 + 20)
    size = 4 if flags & 8 else 2
    slots = [bytes(page[at:at + size]) for at in range(24, lower, size)]
    lists = [slot for slot in slots if struct.unpack('=H', slot[:2])[0] & 0x4000]
    if flags & 3 or level > 0 or not lists or upper - lower < 100 * size:
        return False
    page[lower:lower + 100 * size] = lists[0] * 100
    struct.pack_into('=H', page, 12, lower + 100 * size)
    return True


@test
def keys_overlap(tests):
    """Items of a damaged leaf overlap, and all are stale: more TIDs than a leaf has room for are an error of VACUUM, and written nowhere."""
    cluster, connection = begin(tests, 'keys_overlap')
    query(connection, 'CREATE TABLE t (id int PRIMARY KEY, k int) USING inplace')
    query(connection, 'INSERT INTO t SELECT g, 5 FROM generate_series(1, 6000) g; CREATE INDEX i ON t USING pbtree (k)')
    query(connection, 'UPDATE t SET k = 6')
    name = os.path.join(cluster.data, query(connection, "SELECT pg_relation_filepath('i')")[0][0])
    connection.close()
    stop_without_checksums(cluster)
    with open(name, 'r+b') as file:
        pages = [bytearray(page) for page in iter(lambda: file.read(8192), b'')]
        expect('leaves with lists', sum(overlap(page) for page in pages[1:]) > 0, True)
        file.seek(0)
        file.write(b''.join(pages))
    cluster.start()
    connection = connect(cluster)
    for _ in range(2):
        try:
            query(connection, 'VACUUM (INDEX_CLEANUP on) t')
            raise Failed('VACUUM has found nothing')
        except psycopg2.errors.IndexCorrupted:
            pass
    query(connection, 'REINDEX INDEX i')
    expect('entries', query(connection, CHECK % 'i'), [(6000,)])
    no_crash(cluster)
    return ''


@test
def keys_counted_once(tests):
    """VACUUM counts a leaf's entries once, also if it has to split the leaf before it can remove some (see far_blocks)."""
    cluster, connection = begin(tests, 'keys_counted_once')
    folder = os.path.join(tests.args.work, 'force_counted_once')
    build_force(os.path.join(tests.args.bindir, 'pg_config'), folder)
    for name, kind in ('fake_insert(regclass, int, bigint, int) RETURNS void', 'fake_insert'), ('fake_vacuum_stale(regclass, bigint) RETURNS text', 'fake_vacuum_stale'):
        query(connection, "CREATE FUNCTION %s LANGUAGE c STRICT AS '%s', '%s'" % (name, os.path.join(folder, 'fake_rows'), kind))
    query(connection, 'CREATE TABLE t (a int) USING inplace; CREATE INDEX i ON t USING pbtree (a) WITH (fillfactor = 100)')
    last, keys = 2**29 - 1, 3000
    query(connection, "SELECT fake_insert('i', g, b, o) FROM generate_series(1, %d) g, (VALUES (%d, 511), (%d, 1), (%d, 2)) v (b, o)" % (keys, last, last + 1, last + 1))
    pages = query(connection, "SELECT leaf_pages FROM pbtree_stats('i')")[0][0]
    expect('removed, needed', query(connection, "SELECT fake_vacuum_stale('i', %d)" % last), [('%d %d' % (keys, 2 * keys),)])
    expect('entries', query(connection, "SELECT pbtree_check('i')"), [(2 * keys,)])
    expect('leaves were split', query(connection, "SELECT leaf_pages FROM pbtree_stats('i')")[0][0] > pages, True)
    no_crash(cluster)
    return ''


@test
def keys_vacuum_delay(tests):
    """VACUUM's delay counts the table's pages that it reads to look at a leaf's entries."""
    cluster, connection = begin(tests, 'keys_vacuum_delay')
    if connection.server_version < 180000 or not has_points(cluster):
        return 'a server without injection points, or before 18'
    for name, has_slept in ('pbtree-vacuum', False), ('pbtree-vacuum-leaf', True):
        make(connection, ['USING pbtree (k)'])
        query(connection, 'VACUUM t')
        query(connection, 'UPDATE t SET k = k + 1000')
        point, found = Point(cluster, name), []
        query(point.connection, 'SET vacuum_cost_delay = 1; SET vacuum_cost_limit = 200; SET vacuum_cost_page_dirty = 0; SET vacuum_cost_page_miss = 1; '
                                'SET track_cost_delay_timing = on')
        _, waited = point.run('VACUUM (INDEX_CLEANUP on) t',
                              lambda rows=found: rows.extend(query(connection, "SELECT delay_time > 0 FROM pg_stat_progress_vacuum WHERE relid = 't'::regclass")))
        expect('%s: VACUUM waited' % name, waited, True)
        expect('%s: VACUUM has slept' % name, found, [(has_slept,)])
    finish(cluster, connection, 300)
    return ''


@test
def keys_autovacuum(tests):
    """Autovacuum comes while keys are being updated, and when a snapshot ends that needs entries of an idle table."""
    cluster, connection = begin(tests, 'keys_autovacuum')
    prepare(connection)
    old = connect(cluster)
    query(old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t')
    for settings in ('autovacuum = on', "autovacuum_naptime = '1s'", 'autovacuum_analyze_scale_factor = 0.01'):
        query(connection, 'ALTER SYSTEM SET ' + settings)
    query(connection, 'SELECT pg_reload_conf()')
    count = "SELECT autovacuum_count FROM pg_stat_user_tables WHERE relname = 't'"

    def wait_for(what, found):
        end = time.time() + 100
        while not found():
            if time.time() > end:
                raise Failed('%s: %s visits, %s dead, %s entries' % (what, query(connection, count), dead(connection), query(connection, ENTRIES % 't_k_idx')))
            time.sleep(.1)
    once(cluster, 'UPDATE t SET k = k + %d WHERE id <= 10000' % ROWS)
    wait_for('under a snapshot', lambda: query(connection, count)[0][0] > 1)
    expect('entries', query(connection, ENTRIES % 't_k_idx'), [(ROWS + 10000,)])
    query(old, 'COMMIT')
    wait_for('when the snapshot has ended', lambda: query(connection, ENTRIES % 't_k_idx') == [(ROWS,)])
    before = query(connection, count)[0][0]
    load = Load(cluster, LOADS['rising'], tests.args.seed)
    try:
        wait_for('under load', lambda: load.errors or (query(connection, count)[0][0] > before + 2 and load.done > 10000))
    finally:
        load.stop()
    finish(cluster, connection)
    return '%d updates' % load.done


def buffers(connection, text):
    """Pages that a statement looks at."""
    plan = query(connection, 'EXPLAIN (ANALYZE, BUFFERS, COSTS off, TIMING off, SUMMARY off, FORMAT json) ' + text)[0][0][0]['Plan']
    return plan['Shared Hit Blocks'] + plan['Shared Read Blocks']


@test
def keys_scan_cleans(tests):
    """What one scan reads in vain the next one does not, without VACUUM and without an insertion."""
    cluster, connection = begin(tests, 'keys_scan_cleans')
    prepare(connection)
    first = 'SELECT k FROM t ORDER BY k LIMIT 10'
    for way in ('index', 'only'):
        query(connection, WAYS[way])
        for _ in range(2):
            query(connection, "UPDATE t SET k = nextval('up')")
        old = connect(cluster)
        query(old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1')
        query(connection, "UPDATE t SET k = nextval('up')")
        wanted = query(connection, first)
        entries = query(connection, ENTRIES % 't_k_idx')[0][0]
        expect('%s: entries that a snapshot needs' % way, 2 * ROWS <= entries < 2.3 * ROWS, True)
        query(old, 'COMMIT')
        # sessions ask for the horizon when xids have come
        query(connection, 'SELECT txid_current()')
        before = buffers(connection, first)
        after = buffers(connection, first)
        if before < 500 or after > before / 2 or query(connection, first) != wanted:
            raise Failed('%s: %d buffers, then %d' % (way, before, after))
        query(connection, CHECK % 't_k_idx')
    finish(cluster, connection)
    return '%d buffers, then %d' % (before, after)


@test
def keys_scan_in_vain(tests):
    """While a snapshot needs what scans read in vain, one looks whether it can go, and the next ones do not; when the snapshot has ended one does."""
    cluster, connection = begin(tests, 'keys_scan_in_vain')
    prepare(connection)
    first = 'SELECT k FROM t ORDER BY k LIMIT 10'
    query(connection, WAYS['index'])
    old = connect(cluster)
    query(old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1')
    query(connection, "UPDATE t SET k = nextval('up')")
    leaves = query(connection, "SELECT leaf_pages FROM pbtree_stats('t_k_idx')")[0][0] // 2
    found = [buffers(connection, first) for _ in range(3)]
    # a look begins with 32 entries, of which each takes a page
    expect('%d leaves: %s buffers' % (leaves, found), leaves > 10 and found[0] - max(found[1:]) > 32 * leaves / 2, True)
    expect('entries', query(connection, ENTRIES % 't_k_idx'), [(2 * ROWS,)])
    query(old, 'COMMIT')
    buffers(connection, first)
    last = buffers(connection, first)
    expect('%s buffers, and %d when the snapshot has ended' % (found, last), last < found[1] / 4, True)
    finish(cluster, connection)
    return '%s buffers, then %d' % (found, last)


@test
def keys_scan_beside(tests):
    """A scan cleans leaves that a cursor with an older snapshot is on, pinned or not, and that are split."""
    cluster, connection = begin(tests, 'keys_scan_beside')
    for way in ('index', 'only'):
        prepare(connection, 4000)
        wanted = query(connection, 'SELECT k FROM t ORDER BY k')
        reader = connect(cluster)
        query(reader, WAYS[way] + '; BEGIN ISOLATION LEVEL REPEATABLE READ; DECLARE c CURSOR FOR SELECT k FROM t WHERE k > 0 ORDER BY k')
        rows = query(reader, 'FETCH 10 FROM c')
        query(connection, 'UPDATE t SET k = 10000 + k')
        query(connection, 'UPDATE t SET k = 20000 + k')
        query(connection, WAYS['index'])
        expect(way, len(query(connection, 'SELECT k FROM t WHERE k > 0')), 4000)
        query(connection, 'UPDATE t SET k = k % 20000 % 10000 * 2 WHERE id % 2 = 0')
        expect(way, len(query(connection, 'SELECT k FROM t WHERE k > 0')), 4000)
        rows += query(reader, 'FETCH ALL FROM c')
        query(reader, 'COMMIT')
        expect(way, rows, wanted)
        finish(cluster, connection, 4000)
    return ''


@test
def keys_between_looks(tests):
    """A row gets an old key back, or its update is rolled back, after VACUUM has seen that nobody needs the entry, and before it has the leaf."""
    cluster, connection = begin(tests, 'keys_between_looks')
    if not has_points(cluster):
        return 'a server without injection points'
    for point_name in ('pbtree-vacuum-leaf', 'pbtree-vacuum'):
        make(connection, ['USING pbtree (k)'])
        query(connection, 'VACUUM t')
        query(connection, 'UPDATE t SET k = k + 1000')
        other = connect(cluster)
        query(other, 'BEGIN; UPDATE t SET k = -k WHERE id BETWEEN 201 AND 250')
        point = Point(cluster, point_name)

        def meanwhile():
            query(connection, 'UPDATE t SET k = k - 1000 WHERE id <= 100')
            query(connection, 'BEGIN; UPDATE t SET k = k - 1000 WHERE id BETWEEN 101 AND 200; ROLLBACK')
            query(other, 'ROLLBACK')
        _, waited = point.run('VACUUM (INDEX_CLEANUP on) t', meanwhile)
        expect('VACUUM waited', waited, True)
        by_all_ways(connection, point_name, 'SELECT k FROM t WHERE k > 0 AND k <= 100', [(i,) for i in range(1, 101)])
        finish(cluster, connection, 300)
    return ''


def vacuum_says(connection, options=''):
    """The lines of VACUUM (VERBOSE) about indexes."""
    del connection.notices[:]
    query(connection, 'VACUUM (VERBOSE, INDEX_CLEANUP on%s) t' % options)
    return [line for notice in connection.notices for line in notice.split('\n') if line.startswith('index "')]


@test
def keys_verbose(tests):
    """VACUUM says what went, with workers, too; indexes that have nothing to lose are not read, and nothing is lost when dead rows come."""
    cluster, connection = begin(tests, 'keys_verbose')
    old = connect(cluster)
    for workers in (0, 2):
        make(connection, ['USING pbtree (k)', 'USING btree (pad)', 'USING pbtree (s)'], rows=ROWS)
        query(connection, 'SET min_parallel_index_scan_size = 0')
        query(connection, 'VACUUM ANALYZE t')
        query(connection, 'UPDATE t SET k = k + 30000 WHERE id <= 5000')
        query(old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1')
        query(connection, 'UPDATE t SET k = k + 30000 WHERE id <= 1000')
        lines = vacuum_says(connection, ', PARALLEL %d' % workers)
        expect('lines', [line for line in lines if 'stale' in line],
               ['index "t_k_idx": 5000 stale entries removed, 1000 still needed', 'index "t_s_idx": 0 stale entries removed, 0 still needed'])
        expect('other indexes', [line for line in lines if 'pad' in line or 'pkey' in line], [])
        query(old, 'COMMIT')
        query(connection, 'DELETE FROM t WHERE id > 19000')
        lines = vacuum_says(connection, ', PARALLEL %d' % workers)
        expect('lines', [line for line in lines if 'stale' in line],
               ['index "t_k_idx": 1000 stale entries removed, 0 still needed', 'index "t_s_idx": 0 stale entries removed, 0 still needed'])
        expect('other indexes', len([line for line in lines if 'pad' in line or 'pkey' in line]), 2)
        expect('VERBOSE', [line for line in vacuum_says(connection) if 'stale' in line and ': 0 stale' not in line], [])
        finish(cluster, connection, 19000)
    return ''
