"""What one change costs in WAL, small tables in space, and estimates without statistics: exact, so one round."""
import subprocess
from contextlib import contextmanager

from lib.db import AMS
from lib.result import Bar, Result
from lib.workload import CLIENTS, Snapshot, start_pgbench

# ---- WAL of one change -------------------------------------------------------------------------------------------------

TEXT_LENGTHS = (20, 60, 120, 500, 1500)
WIDE_COLUMNS = ', '.join(f'a{number} text' for number in range(8))
# A row of some 450 bytes, with a counter and a document in its middle.
WIDE = f'id int PRIMARY KEY, k int, {WIDE_COLUMNS}, n bigint, doc jsonb, note text'
WIDE_ROW = (', '.join([f"md5('{number}' || i)" for number in range(8)])
            + """, i, jsonb_build_object('state', 'new', 'count', i, 'tags', ARRAY['a', 'b'], 'name', md5('doc' || i)), 'note'""")
WIDE_CHANGES = {
    'n = n + 1 in a row of 450 bytes': 'n = n + 1',
    'a counter that is a key of a jsonb, row of 450 bytes': """doc = jsonb_set(doc, '{count}', to_jsonb((doc->>'count')::int + 1))""",
    'k = k + 1 in a row of 450 bytes, k indexed': 'k = k + 1',
}


