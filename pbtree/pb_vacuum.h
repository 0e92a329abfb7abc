/*-------------------------------------------------------------------------
 * pb_vacuum.h
 *	  VACUUM.
 *-------------------------------------------------------------------------
 */
#ifndef PB_VACUUM_H
#define PB_VACUUM_H

#include "access/genam.h"

extern IndexBulkDeleteResult *pb_vacuum_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
											   IndexBulkDeleteCallback callback, void *state);
extern IndexBulkDeleteResult *pb_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats);

#endif							/* PB_VACUUM_H */
