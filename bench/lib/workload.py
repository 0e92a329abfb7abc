"""pgbench workloads that run the same on both access methods, and what is measured while one runs."""
import os
import re
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from .db import AMS, Database

CLIENTS = 8
JOBS = max(2, min(CLIENTS, len(os.sched_getaffinity(0)) // 2))      # pgbench's threads: no client waits for another's
NEVER = (0, 0)
COUNTERS = 1000
INDEXED = 100_000
WAITING = 1000              # entries of the queue at first; each transaction adds one and takes one
PROGRESS = re.compile(r'progress: ([\d.]+) s, ([\d.]+) tps')
TRANSACTIONS = re.compile(r'number of transactions actually processed: (\d+)')
TPS = re.compile(r'tps = ([\d.]+)')


@dataclass(frozen=True)
class Workload:
    name: str
    table: str                  # the one that is updated: its size is followed
    pgbench: tuple


def _scripted(name, table, script, *options):
    """A script of this folder."""
    return Workload(name, table, ('--protocol=prepared', *options, f'--file={Path(__file__).parent / script}'))


SIMPLE_UPDATE = Workload('simple update', 'pgbench_accounts', ('--builtin=simple-update', '--protocol=prepared'))
HOT_ROWS = _scripted('hot rows', 'counters', 'hot_rows.sql', f'--define=counters={COUNTERS}')
DOCUMENTS = 200
LARGE = _scripted('documents', 'documents', 'documents.sql', f'--define=documents={DOCUMENTS}')
QUEUE = _scripted('queue', 'queue', 'queue.sql')
TPCB = Workload('TPC-B', 'pgbench_accounts', ('--builtin=tpcb-like', '--protocol=prepared'))
FOUR_INDEXES = _scripted('four indexes', 'indexed', 'four_indexes.sql', f'--define=rows={INDEXED}')
AUDITED = _scripted('audited', 'audited', 'audited.sql', f'--define=rows={INDEXED}')
UPSERT = _scripted('upsert', 'upserted', 'upsert.sql', f'--define=rows={INDEXED}')
LOOKUP = Workload('index lookup', 'pgbench_accounts', ('--builtin=select-only', '--protocol=prepared'))


@dataclass
class Run:
    """One run of a workload on one access method."""
    am: str
    seconds: int
    hold: tuple                 # (from, to): the seconds during which a snapshot is held
    tps: float = 0.0
    transactions: int = 0
    wal_bytes: int = 0
    cpu_seconds: float = 0.0
    tps_series: list = field(default_factory=list)      # one entry a second
    size_series: list = field(default_factory=list)     # the first one from before the run
    size_after: int = 0
    snapshot_read_seconds: float = 0.0                  # summing the table in a snapshot held throughout, afterwards

    def held_throughout(self):
        return self.hold == (0, self.seconds)

    def tps_points(self, start=0):
        """(second, TPS) pairs, for a plot in which the run begins at start."""
        return [(start + index + 1, tps) for index, tps in enumerate(self.tps_series)]

    def size_points(self, start=0):
        """(second, MB) pairs."""
        return [(start + index, size / 1e6) for index, size in enumerate(self.size_series)]


def join(runs):
    """Several runs, one after the other, as one."""
    seconds = sum(run.seconds for run in runs)
    transactions = sum(run.transactions for run in runs)
    return Run(runs[0].am, seconds, NEVER, transactions / seconds, transactions, sum(run.wal_bytes for run in runs),
               sum(run.cpu_seconds for run in runs), [tps for run in runs for tps in run.tps_series],
               [size for run in runs for size in run.size_series[:-1]], runs[-1].size_after)


def orders(rounds):
    """Which access method goes first takes turns, so that drift of the machine hits both alike."""
    return [AMS[::1 if number % 2 == 0 else -1] for number in range(rounds)]


def middle_half(seconds):
    """The part of a run during which a snapshot is held half of the time."""
    return (seconds // 4, seconds // 4 + seconds // 2)


def start_pgbench(am, *arguments, stdin=None):
    """On the tables in the access method's own schema."""
    options = f'-c search_path={am} -c default_table_access_method={am}'
    return subprocess.Popen(['pgbench', *arguments], env={**os.environ, 'PGOPTIONS': options}, text=True, stdin=stdin,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def load_accounts(db, am, scale):
    db.use(am)
    process = start_pgbench(am, '--initialize', '--init-steps=dtgp', '--quiet', f'--scale={scale}')
    output = process.communicate()[0]
    if process.returncode:
        raise RuntimeError(f'pgbench failed:\n{output}')
    db.execute('VACUUM ANALYZE pgbench_accounts')


def load_table(db, am, name, columns, rows, count, indexed='', options=''):
    """A new table with rows made of i from 1 to count, and an index on each letter of indexed."""
    db.use(am)
    db.execute(f'DROP TABLE IF EXISTS {name}')
    db.execute(f'CREATE TABLE {name} ({columns}) {options}')
    db.execute(f'INSERT INTO {name} {rows} FROM generate_series(1, %s) i', count)
    for column in indexed:
        db.execute(f'CREATE INDEX ON {name} ({column})')
    db.execute(f'VACUUM ANALYZE {name}')


def load_documents(db, am):
    """jsonb of about 100 kB, 200 keys each."""
    load_table(db, am, 'documents', 'id int PRIMARY KEY, doc jsonb',
               "SELECT i, (SELECT jsonb_object_agg('key' || k, (SELECT string_agg('word' || (i * 31 + k * 7 + w * w) %% 997, ' ') "
               'FROM generate_series(1, 60) w)) FROM generate_series(1, 200) k)', DOCUMENTS)


def load_counters(db, am):
    load_table(db, am, 'counters', 'id int PRIMARY KEY, n bigint NOT NULL', 'SELECT i, 0', COUNTERS)


def load_indexed(db, am):
    load_table(db, am, 'indexed', 'id int PRIMARY KEY, a int, b int, c text, n bigint NOT NULL',
               'SELECT i, i * 7 %% 1000, i * 13 %% 1000, md5(i::text), 0', INDEXED, 'abc', 'WITH (fillfactor = 90)')


def load_upserted(db, am):
    load_table(db, am, 'upserted', 'id int PRIMARY KEY, n bigint NOT NULL, at timestamptz NOT NULL', 'SELECT i, 0, now()', INDEXED,
               options='WITH (fillfactor = 90)')


def load_audited(db, am):
    """Each update inserts a row into a log."""
    load_table(db, am, 'audited', 'id int PRIMARY KEY, a int, c text, n bigint NOT NULL',
               'SELECT i, i * 7 %% 1000, md5(i::text), 0', INDEXED)
    db.execute('DROP TABLE IF EXISTS audit_log')
    db.execute('CREATE TABLE audit_log (id int, before bigint, after bigint, at timestamptz DEFAULT now())')
    db.execute(f"""CREATE OR REPLACE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO {am}.audit_log VALUES (NEW.id, OLD.n, NEW.n);
        RETURN NULL; END $$""")
    db.execute('CREATE TRIGGER audit AFTER UPDATE ON audited FOR EACH ROW EXECUTE FUNCTION audit()')


def load_queue(db, am):
    load_table(db, am, 'queue', 'id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload text NOT NULL',
               '(payload) SELECT md5(i::text)', WAITING)


class Snapshot:
    """A transaction that keeps seeing what was there when it began, as a long report or a forgotten session does."""

    def __init__(self, am):
        self.db = Database()
        self.db.use(am)
        self.db.execute('BEGIN ISOLATION LEVEL REPEATABLE READ')
        self.db.execute('SELECT pg_current_snapshot()')

    def contents(self, table):
        column = {'counters': 'n', 'queue': 'id'}.get(table, 'abalance')
        return self.db.rows(f'SELECT count(*), sum({column}) FROM {table}')

    def release(self):
        self.db.close()


class Holder:
    """Holds a snapshot from one second of a run to another; one that is held throughout is read again at the end."""

    def __init__(self, run, table):
        self.run, self.table, self.snapshot, self.before = run, table, None, None
        if run.held_throughout():
            self.snapshot = Snapshot(run.am)
            self.before = self.snapshot.contents(table)

    def tick(self, second):
        begin, end = self.run.hold
        if begin <= second < end and not self.snapshot:
            self.snapshot = Snapshot(self.run.am)
        elif second >= end and self.snapshot and not self.run.held_throughout():
            self.snapshot = self.snapshot.release()

    def finish(self):
        if self.run.held_throughout():
            begin = time.perf_counter()
            if self.snapshot.contents(self.table) != self.before:
                raise AssertionError(f'{self.run.am}: what a snapshot sees of {self.table} changed while it was held')
            self.run.snapshot_read_seconds = time.perf_counter() - begin
        if self.snapshot:
            self.snapshot.release()


def measure(db, workload, am, seconds, hold=NEVER, seed=1, tick=lambda second, tps: None):
    """Runs a workload and follows it; tick is called every second.  The WAL and the processor time of an autovacuum that it
    has started are its own."""
    db.use(am)
    db.autovacuum_only(am)
    run = Run(am, seconds, hold, size_series=[db.full_size(workload.table)])
    holder = Holder(run, workload.table)
    wal, cpu = db.wal_position(), db.server_cpu_seconds()
    process = start_pgbench(am, f'--client={CLIENTS}', f'--jobs={JOBS}', '--no-vacuum', f'--time={seconds}', '--progress=1',
                            f'--random-seed={seed}', *workload.pgbench)
    output = ''
    for line in process.stdout:
        progress = PROGRESS.match(line)
        if not progress:
            output += line
            continue
        second, tps = float(progress[1]), float(progress[2])
        run.tps_series.append(tps)
        run.size_series.append(db.full_size(workload.table))
        holder.tick(second)
        tick(second, tps)
    if process.wait():
        raise RuntimeError(f'pgbench failed:\n{output}')
    run.tps, run.transactions = float(TPS.search(output)[1]), int(TRANSACTIONS.search(output)[1])
    db.wait_for_autovacuum()
    run.wal_bytes = db.wal_position() - wal
    run.cpu_seconds = db.server_cpu_seconds() - cpu
    run.size_after = db.full_size(workload.table)
    holder.finish()
    return run
