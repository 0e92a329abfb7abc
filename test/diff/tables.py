"""The tables, views and triggers of a run."""
from schema import (Column, DOCUMENT_CHANGES, DOCUMENT_CONDITION, INT_CHANGES, JSON_CHANGES, Table, bulky_text, choice_of,
                    comparison, document_json, document_text, int_array, int_column, int_range, integer,
                    json_object, large_text, text_column, timestamp, words)

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
    tables = plain_tables() + referencing_tables() + special_tables() + partitions() + views()
    return [t for t in tables if t.feature is None or t.feature in features]


def plain_tables():
    return [
        Table('narrow', [int_column('a'), int_column('b')], weight=2.0),
        Table('texts', [int_column('a'), text_column('t'), Column('d', 'numeric', integer(-99, 99999),
                                                                  comparison(-99, 99999), ('%c * 1000007', '%c / 3'))],
              weight=1.5),
        Table('wide', wide_columns()),
        Table('toasted', [int_column('a'), text_column('big', large_text, indexes=()),
                          text_column('ext', large_text, indexes=())], weight=0.7, feature='toast',
              after='ALTER TABLE toasted ALTER COLUMN ext SET STORAGE EXTERNAL'),
        Table('documents', [int_column('a'),
                            Column('doc', 'text', document_text, DOCUMENT_CONDITION, DOCUMENT_CHANGES, nulls=0.05),
                            Column('ext', 'text', document_text, DOCUMENT_CONDITION, DOCUMENT_CHANGES, nulls=0.3),
                            Column('js', 'jsonb', document_json, choice_of("%c ? 'key9'", "%c @> '{\"key7\": \"changed\"}'"),
                                   JSON_CHANGES, nulls=0.3)],
              weight=0.7, feature='toast', after='ALTER TABLE documents ALTER COLUMN ext SET STORAGE EXTERNAL'),
        Table('bulky', [int_column('a'), text_column('p', bulky_text, indexes=())], feature='toast', weight=0.7,
              after='ALTER TABLE bulky ALTER COLUMN p SET STORAGE PLAIN'),
        Table('plain', [int_column('a', indexes=()), text_column('t', indexes=())], key=''),
        Table('filled', [int_column('a'), text_column('t')], options='fillfactor = 40'),
        Table('uniq', [int_column('u', 1, 400, indexes=()), int_column('v')], extra=', UNIQUE (u)', unique='u'),
        Table('special', special_columns(), feature='special'),
        Table('local', [int_column('a', indexes=()), text_column('t', indexes=())], feature='temp', weight=0.6,
              extra=', UNIQUE (a, id)', kind='TEMP TABLE'),
        Table('unlogged', [int_column('a'), text_column('t')], feature='temp', weight=0.5, kind='UNLOGGED TABLE'),
    ]


def referencing_tables():
    """Foreign keys with every action, at once and deferred, also onto the same table."""
    parent = Table('parent', [int_column('k', 1, 300, indexes=()), int_column('v'), text_column('t')], weight=1.5,
                   feature='fk')
    actions = {
        'child_cascade': 'ON DELETE CASCADE ON UPDATE CASCADE',
        'child_strict': 'ON DELETE SET NULL ON UPDATE NO ACTION',
        'child_late': 'DEFERRABLE INITIALLY DEFERRED',
        'child_default': 'ON DELETE SET DEFAULT ON UPDATE SET DEFAULT',
        'child_restrict': 'ON DELETE RESTRICT ON UPDATE RESTRICT',
    }
    children = []
    for name, action in actions.items():
        child = Table(name, [int_column('pid', indexes=('btree (%c)',)), int_column('v')], feature='fk',
                      weight=1.0 if name < 'child_d' else 0.5,
                      extra=', FOREIGN KEY (pid) REFERENCES parent ' + action,
                      after='ALTER TABLE %s ALTER COLUMN pid SET DEFAULT 1' % name)
        child.parent = ('pid', parent)
        children.append(child)
    tree = Table('tree', [int_column('pid', indexes=('btree (%c)',)), int_column('v'), text_column('t')], feature='fk',
                 extra=', FOREIGN KEY (pid) REFERENCES tree ON DELETE CASCADE ON UPDATE CASCADE')
    tree.parent = ('pid', tree)
    parent.referenced = tree.referenced = True
    for table in [parent, tree] + children:
        table.truncate = False
    return [parent] + children + [tree]


