\set id random(1, :rows)
INSERT INTO upserted VALUES (:id, 1, now()) ON CONFLICT (id) DO UPDATE SET n = upserted.n + 1, at = now();
