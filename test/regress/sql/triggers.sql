-- Row triggers BEFORE and AFTER with OLD and NEW.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE tg (id int PRIMARY KEY, a int, t text);
CREATE TABLE tg_log (n serial, what text, o text, n_ text);
CREATE FUNCTION tg_after() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tg_log (what, o, n_) VALUES (TG_WHEN || ' ' || TG_OP, CASE WHEN TG_OP <> 'INSERT' THEN OLD::text END, CASE WHEN TG_OP <> 'DELETE' THEN NEW::text END);
    RETURN NULL;
END $$;
CREATE FUNCTION tg_before() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN RETURN CASE WHEN OLD.t = 'keep' THEN NULL ELSE OLD END; END IF;
    IF NEW.a < 0 THEN RETURN NULL; END IF;
    IF NEW.a > 100 THEN NEW.a := 100; NEW.t := coalesce(NEW.t, '') || ' capped'; END IF;
    IF TG_OP = 'UPDATE' AND OLD.a = 42 THEN RETURN OLD; END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER tg_a AFTER INSERT OR UPDATE OR DELETE ON tg FOR EACH ROW EXECUTE FUNCTION tg_after();
CREATE TRIGGER tg_b BEFORE INSERT OR UPDATE OR DELETE ON tg FOR EACH ROW EXECUTE FUNCTION tg_before();
INSERT INTO tg VALUES (1, 1, 'one'), (2, 200, 'two'), (3, -3, 'refused'), (4, 4, 'keep'), (5, 42, 'answer');
SELECT * FROM tg ORDER BY id;
UPDATE tg SET a = a + 1;
UPDATE tg SET t = t || repeat('+', 60) WHERE id = 1;
UPDATE tg SET a = -1 WHERE id = 1;
UPDATE tg SET id = 20 WHERE id = 2;
DELETE FROM tg WHERE id IN (4, 20);
SELECT * FROM tg ORDER BY id;
SELECT what, left(o, 40) AS o, left(n_, 40) AS n FROM tg_log ORDER BY what, o, n_;
TRUNCATE tg_log;
-- the same row several times in one transaction, and in rolled back savepoints
BEGIN;
UPDATE tg SET a = 10 WHERE id = 1;
UPDATE tg SET a = 11, t = 'x' WHERE id = 1;
SAVEPOINT s;
UPDATE tg SET a = 12 WHERE id = 1;
DELETE FROM tg WHERE id = 1;
ROLLBACK TO s;
UPDATE tg SET a = 13 WHERE id = 1;
DELETE FROM tg WHERE id = 1;
COMMIT;
SELECT what, o, n_ FROM tg_log ORDER BY n;
TRUNCATE tg_log;
-- conditions and columns
CREATE TRIGGER tg_c AFTER UPDATE OF t ON tg FOR EACH ROW WHEN (OLD.t IS DISTINCT FROM NEW.t) EXECUTE FUNCTION tg_after();
DROP TRIGGER tg_a ON tg;
INSERT INTO tg VALUES (6, 6, 'six'), (7, 7, 'seven');
UPDATE tg SET a = a + 1 WHERE id > 5;
UPDATE tg SET t = t WHERE id > 5;
UPDATE tg SET t = 'changed' WHERE id > 5;
SELECT what, o, n_ FROM tg_log ORDER BY what, o, n_;
TRUNCATE tg_log;
DROP TRIGGER tg_c ON tg;
-- statement triggers with transition tables
CREATE FUNCTION tg_statement() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN INSERT INTO tg_log (what, n_) SELECT 'all new', string_agg(n::text, ' ' ORDER BY n.id) FROM news n;
    ELSIF TG_OP = 'DELETE' THEN INSERT INTO tg_log (what, o) SELECT 'all old', string_agg(o::text, ' ' ORDER BY o.id) FROM olds o;
    ELSE INSERT INTO tg_log (what, o, n_) SELECT 'both', (SELECT string_agg(o::text, ' ' ORDER BY o.id) FROM olds o),
        (SELECT string_agg(n::text, ' ' ORDER BY n.id) FROM news n);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER tg_si AFTER INSERT ON tg REFERENCING NEW TABLE AS news FOR EACH STATEMENT EXECUTE FUNCTION tg_statement();
CREATE TRIGGER tg_su AFTER UPDATE ON tg REFERENCING OLD TABLE AS olds NEW TABLE AS news FOR EACH STATEMENT EXECUTE FUNCTION tg_statement();
CREATE TRIGGER tg_sd AFTER DELETE ON tg REFERENCING OLD TABLE AS olds FOR EACH STATEMENT EXECUTE FUNCTION tg_statement();
INSERT INTO tg VALUES (8, 8, 'eight'), (9, 9, 'nine');
UPDATE tg SET a = a * 2 WHERE id > 6;
UPDATE tg SET t = repeat('w', 30) WHERE id > 7;
DELETE FROM tg WHERE id > 7;
UPDATE tg SET a = 0 WHERE id = 12345;
SELECT what, o, n_ FROM tg_log ORDER BY n;
TRUNCATE tg_log;
-- a trigger that suppresses updates without changes
CREATE TRIGGER tg_z BEFORE UPDATE ON tg FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
UPDATE tg SET a = a;
UPDATE tg SET a = 3 WHERE id = 7;
SELECT what, o, n_ FROM tg_log ORDER BY n;
-- INSTEAD OF
CREATE VIEW tg_view AS SELECT id, a FROM tg;
CREATE FUNCTION tg_instead() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN UPDATE tg SET a = NEW.a + 1000 WHERE id = OLD.id; RETURN NEW; END $$;
DROP TRIGGER tg_b ON tg;
CREATE TRIGGER tg_i INSTEAD OF UPDATE ON tg_view FOR EACH ROW EXECUTE FUNCTION tg_instead();
UPDATE tg_view SET a = 5 WHERE id = 7 RETURNING *;
SELECT * FROM tg ORDER BY id;
DROP VIEW tg_view;
DROP TABLE tg, tg_log;
DROP FUNCTION tg_after, tg_before, tg_statement, tg_instead;
