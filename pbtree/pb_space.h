/*-------------------------------------------------------------------------
 * pb_space.h
 *	  New pages, and reuse of deleted ones.
 *-------------------------------------------------------------------------
 */
#ifndef PB_SPACE_H
#define PB_SPACE_H

#include "pb_index.h"

/* True if the page may be reused (I11).  Lock: read. */
extern bool pb_space_is_free(Relation heap, Page page);

/*
 * Get a page whose contents PB_OP_IMAGE makes.  Lock: write.  It waits for no
 * page's lock, only for the extension lock.
 */
extern Buffer pb_space_get(Relation rel);

#endif							/* PB_SPACE_H */
