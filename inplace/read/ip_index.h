/*-------------------------------------------------------------------------
 * ip_index.h
 *	  Building indexes on inplace tables.
 *-------------------------------------------------------------------------
 */
#ifndef IP_INDEX_H
#define IP_INDEX_H

#include "access/tableam.h"
#include "nodes/execnodes.h"

extern double ip_index_build_range_scan(Relation table, Relation index,
										IndexInfo *info, bool allow_sync,
										bool anyvisible, bool progress,
										BlockNumber start_block,
										BlockNumber nblocks,
										IndexBuildCallback callback,
										void *callback_state,
										TableScanDesc sscan);

/* index_validate_scan: the second pass of CREATE INDEX CONCURRENTLY. */
extern void ip_index_validate_scan(Relation table, Relation index,
								   struct IndexInfo *info, Snapshot snapshot,
								   struct ValidateIndexState *state);

#endif							/* IP_INDEX_H */
