-- NULL bitmaps, many columns, added and dropped columns.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
-- every pattern of NULLs in nine columns
CREATE TABLE co_null (id int, a int, b text, c bool, d int8, e numeric, f point, g "char", h timestamptz);
INSERT INTO co_null SELECT i, CASE WHEN i & 1 > 0 THEN i END, CASE WHEN i & 2 > 0 THEN 'b' || i END, CASE WHEN i & 4 > 0 THEN true END,
    CASE WHEN i & 8 > 0 THEN i END, CASE WHEN i & 16 > 0 THEN i END, CASE WHEN i & 32 > 0 THEN point(i, i) END,
    CASE WHEN i & 64 > 0 THEN 'g'::"char" END, CASE WHEN i & 128 > 0 THEN timestamptz 'epoch' END FROM generate_series(0, 255) i;
SELECT count(*), count(a), count(b), count(c), count(d), count(e), count(f), count(g), count(h) FROM co_null;
SELECT count(*) FROM co_null WHERE (a IS NOT NULL) <> (id & 1 > 0) OR (b IS NOT NULL) <> (id & 2 > 0) OR (c IS NOT NULL) <> (id & 4 > 0)
    OR (d IS NOT NULL) <> (id & 8 > 0) OR (e IS NOT NULL) <> (id & 16 > 0) OR (f IS NOT NULL) <> (id & 32 > 0)
    OR (g IS NOT NULL) <> (id & 64 > 0) OR (h IS NOT NULL) <> (id & 128 > 0) OR a <> id OR b <> 'b' || id OR d <> id OR e <> id OR f[0] <> id;
-- invert the pattern by updates, one column at a time
UPDATE co_null SET a = CASE WHEN a IS NULL THEN id END;
UPDATE co_null SET b = CASE WHEN b IS NULL THEN 'b' || id END;
UPDATE co_null SET e = CASE WHEN e IS NULL THEN id END, f = CASE WHEN f IS NULL THEN point(id, id) END;
UPDATE co_null SET h = CASE WHEN h IS NULL THEN timestamptz 'epoch' END, c = CASE WHEN c IS NULL THEN true END;
SELECT count(*) FROM co_null WHERE (a IS NULL) <> (id & 1 > 0) OR (b IS NULL) <> (id & 2 > 0) OR (c IS NULL) <> (id & 4 > 0)
    OR (d IS NOT NULL) <> (id & 8 > 0) OR (e IS NULL) <> (id & 16 > 0) OR (f IS NULL) <> (id & 32 > 0)
    OR (g IS NOT NULL) <> (id & 64 > 0) OR (h IS NULL) <> (id & 128 > 0) OR a <> id OR b <> 'b' || id OR d <> id OR e <> id OR f[0] <> id;
INSERT INTO co_null DEFAULT VALUES;
SELECT count(*) FROM co_null WHERE co_null IS NULL;
-- 1600 columns
DO $$ BEGIN EXECUTE 'CREATE TABLE co_max (' || (SELECT string_agg('c' || i || CASE i % 3 WHEN 0 THEN ' int' WHEN 1 THEN ' "char"' ELSE ' bool' END, ', ')
    FROM generate_series(1, 1600) i) || ')'; END $$;
