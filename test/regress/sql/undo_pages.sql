-- Scans leave out what the metapage says is undo.
CREATE FUNCTION pages_of(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || query INTO plan;
	RETURN (plan->0->'Plan'->>'Shared Hit Blocks')::int + (plan->0->'Plan'->>'Shared Read Blocks')::int;
END $$;
CREATE FUNCTION estimated_rows(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN (plan->0->'Plan'->>'Plan Rows')::int;
END $$;
CREATE FUNCTION blocks(name regclass) RETURNS bigint LANGUAGE sql AS $$
	SELECT pg_relation_size(name) / current_setting('block_size')::int
$$;

CREATE TABLE upg (id int PRIMARY KEY, n int, note text) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO upg SELECT i, 0, 'note ' || i FROM generate_series(1, 50) i;
VACUUM ANALYZE upg;
-- one transaction's changes need all of their undo
DO $$ BEGIN FOR i IN 1..400 LOOP UPDATE upg SET n = n + 1; END LOOP; END $$;
SELECT blocks('upg') > 40 AS is_long, sum(n) FROM upg;
SELECT pages_of('SELECT sum(n) FROM upg') <= 4 AS few;
SELECT pages_of('SELECT count(*) FROM upg TABLESAMPLE bernoulli (100)') <= 4 AS few;
SELECT pages_of('SELECT count(*) FROM upg TABLESAMPLE system (100)') <= 4 AS few;
SELECT pages_of('SELECT count(*) FROM upg WHERE ctid >= ''(0,1)''') <= 4 AS few;
SELECT estimated_rows('SELECT * FROM upg');
-- backwards
BEGIN;
DECLARE back SCROLL CURSOR FOR SELECT id, n FROM upg;
MOVE FORWARD ALL IN back;
FETCH BACKWARD 2 IN back;
COMMIT;
ANALYZE upg;
SELECT estimated_rows('SELECT * FROM upg');
SELECT * FROM inplace_check('upg');

-- rows behind the undo; then it is freed, and its blocks get rows
INSERT INTO upg SELECT i, 0, repeat('x', 100) FROM generate_series(101, 1100) i;
SELECT blocks('upg') AS before \gset
SELECT pages_of('SELECT sum(n) FROM upg') < :before / 2 AS few, count(*) FROM upg;
VACUUM upg;
SELECT * FROM inplace_check('upg');
INSERT INTO upg SELECT i, 0, repeat('y', 100) FROM generate_series(2001, 3000) i;
SELECT blocks('upg') <= :before AS is_refilled;
SELECT count(*), sum(id), sum(n) FROM upg;
SELECT count(*) FROM upg TABLESAMPLE system (100);
SELECT * FROM inplace_check('upg');

-- what scans leave out comes and goes between the rows
DO $$ BEGIN
	FOR i IN 1..20 LOOP
		UPDATE upg SET n = n + 1 WHERE id <= 50 OR id % 7 = 0;
		INSERT INTO upg SELECT 10000 + 100 * i + k, 0, repeat('z', 200) FROM generate_series(1, 50) k;
	END LOOP;
END $$;
SELECT count(*), sum(n) FROM upg;
SELECT * FROM inplace_check('upg');
VACUUM upg;
SELECT count(*), sum(n) FROM upg;
SELECT * FROM inplace_check('upg');
VACUUM (DISABLE_PAGE_SKIPPING) upg;
SELECT count(*), sum(n) FROM upg;
DROP TABLE upg;
DROP FUNCTION pages_of, estimated_rows, blocks;
