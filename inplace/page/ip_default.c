/*-------------------------------------------------------------------------
 * ip_default.c
 *	  A data page's default inserter and default changer.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "ip_default.h"
#include "ip_xid.h"

static IpXid
with_epoch(const IpSpecial *special, TransactionId xid)
{
	return TransactionIdIsValid(xid) ? ip_xid_after(ip_data_xid_base(special), xid) : IP_XID_NONE;
}

IpXid
ip_default_inserter(Page page)
{
	const IpSpecial *special = IpPageGetSpecial(page);

	return with_epoch(special, special->u.data.default_xid);
}

IpXid
ip_default_changer(Page page)
{
	const IpSpecial *special = IpPageGetSpecial(page);

	return with_epoch(special, special->u.data.change_xid);
}

bool
ip_default_changer_is_over(Page page)
{
	IpXid		xid = ip_default_changer(page);

	return !IpXidIsFinal(xid) && ip_xid_status_locked(xid) == IP_STATUS_ABORTED;
}
