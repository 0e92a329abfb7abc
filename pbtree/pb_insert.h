/*-------------------------------------------------------------------------
 * pb_insert.h
 *	  Insertion of a row's key.
 *-------------------------------------------------------------------------
 */
#ifndef PB_INSERT_H
#define PB_INSERT_H

#include "pb_search.h"
#include "pb_unique.h"

extern void pb_insert_key(Relation rel, Relation heap, PbIndex *index, const PbKey *key,
						  bool unchanged);

/* The same, if there is no such entry: the row had another key before, and perhaps this one before that. */
extern void pb_insert_again(Relation rel, Relation heap, PbIndex *index, const PbKey *key);
extern bool pb_insert_unique(PbUnique *u, const PbKey *key, bool unchanged);

#endif							/* PB_INSERT_H */
