-- WAL by records and by our page operations.
CREATE TABLE t (id int, a text, b int) USING inplace;
SELECT pg_current_wal_insert_lsn() AS before \gset
INSERT INTO t SELECT i, 'row ' || i, i FROM generate_series(1, 100) i;
UPDATE t SET b = b + 1 WHERE id <= 10;
DELETE FROM t WHERE id > 95;
-- a large value, and another in its place
INSERT INTO t SELECT 200, string_agg(i || ' of many words', ''), 0 FROM generate_series(1, 3000) i;
UPDATE t SET a = reverse(a) WHERE id = 200;
BEGIN;
SELECT count(*) FROM (SELECT * FROM t WHERE id = 20 FOR UPDATE) x;
COMMIT;
-- flushes
SELECT count(*) > 0 AS switched FROM (SELECT pg_switch_wal()) x;
CREATE TEMP TABLE summary AS SELECT * FROM inplace_wal_summary(:'before', pg_current_wal_flush_lsn());
SELECT record_type, sum(count) FILTER (WHERE operation IS NULL AND record_type NOT LIKE '%VALUE') AS records, bool_or(operation IS NOT NULL AND record_bytes > 0) AS operations
	FROM summary WHERE resource_manager = 'inplace' AND record_type IN ('UPDATE', 'DELETE', 'LOCK', 'SAVE_VALUE', 'DELETE_VALUE') GROUP BY 1 ORDER BY 1;
-- the operations are in the records, and rounding up adds less than eight bytes
SELECT bool_and(o.bytes < r.record_bytes) AS inside FROM summary r JOIN
	(SELECT record_type, sum(record_bytes) AS bytes FROM summary WHERE resource_manager = 'inplace' AND operation IS NOT NULL GROUP BY 1) o USING (record_type)
	WHERE resource_manager = 'inplace' AND operation IS NULL AND image_bytes = 0;
SELECT bool_and(aligned_bytes BETWEEN record_bytes + image_bytes AND record_bytes + image_bytes + 7 * count) AS aligned,
	bool_or(resource_manager = 'Transaction' AND record_type = 'COMMIT') AS commits
	FROM summary WHERE operation IS NULL;
-- large values: of a row's versions, and in the TOAST table's rows
SELECT n, regexp_replace(contents, 'value \d+', 'value') AS contents FROM t, inplace_versions('t', t.ctid) WHERE id = 200;
SELECT count(*) FILTER (WHERE flags @> '{head}') > 0 AS heads, count(*) FILTER (WHERE flags @> '{block,compressed}') > 0 AS compressed,
	count(*) FILTER (WHERE NOT flags && '{head,block,more}') AS others
	FROM pg_class c, generate_series(0, pg_relation_size(c.reltoastrelid) / current_setting('block_size')::int - 1) b,
	inplace_rows(c.reltoastrelid, b) r WHERE c.oid = 't'::regclass AND body_len > 0;
-- what is not there
SELECT * FROM inplace_wal_summary('0/2000000', '0/1000000');
\set VERBOSITY terse
SELECT * FROM inplace_wal_summary(pg_current_wal_flush_lsn(), 'FFFFFFFF/0');
SELECT * FROM inplace_wal_summary('0/0', pg_current_wal_flush_lsn());
-- not for everybody
CREATE ROLE regress_wal_summary;
SET ROLE regress_wal_summary;
SELECT count(*) FROM inplace_wal_summary('0/1000000', '0/1000000');
RESET ROLE;
GRANT pg_read_server_files TO regress_wal_summary;
SELECT has_function_privilege('regress_wal_summary', 'inplace_wal_summary(pg_lsn, pg_lsn)', 'EXECUTE');
DROP ROLE regress_wal_summary;
DROP TABLE t;
