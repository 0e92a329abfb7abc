/*-------------------------------------------------------------------------
 * ip_vacuum_map.h
 *	  VACUUM and the visibility map.
 *-------------------------------------------------------------------------
 */
#ifndef IP_VACUUM_MAP_H
#define IP_VACUUM_MAP_H

#include "ip_vacuum_index.h"

/* Do all see all of the data page's rows?  There may be dead items.  Lock: share. */
extern bool ip_vacuum_map_is_plain(Page page);

/*
 * Make the data page's flag and the map's bits say what is true; v->vm is the map's page.  Warnings where they
 * said more.  Lock: the page, exclusively.
 */
extern void ip_vacuum_map_reconcile(IpVacuum *v, BlockNumber block, Buffer buffer);

/* The same for any page, of which it is known whether all see it; flag and bits are only taken away. */
extern void ip_vacuum_map_distrust(IpVacuum *v, BlockNumber block, Buffer buffer, bool visible);

#endif							/* IP_VACUUM_MAP_H */
