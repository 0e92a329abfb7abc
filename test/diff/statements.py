"""Random statements.  Each generator takes (r, session, table) and returns a Stmt, or None when it does not apply.

A statement is `steady` when both sides visit the rows in the same order: one row by primary key, or a range of the
primary key read through its index (mode 'index').  All others may fail for another of several possible reasons.
"""
from lockstep import Stmt

MODES = {
    'plain': '',
    'index': 'SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off',
    'bitmap': 'SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off',
    'parallel': 'SET LOCAL force_parallel_mode = on; SET LOCAL min_parallel_table_scan_size = 0;'
                ' SET LOCAL max_parallel_workers_per_gather = 2; SET LOCAL parallel_setup_cost = 0',
    'seq': 'SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_indexonlyscan = off',
}
LOCK_MODES = ('FOR UPDATE', 'FOR NO KEY UPDATE', 'FOR SHARE', 'FOR KEY SHARE')


def insert_values(r, table, number):
    values = [str(number)]
    for column in table.columns:
        if table.parent and column.name == table.parent[0] and r.random() < 0.95:
            values.append(str(table.parent[1].some_id(r)))
        else:
            values.append(column.random_value(r))
    table.live.add(number)
    return '(%s)' % ', '.join(values)


def column_list(table):
    return ', '.join(['id'] + [c.name for c in table.columns])


def new_id(r, table):
    return table.some_id(r) if r.random() < 0.06 else table.fresh_id(r)


def returning(r, table):
    if r.random() < 0.5:
        return ''
    return ' RETURNING ' + r.choice(['*', 'id', 'id, ' + table.some_column(r).name,
                                     'id' if table.kind == 'VIEW' else 'tableoid::regclass, *'])


def insert_one(r, session, table):
    row = insert_values(r, table, new_id(r, table))
    return Stmt('INSERT INTO %s (%s) VALUES %s%s' % (table.name, column_list(table), row, returning(r, table)),
                steady=True)


def insert_many(r, session, table):
    rows = [insert_values(r, table, new_id(r, table)) for _ in range(r.randint(2, 8))]
    return Stmt('INSERT INTO %s (%s) VALUES %s%s' % (table.name, column_list(table), ', '.join(rows),
                                                     returning(r, table)), rows='list', steady=True)


def insert_select(r, session, table):
    columns = ', '.join(c.name for c in table.columns)
    low = r.randint(1, 200)
    shift = r.choice([300, 500, 700])
    return Stmt('INSERT INTO %s (id, %s) SELECT id + %d, %s FROM %s WHERE id BETWEEN %d AND %d%s' % (
        table.name, columns, shift, columns, table.name, low, low + r.randint(0, 12), returning(r, table)))


def assignments(r, table, many):
    """SET list for one or several columns.  Unique columns of several rows only get constants."""
    picked = r.sample(table.columns, min(len(table.columns), r.choice([1, 1, 1, 2, 3])))
    parts = []
    for column in picked:
        if table.parent and column.name == table.parent[0]:
            value = str(table.parent[1].some_id(r)) if r.random() < 0.9 else 'NULL'
        elif many and column.name == table.unique:
            value = column.random_value(r)
        else:
            value = column.random_change(r)
        parts.append('%s = %s' % (column.name, value))
    return ', '.join(parts)


def steady_range(session, table):
    return session.mode == 'index' and bool(table.key)


def id_range(r, table, width=12):
    low = table.some_id(r)
    return 'id BETWEEN %d AND %d' % (low, low + r.randint(0, width))


def update_point(r, session, table):
    extra = ' AND ' + some_condition(r, table) if r.random() < 0.15 else ''
    return Stmt('UPDATE %s SET %s WHERE id = %d%s%s' % (table.name, assignments(r, table, False), table.some_id(r),
                                                       extra, returning(r, table)), steady=bool(table.key))


def update_range(r, session, table):
    return Stmt('UPDATE %s SET %s WHERE %s%s' % (table.name, assignments(r, table, True), id_range(r, table),
                                                 returning(r, table)), steady=steady_range(session, table))


def update_where(r, session, table):
    return Stmt('UPDATE %s SET %s WHERE %s%s' % (table.name, assignments(r, table, True), some_condition(r, table),
                                                 returning(r, table)))


