#!/usr/bin/python3
"""Random statements on a heap table and on a table of the access method under test: both must behave alike."""
import argparse
import collections
import os
import random
import shutil
import signal
import sys
import tempfile
import time

import psycopg2

import statements
import tables
from audit import Auditor
from lockstep import (Difference, IDLE, IN_ERROR, Link, Monitor, OneSided, SCHEMA, Session, SIDES, Stmt, return_values_as_text,
                      with_pbtree)
from transactions import Generator

FEATURES = ['savepoints', 'cursors', 'current_of', 'locks', 'plpgsql', 'fk', 'toast', 'special', 'truncate', 'vacuum', 'ddl',
            'rewrite', 'copy', 'self_join', 'on_conflict', 'merge', 'triggers', 'deferred', 'partition',
            'check', 'temp', 'twophase', 'tid', 'parallel', 'serializable', 'exclusion', 'derived', 'views', 'matview',
            'passing']
NEEDS = {'triggers': 'triggered', 'partition': 'parted', 'matview': 'narrow'}      # features and their tables
AUDIT_EVERY = 1000
QUIET_EVERY = 2000      # steps between moments without open transactions
HISTORY = 40


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--socket', default='/tmp', help='socket directory or host of the server')
    parser.add_argument('--port', default='5432')
    parser.add_argument('--dbname', default='postgres')
    parser.add_argument('--user', default='postgres')
    parser.add_argument('--statements', type=int, default=200000)
    parser.add_argument('--seed', type=int, default=None)
    parser.add_argument('--time-limit', type=float, default=None, help='seconds')
    parser.add_argument('--sessions', type=int, default=4)
    parser.add_argument('--am', default='inplace', help='access method under test')
    parser.add_argument('--skip', default='', help='features to leave out, of: ' + ', '.join(FEATURES))
    parser.add_argument('--only', default=None, help='features to use, instead of all')
    parser.add_argument('--tables', default=None, help='only these tables')
    parser.add_argument('--log', default=None, help='write all statements and outcomes to this file')
    parser.add_argument('--check-from', type=int, default=None, metavar='STEP',
                        help='from this step on, inplace_check() all tables after every step')
    parser.add_argument('--pbtree', action='store_true', help='B-tree indexes of the side under test are of pbtree')
    parser.add_argument('--audit-every', type=int, default=AUDIT_EVERY)
    return parser.parse_args()


