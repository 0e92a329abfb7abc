-- what a user sees
CREATE EXTENSION pbtree;
-- operator classes: as many as btree has, and all of them valid
SELECT count(*) FILTER (WHERE amname = 'pbtree') = count(*) FILTER (WHERE amname = 'btree') AS all_there,
	bool_and(amvalidate(o.oid)) AS valid
FROM pg_opclass o JOIN pg_am a ON a.oid = opcmethod WHERE amname IN ('btree', 'pbtree');
SELECT amname, pg_indexam_has_property(oid, 'can_order') AS ordered, pg_indexam_has_property(oid, 'can_multi_col') AS multi,
	pg_indexam_has_property(oid, 'can_include') AS include
FROM pg_am WHERE amname = 'pbtree';
CREATE TABLE t (id int, a int, b text, c numeric);
INSERT INTO t SELECT g, g % 100, 'word ' || g % 37, CASE WHEN g % 10 > 0 THEN g % 7 END FROM generate_series(1, 10000) g;
CREATE INDEX t_id ON t USING pbtree (id);
CREATE INDEX t_abc ON t USING pbtree (a DESC, b NULLS FIRST) INCLUDE (c);
CREATE INDEX t_c ON t USING pbtree (c) WHERE id % 2 = 0;
CREATE INDEX t_e ON t USING pbtree (lower(b), (a + 1));
CREATE INDEX CONCURRENTLY t_b ON t USING pbtree (b text_pattern_ops);
SELECT relname, pbtree_check(c.oid, true) FROM pg_class c JOIN pg_am m ON m.oid = relam WHERE amname = 'pbtree' ORDER BY 1;
SELECT index_entry.* FROM pg_class c, pg_index_column_has_property(c.oid, 1, 'returnable') AS index_entry(returnable) WHERE relname = 't_abc';
ANALYZE t;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE id = 5;
SELECT * FROM t WHERE id = 5;
SELECT * FROM t WHERE id = ANY ('{9999,3,3,NULL,12345,7}') ORDER BY id DESC;
EXPLAIN (COSTS OFF) SELECT a, b FROM t ORDER BY a DESC, b NULLS FIRST LIMIT 3;
SELECT a, b FROM t ORDER BY a DESC, b NULLS FIRST LIMIT 3;
SELECT a, b FROM t ORDER BY a, b DESC NULLS LAST LIMIT 3;
SELECT count(*), min(a), max(a) FROM t WHERE a BETWEEN 10 AND 19 AND b = 'word 5';
SELECT count(*) FROM t WHERE c IS NULL AND id % 2 = 0;
SELECT count(*) FROM t WHERE c IS NOT NULL AND id % 2 = 0;
SELECT count(*) FROM t WHERE c > 3 AND c <= 5.0 AND id % 2 = 0;
SELECT count(*) FROM t WHERE b LIKE 'word 3%';
SELECT min(id), max(id) FROM t;
-- contradictions
SELECT count(*) FROM t WHERE id > 5 AND id < 3;
SELECT count(*) FROM t WHERE id = 5 AND id = 6;
SELECT count(*) FROM t WHERE id = NULL;
SELECT count(*) FROM t WHERE id = ANY ('{}');
SELECT count(*) FROM t WHERE id < ANY ('{10,20}') AND id >= ANY ('{15,18}');
-- other types on the other side
SELECT count(*) FROM t WHERE id < 100::int8 AND id > 50::int2;
SELECT count(*) FROM t WHERE id = ANY ('{1,2,30000000000}'::int8[]);
SET enable_bitmapscan = on;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SELECT count(*), sum(id) FROM t WHERE a = ANY ('{1,5,7}') AND b > 'word 2';
RESET enable_indexscan;
RESET enable_indexonlyscan;
-- marks: a merge join with duplicates on both sides
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_sort = off;
SELECT count(*) FROM (SELECT a FROM t WHERE a > 90) x JOIN (SELECT a FROM t WHERE a > 95) y USING (a);
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_sort;
-- a cursor, both ways
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM t WHERE id > 9990 ORDER BY id;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH LAST FROM c;
FETCH BACKWARD 2 FROM c;
FETCH FIRST FROM c;
COMMIT;
-- changes
DELETE FROM t WHERE id > 2000;
VACUUM t;
SELECT deleted_pages > 5 AS pages_are_deleted, rows FROM pbtree_stats('t_id');
INSERT INTO t SELECT g, g % 100, 'word ' || g % 37 FROM generate_series(2001, 6000) g;
UPDATE t SET a = a + 1000 WHERE id % 3 = 0;
SELECT relname, pbtree_check(c.oid, true) >= 3000 AS right FROM pg_class c JOIN pg_am m ON m.oid = relam WHERE amname = 'pbtree' ORDER BY 1;
SELECT count(*) FROM t WHERE a >= 1000;
REINDEX INDEX CONCURRENTLY t_id;
CLUSTER t USING t_abc;
SELECT count(*) FROM t WHERE id > 0;
-- inspection
CREATE TABLE s (a int);
CREATE INDEX s_a ON s USING pbtree (a);
INSERT INTO s VALUES (1), (1), (2), (NULL);
SELECT level, prev, next, flags, items FROM pbtree_page('s_a', 1);
SELECT "offset", dead, key, tids FROM pbtree_items('s_a', 1);
SELECT height, leaf_pages, items, rows FROM pbtree_stats('s_a');
SELECT pbtree_page('s_a', 2);
SELECT pbtree_page('s', 0);
SELECT pbtree_check('pg_class_oid_index');
-- a search's comparisons are counted
SELECT 1 FROM pbtree_counters(true);
SELECT count(*) FROM t WHERE id = 100;
SELECT descents, keys + heads BETWEEN 1 AND 20 AS few FROM pbtree_counters();
-- what there is not
-- unique indexes: races.py
CREATE INDEX ON s USING pbtree (a) WITH (fillfactor = 5);
CREATE INDEX ON s USING pbtree (a) WITH (buffering = on);
CREATE TABLE p (x point);
CREATE INDEX ON p USING pbtree (x);
-- long keys
CREATE TABLE l (b text);
CREATE INDEX l_b ON l USING pbtree (b);
INSERT INTO l SELECT repeat('x', 100000);
INSERT INTO l SELECT string_agg(md5(g::text), '') FROM generate_series(1, 80) g;
\set VERBOSITY terse
INSERT INTO l SELECT string_agg(md5(g::text), '') FROM generate_series(1, 100) g;
\set VERBOSITY default
SELECT length(b) FROM l WHERE b > '' ORDER BY b;
-- operator classes of one's own
CREATE TYPE complex AS (re float8, im float8);
CREATE FUNCTION complex_cmp(complex, complex) RETURNS int LANGUAGE sql IMMUTABLE STRICT
	AS 'SELECT btfloat8cmp(abs($1.re) + abs($1.im), abs($2.re) + abs($2.im))';
