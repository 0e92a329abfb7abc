/*-------------------------------------------------------------------------
 * ip_result.c
 *	  Result rows of the SQL functions that show pages.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "nodes/lockoptions.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/rls.h"
#include "utils/tuplestore.h"

#include "ip_result.h"

const char *const ip_result_mode_names[] = {
	[LockTupleKeyShare] = "key share",
	[LockTupleShare] = "share",
	[LockTupleNoKeyExclusive] = "no key update",
	[LockTupleExclusive] = "update"
};

bool
ip_result_may_show(Relation rel)
{
	Oid			relid = RelationGetRelid(rel);

	return pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) == ACLCHECK_OK &&
		check_enable_rls(relid, InvalidOid, true) != RLS_ENABLED;
}

BlockNumber
ip_result_check_block(Relation rel, int64 block)
{
	if (block < 0 || block >= RelationGetNumberOfBlocks(rel))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("block " INT64_FORMAT " is out of range for relation \"%s\"",
						block, RelationGetRelationName(rel))));
	return (BlockNumber) block;
}

void
ip_result_put_if(IpResult *r, bool is, Datum value)
{
	Assert(r->n < IP_RESULT_COLUMNS);
	r->values[r->n] = is ? value : (Datum) 0;
	r->nulls[r->n++] = !is;
}

void
ip_result_put(IpResult *r, Datum value)
{
	ip_result_put_if(r, true, value);
}

void
ip_result_put_int(IpResult *r, int32 value)
{
	ip_result_put(r, Int32GetDatum(value));
}

void
ip_result_put_text(IpResult *r, const char *text)
{
	ip_result_put_if(r, text != NULL,
					 text ? CStringGetTextDatum(text) : (Datum) 0);
}

void
ip_result_put_xid(IpResult *r, IpXid xid)
{
	ip_result_put_if(r, !IpXidIsFrozen(xid), Int64GetDatum((int64) xid));
}

void
ip_result_put_tid_if(IpResult *r, bool is, BlockNumber block, OffsetNumber off)
{
	ItemPointer tid = palloc(sizeof(ItemPointerData));

	ItemPointerSet(tid, block, off);
	ip_result_put_if(r, is, PointerGetDatum(tid));
}

void
ip_result_put_ptr_if(IpResult *r, bool is_undo, bool is_cid, IpPtr ptr)
{
	ip_result_put_tid_if(r, is_undo, ptr.block, ptr.off);
	ip_result_put_if(r, is_cid, Int64GetDatum(ptr.block));
}

void
ip_result_emit(ReturnSetInfo *rsinfo, IpResult *r)
{
	while (r->n < rsinfo->setDesc->natts)
		ip_result_put_if(r, false, (Datum) 0);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, r->values,
						 r->nulls);
}

void
ip_result_put_flags(IpResult *r, const IpFlagName *names, int n, uint32 flags)
{
	Datum	   *elems = palloc(n * sizeof(Datum));
	int			nelems = 0;

	for (int i = 0; i < n; i++)
	{
		if (flags & names[i].flag)
			elems[nelems++] = CStringGetTextDatum(names[i].name);
	}
	ip_result_put(r,
				  PointerGetDatum(construct_array(elems, nelems, TEXTOID, -1,
												  false, TYPALIGN_INT)));
}
