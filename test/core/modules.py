"""The suites of contrib's modules, and of other extensions whose sources are at hand."""
import os
import re
import shutil
import subprocess

import compare
import suites

# What the modules' own configuration files ask for, all together.
SETTINGS = """
wal_level = logical
max_replication_slots = 4
logical_decoding_work_mem = 64kB
autovacuum = off
archive_mode = on
archive_library = 'basic_archive'
basic_archive.archive_directory = '.'
compute_query_id = regress
"""
# A table that gets a free space map from inplace, too: it has more than four pages.
LARGER = {'pageinspect': ('sql/page.sql', 'VACUUM (DISABLE_PAGE_SKIPPING) test1;', 'INSERT INTO test1 SELECT 0, 0 FROM generate_series(1, 2000);')}
PRINT = 'print-tests:;@printf "%s\\n" "$(REGRESS)" "$(REGRESS_OPTS)" "$(ISOLATION)" "$(ISOLATION_OPTS)"'
ISOLATION = '-isolation'


class Module:
    """A folder with a PGXS makefile.  Its tests run in a database of their own, one after another."""
    def __init__(self, server, source):
        self.source, self.name = source, os.path.basename(source)
        lines = subprocess.run(['make', '-s', '-C', source, 'USE_PGXS=1', 'PG_CONFIG=' + server.pg_config, '--eval', PRINT,
                                'print-tests'], check=True, stdout=subprocess.PIPE, text=True).stdout.split('\n')
        self.regress, self.regress_options, self.isolation, self.isolation_options = (line.split() for line in lines[:4])
        subfolder = [option.partition('=')[2] for option in self.regress_options if option.startswith('--inputdir=')]
        self.input = os.path.join(self.name, *subfolder)
        libraries = [file for file in os.listdir(source) if file.endswith('.control')]
        self.installed = all(os.path.exists(os.path.join(server.extensions, file)) for file in libraries) and (
            bool(libraries) or os.path.exists(os.path.join(server.pkglibdir, self.name + '.so')))

    def tests(self):
        """Names: MODULE.TEST, MODULE.TEST-isolation."""
        return ['%s.%s' % (self.name, test) for test in self.regress] + \
            ['%s.%s%s' % (self.name, test, ISOLATION) for test in self.isolation]


def module_folders(source):
    """Where there is a makefile that names tests."""
    for name in sorted(os.listdir(source)):
        path = os.path.join(source, name, 'Makefile')
        if os.path.exists(path):
            with open(path) as file:
                if re.search(r'^(REGRESS|ISOLATION)\b', file.read(), re.M):
                    yield os.path.dirname(path)


class Modules(suites.Suite):
    """All modules of a folder, as one suite."""
    literal_tids = ()
    libraries, settings = ('pg_stat_statements',), SETTINGS

    def __init__(self, server, source, folder, tests=None):
        self.server, self.folder, self.source = server, os.path.join(folder, self.name), source
        self.modules = []
        for path in module_folders(os.path.join(source, self.subfolder)):
            module = Module(server, path)
            if tests is not None:
                chosen = lambda test: '%s.%s' % (module.name, test) in tests or module.name in tests
                module.regress = [test for test in module.regress if chosen(test)]
                module.isolation = [test for test in module.isolation if chosen(test + ISOLATION)]
            if not module.tests():
                continue
            if module.installed:
                self.modules.append(module)
            else:
                print('# %s/%s: skipped, not installed' % (self.name, module.name), flush=True)
        self.tests = [test for module in self.modules for test in module.tests()]

    def prepare(self):
        os.makedirs(self.folder)
        self.library = suites.build_library(self.server, os.path.join(self.source, 'src/test/regress'), self.folder)
        for module in self.modules:
            shutil.copytree(module.source, os.path.join(self.folder, module.name))
            if module.name in LARGER:
                name, before, added = LARGER[module.name]
                self.insert(os.path.join(self.folder, module.name, name), before, added)

    def insert(self, path, before, added):
        with open(path) as file:
            text = file.read()
        assert text.count(before) == 1, path
        with open(path, 'w') as file:
            file.write(text.replace(before, added + '\n' + before))

    def shift_tids(self):
        pass

    def place(self, test):
        """(module, name of the test there, is it one of isolation's?)"""
        name, _, test = test.partition('.')
        module = next(module for module in self.modules if module.name == name)
        isolation = test.endswith(ISOLATION)
        return module, test[:-len(ISOLATION)] if isolation else test, isolation

    def references(self, test, heap):
        module, name, _ = self.place(test)
        return ([heap] if heap else []) + compare.variants(os.path.join(self.folder, module.input, 'expected'), name)

    def blocks(self, test):
        module, name, isolation = self.place(test)
        if isolation:
            return compare.spec_blocks
        script = compare.read_lines(os.path.join(self.folder, module.input, 'sql', name + '.sql'))
        return lambda output: compare.sql_blocks(output, script)

    def result(self, output, test):
        module, name, isolation = self.place(test)
        path = os.path.join(output, module.name + (ISOLATION if isolation else ''), 'results', name + '.out')
        return compare.read_lines(path) if os.path.exists(path) else None

    def run(self, node, output):
        for module in self.modules:
            if module.regress:
                self.drive(node, module, os.path.join(output, module.name), module.name,
                           'regress/pg_regress', module.regress_options, module.regress)
            if module.isolation:
                self.drive(node, module, os.path.join(output, module.name + ISOLATION), module.name + ISOLATION,
                           'isolation/pg_isolation_regress', module.isolation_options, module.isolation)

    def drive(self, node, module, output, database, driver, options, tests):
        """The database keeps its data under another name, for the checks afterwards."""
        folder = os.path.join(self.folder, module.input)
        os.makedirs(output)
        command = [os.path.join(self.server.pgxs, 'src/test', driver), '--bindir=' + self.server.bindir,
                   '--dlpath=' + self.library, '--inputdir=' + folder, '--outputdir=' + output, '--dbname=contrib_regression',
                   '--host=' + node.folder, '--port=%d' % node.port, '--user=postgres']
        command += [option for option in options if option.startswith('--load-extension')]
        with open(os.path.join(output, 'driver.log'), 'w') as log:
            subprocess.run(command + tests, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=folder,
                           env=dict(os.environ, PATH=self.server.bindir + ':' + os.environ['PATH']))
        node.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity'
                   " WHERE datname = 'contrib_regression' AND backend_type = 'client backend'")
        node.query('ALTER DATABASE contrib_regression RENAME TO "%s"' % database)


class Contrib(Modules):
    name, subfolder = 'contrib', 'contrib'


class Packages(Modules):
    """Extensions' source packages, unpacked in a folder beside contrib."""
    name, subfolder = 'packages', 'packages'
    libraries, settings = ('pgaudit',), ''
