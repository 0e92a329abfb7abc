/*-------------------------------------------------------------------------
 * pb_tuple.h
 *	  Index-only scans' rows, as nbtree would have stored them.
 *-------------------------------------------------------------------------
 */
#ifndef PB_TUPLE_H
#define PB_TUPLE_H

#include "pb_key.h"

#define PB_TUPLE_ROOM	2048

/* The offsets of columns of fixed width in a tuple without NULLs. */
typedef struct PbTupleShape
{
	int			size;			/* 0 if columns' widths vary */
	uint16		off[INDEX_MAX_KEYS];
} PbTupleShape;

/*
 * Compute the offsets of columns of fixed width in a tuple; size is 0 if
 * widths vary.
 */
extern void pb_tuple_shape(Relation rel, const PbIndex *index,
						   PbTupleShape *shape);

/* Form the tuple of a key of fixed width, in shape->size bytes. */
extern void pb_tuple_form_fixed(const PbIndex *index, const PbTupleShape *shape,
								const uint8 *key, IndexTuple tuple);

/*
 * Convert values for an index tuple; changed ones are palloc'd.  "packed" can
 * be "values".
 */
extern void pb_tuple_pack(const PbIndex *index, const Datum *values,
						  const bool *isnull, Datum *packed);

/*
 * Form the tuple of a key, in space of PB_TUPLE_ROOM bytes, or palloc'd.  The
 * caller sets the TID.
 */
extern IndexTuple pb_tuple_form(Relation rel, PbIndex *index, PbKey *key,
								PbArena *arena, void *space);

#endif							/* PB_TUPLE_H */
