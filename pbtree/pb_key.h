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
	int			parsed;			/* number of columns for which off is known,
								 * and their end */
	uint16		off[INDEX_MAX_KEYS + 1];
	uint8	   *data;
	uint8		own[PB_KEY_ROOM];	/* memory that data points to;
									 * uninitialized */
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
 * Form a row's key, without TID.  Returns false if it is too long.  It may
 * detoast, so only pb_stale may call it with a page locked.
 */
extern bool pb_key_try_form(PbIndex *index, const Datum *values,
							const bool *isnull, PbKey *key);

/* Like pb_key_try_form.  Error: the key is too long. */
extern void pb_key_form(Relation rel, PbIndex *index, const Datum *values,
						const bool *isnull, PbKey *key);

/* Column i is NULL.  Its end must be set by the caller. */
extern void pb_key_set_null(PbKey *key, PbIndex *index, int i);

/*
 * Find the ends of the first natts columns in avail bytes at key->data.
 * Returns false if they are incomplete.
 */
extern bool pb_key_parse(PbIndex *index, PbKey *key, int natts, int avail);

/*
 * Get the value of a column that has been found.  It is in the arena, or
 * palloc'd; pb_codec_free frees it.
 */
extern Datum pb_key_datum(PbIndex *index, const PbKey *key, int i, bool *isnull,
						  PbArena *arena);

/* Copy a key and its bytes, to to->own. */
extern void pb_key_copy(PbKey *to, const PbKey *from);

/* Keep the first columns only, and no TID. */
extern void pb_key_truncate(PbKey *key, int natts);

/* The length of the common prefix of both keys. */
extern int	pb_key_common(const PbKey *a, const PbKey *b);

/*
 * True if both have the same columns with the same bytes.  TIDs are not
 * compared.  I5 defines when that means equal.
 */
extern bool pb_key_is_identical(const PbKey *a, const PbKey *b);

/* Write the key, truncated to key columns, as a fence.  Returns its length. */
extern int	pb_key_put_fence(PbIndex *index, const PbKey *key, uint8 *to);

/* Read a fence.  Returns false if it is damaged.  The key points into it. */
extern bool pb_key_get_fence(PbIndex *index, const uint8 *p, int len,
							 PbKey *key);

/*
 * Write a leaf's item up to its TIDs, without the key's first "skip" bytes.
 * Returns its length; *flags are the slot's.
 */
extern int	pb_key_put_leaf(PbIndex *index, const PbKey *key, int skip,
							uint8 *to, int *flags);

/*
 * Write an inner item, downlink first, without the key's first "skip" bytes.
 * Returns its length.
 */
extern int	pb_key_put_inner(PbIndex *index, const PbKey *key, int skip,
							 BlockNumber down, uint8 *to, int *flags);

/*
 * Read an item with its key.  Lock: read, or the page is a copy.  Error: it is
 * damaged.
 */
extern void pb_item_get(Relation rel, PbIndex *index, Buffer buffer, Page page,
						int slot, PbItem *item);
#ifdef USE_ASSERT_CHECKING
/* Like pb_item_get, but returns a description of the fault, or NULL. */
extern const char *pb_item_problem(PbIndex *index, Page page, int slot,
								   PbItem *item);
#endif
/*
 * Find the TIDs of a leaf's item with exactly this key; NULL if it has another
 * key.  Lock: read.
 */
extern const uint8 *pb_item_match(PbIndex *index, Page page, int slot,
								  const PbKey *key);

/*
 * Unpack the TIDs of a leaf's item, at most PB_MAX_TIDS, in order.  Returns
 * their number.  Error: they are damaged.
 */
extern int	pb_item_tids(Relation rel, Buffer buffer, Page page, int slot,
						 const PbItem *item, ItemPointer tids);

/* Get the first of the item's TIDs.  Error: it is damaged. */
extern void pb_item_first_tid(Relation rel, Buffer buffer, Page page, int slot,
							  const PbItem *item, ItemPointer tid);

/* Get the downlink of an inner page's item.  Error: there is no such item. */
extern BlockNumber pb_item_down(Relation rel, Buffer buffer, Page page,
								int slot);

/*
 * The number of bytes of a leaf's item in front of its TIDs, which are at
 * tail.
 */
extern int	pb_item_keep(Page page, int slot, const uint8 *tail);

#endif							/* PB_KEY_H */
