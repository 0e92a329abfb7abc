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

extern bool pb_key_try_form(PbIndex *index, const Datum *values, const bool *isnull, PbKey *key);
extern void pb_key_form(Relation rel, PbIndex *index, const Datum *values,
						const bool *isnull, PbKey *key);
extern void pb_key_set_null(PbKey *key, PbIndex *index, int i);
extern bool pb_key_parse(PbIndex *index, PbKey *key, int natts, int avail);
extern Datum pb_key_datum(PbIndex *index, const PbKey *key, int i, bool *isnull, PbArena *arena);
extern void pb_key_copy(PbKey *to, const PbKey *from);
extern void pb_key_truncate(PbKey *key, int natts);
extern int	pb_key_common(const PbKey *a, const PbKey *b);
extern bool pb_key_is_identical(const PbKey *a, const PbKey *b);

extern int	pb_key_put_fence(PbIndex *index, const PbKey *key, uint8 *to);
extern bool pb_key_get_fence(PbIndex *index, const uint8 *p, int len, PbKey *key);
extern int	pb_key_put_leaf(PbIndex *index, const PbKey *key, int skip, uint8 *to, int *flags);
extern int	pb_key_put_inner(PbIndex *index, const PbKey *key, int skip, BlockNumber down,
							 uint8 *to, int *flags);

extern void pb_item_get(Relation rel, PbIndex *index, Buffer buffer, Page page, int slot, PbItem *item);
#ifdef USE_ASSERT_CHECKING
extern const char *pb_item_problem(PbIndex *index, Page page, int slot, PbItem *item);
#endif
extern const uint8 *pb_item_match(PbIndex *index, Page page, int slot, const PbKey *key);
extern int	pb_item_tids(Relation rel, Buffer buffer, Page page, int slot, const PbItem *item,
						 ItemPointer tids);
extern void pb_item_first_tid(Relation rel, Buffer buffer, Page page, int slot, const PbItem *item,
							  ItemPointer tid);
extern BlockNumber pb_item_down(Relation rel, Buffer buffer, Page page, int slot);
extern int	pb_item_keep(Page page, int slot, const uint8 *tail);

#endif							/* PB_KEY_H */
