-- An update of columns that only BRIN indexes use: in place from 16 on.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE br (id int PRIMARY KEY, b int, e int, t text);
INSERT INTO br SELECT i, i, i, 't' FROM generate_series(1, 2000) i;
CREATE INDEX br_b ON br USING brin (b) WITH (pages_per_range = 1);
CREATE INDEX br_e ON br USING brin ((e * 2)) WITH (pages_per_range = 1);
CREATE TABLE br_tid AS SELECT id, ctid AS tid FROM br;
-- how many rows kept their place; "as_expected" knows what the version can do
CREATE FUNCTION br_kept() RETURNS bigint LANGUAGE sql AS
    'SELECT count(*) FROM br JOIN br_tid USING (id) WHERE br.ctid = br_tid.tid';
SET enable_seqscan = off;
SET enable_indexscan = off;
UPDATE br SET b = -1, e = -1 WHERE id <= 10;
SELECT br_kept() = CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 2000 ELSE 1990 END AS as_expected;
EXPLAIN (COSTS OFF) SELECT id FROM br WHERE b = -1;
SELECT count(*) FROM br WHERE b = -1;
SELECT count(*) FROM br WHERE e * 2 = -2;
SELECT count(*) FROM br WHERE b BETWEEN 1 AND 20;
-- a rollback, also to a savepoint
BEGIN;
UPDATE br SET b = 5000 WHERE id BETWEEN 11 AND 20;
SAVEPOINT s;
UPDATE br SET b = 6000 WHERE id BETWEEN 11 AND 15;
SELECT b, count(*) FROM br WHERE b >= 5000 GROUP BY b ORDER BY b;
ROLLBACK TO s;
SELECT b, count(*) FROM br WHERE b >= 5000 GROUP BY b ORDER BY b;
ROLLBACK;
SELECT count(*) FROM br WHERE b >= 5000;
SELECT count(*) FROM br WHERE b BETWEEN 11 AND 20;
-- a column that a B-tree uses too
CREATE INDEX br_bt ON br (b);
TRUNCATE br_tid;
INSERT INTO br_tid SELECT id, ctid FROM br;
UPDATE br SET b = -3 WHERE id = 300;
SELECT 2000 - br_kept() AS moved;
SELECT count(*) FROM br WHERE b = -3;
-- built again, with new ranges
REINDEX INDEX br_b;
UPDATE br SET b = 9000, t = repeat('x', 3000) WHERE id % 100 = 0;
SELECT brin_summarize_new_values('br_b') >= 0 AS summarized;
SELECT count(*) FROM br WHERE b = 9000;
SELECT count(*) AS problems FROM inplace_check('br');
DROP TABLE br, br_tid;
DROP FUNCTION br_kept;
