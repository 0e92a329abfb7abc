/*-------------------------------------------------------------------------
 * ip_toast.h
 *	  Forming rows from slots; large values are stored in a heap TOAST table.
 *-------------------------------------------------------------------------
 */
#ifndef IP_TOAST_H
#define IP_TOAST_H

#include "compat.h"

#include "access/htup.h"
#include "utils/relcache.h"

#include "ip_slot.h"

/*
 * Returns whether the slot's row must be toasted before it can be stored in
 * rel.
 */
extern bool ip_toast_needed(Relation rel, TupleTableSlot *slot);

/*
 * Take the row that the slot has formed, if it is exactly what would be formed
 * and stored; true if so.  The executor's and COPY's slots are materialized,
 * so that they have such a row.  The body still belongs to the slot.
 */
extern bool ip_toast_take_formed(Relation rel, TupleTableSlot *slot,
								 IpFormed *row);

/*
 * Form the slot's row without toasting it.  Errors: program_limit_exceeded if
 * it is too long and will be stored so (final).
 */
extern void ip_toast_form(Relation rel, TupleTableSlot *slot, bool final,
						  IpFormed *row);

/*
 * Form the slot's row with its large values compressed or moved to the TOAST
 * table.  "old", if not NULL, is the row that it replaces; external values of
 * that row that the new one does not have are deleted.  No buffer lock may be
 * held.
 */
extern void ip_toast_form_toasted(Relation rel, TupleTableSlot *slot,
								  HeapTuple old, CompatOptions options,
								  IpFormed *row);

/* Make a heap tuple with a row's values, for core's TOAST functions. */
extern HeapTuple ip_toast_heap_tuple(Relation rel, uint16 hdr,
									 const uint8 *body, uint32 bodylen);

/* Delete a row's external values. */
extern void ip_toast_delete(Relation rel, HeapTuple old, bool is_speculative);

extern bool ip_toast_needs_table(Relation rel);

#endif							/* IP_TOAST_H */
