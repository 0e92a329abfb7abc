/*-------------------------------------------------------------------------
 * pb_pos.h
 *	  Positions in the order of keys.
 *
 * A position has values for the first columns, all key columns at most, and
 * stands before or ("after") behind all keys with these values; with all
 * columns it may have a TID.  In an index, a fence or inner item with few
 * columns stands before all keys with these values.
 *-------------------------------------------------------------------------
 */
#ifndef PB_POS_H
#define PB_POS_H

#include "utils/varlena.h"

#include "pb_key.h"

typedef struct PbPosCol
{
	bool		isnull;
	bool		has_value;		/* else it is only encoded */
	bool		has_code;		/* else it is only a value */
	Datum		value;
	const uint8 *code;
	int			code_len;
	FmgrInfo   *cmp;			/* compares a column's value with this one;
								 * NULL: the column's function */
} PbPosCol;

typedef struct PbPos
{
	Relation	rel;
	PbIndex    *index;
	int			natts;
	bool		after;
	bool		has_tid;
	ItemPointerData tid;
	bool		bytes;			/* data alone decides, and there is no NULL */
	bool		coded;			/* data decides equality */
	const uint8 *data;			/* the columns' encodings */
	uint16		off[INDEX_MAX_KEYS + 1];
	bool		has_map;
	uint8		map[PB_MAX_MAP];	/* if has_map */
	PbPosCol	col[INDEX_MAX_KEYS];
	const PbKey *key;			/* source of encodings without a value */
	PbArena    *arena;			/* of values that had to be decoded, or NULL */
} PbPos;

/*
 * Result of a search on a page: the numbers of columns in which the item in
 * front of the result (or the page's low fence), and the one behind it, equal
 * the position.
 */
typedef struct PbBounds
{
	int			lo;
	int			hi;
} PbBounds;

/* Counted for pbtree_stats. */
typedef struct PbCounters
{
	uint64		descents;
	uint64		keys;			/* keys compared with */
	uint64		columns;		/* columns compared; a comparison as bytes
								 * counts as one */
	uint64		bytes;			/* of keys read for it */
	uint64		heads;			/* decided by the slot's head */
} PbCounters;

/* The counters of this backend. */
extern PbCounters pb_counters;

static inline int
pb_pos_compare_text(const PbColumn *col, const uint8 *a, int alen,
					const uint8 *b, int blen)
{
	int			cmp = varstr_cmp((const char *) a, alen, (const char *) b, blen,
								 col->collation);

	return col->desc ? (cmp > 0 ? -1 : cmp < 0) : cmp;
}

/* Compare two columns of which exactly one is NULL. */
static inline int
pb_pos_compare_null(const PbColumn *col, bool mine_is_null)
{
	return mine_is_null == col->nulls_first ? -1 : 1;
}

/* Initialize a position without columns. */
extern void pb_pos_begin(PbPos *pos, Relation rel, PbIndex *index);

/*
 * Set a position at the key, or in front of all keys with its columns.  The
 * key must stay valid.
 */
extern void pb_pos_from_key(PbPos *pos, Relation rel, PbIndex *index,
							const PbKey *key);

/* Free the values that were decoded for it. */
extern void pb_pos_end(PbPos *pos);

/*
 * Compare the position's column i with the key's.  It may call the operator
 * class.
 */
extern int	pb_pos_compare_column(PbPos *pos, const PbKey *key, int i);

/* Compare by TID, or by the number of columns, when all columns are equal. */
extern int	pb_pos_compare_rest(const PbPos *pos, int natts, bool has_tid,
								const ItemPointerData *tid, bool leaf);

/*
 * Compare the position with a key, whose first "start" columns are known to be
 * equal.  *equal becomes the number of equal columns.
 */
extern int	pb_pos_compare(PbPos *pos, const PbKey *key, bool leaf, int start,
						   int *equal);

/*
 * Compare the position with a fence, like pb_pos_compare.  Error: the fence is
 * damaged.
 */
extern int	pb_pos_compare_fence(PbPos *pos, const uint8 *fence, int len,
								 int start, int *equal);

/*
 * True if the position is behind all keys of the page, so that the right
 * sibling is to be visited.
 */
extern bool pb_pos_is_right_of(PbPos *pos, Page page);

/* pb_pos_search.c */
#ifdef USE_ASSERT_CHECKING
/*
 * True if the comparison functions are core's, including those of types that
 * they call.  Others may contradict themselves.
 */
extern bool pb_pos_order_is_core(Relation rel);
#endif

/*
 * Compare the position with a leaf's item.  Lock: read.  Error: the item is
 * damaged.
 */
extern int	pb_pos_compare_item(PbPos *pos, Buffer buffer, int slot);

/*
 * Search a page.  Leaf: returns the first slot that does not precede the
 * position; inner page: the first one behind it.  *bounds is initially the
 * result of comparisons with the fences.  Lock: read.  Error: the page is
 * damaged.
 */
extern int	pb_pos_search(PbPos *pos, Buffer buffer, PbBounds *bounds);

/*
 * Like pb_pos_search, on a leaf, from this slot on, which must not be behind
 * the result.
 */
extern int	pb_pos_search_near(PbPos *pos, Buffer buffer, int slot);

#endif							/* PB_POS_H */
