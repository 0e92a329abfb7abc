-- The extension, its access method, and what the access method refuses.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SELECT amname, amtype FROM pg_am WHERE amname = 'inplace';
CREATE TABLE pre_explicit (a int) USING inplace;
SET default_table_access_method = inplace;
CREATE TABLE pre_default (a int);
CREATE TABLE pre_ctas AS SELECT 1 AS a;
SELECT a INTO pre_into FROM pre_ctas;
CREATE TABLE pre_heap (a int) USING heap;
CREATE MATERIALIZED VIEW pre_mv AS SELECT a + 1 AS a FROM pre_ctas;
CREATE TABLE pre_like (LIKE pre_heap);
CREATE TABLE pre_child () INHERITS (pre_default);
SELECT relname, amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam
WHERE relname ~ '^pre_' ORDER BY relname;
SELECT * FROM pre_into;
SELECT * FROM pre_mv;
-- storage of all forks is reported by the usual functions
SELECT pg_relation_size('pre_ctas') > 0 AS has_size, pg_total_relation_size('pre_ctas') >= pg_relation_size('pre_ctas') AS total;
-- errors
CREATE TABLE pre_bad (a int) USING btree;
CREATE VIEW pre_view AS SELECT a FROM pre_default;
\set VERBOSITY terse
DROP EXTENSION inplace;
DROP ACCESS METHOD inplace;
\set VERBOSITY default
-- from one access method to the other and back
INSERT INTO pre_heap SELECT generate_series(1, 100);
ALTER TABLE pre_heap SET ACCESS METHOD inplace;
SELECT count(*), sum(a) FROM pre_heap;
UPDATE pre_heap SET a = a + 1;
ALTER TABLE pre_heap SET ACCESS METHOD heap;
SELECT count(*), sum(a) FROM pre_heap;
-- sequences stay with heap; the toast table is an inplace table
CREATE TABLE pre_toast (id serial, t text);
SELECT t.relkind, a.amhandler = (SELECT amhandler FROM pg_am WHERE amname = 'inplace') AS inplace FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid JOIN pg_am a ON a.oid = t.relam
WHERE c.relname = 'pre_toast';
DROP MATERIALIZED VIEW pre_mv;
DROP VIEW pre_view;
DROP TABLE pre_explicit, pre_default, pre_ctas, pre_into, pre_heap, pre_like, pre_child, pre_toast;
