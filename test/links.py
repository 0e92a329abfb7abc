#!/usr/bin/env python3
"""Checks the Markdown files of the tree: what a link leads to exists, with its heading, and is in the tree.  A path in
backticks exists, too, if it begins with a folder of the repository, or one beside the page; others are the server's.

    links.py ROOT
    links.py --self-test
"""
import os
import re
import subprocess
import sys
import tempfile
from urllib.parse import unquote

LINK = re.compile(r'\[[^][]*\]\(\s*<?([^()\s<>]+)>?(?:\s+"[^"]*")?\s*\)')
REFERENCE = re.compile(r'^ {0,3}\[[^]]+\]:\s*<?(\S+?)>?\s*$', re.M)
CODE = re.compile(r'(`+)((?:(?!\n\s*\n)[^`])+?)\1')
HEADING = re.compile(r'^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$')
ANCHOR = re.compile(r'<a\s+(?:name|id)="([^"]+)"')
FENCE = re.compile(r'^ {0,3}(```|~~~)')
PATH = re.compile(r'[\w.-]+(?:/[\w.-]+)+\.(?:c|h|py|pl|sh|md|sql|spec)')


def prose_of(text):
    """Its lines without fenced blocks, which stay as empty lines."""
    fence = None
    for line in text.split('\n'):
        mark = FENCE.match(line)
        if fence is None and mark:
            fence = mark.group(1)
        elif fence is None:
            yield line
            continue
        elif mark and mark.group(1) == fence:
            fence = None
        yield ''


def slug(heading):
    """GitHub's anchor of a heading."""
    text = re.sub(r'\[([^]]*)\]\([^)]*\)', r'\1', heading).strip().lower()
    return re.sub(r'[^\w\- ]', '', text).replace(' ', '-')


def anchors_of(text):
    found = set()
    for line in prose_of(text):
        found.update(ANCHOR.findall(line))
        heading = HEADING.match(line)
        if heading:
            name = base = slug(heading.group(1))
            number = 0
            while name in found:
                number += 1
                name = '%s-%d' % (base, number)
            found.add(name)
    return found


def faults_of(root, path, tree):
    """What is wrong with the links of this file; tree: names of all files and folders."""
    def read(name):
        with open(os.path.join(root, name), encoding='utf-8') as file:
            return file.read()

    def fault_of_link(target):
        if re.match(r'[a-z][a-z0-9+.-]*:', target):
            return None
        name, _, anchor = unquote(target).partition('#')
        other = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
        if other.startswith('..') or name.startswith('/'):
            return 'leaves the tree'
        if other not in tree:
            return 'no such file'
        if anchor and (not other.endswith('.md') or anchor not in anchors_of(read(other))):
            return 'no such heading'
        return None

    def is_gone(name):
        places = ['', os.path.dirname(path)]
        return (any(os.path.normpath(os.path.join(place, name.split('/')[0])) in tree for place in places)
                and not any(os.path.normpath(os.path.join(place, name)) in tree for place in places))

    def fault_at(offset, what, fault):
        return '%s:%d: %s: %s' % (path, text.count('\n', 0, offset) + 1, what, fault)

    text = '\n'.join(prose_of(read(path)))
    for code in CODE.finditer(text):
        if PATH.fullmatch(code.group(2)) and is_gone(code.group(2)):
            yield fault_at(code.start(), code.group(2), 'no such file')
    text = CODE.sub(lambda code: re.sub('[^\n]', 'x', code.group()), text)
    for link in sorted([*LINK.finditer(text), *REFERENCE.finditer(text)], key=lambda link: link.start()):
        fault = fault_of_link(link.group(1))
        if fault:
            yield fault_at(link.start(), link.group(1), fault)


def files_of(root):
    listed = subprocess.run(['git', '-C', root, 'ls-files'], capture_output=True, text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        return [name for name in listed.stdout.split('\n') if name and os.path.exists(os.path.join(root, name))]
    return [os.path.relpath(os.path.join(folder, name), root) for folder, _, names in os.walk(root) for name in names]


def check(root):
    """Faults, and the number of Markdown files."""
    files = files_of(root)
    tree = {'.'}
    for name in files:
        while name:
            tree.add(name)
            name = os.path.dirname(name)
    pages = sorted(name for name in files if name.endswith('.md'))
    return [fault for page in pages for fault in faults_of(root, page, tree)], len(pages)


def self_test():
    """Each kind of fault is found, and nothing else."""
    good = ('# A "title", `code` & more\n[a](b/c.md#two-words) [b](#a-title-code--more) [c](b) [d](https://x.org/y.md)\n'
            '`b/c.md` `no_slash.c` `see b/none.c there` `access/heapam.h`\n\n```\n[x](none.md)\n```\n## Same\n## Same\n[e](#same-1) ![p](p.svg)\n')
    bad = {'[a](none.md)': 'no such file', '[a](b/c.md#three)': 'no such heading', '[a](../out.md)': 'leaves the tree',
           '[a](/etc/hosts)': 'leaves the tree', '[a](#none)': 'no such heading', '`b/none.c`': 'no such file',
           '[a]: none.md': 'no such file', '![a](none.svg)': 'no such file',
           '[two\nlines](none.md)': 'no such file'}
    with tempfile.TemporaryDirectory() as root:
        os.mkdir(os.path.join(root, 'b'))
        for name, text in (('b/c.md', 'Text\n\n## Two words\n[up](../a.md)\n'), ('p.svg', '')):
            with open(os.path.join(root, name), 'w', encoding='utf-8') as file:
                file.write(text)
        for addition, reason in {'': None, **bad}.items():
            with open(os.path.join(root, 'a.md'), 'w', encoding='utf-8') as file:
                file.write(good + addition + '\n')
            found, _ = check(root)
            if [fault.rsplit(': ', 1)[1] for fault in found] != ([reason] if reason else []):
                sys.exit('self-test: "%s" gives %s' % (addition, found))


def main():
    self_test()
    if sys.argv[1] == '--self-test':
        print('ok')
        return 0
    found, pages = check(sys.argv[1])
    print('\n'.join(found + ['%d pages, %d faults' % (pages, len(found))]))
    return 1 if found or not pages else 0


if __name__ == '__main__':
    sys.exit(main())
