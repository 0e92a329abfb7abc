/*-------------------------------------------------------------------------
 * pb_group.h
 *	  Grouping of rows by key.
 *-------------------------------------------------------------------------
 */
#ifndef PB_GROUP_H
#define PB_GROUP_H

#include "pb_key.h"

typedef struct PbGroups PbGroups;

/*
 * Create an empty hash table in a memory context of its own.  Only for an
 * index whose equal keys are identical (I5).
 */
extern PbGroups *pb_group_begin(PbIndex *index);

/* Add the key's TID to the key's list. */
extern void pb_group_add(PbGroups *groups, const PbKey *key);

/* The number of different keys. */
extern int	pb_group_count(const PbGroups *groups);

/* The size of the table in bytes. */
extern Size pb_group_memory(const PbGroups *groups);

/*
 * Copy the i-th group's key.  *tids are its TIDs in order, valid until the
 * next pb_group_add.  Returns their number.
 */
extern int	pb_group_get(PbGroups *groups, int i, PbKey *key,
						 const ItemPointerData **tids);

/* Free the table and its groups. */
extern void pb_group_end(PbGroups *groups);

#endif							/* PB_GROUP_H */
