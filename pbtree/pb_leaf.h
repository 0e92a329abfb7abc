/*-------------------------------------------------------------------------
 * pb_leaf.h
 *	  Reading of all of a leaf's rows that are in a scan's ranges.
 *-------------------------------------------------------------------------
 */
#ifndef PB_LEAF_H
#define PB_LEAF_H

#include "pb_skip.h"
#include "pb_tuple.h"

/* The place where the rows on one side of the page end. */
typedef struct PbSide
{
	bool		more;			/* the range continues on the page's sibling */
	int			elements[INDEX_MAX_KEYS];	/* of arrays: the range */
	int			fence_at;		/* in key_space: the page's fence, if rows
								 * behind it are to be skipped */
	int			fence_len;		/* 0 if not */
} PbSide;

#define PB_LEFT		0
#define PB_RIGHT	1

typedef struct PbLeaf
{
	Buffer		buffer;			/* pinned, or InvalidBuffer */
	BlockNumber block;			/* PB_NONE if there is no page */
	BlockNumber next;
	XLogRecPtr	lsn;
	PbSide		side[2];
	bool		passed;			/* all of the page was skipped at once */
	int			n;				/* rows */
	int			at;				/* the current one */
	int			room;
	ItemPointerData *tids;
	uint16	   *slots;			/* their slots when the page was read */
	bool		keep;			/* keys are kept, too, because entries may be
								 * stale */
	const PbTupleShape *shape;	/* index-only scans of fixed-width keys */
	int		   *keys_at;		/* where in key_space an index-only scan's
								 * tuple is; -1 - where: the key */
	int			key_used;
	int			key_room;
	char	   *key_space;
	int			nkilled;
	int			killed_room;
	int		   *killed;			/* rows found dead to all snapshots */
} PbLeaf;

/* Get the current row's tuple, or NULL if it has to be made of the key. */
static inline IndexTuple
pb_leaf_tuple(const PbLeaf *leaf)
{
	int			at = leaf->keys_at[leaf->at];

	return at >= 0 ? (IndexTuple) (leaf->key_space + at) : NULL;
}

/* Initialize without a page or memory. */
extern void pb_leaf_init(PbLeaf *leaf);

/*
 * Collect a leaf's rows of the current ranges.  Lock: read, released; the pin
 * is kept where rows must not be removed.  The previous leaf must have been
 * left.
 */
extern void pb_leaf_read(PbLeaf *leaf, IndexScanDesc scan, PbQuals *q,
						 Buffer buffer, int slot, ScanDirection dir,
						 bool entered);

/*
 * Get the position beyond the page's fence from which the scan continues; NULL
 * if on the sibling.  Lock: none.
 */
extern PbPos *pb_leaf_target(const PbLeaf *leaf, PbQuals *q, ScanDirection dir);

/*
 * Get the current row's key.  It points into the leaf's memory, and its
 * columns have not been located.
 */
extern void pb_leaf_key(const PbLeaf *leaf, PbIndex *index, PbKey *key);

/* Remember that the current row is dead to all snapshots. */
extern void pb_leaf_kill(PbLeaf *leaf);

/*
 * Mark killed items, and release the pin.  Lock: none; the page is locked for
 * reading in between.
 */
extern void pb_leaf_leave(PbLeaf *leaf, PbIndex *index, IndexScanDesc scan);

/* Free the memory.  The page must have been left. */
extern void pb_leaf_end(PbLeaf *leaf);

/*
 * Copy rows and place, with a pin of its own.  The target must have been left.
 */
extern void pb_leaf_copy(PbLeaf *to, const PbLeaf *from);

#endif							/* PB_LEAF_H */