CREATE FUNCTION complex_lt(complex, complex) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT complex_cmp($1, $2) < 0';
CREATE FUNCTION complex_eq(complex, complex) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT complex_cmp($1, $2) = 0';
CREATE OPERATOR <<< (LEFTARG = complex, RIGHTARG = complex, FUNCTION = complex_lt);
CREATE OPERATOR === (LEFTARG = complex, RIGHTARG = complex, FUNCTION = complex_eq, RESTRICT = eqsel);
CREATE FUNCTION complex_le(complex, complex) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT complex_cmp($1, $2) <= 0';
CREATE FUNCTION complex_ge(complex, complex) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT complex_cmp($1, $2) >= 0';
CREATE FUNCTION complex_gt(complex, complex) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT complex_cmp($1, $2) > 0';
CREATE OPERATOR <<= (LEFTARG = complex, RIGHTARG = complex, FUNCTION = complex_le);
CREATE OPERATOR >== (LEFTARG = complex, RIGHTARG = complex, FUNCTION = complex_ge);
CREATE OPERATOR >>> (LEFTARG = complex, RIGHTARG = complex, FUNCTION = complex_gt);
CREATE OPERATOR CLASS complex_abs FOR TYPE complex USING btree AS OPERATOR 1 <<<, OPERATOR 2 <<=, OPERATOR 3 ===,
	OPERATOR 4 >==, OPERATOR 5 >>>, FUNCTION 1 complex_cmp(complex, complex);
SELECT pbtree_make_opclass('complex', 'complex_abs');
SELECT pbtree_make_opclass('point');
CREATE TABLE x AS SELECT row(g % 20, g % 3)::complex AS v FROM generate_series(1, 5000) g;
CREATE INDEX x_v ON x USING pbtree (v complex_abs);
SELECT pbtree_check('x_v', true);
SELECT count(*) FROM x WHERE v === row(3, 1)::complex;
-- its btree family has the name of one that is there already, of other types
CREATE SCHEMA other;
CREATE OPERATOR FAMILY other.integer_ops USING btree;
CREATE OPERATOR CLASS other.complex_other FOR TYPE complex USING btree FAMILY other.integer_ops AS OPERATOR 1 <<<, OPERATOR 2 <<=,
	OPERATOR 3 ===, OPERATOR 4 >==, OPERATOR 5 >>>, FUNCTION 1 complex_cmp(complex, complex);
SELECT pbtree_make_opclass('complex', 'complex_other');
CREATE INDEX x_o ON x USING pbtree (v complex_other);
SELECT pbtree_check('x_o', true);
-- and here, of the same type, but in another order
CREATE OPERATOR FAMILY other.text_ops USING btree;
CREATE OPERATOR CLASS other.backwards FOR TYPE text USING btree FAMILY other.text_ops AS OPERATOR 1 >, OPERATOR 2 >=,
	OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 bttextcmp(text, text);
