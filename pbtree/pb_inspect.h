/*-------------------------------------------------------------------------
 * pb_inspect.h
 *	  Functions that show what an index consists of.
 *-------------------------------------------------------------------------
 */
#ifndef PB_INSPECT_H
#define PB_INSPECT_H

#include "compat.h"

#include "storage/lockdefs.h"
#include "utils/rel.h"

pg_noreturn extern void pb_inspect_wrong_kind(Oid oid);
extern Relation pb_inspect_open(Oid oid, LOCKMODE lock);

#endif							/* PB_INSPECT_H */
