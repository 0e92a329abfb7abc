/*-------------------------------------------------------------------------
 * pb_dead.h
 *	  Deletion of dead items, outside of VACUUM.
 *-------------------------------------------------------------------------
 */
#ifndef PB_DEAD_H
#define PB_DEAD_H

#include "pb_key.h"

extern bool pb_dead_remove_marked(Relation rel, Relation heap, PbIndex *index, Buffer buffer);
extern void pb_dead_remove_stale(Relation rel, Relation heap, PbIndex *index, Buffer buffer);

/* The same for a scan that has read much in vain; not if it would have to wait for the leaf's lock. */
extern void pb_dead_remove_stale_of_scan(Relation rel, Relation heap, PbIndex *index, Buffer buffer);
extern bool pb_dead_remove_versions(Relation rel, Relation heap, PbIndex *index, Buffer buffer);

#endif							/* PB_DEAD_H */
