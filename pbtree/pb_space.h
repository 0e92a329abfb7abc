/*-------------------------------------------------------------------------
 * pb_space.h
 *	  New pages, and deleted ones that are used again.
 *-------------------------------------------------------------------------
 */
#ifndef PB_SPACE_H
#define PB_SPACE_H

#include "pb_index.h"

/* May the page be used again (I11)?  Lock: read. */
extern bool pb_space_is_free(Relation heap, Page page);

/*
 * A page to be made by PB_OP_IMAGE.  Lock: write.  It waits for no page's
 * lock, but for the extension lock.
 */
extern Buffer pb_space_get(Relation rel);

#endif							/* PB_SPACE_H */
