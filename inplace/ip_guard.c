/*-------------------------------------------------------------------------
 * ip_guard.c
 *	  Keeps code that takes every table for a heap away from our tables.
 *
 * Extensions write into their own tables with heap's functions, pg_visibility
 * and pageinspect read rows as heap tuples, and pg_repack swaps files between
 * tables.  docs/internals/heap-code.md says what such code does to our pages.
 * Where possible, this module stops the code before it begins:
 *
 * A function manager hook puts a test before those functions.
 *
 * A parse analysis hook makes tables of an extension heap tables unless its
 * script says otherwise.  It also refuses pg_repack's copy of a table if that
 * would have another access method, and REPACK (CONCURRENTLY), as core does.
 * ProcessUtility_hook and planner_hook are not used: Citus refuses to be
 * loaded after a library that has set them.
 *
 * pglogical's workers are kept from getting slots of our tables.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "fmgr.h"
#include "nodes/parsenodes.h"
#include "parser/analyze.h"
#include "postmaster/bgworker.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "ip_guard.h"
#include "ip_page.h"

/* our access methods are those that have this table of functions */
static const TableAmRoutine *our_methods;

static needs_fmgr_hook_type next_needs_fmgr_hook;
static fmgr_hook_type next_fmgr_hook;
static post_parse_analyze_hook_type next_post_parse_analyze_hook;

/* ---- access methods ------------------------------------------------------ */

/*
 * Returns whether the access method is one of this library, whatever its name.
 */
static bool
is_our_am(Oid am)
{
	HeapTuple	tuple = SearchSysCache1(AMOID, ObjectIdGetDatum(am));
	bool		ours;

	if (!HeapTupleIsValid(tuple))
		return false;
	ours = ((Form_pg_am) GETSTRUCT(tuple))->amtype == AMTYPE_TABLE &&
		GetTableAmRoutine(((Form_pg_am) GETSTRUCT(tuple))->amhandler) ==
		our_methods;
	ReleaseSysCache(tuple);
	return ours;
}

/*
 * Returns a table's access method; InvalidOid if there is no such table, or it
 * has none.
 */
static Oid
am_of_table(Oid table)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(table));
	Oid			am;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	am = ((Form_pg_class) GETSTRUCT(tuple))->relam;
	ReleaseSysCache(tuple);
	return am;
}

/*
 * Check the swap of a table's file with that of pg_repack's copy, which has
 * this access method.  pg_repack does not swap pg_class.relam.
 */
static void
check_swap(Oid table, Oid am_of_copy)
{
	Oid			am = am_of_table(table);

	if (!OidIsValid(am) || !OidIsValid(am_of_copy) || am == am_of_copy ||
		!(is_our_am(am) || is_our_am(am_of_copy)))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("pg_repack would give table \"%s\" a file of another access method",
					get_rel_name(table)),
			 errdetail("The access method of the table is \"%s\", that of its copy is \"%s\".",
					   get_am_name(am), get_am_name(am_of_copy)),
			 errhint("Run pg_repack with PGOPTIONS=\"-c default_table_access_method=%s\", or use VACUUM FULL, CLUSTER or ALTER TABLE ... SET ACCESS METHOD.",
					 get_am_name(am))));
}

/* ---- functions that take every table for a heap -------------------------- */

static void
check_table(const char *function, Datum table)
{
	if (is_our_am(am_of_table(DatumGetObjectId(table))))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("%s cannot read inplace table \"%s\"",
						function, get_rel_name(DatumGetObjectId(table))),
				 errhint("Use inplace_check('%s').",
						 get_rel_name(DatumGetObjectId(table)))));
}

static void
check_page(const char *function, Datum raw_page)
{
	bytea	   *bytes = DatumGetByteaPP(raw_page);
	Page		page = palloc(BLCKSZ);	/* aligned */

	if (VARSIZE_ANY_EXHDR(bytes) != BLCKSZ)
		return;					/* the function itself reports the error */
	memcpy(page, VARDATA_ANY(bytes), BLCKSZ);
	if (ip_page_is_ours(page))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("%s cannot read a page of an inplace table", function),
				 errhint("Use inplace_rows, inplace_page or inplace_undo_records.")));
	pfree(page);
}

static void
check_repack_swap(const char *function, Datum table)
{
	Oid			schema = get_namespace_oid("repack", true);
	char		copy[NAMEDATALEN];

	snprintf(copy, sizeof(copy), "table_%u", DatumGetObjectId(table));
	if (OidIsValid(schema))
		check_swap(DatumGetObjectId(table),
				   am_of_table(get_relname_relid(copy, schema)));
}

/*
 * A guarded function: its name, and the type of its first argument, which the
 * test examines.
 */
typedef struct GuardedFunction
{
	const char *name;
	Oid			argtype;
	void		(*check) (const char *function, Datum arg);
} GuardedFunction;

static const GuardedFunction guarded[] = {
	{"pg_check_visible", REGCLASSOID, check_table},
	{"pg_check_frozen", REGCLASSOID, check_table},
	{"heap_page_items", BYTEAOID, check_page},
	{"repack_swap", OIDOID, check_repack_swap}
};

/*
 * Returns the guarded function with that OID, or NULL.  This is called for
 * every function that is not built in.
 */
static const GuardedFunction *
find_guarded(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	const GuardedFunction *found = NULL;
	Form_pg_proc proc;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	if (proc->prolang == ClanguageId && proc->pronargs > 0)
	{
		for (int i = 0; i < lengthof(guarded); i++)
		{
			if (proc->proargtypes.values[0] == guarded[i].argtype &&
				strcmp(NameStr(proc->proname), guarded[i].name) == 0)
				found = &guarded[i];
		}
	}
	ReleaseSysCache(tuple);
	return found;
}

