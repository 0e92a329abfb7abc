-- CREATE INDEX, REINDEX and DROP INDEX CONCURRENTLY.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE ico (id int PRIMARY KEY, a int, t text);
INSERT INTO ico SELECT i, i, 't' || i FROM generate_series(1, 2000) i;
UPDATE ico SET a = a + 1 WHERE id % 2 = 0;
DELETE FROM ico WHERE id % 10 = 0;
BEGIN;
UPDATE ico SET a = -5;
ROLLBACK;
CREATE INDEX ico_a ON ico (a);
CREATE INDEX CONCURRENTLY ico_desc ON ico (a DESC);
CREATE INDEX CONCURRENTLY ico_hash ON ico USING hash (t);
CREATE INDEX CONCURRENTLY ico_part ON ico ((a * 2)) WHERE id > 1000;
\set VERBOSITY terse
CREATE UNIQUE INDEX CONCURRENTLY ico_fail ON ico ((a / 10));
\set VERBOSITY default
DROP INDEX ico_fail;
UPDATE ico SET a = a + 1, t = 'u' || t WHERE id % 3 = 0;
REINDEX INDEX CONCURRENTLY ico_a;
REINDEX TABLE CONCURRENTLY ico;
UPDATE ico SET a = a + 1;
SELECT count(*), sum(a) FROM ico;
SELECT indexrelid::regclass, indisvalid FROM pg_index WHERE indrelid = 'ico'::regclass ORDER BY 1;
SET enable_seqscan = off;
SELECT count(*), sum(a) FROM ico WHERE a > 0;
SELECT count(*) FROM ico WHERE t = 'ut3';
SELECT count(*) FROM ico WHERE a * 2 > 0 AND id > 1000;
DROP INDEX CONCURRENTLY ico_desc;
SELECT count(*), sum(a) FROM ico WHERE a > 0;
DROP TABLE ico;