def update_from(r, session, table):
    other = r.choice(session.tables)
    if not other.key or other is table and 'self_join' not in session.features or session.isolation != 'rc':
        return None         # see select_join
    column = table.some_column(r)
    same = [c for c in other.columns if c.sqltype == column.sqltype]
    if not same or column.name == table.unique or table.parent:
        return None
    point = r.random() < 0.5
    where = 't.id = %d' % table.some_id(r) if point else 't.' + id_range(r, table)
    return Stmt('UPDATE %s t SET %s = o.%s FROM %s o WHERE o.id = t.id AND %s' % (
        table.name, column.name, r.choice(same).name, other.name, where), steady=point and bool(table.key))


def update_id(r, session, table):
    """Move rows to other ids; cannot depend on the order of visits."""
    kind = r.random()
    if kind < 0.4:
        old, new = table.some_id(r), new_id(r, table)
        table.live.discard(old)
        table.live.add(new)
        return Stmt('UPDATE %s SET id = %d WHERE id = %d' % (table.name, new, old),
                    steady=bool(table.key) and not table.referenced)
    if kind < 0.7:
        return Stmt('UPDATE %s SET id = id + 1000 WHERE %s' % (table.name, id_range(r, table)))
    if kind < 0.9:
        return Stmt('UPDATE %s SET id = id - 1000 WHERE id BETWEEN 1001 AND 1900' % table.name)
    return Stmt('UPDATE %s SET id = %d WHERE %s' % (table.name, table.some_id(r), id_range(r, table, 2)))


def delete_point(r, session, table):
    number = table.some_id(r) if r.random() < 0.3 else r.randint(1, 220)
    table.live.discard(number)
    return Stmt('DELETE FROM %s WHERE id = %d%s' % (table.name, number, returning(r, table)),
                steady=bool(table.key) and not table.referenced)


def delete_range(r, session, table):
    width = 25 if len(table.live) > 150 else 6
    return Stmt('DELETE FROM %s WHERE %s%s' % (table.name, id_range(r, table, width), returning(r, table)),
                steady=steady_range(session, table) and not table.referenced)


def delete_where(r, session, table):
    if len(table.live) < 120 and r.random() < 0.7:
        return None
    return Stmt('DELETE FROM %s WHERE %s AND id %% 4 = %d%s' % (table.name, some_condition(r, table), r.randint(0, 3),
                                                               returning(r, table)))


def delete_using(r, session, table):
    other = r.choice(session.tables)
    if session.isolation != 'rc':
        return None
    return Stmt('DELETE FROM %s t USING %s o WHERE o.id = t.id AND o.id %% 10 = %d AND t.%s' % (
        table.name, other.name, r.randint(0, 9), id_range(r, table, 30)))


def some_condition(r, table):
    column = table.some_column(r)
    condition = column.condition(r, column.name)
    if r.random() < 0.2:
        other = table.some_column(r)
        condition += r.choice([' AND ', ' OR ']) + other.condition(r, other.name)
    return '(%s)' % condition


def select_point(r, session, table):
    return Stmt('SELECT * FROM %s WHERE id = %d' % (table.name, table.some_id(r)))


def select_where(r, session, table):
    return Stmt('SELECT * FROM %s WHERE %s' % (table.name, some_condition(r, table)))


def select_range(r, session, table):
    columns = r.choice(['*', 'id', 'tableoid::regclass::text, *' if table.kind != 'VIEW' else '*', 'count(*)'])
    return Stmt('SELECT %s FROM %s WHERE %s' % (columns, table.name, id_range(r, table, 60)))


def unique_order(session, table):
    """In REPEATABLE READ a deleted row may still be visible beside an own new one that has its id."""
    return 'id' if session.isolation == 'rc' else 'id, %s::text' % table.name


def select_ordered(r, session, table):
    if not table.key:
        return None
    return Stmt('SELECT * FROM %s WHERE id >= %d ORDER BY %s%s LIMIT %d' % (
        table.name, table.some_id(r), unique_order(session, table), r.choice(['', ' DESC']), r.randint(1, 30)),
        rows='list')


def select_all(r, session, table):
    return Stmt("SELECT count(*), md5(string_agg(md5(t::text), '' ORDER BY md5(t::text))) FROM %s t" % table.name)


def select_join(r, session, table):
    """Not in REPEATABLE READ: where two visible rows have the same id, whether both are found depends on the plan."""
    if session.isolation != 'rc':
        return None
    other = r.choice(session.tables)
    return Stmt('SELECT t.id, t.%s, o.%s FROM %s t %s JOIN %s o ON o.id = t.id WHERE t.%s' % (
        table.some_column(r).name, other.some_column(r).name, table.name, r.choice(['', 'LEFT']), other.name,
        id_range(r, table, 30)))


