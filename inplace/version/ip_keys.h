/*-------------------------------------------------------------------------
 * ip_keys.h
 *	  Index keys that updates in place have changed.
 *
 * See inplace_keys.h.  A column is *followed* if all indexes that have it
 * follow, or are summarizing ones (from PostgreSQL 16 on).
 *-------------------------------------------------------------------------
 */
#ifndef IP_KEYS_H
#define IP_KEYS_H

#include "inplace_keys.h"

#include "ip_rel.h"

/* Returns whether the index can follow updates in place, whatever its state. */
extern bool ip_keys_can_follow(Relation index);

/*
 * Returns the followed columns of a table, whose indexes the caller has
 * locked, from its cache.
 */
extern const IpFollowed *ip_keys_followed(Relation rel);

/*
 * The row in the slot has been updated in place: add its entries to those of
 * the indexes (see IpFollowed) whose bits are set.  No page is locked.
 */
extern void ip_keys_insert(Relation rel, const Oid *indexes, uint16 which,
						   TupleTableSlot *slot);

/*
 * Set the data page's IP_KEYS_*, which tell about its rows' entries.  map, for
 * keys of 0: see ip_change_visible.  Lock: exclusive.
 */
extern void ip_keys_write(Relation rel, Buffer buffer, uint8 keys, Buffer map);

/* See InplaceKeysTable. */
extern InplaceEntry ip_keys_judge(Relation rel, ItemPointer tid,
								  InplaceKeyMatch match, void *arg,
								  TupleTableSlot *slot, Buffer *vm,
								  TransactionId *conflict);
extern void ip_keys_removed(Relation rel, int n);

#endif							/* IP_KEYS_H */
