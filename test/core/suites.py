"""Runs PostgreSQL's suites from copies of its sources."""
import os
import re
import shutil
import subprocess

import compare

REGRESS_MAKEFILE = """MODULES = regress
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)
"""


class Suite:
    """What regress and isolation have in common: a folder of inputs, a schedule, a driver.

    literal_tids: tests that name rows by TID.  On inplace they run with these where its rows are.
    libraries, settings: what the server needs besides.
    """
    libraries, settings = (), ''
    def __init__(self, server, source, folder, tests=None):
        self.server, self.folder = server, os.path.join(folder, self.name)
        self.source = os.path.join(source, 'src/test', self.name)
        with open(os.path.join(self.source, self.schedule)) as file:
            self.groups = [words for words in map(schedule_line, file) if words]
        if tests is not None:
            self.groups = [kept for kept in ([t for t in group if t in tests] for group in self.groups) if kept]
        self.tests = [test for group in self.groups for test in group]

    def prepare(self):
        for part in ('sql', 'specs', 'expected', 'data', 'resultmap'):
            path = os.path.join(self.source, part)
            if os.path.isdir(path):
                shutil.copytree(path, os.path.join(self.folder, part))
            elif os.path.exists(path):
                os.makedirs(self.folder, exist_ok=True)
                shutil.copy(path, self.folder)
        with open(os.path.join(self.folder, 'schedule'), 'w') as file:
            file.writelines('test: %s\n' % ' '.join(group) for group in self.groups)

    def shift_tids(self):
        """From now on the scripts are for inplace."""
        for test in self.literal_tids:
            path = os.path.join(self.folder, self.scripts % test)
            with open(path) as file:
                text = compare.move_tids(file.read())
            with open(path, 'w') as file:
                file.write(text)

    def references(self, test, heap):
        """Outputs that are right: heap's on this server, and those that PostgreSQL expects."""
        found = [heap] if heap else []
        found += compare.variants(os.path.join(self.folder, 'expected'), test)
        if test in self.literal_tids:
            found = [[compare.move_tids(line) for line in output] for output in found]
        return found

    def run(self, node, output):
        """The driver's own verdicts are not ours; what counts is the outputs in output/results."""
        os.makedirs(output)
        command = [os.path.join(self.server.pgxs, 'src/test', self.name, self.driver), '--bindir=' + self.server.bindir,
                   '--dlpath=' + self.library, '--inputdir=' + self.folder, '--outputdir=' + output,
                   '--host=' + node.folder, '--port=%d' % node.port, '--user=postgres', '--max-concurrent-tests=20',
                   '--schedule=' + os.path.join(self.folder, 'schedule')]
        with open(os.path.join(output, 'driver.log'), 'w') as log:
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=self.folder)

    def result(self, output, test):
        path = os.path.join(output, self.results, test + '.out')
        return compare.read_lines(path) if os.path.exists(path) else None


class Regress(Suite):
    name, schedule, driver, results = 'regress', 'parallel_schedule', 'pg_regress', 'results'
    scripts, literal_tids = 'sql/%s.sql', ('tid', 'tidscan', 'tidrangescan', 'rowsecurity')

    def prepare(self):
        super().prepare()
        self.library = build_library(self.server, self.source, self.folder)
        for module in ('refint.so', 'autoinc.so'):
            shutil.copy(os.path.join(self.server.pkglibdir, module), self.library)

    def blocks(self, test):
        """How to take an output of this test apart."""
        script = compare.read_lines(os.path.join(self.folder, 'sql', test + '.sql'))
        return lambda output: compare.sql_blocks(output, script)


class Isolation(Suite):
    name, schedule, driver, results = 'isolation', 'isolation_schedule', 'pg_isolation_regress', 'results'
    scripts, literal_tids = 'specs/%s.spec', ('eval-plan-qual',)

    def prepare(self):
        super().prepare()
        self.library = self.server.pkglibdir

    def blocks(self, test):
        return compare.spec_blocks


def build_library(server, source, folder):
    """The functions in C of the regression suite: the folder of the library."""
    library = os.path.join(folder, 'lib')
    os.makedirs(library)
    shutil.copy(os.path.join(source, 'regress.c'), library)
    with open(os.path.join(library, 'Makefile'), 'w') as file:
        file.write(REGRESS_MAKEFILE)
    subprocess.run(['make', '-s', '-C', library, 'PG_CONFIG=' + server.pg_config, 'with_llvm=no'], check=True)
    return library


def schedule_line(line):
    """The tests of a line; "ignore" only says that a test may fail."""
    match = re.match(r'test: *(.*)', line)
    return match.group(1).split() if match else None