def wait_clause(r, session, choices):
    """In REPEATABLE READ a row may be locked and changed since the snapshot: either is a reason."""
    return r.choice(choices if session.isolation == 'rc' else [c for c in choices if 'SKIP' not in c])


def lock_clause(r, wait):
    """Not FOR KEY SHARE SKIP LOCKED: heap then waits where it follows a row to its newer versions."""
    return r.choice(LOCK_MODES[:3] if 'SKIP' in wait else LOCK_MODES) + wait


def lock_rows(r, session, table):
    if not table.key:
        return None
    wait = wait_clause(r, session, ['', '', ' NOWAIT', ' SKIP LOCKED'])
    tail = ' LIMIT %d' % r.randint(1, 5) if r.random() < 0.3 else ''
    where = 'id = %d' % table.some_id(r) if r.random() < 0.5 else id_range(r, table)
    lock = lock_clause(r, wait)
    return Stmt('SELECT * FROM %s WHERE %s ORDER BY %s%s %s' % (
        table.name, where, unique_order(session, table), tail, lock), rows='list',
        steady=session.isolation == 'rc' or lock in LOCK_MODES[:3], patient=not wait)


def lock_where(r, session, table):
    wait = wait_clause(r, session, [' NOWAIT', ' SKIP LOCKED'])
    return Stmt('SELECT * FROM %s WHERE %s %s' % (table.name, some_condition(r, table), lock_clause(r, wait)))


def truncate(r, session, table):
    if not table.truncate or r.random() > 0.1:
        return None
    table.live.clear()
    return Stmt('TRUNCATE %s' % table.name)


def loop_block(r, session, table):
    """A query that stays open while its rows change."""
    if not table.key:
        return None
    return Stmt('DO $$ DECLARE r record; total bigint := 0; BEGIN FOR r IN SELECT * FROM %s WHERE %s ORDER BY id LOOP'
                ' UPDATE %s SET %s WHERE id = r.id; total := total + r.id; END LOOP; RAISE NOTICE \'total %%\', total;'
                ' END $$' % (table.name, id_range(r, table), table.name, assignments(r, table, True)), steady=True)


def exception_block(r, session, table):
    """Work that is undone by an exception handler, between work that is not."""
    handled = r.choice(["RAISE EXCEPTION 'undo'", 'PERFORM 1 / 0',
                        'INSERT INTO %s (id) VALUES (%d)' % (table.name, table.some_id(r))])
    session.nested = session.nested or bool(session.savepoints)
    rows = [table.some_id(r)] * 3 if r.random() < 0.5 else [table.some_id(r) for _ in range(3)]
    changes = [update_or_delete(r, table, row) for row in rows]
    below = table.parent and r.random() < 0.5
    if below:
        changes[r.randint(0, 2)] = change_below_text(r, table)
    return Stmt('DO $$ DECLARE counted int; BEGIN %s; BEGIN %s; %s; EXCEPTION WHEN division_by_zero OR raise_exception OR '
                'unique_violation THEN GET DIAGNOSTICS counted = ROW_COUNT; RAISE NOTICE \'handled %%\', SQLSTATE; END;'
                ' %s; END $$' % (*changes[:2], handled, changes[2]), steady=bool(table.key) and not table.referenced and not below)


def update_or_delete(r, table, row):
    if r.random() < 0.25:
        return 'DELETE FROM %s WHERE id = %d' % (table.name, row)
    return 'UPDATE %s SET %s WHERE id = %d' % (table.name, assignments(r, table, False), row)


def subtransactions(r, session, table):
    """More subtransactions than a backend's cache holds, some undone."""
    session.nested = session.nested or bool(session.savepoints)
    low = table.some_id(r)
    return Stmt('DO $$ BEGIN FOR i IN 1..%d LOOP BEGIN UPDATE %s SET %s WHERE id = %d + i %% 3; IF i %% %d = 0 THEN RAISE'
                " EXCEPTION 'undo'; END IF; EXCEPTION WHEN raise_exception THEN NULL; END; END LOOP; END $$" % (
                    r.choice([5, 70]), table.name, assignments(r, table, False), low, r.randint(1, 4)),
                steady=bool(table.key) and not table.referenced)


def by_tid(r, session, table):
    """Rows found by their TID, whatever it is."""
    if table.kind in ('PARTITIONED', 'VIEW'):
        return None
    where = 'WHERE ctid = ANY (ARRAY(SELECT ctid FROM %s WHERE %s))' % (table.name, id_range(r, table, 3))
    kind = r.random()
    if kind < 0.4:
        return Stmt('SELECT * FROM %s %s' % (table.name, where))
    if kind < 0.8:
        return Stmt('UPDATE %s SET %s %s%s' % (table.name, assignments(r, table, True), where, returning(r, table)))
    return Stmt('DELETE FROM %s %s%s' % (table.name, where, returning(r, table)))


