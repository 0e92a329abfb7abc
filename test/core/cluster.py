"""A primary and its streaming standby, and the databases' soundness after a suite."""
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../lib'))
import throwaway

# Like PostgreSQL's own run of its regression suite on a replicated server (027_stream_regress): synchronised scans would
# change results, and replay may wait for nobody.
SETTINGS = """
fsync = off
max_connections = 40
max_prepared_transactions = 10
max_standby_streaming_delay = -1
max_wal_size = 1GB
wal_keep_size = 4GB
synchronize_seqscans = off
log_line_prefix = '%m [%p] %d %a '
"""
# Heap under the name of the access method under test: what heap answers on this very server.
HEAP_AS_INPLACE = """
CREATE FUNCTION inplace.inplace_tableam_handler(internal) RETURNS table_am_handler LANGUAGE internal AS 'heap_tableam_handler';
CREATE ACCESS METHOD inplace TYPE TABLE HANDLER inplace.inplace_tableam_handler;
COMMENT ON ACCESS METHOD inplace IS 'tables that are updated in place, with old versions in undo'
"""
CRASH = re.compile(r'PANIC|TRAP:|was terminated by signal|inconsistent page found|FATAL:.*(redo|recovery)')


class Node(throwaway.Cluster):
    def __init__(self, bindir, folder, name, port):
        super().__init__(bindir, os.path.join(folder, name), folder, os.path.join(folder, name + '.log'), port)
        self.folder, self.name = folder, name

    def query(self, sql, database='postgres'):
        """The rows, as lists of strings."""
        done = self.tool('psql', '-XAtq', '-F', '\x1f', '-v', 'ON_ERROR_STOP=1', '-d', database, '-c', sql,
                         *self.connection(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return [line.split('\x1f') for line in done.stdout.splitlines()]

    def databases(self):
        return [name for name, in self.query('SELECT datname FROM pg_database WHERE datallowconn ORDER BY 1')]

    def crashes(self):
        return [line for line in self.log().splitlines() if CRASH.search(line)]


class Primary(Node):
    def create(self, heap, libraries=(), settings=''):
        """A cluster all of whose databases have the access method: the real one, or heap under its name."""
        super().create(SETTINGS + settings)
        self.configure("shared_preload_libraries = '%s'\n" % ', '.join(libraries + (() if heap else ('inplace',))))
        if not heap:
            self.configure("wal_consistency_checking = 'all, inplace'\n")
        self.start()
        self.query('ALTER DATABASE template0 ALLOW_CONNECTIONS true')
        for database in ('template0', 'template1', 'postgres'):
            self.query('CREATE SCHEMA inplace', database)
            self.query(HEAP_AS_INPLACE if heap else 'CREATE EXTENSION inplace SCHEMA inplace', database)
        self.query('ALTER DATABASE template0 ALLOW_CONNECTIONS false')
        self.configure("default_table_access_method = 'inplace'\n")
        self.query('SELECT pg_reload_conf()')

    def attach_standby(self):
        standby = Node(self.bindir, self.folder, 'standby', self.port + 1)
        self.tool('pg_basebackup', '-D', standby.data, '--checkpoint', 'fast', '-R', *self.connection())
        standby.place('hot_standby = on')
        return standby.start()

    def wait_for(self, standby):
        """Until the standby has replayed all that is there now."""
        end = self.query('SELECT pg_current_wal_insert_lsn()')[0][0]
        while standby.query("SELECT coalesce(pg_last_wal_replay_lsn() >= '%s', false)" % end)[0][0] != 't':
            if standby.crashes():
                raise ConnectionError('the standby does not come to %s' % end)
            time.sleep(0.2)


# ---- soundness -------------------------------------------------------------

TABLES = """
SELECT c.oid, c.oid::regclass FROM pg_class c JOIN pg_am a ON a.oid = c.relam
WHERE a.amname = 'inplace' AND c.relpersistence <> 't' AND (%s OR c.relpersistence = 'p') ORDER BY c.oid
"""
INDEXES = """
SELECT i.oid, i.oid::regclass FROM pg_class i JOIN pg_index x ON x.indexrelid = i.oid JOIN pg_class c ON c.oid = x.indrelid
JOIN pg_am a ON a.oid = c.relam JOIN pg_am m ON m.oid = i.relam
WHERE a.amname = 'inplace' AND m.amname = 'btree' AND x.indisvalid AND x.indisready AND i.relkind = 'i'
AND c.relpersistence <> 't' AND (%s OR c.relpersistence = 'p') ORDER BY i.oid
"""


def dump(node):
    """pg_dumpall's lines, without the random keys of newer minor versions."""
    text = node.tool('pg_dumpall', '--no-sync', '--no-unlogged-table-data', *node.connection(), stdout=subprocess.PIPE,
                     text=True, errors='surrogateescape').stdout
    return [line for line in text.splitlines() if not re.match(r'\\(un)?restrict ', line)]


def settle_sequences(primary):
    """A sequence logs values in advance, so the standby's are ahead of the primary's."""
    for database in primary.databases():
        primary.query('SELECT setval(seqrelid, nextval(seqrelid)) FROM pg_sequence JOIN pg_class c ON c.oid = seqrelid'
                      " WHERE c.relpersistence = 'p'", database)


def check_tables(node):
    """(number of tables, violations) of inplace_check in all databases."""
    return check_all(node, TABLES, "SELECT %s, v::text FROM inplace.inplace_check(%s) v", 'inplace_check')


def check_indexes(node):
    """(number of indexes, violations) of amcheck: every row must have its index entry."""
    return check_all(node, INDEXES, "SELECT %s, v::text FROM amcheck.bt_index_check(%s, true) v WHERE v::text <> ''",
                     'bt_index_check')


def check_all(node, list_query, check, name):
    count, bad = 0, []
    for database in node.databases():
        relations = node.query(list_query % 'NOT pg_is_in_recovery()', database)
        count += len(relations)
        queries = [check % ("'%s'" % relation.replace("'", "''"), oid) for oid, relation in relations]
        try:
            rows = node.query('; '.join(queries), database) if queries else []
        except subprocess.CalledProcessError:
            rows = [row for query in queries for row in one_by_one(node, database, query)]
        bad += ['%s on the %s, %s: %s' % (name, node.name, database, ' '.join(row)) for row in rows]
    return count, bad


def one_by_one(node, database, query):
    try:
        return node.query(query, database)
    except subprocess.CalledProcessError as error:
        return [[query, error.stderr.strip()]]


def install_amcheck(primary):
    for database in primary.databases():
        primary.query('CREATE SCHEMA IF NOT EXISTS amcheck', database)
        primary.query('CREATE EXTENSION IF NOT EXISTS amcheck SCHEMA amcheck', database)
