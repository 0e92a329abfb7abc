/*-------------------------------------------------------------------------
 * ip_guard.h
 *	  Keeps code that takes every table for a heap away from our tables.
 *-------------------------------------------------------------------------
 */
#ifndef IP_GUARD_H
#define IP_GUARD_H

/* Install the hooks; when the library is loaded. */
extern void ip_guard_init(void);

#endif							/* IP_GUARD_H */
