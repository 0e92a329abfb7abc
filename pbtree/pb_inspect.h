/*-------------------------------------------------------------------------
 * pb_inspect.h
 *	  Functions that show the contents of an index.
 *-------------------------------------------------------------------------
 */
#ifndef PB_INSPECT_H
#define PB_INSPECT_H

#include "compat.h"

#include "storage/lockdefs.h"
#include "utils/rel.h"

/* Raise the error for an object that is not a pbtree index. */
pg_noreturn extern void pb_inspect_wrong_kind(Oid oid);

/*
 * Open a pbtree index.  Error: it is not one, or another session's temporary
 * one, or an unlogged one during recovery.
 */
extern Relation pb_inspect_open(Oid oid, LOCKMODE lock);

#endif							/* PB_INSPECT_H */
