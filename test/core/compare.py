"""Outputs of a suite compared with heap's, statement by statement, and the allow-list.

A query without ORDER BY may give its rows in any order: which of a small table's line pointers are free, and so where its
rows lie, follows from the horizon of the moment.  For the rest an entry of the allow-list names a statement and what about
its output may differ; that nothing else differs is checked:

    plan    both are outputs of EXPLAIN
    order   the same lines in another order (of a statement with ORDER BY only messages)
    ctid    the same lines, apart from TIDs "(block,item)" and columns cmin (heap's is a combo number now and then)
    size    the same lines, apart from numbers, of a statement that asks for sizes, pages, costs or statistics
    pick    rows that depend on the physical order (LIMIT without ORDER BY, TABLESAMPLE, ...): checked against the
            lines of the entry itself, which may not have an error where heap has none
    refused an error that says so, where heap has an answer; also checked against the lines of the entry
"""
import collections
import difflib
import os
import re

KINDS = ('plan', 'order', 'ctid', 'size', 'pick', 'refused')
EXACT = ('pick', 'refused')     # the entry has the output
TID = re.compile(r'\(\d+, ?\d+\)')
LITERAL_TID = re.compile(r"""(['"])\((\d{1,2}), ?(\d+)\)\1""")
NUMBER = re.compile(r'\d[\d.]*( bytes| [kMG]B)?')
SIZES = re.compile(r'size|pages|fork|block|explain|stats|summarize', re.I)
QUERY = re.compile(r'(select|table|with)\b(?!.*\border by\b)', re.I | re.S)
EXPLAINS = re.compile(r'\bexplain|^ *QUERY PLAN *$', re.I | re.M)

Block = collections.namedtuple('Block', 'statement lines')     # an echoed statement and what follows it


def squeeze(text):
    return ' '.join(text.split())


# ---- outputs to blocks -----------------------------------------------------

def sql_blocks(output, script):
    """psql -a echoes the script's lines in order, except empty ones, data of COPY and what \\if leaves out."""
    script = [line for line in script if line]
    blocks, position, statement, lines = [], 0, [], []
    for line in output:
        found = find_echo(line, script, position)
        if found is None:
            lines.append(line)
            continue
        position = found + 1
        if lines:
            blocks.append(Block(squeeze('\n'.join(statement)), lines))
            statement, lines = [], []
        elif statement and ends_statement(statement[-1]):
            blocks.append(Block(squeeze('\n'.join(statement)), []))
            statement = []
        if line.strip() and not line.startswith('--'):
            statement.append(line)
    blocks.append(Block(squeeze('\n'.join(statement)), lines))
    return [block for block in blocks if block.statement or block.lines]


def ends_statement(line):
    return re.sub(r'\s+--.*', '', line).rstrip().endswith(';') or line.startswith('\\')


def find_echo(line, script, position):
    """Where in the script, from position on, the line is; only data and left-out branches may lie between."""
    if position >= len(script):
        return None
    if script[position] == line:
        return position
    near = script[position:position + 400]
    conditional = any(text.startswith('\\') for text in script[max(position - 1, 0):position + 1])
    first = 0 if conditional else near.index('\\.') if '\\.' in near else len(near)
    for ahead, text in enumerate(near[first:], first):
        if text == line and line.strip():
            return position + ahead
    return None


def spec_blocks(output):
    """isolationtester's: a block for every step."""
    blocks = []
    for line in output:
        if re.match(r'starting permutation: |step \S+: |Parsed test spec', line) or not blocks:
            blocks.append(Block(line, []))
        else:
            blocks[-1].lines.append(line)
    return blocks


def move_tid(quote, block, off):
    """In block 0 an inplace table's rows begin with item 2, and block 1 is kept for the metapage."""
    return f'{quote}({block + (block > 0)},{min(off + (block == 0), max(off, 65535))}){quote}'


def move_tids(text):
    """The same for literal TIDs in a text."""
    shift = lambda match: move_tid(match.group(1), int(match.group(2)), int(match.group(3)))
    return '\n'.join(line if 'seq\'' in line else LITERAL_TID.sub(shift, line) for line in text.split('\n'))


# ---- kinds of differences --------------------------------------------------

def is_plan(heap, test):
    return all(EXPLAINS.search(block.statement) or EXPLAINS.search('\n'.join(block.lines[:1])) for block in (heap, test)) \
        and not any(line.startswith('ERROR') for line in heap.lines + test.lines)


def is_order(heap, test):
    """With ORDER BY only messages may come in another order."""
    ordered = re.search(r'\border by\b', heap.statement, re.I) and not is_plan(heap, test)
    rows = [[line for line in block.lines if not line.startswith('NOTICE')] for block in (heap, test)]
    return sorted(heap.lines) == sorted(test.lines) and (not ordered or rows[0] == rows[1])


def is_unordered(heap, test):
    """A query to which SQL gives no order, with the same rows."""
    return bool(QUERY.match(heap.statement)) and is_order(heap, test)


def masked(lines, pattern):
    """Also without the widths that follow from the values'."""
    return sorted(re.sub('-+', '-', pattern.sub('#', line)).replace(' ', '') for line in lines)


def without_cmin(lines):
    """The rows of a table without its column cmin."""
    names = [name.strip() for name in lines[0].split('|')] if lines else []
    if 'cmin' not in names:
        return lines
    at = names.index('cmin')
    return ['|'.join(cell for number, cell in enumerate(line.split('|')) if number != at) if '|' in line else
            re.sub('[-+]+', '-', line) for line in lines]


