-- Not heap: what updates in place promise about size and dead rows.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE nb (id int PRIMARY KEY, a int, t text) WITH (autovacuum_enabled = off);
CREATE INDEX nb_t ON nb (t);
INSERT INTO nb SELECT i, i, 't' || i FROM generate_series(1, 1000) i;
SELECT pg_relation_size('nb') AS before, pg_indexes_size('nb') AS before_index \gset
DO $$ BEGIN FOR i IN 1..100 LOOP UPDATE nb SET a = a + 1; COMMIT; END LOOP; END $$;
SELECT sum(a) FROM nb;
-- heap would have grown by 100 times the rows; here room for recent undo is all that is added
SELECT pg_relation_size('nb') < 20 * :before AS small, pg_indexes_size('nb') = :before_index AS index_same;
-- the ctid stays
SELECT string_agg(ctid::text, '' ORDER BY id) AS tids FROM nb \gset
UPDATE nb SET a = 0;
SELECT string_agg(ctid::text, '' ORDER BY id) = :'tids' AS same_tids FROM nb;
BEGIN;
UPDATE nb SET a = 1;
DELETE FROM nb WHERE id < 500;
ROLLBACK;
SELECT string_agg(ctid::text, '' ORDER BY id) = :'tids' AS same_tids, sum(a) FROM nb;
-- and nothing is left to vacuum
SELECT pg_stat_force_next_flush();
CREATE FUNCTION nb_dead() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..300 LOOP
        PERFORM pg_stat_force_next_flush(), pg_stat_clear_snapshot();
        EXIT WHEN pg_stat_get_tuples_updated('nb'::regclass) >= 100000;
        PERFORM pg_sleep(0.01);
    END LOOP;
    RETURN pg_stat_get_dead_tuples('nb'::regclass);
END $$;
SELECT nb_dead() < 10000 AS few_dead;
-- a bulk load is denser than heap's
CREATE TABLE nb_heap (a int, b bigint, t text, n int) USING heap;
CREATE TABLE nb_inplace (LIKE nb_heap);
INSERT INTO nb_heap SELECT i, i, 't' || i, i FROM generate_series(1, 20000) i;
INSERT INTO nb_inplace SELECT i, i, 't' || i, i FROM generate_series(1, 20000) i;
SELECT pg_relation_size('nb_inplace') < 0.7 * pg_relation_size('nb_heap') AS denser;
-- who finds a row deleted reads nothing of what it was
CREATE TABLE nb_gone (id int PRIMARY KEY, a int, t text) WITH (autovacuum_enabled = off);
CREATE VIEW nb_accesses AS SELECT heap_blks_hit + heap_blks_read AS n FROM pg_statio_user_tables WHERE relname = 'nb_gone';
INSERT INTO nb_gone SELECT i, i, 'some text' FROM generate_series(1, 20000) i;
DELETE FROM nb_gone;
SELECT pg_stat_force_next_flush();
SELECT n AS before FROM nb_accesses \gset
SELECT count(*) FROM nb_gone;
SELECT pg_stat_force_next_flush();
SELECT n - :before < 1000 AS few_for_scan, n AS before FROM nb_accesses \gset
\echo :few_for_scan
ANALYZE nb_gone;
SELECT pg_stat_force_next_flush();
SELECT n - :before < 1000 AS few_for_analyze, n AS before FROM nb_accesses \gset
\echo :few_for_analyze
VACUUM nb_gone;
SELECT pg_stat_force_next_flush();
SELECT n - :before < 2500 AS few_for_vacuum FROM nb_accesses \gset
\echo :few_for_vacuum
DROP VIEW nb_accesses;
DROP TABLE nb_gone;
DROP TABLE nb, nb_heap, nb_inplace;
DROP FUNCTION nb_dead;
