/*-------------------------------------------------------------------------
 * pb_vacuum.h
 *	  VACUUM.
 *-------------------------------------------------------------------------
 */
#ifndef PB_VACUUM_H
#define PB_VACUUM_H

#include "access/genam.h"

/*
 * Remove rows that the callback names, as ambulkdelete does.  Lock: none on a
 * page.
 */
extern IndexBulkDeleteResult *pb_vacuum_delete(IndexVacuumInfo *info,
											   IndexBulkDeleteResult *stats,
											   IndexBulkDeleteCallback callback,
											   void *state);

/* Finish VACUUM, as amvacuumcleanup does. */
extern IndexBulkDeleteResult *pb_vacuum_cleanup(IndexVacuumInfo *info,
												IndexBulkDeleteResult *stats);

#endif							/* PB_VACUUM_H */
