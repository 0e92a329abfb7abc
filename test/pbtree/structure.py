"""Tests of pbtree: what splits, deletions and recycling of pages leave behind."""
import os
import random
import sys
import threading
import time

import psycopg2

from basics import PIN, Failed, connect, expect, has_points, no_crash, query, stop_without_checksums, test

# in the order of the numbers, and nearly as long as a low fence can be: eight on a page
KEY = "lpad(%s::text, 6, '0') || (SELECT string_agg(md5(%s::text || n), '') FROM generate_series(1, 27) n)"


def key(expression):
    return KEY.replace('%s', str(expression))


@test
def unique_fence(tests):
    """A key's versions were on several pages, and are gone: its next row goes where their fences lead it."""
    cluster, connection = tests.begin('unique_fence')
    if connection.server_version < 180000:
        return 'no unique indexes before 18'
    for kind in ('numeric', 'int'):
        query(connection, 'DROP TABLE IF EXISTS t; CREATE TABLE t (a %s, b int); CREATE UNIQUE INDEX i ON t USING pbtree (a); CREATE INDEX j ON t (b)' % kind)
        query(connection, 'INSERT INTO t SELECT g, 0 FROM generate_series(1, 100) g')
        query(connection, 'DO $$ BEGIN FOR n IN 1 .. 2500 LOOP UPDATE t SET b = n WHERE a = 50; END LOOP; END $$')
        pages = query(connection, "SELECT leaf_pages FROM pbtree_stats('i')")[0][0]
        query(connection, 'DELETE FROM t WHERE a = 50')
        query(connection, 'VACUUM (TRUNCATE off) t')
        # rows of the table that are behind all of which a fence can be made
        query(connection, 'INSERT INTO t SELECT g, 0 FROM generate_series(1000, 4000) g')
        query(connection, 'INSERT INTO t VALUES (50, 1)')
        entries = query(connection, "SELECT pbtree_check('i', true)")[0][0]
        if entries != 3101 or (kind == 'numeric') != (pages > 1):
            raise Failed('%s: %d pages, %d entries' % (kind, pages, entries))
        try:
            query(connection, 'INSERT INTO t VALUES (50, 2)')
            raise Failed('%s: a key is there twice' % kind)
        except psycopg2.errors.UniqueViolation:
            pass
    no_crash(cluster)
    return ''


def insert_at_last(connection, a, known):
    """A row whose insertion fails at each split, and is tried again; how often it failed."""
    for failed in range(100):
        try:
            query(connection, 'INSERT INTO t VALUES (%d, %s)' % (a, key(a)))
            if a in known:
                raise Failed('%d is there twice' % a)
            known.add(a)
            return failed
        except psycopg2.errors.UniqueViolation as error:
            if a not in known:
                raise Failed('%d is refused' % a) from error
            return failed
        except psycopg2.errors.InternalError_ as error:
            if 'pbtree-split' not in str(error):
                raise
    raise Failed('%d does not come in' % a)


@test
def incomplete(tests):
    """Each split is left without its downlink, on all levels; insertions complete them, VACUUM and scans live with them."""
    cluster, connection = tests.begin('incomplete')
    if not has_points(cluster):
        return 'a server without injection points'
    r = random.Random(tests.args.seed)
    query(connection, 'CREATE TABLE t (a int, b text COLLATE "C"); ALTER TABLE t ALTER b SET STORAGE PLAIN')
    query(connection, 'CREATE UNIQUE INDEX i ON t USING pbtree (b)' if connection.server_version >= 180000 else
          'CREATE UNIQUE INDEX ON t (b); CREATE INDEX i ON t USING pbtree (b)')
    query(connection, 'CREATE INDEX j ON t USING pbtree (b, (a::numeric)) INCLUDE (a)')
    query(connection, 'SET enable_seqscan = off; SET enable_bitmapscan = off')
    writer = connect(cluster)
    query(writer, "SELECT injection_points_set_local(); SELECT injection_points_attach('pbtree-split', 'error')")
    known, failed, levels = set(), 0, 0
    for step in range(20 if tests.args.full else 6):
        for n in range(400):
            failed += insert_at_last(writer, r.randrange(1500), known)
            if n % 40 == 0:
                query(connection, "SELECT pbtree_check('i', true), pbtree_check('j', true)")
        low = 0 if step % 2 else r.randrange(1500)
        high = 1500 if step % 2 else low + r.randrange(1000)
        query(connection, 'DELETE FROM t WHERE a BETWEEN %d AND %d' % (low, high))
        known = {a for a in known if not low <= a <= high}
        query(r.choice([connection, writer]), 'VACUUM (INDEX_CLEANUP on) t')
        query(connection, "SELECT pbtree_check('i', true), pbtree_check('j', true)")
        for order in ('', ' DESC'):
            if query(connection, 'SELECT a FROM t ORDER BY b' + order) != [(a,) for a in sorted(known, reverse=order != '')]:
                raise Failed('other rows')
        levels = max(levels, query(connection, "SELECT height FROM pbtree_stats('i')")[0][0])
    if levels < 3 or failed < 100:
        raise Failed('%d levels, %d splits' % (levels, failed))
    no_crash(cluster)
    return '%d splits' % failed