def special_tables():
    # Each session has its own values.  Else it would depend on whether an update makes new index entries (HOT or not)
    # whether a transaction checks its values again at its end, and then waits for others.
    own = Column('u', 'int', lambda r: "(%d * 8 + current_setting('diff.session')::int)" % r.randint(1, 20),
                 comparison(1, 150))
    deferred = Table('deferred', [own, int_column('v')], unique='u',
                     extra=', UNIQUE (u) DEFERRABLE INITIALLY DEFERRED', feature='deferred')
    triggered = Table('triggered', [int_column('a'), text_column('t')], feature='triggers', after=TRIGGER_SETUP)
    triggered.truncate = False
    meddled = Table('meddled', [int_column('a'), int_column('b', indexes=()), text_column('t')], feature='triggers',
                    after=MEDDLING_SETUP)
    meddled.referenced = True
    meddled.fixed = True        # suppress_redundant_updates_trigger() sees in heap whether a default is stored
    excluded = Table('excluded', [
        Column('rng', 'int4range', int_range, choice_of('%c && int4range(%d, 20)', '%c @> %d'), ('%c',), nulls=0.3),
        int_column('v')], extra=', EXCLUDE USING gist (rng WITH &&)', feature='exclusion')
    excluded.steady = False
    derived = Table('derived', [int_column('a'), int_column('b', indexes=()), text_column('t', indexes=())], weight=0.8,
                    extra=', g int GENERATED ALWAYS AS (a * 2) STORED, n int NOT NULL DEFAULT 7,'
                    ' h text GENERATED ALWAYS AS (left(t, 3)) STORED, CHECK (a < 62), UNIQUE (id) INCLUDE (b)',
                    after='CREATE INDEX derived_g ON derived (g); CREATE INDEX derived_h ON derived (h) WHERE a > 20',
                    feature='derived')
    return [deferred, triggered, meddled, excluded, derived]


def partitions():
    """Updates of the id move rows from one partition to another."""
    parted = Table('parted', [int_column('a', indexes=()), text_column('t', indexes=())], feature='partition',
                   kind='PARTITIONED')
    parted.create = lambda: (
        'CREATE TABLE parted (id int PRIMARY KEY, a int, t text) PARTITION BY RANGE (id);'
        ' CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (2);'
        ' CREATE TABLE parted_mid (t text, gone int, id int NOT NULL, a int);'
        ' ALTER TABLE parted_mid DROP COLUMN gone;'
        ' ALTER TABLE parted ATTACH PARTITION parted_mid FOR VALUES FROM (2) TO (100);'
        ' CREATE TABLE parted_high PARTITION OF parted FOR VALUES FROM (100) TO (MAXVALUE)')
    parted.truncate = False
    parted.referenced = True
    child = Table('child_parted', [int_column('pid', indexes=('btree (%c)',)), int_column('v')], feature='partition',
                  weight=0.5, extra=', FOREIGN KEY (pid) REFERENCES parted ON DELETE CASCADE ON UPDATE CASCADE')
    child.parent = ('pid', parted)
    child.truncate = False
    return [parted, child]


PARTITIONS = ['parted_low', 'parted_mid', 'parted_high']


