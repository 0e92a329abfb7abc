-- TIDs are used again only when all indexes have forgotten them: rows of new keys take the place of dead ones, in tables
-- with every kind of index, after VACUUM in each of its variants; an entry that stayed behind would find a foreign row.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE vi (id int, a int, words int[], place point, label text, day int) WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX vi_btree ON vi (id);
CREATE INDEX vi_hash ON vi USING hash (a);
CREATE INDEX vi_gin ON vi USING gin (words) WITH (fastupdate = on);
CREATE INDEX vi_gist ON vi USING gist (place);
CREATE INDEX vi_spgist ON vi USING spgist (label);
CREATE INDEX vi_brin ON vi USING brin (day) WITH (pages_per_range = 4);
CREATE FUNCTION vi_fill(lo int, hi int, step int) RETURNS void LANGUAGE sql AS $$
    INSERT INTO vi SELECT i, i % 500, ARRAY[i % 300, 1000 + i % 70], point(i % 100, i / 100), 'label ' || i % 1000, i / 50
    FROM generate_series(lo, hi, step) i
$$;
-- Each index against a sequential scan: rows of a sum over all keys, looked up one by one where the index can do no more.
CREATE FUNCTION vi_check() RETURNS TABLE (what text, same bool, n bigint) LANGUAGE plpgsql AS $$
DECLARE
    q text[] := ARRAY[
        'btree', 'id BETWEEN -100000 AND 1000000',
        'hash', 'a = 77',
        'gin', 'words @> ARRAY[77]',
        'gist', 'place <@ box ''((10,0),(40,100000))''',
        'spgist', 'label >= ''label 2'' AND label < ''label 7''',
        'brin', 'day BETWEEN 30 AND 90'];
    s record;
    x record;
    line text;
    plan text;
BEGIN
    FOR i IN 1..array_length(q, 1) BY 2 LOOP
        PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_indexscan', 'off', true), set_config('enable_bitmapscan', 'off', true);
        EXECUTE 'SELECT count(*) AS n, sum(hashtextextended(vi::text, 0)::numeric) AS h FROM vi WHERE ' || q[i + 1] INTO s;
        PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'on', true);
        plan := '';
        FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) SELECT FROM vi WHERE ' || q[i + 1] LOOP plan := plan || line; END LOOP;
        IF position('vi_' || q[i] IN plan) = 0 THEN RAISE EXCEPTION 'not by %: %', q[i], plan; END IF;
        EXECUTE 'SELECT count(*) AS n, sum(hashtextextended(vi::text, 0)::numeric) AS h FROM vi WHERE ' || q[i + 1] INTO x;
        what := q[i]; same := s IS NOT DISTINCT FROM x; n := s.n;
        RETURN NEXT;
    END LOOP;
END $$;
SELECT vi_fill(1, 6000, 1);
VACUUM ANALYZE vi;
SELECT * FROM vi_check();
-- all in three
DELETE FROM vi WHERE id % 3 = 0;
VACUUM vi;
SELECT vi_fill(100003, 106000, 3);
SELECT * FROM vi_check();
-- indexes are left alone: dead TIDs must not be used
DELETE FROM vi WHERE id % 3 = 1 AND id < 50000;
VACUUM (INDEX_CLEANUP OFF) vi;
SELECT vi_fill(200001, 202000, 1);
SELECT * FROM vi_check();
VACUUM (INDEX_CLEANUP OFF) vi;
SELECT vi_fill(210001, 212000, 1);
SELECT * FROM vi_check();
-- now they may
VACUUM (INDEX_CLEANUP ON) vi;
SELECT vi_fill(220001, 222000, 1);
SELECT * FROM vi_check();
-- a few dead rows: AUTO passes over the indexes, ON does not
DELETE FROM vi WHERE id = 220100;
VACUUM (INDEX_CLEANUP AUTO) vi;
SELECT vi_fill(230001, 230400, 1);
SELECT * FROM vi_check();
VACUUM (INDEX_CLEANUP ON) vi;
SELECT vi_fill(230401, 230800, 1);
SELECT * FROM vi_check();
-- rows of a transaction that was rolled back are dead too
BEGIN;
SELECT vi_fill(300001, 303000, 1);
UPDATE vi SET id = id + 1000000 WHERE id < 500;
ROLLBACK;
VACUUM (INDEX_CLEANUP OFF) vi;
SELECT vi_fill(310001, 313000, 1);
SELECT * FROM vi_check();
VACUUM vi;
SELECT vi_fill(320001, 323000, 1);
SELECT * FROM vi_check();
-- old TIDs of rows that moved because an indexed column changed
UPDATE vi SET a = a + 1, label = 'label ' || a WHERE id % 5 = 0;
VACUUM vi;
SELECT vi_fill(330001, 332000, 1);
SELECT * FROM vi_check();
-- in parallel
SET min_parallel_index_scan_size = 0;
SET max_parallel_maintenance_workers = 4;
DELETE FROM vi WHERE id % 2 = 0;
VACUUM (PARALLEL 4) vi;
SELECT vi_fill(400002, 406000, 2);
SELECT * FROM vi_check();
-- and no worker at all
DELETE FROM vi WHERE id % 2 = 1;
VACUUM (PARALLEL 0) vi;
SELECT vi_fill(500001, 503000, 1);
SELECT * FROM vi_check();
RESET min_parallel_index_scan_size;
RESET max_parallel_maintenance_workers;
-- everything goes, and comes again
DELETE FROM vi;
VACUUM (TRUNCATE OFF) vi;
SELECT * FROM vi_check();
SELECT vi_fill(1, 4000, 1);
SELECT * FROM vi_check();
DELETE FROM vi;
VACUUM vi;
SELECT vi_fill(1, 4000, 1);
SELECT * FROM vi_check();
DROP TABLE vi;
DROP FUNCTION vi_fill, vi_check;
