-- Foreign keys from and to inplace tables, with all actions.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE fk_p (id int PRIMARY KEY, a int, UNIQUE (a));
INSERT INTO fk_p SELECT i, i * 10 FROM generate_series(1, 24) i;
CREATE TABLE fk_none (id int PRIMARY KEY, pid int REFERENCES fk_p);
CREATE TABLE fk_cascade (id int PRIMARY KEY, pid int REFERENCES fk_p ON DELETE CASCADE ON UPDATE CASCADE, t text);
CREATE TABLE fk_null (id int PRIMARY KEY, pid int REFERENCES fk_p ON DELETE SET NULL ON UPDATE SET NULL);
CREATE TABLE fk_default (id int PRIMARY KEY, pid int DEFAULT 12 REFERENCES fk_p ON DELETE SET DEFAULT ON UPDATE SET DEFAULT);
CREATE TABLE fk_restrict (id int PRIMARY KEY, pid int REFERENCES fk_p ON DELETE RESTRICT ON UPDATE RESTRICT);
CREATE TABLE fk_a (id int PRIMARY KEY, pa int REFERENCES fk_p (a) ON UPDATE CASCADE DEFERRABLE INITIALLY DEFERRED);
INSERT INTO fk_none VALUES (1, 1), (2, NULL);
INSERT INTO fk_none VALUES (3, 99);
INSERT INTO fk_cascade SELECT i, 2 + i % 3, 'c' FROM generate_series(1, 9) i;
INSERT INTO fk_null VALUES (1, 5), (2, 5), (3, 6);
INSERT INTO fk_default VALUES (1, 7), (2, 8);
INSERT INTO fk_restrict VALUES (1, 9);
INSERT INTO fk_a VALUES (1, 210), (2, 220);
-- NO ACTION
DELETE FROM fk_p WHERE id = 1;
UPDATE fk_p SET id = 100 WHERE id = 1;
UPDATE fk_p SET a = 11 WHERE id = 1;
UPDATE fk_none SET pid = 77 WHERE id = 1;
UPDATE fk_none SET pid = 2 WHERE id = 1;
DELETE FROM fk_p WHERE id = 1;
-- CASCADE
DELETE FROM fk_p WHERE id = 3;
UPDATE fk_p SET id = 40 WHERE id = 4;
SELECT * FROM fk_cascade ORDER BY id;
-- SET NULL, SET DEFAULT, RESTRICT
DELETE FROM fk_p WHERE id = 5;
UPDATE fk_p SET id = 60 WHERE id = 6;
SELECT * FROM fk_null ORDER BY id;
DELETE FROM fk_p WHERE id = 7;
UPDATE fk_p SET id = 80 WHERE id = 8;
SELECT * FROM fk_default ORDER BY id;
DELETE FROM fk_p WHERE id = 12;
DELETE FROM fk_p WHERE id = 9;
UPDATE fk_p SET id = 90 WHERE id = 9;
-- deferred, and a key that comes back before the check
BEGIN;
INSERT INTO fk_a VALUES (3, 5000);
UPDATE fk_p SET a = 211 WHERE a = 210;
SELECT * FROM fk_a ORDER BY id;
INSERT INTO fk_p VALUES (500, 5000);
COMMIT;
BEGIN;
INSERT INTO fk_a VALUES (4, 6000);
COMMIT;
BEGIN;
INSERT INTO fk_a VALUES (4, 6000);
UPDATE fk_a SET pa = 220 WHERE id = 4;
COMMIT;
BEGIN;
INSERT INTO fk_a VALUES (5, 6000);
DELETE FROM fk_a WHERE id = 5;
COMMIT;
SELECT * FROM fk_a ORDER BY id;
-- delete and reinsert of the parent in one transaction
CREATE TABLE fk_late (id int PRIMARY KEY, pid int REFERENCES fk_p DEFERRABLE INITIALLY DEFERRED);
INSERT INTO fk_late VALUES (1, 10);
BEGIN;
DELETE FROM fk_p WHERE id = 10;
INSERT INTO fk_p VALUES (10, 1010);
COMMIT;
BEGIN;
DELETE FROM fk_p WHERE id = 10;
COMMIT;
BEGIN;
UPDATE fk_p SET id = 1000 WHERE id = 10;
UPDATE fk_p SET id = 10 WHERE id = 1000;
COMMIT;
SELECT * FROM fk_late;
-- savepoints between parent and child
BEGIN;
INSERT INTO fk_p VALUES (200, 2000);
SAVEPOINT s;
INSERT INTO fk_none VALUES (20, 200);
ROLLBACK TO s;
DELETE FROM fk_p WHERE id = 200;
COMMIT;
BEGIN;
SAVEPOINT s;
DELETE FROM fk_p WHERE id = 2;
ROLLBACK TO s;
INSERT INTO fk_none VALUES (21, 2);
COMMIT;
-- chains and self references
CREATE TABLE fk_self (id int PRIMARY KEY, up int REFERENCES fk_self ON DELETE CASCADE ON UPDATE CASCADE, t text);
INSERT INTO fk_self VALUES (1, NULL, 'root'), (2, 1, 'a'), (3, 1, 'b'), (4, 2, 'aa'), (5, 4, 'aaa'), (6, 6, 'own');
UPDATE fk_self SET id = id * 10 WHERE id IN (1, 2);
SELECT * FROM fk_self ORDER BY id;
UPDATE fk_self SET id = 60 WHERE id = 6;
UPDATE fk_self SET t = t || '!' WHERE up IS NOT NULL;
DELETE FROM fk_self WHERE id = 20;
SELECT * FROM fk_self ORDER BY id;
DELETE FROM fk_self WHERE id = 60;
-- two cascades that meet in the same row
CREATE TABLE fk_two (id int PRIMARY KEY, x int REFERENCES fk_p ON DELETE SET NULL ON UPDATE CASCADE, y int REFERENCES fk_p ON DELETE SET NULL ON UPDATE CASCADE);
INSERT INTO fk_two VALUES (1, 11, 11), (2, 11, 2);
UPDATE fk_p SET id = 1100 WHERE id = 11;
SELECT * FROM fk_two ORDER BY id;
DELETE FROM fk_p WHERE id IN (1100, 2);
DELETE FROM fk_none WHERE pid = 2;
DELETE FROM fk_p WHERE id IN (1100, 2);
SELECT * FROM fk_two ORDER BY id;
-- between access methods, two columns, MATCH FULL
CREATE TABLE fk_heap (x int, y int, PRIMARY KEY (x, y)) USING heap;
CREATE TABLE fk_to_heap (x int, y int, FOREIGN KEY (x, y) REFERENCES fk_heap MATCH FULL ON DELETE CASCADE);
CREATE TABLE fk_from_heap (pid int REFERENCES fk_p ON DELETE CASCADE) USING heap;
INSERT INTO fk_heap VALUES (1, 1), (1, 2);
INSERT INTO fk_to_heap VALUES (1, 1), (1, 2), (NULL, NULL);
INSERT INTO fk_to_heap VALUES (1, NULL);
INSERT INTO fk_to_heap VALUES (2, 2);
DELETE FROM fk_heap WHERE y = 1;
SELECT * FROM fk_to_heap ORDER BY x;
INSERT INTO fk_from_heap VALUES (10), (10);
DELETE FROM fk_late;
DELETE FROM fk_p WHERE id = 10;
SELECT count(*) FROM fk_from_heap;
-- adding and validating a constraint on existing rows
CREATE TABLE fk_add (pid int);
INSERT INTO fk_add VALUES (500), (12345);
ALTER TABLE fk_add ADD FOREIGN KEY (pid) REFERENCES fk_p;
ALTER TABLE fk_add ADD CONSTRAINT fk_add_later FOREIGN KEY (pid) REFERENCES fk_p NOT VALID;
ALTER TABLE fk_add VALIDATE CONSTRAINT fk_add_later;
UPDATE fk_add SET pid = 500 WHERE pid = 12345;
ALTER TABLE fk_add VALIDATE CONSTRAINT fk_add_later;
-- rows that COPY FREEZE has put, changed before the deferred check
CREATE TABLE fk_frozen (id int, pid int REFERENCES fk_p DEFERRABLE INITIALLY DEFERRED, v int);
BEGIN;
TRUNCATE fk_frozen;
COPY fk_frozen FROM stdin (FREEZE);
1	4242	0
\.
UPDATE fk_frozen SET v = 1;
COMMIT;
BEGIN;
TRUNCATE fk_frozen;
COPY fk_frozen FROM stdin (FREEZE);
1	500	0
\.
UPDATE fk_frozen SET v = 1;
COMMIT;
SELECT * FROM fk_frozen;
SELECT * FROM fk_p WHERE id NOT BETWEEN 13 AND 24 ORDER BY id;
DROP TABLE fk_frozen, fk_none, fk_cascade, fk_null, fk_default, fk_restrict, fk_a, fk_late, fk_self, fk_two, fk_to_heap, fk_heap, fk_from_heap, fk_add, fk_p;
