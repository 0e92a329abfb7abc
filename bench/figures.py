#!/usr/bin/env python3
"""The tables of docs/figures/benchmarks.md, from what one run of the benchmark has written: losses first, in Markdown.

    figures.py FILE.json ...        bench.json, instructions.json, or parts of these
"""
import argparse
import json
from pathlib import Path

EVEN = 1.02             # what costs no more than this much of heap's is no loss
MORE_IS_BETTER = ('TPS',)
LATER = ('again', 'the ', 'VACUUM after', 'index-only', 'scan of what')


def number(value, unit):
    if unit == 'MB':
        value /= 1e6
    return f'{value:,.0f}' if abs(value) >= 1000 or unit == 'instructions' else f'{value:.1f}' if abs(value) >= 10 else f'{value:.2f}'


def of_benchmark(found):
    """(what, unit, heap's, the other's, its ratio) of a bench.json."""
    for result in found['results']:
        if result['ratio'] is not None:
            yield result['what'], result['unit'], result['heap'], result['inplace'], result['ratio']


def of_instructions(found):
    for statements in found['rows'].values():
        first = None
        for what, counts in statements.items():
            what = what.split('. ', 1)[1]
            first = first or what
            for system in ('inplace', 'pbtree'):
                if system in counts:
                    name = f'{first}; {what}' if what != first and what.startswith(LATER) else what
                    yield (name + (', pbtree index' if system == 'pbtree' else ''), 'instructions', counts['heap'], counts[system],
                           counts[system] / counts['heap'])


def table(rows):
    """The dearest first."""
    print('| what | unit | heap | inplace | ratio |\n|---|---|---|---|---|')
    for cost, (what, unit, heap, other, ratio) in sorted(rows, key=lambda row: (-row[0], row[1][0])):
        bold = '**' if cost > EVEN else ''
        print(f'| {what} | {unit} | {number(heap, unit)} | {number(other, unit)} | {bold}{ratio:.2f}{bold} |')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('files', nargs='+', type=Path)
    rows = []
    for path in parser.parse_args().files:
        found = json.loads(path.read_text(encoding='utf-8'))
        for row in of_benchmark(found) if 'results' in found else of_instructions(found):
            rows.append((1 / row[-1] if row[1] in MORE_IS_BETTER else row[-1], row))
    for title, wanted in (('Losses', lambda cost: cost > EVEN), ('The rest', lambda cost: cost <= EVEN)):
        print(f'## {title}\n')
        table([row for row in rows if wanted(row[0])])
        print()


if __name__ == '__main__':
    main()
