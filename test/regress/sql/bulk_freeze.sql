-- Rows that come in bulk and are visible to all at once: COPY FREEZE, materialized views; changed afterwards.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
-- inplace_check, where there is one
CREATE FUNCTION bf_problems(t regclass) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    IF to_regproc('inplace_check') IS NOT NULL THEN
        RETURN QUERY EXECUTE 'SELECT c::text FROM inplace_check($1) c' USING t;
    END IF;
END $$;
-- by an index-only scan, and by a sequential one
CREATE FUNCTION bf_sum(t text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE s text; i text;
BEGIN
    PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_indexonlyscan', 'off', true),
        set_config('enable_indexscan', 'off', true), set_config('enable_bitmapscan', 'off', true);
    EXECUTE format('SELECT count(*) || '' '' || coalesce(sum(id), 0) FROM %s WHERE id > 0', t) INTO s;
    PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_indexonlyscan', 'on', true),
        set_config('enable_indexscan', 'on', true);
    EXECUTE format('SELECT count(*) || '' '' || coalesce(sum(id), 0) FROM %s WHERE id > 0', t) INTO i;
    PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_bitmapscan', 'on', true);
    RETURN s || CASE WHEN s = i THEN '' ELSE ' but by index ' || i END;
END $$;
-- FREEZE wants a table of this subtransaction, without snapshots that could see it
CREATE TABLE bf_old (id int);
COPY bf_old FROM stdin WITH (FREEZE);
1
\.
BEGIN;
CREATE TABLE bf (id int PRIMARY KEY, t text) WITH (autovacuum_enabled = off);
COPY bf FROM stdin WITH (FREEZE);
1	one
2	two
3	three
4	\N
\.
SELECT bf_sum('bf');
SELECT * FROM bf ORDER BY id;
UPDATE bf SET t = 'two, updated' WHERE id = 2;
DELETE FROM bf WHERE id = 3;
SAVEPOINT s;
UPDATE bf SET t = 'no';
DELETE FROM bf WHERE id = 1;
ROLLBACK TO s;
SELECT bf_sum('bf');
COMMIT;
SELECT * FROM bf_problems('bf');
SELECT bf_sum('bf');
SELECT * FROM bf ORDER BY id;
-- again, behind TRUNCATE; not in a subtransaction of it
BEGIN;
TRUNCATE bf;
SAVEPOINT s;
COPY bf FROM stdin WITH (FREEZE);
5	five
\.
ROLLBACK TO s;
COPY bf FROM stdin WITH (FREEZE);
6	six
7	seven
6	twice
\.
ROLLBACK;
SELECT bf_sum('bf');
BEGIN;
TRUNCATE bf;
COPY bf FROM stdin WITH (FREEZE);
8	eight
9	nine
\.
COMMIT;
SELECT bf_sum('bf');
UPDATE bf SET t = 'eight, updated' WHERE id = 8;
BEGIN;
UPDATE bf SET t = 'no', id = id + 100;
INSERT INTO bf VALUES (50, 'no');
ROLLBACK;
SELECT bf_sum('bf');
SELECT * FROM bf_problems('bf');
VACUUM bf;
SELECT bf_sum('bf');
SELECT * FROM bf_problems('bf');
SELECT * FROM bf ORDER BY id;
-- materialized views: filled, refreshed, refreshed in part, in a transaction that is rolled back
INSERT INTO bf SELECT i, 'row ' || i FROM generate_series(100, 3000) i;
CREATE MATERIALIZED VIEW bf_mv AS SELECT id, length(t) AS n FROM bf WHERE id % 2 = 0;
CREATE UNIQUE INDEX ON bf_mv (id);
SELECT bf_sum('bf_mv');
VACUUM bf_mv;
SELECT bf_sum('bf_mv');
DELETE FROM bf WHERE id % 10 = 0;
UPDATE bf SET t = t || t WHERE id % 6 = 0;
REFRESH MATERIALIZED VIEW CONCURRENTLY bf_mv;
SELECT bf_sum('bf_mv'), (SELECT sum(n) FROM bf_mv);
SELECT * FROM bf_problems('bf_mv');
BEGIN;
DELETE FROM bf WHERE id > 1000;
REFRESH MATERIALIZED VIEW bf_mv;
SELECT bf_sum('bf_mv'), (SELECT sum(n) FROM bf_mv);
ROLLBACK;
SELECT bf_sum('bf_mv'), (SELECT sum(n) FROM bf_mv);
BEGIN;
UPDATE bf SET t = 'no';
REFRESH MATERIALIZED VIEW CONCURRENTLY bf_mv;
SELECT bf_sum('bf_mv'), (SELECT sum(n) FROM bf_mv);
ROLLBACK;
SELECT bf_sum('bf_mv'), (SELECT sum(n) FROM bf_mv);
SELECT * FROM bf_problems('bf_mv');
REFRESH MATERIALIZED VIEW bf_mv;
SELECT bf_sum('bf_mv'), (SELECT sum(n) FROM bf_mv);
SELECT * FROM bf_problems('bf_mv');
REFRESH MATERIALIZED VIEW bf_mv WITH NO DATA;
SELECT count(*) FROM bf_mv;
SELECT * FROM bf_problems('bf_mv');
DROP TABLE bf_old, bf CASCADE;
DROP FUNCTION bf_problems, bf_sum;
