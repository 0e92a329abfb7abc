#!/usr/bin/env python3
"""Insertions into indexes that use generic WAL: with the server's functions, and with pagedelta.

    index_loads.py --pg-config P --work FOLDER --source FOLDER [--rum FOLDER] [--pgvector FOLDER] [--only LOAD]
        [--rows N] [--before N] [--turns N] [--replay]

Two copies of the server, each with its own build of the same sources, take turns: the same statements, processor time of
the backend, WAL, and, where they can be used, what gdb finds in pagedelta's counters, and what perf's profile says.  Shares are
of all samples of the backend, the kernel's among them.  "In the delta's function" is what a flat profile has for
computeRegionDelta, or for pagedelta's pd_make; "with what it calls" has the C library's copies of fragments, too;
"generic WAL" has all functions of generic_xlog.c, or of pagedelta, with what they call, but not XLogInsert and the like.

--replay kills both servers after each load, and has the WAL of both replayed in turns by the server that has no pagedelta.
"""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '../test'))
sys.path.insert(0, os.path.join(HERE, '../../test/lib'))
import redo
import servers
import throwaway

SETTINGS = redo.SETTINGS + """
synchronous_commit = on
full_page_writes = off
maintenance_work_mem = 256MB
"""
# Zipf: word n of a vocabulary of 200,000 has probability 1/n, so its logarithm is even.  50 to 499 words; digits are letters, so
# that they are words for to_tsvector, and have stems.
WORDS = "string_agg(translate((200000 ^ random())::int::text, '0123456789', 'aeioutrnsl'), ' ')"
SERIES = 'FROM generate_series(1, 50 + (i * 7919) % 450)'
# extension, rows for each of --rows, the source's columns but for its id, the table, the index
LOADS = {
    # as in the thread: an index that has posting trees for many words; the row's text is made a tsvector when it is inserted
    'documents': ('rum', 1, '(SELECT %s %s) AS body' % (WORDS, SERIES),
                  "id int, body text, words tsvector GENERATED ALWAYS AS (to_tsvector('english', body)) STORED",
                  'rum (words rum_tsvector_ops)'),
    # a new index, and nothing to do but to insert into it
    'vectors': ('rum', 1, "(SELECT to_tsvector('simple', %s) %s) AS words" % (WORDS, SERIES),
                'id int, words tsvector', 'rum (words rum_tsvector_ops)'),
    'bloom': ('bloom', 50, '(random() * 1000)::int AS a, (random() * 100)::int AS b', 'id int, a int, b int', 'bloom (a, b)'),
    'hnsw': ('vector', 0.5, '(SELECT array_agg(random()) FROM generate_series(1, 768 + 0 * i))::vector(768) AS v',
             'id int, v vector(768)', 'hnsw (v vector_l2_ops)'),
}
# Row by row, as clients insert: each is a transaction.
INSERT = """DO $$ DECLARE r source; BEGIN FOR r IN SELECT * FROM source WHERE id > %d AND id <= %d ORDER BY id LOOP
    INSERT INTO t SELECT r.*; COMMIT; END LOOP; END $$"""
DELTA = re.compile(r'computeRegionDelta|pd_make_\w+|pagedelta_make_parts')
GENERIC = re.compile(DELTA.pattern + r'|GenericXLog(Start|RegisterBuffer)|pagedelta_xlog_(start|register)|prepare_page|change_page|put_back')
COPIED = re.compile(r'pages = (\d+), images = \d+, copied = (\d+)')


