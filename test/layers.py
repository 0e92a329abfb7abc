#!/usr/bin/env python3
"""Checks that the modules of a part form layers, that what they export has their name, and that comments cite each invariant.

    layers.py PART [INCLUDE ...]        the part's folder, with the built objects, and a README.md that lists the layers;
                                        folders of headers, to compile each header by itself

The README has the layers in an indented block after a line that ends with "(checked by test/layers.py):", the
highest first, each a line of modules, or of folders ("write/"), two spaces, and what they are for.  A folder's modules
may use each other.  Otherwise a module uses those of lower lines only, not of its own: their functions (as nm shows them
in the objects), and their headers.  Objects of other folders, such as common's, use none of them.  What a module exports begins with its file's name; what it shares with the
file that its name continues, with that one's.  SQL functions and what the server looks for are exempt.

Each invariant, a numbered paragraph of the README's section "Invariants", is cited by a comment in a .c file: I7.
"""
import os
import re
import subprocess
import sys

MARK = '(checked by test/layers.py):'
EXEMPT = re.compile(r'^(inplace_|pbtree_|pg_finfo_|Pg_magic_func|_PG_init)')


def sources(part):
    """The paths of the part's C files and headers; a module has its name only once."""
    folders = [part] + sorted(entry.path for entry in os.scandir(part) if entry.is_dir() and entry.name != 'test')
    return sorted(os.path.join(folder, name) for folder in folders for name in os.listdir(folder) if name.endswith(('.c', '.h')))


def module_of(path):
    return os.path.basename(path)[:-2]


def read_layers(part):
    """Each module's or folder's height; the highest line has the largest number."""
    layers, inside = [], False
    with open(os.path.join(part, 'README.md'), encoding='utf-8') as file:
        for line in file:
            if line.rstrip().endswith(MARK):
                inside = True
            elif inside and line.startswith('    '):
                layers.append(line.strip().partition('  ')[0].split())
            elif inside and layers and line.strip():
                break
    return {name: len(layers) - i for i, line in enumerate(layers) for name in line}


def symbols(path):
    """What an object defines, and what it lacks."""
    defined, undefined = set(), set()
    for line in subprocess.run(['nm', '-g', path], check=True, capture_output=True, text=True).stdout.splitlines():
        kind, name = line.split()[-2:]
        (undefined if kind == 'U' else defined).add(name)
    return defined, undefined


def prefix_is_right(module, name):
    return bool(EXEMPT.match(name)) or name.startswith(module + '_') or name.startswith(module.rpartition('_')[0] + '_')


def invariants(part):
    """The numbers of the README's invariants."""
    with open(os.path.join(part, 'README.md'), encoding='utf-8') as file:
        section = re.search(r'^## Invariants$(.*?)(?=^## |\Z)', file.read(), re.M | re.S)
    return {int(n) for n in re.findall(r'^(\d+)\. ', section.group(1), re.M)} if section else set()


def cited(paths):
    """The numbers of the invariants that comments name."""
    numbers = set()
    for path in paths:
        if path.endswith('.c'):
            with open(path, encoding='utf-8') as file:
                for comment in re.findall(r'/\*.*?\*/', file.read(), re.S):
                    numbers.update(int(n) for n in re.findall(r'\bI(\d+)\b', comment))
    return numbers


def is_self_contained(header, includes):
    """Does a file compile that includes postgres.h and this header only?"""
    text = '#include "postgres.h"\n#include "%s"\n' % os.path.abspath(header)
    command = [os.environ.get('CC', 'cc'), '-fsyntax-only', '-x', 'c', *('-I' + folder for folder in includes), '-']
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False).returncode == 0


def main():
    part, includes = sys.argv[1], sys.argv[2:]
    paths, listed = sources(part), read_layers(part)
    # a module's layer: its folder's, or its own
    layer = {module_of(path): os.path.relpath(os.path.dirname(path), part) + '/' for path in paths}
    layer = {module: folder if folder != './' else module for module, folder in layer.items()}

    def may_use(user, used):
        return user == used or (layer[user] == layer[used] and layer[user].endswith('/')) or \
            listed.get(layer[user], 0) > listed.get(layer[used], 0)

    faults = ['%s is in no layer' % name for name in sorted(set(layer.values()) - set(listed))]
    faults += ['there is no file of layer %s' % name for name in sorted(set(listed) - set(layer.values()))]
    faults += ['%s is there twice' % path for path in paths for other in paths
               if path < other and os.path.basename(path) == os.path.basename(other)]
    objects = {name[:-2]: symbols(os.path.join(part, name)) for name in os.listdir(part)
               if name.endswith('.o') and name[:-2] in layer}
    if not objects:
        faults.append('nothing has been built in %s' % part)
    owner = {symbol: module for module, (defined, _) in objects.items() for symbol in defined}
    for module, (defined, undefined) in sorted(objects.items()):
        faults += ['%s exports %s, which has not its name' % (module, name)
                   for name in sorted(defined) if not prefix_is_right(module, name)]
        faults += ['%s calls %s of %s, which is not below it' % (module, name, owner[name]) for name in sorted(undefined)
                   if name in owner and not may_use(module, owner[name])]
    # what the part is built with, but does not own, such as common's
    for name in sorted(os.listdir(part)):
        if name.endswith('.o') and name[:-2] not in layer:
            faults += ['%s calls %s of %s, which is above it' % (name[:-2], wanted, owner[wanted])
                       for wanted in sorted(symbols(os.path.join(part, name))[1]) if wanted in owner]
    for path in paths:
        with open(path, encoding='utf-8') as file:
            used = re.findall(r'^#include "(\w+)\.h"', file.read(), re.M)
        faults += ['%s includes %s.h, which is not below it' % (path, module) for module in used
                   if module in layer and not may_use(module_of(path), module)]
    known, named = invariants(part), cited(paths)
    if not known:
        faults.append('the README has no invariants')
    faults += ['no .c file cites invariant I%d' % n for n in sorted(known - named)]
    faults += ['there is no invariant I%d' % n for n in sorted(named - known)]
    includes += sorted({os.path.dirname(path) for path in paths}) if includes else []
    faults += ['%s does not compile by itself' % path for path in paths
               if includes and path.endswith('.h') and not is_self_contained(path, includes)]
    for fault in faults:
        print(fault)
    print('%d modules, %d exported names, %d invariants, %d faults' % (len(objects), len(owner), len(known), len(faults)))
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
