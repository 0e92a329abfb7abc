/*-------------------------------------------------------------------------
 * ip_prune.h
 *	  Pruning a data page.
 *-------------------------------------------------------------------------
 */
#ifndef IP_PRUNE_H
#define IP_PRUNE_H

#include "ip_version.h"

/*
 * Prune all rows of a data page: aborted changes are rolled back, rows that
 * are visible to all are frozen, dead rows become dead items.  This thorough
 * prune also renews the page's xid base, and flushes deletions that a crash
 * could undo.  horizon: xids that precede it are removable (VACUUM's horizon,
 * or IP_XID_NONE).  kept_from: rows keep the xids from this one on.  map: the
 * visibility map's page, pinned, to mark the page as all-visible if it is; or
 * InvalidBuffer.  quiets: if all of its rows are visible to all, its stale
 * keys become quiet (I23).  *before, if not NULL: what the page had to be
 * examined, and how many dead items.  Lock: the buffer exclusively, held on
 * return.  But deletions are flushed, and rows with very many aborted changes
 * are rolled back, with the page unlocked; no other buffer may be locked.
 * Pointers into the page become invalid.  Returns the number of rows whose
 * items have become unused, as they do in TOAST tables.
 */
extern int	ip_prune_page(Relation rel, Buffer buffer, IpXid horizon,
						  IpXid kept_from, Buffer map, bool quiets,
						  IpItemList *before);

/*
 * Prune if there may be something to gain since the last prune; returns
 * whether there was.  Deletions that a crash could undo stay, and so do rows
 * with very many aborted changes.  Lock: the buffer exclusively, throughout.
 */
extern bool ip_prune_page_opt(Relation rel, Buffer buffer);

/*
 * Like ip_prune_page_opt, for a reader, which has found that a prune is
 * worthwhile.  Bits in the visibility map are set too (map: its page, pinned).
 * The page may be of any kind.  Lock: the buffer exclusively, throughout.
 */
extern void ip_prune_page_heal(Relation rel, Buffer buffer, Buffer map);

/*
 * Prune the page so that its xid base can be renewed; false if rows with very
 * many aborted changes prevent that.  Lock: the buffer exclusively,
 * throughout.
 */
extern bool ip_prune_for_base(Relation rel, Buffer buffer);

/* What rows need an undo page for. */
typedef enum IpNeed
{
	IP_NEED_NONE,
	IP_NEED_NOW,				/* until a transaction or snapshot ends */
	IP_NEED_BAD					/* perhaps for ever: some rows cannot be read */
} IpNeed;

/*
 * Prune rows of one page, each named once, so that they do not need the undo
 * page undo_block, all xids of which have aborted or precede the removal
 * horizon.  Returns whether they still need it.  Takes and releases the data
 * page's lock; the caller holds none.
 */
extern IpNeed ip_prune_rows(Relation rel, const ItemPointerData *tids,
							int ntids, BlockNumber undo_block);

/* ---- whether a prune is worthwhile --------------------------------------- */

/*
 * Set the hint after a prune of the data page.  If transactions or snapshots
 * that will end have kept something (waits), the next prune is worthwhile when
 * all of them may have ended.  That is when the next xid is removable, or our
 * own xid, if we have one: its change is yet to come, and can then be pruned
 * at once.  Lock: exclusive.
 */
extern void ip_prune_set_hint(Page page, bool waits);

/*
 * Set the hint after the rollback of an aborted change: the rest of it can be
 * removed whatever snapshots there are, so the next prune is worthwhile.
 */
extern void ip_prune_at_once(Page page);

/* Like ip_prune_set_hint, after a prune that could do nothing. */
extern void ip_prune_put_off(Page page);

/*
 * Returns whether a prune of the data page would find nothing more than the
 * last one.  The test is quick, so that changes of all rows of a page may
 * begin with it.  Lock: exclusive.
 */
extern bool ip_prune_is_useless(Relation rel, Page page);

/*
 * Returns whether a prune may find something, or the page may have become
 * all-visible.  Any page; without a lock, the answer may be outdated.
 */
extern bool ip_prune_is_worth(Relation rel, Page page);

/*
 * Returns whether the page must be pruned thoroughly before a new xid is
 * written to it.
 */
extern bool ip_prune_base_is_old(Page page);

#endif							/* IP_PRUNE_H */
