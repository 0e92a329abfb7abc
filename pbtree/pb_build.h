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

extern IndexBuildResult *pb_build(Relation heap, Relation rel, IndexInfo *info);
extern void pb_build_empty(Relation rel);

#endif							/* PB_BUILD_H */
