"""PostgreSQL's own suites on a server on which CREATE INDEX makes a pbtree where it would make a btree (force/).

What they print is compared, statement by statement, with what they print on the same server with btree, and with what
PostgreSQL expects: test/core/compare.py.  What may differ is in allow/SUITE/TEST.allow; that an index is called a pbtree
is no difference.  In the end each pbtree is looked at, with each row of its table.
"""
import os
import re
import shutil
import sys
import zlib

from basics import Failed, build_force, test

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'core'))
import cluster  # noqa: E402
import compare  # noqa: E402
import core  # noqa: E402
import suites  # noqa: E402

INDEXES = """
SELECT i.oid, i.oid::regclass FROM pg_class i JOIN pg_index x ON x.indexrelid = i.oid JOIN pg_am m ON m.oid = i.relam
WHERE m.amname = 'pbtree' AND x.indisvalid AND x.indisready AND i.relkind = 'i' AND i.relpersistence <> 't'
AND (%s OR i.relpersistence = 'p') ORDER BY i.oid
"""
# core makes constraints of unique indexes of these tables, or attaches them to such; those have to be btrees
CONSTRAINTS = ('ataddindex cnn_pk cnn_uq concur_reindex_tab covering_index_heap cwi_test idxpart1 t tbl_include_box tbl_include_unique1 '
               'temporal3 testpub_addpk').replace(' ', ', ')
NAMES = {'regress': suites.Regress, 'isolation': suites.Isolation}


def squeezed(lines):
    """Without what follows from the length of the access method's name."""
    return [re.sub('-+', '-', line.replace('pbtree', 'btree').replace(' ', '')) for line in lines]


def only_more(d):
    """Are there only rows more, about pbtree itself?  In a catalog's rows it is an OID that initdb did not give."""
    more = [line for line in d.test.lines if 'pbtree' in line or re.match(r' +1[6-9]\d{3} \|', line)]
    rest = [line for line in d.test.lines if line not in more]
    rows = lambda lines: squeezed(line for line in lines if not re.match(r'\(\d+ rows?\)', line))
    return bool(more) and rows(rest) == rows(d.heap.lines)


class Node(cluster.Node):
    """A server with pbtree for btree, or without."""

    def begin(self, forced, library):
        super().create(cluster.SETTINGS)
        if forced:
            self.configure("shared_preload_libraries = 'pbtree, %s'\nwal_consistency_checking = 'pbtree'" % library)
            self.configure("force_pbtree.unique_stays_btree = '%s'" % CONSTRAINTS)
        self.start()
        if forced:
            self.query('ALTER DATABASE template0 ALLOW_CONNECTIONS true')
            for database in ('template0', 'template1', 'postgres'):
                self.query('CREATE EXTENSION pbtree SCHEMA pg_catalog', database)
            self.query('ALTER DATABASE template0 ALLOW_CONNECTIONS false')


def run_suite(tests, suite, folder, name, library):
    """Its outputs' folder; the server goes on."""
    os.makedirs(folder)
    node = Node(suite.server.bindir, folder, 'server', 5432)
    tests.clusters.append(node)
    node.begin(name == 'forced', library)
    suite.run(node, os.path.join(folder, 'output'))
    return node, os.path.join(folder, 'output')


def reference(tests, suite, folder):
    """What btree prints, kept from one run to the next if there is a place for it."""
    kept = tests.args.keep and os.path.join(tests.args.keep, 'btree-%s-%s-%08x' % (
        suite.name, suite.server.version.replace(' ', '_'), zlib.crc32(' '.join(suite.tests).encode())))
    if kept and os.path.exists(os.path.join(kept, 'complete')):
        return kept
    node, output = run_suite(tests, suite, folder, 'btree', None)
    node.stop('immediate')
    tests.clusters.remove(node)
    if kept:
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(output, kept)
        open(os.path.join(kept, 'complete'), 'w').close()
    return output


def differences(suite, name, output, known, allowed):
    """What a test prints otherwise and may not."""
    result = suite.result(output, name)
    references = [found for found in [suite.result(known, name)] if found] + compare.variants(os.path.join(suite.folder, 'expected'), name)
    if result is None or not references:
        return ['no output']
    if any(squeezed(result) == squeezed(found) for found in references):
        return []
    found = compare.compare_test(name, result, references, suite.blocks(name), allowed)
    refused = [(entry.statement, entry.lines) for entry in allowed.tests.get(name, []) if entry.kind == 'refused']
    return [d for d in found if not d.entry and squeezed(d.heap.lines) != squeezed(d.test.lines) and not only_more(d)
            and (d.heap.statement, d.test.lines) not in refused]


def suggest(folder, name, bad):
    path = os.path.join(folder, name + '.allow')
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', errors='surrogateescape') as file:
        for entry in dict.fromkeys('\n'.join(d.suggestion()) for d in bad):
            file.write('#\n%s\n' % entry)


def run(tests, name):
    if not tests.args.source:
        raise Failed("PostgreSQL's source is needed: --source")
    folder = os.path.join(tests.args.work, name)
    os.makedirs(folder)
    server = core.Server(os.path.join(tests.args.bindir, 'pg_config'))
    suite = NAMES[name](server, tests.args.source, folder)
    suite.prepare()
    known = reference(tests, suite, os.path.join(folder, 'btree'))
    node, output = run_suite(tests, suite, os.path.join(folder, 'forced'), 'forced', build_force(server.pg_config, os.path.join(folder, 'force')))
    allowed = compare.AllowList(os.path.join(HERE, 'allow', name))
    wrong = 0
    for case in suite.tests:
        bad = differences(suite, case, output, known, allowed)
        wrong += bool(bad)
        if bad:
            print('\n'.join('    %s: %s' % (case, line) for d in bad for line in str(d).split('\n')), flush=True)
            if tests.args.suggest:
                suggest(os.path.join(tests.args.suggest, name), case, [d for d in bad if d != 'no output'])
    # a row is what is wrong
    count, damaged = cluster.check_all(node, INDEXES, "SELECT %s, n FROM pbtree_check(%s, true) n WHERE n < 0", 'pbtree_check')
    damaged += node.crashes()
    if wrong or damaged:
        raise Failed('%d of %d tests differ; %s' % (wrong, len(suite.tests), damaged[:3]))
    return '%d tests, %d pbtree indexes' % (len(suite.tests), count)


@test
def regress(tests):
    """PostgreSQL's regression suite with pbtree for btree."""
    return run(tests, 'regress')


@test
def isolation(tests):
    """PostgreSQL's isolation suite with pbtree for btree."""
    return run(tests, 'isolation')
