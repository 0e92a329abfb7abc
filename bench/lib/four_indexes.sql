\set id random(1, :rows)
UPDATE indexed SET n = n + 1 WHERE id = :id;
