-- Triggers that must get exactly the versions of their event, long after the row changed again.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE tv (id int PRIMARY KEY, a int, t text);
CREATE TABLE tv_log (n serial, what text);
CREATE FUNCTION tv_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tv_log (what) VALUES (TG_NAME || ' ' || TG_OP || ': ' || CASE WHEN TG_OP <> 'INSERT' THEN OLD::text ELSE '' END || ' -> '
        || CASE WHEN TG_OP <> 'DELETE' THEN left(NEW::text, 30) ELSE '' END);
    RETURN NULL;
END $$;
-- deferred: the queue keeps all intermediate versions until commit
CREATE CONSTRAINT TRIGGER tv_late AFTER INSERT OR UPDATE OR DELETE ON tv DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION tv_note();
INSERT INTO tv VALUES (1, 1, 'one'), (2, 2, 'two'), (3, 3, 'three');
SELECT what FROM tv_log ORDER BY n;
TRUNCATE tv_log;
BEGIN;
UPDATE tv SET a = 10 WHERE id = 1;
UPDATE tv SET a = 11 WHERE id = 1;
UPDATE tv SET a = 12, t = repeat('x', 100) WHERE id = 1;
INSERT INTO tv VALUES (4, 4, 'four');
UPDATE tv SET a = 40 WHERE id = 4;
DELETE FROM tv WHERE id = 4;
UPDATE tv SET a = 20 WHERE id = 2;
DELETE FROM tv WHERE id = 2;
INSERT INTO tv VALUES (2, 200, 'two again');
SELECT count(*) FROM tv_log;
COMMIT;
SELECT what FROM tv_log ORDER BY n;
TRUNCATE tv_log;
-- with savepoints: events of rolled back changes disappear
BEGIN;
UPDATE tv SET a = 1 WHERE id = 1;
SAVEPOINT s;
UPDATE tv SET a = 2 WHERE id = 1;
ROLLBACK TO s;
UPDATE tv SET a = 3 WHERE id = 1;
SAVEPOINT s2;
UPDATE tv SET a = 4 WHERE id = 1;
RELEASE s2;
SET CONSTRAINTS ALL IMMEDIATE;
SELECT what FROM tv_log ORDER BY n;
UPDATE tv SET a = 5 WHERE id = 1;
COMMIT;
SELECT what FROM tv_log ORDER BY n;
TRUNCATE tv_log;
-- many rows, changed twice, before the check
BEGIN;
INSERT INTO tv SELECT i, i, 'many' FROM generate_series(100, 599) i;
UPDATE tv SET a = a + 1 WHERE id >= 100;
UPDATE tv SET t = repeat('l', 50) WHERE id >= 100;
COMMIT;
SELECT substring(what, '^\S+ \S+'), count(*), count(DISTINCT what) FROM tv_log GROUP BY 1 ORDER BY 1;
SELECT what FROM tv_log WHERE what ~ '\(250,' ORDER BY n;
DELETE FROM tv WHERE id >= 100;
TRUNCATE tv_log;
-- an AFTER trigger that updates its own row
DROP TRIGGER tv_late ON tv;
CREATE FUNCTION tv_again() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.a < 5 THEN UPDATE tv SET a = NEW.a + 1 WHERE id = NEW.id; END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER tv_a_again AFTER UPDATE ON tv FOR EACH ROW EXECUTE FUNCTION tv_again();
CREATE TRIGGER tv_b_note AFTER INSERT OR UPDATE OR DELETE ON tv FOR EACH ROW EXECUTE FUNCTION tv_note();
UPDATE tv SET a = 1 WHERE id = 1;
SELECT what FROM tv_log ORDER BY n;
SELECT * FROM tv ORDER BY id;
TRUNCATE tv_log;
UPDATE tv SET a = 3;
SELECT what FROM tv_log ORDER BY what;
SELECT * FROM tv ORDER BY id;
TRUNCATE tv_log;
DROP TRIGGER tv_a_again ON tv;
-- a BEFORE trigger that changes its own row: the statement has to notice
CREATE FUNCTION tv_own() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tv SET t = 'by trigger' WHERE id = OLD.id;
    RETURN CASE WHEN TG_OP = 'UPDATE' THEN NEW ELSE OLD END;
