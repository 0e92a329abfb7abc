-- RETURNING of every statement, with expressions and row types.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE re (id int PRIMARY KEY, a int, t text DEFAULT 'dflt');
INSERT INTO re VALUES (1, 10), (2, 20), (3, NULL) RETURNING *;
INSERT INTO re (id) SELECT 4 RETURNING id, t, a IS NULL AS empty, re;
WITH x AS (UPDATE re SET a = coalesce(a, 0) + 1 RETURNING id, a) SELECT * FROM x ORDER BY id;
WITH x AS (UPDATE re SET t = t || id WHERE id > 2 RETURNING upper(t), length(t), (SELECT count(*) FROM re) AS seen) SELECT * FROM x ORDER BY 1;
UPDATE re SET a = o.a FROM re o WHERE re.id = 1 AND o.id = 2 RETURNING re.*, o.*;
DELETE FROM re WHERE id = 4 RETURNING id, t, re;
DELETE FROM re USING (VALUES (3, 'three')) v (id, name) WHERE re.id = v.id RETURNING re.id, a, name;
WITH u AS (UPDATE re SET a = 100 WHERE id = 1 RETURNING *), d AS (DELETE FROM re WHERE id = 2 RETURNING *),
    i AS (INSERT INTO re VALUES (5, 5) RETURNING *)
SELECT 'u' AS what, * FROM u UNION ALL SELECT 'd', * FROM d UNION ALL SELECT 'i', * FROM i UNION ALL SELECT 'old', * FROM re ORDER BY what, id;
SELECT * FROM re ORDER BY id;
-- large values come back whole
INSERT INTO re VALUES (6, 6, repeat('x', 100000)) RETURNING id, length(t);
UPDATE re SET a = 7 WHERE id = 6 RETURNING a, length(t);
UPDATE re SET t = t || 'y' WHERE id = 6 RETURNING length(t), right(t, 2);
DELETE FROM re WHERE id = 6 RETURNING length(t), right(t, 2);
-- many rows, longer than before
INSERT INTO re SELECT i, i FROM generate_series(100, 599) i;
WITH u AS (UPDATE re SET t = repeat('l', 100 + id % 10) WHERE id >= 100 RETURNING id, length(t) AS l) SELECT count(*), sum(id), sum(l) FROM u;
WITH d AS (DELETE FROM re WHERE id >= 100 RETURNING id, length(t) AS l) SELECT count(*), sum(id), sum(l) FROM d;
SELECT count(*) FROM re;
-- a function that changes the table while RETURNING is evaluated
CREATE FUNCTION re_touch(which int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE result int; BEGIN UPDATE re SET a = a + 1 WHERE id = which RETURNING a INTO result; RETURN result; END $$;
INSERT INTO re VALUES (7, 7) RETURNING id, a, re_touch(1), re_touch(1);
UPDATE re SET a = 0 WHERE id = 7 RETURNING id, a, re_touch(1);
SELECT * FROM re ORDER BY id;
SELECT id, re_touch(5), re_touch(id) FROM re ORDER BY id;
SELECT * FROM re ORDER BY id;
DROP FUNCTION re_touch;
DROP TABLE re;
