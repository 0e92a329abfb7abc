"""Sizes, WAL volumes, bulk load and rollback: one session, nothing else running."""
import os

from lib.db import AMS
from lib.result import Bar, Result
from lib.workload import load_accounts, orders

NARROW = '''
CREATE TABLE narrow (active bool, deleted bool, kind int2, level int2, score int2, code text, unit text,
                     flags int2, parent int4, note text)'''
NARROW_ROWS = '''
INSERT INTO narrow
SELECT i % 2 = 0, i % 50 = 0, i % 7, i % 300, i % 1000, 'c' || i % 10000, (ARRAY['kg', 'm', 'pcs'])[1 + i % 3],
       CASE WHEN i % 4 = 0 THEN i % 16 END, CASE WHEN i % 10 = 0 THEN i END, CASE WHEN i % 20 = 0 THEN 'see ' || i END
FROM generate_series(1, {rows}) i'''

EVENTS = '''
CREATE TABLE events (id bigint, customer int, at timestamptz, amount numeric(10,2), status text, note text)'''
EVENT_ROWS = '''
SELECT i, 1 + i::bigint * 7919 % 100003, timestamptz '2024-01-01 UTC' + i * interval '7 seconds', (i * 31 % 100000) / 100.0,
       (ARRAY['new', 'paid', 'shipped', 'returned'])[1 + i % 4], CASE WHEN i % 3 = 0 THEN 'order ' || md5(i::text) END
FROM generate_series(1, {rows}) i'''

OPERATIONS = {
    'insert': 'INSERT INTO operations SELECT i, 0, md5(i::text) FROM generate_series(1, {rows}) i',
    'update': 'UPDATE operations SET n = n + 1',
    'lock': 'SELECT count(*) FROM (SELECT FROM operations FOR UPDATE) locked',
    'delete': 'DELETE FROM operations',
}


def sizes(context):
    accounts, narrow = {}, {}
    for am in AMS:
        context.progress.step(f'sizes: {am}')
        load_accounts(context.db, am, context.scale)
        accounts[am] = context.db.table_size('pgbench_accounts')
        narrow[am] = _size_of_narrow(context.db, context.count(1_000_000))
    yield Result(f'size of pgbench_accounts, scale {context.scale}', 'MB', (_pair(accounts),), Bar('<=', 0.80))
    yield Result(f'size of {context.count(1_000_000):,} rows of ten narrow columns', 'MB', (_pair(narrow),),
                 Bar('<=', 0.70))


def _size_of_narrow(db, rows):
    db.execute(NARROW)
    db.execute(NARROW_ROWS.format(rows=rows))
    db.execute('VACUUM narrow')
    size = db.table_size('narrow')
    db.execute('DROP TABLE narrow')
    return size


def wal(context):
    """One statement on many rows, without full-page images: the pages are younger than the last checkpoint."""
    rows = context.count(100_000)
    bytes_per_row = {operation: {} for operation in OPERATIONS}
    for am in AMS:
        context.progress.step(f'WAL per operation: {am}')
        context.db.use(am)
        context.db.execute('CHECKPOINT')
        context.db.execute('CREATE TABLE operations (id int, n int, note text) WITH (fillfactor = 45)')
        for operation, sql in OPERATIONS.items():
            bytes_per_row[operation][am] = context.db.wal_bytes(sql.format(rows=rows)) / rows
        context.db.execute('DROP TABLE operations')
    for operation, values in bytes_per_row.items():
        yield Result(f'WAL of one row: {operation}', 'bytes', (_pair(values),))


def copy(context):
    rows = context.count(2_000_000)
    path = os.path.join(context.db.value('SHOW data_directory'), 'events.copy')
    context.db.execute(f"COPY ({EVENT_ROWS.format(rows=rows)}) TO '{path}'")
    seconds, wal_bytes = [], []
    for number, order in enumerate(orders(context.rounds)):
        took, wrote = {}, {}
        for am in order:
            context.progress.step(f'COPY: {am}, round {number + 1}')
            took[am], wrote[am] = _copy_once(context.db, am, path)
        seconds.append(_pair(took))
        wal_bytes.append(_pair(wrote))
    os.unlink(path)
    yield Result(f'COPY of {rows:,} rows: time', 's', tuple(seconds), Bar('<=', 1.0))
    yield Result(f'COPY of {rows:,} rows: WAL', 'MB', tuple(wal_bytes), Bar('<=', 0.85))


def _copy_once(db, am, path):
    db.use(am)
    db.execute(EVENTS)
    db.execute('CHECKPOINT')
    before = db.wal_position()
    seconds = db.seconds(f"COPY events FROM '{path}'")
    wrote = db.wal_position() - before
    db.execute('DROP TABLE events')
    return seconds, wrote


def rollback(context):
    for full in (200_000, 2_000_000):
        rows, pairs = context.count(full), []
        for number, order in enumerate(orders(context.rounds)):
            times = {}
            for am in order:
                context.progress.step(f'ROLLBACK of {rows:,} rows: {am}, round {number + 1}')
                times[am] = _roll_back(context.db, am, rows)
            pairs.append(times)
        names = {'ROLLBACK of an UPDATE of': 0, 'first scan after ROLLBACK of': 1, 'VACUUM after ROLLBACK of': 2}
        for name, index in names.items():
            yield Result(f'{name} {rows:,} rows', 'ms',
                         tuple(tuple(1000 * times[am][index] for am in AMS) for times in pairs))


def _roll_back(db, am, rows):
    """Seconds of the ROLLBACK, of the first scan after it, and of a VACUUM; the rows must be what they were."""
    db.use(am)
    db.execute('CREATE TABLE ledger (id int, n int, note text)')
    db.execute(f"INSERT INTO ledger SELECT i, i % 1000, 'entry ' || i FROM generate_series(1, {rows}) i")
    db.execute('VACUUM ANALYZE ledger')
    total = db.rows('SELECT count(*), sum(n) FROM ledger')
    db.execute('BEGIN')
    db.execute('UPDATE ledger SET n = n + 1')
    seconds = [db.seconds('ROLLBACK'), db.seconds('SELECT count(*), sum(n) FROM ledger')]
    if db.cursor.fetchall() != total:
        raise AssertionError(f'{am}: a rolled back UPDATE left traces')
    seconds.append(db.seconds('VACUUM ledger'))
    db.execute('DROP TABLE ledger')
    return seconds


def _pair(values):
    return tuple(values[am] for am in AMS)
