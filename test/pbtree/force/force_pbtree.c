/*-------------------------------------------------------------------------
 * force_pbtree.c
 *	  For tests: CREATE INDEX makes a pbtree where it would make a btree.
 *
 * Not those of constraints, and unique ones from 18 on only.  An index stays a btree if it names
 * an operator class that pbtree does not have, a parameter of btree alone, or if
 * pbtree is not there.
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_opclass.h"
#include "commands/defrem.h"
#include "fmgr.h"
#include "nodes/makefuncs.h"
#include "tcop/utility.h"
#include "utils/guc.h"
#include "utils/varlena.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

static ProcessUtility_hook_type next_hook;
static char *unique_stays_btree;	/* tables */

static bool
stays_btree(const IndexStmt *stmt)
{
	List	   *names;
	ListCell   *cell;

	if (!stmt->unique)
		return false;
	if (atoi(GetConfigOption("server_version_num", false, false)) < 180000)
		return true;
	if (SplitIdentifierString(pstrdup(unique_stays_btree), ',', &names))
	{
		foreach(cell, names)
		{
			if (strcmp((char *) lfirst(cell), stmt->relation->relname) == 0)
				return true;
		}
	}
	return false;
}

static bool
can_be_pbtree(const IndexStmt *stmt)
{
	Oid			am = get_index_am_oid("pbtree", true);
	ListCell   *cell;

	if (!OidIsValid(am) || stays_btree(stmt) || stmt->isconstraint || stmt->excludeOpNames != NIL ||
		strcmp(stmt->accessMethod, "btree") != 0)
		return false;
	foreach(cell, stmt->options)
	{
		if (strcmp(lfirst_node(DefElem, cell)->defname, "deduplicate_items") == 0)
			return false;
	}
	foreach(cell, stmt->indexParams)
	{
		List	   *opclass = lfirst_node(IndexElem, cell)->opclass;

		if (opclass != NIL && !OidIsValid(get_opclass_oid(am, opclass, true)))
			return false;
	}
	return true;
}

static void
force_utility(PlannedStmt *pstmt, const char *query, bool read_only, ProcessUtilityContext context,
			  ParamListInfo params, QueryEnvironment *env, DestReceiver *dest, QueryCompletion *qc)
{
	if (IsA(pstmt->utilityStmt, IndexStmt) && can_be_pbtree((IndexStmt *) pstmt->utilityStmt))
	{
		/* not copyObject: 19's packages take it for what a newer compiler has */
		if (read_only)
			pstmt = copyObjectImpl(pstmt);
		read_only = false;
		((IndexStmt *) pstmt->utilityStmt)->accessMethod = pstrdup("pbtree");
	}
	if (next_hook)
		next_hook(pstmt, query, read_only, context, params, env, dest, qc);
	else
		standard_ProcessUtility(pstmt, query, read_only, context, params, env, dest, qc);
}

void
_PG_init(void)
{
	DefineCustomStringVariable("force_pbtree.unique_stays_btree", "Tables whose unique indexes are not made pbtrees.", NULL,
							   &unique_stays_btree, "", PGC_SIGHUP, 0, NULL, NULL, NULL);
	next_hook = ProcessUtility_hook;
	ProcessUtility_hook = force_utility;
}