def changes(context):
    """Texts by one UPDATE of rows that have room on their pages; the others by transactions of one row each, on full pages."""
    rows = context.count(20_000)
    wrote = {}
    with _setting(context.db, 'full_page_writes', 'off'):
        for am in AMS:
            context.progress.step(f'WAL of one change: {am}')
            context.db.use(am)
            for length in TEXT_LENGTHS:
                what = f'WAL of one row: a text of {length:,} random characters is replaced'
                wrote.setdefault(what, {})[am] = _replace_texts(context.db, length, rows // 4)
            for what, change in WIDE_CHANGES.items():
                wrote.setdefault(f'WAL per transaction: {what}', {})[am] = _change_wide(context, am, what, change, rows)
    for what, values in wrote.items():
        yield Result(what, 'bytes', (_pair(values),))


def _replace_texts(db, length, rows):
    """Both texts are incompressible; the new ones are ready before."""
    pieces = (length + 31) // 32
    for table, salt in (('old_texts', 'old'), ('new_texts', 'new')):
        text = ' || '.join(f"md5('{salt}{piece} ' || i)" for piece in range(pieces))
        am = '' if salt == 'old' else 'USING heap '
        db.execute(f'CREATE TABLE {table} (id int PRIMARY KEY, body text) {am}WITH (fillfactor = 45, autovacuum_enabled = off)')
        db.execute(f'INSERT INTO {table} SELECT i, left({text}, {length}) FROM generate_series(1, {rows}) i')
        db.execute(f'VACUUM ANALYZE {table}')
    wrote = db.wal_bytes('UPDATE old_texts SET body = new_texts.body FROM new_texts WHERE old_texts.id = new_texts.id')
    db.execute('DROP TABLE old_texts, new_texts')
    return wrote / rows


def _change_wide(context, am, what, change, rows):
    db = context.db
    db.execute(f'CREATE TABLE wide ({WIDE})')
    db.execute(f'INSERT INTO wide SELECT i, i * 7919 % {rows}, {WIDE_ROW} FROM generate_series(1, {rows}) i')
    if 'indexed' in what:
        db.execute('CREATE INDEX ON wide (k)')
    db.execute('VACUUM ANALYZE wide')
    before = db.wal_position()
    _run(context, am, f'\\set id random(1, {rows})\nUPDATE wide SET {change} WHERE id = :id;\n', CLIENTS, 2 * rows)
    wrote = db.wal_position() - before
    db.execute('DROP TABLE wide')
    return wrote / (2 * rows)


# ---- WAL of transactions like sysbench's ----------------------------------------------------------------------------------

GROUPS = """
CREATE OR REPLACE FUNCTION digits(groups int) RETURNS text LANGUAGE sql VOLATILE AS $$
    SELECT string_agg(lpad((random() * 99999999999)::bigint::text, 11, '0'), '-') FROM generate_series(1, groups) $$"""
SET_ID = '\\set id random(1, {rows})\n'
NON_INDEX = 'UPDATE sbtest SET c = digits(10) WHERE id = :id;\n'
INDEX = 'UPDATE sbtest SET k = k + 1 WHERE id = :id;\n'
REPLACE = ('DELETE FROM sbtest WHERE id = :id;\n'
           'INSERT INTO sbtest VALUES (:id, :id, digits(10), digits(5)) ON CONFLICT DO NOTHING;\n')
WRITES = f'{SET_ID}{INDEX}{SET_ID}{NON_INDEX}{SET_ID}{REPLACE}'
RANGE = 'FROM sbtest WHERE id BETWEEN :id AND :id + 99'
READS = (f'{SET_ID}SELECT c FROM sbtest WHERE id = :id;\n' * 10 + f'{SET_ID}SELECT c {RANGE};\n{SET_ID}SELECT sum(k) {RANGE};\n'
         f'{SET_ID}SELECT c {RANGE} ORDER BY c;\n{SET_ID}SELECT DISTINCT c {RANGE} ORDER BY c;\n')
SYSBENCH = {
    'update_non_index': SET_ID + NON_INDEX,
    'update_index': SET_ID + INDEX,
    'write_only': f'BEGIN;\n{WRITES}COMMIT;\n',
    'read_write': f'BEGIN;\n{READS}{WRITES}COMMIT;\n',
}


def sysbench(context):
    """The statements of sysbench's scripts on one table; pages have no images, so that the length of a run is no matter."""
    rows, transactions = context.count(100_000), context.count(20_000)
    wrote = {name: {} for name in SYSBENCH}
    with _setting(context.db, 'full_page_writes', 'off'):
        for am in AMS:
            for name, script in SYSBENCH.items():
                context.progress.step(f'sysbench {name}: {am}')
                _load_sysbench(context.db, am, rows)
                before = context.db.wal_position()
                _run(context, am, script.format(rows=rows), CLIENTS, transactions)
                wrote[name][am] = (context.db.wal_position() - before) / (transactions // CLIENTS * CLIENTS)
    for name, values in wrote.items():
        yield Result(f"sysbench's {name}: WAL per transaction, no page images", 'bytes', (_pair(values),))


def _load_sysbench(db, am, rows):
    db.use(am)
    db.execute(GROUPS)
    db.execute('DROP TABLE IF EXISTS sbtest')
    db.execute('CREATE TABLE sbtest (id int PRIMARY KEY, k int NOT NULL, c char(120) NOT NULL, pad char(60) NOT NULL)')
    db.execute('SELECT setseed(0.5)')
    db.execute(f'INSERT INTO sbtest SELECT i, 1 + random() * {rows}, digits(10), digits(5) FROM generate_series(1, {rows}) i')
    db.execute('CREATE INDEX ON sbtest (k)')
    db.execute('VACUUM ANALYZE sbtest')


# ---- small tables ------------------------------------------------------------------------------------------------------------

FEW = 10                # rows of a small table
MANY_CLIENTS = 16


def small(context):
    """Tables of ten rows that many clients change; in the end all have been idle for a moment."""
    one, many, read = {}, {}, {}
    tables = context.count(1000)
    updates = {'heap': context.count(5_000), 'inplace': context.count(500_000)}     # of heap's each takes longer than the one before
    for am in AMS:
        context.progress.step(f'small tables: {am}')
        one[am] = _one_small(context, am)
        many[am] = _many_small(context, am, tables)
        context.progress.step(f'a small table under an old snapshot: {am}')
        read[am] = _read_after_hold(context.db, am, updates[am])
    yield Result(f'size of a table of {FEW} rows under {MANY_CLIENTS} clients', 'MB', (_pair(one),))
    yield Result(f'size of {tables:,} tables of {FEW} rows under {MANY_CLIENTS} clients', 'MB', (_pair(many),))
    yield Result(f'50 rows, {updates["inplace"]:,} updates (heap {updates["heap"]:,}) under a snapshot that has ended: a scan reads', 'pages',
                 (_pair(read),), Bar('<=', 4), own=True)


def _read_after_hold(db, am, updates):
    """Pages that a sequential scan reads, before VACUUM."""
    db.use(am)
    db.execute('CREATE TABLE held (id int PRIMARY KEY, n bigint) WITH (autovacuum_enabled = off)')
    db.execute('INSERT INTO held SELECT i, 0 FROM generate_series(1, 50) i')
    snapshot = Snapshot(am)
    before = snapshot.db.rows('SELECT count(*), sum(n) FROM held')
    db.execute(f'DO $$BEGIN FOR i IN 1 .. {updates} LOOP UPDATE held SET n = n + 1 WHERE id = 1 + i % 50; COMMIT; END LOOP; END$$')
    if snapshot.db.rows('SELECT count(*), sum(n) FROM held') != before:
        raise AssertionError(f'{am}: what a snapshot sees changed while it was held')
    snapshot.release()
    plan = db.value('EXPLAIN (ANALYZE, BUFFERS, FORMAT json) SELECT count(*), sum(n) FROM held')[0]['Plan']
    db.execute('DROP TABLE held')
    return plan['Shared Hit Blocks'] + plan['Shared Read Blocks']


def _one_small(context, am):
    db = context.db
    db.use(am)
    db.execute('CREATE TABLE small (id int PRIMARY KEY, n bigint)')
    db.execute(f'INSERT INTO small SELECT i, 0 FROM generate_series(1, {FEW}) i')
    _run(context, am, f'\\set id random(1, {FEW})\nUPDATE small SET n = n + 1 WHERE id = :id;\n', MANY_CLIENTS,
         context.count(100_000))
    size = db.table_size('small')
    db.execute('DROP TABLE small')
    return size


def _many_small(context, am, tables):
    db = context.db
    db.use(am)
    db.execute(f'CREATE TABLE shards (id int, n bigint) PARTITION BY LIST ((id % {tables}))')
    for number in range(tables):
        db.execute(f'CREATE TABLE shard{number} PARTITION OF shards FOR VALUES IN ({number})')
        db.execute(f'INSERT INTO shard{number} SELECT i * {tables} + {number}, 0 FROM generate_series(1, {FEW}) i')
    script = (f'\\set shard random(0, {tables - 1})\n\\set id :shard + {tables} * random(1, {FEW})\n'
              'UPDATE shard:shard SET n = n + 1 WHERE id = :id;\n')
    _run(context, am, script, MANY_CLIENTS, 200 * tables, 'simple')
    size = db.value("SELECT sum(pg_table_size(inhrelid)) FROM pg_inherits WHERE inhparent = 'shards'::regclass")
    db.execute('DROP TABLE shards')
    return float(size)


# ---- rows that the planner expects ---------------------------------------------------------------------------------------------

def estimates(context):
    rows = context.count(200_000)
    for column, value in (('int', 'i'), ('bool', 'true')):
        values = {}
        for am in AMS:
            context.progress.step(f'estimates: {am}')
            context.db.use(am)
            context.db.execute(f'CREATE TABLE fresh (a {column}) WITH (autovacuum_enabled = off)')
            context.db.execute(f'INSERT INTO fresh SELECT {value} FROM generate_series(1, {rows}) i')
            values[am] = context.db.value('EXPLAIN (FORMAT json) SELECT * FROM fresh')[0]['Plan']['Plan Rows']
            context.db.execute('DROP TABLE fresh')
        yield Result(f'rows expected of {rows:,} before ANALYZE, one {column} each', '', (_pair(values),))


# ---- common ----------------------------------------------------------------------------------------------------------------------

@contextmanager
def _setting(db, name, value):
    db.execute(f'ALTER SYSTEM SET {name} = {value}')
    db.execute('SELECT pg_reload_conf()')
    try:
        yield
    finally:
        db.execute(f'ALTER SYSTEM RESET {name}')
        db.execute('SELECT pg_reload_conf()')


def _run(context, am, script, clients, transactions, protocol='prepared'):
    """So many transactions in all, in pgbench."""
    process = start_pgbench(am, f'--client={clients}', '--jobs=2', '--no-vacuum', f'--protocol={protocol}',
                            f'--transactions={transactions // clients}', f'--random-seed={context.seed}', '--file=-', stdin=subprocess.PIPE)
    output = process.communicate(script)[0]
    if process.returncode:
        raise RuntimeError(f'pgbench failed:\n{output}')


def _pair(values):
    return tuple(values[am] for am in AMS)