def modify_twice(r, session, table):
    """Two data-modifying parts of one statement, on different rows."""
    low = table.some_id(r)
    return Stmt('WITH d AS (DELETE FROM %s WHERE id = %d RETURNING *), u AS (UPDATE %s SET %s WHERE id = %d RETURNING *)'
                ' SELECT * FROM d UNION ALL SELECT * FROM u UNION ALL SELECT * FROM %s WHERE id = %d' % (
                    table.name, low, table.name, assignments(r, table, False), low + 1, table.name, low + 1))


def change_below(r, session, table):
    """Rows change, and then the action of a foreign key, in the same statement."""
    return Stmt(change_below_text(r, table)) if table.parent else None


def change_below_text(r, table):
    column, parent = table.parent
    key = parent.some_id(r)
    action = r.choice(['DELETE FROM %s', 'UPDATE %s SET id = id + 2000']) % parent.name
    return ('WITH u AS (UPDATE %s SET %s WHERE %s = %d RETURNING 1) %s WHERE id = %d AND (SELECT count(*) FROM u) >= 0' % (
        table.name, assignments(r, table, True), column, key, action, key))


# From 19 on; diff.py finds out.
DO_SELECT = {'is there': False}


def on_conflict(r, session, table):
    """One row, or (not in REPEATABLE READ, where heap and we refuse in other words) several that may be the same.

    In REPEATABLE READ a row that the snapshot does not see is refused; heap waits for its lockers before it does.
    """
    if not table.key or table.kind == 'PARTITIONED' and r.random() < 0.5:
        return None
    column = table.some_column(r)
    if column.name == table.unique:
        return None
    several = r.randint(2, 5) if session.isolation == 'rc' and not table.unique and r.random() < 0.2 else 1
    rows = ', '.join(insert_values(r, table, table.some_id(r)) for _ in range(several))
    action = r.choice([
        'NOTHING', 'UPDATE SET %s = excluded.%s' % (column.name, column.name),
        'UPDATE SET %s = %s WHERE %s.id %% 3 > 0' % (column.name, column.random_value(r), table.name)])
    if DO_SELECT['is there'] and r.random() < 0.4:
        return Stmt('INSERT INTO %s (%s) VALUES %s ON CONFLICT (id) DO SELECT%s%s RETURNING *' % (
            table.name, column_list(table), rows, r.choice(['', '', '', ' FOR UPDATE', ' FOR KEY SHARE']),
            r.choice(['', '', ' WHERE %s.id %% 3 > 0' % table.name])), steady=session.isolation == 'rc')
    target = '(id)' if action != 'NOTHING' or r.random() < 0.5 else ''
    return Stmt('INSERT INTO %s (%s) VALUES %s ON CONFLICT %s DO %s%s' % (
        table.name, column_list(table), rows, target, action, returning(r, table)), steady=session.isolation == 'rc')


# Some minor releases (17.6, not 15.18, 16.15, 18.6) have MERGE in REPEATABLE READ change a row that another transaction has
# changed since the snapshot.  In heap the transaction then sees both versions.  diff.py finds out which server this is.
MERGE = {'in any isolation': True}


def merge_is_sound(session):
    return MERGE['in any isolation'] or session.isolation == 'rc'


def match_all(session):
    """In REPEATABLE READ two visible rows may have the same id: the plan must not end at the first, which is either."""
    return '' if session.isolation == 'rc' else ' + 0'


def merge(r, session, table):
    if not merge_is_sound(session):
        return None
    if not table.key or table.unique or table.parent or table.referenced or table.kind == 'VIEW':
        return None
    column = table.some_column(r)
    low = table.some_id(r)
    high = low + r.choice([0, 0, 4, 8])
    insert = r.choice(['INSERT (id) VALUES (s)', 'INSERT (id, %s) VALUES (s, %s)' % (column.name, column.random_value(r))])
    also = r.choice(['', ' AND ' + column.condition(r, 't.' + column.name)])
    return Stmt('MERGE INTO %s t USING generate_series(%d, %d) s ON t.id%s = s WHEN MATCHED AND s %% 5 = 0 THEN DELETE '
                'WHEN MATCHED AND s %% 7 = 1 THEN DO NOTHING WHEN MATCHED%s THEN UPDATE SET %s = %s '
                'WHEN NOT MATCHED AND s %% 2 = 0 THEN %s' % (
                    table.name, low, high, match_all(session), also, column.name, column.random_value(r), insert), steady=low == high)


