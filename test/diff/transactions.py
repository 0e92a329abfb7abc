"""What a session does next: transactions, savepoints, cursors, maintenance, and the statements in between."""
import os

import statements
from lockstep import IDLE, IN_ERROR, Stmt

READER_LENGTH = (30, 100)
LEVELS = {'rc': 'READ COMMITTED', 'rr': 'REPEATABLE READ', 'ser': 'SERIALIZABLE'}


class Generator:
    def __init__(self, r, tables, features, sessions, scratch):
        self.r, self.tables, self.features, self.scratch = r, tables, features, scratch
        self.sessions = sessions
        self.reads = statements.allowed(statements.READS, features)
        self.writes = statements.allowed(statements.WRITES, features)
        self.names = 0
        self.focus = []             # tables that are used most at the moment
        self.calls = 0
        self.prepared = []          # names of prepared transactions

    def next(self, session):
        """The session's next statement."""
        if session.state == IDLE:
            return self.when_idle(session)
        if session.state == IN_ERROR:
            return self.after_error(session)
        return self.in_transaction(session)

    def pick_tables(self):
        """Tables for one transaction.  All sessions prefer the same two for a while, so that they meet."""
        self.calls += 1
        weights = [t.weight for t in self.tables]
        if self.calls % 50 == 1:
            self.focus = self.r.choices(self.tables, weights, k=2)
        if self.r.random() < 0.75:
            return self.focus[:self.r.randint(1, 2)]
        return self.r.choices(self.tables, weights, k=self.r.choice([1, 2, 3]))

    def when_idle(self, session):
        session.reset()
        kind = self.r.random()
        session.tables = self.pick_tables()
        if self.prepared and self.r.random() < 0.06:
            return self.finish_prepared()
        if kind < 0.012:
            return self.maintenance()
        if kind < 0.45:
            return self.statement(session)
        return self.begin(session)

    def begin(self, session):
        r = self.r
        kind = r.random()
        session.isolation = r.choice(['rc', 'rc', 'rr'])
        if {'serializable', 'twophase'} <= self.features and r.random() < 0.15:
            session.isolation = 'ser'
        session.mode = r.choice(['plain', 'index', 'index', 'bitmap', 'seq'])
        if r.random() < 0.01 and 'parallel' in self.features:
            session.mode = 'parallel'
        session.kind = 'write'
        session.left = r.randint(1, 8) if kind < 0.6 else r.randint(6, 25)
        if kind > 0.988:
            session.kind, session.isolation, session.left = 'read', 'rr', r.randint(*READER_LENGTH)
        return Stmt('BEGIN ISOLATION LEVEL %s; %s' % (LEVELS[session.isolation], statements.MODES[session.mode]))

    def after_error(self, session):
        if session.savepoints and self.r.random() < 0.7:
            return self.rollback_to(session)
        return Stmt(self.r.choice(['ROLLBACK', 'ROLLBACK', 'COMMIT']))

    def in_transaction(self, session):
        session.left -= 1
        if session.left <= 0:
            return self.end(session)
        kind = self.r.random()
        if session.kind == 'read':
            return self.any_of(self.reads, session)
        if 'savepoints' in self.features and kind < 0.16:
            return self.savepoint_step(session)
        if 'cursors' in self.features and kind < (0.45 if session.cursors else 0.23):
            return self.cursor_step(session)
        return self.statement(session)

    def end(self, session):
        if self.r.random() < 0.25:
            return Stmt('ROLLBACK')
        if 'twophase' in self.features and len(self.prepared) < 3 and self.r.random() < 0.03:
            return self.prepare(False)
        return self.commit(session)

    def commit(self, session):
        """Of SERIALIZABLE only one side may be refused; then the other one must not have committed yet."""
        return self.prepare(True) if session.isolation == 'ser' and session.state != IN_ERROR else Stmt('COMMIT')

    def prepare(self, commit):
        self.names += 1
        gid = 'diff_{side}_%s_%d' % (os.path.basename(self.scratch), self.names)
        return Stmt("PREPARE TRANSACTION '%s'" % gid, gid=gid, commit=commit)

    def finish_prepared(self):
        gid = self.prepared.pop(self.r.randrange(len(self.prepared)))
        return Stmt("%s PREPARED '%s'" % (self.r.choice(['COMMIT', 'COMMIT', 'ROLLBACK']), gid))

    def savepoint_step(self, session):
        kind = self.r.random()
        if not session.savepoints or kind < 0.55:
            if len(session.savepoints) < 6:
                name = 's%d' % (len(session.savepoints) + 1)
                session.savepoints.append(name)
                return Stmt('SAVEPOINT ' + name)
        if kind < 0.85:
            return self.rollback_to(session)
        depth = self.r.randrange(len(session.savepoints))
        name = session.savepoints[depth]
        del session.savepoints[depth:]
        session.nested = True
        for cursor in session.cursors.values():
            cursor['depth'] = min(cursor['depth'], depth)
        return Stmt('RELEASE ' + name)

    def rollback_to(self, session):
        depth = max(self.r.randrange(len(session.savepoints)), self.r.randrange(len(session.savepoints)))
        del session.savepoints[depth + 1:]
        session.cursors = {k: c for k, c in session.cursors.items() if c['depth'] <= depth}
        return Stmt('ROLLBACK TO ' + session.savepoints[depth])

    def cursor_step(self, session):
        if session.cursors and self.r.random() < 0.75:
            name = self.r.choice(sorted(session.cursors))
            return self.use_cursor(session, name, session.cursors[name])
        return self.declare(session)

    def declare(self, session):
        r = self.r
        table = r.choice(session.tables)
        self.names += 1
        name = 'c%d' % self.names
        cursor = {'table': table, 'depth': len(session.savepoints), 'scroll': r.random() < 0.4, 'ordered': True,
                  'fresh': True}
        where = table.some_column(r)
        query = 'SELECT * FROM %s WHERE %s' % (table.name, r.choice(
            ['true', statements.id_range(r, table, 80), where.condition(r, where.name)]))
        if not table.key or r.random() < 0.4:
            cursor['ordered'] = cursor['scroll'] = False
        else:
            query += ' ORDER BY ' + statements.unique_order(session, table)
        if cursor['ordered'] and not cursor['scroll'] and 'locks' in self.features and r.random() < 0.3:
            # not FOR KEY SHARE: docs/users/limits.md
            query += ' ' + r.choice(statements.LOCK_MODES[:3])
            cursor['current'] = True
        session.cursors[name] = cursor
        kind = 'SCROLL' if cursor['scroll'] else 'NO SCROLL'
        return Stmt('DECLARE %s %s CURSOR FOR %s' % (name, kind, query))

    def use_cursor(self, session, name, cursor):
        r = self.r
        if r.random() < 0.08:
            del session.cursors[name]
            return Stmt('CLOSE ' + name)
        if not cursor['ordered']:
            if r.random() < 0.3:
                del session.cursors[name]
                return Stmt('FETCH ALL FROM ' + name, cursor=name, last=True)
            return Stmt('FETCH %d FROM %s' % (r.randint(1, 20), name), cursor=name)
        if cursor.get('current') and 'current_of' in self.features and r.random() < 0.4:
            return self.modify_current(cursor['table'], name)
        how = ['NEXT', str(r.randint(2, 15)), 'FORWARD 3']
        if cursor['scroll']:
            how += ['PRIOR', 'BACKWARD %d' % r.randint(1, 12), 'ABSOLUTE %d' % r.randint(1, 30), 'FIRST', 'LAST',
                    'RELATIVE -2', 'BACKWARD ALL']
        return Stmt('FETCH %s FROM %s' % (r.choice(how), name), rows='list', steady=True)

    def modify_current(self, table, name):
        if self.r.random() < 0.25:
            return Stmt('DELETE FROM %s WHERE CURRENT OF %s' % (table.name, name), steady=True)
        return Stmt('UPDATE %s SET %s WHERE CURRENT OF %s' % (
            table.name, statements.assignments(self.r, table, False), name), steady=True)

    def statement(self, session):
        return self.any_of(self.reads if self.r.random() < 0.3 else self.writes, session)

    def any_of(self, choices, session):
        while True:
            make = self.r.choices(choices[1], choices[0])[0]
            table = self.r.choice(session.tables if session.kind != 'read' else self.tables)
            stmt = make(self.r, session, table)
            if stmt is not None:
                if not table.steady:
                    stmt.steady = stmt.patient = False
                return stmt

    def maintenance(self):
        """Statements outside of transactions, while others are in theirs."""
        r = self.r
        table = r.choice(self.tables)
        kinds = ['ANALYZE %s']
        if 'vacuum' in self.features and self.pinned():
            kinds += ['VACUUM (INDEX_CLEANUP OFF) %s'] + ([] if table.indexes else ['VACUUM %s'])
        elif 'vacuum' in self.features:
            kinds += ['VACUUM %s', 'VACUUM %s', 'VACUUM (FREEZE) %s', 'VACUUM (ANALYZE, DISABLE_PAGE_SKIPPING) %s',
                      'VACUUM (INDEX_CLEANUP OFF) %s']
        if 'copy' in self.features and r.random() < 0.5:
            return self.copy(table) or Stmt('ANALYZE ' + table.name)
        return Stmt(r.choice(kinds) % table.name, slow=True)

    def pinned(self):
        """May a query be open?  Its pins would keep an aggressive VACUUM, or one of some indexes, waiting for ever."""
        return any(s.cursors or s.waiting for s in self.sessions)

    def copy(self, table, before='', options=''):
        """COPY reads a file: asynchronous connections cannot feed COPY FROM STDIN."""
        columns = [c for c in table.columns if c.raw and c.name != table.unique and not table.parent]
        if not columns or table.kind == 'VIEW':
            return None
        r = self.r
        path = os.path.join(self.scratch, 'copy.txt')
        with open(path, 'w') as f:
            for _ in range(r.choice([0, 1, 5, 20])):
                number = table.fresh_id(r)
                table.live.add(number)
                f.write('\t'.join([str(number)] + [r.choice(['\\N', c.raw(r), c.raw(r)]) for c in columns]) + '\n')
        return Stmt("%sCOPY %s (id, %s) FROM '%s'%s" % (
            before, table.name, ', '.join(c.name for c in columns), path, options), steady=True, patient=False)

    def definition_change(self):
        """DDL, for moments when no transaction is open.  May return None."""
        r = self.r
        table = r.choice([t for t in self.tables if t.stored or t.kind == 'PARTITIONED'])
        kind = r.random()
        if kind < 0.3:
            return self.create_index(table)
        if kind < 0.5:
            return self.drop_index(table)
        if kind < 0.65:
            return self.change_columns(table)
        if kind < 0.75:
            return self.rewrite(table)
        if kind < 0.8 and 'matview' in self.features:
            return Stmt('REFRESH MATERIALIZED VIEW %ssummary' % r.choice(['', 'CONCURRENTLY ']))
        if kind < 0.85 and 'partition' in self.features:
            return self.move_partition()
        if not table.stored:
            return None
        if kind < 0.88:
            return Stmt('ALTER TABLE %s SET ACCESS METHOD heap; ALTER TABLE %s SET ACCESS METHOD {am}' % (
                table.name, table.name))
        if kind < 0.94:
            return Stmt('ALTER TABLE %s SET (fillfactor = %d)' % (table.name, r.choice([10, 50, 90, 100])))
        if 'copy' in self.features and table.truncate:
            return self.copy(table, 'TRUNCATE %s; ' % table.name, ' (FREEZE)')
        return None

    def rewrite(self, table):
        kinds = ['REINDEX TABLE %s'] + ([] if table.local else ['REINDEX TABLE CONCURRENTLY %s'])
        if table.stored:
            kinds += ['VACUUM FULL %s', 'VACUUM FULL %s'] + ['CLUSTER %%s USING %s_pkey' % table.name] * bool(table.key)
        if 'rewrite' not in self.features:
            return None
        return Stmt(self.r.choice(kinds) % table.name)

    def move_partition(self):
        name, bounds = self.r.choice([('parted_low', '(MINVALUE) TO (2)'), ('parted_mid', '(2) TO (100)'),
                                      ('parted_high', '(100) TO (MAXVALUE)')])
        between = self.r.choice(['', 'ALTER TABLE %s SET ACCESS METHOD heap; ALTER TABLE %s SET ACCESS METHOD {am}; ' % (
            name, name), 'ALTER TABLE %s SET UNLOGGED; ALTER TABLE %s SET LOGGED; ' % (name, name)])
        return Stmt('ALTER TABLE parted DETACH PARTITION %s; %sALTER TABLE parted ATTACH PARTITION %s FOR VALUES FROM %s' % (
            name, between, name, bounds))

    def create_index(self, table):
        column = table.some_column(self.r)
        if not column.indexes or len(table.indexes) >= 3:
            return self.drop_index(table)
        self.names += 1
        name = '%s_i%d' % (table.name, self.names)
        how = self.r.choice(column.indexes).replace('%c', column.name)
        where = ''
        if ' WHERE ' not in how and self.r.random() < 0.15:
            where = ' WHERE id % 2 = 0'
        table.indexes[name] = column.name
        concurrently = 'CONCURRENTLY ' if 'rewrite' in self.features and table.stored and (
            self.r.random() < 0.2) else ''
        return Stmt('CREATE INDEX %s%s ON %s USING %s%s' % (concurrently, name, table.name, how, where)
                    if not how.startswith('btree (id, ') or table.key else 'ANALYZE ' + table.name)

    def drop_index(self, table):
        if not table.indexes:
            return None
        name = self.r.choice(sorted(table.indexes))
        del table.indexes[name]
        return Stmt('DROP INDEX IF EXISTS ' + name)

    def change_columns(self, table):
        import schema
        r = self.r
        if table.fixed:
            return None
        added = [c for c in table.columns if c.name.startswith('x')]
        if added and r.random() < 0.45:
            column = r.choice(added)
            table.columns.remove(column)
            table.indexes = {k: v for k, v in table.indexes.items() if v != column.name}
            return Stmt('ALTER TABLE %s DROP COLUMN %s' % (table.name, column.name))
        if added and r.random() < 0.2 and added[-1].sqltype == 'int':
            return Stmt('ALTER TABLE %s ALTER COLUMN %s TYPE bigint' % (table.name, added[-1].name))
        if len(added) >= 3 or table.added > 400:
            return None
        table.added += 1
        make = r.choice([schema.int_column, schema.text_column])
        table.columns.append(make('x%d' % table.added))
        default = r.choice(['', " DEFAULT '17'", " DEFAULT -3"]) if make is schema.int_column else r.choice(
            ['', " DEFAULT 'none'", " DEFAULT repeat('d', 300)"])
        return Stmt('ALTER TABLE %s ADD COLUMN x%d %s%s' % (table.name, table.added, table.columns[-1].sqltype, default))
