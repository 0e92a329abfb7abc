-- Events of a command's actions are fired with the outer command's snapshot, and what deferred triggers queue with that of COMMIT: both may
-- be older than the row's changes.  OLD is the version that was deleted or moved.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE FUNCTION tl_say() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE '% %: % -> %', TG_TABLE_NAME, TG_OP, CASE WHEN TG_OP <> 'INSERT' THEN OLD END, CASE WHEN TG_OP <> 'DELETE' THEN NEW END;
    RETURN NULL;
END $$;
-- actions of foreign keys
CREATE TABLE tl_par (id int PRIMARY KEY);
CREATE TABLE tl_ch (p int REFERENCES tl_par ON DELETE CASCADE, st text);
CREATE TABLE tl_null (p int REFERENCES tl_par ON DELETE SET NULL, amount int);
INSERT INTO tl_par SELECT generate_series(1, 4);
INSERT INTO tl_ch SELECT id, 'live' FROM tl_par;
INSERT INTO tl_null SELECT id, 10 * id FROM tl_par;
CREATE TRIGGER a AFTER UPDATE OR DELETE ON tl_ch FOR EACH ROW EXECUTE FUNCTION tl_say();
CREATE TRIGGER a AFTER UPDATE OR DELETE ON tl_null FOR EACH ROW EXECUTE FUNCTION tl_say();
WITH u AS (UPDATE tl_ch SET st = 'closed' WHERE p = 1 RETURNING p) DELETE FROM tl_par USING u WHERE id = u.p;
WITH u AS (UPDATE tl_null SET amount = amount + 100 WHERE p = 2 RETURNING p) DELETE FROM tl_par USING u WHERE id = u.p;
CREATE FUNCTION tl_close() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tl_ch SET st = 'closed by ' || TG_WHEN WHERE p = OLD.id;
    UPDATE tl_null SET amount = amount + 100 WHERE p = OLD.id;
    RETURN OLD;
END $$;
CREATE TRIGGER b BEFORE DELETE ON tl_par FOR EACH ROW EXECUTE FUNCTION tl_close();
DELETE FROM tl_par WHERE id = 3;
DROP TRIGGER b ON tl_par;
CREATE TRIGGER "A0" AFTER DELETE ON tl_par FOR EACH ROW EXECUTE FUNCTION tl_close();
BEGIN;
SAVEPOINT s;
DELETE FROM tl_par WHERE id = 4;
ROLLBACK TO s;
DELETE FROM tl_par WHERE id = 4;
COMMIT;
SELECT * FROM tl_ch ORDER BY p;
SELECT * FROM tl_null ORDER BY amount;
-- a table that refers to itself
CREATE TABLE tl_self (id int PRIMARY KEY, b int, p int REFERENCES tl_self ON UPDATE CASCADE ON DELETE CASCADE);
INSERT INTO tl_self VALUES (1, 10, NULL), (2, 20, 1), (3, 30, 2);
CREATE TRIGGER a AFTER UPDATE OR DELETE ON tl_self FOR EACH ROW EXECUTE FUNCTION tl_say();
UPDATE tl_self SET b = b + 1, id = CASE WHEN id = 1 THEN 4 ELSE id END;
WITH u AS (UPDATE tl_self SET b = b + 1 WHERE id = 3 RETURNING 1) DELETE FROM tl_self WHERE id = 2;
SELECT * FROM tl_self ORDER BY id;
-- an action that moves the row to another partition
CREATE TABLE tl_top (id int PRIMARY KEY);
CREATE TABLE tl_part (id int, p int REFERENCES tl_top ON UPDATE CASCADE, st text) PARTITION BY LIST (p);
CREATE TABLE tl_part1 PARTITION OF tl_part FOR VALUES IN (1);
CREATE TABLE tl_part2 PARTITION OF tl_part DEFAULT;
INSERT INTO tl_top VALUES (1);
INSERT INTO tl_part VALUES (1, 1, 'live');
CREATE TRIGGER a AFTER INSERT OR UPDATE OR DELETE ON tl_part FOR EACH ROW EXECUTE FUNCTION tl_say();
WITH u AS (UPDATE tl_part SET st = 'closed' RETURNING p) UPDATE tl_top SET id = 5 FROM u;
SELECT * FROM tl_part;
-- events that deferred triggers queue
CREATE TABLE tl_job (id int PRIMARY KEY, what text);
CREATE TABLE tl_task (id int PRIMARY KEY, n int, t text);
INSERT INTO tl_task SELECT id, 0, 'task' FROM generate_series(1, 6) id;
CREATE FUNCTION tl_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE NEW.what USING NEW.id;
    EXECUTE NEW.what USING NEW.id;
    IF NEW.id % 2 = 0 THEN DELETE FROM tl_task WHERE id = NEW.id; END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER j AFTER INSERT ON tl_job DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION tl_run();
