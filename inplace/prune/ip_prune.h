/*-------------------------------------------------------------------------
 * ip_prune.h
 *	  Pruning a data page.
 *-------------------------------------------------------------------------
 */
#ifndef IP_PRUNE_H
#define IP_PRUNE_H

#include "ip_version.h"

/*
 * Clean all rows of a data page: aborted changes are rolled back, rows that all
 * see are frozen, dead rows become dead items.  This thorough prune also renews
 * the page's xid base, and flushes deletions that a crash could take back.
 * horizon: what precedes it is removable (VACUUM's; or IP_XID_NONE).
 * kept_from: rows keep the xids from this one on.  map: the visibility map's
 * page, pinned: the page becomes all-visible if that is true; or InvalidBuffer.
 * quiets: if all see all of its rows, its stale keys become quiet (I23).
 * Lock: the buffer exclusively, held on return, but deletions are flushed, and
 * rows with very many aborted changes are rolled back, with the page unlocked;
 * no other buffer may be locked.  Pointers into the page become invalid.
 */
extern void ip_prune_page(Relation rel, Buffer buffer, IpXid horizon, IpXid kept_from, Buffer map, bool quiets);

/*
 * Prune if there is something to win since the last time; was there?  Deletions that a crash could take back
 * stay, and so do rows with very many aborted changes.  Lock: the buffer exclusively, throughout.
 */
extern bool ip_prune_page_opt(Relation rel, Buffer buffer);

/*
 * The same for a reader, which has found that it is worth it: bits in the visibility map are set, too (map: its page, pinned).  The page
 * may be of any kind.  Lock: the buffer exclusively, throughout.
 */
extern void ip_prune_page_heal(Relation rel, Buffer buffer, Buffer map);

/*
 * Do so; false if rows with very many aborted changes are in the way.  Lock: the buffer
 * exclusively, throughout.
 */
extern bool ip_prune_for_base(Relation rel, Buffer buffer);

/* What rows need an undo page for. */
typedef enum IpNeed
{
	IP_NEED_NONE,
	IP_NEED_NOW,				/* for what will end */
	IP_NEED_BAD					/* perhaps for ever: some of them cannot be
								 * read */
} IpNeed;

/*
 * Clean rows of one page, each named once, so that they do not need the undo page
 * undo_block, all xids of which have aborted or precede the removal horizon; do they still?
 * Takes and releases the data page's lock; the caller holds none.
 */
extern IpNeed ip_prune_rows(Relation rel, const ItemPointerData *tids, int ntids,
							BlockNumber undo_block);

/* ---- is a page worth a prune? ------------------------------------------------------- */

/*
 * The data page has been pruned.  If something has stayed that will end (waits), the next prune is worth it when all of that may have ended: when the next xid is
 * removable, or our own transaction, whose change is to come, and can then go at once.  Lock: exclusive.
 */
extern void ip_prune_set_hint(Page page, bool waits);

/* A rolled-back change has been put back: what it has left goes whatever snapshots there are, so the next prune is worth it. */
extern void ip_prune_at_once(Page page);

/* As ip_prune_set_hint, but nothing could be done. */
extern void ip_prune_put_off(Page page);

/*
 * Would a prune of the data page find nothing that the last one did not?  A quick test, that a change of each row of a
 * page may begin with.  Lock: exclusive.
 */
extern bool ip_prune_is_useless(Relation rel, Page page);

/* May a prune find something, or the page be all-visible by now?  Any page; no lock is needed, then the answer may be out of date. */
extern bool ip_prune_is_worth(Relation rel, Page page);

/* Must the page be pruned thoroughly before a new xid is written to it? */
extern bool ip_prune_base_is_old(Page page);

#endif							/* IP_PRUNE_H */
