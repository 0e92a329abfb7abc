/*-------------------------------------------------------------------------
 * ip_guard.h
 *	  Keeps code that takes every table for a heap away from our tables.
 *-------------------------------------------------------------------------
 */
#ifndef IP_GUARD_H
#define IP_GUARD_H

#include "access/tableam.h"

/*
 * Install the hooks when the library is loaded.  methods: the result of the
 * access method's handler.
 */
extern void ip_guard_init(const TableAmRoutine *methods);

/*
 * Called before the backend gets a slot for the table.  Raises an error in a
 * process that would take the slot for one of heap.
 */
extern void ip_guard_slot(Relation rel);

#endif							/* IP_GUARD_H */
