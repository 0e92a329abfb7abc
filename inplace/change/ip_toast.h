/*-------------------------------------------------------------------------
 * ip_toast.h
 *	  Forming rows from slots, and telling whether they must be toasted first
 *	  (ip_toaster.h).
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
extern void ip_toast_form_values(Relation rel, const Datum *values,
								 const bool *isnull, bool final,
								 IpFormed *row);

/* Make a heap tuple with a row's values, for core's functions. */
extern HeapTuple ip_toast_heap_tuple(Relation rel, uint16 hdr,
									 const uint8 *body, uint32 bodylen);

extern bool ip_toast_needs_table(Relation rel);

#endif							/* IP_TOAST_H */
