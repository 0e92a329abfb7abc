"""Large values: what a change of them writes, how large they are, how long reading them takes."""
from contextlib import contextmanager

from lib.db import AMS
from lib.result import Bar, Result
from lib.workload import orders

WORDS = '''
CREATE OR REPLACE FUNCTION public.bench_words(seed int, n int) RETURNS text LANGUAGE sql AS $$
SELECT string_agg((ARRAY['alpha', 'beta', 'gamma', 'delta', 'order', 'status', 'customer', 'shipping', 'address', 'street', 'number', 'payment',
                         'invoice', 'total', 'amount', 'currency', 'pending', 'delivered', 'returned', 'warehouse', 'item', 'quantity',
                         'price', 'discount', 'comment', 'created', 'updated', 'by', 'user', 'system'])[1 + abs(hashint8(seed::int8 * 31 + j)) % 30]
                  || CASE WHEN j % 5 = 0 THEN (abs(hashint8(seed * 131 + j)) % 10000)::text ELSE '' END, ' ')
FROM generate_series(1, n) j $$'''
DOCUMENT = '''
CREATE OR REPLACE FUNCTION public.bench_document(keys int, seed int) RETURNS jsonb LANGUAGE sql AS $$
SELECT jsonb_object_agg('key' || i, public.bench_words(seed * 7919 + i, 70)) FROM generate_series(1, keys) i $$'''
RANDOM = '''
CREATE OR REPLACE FUNCTION public.bench_random(seed int, n int) RETURNS bytea LANGUAGE sql AS $$
SELECT string_agg(decode(md5((seed::int8 * 1000003 + j)::text), 'hex'), '') FROM generate_series(1, n) j $$'''

SAME_LENGTH = ("UPDATE large SET doc = jsonb_set(doc, '{{key{key}}}', to_jsonb(reverse(doc ->> 'key{key}'))) WHERE id = {id}")
OTHER_LENGTH = ("UPDATE large SET doc = jsonb_set(doc, '{{key{key}}}', to_jsonb((doc ->> 'key{key}') || ' and more')) WHERE id = {id}")

# name: keys of a document, documents, bar of the same length
SIZES = {'11 kB': (20, 100, 0.5), '115 kB': (200, 40, 0.12), '1.1 MB': (2000, 6, 0.02)}


def values(context):
    db = context.db
    for function in (WORDS, DOCUMENT, RANDOM):
        db.execute(function)
    with _without_page_images(db):
        yield from _all(context)


@contextmanager
def _without_page_images(db):
    db.execute('ALTER SYSTEM SET full_page_writes = off')
    db.execute('SELECT pg_reload_conf()')
    try:
        yield
    finally:
        db.execute('ALTER SYSTEM RESET full_page_writes')
        db.execute('SELECT pg_reload_conf()')


def _all(context):
    db = context.db
    for method in ('pglz', 'lz4'):
        for name, (keys, full, bar) in SIZES.items():
            yield from _documents(context, method, name, keys, max(context.count(full), 4), bar)
        yield from _times(context, method)
    db.execute('RESET default_toast_compression')
    yield from _texts(context)
    yield from _growth(context)


def _pair(values):
    return tuple(values[am] for am in AMS)


def _set(method):
    return f'SET default_toast_compression = {method}'


def _toast_size(db):
    return db.value("SELECT pg_table_size(reltoastrelid) + pg_indexes_size(reltoastrelid) FROM pg_class WHERE relname = 'large'")


def _documents(context, method, name, keys, rows, bar):
    db = context.db
    size, same, other = {}, {}, {}
    for am in AMS:
        context.progress.step(f'values of {name}, {method}: {am}')
        db.use(am)
        db.execute(_set(method))
        db.execute('CREATE TABLE large (id int PRIMARY KEY, doc jsonb)')
        db.execute(f'INSERT INTO large SELECT i, public.bench_document({keys}, i) FROM generate_series(1, {rows}) i')
        size[am] = _toast_size(db) / rows
        for template, result in ((SAME_LENGTH, same), (OTHER_LENGTH, other)):
            wrote = [db.wal_bytes(template.format(key=1 + number * 7 % keys, id=number)) for number in range(1, rows + 1)]
            result[am] = sum(wrote) / rows
        db.execute('DROP TABLE large')
    yield Result(f'jsonb of {name}, {method}: WAL of changing one key, same length', 'bytes', (_pair(same),), Bar('<=', bar))
    yield Result(f'jsonb of {name}, {method}: WAL of changing one key, another length', 'bytes', (_pair(other),))
    yield Result(f'jsonb of {name}, {method}: size after load', 'bytes', (_pair(size),), Bar('<=', 1.15))


