#!/usr/bin/python3
"""The comparison itself: what must never pass, and what an entry of the allow-list lets pass."""
import os
import tempfile
import unittest

from compare import AllowList, Block, compare_test, kind_of, move_tids, spec_blocks, sql_blocks

SCRIPT = ['-- a comment', 'SELECT a', '  FROM t;', 'COPY t FROM stdin;', '1', '\\.', 'SELECT b FROM t ORDER BY b;']
OUTPUT = ['-- a comment', 'SELECT a', '  FROM t;', ' a ', '---', ' 1', ' 2', '(2 rows)', '', 'COPY t FROM stdin;',
          'SELECT b FROM t ORDER BY b;', ' b ', '---', ' 1', ' 2', '(2 rows)', '']


def changed(*pairs):
    """OUTPUT with some lines replaced: (number, text)."""
    lines = list(OUTPUT)
    for number, text in pairs:
        lines[number] = text
    return lines


class Comparison(unittest.TestCase):
    def allow(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        with open(os.path.join(folder.name, 't.allow'), 'w') as file:
            file.write(text)
        return AllowList(folder.name)

    def refused(self, result, allowed='# nothing\n'):
        """Statements that differ and are not allowed to."""
        found = compare_test('t', result, [OUTPUT], lambda output: sql_blocks(output, SCRIPT), self.allow(allowed))
        return [difference.heap.statement for difference in found if not difference.entry]

    def test_blocks(self):
        blocks = sql_blocks(OUTPUT, SCRIPT)
        self.assertEqual([block.statement for block in blocks],
                         ['SELECT a FROM t;', 'COPY t FROM stdin;', 'SELECT b FROM t ORDER BY b;'])
        self.assertEqual(blocks[0].lines, OUTPUT[3:9])
        steps = spec_blocks(['step s1: SELECT 1;', '1', 'step s2: COMMIT;'])
        self.assertEqual([step.lines for step in steps], [['1'], []])

    def test_same(self):
        self.assertEqual(self.refused(OUTPUT), [])

    def test_result(self):
        self.assertEqual(self.refused(changed((5, ' 3'))), ['SELECT a FROM t;'])
        self.assertEqual(self.refused(changed((5, ' 3')), '# wrong\norder: SELECT a FROM t;\n'), ['SELECT a FROM t;'])
        self.assertEqual(self.refused(changed((5, 'ERROR:  no')), '# wrong\nsize: SELECT a FROM t;\n'), ['SELECT a FROM t;'])

    def test_order(self):
        swapped = changed((5, ' 2'), (6, ' 1'))
        self.assertEqual(self.refused(swapped), [])
        swapped = changed((13, ' 2'), (14, ' 1'))
        self.assertEqual(self.refused(swapped, '# wrong\norder: SELECT b FROM t ORDER BY b;\n'), ['SELECT b FROM t ORDER BY b;'])

    def test_order_of_changes(self):
        block = lambda *lines: [Block('DELETE FROM t RETURNING a;', list(lines))]
        refused = lambda allowed: [difference for difference in compare_test('t', ['2', '1'], [['1', '2']], lambda lines: block(*lines),
                                                                             self.allow(allowed)) if not difference.entry]
        self.assertEqual(len(refused('# nothing\n')), 1)
        self.assertEqual(refused('# moved\norder: DELETE FROM t...\n'), [])

    def test_pick(self):
        entry = '# others\npick: SELECT a FROM t;\n|  a \n| ---\n|  3\n|  2\n| (2 rows)\n|\n'
        self.assertEqual(self.refused(changed((5, ' 3')), entry), [])
        self.assertEqual(self.refused(changed((5, ' 4')), entry), ['SELECT a FROM t;'])
        entry = entry.replace('|  3\n', '| ERROR:  no\n')
        self.assertEqual(self.refused(changed((5, 'ERROR:  no')), entry), ['SELECT a FROM t;'])

    def test_refused(self):
        error = 'ERROR:  f cannot read inplace table "t"'
        entry = '# not for it\nrefused: SELECT a FROM t;\n|  a \n| ---\n| %s\n|  2\n| (2 rows)\n|\n'
        self.assertEqual(self.refused(changed((5, error)), entry % error), [])
        self.assertEqual(self.refused(changed((5, error + 'x')), entry % error), ['SELECT a FROM t;'])
        self.assertEqual(self.refused(changed((5, ' 3')), entry % ' 3'), ['SELECT a FROM t;'])
        self.assertEqual(self.refused(changed((5, 'ERROR:  no')), entry % 'ERROR:  no'), ['SELECT a FROM t;'])

    def test_missing_statement(self):
        self.assertEqual(self.refused(OUTPUT[:9]), ['(other statements)'])

    def test_kinds(self):
        block = lambda statement, *lines: Block(statement, list(lines))
        explain = 'EXPLAIN SELECT 1;'
        self.assertEqual(kind_of(block(explain, 'Seq Scan'), block(explain, 'Index Scan')), 'plan')
        self.assertIsNone(kind_of(block(explain, 'Seq Scan'), block(explain, 'ERROR:  no')))
        self.assertEqual(kind_of(block('SELECT ctid', '(0,1) | 1'), block('SELECT ctid', '(11,1) | 1')), 'ctid')
        self.assertIsNone(kind_of(block('SELECT ctid', '(0,1) | 1'), block('SELECT ctid', '(11,1) | 2')))
        self.assertEqual(kind_of(block('SELECT pg_relation_size()', '8192'), block('SELECT pg_relation_size()', '0')), 'size')
        self.assertIsNone(kind_of(block('SELECT count(*)', '1'), block('SELECT count(*)', '2')))

    def test_literal_tids(self):
        self.assertEqual(move_tids("WHERE ctid = '(0,1)' OR ctid = '(1,1)' OR t = '(0,x)'"),
                         "WHERE ctid = '(0,2)' OR ctid = '(2,1)' OR t = '(0,x)'")


if __name__ == '__main__':
    unittest.main()
