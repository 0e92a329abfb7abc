/*-------------------------------------------------------------------------
 * ip_keys.h
 *	  Index keys that updates in place have changed.
 *
 * See inplace_keys.h.  A column is *followed* if only indexes have it that follow (and summarizing ones,
 * from PostgreSQL 16 on).
 *-------------------------------------------------------------------------
 */
#ifndef IP_KEYS_H
#define IP_KEYS_H

#include "inplace_keys.h"

#include "ip_rel.h"

/* Can the index follow updates in place, in whatever state it is? */
extern bool ip_keys_can_follow(Relation index);

/* The followed columns of a table whose indexes the caller has locked, from its cache. */
extern const IpFollowed *ip_keys_followed(Relation rel);

/*
 * The row in the slot has been updated in place: add its entries to those of the indexes (see IpFollowed) whose bits are set.  No page is
 * locked.
 */
extern void ip_keys_insert(Relation rel, const Oid *indexes, uint16 which, TupleTableSlot *slot);

/* What the data page in the buffer says of its rows' entries becomes IP_KEYS_*.  map, if that is none: see ip_change_visible.  Lock: exclusive. */
extern void ip_keys_write(Relation rel, Buffer buffer, uint8 keys, Buffer map);

/* See InplaceKeysTable. */
extern InplaceEntry ip_keys_judge(Relation rel, ItemPointer tid, InplaceKeyMatch match, void *arg,
								  TupleTableSlot *slot, Buffer *vm, TransactionId *conflict);
extern void ip_keys_removed(Relation rel, int n);

#endif							/* IP_KEYS_H */
