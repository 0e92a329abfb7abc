/*-------------------------------------------------------------------------
 * ip_vacuum_keys.h
 *	  VACUUM and index entries that are stale.
 *-------------------------------------------------------------------------
 */
#ifndef IP_VACUUM_KEYS_H
#define IP_VACUUM_KEYS_H

#include "ip_vacuum_index.h"

/*
 * A data page, just pruned: are its rows' index entries to be looked at?  Lock: exclusive.
 */
extern void ip_vacuum_keys_note(IpVacuum *v, BlockNumber block, Buffer buffer);

/* The indexes are clean: so are the pages noted before, unless keys have changed again. */
extern void ip_vacuum_keys_clear(IpVacuum *v);

#endif							/* IP_VACUUM_KEYS_H */