def ends(connection, statements):
    """The last one's error; an exception if it waits for a lock of its own, which no cancellation ends."""
    errors = []

    def work():
        try:
            for text in statements:
                query(connection, text)
        except psycopg2.Error as error:
            errors.append(error)
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    if thread.is_alive():
        raise Failed('%s does not end' % statements[-1])
    return errors[0] if errors else None


def cancelled_vacuum(cluster, connection):
    """VACUUM that ends after index i, and tells nobody: another session has a page of j pinned.  The caller's transactions are over then."""
    reader, vacuum, errors = connect(cluster), connect(cluster), []
    query(reader, 'BEGIN; SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_indexscan = off')
    query(reader, 'SET LOCAL cursor_tuple_fraction = 0; DECLARE c CURSOR FOR SELECT a FROM t WHERE a >= 0 ORDER BY a')
    query(reader, 'FETCH 1 FROM c')

    def work():
        try:
            query(vacuum, 'VACUUM (INDEX_CLEANUP on) t')
        except psycopg2.Error as error:
            errors.append(error)
    thread = threading.Thread(target=work)
    thread.start()
    pid = vacuum.get_backend_pid()
    while thread.is_alive() and query(connection, 'SELECT wait_event IN %s FROM pg_stat_activity WHERE pid = %d' % (PIN, pid)) != [(True,)]:
        time.sleep(.01)
    query(connection, 'SELECT pg_cancel_backend(%d)' % pid)
    thread.join()
    if not errors or not isinstance(errors[0], psycopg2.errors.QueryCanceled):
        raise Failed('VACUUM was not cancelled: %s' % errors)
    reader.close()
    vacuum.close()
    query(connection, 'SELECT txid_current()')


def page(connection, block):
    return query(connection, "SELECT level, next, flags FROM pbtree_page('i', %d)" % block)[0]


@test
def root_becomes_leaf(tests):
    """A session remembers a root that others have deleted; it is an empty leaf by now, and the session's VACUUM deletes it."""
    cluster, connection = tests.begin('root_becomes_leaf')
    query(connection, 'CREATE TABLE t (a int, b text COLLATE "C"); ALTER TABLE t ALTER b SET STORAGE PLAIN')
    query(connection, 'CREATE INDEX i ON t USING pbtree (b); CREATE INDEX j ON t USING pbtree (a)')
    rows = 'INSERT INTO t SELECT g, %s FROM generate_series(%%d, %%d) g' % key('g.g')
    query(connection, rows % (1000, 1030))
    root = [block for block in range(1, query(connection, "SELECT pg_relation_size('i') / 8192")[0][0]) if page(connection, block)[0] == 1][0]
    old = connect(cluster)
    query(old, "SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT b FROM t WHERE b > 'zz'")
    query(connection, rows % (1031, 2000))
    query(connection, 'DELETE FROM t WHERE a < 1500')
    cancelled_vacuum(cluster, connection)
    cancelled_vacuum(cluster, connection)
    for n in range(1, 1000):
        query(connection, rows % (n, n))
        if 'deleted' not in page(connection, root)[2]:
            break
    query(connection, rows % (n + 1, n + 100))
    if page(connection, root)[0] != 0:
        raise Failed('the old root has become no leaf')
    query(connection, "DELETE FROM t WHERE b IN (SELECT key[1] FROM pbtree_items('i', %d))" % root)
    if ends(old, ['VACUUM (INDEX_CLEANUP on) t']):
        raise Failed('VACUUM fails')
    if 'deleted' not in page(connection, root)[2]:
        raise Failed('the leaf has not been deleted')
    query(connection, "SELECT pbtree_check('i', true)")
    no_crash(cluster)
    return ''


