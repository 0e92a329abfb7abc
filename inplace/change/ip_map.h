/*-------------------------------------------------------------------------
 * ip_map.h
 *	  Pages that are all-visible, and their bits in the visibility map.
 *
 *	  A change that ends with IP_OP_VISIBLE sets the page's mark and the bits
 *	  (ip_change_visible); any other change clears both.
 *-------------------------------------------------------------------------
 */
#ifndef IP_MAP_H
#define IP_MAP_H

#include "ip_row.h"

/*
 * Returns whether all of the data page's rows are visible to all.  There may
 * be dead items and stale keys.  Lock: share.
 */
extern bool ip_map_is_frozen(Page page);

/*
 * Returns whether the page may be marked all-visible (I12): ip_map_is_frozen,
 * and every index entry has a row with its key.  Lock: share.
 */
extern bool ip_map_is_visible(Page page);

/*
 * Set the bits of a data page's block.  map: the map's page for it; core's
 * visibilitymap.c describes its layout.  Lock: exclusive.
 */
extern void ip_map_set(Page map, BlockNumber block);

#endif							/* IP_MAP_H */
