\set id random(1, :documents)
\set key random(1, 200)
UPDATE documents SET doc = jsonb_set(doc, ARRAY['key' || :key], to_jsonb(reverse(doc ->> ('key' || :key)))) WHERE id = :id;