def overwrite(name, offset, new):
    """Write to a file; what was there."""
    with open(name, 'r+b') as file:
        file.seek(offset)
        old = file.read(len(new))
        file.seek(offset)
        file.write(new)
    return old


@test
def own_sibling(tests):
    """A page is its own right sibling: what locks both, splits and deletions, and what reads it, ends with an error."""
    cluster, connection = tests.begin('own_sibling', "fsync = off\nautovacuum = off\nshared_preload_libraries = 'pbtree'\n")
    unique = 'UNIQUE' if connection.server_version >= 180000 else ''
    query(connection, 'CREATE TABLE t AS SELECT g * 10 a FROM generate_series(1, 3000) g')
    query(connection, 'CREATE %s INDEX i ON t USING pbtree (a)' % unique)
    name = os.path.join(cluster.data, query(connection, "SELECT pg_relation_filepath('i')")[0][0])
    block = page(connection, 1)[1]
    connection.close()
    stop_without_checksums(cluster)
    overwrite(name, block * 8192 + 8160 + 4, block.to_bytes(4, sys.byteorder))
    for statements in (['SET enable_seqscan = off; SET enable_bitmapscan = off', 'SELECT count(*) FROM (SELECT a FROM t WHERE a > 0 LIMIT 2900) s'],
                       ['INSERT INTO t SELECT g FROM generate_series(6001, 20000) g WHERE g % 10 > 0'], ['DELETE FROM t', 'VACUUM t']):
        cluster.start()
        error = ends(connect(cluster), statements)
        if error is None or error.pgcode != 'XX002':
            raise Failed('%s: %s' % (statements[-1], error))
        cluster.stop()
    no_crash(cluster)
    return ''


@test
def marked_dead(tests):
    """An entry of a live row is marked dead, so that scans pass it by: the check tells so."""
    cluster, connection = tests.begin('marked_dead')
    query(connection, 'CREATE TABLE t AS SELECT g a FROM generate_series(1, 100) g')
    query(connection, 'CREATE INDEX i ON t USING pbtree (a)')
    expect('rows', query(connection, "SELECT pbtree_check('i', true)"), [(100,)])
    name = os.path.join(cluster.data, query(connection, "SELECT pg_relation_filepath('i')")[0][0])
    connection.close()
    stop_without_checksums(cluster)
    slot = int.from_bytes(overwrite(name, 8192 + 24, bytes(2)), sys.byteorder)
    overwrite(name, 8192 + 24, (slot | 0x2000).to_bytes(2, sys.byteorder))
    cluster.start()
    error = ends(connect(cluster), ["SELECT pbtree_check('i', true)"])
    if error is None or error.pgcode != 'XX002' or 'lacks an entry for row (0,1)' not in str(error):
        raise Failed(str(error))
    no_crash(cluster)
    return ''


@test
def long_fences(tests):
    """Leaves whose low fence is too long to be stored are deleted like others: an index of rows that come and go does not grow."""
    cluster, connection = tests.begin('long_fences')
    sizes = []
    query(connection, 'CREATE TABLE t (k text); ALTER TABLE t ALTER k SET STORAGE plain; CREATE INDEX b ON t (k); CREATE INDEX i ON t USING pbtree (k)')
    for n in range(8):
        query(connection, """INSERT INTO t SELECT lpad((%d + g / 20)::text, 9, '0') || (SELECT string_agg(md5((g / 20 * 1000 + %d + x)::text), '')
            FROM generate_series(1, 33) x) || (SELECT string_agg(md5((g * 1000 + %d + x)::text), '') FROM generate_series(1, 40) x)
            FROM generate_series(1, 1000) g""" % (n * 100000, n * 77777, n * 77777))
        query(connection, 'DELETE FROM t')
        query(connection, 'VACUUM t')
        query(connection, "SELECT pbtree_check('i', true)")
        sizes.append(query(connection, "SELECT pg_relation_size('i') / 8192, pg_relation_size('b') / 8192")[0])
    query(connection, "INSERT INTO t SELECT lpad(g::text, 9, '0') FROM generate_series(1, 700000, 1000) g")
    expect('rows', query(connection, "SELECT pbtree_check('i', true)"), [(700,)])
    if sizes[7][0] > sizes[7][1]:
        raise Failed('pages, and those of btree: %s' % sizes)
    no_crash(cluster)
    return '%d pages, %d of btree' % sizes[7]


