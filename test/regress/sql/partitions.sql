-- Partitions, inheritance, and tables of several access methods in one query.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE pa (id int, a int, t text, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE pa_1 PARTITION OF pa FOR VALUES FROM (0) TO (100) USING inplace;
CREATE TABLE pa_2 PARTITION OF pa FOR VALUES FROM (100) TO (200) USING heap;
CREATE TABLE pa_3 PARTITION OF pa FOR VALUES FROM (200) TO (300) USING inplace;
INSERT INTO pa SELECT i, i, 'p' FROM generate_series(0, 299) i;
SELECT tableoid::regclass, count(*), sum(a) FROM pa GROUP BY 1 ORDER BY 1;
UPDATE pa SET a = -a WHERE id % 10 = 0;
-- rows move between partitions and access methods
UPDATE pa SET id = id + 1000 WHERE id = 5;
DELETE FROM pa WHERE id BETWEEN 248 AND 250;
WITH x AS (UPDATE pa SET id = 300 - id WHERE id IN (50, 51, 52) RETURNING tableoid::regclass, *) SELECT * FROM x ORDER BY id;
DELETE FROM pa WHERE id > 290;
WITH x AS (UPDATE pa SET id = id + 290 WHERE id IN (1, 2) RETURNING tableoid::regclass, *) SELECT * FROM x ORDER BY id;
BEGIN;
DELETE FROM pa WHERE id = 150;
UPDATE pa SET id = 150, t = 'moved' WHERE id = 10;
SELECT tableoid::regclass, * FROM pa WHERE id IN (10, 150) ORDER BY id;
ROLLBACK;
SELECT tableoid::regclass, * FROM pa WHERE id IN (10, 150) ORDER BY id;
SELECT tableoid::regclass, count(*), sum(a) FROM pa GROUP BY 1 ORDER BY 1;
-- attach, detach, default partition
CREATE TABLE pa_new (a int, id int NOT NULL, t text, extra int);
ALTER TABLE pa_new DROP COLUMN extra;
INSERT INTO pa_new SELECT i, i, 'attached' FROM generate_series(300, 310) i;
ALTER TABLE pa ATTACH PARTITION pa_new FOR VALUES FROM (300) TO (400);
UPDATE pa SET id = id + 180 WHERE id = 206;
UPDATE pa SET a = 1, id = 20 + 330 WHERE id = 20;
SELECT tableoid::regclass, * FROM pa WHERE id >= 300 ORDER BY id;
ALTER TABLE pa DETACH PARTITION pa_2;
SELECT count(*) FROM pa;
DROP TABLE pa_2;
-- triggers and moving rows
CREATE FUNCTION pa_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE NOTICE '% % on %: % -> %', TG_WHEN, TG_OP, TG_TABLE_NAME, CASE WHEN TG_OP <> 'INSERT' THEN OLD::text END, CASE WHEN TG_OP <> 'DELETE' THEN NEW::text END;
RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END; END $$;
CREATE TRIGGER pa_a AFTER INSERT OR UPDATE OR DELETE ON pa FOR EACH ROW EXECUTE FUNCTION pa_note();
CREATE TRIGGER pa_b BEFORE INSERT OR UPDATE OR DELETE ON pa FOR EACH ROW EXECUTE FUNCTION pa_note();
UPDATE pa SET a = 7 WHERE id = 30;
UPDATE pa SET id = 299 WHERE id = 31;
DELETE FROM pa WHERE id = 299;
-- inheritance
CREATE TABLE pa_parent (id int, a int);
CREATE TABLE pa_kid (b text) INHERITS (pa_parent);
CREATE TABLE pa_heap_kid (c text) INHERITS (pa_parent) USING heap;
INSERT INTO pa_parent VALUES (1, 1);
INSERT INTO pa_kid VALUES (2, 2, 'b');
INSERT INTO pa_heap_kid VALUES (3, 3, 'c');
WITH x AS (UPDATE pa_parent SET a = a * 10 RETURNING tableoid::regclass, *) SELECT * FROM x ORDER BY id;
UPDATE ONLY pa_parent SET a = 0;
ALTER TABLE pa_parent ADD COLUMN d int DEFAULT 9;
UPDATE pa_parent p SET d = o.a FROM pa_kid o WHERE p.id > 1;
DELETE FROM pa_parent WHERE id = 3;
SELECT tableoid::regclass, * FROM pa_parent ORDER BY id;
SELECT * FROM pa_kid;
-- joins between the access methods
CREATE TABLE pa_h USING heap AS SELECT i AS id, i % 10 AS g FROM generate_series(1, 1000) i;
CREATE TABLE pa_i AS SELECT i AS id, i % 7 AS g FROM generate_series(1, 1000) i;
UPDATE pa_i SET g = h.g FROM pa_h h WHERE h.id = pa_i.id AND h.id % 2 = 0;
UPDATE pa_h SET g = i.g FROM pa_i i WHERE i.id = pa_h.id AND i.id % 2 = 1;
SELECT count(*), count(*) FILTER (WHERE h.g = i.g) FROM pa_h h JOIN pa_i i USING (id);
DROP TABLE pa, pa_parent, pa_kid, pa_heap_kid, pa_h, pa_i;
DROP FUNCTION pa_note;
