/*-------------------------------------------------------------------------
 * pb_dead.h
 *	  Deletion of dead items, outside of VACUUM.
 *-------------------------------------------------------------------------
 */
#ifndef PB_DEAD_H
#define PB_DEAD_H

#include "pb_key.h"

/*
 * Delete rows that scans have marked, and dead ones of the same blocks; true
 * if some went.  Lock: write, a leaf, kept.  It reads the table.
 */
extern bool pb_dead_remove_marked(Relation rel, Relation heap, PbIndex *index, Buffer buffer);

/*
 * Delete entries with keys that rows have no more, if a sample has many.  Lock:
 * none, a leaf that is pinned; it is locked for writing meanwhile.
 */
extern void pb_dead_remove_stale(Relation rel, Relation heap, PbIndex *index, Buffer buffer);

/* The same for a scan that has read much in vain; not if it would have to wait for the leaf's lock. */
extern void pb_dead_remove_stale_of_scan(Relation rel, Relation heap, PbIndex *index, Buffer buffer);

/*
 * Bottom-up deletion; true if rows went.  Lock: write, a leaf, kept.  It reads
 * the table.  Error: the leaf is damaged.
 */
extern bool pb_dead_remove_versions(Relation rel, Relation heap, PbIndex *index, Buffer buffer);

#endif							/* PB_DEAD_H */
