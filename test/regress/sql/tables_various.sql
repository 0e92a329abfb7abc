-- Fillfactor, privileges, row security, views, rules, sequences of DDL in transactions.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE tv_fill (id int PRIMARY KEY, t text) WITH (fillfactor = 20);
INSERT INTO tv_fill SELECT i, repeat('f', 50) FROM generate_series(1, 1000) i;
CREATE TABLE tv_full (id int PRIMARY KEY, t text) WITH (fillfactor = 100);
INSERT INTO tv_full SELECT * FROM tv_fill;
SELECT pg_relation_size('tv_fill') > 2 * pg_relation_size('tv_full') AS fillfactor_works;
UPDATE tv_fill SET t = t || repeat('g', 100);
UPDATE tv_full SET t = t || repeat('g', 100);
SELECT (SELECT md5(string_agg(t, '' ORDER BY id)) FROM tv_fill) = (SELECT md5(string_agg(t, '' ORDER BY id)) FROM tv_full) AS same;
ALTER TABLE tv_full SET (fillfactor = 5);
-- DDL and data in one transaction
BEGIN;
CREATE TABLE tv_ddl (id int, a int);
INSERT INTO tv_ddl VALUES (1, 1), (2, 2);
CREATE INDEX tv_ddl_a ON tv_ddl (a);
UPDATE tv_ddl SET a = a + 10;
ALTER TABLE tv_ddl ADD COLUMN b int DEFAULT 5;
UPDATE tv_ddl SET b = a WHERE id = 1;
SAVEPOINT s;
ALTER TABLE tv_ddl DROP COLUMN a;
INSERT INTO tv_ddl VALUES (3, 3);
DROP TABLE tv_fill;
ROLLBACK TO s;
ALTER TABLE tv_ddl RENAME TO tv_renamed;
INSERT INTO tv_renamed VALUES (4, 4, 4);
COMMIT;
SELECT * FROM tv_renamed ORDER BY id;
SELECT count(*) FROM tv_fill;
BEGIN;
DROP TABLE tv_renamed;
CREATE TABLE tv_renamed (x text);
INSERT INTO tv_renamed VALUES ('new');
ROLLBACK;
SELECT count(*) FROM tv_renamed;
-- updatable views with check option, rules
CREATE VIEW tv_view AS SELECT id, a FROM tv_renamed WHERE a > 5 WITH CHECK OPTION;
WITH x AS (UPDATE tv_view SET a = a + 1 RETURNING *) SELECT * FROM x ORDER BY id;
\set VERBOSITY terse
UPDATE tv_view SET a = 0;
\set VERBOSITY default
INSERT INTO tv_view VALUES (9, 99);
DELETE FROM tv_view WHERE id = 2;
SELECT * FROM tv_renamed ORDER BY id;
CREATE RULE tv_rule AS ON DELETE TO tv_renamed DO ALSO UPDATE tv_renamed SET b = -1 WHERE id = OLD.id + 8;
DELETE FROM tv_renamed WHERE id = 1;
SELECT * FROM tv_renamed ORDER BY id;
-- row security
CREATE ROLE regress_inplace_user;
CREATE TABLE tv_rls (id int PRIMARY KEY, owner text, v int);
INSERT INTO tv_rls VALUES (1, 'regress_inplace_user', 1), (2, 'someone', 2);
ALTER TABLE tv_rls ENABLE ROW LEVEL SECURITY;
CREATE POLICY tv_policy ON tv_rls USING (owner = current_user) WITH CHECK (v < 100);
GRANT ALL ON tv_rls TO regress_inplace_user;
SET ROLE regress_inplace_user;
UPDATE tv_rls SET v = v + 10 RETURNING *;
UPDATE tv_rls SET v = 100;
DELETE FROM tv_rls WHERE id = 2;
SELECT * FROM tv_rls;
SELECT * FROM tv_fill;
RESET ROLE;
SELECT * FROM tv_rls ORDER BY id;
DROP VIEW tv_view;
DROP TABLE tv_fill, tv_full, tv_renamed, tv_rls;
DROP ROLE regress_inplace_user;
