#!/usr/bin/env python3
"""Checks that of the C code only files named compat* look at the server's version.

    versions.py ROOT
"""
import os
import re
import subprocess
import sys


def faults_of(root, path):
    with open(os.path.join(root, path), encoding='utf-8') as file:
        for number, line in enumerate(file, 1):
            if 'PG_VERSION_NUM' in line and not os.path.basename(path).startswith('compat'):
                yield '%s:%d: a version test' % (path, number)


def main():
    root = sys.argv[1]
    listed = subprocess.run(['git', '-C', root, 'ls-files', '*.c', '*.h'], capture_output=True, text=True, check=False)
    paths = listed.stdout.split() if listed.returncode == 0 else [
        os.path.relpath(os.path.join(folder, name), root) for folder, _, names in os.walk(root)
        for name in names if re.search(r'\.[ch]$', name) and '/.' not in folder]
    found = [fault for path in sorted(paths) for fault in faults_of(root, path)]
    print('\n'.join(found + ['%d files, %d faults' % (len(paths), len(found))]))
    return 1 if found or not paths else 0


if __name__ == '__main__':
    sys.exit(main())
