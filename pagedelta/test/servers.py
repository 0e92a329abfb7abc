"""Copies of a server, and extensions that are built for them with pagedelta or without."""
import os
import shutil
import subprocess

PAGEDELTA = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILT = shutil.ignore_patterns('build', '*.o', '*.a', '*.so', '*.bc', 'results', 'tmp_check')


class Failure(Exception):
    pass


def run(*command, cwd=None, env=None, timeout=1800):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=cwd, timeout=timeout,
                          env={**os.environ, **(env or {})}, errors='replace', stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Failure('%s: exit code %d\n%s' % (' '.join(command), done.returncode, done.stdout[-4000:]))
    return done.stdout


def config(pg_config, *names):
    return run(pg_config, *('--' + name for name in names)).splitlines()


def server_folders(pg_config):
    """Its folders, and the one that they all are in."""
    folders = config(pg_config, 'bindir', 'sharedir', 'pkglibdir', 'includedir-server')
    return folders, os.path.commonpath(folders)


def copied(pg_config, folder):
    """The pg_config of the copy there."""
    folders, root = server_folders(pg_config)
    return os.path.join(folder, os.path.relpath(folders[0], root), 'pg_config')


def copy_server(pg_config, folder):
    """A copy that finds its own files, because they lie to each other as they did before; its pg_config."""
    folders, root = server_folders(pg_config)
    for path in folders:
        shutil.copytree(path, os.path.join(folder, os.path.relpath(path, root)), dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns('bitcode', 'doc'))
    return copied(pg_config, folder)


def make(pg_config, folder, *arguments):
    return run('make', '-s', '-j2', '-C', folder, 'USE_PGXS=1', 'with_llvm=no', 'PG_CONFIG=' + pg_config, *arguments)


def install_library(pg_config, folder):
    """Builds pagedelta in this folder, with the functions of the tests, and installs it."""
    for part in ('pagedelta', 'common'):
        shutil.copytree(os.path.join(PAGEDELTA, '..', part), os.path.join(folder, part), ignore=BUILT)
    make(pg_config, os.path.join(folder, 'pagedelta'), 'install')
    make(pg_config, os.path.join(folder, 'pagedelta/test/server'))


def mapped(pg_config, optimize=''):
    """What an extension is made with.  pgvector's OPTFLAGS would make code for this very machine."""
    includes, libraries = config(pg_config, 'includedir-server', 'pkglibdir')
    return ['OPTFLAGS=', 'COPT=%s -I%s/extension/pagedelta -include pagedelta_generic_xlog.h' % (optimize, includes),
            'PG_LDFLAGS=%s/libpagedelta.a' % libraries]


def build_extension(pg_config, source, folder, words):
    shutil.copytree(source, folder, ignore=BUILT)
    make(pg_config, folder, 'install', *words)
