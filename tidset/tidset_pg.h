/*-------------------------------------------------------------------------
 * tidset_pg.h
 *	  tidset in the server: in a memory context, or in dynamic shared memory.
 *
 * As elsewhere in tidset, lack of memory is a result (false, NULL), not an
 * error.
 *-------------------------------------------------------------------------
 */
#ifndef TIDSET_PG_H
#define TIDSET_PG_H

#include "storage/itemptr.h"
#include "utils/dsa.h"

#include "tidset.h"

/*
 * Create a set in a new child of the context, which tidset_pg_destroy() or the
 * parent's deletion frees.
 */
extern TidSet *tidset_pg_create(MemoryContext parent, size_t limit);

/*
 * Create a set of which the part that workers need is in the area, the rest in
 * the context.  The area must be new, and not exceed the limit.  From this
 * call on the area stays within the limit, however it is divided.
 */
extern TidSet *tidset_pg_create_shared(MemoryContext parent, dsa_area *area,
									   size_t limit);

/* Attach to a sealed set by its tidset_handle(); end with tidset_detach(). */
extern TidSet *tidset_pg_attach(MemoryContext context, dsa_area *area,
								dsa_pointer handle);

extern void tidset_pg_destroy(TidSet *set);

static inline bool
tidset_pg_lookup(TidSetLookup *lookup, const ItemPointerData *tid)
{
	return tidset_lookup(lookup, ItemPointerGetBlockNumberNoCheck(tid),
						 ItemPointerGetOffsetNumberNoCheck(tid));
}

#endif							/* TIDSET_PG_H */
