/*-------------------------------------------------------------------------
 * ip_heal.h
 *	  Pruning by readers of the pages that they read.
 *
 *	  If a page is no longer changed, and has nothing that counts as dead, only
 *	  readers visit it.  Without them, rows would stay overlaid or with aborted
 *	  changes, so that each scan reads their undo, and the page's bits in the
 *	  visibility map would stay clear.
 *-------------------------------------------------------------------------
 */
#ifndef IP_HEAL_H
#define IP_HEAL_H

#include "compat.h"

#include "ip_page.h"
#include "ip_version.h"

/* Setting, for tests. */
extern bool ip_heal_enabled;

/*
 * Whether a scan may prune.  It finds out when it first reads a page for which
 * that may be worthwhile.
 */
typedef enum IpHeals
{
	IP_HEALS_UNKNOWN = 0,
	IP_HEALS_YES,
	IP_HEALS_NO
} IpHeals;

/*
 * Returns whether the page needs nothing, which most pages say at once.  Any
 * page; no lock is needed, because an outdated answer does no harm.
 */
static inline bool
ip_heal_is_healthy(Page page)
{
	return ((PageHeader) page)->pd_prune_xid == InvalidTransactionId ||
		PageIsAllVisible(page);
}

/*
 * Prune the page of the buffer, which is pinned, and set its bits in the
 * visibility map, if that is worthwhile and allowed, and no other backend uses
 * the page.  Damage that prevents it is left for others to report.  Lock: none
 * is held.
 */
extern void ip_heal_page(Relation rel, Buffer buffer, IpHeals *heals);

/*
 * Returns whether readers of a row of the block must read an undo page,
 * although its newest change, with this state, xid and pointer, is visible to
 * all or was rolled back.
 */
extern bool ip_heal_is_costly(Relation rel, BlockNumber block, uint8 state,
							  IpXid xid, IpPtr ptr);

#endif							/* IP_HEAL_H */
