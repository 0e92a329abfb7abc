/*-------------------------------------------------------------------------
 * compat_heap.h
 *	  Heap functions that differ between PostgreSQL's versions, for heap_code.c.
 *-------------------------------------------------------------------------
 */
#ifndef COMPAT_HEAP_H
#define COMPAT_HEAP_H

#include "access/heapam.h"
#include "access/tableam.h"
#include "storage/bufmgr.h"
#include "access/xact.h"

#if PG_VERSION_NUM < 160000
typedef bool CompatUpdateIndexes;

#define compat_heap_update(rel, tid, tuple, tmfd, mode, indexes) \
	((void) (indexes), \
	 heap_update(rel, tid, tuple, GetCurrentCommandId(true), InvalidSnapshot, true, tmfd, mode))
#define compat_simple_heap_update(rel, tid, tuple, indexes) \
	((void) (indexes), simple_heap_update(rel, tid, tuple))
#else
typedef TU_UpdateIndexes CompatUpdateIndexes;

#if PG_VERSION_NUM < 190000
#define compat_heap_update(rel, tid, tuple, tmfd, mode, indexes) \
	heap_update(rel, tid, tuple, GetCurrentCommandId(true), InvalidSnapshot, true, tmfd, mode, indexes)
#else
#define compat_heap_update(rel, tid, tuple, tmfd, mode, indexes) \
	heap_update(rel, tid, tuple, GetCurrentCommandId(true), 0, InvalidSnapshot, true, tmfd, mode, indexes)
#endif
#define compat_simple_heap_update(rel, tid, tuple, indexes) \
	simple_heap_update(rel, tid, tuple, indexes)
#endif

#if PG_VERSION_NUM < 190000
#define compat_heap_delete(rel, tid, tmfd) \
	heap_delete(rel, tid, GetCurrentCommandId(true), InvalidSnapshot, true, tmfd, false)
#define compat_heap_prune(rel, buffer) heap_page_prune_opt(rel, buffer)
#define compat_beginscan(rel, snapshot) table_beginscan(rel, snapshot, 0, NULL)
#else
#define compat_heap_delete(rel, tid, tmfd) \
	heap_delete(rel, tid, GetCurrentCommandId(true), 0, InvalidSnapshot, true, tmfd)
#define compat_beginscan(rel, snapshot) table_beginscan(rel, snapshot, 0, NULL, SO_NONE)

static inline void
compat_heap_prune(Relation rel, Buffer buffer)
{
	Buffer		map = InvalidBuffer;

	heap_page_prune_opt(rel, buffer, &map, false);
	if (BufferIsValid(map))
		ReleaseBuffer(map);
}
#endif

/*
 * A row's bytes are overwritten in one step, until 17, or in two, the first of which waits for those who have the
 * row; that came with minor releases.
 */
#if PG_VERSION_NUM < 180000
#define COMPAT_HEAP_OVERWRITES	1
#endif
#if PG_VERSION_NUM >= 180000 || \
	(PG_VERSION_NUM >= 170001 && PG_VERSION_NUM < 180000) || \
	(PG_VERSION_NUM >= 160005 && PG_VERSION_NUM < 170000) || \
	(PG_VERSION_NUM >= 150009 && PG_VERSION_NUM < 160000)
#define COMPAT_HEAP_LOCKS_AND_OVERWRITES 1
#endif

#endif							/* COMPAT_HEAP_H */
