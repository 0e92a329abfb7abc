/*-------------------------------------------------------------------------
 * pb_insert.h
 *	  Insertion of a row's key.
 *-------------------------------------------------------------------------
 */
#ifndef PB_INSERT_H
#define PB_INSERT_H

#include "pb_search.h"
#include "pb_unique.h"

/*
 * Insert a row's key and TID.  Lock: none on a page.  unchanged: the row is a
 * new version with the same key.
 */
extern void pb_insert_key(Relation rel, Relation heap, PbIndex *index,
						  const PbKey *key, bool unchanged);

/*
 * Like pb_insert_key, but only if there is no such entry.  The row had another
 * key before, and perhaps this one before that.
 */
extern void pb_insert_again(Relation rel, Relation heap, PbIndex *index,
							const PbKey *key);

/*
 * Like pb_insert_key, if no live row has the key (I13).  Returns false if one
 * may have it, for UNIQUE_CHECK_PARTIAL.  Error: one has it.  It may wait.
 */
extern bool pb_insert_unique(PbUnique *u, const PbKey *key, bool unchanged);

#endif							/* PB_INSERT_H */
