-- INSERT ... ON CONFLICT.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE oc (id int PRIMARY KEY, a int UNIQUE, n int DEFAULT 0, t text);
INSERT INTO oc VALUES (1, 10), (2, 20), (3, 30);
INSERT INTO oc VALUES (1, 11), (4, 40) ON CONFLICT DO NOTHING RETURNING *;
INSERT INTO oc VALUES (5, 10) ON CONFLICT DO NOTHING;
INSERT INTO oc VALUES (5, 10) ON CONFLICT (id) DO NOTHING;
INSERT INTO oc VALUES (1, 99, 1, 'up') ON CONFLICT (id) DO UPDATE SET a = excluded.a, n = oc.n + excluded.n, t = excluded.t RETURNING *;
INSERT INTO oc VALUES (2, 99, 1, 'up') ON CONFLICT (id) DO UPDATE SET a = excluded.a;
INSERT INTO oc VALUES (7, 20, 1, 'via a') ON CONFLICT ON CONSTRAINT oc_a_key DO UPDATE SET n = oc.n + 1, t = excluded.t RETURNING *;
INSERT INTO oc AS o VALUES (2, 2) ON CONFLICT (id) DO UPDATE SET n = o.n + 100 WHERE o.n > 5 RETURNING *;
INSERT INTO oc AS o VALUES (2, 2) ON CONFLICT (id) DO UPDATE SET n = o.n + 100 WHERE o.n < 5 RETURNING *;
SELECT * FROM oc ORDER BY id;
-- several rows, the same twice
INSERT INTO oc SELECT i, i * 100 FROM generate_series(1, 8) i ON CONFLICT (id) DO UPDATE SET n = oc.n + 1, t = 'bulk';
INSERT INTO oc VALUES (9, 900), (9, 901) ON CONFLICT (id) DO UPDATE SET n = 5;
INSERT INTO oc VALUES (9, 900), (9, 901) ON CONFLICT (id) DO NOTHING;
SELECT * FROM oc ORDER BY id;
-- changing the key, growing the row
INSERT INTO oc VALUES (9, 1) ON CONFLICT (id) DO UPDATE SET id = 90;
INSERT INTO oc VALUES (90, 1) ON CONFLICT (id) DO UPDATE SET id = 1;
INSERT INTO oc VALUES (90, 1) ON CONFLICT (id) DO UPDATE SET t = repeat('grown', 300);
SELECT id, a, n, length(t) FROM oc WHERE id >= 9 ORDER BY id;
-- rows of this transaction, of rolled back savepoints
BEGIN;
INSERT INTO oc VALUES (20, 2000);
INSERT INTO oc VALUES (20, 2001) ON CONFLICT (id) DO UPDATE SET a = excluded.a;
INSERT INTO oc VALUES (20, 2002) ON CONFLICT (id) DO UPDATE SET a = excluded.a, n = oc.n + 1;
SAVEPOINT s;
INSERT INTO oc VALUES (20, 2003) ON CONFLICT (id) DO UPDATE SET a = excluded.a, n = oc.n + 1;
INSERT INTO oc VALUES (21, 2100) ON CONFLICT (id) DO NOTHING;
ROLLBACK TO s;
INSERT INTO oc VALUES (21, 2101) ON CONFLICT (id) DO UPDATE SET n = -1 RETURNING *;
DELETE FROM oc WHERE id = 21;
INSERT INTO oc VALUES (21, 2102) ON CONFLICT (id) DO UPDATE SET n = -1 RETURNING *;
COMMIT;
SELECT * FROM oc WHERE id >= 20 ORDER BY id;
-- a counter
DO $$ BEGIN FOR i IN 1..500 LOOP INSERT INTO oc (id) VALUES (i % 3 + 500) ON CONFLICT (id) DO UPDATE SET n = oc.n + 1; END LOOP; END $$;
SELECT id, n FROM oc WHERE id >= 500 ORDER BY id;
-- partial and expression indexes
CREATE TABLE oc_part (k text, v int);
CREATE UNIQUE INDEX oc_part_i ON oc_part (lower(k)) WHERE v > 0;
INSERT INTO oc_part VALUES ('A', 1), ('b', 0);
INSERT INTO oc_part VALUES ('a', 5) ON CONFLICT (lower(k)) WHERE v > 0 DO UPDATE SET v = oc_part.v + excluded.v;
INSERT INTO oc_part VALUES ('a', 0) ON CONFLICT (lower(k)) WHERE v > 0 DO NOTHING;
INSERT INTO oc_part VALUES ('a', 0) ON CONFLICT (k) DO NOTHING;
SELECT * FROM oc_part ORDER BY k, v;
-- exclusion constraints, triggers
CREATE TABLE oc_ex (r int4range, EXCLUDE USING gist (r WITH &&));
INSERT INTO oc_ex VALUES ('[1,5)'), ('[3,7)'), ('[7,9)') ON CONFLICT DO NOTHING;
SELECT * FROM oc_ex ORDER BY r;
CREATE FUNCTION oc_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE NOTICE '% %: % -> %', TG_WHEN, TG_OP, CASE WHEN TG_OP = 'UPDATE' THEN OLD::text END, NEW; RETURN NEW; END $$;
CREATE TRIGGER oc_b BEFORE INSERT OR UPDATE ON oc FOR EACH ROW EXECUTE FUNCTION oc_note();
CREATE TRIGGER oc_a AFTER INSERT OR UPDATE ON oc FOR EACH ROW EXECUTE FUNCTION oc_note();
INSERT INTO oc VALUES (3, NULL), (600, 6000) ON CONFLICT (id) DO UPDATE SET n = oc.n + 1;
INSERT INTO oc VALUES (3, NULL) ON CONFLICT (id) DO NOTHING;
-- what a row was looked at for is over when the same command locks it for a trigger
CREATE FUNCTION oc_same() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN coalesce(NEW, OLD); END $$;
CREATE TABLE oc_twice (id int PRIMARY KEY, k int UNIQUE DEFERRABLE INITIALLY DEFERRED, n int);
INSERT INTO oc_twice VALUES (1, 1, 0), (2, 2, 0);
CREATE TRIGGER oc_t BEFORE UPDATE OR DELETE ON oc_twice FOR EACH ROW EXECUTE FUNCTION oc_same();
CREATE TABLE oc_with (id int, k int);
INSERT INTO oc_with VALUES (2, 2), (1, 2), (2, 2);
INSERT INTO oc_with SELECT 99, 2 FROM generate_series(1, 1000);
ANALYZE oc_with;
SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_nestloop = off; SET enable_mergejoin = off;
BEGIN ISOLATION LEVEL REPEATABLE READ;
WITH u AS (UPDATE oc_twice SET n = n + 1 FROM (VALUES (1), (1), (2)) v(k) WHERE oc_twice.id = v.k RETURNING oc_twice.id)
INSERT INTO oc_twice SELECT id, 0, 0 FROM u ON CONFLICT (id) DO NOTHING;
SELECT * FROM oc_twice ORDER BY id;
UPDATE oc_twice SET k = w.k, n = n + 1 FROM oc_with w WHERE oc_twice.id = w.id;
UPDATE oc_twice SET k = 1 WHERE id = 1;
WITH u AS (UPDATE oc_twice SET k = w.k, n = n + 1 FROM oc_with w WHERE oc_twice.id = w.id RETURNING oc_twice.id)
DELETE FROM oc_twice USING u WHERE oc_twice.id = 2;
UPDATE oc_twice SET k = 1 WHERE id = 1;
COMMIT;
BEGIN ISOLATION LEVEL REPEATABLE READ;
MERGE INTO oc_twice t USING oc_with w ON t.id = w.id WHEN MATCHED THEN UPDATE SET k = w.k, n = n + 1;
ROLLBACK;
SELECT * FROM oc_twice ORDER BY id;
RESET enable_indexscan; RESET enable_bitmapscan; RESET enable_nestloop; RESET enable_mergejoin;
-- a constraint's check looks at a row last that it does not want, and the command locks the row; so does an index expression's own query
CREATE TABLE oc_circle (id int, c circle, EXCLUDE USING gist (c WITH &&));
CREATE TRIGGER oc_t BEFORE UPDATE OR DELETE ON oc_circle FOR EACH ROW EXECUTE FUNCTION oc_same();
INSERT INTO oc_circle VALUES (1, '<(0,0),1>');
SET enable_indexscan = off; SET enable_bitmapscan = off;
BEGIN ISOLATION LEVEL REPEATABLE READ;
WITH u AS (UPDATE oc_circle SET id = 2 WHERE id = 1 RETURNING c),
	i AS (INSERT INTO oc_circle SELECT 3, '<(1.9,1.9),1>' FROM u RETURNING id)
