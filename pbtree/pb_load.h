/*-------------------------------------------------------------------------
 * pb_load.h
 *	  A new index's pages, from sorted keys.
 *-------------------------------------------------------------------------
 */
#ifndef PB_LOAD_H
#define PB_LOAD_H

#include "pb_pack.h"

typedef struct PbLoad PbLoad;

extern PbLoad *pb_load_begin(Relation rel);
extern void pb_load_add(PbLoad *load, const PbKey *key, const ItemPointerData *tids, int n);
extern void pb_load_end(PbLoad *load);
extern void pb_load_write_meta(Relation rel, Buffer buffer, const PbMeta *meta);

#endif							/* PB_LOAD_H */
