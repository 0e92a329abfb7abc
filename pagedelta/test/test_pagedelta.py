#!/usr/bin/env python3
"""pagedelta in a server, and under extensions that use generic WAL:

    test_pagedelta.py --pg-config P --work FOLDER --source FOLDER [--rum FOLDER] [--pgvector FOLDER] [--full] [--only TEST]

--source is the server's source, --rum and --pgvector those of the extensions.  They are built, unmodified, with
pagedelta_generic_xlog.h, and installed in a copy of the server; a standby of the server itself, which has nothing of
pagedelta, replays their WAL with wal_consistency_checking = 'generic'.  Each test prints a line "ok" or "FAIL".
--pairs FOLDER records pairs of page images there, of heap, btree, GIN, RUM, bloom, HNSW and inplace.
"""
import argparse
import itertools
import os
import random
import re
import signal
import subprocess
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(ROOT, '../test/lib'))
import servers
import throwaway
from servers import Failure, config, run

PAGE = 8192
SETTINGS = """
fsync = off
autovacuum = off
max_wal_size = 1GB
wal_keep_size = 4GB
wal_level = logical
max_replication_slots = 4
wal_consistency_checking = 'generic'
log_line_prefix = '%m [%p] %d %a '
"""
CRASH = re.compile(r'PANIC|TRAP:|was terminated by signal (?!9)|inconsistent page found|FATAL:.*redo|FATAL:.*startup process')
# What each kind of index is made of, and asked.  The table is t (id, a, b, words, v).
LOADS = {
    'bloom': ('CREATE INDEX i ON t USING bloom (a, b)',
              ['SELECT count(*) FROM t WHERE a = %d AND b = %d' % (n, n % 10) for n in range(0, 50, 5)]),
    'rum': ('CREATE INDEX i ON t USING rum (words rum_tsvector_ops)',
            ["SELECT count(*) FROM t WHERE words @@ to_tsquery('simple', 'w%d')" % n for n in range(1, 200, 20)] +
            ["SELECT count(*) FROM t WHERE words @@ to_tsquery('simple', 'w%d & w%d')" % (n, n + 1) for n in range(1, 20, 3)]),
    'vector': ('CREATE INDEX i ON t USING hnsw (v vector_l2_ops)', []),
}
TABLE = {
    'bloom': 'CREATE TABLE t (id serial PRIMARY KEY, a int, b int)',
    'rum': 'CREATE TABLE t (id serial PRIMARY KEY, words tsvector)',
    'vector': 'CREATE TABLE t (id serial PRIMARY KEY, v vector(64))',
}
# One statement of the load: some insertions, changes, deletions.
INSERT = {
    'bloom': 'INSERT INTO t (a, b) SELECT (random() * 100)::int, (random() * 10)::int FROM generate_series(1, %d)',
    'rum': """INSERT INTO t (words) SELECT (SELECT to_tsvector('simple', string_agg('w' || (1000 ^ random())::int, ' '))
              FROM generate_series(1, 40 + i %% 2)) FROM generate_series(1, %d) i""",
    'vector': 'INSERT INTO t (v) SELECT (SELECT array_agg(random()) FROM generate_series(1, 64 + 0 * i))::vector FROM generate_series(1, %d) i',
}
UPDATE = {
    'bloom': 'UPDATE t SET a = a + 1 WHERE id %% 17 = %d',
    'rum': "UPDATE t SET words = words || to_tsvector('simple', 'changed') WHERE id %% 17 = %d",
    'vector': 'UPDATE t SET v = v + v WHERE id %% 17 = %d',
}

options = None
tests = []


def test(function):
    tests.append(function)
    return function


def check(condition, what):
    if not condition:
        raise Failure(what)


def extensions():
    """(name, folder of the source), of those there are."""
    found = [('bloom', os.path.join(options.source, 'contrib/bloom'))]
    for name, folder in (('rum', options.rum), ('vector', options.pgvector)):
        if folder:
            found.append((name, folder))
    return found


# ---- servers ---------------------------------------------------------------

