"""The tables: their shapes, and random values and conditions for their columns."""

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
                 after=''):
        self.name, self.columns, self.options, self.extra = name, columns, options, extra
        self.after = after          # more DDL
        self.key, self.weight, self.feature, self.unique = key, weight, feature, unique
        self.live = set()           # ids that are probably there
        self.parent = None          # for a child: (column, parent table)
        self.indexes = {}           # name -> definition, of those that the run may drop
        self.added = 0              # columns added so far
        self.truncate = True
        self.movable = True         # the id may be updated

    def create(self):
        columns = ', '.join(['id int ' + self.key] + ['%s %s' % (c.name, c.sqltype) for c in self.columns])
        options = 'autovacuum_enabled = off' + (', ' + self.options if self.options else '')
        toast = ', toast.autovacuum_enabled = off' if any('text' in c.sqltype for c in self.columns) else ''
        return 'CREATE TABLE %s (%s%s) WITH (%s%s)' % (self.name, columns, self.extra, options, toast)

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


def special_columns():
    return [
        Column('arr', 'int[]', int_array, choice_of('%c && ARRAY[%d, %d]', '%c @> ARRAY[%d]', '%c = ARRAY[%d]'),
               ('%c[1:20] || 5', '%c[1:2]', '%c'), ('gin (%c)', 'gin (%c) WITH (fastupdate = off)', 'btree (%c)')),
        Column('rng', 'int4range', int_range, choice_of('%c && int4range(%d, 20)', '%c @> %d', 'isempty(%c)'),
               ('%c',), ('gist (%c)', 'spgist (%c)', 'btree (%c)')),
        Column('pt', 'point', lambda r: 'point(%d, %d)' % (r.randint(0, 30), r.randint(0, 30)),
               choice_of("%c <@ box '((0,0),(%d,%d))'", '%c ~= point(%d, %d)', '%c IS NULL'),
               ('%c + point(1, 0)', '%c'), ('gist (%c)', 'spgist (%c)')),
        Column('tsv', 'tsvector', words, choice_of("%c @@ 'oak'::tsquery", "%c @@ 'elm & !ash'::tsquery"),
               ('%c', "%c || 'fig'::tsvector", 'strip(%c)'), ('gin (%c)', 'gist (%c)')),
        Column('js', 'jsonb', json_object, choice_of("%c @> '{\"k\": %d}'", "%c ? 'z'"),
               ('%c', "%c || '{\"z\": 1}'", "%c - 'l'"), ('gin (%c)', 'gin (%c jsonb_path_ops)')),
        Column('ts', 'timestamptz', timestamp, choice_of("%c < timestamptz '2020-01-0%d 12:00:00Z'", '%c IS NULL'),
               ("%c + interval '1 h'", '%c'), ('brin (%c)', 'btree (%c)', 'brin (%c timestamptz_minmax_multi_ops)')),
        Column('num', 'numeric', lambda r: '%d.%d' % (r.randint(-999, 99999), r.randint(0, 99)),
               choice_of('%c > %d000', '%c < 0'), ('%c * 1000003', 'round(%c / 1000)', '%c'), ('btree (%c)',)),
        Column('u', 'uuid', lambda r: "md5('%d')::uuid" % r.randint(1, 40), choice_of("%c = md5('%d')::uuid"),
               ('%c',), ('hash (%c)', 'btree (%c)')),
        Column('ip', 'inet', lambda r: "inet '10.0.%d.%d'" % (r.randint(0, 9), r.randint(0, 99)),
               choice_of("%c << inet '10.0.%d.0/24'"), ('%c + 1', '%c'), ('gist (%c inet_ops)', 'spgist (%c)')),
        Column('ok', 'bool', lambda r: r.choice(['true', 'false']), choice_of('%c', 'NOT %c', '%c IS NULL'),
               ('NOT %c',), ('btree (%c)',)),
    ]


def wide_columns():
    columns = []
    for i in range(1, 13):
        columns.append(int_column('a%d' % i, nulls=0.4, indexes=('btree (%c)',) if i < 4 else ()))
        columns.append(Column('s%d' % i, 'smallint', integer(0, 9), comparison(0, 9), INT_CHANGES, nulls=0.4))
    columns.append(Column('f', 'float8', lambda r: '%d.5' % r.randint(0, 50), choice_of('%c > %d'), ('%c * 2',)))
    columns.append(Column('c', '"char"', lambda r: "'%s'" % r.choice('abc'), choice_of("%c = 'a'")))
    columns.append(Column('n', 'name', lambda r: "'name%d'" % r.randint(1, 9), choice_of("%c = 'name%d'"), ('%c',)))
    columns.append(text_column('t', indexes=()))
    return columns


