-- VACUUM FULL and CLUSTER.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE cl (id int PRIMARY KEY, a int, t text, big text);
CREATE INDEX cl_a ON cl (a);
INSERT INTO cl SELECT i, (i * 37) % 500, 't' || i, CASE WHEN i % 100 = 0 THEN (SELECT string_agg(md5((i + g)::text), '') FROM generate_series(1, 200) g) END
    FROM generate_series(1, 1000) i;
CREATE FUNCTION cl_sum() RETURNS text LANGUAGE sql AS
    $$ SELECT count(*) || ' ' || sum(id) || ' ' || sum(a) || ' ' || left(md5(string_agg(cl::text, ',' ORDER BY id)), 10) FROM cl $$;
UPDATE cl SET t = t || repeat('+', 50) WHERE id % 3 = 0;
UPDATE cl SET a = a + 1 WHERE id % 4 = 0;
DELETE FROM cl WHERE id % 10 = 0 AND id % 100 <> 0;
SELECT cl_sum();
VACUUM FULL cl;
SELECT cl_sum();
BEGIN;
UPDATE cl SET t = 'no', big = 'no';
DELETE FROM cl WHERE id < 500;
ROLLBACK;
VACUUM (FULL, ANALYZE) cl;
SELECT cl_sum();
CLUSTER cl USING cl_a;
SELECT cl_sum();
SELECT count(*) FROM (SELECT a < lag(a) OVER (ORDER BY ctid) AS wrong FROM cl) s WHERE wrong;
UPDATE cl SET a = 0 WHERE id = 5;
CLUSTER cl;
SELECT id FROM cl ORDER BY ctid LIMIT 1;
SELECT cl_sum();
-- clustering inside a transaction that has changed rows
BEGIN;
UPDATE cl SET t = 'mine' WHERE id < 10;
DELETE FROM cl WHERE id BETWEEN 10 AND 12;
CLUSTER cl USING cl_pkey;
SELECT count(*) FROM cl WHERE t = 'mine';
ROLLBACK;
SELECT cl_sum();
-- unchanged toasted values move to the new table
CREATE TABLE cl_toast (id int PRIMARY KEY, v text);
INSERT INTO cl_toast SELECT i, (SELECT string_agg(md5((i + g)::text), '') FROM generate_series(1, 150) g) FROM generate_series(1, 10) i;
SELECT left(md5(string_agg(v, '' ORDER BY id)), 10) FROM cl_toast;
VACUUM FULL cl_toast;
UPDATE cl_toast SET id = id + 1000 WHERE id < 5;
CLUSTER cl_toast USING cl_toast_pkey;
SELECT left(md5(string_agg(v, '' ORDER BY id)), 10) FROM cl_toast;
-- a prepared plan survives
PREPARE cl_sel (int) AS SELECT id, a FROM cl WHERE id = $1;
EXECUTE cl_sel (5);
ALTER TABLE cl SET (fillfactor = 60);
VACUUM FULL cl;
EXECUTE cl_sel (5);
DROP TABLE cl, cl_toast;
DROP FUNCTION cl_sum;
