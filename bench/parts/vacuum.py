"""VACUUM and autovacuum: their cost, and sizes and speed in the long run."""
import threading
import time

from lib import report
from lib.db import AMS, Database
from lib.result import Bar, Result
from lib.workload import CLIENTS, QUEUE, SIMPLE_UPDATE, load_accounts, load_queue, measure, middle_half, orders

PARTS_OF_DELETED = 5        # one row of five is deleted
RELOADS = 20
SETTLED = 10                # seconds of updates before a snapshot is taken
EDGE = 15                   # seconds whose TPS are averaged
FLAT = 1.05
BACK = 0.9                  # of the TPS at the start: recovered


# ---- the cost of one VACUUM --------------------------------------------------------------------------------------------

def deleted(context):
    """VACUUM in one process, because the memory of workers is not seen; both tables stay, and are measured in turns."""
    db, rows = context.db, context.count(10_000_000)
    for am in AMS:
        context.progress.step(f'VACUUM, {rows:,} rows, loading: {am}')
        _load_orders(db, am, rows)
    yield from _deleted(context, f'VACUUM of {rows:,} rows, 20 % deleted, 1 index')
    for am in AMS:
        db.use(am)
        db.execute('CREATE INDEX ON orders (customer)')
        db.execute('CREATE INDEX ON orders (at)')
    yield from _deleted(context, f'VACUUM of {rows:,} rows, 20 % deleted, 3 indexes')
    for am in AMS:
        _check_sound(db, am, 'orders')
        db.execute('DROP TABLE orders')


def _deleted(context, what):
    pairs = []
    for number, order in enumerate(orders(min(context.rounds, 3))):
        pair = {}
        for am in order:
            context.progress.step(f'{what}: {am}, round {number + 1}')
            pair[am] = _vacuum_once(context.db, am, number)
        pairs.append(pair)
    yield Result(f'{what}: time', 's', _pick(pairs, 0), Bar('<=', 1.0))
    yield Result(f'{what}: peak private memory', 'MB', _pick(pairs, 1), Bar('<=', 0.5))
    yield Result(f'{what}: WAL', 'MB', _pick(pairs, 2))


def _load_orders(db, am, rows):
    db.use(am)
    db.execute('DROP TABLE IF EXISTS orders')
    db.execute('CREATE TABLE orders (id int NOT NULL, customer int, at timestamptz, note text) WITH (autovacuum_enabled = off)')
    _insert_orders(db, f'generate_series(1, {rows}) i')
    db.execute('CREATE UNIQUE INDEX ON orders (id)')
    db.execute('VACUUM ANALYZE orders')


def _insert_orders(db, source):
    db.execute("INSERT INTO orders SELECT i, i::bigint * 7919 % 1000003, timestamptz '2024-01-01 UTC' + (i::bigint * 104729 % 10000019) * interval '1 s',"
               f" 'order ' || i FROM {source}")


def _vacuum_once(db, am, number):
    """Seconds, bytes of memory, bytes of WAL; afterwards the table is as full as before."""
    db.use(am)
    db.execute('CREATE TEMP TABLE gone (i int) USING heap')
    db.execute(f'WITH d AS (DELETE FROM orders WHERE abs(hashint4(id + {number}) % {PARTS_OF_DELETED}) = 0 RETURNING id)'
               ' INSERT INTO gone SELECT id FROM d')
    db.execute('CHECKPOINT')
    worker = Database()
    worker.use(am)
    worker.rows('SELECT count(*) FROM orders WHERE id < 1000')
    before = db.wal_position()
    with _PeakMemory(worker.value('SELECT pg_backend_pid()')) as memory:
        seconds = worker.seconds('VACUUM (PARALLEL 0) orders')
    wrote = db.wal_position() - before
    worker.close()
    _insert_orders(db, 'gone')
    db.execute('DROP TABLE gone')
    db.execute('VACUUM orders')
    return seconds, memory.bytes, wrote