class Server(throwaway.Cluster):
    """A copy of the server with its own builds of the extensions."""

    def __init__(self, name, options):
        self.name, self.folder = name, os.path.join(options.work, name)
        if os.path.exists(self.folder):
            shutil.rmtree(os.path.join(self.folder, 'data'), ignore_errors=True)
            self.config = servers.copied(options.pg_config, os.path.join(self.folder, 'server'))
        else:
            self.config = servers.copy_server(options.pg_config, os.path.join(self.folder, 'server'))
            self.build(options)
        super().__init__(os.path.dirname(self.config), os.path.join(self.folder, 'data'), self.folder,
                         os.path.join(self.folder, 'log'))
        self.create(SETTINGS)
        self.start()

    def build(self, options):
        words = ['OPTFLAGS=']
        if self.name == 'pagedelta':
            servers.install_library(self.config, os.path.join(self.folder, 'build'))
            words = servers.mapped(self.config)
        for extension, source in options.sources.items():
            servers.build_extension(self.config, source, os.path.join(self.folder, 'build', extension), words)

    def start_psql(self, database):
        self.psql = subprocess.Popen([os.path.join(self.bindir, 'psql'), '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', database,
                                      *self.connection()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                     cwd=self.folder)

    def ask(self, statement):
        """The last line that it answers."""
        self.psql.stdin.write(statement + ";\n\\echo done\n")
        self.psql.stdin.flush()
        answer = ''
        for line in self.psql.stdout:
            if line == 'done\n':
                return answer
            answer = line.rstrip('\n')
        raise SystemExit('failed: ' + statement)


def cpu(pid):
    with open('/proc/%d/schedstat' % pid, encoding='utf-8') as file:
        return int(file.read().split()[0]) / 1e9


def profile(server, pid, statement):
    """Samples: all, in the delta's function, with what it calls, all of generic WAL; without perf there are none."""
    path = os.path.join(server.folder, 'perf.data')
    try:
        perf = subprocess.Popen(['perf', 'record', '-q', '-e', 'cpu-clock', '-F', '2000', '--call-graph', 'dwarf,512', '-o', path,
                                 '-p', str(pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except FileNotFoundError:
        server.ask(statement)
        return 0, 0, 0, 0
    time.sleep(2)               # until it has begun
    server.ask(statement)
    perf.terminate()
    perf.wait()
    stacks = subprocess.run(['perf', 'script', '-i', path, '--no-inline', '-F', 'ip,sym'], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True, check=False).stdout.strip().split('\n\n')
    found = [[line.split()[1] for line in stack.split('\n') if len(line.split()) > 1] for stack in stacks]
    deltas = [names for names in found if any(DELTA.match(name) for name in names)]
    generic = [names for names in found if any(GENERIC.match(name) for name in names) or
               any(name.startswith('GenericXLogFinish') for name in names[:2])]
    return len(found), sum(DELTA.match(names[0]) is not None for names in deltas), len(deltas), len(generic)


def copied(pid):
    """Bytes copied per page, as pagedelta counts them in this process; None without gdb."""
    try:
        output = subprocess.run(['gdb', '-p', str(pid), '-batch', '-ex', "print 'pagedelta_pg.c'::stats"], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True, check=False).stdout
    except FileNotFoundError:
        return None
    found = COPIED.search(output)
    return int(found[2]) / int(found[1]) if found else None


def prepare(server, name, before, rows):
    """The load's database, the same on both servers; it has these rows already."""
    extension, _, columns, table, index = LOADS[name]
    server.tool('createdb', *server.connection(), name)
    server.start_psql(name)
    for statement in ('CREATE EXTENSION ' + extension, "SET maintenance_work_mem = '1GB'", 'SELECT setseed(0.5)',
                      'CREATE TABLE source AS SELECT i AS id, %s FROM generate_series(1, %d) i' % (columns, rows),
                      'ALTER TABLE source ADD PRIMARY KEY (id)', 'CREATE TABLE t (%s)' % table,
                      'INSERT INTO t SELECT * FROM source WHERE id <= %d' % before, 'CREATE INDEX i ON t USING ' + index,
                      'VACUUM ANALYZE', 'CHECKPOINT'):
        server.ask(statement)


def turn(server, begin, rows):
    """(processor seconds, WAL bytes, shares)."""
    pid = int(server.ask('SELECT pg_backend_pid()'))
    wal = int(server.ask("SELECT pg_current_wal_insert_lsn() - '0/0'"))
    start = cpu(pid)
    server.ask(INSERT % (begin, begin + rows // 2))
    seconds = cpu(pid) - start
    wal = int(server.ask("SELECT pg_current_wal_insert_lsn() - '0/0'")) - wal
    return seconds, wal, profile(server, pid, INSERT % (begin + rows // 2, begin + rows))


def measure(both, name, options):
    before = int(options.before * LOADS[name][1])
    rows = int(options.rows * LOADS[name][1])
    if name == 'vectors':
        before = 0
    makers = [threading.Thread(target=prepare, args=(server, name, before, before + rows * options.turns)) for server in both]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    results = [[turn(server, before + i * rows, rows) for server in both] for i in range(options.turns)]
    ratios = sorted(ours[0] / core[0] for core, ours in results)
    print('%s, %d rows after %d, %d turns: processor time %.2f s and %.2f s, ratio %.3f (%.3f to %.3f); WAL %d and %d bytes' % (
        name, rows // 2, before, options.turns, *(min(result[i][0] for result in results) for i in (0, 1)),
        statistics.median(ratios), ratios[0], ratios[-1], *(sum(result[i][1] for result in results) for i in (0, 1))))
    samples = [[sum(result[side][2][i] for result in results) for i in range(4)] for side in (0, 1)]
    if samples[0][0] and samples[1][0]:
        print('%s, profile, %d and %d samples: in the delta\'s function %.2f %% and %.2f %%, with what it calls %.2f %% and %.2f %%,'
              ' generic WAL %.2f %% and %.2f %%' % (name, samples[0][0], samples[1][0], *(
                  100 * samples[side][i] / samples[side][0] for i in (1, 2, 3) for side in (0, 1))))
    print('%s, bytes copied per page: %s' % (name, copied(int(both[1].ask('SELECT pg_backend_pid()')))), flush=True)
    for server in both:
        server.psql.stdin.close()
        server.psql.wait()
    if options.replay:
        for server in both:
            server.stop('immediate')
        print('%s, replay of the WAL of pagedelta and of core: %s' % (name, redo.in_turns(
            both[::-1], lambda server: both[0].bindir, both[0].folder, options.turns)), flush=True)
        for server in both:
            server.start()
    for server in both:
        server.tool('dropdb', *server.connection(), name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--pg-config', required=True)
    parser.add_argument('--work', required=True, help='servers that were built there before are used again')
    parser.add_argument('--source', required=True)
    parser.add_argument('--rum')
    parser.add_argument('--pgvector')
    parser.add_argument('--rows', type=int, default=600, help='documents for each turn; of the other loads more or fewer')
    parser.add_argument('--before', type=int, default=30000, help='documents that are there before')
    parser.add_argument('--turns', type=int, default=5)
    parser.add_argument('--only', action='append', choices=list(LOADS))
    parser.add_argument('--replay', action='store_true')
    options = parser.parse_args()
    options.sources = {'bloom': os.path.join(options.source, 'contrib/bloom')}
    options.sources.update({name: path for name, path in (('rum', options.rum), ('vector', options.pgvector)) if path})
    os.makedirs(options.work, exist_ok=True)
    both = [Server(name, options) for name in ('core', 'pagedelta')]
    for name, (extension, *_) in LOADS.items():
        if extension in options.sources and (not options.only or name in options.only):
            measure(both, name, options)
    for server in both:
        server.stop('immediate')


main()
