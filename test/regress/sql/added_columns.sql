-- Rows that were stored before a column was added have its value, whatever reads them: as on heap.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
-- the same table twice, of each kind of row: old, updated and moved since, new; columns without default, with one of each kind
-- of storage, and dropped ones between
CREATE FUNCTION ac_fill(am text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE ac_%1$s (id int PRIMARY KEY, gone text, a int, t text) USING %1$s', am);
    EXECUTE format('INSERT INTO ac_%s SELECT i, ''gone'' || i, i %% 50, CASE WHEN i %% 3 > 0 THEN repeat(''t'', i %% 40) END FROM generate_series(1, 2000) i', am);
    EXECUTE format('ALTER TABLE ac_%s DROP gone, ADD none int, ADD n int DEFAULT 7, ADD s text DEFAULT ''a text'' NOT NULL, ADD p point DEFAULT ''(1,2)'', ADD g "char" DEFAULT ''g''', am);
    EXECUTE format('UPDATE ac_%s SET a = a + 1 WHERE id %% 7 = 0', am);
    EXECUTE format('UPDATE ac_%s SET n = NULL WHERE id %% 11 = 0', am);
    EXECUTE format('INSERT INTO ac_%s (id, a) SELECT i, i %% 50 FROM generate_series(2001, 2100) i', am);
    EXECUTE format('ALTER TABLE ac_%s ADD last numeric DEFAULT 1.5, ADD big text DEFAULT repeat(''b'', 500), ADD e int', am);
    EXECUTE format('UPDATE ac_%s SET t = repeat(''u'', 60) WHERE id %% 13 = 0', am);
    EXECUTE format('CREATE INDEX ac_%1$s_a ON ac_%1$s (a)', am);
    EXECUTE format('CREATE INDEX ac_%1$s_n ON ac_%1$s (n, last)', am);
    EXECUTE format('CREATE INDEX ac_%1$s_s ON ac_%1$s (left(s, 1), big) WHERE e IS NULL', am);
    EXECUTE format('ANALYZE ac_%s', am);
END $$;
SELECT ac_fill('heap');
SELECT ac_fill('inplace');
-- rows of both are the same, and so many; @ is the table
CREATE FUNCTION ac_same(name text, query text, wanted_node text DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan text := '';
    line text;
    am text;
    n int[];
    hash text[];
    one int;
    sum text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || replace(query, '@', 'ac_inplace') LOOP
        plan := plan || line || E'\n';
    END LOOP;
    IF position(wanted_node IN plan) = 0 THEN
        RETURN format('%s: no "%s" in %s', name, wanted_node, plan);
    END IF;
    FOREACH am IN ARRAY '{heap,inplace}'::text[] LOOP
        EXECUTE format('WITH q AS (%s) SELECT count(*), sum(hashtextextended(q::text, 0)::numeric) FROM q', replace(query, '@', 'ac_' || am)) INTO one, sum;
        n := n || one;
        hash := hash || sum;
    END LOOP;
    RETURN format('%s: %s rows, %s', name, n[2], CASE WHEN n[1] = n[2] AND hash[1] IS NOT DISTINCT FROM hash[2] THEN 'same' ELSE 'other than heap' END);
END $$;
SELECT ac_same('sequential scan', 'SELECT * FROM @', 'Seq Scan');
SELECT ac_same('one added column', 'SELECT last FROM @', 'Seq Scan');
SELECT ac_same('columns in turns', 'SELECT a, n, id, e, last, none, s, big, t FROM @ WHERE n = 7 AND s > ''a'' AND big IS NOT NULL', 'Seq Scan');
SELECT ac_same('whole rows', 'SELECT x, to_jsonb(x) FROM @ x');
SELECT ac_same('filter on the last', 'SELECT id FROM @ WHERE e IS NULL AND last = 1.5');
VACUUM ac_heap, ac_inplace;
SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT ac_same('index scan', 'SELECT * FROM @ WHERE a BETWEEN 3 AND 20', 'Index Scan');
SELECT ac_same('index scan by an added column', 'SELECT * FROM @ WHERE n = 7 AND last = 1.5', 'Index Scan');
SELECT ac_same('index only scan', 'SELECT n, last FROM @ WHERE n = 7', 'Index Only Scan');
SELECT ac_same('partial index', 'SELECT * FROM @ WHERE left(s, 1) = ''a'' AND e IS NULL', 'Index Scan');
SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = on;
SELECT ac_same('bitmap scan', 'SELECT * FROM @ WHERE a BETWEEN 3 AND 20 OR n IS NULL', 'Bitmap Heap Scan');
RESET enable_seqscan; RESET enable_indexscan; RESET enable_indexonlyscan;
SELECT ac_same('TID scan', 'SELECT s, last, e FROM @ WHERE ctid = ANY (ARRAY(SELECT ctid FROM @ WHERE id < 100))', 'Tid Scan');
SELECT ac_same('TID range scan', 'SELECT n, s, last, e FROM @ WHERE ctid >= ''(0,0)'' AND ctid < ''(100000,0)''', 'Tid Range Scan');
SELECT ac_same('sample', 'SELECT * FROM @ TABLESAMPLE BERNOULLI (100)', 'Sample Scan');
SELECT ac_same('sort', 'SELECT * FROM @ ORDER BY last, s, n, id LIMIT 500', 'Sort');
SET enable_sort = off;
SELECT ac_same('hash aggregate', 'SELECT s, n, last, e, g, count(*) FROM @ GROUP BY s, n, last, e, g', 'HashAggregate');
SET enable_hashagg = off; RESET enable_sort;
SELECT ac_same('group', 'SELECT s, n, last, e FROM @ GROUP BY s, n, last, e', 'Group');
SET enable_sort = off;
SELECT ac_same('incremental sort', 'SELECT n, last, s, id FROM (SELECT * FROM @ ORDER BY n, last OFFSET 0) q ORDER BY n, last, s, id', 'Incremental Sort');
RESET enable_hashagg; RESET enable_sort;
SELECT ac_same('ordered and filtered aggregates', 'SELECT string_agg(s || g::text, last::text ORDER BY last, id) FILTER (WHERE e IS NULL), mode() WITHIN GROUP (ORDER BY n), array_agg(p::text ORDER BY id) FROM @');
SELECT ac_same('grouping sets', 'SELECT n, last, s, count(*) FROM @ GROUP BY CUBE (n, last, s)');
SELECT ac_same('aggregates', 'SELECT n, count(*), max(big), min(last), sum(n), count(none) FROM @ GROUP BY n');
SELECT ac_same('distinct', 'SELECT DISTINCT s, n, last, e FROM @');
SELECT ac_same('window', 'SELECT id, lag(n) OVER w, sum(last) OVER w FROM @ WINDOW w AS (ORDER BY id)', 'WindowAgg');
SELECT ac_same('CTE', 'WITH c AS MATERIALIZED (SELECT * FROM @) SELECT x.*, y.last AS other FROM c x JOIN c y ON x.id = y.id + 1', 'CTE Scan');
SET enable_mergejoin = off; SET enable_nestloop = off;
SELECT ac_same('hash join', 'SELECT x.*, y.s AS ys, y.last AS yl FROM @ x JOIN @ y ON x.n = y.id', 'Hash Join');
SET enable_hashjoin = off; RESET enable_mergejoin;
SELECT ac_same('merge join', 'SELECT x.*, y.s AS ys, y.last AS yl FROM @ x JOIN @ y ON x.n = y.id', 'Merge Join');
SET enable_mergejoin = off; RESET enable_nestloop; SET enable_memoize = off;
SELECT ac_same('nested loop', 'SELECT x.*, y.s AS ys, y.last AS yl FROM @ x JOIN @ y ON x.n = y.id WHERE x.a < 5', 'Nested Loop');
RESET enable_mergejoin; RESET enable_hashjoin; RESET enable_memoize;
SELECT ac_same('semi and anti joins', 'SELECT id FROM @ x WHERE EXISTS (SELECT FROM @ y WHERE y.id = x.n AND y.last = x.last) UNION ALL SELECT -id FROM @ x WHERE NOT EXISTS (SELECT FROM @ y WHERE y.id = x.n AND y.s = x.s)');
SELECT ac_same('outer joins', 'SELECT x.last, y.s, y.e, y.big FROM @ x FULL JOIN @ y ON x.n = y.id');
SELECT ac_same('memoize', 'SELECT x.id, y.* FROM @ x, LATERAL (SELECT s, last, e FROM @ z WHERE z.id = x.n OFFSET 0) y');
SELECT ac_same('subqueries', 'SELECT id, (SELECT y.last FROM @ y WHERE y.id = x.n), ARRAY(SELECT z.s FROM @ z WHERE z.id <= x.n ORDER BY id) FROM @ x WHERE id < 300');
SELECT ac_same('recursion', 'WITH RECURSIVE r AS (SELECT id, n, last, s FROM @ WHERE id = 1 UNION SELECT x.id, x.n, x.last, x.s FROM r JOIN @ x ON x.id = r.id + r.n) SELECT * FROM r', 'Recursive Union');
SELECT ac_same('append', 'SELECT s, last, e, n FROM @ WHERE id < 500 UNION ALL SELECT t, last, a, n FROM @', 'Append');
SELECT ac_same('limit', 'SELECT id, s, last FROM @ ORDER BY id LIMIT 10 OFFSET 100', 'Limit');
SELECT ac_same('row locks', 'SELECT * FROM (SELECT * FROM @ WHERE last = 1.5 FOR UPDATE) l', 'LockRows');
SELECT ac_same('set operations', 'SELECT n, last, s FROM @ EXCEPT SELECT n, last, s FROM @ WHERE n IS NULL');
SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SELECT ac_same('parallel', 'SELECT count(*), sum(n), sum(last), max(big), count(e) FROM @', 'Parallel Seq Scan');
SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off; SET min_parallel_index_scan_size = 0;
SELECT ac_same('parallel bitmap scan', 'SELECT count(*), sum(n), sum(last), max(s) FROM @ WHERE a BETWEEN 3 AND 45', 'Parallel Bitmap Heap Scan');
SET enable_bitmapscan = off; RESET enable_indexscan; RESET enable_indexonlyscan;
SELECT ac_same('parallel index scan', 'SELECT count(*), sum(n), sum(last), max(s) FROM @ WHERE a BETWEEN 3 AND 45', 'Parallel Index Scan');
RESET enable_seqscan; RESET enable_bitmapscan; RESET min_parallel_index_scan_size; SET enable_nestloop = off; SET enable_mergejoin = off;
SELECT ac_same('parallel hash join', 'SELECT count(*), sum(y.last), max(y.s), count(x.e) FROM @ x JOIN @ y ON x.id = y.id + 1', 'Parallel Hash');
RESET enable_nestloop; RESET enable_mergejoin;
RESET max_parallel_workers_per_gather; RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET min_parallel_table_scan_size;
-- cursors, both ways
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, n, s, last, e FROM ac_inplace WHERE id < 20;
FETCH 3 FROM c;
MOVE ALL FROM c;
FETCH BACKWARD 2 FROM c;
COMMIT;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM ac_inplace WHERE last = 1.5 FOR UPDATE;
FETCH 1 FROM c \gset
UPDATE ac_inplace SET n = n + 1 WHERE CURRENT OF c RETURNING id, n, s, last, e;
DELETE FROM ac_inplace WHERE CURRENT OF c RETURNING id, n, s, last, e;
ROLLBACK;
COPY (SELECT id, n, none, s, p, g, last, e FROM ac_inplace WHERE id < 5) TO stdout;
-- what changes rows gets them, too
CREATE FUNCTION ac_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ac_log VALUES (left(TG_TABLE_NAME, 4), TG_OP, OLD.id, OLD.last, NEW.last, OLD.s, NEW.big, OLD.e);
    RETURN NEW;
END $$;
CREATE TABLE ac_log (am text, op text, id int, last numeric, new_last numeric, s text, big text, e int) USING heap;
CREATE FUNCTION ac_both(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    am text;
    n int[];
    result int;
BEGIN
    FOREACH am IN ARRAY '{heap,inplace}'::text[] LOOP
        EXECUTE replace(query, '@', 'ac_' || am);
        GET DIAGNOSTICS result = ROW_COUNT;
        n := n || result;
    END LOOP;
    RETURN NEXT format('%s rows, %s', n[2], CASE WHEN n[1] = n[2] THEN 'as many' ELSE 'heap has others' END);
    RETURN NEXT ac_same('table', 'SELECT * FROM @');
END $$;
SELECT ac_both('CREATE TRIGGER fired AFTER UPDATE OR DELETE ON @ FOR EACH ROW EXECUTE FUNCTION ac_trigger()');
SELECT ac_both('UPDATE @ SET a = a + 100 WHERE last = 1.5 AND id % 17 = 0');
SELECT ac_both('UPDATE @ SET last = last + 1 WHERE s = ''a text'' AND id % 19 = 0');
SELECT ac_both('UPDATE @ x SET t = y.s, e = y.n FROM @ y WHERE x.n = y.id');
SELECT ac_both('DELETE FROM @ WHERE big = repeat(''b'', 500) AND id % 23 = 0');
SELECT ac_both('INSERT INTO @ (id, a) SELECT id, 0 FROM @ WHERE id < 50 ON CONFLICT (id) DO UPDATE SET a = @.n, last = @.last + excluded.last');
SELECT ac_both('MERGE INTO @ x USING (SELECT id, last AS l, s AS text FROM @ WHERE id % 5 = 0) y ON x.id = y.id + 1 WHEN MATCHED AND x.last = y.l THEN UPDATE SET s = y.text || x.g::text WHEN NOT MATCHED THEN INSERT (id) VALUES (-y.id)');
CREATE TABLE ac_out (am text, r text) USING heap;
SELECT ac_both('WITH r AS (UPDATE @ SET t = ''returned'' WHERE id % 29 = 0 RETURNING *) INSERT INTO ac_out SELECT ''@'', r::text FROM r');
SELECT ac_both('WITH r AS (DELETE FROM @ WHERE id % 31 = 0 RETURNING *) INSERT INTO ac_out SELECT ''@'', r::text FROM r');
SELECT ac_both('WITH r AS (INSERT INTO @ (id, a) SELECT id, 1 FROM @ WHERE id < 20 ON CONFLICT (id) DO UPDATE SET a = 5 RETURNING @.*) INSERT INTO ac_out SELECT ''@'', r::text FROM r');
CREATE FUNCTION ac_before() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ac_out VALUES (TG_TABLE_NAME, concat('before ', OLD, NEW));
    NEW.t := NEW.s || NEW.last;
    RETURN NEW;
END $$;
CREATE FUNCTION ac_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ac_out SELECT TG_TABLE_NAME, concat(x, y) FROM old_rows x JOIN new_rows y USING (id);
    RETURN NULL;
END $$;
SELECT ac_both('CREATE TRIGGER before BEFORE UPDATE ON @ FOR EACH ROW EXECUTE FUNCTION ac_before()');
SELECT ac_both('CREATE TRIGGER transition AFTER UPDATE ON @ REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION ac_transition()');
SELECT ac_both('UPDATE @ SET a = a + 1 WHERE id % 37 = 0');
SELECT ac_both('UPDATE @ SET n = n + 1 WHERE id % 41 = 0');
SELECT count(*), (SELECT count(*) FROM (SELECT r FROM ac_out WHERE am = 'ac_heap' EXCEPT ALL SELECT r FROM ac_out WHERE am = 'ac_inplace') d) AS others FROM ac_out WHERE am = 'ac_inplace';
-- partitions whose columns lie otherwise, some of which were there before the columns were added
CREATE FUNCTION ac_parts(am text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE ac_%1$s_p1 (gone int, t text, id int NOT NULL) USING %1$s', am);
    EXECUTE format('INSERT INTO ac_%s_p1 SELECT 1, ''early'', i FROM generate_series(1, 300) i', am);
    EXECUTE format('ALTER TABLE ac_%s_p1 ADD last numeric DEFAULT 2.5, DROP gone, ADD n int', am);
    EXECUTE format('CREATE TABLE ac_%s_p (id int NOT NULL, n int, last numeric, t text) PARTITION BY RANGE (id)', am);
    EXECUTE format('ALTER TABLE ac_%1$s_p ATTACH PARTITION ac_%1$s_p1 FOR VALUES FROM (0) TO (1000)', am);
    EXECUTE format('CREATE TABLE ac_%1$s_p2 PARTITION OF ac_%1$s_p FOR VALUES FROM (1000) TO (10000) USING %1$s', am);
    EXECUTE format('INSERT INTO ac_%1$s_p SELECT id + 900, n, last, s FROM ac_%1$s WHERE id BETWEEN 1 AND 500', am);
    EXECUTE format('ALTER TABLE ac_%s_p ADD later text DEFAULT ''later''', am);
    EXECUTE format('CREATE INDEX ON ac_%s_p (last)', am);
END $$;
SELECT ac_parts('heap');
SELECT ac_parts('inplace');
SELECT ac_same('partitions', 'SELECT * FROM @_p', 'Append');
SELECT ac_same('ordered partitions', 'SELECT last, later, id FROM @_p ORDER BY last, id');
SELECT ac_both('UPDATE @_p SET id = id + 1000, n = 5 WHERE id % 10 = 0');
SELECT ac_same('rows that change the partition', 'SELECT tableoid::regclass::text LIKE ''%2'', x FROM @_p x');
SELECT ac_both('INSERT INTO @_p (id, n) SELECT id + 2000, n FROM @_p WHERE last = 2.5');
SELECT ac_both('MERGE INTO @_p x USING @ y ON x.id = y.id WHEN MATCHED THEN UPDATE SET t = x.later || y.s, last = y.last');
SELECT ac_same('partitions, merged', 'SELECT * FROM @_p');
SELECT count(*), (SELECT count(*) FROM (SELECT op, id, last, new_last, s, big, e FROM ac_log WHERE am = 'ac_h' EXCEPT ALL
    SELECT op, id, last, new_last, s, big, e FROM ac_log WHERE am = 'ac_i') d) AS others FROM ac_log WHERE am = 'ac_i';
-- and so do those who copy them
CREATE TABLE ac_heap2 USING heap AS TABLE ac_heap;
CREATE TABLE ac_inplace2 USING inplace AS TABLE ac_inplace;
CREATE TABLE ac_heap3 USING heap AS TABLE ac_inplace;
SELECT ac_same('copies', 'SELECT * FROM @2');
SELECT count(*) FROM (SELECT h::text FROM ac_heap3 h EXCEPT ALL SELECT h::text FROM ac_heap2 h) d;
ALTER TABLE ac_heap ADD CHECK (last > 1), ADD f int GENERATED ALWAYS AS (n + 1) STORED;
ALTER TABLE ac_inplace ADD CHECK (last > 1), ADD f int GENERATED ALWAYS AS (n + 1) STORED;
SELECT ac_same('rewritten', 'SELECT * FROM @');
SELECT ac_both('ALTER TABLE @ ADD z int DEFAULT 5');
CLUSTER ac_heap USING ac_heap_a;
CLUSTER ac_inplace USING ac_inplace_a;
SELECT ac_same('clustered', 'SELECT * FROM @');
DROP TABLE ac_heap_p, ac_inplace_p, ac_out;
DROP TABLE ac_heap, ac_inplace, ac_heap2, ac_inplace2, ac_heap3, ac_log;
DROP FUNCTION ac_fill, ac_same, ac_both, ac_trigger, ac_before, ac_transition, ac_parts;