CREATE CONSTRAINT TRIGGER a AFTER UPDATE OR DELETE ON tl_task DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION tl_say();
INSERT INTO tl_job VALUES (1, 'UPDATE tl_task SET n = n + 1 WHERE id = $1');
INSERT INTO tl_job VALUES (2, 'UPDATE tl_task SET n = n + 1 WHERE id = $1');
INSERT INTO tl_job VALUES (3, 'UPDATE tl_task SET id = -id WHERE abs(id) = $1');
BEGIN;
UPDATE tl_task SET n = 10 WHERE id = 4;
SAVEPOINT s;
DELETE FROM tl_task WHERE id = 4;
ROLLBACK TO s;
INSERT INTO tl_job VALUES (4, 'UPDATE tl_task SET t = t || n WHERE id = $1');
UPDATE tl_task SET n = 11 WHERE id = 4;
COMMIT;
-- locked by itself in between
INSERT INTO tl_job VALUES (6, 'WITH l AS (SELECT id FROM tl_task WHERE id = $1 FOR UPDATE) UPDATE tl_task SET n = n + 1 FROM l WHERE l.id = tl_task.id');
SELECT * FROM tl_task ORDER BY id;
-- what was deleted has the row's own TID in RETURNING
WITH u AS (UPDATE tl_self SET b = b + 1 RETURNING 1) SELECT count(*) FROM u;
BEGIN;
UPDATE tl_self SET b = b + 1 WHERE id = 4;
DELETE FROM tl_self WHERE id = 4 RETURNING id, (ctid::text::point)[1] < 1000 AS row_tid;
COMMIT;
-- the change was rolled back, or its file is gone, before the trigger queue asked; then another one
CREATE TABLE tl_u (id int PRIMARY KEY, b int, k int);
CREATE INDEX ON tl_u (k);
CREATE TRIGGER a AFTER UPDATE OR DELETE ON tl_u FOR EACH ROW EXECUTE FUNCTION tl_say();
INSERT INTO tl_u SELECT g, g, g FROM generate_series(1, 6) g;
CREATE FUNCTION tl_collide(i int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tl_u SET b = b + 1 WHERE id = i;
    UPDATE tl_u SET id = 6 WHERE id = i;
EXCEPTION WHEN unique_violation THEN NULL;
END $$;
DO $$ BEGIN PERFORM tl_collide(1); DELETE FROM tl_u WHERE id = 1; END $$;
DO $$ BEGIN PERFORM tl_collide(2); UPDATE tl_u SET id = 20 WHERE id = 2; END $$;
DO $$ BEGIN UPDATE tl_u SET b = 30 WHERE id = 3; PERFORM tl_collide(3); DELETE FROM tl_u WHERE id = 3; END $$;
BEGIN;
SELECT tl_collide(4);
DELETE FROM tl_u WHERE id = 4 RETURNING (ctid::text::point)[1] < 1000 AS row_tid;
COMMIT;
BEGIN;
UPDATE tl_u SET b = b + 1 WHERE id = 5;
SELECT tl_collide(5);
TRUNCATE tl_u;
INSERT INTO tl_u SELECT g, g, g FROM generate_series(1, 6) g;
DELETE FROM tl_u WHERE id = 5;
COMMIT;
BEGIN;
UPDATE tl_u SET b = b + 1 WHERE id = 2;
SELECT tl_collide(2);
ALTER TABLE tl_u ALTER b TYPE bigint;
UPDATE tl_u SET k = k + 1 WHERE id <= 2;
COMMIT;
CREATE TABLE tl_p (id int, b int) PARTITION BY LIST (id);
CREATE TABLE tl_p1 PARTITION OF tl_p FOR VALUES IN (1);
CREATE TABLE tl_p2 PARTITION OF tl_p FOR VALUES IN (2);
CREATE TRIGGER a AFTER UPDATE OR DELETE ON tl_p FOR EACH ROW EXECUTE FUNCTION tl_say();
INSERT INTO tl_p VALUES (1, 1), (1, 2), (1, 3);
BEGIN;
SAVEPOINT s;
UPDATE tl_p SET b = b + 1;
UPDATE tl_p SET id = 2;
ROLLBACK TO s;
DELETE FROM tl_p;
ROLLBACK;
BEGIN;
UPDATE tl_p SET b = b + 1;
UPDATE tl_p SET id = 2;
TRUNCATE tl_p;
INSERT INTO tl_p VALUES (1, 10);
DELETE FROM tl_p;
COMMIT;
-- an index's expression fires events of the row between a move and the fetch of its OLD
CREATE TABLE tl_fk (id int PRIMARY KEY);
CREATE FUNCTION tl_do(s text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE s; RETURN 0; END $$;
CREATE FUNCTION tl_fire(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF i = 7 THEN PERFORM tl_do('SET CONSTRAINTS ALL IMMEDIATE'); PERFORM tl_do('SET CONSTRAINTS ALL DEFERRED'); END IF;
    RETURN i;
END $$;
CREATE TABLE tl_x (id int PRIMARY KEY, b int, k int REFERENCES tl_fk ON UPDATE CASCADE);
INSERT INTO tl_fk VALUES (1), (2);
INSERT INTO tl_x VALUES (1, 1, 1), (2, 2, 2);
CREATE INDEX ON tl_x (tl_fire(k));
CREATE TRIGGER a AFTER UPDATE OR DELETE ON tl_x FOR EACH ROW EXECUTE FUNCTION tl_say();
CREATE CONSTRAINT TRIGGER z AFTER UPDATE ON tl_x DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION tl_say();
WITH u AS (UPDATE tl_x SET b = b + 100 WHERE id = 1 RETURNING k) UPDATE tl_fk SET id = 7 FROM u WHERE tl_fk.id = u.k;
SELECT * FROM tl_x ORDER BY id;
DROP TABLE tl_u, tl_p, tl_x, tl_fk;
DROP FUNCTION tl_collide, tl_fire, tl_do;
DROP TABLE tl_ch, tl_null, tl_par, tl_self, tl_part, tl_top, tl_job, tl_task;
DROP FUNCTION tl_say, tl_close, tl_run;
