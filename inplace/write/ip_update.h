/*-------------------------------------------------------------------------
 * ip_update.h
 *	  Updating and deleting rows.
 *-------------------------------------------------------------------------
 */
#ifndef IP_UPDATE_H
#define IP_UPDATE_H

#include "compat.h"

/* options: TABLE_DELETE_*, TABLE_UPDATE_* */
extern TM_Result ip_update_delete(Relation rel, ItemPointer tid, CommandId cid,
								  uint32 options, Snapshot snapshot,
								  Snapshot crosscheck, bool wait,
								  TM_FailureData *tmfd);
extern TM_Result ip_update_tuple(Relation rel, ItemPointer tid,
								 TupleTableSlot *slot, CommandId cid,
								 uint32 options, Snapshot snapshot,
								 Snapshot crosscheck, bool wait,
								 TM_FailureData *tmfd, LockTupleMode *lockmode,
								 CompatUpdateIndexes *update_indexes);

#endif							/* IP_UPDATE_H */
