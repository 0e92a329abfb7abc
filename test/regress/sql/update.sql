-- UPDATE: in place, growing, shrinking, of indexed columns, moving rows to other pages.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE up (id int PRIMARY KEY, a int, t text, k int);
CREATE INDEX up_k ON up (k);
INSERT INTO up SELECT i, i, 't' || i, i % 10 FROM generate_series(1, 300) i;
-- unindexed column
UPDATE up SET a = a + 1000;
UPDATE up SET a = -a WHERE id % 2 = 0;
SELECT count(*), sum(a), min(a), max(a) FROM up;
-- growing
UPDATE up SET t = t || repeat('+', 50) WHERE id % 3 = 0;
UPDATE up SET t = t || repeat('-', 200) WHERE id % 7 = 0;
UPDATE up SET t = repeat('g', id) WHERE id <= 100;
SELECT count(*), sum(length(t)), md5(string_agg(t, ',' ORDER BY id)) FROM up;
-- shrinking
UPDATE up SET t = left(t, 2);
UPDATE up SET t = NULL WHERE id % 5 = 0;
SELECT count(*), count(t), sum(length(t)), md5(string_agg(t, ',' ORDER BY id)) FROM up;
-- every row to several times its size, and back, twice
UPDATE up SET t = repeat('big', 200);
UPDATE up SET t = 's';
UPDATE up SET t = repeat('big', 300);
UPDATE up SET t = 's';
SELECT count(*), sum(a), count(DISTINCT id), min(t), max(t) FROM up;
-- indexed columns
UPDATE up SET k = k + 1 WHERE id % 2 = 0;
UPDATE up SET k = 99, t = 'moved' WHERE id <= 5;
SELECT k, count(*), sum(id) FROM up GROUP BY k ORDER BY k;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT k, count(*), sum(id) FROM up WHERE k >= 0 GROUP BY k ORDER BY k;
SELECT id, a, t, k FROM up WHERE k = 99 ORDER BY id;
SELECT id, a, t, k FROM up WHERE k = 1 AND id < 20 ORDER BY id;
RESET enable_seqscan;
RESET enable_bitmapscan;
-- the primary key
UPDATE up SET id = id + 1000 WHERE id <= 3;
UPDATE up SET id = 5 WHERE id = 4;
UPDATE up SET id = -id;
SELECT id, a, k FROM up WHERE id < -295 OR id > -7 ORDER BY id;
-- the same row again and again in one transaction
BEGIN;
UPDATE up SET a = 1 WHERE id = -10;
UPDATE up SET a = a + 1 WHERE id = -10;
UPDATE up SET a = a + 1, k = 50 WHERE id = -10;
UPDATE up SET t = repeat('x', 500) WHERE id = -10;
UPDATE up SET a = a * 10 WHERE id = -10;
SELECT id, a, length(t), k FROM up WHERE id = -10;
COMMIT;
SELECT id, a, length(t), k FROM up WHERE id = -10;
-- no change at all
UPDATE up SET a = a, t = t, k = k;
SELECT count(*), sum(a), sum(k) FROM up;
-- an update never sees its own result
UPDATE up SET a = a + 1 WHERE a < 1000000;
UPDATE up SET k = k + 1 WHERE k >= 0;
SELECT count(*), sum(a), sum(k) FROM up;
-- FROM, subqueries, WITH, self joins
CREATE TABLE up_src (id int PRIMARY KEY, v int);
INSERT INTO up_src SELECT -i, i * 100 FROM generate_series(1, 400, 3) i;
UPDATE up SET a = v, t = 'from' FROM up_src s WHERE s.id = up.id;
UPDATE up SET a = (SELECT count(*) FROM up_src WHERE up_src.id > up.id) WHERE id % 4 = 0;
UPDATE up SET (a, t) = (SELECT min(v), 'row' FROM up_src) WHERE id = -20 RETURNING *;
UPDATE up u SET a = o.a FROM up o WHERE o.id = u.id - 1 AND u.id % 10 = 0;
WITH changed AS (UPDATE up SET k = -1 WHERE id > -20 RETURNING id, k) SELECT count(*), sum(id), sum(k) FROM changed;
SELECT count(*), sum(a), count(DISTINCT t), sum(k) FROM up;
-- several matches of one row: it is updated once
UPDATE up SET k = 7 FROM generate_series(1, 3) g WHERE up.id = -50 RETURNING up.id, k;
-- rows wider than half a page
CREATE TABLE up_wide (id int PRIMARY KEY, v text);
ALTER TABLE up_wide ALTER v SET STORAGE PLAIN;
INSERT INTO up_wide SELECT i, 'v' FROM generate_series(1, 20) i;
UPDATE up_wide SET v = repeat(chr(96 + id), 5000);
SELECT id, length(v), left(v, 1) FROM up_wide ORDER BY id;
UPDATE up_wide SET v = repeat(chr(96 + id), 7000) WHERE id % 2 = 0;
UPDATE up_wide SET v = 'short' WHERE id % 3 = 0;
SELECT id, length(v), left(v, 1) FROM up_wide ORDER BY id;
DO $$ BEGIN UPDATE up_wide SET v = repeat('z', 9000) WHERE id = 1; EXCEPTION WHEN program_limit_exceeded THEN RAISE NOTICE 'too big'; END $$;
SELECT count(*), sum(length(v)) FROM up_wide;
-- a hot row, many times, then its indexes
DO $$ BEGIN FOR i IN 1..2000 LOOP UPDATE up SET a = i WHERE id = -30; END LOOP; END $$;
DO $$ BEGIN FOR i IN 1..300 LOOP UPDATE up SET k = i, t = repeat('h', i) WHERE id = -30; END LOOP; END $$;
SELECT id, a, k, length(t) FROM up WHERE id = -30;
SET enable_seqscan = off;
SELECT id, a, k, length(t) FROM up WHERE k = 300;
SELECT count(*) FROM up WHERE k BETWEEN 100 AND 299;
RESET enable_seqscan;
DROP TABLE up, up_src, up_wide;
-- the second of two changes by one command is passed over, whatever commands inside it have done to the row since; an inner first one is an error
CREATE TABLE u_self (id int, b int, c text);
CREATE INDEX ON u_self (id);
CREATE FUNCTION u_inner(i int, how text) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	IF i <> 2 THEN RETURN 1; END IF;
	CASE how
		WHEN 'update' THEN UPDATE u_self SET c = 'x' WHERE id = 1;
		WHEN 'move' THEN UPDATE u_self SET c = repeat('x', 7000) WHERE id = 1;
		WHEN 'delete' THEN DELETE FROM u_self WHERE id = 1;
		WHEN 'lock' THEN PERFORM FROM u_self WHERE id = 1 FOR UPDATE;
		WHEN 'many' THEN FOR n IN 1..300 LOOP UPDATE u_self SET c = n WHERE id = 1; END LOOP;
		WHEN 'later' THEN UPDATE u_self SET c = 'y' WHERE id = 3;
		WHEN 'undone' THEN
			BEGIN
				UPDATE u_self SET c = 'x' WHERE id = 1;
				RAISE division_by_zero;
			EXCEPTION WHEN division_by_zero THEN UPDATE u_self SET c = 'z' WHERE id = 1;
			END;
	END CASE;
	RETURN 1;