INSERT INTO co_max (c1, c800, c1600) VALUES ('x', true, '7');
INSERT INTO co_max DEFAULT VALUES;
DO $$ BEGIN EXECUTE 'INSERT INTO co_max SELECT ' || (SELECT string_agg(CASE i % 3 WHEN 0 THEN i::text WHEN 1 THEN '''y''::"char"' ELSE 'true' END, ', ')
    FROM generate_series(1, 1600) i); END $$;
SELECT c1, c2, c3, c800, c1599, c1600 FROM co_max ORDER BY c1599 NULLS FIRST, c1 NULLS FIRST;
UPDATE co_max SET c1599 = 5, c2 = false, c1600 = NULL WHERE c1 IS NOT NULL;
SELECT c1, c2, c3, c800, c1599, c1600 FROM co_max ORDER BY c1599 NULLS FIRST, c3 NULLS FIRST;
DELETE FROM co_max WHERE c3 IS NULL;
SELECT count(*), (SELECT count(*) FROM jsonb_each_text(to_jsonb(m)) WHERE value IS NOT NULL) AS filled FROM co_max m GROUP BY m.*;
ALTER TABLE co_max ADD COLUMN one_more int;
-- added columns: with and without default, constant and volatile
CREATE TABLE co_add (id int PRIMARY KEY, a int);
INSERT INTO co_add SELECT i, i FROM generate_series(1, 5) i;
ALTER TABLE co_add ADD COLUMN b int;
ALTER TABLE co_add ADD COLUMN c int DEFAULT 7;
ALTER TABLE co_add ADD COLUMN d text DEFAULT 'some default text';
INSERT INTO co_add (id, a) VALUES (6, 6);
SELECT * FROM co_add ORDER BY id;
UPDATE co_add SET a = -1 WHERE id = 1;
UPDATE co_add SET b = 5 WHERE id = 2;
UPDATE co_add SET c = NULL WHERE id = 3;
UPDATE co_add SET d = 'd' WHERE id = 4;
ALTER TABLE co_add ADD COLUMN e numeric NOT NULL DEFAULT 1.5;
ALTER TABLE co_add ALTER COLUMN c SET DEFAULT 8;
INSERT INTO co_add (id) VALUES (7);
UPDATE co_add SET e = e * 2 WHERE id IN (5, 7);
SELECT * FROM co_add ORDER BY id;
CREATE SEQUENCE co_seq;
ALTER TABLE co_add ADD COLUMN f int DEFAULT nextval('co_seq');
SELECT id, f IS NOT NULL AS filled FROM co_add ORDER BY id;
-- in a transaction that rolls back
BEGIN;
ALTER TABLE co_add ADD COLUMN g text DEFAULT 'gone';
UPDATE co_add SET g = 'x', a = 100 WHERE id = 1;
SELECT id, a, g FROM co_add WHERE id < 3 ORDER BY id;
ROLLBACK;
SELECT id, a FROM co_add WHERE id < 3 ORDER BY id;
-- dropped columns
ALTER TABLE co_add DROP COLUMN d;
SELECT id, a, b, c, e FROM co_add WHERE id < 4 ORDER BY id;
UPDATE co_add SET a = a + 1;
INSERT INTO co_add (id, a) VALUES (8, 8);
ALTER TABLE co_add DROP COLUMN a, ADD COLUMN a text DEFAULT 'again';
UPDATE co_add SET b = id WHERE b IS NULL;
SELECT id, b, c, e, a FROM co_add ORDER BY id;
ALTER TABLE co_add DROP COLUMN id;
SELECT count(*), sum(b) FROM co_add;
-- a new column after a rewrite, a changed type
ALTER TABLE co_add ALTER COLUMN b TYPE text USING 'b' || b;
ALTER TABLE co_add ADD COLUMN z int DEFAULT 3;
SELECT b, c, e, a, z FROM co_add ORDER BY b COLLATE "C", e;
-- no columns at all
CREATE TABLE co_none ();
INSERT INTO co_none DEFAULT VALUES;
INSERT INTO co_none DEFAULT VALUES;
SELECT count(*) FROM co_none;
ALTER TABLE co_none ADD COLUMN a int DEFAULT 4;
SELECT * FROM co_none;
UPDATE co_none SET a = 5;
SELECT * FROM co_none;
-- generated and identity columns
CREATE TABLE co_gen (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a int, twice int GENERATED ALWAYS AS (a * 2) STORED, w text DEFAULT 'w');
INSERT INTO co_gen (a) VALUES (1), (2), (NULL);
UPDATE co_gen SET a = 10 WHERE id = 1;
UPDATE co_gen SET w = 'v' WHERE id = 2;
SELECT * FROM co_gen ORDER BY id;
DROP TABLE co_null, co_max, co_add, co_none, co_gen;
DROP SEQUENCE co_seq;
