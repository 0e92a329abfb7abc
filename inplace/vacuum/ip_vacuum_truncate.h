/*-------------------------------------------------------------------------
 * ip_vacuum_truncate.h
 *	  VACUUM cuts off free pages at the end of the file.
 *-------------------------------------------------------------------------
 */
#ifndef IP_VACUUM_TRUNCATE_H
#define IP_VACUUM_TRUNCATE_H

#include "ip_vacuum_index.h"

/*
 * Cut off free pages, as long as nobody waits for the table; v->nblocks becomes
 * the new number of blocks.
 */
extern void ip_vacuum_truncate(IpVacuum *v);

#endif							/* IP_VACUUM_TRUNCATE_H */
