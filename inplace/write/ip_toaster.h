/*-------------------------------------------------------------------------
 * ip_toaster.h
 *	  Making rows fit a page: large values are compressed, or moved to the
 *	  TOAST table.
 *-------------------------------------------------------------------------
 */
#ifndef IP_TOASTER_H
#define IP_TOASTER_H

#include "access/htup.h"
#include "executor/tuptable.h"

#include "ip_body.h"
#include "ip_value_save.h"

/*
 * Form the slot's row with its large values compressed or moved to the TOAST
 * table.  "old", if not NULL, is the row that it replaces; external values of
 * that row that the new one does not have are deleted.  No page may be locked.
 * Errors: program_limit_exceeded if the row is too long even so.
 */
extern void ip_toaster_form(const IpValueChange *change, TupleTableSlot *slot,
							HeapTuple old, IpFormed *row);

/* Delete a row's external values. */
extern void ip_toaster_delete(const IpValueChange *change, HeapTuple old);

#endif							/* IP_TOASTER_H */