def error_code(cluster, text):
    error = ends(connect(cluster), [text])
    return error.pgcode if error else None


@test
def metapage(tests):
    """Fields of the metapage are damaged: a query or the check tells so, and nothing reads the tree from another page than its root."""
    cluster, connection = tests.begin('metapage')
    query(connection, 'CREATE TABLE t AS SELECT g a, g::numeric n FROM generate_series(1, 20000) g')
    query(connection, 'CREATE INDEX i ON t USING pbtree (a); CREATE INDEX j ON t USING pbtree (n)')
    names = {name: os.path.join(cluster.data, query(connection, "SELECT pg_relation_filepath('%s')" % name)[0][0]) for name in 'ij'}
    connection.close()
    stop_without_checksums(cluster)
    ask = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(n) FROM t WHERE %s > 1000'
    # the field's offset and what is written there; what a query says; what the check says
    for name, offset, new, asked, checked in (
            ('i', 32, b'\0\0\0\0', None, 'XX002'), ('i', 32, (2).to_bytes(4, sys.byteorder) + b'\0\0', 'XX002', 'XX002'),
            ('i', 48, bytes([19 + 128]), 'XX002', 'XX002'), ('i', 38, (0x8003).to_bytes(2, sys.byteorder), 'XX002', 'XX002'),
            ('j', 38, (2).to_bytes(2, sys.byteorder), None, 'XX002')):
        old = overwrite(names[name], offset, new)
        cluster.start()
        expect('%s at %d: a query' % (name, offset), error_code(cluster, ask % {'i': 'a', 'j': 'n'}[name]), asked)
        expect('%s at %d: the check' % (name, offset), error_code(cluster, "SELECT pbtree_check('%s')" % name), checked)
        cluster.stop()
        overwrite(names[name], offset, old)
    cluster.start()
    for name in names:
        expect('a sound index', error_code(cluster, "SELECT pbtree_check('%s', true)" % name), None)
    connection = connect(cluster)
    query(connection, 'CREATE TABLE p (a int) PARTITION BY RANGE (a); CREATE INDEX p_i ON p USING pbtree (a); CREATE INDEX b ON t (a)')
    query(connection, """CREATE OPERATOR FAMILY f USING pbtree; CREATE OPERATOR CLASS c FOR TYPE float8 USING pbtree FAMILY f AS OPERATOR 1 <,
        OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btfloat8cmp(float8, float8); CREATE TABLE e (a float8);
        CREATE INDEX e_i ON e USING pbtree (a c); ALTER OPERATOR FAMILY f USING pbtree ADD FUNCTION 4 (float8, float8) btequalimage(oid)""")
    expect('a class that has learnt', error_code(cluster, "SELECT pbtree_check('e_i')"), None)
    for text, code in (("pbtree_check('p_i')", '42809'), ('pbtree_check(1259)', '42809'), ('pbtree_page(3999999999, 0)', '42704'),
                       ("pbtree_check('b')", '42809'), ("pbtree_stats('t')", '42809'), ("pbtree_page('i', 100000)", '22023')):
        expect(text, error_code(cluster, 'SELECT ' + text), code)
    no_crash(cluster)
    return ''


