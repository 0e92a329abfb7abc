-- MERGE.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE me (id int PRIMARY KEY, a int, t text);
CREATE TABLE me_src (id int, d int);
INSERT INTO me SELECT i, i * 10, 't' FROM generate_series(1, 6) i;
INSERT INTO me_src VALUES (2, 5), (3, -100), (7, 7), (8, 0);
MERGE INTO me USING me_src s ON me.id = s.id
WHEN MATCHED AND me.a + s.d < 0 THEN DELETE
WHEN MATCHED THEN UPDATE SET a = me.a + s.d, t = 'matched'
WHEN NOT MATCHED AND s.d > 0 THEN INSERT VALUES (s.id, s.d, 'merged')
WHEN NOT MATCHED THEN DO NOTHING;
SELECT * FROM me ORDER BY id;
-- the same row twice
INSERT INTO me_src VALUES (2, 6);
MERGE INTO me USING me_src s ON me.id = s.id WHEN MATCHED THEN UPDATE SET a = me.a + 1;
SELECT * FROM me ORDER BY id;
-- keys, sizes
MERGE INTO me USING (VALUES (1, 100), (4, 400)) s (id, new) ON me.id = s.id WHEN MATCHED THEN UPDATE SET id = s.new, t = repeat('m', s.new);
SELECT id, a, length(t) FROM me ORDER BY id;
MERGE INTO me USING (VALUES (5, 6)) s (id, new) ON me.id = s.id WHEN MATCHED THEN UPDATE SET id = s.new;
-- in transactions with rollback and cursors
BEGIN;
DECLARE c CURSOR FOR SELECT id, a FROM me ORDER BY id;
FETCH 1 FROM c;
MERGE INTO me USING generate_series(1, 200) s ON me.id = s WHEN MATCHED AND s < 6 THEN DELETE WHEN MATCHED THEN UPDATE SET a = 0 WHEN NOT MATCHED THEN INSERT VALUES (s, s);
SAVEPOINT s;
MERGE INTO me USING generate_series(1, 200) s ON me.id = s WHEN MATCHED THEN DELETE;
SELECT count(*) FROM me;
ROLLBACK TO s;
SELECT count(*), sum(a) FROM me;
FETCH ALL FROM c;
ROLLBACK;
SELECT id, a FROM me ORDER BY id;
-- with triggers
CREATE FUNCTION me_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE NOTICE '% %: % -> %', TG_WHEN, TG_OP, CASE WHEN TG_OP <> 'INSERT' THEN OLD.a END, CASE WHEN TG_OP <> 'DELETE' THEN NEW.a END;
RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END; END $$;
CREATE TRIGGER me_b BEFORE INSERT OR UPDATE OR DELETE ON me FOR EACH ROW EXECUTE FUNCTION me_note();
CREATE TRIGGER me_a AFTER INSERT OR UPDATE OR DELETE ON me FOR EACH ROW EXECUTE FUNCTION me_note();
MERGE INTO me USING (VALUES (2, 1)) s (id, d) ON me.id = s.id WHEN MATCHED THEN UPDATE SET a = me.a + d;
MERGE INTO me USING (VALUES (2, 1)) s (id, d) ON me.id = s.id WHEN MATCHED THEN DELETE;
MERGE INTO me USING (VALUES (2, 1)) s (id, d) ON me.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.d);
DROP TABLE me, me_src;
DROP FUNCTION me_note;
