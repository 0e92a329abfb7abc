#!/usr/bin/env python3
"""Measures inplace against heap and says which bars are cleared: ./run.sh bench"""
import argparse
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from lib import report
from lib.db import Database
from lib.progress import Progress
from lib.result import HEADS
from parts import costs, load, read, sets, storage, vacuum, values

# name: (function, expected seconds of one round, expected seconds besides)
PARTS = {
    'sizes': (storage.sizes, 0, 25),
    'wal': (storage.wal, 0, 5),
    'changes': (costs.changes, 0, 15),
    'sysbench': (costs.sysbench, 0, 120),
    'scans': (read.scans, 6, 25),
    'lookups': (read.lookups, 12, 30),
    'wide': (read.wide, 3, 10),
    'copy': (storage.copy, 10, 10),
    'rollback': (storage.rollback, 25, 0),
    'tps': (load.throughput, 24, 25),
    'held': (load.throughput_held, 60, 0),
    'tpcb': (load.tpcb, 24, 25),
    'indexed': (load.four_indexes, 24, 10),
    'upsert': (load.upsert, 24, 10),
    'audited': (load.audited, 24, 10),
    'longer': (load.throughput_held_longer, 0, 2000),
    'growth': (load.growth, 70, 0),
    'hot': (load.hot_rows, 42, 0),
    'sets': (sets.sets, 15, 0),
    'bulk': (sets.bulk, 40, 0),
    'values': (values.values, 15, 120),
    'small': (costs.small, 0, 60),
    'estimates': (costs.estimates, 0, 2),
    'deleted': (vacuum.deleted, 0, 600),
    'reload': (vacuum.reload, 0, 500),
    'hold': (vacuum.after_hold, 0, 390),
    'queue': (vacuum.queue, 0, 490),
}


@dataclass
class Context:
    """What every part needs to know."""
    db: Database
    rounds: int
    seconds: int
    scale: int
    seed: int
    quick: bool
    progress: Progress
    plots: dict = field(default_factory=dict)

    def count(self, rows):
        """Tables are smaller in a quick run."""
        return rows // 10 if self.quick else rows

    def show_tps(self, _second, tps):
        self.progress.tick(f'{tps:,.0f} tps')

    def add_plots(self, title, charts):
        self.plots[title] = charts


def options():
    parser = argparse.ArgumentParser(prog='./run.sh bench', description=__doc__)
    parser.add_argument('parts', nargs='*', metavar='part', help=f'which to run: {" ".join(PARTS)} (all)')
    parser.add_argument('--quick', action='store_true', help='one short round on small tables: does it run at all?')
    parser.add_argument('--rounds', type=int, default=5, help='(%(default)s)')
    parser.add_argument('--seconds', type=int, default=10, help='of a pgbench run; where a snapshot is held, double'
                                                                ' (%(default)s)')
    parser.add_argument('--scale', type=int, default=20, help='pgbench scale (%(default)s)')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--apart', action='store_true', help='server and clients on different processors: on a machine with two, TPS of'
                        ' turns then differ by 5 %% instead of 50')
    parser.add_argument('--out', type=Path, default=Path('.'), help='folder for bench.json and bench.html')
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    unknown = set(args.parts) - set(PARTS)
    if unknown:
        parser.error(f'no part {", ".join(sorted(unknown))}')
    if args.quick:
        args.rounds, args.seconds, args.scale = 1, 4, 2
    return args


def expected_seconds(args, names):
    pace = 0.3 if args.quick else args.seconds / 10
    return pace * sum(args.rounds * PARTS[name][1] + PARTS[name][2] for name in names)


def write_reports(folder, results, context, arguments):
    environment = {**context.db.environment(), 'arguments': arguments, 'date': time.strftime('%Y-%m-%d %H:%M')}
    (folder / 'bench.json').write_text(json.dumps(
        {'environment': environment, 'results': [result.as_json() for result in results]}, indent=1), encoding='utf-8')
    parts = [report.paragraph('Medians over the rounds; ratio: the median of the rounds\' inplace/heap.'),
             report.html_table(HEADS, [result.row() for result in results])]
    for title, charts in context.plots.items():
        parts += [report.heading(f'{title} (first round)'), report.plots(charts)]
    parts += [report.heading('Where'), report.definitions(environment)]
    report.write_page(folder / 'bench.html', 'inplace against heap: benchmark', parts)


def main():
    args = options()
    names = args.parts or list(PARTS)
    progress = Progress(expected_seconds(args, names))
    context = Context(Database(), args.rounds, args.seconds, args.scale, args.seed, args.quick, progress)
    if args.apart:
        context.db.keep_apart()
    results = []
    for name in names:
        results += PARTS[name][0](context)
        write_reports(args.out, results, context, ' '.join(sys.argv[1:]))
    progress.finish()
    print(report.text_table(HEADS, [result.row() for result in results]))
    print(f'\n{progress.elapsed():.0f} s; all rounds: {args.out}/bench.json; with plots: {args.out}/bench.html')


if __name__ == '__main__':
    main()
