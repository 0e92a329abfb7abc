/*-------------------------------------------------------------------------
 * compat_index.h
 *	  What differs between PostgreSQL's versions for index access methods.
 *-------------------------------------------------------------------------
 */
#ifndef PG_INPLACE_COMPAT_INDEX_H
#define PG_INPLACE_COMPAT_INDEX_H

#include "compat.h"

#include "access/amapi.h"
#include "access/nbtree.h"
#include "access/relscan.h"
#include "catalog/pg_type.h"
#include "utils/pg_locale.h"
#include "utils/snapmgr.h"

/* True if the collation sorts by bytes. */
static inline bool
CompatCollationIsC(Oid collation)
{
	if (!OidIsValid(collation))
		return false;
#if PG_VERSION_NUM < 180000
	return lc_collate_is_c(collation);
#else
	return pg_newlocale_from_collation(collation)->collate_is_c;
#endif
}

/* the table whose horizon counts; VACUUM passes it from 16 on */
#if PG_VERSION_NUM < 160000
#define CompatIvHeapRel(info)	((Relation) NULL)
#else
#define CompatIvHeapRel(info)	((info)->heaprel)
#endif

/* EXPLAIN shows the number of searches from 18 on */
#if PG_VERSION_NUM < 180000
#define CompatCountSearch(scan) ((void) 0)
#else
#define CompatCountSearch(scan) \
	do { if ((scan)->instrument) (scan)->instrument->nsearches++; } while (0)
#endif

/* the access method's part of a parallel scan's shared memory */
#if PG_VERSION_NUM < 180000
#define CompatParallelOffset(pscan) ((pscan)->ps_offset)
#else
#define CompatParallelOffset(pscan) ((pscan)->ps_offset_am)
#endif

#if PG_VERSION_NUM < 170000
#define COMPAT_ESTIMATE_PARALLEL_PARAMETERS void
#elif PG_VERSION_NUM < 180000
#define COMPAT_ESTIMATE_PARALLEL_PARAMETERS int nkeys, int norderbys
#else
#define COMPAT_ESTIMATE_PARALLEL_PARAMETERS \
	Relation rel, int nkeys, int norderbys
#endif

/*
 * before 17: raises an error if rows that an old snapshot should see may have
 * been removed
 */
#if PG_VERSION_NUM < 170000
#define CompatTestForOldSnapshot(snapshot, rel, page) \
	TestForOldSnapshot(snapshot, rel, page)
#else
#define CompatTestForOldSnapshot(snapshot, rel, page) ((void) 0)
#endif

/*
 * From 18 on INSERT ... ON CONFLICT works with unique indexes of any access
 * method.
 */
#define COMPAT_UNIQUE_INDEXES	(PG_VERSION_NUM >= 180000)

/*
 * From 17 on CREATE INDEX requests workers for any access method that can use
 * them, before that for btree only.
 */
#if PG_VERSION_NUM < 170000
#define COMPAT_BUILDS_IN_PARALLEL
#else
#define COMPAT_BUILDS_IN_PARALLEL .amcanbuildparallel = true,
#endif

/* What later versions require of an ordered access method. */
#if PG_VERSION_NUM < 180000
#define COMPAT_ORDERED_INDEX_AM(height)
#else
#define COMPAT_ORDERED_INDEX_AM(height) \
	.amcanhash = false, \
	.amconsistentequality = true, \
	.amconsistentordering = true, \
	.amgettreeheight = height, \
	.amtranslatestrategy = bttranslatestrategy, \
	.amtranslatecmptype = bttranslatecmptype,
#endif

/*
 * Return a handler's result.  Before 19 core frees it; from 19 on core keeps
 * the pointer.
 */
#if PG_VERSION_NUM < 190000
#define COMPAT_RETURN_INDEX_AM(methods) \
	do { \
		IndexAmRoutine *copy = palloc(sizeof(IndexAmRoutine)); \
\
		*copy = *(methods); \
		PG_RETURN_POINTER(copy); \
	} while (0)
#else
#define COMPAT_RETURN_INDEX_AM(methods) PG_RETURN_POINTER(methods)
#endif

#endif							/* PG_INPLACE_COMPAT_INDEX_H */
