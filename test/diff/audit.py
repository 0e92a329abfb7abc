"""Comparisons of whole tables in a fresh snapshot, between the sides and between kinds of scan."""
import tables
from lockstep import Difference, Link, SIDES, pump_all, only_in

SCANS = {
    'seq': 'SET enable_seqscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off;'
           ' SET enable_bitmapscan = off; ',
    'index': 'SET enable_seqscan = off; SET enable_indexscan = on; SET enable_indexonlyscan = on;'
             ' SET enable_bitmapscan = off; ',
    'bitmap': 'SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off;'
              ' SET enable_bitmapscan = on; ',
}
DIGEST = "SELECT count(*), md5(string_agg(md5(t::text), '' ORDER BY md5(t::text))) FROM %s t"
INDEXED = ' WHERE id > -1000000'
NARROW = 'SELECT count(*), sum(id), min(id), max(id) FROM %s'


class Auditor:
    def __init__(self, dsn, am, all_tables, features):
        self.links = [Link(dsn, side, am if side == 'test' else 'heap') for side in SIDES]
        self.tables = all_tables
        self.check = self.links[0].call("SELECT to_regprocedure('public.inplace_check(regclass)') IS NOT NULL")
        self.check = self.check.rows[0][0] == 't' and am != 'heap' and 'check' in features
        self.names = [t.name for t in all_tables if t.stored]
        if 'triggers' in features:
            self.names.append('trigger_log')
        if 'partition' in features:
            self.names += tables.PARTITIONS
        if 'matview' in features:
            self.names.append('summary')

    def both(self, sql):
        for link in self.links:
            link.send(sql)
        while not pump_all(self.links, 1):
            pass
        return [link.outcome for link in self.links]

    def run(self):
        """Compare all tables.  Tables that somebody holds exclusively are left for the next time."""
        for name in self.names:
            heap, test = self.both(SCANS['seq'] + DIGEST % name)
            if heap.error and test.error and heap.error[0] == test.error[0] == '55P03':
                continue
            if heap.error or test.error:
                raise Difference('audit of %s: %s / %s' % (name, heap.brief(), test.brief()))
            if heap.rows != test.rows:
                self.explain(name, 'SELECT * FROM %s' % name)
            if name != 'trigger_log':
                self.scan_kinds(name, heap.rows)
            if self.check:
                self.inplace_check(name)
        self.refresh()

    def scan_kinds(self, name, expected):
        for kind in ('index', 'bitmap'):
            for link, outcome in zip(self.links, self.both(SCANS[kind] + DIGEST % name + INDEXED)):
                if outcome.rows != expected:
                    raise Difference('audit of %s: %s scan and seq scan differ on the %s side: %s' % (
                        name, kind, link.side, outcome.brief()))
        heap, test = self.both(SCANS['index'] + NARROW % name + INDEXED)
        if heap.rows != test.rows:
            raise Difference('audit of %s: index only scan: %s / %s' % (name, heap.brief(), test.brief()))

    def explain(self, name, sql):
        heap, test = self.both(sql)
        raise Difference('audit of %s: different content: %s' % (name, only_in(heap.rows, test.rows)))

    def inplace_check(self, name):
        outcome = self.links[1].call("SELECT * FROM public.inplace_check('%s'::regclass)" % name)
        if outcome.error and outcome.error[0] == '55P03':
            return
        if outcome.error or outcome.rows:
            raise Difference('inplace_check of %s: %s' % (name, outcome.brief()))

    def check_all(self):
        for name in self.names:
            self.inplace_check(name)

    def refresh(self):
        """Tell the generator which ids there are."""
        for table in self.tables:
            if table.local:
                table.live = {number for number in table.live if number % 3}
                continue
            outcome = self.links[0].call('SELECT id FROM ' + table.name)
            if not outcome.error:
                table.live = {int(row[0]) for row in outcome.rows}
