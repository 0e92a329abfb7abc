/*-------------------------------------------------------------------------
 * ip_guard.c
 *	  Keeps functions that take every table for a heap away from ours.
 *
 * pg_visibility's checks look at rows as heap tuples, and may set hint bits in
 * what they take for tuple headers.  Other extensions ask for the table's access
 * method first.  A function manager hook puts a test before those functions.
 *-------------------------------------------------------------------------
 */
#include "ip_compat.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "fmgr.h"
#include "utils/syscache.h"

#include "ip_guard.h"
#include "ip_handler.h"

static needs_fmgr_hook_type next_needs_fmgr_hook;
static fmgr_hook_type next_fmgr_hook;

static Datum check_visible(PG_FUNCTION_ARGS);
static Datum check_frozen(PG_FUNCTION_ARGS);

/* What is called in place of whom. */
static struct
{
	const char *name;
	PGFunction	guard;
	PGFunction	original;		/* known once it has been called */
}			guarded[] = {
	{"pg_check_visible", check_visible},
	{"pg_check_frozen", check_frozen}
};

static Datum
call_guarded(int which, FunctionCallInfo fcinfo)
{
	Relation	rel = try_relation_open(PG_GETARG_OID(0), AccessShareLock);

	if (rel != NULL)
	{
		if (rel->rd_tableam == &ip_methods)
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("%s cannot read inplace table \"%s\"",
							guarded[which].name, RelationGetRelationName(rel)),
					 errhint("Use inplace_check('%s').", RelationGetRelationName(rel))));
		relation_close(rel, AccessShareLock);
	}
	return guarded[which].original(fcinfo);
}

static Datum
check_visible(PG_FUNCTION_ARGS)
{
	return call_guarded(0, fcinfo);
}

static Datum
check_frozen(PG_FUNCTION_ARGS)
{
	return call_guarded(1, fcinfo);
}

/* Index in guarded[], or -1.  Asked for every function that is not built in. */
static int
find_guarded(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	int			result = -1;

	if (!HeapTupleIsValid(tuple))
		return -1;
	if (((Form_pg_proc) GETSTRUCT(tuple))->prolang == ClanguageId)
	{
		for (int i = 0; i < lengthof(guarded); i++)
		{
			if (strcmp(NameStr(((Form_pg_proc) GETSTRUCT(tuple))->proname), guarded[i].name) == 0)
				result = i;
		}
	}
	ReleaseSysCache(tuple);
	return result;
}

static bool
guard_needs_fmgr_hook(Oid function)
{
	return (next_needs_fmgr_hook && next_needs_fmgr_hook(function)) ||
		find_guarded(function) >= 0;
}

static void
guard_fmgr_hook(FmgrHookEventType event, FmgrInfo *flinfo, Datum *arg)
{
	int			which = -1;

	/* not for each call of just any function */
	if (event == FHET_START && flinfo->fn_retset && flinfo->fn_nargs == 1)
		which = find_guarded(flinfo->fn_oid);

	if (which >= 0 && flinfo->fn_addr != guarded[which].guard)
	{
		guarded[which].original = flinfo->fn_addr;
		flinfo->fn_addr = guarded[which].guard;
	}
	if (next_fmgr_hook)
		next_fmgr_hook(event, flinfo, arg);
}

void
ip_guard_init(void)
{
	next_needs_fmgr_hook = needs_fmgr_hook;
	next_fmgr_hook = fmgr_hook;
	needs_fmgr_hook = guard_needs_fmgr_hook;
	fmgr_hook = guard_fmgr_hook;
}
