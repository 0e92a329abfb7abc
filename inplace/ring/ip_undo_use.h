/*-------------------------------------------------------------------------
 * ip_undo_use.h
 *	  Undo pages for changes.
 *-------------------------------------------------------------------------
 */
#ifndef IP_UNDO_USE_H
#define IP_UNDO_USE_H

#include "ip_prune.h"
#include "ip_ring.h"

/*
 * Prepare a change of rel: may recycle an undo page, for which rows with
 * aborted changes are rolled back.  No buffer lock may be held.
 */
extern void ip_undo_use_prepare(Relation rel);

/*
 * Returns the undo page for records of size bytes in all (with their line
 * pointers), locked exclusively; *off becomes the first record's offset.  A
 * data page may be locked.  May extend the relation.
 */
extern Buffer ip_undo_use_begin(Relation rel, uint32 size, OffsetNumber *off);


/*
 * Clean the rows that o names.  Returns whether any of them still needs the
 * page.  No buffer lock may be held.
 */
extern IpNeed ip_undo_use_clean_rows(Relation rel, const IpOldestPage *o);

#endif							/* IP_UNDO_USE_H */
