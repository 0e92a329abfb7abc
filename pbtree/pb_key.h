/*-------------------------------------------------------------------------
 * pb_key.h
 *	  Keys: of rows, of items, of fences.
 *-------------------------------------------------------------------------
 */
#ifndef PB_KEY_H
#define PB_KEY_H

#include "access/itup.h"

#include "pb_index.h"
#include "pb_tids.h"

#define PB_MAX_MAP		((INDEX_MAX_KEYS * 2 + 7) / 8)
#define PB_KEY_ROOM		BLCKSZ

/*
 * A key in one piece.  A fence or an inner item may have fewer columns than the
 * index, and a TID; a row's key has all columns, and the TID is the row's (or
 * the first of several).
 */
typedef struct PbKey
{
	int			natts;
	bool		has_tid;
	bool		has_map;
	ItemPointerData tid;
	uint8		map[PB_MAX_MAP];	/* if has_map */
	int			len;
	int			parsed;			/* off is known for so many columns, and their
								 * end */
	uint16		off[INDEX_MAX_KEYS + 1];
	uint8	   *data;
	uint8		own[PB_KEY_ROOM];	/* what data points to; uninitialized */
} PbKey;

/* An item with its key in one piece. */
typedef struct PbItem
{
	PbKey		key;
	uint16		flags;			/* PB_SLOT_* */
	BlockNumber down;			/* inner: the child */
	const uint8 *tail;			/* leaf: TIDs, on the page */
} PbItem;

static inline int
pb_key_state(const PbKey *key, int i)
{
	return key->has_map ? (key->map[i / 4] >> (i % 4 * 2)) & 3 : PB_COL_PLAIN;
}

static inline void
pb_key_begin(PbKey *key)
{
	key->natts = 0;
	key->has_tid = false;
	key->has_map = false;
	key->len = 0;
	key->parsed = 0;
	key->off[0] = 0;
	key->data = key->own;
}

/*
 * Form a row's key, without TID; false if it is too long.  It may detoast: no
 * page may be locked but by pb_stale.
 */
extern bool pb_key_try_form(PbIndex *index, const Datum *values, const bool *isnull, PbKey *key);

/* As pb_key_try_form.  Error: the key is too long. */
extern void pb_key_form(Relation rel, PbIndex *index, const Datum *values,
						const bool *isnull, PbKey *key);

/* Column i is NULL.  Its end must be set by the caller. */
extern void pb_key_set_null(PbKey *key, PbIndex *index, int i);

/*
 * Find the ends of the first natts columns in avail bytes at key->data; false
 * if they are not whole.
 */
extern bool pb_key_parse(PbIndex *index, PbKey *key, int natts, int avail);

/*
 * The value of a column that has been found.  It is in the arena, or palloc'd:
 * pb_codec_free.
 */
extern Datum pb_key_datum(PbIndex *index, const PbKey *key, int i, bool *isnull, PbArena *arena);

/* Copy a key; the bytes come to to->own. */
extern void pb_key_copy(PbKey *to, const PbKey *from);

/* Keep the first columns only, and no TID. */
extern void pb_key_truncate(PbKey *key, int natts);

/* How many bytes both keys begin with. */
extern int	pb_key_common(const PbKey *a, const PbKey *b);

/*
 * Do both have the same columns in the same bytes?  TIDs do not count.  I5
 * says when that means equal.
 */
extern bool pb_key_is_identical(const PbKey *a, const PbKey *b);

/* Write the key, truncated to key columns, as a fence; its length. */
extern int	pb_key_put_fence(PbIndex *index, const PbKey *key, uint8 *to);

/* Read a fence; false if it is damaged.  The key points into it. */
extern bool pb_key_get_fence(PbIndex *index, const uint8 *p, int len, PbKey *key);

/*
 * Write a leaf's item up to its TIDs, without the key's first skip bytes; its
 * length.  *flags: the slot's.
 */
extern int	pb_key_put_leaf(PbIndex *index, const PbKey *key, int skip, uint8 *to, int *flags);

/* Write an inner item, downlink first, as above; its length. */
extern int	pb_key_put_inner(PbIndex *index, const PbKey *key, int skip, BlockNumber down,
							 uint8 *to, int *flags);

/*
 * Read an item with its key.  Lock: read, or the page is a copy.  Error: it is
 * damaged.
 */
extern void pb_item_get(Relation rel, PbIndex *index, Buffer buffer, Page page, int slot, PbItem *item);
#ifdef USE_ASSERT_CHECKING
/* As pb_item_get; what is wrong, or NULL. */
extern const char *pb_item_problem(PbIndex *index, Page page, int slot, PbItem *item);
#endif
/*
 * Where the TIDs of a leaf's item with exactly this key are, or NULL.  Lock:
 * read.
 */
extern const uint8 *pb_item_match(PbIndex *index, Page page, int slot, const PbKey *key);

/*
 * Unpack a leaf's item's TIDs, at most PB_MAX_TIDS, in order; how many.
 * Error: they are damaged.
 */
extern int	pb_item_tids(Relation rel, Buffer buffer, Page page, int slot, const PbItem *item,
						 ItemPointer tids);

/* The first of these TIDs.  Error: it is damaged. */
extern void pb_item_first_tid(Relation rel, Buffer buffer, Page page, int slot, const PbItem *item,
							  ItemPointer tid);

/* The downlink of an inner page's item.  Error: there is no such item. */
extern BlockNumber pb_item_down(Relation rel, Buffer buffer, Page page, int slot);

/* Bytes of a leaf's item in front of its TIDs, which are at tail. */
extern int	pb_item_keep(Page page, int slot, const uint8 *tail);

#endif							/* PB_KEY_H */
