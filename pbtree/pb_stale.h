/*-------------------------------------------------------------------------
 * pb_stale.h
 *	  Entries that are stale, since inplace has changed their rows' keys in place.
 *
 * See inplace_keys.h.
 *-------------------------------------------------------------------------
 */
#ifndef PB_STALE_H
#define PB_STALE_H

#include "inplace_keys.h"

#include "pb_key.h"

/* Pages of the table that are read ahead. */
#define PB_STALE_AHEAD	8

/* An entry, and its table, or NULL: entries of the index cannot be stale. */
typedef struct PbStale
{
	const InplaceKeysTable *table;
	Relation	heap;
	Relation	rel;
	PbIndex    *index;
	const PbKey *key;
	MemoryContext context;
	TupleTableSlot *slot;
	Buffer		vm;
	bool		owns_heap;		/* a reference to it */
	Relation	toast;			/* of VACUUM: locked, with its indexes, or
								 * NULL */
	Relation   *toast_indexes;
	int			ntoast_indexes;
	const ItemPointerData *tids;	/* that are going to be asked about */
	int			ntids;
	int			nread;			/* so many pages of these have been read ahead */
	int			nasked;
	Buffer		ahead[PB_STALE_AHEAD];
	double		nold;			/* answers that an entry is needed for older
								 * versions */
} PbStale;

/* To be called when the library is loaded: publishes keys. */
extern void pb_stale_init(InplaceKeysIndex *keys);

/* Can updates in place be followed; by the heap's kind, too?  heap NULL: the index's table is looked up. */
extern bool pb_stale_can_follow(Relation rel, const PbIndex *index);
extern bool pb_stale_applies(Relation rel, const PbIndex *index, Relation heap);

/*
 * For questions about entries of a leaf that is locked exclusively.  If it is not locked yet, heap is NULL: then locks for the
 * rows' long values are taken now.  Else entries of rows with such values count as needed.
 */
extern void pb_stale_begin(PbStale *s, Relation rel, PbIndex *index, Relation heap);
extern void pb_stale_end(PbStale *s);

/* See InplaceKeysTable.  *conflict, which may be invalid, becomes the newest of what it was and what an entry that is not needed conflicts with. */
extern bool pb_stale_is_needed(PbStale *s, const PbKey *key, ItemPointer tid, TransactionId *conflict);

/* The next questions are about these, in this order. */
extern void pb_stale_ahead(PbStale *s, const ItemPointerData *tids, int n);

/*
 * The key that the row in the slot has.  false: it is too long, as a version of before the index may be, or lost (see
 * InplaceKeyMatch).  What it takes of memory is for the caller to reset.
 */
extern bool pb_stale_form(Relation rel, PbIndex *index, TupleTableSlot *slot, PbKey *key, bool *is_lost);

#endif							/* PB_STALE_H */
