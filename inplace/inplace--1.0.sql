/* inplace/inplace--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION inplace" to load this file. \quit

CREATE FUNCTION inplace_tableam_handler(internal)
RETURNS table_am_handler
AS 'MODULE_PATHNAME'
LANGUAGE C;
COMMENT ON FUNCTION inplace_tableam_handler(internal) IS
	'handler of the inplace table access method';

CREATE ACCESS METHOD inplace TYPE TABLE HANDLER inplace_tableam_handler;
COMMENT ON ACCESS METHOD inplace IS
	'tables that are updated in place, with old versions in undo';

-- ---- looking into pages ---------------------------------------------------

CREATE FUNCTION inplace_page(
	rel regclass,
	block int8,
	OUT kind text,				-- meta, data, undo, free, lock, new
	OUT lsn pg_lsn,
	OUT lower int4,
	OUT upper int4,
	OUT special int4,
	OUT free int4,
	OUT items int4,
	OUT xid_base int8,			-- data pages
	OUT default_xid xid,
	OUT default_cid int8,
	OUT newest_xid int8,		-- undo pages
	OUT slot int4,
	OUT next int8,				-- of lock pages and the metapage, too
	OUT current bool,
	OUT lock_page int8)			-- data pages: where their lock sets begin
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION inplace_page(regclass, int8) IS
	'header and special space of a page of an inplace table';

CREATE FUNCTION inplace_rows(
	rel regclass,
	block int8,
	OUT off int4,
	OUT state text,				-- unused, dead, undo; of a row frozen, default, changed, inserted, updated, deleted, overlaid; damaged
	OUT len int4,
	OUT natts int4,
	OUT flags text[],			-- of a TOAST table's rows also head, block, more (continues one), compressed
	OUT xid int8,				-- NULL: visible to all
	OUT undo tid,				-- NULL: there is no undo record
	OUT cid int8,				-- of the insertion, where there is no undo record
	OUT body_len int4,
	OUT data bytea)				-- body as stored; NULL if the caller may not read the table
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 100;
COMMENT ON FUNCTION inplace_rows(regclass, int8) IS
	'rows on a data page of an inplace table; none for other pages';

CREATE FUNCTION inplace_undo_records(
	rel regclass,
	block int8,
	OUT off int4,
	OUT kind text,				-- update, delete, moves
	OUT flags text[],
	OUT xid int8,
	OUT row_tid tid,
	OUT cid int8,
	OUT prev_xid int8,			-- NULL: the version before is visible to all
	OUT prev_undo tid,
	OUT prev_cid int8,			-- the version before was inserted by this command
	OUT forward tid,			-- where an update has moved the row
	OUT delta_len int4)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 100;
COMMENT ON FUNCTION inplace_undo_records(regclass, int8) IS
	'undo records on an undo page of an inplace table, or at home on a data page; none for other pages';

CREATE FUNCTION inplace_undo_rings(
	rel regclass,
	OUT slot int4,
	OUT current int8,			-- page that takes new records
	OUT pages int8,
	OUT records int8,
	OUT bytes int8,
	OUT newest_xid int8,
	OUT oldest_page_xid int8,	-- newest xid of the page that is used again next
	OUT removable_pages int8)	-- pages, but for the current one, with no xid that anybody needs
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 16;
COMMENT ON FUNCTION inplace_undo_rings(regclass) IS
	'undo page rings of an inplace table';

CREATE FUNCTION inplace_versions(
	rel regclass,
	row_tid tid,
	OUT n int4,
	OUT xid int8,				-- NULL: visible to all
	OUT status text,			-- mine, running, committed, aborted, all
	OUT kind text,				-- insert, update, delete, base; gone: undo is no longer there
	OUT cid int8,
	OUT undo tid,
	OUT body_len int4,
	OUT contents text)			-- NULL if the caller may not read the table
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE ROWS 10;
COMMENT ON FUNCTION inplace_versions(regclass, tid) IS
	'versions of a row of an inplace table, newest first';

CREATE FUNCTION inplace_locks(
	rel regclass,
	OUT page int8,				-- the set's, and its number there
	OUT set int4,
	OUT locker int8,
	OUT mode text,
	OUT live bool,				-- the locker is running; else the set's place is free
	OUT block int8,				-- these rows are locked
	OUT rows int4[])
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 100;
COMMENT ON FUNCTION inplace_locks(regclass) IS
	'row locks of an inplace table, those that have ended included, as long as nothing else has come in their place';

CREATE FUNCTION inplace_toast_stats(
	rel regclass,
	OUT live_values int8,		-- in the TOAST table
	OUT blocks int8,			-- that they are cut into
	OUT raw_bytes int8,			-- their lengths
	OUT stored_bytes int8,		-- of their blocks, compressed
	OUT plain_bytes int8,		-- of these, by compression
	OUT pglz_bytes int8,
	OUT lz4_bytes int8,
	OUT shared_bytes int8,		-- that old versions of the values have, too; once for each
	OUT old_values int8,		-- that are still there, for snapshots or until a prune
	OUT old_bytes int8)			-- that only these have
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED COST 10000 ROWS 1;
COMMENT ON FUNCTION inplace_toast_stats(regclass) IS
	'large values of an inplace table, their blocks and their compression';

-- ---- what holds undo back -------------------------------------------------

-- VACUUM's own snapshots hold nothing back, nor do those of its workers.  A
-- snapshot of another database does on a standby only, which reports it to its
-- primary.  A transaction of another database does, if it has an xid, by the
-- snapshots that are taken here meanwhile.
CREATE VIEW inplace_horizon AS
SELECT holder,
	pid,						-- NULL: no process of this server
	name,						-- application_name, gid or slot_name
	database,					-- NULL: all
	usename,
	state,						-- as in pg_stat_activity
	query,
	xmin,						-- undo of this xid and of later ones stays
	age(xmin) AS xids,			-- assigned since
	since,
	remedy
FROM (
	SELECT b.holder, a.pid, a.application_name AS name,
		a.datname::text AS database, a.usename::text, a.state,
		left(a.query, 80) AS query,
		CASE WHEN age(a.backend_xid) > age(b.xmin) OR b.xmin IS NULL
			THEN a.backend_xid ELSE b.xmin END AS xmin,
		coalesce(a.xact_start, a.backend_start) AS since,
		CASE b.holder WHEN 'standby' THEN 'end the oldest query of the standby'
			WHEN 'backend' THEN format('SELECT pg_terminate_backend(%s)', a.pid)
			END AS remedy
	FROM pg_stat_activity a
		LEFT JOIN pg_stat_get_wal_senders() w ON w.pid = a.pid,
		LATERAL (
			-- A walsender with a database is of logical replication.  What
			-- others are is shown only to those who may see it.
			SELECT CASE WHEN w.pid IS NOT NULL AND a.datid IS NULL THEN 'standby'
				WHEN w.pid IS NOT NULL OR a.backend_type IS NOT NULL
				THEN 'backend' ELSE 'unknown' END AS holder,
				CASE WHEN a.datname = current_database()
					OR w.pid IS NOT NULL AND a.datid IS NULL
					OR pg_is_in_recovery() THEN a.backend_xmin END AS xmin) b
	WHERE (b.xmin IS NOT NULL OR a.backend_xid IS NOT NULL)
		AND a.pid <> pg_backend_pid()
		AND coalesce(a.leader_pid, a.pid) NOT IN (
			SELECT v.pid FROM pg_stat_progress_vacuum v)
	UNION ALL
	SELECT 'prepared transaction', NULL, gid, database::text, owner::text,
		NULL, NULL, transaction, prepared, format('COMMIT PREPARED %L', gid)
	FROM pg_prepared_xacts
	UNION ALL
	SELECT CASE WHEN slot_type = 'logical'
			OR slot_name = 'pg_conflict_detection' THEN 'replication slot'
			ELSE 'slot of a standby' END,
		active_pid, slot_name::text, database::text, NULL, NULL, NULL, xmin,
		NULL,
		CASE WHEN slot_name = 'pg_conflict_detection'	-- 19's, physical
			THEN 'let the subscriptions with retain_dead_tuples catch up'
			WHEN NOT active
			THEN format('SELECT pg_drop_replication_slot(%L)', slot_name)
			WHEN slot_type = 'physical' THEN 'end the oldest query of the standby'
			ELSE 'let the slot''s consumer catch up' END
	FROM pg_replication_slots
	WHERE xmin IS NOT NULL AND wal_status IS DISTINCT FROM 'lost') holders
ORDER BY age(xmin) DESC;
COMMENT ON VIEW inplace_horizon IS
	'what keeps undo records from being removed, the oldest first';
GRANT SELECT ON inplace_horizon TO PUBLIC;

-- ---- WAL ------------------------------------------------------------------

CREATE FUNCTION inplace_wal_summary(
	from_lsn pg_lsn,
	to_lsn pg_lsn,
	OUT resource_manager text,
	OUT record_type text,
	OUT operation text,			-- NULL: the records; else page operations in them
	OUT count int8,
	OUT record_bytes int8,		-- without page images; of operations, what they take in records
	OUT image_bytes int8,
	OUT aligned_bytes int8)		-- all of it, each record rounded up as it is in WAL
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE COST 10000 ROWS 50;
COMMENT ON FUNCTION inplace_wal_summary(pg_lsn, pg_lsn) IS
	'WAL records by type, and page operations of inplace tables in them';

-- ---- checking -------------------------------------------------------------

-- It reads pages in subtransactions, which parallel mode does not allow.
CREATE FUNCTION inplace_check(
	rel regclass,
	OUT block int8,
	OUT off int4,				-- NULL: the problem is not with one item
	OUT problem text)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 10000 ROWS 10;
COMMENT ON FUNCTION inplace_check(regclass) IS
	'everything that is wrong with the pages of an inplace table';

-- As above, but no rows if the table has been dropped, or is no inplace table.
CREATE FUNCTION inplace_check_if_exists(
	rel oid,
	OUT block int8,
	OUT off int4,
	OUT problem text)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 10000 ROWS 10;
COMMENT ON FUNCTION inplace_check_if_exists(oid) IS
	'internal: inplace_check for inplace_check_all';

-- But temporary tables of other sessions, and on a standby unlogged tables.
-- Tables may be dropped while it runs.
CREATE FUNCTION inplace_check_all(
	OUT relation regclass,
	OUT block int8,
	OUT off int4,
	OUT problem text)
RETURNS SETOF record
LANGUAGE SQL VOLATILE PARALLEL UNSAFE COST 100000 ROWS 10
BEGIN ATOMIC
	SELECT c.oid::regclass, k.block, k.off, k.problem
	FROM pg_class c JOIN pg_am a ON a.oid = c.relam,
		LATERAL inplace_check_if_exists(c.oid) k
	WHERE a.amname = 'inplace' AND c.relkind IN ('r', 'm', 't')
		AND (c.relpersistence <> 't' OR c.relnamespace = pg_my_temp_schema())
		AND (c.relpersistence <> 'u' OR NOT pg_is_in_recovery());
END;
COMMENT ON FUNCTION inplace_check_all() IS
	'everything that is wrong with the pages of the inplace tables of this database';

REVOKE ALL ON FUNCTION inplace_page(regclass, int8) FROM PUBLIC;
REVOKE ALL ON FUNCTION inplace_rows(regclass, int8) FROM PUBLIC;
REVOKE ALL ON FUNCTION inplace_undo_records(regclass, int8) FROM PUBLIC;
REVOKE ALL ON FUNCTION inplace_undo_rings(regclass) FROM PUBLIC;
REVOKE ALL ON FUNCTION inplace_versions(regclass, tid) FROM PUBLIC;
REVOKE ALL ON FUNCTION inplace_locks(regclass) FROM PUBLIC;
REVOKE ALL ON FUNCTION inplace_toast_stats(regclass) FROM PUBLIC;
REVOKE ALL ON FUNCTION inplace_check(regclass) FROM PUBLIC;
REVOKE ALL ON FUNCTION inplace_check_if_exists(oid) FROM PUBLIC;
REVOKE ALL ON FUNCTION inplace_check_all() FROM PUBLIC;
REVOKE ALL ON FUNCTION inplace_wal_summary(pg_lsn, pg_lsn) FROM PUBLIC;

GRANT EXECUTE ON FUNCTION inplace_page(regclass, int8) TO pg_stat_scan_tables;
GRANT EXECUTE ON FUNCTION inplace_rows(regclass, int8) TO pg_stat_scan_tables;
GRANT EXECUTE ON FUNCTION inplace_undo_records(regclass, int8) TO pg_stat_scan_tables;
GRANT EXECUTE ON FUNCTION inplace_undo_rings(regclass) TO pg_stat_scan_tables;
GRANT EXECUTE ON FUNCTION inplace_versions(regclass, tid) TO pg_stat_scan_tables;
GRANT EXECUTE ON FUNCTION inplace_locks(regclass) TO pg_stat_scan_tables;
GRANT EXECUTE ON FUNCTION inplace_toast_stats(regclass) TO pg_stat_scan_tables;
GRANT EXECUTE ON FUNCTION inplace_check(regclass) TO pg_stat_scan_tables;
GRANT EXECUTE ON FUNCTION inplace_check_if_exists(oid) TO pg_stat_scan_tables;
GRANT EXECUTE ON FUNCTION inplace_check_all() TO pg_stat_scan_tables;
-- as pg_walinspect's
GRANT EXECUTE ON FUNCTION inplace_wal_summary(pg_lsn, pg_lsn) TO pg_read_server_files;
