/*-------------------------------------------------------------------------
 * ip_insert.h
 *	  Forming rows out of slots, and inserting them.
 *-------------------------------------------------------------------------
 */
#ifndef IP_INSERT_H
#define IP_INSERT_H

#include "access/heapam.h"

#include "ip_row.h"
#include "ip_wal.h"

/* Must the slot's row go through TOAST before it can be stored in rel? */
extern bool ip_toast_needed(Relation rel, TupleTableSlot *slot);

/*
 * Form the slot's row as it is.  Errors: program_limit_exceeded, if it is too
 * long and will be stored like that (final).
 */
extern void ip_form(Relation rel, TupleTableSlot *slot, bool final, IpFormed *row);

/*
 * Form it with its large values compressed or moved to the TOAST table; old,
 * if not NULL, is the row that it replaces, whose external values are deleted
 * where the new row does not have them.  No buffer lock may be held.
 */
extern void ip_form_toasted(Relation rel, TupleTableSlot *slot, HeapTuple old,
							int options, IpFormed *row);

/* Form the slot's row for an insertion: behind TOAST if it must be. */
extern void ip_form_for_insert(Relation rel, TupleTableSlot *slot, int options, IpFormed *row);

/* A heap tuple with a row's values, for the core's TOAST functions. */
extern HeapTuple ip_heap_tuple(Relation rel, uint16 hdr, const uint8 *body, uint32 bodylen);

/* Delete a row's external values. */
extern void ip_toast_delete(Relation rel, HeapTuple old, bool is_speculative);

extern bool ip_needs_toast_table(Relation rel);

/* How a new row tells who inserted it. */
typedef enum IpInserter
{
	IP_INSERTER_NONE,			/* it does not: the row is visible to all */
	IP_INSERTER_DEFAULT,		/* the page's default inserter */
	IP_INSERTER_OWN				/* a version block of its own */
} IpInserter;

/*
 * Put the operations that must come before a page's first new row of (xid, cid);
 * xid is invalid for rows that all shall see.  The rows need a version block if
 * the page has another default inserter.  (Only a prune clears that, because on a
 * standby it conflicts with snapshots that do not see its rows.)
 */
extern IpInserter ip_put_inserter(IpWriter *w, Page page, bool init, TransactionId xid,
								  CommandId cid);

/* Put the operation that inserts a row. */
extern void ip_put_new_row(IpWriter *w, IpInserter inserter, OffsetNumber off,
						   const IpFormed *row, CommandId cid);

/*
 * Insert a row as xid and cid did, into a table that nobody else can see;
 * xid is invalid if all shall see it.  *tid becomes its TID.
 */
extern void ip_insert_as(Relation rel, const IpFormed *row, TransactionId xid,
						 CommandId cid, ItemPointer tid);

/* Insert rows that all shall see into such a table. */
extern void ip_insert_final(Relation rel, const IpFormed *rows, int nrows);

/* The slot now holds a version that we have just made; xmax: its locker, or invalid. */
extern void ip_slot_set_written(TupleTableSlot *slot, Relation rel, BlockNumber block,
								OffsetNumber off, TransactionId xid, CommandId cid,
								TransactionId xmax);

extern void ip_tuple_insert(Relation rel, TupleTableSlot *slot, CommandId cid,
							int options, BulkInsertState bistate);
extern void ip_tuple_insert_speculative(Relation rel, TupleTableSlot *slot, CommandId cid,
										int options, BulkInsertState bistate, uint32 token);
extern void ip_tuple_complete_speculative(Relation rel, TupleTableSlot *slot,
										  uint32 token, bool succeeded);
extern void ip_multi_insert(Relation rel, TupleTableSlot **slots, int nslots, CommandId cid,
							int options, BulkInsertState bistate);

#endif							/* IP_INSERT_H */
