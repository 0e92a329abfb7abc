/*-------------------------------------------------------------------------
 * ip_check.c
 *	  inplace_check(): everything that is wrong with the pages of a table.
 *
 * The first pass checks each page by itself.  Then rows are checked against
 * their undo, undo records against their rows, the rings, and large values
 * against the rows that have them.
 *
 * All passes work on private copies: no lock is held while something is
 * decoded, and none while another one is taken, so the order in which writers
 * or redo lock pages does not matter.  What concerns several pages is checked
 * optimistically instead: a problem counts only if the row (or the metapage)
 * is unchanged after the other pages were read, and if the removal horizon,
 * ours or that of another backend, has not passed the undo record in question
 * until then.  The result is the same as if all the locks had been held.
 *
 * These functions do not trust what they read.  A page that cannot even be read
 * raises an error in the buffer manager; a subtransaction turns that into a
 * result.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/relation.h"
#include "access/xact.h"
#include "storage/lwlock.h"
#include "storage/procarray.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "ip_check_row.h"
#include "ip_check_undo.h"
#include "ip_check_value.h"
#include "ip_rel.h"

PG_FUNCTION_INFO_V1(inplace_check);
PG_FUNCTION_INFO_V1(inplace_check_if_exists);

PGDLLEXPORT Datum inplace_check(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum inplace_check_if_exists(PG_FUNCTION_ARGS);

/* Check the table, close it, and return all that is wrong with it. */
static void
check(Relation rel, FunctionCallInfo fcinfo)
{
	IpCheck    *c = palloc0(sizeof(IpCheck));
	BlockNumber nblocks;

	c->rel = rel;
	c->rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	c->strategy = GetAccessStrategy(BAS_BULKREAD);
	ip_check_refresh_horizon(c);

	(void) ip_check_new_pages(c);
	nblocks = c->nblocks;
	for (BlockNumber block = 0; block < nblocks; block++)
	{
		CHECK_FOR_INTERRUPTS();
		if (c->pages[block] & PAGE_VERSIONS)
			ip_check_row_undo(c, block);
		else if (ip_check_page_kind(c, block) == IP_PAGE_UNDO)
			ip_check_undo_records(c, block);
	}
	ip_check_undo_rings(c);
	ip_check_values(c);

	if (BufferIsValid(c->vm))
		ReleaseBuffer(c->vm);
	FreeAccessStrategy(c->strategy);
	relation_close(c->rel, AccessShareLock);
}

Datum
inplace_check(PG_FUNCTION_ARGS)
{
	Relation	rel = ip_rel_open_to_inspect(PG_GETARG_OID(0));

	CompatInitMaterializedSRF(fcinfo);
	check(rel, fcinfo);
	return (Datum) 0;
}

Datum
inplace_check_if_exists(PG_FUNCTION_ARGS)
{
	Relation	rel = ip_rel_try_open_to_inspect(PG_GETARG_OID(0));

	CompatInitMaterializedSRF(fcinfo);
	if (rel != NULL)
		check(rel, fcinfo);
	return (Datum) 0;
}
