/*-------------------------------------------------------------------------
 * tidset_pg.h
 *	  tidset in the server: in a memory context, or in dynamic shared memory.
 *
 * No memory is an answer here too (false, NULL), not an error.
 *-------------------------------------------------------------------------
 */
#ifndef TIDSET_PG_H
#define TIDSET_PG_H

#include "storage/itemptr.h"
#include "utils/dsa.h"

#include "tidset.h"

/*
 * In a new child of the context, which goes with tidset_pg_destroy() or the
 * parent.
 */
extern TidSet *tidset_pg_create(MemoryContext parent, size_t limit);

/*
 * What workers need to see is in the area, the rest in the context.  The area
 * must be new, and have no more than the limit; from now on it takes no more
 * than that, whatever it is divided into.
 */
extern TidSet *tidset_pg_create_shared(MemoryContext parent, dsa_area *area, size_t limit);

/* By tidset_handle() of a sealed set; end with tidset_detach(). */
extern TidSet *tidset_pg_attach(MemoryContext context, dsa_area *area, dsa_pointer handle);

extern void tidset_pg_destroy(TidSet *set);

static inline bool
tidset_pg_lookup(TidSetLookup *lookup, const ItemPointerData *tid)
{
	return tidset_lookup(lookup, ItemPointerGetBlockNumberNoCheck(tid),
						 ItemPointerGetOffsetNumberNoCheck(tid));
}

#endif							/* TIDSET_PG_H */
