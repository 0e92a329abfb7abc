#!/usr/bin/env python3
"""Checks that the modules of a folder form layers, that what they export has their name, and that invariants are asserted.

    layers.py FOLDER [INCLUDE ...]      the folder with the built objects, and a README.md that lists the layers;
                                        folders of headers, to compile each header by itself

The README has the layers in an indented block after a line that ends with "(checked by test/layers.py):", the
highest first, each a line of modules.  A module uses those of lower lines only: their functions (as nm shows them
in the objects), and their headers.  What a module exports begins with its file's name; what it shares with the
file that its name continues, with that one's.  SQL functions and what the server looks for are exempt.

Each invariant, a numbered paragraph of the README's section "Invariants", is cited by a comment in a .c file: I7.
"""
import os
import re
import subprocess
import sys

MARK = '(checked by test/layers.py):'
EXEMPT = re.compile(r'^(inplace_|pbtree_|pg_finfo_|Pg_magic_func|_PG_init)')


def read_layers(folder):
    """Each module's height; the highest line has the largest number."""
    layers, inside = [], False
    with open(os.path.join(folder, 'README.md'), encoding='utf-8') as file:
        for line in file:
            if line.rstrip().endswith(MARK):
                inside = True
            elif inside and line.startswith('    '):
                layers.append(line.split())
            elif inside and layers and line.strip():
                break
    return {module: len(layers) - i for i, line in enumerate(layers) for module in line}


def symbols(path):
    """What an object defines, and what it lacks."""
    defined, undefined = set(), set()
    for line in subprocess.run(['nm', '-g', path], check=True, capture_output=True, text=True).stdout.splitlines():
        kind, name = line.split()[-2:]
        (undefined if kind == 'U' else defined).add(name)
    return defined, undefined


def prefix_is_right(module, name):
    return bool(EXEMPT.match(name)) or name.startswith(module + '_') or name.startswith(module.rpartition('_')[0] + '_')


def invariants(folder):
    """The numbers of the README's invariants."""
    with open(os.path.join(folder, 'README.md'), encoding='utf-8') as file:
        section = re.search(r'^## Invariants$(.*?)(?=^## |\Z)', file.read(), re.M | re.S)
    return {int(n) for n in re.findall(r'^(\d+)\. ', section.group(1), re.M)} if section else set()


def cited(folder):
    """The numbers of the invariants that comments name."""
    numbers = set()
    for name in os.listdir(folder):
        if name.endswith('.c'):
            with open(os.path.join(folder, name), encoding='utf-8') as file:
                for comment in re.findall(r'/\*.*?\*/', file.read(), re.S):
                    numbers.update(int(n) for n in re.findall(r'\bI(\d+)\b', comment))
    return numbers


def is_self_contained(header, includes):
    """Does a file compile that includes postgres.h and this header only?"""
    text = '#include "postgres.h"\n#include "%s"\n' % os.path.abspath(header)
    command = [os.environ.get('CC', 'cc'), '-fsyntax-only', '-x', 'c', *('-I' + folder for folder in includes), '-']
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False).returncode == 0


def main():
    folder, includes = sys.argv[1], sys.argv[2:]
    height = read_layers(folder)
    files = {name[:-2] for name in os.listdir(folder) if name.endswith(('.c', '.h'))}
    faults = ['%s is in no layer' % name for name in sorted(files - set(height))]
    faults += ['there is no file of layer module %s' % name for name in sorted(set(height) - files)]
    objects = {name[:-2]: symbols(os.path.join(folder, name)) for name in os.listdir(folder)
               if name.endswith('.o') and name[:-2] in files}
    if not objects:
        faults.append('nothing has been built in %s' % folder)
    owner = {symbol: module for module, (defined, _) in objects.items() for symbol in defined}
    for module, (defined, undefined) in sorted(objects.items()):
        faults += ['%s exports %s, which has not its name' % (module, name)
                   for name in sorted(defined) if not prefix_is_right(module, name)]
        faults += ['%s calls %s of %s, which is not below it' % (module, name, owner[name]) for name in sorted(undefined)
                   if name in owner and height.get(owner[name], 0) >= height.get(module, 0)]
    for name in sorted(os.listdir(folder)):
        if not name.endswith(('.c', '.h')):
            continue
        with open(os.path.join(folder, name), encoding='utf-8') as file:
            used = re.findall(r'^#include "(\w+)\.h"', file.read(), re.M)
        faults += ['%s includes %s.h, which is not below it' % (name, module) for module in used
                   if module in height and module != name[:-2] and height[module] >= height.get(name[:-2], 0)]
    known, named = invariants(folder), cited(folder)
    if not known:
        faults.append('the README has no invariants')
    faults += ['no .c file cites invariant I%d' % n for n in sorted(known - named)]
    faults += ['there is no invariant I%d' % n for n in sorted(named - known)]
    faults += ['%s does not compile by itself' % name for name in sorted(os.listdir(folder))
               if includes and name.endswith('.h') and not is_self_contained(os.path.join(folder, name), includes)]
    for fault in faults:
        print(fault)
    print('%d modules, %d exported names, %d invariants, %d faults' % (len(objects), len(owner), len(known), len(faults)))
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
