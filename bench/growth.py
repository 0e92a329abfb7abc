#!/usr/bin/env python3
"""Does a table grow, or become dear to read, where heap's does not?

    ./run.sh bench growth [options] [workload ...]

Runs the workloads of growth.toml on three systems at once: heap with btree, inplace with pbtree, inplace with btree; autovacuum looks around
each second.  A run has 9 steps.  Modes: none; held: a snapshot is held in steps 4 to 6; 2pc: a prepared transaction is; other: a transaction of
another database has a snapshot and an xid from the first step to the last.  Prints a line for each system: sizes in kB at the start, in the middle, at
the end, and after a VACUUM by hand, in brackets the end against heap's; and the buffers of queries at the start, the end, and after VACUUM.  Flags, all
against heap in the same run:

    GROWS-x   x (table, index, a query's buffers) has grown by more than a tenth in the last third, and heap's has not
    BIG-x     the table or the indexes are more than 1.5 times heap's at the end
    COST-q    query q reads more than 1.5 times heap's buffers at the end; COST-q!: after VACUUM, too
    NOVAC     autovacuum came to heap's table only

Not flagged are growth of less than 16 kB, other differences in size of less than 64 kB, and less than 12 buffers.  With --fail the exit
status is 1 if there is a flag that --fail does not name.

--short is what the suite growth runs: the few workloads that have the modes they are worth in "short", with a line "ok" or "FAIL" for each.  Only sizes
can fail there, GROWS (from 64 kB on) and BIG.
"""
import argparse
import json
import random
import re
import sys
import threading
import time
import tomllib
from pathlib import Path

import psycopg2

from lib.db import Database

DATABASE = 'growth'
STEPS, HELD = 9, range(3, 6)
SYSTEMS = {'heap': ('heap', 'btree'), 'pbtree': ('inplace', 'pbtree'), 'btree': ('inplace', 'btree')}
MODES = ('none', 'held', '2pc', 'other')
SIZES = ('table', 'index')
FLOOR, FLOOR_GROWTH, FLOOR_BUFFERS = 64, 16, 12         # kB, and of queries buffers
SLOPE = 1.1
STANDARD = """CREATE TABLE t (id int PRIMARY KEY, k int, n int NOT NULL DEFAULT 0, pad text) {options};
INSERT INTO t SELECT g, g * 7919 % {rows}, 0, repeat('x', {width}) FROM generate_series(1, {rows}) g;
CREATE INDEX t_k ON t USING {index} (k); CREATE SEQUENCE s"""
DEFAULTS = {'op': '', 'top': '', 'more': '', 'setup': STANDARD, 'rows': 2000, 'width': 60, 'options': '', 'ops': 45000, 'batch': 500, 'clients': 2,
            'reconnect': False, 'tables': ['t'], 'key': 'k', 'session': '', 'temporary': False, 'short': []}
PROCEDURE = """CREATE PROCEDURE op(client int, step int, n int) LANGUAGE plpgsql AS $op$
#variable_conflict use_column
DECLARE r int; x int; q record; c refcursor;
BEGIN
    PERFORM setseed((client * 7919 + step::bigint * 104729) %% 9973 / 9973.0);
    COMMIT;
    FOR i IN 1 .. n LOOP
        r := 1 + floor(random() * %d)::int;
        %s
        COMMIT;
    END LOOP;
END $op$"""


def fill(text, values):
    """{name} becomes the value; other braces stay."""
    return re.sub(r'\{(\w+)\}', lambda found: str(values.get(found[1], found[0])), text)


def statements(script):
    """Those of a script: semicolons between $$ do not end one."""
    found, quoted = [''], False
    for part in script.split('$$'):
        pieces = [part] if quoted else part.split(';')
        found[-1] += ('$$' if quoted else '') + pieces[0] + ('$$' if quoted else '')
        found += pieces[1:]
        quoted = not quoted
    return [statement for statement in found if statement.strip()]


