"""Reading rows that nobody changes: scans, lookups, deforming."""
from lib.db import AMS
from lib.result import Bar, Result
from lib.workload import CLIENTS, LOOKUP, load_accounts, measure, orders

COLUMNS = 50
SCANS = {
    'sequential scan: count(*)': 'SELECT count(*) FROM pgbench_accounts',
    'sequential scan: sum of a column': 'SELECT sum(abalance) FROM pgbench_accounts',
    'sequential scan: filter on the last column': "SELECT count(*) FROM pgbench_accounts WHERE filler <> ''",
}
WIDE_QUERIES = {
    'wide table: sum of column 1': 'SELECT sum(c1) FROM wide',
    'wide table: sum of column 50': 'SELECT sum(c50) FROM wide',
    'wide table: sums of 10 columns':
        f'SELECT {", ".join(f"sum(c{number})" for number in range(1, COLUMNS, 5))} FROM wide',
}


def scans(context):
    for am in AMS:
        context.progress.step(f'scans, loading: {am}')
        load_accounts(context.db, am, context.scale)
    for what, sql in SCANS.items():
        yield _timed(context, what, sql, None if what.endswith('count(*)') else Bar('<=', 1.05))


def wide(context):
    for am in AMS:
        context.progress.step(f'wide table, loading: {am}')
        _load_wide(context.db, am, context.count(200_000))
    for what, sql in WIDE_QUERIES.items():
        yield _timed(context, what, sql)
    for am in AMS:
        context.db.use(am)
        context.db.execute('DROP TABLE wide')


def _load_wide(db, am, rows):
    """Integers, short texts and nulls in turns; the columns that are summed are integers."""
    kinds = ['int', 'text', 'int', 'bool', 'int']
    values = ['i % 1000', "'t' || i % 100", 'CASE WHEN i % 3 = 0 THEN i END', 'i % 2 = 0', 'i']
    names = [f'c{number}' for number in range(1, COLUMNS)]
    columns = ', '.join(f'{name} {kinds[number % 5]}' for number, name in enumerate(names))
    row = ', '.join(values[number % 5] for number in range(COLUMNS - 1))
    db.use(am)
    db.execute(f'CREATE TABLE wide ({columns}, c{COLUMNS} int)')
    db.execute(f'INSERT INTO wide SELECT {row}, i FROM generate_series(1, {rows}) i')
    db.execute('VACUUM ANALYZE wide')


def _timed(context, what, sql, bar=None):
    """Each round runs the query once on each; the run before the first round warms the cache."""
    db = context.db
    db.execute('SET max_parallel_workers_per_gather = 0; SET jit = off')
    context.progress.step(what)
    pairs = []
    for order in [AMS, *orders(context.rounds * 2 + 1)]:
        times = {}
        for am in order:
            db.use(am)
            times[am] = db.seconds(sql) * 1000
        pairs.append(tuple(times[am] for am in AMS))
    return Result(what, 'ms', tuple(pairs[1:]), bar)


def lookups(context):
    for am in AMS:
        context.progress.step(f'index lookups, loading: {am}')
        load_accounts(context.db, am, context.scale)
        measure(context.db, LOOKUP, am, 2)
    pairs, cpu = [], []
    for number, order in enumerate(orders(context.rounds)):
        runs = {}
        for am in order:
            context.progress.step(f'index lookups: {am}, round {number + 1}')
            runs[am] = measure(context.db, LOOKUP, am, context.seconds // 2, seed=context.seed + number)
        pairs.append(tuple(1e6 * CLIENTS / runs[am].tps for am in AMS))
        cpu.append(tuple(1e6 * runs[am].cpu_seconds / runs[am].transactions for am in AMS))
    yield Result('index lookup: time', 'us', tuple(pairs), Bar('<=', 1.05))
    yield Result('index lookup: server CPU', 'us', tuple(cpu))
