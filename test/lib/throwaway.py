"""Throwaway clusters for tests in Python; test/cluster.sh is the same for shell scripts."""
import os
import pwd
import subprocess


def server_user():
    """What subprocess needs to run a program as the server's user: the server refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    users = {entry.pw_name: entry for entry in pwd.getpwall()}
    user = users.get('postgres') or users['nobody']
    return {'user': user.pw_uid, 'group': user.pw_gid, 'extra_groups': []}


class Cluster:
    """A server whose data are in one folder, and its socket in another; it listens on no TCP port."""

    def __init__(self, bindir, data, socket, log, port=5432, env=None):
        self.bindir, self.data, self.socket, self.log_file, self.port = bindir, data, socket, log, port
        self.env = {**os.environ, **(env or {})}

    def tool(self, name, *arguments, **options):
        """Runs one of the server's programs."""
        return subprocess.run([os.path.join(self.bindir, name), *arguments],
                              **{'check': True, 'stdin': subprocess.DEVNULL, 'env': self.env, 'cwd': self.socket,
                                 **server_user(), **options})

    def connection(self):
        return ['--host', self.socket, '--port', str(self.port), '--username', 'postgres']

    def create(self, settings='', initdb=()):
        """An empty cluster that does not run yet."""
        if os.geteuid() == 0:
            for folder in {self.socket, os.path.dirname(self.data)}:
                os.chown(folder, server_user()['user'], server_user()['group'])
        self.tool('initdb', '-D', self.data, '-U', 'postgres', '-A', 'trust', '-N', '--no-locale', '-E', 'UTF8', *initdb,
                  stdout=subprocess.DEVNULL)
        self.place(settings)

    def place(self, settings=''):
        """The settings of a cluster of its own, also for a copy of another.  Where scans are chosen by enable_seqscan, JIT
        compilation would take most of the time."""
        self.configure("listen_addresses = ''\nport = %d\nunix_socket_directories = '%s'\njit = off\n%s"
                       % (self.port, self.socket, settings))

    def configure(self, text):
        with open(os.path.join(self.data, 'postgresql.conf'), 'a') as conf:
            conf.write(text + '\n')

    def pg_ctl(self, *arguments, **options):
        return self.tool('pg_ctl', '-s', '-w', '-t', '300', '-D', self.data, *arguments,
                         **{'stdout': subprocess.DEVNULL, **options})

    def start(self, **options):
        self.pg_ctl('-l', self.log_file, 'start', **options)
        return self

    def stop(self, mode='fast', **options):
        self.pg_ctl('-m', mode, 'stop', **options)

    def running(self):
        return os.path.exists(os.path.join(self.data, 'postmaster.pid'))

    def log(self):
        with open(self.log_file, errors='replace') as file:
            return file.read()
