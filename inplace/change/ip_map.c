/*-------------------------------------------------------------------------
 * ip_map.c
 *	  Pages that are all-visible, and their bits in the visibility map.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/visibilitymap.h"

#include "ip_map.h"

/* Size of a map page's contents: behind the header it has only bits. */
#define MAP_BYTES		(BLCKSZ - MAXALIGN(SizeOfPageHeaderData))
#define BLOCKS_PER_BYTE	(BITS_PER_BYTE / BITS_PER_HEAPBLOCK)

bool
ip_map_is_frozen(Page page)
{
	const IpSpecial *special = IpPageGetSpecial(page);
	OffsetNumber max = PageGetMaxOffsetNumber(page);

	if (TransactionIdIsValid(special->u.data.default_xid) ||
		TransactionIdIsValid(special->u.data.change_xid))
		return false;
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		if (ip_item_is_used(PageGetItemId(page, off)) &&
			!ip_row_is_frozen(page, off))
			return false;
	}
	return true;
}

bool
ip_map_is_visible(Page page)
{
	if (IpPageGetSpecial(page)->keys != 0 || !ip_map_is_frozen(page))
		return false;
	for (OffsetNumber off = FirstOffsetNumber;
		 off <= PageGetMaxOffsetNumber(page); off++)
	{
		if (ItemIdIsDead(PageGetItemId(page, off)))
			return false;
	}
	return true;
}

void
ip_map_set(Page map, BlockNumber block)
{
	uint32		i = block % (MAP_BYTES * BLOCKS_PER_BYTE);

	PageGetContents(map)[i / BLOCKS_PER_BYTE] |=
		VISIBILITYMAP_VALID_BITS << i % BLOCKS_PER_BYTE * BITS_PER_HEAPBLOCK;
}
