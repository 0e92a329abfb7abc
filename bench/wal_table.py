#!/usr/bin/env python3
"""WAL by operation, heap and inplace side by side: bench/wal_table.py --pg-config P [--transactions N] [--scale N]

Each load runs on a cluster of its own, one for heap and one for inplace, with the same number of transactions: after a
warm-up without page images, then after a checkpoint with them.  The server must have been installed with inplace.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '../test/lib'))
import throwaway

SETTINGS = """
shared_preload_libraries = 'inplace'
fsync = off
synchronous_commit = off
autovacuum = off
max_wal_size = 50GB
checkpoint_timeout = 1h
shared_buffers = 512MB
full_page_writes = off
"""
LOADS = {
    'tpcb': None,
    'simple-update': None,
    'insert, update, delete, lock': """
\\set id random(1, 100000)
INSERT INTO wide (a, b, c, d) VALUES (:id, 'name of ' || :id, repeat('x', 40), now());
UPDATE wide SET a = a + 1 WHERE id = :id;
UPDATE wide SET b = b || '!', d = clock_timestamp() WHERE id = :id;
SELECT 1 FROM wide WHERE id = :id FOR UPDATE;
DELETE FROM wide WHERE id = 100000 + :id;
""",
}
SUMMARY = """SELECT resource_manager || ' ' || record_type, sum(count)::bigint, sum(record_bytes)::bigint, sum(image_bytes)::bigint,
    sum(aligned_bytes)::bigint FROM inplace_wal_summary('%s', pg_current_wal_flush_lsn()) WHERE operation IS NULL
    GROUP BY 1 HAVING sum(count) >= %d ORDER BY 5 DESC"""


class Server(throwaway.Cluster):
    def __init__(self, options, folder, am):
        bindir = subprocess.run([options.pg_config, '--bindir'], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        os.makedirs(folder)
        super().__init__(bindir, os.path.join(folder, 'data'), folder, os.path.join(folder, 'log'))
        self.create(SETTINGS + 'default_table_access_method = heap\n')
        self.start()
        self.sql('CREATE EXTENSION inplace')
        self.configure('default_table_access_method = %s' % am)
        self.sql('SELECT pg_reload_conf()')
        self.run('pgbench', '-i', '-q', '-s', str(options.scale))
        self.sql('CREATE TABLE wide (id serial PRIMARY KEY, a int, b text, c text, d timestamptz) WITH (fillfactor = 80)')
        self.sql("INSERT INTO wide (a, b, c, d) SELECT i, 'name of ' || i, repeat('x', 40), now() FROM generate_series(1, 200000) i")
        self.sql('VACUUM ANALYZE')

    def run(self, tool, *arguments):
        return self.tool(tool, *arguments, *self.connection(), 'postgres', stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True).stdout

    def sql(self, statement):
        done = self.tool('psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-c', statement, *self.connection(), 'postgres',
                         stdout=subprocess.PIPE, text=True)
        return [line.split('|') for line in done.stdout.splitlines()]

    def load(self, name, transactions):
        """What came of it in WAL: {record: (count, bytes, images, aligned)}."""
        begin = self.sql('SELECT pg_current_wal_insert_lsn()')[0][0]
        script = os.path.join(self.socket, 'script')
        if LOADS[name]:
            with open(script, 'w', encoding='utf-8') as file:
                file.write(LOADS[name])
        what = ['-f', script] if LOADS[name] else ['-N'] if name == 'simple-update' else []
        self.run('pgbench', '-n', '-M', 'prepared', '-c', '2', '-j', '1', '-t', str(transactions // 2), *what)
        self.sql('SELECT txid_current()')
        self.sql('SELECT pg_switch_wal()')
        return {row[0]: [int(value) for value in row[1:]] for row in self.sql(SUMMARY % (begin, transactions // 20))}


def print_table(title, results, transactions):
    print('\n### %s: %d transactions\n' % (title, transactions))
    print('| | operation | records per transaction | average length | average aligned | with images |')
    print('|---|---|---|---|---|---|')
    for am, rows in results.items():
        for name, (count, size, images, aligned) in rows.items():
            plain = '%.2f' % (aligned / count) if images == 0 else ''
            print('| %s | %s | %.3f | %.2f | %s | %s |' % (am, name, count / transactions, size / count, plain,
                                                           '%.1f' % ((size + images) / count) if images else ''))
        print('| %s | all | | %.1f bytes per transaction | | |' % (am, sum(row[3] for row in rows.values()) / transactions))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--pg-config', required=True)
    parser.add_argument('--transactions', type=int, default=200000)
    parser.add_argument('--scale', type=int, default=10, help='of pgbench')
    options = parser.parse_args()
    work = tempfile.mkdtemp(prefix='wal_table.', dir='/tmp')
    os.chmod(work, 0o755)
    for name in LOADS:
        steady, imaged = {}, {}
        for am in ('heap', 'inplace'):
            server = Server(options, os.path.join(work, am + name.split(',')[0]), am)
            server.load(name, options.transactions // 10)
            server.sql('CHECKPOINT')
            steady[am] = server.load(name, options.transactions)
            server.configure('full_page_writes = on')
            server.sql('SELECT pg_reload_conf()')
            server.sql('CHECKPOINT')
            imaged[am] = server.load(name, options.transactions // 10)
            server.stop('immediate')
            shutil.rmtree(server.socket)
        print_table(name + ', steady', steady, options.transactions)
        print_table(name + ', after a checkpoint, with page images', imaged, options.transactions // 10)
    os.rmdir(work)


main()
