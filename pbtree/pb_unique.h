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

extern bool pb_unique_applies(Relation rel, const PbIndex *index, const bool *isnull);
extern PbVerdict pb_unique_check(PbUnique *u, Buffer leaf, PbPos *first, int slot);
extern void pb_unique_wait(PbUnique *u);
extern void pb_unique_report_build(Relation heap, Relation rel, PbIndex *index, const PbKey *key);

#endif							/* PB_UNIQUE_H */
