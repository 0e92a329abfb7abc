-- xmax tells rows that INSERT ... ON CONFLICT inserted from those that it updated: RETURNING (xmax = 0).
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS inplace;
RESET client_min_messages;
SET default_table_access_method = inplace;
CREATE TABLE ux (id int PRIMARY KEY, n int, t text);
INSERT INTO ux SELECT i, 0, 'old' FROM generate_series(1, 5) i;
INSERT INTO ux VALUES (1, 1, 'in place'), (6, 1, 'new') ON CONFLICT (id) DO UPDATE SET n = ux.n + 1, t = excluded.t RETURNING id, n, t, xmax = 0 AS inserted;
INSERT INTO ux VALUES (1, 1, 'again'), (6, 1, 'again') ON CONFLICT (id) DO UPDATE SET n = ux.n + 1, t = excluded.t RETURNING id, n, t, xmax = 0 AS inserted;
-- to another place: the row grows, or its key changes
INSERT INTO ux VALUES (2, 1, repeat('long', 1000)), (7, 1, repeat('long', 1000)) ON CONFLICT (id) DO UPDATE SET t = excluded.t RETURNING id, length(t), xmax = 0 AS inserted;
INSERT INTO ux VALUES (3, 1, 'key'), (8, 1, 'key') ON CONFLICT (id) DO UPDATE SET id = 30 RETURNING id, xmax = 0 AS inserted;
-- rows that are not updated are not returned
INSERT INTO ux VALUES (4, 1, 'no'), (9, 1, 'new') ON CONFLICT (id) DO UPDATE SET n = -1 WHERE ux.n > 100 RETURNING id, xmax = 0 AS inserted;
INSERT INTO ux VALUES (4, 1, 'no'), (10, 1, 'new') ON CONFLICT (id) DO NOTHING RETURNING id, xmax = 0 AS inserted;
-- rows of the same transaction; rows whose last change was rolled back
BEGIN;
INSERT INTO ux VALUES (11, 1, 'mine');
INSERT INTO ux VALUES (11, 1, 'mine again') ON CONFLICT (id) DO UPDATE SET t = excluded.t RETURNING id, t, xmax = 0 AS inserted;
UPDATE ux SET n = 5 WHERE id = 5;
INSERT INTO ux VALUES (5, 1, 'mine again') ON CONFLICT (id) DO UPDATE SET t = excluded.t RETURNING id, n, t, xmax = 0 AS inserted;
ROLLBACK;
INSERT INTO ux VALUES (5, 1, 'after'), (11, 1, 'after') ON CONFLICT (id) DO UPDATE SET t = excluded.t RETURNING id, n, t, xmax = 0 AS inserted;
SELECT id, n, length(t) FROM ux ORDER BY id;
-- in a data-modifying WITH, as applications count them
WITH up AS (
    INSERT INTO ux SELECT i, 0, 'bulk' FROM generate_series(8, 15) i
    ON CONFLICT (id) DO UPDATE SET t = excluded.t RETURNING xmax = 0 AS inserted)
SELECT count(*) FILTER (WHERE inserted) AS inserted, count(*) FILTER (WHERE NOT inserted) AS updated FROM up;
DROP TABLE ux;
