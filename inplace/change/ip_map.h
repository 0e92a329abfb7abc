/*-------------------------------------------------------------------------
 * ip_map.h
 *	  Pages that are all-visible, and their bits in the visibility map.
 *
 *	  A change that ends with IP_OP_VISIBLE sets both (ip_change_visible), any other change takes both away.
 *-------------------------------------------------------------------------
 */
#ifndef IP_MAP_H
#define IP_MAP_H

#include "ip_row.h"

/* Do all see all of the data page's rows?  There may be dead items, and stale keys.  Lock: share. */
extern bool ip_map_is_plain(Page page);

/* The same, and every index entry has a row, with its key: the page may be marked all-visible (I12). */
extern bool ip_map_is_visible(Page page);

/* Set the bits of a data page's block.  map: the map's page for it, core's visibilitymap.c draws it.  Lock: exclusive. */
extern void ip_map_set(Page map, BlockNumber block);

#endif							/* IP_MAP_H */
