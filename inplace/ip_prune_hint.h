/*-------------------------------------------------------------------------
 * ip_prune_hint.h
 *	  When a page was last pruned.
 *-------------------------------------------------------------------------
 */
#ifndef IP_PRUNE_HINT_H
#define IP_PRUNE_HINT_H

#include "ip_xid.h"

/*
 * The page has been pruned.  The next prune is worth it when all that has stayed may have ended: when the next xid is removable, or
 * our own transaction, whose change is to come, and can then go at once.
 */
extern void ip_prune_set_hint(Page page);

/* A rolled-back change has been put back: what it has left goes whatever snapshots there are, so the next prune is worth it. */
extern void ip_prune_clear_hint(Page page);

/*
 * Would a prune of the data page find nothing that the last one did not?  A quick test, that a change of each row of a
 * page may begin with.  Lock: exclusive.
 */
extern bool ip_prune_is_useless(Relation rel, Page page);

/* Must the page be pruned thoroughly before a new xid is written to it? */
extern bool ip_prune_base_is_old(Page page);

#endif							/* IP_PRUNE_HINT_H */