def views():
    """An updatable one over another table, and one with INSTEAD OF triggers."""
    seen = Table('seen', [int_column('b', indexes=()), int_column('a', indexes=())], feature='views', weight=0.6, kind='VIEW')
    seen.create = lambda: 'CREATE VIEW seen AS SELECT b, id, a FROM narrow WHERE id < 250 WITH CHECK OPTION'
    instead = Table('instead', [int_column('a', indexes=()), text_column('t', indexes=())], feature='views', weight=0.4,
                    kind='VIEW', key='')
    instead.create = lambda: INSTEAD_SETUP
    for view in (seen, instead):
        view.truncate = False
    return [seen, instead]


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
    IF TG_OP = 'UPDATE' AND NEW.a = 5 THEN
        UPDATE triggered SET a = 6 WHERE id = NEW.id;
        DELETE FROM triggered WHERE id = NEW.id AND id % 3 = 0;
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION some_columns(r jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT string_agg(key || ' ' || coalesce(value, '-'), ', ' ORDER BY key) FROM jsonb_each_text(r)
    WHERE key IN ('id', 'pid', 'v', 'a', 't')       -- added ones may have values by chance
$$;
CREATE FUNCTION log_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO trigger_log SELECT TG_TABLE_NAME || TG_NAME || TG_OP, some_columns(to_jsonb(OLD)),
                                   CASE WHEN TG_OP <> 'DELETE' THEN some_columns(to_jsonb(NEW)) END;
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
CREATE CONSTRAINT TRIGGER later AFTER UPDATE OR DELETE ON triggered DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION log_row();
DO $$
DECLARE child text;
BEGIN
    FOREACH child IN ARRAY '{child_cascade,child_strict,child_default,tree}'::text[] LOOP
        IF to_regclass(child) IS NOT NULL THEN
            EXECUTE format('CREATE TRIGGER log_row AFTER UPDATE OR DELETE ON %I FOR EACH ROW EXECUTE FUNCTION log_row()', child);
        END IF;
    END LOOP;
END $$;
CREATE TRIGGER after_statement AFTER UPDATE ON triggered REFERENCING OLD TABLE AS olds NEW TABLE AS news
    FOR EACH STATEMENT EXECUTE FUNCTION after_statement();
"""


# Triggers that change their row while it is under way (BEFORE) and again (AFTER).  Not other rows: what happens to those
# depends on which is visited first.
MEDDLING_SETUP = """
CREATE FUNCTION meddle_before() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.a = 11 AND pg_trigger_depth() < 2 THEN UPDATE meddled SET t = 'meddled' WHERE id = OLD.id; END IF;
    IF NEW.a = 12 THEN DELETE FROM meddled WHERE id = OLD.id; END IF;
    IF NEW.a = 14 THEN NEW := OLD; END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION meddle_after() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF pg_trigger_depth() > 2 THEN RETURN NULL; END IF;
    IF NEW.b = 21 THEN UPDATE meddled SET b = b + 1 WHERE id = NEW.id; END IF;
    IF NEW.b = 22 THEN UPDATE meddled SET t = OLD.t, a = coalesce(OLD.a, 0) + 1 WHERE id = NEW.id; END IF;
    IF NEW.b = 23 THEN DELETE FROM meddled WHERE id = NEW.id; END IF;
    IF NEW.b = 24 THEN RAISE EXCEPTION 'refused: % to %', OLD, NEW; END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION meddle_statement() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE '% %', TG_OP, (SELECT count(*) || ' ' || coalesce(sum(id), 0) FROM changed);
    RETURN NULL;
END $$;
CREATE TRIGGER redundant BEFORE UPDATE ON meddled FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
CREATE TRIGGER before_row BEFORE UPDATE ON meddled FOR EACH ROW EXECUTE FUNCTION meddle_before();
CREATE TRIGGER after_row AFTER UPDATE OF b, t ON meddled FOR EACH ROW WHEN (OLD IS DISTINCT FROM NEW)
    EXECUTE FUNCTION meddle_after();
CREATE TRIGGER statement_insert AFTER INSERT ON meddled REFERENCING NEW TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION meddle_statement();
CREATE TRIGGER statement_delete AFTER DELETE ON meddled REFERENCING OLD TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION meddle_statement();
"""

INSTEAD_SETUP = """
CREATE VIEW instead AS SELECT t.id, t.a, t.t FROM texts t WHERE t.id < 200;
CREATE FUNCTION instead_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN INSERT INTO texts (id, a, t) VALUES (NEW.id, NEW.a, NEW.t); RETURN NEW; END IF;
    IF TG_OP = 'DELETE' THEN DELETE FROM texts WHERE id = OLD.id; RETURN OLD; END IF;
    UPDATE texts SET id = NEW.id, a = NEW.a, t = NEW.t WHERE id = OLD.id;
    RETURN CASE WHEN FOUND THEN NEW END;
END $$;
CREATE TRIGGER instead_row INSTEAD OF INSERT OR UPDATE OR DELETE ON instead FOR EACH ROW EXECUTE FUNCTION instead_row();
"""

# A summary of another table; refreshed where definitions change.
SUMMARY_SETUP = """
CREATE MATERIALIZED VIEW summary AS SELECT coalesce(a % 10, 99) AS id, count(*) AS n, sum(b) AS s FROM narrow GROUP BY 1;
CREATE UNIQUE INDEX summary_id ON summary (id)
"""
