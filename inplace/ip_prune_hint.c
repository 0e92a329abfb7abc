/*-------------------------------------------------------------------------
 * ip_prune_hint.c
 *	  When a page was last pruned, or has to be.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/xact.h"

#include "ip_page.h"
#include "ip_prune_hint.h"

/* To heap code, which prunes pages too, the hint in pd_prune_xid is so far in the future. */
#define HINT_OFFSET	((TransactionId) 1 << 30)

#define MAX_BASE_AGE	(((IpXid) 1 << 32) - ((IpXid) 1 << 28))

void
ip_prune_set_hint(Page page)
{
	TransactionId own = GetTopTransactionIdIfAny();
	TransactionId hint = TransactionIdIsValid(own) ? own : (TransactionId) ip_xid_next();

	((PageHeader) page)->pd_prune_xid = hint + HINT_OFFSET;
}

void
ip_prune_clear_hint(Page page)
{
	((PageHeader) page)->pd_prune_xid = InvalidTransactionId;
}

bool
ip_prune_is_useless(Relation rel, Page page)
{
	TransactionId stored = ((PageHeader) page)->pd_prune_xid;
	TransactionId own = GetTopTransactionIdIfAny();
	IpXid		hint;

	Assert(ip_page_is_locked(page, true));
	/* plain rows only (I12); the change that is to come ends that */
	if (PageIsAllVisible(page))
	{
		ip_prune_set_hint(page);
		return true;
	}
	if (stored == InvalidTransactionId)
		return false;
	hint = ip_xid_after(ip_data_xid_base(IpPageGetSpecial(page)), stored - HINT_OFFSET);

	/*
	 * what is not older than our own transaction cannot be removable: that
	 * takes no look at others
	 */
	if (TransactionIdIsValid(own) && hint >= ip_xid_full(own))
		return true;
	return !ip_xid_removable(rel, hint);
}

bool
ip_prune_base_is_old(Page page)
{
	return ip_xid_next() > ip_data_xid_base(IpPageGetSpecial(page)) + MAX_BASE_AGE;
}
