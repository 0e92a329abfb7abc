-- a row that a command inserts, and a function of the same command then updates:
-- its foreign key is checked all the same
CREATE TABLE fs_parent (id int PRIMARY KEY) USING inplace;
INSERT INTO fs_parent VALUES (1);
CREATE TABLE fs_child (id int PRIMARY KEY, p int REFERENCES fs_parent, note text) USING inplace;
CREATE FUNCTION fs_touch(i int) RETURNS int VOLATILE LANGUAGE plpgsql AS
$$BEGIN UPDATE fs_child SET note = 'y' WHERE id = i; RETURN i; END$$;
INSERT INTO fs_child VALUES (1, 999, 'x') RETURNING fs_touch(id);
WITH i AS (INSERT INTO fs_child VALUES (2, 999, 'x') RETURNING id) SELECT fs_touch(id) FROM i;
INSERT INTO fs_child VALUES (3, 1, 'x') RETURNING fs_touch(id);
SELECT * FROM fs_child;
DROP TABLE fs_child, fs_parent;
DROP FUNCTION fs_touch;
