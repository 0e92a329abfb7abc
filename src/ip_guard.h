/*-------------------------------------------------------------------------
 * ip_guard.h
 *	  Keeps code that takes every table for a heap away from our tables.
 *-------------------------------------------------------------------------
 */
#ifndef IP_GUARD_H
#define IP_GUARD_H

#include "utils/relcache.h"

/* Install the hooks; when the library is loaded. */
extern void ip_guard_init(void);

/* Before the backend gets a slot for the table: is it one that would take the slot for heap's? */
extern void ip_guard_slot(Relation rel);

#endif							/* IP_GUARD_H */
