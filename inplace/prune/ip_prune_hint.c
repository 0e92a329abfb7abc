/*-------------------------------------------------------------------------
 * ip_prune_hint.c
 *	  Whether a page is worth a prune, or has to be pruned.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/xact.h"

#include "ip_map.h"
#include "ip_page.h"
#include "ip_prune_hint.h"

#define MAX_BASE_AGE	(((IpXid) 1 << 32) - ((IpXid) 1 << 28))

void
ip_prune_put_off(Page page)
{
	TransactionId own = GetTopTransactionIdIfAny();

	Assert(ip_page_is_locked(page, true));
	((PageHeader) page)->pd_prune_xid = ip_hint_of(TransactionIdIsValid(own) ? own : (TransactionId) ip_xid_next());
}

void
ip_prune_set_hint(Page page, bool waits)
{
	if (!waits || ip_map_is_plain(page))
		((PageHeader) page)->pd_prune_xid = InvalidTransactionId;
	else
		ip_prune_put_off(page);
}

void
ip_prune_at_once(Page page)
{
	/* not the one of a new page, which the first change takes away */
	((PageHeader) page)->pd_prune_xid = ip_hint_of(BootstrapTransactionId);
}

bool
ip_prune_is_worth(Relation rel, Page page)
{
	TransactionId stored = ((PageHeader) page)->pd_prune_xid;
	TransactionId own = GetTopTransactionIdIfAny();
	IpXid		hint;

	if (stored == InvalidTransactionId)
		return false;
	hint = ip_xid_after(ip_data_xid_base(IpPageGetSpecial(page)), stored - IP_HINT_OFFSET);

	/*
	 * what is not older than our own transaction cannot be removable: that
	 * takes no look at others
	 */
	return (!TransactionIdIsValid(own) || hint < ip_xid_full(own)) && ip_xid_removable(rel, hint);
}

bool
ip_prune_is_useless(Relation rel, Page page)
{
	Assert(ip_page_is_locked(page, true));
	/* plain rows only (I12) */
	return PageIsAllVisible(page) || !ip_prune_is_worth(rel, page);
}

bool
ip_prune_base_is_old(Page page)
{
	return ip_xid_next() > ip_data_xid_base(IpPageGetSpecial(page)) + MAX_BASE_AGE;
}