END $$;
-- the statement is told by an error
CREATE TRIGGER tv_own BEFORE UPDATE OF a OR DELETE ON tv FOR EACH ROW EXECUTE FUNCTION tv_own();
UPDATE tv SET a = 7 WHERE id = 1;
DELETE FROM tv WHERE id = 1;
SELECT * FROM tv ORDER BY id;
DROP TRIGGER tv_own ON tv;
TRUNCATE tv_log;
-- data-modifying WITH on the same row: the second change is ignored
WITH u AS (UPDATE tv SET a = 70 WHERE id = 1 RETURNING *) UPDATE tv SET a = 71 FROM u WHERE tv.id = u.id;
WITH u AS (UPDATE tv SET a = 72 WHERE id = 1 RETURNING *) DELETE FROM tv USING u WHERE tv.id = u.id;
SELECT * FROM tv ORDER BY id;
SELECT what FROM tv_log ORDER BY n;
TRUNCATE tv_log;
-- foreign key cascades onto the same row, with triggers watching
CREATE TABLE tv_child (id int PRIMARY KEY, x int REFERENCES tv ON UPDATE CASCADE ON DELETE CASCADE, y int REFERENCES tv ON UPDATE CASCADE ON DELETE SET NULL);
CREATE TRIGGER tv_child_note AFTER INSERT OR UPDATE OR DELETE ON tv_child FOR EACH ROW EXECUTE FUNCTION tv_note();
INSERT INTO tv_child VALUES (1, 1, 1), (2, 2, 1), (3, 3, 3);
UPDATE tv SET id = 10 WHERE id = 1;
UPDATE tv SET id = id + 100 WHERE id = 2;
UPDATE tv SET id = id + 100 WHERE id = 3;
UPDATE tv SET id = id + 100 WHERE id = 10;
DELETE FROM tv WHERE id = 110;
DELETE FROM tv;
SELECT what FROM tv_log ORDER BY what;
SELECT * FROM tv_child ORDER BY id;
DROP TABLE tv_child, tv, tv_log;
DROP FUNCTION tv_note, tv_again, tv_own;
-- the row stays where it is, and OLD and NEW are found whatever has come on top: with undo on the row's page, and (the second
-- table's pages are full) in rings; where a trigger may be deferred, the transaction's second update moves
CREATE TABLE tv_home (id int PRIMARY KEY, a int, t text) WITH (fillfactor = 50);
CREATE TABLE tv_full (id int PRIMARY KEY, a int, t text);
CREATE TABLE tv_ref (id int PRIMARY KEY, a int, t text, home int REFERENCES tv_home DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE tv_note (n serial, name text, o text, new text);
CREATE FUNCTION tv_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tv_note (name, o, new) VALUES (TG_NAME || ' ' || TG_TABLE_NAME, left(OLD::text, 12), left(NEW::text, 12));
    RETURN NULL;
END $$;
INSERT INTO tv_home SELECT i, i, repeat('h', 40) FROM generate_series(1, 1000) i;
INSERT INTO tv_full SELECT i, i, repeat('f', 1000 - i % 7) FROM generate_series(1, 1000) i;
INSERT INTO tv_ref SELECT i, i, repeat('r', 40), i FROM generate_series(1, 1000) i;
CREATE TABLE tv_where AS SELECT 'tv_home' AS name, id, ctid AS at FROM tv_home UNION ALL SELECT 'tv_full', id, ctid FROM tv_full
    UNION ALL SELECT 'tv_ref', id, ctid FROM tv_ref;
DO $$ DECLARE t text; BEGIN
    FOREACH t IN ARRAY ARRAY['tv_home', 'tv_full', 'tv_ref'] LOOP
        EXECUTE format('CREATE TRIGGER now AFTER INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW EXECUTE FUNCTION tv_note()', t);
        IF t = 'tv_full' THEN CONTINUE; END IF;
        EXECUTE format('CREATE CONSTRAINT TRIGGER late AFTER INSERT OR UPDATE OR DELETE ON %s DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION tv_note()', t);
    END LOOP;
END $$;
BEGIN;
UPDATE tv_home SET a = -1 WHERE id % 10 = 0;
UPDATE tv_full SET a = -1 WHERE id % 10 = 0;
UPDATE tv_ref SET a = -1 WHERE id % 10 = 0;
SAVEPOINT s;
UPDATE tv_home SET a = -2 WHERE id % 20 = 0;
UPDATE tv_full SET a = -2 WHERE id % 20 = 0;
UPDATE tv_ref SET a = -2 WHERE id % 20 = 0;
ROLLBACK TO s;
UPDATE tv_home SET a = -3 WHERE id % 20 = 0;
UPDATE tv_full SET a = -3 WHERE id % 20 = 0;
UPDATE tv_ref SET a = -3 WHERE id % 20 = 0;
SELECT id FROM tv_home WHERE id = 20 FOR UPDATE;
SELECT id FROM tv_full WHERE id = 20 FOR KEY SHARE;
DELETE FROM tv_ref WHERE id = 20;
DELETE FROM tv_home WHERE id = 20;
COMMIT;
SELECT name, count(*), count(DISTINCT o), count(DISTINCT new) FROM tv_note GROUP BY 1 ORDER BY 1;
SELECT name, o, new FROM tv_note WHERE o ~ '^\(20,' ORDER BY n;
SELECT name, count(*) FILTER (WHERE w.at = h.ctid) AS stayed, count(*) AS of
FROM (SELECT 'tv_home' AS name, id, ctid FROM tv_home UNION ALL SELECT 'tv_full', id, ctid FROM tv_full
    UNION ALL SELECT 'tv_ref', id, ctid FROM tv_ref) h JOIN tv_where w USING (name, id) GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM inplace_check('tv_home');
SELECT count(*) FROM inplace_check('tv_full');
-- rows that do not say that the transaction has inserted them
BEGIN;
CREATE TABLE tv_frozen (id int, a int);
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON tv_frozen DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION tv_note();
COPY tv_frozen FROM stdin (FREEZE);
1	1
\.
UPDATE tv_frozen SET a = 99;
COMMIT;
SELECT name, o, new FROM tv_note WHERE name ~ 'frozen';
-- a foreign key's check of a row that does not hold it, which updates of another column queue only of what is our own
INSERT INTO tv_home VALUES (2001, 1);
ALTER TABLE tv_ref DROP CONSTRAINT tv_ref_home_fkey;
UPDATE tv_ref SET home = 5000 WHERE id = 1;
ALTER TABLE tv_ref ADD FOREIGN KEY (home) REFERENCES tv_home NOT VALID;
ALTER TABLE tv_ref DISABLE TRIGGER now;
ALTER TABLE tv_ref DISABLE TRIGGER late;
BEGIN;
UPDATE tv_ref SET a = a + 1 WHERE id = 1;
UPDATE tv_ref SET a = a + 1 WHERE id = 1;
COMMIT;
DROP TABLE tv_frozen;
-- an error between the fetches of OLD and NEW is not remembered
CREATE TABLE tv_broken (id int PRIMARY KEY, x int, y int);
INSERT INTO tv_broken VALUES (1, 0, 0), (2, 0, 0);
CREATE FUNCTION tv_cancel() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE WHEN NEW.id = 1 AND pg_cancel_backend(pg_backend_pid()) THEN NULL::tv_broken ELSE NULL::tv_broken END;
END $$;
CREATE TRIGGER now AFTER UPDATE ON tv_broken FOR EACH ROW EXECUTE FUNCTION tv_cancel();
UPDATE tv_broken SET x = 1;
UPDATE tv_broken SET y = 7 WHERE id = 2;
SELECT * FROM tv_broken ORDER BY id;
DROP TABLE tv_broken;
DROP FUNCTION tv_cancel;
DROP TABLE tv_ref, tv_home, tv_full, tv_note, tv_where;
DROP FUNCTION tv_note;
