/*-------------------------------------------------------------------------
 * pb_dead.h
 *	  Deletion of dead items, outside of VACUUM.
 *-------------------------------------------------------------------------
 */
#ifndef PB_DEAD_H
#define PB_DEAD_H

#include "pb_key.h"

/*
 * Delete rows that scans have marked, and dead ones of the same blocks.
 * Returns true if any was deleted.  Lock: write, a leaf, kept.  It reads the
 * table.
 */
extern bool pb_dead_remove_marked(Relation rel, Relation heap, PbIndex *index,
								  Buffer buffer);

/*
 * Delete entries with keys that rows no longer have, if a sample has many.
 * Lock: none; the leaf is pinned.  It is locked for writing in between.
 */
extern void pb_dead_remove_stale(Relation rel, Relation heap, PbIndex *index,
								 Buffer buffer);

/*
 * Like pb_dead_remove_stale, for a scan that has read many stale entries.  It
 * does nothing if it would have to wait for the leaf's lock.
 */
extern void pb_dead_remove_stale_of_scan(Relation rel, Relation heap,
										 PbIndex *index, Buffer buffer);

/*
 * Bottom-up deletion.  Returns true if rows were deleted.  Lock: write, a
 * leaf, kept.  It reads the table.  Error: the leaf is damaged.
 */
extern bool pb_dead_remove_versions(Relation rel, Relation heap, PbIndex *index,
									Buffer buffer);

#endif							/* PB_DEAD_H */
