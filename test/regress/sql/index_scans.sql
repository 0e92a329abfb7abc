-- All stock index kinds: scans agree with a sequential scan after all kinds of changes.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE ix (id int PRIMARY KEY, a int, t text, arr int[], p point, r int4range, tv tsvector, ip inet, ts timestamptz, j jsonb);
CREATE FUNCTION ix_fill(low int, high int) RETURNS void LANGUAGE sql AS $$
INSERT INTO ix SELECT i, i % 50, 'text' || i % 100, ARRAY[i % 10, i % 7, i], point(i % 40, i % 30), int4range(i % 100, i % 100 + i % 9),
    to_tsvector('simple', 'w' || i % 12 || ' x' || i % 5), '10.0.0.0'::inet + i, timestamptz '2020-01-01 00:00Z' + i * interval '1 min',
    jsonb_build_object('k', i % 20) FROM generate_series(low, high) i $$;
SELECT ix_fill(1, 1000);
CREATE INDEX ix_btree ON ix (a, t);
CREATE INDEX ix_expr ON ix ((a * 2 + 1));
CREATE INDEX ix_part ON ix (t) WHERE a > 25;
CREATE INDEX ix_incl ON ix (id) INCLUDE (t);
CREATE INDEX ix_hash ON ix USING hash (t);
CREATE INDEX ix_gin ON ix USING gin (arr);
CREATE INDEX ix_gin_tv ON ix USING gin (tv) WITH (fastupdate = off);
CREATE INDEX ix_gin_j ON ix USING gin (j jsonb_path_ops);
CREATE INDEX ix_gist ON ix USING gist (p);
CREATE INDEX ix_gist_r ON ix USING gist (r);
CREATE INDEX ix_spgist ON ix USING spgist (t);
CREATE INDEX ix_spgist_p ON ix USING spgist (p);
CREATE INDEX ix_spgist_ip ON ix USING spgist (ip);
CREATE INDEX ix_brin ON ix USING brin (ts) WITH (pages_per_range = 1);
-- each query by each kind of scan: one line, the three answers must be equal
CREATE TABLE ix_query (n int, q text) USING heap;
INSERT INTO ix_query VALUES
(1, 'a = 5'), (2, 'a BETWEEN 10 AND 12'), (3, 'a IN (1, 3, 49)'), (4, 'a = 7 AND t = ''text7'''), (5, 'a * 2 + 1 = 21'), (6, 'a > 25 AND t > ''text9'''),
(7, 't = ''text33'''), (8, 'arr @> ARRAY[3]'), (9, 'arr && ARRAY[500, 501, 6]'), (10, 'tv @@ ''w3 & x2'''), (11, 'j @> ''{"k": 5}'''),
(12, 'p <@ box ''((0,0),(5,5))'''), (13, 'r && int4range(10, 12)'), (14, 'r @> 95'), (15, 't ^@ ''text4'''), (16, 'ip << ''10.0.1.0/24'''),
(17, 'ts < timestamptz ''2020-01-01 02:00Z'''), (18, 'a IS NULL'), (19, 't IS NULL OR a = 2'), (20, 'id BETWEEN 100 AND 300'),
(21, 'a = 5 AND arr @> ARRAY[5]'), (22, 'arr IS NULL'), (23, 'id > 990 OR a = 3');
CREATE FUNCTION ix_ask(q text, seq bool, ind bool, bitmap bool) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
    PERFORM set_config('enable_seqscan', seq::text, true), set_config('enable_indexscan', ind::text, true),
        set_config('enable_indexonlyscan', ind::text, true), set_config('enable_bitmapscan', bitmap::text, true);
    EXECUTE 'SELECT count(*) || '','' || coalesce(md5(string_agg(ix::text, '','' ORDER BY id)), ''-'') FROM ix WHERE ' || q INTO result;
    RETURN result;
END $$;
CREATE FUNCTION ix_all() RETURNS TABLE (n int, q text, rows text, same bool) LANGUAGE sql VOLATILE AS $$
SELECT n, q, split_part(s, ',', 1), s = i AND s = b FROM (SELECT n, q, ix_ask(q, true, false, false) AS s, ix_ask(q, false, true, false) AS i,
    ix_ask(q, false, false, true) AS b FROM ix_query) x ORDER BY n $$;
SELECT * FROM ix_all();
-- unindexed by most, then each indexed column in turn
UPDATE ix SET ip = ip + 1 WHERE id % 3 = 0;
UPDATE ix SET a = a + 1, arr = arr || 3 WHERE id % 4 = 0;
UPDATE ix SET t = 'text4' || id WHERE id % 5 = 0;
UPDATE ix SET p = point(1, 1), r = int4range(11, 12) WHERE id % 6 = 0;
UPDATE ix SET tv = 'w3 x2', j = '{"k": 5, "l": 6}' WHERE id % 7 = 0;
UPDATE ix SET ts = ts - interval '10 h' WHERE id % 8 = 0;
SELECT * FROM ix_all();
DELETE FROM ix WHERE id % 9 = 0;
UPDATE ix SET a = NULL, t = NULL, arr = NULL WHERE id % 10 = 0;
SELECT ix_fill(1001, 1300);
SELECT * FROM ix_all();
-- rolled back changes
BEGIN;
UPDATE ix SET a = 5, t = 'text33', arr = '{3}', p = point(2, 2), r = int4range(95, 96), tv = 'w3 x2', ts = timestamptz '2020-01-01 00:00Z';
SAVEPOINT s;
UPDATE ix SET a = 6, arr = '{4}';
ROLLBACK TO s;
DELETE FROM ix WHERE id % 2 = 0;
SELECT * FROM ix_all();
ROLLBACK;
SELECT * FROM ix_all();
VACUUM ix;
SELECT * FROM ix_all();
REINDEX TABLE ix;
SELECT * FROM ix_all();
UPDATE ix SET a = a - 1 WHERE a > 10;
VACUUM ix;
SELECT ix_fill(2001, 2100);
SELECT * FROM ix_all() WHERE NOT same;
-- ordered scans: forwards, backwards, nearest neighbours, index-only
SET enable_seqscan = off;
SET enable_sort = off;
SELECT a, t FROM ix WHERE a > 47 ORDER BY a, t LIMIT 5;
SELECT a, t FROM ix WHERE a < 3 ORDER BY a DESC, t DESC LIMIT 5;
SELECT id FROM ix WHERE id > 1295 ORDER BY id DESC LIMIT 3;
SELECT round((p <-> point(20, 20))::numeric, 3) AS d FROM ix ORDER BY p <-> point(20, 20) LIMIT 5;
SELECT id, t FROM ix WHERE id BETWEEN 10 AND 20 ORDER BY id;
SELECT min(id), max(id), count(*) FROM ix WHERE id > 0;
DROP TABLE ix, ix_query;
DROP FUNCTION ix_fill, ix_ask, ix_all;