class _PeakMemory:
    """By how much a process's private memory (RssAnon) has grown at most. VmHWM will not do: it counts shared buffers."""

    def __init__(self, pid):
        self.path, self.bytes, self.stop = f'/proc/{pid}/status', 0, threading.Event()
        self.before = self._now()
        self.thread = threading.Thread(target=self._watch)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()

    def _now(self):
        with open(self.path, encoding='utf-8') as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith('RssAnon'))

    def _watch(self):
        while not self.stop.wait(0.005):
            self.bytes = max(self.bytes, self._now() - self.before)


# ---- everything goes, and comes again ------------------------------------------------------------------------------------

def reload(context):
    """Each time as soon as autovacuum has come, but not for longer than it needs to come."""
    rows = context.count(500_000)
    naptime = 1 if context.quick else 10
    reloads = 5 if context.quick else RELOADS
    courses = {}
    with context.db.naptime(naptime):
        for am in AMS:
            courses[am] = _reload_all(context, am, rows, reloads, naptime)
            _check_sound(context.db, am, 'staging')
    context.add_plots('delete all, insert all', [report.plot(
        'Size of the table with indexes and undo', 'MB', {am: list(enumerate(courses[am], 1)) for am in AMS}, [])])
    sizes = tuple(zip(*(courses[am] for am in AMS)))
    yield Result(f'delete all and insert all, {reloads} times, {rows:,} rows: size after each', 'MB',
                 tuple(tuple(1e6 * size for size in pair) for pair in sizes))
    yield Result('delete all and insert all: largest size / size after the second time', '',
                 (tuple(max(courses[am][2:]) / courses[am][1] for am in AMS),), Bar('<=', FLAT), own=True)


def _reload_all(context, am, rows, reloads, naptime):
    """MB after each time."""
    db, sizes = context.db, []
    db.use(am)
    db.execute('DROP TABLE IF EXISTS staging')
    db.execute('CREATE TABLE staging (id int PRIMARY KEY, n int, note text)')
    for number in range(reloads):
        context.progress.step(f'delete all and insert all: {am}, {number + 1} of {reloads}')
        db.execute('DELETE FROM staging')
        db.execute(f"INSERT INTO staging SELECT i, {number}, 'row ' || i FROM generate_series(1, {rows}) i")
        sizes.append(db.full_size('staging') / 1e6)
        _wait_for_autovacuum(db, 'staging', naptime + 5)
    return sizes


def _wait_for_autovacuum(db, table, seconds):
    """For a visit that begins after what has been committed, with the ANALYZE at its end: the snapshot of that would
    keep what the next round deletes from being known as dead.
    """
    end = time.monotonic() + seconds
    _wait_until(db, end, f"SELECT count(*) = 0 FROM pg_stat_progress_vacuum WHERE relid = '{table}'::regclass")
    count = f"SELECT autovacuum_count FROM pg_stat_user_tables WHERE relid = '{table}'::regclass"
    _wait_until(db, end, f'SELECT ({count}) > {db.value(count)}')
    _wait_until(db, end, "SELECT count(*) = 0 FROM pg_stat_activity"
                         f" WHERE backend_type = 'autovacuum worker' AND query LIKE 'autovacuum:%.{table}'")


def _wait_until(db, end, condition):
    while not db.value(condition) and time.monotonic() < end:
        time.sleep(0.2)


# ---- after a long snapshot ---------------------------------------------------------------------------------------------

def after_hold(context):
    """The clients end with the snapshot: where they go on, nobody gets the lock that cutting off a file's end needs."""
    hold, after = (10, 30) if context.quick else (120, 60)
    held = (SETTLED, SETTLED + hold)
    runs, sizes = {}, {}
    with context.db.naptime(2 if context.quick else 10):
        for am in AMS:
            context.progress.step(f'snapshot held for {hold} s: {am}')
            load_accounts(context.db, am, 2)
            context.db.execute('CHECKPOINT')
            sizes[am] = []
            runs[am] = measure(context.db, SIMPLE_UPDATE, am, SETTLED + hold, held, context.seed,
                               _following(context, sizes[am]))
            sizes[am].append(context.db.table_size('pgbench_accounts'))
            time.sleep(after)
            sizes[am].append(context.db.table_size('pgbench_accounts'))
            _check_sound(context.db, am, 'pgbench_accounts')
    context.add_plots(f'simple-update, snapshot held for {hold} s', _plots(runs, held))
    yield Result(f'snapshot held for {hold} s under {CLIENTS} clients: size at its end / size before', '',
                 (tuple(sizes[am][-2] / sizes[am][SETTLED - 1] for am in AMS),))
    yield Result(f'the same, {after} s after it: size / size before', '',
                 (tuple(sizes[am][-1] / sizes[am][SETTLED - 1] for am in AMS),), Bar('<=', 1.1), own=True)
    yield Result('the same: TPS', 'TPS', (tuple(runs[am].tps for am in AMS),))


