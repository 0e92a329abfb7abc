/*-------------------------------------------------------------------------
 * ip_lockset.c
 *	  The bytes of lock sets, on the metapage and on lock pages.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "ip_lockset.h"
#include "ip_xid.h"

bool
ip_lockset_is_page(Page page)
{
	return ip_page_is_ours(page) &&
		(IpPageGetSpecial(page)->kind == IP_PAGE_LOCK ||
		 IpPageGetSpecial(page)->kind == IP_PAGE_META);
}

int
ip_lockset_max(Page page)
{
	return IpPageGetSpecial(page)->kind == IP_PAGE_META ? IP_LOCK_SETS_OF_META :
		IP_LOCK_SETS_PER_PAGE;
}

const char *
ip_lockset_apply(Page page, ByteReader *r)
{
	PageHeader	ph = (PageHeader) page;
	uint32		i = bytes_get_varint(r);
	OffsetNumber off = bytes_get_varint(r);
	uint8		fresh = bytes_get_u8(r);
	IpLockSet  *set;

	if (!ip_lockset_is_page(page) || off < FirstOffsetNumber ||
		off > IP_MAX_ROWS_PER_PAGE || i >= ip_lockset_max(page) ||
		i > IpPageLockSets(page) || (i == IpPageLockSets(page) && !fresh))
		return "no such lock set";
	set = IpPageLockSet(page, i);
	if (i == IpPageLockSets(page))
		ph->pd_upper -= sizeof(IpLockSet);
	if (fresh)
	{
		memset(set, 0, sizeof(IpLockSet));
		set->block = bytes_get_varint(r);
		set->mode = bytes_get_u8(r);
		set->xid = bytes_get_u64(r);
	}
	set->rows[(off - 1) / 8] |= 1 << ((off - 1) % 8);
	return NULL;
}

const char *
ip_lockset_place_problem(Page page)
{
	PageHeader	ph = (PageHeader) page;

	if (ph->pd_special != IP_SPECIAL_START || ph->pd_upper > IP_SPECIAL_START ||
		(IP_SPECIAL_START - ph->pd_upper) % sizeof(IpLockSet) != 0 ||
		IpPageLockSets(page) > ip_lockset_max(page))
		return "lock sets do not fill their space";
	return NULL;
}

const char *
ip_lockset_problem(Page page)
{
	const IpSpecial *special = IpPageGetSpecial(page);
	const char *problem = ip_lockset_place_problem(page);
	int			n = problem == NULL ? IpPageLockSets(page) : 0;

	if (problem)
		return problem;
	if ((special->u.lock.flags & ~IP_LOCK_CONTINUED) != 0)
		return "unknown flags of a lock page";
	if (special->u.lock.lost > ip_xid_next())
		return "lock sets were lost in the future";
	for (int i = 0; i < n; i++)
	{
		const IpLockSet *set = IpPageLockSet(page, i);

		if (IpXidIsFrozen(set->xid))
			return "lock set has a bad transaction id";
		if (set->mode > LockTupleExclusive)
			return "lock set has an unknown mode";
		if (set->block == IP_META_BLOCK || set->block == InvalidBlockNumber)
			return "lock set does not name a data page";
	}
	return NULL;
}