@test
def zeroed(tests):
    """The file ends with pages that have never been written, as after a crash or an error: VACUUM frees them, insertions use them."""
    cluster, connection = tests.begin('zeroed')
    query(connection, 'CREATE TABLE t AS SELECT g * 10 a FROM generate_series(1, 3000) g')
    query(connection, 'CREATE INDEX i ON t USING pbtree (a)')
    name = os.path.join(cluster.data, query(connection, "SELECT pg_relation_filepath('i')")[0][0])
    connection.close()
    cluster.stop()
    with open(name, 'ab') as file:
        file.write(bytes(3 * 8192))
    cluster.start()
    connection = connect(cluster)
    last = query(connection, "SELECT pg_relation_size('i') / 8192 - 1")[0][0]
    expect('a page never written', error_code(cluster, "SELECT pbtree_page('i', %d)" % last), '22023')
    query(connection, 'DELETE FROM t WHERE a < 1000')
    query(connection, 'VACUUM t')
    deleted = query(connection, "SELECT deleted_pages FROM pbtree_stats('i')")[0][0]
    query(connection, 'INSERT INTO t SELECT g FROM generate_series(1, 4000) g')
    query(connection, "SELECT pbtree_check('i', true)")
    left = query(connection, "SELECT deleted_pages FROM pbtree_stats('i')")[0][0]
    if (deleted, left) != (3, 0):
        raise Failed('%d unused pages, then %d' % (deleted, left))
    no_crash(cluster)
    return ''


def counts(connection, on, value):
    """How many rows there are of each value, by a sequential scan or by the index."""
    query(connection, 'SET enable_bitmapscan = off; SET enable_seqscan = %s; SET enable_indexscan = %s; SET enable_indexonlyscan = %s'
          % (('off', 'on', 'on') if on else ('on', 'off', 'off')))
    return query(connection, 'SELECT (SELECT count(*) FROM t WHERE a = v), (SELECT count(*) FROM t WHERE a = v AND n = 3) '
                 'FROM (SELECT %s v FROM generate_series(0, 39) g) g' % value)


@test
def images(tests):
    """Equal values that are stored in different ways, compressed or not, with more blanks or fewer, are equal to scans, splits and unique indexes."""
    cluster, connection = tests.begin('images')
    for kind, order, value in (('text', '', "repeat('x', 900) || lpad((g % 40)::text, 3, '0')"), ('text COLLATE "C"', ' DESC', "repeat('x', 900) || g % 40"),
                               ('bytea', '', "(repeat('x', 900) || g % 40)::bytea"),
                               ('bpchar', '', "(repeat('x', 400) || g % 40 || repeat(' ', {}))::bpchar")):
        query(connection, 'DROP TABLE IF EXISTS t; CREATE TABLE t (a %s, n int); CREATE INDEX i ON t USING pbtree (a%s)' % (kind, order))
        query(connection, 'CREATE INDEX j ON t USING pbtree (n, a%s)' % order)
        for number, storage in enumerate(('MAIN', 'EXTERNAL', 'MAIN', 'EXTERNAL', 'MAIN')):
            query(connection, 'ALTER TABLE t ALTER a SET STORAGE ' + storage)
            query(connection, 'INSERT INTO t SELECT %s, g %% 7 FROM generate_series(1, 600) g' % value.format(number % 3))
            if number == 3:
                query(connection, "DELETE FROM t WHERE ctid::text LIKE '%7)'")
                query(connection, 'VACUUM t')
        for way in ('changed', 'made anew'):
            expected, found = counts(connection, False, value.format(0)), counts(connection, True, value.format(0))
            if found != expected:
                raise Failed('%s, %s: %s, and not %s' % (kind, way, found, expected))
            query(connection, "SELECT pbtree_check('i', true), pbtree_check('j', true)")
            query(connection, 'REINDEX TABLE t')
        try:
            query(connection, 'DELETE FROM t; INSERT INTO t SELECT %s FROM generate_series(1, 1) g' % value.format(0))
            query(connection, 'INSERT INTO t SELECT %s FROM generate_series(1, 1) g; CREATE UNIQUE INDEX u ON t USING pbtree (a)' % value.format(1))
            raise Failed('%s: a unique index was made' % kind)
        except (psycopg2.errors.UniqueViolation, psycopg2.errors.FeatureNotSupported):
            pass
    no_crash(cluster)
    return ''


