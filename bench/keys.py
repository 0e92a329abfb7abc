#!/usr/bin/env python3
"""Does an index stay near its size while the keys of its rows change all the time?

    ./run.sh bench keys [options] [part ...]

Heap with btree, inplace with pbtree, and inplace with btree at once, each with two clients that make 1,000 updates a second each, of random rows
of 20,000, a transaction each; autovacuum looks around each second.  Every two seconds the index's entries are counted, and the buffers of the first
ten rows by key, from the end of the index where old keys are; and from the other end: a query that has to wait between its snapshot and its scan reads there what has
come since, a page for each of these rows, which heap has side by side.  Prints the most of each, what there is at the end, and bars that are missed: entries at most 3 times the rows (5 where no
VACUUM comes), buffers at the old end at most twice heap's, or 30.  Part hot: 60 times an UPDATE of 5,000 rows of 400,000, a plain VACUUM
after each third: the index is as large in the last 20 as it was in the 20 before.
"""
import argparse
import json
import sys
import threading
import time
from pathlib import Path

import psycopg2

from growth import SYSTEMS, Session

RISING, FALLING, TOGGLING = "k = nextval('s')", "k = -nextval('s')", 'k = -k'
# what an update sets; one in so many is rolled back, or 0; seconds between VACUUMs, 0: autovacuum, None: none comes; further indexes; most entries
PARTS = {
    'rising': (RISING, 0, 0, 0, 3),
    'by_hand': (RISING, 0, 2, 0, 3),
    'rolled_back': (RISING, 10, 0, 0, 3),
    'falling': (FALLING, 0, 0, 0, 3),
    'toggling': (TOGGLING, 0, 0, 0, 3),
    'one_of_five': (RISING, 0, 0, 4, 3),
    'no_vacuum': (RISING, 0, None, 0, 5)}
ROWS, RATE, CLIENTS, EVERY = 20000, 2000, 2, 2
PLAN = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off'
ENTRIES = {'pbtree': "SELECT rows FROM pbtree_stats('t_k')",
           'btree': "SELECT sum(live_items + dead_items - (btpo_next <> 0)::int)::bigint FROM generate_series(1, pg_relation_size('t_k') / 8192 - 1) n, "
                    "bt_page_stats('t_k', n) WHERE type = 'l'"}


def buffers(session, order):
    plan = session.value('EXPLAIN (ANALYZE, BUFFERS, TIMING off, FORMAT JSON) SELECT * FROM t ORDER BY %s LIMIT 10' % order)[0]['Plan']
    return plan['Shared Hit Blocks'] + plan['Shared Read Blocks']


class Side:
    """A table and its index, in a schema."""

    def __init__(self, database, system, rows, indexes, autovacuum):
        self.system, (self.am, self.index) = system, SYSTEMS[system]
        self.session = Session(database, system, PLAN)
        self.samples, self.done, self.errors, self.database = [], 0, [], database
        self.rising = True
        run = self.session.execute
        run(f'CREATE SCHEMA {system}; CREATE SEQUENCE s START {rows + 1} CACHE 32')
        run(f'CREATE TABLE t (id int PRIMARY KEY, k int, a int, b int, c int, d int, pad text) USING {self.am} WITH (autovacuum_enabled = {autovacuum})')
        run(f"INSERT INTO t SELECT g, g, g, g, g, g, 'row ' || g FROM generate_series(1, {rows}) g; CREATE INDEX t_k ON t USING {self.index} (k)")
        for column in 'abcd'[:indexes]:
            run(f'CREATE INDEX ON t USING {self.index} ({column})')
        run('VACUUM ANALYZE t')

    def procedure(self, change, rolled_back):
        self.rising = change != FALLING
        end = f'IF random() * {rolled_back} < 1 THEN ROLLBACK; ELSE COMMIT; END IF;' if rolled_back else 'COMMIT;'
        self.session.execute(f"""CREATE PROCEDURE change(n int) LANGUAGE plpgsql AS $$
            DECLARE r int;
            BEGIN FOR i IN 1 .. n LOOP r := 1 + floor(random() * {ROWS})::int; UPDATE t SET {change} WHERE id = r; {end} END LOOP; END $$""")

    def work(self, until):
        """A client: as many updates a second as it shall make, if it can."""
        try:
            session, n, begin = Session(self.database, self.system), RATE // CLIENTS // 10, time.monotonic()
            for turn in range(1 << 30):
                time.sleep(max(0, begin + turn / 10 - time.monotonic()))
                if time.monotonic() >= until:
                    break
                session.execute('CALL change(%s)', n)
                self.done += n
            session.close()
        except psycopg2.Error as error:
            self.errors.append(str(error))

    def vacuum(self, until, seconds):
        session = Session(self.database, self.system)
        while time.monotonic() + seconds < until:
            time.sleep(seconds)
            session.execute('VACUUM t')
        session.close()

    def sample(self):
        value = self.session.value
        old, new = ('k', 'k DESC') if self.rising else ('k DESC', 'k')
        self.samples.append({'buffers': buffers(self.session, old), 'new_end': buffers(self.session, new), 'entries': int(value(ENTRIES[self.index])),
                             'kB': value("SELECT pg_relation_size('t_k') / 1024"), 'table': value("SELECT pg_relation_size('t') / 1024")})

    def most(self, what):
        return max(sample[what] for sample in self.samples)

    def visits(self):
        self.session.execute('SELECT pg_stat_clear_snapshot()')
        return self.session.value("SELECT autovacuum_count FROM pg_stat_all_tables WHERE relid = 't'::regclass")