DELETE FROM oc_circle USING i WHERE oc_circle.id = 1;
SELECT * FROM oc_circle ORDER BY id;
COMMIT;
RESET enable_indexscan; RESET enable_bitmapscan;
CREATE TABLE oc_factor (id int PRIMARY KEY, n int);
INSERT INTO oc_factor SELECT i, 10 FROM generate_series(1, 3) i;
CREATE FUNCTION oc_times(int) RETURNS int LANGUAGE plpgsql IMMUTABLE SET enable_seqscan = off SET enable_bitmapscan = off
	AS $$ BEGIN RETURN $1 * n FROM oc_factor WHERE id = $1; END $$;
CREATE TABLE oc_expr (id int, n int);
CREATE UNIQUE INDEX ON oc_expr (oc_times(id));
INSERT INTO oc_expr VALUES (1, 1), (1, 2) ON CONFLICT (oc_times(id)) DO UPDATE SET n = excluded.n;
INSERT INTO oc_expr VALUES (1, 1) ON CONFLICT (oc_times(id)) DO UPDATE SET n = excluded.n;
INSERT INTO oc_expr VALUES (1, 2), (1, 3) ON CONFLICT (oc_times(id)) DO UPDATE SET n = excluded.n;
INSERT INTO oc_expr VALUES (1, 2), (2, 2) ON CONFLICT (oc_times(id)) DO UPDATE SET n = excluded.n;
SELECT * FROM oc_expr ORDER BY id;
-- one that reads the row itself
CREATE TABLE oc_self (id int, b int);
CREATE INDEX ON oc_self (id);
CREATE FUNCTION oc_look(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM b FROM oc_self WHERE id = i; RETURN i; END $$;
CREATE UNIQUE INDEX ON oc_self (oc_look(id));
INSERT INTO oc_self VALUES (1, 0);
INSERT INTO oc_self VALUES (1, 5), (1, 6) ON CONFLICT (oc_look(id)) DO UPDATE SET b = oc_self.b + 1;
SET enable_seqscan = off;
INSERT INTO oc_self VALUES (1, 5), (1, 6) ON CONFLICT (oc_look(id)) DO UPDATE SET b = oc_self.b + 1;
INSERT INTO oc_self VALUES (1, 5) ON CONFLICT (oc_look(id)) DO UPDATE SET b = oc_self.b + 1;
RESET enable_seqscan;
SELECT * FROM oc_self;
-- and one that writes
CREATE TABLE oc_log (i int PRIMARY KEY, n int);
CREATE FUNCTION oc_write(i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN INSERT INTO oc_log VALUES (i, 1) ON CONFLICT ON CONSTRAINT oc_log_pkey DO UPDATE SET n = oc_log.n + 1; RETURN i; END $$;
CREATE FUNCTION oc_writes(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN oc_write(i); END $$;
CREATE TABLE oc_written (id int, b int);
CREATE UNIQUE INDEX ON oc_written (oc_writes(id));
INSERT INTO oc_written VALUES (1, 0);
INSERT INTO oc_written VALUES (1, 5), (1, 6) ON CONFLICT (oc_writes(id)) DO UPDATE SET b = oc_written.b + 1;
INSERT INTO oc_written VALUES (1, 5), (2, 5) ON CONFLICT (oc_writes(id)) DO UPDATE SET b = oc_written.b + 1;
SELECT * FROM oc_written ORDER BY id;
-- and one that locks the row, by an upsert of its own
CREATE TABLE oc_nested (id int PRIMARY KEY, b int);
CREATE FUNCTION oc_upsert(i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN INSERT INTO oc_nested VALUES (i, 0) ON CONFLICT (id) DO UPDATE SET b = 1 WHERE false; RETURN i; END $$;
CREATE FUNCTION oc_upserts(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN IF pg_trigger_depth() = 0 AND current_setting('oc.nested', true) = 'on' THEN RETURN oc_upsert(i); END IF; RETURN i; END $$;
CREATE UNIQUE INDEX ON oc_nested (oc_upserts(id));
INSERT INTO oc_nested VALUES (2, 0);
SET oc.nested = on;
INSERT INTO oc_nested VALUES (2, 5), (2, 6) ON CONFLICT (oc_upserts(id)) DO UPDATE SET b = oc_nested.b + 1;
RESET oc.nested;
SELECT * FROM oc_nested;
DROP TABLE oc_nested, oc_written, oc_log, oc_self, oc, oc_part, oc_ex, oc_twice, oc_with, oc_circle, oc_expr, oc_factor;
DROP FUNCTION oc_note, oc_same, oc_times, oc_look, oc_writes, oc_write, oc_upserts, oc_upsert;
