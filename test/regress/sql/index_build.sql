-- CREATE INDEX over updated, deleted and rolled back rows.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE ib (id int, a int, t text);
INSERT INTO ib SELECT i, i, 't' || i FROM generate_series(1, 2000) i;
UPDATE ib SET a = a + 1 WHERE id % 2 = 0;
DELETE FROM ib WHERE id % 10 = 0;
BEGIN;
UPDATE ib SET a = -5, t = 'rolled back';
DELETE FROM ib WHERE id < 1000;
INSERT INTO ib SELECT i, i, 'gone' FROM generate_series(5000, 5500) i;
ROLLBACK;
CREATE INDEX ib_a ON ib (a);
CREATE INDEX ib_t ON ib USING hash (t);
CREATE UNIQUE INDEX ib_id ON ib (id);
SET enable_seqscan = off;
SELECT count(*), sum(id) FROM ib WHERE a > 0;
SELECT count(*) FROM ib WHERE a < 0;
SELECT count(*) FROM ib WHERE t = 'rolled back';
SELECT id, a FROM ib WHERE a = 101 ORDER BY id;
RESET enable_seqscan;
-- duplicates; which one is reported first may vary
\set VERBOSITY terse
CREATE UNIQUE INDEX ib_fail ON ib (a);
CREATE UNIQUE INDEX ib_fail ON ib ((id / 2));
SELECT count(*) FROM ib a JOIN ib b ON a.a = b.a AND a.id < b.id;
\set VERBOSITY default
DELETE FROM ib b USING ib a WHERE a.a = b.a AND a.id < b.id;
CREATE UNIQUE INDEX ib_works ON ib (a);
-- duplicates only among versions that are gone are none
BEGIN;
UPDATE ib SET t = 'same';
ROLLBACK;
CREATE UNIQUE INDEX ib_t_unique ON ib (t);
DROP INDEX ib_t_unique, ib_works;
-- in the transaction that made the changes, with older versions around
BEGIN;
UPDATE ib SET a = a * 2 WHERE id < 100;
DELETE FROM ib WHERE id BETWEEN 100 AND 110;
INSERT INTO ib VALUES (9000, 9000, 'own');
CREATE INDEX ib_own ON ib (a, id);
SET LOCAL enable_seqscan = off;
SELECT count(*), sum(a) FROM ib WHERE a > 0;
SELECT id, a FROM ib WHERE a BETWEEN 180 AND 190 ORDER BY a, id;
SAVEPOINT s;
UPDATE ib SET a = a + 1 WHERE id < 50;
CREATE INDEX ib_own2 ON ib (a) WHERE id < 1000;
ROLLBACK TO s;
UPDATE ib SET a = a + 2 WHERE id < 50;
COMMIT;
SELECT count(*), sum(a) FROM ib WHERE a > 0;
-- an open cursor forbids it
BEGIN;
DECLARE c CURSOR FOR SELECT id, a FROM ib WHERE id BETWEEN 1 AND 6 ORDER BY id;
FETCH 1 FROM c;
CREATE INDEX ib_late ON ib (a);
ROLLBACK;
-- expressions, predicates, INCLUDE, and errors in them
CREATE INDEX ON ib ((100 / (id - 1)));
CREATE INDEX ib_e ON ib ((a % 10), lower(t)) INCLUDE (id) WHERE t IS NOT NULL;
SET enable_seqscan = off;
SELECT count(*) FROM ib WHERE a % 10 = 3 AND t IS NOT NULL;
RESET enable_seqscan;
-- constraints from indexes
ALTER TABLE ib ADD PRIMARY KEY USING INDEX ib_id;
UPDATE ib SET a = a + 1;
SELECT count(*), sum(a) FROM ib;
SET enable_seqscan = off;
SELECT count(*), sum(a) FROM ib WHERE a > 0;
RESET enable_seqscan;
DROP TABLE ib;
-- sequential and parallel builds of a larger table agree
CREATE TABLE ib_par AS SELECT i AS id, i % 1000 AS a, repeat('p', 40) AS t FROM generate_series(1, 50000) i;
UPDATE ib_par SET a = a + 1 WHERE id % 3 = 0;
ALTER TABLE ib_par SET (parallel_workers = 2);
SET min_parallel_table_scan_size = 0;
CREATE INDEX ib_par_a ON ib_par (a);
CREATE UNIQUE INDEX ib_par_id ON ib_par (id);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET max_parallel_workers_per_gather = 0;
SELECT count(*), sum(id) FROM ib_par WHERE a BETWEEN 100 AND 200;
SELECT count(*), sum(id) FROM ib_par WHERE id > 0;
SET enable_seqscan = on;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SELECT count(*), sum(id) FROM ib_par WHERE a BETWEEN 100 AND 200;
DROP TABLE ib_par;
