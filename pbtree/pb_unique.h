/*-------------------------------------------------------------------------
 * pb_unique.h
 *	  Check for duplicates of a key that is inserted into a unique index.
 *-------------------------------------------------------------------------
 */
#ifndef PB_UNIQUE_H
#define PB_UNIQUE_H

#include "access/genam.h"

#include "pb_pos.h"

/* A row that is about to be inserted, and the result of the check. */
typedef struct PbUnique
{
	Relation	rel;
	Relation	heap;
	PbIndex    *index;
	IndexUniqueCheck check;
	const Datum *values;		/* of the row, for messages */
	const bool *isnull;
	ItemPointerData tid;
	int			nequal;			/* items with the key */
	bool		found;			/* the row is in the index already */
	TransactionId wait;			/* must end first */
	uint32		token;			/* or its speculative insertion */
} PbUnique;

typedef enum PbVerdict
{
	PB_UNIQUE,
	PB_DUPLICATE,				/* perhaps, if the check was partial */
	PB_WAIT
} PbVerdict;

/* True if a row with these NULLs must be unique. */
extern bool pb_unique_applies(Relation rel, const PbIndex *index,
							  const bool *isnull);

/*
 * Check for a live row with the key.  Lock: write, leaf, kept (I13); leaves to
 * the right are locked for reading in between.  Error: there is one; locks are
 * released.
 */
extern PbVerdict pb_unique_check(PbUnique *u, Buffer leaf, PbPos *first,
								 int slot);

/* Wait for the transaction that decides.  No page may be locked. */
extern void pb_unique_wait(PbUnique *u);

/* Raise the error for a duplicate key in a build. */
extern void pb_unique_report_build(Relation heap, Relation rel, PbIndex *index,
								   const PbKey *key);

#endif							/* PB_UNIQUE_H */
