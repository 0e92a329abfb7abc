"""What tables and columns are: random values and conditions, and which ids there probably are."""

HOT = 3     # the first ids are used most

def integer(low, high):
    return lambda r: str(r.randint(low, high))


def short_text(r):
    kind = r.random()
    if kind < 0.1:
        return "''"
    if kind < 0.7:
        return "'%s'" % (r.choice('abcdefgh') * r.randint(1, 20))
    if kind < 0.95:
        return "repeat('%s', %d)" % (r.choice(['xy', 'klm', 'q']), r.randint(20, 120))
    return "repeat('%s', %d)" % (r.choice(['uvw', 'long']), r.randint(150, 500))


def large_text(r):
    kind = r.random()
    if kind < 0.45:
        return short_text(r)
    if kind < 0.75:
        return "repeat('%s', %d)" % (r.choice(['abc', 'zz', 'toast']), r.randint(500, 9000))
    return "(SELECT string_agg(md5((g * %d)::text), '') FROM generate_series(1, %d) g)" % (
        r.randint(1, 99), r.choice([30, 70, 90, 130, 300]))


def bulky_text(r):
    """Rows of up to a page, without toast."""
    return "repeat('%s', %d)" % (r.choice('pqr'), r.choice([3, 10, 100, 500, 1300, 1900, 2600, 4000, 7000]))


def document_text(r):
    """Values that are cut into blocks: some compress well, others not at all."""
    kind = r.random()
    if kind < 0.1:
        return short_text(r)
    if kind < 0.5:
        return "(SELECT string_agg('word' || g * %d %% 97, ' ') FROM generate_series(1, %d) g)" % (
            r.randint(1, 99), r.choice([300, 900, 2500, 6000]))
    return "(SELECT string_agg(md5((g * %d)::text), '') FROM generate_series(1, %d) g)" % (
        r.randint(1, 99), r.choice([70, 250, 800, 2000]))


def document_json(r):
    return "(SELECT jsonb_object_agg('key' || g, md5((g * %d)::text)) FROM generate_series(1, %d) g)" % (
        r.randint(1, 99), r.choice([3, 60, 400, 1200]))


def int_array(r):
    return "'{%s}'::int[]" % ','.join(str(r.randint(1, 12)) for _ in range(r.choice([0, 1, 2, 3, 5, 30])))


def int_range(r):
    low = r.randint(1, 90)
    return "int4range(%d, %d)" % (low, low + r.choice([0, 1, 5, 30]))


def words(r):
    return "to_tsvector('simple', '%s')" % ' '.join(r.choice(['oak', 'elm', 'fir', 'ash', 'yew'])
                                                    for _ in range(r.randint(0, 6)))


def json_object(r):
    return "jsonb_build_object('k', %d, 'l', repeat('j', %d))" % (r.randint(1, 9), r.choice([0, 3, 40, 200]))


def timestamp(r):
    return "timestamptz '2020-01-01 00:00:00Z' + interval '%d min'" % r.randint(0, 5000)


