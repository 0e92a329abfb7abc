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

/* A row takes at least a byte. */
#define PB_MAX_PAGE_TIDS	BLCKSZ

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
	ItemPointerData *suspects;	/* of a leaf's entries, in order */
	int			nsuspects;
	int			nold;			/* answers, since the first look at a leaf
								 * began, that an entry is needed for older
								 * versions */
} PbStale;

/* To be called when the library is loaded: publishes keys. */
extern void pb_stale_init(InplaceKeysIndex *keys);

/* Can updates in place be followed; by the heap's kind, too?  heap NULL: the index's table is looked up. */
extern bool pb_stale_can_follow(Relation rel, const PbIndex *index);

/* As above, and is the table an inplace one? */
extern bool pb_stale_applies(Relation rel, const PbIndex *index, Relation heap);

/*
 * For questions about entries of leaves.  heap NULL: locks for the rows' long values are taken now.  Else entries of rows with
 * such values count as needed.
 */
extern void pb_stale_begin(PbStale *s, Relation rel, PbIndex *index, Relation heap);

/* Release what pb_stale_begin has taken. */
extern void pb_stale_end(PbStale *s);

/*
 * The first look: which entries of the leaf are stale?  The table's pages are read while the leaf is pinned only, so the
 * answer proves nothing: who is to remove entries locks the leaf and asks again about those that are suspects, whose pages
 * are in memory now.  What comes meanwhile is none.  A sample first: only if that has many are all looked at.  How many.
 */
extern int	pb_stale_look(PbStale *s, Buffer buffer, bool sample);

/*
 * Is the page, which was a leaf, still one, and not damaged?  Lock: read, or a
 * copy.
 */
extern bool pb_stale_is_leaf(Page page);

/* Was the TID stale at the first look? */
extern bool pb_stale_is_suspect(const PbStale *s, ItemPointer tid);

/* The second look.  Lock: the leaf, exclusively.  See InplaceKeysTable.  *conflict, which may be invalid, becomes the newest of what it was and what an entry that is not needed conflicts with. */
extern bool pb_stale_is_needed(PbStale *s, const PbKey *key, ItemPointer tid, TransactionId *conflict);

/*
 * The key that the row in the slot has.  false: it is too long, as a version of before the index may be, or lost (see
 * InplaceKeyMatch).  What it takes of memory is for the caller to reset.
 */
extern bool pb_stale_form(Relation rel, PbIndex *index, TupleTableSlot *slot, PbKey *key, bool *is_lost);

#endif							/* PB_STALE_H */