class Session(Database):
    """A connection to a database, whose tables are in the system's schema."""

    def __init__(self, database=DATABASE, schema='public', settings=''):
        self.given = {'dbname': database, 'options': f'-c search_path={schema},public'}
        self.settings = settings
        self.connect()

    def connect(self):
        super().__init__(**self.given)
        for setting in statements(self.settings):
            self.execute(setting)

    def reconnect(self):
        self.close()
        self.connect()


def buffers(session, sql):
    """What the query reads, once it has been run: what a first run cleans, or marks, does not count."""
    session.execute(sql)
    plan = session.value('EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ' + sql)[0]['Plan']
    return sum(plan[f'{where} {what} Blocks'] for where in ('Shared', 'Local') for what in ('Hit', 'Read'))


def queries(session, key):
    """The buffers of typical queries by the indexed column, and of a scan."""
    rows = session.value(f'SELECT count({key}) FROM t')
    if rows == 0:
        return {}
    at = f'SELECT {key} FROM t WHERE {key} IS NOT NULL ORDER BY 1 OFFSET %s LIMIT 1'
    session.execute('BEGIN')
    try:
        low, high = (session.value(at, n) for n in (rows // 2, min(rows - 1, rows // 2 + min(100, rows // 10))))
        quote = session.cursor.mogrify
        low, high = (quote('%s', (value,)).decode() for value in (low, high))
        session.execute('SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off')
        found = {'lookup': buffers(session, f'SELECT * FROM t WHERE {key} = {low}'),
                 'first': buffers(session, f'SELECT * FROM t ORDER BY {key} LIMIT 10'),
                 'last': buffers(session, f'SELECT * FROM t ORDER BY {key} DESC LIMIT 10'),
                 'range': buffers(session, f'SELECT count(*) FROM t WHERE {key} BETWEEN {low} AND {high}')}
        session.execute('SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off')
        found['seq'] = buffers(session, 'SELECT count(*) FROM t WHERE t IS NOT NULL')
        return found
    finally:
        session.execute('ROLLBACK')


class Run:
    """A workload in a mode, in a database of its own."""

    def __init__(self, name, work, mode, args):
        self.name, self.work, self.mode, self.args = name, work, mode, args
        self.sessions, self.samples, self.autovacuums = {}, {system: [] for system in SYSTEMS}, {}
        self.error = dict.fromkeys(SYSTEMS, '')
        self.holder = None

    def prepare(self):
        first = Session('postgres')
        first.execute(f'DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)')
        first.execute(f'CREATE DATABASE {DATABASE}')
        unique = first.connection.server_version >= 180000
        first.close()
        first = Session()
        first.execute('CREATE EXTENSION inplace; CREATE EXTENSION pbtree')
        for system, (am, index) in SYSTEMS.items():
            first.execute(f'CREATE SCHEMA {system}')
            settings = f'SET default_table_access_method = {am}; {self.work["session"]}'
            self.sessions[system] = [Session(DATABASE, system, settings) for _ in range(self.work['clients'])]
            session = self.sessions[system][0]
            setup = self.work['setup']
            if self.work['temporary']:
                setup = setup.replace('CREATE TABLE', 'CREATE TEMP TABLE')
            options = f'WITH ({self.work["options"]})' if self.work['options'] else ''
            values = {**self.work, 'index': index, 'unique': index if unique else 'btree', 'options': options}
            for statement in statements(fill(setup + ';' + self.work['more'], values)):
                session.execute(statement)
            if self.work['op']:
                session.execute(PROCEDURE % (self.work['rows'], fill(self.work['op'], values)))
            for table in self.work['tables']:
                session.execute(f'VACUUM ANALYZE {table}')
        first.close()

    def call(self, system, session, client, step, n):
        if self.work['reconnect']:
            session.reconnect()
        if self.work['op']:
            session.execute('CALL op(%s, %s, %s)', client, step, n)
            return
        chance = random.Random(client * 1000003 + step)
        for i in range(n):
            first = (client + 1) * 100000000 + step * 10000 + i * 100
            values = {'system': system, 'client': client, 'step': step, 'i': i, 'r': chance.randint(1, self.work['rows']), 'first': first,
                      'last': first + 99}
            for statement in statements(fill(self.work['top'], values)):
                session.execute(statement)

    def operate(self, system, client, step):
        """A client's part of a step."""
        session = self.sessions[system][client]
        left = max(1, int(self.work['ops'] * self.args.scale) // STEPS // self.work['clients'])
        for turn in range(-(-left // self.work['batch'])):
            try:
                self.call(system, session, client, step * 1000 + turn, min(left - turn * self.work['batch'], self.work['batch']))
            except psycopg2.Error as error:
                self.error[system] = str(error).partition('\n')[0]
                session.connect() if session.connection.closed else session.execute('ROLLBACK')

    def hold(self):
        if self.mode == '2pc':
            self.holder = Session()
            self.holder.execute("BEGIN; CREATE TABLE held (i int) USING heap; PREPARE TRANSACTION 'held'")
        elif self.mode != 'none':
            self.holder = Session('postgres' if self.mode == 'other' else DATABASE)
            self.holder.execute('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class')
            if self.mode == 'other':
                self.holder.execute('SELECT pg_current_xact_id()')

    def release(self):
        if self.holder:
            self.holder.execute("COMMIT PREPARED 'held'" if self.mode == '2pc' else 'COMMIT')
            self.holder.close()
            self.holder = None

    def sample(self):
        for system, sessions in self.sessions.items():
            tables = self.work['tables']
            table, index = sessions[0].rows("""SELECT sum(pg_table_size(o)) / 1024, sum(pg_indexes_size(o)) / 1024
                FROM (SELECT t::regclass AS o FROM unnest(%s) t) x""", tables)[0]
            self.samples[system].append({'table': int(table), 'index': int(index), **queries(sessions[0], self.work['key'])})
            self.autovacuums[system] = sessions[0].value("""SELECT coalesce(sum(autovacuum_count), 0) FROM pg_stat_all_tables
                WHERE relid = ANY (SELECT t::regclass FROM unnest(%s) t)""", tables)

    def step(self, number):
        begin = time.monotonic()
        threads = [threading.Thread(target=self.operate, args=(system, client, number))
                   for system in SYSTEMS for client in range(self.work['clients'])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        time.sleep(max(0.2, begin + self.args.step_seconds - time.monotonic()))

    def go(self):
        try:
            self.prepare()
            self.sample()
            for number in range(STEPS):
                if number == (0 if self.mode == 'other' else HELD.start):
                    self.hold()
                if number == HELD.stop and self.mode != 'other':
                    self.release()
                self.step(number)
                self.sample()
            self.release()
            for system, sessions in self.sessions.items():
                for table in self.work['tables']:
                    sessions[0].execute(f'VACUUM {table}')
            self.sample()
        finally:
            self.release()
            for sessions in self.sessions.values():
                for session in sessions:
                    session.close()
        return {'workload': self.name, 'mode': self.mode, 'systems': {
            system: {'samples': self.samples[system], 'autovacuums': int(self.autovacuums[system]), 'error': self.error[system],
                     'flags': self.flags(system)} for system in SYSTEMS}}

    def grows(self, system, what):
        middle, end = (self.samples[system][i].get(what, 0) for i in (HELD.stop, STEPS))
        floor = FLOOR_BUFFERS if what not in SIZES else FLOOR if self.args.short else FLOOR_GROWTH
        return end > middle * SLOPE and end - middle >= floor

    def larger(self, system, what, when):
        mine, heaps = (self.samples[each][when].get(what, 0) for each in (system, 'heap'))
        return mine > heaps * self.args.factor and mine - heaps >= (FLOOR if what in SIZES else FLOOR_BUFFERS)

    def flags(self, system):
        found = []
        for what in self.samples[system][0] if system != 'heap' else ():
            if self.grows(system, what) and not self.grows('heap', what):
                found.append(f'GROWS-{what}')
            if self.larger(system, what, STEPS):
                found.append(f'BIG-{what}' if what in SIZES else f'COST-{what}' + ('!' if self.larger(system, what, STEPS + 1) else ''))
        if system != 'heap' and self.autovacuums['heap'] > 0 and self.autovacuums[system] == 0:
            found.append('NOVAC')
        return found


def failures(result):
    """What a short run does not forgive."""
    return [f'{system}: {what}' for system, found in result['systems'].items()
            for what in [flag for flag in found['flags'] if flag.partition('-')[2] in SIZES] + [found['error']] * bool(found['error'])]


def show_short(result):
    wrong = failures(result)
    sizes = ', '.join(f'{system} {samples[STEPS]["table"]} + {samples[STEPS]["index"]}'
                      for system, samples in ((system, found['samples']) for system, found in result['systems'].items()))
    print('FAIL' if wrong else 'ok', f'{result["workload"]}/{result["mode"]}', f'kB: {sizes}', *wrong, flush=True)
    if wrong:
        show(result)


def show(result):
    for system, found in result['systems'].items():
        start, middle, end, last = (found['samples'][i] for i in (0, STEPS // 2, STEPS, STEPS + 1))
        heap = result['systems']['heap']['samples'][STEPS]
        sizes = ' '.join(f'{what} {start[what]}/{middle[what]}/{end[what]}/{last[what]} ({end[what] / max(1, heap[what]):.2f})' for what in SIZES)
        costs = ' '.join(f'{what} {start[what]}/{end.get(what)}/{last.get(what)}' for what in start if what not in SIZES)
        print(f'{result["workload"]:24} {result["mode"]:5} {system:6} {sizes} {costs} autovacuum {found["autovacuums"]}',
              *found['flags'], *([f'({found["error"]})'] if found['error'] else []), flush=True)


def main():
    works = tomllib.loads(Path(__file__).with_suffix('.toml').read_text(encoding='utf-8'))
    parser = argparse.ArgumentParser(prog='./run.sh bench growth', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('workloads', nargs='*', metavar='workload', help='(all)')
    parser.add_argument('--modes', default='none,held', help='of none,held,2pc,other (%(default)s)')
    parser.add_argument('--scale', type=float, default=1, help='times as many operations')
    parser.add_argument('--step-seconds', type=float, default=1.5, help='a step takes at least so long, so that autovacuum can come (%(default)s)')
    parser.add_argument('--factor', type=float, default=1.5, help='so many times what heap has is too much (%(default)s)')
    parser.add_argument('--short', action='store_true', help='a few workloads, by sizes only')
    parser.add_argument('--list', action='store_true', help='the workloads')
    parser.add_argument('--fail', metavar='FLAGS', help='flags that are no failure, with commas: GROWS-seq,COST-range')
    parser.add_argument('--out', type=Path, default=Path('.'), help='folder for growth.json')
    args = parser.parse_args()
    if args.list:
        print(*works, sep='\n')
        return 0
    for name in args.workloads:
        if name not in works:
            parser.error(f'no workload {name}')
    modes = args.modes.split(',')
    if not set(modes) <= set(MODES):
        parser.error(f'modes are {", ".join(MODES)}')
    works = {name: {**DEFAULTS, **work} for name, work in works.items()}
    runs = [(name, mode) for mode in modes for name in args.workloads or works]
    if args.short:
        runs = [(name, mode) for name, work in works.items() for mode in work['short']]
    results = []
    for name, mode in runs:
        results.append(Run(name, works[name], mode, args).go())
        if args.short and failures(results[-1]):
            # autovacuum may come late once; what grows does so each time
            results[-1] = Run(name, works[name], mode, args).go()
        (show_short if args.short else show)(results[-1])
        (args.out / 'growth.json').write_text(json.dumps(results, indent=1), encoding='utf-8')
    if args.short:
        return 1 if any(map(failures, results)) else 0
    flagged = [(each['workload'], each['mode'], system, flag) for each in results for system, found in each['systems'].items() for flag in found['flags']]
    wrong = [each for each in results if any(found['error'] for found in each['systems'].values())]
    print(f'{len(results)} runs, {len(flagged)} flags, {len(wrong)} with errors')
    if args.fail is None:
        return 0
    allowed = args.fail.split(',')
    return 1 if wrong or any(flag.rstrip('!') not in allowed for *_, flag in flagged) else 0


if __name__ == '__main__':
    sys.exit(main())
