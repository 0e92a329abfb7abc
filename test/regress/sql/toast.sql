-- Large values: in, out, updated, left alone, with all storage kinds.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE ta (id int PRIMARY KEY, a int, ext text, comp text, main text, plain text);
ALTER TABLE ta ALTER ext SET STORAGE EXTERNAL, ALTER comp SET STORAGE EXTENDED, ALTER main SET STORAGE MAIN, ALTER plain SET STORAGE PLAIN;
-- a value that does not compress
CREATE FUNCTION ta_noise(seed int, n int) RETURNS text LANGUAGE sql IMMUTABLE AS
    $$ SELECT string_agg(md5((seed * 1000 + g)::text), '') FROM generate_series(1, n) g $$;
INSERT INTO ta VALUES (1, 1, repeat('e', 10000), repeat('c', 10000), repeat('m', 10000), 'p');
INSERT INTO ta VALUES (2, 2, ta_noise(2, 200), ta_noise(3, 200), ta_noise(4, 100), repeat('p', 1000));
INSERT INTO ta VALUES (3, 3, 'short', 'short', 'short', 'short');
INSERT INTO ta VALUES (4, 4, NULL, repeat('x', 1000000), NULL, NULL);
CREATE FUNCTION ta_show() RETURNS TABLE (id int, a int, le int, lc int, lm int, lp int, md text) LANGUAGE sql AS $$
SELECT id, a, length(ext), length(comp), length(main), length(plain), left(md5(ta::text), 12) FROM ta ORDER BY id $$;
SELECT * FROM ta_show();
SELECT id, substr(ext, 9000, 5), right(comp, 5), left(main, 3) FROM ta ORDER BY id;
-- unchanged large values survive updates of other columns
UPDATE ta SET a = a + 10;
UPDATE ta SET plain = plain || 'q' WHERE id = 2;
SELECT * FROM ta_show();
-- changed ones
UPDATE ta SET ext = ext || 'more' WHERE id IN (1, 3);
UPDATE ta SET comp = ta_noise(9, 500) WHERE id = 1;
UPDATE ta SET main = repeat('n', 20000), ext = NULL WHERE id = 2;
UPDATE ta SET comp = 'small again' WHERE id = 4;
SELECT * FROM ta_show();
UPDATE ta SET ext = ta_noise(id, 300), comp = ta_noise(id + 10, 300);
SELECT * FROM ta_show();
-- in a transaction, with savepoints, rolled back
BEGIN;
UPDATE ta SET ext = 'x', comp = repeat('y', 5000);
SAVEPOINT s;
UPDATE ta SET ext = ta_noise(77, 400);
DELETE FROM ta WHERE id = 2;
ROLLBACK TO s;
SELECT * FROM ta_show();
ROLLBACK;
SELECT * FROM ta_show();
BEGIN;
UPDATE ta SET ext = ta_noise(50, 100) WHERE id = 1;
UPDATE ta SET ext = ta_noise(51, 100) WHERE id = 1;
SAVEPOINT s;
UPDATE ta SET ext = ta_noise(52, 100) WHERE id = 1;
ROLLBACK TO s;
UPDATE ta SET a = 0 WHERE id = 1;
COMMIT;
SELECT ext = ta_noise(51, 100) AS right_version FROM ta WHERE id = 1;
-- a cursor reads old large values after they were replaced
BEGIN;
DECLARE c CURSOR FOR SELECT id, length(ext) AS le, left(md5(ext), 8) AS e, length(comp) AS lc, left(md5(comp), 8) AS c FROM ta ORDER BY id;
FETCH 1 FROM c;
UPDATE ta SET ext = 'new', comp = ta_noise(5, 50);
DELETE FROM ta WHERE id > 2;
FETCH ALL FROM c;
ROLLBACK;
-- values go from row to row, table to table
INSERT INTO ta SELECT id + 10, a, comp, ext, main, plain FROM ta WHERE id < 3;
UPDATE ta SET ext = o.comp FROM ta o WHERE ta.id = 11 AND o.id = 12;
CREATE TABLE ta_copy AS SELECT * FROM ta;
DELETE FROM ta WHERE id < 10;
VACUUM ta;
SELECT * FROM ta_show();
SELECT count(*), sum(length(ext)), sum(length(comp)) FROM ta_copy;
SELECT count(*) FROM ta JOIN ta_copy c USING (id) WHERE (ta.ext, ta.comp, ta.main) IS DISTINCT FROM (c.ext, c.comp, c.main);
CREATE TABLE ta_heap (LIKE ta) USING heap;
INSERT INTO ta_heap SELECT * FROM ta;
TRUNCATE ta;
INSERT INTO ta SELECT * FROM ta_heap;
DROP TABLE ta_heap;
SELECT * FROM ta_show();
-- the toast table is an inplace table, and loses what is no longer needed
SELECT a.amhandler = (SELECT amhandler FROM pg_am WHERE amname = 'inplace') AS inplace FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid JOIN pg_am a ON a.oid = t.relam WHERE c.relname = 'ta';
DELETE FROM ta;
SELECT reltoastrelid::regclass AS toast_table FROM pg_class WHERE relname = 'ta' \gset
SELECT count(*) FROM :toast_table;
-- compression and settings
CREATE TABLE ta_set (id int, t text COMPRESSION pglz) WITH (toast_tuple_target = 300);
INSERT INTO ta_set SELECT i, ta_noise(i, 15) FROM generate_series(1, 20) i;
SELECT count(*), sum(length(t)), bool_and(t = ta_noise(id, 15)) FROM ta_set;
UPDATE ta_set SET t = repeat('c', 3000) WHERE id % 2 = 0;
SELECT pg_column_compression(t), count(*), sum(length(t)) FROM ta_set GROUP BY 1 ORDER BY 1;
-- arrays, jsonb and composites that hold large values
CREATE TABLE ta_nest (id int, arr text[], j jsonb, r ta);
INSERT INTO ta_nest VALUES (1, ARRAY[ta_noise(1, 100), 'x'], jsonb_build_object('big', ta_noise(2, 100)), ROW(1, 1, ta_noise(3, 100), '', '', '')::ta);
INSERT INTO ta_nest SELECT 2, arr || arr, j, ROW(c.*)::ta FROM ta_nest, ta_copy c WHERE c.id = 1;
UPDATE ta_nest SET arr[3] = 'third', j = j || '{"n": 1}';
SELECT id, array_length(arr, 1), length(arr[1]), arr[3], length(j ->> 'big'), j -> 'n' AS n, length((r).ext) FROM ta_nest ORDER BY id;
DROP TABLE ta_nest, ta_set, ta_copy, ta;
DROP FUNCTION ta_noise;
