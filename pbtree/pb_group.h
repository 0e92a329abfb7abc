/*-------------------------------------------------------------------------
 * pb_group.h
 *	  Rows put together by key.
 *-------------------------------------------------------------------------
 */
#ifndef PB_GROUP_H
#define PB_GROUP_H

#include "pb_key.h"

typedef struct PbGroups PbGroups;

extern PbGroups *pb_group_begin(PbIndex *index);
extern void pb_group_add(PbGroups *groups, const PbKey *key);
extern int	pb_group_count(const PbGroups *groups);
extern Size pb_group_memory(const PbGroups *groups);
extern int	pb_group_get(PbGroups *groups, int i, PbKey *key, const ItemPointerData **tids);
extern void pb_group_end(PbGroups *groups);

#endif							/* PB_GROUP_H */
