"""Concurrent updates, with and without a snapshot that is held meanwhile."""
from lib import report
from lib.db import AMS
from lib.result import Bar, Result
from lib.workload import (AUDITED, FOUR_INDEXES, HOT_ROWS, NEVER, SIMPLE_UPDATE, TPCB, UPSERT, Snapshot, join, load_accounts,
                          load_audited, load_counters, load_indexed, load_upserted, measure, middle_half, orders)


TURNS = 48      # of each side
NAPTIME = 15    # seconds, of autovacuum; turns are short
TPS_GOAL, CPU_GOAL = Bar('>=', 1.05), Bar('<=', 0.95)
EDGE = 5        # seconds at the begin and at the end of a hold that are compared


def throughput(context):
    yield from _turns_of(context, 'simple-update', SIMPLE_UPDATE, lambda am: load_accounts(context.db, am, context.scale), TPS_GOAL, CPU_GOAL)


def throughput_held(context):
    """Each round starts from newly loaded tables: space that an earlier hold left behind would hide what one costs."""
    what = 'simple-update, snapshot held half of the time'
    seconds = context.seconds * 2
    hold = middle_half(seconds)
    pairs = _in_turns(context, what, SIMPLE_UPDATE, seconds, hold, lambda am: load_accounts(context.db, am, context.scale))
    yield from _throughput(context, what, pairs, hold)


def throughput_held_longer(context):
    """100,000 rows, so that each is updated many times while the snapshot, one for both, is held."""
    what = 'simple-update of 100,000 rows, snapshot held half of the time'
    turns = 4 if context.quick else TURNS
    hold = middle_half(turns)
    for am in AMS:
        load_accounts(context.db, am, 1)
    context.db.execute('CHECKPOINT')
    seconds = 2 * context.seconds
    pairs = _short_turns(context, what, turns, hold, SIMPLE_UPDATE, seconds)
    yield from _throughput(context, what, pairs, tuple(turn * seconds for turn in hold), Bar('>=', 1.25), Bar('<=', 0.85))


def tpcb(context):
    """A checkpoint comes first, so that WAL has page images."""
    yield from _turns_of(context, 'TPC-B', TPCB, lambda am: load_accounts(context.db, am, context.scale), TPS_GOAL, CPU_GOAL)


def four_indexes(context):
    """The column that changes is in none of them."""
    yield from _turns_of(context, 'update of a table with four indexes', FOUR_INDEXES, lambda am: load_indexed(context.db, am),
                         cpu_bar=CPU_GOAL)


def upsert(context):
    """INSERT ... ON CONFLICT DO UPDATE of rows that are there: each is found, locked and changed."""
    yield from _turns_of(context, 'upsert', UPSERT, lambda am: load_upserted(context.db, am))


def audited(context):
    """AFTER ROW trigger that inserts into a log."""
    what = 'update of an audited table'
    before = {}

    def load(am):
        load_audited(context.db, am)
        before[am] = context.db.full_size('audited')

    results = list(_turns_of(context, what, AUDITED, load, Bar('>=', 1.0)))
    growth = {}
    for am in AMS:
        context.db.use(am)
        growth[am] = (context.db.full_size('audited') - before[am]) / context.db.value(
            'SELECT count(*) FROM audit_log')
    yield from results
    yield Result(f'{what}: growth per update', 'bytes', (tuple(growth[am] for am in AMS),), Bar('<=', 0.3))


def _turns_of(context, what, workload, load, tps_bar=None, cpu_bar=None):
    for am in AMS:
        context.progress.step(f'{what}, loading: {am}')
        load(am)
    context.db.execute('CHECKPOINT')
    with context.db.naptime(NAPTIME):
        pairs = _short_turns(context, what, 2 * context.rounds, NEVER, workload, context.seconds // 2)
    yield from _throughput(context, what, pairs, NEVER, tps_bar, cpu_bar)


def _short_turns(context, what, turns, hold, workload, seconds):
    """One round of many short turns: no machine stays the same for minutes.  During some of them a snapshot is held."""
    runs = {am: [] for am in AMS}
    snapshot = None
    for number, order in enumerate(orders(turns)):
        if number in hold and hold != NEVER:
            snapshot = snapshot.release() if snapshot else Snapshot('heap')
        for am in order:
            context.progress.step(f'{what}: {am}, turn {number + 1}')
            runs[am].append(measure(context.db, workload, am, seconds, NEVER, context.seed + number,
                                    context.show_tps))
    return [{am: join(runs[am]) for am in AMS}]


def _throughput(context, what, pairs, hold, tps_bar=None, cpu_bar=None):
    yield Result(f'{what}: TPS', 'TPS', _values(pairs, lambda run: run.tps), tps_bar)
    yield Result(f'{what}: WAL per transaction', 'bytes', _values(pairs, lambda run: run.wal_bytes / run.transactions))
    yield Result(f'{what}: server CPU per transaction', 'us',
                 _values(pairs, lambda run: 1e6 * run.cpu_seconds / run.transactions), cpu_bar)
    context.add_plots(what, _plots(pairs, hold))


def growth(context):
    """Each round starts from newly loaded tables: free space that an earlier one left would hide growth."""
    yield from _growth(context, 'simple-update', SIMPLE_UPDATE,
                       lambda am: load_accounts(context.db, am, context.scale))


def hot_rows(context):
    pairs = yield from _growth(context, 'hot rows', HOT_ROWS, lambda am: load_counters(context.db, am))
    yield Result('hot rows, snapshot held: TPS', 'TPS', _values(pairs, lambda run: run.tps))
    yield Result(f'hot rows, snapshot held: TPS of the last {EDGE} s / first {EDGE} s', '', _values(pairs, _persistence),
                 Bar('>=', 0.90), own=True)
    yield Result('hot rows: summing them in the held snapshot, at its end', 'ms',
                 _values(pairs, lambda run: 1000 * run.snapshot_read_seconds))


def _growth(context, what, workload, load):
    seconds = max(15, context.seconds * 2)
    pairs = _in_turns(context, f'{what}, snapshot held', workload, seconds, (0, seconds), load)
    yield Result(f'{what}, snapshot held: growth per update', 'bytes', _values(pairs, _growth_per_update),
                 Bar('<=', 0.45))
    context.add_plots(f'{what}, snapshot held throughout', _plots(pairs, (0, seconds)))
    return pairs


def _in_turns(context, what, workload, seconds, hold, load=None):
    pairs = []
    for number, order in enumerate(orders(context.rounds)):
        runs = {}
        for am in order:
            context.progress.step(f'{what}: {am}, round {number + 1}')
            if load:
                load(am)
                context.db.execute('CHECKPOINT')
            runs[am] = measure(context.db, workload, am, seconds, hold, context.seed + number, context.show_tps)
        pairs.append(runs)
    return pairs


def _values(pairs, function):
    return tuple(tuple(function(runs[am]) for am in AMS) for runs in pairs)


def _persistence(run):
    return sum(run.tps_series[-EDGE:]) / sum(run.tps_series[:EDGE])


def _growth_per_update(run):
    return (run.size_after - run.size_series[0]) / run.transactions


def _plots(pairs, hold):
    """The first round's course."""
    runs = pairs[0]
    holds = [] if hold == NEVER else [hold]
    return [report.plot('Transactions per second', 'TPS', {am: runs[am].tps_points() for am in AMS}, holds),
            report.plot('Size of the table with indexes and undo', 'MB', {am: runs[am].size_points() for am in AMS},
                        holds)]
