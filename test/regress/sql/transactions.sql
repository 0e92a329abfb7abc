-- Rollback of everything: transactions, savepoints, exception blocks, small and big.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE tr (id int PRIMARY KEY, a int, t text);
CREATE INDEX tr_a ON tr (a);
INSERT INTO tr SELECT i, i, 'init' FROM generate_series(1, 10) i;
-- insert, update, delete, rolled back
BEGIN;
INSERT INTO tr VALUES (11, 11, 'new');
UPDATE tr SET a = a + 100, t = 'changed' WHERE id < 5;
DELETE FROM tr WHERE id = 6;
UPDATE tr SET id = 60 WHERE id = 7;
SELECT * FROM tr ORDER BY id;
ROLLBACK;
SELECT * FROM tr ORDER BY id;
-- the same row: update, savepoint, update, rollback to, update
BEGIN;
UPDATE tr SET a = 1000, t = 'one' WHERE id = 1;
SAVEPOINT s1;
UPDATE tr SET a = 2000 WHERE id = 1;
UPDATE tr SET a = 3000, t = 'three ' || repeat('3', 100) WHERE id = 1;
SAVEPOINT s2;
DELETE FROM tr WHERE id = 1;
SELECT * FROM tr WHERE id = 1;
ROLLBACK TO s2;
SELECT id, a, left(t, 10) FROM tr WHERE id = 1;
ROLLBACK TO s1;
SELECT * FROM tr WHERE id = 1;
UPDATE tr SET t = t || ' after' WHERE id = 1;
SELECT * FROM tr WHERE id = 1;
COMMIT;
SELECT * FROM tr WHERE id = 1;
-- first change inside a savepoint that is rolled back, then the row goes on
BEGIN;
SAVEPOINT s1;
UPDATE tr SET a = -1 WHERE id = 2;
ROLLBACK TO s1;
UPDATE tr SET a = a + 1 WHERE id = 2;
SAVEPOINT s1;
UPDATE tr SET a = -1 WHERE id = 2;
ROLLBACK TO s1;
UPDATE tr SET a = a + 1 WHERE id = 2;
SAVEPOINT s2;
UPDATE tr SET a = a + 1 WHERE id = 2;
RELEASE s2;
SELECT * FROM tr WHERE id = 2;
ROLLBACK TO s1;
SELECT * FROM tr WHERE id = 2;
COMMIT;
SELECT * FROM tr WHERE id = 2;
-- insert in a rolled back savepoint, and the same key again
BEGIN;
SAVEPOINT s;
INSERT INTO tr VALUES (20, 1, 'gone');
ROLLBACK TO s;
INSERT INTO tr VALUES (20, 2, 'also gone');
ROLLBACK TO s;
INSERT INTO tr VALUES (20, 3, 'stays');
RELEASE s;
COMMIT;
SELECT * FROM tr WHERE id = 20;
-- delete in a rolled back savepoint
BEGIN;
SAVEPOINT s;
DELETE FROM tr WHERE id < 5;
ROLLBACK TO s;
SELECT count(*) FROM tr;
UPDATE tr SET t = 'not deleted' WHERE id < 3;
DELETE FROM tr WHERE id = 3;
COMMIT;
SELECT * FROM tr ORDER BY id;
-- an error aborts, the handler goes on
DO $$
DECLARE n int := 0;
BEGIN
    FOR i IN 1..20 LOOP
        BEGIN
            UPDATE tr SET a = a + i WHERE id = 4;
            INSERT INTO tr VALUES (i, i, 'block');
        EXCEPTION WHEN unique_violation THEN n := n + 1;
        END;
    END LOOP;
    RAISE NOTICE '% handled', n;
END $$;
SELECT * FROM tr ORDER BY id;
-- deep nesting
CREATE FUNCTION tr_deep(level int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tr SET a = a + 1, t = 'level ' || level WHERE id = 5;
    IF level < 40 THEN
        BEGIN
            PERFORM tr_deep(level + 1);
            IF level % 3 = 0 THEN RAISE EXCEPTION 'undo'; END IF;
        EXCEPTION WHEN raise_exception THEN NULL;
        END;
    END IF;
END $$;
SELECT tr_deep(1);
SELECT * FROM tr WHERE id = 5;
-- more subtransactions than a backend's cache holds, half of them rolled back
BEGIN;
DO $$ BEGIN
    FOR i IN 1..200 LOOP
        BEGIN
            INSERT INTO tr VALUES (1000 + i, i, 'sub');
            UPDATE tr SET a = a + 1 WHERE id = 6;
            IF i % 2 = 0 THEN RAISE EXCEPTION 'undo'; END IF;
        EXCEPTION WHEN raise_exception THEN NULL;
        END;
    END LOOP;
END $$;
SELECT count(*), sum(id) FROM tr WHERE id > 1000;
SELECT a FROM tr WHERE id = 6;
COMMIT;
SELECT count(*), sum(id) FROM tr WHERE id > 1000;
SELECT a FROM tr WHERE id = 6;
-- big: everything changed, then nothing happened
CREATE TABLE tr_big (id int PRIMARY KEY, a int, t text);
INSERT INTO tr_big SELECT i, i, repeat('b', 50) FROM generate_series(1, 20000) i;
BEGIN;
UPDATE tr_big SET a = -a;
UPDATE tr_big SET t = repeat('longer', 20) WHERE id % 2 = 0;
DELETE FROM tr_big WHERE id % 3 = 0;
INSERT INTO tr_big SELECT i, i, 'new' FROM generate_series(20001, 25000) i;
SELECT count(*), sum(a), sum(length(t)) FROM tr_big;
ROLLBACK;
SELECT count(*), sum(a), sum(length(t)) FROM tr_big;
UPDATE tr_big SET a = a + 1;
SELECT count(*), sum(a), sum(length(t)) FROM tr_big;
SET enable_seqscan = off;
SELECT count(*), sum(a), sum(length(t)) FROM tr_big WHERE id > 0;
RESET enable_seqscan;
-- a table made and filled in a transaction with savepoints
BEGIN;
CREATE TABLE tr_new (a int);
INSERT INTO tr_new VALUES (1);
SAVEPOINT s;
INSERT INTO tr_new SELECT generate_series(2, 1000);
UPDATE tr_new SET a = -a WHERE a < 5;
ROLLBACK TO s;
INSERT INTO tr_new VALUES (2);
UPDATE tr_new SET a = a * 10;
COMMIT;
SELECT * FROM tr_new ORDER BY a;
-- commit and rollback inside a procedure
CREATE PROCEDURE tr_proc() LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..6 LOOP
        UPDATE tr SET a = i, t = 'proc' WHERE id = 8;
        IF i % 3 = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
    END LOOP;
END $$;
CALL tr_proc();
SELECT * FROM tr WHERE id = 8;
SET enable_seqscan = off;
SELECT id, a FROM tr WHERE a BETWEEN 1 AND 12 ORDER BY a, id;
RESET enable_seqscan;
DROP PROCEDURE tr_proc;
DROP FUNCTION tr_deep;
DROP TABLE tr, tr_big, tr_new;
