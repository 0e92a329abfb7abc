/*-------------------------------------------------------------------------
 * ip_index_delete.h
 *	  Which entries of an index page may be deleted, as their rows are dead.
 *-------------------------------------------------------------------------
 */
#ifndef IP_INDEX_DELETE_H
#define IP_INDEX_DELETE_H

#include "access/tableam.h"

/*
 * The index page is locked exclusively.  Leaves only the deletable entries in
 * op->deltids, all of them marked so.  Returns the newest xid that a snapshot
 * on a standby must see before they are deleted, or none.  Errors:
 * index_corrupted, data_corrupted.
 */
extern TransactionId ip_index_delete_tuples(Relation rel, TM_IndexDeleteOp *op);

#endif							/* IP_INDEX_DELETE_H */
