-- Access by TID: WHERE CURRENT OF, ctid conditions, TID range scans.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE ct (id int PRIMARY KEY, a int, t text);
INSERT INTO ct SELECT i, i, 'init' FROM generate_series(1, 8) i;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM ct ORDER BY id FOR UPDATE;
FETCH 2 FROM c;
UPDATE ct SET a = a + 100 WHERE CURRENT OF c RETURNING *;
FETCH 1 FROM c;
DELETE FROM ct WHERE CURRENT OF c RETURNING *;
FETCH 1 FROM c;
UPDATE ct SET t = repeat('x', 300) WHERE CURRENT OF c;
UPDATE ct SET t = 'twice' WHERE CURRENT OF c;
COMMIT;
SELECT * FROM ct ORDER BY id;
-- a simple scan, without FOR UPDATE
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM ct WHERE id = 5;
FETCH 1 FROM c;
UPDATE ct SET a = 500 WHERE CURRENT OF c;
UPDATE ct SET a = a + 1 WHERE CURRENT OF c;
SELECT * FROM ct WHERE id = 5;
DELETE FROM ct WHERE CURRENT OF c;
UPDATE ct SET a = 0 WHERE CURRENT OF c;
ROLLBACK;
-- the row was changed by someone else's statement in this transaction
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM ct WHERE id > 5 ORDER BY id FOR UPDATE;
FETCH 1 FROM c;
UPDATE ct SET a = 600 WHERE id = 6;
UPDATE ct SET t = 'cur' WHERE CURRENT OF c;
SELECT * FROM ct WHERE id = 6;
ROLLBACK;
-- after a rolled back change of the row under the cursor
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM ct WHERE id = 7 FOR UPDATE;
FETCH 1 FROM c;
SAVEPOINT s;
UPDATE ct SET a = 0, t = repeat('gone', 50) WHERE CURRENT OF c;
ROLLBACK TO s;
UPDATE ct SET t = 'stays' WHERE CURRENT OF c;
COMMIT;
SELECT * FROM ct WHERE id = 7;
-- not positioned
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM ct ORDER BY id FOR UPDATE;
UPDATE ct SET a = 0 WHERE CURRENT OF c;
ROLLBACK;
-- ctid conditions
SELECT ctid AS here FROM ct WHERE id = 2 \gset
SELECT id, a FROM ct WHERE ctid = :'here';
SELECT id, a FROM ct WHERE ctid = ANY (ARRAY[:'here', '(4000000,1)']::tid[]);
SELECT id FROM ct WHERE ctid = '(4000000,1)';
SELECT id FROM ct WHERE ctid = '(0,0)';
SELECT count(*) FROM ct WHERE ctid >= '(0,0)';
SELECT count(*) FROM ct WHERE ctid > '(4000000,1)';
SELECT count(*) FROM ct WHERE ctid < '(0,0)';
SELECT (SELECT count(*) FROM ct WHERE ctid <= :'here') + (SELECT count(*) FROM ct WHERE ctid > :'here') AS all_rows;
UPDATE ct SET a = -a WHERE ctid = :'here' RETURNING id, a;
WITH gone AS (DELETE FROM ct WHERE ctid IN (SELECT ctid FROM ct WHERE id > 6) RETURNING id) SELECT id FROM gone ORDER BY id;
SELECT count(*) FROM ct a JOIN ct b ON a.ctid = b.ctid;
-- TID range scans over many pages
INSERT INTO ct SELECT i, i, repeat('r', 50) FROM generate_series(100, 2000) i;
SELECT sum(n) FROM (SELECT (SELECT count(*) FROM ct WHERE ctid >= format('(%s,0)', b)::tid AND ctid < format('(%s,0)', b + 1)::tid) AS n
    FROM generate_series(0, (SELECT max((ctid::text::point)[0])::int FROM ct)) b) s;
SELECT (SELECT count(*) FROM ct) = count(*) AS same FROM ct WHERE ctid BETWEEN (SELECT min(ctid) FROM ct) AND (SELECT max(ctid) FROM ct);
EXPLAIN (COSTS OFF) SELECT * FROM ct WHERE ctid = '(0,2)';
EXPLAIN (COSTS OFF) SELECT * FROM ct WHERE ctid > '(0,2)' AND ctid < '(2,1)';
-- currtid functions and duplicates by ctid
CREATE TABLE ct_dup (a int);
INSERT INTO ct_dup SELECT i % 3 FROM generate_series(1, 9) i;
DELETE FROM ct_dup d USING ct_dup o WHERE d.a = o.a AND d.ctid > o.ctid;
SELECT a FROM ct_dup ORDER BY a;
DROP TABLE ct, ct_dup;
