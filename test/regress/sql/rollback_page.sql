-- A page's rolled-back changes: read below them, and put back in one pass.
CREATE TABLE rp_h (id int PRIMARY KEY, n int, t text, z int) WITH (autovacuum_enabled = off, fillfactor = 60);
CREATE TABLE rp_i (LIKE rp_h INCLUDING ALL) USING inplace WITH (autovacuum_enabled = off);
-- which of the rows of both differ
CREATE VIEW rp_diff AS SELECT h, i FROM rp_h h FULL JOIN rp_i i USING (id) WHERE h::text IS DISTINCT FROM i::text;

-- statement by statement on both tables, rolled back on both; rows are read before and after VACUUM
CREATE PROCEDURE rp_both(statement text) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE replace(statement, 'rp', 'rp_h');
  EXECUTE replace(statement, 'rp', 'rp_i');
END $$;
CREATE PROCEDURE rp_check(what text) LANGUAGE plpgsql AS $$
DECLARE
  n int;
  bad int;
BEGIN
  SET LOCAL enable_hashjoin = off;		-- both tables by sequential scans
  SET LOCAL enable_indexscan = off;
  -- who is about to change rows does not put pages in order that it reads
  LOCK TABLE rp_i IN ROW SHARE MODE;
  SELECT count(*) INTO n FROM rp_diff;
  SELECT count(*) INTO bad FROM inplace_check('rp_i');
  RAISE NOTICE '%: % rows differ, % problems', what, n, bad;
END $$;

CALL rp_both('INSERT INTO rp SELECT i, i, repeat(chr(97 + i % 26), i % 60), NULL FROM generate_series(1, 600) i');
-- the page's default inserter has just committed; and rows of another one
CALL rp_both('INSERT INTO rp SELECT i, i, md5(i::text), i FROM generate_series(601, 700) i');
BEGIN;
CALL rp_both('UPDATE rp SET n = n + 1');
ROLLBACK;
CALL rp_check('default inserter');
BEGIN;
LOCK TABLE rp_i IN ROW SHARE MODE;
SELECT xmin <> '2', xmax, count(*) FROM (SELECT xmin, CASE WHEN xmax = 0 THEN 0 ELSE 1 END AS xmax FROM rp_i) x GROUP BY 1, 2;
COMMIT;
VACUUM rp_h;
VACUUM rp_i;
CALL rp_check('the same, after VACUUM');
SELECT count(*) FROM inplace_rows('rp_i', 0) WHERE state <> 'frozen' OR xid IS NOT NULL;

-- NULLs that come and go, bodies that grow and shrink: without room for undo, too
BEGIN;
CALL rp_both('UPDATE rp SET z = id, t = NULL WHERE id % 3 = 0');
CALL rp_both('UPDATE rp SET t = t || t WHERE id % 3 = 1');
CALL rp_both('UPDATE rp SET t = left(t, 3), z = NULL WHERE id % 3 = 2');
ROLLBACK;
CALL rp_check('NULLs, lengths');
-- twice by one transaction, and over its savepoint's rollback
BEGIN;
CALL rp_both('UPDATE rp SET n = -n');
SAVEPOINT a;
CALL rp_both('UPDATE rp SET n = n - 1, t = t || ''x'' WHERE id % 2 = 0');
ROLLBACK TO a;
CALL rp_check('savepoint');
CALL rp_both('UPDATE rp SET n = n - 1 WHERE id % 5 = 0');
ROLLBACK;
CALL rp_check('two changes');
VACUUM rp_h;
VACUUM rp_i;
CALL rp_check('the same, after VACUUM');

-- deletions, moves, locks; a change of rows that a committed one shortened
BEGIN;
CALL rp_both('UPDATE rp SET t = left(t, 5)');
COMMIT;
BEGIN;
CALL rp_both('UPDATE rp SET n = 7 WHERE id % 4 = 0');
CALL rp_both('UPDATE rp SET id = -id WHERE id % 4 = 1');
CALL rp_both('DELETE FROM rp WHERE id % 4 = 2');
SELECT count(*) FROM (SELECT FROM rp_i WHERE id % 4 = 3 FOR UPDATE) x;
CALL rp_both('UPDATE rp SET n = 8 WHERE id % 8 = 3');
ROLLBACK;
CALL rp_check('deletions, moves, locks');
VACUUM rp_h;
VACUUM rp_i;
CALL rp_check('the same, after VACUUM');
-- no row keeps room for the versions before
SELECT count(*) FROM rp_i, inplace_rows('rp_i', (ctid::text::point)[0]::int) r
  WHERE r.off = (ctid::text::point)[1]::int AND r.len > 3 + 4 + 4 + 1 + length(t) + 4 + 1 + 10;

-- an insertion that has aborted, in a savepoint, below an update
BEGIN;
CALL rp_both('INSERT INTO rp SELECT i, i, ''new'' FROM generate_series(2001, 2100) i');
SAVEPOINT b;
CALL rp_both('UPDATE rp SET n = 0 WHERE id > 2000');
ROLLBACK TO b;
CALL rp_check('own rows');
ROLLBACK;
CALL rp_check('insertion');
BEGIN;
CALL rp_both('UPDATE rp SET n = n + 1');
ROLLBACK;
-- the next writer of a page without room for its undo prunes it
CALL rp_both('UPDATE rp SET t = t || ''more'', n = n + 100 WHERE id % 2 = 1');
CALL rp_check('writers');
VACUUM rp_i;
CALL rp_check('the end');
DROP VIEW rp_diff;
DROP PROCEDURE rp_both, rp_check;
DROP TABLE rp_h, rp_i;
