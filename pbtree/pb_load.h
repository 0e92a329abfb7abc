/*-------------------------------------------------------------------------
 * pb_load.h
 *	  Making of a new index's pages from sorted keys.
 *-------------------------------------------------------------------------
 */
#ifndef PB_LOAD_H
#define PB_LOAD_H

#include "pb_pack.h"

typedef struct PbLoad PbLoad;

/*
 * Begin to fill an index of which only the metapage exists.  No other process
 * may use it yet.
 */
extern PbLoad *pb_load_begin(Relation rel);

/*
 * Add rows with a key.  Keys and TIDs must arrive in order.  Full pages are
 * written and logged.
 */
extern void pb_load_add(PbLoad *load, const PbKey *key,
						const ItemPointerData *tids, int n);

/* Write the remaining pages, and the metapage, which makes the tree visible. */
extern void pb_load_end(PbLoad *load);

/* Fill a metapage.  Lock: write.  The caller marks it dirty and logs it. */
extern void pb_load_write_meta(Relation rel, Buffer buffer, const PbMeta *meta);

#endif							/* PB_LOAD_H */