def is_ctid(heap, test):
    return masked(without_cmin(heap.lines), TID) == masked(without_cmin(test.lines), TID)


def is_size(heap, test):
    return bool(SIZES.search(heap.statement)) and masked(heap.lines, NUMBER) == masked(test.lines, NUMBER)


def kind_of(heap, test):
    """The strictest kind that explains the difference, or None."""
    for kind, fits in (('plan', is_plan), ('order', is_order), ('ctid', is_ctid), ('size', is_size)):
        if fits(heap, test):
            return kind
    return None


FITS = {'plan': is_plan, 'order': is_order, 'ctid': is_ctid, 'size': is_size}


def errors(block):
    return [line for line in block.lines if line.startswith('ERROR')]


# ---- the allow-list --------------------------------------------------------

class Entry:
    def __init__(self, kind, statement, reason):
        self.kind, self.statement, self.reason = kind, statement, reason
        self.lines, self.used = [], False

    def allows(self, heap, test):
        if self.statement.endswith('...'):
            if not heap.statement.startswith(self.statement[:-3]):
                return False
        elif heap.statement != self.statement:
            return False
        if self.kind == 'pick':
            return test.lines == self.lines and len(errors(test)) <= len(errors(heap))
        if self.kind == 'refused':
            return test.lines == self.lines and bool(errors(test)) and all(' inplace ' in line for line in errors(test))
        return FITS[self.kind](heap, test)


UNORDERED = Entry('order', '', 'a query without ORDER BY')


def read_allowed(path):
    """A file of entries: "# reason" lines, then "kind: statement" lines; "| line" lines belong to a pick."""
    entries, reason, fresh = [], '', False
    with open(path) as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip('\n')
            kind, _, statement = line.partition(': ')
            if line.startswith('#'):
                reason, fresh = (reason + ' ' if fresh else '') + line[1:].strip(), True
            elif line.startswith('|') and entries and entries[-1].kind in EXACT:
                entries[-1].lines.append(line[2:] if line != '|' else '')
            elif kind in KINDS and reason:
                entries.append(Entry(kind, statement, reason))
                fresh = False
            elif line:
                raise ValueError('%s:%d: neither a reason nor an entry after one: %s' % (path, number, line))
    return entries


class AllowList:
    """The files of allow/SUITE, one for each test."""
    def __init__(self, folder):
        self.tests = {name[:-6]: read_allowed(os.path.join(folder, name))
                      for name in sorted(os.listdir(folder)) if name.endswith('.allow')} if os.path.isdir(folder) else {}

    def entry(self, test, heap, other):
        for entry in self.tests.get(test, []):
            if entry.allows(heap, other):
                entry.used = True
                return entry
        return UNORDERED if is_unordered(heap, other) else None

    def unused(self, tests):
        return ['%s: %s: %s' % (test, entry.kind, entry.statement) for test in tests
                for entry in self.tests.get(test, []) if not entry.used]


# ---- one test --------------------------------------------------------------

def read_lines(path):
    with open(path, errors='surrogateescape') as file:
        return file.read().split('\n')


def variants(folder, test):
    """PostgreSQL's own expected outputs of a test."""
    names = sorted(name for name in os.listdir(folder) if re.fullmatch(re.escape(test) + r'(_\d)?\.out', name))
    return [read_lines(os.path.join(folder, name)) for name in names]


class Difference:
    """heap and test are Blocks; kind is what it looks like, entry what allows it."""
    def __init__(self, heap, test, kind, entry):
        self.heap, self.test, self.kind, self.entry = heap, test, kind, entry

    def suggestion(self):
        """An entry for the allow-list, still without a reason."""
        kind = self.kind or ('refused' if len(errors(self.test)) > len(errors(self.heap)) else 'pick')
        lines = ['%s: %s' % (kind, self.heap.statement)]
        return lines + ['| ' + line if line else '|' for line in self.test.lines] if kind in EXACT else lines

    def __str__(self):
        return '\n'.join(['[%s] %s' % (self.kind or 'RESULT', self.heap.statement)] +
                         ['- ' + line for line in self.heap.lines] + ['+ ' + line for line in self.test.lines])


def compare_blocks(test, heap, other, allowed):
    """The differences, allowed ones too."""
    if [block.statement for block in heap] != [block.statement for block in other]:
        heap, other = realign(heap, other)
    found = []
    for left, right in zip(heap, other):
        if left.statement != right.statement:
            found.append(Difference(left, right, None, None))
        elif left != right:
            found.append(Difference(left, right, kind_of(left, right), allowed.entry(test, left, right)))
    return found


def realign(heap, other):
    """Outputs that do not show the same statements: what lies between common ones becomes a block, never allowed."""
    matcher = difflib.SequenceMatcher(None, [b.statement for b in heap], [b.statement for b in other], autojunk=False)
    left, right = [], []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == 'equal':
            left += heap[i1:i2]
            right += other[j1:j2]
        else:
            left.append(Block('(other statements)', [line for b in heap[i1:i2] for line in [b.statement] + b.lines]))
            right.append(Block('(here)', [line for b in other[j1:j2] for line in [b.statement] + b.lines]))
    return left, right


def compare_test(test, result, references, blocks, allowed):
    """Differences to a reference where all are allowed, or to the first one, heap's; [] when the output equals any."""
    if result in references:
        return []
    other = blocks(result)
    candidates = [compare_blocks(test, blocks(reference), other, allowed) for reference in references]
    allowed_ones = [found for found in candidates if all(d.entry for d in found)]
    return min(allowed_ones, key=len) if allowed_ones else candidates[0]
