"""Pairs of connections that execute the same statement on the heap side and on the side under test.

Every step one session sends one statement to both sides and both answers are awaited.  A statement may also block on
another session's lock; then it has to block on both sides, and the session stays busy until a later step frees it.
"""
import collections
import re
import select
import time

import psycopg2
import psycopg2.extensions as ext

SIDES = ('heap', 'test')
SCHEMA = {'heap': 'diff_heap', 'test': 'diff_test'}
TICK = 0.004            # no answer after this many seconds: ask whether the session is blocked
HANG = 600              # neither an answer nor a lock wait for this long: a hang
LOCK_TIMEOUT = '15ms'   # of statements that must not wait for long
LONG_TIMEOUT = '3s'     # of those that also wait for what ends by itself: transactions of the other side's CREATE INDEX
LOOSE_ERRORS = {'23505', '23503', '40001', '55P03', '23514', '23P01', '44000', '27000', '21000', 'P0001', '54000',
                '23001'}    # from 18 on what a foreign key with RESTRICT says; 23503 before
IDLE, IN_TRANSACTION, IN_ERROR = (ext.TRANSACTION_STATUS_IDLE, ext.TRANSACTION_STATUS_INTRANS,
                                  ext.TRANSACTION_STATUS_INERROR)
SESSION_SETTINGS = ("SET search_path = %s; SET default_table_access_method = %s; SET lock_timeout = '" + LOCK_TIMEOUT +
                    "'; SET deadlock_timeout = '10min'; SET synchronous_commit = off; SET timezone = 'UTC';"
                    " SET max_parallel_workers_per_gather = 0; SET jit = off")


class Difference(Exception):
    """The two sides disagree."""


class OneSided(Difference):
    """One side waits for a lock and the other does not."""


def return_values_as_text():
    """Let psycopg2 hand out every value as the string that the server sent."""
    oids = [16, 17, 18, 19, 20, 21, 23, 25, 26, 114, 600, 603, 700, 701, 829, 869, 1000, 1007, 1009, 1042, 1043, 1082,
            1083, 1114, 1184, 1186, 1231, 1266, 1560, 1562, 1700, 2249, 2950, 3614, 3802, 3904, 3906]
    ext.register_type(ext.new_type(tuple(oids), 'RAW', lambda value, cursor: value))


class Stmt:
    """A statement and how its two outcomes compare.

    rows    'set': as a multiset; 'list': in order; 'count': only their number (the rest is in the cursor's buffer)
    steady  both sides visit rows in the same order, so that errors are equal to the letter
    patient it may wait for locks (only if steady)
    gid     PREPARE TRANSACTION: its name
    commit  COMMIT PREPARED follows at once
    slow    VACUUM and DDL, outside of transaction blocks
    In the text, {side} stands for the side's name and {am} for its access method.
    """
    def __init__(self, sql, rows='set', steady=False, cursor=None, last=False, patient=True, gid=None, commit=False,
                 slow=False):
        self.sql, self.rows, self.steady, self.cursor, self.last = sql, rows, steady, cursor, last
        self.patient, self.gid, self.commit, self.slow = steady and patient, gid, commit, slow


def normalise(text):
    """Without the schema, TIDs, and how long a row is, which has no alignment here.  Whether a changed row was deleted later
    makes no difference, either."""
    text = re.sub(r'diff_(heap|test)\b', 'diff', text or '')
    text = re.sub(r'references tuple \(\d+,\d+\)', 'references tuple', text)
    text = re.sub(r'(row is too big): size \d+, maximum size \d+', r'\1', text)
    return re.sub('due to concurrent (update|delete)', 'due to concurrent change', text)


def with_pbtree(sql):
    """The plain B-tree indexes that the text makes, but of pbtree."""
    sql = re.sub(r'(CREATE INDEX [^;]*?) USING btree', r'\1 USING pbtree', sql)
    return re.sub(r'(CREATE INDEX (?:CONCURRENTLY )?\w+ ON \w+) \(', r'\1 USING pbtree (', sql)


