/*-------------------------------------------------------------------------
 * ip_items.h
 *	  Resizing a page's items, and moving those below them.
 *
 *	  All functions work on a page that is locked exclusively and may be
 *	  damaged.  They report failure by their result only, because the callers
 *	  are in critical sections.
 *-------------------------------------------------------------------------
 */
#ifndef IP_ITEMS_H
#define IP_ITEMS_H

#include "storage/bufpage.h"

/* Begin a change of a page. */
extern void ip_items_begin(void);

/*
 * End the change: close the gaps that shrunk items have left.  False if the
 * page's items overlap.
 */
extern bool ip_items_end(Page page);

/*
 * Give the item newlen bytes (0: it becomes dead), moving the items below it;
 * its contents are undefined afterwards.  off may be the maximum + 1.  False
 * if it does not fit.
 */
extern bool ip_items_resize(Page page, OffsetNumber off, uint32 newlen);

/* Remove unused line pointers at the end of the array. */
extern void ip_items_trim(Page page);

#endif							/* IP_ITEMS_H */
