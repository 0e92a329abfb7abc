/*-------------------------------------------------------------------------
 * flush_relation.c
 *	  For tests: flush_relation(regclass) writes a relation's pages, as the background writer may
 *	  at any moment.
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "fmgr.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(flush_relation);

Datum
flush_relation(PG_FUNCTION_ARGS)
{
	Relation	rel = relation_open(PG_GETARG_OID(0), AccessShareLock);

	FlushRelationBuffers(rel);
	relation_close(rel, AccessShareLock);
	PG_RETURN_VOID();
}