/* Returns the address of a C function, from pg_proc. */
static PGFunction
address_of(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool		isnull;
	Datum		library;
	Datum		symbol;
	PGFunction	address;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", function);
	symbol = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull);
	library = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_probin, &isnull);
	if (isnull)
		elog(ERROR, "null probin for C function %u", function);
	address = load_external_function(TextDatumGetCString(library),
									 TextDatumGetCString(symbol), true, NULL);
	ReleaseSysCache(tuple);
	return address;
}

/*
 * Called in place of a guarded function, but only once: a function that
 * returns rows is then called directly.
 */
static Datum
check_and_call(PG_FUNCTION_ARGS)
{
	const GuardedFunction *g = find_guarded(fcinfo->flinfo->fn_oid);

	if (g != NULL && !PG_ARGISNULL(0))
		g->check(g->name, PG_GETARG_DATUM(0));
	fcinfo->flinfo->fn_addr = address_of(fcinfo->flinfo->fn_oid);
	return fcinfo->flinfo->fn_addr(fcinfo);
}

static bool
guard_needs_fmgr_hook(Oid function)
{
	return (next_needs_fmgr_hook && next_needs_fmgr_hook(function)) ||
		find_guarded(function) != NULL;
}

static void
guard_fmgr_hook(FmgrHookEventType event, FmgrInfo *flinfo, Datum *arg)
{
	if (event == FHET_START && flinfo->fn_extra == NULL &&
		find_guarded(flinfo->fn_oid) != NULL)
		flinfo->fn_addr = check_and_call;
	if (next_fmgr_hook)
		next_fmgr_hook(event, flinfo, arg);
}

/* ---- pglogical ----------------------------------------------------------- */

/*
 * pglogical's workers cast the slots that they get for a table to
 * HeapTupleTableSlot, use the tuple in the slot, and delete with
 * simple_heap_delete.
 */
void
ip_guard_slot(Relation rel)
{
	if (MyBgworkerEntry != NULL &&
		strcmp(MyBgworkerEntry->bgw_library_name, "pglogical") == 0)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("pglogical cannot apply changes to inplace table \"%s\"",
						RelationGetRelationName(rel)),
				 errhint("Make the subscriber's table a heap table, or use CREATE SUBSCRIPTION.")));
}

/* ---- tables of extensions ------------------------------------------------ */

/*
 * Set from the first statement of an extension's script to its end.  It is a
 * parameter, although users cannot set it, because the script has its own
 * nesting level of parameters: however the script ends, its end restores both
 * this and default_table_access_method.
 */
static bool in_extension_script;

/*
 * Make the extension's tables heaps, because its C code is likely to take them
 * for heaps.  A script that sets default_table_access_method itself does so
 * later.
 */
static void
begin_extension_script(void)
{
	(void) set_config_option("inplace.in_extension_script", "on", PGC_INTERNAL,
							 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	if (is_our_am(get_am_oid(default_table_access_method, true)))
		(void) set_config_option("default_table_access_method", "heap",
								 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
								 true, 0, false);
}

/*
 * pg_repack makes the copy of table n with CREATE TABLE repack.table_n ...
 * AS.
 */
static void
check_repack_copy(const IntoClause *into)
{
	const char *am = into->accessMethod ? into->accessMethod :
		default_table_access_method;
	unsigned int table;
	int			end = 0;

	if (into->rel->schemaname && strcmp(into->rel->schemaname, "repack") == 0 &&
		sscanf(into->rel->relname, "table_%u%n", &table, &end) == 1 &&
		into->rel->relname[end] == '\0')
		check_swap((Oid) table, get_am_oid(am, true));
}

/* Core repacks heap tables only, but does not say what to do instead. */
static void
check_concurrent_repack(const RangeVar *name)
{
	Oid			table = RangeVarGetRelid(name, NoLock, true);

	if (!is_our_am(am_of_table(table)))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("cannot execute REPACK (CONCURRENTLY) on relation \"%s\"",
					get_rel_name(table)),
			 errdetail("This operation is only supported for the \"heap\" access method."),
			 errhint("Use REPACK without CONCURRENTLY, which locks the table, or VACUUM.")));
}

static void
guard_post_parse_analyze(ParseState *pstate, Query *query,
						 CompatJumbleState *jstate)
{
	const RangeVar *repacked = query->utilityStmt ?
		compat_concurrent_repack(query->utilityStmt) : NULL;

	if (creating_extension && !in_extension_script)
		begin_extension_script();
	if (repacked != NULL)
		check_concurrent_repack(repacked);
	if (query->utilityStmt && IsA(query->utilityStmt, CreateTableAsStmt))
		check_repack_copy(((CreateTableAsStmt *) query->utilityStmt)->into);
	if (next_post_parse_analyze_hook)
		next_post_parse_analyze_hook(pstate, query, jstate);
}

void
ip_guard_init(const TableAmRoutine *methods)
{
	our_methods = methods;
	DefineCustomBoolVariable("inplace.in_extension_script",
							 "An extension's script is being executed.", NULL,
							 &in_extension_script, false, PGC_INTERNAL,
							 GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE |
							 GUC_DISALLOW_IN_FILE, NULL, NULL, NULL);
	next_needs_fmgr_hook = needs_fmgr_hook;
	next_fmgr_hook = fmgr_hook;
	next_post_parse_analyze_hook = post_parse_analyze_hook;
	needs_fmgr_hook = guard_needs_fmgr_hook;
	fmgr_hook = guard_fmgr_hook;
	post_parse_analyze_hook = guard_post_parse_analyze;
}
