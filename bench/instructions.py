#!/usr/bin/env python3
"""Instructions that statements take, heap and inplace side by side.

    ./run.sh bench instructions [options] [row ...]
    instructions.py --pg-config P [options] [row ...]   a server that has inplace and pbtree installed, of any build

A row of ROWS is a setup and some measured statements.  It runs on a cluster of its own, in a standalone backend (postgres --single) under
callgrind: no other process is there, so the counts of two runs differ by less than 1 in 500, however busy the machine is.  What others would do, a
prepared transaction does.  Counts are those of all that the statement takes, planning and COMMIT too, by row or by transaction.  Three systems: heap
with btree, inplace with btree, and, where the setup makes an index that may be either's, inplace with pbtree.

Prints a table, and writes instructions.json into the folder of --out.  With --compare, of a former run's file, each figure is followed by its ratio to
that run's; heap's says what is not the extension's.  With --keep callgrind's files stay, for callgrind_annotate: FOLDER/ROW.SYSTEM.N, where N is 2 for the
row's first measured statement, 4 for the second, and so on.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'test/lib'))
import throwaway  # noqa: E402  (the folder of tests is no package)

SYSTEMS = {'heap': ('heap', 'btree'), 'inplace': ('inplace', 'btree'), 'pbtree': ('inplace', 'pbtree')}
SETTINGS = """
shared_preload_libraries = 'inplace,pbtree'
default_table_access_method = heap
autovacuum = off
fsync = off
jit = off
max_prepared_transactions = 10
max_parallel_workers_per_gather = 0
max_wal_size = 8GB
"""
# callgrind writes a file whenever this function is called, so two of these statements are around each that is measured.  It can be found in a
# stripped server, too.
MARK = 'pg_backend_pid'
NARROW = 'CREATE TABLE t (a int, b int); INSERT INTO t SELECT g, 0 FROM generate_series(1, 20000) g; VACUUM ANALYZE t'
WIDER = """CREATE TABLE t (id int, a int, b int, c text, d timestamptz, n int);
INSERT INTO t SELECT g, g, g, md5(g::text), '2020-01-01', 0 FROM generate_series(1, 20000) g; VACUUM ANALYZE t"""
KEYED = """CREATE TABLE t (id int PRIMARY KEY, k int, n int NOT NULL, pad text); CREATE SEQUENCE s START 100001;
INSERT INTO t SELECT g, g, 0, repeat('x', 60) FROM generate_series(1, 20000) g; CREATE INDEX t_k ON t USING {index} (k); VACUUM ANALYZE t"""
PLAIN = KEYED.replace('CREATE INDEX t_k ON t USING {index} (k); ', '')
CHILDREN = """CREATE TABLE p (id int PRIMARY KEY, n int); CREATE TABLE c (id int, p int REFERENCES p);
INSERT INTO p SELECT g, 0 FROM generate_series(1, %d) g; VACUUM ANALYZE p; INSERT INTO c SELECT g, 1 + g %% 50 FROM generate_series(1, 100) g"""
QUEUE = """CREATE TABLE q (id int PRIMARY KEY, state int NOT NULL DEFAULT 0, pad text);
INSERT INTO q SELECT g, 0, md5(g::text) FROM generate_series(1, %d) g; VACUUM ANALYZE q"""
TAKE = 'SELECT id INTO STRICT r FROM q WHERE state = 0 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED; '
OTHER = "BEGIN; %s; PREPARE TRANSACTION 'other'"
HELD = 'CREATE TABLE other (a int); ' + OTHER % 'INSERT INTO other VALUES (1)'
BENCH = """CREATE TABLE accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84)) WITH (fillfactor = 90);
CREATE TABLE history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22)); VACUUM ANALYZE history;
INSERT INTO accounts SELECT g, 1, 0, '' FROM generate_series(1, 20000) g; VACUUM ANALYZE accounts"""
SIMPLE_UPDATE = """UPDATE accounts SET abalance = abalance + 1 WHERE aid = r; PERFORM abalance FROM accounts WHERE aid = r;
INSERT INTO history (tid, bid, aid, delta, mtime) VALUES (1, 1, r, 1, now());"""
# words: 110 kB, which compress
TEXTS = """SET default_toast_compression = %s; CREATE TABLE s (id int, d bytea STORAGE EXTERNAL) USING heap; CREATE TABLE t (id int PRIMARY KEY, d bytea);
INSERT INTO s SELECT i, (SELECT string_agg((ARRAY['alpha', 'beta', 'order', 'status', 'customer', 'street', 'number', 'payment', 'total', 'amount', 'pending'])
[1 + abs(hashint8(i::int8 * 31 + g)) %% 11] || abs(hashint8(g * 131 + i)) %% 1000, ' ')::bytea FROM generate_series(1, 12000) g) FROM generate_series(1, 20) i;
INSERT INTO t SELECT 0, d FROM s LIMIT 1"""


def texts(method):
    return (TEXTS % method, (f'INSERT of texts of 110 kB, {method}', 'INSERT INTO t SELECT id, d FROM s', 20),
            ('SELECT of them', "SELECT sum(octet_length(d || '')) FROM t WHERE id > 0", 20),
            ('substr of them', 'SELECT sum(octet_length(substr(d, 50000, 100))) FROM t WHERE id > 0', 20),
            ('change inside', "UPDATE t SET d = overlay(d placing 'changed' from 40000 for 7) WHERE id > 0", 20),
            ('DELETE', 'DELETE FROM t WHERE id > 0', 20))


SCAN, LOCK = 'SELECT sum(n) FROM t', 'SELECT count(*) FROM (SELECT 1 FROM t FOR %s) locked'
UPSERT = 'ON CONFLICT (id) DO UPDATE SET n = t.n + 1'


def loop(count, body, most=20000):
    """A call of a procedure that runs a body for so many random r, a transaction each; and what makes it, to come in front."""
    return ('CREATE OR REPLACE PROCEDURE work(times int) LANGUAGE plpgsql AS $$ DECLARE r int; BEGIN PERFORM setseed(0.5); COMMIT; '
            f'FOR i IN 1 .. times LOOP r := 1 + floor(random() * {most})::int; {body} COMMIT; END LOOP; END $$', count)


# by name: the setup, then (what, statement or loop, how many rows or transactions that is)
ROWS = {
    'lock_narrow': (NARROW, ('scan, two ints', 'SELECT sum(b) FROM t', 20000), ('FOR UPDATE of all', LOCK % 'UPDATE', 20000),
                    ('the scan after it', 'SELECT sum(b) FROM t', 20000), ('FOR UPDATE of all again', LOCK % 'UPDATE', 20000)),
    'lock_wider': (WIDER, ('scan, six columns', SCAN, 20000), ('FOR UPDATE of all', LOCK % 'UPDATE', 20000),
                   ('the scan after it', SCAN, 20000), ('FOR KEY SHARE of all', LOCK % 'KEY SHARE', 20000)),
    'lock_one': (PLAIN, ('FOR UPDATE of one row, and COMMIT', loop(1000, 'PERFORM 1 FROM t WHERE id = r FOR UPDATE;'), 1000),
                 ('FOR KEY SHARE of one row, and COMMIT', loop(1000, 'PERFORM 1 FROM t WHERE id = r FOR KEY SHARE;'), 1000)),
    'fk_few': (CHILDREN % 50, ('foreign key to 50 parents, one statement', 'INSERT INTO c SELECT g, 1 + g % 50 FROM generate_series(1, 5000) g', 5000),
               ('the same, a transaction each', loop(2000, 'INSERT INTO c VALUES (i, r);', 50), 2000)),
    'fk_many': (CHILDREN % 20000,
                ('foreign key to 20,000 parents, one statement', 'INSERT INTO c SELECT g, g * 7919 % 20000 + 1 FROM generate_series(1, 5000) g', 5000),
                ('the same, a transaction each', loop(2000, 'INSERT INTO c VALUES (i, r);'), 2000)),
    'fk_shared': (CHILDREN % 50 + '; ' + OTHER % 'SELECT count(*) FROM (SELECT 1 FROM p FOR KEY SHARE) locked',
                  ('50 parents that another has locked, one statement', 'INSERT INTO c SELECT g, 1 + g % 50 FROM generate_series(1, 5000) g', 5000),
                  ('the same, a transaction each', loop(2000, 'INSERT INTO c VALUES (i, r);', 50), 2000)),
    'queue': (QUEUE % 3000, ('queue: SKIP LOCKED, DELETE', loop(1000, TAKE + 'DELETE FROM q WHERE id = r;'), 1000)),
    'queue_update': (QUEUE % 3000, ('queue: SKIP LOCKED, UPDATE', loop(300, TAKE + 'UPDATE q SET state = 1 WHERE id = r;'), 300)),
    'queue_shared': (QUEUE % 3000 + '; ' + OTHER % 'SELECT count(*) FROM (SELECT 1 FROM q ORDER BY id LIMIT 8 FOR UPDATE) locked',
                     ('queue: 8 rows locked by another, DELETE', loop(300, TAKE + 'DELETE FROM q WHERE id = r;'), 300)),
    'upsert': (PLAIN, ('upsert of rows that are there, one statement', f"INSERT INTO t SELECT g, g, 0, '' FROM generate_series(1, 5000) g {UPSERT}", 5000),
               ('the same, a transaction each', loop(2000, f"INSERT INTO t VALUES (r, 0, 0, '') {UPSERT};"), 2000)),
    'indexed': (KEYED, ('UPDATE of an indexed column, rising, a transaction each', loop(2000, "UPDATE t SET k = nextval('s') WHERE id = r;"), 2000),
                ('the next as many', loop(2000, "UPDATE t SET k = nextval('s') WHERE id = r;"), 2000)),
    'indexed_all': (KEYED, ('UPDATE of an indexed column of all', 'UPDATE t SET k = k + 20000', 20000), ('again', 'UPDATE t SET k = k + 20000', 20000)),
    'update': (PLAIN, ('UPDATE by key, no other index, a transaction each', loop(2000, 'UPDATE t SET n = n + 1 WHERE id = r;'), 2000)),
    'update_narrow': (NARROW, ('UPDATE of all, two ints', 'UPDATE t SET b = b + 1', 20000), ('again', 'UPDATE t SET b = b + 1', 20000)),
    'update_wider': (WIDER, ('UPDATE of all, six columns', 'UPDATE t SET n = n + 1', 20000), ('again', 'UPDATE t SET n = n + 1', 20000),
                     ('the scan after it', SCAN, 20000)),
    'simple_update': (BENCH, ('simple-update', loop(2000, SIMPLE_UPDATE), 2000)),
    'held': (BENCH + '; ' + HELD, ('simple-update under a held snapshot', loop(4000, SIMPLE_UPDATE), 4000),
             ('scan of what it left', 'SELECT sum(abalance) FROM accounts', 20000)),
    'lookup': (PLAIN, ('lookup by key, a transaction each', loop(2000, 'PERFORM n FROM t WHERE id = r;'), 2000),
               ('range by the key', 'SELECT sum(n) FROM t WHERE id BETWEEN 1000 AND 6000', 5001)),
    'range': (KEYED, ('range by another index', 'SELECT sum(n) FROM t WHERE k BETWEEN 1000 AND 6000', 5001),
              ('index-only', 'SELECT count(*) FROM t WHERE k BETWEEN 1000 AND 6000', 5001)),
    'analyze': (WIDER, ('ANALYZE', 'ANALYZE t', 20000)),
    'delete': (NARROW, ('DELETE of half', 'DELETE FROM t WHERE a % 2 = 0', 10000), ('VACUUM after it', 'VACUUM t', 20000)),
    'rollback': (NARROW + '; BEGIN; UPDATE t SET b = b + 1; ROLLBACK', ('VACUUM after a rolled-back UPDATE of all', 'VACUUM t', 20000)),
    'rollback_wider': (WIDER + '; BEGIN; UPDATE t SET n = n + 1; ROLLBACK', ('VACUUM after a rolled-back UPDATE of all, six columns', 'VACUUM t', 20000)),
    'insert': (KEYED, ('INSERT ... SELECT, two indexes', "INSERT INTO t SELECT g, g, 0, repeat('x', 60) FROM generate_series(20001, 40000) g", 20000),
               ('VACUUM after it', 'VACUUM t', 40000)),
    'texts_pglz': texts('pglz'),
    'texts_lz4': texts('lz4'),
}
PLANS = 'SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan'


def script(am, index, setup, measured):
    """What a standalone backend reads with -j: an empty line ends a statement."""
    statements = [f'SET default_table_access_method = {am}', *PLANS.split('; '), *setup.format(index=index).split('; ')]
    statements = [part for statement in statements for part in statement.split(';\n')]
    for _, work, _ in measured:
        if isinstance(work, tuple):
            procedure, count = work
            statements += [procedure, 'CALL work(50)']
            work = f'CALL work({count})'
        elif work.startswith('SELECT') and 'FOR' not in work:
            statements.append(work)
        statements += [f'SELECT {MARK}()', work, f'SELECT {MARK}()']
    return ''.join(statement + ';\n\n' for statement in statements)


class Bench:
    def __init__(self, pg_config, keep):
        self.bindir = subprocess.run([pg_config, '--bindir'], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        self.version = subprocess.run([pg_config, '--version'], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        self.keep, self.folder = keep, tempfile.mkdtemp(prefix='pg_inplace.', dir='/tmp')
        self.template = os.path.join(self.folder, 'template')
        cluster = throwaway.Cluster(self.bindir, self.template, self.folder, os.path.join(self.folder, 'log'))
        cluster.create(SETTINGS)
        self.backend([], self.template, 'CREATE EXTENSION inplace;\n\nCREATE EXTENSION pbtree;\n\n')

    def backend(self, wrapper, data, statements):
        """A standalone backend's run."""
        done = subprocess.run([*wrapper, os.path.join(self.bindir, 'postgres'), '--single', '-j', '-D', data, 'postgres'], input=statements,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=self.folder, **throwaway.server_user())
        faults = re.findall(r'^.*(?:ERROR|FATAL|PANIC): .*', done.stderr, re.MULTILINE)
        if faults or done.returncode:
            raise SystemExit('\n'.join(faults) or done.stderr)

    def measure(self, name, system):
        """Instructions of each of the row's statements on a system, as they are."""
        setup, *measured = ROWS[name]
        data, out = (os.path.join(self.folder, f'{what}.{name}.{system}') for what in ('data', 'callgrind'))
        subprocess.run(['cp', '-a', self.template, data], check=True)
        self.backend(['valgrind', '--tool=callgrind', '-q', f'--dump-before={MARK}', f'--callgrind-out-file={out}'], data,
                     script(*SYSTEMS[system], setup, measured))
        shutil.rmtree(data)
        found = []
        for number in range(len(measured)):
            text = Path(f'{out}.{2 * number + 2}').read_text(encoding='utf-8')
            found.append(int(re.search(r'^(?:totals|summary): (\d+)', text, re.MULTILINE)[1]))
            if self.keep:
                self.keep.mkdir(parents=True, exist_ok=True)
                # callgrind_annotate takes a call that goes on for one that has cost all
                (self.keep / f'{name}.{system}.{2 * number + 2}').write_text(re.sub(r'calls=0 .*\n.*\n', '', text), encoding='utf-8')
        return found


