-- Undo records on their rows' own pages, and deletions and row locks by a page's default changer.
SET default_table_access_method = inplace;
CREATE TABLE uah (id int PRIMARY KEY, k int, n int, t text) WITH (autovacuum_enabled = off);
CREATE INDEX uah_k ON uah (k);
CREATE FUNCTION uah_rows() RETURNS TABLE (off int, lp text, flags text[]) LANGUAGE sql AS
  $$SELECT off, state, flags FROM inplace_rows('uah', 0) ORDER BY off$$;
CREATE FUNCTION uah_undo() RETURNS TABLE (kind text, flags text[], tid tid, cid bigint, forward tid, delta int)
  LANGUAGE sql AS $$SELECT kind, flags, row_tid, cid, forward, delta_len FROM inplace_undo_records('uah', 0) ORDER BY off$$;
INSERT INTO uah SELECT i, i, 0, repeat('a', 20) FROM generate_series(1, 4) i;

-- an update in place, one that moves the row, and a second one of the same row
UPDATE uah SET n = n + 1 WHERE id = 1;
BEGIN;
UPDATE uah SET n = n + 1, t = t || 'bb' WHERE id = 2;
UPDATE uah SET n = n + 1 WHERE id = 2;
UPDATE uah SET k = k + 10 WHERE id = 3;
SELECT * FROM uah_rows();
SELECT * FROM uah_undo();
SELECT count(*) FROM inplace_undo_rings('uah') WHERE pages > 0;
SELECT * FROM uah ORDER BY id;
ROLLBACK;
SELECT * FROM uah ORDER BY id;
SELECT * FROM inplace_check('uah');
VACUUM uah;
SELECT * FROM uah_rows();
SELECT count(*) FROM uah_undo();

-- an older snapshot sees the versions before, by each kind of scan
BEGIN;
DECLARE seq CURSOR FOR SELECT * FROM uah ORDER BY id;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
DECLARE idx CURSOR FOR SELECT * FROM uah WHERE id > 0 ORDER BY id;
RESET enable_bitmapscan;
SET LOCAL enable_indexscan = off;
DECLARE bmp CURSOR FOR SELECT * FROM uah WHERE k > 0 ORDER BY id;
UPDATE uah SET n = n + 1, t = upper(t);
UPDATE uah SET n = n + 1, t = NULL WHERE id < 3;
DELETE FROM uah WHERE id = 4;
UPDATE uah SET k = k + 1 WHERE id = 1;
FETCH ALL FROM seq;
FETCH ALL FROM idx;
FETCH ALL FROM bmp;
SELECT * FROM uah ORDER BY id;
SAVEPOINT s;
DELETE FROM uah;
SELECT count(*) FROM uah;
ROLLBACK TO s;
UPDATE uah SET n = 100 WHERE id = 2;
SELECT * FROM inplace_check('uah');
COMMIT;
SELECT * FROM uah ORDER BY id;
VACUUM uah;
SELECT * FROM inplace_check('uah');

-- deletions of one command cost no version block; locks change nothing
TRUNCATE uah;
INSERT INTO uah SELECT i, i, 0, repeat('a', 20) FROM generate_series(1, 4) i;
VACUUM uah;
BEGIN;
SELECT id FROM uah WHERE id < 3 FOR UPDATE;
SELECT * FROM uah_rows();
SELECT id FROM uah WHERE id = 3 FOR SHARE;
DELETE FROM uah WHERE id = 1;
UPDATE uah SET n = 5 WHERE id = 2;
SELECT * FROM uah_rows();
SELECT * FROM uah ORDER BY id;
ROLLBACK;
SELECT * FROM uah ORDER BY id;
DELETE FROM uah WHERE id = 2;
SELECT * FROM uah_rows() WHERE off = 3;
BEGIN;
DELETE FROM uah WHERE id = 3;
SAVEPOINT s;
DELETE FROM uah WHERE id = 4;
SELECT id FROM uah;
ROLLBACK TO s;
SELECT id FROM uah;
ROLLBACK;
SELECT id FROM uah;
-- rows of the same transaction, deleted and locked
BEGIN;
INSERT INTO uah VALUES (11, 1, 1, 'own'), (12, 1, 1, 'own'), (13, 1, 1, 'own');
DECLARE own CURSOR FOR SELECT id FROM uah WHERE id > 10;
SAVEPOINT s;
DELETE FROM uah WHERE id = 11;
SELECT id FROM uah WHERE id > 10;
ROLLBACK TO s;
DELETE FROM uah WHERE id = 12;
FETCH ALL FROM own;
SELECT id FROM uah WHERE id > 10;
COMMIT;
SELECT id FROM uah WHERE id > 10;
SELECT * FROM inplace_check('uah');
VACUUM uah;
SELECT * FROM uah_rows();
SELECT visible FROM (SELECT count(*) = 0 AS visible FROM uah_rows() WHERE flags <> '{}' AND flags <> '{hasnull}') s;