def _times(context, method):
    """Processor time of one session; texts of 115 kB, bytea of 1.1 MB."""
    db, rows = context.db, max(context.count(300), 30)
    db.execute('CREATE UNLOGGED TABLE public.source (id int, doc text, packed text, bytes bytea) USING heap')
    # as from a client: not compressed
    db.execute('ALTER TABLE public.source ALTER doc SET STORAGE external, ALTER bytes SET STORAGE external')
    db.execute(_set(method))
    db.execute('INSERT INTO public.source SELECT i, d, d, CASE WHEN i <= 10 THEN convert_to(repeat(d, 10), \'UTF8\') END '
               f'FROM generate_series(1, {rows}) i, LATERAL (SELECT public.bench_document(200, i)::text AS d) q')
    steps = {
        'INSERT': ('INSERT INTO large SELECT id, doc FROM public.source', 1.05),
        'SELECT of the whole value': ('SELECT sum(length(doc)) FROM large', 1.0),
        'UPDATE inside': ("UPDATE large SET doc = overlay(doc placing 'XYZ' from 5000 + id * 200 % 90000 for 3)", 0.7),
        'DELETE': ('DELETE FROM large', None),
        'INSERT ... SELECT of values that a heap table has compressed': ('INSERT INTO large SELECT id + 1000000, packed FROM public.source', None),
        'substr of 100 bytes in the middle of ten bytea of 1.1 MB, 100 times': (
            'SELECT count(substr(bytes, 500000 + i, 100)) FROM large_bytes, generate_series(1, 100) i', 0.05),
    }
    times = {step: [] for step in steps}
    for number, order in enumerate(orders(context.rounds)):
        took = {step: {} for step in steps}
        for am in order:
            context.progress.step(f'values, times, {method}: {am}, round {number + 1}')
            db.use(am)
            db.execute(_set(method))
            db.execute('CREATE TABLE large (id int PRIMARY KEY, doc text)')
            db.execute('CREATE TABLE large_bytes AS SELECT id, bytes FROM public.source WHERE id <= 10')
            for step, (sql, _) in steps.items():
                took[step][am] = 1000 * db.cpu_seconds(sql)
            db.execute('DROP TABLE large, large_bytes')
        for step in steps:
            times[step].append(_pair(took[step]))
    db.execute('DROP TABLE public.source')
    for step, (_, bar) in steps.items():
        yield Result(f'{rows} texts of 115 kB, {method}: {step}', 'ms', tuple(times[step]), Bar('<=', bar) if bar else None)


def _texts(context):
    db = context.db
    append, rewrite, size = {}, {}, {}
    for am in AMS:
        context.progress.step(f'values that do not compress: {am}')
        db.use(am)
        db.execute('CREATE TABLE large (id int PRIMARY KEY, doc bytea)')
        db.execute('INSERT INTO large SELECT i, public.bench_random(i, 65536) FROM generate_series(1, 4) i')
        size[am] = _toast_size(db) / 4
        append[am] = db.wal_bytes('UPDATE large SET doc = doc || public.bench_random(id, 64)') / 4
        rewrite[am] = db.wal_bytes('UPDATE large SET doc = public.bench_random(id + 100, 65536)') / 4
        db.execute('DROP TABLE large')
    yield Result('random bytea of 1 MB: WAL of appending 1 kB', 'bytes', (_pair(append),), Bar('<=', 0.02))
    yield Result('random bytea of 1 MB: WAL of a new value', 'bytes', (_pair(rewrite),), Bar('<=', 1.0))
    yield Result('random bytea of 1 MB: size after load', 'bytes', (_pair(size),), Bar('<=', 1.15))


def _growth(context):
    """Updates inside documents by one session, without VACUUM."""
    db, rows, updates = context.db, 100, max(context.count(5000), 300)
    growth = {}
    for am in AMS:
        context.progress.step(f'values, growth: {am}')
        db.use(am)
        db.execute('CREATE TABLE large (id int PRIMARY KEY, doc jsonb) WITH (autovacuum_enabled = off, toast.autovacuum_enabled = off)')
        db.execute(f'INSERT INTO large SELECT i, public.bench_document(200, i) FROM generate_series(1, {rows}) i')
        loaded = _toast_size(db)
        for number in range(updates):
            db.execute(SAME_LENGTH.format(key=1 + number * 7 % 200, id=1 + number * 13 % rows))
        growth[am] = _toast_size(db) / loaded
        db.execute('DROP TABLE large')
    yield Result(f'size after {updates:,} changes of a key in {rows} documents of 115 kB, without VACUUM', 'times that after load',
                 (_pair(growth),))
