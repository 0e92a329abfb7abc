"""The server under measurement, reached through libpq's environment variables (PGHOST and so on)."""
import os
import platform
import time
from contextlib import contextmanager

import psycopg2

AMS = ('heap', 'inplace')
REAP_SECONDS = 0.2      # after a backend left the activity view, until the postmaster has its CPU time


class Database:
    """One autocommit connection, and what a benchmark asks a server.  What is given is psycopg2's: dbname, options."""

    def __init__(self, **given):
        self.connection = psycopg2.connect(application_name='pg_inplace bench', **given)
        self.connection.autocommit = True
        self.cursor = self.connection.cursor()

    def close(self):
        self.connection.close()

    def execute(self, sql, *arguments):
        self.cursor.execute(sql, arguments or None)

    def rows(self, sql, *arguments):
        self.execute(sql, *arguments)
        return self.cursor.fetchall()

    def value(self, sql, *arguments):
        return self.rows(sql, *arguments)[0][0]

    def seconds(self, sql):
        """How long a statement takes, seen from the client."""
        begin = time.perf_counter()
        self.execute(sql)
        return time.perf_counter() - begin

    def cpu_seconds(self, sql):
        """The processor time that a statement takes in its own backend: the same on a busy machine."""
        path = f'/proc/{self.value("SELECT pg_backend_pid()")}/schedstat'
        begin = _nanoseconds(path)
        self.execute(sql)
        return (_nanoseconds(path) - begin) / 1e9

    def use(self, am):
        """From now on tables are made and found in this access method's own schema."""
        self.execute(f'CREATE SCHEMA IF NOT EXISTS {am}')
        self.execute(f'SET search_path = {am}')
        self.execute(f'SET default_table_access_method = {am}')

    def autovacuum_only(self, am):
        """From now on autovacuum leaves the other access method's tables alone: each side's turns pay for its own."""
        for schema in AMS:
            for table, in self.rows("SELECT c.oid::regclass FROM pg_class c WHERE relkind = 'r' AND"
                                    " relnamespace = to_regnamespace(%s)", schema):
                self.execute(f'ALTER TABLE {table} SET (autovacuum_enabled = {schema == am})')

    @contextmanager
    def naptime(self, seconds):
        """Autovacuum looks around more often than by default, for both alike."""
        self.execute(f"ALTER SYSTEM SET autovacuum_naptime = '{seconds}s'")
        self.execute('SELECT pg_reload_conf()')
        try:
            yield
        finally:
            self.execute('ALTER SYSTEM RESET autovacuum_naptime')
            self.execute('SELECT pg_reload_conf()')

    def wait_for_autovacuum(self):
        """Until its workers have ended."""
        while self.value("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'autovacuum worker'"):
            time.sleep(0.1)

    def table_size(self, table):
        """Table and undo (both in the main fork), TOAST, free space and visibility maps."""
        return self.value('SELECT pg_table_size(%s::regclass)', table)

    def full_size(self, table):
        return self.value('SELECT pg_total_relation_size(%s::regclass)', table)

    def wal_position(self):
        return int(self.value("SELECT pg_current_wal_insert_lsn() - '0/0'"))

    def wal_bytes(self, sql):
        begin = self.wal_position()
        self.execute(sql)
        return self.wal_position() - begin

    def server_cpu_seconds(self):
        """CPU time of the postmaster, its live children and those that it has waited for; pgbench must have ended."""
        while self.value("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'"):
            time.sleep(0.02)
        time.sleep(REAP_SECONDS)
        postmaster = self._postmaster()
        ticks = sum(_stat(postmaster)[11:15]) + sum(sum(stat[11:13]) for stat in _children(postmaster).values())
        return ticks / os.sysconf('SC_CLK_TCK')

    def _postmaster(self):
        return _stat(self.value('SELECT pg_backend_pid()'))[1]

    def keep_apart(self):
        """The server's processes on half of the processors, this one, and with it the clients, on the others."""
        processors = sorted(os.sched_getaffinity(0))
        half = len(processors) // 2
        if half == 0:
            raise SystemExit('there is only one processor')
        postmaster = self._postmaster()
        for pid in [postmaster, *_children(postmaster)]:
            os.sched_setaffinity(int(pid), processors[:half])
        os.sched_setaffinity(0, processors[half:])

    def environment(self):
        """What a reader needs in order to compare the numbers with others."""
        settings = self.rows("SELECT name, current_setting(name) FROM pg_settings"
                             " WHERE source = 'configuration file' AND name !~ 'socket|listen|dynamic|^lc_|Date|[Zz]one|search' ORDER BY name")
        return {
            'server': self.value('SELECT version()'),
            'extension': self.value("SELECT extversion FROM pg_extension WHERE extname = 'inplace'"),
            'processor': f'{_first_line("/proc/cpuinfo", "model name")}, {os.cpu_count()} cores',
            'memory': _first_line('/proc/meminfo', 'MemTotal'),
            'kernel': platform.release(),
            'settings': dict(settings),
        }


def _stat(pid):
    """The fields of /proc/PID/stat behind the command's name, as numbers: [1] parent, [11:15] CPU ticks."""
    with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as file:
        fields = file.read().rpartition(')')[2].split()
    return [0] + [int(field) for field in fields[1:]]


def _children(parent):
    """By pid, what _stat says of each."""
    found = {}
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            stat = _stat(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue
        if stat[1] == parent:
            found[pid] = stat
    return found


def _nanoseconds(path):
    with open(path, encoding='utf-8') as file:
        return int(file.read().split()[0])


def _first_line(path, key):
    with open(path, encoding='utf-8') as file:
        for line in file:
            if line.startswith(key):
                return line.partition(':')[2].strip()
    return 'unknown'
