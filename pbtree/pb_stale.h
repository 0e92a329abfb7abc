/*-------------------------------------------------------------------------
 * pb_stale.h
 *	  Entries that are stale because inplace has changed their rows' keys in
 *	  place.
 *
 * See inplace_keys.h.
 *-------------------------------------------------------------------------
 */
#ifndef PB_STALE_H
#define PB_STALE_H

#include "inplace_keys.h"

#include "pb_key.h"

/* The maximum number of rows of a leaf; a row takes at least a byte. */
#define PB_MAX_PAGE_TIDS	BLCKSZ

/* An entry, and its table, or NULL if entries of the index cannot be stale. */
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
	Relation	toast;			/* for VACUUM: the TOAST table, locked, or
								 * NULL */
	ItemPointerData *suspects;	/* of a leaf's entries, in order */
	int			nsuspects;
	int			nold;			/* number of entries needed for older
								 * versions, since the first examination of a
								 * leaf began */
} PbStale;

/*
 * Publish the functions for inplace.  To be called when the library is loaded.
 */
extern void pb_stale_init(InplaceKeysIndex *keys);

/*
 * True if the index, by its own definition, can follow updates in place.  The
 * table is not examined.
 */
extern bool pb_stale_can_follow(Relation rel, const PbIndex *index);

/*
 * Like pb_stale_can_follow, but the table must also be an inplace table.  heap
 * NULL: the index's table is looked up.
 */
extern bool pb_stale_applies(Relation rel, const PbIndex *index, Relation heap);

/*
 * Prepare the examination of entries of leaves.  heap NULL: locks for the
 * rows' long values are taken now; otherwise entries of rows with such values
 * count as needed.
 */
extern void pb_stale_begin(PbStale *s, Relation rel, PbIndex *index,
						   Relation heap);

/* Release the resources of pb_stale_begin. */
extern void pb_stale_end(PbStale *s);

/*
 * Find the entries of the leaf that seem to be stale.  The table's pages are
 * read while the leaf is only pinned, so the result proves nothing: before a
 * removal the caller locks the leaf and examines again those suspects, whose
 * pages are in memory then.  Entries that are inserted in between are no
 * suspects.  A sample is examined first; all entries follow only if it has
 * many stale ones.  Returns the number of suspects.
 */
extern int	pb_stale_look(PbStale *s, Buffer buffer, bool sample);

/*
 * True if the page, which was a leaf, is still one, and not damaged.  Lock:
 * read, or a copy.
 */
extern bool pb_stale_is_leaf(Page page);

/* True if the TID was stale at the first examination. */
extern bool pb_stale_is_suspect(const PbStale *s, ItemPointer tid);

/*
 * Examine a suspect again.  Lock: the leaf, exclusively.  See
 * InplaceKeysTable.  *conflict, which may be invalid, becomes the newest of
 * its old value and the xid that an unneeded entry conflicts with.
 */
extern bool pb_stale_is_needed(PbStale *s, const PbKey *key, ItemPointer tid,
							   TransactionId *conflict);

/*
 * Form the key of the row in the slot.  Returns false if it is too long, which
 * is possible for a version older than the index, or lost (see
 * InplaceKeyMatch).  The caller resets the memory context.
 */
extern bool pb_stale_form(Relation rel, PbIndex *index, TupleTableSlot *slot,
						  PbKey *key, bool *is_lost);

#endif							/* PB_STALE_H */
