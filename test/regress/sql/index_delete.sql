-- Index entries of dead rows go when their pages are full, without VACUUM.  Sizes are compared with generous bounds, since
-- other sessions may keep rows alive for a while.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;

-- The same rows again and again: the primary key and the index on b get duplicates, as a's change needs a new TID.
CREATE TABLE xd (id int PRIMARY KEY, a int, b int, t text) WITH (autovacuum_enabled = off);
CREATE INDEX xd_a ON xd (a);
CREATE INDEX xd_b ON xd (b);
CREATE INDEX xd_tb ON xd (t, b) INCLUDE (id) WHERE b > 10;
INSERT INTO xd SELECT i, i, i / 5, 'text ' || i FROM generate_series(1, 500) i;
CREATE PROCEDURE xd_update(times int, abort_every int) LANGUAGE plpgsql AS $$
BEGIN
    FOR k IN 1..times LOOP
        UPDATE xd SET a = a + 1000;
        IF k % abort_every = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
    END LOOP;
END $$;
CREATE FUNCTION xd_total(cond text) RETURNS TABLE (n bigint, ids bigint, a_sum bigint) LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
    RETURN QUERY EXECUTE 'SELECT count(*), sum(id), sum(a) FROM xd WHERE ' || cond;
END $$;
CREATE VIEW xd_totals AS
    SELECT cond, n, ids, a_sum
    FROM unnest(ARRAY['id > 0', 'a > 0', 'b >= 0', $$b > 10 AND t > ''$$, 't IS NOT NULL']) cond, xd_total(cond);
SELECT pg_relation_size('xd_pkey') AS pkey_size, pg_relation_size('xd_b') AS b_size \gset
CALL xd_update(100, 1000);
SELECT pg_relation_size('xd_pkey') < 4 * :pkey_size AS pkey_small, pg_relation_size('xd_b') < 12 * :b_size AS b_small;
SELECT * FROM xd_totals;

-- Every other transaction rolls back.  Its rows never come back, those that it wanted to move stay.
CALL xd_update(60, 2);
SELECT pg_relation_size('xd_pkey') < 4 * :pkey_size AS pkey_small, pg_relation_size('xd_b') < 12 * :b_size AS b_small;
SELECT * FROM xd_totals;

-- An open transaction keeps what it may see.  It sees it; afterwards there is room again.
BEGIN;
SELECT count(*) FROM xd;
UPDATE xd SET b = b WHERE id = 1;
PREPARE TRANSACTION 'xd keeps rows';
CREATE PROCEDURE xd_update_others(times int) LANGUAGE plpgsql AS $$
BEGIN
    FOR k IN 1..times LOOP
        UPDATE xd SET a = a + 1000 WHERE id > 1;
        COMMIT;
    END LOOP;
END $$;
CALL xd_update_others(10);
SELECT * FROM xd_totals;
ROLLBACK PREPARED 'xd keeps rows';
SELECT pg_relation_size('xd_pkey') AS pkey_size, pg_relation_size('xd_b') AS b_size \gset
CALL xd_update(60, 1000);
SELECT pg_relation_size('xd_pkey') < 3 * :pkey_size AS pkey_small, pg_relation_size('xd_b') < 4 * :b_size AS b_small;
SELECT * FROM xd_totals;

-- Within one transaction nothing is dead, not even after a subtransaction's rollback: that one's rows are.
BEGIN;
UPDATE xd SET a = a + 1000;
SAVEPOINT one;
UPDATE xd SET a = a + 1000;
DELETE FROM xd WHERE id % 3 = 0;
ROLLBACK TO one;
UPDATE xd SET a = a + 1000 WHERE id % 2 = 0;
SAVEPOINT two;
UPDATE xd SET a = a + 1000, b = -1;
ROLLBACK TO two;
UPDATE xd SET a = a + 1000 WHERE id % 2 = 1;
SELECT * FROM xd_totals;
ROLLBACK;
SELECT * FROM xd_totals;

-- Inserted, changed in place and moved by transactions that roll back.
CREATE PROCEDURE xd_insert_abort(times int) LANGUAGE plpgsql AS $$
BEGIN
    FOR k IN 1..times LOOP
        INSERT INTO xd SELECT i, i, i, 'new' FROM generate_series(2001, 2200) i;
        UPDATE xd SET t = 'newer' WHERE id > 2000;
        UPDATE xd SET a = a + 1 WHERE id > 2000 AND id % 2 = 0;
        ROLLBACK;
    END LOOP;
