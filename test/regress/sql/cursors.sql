-- What open cursors see while their rows change in the same transaction.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE cu (id int PRIMARY KEY, a int, t text);
CREATE INDEX cu_a ON cu (a);
INSERT INTO cu SELECT i, i, 'init' FROM generate_series(1, 10) i;
-- the cursor keeps its snapshot
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM cu ORDER BY id;
FETCH 2 FROM c;
UPDATE cu SET a = a + 100, t = 'changed';
DELETE FROM cu WHERE id = 4;
INSERT INTO cu VALUES (11, 11, 'new');
UPDATE cu SET id = 50 WHERE id = 5;
FETCH 2 FROM c;
UPDATE cu SET t = 'again ' || repeat('x', 100);
FETCH ALL FROM c;
DECLARE c2 CURSOR FOR SELECT id, a, left(t, 7) FROM cu ORDER BY id;
FETCH ALL FROM c2;
ROLLBACK;
-- without ORDER BY the scan itself stays open
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT * FROM cu;
FETCH 3 FROM c;
UPDATE cu SET a = -a, t = 'changed';
DELETE FROM cu WHERE id > 7;
FETCH ALL FROM c;
COMMIT;
SELECT * FROM cu ORDER BY id;
-- through an index on the column that changes
TRUNCATE cu;
INSERT INTO cu SELECT i, i, 'init' FROM generate_series(1, 10) i;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM cu WHERE a > 0 ORDER BY a;
FETCH 3 FROM c;
UPDATE cu SET a = a + 5;
FETCH 3 FROM c;
UPDATE cu SET a = 0 WHERE a > 10;
FETCH ALL FROM c;
SELECT * FROM cu WHERE a >= 0 ORDER BY a, id;
ROLLBACK;
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_sort;
-- scrolling over rows that changed in between
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT * FROM cu WHERE id < 8 ORDER BY id;
FETCH FORWARD 3 FROM c;
UPDATE cu SET t = 'v1' WHERE id % 2 = 1;
FETCH BACKWARD 2 FROM c;
FETCH LAST FROM c;
UPDATE cu SET t = 'v2';
FETCH BACKWARD ALL FROM c;
FETCH ABSOLUTE 4 FROM c;
FETCH RELATIVE -2 FROM c;
ROLLBACK;
-- savepoints: rolling back changes does not disturb an older cursor
BEGIN;
UPDATE cu SET t = 'base';
DECLARE c CURSOR FOR SELECT * FROM cu WHERE id < 7 ORDER BY id;
FETCH 1 FROM c;
SAVEPOINT s;
UPDATE cu SET t = 'gone', a = 0;
DELETE FROM cu WHERE id = 3;
FETCH 1 FROM c;
ROLLBACK TO s;
FETCH 2 FROM c;
UPDATE cu SET t = 'late';
FETCH 1 FROM c;
DELETE FROM cu;
FETCH ALL FROM c;
ROLLBACK;
-- a cursor opened inside a savepoint that is released
BEGIN;
SAVEPOINT s;
UPDATE cu SET t = 'sub' WHERE id = 1;
DECLARE c CURSOR FOR SELECT * FROM cu WHERE id < 3 ORDER BY id;
RELEASE s;
UPDATE cu SET t = 'top' WHERE id < 3;
FETCH ALL FROM c;
COMMIT;
-- FOR UPDATE: rows that the transaction changed after the cursor began are not returned
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM cu WHERE id < 7 ORDER BY id FOR UPDATE;
FETCH 1 FROM c;
UPDATE cu SET a = 77 WHERE id IN (2, 4);
DELETE FROM cu WHERE id = 3;
FETCH ALL FROM c;
ROLLBACK;
-- WITH HOLD
BEGIN;
DECLARE c CURSOR WITH HOLD FOR SELECT * FROM cu WHERE id < 4 ORDER BY id;
UPDATE cu SET t = 'held' WHERE id < 4;
COMMIT;
UPDATE cu SET t = 'later' WHERE id < 4;
FETCH ALL FROM c;
CLOSE c;
-- loops in PL/pgSQL
DO $$
DECLARE r record; seen text := '';
BEGIN
    FOR r IN SELECT * FROM cu ORDER BY id LOOP
        UPDATE cu SET a = a + 1, t = t || '.' WHERE id >= r.id;
        seen := seen || r.id || ':' || r.a || ' ';
    END LOOP;
    RAISE NOTICE '%', seen;
END $$;
SELECT * FROM cu ORDER BY id;
-- a volatile function in the scan sees newer states than the scan does
CREATE FUNCTION cu_bump(which int) RETURNS int LANGUAGE sql AS 'UPDATE cu SET a = a + 1 WHERE id = which RETURNING a';
SELECT id, a, cu_bump(1), cu_bump(id), a FROM cu WHERE id < 5 ORDER BY id;
SELECT id, a FROM cu WHERE id < 5 ORDER BY id;
-- a cursor over many pages while all of them change twice
TRUNCATE cu;
INSERT INTO cu SELECT i, i, repeat('m', 100) FROM generate_series(1, 2000) i;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT * FROM cu;
MOVE 100 FROM c;
UPDATE cu SET a = 0;
DELETE FROM cu WHERE id % 2 = 0;
UPDATE cu SET t = repeat('long', 100);
CREATE FUNCTION cu_rest() RETURNS TABLE (n bigint, wrong bigint) LANGUAGE plpgsql AS $$
DECLARE c refcursor := 'c'; r cu%ROWTYPE;
BEGIN
    n := 0; wrong := 0;
    LOOP
        FETCH c INTO r;
        EXIT WHEN NOT FOUND;
        n := n + 1;
        IF r.a <> r.id OR r.t <> repeat('m', 100) THEN wrong := wrong + 1; END IF;
    END LOOP;
    RETURN NEXT;
END $$;
SELECT * FROM cu_rest();
ROLLBACK;
SELECT count(*), sum(a), sum(length(t)) FROM cu;
DROP TABLE cu;
DROP FUNCTION cu_bump;