def make_tables(features):
    """All tables, parents before children, without those whose feature is off."""
    parent = Table('parent', [int_column('k', 1, 300, indexes=()), int_column('v'), text_column('t')], weight=1.5,
                   feature='fk')
    cascading = Table('child_cascade', [int_column('pid', indexes=('btree (%c)',)), int_column('v')], feature='fk',
                      extra=', FOREIGN KEY (pid) REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE')
    strict = Table('child_strict', [int_column('pid', indexes=('btree (%c)',)), int_column('v')], feature='fk',
                   extra=', FOREIGN KEY (pid) REFERENCES parent ON DELETE SET NULL ON UPDATE NO ACTION')
    for child in (cascading, strict):
        child.parent = ('pid', parent)
        child.truncate = False
    parent.truncate = False
    tables = [
        Table('narrow', [int_column('a'), int_column('b')], weight=2.0),
        Table('texts', [int_column('a'), text_column('t'), Column('d', 'numeric', integer(-99, 99999),
                                                                  comparison(-99, 99999), ('%c * 1000007', '%c / 3'))],
              weight=1.5),
        Table('wide', wide_columns()),
        Table('toasted', [int_column('a'), text_column('big', large_text, indexes=()),
                          text_column('ext', large_text, indexes=())], weight=0.7, feature='toast',
              after='ALTER TABLE toasted ALTER COLUMN ext SET STORAGE EXTERNAL'),
        Table('plain', [int_column('a', indexes=()), text_column('t', indexes=())], key=''),
        Table('filled', [int_column('a'), text_column('t')], options='fillfactor = 40'),
        Table('uniq', [int_column('u', 1, 400, indexes=()), int_column('v')], extra=', UNIQUE (u)', unique='u'),
        Table('special', special_columns(), feature='special'),
        parent, cascading, strict,
    ]
    tables += optional_tables()
    return [t for t in tables if t.feature is None or t.feature in features]


def optional_tables():
    # Each session has its own values.  Else it would depend on whether an update makes new index entries (HOT or not)
    # whether a transaction checks its values again at its end, and then waits for others.
    own = Column('u', 'int', lambda r: "(%d * 8 + current_setting('diff.session')::int)" % r.randint(1, 20),
                 comparison(1, 150))
    deferred = Table('deferred', [own, int_column('v')], unique='u',
                     extra=', UNIQUE (u) DEFERRABLE INITIALLY DEFERRED', feature='deferred')
    triggered = Table('triggered', [int_column('a'), text_column('t')], feature='triggers')
    triggered.truncate = False
    parted = Table('parted', [int_column('a', indexes=()), text_column('t', indexes=())], feature='partition')
    parted.create = lambda: (
        'CREATE TABLE parted (id int PRIMARY KEY, a int, t text) PARTITION BY RANGE (id);'
        ' CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (100);'
        ' CREATE TABLE parted_high PARTITION OF parted FOR VALUES FROM (100) TO (MAXVALUE)')
    parted.truncate = parted.movable = False
    return [deferred, triggered, parted]


TRIGGER_SETUP = """
CREATE TABLE trigger_log (what text, o text, n text) WITH (autovacuum_enabled = off);
CREATE FUNCTION before_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN RETURN CASE WHEN OLD.a = 13 THEN NULL ELSE OLD END; END IF;
    IF NEW.a = 7 THEN RETURN NULL; END IF;
    IF NEW.a > 50 THEN NEW.a := NEW.a - 40; NEW.t := NEW.t || '!'; END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION after_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO trigger_log SELECT TG_NAME || TG_OP, CASE WHEN TG_OP <> 'INSERT' THEN OLD::text END,
                                   CASE WHEN TG_OP <> 'DELETE' THEN NEW::text END;
    IF TG_OP = 'UPDATE' AND NEW.a = 3 THEN UPDATE triggered SET a = 4 WHERE id = NEW.id; END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION after_statement() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO trigger_log SELECT TG_NAME, sum(o.id + coalesce(o.a, 0))::text, NULL FROM olds o;
    INSERT INTO trigger_log SELECT TG_NAME, NULL, sum(n.id + coalesce(n.a, 0))::text FROM news n;
    RETURN NULL;
END $$;
CREATE TRIGGER before_row BEFORE INSERT OR UPDATE OR DELETE ON triggered FOR EACH ROW EXECUTE FUNCTION before_row();
CREATE TRIGGER after_row AFTER INSERT OR UPDATE OR DELETE ON triggered FOR EACH ROW EXECUTE FUNCTION after_row();
CREATE CONSTRAINT TRIGGER late AFTER INSERT OR UPDATE OR DELETE ON triggered DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION after_row();
CREATE TRIGGER after_statement AFTER UPDATE ON triggered REFERENCING OLD TABLE AS olds NEW TABLE AS news
    FOR EACH STATEMENT EXECUTE FUNCTION after_statement();
"""
