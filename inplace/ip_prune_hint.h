/*-------------------------------------------------------------------------
 * ip_prune_hint.h
 *	  When a page was last pruned.
 *-------------------------------------------------------------------------
 */
#ifndef IP_PRUNE_HINT_H
#define IP_PRUNE_HINT_H

#include "ip_xid.h"

/* The page has been pruned: what is on it now, and has to stay, cannot go before next is removable. */
extern void ip_prune_set_hint(Page page, IpXid next);

/*
 * Would a prune of the data page find nothing that the last one did not?  A quick test, that a change of each row of a
 * page may begin with.  Lock: exclusive.
 */
extern bool ip_prune_is_useless(Relation rel, Page page);

/* Must the page be pruned thoroughly before a new xid is written to it? */
extern bool ip_prune_base_is_old(Page page);

#endif							/* IP_PRUNE_HINT_H */
