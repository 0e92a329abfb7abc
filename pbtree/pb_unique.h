/*-------------------------------------------------------------------------
 * pb_unique.h
 *	  Is a key that is inserted into a unique index there already?
 *-------------------------------------------------------------------------
 */
#ifndef PB_UNIQUE_H
#define PB_UNIQUE_H

#include "access/genam.h"

#include "pb_pos.h"

/* A row that is about to be inserted; what the check has found. */
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
	PB_DUPLICATE,				/* perhaps, if the check was a partial one */
	PB_WAIT
} PbVerdict;

/* Must a row with these NULLs be unique? */
extern bool pb_unique_applies(Relation rel, const PbIndex *index, const bool *isnull);

/*
 * Is there a live row with the key?  Lock: write, leaf, kept (I13); leaves to
 * the right are locked for reading meanwhile.  Error: there is one; locks are
 * released.
 */
extern PbVerdict pb_unique_check(PbUnique *u, Buffer leaf, PbPos *first, int slot);

/* Wait for the transaction that decides.  No page may be locked. */
extern void pb_unique_wait(PbUnique *u);

/* The error for a key that comes twice in a build. */
extern void pb_unique_report_build(Relation heap, Relation rel, PbIndex *index, const PbKey *key);

#endif							/* PB_UNIQUE_H */
