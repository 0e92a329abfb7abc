#!/usr/bin/env python3
"""Lists lines of C code that are longer than 80 columns, a tab being 4; exits with 1 if there are any.

    columns.py FOLDER...        looks at the files that git tracks there

As in PostgreSQL's code, a string literal is not broken: a line may be longer if all that is behind column 80 is a
literal, and punctuation behind it.
"""
import re
import subprocess
import sys

COLUMNS = 80
LITERAL = re.compile(r'"(?:\\.|[^"\\])*"')


def is_long(line):
    """line has no tabs."""
    if len(line) <= COLUMNS:
        return False
    return not any(literal.start() < COLUMNS and literal.end() >= COLUMNS - 1 and
                   not re.search(r'\w', line[literal.end():]) for literal in LITERAL.finditer(line))


def main():
    files = subprocess.run(['git', 'ls-files', '-z', '--', *sys.argv[1:]], check=True, capture_output=True,
                           text=True).stdout.split('\0')
    files = [name for name in files if name.endswith(('.c', '.h'))]
    if not files:
        sys.exit('columns.py: no .c or .h files there')
    found = 0
    for name in files:
        with open(name, encoding='utf-8') as file:
            for number, line in enumerate(file, 1):
                line = line.rstrip('\n').expandtabs(4)
                if is_long(line):
                    print(f'{name}:{number}: {len(line)} columns: {line.strip()}')
                    found += 1
    print(f'{len(files)} files, {found} lines over {COLUMNS} columns')
    sys.exit(1 if found else 0)


if __name__ == '__main__':
    main()
