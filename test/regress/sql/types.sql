-- Every kind of value: in, out, compared, updated.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE DOMAIN ty_domain AS int CHECK (VALUE > 0);
CREATE TYPE ty_enum AS ENUM ('low', 'mid', 'high');
CREATE TYPE ty_pair AS (x int, y text);
CREATE TABLE ty (
    id int PRIMARY KEY,
    b bool, c "char", i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, o oid, n name, bp char(7), vc varchar(20), t text,
    by bytea, num numeric, m money, d date, ti time, tz timetz, ts timestamp, tstz timestamptz, iv interval,
    u uuid, j json, jb jsonb, p point, l lseg, bx box, pa path, po polygon, ci circle, li line,
    ip inet, cd cidr, ma macaddr, ma8 macaddr8, bt bit(5), vb bit varying, tv tsvector, tq tsquery,
    ir int4range, nr numrange, tr tstzrange, mr int4multirange,
    ai int[], at text[], ats timestamptz[], a2 int[][], ap point[], an numeric[], ae ty_enum[],
    dom ty_domain, e ty_enum, r ty_pair, ar ty_pair[], tid tid, lsn pg_lsn, rc regclass, ov oidvector, x8 xid8);
SET timezone = 'UTC';
SET datestyle = 'ISO';
CREATE FUNCTION ty_row(k int) RETURNS void LANGUAGE sql AS $$
INSERT INTO ty VALUES (k,
    k % 2 = 0, chr(96 + k)::"char", k, -k, k * 10000000000, k + 0.5, k / 3.0, k, 'name' || k, 'bp' || k, 'vc' || k, repeat('t', k),
    decode(repeat('0' || k, k), 'hex'), (k || '.' || repeat('7', k * 3))::numeric, k::money, date '2020-01-01' + k, time '10:00' + k * interval '1 s',
    timetz '10:00:00+02', timestamp '2020-01-01' + k * interval '1 d', timestamptz '2020-01-01 00:00Z' + k * interval '1 d',
    k * interval '1 mon 2 d 3 s', md5(k::text)::uuid, json_build_object('k', k), jsonb_build_object('k', k, 'l', ARRAY[k, k]),
    point(k, -k), lseg(point(0, 0), point(k, k)), box(point(0, 0), point(k, k)),
    path(polygon(box(point(0, 0), point(k, k)))), polygon(box(point(0, 0), point(k, 1))), circle(point(k, k), k),
    line(point(0, 0), point(k, 1)), ('10.0.0.' || k)::inet, ('10.' || k || '.0.0/16')::cidr, '08:00:2b:01:02:03', '08:00:2b:01:02:03:04:05',
    B'10101', repeat('10', k)::varbit, to_tsvector('simple', 'w' || k || ' common'), to_tsquery('simple', 'w' || k || ' & common'),
    int4range(k, k * 2 + 1), numrange(k, NULL), tstzrange(timestamptz '2020-01-01 00:00Z', timestamptz '2020-01-01 00:00Z' + k * interval '1 h'),
    int4multirange(int4range(k, k + 2), int4range(k + 10, k + 20)),
    array_fill(k, ARRAY[k]), ARRAY['a', NULL, repeat('b', k)], ARRAY[timestamptz '2020-01-01 00:00Z', NULL],
    ARRAY[[k, 1], [2, k]], ARRAY[point(1, k), point(k, 1)], ARRAY[k::numeric, 1.5], ARRAY['low', 'high']::ty_enum[],
    k, (ARRAY['low', 'mid', 'high'])[k % 3 + 1]::ty_enum, ROW(k, 'y' || k)::ty_pair, ARRAY[ROW(k, NULL)::ty_pair, NULL],
    ('(' || k || ',1)')::tid, 'A/10001000'::pg_lsn + k, 'pg_class', '1 2 3', k::text::xid8)
