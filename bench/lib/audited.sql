\set id random(1, :rows)
UPDATE audited SET n = n + 1 WHERE id = :id;