SELECT pbtree_make_opclass('text', 'backwards');
DROP TABLE t, s, p, l, x;
-- as long as nbtree allows, not compressed: each is alone on its page
CREATE TABLE e (id int, b text);
ALTER TABLE e ALTER b SET STORAGE EXTERNAL;
CREATE INDEX e_b ON e USING pbtree (b);
INSERT INTO e SELECT g, repeat('1234567890', 269) || CASE WHEN g % 2 = 0 THEN g::text ELSE '' END FROM generate_series(1, 99) g;
SELECT pbtree_check('e_b', true);
REINDEX INDEX e_b;
SELECT pbtree_check('e_b', true);
DROP TABLE e;
-- marks on pages that the scan has left: a merge join that reads all pages for each row of the other side
CREATE TABLE few AS SELECT generate_series(1, 100) AS k;
CREATE TABLE many AS SELECT 1 AS k FROM generate_series(1, 30000);
CREATE INDEX ON many USING pbtree (k);
VACUUM ANALYZE few, many;
UPDATE few SET k = 1;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_material = off;
SELECT count(*) FROM few JOIN many USING (k);
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_material;
DROP TABLE few, many;
-- a cursor turns around on the page that the last element's rows are on, too
CREATE TABLE c AS SELECT CASE WHEN g <= 2700 THEN 1 ELSE 2 END AS k, g AS n FROM generate_series(1, 2750) g;
CREATE INDEX ON c USING pbtree (k, n);
VACUUM ANALYZE c;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT k, n FROM c WHERE k = ANY ('{1,2}') ORDER BY k, n;
MOVE 2720 FROM c;
FETCH c;
MOVE BACKWARD 2710 FROM c;
FETCH c;
COMMIT;
DROP TABLE c;
-- arrays on several columns: of millions of combinations few are looked at
CREATE TABLE m AS SELECT g AS a, g % 7 AS b, g::int8 AS c, 'x' || g % 10 AS d FROM generate_series(1, 3000) g;
INSERT INTO m VALUES (NULL, 1, 1, 'x1'), (5, NULL, 5, 'x5'), (8, 1, NULL, NULL);
CREATE INDEX m_a ON m USING pbtree (a, c DESC, d);
VACUUM ANALYZE m;
SELECT array_agg(g) AS l FROM generate_series(-4001, 4001, 2) g \gset
SET statement_timeout = '60s';
SELECT count(*), sum(a) FROM m WHERE a = ANY (:'l') AND c = ANY (:'l') AND d = ANY ('{x1,x2,x3}');
SELECT a, c, d FROM m WHERE a = ANY (:'l') AND c = ANY (:'l') AND d = ANY ('{x1,x2,x3}') ORDER BY a DESC, c, d DESC LIMIT 2;
SELECT a, c, d FROM m WHERE a = ANY (:'l') AND c = ANY (:'l') AND d > 'x1' ORDER BY a DESC, c, d DESC LIMIT 2;
SELECT a, c, d FROM m WHERE a = ANY ('{1000,2000}') AND c = 2000 AND d = ANY ('{x0,x1}') ORDER BY a, c DESC, d;
SELECT count(*) FROM m WHERE a = ANY (:'l') AND c IS NULL AND d = ANY ('{x1,x2,x3}');
SELECT count(*) FROM m WHERE a = ANY ('{4,6,8,10}') AND c IS NULL AND d IS NULL;
RESET statement_timeout;
DROP TABLE m;
-- the index stays, and then there are equal values with other bytes
CREATE TABLE b (c char(10));
CREATE INDEX b_c ON b USING pbtree (c);
INSERT INTO b SELECT 'a' FROM generate_series(1, 7000);
DELETE FROM b WHERE ctid < '(10,0)';
VACUUM b;
ALTER TABLE b ALTER c TYPE bpchar;
INSERT INTO b SELECT 'a' FROM generate_series(1, 20000);
SELECT count(*), pbtree_check('b_c', true) FROM b WHERE c = 'a';
DROP TABLE b;
-- marking dead rows takes no longer for each when a page has many
CREATE TABLE k AS SELECT 1 AS a, g AS n FROM generate_series(1, 1000000) g;
CREATE INDEX k_a ON k USING pbtree (a);
VACUUM ANALYZE k;
DELETE FROM k;
SET enable_bitmapscan = off;
SET statement_timeout = '3s';
SELECT count(n) FROM k WHERE a = 1;
RESET statement_timeout;
SELECT 'garbage' = ANY (flags) AS marked FROM pbtree_page('k_a', 1);
DROP TABLE k;

-- btree's definitions are accepted
CREATE TABLE o (a int);
CREATE INDEX o_a ON o USING pbtree (a) WITH (deduplicate_items = off, fillfactor = 70);
ALTER INDEX o_a SET (deduplicate_items = on);
ALTER INDEX o_a SET (deduplicate_items = maybe);
SELECT reloptions FROM pg_class WHERE relname = 'o_a';
DROP TABLE o;
