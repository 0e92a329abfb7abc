#!/usr/bin/env python3
"""Heap and inplace side by side on one server, in a few minutes: ./run.sh demo"""
import argparse
from pathlib import Path

from lib import report
from lib.db import AMS, Database
from lib.progress import Progress
from lib.workload import (HOT_ROWS, LARGE, NEVER, SIMPLE_UPDATE, load_accounts, load_counters, load_documents, measure, middle_half,
                          orders)

SET_UP_SECONDS = 30


class Phase:
    """A workload that runs on both access methods in turns, and what came of it."""

    def __init__(self, title, workload, seconds, hold=NEVER):
        self.title, self.workload, self.seconds, self.hold = title, workload, seconds, hold
        self.runs = {am: [] for am in AMS}

    def perform(self, db, rounds, seed, progress):
        db.execute('CHECKPOINT')
        for number, order in enumerate(orders(rounds)):
            for am in order:
                progress.step(f'{self.title}: {am}, run {number + 1} of {rounds}')
                self.runs[am].append(measure(db, self.workload, am, self.seconds, self.hold, seed + number,
                                             lambda second, tps: progress.tick(f'{tps:,.0f} tps')))

    def series(self, am, name):
        return [value for run in self.runs[am] for value in getattr(run, name)]

    def total(self, am, name):
        return sum(getattr(run, name) for run in self.runs[am])

    def tps(self, am):
        return self.total(am, 'tps') / len(self.runs[am])

    def tps_while_held(self, am):
        held = [tps for run in self.runs[am] for tps in run.tps_series[self.hold[0]:self.hold[1]]]
        return sum(held) / len(held)

    def rows(self):
        """[name, heap, inplace, ratio] as text."""
        def row(name, value, unit=''):
            values = [value(am) for am in AMS]
            return [name, *(report.number(each, unit) for each in values), report.number(values[1] / values[0])]
        top = max(max(self.series(am, 'tps_series')) for am in AMS)
        return [
            [self.title],
            row('TPS', self.tps),
            *([row('TPS while the snapshot is held', self.tps_while_held)] if self.hold != NEVER else []),
            ['TPS over time', *(report.sparkline(self.series(am, 'tps_series'), top) for am in AMS), ''],
            row('size before, MB', lambda am: self.runs[am][0].size_series[0], 'MB'),
            row('size after, MB', lambda am: self.runs[am][-1].size_after, 'MB'),
            row('WAL bytes per transaction', lambda am: self.total(am, 'wal_bytes') / self.total(am, 'transactions')),
        ]

    def charts(self):
        """Arguments of report.draw."""
        starts = [number * self.seconds for number in range(len(self.runs['heap']))]
        holds = [] if self.hold == NEVER else [[start + edge for edge in self.hold] for start in starts]

        def points(name):
            return {am: [point for run, start in zip(self.runs[am], starts) for point in getattr(run, name)(start)]
                    for am in AMS}
        return [('Transactions per second', 'TPS', points('tps_points'), holds),
                (f'Size of {self.workload.table}: table, indexes, undo', 'MB', points('size_points'), holds)]


def options():
    parser = argparse.ArgumentParser(prog='./run.sh demo', description=__doc__)
    parser.add_argument('--scale', type=int, default=10, help='pgbench scale, 100,000 rows each (%(default)s)')
    parser.add_argument('--rounds', type=int, default=2, help='runs of each workload on each side (%(default)s)')
    parser.add_argument('--seconds', type=int, default=8, help='of the shortest run; the longest takes 2.5'
                                                               ' times as much (%(default)s)')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--picture', type=Path, help='SVG file for the charts of the hot counters, too')
    parser.add_argument('--out', type=Path, default=Path('.'), help='folder for demo.html')
    return parser.parse_args()


def write_report(path, phases, heads, environment):
    parts = [report.paragraph('The same data and the same load on a heap table and on an inplace table of one server,'
                              ' in turns. Sizes are those of the updated table with its indexes and its undo. Where a'
                              ' snapshot is held, it is for half of each run.'),
             report.html_table(heads, [row for phase in phases for row in phase.rows()])]
    for phase in phases:
        parts += [report.heading(phase.title), report.plots(report.plot(*chart) for chart in phase.charts())]
    report.write_page(path, 'inplace against heap', parts + [report.heading('Where'), report.definitions(environment)])


def main():
    args = options()
    short, middle, long = args.seconds, args.seconds * 3 // 2, args.seconds * 5 // 2
    hot = Phase('1,000 hot counters, a snapshot held half of the time', HOT_ROWS, long, middle_half(long))
    phases = [Phase('simple-update of pgbench', SIMPLE_UPDATE, short),
              Phase('simple-update, a snapshot held half of the time', SIMPLE_UPDATE, middle, middle_half(middle)),
              hot,
              Phase('one key of jsonb documents of 100 kB', LARGE, middle)]
    progress = Progress(SET_UP_SECONDS + sum(2 * args.rounds * (phase.seconds + 1) for phase in phases))
    db = Database()
    for am in AMS:
        progress.step(f'loading {args.scale * 100_000:,} accounts: {am}')
        load_accounts(db, am, args.scale)
        load_counters(db, am)
        load_documents(db, am)
    for phase in phases:
        phase.perform(db, args.rounds, args.seed, progress)
    progress.finish()
    heads = ['', 'heap', 'inplace', 'inplace/heap']
    print(report.text_table(heads, [row for phase in phases for row in phase.rows()]))
    path = args.out / 'demo.html'
    write_report(path, phases, heads, db.environment())
    if args.picture:
        report.write_picture(args.picture, hot.charts())
    print(f'\n{progress.elapsed():.0f} s; with plots: {path}')


if __name__ == '__main__':
    main()