def merge_from(r, session, table):
    """Another table's rows as the source; a row may be matched twice."""
    other = r.choice(session.tables)
    if not merge_is_sound(session):
        return None
    if not table.key or table.unique or table.parent or table.referenced or table.kind == 'VIEW' or other is table:
        return None
    column = table.some_column(r)
    return Stmt('MERGE INTO %s t USING (SELECT * FROM %s WHERE %s) o ON t.id%s = o.id %s WHEN MATCHED AND o.id %% 4 = 0 THEN '
                'DELETE WHEN MATCHED THEN UPDATE SET %s = %s WHEN NOT MATCHED THEN INSERT (id) VALUES (o.id)' % (
                    table.name, other.name, id_range(r, other, 6), match_all(session), r.choice(['', '', '/ 2']),
                    column.name, column.random_value(r)))


def passing_definitions(r, session, table):
    """DDL inside a transaction, while others wait for it or it gives up; undone at once, or later with the transaction."""
    if table.kind != 'TABLE' or table.fixed or r.random() < 0.5:
        return None
    column = table.some_column(r)
    write = update_or_delete(r, table, table.some_id(r))
    kinds = ['CREATE INDEX passing ON %s (id, %s); %s; DROP INDEX passing' % (table.name, column.name, write)
             if column.sqltype not in ('point',) else write,
             'ALTER TABLE %s ADD COLUMN passing int DEFAULT 5; %s; ALTER TABLE %s DROP COLUMN passing' % (
                 table.name, write, table.name),
             'ALTER TABLE %s ADD COLUMN passing float DEFAULT random(); %s; ALTER TABLE %s DROP COLUMN passing' % (
                 table.name, write, table.name),
             'ALTER TABLE %s DISABLE TRIGGER USER; %s; ALTER TABLE %s ENABLE TRIGGER USER' % (
                 table.name, write, table.name),
             'LOCK TABLE %s IN %s MODE' % (table.name, r.choice(['SHARE', 'EXCLUSIVE', 'ACCESS EXCLUSIVE']))]
    sql = r.choice(kinds)
    # which value is the first that is too long for the index depends on the order of rows
    return Stmt(sql, steady='CREATE INDEX' not in sql, patient=False)


def committing_loop(r, session, table):
    """A procedure that ends transactions while its query is open."""
    if not table.key or session.kind is not None:
        return None
    return Stmt('DO $$ DECLARE r record; done int := 0; BEGIN FOR r IN SELECT id FROM %s WHERE %s ORDER BY id LOOP UPDATE %s '
                'SET %s WHERE id = r.id; done := done + 1; IF done %% 3 = 0 THEN ROLLBACK; ELSIF done %% 2 = 0 THEN COMMIT; '
                'END IF; END LOOP; RAISE NOTICE \'done %%\', done; END $$' % (
                    table.name, id_range(r, table), table.name, assignments(r, table, True)),
                steady=not table.referenced)


def set_constraints(r, session, table):
    return Stmt('SET CONSTRAINTS ALL %s' % r.choice(['IMMEDIATE', 'DEFERRED']))


# (weight, generator, feature)
READS = [
    (6, select_point, None), (4, select_where, None), (3, select_range, None), (3, select_ordered, None),
    (3, select_all, None), (2, select_join, None),
]
WRITES = [
    (10, insert_one, None), (3, insert_many, None), (1, insert_select, None), (16, update_point, None),
    (4, update_range, None), (3, update_where, None), (1.5, update_from, None), (2, update_id, None),
    (4, delete_point, None), (1.2, delete_range, None), (0.6, delete_where, None), (0.6, delete_using, None),
    (5, lock_rows, 'locks'), (1.5, lock_where, 'locks'), (0.7, truncate, 'truncate'), (1, loop_block, 'plpgsql'),
    (1.5, exception_block, 'plpgsql'), (0.7, modify_twice, None), (1, change_below, 'fk'), (0.3, subtransactions, 'plpgsql'),
    (0.4, committing_loop, 'plpgsql'), (0.6, by_tid, 'tid'), (4, on_conflict, 'on_conflict'), (1, merge, 'merge'),
    (0.6, merge_from, 'merge'), (0.2, set_constraints, 'deferred'), (0.3, passing_definitions, 'passing'),
]


def allowed(entries, features):
    picked = [(weight, make) for weight, make, feature in entries if feature is None or feature in features]
    return [w for w, _ in picked], [m for _, m in picked]
