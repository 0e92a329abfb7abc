-- DELETE, and reuse of what it leaves.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE de (id int PRIMARY KEY, a int, t text);
INSERT INTO de SELECT i, i % 7, repeat('d', i % 100) FROM generate_series(1, 1000) i;
DELETE FROM de WHERE id = 1 RETURNING *;
DELETE FROM de WHERE id = 1 RETURNING *;
DELETE FROM de WHERE a = 3;
SELECT count(*), sum(id), count(*) FILTER (WHERE a = 3) FROM de;
DELETE FROM de USING generate_series(1, 1000, 5) g WHERE g = id AND id < 500;
SELECT count(*), sum(id) FROM de;
WITH gone AS (DELETE FROM de WHERE id > 900 RETURNING *) INSERT INTO de SELECT id + 1000, a, t FROM gone;
SELECT count(*), sum(id), max(id) FROM de;
-- delete and insert the same key in one transaction
BEGIN;
DELETE FROM de WHERE id = 2;
INSERT INTO de VALUES (2, 22, 'new');
SELECT id, a, t FROM de WHERE id = 2;
DELETE FROM de WHERE id = 2;
INSERT INTO de VALUES (2, 222, 'newer');
COMMIT;
SELECT id, a, t FROM de WHERE id = 2;
BEGIN;
DELETE FROM de WHERE id = 2;
INSERT INTO de VALUES (2, 0, 'never');
ROLLBACK;
SELECT id, a, t FROM de WHERE id = 2;
-- everything, rolled back, and for good
BEGIN;
DELETE FROM de;
SELECT count(*) FROM de;
INSERT INTO de VALUES (1, 1, 'one');
SELECT count(*) FROM de;
ROLLBACK;
SELECT count(*), sum(id) FROM de;
DELETE FROM de;
SELECT count(*), sum(id) FROM de;
INSERT INTO de SELECT i, i % 7, repeat('d', i % 100) FROM generate_series(1, 1000) i;
SELECT count(*), sum(id) FROM de;
SET enable_seqscan = off;
SELECT count(*), sum(id) FROM de WHERE id > 0;
RESET enable_seqscan;
-- a deleted row that was updated before in the same transaction
BEGIN;
UPDATE de SET t = repeat('u', 300) WHERE id = 10;
UPDATE de SET a = 100 WHERE id = 10;
DELETE FROM de WHERE id = 10 RETURNING id, a, length(t);
SELECT count(*) FROM de WHERE id = 10;
ROLLBACK;
SELECT id, a, length(t) FROM de WHERE id = 10;
-- RETURNING sees the deleted version, joins included
WITH x AS (DELETE FROM de d USING de o WHERE o.id = d.id + 1 AND d.id BETWEEN 20 AND 22 RETURNING d.id, d.a, o.id, o.a) SELECT * FROM x ORDER BY 1;
-- delete then vacuum then insert
DELETE FROM de WHERE id % 2 = 0;
VACUUM de;
INSERT INTO de SELECT i, -1, 'again' FROM generate_series(2, 1000, 2) i;
SELECT count(*), sum(id), count(*) FILTER (WHERE a = -1) FROM de;
SET enable_seqscan = off;
SELECT count(*), sum(id), count(*) FILTER (WHERE a = -1) FROM de WHERE id > 0;
RESET enable_seqscan;
DROP TABLE de;