class Outcome:
    def __init__(self, link, error=None):
        cursor = link.cursor
        self.error = None
        self.rows, self.count, self.command = None, None, None
        if error is not None:
            diag = error.diag
            self.error = (error.pgcode, normalise(diag.message_primary), normalise(diag.message_detail))
        else:
            self.count, self.command = cursor.rowcount, cursor.statusmessage
            if cursor.description is not None:
                self.rows = cursor.fetchall()
        self.state = link.conn.info.transaction_status
        self.notices = [normalise(n) for n in link.conn.notices]
        link.conn.notices.clear()

    def brief(self):
        if self.error:
            return 'ERROR %s: %s (%s)' % self.error
        rows = '' if self.rows is None else ' ' + repr(self.rows[:30])[:1500]
        return '%s [%s]%s' % (self.command, self.count, rows)


def sort_key(row):
    return tuple((v is None, v or '') for v in row)


class Link:
    """One asynchronous connection."""
    pbtree = False      # on the side under test

    def __init__(self, dsn, side, am):
        self.side, self.am = side, am
        self.conn = psycopg2.connect(dsn, async_=True)
        self.busy = True
        self.outcome = None
        self.cursor = None
        self.conn.notices = collections.deque()     # a list would keep no more than 50
        while self.conn.poll() != ext.POLL_OK:
            select.select([self.conn], [], [], 0.1)
        self.pid = self.conn.info.backend_pid
        self.busy = False
        self.call(SESSION_SETTINGS % (SCHEMA[side], am))

    def send(self, sql):
        self.cursor = self.conn.cursor()
        self.busy, self.outcome = True, None
        if self.pbtree and self.side == 'test':
            sql = with_pbtree(sql)
        try:
            self.cursor.execute(sql.replace('{side}', self.side).replace('{am}', self.am))
        except psycopg2.Error as error:
            self.fail(error)

    def fail(self, error):
        if self.conn.closed or error.pgcode is None:
            raise Difference('%s side: connection lost: %s' % (self.side, error))
        self.busy, self.outcome = False, Outcome(self, error)

    def pump(self):
        """Read what has arrived."""
        try:
            state = self.conn.poll()
            while state == ext.POLL_WRITE:
                select.select([], [self.conn], [], 1)
                state = self.conn.poll()
            if state == ext.POLL_OK:
                self.busy, self.outcome = False, Outcome(self)
        except psycopg2.Error as error:
            self.fail(error)

    def call(self, sql):
        """Send and wait for the answer, whatever it takes."""
        self.send(sql)
        while self.busy:
            self.pump()
            if self.busy:
                select.select([self.conn], [], [], 1)
        return self.outcome


def pump_all(links, timeout):
    """Let the busy ones of links make progress; true when none is busy any more."""
    busy = [link for link in links if link.busy]
    if busy:
        ready = select.select([link.conn for link in busy], [], [], timeout)[0]
        for link in busy:
            if link.conn in ready:
                link.pump()
    return not any(link.busy for link in links)


class Monitor:
    """Tells whether a backend waits for a lock of one of our sessions of its side."""
    def __init__(self, dsn):
        self.conn = psycopg2.connect(dsn)
        self.conn.autocommit = True
        self.cursor = self.conn.cursor()
        self.pids = {side: [0] for side in SIDES}       # 0: prepared transactions

    def blocked(self, link):
        self.cursor.execute('SELECT pg_blocking_pids(%s)::int[] && %s', (link.pid, self.pids[link.side]))
        return self.cursor.fetchone()[0] in (True, 't')