def _following(context, sizes):
    def tick(second, tps):
        sizes.append(context.db.table_size('pgbench_accounts'))
        context.show_tps(second, tps)
    return tick


# ---- a queue --------------------------------------------------------------------------------------------------------------

def queue(context):
    seconds = 24 if context.quick else 120
    hold = middle_half(seconds)
    pairs = []
    with context.db.naptime(2 if context.quick else 10):
        for number, order in enumerate(orders(min(context.rounds, 2))):
            runs = {}
            for am in order:
                context.progress.step(f'queue: {am}, round {number + 1}')
                load_queue(context.db, am)
                context.db.execute('CHECKPOINT')
                runs[am] = measure(context.db, QUEUE, am, seconds, hold, context.seed + number, context.show_tps)
                _check_sound(context.db, am, 'queue')
            pairs.append(runs)
    context.add_plots('queue', _plots(pairs[0], hold))
    yield Result('queue: TPS', 'TPS', _values(pairs, lambda run: run.tps))
    yield Result(f'queue: TPS of the last {EDGE} s / first {EDGE} s', '', _values(pairs, _persistence), Bar('>=', 1.0))
    yield Result(f'queue: TPS of the last {EDGE} s of the hold / first {EDGE} s', '', _values(pairs, _held_tps))
    yield Result(f'queue: until it has {100 * BACK:.0f} % of its first TPS again', 's', _values(pairs, _recovery),
                 Bar('<=', 10), own=True)
    yield Result('queue: size in the end', 'MB', _values(pairs, lambda run: run.size_after))


def _first_tps(run):
    return sum(run.tps_series[:EDGE]) / EDGE


def _persistence(run):
    return sum(run.tps_series[-EDGE:]) / EDGE / _first_tps(run)


def _held_tps(run):
    end = run.hold[1]
    return sum(run.tps_series[end - EDGE:end]) / EDGE / _first_tps(run)


def _recovery(run):
    """Seconds from the snapshot's end to the first of two in a row that are fast enough."""
    enough = [tps >= BACK * _first_tps(run) for tps in run.tps_series[run.hold[1]:]]
    good = [second for second, pair in enumerate(zip(enough, enough[1:]), 1) if all(pair)]
    return good[0] if good else len(enough)


# ---- common -----------------------------------------------------------------------------------------------------------------

def _check_sound(db, am, table):
    """What has been measured must have left the table and its indexes sound."""
    db.use(am)
    if am == 'inplace':
        problems = db.rows('SELECT * FROM public.inplace_check(%s::regclass) LIMIT 3', table)
        if problems:
            raise AssertionError(f'inplace_check of {table}: {problems}')
    db.execute('CREATE EXTENSION IF NOT EXISTS amcheck SCHEMA public')
    db.execute('SELECT public.bt_index_check(indexrelid, true) FROM pg_index WHERE indrelid = %s::regclass', table)


def _pick(pairs, index):
    return tuple(tuple(pair[am][index] for am in AMS) for pair in pairs)


def _values(pairs, function):
    return tuple(tuple(function(runs[am]) for am in AMS) for runs in pairs)


def _plots(runs, hold):
    return [report.plot('Transactions per second', 'TPS', {am: runs[am].tps_points() for am in AMS}, [hold]),
            report.plot('Size of the table with indexes and undo', 'MB', {am: runs[am].size_points() for am in AMS}, [hold])]
