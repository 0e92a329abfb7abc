/*-------------------------------------------------------------------------
 * ip_prune.h
 *	  Putting back aborted changes, and dropping what nobody needs any more.
 *-------------------------------------------------------------------------
 */
#ifndef IP_PRUNE_H
#define IP_PRUNE_H

#include "ip_version.h"

/*
 * Clean all rows of a data page: aborted changes are put back, version blocks
 * that nobody needs are stripped, dead rows become dead items.  A thorough
 * prune also drops ended row locks, renews the page's xid base, and flushes deletions that a crash
 * could take back (others stay).  Lock: the
 * buffer exclusively, held on return.  Pointers into the page become invalid.
 */
extern void ip_prune_page(Relation rel, Buffer buffer, bool thorough);

/* Prune if there is something to win since the last time. */
extern void ip_prune_page_opt(Relation rel, Buffer buffer);

/* Must the page be pruned thoroughly before a new xid is written to it? */
extern bool ip_page_base_is_old(Page page);

/* What rows need an undo page for. */
typedef enum IpNeed
{
	IP_NEED_NONE,
	IP_NEED_NOW,				/* for what will end */
	IP_NEED_BAD					/* who knows: some of them cannot be read */
} IpNeed;

/*
 * Clean rows of one page, each named once, so that they do not need the undo page
 * undo_block, all xids of which precede the removal horizon; do they still?  Takes and
 * releases the data page's lock; the caller holds none.
 */
extern IpNeed ip_prune_rows(Relation rel, const ItemPointerData *tids, int ntids,
							BlockNumber undo_block);

/*
 * v stands on the newest version of a row whose last change has aborted, and
 * its lockers, if any, have ended.  Put back the version before.  Lock: the
 * buffer exclusively, held on return.
 */
extern void ip_restore_row(IpVersion *v, Buffer buffer);

#endif							/* IP_PRUNE_H */
