/*-------------------------------------------------------------------------
 * pb_build.h
 *	  CREATE INDEX.
 *-------------------------------------------------------------------------
 */
#ifndef PB_BUILD_H
#define PB_BUILD_H

#include "access/genam.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"

/*
 * Fill the empty index from the table, as ambuild does.  Error: a key is too
 * long, or a unique key is duplicated.
 */
extern IndexBuildResult *pb_build(Relation heap, Relation rel, IndexInfo *info);

/* Write the metapage of an unlogged index's init fork.  The page is logged. */
extern void pb_build_empty(Relation rel);

#endif							/* PB_BUILD_H */
