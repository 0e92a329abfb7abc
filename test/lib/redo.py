"""How long a server takes to replay the WAL of clusters that were killed."""
import os
import re
import shutil
import statistics
import subprocess

import throwaway

# Nothing is written back before the kill, so that everything is to be replayed.
SETTINGS = """
fsync = off
synchronous_commit = off
autovacuum = off
max_wal_size = 50GB
checkpoint_timeout = 1d
bgwriter_lru_maxpages = 0
shared_buffers = 1GB
"""
REDO = re.compile(r'redo starts at (\w+)/(\w+).*redo done at (\w+)/(\w+) system usage: CPU: user: ([\d.]+) s, system: ([\d.]+) s,'
                  r' elapsed: ([\d.]+) s', re.S)


def replay(killed, bindir, folder):
    """A copy of the killed cluster is started: bytes of WAL, the startup process's processor seconds, seconds."""
    data, log = os.path.join(folder, 'replay.data'), os.path.join(folder, 'replay.log')
    subprocess.run(['cp', '-a', killed.data, data], check=True, **throwaway.server_user())
    copy = throwaway.Cluster(bindir, data, killed.socket, log, killed.port)
    copy.start()
    copy.stop('immediate')
    with open(log, encoding='utf-8') as file:
        words = REDO.search(file.read()).groups()
    shutil.rmtree(data)
    os.unlink(log)
    places = [int(words[i], 16) << 32 | int(words[i + 1], 16) for i in (0, 2)]
    return places[1] - places[0], float(words[4]) + float(words[5]), float(words[6])


def in_turns(clusters, bindir, folder, turns):
    """The first of two clusters against the second: a line of text."""
    results = []
    for turn in range(turns):
        order = clusters if turn % 2 == 0 else clusters[::-1]
        pair = [replay(cluster, bindir(cluster), folder) for cluster in order]
        results.append(pair if turn % 2 == 0 else pair[::-1])
    parts = ['%.1f and %.1f MB' % tuple(result[0] / 1e6 for result in results[0])]
    for name, i in (('processor time', 1), ('elapsed', 2)):
        ratios = sorted(a[i] / b[i] for a, b in results)
        parts.append('%s %.2f s and %.2f s, ratio %.3f (%.3f to %.3f)' % (
            name, *(min(result[side][i] for result in results) for side in (0, 1)), statistics.median(ratios), ratios[0], ratios[-1]))
    return '; '.join(parts)
