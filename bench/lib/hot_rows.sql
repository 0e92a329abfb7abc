\set id random(1, :counters)
UPDATE counters SET n = n + 1 WHERE id = :id;