def run(bench, names, jobs, path):
    """{row: {statement: {system: instructions of one}}}, written as it grows."""
    tasks = [(name, system) for name in names for system in SYSTEMS if system != 'pbtree' or '{index}' in ROWS[name][0]]
    results = {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for (name, system), found in zip(tasks, pool.map(lambda task: bench.measure(*task), tasks)):
            for number, ((what, _, count), total) in enumerate(zip(ROWS[name][1:], found)):
                results.setdefault(name, {}).setdefault(f'{number + 1}. {what}', {})[system] = round(total / count)
            path.write_text(json.dumps({'server': bench.version, 'rows': results}, indent=1), encoding='utf-8')
            print(f'{name}, {system}', file=sys.stderr, flush=True)
    return results


def table(results, former):
    """Lines of Markdown."""
    heads = ['row', 'what', 'heap', 'inplace', 'ratio', 'with pbtree', 'ratio'] + ['heap/former', 'inplace/former', 'pbtree/former'] * bool(former)
    yield from ('| %s |' % ' | '.join(heads), '|' + '---|' * len(heads))
    for name, statements in results.items():
        for what, found in statements.items():
            cells, before = [name, what, f'{found["heap"]:,}'], former.get(name, {}).get(what, {})
            for system in ('inplace', 'pbtree'):
                cells += [f'{found[system]:,}', f'{found[system] / found["heap"]:.2f}'] if system in found else ['', '']
            if former:
                cells += [f'{found[system] / before[system]:.3f}' if system in found and system in before else '' for system in SYSTEMS]
            yield '| %s |' % ' | '.join(cells)


def main():
    parser = argparse.ArgumentParser(prog='./run.sh bench instructions', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('rows', nargs='*', metavar='row', help='of %s (all)' % ', '.join(ROWS))
    parser.add_argument('--pg-config', default=os.environ.get('PG_CONFIG', 'pg_config'), help='of the server that is measured (PG_CONFIG, or that on the PATH)')
    parser.add_argument('--out', type=Path, default=Path('.'), help='folder for instructions.json')
    parser.add_argument('--compare', type=Path, metavar='FILE', help='the instructions.json of a former run')
    parser.add_argument('--keep', type=Path, metavar='FOLDER', help="for callgrind's files")
    parser.add_argument('--jobs', type=int, default=os.cpu_count(), help='so many backends at once (%(default)s)')
    args = parser.parse_args()
    unknown = [name for name in args.rows if name not in ROWS]
    if unknown:
        parser.error('no row %s' % ', '.join(unknown))
    args.out.mkdir(parents=True, exist_ok=True)
    former = json.loads(args.compare.read_text(encoding='utf-8'))['rows'] if args.compare else {}
    bench = Bench(args.pg_config, args.keep)
    try:
        results = run(bench, args.rows or list(ROWS), args.jobs, args.out / 'instructions.json')
    finally:
        shutil.rmtree(bench.folder)
    print(*table(results, former), sep='\n')


if __name__ == '__main__':
    main()
