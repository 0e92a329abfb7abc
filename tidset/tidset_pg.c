/*-------------------------------------------------------------------------
 * tidset_pg.c
 *	  tidset in the server: allocators for memory contexts and for dynamic
 *	  shared memory.  The only file that needs the server.
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "tidset_pg.h"

StaticAssertDecl(sizeof(TidSetTid) == sizeof(ItemPointerData), "TidSetTid must be an ItemPointerData");
StaticAssertDecl(TIDSET_MAX_OFFSET >= MaxOffsetNumber, "a page's offsets must fit");

/*
 * headers of a block and of the chunk in it; an allocation set makes a block
 * for each of tidset's allocations
 */
#define CONTEXT_OVERHEAD	56

/*
 * An area uses whole pages for an allocation above 8 kB, and for each of them a
 * span, which is smaller than AREA_OVERHEAD.  It takes 64 kB for the first
 * allocation of each smaller size, which is why tidset requests no smaller
 * ones.
 */
#define AREA_PAGE			4096
#define AREA_OVERHEAD		64

static uint64_t
context_alloc(void *arg, size_t size)
{
	return (uint64_t) (uintptr_t)
		MemoryContextAllocExtended((MemoryContext) arg, size,
								   MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
}

static void
context_free(void *arg, uint64_t handle)
{
	pfree((void *) (uintptr_t) handle);
}

static void *
context_address(void *arg, uint64_t handle)
{
	return (void *) (uintptr_t) handle;
}

static TidSetAllocator
context_allocator(MemoryContext context)
{
	TidSetAllocator allocator = {
		context_alloc, context_free, context_address, context,
		CONTEXT_OVERHEAD, 0
	};

	return allocator;
}

static uint64_t
area_alloc(void *arg, size_t size)
{
	return dsa_allocate_extended((dsa_area *) arg, size,
								 DSA_ALLOC_HUGE | DSA_ALLOC_NO_OOM);
}

static void
area_free(void *arg, uint64_t handle)
{
	dsa_free((dsa_area *) arg, (dsa_pointer) handle);
}

static void *
area_address(void *arg, uint64_t handle)
{
	return dsa_get_address((dsa_area *) arg, (dsa_pointer) handle);
}

static TidSetAllocator
area_allocator(dsa_area *area)
{
	TidSetAllocator allocator = {
		area_alloc, area_free, area_address, area, AREA_OVERHEAD, AREA_PAGE
	};

	return allocator;
}

static TidSet *
create(MemoryContext parent, const TidSetAllocator *shared, size_t limit)
{
	MemoryContext context = AllocSetContextCreate(parent, "tidset",
												  ALLOCSET_SMALL_SIZES);
	TidSetAllocator local = context_allocator(context);
	TidSet	   *set = tidset_create(&local, shared ? shared : &local, limit);

	if (set == NULL)
		MemoryContextDelete(context);
	return set;
}

TidSet *
tidset_pg_create(MemoryContext parent, size_t limit)
{
	return create(parent, NULL, limit);
}

TidSet *
tidset_pg_create_shared(MemoryContext parent, dsa_area *area, size_t limit)
{
	TidSetAllocator shared = area_allocator(area);

	/* segments double in size: the last one may have half of all memory */
	dsa_set_size_limit(area, Max(limit, TIDSET_MIN_MEMORY));
	return create(parent, &shared, limit);
}

TidSet *
tidset_pg_attach(MemoryContext context, dsa_area *area, dsa_pointer handle)
{
	TidSetAllocator local = context_allocator(context);
	TidSetAllocator shared = area_allocator(area);

	return tidset_attach(&local, &shared, handle);
}

void
tidset_pg_destroy(TidSet *set)
{
	MemoryContext context = GetMemoryChunkContext(set);

	tidset_destroy(set);
	MemoryContextDelete(context);
}
