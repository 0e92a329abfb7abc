/*-------------------------------------------------------------------------
 * ip_guard.h
 *	  Keeps code that takes every table for a heap away from our tables.
 *-------------------------------------------------------------------------
 */
#ifndef IP_GUARD_H
#define IP_GUARD_H

#include "access/tableam.h"

/*
 * Install the hooks; when the library is loaded.  methods is what the access
 * method's handler returns.
 */
extern void ip_guard_init(const TableAmRoutine *methods);

/* Before the backend gets a slot for the table: is it one that would take the slot for heap's? */
extern void ip_guard_slot(Relation rel);

#endif							/* IP_GUARD_H */
