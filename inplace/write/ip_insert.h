/*-------------------------------------------------------------------------
 * ip_insert.h
 *	  Inserting rows.
 *-------------------------------------------------------------------------
 */
#ifndef IP_INSERT_H
#define IP_INSERT_H

#include "compat.h"

#include "access/heapam.h"

#include "ip_body.h"
#include "ip_value_save.h"

/* Form the slot's row for an insertion, toasted if necessary. */
extern void ip_insert_form(const IpValueChange *change, TupleTableSlot *slot,
						   IpFormed *row);

/*
 * Insert a row in the name of xid and cid, into a table that no other
 * transaction can see.  xid is invalid if the row is to be visible to all.
 * *tid becomes its TID.
 */
extern void ip_insert_as(Relation rel, const IpFormed *row, TransactionId xid,
						 CommandId cid, ItemPointer tid);

/*
 * Insert rows that are to be visible to all into a table that no other
 * transaction can see.
 */
extern void ip_insert_frozen(Relation rel, const IpFormed *rows, int nrows);

extern void ip_insert_tuple(Relation rel, TupleTableSlot *slot, CommandId cid,
							CompatOptions options, BulkInsertState bistate);
extern void ip_insert_speculative(Relation rel, TupleTableSlot *slot,
								  CommandId cid, CompatOptions options,
								  BulkInsertState bistate, uint32 token);
extern void ip_insert_complete_speculative(Relation rel, TupleTableSlot *slot,
										   uint32 token, bool succeeded);
extern void ip_insert_multi(Relation rel, TupleTableSlot **slots,
							int nslots, CommandId cid, CompatOptions options,
							BulkInsertState bistate);

#endif							/* IP_INSERT_H */
