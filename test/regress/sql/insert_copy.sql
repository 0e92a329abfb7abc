-- INSERT in all its forms, COPY in and out.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE ic (id int PRIMARY KEY, a int DEFAULT 5, t text DEFAULT 'none', n numeric);
INSERT INTO ic VALUES (1, 1, 'one', 1.1);
INSERT INTO ic (id) VALUES (2);
INSERT INTO ic VALUES (3, DEFAULT, NULL, 3), (4, NULL, DEFAULT, NULL), (5, 5, 'five', 5);
INSERT INTO ic SELECT i, i * 2, 't' || i, i / 3.0 FROM generate_series(6, 10) i RETURNING id, t;
INSERT INTO ic TABLE ic;
INSERT INTO ic VALUES (1, 1, 'again', 1);
INSERT INTO ic (id, a) VALUES (11, 1), (12, 2), (1, 3);
INSERT INTO ic (id) VALUES (NULL);
SELECT * FROM ic ORDER BY id;
WITH ins AS (INSERT INTO ic SELECT id + 20, a, t FROM ic WHERE id < 4 RETURNING *) SELECT id, a, t FROM ins ORDER BY id;
SELECT count(*) FROM ic;
-- many rows in one statement, into many pages
CREATE TABLE ic_many (id int, t text);
INSERT INTO ic_many SELECT i, repeat('x', i % 200) FROM generate_series(1, 20000) i;
SELECT count(*), sum(id), sum(length(t)) FROM ic_many;
INSERT INTO ic_many SELECT id + 20000, t FROM ic_many;
SELECT count(*), sum(id), sum(length(t)), count(DISTINCT ctid) FROM ic_many;
-- COPY
COPY ic (id, a, t) FROM stdin;
30	30	thirty
31	\N	\N
32	32	tab\tinside
\.
COPY ic FROM stdin WITH (FORMAT csv, NULL 'null');
33,33,"a, ""quoted"" one",3.3
34,null,,null
\.
COPY ic FROM stdin WHERE id % 2 = 0;
35	35	left out	1
36	36	kept	2
\.
COPY ic (id) FROM stdin;
40
41
1
42
\.
COPY ic (id, a) FROM stdin;
50	not a number
\.
COPY (SELECT * FROM ic WHERE id >= 30 ORDER BY id) TO stdout;
COPY (SELECT id, t FROM ic WHERE id >= 30 ORDER BY id) TO stdout WITH (FORMAT csv, HEADER, FORCE_QUOTE (t));
-- COPY into a table created in the same transaction, twice the same way with TRUNCATE and FREEZE
BEGIN;
CREATE TABLE ic_new (a int, b text);
COPY ic_new FROM stdin;
1	x
2	y
\.
SELECT * FROM ic_new ORDER BY a;
COMMIT;
BEGIN;
TRUNCATE ic_new;
COPY ic_new FROM stdin WITH (FREEZE);
3	z
4	zz
\.
SELECT * FROM ic_new ORDER BY a;
COMMIT;
SELECT * FROM ic_new ORDER BY a;
UPDATE ic_new SET b = b || '!';
DELETE FROM ic_new WHERE a = 3;
SELECT * FROM ic_new ORDER BY a;
-- an aborted COPY leaves nothing
BEGIN;
COPY ic_new FROM stdin;
5	five
6	six
\.
SELECT count(*) FROM ic_new;
ROLLBACK;
SELECT count(*) FROM ic_new;
-- rows of the largest size that fits one page without toast
CREATE TABLE ic_big (id int, c1 char(1000), c2 char(1000), c3 char(1000), c4 char(1000), c5 char(1000), c6 char(1000), c7 char(1000), c8 char(900));
ALTER TABLE ic_big ALTER c1 SET STORAGE PLAIN, ALTER c2 SET STORAGE PLAIN, ALTER c3 SET STORAGE PLAIN, ALTER c4 SET STORAGE PLAIN,
    ALTER c5 SET STORAGE PLAIN, ALTER c6 SET STORAGE PLAIN, ALTER c7 SET STORAGE PLAIN, ALTER c8 SET STORAGE PLAIN;
INSERT INTO ic_big SELECT i, i, i, i, i, i, i, i, i FROM generate_series(1, 3) i;
UPDATE ic_big SET c8 = 'changed', c1 = 'changed' WHERE id = 2;
SELECT id, trim(c1) AS c1, trim(c7) AS c7, trim(c8) AS c8 FROM ic_big ORDER BY id;
BEGIN;
UPDATE ic_big SET c3 = 'gone';
DELETE FROM ic_big WHERE id = 1;
ROLLBACK;
SELECT id, trim(c3) AS c3 FROM ic_big ORDER BY id;
-- constraints
CREATE TABLE ic_check (a int CHECK (a > 0), b int NOT NULL, EXCLUDE USING btree (b WITH =));
INSERT INTO ic_check VALUES (1, 1);
INSERT INTO ic_check VALUES (0, 2);
INSERT INTO ic_check VALUES (1, NULL);
INSERT INTO ic_check VALUES (2, 1);
INSERT INTO ic_check VALUES (2, 2), (3, 3);
UPDATE ic_check SET b = 3 WHERE a = 2;
UPDATE ic_check SET a = -a;
SELECT * FROM ic_check ORDER BY a;
DROP TABLE ic, ic_many, ic_new, ic_big, ic_check;
