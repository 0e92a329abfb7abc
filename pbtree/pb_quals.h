/*-------------------------------------------------------------------------
 * pb_quals.h
 *	  A scan's conditions: ranges of keys, and what is left to check.
 *-------------------------------------------------------------------------
 */
#ifndef PB_QUALS_H
#define PB_QUALS_H

#include "access/relscan.h"
#include "access/sdir.h"
#include "access/stratnum.h"

#include "pb_pos.h"

/* Longer positions are compared by value. */
#define PB_QUALS_SPACE	512

/* "= ANY": elements in the order of the index, without duplicates. */
typedef struct PbArray
{
	ScanKey		key;
	int			n;
	Datum	   *elems;
	FmgrInfo   *match;			/* of a column's value and an element */
	int			current;		/* of a leading column */
} PbArray;

/* A column whose value is fixed, or one of an array's. */
typedef struct PbEqual
{
	ScanKey		key;			/* "=" or IS NULL */
	PbArray    *array;			/* or NULL */
} PbEqual;

/* How a column's values compare with those of another type. */
typedef struct PbCross
{
	int			column;
	Oid			type;
	bool		found;			/* else there is no such function */
	FmgrInfo	order;
} PbCross;

typedef struct PbQuals
{
	Relation	rel;
	PbIndex    *index;
	MemoryContext context;
	bool		impossible;		/* no row satisfies them */
	int			nequal;			/* leading columns */
	PbEqual		equal[INDEX_MAX_KEYS];
	int			narrays;		/* of leading columns */
	PbArray    *arrays[INDEX_MAX_KEYS];
	ScanKey		low;			/* of the column behind these; or NULL */
	ScanKey		high;
	bool		not_null;		/* that column is */
	int			nrest;			/* checked for each row */
	struct
	{
		ScanKey		key;
		PbArray    *array;
	}		   *rest;
	bool		has_range;
	PbPos		from;			/* the current range: of the current elements */
	PbPos		to;
	uint8		space[2][PB_QUALS_SPACE];	/* encodings of their columns */
	bool		can_skip;		/* what is checked bounds key columns */
	struct PbSkip *skip;		/* what that comes to (pb_skip.c), or NULL */
	int			ncross;			/* looked up before a page is locked; of all
								 * restarts */
	int			most_cross;
	PbCross    *cross;
} PbQuals;

/* Of an inequality: equal values do not satisfy it. */
static inline bool
pb_quals_is_strict(const ScanKeyData *key)
{
	return key->sk_strategy == BTLessStrategyNumber || key->sk_strategy == BTGreaterStrategyNumber;
}

/* No conditions yet.  It must be ended. */
extern void pb_quals_begin(PbQuals *q, Relation rel, PbIndex *index);

/* Free the memory. */
extern void pb_quals_end(PbQuals *q);

/*
 * Sort out a scan's conditions.  It calls operator classes and reads catalogs:
 * no page may be locked.
 */
extern void pb_quals_set(PbQuals *q, IndexScanDesc scan);

/* To the first range in this direction.  The conditions must be possible. */
extern void pb_quals_first(PbQuals *q, ScanDirection dir);

/* To the next range; false: that was the last one. */
extern bool pb_quals_next(PbQuals *q, ScanDirection dir);

/* Pass ranges that end before the key. */
extern void pb_quals_skip(PbQuals *q, const PbKey *key, ScanDirection dir);

/* Which range is the current one?  elements has room for INDEX_MAX_KEYS. */
extern void pb_quals_save(const PbQuals *q, int *elements);

/* To the range that was saved, of the same conditions. */
extern void pb_quals_restore(PbQuals *q, const int *elements);

/*
 * Does the row with this key satisfy conditions that bound no range?  It calls
 * operators.
 */
extern bool pb_quals_check(PbQuals *q, const PbKey *key);

/* for pb_skip.c */
extern PbArray *pb_quals_make_scalar(PbQuals *q, ScanKey key);	/* or NULL */
extern int	pb_quals_count_elements(PbQuals *q, const PbArray *array, const PbKey *key, bool forward, bool *equal);

/* The position gets its next column, a value or NULL; encodings go to space. */
extern void pb_quals_add_column(PbQuals *q, PbPos *pos, uint8 *space, int room, ScanKey key, Datum value, bool isnull);

#endif							/* PB_QUALS_H */
