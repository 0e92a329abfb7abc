/*-------------------------------------------------------------------------
 * pb_space.h
 *	  New pages, and deleted ones that are used again.
 *-------------------------------------------------------------------------
 */
#ifndef PB_SPACE_H
#define PB_SPACE_H

#include "pb_index.h"

extern bool pb_space_is_free(Relation heap, Page page);
extern Buffer pb_space_get(Relation rel);

#endif							/* PB_SPACE_H */