class Node(throwaway.Cluster):
    def __init__(self, name, bindir, port, settings='', backup_of=None):
        folder = os.path.join(options.work, name)
        os.makedirs(folder)
        super().__init__(bindir, os.path.join(folder, 'data'), folder, os.path.join(folder, 'log'), port)
        if backup_of:
            backup_of.tool('pg_basebackup', '-D', self.data, '-c', 'fast', '-R', *backup_of.connection())
            self.place(settings)
        else:
            self.create(SETTINGS + settings)

    def psql(self, *arguments, database='postgres'):
        done = self.tool('psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', database, *arguments, *self.connection(),
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        check(done.returncode == 0, 'psql %s: %s' % (' '.join(arguments)[:300], done.stdout[-2000:]))
        return done.stdout.strip()

    def sql(self, *statements, database='postgres'):
        return self.psql(*(word for statement in statements for word in ('-c', statement)), database=database)

    def number(self, statement, database='postgres'):
        return float(self.sql(statement, database=database).split('\n')[-1])

    def no_crash(self):
        bad = [line for line in self.log().splitlines() if CRASH.search(line)]
        check(not bad, '\n'.join(bad[:5]))

    def kill(self):
        """As if the machine had no power: kill -9, and all processes are gone."""
        with open(os.path.join(self.data, 'postmaster.pid')) as file:
            pid = int(file.readline())
        os.kill(pid, signal.SIGKILL)
        while subprocess.run(['pgrep', '-s', str(pid)], stdout=subprocess.DEVNULL, check=False).returncode == 0 or \
                subprocess.run(['fuser', '-s', os.path.join(self.data, 'postmaster.pid')], check=False,
                               stderr=subprocess.DEVNULL).returncode == 0:
            time.sleep(0.05)
        os.unlink(os.path.join(self.data, 'postmaster.pid'))


class Pair:
    """A primary of the copy, which has the extensions, and a standby of the server as it is."""
    primary = standby = None

    @classmethod
    def start(cls):
        if cls.primary is None:
            cls.primary = Node('primary', options.copy_bindir, 5440, options.preload).start()
            cls.standby = Node('standby', options.bindir, 5441, backup_of=cls.primary).start()
        return cls

    @classmethod
    def wait(cls):
        cls.primary.sql('CHECKPOINT')
        end = cls.primary.sql('SELECT pg_current_wal_insert_lsn()')
        for _ in range(3000):
            cls.standby.no_crash()
            if cls.standby.sql("SELECT coalesce(pg_last_wal_replay_lsn() >= '%s', false)" % end) == 't':
                return
            time.sleep(0.1)
        raise Failure('the standby does not come to %s' % end)


# ---- building --------------------------------------------------------------

@test
def build():
    """the library, then each extension, unmodified, with the mapping header"""
    made = os.path.join(options.work, 'build')
    servers.install_library(options.copy, made)
    for name, source in extensions():
        folder = os.path.join(made, name)
        # -O1 takes less time
        servers.build_extension(options.copy, source, folder, servers.mapped(options.copy, '-O1'))
        symbols = run('nm', os.path.join(folder, name + '.so'))
        check('GenericXLog' not in symbols and 'pagedelta_xlog_finish' in symbols, name + ' calls the server')
        exported = run('nm', '-D', '--defined-only', os.path.join(folder, name + '.so'))
        check('pagedelta' not in exported, name + ' shows symbols of the library')
    return ', '.join(name for name, _ in extensions())


# ---- the library in a server -----------------------------------------------

FUNCTIONS = {'twins': 'regclass, regclass, int, int', 'too_many': 'regclass', 'impossible': 'regclass, int, int',
             'nested': 'regclass', 'states': '', 'copied': 'regclass'}


def load_functions(node, database='postgres'):
    library = os.path.join(options.work, 'build/pagedelta/test/server/pagedelta_server')
    for name, arguments in FUNCTIONS.items():
        result = {'states': 'bigint', 'copied': 'bigint'}.get(name, 'void')
        node.sql("CREATE OR REPLACE FUNCTION pagedelta_%s(%s) RETURNS %s LANGUAGE c AS '%s'"
                 % (name, arguments, result, library), database=database)


@test
def twins():
    """random changes by the server's functions and by pagedelta: the same pages, records of the same length"""
    pair = Pair.start()
    rounds = 20000 if options.full else 2000
    load_functions(pair.primary)
    pair.primary.sql('CREATE EXTENSION IF NOT EXISTS pg_walinspect', 'CREATE TABLE core ()', 'CREATE TABLE ours ()',
                     'CREATE UNLOGGED TABLE core_unlogged ()', 'CREATE UNLOGGED TABLE ours_unlogged ()', 'CHECKPOINT')
    start = pair.primary.sql('SELECT pg_current_wal_lsn()')
    pair.primary.sql("SELECT pagedelta_twins('core', 'ours', %d, %d)" % (rounds, options.seed))
    pair.primary.sql("SELECT pagedelta_twins('core_unlogged', 'ours_unlogged', %d, %d)" % (rounds // 10, options.seed))
    # every second record is the server's; consistency checking adds an image of each page to both
    lengths = pair.primary.sql("""
        WITH records AS (SELECT record_length AS len, fpi_length AS fpi, row_number() OVER (ORDER BY start_lsn) - 1 AS n
          FROM pg_get_wal_records_info('%s', pg_current_wal_flush_lsn()) WHERE resource_manager = 'Generic')
        SELECT count(*), count(*) FILTER (WHERE a.len <> b.len OR a.fpi <> b.fpi) FROM records a JOIN records b
          ON b.n = a.n + 1 WHERE a.n %% 2 = 0""" % start)
    count, different = lengths.split('|')
    check(int(count) > rounds * 0.8 and different == '0', 'records, different lengths: ' + lengths)
    pair.wait()
    return '%s records' % count


@test
def errors():
    """what the server raises; states are used again after errors"""
    primary = Pair.start().primary
    load_functions(primary)
    primary.sql('CREATE TABLE bad ()', """
        DO $$ BEGIN PERFORM pagedelta_nested('bad'); END $$""", """
        DO $$
        DECLARE before bigint; message text; bounds int[];
        BEGIN
            FOREACH bounds SLICE 1 IN ARRAY ARRAY[[0, 8193], [4000, 3999], [65535, 65535], [24, 60000], [-1, 0]] LOOP
                BEGIN
                    PERFORM pagedelta_impossible('bad', bounds[1], bounds[2]);
                    RAISE 'no error for %', bounds;
                EXCEPTION WHEN internal_error THEN
                    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT;
                    IF message NOT LIKE 'impossible bounds%' THEN RAISE; END IF;
                END;
            END LOOP;
            before := pagedelta_states();
            FOR i IN 1..100 LOOP
                BEGIN
                    PERFORM pagedelta_too_many('bad');
                    RAISE 'no error';
                EXCEPTION WHEN internal_error THEN
                    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT;
                    IF message <> 'maximum number 4 of generic xlog buffers is exceeded' THEN RAISE; END IF;
                END;
            END LOOP;
            IF pagedelta_states() <> before THEN RAISE 'states: % more', pagedelta_states() - before; END IF;
            PERFORM pagedelta_nested('bad');
        END $$""")
    primary.no_crash()
    return ''


@test
def copies():
    """of a page whose hole is zeros only what it has is copied, and what has changed"""
    primary = Pair.start().primary
    load_functions(primary)
    most = primary.number("CREATE TABLE appended (); SELECT pagedelta_copied('appended')")
    primary.no_crash()
    check(most <= 9000, '%d bytes copied for a page' % most)
    return 'at most %d bytes for a page' % most


# ---- the extensions' own tests ---------------------------------------------

def own_suite(name):
    """Its pg_regress tests, on the primary, and its WAL goes to the standby.  What fails must fail likewise without pagedelta."""
    folder = os.path.join(options.work, 'build', name)
    failed, count = regress(name, folder)
    remark = '%d tests' % count
    if failed:
        stock = folder + '.stock'
        servers.build_extension(options.copy, folder, stock, ['OPTFLAGS=', 'COPT=-O1'])
        regress(name, stock)
        servers.make(options.copy, folder, 'install', *servers.mapped(options.copy, '-O1'))
        for test_name in failed:
            check(result_of(folder, test_name) == result_of(stock, test_name),
                  '%s: not what it is without pagedelta, see %s/regression.diffs' % (test_name, folder))
        remark += ', and as without pagedelta: ' + ' '.join(failed)
    Pair.wait()
    return remark


def regress(name, folder):
    """Names of the tests that failed, and how many passed."""
    primary = Pair.start().primary
    lines = run('make', '-s', '-C', folder, 'USE_PGXS=1', 'PG_CONFIG=' + options.copy, '--eval',
                'print-tests:;@printf "%s\\n" "$(REGRESS)" "$(REGRESS_OPTS)"', 'print-tests').splitlines()
    command = [os.path.join(config(options.pg_config, 'pkglibdir')[0], 'pgxs/src/test/regress/pg_regress'),
               '--bindir=' + options.copy_bindir, '--inputdir=.', '--outputdir=.', '--host=' + primary.socket,
               '--port=%d' % primary.port, '--user=postgres', *lines[1].split(), '--dbname=suite_' + name,
               *lines[0].split()]
    output = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1800,
                            check=False).stdout
    failed = re.findall(r'^not ok \d+ +[-+] (\S+)', output, re.M) + re.findall(r'^test (\S+) +\.\.\. FAILED', output, re.M)
    passed = re.findall(r'^ok \d+ +[-+] \S+', output, re.M) + re.findall(r'^test \S+ +\.\.\. ok', output, re.M)
    check(passed, ' '.join(command) + output[-3000:])
    return failed, len(passed)


def result_of(folder, name):
    """RUM's rum_validate reads an operator's number from memory that is not its own, so that may be any."""
    path = next(path for path in (os.path.join(folder, part, name + '.out') for part in ('results', 'test/results'))
                if os.path.exists(path))
    with open(path, errors='replace') as file:
        return re.sub(r'(ERROR:  unrecognized operator: )-?\d+', r'\1?', file.read())


def tap_files(name):
    """Those that say something about WAL and insertions in the short run, all in the long one."""
    folder = os.path.join(options.work, 'build', name)
    found = [os.path.join(folder, part, file) for part in ('t', 'test/t') if os.path.isdir(os.path.join(folder, part))
             for file in sorted(os.listdir(os.path.join(folder, part))) if file.endswith('.pl')]
    if options.full:
        return found
    return [path for path in found if re.search(r'bloom.*wal', path)]


def own_tap(name):
    files = tap_files(name)
    if not files:
        return ''
    folder = os.path.join(options.work, 'build', name)
    libraries = config(options.pg_config, 'pkglibdir')[0]
    # the server's own modules come first: pgvector has some of the same names, for servers that have none
    perl = libraries + '/pgxs/src/test/perl'
    run('prove', '-I', perl, '-I', os.path.join(folder, 'test/perl'), *files, cwd=folder, timeout=7200,
        env={'TESTDIR': folder, 'TESTDATADIR': folder + '/tmp_check', 'TESTLOGDIR': folder + '/tmp_check/log',
             'PATH': options.copy_bindir + ':' + os.environ['PATH'], 'PGPORT': '65433',
             'PERL5LIB': perl, 'PG_REGRESS': libraries + '/pgxs/src/test/regress/pg_regress',
             'top_builddir': folder, 'PG_CONFIG': options.copy})
    return ', %d files of TAP' % len(files)


@test
def bloom():
    """its own tests"""
    return own_suite('bloom') + own_tap('bloom')


@test
def rum():
    """its own tests"""
    check(options.rum or not options.full, 'no source of RUM')
    return own_suite('rum') + own_tap('rum') if options.rum else 'left out: no source'


@test
def pgvector():
    """its own tests"""
    return own_suite('vector') + own_tap('vector') if options.pgvector else \
        'left out: PGVECTOR_SRC does not name a source'


# ---- crashes, replay -------------------------------------------------------

def prepare_load(node, name):
    database = 'load_' + name
    node.sql('CREATE DATABASE ' + database)
    node.sql('CREATE EXTENSION ' + name, TABLE[name], LOADS[name][0], INSERT[name] % 1500, database=database)
    return database


def start_load(node, name, database):
    """Insertions, changes, and VACUUM, until the server is gone."""
    script = os.path.join(options.work, name + '.load')
    with open(script, 'w') as file:
        for i in range(2000):
            file.write(INSERT[name] % 20 + ';\n')
            if i % 5 == 4:
                file.write(UPDATE[name] % (i % 17) + ';\n')
            if i % 20 == 19:
                file.write('DELETE FROM t WHERE id %% 13 = %d;\nVACUUM t;\n' % (i % 13))
    return subprocess.Popen([os.path.join(node.bindir, 'psql'), '-XAtq', '-d', database, '-f', script, *node.connection()],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)


def same_answers(node, name, database):
    """The index finds what the table has."""
    for query in LOADS[name][1]:
        by_index = node.sql('SET enable_seqscan = off', query, database=database)
        by_table = node.sql('SET enable_indexscan = off', 'SET enable_bitmapscan = off', query, database=database)
        check(by_index == by_table, '%s: %s by index, %s by table' % (query, by_index, by_table))
    if name == 'vector':
        found = node.number(
            'WITH q AS (SELECT v FROM t LIMIT 20) SELECT avg((SELECT (t.v <-> q.v = 0)::int FROM t ORDER BY t.v <-> q.v LIMIT 1))'
            ' FROM q', database)
        check(found > 0.8, 'a vector is found by itself in %.2f of all cases only' % found)


@test
def crashes():
    """kill -9 under load, again and again"""
    pair = Pair.start()
    rounds = 20 if options.full else 2
    rng = random.Random(options.seed)
    databases = {name: prepare_load(pair.primary, name) for name, _ in extensions()}
    for _ in range(rounds):
        loads = [start_load(pair.primary, name, database) for name, database in databases.items()]
        time.sleep(1 + 2 * rng.random())
        pair.primary.kill()
        for load in loads:
            load.wait()
        pair.primary.start()
        for name, database in databases.items():
            same_answers(pair.primary, name, database)
    pair.primary.no_crash()
    pair.wait()
    rows = [pair.primary.sql('SELECT count(*) FROM t', database=database) for database in databases.values()]
    return '%d rounds; rows: %s' % (rounds, ', '.join(rows))


def without_hole(page):
    """LSN and checksum may differ, and what is between lower and upper is nobody's."""
    lower, upper = int.from_bytes(page[12:14], 'little'), int.from_bytes(page[14:16], 'little')
    return page[10:lower] + page[upper:] if lower <= upper <= PAGE else page[10:]


def index_files(node):
    """Of all indexes of the extensions' access methods."""
    files = []
    for database in node.sql('SELECT datname FROM pg_database WHERE datallowconn').split():
        files += node.sql("SELECT pg_relation_filepath(c.oid) FROM pg_class c JOIN pg_am a ON a.oid = c.relam"
                          " WHERE c.relkind = 'i' AND c.relpersistence = 'p' AND amname IN ('bloom', 'rum', 'hnsw', 'ivfflat')"
                          " AND pg_relation_size(c.oid) > 0 UNION SELECT pg_relation_filepath(oid) FROM pg_class"
                          " WHERE relname IN ('core', 'ours', 'bad', 'appended')", database=database).split()
    return files


@test
def replay():
    """the standby, which has nothing of pagedelta, has the same pages"""
    pair = Pair.start()
    pair.wait()
    check(not os.path.exists(os.path.join(config(options.pg_config, 'pkglibdir')[0], 'libpagedelta.a')) or
          options.own_library, 'the standby has the library')
    files = index_files(pair.primary)
    pair.primary.stop()
    time.sleep(1)
    pair.standby.stop()
    pages = 0
    for path in files:
        with open(os.path.join(pair.primary.data, path), 'rb') as a, open(os.path.join(pair.standby.data, path), 'rb') as b:
            for block, (x, y) in enumerate(itertools.zip_longest(*(iter(lambda f=f: f.read(PAGE), b'') for f in (a, b)))):
                # a block that nothing has been written to is not logged
                check((x and y) or not any(x or y), '%s has %s block %d on the standby' % (path, 'one more' if y else 'no', block))
                check(not x or not y or without_hole(x) == without_hole(y), '%s, block %d differs' % (path, block))
                pages += 1
    check(files and pages > 100, 'only %d files, %d pages' % (len(files), pages))
    for node in (pair.primary, pair.standby):
        node.no_crash()
        node.start()
    return '%d indexes, %d pages' % (len(files), pages)


# ---- page pairs ------------------------------------------------------------

KINDS = {
    'heap': ('CREATE TABLE t (id serial, n int, pad text)', 't'),
    'btree': ('CREATE TABLE t (id serial, n int, pad text); CREATE INDEX i ON t (n, pad)', 'i'),
    'gin': ("CREATE TABLE t (id serial, n int, pad text); CREATE INDEX i ON t USING gin (to_tsvector('simple', pad))"
            ' WITH (fastupdate = off)', 'i'),
    'bloom': ('CREATE EXTENSION bloom; CREATE TABLE t (id serial, n int, pad text); CREATE INDEX i ON t USING bloom (n, pad)',
              'i'),
    'rum': ("CREATE EXTENSION rum; CREATE TABLE t (id serial, n int, pad text);"
            " CREATE INDEX i ON t USING rum (to_tsvector('simple', pad) rum_tsvector_ops)", 'i'),
    'hnsw': ('CREATE EXTENSION vector; CREATE TABLE t (id serial, n int, pad text);'
             ' CREATE INDEX i ON t USING hnsw ((array_fill((hashint4(n) %% 1000)::real, ARRAY[16])::vector(16)) vector_l2_ops)',
             'i'),
    'inplace': ('CREATE EXTENSION inplace; CREATE TABLE t (id serial, n int, pad text) USING inplace', 't'),
}
CHANGES = ["INSERT INTO t (n, pad) SELECT random() * 100000, (SELECT string_agg('w' || (500 ^ random())::int, ' ') FROM"
           " generate_series(1, 3 + i %% 5)) FROM generate_series(1, %d) i", "UPDATE t SET n = n + 1 WHERE id %% 37 = %d",
           "UPDATE t SET pad = pad || ' w' || n WHERE id %% 41 = %d", "DELETE FROM t WHERE id %% 97 = %d"]


def read_pages(path):
    with open(path, 'rb') as file:
        data = file.read()
    return [data[i:i + PAGE] for i in range(0, len(data), PAGE)]


def record(node, kind, statement, relation, rounds):
    """Pages of one relation before and after each of many small loads."""
    database = 'pairs_' + kind
    node.sql('CREATE DATABASE ' + database)
    node.sql(*statement.replace('%%', '%').split(';'), database=database)
    node.sql(CHANGES[0] % 500, database=database)
    rng = random.Random(options.seed)
    last, count = [], 0
    with open(os.path.join(options.pairs, kind + '.pairs'), 'wb') as output:
        for i in range(rounds):
            statements = [rng.choice(CHANGES) % rng.randrange(1, 30) for _ in range(3)]
            if i % 20 == 19:
                statements.append('VACUUM t')
            node.sql(*statements, 'CHECKPOINT', database=database)
            path = node.sql("SELECT pg_relation_filepath('%s')" % relation, database=database)
            pages = read_pages(os.path.join(node.data, path))
            for block, page in enumerate(pages):
                before = last[block] if block < len(last) else bytes(PAGE)
                if last and before != page and len(page) == PAGE:
                    output.write(before + page)
                    count += 1
            last = pages
    return count


def pairs():
    """page pairs of real relations, for pagedelta_test -p"""
    node = Node('pairs', options.copy_bindir, 5442, options.preload).start()
    have = {name for name, _ in extensions()}
    counts = []
    for kind, (statement, relation) in KINDS.items():
        needed = {'hnsw': 'vector'}.get(kind, kind)
        if needed in ('rum', 'vector') and needed not in have or kind == 'inplace' and not options.preload:
            continue
        counts.append('%s %d' % (kind, record(node, kind, statement, relation, 150 if options.full else 10)))
    node.stop()
    return ', '.join(counts)


# ----------------------------------------------------------------------------

def read_options():
    global options
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--pg-config', required=True)
    parser.add_argument('--work', required=True, help='a folder that does not exist yet')
    parser.add_argument('--source', required=True)
    parser.add_argument('--rum', default='')
    parser.add_argument('--pgvector', default='')
    parser.add_argument('--pairs')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--full', action='store_true')
    parser.add_argument('--only', action='append', choices=[function.__name__ for function in [*tests, pairs]])
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)
    options.copy = servers.copy_server(options.pg_config, os.path.join(options.work, 'server'))
    options.bindir, libraries = config(options.pg_config, 'bindir', 'pkglibdir')
    options.own_library = os.path.exists(os.path.join(libraries, 'libpagedelta.a'))
    options.copy_bindir = os.path.dirname(options.copy)
    options.preload = ''
    if options.pairs and os.path.exists(os.path.join(libraries, 'inplace.so')):
        options.preload = "shared_preload_libraries = 'inplace'\n"


def main():
    read_options()
    failed = 0
    chosen = tests + ([pairs] if options.pairs else [])
    for function in chosen:
        if options.only and function.__name__ not in ['build', *options.only]:
            continue
        start = time.time()
        try:
            remark = function()
            print('ok    %-20s %5.1f s  %s' % (function.__name__, time.time() - start, remark), flush=True)
        except (Failure, subprocess.SubprocessError, OSError) as error:
            failed += 1
            print('FAIL  %-20s %5.1f s\n%s' % (function.__name__, time.time() - start, error), flush=True)
            if not isinstance(error, Failure):
                traceback.print_exc(file=sys.stdout)
            if function is build:
                break
    for node in (Pair.primary, Pair.standby):
        if node is not None and node.running():
            node.stop('immediate', check=False, stderr=subprocess.DEVNULL)
    sys.exit(failed > 0)


main()
