-- Statements that write many kinds of WAL records.  Variables: seed, tables.
SELECT setseed(:seed / 1000.0);
CREATE TABLE plain (id int PRIMARY KEY, k int, t text, d timestamptz DEFAULT now());
CREATE INDEX ON plain (k);
CREATE INDEX ON plain USING hash (t);
CREATE INDEX ON plain USING brin (d);
INSERT INTO plain SELECT i, (random() * 1e6)::int, 'name ' || (random() * 100)::int FROM generate_series(1, 20000) i;
CREATE TABLE docs (id int, doc jsonb, words tsvector, box box, p point);
CREATE INDEX ON docs USING gin (doc);
CREATE INDEX ON docs USING gin (words) WITH (fastupdate = off);
CREATE INDEX ON docs USING gist (box);
CREATE INDEX ON docs USING spgist (p);
INSERT INTO docs SELECT i, jsonb_build_object('a', i % 10, 'b', md5(i::text)), to_tsvector('simple', 'w' || i % 50),
	box(point(random(), random()), point(random(), random())), point(random(), random())
	FROM generate_series(1, 3000) i;
CREATE TABLE wide (id serial, filler text);
ALTER TABLE wide ALTER filler SET STORAGE EXTERNAL;
INSERT INTO wide (filler) SELECT repeat(md5(i::text), 400) FROM generate_series(1, 200) i;
UPDATE plain SET k = k + 1 WHERE id % 3 = 0;
UPDATE plain SET t = t || 'x' WHERE id % 5 = 0;
DELETE FROM plain WHERE id % 7 = 0;
DELETE FROM docs WHERE id % 4 = 0;
VACUUM plain, docs, wide;
CHECKPOINT;
UPDATE plain SET k = k - 1 WHERE id % 2 = 0;
INSERT INTO docs SELECT * FROM docs WHERE id % 3 = 0;
SELECT count(*) FROM (SELECT * FROM plain FOR UPDATE) q;
BEGIN;
SAVEPOINT a;
INSERT INTO plain SELECT i, i, 'sub' FROM generate_series(30001, 30100) i;
SAVEPOINT b;
UPDATE plain SET k = 0 WHERE id > 30000;
ROLLBACK TO b;
COMMIT;
DO $$ BEGIN FOR i IN 1..300 LOOP
	BEGIN
		INSERT INTO plain VALUES (40000 + i, i, 'caught');
		IF i % 3 = 0 THEN RAISE 'x'; END IF;
	EXCEPTION WHEN raise_exception THEN NULL;
	END;
END LOOP; END $$;
BEGIN;
INSERT INTO plain VALUES (50001, 1, 'prepared');
PREPARE TRANSACTION 'one';
COMMIT PREPARED 'one';
BEGIN;
INSERT INTO plain VALUES (50002, 1, 'prepared');
PREPARE TRANSACTION 'two';
ROLLBACK PREPARED 'two';
SELECT pg_logical_emit_message(false, 'test', repeat('m', 20000));
-- all texts of a column empty, and so there are none of it
CREATE TABLE copied (id int, e text, n text, k int);
COPY copied FROM stdin;
1		\N	2
2		\N	4
3		\N	1
4		\N	3
5		\N	0
6		\N	2
7		\N	4
8		\N	1
9		\N	3
10		\N	0
11		\N	2
12		\N	4
13		\N	1
14		\N	3
15		\N	0
16		\N	2
17		\N	4
18		\N	1
19		\N	3
20		\N	0
21		\N	2
22		\N	4
23		\N	1
24		\N	3
25		\N	0
26		\N	2
27		\N	4
28		\N	1
29		\N	3
30		\N	0
31		\N	2
32		\N	4
33		\N	1
34		\N	3
35		\N	0
36		\N	2
37		\N	4
38		\N	1
39		\N	3
40		\N	0
\.
CREATE SEQUENCE s;
SELECT count(nextval('s')) FROM generate_series(1, 1000);
-- many relations: each its own table and index
SELECT format('CREATE TABLE many_%s (id int PRIMARY KEY, v text)', i) FROM generate_series(1, :tables) i \gexec
SELECT format('INSERT INTO many_%s SELECT j, ''row '' || j FROM generate_series(1, 10 + %s %% 20) j', i, i)
	FROM generate_series(1, :tables) i \gexec
SELECT format('UPDATE many_%s SET v = v || ''!'' WHERE id < 5', i) FROM generate_series(1, :tables) i \gexec
TRUNCATE docs;
CREATE INDEX ON plain (t, k);
CLUSTER plain USING plain_pkey;
DROP TABLE wide;
ANALYZE;
CREATE DATABASE other;
DROP DATABASE other;
CREATE TABLE random_bytes AS SELECT gen_random_uuid() u, random() r FROM generate_series(1, 20000);
CHECKPOINT;
