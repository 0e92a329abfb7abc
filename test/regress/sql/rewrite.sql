-- Commands that write a whole new table: ALTER TABLE, materialized views; and REINDEX.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE rw (id int PRIMARY KEY, a int, t text, big text);
CREATE INDEX rw_a ON rw (a);
INSERT INTO rw SELECT i, (i * 37) % 500, 't' || i, CASE WHEN i % 100 = 0 THEN (SELECT string_agg(md5((i + g)::text), '') FROM generate_series(1, 200) g) END
    FROM generate_series(1, 1000) i;
CREATE FUNCTION rw_sum() RETURNS text LANGUAGE sql AS
    $$ SELECT count(*) || ' ' || sum(id) || ' ' || sum(a) || ' ' || left(md5(string_agg(rw::text, ',' ORDER BY id)), 10) FROM rw $$;
UPDATE rw SET t = t || repeat('+', 50) WHERE id % 3 = 0;
UPDATE rw SET a = a + 1 WHERE id % 4 = 0;
DELETE FROM rw WHERE id % 10 = 0 AND id % 100 <> 0;
-- REINDEX
UPDATE rw SET a = a + 1;
REINDEX INDEX rw_a;
REINDEX TABLE rw;
SET enable_seqscan = off;
SELECT count(*), sum(a) FROM rw WHERE a >= 0;
RESET enable_seqscan;
-- changed types, columns, defaults
ALTER TABLE rw ALTER COLUMN a TYPE bigint;
SELECT rw_sum();
ALTER TABLE rw ALTER COLUMN t TYPE varchar(5) USING left(t, 5), ADD COLUMN s serial, DROP COLUMN big;
SELECT count(*), sum(s), max(length(t)) FROM rw;
ALTER TABLE rw DROP COLUMN s;
ALTER TABLE rw ALTER COLUMN t SET NOT NULL, ADD CHECK (a >= 0);
ALTER TABLE rw ADD CHECK (a < 100);
ALTER TABLE rw SET (fillfactor = 60);
SELECT count(*), sum(id) FROM rw;
-- the access method, there and back, inside a transaction as well
SELECT rw_sum();
ALTER TABLE rw SET ACCESS METHOD heap;
SELECT rw_sum();
UPDATE rw SET a = a + 1;
BEGIN;
ALTER TABLE rw SET ACCESS METHOD inplace;
UPDATE rw SET a = a + 1;
SELECT rw_sum();
ROLLBACK;
SELECT rw_sum();
ALTER TABLE rw SET ACCESS METHOD inplace;
UPDATE rw SET a = a + 1;
SELECT rw_sum();
CREATE SEQUENCE rw_seq;
-- unchanged toasted values move to the new table
CREATE TABLE rw_toast (id int PRIMARY KEY, v text);
INSERT INTO rw_toast SELECT i, (SELECT string_agg(md5((i + g)::text), '') FROM generate_series(1, 150) g) FROM generate_series(1, 10) i;
SELECT left(md5(string_agg(v, '' ORDER BY id)), 10) FROM rw_toast;
ALTER TABLE rw_toast ADD COLUMN x int DEFAULT nextval('rw_seq');
ALTER TABLE rw_toast ALTER COLUMN id TYPE bigint;
SELECT left(md5(string_agg(v, '' ORDER BY id)), 10), min(x) > 0 AS filled FROM rw_toast;
-- materialized views
CREATE MATERIALIZED VIEW rw_mv AS SELECT id % 10 AS k, count(*) AS n FROM rw GROUP BY 1;
CREATE UNIQUE INDEX ON rw_mv (k);
SELECT * FROM rw_mv ORDER BY k;
DELETE FROM rw WHERE id % 10 = 3;
INSERT INTO rw (id, a, t) VALUES (10004, 4, 'f');
REFRESH MATERIALIZED VIEW rw_mv;
SELECT * FROM rw_mv ORDER BY k;
DELETE FROM rw WHERE id % 10 = 5;
INSERT INTO rw (id, a, t) VALUES (10014, 4, 'f');
REFRESH MATERIALIZED VIEW CONCURRENTLY rw_mv;
SELECT * FROM rw_mv ORDER BY k;
REFRESH MATERIALIZED VIEW rw_mv WITH NO DATA;
SELECT * FROM rw_mv;
DROP MATERIALIZED VIEW rw_mv;
DROP TABLE rw, rw_toast;
DROP SEQUENCE rw_seq;
DROP FUNCTION rw_sum;
