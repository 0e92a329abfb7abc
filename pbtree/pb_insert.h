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
 * Insert a row's key and TID.  Lock: none of a page.  unchanged: the row is a
 * new version with the same key.
 */
extern void pb_insert_key(Relation rel, Relation heap, PbIndex *index, const PbKey *key,
						  bool unchanged);

/* The same, if there is no such entry: the row had another key before, and perhaps this one before that. */
extern void pb_insert_again(Relation rel, Relation heap, PbIndex *index, const PbKey *key);

/*
 * As pb_insert_key, if no live row has the key (I13); false if one may have,
 * for UNIQUE_CHECK_PARTIAL.  Error: one has.  It may wait.
 */
extern bool pb_insert_unique(PbUnique *u, const PbKey *key, bool unchanged);

#endif							/* PB_INSERT_H */
