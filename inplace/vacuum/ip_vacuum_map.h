/*-------------------------------------------------------------------------
 * ip_vacuum_map.h
 *	  VACUUM and the visibility map.
 *-------------------------------------------------------------------------
 */
#ifndef IP_VACUUM_MAP_H
#define IP_VACUUM_MAP_H

#include "ip_vacuum_index.h"

/*
 * Take away the page's flag and the map's bits where they say more than is true, with a warning; v->vm is the map's page.
 * is_data: it is a data page, any other is not all-visible.  The map's bits, as they are now.  Lock: the page, exclusively.
 */
extern uint8 ip_vacuum_map_distrust(IpVacuum *v, BlockNumber block, Buffer buffer, bool is_data);

/* VACUUM is done with the data page: count the bits that have been set since they were these.  Lock: the same. */
extern void ip_vacuum_map_count(IpVacuum *v, BlockNumber block, Buffer buffer, uint8 before);

#endif							/* IP_VACUUM_MAP_H */
