#!/usr/bin/python3
"""PostgreSQL's regression and isolation suites with default_table_access_method = inplace, with a standby attached."""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import zlib

import cluster
from compare import AllowList, compare_test
from modules import Contrib, Packages
from suites import Isolation, Regress

HERE = os.path.dirname(os.path.abspath(__file__))
SUITES = {suite.name: suite for suite in (Regress, Isolation, Contrib, Packages)}


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--pg-config', default='/usr/lib/postgresql/15/bin/pg_config')
    parser.add_argument('--source', required=True, help="PostgreSQL's unpacked source (fetch_source.sh)")
    parser.add_argument('--folder', default=None, help='a new folder for clusters and outputs; is deleted if all is well')
    parser.add_argument('--heap', default=None, help="a folder that keeps heap's outputs from one run to the next")
    parser.add_argument('--full', action='store_true', help='all tests, not only those of the file short')
    parser.add_argument('--report', default=None, help='write all differences to this file')
    parser.add_argument('--suggest', default=None, metavar='FOLDER',
                        help='write what the allow-list lacks to this folder; reasons are yours to find')
    parser.add_argument('suites', nargs='*', default=[], help='regress, isolation, contrib, packages, or single tests: isolation/NAME')
    return parser.parse_args()


class Server:
    def __init__(self, pg_config):
        ask = lambda what: subprocess.run([pg_config, what], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        self.pg_config, self.bindir, self.pkglibdir, self.version = (
            pg_config, ask('--bindir'), ask('--pkglibdir'), ask('--version'))
        self.extensions = os.path.join(ask('--sharedir'), 'extension')
        self.pgxs = os.path.join(self.pkglibdir, 'pgxs')


def short_list():
    """The tests of a short run: lines "suite" (all of it) or "suite/test" of the file short."""
    with open(os.path.join(HERE, 'short')) as file:
        return {line.strip() for line in file if line.strip() and not line.startswith('#')}


def chosen_tests(options, name):
    """None: all tests of the suite; else those wanted."""
    single = {arg.partition('/')[2] for arg in options.suites if arg.startswith(name + '/')}
    if single:
        return single
    if options.full or name not in ('regress', 'isolation'):
        return None
    if name in short_list():
        return None
    return {test.partition('/')[2] for test in short_list() if test.startswith(name + '/')}


def wanted(options, name):
    """The extensions' suites only if they are named."""
    if not options.suites:
        return name in ('regress', 'isolation')
    return any(arg.partition('/')[0] == name for arg in options.suites)


class Run:
    def __init__(self, options):
        self.options = options
        self.server = Server(options.pg_config)
        self.folder = options.folder or tempfile.mkdtemp(prefix='core_')
        self.failures = 0
        self.report = open(options.report, 'w', errors='surrogateescape') if options.report else None
        self.nodes = []

    def result(self, name, problem, remark):
        """A line for each test: ok or FAIL, its name, a remark; then what is wrong."""
        self.failures += bool(problem)
        print('%s %s %s' % ('FAIL' if problem else 'ok', name, remark), flush=True)
        for line in problem or []:
            print('    ' + line.encode(errors='backslashreplace').decode())

    # ---- heap's answers

    def heap_outputs(self, suite):
        """The folder of heap's outputs; a run on a cluster of its own, if they are not kept from an earlier one."""
        kept = self.options.heap and os.path.join(
            self.options.heap, '%s-%s-%08x' % (suite.name, self.server.version.replace(' ', '_'), zlib.crc32(' '.join(suite.tests).encode())))
        if kept and os.path.exists(os.path.join(kept, 'complete')):
            return kept
        output = kept or os.path.join(self.folder, 'heap_' + suite.name)
        shutil.rmtree(output, ignore_errors=True)
        folder = os.path.join(self.folder, 'heap')
        os.makedirs(folder)
        node = cluster.Primary(self.server.bindir, folder, 'primary', 5432)
        self.nodes.append(node)
        node.create(True, suite.libraries, suite.settings)
        suite.run(node, output)
        node.stop('immediate')
        self.nodes.remove(node)
        shutil.rmtree(folder)
        open(os.path.join(output, 'complete'), 'w').close()
        return output

    # ---- a suite

    def suite(self, name):
        suite = SUITES[name](self.server, self.options.source, self.folder, chosen_tests(self.options, name))
        suite.prepare()
        heap = self.heap_outputs(suite)
        folder = os.path.join(self.folder, name + '_cluster')
        os.makedirs(folder)
        primary = cluster.Primary(self.server.bindir, folder, 'primary', 5432)
        self.nodes.append(primary)
        primary.create(False, suite.libraries, suite.settings)
        standby = primary.attach_standby()
        self.nodes.append(standby)
        output = os.path.join(self.folder, name + '_output')
        suite.shift_tids()
        suite.run(primary, output)
        allowed = AllowList(os.path.join(HERE, 'allow', name))
        for test in suite.tests:
            self.compare(suite, test, heap, output, allowed)
        if self.options.full:
            unused = allowed.unused(suite.tests)
            print('\n'.join('# not needed this time: ' + entry for entry in unused))
        self.soundness(name, primary, standby)
        standby.stop()
        primary.stop()
        del self.nodes[:]

    def compare(self, suite, test, heap, output, allowed):
        name = '%s/%s' % (suite.name, test)
        result = suite.result(output, test)
        references = suite.references(test, suite.result(heap, test))
        if result is None or not references:
            return self.result(name, ['no output'], '')
        found = compare_test(test, result, references, suite.blocks(test), allowed)
        bad = [difference for difference in found if not difference.entry]
        if self.report:
            self.report.writelines('=== %s %s\n%s\n' % (name, d.entry.kind if d.entry else '-', d) for d in found)
        if bad and self.options.suggest:
            self.suggest(name, bad)
        self.result(name, [line for d in bad for line in str(d).split('\n')],
                    ', '.join(filter(None, [bad and '%d differences' % len(bad),
                                            len(found) > len(bad) and '%d allowed' % (len(found) - len(bad))])))

    def suggest(self, name, differences):
        path = os.path.join(self.options.suggest, name + '.allow')
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', errors='surrogateescape') as file:
            for entry in dict.fromkeys('\n'.join(d.suggestion()) for d in differences):
                file.write('#\n%s\n' % entry)

    # ---- afterwards

    def soundness(self, name, primary, standby):
        """Is what the suite leaves behind intact, on both nodes?"""
        try:
            cluster.settle_sequences(primary)
            cluster.install_amcheck(primary)
            primary.wait_for(standby)
            self.same_dump(name, primary, standby)
            for node in (primary, standby):
                for what, check in (('inplace_check', cluster.check_tables), ('amcheck', cluster.check_indexes)):
                    count, bad = check(node)
                    self.result('%s/%s' % (name, what), bad, '%d relations of the %s' % (count, node.name))
        except (subprocess.CalledProcessError, ConnectionError) as error:
            self.result('%s/soundness' % name, [str(error), str(getattr(error, 'stderr', ''))], 'broke off')
        for node in (primary, standby):
            self.result('%s/log' % name, node.crashes(), 'no crash of the ' + node.name)

    def same_dump(self, name, primary, standby):
        dumps = [cluster.dump(node) for node in (primary, standby)]
        different = [pair for pair in zip(*dumps) if pair[0] != pair[1]][:10]
        if len(dumps[0]) != len(dumps[1]):
            different.append(('%d lines' % len(dumps[0]), '%d lines' % len(dumps[1])))
        self.result('%s/dump' % name, ['%s <> %s' % pair for pair in different], '%d lines' % len(dumps[0]))

    def clean_up(self):
        for node in reversed(self.nodes):
            if node.running():
                node.stop('immediate')
        if not self.failures:
            shutil.rmtree(self.folder)


def main():
    options = parse_options()
    run = Run(options)
    try:
        for name in SUITES:
            if wanted(options, name):
                run.suite(name)
    finally:
        run.clean_up()
    return 1 if run.failures else 0


if __name__ == '__main__':
    sys.exit(main())