-- without
SET inplace.debug_undo_at_home = off;
UPDATE uah SET n = n + 1 WHERE id = 3;
DELETE FROM uah WHERE id = 4;
SELECT * FROM uah_undo();
SELECT sum(records) FROM inplace_undo_rings('uah');
RESET inplace.debug_undo_at_home;
SELECT * FROM inplace_check('uah');

-- a page that becomes full: the rest goes to a ring
CREATE TABLE uah_full (id int, n int, t text) WITH (autovacuum_enabled = off);
INSERT INTO uah_full SELECT i, 0, repeat('x', 900) FROM generate_series(1, 8) i;
BEGIN;
DO $$BEGIN FOR i IN 1 .. 80 LOOP UPDATE uah_full SET n = i WHERE id = 1; END LOOP; END$$;
SELECT at_home > 0, in_ring > 0, at_home + in_ring
FROM (SELECT count(*) AS at_home FROM inplace_undo_records('uah_full', 0)) h,
  (SELECT sum(records) AS in_ring FROM inplace_undo_rings('uah_full')) r;
SELECT count(*), count(DISTINCT contents) FROM inplace_versions('uah_full', '(0,2)');
UPDATE uah_full SET t = upper(t) WHERE id = 2;
DELETE FROM uah_full WHERE id = 3;
ROLLBACK;
SELECT count(*) FROM uah_full WHERE t = repeat('x', 900) AND n = 0;
SELECT * FROM inplace_check('uah_full');
-- locked and then updated: the update excludes what the lock did
BEGIN;
SELECT id FROM uah_full WHERE id = 4 FOR UPDATE;
UPDATE uah_full SET n = 7 WHERE id = 4;
SELECT kind, flags, row_tid FROM inplace_undo_records('uah_full', 0);
COMMIT;
-- copies of undo pages: a file that its own transaction empties
SET inplace.debug_undo_at_home = off;
BEGIN;
CREATE TABLE uah_new (id int, t text);
INSERT INTO uah_new SELECT i, 'first ' || i FROM generate_series(1, 20) i;
DECLARE first CURSOR FOR SELECT * FROM uah_new;
UPDATE uah_new SET t = 'changed';
FETCH 3 FROM first;
CLOSE first;
TRUNCATE uah_new;
INSERT INTO uah_new SELECT i, 'secnd ' || i FROM generate_series(1, 20) i;
DECLARE second CURSOR FOR SELECT * FROM uah_new;
UPDATE uah_new SET t = 'changed again';
FETCH 3 FROM second;
COMMIT;
RESET inplace.debug_undo_at_home;
DROP TABLE uah, uah_full, uah_new;
DROP FUNCTION uah_rows, uah_undo;
-- a row that becomes shorter leaves the room that its undo record needs, on a page that is full
CREATE TABLE uah_tight (id int, s text) WITH (autovacuum_enabled = off);
ALTER TABLE uah_tight ALTER s SET STORAGE plain;
INSERT INTO uah_tight SELECT i, repeat('a', 1100) FROM generate_series(1, 7) i;
DO $$ BEGIN FOR n IN 1400..1440 LOOP
    EXECUTE format('UPDATE uah_tight SET s = repeat(%L, %s) WHERE id = 2', 'b', n);
    UPDATE uah_tight SET s = 'c' WHERE id = 1;
    UPDATE uah_tight SET s = 'd' WHERE id = 1;
    UPDATE uah_tight SET s = 'ee' WHERE id = 3;
