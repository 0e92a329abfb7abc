INSERT INTO queue (payload) VALUES (md5(:client_id::text) || ' to be done');
BEGIN;
SELECT coalesce(min(id), 0) AS id FROM (SELECT id FROM queue ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) first \gset
DELETE FROM queue WHERE id = :id;
COMMIT;
