-- Row locks of one session: results, and updates after them.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE rl (id int PRIMARY KEY, a int, t text);
INSERT INTO rl SELECT i, i, 't' || i FROM generate_series(1, 10) i;
SELECT * FROM rl WHERE id = 1 FOR UPDATE;
SELECT * FROM rl WHERE id < 4 ORDER BY id FOR SHARE;
BEGIN;
SELECT id FROM rl WHERE id < 4 ORDER BY id FOR KEY SHARE;
SELECT id FROM rl WHERE id < 4 ORDER BY id FOR SHARE;
SELECT id FROM rl WHERE id < 3 ORDER BY id FOR NO KEY UPDATE;
SELECT id FROM rl WHERE id < 2 ORDER BY id FOR UPDATE;
UPDATE rl SET a = a + 1 WHERE id < 4;
SELECT id, a FROM rl WHERE id < 4 ORDER BY id FOR UPDATE;
UPDATE rl SET t = repeat('l', 100) WHERE id = 1;
DELETE FROM rl WHERE id = 2;
SELECT id, a, length(t) FROM rl WHERE id < 4 ORDER BY id FOR SHARE;
COMMIT;
SELECT id, a, length(t) FROM rl WHERE id < 4 ORDER BY id;
-- locks in savepoints
BEGIN;
SAVEPOINT s;
SELECT id FROM rl WHERE id = 5 FOR UPDATE;
UPDATE rl SET a = 50 WHERE id = 5;
ROLLBACK TO s;
SELECT id, a FROM rl WHERE id = 5 FOR SHARE;
SAVEPOINT s2;
SELECT id, a FROM rl WHERE id = 5 FOR UPDATE;
RELEASE s2;
UPDATE rl SET a = a + 5 WHERE id = 5;
COMMIT;
SELECT id, a FROM rl WHERE id = 5;
-- locks of many rows, rolled back, and read again
BEGIN;
SELECT count(*) FROM (SELECT * FROM rl FOR UPDATE) s;
ROLLBACK;
SELECT count(*), sum(a) FROM rl;
-- joins, OF, subqueries, LIMIT
CREATE TABLE rl_other (id int PRIMARY KEY, rid int, v text);
INSERT INTO rl_other SELECT i, i % 4 + 3, 'v' FROM generate_series(1, 6) i;
SELECT rl.id, o.id FROM rl JOIN rl_other o ON o.rid = rl.id ORDER BY 1, 2 FOR UPDATE OF rl;
SELECT rl.id, o.id FROM rl JOIN rl_other o ON o.rid = rl.id WHERE o.id < 3 ORDER BY 1, 2 FOR SHARE OF o FOR UPDATE OF rl;
SELECT id FROM rl ORDER BY id LIMIT 2 OFFSET 3 FOR UPDATE SKIP LOCKED;
SELECT id FROM (SELECT * FROM rl WHERE id > 7 FOR UPDATE) s ORDER BY id;
WITH picked AS (SELECT id FROM rl ORDER BY id LIMIT 2 FOR UPDATE), changed AS (UPDATE rl SET a = 0 FROM picked p WHERE p.id = rl.id RETURNING rl.id)
SELECT * FROM changed ORDER BY id;
SELECT id FROM rl LIMIT 0 FOR UPDATE NOWAIT;
-- refused
SELECT count(*) FROM rl FOR UPDATE;
SELECT DISTINCT a FROM rl FOR UPDATE;
-- a locked row is read by everything
BEGIN;
SELECT id FROM rl WHERE id = 10 FOR UPDATE;
DECLARE c CURSOR FOR SELECT id, a FROM rl WHERE id > 8 ORDER BY id;
UPDATE rl SET a = -10 WHERE id = 10;
FETCH ALL FROM c;
COMMIT;
BEGIN READ ONLY;
SELECT id FROM rl WHERE id = 10 FOR UPDATE;
ROLLBACK;
DROP TABLE rl, rl_other;
