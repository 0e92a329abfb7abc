#!/usr/bin/env python3
"""How long replay takes, inplace against heap: bench/replay.py --pg-config P [--megabytes N | --full] [--turns N] [--scale N] [--only LOAD]

Each load runs on a cluster of its own, for heap until there is so much WAL, for inplace as many transactions; then the server is
killed.  Copies of both clusters are started in turns: the server's own log says how long redo took, and how much
processor time of the startup process.  --full is 1 GB of heap's WAL.  The server must have been installed with inplace.
Replay of generic WAL: pagedelta/bench/index_loads.py --replay.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '../test/lib'))
import redo
import throwaway

# pgbench's own transactions, many of them for a call, because the client is not what is measured
PROCEDURE = """CREATE PROCEDURE %s(n int, scale int) LANGUAGE plpgsql AS $$
DECLARE a int; b int; t int; d int;
BEGIN
    FOR i IN 1..n LOOP
        a := 1 + floor(random() * 100000 * scale); b := 1 + floor(random() * scale);
        t := 1 + floor(random() * 10 * scale); d := floor(random() * 10001) - 5000;
        UPDATE pgbench_accounts SET abalance = abalance + d WHERE aid = a;
        PERFORM abalance FROM pgbench_accounts WHERE aid = a;
        %s
        INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (t, b, a, d, CURRENT_TIMESTAMP);
        COMMIT;
    END LOOP;
END $$"""
LOADS = {
    'tpcb': """UPDATE pgbench_tellers SET tbalance = tbalance + d WHERE tid = t;
        UPDATE pgbench_branches SET bbalance = bbalance + d WHERE bid = b;""",
    'simple_update': '',
}
AT_ONCE = 200
CLIENTS = 2


class Server(throwaway.Cluster):
    def __init__(self, options, folder, am, name):
        bindir = subprocess.run([options.pg_config, '--bindir'], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        os.makedirs(folder)
        super().__init__(bindir, os.path.join(folder, 'data'), folder, os.path.join(folder, 'log'))
        self.create(redo.SETTINGS + "shared_preload_libraries = 'inplace'\nfull_page_writes = %s\n" % options.full_page_writes)
        self.start()
        self.sql('CREATE EXTENSION inplace')
        self.configure('default_table_access_method = ' + am)
        self.sql('SELECT pg_reload_conf()')
        self.run('pgbench', '-i', '-q', '-s', str(options.scale))
        self.sql(PROCEDURE % (name, LOADS[name]))
        self.script = os.path.join(folder, 'script')
        with open(self.script, 'w', encoding='utf-8') as file:
            file.write('CALL %s(%d, %d);\n' % (name, AT_ONCE, options.scale))
        self.calls(50)
        self.sql('CHECKPOINT')
        self.begin = self.wal_end()

    def run(self, tool, *arguments):
        return self.tool(tool, *arguments, *self.connection(), 'postgres', stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True).stdout

    def sql(self, statement):
        return self.run('psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-c', statement).strip()

    def wal_end(self):
        return int(self.sql("SELECT pg_current_wal_insert_lsn() - '0/0'"))

    def calls(self, n):
        self.run('pgbench', '-n', '-c', str(CLIENTS), '-j', '1', '-t', str(n), '-f', self.script)

    def load_bytes(self, size):
        """Until there is so much WAL; how many calls by each client that took."""
        n = 0
        while self.wal_end() - self.begin < size:
            self.calls(50)
            n += 50
        return n


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--pg-config', required=True)
    parser.add_argument('--megabytes', type=int, default=100)
    parser.add_argument('--full', action='store_true')
    parser.add_argument('--full-page-writes', choices=['on', 'off'], default='on')
    parser.add_argument('--turns', type=int, default=5)
    parser.add_argument('--scale', type=int, default=10, help='of pgbench')
    parser.add_argument('--only', action='append', choices=list(LOADS))
    options = parser.parse_args()
    work = tempfile.mkdtemp(prefix='replay.', dir='/tmp')
    os.chmod(work, 0o755)
    for name in options.only or LOADS:
        servers = [Server(options, os.path.join(work, name, am), am, name) for am in ('inplace', 'heap')]
        n = servers[1].load_bytes(1000000000 if options.full else options.megabytes * 1000000)
        servers[0].calls(n)
        for server in servers:
            server.sql('SELECT txid_current()')
            server.stop('immediate')
        line = redo.in_turns(servers, lambda server: server.bindir, servers[0].socket, options.turns)
        print('%s, %d transactions, inplace and heap: %s' % (name, n * CLIENTS * AT_ONCE, line), flush=True)
        shutil.rmtree(os.path.join(work, name))
    os.rmdir(work)


main()