@test
def old_snapshot(tests):
    """Before 17: a snapshot that old_snapshot_threshold has made too old is an error, not fewer rows."""
    cluster, connection = tests.begin('old_snapshot')
    if connection.server_version >= 170000:
        return 'no such setting from 17 on'
    cluster.configure('old_snapshot_threshold = 0')
    cluster.stop()
    cluster.start()
    connection = connect(cluster)
    query(connection, 'CREATE TABLE t AS SELECT g a FROM generate_series(1, 1000) g')
    query(connection, 'CREATE INDEX i ON t USING pbtree (a)')
    query(connection, 'VACUUM ANALYZE t')
    for way in ('enable_indexscan', 'enable_bitmapscan'):
        old = connect(cluster)
        query(old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL enable_seqscan = off; SET LOCAL enable_indexonlyscan = off')
        query(old, 'SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL %s = on' % way)
        query(old, 'SELECT a FROM t WHERE a = 1000')
        time.sleep(6)
        query(connection, 'UPDATE t SET a = 1001 WHERE a = 1000')
        query(connection, 'UPDATE t SET a = 1000 WHERE a = 1001')
        try:
            rows = query(old, 'SELECT a FROM t WHERE a = 1001')
            raise Failed('%s: %s' % (way, rows))
        except psycopg2.errors.lookup('72000'):
            pass
        old.close()
    no_crash(cluster)
    return ''


@test
def split_points(tests):
    """Long prefixes, long fences and posting lists beside tiny items: each full page can be split."""
    cluster, connection = tests.begin('split_points')
    query(connection, "CREATE FUNCTION chars(seed text, n int) RETURNS text LANGUAGE sql IMMUTABLE AS "
                      "$$ SELECT left(string_agg(md5(seed || i), ''), n) FROM generate_series(0, n / 32) i $$")
    query(connection, 'SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off')
    orders = ('i', '-i', 'hashint4(i)', 'i %% 7', 'hashint4(i %% 11)')
    for n in range(200 if tests.args.full else 40):
        r = random.Random(tests.args.seed * 1000 + n)
        # the prefixes of the keys, which are as long or shorter; the numbers behind them
        lens = [r.choice([0, r.randrange(40), r.randrange(2600)]) for _ in range(r.choice([1, 1, 2, 5]))]
        order, digits = r.choice(orders), r.randrange(1, 24)
        value = "chars('%d' || (ARRAY%s)[1 + i %% %d], (ARRAY%s)[1 + i %% %d]) || lpad(((%s)::bigint + 5000000000)::text, %d, '0')" % (
            n, lens, len(lens), lens, len(lens), order.replace('%%', '%'), digits)
        if r.random() < .3:
            value = 'CASE WHEN hashint4(i + 1) %% 3 = 0 THEN NULL ELSE %s END' % value
        what = 'round %d: %s' % (n, value)
        query(connection, 'DROP TABLE IF EXISTS t; CREATE TABLE t (k text COLLATE "C", i int); ALTER TABLE t ALTER k SET STORAGE %s' %
              r.choice(['plain', 'extended']))
        query(connection, 'CREATE INDEX x ON t USING pbtree (%s)' % r.choice(['k', 'k, i', 'i, k', 'k DESC NULLS LAST, (i / 100)']))
        try:
            query(connection, 'INSERT INTO t SELECT %s, i FROM generate_series(1, %d) i' % (value, r.choice([300, 1000, 3000])))
            if r.random() < .5:
                query(connection, 'DELETE FROM t WHERE hashint4(i) %% %d <> 0' % r.choice([2, 10, 100]))
                query(connection, 'VACUUM (INDEX_CLEANUP on) t')
                query(connection, 'INSERT INTO t SELECT %s, i FROM generate_series(1, 1000) i' % value)
            entries = query(connection, "SELECT pbtree_check('x', true)")[0][0]
            expect(what, query(connection, 'SELECT count(*) FROM t'), [(entries,)])
            query(connection, 'REINDEX INDEX x')
            expect(what, query(connection, "SELECT pbtree_check('x', true)"), [(entries,)])
        except psycopg2.Error as error:
            raise Failed('%s: %s' % (what, error)) from error
    no_crash(cluster)
    return '%d rounds' % (n + 1)


@test
def reuse_of_catalog(tests):
    """A page that is used again: standbys are told whether the table is one that logical decoding reads as a catalog, by a split's record too."""
    for catalog in ('false', 'true'):
        cluster, connection = tests.begin('reuse_' + catalog, "wal_level = logical\nfsync = off\nautovacuum = off\nshared_preload_libraries = 'pbtree'\n")
        query(connection, 'CREATE EXTENSION pg_walinspect; CREATE TABLE t (a int) WITH (user_catalog_table = %s)' % catalog)
        query(connection, 'INSERT INTO t SELECT generate_series(1, 20000); CREATE INDEX i ON t USING pbtree (a)')
        query(connection, 'DELETE FROM t WHERE a < 15000')
        for _ in range(2):
            query(connection, 'VACUUM (INDEX_CLEANUP on) t')
            query(connection, 'SELECT txid_current()')
        pages = query(connection, "SELECT pg_relation_size('i')")
        begin = query(connection, 'SELECT pg_current_wal_insert_lsn()')[0][0]
        query(connection, 'INSERT INTO t SELECT generate_series(20001, 25000)')
        expect('pages', query(connection, "SELECT pg_relation_size('i')"), pages)
        found = query(connection, "SELECT DISTINCT description LIKE '%%of a catalog table%%' FROM pg_get_wal_records_info('%s', pg_current_wal_flush_lsn()) "
                                  "WHERE resource_manager = 'pbtree' AND record_type = 'REUSE'" % begin)
        expect('of a catalog table', found, [(catalog == 'true',)])
        no_crash(cluster)
    return ''


# what a comparison function does, by a setting
CONTRADICTIONS = ['normal', 'backwards', 'always 0', 'always 1', 'always -1', 'by chance', 'in a circle']
CLASS = """CREATE FUNCTION contradict(a {type}, b {type}) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
    DECLARE how text := current_setting('test.how'); c int := {compare}(a, b);
    BEGIN RETURN CASE how WHEN 'normal' THEN c WHEN 'backwards' THEN -c WHEN 'always 0' THEN 0 WHEN 'always 1' THEN 1 WHEN 'always -1' THEN -1
        WHEN 'by chance' THEN floor(random() * 3) - 1 ELSE CASE WHEN hashtext(a::text) % 3 = hashtext(b::text) % 3 THEN c ELSE -c END END; END $$;
    CREATE OPERATOR CLASS odd_{type} FOR TYPE {type} USING pbtree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
        FUNCTION 1 contradict({type}, {type})"""


def contradict(cluster, connection, r, body, unique, counts):
    """Statements under a function that says something else each time; an error is to be one of damage or of a duplicate."""
    query(connection, "SET test.how = 'normal'; DROP TABLE IF EXISTS t; CREATE TABLE t (a int, n numeric, s text)")
    query(connection, 'CREATE %s INDEX i ON t USING pbtree (%s)' % ('UNIQUE' if unique else '', body))
    column = body.split()[0]
    for number in range(40):
        how = r.choice(CONTRADICTIONS)
        low = r.randrange(3000)
        value = {'a': '%d', 'n': '%d::numeric', 's': "'text %d'"}[column] % low
        statement = r.choice(['INSERT INTO t SELECT g, g, {q} FROM generate_series({low}, {low} + 400) g', 'INSERT INTO t SELECT g, g, {q} FROM generate_series({low}, {low} + 30) g',
                              'DELETE FROM t WHERE a BETWEEN {low} AND {low} + 200', 'SELECT count(a) FROM t WHERE {c} >= {v}', 'SELECT a FROM t WHERE {c} = {v}',
                              'SELECT a FROM t WHERE {c} < {v} ORDER BY {c} DESC', 'SELECT count({c}) FROM t WHERE {c} = ANY (ARRAY[{v}, {v}])', 'VACUUM t', 'VACUUM t',
                              'UPDATE t SET a = a + 1 WHERE {c} = {v}', "SELECT pbtree_check('i', true)", 'REINDEX INDEX i'])
        statement = statement.format(low=low, v=value, c=column, q="'text ' || g")
        query(connection, "SET test.how = '%s'" % how)
        try:
            query(connection, statement)
            counts['done'] += 1
        except (psycopg2.errors.IndexCorrupted, psycopg2.errors.UniqueViolation, psycopg2.errors.InternalError_):
            counts['errors'] += 1
        except psycopg2.errors.QueryCanceled as error:
            raise Failed('%s, %s, %s: it does not end' % (body, how, statement)) from error
    no_crash(cluster)
    # no page has remained locked: another session gets at all of them, and a function that is right makes a right index
    other = connect(cluster)
    query(other, "SET test.how = 'normal'; SET statement_timeout = '60s'; DELETE FROM t WHERE ctid NOT IN (SELECT min(ctid) FROM t GROUP BY %s)" %
          ', '.join(column.split()[0] for column in body.split(', ')))
    for text in ('REINDEX INDEX i', 'VACUUM t', "SELECT pbtree_check('i', true)"):
        query(other, text)
    other.close()


BY_OTHERS = """CREATE FUNCTION is_even(a int, b int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT a % 2 = 0';
    CREATE OPERATOR <<| (LEFTARG = int, RIGHTARG = int, PROCEDURE = is_even);
    CREATE OPERATOR CLASS even_int FOR TYPE int USING pbtree AS OPERATOR 1 <<|, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
        FUNCTION 1 btint4cmp(int, int);
    CREATE TYPE boxed AS (v int);
    CREATE FUNCTION chance(a boxed, b boxed) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
        BEGIN RETURN CASE WHEN random() < 0.2 THEN 1 ELSE btint4cmp(a.v, b.v) END; END $$;"""


def contradict_by_others(connection):
    """The comparison function is core's, but an operator is not, or it calls an element type's that is not."""
    query(connection, BY_OTHERS)
    for number, (name, sign) in enumerate((('lt', '<'), ('le', '<='), ('eq', '='), ('ge', '>='), ('gt', '>')), 1):
        query(connection, 'CREATE FUNCTION boxed_%s(a boxed, b boxed) RETURNS bool LANGUAGE sql IMMUTABLE AS $$ SELECT (a).v %s (b).v $$; '
                          'CREATE OPERATOR <%s> (LEFTARG = boxed, RIGHTARG = boxed, PROCEDURE = boxed_%s)' % (name, sign, sign * 2, name))
    query(connection, 'CREATE OPERATOR CLASS boxed_ops DEFAULT FOR TYPE boxed USING btree AS OPERATOR 1 <<<>, OPERATOR 2 <<=<=>, OPERATOR 3 <==>, '
                      'OPERATOR 4 <>=>=>, OPERATOR 5 <>>>, FUNCTION 1 chance(boxed, boxed)')
    query(connection, 'CREATE TABLE o (a int, b int, c boxed[]); INSERT INTO o SELECT g % 3, g, ARRAY[ROW(g % 500)::boxed] FROM generate_series(1, 3000) g; '
                      'SET enable_bitmapscan = off')
    for columns, condition in (('a, b even_int', 'b <<| 100'), ('a, c', 'c = ARRAY[ROW(77)::boxed]'), ('c', 'c > ARRAY[ROW(77)::boxed]')):
        for _ in range(5):
            try:
                query(connection, 'DROP INDEX IF EXISTS oi; CREATE INDEX oi ON o USING pbtree (%s); SELECT count(*) FROM o WHERE %s' % (columns, condition))
            except (psycopg2.errors.IndexCorrupted, psycopg2.errors.InternalError_):
                pass


@test
def contradictions(tests):
    """Comparison functions that contradict themselves: rows are not found, or found damaged, but nothing crashes, waits or goes round for ever."""
    cluster, connection = tests.begin('contradictions')
    for kind, compare in (('int', 'btint4cmp'), ('numeric', 'numeric_cmp'), ('text', 'bttextcmp')):
        query(connection, CLASS.format(type=kind, compare=compare))
    query(connection, "SET statement_timeout = '60s'; SET enable_seqscan = off; SET enable_sort = off")
    r = random.Random(tests.args.seed)
    counts = {'done': 0, 'errors': 0}
    for _ in range(6 if tests.args.full else 2):
        for body in ('a odd_int', 'n odd_numeric', 's odd_text', 'a odd_int, s odd_text DESC', 's odd_text, n odd_numeric'):
            for unique in (False, connection.server_version >= 180000):
                contradict(cluster, connection, r, body, unique, counts)
    contradict_by_others(connection)
    no_crash(cluster)
    return '%(done)d statements, and %(errors)d errors' % counts