END $$;
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off; SET enable_bitmapscan = off; SET join_collapse_limit = 1;
CREATE FUNCTION u_try(statement text, how text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text := '';
BEGIN
	TRUNCATE u_self;
	INSERT INTO u_self VALUES (1, 0, ''), (2, 0, ''), (3, 0, repeat('f', 6000));
	EXECUTE replace(statement, 'inner', format('u_inner(t.id, %L)', how));
	SELECT string_agg(concat_ws(' ', id, b, left(c, 3)), ', ' ORDER BY id) INTO result FROM u_self;
	RETURN result;
EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE || ': ' || SQLERRM;
END $$;
SELECT how, s, u_try(statement, how) FROM unnest(ARRAY['update', 'move', 'delete', 'lock', 'many', 'later', 'undone']) how,
	(VALUES (1, 'UPDATE u_self t SET b = b + inner FROM (VALUES (1), (2), (1), (3)) v(x) WHERE t.id = v.x'),
		(2, 'DELETE FROM u_self t USING (VALUES (1), (2), (1), (3)) v(x) WHERE t.id = v.x AND inner = 1'),
		(3, 'MERGE INTO u_self t USING (VALUES (1), (2), (1), (3)) v(x) ON t.id = v.x WHEN MATCHED THEN UPDATE SET b = t.b + inner'),
		(4, 'WITH u AS (UPDATE u_self t SET b = 5 WHERE id <> 2 RETURNING id), v AS MATERIALIZED (SELECT inner FROM u_self t WHERE id = 2 FOR UPDATE)
			UPDATE u_self SET b = b + 1 FROM u, v WHERE u_self.id = u.id')) x(s, statement)
	ORDER BY 2, 1;
CREATE FUNCTION u_bump() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE u_self SET c = c || 'i' WHERE id = 1; RETURN NEW; END $$;
TRUNCATE u_self;
INSERT INTO u_self VALUES (1, 0, ''), (2, 0, '');
CREATE TRIGGER u_t BEFORE UPDATE ON u_self FOR EACH ROW WHEN (pg_trigger_depth() = 0 AND OLD.id = 2) EXECUTE FUNCTION u_bump();
UPDATE u_self SET b = b + 1 FROM (VALUES (1), (2), (1)) v(x) WHERE u_self.id = v.x;
SELECT * FROM u_self ORDER BY id;
RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_seqscan; RESET enable_bitmapscan; RESET join_collapse_limit;
DROP TABLE u_self;
DROP FUNCTION u_inner, u_try, u_bump;
