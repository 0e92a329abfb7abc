/*-------------------------------------------------------------------------
 * set_next_xid.c
 *	  For tests: set_next_xid(xid8) moves the counter of transaction ids while the server runs.
 *
 * The id is to be the first of a page of pg_xact, a multiple of 32768: its transaction makes the page.
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "fmgr.h"
#include "storage/lwlock.h"
#include "utils/xid8.h"

#include "compat_xid.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(set_next_xid);

Datum
set_next_xid(PG_FUNCTION_ARGS)
{
	LWLockAcquire(XidGenLock, LW_EXCLUSIVE);
	TransamVariables->nextXid = PG_GETARG_FULLTRANSACTIONID(0);
	LWLockRelease(XidGenLock);
	PG_RETURN_VOID();
}
