-- Not heap: an aborted change must not keep undo pages from being used again
-- (one process: one ring; records of more than a thousand bytes)
CREATE TABLE ur (id int, v text) USING inplace;
ALTER TABLE ur ALTER v SET STORAGE plain;
INSERT INTO ur SELECT i, repeat('a', 1250) FROM generate_series(1, 20) i;
BEGIN;
UPDATE ur SET v = repeat('z', 1250) WHERE id = 20;
ROLLBACK;
DO $$BEGIN FOR i IN 1..300 LOOP UPDATE ur SET v = repeat(chr(65 + i % 26), 1250) WHERE id = 1 + i % 19; COMMIT; END LOOP; END$$;
SELECT sum(pages) < 40 AS small FROM inplace_undo_rings('ur');
SELECT * FROM inplace_check('ur');
SELECT count(*), count(DISTINCT left(v, 1)) > 1 AS changed FROM ur WHERE id < 20;
SELECT left(v, 3) FROM ur WHERE id = 20;
DROP TABLE ur;
-- nor must records so large that a page has no room for another one, but is not nearly full
CREATE TABLE ul (id int, v text) USING inplace;
ALTER TABLE ul ALTER v SET STORAGE plain;
INSERT INTO ul SELECT i, repeat('a', 3000) FROM generate_series(1, 20) i;
DO $$BEGIN FOR i IN 1..40 LOOP UPDATE ul SET v = repeat(chr(65 + i % 26), 3000); IF i % 4 = 0 THEN COMMIT; ELSE ROLLBACK; END IF; END LOOP; END$$;
SELECT sum(pages) < 20 AS small FROM inplace_undo_rings('ul');
SELECT * FROM inplace_check('ul');
-- nor both: short connections with large records
DO $$BEGIN
    FOR i IN 1..200 LOOP
        UPDATE ul SET v = repeat(chr(65 + i % 26), 3000) WHERE id = 1 + i % 20;
        IF i % 4 = 0 THEN COMMIT; ELSE ROLLBACK; END IF;
        ALTER TABLE ul ALTER id SET STATISTICS 100;
        COMMIT;
    END LOOP;
END$$;
SELECT sum(pages) < 20 AS small FROM inplace_undo_rings('ul');
SELECT * FROM inplace_check('ul');
DROP TABLE ul;
-- nor must short connections (here: a relation cache entry that is new for each change)
CREATE TABLE us (id int PRIMARY KEY, n int) USING inplace;
INSERT INTO us SELECT i, 0 FROM generate_series(1, 1000) i;
DO $$BEGIN
    FOR i IN 1..4000 LOOP
        UPDATE us SET n = n + 1 WHERE id = 1 + i * 7 % 1000;
        IF i % 20 = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
        ALTER TABLE us ALTER n SET STATISTICS 100;
        COMMIT;
    END LOOP;
END$$;
SELECT sum(pages) < 8 AS small FROM inplace_undo_rings('us');
SELECT * FROM inplace_check('us');
SELECT sum(n) FROM us;
DROP TABLE us;
