"""Statements on many rows at once: narrow ones, wider ones with indexes, and what follows a load.

All is cached and runs in one process, so its processor time is what is measured.
"""
from lib.db import AMS
from lib.result import Result
from lib.workload import orders

SCAN = 'SELECT sum(n) FROM {t}'
# name: (what comes before, what is measured); {t} is the table, with so many {rows}
NARROW = {
    'DELETE of half': ((), 'DELETE FROM {t} WHERE id % 2 = 0'),
    'SELECT FOR UPDATE of all': ((), 'SELECT count(*) FROM (SELECT FROM {t} FOR UPDATE) locked'),
    'UPDATE of all': ((), 'UPDATE {t} SET n = n + 1'),
    'second scan after an UPDATE of all': (('UPDATE {t} SET n = n + 1', SCAN), SCAN),
    'second scan after INSERTs of a third as many, a transaction each': (
        ('TRUNCATE {t}', 'DO $$ BEGIN FOR i IN 1 .. {rows} / 3 LOOP INSERT INTO {t} VALUES (i, 0); COMMIT; END LOOP; END $$', SCAN), SCAN),
    'VACUUM after a DELETE of a third': (('DELETE FROM {t} WHERE id % 3 = 0', 'CHECKPOINT'), 'VACUUM {t}'),
}
UPDATES = {
    'UPDATE of one column': ((), 'UPDATE {t} SET n = n + 1'),
    'second scan after an UPDATE of one column': (('UPDATE {t} SET n = n + 1', SCAN), SCAN),
    'UPDATE that adds 40 bytes': ((), "UPDATE {t} SET note = note || repeat('+', 40)"),
    'UPDATE of an indexed column, three indexes': (
        ('CREATE INDEX ON {t} (id)', 'CREATE INDEX ON {t} (k)', 'CREATE INDEX ON {t} (note)'), 'UPDATE {t} SET k = k + 1'),
}
INDEXED_ROWS = "SELECT i, i::bigint * 7919 % 1000003, 'note ' || i FROM generate_series(1, {rows}) i"


def sets(context):
    """Each statement has a new table of its own."""
    narrow = ('id int, n int', 'i, 0')
    wider = ('id int, k int, n int, note text', "i, i::bigint * 7919 % 100003, 0, 'some words about number ' || i")
    yield from _statements(context, NARROW, *narrow, context.count(300_000))
    yield from _statements(context, UPDATES, *wider, context.count(500_000))


def _statements(context, statements, columns, values, rows):
    for what, (before, sql) in statements.items():
        times, wal = [], []
        for number, order in enumerate(orders(context.rounds)):
            took, wrote = {}, {}
            for am in order:
                context.progress.step(f'{what}: {am}, round {number + 1}')
                _load(context.db, am, columns, values, rows)
                for statement in before:
                    context.db.execute(statement.format(t='many', rows=rows))
                took[am], wrote[am] = _timed(context.db, sql.format(t='many'))
                context.db.execute('DROP TABLE many; RESET ALL')
            times.append(_pair(took))
            wal.append(_pair(wrote))
        yield Result(f'{what}, {rows:,} rows: CPU', 'ms', tuple(times))
        yield Result(f'{what}, {rows:,} rows: WAL with page images', 'MB', tuple(wal))


def _load(db, am, columns, values, rows):
    db.use(am)
    db.execute('SET max_parallel_workers_per_gather = 0; SET max_parallel_maintenance_workers = 0; SET jit = off')
    db.execute(f'CREATE TABLE many ({columns}) WITH (autovacuum_enabled = off)')
    db.execute(f'INSERT INTO many SELECT {values} FROM generate_series(1, {rows}) i')
    db.execute('VACUUM ANALYZE many')
    db.execute('CHECKPOINT')


def _timed(db, sql):
    """Milliseconds of the backend, bytes of WAL."""
    before = db.wal_position()
    seconds = db.cpu_seconds(sql)
    return 1000 * seconds, db.wal_position() - before


def bulk(context):
    """A table with three indexes is filled, read, thinned out, and filled again."""
    rows = context.count(1_000_000)
    insert = f'INSERT INTO filled {INDEXED_ROWS.format(rows=rows)}'
    steps = {
        'INSERT ... SELECT': insert,
        'VACUUM ANALYZE after the load': 'VACUUM ANALYZE filled',
        'range of a tenth by the primary key': f'SELECT sum(k) FROM filled WHERE id BETWEEN {rows // 2} AND {rows // 2 + rows // 10}',
        'DELETE of half': 'DELETE FROM filled WHERE id % 2 = 0',
        'INSERT of that half after VACUUM': f'{insert} WHERE i % 2 = 0',
    }
    times = {what: [] for what in steps}
    for number, order in enumerate(orders(min(context.rounds, 3))):
        took = {what: {} for what in steps}
        for am in order:
            _bulk_once(context, am, number, steps, took)
        for what in steps:
            times[what].append(_pair(took[what]))
    for what, pairs in times.items():
        yield Result(f'{rows:,} rows with three indexes: {what}: CPU', 'ms', tuple(pairs))


def _bulk_once(context, am, number, steps, took):
    db = context.db
    db.use(am)
    db.execute('SET enable_seqscan = off; SET enable_bitmapscan = off; SET max_parallel_workers_per_gather = 0;'
               ' SET max_parallel_maintenance_workers = 0; SET jit = off')
    db.execute('CREATE TABLE filled (id int PRIMARY KEY, k int, note text) WITH (autovacuum_enabled = off)')
    db.execute('CREATE INDEX ON filled (k); CREATE INDEX ON filled (note)')
    for what, sql in steps.items():
        context.progress.step(f'{what}: {am}, round {number + 1}')
        if 'range' in what:
            db.execute(sql)
        elif 'after VACUUM' in what:
            db.execute('VACUUM filled')
        if not sql.startswith('SELECT'):
            db.execute('CHECKPOINT')
        took[what][am] = 1000 * db.cpu_seconds(sql)
    db.execute('DROP TABLE filled')
    db.execute('RESET ALL')


def _pair(values):
    return tuple(values[am] for am in AMS)
