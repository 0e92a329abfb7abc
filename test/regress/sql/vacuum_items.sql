-- Not heap: what VACUUM leaves of dead rows, page by page. (Temporary tables: no other session's snapshot keeps their rows.)
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
CREATE EXTENSION IF NOT EXISTS pg_visibility;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE FUNCTION vp_items(rel regclass) RETURNS TABLE (normal bigint, dead bigint, unused bigint) LANGUAGE sql AS $$
    SELECT count(*) FILTER (WHERE state NOT IN ('undo', 'dead', 'unused')), count(*) FILTER (WHERE state = 'dead'), count(*) FILTER (WHERE state = 'unused')
    FROM generate_series(0, pg_relation_size(rel) / 8192 - 1) b, inplace_rows(rel, b)
$$;
CREATE FUNCTION vp_kinds(rel regclass) RETURNS TABLE (kind text, any_page bool) LANGUAGE sql AS $$
    SELECT kind, count(*) > 0 FROM generate_series(0, pg_relation_size(rel) / 8192 - 1) b, inplace_page(rel, b) GROUP BY 1 ORDER BY 1
$$;
CREATE TEMP TABLE vp (id int PRIMARY KEY, t text) WITH (autovacuum_enabled = off);
INSERT INTO vp SELECT i, 'row ' || i FROM generate_series(1, 3000) i;
DELETE FROM vp WHERE id % 4 = 0;
SELECT * FROM vp_items('vp');
-- dead items stay as long as an index may name them
VACUUM (INDEX_CLEANUP OFF) vp;
SELECT * FROM vp_items('vp');
SELECT count(*) AS problems FROM inplace_check('vp');
INSERT INTO vp SELECT i, 'row ' || i FROM generate_series(10001, 10100) i;
SELECT dead FROM vp_items('vp');
-- pages with them are not all-visible
SELECT all_visible FROM pg_visibility_map_summary('vp');
-- those of trailing items go with the others
VACUUM vp;
SELECT dead, unused > 0 AS unused FROM vp_items('vp');
SELECT all_visible > 0 AS all_visible, all_visible = all_frozen AS all_frozen FROM pg_visibility_map_summary('vp');
-- their TIDs are used again: the table does not grow
SELECT pg_relation_size('vp') AS before \gset
INSERT INTO vp SELECT i, 'row ' || i FROM generate_series(20001, 20300) i;
SELECT pg_relation_size('vp') = :before AS same_size;
SELECT dead FROM vp_items('vp');
-- a table without index needs one pass only
CREATE TEMP TABLE vn (id int, t text) WITH (autovacuum_enabled = off);
INSERT INTO vn SELECT i, 'row ' || i FROM generate_series(1, 3000) i;
DELETE FROM vn WHERE id % 4 = 0;
VACUUM (INDEX_CLEANUP OFF) vn;
SELECT dead FROM vp_items('vn');
SELECT count(*) AS problems FROM inplace_check('vn');
-- a page without a row becomes a free one, which rows and undo may take
DELETE FROM vp WHERE id BETWEEN 500 AND 2500;
VACUUM vp;
SELECT * FROM vp_kinds('vp');
INSERT INTO vp SELECT i, 'row ' || i FROM generate_series(30001, 31200) i;
SELECT pg_relation_size('vp') <= :before AS no_larger;
SELECT count(*) AS problems FROM inplace_check('vp');
-- all rows gone: no page stays
DELETE FROM vp;
VACUUM vp;
VACUUM vp;
SELECT pg_relation_size('vp') / 8192 AS pages;
SELECT count(*) AS problems FROM inplace_check('vp');
-- VACUUM of a rolled back load takes it all back
BEGIN;
INSERT INTO vp SELECT i, 'row ' || i FROM generate_series(1, 3000) i;
ROLLBACK;
VACUUM vp;
SELECT * FROM vp_items('vp');
SELECT pg_relation_size('vp') / 8192 AS pages;
-- TRUNCATE off, for one command and for the table
INSERT INTO vp SELECT i, 'row ' || i FROM generate_series(1, 3000) i;
DELETE FROM vp;
SELECT pg_relation_size('vp') AS before \gset
VACUUM (TRUNCATE OFF) vp;
SELECT pg_relation_size('vp') = :before AS not_truncated;
ALTER TABLE vp SET (vacuum_truncate = off);
VACUUM vp;
SELECT pg_relation_size('vp') = :before AS not_truncated;
VACUUM (TRUNCATE ON) vp;
VACUUM (TRUNCATE ON) vp;
SELECT pg_relation_size('vp') < :before AS truncated;
-- vacuum_index_cleanup of the table
ALTER TABLE vp SET (vacuum_index_cleanup = off);
INSERT INTO vp SELECT i, 'row ' || i FROM generate_series(1, 3000) i;
DELETE FROM vp WHERE id % 2 = 0;
VACUUM vp;
SELECT dead FROM vp_items('vp');
VACUUM (INDEX_CLEANUP ON) vp;
SELECT dead FROM vp_items('vp');
DROP TABLE vp, vn;
DROP FUNCTION vp_items, vp_kinds;
DROP EXTENSION pg_visibility;
