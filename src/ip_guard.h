/*-------------------------------------------------------------------------
 * ip_guard.h
 *	  Keeps functions that take every table for a heap away from ours.
 *-------------------------------------------------------------------------
 */
#ifndef IP_GUARD_H
#define IP_GUARD_H

/* Install the hooks; when the library is loaded. */
extern void ip_guard_init(void);

#endif							/* IP_GUARD_H */