def fresh(name):
    first = Session('postgres')
    first.execute('DROP DATABASE IF EXISTS keys WITH (FORCE)')
    first.execute('CREATE DATABASE keys')
    first.close()
    first = Session('keys')
    first.execute('CREATE EXTENSION inplace; CREATE EXTENSION pbtree; CREATE EXTENSION pageinspect')
    first.close()
    print(name, flush=True)


def load(name, seconds):
    """The part's figures, of each system."""
    change, rolled_back, vacuum, indexes, factor = PARTS[name]
    fresh(name)
    sides = [Side('keys', system, ROWS, indexes, 'on' if vacuum == 0 else 'off') for system in SYSTEMS]
    for side in sides:
        side.procedure(change, rolled_back)
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=side.work, args=(until,)) for side in sides for _ in range(CLIENTS)]
    threads += [threading.Thread(target=side.vacuum, args=(until, vacuum)) for side in sides if vacuum]
    for thread in threads:
        thread.start()
    while time.monotonic() < until:
        for side in sides:
            side.sample()
        time.sleep(EVERY)
    for thread in threads:
        thread.join()
    found = {}
    for side in sides:
        side.sample()
        last = side.samples[-1]
        heap = sides[0].most('buffers')
        missed = [] if side.most('entries') <= factor * ROWS else ['entries']
        missed += [] if side.most('buffers') <= max(2 * heap, 30) else ['buffers']
        missed = missed if side.system != 'heap' else []
        found[side.system] = {'updates': side.done, 'visits': side.visits(), 'most': {what: side.most(what) for what in last}, 'last': last,
                              'missed': missed, 'samples': side.samples, 'errors': side.errors}
        print('  %-6s %d updates, entries at most %d (end %d), index %d kB (%d), table %d kB (%d), buffers %d (%d), at the new end %d, autovacuum %d'
              % (side.system, side.done, side.most('entries'), last['entries'], side.most('kB'), last['kB'], side.most('table'), last['table'],
                 side.most('buffers'), last['buffers'], side.most('new_end'), side.visits()), *('MISSED: ' + what for what in missed), *side.errors, flush=True)
        side.session.close()
    return found


def hot():
    """The sizes of the index after each cycle."""
    fresh('hot')
    found = {}
    for side in [Side('keys', system, 400000, 0, 'off') for system in SYSTEMS]:
        for cycle in range(60):
            side.session.execute(f'UPDATE t SET {RISING} WHERE id <= 5000')
            if cycle % 3 == 2:
                side.session.execute('VACUUM t')
            side.sample()
        before, last = ([sample['kB'] for sample in side.samples[part]] for part in (slice(20, 40), slice(40, 60)))
        missed = ['size'] if side.system != 'heap' and max(last) > max(before) else []
        found[side.system] = {'missed': missed, 'samples': side.samples, 'errors': []}
        print('  %-6s index %d kB at first, at most %d in cycles 21 to 40, %d to %d in the last 20; entries %d; buffers at most %d'
              % (side.system, side.samples[0]['kB'], max(before), min(last), max(last), side.samples[-1]['entries'], side.most('buffers')),
              *('MISSED: ' + what for what in missed), flush=True)
        side.session.close()
    return found


def main():
    names = [*PARTS, 'hot']
    parser = argparse.ArgumentParser(prog='./run.sh bench keys', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('parts', nargs='*', metavar='part', help='of %s (all)' % ', '.join(names))
    parser.add_argument('--seconds', type=int, default=200, help='of each part (%(default)s); no_vacuum: at most 60')
    parser.add_argument('--short', action='store_true', help='four seconds of rising keys, by entries only: does the program work?')
    parser.add_argument('--out', type=Path, default=Path('.'), help='folder for keys.json')
    args = parser.parse_args()
    if args.short:
        found = load('rising', 4)
        wrong = [f'{system}: {why}' for system in found for why in found[system]['errors'] + found[system]['missed'] if why != 'buffers']
        print('FAIL' if wrong else 'ok', 'keys/rising', ', '.join(f'{system} {found[system]["most"]["entries"]} entries' for system in found), *wrong)
        return 1 if wrong else 0
    results = {}
    for name in args.parts or names:
        if name not in names:
            parser.error(f'no part {name}')
        results[name] = hot() if name == 'hot' else load(name, min(args.seconds, 60) if name == 'no_vacuum' else args.seconds)
        (args.out / 'keys.json').write_text(json.dumps(results, indent=1), encoding='utf-8')
    return 1 if any(found['missed'] or found['errors'] for part in results.values() for found in part.values()) else 0


if __name__ == '__main__':
    sys.exit(main())