class Run:
    def __init__(self, options):
        self.options = options
        self.r = random.Random(options.seed)
        names = FEATURES if options.only is None else options.only.split(',')
        self.features = set(names) - set(options.skip.split(','))
        self.tables = tables.make_tables(self.features)
        if options.tables:
            self.tables = [t for t in self.tables if t.name in options.tables.split(',')]
        names = {t.name for t in self.tables}
        self.features -= {feature for feature, table in NEEDS.items() if table not in names}
        self.dsn = 'host=%s port=%s dbname=%s user=%s' % (options.socket, options.port, options.dbname, options.user)
        self.done, self.step, self.quiet, self.sessions = 0, 0, False, []
        self.history = collections.deque(maxlen=HISTORY)
        self.log = open(options.log, 'w') if options.log else None
        self.stats = collections.Counter()
        Link.pbtree = options.pbtree

    def prepare(self):
        conn = psycopg2.connect(self.dsn)
        conn.autocommit = True
        cursor = conn.cursor()
        cursor.execute('SELECT 1 FROM pg_am WHERE amname = %s', (self.options.am,))
        if cursor.fetchone() is None:
            cursor.execute('CREATE EXTENSION ' + self.options.am)
        if self.options.pbtree:
            cursor.execute('CREATE EXTENSION IF NOT EXISTS pbtree')
        self.look_at_server(conn, cursor)
        for side in SIDES:
            cursor.execute('SET default_table_access_method = %s' % (self.options.am if side == 'test' else 'heap'))
            cursor.execute('DROP SCHEMA IF EXISTS %s CASCADE; CREATE SCHEMA %s; SET search_path = %s' % (
                (SCHEMA[side],) * 3))
            for table in self.tables:
                change = with_pbtree if self.options.pbtree and side == 'test' else str
                if not table.local:
                    cursor.execute(change(table.create()))
                if table.after:
                    cursor.execute(change(table.after))
                if self.options.pbtree and not table.local and table.kind != 'VIEW':
                    cursor.execute(change(table.create_indexes()))
            if 'matview' in self.features:
                cursor.execute(tables.SUMMARY_SETUP)
        conn.close()

    def look_at_server(self, conn, cursor):
        cursor.execute('SHOW max_prepared_transactions')
        if cursor.fetchone()[0] == '0':
            self.features.discard('twophase')
        # heap's own faults there, which later minor releases do not have: locks of prepared transactions are lost, and so are updates
        # of a row that MERGE waited for, if it was updated twice
        if 170000 <= conn.server_version < 170008:
            self.features -= {'twophase', 'merge'}
        cursor.execute("SELECT gid FROM pg_prepared_xacts WHERE starts_with(gid, 'diff_') AND database = current_database()")
        for (gid,) in cursor.fetchall():
            cursor.execute("ROLLBACK PREPARED '%s'" % gid)
        statements.MERGE['in any isolation'] = self.merge_refuses(cursor)
        statements.DO_SELECT['is there'] = conn.server_version >= 190000
        if conn.server_version >= 160000:
            statements.MODES['parallel'] = statements.MODES['parallel'].replace('force_parallel_mode',
                                                                                'debug_parallel_query')

    def merge_refuses(self, cursor):
        """Does heap refuse MERGE in REPEATABLE READ where another transaction has changed the row?"""
        cursor.execute('DROP TABLE IF EXISTS merge_probe; CREATE TABLE merge_probe USING heap AS SELECT 1 a, 1 b')
        other = psycopg2.connect(self.dsn)
        other.set_session(isolation_level='REPEATABLE READ')
        with other.cursor() as merging:
            merging.execute('SELECT FROM merge_probe')
            cursor.execute('UPDATE merge_probe SET b = 2')
            try:
                merging.execute('MERGE INTO merge_probe USING (SELECT 1 c) s ON a = c WHEN MATCHED THEN UPDATE SET b = 3')
                refuses = False
            except psycopg2.errors.SerializationFailure:
                refuses = True
        other.close()
        cursor.execute('DROP TABLE merge_probe')
        return refuses

    def connect(self, scratch):
        self.monitor = Monitor(self.dsn)
        self.sessions = [Session(i, self.dsn, self.options.am, self.monitor, self.tables)
                         for i in range(self.options.sessions)]
        self.auditor = Auditor(self.dsn, self.options.am, self.tables, self.features)
        for session in self.sessions:
            session.features = self.features
            session.peers = self.sessions
        self.generator = Generator(self.r, self.tables, self.features, self.sessions, scratch)

    def execute(self, session, stmt, patient=False):
        self.done += 1
        entry = [self.step, session.number, stmt.sql, 'in progress']
        self.history.append(entry)
        session.entry = entry
        try:
            ended = session.start(stmt, patient)
        except OneSided:
            ended = self.unblock(session)
        entry[3] = session.links[0].outcome.brief() if ended else 'waits'
        self.note(entry)
        if stmt.gid and session.links[0].outcome.command == 'PREPARE TRANSACTION':
            if stmt.commit:
                return self.execute(session, Stmt("COMMIT PREPARED '%s'" % stmt.gid))
            self.generator.prepared.append(stmt.gid)
        if not ended:
            self.stats['waits'] += 1
        elif session.state != IDLE and session.state != IN_ERROR and not stmt.sql.startswith('ROLLBACK TO'):
            return
        for other in self.sessions:
            if other.waiting:
                self.resume(other)

    def resume(self, other):
        try:
            done = other.resume()
        except OneSided:
            done = self.unblock(other)
        if done:
            entry = [self.step, other.number, '(resumed) ' + other.entry[2], other.links[0].outcome.brief()]
            self.history.append(entry)
            self.note(entry)

    def unblock(self, waiter):
        """Heap may wait longer: in REPEATABLE READ for the lockers of a row that has changed, so that it will be refused
        in any case; for a subtransaction that committed into another one, until the whole transaction ends, depending on
        which one made the row's last version.  Then all others have to roll back.
        """
        others = [s for s in self.sessions if s is not waiter and s.state != IDLE]
        if waiter.isolation == 'rc' and not any(s.nested for s in others):
            raise
        for session in others:
            session.start(Stmt('ROLLBACK'), False)
            session.reset()
        idle = next(s for s in self.sessions if s is not waiter)
        while self.generator.prepared:
            idle.start(self.generator.finish_prepared(), False)
        return waiter.resume()

    def note(self, entry):
        outcome = entry[3]
        self.stats['errors ' + outcome[6:11] if outcome.startswith('ERROR') else 'ok'] += 1
        if self.log:
            self.log.write('%d [%d] %s\n    %s\n' % tuple(entry))
            self.log.flush()

    def waiting(self):
        return any(s.waiting for s in self.sessions)

    def one_step(self):
        self.step += 1
        session = self.r.choice([s for s in self.sessions if not s.waiting])
        if self.quiet:
            session = self.next_open() or session
            if session.state == IDLE and self.generator.prepared:
                return self.execute(session, self.generator.finish_prepared())
            if session.state == IDLE:
                self.quiet = False
                return self.definitions(session)
            return self.execute(session, self.generator.commit(session) if self.r.random() < 0.7 else Stmt('ROLLBACK'))
        if self.waiting() and session.kind != 'read':
            session.left -= 2
        stmt = self.generator.next(session)
        patient = stmt.patient and not self.waiting() and self.r.random() < 0.95
        self.execute(session, stmt, patient)

    def next_open(self):
        """Some session that still is in a transaction, not waiting."""
        for session in self.sessions:
            if not session.waiting and session.state != IDLE:
                return session
        return None

    def definitions(self, session):
        """No transaction is open: change definitions."""
        self.auditor.run()
        if 'triggers' in self.features:
            self.execute(session, Stmt('TRUNCATE trigger_log'))
        for _ in range(self.r.randint(2, 6) if 'ddl' in self.features else 0):
            stmt = self.generator.definition_change()
            if stmt is not None:
                stmt.slow = True
                self.execute(session, stmt)
        for other in self.sessions:
            other.reset()

    def loop(self):
        started = time.monotonic()
        while self.done < self.options.statements:
            self.one_step()
            if self.options.check_from is not None and self.step >= self.options.check_from:
                self.auditor.check_all()
            if self.step % self.options.audit_every == 0:
                self.auditor.run()
            if self.step % QUIET_EVERY == 0:
                self.quiet = True
            if self.options.time_limit and time.monotonic() - started > self.options.time_limit:
                break
        self.quiet = True
        while self.next_open() or self.generator.prepared:
            self.step += 1
            self.one_step()
        self.auditor.run()

    def report(self, difference):
        print('\nlast statements (step, session, statement, outcome on heap):')
        for entry in self.history:
            print('%d [%d] %s\n    %s' % (entry[0], entry[1], entry[2][:3000], entry[3][:1500]))
        print('\noutcomes of the last statement of each session:')
        for session in self.sessions:
            for link in session.links:
                outcome = 'no answer yet' if link.outcome is None else link.outcome.brief()
                print('[%d] %s (pid %d): %s' % (session.number, link.side, link.pid, outcome[:3000]))
        print('\nDIFFERENCE at step %d, statement %d, seed %d: %s' % (self.step, self.done, self.options.seed, difference))


def give_up(*_):
    raise Difference('terminated by a signal')


def main():
    options = parse_options()
    signal.signal(signal.SIGTERM, give_up)
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1000000)
    print('seed %d' % options.seed, flush=True)
    return_values_as_text()
    run = Run(options)
    scratch = tempfile.mkdtemp(prefix='diff_')
    try:
        os.chmod(scratch, 0o755)
        run.prepare()
        run.connect(scratch)
        run.loop()
    except Difference as difference:
        run.report(difference)
        return 1
    finally:
        shutil.rmtree(scratch)
    run.stats['refused on one side'] = sum(session.refusals for session in run.sessions)
    print(', '.join('%s: %d' % item for item in sorted(run.stats.items())))
    print('%d statements, 0 differences, seed %d' % (run.done, options.seed))
    return 0


if __name__ == '__main__':
    sys.exit(main())
