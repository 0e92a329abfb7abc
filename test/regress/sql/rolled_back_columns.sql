-- ALTER TABLE that is rolled back, with rows that were written meanwhile: they have columns that the table has not got.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
-- inplace_check, where there is one
CREATE FUNCTION rc_problems(t regclass) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    IF to_regproc('inplace_check') IS NOT NULL THEN
        RETURN QUERY EXECUTE 'SELECT c::text FROM inplace_check($1) c' USING t;
    END IF;
END $$;
CREATE TABLE rc (id int PRIMARY KEY, n int, t text) WITH (autovacuum_enabled = off);
INSERT INTO rc SELECT i, 0, 'row ' || i FROM generate_series(1, 300) i;
BEGIN;
ALTER TABLE rc ADD COLUMN more text;
UPDATE rc SET more = 'more' || id, n = 1 WHERE id % 3 = 0;
INSERT INTO rc SELECT i, 0, 'new', 'more' FROM generate_series(301, 350) i;
DELETE FROM rc WHERE id % 7 = 0;
SELECT count(*), count(more), sum(n) FROM rc;
ROLLBACK;
SELECT * FROM rc_problems('rc');
SELECT count(*), sum(n) FROM rc;
-- the columns' numbers are used again, by other types
BEGIN;
ALTER TABLE rc ADD COLUMN other int DEFAULT 7;
SAVEPOINT s;
UPDATE rc SET other = NULL WHERE id % 2 = 0;
ROLLBACK TO s;
UPDATE rc SET other = id WHERE id % 5 = 0;
ROLLBACK;
SELECT * FROM rc_problems('rc');
BEGIN;
SAVEPOINT s;
ALTER TABLE rc ADD COLUMN a int, ADD COLUMN b bigint;
UPDATE rc SET a = 1, b = 2 WHERE id % 2 = 0;
ROLLBACK TO s;
ALTER TABLE rc ADD COLUMN c "char" DEFAULT 'c';
UPDATE rc SET n = n + 1 WHERE id % 4 = 0;
COMMIT;
SELECT * FROM rc_problems('rc');
SELECT count(*), sum(n), count(c), min(c) FROM rc;
-- more than one change of a row, all rolled back; the last one is put back by VACUUM, others by the row's next writer
BEGIN;
ALTER TABLE rc ADD COLUMN d text;
UPDATE rc SET d = 'd';
UPDATE rc SET d = repeat('d', 50) WHERE id <= 100;
DELETE FROM rc WHERE id <= 50;
ROLLBACK;
SELECT * FROM rc_problems('rc');
UPDATE rc SET n = 5 WHERE id BETWEEN 40 AND 60;
SELECT * FROM rc_problems('rc');
VACUUM rc;
SELECT * FROM rc_problems('rc');
SELECT count(*), sum(n), count(c), sum(length(t)) FROM rc;
-- a dropped column comes back
BEGIN;
ALTER TABLE rc DROP COLUMN t;
UPDATE rc SET n = n + 1;
INSERT INTO rc VALUES (400, 1);
ROLLBACK;
SELECT * FROM rc_problems('rc');
SELECT count(*), sum(n), sum(length(t)) FROM rc;
DROP TABLE rc;
DROP FUNCTION rc_problems;