class Session:
    """The two connections of one client, with what the generator has to remember about it."""
    def __init__(self, number, dsn, am, monitor, tables):
        self.number = number
        self.monitor = monitor
        self.links = [Link(dsn, side, am if side == 'test' else 'heap') for side in SIDES]
        for link in self.links:
            link.call('SET diff.session = %d' % number)
            for table in tables:
                if table.local:
                    link.call(table.create())
            monitor.pids[link.side].append(link.pid)
        self.peers = []             # all sessions
        self.waiting = None         # the Stmt that is blocked
        self.children = [table.name for table in tables if table.parent]
        self.own_parents = [table.name for table in tables if table.parent and table.parent[1] is table]
        self.refusals = 0           # transactions that only one side refused
        self.reset()

    def reset(self):
        """Forget the transaction."""
        self.savepoints, self.cursors, self.buffers = [], {}, {}
        self.mode, self.isolation, self.left, self.kind, self.tables = 'plain', 'rc', 0, None, None
        self.nested = False         # a subtransaction may have committed into another one

    @property
    def state(self):
        return self.links[0].outcome.state

    def start(self, stmt, patient):
        """Execute on both sides.  False: it blocks on both sides."""
        sql = 'SET lock_timeout = 0; ' + stmt.sql if patient else stmt.sql
        if stmt.slow:
            self.set_timeout(LONG_TIMEOUT)
        for link in self.links:
            link.send(sql)
        self.waiting = stmt
        if not self.settle(patient):
            return False
        self.waiting = None
        self.finish(stmt, patient)
        return True

    def settle(self, patient):
        """Wait until both sides have answered (True) or both are blocked (False, only when patient)."""
        deadline, verdicts = time.monotonic() + HANG, 0
        while not pump_all(self.links, TICK):
            blocked = [patient and link.busy and self.monitor.blocked(link) for link in self.links]
            if pump_all(self.links, 0):
                break
            states = [b or not link.busy for b, link in zip(blocked, self.links)]
            verdicts = verdicts + 1 if all(states) else 0
            if all(blocked) and verdicts >= 2:
                return False
            if verdicts >= 15:
                raise OneSided('blocked on one side only: ' + self.describe())
            if time.monotonic() > deadline:
                raise Difference('no answer for %d s: %s' % (HANG, self.describe()))
        return True

    def resume(self):
        """After another session's step: did the blocked statement finish?"""
        if self.waiting is None or not self.settle(True):
            return False
        stmt, self.waiting = self.waiting, None
        self.finish(stmt, True)
        return True

    def describe(self):
        return ', '.join('%s side %s' % (link.side, 'waits' if link.busy else 'answered ' + link.outcome.brief())
                         for link in self.links)

    def finish(self, stmt, patient):
        outcomes = [link.outcome for link in self.links]
        if self.depends_on_places(stmt, *outcomes):
            return self.abandon(stmt, outcomes)
        compare(self, stmt, outcomes)
        if stmt.slow or patient and self.state != IN_ERROR:
            self.set_timeout(LOCK_TIMEOUT)
        for link, outcome in zip(self.links, outcomes):
            link.outcome = outcome

    def depends_on_places(self, stmt, heap, test):
        """Heap itself would answer differently if rows, or locks, lay elsewhere."""
        if self.isolation == 'ser' and refused_apart(heap, test) or self.only_heap_queues(stmt, heap, test):
            return True
        if self.isolation != 'rc' and self.may_have_two_parents(stmt) and one_not_serializable(heap, test):
            return True
        if one_too_big(stmt, heap, test):
            return True
        return self.cascades_in_any_order(stmt) and one_without_parent(heap, test)

    def only_heap_queues(self, stmt, heap, test):
        """After ROLLBACK TO, heap cannot tell by a row's header that its lockers only share it: who wants to share it too
        queues behind those who do not, or does without the row.
        """
        if re.match(r'SELECT .* FOR (KEY )?SHARE', stmt.sql) is None or test.error:
            return False
        if heap.error:
            return heap.error[0] == '55P03'
        return 'SKIP LOCKED' in stmt.sql and heap.rows != test.rows and any(peer.waiting for peer in self.peers)

    def may_have_two_parents(self, stmt):
        """A transaction's snapshot can have two rows of one key: one that others have changed since, and one of its own.
        The check of a foreign key locks that which comes first in the index, by TID.
        """
        return any(re.match(r'(INSERT INTO|UPDATE|MERGE INTO|COPY) %s\b' % child, stmt.sql) for child in self.children)

    def cascades_in_any_order(self, stmt):
        """Rows of one statement refer to each other by keys that it changes.  Where a child comes before its parent, and was
        changed by this transaction before, its foreign key is checked before the cascade has changed it.
        """
        return not stmt.steady and any(re.match(r'(WITH|UPDATE|MERGE INTO|INSERT INTO) .*%s\b' % child, stmt.sql)
                                       for child in self.own_parents)

    def set_timeout(self, timeout):
        for link in self.links:
            link.call("SET lock_timeout = '%s'" % timeout)

    def abandon(self, stmt, outcomes):
        """One side has refused the transaction: roll it back on both."""
        for link, outcome in zip(self.links, outcomes):
            if outcome.state != IDLE:
                link.call('ROLLBACK')
            elif stmt.gid:
                link.call(("ROLLBACK PREPARED '%s'" % stmt.gid))
        self.set_timeout(LOCK_TIMEOUT)
        self.refusals += 1
        self.reset()


