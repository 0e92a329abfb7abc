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
	FmgrInfo   *cmp;			/* of a column's value and this one; NULL: the
								 * column's */
} PbPosCol;

typedef struct PbPos
{
	Relation	rel;
	PbIndex    *index;
	int			natts;
	bool		after;
	bool		has_tid;
	ItemPointerData tid;
	bool		bytes;			/* data decides by itself, and there is no
								 * NULL */
	bool		coded;			/* data decides what is equal */
	const uint8 *data;			/* the columns' encodings */
	uint16		off[INDEX_MAX_KEYS + 1];
	bool		has_map;
	uint8		map[PB_MAX_MAP];	/* if has_map */
	PbPosCol	col[INDEX_MAX_KEYS];
	const PbKey *key;			/* where encodings without a value are from */
	PbArena    *arena;			/* of values that had to be decoded, or NULL */
} PbPos;

/*
 * Of a search on a page: in so many columns the item in front of the result
 * (or the page's low fence), and the one behind it, equal the position.
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

/* Of this backend. */
extern PbCounters pb_counters;

static inline int
pb_pos_compare_text(const PbColumn *col, const uint8 *a, int alen, const uint8 *b, int blen)
{
	int			cmp = varstr_cmp((const char *) a, alen, (const char *) b, blen, col->collation);

	return col->desc ? (cmp > 0 ? -1 : cmp < 0) : cmp;
}

/* One of both is NULL, and that is not the same on both sides. */
static inline int
pb_pos_compare_null(const PbColumn *col, bool mine_is_null)
{
	return mine_is_null == col->nulls_first ? -1 : 1;
}

/* A position without columns. */
extern void pb_pos_begin(PbPos *pos, Relation rel, PbIndex *index);

/*
 * A position at the key, or in front of all keys with its columns.  The key
 * must remain.
 */
extern void pb_pos_from_key(PbPos *pos, Relation rel, PbIndex *index, const PbKey *key);

/* Free what was decoded for it. */
extern void pb_pos_end(PbPos *pos);

/*
 * The position's column i against the key's.  It may call the operator class.
 */
extern int	pb_pos_compare_column(PbPos *pos, const PbKey *key, int i);

/*
 * As above, behind columns that are all equal: by TID, or by what has fewer
 * columns.
 */
extern int	pb_pos_compare_rest(const PbPos *pos, int natts, bool has_tid, const ItemPointerData *tid, bool leaf);

/*
 * The position against a key, of which start columns are known to be equal.
 * *equal: how many are.
 */
extern int	pb_pos_compare(PbPos *pos, const PbKey *key, bool leaf, int start, int *equal);

/* The position against a fence, as above.  Error: the fence is damaged. */
extern int	pb_pos_compare_fence(PbPos *pos, const uint8 *fence, int len, int start, int *equal);

/* Is the position behind all that is on the page, so that the right sibling is to be visited? */
extern bool pb_pos_is_right_of(PbPos *pos, Page page);

/* pb_pos_search.c */
#ifdef USE_ASSERT_CHECKING
/* Are the comparison functions core's, and the types that these may call others of?  Others may contradict themselves. */
extern bool pb_pos_order_is_core(Relation rel);
#endif

/*
 * The position against a leaf's item.  Lock: read.  Error: the item is
 * damaged.
 */
extern int	pb_pos_compare_item(PbPos *pos, Buffer buffer, int slot);

/*
 * Leaf: the first slot that does not precede the position; inner page: the first
 * one behind it.  *bounds comes in as what is known of the fences.  Lock: read.
 * Error: the page is damaged.
 */
extern int	pb_pos_search(PbPos *pos, Buffer buffer, PbBounds *bounds);

/*
 * As pb_pos_search, on a leaf, from this slot on, which must not be behind the
 * result.
 */
extern int	pb_pos_search_near(PbPos *pos, Buffer buffer, int slot);

#endif							/* PB_POS_H */
