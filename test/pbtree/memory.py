"""Tests of pbtree: the memory that statements take does not grow with their rows."""
import re

from basics import Failed, connect, no_crash, query, test
from keys import begin

LONG = "repeat(md5(%s::text), 300)"
# indexes, a statement that makes the rows, one whose memory is looked at, whether it needs unique indexes
CASES = [
    ('an insertion', 'CREATE INDEX ON t USING pbtree (n)', '', 'INSERT INTO t (n) SELECT g * 7919 % 20011 FROM generate_series(1, 20000) g', False),
    ('a unique insertion', 'CREATE UNIQUE INDEX ON t USING pbtree (n)', '', 'INSERT INTO t (n) SELECT g * 7919 % 20011 FROM generate_series(1, 20000) g', True),
    ('long keys', 'CREATE INDEX ON t USING pbtree (s)', '', 'INSERT INTO t (s) SELECT ' + LONG % 'g' + ' FROM generate_series(1, 3000) g', False),
    ('long keys among those of a scan', 'CREATE INDEX ON t USING pbtree (n, s)', 'INSERT INTO t SELECT g, ' + LONG % 'g' + ' FROM generate_series(1, 3000) g',
     "SELECT count(n) FROM t WHERE n > 0 AND s > 'f' AND s = ANY (ARRAY['x', 'y'])", False),
    ('long keys that a search compares', 'CREATE INDEX ON t USING pbtree (s)', 'INSERT INTO t SELECT g, ' + LONG % 'g' + ' FROM generate_series(1, 3000) g',
     'SELECT count(x.n) FROM generate_series(1, 3000) g, LATERAL (SELECT n FROM t WHERE s = md5(g::text) LIMIT 1) x', False),
    ('skip scans', 'CREATE INDEX ON t USING pbtree (n, s, k)', 'INSERT INTO t SELECT g % 5, ' + LONG % '(g % 7)' + ', g FROM generate_series(1, 3000) g',
     'SELECT count(x.k) FROM generate_series(1, 1000) g, LATERAL (SELECT k FROM t WHERE k = g OFFSET 0) x', False),
    ('a skip scan with a value of another type', 'CREATE INDEX ON t USING pbtree (k, d)', "INSERT INTO t (k, d) SELECT g / 10, date '2020-01-01' + g % 10 FROM generate_series(1, 1000000) g",
     "SELECT count(k) FROM t WHERE d = timestamp '2030-01-01'", False),
    ('pbtree_check', 'CREATE INDEX ON t USING pbtree (s)', 'INSERT INTO t (s) SELECT g || ' + LONG % 'g' + ' FROM generate_series(1, 20000) g', "SELECT pbtree_check('t_s_idx')", False),
    ('ON CONFLICT', 'CREATE UNIQUE INDEX ON t USING pbtree (k)', 'INSERT INTO t (k) SELECT generate_series(1, 20000)',
     'INSERT INTO t (k) SELECT generate_series(1, 20000) ON CONFLICT (k) DO UPDATE SET s = t.s', True),
    ('EXCLUDE', 'ALTER TABLE t ADD EXCLUDE USING pbtree (k WITH =)', '', 'INSERT INTO t (k) SELECT generate_series(1, 20000)', False),
    ('a partial index scanned again', 'CREATE INDEX ON t USING pbtree (k) WHERE n > 0 AND n < 1000000', 'INSERT INTO t (k, n) SELECT g, g FROM generate_series(1, 100) g',
     'SELECT count(x.k) FROM generate_series(1, 50000) g, LATERAL (SELECT k FROM t WHERE k = g % 100 AND n > 0 AND n < 1000000 LIMIT 1) x', False),
    ('CREATE UNIQUE INDEX', '', 'INSERT INTO t (n) SELECT generate_series(1, 20000)', 'CREATE UNIQUE INDEX ON t USING pbtree (n)', True),
    ('CREATE INDEX of long keys', '', 'INSERT INTO t (s) SELECT g || ' + LONG % 'g' + ' FROM generate_series(1, 20000) g', 'CREATE INDEX ON t USING pbtree (n, s)', False)]


def peak(connection):
    """kB that the session's process has had at most."""
    with open('/proc/%d/status' % query(connection, 'SELECT pg_backend_pid()')[0][0], encoding='utf-8') as file:
        return int(re.search(r'VmPeak:\s+(\d+) kB', file.read()).group(1))


@test
def memory(tests):
    """What an insertion, a search or a build has palloc'd for a row is given up before the statement ends."""
    cluster, connection = begin(tests, 'memory')
    found = []
    for name, indexes, rows, statement, unique in CASES:
        if unique and connection.server_version < 180000:
            continue
        for text in ('DROP TABLE IF EXISTS t; CREATE TABLE t (n numeric, s text, k int, d date) USING inplace', indexes, rows, 'VACUUM ANALYZE t'):
            if text:
                query(connection, text)
        reader = connect(cluster)
        query(reader, "SET enable_seqscan = off; SET enable_bitmapscan = off; SET maintenance_work_mem = '1MB'; SET max_parallel_maintenance_workers = 0")
        # what a session always needs
        query(reader, 'EXPLAIN ' + statement if not statement.startswith('CREATE') else 'CREATE INDEX ON t (k)')
        before = peak(reader)
        query(reader, statement)
        found.append((name, peak(reader) - before))
        reader.close()
    if max(kb for _, kb in found) > 6000:
        raise Failed('kB: %s' % found)
    no_crash(cluster)
    return 'kB: %s' % ', '.join('%s %d' % pair for pair in found)