def refused_apart(heap, test):
    """What SERIALIZABLE refuses depends on how predicate locks are spread over pages: one side may be refused earlier."""
    refused = [outcome.error is not None and 'read/write dependencies' in outcome.error[1] for outcome in (heap, test)]
    return any(refused) and heap.error != test.error


def only_error(heap, test):
    """The code and the message of the one side that has failed; of none if it is not one."""
    errors = [outcome.error[:2] for outcome in (heap, test) if outcome.error]
    return errors[0] if len(errors) == 1 else (None, '')


def one_not_serializable(heap, test):
    return only_error(heap, test) == ('40001', 'could not serialize access due to concurrent change')


def one_without_parent(heap, test):
    code, message = only_error(heap, test)
    return code == '23503' and message.startswith('insert or update')


def one_too_big(stmt, heap, test):
    """A column with PLAIN storage takes a value as it is compressed in another table's row, but not from its TOAST table, where
    inplace may have it in blocks.
    """
    return (heap.error is None and test.error is not None and test.error[:2] == ('54000', 'row is too big')
            and re.search(r'\bbulky\b.*\bdocuments\b', stmt.sql) is not None)


def compare(session, stmt, outcomes):
    heap, test = outcomes
    if not same_error(session, stmt, heap, test):
        raise Difference('different errors')
    if heap.state != test.state:
        raise Difference('different transaction states: %s and %s' % (heap.state, test.state))
    if not heap.error:
        compare_rows(session, stmt, heap, test)
    if heap.error and not stmt.steady:
        return
    notices = (heap.notices, test.notices) if stmt.steady else (sorted(heap.notices), sorted(test.notices))
    if notices[0] != notices[1]:
        raise Difference('different notices: %r and %r' % notices)


def same_error(session, stmt, heap, test):
    if heap.error == test.error:
        return True
    if not heap.error or not test.error:
        return False
    if heap.error[0] == test.error[0] == '55P03':   # heap's NOWAIT waits where it follows a row to its newer versions
        return True
    codes = {heap.error[0], test.error[0]}
    # In a transaction's snapshot a row that others have deleted and one of its own can have the same key.
    if session.isolation != 'rc' and '40001' in codes and codes <= LOOSE_ERRORS:
        return True
    if stmt.steady:
        return False
    if heap.error[0] == test.error[0] == '23P01':
        return True
    return heap.error[:2] == test.error[:2] or codes <= LOOSE_ERRORS


def compare_rows(session, stmt, heap, test):
    if (heap.count, heap.command) != (test.count, test.command):
        raise Difference('different row counts')
    if heap.rows is None or test.rows is None:
        return
    if stmt.cursor:
        collected = session.buffers.setdefault(stmt.cursor, ([], []))
        collected[0].extend(heap.rows)
        collected[1].extend(test.rows)
        if stmt.last and sorted(collected[0], key=sort_key) != sorted(collected[1], key=sort_key):
            raise Difference('different rows from cursor: ' + only_in(*collected))
    elif stmt.rows == 'list' and heap.rows != test.rows:
        raise Difference('different rows or order: ' + only_in(heap.rows, test.rows))
    elif stmt.rows == 'set' and heap.rows != test.rows:
        if sorted(heap.rows, key=sort_key) != sorted(test.rows, key=sort_key):
            raise Difference('different rows: ' + only_in(heap.rows, test.rows))


def only_in(heap, test):
    left, right = list(heap), list(test)
    for row in heap:
        if row in right:
            right.remove(row)
            left.remove(row)
    return '\n  only heap: %s\n  only test: %s' % (repr(left[:10])[:3000], repr(right[:10])[:3000])
