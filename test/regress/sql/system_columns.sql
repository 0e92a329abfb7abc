-- tableoid, xmin, xmax, cmin, cmax, ctid as far as they mean something.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE sc (id int PRIMARY KEY, a int);
INSERT INTO sc VALUES (1, 1), (2, 2), (3, 3);
SELECT tableoid::regclass, id, a FROM sc ORDER BY id;
SELECT count(*), count(DISTINCT ctid) FROM sc;
SELECT count(*) FROM sc WHERE ctid IS NULL OR xmin IS NULL OR cmin IS NULL OR cmax IS NULL OR xmax IS NULL;
BEGIN;
INSERT INTO sc VALUES (4, 4);
SELECT id, xmin = pg_current_xact_id()::xid AS mine FROM sc ORDER BY id;
UPDATE sc SET a = 20 WHERE id = 2;
SELECT id, a, xmin = pg_current_xact_id()::xid AS mine FROM sc ORDER BY id;
ROLLBACK;
SELECT id, a FROM sc ORDER BY id;
-- command ids of one transaction
BEGIN;
SELECT pg_current_xact_id() IS NOT NULL AS assigned;
INSERT INTO sc VALUES (5, 5);
INSERT INTO sc VALUES (6, 6), (7, 7);
SELECT id, cmin FROM sc WHERE xmin = pg_current_xact_id()::xid ORDER BY id;
COMMIT;
-- a committed version's xmin stays what it was, and an update changes it
SELECT xmin AS before FROM sc WHERE id = 1 \gset
SELECT xmin = :before AS same FROM sc WHERE id = 1;
UPDATE sc SET a = 11 WHERE id = 1;
SELECT xmin::text::bigint > :before AS newer FROM sc WHERE id = 1;
-- RETURNING with system columns
INSERT INTO sc VALUES (8, 8) RETURNING tableoid::regclass, id, xmin = pg_current_xact_id()::xid AS mine;
UPDATE sc SET a = 88 WHERE id = 8 RETURNING tableoid::regclass, id, a;
DELETE FROM sc WHERE id = 8 RETURNING tableoid::regclass, id, a;
-- the ctid of RETURNING finds the row in the same transaction
BEGIN;
UPDATE sc SET a = 12 WHERE id = 1 RETURNING ctid AS found \gset
SELECT id, a FROM sc WHERE ctid = :'found';
COMMIT;
SELECT id, a FROM sc WHERE ctid = :'found';
-- xmin and xmax cannot be written
UPDATE sc SET xmin = '1';
INSERT INTO sc (id, ctid) VALUES (1, '(0,1)');
-- rows of partitions and children know their table
CREATE TABLE sc_child (c int) INHERITS (sc);
INSERT INTO sc_child VALUES (50, 50, 50);
SELECT tableoid::regclass, id FROM sc WHERE id IN (7, 50) ORDER BY id;
-- old versions seen through a cursor keep their xmin
BEGIN;
DECLARE c CURSOR FOR SELECT id, a, xmin = pg_current_xact_id()::xid AS mine FROM sc WHERE id <= 3 ORDER BY id;
UPDATE sc SET a = -a WHERE id <= 3;
FETCH ALL FROM c;
SELECT id, a, xmin = pg_current_xact_id()::xid AS mine FROM sc WHERE id <= 3 ORDER BY id;
COMMIT;
DROP TABLE sc CASCADE;
