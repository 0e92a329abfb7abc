-- Cumulative statistics, and that updates in place leave no dead rows.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE st (id int PRIMARY KEY, a int, t text) WITH (autovacuum_enabled = off);
INSERT INTO st SELECT i, i, 't' FROM generate_series(1, 1000) i;
-- reports what this session did; waits until it arrived
CREATE FUNCTION st_wait(wanted bigint) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..300 LOOP
        PERFORM pg_stat_force_next_flush(), pg_stat_clear_snapshot();
        EXIT WHEN pg_stat_get_tuples_updated('st'::regclass) >= wanted;
        PERFORM pg_sleep(0.01);
    END LOOP;
    RETURN CASE WHEN pg_stat_get_tuples_updated('st'::regclass) >= wanted THEN 'there' ELSE 'missing' END;
END $$;
UPDATE st SET a = a + 1;
UPDATE st SET t = 'u' WHERE id <= 500;
DELETE FROM st WHERE id > 900;
SELECT pg_stat_force_next_flush();
SELECT st_wait(1500);
SELECT n_tup_ins, n_tup_upd, n_tup_del, n_live_tup FROM pg_stat_user_tables WHERE relname = 'st';
BEGIN;
INSERT INTO st SELECT i, i, 't' FROM generate_series(2000, 2099) i;
UPDATE st SET a = 0 WHERE id <= 10;
ROLLBACK;
SELECT pg_stat_force_next_flush();
SELECT st_wait(1510);
SELECT n_tup_ins, n_tup_upd, n_tup_del, n_live_tup FROM pg_stat_user_tables WHERE relname = 'st';
SELECT seq_scan > 0 AS seq, seq_tup_read > 0 AS seq_read FROM pg_stat_user_tables WHERE relname = 'st';
-- the planner's figures after ANALYZE and VACUUM
ANALYZE st;
SELECT reltuples, relpages > 0 AS pages FROM pg_class WHERE relname = 'st';
SELECT attname, n_distinct, null_frac FROM pg_stats WHERE tablename = 'st' ORDER BY attname;
DELETE FROM st WHERE id <= 100;
SELECT pg_stat_force_next_flush();
VACUUM st;
SELECT reltuples FROM pg_class WHERE relname = 'st';
SELECT pg_stat_force_next_flush();
SELECT st_wait(0);
SELECT n_live_tup, vacuum_count, analyze_count FROM pg_stat_user_tables WHERE relname = 'st';
VACUUM ANALYZE st;
SELECT reltuples FROM pg_class WHERE relname = 'st';
DROP TABLE st;
DROP FUNCTION st_wait;
-- before VACUUM and ANALYZE, rows are estimated from the types' widths: not more than pages can hold
CREATE TABLE narrow_int (a int) WITH (autovacuum_enabled = off);
INSERT INTO narrow_int SELECT i FROM generate_series(1, 20000) i;
CREATE TABLE narrow_bool (a bool) WITH (autovacuum_enabled = off);
INSERT INTO narrow_bool SELECT true FROM generate_series(1, 20000) i;
CREATE FUNCTION st_estimate(t regclass) RETURNS float LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) SELECT * FROM ' || t INTO plan;
    RETURN plan->0->'Plan'->>'Plan Rows';
END $$;
SELECT st_estimate(t) BETWEEN 20000 AND 25000 AS good FROM unnest('{narrow_int, narrow_bool}'::regclass[]) t;
DROP TABLE narrow_int, narrow_bool;
DROP FUNCTION st_estimate;
