/* pbtree--1.0.sql */

\echo Use "CREATE EXTENSION pbtree" to load this file. \quit

CREATE FUNCTION pbtree_handler(internal) RETURNS index_am_handler
	LANGUAGE C STRICT AS 'MODULE_PATHNAME';

CREATE ACCESS METHOD pbtree TYPE INDEX HANDLER pbtree_handler;
COMMENT ON ACCESS METHOD pbtree IS 'b-tree index access method with compressed pages';

-- Make an operator class for a type from one of its btree operator classes: from the default one, and then it is the
-- default one here, or from the named one.  It lies in this extension's schema; so does its family, of the same name as the btree
-- family, which gets the operators and functions of that, and is made with the first of its classes.  One of that name may be there, of
-- another btree family, or from before that one got members: it gets those that it lacks.
CREATE FUNCTION pbtree_make_opclass(for_type regtype, btree_opclass name DEFAULT NULL) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
	c record;
	m record;
	place text;
	family oid;
BEGIN
	SELECT o.oid, o.opcname, o.opcfamily, o.opcdefault, f.opfname INTO c
	FROM pg_opclass o JOIN pg_opfamily f ON f.oid = o.opcfamily JOIN pg_am a ON a.oid = o.opcmethod
	WHERE a.amname = 'btree' AND o.opcintype = for_type
		AND CASE WHEN btree_opclass IS NULL THEN o.opcdefault ELSE o.opcname = btree_opclass END
	ORDER BY o.oid LIMIT 1;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'type % has no such btree operator class', for_type
			USING ERRCODE = 'undefined_object', HINT = 'Domains use the operator classes of their base types.';
	END IF;
	SELECT nspname INTO place
	FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'pbtree';
	SELECT f.oid INTO family
	FROM pg_opfamily f JOIN pg_am a ON a.oid = f.opfmethod JOIN pg_namespace n ON n.oid = f.opfnamespace
	WHERE a.amname = 'pbtree' AND f.opfname = c.opfname AND n.nspname = place;
	IF NOT FOUND THEN
		EXECUTE format('CREATE OPERATOR FAMILY %I.%I USING pbtree', place, c.opfname);
	END IF;
	IF EXISTS (SELECT FROM pg_amop a JOIN pg_amop b USING (amoplefttype, amoprighttype, amopstrategy)
			   WHERE a.amopfamily = c.opcfamily AND a.amoppurpose = 's' AND b.amopfamily = family AND a.amopopr <> b.amopopr)
		OR EXISTS (SELECT FROM pg_amproc a JOIN pg_amproc b USING (amproclefttype, amprocrighttype, amprocnum)
				   WHERE a.amprocfamily = c.opcfamily AND b.amprocfamily = family AND a.amproc <> b.amproc) THEN
		RAISE EXCEPTION 'pbtree has an operator family "%" that orders values in another way', c.opfname
			USING ERRCODE = 'duplicate_object', HINT = 'Rename the btree operator family.';
	END IF;
	FOR m IN
		SELECT format('OPERATOR %s %s', amopstrategy, amopopr::regoperator) AS member
		FROM pg_amop o WHERE amopfamily = c.opcfamily AND amoppurpose = 's'
			AND NOT EXISTS (SELECT FROM pg_amop WHERE amopfamily = family AND amoplefttype = o.amoplefttype
							AND amoprighttype = o.amoprighttype AND amopstrategy = o.amopstrategy)
		UNION ALL
		SELECT format('FUNCTION %s (%s, %s) %s', amprocnum, format_type(amproclefttype, NULL),
					  format_type(amprocrighttype, NULL), amproc::regprocedure)
		FROM pg_amproc p WHERE amprocfamily = c.opcfamily
			AND NOT EXISTS (SELECT FROM pg_amproc WHERE amprocfamily = family AND amproclefttype = p.amproclefttype
							AND amprocrighttype = p.amprocrighttype AND amprocnum = p.amprocnum)
	LOOP
		EXECUTE format('ALTER OPERATOR FAMILY %I.%I USING pbtree ADD %s', place, c.opfname, m.member);
	END LOOP;
	EXECUTE format('CREATE OPERATOR CLASS %I.%I %s FOR TYPE %s USING pbtree FAMILY %I.%I AS STORAGE %s',
				   place, c.opcname, CASE WHEN c.opcdefault THEN 'DEFAULT' END, for_type, place, c.opfname, for_type);
END
$$;
COMMENT ON FUNCTION pbtree_make_opclass(regtype, name) IS 'make a pbtree operator class from a btree operator class';

-- those of all types of the server
DO $$
DECLARE
	c record;
BEGIN
	FOR c IN
		SELECT o.opcintype, o.opcname
		FROM pg_catalog.pg_opclass o
			JOIN pg_catalog.pg_am a ON a.oid = o.opcmethod AND a.amname = 'btree'
			JOIN pg_catalog.pg_namespace n ON n.oid = o.opcnamespace AND n.nspname = 'pg_catalog'
		ORDER BY o.oid
	LOOP
		PERFORM @extschema@.pbtree_make_opclass(c.opcintype::regtype, c.opcname);
	END LOOP;
END
$$;

CREATE FUNCTION pbtree_check(index regclass, heapallindexed bool DEFAULT false) RETURNS bigint
	LANGUAGE C STRICT VOLATILE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION pbtree_check(regclass, bool) IS 'check an index; the table is locked against writers, on a standby replay must be paused; the result is the number of rows in it';

CREATE FUNCTION pbtree_page(index regclass, block bigint, OUT level int, OUT prev bigint, OUT next bigint,
		OUT flags text[], OUT items int, OUT free int, OUT prefix bytea, OUT low bytea, OUT high bytea) RETURNS record
	LANGUAGE C STRICT VOLATILE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION pbtree_page(regclass, bigint) IS 'one page of an index';

CREATE FUNCTION pbtree_items(index regclass, block bigint, OUT "offset" int, OUT length int, OUT dead bool,
		OUT key text[], OUT bytes bytea, OUT downlink bigint, OUT tids tid[]) RETURNS SETOF record
	LANGUAGE C STRICT VOLATILE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION pbtree_items(regclass, bigint) IS 'the items of one page of an index';

CREATE FUNCTION pbtree_stats(index regclass, OUT height int, OUT leaf_pages bigint, OUT inner_pages bigint,
		OUT deleted_pages bigint, OUT meta_pages bigint, OUT items bigint, OUT rows bigint, OUT slot_bytes bigint,
		OUT key_bytes bigint, OUT tid_bytes bigint, OUT prefix_bytes bigint, OUT fence_bytes bigint,
		OUT header_bytes bigint, OUT free_bytes bigint, OUT saved_bytes bigint) RETURNS record
	LANGUAGE C STRICT VOLATILE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION pbtree_stats(regclass) IS 'what an index''s bytes are for';

CREATE FUNCTION pbtree_counters(reset bool DEFAULT false, OUT descents bigint, OUT keys bigint, OUT columns bigint,
		OUT bytes bigint, OUT heads bigint) RETURNS record
	LANGUAGE C STRICT VOLATILE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION pbtree_counters(bool) IS 'what this session''s searches in pbtree indexes have compared';

REVOKE ALL ON FUNCTION pbtree_check(regclass, bool), pbtree_page(regclass, bigint), pbtree_items(regclass, bigint),
	pbtree_stats(regclass) FROM PUBLIC;
