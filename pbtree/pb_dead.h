/*-------------------------------------------------------------------------
 * pb_dead.h
 *	  Deletion of dead items, outside of VACUUM.
 *-------------------------------------------------------------------------
 */
#ifndef PB_DEAD_H
#define PB_DEAD_H

#include "pb_key.h"

extern bool pb_dead_remove_marked(Relation rel, Relation heap, PbIndex *index, Buffer buffer);
extern void pb_dead_remove_stale(Relation rel, Relation heap, PbIndex *index, Buffer buffer, bool wait);
extern bool pb_dead_remove_versions(Relation rel, Relation heap, PbIndex *index, Buffer buffer);

#endif							/* PB_DEAD_H */
