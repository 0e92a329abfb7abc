/*-------------------------------------------------------------------------
 * ip_heal.h
 *	  Readers put the pages in order that they meet.
 *
 *	  Where nobody changes a page any more, and nothing counts as dead, nobody else comes: without readers, rows would stay overlaid or
 *	  rolled back, so that each scan reads their undo, and no bit in the visibility map would come back.
 *-------------------------------------------------------------------------
 */
#ifndef IP_HEAL_H
#define IP_HEAL_H

#include "compat.h"

#include "ip_page.h"
#include "ip_version.h"

/* Setting, for tests. */
extern bool ip_heal_enabled;

/* May a scan do that?  It asks when it first meets a page that may be worth it. */
typedef enum IpHeals
{
	IP_HEALS_UNKNOWN = 0,
	IP_HEALS_YES,
	IP_HEALS_NO
} IpHeals;

/* Is there nothing to do, as most pages say at once?  Any page; no lock: an old answer does no harm. */
static inline bool
ip_heal_is_healthy(Page page)
{
	return ((PageHeader) page)->pd_prune_xid == InvalidTransactionId || PageIsAllVisible(page);
}

/*
 * Prune the page of the buffer, which is pinned, and set its bits in the visibility map, if that is worth it, legal, and no other backend
 * uses the page.  What damage is in the way is left for others to report.  Lock: none is held.
 */
extern void ip_heal_page(Relation rel, Buffer buffer, IpHeals *heals);

/*
 * Do readers of a row of the block have to read an undo page, although all see
 * its newest change, of this state, xid and pointer, or that was rolled back?
 */
extern bool ip_heal_is_costly(Relation rel, BlockNumber block, uint8 state, IpXid xid, IpPtr ptr);

#endif							/* IP_HEAL_H */
