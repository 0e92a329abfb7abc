#!/usr/bin/env python3
"""Checks the C code's sizes, and that only files named compat* look at the server's version.

    sizes.py ROOT           functions have at most 80 lines, files of the product 1,000
"""
import os
import re
import subprocess
import sys

FUNCTION, FILE = 80, 1000


def faults_of(root, path):
    with open(os.path.join(root, path), encoding='utf-8') as file:
        lines = file.read().split('\n')
    begin = None
    for number, line in enumerate(lines, 1):
        if line == '{':
            begin = number
        elif line == '}' and begin is not None:
            if number - begin - 1 > FUNCTION:
                yield '%s:%d: a function of %d lines' % (path, begin, number - begin - 1)
            begin = None
        if 'PG_VERSION_NUM' in line and not os.path.basename(path).startswith('compat'):
            yield '%s:%d: a version test' % (path, number)
    if len(lines) - 1 > FILE and '/' not in path.partition('/')[2]:
        yield '%s: %d lines' % (path, len(lines) - 1)


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
