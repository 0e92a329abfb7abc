/*-------------------------------------------------------------------------
 * ip_prune_hint.h
 *	  Whether a page is worth a prune.
 *
 *	  pd_prune_xid has the oldest xid that may have something to prune when it is removable; 0: nothing has happened since a prune
 *	  that has left nothing.  Each change sees to that (IP_HINT_OFFSET).
 *-------------------------------------------------------------------------
 */
#ifndef IP_PRUNE_HINT_H
#define IP_PRUNE_HINT_H

#include "ip_xid.h"

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

#endif							/* IP_PRUNE_HINT_H */