$$;
SELECT ty_row(k) FROM generate_series(1, 9) k;
INSERT INTO ty (id) VALUES (100);
\x
SELECT * FROM ty WHERE id IN (1, 6, 100) ORDER BY id;
\x
-- one column at a time, next to NULLs on both sides
INSERT INTO ty (id, tz) VALUES (101, '11:00:00+01');
INSERT INTO ty (id, i8, x8) VALUES (102, 1, '18446744073709551615');
INSERT INTO ty (id, b, p, an) VALUES (103, true, point(1.25, 2.5), '{}');
INSERT INTO ty (id, c, ma, f8) VALUES (104, 'x', '00:11:22:33:44:55', 'NaN');
INSERT INTO ty (id, n, bp) VALUES (105, repeat('n', 70)::name, '');
INSERT INTO ty (id, t, by, vc) VALUES (106, '', '', '');
INSERT INTO ty (id, num) VALUES (107, 'NaN');
SELECT id, b, c, i8, f8, n, bp, t, by, vc, num, tz, p, an, ma, x8 FROM ty WHERE id > 100 ORDER BY id;
-- updates of each kind of column leave the others alone
CREATE TABLE ty_before AS SELECT * FROM ty;
UPDATE ty SET b = NOT b, c = 'z', i2 = i2 + 1 WHERE id <= 3;
UPDATE ty SET num = num * 1000000007, t = t || t || 'x', at = at || 'more'::text WHERE id <= 5;
UPDATE ty SET iv = iv * 2, tz = NULL, p = p + point(1, 1), r = ROW(99, repeat('r', 200)) WHERE id BETWEEN 4 AND 8;
UPDATE ty SET mr = mr + int4multirange(int4range(500, 600)), ats = NULL, n = 'renamed', jb = jb || '{"new": [1, 2, 3]}' WHERE id > 6;
SELECT id, b, c, i2, num, t, at, iv, tz, p, left(r::text, 20) AS r, mr, ats, n, jb FROM ty WHERE id < 10 ORDER BY id;
SELECT count(*) FROM ty JOIN ty_before o USING (id) WHERE (ty.i4, ty.i8, ty.f4, ty.f8, ty.by, ty.u, ty.bx::text, ty.ma, ty.ma8, ty.tv,
    ty.ir, ty.a2, ty.ap::text, ty.ar, ty.lsn, ty.ov::text, ty.x8) IS DISTINCT FROM (o.i4, o.i8, o.f4, o.f8, o.by, o.u, o.bx::text, o.ma, o.ma8, o.tv,
    o.ir, o.a2, o.ap::text, o.ar, o.lsn, o.ov::text, o.x8);
-- short and long varlena around the limits of the short header
CREATE TABLE ty_len (n int PRIMARY KEY, v text, after int);
INSERT INTO ty_len SELECT n, repeat('v', n), n FROM unnest(ARRAY[0, 1, 2, 3, 4, 5, 6, 7, 8, 124, 125, 126, 127, 128, 129, 252, 255, 256, 1000, 1900, 2000, 2100]) n;
SELECT n, length(v), after, v = repeat('v', n) AS good FROM ty_len ORDER BY n;
UPDATE ty_len SET v = v || 'w';
UPDATE ty_len SET v = v || repeat('z', 120) WHERE n % 2 = 0;
SELECT n, length(v), after, v = repeat('v', n) || 'w' || repeat('z', CASE WHEN n % 2 = 0 THEN 120 ELSE 0 END) AS good FROM ty_len ORDER BY n;
-- errors on the way in
INSERT INTO ty (id, dom) VALUES (200, 0);
UPDATE ty SET dom = -1 WHERE id = 1;
UPDATE ty SET e = 'none' WHERE id = 1;
INSERT INTO ty (id, vc) VALUES (200, repeat('v', 21));
SELECT count(*) FROM ty;
-- a row type as value, whole-row references
SELECT ty_len FROM ty_len WHERE n < 3 ORDER BY n;
SELECT (ty_len).after FROM ty_len WHERE ty_len = ROW(2, 'vvw' || repeat('z', 120), 2)::ty_len;
DROP TABLE ty, ty_before, ty_len;
DROP FUNCTION ty_row;
DROP TYPE ty_pair, ty_enum;
DROP DOMAIN ty_domain;
