#!/usr/bin/env python3
"""Runs a command, and gives it up when it uses too much processor time, or none any more.

    limited.py [--folder DIR] [--cpu SECONDS] [--idle SECONDS] COMMAND ...

What counts is the processor time of the command's session and of the servers that run in DIR.  A second that passes
counts as idle to the part that a process gets of it, so that a slow or busy machine does not fail a test.
The exit status is the command's, or 124, and then the last line on stderr begins with "given up".
"""
import argparse
import os
import signal
import subprocess
import sys
import time

POLL = 0.5              # seconds
BUSY = 0.05             # a command with less than this part of a processor is idle: a server that waits has 0.01
PATIENCE = 60           # seconds until a command that does not end is killed
GIVEN_UP = 124
TICK = os.sysconf('SC_CLK_TCK')


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--folder', help='where the servers run that the command starts or uses')
    parser.add_argument('--cpu', type=float, default=1200)
    parser.add_argument('--idle', type=float, default=300)
    parser.add_argument('command', nargs=argparse.REMAINDER)
    return parser.parse_args()


def belongs(pid, session, command, folder):
    if session == command:
        return True
    try:
        return folder is not None and (os.readlink('/proc/%s/cwd' % pid) + '/').startswith(folder)
    except OSError:
        return False


def processor_seconds(command, folder):
    """Of the processes that are there now, and of those that they have waited for."""
    ticks = 0
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open('/proc/%s/stat' % pid, encoding='utf-8', errors='replace') as file:
                fields = file.read().rpartition(')')[2].split()
        except OSError:
            continue
        if belongs(pid, int(fields[3]), command, folder):
            ticks += sum(map(int, fields[11:15]))
    return ticks / TICK


def share():
    """The part of a processor that each process gets that wants one."""
    with open('/proc/loadavg', encoding='utf-8') as file:
        runnable = int(file.read().split()[3].partition('/')[0])
    return min(1.0, len(os.sched_getaffinity(0)) / max(1, runnable))


class Watch:
    def __init__(self, process, options):
        self.process, self.options = process, options
        self.folder = os.path.realpath(options.folder) + '/' if options.folder else None
        self.seen, self.used, self.idle = processor_seconds(process.pid, self.folder), 0.0, 0.0
        self.when = time.monotonic()

    def look(self):
        """Why the command is to be given up, or None."""
        now, seen = time.monotonic(), processor_seconds(self.process.pid, self.folder)
        used = max(0.0, seen - self.seen)       # what a server has used that has gone is not seen any more
        self.used += used
        self.idle = max(0.0, self.idle + (now - self.when) * share() - used / BUSY)
        self.when, self.seen = now, seen
        if self.used > self.options.cpu:
            return 'given up: has used %.0f s of processor time' % self.used
        if self.idle > self.options.idle:
            return 'given up: has done nothing for %.0f s' % self.idle
        return None


def stop(process):
    """The command and its children; the servers in the folder are the caller's to stop."""
    for number, seconds in ((signal.SIGTERM, PATIENCE), (signal.SIGKILL, None)):
        try:
            os.killpg(process.pid, number)
            process.wait(seconds)
            return
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            pass


def main():
    options = parse_options()
    # a shell's job in the background ignores it, and so would the command; some tests end programs with it
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(options.command, start_new_session=True)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: (stop(process), sys.exit(GIVEN_UP)))
    watch = Watch(process, options)
    while True:
        try:
            status = process.wait(POLL)
            return status if status >= 0 else 128 - status
        except subprocess.TimeoutExpired:
            reason = watch.look()
        if reason:
            stop(process)
            print(reason, file=sys.stderr, flush=True)
            return GIVEN_UP


if __name__ == '__main__':
    sys.exit(main())
