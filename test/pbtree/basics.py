"""What the tests of pbtree share: clusters, connections, the list of tests."""
import os
import re
import shutil
import subprocess
import sys
import time

import psycopg2

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'lib'))
from throwaway import Cluster  # noqa: E402

SETTINGS = """
fsync = off
autovacuum = off
restart_after_crash = off
shared_preload_libraries = 'pbtree'
wal_consistency_checking = 'pbtree'
max_wal_size = 4GB
"""
# Wait events, as lists in SQL; 19 has other names.
PIN = "('BufferPin', 'BufferCleanup')"
CONTENT = "('BufferContent', 'BufferShared', 'BufferShareExclusive', 'BufferExclusive')"
TESTS = {}


class Failed(Exception):
    pass


def expect(what, found, wanted):
    if found != wanted:
        raise Failed('%s: %s instead of %s' % (what, str(found)[:500], str(wanted)[:500]))


def test(function):
    TESTS[function.__name__.replace('_', '-')] = function
    return function


def connect(cluster, database='postgres'):
    connection = psycopg2.connect(host=cluster.socket, port=cluster.port, user='postgres', dbname=database)
    connection.autocommit = True
    return connection


def query(connection, text):
    with connection.cursor() as cursor:
        cursor.execute(text)
        return cursor.fetchall() if cursor.description else None


def has_points(cluster):
    try:
        query(connect(cluster), 'CREATE EXTENSION injection_points')
        return True
    except psycopg2.Error:
        return False


def stop_without_checksums(cluster):
    """So that damaged pages come as far as the library; from 18 on a cluster has checksums if nobody says otherwise."""
    cluster.stop()
    if not re.search(r'checksum version: +0', cluster.tool('pg_controldata', cluster.data, stdout=subprocess.PIPE, text=True).stdout):
        cluster.tool('pg_checksums', '--disable', cluster.data, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def no_crash(cluster):
    with open(cluster.log_file, encoding='utf-8', errors='replace') as file:
        bad = [line for line in file if 'TRAP:' in line or 'PANIC' in line or 'was terminated by signal' in line or
               'was not closed' in line or 'leak' in line]
    if bad:
        raise Failed(bad[0].strip())


class Tests:
    def __init__(self, args):
        self.args = args
        self.clusters = []

    def cluster(self, name, settings=SETTINGS, port=5432):
        folder = os.path.join(self.args.work, name)
        os.makedirs(folder)
        os.chmod(folder, 0o755)
        cluster = Cluster(self.args.bindir, os.path.join(folder, 'data'), folder, os.path.join(folder, 'log'), port)
        self.clusters.append(cluster)
        cluster.create(settings)
        cluster.start()
        return cluster

    def begin(self, name, settings=SETTINGS):
        """A cluster that has the extension, and a connection."""
        cluster = self.cluster(name, settings)
        connection = connect(cluster)
        query(connection, 'CREATE EXTENSION pbtree')
        return cluster, connection

    def standby(self, primary, name, settings):
        """A standby that streams from a cluster."""
        folder = os.path.join(self.args.work, name)
        os.makedirs(folder)
        replica = Cluster(self.args.bindir, os.path.join(folder, 'data'), folder, os.path.join(folder, 'log'), primary.port + 1)
        if os.geteuid() == 0:
            os.chown(folder, os.stat(primary.data).st_uid, os.stat(primary.data).st_gid)
        replica.tool('pg_basebackup', *primary.connection(), '-D', replica.data, '-R', '-X', 'stream', '-c', 'fast',
                     stderr=subprocess.DEVNULL)
        replica.place(settings)
        self.clusters.append(replica)
        replica.start()
        return replica

    def stop(self):
        for cluster in self.clusters:
            try:
                cluster.stop('immediate', check=False, stderr=subprocess.DEVNULL)
            except subprocess.SubprocessError:
                pass
        self.clusters = []


def replayed(connection, replica):
    """Has the standby redone all that the connection's server has written?"""
    query(connection, "SELECT pg_logical_emit_message(true, 'pbtree', 'what was written before is sent')")
    target = query(connection, 'SELECT pg_current_wal_lsn()')[0][0]
    other = connect_to_standby(replica)
    done = query(other, "SELECT pg_last_wal_replay_lsn() >= '%s'" % target)[0][0]
    other.close()
    return done


def connect_to_standby(replica):
    """A connection without a transaction: recovery may have ended the old one, between two statements too, and may end a new one."""
    for _ in range(100):
        try:
            connection = connect(replica)
            query(connection, 'SELECT')
            return connection
        except psycopg2.Error:
            time.sleep(.1)
    raise Failed('no connection to the standby')


def wait_for_standby(connection, replica, seconds=300):
    end = time.time() + seconds
    while not replayed(connection, replica):
        if time.time() > end:
            raise Failed('the standby does not keep up')
        time.sleep(.1)


def build_force(pg_config, folder):
    """The libraries of force/, in a folder that the server can read; the one that makes pbtrees."""
    shutil.copytree(os.path.join(HERE, 'force'), folder)
    subprocess.run(['make', '-s', '-C', folder, 'PG_CONFIG=' + pg_config, 'COMMON=' + os.path.join(HERE, '..', '..', 'common'), 'with_llvm=no'], check=True)
    return os.path.join(folder, 'force_pbtree')