END $$;
CALL xd_insert_abort(20);
SELECT * FROM xd_totals;

-- Deleted and inserted again: the unique index's own check finds the dead rows.
DROP INDEX xd_a, xd_b, xd_tb;
REINDEX INDEX xd_pkey;
SELECT pg_relation_size('xd_pkey') AS pkey_size \gset
CREATE PROCEDURE xd_reinsert(times int) LANGUAGE plpgsql AS $$
BEGIN
    FOR k IN 1..times LOOP
        DELETE FROM xd WHERE id % 2 = 0;
        COMMIT;
        INSERT INTO xd SELECT i, i, k, 'again' FROM generate_series(2, 500, 2) i;
        COMMIT;
    END LOOP;
END $$;
CALL xd_reinsert(100);
SELECT pg_relation_size('xd_pkey') < 4 * :pkey_size AS pkey_small;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*), sum(a), sum(b) FROM xd WHERE id > 0;
SELECT id, a, b, t FROM xd WHERE id IN (1, 2, 3, 250, 500) ORDER BY id;
RESET enable_seqscan;
RESET enable_bitmapscan;
SELECT count(*), sum(a), sum(b) FROM xd;
-- rows whose entries went do not come back with a new index either
CREATE INDEX xd_id ON xd (id);
SELECT count(*) FROM xd WHERE id BETWEEN 1 AND 1000;
INSERT INTO xd VALUES (2, 0, 0, 'duplicate');
DROP VIEW xd_totals;
DROP TABLE xd;
DROP FUNCTION xd_total;
DROP PROCEDURE xd_update, xd_update_others, xd_insert_abort, xd_reinsert;

-- hash and GiST: scans mark the entries, full pages drop them
CREATE TABLE xh (id int, p point, n int) WITH (autovacuum_enabled = off);
CREATE INDEX xh_hash ON xh USING hash (id);
CREATE INDEX xh_gist ON xh USING gist (p);
INSERT INTO xh SELECT i, point(i, -i), 0 FROM generate_series(1, 300) i;
SELECT pg_relation_size('xh_hash') AS hash_size, pg_relation_size('xh_gist') AS gist_size \gset
CREATE PROCEDURE xh_reinsert(times int) LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
    FOR k IN 1..times LOOP
        DELETE FROM xh;
        INSERT INTO xh SELECT i, point(i, -i), k FROM generate_series(1, 300) i;
    END LOOP;
END $$;
CREATE PROCEDURE xh_scan() LANGUAGE plpgsql AS $$
DECLARE
    total bigint = 0;
    found bigint;
BEGIN
    FOR i IN 1..300 LOOP
        SELECT count(*) INTO found FROM xh WHERE id = i;
        total := total + found;
    END LOOP;
    RAISE NOTICE 'hash: %', total;
    SELECT count(*) INTO found FROM xh WHERE p <@ box(point(0, -1000), point(1000, 0));
    RAISE NOTICE 'gist: %', found;
END $$;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CALL xh_reinsert(3);
CALL xh_scan();
CALL xh_reinsert(3);
CALL xh_scan();
CALL xh_reinsert(3);
CALL xh_scan();
CALL xh_reinsert(3);
CALL xh_scan();
CALL xh_reinsert(3);
CALL xh_scan();
CALL xh_reinsert(3);
CALL xh_scan();
CALL xh_reinsert(3);
CALL xh_scan();
CALL xh_reinsert(3);
CALL xh_scan();
SELECT pg_relation_size('xh_hash') < 4 * :hash_size AS hash_small, pg_relation_size('xh_gist') < 8 * :gist_size AS gist_small;
SELECT count(*), sum(n), min(id), max(id) FROM xh WHERE p <@ box(point(0, -1000), point(1000, 0));
SELECT id, p, n FROM xh WHERE id = 17;
RESET enable_seqscan;
RESET enable_bitmapscan;
SELECT count(*), sum(n), min(id), max(id) FROM xh;
DROP TABLE xh;
DROP PROCEDURE xh_reinsert, xh_scan;
