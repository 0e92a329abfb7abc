-- Prepared statements, plans that stay while the table changes, EXPLAIN.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE pr (id int PRIMARY KEY, a int, t text);
INSERT INTO pr SELECT i, i, 't' || i FROM generate_series(1, 100) i;
PREPARE pr_sel (int) AS SELECT id, a, t FROM pr WHERE id = $1;
PREPARE pr_upd (int, text) AS UPDATE pr SET a = a + 1, t = $2 WHERE id = $1 RETURNING id, a, t;
PREPARE pr_ins (int, text) AS INSERT INTO pr VALUES ($1, $1, $2);
PREPARE pr_del (int) AS DELETE FROM pr WHERE id = $1 RETURNING id;
EXECUTE pr_upd (5, 'once');
EXECUTE pr_upd (5, repeat('x', 20));
EXECUTE pr_upd (5, 's');
EXECUTE pr_upd (5, NULL);
EXECUTE pr_upd (5, 'fifth');
EXECUTE pr_upd (5, 'sixth');
EXECUTE pr_upd (5, 'generic plan');
EXECUTE pr_sel (5);
EXECUTE pr_ins (5, 'twice');
EXECUTE pr_ins (101, 'new');
EXECUTE pr_del (6);
EXECUTE pr_del (6);
-- DDL in between
CREATE INDEX pr_a ON pr (a);
EXECUTE pr_upd (7, 'with index');
ALTER TABLE pr ADD COLUMN n int DEFAULT 1;
EXECUTE pr_upd (7, 'with column');
EXECUTE pr_ins (102, 'two columns');
ALTER TABLE pr ALTER COLUMN a TYPE bigint;
EXECUTE pr_sel (7);
DEALLOCATE pr_sel;
DEALLOCATE pr_upd;
PREPARE pr_upd (int, text) AS UPDATE pr SET a = a + 1, t = $2 WHERE id = $1 RETURNING id, a, t;
PREPARE pr_sel (int) AS SELECT * FROM pr WHERE id = $1;
EXECUTE pr_sel (7);
REINDEX TABLE pr;
EXECUTE pr_sel (7);
EXECUTE pr_upd (7, 'after reindex');
ALTER TABLE pr SET ACCESS METHOD heap;
EXECUTE pr_upd (7, 'on heap');
ALTER TABLE pr SET ACCESS METHOD inplace;
EXECUTE pr_upd (7, 'and back');
TRUNCATE pr;
EXECUTE pr_upd (7, 'nothing');
EXECUTE pr_ins (7, 'again');
EXECUTE pr_upd (7, 'something');
-- plans
INSERT INTO pr SELECT i, i, 't' || i, 1 FROM generate_series(1000, 20000) i;
ANALYZE pr;
EXPLAIN (COSTS OFF) SELECT * FROM pr WHERE id = 1000;
EXPLAIN (COSTS OFF) SELECT * FROM pr WHERE t = 'x';
EXPLAIN (COSTS OFF) SELECT id FROM pr ORDER BY id DESC LIMIT 1;
EXPLAIN (COSTS OFF) UPDATE pr SET a = 1 WHERE id = 1000;
EXPLAIN (COSTS OFF) DELETE FROM pr WHERE a = 1000;
EXPLAIN (COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF) UPDATE pr SET t = 'e' WHERE id = 1000 \g /dev/null
EXPLAIN (COSTS OFF) SELECT * FROM pr WHERE id = 1000 FOR UPDATE;
SELECT t FROM pr WHERE id = 1000;
-- the same through functions with cached plans
CREATE FUNCTION pr_f(which int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE r bigint; BEGIN UPDATE pr SET a = a + 1 WHERE id = which; SELECT a INTO r FROM pr WHERE id = which; RETURN r; END $$;
SELECT pr_f(7), pr_f(7), pr_f(1000), pr_f(7);
DEALLOCATE ALL;
DROP FUNCTION pr_f;
DROP TABLE pr;