def comparison(low, high):
    def condition(r, name):
        kind = r.random()
        if kind < 0.35:
            return '%s = %d' % (name, r.randint(low, high))
        if kind < 0.5:
            return '%s IN (%d, %d, %d)' % (name, r.randint(low, high), r.randint(low, high), r.randint(low, high))
        if kind < 0.6:
            return '%s IS NULL' % name
        start = r.randint(low, high)
        return '%s BETWEEN %d AND %d' % (name, start, start + (high - low) // 5)
    return condition


def choice_of(*templates):
    """Conditions made from templates: %c is the column, %d a small number."""
    def condition(r, name):
        return r.choice(templates).replace('%c', name).replace('%d', str(r.randint(1, 12)))
    return condition


TEXT_CONDITION = choice_of("%c < 'c'", "%c = 'aaa'", "%c LIKE 'x%'", '%c IS NOT NULL', 'length(%c) > 100',
                           "%c >= 'd' AND %c < 'm'")


class Column:
    def __init__(self, name, sqltype, value, condition, changes=(), indexes=(), nulls=0.15, raw=None):
        self.name, self.sqltype, self.value, self.condition = name, sqltype, value, condition
        self.changes, self.indexes, self.nulls, self.raw = changes, indexes, nulls, raw

    def random_value(self, r):
        return 'NULL' if r.random() < self.nulls else self.value(r)

    def random_change(self, r):
        """Right side of SET column = ..."""
        if self.changes and r.random() < 0.5:
            return r.choice(self.changes).replace('%c', self.name)
        return self.random_value(r)


INT_CHANGES = ('%c + 1', '-%c', '%c', 'coalesce(%c, 0) + id % 3')
TEXT_CHANGES = ("left(%c || 'grow', 700)", 'left(%c, 3)', "left(repeat(coalesce(%c, 'n'), 2), 900)", '%c', 'md5(%c)')


DOCUMENT_CHANGES = ("overlay(%c placing 'XYZ' from 4000 for 3)", "overlay(%c placing 'longer than it was' from 9000 for 3)",
                    "overlay(%c placing '' from 2000 for 700)", "left(%c || ' appended', 90000)", 'left(%c, 5000)', "left('before ' || %c, 90000)",
                    'right(%c, 12000)', '%c', "left(%c || %c, 90000)", "%c || ''", 'substr(%c, 3000, 9000)')
JSON_CHANGES = ("jsonb_set(%c, '{key7}', '\"changed\"')", "%c - 'key9'", "%c || '{\"more\": [1, 2, 3]}'",
                "jsonb_set(%c, '{key50}', to_jsonb(reverse(%c->>'key50')))", '%c')
DOCUMENT_CONDITION = choice_of("substr(%c, 4000, 3) = 'XYZ'", 'length(%c) > 9000', '%c IS NULL', "%c LIKE 'word1%'",
                               "starts_with(%c, 'before')")


def int_column(name, low=-5, high=60, **rest):
    return Column(name, 'int', integer(low, high), comparison(low, high), INT_CHANGES,
                  rest.pop('indexes', ('btree (%c)', 'hash (%c)', 'brin (%c)', 'btree (%c, id)',
                                       'btree ((%c % 7))', 'btree (id, %c) WHERE %c > 10')),
                  raw=lambda r: str(r.randint(low, high)), **rest)


def text_column(name, value=short_text, **rest):
    return Column(name, 'text', value, TEXT_CONDITION, TEXT_CHANGES,
                  rest.pop('indexes', ('btree (left(%c, 30))', 'hash (%c)', 'spgist (left(%c, 40))')),
                  raw=lambda r: r.choice(['copied', 'c' * 40, '', 'x']), **rest)


class Table:
    def __init__(self, name, columns, key='PRIMARY KEY', options='', extra='', weight=1.0, feature=None, unique=None,
                 after='', kind='TABLE'):
        self.name, self.columns, self.options, self.extra = name, columns, options, extra
        self.after = after          # more DDL
        self.kind = kind            # TABLE, TEMP TABLE (each session has its own), UNLOGGED TABLE, VIEW, PARTITIONED
        self.key, self.weight, self.feature, self.unique = key, weight, feature, unique
        self.live = set()           # ids that are probably there
        self.parent = None          # for a child: (column, parent table)
        self.indexes = {}           # name -> definition, of those that the run may drop
        self.added = 0              # columns added so far
        self.truncate = True
        self.fixed = False          # its columns do not change
        self.referenced = False     # other rows follow its changes, in an order that is not determined
        self.steady = True          # False: which of several conflicts is met first is not determined, either

    @property
    def local(self):
        return self.kind == 'TEMP TABLE'

    @property
    def stored(self):
        """A relation with rows of its own, which all sessions see."""
        return self.kind in ('TABLE', 'UNLOGGED TABLE')

    def create(self):
        columns = ', '.join(['id int ' + self.key] + ['%s %s' % (c.name, c.sqltype) for c in self.columns])
        options = 'autovacuum_enabled = off' + (', ' + self.options if self.options else '')
        toast = ', toast.autovacuum_enabled = off' if any('text' in c.sqltype for c in self.columns) else ''
        return 'CREATE %s %s (%s%s) WITH (%s%s)' % (self.kind, self.name, columns, self.extra, options, toast)

    def create_indexes(self):
        """Of columns that may have B-tree indexes; also of several."""
        names = [c.name for c in self.columns if 'btree (%c)' in c.indexes or 'btree (left(%c, 30))' in c.indexes]
        keys = names + ([', '.join(names[:3])] if len(names) > 1 else [])
        return ''.join('CREATE INDEX %s_k%d ON %s USING btree (%s);' % (self.name, i, self.name, key)
                       for i, key in enumerate(keys)) or 'SELECT'

    def some_column(self, r):
        return r.choice(self.columns)

    def some_id(self, r):
        kind = r.random()
        if kind < 0.45:
            return r.randint(1, HOT)
        if kind < 0.8 and self.live:
            return sorted(self.live)[r.randrange(len(self.live))]
        return r.randint(1, 220)

    def fresh_id(self, r):
        if r.random() < 0.4:
            missing = [n for n in range(1, HOT + 1) if n not in self.live]
            if missing:
                return missing[0]
        for _ in range(20):
            number = r.randint(1, 220)
            if number not in self.live:
                return number
        return r.randint(221, 400)