END LOOP; END $$;
TRUNCATE uah_tight;
INSERT INTO uah_tight SELECT i, repeat('a', 1100) FROM generate_series(1, 7) i;
UPDATE uah_tight SET s = repeat('b', 1427) WHERE id = 2;
UPDATE uah_tight SET s = 'c' WHERE id = 1;
UPDATE uah_tight SET s = 'd' WHERE id = 1;
SELECT id, length(s) FROM uah_tight ORDER BY id;
SELECT * FROM inplace_check('uah_tight');
DROP TABLE uah_tight;
-- the version block of a row far above the page's end covers the row's first bytes, which are in its record at home
CREATE TABLE uah_over (id int PRIMARY KEY, n int, k int, t text) WITH (autovacuum_enabled = off);
CREATE INDEX ON uah_over (k);
INSERT INTO uah_over SELECT i, i * 1000, i, repeat('t', 60) FROM generate_series(1, 50) i;
VACUUM uah_over;
CREATE FUNCTION uah_over() RETURNS TABLE (id text, flags text[], record text[]) LANGUAGE sql AS $$
  SELECT r.off - 1, r.flags, u.flags FROM inplace_rows('uah_over', 0) r
  LEFT JOIN inplace_undo_records('uah_over', 0) u ON u.row_tid = ('(0,' || r.off || ')')::tid
  WHERE r.flags <> '{}' ORDER BY r.off, u.off$$;
BEGIN;
DECLARE seq CURSOR FOR SELECT id, n, left(t, 3) FROM uah_over WHERE id < 7 OR id = 50;
SET LOCAL enable_seqscan = off;
DECLARE idx SCROLL CURSOR FOR SELECT id, n, left(t, 3) FROM uah_over WHERE id < 7 ORDER BY id;
UPDATE uah_over SET n = n + 1 WHERE id IN (1, 2, 3, 4, 5, 6, 50);
SELECT * FROM uah_over();
-- the second change: a version block of its own
UPDATE uah_over SET n = n + 1 WHERE id = 2;
SELECT * FROM uah_over() WHERE id = '2';
SAVEPOINT s;
UPDATE uah_over SET n = n + 1, t = upper(t) WHERE id = 3;
DELETE FROM uah_over WHERE id = 4;
UPDATE uah_over SET k = k + 100 WHERE id = 5;
UPDATE uah_over SET t = t || t WHERE id = 6;
SELECT id, n, k, left(t, 3), length(t) FROM uah_over WHERE id < 7 ORDER BY id;
SELECT * FROM inplace_check('uah_over');
ROLLBACK TO s;
SELECT id, n, k, left(t, 3), length(t) FROM uah_over WHERE id < 7 ORDER BY id;
SELECT id FROM uah_over WHERE id IN (1, 3) FOR UPDATE;
SELECT id, n, k, left(t, 3), length(t) FROM uah_over WHERE id < 7 ORDER BY id;
FETCH ALL FROM seq;
FETCH ALL FROM idx;
FETCH BACKWARD 2 FROM idx;
SELECT * FROM inplace_check('uah_over');
COMMIT;
SELECT * FROM uah_over();
VACUUM uah_over;
SELECT * FROM uah_over();
-- rolled back, and put back
BEGIN;
UPDATE uah_over SET n = -n, t = repeat('z', length(t)) WHERE id < 10;
SELECT count(*) FROM uah_over() WHERE flags @> '{overlaid}';
ROLLBACK;
UPDATE uah_over SET n = n + 1 WHERE id = 8;
VACUUM uah_over;
SELECT id, n, left(t, 3) FROM uah_over WHERE id < 10 ORDER BY id;
SELECT count(*), sum(n), count(DISTINCT t) FROM uah_over;
SELECT * FROM inplace_check('uah_over');
DROP FUNCTION uah_over;
DROP TABLE uah_over;
