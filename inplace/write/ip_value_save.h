/*-------------------------------------------------------------------------
 * ip_value_save.h
 *	  Storing and deleting large values (ip_value.h).
 *-------------------------------------------------------------------------
 */
#ifndef IP_VALUE_SAVE_H
#define IP_VALUE_SAVE_H

#include "compat.h"

#include "utils/rel.h"

/* The change that makes or deletes values. */
typedef struct IpValueChange
{
	Relation	rel;			/* the main table */
	TransactionId xid;			/* invalid: the values are visible to all */
	CommandId	cid;
	bool		replay;			/* xid is not our own: a table's history is
								 * rewritten */
	CompatOptions options;		/* TABLE_INSERT_SKIP_FSM and _NO_LOGICAL */
} IpValueChange;

/*
 * Store a value: a plain one, with a header of any length.  method: how it is
 * compressed; 0: not at all.  old: the TOAST pointer of the version before, or
 * NULL; its blocks are shared, and what the new value does not have of it is
 * deleted.  Returns the TOAST pointer, palloc'd; it is that of the old value if
 * the values are the same.  No lock on a page may be held.
 */
extern struct varlena *ip_value_save(const IpValueChange *change,
									 const struct varlena *value, char method,
									 const struct varlena *old);

/*
 * Copy the value of a TOAST pointer to the change's table, block by block.
 * method: for blocks that are not compressed.  Returns the new TOAST pointer,
 * palloc'd; NULL if the value has no blocks, or if logical decoding may need
 * it: then it has to be read and saved.  No lock on a page may be held.
 */
extern struct varlena *ip_value_copy(const IpValueChange *change,
									 const struct varlena *pointer,
									 char method);

/*
 * Delete a value.  What is damaged of it stays, with a warning.  No lock on a
 * page may be held.
 */
extern void ip_value_delete(const IpValueChange *change,
							const struct varlena *pointer);

#endif							/* IP_VALUE_SAVE_H */
