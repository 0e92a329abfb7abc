/*-------------------------------------------------------------------------
 * pb_quals.h
 *	  A scan's conditions: ranges of keys, and remaining checks.
 *-------------------------------------------------------------------------
 */
#ifndef PB_QUALS_H
#define PB_QUALS_H

#include "access/relscan.h"
#include "access/sdir.h"
#include "access/stratnum.h"

#include "pb_pos.h"

/*
 * The maximum size of a position's encodings; longer positions are compared by
 * value.
 */
#define PB_QUALS_SPACE	512

/* "= ANY": elements in the order of the index, without duplicates. */
typedef struct PbArray
{
	ScanKey		key;
	int			n;
	Datum	   *elems;
	FmgrInfo   *match;			/* compares a column's value with an element */
	int			current;		/* of a leading column */
} PbArray;

/* A column whose value is fixed, or an element of an array. */
typedef struct PbEqual
{
	ScanKey		key;			/* "=" or IS NULL */
	PbArray    *array;			/* or NULL */
} PbEqual;

/* The function to compare a column's values with those of another type. */
typedef struct PbCross
{
	int			column;
	Oid			type;
	bool		found;			/* false if there is no such function */
	FmgrInfo	order;
} PbCross;

typedef struct PbQuals
{
	Relation	rel;
	PbIndex    *index;
	MemoryContext context;
	bool		impossible;		/* no row satisfies the conditions */
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
	bool		can_skip;		/* the checked conditions bound key columns */
	struct PbSkip *skip;		/* data for skipping (pb_skip.c), or NULL */
	int			ncross;			/* looked up before a page is locked; kept for
								 * all restarts */
	int			most_cross;
	PbCross    *cross;
} PbQuals;

/* True if equal values do not satisfy an inequality. */
static inline bool
pb_quals_is_strict(const ScanKeyData *key)
{
	return key->sk_strategy == BTLessStrategyNumber ||
		key->sk_strategy == BTGreaterStrategyNumber;
}

/* Initialize without conditions.  pb_quals_end must follow. */
extern void pb_quals_begin(PbQuals *q, Relation rel, PbIndex *index);

/* Free the memory. */
extern void pb_quals_end(PbQuals *q);

/*
 * Process a scan's conditions.  It calls operator classes and reads catalogs,
 * so no page may be locked.
 */
extern void pb_quals_set(PbQuals *q, IndexScanDesc scan);

/*
 * Move to the first range in this direction.  The conditions must be
 * satisfiable.
 */
extern void pb_quals_first(PbQuals *q, ScanDirection dir);

/* Move to the next range.  Returns false if that was the last one. */
extern bool pb_quals_next(PbQuals *q, ScanDirection dir);

/* Pass ranges that end before the key. */
extern void pb_quals_skip(PbQuals *q, const PbKey *key, ScanDirection dir);

/* Save the current range.  elements has room for INDEX_MAX_KEYS. */
extern void pb_quals_save(const PbQuals *q, int *elements);

/* Return to a saved range of the same conditions. */
extern void pb_quals_restore(PbQuals *q, const int *elements);

/*
 * True if the row with this key satisfies the conditions that bound no range.
 * It calls operators.
 */
extern bool pb_quals_check(PbQuals *q, const PbKey *key);

/* for pb_skip.c */
extern PbArray *pb_quals_make_scalar(PbQuals *q, ScanKey key);	/* or NULL */
extern int	pb_quals_count_elements(PbQuals *q, const PbArray *array,
									const PbKey *key, bool forward,
									bool *equal);

/*
 * Append a column to the position, a value or NULL.  Encodings are written to
 * "space".
 */
extern void pb_quals_add_column(PbQuals *q, PbPos *pos, uint8 *space, int room,
								ScanKey key, Datum value, bool isnull);

#endif							/* PB_QUALS_H */
